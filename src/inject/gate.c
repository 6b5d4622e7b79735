/* The fast path is one atomic increment and one load; mutex and condition variable serve only those who wait. */
#include "inject/gate.h"

#include "core/monotonic.h"

#include <pthread.h>
#include <stdatomic.h>

/* Who was waited for in vain may stay inside for long: the next ones who want to be alone wait only for short calls. */
#define IN_VAIN_MS 2
#define MS_NS      INT64_C(1000000)

static atomic_int inside;     /* threads inside a shared call */
static atomic_bool exclusive; /* a replay is under way or waits for `inside` to fall to 0 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool in_vain;           /* nobody got to be alone since somebody waited in vain */
static __thread int depth;     /* shared calls that this thread is in */
static __thread bool is_owner; /* this thread holds the gate exclusively: its own calls pass */

static void leave(void)
{
    if (atomic_fetch_sub(&inside, 1) == 1 && atomic_load(&exclusive)) {
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
}

void kprof_gate_enter_shared(void)
{
    if (depth++ > 0 || is_owner)
        return;
    for (;;) {
        /* Announce first, look second; the other side does the reverse, so one of the two always sees the other. */
        atomic_fetch_add(&inside, 1);
        if (!atomic_load(&exclusive))
            return;
        leave();
        pthread_mutex_lock(&mutex);
        while (atomic_load(&exclusive))
            pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
    }
}

void kprof_gate_leave_shared(void)
{
    if (depth > 0 && --depth == 0 && !is_owner)
        leave();
}

bool kprof_gate_enter_exclusive(unsigned timeout_ms)
{
    if (is_owner) /* the application's signal handler exits in the middle of a replay */
        return false;
    pthread_mutex_lock(&mutex);
    while (atomic_load(&exclusive) && timeout_ms > 0)
        pthread_cond_wait(&changed, &mutex);
    if (atomic_load(&exclusive)) {
        pthread_mutex_unlock(&mutex);
        return false;
    }
    atomic_store(&exclusive, true);
    unsigned limit_ms = in_vain && timeout_ms > IN_VAIN_MS ? IN_VAIN_MS : timeout_ms;
    struct timespec deadline = kprof_deadline_after_ns(limit_ms * MS_NS);
    bool in_time = true, alone;
    /* One look at `inside` decides: those who announce themselves after it see `exclusive` and go. */
    while (!(alone = atomic_load(&inside) == 0) && in_time)
        in_time = pthread_cond_timedwait(&changed, &mutex, &deadline) == 0;
    in_vain = !alone && (in_vain || timeout_ms > 0);
    if (!alone) {
        atomic_store(&exclusive, false);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
    is_owner = alone;
    return alone;
}

void kprof_gate_leave_exclusive(void)
{
    is_owner = false;
    pthread_mutex_lock(&mutex);
    atomic_store(&exclusive, false);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void kprof_gate_await_exclusive(unsigned timeout_ms)
{
    struct timespec deadline = kprof_deadline_after_ns(timeout_ms * MS_NS);
    bool in_time = true;
    if (is_owner || !atomic_load(&exclusive))
        return;
    pthread_mutex_lock(&mutex);
    while (atomic_load(&exclusive) && in_time)
        in_time = pthread_cond_timedwait(&changed, &mutex, &deadline) == 0;
    pthread_mutex_unlock(&mutex);
}

void kprof_gate_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    atomic_store(&inside, 0);
    atomic_store(&exclusive, false);
    in_vain = false;
    depth = 0;
    is_owner = false;
}
