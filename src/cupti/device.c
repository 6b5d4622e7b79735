/* What a device is: its record for the spool, from the driver and CUPTI. */
#include "core/log.h"
#include "cupti/driver.h"
#include "cupti/target.h"
#include "planner/load.h"

#include <pthread.h>
#include <stdio.h>

#define MAX_DEVICES 64

/* Strings of the records, kept for the life of the process. */
static struct {
    char name[128], uuid[33];
} texts[MAX_DEVICES];

static uint32_t attribute(const kprof_driver_api *driver, CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return driver->cuDeviceGetAttribute_(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void read_attributes(const kprof_driver_api *driver, CUdevice device, kprof_device_record *out)
{
#define READ(field, which) out->field = attribute(driver, device, CU_DEVICE_ATTRIBUTE_##which)
    READ(cc_major, COMPUTE_CAPABILITY_MAJOR);
    READ(cc_minor, COMPUTE_CAPABILITY_MINOR);
    READ(sm_count, MULTIPROCESSOR_COUNT);
    READ(sm_clock_max_khz, CLOCK_RATE);
    READ(memory_clock_max_khz, MEMORY_CLOCK_RATE);
    READ(l2_bytes, L2_CACHE_SIZE);
    READ(memory_bus_bits, GLOBAL_MEMORY_BUS_WIDTH);
    READ(max_threads_per_sm, MAX_THREADS_PER_MULTIPROCESSOR);
    READ(max_blocks_per_sm, MAX_BLOCKS_PER_MULTIPROCESSOR);
    READ(max_registers_per_sm, MAX_REGISTERS_PER_MULTIPROCESSOR);
    READ(max_registers_per_block, MAX_REGISTERS_PER_BLOCK);
    READ(max_smem_per_sm_bytes, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    READ(max_smem_per_block_bytes, MAX_SHARED_MEMORY_PER_BLOCK);
    READ(max_smem_per_block_optin_bytes, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    READ(reserved_smem_per_block_bytes, RESERVED_SHARED_MEMORY_PER_BLOCK);
    READ(warp_size, WARP_SIZE);
#undef READ
}

static void read_texts(const kprof_driver_api *driver, CUdevice device, kprof_device_record *out)
{
    CUuuid uuid = {{0}};
    driver->cuDeviceGetName_(texts[device].name, sizeof texts[device].name, device);
    driver->cuDeviceGetUuid_(&uuid, device);
    for (size_t i = 0; i < sizeof uuid.bytes; i++)
        snprintf(texts[device].uuid + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
    out->name = texts[device].name;
    out->uuid = texts[device].uuid;
}

static const char *chip_name(const kprof_cupti_api *cupti, uint32_t device)
{
    CUpti_Device_GetChipName_Params params = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    params.deviceIndex = device;
    return cupti->cuptiDeviceGetChipName(&params) == CUPTI_SUCCESS ? params.pChipName : "";
}

static kprof_status read_device(uint32_t device, kprof_device_record *out)
{
    const kprof_driver_api *driver;
    const kprof_cupti_api *cupti;
    CUdevice handle;
    kprof_status status = kprof_driver_load(&driver);
    if (status == KPROF_OK)
        status = kprof_cupti_load(&cupti);
    if (status != KPROF_OK)
        return status;
    if (driver->cuDeviceGet_(&handle, (int)device) != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "device %u cannot be opened", device);
    *out = (kprof_device_record){.device = device};
    read_attributes(driver, handle, out);
    read_texts(driver, handle, out);
    out->chip = chip_name(cupti, device);
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
    pthread_mutex_lock(&mutex);
    kprof_status status = known[device].name ? KPROF_OK : read_device(device, &known[device]);
    *out = known[device];
    pthread_mutex_unlock(&mutex);
    return status;
}
