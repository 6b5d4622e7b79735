/* SQL finds the gaps between what runs on a GPU. What the host did until it asked for what ended a gap, is the time
 * that its thread spent in calls since the gap began. */
#include "report/model/trace_lost.h"

#include "core/activities.h"
#include "report/model/trace_cumulate.h"
#include "report/model/trace_functions.h"
#include "report/store/store.h"

/* All that runs on GPUs, with k 1 for kernels and graphs. */
#define KNOWN " WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL"
#define WORK                                                                                                           \
    "work AS (SELECT process_id, device, start_ns, end_ns, correlation, 1 AS k FROM trace_kernel" KNOWN                \
    " UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 1 FROM trace_graph" KNOWN                    \
    " UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 0 FROM trace_copy" KNOWN                     \
    " UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 0 FROM trace_set" KNOWN ")"
/* The first call of each number. */
#define CALL                                                                                                           \
    "call AS (SELECT process_id, correlation, min(start_ns) AS start_ns, end_ns, thread FROM trace_call GROUP BY "     \
    "process_id, correlation)"
/* When all that began before had ended. */
#define BEFORE(keys)                                                                                                   \
    "max(end_ns) OVER (PARTITION BY " keys " ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "        \
    "PRECEDING)"
/* Time that nothing before covers. */
#define ADDED(before) "max(0, end_ns-max(start_ns, coalesce(" before ", start_ns)))"

/* The times in which kprof measured, of each process and the devices that it uses, while these had work. What runs then
 * is not recorded, and no gap. */
static const char own[] =
    "CREATE TEMP TABLE trace_own AS WITH mine AS MATERIALIZED (SELECT process_id, start_ns, end_ns, thread FROM "
    "trace_overhead JOIN trace_name n ON n.id=name_id WHERE text IN ('" KPROF_TRACE_OWN "', '" KPROF_TRACE_COUNTED
    "')), " WORK ", used AS MATERIALIZED (SELECT process_id, device, min(start_ns) AS first_ns, max(end_ns) AS last_ns "
    "FROM work WHERE EXISTS (SELECT 1 FROM mine) GROUP BY process_id, device) SELECT process_id, device, "
    "max(start_ns, first_ns) AS start_ns, min(end_ns, last_ns) AS end_ns, thread FROM mine JOIN used USING(process_id) "
    "WHERE start_ns<last_ns AND end_ns>first_ns";

/* What covers the time of a device: its work, and kprof's own. */
#define COVER                                                                                                          \
    "cover AS (SELECT process_id, device, start_ns, end_ns, correlation, NULL AS own_thread FROM work UNION ALL "      \
    "SELECT process_id, device, start_ns, end_ns, NULL, thread FROM temp.trace_own)"

/* host_ns: until then the host had not asked for what ended the gap; NULL: not known. */
static const char gaps[] =
    "CREATE TEMP TABLE trace_gap(id INTEGER PRIMARY KEY, device INTEGER, start_ns INTEGER, end_ns INTEGER, process_id "
    "INTEGER, thread INTEGER, host_ns INTEGER);"
    "WITH " WORK ", " CALL ", " COVER ", seen AS (SELECT *, " BEFORE(
        "device") " AS before_ns FROM cover) INSERT INTO temp.trace_gap SELECT NULL, device, before_ns, seen.start_ns, "
                  "process_id, coalesce(own_thread, thread), "
                  "CASE WHEN own_thread IS NOT NULL THEN seen.start_ns WHEN call.start_ns IS NOT NULL THEN "
                  "max(before_ns, min(call.start_ns, seen.start_ns)) END FROM seen "
                  "LEFT JOIN call USING(process_id, correlation) WHERE seen.start_ns>before_ns";

static const kprof_cumulation calls_in_gaps = {
    .points = "SELECT process_id, thread, start_ns AS t, 2*id FROM temp.trace_gap WHERE host_ns>start_ns UNION ALL "
              "SELECT process_id, thread, host_ns, 2*id+1 FROM temp.trace_gap WHERE host_ns>start_ns ORDER BY 1, 2, 3",
    .intervals = "SELECT process_id, thread, start_ns, end_ns, CASE WHEN text GLOB '*ynchronize*' THEN 0 WHEN text "
                 "GLOB '*emcpy*' THEN 1 WHEN text GLOB '*aunch*' THEN 2 WHEN text GLOB '*lloc*' OR text GLOB '*Free*' "
                 "OR text GLOB '*MemCreate*' OR text GLOB '*Map*' THEN 3 ELSE 4 END FROM trace_call JOIN trace_name n "
                 "ON n.id=name_id ORDER BY 1, 2, 3",
    .into = "gap_call",
};

/* device, cause, ns, gaps, longest_ns */
static const char idle[] =
    "CREATE TEMP TABLE gpu_idle AS WITH host AS (SELECT g.*, b.c0-a.c0 AS c0, b.c1-a.c1 AS c1, b.c2-a.c2 AS c2, "
    "b.c3-a.c3 AS c3, b.c4-a.c4 AS c4 FROM temp.trace_gap g LEFT JOIN temp.gap_call a ON a.point=2*g.id LEFT JOIN "
    "temp.gap_call b ON b.point=2*g.id+1), parts AS ("
    "SELECT device, 'host code' AS cause, host_ns-start_ns-c0-c1-c2-c3-c4 AS d FROM host WHERE host_ns>start_ns "
    "UNION ALL SELECT device, 'synchronization', c0 FROM host "
    "UNION ALL SELECT device, 'calls that copy', c1 FROM host "
    "UNION ALL SELECT device, 'launching', c2+(end_ns-host_ns) FROM host WHERE host_ns>start_ns "
    "UNION ALL SELECT device, 'allocation', c3 FROM host "
    "UNION ALL SELECT device, 'other calls', c4 FROM host "
    "UNION ALL SELECT device, 'queued work', end_ns-start_ns FROM host WHERE host_ns=start_ns "
    "UNION ALL SELECT device, 'not known', end_ns-start_ns FROM host WHERE host_ns IS NULL) "
    "SELECT device, cause, total(d) AS ns, count(*) AS gaps, max(d) AS longest_ns FROM parts WHERE d>0 GROUP BY "
    "device, "
    "cause";

/* device, span (without kprof's times), busy, kernels and memory (ns of each), kernel_count; latency (median ns from
 * call to kernel), depth and most_depth: kernels that were asked for and had not begun, as another one was asked for.
 */
/* The time that something covers, of devices that kprof measured on. */
#define COVERED                                                                                                        \
    "covered AS (SELECT device, total(" ADDED("b") ") AS covered FROM (SELECT device, start_ns, end_ns, " BEFORE(      \
        "device") " AS b FROM cover WHERE device IN (SELECT device FROM temp.trace_own)) GROUP BY device)"
#define SEEN                                                                                                           \
    "seen AS (SELECT device, k, start_ns, end_ns, " BEFORE("device") " AS b, " BEFORE("device, k") " AS bk FROM work)"
#define SUMS                                                                                                           \
    "sums AS (SELECT device, max(end_ns)-min(start_ns) AS span, total(" ADDED("b") ") AS busy, total(CASE WHEN k "     \
                                                                                   "THEN " ADDED(                      \
                                                                                       "bk") " END) AS kernels, "      \
                                                                                             "total(CASE WHEN NOT k "  \
                                                                                             "THEN " ADDED("bk") " EN" \
                                                                                                                 "D) " \
                                                                                                                 "AS " \
                                                                                                                 "mem" \
                                                                                                                 "ory" \
                                                                                                                 ", "  \
                                                                                                                 "sum" \
                                                                                                                 "(k)" \
                                                                                                                 " AS" \
                                                                                                                 " ke" \
                                                                                                                 "rne" \
                                                                                                                 "l_"  \
                                                                                                                 "cou" \
                                                                                                                 "nt " \
                                                                                                                 "FRO" \
                                                                                                                 "M "  \
                                                                                                                 "see" \
                                                                                                                 "n "  \
                                                                                                                 "GRO" \
                                                                                                                 "UP " \
                                                                                                                 "BY " \
                                                                                                                 "dev" \
                                                                                                                 "ice" \
                                                                                                                 ")"
static const char busy[] =
    "CREATE TEMP TABLE gpu_busy AS WITH " WORK ", " CALL ", " COVER ", " COVERED ", " SEEN ", " SUMS
    ", asked AS (SELECT device, work.start_ns AS begin_ns, call.start_ns AS call_ns, call.end_ns AS return_ns FROM "
    "work "
    "JOIN call USING(process_id, correlation) WHERE k), latencies AS (SELECT device, kprof_median(begin_ns-return_ns) "
    "AS latency FROM asked GROUP BY device), steps AS (SELECT device, call_ns AS t, 1 AS d FROM asked UNION ALL SELECT "
    "device, begin_ns, -1 FROM asked), depths AS (SELECT device, d, sum(d) OVER (PARTITION BY device ORDER BY t, d "
    "ROWS "
    "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS depth FROM steps) SELECT device, span-coalesce(covered-busy, 0) "
    "AS "
    "span, busy, kernels, memory, kernel_count, latency, depth, most_depth FROM sums LEFT JOIN covered USING(device) "
    "LEFT JOIN latencies USING(device) LEFT JOIN (SELECT device, avg(depth) AS depth, max(depth) AS most_depth FROM "
    "depths WHERE d=1 GROUP BY device) USING(device)";

static const kprof_cumulation work_in_ranges = {
    .points = "SELECT 0, 0, start_ns AS t, 2*id FROM trace_range WHERE end_ns IS NOT NULL UNION ALL SELECT 0, 0, "
              "end_ns, 2*id+1 FROM trace_range WHERE end_ns IS NOT NULL ORDER BY 3",
    .intervals = "WITH " WORK " SELECT 0, 0, start_ns, end_ns, 0 FROM work ORDER BY 3",
    .into = "range_work",
};

/* range, ns, busy_ns: of each NVTX range that has ended; any GPU counts. */
static const char steps[] =
    "CREATE TEMP TABLE trace_step AS SELECT coalesce(g.text, '') || ':' || n.text AS range, end_ns-start_ns AS ns, "
    "b.c0-a.c0 AS busy_ns FROM trace_range r JOIN trace_name n ON n.id=name_id LEFT JOIN trace_name g ON "
    "g.id=domain_id JOIN temp.range_work a ON a.point=2*r.id JOIN temp.range_work b ON b.point=2*r.id+1";

/* operation, source, target, ns, bytes, is_small (less than 64 KiB), follows (a small one that comes right behind
 * another one in its stream) */
static const char transfers[] =
    "CREATE TEMP TABLE trace_transfer AS SELECT o.text AS operation, s.text AS source, t.text AS target, "
    "end_ns-start_ns AS ns, bytes, bytes<65536 AS is_small, bytes<65536 AND lag(bytes) OVER same<65536 AS follows FROM "
    "trace_copy JOIN trace_name o ON o.id=operation_id JOIN trace_name s ON s.id=source_memory_id JOIN trace_name t ON "
    "t.id=target_memory_id" KNOWN " WINDOW same AS (PARTITION BY process_id, device, stream, operation_id ORDER BY "
    "start_ns)";

/* memory, device, is_new (an allocation), bytes, level (bytes that are allocated then), in_loop (between the first and
 * the last kernel), call_ns */
static const char allocations[] =
    "CREATE TEMP TABLE trace_allocation AS WITH " CALL ", moves AS (SELECT process_id, device, n.text AS memory, "
    "o.text='allocation' AS is_new, bytes, time_ns, correlation FROM trace_memory JOIN trace_name n ON n.id=memory_id "
    "JOIN trace_name o ON o.id=operation_id), loop AS (SELECT min(start_ns) AS first, max(start_ns) AS last FROM "
    "trace_kernel) SELECT memory, device, is_new, bytes, sum(CASE WHEN is_new THEN 1.0*bytes ELSE -1.0*bytes END) OVER "
    "(PARTITION BY process_id, device, memory ORDER BY time_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS "
    "level, time_ns BETWEEN first AND last AS in_loop, call.end_ns-call.start_ns AS call_ns FROM moves CROSS JOIN loop "
    "LEFT JOIN call USING(process_id, correlation)";

static kprof_status make_tables(kprof_report *report)
{
    kprof_status status = kprof_store_exec(report, own);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, gaps);
    if (status == KPROF_OK)
        status = kprof_trace_cumulate(report, &calls_in_gaps);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, idle);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, busy);
    if (status == KPROF_OK)
        status = kprof_trace_cumulate(report, &work_in_ranges);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, steps);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, transfers);
    return status == KPROF_OK ? kprof_store_exec(report, allocations) : status;
}

/* The report is open for reading alone; temporary tables are in a file of their own. */
kprof_status kprof_trace_find_lost(kprof_report *report)
{
    int64_t is_made = 0;
    kprof_status status =
        kprof_store_integer(report, "SELECT count(*) FROM temp.sqlite_schema WHERE name='gpu_idle'", &is_made);
    if (status != KPROF_OK || is_made)
        return status;
    status = kprof_trace_add_functions(report);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, "PRAGMA query_only=OFF");
    if (status == KPROF_OK)
        status = make_tables(report);
    const kprof_status closed = kprof_store_exec(report, "PRAGMA query_only=ON");
    return status == KPROF_OK ? closed : status;
}
