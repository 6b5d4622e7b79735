/* Creates, opens and closes the file of a report. A report being written uses a write-ahead log, so that whatever was
 * committed survives a killed kprof; closing turns it into one plain file. */
#include "core/files.h"
#include "report/store/code_sums.h"
#include "report/store/limits.h"
#include "report/store/report_file.h"
#include "report/store/rows.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* SQLite refuses longer texts and blobs, so a hostile file cannot make us allocate more for one. */
#define MAX_FIELD_BYTES (16 * 1024 * 1024)
/* How long to wait at the end for a reader of the report to finish. After that, a copy replaces it. */
#define READER_PATIENCE_MS 500

static kprof_report *the_draft; /* the latest report that is being written */
static const char *the_new;     /* a file that is to become one; NULL: none */

static void report_free(kprof_report *report)
{
    if (!report)
        return;
    if (the_draft == report)
        the_draft = NULL;
    for (size_t i = 0; i < KPROF_STATEMENT_COUNT; i++)
        sqlite3_finalize(report->statements[i]);
    kprof_pool_free(&report->pool);
    sqlite3_close(report->db);
    if (report->lock >= 0)
        close(report->lock);
    kprof_names_free(&report->code_rows);
    kprof_code_sums_drop(report);
    KPROF_FREE(report->path, report->draft, report);
}

/* How a report is opened. */
typedef enum access_kind {
    ACCESS_WRITE,
    ACCESS_READ,
    ACCESS_READ_ALONE /* without the log that the file's header promises: SQLite would try to create one */
} access_kind;

/* The path in a form that SQLite does not mistake for one of its special names (":memory:", "", "file:..."). */
static char *name_for_sqlite(const char *path, access_kind kind)
{
    kprof_strbuf name = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&name, "%s%s", kind == ACCESS_READ_ALONE ? "file:" : "", path[0] == '/' ? "" : "./");
    for (; *path; path++) {
        bool is_special = kind == ACCESS_READ_ALONE && strchr("%?#", *path);
        kprof_strbuf_printf(&name, is_special ? "%%%02X" : "%c", (unsigned char)*path);
    }
    kprof_strbuf_puts(&name, kind == ACCESS_READ_ALONE ? "?immutable=1" : "");
    return kprof_strbuf_take(&name);
}

static kprof_status report_new(const char *path, access_kind kind, kprof_report **out)
{
    kprof_report *report = kprof_calloc(1, sizeof *report);
    KPROF_AUTO_FREE char *name = name_for_sqlite(path, kind);
    report->lock = -1;
    report->path = kprof_strdup(path);
    report->writable = kind == ACCESS_WRITE;
    report->is_alone = kind == ACCESS_READ_ALONE;
    report->version = KPROF_SCHEMA_VERSION;
    const int flags = SQLITE_OPEN_NOMUTEX | (report->writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
    int rc = sqlite3_open_v2(name, &report->db, flags | (report->is_alone ? SQLITE_OPEN_URI : 0), NULL);
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

/* Without OFF, SQLite would change the first page through a journal. If kprof were killed then, nobody could open the
 * file for reading alone. */
static kprof_status begin_log(kprof_report *report)
{
    return kprof_store_exec(report, "PRAGMA journal_mode=OFF; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
}

static kprof_status fill_new(kprof_report *report, const kprof_run_info *run)
{
    char identity[96];
    snprintf(identity, sizeof identity, "PRAGMA application_id=%d; PRAGMA user_version=%d", KPROF_APPLICATION_ID,
             KPROF_SCHEMA_VERSION);
    kprof_status status = begin_log(report);
    KPROF_THEN(status, kprof_report_begin(report));
    if (status != KPROF_OK)
        return status;
    kprof_store_exec(report, identity);
    kprof_schema_create(report);
    cJSON *array = cJSON_CreateArray(); /* JSON, since the names may come from the command line */
    for (size_t i = 0; run->sets && run->sets[i]; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(run->sets[i]));
    KPROF_AUTO_FREE char *sets = cJSON_PrintUnformatted(array);
    cJSON_Delete(array);
    kprof_store_write(report, KPROF_SQL_ADD_RUN, "ssssi", run->command_line, run->working_directory, run->kprof_version,
                      sets, run->start_unix_ns);
    /* The launch__ metrics come first, so that every report has them under the same ids. */
    for (const kprof_launch_metric *metric = kprof_launch_metrics; metric->name; metric++)
        if (!metric->on_request)
            kprof_store_metric(report,
                               &(kprof_model_metric){metric->name, metric->unit, metric->description, "launch"});
    return report->status == KPROF_OK ? kprof_report_commit(report) : report->status;
}

/* Is there room in the name for the endings that SQLite and kprof append to it, for the log and for a copy? */
static kprof_status check_name(const char *path)
{
    static const char longest[] = ".new-XXXXXX-journal";
    const sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    if (!files) /* SQLite could not begin */
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", path);
    const size_t most_of_path = (size_t)files->mxPathname - sizeof longest;
    const char *slash = strrchr(path, '/');
    const size_t most = NAME_MAX + 1 - sizeof longest;
    if (strlen(slash ? slash + 1 : path) > most)
        return kprof_fail(KPROF_OUTPUT, "%s: the name has more than %zu characters: kprof keeps longer names beside it",
                          path, most);
    char *folder = slash ? kprof_strndup(path, (size_t)(slash - path) + 1) : kprof_strdup("."), whole[PATH_MAX];
    const bool has_whole = realpath(folder, whole) != NULL;
    free(folder);
    if (has_whole && strlen(whole) + strlen(slash ? slash : path) > most_of_path)
        return kprof_fail(KPROF_OUTPUT,
                          "%s: the whole path has more than %zu characters, the most that SQLite takes: write it to "
                          "another folder",
                          path, most_of_path);
    return KPROF_OK;
}

kprof_status kprof_report_check_place(const char *path, bool may_replace)
{
    struct stat info;
    kprof_status status = check_name(path);
    if (status != KPROF_OK)
        return status;
    const bool is_there = lstat(path, &info) == 0;
    if (is_there && !may_replace)
        return kprof_fail(KPROF_OUTPUT, "%s: exists already; use --force-overwrite or another name", path);
    if (is_there && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return kprof_fail(KPROF_OUTPUT, "%s: cannot be overwritten: not a regular file", path);
    const char *slash = strrchr(path, '/');
    KPROF_AUTO_FREE char *folder = slash ? kprof_strndup(path, (size_t)(slash - path) + 1) : kprof_strdup(".");
    return access(folder, W_OK | X_OK) == 0 ? KPROF_OK : kprof_fail_to_make(path, "%s: cannot create the report", path);
}

/* Open the file of a new report for writing; a seed is copied into it first, unless that is -1. */
static kprof_status open_new(const char *path, kprof_create_mode mode, int seed, kprof_report **out)
{
    char *draft = NULL;
    int lock = -1;
    kprof_report *report = NULL;
    kprof_status status = check_name(path);
    KPROF_THEN(status, kprof_report_file_make(path, mode, &draft, &lock));
    if (status != KPROF_OK)
        return status;
    const char *place = the_new = draft ? draft : path;
    if (seed >= 0)
        status = kprof_report_file_fill(place, seed);
    KPROF_THEN(status, report_new(place, ACCESS_WRITE, &report));
    if (status == KPROF_OK) {
        report->draft = draft;
        report->lock = lock;
        free(report->path);
        report->path = kprof_strdup(path);
        *out = the_draft = report;
        the_new = NULL;
        return KPROF_OK;
    }
    the_new = NULL;
    kprof_report_file_remove(place);
    if (lock >= 0)
        close(lock);
    free(draft);
    return status;
}

/* Hand a new report to the caller, or discard it after a failure. */
static kprof_status hand_out(kprof_status status, kprof_report *report, kprof_report **out)
{
    if (status != KPROF_OK)
        kprof_report_discard(report);
    *out = status == KPROF_OK ? report : NULL;
    return status;
}

kprof_status kprof_report_create(const char *path, kprof_create_mode mode, const kprof_run_info *run,
                                 kprof_report **out)
{
    kprof_report *report = NULL;
    kprof_status status = open_new(path, mode, -1, &report);
    KPROF_THEN(status, fill_new(report, run));
    return hand_out(status, report, out);
}

/* SQLite opens the files beside a report on its own; if one were a pipe, it would wait forever for a writer. */
static kprof_status check_side_files(const kprof_report *report)
{
    struct stat info;
    const char *path = sqlite3_db_filename(report->db, "main"); /* without links, as SQLite opens it */
    for (size_t i = 0; i < KPROF_SIDE_FILE_COUNT; i++) {
        KPROF_AUTO_FREE char *name = kprof_strprintf("%s%s", path, kprof_side_files[i]);
        if (stat(name, &info) == 0 && !S_ISREG(info.st_mode))
            return kprof_fail(KPROF_BAD_REPORT,
                              "%s: %s lies beside it, where SQLite keeps a log, but is not a regular file: remove it",
                              report->path, name);
    }
    return KPROF_OK;
}

const char *kprof_report_place(const kprof_report *report)
{
    return report->draft ? report->draft : report->path;
}

/* `ending`: that of a file beside the report, "-wal" or "-journal". */
static bool has_beside(const char *path, const char *ending)
{
    struct stat info;
    KPROF_AUTO_FREE char *name = kprof_strprintf("%s%s", path, ending);
    return stat(name, &info) == 0 && info.st_size > 0;
}

bool kprof_report_is_unfinished(const char *path)
{
    char header[20] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, header, sizeof header) : 0;
    if (fd >= 0)
        close(fd);
    /* Byte 18 of an SQLite file is 2 while it has a log beside it, or nothing is there yet at all. A journal is beside
     * it while it becomes a plain file. */
    return fd >= 0 && (got == 0 || (got == sizeof header && header[18] == 2) || has_beside(path, "-journal"));
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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: cannot open the report: %s", path, strerror(errno));
    ssize_t got = read(fd, magic, sizeof magic);
    close(fd);
    if (got != sizeof magic || memcmp(magic, "SQLite format 3", sizeof magic) != 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: is not a kprof report%s", path,
                          strstr(path, ".ncu-rep")    ? "; ncu --import reads those of ncu"
                          : strstr(path, ".nsys-rep") ? "; nsys stats reads those of nsys"
                                                      : "");
    return KPROF_OK;
}

static kprof_status check_identity(kprof_report *report)
{
    const int64_t application = kprof_store_integer(report, "PRAGMA application_id");
    const int64_t version = kprof_store_integer(report, "PRAGMA user_version");
    if (report->status != KPROF_OK)
        return report->status;
    if (application != KPROF_APPLICATION_ID)
        return kprof_fail(KPROF_BAD_REPORT, "%s: is an SQLite database, but not a kprof report", report->path);
    if (version > KPROF_SCHEMA_VERSION)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: has report version %ld, made by a newer kprof; this one reads up to %d: upgrade kprof",
                          report->path, version, KPROF_SCHEMA_VERSION);
    if (version < 1)
        return kprof_fail(KPROF_BAD_REPORT, "%s: the report is damaged: its version is %ld" KPROF_DAMAGED_ADVICE,
                          report->path, version);
    report->version = (int)version;
    return KPROF_OK;
}

/* SQLite counts whole pages, so it would not notice a file that ends inside its last page. When a killed kprof left a
 * log beside the file, the file may end anywhere: the log has the rest. */
static kprof_status check_size(kprof_report *report)
{
    struct stat info;
    const int64_t page_size = kprof_store_integer(report, "PRAGMA page_size");
    kprof_store_size(report);
    if (report->status != KPROF_OK || has_beside(report->path, "-wal") || stat(report->path, &info) != 0)
        return report->status;
    if (info.st_size % page_size != 0)
        return kprof_fail(KPROF_BAD_REPORT, "%s: the file is cut short", report->path);
    return KPROF_OK;
}

static int stop(void *unused)
{
    (void)unused;
    return 1;
}

/* Anyone may have made the file: run no code from its schema, and trust no cell. */
static kprof_status harden(kprof_report *report)
{
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(report->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (!report->writable)
        kprof_store_exec(report, "PRAGMA query_only=ON");
    return kprof_store_exec(report, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0");
}

static kprof_status check_tables(kprof_report *report)
{
    kprof_status status = check_identity(report);
    KPROF_THEN(status, check_size(report));
    return status == KPROF_OK ? kprof_schema_check(report) : status;
}

/* A killed run leaves some or all of its data in the log beside the report. */
static kprof_status check_without_log(kprof_report *report)
{
    const int64_t tables = kprof_store_integer(report, "SELECT count(*) FROM sqlite_schema");
    if (tables > 0 && kprof_store_integer(report, "PRAGMA application_id") != KPROF_APPLICATION_ID &&
        report->status == KPROF_OK)
        return check_identity(report); /* says what it is */
    if (tables > 0 && check_tables(report) == KPROF_OK) {
        kprof_log(KPROF_LOG_WARNING,
                  "%s: its run was cut short, and its log %s-wal is not here: launches may be missing", report->path,
                  report->path);
        return KPROF_OK;
    }
    return kprof_fail(KPROF_BAD_REPORT,
                      "%s: its run was cut short, and what it had stored is in the log %s-wal, which is not here: put "
                      "the two files into one folder, or see kprof recover",
                      report->path, report->path);
}

kprof_status kprof_report_open(const char *path, kprof_report **out)
{
    *out = NULL;
    kprof_report *report;
    kprof_status status = check_file(path);
    bool is_alone = status == KPROF_OK && kprof_report_is_unfinished(path) && !has_beside(path, "-wal") &&
                    !has_beside(path, "-journal");
    KPROF_THEN(status, report_new(path, is_alone ? ACCESS_READ_ALONE : ACCESS_READ, &report));
    if (status != KPROF_OK)
        return status;
    sqlite3_hard_heap_limit64(KPROF_SQLITE_HEAP_BYTES); /* of the process; writing needs far less */
    status = check_side_files(report);
    KPROF_THEN(status, harden(report));
    if (status == KPROF_OK) {
        /* SQLite first reads the list of tables. In a damaged file the tree of its pages may have a loop. */
        sqlite3_progress_handler(report->db, KPROF_SCHEMA_STEPS, stop, NULL);
        status = kprof_store_exec(report, "SELECT 1 FROM sqlite_schema LIMIT 1");
        sqlite3_progress_handler(report->db, 0, NULL, NULL);
    }
    KPROF_THEN(status, is_alone ? check_without_log(report) : check_tables(report));
    if (status != KPROF_OK) {
        report_free(report);
        return status;
    }
    *out = report;
    return KPROF_OK;
}

/* Check a file before writing to it: this version of kprof made it, and it has no measurements. */
static kprof_status check_seed(kprof_report *report)
{
    kprof_status status = harden(report);
    KPROF_THEN(status, check_identity(report));
    if (status == KPROF_OK && report->version != KPROF_SCHEMA_VERSION)
        status = kprof_fail(KPROF_UNSUPPORTED,
                            "%s: the run is that of a kprof that makes report version %d, and this one makes version "
                            "%d; use the kprof that made the run",
                            report->path, report->version, KPROF_SCHEMA_VERSION);
    KPROF_THEN(status, kprof_schema_check(report));
    if (status == KPROF_OK && kprof_store_integer(report, "SELECT count(*) FROM process") > 0)
        kprof_store_damaged(report, "process");
    return KPROF_THEN(status, report->status);
}

kprof_status kprof_report_recreate(const char *path, kprof_create_mode mode, int seed, kprof_report **out)
{
    kprof_report *report = NULL;
    kprof_status status = open_new(path, mode, seed, &report);
    KPROF_THEN(status, check_seed(report));
    KPROF_THEN(status, begin_log(report));
    KPROF_THEN(status, kprof_report_load_plans(report));
    return hand_out(status, report, out);
}

/* 0: not known. */
static int64_t start_of_run(const char *path)
{
    kprof_report *report = NULL;
    if (kprof_report_open(path, &report) != KPROF_OK)
        return 0;
    const int64_t start_unix_ns = kprof_store_integer(report, "SELECT start_unix_ns FROM run");
    (void)!kprof_report_close(report);
    return start_unix_ns;
}

bool kprof_report_is_readable(const char *path)
{
    const kprof_log_receiver before = kprof_log_set_sink(kprof_log_discard, NULL);
    kprof_report *report = NULL;
    const bool is_readable = kprof_report_open(path, &report) == KPROF_OK;
    (void)!kprof_report_close(report);
    kprof_log_set_sink(before.sink, before.user);
    return is_readable;
}

bool kprof_report_is_same_run(const char *path, const char *other)
{
    int64_t start_unix_ns = start_of_run(path);
    return start_unix_ns != 0 && start_unix_ns == start_of_run(other);
}

kprof_status kprof_report_begin(kprof_report *report)
{
    if (sqlite3_get_autocommit(report->db))
        kprof_store_write(report, KPROF_SQL_BEGIN, "");
    kprof_code_sums_begin(report);
    return kprof_store_take_status(report);
}

kprof_status kprof_report_commit(kprof_report *report)
{
    kprof_status status = KPROF_OK;
    if (!sqlite3_get_autocommit(report->db)) { /* else a full disk has rolled it back, and that was reported */
        kprof_code_sums_store(report);
        status = kprof_store_take_status(report);
    }
    kprof_code_sums_drop(report);
    if (!sqlite3_get_autocommit(report->db))
        kprof_store_write(report, KPROF_SQL_COMMIT, "");
    const kprof_status committed = kprof_store_take_status(report);
    return status == KPROF_OK ? committed : status;
}

/* Move everything from the log into the file and leave log mode, so that one plain file remains. If a reader still
 * holds the report, the plain file is a copy, and *copied its name, which the caller owns. */
static kprof_status finish(kprof_report *report, char **copied)
{
    for (size_t i = 0; i < KPROF_STATEMENT_COUNT; i++) {
        sqlite3_finalize(report->statements[i]);
        report->statements[i] = NULL;
    }
    sqlite3_busy_timeout(report->db, READER_PATIENCE_MS);
    int rc = sqlite3_exec(report->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return kprof_report_file_copy(report, copied);
    return rc == SQLITE_OK ? KPROF_OK : kprof_store_fail(report, "completing the file");
}

/* Run SQL whose result is SQL, then run that; *out is the number that it gives. Returns SQLite's code. */
static int read_generated(sqlite3 *db, const char *generator, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    char *sql = NULL;
    int rc = sqlite3_prepare_v2(db, generator, -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        rc = (sql = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0))) ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_finalize(statement);
    statement = NULL;
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return rc;
}

/* Open the file anew and check that it is whole: the writer's cache does not show what other programs wrote to it or to
 * its log. Counting the rows visits each page of a table; PRAGMA quick_check also visits each row and takes ten times
 * as long. */
static kprof_status check_finished(const char *path, int64_t launches)
{
    static const char counts[] = "SELECT 'SELECT (SELECT count(*) FROM launch) + 0 * (' || "
                                 "group_concat('(SELECT count(*) FROM \"' || name || '\" NOT INDEXED)', '+') || ')' "
                                 "FROM sqlite_schema WHERE type='table'";
    sqlite3 *db = NULL;
    int64_t found = -1;
    KPROF_AUTO_FREE char *name = name_for_sqlite(path, ACCESS_READ_ALONE);
    int rc = sqlite3_open_v2(name, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    if (rc == SQLITE_OK)
        rc = read_generated(db, counts, &found);
    sqlite3_close(db);
    if ((rc & 0xff) == SQLITE_NOMEM)
        return kprof_fail(KPROF_NO_MEMORY, "%s: checking the report: out of memory", path);
    if (rc == SQLITE_ROW && found == launches)
        return KPROF_OK;
    return kprof_fail(KPROF_OUTPUT,
                      "%s: the report is damaged: another program wrote to it, or to its log %s-wal, while kprof did",
                      path, path);
}

/* Finish a report that was written. */
static kprof_status complete(kprof_report *report, char **copied)
{
    report->status = KPROF_OK; /* a page may have failed to show it */
    kprof_status status = kprof_report_commit(report);
    const int64_t launches = kprof_store_integer(report, "SELECT count(*) FROM launch");
    KPROF_THEN(status, report->status);
    KPROF_THEN(status, finish(report, copied));
    if (status == KPROF_OK && !report->broken)
        status = check_finished(*copied ? *copied : kprof_report_place(report), launches);
    return status;
}

kprof_status kprof_report_close(kprof_report *report)
{
    if (!report)
        return KPROF_OK;
    KPROF_AUTO_FREE char *copied = NULL;
    kprof_status status = report->writable ? complete(report, &copied) : KPROF_OK;
    if (sqlite3_close(report->db) == SQLITE_OK)
        report->db = NULL;
    if (status != KPROF_OK && report->only_if_whole)
        kprof_report_file_remove(kprof_report_place(report));
    else if ((status != KPROF_OK || report->broken) && access(kprof_report_place(report), F_OK) == 0)
        kprof_log(KPROF_LOG_WARNING, "what was stored before is in %s", kprof_report_place(report));
    if (status == KPROF_OK && report->broken && report->draft) { /* only a complete report replaces another */
        status = KPROF_OUTPUT;
        if (copied)
            kprof_report_file_remove(copied);
    }
    if (status == KPROF_OK && (copied || report->draft))
        status = kprof_report_file_replace(copied ? copied : report->draft, report->path, report->lock);
    if (status == KPROF_OK && copied && report->draft)
        kprof_report_file_remove(report->draft);
    report_free(report);
    return status;
}

void kprof_report_abandon(void)
{
    const char *place = the_new ? the_new : the_draft ? kprof_report_place(the_draft) : NULL;
    if (place)
        kprof_report_file_remove(place);
}

void kprof_report_keep_only_if_whole(kprof_report *report)
{
    report->only_if_whole = true;
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
    KPROF_FREE(path, draft);
}

void kprof_report_set_whole(kprof_report *report, int64_t pid)
{
    kprof_store_write(report, KPROF_SQL_WHOLE_PROCESS, "i", pid);
}

kprof_status kprof_report_set_exit(kprof_report *report, int64_t pid, int wait_status)
{
    kprof_store_write(report, KPROF_SQL_EXIT_PROCESS, "ii", pid, (int64_t)wait_status);
    return kprof_store_take_status(report);
}
