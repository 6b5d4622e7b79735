/* Each table is made by the first that needs it. Calls stand in the order of their numbers, since SQLite would make an
 * index of them anew for each query. */
#include "report/model/trace_tables.h"

#include "report/model/trace_functions.h"
#include "report/store/store.h"

static const char calls[] =
    "CREATE TEMP TABLE first_call(process_id INTEGER, correlation INTEGER, start_ns INTEGER, end_ns INTEGER, thread "
    "INTEGER, name_id INTEGER, PRIMARY KEY(process_id, correlation)) WITHOUT ROWID;"
    "INSERT INTO temp.first_call SELECT process_id, correlation, min(start_ns), end_ns, thread, name_id FROM "
    "trace_call "
    "GROUP BY process_id, correlation";

#define SHAPE_COLUMNS "grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_smem_bytes"
static const char shapes[] =
    "CREATE TEMP TABLE trace_shape AS SELECT name_id, " SHAPE_COLUMNS ", count(*) AS c, total(end_ns-start_ns) AS t, "
    "kprof_median(end_ns-start_ns) AS median FROM trace_kernel WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL GROUP "
    "BY name_id, " SHAPE_COLUMNS;

/* The report is open for reading alone; temporary tables are in a file of their own. */
static kprof_status make(kprof_report *report, const char *is_there, const char *sql)
{
    int64_t is_made = 0, was_reading = 0;
    kprof_status status = kprof_store_integer(report, is_there, &is_made);
    if (status == KPROF_OK)
        status = kprof_store_integer(report, "PRAGMA query_only", &was_reading);
    if (status != KPROF_OK || is_made)
        return status;
    status = kprof_store_exec(report, "PRAGMA query_only=OFF");
    if (status == KPROF_OK)
        status = kprof_store_exec(report, sql);
    const kprof_status closed = was_reading ? kprof_store_exec(report, "PRAGMA query_only=ON") : KPROF_OK;
    return status == KPROF_OK ? closed : status;
}

kprof_status kprof_trace_find_calls(kprof_report *report)
{
    return make(report, "SELECT count(*) FROM temp.sqlite_schema WHERE name='first_call'", calls);
}

kprof_status kprof_trace_find_shapes(kprof_report *report)
{
    const kprof_status status = kprof_trace_add_functions(report);
    return status == KPROF_OK ? make(report, "SELECT count(*) FROM temp.sqlite_schema WHERE name='trace_shape'", shapes)
                              : status;
}
