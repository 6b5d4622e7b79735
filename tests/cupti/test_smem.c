/* The carve-out rule against launches recorded on an H200. */
#include "cupti/smem.h"
#include "test.h"

#include <stdio.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t configured(const uint32_t row[6], int carveout_pct)
{
    uint32_t smem = row[2] + row[3], per_block = (smem + 127) / 128 * 128 + 1024;
    kprof_smem_request request = {
        .cc_major = 9,
        .threads_per_block = row[0],
        .smem_per_block_bytes = smem,
        .reserved_smem_per_block_bytes = 1024,
        .max_blocks_per_sm = least(least(row[4], row[5]), least(32, 233472 / per_block)),
        .carveout_pct = carveout_pct,
    };
    return kprof_smem_configured_bytes(&request);
}

TEST(test_recorded_launches)
{
    FILE *file = fopen(KPROF_TESTS_DIR "/fixtures/h200-smem-config.csv", "r");
    assert_non_null(file);
    char line[256];
    int rows = 0;
    while (fgets(line, sizeof line, file)) {
        uint32_t row[6], expected;
        if (sscanf(line, "%u,%u,%u,%u,%u,%u,%u", &row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &expected) != 7)
            continue; /* the heading */
        assert_int_equal(configured(row, -1), expected);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 204);
}

/* 128 threads without and with 8 KB, and 1,024 threads with 8 KB, as recorded for each preference. */
TEST(test_preferred_carveouts)
{
    static const struct {
        int pct;
        uint32_t none_kb, some_kb, large_kb;
    } recorded[] = {{0, 32, 16, 16},     {10, 32, 32, 32},    {25, 64, 64, 64},
                    {50, 132, 132, 132}, {75, 196, 196, 196}, {100, 228, 228, 228}};
    static const uint32_t none[6] = {128, 27, 0, 0, 16, 16}, some[6] = {128, 27, 0, 8192, 16, 16},
                          large[6] = {1024, 27, 0, 8192, 2, 2};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        assert_int_equal(configured(none, recorded[i].pct), recorded[i].none_kb * 1024);
        assert_int_equal(configured(some, recorded[i].pct), recorded[i].some_kb * 1024);
        assert_int_equal(configured(large, recorded[i].pct), recorded[i].large_kb * 1024);
    }
}

TEST(test_unknown_chip)
{
    kprof_smem_request request = {.cc_major = 8, .threads_per_block = 128, .max_blocks_per_sm = 16, .carveout_pct = -1};
    assert_int_equal(kprof_smem_configured_bytes(&request), 0);
}
