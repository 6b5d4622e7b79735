/* Hands frames and stacks over as records, before the launches that have them. */
#include "inject/stacks.h"

#include "callstack/stacks.h"
#include "core/log.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MISSED      3
#define TOLD_FRAMES 6 /* of each */

static void write_frame(const kprof_stack_frame *frame)
{
    kprof_record record = {.type = KPROF_RECORD_FRAME};
    record.frame = (kprof_frame_record){frame->number, frame->is_native, frame->function, frame->file, frame->place};
    kprof_process_write(&record);
}

static void write_stack(const kprof_stack *stack)
{
    double frames[2 * KPROF_STACK_FRAMES_MAX];
    kprof_record record = {.type = KPROF_RECORD_STACK};
    for (uint32_t i = 0; i < stack->count; i++)
        frames[i] = stack->frames[i];
    record.stack = (kprof_stack_record){stack->number, stack->is_cut, stack->reason, stack->count, frames};
    kprof_process_write(&record);
}

/* The verdict on a stack stays, as its frames do. */
enum { UNKNOWN, REFUSED, TAKEN };
static _Atomic unsigned char verdicts[KPROF_STACKS_MAX + 1];
static _Atomic uint32_t missed[MISSED]; /* stacks that were refused; 0: none */

static const char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The functions of a stack, as a filter compares them. */
typedef struct functions {
    kprof_stack_frame frames[KPROF_STACK_FRAMES_MAX];
    size_t count;
    char *last_parts[KPROF_STACK_FRAMES_MAX]; /* of their names; owned, NULL: the whole name */
} functions;

/* "forward" of "Net.forward", or "step" of "net::step". */
static char *last_part(const kprof_stack_frame *frame)
{
    const char *dot = strrchr(frame->function, '.');
    if (frame->is_native)
        return strstr(frame->function, "::") ? kprof_name_function_base(frame->function) : NULL;
    return dot ? kprof_strdup(dot + 1) : NULL;
}

/* Each is once in the default domain, and once in that of its file. `how`: as for kprof_filter_match_functions. */
static bool match_names(const functions *of, kprof_function_kind kind, bool by_last_part, unsigned how)
{
    kprof_nvtx_range items[2 * KPROF_STACK_FRAMES_MAX];
    kprof_nvtx_ranges ranges = {items, 0};
    for (size_t i = of->count; i-- > 0;) {
        const char *name = by_last_part && of->last_parts[i] ? of->last_parts[i] : of->frames[i].function;
        items[ranges.count++] = (kprof_nvtx_range){.domain = "", .name = name};
        items[ranges.count++] = (kprof_nvtx_range){.domain = name_of_file(of->frames[i].file), .name = name};
    }
    return kprof_filter_match_functions(kprof_engine.process.filter, kind, &ranges, how);
}

/* A name may be written with what qualifies it, or without. */
static bool match_frames(uint32_t stack, kprof_function_kind kind)
{
    functions of = {.count = 0};
    if (!kprof_filter_needs_functions(kprof_engine.process.filter, kind))
        return true;
    of.count = kprof_stacks_read(stack, kind == KPROF_NATIVE_FUNCTIONS, of.frames, KPROF_STACK_FRAMES_MAX);
    for (size_t i = 0; i < of.count; i++)
        of.last_parts[i] = last_part(&of.frames[i]);
    const bool matches = (match_names(&of, kind, false, 0) && match_names(&of, kind, true, KPROF_NVTX_INCLUDES_ALL)) ||
                         (match_names(&of, kind, true, 0) && match_names(&of, kind, false, KPROF_NVTX_INCLUDES_ALL));
    for (size_t i = 0; i < of.count; i++)
        free(of.last_parts[i]);
    return matches;
}

static void note_missed(uint32_t stack)
{
    for (size_t i = 0; i < MISSED; i++) {
        uint32_t none = 0;
        if (atomic_compare_exchange_strong(&missed[i], &none, stack))
            return;
    }
}

bool kprof_launch_stack_matches(uint32_t stack)
{
    unsigned char verdict = stack <= KPROF_STACKS_MAX ? atomic_load(&verdicts[stack]) : REFUSED;
    if (verdict == UNKNOWN) {
        const bool matches = match_frames(stack, KPROF_PYTHON_FUNCTIONS) && match_frames(stack, KPROF_NATIVE_FUNCTIONS);
        verdict = matches ? TAKEN : REFUSED;
        atomic_store(&verdicts[stack], verdict);
        if (verdict == REFUSED)
            note_missed(stack);
    }
    return verdict == TAKEN;
}

/* "main/step/forward", the innermost few functions of a stack: of Python, unless native ones alone were asked for. */
static void put_functions(uint32_t stack, kprof_strbuf *out)
{
    kprof_stack_frame frames[TOLD_FRAMES];
    const bool native = !kprof_filter_needs_functions(kprof_engine.process.filter, KPROF_PYTHON_FUNCTIONS);
    const size_t count = kprof_stacks_read(stack, native, frames, TOLD_FRAMES);
    kprof_strbuf_printf(kprof_strbuf_part(out), "%s", count == 0 && !native ? "no function of Python" : "");
    for (size_t i = count; i-- > 0;)
        kprof_strbuf_printf(out, "%s%s", *frames[i].function ? frames[i].function : name_of_file(frames[i].file),
                            i > 0 ? "/" : "");
}

void kprof_launch_stacks_tell_missed(void)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < MISSED && atomic_load(&missed[i]) > 0; i++)
        put_functions(atomic_load(&missed[i]), &text);
    if (text.length > 0 && !text.failed && atomic_load(&kprof_engine.process.matched) == 0)
        kprof_log(KPROF_LOG_WARNING,
                  "a process made no launch in the functions that --python-include, --native-include and -exclude ask "
                  "for; its launches were made in: %s",
                  text.data);
}

void kprof_launch_stacks_prepare(void)
{
    kprof_stacks_prepare((kprof_stack_kinds)kprof_engine.process.config.call_stack_type);
}

uint32_t kprof_launch_stack(void)
{
    static const kprof_stack_hooks hooks = {write_frame, write_stack};
    const kprof_stack_kinds kinds = (kprof_stack_kinds)kprof_engine.process.config.call_stack_type;
    return kinds == KPROF_STACK_NONE ? 0 : kprof_stacks_take(kinds, &hooks);
}
