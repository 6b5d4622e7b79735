/* Samples of the simulated GPU over the time of a traced program, on the clock of timeline.c: the first counter of a
 * pass is the percentage of a sample's time in which kernels ran, counter k the k-th part of it; one per second is as
 * many billions. */
#pragma once

#include "cupti/device_ops.h"

/* Take the place of the functions for samples over time, in processes that are traced and nothing else. */
void sim_utilization_prepare(kprof_device_ops *device);
/* A kernel will run then; one begins after the clock stands where it was asked for. */
void sim_utilization_add(int64_t start_ns, int64_t end_ns);
/* The clock stands here. */
void sim_utilization_reach(int64_t now_ns);
/* CUPTI loses so many samples, beginning with the one that the clock stands in. */
void sim_utilization_lose(int64_t count);
/* Wait until the GPU is sampled, or cannot be; or until it is in a pass that gives samples. */
void sim_utilization_await(bool without_links);
