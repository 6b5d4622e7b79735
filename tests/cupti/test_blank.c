/* Blank counter data: images made up of a head, blocks and an end. */
#include "cupti/blank.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

typedef struct made_image {
    size_t head, end, ranges, range_bytes, size;
    uint8_t *bytes, *blank; /* [size] */
} made_image;

/* Blocks whose last bytes, and the head's, are `tail`, so that where a block begins cannot be told. */
static made_image make(size_t head, size_t ranges, size_t range_bytes, size_t end)
{
    made_image m = {.head = head, .end = end, .ranges = ranges, .range_bytes = range_bytes};
    m.size = head + ranges * range_bytes + end;
    m.bytes = malloc(m.size);
    m.blank = malloc(m.size);
    assert_non_null(m.bytes);
    assert_non_null(m.blank);
    for (size_t i = 0; i < m.size; i++) {
        bool in_head = i < head, in_end = i >= m.size - end;
        size_t at = (i - head) % range_bytes;
        m.blank[i] = (uint8_t)(in_head ? i * 31 + 7 : in_end ? i * 17 + 3 : at + 8 < range_bytes ? at * 13 + 1 : 0);
        if (in_head && i + 5 >= head)
            m.blank[i] = 0;
    }
    memcpy(m.bytes, m.blank, m.size);
    return m;
}

static void release(made_image *m)
{
    free(m->bytes);
    free(m->blank);
}

/* A measurement of so many ranges may change these: all of its blocks, the head and the end. */
static void use(made_image *m, size_t used)
{
    memset(m->bytes, 0xee, m->head + used * m->range_bytes);
    memset(m->bytes + m->size - m->end, 0xee, m->end);
}

/* Whatever number of ranges was used, but no more than there are. */
static void assert_restored(made_image *m)
{
    kprof_blank *blank = kprof_blank_keep(m->bytes, m->size, m->ranges, m->range_bytes);
    assert_non_null(blank);
    for (size_t used = 0; used <= m->ranges; used++) {
        use(m, used);
        assert_true(kprof_blank_restore(blank, m->bytes, used));
        assert_memory_equal(m->bytes, m->blank, m->size);
    }
    assert_false(kprof_blank_restore(blank, m->bytes, m->ranges + 1));
    kprof_blank_free(blank);
}

TEST(test_any_number)
{
    static const size_t shapes[][4] = {
        {96, 10, 1000, 40}, {5000, 30, 300, 0}, {0, 3, 64, 0}, {200, 1, 50, 9}, {1, 2, 9, 3}};
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        const size_t *s = shapes[shape];
        made_image m = make(s[0], s[1], s[2], s[3]);
        assert_restored(&m);
        release(&m);
    }
}

/* Even whole blocks do not tell where the head ends. */
TEST(test_head_like_blocks)
{
    static const size_t heads[] = {316, 1000, 2000, 3000};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        made_image m = make(heads[i], 30, 300, 0);
        memset(m.blank + 16, 0, m.size - 16);
        memcpy(m.bytes, m.blank, m.size);
        assert_restored(&m);
        release(&m);
    }
}

/* CUPTI may write beyond the ranges that were used, or number them in another way one day. */
TEST(test_written_beyond)
{
    made_image m = make(96, 10, 1000, 40);
    kprof_blank *blank = kprof_blank_keep(m.bytes, m.size, m.ranges, m.range_bytes);
    assert_non_null(blank);
    m.bytes[m.size - m.end - 50]++;
    assert_false(kprof_blank_restore(blank, m.bytes, 3));
    assert_true(kprof_blank_restore(blank, m.bytes, 10));
    assert_memory_equal(m.bytes, m.blank, m.size);
    kprof_blank_free(blank);
    release(&m);
}

TEST(test_no_such_image)
{
    made_image m = make(96, 10, 1000, 40);
    assert_null(kprof_blank_keep(m.bytes, m.size, 0, 1000));
    assert_null(kprof_blank_keep(m.bytes, m.size, 10, 0));
    assert_null(kprof_blank_keep(m.bytes, m.size, 11, 1000));
    assert_null(kprof_blank_keep(m.bytes, m.size, 2, 1000)); /* nine tenths of it would be head and end */
    assert_null(kprof_blank_keep(m.bytes, m.size, 10, 999));
    m.bytes[m.head + 9500]++;
    assert_null(kprof_blank_keep(m.bytes, m.size, 10, 1000));
    release(&m);
}
