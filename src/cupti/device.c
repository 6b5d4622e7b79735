/* Asks the driver and CUPTI, and keeps what does not change. */
#include "cupti/device.h"

#include "core/hold.h"
#include "core/log.h"
#include "cupti/driver.h"
#include "host/load.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define MAX_DEVICES 64

/* Strings and attributes of the records, kept for the life of the process. */
static struct {
    char name[128], uuid[33];
    double attributes[KPROF_DEVICE_ATTRIBUTE_COUNT];
} kept[MAX_DEVICES];

static uint32_t attribute(const kprof_driver_api *driver, CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return driver->cuDeviceGetAttribute_(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

#define CU_DEVICE_ATTRIBUTE_NONE 0 /* the driver numbers its own from 1 */
#define READ_TEXT(member, which)
#define READ_U32(member, which)                                                                                        \
    if ((which) != CU_DEVICE_ATTRIBUTE_NONE)                                                                           \
        out->member = attribute(driver, handle, (CUdevice_attribute)(which));
#define READ_U64                                       READ_U32
#define FIELD(kind, member, column, since, which, ...) READ_##kind(member, CU_DEVICE_ATTRIBUTE_##which)
#define NOT_READ(...)

/* Read the attributes of core/attributes.h; NaN for one that the driver does not know. */
static void read_attributes(const kprof_driver_api *driver, CUdevice device, double out[KPROF_DEVICE_ATTRIBUTE_COUNT])
{
#define NUMBER(name, attribute, ...) CU_DEVICE_ATTRIBUTE_##attribute,
    static const CUdevice_attribute numbers[] = {KPROF_DEVICE_ATTRIBUTES(NUMBER)};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int value = 0;
        out[i] = driver->cuDeviceGetAttribute_(&value, numbers[i], device) == CUDA_SUCCESS ? value : NAN;
    }
}

static void read_texts(const kprof_driver_api *driver, CUdevice device, kprof_device_record *out)
{
    CUuuid uuid = {{0}};
    driver->cuDeviceGetName_(kept[device].name, sizeof kept[device].name, device);
    driver->cuDeviceGetUuid_(&uuid, device);
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        snprintf(kept[device].uuid + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
    out->name = kept[device].name;
    out->uuid = kept[device].uuid;
}

static kprof_status read_device(uint32_t device, kprof_device_record *out)
{
    const kprof_driver_api *driver;
    const kprof_cupti_api *cupti;
    CUdevice handle;
    kprof_status status = kprof_driver_load(&driver);
    KPROF_THEN(status, kprof_cupti_load(&cupti));
    if (status != KPROF_OK)
        return status;
    if (driver->cuDeviceGet_(&handle, (int)device) != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "device %u cannot be opened", device);
    *out = (kprof_device_record){.device = device};
    KPROF_DEVICE_FIELDS(FIELD, NOT_READ, NOT_READ)
    read_attributes(driver, handle, kept[device].attributes);
    out->attribute_count = KPROF_DEVICE_ATTRIBUTE_COUNT;
    out->attributes = kept[device].attributes;
    read_texts(driver, handle, out);
    KPROF_CUPTI_PARAMS(params, Device_GetChipName, .deviceIndex = device);
    out->chip = cupti->cuptiDeviceGetChipName(&params) == CUPTI_SUCCESS ? params.pChipName : "";
    size_t bytes = 0;
    int version = 0;
    driver->cuDeviceTotalMem_(&bytes, handle);
    driver->cuDriverGetVersion_(&version);
    cupti->cuptiGetVersion(&out->cupti_version);
    out->memory_bytes = bytes;
    out->driver_version = (uint32_t)version;
    return KPROF_OK;
}

/* Every chosen launch asks, so the answer is kept. */
kprof_status kprof_target_device(uint32_t device, kprof_device_record *out)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static kprof_device_record known[MAX_DEVICES];
    if (device >= MAX_DEVICES)
        return kprof_fail(KPROF_UNSUPPORTED, "device %u: kprof counts to %d", device, MAX_DEVICES - 1);
    KPROF_HOLD(mutex);
    kprof_status status = known[device].name ? KPROF_OK : read_device(device, &known[device]);
    *out = known[device];
    return status;
}

typedef enum pageable { PAGEABLE_UNKNOWN, PAGEABLE_NO, PAGEABLE_YES } pageable;

static atomic_int reaches_pageable; /* a `pageable` */

bool kprof_target_reaches_pageable(void)
{
    const kprof_driver_api *driver;
    int count = 0, known = atomic_load_explicit(&reaches_pageable, memory_order_relaxed);
    if (known != PAGEABLE_UNKNOWN)
        return known == PAGEABLE_YES;
    if (kprof_driver_load(&driver) != KPROF_OK)
        return true;
    bool reaches = driver->cuDeviceGetCount_(&count) != CUDA_SUCCESS;
    for (int device = 0; device < count && !reaches; device++) {
        int this_one = 1;
        CUresult result = driver->cuDeviceGetAttribute_(&this_one, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device);
        reaches = result != CUDA_SUCCESS || this_one;
    }
    atomic_store(&reaches_pageable, reaches ? PAGEABLE_YES : PAGEABLE_NO);
    return reaches;
}
