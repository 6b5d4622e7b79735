/* A stack is stored as JSON, so that SQLite's own functions read it, with the line that people look for beside it: the
 * innermost one of their own code. */
#include "report/store/stack_ingest.h"

#include "code/native.h"
#include "core/filter.h"
#include "report/store/own_code.h"

#include <cjson/cJSON.h>
#include <string.h>

typedef struct kprof_known_frame {
    bool is_native;
    char *symbol; /* of native code, if it is known */
    char *function, *file;
    uint64_t place;
    char *source; /* of native code the file of its line; NULL: not known, and in Python's frames */
    uint32_t line;
} known_frame;

typedef struct kprof_known_module {
    char *path;
    kprof_native_module *code; /* NULL: it cannot be read */
} known_module;

/* The line of a stack, and the file that it is in. */
typedef struct origin {
    char *line, *module;
} origin;

#define MOST_MODULES 256 /* that are kept open */

static const char *const origins[] = {"launch", "graph", "capture", "forward"};

/* The preloaded library is in the stacks of threads that it has started. */
static bool is_of_kprof(const known_frame *frame)
{
    return frame->is_native && strncmp(kprof_path_last_part(frame->file), "libkprof", strlen("libkprof")) == 0;
}

/* NULL: no frames. */
static const known_frame *find_own(const kprof_stack_ingest *ingest, const kprof_stack_record *record, bool *out_is_own,
                                   kprof_strbuf *package)
{
    size_t count = 0;
    KPROF_AUTO_FREE const known_frame **frames = kprof_calloc(record->frame_count + 1, sizeof *frames);
    KPROF_AUTO_FREE kprof_frame_place *places = kprof_calloc(record->frame_count + 1, sizeof *places);
    KPROF_AUTO_FREE bool *is_own = kprof_calloc(record->frame_count + 1, sizeof *is_own);
    for (uint32_t i = 0; i < record->frame_count; i++) {
        const known_frame *frame = &ingest->frames[(size_t)record->frames[i] - 1];
        if (is_of_kprof(frame))
            continue;
        frames[count] = frame;
        const bool is_kernel = frame->symbol && kprof_names_find(&ingest->kernels, frame->symbol) != KPROF_NAMES_NONE;
        places[count++] = (kprof_frame_place){frame->function, frame->file, frame->is_native, is_kernel};
    }
    const size_t at = kprof_own_code_find(places, count, is_own, package);
    *out_is_own = is_own[at];
    return frames[at];
}

/* "train.py:57 in step", "app+0x1234", or in parentheses why there is none. */
static void describe_origin(const kprof_stack_ingest *ingest, const kprof_stack_record *record, origin *out)
{
    bool is_own;
    kprof_strbuf line = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strbuf) package = KPROF_STRBUF_INIT;
    const known_frame *own = find_own(ingest, record, &is_own, &package);
    if (!own)
        kprof_strbuf_printf(&line, "(%s)", *record->reason ? record->reason : "its call stack could not be read");
    else if (own->source)
        kprof_strbuf_printf(&line, "%s:%u", kprof_path_last_part(own->source), own->line);
    else if (own->is_native)
        kprof_strbuf_printf(&line, "%s+0x%lx", *own->file ? kprof_path_last_part(own->file) : "generated code",
                            own->place);
    else if (own->place > 0)
        kprof_strbuf_printf(&line, "%s:%lu", kprof_path_last_part(own->file), own->place);
    else
        kprof_strbuf_puts(&line, kprof_path_last_part(own->file));
    KPROF_AUTO_FREE char *base = own && own->is_native ? kprof_name_function_base(own->function) : NULL;
    if (own && *own->function)
        kprof_strbuf_printf(&line, " in %s", base ? base : own->function);
    if (package.length > 0)
        kprof_strbuf_printf(&line, " (package %s)", package.data);
    if (own && *record->reason && !is_own)
        kprof_strbuf_printf(&line, " (%s)", record->reason);
    out->line = kprof_strbuf_take(&line);
    out->module = kprof_strdup(own ? own->file : "");
}

static char *make_json(const kprof_stack_ingest *ingest, const kprof_stack_record *record)
{
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < record->frame_count; i++) {
        const known_frame *frame = &ingest->frames[(size_t)record->frames[i] - 1];
        if (is_of_kprof(frame))
            continue;
        cJSON *object = cJSON_CreateObject();
        cJSON_AddItemToArray(array, object);
        if (*frame->function)
            cJSON_AddStringToObject(object, "function", frame->function);
        cJSON_AddStringToObject(object, frame->is_native ? "module" : "file", frame->file);
        if (frame->place > 0)
            cJSON_AddNumberToObject(object, frame->is_native ? "offset" : "line", (double)frame->place);
        if (frame->source) {
            cJSON_AddStringToObject(object, "file", frame->source);
            cJSON_AddNumberToObject(object, "line", frame->line);
        }
    }
    char *text = cJSON_PrintUnformatted(array);
    cJSON_Delete(array);
    return text;
}

/* The module of a path, opened once; NULL: it cannot be read. */
static kprof_native_module *find_module(kprof_stack_ingest *ingest, const char *path)
{
    for (size_t i = 0; i < ingest->module_count; i++)
        if (strcmp(ingest->modules[i].path, path) == 0)
            return ingest->modules[i].code;
    if (ingest->module_count >= MOST_MODULES || *path != '/')
        return NULL;
    known_module *added = KPROF_POOL_ADD(ingest->pool, ingest->modules, ingest->module_count);
    *added = (known_module){kprof_pool_strdup(ingest->pool, path), kprof_native_open(path)};
    return added->code;
}

kprof_status kprof_stack_ingest_frame(kprof_stack_ingest *ingest, const kprof_frame_record *record)
{
    if (record->frame != ingest->frame_count + 1)
        return kprof_store_bad_record("a frame is out of its order,", record->frame);
    known_frame *added = KPROF_POOL_ADD(ingest->pool, ingest->frames, ingest->frame_count);
    *added = (known_frame){.is_native = record->is_native != 0,
                           .function = kprof_pool_strdup(ingest->pool, record->function),
                           .file = kprof_pool_strdup(ingest->pool, record->file),
                           .place = record->place};
    if (added->is_native) {
        /* Find what the file of native code tells of a frame; without that it keeps its module and its offset. */
        kprof_native_module *module = find_module(ingest, added->file);
        const kprof_native_place place =
            module ? kprof_native_find(module, added->place) : (kprof_native_place){NULL, NULL, 0};
        if (place.function) {
            added->symbol = kprof_pool_strdup(ingest->pool, place.function);
            added->function = kprof_pool_keep(ingest->pool, kprof_demangle(place.function));
        }
        added->source = place.line > 0 ? kprof_pool_strdup(ingest->pool, place.file) : NULL;
        added->line = added->source ? place.line : 0;
    }
    return KPROF_OK;
}

void kprof_stack_ingest_kernel(kprof_stack_ingest *ingest, const char *mangled)
{
    if (kprof_names_find(&ingest->kernels, mangled) == KPROF_NAMES_NONE)
        kprof_names_keep(&ingest->kernels, mangled, 0);
}

kprof_status kprof_stack_ingest_stack(kprof_stack_ingest *ingest, kprof_report *report,
                                      const kprof_stack_record *record)
{
    if (record->stack != ingest->stack_count + 1 ||
        KPROF_ANY(i, record->frame_count, !(record->frames[i] >= 1) || record->frames[i] > (double)ingest->frame_count))
        return kprof_store_bad_record("a call stack is out of its order, or of unknown frames,", record->stack);
    const int64_t is_cut = record->is_cut != 0;
    origin found = {NULL, NULL};
    KPROF_AUTO_FREE char *frames = make_json(ingest, record);
    int64_t *row = KPROF_POOL_ADD(ingest->pool, ingest->stacks, ingest->stack_count);
    describe_origin(ingest, record, &found);
    *row = kprof_store_find(report, KPROF_SQL_FIND_STACK, "sis", frames, is_cut, record->reason);
    if (*row == 0)
        *row = kprof_store_add(report, KPROF_SQL_ADD_STACK, "sssis", found.line, found.module, frames, is_cut,
                               record->reason);
    KPROF_FREE(found.line, found.module);
    ingest->stack_count -= report->status != KPROF_OK;
    return report->status;
}

bool kprof_stack_ingest_knows(const kprof_stack_ingest *ingest, const kprof_launch_record *launch)
{
    return launch->stack <= ingest->stack_count && launch->stack_origin < COUNT_OF(origins);
}

void kprof_stack_ingest_launch(const kprof_stack_ingest *ingest, kprof_report *report,
                               const kprof_launch_record *launch, int64_t id)
{
    if (launch->stack > 0)
        kprof_store_write(report, KPROF_SQL_ADD_LAUNCH_STACK, "iis", id, ingest->stacks[launch->stack - 1],
                          origins[launch->stack_origin]);
}

int64_t kprof_stack_ingest_row(const kprof_stack_ingest *ingest, int64_t stack)
{
    return stack > 0 && (uint64_t)stack <= ingest->stack_count ? ingest->stacks[stack - 1] : 0;
}

void kprof_stack_ingest_close(kprof_stack_ingest *ingest)
{
    kprof_names_free(&ingest->kernels);
    for (size_t i = 0; i < ingest->module_count; i++)
        if (ingest->modules[i].code)
            kprof_native_close(ingest->modules[i].code);
}
