/* Packs raw counters into fewer passes than CUPTI does, and into cheaper ones. */
#ifndef KPROF_CUPTI_PACK_H
#define KPROF_CUPTI_PACK_H

#include "cupti/host.h"

/* Replace *image, CUPTI's own of `names`, by one of fewer or cheaper passes and the same counters, with its placement.
 * It stays as it is, byte for byte, when none is found or anything fails. There are no more passes with counters of the
 * SMs than before, and a metric that CUPTI's image takes from one pass is taken from one pass, too. Costs some tenths
 * of a second for hundreds of names. */
void kprof_pack(kprof_host *host, const kprof_strlist *names, kprof_config_image *image);

#endif
