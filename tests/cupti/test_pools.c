/* Pools keep what is freed to them while a batch is open, and what the application has said afterwards. */
#include "cupti/pools.h"

#include "cupti/driver.h"
#include "cupti/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { POOLS = 20, OF_NO_POOL = 0x1000, OF_POOL = 0x10000 }; /* pool i has the memory at OF_POOL + i */

typedef struct fake_pool {
    cuuint64_t threshold;
    size_t trimmed_to; /* SIZE_MAX: not at all */
    cuuint64_t used_bytes;
    bool is_destroyed; /* the driver must not be asked about it, nor about its memory */
} fake_pool;

static fake_pool pools[POOLS], empty; /* the latter is the one that kprof makes */
static CUresult set_result;
static bool is_refused;

bool kprof_redirect_is_refused(void)
{
    return is_refused;
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
    assert_int_equal(properties->location.id, 3);
    empty = (fake_pool){.threshold = 0};
    *pool = (CUmemoryPool)(void *)&empty;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI destroy_pool(CUmemoryPool pool)
{
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
                                         .cuCtxGetDevice_ = get_device};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    (void)result;
    return "an error";
}

static int set_up(void **state)
{
    (void)state;
    set_result = CUDA_SUCCESS;
    is_refused = false;
    for (size_t i = 0; i < POOLS; i++)
        pools[i] = (fake_pool){.threshold = 100 * i, .trimmed_to = SIZE_MAX};
    return 0;
}

static void test_held(void **state)
{
    (void)state;
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
static void test_work_goes_on(void **state)
{
    (void)state;
    assert_true(kprof_pools_hold(OF_POOL + 3));
    kprof_pools_let_go(false);
    assert_int_equal(pools[3].threshold, 300);
    assert_int_equal(pools[3].trimmed_to, SIZE_MAX);
    kprof_pools_let_go(true); /* nothing is left */
    assert_int_equal(pools[3].trimmed_to, SIZE_MAX);
}

static void test_pool_that_keeps_all(void **state)
{
    (void)state;
    pools[1].threshold = UINT64_MAX;
    assert_true(kprof_pools_keep(OF_POOL + 1));
    assert_true(kprof_pools_hold(OF_POOL + 1));
    assert_false(kprof_pools_are_held());
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].threshold, UINT64_MAX);
    assert_int_equal(pools[1].trimmed_to, SIZE_MAX);
}

static void test_cannot_be_held(void **state)
{
    (void)state;
    assert_false(kprof_pools_hold(OF_NO_POOL));
    assert_false(kprof_pools_keep(OF_NO_POOL));
    set_result = CUDA_ERROR_NOT_SUPPORTED; /* as of a pool of another process */
    assert_false(kprof_pools_hold(OF_POOL + 1));
    assert_false(kprof_pools_are_held());
    assert_int_equal(pools[1].threshold, 100);
}

static CUmemoryPool handle(size_t i)
{
    return (CUmemoryPool)(void *)&pools[i];
}

static void note_set(size_t i, CUmemPool_attribute attribute)
{
    kprof_pools_note(ID(cuMemPoolSetAttribute), &(cuMemPoolSetAttribute_params){handle(i), attribute, NULL});
}

/* What the application says holds, whatever kprof has done to the pool. */
static void test_told(void **state)
{
    (void)state;
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
    use(pool)->is_destroyed = true;
}

static void test_destroyed_while_held(void **state)
{
    (void)state;
    assert_true(kprof_pools_hold(OF_POOL + 1));
    destroy(1);
    assert_false(kprof_pools_are_held());
    kprof_pools_let_go(true);
    assert_int_equal(pools[1].trimmed_to, SIZE_MAX);
    assert_true(kprof_pools_hold(OF_POOL + 2));
    kprof_pools_let_go(true);
}

static void test_destroyed_in_use(void **state)
{
    (void)state;
    assert_true(kprof_pools_hold(OF_POOL + 1));
    pools[1].used_bytes = pools[2].used_bytes = 1;
    destroy(1);
    assert_true(empty.is_destroyed);
    assert_false(pools[1].is_destroyed);
    assert_int_equal(pools[1].threshold, 0);
    assert_false(kprof_pools_are_held());
    destroy(2);
    assert_false(pools[1].is_destroyed); /* its memory is still in use */
    pools[1].used_bytes = pools[2].used_bytes = 0;
    destroy(3);
    assert_true(pools[1].is_destroyed && pools[2].is_destroyed && pools[3].is_destroyed);
}

static void test_driver_takes_no_other(void **state)
{
    (void)state;
    is_refused = true;
    pools[1].used_bytes = 1;
    destroy(1);
    assert_true(pools[1].is_destroyed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_held, set_up),
        cmocka_unit_test_setup(test_work_goes_on, set_up),
        cmocka_unit_test_setup(test_pool_that_keeps_all, set_up),
        cmocka_unit_test_setup(test_cannot_be_held, set_up),
        cmocka_unit_test_setup(test_told, set_up),
        cmocka_unit_test_setup(test_destroyed_while_held, set_up),
        cmocka_unit_test_setup(test_destroyed_in_use, set_up),
        cmocka_unit_test_setup(test_driver_takes_no_other, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
