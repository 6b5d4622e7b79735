/* A short list: programs have few contexts. */
#include "inject/contexts.h"

#include "core/hold.h"
#include "core/log.h"
#include "inject/early.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/samples.h"
#include "inject/wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t mutex; /* one that checks for errors */
    kprof_profiled_context *contexts;
    void **live; /* [live_count]: all that the application has */
    size_t live_count;
    bool incomplete; /* there was no memory to list one */
} list = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

static kprof_profiled_context *find(const void *context)
{
    for (kprof_profiled_context *c = list.contexts; c; c = c->next)
        if (c->context == context)
            return c;
    return NULL;
}

static void release(kprof_profiled_context *context)
{
    kprof_samples_free(context->samples);
    kprof_engine.device->instructions_close(context->instructions);
    kprof_engine.device->pc_samples_close(context->pc_samples);
    if (context->pm_sampling)
        kprof_engine.device->pm_sampling_close(context->pm_sampling);
    kprof_engine.device->profiler_close(context->profiler);
    kprof_engine.device->snapshot_close(context->snapshot, false);
    kprof_engine.device->flush_close(context->flush);
    free(context);
}

/* A context that can have no samples still has all other measurements. */
static void open_samples(kprof_profiled_context *context)
{
    if (!kprof_engine.process.config.samples)
        return;
    context->pc_samples = kprof_early_take(context->context);
    if (context->pc_samples)
        return;
    const size_t buffer_bytes = (size_t)kprof_engine.process.config.sampling_buffer_bytes;
    kprof_status status = kprof_engine.device->pc_samples_open(context->context, buffer_bytes, &context->pc_samples);
    if (status == KPROF_OK)
        return;
    context->pc_samples = NULL;
    snprintf(context->pc_samples_reason, sizeof context->pc_samples_reason, "%s", kprof_process_reason(status));
}

void kprof_contexts_arm(kprof_profiled_context *context)
{
    const uint32_t wanted = (uint32_t)kprof_engine.process.config.sampling_period;
    kprof_status status = KPROF_OK;
    context->own_period = 0;
    if (context->pc_samples)
        status = kprof_engine.device->pc_samples_arm(context->pc_samples, wanted ? wanted : KPROF_FIRST_PERIOD);
    if (status != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples cannot be enabled: %s", kprof_process_reason(status));
}

static void disarm_samples(kprof_profiled_context *context)
{
    context->own_period = 0;
    if (context->pc_samples && kprof_engine.device->pc_samples_disarm(context->pc_samples) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples cannot be disabled");
}

/* The plan of the context has changed. */
static kprof_status follow_plan(kprof_profiled_context *context, const kprof_chip_metrics *metrics)
{
    context->metrics = metrics;
    if (!context->pc_samples)
        open_samples(context);
    kprof_contexts_arm(context);
    kprof_status status = kprof_engine.device->profiler_open(context->context, metrics, &context->profiler);
    context->lacks_plan = status != KPROF_OK;
    return status;
}

static kprof_status add(void *context, uint32_t device, const kprof_chip_metrics *metrics, kprof_profiled_context **out)
{
    kprof_profiled_context *added = calloc(1, sizeof *added);
    if (!added)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a context's counters");
    added->context = context;
    added->device = device;
    added->metrics = metrics;
    open_samples(added);
    kprof_contexts_arm(added); /* before the profiler has an object */
    kprof_status status = kprof_engine.device->profiler_open(context, metrics, &added->profiler);
    if (status != KPROF_OK) {
        disarm_samples(added);
        release(added);
        return status;
    }
    added->next = list.contexts;
    list.contexts = added;
    *out = added;
    return KPROF_OK;
}

/* With the context idle and current. */
static void end_left_pass(kprof_profiled_context *context)
{
    bool more;
    if (context->instructions && kprof_engine.device->instructions_disable(context->instructions) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "instructions that were counted as a batch ended are still counted");
    if (!context->left_in_pass)
        return;
    kprof_status popped = kprof_engine.device->profiler_pop(context->profiler);
    kprof_status stopped = kprof_engine.device->profiler_stop(context->profiler, &more);
    if (popped != KPROF_OK || stopped != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "a pass that was left open could not be ended");
    kprof_engine.device->profiler_release(context->profiler);
    context->left_in_pass = false;
}

static void give_back(kprof_profiled_context *context)
{
    bool entered = kprof_engine.device->target_enter_context(context->context);
    end_left_pass(context);
    kprof_samples_end(context->samples);
    kprof_engine.device->profiler_release(context->profiler);
    disarm_samples(context);
    context->replayed_ranges = 0;
    context->has_counters = false;
    if (entered)
        kprof_engine.device->target_leave_context();
}

/* When a context gives its counters back, CUPTI waits for its work without a limit. */
static kprof_status give_back_idle(kprof_profiled_context *context)
{
    if (!context->has_counters)
        return KPROF_OK;
    kprof_status status = kprof_wait_for_context(context->context);
    if (!kprof_wait_is_idle(status))
        return status;
    give_back(context);
    return KPROF_OK;
}

kprof_status kprof_contexts_open(void *context, const kprof_chip_metrics *metrics, kprof_profiled_context **out)
{
    uint32_t device;
    KPROF_HOLD(list.mutex);
    *out = find(context);
    kprof_early_leave_to(context);
    kprof_status status = kprof_engine.device->target_current_device(&device);
    /* The counters of a device serve one context at a time: others give them back before CUPTI is asked for them. */
    for (kprof_profiled_context *c = list.contexts; c && status == KPROF_OK; c = c->next)
        if (c->context != context && c->device == device) {
            c->takes_turns = c->takes_turns || c->replayed_ranges > 0;
            status = give_back_idle(c);
        }
    if (status == KPROF_OK && *out && (*out)->lacks_plan)
        status = follow_plan(*out, metrics);
    else if (status == KPROF_OK && *out && !(*out)->has_counters)
        kprof_contexts_arm(*out);
    if (status == KPROF_OK && !*out)
        status = add(context, device, metrics, out);
    if (status == KPROF_OK) {
        end_left_pass(*out);
        (*out)->has_counters = true;
    }
    return status;
}

void kprof_contexts_note(void *context)
{
    KPROF_HOLD(list.mutex);
    void **place = KPROF_ADD(list.live, list.live_count);
    if (place)
        *place = context;
    else
        list.incomplete = true;
    if (list.live_count == 1)
        kprof_early_note(context);
}

kprof_status kprof_contexts_wait_for_others(const void *context)
{
    kprof_status status = KPROF_OK;
    pthread_mutex_lock(&list.mutex);
    for (size_t i = 0; i < list.live_count && kprof_wait_is_idle(status); i++)
        if (list.live[i] != context)
            status = kprof_wait_for_context(list.live[i]);
    if (list.incomplete)
        status = kprof_fail(KPROF_NOT_COLLECTED, "no memory to list the contexts whose work has to be waited for");
    pthread_mutex_unlock(&list.mutex);
    return kprof_wait_is_idle(status) ? KPROF_OK : status;
}

bool kprof_contexts_has_others(const void *context)
{
    KPROF_HOLD(list.mutex);
    bool found = list.incomplete;
    for (size_t i = 0; i < list.live_count && !found; i++)
        found = list.live[i] != context;
    return found;
}

const kprof_profiled_context *kprof_contexts_find(const void *context)
{
    KPROF_HOLD(list.mutex);
    return find(context);
}

bool kprof_contexts_idle(void)
{
    bool idle = true;
    KPROF_HOLD(list.mutex);
    for (kprof_profiled_context *c = list.contexts; c && idle; c = c->next)
        idle = kprof_wait_is_idle(kprof_wait_for_context(c->context));
    return idle;
}

void kprof_contexts_release(void)
{
    if (pthread_mutex_lock(&list.mutex) == EDEADLK) /* as in _forget */
        return;
    kprof_early_end();
    for (kprof_profiled_context *c = list.contexts; c; c = c->next)
        if (give_back_idle(c) != KPROF_OK)
            kprof_log(KPROF_LOG_DEBUG, "the counters of a context that does not end its work are not given back");
    pthread_mutex_unlock(&list.mutex);
}

bool kprof_contexts_have_counters(void)
{
    KPROF_HOLD(list.mutex);
    bool have = kprof_early_is_there();
    for (const kprof_profiled_context *c = list.contexts; c; c = c->next)
        have = have || c->has_counters;
    return have;
}

bool kprof_contexts_change_plan(void)
{
    bool are_idle = true;
    KPROF_HOLD(list.mutex);
    for (kprof_profiled_context *c = list.contexts; c && are_idle; c = c->next) {
        are_idle = give_back_idle(c) == KPROF_OK;
        if (!are_idle)
            break;
        kprof_samples_free(c->samples);
        kprof_engine.device->profiler_close(c->profiler);
        c->samples = NULL;
        c->profiler = NULL;
        c->lacks_plan = true;
    }
    return are_idle;
}

void kprof_contexts_end_samples(void)
{
    if (pthread_mutex_lock(&list.mutex) == EDEADLK) /* as in _forget */
        return;
    for (kprof_profiled_context *c = list.contexts; c; c = c->next)
        kprof_samples_end(c->samples);
    pthread_mutex_unlock(&list.mutex);
}

void kprof_contexts_release_memory(void)
{
    KPROF_HOLD(list.mutex);
    for (kprof_profiled_context *c = list.contexts; c; c = c->next) {
        if (!c->snapshot || !kprof_wait_is_idle(kprof_wait_for_context(c->context)))
            continue;
        bool entered = kprof_engine.device->target_enter_context(c->context);
        kprof_engine.device->snapshot_release(c->snapshot);
        if (entered)
            kprof_engine.device->target_leave_context();
    }
}

size_t kprof_contexts_held_bytes(uint32_t device)
{
    size_t bytes = 0;
    KPROF_HOLD(list.mutex);
    for (kprof_profiled_context *c = list.contexts; c; c = c->next)
        if (c->device == device && c->snapshot)
            bytes += kprof_engine.device->snapshot_held_bytes(c->snapshot);
    return bytes;
}

void kprof_contexts_forget(void *context, bool in_pass)
{
    /* not when the application's signal handler exits in the middle of a wait */
    if (pthread_mutex_lock(&list.mutex) == EDEADLK)
        return;
    kprof_early_forget(context);
    const size_t live = KPROF_FIND(i, list.live_count, list.live[i] == context);
    if (live < list.live_count)
        list.live[live] = list.live[--list.live_count];
    for (kprof_profiled_context **link = &list.contexts; *link; link = &(*link)->next) {
        kprof_profiled_context *going = *link;
        if (going->context != context)
            continue;
        *link = going->next;
        if (!in_pass && !going->left_in_pass && !going->lacks_plan)
            give_back(going); /* CUPTI takes the next context at the same address for this one */
        release(going);
        break;
    }
    pthread_mutex_unlock(&list.mutex);
}
