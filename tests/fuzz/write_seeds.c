/* Writes the inputs that harnesses begin with and that no text editor makes: spools, configurations and reports, each
 * into the folder of its harness below the one that is given. */
#include "fuzz.h"

#include "../spool/spool_samples.h"
#include "core/config.h"
#include "report_input.h"
#include "spool/format.h"

#include <string.h>
#include <sys/stat.h>

static const char *folder;

static void write_seed(const char *harness, const char *name, const kprof_strbuf *content)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, harness);
    (void)mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, harness, name);
    FUZZ_CHECK(!content->failed);
    fuzz_write_file(path, content->data, content->length);
}

static void write_spools(void)
{
    KPROF_AUTO(kprof_strbuf) all = KPROF_STRBUF_INIT, one = KPROF_STRBUF_INIT;
    kprof_spool_encode_header(&all);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        char name[32];
        kprof_strbuf_clear(&one);
        kprof_spool_encode_header(&one);
        FUZZ_CHECK(kprof_spool_encode_record(&samples[i], &one) && kprof_spool_encode_record(&samples[i], &all));
        snprintf(name, sizeof name, "record-%zu", i);
        write_seed("spool", name, &one);
    }
    write_seed("spool", "all", &all);
}

/* A spool whose records fit together: its launches are of its kernel and have its metrics. */
static void write_run(void)
{
    static const double values[] = {1, 2, 3}, spreads[] = {0, 20};
    static const char *const stalls[] = {"smsp__pcsamp_warps_issue_stalled_wait",
                                         "smsp__pcsamp_warps_issue_stalled_wait_not_issued"};
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    kprof_record records[SAMPLE_COUNT];
    memcpy(records, samples, sizeof records);
    kprof_spool_encode_header(&out);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        if (records[i].type == KPROF_RECORD_LAUNCH) {
            records[i].launch.kernel = 1;
            records[i].launch.device = 1;
            records[i].launch.value_count = 3;
            records[i].launch.values = values;
            records[i].launch.witness_count = 2;
            records[i].launch.witness_spreads_pct = spreads;
            records[i].launch.mode = i % 2 ? KPROF_REPLAY_BATCH : KPROF_REPLAY_MULTIPLEX;
        }
        if (records[i].type == KPROF_RECORD_CODE)
            records[i].code.file = FUZZ_CUBIN;
        if (records[i].type == KPROF_RECORD_INSTRUCTIONS && records[i].instructions.name_count == 2) {
            records[i].instructions.function = FUZZ_CUBIN_FUNCTION;
            records[i].instructions.names = stalls;
            FUZZ_CHECK(kprof_spool_encode_record(&records[i], &out));
            records[i].instructions.sampled = 0;
            records[i].instructions.names = sample_instruction_names;
        }
        FUZZ_CHECK(kprof_spool_encode_record(&records[i], &out));
    }
    write_seed("spool", "run", &out);
}

static void write_configs(void)
{
    char *names[] = {(char *)"dram__bytes.sum", (char *)"sm__cycles_active.avg"};
    uint8_t image[] = "image";
    uint32_t passes[] = {0, 1};
    kprof_chip_metrics chip = {.chip = (char *)"GH100",
                               .metrics = {names, 2, 2},
                               .last_passes = passes,
                               .patched = passes,
                               .witnesses = {names, 1, 1},
                               .witness_passes = {3},
                               .proof = {names + 1, 1, 1},
                               .images = {{image, sizeof image}, {image, 2}},
                               .pass_count = 2};
    kprof_config config = {.filter = {.kernel = (char *)"regex:a", .launch_count = 3, .nvtx_include = {names, 2, 2}},
                           .nvtx = true,
                           .multiplex_samples = 32,
                           .counter_data_dir = (char *)"/tmp"};
    for (size_t i = 0; i < 3; i++) {
        kprof_chip_metrics chips[2] = {chip, chip};
        kprof_strbuf out = KPROF_STRBUF_INIT;
        char name[16];
        config.chips = chips;
        config.chip_count = i;
        FUZZ_CHECK(kprof_config_encode(&config, &out) == KPROF_OK);
        snprintf(name, sizeof name, "chips-%zu", i);
        out.length -= sizeof(uint32_t); /* the harness puts a checksum behind it */
        write_seed("config", name, &out);
        kprof_strbuf_free(&out);
    }
}

/* All of it is printed, in each of four formats. */
static void write_traces(void)
{
    for (uint8_t i = 0; i < 4; i++) {
        char name[32];
        size_t size;
        kprof_strbuf out = KPROF_STRBUF_INIT;
        const uint8_t how[2] = {i, 1};
        uint8_t *data = fuzz_read_trace(&size);
        kprof_strbuf_append(&out, how, sizeof how);
        kprof_strbuf_append(&out, data, size);
        free(data);
        snprintf(name, sizeof name, "trace-%d", i);
        write_seed("report", name, &out);
        kprof_strbuf_free(&out);
    }
}

static void write_reports(void)
{
    for (int i = 0; i < 4; i++) {
        char name[32];
        size_t size;
        kprof_strbuf out = KPROF_STRBUF_INIT;
        const uint8_t how[2] = {(uint8_t)(8 * i + 1), (uint8_t)(i << 4)};
        uint8_t *data = i < 3 ? fuzz_read_fixture(i % 2, &size) : fuzz_read_seed_report(&size);
        kprof_strbuf_append(&out, how, sizeof how);
        kprof_strbuf_append(&out, data, size);
        free(data);
        snprintf(name, sizeof name, "fixture-%d", i);
        write_seed("report", name, &out);
        kprof_strbuf_free(&out);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: write_seeds FOLDER\n");
        return 2;
    }
    (void)LLVMFuzzerInitialize(&argc, &argv);
    folder = argv[1];
    (void)mkdir(folder, 0777);
    write_spools();
    write_run();
    write_configs();
    write_reports();
    write_traces();
    return 0;
}
