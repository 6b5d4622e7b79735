/* Packs raw counters into fewer passes than CUPTI does, and into cheaper ones. */
#ifndef KPROF_PLANNER_PACK_H
#define KPROF_PLANNER_PACK_H

#include "planner/host.h"

#include <stdbool.h>

/* Replace *image, CUPTI's own of `names`, by one of fewer or cheaper passes and the same counters, with its placement.
 * It stays as it is, byte for byte, when none is found or anything fails. A metric that CUPTI's image takes from one
 * pass is taken from one pass, too. With few_passes there are as few as are found, and no more with counters of the SMs
 * than before; else there may be more, up to CUPTI's number, where launches get faster by it. Costs some tenths of a
 * second for hundreds of names. */
void kprof_pack(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *image);

#endif
