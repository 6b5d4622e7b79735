/* The command line's look at the machine before the application starts. */
#include "cupti/probe.h"

#include "core/cache.h"
#include "core/files.h"
#include "core/log.h"
#include "cupti/driver.h"
#include "host/load.h"

#include <dirent.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_FOLDER "/proc/driver/nvidia"
#define PARAMS_FILE   DRIVER_FOLDER "/params"

static bool has_sys_admin(void)
{
    uint64_t effective = 0;
    kprof_proc_number(&(kprof_proc_file){"", "/proc/self/status"}, "CapEff", 16, &effective);
    return geteuid() == 0 || (effective >> CAP_SYS_ADMIN & 1) != 0;
}

static kprof_status check_permission(void)
{
    uint64_t admin_only = 0;
    kprof_proc_number(&(kprof_proc_file){"", PARAMS_FILE}, "RmProfilingAdminOnly", 10, &admin_only);
    if (admin_only != 1 || has_sys_admin())
        return KPROF_OK;
    return kprof_fail(
        KPROF_NO_PERMISSION,
        "the driver keeps GPU counters from this user (ERR_NVGPUCTRPERM): RmProfilingAdminOnly is 1 in " PARAMS_FILE
        ". Run kprof as root or with CAP_SYS_ADMIN, or have an administrator write `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reload the nvidia module; "
        "in a container, start it with --cap-add=SYS_ADMIN");
}

static kprof_status initialize(const kprof_driver_api *driver, const kprof_cupti_api *cupti, int *count)
{
    unsetenv("CUDA_INJECTION64_PATH"); /* else the driver loads another profiler into kprof itself */
    CUresult result = driver->cuInit_(0);
    if (result == CUDA_ERROR_STUB_LIBRARY)
        return kprof_fail(KPROF_NO_GPU,
                          "libcuda.so.1 is the stub of a CUDA toolkit, which is for linking and starts no "
                          "GPU: take its folder out of LD_LIBRARY_PATH");
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_DEVICE)
        return kprof_fail(KPROF_NO_GPU, "the NVIDIA driver does not start: cuInit gives %s",
                          kprof_driver_error(result));
    KPROF_THEN(result, driver->cuDeviceGetCount_(count));
    if (result == CUDA_SUCCESS && *count == 0)
        result = CUDA_ERROR_NO_DEVICE;
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_NO_GPU,
                          "the NVIDIA driver finds no GPU (%s): is CUDA_VISIBLE_DEVICES empty, or /dev/nvidia0 "
                          "missing, as in a container without --gpus?",
                          kprof_driver_error(result));
    KPROF_CUPTI_PARAMS(params, Profiler_Initialize);
    CUptiResult status = cupti->cuptiProfilerInitialize(&params);
    if (status != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "cuptiProfilerInitialize failed (CUPTI error %d)", (int)status);
    return KPROF_OK;
}

/* Atomics reach the memory of another GPU over NVLink, and not over PCIe. */
static bool is_linked(const kprof_driver_api *driver, CUdevice device)
{
    CUdevice other;
    int count = 0, reaches = 0;
    if (driver->cuDeviceGetCount_(&count) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < count && !reaches; i++)
        if (driver->cuDeviceGet_(&other, i) != CUDA_SUCCESS || other == device ||
            driver->cuDeviceGetP2PAttribute_(&reaches, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device,
                                             other) != CUDA_SUCCESS)
            reaches = 0;
    return reaches != 0;
}

static void read_device(const kprof_driver_api *driver, const kprof_cupti_api *cupti, kprof_probe_device *device, int i)
{
    CUdevice handle;
    size_t memory_bytes;
    if (driver->cuDeviceGet_(&handle, i) == CUDA_SUCCESS) {
        device->is_linked = is_linked(driver, handle);
        driver->cuDeviceGetName_(device->name, sizeof device->name, handle);
        if (driver->cuDeviceTotalMem_(&memory_bytes, handle) == CUDA_SUCCESS)
            device->memory_bytes = memory_bytes;
    }
    KPROF_CUPTI_PARAMS(params, Device_GetChipName, .deviceIndex = (size_t)i);
    if (cupti->cuptiDeviceGetChipName(&params) == CUPTI_SUCCESS)
        snprintf(device->chip, sizeof device->chip, "%s", params.pChipName);
}

static kprof_status ask_driver(const kprof_driver_api *driver, kprof_probe *out)
{
    const kprof_cupti_api *cupti;
    int count = 0;
    kprof_status status = kprof_cupti_load(&cupti);
    KPROF_THEN(status, initialize(driver, cupti, &count));
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

static bool append_file(kprof_strbuf *key, const char *path)
{
    KPROF_AUTO_FCLOSE FILE *file = fopen(path, "re");
    char line[512];
    while (file && fgets(line, sizeof line, file))
        kprof_strbuf_puts(key, line);
    return file != NULL;
}

/* The key names all that the answer depends on: the driver, the GPUs on their buses, and which of them the application
 * may see. Starting the driver to ask costs a quarter of a second. False where the driver does not list its GPUs. */
static bool make_key(kprof_strbuf *key)
{
    static const char *const variables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
                                            "CUDA_MPS_PIPE_DIRECTORY"};
    kprof_strbuf_printf(key, "probe 4 %s\n", KPROF_VERSION);
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        const char *value = getenv(variables[i]);
        kprof_strbuf_printf(key, "%s %s\n", variables[i], value ? value : "(unset)");
    }
    struct dirent **gpus;
    int count =
        append_file(key, DRIVER_FOLDER "/version") ? scandir(DRIVER_FOLDER "/gpus", &gpus, NULL, alphasort) : -1;
    int found = 0;
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, DRIVER_FOLDER "/gpus/%s/information", gpus[i]->d_name);
        found += gpus[i]->d_name[0] != '.' && append_file(key, path);
        free(gpus[i]);
    }
    if (count >= 0)
        free(gpus);
    return found > 0 && !key->failed;
}

static bool recall(const kprof_strbuf *key, kprof_probe *out)
{
    KPROF_AUTO(kprof_strbuf) found = KPROF_STRBUF_INIT;
    size_t size = sizeof *out->devices;
    if (kprof_cache_get(key, &found) && found.length >= size && found.length % size == 0) {
        out->devices = calloc(found.length / size, size);
        out->device_count = out->devices ? found.length / size : 0;
    }
    if (out->device_count > 0)
        memcpy(out->devices, found.data, found.length);
    for (size_t i = 0; i < out->device_count; i++) {
        out->devices[i].name[sizeof out->devices[i].name - 1] = '\0';
        out->devices[i].chip[sizeof out->devices[i].chip - 1] = '\0';
    }
    return out->device_count > 0;
}

kprof_status kprof_probe_devices(kprof_probe *out)
{
    *out = (kprof_probe){0};
    const kprof_driver_api *driver;
    kprof_status status = kprof_driver_load(&driver);
    if (status != KPROF_OK)
        return status;
    KPROF_AUTO(kprof_strbuf) key = KPROF_STRBUF_INIT;
    bool has_key = make_key(&key);
    if (!has_key || !recall(&key, out)) {
        status = ask_driver(driver, out);
        if (status == KPROF_OK && has_key)
            kprof_cache_put(&key, out->devices, out->device_count * sizeof *out->devices);
    }
    return KPROF_THEN(status, check_permission());
}

kprof_status kprof_probe_ask_versions(kprof_probe_versions *out)
{
    const kprof_cupti_api *cupti;
    const kprof_driver_api *driver;
    int driver_version = 0;
    *out = (kprof_probe_versions){0};
    kprof_status status = kprof_cupti_load(&cupti);
    if (status != KPROF_OK)
        return status;
    if (cupti->cuptiGetVersion(&out->cupti) != CUPTI_SUCCESS)
        out->cupti = 0;
    const bool has_driver = KPROF_MUTE(kprof_driver_load(&driver)) == KPROF_OK;
    if (has_driver && driver->cuDriverGetVersion_(&driver_version) == CUDA_SUCCESS && driver_version > 0)
        out->driver = (uint32_t)driver_version;
    return KPROF_OK;
}

static kprof_probe_obstacle find_obstacle(const CUpti_Profiler_DeviceSupported_Params *params)
{
    const struct {
        CUpti_Profiler_Support_Level level, is;
        kprof_probe_obstacle obstacle;
    } rows[] = {
        {params->confidentialCompute, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, KPROF_PROBE_CONFIDENTIAL},
        {params->vGpu, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, KPROF_PROBE_VGPU},
        {params->vGpu, CUPTI_PROFILER_CONFIGURATION_DISABLED, KPROF_PROBE_VGPU_DISABLED},
        {params->sli, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, KPROF_PROBE_SLI},
        {params->cmp, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, KPROF_PROBE_MINING},
        {params->wsl, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, KPROF_PROBE_WSL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].level == rows[i].is)
            return rows[i].obstacle;
    return KPROF_PROBE_NO_OBSTACLE;
}

kprof_probe_obstacle kprof_probe_find_obstacle(size_t device)
{
    const kprof_cupti_api *cupti;
    const kprof_driver_api *driver;
    int count = 0;
    KPROF_CUPTI_PARAMS(params, Profiler_DeviceSupported, .api = CUPTI_PROFILER_RANGE_PROFILING);
    if (kprof_driver_load(&driver) != KPROF_OK || kprof_cupti_load(&cupti) != KPROF_OK ||
        initialize(driver, cupti, &count) != KPROF_OK ||
        driver->cuDeviceGet_(&params.cuDevice, (int)device) != CUDA_SUCCESS ||
        cupti->cuptiProfilerDeviceSupported(&params) != CUPTI_SUCCESS)
        return KPROF_PROBE_NO_OBSTACLE;
    return params.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED ? KPROF_PROBE_NO_OBSTACLE
                                                                        : find_obstacle(&params);
}

void kprof_probe_free(kprof_probe *probe)
{
    free(probe->devices);
    *probe = (kprof_probe){0};
}
