/* Each kernel and shape that was measured becomes a row of a temporary table, from which SQL makes the tables of
 * model/trace_stats.c. Verdicts follow from a report's values, and no SQL could make them. */
#include "report/page/trace_join.h"

#include "report/model/trace_tables.h"
#include "report/page/ranking.h"

/* `kernel` is mangled. `ns` is the median duration of the launches that were measured, `limit_pct` a share of the peak,
 * and `gain_pct` the share of their time that the finding worth most saves. */
static const char table[] =
    "CREATE TEMP TABLE trace_counted(kernel TEXT, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, "
    "block_y INTEGER, block_z INTEGER, dynamic_smem_bytes INTEGER, measured INTEGER, ns REAL, limited TEXT, limit_pct "
    "REAL, finding TEXT, gain_pct REAL, PRIMARY KEY(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, "
    "dynamic_smem_bytes)) WITHOUT ROWID";
/* Rows of other devices or clusters have the same key: the first one, which takes most of the time, stays. */
static const char add[] = "INSERT OR IGNORE INTO temp.trace_counted VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

enum { KERNEL = 1, GRID = 2, BLOCK = 5, SMEM = 8, MEASURED, DURATION, LIMIT, LIMIT_PCT, FINDING, GAIN };

static void bind_text(sqlite3_stmt *insert, int place, const char *text)
{
    sqlite3_bind_text(insert, place, text, -1, SQLITE_TRANSIENT); /* NULL for NULL */
}

static void bind_findings(sqlite3_stmt *insert, const kprof_findings *findings)
{
    KPROF_AUTO(kprof_verdict_text) limit = kprof_verdict_describe(findings, KPROF_ROW_LIMIT, false);
    const kprof_found *best = findings->verdict.best;
    if (limit.is_known && limit.name.length > 0)
        bind_text(insert, LIMIT, limit.name.data);
    sqlite3_bind_double(insert, LIMIT_PCT, limit.value); /* which is NULL for NaN */
    if (findings->verdict.near)
        bind_text(insert, FINDING, "no large gain");
    else if (best)
        bind_text(insert, FINDING, best->finding->name);
    if (best && !findings->verdict.near && !best->finding->gain_is_local)
        sqlite3_bind_double(insert, GAIN, best->gain_pct);
}

static void add_row(kprof_ranking *ranking, const kprof_ranked *row, kprof_report *report, sqlite3_stmt *insert)
{
    const kprof_group *group = row->group;
    const kprof_findings *findings = kprof_ranking_evaluate(ranking, group);
    if (group->not_measured >= group->launches)
        return;
    if (insert)
        sqlite3_clear_bindings(insert);
    bind_text(insert, KERNEL, group->kernel->mangled);
    for (int i = 0; i < 3; i++) {
        sqlite3_bind_int64(insert, GRID + i, group->shape.grid[i]);
        sqlite3_bind_int64(insert, BLOCK + i, group->shape.block[i]);
    }
    sqlite3_bind_int64(insert, SMEM, group->shape.dynamic_smem_bytes);
    sqlite3_bind_int64(insert, MEASURED, (int64_t)(group->launches - group->not_measured));
    sqlite3_bind_double(insert, DURATION, row->median_ns);
    if (findings)
        bind_findings(insert, findings);
    kprof_store_step(report, insert);
}

kprof_status kprof_trace_join(const kprof_page_context *context, const kprof_finding_list *findings)
{
    kprof_report *report = context->reports->file;
    kprof_print_options options = *context->options;
    kprof_page_context shapes = *context;
    kprof_ranking ranking;
    if (!kprof_trace_begin_table(report, "trace_counted"))
        return report->status;
    options.group_by = KPROF_GROUP_CONFIG;
    options.sort = KPROF_SORT_TIME;
    options.condition_count = 0;
    options.findings = findings;
    shapes.options = &options;
    const kprof_status status = kprof_ranking_make(&shapes, &ranking);
    kprof_store_exec(report, table);
    sqlite3_stmt *insert = kprof_store_compile(report, add);
    for (size_t i = 0; i < ranking.count; i++)
        add_row(&ranking, &ranking.rows[i], report, insert);
    sqlite3_finalize(insert);
    kprof_trace_end_table(report);
    return status == KPROF_OK ? report->status : status;
}
