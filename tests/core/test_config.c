/* The configuration crosses the process boundary unchanged, and nothing but a whole one is accepted. */
#include "core/bytes.h"
#include "core/config.h"
#include "log_capture.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static log_capture log_seen;

static kprof_config sample(void)
{
    static char *metrics[] = {"dram__bytes.sum", "", "sm__cycles_active.avg"};
    static char *witnesses[] = {"TPC.TriageCompute.sm__inst_executed_realtime.sum"};
    static uint32_t last_passes[] = {8, 0, UINT32_MAX};
    static uint32_t patched[] = {1, 0, 1};
    static uint8_t image[] = {0, 1, 2, 255, 0, 7};
    static char *include[] = {"step/*/forward", "epoch"}, *exclude[] = {"regex:^warm"};
    static char *proof[] = {"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", "to peers"};
    static char *instructions[] = {"smsp__sass_inst_executed", "smsp__sass_sectors_mem_global"};
    static char *sampled[] = {"gr__cycles_active.sum", "dram__bytes.sum"};
    static kprof_chip_timeline timelines[] = {{{sampled, 2, 2}, {image, 3}}, {{sampled, 1, 1}, {image, 6}}};
    static kprof_chip_metrics chips[] = {
        {
            .chip = "GH100",
            .metrics = {metrics, 3, 3},
            .last_passes = last_passes,
            .patched = patched,
            .witnesses = {witnesses, 1, 1},
            .witness_passes = {5, UINT64_MAX},
            .proof = {proof, 2, 2},
            .images = {{image, sizeof image}, {image + 1, sizeof image - 1}, {image + 2, 1}, {image, 2}},
            .pass_count = 9,
            .patches_code = true,
            .timelines = timelines,
            .timeline_count = 2,
        },
        {.chip = "TU102"},
    };
    return (kprof_config){
        .filter = {.kernel = "regex:vector\\w+",
                   .name_base = KPROF_NAME_DEMANGLED,
                   .launch_skip = 3,
                   .launch_count = UINT64_MAX,
                   .launch_skip_before_match = 1ull << 40,
                   .context = "1",
                   .stream = "compute.*",
                   .invocation = ".*5|3",
                   .range_filter = "yes:[2-3]:1",
                   .schedule = "10,1,1,3,2",
                   .step = "step/",
                   .filter_mode = KPROF_FILTER_PER_CONFIG,
                   .device_mask = 0x8000000000000001,
                   .profiler_calls = KPROF_PROFILER_CALLS_IGNORED,
                   .nvtx_include = {include, 2, 2},
                   .nvtx_exclude = {exclude, 1, 1},
                   .python_include = {exclude, 1, 1},
                   .native_exclude = {include, 2, 2},
                   .processes = {include, 1, 1},
                   .mangled = {include, 2, 2}},
        .chips = chips,
        .chip_count = 2,
        .cache_control = KPROF_CACHE_FLUSH_NONE,
        .witness_control = KPROF_WITNESSES_AUTO,
        .follow_children = true,
        .verbose = true,
        .nvtx = true,
        .nvtx_of_process = true,
        .replay_choice = KPROF_MULTIPLEX_ALL,
        .graph_profiling = KPROF_GRAPH_WHOLE,
        .multiplex_samples = 77,
        .replay_batch = KPROF_BATCH_MOST_LAUNCHES,
        .instruction_metrics = {instructions, 2, 2},
        .samples = true,
        .sampling_period = 31,
        .sampling_passes = 5,
        .sampling_buffer_bytes = (uint64_t)5 << 30,
        .root_pid = 4711,
        .counter_data_dir = "/tmp/counters",
    };
}

static void assert_names_equal(const kprof_strlist *a, const kprof_strlist *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_string_equal(a->items[i], b->items[i]);
}

static void assert_filter_equal(const kprof_filter_spec *a, const kprof_filter_spec *b)
{
    assert_int_equal(a->kernel == NULL, b->kernel == NULL);
    if (a->kernel)
        assert_string_equal(a->kernel, b->kernel);
    assert_int_equal(a->name_base, b->name_base);
    assert_true(a->launch_skip == b->launch_skip);
    assert_true(a->launch_count == b->launch_count);
    assert_true(a->launch_skip_before_match == b->launch_skip_before_match);
    assert_string_equal(a->context ? a->context : "none", b->context ? b->context : "none");
    assert_string_equal(a->stream ? a->stream : "none", b->stream ? b->stream : "none");
    assert_string_equal(a->range_filter ? a->range_filter : "none", b->range_filter ? b->range_filter : "none");
    assert_string_equal(a->schedule ? a->schedule : "none", b->schedule ? b->schedule : "none");
    assert_string_equal(a->step ? a->step : "none", b->step ? b->step : "none");
    assert_string_equal(a->invocation ? a->invocation : "none", b->invocation ? b->invocation : "none");
    assert_int_equal(a->filter_mode, b->filter_mode);
    assert_true(a->device_mask == b->device_mask);
    assert_int_equal(a->profiler_calls, b->profiler_calls);
    assert_names_equal(&a->nvtx_include, &b->nvtx_include);
    assert_names_equal(&a->nvtx_exclude, &b->nvtx_exclude);
    assert_names_equal(&a->python_include, &b->python_include);
    assert_names_equal(&a->native_exclude, &b->native_exclude);
    assert_names_equal(&a->processes, &b->processes);
    assert_names_equal(&a->python_exclude, &b->python_exclude);
    assert_names_equal(&a->mangled, &b->mangled);
}

static void assert_chip_equal(const kprof_chip_metrics *a, const kprof_chip_metrics *b)
{
    assert_string_equal(a->chip, b->chip);
    assert_int_equal(a->pass_count, b->pass_count);
    assert_int_equal(a->patches_code, b->patches_code);
    assert_names_equal(&a->metrics, &b->metrics);
    if (a->metrics.count)
        assert_memory_equal(a->patched, b->patched, a->metrics.count * sizeof *a->patched);
    if (a->metrics.count)
        assert_memory_equal(a->last_passes, b->last_passes, a->metrics.count * sizeof *a->last_passes);
    assert_names_equal(&a->witnesses, &b->witnesses);
    assert_memory_equal(a->witness_passes, b->witness_passes, sizeof a->witness_passes);
    assert_names_equal(&a->proof, &b->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        assert_int_equal(a->images[i].size, b->images[i].size);
        if (a->images[i].size)
            assert_memory_equal(a->images[i].data, b->images[i].data, a->images[i].size);
    }
    assert_int_equal(a->timeline_count, b->timeline_count);
    for (size_t i = 0; i < a->timeline_count; i++) {
        assert_names_equal(&a->timelines[i].metrics, &b->timelines[i].metrics);
        assert_int_equal(a->timelines[i].image.size, b->timelines[i].image.size);
        assert_memory_equal(a->timelines[i].image.data, b->timelines[i].image.data, a->timelines[i].image.size);
    }
}

static void assert_config_equal(const kprof_config *a, const kprof_config *b)
{
    assert_filter_equal(&a->filter, &b->filter);
    assert_int_equal(a->verbose, b->verbose);
#define OPTION(place, type, field, ...) KPROF_FOR_RECORDER_##place(assert_int_equal(a->field, b->field);)
#include "core/recorder_options.h"
#undef OPTION
    assert_names_equal(&a->instruction_metrics, &b->instruction_metrics);
    assert_int_equal(a->samples, b->samples);
    assert_true(a->root_pid == b->root_pid);
    assert_int_equal(a->counter_data_dir == NULL, b->counter_data_dir == NULL);
    if (a->counter_data_dir)
        assert_string_equal(a->counter_data_dir, b->counter_data_dir);
    assert_int_equal(a->chip_count, b->chip_count);
    for (size_t i = 0; i < a->chip_count; i++)
        assert_chip_equal(&a->chips[i], &b->chips[i]);
}

TEST(decoding_undoes_encoding)
{
    kprof_config full = sample(), empty = {0};
    const kprof_config *configs[] = {&full, &empty};
    for (size_t i = 0; i < 2; i++) {
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        kprof_config decoded;
        assert_int_equal(kprof_config_encode(configs[i], &bytes), KPROF_OK);
        assert_int_equal(kprof_config_decode(bytes.data, bytes.length, &decoded), KPROF_OK);
        assert_config_equal(configs[i], &decoded);
        kprof_config_free(&decoded);
        assert_null(decoded.chips);
        kprof_strbuf_free(&bytes);
    }
}

/* Exactly the bytes to be decoded, on the heap, so that AddressSanitizer and valgrind see a read beyond them. */
static kprof_status decode_copy(const void *data, size_t size)
{
    KPROF_AUTO_FREE char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    kprof_config config;
    kprof_status status = kprof_config_decode(copy, size, &config);
    if (status != KPROF_OK) {
        assert_null(config.chips);
        assert_null(config.filter.kernel);
    }
    kprof_config_free(&config);
    return status;
}

TEST(every_cut_is_refused)
{
    kprof_config config = sample();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    for (size_t size = 0; size < bytes.length; size++) {
        unsigned messages = log_seen.count;
        assert_int_equal(decode_copy(bytes.data, size), KPROF_INTERNAL);
        assert_int_equal(log_seen.count, messages + 1);
    }
    kprof_strbuf_append(&bytes, "", 1);
    assert_int_equal(decode_copy(bytes.data, bytes.length), KPROF_INTERNAL);
}

/* Give a changed or shortened encoding the checksum it needs to get past the first check. */
static void sign(kprof_strbuf *bytes, size_t size)
{
    bytes->length = size - 4;
    kprof_put_u32(bytes, kprof_crc32c(0, bytes->data, bytes->length));
}

TEST(every_bit_flip_is_refused)
{
    kprof_config config = sample();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(decode_copy(bytes.data, bytes.length), KPROF_INTERNAL);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
}

TEST(flips_and_cuts_with_a_good_checksum_do_no_harm)
{
    kprof_config config = sample();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    size_t size = bytes.length;
    unsigned refused = 0;
    for (size_t bit = 0; bit < (size - 4) * 8; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        sign(&bytes, size);
        refused += decode_copy(bytes.data, size) != KPROF_OK;
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(refused > 100);
    for (size_t cut = size - 1; cut > 12; cut--) {
        sign(&bytes, cut);
        assert_int_equal(decode_copy(bytes.data, cut), KPROF_INTERNAL);
    }
}

TEST(another_version_is_named)
{
    kprof_config config = sample();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    bytes.data[8] = 77;
    sign(&bytes, bytes.length);
    assert_int_equal(decode_copy(bytes.data, bytes.length), KPROF_INTERNAL);
    assert_non_null(strstr(log_seen.last, "another version of kprof"));
}

TEST(save_and_load_through_a_directory)
{
    char dir[] = "/tmp/kprof-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    kprof_config config = sample(), loaded;
    assert_int_equal(kprof_config_save(&config, dir), KPROF_OK);
    config.root_pid = 4712;
    assert_int_equal(kprof_config_save(&config, dir), KPROF_OK);
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_OK);
    assert_config_equal(&config, &loaded);
    kprof_config_free(&loaded);

    char path[64];
    struct stat info;
    snprintf(path, sizeof path, "%s/config", dir);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left behind */
}

TEST(files_that_cannot_be_read_are_refused)
{
    char dir[] = "/tmp/kprof-test-XXXXXX";
    char path[64];
    kprof_config loaded, config = sample();
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/config", dir);
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
    assert_non_null(strstr(log_seen.last, path));
    assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
    unlink(path);
    rmdir(dir);
    assert_int_equal(kprof_config_save(&config, dir), KPROF_OUTPUT);
}

/* The path comes from the environment, and what it names may be somebody else's by now. */
TEST(only_a_private_folder_is_used)
{
    char dir[] = "/tmp/kprof-test-XXXXXX", link[64], path[64];
    kprof_config loaded, config = sample();
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/config", dir);
    snprintf(link, sizeof link, "%s-link", dir);
    assert_int_equal(kprof_config_save(&config, dir), KPROF_OK);
    assert_int_equal(chmod(dir, 0750), 0);
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
    assert_non_null(strstr(log_seen.last, "other users have access"));
    assert_int_equal(kprof_config_save(&config, dir), KPROF_OUTPUT);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(symlink(dir, link), 0);
    assert_int_equal(kprof_config_load(link, &loaded), KPROF_INTERNAL);
    unlink(link);
    assert_int_equal(chdir("/tmp"), 0);
    assert_int_equal(kprof_config_load(dir + strlen("/tmp/"), &loaded), KPROF_INTERNAL);
    assert_non_null(strstr(log_seen.last, "not absolute"));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
        assert_non_null(strstr(log_seen.last, "another user"));
        assert_int_equal(chown(path, 0, 0) | chown(dir, 65534, 65534), 0);
        assert_int_equal(kprof_config_load(dir, &loaded), KPROF_INTERNAL);
        assert_non_null(strstr(log_seen.last, "another user"));
        assert_int_equal(chown(dir, 0, 0), 0);
    }
    assert_int_equal(kprof_config_load(dir, &loaded), KPROF_OK);
    kprof_config_free(&loaded);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

TEST(too_many_passes_are_refused)
{
    uint8_t image[] = {1};
    kprof_chip_metrics chip = {.chip = "GH100", .pass_count = 100000, .images = {{image, sizeof image}}};
    kprof_config config = {.chips = &chip, .chip_count = 1};
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    assert_int_equal(decode_copy(bytes.data, bytes.length), KPROF_INTERNAL);
}

TEST(passes_without_an_image_are_refused)
{
    kprof_chip_metrics chip = {.chip = "GH100", .pass_count = 1};
    kprof_config config = {.chips = &chip, .chip_count = 1};
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_int_equal(kprof_config_encode(&config, &bytes), KPROF_OK);
    assert_int_equal(decode_copy(bytes.data, bytes.length), KPROF_INTERNAL);
}

TEST(an_image_is_chosen_by_its_bits)
{
    enum { BOTH = KPROF_IMAGE_WITNESSED | KPROF_IMAGE_PROVED };
    uint8_t byte = 0;
    kprof_chip_metrics all = {.images = {{&byte, 1}, {&byte, 1}, {&byte, 1}, {&byte, 1}, {&byte, 1}}};
    kprof_chip_metrics plain = {.images = {{&byte, 1}}};
    kprof_chip_metrics no_proof = {.images = {{&byte, 1}, {&byte, 1}}};
    kprof_chip_metrics no_witnesses = {.images = {{&byte, 1}, {NULL, 0}, {&byte, 1}}};
    for (unsigned index = 0; index < KPROF_IMAGES; index++)
        assert_ptr_equal(kprof_chip_image_choose(&all, index), &all.images[index]);
    assert_ptr_equal(kprof_chip_image_choose(&plain, 0), &plain.images[0]);
    assert_ptr_equal(kprof_chip_image_choose(&plain, KPROF_IMAGE_WITNESSED), &plain.images[0]);
    assert_null(kprof_chip_image_choose(&plain, KPROF_IMAGE_PROVED));
    assert_null(kprof_chip_image_choose(&plain, BOTH));
    assert_null(kprof_chip_image_choose(&no_proof, KPROF_IMAGE_PROOF));
    assert_ptr_equal(kprof_chip_image_choose(&no_proof, KPROF_IMAGE_WITNESSED), &no_proof.images[1]);
    assert_null(kprof_chip_image_choose(&no_proof, BOTH));
    assert_ptr_equal(kprof_chip_image_choose(&no_witnesses, BOTH), &no_witnesses.images[KPROF_IMAGE_PROVED]);
}

AT_START(log_capture_start, &log_seen)
