/* Aliases: the shipped files, a user's over them, what is refused, and which choice a report has. What stands for them
 * on each chip is tested with the sets. */
#include "log_capture.h"
#include "metricset/alias.h"
#include "metricset/instruction.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kprof-alias-XXXXXX";

static void put_path(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

static int make_folder(void **state)
{
    char path[256];
    *state = NULL;
    if (!mkdtemp(folder))
        return -1;
    put_path(path, sizeof path, "aliases");
    return mkdir(path, 0700);
}

static int remove_folder(void **state)
{
    char path[256];
    put_path(path, sizeof path, "aliases/mine.json");
    unlink(path);
    put_path(path, sizeof path, "aliases");
    rmdir(path);
    return rmdir(folder);
}

/* Load the shipped files, and then one with this list of aliases. */
static kprof_status load_with(const char *aliases, kprof_catalog **out)
{
    char path[256];
    put_path(path, sizeof path, "aliases/mine.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"id\": \"mine\", \"name\": \"me\", \"aliases\": [%s]}", aliases);
    fclose(file);
    char *items[] = {(char *)KPROF_METRICSETS_DIR, folder};
    return kprof_catalog_load(&(kprof_strlist){items, 2, 2}, out);
}

TEST(test_shipped)
{
    static const char *const known[] = {"duration",       "dram.bandwidth",    "l2.hit_rate",
                                        "l1.hit_rate",    "sm.throughput",     "occupancy.achieved",
                                        "gld_efficiency", "shared_efficiency", "dram_read_throughput",
                                        "sm_efficiency",  "stall_sync",        "warp_execution_efficiency"};
    kprof_catalog *catalog;
    assert_int_equal(load_with("", &catalog), KPROF_OK);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const kprof_alias *alias = kprof_catalog_find_alias(catalog, known[i]);
        assert_non_null(alias);
        const kprof_alias_entry entry = kprof_alias_describe(alias);
        assert_string_equal(entry.name, known[i]);
        assert_string_equal(entry.origin, i < 6 ? "kprof" : "nvprof");
        assert_true(i >= 6 || strlen(entry.help) > 10);
        assert_true(strstr(entry.stands_for, "__") != NULL);
    }
    const kprof_alias *without = kprof_catalog_find_alias(catalog, "cf_issued");
    assert_non_null(without);
    assert_null(kprof_alias_describe(without).stands_for);
    assert_string_equal(kprof_alias_describe(without).closest[0], "smsp__inst_executed_pipe_cbu.sum");
    assert_null(kprof_catalog_find_alias(catalog, "no.such"));
    for (size_t i = 0; i < kprof_catalog_alias_count(catalog); i++) { /* none keeps a counter of instructions away */
        const kprof_alias_entry entry = kprof_alias_describe(kprof_catalog_alias(catalog, i));
        assert_true(entry.stands_for || !kprof_instruction_metric_find(entry.name));
    }
    kprof_catalog_free(catalog);
}

TEST(test_of_a_user)
{
    kprof_catalog *catalog, *shipped;
    assert_int_equal(load_with("", &shipped), KPROF_OK);
    assert_int_equal(load_with("{\"name\": \"duration\", \"metric\": \"a__time.sum\"},"
                               "{\"name\": \"mine.ratio\", \"expression\": \"a__b.sum / a__c.sum\", \"unit\": \"%\"}",
                               &catalog),
                     KPROF_OK);
    assert_int_equal(kprof_catalog_alias_count(catalog), kprof_catalog_alias_count(shipped) + 1);
    const kprof_alias_entry duration = kprof_alias_describe(kprof_catalog_find_alias(catalog, "duration"));
    assert_string_equal(duration.stands_for, "a__time.sum");
    assert_string_equal(duration.origin, "me");
    assert_string_equal(kprof_catalog_find_alias(catalog, "mine.ratio")->item.name, "derived__mine_ratio");
    kprof_catalog_free(catalog);
    kprof_catalog_free(shipped);
}

static void refuse(const char *aliases, const char *reason)
{
    log_capture capture;
    kprof_catalog *catalog;
    log_capture_start(&capture);
    assert_int_equal(load_with(aliases, &catalog), KPROF_BAD_METRICSET);
    kprof_log_set_sink(NULL, NULL);
    if (!strstr(capture.last, reason))
        fail_msg("\"%s\" has no \"%s\"", capture.last, reason);
}

TEST(test_refused)
{
    refuse("{\"name\": \"a__b\", \"metric\": \"c__d.sum\"}", "aliases[0].name: must have no \"__\"");
    refuse("{\"name\": \"Upper\", \"metric\": \"c__d.sum\"}", "small letters");
    refuse("{\"name\": \"regex:a\", \"metric\": \"c__d.sum\"}", "small letters");
    refuse("{\"name\": \"\", \"metric\": \"c__d.sum\"}", "name");
    refuse("{\"name\": \"a.\", \"metric\": \"c__d.sum\"}", "at an end");
    refuse("{\"name\": \"a\"}", "metric: is missing");
    refuse("{\"metric\": \"c__d.sum\"}", "name: is missing");
    refuse("{\"name\": \"a\", \"metric\": \"c__d.sum + 1\"}", "must be the name of a metric");
    refuse("{\"name\": \"a\", \"expression\": \"c__d.sum +\"}", "is not an expression");
    refuse("{\"name\": \"a\", \"metric\": \"c__d.sum\", \"closest\": []}", "there is a choice");
    refuse("{\"name\": \"a\", \"metric\": \"c__d.sum\"}, {\"name\": \"a\", \"metric\": \"c__e.sum\"}",
           "has \"a\" twice");
    refuse("{\"name\": \"a\", \"metric\": \"c__d.sum\", \"colour\": 1}", "colour");
    refuse("{\"name\": \"a\", \"metric\": \"c__d.sum\", \"help\": \"\\u001b[31m\"}", "help");
}

static bool has_word(void *user, const char *name)
{
    return kprof_strlist_contains(user, name);
}

static void expect_choice(const kprof_catalog *catalog, kprof_strlist *known, const char *expected)
{
    KPROF_AUTO(kprof_strlist) chosen = KPROF_STRLIST_INIT;
    const kprof_name_supply supply = {has_word, known};
    kprof_alias_choose(kprof_catalog_find_alias(catalog, "a"), &supply, &chosen);
    assert_int_equal(chosen.count, expected ? 1 : 0);
    if (expected)
        assert_string_equal(chosen.items[0], expected);
}

/* The first choice of which all is there; a value that was computed itself before what it is computed from. */
TEST(test_choice)
{
    kprof_catalog *catalog;
    KPROF_AUTO(kprof_strlist) known = KPROF_STRLIST_INIT;
    assert_int_equal(load_with("{\"name\": \"a\", \"expression\": \"b__c.sum / b__d.sum\","
                               "\"alternatives\": [\"b__e.sum\", \"b__c.sum\"]}",
                               &catalog),
                     KPROF_OK);
    expect_choice(catalog, &known, NULL);
    assert_true(kprof_strlist_add(&known, "b__c.sum"));
    expect_choice(catalog, &known, "b__c.sum");
    assert_true(kprof_strlist_add(&known, "b__e.sum"));
    expect_choice(catalog, &known, "b__e.sum");
    assert_true(kprof_strlist_add(&known, "derived__a"));
    expect_choice(catalog, &known, "derived__a");
    kprof_catalog_free(catalog);
}

AROUND_ALL(make_folder, remove_folder)
