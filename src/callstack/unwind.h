/* The callers of a function, by the tables that exceptions use. Where these lead from a return address is computed once
 * and kept: a walk then reads two words of the machine's stack for each frame. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KPROF_UNWIND_SETS 1024
#define KPROF_UNWIND_WAYS 4

/* How to find the caller's stack pointer, and its frame pointer, from those of a frame. */
typedef struct kprof_unwind_rule {
    uintptr_t address; /* the return address; 0: none */
    int32_t stack_offset, frame_offset;
    uint8_t stack, frame; /* what the offsets count from, and more: unwind.c */
} kprof_unwind_rule;

/* Each thread has its own rules, which begin as zeros. */
typedef struct kprof_unwind_rules {
    uint64_t modules;
    kprof_unwind_rule sets[KPROF_UNWIND_SETS][KPROF_UNWIND_WAYS]; /* the latest at the front */
    kprof_unwind_rule of_generated;                               /* of code that is in no module */
} kprof_unwind_rules;

/* A frame in which a call has not returned yet. */
typedef struct kprof_unwind_frame {
    uintptr_t address; /* where the call returns to */
    uintptr_t stack;   /* the stack pointer after that */
    uintptr_t frame;   /* the frame pointer */
} kprof_unwind_frame;

typedef enum kprof_unwind_step { KPROF_UNWIND_UNKNOWN, KPROF_UNWIND_CALLER, KPROF_UNWIND_OUTERMOST } kprof_unwind_step;

/* Load what is needed, which must not happen within a call of the driver. */
void kprof_unwind_prepare(void);
/* Another number than before: modules have been loaded or unloaded since. */
uint64_t kprof_unwind_modules(void);
/* Begin a walk, with that number: rules hold as long as the modules stay. */
void kprof_unwind_begin(kprof_unwind_rules *rules, uint64_t modules);
/* Turn a frame of the calling thread into its caller. Unknown: the tables have what this file does not know. */
kprof_unwind_step kprof_unwind_caller(kprof_unwind_rules *rules, kprof_unwind_frame *frame);
