/* The range of the application that is measured as one, with --replay-mode range: an NVTX range of --nvtx-include, or
 * what comes between cudaProfilerStart and cudaProfilerStop. There is one at a time in a process. Its first launch, of
 * any thread, begins the measurement. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define KPROF_RANGE_NAME_BYTES 512
#define KPROF_RANGE_NAMES      8 /* that are kept: a launch may still read that of a range which has ended */

typedef enum kprof_range_phase {
    KPROF_RANGE_NONE,
    KPROF_RANGE_BEGINS,   /* its name is being copied */
    KPROF_RANGE_AWAITED,  /* it has had no launch */
    KPROF_RANGE_LEFT,     /* it has, and is not measured, or not yet */
    KPROF_RANGE_MEASURED, /* the open batch has it */
} kprof_range_phase;

typedef void kprof_range_hook(void);

typedef struct kprof_range_name {
    char text[KPROF_RANGE_NAME_BYTES];
    const char *nvtx; /* the NVTX ranges that it began in, with itself; lives as long as the process */
    uint32_t stack;   /* the call stack that it began with; 0: none is known */
} kprof_range_name;

typedef struct kprof_range_state {
    _Atomic kprof_range_phase phase;
    kprof_range_name names[KPROF_RANGE_NAMES];
    atomic_uint begun;     /* ranges; the last of them has the name at this place, and so on */
    atomic_uint device;    /* of its first launch; UINT_MAX: it had none */
    atomic_uint elsewhere; /* launches on other devices since then, whose work its counters do not see */
    atomic_bool told_nested;
    _Atomic(kprof_range_hook *) ends; /* takes a range that is measured out of the batch; NULL: nothing does yet */
} kprof_range_state;

extern kprof_range_state kprof_the_range;

/* Are ranges measured, and no launches? */
bool kprof_range_is_asked_for(void);

/* A range begins that is to be measured; `domain` is that of NVTX, or "", and `nvtx` and `stack` are as its name keeps
 * them. Returns whether it is: not so if another one is open. Any thread. */
bool kprof_range_begin(const char *domain, const char *name, const char *nvtx, uint32_t stack);
/* End the range, if _begin has returned true for it. */
void kprof_range_end(void);

/* Measuring begins now: a range that is open is left out, as kprof has not seen its first launches. */
void kprof_range_leave_out(void);

/* Has the range that is open had no launch yet? */
bool kprof_range_is_awaited(void);
/* The launch is its first, on this device: return the range's name, which stays until some more ranges have begun.
 * NULL: another launch was, or there is no range. */
const kprof_range_name *kprof_range_take(unsigned device);
/* A launch on this device is in the range, if one is open. */
void kprof_range_note_launch(unsigned device);
/* Is there a range that the batch has, and that has not ended? */
bool kprof_range_is_measured(void);
/* The batch has the range that was taken; false if it has ended meanwhile. Needs the gate, alone. */
bool kprof_range_note_measured(void);
