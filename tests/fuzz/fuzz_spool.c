/* A spool, as it is and with every checksum put right, which lets what is behind them be tried. Its records are stored
 * in a report with the code of the cubin that they name, and the report is then read. */
#include "fuzz.h"

#include "report/store/code_read.h"
#include "report_input.h"
#include "spool/format.h"
#include "spool/spool.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static uint8_t *seed; /* a report of a run with its plans and nothing measured */
static size_t seed_size;
static int folder; /* of the spool and the cubin */

void fuzz_set_up(void)
{
    size_t size;
    KPROF_AUTO_FREE uint8_t *cubin = fuzz_read_file(KPROF_TESTS_DIR "/fixtures/code/softmax.cubin", &size);
    seed = fuzz_read_seed_report(&seed_size);
    fuzz_write_file(fuzz_path(FUZZ_CUBIN), cubin, size);
    folder = open(fuzz_path(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(folder >= 0);
}

/* Set the checksum of every whole record. */
static void repair(uint8_t *data, size_t size)
{
    size_t at = KPROF_SPOOL_HEADER_BYTES;
    while (at < size && size - at >= KPROF_SPOOL_RECORD_HEADER_BYTES) {
        kprof_record_header header = kprof_spool_decode_record_header(data + at);
        const uint8_t *payload = data + at + KPROF_SPOOL_RECORD_HEADER_BYTES;
        if (header.length > size - at - KPROF_SPOOL_RECORD_HEADER_BYTES)
            return;
        uint32_t sum = kprof_spool_checksum(header, payload);
        for (int i = 0; i < 4; i++)
            data[at + 8 + (size_t)i] = (uint8_t)(sum >> 8 * i);
        at += KPROF_SPOOL_RECORD_HEADER_BYTES + (size_t)header.length;
    }
}

/* Read it to its end, or to the first record that the report does not take. `ingest` NULL: nothing is stored. */
static size_t read_spool(const char *path, kprof_ingest *ingest)
{
    size_t count = 0;
    kprof_spool_reader *reader = NULL;
    kprof_record record;
    kprof_status status = kprof_spool_reader_open(AT_FDCWD, path, &reader);
    if (status != KPROF_OK)
        return 0;
    while (status == KPROF_OK && kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        count++;
        if (ingest)
            status = kprof_ingest_record(ingest, &record);
    }
    (void)kprof_spool_has_news(reader);
    kprof_spool_reader_close(reader);
    return count;
}

static void store_spool(const char *spool)
{
    char path[256];
    kprof_report *report = NULL;
    kprof_ingest *ingest = NULL;
    snprintf(path, sizeof path, "%s", fuzz_path("seed.kprof"));
    fuzz_write_file(path, seed, seed_size);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s", fuzz_path("made.kprof"));
    FUZZ_CHECK(kprof_report_recreate(path, KPROF_CREATE_REPLACE, from, &report) == KPROF_OK);
    close(from);
    FUZZ_CHECK(kprof_report_begin(report) == KPROF_OK);
    ingest = kprof_ingest_new(report);
    (void)read_spool(spool, ingest);
    kprof_ingest_free(ingest);
    FUZZ_CHECK(kprof_report_commit(report) == KPROF_OK);
    /* No program can be started by that name: the code has lines, and no texts. */
    const kprof_code_options code = {
        .folder = folder, .nvdisasm = "/dev/null", .keeps_source = true, .keeps_sass = true};
    FUZZ_CHECK(kprof_report_read_code(report, &code) == KPROF_OK);
    FUZZ_CHECK(kprof_report_close(report) == KPROF_OK);
    FUZZ_CHECK(kprof_report_open(path, &report) == KPROF_OK);
    FUZZ_CHECK(fuzz_print_report(report, 0) == KPROF_OK);
    FUZZ_CHECK(fuzz_print_report(report, 0x100) == KPROF_OK);
    FUZZ_CHECK(fuzz_print_report(report, 8 * KPROF_PAGE_SOURCE) == KPROF_OK);
    FUZZ_CHECK(kprof_report_close(report) == KPROF_OK);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s", fuzz_path("1-0.spool"));
    fuzz_write_file(path, data, size);
    (void)read_spool(path, NULL);
    KPROF_AUTO_FREE uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    repair(copy, size);
    fuzz_write_file(path, copy, size);
    if (read_spool(path, NULL) > 0)
        store_spool(path);
    return 0;
}
