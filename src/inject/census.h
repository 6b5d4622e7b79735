/* --census: counts and times every launch by kernel, grid, block and dynamic shared memory, and chooses those with most
 * time where they are measured too. Memory is bounded: launches of further shapes share a row of their kernel. */
#pragma once

#include "core/status.h"

/* At most this many shapes have a row of their own. Each kernel has one more row for all its other shapes; of these
 * there are at most as many again. */
#define KPROF_CENSUS_SHAPES 65536

/* From now on, take the times of kernels. Before the first launch. UNSUPPORTED when CUPTI refuses. */
kprof_status kprof_census_start(void) KPROF_MUST_CHECK;
/* kprof ctl begins to measure: what is counted from now on has rows of its own. */
void kprof_census_begin_turn(void);
/* Write all rows, and tell what is missing, as the process ends or becomes another. Does nothing without a census. */
void kprof_census_end(void);
