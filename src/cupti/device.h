/* The driver and CUPTI tell of the GPUs of this process. */
#pragma once

#include "core/status.h"
#include "spool/record.h"

#include <stdbool.h>
#include <stdint.h>

/* Fill a device record; strings live as long as the process. */
kprof_status kprof_target_device(uint32_t device, kprof_device_record *out) KPROF_MUST_CHECK;
/* Does a GPU of the process reach pageable memory of the host? */
bool kprof_target_reaches_pageable(void);
