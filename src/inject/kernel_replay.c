/* One launch at a time, replayed by CUPTI inside the launch call: it saves and restores memory, module variables
 * included. */
#include "core/log.h"
#include "cupti/profiler.h"
#include "inject/replay.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct profiled_context {
    void *context;
    kprof_profiler *profiler;
    double *values; /* of the launch that was measured last in this context */
    struct profiled_context *next;
} profiled_context;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static profiled_context *contexts;

static profiled_context *find_context(void *context)
{
    for (profiled_context *c = contexts; c; c = c->next)
        if (c->context == context)
            return c;
    return NULL;
}

static kprof_status add_context(const kprof_replay_launch *launch, profiled_context **out)
{
    profiled_context *added = calloc(1, sizeof *added);
    if (!added || !(added->values = calloc(launch->metrics->metrics.count + 1, sizeof *added->values))) {
        free(added);
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a context's counters");
    }
    added->context = launch->call->context;
    kprof_status status = kprof_profiler_open(added->context, launch->metrics, &added->profiler);
    if (status != KPROF_OK) {
        free(added->values);
        free(added);
        return status;
    }
    added->next = contexts;
    contexts = added;
    *out = added;
    return KPROF_OK;
}

static kprof_status open_context(const kprof_replay_launch *launch, profiled_context **out)
{
    pthread_mutex_lock(&mutex);
    *out = find_context(launch->call->context);
    kprof_status status = *out ? KPROF_OK : add_context(launch, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

static kprof_status enter(kprof_replay_launch *launch)
{
    profiled_context *context;
    kprof_status status = kprof_target_synchronize();
    if (status == KPROF_OK)
        status = open_context(launch, &context);
    return status == KPROF_OK ? kprof_profiler_begin(context->profiler) : status;
}

static kprof_status leave(kprof_replay_launch *launch)
{
    pthread_mutex_lock(&mutex);
    profiled_context *context = find_context(launch->call->context);
    pthread_mutex_unlock(&mutex);
    if (!context)
        return kprof_fail(KPROF_NOT_COLLECTED, "the context was destroyed during the launch");
    kprof_status status = kprof_profiler_end(context->profiler, context->values);
    if (status != KPROF_OK)
        return status;
    launch->record.mode = KPROF_REPLAY_CUPTI_KERNEL;
    launch->record.pass_count = launch->metrics->pass_count;
    launch->record.values = context->values;
    launch->record.value_count = (uint32_t)launch->metrics->metrics.count;
    return KPROF_OK;
}

static void context_ending(void *ending)
{
    pthread_mutex_lock(&mutex);
    for (profiled_context **link = &contexts; *link; link = &(*link)->next) {
        profiled_context *context = *link;
        if (context->context != ending)
            continue;
        *link = context->next;
        kprof_profiler_close(context->profiler);
        free(context->values);
        free(context);
        break;
    }
    pthread_mutex_unlock(&mutex);
}

const kprof_replay_strategy kprof_kernel_replay = {enter, leave, context_ending};
