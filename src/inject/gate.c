/* The fast path is one atomic increment and one load; mutex and condition variable serve only those who wait. */
#include "inject/gate.h"

#include "core/deadline.h"
#include "core/hold.h"
#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/wait.h"

#include <errno.h>

kprof_gate kprof_the_gate = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
static kprof_gate *const gate = &kprof_the_gate;

__attribute__((constructor)) static void make_condition(void)
{
    kprof_monotonic_condition(&gate->changed);
}

/* After a timeout, wait only as long as a short call takes: that thread is probably still inside. */
#define AFTER_TIMEOUT_MS 2
#define MS_NS            INT64_C(1000000)
/* While a thread waits, it looks this often whether work ends. */
#define LOOK_NS INT64_C(10000000)
/* A thread whose call may hardly wait any longer waits on while the GPU is idle, and sleeps for this long each time. */
#define NAP_NS INT64_C(100000)

/* This thread, as the gate knows it. */
static __thread struct {
    int depth;        /* shared calls that it is in */
    bool is_owner;    /* it holds the gate exclusively: its own calls pass */
    bool is_awaiting; /* it keeps others out and waits until `inside` is 0 */
} mine;

static void leave(void)
{
    if (atomic_fetch_sub(&gate->inside, 1) == 1 && atomic_load(&gate->exclusive)) {
        pthread_mutex_lock(&gate->mutex);
        pthread_cond_broadcast(&gate->changed);
        pthread_mutex_unlock(&gate->mutex);
    }
}

void kprof_gate_enter_shared(void)
{
    if (mine.depth++ > 0 || mine.is_owner)
        return;
    for (;;) {
        /* Announce first, look second; the other side does the reverse, so one of the two always sees the other. */
        atomic_fetch_add(&gate->inside, 1);
        if (!atomic_load(&gate->exclusive))
            return;
        leave();
        pthread_mutex_lock(&gate->mutex);
        while (atomic_load(&gate->exclusive))
            pthread_cond_wait(&gate->changed, &gate->mutex);
        pthread_mutex_unlock(&gate->mutex);
    }
}

void kprof_gate_leave_shared(void)
{
    if (mine.depth > 0 && --mine.depth == 0 && !mine.is_owner)
        leave();
}

/* The time that the thread has waited while the GPU worked and finished nothing, and how long it may. */
typedef struct stall {
    uint64_t passed;
    int64_t since_ns, limit_ns;
} stall;

/* Wait with the mutex held; false when the time is over, or when no work ends: the work may be waiting for what this
 * thread is about to do. */
static bool wait_for_change(const struct timespec *deadline, stall *s)
{
    const int64_t nap_ns = s->limit_ns > 0 && s->limit_ns < NAP_NS ? NAP_NS : s->limit_ns;
    struct timespec until = kprof_deadline_after_ns(nap_ns < LOOK_NS ? nap_ns : LOOK_NS);
    bool is_last =
        deadline->tv_sec < until.tv_sec || (deadline->tv_sec == until.tv_sec && deadline->tv_nsec <= until.tv_nsec);
    if (pthread_cond_timedwait(&gate->changed, &gate->mutex, is_last ? deadline : &until) == 0)
        return true;
    const kprof_progress progress = kprof_engine.device->marks_look(NULL);
    int64_t now_ns = kprof_monotonic_ns();
    const bool is_idle = progress.ahead == 0 && !atomic_load(&kprof_engine.waits.unmarked);
    if (is_idle || progress.passed != s->passed)
        s->since_ns = now_ns;
    s->passed = progress.passed;
    return !is_last && now_ns - s->since_ns < s->limit_ns;
}

bool kprof_gate_enter_exclusive(unsigned timeout_ms)
{
    /* The application's signal handler may exit in the middle of a replay, or of the wait below. */
    if (mine.is_owner || mine.is_awaiting || pthread_mutex_lock(&gate->mutex) == EDEADLK)
        return false;
    while (atomic_load(&gate->exclusive) && timeout_ms > 0)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    if (atomic_load(&gate->exclusive)) {
        pthread_mutex_unlock(&gate->mutex);
        return false;
    }
    atomic_store(&gate->exclusive, true);
    mine.is_awaiting = true;
    unsigned limit_ms = gate->timed_out && timeout_ms > AFTER_TIMEOUT_MS ? AFTER_TIMEOUT_MS : timeout_ms;
    struct timespec deadline = kprof_deadline_after_ns(limit_ms * MS_NS);
    bool in_time = true, alone;
    stall stalled = {.since_ns = kprof_monotonic_ns(), .limit_ns = kprof_wait_limit_ns()};
    /* One look at `inside` decides: those who announce themselves after it see `exclusive` and go. */
    while (!(alone = atomic_load(&gate->inside) == 0) && in_time)
        in_time = wait_for_change(&deadline, &stalled);
    gate->timed_out = !alone && (gate->timed_out || timeout_ms > 0);
    if (!alone) {
        const int64_t stalled_ns = kprof_monotonic_ns() - stalled.since_ns;
        kprof_wait_note(stalled_ns < stalled.limit_ns ? stalled_ns : stalled.limit_ns);
        atomic_store(&gate->exclusive, false);
        pthread_cond_broadcast(&gate->changed);
    }
    mine.is_owner = alone;
    mine.is_awaiting = false;
    pthread_mutex_unlock(&gate->mutex);
    if (alone)
        atomic_store(&gate->owner, pthread_self());
    return alone;
}

bool kprof_gate_is_own(void)
{
    return atomic_load(&gate->owner) == pthread_self();
}

void kprof_gate_leave_exclusive(void)
{
    mine.is_owner = false;
    atomic_store(&gate->owner, (pthread_t)0);
    KPROF_HOLD(gate->mutex);
    atomic_store(&gate->exclusive, false);
    pthread_cond_broadcast(&gate->changed);
}

void kprof_gate_await_exclusive(unsigned timeout_ms)
{
    struct timespec deadline = kprof_deadline_after_ns(timeout_ms * MS_NS);
    bool in_time = true;
    if (mine.is_owner || mine.is_awaiting || !atomic_load(&gate->exclusive) ||
        pthread_mutex_lock(&gate->mutex) == EDEADLK)
        return;
    while (atomic_load(&gate->exclusive) && in_time)
        in_time = pthread_cond_timedwait(&gate->changed, &gate->mutex, &deadline) == 0;
    pthread_mutex_unlock(&gate->mutex);
}

void kprof_gate_reset(void)
{
    pthread_mutex_init(&gate->mutex, NULL);
    kprof_monotonic_condition(&gate->changed);
    atomic_store(&gate->inside, 0);
    atomic_store(&gate->exclusive, false);
    atomic_store(&gate->owner, (pthread_t)0);
    gate->timed_out = false;
    mine.depth = 0;
    mine.is_owner = mine.is_awaiting = false;
}
