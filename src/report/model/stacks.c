/* Reads call stacks for those who show them. The JSON of frames comes from anywhere: what does not fit is left out. */
#include "report/model/stacks.h"

#include "report/store/own_code.h"

#include <cjson/cJSON.h>
#include <string.h>

typedef struct loader {
    kprof_pool *pool;
    kprof_told_stacks *into;
    kprof_names places;  /* of frames */
    kprof_names kernels; /* by their names with parameters */
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

/* The place of a frame in the list, which it is added to if it is new. */
static uint32_t find_frame(loader *load, const cJSON *json, const kprof_frame_place *place, bool is_own)
{
    kprof_told_stacks *into = load->into;
    kprof_strbuf text = KPROF_STRBUF_INIT, key = KPROF_STRBUF_INIT;
    describe_frame(json, &text);
    kprof_strbuf_printf(&key, "%d %d %s\n%s", place->is_native, is_own, text.length ? text.data : "", place->file);
    size_t at;
    if (kprof_names_number(&load->places, key.data, &at))
        *KPROF_POOL_ADD(load->pool, into->frames, into->frame_count) =
            (kprof_told_frame){kprof_pool_strdup(load->pool, text.data), kprof_pool_strdup(load->pool, place->file),
                               place->is_native, !is_own};
    KPROF_FREE_TEXTS(&text, &key);
    return (uint32_t)at;
}

static void add_frames(loader *load, const cJSON *frames, size_t count, kprof_told_stack *out)
{
    size_t at = 0;
    KPROF_AUTO(kprof_strbuf) package = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE kprof_frame_place *places = kprof_calloc(count + 1, sizeof *places);
    KPROF_AUTO_FREE bool *is_own = kprof_calloc(count + 1, sizeof *is_own);
    const cJSON *first = cJSON_IsArray(frames) ? frames->child : NULL;
    for (const cJSON *frame = first; frame && at < count; frame = frame->next) {
        const char *function = string_of(frame, "function"), *module = string_of(frame, "module");
        const char *file = module ? module : string_of(frame, "file");
        const bool is_kernel = module && function && kprof_names_find(&load->kernels, function) != KPROF_NAMES_NONE;
        places[at++] = (kprof_frame_place){function ? function : "", file ? file : "", module != NULL, is_kernel};
    }
    (void)kprof_own_code_find(places, at, is_own, &package);
    for (const cJSON *frame = first; frame && out->count < at; frame = frame->next, out->count++)
        out->frames[out->count] = find_frame(load, frame, &places[out->count], is_own[out->count]);
}

void kprof_told_stacks_load(kprof_report *report, kprof_pool *pool, kprof_told_stacks *out)
{
    loader load = {.pool = pool, .into = out};
    *out = (kprof_told_stacks){0};
    if (report->version < 8) /* it has no table stack */
        return;
    KPROF_EACH_ROW(kernels, report, "SELECT demangled FROM kernel")
        kprof_names_keep(&load.kernels, kprof_store_column(kernels.row, 0), 0);
    KPROF_EACH_ROW(rows, report, "SELECT frames, cut FROM stack ORDER BY id") {
        kprof_told_stack *added = KPROF_POOL_ADD(pool, out->stacks, out->stack_count);
        *added = (kprof_told_stack){.is_cut = sqlite3_column_int(rows.row, 1) != 0};
        KPROF_AUTO_FREE char *json = kprof_store_text(report, rows.row, 0);
        cJSON *frames = cJSON_Parse(json);
        const int all = cJSON_GetArraySize(frames);
        const size_t most = all < KPROF_TOLD_FRAMES_MAX ? (size_t)all : KPROF_TOLD_FRAMES_MAX;
        added->is_cut = added->is_cut || (size_t)all > most;
        added->frames = kprof_pool_calloc(load.pool, most + 1, sizeof *added->frames);
        add_frames(&load, frames, most, added);
        cJSON_Delete(frames);
    }
    kprof_names_free(&load.places);
    kprof_names_free(&load.kernels);
}

size_t kprof_told_stack_length(const kprof_told_stacks *stacks, const kprof_told_stack *stack)
{
    size_t length = 0;
    while (length < stack->count &&
           stacks->frames[stack->frames[length]].is_native == stacks->frames[stack->frames[0]].is_native)
        length++;
    return length;
}
