/* kprof finds out whether the driver frees, or unloads, what a hook has put in the place of a call's argument, and
 * leaves nothing behind. The driver is the test's: it may read the argument before its hook runs, or behind it. */
#include "cupti/driver.h"
#include "cupti/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4 };

static bool lives[MOST + 1]; /* by address, from 1; a module has that of its variable */
static CUdeviceptr made;
static bool reads_behind_hook, has_memory, of_modules;
static unsigned frees;
static char code[MOST + 1]; /* a module's handle points into it */

static CUresult CUDAAPI allocate(CUdeviceptr *out, size_t bytes)
{
    if (!has_memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = ++made;
    lives[made] = true;
    return CUDA_SUCCESS;
}

static CUresult take_away(CUdeviceptr freed)
{
    frees++;
    if (!lives[freed])
        return CUDA_ERROR_INVALID_VALUE;
    lives[freed] = false;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI free_memory(CUdeviceptr address)
{
    CUdeviceptr argument = address;
    kprof_redirect((kprof_argument){.memory = &argument});
    return take_away(reads_behind_hook ? argument : address);
}

static CUresult CUDAAPI load(CUmodule *out, const void *image)
{
    CUdeviceptr address;
    assert_ptr_equal(image, code);
    if (allocate(&address, 1) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmodule)(void *)&code[address];
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI unload(CUmodule module)
{
    CUmodule argument = module;
    kprof_redirect((kprof_argument){.is_module = true, .module = &argument});
    return take_away((CUdeviceptr)((char *)(reads_behind_hook ? argument : module) - code));
}

static CUresult CUDAAPI find_variable(CUdeviceptr *out, size_t *bytes, CUmodule module, const char *name)
{
    assert_string_equal(name, KPROF_VARIABLE);
    *out = (CUdeviceptr)((char *)module - code);
    *bytes = 1;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI find_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    *base = address;
    *bytes = 1;
    return lives[address] ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    assert_int_equal(attribute, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
    *(CUdeviceptr *)out = address;
    return lives[address] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api;
    api = (kprof_driver_api){.cuMemAlloc_ = allocate,
                             .cuMemFree_ = free_memory,
                             .cuMemGetAddressRange_ = find_range,
                             .cuPointerGetAttribute_ = get_attribute,
                             .cuModuleLoadData_ = load,
                             .cuModuleUnload_ = unload,
                             .cuModuleGetGlobal_ = find_variable};
    *out = &api;
    return KPROF_OK;
}

static bool does_it_work(void)
{
    return of_modules ? kprof_redirect_works_for_modules(code) : kprof_redirect_works();
}

static void check(bool works)
{
    CUdeviceptr of_application = MOST;
    assert_true(does_it_work() == works);
    assert_true(does_it_work() == works);
    for (CUdeviceptr i = 1; i <= MOST; i++)
        assert_false(lives[i]);
    assert_int_equal(frees, has_memory ? 2 : 0); /* it is tried once */
    kprof_redirect((kprof_argument){.memory = &of_application});
    assert_int_equal(of_application, MOST);
}

static void test_argument_is_read_behind_hook(void **state)
{
    reads_behind_hook = has_memory = true;
    check(true);
}

static void test_argument_was_read(void **state)
{
    has_memory = true;
    check(false);
}

static void test_no_memory(void **state)
{
    check(false);
}

/* The answer is kept, so that each test is a process of its own. */
int main(int argc, char **argv)
{
    const struct CMUnitTest behind[] = {cmocka_unit_test(test_argument_is_read_behind_hook)};
    const struct CMUnitTest before[] = {cmocka_unit_test(test_argument_was_read)};
    const struct CMUnitTest none[] = {cmocka_unit_test(test_no_memory)};
    const char *part = argc > 1 ? argv[1] : "";
    of_modules = argc > 2;
    if (strcmp(part, "refused") == 0)
        return cmocka_run_group_tests(before, NULL, NULL);
    if (strcmp(part, "no_memory") == 0)
        return cmocka_run_group_tests(none, NULL, NULL);
    return cmocka_run_group_tests(behind, NULL, NULL);
}
