/* Opens libcuda at run time and fills the table of driver functions. Tests have another table in place of this file. */
#include "cupti/driver.h"

#include "core/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define STRINGIFY(name) #name
#define SYMBOL(name)    STRINGIFY(name)

static struct {
    kprof_driver_api api;
    kprof_status status; /* of loading it */
    pthread_once_t once;
} driver = {.status = KPROF_NO_GPU, .once = PTHREAD_ONCE_INIT};

static void *find_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        driver.status = kprof_fail(KPROF_UNSUPPORTED, "the driver is too old for kprof: libcuda.so.1 has no %s", name);
    return symbol;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        driver.status = kprof_fail(KPROF_NO_GPU, "no NVIDIA driver: %s", dlerror());
        return;
    }
    driver.status = KPROF_OK;
    void *symbol;
#define FILL(name)                                                                                                     \
    symbol = find_symbol(library, SYMBOL(name));                                                                       \
    memcpy(&driver.api.name##_, &symbol, sizeof symbol);
    KPROF_DRIVER_FUNCTIONS(FILL)
#undef FILL
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    pthread_once(&driver.once, load);
    *out = &driver.api;
    return driver.status;
}

const char *kprof_driver_error(CUresult result)
{
    const char *name = NULL;
    if (driver.status == KPROF_OK)
        driver.api.cuGetErrorName_(result, &name);
    return name ? name : "unknown driver error";
}
