/* One number for the samples of a metric over a launch, for findings and filters. */
#pragma once

#define KPROF_TIMELINE_LEAST_SAMPLES 20 /* fewer tell no tenth of the time */

#include "report/store/store.h"

/* Store the values that are computed from a metric of the record, by its number; none of most metrics, or of few
 * samples. The record has been checked. */
void kprof_timeline_metrics_store(kprof_report *report, int64_t launch, const kprof_timeline_record *record,
                                  size_t name);
/* Store the phases of the launch, where the record has two units or more. The first pass that does counts. */
void kprof_timeline_phases_store(kprof_report *report, int64_t launch, const kprof_timeline_record *record);
