/* Chooses between emptying caches, which takes an idle GPU, and flushing L2 by a copy. */
#include "inject/batch/caches.h"

#include "inject/engine.h"
#include "inject/process.h"
#include "inject/wait.h"

#include <stdio.h>

void kprof_caches_prepare(kprof_batch_state *state)
{
    kprof_profiled_context *context = state->context;
    const kprof_cache_control control = kprof_engine.process.config.cache_control;
    if (control == KPROF_CACHE_FLUSH_NONE || context->flush_failed)
        return;
    kprof_status status = context->flush ? KPROF_OK : kprof_engine.device->flush_open(&context->flush);
    context->flush_failed = status != KPROF_OK;
    if (context->flush_failed)
        snprintf(context->flush_reason, sizeof context->flush_reason, "%s", kprof_process_reason(status));
    else if (control == KPROF_CACHE_FLUSH_ALL && state->kind != KPROF_LIVE)
        kprof_engine.device->flush_prepare_to_empty(context->flush);
}

static void note_flush(kprof_batch_state *state, kprof_status status)
{
    kprof_profiled_context *context = state->context;
    if (!context->flush || status != KPROF_OK)
        kprof_state_note(state, "caches were not flushed before the launch",
                         context->flush ? kprof_process_reason(status) : context->flush_reason);
}

/* Return why caches cannot be emptied before a launch's own run; NULL if they can. No work may run meanwhile: the
 * driver empties L2 at once, and may load code only when all work has ended. This thread has the gate alone, and the
 * context's work will end: otherwise the launch's range could not begin. */
static const char *why_not_emptied(void *context)
{
    if (kprof_decision_has_other_writers())
        return "other devices or other processes may write memory meanwhile";
    if (kprof_engine.device->target_sharing() &
        KPROF_MAY_NOT_SAVE) /* then nobody has looked whether the stream is the context's */
        return "the process has memory that kprof cannot save, or a green context";
    kprof_status status = kprof_contexts_wait_for_others(context);
    KPROF_THEN(status, kprof_wait_for_context(context));
    return status == KPROF_OK ? NULL : kprof_process_reason(status);
}

void kprof_caches_clear(kprof_batch_state *state, void *stream)
{
    const kprof_device_ops *device = kprof_engine.device;
    const kprof_cache_control control = kprof_engine.process.config.cache_control;
    kprof_flush *flush = state->context->flush;
    if (control == KPROF_CACHE_FLUSH_NONE)
        return;
    const bool empties = control == KPROF_CACHE_FLUSH_ALL && state->kind != KPROF_LIVE && flush;
    const char *why_not = empties && state->kind != KPROF_REPLAYED ? why_not_emptied(state->context->context) : NULL;
    if (why_not)
        kprof_state_note(state, "before the launch L2 was flushed by copying, and other caches were left alone",
                         why_not);
    if (!empties || why_not) {
        note_flush(state, flush ? device->flush_run(flush, stream) : KPROF_OK);
        return;
    }
    note_flush(state, device->flush_empty(flush, stream));
    const char *shortfall = device->flush_shortfall(flush);
    if (shortfall)
        kprof_state_note(state, "not all caches were emptied before the launch", shortfall);
}

void kprof_caches_follow(kprof_batch_state *state, void *stream)
{
    if (state->context->flush)
        note_flush(state, kprof_engine.device->flush_behind(state->context->flush, stream));
}
