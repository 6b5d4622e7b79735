/* Keeps the counters of SMs switched on between the kernels of a replay. Where a pass counts in their second or third
 * domain, the driver switches them on before each range and off after it. Its two control calls take a millisecond on
 * an H200. Ranges begin with counters at zero, so nothing needs them off before the pass ends. The preloaded library
 * (inject/exec.c) stands in for ioctl and asks before each call. */
#pragma once

#include "cupti/control_call.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Makes the call or leaves it out; false when the caller must make it. */
typedef bool kprof_ioctl_hook(kprof_ioctl_call *call);
typedef _Atomic(kprof_ioctl_hook *) kprof_ioctl_slot;

/* The name under which the preloaded library exports its slot. Programs that were started without it have none. */
#define KPROF_IOCTL_SLOT "kprof_ioctl_hook_slot"

/* Values were compared with and without on GH100 alone. On another chip the calls might differ, and the registers. */
static inline bool kprof_counting_knows(const char *chip)
{
    return strcmp(chip, "GH100") == 0;
}

/* Find the slot. To be called once, early, as kprof_thread_find_list. */
void kprof_counting_find(void);
/* From now on, leave out what the calling thread would switch off and on again; no longer: switch off what still is on.
 * Calls that are not of this kind are made as they come. */
void kprof_counting_keep(bool keeps);
/* The calling thread starts or stops a pass: from now on fewer registers are written (cupti/registers.h). It has done
 * so: false where a register could not be written. For GH100 alone: kprof knows of no other chip which registers it can
 * leave out. */
void kprof_counting_program(void);
bool kprof_counting_programmed(void);
/* The profiler's object goes: look at no call of it any more. */
void kprof_counting_release(void);
/* In a forked child: make each call of the driver from now on, and no call of kprof's own, which would reach the
 * counters of the parent. */
void kprof_counting_forget(void);
