/* Pools keep what is freed to them while a batch is open, and what the application has said afterwards. */
#include "cupti/pools.h"

#include "cupti/driver.h"
#include "cupti/redirect.h"
#include "test.h"

#include <string.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

/* Pool i has the memory at OF_POOL + i. Those of DEFAULTS on belong to devices. */
enum { DEVICES = 4, DEFAULTS = 16, POOLS = DEFAULTS + DEVICES, OF_NO_POOL = 0x1000, OF_POOL = 0x10000 };

typedef struct fake_pool {
    cuuint64_t threshold;
    size_t trimmed_to; /* SIZE_MAX: not at all */
    cuuint64_t used_bytes;
    bool is_destroyed; /* the driver must not be asked about it, nor about its memory */
} fake_pool;

static fake_pool pools[POOLS], empty; /* the latter is the one that kprof makes */
static CUresult set_result;
static bool is_refused, is_relaxed; /* is_relaxed: a capture of another thread does not end by the calls */
static size_t used_by[DEVICES];

bool kprof_redirect_is_refused(void)
{
    return is_refused;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    const CUstreamCaptureMode before = is_relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;
    is_relaxed = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUmemoryPool handle(size_t i)
{
    return (CUmemoryPool)(void *)&pools[i];
}

static CUresult CUDAAPI count_devices(int *out)
{
    *out = DEVICES;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_default(CUmemoryPool *out, CUdevice device)
{
    *out = handle(DEFAULTS + (size_t)device);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_pool(CUmemoryPool *out, CUdevice device)
{
    *out = handle(used_by[device]);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_pool(CUdevice device, CUmemoryPool pool)
{
    assert_ptr_equal(pool, handle(DEFAULTS + (size_t)device));
    used_by[device] = DEFAULTS + (size_t)device;
    return CUDA_SUCCESS;
}

static fake_pool *use(CUmemoryPool handle)
{
    fake_pool *pool = (fake_pool *)(void *)handle;
    assert_false(pool->is_destroyed);
    return pool;
}

static CUresult CUDAAPI pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    fake_pool *pool = address >= OF_POOL ? &pools[address - OF_POOL] : NULL;
    assert_false(pool && pool->is_destroyed);
    assert_int_equal(attribute, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
    memcpy(out, &pool, sizeof pool);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    assert_true(attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    *(cuuint64_t *)value =
        attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? use(pool)->threshold : use(pool)->used_bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    assert_int_equal(attribute, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    cuuint64_t *threshold = &use(pool)->threshold;
    if (set_result == CUDA_SUCCESS)
        *threshold = *(cuuint64_t *)value;
    return set_result;
}

static CUresult CUDAAPI trim(CUmemoryPool pool, size_t bytes)
{
    use(pool)->trimmed_to = bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI create(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    assert_true(is_relaxed);
    assert_int_equal(properties->location.id, 3);
    empty = (fake_pool){.threshold = 0};
    *pool = (CUmemoryPool)(void *)&empty;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI destroy_pool(CUmemoryPool pool)
{
    assert_true(is_relaxed);
    assert_int_equal(use(pool)->used_bytes, 0); /* under a profiler later calls crash else */
    use(pool)->is_destroyed = true;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_device(CUdevice *out)
{
    *out = 3;
    return CUDA_SUCCESS;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuPointerGetAttribute_ = pointer_attribute,
                                         .cuMemPoolGetAttribute_ = get_attribute,
                                         .cuMemPoolSetAttribute_ = set_attribute,
                                         .cuMemPoolTrimTo_ = trim,
                                         .cuMemPoolCreate_ = create,
                                         .cuMemPoolDestroy_ = destroy_pool,
                                         .cuDeviceGetCount_ = count_devices,
                                         .cuDeviceGetDefaultMemPool_ = get_default,
                                         .cuDeviceGetMemPool_ = get_pool,
                                         .cuDeviceSetMemPool_ = set_pool,
                                         .cuThreadExchangeStreamCaptureMode_ = exchange_mode,
                                         .cuCtxGetDevice_ = get_device};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "an error";
}

static int set_up(void **state)
{
    set_result = CUDA_SUCCESS;
    is_refused = false;
    for (size_t i = 0; i < POOLS; i++)
        pools[i] = (fake_pool){.threshold = 100 * i, .trimmed_to = SIZE_MAX};
    for (size_t device = 0; device < DEVICES; device++)
        used_by[device] = DEFAULTS + device;
    return 0;
}

TEST(test_held)
{
    for (size_t i = 0; i < POOLS; i++) {
        assert_false(kprof_pools_keep(OF_POOL + i));
        assert_true(kprof_pools_hold(OF_POOL + i));
        assert_true(kprof_pools_hold(OF_POOL + i)); /* for the next free */
        assert_true(kprof_pools_keep(OF_POOL + i));
        assert_true(kprof_pools_are_held());
    }
    kprof_pools_let_go(true);
    assert_false(kprof_pools_are_held());
    for (size_t i = 0; i < POOLS; i++) {
        assert_int_equal(pools[i].threshold, 100 * i);
        assert_int_equal(pools[i].trimmed_to, 100 * i);
        assert_false(kprof_pools_keep(OF_POOL + i));
    }
}

/* The GPU may still use what is freed: the driver gives it back later. */
TEST(test_work_goes_on)
{
    assert_true(kprof_pools_hold(OF_POOL + 3));
    kprof_pools_let_go(false);
    assert_int_equal(pools[3].threshold, 300);
    assert_int_equal(pools[3].trimmed_to, SIZE_MAX);
    kprof_pools_let_go(true); /* nothing is left */
    assert_int_equal(pools[3].trimmed_to, SIZE_MAX);
}

TEST(test_pool_that_keeps_all)
{
    pools[1].threshold = UINT64_MAX;
    assert_true(kprof_pools_keep(OF_POOL + 1));
    assert_true(kprof_pools_hold(OF_POOL + 1));
    assert_false(kprof_pools_are_held());
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].threshold, UINT64_MAX);
    assert_int_equal(pools[1].trimmed_to, SIZE_MAX);
}

TEST(test_cannot_be_held)
{
    assert_false(kprof_pools_hold(OF_NO_POOL));
    assert_false(kprof_pools_keep(OF_NO_POOL));
    set_result = CUDA_ERROR_NOT_SUPPORTED; /* as of a pool of another process */
    assert_false(kprof_pools_hold(OF_POOL + 1));
    assert_false(kprof_pools_are_held());
    assert_int_equal(pools[1].threshold, 100);
}

static void note_set(size_t i, CUmemPool_attribute attribute)
{
    kprof_pools_note(ID(cuMemPoolSetAttribute), &(cuMemPoolSetAttribute_params){handle(i), attribute, NULL});
}

/* What the application says holds, whatever kprof has done to the pool. */
TEST(test_told)
{
    assert_true(kprof_pools_hold(OF_POOL + 1));
    assert_true(kprof_pools_hold(OF_POOL + 2));
    pools[1].threshold = 7;
    note_set(1, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    note_set(2, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    assert_true(kprof_pools_are_held());
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].threshold, 7);
    assert_int_equal(pools[1].trimmed_to, SIZE_MAX);
    assert_int_equal(pools[2].threshold, 200);
}

/* As the driver is called with what the hook leaves in the call's arguments. */
static void destroy(size_t i)
{
    CUmemoryPool pool = handle(i);
    kprof_pools_let_outlive(&pool);
    assert_false(is_relaxed);
    use(pool)->is_destroyed = true;
}

TEST(test_destroyed_while_held)
{
    assert_true(kprof_pools_hold(OF_POOL + 1));
    destroy(1);
    assert_false(kprof_pools_are_held());
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].trimmed_to, SIZE_MAX);
    assert_true(kprof_pools_hold(OF_POOL + 2));
    kprof_pools_let_go(true);
}

TEST(test_destroyed_in_use)
{
    pools[1].used_bytes = pools[2].used_bytes = 1;
    destroy(1);
    assert_true(empty.is_destroyed);
    assert_false(pools[1].is_destroyed);
    assert_int_equal(pools[1].threshold, 0);
    destroy(2);
    assert_false(pools[1].is_destroyed); /* its memory is still in use */
    pools[1].used_bytes = pools[2].used_bytes = 0;
    destroy(3);
    assert_true(pools[1].is_destroyed && pools[2].is_destroyed && pools[3].is_destroyed);
}

/* The batch closes only after that, and its replays use what was freed. */
TEST(test_held_pool_destroyed_in_use)
{
    assert_true(kprof_pools_hold(OF_POOL + 1));
    pools[1].used_bytes = 1;
    destroy(1);
    assert_true(pools[1].threshold == UINT64_MAX);
    pools[1].used_bytes = 0;
    destroy(2);
    assert_false(pools[1].is_destroyed);
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].threshold, 0);
    assert_int_equal(pools[1].trimmed_to, 0);
    destroy(3);
    assert_true(pools[1].is_destroyed);
}

/* As the driver has it where nobody looks: it refuses the one, and has the device use its own pool after the other. */
TEST(test_pools_of_devices)
{
    CUmemoryPool pool = handle(DEFAULTS + 1);
    pools[DEFAULTS + 1].used_bytes = pools[1].used_bytes = 1;
    kprof_pools_let_outlive(&pool);
    assert_ptr_equal(pool, handle(DEFAULTS + 1));
    assert_int_equal(pools[DEFAULTS + 1].threshold, 100 * (DEFAULTS + 1));
    used_by[2] = 1;
    destroy(1);
    assert_int_equal(used_by[2], DEFAULTS + 2);
    pools[1].used_bytes = 0;
    destroy(2);
}

TEST(test_destroyed_twice)
{
    CUmemoryPool pool = handle(1);
    pools[1].used_bytes = 1;
    destroy(1);
    kprof_pools_let_outlive(&pool);
    assert_null(pool);
    pools[1].used_bytes = 0;
    destroy(2);
}

/* Pools may go with their device's context. */
TEST(test_context_ends)
{
    pools[1].used_bytes = 1;
    destroy(1);
    kprof_pools_forget();
    pools[1].is_destroyed = true;
    destroy(2);
}

TEST(test_driver_takes_no_other)
{
    is_refused = true;
    pools[1].used_bytes = 1;
    destroy(1);
    assert_true(pools[1].is_destroyed);
}

AROUND_EACH(set_up, NULL)
