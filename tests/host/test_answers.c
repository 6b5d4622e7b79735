/* The store of answers: what is written is read again, and nothing else is. */
#include "host/answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *items[] = {"one", "", "three"};
static const kprof_strlist none = KPROF_STRLIST_INIT, all = {items, 3, 3}, first = {items, 1, 1};

static bool has(const kprof_answers *answers, char kind, const char *name, const kprof_strlist *list)
{
    kprof_strlist found = KPROF_STRLIST_INIT;
    bool same = kprof_answers_get(answers, kind, name, &found) && found.count == list->count;
    for (size_t i = 0; i < list->count && same; i++)
        same = strcmp(found.items[i], list->items[i]) == 0;
    kprof_strlist_free(&found);
    return same;
}

static void assert_none(const kprof_answers *answers, char kind, const char *name)
{
    kprof_strlist found = KPROF_STRLIST_INIT;
    assert_true(kprof_strlist_add(&found, "before"));
    assert_false(kprof_answers_get(answers, kind, name, &found));
    assert_int_equal(found.count, 1); /* as it was */
    kprof_strlist_free(&found);
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

static void assert_filled(const kprof_answers *answers)
{
    assert_true(has(answers, 'k', "none", &none));
    assert_true(has(answers, 'i', "all", &all));
    assert_true(has(answers, 'k', "all", &first));
    assert_true(has(answers, 'x', "", &first));
    assert_none(answers, 'i', "none");
    assert_none(answers, 'k', "al");
    assert_none(answers, 'k', "");
}

/* Read `bytes`, of which there are so many; NULL when they are refused. */
static kprof_answers *read_back(const char *bytes, size_t size)
{
    kprof_answers *answers = kprof_answers_new();
    const kprof_strbuf range = {(char *)bytes, size, size, false};
    if (kprof_answers_read(answers, &range))
        return answers;
    assert_none(answers, 'k', "none");
    kprof_answers_free(answers);
    return NULL;
}

static void test_round_trip(void **state)
{
    (void)state;
    kprof_answers *answers = fill();
    kprof_strbuf bytes = KPROF_STRBUF_INIT, more = KPROF_STRBUF_INIT;
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
    kprof_strbuf_free(&bytes);
    kprof_strbuf_free(&more);
}

static void test_first_answer_stays(void **state)
{
    (void)state;
    kprof_answers *answers = fill();
    kprof_answers_put(answers, 'k', "none", &all);
    assert_filled(answers);
    kprof_answers_free(answers);
}

/* Any cut is refused but one between two answers; and so is a list that does not fit its bytes. */
static void test_damaged(void **state)
{
    (void)state;
    kprof_answers *answers = fill();
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_answers_write(answers, &bytes));
    size_t accepted = 0;
    for (size_t i = 0; i < bytes.length; i++) {
        kprof_answers *cut = read_back(bytes.data, i);
        accepted += cut != NULL;
        kprof_answers_free(cut);
    }
    assert_int_equal(accepted, 4);
    char *at = memmem(bytes.data, bytes.length, "three", 5);
    assert_non_null(at);
    at[2] = '\0';
    assert_null(read_back(bytes.data, bytes.length));
    at[2] = 'r';
    at[-4]++; /* its length */
    assert_null(read_back(bytes.data, bytes.length));
    at[-4]--;
    kprof_answers *whole = read_back(bytes.data, bytes.length);
    assert_filled(whole);
    kprof_answers_free(whole);
    kprof_answers_free(answers);
    kprof_strbuf_free(&bytes);
}

static void put_many(kprof_answers *answers, char kind, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        kprof_answers_put(answers, kind, name, &none);
    }
}

/* Where all answers are too many, the latest are written; too many new ones are not worth it. */
static void test_many(void **state)
{
    (void)state;
    kprof_answers *answers = kprof_answers_new();
    kprof_strbuf bytes = KPROF_STRBUF_INIT, more = KPROF_STRBUF_INIT;
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
    kprof_strbuf_free(&bytes);
    kprof_strbuf_free(&more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_first_answer_stays),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
