/* One thread, which ends when the libraries are there. */
#include "inject/preload.h"

#include "core/monotonic.h"
#include "cupti/profiler.h"
#include "inject/engine.h"
#include "inject/launch.h"
#include "inject/process.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdatomic.h>

#define LIMIT_NS 1000000000

static pthread_t thread;
static atomic_bool running; /* and not joined */

static void *load(void *unused)
{
    kprof_launch_mark_own();
    kprof_engine.device->profiler_preload();
    return unused;
}

static bool measures_counters(const kprof_config *config)
{
    bool found = false;
    for (size_t i = 0; i < config->chip_count; i++)
        found = found || config->chips[i].pass_count > 0;
    return found;
}

void kprof_preload_start(void)
{
    if (measures_counters(&kprof_this_process.config) && kprof_threads_start(&thread, load, NULL))
        atomic_store(&running, true);
}

/* With a limit: a signal handler may exit in a thread that holds the loader's lock. */
void kprof_preload_end(void)
{
    struct timespec until = kprof_deadline_after_ns(LIMIT_NS);
    if (atomic_exchange(&running, false))
        (void)pthread_timedjoin_np(thread, NULL, &until);
}

void kprof_preload_forget(void)
{
    atomic_store(&running, false);
}
