/* The state of the injection library in this process: configuration, filter, spool, and whether it is armed. */
#ifndef KPROF_INJECT_PROCESS_H
#define KPROF_INJECT_PROCESS_H

#include "core/config.h"
#include "cupti/device_ops.h"
#include "spool/spool.h"

#include <stdatomic.h>

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
    atomic_bool started;       /* kprof_process_start has been called */
    atomic_bool ending;        /* its exit handler has been called */
    atomic_uint exit_handlers; /* registered after the first */
    kprof_process_texts texts;
} kprof_process;

/* Read the configuration, open the spool and have the device call the hooks; does nothing when kprof did not start this
 * process, or when called again. `device` is borrowed for the life of the process. */
void kprof_process_start(const kprof_device_ops *device);
/* A batch opens: have it closed before the libraries end that measuring needs. What they have set up so far ends after
 * this process' handler, since both go in the reverse order of their start; so each batch registers the handler. */
void kprof_process_outlive_libraries(void);
/* Write a record. A failure (disk full) is reported once where it still can be, and disarms. */
void kprof_process_write(const kprof_record *record);
/* The last error that this thread logged, or the status' own text: why something was not measured. Valid until the
 * next. */
const char *kprof_process_reason(kprof_status status);
/* Another launch begins on this thread: what an earlier one met is not its reason. */
void kprof_process_forget_reason(void);
/* Stop profiling in this process and say why, once; the application runs on. */
void kprof_process_disarm(kprof_status status, const char *reason);

#endif
