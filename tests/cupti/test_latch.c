/* What holds a stream back: for which number it waits, when that stands there, and what happens where the driver
 * refuses. */
#include "cupti/driver.h"
#include "cupti/latch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint32_t word;
static char stream;
static CUresult alloc_result, wait_result;
static cuuint32_t awaited;
static unsigned waits;

static CUresult CUDAAPI alloc_host(void **out, size_t bytes)
{
    assert_int_equal(bytes, sizeof word);
    word = 7; /* what was there before */
    *out = &word;
    return alloc_result;
}

static CUresult CUDAAPI wait_value(CUstream on, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    assert_ptr_equal(on, &stream);
    assert_int_equal(address, (CUdeviceptr)(uintptr_t)&word);
    assert_int_equal(flags, CU_STREAM_WAIT_VALUE_EQ);
    waits++;
    awaited = value;
    return wait_result;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api = {.cuMemAllocHost_ = alloc_host,
                                   .cuStreamWaitValue32_ = wait_value,
                                   .cuThreadExchangeStreamCaptureMode_ = exchange_mode};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    (void)result;
    return "error of the test";
}

static int begin(void **state)
{
    (void)state;
    alloc_result = wait_result = CUDA_SUCCESS;
    waits = 0;
    return 0;
}

static void test_each_turn_has_a_number_of_its_own(void **state)
{
    kprof_latch *latch;
    (void)state;
    assert_int_equal(kprof_latch_open(&latch), KPROF_OK);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(kprof_latch_hold(latch, &stream), KPROF_OK);
        assert_int_not_equal(word, awaited);
        kprof_latch_let_go(latch);
        assert_int_equal(word, awaited);
        kprof_latch_let_go(latch);
        assert_int_equal(word, awaited);
    }
    assert_int_equal(waits, 3);
    kprof_latch_close(latch);
    kprof_latch_close(NULL);
}

/* The stream goes on, and letting go of what is not held does no harm. */
static void test_a_stream_that_cannot_wait(void **state)
{
    kprof_latch *latch;
    (void)state;
    assert_int_equal(kprof_latch_open(&latch), KPROF_OK);
    wait_result = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(kprof_latch_hold(latch, &stream), KPROF_UNSUPPORTED);
    kprof_latch_let_go(latch);
    wait_result = CUDA_SUCCESS;
    assert_int_equal(kprof_latch_hold(latch, &stream), KPROF_OK);
    assert_int_not_equal(word, awaited);
    kprof_latch_close(latch);
}

static void test_no_memory_that_the_gpu_reads(void **state)
{
    kprof_latch *latch;
    (void)state;
    alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(kprof_latch_open(&latch), KPROF_NOT_COLLECTED);
    assert_null(latch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_turn_has_a_number_of_its_own, begin),
        cmocka_unit_test_setup(test_a_stream_that_cannot_wait, begin),
        cmocka_unit_test_setup(test_no_memory_that_the_gpu_reads, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
