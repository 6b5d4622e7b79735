/* Managed memory that stays on the host while a batch is open: the test has the driver, and the pages of the system. */
#include "cupti/stay.h"

#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/driver.h"
#include "cupti/mappings.h"
#include "cupti/variables.h"
#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES 4096

static _Alignas(PAGE_BYTES) unsigned char memory[4 * PAGE_BYTES]; /* that the host reads */
static kprof_span spans[2];
static size_t span_count, advised; /* advised: those that have the advice now */
static kprof_variable variable;
static bool stays, refuses, is_absent;
static unsigned allocations_version;
static size_t lists;
static int preferred, mostly_read, reached_by; /* as the application has said; -2: nothing */

static CUresult CUDAAPI get_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI get_range(void *out, size_t size_bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                  size_t bytes)
{
    int *values = out;
    for (size_t i = 0; i < size_bytes / sizeof *values; i++)
        values[i] = CU_DEVICE_INVALID;
    *values = attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY          ? mostly_read
              : attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION ? preferred
                                                                       : reached_by;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    assert_int_equal(location.type, CU_MEM_LOCATION_TYPE_HOST);
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION && refuses && advised == 1)
        return CUDA_ERROR_INVALID_VALUE;
    advised += advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION;
    advised -= advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    (void)mode;
    return CUDA_SUCCESS;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuCtxGetDevice_ = get_device,
                                         .cuDeviceGetAttribute_ = get_attribute,
                                         .cuMemRangeGetAttribute_ = get_range,
                                         .cuMemAdvise_ = advise,
                                         .cuThreadExchangeStreamCaptureMode_ = exchange_mode};
    *out = &api;
    return KPROF_OK;
}

bool kprof_mappings_all_present(uint64_t address, size_t size_bytes)
{
    return !is_absent;
}

bool kprof_allocations_list_managed(kprof_span **out, size_t *count)
{
    lists++;
    *out = calloc(COUNT_OF(spans), sizeof **out);
    *count = span_count;
    for (size_t i = 0; *out && i < span_count; i++)
        (*out)[i] = spans[i];
    return *out != NULL;
}

bool kprof_allocations_managed_stays(void)
{
    return stays;
}

void kprof_allocations_let_managed_stay(bool now)
{
    stays = now;
}

unsigned kprof_allocations_version(void)
{
    return allocations_version;
}

unsigned kprof_variables_version(void)
{
    return 7;
}

bool kprof_mappings_find_present(uint64_t *begin, uint64_t *end)
{
    return false;
}

bool kprof_variables_list(const void *of, kprof_variable **out, size_t *count)
{
    assert_null(of);
    *out = calloc(1, sizeof **out);
    *count = 1;
    if (*out)
        **out = variable;
    return *out != NULL;
}

static int set_up(void **state)
{
    spans[0] = (kprof_span){(uintptr_t)memory, PAGE_BYTES};
    spans[1] = (kprof_span){(uintptr_t)memory + PAGE_BYTES, 5};
    span_count = 1;
    variable = (kprof_variable){.address = (uintptr_t)memory + 3 * PAGE_BYTES, .size_bytes = 64, .is_managed = true};
    preferred = reached_by = CU_DEVICE_INVALID;
    mostly_read = 0;
    refuses = is_absent = false;
    return 0;
}

TEST_WITH(test_memory_that_stays, set_up, NULL)
{
    assert_true(kprof_managed_may_stay());
    kprof_managed_stay();
    assert_true(stays);
    assert_false(kprof_managed_may_stay()); /* it does */
    assert_int_equal(kprof_managed_hold(), KPROF_OK);
    assert_int_equal(advised, 2);
    assert_true(kprof_managed_let_go(false));
    assert_int_equal(advised, 0);
    assert_true(kprof_managed_let_go(false)); /* nothing is held */
    assert_true(stays);
}

/* Each launch that is not repeated asks. */
TEST_WITH(test_too_much, set_up, NULL)
{
    const size_t size_bytes = spans[0].size_bytes;
    stays = false;
    spans[0].size_bytes = (size_t)2 << 20;
    assert_false(kprof_managed_may_stay());
    const size_t before = lists;
    assert_false(kprof_managed_may_stay());
    assert_int_equal(lists, before);
    spans[0].size_bytes = size_bytes;
    allocations_version++;
    assert_true(kprof_managed_may_stay());
    stays = true;
}

TEST_WITH(test_memory_that_comes, set_up, NULL)
{
    assert_int_equal(kprof_managed_hold(), KPROF_OK);
    span_count = 2;
    assert_false(kprof_managed_let_go(false));
    assert_int_equal(advised, 0);
    assert_true(stays); /* the next time with what has come */
    assert_int_equal(kprof_managed_hold(), KPROF_OK);
    assert_int_equal(advised, 3);
    assert_true(kprof_managed_let_go(false));
    for (size_t i = 0; i < 2; i++) {
        assert_true(stays);
        assert_int_equal(kprof_managed_hold(), KPROF_OK);
        span_count = i == 0 ? 1 : 2;
        assert_false(kprof_managed_let_go(false));
    }
    assert_false(stays); /* each batch would be lost */
}

/* Variables of the device stay where they are. */
TEST_WITH(test_variable_of_the_device, set_up, NULL)
{
    variable.is_managed = false;
    assert_int_equal(kprof_managed_hold(), KPROF_OK);
    assert_int_equal(advised, 1);
    assert_true(kprof_managed_let_go(false));
}

/* Nothing stays any more once that has failed: so each try has a process of its own. */
static bool ends_stay(void (*spoil)(void), bool reached)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        stays = true;
        spoil();
        const bool fails = kprof_managed_hold() != KPROF_OK || !kprof_managed_let_go(reached);
        _exit((fails || reached) && advised == 0 && !stays && !kprof_managed_may_stay() ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void prefer_device(void)
{
    preferred = 0;
}

static void read_mostly(void)
{
    mostly_read = 1;
}

static void reach_from_device(void)
{
    reached_by = 0;
}

static void add_much(void)
{
    spans[0].size_bytes = (size_t)2 << 20;
}

static void refuse(void)
{
    refuses = true;
}

static void leave_host(void)
{
    is_absent = true;
}

/* As the application may, to see who uses it. */
static void forbid(void)
{
    (void)!mprotect(memory, PAGE_BYTES, PROT_NONE);
}

static void do_nothing(void) {}

TEST_WITH(test_end_of_staying, set_up, NULL)
{
    assert_true(ends_stay(prefer_device, false)); /* the application's advice holds */
    assert_true(ends_stay(read_mostly, false));
    assert_true(ends_stay(reach_from_device, false));
    assert_true(ends_stay(add_much, false));
    assert_true(ends_stay(refuse, false));     /* the second advice */
    assert_true(ends_stay(leave_host, false)); /* a kernel took a page */
    assert_true(ends_stay(forbid, false));
    assert_true(ends_stay(do_nothing, true));
    assert_false(ends_stay(do_nothing, false));
    add_much();
    stays = false;
    assert_false(kprof_managed_may_stay());
}
