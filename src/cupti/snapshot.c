/* libcheckpoint for the memory, plain copies for module variables, which it leaves out. */
#include "cupti/snapshot.h"

#include "core/config.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/monotonic.h"
#include "cupti/driver.h"
#include "cupti/load.h"
#include "cupti/variables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Module variables are copied through host memory; beyond this the copies would cost more than all else. */
#define MAX_VARIABLE_BYTES ((size_t)256 << 20)
/* Of host memory, what saving leaves free. */
#define HOST_RESERVE_BYTES ((size_t)4 << 30)
#define MEBIBYTE           ((size_t)1 << 20)
#define GIGABYTE           1e9

typedef struct variable {
    CUdeviceptr address;
    size_t size;
    void *content; /* [size], owned */
} variable;

struct kprof_snapshot {
    const kprof_checkpoint_api *checkpoint;
    const kprof_driver_api *driver;
    kprof_checkpoint_params params;
    bool saved;
    variable *variables; /* [variable_count] */
    size_t variable_count, variable_bytes;
    bool covered; /* has all module variables of `version` */
    unsigned version;
    double host_save_s; /* 0: all of it is on the device */
};

static bool is_saved(const kprof_snapshot *snapshot, CUdeviceptr address, size_t size)
{
    for (size_t i = 0; i < snapshot->variable_count; i++) {
        const variable *v = &snapshot->variables[i];
        if (v->address <= address && address + size <= v->address + v->size)
            return true;
    }
    return false;
}

static bool add_room(kprof_snapshot *snapshot, size_t more)
{
    variable *grown = realloc(snapshot->variables, (snapshot->variable_count + more) * sizeof *grown);
    if (grown)
        snapshot->variables = grown;
    return grown != NULL;
}

/* Copy a variable to the host; `variables` has room for it. */
static kprof_status save_variable(kprof_snapshot *snapshot, variable v)
{
    if (snapshot->variable_bytes + v.size > MAX_VARIABLE_BYTES)
        return kprof_fail(KPROF_UNSUPPORTED, "the module's variables are too large to save");
    v.content = malloc(v.size);
    if (!v.content)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to save %zu bytes of module variables", v.size);
    CUresult result = snapshot->driver->cuMemcpyDtoH_(v.content, v.address, v.size);
    if (result != CUDA_SUCCESS) {
        free(v.content);
        return kprof_fail(KPROF_UNSUPPORTED, "a module variable cannot be read: %s", kprof_driver_error(result));
    }
    snapshot->variables[snapshot->variable_count++] = v;
    snapshot->variable_bytes += v.size;
    return KPROF_OK;
}

/* How much there is from an address on, to the end of its allocation; 0 when that is not known. */
static size_t measure_rest(const kprof_driver_api *driver, CUdeviceptr address)
{
    CUdeviceptr start = 0;
    size_t size_bytes = 0;
    if (driver->cuPointerGetAttribute_(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) != CUDA_SUCCESS ||
        driver->cuPointerGetAttribute_(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) != CUDA_SUCCESS)
        return 0;
    return size_bytes - (size_t)(address - start);
}

/* What cannot be read is gone, with its module; where it was there may be less by now. */
static kprof_status save_known(kprof_snapshot *snapshot, const kprof_variable *known)
{
    unsigned char first;
    const kprof_driver_api *driver = snapshot->driver;
    if (known->size_bytes > 0 && is_saved(snapshot, known->address, known->size_bytes))
        return KPROF_OK;
    CUresult result = driver->cuMemcpyDtoH_(&first, known->address, 1);
    if (result == CUDA_ERROR_INVALID_VALUE) {
        kprof_variables_drop(known->context, known->address);
        return KPROF_OK;
    }
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "a module variable cannot be read: %s", kprof_driver_error(result));
    size_t rest = measure_rest(driver, known->address), size_bytes = known->size_bytes;
    if (size_bytes == 0 || (rest > 0 && rest < size_bytes))
        size_bytes = rest;
    if (size_bytes == 0)
        return kprof_fail(KPROF_UNSUPPORTED, "the size of a module variable is not known");
    if (is_saved(snapshot, known->address, size_bytes))
        return KPROF_OK;
    return save_variable(snapshot, (variable){known->address, size_bytes, NULL});
}

kprof_status kprof_snapshot_cover(kprof_snapshot *snapshot)
{
    unsigned version = kprof_variables_version();
    kprof_variable *known;
    size_t count;
    if (snapshot->covered && snapshot->version == version)
        return KPROF_OK;
    if (!kprof_variables_list(snapshot->params.context, &known, &count))
        return kprof_fail(KPROF_UNSUPPORTED, "the module variables are not known");
    kprof_status status =
        add_room(snapshot, count + 1) ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory for module variables");
    for (size_t i = 0; i < count && status == KPROF_OK; i++)
        status = save_known(snapshot, &known[i]);
    free(known);
    snapshot->covered = status == KPROF_OK;
    snapshot->version = version;
    return status;
}

/* How much of the device's memory in use has to go to the host. What other processes hold there counts, too, since
 * nothing tells it apart. */
static kprof_status plan_room(const kprof_snapshot *snapshot, size_t *host_bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    CUresult result = snapshot->driver->cuMemGetInfo_(&free_bytes, &total_bytes);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "the device does not tell its memory: %s", kprof_driver_error(result));
    size_t used = total_bytes - free_bytes;
    size_t room = free_bytes > KPROF_DEVICE_RESERVE_BYTES ? free_bytes - KPROF_DEVICE_RESERVE_BYTES : 0;
    *host_bytes = used > room ? used - room : 0;
    size_t available = kprof_memory_available_bytes();
    if (*host_bytes > 0 && *host_bytes + HOST_RESERVE_BYTES > available)
        return kprof_fail(KPROF_NO_MEMORY,
                          "saving %.1f GB of device memory takes %.1f GB of host memory, and %.1f GB are available",
                          (double)used / GIGABYTE, (double)*host_bytes / GIGABYTE, (double)available / GIGABYTE);
    return KPROF_OK;
}

static kprof_status save_memory(kprof_snapshot *snapshot)
{
    size_t host_bytes = 0;
    kprof_status status = plan_room(snapshot, &host_bytes);
    if (status != KPROF_OK)
        return status;
    snapshot->params.reserve_device_mb = host_bytes > 0 ? KPROF_DEVICE_RESERVE_BYTES / MEBIBYTE : 0;
    int64_t start_ns = kprof_monotonic_ns();
    CUptiResult result = snapshot->checkpoint->cuptiCheckpointSave(&snapshot->params);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY)
        return kprof_fail(KPROF_NO_MEMORY, "no room to save the context's memory");
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "the context's memory cannot be saved (CUPTI error %d)", (int)result);
    snapshot->saved = true;
    if (host_bytes > 0)
        snapshot->host_save_s = kprof_monotonic_lap_ms(&start_ns) * 1e-3;
    return KPROF_OK;
}

double kprof_snapshot_host_save_s(const kprof_snapshot *snapshot)
{
    return snapshot->host_save_s;
}

kprof_status kprof_snapshot_take(void *context, kprof_snapshot **out)
{
    *out = NULL;
    kprof_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a snapshot");
    snapshot->params = (kprof_checkpoint_params){
        .struct_size = KPROF_CHECKPOINT_PARAMS_SIZE,
        .context = context,
        .allow_overwrite = 1,
    };
    kprof_status status = kprof_driver_load(&snapshot->driver);
    if (status == KPROF_OK)
        status = kprof_checkpoint_load(&snapshot->checkpoint);
    if (status == KPROF_OK)
        status = kprof_snapshot_cover(snapshot);
    if (status == KPROF_OK)
        status = save_memory(snapshot);
    if (status != KPROF_OK) {
        kprof_snapshot_free(snapshot);
        return status;
    }
    *out = snapshot;
    return KPROF_OK;
}

kprof_status kprof_snapshot_restore(kprof_snapshot *snapshot)
{
    CUptiResult restored = snapshot->checkpoint->cuptiCheckpointRestore(&snapshot->params);
    if (restored != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "the context's memory cannot be restored (CUPTI error %d)", (int)restored);
    for (size_t i = snapshot->variable_count; i-- > 0;) { /* where they overlap, what was saved first is older */
        const variable *v = &snapshot->variables[i];
        CUresult result = snapshot->driver->cuMemcpyHtoD_(v->address, v->content, v->size);
        if (result != CUDA_SUCCESS)
            return kprof_fail(KPROF_INTERNAL, "module variables cannot be restored: %s", kprof_driver_error(result));
    }
    return KPROF_OK;
}

void kprof_snapshot_free(kprof_snapshot *snapshot)
{
    if (!snapshot)
        return;
    if (snapshot->saved)
        (void)snapshot->checkpoint->cuptiCheckpointFree(&snapshot->params);
    for (size_t i = 0; i < snapshot->variable_count; i++)
        free(snapshot->variables[i].content);
    free(snapshot->variables);
    free(snapshot);
}
