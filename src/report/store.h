/* The SQLite file under a report: schema, statements and the mapping of SQLite's errors. Only src/report uses it. */
#ifndef KPROF_REPORT_STORE_H
#define KPROF_REPORT_STORE_H

#include "report/report.h"

#include <sqlite3.h>

#define KPROF_APPLICATION_ID 0x6b707266 /* "kprf" */
#define KPROF_SCHEMA_VERSION 3          /* user_version */

/* Statements that write, prepared on first use. Columns in the order of the schema (schema.c). */
#define KPROF_STATEMENT_MAP(X)                                                                                         \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(SAVEPOINT, "SAVEPOINT record")                                                                                   \
    X(RELEASE, "RELEASE record")                                                                                       \
    X(ADD_RUN, "INSERT INTO run VALUES(1,?,?,?,?,?)")                                                                  \
    X(ADD_PROCESS, "INSERT INTO process VALUES(NULL,?,?,?,?,?,?,?,NULL,NULL,NULL,NULL,0)")                             \
    X(END_PROCESS, "UPDATE process SET launches=?2, matched=?3, profiled=?4, ended=1 WHERE id=?1")                     \
    X(EXIT_PROCESS, "UPDATE process SET wait_status=?2 WHERE id=(SELECT max(id) FROM process WHERE pid=?1)")           \
    X(FIND_DEVICE, "SELECT id FROM device WHERE uuid=?1 AND ordinal=?2 AND name=?3 AND chip=?4")                       \
    X(ADD_DEVICE, "INSERT INTO device VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                     \
    X(FIND_KERNEL,                                                                                                     \
      "SELECT id FROM kernel WHERE mangled=?1 AND registers_per_thread=?2 AND static_smem_bytes=?3 AND "               \
      "local_bytes_per_thread=?4 AND constant_bytes=?5 AND max_threads_per_block=?6 AND binary_version=?7 AND "        \
      "ptx_version=?8")                                                                                                \
    X(ADD_KERNEL, "INSERT INTO kernel VALUES(NULL,?1,?9,?10,?2,?3,?4,?5,?6,?7,?8)")                                    \
    X(FIND_METRIC, "SELECT id FROM metric WHERE name=?1")                                                              \
    X(ADD_METRIC, "INSERT INTO metric VALUES(NULL,?,?,?,?)")                                                           \
    X(DESCRIBE_METRIC, "UPDATE metric SET unit=?2, description=?3 WHERE id=?1 AND unit='' AND description=''")         \
    X(ADD_SECTION, "INSERT INTO section VALUES(NULL,?,?,?,?)")                                                         \
    X(ADD_LEFT_OUT, "INSERT INTO left_out VALUES(NULL,?,?)")                                                           \
    X(ADD_PASS, "INSERT INTO pass VALUES(?,?,?,?)")                                                                    \
    X(ADD_METRIC_PASS, "INSERT INTO schedule VALUES(?,?,?)")                                                           \
    X(ADD_PASSES_OF, "INSERT OR IGNORE INTO schedule SELECT ?1, ?2, pass FROM schedule WHERE chip=?1 AND "             \
                     "metric_id=(SELECT id FROM metric WHERE name=?3)")                                                \
    X(ADD_LAUNCH, "INSERT INTO launch VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")                \
    X(ADD_GRAPH_NODE, "INSERT INTO graph_node VALUES(?,?)")                                                            \
    X(ADD_VALUE, "INSERT INTO value VALUES(?,?,?)")                                                                    \
    X(SET_SEEN, "INSERT INTO seen VALUES(?,?,?) ON CONFLICT DO UPDATE SET launches=excluded.launches")                 \
    X(ADD_MESSAGE, "INSERT INTO message VALUES(NULL,?,?,?,?)")

typedef enum kprof_statement {
#define KPROF_STATEMENT_ENUM(name, sql) KPROF_SQL_##name,
    KPROF_STATEMENT_MAP(KPROF_STATEMENT_ENUM)
#undef KPROF_STATEMENT_ENUM
        KPROF_STATEMENT_COUNT
} kprof_statement;

struct kprof_derived; /* src/report/derived.h */

struct kprof_report {
    sqlite3 *db;
    char *path;
    char *draft; /* where the report is until it is complete; NULL: at `path` */
    bool writable;
    int version; /* of the schema */
    bool broken; /* writing has failed: row ids that an ingest remembers may have been rolled back */
    int64_t next_launch;
    sqlite3_stmt *statements[KPROF_STATEMENT_COUNT];
    struct kprof_derived *derived; /* by chip, of the plans added */
};

/* Log what SQLite says about the failed `operation` and give the status for it: OUTPUT for a report being written,
 * BAD_REPORT for one being read. */
kprof_status kprof_store_fail(kprof_report *report, const char *operation);

/* A prepared statement with its bindings cleared; owned by the report. */
kprof_status kprof_store_statement(kprof_report *report, kprof_statement id, sqlite3_stmt **out) KPROF_MUST_CHECK;
/* Bind by `types` (s: const char *, i: int64_t, d: double; NULL text is stored as "") and run a statement without rows.
 */
kprof_status kprof_store_write(kprof_report *report, kprof_statement id, const char *types, ...) KPROF_MUST_CHECK;
/* Bind likewise and take the first column of the first row; *found tells whether there was one. */
kprof_status kprof_store_find(kprof_report *report, kprof_statement id, int64_t *found, const char *types,
                              ...) KPROF_MUST_CHECK;

/* Run a query and call `row` for each row until it fails. */
typedef kprof_status kprof_store_row(void *user, sqlite3_stmt *row);
kprof_status kprof_store_query(kprof_report *report, const char *sql, kprof_store_row *row,
                               void *user) KPROF_MUST_CHECK;

/* End what the SAVEPOINT statement began: keep what was written since, or undo it. */
kprof_status kprof_store_release(kprof_report *report, bool keep) KPROF_MUST_CHECK;

/* Run one-off SQL. */
kprof_status kprof_store_exec(kprof_report *report, const char *sql) KPROF_MUST_CHECK;

/* Row id of a metric, added when new; a unit and description that were not known before are filled in. */
typedef struct kprof_metric_row {
    const char *name, *unit, *description, *kind; /* kind: "hardware", "launch" or "derived" */
} kprof_metric_row;
kprof_status kprof_store_metric(kprof_report *report, const kprof_metric_row *metric, int64_t *id) KPROF_MUST_CHECK;

/* Make the tables and views of a new report; check that an opened one has exactly the tables of its version. */
kprof_status kprof_schema_create(kprof_report *report) KPROF_MUST_CHECK;
kprof_status kprof_schema_check(kprof_report *report) KPROF_MUST_CHECK;

#endif
