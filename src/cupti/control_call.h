/* The ioctl that CUDA's driver calls its kernel module with, as NVIDIA's open kernel modules have it (nvos.h). */
#pragma once

#include <stdint.h>

#define KPROF_CONTROL_REQUEST 0xc020462aU

typedef struct kprof_control_call {
    uint32_t client, object, command, flags;
    uint64_t parameters; /* an address */
    uint32_t parameter_bytes, status;
} kprof_control_call;

_Static_assert(sizeof(kprof_control_call) == 32, "the driver's layout");
