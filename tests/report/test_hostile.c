/* Reports from anywhere: what is no report is refused in clear words, and damage never crashes, hangs or reaches a
 * terminal raw. */
#include <ctype.h>

#include "core/clean.h"
#include "fixture.h"
#include "log_capture.h"
#include "report/emit/grid.h"
#include "report/model/trace_stats.h"
#include "report/page/page_stats.h"
#include "test.h"
#include "trace_fixture.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static log_capture said;
static char path[512];

static int set_up(void **state)
{
    snprintf(path, sizeof path, "%s", fixture_path("hostile.kprof"));
    log_capture_start(&said);
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    rmdir(path);
    return 0;
}

static void write_file(const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void expect_refused(const char *words)
{
    kprof_report *report = NULL;
    assert_int_equal(kprof_report_open(path, &report), KPROF_BAD_REPORT);
    assert_null(report);
    if (!strstr(said.last, words))
        fail_msg("\"%s\" does not say \"%s\"", said.last, words);
    if (!strstr(said.last, path))
        fail_msg("\"%s\" does not name the file", said.last);
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

TEST(test_no_report)
{
    expect_refused("No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused("is a directory");
    rmdir(path);
    write_file("", 0);
    expect_refused("is empty");
    write_file("SQLite", 6);
    expect_refused("is not a kprof report");
    write_file("launch,value\n0,1\n and more text so that it is longer than a header", 60);
    expect_refused("is not a kprof report");
    unlink(path);
    execute("CREATE TABLE launch(id INTEGER PRIMARY KEY)");
    expect_refused("not a kprof report");
}

TEST(test_special_names)
{
    kprof_report *report = NULL;
    assert_int_equal(kprof_report_open(":memory:", &report), KPROF_BAD_REPORT);
    assert_int_equal(kprof_report_open("", &report), KPROF_BAD_REPORT);
    assert_int_equal(kprof_report_open("/dev/zero", &report), KPROF_BAD_REPORT);
    assert_non_null(strstr(said.last, "regular file"));
}

TEST(test_other_versions)
{
    char newer[64];
    fixture_write(path);
    snprintf(newer, sizeof newer, "PRAGMA user_version=%d", KPROF_SCHEMA_VERSION + 1);
    execute(newer);
    snprintf(newer, sizeof newer, "report version %d", KPROF_SCHEMA_VERSION + 1);
    expect_refused("upgrade kprof");
    assert_non_null(strstr(said.last, newer));
    execute("PRAGMA user_version=0");
    expect_refused("damaged");
    execute("PRAGMA user_version=1; PRAGMA application_id=1");
    expect_refused("not a kprof report");
}

TEST(test_other_tables)
{
    fixture_write(path);
    execute("ALTER TABLE value RENAME TO numbers");
    expect_refused("\"value\"");
    execute("CREATE VIEW value AS SELECT * FROM numbers");
    expect_refused("\"value\"");
    fixture_write(path);
    execute("DROP VIEW metric_passes; DROP TABLE schedule");
    expect_refused("\"schedule\"");
    fixture_write(path);
    execute("DROP VIEW launches; DROP TABLE graph_node");
    expect_refused("\"graph_node\"");
}

/* Print every page of what can be opened; true when all went well. */
static bool print_all(void)
{
    static const kprof_format formats[] = {KPROF_FORMAT_TEXT, KPROF_FORMAT_TEXT_NCU, KPROF_FORMAT_CSV,
                                           KPROF_FORMAT_JSON};
    kprof_report *report = NULL;
    bool whole = true;
    kprof_status status = kprof_report_open(path, &report);
    if (status != KPROF_OK) {
        assert_int_equal(status, KPROF_BAD_REPORT);
        return false;
    }
    for (int i = 0; i < 16; i++) {
        kprof_print_options options = {.page = (kprof_page)(i % 4), .format = formats[i / 4]};
        free(fixture_print(report, &options, &status));
        if (status != KPROF_OK)
            assert_int_equal(status, KPROF_BAD_REPORT);
        whole = whole && status == KPROF_OK;
    }
    kprof_report_counts counts;
    status = kprof_report_count(report, &counts);
    assert_true(status == KPROF_OK || status == KPROF_BAD_REPORT);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    return whole;
}

TEST(test_truncated)
{
    size_t size;
    fixture_write(path);
    assert_true(print_all());
    KPROF_AUTO_FREE char *whole = fixture_read(path, &size);
    for (size_t cut = 0; cut < size; cut += cut < 200 ? 13 : 1021) {
        write_file(whole, cut);
        expect_refused("");
    }
    for (size_t cut = 4096; cut < size; cut += 4096) {
        write_file(whole, cut);
        expect_refused("not copied whole");
    }
    write_file(whole, size - 1);
    expect_refused("cut short");
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void flip_bytes(uint64_t random, int times)
{
    size_t size;
    fixture_write(path);
    KPROF_AUTO_FREE char *whole = fixture_read(path, &size);
    unsigned refused = 0;
    for (int i = 0; i < times; i++) {
        char *damaged = malloc(size);
        memcpy(damaged, whole, size);
        for (uint64_t flips = 1 + next_random(&random) % 16; flips > 0; flips--) {
            /* Half of the flips hit the headers of pages, where they hurt most. */
            size_t at = next_random(&random) % size;
            if (next_random(&random) & 1)
                at = at / 4096 * 4096 + next_random(&random) % 64;
            damaged[at < size ? at : 0] = (char)next_random(&random);
        }
        write_file(damaged, size);
        free(damaged);
        refused += !print_all();
    }
    assert_true(refused > 0);
}

TEST(test_flipped_bytes)
{
    flip_bytes(20240229, 25);
}

/* For builds that are fast. */
static void test_more_flipped_bytes(void **state)
{
    flip_bytes(20260229, 575);
}

/* Rows that refer to nothing, out of every range, or of the wrong type. */
TEST(test_bad_rows)
{
    static const char *const damages[] = {
        "UPDATE launch SET kernel_id=99 WHERE id=1",
        "UPDATE launch SET device_id=-1",
        "UPDATE launch SET process_id='x'",
        "UPDATE value SET metric_id=100000 WHERE metric_id=1",
        "UPDATE section SET definition='{' WHERE id=1",
        "UPDATE section SET definition=''",
        "UPDATE kernel SET id=77 WHERE id=2",
        "UPDATE seen SET kernel_id=12345678 WHERE kernel_id=1",
        "UPDATE left_out SET id=7 WHERE id=2",
        "UPDATE message SET process_id=9",
        "DELETE FROM run",
        "DELETE FROM metric WHERE id=3",
        "DELETE FROM value",
        "UPDATE pass SET pass=7777 WHERE pass=2",
        "UPDATE pass SET pass=-1 WHERE pass=1",
        "DELETE FROM pass WHERE pass=9",
        "UPDATE schedule SET metric_id=0 WHERE metric_id=(SELECT min(metric_id) FROM schedule)",
        "UPDATE schedule SET metric_id=999999 WHERE metric_id=(SELECT min(metric_id) FROM schedule)",
        "UPDATE schedule SET pass=0 WHERE pass=3",
        "UPDATE schedule SET pass=10 WHERE pass=9",
        "UPDATE schedule SET pass=9223372036854775807 WHERE pass=1",
        "UPDATE schedule SET chip='GB100'",
        "INSERT INTO stack VALUES(7, 'a', 'b', '[]', 0, '')",
        "INSERT INTO launch_stack VALUES(1, 99, 'launch')",
        "INSERT INTO launch_stack VALUES(1, -1, 'launch')",
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        fixture_write(path);
        execute(damages[i]);
        if (print_all())
            fail_msg("%s is not noticed", damages[i]);
    }
}

/* Odd, but nothing to refuse: it prints. */
TEST(test_odd_rows)
{
    static const char *const oddities[] = {
        "UPDATE value SET value='text'",
        "UPDATE value SET value=9e999",
        "UPDATE value SET value=-1e300",
        "UPDATE launch SET grid_x=-1, stream=-5, context=9223372036854775807",
        "UPDATE kernel SET demangled='', function='', mangled=''",
        "UPDATE device SET chip='unknown'",
        "DELETE FROM schedule",
        "UPDATE metric SET name='x'||id WHERE kind='witness'",
        "UPDATE metric SET kind='witness'",
        "UPDATE value SET value=9e999 WHERE metric_id IN (SELECT id FROM metric WHERE kind='witness')",
        "DELETE FROM schedule; DELETE FROM pass",
        "UPDATE pass SET chip='other'; UPDATE schedule SET chip='other'",
        "UPDATE pass SET counters=-5, sm_side='x'",
        "INSERT INTO pass VALUES(char(27)||'[2J', 1, 0, 0)",
        "DELETE FROM launch WHERE id=0",
        "UPDATE launch SET replay_mode='multiplex'",
        "UPDATE launch SET replay_mode='multiplex', kernel_id=1; UPDATE value SET value=9e999",
        "UPDATE launch SET replay_mode='multiplex', measured=-1, passes=-1; DELETE FROM value",
        "DELETE FROM graph_node",
        "DELETE FROM nvtx",
        "INSERT INTO stack VALUES(NULL, char(27) || 'x:1 in y', '', '[', 2, '')",
        ("INSERT INTO stack VALUES(NULL, 'a', 'b', '[1,{\"function\":2},[[]]]', 0, '');"
         "INSERT INTO launch_stack VALUES(1, 1, x'1b')"),
        "UPDATE nvtx SET ranges=x'5c'",
        "UPDATE nvtx SET ranges=';;@@//' || char(27) || '\\'",
        "UPDATE nvtx SET ranges=zeroblob(100000)",
        "INSERT INTO nvtx VALUES(99, 'a/'), (-1, 'a/')",
        "UPDATE graph_node SET node='text'",
        "UPDATE graph_node SET node=-1",
        "INSERT INTO graph_node VALUES(99, 1), (-1, 2), (0, 0)",
        "UPDATE run SET sets='not json'",
        "UPDATE process SET wait_status=-9223372036854775807, start_unix_ns=9223372036854775807",
        "CREATE TABLE notes(text); CREATE INDEX by_metric ON value(metric_id)",
        "CREATE TRIGGER never AFTER INSERT ON launch BEGIN SELECT load_extension('x'); END",
    };
    for (size_t i = 0; i < sizeof oddities / sizeof *oddities; i++) {
        fixture_write(path);
        execute(oddities[i]);
        if (!print_all())
            fail_msg("%s: %s", oddities[i], said.last);
    }
}

static void expect_printable(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool is_c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        bool turns_text = *c == 0xe2 && c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae;
        if ((*c < 0x20 && *c != '\n') || *c == 0x7f || is_c1 || turns_text)
            fail_msg("byte %02x in the output, at: %.40s", *c, (const char *)c);
    }
}

/* Make spaces of the tabs that stand between columns. */
static void part_columns(char *text, kprof_format format)
{
    for (char *tab = text; format == KPROF_FORMAT_TSV && (tab = strchr(tab, '\t'));)
        *tab = ' ';
}

static void expect_no_infinity(const char *text)
{
    for (const char *at = text; (at = strcasestr(at, "inf")); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalpha((unsigned char)at[3]))
            fail_msg("a number that is none, at: %.60s", at - (at == text ? 0 : 1));
}

/* Print each page of the report in each format, with all that it can have. */
static void expect_of_pages(void (*expect)(const char *text))
{
    kprof_report *report = NULL;
    kprof_status status;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    for (int i = 0; i < KPROF_PAGE_COUNT * KPROF_FORMAT_COUNT; i++) {
        kprof_print_options options = {.page = (kprof_page)(i % KPROF_PAGE_COUNT),
                                       .format = (kprof_format)(i / KPROF_PAGE_COUNT),
                                       .with_tables = true};
        char *text = fixture_print(report, &options, &status);
        if (status != KPROF_OK && status != KPROF_NO_MATCH) /* the page would be empty */
            fail_msg("%s", said.last);
        part_columns(text, options.format);
        expect(text);
        free(text);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* Print each table of a trace in each format. */
static void expect_of_tables(void (*expect)(const char *text))
{
    kprof_report *report = NULL;
    KPROF_AUTO(kprof_strlist) tables = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < kprof_trace_stats_count; i++)
        if (!kprof_trace_stats_tables[i].why_none && kprof_trace_stats_tables[i].need != KPROF_NEEDS_CALLERS)
            assert_true(kprof_strlist_add(&tables, kprof_trace_stats_tables[i].name));
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    for (int i = 0; i < KPROF_FORMAT_COUNT * 2; i++) {
        const kprof_print_options options = {.format = (kprof_format)(i / 2)};
        const kprof_stats_content content = {.tables = &tables, .are_asked_for = true, .time_unit = i % 2 * 3};
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        const kprof_page_input input = {&report, 1, &content};
        if (kprof_page_show(&kprof_stats_page, &input, &options, out) != KPROF_OK)
            fail_msg("%s", said.last);
        fclose(out);
        part_columns(text, options.format);
        expect(text);
        free(text);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* SQLite stores infinity, but no counter counts it. */
TEST(test_infinite_values)
{
    fixture_write(path);
    execute("UPDATE value SET value=CASE WHEN metric_id%2 THEN 9e999 ELSE -9e999 END");
    expect_of_pages(expect_no_infinity);
    trace_fixture_write(path);
    execute("UPDATE trace_copy SET end_ns=9e999 WHERE id<3; UPDATE trace_sample SET end_ns=-9e999 WHERE id<9;"
            "UPDATE trace_memory SET bytes=9e999; UPDATE trace_range SET start_ns=9e999 WHERE id=2");
    expect_of_tables(expect_no_infinity);
}

/* Nothing is divided by a clock that stood still. */
TEST(test_clocks_of_zero)
{
    fixture_write(path);
    execute("UPDATE value SET value=0 WHERE metric_id IN (SELECT id FROM metric WHERE name LIKE "
            "'%cycles_elapsed.avg.per_second')");
    expect_of_pages(expect_no_infinity);
}

TEST(test_control_characters)
{
    fixture_write(path);
    execute("UPDATE kernel SET demangled=char(27)||'[2Jevil'||char(7)||'('||char(10)||')', function=demangled, "
            "mangled=char(27)||'c'||id;"
            "UPDATE launch SET reason=char(27)||']0;title'||char(7);"
            "UPDATE process SET name='a'||char(13)||'b', host=char(127), command_line=char(155)||'31m';"
            "UPDATE device SET name=char(27)||'[0m';"
            "UPDATE metric SET name=name||char(27), unit=char(8) WHERE kind='hardware';"
            "UPDATE message SET text=char(27)||'[31m'||text;"
            "UPDATE pass SET chip=chip||char(27); UPDATE schedule SET chip=chip||char(27);"
            "UPDATE section SET definition=replace(definition, 'Duration', '\\u009b5m\\u202eDuration');"
            "UPDATE section SET definition=replace(definition, 'Roofline', '\\u009bRoofline')");
    expect_of_pages(expect_printable);
}

TEST(test_control_characters_in_stacks)
{
    static const kprof_filter_spec all;
    kprof_report *report = NULL;
    char *text = NULL;
    size_t size = 0;
    fixture_write(path);
    execute("INSERT INTO stack VALUES(NULL, 'a', 'b', "
            "'[{\"function\":\"\\u009b5m\\u007f;\",\"file\":\"a\\u202eb\"}]', 0, '');"
            "INSERT INTO launch_stack SELECT id, (SELECT max(id) FROM stack), 'launch' FROM launch");
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(kprof_report_print_folded(report, &all, file), KPROF_OK);
    fclose(file);
    expect_printable(text);
    assert_non_null(strstr(text, "5m"));
    free(text);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* Means of values that are as large as numbers get. */
TEST(test_endless_samples_over_time)
{
    kprof_report *report = NULL;
    kprof_status status;
    fixture_write(path);
    execute("INSERT INTO timeline_pass SELECT id, 0, 1000, 2, '' FROM launch;"
            "INSERT INTO timeline SELECT id, 1, 0, 1000000000000000, 1e308 FROM launch;"
            "INSERT INTO timeline SELECT id, 1, 5, 1000000000000000, 1e308 FROM launch;"
            "INSERT INTO timeline SELECT id, 2, 0, 7, 9e999 FROM launch");
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    for (int i = 0; i < KPROF_FORMAT_COUNT; i++) {
        kprof_print_options options = {.page = KPROF_PAGE_TIMELINE, .format = (kprof_format)i};
        char *text = fixture_print(report, &options, &status);
        assert_int_equal(status, KPROF_OK);
        part_columns(text, options.format);
        expect_printable(text);
        expect_no_infinity(text);
        free(text);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* What is over time keeps within the lines, and names are broken between two characters. */
TEST(test_long_names_over_time)
{
    static const kprof_page pages[] = {KPROF_PAGE_DETAILS, KPROF_PAGE_TIMELINE};
    kprof_report *report = NULL;
    fixture_write(path);
    execute("UPDATE metric SET name='a'||replace(hex(zeroblob(40)), '00', char(252)) WHERE id=1;"
            "UPDATE metric SET name='ab'||replace(hex(zeroblob(40)), '00', char(252)) WHERE id=2;"
            "INSERT INTO timeline_pass SELECT id, 0, 1000, 1, '' FROM launch;"
            "INSERT INTO timeline SELECT id, 1, 0, 9, 1 FROM launch;"
            "INSERT INTO timeline SELECT id, 2, 0, 9, 1 FROM launch");
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        kprof_status status;
        const kprof_print_options options = {.page = pages[i], .width = 60};
        char *text = fixture_print(report, &options, &status);
        assert_int_equal(status, KPROF_OK);
        assert_non_null(strstr(text, pages[i] == KPROF_PAGE_DETAILS ? "Over time" : "Timelines"));
        const char *drawing = strstr(text, " |");
        assert_true(drawing && strcspn(drawing + 2, "|") > 50); /* in one piece */
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            if (!kprof_text_is_clean(line) || kprof_text_width(line) > 60)
                fail_msg("%s", line);
        free(text);
    }
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static char *print_one(kprof_page page, kprof_format format, bool csv_safe)
{
    kprof_report *report = NULL;
    kprof_status status;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    kprof_print_options options = {.page = page, .format = format, .csv_safe = csv_safe};
    char *text = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    return text;
}

static void expect_printed(kprof_format format, const char *words)
{
    KPROF_AUTO_FREE char *text = print_one(KPROF_PAGE_DETAILS, format, false);
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in: %.2000s", words, text);
}

/* People read escapes that cannot be mistaken, programs get the name itself. */
TEST(test_names_in_json)
{
    fixture_write(path);
    execute(
        "UPDATE kernel SET function='a'||char(10)||char(27)||char(155)||char(8238)||char(252)||CAST(x'ff' AS TEXT)");
    expect_printed(KPROF_FORMAT_JSON, "\"function\":\"a\\n\\u001b\\u009b\\u202e\xc3\xbc\xef\xbf\xbd\"");
    expect_printed(KPROF_FORMAT_CSV, "\"a\\n\\x1b\\xc2\\x9b\\xe2\\x80\\xae\xc3\xbc\\xff\"");
}

static void expect_small(const char *text, size_t most_lines, size_t most_bytes)
{
    size_t lines = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\n");
        lines = length ? lines + 1 : 0; /* an empty line stands between two kernels */
        if (lines > most_lines || length > most_bytes)
            fail_msg("line %zu of %zu bytes: %.200s", lines, length, line);
    }
}

/* However long and strange the names are, a document has 2 KB at most, and a kernel 15 lines of 100 columns. */
TEST(test_brief_stays_small)
{
    static const char *const names[] = {
        "'x'", "char(34)||char(92)", "char(1)||char(127)", "char(155)||char(8238)", "CAST(x'ff' AS TEXT)", "'ü'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char sql[512];
        kprof_report *report = NULL;
        kprof_status status;
        kprof_finding_list findings;
        kprof_catalog *catalog = fixture_findings_load(true, &findings);
        fixture_write_multiplexed(path);
        snprintf(sql, sizeof sql,
                 "UPDATE kernel SET demangled=replace(hex(zeroblob(999)), '00', %s);"
                 "UPDATE device SET name=(SELECT demangled FROM kernel);"
                 "UPDATE process SET name=(SELECT demangled FROM kernel)",
                 names[i]);
        execute(sql);
        kprof_print_options options = {
            .page = KPROF_PAGE_BRIEF, .findings = &findings, .group_by = KPROF_GROUP_PROCESS};
        for (int is_json = 0; is_json < 2; is_json++) {
            options.format = is_json ? KPROF_FORMAT_JSONL : KPROF_FORMAT_TEXT;
            assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
            char *text = fixture_print(report, &options, &status);
            assert_int_equal(status, KPROF_OK);
            expect_small(is_json ? text : strchr(text, '\n') + 1, is_json ? 1000 : 15, is_json ? 2048 : 300);
            if (i == 0 && !is_json)
                expect_small(strchr(text, '\n') + 1, 15, 100);
            free(text);
            assert_int_equal(kprof_report_close(report), KPROF_OK);
        }
        free(findings.items);
        kprof_catalog_free(catalog);
    }
}

TEST(test_formulas)
{
    fixture_write(path);
    execute("UPDATE kernel SET function='=HYPERLINK(\"http://a\")', demangled='@f', mangled='-1';"
            "UPDATE process SET name='+1', host='a=1'; UPDATE value SET value=-1");
    for (int format = KPROF_FORMAT_CSV; format <= KPROF_FORMAT_CSV_NCU; format++) {
        char *safe = print_one(KPROF_PAGE_RAW, (kprof_format)format, true);
        char *plain = print_one(KPROF_PAGE_RAW, (kprof_format)format, false);
        assert_non_null(strstr(safe, "\"'@f\""));
        assert_non_null(strstr(safe, "\"'+1\",\"a=1\""));
        assert_null(strstr(safe, "'-1"));
        assert_non_null(strstr(plain, "\"+1\",\"a=1\""));
        assert_null(strstr(plain, "\"'"));
        free(safe);
        free(plain);
    }
    KPROF_AUTO_FREE char *safe = print_one(KPROF_PAGE_SUMMARY, KPROF_FORMAT_CSV, true);
    assert_non_null(strstr(safe, "\"'=HYPERLINK(\"\"http://a\"\")\""));
}

/* Refused when it is opened or printed, in words that name the file, what it holds too much of, and what else to do. */
static void expect_bound(const char *damage, const char *words)
{
    kprof_report *report = NULL;
    fixture_write(path);
    execute(damage);
    kprof_status status = kprof_report_open(path, &report);
    if (status == KPROF_OK)
        free(fixture_print(report, &(kprof_print_options){.page = KPROF_PAGE_DETAILS}, &status));
    if (status != KPROF_BAD_REPORT)
        fail_msg("%s is not noticed", damage);
    if (!strstr(said.last, path) || !strstr(said.last, words))
        fail_msg("%s: \"%s\" does not name the file or say \"%s\"", damage, said.last, words);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

/* Names may have megabytes, and come with each value: a page ends when it has written as much as its file may stand
 * for.
 */
TEST(test_much_output)
{
    char name[400];
    kprof_output out;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    memset(name, 'x', sizeof name);
    out = kprof_output_new(nowhere, 2000 * sizeof name);
    for (int i = 0; i < 2000; i++)
        kprof_output_put(&out, name, sizeof name);
    assert_int_equal(kprof_output_finish(&out), KPROF_OK);
    assert_false(out.is_full);
    out = kprof_output_new(nowhere, 2000 * sizeof name);
    for (int i = 0; i < 2001; i++)
        kprof_output_put(&out, name, sizeof name);
    assert_int_equal(kprof_output_finish(&out), KPROF_OUTPUT);
    assert_true(out.is_full);
    fclose(nowhere);
}

#define COUNT_TO(n) "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<" #n ") "

static void test_too_much(void **state)
{
    expect_bound(COUNT_TO(100) "INSERT INTO pass SELECT 'chip'||i, 1, 1, 1 FROM n", "more than 64 chips");
    expect_bound(COUNT_TO(70000) "INSERT INTO metric SELECT i+(SELECT max(id) FROM metric), 'm'||i, '', '', '' FROM n",
                 "more than 65536 metrics");
    expect_bound(
        COUNT_TO(1100) "INSERT INTO metric SELECT i+(SELECT max(id) FROM metric), 'm'||i, '', '', 'witness' FROM n",
        "more than 1024 witnesses");
    expect_bound(
        COUNT_TO(20) "INSERT INTO section SELECT NULL, 'GH100', 'a', 'a', "
                     "json_object('id', 'a', 'name', 'a', 'items', (" COUNT_TO(
                         8000) "SELECT json_group_array(json_object('metric', 'a', 'label', 'a')) FROM n)) FROM n",
        "more than 131072 values in its sections");
    expect_bound(COUNT_TO(2) "INSERT INTO section SELECT NULL, 'GH100', 'a', 'a', json_object('id', 'a', 'name', 'a', "
                             "'items', (" COUNT_TO(
                                 200) "SELECT json_group_array(json_object('name', 'a'||i, 'label', 'a', "
                                      "'expression', replace(hex(zeroblob(2000)), '00', 'a+')||'a')) FROM n)) FROM n",
                 "characters of expressions");
    /* A launch of small numbers takes 40 bytes, and wants hundreds of values. */
    expect_bound("CREATE TEMP TABLE more AS " COUNT_TO(
                     120000) "SELECT launch.* FROM n, launch WHERE id=0; UPDATE more SET id=rowid+(SELECT max(id) FROM "
                             "launch), thread=1, start_unix_ns=0, profile_ns=0; INSERT INTO launch SELECT * FROM more",
                 "with -k, -s and -c");
    expect_bound("CREATE TABLE t(a); PRAGMA writable_schema=ON; " COUNT_TO(
                     4000) "INSERT INTO sqlite_schema SELECT 'view', 'v'||i, 'v'||i, 0, 'CREATE VIEW v'||i||"
                           "' AS SELECT 1'||replace(hex(zeroblob(1000)), '00', ',1') FROM n",
                 "MB of memory");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest more[] = {cmocka_unit_test_setup_teardown(test_more_flipped_bytes, set_up, tear_down),
                                      cmocka_unit_test_setup_teardown(test_too_much, set_up, tear_down)};
    if (argc > 1 && strcmp(argv[1], "more") == 0)
        return cmocka_run_group_tests(more, NULL, NULL);
    around_each(set_up, tear_down);
    return run_all_tests();
}
