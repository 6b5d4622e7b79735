/* Counts the ranges of the application: those between cudaProfilerStart and cudaProfilerStop, and instances of NVTX
 * ranges. They are what --range-filter chooses launches by, as in ncu, what --schedule takes for steps, as in
 * torch.profiler, and what --replay-mode range measures. */
#pragma once

#include "core/filter_spec.h"
#include "core/nvtx.h"

typedef struct kprof_ranges kprof_ranges;

/* The mark of a range that is to be measured as one. */
#define KPROF_RANGE_IS_MEASURED (UINT64_C(1) << 62)

/* *out is NULL where the spec asks for none of these. USAGE with a message that names the option and the fault. */
kprof_status kprof_ranges_new(const kprof_filter_spec *spec, kprof_ranges **out) KPROF_MUST_CHECK;
void kprof_ranges_free(kprof_ranges *ranges);

/* All that follows is thread-safe. */

/* The application starts or stops profiling; telling it twice changes nothing. */
void kprof_ranges_note_call(kprof_ranges *ranges, bool starts);
/* Does it matter when NVTX ranges begin and end? */
bool kprof_ranges_counts(const kprof_ranges *ranges);
/* The range at this place begins; `filter` has the expressions of --nvtx-include, or is NULL. Returns its marks. */
uint64_t kprof_ranges_begin(kprof_ranges *ranges, const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *open,
                            size_t begun);
/* A range with these marks ends. */
void kprof_ranges_end(kprof_ranges *ranges, uint64_t marks);

/* Is a launch left out now, as it is in no step that is measured? */
bool kprof_ranges_are_idle(const kprof_ranges *ranges);
/* Is a launch in a range of the application's calls that --range-filter asks for, or does that not matter? */
bool kprof_ranges_match_calls(const kprof_ranges *ranges);
/* How kprof_nvtx_filter_match is to look at a launch. */
unsigned kprof_ranges_nvtx_how(const kprof_ranges *ranges);
/* Is the launch of this position, from 0, in a step that is measured? True where steps are no launches. */
bool kprof_ranges_match_position(const kprof_ranges *ranges, uint64_t position);
/* Have all steps gone by that are ever measured? `position`: of the next launch. */
bool kprof_ranges_are_over(const kprof_ranges *ranges, uint64_t position);

/* The count of --range-filter so far. */
typedef struct kprof_range_counts {
    uint64_t calls;     /* ranges of the application's calls */
    uint64_t instances; /* NVTX ranges of --nvtx-include; 0, too, where they are not numbered */
} kprof_range_counts;
kprof_range_counts kprof_ranges_count(const kprof_ranges *ranges);

/* How many steps have begun, and the first, from 1, that is measured; 0: none is. `position`: of the next launch. */
uint64_t kprof_ranges_steps(const kprof_ranges *ranges, uint64_t position);
uint64_t kprof_ranges_first_step(const kprof_ranges *ranges);
