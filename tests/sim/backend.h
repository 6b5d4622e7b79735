/* The side of the simulated machine that the engine sees, and what a test asks of it. */
#pragma once

#include "cupti/device_ops.h"

/* The simulated machine of device.h; a test may give the engine a copy in which it has replaced some functions. */
extern const kprof_device_ops sim_device;

/* A violation when the engine has not freed everything that it made. */
void sim_check_nothing_left(void);
