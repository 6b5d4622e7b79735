/* One thread, started by the first measurement, asleep while there is nothing to give back. */
#include "inject/idle.h"

#include "cupti/target.h"
#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/gate.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define IDLE_MS 250

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool running, stopped, held; /* held: there is something to give back */
static unsigned long uses;          /* tells whether the last wait saw a new measurement */

static void wait_idle(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += IDLE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    unsigned long seen = uses;
    while (!stopped && seen == uses && pthread_cond_timedwait(&changed, &mutex, &until) == 0)
        continue;
    if (stopped || seen != uses || kprof_batch_is_open() || !kprof_gate_enter_exclusive(0))
        return;
    if (!kprof_batch_is_open() && !kprof_target_capturing()) {
        kprof_contexts_release();
        held = false;
    }
    kprof_gate_leave_exclusive();
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!stopped) {
        if (held)
            wait_idle();
        else
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* The application's signals are none of this thread's business. */
static void start_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    running = pthread_create(&thread, NULL, watch, NULL) == 0;
    if (running)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kprof_idle_watch(void)
{
    pthread_mutex_lock(&mutex);
    uses++;
    held = true;
    if (!running && !stopped)
        start_thread();
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
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
    running = held = false;
}
