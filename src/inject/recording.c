/* Looks at few calls: records come from CUPTI's own threads. */
#include "inject/recording.h"

#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/process.h"

#include <pthread.h>

static atomic_bool runs;
static pthread_once_t devices_told = PTHREAD_ONCE_INIT;

kprof_status kprof_recording_start(const kprof_activity_sink *sink, kprof_activity_scope scope)
{
    atomic_store(&runs, true);
    kprof_status status = kprof_engine.device->activities_start(sink, scope);
    if (status != KPROF_OK)
        atomic_store(&runs, false);
    return status;
}

bool kprof_recording_runs(void)
{
    return atomic_load(&runs) && atomic_load(&kprof_engine.process.armed);
}

void kprof_recording_forget(void)
{
    atomic_store(&runs, false);
}

static void tell_devices(void)
{
    kprof_devices_announce();
    kprof_process_outlive_libraries();
    kprof_idle_watch();
}

/* CUPTI may lose what it still has of a context that ends. */
static void enter(const kprof_call *call)
{
    if (call->kind == KPROF_CALL_STOP && kprof_recording_runs())
        (void)kprof_engine.device->activities_flush();
}

static void leave(const kprof_call *call)
{
    (void)call;
}

static void note_context(void *context)
{
    (void)context;
    if (kprof_recording_runs())
        pthread_once(&devices_told, tell_devices);
}

const kprof_target_hooks kprof_recording_hooks = {
    .is_brief = true, .enter = enter, .leave = leave, .context_created = note_context};
