/* The activities of the simulated machine, for tests of traces: a clock that only what is done moves on, so that each
 * time is known by arithmetic. */
#pragma once

#include "cupti/device_ops.h"

/* Take the place of the functions for activities. */
void sim_timeline_prepare(kprof_device_ops *device);
/* The application launches a kernel of this name and shape, described by the launch's record. */
void sim_timeline_launch(const char *mangled, const kprof_launch_record *launch);
/* The number that the next call has. */
uint32_t sim_timeline_next_call(void);
/* Do what a text says: see timeline.c. False: it says nothing that is known. */
bool sim_timeline_do(const char *text);
