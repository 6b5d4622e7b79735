/* Looks at few calls: records come from CUPTI's own threads. */
#include "inject/recording.h"

#include "core/log.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/process.h"
#include "inject/threads.h"
#include "inject/wait.h"

#include <pthread.h>
#include <time.h>

static atomic_bool runs;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static const kprof_recording_turns *told; /* NULL: nobody is */

/* So often kprof looks whether the thread that takes the last records is done. */
#define FINISH_LOOK_NS 1000000

/* Taking what CUPTI keeps, by one thread at a time. */
static struct {
    atomic_bool begun, done;
    atomic_size_t kept; /* buffers that CUPTI keeps */
} finish;

/* Needs the gate, alone. */
static struct {
    unsigned holds;
    int64_t start_ns;   /* of the first hold */
    int64_t counted_ns; /* a pass counts since then what the application launches; 0: none does */
    bool spoils_proofs;
} turn;

kprof_status kprof_recording_start(const kprof_activity_sink *sink, kprof_activity_scope scope,
                                   const kprof_recording_turns *turns)
{
    told = turns;
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

/* Also in a process that is not armed any more: CUPTI goes on to record, and what is open is still measured. */
static bool pauses(void)
{
    return atomic_load(&runs) && !kprof_engine.process.config.only_records;
}

bool kprof_recording_is_beside(void)
{
    return pauses() && atomic_load(&kprof_engine.process.armed);
}

void kprof_recording_hold(void)
{
    if (!pauses() || turn.holds++ > 0)
        return;
    turn.start_ns = kprof_engine.device->activities_now_ns();
    kprof_engine.device->activities_pause(true);
    if (told)
        told->begin(turn.start_ns, turn.counted_ns);
    turn.counted_ns = 0;
}

void kprof_recording_release(bool counts)
{
    if (turn.holds == 0 || --turn.holds > 0)
        return;
    if (!counts)
        kprof_engine.device->activities_pause(false);
    const int64_t end_ns = kprof_engine.device->activities_now_ns();
    if (told)
        told->end(turn.start_ns, end_ns);
    turn.counted_ns = counts ? end_ns : 0;
}

bool kprof_recording_leave_out(void *context)
{
    const bool records =
        pauses() && turn.holds == 0 && turn.counted_ns == 0 && kprof_wait_is_idle(kprof_wait_at_most(context, 0));
    if (records)
        kprof_engine.device->activities_pause(true);
    return records;
}

void kprof_recording_go_on(bool left_out)
{
    if (left_out)
        kprof_engine.device->activities_pause(false);
}

void kprof_recording_note_proof(bool searching, bool reached)
{
    if (kprof_recording_is_beside() && reached)
        turn.spoils_proofs = !searching;
}

bool kprof_recording_spoils_proofs(void)
{
    return turn.spoils_proofs;
}

void kprof_recording_flush(void)
{
    if (kprof_recording_is_beside())
        (void)kprof_engine.device->activities_flush();
}

static void *take_failed(void *unused)
{
    const size_t kept = kprof_engine.device->activities_flush_failed();
    atomic_store(&finish.kept, kept);
    atomic_store(&finish.done, true);
    return unused;
}

/* A signal handler may end the process anywhere, and can start no thread. Another thread may keep the driver, so one of
 * kprof's own asks it, and is left behind if it gets no answer. */
size_t kprof_recording_finish(void)
{
    const struct timespec pause = {0, FINISH_LOOK_NS};
    const size_t kept = kprof_engine.device->activities_flush();
    pthread_t thread;
    if (kept == 0 || kprof_idle_may_be_handler() || atomic_exchange(&finish.begun, true))
        return kept;
    atomic_store(&finish.done, false);
    if (!kprof_threads_start(&thread, take_failed, NULL))
        return kept;
    pthread_detach(thread);
    for (int64_t waited_ns = 0; waited_ns < KPROF_HOLD_AT_END_NS && !atomic_load(&finish.done);
         waited_ns += FINISH_LOOK_NS)
        nanosleep(&pause, NULL);
    if (!atomic_load(&finish.done))
        return kept;
    atomic_store(&finish.begun, false);
    return atomic_load(&finish.kept);
}

bool kprof_recording_save(void)
{
    return kprof_recording_runs() && !kprof_recording_is_beside() && kprof_engine.device->activities_save();
}

void kprof_recording_forget(void)
{
    atomic_store(&runs, false);
}

/* Beside counters each device is described with its first launch. */
static void prepare(void)
{
    if (!kprof_recording_is_beside())
        kprof_devices_announce();
    if (kprof_engine.process.config.follows_managed && kprof_engine.device->activities_follow_managed() != KPROF_OK)
        kprof_log(KPROF_LOG_WARNING, "the trace goes on without records of how unified memory moves");
    kprof_process_outlive_libraries();
    kprof_idle_watch();
}

void kprof_recording_note_call(const kprof_call *call)
{
    if (told && told->called && kprof_engine.process.config.call_stack_type != 0 && kprof_recording_runs())
        told->called(call->correlation);
}

/* CUPTI may lose what it still has of a context that ends. */
static void enter(const kprof_call *call)
{
    kprof_recording_note_call(call);
    if (call->kind == KPROF_CALL_STOP && kprof_recording_runs())
        (void)kprof_engine.device->activities_flush();
}

static void leave(const kprof_call *call)
{
    (void)call;
}

void kprof_recording_note_context(void *context)
{
    (void)context;
    if (atomic_load(&runs)) /* also while the process is not armed yet */
        pthread_once(&prepared, prepare);
}

const kprof_target_hooks kprof_recording_hooks = {
    .is_brief = true, .enter = enter, .leave = leave, .context_created = kprof_recording_note_context};
