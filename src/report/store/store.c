/* Runs the statements of a report and maps SQLite's errors to statuses. */
#include "report/store/store.h"
#include "core/clean.h"
#include "report/store/limits.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SHOWN 160 /* bytes of a statement in a message: the statements that make a report are long */

static const char *const statement_texts[KPROF_STATEMENT_COUNT] = {
#define STATEMENT_TEXT(name, sql) sql,
    KPROF_STATEMENT_MAP(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

/* A report that is only read writes nothing else. */
static bool lacks_temporary_files(sqlite3 *db)
{
    const int code = sqlite3_extended_errcode(db);
    return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_GETTEMPPATH || code == SQLITE_IOERR_WRITE;
}

kprof_status kprof_store_fail(kprof_report *report, const char *operation)
{
    int code = sqlite3_errcode(report->db);
    const bool is_limit = sqlite3_memory_highwater(0) > KPROF_SQLITE_HEAP_BYTES / 2;
    if (code == SQLITE_NOMEM && !report->writable && is_limit)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: SQLite needs more than %ld MB of memory to read this file, which no report does; "
                          "sqlite3 may read it",
                          report->path, (KPROF_SQLITE_HEAP_BYTES >> 20));
    if (code == SQLITE_NOMEM)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory: %.*s", report->path, SHOWN, operation);
    if (!report->writable && code == SQLITE_INTERRUPT)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: the report is damaged: its list of tables does not end" KPROF_DAMAGED_ADVICE,
                          report->path);
    if (!report->writable && sqlite3_extended_errcode(report->db) == SQLITE_READONLY_ROLLBACK)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: a program that wrote to it was cut short, and %s-journal has what it wrote over: copy "
                          "both files to another folder, and read the copy after sqlite3 COPY .tables",
                          report->path, report->path);
    if (!report->writable && code == SQLITE_CANTOPEN)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: its run was cut short, and its log %s-wal cannot be read in a folder that you may not "
                          "write to: copy both files to another folder, and read the copy",
                          report->path, report->path);
    if (!report->writable && (code == SQLITE_CORRUPT || code == SQLITE_NOTADB))
        return kprof_fail(KPROF_BAD_REPORT, "%s: the report is damaged, or was not copied whole" KPROF_DAMAGED_ADVICE,
                          report->path);
    if (!report->writable && lacks_temporary_files(report->db))
        return kprof_fail(KPROF_OUTPUT,
                          "%s: temporary files cannot be written (%s): name another folder in TMPDIR, with more space",
                          report->path, sqlite3_errmsg(report->db));
    if (!report->writable)
        return kprof_fail(KPROF_BAD_REPORT, "%s: cannot read the report: %s: %.*s", report->path,
                          sqlite3_errmsg(report->db), SHOWN, operation);
    if (code == SQLITE_CONSTRAINT || code == SQLITE_MISUSE || code == SQLITE_ERROR)
        return kprof_fail(KPROF_INTERNAL, "%s: %s: %.*s", report->path, sqlite3_errmsg(report->db), SHOWN, operation);
    report->broken = true;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return kprof_fail(KPROF_OUTPUT, "%s: cannot write the report: another program has locked it for writing: %.*s",
                          report->path, SHOWN, operation);
    const bool has_reason = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
    const int reason = has_reason ? sqlite3_system_errno(report->db) : 0;
    const bool is_known = reason != 0 && reason != ENOENT; /* which tells of what SQLite tries next */
    return kprof_fail(KPROF_OUTPUT, "%s: cannot write the report%s: %s: %.*s", report->path,
                      has_reason && !is_known ? " (is the disk full?)" : "",
                      is_known ? strerror(reason) : sqlite3_errmsg(report->db), SHOWN, operation);
}

kprof_status kprof_store_note(kprof_report *report, kprof_status status)
{
    if (report->status == KPROF_OK)
        report->status = status;
    return status;
}

kprof_status kprof_store_bad_record(const char *what, uint64_t number)
{
    return kprof_fail(
        KPROF_BAD_SPOOL,
        "the file in which a process hands kprof its launches is damaged: %s %lu; is the disk of TMPDIR full?", what,
        number);
}

kprof_status kprof_store_damaged(kprof_report *report, const char *table)
{
    if (sqlite3_errcode(report->db) == SQLITE_NOMEM) /* a text that could not be read looks like one that is missing */
        return kprof_store_note(report, kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", report->path));
    return kprof_store_note(report, kprof_fail(KPROF_BAD_REPORT,
                                               "%s: the report is damaged: table \"%s\" has rows that do not "
                                               "fit" KPROF_DAMAGED_ADVICE,
                                               report->path, table));
}

kprof_status kprof_store_too_much(kprof_report *report, size_t limit, const char *what)
{
    return kprof_store_note(report, kprof_fail(KPROF_BAD_REPORT,
                                               "%s: holds more than %zu %s, the most that kprof reads; sqlite3 reads "
                                               "it, and docs/report-schema.md tells its tables",
                                               report->path, limit, what));
}

const char *kprof_store_column(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    if (!text && sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
        kprof_memory_note_lack();
    return or_empty(text);
}

double kprof_store_real(sqlite3_stmt *row, int column)
{
    const double value = sqlite3_column_double(row, column);
    return sqlite3_column_type(row, column) != SQLITE_NULL && isfinite(value) ? value : NAN;
}

char *kprof_store_text(const kprof_report *report, sqlite3_stmt *row, int column)
{
    const char *text = kprof_store_column(row, column);
    return report->keeps_text ? kprof_strdup(text) : kprof_clean_text(text);
}

kprof_status kprof_store_exec(kprof_report *report, const char *sql)
{
    if (report->status == KPROF_OK && sqlite3_exec(report->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return kprof_store_note(report, kprof_store_fail(report, sql));
    return report->status;
}

sqlite3_stmt *kprof_store_prepare(kprof_report *report, kprof_statement id, const char *sql)
{
    sqlite3_stmt **statement = &report->statements[id];
    if (report->status != KPROF_OK)
        return NULL;
    if (*statement) {
        sqlite3_reset(*statement);
        sqlite3_clear_bindings(*statement);
    } else if (sqlite3_prepare_v3(report->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK) {
        kprof_store_note(report, kprof_store_fail(report, sql));
    }
    return *statement;
}

sqlite3_stmt *kprof_store_insert(kprof_report *report, kprof_statement id, const char *table, size_t count)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    if (!report->statements[id]) {
        kprof_strbuf_printf(&sql, "INSERT INTO %s VALUES(?", table);
        for (size_t i = 1; i < count; i++)
            kprof_strbuf_puts(&sql, ",?");
        kprof_strbuf_puts(&sql, ")");
    }
    return kprof_store_prepare(report, id, sql.data);
}

sqlite3_stmt *kprof_store_statement(kprof_report *report, kprof_statement id)
{
    return kprof_store_prepare(report, id, statement_texts[id]);
}

/* Text is bound without a copy: the caller's strings outlive the step. */
static int bind_all(sqlite3_stmt *statement, const char *types, va_list args)
{
    int rc = SQLITE_OK;
    for (int i = 0; types[i] && rc == SQLITE_OK; i++) {
        if (types[i] == 's' || types[i] == 't') {
            const char *text = va_arg(args, const char *);
            rc = sqlite3_bind_text(statement, i + 1, text || types[i] == 't' ? text : "", -1, SQLITE_STATIC);
        } else if (types[i] == 'n' || types[i] == 'b') {
            const void *bytes = va_arg(args, const void *);
            const int size = (int)va_arg(args, size_t);
            rc = types[i] == 'n' ? sqlite3_bind_text(statement, i + 1, bytes, size, SQLITE_STATIC)
                                 : sqlite3_bind_blob(statement, i + 1, bytes, size, SQLITE_STATIC);
        } else if (types[i] == 'z') {
            rc = sqlite3_bind_null(statement, i + 1);
        } else if (types[i] == 'i') {
            rc = sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
        } else {
            rc = sqlite3_bind_double(statement, i + 1, va_arg(args, double));
        }
    }
    return rc;
}

kprof_status kprof_store_take_status(kprof_report *report)
{
    const kprof_status status = report->status;
    report->status = KPROF_OK;
    return status;
}

kprof_status kprof_store_release(kprof_report *report)
{
    /* After a full disk SQLite may have rolled everything back itself; then there is no savepoint left to undo. */
    if (report->status != KPROF_OK && !sqlite3_get_autocommit(report->db))
        sqlite3_exec(report->db, "ROLLBACK TO record; RELEASE record", NULL, NULL, NULL);
    kprof_store_write(report, KPROF_SQL_RELEASE, "");
    return kprof_store_take_status(report);
}

int64_t kprof_store_find(kprof_report *report, kprof_statement id, const char *types, ...)
{
    sqlite3_stmt *statement = kprof_store_statement(report, id);
    if (!statement)
        return 0;
    va_list args;
    va_start(args, types);
    int rc = bind_all(statement, types, args);
    va_end(args);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    const int64_t found = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        kprof_store_note(report, kprof_store_fail(report, statement_texts[id]));
    sqlite3_reset(statement);
    return found;
}

/* A batch tells of its launches behind all of them, in their order, so look first behind the one found last:
 * to go back from the newest row each time would take the square of the batch's length. */
int64_t kprof_store_find_launch(kprof_report *report, int64_t process, uint64_t position)
{
    enum { NEAR = 16, LAUNCHES_BETWEEN = 262144 };
    /* The row and 1, as rows count from 0. */
    int64_t after = kprof_store_find(report, KPROF_SQL_FIND_LAUNCH, "iiii", process, (int64_t)position,
                                     report->told_launch, report->told_launch + NEAR);
    if (after == 0)
        after = kprof_store_find(report, KPROF_SQL_FIND_LAUNCH, "iiii", process, (int64_t)position,
                                 report->next_launch - LAUNCHES_BETWEEN, report->next_launch);
    report->told_launch = after > 0 ? after - 1 : report->told_launch;
    return after - 1;
}

sqlite3_stmt *kprof_store_compile(kprof_report *report, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (report->status == KPROF_OK && sqlite3_prepare_v2(report->db, sql, -1, &statement, NULL) != SQLITE_OK)
        kprof_store_note(report, kprof_store_fail(report, sql));
    return statement;
}

bool kprof_store_next(kprof_report *report, sqlite3_stmt *statement)
{
    const int rc = report->status == KPROF_OK ? sqlite3_step(statement) : SQLITE_DONE;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        kprof_store_note(report, kprof_store_fail(report, sqlite3_sql(statement)));
    return rc == SQLITE_ROW;
}

void kprof_store_run(kprof_report *report, sqlite3_stmt *statement, const char *types, ...)
{
    va_list args;
    if (!statement)
        return;
    va_start(args, types);
    if (bind_all(statement, types, args) == SQLITE_OK)
        kprof_store_step(report, statement);
    else
        kprof_store_note(report, kprof_store_fail(report, sqlite3_sql(statement)));
    va_end(args);
}

void kprof_store_step(kprof_report *report, sqlite3_stmt *statement)
{
    const int rc = report->status == KPROF_OK ? sqlite3_step(statement) : SQLITE_DONE;
    if (rc != SQLITE_DONE)
        kprof_store_note(report, kprof_store_fail(report, sqlite3_sql(statement)));
    sqlite3_reset(statement);
}

static sqlite3_stmt *compile_bound(kprof_report *report, const char *sql, const char *types, va_list args)
{
    sqlite3_stmt *statement = kprof_store_compile(report, sql);
    if (statement && bind_all(statement, types, args) != SQLITE_OK)
        kprof_store_note(report, kprof_store_fail(report, sql));
    return statement;
}

int64_t kprof_store_ask(kprof_report *report, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_stmt *statement = compile_bound(report, sql, types, args);
    va_end(args);
    const int64_t number = kprof_store_next(report, statement) ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return number;
}

int64_t kprof_store_size(kprof_report *report)
{
    const int64_t pages = kprof_store_integer(report, "PRAGMA page_count");
    const int64_t bytes = pages * kprof_store_integer(report, "PRAGMA page_size");
    if (report->status == KPROF_OK)
        report->size_bytes = bytes;
    return bytes;
}

int64_t kprof_store_text_bytes(sqlite3_stmt *row)
{
    int64_t bytes = 0;
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        int type = sqlite3_column_type(row, i);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB)
            bytes += sqlite3_column_bytes(row, i);
    }
    return bytes;
}

/* Each text stands in the file once. UTF-16, which kprof does not write, gets longer by half on the way. */
void kprof_store_check_text(kprof_report *report, int64_t text_bytes)
{
    if (report->writable || text_bytes / 2 <= report->size_bytes)
        return;
    if (text_bytes / 2 > kprof_store_size(report) && report->status == KPROF_OK) /* the report may be growing */
        kprof_store_note(report, kprof_fail(KPROF_BAD_REPORT,
                                            "%s: the report is damaged: the rows of a table have more text than the "
                                            "file has bytes" KPROF_DAMAGED_ADVICE,
                                            report->path));
}

kprof_cursor kprof_cursor_new(kprof_report *report, const char *sql, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    const kprof_cursor cursor = {report, compile_bound(report, sql, types, args), 0};
    va_end(args);
    return cursor;
}

bool kprof_cursor_next(kprof_cursor *cursor)
{
    if (!kprof_store_next(cursor->report, cursor->row))
        return false;
    cursor->text_bytes += kprof_store_text_bytes(cursor->row);
    kprof_store_check_text(cursor->report, cursor->text_bytes);
    return cursor->report->status == KPROF_OK;
}

void kprof_cursor_free(kprof_cursor *cursor)
{
    sqlite3_finalize(cursor->row);
    cursor->row = NULL;
}

void kprof_sql_expand(const char *sql, const kprof_sql_word *words, kprof_strbuf *out)
{
    for (const char *at; (at = strchr(sql, '@'));) {
        const kprof_sql_word *word = words;
        while (word->word && !kprof_begins_with(at, word->word))
            word++;
        kprof_strbuf_append(out, sql, (size_t)(at - sql));
        kprof_strbuf_puts(out, word->word ? word->text : "@");
        sql = at + (word->word ? strlen(word->word) : 1);
    }
    kprof_strbuf_puts(out, sql);
}

static bool is_sound(kprof_report *report)
{
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, "PRAGMA quick_check(1)", "");
    return kprof_cursor_next(&rows) && strcmp(kprof_store_column(rows.row, 0), "ok") == 0;
}

kprof_status kprof_store_check_pages(kprof_report *report)
{
    report->is_sound = report->is_sound || is_sound(report) ||
                       is_sound(report); /* SQLite calls a page damaged when it lacks memory for it: ask again */
    if (!report->is_sound && report->status == KPROF_OK)
        kprof_store_note(report,
                         kprof_fail(KPROF_BAD_REPORT,
                                    "%s: the report is damaged: its pages do not fit together" KPROF_DAMAGED_ADVICE,
                                    report->path));
    return report->status;
}

const char *kprof_path_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
