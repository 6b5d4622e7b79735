/* The answers on disk: found again for exactly the same question, and never able to give a wrong one, whatever is in
 * the folder; and the libraries, which wait until somebody asks anything else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_folder.h"
#include "host/nvpw.h"
#include "host_test.h"
#include "test.h"

#include <sys/stat.h>

enum { MANY = 40 };

static kprof_host *host;
static const kprof_strlist no_names = KPROF_STRLIST_INIT;

static int set_up(void **state)
{
    use_cache_folder();
    return kprof_host_open("GH100", NULL, &host) == KPROF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    kprof_host_close(host);
    return remove_cache_folder("");
}

/* Names that run together in one key would not do so in another. */
TEST(test_names_are_kept_apart)
{
    char *pair[] = {(char *)"a", (char *)"b"}, *single[] = {(char *)"ab"}, *broken[] = {(char *)"a\nb"};
    kprof_strlist lists[] = {{pair, 2, 2}, {single, 1, 1}, {broken, 1, 1}};
    kprof_host_question question = {host, "test", &lists[0]};
    KPROF_AUTO(kprof_strbuf) found = KPROF_STRBUF_INIT;
    kprof_host_keep(&question, "x", 1);
    assert_true(kprof_host_recall(&question, &found));
    for (size_t i = 1; i < sizeof lists / sizeof *lists; i++) {
        question.names = &lists[i];
        assert_false(kprof_host_recall(&question, &found));
    }
    question = (kprof_host_question){host, "test 2", &lists[0]};
    assert_false(kprof_host_recall(&question, &found));
}

TEST(test_library_is_identified)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    assert_true(kprof_cupti_identify(&text));
    assert_non_null(strstr(text.data, "CUPTI 1"));
    assert_non_null(strstr(text.data, "/libcupti.so"));
    assert_non_null(strstr(text.data, "/libnvperf_host.so"));
}

/* Enough names to be worth keeping, the last of them of a counter that CUPTI does not collect beside others. */
static kprof_strlist many_names(void)
{
    kprof_strlist suffixes = KPROF_STRLIST_INIT, names = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_submetrics(host, "dram__bytes", &suffixes), KPROF_OK);
    assert_true(suffixes.count >= MANY - 1);
    for (size_t i = 0; i < MANY - 1; i++) {
        char name[256];
        snprintf(name, sizeof name, "dram__bytes.%s", suffixes.items[i]);
        assert_true(kprof_strlist_add(&names, name));
    }
    assert_true(kprof_strlist_add(&names, "pcie__read_bytes.sum"));
    kprof_strlist_free(&suffixes);
    return names;
}

static void assert_answers(const kprof_strlist *names, bool of_dram)
{
    kprof_host *asked;
    assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
    assert_int_equal(kprof_host_check(asked, names), KPROF_OK);
    for (size_t i = 0; i < names->count; i++)
        assert_int_equal(kprof_host_can_collect(asked, names->items[i]), i < names->count - 1 && of_dram);
    kprof_host_close(asked);
}

/* Keep in place of all answers that none of the names can be collected, or as many bytes of that. */
static void plant_answers(const kprof_strlist *names, size_t most)
{
    kprof_answers *planted = kprof_answers_new();
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < names->count; i++)
        kprof_answers_put(planted, 'c', names->items[i], &no_names);
    assert_true(kprof_answers_write(planted, &bytes));
    kprof_host_keep(&(kprof_host_question){host, "answers", &no_names}, bytes.data,
                    most < bytes.length ? most : bytes.length);
    kprof_answers_free(planted);
}

TEST(test_answers)
{
    kprof_strlist names = many_names();
    char path[512];
    struct stat before, after;
    assert_answers(&names, true);
    assert_int_equal(count_kept("answers", path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    assert_answers(&names, true);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* there was nothing new to keep */
    plant_answers(&names, SIZE_MAX);               /* a hit is used */
    assert_answers(&names, false);
    static const size_t cuts[] = {0, 1, 7, 30, 100};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        plant_answers(&names, cuts[i]);
        assert_answers(&names, true);
        assert_answers(&names, true); /* which is kept in its place */
    }
    kprof_strlist_free(&names);
}

static void rename_chip(kprof_host *of, const char *name)
{
    free(of->chip);
    of->chip = strdup(name);
}

/* The libraries could not be opened this time: later runs ask again. */
TEST(test_failure_is_no_answer)
{
    kprof_host *asked;
    char *known[] = {(char *)"dram__bytes.max"};
    plant_answers(&(kprof_strlist){known, 1, 1}, SIZE_MAX);
    assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
    rename_chip(asked, "GH999");
    assert_false(kprof_host_can_collect(asked, "dram__bytes.sum"));
    rename_chip(asked, "GH100");
    kprof_host_close(asked);
    assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
    assert_true(kprof_host_can_collect(asked, "dram__bytes.sum"));
    kprof_host_close(asked);
}

/* Inside an application nothing is read and nothing written. */
TEST(test_host_apart)
{
    kprof_host *apart;
    char *names[] = {(char *)"dram__bytes.sum"};
    const kprof_strlist dram = {names, 1, 1};
    plant_answers(&dram, SIZE_MAX);
    assert_int_equal(kprof_host_open_apart("GH100", &apart), KPROF_OK);
    assert_true(kprof_host_can_collect(apart, "dram__bytes.sum"));
    kprof_host_close(apart);
    assert_int_equal(kprof_host_open_apart("GH101", &apart), KPROF_UNKNOWN_NAME);
    assert_int_equal(count_kept("", NULL, 0), 1);
    assert_answers(&dram, false); /* what was planted is still there */
}

/* kprof asks anew where what it has kept of a metric cannot be of one. */
TEST(test_info_that_is_not_whole)
{
    static char *texts[] = {"0", "planted", "", "planted", ""}, *kinds[] = {"3", "planted", "", "planted"};
    const kprof_strlist lists[] = {{texts, 4, 4}, {texts, 3, 3}, {texts, 5, 5}, {kinds, 4, 4}, {texts, 0, 0}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        kprof_answers *planted = kprof_answers_new();
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        kprof_metric_info info;
        kprof_host *asked;
        kprof_answers_put(planted, 'i', "dram__bytes.sum", &lists[i]);
        assert_true(kprof_answers_write(planted, &bytes));
        kprof_host_keep(&(kprof_host_question){host, "answers", &no_names}, bytes.data, bytes.length);
        assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
        assert_int_equal(kprof_host_metric_info(asked, "dram__bytes.sum", &info), KPROF_OK);
        assert_string_equal(info.unit, i == 0 ? "planted" : "byte");
        assert_string_equal(info.name, "dram__bytes");
        kprof_metric_info_free(&info);
        kprof_host_close(asked);
        kprof_answers_free(planted);
        kprof_strbuf_free(&bytes);
    }
}

/* Ask all kinds of questions; false when something is wrong. */
static bool ask_all(void)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT, list = KPROF_STRLIST_INIT;
    kprof_metric_info info;
    kprof_host *asked;
    bool good =
        kprof_host_chips(&chips) == KPROF_OK && chips.count > 10 && kprof_host_open("GH100", NULL, &asked) == KPROF_OK;
    if (!good)
        return false;
    good = kprof_host_base_metrics(asked, KPROF_METRIC_RATIO, &list) == KPROF_OK && list.count > 10 &&
           kprof_host_submetrics(asked, "dram__bytes", &list) == KPROF_OK &&
           kprof_host_breakdown(asked, "sm__throughput.avg.pct_of_peak_sustained_elapsed", &list) == KPROF_OK &&
           kprof_host_has_metric(asked, "dram__bytes") && !kprof_host_has_metric(asked, "dram__bites") &&
           kprof_host_can_collect(asked, "dram__bytes.sum") && !kprof_host_can_collect(asked, "pcie__read_bytes.sum") &&
           kprof_host_metric_info(asked, "dram__bytes.sum.per_second", &info) == KPROF_OK &&
           strcmp(info.unit, "byte/second") == 0;
    kprof_metric_info_free(&info);
    kprof_host_close(asked);
    return good;
}

/* A process that finds everything kept: no library is opened until something else is asked, and the library that was
 * foreseen is the one that is opened. */
static int act_warm(void)
{
    KPROF_AUTO(kprof_strbuf) foreseen = KPROF_STRBUF_INIT, opened = KPROF_STRBUF_INIT;
    kprof_host *asked;
    bool good = kprof_cupti_identify(&foreseen);
    if (is_loaded("libcupti")) /* only the loader can tell where it is on this machine */
        return SKIPPED;
    good = good && ask_all() && !is_loaded("libcupti") && !is_loaded("libnvperf") &&
           kprof_host_open("GH100", NULL, &asked) == KPROF_OK && !is_loaded("libcupti");
    if (!good)
        return 1;
    good = kprof_host_has_metric(asked, "gpu__time_duration") && is_loaded("libcupti") &&
           kprof_cupti_identify(&opened) && strcmp(foreseen.data, opened.data) == 0;
    kprof_host_close(asked);
    return good ? 0 : 1;
}

TEST(test_libraries_wait_for_a_new_question)
{
    assert_true(ask_all());
    int status = await(start_as("warm"));
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "warm") == 0)
        return act_warm();
    around_each(NULL, clear_cache);
    only_where(cupti_is_here);
    around_all(set_up, tear_down);
    return run_all_tests();
}
