/* Stores what a process sampled over the time of its launches. */
#pragma once

#include "report/store/store.h"

#define KPROF_TIMELINE_LEAST_SAMPLES 20 /* fewer tell no tenth of the time */

/* Store a record of the process' row `process`. BAD_SPOOL where it does not fit. */
kprof_status kprof_timeline_ingest(kprof_report *report, int64_t process,
                                   const kprof_timeline_record *record) KPROF_MUST_CHECK;
