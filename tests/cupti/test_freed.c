/* Memory that the application frees while a batch is open, and modules that it unloads, stay until the batch is over,
 * and no longer. */
#include "cupti/freed.h"

#include "core/config.h"
#include "cupti/allocations.h"
#include "cupti/compile.h"
#include "cupti/profiler.h"
#include "cupti/redirect.h"
#include "cupti/variables.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define FIRST  0x10000
#define SECOND 0x10001
#define NONE   0x30000
#define OWN    0x50000 /* kprof's own allocations, one after the other */
#define BYTES  ((size_t)4 << 20)
#define MOST   256

static char context, other;
static CUcontext current;
static bool redirects, redirects_modules;
static size_t free_bytes, asked, own_count, own_bytes;
static CUresult alloc_result;
static CUdeviceptr freed_by_driver[MOST], forgotten[MOST];
static size_t freed_count, forgotten_count;
static CUmodule unloaded_by_driver[MOST], forgotten_modules[MOST];
static size_t unloaded_count, forgotten_module_count, own_modules, profilers_told, compiled;
static char modules[MOST], modules_of_kprof[MOST + 1];
static kprof_freed freed;

static CUmodule module_at(char *place)
{
    return (CUmodule)(void *)place;
}

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

bool kprof_redirect_works_for_modules(const void *code)
{
    assert_non_null(code);
    return redirects_modules;
}

/* Modules are loaded from what was compiled. */
bool kprof_thing_make(const kprof_driver_api *driver, const void *code, size_t bytes, kprof_thing *out)
{
    *out = (kprof_thing){0};
    if (!code)
        return driver->cuMemAlloc_(&out->memory, bytes) == CUDA_SUCCESS;
    out->module = module_at(&modules_of_kprof[own_modules++]);
    return alloc_result == CUDA_SUCCESS;
}

CUresult kprof_thing_free(const kprof_driver_api *driver, const kprof_thing *thing)
{
    if (!thing->module)
        return driver->cuMemFree_(thing->memory);
    unloaded_by_driver[unloaded_count++] = thing->module;
    return CUDA_SUCCESS;
}

CUresult kprof_compile(const kprof_driver_api *driver, const char *ptx, void **code)
{
    assert_non_null(strstr(ptx, KPROF_VARIABLE "["));
    compiled++;
    *code = malloc(1);
    return *code ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

size_t kprof_variables_bytes_of(const void *owner)
{
    return owner == &modules[1] ? 10 * BYTES : 0;
}

void kprof_variables_unload(const void *owner)
{
    forgotten_modules[forgotten_module_count++] = (CUmodule)(uintptr_t)owner;
}

void kprof_profilers_note_unload(void)
{
    profilers_told++;
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
    freed = (kprof_freed){0};
    current = (CUcontext)(void *)&context;
    redirects = true;
    free_bytes = (size_t)40 << 30;
    redirects_modules = true;
    asked = own_count = freed_count = forgotten_count = 0;
    unloaded_count = forgotten_module_count = own_modules = profilers_told = compiled = 0;
    for (size_t i = 0; i < MOST; i++)
        kprof_freed_note_load(&context, &modules[i]);
    alloc_result = CUDA_SUCCESS;
    return 0;
}

static int tear_down(void **state)
{
    kprof_freed_close(&freed);
    kprof_freed_forget(&context);
    return 0;
}

static bool keep(CUdeviceptr *argument)
{
    return kprof_freed_keep(&freed, &context, (kprof_argument){.memory = argument});
}

static bool keep_module(CUmodule *argument)
{
    return kprof_freed_keep(&freed, &context, (kprof_argument){.is_module = true, .module = argument});
}

static void check_not_kept(CUdeviceptr address)
{
    CUdeviceptr argument = address;
    assert_false(keep(&argument));
    assert_int_equal(argument, address);
    assert_int_equal(freed.count, 0);
    assert_int_equal(freed.bytes, 0);
}

TEST(test_kept)
{
    CUdeviceptr first = FIRST, second = SECOND;
    assert_true(keep(&first));
    assert_true(keep(&second));
    assert_int_equal(first, OWN);
    assert_int_equal(second, OWN + 1);
    assert_true(own_bytes < BYTES);
    assert_int_equal(freed.bytes, 2 * BYTES);
    assert_int_equal(asked, 1);
    assert_int_equal(freed_count, 0);
    assert_int_equal(forgotten_count, 2);
    first = FIRST;
    assert_false(keep(&first)); /* once more: the driver is to refuse it */
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
    assert_true(keep(&argument));
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
    assert_true(keep(&first));
    assert_false(keep(&second));
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 1);
}

TEST(test_many)
{
    for (size_t i = 0; i < 200; i++) {
        CUdeviceptr argument = FIRST + i;
        assert_true(keep(&argument));
    }
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 200);
}

TEST(test_context_that_is_not_current)
{
    CUdeviceptr first = FIRST;
    assert_true(keep(&first));
    current = (CUcontext)(void *)&other;
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 0);
    current = (CUcontext)(void *)&context;
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(freed_count, 1);
    assert_int_equal(freed.count, 0);
}

/* The call unloads another module. Replays may patch the code before the application's goes, and handles may come back
 * after that. */
TEST(test_modules)
{
    const unsigned before = kprof_freed_unloads();
    CUmodule first = module_at(&modules[0]), second = module_at(&modules[1]);
    assert_true(keep_module(&first));
    assert_true(keep_module(&second));
    assert_ptr_equal(first, &modules_of_kprof[0]);
    assert_ptr_equal(second, &modules_of_kprof[1]);
    assert_int_equal(compiled, 1);
    assert_int_equal(freed.bytes, 10 * BYTES);
    assert_int_equal(unloaded_count + forgotten_module_count + profilers_told, 0);
    assert_int_equal(kprof_freed_unloads(), before);
    kprof_freed_let_go(&freed, &context);
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(unloaded_count, 2);
    assert_ptr_equal(unloaded_by_driver[0], &modules[0]);
    assert_ptr_equal(unloaded_by_driver[1], &modules[1]);
    assert_ptr_equal(forgotten_modules[0], &modules[0]);
    assert_int_equal(forgotten_module_count, 2);
    assert_int_equal(profilers_told, 2);
    assert_int_equal(kprof_freed_unloads(), before + 2);
    assert_int_equal(freed.bytes, 0);
    assert_int_equal(freed_count, 0);
}

static void check_module_not_kept(char *place)
{
    CUmodule argument = module_at(place);
    assert_false(keep_module(&argument));
    assert_ptr_equal(argument, place);
    assert_int_equal(freed.count, 0);
}

/* The driver is to refuse what it would refuse without kprof. */
TEST(test_modules_that_are_not_loaded)
{
    CUmodule again = module_at(&modules[0]);
    check_module_not_kept(NULL);
    check_module_not_kept(&context);
    kprof_freed_note_unload(&modules[2]);
    check_module_not_kept(&modules[2]);
    kprof_freed_note_load(&other, &modules[2]);
    check_module_not_kept(&modules[2]); /* another context has it */
    kprof_freed_forget(&other);
    assert_false(keep_module(NULL)); /* a library */
    assert_true(keep_module(&again));
    again = module_at(&modules[0]);
    assert_false(keep_module(&again));
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(unloaded_count, 1);
    kprof_freed_forget(&context);
    check_module_not_kept(&modules[3]);
}

TEST(test_modules_that_cannot_be_kept)
{
    redirects_modules = false;
    check_module_not_kept(&modules[0]);
    redirects_modules = true;
    alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
    check_module_not_kept(&modules[0]);
    alloc_result = CUDA_SUCCESS;
    freed.most_bytes = 0;
    free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    check_module_not_kept(&modules[0]);
    free_bytes = KPROF_DEVICE_RESERVE_BYTES + 16 * BYTES;
    check_module_not_kept(&modules[1]); /* its variables take more than a quarter */
}

TEST(test_many_modules)
{
    kprof_freed_note_load(&context, &other);
    for (size_t i = 0; i < MOST; i++) {
        CUmodule argument = module_at(&modules[i]);
        assert_true(keep_module(&argument));
    }
    CUmodule argument = module_at(&other);
    assert_false(keep_module(&argument));
    kprof_freed_let_go(&freed, &context);
    assert_int_equal(unloaded_count, MOST);
    assert_true(keep_module(&argument));
}

AROUND_EACH(set_up, tear_down)
