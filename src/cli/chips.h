/* For which chips something is listed or planned where nothing is run. */
#ifndef KPROF_CLI_CHIPS_H
#define KPROF_CLI_CHIPS_H

#include "cli/options.h"

typedef struct kprof_chips {
    kprof_strlist names;   /* each once; the caller frees it */
    uint64_t device_bytes; /* memory of the smallest GPU, where they are those of GPUs that are present; 0: not known */
} kprof_chips;

/* Those of --chips; else those of the GPUs that are present, of which --devices leaves some; else, with a message, the
 * one that the sets are tuned for. */
kprof_status kprof_chips_named(const kprof_options *options, kprof_chips *out) KPROF_MUST_CHECK;

#endif
