/* One thread, started by the first measurement, asleep while there is nothing to give back. */
#include "inject/idle.h"

#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/threads.h"

#define IDLE_NS 250000000

/* With the mutex held. */
static void wait_idle(void)
{
    kprof_idle *idle = &kprof_engine.idle;
    struct timespec until = kprof_deadline_after_ns(IDLE_NS);
    idle->seen = atomic_load(&idle->uses);
    while (!idle->stopped && pthread_cond_timedwait(&idle->changed, &idle->mutex, &until) == 0)
        continue;
    if (!idle->stopped) {
        pthread_mutex_unlock(&idle->mutex); /* replaying a batch takes its time, and launches may begin meanwhile */
        atomic_store(&idle->held, false);
        idle->calls = kprof_idle_lasts() ? idle->calls + 1 : 0;
        if (!idle->give_back(idle->calls))
            atomic_store(&idle->held, true);
        pthread_mutex_lock(&idle->mutex);
    }
    if (!kprof_idle_lasts())
        idle->calls = 0;
}

static void *watch(void *unused)
{
    kprof_idle *idle = &kprof_engine.idle;
    (void)unused;
    pthread_mutex_lock(&idle->mutex);
    while (!idle->stopped) {
        if (atomic_load(&idle->held))
            wait_idle();
        else
            pthread_cond_wait(&idle->changed, &idle->mutex);
    }
    pthread_mutex_unlock(&idle->mutex);
    return NULL;
}

void kprof_idle_start(bool (*give_back)(unsigned calls))
{
    kprof_engine.idle.give_back = give_back;
}

void kprof_idle_watch(void)
{
    kprof_idle *idle = &kprof_engine.idle;
    atomic_fetch_add(&idle->uses, 1);
    if (atomic_exchange(&idle->held, true))
        return;
    pthread_mutex_lock(&idle->mutex);
    if (!idle->running && !idle->stopped) {
        pthread_t thread;
        idle->running = kprof_threads_start(&thread, watch, NULL);
        if (idle->running)
            pthread_detach(thread);
    }
    pthread_cond_signal(&idle->changed);
    pthread_mutex_unlock(&idle->mutex);
}

bool kprof_idle_lasts(void)
{
    kprof_idle *idle = &kprof_engine.idle;
    return idle->seen == atomic_load(&idle->uses);
}

void kprof_idle_stop(void)
{
    kprof_idle *idle = &kprof_engine.idle;
    pthread_mutex_lock(&idle->mutex);
    idle->stopped = true;
    pthread_cond_signal(&idle->changed);
    pthread_mutex_unlock(&idle->mutex);
}

void kprof_idle_forget(void)
{
    kprof_idle *idle = &kprof_engine.idle;
    pthread_mutex_init(&idle->mutex, NULL);
    pthread_cond_init(&idle->changed, NULL);
    idle->running = false;
    atomic_store(&idle->held, false);
}
