/* The samples over time of a launch, read from the report for one launch at a time. */
#pragma once

#include "report/model/model.h"

typedef struct kprof_time_sample {
    int64_t start_ns, duration_ns; /* from the first sample of the launch in its pass on */
    double value;                  /* NaN: not known */
} kprof_time_sample;

/* The samples of one metric, in their order. */
typedef struct kprof_timeline_series {
    const kprof_model_metric *metric;
    const char *label, *unit, *help; /* of the section that has it; help NULL: none */
    size_t first, count;             /* among the samples of the launch */
    size_t place;                    /* among the items of the sections; SIZE_MAX: no section has it */
    double least, mean, most;        /* the mean counts each sample by its duration; NaN: none is known */
} kprof_timeline_series;

typedef struct kprof_launch_timeline {
    kprof_timeline_series *series; /* [series_count], in the order of the sections */
    size_t series_count;
    kprof_time_sample *samples; /* [sample_count] */
    size_t sample_count;
    int64_t interval_ns; /* of the first pass; 0: there is none */
    int64_t end_ns;      /* where the last sample ends */
    uint64_t laid_over;  /* launches that the samples are of: of a short one others, too, as mean values */
    size_t passes;
    char *reason; /* why some, or all, are missing; NULL: all is well */
} kprof_launch_timeline;

/* Read the timeline of a launch. If it has fewer than 20 samples, lay those of up to 64 other launches of its kernel,
 * shape and device over them, from among the 256 before and after it. It has neither series nor reason if none
 * were asked for. Always free it with kprof_launch_timeline_free. */
void kprof_launch_timeline_read(kprof_report *report, const kprof_model *model, const kprof_model_launch *launch,
                                kprof_launch_timeline *out);
void kprof_launch_timeline_free(kprof_launch_timeline *timeline); /* members */

/* The character, in a line for people, that shows this part of the most: darker is more; NaN: not known. */
char kprof_timeline_shade(double share);
/* Mean values of `count` parts of the launch's time, as long as each other; NaN: no sample is known there. */
void kprof_timeline_resample(const kprof_launch_timeline *timeline, const kprof_timeline_series *series, double *parts,
                             size_t count);
