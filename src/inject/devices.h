/* The devices of this process, by context, with what is to be collected on each. */
#pragma once

#include "core/config.h"
#include "spool/record.h"

#define KPROF_MAX_DEVICES 64

typedef struct kprof_device {
    kprof_device_record record;
    const kprof_chip_metrics *metrics; /* NULL: nothing was chosen for its chip */
} kprof_device;

/* Device of a context, which must be current on this thread. The first time a device is seen, its record and the names
 * of its metrics go to the spool. NULL when the driver does not tell. Thread-safe. */
const kprof_device *kprof_devices_find(void *context);
void kprof_devices_forget(void *context);
/* The device of CUDA's number in this process, likewise. */
const kprof_device *kprof_devices_get(uint32_t ordinal);
/* The configuration has other chips: have devices collect what these ask for, and tell the spool. Needs the gate. */
void kprof_devices_use_plans(void);
/* Write the records of all devices that the process can use. Thread-safe. */
void kprof_devices_announce(void);
/* Bytes that the driver may allocate as local memory for a launch of the kernel; 0 when an earlier kernel on the device
 * needed as much. The driver keeps local memory for all threads that the device can hold at once (CUDA C++ Programming
 * Guide, "Local Memory"). */
size_t kprof_devices_grow_local(const kprof_device *device, const kprof_kernel_record *kernel);
