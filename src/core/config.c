/* The configuration on its way to the injection library. Encoding and decoding stand side by side; a checksum at the
 * end refuses whatever was cut or changed. */
#include "core/config.h"
#include "core/bytes.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAGIC         "KPROFCFG"
#define CONFIG_VERSION       22 /* of what encode_chip writes; the rows tell of themselves */
#define CONFIG_MAX_BYTES     (64u << 20)
#define CONFIG_MAX_CHIPS     256
#define CONFIG_MAX_TIMELINES 1024
/* All metrics of a chip at once take some hundred passes. */
#define CONFIG_MAX_PASSES 4096
#define DRAFT_FILE        KPROF_CONFIG_FILE ".new"

/* Everything written beside the chips: options of the recorder, and what the command line derives from others. */
static const kprof_option_row rows[] = {
#define ROW(option_type, path, ...)                                                                                    \
    {.type = KPROF_OPTION_##option_type, .field = offsetof(kprof_config, path), __VA_ARGS__},
#define OPTION(place, option_type, option_field, option_name, commands, help, ...)                                     \
    KPROF_FOR_FILTER_##place(ROW(option_type, filter.option_field, __VA_ARGS__))                                       \
        KPROF_FOR_RECORDER_##place(ROW(option_type, option_field, __VA_ARGS__))
#include "core/recorder_options.h"
#undef OPTION
    ROW(STRING, filter.context) ROW(STRING, filter.stream)                   /**/
    ROW(STRING, filter.invocation) ROW(LIST, filter.mangled)                 /**/
    ROW(COUNT, filter.profiler_calls, .value = KPROF_PROFILER_CALLS_IGNORED) /**/
    ROW(FLAG, filter.measures_ranges)                                        /**/
    ROW(LIST, instruction_metrics) ROW(FLAG, samples)                        /**/
    ROW(FLAG, only_records) ROW(COUNT, census_top, .value = INT32_MAX)       /**/
    ROW(FLAG, verbose) ROW(FLAG, tells_all)                                  /**/
    ROW(STRING, counter_data_dir) ROW(NUMBER, root_pid)                      /**/
};
#define ROW_COUNT COUNT_OF(rows)

/* A number that another kprof has where it has other rows. */
static uint32_t layout_version(void)
{
    uint32_t sum = CONFIG_VERSION;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const uint64_t parts[] = {rows[i].type, rows[i].field, (uint64_t)rows[i].value};
        sum = kprof_crc32c(sum, parts, sizeof parts);
        for (const kprof_option_choice *choice = rows[i].choices; choice && choice->word; choice++)
            sum = kprof_crc32c(sum + (uint32_t)choice->value, choice->word, strlen(choice->word));
    }
    return sum;
}

/* The place of a row's value, by its type. */
typedef union place {
    void *field;
    bool *flag;
    int *choice;
    uint32_t *count;
    uint64_t *number;
    char **text;
    kprof_strlist *list;
} place;

static void encode_option(const kprof_option_row *row, const kprof_config *config, kprof_strbuf *out)
{
    const place at = {(char *)config + row->field};
    switch (row->type) {
    case KPROF_OPTION_FLAG:
        kprof_put_u32(out, *at.flag);
        break;
    case KPROF_OPTION_CHOICE:
        kprof_put_u32(out, (uint32_t)*at.choice);
        break;
    case KPROF_OPTION_COUNT:
        kprof_put_u32(out, *at.count);
        break;
    case KPROF_OPTION_STRING:
        kprof_put_u32(out, *at.text != NULL);
        kprof_put_string(out, *at.text);
        break;
    case KPROF_OPTION_LIST:
    case KPROF_OPTION_PATHS:
        kprof_put_strings(out, at.list);
        break;
    default: /* a number, a size or a mask */
        kprof_put_u64(out, *at.number);
    }
}

static void decode_option(kprof_bytes *in, const kprof_option_row *row, kprof_config *config)
{
    const place at = {(char *)config + row->field};
    const kprof_option_choice *choice = row->choices;
    const char *text;
    uint32_t value;
    switch (row->type) {
    case KPROF_OPTION_FLAG:
        value = kprof_get_u32(in);
        in->failed = in->failed || value > 1;
        *at.flag = value == 1;
        break;
    case KPROF_OPTION_CHOICE:
        value = kprof_get_u32(in);
        while (choice->word && (uint32_t)choice->value != value)
            choice++;
        in->failed = in->failed || !choice->word;
        *at.choice = in->failed ? 0 : (int)value;
        break;
    case KPROF_OPTION_COUNT:
        *at.count = kprof_get_u32(in);
        in->failed = in->failed || *at.count > (uint32_t)row->value;
        break;
    case KPROF_OPTION_STRING:
        value = kprof_get_u32(in);
        text = kprof_get_string(in);
        in->failed = in->failed || value > 1 || (value == 0 && text[0]);
        if (!in->failed && value == 1)
            in->failed = !(*at.text = kprof_strdup(text));
        break;
    case KPROF_OPTION_LIST:
    case KPROF_OPTION_PATHS:
        kprof_get_strings(in, at.list);
        break;
    default:
        *at.number = kprof_get_u64(in);
    }
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

static void decode_timelines(kprof_bytes *in, kprof_chip_metrics *chip)
{
    const uint32_t count = kprof_get_u32(in);
    in->failed = in->failed || count > CONFIG_MAX_TIMELINES;
    if (in->failed || count == 0)
        return;
    chip->timelines = calloc(count, sizeof *chip->timelines);
    in->failed = !chip->timelines;
    for (; !in->failed && chip->timeline_count < count; chip->timeline_count++) {
        kprof_chip_timeline *timeline = &chip->timelines[chip->timeline_count];
        kprof_get_strings(in, &timeline->metrics);
        decode_image(in, &timeline->image);
        in->failed = in->failed || timeline->metrics.count == 0 || timeline->image.size == 0;
    }
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
    kprof_put_u32(out, (uint32_t)chip->timeline_count);
    for (size_t i = 0; i < chip->timeline_count; i++) {
        kprof_put_strings(out, &chip->timelines[i].metrics);
        kprof_put_u64(out, chip->timelines[i].image.size);
        kprof_strbuf_append(out, chip->timelines[i].image.data, chip->timelines[i].image.size);
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
    decode_timelines(in, chip);
    in->failed =
        in->failed || chip->pass_count > CONFIG_MAX_PASSES || (chip->pass_count > 0 && chip->images[0].size == 0);
    if (in->failed)
        return;
    chip->chip = kprof_strdup(name);
    in->failed = !chip->chip;
}

kprof_status kprof_config_encode(const kprof_config *config, kprof_strbuf *out)
{
    size_t begin = out->length;
    kprof_strbuf_append(out, CONFIG_MAGIC, strlen(CONFIG_MAGIC));
    kprof_put_u32(out, layout_version());
    for (size_t i = 0; i < ROW_COUNT; i++)
        encode_option(&rows[i], config, out);
    kprof_put_u32(out, (uint32_t)config->chip_count);
    for (size_t i = 0; i < config->chip_count; i++)
        encode_chip(&config->chips[i], out);
    if (!out->failed)
        kprof_put_u32(out, kprof_crc32c(0, out->data + begin, out->length - begin));
    return out->failed ? kprof_fail(KPROF_NO_MEMORY, "encoding the configuration: out of memory") : KPROF_OK;
}

static void decode_body(kprof_bytes *in, kprof_config *out)
{
    for (size_t i = 0; i < ROW_COUNT && !in->failed; i++)
        decode_option(in, &rows[i], out);
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
    if (kprof_get_u32(&in) != layout_version())
        return kprof_fail(KPROF_INTERNAL, "configuration: another version of kprof than that of this library wrote it; "
                                          "use the kprof that the library came with");
    decode_body(&in, out);
    if (!in.failed && in.left == 0)
        return KPROF_OK;
    kprof_config_free(out);
    return kprof_fail(KPROF_INTERNAL, "configuration: a field is not valid, or memory ran out");
}

/* Write under a temporary name and rename: a process that starts meanwhile reads the old file or the new one. Return
 * NULL, or the reason. */
static const char *replace_file(int folder, const char *name, const kprof_strbuf *content)
{
    const char *reason = NULL;
    int fd = kprof_folder_open_file(folder, DRAFT_FILE, O_WRONLY | O_CREAT | O_TRUNC, &reason);
    if (fd < 0)
        return reason;
    bool written = kprof_write_all(fd, content->data, content->length) == content->length;
    if (close(fd) == 0 && written && renameat(folder, DRAFT_FILE, folder, name) == 0)
        return NULL;
    reason = strerror(errno);
    unlinkat(folder, DRAFT_FILE, 0);
    return reason;
}

kprof_status kprof_config_save_as(const kprof_config *config, const char *dir, const char *name)
{
    KPROF_AUTO(kprof_strbuf) content = KPROF_STRBUF_INIT;
    kprof_status status = kprof_config_encode(config, &content);
    if (status != KPROF_OK)
        return status;
    const char *reason;
    int folder = kprof_folder_open(dir, &reason);
    if (folder >= 0) {
        reason = replace_file(folder, name, &content);
        close(folder);
    }
    return reason ? kprof_fail(KPROF_OUTPUT, "writing %s/%s: %s", dir, name, reason) : KPROF_OK;
}

kprof_status kprof_config_save(const kprof_config *config, const char *dir)
{
    return kprof_config_save_as(config, dir, KPROF_CONFIG_FILE);
}

/* NULL, or the reason. */
static const char *read_file(int folder, const char *name, kprof_strbuf *out)
{
    const char *reason = NULL;
    int fd = kprof_folder_open_file(folder, name, O_RDONLY, &reason);
    if (fd < 0)
        return reason;
    char block[4096];
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

kprof_status kprof_config_load_as(const char *dir, const char *name, kprof_config *out)
{
    *out = (kprof_config){0};
    KPROF_AUTO(kprof_strbuf) content = KPROF_STRBUF_INIT;
    const char *reason;
    int folder = kprof_folder_open(dir, &reason);
    if (folder < 0)
        return kprof_fail(KPROF_INTERNAL, "the session directory %s is not used: %s%s", dir, reason,
                          access(dir, F_OK) == 0 ? ""
                                                 : "; a container may have another /tmp: set TMPDIR to a folder that "
                                                   "kprof and the application share");
    reason = read_file(folder, name, &content);
    close(folder);
    return reason ? kprof_fail(KPROF_INTERNAL, "reading %s/%s: %s", dir, name, reason)
                  : kprof_config_decode(content.data, content.length, out);
}

kprof_status kprof_config_load(const char *dir, kprof_config *out)
{
    return kprof_config_load_as(dir, KPROF_CONFIG_FILE, out);
}

void kprof_config_free(kprof_config *config)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const place at = {(char *)config + rows[i].field};
        if (rows[i].type == KPROF_OPTION_STRING)
            free(*at.text);
        else if (rows[i].type == KPROF_OPTION_LIST || rows[i].type == KPROF_OPTION_PATHS)
            kprof_strlist_free(at.list);
    }
    for (size_t i = 0; i < config->chip_count; i++) {
        free(config->chips[i].chip);
        kprof_strlist_free(&config->chips[i].metrics);
        KPROF_FREE(config->chips[i].last_passes, config->chips[i].patched);
        KPROF_FREE_LISTS(&config->chips[i].witnesses, &config->chips[i].proof);
        for (size_t k = 0; k < KPROF_IMAGES; k++)
            free(config->chips[i].images[k].data);
        for (size_t k = 0; k < config->chips[i].timeline_count; k++) {
            kprof_strlist_free(&config->chips[i].timelines[k].metrics);
            free(config->chips[i].timelines[k].image.data);
        }
        free(config->chips[i].timelines);
    }
    free(config->chips);
    *config = (kprof_config){0};
}

bool kprof_witness_compares(const kprof_chip_metrics *metrics, size_t witness)
{
    uint64_t passes = metrics->witness_passes[witness];
    return (passes & (passes - 1)) != 0;
}

bool kprof_replay_is_of_ranges(int choice)
{
    return choice == KPROF_RANGES || choice == KPROF_RANGES_OF_RUNS;
}

bool kprof_replay_is_of_runs(int choice)
{
    return choice == KPROF_REPLAY_APPLICATION || choice == KPROF_RANGES_OF_RUNS;
}

const char *kprof_replay_name(int choice)
{
    return choice == KPROF_REPLAY_APPLICATION ? "application" : choice == KPROF_RANGES_OF_RUNS ? "app-range" : "range";
}

const kprof_chip_image *kprof_chip_image_choose(const kprof_chip_metrics *metrics, unsigned index)
{
    if (metrics->images[index].size == 0)
        index &= ~(unsigned)KPROF_IMAGE_WITNESSED;
    return index > 0 && metrics->images[index].size == 0 ? NULL : &metrics->images[index];
}
