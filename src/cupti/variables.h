/* Module variables whose addresses the application has, and those that were saved for a launch of their module: any
 * kernel may be given their addresses. */
#ifndef KPROF_CUPTI_VARIABLES_H
#define KPROF_CUPTI_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kprof_variable {
    const void *context;
    uint64_t address;
    size_t size_bytes; /* 0: not known */
} kprof_variable;

/* Thread-safe, all of them. A variable that is noted again is noted once; without memory for it, nothing of its context
 * counts as known any more. */
void kprof_variables_note(const void *context, uint64_t address, size_t size_bytes);
/* The context's variables, in an array that the caller frees; NULL where there are none. False when they are not known
 * for want of memory. */
bool kprof_variables_list(const void *context, kprof_variable **out, size_t *count);
/* One variable is gone, with its module. */
void kprof_variables_drop(const void *context, uint64_t address);
void kprof_variables_forget(const void *context);

#endif
