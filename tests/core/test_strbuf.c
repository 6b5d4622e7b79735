/* The growing buffer, string lists and suggestions. */
#include "core/strbuf.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(text_grows_and_stays_terminated)
{
    kprof_strbuf buf = KPROF_STRBUF_INIT;
    char expected[4001] = "";
    for (int i = 0; i < 1000; i++) {
        kprof_strbuf_printf(&buf, "%03d", i);
        kprof_strbuf_puts(&buf, ",");
        snprintf(expected + (size_t)i * 4, 5, "%03d,", i);
    }
    assert_int_equal(buf.length, 4000);
    assert_string_equal(buf.data, expected);
    kprof_strbuf_clear(&buf);
    assert_int_equal(buf.length, 0);
    assert_string_equal(buf.data, "");
    kprof_strbuf_free(&buf);
    assert_null(buf.data);
}

TEST(bytes_may_be_zero)
{
    KPROF_AUTO(kprof_strbuf) buf = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&buf, "a\0b", 3);
    kprof_strbuf_append(&buf, NULL, 0);
    assert_int_equal(buf.length, 3);
    assert_memory_equal(buf.data, "a\0b", 4);
}

TEST(take_hands_the_text_over)
{
    kprof_strbuf buf = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE char *empty = kprof_strbuf_take(&buf);
    assert_string_equal(empty, "");
    kprof_strbuf_puts(&buf, "text");
    KPROF_AUTO_FREE char *text = kprof_strbuf_take(&buf);
    assert_string_equal(text, "text");
    assert_null(buf.data);
    assert_int_equal(buf.length, 0);
}

TEST(a_failure_is_remembered)
{
    kprof_strbuf buf = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&buf, "text");
    kprof_strbuf_append(&buf, "", SIZE_MAX - 2);
    assert_true(buf.failed);
    kprof_strbuf_puts(&buf, "more");
    assert_int_equal(buf.length, 4);
    assert_null(kprof_strbuf_take(&buf));
    assert_false(buf.failed);
}

TEST(lists_keep_order_and_uniqueness)
{
    kprof_strlist list = KPROF_STRLIST_INIT;
    char text[16];
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "item%d", i);
        assert_true(kprof_strlist_add(&list, text));
    }
    assert_int_equal(list.count, 100);
    assert_string_equal(list.items[42], "item42");
    assert_true(kprof_strlist_contains(&list, "item99"));
    assert_false(kprof_strlist_contains(&list, "item100"));
    assert_true(kprof_strlist_add_unique(&list, "item7"));
    assert_int_equal(list.count, 100);
    assert_true(kprof_strlist_add_unique(&list, "new"));
    assert_int_equal(list.count, 101);
    KPROF_AUTO(kprof_strlist) copy = KPROF_STRLIST_INIT;
    assert_true(kprof_strlist_add_all(&copy, &list) && kprof_strlist_add_all(&copy, &list));
    assert_int_equal(copy.count, 202);
    assert_string_equal(copy.items[201], "new");
    kprof_strlist_free(&list);
    assert_int_equal(list.count, 0);
}

static const char *nearest(const char *text)
{
    static const char *const items[] = {
        "default", "detailed", "full", "roofline", "vectorAdd", "dram__bytes.sum", "dram__bytes_read.sum", "",
    };
    return kprof_nearest(text, items, sizeof items / sizeof *items);
}

TEST(typing_errors_find_their_word)
{
    assert_string_equal(nearest("defualt"), "default");
    assert_string_equal(nearest("ful"), "full");
    assert_string_equal(nearest("VECTORADD"), "vectorAdd");
    assert_string_equal(nearest("vectorAddKernel"), "vectorAdd");
    assert_string_equal(nearest("rofline"), "roofline");
    assert_string_equal(nearest("dram__byte.sum"), "dram__bytes.sum");
    assert_string_equal(nearest("dram_bytes_read.sum"), "dram__bytes_read.sum");
}

TEST(several_words_are_near)
{
    static const char *const words[] = {"dram__bytes_write.sum", "sm__cycles_active.avg", "dram__bytes_read.sum",
                                        "dram__bytes.sum.per_second", "dram__byte.sum"};
    kprof_strlist items = KPROF_STRLIST_INIT, found = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_true(kprof_strlist_add(&items, words[i]));
    assert_true(kprof_nearest_few("dram__bytes.sum", &items, 3, &found));
    assert_int_equal(found.count, 3);
    assert_string_equal(found.items[0], "dram__byte.sum");
    assert_string_equal(found.items[1], "dram__bytes_read.sum");
    assert_string_equal(found.items[2], "dram__bytes_write.sum");
    kprof_strlist_free(&found);
    assert_true(kprof_nearest_few("cycles", &items, 2, &found));
    assert_int_equal(found.count, 1);
    assert_string_equal(found.items[0], "sm__cycles_active.avg");
    kprof_strlist_free(&found);
    assert_true(kprof_nearest_few("zzz", &items, 2, &found));
    assert_int_equal(found.count, 0);
    kprof_strlist_free(&items);
}

TEST(a_spelling_must_be_nearer)
{
    static const char *const words[] = {"export", "import", "report", "kernel"};
    assert_string_equal(kprof_nearest("port", words, 4), "export");
    assert_null(kprof_nearest_spelling("port", words, 4));
    assert_null(kprof_nearest_spelling("ort", words, 4));
    assert_string_equal(kprof_nearest_spelling("reprot", words, 4), "report");
    assert_string_equal(kprof_nearest_spelling("kernal", words, 4), "kernel");
}

TEST(a_part_finds_the_shortest_whole)
{
    static const char *const kernels[] = {"ampere_sgemm_128x64_tn_long", "ampere_sgemm_128x64_tn", "reduce_kernel"};
    assert_string_equal(kprof_nearest("GEMM", kernels, 3), "ampere_sgemm_128x64_tn");
    assert_null(kprof_nearest("mm", kernels, 3));
    assert_string_equal(nearest("sum"), "dram__bytes.sum");
}

TEST(unrelated_words_find_nothing)
{
    assert_null(nearest("x"));
    assert_null(nearest(""));
    assert_null(nearest("occupancy"));
    assert_null(kprof_nearest("full", NULL, 0));
}

TEST(very_long_words_are_bounded)
{
    KPROF_AUTO_FREE char *text = malloc(100001);
    assert_non_null(text);
    memset(text, 'a', 100000);
    text[100000] = '\0';
    const char *const items[] = {text};
    assert_ptr_equal(kprof_nearest(text, items, 1), text);
    assert_null(nearest(text));
}

static size_t ends;

static void note_end(void)
{
    ends++;
}

TEST(test_memory_that_runs_out)
{
    kprof_strbuf text = KPROF_STRBUF_INIT, other = KPROF_STRBUF_INIT;
    kprof_memory_end_with(note_end);
    kprof_strbuf_puts(&text, "a");
    assert_int_equal(ends, 0);
    kprof_strbuf_append(&text, "", SIZE_MAX - 2);
    assert_int_equal(ends, 1);
    kprof_strbuf_puts(&other, "a");
    kprof_strbuf_append(&other, "", SIZE_MAX - 2); /* it ends once */
    assert_int_equal(ends, 1);
    KPROF_FREE_TEXTS(&text, &other);
}
