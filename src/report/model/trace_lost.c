/* Makes the temporary tables of lost time, in the order in which they need each other. A thread asked for the work that
 * ended a gap: the calls where this thread spent time since the gap began tell why the GPU was idle. */
#include "report/model/trace_tables.h"

#include "core/activities.h"
#include "report/model/trace_cumulate.h"
#include "report/model/trace_functions.h"
#include "report/model/trace_lost.sql.h"
#include "report/store/store.h"

typedef struct range_ends {
    kprof_report *report;
    sqlite3_stmt *insert;
} range_ends;

static void take_end(void *user, sqlite3_stmt *point, const double *sums)
{
    const range_ends *to = user;
    sqlite3_bind_int64(to->insert, 1, sqlite3_column_int64(point, 3));
    sqlite3_bind_double(to->insert, 2, sums[0]);
    kprof_store_step(to->report, to->insert);
}

/* point, c0: how long some GPU had worked for the process at each begin and end of a range; range_cover: or it is not
 * known whether. */
static void find_work_in_ranges(kprof_report *report)
{
    kprof_store_exec(report, "CREATE TEMP TABLE range_work(point INTEGER PRIMARY KEY, c0 REAL);"
                             "CREATE TEMP TABLE range_cover(point INTEGER PRIMARY KEY, c0 REAL)");
    range_ends to = {report, kprof_store_compile(report, "INSERT INTO temp.range_work VALUES(?,?)")};
    kprof_trace_cumulate(report, &(kprof_cumulation){ENDS_OF_RANGES, ALL_WORK_BY_TIME, take_end, &to});
    sqlite3_finalize(to.insert);
    if (kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM main.trace_overhead " UNRECORDED ")") == 0) {
        kprof_store_exec(report, "INSERT INTO temp.range_cover SELECT point, c0 FROM temp.range_work");
        return;
    }
    to.insert = kprof_store_compile(report, "INSERT INTO temp.range_cover VALUES(?,?)");
    kprof_trace_cumulate(report, &(kprof_cumulation){ENDS_OF_RANGES, WORK_AND_UNRECORDED, take_end, &to});
    sqlite3_finalize(to.insert);
}

void kprof_trace_find_lost(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "gpu_idle"))
        return;
    kprof_trace_add_functions(report);
    kprof_trace_find_calls(report);
    kprof_trace_find_gpus(report);
    kprof_store_exec(report, OWN);
    kprof_store_exec(report, TRACE_WORK);
    kprof_trace_find_gaps(report);
    kprof_trace_explain_gaps(report);
    find_work_in_ranges(report);
    kprof_store_exec(report, STEPS);
    kprof_store_exec(report, TRANSFERS);
    kprof_store_exec(report, ALLOCATIONS);
    kprof_trace_end_table(report);
}
