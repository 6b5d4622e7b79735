/* kprof knows the module variables of each context and module for itself, until they are gone for certain, and none
 * where the driver leaves doubts. */
#include "cupti/driver.h"
#include "cupti/modules.h"
#include "cupti/variables.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { LOW = 0x1000, HIGH = 0x2000, SIZE = 8 }; /* each is an allocation */

static char context, other_context, module, library;
static CUresult module_result, attribute_result;
static bool without_context; /* until one is pushed */
static int pushed;
static bool managed;
static kprof_strlist whole, partial, without_any;

static CUresult CUDAAPI get_global(CUdeviceptr *address, size_t *size, CUmodule of, const char *name)
{
    *address = strcmp(name, "low") == 0 ? LOW : HIGH;
    *size = SIZE;
    return strcmp(name, "elsewhere") == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

static CUresult CUDAAPI get_module(CUmodule *out, CUfunction function)
{
    *out = (CUmodule)function;
    return module_result;
}

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (without_context && pushed == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (attribute_result != CUDA_SUCCESS)
        return attribute_result;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)out = managed;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)out = SIZE;
    else
        *(CUdeviceptr *)out = address;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI push(CUcontext current)
{
    assert_ptr_equal(current, &context);
    pushed++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI pop(CUcontext *current)
{
    *current = (CUcontext)(void *)&context;
    pushed--;
    return CUDA_SUCCESS;
}

/* In place of the driver's, and of what cubins tell. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuModuleGetGlobal_ = get_global,
                                         .cuFuncGetModule_ = get_module,
                                         .cuPointerGetAttribute_ = get_attribute,
                                         .cuCtxPushCurrent_ = push,
                                         .cuCtxPopCurrent_ = pop};
    *out = &api;
    return KPROF_OK;
}

const kprof_strlist *kprof_modules_variables(const char *kernel, size_t index)
{
    if (strcmp(kernel, "doubtful") == 0)
        return index == 0 ? &without_any : index == 1 ? &partial : NULL;
    return index == 0 ? &whole : NULL;
}

static const kprof_strlist *noted;

void kprof_modules_note_variables(const kprof_strlist *variables)
{
    noted = variables;
}

static int name_variables(void **state)
{
    return kprof_strlist_add(&whole, "low") && kprof_strlist_add(&whole, "high") &&
                   kprof_strlist_add(&partial, "low") && kprof_strlist_add(&partial, "elsewhere")
               ? 0
               : -1;
}

static int forget_names(void **state)
{
    kprof_strlist_free(&whole);
    kprof_strlist_free(&partial);
    return 0;
}

static int forget_all(void **state)
{
    attribute_result = CUDA_SUCCESS;
    without_context = false;
    kprof_variables_forget(&context);
    kprof_variables_forget(&other_context);
    return 0;
}

static void note(const void *of_context, const void *owner, uint64_t address)
{
    kprof_variables_note(of_context, owner, address, SIZE);
}

/* How many of the context's are known at the address. */
static size_t count_at(const void *of_context, uint64_t address)
{
    kprof_variable *known;
    size_t count, found = 0;
    assert_true(kprof_variables_list(of_context, &known, &count));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(known[i].size_bytes, SIZE);
        found += known[i].address == address;
    }
    free(known);
    return found;
}

TEST(test_contexts)
{
    note(&context, &module, LOW);
    note(&other_context, &module, HIGH);
    assert_int_equal(count_at(&context, LOW), 1);
    assert_int_equal(count_at(&context, HIGH), 0);
    assert_int_equal(count_at(NULL, LOW) + count_at(NULL, HIGH), 2);
    uint64_t bytes;
    assert_true(kprof_variables_bytes(&bytes));
    assert_int_equal(bytes, 2 * SIZE);
    kprof_variables_forget(&context);
    assert_int_equal(count_at(NULL, LOW), 0);
    assert_int_equal(count_at(&other_context, HIGH), 1);
    assert_true(kprof_variables_bytes(&bytes));
    assert_int_equal(bytes, SIZE);
    note(NULL, &library, LOW);
    assert_int_equal(count_at(&context, LOW) + count_at(&other_context, LOW), 2);
    kprof_variables_unload(&library);
    assert_int_equal(count_at(&context, LOW), 0);
}

TEST(test_owners)
{
    note(&context, &module, LOW);
    note(&context, &library, LOW);
    note(&context, &library, LOW); /* known */
    assert_int_equal(count_at(&context, LOW), 2);
    kprof_variables_unload(&library);
    assert_int_equal(count_at(&context, LOW), 1);
}

/* The memory between belongs to others. */
TEST(test_allocations)
{
    kprof_variables_note_module(&context, &module, "kernel");
    assert_ptr_equal(noted, &whole);
    assert_int_equal(count_at(&context, LOW), 1);
    assert_int_equal(count_at(&context, HIGH), 1);
}

TEST(test_unloaded_in_no_context)
{
    note(&context, &module, LOW);
    without_context = true;
    kprof_variables_unload(&library);
    assert_int_equal(pushed, 0); /* the thread has what it had */
    assert_int_equal(count_at(&context, LOW), 1);
}

/* An error of another kind says nothing about the variable. */
TEST(test_error_on_unloading)
{
    note(&context, &module, LOW);
    attribute_result = CUDA_ERROR_UNKNOWN;
    kprof_variables_unload(&library);
    assert_int_equal(count_at(&context, LOW), 1);
    attribute_result = CUDA_ERROR_INVALID_VALUE;
    kprof_variables_unload(&library);
    assert_int_equal(count_at(&context, LOW), 0);
}

/* A variable that the driver never told of is not gone when it still does not. From here on it may be managed, too. */
TEST(test_never_told)
{
    assert_false(kprof_variables_managed());
    attribute_result = CUDA_ERROR_INVALID_VALUE;
    note(&context, &module, LOW);
    kprof_variables_unload(&library);
    assert_int_equal(count_at(&context, LOW), 1);
    assert_true(kprof_variables_managed());
}

/* The runtime does not ask for the size of a managed variable. */
TEST(test_managed_of_no_size)
{
    managed = true;
    kprof_variables_note(&context, &library, LOW, 0);
    managed = false;
    assert_int_equal(count_at(&context, LOW), 1); /* of the allocation's size */
    assert_true(kprof_variables_managed());
}

static void assert_not_known(void)
{
    kprof_variable *known;
    size_t count;
    assert_false(kprof_variables_list(&context, &known, &count));
    assert_null(known);
}

/* Either of two cubins may be the module's; the driver finds one of the second's two variables. */
static void test_found_in_part(void **state)
{
    noted = NULL;
    kprof_variables_note_module(&context, &module, "doubtful");
    assert_null(noted); /* not all of them are there */
    assert_not_known();
}

static void test_module_not_told(void **state)
{
    module_result = CUDA_ERROR_INVALID_HANDLE;
    kprof_variables_note_module(&context, &module, "kernel");
    assert_not_known();
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    const struct CMUnitTest in_part[] = {cmocka_unit_test(test_found_in_part)};
    const struct CMUnitTest not_told[] = {cmocka_unit_test(test_module_not_told)};
    /* From the first doubt on nothing is known. */
    if (strcmp(which, "in_part") == 0)
        return cmocka_run_group_tests(in_part, name_variables, forget_names);
    if (strcmp(which, "not_told") == 0)
        return cmocka_run_group_tests(not_told, name_variables, forget_names);
    around_each(NULL, forget_all);
    around_all(name_variables, forget_names);
    return run_all_tests();
}
