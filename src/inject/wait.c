/* CUDA has no wait with a limit for a whole context, so a thread waits without one, and this one for that thread. */
#include "inject/wait.h"

#include "core/log.h"
#include "cupti/target.h"
#include "inject/launch.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define LIMIT_S 1
/* Where nothing is known that work might wait for: a kernel may look for what a later copy brings. Only once, since the
 * next may, too. */
#define LONG_LIMIT_S 10

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool waiting; /* a thread waits, perhaps since an earlier call */
static bool in_vain; /* a long wait was */
static void *waited_for;
static struct timespec since;
static kprof_status result;

static void *wait_for_context(void *unused)
{
    (void)unused;
    kprof_launch_mark_own();
    bool entered = kprof_target_enter_context(waited_for);
    kprof_status status = kprof_target_synchronize();
    if (entered)
        kprof_target_leave_context();
    pthread_mutex_lock(&mutex);
    result = status;
    waiting = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static bool start_thread(void)
{
    pthread_t thread;
    bool started = kprof_threads_start(&thread, wait_for_context, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* False when the thread that waits is there still, so many seconds after it began. With the mutex. */
static bool await_thread(int limit_s)
{
    struct timespec until = {since.tv_sec + limit_s, since.tv_nsec};
    bool in_time = true;
    while (waiting && in_time)
        in_time = pthread_cond_timedwait(&changed, &mutex, &until) == 0;
    return !waiting;
}

static bool wait_anew(void *context, int limit_s)
{
    waited_for = context;
    clock_gettime(CLOCK_REALTIME, &since);
    waiting = start_thread();
    return waiting && await_thread(limit_s);
}

/* What a thread waits for since an earlier call may be done by now, and more to be waited for. */
static kprof_status wait_at_most(void *context, int limit_s)
{
    pthread_mutex_lock(&mutex);
    bool in_time = await_thread(limit_s) && wait_anew(context, limit_s);
    kprof_status status = in_time ? result : KPROF_NOT_COLLECTED;
    pthread_mutex_unlock(&mutex);
    if (status == KPROF_NOT_COLLECTED)
        return kprof_fail(status, "the GPU's work did not end within %d s, and may wait for the application", limit_s);
    return status == KPROF_OK ? status : kprof_fail(status, "the context is in error");
}

kprof_status kprof_wait_with_limit(void *context)
{
    return wait_at_most(context, LIMIT_S);
}

/* Called with the gate held, which is what keeps `in_vain`. */
kprof_status kprof_wait_for_context(void *context)
{
    bool may_wait = in_vain || (kprof_target_sharing() & (KPROF_SHARES_WITH_HOST | KPROF_WAITS_FOR_HOST)) != 0;
    kprof_status status = wait_at_most(context, may_wait ? LIMIT_S : LONG_LIMIT_S);
    in_vain = in_vain || (status == KPROF_NOT_COLLECTED && !may_wait);
    return status;
}

void kprof_wait_forget(const void *context)
{
    pthread_mutex_lock(&mutex);
    if (waiting && waited_for == context) {
        clock_gettime(CLOCK_REALTIME, &since);
        (void)await_thread(LIMIT_S);
    }
    pthread_mutex_unlock(&mutex);
}
