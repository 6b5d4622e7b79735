/* A trace as an SQLite file with tables and columns of Nsight Systems, so that what reads its exports reads this one. A
 * table is a row here: SQL makes its rows, and columns that kprof knows nothing of are NULL. Times count from the
 * beginning of the trace. */
#include "core/log.h"
#include "report/emit/emit.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/page/nsys_sqlite.sql.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <string.h>

typedef struct nsys_table {
    const char *name, *columns; /* no columns: there is such a table already */
    const char *rows;
} nsys_table;

static const nsys_table tables[] = {
    {"StringIds", COLUMNS_OF_STRINGIDS, ROWS_OF_STRINGIDS},
    {"PROCESSES", COLUMNS_OF_PROCESSES, ROWS_OF_PROCESSES},
    {"CUPTI_ACTIVITY_KIND_KERNEL", COLUMNS_OF_KERNEL, ROWS_OF_KERNEL},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", COLUMNS_OF_MEMCPY, ROWS_OF_MEMCPY},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", NULL, ROWS_OF_MANAGED_MEMCPY},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS", COLUMNS_OF_CPU_PAGE_FAULTS, ROWS_OF_CPU_PAGE_FAULTS},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS", COLUMNS_OF_GPU_PAGE_FAULTS, ROWS_OF_GPU_PAGE_FAULTS},
    {"CUPTI_ACTIVITY_KIND_MEMSET", COLUMNS_OF_MEMSET, ROWS_OF_MEMSET},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", COLUMNS_OF_GRAPH_TRACE, ROWS_OF_GRAPH_TRACE},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", COLUMNS_OF_RUNTIME, ROWS_OF_RUNTIME},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", COLUMNS_OF_SYNCHRONIZATION, ROWS_OF_SYNCHRONIZATION},
    {"PROFILER_OVERHEAD", COLUMNS_OF_PROFILER_OVERHEAD, ROWS_OF_PROFILER_OVERHEAD},
    {"NVTX_EVENTS", COLUMNS_OF_NVTX_EVENTS, ROWS_OF_NVTX_EVENTS},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS", COLUMNS_OF_CUDA_GPU_MEMORY_USAGE_EVENTS, ROWS_OF_CUDA_GPU_MEMORY_USAGE_EVENTS},
    {"GPU_METRICS", COLUMNS_OF_GPU_METRICS, ROWS_OF_GPU_METRICS},
    {"TARGET_INFO_GPU_METRICS", COLUMNS_OF_TARGET_INFO_GPU_METRICS, ROWS_OF_TARGET_INFO_GPU_METRICS},
    {"TARGET_INFO_GPU", COLUMNS_OF_TARGET_INFO_GPU, ROWS_OF_TARGET_INFO_GPU},
    {"TARGET_INFO_CUDA_DEVICE", COLUMNS_OF_TARGET_INFO_CUDA_DEVICE, ROWS_OF_TARGET_INFO_CUDA_DEVICE},
    {"ENUM_CUDA_MEMCPY_OPER", ENUMERATION, COPY_KINDS},
    {"ENUM_CUDA_MEM_KIND", ENUMERATION, MEMORY_KINDS},
    {"ENUM_CUDA_DEV_MEM_EVENT_OPER", ENUMERATION, ROWS_OF_ENUM_CUDA_DEV_MEM_EVENT_OPER},
    {"ENUM_CUPTI_SYNC_TYPE", ENUMERATION, SYNC_KINDS},
    {"ENUM_NSYS_EVENT_CLASS", ENUMERATION, ROWS_OF_ENUM_NSYS_EVENT_CLASS},
    {"ENUM_NSYS_EVENT_TYPE", ENUMERATION, ROWS_OF_ENUM_NSYS_EVENT_TYPE},
    {"TARGET_INFO_SESSION_START_TIME", COLUMNS_OF_TARGET_INFO_SESSION_START_TIME,
     ROWS_OF_TARGET_INFO_SESSION_START_TIME},
    {"ANALYSIS_DETAILS", COLUMNS_OF_ANALYSIS_DETAILS, ROWS_OF_ANALYSIS_DETAILS},
};

typedef struct writer {
    kprof_report *report;
    const char *start; /* of the trace */
    sqlite3 *into;
    const char *path;
} writer;

static kprof_status fail(const writer *to)
{
    if (sqlite3_errcode(to->into) == SQLITE_NOMEM)
        kprof_memory_note_lack();
    return kprof_fail(KPROF_OUTPUT, "%s: cannot be written: %s", to->path, sqlite3_errmsg(to->into));
}

/* Make the table, and the statement that adds a row of as many values as `rows` has. */
static sqlite3_stmt *make_table(const writer *to, const nsys_table *table, sqlite3_stmt *rows)
{
    sqlite3_stmt *insert = NULL;
    KPROF_AUTO(kprof_strbuf) make = KPROF_STRBUF_INIT, add = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&make, table->columns ? "CREATE TABLE %s(%s)" : "SELECT 1", table->name, table->columns);
    kprof_strbuf_printf(&add, "INSERT INTO %s VALUES(?", table->name);
    for (int i = 1; i < sqlite3_column_count(rows); i++)
        kprof_strbuf_puts(&add, ",?");
    kprof_strbuf_puts(&add, ")");
    if (sqlite3_exec(to->into, make.data, NULL, NULL, NULL) == SQLITE_OK)
        (void)sqlite3_prepare_v2(to->into, add.data, -1, &insert, NULL);
    return insert;
}

static kprof_status write_table(const writer *to, const nsys_table *table)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    kprof_sql_expand(table->rows, (const kprof_sql_word[]){{"@start", to->start}, {NULL, NULL}}, &sql);
    sqlite3_stmt *rows = kprof_store_compile(to->report, sql.data);
    sqlite3_stmt *insert = rows ? make_table(to, table, rows) : NULL;
    bool is_written = insert != NULL;
    while (is_written && kprof_store_next(to->report, rows)) {
        for (int i = 0; i < sqlite3_column_count(rows); i++)
            sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
        is_written = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert);
    }
    const kprof_status status = to->report->status != KPROF_OK ? to->report->status : is_written ? KPROF_OK : fail(to);
    sqlite3_finalize(insert);
    sqlite3_finalize(rows);
    return status;
}

static void tell_left_out(kprof_report *report)
{
    static const struct {
        kprof_activity_kind kind;
        const char *sql, *what;
    } counts[] = {
        {KPROF_ACTIVITY_CALLER, "SELECT count(*) FROM trace_caller", "call stacks"},
        {KPROF_ACTIVITY_MANAGED, OTHER_MANAGED, "records of thrashing, throttling and remote maps"},
    };
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        const int64_t count =
            report->version >= KPROF_TRACE_SINCE(counts[i].kind) ? kprof_store_integer(report, counts[i].sql) : 0;
        if (count > 0)
            kprof_log(KPROF_LOG_WARNING, "%s: %ld; nsys-sqlite has no table of them", counts[i].what, count);
    }
}

kprof_status kprof_report_write_nsys(kprof_report *report, const char *path)
{
    const bool has_managed = report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_MANAGED);
    KPROF_AUTO_FREE char *start = kprof_strprintf("(%ld)", kprof_store_integer(report, KPROF_TRACE_START));
    writer to = {.report = report, .path = path, .start = start};
    kprof_trace_find_gpus(report);
    kprof_trace_find_samples(report);
    if (kprof_trace_begin_table(report, "nsys_string")) {
        kprof_store_exec(report, HELPERS);
        if (has_managed)
            kprof_store_exec(report, MANAGED_HELPERS);
        kprof_trace_end_table(report);
    }
    kprof_status status = report->status;
    /* A file that is cut short is removed, so that nothing has to bring it back. */
    if (status == KPROF_OK && (sqlite3_open_v2(path, &to.into, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
                               sqlite3_exec(to.into, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL,
                                            NULL, NULL) != SQLITE_OK))
        status = fail(&to);
    for (size_t i = 0; i < COUNT_OF(tables) && status == KPROF_OK; i++)
        if (has_managed || !strstr(tables[i].rows, "trace_managed"))
            status = write_table(&to, &tables[i]);
    if (status == KPROF_OK && sqlite3_exec(to.into, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = fail(&to);
    sqlite3_close(to.into);
    if (status == KPROF_OK)
        tell_left_out(report);
    return KPROF_THEN(status, report->status);
}
