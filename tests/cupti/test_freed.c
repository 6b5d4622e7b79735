/* Memory that the application frees while a batch is open stays until the batch is over, and no longer. */
#include "cupti/freed.h"

#include "core/config.h"
#include "cupti/allocations.h"
#include "cupti/redirect.h"
#include "test.h"

#include <stdlib.h>

#define FIRST  0x10000
#define SECOND 0x10001
#define NONE   0x30000
#define OWN    0x50000 /* kprof's own allocations, one after the other */
#define BYTES  ((size_t)4 << 20)
#define MOST   256

static char context, other;
static CUcontext current;
static bool redirects;
static size_t free_bytes, asked, own_count, own_bytes;
static CUresult alloc_result;
static CUdeviceptr freed_by_driver[MOST], forgotten[MOST];
static size_t freed_count, forgotten_count;
static kprof_freed freed;

size_t kprof_allocations_size(uint64_t address, const void *of)
{
    for (size_t i = 0; i < forgotten_count; i++)
        if (forgotten[i] == address)
            return 0;
    return of == &context && address >= FIRST && address < FIRST + MOST ? BYTES : 0;
}

void kprof_allocations_note(const kprof_memory_change *change, const void *of)
{
    assert_int_equal(change->kind, KPROF_MEMORY_FREED);
    assert_ptr_equal(of, &context);
    forgotten[forgotten_count++] = change->address;
}

bool kprof_redirect_works(void)
{
    return redirects;
}

static CUresult CUDAAPI get_info(size_t *out, size_t *total)
{
    asked++;
    *out = *total = free_bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI allocate(CUdeviceptr *out, size_t bytes)
{
    own_bytes = bytes;
    *out = OWN + own_count++;
    return alloc_result;
}

static CUresult CUDAAPI free_memory(CUdeviceptr address)
{
    freed_by_driver[freed_count++] = address;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_current(CUcontext *out)
{
    *out = current;
    return CUDA_SUCCESS;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api;
    api = (kprof_driver_api){
        .cuMemGetInfo_ = get_info, .cuMemAlloc_ = allocate, .cuMemFree_ = free_memory, .cuCtxGetCurrent_ = get_current};
    *out = &api;
    return KPROF_OK;
}

static int set_up(void **state)
{
    (void)state;
    freed = (kprof_freed){0};
    current = (CUcontext)(void *)&context;
    redirects = true;
    free_bytes = (size_t)40 << 30;
    asked = own_count = freed_count = forgotten_count = 0;
    alloc_result = CUDA_SUCCESS;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(freed.addresses);
    return 0;
}

static void check_not_kept(CUdeviceptr address)
{
    CUdeviceptr argument = address;
    assert_false(kprof_freed_keep(&freed, &context, &argument));
    assert_int_equal(argument, address);
    assert_int_equal(freed.count, 0);
    assert_int_equal(freed.bytes, 0);
}

TEST(test_kept)
{
    CUdeviceptr first = FIRST, second = SECOND;
    assert_true(kprof_freed_keep(&freed, &context, &first));
    assert_true(kprof_freed_keep(&freed, &context, &second));
    assert_int_equal(first, OWN);
    assert_int_equal(second, OWN + 1);
    assert_true(own_bytes < BYTES);
    assert_int_equal(freed.bytes, 2 * BYTES);
    assert_int_equal(asked, 1);
    assert_int_equal(freed_count, 0);
    assert_int_equal(forgotten_count, 2);
    first = FIRST;
    assert_false(kprof_freed_keep(&freed, &context, &first)); /* once more: the driver is to refuse it */
    kprof_freed_let_go(&freed, &context);
    kprof_freed_let_go(&freed, &context); /* nothing is left */
    assert_int_equal(freed_count, 2);
    assert_int_equal(freed_by_driver[0], FIRST);
    assert_int_equal(freed_by_driver[1], SECOND);
    assert_int_equal(forgotten_count, 2);
    assert_int_equal(freed.bytes, 0);
}

TEST(test_nothing_to_free)
{
    CUdeviceptr argument = 0;
    assert_true(kprof_freed_keep(&freed, &context, &argument));
    assert_int_equal(argument, 0);
    assert_int_equal(freed.count, 0);
}

TEST(test_not_kept)
{
    check_not_kept(NONE); /* of no context, managed, or no allocation at all */
    alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
    check_not_kept(FIRST);
    alloc_result = CUDA_SUCCESS;
    redirects = false;
    check_not_kept(FIRST);
    assert_int_equal(freed_count, 0);
}

TEST(test_too_little_space)
{
    CUdeviceptr first = FIRST, second = SECOND;
    free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    check_not_kept(FIRST);
    free_bytes = KPROF_DEVICE_RESERVE_BYTES + 7 * BYTES; /* a quarter is enough for one */
    assert_true(kprof_freed_keep(&freed, &context, &first));
    assert_false(kprof_freed_keep(&freed, &context, &second));
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 1);
}

TEST(test_many)
{
    for (size_t i = 0; i < 200; i++) {
        CUdeviceptr argument = FIRST + i;
        assert_true(kprof_freed_keep(&freed, &context, &argument));
    }
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 200);
}

TEST(test_context_that_is_not_current)
{
    CUdeviceptr first = FIRST;
    assert_true(kprof_freed_keep(&freed, &context, &first));
    current = (CUcontext)(void *)&other;
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 0);
    current = (CUcontext)(void *)&context;
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 1);
    assert_int_equal(freed.count, 0);
}

int main(void)
{
    around_each(set_up, tear_down);
    return run_all_tests(NULL, NULL);
}
