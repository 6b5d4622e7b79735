/* One list of columns for each table makes its definition, its INSERT and what is read of it. */
#include "report/store/rows.h"

#include <string.h>

typedef enum column_kind { COLUMN_U32, COLUMN_I64, COLUMN_REF, COLUMN_OPTIONAL, COLUMN_FLAG, COLUMN_TEXT } column_kind;

typedef struct column {
    const char *name, *type;
    column_kind kind;
    bool told; /* by the spool; else the command line makes it */
    int since;
    size_t offset; /* in the row's struct */
} column;

typedef struct table_layout {
    const char *name;
    const column *columns;
    size_t count;
} table_layout;

/* The columns that a field makes, by its kind. */
#define COLUMNS_U32(name, ...)      {name, "INTEGER NOT NULL", COLUMN_U32, __VA_ARGS__},
#define COLUMNS_U64                 COLUMNS_I64
#define COLUMNS_I64(name, ...)      {name, "INTEGER NOT NULL", COLUMN_I64, __VA_ARGS__},
#define COLUMNS_REF(name, ...)      {name, "INTEGER NOT NULL REFERENCES", COLUMN_REF, __VA_ARGS__},
#define COLUMNS_OPTIONAL(name, ...) {name, "INTEGER", COLUMN_OPTIONAL, __VA_ARGS__},
#define COLUMNS_FLAG(name, ...)     {name, "INTEGER NOT NULL", COLUMN_FLAG, __VA_ARGS__},
#define COLUMNS_TEXT(name, ...)     {name, "TEXT NOT NULL", COLUMN_TEXT, __VA_ARGS__},
#define COLUMNS_UNIQUE(name, ...)   {name, "TEXT NOT NULL UNIQUE", COLUMN_TEXT, __VA_ARGS__},
#define COLUMNS_SHAPE(name, told, since, offset)                                                                       \
    COLUMNS_U32(name "_x", told, since, offset)                                                                        \
    COLUMNS_U32(name "_y", told, since, (offset) + sizeof(uint32_t))                                                   \
    COLUMNS_U32(name "_z", told, since, (offset) + 2 * sizeof(uint32_t))

#define FIELD(kind, member, column, since, ...) COLUMNS_##kind(#column, true, since, offsetof(row_struct, member))
#define REPORT(kind, column, since)             COLUMNS_##kind(#column, false, since, offsetof(row_struct, column))
#define NO_COLUMN(...)
#define LAYOUT(NAME, name, row)                                                                                        \
    case KPROF_ROWS_##NAME: {                                                                                          \
        typedef row row_struct;                                                                                        \
        static const column columns[] = {KPROF_##NAME##_FIELDS(FIELD, NO_COLUMN, REPORT)};                             \
        return (table_layout){#name, columns, COUNT_OF(columns)};                                                      \
    }

static table_layout layout_of(kprof_rows table)
{
    switch (table) {
        KPROF_ROWS_MAP(LAYOUT)
    default:
        return (table_layout){.name = ""};
    }
}

/* Columns that had another name before a version. */
static const struct {
    const char *name, *former_name;
    int since;
} renamed[] = {
    {"registers_per_thread_compiled", "registers_per_thread", 4},
};

static const char *name_of(const column *c, int version)
{
    const size_t at =
        KPROF_FIND(i, COUNT_OF(renamed), version < renamed[i].since && strcmp(c->name, renamed[i].name) == 0);
    return at < COUNT_OF(renamed) ? renamed[at].former_name : c->name;
}

char *kprof_rows_definition(const char *name, int version)
{
    table_layout layout = {0};
    for (int i = 0; i < KPROF_ROWS_COUNT && (!layout.name || strcmp(layout.name, name) != 0); i++)
        layout = layout_of((kprof_rows)i);
    kprof_strbuf sql = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&sql, "CREATE TABLE %s(id INTEGER PRIMARY KEY", layout.name);
    for (size_t i = 0; i < layout.count; i++) {
        const column *c = &layout.columns[i];
        if (c->since > version)
            continue;
        kprof_strbuf_printf(&sql, ", %s %s", name_of(c, version), c->type);
        if (c->kind == COLUMN_REF) /* process_id refers to process */
            kprof_strbuf_printf(&sql, " %.*s", (int)(strlen(c->name) - strlen("_id")), c->name);
    }
    kprof_strbuf_puts(&sql, ")");
    return kprof_strbuf_take(&sql);
}

static const char *text_of(const column *c, const void *row)
{
    const char *text;
    memcpy(&text, (const char *)row + c->offset, sizeof text);
    return or_empty(text);
}

static int64_t number_of(const column *c, const void *row)
{
    const void *member = (const char *)row + c->offset;
    return c->kind == COLUMN_U32    ? *(const uint32_t *)member
           : c->kind == COLUMN_FLAG ? *(const bool *)member
                                    : *(const int64_t *)member;
}

static int bind_column(sqlite3_stmt *statement, int place, const column *c, const void *row)
{
    if (c->kind == COLUMN_TEXT)
        return sqlite3_bind_text(statement, place, text_of(c, row), -1, SQLITE_STATIC);
    const int64_t number = number_of(c, row);
    return c->kind == COLUMN_OPTIONAL && number < 0 ? sqlite3_bind_null(statement, place)
                                                    : sqlite3_bind_int64(statement, place, number);
}

/* Bind the columns of a row to the parameters from 2 on, as many as the statement has, and run it. */
static int run_with(sqlite3_stmt *statement, const table_layout *layout, const void *row)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < layout->count && rc == SQLITE_OK; i++)
        rc = bind_column(statement, (int)i + 2, &layout->columns[i], row);
    return rc == SQLITE_OK ? sqlite3_step(statement) : rc;
}

int64_t kprof_rows_insert(kprof_report *report, kprof_rows table, const void *row, int64_t id)
{
    const table_layout layout = layout_of(table);
    sqlite3_stmt *statement =
        kprof_store_insert(report, KPROF_SQL_ADD_ROW + (kprof_statement)table, layout.name, 1 + layout.count);
    if (!statement)
        return id;
    if (id >= 0)
        sqlite3_bind_int64(statement, 1, id);
    if (run_with(statement, &layout, row) != SQLITE_DONE)
        kprof_store_note(report, kprof_store_fail(report, layout.name));
    sqlite3_reset(statement);
    return sqlite3_last_insert_rowid(report->db);
}

int64_t kprof_rows_find_kernel(kprof_report *report, const kprof_model_kernel *kernel)
{
    const table_layout layout = layout_of(KPROF_ROWS_KERNEL);
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&sql, "SELECT id FROM kernel WHERE ?1 IS NULL");
    for (size_t i = 0; i < layout.count; i++) /* the command line fills the others in later: they are '' now */
        kprof_strbuf_printf(&sql, " AND %s=?%zu", layout.columns[i].told ? layout.columns[i].name : "''", i + 2);
    sqlite3_stmt *statement = kprof_store_prepare(report, KPROF_SQL_FIND_KERNEL, sql.data);
    if (!statement)
        return 0;
    const int rc = run_with(statement, &layout, kernel);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        kprof_store_note(report, kprof_store_fail(report, "looking for a kernel"));
    const int64_t id = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return id;
}

int64_t kprof_store_metric(kprof_report *report, const kprof_model_metric *metric)
{
    const int64_t id = kprof_store_find(report, KPROF_SQL_FIND_METRIC, "s", metric->name);
    if (!id)
        return kprof_rows_insert(report, KPROF_ROWS_METRIC, metric, -1);
    kprof_store_write(report, KPROF_SQL_DESCRIBE_METRIC, "iss", id, metric->unit, metric->description);
    return id;
}

int64_t kprof_store_witness(kprof_report *report, const char *witness)
{
    KPROF_AUTO_FREE char *name = kprof_strprintf("%s" KPROF_SPREAD_SUFFIX, witness);
    kprof_model_metric row = {name, "%",
                              "how far the passes of a launch differ in this counter: (highest - lowest) / mean",
                              KPROF_WITNESS_KIND};
    return kprof_store_metric(report, &row);
}

void kprof_rows_describe(kprof_rows table, const void *row, kprof_strbuf *out)
{
    const table_layout layout = layout_of(table);
    for (size_t i = 0; i < layout.count; i++) {
        const column *c = &layout.columns[i];
        if (c->kind == COLUMN_TEXT) /* its length keeps it apart from the next one */
            kprof_strbuf_printf(out, "%zu %s ", strlen(text_of(c, row)), text_of(c, row));
        else
            kprof_strbuf_printf(out, "%ld ", number_of(c, row));
    }
}

void kprof_rows_list_plain(kprof_rows table, int version, kprof_strbuf *out)
{
    const table_layout layout = layout_of(table);
    for (size_t i = 0; i < layout.count; i++) {
        const column *c = &layout.columns[i];
        const char *missing = c->kind == COLUMN_TEXT ? "''" : c->kind == COLUMN_OPTIONAL ? "NULL" : "0";
        if (c->kind != COLUMN_REF)
            kprof_strbuf_printf(out, ", %s", c->since > version ? missing : name_of(c, version));
    }
}

/* `place` is negative when the report is too old to have the column. */
static void read_column(const kprof_row_source *from, int place, const column *c, void *row)
{
    char *member = (char *)row + c->offset;
    const bool is_null = place < 0 || sqlite3_column_type(from->columns, place) == SQLITE_NULL;
    const int64_t missing = c->kind == COLUMN_OPTIONAL ? -1 : 0;
    const int64_t number = is_null ? missing : sqlite3_column_int64(from->columns, place);
    const uint32_t small = (uint32_t)number;
    const bool flag = number != 0;
    if (c->kind == COLUMN_TEXT) {
        char *text = is_null ? kprof_strdup("") : kprof_store_text(from->report, from->columns, place);
        kprof_pool_keep(from->pool, text);
        memcpy(member, &text, sizeof text);
    } else if (c->kind == COLUMN_U32)
        memcpy(member, &small, sizeof small);
    else if (c->kind == COLUMN_FLAG)
        memcpy(member, &flag, sizeof flag);
    else
        memcpy(member, &number, sizeof number);
}

void kprof_rows_read(const kprof_row_source *from, kprof_rows table, void *row)
{
    const table_layout layout = layout_of(table);
    int place = 1;
    for (size_t i = 0; i < layout.count; i++)
        read_column(from, layout.columns[i].since <= from->report->version ? place++ : -1, &layout.columns[i], row);
}
