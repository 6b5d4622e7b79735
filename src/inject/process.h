/* The state of the injection library in this process: configuration, filter, spool, and whether it is armed. */
#ifndef KPROF_INJECT_PROCESS_H
#define KPROF_INJECT_PROCESS_H

#include "core/config.h"
#include "cupti/device_ops.h"
#include "spool/spool.h"

#include <stdatomic.h>
#include <sys/types.h>

/* Texts of the process' record. */
typedef struct kprof_process_texts {
    char executable[4096], command_line[32768], host[256];
} kprof_process_texts;

typedef struct kprof_process {
    kprof_config config;
    kprof_filter *filter;
    kprof_spool_writer *spool;
    atomic_bool armed; /* false: nothing is measured any more */
    _Atomic uint64_t launches, matched, profiled;
    pid_t pid;                 /* of the process that has started, where it is armed */
    atomic_bool started;       /* kprof_process_start has been called */
    atomic_bool ending;        /* its exit handler has been called */
    atomic_uint exit_handlers; /* registered after the first */
    _Atomic int64_t looked_ns; /* when the owner of the session was last looked for */
    kprof_process_texts texts;
} kprof_process;

/* Read the configuration, open the spool and have the device call the hooks; does nothing when kprof did not start this
 * process, or when called again. `device` is borrowed for the life of the process. */
void kprof_process_start(const kprof_device_ops *device);
/* Be ready for the end of the process, as a batch opens: signals wait for it, and the exit handler is registered once
 * more. Exit handlers run in the reverse order of their registration, so the batch will be closed before anything ends
 * that CUPTI's libraries have registered so far. */
void kprof_process_outlive_libraries(void);
/* Write a record. A failure (disk full) is reported once where it still can be, and disarms. */
void kprof_process_write(const kprof_record *record);
/* Write many launches at once between these two: kprof_spool_hold. */
void kprof_process_hold_records(void);
void kprof_process_release_records(void);
/* Return why something was not measured: the last error that this thread logged, or the status' own text. Valid until
 * the next error. */
const char *kprof_process_reason(kprof_status status);
/* Forget the last error of this thread, as another launch begins. */
void kprof_process_forget_reason(void);
/* Stop profiling in this process, and say so once, if kprof is gone: nobody reads the spool any more. Looks four times
 * a second at most. Call it when results have been written, never for a launch that is not measured. */
void kprof_process_check_owner(void);
/* Stop profiling in this process and say why, once; the application runs on. */
void kprof_process_disarm(kprof_status status, const char *reason);

#endif
