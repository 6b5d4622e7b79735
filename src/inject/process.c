/* The injection library's life in a process: it starts, reports, and ends with it. It never exits the process, never
 * writes to its stdout, and on any failure lets it run on. */
#include "inject/process.h"
#include "core/alone.h"
#include "core/counting.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/output.h"
#include "inject/batch.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/exec.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/launch.h"
#include "inject/lock.h"
#include "inject/preload.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* After so many batches nothing new is set up any more. */
#define MAX_EXIT_HANDLERS 64
#define OWNER_PERIOD_NS   250000000

#define UNWRITTEN "results cannot be written"

static __thread char last_error[1024]; /* kept for the message that says why profiling stopped */

static void write_message(kprof_log_level level, kprof_status status, const char *text)
{
    kprof_record record = {.type = KPROF_RECORD_MESSAGE};
    record.message = (kprof_message_record){level, status, text};
    if (kprof_engine.process.spool && kprof_spool_write(kprof_engine.process.spool, &record) == KPROF_OK)
        return;
    if (level == KPROF_LOG_ERROR)
        dprintf(STDERR_FILENO, "kprof: error: %s\n", text);
}

static void on_log(void *user, kprof_log_level level, const char *text)
{
    (void)user;
    if (level == KPROF_LOG_ERROR)
        snprintf(last_error, sizeof last_error, "%s", text);
    else
        write_message(level, KPROF_OK, text);
}

const char *kprof_process_reason(kprof_status status)
{
    return last_error[0] ? last_error : kprof_status_message(status);
}

void kprof_process_forget_reason(void)
{
    last_error[0] = '\0';
}

void kprof_process_disarm(kprof_status status, const char *reason)
{
    if (!atomic_exchange(&kprof_engine.process.armed, false))
        return;
    char text[sizeof last_error + 256];
    snprintf(text, sizeof text, "%s: %s; process %d runs on without profiling", reason, kprof_process_reason(status),
             (int)getpid());
    write_message(KPROF_LOG_ERROR, status, text);
}

void kprof_process_check_owner(void)
{
    kprof_process *process = &kprof_engine.process;
    int64_t now_ns = kprof_monotonic_ns(), looked_ns = atomic_load(&process->looked_ns);
    bool is_due = looked_ns == 0 || now_ns - looked_ns >= OWNER_PERIOD_NS;
    if (!is_due || !atomic_compare_exchange_strong(&process->looked_ns, &looked_ns, now_ns) ||
        atomic_load(&process->ending))
        return;
    bool is_gone;
    kprof_owner owner = kprof_lock_owner(&is_gone);
    if ((owner != KPROF_OWNER_GONE && !is_gone) || !atomic_exchange(&process->armed, false))
        return;
    if (owner == KPROF_OWNER_GONE) {
        char text[128];
        snprintf(text, sizeof text, "kprof has ended before process %d, which runs on without profiling",
                 (int)getpid());
        write_message(KPROF_LOG_WARNING, KPROF_OK, text);
        dprintf(STDERR_FILENO, "kprof: warning: %s; kprof recover %s makes a report of what was measured\n", text,
                kprof_engine.lock.session_dir);
    }
    kprof_spool_writer_stop(process->spool);
}

void kprof_process_write(const kprof_record *record)
{
    kprof_status status = kprof_spool_write(kprof_engine.process.spool, record);
    if (status != KPROF_OK)
        kprof_process_disarm(status, UNWRITTEN);
}

void kprof_process_hold_records(void)
{
    if (kprof_engine.process.spool)
        kprof_spool_hold(kprof_engine.process.spool);
}

void kprof_process_release_records(void)
{
    kprof_status status = kprof_engine.process.spool ? kprof_spool_release(kprof_engine.process.spool) : KPROF_OK;
    if (status != KPROF_OK)
        kprof_process_disarm(status, UNWRITTEN);
}

static void read_text_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(out, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    while (length > 0 && out[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    out[length] = '\0';
}

static void write_process(void)
{
    kprof_process_texts *texts = &kprof_engine.process.texts;
    struct timespec now;
    ssize_t length = readlink("/proc/self/exe", texts->executable, sizeof texts->executable - 1);
    texts->executable[length > 0 ? length : 0] = '\0';
    read_text_file("/proc/self/cmdline", texts->command_line, sizeof texts->command_line);
    gethostname(texts->host, sizeof texts->host - 1);
    clock_gettime(CLOCK_REALTIME, &now);
    kprof_record record = {.type = KPROF_RECORD_PROCESS};
    record.process = (kprof_process_record){
        .pid = getpid(),
        .parent_pid = getppid(),
        .start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
        .host = texts->host,
        .executable = texts->executable,
        .command_line = texts->command_line,
    };
    kprof_process_write(&record);
}

/* CUDA does not survive a fork: the child has no context of its own, and the spool is its parent's. */
static void disarm_forked_child(void)
{
    atomic_store(&kprof_engine.process.armed, false);
    kprof_launch_forget();
    kprof_gate_reset();
    kprof_batch_forget();
    kprof_lock_give();
    kprof_idle_forget();
    kprof_preload_forget();
    kprof_counting_forget();
    kprof_spool_writer_abandon(kprof_engine.process.spool);
    kprof_engine.process.spool = NULL;
}

static void at_exit(void)
{
    kprof_launch_end_by_signal();
    if (atomic_exchange(&kprof_engine.process.ending, true))
        return;
    kprof_preload_end();
    if (atomic_load(&kprof_engine.process.armed))
        kprof_launch_finish();
    else
        kprof_launch_stop();
    atomic_store(&kprof_engine.process.armed, false);
    kprof_launch_end_by_signal(); /* which has come meanwhile */
}

void kprof_process_outlive_libraries(void)
{
    atomic_uint *count = &kprof_engine.process.exit_handlers;
    if (atomic_load(count) < MAX_EXIT_HANDLERS && atomic_fetch_add(count, 1) < MAX_EXIT_HANDLERS)
        atexit(at_exit);
    kprof_ending_watch();
}

static kprof_status start(const char *dir)
{
    kprof_process *process = &kprof_engine.process;
    kprof_status status = kprof_config_load(dir, &process->config);
    if (status != KPROF_OK)
        return status;
    kprof_log_set_level(process->config.verbose ? KPROF_LOG_DEBUG : KPROF_LOG_INFO);
    if (!process->config.follow_children && process->config.root_pid != getpid())
        return KPROF_OK;
    status = kprof_filter_new(&process->config.filter, &process->filter);
    if (status == KPROF_OK)
        status = kprof_spool_writer_open(dir, &process->spool);
    if (status != KPROF_OK)
        return status;
    kprof_lock_set_folder(dir);
    atomic_store(&process->armed, true);
    write_process();
    kprof_launch_prepare();
    status = kprof_engine.device->target_start(&kprof_launch_hooks);
    if (status != KPROF_OK)
        return status;
    pthread_atfork(kprof_preload_end, NULL, disarm_forked_child);
    atexit(at_exit);
    at_quick_exit(at_exit);
    process->pid = getpid();
    /* The preloaded library is where kprof started the process; a program may have taken it out of the environment. */
    kprof_exec_slot *slot = (kprof_exec_slot *)dlsym(RTLD_DEFAULT, KPROF_EXEC_SLOT);
    kprof_ending_prepare(kprof_launch_take_signal);
    kprof_thread_find_list();
    kprof_output_find();
    kprof_counting_find();
    if (slot)
        atomic_store(slot, kprof_launch_before);
    return KPROF_OK;
}

void kprof_process_start(const kprof_device_ops *device)
{
    const char *dir = secure_getenv(KPROF_SESSION_ENV);
    if (!dir || atomic_exchange(&kprof_engine.process.started, true))
        return;
    kprof_engine.device = device;
    kprof_log_set_sink(on_log, NULL);
    kprof_status status = start(dir);
    if (status != KPROF_OK) {
        atomic_store(&kprof_engine.process.armed, true); /* so that the reason is told */
        kprof_process_disarm(status, "profiling cannot start");
    }
}
