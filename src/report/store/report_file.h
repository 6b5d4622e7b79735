/* The file of a report that is being written: it never destroys another run's report, and gets its name only when it is
 * complete. */
#pragma once

#include "report/report.h"

/* Endings of SQLite's files beside a report. */
enum { KPROF_SIDE_FILE_COUNT = 3 };
extern const char *const kprof_side_files[KPROF_SIDE_FILE_COUNT];

/* Make an empty file (mode 0600) for a report at `path`. To replace a report, the file has another name in the same
 * folder: *draft, which the caller frees; else *draft is NULL, and *lock is a descriptor that keeps others from
 * replacing the file while its report is written; it is closed after the report (SQLite's locks go with any descriptor
 * of the file), or is -1. OUTPUT with a message. */
kprof_status kprof_report_file_make(const char *path, kprof_create_mode mode, char **draft, int *lock) KPROF_MUST_CHECK;
/* Fill the empty file with what the descriptor `from` reads. */
kprof_status kprof_report_file_fill(const char *path, int from) KPROF_MUST_CHECK;
/* Copy all that is stored to a new file beside the report; *copy is its name, which the caller frees. */
kprof_status kprof_report_file_copy(kprof_report *report, char **copy) KPROF_MUST_CHECK;
/* Give a complete report its name, and remove the report that had that name, with its log. OUTPUT, and the draft is
 * kept, when another run is writing a report of that name. `own`: the lock on that report if it is ours, else -1. */
kprof_status kprof_report_file_replace(const char *draft, const char *path, int own) KPROF_MUST_CHECK;
/* Remove a report and its log. */
void kprof_report_file_remove(const char *path);
