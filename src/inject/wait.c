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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool waiting; /* a thread waits, perhaps since an earlier call */
static void *waited_for;
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
    pthread_cond_signal(&changed);
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

kprof_status kprof_wait_with_limit(void *context)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_S;
    kprof_status status = KPROF_NOT_COLLECTED;
    pthread_mutex_lock(&mutex);
    if (!waiting) { /* else that thread's work is not done yet, and waiting again would take as long in vain */
        waited_for = context;
        waiting = start_thread();
        bool in_time = waiting;
        while (waiting && in_time)
            in_time = pthread_cond_timedwait(&changed, &mutex, &until) == 0;
        if (in_time && !waiting)
            status = result;
    }
    pthread_mutex_unlock(&mutex);
    if (status == KPROF_NOT_COLLECTED)
        return kprof_fail(status, "the GPU's work did not end within %d s, and may wait for the application", LIMIT_S);
    return status == KPROF_OK ? status : kprof_fail(status, "the context is in error");
}

kprof_status kprof_wait_for_context(void *context)
{
    return kprof_target_sharing() & (KPROF_SHARES_WITH_HOST | KPROF_WAITS_FOR_HOST) ? kprof_wait_with_limit(context)
                                                                                    : kprof_target_synchronize();
}
