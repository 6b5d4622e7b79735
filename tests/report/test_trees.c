/* Reports of some pages that each lead to the same page hundreds of times, so that reading all rows would take for
 * ever: they are refused at the first sign. */

#include "fixture.h"
#include "log_capture.h"
#include "report/model/merge.h"
#include "report/model/model.h"
#include "test.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, INTERIOR = 5, INTERIOR_HEADER_BYTES = 12, CELL_BYTES = 5, CELLS = 300, LEVELS = 6 };

static log_capture said;
static char path[512];

/* A file of SQLite's pages, which are numbered from 1. */
typedef struct image {
    unsigned char *bytes;
    size_t page_count;
} image;

static void put(unsigned char *at, uint32_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

static image read_image(void)
{
    size_t size;
    image file = {(unsigned char *)fixture_read(path, &size), 0};
    assert_non_null(file.bytes);
    file.page_count = size / PAGE_BYTES;
    return file;
}

static unsigned char *add_page(image *file)
{
    file->bytes = realloc(file->bytes, ++file->page_count * PAGE_BYTES);
    assert_non_null(file->bytes);
    return memset(file->bytes + (file->page_count - 1) * PAGE_BYTES, 0, PAGE_BYTES);
}

static void write_image(image *file)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    put(file->bytes + 28, (uint32_t)file->page_count, 4);
    assert_int_equal(fwrite(file->bytes, PAGE_BYTES, file->page_count, out), file->page_count);
    assert_int_equal(fclose(out), 0);
    free(file->bytes);
}

/* Make a page of a table's tree whose cells all lead to `child`. */
static void fill_interior(unsigned char *page, size_t child)
{
    memset(page, 0, PAGE_BYTES);
    page[0] = INTERIOR;
    put(page + 3, CELLS, 2);
    put(page + 5, PAGE_BYTES - CELLS * CELL_BYTES, 2);
    put(page + 8, (uint32_t)child, 4);
    for (size_t i = 0; i < CELLS; i++) {
        size_t at = PAGE_BYTES - (i + 1) * CELL_BYTES;
        put(page + INTERIOR_HEADER_BYTES + 2 * i, (uint32_t)at, 2);
        put(page + at, (uint32_t)child, 4);
        page[at + 4] = 127; /* the key, which no walk from the first row on looks at */
    }
}

/* Add levels of such pages above a page; gives the one at the top. */
static size_t add_levels(image *file, size_t bottom)
{
    for (int i = 0; i < LEVELS; i++) {
        size_t child = i == 0 ? bottom : file->page_count;
        fill_interior(add_page(file), child);
    }
    return file->page_count;
}

static size_t ask_number(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    size_t number = (size_t)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Write the fixture, with a tree of that kind for a table, of which all rows are in one page so far. */
static void write_report(const char *table)
{
    char sql[128];
    fixture_write(path);
    execute(
        "INSERT INTO source SELECT 1, 'a', command_line, working_directory, kprof_version, sets, start_unix_ns FROM "
        "run; INSERT INTO process_source SELECT id, 1 FROM process");
    assert_int_equal(ask_number("PRAGMA page_size"), PAGE_BYTES);
    snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name='%s'", table);
    size_t root = ask_number(sql);
    image file = read_image();
    unsigned char *rows = add_page(&file);
    memcpy(rows, file.bytes + (root - 1) * PAGE_BYTES, PAGE_BYTES);
    size_t top = add_levels(&file, file.page_count);
    fill_interior(file.bytes + (root - 1) * PAGE_BYTES, top);
    write_image(&file);
}

TEST(test_tables)
{
    static const char *const tables[] = {"launch", "nvtx", "graph_node", "message", "process_source", "source"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        kprof_report *report;
        kprof_status status;
        write_report(tables[i]);
        assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
        for (kprof_page page = 0; page < KPROF_PAGE_COUNT; page++) {
            const bool may_lack = page == KPROF_PAGE_SOURCE || page == KPROF_PAGE_TIMELINE;
            free(fixture_print(report, &(kprof_print_options){.page = page}, &status));
            assert_true(status == KPROF_OK || status == KPROF_BAD_REPORT || (may_lack && status == KPROF_NO_MATCH));
        }
        kprof_strlist ranges = KPROF_STRLIST_INIT;
        status = kprof_report_nvtx(report, 1, &ranges);
        assert_true(status == KPROF_OK || status == KPROF_BAD_REPORT);
        kprof_strlist_free(&ranges);
        assert_int_equal(kprof_report_close(report), KPROF_OK);
    }
}

/* A merge copies whole tables. */
TEST(test_merge)
{
    static const char *const tables[] = {"launch", "nvtx", "graph_node", "source", "process_source", "left_out"};
    char merged[512];
    snprintf(merged, sizeof merged, "%s", fixture_path("merged.kprof"));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        kprof_report *into;
        kprof_merge *merge;
        write_report(tables[i]);
        assert_int_equal(kprof_report_create(merged, KPROF_CREATE_REPLACE, &(kprof_run_info){0}, &into), KPROF_OK);
        merge = kprof_merge_new(into);
        assert_int_equal(kprof_merge_add(merge, path, "a", NULL), KPROF_BAD_REPORT);
        assert_non_null(strstr(said.last, path));
        assert_non_null(strstr(said.last, "damaged"));
        kprof_merge_free(merge);
        kprof_report_discard(into);
    }
}

/* Make a page with the row that lists the index of a UNIQUE column: it has no text, and may come again. */
static void fill_leaf_of_index(unsigned char *page, size_t root)
{
    enum {
        LEAF = 13,
        ROW_NUMBER = 100,
        HEADER_BYTES = 6,
        TEXT_5 = 23,
        TEXT_6 = 25,
        TEXT_25 = 63,
        INT_8 = 1,
        NOTHING = 0
    };
    static const char texts[] = "indexsqlite_autoindex_metric_1metric";
    const unsigned char cell[] = {
        HEADER_BYTES + sizeof texts, ROW_NUMBER, HEADER_BYTES, TEXT_5, TEXT_25, TEXT_6, INT_8, NOTHING};
    const size_t at = PAGE_BYTES - sizeof cell - sizeof texts;
    page[0] = LEAF;
    put(page + 3, 1, 2);
    put(page + 5, (uint32_t)at, 2);
    put(page + 8, (uint32_t)at, 2);
    memcpy(page + at, cell, sizeof cell);
    memcpy(page + at + sizeof cell, texts, sizeof texts - 1);
    page[PAGE_BYTES - 1] = (unsigned char)root;
}

/* The list of tables, which SQLite reads before anything else, is a tree that begins in the first page. */
TEST(test_list_of_tables)
{
    enum { KIND = 100, LAST_CHILD = 108 };
    kprof_report *report;
    fixture_write(path);
    size_t index = ask_number("SELECT rootpage FROM sqlite_schema WHERE name='sqlite_autoindex_metric_1'");
    image file = read_image();
    assert_int_equal(file.bytes[KIND], INTERIOR);
    fill_leaf_of_index(add_page(&file), index);
    size_t top = add_levels(&file, file.page_count);
    unsigned char *fork = add_page(&file);
    fill_interior(fork, top);
    put(fork + 3, 1, 2); /* its first cell leads to the tables, and what follows to the levels */
    memcpy(fork + PAGE_BYTES - CELL_BYTES, file.bytes + LAST_CHILD, 4);
    put(file.bytes + LAST_CHILD, (uint32_t)file.page_count, 4);
    write_image(&file);
    assert_int_equal(kprof_report_open(path, &report), KPROF_BAD_REPORT);
    assert_non_null(strstr(said.last, "its list of tables does not end"));
}

/* Rows may also share the pages of a long text, and SQLite takes a text for a value. Reading one such row again and
 * again costs the same as reading many of them. */
TEST(test_texts_as_values)
{
    kprof_report *report;
    kprof_model model;
    kprof_value_reader reader;
    fixture_write(path);
    execute("UPDATE value SET value=replace(hex(zeroblob(3000000)), '00', 'x') WHERE launch_id=0 AND metric_id=(SELECT "
            "min(metric_id) FROM value WHERE launch_id=0)");
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    assert_int_equal(kprof_model_load(report, &model), KPROF_OK);
    const kprof_model_walk walk = {report, &model, NULL, true};
    kprof_value_reader_open(&walk, &reader);
    assert_int_equal(report->status, KPROF_OK);
    KPROF_AUTO_FREE double *values = calloc(model.metric_count, sizeof *values);
    KPROF_AUTO_FREE bool *asked = calloc(model.metric_count, sizeof *asked);
    kprof_status status = KPROF_OK;
    for (int i = 0; i < 10 && status == KPROF_OK; i++)
        status = kprof_value_reader_read(&reader, 0, values, asked);
    assert_int_equal(status, KPROF_BAD_REPORT);
    assert_non_null(strstr(said.last, "more text than the file has bytes"));
    kprof_value_reader_close(&reader);
    kprof_model_free(&model);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static int set_up(void **state)
{
    snprintf(path, sizeof path, "%s", fixture_path("trees.kprof"));
    log_capture_start(&said);
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    return 0;
}

AROUND_ALL(set_up, tear_down)
