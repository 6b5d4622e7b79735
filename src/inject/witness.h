/* Witnesses are counters that several passes have. They tell whether the passes of a launch saw the same execution. */
#ifndef KPROF_INJECT_WITNESS_H
#define KPROF_INJECT_WITNESS_H

#include <stdint.h>

/* One witness of one launch; starts as zeros. */
typedef struct kprof_witness {
    uint32_t passes;  /* that had it */
    double mean;      /* over those */
    double low, high; /* of the passes' own values */
} kprof_witness;

/* Add the value of one more pass that was decoded; call this for each pass that has the witness, in their order. CUPTI
 * gives a counter of several passes as the `mean` over those decoded so far, so the pass' own value is (n + 1) * mean
 * - n * (mean before). NaN means that the image does not have the witness. */
void kprof_witness_add(kprof_witness *witness, double mean);
/* Return (high - low) / mean in percent; NaN when fewer than two passes had it, or the mean is 0. */
double kprof_witness_spread_pct(const kprof_witness *witness);

#endif
