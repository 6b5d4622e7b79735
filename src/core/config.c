/* The configuration on its way to the injection library. Encoding and decoding stand side by side; a checksum at the
 * end refuses whatever was cut or changed. */
#include "core/config.h"
#include "core/bytes.h"
#include "core/folder.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAGIC     "KPROFCFG"
#define CONFIG_VERSION   16
#define CONFIG_MAX_BYTES (64u << 20)
#define CONFIG_MAX_CHIPS 256
/* All metrics of a chip at once take some hundred passes. */
#define CONFIG_MAX_PASSES 4096
#define DRAFT_FILE        KPROF_CONFIG_FILE ".new"

static void encode_filter(const kprof_filter_spec *filter, kprof_strbuf *out)
{
    kprof_put_u32(out, filter->kernel != NULL);
    kprof_put_string(out, filter->kernel);
    kprof_put_u32(out, filter->name_base);
    kprof_put_u64(out, filter->launch_skip);
    kprof_put_u64(out, filter->launch_count);
    kprof_put_u64(out, filter->launch_skip_before_match);
    kprof_put_u64(out, filter->invocation);
    kprof_put_u32(out, filter->per_device);
    kprof_put_u32(out, filter->profiler_calls);
    kprof_put_u64(out, filter->device_mask);
    kprof_put_strings(out, &filter->nvtx_include);
    kprof_put_strings(out, &filter->nvtx_exclude);
}

static void decode_filter(kprof_bytes *in, kprof_filter_spec *filter)
{
    uint32_t has_kernel = kprof_get_u32(in);
    const char *kernel = kprof_get_string(in);
    uint32_t name_base = kprof_get_u32(in);
    filter->launch_skip = kprof_get_u64(in);
    filter->launch_count = kprof_get_u64(in);
    filter->launch_skip_before_match = kprof_get_u64(in);
    filter->invocation = kprof_get_u64(in);
    uint32_t per_device = kprof_get_u32(in);
    uint32_t profiler_calls = kprof_get_u32(in);
    filter->device_mask = kprof_get_u64(in);
    kprof_get_strings(in, &filter->nvtx_include);
    kprof_get_strings(in, &filter->nvtx_exclude);
    if (name_base > KPROF_NAME_MANGLED || has_kernel > 1 || per_device > 1 ||
        profiler_calls > KPROF_PROFILER_CALLS_IGNORED || (kernel && kernel[0] && !has_kernel))
        in->failed = true;
    filter->name_base = in->failed ? KPROF_NAME_FUNCTION : (kprof_name_base)name_base;
    filter->per_device = !in->failed && per_device;
    filter->profiler_calls = in->failed ? KPROF_FROM_THE_START : (kprof_profiler_calls)profiler_calls;
    if (!in->failed && has_kernel && !(filter->kernel = strdup(kernel)))
        in->failed = true;
}

static void encode_passes(const uint32_t *passes, size_t count, kprof_strbuf *out)
{
    for (size_t i = 0; i < count; i++)
        kprof_put_u32(out, passes[i]);
}

static void decode_passes(kprof_bytes *in, size_t count, uint32_t **passes)
{
    if (in->failed || count == 0)
        return;
    *passes = calloc(count, sizeof **passes);
    in->failed = !*passes;
    for (size_t i = 0; i < count && !in->failed; i++)
        (*passes)[i] = kprof_get_u32(in);
}

static void decode_image(kprof_bytes *in, kprof_chip_image *image)
{
    uint64_t size = kprof_get_u64(in);
    const void *from = kprof_get_block(in, size);
    if (in->failed || size == 0)
        return;
    image->data = malloc(size);
    in->failed = !image->data;
    if (in->failed)
        return;
    memcpy(image->data, from, size);
    image->size = size;
}

static void encode_chip(const kprof_chip_metrics *chip, kprof_strbuf *out)
{
    kprof_put_string(out, chip->chip);
    kprof_put_u32(out, chip->pass_count);
    kprof_put_u32(out, chip->patches_code);
    kprof_put_strings(out, &chip->metrics);
    encode_passes(chip->last_passes, chip->metrics.count, out);
    encode_passes(chip->patched, chip->metrics.count, out);
    kprof_put_strings(out, &chip->witnesses);
    for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++)
        kprof_put_u64(out, chip->witness_passes[i]);
    kprof_put_strings(out, &chip->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        kprof_put_u64(out, chip->images[i].size);
        kprof_strbuf_append(out, chip->images[i].data, chip->images[i].size);
    }
}

static void decode_chip(kprof_bytes *in, kprof_chip_metrics *chip)
{
    const char *name = kprof_get_string(in);
    chip->pass_count = kprof_get_u32(in);
    chip->patches_code = kprof_get_u32(in) != 0;
    kprof_get_strings(in, &chip->metrics);
    decode_passes(in, chip->metrics.count, &chip->last_passes);
    decode_passes(in, chip->metrics.count, &chip->patched);
    kprof_get_strings(in, &chip->witnesses);
    in->failed = in->failed || chip->witnesses.count > KPROF_MAX_WITNESSES;
    for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++)
        chip->witness_passes[i] = kprof_get_u64(in);
    kprof_get_strings(in, &chip->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        decode_image(in, &chip->images[i]);
    in->failed =
        in->failed || chip->pass_count > CONFIG_MAX_PASSES || (chip->pass_count > 0 && chip->images[0].size == 0);
    if (in->failed)
        return;
    chip->chip = strdup(name);
    in->failed = !chip->chip;
}

static void encode_switches(const kprof_config *config, kprof_strbuf *out)
{
    kprof_put_u32(out, config->cache_control);
    kprof_put_u32(out, config->witness_control);
    kprof_put_u32(out, config->follow_children);
    kprof_put_u32(out, config->verbose);
    kprof_put_u32(out, config->nvtx);
    kprof_put_u32(out, config->nvtx_of_process);
    kprof_put_u32(out, config->replay_choice);
    kprof_put_u32(out, config->graph_profiling);
    kprof_put_u32(out, config->multiplex_samples);
    kprof_put_u32(out, config->replay_batch);
    kprof_put_u64(out, (uint64_t)config->root_pid);
    kprof_put_string(out, config->counter_data_dir ? config->counter_data_dir : "");
}

static void decode_switches(kprof_bytes *in, kprof_config *config)
{
    uint32_t cache_control = kprof_get_u32(in);
    uint32_t witness_control = kprof_get_u32(in);
    uint32_t follow_children = kprof_get_u32(in);
    uint32_t verbose = kprof_get_u32(in);
    uint32_t nvtx = kprof_get_u32(in);
    uint32_t nvtx_of_process = kprof_get_u32(in);
    uint32_t replay_choice = kprof_get_u32(in);
    uint32_t graph_profiling = kprof_get_u32(in);
    config->multiplex_samples = kprof_get_u32(in);
    config->replay_batch = kprof_get_u32(in);
    config->root_pid = (int64_t)kprof_get_u64(in);
    const char *counter_data_dir = kprof_get_string(in);
    if (cache_control > KPROF_CACHE_FLUSH_L2 || witness_control > KPROF_WITNESSES_AUTO || follow_children > 1 ||
        verbose > 1 || nvtx > 1 || nvtx_of_process > 1 || replay_choice > KPROF_MULTIPLEX_ALL ||
        graph_profiling > KPROF_GRAPH_WHOLE) {
        in->failed = true;
        return;
    }
    config->cache_control = (kprof_cache_control)cache_control;
    config->witness_control = (kprof_witness_control)witness_control;
    config->replay_choice = (kprof_replay_choice)replay_choice;
    config->graph_profiling = (kprof_graph_profiling)graph_profiling;
    config->follow_children = follow_children;
    config->verbose = verbose;
    config->nvtx = nvtx;
    config->nvtx_of_process = nvtx_of_process;
    if (counter_data_dir && counter_data_dir[0] && !(config->counter_data_dir = strdup(counter_data_dir)))
        in->failed = true;
}

kprof_status kprof_config_encode(const kprof_config *config, kprof_strbuf *out)
{
    size_t begin = out->length;
    kprof_strbuf_append(out, CONFIG_MAGIC, strlen(CONFIG_MAGIC));
    kprof_put_u32(out, CONFIG_VERSION);
    encode_filter(&config->filter, out);
    encode_switches(config, out);
    kprof_put_u32(out, (uint32_t)config->chip_count);
    for (size_t i = 0; i < config->chip_count; i++)
        encode_chip(&config->chips[i], out);
    if (!out->failed)
        kprof_put_u32(out, kprof_crc32c(0, out->data + begin, out->length - begin));
    if (out->failed)
        return kprof_fail(KPROF_NO_MEMORY, "encoding the configuration: out of memory");
    return KPROF_OK;
}

static void decode_body(kprof_bytes *in, kprof_config *out)
{
    decode_filter(in, &out->filter);
    decode_switches(in, out);
    uint32_t chip_count = kprof_get_u32(in);
    if (chip_count > CONFIG_MAX_CHIPS)
        in->failed = true;
    if (in->failed || chip_count == 0)
        return;
    out->chips = calloc(chip_count, sizeof *out->chips);
    in->failed = !out->chips;
    for (; out->chips && out->chip_count < chip_count && !in->failed; out->chip_count++)
        decode_chip(in, &out->chips[out->chip_count]);
}

kprof_status kprof_config_decode(const void *data, size_t size, kprof_config *out)
{
    *out = (kprof_config){0};
    size_t magic = strlen(CONFIG_MAGIC);
    if (size < magic + 8 || memcmp(data, CONFIG_MAGIC, magic) != 0)
        return kprof_fail(KPROF_INTERNAL, "configuration: not a kprof configuration");
    kprof_bytes checksum = {(const uint8_t *)data + size - 4, 4, false};
    if (kprof_crc32c(0, data, size - 4) != kprof_get_u32(&checksum))
        return kprof_fail(KPROF_INTERNAL, "configuration: cut or damaged (the checksum differs)");
    kprof_bytes in = {(const uint8_t *)data + magic, size - 4 - magic, false};
    uint32_t version = kprof_get_u32(&in);
    if (version != CONFIG_VERSION)
        return kprof_fail(KPROF_INTERNAL,
                          "configuration: version %u, but this library reads %d; use the kprof it came with", version,
                          CONFIG_VERSION);
    decode_body(&in, out);
    if (!in.failed && in.left == 0)
        return KPROF_OK;
    kprof_config_free(out);
    return kprof_fail(KPROF_INTERNAL, "configuration: a field is not valid, or memory ran out");
}

/* Write everything. On failure errno tells why. */
static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

/* Write under a temporary name and rename: a process that starts meanwhile reads the old file or the new one. Return
 * NULL, or the reason. */
static const char *replace_file(int folder, const kprof_strbuf *content)
{
    const char *reason = NULL;
    int fd = kprof_folder_open_file(folder, DRAFT_FILE, O_WRONLY | O_CREAT | O_TRUNC, &reason);
    if (fd < 0)
        return reason;
    bool written = write_all(fd, content->data, content->length);
    if (close(fd) == 0 && written && renameat(folder, DRAFT_FILE, folder, KPROF_CONFIG_FILE) == 0)
        return NULL;
    reason = strerror(errno);
    unlinkat(folder, DRAFT_FILE, 0);
    return reason;
}

kprof_status kprof_config_save(const kprof_config *config, const char *dir)
{
    kprof_strbuf content = KPROF_STRBUF_INIT;
    kprof_status status = kprof_config_encode(config, &content);
    if (status == KPROF_OK) {
        const char *reason;
        int folder = kprof_folder_open(dir, &reason);
        if (folder >= 0) {
            reason = replace_file(folder, &content);
            close(folder);
        }
        if (reason)
            status = kprof_fail(KPROF_OUTPUT, "writing %s/" KPROF_CONFIG_FILE ": %s", dir, reason);
    }
    kprof_strbuf_free(&content);
    return status;
}

/* NULL, or the reason. */
static const char *read_file(int folder, kprof_strbuf *out)
{
    const char *reason = NULL;
    int fd = kprof_folder_open_file(folder, KPROF_CONFIG_FILE, O_RDONLY, &reason);
    if (fd < 0)
        return reason;
    char block[16384];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0 && out->length <= CONFIG_MAX_BYTES)
        kprof_strbuf_append(out, block, (size_t)got);
    if (got < 0)
        reason = strerror(errno);
    else if (out->failed || out->length > CONFIG_MAX_BYTES)
        reason = "it is too large, or memory ran out";
    close(fd);
    return reason;
}

kprof_status kprof_config_load(const char *dir, kprof_config *out)
{
    *out = (kprof_config){0};
    kprof_strbuf content = KPROF_STRBUF_INIT;
    const char *reason;
    int folder = kprof_folder_open(dir, &reason);
    if (folder < 0)
        return kprof_fail(KPROF_INTERNAL, "the session directory %s is not used: %s", dir, reason);
    reason = read_file(folder, &content);
    close(folder);
    kprof_status status = reason ? kprof_fail(KPROF_INTERNAL, "reading %s/" KPROF_CONFIG_FILE ": %s", dir, reason)
                                 : kprof_config_decode(content.data, content.length, out);
    kprof_strbuf_free(&content);
    return status;
}

void kprof_config_free(kprof_config *config)
{
    free(config->filter.kernel);
    kprof_strlist_free(&config->filter.nvtx_include);
    kprof_strlist_free(&config->filter.nvtx_exclude);
    for (size_t i = 0; i < config->chip_count; i++) {
        free(config->chips[i].chip);
        kprof_strlist_free(&config->chips[i].metrics);
        free(config->chips[i].last_passes);
        free(config->chips[i].patched);
        kprof_strlist_free(&config->chips[i].witnesses);
        kprof_strlist_free(&config->chips[i].proof);
        for (size_t k = 0; k < KPROF_IMAGES; k++)
            free(config->chips[i].images[k].data);
    }
    free(config->chips);
    free(config->counter_data_dir);
    *config = (kprof_config){0};
}

bool kprof_witness_compares(const kprof_chip_metrics *metrics, size_t witness)
{
    uint64_t passes = metrics->witness_passes[witness];
    return (passes & (passes - 1)) != 0;
}

const kprof_chip_image *kprof_chip_image_choose(const kprof_chip_metrics *metrics, unsigned index)
{
    if (metrics->images[index].size == 0)
        index &= ~(unsigned)KPROF_IMAGE_WITNESSED;
    return index > 0 && metrics->images[index].size == 0 ? NULL : &metrics->images[index];
}
