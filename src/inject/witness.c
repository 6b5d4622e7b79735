/* Arithmetic on running means. */
#include "inject/witness.h"

#include <math.h>

void kprof_witness_add(kprof_witness *witness, double mean)
{
    if (isnan(mean))
        return;
    double before = witness->passes;
    double value = (before + 1) * mean - before * witness->mean;
    witness->low = witness->passes == 0 ? value : fmin(witness->low, value);
    witness->high = witness->passes == 0 ? value : fmax(witness->high, value);
    witness->mean = mean;
    witness->passes++;
}

double kprof_witness_spread_pct(const kprof_witness *witness)
{
    if (witness->passes < 2 || witness->mean == 0)
        return NAN;
    return 100 * (witness->high - witness->low) / witness->mean;
}
