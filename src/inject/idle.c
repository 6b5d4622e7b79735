/* One thread, started by the first measurement, asleep while there is nothing to give back. */
#include "inject/idle.h"

#include "core/monotonic.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdatomic.h>

#define IDLE_NS 250000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool running, stopped;
static atomic_bool held;   /* there is something to give back */
static atomic_ulong uses;  /* tells whether the last wait saw a new launch */
static unsigned long seen; /* uses when that wait began; of the watching thread */
static bool (*give_back)(unsigned calls);
static unsigned calls; /* since the last launch */

/* With the mutex held. */
static void wait_idle(void)
{
    struct timespec until = kprof_deadline_after_ns(IDLE_NS);
    seen = atomic_load(&uses);
    while (!stopped && pthread_cond_timedwait(&changed, &mutex, &until) == 0)
        continue;
    if (!stopped && kprof_idle_lasts()) {
        pthread_mutex_unlock(&mutex); /* replaying a batch takes its time, and launches may begin meanwhile */
        atomic_store(&held, false);
        if (!give_back(++calls))
            atomic_store(&held, true);
        pthread_mutex_lock(&mutex);
    }
    if (!kprof_idle_lasts())
        calls = 0;
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!stopped) {
        if (atomic_load(&held))
            wait_idle();
        else
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void start_thread(void)
{
    pthread_t thread;
    running = kprof_threads_start(&thread, watch, NULL);
    if (running)
        pthread_detach(thread);
}

void kprof_idle_start(bool (*new_give_back)(unsigned calls))
{
    give_back = new_give_back;
}

void kprof_idle_watch(void)
{
    atomic_fetch_add(&uses, 1);
    if (atomic_exchange(&held, true))
        return;
    pthread_mutex_lock(&mutex);
    if (!running && !stopped)
        start_thread();
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

bool kprof_idle_lasts(void)
{
    return seen == atomic_load(&uses);
}

void kprof_idle_stop(void)
{
    pthread_mutex_lock(&mutex);
    stopped = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

void kprof_idle_forget(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    running = false;
    atomic_store(&held, false);
}
