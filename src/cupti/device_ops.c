/* The table of the real machine. */
#include "cupti/device_ops.h"

#define ENTRY(name) .name = kprof_##name,

const kprof_device_ops kprof_cupti_device = {KPROF_DEVICE_FUNCTIONS(ENTRY)};
