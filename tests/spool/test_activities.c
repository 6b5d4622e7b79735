/* Blocks of activities: each number survives, a kernel takes few bytes, and what is cut or forged is refused. */
#include "core/bytes.h"
#include "spool/activities.h"
#include "test.h"

#define MANY 2000

static uint64_t seed;

/* Small ones, and those of all 64 bits. */
static int64_t next_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> (seed >> 32) % 64);
}

static kprof_activity make_activity(size_t i)
{
    kprof_activity activity = {.kind = (kprof_activity_kind)(1 + i % (KPROF_ACTIVITY_KINDS - 1))};
    for (size_t k = 0; k < kprof_activity_field_count(activity.kind); k++)
        activity.fields[k] = i % 7 == 0 ? -next_number() : i % 5 == 0 ? 4 : next_number();
    return activity;
}

static kprof_strbuf make_block(void)
{
    kprof_strbuf block = KPROF_STRBUF_INIT;
    kprof_activity_history history = {0};
    seed = 1;
    for (size_t i = 0; i < MANY; i++) {
        const kprof_activity activity = make_activity(i);
        kprof_activity_encode(&history, &activity, &block);
    }
    assert_false(block.failed);
    return block;
}

TEST(every_number_survives)
{
    kprof_strbuf bytes = make_block();
    kprof_activity_block block = {.data = (const uint8_t *)bytes.data, .left = bytes.length};
    kprof_activity read;
    seed = 1;
    for (size_t i = 0; i < MANY; i++) {
        const kprof_activity made = make_activity(i);
        assert_true(kprof_activity_decode(&block, &read));
        assert_int_equal(read.kind, made.kind);
        assert_memory_equal(read.fields, made.fields, sizeof made.fields);
    }
    assert_false(kprof_activity_decode(&block, &read));
    assert_false(block.failed);
    kprof_strbuf_free(&bytes);
}

TEST(a_kernel_takes_few_bytes)
{
    KPROF_AUTO(kprof_strbuf) block = KPROF_STRBUF_INIT;
    kprof_activity_history history = {0};
    kprof_activity kernel = {.kind = KPROF_ACTIVITY_KERNEL};
    kernel.kernel =
        (kprof_kernel_activity){.start_ns = 1700000000000000000, .device = 7, .stream = 13, .grid_x = 65536};
    for (int i = 0; i < 1000; i++) {
        kernel.kernel.start_ns += 25000;
        kernel.kernel.end_ns = kernel.kernel.start_ns + 18000 + i;
        kernel.kernel.correlation++;
        kernel.kernel.name = 1 + i % 3;
        kprof_activity_encode(&history, &kernel, &block);
    }
    assert_in_range(block.length, 1000, 16000);
}

static size_t count_activities(const uint8_t *data, size_t size, bool *failed)
{
    kprof_activity_block block = {.data = data, .left = size};
    kprof_activity activity;
    size_t count = 0;
    while (kprof_activity_decode(&block, &activity))
        count++;
    *failed = block.failed;
    assert_int_equal(block.left, 0);
    return count;
}

TEST(a_cut_block_has_no_more)
{
    bool failed;
    kprof_strbuf bytes = make_block();
    size_t before = 0;
    for (size_t size = 0; size < 500; size++) {
        const size_t count = count_activities((const uint8_t *)bytes.data, size, &failed);
        assert_in_range(count, before, before + 1); /* it fails unless it ends with an activity */
        assert_int_equal(failed, size > 0 && count == before);
        before = count;
    }
    kprof_strbuf_free(&bytes);
}

TEST(forged_blocks_do_no_harm)
{
    bool failed;
    static const uint8_t no_kind[] = {KPROF_ACTIVITY_KINDS, 0}, zero[] = {0}, no_field[] = {KPROF_ACTIVITY_EXTERNAL, 8},
                         endless[] = {
                             KPROF_ACTIVITY_EXTERNAL, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    assert_int_equal(count_activities(no_kind, sizeof no_kind, &failed), 0);
    assert_true(failed);
    assert_int_equal(count_activities(zero, sizeof zero, &failed), 0);
    assert_true(failed);
    assert_int_equal(count_activities(no_field, sizeof no_field, &failed), 0);
    assert_true(failed);
    assert_int_equal(count_activities(endless, sizeof endless, &failed), 0);
    assert_true(failed);
    kprof_strbuf bytes = make_block();
    for (size_t bit = 0; bit < 400; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        (void)count_activities((const uint8_t *)bytes.data, bytes.length, &failed);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    kprof_strbuf_free(&bytes);
}
