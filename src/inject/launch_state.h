/* How far the process has come, and what it has said once. watch.c has it. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define KPROF_REFUSALS_TOLD 8

typedef struct kprof_launch_state {
    atomic_bool ended;   /* no batch is opened any more */
    atomic_bool settled; /* disarmed, and no batch is open or can be opened any more */
    atomic_bool forked;  /* without exec: everything here is the parent's */
    /* Hashes of the reasons that kprof has given why graphs are not profiled kernel by kernel; 0: free. */
    _Atomic uint64_t refusals[KPROF_REFUSALS_TOLD];
    atomic_bool told_endless; /* that a replay does not end */
    atomic_bool told_done;    /* that the process may be ended */
    atomic_bool told_stopped; /* that launches are not measured, as the application has stopped profiling */
} kprof_launch_state;

extern kprof_launch_state kprof_the_launches;
