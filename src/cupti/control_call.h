/* The ioctl by which CUDA's driver calls its kernel module, as NVIDIA's open kernel modules have it (nvos.h,
 * ctrlb0ccprofiler.h, ctrl2080gpu.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KPROF_CONTROL_REQUEST 0xc020462aU
#define KPROF_PROFILER_CLASS  0xb0ccU
#define KPROF_EXEC_REG_OPS    0xb0cc010aU
#define KPROF_WRITE_32        1
#define KPROF_MOST_OPS        124

typedef struct kprof_control_call {
    uint32_t client, object, command, flags;
    uint64_t parameters; /* an address */
    uint32_t parameter_bytes, status;
} kprof_control_call;

_Static_assert(sizeof(kprof_control_call) == 32, "the driver's layout");

/* Writes the bits of a register that the masks have, or reads it. */
typedef struct kprof_register_op {
    uint8_t operation, type, status, quad;
    uint32_t group_mask, subgroup_mask, offset, value_high, value_low, mask_high, mask_low;
} kprof_register_op;

typedef struct kprof_register_ops {
    uint32_t count, mode;
    uint8_t passed; /* all of them, as the kernel module answers in one of the modes */
    uint8_t direct, unused[2];
    kprof_register_op ops[KPROF_MOST_OPS];
} kprof_register_ops;

_Static_assert(sizeof(kprof_register_ops) == 3980, "the driver's layout");

typedef int kprof_ioctl_function(int fd, unsigned long request, ...);

/* A call of ioctl. `issue` makes it; `result` and errno are for the caller, once it is made or left out. */
typedef struct kprof_ioctl_call {
    int fd;
    unsigned long request;
    void *argument;
    kprof_ioctl_function *issue;
    int result;
} kprof_ioctl_call;

/* Return what the call does with registers; NULL: nothing, or in a layout of another driver. */
static inline kprof_register_ops *kprof_register_ops_of(const kprof_control_call *control)
{
    kprof_register_ops *ops = (kprof_register_ops *)(uintptr_t)control->parameters;
    return control->command == KPROF_EXEC_REG_OPS && control->parameter_bytes == sizeof *ops && ops &&
                   ops->count <= KPROF_MOST_OPS
               ? ops
               : NULL;
}
