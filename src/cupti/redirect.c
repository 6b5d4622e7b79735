/* Tries once, with two things of kprof's own, whether the driver takes another argument. */
#include "cupti/redirect.h"

#include "core/log.h"

#include <stdatomic.h>

typedef enum redirects { REDIRECTS_UNKNOWN, REDIRECTS_NO, REDIRECTS_YES } redirects;

static atomic_int known[2];                 /* `redirects`: of memory, of modules */
static __thread const kprof_thing *instead; /* the next such call, which is kprof's own, frees this; NULL: no other */

bool kprof_thing_make(const kprof_driver_api *driver, const void *code, size_t bytes, kprof_thing *out)
{
    *out = (kprof_thing){0};
    if (!code)
        return driver->cuMemAlloc_(&out->memory, bytes) == CUDA_SUCCESS;
    if (driver->cuModuleLoadData_(&out->module, code) != CUDA_SUCCESS)
        return false;
    if (driver->cuModuleGetGlobal_(&out->memory, &bytes, out->module, KPROF_VARIABLE) == CUDA_SUCCESS)
        return true;
    (void)driver->cuModuleUnload_(out->module);
    return false;
}

CUresult kprof_thing_free(const kprof_driver_api *driver, const kprof_thing *thing)
{
    return thing->module ? driver->cuModuleUnload_(thing->module) : driver->cuMemFree_(thing->memory);
}

static bool is_there(const kprof_driver_api *driver, const kprof_thing *thing)
{
    CUdeviceptr base;
    size_t size_bytes;
    if (thing->module)
        return driver->cuPointerGetAttribute_(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, thing->memory) ==
               CUDA_SUCCESS;
    return driver->cuMemGetAddressRange_(&base, &size_bytes, thing->memory) == CUDA_SUCCESS;
}

/* CUPTI's documents do not say whether a callback may change arguments, so find out. */
static redirects try_to_redirect(const kprof_driver_api *driver, const void *code)
{
    kprof_thing named, other;
    if (!kprof_thing_make(driver, code, 1, &named))
        return REDIRECTS_NO;
    if (!kprof_thing_make(driver, code, 1, &other)) {
        (void)kprof_thing_free(driver, &named);
        return REDIRECTS_NO;
    }
    instead = &other;
    const bool is_freed = kprof_thing_free(driver, &named) == CUDA_SUCCESS;
    instead = NULL;
    const bool redirected = is_freed && is_there(driver, &named) && !is_there(driver, &other);
    if (redirected || !is_freed)
        (void)kprof_thing_free(driver, &named);
    if (!redirected)
        (void)kprof_thing_free(driver, &other);
    return redirected ? REDIRECTS_YES : REDIRECTS_NO;
}

static bool find_out(const void *code)
{
    const kprof_driver_api *driver;
    atomic_int *answer = &known[code != NULL];
    if (atomic_load(answer) == REDIRECTS_UNKNOWN && kprof_driver_load(&driver) == KPROF_OK) {
        atomic_store(answer, try_to_redirect(driver, code));
        kprof_log(KPROF_LOG_DEBUG, "the driver %s what kprof names in place of the application's %s",
                  atomic_load(answer) == REDIRECTS_YES ? "takes" : "does not take", code ? "module" : "memory");
    }
    return atomic_load(answer) == REDIRECTS_YES;
}

bool kprof_redirect_works(void)
{
    return find_out(NULL);
}

bool kprof_redirect_works_for_modules(const void *code)
{
    return find_out(code);
}

bool kprof_redirect_is_refused(void)
{
    return atomic_load(&known[false]) == REDIRECTS_NO;
}

void kprof_redirect(kprof_argument argument)
{
    if (!instead)
        return;
    if (argument.is_module)
        *argument.module = instead->module;
    else
        *argument.memory = instead->memory;
}
