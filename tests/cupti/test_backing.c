/* Device memory that copies are kept in: pieces lie apart, the device keeps a reserve, and nothing is asked for twice.
 */
#include "core/config.h"
#include "cupti/backing.h"
#include "fake_device.h"

#define MEBIBYTE ((size_t)1 << 20)
#define GIBIBYTE ((size_t)1 << 30)

static kprof_driver_api api;
static kprof_backing backing;

static int set_up(void **state)
{
    (void)state;
    fake_reset();
    api = fake_api();
    backing = (kprof_backing){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kprof_backing_release(&backing, &api, true);
    assert_int_equal(fake.chunks, 0);
    return 0;
}

static void reserve(size_t bytes, size_t largest)
{
    assert_int_equal(kprof_backing_reserve(&backing, &api, bytes, largest), KPROF_OK);
}

static void test_nothing_reserved(void **state)
{
    (void)state;
    assert_int_equal(kprof_backing_take(&backing, 1), 0);
    assert_int_equal(fake.chunks, 0);
}

static void test_pieces_lie_apart(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 256, 257, 65536, 3};
    uint64_t end = 0;
    reserve(MEBIBYTE, 65536);
    assert_int_equal(fake.chunks, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr piece = kprof_backing_take(&backing, sizes[i]);
        assert_true(piece != 0 && piece % 256 == 0 && piece >= end);
        end = piece + sizes[i];
    }
}

/* However they are cut: what one chunk has left is too little for the largest. */
static void test_all_that_was_reserved(void **state)
{
    (void)state;
    const size_t piece = 65536;
    reserve(20 * MEBIBYTE, piece);
    assert_true(kprof_backing_take(&backing, 5 * MEBIBYTE) != 0);
    reserve(100 * MEBIBYTE, piece);
    assert_int_equal(fake.chunks, 2);
    for (size_t at = 0; at < 100 * MEBIBYTE; at += piece)
        assert_true(kprof_backing_take(&backing, piece) != 0);
    assert_true(kprof_backing_take(&backing, piece) != 0); /* the one more */
}

static void test_space_is_used_again(void **state)
{
    (void)state;
    reserve(20 * MEBIBYTE, 65536);
    size_t taken_bytes = fake.taken_bytes;
    CUdeviceptr first = kprof_backing_take(&backing, MEBIBYTE);
    kprof_backing_reset(&backing);
    reserve(20 * MEBIBYTE, 65536);
    assert_int_equal(fake.taken_bytes, taken_bytes);
    assert_int_equal(kprof_backing_take(&backing, MEBIBYTE), first);
}

static void test_no_space_left(void **state)
{
    (void)state;
    reserve(MEBIBYTE, 0);
    assert_int_equal(kprof_backing_take(&backing, GIBIBYTE), 0);
    assert_true(kprof_backing_take(&backing, MEBIBYTE) != 0);
}

/* The application may need more memory later. */
static void test_reserve_of_the_device(void **state)
{
    (void)state;
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES + 64 * MEBIBYTE;
    assert_int_equal(kprof_backing_reserve(&backing, &api, 64 * MEBIBYTE, 0), KPROF_NO_MEMORY);
    assert_int_equal(fake.chunks, 0);
    reserve(60 * MEBIBYTE, 0);
    assert_true(fake.free_bytes >= KPROF_DEVICE_RESERVE_BYTES);
    assert_int_equal(kprof_backing_reserve(&backing, &api, 90 * MEBIBYTE, 0), KPROF_NO_MEMORY);
    kprof_backing_release(&backing, &api, true);
    fake.free_bytes = MEBIBYTE; /* less than the reserve */
    assert_int_equal(kprof_backing_reserve(&backing, &api, 1, 0), KPROF_NO_MEMORY);
}

static void test_driver_that_fails(void **state)
{
    (void)state;
    fake.alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(kprof_backing_reserve(&backing, &api, 1, 0), KPROF_NO_MEMORY);
    fake.alloc_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_backing_reserve(&backing, &api, 1, 0), KPROF_INTERNAL);
    fake.alloc_result = CUDA_SUCCESS;
    fake.info_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_backing_reserve(&backing, &api, 1, 0), KPROF_INTERNAL);
    assert_int_equal(kprof_backing_take(&backing, 1), 0);
}

/* Memory of a context that is gone cannot be freed. */
static void test_context_that_is_gone(void **state)
{
    (void)state;
    reserve(MEBIBYTE, 0);
    CUdeviceptr address = kprof_backing_take(&backing, 1);
    kprof_backing_release(&backing, &api, false);
    assert_int_equal(fake.chunks, 1);
    assert_int_equal(kprof_backing_take(&backing, 1), 0);
    fake_free(address); /* in the test only */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_reserved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces_lie_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_that_was_reserved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_space_is_used_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_space_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reserve_of_the_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_driver_that_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_context_that_is_gone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
