/* Opens libcuda at run time and fills the table of driver functions. It is a file of its own because tests have another
 * table in its place. */
#include "cupti/driver.h"

#include "core/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define STRINGIFY(name) #name
#define SYMBOL(name)    STRINGIFY(name)

static kprof_driver_api api;
static kprof_status load_status = KPROF_NO_GPU;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

static void *find_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        load_status = kprof_fail(KPROF_UNSUPPORTED, "the driver is too old for kprof: libcuda.so.1 has no %s", name);
    return symbol;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        load_status = kprof_fail(KPROF_NO_GPU, "no NVIDIA driver: %s", dlerror());
        return;
    }
    load_status = KPROF_OK;
    void *symbol;
#define FILL(name)                                                                                                     \
    symbol = find_symbol(library, SYMBOL(name));                                                                       \
    memcpy(&api.name##_, &symbol, sizeof symbol);
    KPROF_DRIVER_FUNCTIONS(FILL)
#undef FILL
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    pthread_once(&load_once, load);
    *out = &api;
    return load_status;
}

const char *kprof_driver_error(CUresult result)
{
    const char *name = NULL;
    if (load_status == KPROF_OK)
        api.cuGetErrorName_(result, &name);
    return name ? name : "unknown driver error";
}
