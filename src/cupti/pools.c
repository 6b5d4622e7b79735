/* A pool gives memory back when the host waits, and it has more than its release threshold. It gives back none while
 * the threshold is the largest number. A pool may be destroyed while its memory is in use. The driver still names it as
 * that memory's then, and programs crash in later calls once it was asked. So from then on kprof asks no more. */
#include "cupti/pools.h"

#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/driver.h"

#include <cupti.h>
#include <pthread.h>
#include <stdatomic.h>

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

static atomic_bool is_outlived; /* memory is in use whose pool was destroyed */

static bool read_pool(const kprof_driver_api *driver, CUdeviceptr address, held_pool *out)
{
    *out = (held_pool){0};
    return !atomic_load(&is_outlived) &&
           driver->cuPointerGetAttribute_(&out->pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == CUDA_SUCCESS &&
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
    pthread_mutex_lock(&held.mutex);
    bool holds = KPROF_APPEND(held.items, held.count) && set_threshold(driver, found.pool, UINT64_MAX) == CUDA_SUCCESS;
    if (holds)
        held.items[held.count++] = found;
    pthread_mutex_unlock(&held.mutex);
    return holds;
}

bool kprof_pools_are_held(void)
{
    pthread_mutex_lock(&held.mutex);
    bool any = held.count > 0;
    pthread_mutex_unlock(&held.mutex);
    return any;
}

void kprof_pools_let_go(bool is_idle)
{
    const kprof_driver_api *driver;
    pthread_mutex_lock(&held.mutex);
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
    pthread_mutex_unlock(&held.mutex);
}

/* The application has destroyed the pool, or said what it is to keep: leave it alone. */
static void forget(CUmemoryPool pool)
{
    pthread_mutex_lock(&held.mutex);
    for (size_t i = held.count; i-- > 0;)
        if (held.items[i].pool == pool)
            held.items[i] = held.items[--held.count];
    pthread_mutex_unlock(&held.mutex);
}

void kprof_pools_note_destroying(CUmemoryPool pool)
{
    const kprof_driver_api *driver;
    cuuint64_t used_bytes = 0;
    if (kprof_driver_load(&driver) != KPROF_OK ||
        driver->cuMemPoolGetAttribute_(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used_bytes) != CUDA_SUCCESS ||
        used_bytes > 0)
        atomic_store(&is_outlived, true);
}

void kprof_pools_note(CUpti_CallbackId id, const void *parameters)
{
    const cuMemPoolSetAttribute_params *p = parameters;
    if (id == ID(cuMemPoolDestroy))
        forget(((const cuMemPoolDestroy_params *)parameters)->pool);
    else if (id == ID(cuMemPoolSetAttribute) && p->attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        forget(p->pool);
}
