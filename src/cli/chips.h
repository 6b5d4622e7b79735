/* For which chips something is listed or planned where nothing is run. */
#ifndef KPROF_CLI_CHIPS_H
#define KPROF_CLI_CHIPS_H

#include "cli/options.h"

/* Those of --chips; else those of the GPUs that are present, of which --devices leaves some; else, with a message, the
 * one that the sets are tuned for. Appended to `out`, each once. */
kprof_status kprof_chips_named(const kprof_options *options, kprof_strlist *out) KPROF_MUST_CHECK;

#endif
