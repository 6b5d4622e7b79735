/* Whose name kprof trusts: that of a handle that the driver takes. The driver is the test's, and CUPTI's name for a
 * handle that is none is where nobody may read. */
#include "cupti/functions.h"
#include "test.h"

#include <stdbool.h>

enum { KERNELS = 2000 };

#define WILD ((const char *)(uintptr_t)0x9090909090909090)

static char functions[KERNELS], kernels[KERNELS]; /* CUfunctions, and CUkernels of the same */
static bool is_loaded = true;
static unsigned asked;
static CUstreamCaptureMode capture_mode;

static bool is_one(const char *all, const void *handle)
{
    return is_loaded && (const char *)handle >= all && (const char *)handle < all + KERNELS;
}

static CUresult CUDAAPI attribute(int *value, CUfunction_attribute which, CUfunction handle)
{
    assert_int_equal(which, CU_FUNC_ATTRIBUTE_NUM_REGS);
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    asked++;
    *value = 32;
    return is_one(functions, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult CUDAAPI function_of(CUfunction *out, CUkernel handle)
{
    if (!is_one(kernels, handle))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUfunction)(void *)&functions[(char *)(void *)handle - kernels];
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static const kprof_driver_api driver = {.cuFuncGetAttribute_ = attribute,
                                        .cuKernelGetFunction_ = function_of,
                                        .cuThreadExchangeStreamCaptureMode_ = exchange_mode};

static const char *name_of(const void *handle, const char *name)
{
    const char *trusted = kprof_function_name(&driver, (CUfunction)handle, name);
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return trusted;
}

static int set_up(void **state)
{
    kprof_functions_forget();
    is_loaded = true;
    asked = 0;
    capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return 0;
}

TEST(test_asks_once)
{
    for (int i = 0; i < 3; i++) {
        assert_string_equal(name_of(&functions[1], "first"), "first");
        assert_string_equal(name_of(&kernels[1], "second"), "second");
    }
    assert_int_equal(asked, 2);
}

TEST(test_no_kernel)
{
    char other;
    assert_string_equal(name_of(&other, WILD), "(unnamed kernel)");
    assert_string_equal(name_of(&other, WILD), "(unnamed kernel)");
    assert_int_equal(asked, 2); /* it may become one */
    assert_null(kprof_function_find(&driver, (CUfunction)(void *)&other));
}

TEST(test_nothing_to_trust)
{
    assert_string_equal(name_of(NULL, WILD), "(unnamed kernel)");
    assert_string_equal(name_of(&functions[1], NULL), "(unnamed kernel)");
    assert_int_equal(asked, 0);
}

/* What was unloaded is none, until the driver gives the same handle again. */
TEST(test_unloaded)
{
    assert_string_equal(name_of(&kernels[1], "old"), "old");
    is_loaded = false;
    kprof_functions_forget();
    assert_string_equal(name_of(&kernels[1], WILD), "(unnamed kernel)");
    is_loaded = true;
    assert_string_equal(name_of(&kernels[1], "new"), "new");
}

TEST(test_more_than_places)
{
    for (int i = 0; i < 2 * KERNELS; i++) {
        char other;
        assert_string_equal(name_of(&functions[i % KERNELS], "one"), "one");
        assert_string_equal(name_of(&other, WILD), "(unnamed kernel)");
    }
}

TEST(test_resolved)
{
    assert_ptr_equal(kprof_function_find(&driver, (CUfunction)(void *)&functions[3]), &functions[3]);
    assert_ptr_equal(kprof_function_find(&driver, (CUfunction)(void *)&kernels[3]), &functions[3]);
    assert_int_equal(capture_mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

AROUND_EACH(set_up, NULL)
