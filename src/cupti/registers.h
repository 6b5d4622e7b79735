/* Writes fewer registers of the GPU while a pass starts or stops. The driver writes every register of every performance
 * monitor for each pass, in calls of its kernel module with 124 registers at most, and most registers hold that value
 * already. On an H200 a call takes 0.2 ms and a register 3.4 us: 45 of the 60 ms that a pass takes to start and to
 * stop. So what stays the same is left out, and the rest goes into full calls. It is one thread's turn at a time. */
#pragma once

#include "cupti/control_call.h"

#include <stdbool.h>
#include <stdint.h>

/* A call that writes registers, kept to be made later: each part points to the next. */
typedef struct kprof_kept_call {
    kprof_ioctl_call call;
    kprof_control_call control;
    kprof_register_ops ops;
} kprof_kept_call;

void kprof_kept_call_take(kprof_kept_call *out, const kprof_ioctl_call *call);
/* Answer a call that writes registers, and is not made now, as the kernel module answers one that succeeds. */
void kprof_register_call_answer(kprof_ioctl_call *call, uint8_t passed);

/* From now on the calling thread starts or stops a pass. */
void kprof_registers_begin(void);
/* The pass has started or stopped: write what has waited. False: since the beginning a register could not be written,
 * so that the pass would count something else. */
bool kprof_registers_end(void);
/* Make the call to a profiler object, which any thread may do; or, if the pass of this thread starts or stops, leave it
 * out or let it wait. Calls come here from the first beginning on, so that kprof knows what registers hold. */
void kprof_registers_make(kprof_ioctl_call *call);
/* Before another call to the driver's kernel module: write what waits for this thread. */
void kprof_registers_write(void);
/* No register's value is known any more. */
void kprof_registers_forget(void);
/* The same in a forked child, where another thread may have had the turn. */
void kprof_registers_forget_forked(void);
