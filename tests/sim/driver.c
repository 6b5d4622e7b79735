/* A driver that finds no GPU, in place of libcuda.so.1: tells whether it would have loaded another profiler. With
 * KPROF_SIM_STUB it is the library of a toolkit that programs are linked with. */
#include "cupti/driver.h"

#include <stdio.h>
#include <stdlib.h>

#define STRINGIFY(name) #name
#define SYMBOL(name)    STRINGIFY(name)
#define SAME(name)      __asm__("same " SYMBOL(name) "\n");

/* All but the one that is defined below. */
__asm__(".macro same name\n.ifnc \\name, cuGetErrorName\n"
        ".globl \\name\n.type \\name, @function\n.set \\name, find_nothing\n.endif\n.endm\n");

CUresult find_nothing(void) __attribute__((used));

CUresult find_nothing(void)
{
    const char *profiler = getenv("CUDA_INJECTION64_PATH");
    if (profiler)
        fprintf(stderr, "loads %s\n", profiler);
    return getenv("KPROF_SIM_STUB") ? CUDA_ERROR_STUB_LIBRARY : CUDA_ERROR_NO_DEVICE;
}

KPROF_DRIVER_FUNCTIONS(SAME)

__attribute__((visibility("default"))) CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : NULL;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
