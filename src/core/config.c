/* The configuration on its way to the injection library. One function encodes and decodes; a checksum at the
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

#define CONFIG_MAGIC     "KPROFCFG"
#define CONFIG_VERSION   22 /* of what code_chip writes; the rows tell of themselves */
#define CONFIG_MAX_BYTES (64u << 20)
#define CONFIG_MAX_ITEMS 1024 /* chips, and timelines of one */
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

static void code_option(const kprof_codec *c, const kprof_option_row *row, kprof_config *config)
{
    const place at = {(char *)config + row->field};
    const kprof_option_choice *choice = row->choices;
    uint32_t value = 0;
    switch (row->type) {
    case KPROF_OPTION_FLAG:
        value = *at.flag;
        kprof_code_u32(c, &value);
        kprof_code_check(c, value <= 1);
        if (c->in)
            *at.flag = value == 1;
        break;
    case KPROF_OPTION_CHOICE:
        value = (uint32_t)*at.choice;
        kprof_code_u32(c, &value);
        while (choice->word && (uint32_t)choice->value != value)
            choice++;
        kprof_code_check(c, choice->word);
        if (c->in)
            *at.choice = c->in->failed ? 0 : (int)value;
        break;
    case KPROF_OPTION_COUNT:
        kprof_code_u32(c, at.count);
        kprof_code_check(c, *at.count <= (uint32_t)row->value);
        break;
    case KPROF_OPTION_STRING:
        value = *at.text != NULL;
        kprof_code_u32(c, &value);
        kprof_code_text(c, at.text);
        kprof_code_check(c, value == 1 || (value == 0 && *at.text && !**at.text));
        if (kprof_codec_reads(c) && value == 0) {
            free(*at.text);
            *at.text = NULL;
        }
        break;
    case KPROF_OPTION_LIST:
    case KPROF_OPTION_PATHS:
        kprof_code_strings(c, at.list);
        break;
    default: /* a number, a size or a mask */
        kprof_code_u64(c, at.number);
    }
}

static void code_passes(const kprof_codec *c, size_t count, uint32_t **passes)
{
    if (kprof_codec_reads(c) && count > 0) {
        *passes = calloc(count, sizeof **passes);
        kprof_code_check(c, *passes);
    }
    for (size_t i = 0; i < count && *passes; i++)
        kprof_code_u32(c, &(*passes)[i]);
}

static void code_image(const kprof_codec *c, kprof_chip_image *image)
{
    image->data = kprof_code_array(c, image->data, &image->size, 1);
}

/* Write the number of items, and return them; or read a number, and return that many items of zeros. NULL if there are
 * none. */
static void *code_items(const kprof_codec *c, void *items, size_t *count, size_t size)
{
    uint32_t number = (uint32_t)*count;
    kprof_code_u32(c, &number);
    kprof_code_check(c, number <= CONFIG_MAX_ITEMS);
    if (kprof_codec_reads(c) && number > 0) {
        items = calloc(number, size);
        kprof_code_check(c, items);
        *count = items ? number : 0;
    }
    return items;
}

static void code_chip(const kprof_codec *c, kprof_chip_metrics *chip)
{
    uint32_t patches = chip->patches_code;
    kprof_code_text(c, &chip->chip);
    kprof_code_u32(c, &chip->pass_count);
    kprof_code_u32(c, &patches);
    kprof_code_strings(c, &chip->metrics);
    code_passes(c, chip->metrics.count, &chip->last_passes);
    code_passes(c, chip->metrics.count, &chip->patched);
    kprof_code_strings(c, &chip->witnesses);
    kprof_code_check(c, chip->witnesses.count <= KPROF_MAX_WITNESSES);
    for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++)
        kprof_code_u64(c, &chip->witness_passes[i]);
    kprof_code_strings(c, &chip->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        code_image(c, &chip->images[i]);
    chip->timelines = code_items(c, chip->timelines, &chip->timeline_count, sizeof *chip->timelines);
    for (size_t i = 0; i < chip->timeline_count; i++) {
        kprof_code_strings(c, &chip->timelines[i].metrics);
        code_image(c, &chip->timelines[i].image);
        kprof_code_check(c, chip->timelines[i].metrics.count > 0 && chip->timelines[i].image.size > 0);
    }
    kprof_code_check(c, chip->pass_count <= CONFIG_MAX_PASSES && (chip->pass_count == 0 || chip->images[0].size > 0));
    if (c->in)
        chip->patches_code = patches != 0;
}

static void code_config(const kprof_codec *c, kprof_config *config)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        code_option(c, &rows[i], config);
    config->chips = code_items(c, config->chips, &config->chip_count, sizeof *config->chips);
    for (size_t i = 0; i < config->chip_count; i++)
        code_chip(c, &config->chips[i]);
}

kprof_status kprof_config_encode(const kprof_config *config, kprof_strbuf *out)
{
    size_t begin = out->length;
    kprof_config own = *config; /* which stays as it is, like all that it points to */
    kprof_strbuf_append(out, CONFIG_MAGIC, strlen(CONFIG_MAGIC));
    kprof_put_u32(out, layout_version());
    code_config(&(kprof_codec){out, NULL}, &own);
    if (!out->failed)
        kprof_put_u32(out, kprof_crc32c(0, out->data + begin, out->length - begin));
    return out->failed ? kprof_fail(KPROF_NO_MEMORY, "encoding the configuration: out of memory") : KPROF_OK;
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
    code_config(&(kprof_codec){NULL, &in}, out);
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
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(dir, &reason);
    if (folder >= 0)
        reason = replace_file(folder, name, &content);
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
    KPROF_AUTO_CLOSE int fd = kprof_folder_open_file(folder, name, O_RDONLY, &reason);
    if (fd >= 0 && !kprof_read_whole(fd, CONFIG_MAX_BYTES, out))
        reason = errno == EFBIG || errno == ENOMEM ? "it is too large, or memory ran out" : strerror(errno);
    return reason;
}

kprof_status kprof_config_load_as(const char *dir, const char *name, kprof_config *out)
{
    *out = (kprof_config){0};
    KPROF_AUTO(kprof_strbuf) content = KPROF_STRBUF_INIT;
    const char *reason;
    KPROF_AUTO_CLOSE int folder = kprof_folder_open(dir, &reason);
    if (folder < 0)
        return kprof_fail(KPROF_INTERNAL, "the session directory %s is not used: %s%s", dir, reason,
                          access(dir, F_OK) == 0 ? ""
                                                 : "; a container may have another /tmp: set TMPDIR to a folder that "
                                                   "kprof and the application share");
    reason = read_file(folder, name, &content);
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
