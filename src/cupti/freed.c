/* The application's call takes away a small allocation, or a module, of kprof's own instead. So it waits for the GPU as
 * it would without kprof, and fails where it would. */
#include "cupti/freed.h"

#include "core/config.h"
#include "core/hold.h"
#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/compile.h"
#include "cupti/profiler.h"
#include "cupti/variables.h"

#include <pthread.h>
#include <stdatomic.h>

/* Frees of more than this take the same path in the driver. */
#define MOST_INSTEAD_BYTES ((size_t)2 << 20)

/* Keep a quarter of free memory at most: the application may allocate more, and copies need space. */
#define MOST_KEPT_SHARE 4

/* Nobody tells how much memory code takes. */
#define MOST_MODULES 256

/* The variable has memory to itself, which is gone once its module is. There is no kernel that kprof would have to
 * tell from the application's. */
static const char ptx[] = ".version 6.5\n.target sm_75\n.address_size 64\n"
                          ".visible .global .align 16 .b8 " KPROF_VARIABLE "[4194304];\n";

typedef struct loaded_module {
    const void *context, *module;
} loaded_module;

/* The application's. An array: a module is looked for only as it is unloaded. */
static struct {
    pthread_mutex_t mutex;
    loaded_module *modules; /* [count] */
    size_t count;
} loaded = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static atomic_uint unloads;

void kprof_freed_note_load(const void *context, const void *module)
{
    KPROF_HOLD(loaded.mutex);
    if (context && KPROF_APPEND(loaded.modules, loaded.count)) /* else it is not kept */
        loaded.modules[loaded.count++] = (loaded_module){context, module};
}

static void forget_loaded(const void *context, const void *module)
{
    KPROF_HOLD(loaded.mutex);
    for (size_t i = loaded.count; i-- > 0;)
        if (loaded.modules[i].module == module || loaded.modules[i].context == context)
            loaded.modules[i] = loaded.modules[--loaded.count];
}

void kprof_freed_note_unload(const void *module)
{
    forget_loaded(NULL, module);
}

void kprof_freed_forget(const void *context)
{
    forget_loaded(context, NULL);
}

static bool is_loaded(const void *context, const void *module)
{
    KPROF_HOLD(loaded.mutex);
    return KPROF_ANY(i, loaded.count, loaded.modules[i].module == module && loaded.modules[i].context == context);
}

static bool has_space(kprof_freed *freed, const kprof_driver_api *driver, size_t more_bytes)
{
    size_t free_bytes = 0, total_bytes;
    if (freed->most_bytes == 0 && driver->cuMemGetInfo_(&free_bytes, &total_bytes) == CUDA_SUCCESS &&
        free_bytes > KPROF_DEVICE_RESERVE_BYTES)
        freed->most_bytes = (free_bytes - KPROF_DEVICE_RESERVE_BYTES) / MOST_KEPT_SHARE;
    return freed->most_bytes > 0 && freed->bytes <= freed->most_bytes && more_bytes <= freed->most_bytes - freed->bytes;
}

static bool make_module_instead(kprof_freed *freed, const kprof_driver_api *driver, kprof_thing *out)
{
    if (!freed->code && kprof_compile(driver, ptx, &freed->code) != CUDA_SUCCESS)
        return false;
    return kprof_redirect_works_for_modules(freed->code) && kprof_thing_make(driver, freed->code, 0, out);
}

static bool keep_module(kprof_freed *freed, const kprof_driver_api *driver, const void *context, CUmodule *argument)
{
    kprof_thing instead;
    if (!argument || !is_loaded(context, *argument) || freed->modules == MOST_MODULES)
        return false;
    const size_t bytes = kprof_variables_bytes_of(*argument);
    if (!has_space(freed, driver, bytes) || !make_module_instead(freed, driver, &instead))
        return false;
    kprof_freed_note_unload(*argument); /* so that unloading it once more fails, as it would without kprof */
    freed->things[freed->count++] = (kprof_thing){.module = *argument};
    freed->modules++;
    freed->bytes += bytes;
    *argument = instead.module;
    return true;
}

static bool keep_memory(kprof_freed *freed, const kprof_driver_api *driver, const void *context, CUdeviceptr *argument)
{
    kprof_thing instead;
    if (*argument == 0) /* which frees nothing */
        return true;
    const size_t bytes = kprof_allocations_size(*argument, context);
    if (bytes == 0 || !has_space(freed, driver, bytes) || !kprof_redirect_works() ||
        !kprof_thing_make(driver, NULL, bytes < MOST_INSTEAD_BYTES ? bytes : MOST_INSTEAD_BYTES, &instead))
        return false;
    const kprof_memory_change change = {.kind = KPROF_MEMORY_FREED, .address = *argument};
    kprof_allocations_note(&change, context); /* likewise */
    freed->things[freed->count++] = (kprof_thing){.memory = *argument};
    freed->bytes += bytes;
    *argument = instead.memory;
    return true;
}

bool kprof_freed_keep(kprof_freed *freed, const void *context, kprof_argument argument)
{
    const kprof_driver_api *driver;
    if (kprof_driver_load(&driver) != KPROF_OK || !KPROF_APPEND(freed->things, freed->count))
        return false;
    return argument.is_module ? keep_module(freed, driver, context, argument.module)
                              : keep_memory(freed, driver, context, argument.memory);
}

static void unload(const kprof_driver_api *driver, const kprof_thing *thing)
{
    (void)kprof_thing_free(driver, thing);
    kprof_variables_unload(thing->module);
    kprof_profilers_note_unload(); /* of code that replays may have patched */
    atomic_fetch_add(&unloads, 1);
}

void kprof_freed_let_go(kprof_freed *freed, const void *context)
{
    const kprof_driver_api *driver;
    CUcontext current = NULL;
    if (freed->count == 0 || kprof_driver_load(&driver) != KPROF_OK)
        return;
    if (driver->cuCtxGetCurrent_(&current) != CUDA_SUCCESS || current != context)
        return;
    for (size_t i = 0; i < freed->count; i++)
        if (freed->things[i].module)
            unload(driver, &freed->things[i]);
        else
            (void)kprof_thing_free(driver, &freed->things[i]);
    freed->count = freed->modules = 0;
    freed->bytes = freed->most_bytes = 0;
}

unsigned kprof_freed_unloads(void)
{
    return atomic_load(&unloads);
}

void kprof_freed_close(kprof_freed *freed)
{
    KPROF_FREE(freed->things, freed->code);
}
