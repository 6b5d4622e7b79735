/* CUDA has no wait with a limit for a whole context. So one thread waits without a limit, and the caller waits for
 * that thread. Marks behind launches tell whether work ends meanwhile. */
#include "inject/wait.h"

#include "core/deadline.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/marks.h"
#include "inject/engine.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Look at the marks this often. */
#define LOOK_NS INT64_C(2000000)
/* A waiting thread that wakes up late notices the end of the work a little later than the host does. */
#define GRACE_NS  INT64_C(1000000)
#define FORGET_NS INT64_C(1000000000)

#define UNENDED "the GPU's work did not end within 0.1 s, and may wait for the application"

/* A thread that waits for a context's work, perhaps since an earlier call. Each context has one at most. */
typedef struct waiter {
    struct waiter *next;
    void *context;
    bool timed_out; /* a wait for it timed out, and this was how far the GPU was: */
    kprof_progress stuck;
    bool begun;  /* it waits, or is about to */
    bool orphan; /* its context is gone: nobody takes the result */
    bool done;
    kprof_status result; /* once done */
} waiter;

/* Protects the list of waiters and what they tell. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    waiter *waiters;
} waits = {.mutex = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void make_condition(void)
{
    kprof_monotonic_condition(&waits.changed);
}

/* The waits of the call that this thread is in. */
static __thread struct {
    int64_t allowed_ns; /* what it may wait in all without any work that ends */
    int64_t waited_ns;  /* of that, since work ended last */
} mine = {.allowed_ns = KPROF_HOLD_NS};

void kprof_wait_allow(int64_t limit_ns)
{
    mine.allowed_ns = limit_ns;
    mine.waited_ns = 0;
}

int64_t kprof_wait_rest_ns(void)
{
    return mine.allowed_ns > mine.waited_ns ? mine.allowed_ns - mine.waited_ns : 0;
}

int64_t kprof_wait_limit_ns(void)
{
    const int64_t hold_ns = atomic_load(&kprof_engine.waits.hold_ns), rest_ns = kprof_wait_rest_ns();
    return hold_ns < rest_ns ? hold_ns : rest_ns;
}

void kprof_wait_note(int64_t waited_ns)
{
    mine.waited_ns += waited_ns;
}

static void *wait_for_work(void *user)
{
    const struct timespec pause = {0, LOOK_NS};
    waiter *self = user;
    pthread_mutex_lock(&waits.mutex);
    self->begun = true;
    pthread_cond_broadcast(&waits.changed);
    pthread_mutex_unlock(&waits.mutex);
    bool entered = kprof_engine.device->target_enter_context(self->context);
    /* This thread may begin late, when another one captures: its wait would end the capture. */
    while (kprof_engine.device->target_capturing())
        nanosleep(&pause, NULL);
    kprof_status status = kprof_engine.device->target_synchronize();
    if (entered)
        kprof_engine.device->target_leave_context();
    pthread_mutex_lock(&waits.mutex);
    self->result = status;
    self->done = true;
    if (self->orphan)
        free(self);
    pthread_cond_broadcast(&waits.changed);
    pthread_mutex_unlock(&waits.mutex);
    return NULL;
}

static waiter *find(const void *context)
{
    waiter *w = waits.waiters;
    while (w && w->context != context)
        w = w->next;
    return w;
}

/* If the last wait timed out, the work waits for the application, or takes long. Is it still going on, whatever else
 * has ended? Where it has no mark, only the thread tells. */
static bool is_stuck(const waiter *w, const kprof_progress *now)
{
    if (!w->timed_out || w->stuck.ahead == 0)
        return w->timed_out;
    return w->stuck.first == now->first && (now->first > 0 || w->stuck.passed == now->passed);
}

int64_t kprof_wait_worth_ns(const void *context)
{
    const kprof_progress now = kprof_engine.device->marks_look(context);
    const int64_t rest_ns = kprof_wait_rest_ns();
    KPROF_HOLD(waits.mutex);
    const waiter *w = find(context);
    const bool is_vain = w && !w->done && is_stuck(w, &now);
    return is_vain && rest_ns > GRACE_NS ? GRACE_NS : rest_ns;
}

/* Wait until the waiter is done, or no work has ended for `limit_ns`; return whether it is done. Look the waiter up
 * each time: another caller who finds it done frees it. */
static bool await(void *context, int64_t limit_ns)
{
    kprof_progress progress = kprof_engine.device->marks_look(context);
    int64_t since_ns = kprof_monotonic_ns(), spent_ns = 0;
    waiter *w;
    while ((w = find(context)) && !w->done && spent_ns < limit_ns) {
        if (is_stuck(w, &progress) && (progress.ahead > 0 || spent_ns > GRACE_NS))
            break;
        int64_t rest_ns = limit_ns - spent_ns;
        struct timespec until = kprof_deadline_after_ns(rest_ns < LOOK_NS ? rest_ns : LOOK_NS);
        (void)pthread_cond_timedwait(&waits.changed, &waits.mutex, &until);
        const kprof_progress now = kprof_engine.device->marks_look(context);
        int64_t now_ns = kprof_monotonic_ns();
        if (now.passed != progress.passed)
            since_ns = now_ns;
        spent_ns = now_ns - since_ns;
        progress = now;
    }
    bool is_over = !w || w->done;
    kprof_wait_note(spent_ns < limit_ns ? spent_ns : limit_ns);
    mine.waited_ns = is_over ? 0 : mine.waited_ns;
    if (!is_over && spent_ns > GRACE_NS) {
        w->timed_out = true;
        w->stuck = progress;
    }
    return is_over;
}

/* Take the context's waiter out of the list and return its result, or `none`. An unfinished one frees itself. */
static kprof_status take_result(const void *context, kprof_status none)
{
    for (waiter **link = &waits.waiters; *link; link = &(*link)->next) {
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
    pthread_t thread;
    waiter *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    *w = (waiter){.next = waits.waiters, .context = context};
    if (!kprof_threads_start(&thread, wait_for_work, w)) {
        free(w);
        return false;
    }
    pthread_detach(thread);
    waits.waiters = w;
    while ((w = find(context)) &&
           !w->begun) /* a thread that is late would wait for what the application may be capturing by then */
        pthread_cond_wait(&waits.changed, &waits.mutex);
    return true;
}

/* A thread may be waiting since an earlier call. When it is done, wait once more, for work that came since. */
static kprof_status wait_for_both(void *context, int64_t limit_ns)
{
    if (!await(context, limit_ns))
        return KPROF_NOT_COLLECTED;
    (void)take_result(context, KPROF_OK);
    if (!start(context))
        return KPROF_NO_MEMORY;
    return await(context, limit_ns) ? take_result(context, KPROF_INTERNAL) : KPROF_NOT_COLLECTED;
}

kprof_status kprof_wait_at_most(void *context, int64_t limit_ns)
{
    if (limit_ns > kprof_wait_rest_ns())
        limit_ns = kprof_wait_rest_ns();
    if (limit_ns <= GRACE_NS) { /* if the GPU has passed all marks, a thread needs to look only once */
        const kprof_progress progress = kprof_engine.device->marks_look(context);
        if (progress.ahead > 0)
            return kprof_fail(KPROF_NOT_COLLECTED, UNENDED);
        const int64_t rest_ns = mine.allowed_ns + atomic_load(&kprof_engine.waits.patience_ns) - mine.waited_ns;
        limit_ns = progress.passed > 0 ? atomic_load(&kprof_engine.waits.patience_ns) : GRACE_NS;
        limit_ns = rest_ns < limit_ns ? rest_ns : limit_ns;
    }
    pthread_mutex_lock(&waits.mutex);
    kprof_status status = wait_for_both(context, limit_ns);
    pthread_mutex_unlock(&waits.mutex);
    if (status == KPROF_NOT_COLLECTED)
        return kprof_fail(status, UNENDED);
    if (status == KPROF_NO_MEMORY)
        return kprof_fail(status, "no thread to wait for the GPU's work");
    return status == KPROF_OK ? status : kprof_fail(status, "the context is in error");
}

kprof_status kprof_wait_for_context(void *context)
{
    return kprof_wait_at_most(context, INT64_MAX);
}

bool kprof_wait_goes_on(const void *context)
{
    KPROF_HOLD(waits.mutex);
    const waiter *left = find(context);
    return left && !left->done;
}

void kprof_wait_forget(void *context)
{
    KPROF_HOLD(waits.mutex);
    struct timespec until = kprof_deadline_after_ns(FORGET_NS);
    waiter *left;
    while ((left = find(context)) && !left->done && pthread_cond_timedwait(&waits.changed, &waits.mutex, &until) == 0)
        continue;
    (void)take_result(context, KPROF_OK); /* the next context may have its address */
}
