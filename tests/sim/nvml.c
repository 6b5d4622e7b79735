/* A libnvidia-ml.so.1 for tests, found through LD_LIBRARY_PATH: its calls become lines of the file KPROF_FAKE_NVML_LOG
 * and touch no GPU. KPROF_FAKE_NVML_FAULT, "FUNCTION GPU RESULT", makes one call fail; with "hang" for a result it
 * takes a second; "mig" divides the GPUs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT    __attribute__((visibility("default")))
#define GPU_COUNT 4

typedef struct gpu {
    char address[32];
} gpu;

static gpu gpus[GPU_COUNT];

static void __attribute__((format(printf, 1, 2))) record(const char *format, ...)
{
    const char *path = getenv("KPROF_FAKE_NVML_LOG");
    FILE *log = path ? fopen(path, "ae") : NULL;
    va_list args;
    if (!log)
        abort();
    va_start(args, format);
    vfprintf(log, format, args);
    va_end(args);
    fclose(log);
}

/* The result that the test wants from `function` on a GPU; "-" is the address of calls that have none. */
static int outcome(const char *function, const char *address)
{
    const char *fault = getenv("KPROF_FAKE_NVML_FAULT");
    char name[64], where[32], result[16];
    if (!fault || sscanf(fault, "%63s %31s %15s", name, where, result) != 3)
        return 0;
    if (strcmp(name, function) != 0 || strcmp(where, address) != 0)
        return 0;
    if (strcmp(result, "hang") != 0)
        return atoi(result);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return 0;
}

static void __attribute__((constructor)) loaded(void)
{
    record("load\n");
}

EXPORT int nvmlInit_v2(void)
{
    record("init\n");
    return outcome("init", "-");
}

EXPORT int nvmlShutdown(void)
{
    record("shutdown\n");
    return 0;
}

EXPORT const char *nvmlErrorString(int result)
{
    switch (result) {
    case 3:
        return "Not Supported";
    case 4:
        return "Insufficient Permissions";
    default:
        return "Simulated Error";
    }
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *address, gpu **out)
{
    for (int i = 0; i < GPU_COUNT; i++) {
        if (gpus[i].address[0] == '\0')
            snprintf(gpus[i].address, sizeof gpus[i].address, "%s", address);
        *out = &gpus[i];
        if (strcmp(gpus[i].address, address) == 0)
            return outcome("find", address);
    }
    return 6;
}

EXPORT int nvmlDeviceGetMigMode(const gpu *device, unsigned *current, unsigned *pending)
{
    const char *fault = getenv("KPROF_FAKE_NVML_FAULT");
    (void)device;
    *current = *pending = fault && strcmp(fault, "mig") == 0;
    return *current ? 0 : 3;
}

EXPORT int nvmlDeviceGetMaxClockInfo(const gpu *device, unsigned type, unsigned *mhz)
{
    *mhz = type == 0 ? 1980 : 0;
    return outcome("max", device->address);
}

EXPORT int nvmlDeviceSetGpuLockedClocks(const gpu *device, unsigned min_mhz, unsigned max_mhz)
{
    record("lock %s %x %x\n", device->address, min_mhz, max_mhz);
    return outcome("lock", device->address);
}

EXPORT int nvmlDeviceResetGpuLockedClocks(const gpu *device)
{
    record("unlock %s\n", device->address);
    return outcome("unlock", device->address);
}
