/* Reads call stacks for those who show them. The JSON of frames comes from anywhere: what does not fit is left out. */
#include "report/model/stacks.h"

#include "report/store/stack_ingest.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    kprof_report *report;
    kprof_told_stacks *into;
} loader;

static const char *string_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 9e15 ? item->valuedouble : 0;
}

/* "step (train.py:57)", of native code also "main (app)" or "app+0x1234", where its line or function is not known */
static void describe_frame(const cJSON *frame, kprof_strbuf *out)
{
    const char *function = string_of(frame, "function"), *module = string_of(frame, "module");
    const char *file = string_of(frame, "file");
    if (module && !function)
        kprof_strbuf_printf(out, "%s+0x%llx", *module ? kprof_path_last_part(module) : "generated code",
                            (unsigned long long)number_of(frame, "offset"));
    else if (module && !file)
        kprof_strbuf_printf(out, "%s (%s)", function, kprof_path_last_part(module));
    else
        kprof_strbuf_printf(out, "%s (%s:%.0f)", function ? function : "?", file ? kprof_path_last_part(file) : "?",
                            number_of(frame, "line"));
}

/* Add a copy of a frame to the list. */
static void add_frame(const loader *load, const kprof_told_frame *frame, const char *key)
{
    kprof_told_stacks *into = load->into;
    kprof_told_frame *added = KPROF_ADD(into->frames, into->frame_count);
    *added = (kprof_told_frame){kprof_strdup(frame->text), kprof_strdup(frame->file), frame->is_native,
                                kprof_stack_is_installed(frame->file, frame->is_native)};
    kprof_names_keep(&into->places, key, into->frame_count - 1);
}

/* The place of a frame in the list, which it is added to if it is new. */
static uint32_t find_frame(const loader *load, const cJSON *json)
{
    kprof_told_stacks *into = load->into;
    kprof_strbuf text = KPROF_STRBUF_INIT, key = KPROF_STRBUF_INIT;
    const char *module = string_of(json, "module"), *file = string_of(json, module ? "module" : "file");
    const char *path = file ? file : "";
    describe_frame(json, &text);
    kprof_strbuf_printf(&key, "%d %s\n%s", module != NULL, text.length ? text.data : "", path);
    size_t at = kprof_names_find(&into->places, key.data);
    if (at == KPROF_NAMES_NONE) {
        at = into->frame_count;
        add_frame(load, &(kprof_told_frame){text.data, (char *)path, module != NULL, false}, key.data);
    }
    KPROF_FREE_TEXTS(&text, &key);
    return (uint32_t)at;
}

static void read_frames(const loader *load, const cJSON *frames, kprof_told_stack *out)
{
    const int all = cJSON_GetArraySize(frames);
    const size_t most = all < KPROF_TOLD_FRAMES_MAX ? (size_t)all : KPROF_TOLD_FRAMES_MAX;
    out->is_cut = out->is_cut || (size_t)all > most;
    out->frames = kprof_calloc(most + 1, sizeof *out->frames);
    const cJSON *frame = cJSON_IsArray(frames) ? frames->child : NULL;
    for (; frame && out->count < most; frame = frame->next)
        out->frames[out->count++] = find_frame(load, frame);
}

void kprof_told_stacks_load(kprof_report *report, kprof_told_stacks *out)
{
    const loader load = {report, out};
    *out = (kprof_told_stacks){0};
    if (report->version < 8) /* it has no table stack */
        return;
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, "SELECT frames, cut FROM stack ORDER BY id");
    while (kprof_cursor_next(&rows)) {
        kprof_told_stack *added = KPROF_ADD(out->stacks, out->stack_count);
        *added = (kprof_told_stack){.is_cut = sqlite3_column_int(rows.row, 1) != 0};
        KPROF_AUTO_FREE char *json = kprof_store_text(report, rows.row, 0);
        cJSON *frames = cJSON_Parse(json);
        read_frames(&load, frames, added);
        cJSON_Delete(frames);
    }
}

void kprof_told_stacks_free(kprof_told_stacks *stacks)
{
    for (size_t i = 0; i < stacks->frame_count; i++)
        KPROF_FREE(stacks->frames[i].text, stacks->frames[i].file);
    for (size_t i = 0; i < stacks->stack_count; i++)
        free(stacks->stacks[i].frames);
    KPROF_FREE(stacks->frames, stacks->stacks);
    kprof_names_free(&stacks->places);
}

size_t kprof_told_stack_length(const kprof_told_stacks *stacks, const kprof_told_stack *stack)
{
    size_t length = 0;
    while (length < stack->count &&
           stacks->frames[stack->frames[length]].is_native == stacks->frames[stack->frames[0]].is_native)
        length++;
    return length;
}
