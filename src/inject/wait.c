/* CUDA has no wait with a limit for a whole context. So one thread waits without a limit, and the caller waits for
 * that thread. */
#include "inject/wait.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/target.h"
#include "inject/engine.h"
#include "inject/launch.h"
#include "inject/threads.h"

#include <stdlib.h>

#define LIMIT_S 1
/* A thread that has waited for longer gets this much more, as its work may have just ended: GRACE_NS once a second,
 * SHORT_GRACE_NS else. */
#define GRACE_NS       20000000
#define SHORT_GRACE_NS 1000000
#define SECOND_NS      INT64_C(1000000000)

/* A thread that waits for a context's work; one for a context, perhaps since an earlier call. */
typedef struct kprof_waiter {
    struct kprof_waiter *next;
    void *context;
    int64_t since_ns;
    int64_t next_grace_ns; /* when it may have the longer one */
    bool orphan;           /* its context is gone: nobody takes the result */
    bool done;
    kprof_status result; /* once done */
} waiter;

static void *wait_for_work(void *user)
{
    kprof_waits *waits = &kprof_engine.waits;
    waiter *self = user;
    kprof_launch_mark_own();
    bool entered = kprof_engine.device->target_enter_context(self->context);
    kprof_status status = kprof_engine.device->target_synchronize();
    if (entered)
        kprof_engine.device->target_leave_context();
    pthread_mutex_lock(&waits->mutex);
    self->result = status;
    self->done = true;
    if (self->orphan)
        free(self);
    pthread_cond_broadcast(&waits->changed);
    pthread_mutex_unlock(&waits->mutex);
    return NULL;
}

static waiter *find(const void *context)
{
    waiter *w = kprof_engine.waits.waiters;
    while (w && w->context != context)
        w = w->next;
    return w;
}

/* Return how long to wait yet. */
static int64_t time_left_ns(waiter *w, int limit_s)
{
    int64_t now_ns = kprof_monotonic_ns(), left_ns = w->since_ns + limit_s * SECOND_NS - now_ns;
    if (left_ns > 0)
        return left_ns;
    if (now_ns < w->next_grace_ns)
        return SHORT_GRACE_NS;
    w->next_grace_ns = now_ns + SECOND_NS;
    return GRACE_NS;
}

/* Is the waiter done, so long after it began? It is looked up each time, since only one who finds it done frees it. */
static bool await(void *context, int limit_s)
{
    kprof_waits *waits = &kprof_engine.waits;
    waiter *w = find(context);
    struct timespec until = kprof_deadline_after_ns(w ? time_left_ns(w, limit_s) : 0);
    for (bool in_time = true; w && !w->done && in_time; w = find(context))
        in_time = pthread_cond_timedwait(&waits->changed, &waits->mutex, &until) == 0;
    return !w || w->done;
}

/* Take the context's waiter out of the list and return its result, or `none` if there is no waiter. One that is not
 * done frees itself later. */
static kprof_status take_result(const void *context, kprof_status none)
{
    for (waiter **link = &kprof_engine.waits.waiters; *link; link = &(*link)->next) {
        waiter *w = *link;
        if (w->context != context)
            continue;
        *link = w->next;
        none = w->result;
        w->orphan = !w->done;
        if (w->done)
            free(w);
        break;
    }
    return none;
}

static bool start(void *context)
{
    kprof_waits *waits = &kprof_engine.waits;
    pthread_t thread;
    waiter *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    *w = (waiter){.next = waits->waiters, .context = context, .since_ns = kprof_monotonic_ns()};
    if (!kprof_threads_start(&thread, wait_for_work, w)) {
        free(w);
        return false;
    }
    pthread_detach(thread);
    waits->waiters = w;
    return true;
}

/* A thread may be waiting since an earlier call. When it is done, wait once more, for work that came since. */
static kprof_status wait_at_most(void *context, int limit_s)
{
    kprof_waits *waits = &kprof_engine.waits;
    kprof_status status = KPROF_NOT_COLLECTED;
    pthread_mutex_lock(&waits->mutex);
    if (await(context, limit_s)) {
        (void)take_result(context, KPROF_OK);
        if (!start(context))
            status = KPROF_NO_MEMORY;
        else if (await(context, limit_s))
            status = take_result(context, KPROF_INTERNAL);
    }
    pthread_mutex_unlock(&waits->mutex);
    if (status == KPROF_NOT_COLLECTED)
        return kprof_fail(status, "the GPU's work did not end within %d s, and may wait for the application", limit_s);
    if (status == KPROF_NO_MEMORY)
        return kprof_fail(status, "no thread to wait for the GPU's work");
    return status == KPROF_OK ? status : kprof_fail(status, "the context is in error");
}

kprof_status kprof_wait_with_limit(void *context)
{
    return wait_at_most(context, LIMIT_S);
}

bool kprof_wait_goes_on(const void *context)
{
    kprof_waits *waits = &kprof_engine.waits;
    pthread_mutex_lock(&waits->mutex);
    const waiter *left = find(context);
    bool goes_on = left && !left->done;
    pthread_mutex_unlock(&waits->mutex);
    return goes_on;
}

kprof_status kprof_wait_for_context(void *context)
{
    kprof_waits *waits = &kprof_engine.waits;
    bool waits_for_host = kprof_engine.device->target_sharing() & (KPROF_WAITS_FOR_HOST | KPROF_MANAGED);
    bool is_short = waits_for_host || waits->in_vain || kprof_engine.batch.needs;
    kprof_status status = wait_at_most(context, is_short ? LIMIT_S : waits->long_limit_s);
    waits->in_vain = waits->in_vain || (status == KPROF_NOT_COLLECTED && !kprof_engine.batch.needs);
    return status;
}

void kprof_wait_forget(void *context)
{
    kprof_waits *waits = &kprof_engine.waits;
    pthread_mutex_lock(&waits->mutex);
    waiter *left = find(context);
    if (left)
        left->since_ns = kprof_monotonic_ns();
    (void)await(context, LIMIT_S);
    (void)take_result(context, KPROF_OK); /* the next context may have its address */
    pthread_mutex_unlock(&waits->mutex);
}
