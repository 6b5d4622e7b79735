/* The roofline model: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009. Pure functions. */
#ifndef KPROF_REPORT_ROOFLINE_H
#define KPROF_REPORT_ROOFLINE_H

#include <stdbool.h>

/* Rates of one precision against one level of memory; NaN where not measured. */
typedef struct kprof_roofline_input {
    double work, work_peak;       /* FLOP per second, achieved and peak */
    double traffic, traffic_peak; /* bytes per second, achieved and peak */
} kprof_roofline_input;

typedef struct kprof_roofline_point {
    double intensity;  /* FLOP per byte: work / traffic */
    double ridge;      /* FLOP per byte at which compute takes over from memory: work_peak / traffic_peak */
    double attainable; /* FLOP per second: min(work_peak, intensity * traffic_peak) */
    double pct;        /* work of attainable, per cent */
    double headroom;   /* attainable / work: 1.4 is "1.4 times below the roof" */
    bool memory_bound; /* the memory roof is the lower one at this intensity */
    bool measured;     /* all of the input was there */
    bool has_work;     /* measured, and any work was done at all; without it intensity, pct and headroom say nothing */
} kprof_roofline_point;

/* Place a kernel under the roofs. Missing input gives NaN everywhere. Work without traffic gives an infinite intensity,
 * under the compute roof. */
kprof_roofline_point kprof_roofline_locate(kprof_roofline_input input);

#endif
