/* What saving and restoring memory does where it is short, or where the driver or libcheckpoint fails: nothing may
 * count as saved, or as restored, that is not. */
#include "cupti/driver.h"
#include "cupti/load.h"
#include "cupti/snapshot.h"
#include "cupti/variables.h"

#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define GIBIBYTE ((size_t)1 << 30)
#define MEBIBYTE ((size_t)1 << 20)

enum { FIRST = 0x10000, SECOND = 0x20000 };

static char context;
static size_t free_bytes, total_bytes, host_bytes;
static CUresult info_result, read_result, write_result;
static CUptiResult save_result, restore_result;
static unsigned saves, restores, frees, drops;
static kprof_checkpoint_params saved_with;
static kprof_variable known[2];
static size_t known_count;
static bool all_known;
static unsigned version;

static CUresult CUDAAPI get_info(size_t *left, size_t *total)
{
    *left = free_bytes;
    *total = total_bytes;
    return info_result;
}

/* Each variable is an allocation. */
static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)out = address;
    else
        *(size_t *)out = known[address == SECOND].size_bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI copy_out(void *host, CUdeviceptr device, size_t size)
{
    (void)host;
    (void)device;
    (void)size;
    return read_result;
}

static CUresult CUDAAPI copy_in(CUdeviceptr device, const void *host, size_t size)
{
    (void)device;
    (void)host;
    (void)size;
    return write_result;
}

static CUptiResult save(kprof_checkpoint_params *params)
{
    saves++;
    saved_with = *params;
    usleep(1000);
    return save_result;
}

static CUptiResult restore(kprof_checkpoint_params *params)
{
    (void)params;
    restores++;
    return restore_result;
}

static CUptiResult free_saved(kprof_checkpoint_params *params)
{
    (void)params;
    frees++;
    return CUPTI_SUCCESS;
}

/* In place of the driver's, of libcheckpoint's, of the machine's memory, and of what is known of modules. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuMemGetInfo_ = get_info,
                                         .cuPointerGetAttribute_ = get_attribute,
                                         .cuMemcpyDtoH_ = copy_out,
                                         .cuMemcpyHtoD_ = copy_in};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    (void)result;
    return "error of the test";
}

kprof_status kprof_checkpoint_load(const kprof_checkpoint_api **out)
{
    static const kprof_checkpoint_api api = {
        .cuptiCheckpointSave = save, .cuptiCheckpointRestore = restore, .cuptiCheckpointFree = free_saved};
    *out = &api;
    return KPROF_OK;
}

size_t kprof_memory_available_bytes(void)
{
    return host_bytes;
}

unsigned kprof_variables_version(void)
{
    return version;
}

bool kprof_variables_list(const void *of_context, kprof_variable **out, size_t *count)
{
    assert_ptr_equal(of_context, &context);
    *out = calloc(known_count + 1, sizeof **out);
    memcpy(*out, known, known_count * sizeof **out);
    *count = known_count;
    if (all_known)
        return true;
    free(*out);
    return false;
}

void kprof_variables_drop(const void *of_context, uint64_t address)
{
    (void)of_context;
    (void)address;
    drops++;
}

static int set_up(void **state)
{
    (void)state;
    total_bytes = host_bytes = 64 * GIBIBYTE;
    free_bytes = 40 * GIBIBYTE;
    info_result = read_result = write_result = CUDA_SUCCESS;
    save_result = restore_result = CUPTI_SUCCESS;
    saves = restores = frees = drops = 0;
    known[0] = (kprof_variable){.context = &context, .address = FIRST, .size_bytes = 64, .told = true};
    known[1] = (kprof_variable){.context = &context, .address = SECOND, .size_bytes = 64, .told = true};
    known_count = 0;
    all_known = true;
    return 0;
}

static kprof_snapshot *take(void)
{
    kprof_snapshot *snapshot = NULL;
    assert_int_equal(kprof_snapshot_take(&context, &snapshot), KPROF_OK);
    assert_non_null(snapshot);
    assert_ptr_equal(saved_with.context, &context);
    assert_int_equal(saved_with.allow_overwrite, 1);
    return snapshot;
}

/* And what was saved in the meantime is freed. */
static void assert_not_taken(kprof_status expected, unsigned expected_saves)
{
    kprof_snapshot *snapshot;
    saves = frees = 0;
    assert_int_equal(kprof_snapshot_take(&context, &snapshot), expected);
    assert_null(snapshot);
    assert_int_equal(saves, expected_saves);
    assert_int_equal(frees, 0); /* there is nothing of it to free */
}

static void test_on_the_device(void **state)
{
    (void)state;
    kprof_snapshot *snapshot = take();
    assert_int_equal(saved_with.reserve_device_mb, 0);
    assert_true(kprof_snapshot_host_save_s(snapshot) == 0);
    kprof_snapshot_free(snapshot);
    assert_int_equal(frees, 1);
}

/* 54 GiB in use, of which 10 less the reserve find room beside it. */
static void test_on_the_host(void **state)
{
    (void)state;
    free_bytes = 10 * GIBIBYTE;
    host_bytes = (46 + 4) * GIBIBYTE;
    kprof_snapshot *snapshot = take();
    assert_int_equal(saved_with.reserve_device_mb, 2048);
    assert_true(kprof_snapshot_host_save_s(snapshot) > 0);
    kprof_snapshot_free(snapshot);
}

/* The system would end the application for want of memory. */
static void test_no_room_on_the_host(void **state)
{
    (void)state;
    free_bytes = 10 * GIBIBYTE;
    host_bytes = (46 + 4) * GIBIBYTE - 1;
    assert_not_taken(KPROF_NO_MEMORY, 0);
    free_bytes = GIBIBYTE; /* less than the reserve: all 63 go to the host */
    host_bytes = (63 + 4) * GIBIBYTE - 1;
    assert_not_taken(KPROF_NO_MEMORY, 0);
    host_bytes++;
    kprof_snapshot_free(take());
    info_result = CUDA_ERROR_UNKNOWN;
    assert_not_taken(KPROF_UNSUPPORTED, 0);
}

static void test_save_fails(void **state)
{
    (void)state;
    save_result = CUPTI_ERROR_OUT_OF_MEMORY;
    assert_not_taken(KPROF_NO_MEMORY, 1);
    save_result = CUPTI_ERROR_UNKNOWN;
    assert_not_taken(KPROF_UNSUPPORTED, 1);
}

static void test_restore_fails(void **state)
{
    (void)state;
    known_count = 1;
    kprof_snapshot *snapshot = take();
    restore_result = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_restore(snapshot), KPROF_INTERNAL);
    restore_result = CUPTI_SUCCESS;
    write_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_restore(snapshot), KPROF_INTERNAL);
    write_result = CUDA_SUCCESS;
    assert_int_equal(kprof_snapshot_restore(snapshot), KPROF_OK);
    assert_int_equal(restores, 3);
    kprof_snapshot_free(snapshot);
}

/* Only of what is no address any more is it known that it is gone. */
static void test_variable_that_cannot_be_read(void **state)
{
    (void)state;
    known_count = 1;
    read_result = CUDA_ERROR_UNKNOWN;
    assert_not_taken(KPROF_UNSUPPORTED, 0);
    assert_int_equal(drops, 0);
    read_result = CUDA_ERROR_INVALID_VALUE;
    kprof_snapshot_free(take());
    assert_int_equal(drops, 1);
}

static void test_large_variables(void **state)
{
    (void)state;
    known_count = 2;
    known[0].size_bytes = known[1].size_bytes = 128 * MEBIBYTE;
    kprof_snapshot_free(take());
    known[1].size_bytes++;
    assert_not_taken(KPROF_UNSUPPORTED, 0);
}

/* Once more, too: nothing has been learnt since. */
static void assert_never_covered(kprof_snapshot *snapshot)
{
    version++;
    assert_int_equal(kprof_snapshot_cover(snapshot), KPROF_UNSUPPORTED);
    assert_int_equal(kprof_snapshot_cover(snapshot), KPROF_UNSUPPORTED);
}

static void test_variables_that_become_known(void **state)
{
    (void)state;
    kprof_snapshot *snapshot = take();
    known_count = 1;
    read_result = CUDA_ERROR_UNKNOWN;
    assert_never_covered(snapshot);
    read_result = CUDA_SUCCESS;
    assert_int_equal(kprof_snapshot_cover(snapshot), KPROF_OK);
    all_known = false;
    assert_int_equal(kprof_snapshot_cover(snapshot), KPROF_OK); /* there are no new ones */
    assert_never_covered(snapshot);
    kprof_snapshot_free(snapshot);
    assert_not_taken(KPROF_UNSUPPORTED, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_on_the_device, set_up),
        cmocka_unit_test_setup(test_on_the_host, set_up),
        cmocka_unit_test_setup(test_no_room_on_the_host, set_up),
        cmocka_unit_test_setup(test_save_fails, set_up),
        cmocka_unit_test_setup(test_restore_fails, set_up),
        cmocka_unit_test_setup(test_variable_that_cannot_be_read, set_up),
        cmocka_unit_test_setup(test_large_variables, set_up),
        cmocka_unit_test_setup(test_variables_that_become_known, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
