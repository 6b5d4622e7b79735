/* Tries once, with two allocations of kprof's own, whether the driver takes another argument. */
#include "cupti/redirect.h"

#include "cupti/driver.h"

#include <stdatomic.h>

typedef enum redirects { REDIRECTS_UNKNOWN, REDIRECTS_NO, REDIRECTS_YES } redirects;

static atomic_int known;                     /* a `redirects` */
static __thread CUdeviceptr to_free_instead; /* the next cuMemFree, which is kprof's own, frees this; 0: nothing else */

static bool is_allocated(const kprof_driver_api *driver, CUdeviceptr address)
{
    CUdeviceptr base;
    size_t size_bytes;
    return driver->cuMemGetAddressRange_(&base, &size_bytes, address) == CUDA_SUCCESS;
}

/* CUPTI's documents do not say whether a callback may change arguments, so find out. */
static redirects try_to_redirect(const kprof_driver_api *driver)
{
    CUdeviceptr named = 0, instead = 0;
    bool redirected = false;
    if (driver->cuMemAlloc_(&named, 1) == CUDA_SUCCESS && driver->cuMemAlloc_(&instead, 1) == CUDA_SUCCESS) {
        to_free_instead = instead;
        bool freed = driver->cuMemFree_(named) == CUDA_SUCCESS;
        to_free_instead = 0;
        redirected = freed && is_allocated(driver, named) && !is_allocated(driver, instead);
        named = freed && !redirected ? 0 : named;
        instead = redirected ? 0 : instead;
    }
    if (named)
        (void)driver->cuMemFree_(named);
    if (instead)
        (void)driver->cuMemFree_(instead);
    return redirected ? REDIRECTS_YES : REDIRECTS_NO;
}

bool kprof_redirect_works(void)
{
    const kprof_driver_api *driver;
    if (atomic_load(&known) == REDIRECTS_UNKNOWN && kprof_driver_load(&driver) == KPROF_OK)
        atomic_store(&known, try_to_redirect(driver));
    return atomic_load(&known) == REDIRECTS_YES;
}

bool kprof_redirect_is_refused(void)
{
    return atomic_load(&known) == REDIRECTS_NO;
}

void kprof_redirect_free(CUdeviceptr *argument)
{
    if (to_free_instead)
        *argument = to_free_instead;
}
