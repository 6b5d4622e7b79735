/* Set files: the shipped ones, a user's folder over them, the example of docs/metricsets.md, and files that are wrong.
 */
#include "core/names.h"
#include "log_capture.h"
#include "metricset/catalog.h"
#include "metricset/explain.h"
#include "metricset/expr.h"
#include "metricset/metricset.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kprof-catalog-XXXXXX";

static int make_folder(void **state)
{
    static const char *const kinds[] = {"sets", "sections", "findings"};
    char path[256];
    int failed = 0;
    *state = NULL;
    if (!mkdtemp(folder))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, kinds[i]);
        failed |= mkdir(path, 0700);
    }
    return failed;
}

static void put_path(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    put_path(path, sizeof(path), name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *name)
{
    char path[256];
    put_path(path, sizeof(path), name);
    unlink(path);
}

static int remove_folder(void **state)
{
    remove_file("sections/Mine.json");
    remove_file("sections/SpeedOfLight.json");
    remove_file("sets/mine.json");
    remove_file("findings/Mine.json");
    char path[256];
    put_path(path, sizeof(path), "findings");
    rmdir(path);
    put_path(path, sizeof(path), "sets");
    rmdir(path);
    put_path(path, sizeof(path), "sections");
    rmdir(path);
    return rmdir(folder);
}

static kprof_status load(const char *first, const char *second, kprof_catalog **out)
{
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    assert_true(!first || kprof_strlist_add(&folders, first));
    assert_true(!second || kprof_strlist_add(&folders, second));
    kprof_status status = kprof_catalog_load(&folders, out);
    return status;
}

static bool has_alias(kprof_catalog_entry set, const char *alias)
{
    for (const char *const *name = set.aliases; *name; name++) {
        if (strcmp(*name, alias) == 0)
            return true;
    }
    return false;
}

TEST(test_shipped)
{
    kprof_catalog *catalog;
    assert_int_equal(load(KPROF_METRICSETS_DIR, NULL, &catalog), KPROF_OK);
    static const char *const sets[] = {"default", "detailed", "full", "roofline", "source", "pmsampling", "agent"};
    assert_int_equal(kprof_catalog_set_count(catalog), 7);
    for (size_t i = 0; i < 7; i++) {
        kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        assert_string_equal(set.id, sets[i]);
        assert_non_null(set.section_ids[0]);
        assert_int_equal(has_alias(set, "basic"), i == 0);
    }
    for (size_t i = 0; i < kprof_catalog_section_count(catalog); i++)
        if (strlen(kprof_catalog_section(catalog, i).help) <= 20)
            fail_msg("the help of section %s is too short", kprof_catalog_section(catalog, i).id);
    assert_string_equal(kprof_catalog_section(catalog, 0).id, "SpeedOfLight");
    kprof_catalog_free(catalog);
}

static double give_one(void *user, const char *name)
{
    return 1;
}

static void assert_not_negative(void *user, kprof_item *item, const char *column)
{
    if (item->name && kprof_expr_evaluate(item->compiled, give_one, NULL) < 0)
        fail_msg("%s of section %s is below 0 where all that it is made of is 1", item->name, (const char *)user);
}

/* Values by their labels. */
typedef struct labelled {
    kprof_names labels; /* label -> its number */
    kprof_strlist names;
} labelled;

static void assert_one_value(labelled *all, const char *section, const kprof_item *item)
{
    const size_t at = kprof_names_find(&all->labels, item->label);
    const bool is_new = at == KPROF_NAMES_NONE;
    const char *other = is_new ? item->name : all->names.items[at];
    if (strcmp(other, item->name) != 0 && strcmp(item->label, "Memory Throughput") != 0) /* in two units */
        fail_msg("%s of section %s is %s, and %s elsewhere", item->label, section, item->name, other);
    if (is_new) {
        kprof_names_add(&all->labels, item->label, all->names.count);
        kprof_strlist_add(&all->names, item->name);
    }
}

/* Passes differ a little, so the parts of a total may add up to more than it: what they leave is no less than 0. And
 * a label stands for one value. */
TEST(test_values)
{
    kprof_catalog *catalog;
    assert_int_equal(load(KPROF_METRICSETS_DIR, NULL, &catalog), KPROF_OK);
    labelled all = {0};
    KPROF_AUTO(kprof_pool) pool = {0};
    for (size_t i = 0; i < catalog->section_count; i++) {
        kprof_section section;
        const kprof_supply supply = {&pool, NULL, NULL};
        assert_int_equal(kprof_section_resolve(&catalog->sections[i], &supply, NULL, &section), KPROF_OK);
        kprof_section_visit(&section, assert_not_negative, (void *)section.id);
        for (size_t k = 0; k < section.item_count; k++)
            assert_one_value(&all, section.id, &section.items[k]);
    }
    kprof_names_free(&all.labels);
    kprof_strlist_free(&all.names);
    kprof_catalog_free(catalog);
}

static kprof_status check(const kprof_catalog *catalog, const char *set, const char *section)
{
    kprof_selection selection = {0};
    assert_true(!set || kprof_strlist_add(&selection.sets, set));
    assert_true(!section || kprof_strlist_add(&selection.sections, section));
    kprof_status status = kprof_selection_check(catalog, &selection);
    kprof_strlist_free(&selection.sets);
    kprof_strlist_free(&selection.sections);
    return status;
}

TEST(test_selection)
{
    log_capture capture;
    kprof_catalog *catalog;
    assert_int_equal(load(KPROF_METRICSETS_DIR, NULL, &catalog), KPROF_OK);
    log_capture_start(&capture);
    assert_int_equal(check(catalog, NULL, NULL), KPROF_OK);
    assert_int_equal(check(catalog, "basic", "regex:^Speed"), KPROF_OK);
    assert_int_equal(check(catalog, "ful", NULL), KPROF_UNKNOWN_NAME);
    assert_non_null(strstr(capture.last, "did you mean \"full\"?"));
    assert_int_equal(check(catalog, "baisc", NULL), KPROF_UNKNOWN_NAME);
    assert_non_null(strstr(capture.last, "did you mean \"basic\"?"));
    assert_int_equal(check(catalog, NULL, "SpedOfLight"), KPROF_UNKNOWN_NAME);
    assert_non_null(strstr(capture.last, "did you mean \"SpeedOfLight\"?"));
    assert_int_equal(check(catalog, NULL, "regex:Nothing"), KPROF_UNKNOWN_NAME);
    assert_int_equal(check(catalog, NULL, "regex:("), KPROF_USAGE);
    kprof_log_set_sink(NULL, NULL);
    kprof_catalog_free(catalog);
}

TEST(test_user_folder)
{
    kprof_catalog *catalog;
    write_file("sections/SpeedOfLight.json", "{\"id\": \"SpeedOfLight\", \"name\": \"Mine\", \"order\": 999}");
    write_file("sets/mine.json",
               "{\"id\": \"mine\", \"name\": \"M\", \"sections\": [\"SpeedOfLight\", \"LaunchStats\"]}");
    assert_int_equal(load(KPROF_METRICSETS_DIR, folder, &catalog), KPROF_OK);
    assert_int_equal(kprof_catalog_set_count(catalog), 8);
    size_t last = kprof_catalog_section_count(catalog) - 1;
    assert_string_equal(kprof_catalog_section(catalog, last).name, "Mine");
    assert_int_equal(check(catalog, "mine", NULL), KPROF_OK);
    kprof_catalog_free(catalog);
    remove_file("sections/SpeedOfLight.json");
    remove_file("sets/mine.json");
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    enum { MOST = 1 << 16 };
    char *text = calloc(1, MOST);
    assert_non_null(text);
    assert_true(fread(text, 1, MOST - 1, file) > 0);
    fclose(file);
    return text;
}

/* The document shows the very file that is loaded here. */
static void assert_documented(const char *path)
{
    KPROF_AUTO_FREE char *document = read_text(KPROF_TESTS_DIR "/../docs/metricsets.md");
    KPROF_AUTO_FREE char *text = read_text(path);
    assert_non_null(strstr(document, text));
}

TEST(test_documented_example)
{
    kprof_catalog *catalog;
    assert_documented(KPROF_TESTS_DIR "/fixtures/metricsets/sections/Bandwidth.json");
    assert_documented(KPROF_TESTS_DIR "/fixtures/metricsets/sets/bandwidth.json");
    assert_documented(KPROF_TESTS_DIR "/fixtures/metricsets/findings/WideStore.json");
    assert_documented(KPROF_TESTS_DIR "/fixtures/metricsets/aliases/mine.json");
    assert_documented(KPROF_TESTS_DIR "/fixtures/metricsets/words/mine.json");
    assert_int_equal(load(KPROF_METRICSETS_DIR, KPROF_TESTS_DIR "/fixtures/metricsets", &catalog), KPROF_OK);
    assert_int_equal(check(catalog, "bandwidth", "Bandwidth"), KPROF_OK);
    assert_non_null(kprof_catalog_find_alias(catalog, "l2.bytes_per_inst"));
    kprof_explanation of_word;
    assert_int_equal(kprof_explain_label(catalog, NULL, "directions", &of_word), KPROF_OK);
    assert_string_equal(of_word.description, "What our kernels read and write, as a table of its own.");
    kprof_explanation_free(&of_word);
    kprof_catalog_free(catalog);
}

static void assert_load_fails(const char *second, const char *reason)
{
    log_capture capture;
    log_capture_start(&capture);
    kprof_catalog *catalog;
    assert_int_equal(load(KPROF_METRICSETS_DIR, second, &catalog), KPROF_BAD_METRICSET);
    assert_null(catalog);
    if (!strstr(capture.last, reason))
        fail_msg("said \"%s\", not \"%s\"", capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

static void assert_section_fails(const char *text, const char *reason)
{
    write_file("sections/Mine.json", text);
    assert_load_fails(folder, reason);
    remove_file("sections/Mine.json");
}

static void assert_set_fails(const char *text, const char *reason)
{
    write_file("sets/mine.json", text);
    assert_load_fails(folder, reason);
    remove_file("sets/mine.json");
}

TEST(test_findings_name_what_exists)
{
    static const char head[] = "{\"id\": \"Mine\", \"name\": \"N\", \"help\": \"H\", \"confidence\": \"low\", "
                               "\"message\": \"M\", \"when\": \"1 > 0\", \"sections\": [\"Occupancy\"]";
    static const char *const ends[][2] = {
        {", \"next\": \"None\"}", "finding Mine: next: there is no section \"None\""},
        {", \"unless\": [\"TooShort\", \"TooLong\"]}", "finding Mine: unless: there is no finding \"TooLong\""},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", head, ends[i][0]);
        write_file("findings/Mine.json", text);
        assert_load_fails(folder, ends[i][1]);
        remove_file("findings/Mine.json");
    }
}

TEST(test_wrong_files)
{
    assert_load_fails(
        "/nonexistent/folder",
        "/nonexistent/folder: has no folder \"sets\", \"sections\", \"findings\", \"aliases\" or \"words\"");
    assert_section_fails("{\n  \"id\": \"Mine\",\n  oops\n}", "sections/Mine.json: line 3, column 4: not valid JSON");
    assert_section_fails("{\"id\": \"Other\", \"name\": \"N\"}", "must be the file's name, \"Mine\"");
    assert_section_fails("{\"id\": \"Mine\", \"name\": \"N\", \"item\": []}", "item: is not a key that is known here");
    assert_section_fails("{\"id\": \"Mine\", \"name\": \"N\", \"items\": [{\"label\": \"L\", \"metric\": \"a\", "
                         "\"optional\": 1}]}",
                         "items[0].optional: must be true or false");
    assert_section_fails("{\"id\": \"Mine\", \"name\": \"N\", \"items\": [{\"label\": \"L\", \"name\": \"d\", "
                         "\"expression\": \"1 +\"}]}",
                         "items[0].expression: is not an expression");
    assert_section_fails("{\"id\": \"Mine\", \"name\": \"N\", \"order\": 99999999999999999999}",
                         "order: must be a whole number");
    assert_section_fails("{\"id\": \"Mine\", \"name\": \"N\", \"priority\": \"high\"}",
                         "priority: must be a whole number");
    assert_set_fails("{\"id\": \"mine\", \"name\": \"N\", \"sections\": [\"None\"]}", "there is no section \"None\"");
    assert_set_fails("{\"id\": \"mine\", \"name\": \"N\", \"sections\": [\"mine\"]}", "there is no section \"mine\"");
    assert_set_fails("{\"id\": \"mine\", \"name\": \"N\"}", "sections: must name at least one section");
    assert_set_fails("{\"id\": \"mine\", \"name\": \"N\", \"sections\": [[]]}", "sections[0]: must be a string");
    assert_set_fails("", "not valid JSON");
}

/* A word of one's own stands over a shipped one. */
TEST(test_words)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"{\"id\": \"Mine\", \"name\": \"N\", \"words\": [{\"words\": [\"a\"]}]}", "words[0].meaning: "},
        {"{\"id\": \"Mine\", \"name\": \"N\", \"words\": [{\"meaning\": \"a\"}]}", "words[0].words: "},
        {"{\"id\": \"Mine\", \"name\": \"N\", \"words\": {}}", "words: "},
        {"{\"id\": \"Yours\", \"name\": \"N\"}", "must be the file's name, \"Mine\""},
    };
    char path[256];
    put_path(path, sizeof path, "words");
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file("words/Mine.json", rows[i].text);
        assert_load_fails(folder, rows[i].reason);
    }
    write_file("words/Mine.json", "{\"id\": \"Mine\", \"name\": \"N\", \"words\": [{\"words\": [\"b\", "
                                  "\"worth most\"], \"meaning\": \"A lot.\"}]}");
    kprof_catalog *catalog;
    kprof_explanation of_word;
    assert_int_equal(load(KPROF_METRICSETS_DIR, folder, &catalog), KPROF_OK);
    assert_int_equal(kprof_explain_label(catalog, NULL, "Worth most", &of_word), KPROF_OK);
    assert_string_equal(of_word.description, "A lot.");
    kprof_explanation_free(&of_word);
    kprof_catalog_free(catalog);
    remove_file("words/Mine.json");
    rmdir(path);
}

/* One kind of files that cannot be read is not left out silently. */
TEST(test_folder_that_cannot_be_read)
{
    char path[256];
    put_path(path, sizeof path, "aliases");
    assert_int_equal(symlink("aliases", path), 0); /* to itself */
    assert_load_fails(folder, "aliases: cannot be read: Too many levels of symbolic links");
    unlink(path);
}

TEST(test_huge_files)
{
    enum { DEEP = 500000, LONG = 2 << 20 };
    KPROF_AUTO_FREE char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    assert_section_fails(text, "not valid JSON");
    memset(text, ' ', LONG);
    text[LONG] = '\0';
    assert_section_fails(text, "is longer than");
}

AROUND_ALL(make_folder, remove_folder)
