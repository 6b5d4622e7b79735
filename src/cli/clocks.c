/* Clocks by NVML. NVPW can lock them too, but NVML documents what its calls do and who may make them, and what it has
 * locked can be unlocked by hand with nvidia-smi. */
#include "cli/clocks.h"

#include "core/log.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML_NAME "libnvidia-ml.so.1"

/* From nvml.h, which is not needed for these few. */
enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
};
#define NVML_CLOCK_GRAPHICS     0u
#define NVML_CLOCK_LIMIT_ID_TDP 0xffffff01u /* instead of a frequency in MHz: the base clock */

typedef struct nvmlDevice_st *nvml_device;

typedef struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int result);
    int (*find)(const char *pci_address, nvml_device *out);
    int (*get_mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
    int (*get_max_clock)(nvml_device device, unsigned type, unsigned *mhz);
    int (*lock)(nvml_device device, unsigned min_mhz, unsigned max_mhz);
    int (*unlock)(nvml_device device);
} nvml_api;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"nvmlInit_v2", offsetof(nvml_api, init)},
    {"nvmlShutdown", offsetof(nvml_api, shutdown)},
    {"nvmlErrorString", offsetof(nvml_api, error_text)},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(nvml_api, find)},
    {"nvmlDeviceGetMigMode", offsetof(nvml_api, get_mig_mode)},
    {"nvmlDeviceGetMaxClockInfo", offsetof(nvml_api, get_max_clock)},
    {"nvmlDeviceSetGpuLockedClocks", offsetof(nvml_api, lock)},
    {"nvmlDeviceResetGpuLockedClocks", offsetof(nvml_api, unlock)},
};

typedef struct locked_device {
    nvml_device handle;
    char address[KPROF_PCI_ADDRESS_SIZE];
} locked_device;

struct kprof_clocks {
    nvml_api nvml;
    bool is_initialized;
    size_t locked_count;
    locked_device locked[KPROF_CLOCK_DEVICES_MAX];
};

static kprof_status load(nvml_api *nvml)
{
    void *library = dlopen(NVML_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return kprof_fail(KPROF_UNSUPPORTED,
                          "--clock-control needs NVML, which comes with the driver: %s; in a container, let "
                          "NVIDIA_DRIVER_CAPABILITIES include utility",
                          dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function)
            return kprof_fail(KPROF_UNSUPPORTED, "--clock-control: the driver is too old: " NVML_NAME " has no %s",
                              functions[i].name);
        memcpy((char *)nvml + functions[i].offset, &function, sizeof function);
    }
    return KPROF_OK;
}

/* Why NVML refused, as kprof's status and with the way out. */
static kprof_status explain(const nvml_api *nvml, int result, const char *what)
{
    static const struct {
        int result;
        kprof_status status;
        const char *way_out;
    } reasons[] = {
        {NVML_ERROR_NO_PERMISSION, KPROF_NO_PERMISSION, "only root may lock clocks: run kprof as root, or without it"},
        {NVML_ERROR_NOT_SUPPORTED, KPROF_UNSUPPORTED, "run kprof without it"},
        {NVML_ERROR_FUNCTION_NOT_FOUND, KPROF_UNSUPPORTED, "run kprof without it"},
        {NVML_ERROR_NOT_FOUND, KPROF_UNSUPPORTED, "NVML does not see this GPU; run kprof without it"},
        {NVML_ERROR_DRIVER_NOT_LOADED, KPROF_NO_GPU, "load the driver"},
    };
    const char *text = nvml->error_text(result);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].result == result)
            return kprof_fail(reasons[i].status, "--clock-control: %s: %s; %s", what, text, reasons[i].way_out);
    }
    return kprof_fail(KPROF_INTERNAL, "--clock-control: %s: %s (NVML error %d)", what, text, result);
}

static kprof_status initialize(kprof_clocks *clocks)
{
    kprof_status status = load(&clocks->nvml);
    if (status != KPROF_OK)
        return status;
    int result = clocks->nvml.init();
    if (result != NVML_SUCCESS)
        return explain(&clocks->nvml, result, "NVML does not start");
    clocks->is_initialized = true;
    return KPROF_OK;
}

static kprof_status lock_device(kprof_clocks *clocks, kprof_clock_control control, const char *address)
{
    locked_device *device = &clocks->locked[clocks->locked_count];
    char what[128];
    unsigned mhz = NVML_CLOCK_LIMIT_ID_TDP; /* no frequency: it stands for the base clock */
    snprintf(what, sizeof what, "cannot lock the clock of GPU %s", address);
    snprintf(device->address, sizeof device->address, "%s", address);
    int result = clocks->nvml.find(address, &device->handle);
    unsigned mig_mode = 0, pending = 0;
    if (result == NVML_SUCCESS && clocks->nvml.get_mig_mode(device->handle, &mig_mode, &pending) == NVML_SUCCESS &&
        mig_mode != 0)
        return kprof_fail(KPROF_UNSUPPORTED,
                          "--clock-control: %s: it is divided into MIG instances, which share the clock; run kprof "
                          "without it",
                          what);
    if (result == NVML_SUCCESS && control == KPROF_CLOCKS_BOOST)
        result = clocks->nvml.get_max_clock(device->handle, NVML_CLOCK_GRAPHICS, &mhz);
    if (result == NVML_SUCCESS)
        result = clocks->nvml.lock(device->handle, mhz, mhz);
    if (result != NVML_SUCCESS)
        return explain(&clocks->nvml, result, what);
    clocks->locked_count++;
    if (control == KPROF_CLOCKS_BOOST)
        kprof_log(KPROF_LOG_INFO, "GPU %s: graphics clock locked at its maximum, %u MHz, for this run", address, mhz);
    else
        kprof_log(KPROF_LOG_INFO, "GPU %s: graphics clock locked at its base frequency for this run", address);
    return KPROF_OK;
}

kprof_status kprof_clocks_lock(const kprof_clock_request *request, kprof_clocks **out)
{
    *out = NULL;
    kprof_clocks *clocks = calloc(1, sizeof *clocks);
    if (!clocks)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    kprof_status status = initialize(clocks);
    for (size_t i = 0; i < request->device_count && status == KPROF_OK; i++)
        status = lock_device(clocks, request->control, request->devices[i]);
    if (status == KPROF_OK)
        *out = clocks;
    else
        (void)!kprof_clocks_unlock(clocks); /* has said what went wrong */
    return status;
}

kprof_status kprof_clocks_unlock(kprof_clocks *clocks)
{
    kprof_status status = KPROF_OK;
    if (!clocks)
        return KPROF_OK;
    for (size_t i = 0; i < clocks->locked_count; i++) {
        const locked_device *device = &clocks->locked[i];
        int result = clocks->nvml.unlock(device->handle);
        if (result == NVML_SUCCESS)
            kprof_log(KPROF_LOG_DEBUG, "GPU %s: graphics clock unlocked", device->address);
        else
            status = kprof_fail(KPROF_INTERNAL,
                                "GPU %s: its clock stays locked: %s; to unlock it: " KPROF_CLOCKS_UNLOCK_COMMAND,
                                device->address, clocks->nvml.error_text(result), device->address);
    }
    if (clocks->is_initialized)
        clocks->nvml.shutdown();
    free(clocks);
    return status;
}
