/* A thread watches over each launch that is held back: CUPTI's calls are not documented to leave the stream alone. */
#include "inject/batch/latched.h"

#include "core/deadline.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/threads.h"

#define LATE_NS INT64_C(100000000)

static void *let_go_late(void *user)
{
    kprof_latched *latched = user;
    const int64_t late_ns = kprof_monotonic_ns() + LATE_NS;
    KPROF_HOLD(latched->mutex);
    while (!latched->is_released && kprof_monotonic_ns() < late_ns) {
        const struct timespec until = kprof_deadline_after_ns(LATE_NS);
        (void)pthread_cond_timedwait(&latched->changed, &latched->mutex, &until);
    }
    latched->was_late = !latched->is_released;
    if (latched->was_late)
        kprof_engine.device->latch_let_go(latched->context->latch);
    return NULL;
}

static kprof_status open_latch(kprof_profiled_context *context)
{
    return context->latch ? KPROF_OK : kprof_engine.device->latch_open(&context->latch);
}

bool kprof_latched_release(kprof_latched *latched)
{
    kprof_engine.device->latch_let_go(latched->context->latch);
    pthread_mutex_lock(&latched->mutex);
    latched->is_released = true;
    pthread_cond_signal(&latched->changed);
    pthread_mutex_unlock(&latched->mutex);
    pthread_join(latched->thread, NULL);
    pthread_cond_destroy(&latched->changed);
    pthread_mutex_destroy(&latched->mutex);
    if (latched->was_late) {
        kprof_log(KPROF_LOG_DEBUG, "a call of CUPTI's waits for launches that are held back: none is from now on");
        latched->context->lacks_latch = true;
    }
    return !latched->was_late;
}

bool kprof_latched_hold(kprof_latched *latched, kprof_profiled_context *context)
{
    const kprof_device_ops *device = kprof_engine.device;
    if (context->lacks_latch)
        return false;
    kprof_status status = open_latch(context);
    KPROF_THEN(status, device->latch_hold(context->latch, device->snapshot_stream(context->snapshot)));
    if (status != KPROF_OK) {
        kprof_log(KPROF_LOG_DEBUG, "launches begin as they are queued: %s", kprof_process_reason(status));
        context->lacks_latch = true;
        return false;
    }
    /* The thread starts behind the hold: nobody would let go what begins to wait after it has. */
    *latched = (kprof_latched){.context = context};
    pthread_mutex_init(&latched->mutex, NULL);
    kprof_monotonic_condition(&latched->changed);
    if (kprof_threads_start(&latched->thread, let_go_late, latched))
        return true;
    device->latch_let_go(context->latch);
    pthread_cond_destroy(&latched->changed);
    pthread_mutex_destroy(&latched->mutex);
    return false;
}
