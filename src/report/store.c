/* Creates, opens and closes the SQLite file of a report, and runs its statements. A report being written uses a
 * write-ahead log, so that whatever was committed survives a killed kprof; closing turns it into one plain file. */
#include "report/derived.h"
#include "report/report_file.h"
#include "report/rows.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No text or blob of a report is longer; a hostile file cannot make us allocate more for one. */
#define MAX_FIELD_BYTES (16 * 1024 * 1024)
/* How long to wait at the end for somebody who reads the report; then a copy takes its place. */
#define READER_PATIENCE_MS 500

static const char *const statement_texts[] = {
#define STATEMENT_TEXT(name, sql) sql,
    KPROF_STATEMENT_MAP(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

kprof_status kprof_store_fail(kprof_report *report, const char *operation)
{
    int code = sqlite3_errcode(report->db);
    if (code == SQLITE_NOMEM)
        return kprof_fail(KPROF_NO_MEMORY, "%s: %s: out of memory", report->path, operation);
    if (!report->writable)
        return kprof_fail(KPROF_BAD_REPORT, "%s: cannot read the report: %s: %s", report->path, operation,
                          sqlite3_errmsg(report->db));
    if (code == SQLITE_CONSTRAINT || code == SQLITE_MISUSE || code == SQLITE_ERROR)
        return kprof_fail(KPROF_INTERNAL, "%s: %s: %s", report->path, operation, sqlite3_errmsg(report->db));
    report->broken = true;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return kprof_fail(KPROF_OUTPUT,
                          "%s: cannot write the report: another program has locked it for writing; what was stored "
                          "before is kept: %s",
                          report->path, operation);
    return kprof_fail(KPROF_OUTPUT, "%s: cannot write the report (is the disk full?): %s: %s", report->path, operation,
                      sqlite3_errmsg(report->db));
}

kprof_status kprof_store_no_memory(const kprof_report *report)
{
    return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", report->path);
}

kprof_status kprof_store_damaged(const kprof_report *report, const char *table)
{
    return kprof_fail(KPROF_BAD_REPORT, "%s: damaged: table \"%s\" has rows that do not fit", report->path, table);
}

kprof_status kprof_store_exec(kprof_report *report, const char *sql)
{
    if (sqlite3_exec(report->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return kprof_store_fail(report, sql);
    return KPROF_OK;
}

kprof_status kprof_store_prepare(kprof_report *report, kprof_statement id, const char *sql, sqlite3_stmt **out)
{
    sqlite3_stmt **statement = &report->statements[id];
    if (*statement) {
        sqlite3_reset(*statement);
        sqlite3_clear_bindings(*statement);
    } else if (!sql) {
        return kprof_store_no_memory(report);
    } else if (sqlite3_prepare_v3(report->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK) {
        return kprof_store_fail(report, sql);
    }
    *out = *statement;
    return KPROF_OK;
}

kprof_status kprof_store_statement(kprof_report *report, kprof_statement id, sqlite3_stmt **out)
{
    return kprof_store_prepare(report, id, statement_texts[id], out);
}

/* Text is bound without a copy: the caller's strings outlive the step. */
static int bind_all(sqlite3_stmt *statement, const char *types, va_list args)
{
    int rc = SQLITE_OK;
    for (int i = 0; types[i] && rc == SQLITE_OK; i++) {
        if (types[i] == 's') {
            const char *text = va_arg(args, const char *);
            rc = sqlite3_bind_text(statement, i + 1, text ? text : "", -1, SQLITE_STATIC);
        } else if (types[i] == 'i') {
            rc = sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
        } else {
            rc = sqlite3_bind_double(statement, i + 1, va_arg(args, double));
        }
    }
    return rc;
}

kprof_status kprof_store_release(kprof_report *report, bool keep)
{
    if (keep)
        return kprof_store_write(report, KPROF_SQL_RELEASE, "");
    /* After a full disk SQLite may have rolled everything back itself; then there is no savepoint left to undo. */
    if (!sqlite3_get_autocommit(report->db))
        sqlite3_exec(report->db, "ROLLBACK TO record; RELEASE record", NULL, NULL, NULL);
    return KPROF_OK;
}

kprof_status kprof_store_find(kprof_report *report, kprof_statement id, int64_t *found, const char *types, ...)
{
    sqlite3_stmt *statement;
    *found = 0;
    kprof_status status = kprof_store_statement(report, id, &statement);
    if (status != KPROF_OK)
        return status;
    va_list args;
    va_start(args, types);
    int rc = bind_all(statement, types, args);
    va_end(args);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *found = sqlite3_column_int64(statement, 0);
    else if (rc != SQLITE_DONE)
        status = kprof_store_fail(report, statement_texts[id]);
    sqlite3_reset(statement);
    return status;
}

kprof_status kprof_store_query(kprof_report *report, const char *sql, kprof_store_row *row, void *user)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(report->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return kprof_store_fail(report, sql);
    kprof_status status = KPROF_OK;
    int rc = SQLITE_ROW;
    while (status == KPROF_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        status = row(user, statement);
    if (status == KPROF_OK && rc != SQLITE_DONE)
        status = kprof_store_fail(report, "reading rows");
    sqlite3_finalize(statement);
    return status;
}

kprof_status kprof_store_metric(kprof_report *report, const kprof_metric_row *metric, int64_t *id)
{
    kprof_status status = kprof_store_find(report, KPROF_SQL_FIND_METRIC, id, "s", metric->name);
    if (status != KPROF_OK)
        return status;
    if (*id)
        return kprof_store_write(report, KPROF_SQL_DESCRIBE_METRIC, "iss", *id, metric->unit, metric->description);
    *id = -1;
    return kprof_rows_insert(report, KPROF_ROWS_METRIC, metric, id);
}

static void report_free(kprof_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < KPROF_STATEMENT_COUNT; i++)
        sqlite3_finalize(report->statements[i]);
    kprof_derived_free(report->derived);
    sqlite3_close(report->db);
    free(report->path);
    free(report->draft);
    free(report);
}

static kprof_status report_new(const char *path, bool writable, kprof_report **out)
{
    kprof_report *report = calloc(1, sizeof *report);
    char *plain = NULL; /* a path that SQLite cannot take for one of its special names (":memory:", "", "file:...") */
    if (asprintf(&plain, "%s%s", path[0] == '/' ? "" : "./", path) < 0)
        plain = NULL;
    if (report)
        report->path = strdup(path);
    if (!report || !report->path || !plain) {
        free(plain);
        report_free(report);
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", path);
    }
    report->writable = writable;
    report->version = KPROF_SCHEMA_VERSION;
    int flags = writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    int rc = sqlite3_open_v2(plain, &report->db, flags, NULL);
    free(plain);
    if (rc != SQLITE_OK) {
        kprof_status status = kprof_store_fail(report, "opening the file");
        report_free(report);
        return status;
    }
    sqlite3_busy_timeout(report->db, 5000);
    sqlite3_limit(report->db, SQLITE_LIMIT_LENGTH, MAX_FIELD_BYTES);
    *out = report;
    return KPROF_OK;
}

/* The names of the sets as a JSON array; they come from the catalog or the command line. */
static char *sets_to_json(const char *const *sets)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; sets && sets[i]; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(sets[i]));
    char *json = cJSON_PrintUnformatted(array);
    cJSON_Delete(array);
    return json;
}

static kprof_status store_run(kprof_report *report, const kprof_run_info *run)
{
    char *sets = sets_to_json(run->sets);
    if (!sets)
        return kprof_store_no_memory(report);
    kprof_status status = kprof_store_write(report, KPROF_SQL_ADD_RUN, "ssssi", run->command_line,
                                            run->working_directory, run->kprof_version, sets, run->start_unix_ns);
    free(sets);
    return status;
}

/* The launch__ metrics come first, so that every report has them under the same ids. */
static kprof_status store_launch_metrics(kprof_report *report)
{
    for (const kprof_launch_metric *metric = kprof_launch_metrics; metric->name; metric++) {
        kprof_metric_row row = {metric->name, metric->unit, metric->description, "launch"};
        int64_t id;
        kprof_status status = kprof_store_metric(report, &row, &id);
        if (status != KPROF_OK)
            return status;
    }
    return KPROF_OK;
}

static kprof_status fill_new(kprof_report *report, const kprof_run_info *run)
{
    char identity[96];
    snprintf(identity, sizeof identity, "PRAGMA application_id=%d; PRAGMA user_version=%d", KPROF_APPLICATION_ID,
             KPROF_SCHEMA_VERSION);
    kprof_status status = kprof_store_exec(report, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    if (status == KPROF_OK)
        status = kprof_report_begin(report);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, identity);
    if (status == KPROF_OK)
        status = kprof_schema_create(report);
    if (status == KPROF_OK)
        status = store_run(report, run);
    if (status == KPROF_OK)
        status = store_launch_metrics(report);
    return status == KPROF_OK ? kprof_report_commit(report) : status;
}

kprof_status kprof_report_create(const char *path, kprof_create_mode mode, const kprof_run_info *run,
                                 kprof_report **out)
{
    *out = NULL;
    char *draft = NULL;
    kprof_report *report;
    kprof_status status = kprof_report_file_make(path, mode, &draft);
    if (status != KPROF_OK)
        return status;
    status = report_new(draft ? draft : path, true, &report);
    if (status != KPROF_OK) {
        kprof_report_file_remove(draft ? draft : path);
        free(draft);
        return status;
    }
    if (draft) {
        report->draft = draft;
        free(report->path);
        report->path = strdup(path);
    }
    status = report->path ? fill_new(report, run) : kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", path);
    if (status != KPROF_OK) {
        kprof_report_discard(report);
        return status;
    }
    *out = report;
    return KPROF_OK;
}

/* Check stat and the first bytes, and explain a failure better than SQLite does. */
static kprof_status check_file(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: cannot open the report: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return kprof_fail(KPROF_BAD_REPORT, "%s: is a directory, not a report", path);
    if (!S_ISREG(info.st_mode))
        return kprof_fail(KPROF_BAD_REPORT, "%s: is not a regular file", path);
    if (info.st_size == 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: is empty, not a report", path);
    char magic[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: cannot open the report: %s", path, strerror(errno));
    ssize_t got = read(fd, magic, sizeof magic);
    close(fd);
    if (got != sizeof magic || memcmp(magic, "SQLite format 3", sizeof magic) != 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: is not a kprof report", path);
    return KPROF_OK;
}

static kprof_status take_integer(void *user, sqlite3_stmt *row)
{
    *(int64_t *)user = sqlite3_column_int64(row, 0);
    return KPROF_OK;
}

static kprof_status read_integer(kprof_report *report, const char *sql, int64_t *out)
{
    *out = 0;
    return kprof_store_query(report, sql, take_integer, out);
}

static kprof_status check_identity(kprof_report *report)
{
    int64_t application, version;
    kprof_status status = read_integer(report, "PRAGMA application_id", &application);
    if (status == KPROF_OK)
        status = read_integer(report, "PRAGMA user_version", &version);
    if (status != KPROF_OK)
        return status;
    if (application != KPROF_APPLICATION_ID)
        return kprof_fail(KPROF_BAD_REPORT, "%s: is an SQLite database, but not a kprof report", report->path);
    if (version > KPROF_SCHEMA_VERSION)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: has report version %lld, made by a newer kprof; this one reads up to %d: upgrade kprof",
                          report->path, (long long)version, KPROF_SCHEMA_VERSION);
    if (version < 1)
        return kprof_fail(KPROF_BAD_REPORT, "%s: damaged: report version %lld", report->path, (long long)version);
    report->version = (int)version;
    return KPROF_OK;
}

/* A cut inside the last page would go unnoticed: SQLite counts whole pages. With a log of a killed kprof beside it the
 * file may end anywhere; the log has the rest. */
static kprof_status check_size(kprof_report *report)
{
    struct stat info, log;
    char *log_name = NULL;
    int64_t page_size;
    kprof_status status = read_integer(report, "PRAGMA page_size", &page_size);
    if (status != KPROF_OK)
        return status;
    if (asprintf(&log_name, "%s-wal", report->path) < 0)
        return kprof_store_no_memory(report);
    bool has_log = stat(log_name, &log) == 0 && log.st_size > 0;
    free(log_name);
    if (has_log || stat(report->path, &info) != 0)
        return KPROF_OK;
    if (info.st_size % page_size != 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: the file is cut short", report->path);
    return KPROF_OK;
}

/* The file may be anyone's: nothing in its schema is to run code, and no cell is trusted. */
static kprof_status harden(kprof_report *report)
{
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return kprof_store_exec(report, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA query_only=ON");
}

kprof_status kprof_report_open(const char *path, kprof_report **out)
{
    *out = NULL;
    kprof_report *report;
    kprof_status status = check_file(path);
    if (status == KPROF_OK)
        status = report_new(path, false, &report);
    if (status != KPROF_OK)
        return status;
    status = harden(report);
    if (status == KPROF_OK)
        status = check_identity(report);
    if (status == KPROF_OK)
        status = check_size(report);
    if (status == KPROF_OK)
        status = kprof_schema_check(report);
    if (status != KPROF_OK) {
        report_free(report);
        return status;
    }
    *out = report;
    return KPROF_OK;
}

kprof_status kprof_report_begin(kprof_report *report)
{
    if (!sqlite3_get_autocommit(report->db))
        return KPROF_OK;
    return kprof_store_write(report, KPROF_SQL_BEGIN, "");
}

kprof_status kprof_report_commit(kprof_report *report)
{
    if (sqlite3_get_autocommit(report->db)) /* a full disk has rolled it back, and that was reported */
        return KPROF_OK;
    return kprof_store_write(report, KPROF_SQL_COMMIT, "");
}

/* Bring everything from the log into the file and leave the log mode, which makes one plain file. *copied is a new
 * name, owned by the caller, when somebody who reads the report holds it as it is: then the plain file is a copy. */
static kprof_status finish(kprof_report *report, char **copied)
{
    kprof_status status = kprof_report_commit(report);
    for (size_t i = 0; i < KPROF_STATEMENT_COUNT; i++) {
        sqlite3_finalize(report->statements[i]);
        report->statements[i] = NULL;
    }
    if (status != KPROF_OK)
        return status;
    sqlite3_busy_timeout(report->db, READER_PATIENCE_MS);
    int rc = sqlite3_exec(report->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return kprof_report_file_copy(report, copied);
    return rc == SQLITE_OK ? KPROF_OK : kprof_store_fail(report, "completing the file");
}

kprof_status kprof_report_close(kprof_report *report)
{
    if (!report)
        return KPROF_OK;
    char *copied = NULL;
    kprof_status status = report->writable ? finish(report, &copied) : KPROF_OK;
    if (sqlite3_close(report->db) == SQLITE_OK)
        report->db = NULL;
    if (status == KPROF_OK && (copied || report->draft))
        status = kprof_report_file_replace(copied ? copied : report->draft, report->path);
    if (copied && report->draft)
        kprof_report_file_remove(report->draft);
    else if (status != KPROF_OK && report->draft)
        kprof_log(KPROF_LOG_WARNING, "what was stored is in %s", report->draft);
    free(copied);
    report_free(report);
    return status;
}

void kprof_report_discard(kprof_report *report)
{
    if (!report)
        return;
    char *path = report->path, *draft = report->draft;
    report->path = report->draft = NULL;
    report_free(report);
    if (draft || path)
        kprof_report_file_remove(draft ? draft : path);
    free(path);
    free(draft);
}

kprof_status kprof_report_set_exit(kprof_report *report, int64_t pid, int wait_status)
{
    return kprof_store_write(report, KPROF_SQL_EXIT_PROCESS, "ii", pid, (int64_t)wait_status);
}
