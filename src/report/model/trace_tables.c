/* Each table is made by the first that needs it. Calls stand in the order of their numbers, since SQLite would make an
 * index of them anew for each query. They come nearly in that order, so that none is sorted. */
#include "report/model/trace_tables.h"

#include "report/model/trace_functions.h"
#include "report/model/trace_tables.sql.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <stdio.h>
#include <string.h>

#define MOST_LABEL 60 /* of a column */

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
    make(report, "first_call", CALLS);
}

void kprof_trace_find_gpus(kprof_report *report)
{
    make(report, "trace_gpu", report->version < KPROF_PROCESS_DEVICES_SINCE ? GPUS(GUESSED_GPUS) : GPUS(SEEN_GPUS));
}

void kprof_trace_find_memory(kprof_report *report)
{
    make(report, "memory_level", LEVELS);
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
    make(report, "trace_shape", SHAPES);
}

void kprof_trace_find_names(kprof_report *report)
{
    make(report, "name_key", NAMES);
}

void kprof_trace_find_samples(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "trace_sampled"))
        return;
    kprof_trace_add_functions(report);
    kprof_trace_find_gpus(report);
    kprof_store_exec(report, report->version < 10 ? NO_SAMPLES : SAMPLED_METRICS);
    if (report->version >= 10)
        kprof_store_exec(report, SAMPLES);
    kprof_store_exec(report, TIMES_LEFT_OUT);
    kprof_store_exec(report, STEPS);
    kprof_trace_end_table(report);
}

void kprof_trace_list_samples(kprof_report *report, kprof_strbuf *out)
{
    KPROF_EACH_ROW(rows, report, METRICS_SHOWN) {
        kprof_strbuf_printf(out, ", round(avg(CASE WHEN name_id=%lld THEN mean END), 3)",
                            sqlite3_column_int64(rows.row, 0));
        /* A column's name, of what no terminal and no SQL takes for something else. */
        const char *label = kprof_store_column(rows.row, 1);
        const char *unit = kprof_store_column(rows.row, 2);
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./-%";
        const size_t length = strspn(label, allowed), unit_length = strspn(unit, allowed);
        kprof_strbuf_printf(out, " AS \"%.*s", (int)(length < MOST_LABEL ? length : MOST_LABEL), label);
        if (unit_length > 0)
            kprof_strbuf_printf(out, " (%.*s)", (int)(unit_length < MOST_LABEL ? unit_length : MOST_LABEL), unit);
        kprof_strbuf_puts(out, "\"");
    }
}

bool kprof_trace_has_samples(kprof_report *report)
{
    return report->version >= 10 && kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM trace_sample)");
}
