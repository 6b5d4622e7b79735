/* One thread, started by the first measurement, asleep while there is nothing to give back. */
#include "inject/idle.h"

#include "core/deadline.h"
#include "core/hold.h"
#include "core/monotonic.h"
#include "inject/threads.h"

#include <signal.h>

kprof_idle kprof_the_idle = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
static kprof_idle *const idle = &kprof_the_idle;

__attribute__((constructor)) static void make_condition(void)
{
    kprof_monotonic_condition(&idle->changed);
}

#define IDLE_NS        250000000
#define RETRY_NS       2000000
#define ASK_POLL_NS    500000
#define BEGIN_LIMIT_NS INT64_C(2000000000)
#define END_LIMIT_NS   INT64_C(30000000000)
/* The code that a signal has interrupted may hold a lock that the function needs. */
#define HANDLER_END_LIMIT_NS INT64_C(5000000000)

bool kprof_idle_is_asked(void)
{
    return atomic_load(&idle->asked) == KPROF_ASKED;
}

/* With the mutex held. */
static void wait_idle(void)
{
    idle->retries = idle->retries && kprof_idle_is_asked();
    const bool is_short = atomic_exchange(&idle->hurries, false) || idle->retries;
    const int64_t wait_ns = atomic_load(&idle->wait_ns);
    struct timespec until = kprof_deadline_after_ns(is_short ? RETRY_NS : wait_ns > 0 ? wait_ns : IDLE_NS);
    idle->seen = atomic_load(&idle->uses);
    while (!idle->stopped && (idle->retries || !kprof_idle_is_asked()) &&
           pthread_cond_timedwait(&idle->changed, &idle->mutex, &until) == 0)
        continue;
    if (!idle->stopped) {
        bool (*const give_back)(unsigned calls) = idle->give_back;
        pthread_mutex_unlock(&idle->mutex); /* replaying a batch takes its time, and launches may begin meanwhile */
        atomic_store(&idle->held, false);
        idle->retries = kprof_idle_is_asked();
        idle->calls = kprof_idle_lasts() && !idle->retries ? idle->calls + 1 : 0;
        if (!give_back(idle->calls))
            atomic_store(&idle->held, true);
        pthread_mutex_lock(&idle->mutex);
    }
    if (!kprof_idle_lasts())
        idle->calls = 0;
}

static void *watch(void *unused)
{
    (void)unused;
    KPROF_HOLD(idle->mutex);
    while (!idle->stopped) {
        if (atomic_load(&idle->held) || kprof_idle_is_asked())
            wait_idle();
        else
            pthread_cond_wait(&idle->changed, &idle->mutex);
    }
    return NULL;
}

void kprof_idle_start(bool (*give_back)(unsigned calls))
{
    KPROF_HOLD(idle->mutex);
    idle->give_back = give_back;
}

void kprof_idle_watch(void)
{
    atomic_fetch_add(&idle->uses, 1);
    if (atomic_exchange(&idle->held, true))
        return;
    KPROF_HOLD(idle->mutex);
    if (!atomic_load(&idle->running) && !idle->stopped) {
        pthread_t thread;
        bool started = kprof_threads_start(&thread, watch, NULL);
        if (started)
            pthread_detach(thread);
        atomic_store(&idle->running, started);
    }
    pthread_cond_signal(&idle->changed);
}

void kprof_idle_hurry(void)
{
    atomic_store(&idle->hurries, true);
    kprof_idle_watch();
}

void kprof_idle_set_wait(int64_t wait_ns)
{
    atomic_store(&idle->wait_ns, wait_ns);
}

/* A signal handler may have interrupted this thread anywhere, so nothing here waits for a lock. Whoever signals the
 * condition has the mutex, so where that is free the thread is not in the middle of signalling. */
static void wake(void)
{
    if (pthread_mutex_trylock(&idle->mutex) != 0)
        return; /* whoever asks tries again */
    pthread_cond_signal(&idle->changed);
    pthread_mutex_unlock(&idle->mutex);
}

/* A handler runs with its signal blocked, and little else is. */
bool kprof_idle_may_be_handler(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigisemptyset(&blocked);
}

void kprof_idle_rouse(void)
{
    int state = KPROF_NOT_ASKED;
    if (!atomic_load(&idle->running))
        return;
    (void)atomic_compare_exchange_strong(&idle->asked, &state, KPROF_ASKED);
    wake();
}

void kprof_idle_ask(void)
{
    const struct timespec pause = {0, ASK_POLL_NS};
    int64_t began_ns = kprof_monotonic_ns(),
            end_limit_ns = kprof_idle_may_be_handler() ? HANDLER_END_LIMIT_NS : END_LIMIT_NS;
    int state = KPROF_NOT_ASKED;
    if (!atomic_load(&idle->running))
        return;
    (void)atomic_compare_exchange_strong(&idle->asked, &state, KPROF_ASKED);
    while ((state = atomic_load(&idle->asked)) != KPROF_NOT_ASKED) {
        int64_t waited_ns = kprof_monotonic_ns() - began_ns;
        if (state == KPROF_ASKED && waited_ns > BEGIN_LIMIT_NS) {
            (void)atomic_compare_exchange_strong(&idle->asked, &state, KPROF_NOT_ASKED);
        } else if (waited_ns > end_limit_ns) {
            return;
        } else {
            if (state == KPROF_ASKED)
                wake();
            nanosleep(&pause, NULL);
        }
    }
}

bool kprof_idle_begin(void)
{
    int asked = KPROF_ASKED;
    return atomic_compare_exchange_strong(&idle->asked, &asked, KPROF_BEING_DONE);
}

void kprof_idle_answer(void)
{
    atomic_store(&idle->asked, KPROF_NOT_ASKED);
}

bool kprof_idle_lasts(void)
{
    return idle->seen == atomic_load(&idle->uses);
}

void kprof_idle_stop(void)
{
    bool locked = pthread_mutex_lock(&idle->mutex) == 0; /* else this handler has interrupted its holder */
    idle->stopped = true;
    pthread_cond_signal(&idle->changed);
    if (locked)
        pthread_mutex_unlock(&idle->mutex);
}

void kprof_idle_forget(void)
{
    pthread_mutex_init(&idle->mutex, NULL);
    kprof_monotonic_condition(&idle->changed);
    atomic_store(&idle->running, false);
    atomic_store(&idle->held, false);
    atomic_store(&idle->asked, KPROF_NOT_ASKED);
}
