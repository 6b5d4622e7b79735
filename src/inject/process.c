/* Writes records, and stops profiling when that, or anything else, fails. It never exits the process, never writes to
 * its stdout, and on any failure lets it run on. */
#include "inject/process.h"

#include "core/control.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/signals.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/lock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* After this many batches, register no more handlers. */
#define MAX_EXIT_HANDLERS 64
#define OWNER_PERIOD_NS   250000000

#define UNWRITTEN "results cannot be written"

static __thread char last_error[1024]; /* kept for the message that says why profiling stopped */

/* Not through stderr, whose lock an interrupted thread may have. */
static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
    kprof_write_guard guard;
    va_list args;
    va_start(args, format);
    kprof_write_guard_begin(&guard);
    vdprintf(STDERR_FILENO, format, args);
    kprof_write_guard_end(&guard);
    va_end(args);
}

static void write_message(kprof_log_level level, kprof_status status, const char *text)
{
    kprof_record record = {.type = KPROF_RECORD_MESSAGE};
    record.message = (kprof_message_record){level, status, text};
    if (kprof_engine.process.spool && kprof_spool_write(kprof_engine.process.spool, &record) == KPROF_OK)
        return;
    if (level == KPROF_LOG_ERROR)
        tell("kprof: error: %s\n", text);
}

void kprof_process_take_message(void *user, kprof_log_level level, const char *text)
{
    (void)user;
    if (level == KPROF_LOG_ERROR)
        snprintf(last_error, sizeof last_error, "%s", text);
    else
        write_message(level, KPROF_OK, text);
}

void kprof_process_warn_unmeasured(const char *text)
{
    write_message(KPROF_LOG_WARNING, KPROF_NOT_COLLECTED, text);
}

const char *kprof_process_reason(kprof_status status)
{
    return last_error[0] ? last_error : kprof_status_message(status);
}

void kprof_process_forget_reason(void)
{
    last_error[0] = '\0';
}

/* kprof ctl would take the process for armed. */
static void tell_switch(void)
{
    kprof_control control;
    const char *reason;
    KPROF_AUTO_CLOSE const int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    if (folder >= 0 && kprof_control_read(folder, getpid(), &control))
        (void)kprof_control_answer(folder, getpid(), control.answered, KPROF_CONTROL_FAILED);
}

void kprof_process_disarm(kprof_status status, const char *reason)
{
    if (!atomic_exchange(&kprof_engine.process.armed, false))
        return;
    char text[sizeof last_error + 256];
    snprintf(text, sizeof text, "%s: %s; process %d runs on without profiling", reason, kprof_process_reason(status),
             (int)getpid());
    write_message(KPROF_LOG_ERROR, status, text);
    tell_switch();
}

bool kprof_process_has_chosen_all(void)
{
    const kprof_process *process = &kprof_engine.process;
    return kprof_filter_exhausted(process->filter) && atomic_load(&process->handled) == atomic_load(&process->matched);
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
        tell("kprof: warning: %s; kprof recover %s makes a report of what was measured\n", text,
             kprof_engine.process.session_dir);
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

void kprof_process_outlive_libraries(void)
{
    atomic_uint *count = &kprof_engine.process.exit_handlers;
    if (atomic_load(count) < MAX_EXIT_HANDLERS && atomic_fetch_add(count, 1) < MAX_EXIT_HANDLERS)
        atexit(kprof_engine.process.exit_handler);
    kprof_ending_watch();
}
