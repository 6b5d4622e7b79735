/* Phases of a kernel: parts of its time in which different units are the busiest. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KPROF_PHASE_PARTS 100 /* of the kernel's time, of equal length */
#define KPROF_PHASES_MOST 3

/* The units that may be the busiest, by what people call them; none where all are below 30 % of their peaks. */
typedef enum kprof_phase_unit {
    KPROF_PHASE_NONE,
    KPROF_PHASE_DRAM,
    KPROF_PHASE_L2,
    KPROF_PHASE_L1,
    KPROF_PHASE_TENSOR,
    KPROF_PHASE_FMA,
    KPROF_PHASE_ALU,
    KPROF_PHASE_ISSUE, /* of instructions, by any pipe */
    KPROF_PHASE_UNITS
} kprof_phase_unit;

/* How busy each unit was in each part, in per cent of its peak; row NONE is not read. */
typedef struct kprof_phase_input {
    double pct[KPROF_PHASE_UNITS][KPROF_PHASE_PARTS];
} kprof_phase_input;

typedef struct kprof_phase {
    size_t end; /* the part behind the last one */
    kprof_phase_unit unit;
    double pct; /* of the peak of its unit, over the phase; of NONE of the unit that is the busiest there */
} kprof_phase;

/* Return the unit that a metric tells of, or NONE. *scale makes per cent of the unit's peak of its values. */
kprof_phase_unit kprof_phase_unit_of(const char *metric, double *scale);
/* The phases in the order of time; one where the same unit is the busiest all the time. */
size_t kprof_phases_find(const kprof_phase_input *input, kprof_phase out[KPROF_PHASES_MOST]);
