/* The injection library's life: it starts in cuInit, ends in an exit handler, and forgets all in a forked child. */
#pragma once

#include "cupti/device_ops.h"

/* Read the configuration, open the spool and have the device call the hooks; does nothing when kprof did not start this
 * process, or when called again. `device` is borrowed for the life of the process. */
void kprof_life_begin(const kprof_device_ops *device);
