/* A pool gives memory back when the host waits, and it has more than its release threshold. It gives back none while
 * the threshold is the largest number. A pool may be destroyed while its memory is in use. Under a profiler programs
 * crash then in later calls of the driver, so kprof has the driver destroy another pool, and that one when it is empty.
 */
#include "cupti/pools.h"

#include "core/hold.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/driver.h"
#include "cupti/redirect.h"

#include <cupti.h>
#include <pthread.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

typedef struct held_pool {
    CUmemoryPool pool;
    cuuint64_t threshold; /* the application's */
} held_pool;

static struct {
    pthread_mutex_t mutex;
    held_pool *items; /* [count] */
    size_t count;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Pools that the application has destroyed, and whose memory is in use. */
static struct {
    pthread_mutex_t mutex;
    CUmemoryPool *items; /* [count] */
    size_t count;
} outlived = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool read_pool(const kprof_driver_api *driver, CUdeviceptr address, held_pool *out)
{
    *out = (held_pool){0};
    return driver->cuPointerGetAttribute_(&out->pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == CUDA_SUCCESS &&
           out->pool &&
           driver->cuMemPoolGetAttribute_(out->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &out->threshold) ==
               CUDA_SUCCESS;
}

static CUresult set_threshold(const kprof_driver_api *driver, CUmemoryPool pool, cuuint64_t threshold)
{
    return driver->cuMemPoolSetAttribute_(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

bool kprof_pools_keep(CUdeviceptr address)
{
    const kprof_driver_api *driver;
    held_pool found;
    return kprof_driver_load(&driver) == KPROF_OK && read_pool(driver, address, &found) &&
           found.threshold == UINT64_MAX;
}

bool kprof_pools_hold(CUdeviceptr address)
{
    const kprof_driver_api *driver;
    held_pool found;
    if (kprof_driver_load(&driver) != KPROF_OK || !read_pool(driver, address, &found))
        return false;
    if (found.threshold == UINT64_MAX)
        return true;
    KPROF_HOLD(held.mutex);
    bool holds = KPROF_APPEND(held.items, held.count) && set_threshold(driver, found.pool, UINT64_MAX) == CUDA_SUCCESS;
    if (holds)
        held.items[held.count++] = found;
    return holds;
}

bool kprof_pools_are_held(void)
{
    KPROF_HOLD(held.mutex);
    return held.count > 0;
}

void kprof_pools_let_go(bool is_idle)
{
    const kprof_driver_api *driver;
    KPROF_HOLD(held.mutex);
    bool can = held.count > 0 && kprof_driver_load(&driver) == KPROF_OK;
    for (size_t i = 0; can && i < held.count; i++) {
        const held_pool *pool = &held.items[i];
        CUresult result = set_threshold(driver, pool->pool, pool->threshold);
        if (result != CUDA_SUCCESS)
            kprof_log(KPROF_LOG_WARNING, "a memory pool keeps memory that the application does not want it to keep: %s",
                      kprof_driver_error(result));
        else if (is_idle)
            (void)driver->cuMemPoolTrimTo_(pool->pool, (size_t)pool->threshold);
    }
    held.count = 0;
}

/* The application destroys the pool, or has said what it is to keep: leave it alone. */
static void forget(CUmemoryPool pool)
{
    KPROF_HOLD(held.mutex);
    for (size_t i = held.count; i-- > 0;)
        if (held.items[i].pool == pool)
            held.items[i] = held.items[--held.count];
}

static bool is_in_use(const kprof_driver_api *driver, CUmemoryPool pool)
{
    cuuint64_t used_bytes = 0;
    return driver->cuMemPoolGetAttribute_(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used_bytes) == CUDA_SUCCESS &&
           used_bytes > 0;
}

/* If a batch holds the pool, set what the pool may keep once the batch lets go. Return whether one does. */
static bool note_threshold(CUmemoryPool pool, cuuint64_t threshold)
{
    KPROF_HOLD(held.mutex);
    const size_t at = KPROF_FIND(i, held.count, held.items[i].pool == pool);
    if (at < held.count)
        held.items[at].threshold = threshold;
    return at < held.count;
}

/* Replays use what is freed to pools that are held. */
static void destroy_emptied_locked(const kprof_driver_api *driver)
{
    for (size_t i = outlived.count; i-- > 0;)
        if (!is_in_use(driver, outlived.items[i]) && !note_threshold(outlived.items[i], 0)) {
            (void)driver->cuMemPoolDestroy_(outlived.items[i]);
            outlived.items[i] = outlived.items[--outlived.count];
        }
}

/* Is it a device's default pool, which the driver refuses to destroy? A device that uses the pool uses its default one
 * from now on, as the driver has it where a pool is destroyed. */
static bool is_default(const kprof_driver_api *driver, CUmemoryPool pool)
{
    int count = 0;
    (void)driver->cuDeviceGetCount_(&count);
    for (CUdevice device = 0; device < count; device++) {
        CUmemoryPool own = NULL, used = NULL;
        if (driver->cuDeviceGetDefaultMemPool_(&own, device) != CUDA_SUCCESS)
            continue;
        if (own == pool)
            return true;
        if (driver->cuDeviceGetMemPool_(&used, device) == CUDA_SUCCESS && used == pool)
            (void)driver->cuDeviceSetMemPool_(device, own);
    }
    return false;
}

/* Return a pool without memory; NULL where the driver makes none. */
static CUmemoryPool make_empty(const kprof_driver_api *driver)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool;
    (void)driver->cuCtxGetDevice_(&properties.location.id);
    return driver->cuMemPoolCreate_(&pool, &properties) == CUDA_SUCCESS ? pool : NULL;
}

/* Return what is to be destroyed in the pool's place. */
static CUmemoryPool outlive_locked(const kprof_driver_api *driver, CUmemoryPool pool)
{
    destroy_emptied_locked(driver);
    if (KPROF_ANY(i, outlived.count, outlived.items[i] == pool))
        return NULL; /* it was destroyed before, as far as the application knows */
    CUmemoryPool empty = NULL;
    if (is_in_use(driver, pool) && !is_default(driver, pool) && KPROF_APPEND(outlived.items, outlived.count))
        empty = make_empty(driver);
    if (!empty)
        return pool;
    outlived.items[outlived.count++] = pool;
    if (!note_threshold(pool, 0)) /* what is freed goes back to the system */
        (void)set_threshold(driver, pool, 0);
    return empty;
}

void kprof_pools_let_outlive(CUmemoryPool *pool)
{
    const kprof_driver_api *driver;
    const CUmemoryPool destroyed = *pool;
    if (!kprof_redirect_is_refused() && kprof_driver_load(&driver) == KPROF_OK) {
        KPROF_RELAX(driver);
        KPROF_HOLD(outlived.mutex);
        *pool = outlive_locked(driver, destroyed);
    }
    if (*pool == destroyed)
        forget(destroyed);
}

void kprof_pools_forget(void)
{
    KPROF_HOLD(outlived.mutex);
    outlived.count = 0;
}

void kprof_pools_note(CUpti_CallbackId id, const void *parameters)
{
    const cuMemPoolSetAttribute_params *p = parameters;
    if (id == ID(cuMemPoolSetAttribute) && p->attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        forget(p->pool);
}
