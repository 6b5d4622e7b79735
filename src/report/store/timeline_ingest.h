/* Stores what a process sampled over the time of its launches. */
#pragma once

#include "report/store/store.h"

/* Store a record of the process' row `process`. BAD_SPOOL, without a message, where it does not fit, as *why says. */
kprof_status kprof_timeline_ingest(kprof_report *report, int64_t process, const kprof_timeline_record *record,
                                   const char **why) KPROF_MUST_CHECK;
