/* The command line's look at the machine before the application starts. */
#include "cupti/probe.h"

#include "core/log.h"
#include "cupti/driver.h"
#include "cupti/load.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARAMS_FILE "/proc/driver/nvidia/params"

/* RmProfilingAdminOnly as the kernel module has it: 0 or 1; -1 when the file or the line is missing. */
static int read_admin_only(void)
{
    FILE *file = fopen(PARAMS_FILE, "re");
    char line[256];
    int value = -1;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RmProfilingAdminOnly: %d", &value) == 1)
            break;
    if (file)
        fclose(file);
    return value;
}

static bool has_sys_admin(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long effective = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    if (file)
        fclose(file);
    return geteuid() == 0 || (effective >> CAP_SYS_ADMIN & 1) != 0;
}

static kprof_status check_permission(void)
{
    int admin_only = read_admin_only();
    if (admin_only != 1 || has_sys_admin())
        return KPROF_OK;
    return kprof_fail(
        KPROF_NO_PERMISSION,
        "the driver keeps GPU counters from this user: RmProfilingAdminOnly is %d in " PARAMS_FILE
        ". Run kprof as root or with CAP_SYS_ADMIN, or have an administrator write `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reload the nvidia module; "
        "in a container, start it with --cap-add=SYS_ADMIN",
        admin_only);
}

static kprof_status initialize(const kprof_driver_api *driver, const kprof_cupti_api *cupti, int *count)
{
    CUresult result = driver->cuInit_(0);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_NO_GPU, "the NVIDIA driver does not start: cuInit gives %s",
                          kprof_driver_error(result));
    result = driver->cuDeviceGetCount_(count);
    if (result != CUDA_SUCCESS || *count == 0)
        return kprof_fail(KPROF_NO_GPU, "the NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)");
    CUpti_Profiler_Initialize_Params params = {.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    CUptiResult status = cupti->cuptiProfilerInitialize(&params);
    if (status != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "cuptiProfilerInitialize failed (CUPTI error %d)", (int)status);
    return KPROF_OK;
}

static void read_device(const kprof_driver_api *driver, const kprof_cupti_api *cupti, kprof_probe_device *device, int i)
{
    CUdevice handle;
    if (driver->cuDeviceGet_(&handle, i) == CUDA_SUCCESS)
        driver->cuDeviceGetName_(device->name, sizeof device->name, handle);
    CUpti_Device_GetChipName_Params params = {.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    params.deviceIndex = (size_t)i;
    if (cupti->cuptiDeviceGetChipName(&params) == CUPTI_SUCCESS)
        snprintf(device->chip, sizeof device->chip, "%s", params.pChipName);
}

kprof_status kprof_probe_devices(kprof_probe *out)
{
    *out = (kprof_probe){0};
    const kprof_driver_api *driver;
    const kprof_cupti_api *cupti;
    int count = 0;
    kprof_status status = kprof_driver_load(&driver);
    if (status == KPROF_OK)
        status = check_permission();
    if (status == KPROF_OK)
        status = kprof_cupti_load(&cupti);
    if (status == KPROF_OK)
        status = initialize(driver, cupti, &count);
    if (status != KPROF_OK)
        return status;
    out->devices = calloc((size_t)count, sizeof *out->devices);
    if (!out->devices)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for %d devices", count);
    out->device_count = (size_t)count;
    for (int i = 0; i < count; i++)
        read_device(driver, cupti, &out->devices[i], i);
    return KPROF_OK;
}

void kprof_probe_free(kprof_probe *probe)
{
    free(probe->devices);
    *probe = (kprof_probe){0};
}
