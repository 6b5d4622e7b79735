/* The kernels of this process: what the filter says of each, and how often each was launched. */
#ifndef KPROF_INJECT_KERNELS_H
#define KPROF_INJECT_KERNELS_H

#include "core/filter.h"
#include "cupti/target.h"

#include <stdatomic.h>

typedef struct kprof_kernel {
    kprof_kernel_record record; /* number, name, registers and memory */
    bool matches;               /* the filter's kernel name */
    _Atomic uint64_t launches;
    _Atomic uint32_t watched_ends; /* launches that were watched and ended by themselves */
    atomic_bool ends_late;         /* a watched launch did not, and may have waited for the host */
} kprof_kernel;

/* The kernel of a launch; new ones are added, and `added` set. NULL when out of memory. Thread-safe; kernels live as
 * long as the process. Two kernels of one name, as compilers at run time make them, are told apart by registers and
 * memory. */
kprof_kernel *kprof_kernels_find(const kprof_call *call, const kprof_filter *filter, bool *added);

/* Forget which handle stands for which kernel: modules are being unloaded. */
void kprof_kernels_forget_handles(void);

/* Call `visit` for every kernel. */
void kprof_kernels_visit(void (*visit)(kprof_kernel *kernel));

#endif
