/* Joins the launches of ranks, or of runs of one program, that collected other passes each: those of one kernel and
 * shape that come at the same place in their order become one launch, which has the values of all. */
#include "core/log.h"
#include "core/names.h"
#include "report/model/merge.h"
#include "report/model/merge_ranks.sql.h"
#include "report/store/derived.h"

#include <math.h>
#include <stdlib.h>

/* The values of a launch, by the names of their metrics. */
typedef struct launch_values {
    kprof_report *report;
    kprof_names names; /* -> id of the metric */
    double *values;    /* [size], by id */
    size_t size;
    int64_t launch;
} launch_values;

static double look_up(void *user, const char *name)
{
    const launch_values *all = user;
    const size_t id = kprof_names_find(&all->names, name);
    return id == KPROF_NAMES_NONE ? NAN : all->values[id];
}

static void put(void *user, int64_t metric, double value)
{
    launch_values *all = user;
    if (!isnan(value))
        kprof_store_write(all->report, KPROF_SQL_SET_VALUE, "iid", all->launch, metric, value);
    if ((size_t)metric < all->size)
        all->values[metric] = value;
}

/* Compute again what follows from the values of several ranks. */
static void derive(launch_values *all, const char *chip)
{
    for (size_t i = 0; i < all->size; i++)
        all->values[i] = NAN;
    KPROF_EACH_ROW(of, all->report, "SELECT metric_id, value FROM main.value WHERE launch_id=?", "i", all->launch)
        if ((uint64_t)sqlite3_column_int64(of.row, 0) < all->size)
            all->values[sqlite3_column_int64(of.row, 0)] = kprof_store_real(of.row, 1);
    const kprof_derived_sink sink = {look_up, put, all};
    kprof_derived_evaluate(all->report, chip, &sink);
}

static void derive_all(kprof_report *report)
{
    launch_values all = {.report = report};
    kprof_store_note(report, kprof_report_load_plans(report));
    KPROF_EACH_ROW(metrics, report, "SELECT id, name FROM main.metric ORDER BY id") {
        const size_t id = (size_t)sqlite3_column_int64(metrics.row, 0);
        kprof_names_keep(&all.names, kprof_store_column(metrics.row, 1), id);
        all.size = id + 1;
    }
    all.values = kprof_calloc(all.size + 1, sizeof *all.values);
    KPROF_EACH_ROW(launches, report, JOINED) {
        all.launch = sqlite3_column_int64(launches.row, 0);
        derive(&all, kprof_store_column(launches.row, 1));
    }
    kprof_names_free(&all.names);
    free(all.values);
}

/* Are these the reports of ranks of one job that shared its passes? Warns where they are of ranks, but do not fit. */
static bool fit_together(kprof_report *report)
{
    /* All reports, those of ranks, different ranks; the sizes of jobs, and the largest. */
    enum { REPORTS, RANKS, DISTINCT, SIZES, SIZE, FACTS };
    int64_t of[FACTS] = {0};
    KPROF_EACH_ROW(rows, report, RANKS_OF_REPORTS)
        for (int i = 0; i < FACTS; i++)
            of[i] = sqlite3_column_int64(rows.row, i);
    const bool fit = of[REPORTS] > 1 && of[REPORTS] == of[RANKS] && of[RANKS] == of[DISTINCT] && of[SIZES] == 1;
    if (of[RANKS] > 0 && !fit)
        kprof_log(KPROF_LOG_WARNING, "not all reports are of different ranks of one job with --rank-passes, so their "
                                     "launches are not joined");
    else if (fit && of[RANKS] < of[SIZE])
        kprof_log(KPROF_LOG_WARNING, "these are %ld of %ld ranks of the job: the passes of the others are missing",
                  of[RANKS], of[SIZE]);
    return fit;
}

kprof_status kprof_merge_join_ranks(kprof_report *into)
{
    if (!fit_together(into))
        return into->status;
    kprof_store_note(into, kprof_report_begin(into));
    kprof_store_exec(into, MATCH_LAUNCHES);
    const int64_t count = kprof_store_integer(into, INCOMPLETE);
    if (count > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%ld launch%s not measured by all ranks, and lack%s the passes of the others: ranks join where they "
                  "launch the same kernels in the same order",
                  count, count == 1 ? " was" : "es were", count == 1 ? "s" : "");
    kprof_store_exec(into, JOIN_LAUNCHES);
    derive_all(into);
    kprof_store_exec(into, FORGET);
    return into->status == KPROF_OK ? kprof_report_commit(into) : into->status;
}

static const char *const further_keys[] = {
    [KPROF_MATCH_NAME] = "",
    [KPROF_MATCH_GRID] = SHAPE,
    [KPROF_MATCH_ALL] = SHAPE " || ' ' || context || ' ' || stream",
};

static void match_launches_of_runs(kprof_report *report, const kprof_runs *runs)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(
        &sql, "%s %s %s %s %s %s %s%zu%s", NUMBER_PROCESSES, further_keys[runs->match], RANK_LAUNCHES,
        runs->order == KPROF_ORDER_STRICT ? "place" : "row_number() OVER (PARTITION BY source, shape ORDER BY place)",
        PLACE_RUNS, runs->last_has_further ? DROP_FURTHER : "", MATCH_RUNS, runs->count, JOIN_RUNS);
    kprof_strbuf_printf(&sql,
                        "CREATE TEMP TABLE sampled AS SELECT id FROM placed WHERE %d AND source=(SELECT max(source) "
                        "FROM placed); CREATE UNIQUE INDEX temp.sampled_id ON sampled(id)",
                        runs->last_has_several);
    kprof_store_exec(report, sql.data);
}

/* Tell of kernels whose launches not all runs have. */
static void tell_kernels(kprof_report *report, kprof_runs *runs)
{
    enum { KERNELS_TOLD = 4 };
    size_t count = 0;
    static const char query[] =
        "SELECT function, iif(count(*)<?, 0, min(n)), max(n) FROM (SELECT function, source, count(*) AS n FROM "
        "placed GROUP BY function, source) WHERE function IN (SELECT function FROM placed WHERE NOT EXISTS(SELECT 1 "
        "FROM whole WHERE whole.shape=placed.shape AND whole.turn=placed.turn)) GROUP BY function ORDER BY function";
    KPROF_EACH_ROW(rows, report, query, "i", (int64_t)runs->count) {
        const char *name = kprof_store_column(rows.row, 0);
        const int64_t least = sqlite3_column_int64(rows.row, 1), most = sqlite3_column_int64(rows.row, 2);
        runs->are_moved = runs->are_moved || least == most;
        if (++count > KERNELS_TOLD)
            continue;
        if (least == most)
            kprof_log(KPROF_LOG_WARNING,
                      "%s: all runs have it as often (%ld), but at other places or with other shapes", name, most);
        else
            kprof_log(KPROF_LOG_WARNING, "%s: one run has it %ld time%s, another one %ld time%s", name, least,
                      least == 1 ? "" : "s", most, most == 1 ? "" : "s");
    }
    if (count > KERNELS_TOLD)
        kprof_log(KPROF_LOG_WARNING, "and %zu more kernels", count - KERNELS_TOLD);
}

static void tell_left_out(kprof_report *report, kprof_runs *runs)
{
    const int64_t all = kprof_store_integer(report, "SELECT count(*) FROM placed");
    const int64_t taken = kprof_store_integer(report, "SELECT count(*) FROM bases");
    runs->taken = (uint64_t)taken;
    runs->left_out = (uint64_t)(all - taken * (int64_t)runs->count);
    if (report->status != KPROF_OK || runs->left_out == 0)
        return;
    const char *one = runs->of_ranges ? "range" : "launch", *several = runs->of_ranges ? "ranges" : "launches";
    kprof_log(runs->order == KPROF_ORDER_RELAXED ? KPROF_LOG_WARNING : KPROF_LOG_ERROR,
              "%lu of %ld %s of the %zu runs %s left out, since not every run has %s; %ld %s match%s", runs->left_out,
              all, all == 1 ? one : several, runs->count, runs->left_out == 1 ? "is" : "are",
              runs->left_out == 1 ? "it" : "them", taken, taken == 1 ? one : several, taken == 1 ? "es" : "");
    tell_kernels(report, runs);
}

/* A launch with all parts of a metric gets their greatest. A range gets that of those it has, and the reason tells. */
static void put_greatest(kprof_report *report, const kprof_greatest *metric, bool of_ranges)
{
    KPROF_AUTO(kprof_strbuf) parts = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < metric->parts->count; i++)
        kprof_strbuf_printf(&parts, "%s\"%s\"", i == 0 ? "[" : ",", metric->parts->items[i]);
    kprof_strbuf_puts(&parts, "]");
    const char *needed = of_ranges ? "some" : "all";
    kprof_store_ask(report, PUT_GREATEST, "ssss", metric->name, metric->chip, parts.data, needed);
    kprof_store_ask(report, TELL_GREATEST, "ssss", metric->name, metric->chip, parts.data, needed);
}

kprof_status kprof_merge_join_runs(kprof_report *into, kprof_runs *runs)
{
    kprof_store_note(into, kprof_report_begin(into));
    match_launches_of_runs(into, runs);
    tell_left_out(into, runs);
    kprof_store_exec(into, JOIN_VALUES_OF_RUNS);
    for (size_t i = 0; i < runs->greatest_count; i++)
        put_greatest(into, &runs->greatest[i], runs->of_ranges);
    kprof_store_exec(into, LEAVE_BASES);
    derive_all(into);
    kprof_store_exec(into, FORGET_RUNS);
    return into->status == KPROF_OK ? kprof_report_commit(into) : into->status;
}
