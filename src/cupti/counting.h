/* Keeps the counters of SMs switched on between the kernels of a replay. Where a pass counts in their second or third
 * domain, the driver switches them on before each range and off after it. Its two control calls take a millisecond on
 * an H200. Ranges begin with counters at zero, so nothing needs them off before the pass ends. The preloaded library
 * (inject/exec.c) stands in for ioctl and asks before each call. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef int kprof_ioctl_function(int fd, unsigned long request, ...);

/* A call of ioctl. `issue` makes it; `result` and errno are for the caller, once it is made or left out. */
typedef struct kprof_ioctl_call {
    int fd;
    unsigned long request;
    void *argument;
    kprof_ioctl_function *issue;
    int result;
} kprof_ioctl_call;

/* Makes the call or leaves it out; false when the caller must make it. */
typedef bool kprof_ioctl_hook(kprof_ioctl_call *call);
typedef _Atomic(kprof_ioctl_hook *) kprof_ioctl_slot;

/* The name under which the preloaded library exports its slot. Programs that were started without it have none. */
#define KPROF_IOCTL_SLOT "kprof_ioctl_hook_slot"

/* Find the slot. To be called once, early, as kprof_thread_find_list. */
void kprof_counting_find(void);
/* From now on, leave out what the calling thread would switch off and on again; no longer: switch off what still is on.
 * Calls that are not of this kind are made as they come. */
void kprof_counting_keep(bool keeps);
/* In a forked child, whose calls would reach the counters of its parent: make each call from now on, and no other. */
void kprof_counting_forget(void);
