/* A copy of the arguments of a kernel, as the kernel sees them. */
#pragma once

#include "cupti/driver.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct kprof_arguments {
    unsigned char *buffer; /* [size_bytes], owned: parameters at their offsets; NULL: there are none */
    size_t size_bytes;
} kprof_arguments;

/* A launch's arguments. `parameters` has the address of each, `extra` is the buffer; either may be NULL. */
typedef struct kprof_given_arguments {
    CUfunction function; /* may be a CUkernel, which the driver takes for one */
    void **parameters;
    void **extra;
} kprof_given_arguments;

/* Copy them over what `out` has, which starts as zero. False: the driver does not tell the layout, an address is
 * NULL, `extra` has what CUDA does not define, or there is no memory. The owner calls kprof_arguments_free in either
 * case. */
bool kprof_arguments_copy(const kprof_driver_api *driver, const kprof_given_arguments *given, kprof_arguments *out);
void kprof_arguments_free(kprof_arguments *arguments);
