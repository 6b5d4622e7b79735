/* Starts and ends the parts in their order. Nothing here can fail the application. */
#include "inject/life.h"

#include "core/files.h"
#include "core/floats.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/process_filter.h"
#include "cupti/alone.h"
#include "cupti/counting.h"
#include "cupti/output.h"
#include "inject/arming.h"
#include "inject/batch.h"
#include "inject/census.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/exec.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/launch.h"
#include "inject/lock.h"
#include "inject/preload.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "inject/trace_limit.h"
#include "inject/utilization.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Texts of the process' record: too much for the stack of a thread of the application. */
static struct texts {
    char executable[4096], words[32768], host[256];
} texts;

/* The words of the program, each of which ends with a NUL, as a shell takes them. */
static void join_words(kprof_strbuf *out)
{
    size_t length = kprof_read_text("/proc/self/cmdline", texts.words, sizeof texts.words);
    while (length > 1 && texts.words[length - 1] == '\0' && texts.words[length - 2] == '\0')
        length--;
    for (size_t at = 0; at < length; at += strlen(texts.words + at) + 1) {
        kprof_strbuf_puts(out, at > 0 ? " " : "");
        kprof_strbuf_quote(out, texts.words + at);
    }
}

static void write_process(void)
{
    KPROF_AUTO(kprof_strbuf) command_line = KPROF_STRBUF_INIT;
    ssize_t length = readlink("/proc/self/exe", texts.executable, sizeof texts.executable - 1);
    texts.executable[length > 0 ? length : 0] = '\0';
    join_words(&command_line);
    gethostname(texts.host, sizeof texts.host - 1);
    kprof_record record = {.type = KPROF_RECORD_PROCESS};
    record.process = (kprof_process_record){
        .pid = getpid(),
        .parent_pid = getppid(),
        .start_unix_ns = kprof_unix_ns(),
        .host = texts.host,
        .executable = texts.executable,
        .command_line = kprof_strbuf_text(&command_line),
    };
    kprof_process_write(&record);
}

/* CUDA does not survive a fork: the child has no context of its own, and the spool is its parent's. */
static void disarm_forked_child(void)
{
    atomic_store(&kprof_engine.process.armed, false);
    atomic_store(&kprof_engine.process.waits, false);
    kprof_launch_forget();
    kprof_gate_reset();
    kprof_batch_forget();
    kprof_lock_give();
    kprof_idle_forget();
    kprof_recording_forget();
    kprof_utilization_forget();
    kprof_trace_limit_forget();
    kprof_preload_forget();
    kprof_counting_forget();
    kprof_spool_writer_abandon(kprof_engine.process.spool);
    kprof_engine.process.spool = NULL;
}

static void at_exit(void)
{
    KPROF_OWN_FLOATS();
    kprof_launch_end_by_signal();
    if (atomic_exchange(&kprof_engine.process.ending, true))
        return;
    kprof_preload_end();
    if (atomic_load(&kprof_engine.process.armed) || atomic_exchange(&kprof_engine.process.waits, false))
        kprof_launch_finish();
    else
        kprof_launch_stop();
    atomic_store(&kprof_engine.process.armed, false);
    kprof_launch_end_by_signal(); /* which has come meanwhile */
}

static kprof_status start(const char *dir)
{
    kprof_process *process = &kprof_engine.process;
    kprof_status status = kprof_engine_prepare();
    if (status != KPROF_OK)
        return status;
    kprof_log_set_level(process->config.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_INFO);
    const pid_t root = (pid_t)process->config.root_pid;
    if ((!process->config.follow_children && root != getpid()) ||
        !kprof_process_is_wanted(&process->config.filter.processes, root))
        return KPROF_OK;
    status = kprof_spool_writer_open(dir, &process->spool);
    if (status != KPROF_OK)
        return status;
    snprintf(process->session_dir, sizeof process->session_dir, "%s", dir);
    const bool waits =
        process->config.starts_unarmed && !kprof_trace_is_alone(); /* a trace drops what it must not have */
    atomic_store(&process->waits, waits);
    atomic_store(&process->armed, !waits);
    process->exit_handler = at_exit; /* for threads that begin below */
    write_process();
    kprof_launch_prepare();
    if (kprof_measures_instructions())
        kprof_engine.device->codes_keep();
    const bool samples = kprof_trace_is_alone() && kprof_measures_timelines();
    kprof_target_hooks hooks = samples                        ? kprof_utilization_hooks
                               : process->config.only_records ? kprof_recording_hooks
                                                              : kprof_launch_hooks;
    hooks.sees_calls = process->config.call_stack_type != 0;
    hooks.sees_order = process->config.replay_choice == KPROF_RANGES;
    if (!hooks.sees_calls)
        hooks.node_made = NULL;
    if (kprof_trace_limit_needs_calls())
        hooks.profiler_called = kprof_trace_note_profiler;
    hooks.takes_guests = process->config.starts_unarmed && !process->config.traces && !process->config.census;
    status = kprof_engine.device->target_start(&hooks);
    if (status == KPROF_OK && process->config.traces)
        status = kprof_trace_start();
    if (status == KPROF_OK && process->config.census)
        status = kprof_census_start();
    if (status != KPROF_OK)
        return status;
    pthread_atfork(kprof_preload_end, NULL, disarm_forked_child);
    atexit(at_exit);
    at_quick_exit(at_exit);
    process->pid = getpid();
    kprof_launch_stacks_prepare();
    /* The preloaded library is where kprof started the process; a program may have taken it out of the environment. */
    kprof_exec_slot *slot = (kprof_exec_slot *)dlsym(RTLD_DEFAULT, KPROF_EXEC_SLOT);
    kprof_ending_prepare(kprof_launch_take_signal);
    kprof_thread_find_list();
    kprof_output_find();
    kprof_counting_find();
    if (slot)
        atomic_store(slot, kprof_launch_before);
    return process->config.starts_unarmed ? kprof_arming_start() : KPROF_OK;
}

void kprof_life_begin(const kprof_device_ops *device)
{
    KPROF_OWN_FLOATS();
    const char *dir = secure_getenv(KPROF_SESSION_ENV);
    if (!dir || atomic_exchange(&kprof_engine.process.started, true))
        return;
    kprof_engine.device = device;
    kprof_log_set_sink(kprof_process_take_message, NULL);
    kprof_status status = start(dir);
    if (status != KPROF_OK) {
        atomic_store(&kprof_engine.process.armed, true); /* so that kprof reports the reason */
        kprof_process_disarm(status, "profiling cannot start");
    }
}
