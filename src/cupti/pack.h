/* Packs raw counters into fewer passes than CUPTI does. */
#ifndef KPROF_CUPTI_PACK_H
#define KPROF_CUPTI_PACK_H

#include "cupti/host.h"

/* Replace *image, CUPTI's own of `names`, by one of fewer passes, with its placement; it stays as it is when none is
 * found. Costs some tenths of a second for hundreds of names. */
kprof_status kprof_pack(kprof_host *host, const kprof_strlist *names, kprof_config_image *image) KPROF_MUST_CHECK;

#endif
