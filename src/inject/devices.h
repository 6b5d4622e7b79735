/* The devices of this process, by context, with what is to be collected on each. */
#ifndef KPROF_INJECT_DEVICES_H
#define KPROF_INJECT_DEVICES_H

#include "core/config.h"
#include "spool/record.h"

#include <pthread.h>
#include <stdatomic.h>

#define KPROF_MAX_DEVICES 64

typedef struct kprof_device {
    kprof_device_record record;
    const kprof_chip_metrics *metrics; /* NULL: nothing was chosen for its chip */
} kprof_device;

typedef struct kprof_device_list {
    pthread_mutex_t mutex;
    struct kprof_context_device *contexts;
    kprof_device *devices[KPROF_MAX_DEVICES];                   /* by ordinal */
    _Atomic uint32_t local_bytes_per_thread[KPROF_MAX_DEVICES]; /* most that a kernel launched there needs */
    _Atomic uint64_t generation; /* changes when a context goes: what threads remember is then stale */
} kprof_device_list;

/* Device of a context, which must be current on this thread. The first time a device is seen, its record and the names
 * of its metrics go to the spool. NULL when the driver does not tell. Thread-safe. */
const kprof_device *kprof_devices_find(void *context);
void kprof_devices_forget(void *context);
/* Bytes that the driver may allocate as local memory for a launch of the kernel; 0 when an earlier kernel on the device
 * needed as much. The driver keeps local memory for all threads that the device can hold at once (CUDA C++ Programming
 * Guide, "Local Memory"). */
size_t kprof_devices_grow_local(const kprof_device *device, const kprof_kernel_record *kernel);

#endif
