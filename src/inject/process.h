/* The library tells of this process: records in the spool, and why something was not measured. */
#pragma once

#include "core/log.h"
#include "core/status.h"
#include "spool/record.h"

/* Be ready for the end of the process, as a batch opens: signals wait for it, and the exit handler is registered once
 * more. Exit handlers run in the reverse order of their registration, so the batch will be closed before anything ends
 * that CUPTI's libraries have registered so far. */
void kprof_process_outlive_libraries(void);
/* Take a message that kprof logs: an error becomes the reason below, all others go to the spool. `user` is ignored. */
void kprof_process_take_message(void *user, kprof_log_level level, const char *text);
/* Warn that launches run without a record, as they are not measured. The message's status tells readers. */
void kprof_process_warn_unmeasured(const char *text);
/* Write a record. A failure (disk full) is reported once where it still can be, and disarms. */
void kprof_process_write(const kprof_record *record);
/* Write many launches at once between these two: kprof_spool_hold. */
void kprof_process_hold_records(void);
void kprof_process_release_records(void);
/* Return why something was not measured: this thread's last error, or the status' text. Valid until the next error. */
const char *kprof_process_reason(kprof_status status);
/* Forget the last error of this thread, as another launch begins. */
void kprof_process_forget_reason(void);
/* Have all launches been chosen that were asked for, and none is on its way into a batch in another thread? */
bool kprof_process_has_chosen_all(void);
/* Stop profiling in this process, and say so once, if kprof is gone: nobody reads the spool any more. Looks four times
 * a second at most. Call it when results have been written, never for a launch that is not measured. */
void kprof_process_check_owner(void);
/* Stop profiling in this process and say why, once; the application runs on. */
void kprof_process_disarm(kprof_status status, const char *reason);
