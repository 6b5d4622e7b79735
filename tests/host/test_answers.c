/* The store of answers: what is written is read again, and nothing else is. */
#include "host/answers.h"

#include <stdio.h>
#include <string.h>

#include "cache_folder.h"
#include "test.h"

enum { COUNT_BYTES = 8, ROW_BYTES = 24 }; /* the file ends with rows of the index and their number */

static char *items[] = {"one", "", "three"};
static const kprof_strlist none = KPROF_STRLIST_INIT, all = {items, 3, 3}, first = {items, 1, 1};

static bool has(kprof_answers *answers, char kind, const char *name, const kprof_strlist *list)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    bool same = kprof_answers_get(answers, kind, name, &found) && found.count == list->count;
    for (size_t i = 0; i < list->count && same; i++)
        same = strcmp(found.items[i], list->items[i]) == 0;
    return same;
}

static void assert_none(kprof_answers *answers, char kind, const char *name)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    assert_true(kprof_strlist_add(&found, "before"));
    assert_false(kprof_answers_get(answers, kind, name, &found));
    assert_int_equal(found.count, 1); /* as it was */
}

static kprof_answers *fill(void)
{
    kprof_answers *answers = kprof_answers_new();
    assert_non_null(answers);
    kprof_answers_put(answers, 'k', "none", &none);
    kprof_answers_put(answers, 'i', "all", &all);
    kprof_answers_put(answers, 'k', "all", &first);
    kprof_answers_put(answers, 'x', "", &first);
    return answers;
}

static void assert_filled(kprof_answers *answers)
{
    assert_true(has(answers, 'k', "none", &none));
    assert_true(has(answers, 'i', "all", &all));
    assert_true(has(answers, 'k', "all", &first));
    assert_true(has(answers, 'x', "", &first));
    assert_none(answers, 'i', "none");
    assert_none(answers, 'k', "al");
    assert_none(answers, 'k', "");
}

static const kprof_strbuf key = {(char *)"key", 3, 4, false};

/* Read from the cache `bytes`, of which there are so many; NULL when they are refused. */
static kprof_answers *read_back(const char *bytes, size_t size)
{
    kprof_answers *answers = kprof_answers_new();
    kprof_cache_put(&key, bytes, size);
    if (kprof_answers_read(answers, &key))
        return answers;
    assert_none(answers, 'k', "none");
    kprof_answers_free(answers);
    return NULL;
}

TEST(test_round_trip)
{
    kprof_answers *answers = fill();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT, more = KPROF_STRBUF_INIT;
    assert_filled(answers);
    assert_true(kprof_answers_write(answers, &bytes));
    kprof_answers *again = read_back(bytes.data, bytes.length);
    assert_non_null(again);
    assert_filled(again);
    assert_false(kprof_answers_write(again, &more)); /* nothing was put */
    kprof_answers_put(again, 'a', "new", &all);
    assert_true(kprof_answers_write(again, &more));
    kprof_answers *grown = read_back(more.data, more.length);
    assert_filled(grown);
    assert_true(has(grown, 'a', "new", &all));
    kprof_answers_free(answers);
    kprof_answers_free(again);
    kprof_answers_free(grown);
}

TEST(test_first_answer_stays)
{
    kprof_answers *answers = fill();
    kprof_answers_put(answers, 'k', "none", &all);
    assert_filled(answers);
    kprof_answers_free(answers);
}

static int count_found(kprof_answers *answers)
{
    return has(answers, 'k', "none", &none) + has(answers, 'i', "all", &all) + has(answers, 'k', "all", &first) +
           has(answers, 'x', "", &first);
}

/* A cut is refused: the end tells where the index is. */
TEST(test_cut)
{
    kprof_answers *answers = fill();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_answers_write(answers, &bytes));
    for (size_t i = 0; i < bytes.length; i++) {
        kprof_answers *cut = read_back(bytes.data, i);
        assert_int_equal(cut ? count_found(cut) : 0, 0);
        kprof_answers_free(cut);
    }
    kprof_answers_free(answers);
}

/* Put what is missing of the four answers and write all: they are whole again. */
static void assert_mended(kprof_answers *damaged)
{
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    kprof_answers_put(damaged, 'k', "none", &none);
    kprof_answers_put(damaged, 'i', "all", &all);
    kprof_answers_put(damaged, 'k', "all", &first);
    kprof_answers_put(damaged, 'x', "", &first);
    assert_filled(damaged);
    if (kprof_answers_write(damaged, &bytes)) {
        kprof_answers *mended = read_back(bytes.data, bytes.length);
        assert_filled(mended);
        kprof_answers_free(mended);
    }
}

/* A damaged answer alone is lost, and with a damaged index perhaps others; none is wrong, and all are written anew. */
TEST(test_damaged)
{
    kprof_answers *answers = fill();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_answers_write(answers, &bytes));
    for (size_t i = 0; i < bytes.length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] ^= (char)(1 << bit);
            kprof_answers *damaged = read_back(bytes.data, bytes.length);
            bytes.data[i] ^= (char)(1 << bit);
            assert_true(damaged || i >= bytes.length - COUNT_BYTES);
            if (!damaged)
                continue;
            assert_none(damaged, 'i', "none");
            const int found = count_found(damaged); /* a damaged hash can hide its neighbours too */
            if (i < bytes.length - COUNT_BYTES - 4 * ROW_BYTES)
                assert_int_equal(found, 3);
            else if (i < bytes.length - COUNT_BYTES)
                assert_true(found < 4);
            assert_mended(damaged);
            kprof_answers_free(damaged);
        }
    }
    kprof_answers *whole = read_back(bytes.data, bytes.length);
    assert_filled(whole);
    kprof_answers_free(whole);
    kprof_answers_free(answers);
}

/* An index that says of each answer that it is where another one is, or that there are more of them than are kept. */
TEST(test_wrong_index)
{
    kprof_answers *answers = fill();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    char row[ROW_BYTES];
    assert_true(kprof_answers_write(answers, &bytes));
    char *index = bytes.data + bytes.length - COUNT_BYTES - 4 * ROW_BYTES;
    for (size_t i = 0; i < 4; i += 2) { /* all but the hashes change places */
        char *one = index + i * ROW_BYTES + 8, *other = one + ROW_BYTES;
        memcpy(row, one, ROW_BYTES - 8);
        memcpy(one, other, ROW_BYTES - 8);
        memcpy(other, row, ROW_BYTES - 8);
    }
    kprof_answers *wrong = read_back(bytes.data, bytes.length);
    assert_non_null(wrong);
    assert_int_equal(count_found(wrong), 0);
    assert_mended(wrong);
    memset(bytes.data + bytes.length - COUNT_BYTES, 0xff, COUNT_BYTES);
    assert_null(read_back(bytes.data, bytes.length));
    kprof_answers_free(wrong);
    kprof_answers_free(answers);
}

/* Another process replaces the file while this one reads. */
TEST(test_replaced)
{
    kprof_answers *answers = fill();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_answers_write(answers, &bytes));
    kprof_answers *again = read_back(bytes.data, bytes.length);
    kprof_cache_put(&key, "other", 5);
    assert_filled(again);
    kprof_answers_free(again);
    kprof_answers_free(answers);
}

static void put_many(kprof_answers *answers, char kind, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        kprof_answers_put(answers, kind, name, &none);
    }
}

/* If all answers are too many, only the latest are written; too many new ones are not written at all. */
TEST(test_many)
{
    kprof_answers *answers = kprof_answers_new();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT, more = KPROF_STRBUF_INIT;
    put_many(answers, 'b', 5000);
    assert_true(kprof_answers_write(answers, &bytes));
    kprof_answers *again = read_back(bytes.data, bytes.length);
    put_many(again, 'a', 5000);
    assert_true(has(again, 'b', "0", &none) && has(again, 'a', "4999", &none));
    assert_true(kprof_answers_write(again, &more));
    kprof_answers *last = read_back(more.data, more.length);
    assert_none(last, 'b', "1807"); /* 1808 of 10000 are more than 8192 */
    assert_true(has(last, 'b', "1808", &none) && has(last, 'b', "4999", &none));
    assert_true(has(last, 'a', "0", &none) && has(last, 'a', "4999", &none));
    put_many(answers, 'a', 5000);
    assert_true(has(answers, 'a', "4999", &none));
    kprof_strbuf_clear(&bytes);
    assert_false(kprof_answers_write(answers, &bytes));
    kprof_answers_free(answers);
    kprof_answers_free(again);
    kprof_answers_free(last);
}

static int set_up(void **state)
{
    use_cache_folder();
    return 0;
}

static int tear_down(void **state)
{
    return remove_cache_folder("");
}

AROUND_ALL(set_up, tear_down)
