/* The file of a report that is being made: nobody else's report is lost, and only a complete one gets the name. */
#ifndef KPROF_REPORT_REPORT_FILE_H
#define KPROF_REPORT_REPORT_FILE_H

#include "report/report.h"

/* Make an empty file (mode 0600) for a report at `path`. To replace a report, the file has another name in the same
 * folder: *draft, which the caller frees; else *draft is NULL. OUTPUT with a message. */
kprof_status kprof_report_file_make(const char *path, kprof_create_mode mode, char **draft) KPROF_MUST_CHECK;
/* Copy all that is stored to a new file beside the report; *copy is its name, which the caller frees. */
kprof_status kprof_report_file_copy(kprof_report *report, char **copy) KPROF_MUST_CHECK;
/* Give a complete report its name; what had it before, and its log, are gone. */
kprof_status kprof_report_file_replace(const char *draft, const char *path) KPROF_MUST_CHECK;
/* Remove a report and its log. */
void kprof_report_file_remove(const char *path);

#endif
