/* The one engine of the process. It is a file of its own because tests of single parts link it with just their part. */
#include "inject/engine.h"

#include <pthread.h>
#include <stdlib.h>

struct kprof_engine kprof_engine = {.waits = {.hold_ns = KPROF_HOLD_NS, .patience_ns = KPROF_PATIENCE_NS}};

static kprof_status prepared;

static void prepare(void)
{
    kprof_process *process = &kprof_engine.process;
    const char *dir = secure_getenv(KPROF_SESSION_ENV);
    prepared = dir ? kprof_config_load(dir, &process->config) : KPROF_OK;
    if (dir && prepared == KPROF_OK)
        prepared = kprof_filter_new(&process->config.filter, &process->filter);
}

kprof_status kprof_engine_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return prepared;
}
