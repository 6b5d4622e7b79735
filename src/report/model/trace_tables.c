/* Each table is made by the first that needs it. Calls stand in the order of their numbers, since SQLite would make an
 * index of them anew for each query. They come nearly in that order, so that none is sorted. */
#include "report/model/trace_tables.h"

#include "report/model/trace_functions.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <stdio.h>

/* They are those of the whole trace: work in a part of it may have been asked for before. */
static const char calls[] =
    "CREATE TEMP TABLE first_call(process_id INTEGER, correlation INTEGER, start_ns INTEGER, end_ns INTEGER, thread "
    "INTEGER, name_id INTEGER, PRIMARY KEY(process_id, correlation)) WITHOUT ROWID;"
    "INSERT INTO temp.first_call SELECT process_id, correlation, start_ns, end_ns, thread, name_id FROM "
    "main.trace_call WHERE true ON CONFLICT DO UPDATE SET start_ns=excluded.start_ns, end_ns=excluded.end_ns, "
    "thread=excluded.thread, name_id=excluded.name_id WHERE excluded.start_ns<start_ns";

#define SHAPE_COLUMNS "grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_smem_bytes"
static const char shapes[] =
    "CREATE TEMP TABLE trace_shape AS SELECT name_id, " SHAPE_COLUMNS ", count(*) AS c, total(end_ns-start_ns) AS t, "
    "kprof_median(end_ns-start_ns) AS median FROM trace_kernel WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL GROUP "
    "BY name_id, " SHAPE_COLUMNS;

static const char names[] =
    "CREATE TEMP TABLE name_key(id INTEGER PRIMARY KEY, text INTEGER, demangled INTEGER, function INTEGER);"
    "INSERT INTO temp.name_key SELECT id, id, min(id) OVER (PARTITION BY demangled), min(id) OVER (PARTITION BY "
    "function) FROM trace_name";

/* Temporary tables are in a file of their own. Outside of a transaction each row would be one. */
bool kprof_trace_begin_table(kprof_report *report, const char *table)
{
    char is_there[128];
    snprintf(is_there, sizeof is_there, "SELECT count(*) FROM temp.sqlite_schema WHERE name='%s'", table);
    if (kprof_store_integer(report, is_there) > 0 || report->status != KPROF_OK)
        return false;
    report->tables_begun++;
    kprof_store_exec(report, "PRAGMA query_only=OFF; SAVEPOINT made");
    return true;
}

void kprof_trace_end_table(kprof_report *report)
{
    const bool is_last = --report->tables_begun == 0;
    if (report->status != KPROF_OK) /* what was written since is undone */
        sqlite3_exec(report->db, "ROLLBACK TO made; RELEASE made", NULL, NULL, NULL);
    kprof_store_exec(report, "RELEASE made");
    if (is_last && !report->writable)
        sqlite3_exec(report->db, "PRAGMA query_only=ON", NULL, NULL, NULL);
}

static void make(kprof_report *report, const char *table, const char *sql)
{
    if (!kprof_trace_begin_table(report, table))
        return;
    kprof_trace_add_functions(report);
    kprof_store_exec(report, sql);
    kprof_trace_end_table(report);
}

void kprof_trace_find_calls(kprof_report *report)
{
    make(report, "first_call", calls);
}

void kprof_trace_find_callers(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "caller"))
        return;
    kprof_store_exec(report, "CREATE TEMP TABLE caller(process_id INTEGER, correlation INTEGER, stack_id INTEGER, "
                             "PRIMARY KEY(process_id, correlation)) WITHOUT ROWID");
    if (report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_CALLER))
        kprof_store_exec(report, "INSERT OR IGNORE INTO temp.caller SELECT process_id, correlation, stack_id FROM "
                                 "trace_caller WHERE stack_id IS NOT NULL ORDER BY id");
    kprof_trace_end_table(report);
}

void kprof_trace_find_shapes(kprof_report *report)
{
    make(report, "trace_shape", shapes);
}

void kprof_trace_find_names(kprof_report *report)
{
    make(report, "name_key", names);
}
