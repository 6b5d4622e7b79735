/* A report that SQLite finds whole, with values in it that kprof would not write. Two bytes choose how it is printed
 * and one the report; edits follow: table, column, row, kind of value and the value. */
#include "fuzz.h"

#include "report_input.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COLUMNS = 512, MAX_EDITS = 64 };

/* Kinds of edits; below them, one value changes. */
enum { COPIES = 249, ALL_ROWS = 250, DELETES = 255 }; /* COPIES: what the column before has, in all rows */

typedef struct column {
    char *table, *name, *keys; /* keys: the names that tell its rows apart, as SQL */
} column;

enum { FIXTURES = 4 };
static uint8_t *fixtures[FIXTURES];
static size_t fixture_sizes[FIXTURES];
static column columns[MAX_COLUMNS];
static size_t column_count;

static int note_column(void *user, int count, char **texts, char **names)
{
    if (column_count < MAX_COLUMNS)
        columns[column_count++] = (column){strdup(texts[0]), strdup(texts[1]), strdup(texts[2])};
    return 0;
}

void fuzz_set_up(void)
{
    sqlite3 *db = NULL;
    char path[256];
    for (int i = 0; i < 2; i++)
        fixtures[i] = fuzz_read_fixture(i, &fixture_sizes[i]);
    fixtures[2] = fuzz_read_code(&fixture_sizes[2]);
    fixtures[3] = fuzz_read_trace(&fixture_sizes[3]);
    snprintf(path, sizeof path, "%s", fuzz_path("columns.kprof"));
    fuzz_write_file(path, fixtures[0], fixture_sizes[0]); /* the others have these tables, or fewer */
    FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_exec(db,
                            "SELECT m.name, c.name, (SELECT group_concat('\"' || name || '\"') FROM "
                            "pragma_table_info(m.name) WHERE pk > 0) FROM sqlite_schema AS m, "
                            "pragma_table_info(m.name) AS c WHERE m.type='table' ORDER BY 1, 2",
                            note_column, NULL, NULL) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_close(db) == SQLITE_OK);
    FUZZ_CHECK(column_count > 50 && column_count < MAX_COLUMNS);
}

static void bind_value(sqlite3_stmt *statement, fuzz_input *input)
{
    static const double numbers[] = {0, -1, 1e308, -1e-308, 9007199254740993.0, 0.5, INFINITY, -INFINITY};
    static const int64_t integers[] = {INT64_MIN, INT64_MAX, INT32_MAX, UINT32_MAX, 0, -1};
    uint8_t kind = fuzz_take_byte(input), small = fuzz_take_byte(input);
    size_t length = small < input->left ? small : input->left;
    switch (kind % 6) {
    case 0:
        sqlite3_bind_int64(statement, 1, (int8_t)small);
        break;
    case 1:
        sqlite3_bind_int64(statement, 1, integers[small % (sizeof integers / sizeof *integers)]);
        break;
    case 2:
        sqlite3_bind_double(statement, 1, numbers[small % (sizeof numbers / sizeof *numbers)]);
        break;
    case 3:
        sqlite3_bind_text(statement, 1, fuzz_take_text(input, length), (int)length, free);
        break;
    case 4:
        sqlite3_bind_blob(statement, 1, fuzz_take_text(input, length), (int)length, free);
        break;
    default:
        sqlite3_bind_null(statement, 1);
    }
}

static void apply_edit(sqlite3 *db, fuzz_input *input)
{
    sqlite3_stmt *statement = NULL;
    unsigned place = fuzz_take_byte(input);
    place |= (unsigned)fuzz_take_byte(input) << 8;
    const column *at = &columns[place % column_count];
    uint8_t row = fuzz_take_byte(input), what = fuzz_take_byte(input);
    const char *form = "UPDATE \"%w\" SET \"%w\"=?1 WHERE (%s) IN (SELECT %s FROM \"%w\" LIMIT %d OFFSET %d)";
    char *copy = NULL;
    if (what == COPIES) {
        const column *from = &columns[(size_t)(at - columns + (ptrdiff_t)column_count - 1) % column_count];
        copy = sqlite3_mprintf("UPDATE \"%w\" SET \"%w\"=\"%w\"", at->table, at->name,
                               strcmp(from->table, at->table) == 0 ? from->name : at->name);
    }
    if (what == DELETES)
        form = "DELETE FROM \"%w\" WHERE \"%w\" IS NOT ?1 AND (%s) IN (SELECT %s FROM \"%w\" LIMIT %d OFFSET %d)";
    int rows = what >= ALL_ROWS ? -1 : 1; /* of all rows at once, so that what refers to one another stays so */
    char *sql = sqlite3_mprintf(form, at->table, at->name, at->keys, at->keys, at->table, rows,
                                what >= ALL_ROWS ? row % 2 : row);
    if (sqlite3_prepare_v2(db, copy ? copy : sql, -1, &statement, NULL) == SQLITE_OK) {
        bind_value(statement, input);
        (void)sqlite3_step(statement); /* a constraint may refuse it */
    }
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    sqlite3_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256];
    sqlite3 *db = NULL;
    fuzz_input input = {data, size};
    unsigned how = fuzz_take_byte(&input);
    how |= (unsigned)fuzz_take_byte(&input) << 8;
    int which = fuzz_take_byte(&input) % FIXTURES;
    snprintf(path, sizeof path, "%s", fuzz_path("input.kprof"));
    fuzz_write_file(path, fixtures[which], fixture_sizes[which]);
    FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    FUZZ_CHECK(
        sqlite3_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA ignore_check_constraints=ON; BEGIN",
                     NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < MAX_EDITS && input.left > 0; i++)
        apply_edit(db, &input);
    FUZZ_CHECK(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_close(db) == SQLITE_OK);
    fuzz_try_report(path, how);
    unlink(path);
    return 0;
}
