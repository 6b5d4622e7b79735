/* The SQLite file under a report: schema, statements and the mapping of SQLite's errors. Only src/report uses it. */
#pragma once

#include "core/activities.h"
#include "core/names.h"
#include "core/pool.h"
#include "report/report.h"

#include <sqlite3.h>

#define KPROF_APPLICATION_ID 0x6b707266 /* "kprf" */

/* The first version that tells which process sees which GPUs. */
#define KPROF_PROCESS_DEVICES_SINCE 13

/* The section of the metrics that --metrics names; ncu's scripts know it by this name. */
#define KPROF_NAMED_SECTION_ID    "CommandLine"
#define KPROF_NAMED_SECTION_NAME  "Command line profiler metrics"
#define KPROF_NAMED_SECTION_ORDER 1000000

/* Statements that write, prepared on first use. Columns in the order of the schema (schema.c). */
#define KPROF_ADD_TO_VALUE "ON CONFLICT DO UPDATE SET value=value+excluded.value"
#define KPROF_STATEMENT_MAP(X)                                                                                         \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(SAVEPOINT, "SAVEPOINT record")                                                                                   \
    X(RELEASE, "RELEASE record")                                                                                       \
    X(ADD_RUN, "INSERT INTO run VALUES(1,?,?,?,?,?)")                                                                  \
    X(END_PROCESS, "UPDATE process SET launches=?2, matched=?3, profiled=?4, ended=1 WHERE id=?1")                     \
    X(WHOLE_PROCESS, "UPDATE process SET ended=1 WHERE id=(SELECT max(id) FROM process WHERE pid=?1)")                 \
    X(EXIT_PROCESS, "UPDATE process SET wait_status=?2 WHERE id=(SELECT max(id) FROM process WHERE pid=?1)")           \
    X(FIND_DEVICE, "SELECT id FROM device WHERE uuid=?1 AND ordinal=?2 AND name=?3 AND chip=?4")                       \
    X(ADD_PROCESS_DEVICE, "INSERT OR IGNORE INTO process_device VALUES(?,?)")                                          \
    X(FIND_METRIC, "SELECT id FROM metric WHERE name=?1")                                                              \
    X(DESCRIBE_METRIC, "UPDATE metric SET unit=?2, description=?3 WHERE id=?1 AND unit='' AND description=''")         \
    X(ADD_SECTION, "INSERT INTO section VALUES(NULL,?,?,?,?)")                                                         \
    X(ADD_PASS, "INSERT INTO pass VALUES(?,?,?,?)")                                                                    \
    X(ADD_METRIC_PASS, "INSERT INTO schedule VALUES(?,?,?)")                                                           \
    X(ADD_PASSES_OF, "INSERT OR IGNORE INTO schedule SELECT ?1, ?2, pass FROM schedule WHERE chip=?1 AND "             \
                     "metric_id=(SELECT id FROM metric WHERE name=?3)")                                                \
    X(ADD_GRAPH_NODE, "INSERT INTO graph_node VALUES(?,?)")                                                            \
    X(ADD_NVTX, "INSERT INTO nvtx VALUES(?,?)")                                                                        \
    X(FIND_STACK, "SELECT id FROM stack WHERE frames=?1 AND cut=?2 AND reason=?3")                                     \
    X(ADD_STACK, "INSERT INTO stack VALUES(NULL,?,?,?,?,?)")                                                           \
    X(ADD_LAUNCH_STACK, "INSERT INTO launch_stack VALUES(?,?,?)")                                                      \
    X(ADD_VALUE, "INSERT INTO value VALUES(?,?,?)")                                                                    \
    X(SET_VALUE, "INSERT INTO value VALUES(?,?,?) ON CONFLICT DO UPDATE SET value=excluded.value")                     \
    X(SET_SEEN, "INSERT INTO seen VALUES(?,?,?) ON CONFLICT DO UPDATE SET launches=excluded.launches")                 \
    X(ADD_CODE, "INSERT INTO code VALUES(NULL,?,?,?,?,NULL)")                                                          \
    X(END_CODE, "UPDATE code SET text_state=?2, line_state=?3, cubin=?4 WHERE id=?1")                                  \
    X(FIND_FUNCTION, "SELECT id FROM code_function WHERE code_id=?1 AND mangled=?2")                                   \
    X(FIND_UNREAD_FUNCTION, "SELECT id FROM code_function WHERE code_id=?1 AND mangled=?2 AND bytes=0")                \
    X(ADD_FUNCTION, "INSERT INTO code_function VALUES(NULL,?,?,?,0)")                                                  \
    X(SIZE_FUNCTION, "UPDATE code_function SET bytes=?2 WHERE id=?1")                                                  \
    X(ADD_CODE_FILE, "INSERT INTO code_file VALUES(NULL,?,nullif(?,-1),?,?)")                                          \
    X(ADD_INSTRUCTION, "INSERT INTO code_instruction VALUES(?,?,?,?,?,?)")                                             \
    X(ADD_LINE, "INSERT INTO code_line VALUES(?,?,?,?,?,?)")                                                           \
    X(ADD_PTX, "INSERT INTO code_ptx VALUES(?,?,?,?)")                                                                 \
    X(ADD_WAIT, "INSERT OR IGNORE INTO code_wait VALUES(?,?,?)")                                                       \
    X(FIND_LAUNCH,                                                                                                     \
      "SELECT id+1 FROM launch WHERE process_id=?1 AND position=?2 AND id BETWEEN ?3 AND ?4 ORDER BY id DESC LIMIT 1") \
    X(READ_PROFILED_LAUNCH,                                                                                            \
      "SELECT kernel_id, device_id, kernel_id || ' ' || device_id || ' ' || grid_x || ' ' || grid_y || ' ' || "        \
      "grid_z || ' ' || block_x || ' ' || block_y || ' ' || block_z || ' ' || cluster_x || ' ' || cluster_y || ' ' "   \
      "|| "                                                                                                            \
      "cluster_z || ' ' || dynamic_smem_bytes, reason FROM launch WHERE id=?1")                                        \
    X(ADD_PROFILE, "INSERT INTO code_profile VALUES(NULL,?,?,?,?,0,0,0,0,'')")                                         \
    X(ADD_LAUNCH_PROFILE, "INSERT OR IGNORE INTO launch_code_profile VALUES(?,?)")                                     \
    X(ADD_PROFILE_METRIC, "INSERT OR IGNORE INTO code_profile_metric VALUES(?,?)")                                     \
    X(FILL_PROFILE, "UPDATE code_profile SET counted=counted+?2, sampled=sampled+?3, period_cycles=CASE WHEN ?4=0 OR " \
                    "period_cycles=?4 "                                                                                \
                    "THEN period_cycles WHEN period_cycles=0 AND sampled=0 THEN ?4 ELSE 0 END, dropped=dropped+?5, "   \
                    "reason=CASE ?7 WHEN 0 THEN reason ELSE ?6 END WHERE id=?1")                                       \
    X(ADD_INSTRUCTION_VALUE, "INSERT INTO instruction_value VALUES(?,?,?,?,?) " KPROF_ADD_TO_VALUE)                    \
    X(ADD_INSTRUCTION_VALUES,                                                                                          \
      "INSERT INTO instruction_value VALUES(?1,?2,?3,?4,?5),(?1,?2,?6,?7,?8),(?1,?2,?9,?10,?11),(?1,?2,?12,?13,?14),"  \
      "(?1,?2,?15,?16,?17),(?1,?2,?18,?19,?20),(?1,?2,?21,?22,?23),(?1,?2,?24,?25,?26) " KPROF_ADD_TO_VALUE)           \
    X(ADD_TIMELINE_PASS, "INSERT OR IGNORE INTO timeline_pass VALUES(?,?,?,?,?)")                                      \
    X(ADD_SAMPLE, "INSERT OR IGNORE INTO timeline VALUES(?,?,?,?,?)")                                                  \
    X(ADD_VALUE_ONCE, "INSERT OR IGNORE INTO value VALUES(?,?,?)")                                                     \
    X(ADD_TRACE, "INSERT INTO trace VALUES(?,?,NULL,0,0,0,'')")                                                        \
    X(SET_TRACE, "UPDATE trace SET end_unix_ns=nullif(?2,-1), dropped=?3, unknown=?4, reason=?5 WHERE process_id=?1")  \
    X(COUNT_ACTIVITIES, "UPDATE trace SET activities=activities+?2 WHERE process_id=?1")                               \
    X(FIND_TRACE_NAME, "SELECT id FROM trace_name WHERE text=?1")                                                      \
    X(ADD_TRACE_NAME, "INSERT INTO trace_name VALUES(NULL,?,?,?)")                                                     \
    X(SET_CENSUS, "UPDATE census SET launches=?2, total_ns=?3, shortest_ns=?4, longest_ns=?5 WHERE id=?1")

typedef enum kprof_statement {
#define KPROF_STATEMENT_ENUM(name, sql) KPROF_SQL_##name,
    KPROF_STATEMENT_MAP(KPROF_STATEMENT_ENUM)
#undef KPROF_STATEMENT_ENUM
        KPROF_SQL_FIND_KERNEL,                       /* whose text rows.c makes */
    KPROF_SQL_ADD_ROW,                               /* and those behind it add a row to a table of kprof_rows */
    KPROF_SQL_ADD_ACTIVITY = KPROF_SQL_ADD_ROW + 16, /* likewise of kprof_activity_kind */
    KPROF_STATEMENT_COUNT = KPROF_SQL_ADD_ACTIVITY + KPROF_ACTIVITY_KINDS
} kprof_statement;

struct kprof_derived; /* src/report/store/derived.h */

/* A cubin that the run has written to its session folder. */
typedef struct kprof_kept_code {
    int64_t id; /* of its row */
    char *file; /* its name in the folder */
} kprof_kept_code;

struct kprof_report {
    kprof_pool pool; /* of what it knows as long as it is open */
    sqlite3 *db;
    kprof_status status; /* of the first failure to read or write it; nothing more is read or written then */
    char *path;
    char *draft; /* where the report is until it is complete; NULL: at `path` */
    int lock;    /* on the file at `path` while it is written there; -1: none */
    bool writable;
    bool is_sound;      /* its pages fit together, as kprof_store_check_pages has found */
    bool is_alone;      /* its header promises a log, but there is none */
    int version;        /* of the schema */
    bool keeps_text;    /* texts are read as they are, for a format that encodes them; else they are cleaned */
    int64_t size_bytes; /* of a report being read, when it was last asked */
    int tables_begun;   /* of kprof_trace_begin_table that have not ended */
    bool broken;        /* writing has failed: row ids that an ingest remembers may have been rolled back */
    bool only_if_whole; /* it is made of others, which are still there: nothing stays of what cannot be completed */
    int64_t next_launch;
    int64_t told_launch;    /* that kprof_store_find_launch found last */
    bool source_per_launch; /* each launch has a code profile of its own */
    kprof_kept_code *codes; /* [code_count], of the run */
    size_t code_count;
    kprof_names code_rows;        /* of the table code, by checksum and size */
    struct kprof_code_sums *sums; /* values of instructions in the open transaction; NULL: none */
    sqlite3_stmt *statements[KPROF_STATEMENT_COUNT];
    struct kprof_derived *derived; /* by chip, of the plans added */
};

/* Log what SQLite says about the failed `operation` and give the status for it: OUTPUT for a report being written,
 * BAD_REPORT for one being read. */
kprof_status kprof_store_fail(kprof_report *report, const char *operation);

/* BAD_REPORT: a table has rows that kprof would not have written. The report notes the failure, so nothing more is
 * read. */
#define KPROF_DAMAGED_ADVICE "; copy it again from where it was made, or measure again"
kprof_status kprof_store_damaged(kprof_report *report, const char *table);
/* BAD_SPOOL: a record does not fit; `what` ends before a number, "it describes a device twice:". */
kprof_status kprof_store_bad_record(const char *what, uint64_t number);
/* BAD_REPORT: the report is larger than kprof reads, "... holds more than 64 chips". */
kprof_status kprof_store_too_much(kprof_report *report, size_t limit, const char *what);
/* The size of a report that is being read, as it is now. */
int64_t kprof_store_size(kprof_report *report);
/* The text of a column, which is SQLite's; "" for NULL. Never NULL. */
const char *kprof_store_column(sqlite3_stmt *row, int column);
/* The number of a column; NAN for NULL, and for infinity: SQLite stores it, but nothing measures it. */
double kprof_store_real(sqlite3_stmt *row, int column);
/* The text of a column, cleaned unless the report keeps texts (caller frees; "" for NULL). */
char *kprof_store_text(const kprof_report *report, sqlite3_stmt *row, int column);

/* Functions that read or write a report note a failure in its `status`, with a message, and do nothing then: callers of
 * several look at it once, at their end. */

/* A prepared statement with its bindings cleared; owned by the report. NULL after a failure. First prepares `sql`. */
sqlite3_stmt *kprof_store_prepare(kprof_report *report, kprof_statement id, const char *sql);
/* The same for one that adds a row of so many values to a table. */
sqlite3_stmt *kprof_store_insert(kprof_report *report, kprof_statement id, const char *table, size_t count);
/* The same for a statement whose text is above. */
sqlite3_stmt *kprof_store_statement(kprof_report *report, kprof_statement id);
/* Bind by `types` (s, t: const char *, n: that and its size_t, b: a blob and its size_t, i: int64_t, d: double; NULL is
 * stored as "" for s) and run a statement. Gives the first column of the first row, 0 where there is none. */
int64_t kprof_store_find(kprof_report *report, kprof_statement id, const char *types, ...);
/* The same for a statement without rows. */
#define kprof_store_write(report, ...) ((void)kprof_store_find(report, __VA_ARGS__))
/* The same for an INSERT: the id of the new row. */
#define kprof_store_add(report, ...) (kprof_store_write(report, __VA_ARGS__), sqlite3_last_insert_rowid((report)->db))
/* The row of the launch that the process' row `process` made as its launch `position`; -1: it is not among the last
 * 262,144 of all processes. */
int64_t kprof_store_find_launch(kprof_report *report, int64_t process, uint64_t position);
/* End what the SAVEPOINT statement began: keep what was written since, or undo it after a failure, whose status this
 * gives. The next record may fit. */
kprof_status kprof_store_release(kprof_report *report) KPROF_MUST_CHECK;
/* The status, which is OK from then on. */
kprof_status kprof_store_take_status(kprof_report *report) KPROF_MUST_CHECK;

/* Note a failure that has had its message; returns `status`. */
kprof_status kprof_store_note(kprof_report *report, kprof_status status);

/* The first number of the first row of a statement, with what it binds by `types`; 0: it has no row, or failed. It may
 * run while another statement is under way. */
int64_t kprof_store_ask(kprof_report *report, const char *sql, const char *types, ...);
#define kprof_store_integer(report, sql) kprof_store_ask((report), (sql), "")
/* A statement that the caller finalizes, NULL after a failure. */
sqlite3_stmt *kprof_store_compile(kprof_report *report, const char *sql);
/* Step to the next row of a statement; false at the end, and after a failure. */
bool kprof_store_next(kprof_report *report, sqlite3_stmt *statement);
/* Bind by `types` likewise, and z for NULL, to which no argument belongs; then run the statement. */
void kprof_store_run(kprof_report *report, sqlite3_stmt *statement, const char *types, ...);
/* Run a statement without rows and reset it. */
void kprof_store_step(kprof_report *report, sqlite3_stmt *statement);
/* Run one-off SQL. */
kprof_status kprof_store_exec(kprof_report *report, const char *sql);

/* Append SQL with what stands for its words: these, which begin with "@", up to one that is NULL. Of two that begin
 * alike the longer comes first. */
typedef struct kprof_sql_word {
    const char *word, *text;
} kprof_sql_word;
void kprof_sql_expand(const char *sql, const kprof_sql_word *words, kprof_strbuf *out);

/* The rows of a query, with what it binds by `types`. BAD_REPORT when they have more text than the file has bytes: rows
 * share it then. */
typedef struct kprof_cursor {
    kprof_report *report;
    sqlite3_stmt *row; /* the one at hand */
    int64_t text_bytes;
} kprof_cursor;
kprof_cursor kprof_cursor_new(kprof_report *report, const char *sql, const char *types, ...);
bool kprof_cursor_next(kprof_cursor *cursor);
void kprof_cursor_free(kprof_cursor *cursor);
/* For each row of a query, a cursor of this name. Behind the SQL: what it binds, if anything. */
#define KPROF_EACH_ROW(rows, report, ...)                                                                              \
    for (KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new((report), __VA_ARGS__, ""); kprof_cursor_next(&(rows));)

/* For callers that step through rows: the bytes of a row's texts, and the check that the file can hold that many. */
int64_t kprof_store_text_bytes(sqlite3_stmt *row);
void kprof_store_check_text(kprof_report *report, int64_t text_bytes);
/* Let SQLite check that each page has one place and each row fits its table. Call this before a statement that reads
 * all of a table: in a damaged file it could loop, or read a long text again and again. Takes as long as reading it. */
kprof_status kprof_store_check_pages(kprof_report *report);

/* The name of a file without its folders. */
const char *kprof_path_last_part(const char *path);
/* "" for a text that is NULL. */
static inline const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Load the plans that kprof_report_add_plan has stored in a report opened again, so that it can take records. */
kprof_status kprof_report_load_plans(kprof_report *report) KPROF_MUST_CHECK;

/* Make the tables and views of a new report; check that an opened one has exactly the tables of its version. */
void kprof_schema_create(kprof_report *report);
kprof_status kprof_schema_check(kprof_report *report) KPROF_MUST_CHECK;
