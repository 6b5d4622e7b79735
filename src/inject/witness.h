/* Witnesses: counters that several passes have, which tell whether the passes of a launch saw the same execution. */
#ifndef KPROF_INJECT_WITNESS_H
#define KPROF_INJECT_WITNESS_H

#include <stdint.h>

/* One witness of one launch; starts as zeros. */
typedef struct kprof_witness {
    uint32_t passes;  /* that had it */
    double mean;      /* over those */
    double low, high; /* of the passes' own values */
} kprof_witness;

/* Another pass that has it was decoded, and the witness evaluates to `mean`; once for each such pass, in their order:
 * CUPTI gives a counter that is in several passes as the mean over those decoded so far, so that the pass' own value is
 * (n + 1) * mean - n * (mean before). NaN: the image that was used does not have it. */
void kprof_witness_add(kprof_witness *witness, double mean);
/* (high - low) / mean in percent; NaN when fewer than two passes had it, or the mean is 0. */
double kprof_witness_spread_pct(const kprof_witness *witness);

#endif
