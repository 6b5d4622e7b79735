/* libcheckpoint for the memory, plain copies for module variables, which it leaves out. */
#include "cupti/snapshot.h"

#include "core/log.h"
#include "cupti/driver.h"
#include "cupti/load.h"
#include "cupti/modules.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Module variables are copied through host memory; beyond this the copies would cost more than all else. */
#define MAX_VARIABLE_BYTES ((size_t)256 << 20)

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
};

static bool is_saved(const kprof_snapshot *snapshot, CUdeviceptr address)
{
    for (size_t i = 0; i < snapshot->variable_count; i++)
        if (snapshot->variables[i].address == address)
            return true;
    return false;
}

static kprof_status save_variable(kprof_snapshot *snapshot, CUmodule module, const char *name)
{
    variable v = {0};
    CUresult result = snapshot->driver->cuModuleGetGlobal_(&v.address, &v.size, module, name);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "module variable %s cannot be saved: %s", name,
                          kprof_driver_error(result));
    if (is_saved(snapshot, v.address))
        return KPROF_OK;
    if (snapshot->variable_bytes + v.size > MAX_VARIABLE_BYTES)
        return kprof_fail(KPROF_UNSUPPORTED, "the module's variables are too large to save");
    v.content = malloc(v.size);
    if (!v.content)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to save %zu bytes of module variables", v.size);
    snapshot->variables[snapshot->variable_count++] = v;
    snapshot->variable_bytes += v.size;
    result = snapshot->driver->cuMemcpyDtoH_(v.content, v.address, v.size);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "module variable %s cannot be read: %s", name, kprof_driver_error(result));
    return KPROF_OK;
}

static kprof_status save_variables(kprof_snapshot *snapshot, CUfunction function, const kprof_strlist *names)
{
    CUmodule module;
    if (names->count == 0)
        return KPROF_OK;
    variable *grown =
        realloc(snapshot->variables, (snapshot->variable_count + names->count) * sizeof *snapshot->variables);
    if (!grown)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for module variables");
    snapshot->variables = grown;
    CUresult result = snapshot->driver->cuFuncGetModule_(&module, function);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "the kernel's module is not known: %s", kprof_driver_error(result));
    kprof_status status = KPROF_OK;
    for (size_t i = 0; status == KPROF_OK && i < names->count; i++)
        status = save_variable(snapshot, module, names->items[i]);
    return status;
}

kprof_status kprof_snapshot_cover(kprof_snapshot *snapshot, void *function, const char *kernel)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    kprof_status status = kprof_modules_variables(kernel, &names)
                              ? save_variables(snapshot, function, &names)
                              : kprof_fail(KPROF_NO_MEMORY, "no memory for the names of module variables");
    kprof_strlist_free(&names);
    return status;
}

static kprof_status save_memory(kprof_snapshot *snapshot, void *context)
{
    snapshot->params = (kprof_checkpoint_params){
        .struct_size = KPROF_CHECKPOINT_PARAMS_SIZE,
        .context = context,
        .allow_overwrite = 1,
    };
    CUptiResult result = snapshot->checkpoint->cuptiCheckpointSave(&snapshot->params);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY)
        return kprof_fail(KPROF_NO_MEMORY, "no room to save the context's memory");
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "the context's memory cannot be saved (CUPTI error %d)", (int)result);
    snapshot->saved = true;
    return KPROF_OK;
}

kprof_status kprof_snapshot_take(void *context, void *function, const char *kernel, kprof_snapshot **out)
{
    *out = NULL;
    kprof_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a snapshot");
    kprof_status status = kprof_driver_load(&snapshot->driver);
    if (status == KPROF_OK)
        status = kprof_checkpoint_load(&snapshot->checkpoint);
    if (status == KPROF_OK)
        status = kprof_snapshot_cover(snapshot, function, kernel);
    if (status == KPROF_OK)
        status = save_memory(snapshot, context);
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
    for (size_t i = 0; i < snapshot->variable_count; i++) {
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
