/* Device memory that copies are kept in: pieces lie apart, the device keeps a reserve, and nothing is asked for twice.
 */
#include "core/config.h"
#include "cupti/backing.h"
#include "fake_device.h"
#include "test.h"

#define MEBIBYTE ((size_t)1 << 20)
#define GIBIBYTE ((size_t)1 << 30)

static kprof_driver_api api;
static kprof_backing backing;

static int set_up(void **state)
{
    fake_reset();
    api = fake_api();
    backing = (kprof_backing){0};
    return 0;
}

static int tear_down(void **state)
{
    kprof_backing_release(&backing, &api, true);
    assert_int_equal(fake.chunks, 0);
    return 0;
}

static void reserve(size_t bytes, size_t largest)
{
    assert_int_equal(kprof_backing_reserve(&backing, &api, bytes, largest), KPROF_OK);
}

TEST(test_nothing_reserved)
{
    assert_int_equal(kprof_backing_take(&backing, 1), 0);
    assert_int_equal(fake.chunks, 0);
}

TEST(test_pieces_lie_apart)
{
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
TEST(test_all_that_was_reserved)
{
    const size_t piece = 65536;
    reserve(20 * MEBIBYTE, piece);
    assert_true(kprof_backing_take(&backing, 5 * MEBIBYTE) != 0);
    reserve(100 * MEBIBYTE, piece);
    assert_int_equal(fake.chunks, 2);
    for (size_t at = 0; at < 100 * MEBIBYTE; at += piece)
        assert_true(kprof_backing_take(&backing, piece) != 0);
    assert_true(kprof_backing_take(&backing, piece) != 0); /* the one more */
}

TEST(test_space_is_used_again)
{
    reserve(20 * MEBIBYTE, 65536);
    size_t taken_bytes = fake.taken_bytes;
    CUdeviceptr first = kprof_backing_take(&backing, MEBIBYTE);
    kprof_backing_reset(&backing);
    reserve(20 * MEBIBYTE, 65536);
    assert_int_equal(fake.taken_bytes, taken_bytes);
    assert_int_equal(kprof_backing_take(&backing, MEBIBYTE), first);
}

TEST(test_no_space_left)
{
    reserve(MEBIBYTE, 0);
    assert_int_equal(kprof_backing_take(&backing, GIBIBYTE), 0);
    assert_true(kprof_backing_take(&backing, MEBIBYTE) != 0);
}

/* The application may need more memory later. */
TEST(test_reserve_of_the_device)
{
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

TEST(test_driver_that_fails)
{
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
TEST(test_context_that_is_gone)
{
    reserve(MEBIBYTE, 0);
    CUdeviceptr address = kprof_backing_take(&backing, 1);
    kprof_backing_release(&backing, &api, false);
    assert_int_equal(fake.chunks, 1);
    assert_int_equal(kprof_backing_take(&backing, 1), 0);
    fake_free(address); /* in the test only */
}

AROUND_EACH(set_up, tear_down)
