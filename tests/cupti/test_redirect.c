/* kprof finds out whether the driver frees what a hook has put in the place of a call's argument, and leaves no
 * allocation behind. The driver is the test's: it may read the argument before its hook runs, or behind it. */
#include "cupti/driver.h"
#include "cupti/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4 };

static bool lives[MOST + 1]; /* by address, from 1 */
static CUdeviceptr made;
static bool reads_behind_hook, has_memory;
static unsigned frees;

static CUresult CUDAAPI allocate(CUdeviceptr *out, size_t bytes)
{
    (void)bytes;
    if (!has_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = ++made;
    lives[made] = true;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI free_memory(CUdeviceptr address)
{
    CUdeviceptr argument = address;
    kprof_redirect_free(&argument);
    CUdeviceptr freed = reads_behind_hook ? argument : address;
    frees++;
    if (!lives[freed])
        return CUDA_ERROR_INVALID_VALUE;
    lives[freed] = false;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI find_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    *base = address;
    *bytes = 1;
    return lives[address] ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api;
    api = (kprof_driver_api){.cuMemAlloc_ = allocate, .cuMemFree_ = free_memory, .cuMemGetAddressRange_ = find_range};
    *out = &api;
    return KPROF_OK;
}

static void check(bool works)
{
    CUdeviceptr of_application = MOST;
    assert_true(kprof_redirect_works() == works);
    assert_true(kprof_redirect_works() == works);
    for (CUdeviceptr i = 1; i <= MOST; i++)
        assert_false(lives[i]);
    assert_int_equal(frees, has_memory ? 2 : 0); /* it is tried once */
    kprof_redirect_free(&of_application);
    assert_int_equal(of_application, MOST);
}

static void test_argument_is_read_behind_hook(void **state)
{
    (void)state;
    reads_behind_hook = has_memory = true;
    check(true);
}

static void test_argument_was_read(void **state)
{
    (void)state;
    has_memory = true;
    check(false);
}

static void test_no_memory(void **state)
{
    (void)state;
    check(false);
}

/* The answer is kept, so that each test is a process of its own. */
int main(int argc, char **argv)
{
    const struct CMUnitTest behind[] = {cmocka_unit_test(test_argument_is_read_behind_hook)};
    const struct CMUnitTest before[] = {cmocka_unit_test(test_argument_was_read)};
    const struct CMUnitTest none[] = {cmocka_unit_test(test_no_memory)};
    const char *part = argc > 1 ? argv[1] : "";
    if (strcmp(part, "refused") == 0)
        return cmocka_run_group_tests(before, NULL, NULL);
    if (strcmp(part, "no_memory") == 0)
        return cmocka_run_group_tests(none, NULL, NULL);
    return cmocka_run_group_tests(behind, NULL, NULL);
}
