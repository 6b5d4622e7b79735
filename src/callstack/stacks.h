/* Call stacks of launches: each distinct frame and stack has a number and is handed over once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames of one stack, of each kind, and what all stacks of a process can have. */
#define KPROF_STACK_FRAMES_MAX 256
#define KPROF_FRAMES_MAX       (1u << 18)
#define KPROF_STACKS_MAX       (1u << 16)

typedef enum kprof_stack_kinds {
    KPROF_STACK_NONE = 0,
    KPROF_STACK_NATIVE = 1,
    KPROF_STACK_PYTHON = 2,
    KPROF_STACK_BOTH = 3
} kprof_stack_kinds;

typedef struct kprof_stack_frame {
    uint32_t number; /* from 1 */
    bool is_native;
    const char *function; /* "": not known */
    const char *file;     /* of native code the module's; "": not known */
    uint64_t place;       /* the line, 0: not known; of native code the offset of the call in the module */
} kprof_stack_frame;

typedef struct kprof_stack {
    uint32_t number;        /* from 1 */
    const uint32_t *frames; /* [count]: Python's, the innermost first, and then the native ones likewise */
    uint32_t count;
    bool is_cut;        /* there are more frames outside of these */
    const char *reason; /* why there are no frames of Python; "": there are, or nobody asked */
} kprof_stack;

/* Gets each frame and stack once, frames first; calls nothing of this file. */
typedef struct kprof_stack_hooks {
    void (*frame)(const kprof_stack_frame *frame);
    void (*stack)(const kprof_stack *stack);
} kprof_stack_hooks;

/* Before the first stack, not within a call of the driver. */
void kprof_stacks_prepare(kprof_stack_kinds kinds);
/* Put the frames of one kind of a stack into out[most], the innermost first. Returns how many there are. Texts stay.
 * Native frames have the names of their functions here, where symbols tell them. */
size_t kprof_stacks_read(uint32_t number, bool native, kprof_stack_frame *out, size_t most);
/* The number of the calling thread's stack; 0: memory or numbers have run out, which kprof reports once. */
uint32_t kprof_stacks_take(kprof_stack_kinds kinds, const kprof_stack_hooks *hooks);
