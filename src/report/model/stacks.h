/* The frames of a report's call stacks as people see them, each different one once. */
#pragma once

#include "report/model/change.h"
#include "report/model/model.h"

/* Further frames of a stack are left out: no run writes more. */
#define KPROF_TOLD_FRAMES_MAX 512

typedef struct kprof_told_frame {
    char *text; /* "step (train.py:57)", "main (app.c:9)", "main (app)", "app+0x1234" */
    char *file; /* with its folders, of native code that of the module; "": not known */
    bool is_native;
    bool is_installed; /* none of the user's own code */
} kprof_told_frame;

typedef struct kprof_told_stack {
    uint32_t
        *frames; /* [count], places in the list of frames: Python's, the innermost first, then native ones likewise */
    size_t count;
    bool is_cut; /* there are more frames outside of these */
} kprof_told_stack;

typedef struct kprof_told_stacks {
    kprof_told_frame *frames; /* [frame_count] */
    size_t frame_count;
    kprof_told_stack *stacks; /* [stack_count], as the model's */
    size_t stack_count;
} kprof_told_stacks;

/* Read them; the pool has them then. */
void kprof_told_stacks_load(kprof_report *report, kprof_pool *pool, kprof_told_stacks *out);
/* The number of frames at the front of a stack that tell most: those of Python, or if there are none native ones. */
size_t kprof_told_stack_length(const kprof_told_stacks *stacks, const kprof_told_stack *stack);
