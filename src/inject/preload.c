/* Starts one thread, which ends when the libraries are there. Its test links nothing else of the process. */
#include "inject/preload.h"

#include "core/deadline.h"
#include "inject/engine.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdatomic.h>

#define LIMIT_NS 1000000000

static struct {
    pthread_t thread;
    atomic_bool running; /* and not joined */
} preload;

static void *load(void *unused)
{
    kprof_engine.device->profiler_preload();
    return unused;
}

void kprof_preload_start(void)
{
    const kprof_config *config = &kprof_engine.process.config;
    const bool measures_counters = KPROF_ANY(i, config->chip_count, config->chips[i].pass_count > 0);
    if (measures_counters && kprof_threads_start(&preload.thread, load, NULL))
        atomic_store(&preload.running, true);
}

/* Wait with a limit: a signal handler may exit in a thread that holds the loader's lock. */
void kprof_preload_end(void)
{
    struct timespec until = kprof_deadline_of_day_after_ns(LIMIT_NS);
    if (atomic_exchange(&preload.running, false))
        (void)pthread_timedjoin_np(preload.thread, NULL, &until);
}

void kprof_preload_forget(void)
{
    atomic_store(&preload.running, false);
}
