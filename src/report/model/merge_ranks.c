/* Joins the launches of ranks, or of runs of one program, that collected other passes each: those of one kernel and
 * shape that come at the same place in their order become one launch, which has the values of all. */
#include "core/log.h"
#include "core/names.h"
#include "report/model/merge.h"
#include "report/store/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Launches with what they have in common, and their places among those of their rank. */
static const char match_launches[] =
    "CREATE TEMP TABLE ranked AS SELECT launch.id AS id, source_id AS source, mangled || ' ' || device.name || ' ' || "
    "grid_x || ' ' || grid_y || ' ' || grid_z || ' ' || block_x || ' ' || block_y || ' ' || block_z || ' ' || "
    "cluster_x || ' ' || cluster_y || ' ' || cluster_z || ' ' || dynamic_smem_bytes AS shape, 0 AS turn "
    "FROM main.launch JOIN main.process_source USING (process_id) JOIN main.kernel ON kernel.id=kernel_id "
    "JOIN main.device ON device.id=device_id WHERE measured>0;"
    "CREATE TEMP TABLE placed AS SELECT id, source, shape, row_number() OVER (PARTITION BY source, shape ORDER BY id) "
    "AS turn FROM ranked;"
    "CREATE INDEX temp.placed_place ON placed(shape, turn, source);"
    "CREATE TEMP TABLE joined AS SELECT id, (SELECT first.id FROM placed AS first WHERE first.shape=placed.shape AND "
    "first.turn=placed.turn ORDER BY first.source LIMIT 1) AS base FROM placed;"
    "DELETE FROM joined WHERE id=base;"
    "CREATE UNIQUE INDEX temp.joined_id ON joined(id);"
    "CREATE INDEX temp.joined_base ON joined(base);";

#define JOIN_VALUES                                                                                                    \
    "INSERT INTO main.value SELECT base, metric_id, value FROM main.value AS other JOIN joined ON "                    \
    "joined.id=other.launch_id WHERE other.value IS NOT NULL ON CONFLICT DO UPDATE SET value=excluded.value WHERE "    \
    "value.value IS NULL;"
#define COUNT_MEASURED                                                                                                 \
    "UPDATE main.launch SET measured=(SELECT count(value) FROM main.value JOIN main.metric ON metric.id=metric_id "    \
    "WHERE launch_id=main.launch.id AND kind='hardware') WHERE id IN (SELECT base FROM joined);"
#define REMOVE_LAUNCHES(which)                                                                                         \
    "DELETE FROM main.value WHERE launch_id IN (" which ");"                                                           \
    "DELETE FROM main.nvtx WHERE launch_id IN (" which ");"                                                            \
    "DELETE FROM main.graph_node WHERE launch_id IN (" which ");"                                                      \
    "DELETE FROM main.launch_stack WHERE launch_id IN (" which ");"                                                    \
    "DELETE FROM main.launch WHERE id IN (" which ");"

static const char join_launches[] = JOIN_VALUES
    "UPDATE main.launch SET passes=passes+(SELECT sum(other.passes) FROM main.launch AS other JOIN joined ON "
    "joined.id=other.id WHERE base=main.launch.id), "
    "reason=reason || iif(reason='', '', '; ') || 'its passes are of ' || (SELECT count(*)+1 FROM joined WHERE "
    "base=main.launch.id) || ' launches, one of each rank, of this kernel and shape at the same place in their order' "
    "WHERE id IN (SELECT base FROM joined);" COUNT_MEASURED REMOVE_LAUNCHES("SELECT id FROM joined");

static const char forget[] = "DROP TABLE ranked; DROP TABLE placed; DROP TABLE joined";

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
    sqlite3_stmt *row = kprof_store_compile(all->report, "SELECT metric_id, value FROM main.value WHERE launch_id=?1");
    sqlite3_bind_int64(row, 1, all->launch);
    while (kprof_store_next(all->report, row))
        if (sqlite3_column_type(row, 1) != SQLITE_NULL && (uint64_t)sqlite3_column_int64(row, 0) < all->size)
            all->values[sqlite3_column_int64(row, 0)] = sqlite3_column_double(row, 1);
    sqlite3_finalize(row);
    const kprof_derived_sink sink = {look_up, put, all};
    kprof_derived_evaluate(all->report, chip, &sink);
}

static void derive_all(kprof_report *report)
{
    static const char joined[] = "SELECT launch.id, chip FROM main.launch JOIN main.device ON device.id=device_id "
                                 "WHERE launch.id IN (SELECT base FROM joined) ORDER BY launch.id";
    launch_values all = {.report = report};
    kprof_store_note(report, kprof_report_load_plans(report));
    KPROF_AUTO(kprof_cursor) metrics = kprof_cursor_new(report, "SELECT id, name FROM main.metric ORDER BY id");
    while (kprof_cursor_next(&metrics)) {
        const size_t id = (size_t)sqlite3_column_int64(metrics.row, 0);
        kprof_names_keep(&all.names, kprof_store_column(metrics.row, 1), id);
        all.size = id + 1;
    }
    all.values = kprof_calloc(all.size + 1, sizeof *all.values);
    KPROF_AUTO(kprof_cursor) launches = kprof_cursor_new(report, joined);
    while (kprof_cursor_next(&launches)) {
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
    static const char query[] =
        "SELECT (SELECT count(*) FROM main.source), count(*), count(DISTINCT value), "
        "count(DISTINCT substr(value, instr(value, ' of '))), max(CAST(substr(value, instr(value, ' of ')+4) AS INT)) "
        "FROM main.source, json_each(iif(json_valid(sets), sets, '[]')) WHERE value LIKE '" KPROF_RANK_OF " % of %'";
    int64_t of[FACTS] = {0};
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, query);
    while (kprof_cursor_next(&rows))
        for (int i = 0; i < FACTS; i++)
            of[i] = sqlite3_column_int64(rows.row, i);
    const bool fit = of[REPORTS] > 1 && of[REPORTS] == of[RANKS] && of[RANKS] == of[DISTINCT] && of[SIZES] == 1;
    if (of[RANKS] > 0 && !fit)
        kprof_log(KPROF_LOG_WARNING, "not all reports are of different ranks of one job with --rank-passes, so their "
                                     "launches are not joined");
    else if (fit && of[RANKS] < of[SIZE])
        kprof_log(KPROF_LOG_WARNING, "these are %lld of %lld ranks of the job: the passes of the others are missing",
                  (long long)of[RANKS], (long long)of[SIZE]);
    return fit;
}

kprof_status kprof_merge_join_ranks(kprof_report *into)
{
    if (!fit_together(into))
        return into->status;
    kprof_store_note(into, kprof_report_begin(into));
    kprof_store_exec(into, match_launches);
    static const char incomplete[] =
        "SELECT count(*) FROM (SELECT count(*) AS ranks FROM placed GROUP BY shape, turn) WHERE ranks<(SELECT "
        "count(DISTINCT source) FROM placed)";
    const int64_t count = kprof_store_integer(into, incomplete);
    if (count > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%lld launch%s not measured by all ranks, and lack%s the passes of the others: ranks join where they "
                  "launch the same kernels in the same order",
                  (long long)count, count == 1 ? " was" : "es were", count == 1 ? "s" : "");
    kprof_store_exec(into, join_launches);
    derive_all(into);
    kprof_store_exec(into, forget);
    return into->status == KPROF_OK ? kprof_report_commit(into) : into->status;
}

/* Launches of runs with what has to agree, and their places among those. Processes of one executable are numbered in
 * the order of their lines, as several may start at once. */
static const char number_processes[] =
    "CREATE TEMP TABLE numbered AS SELECT process.id AS id, source_id AS source, executable || ' ' || row_number() "
    "OVER (PARTITION BY source_id, executable ORDER BY command_line, start_unix_ns, process.id) AS line FROM "
    "main.process JOIN main.process_source ON process_id=process.id;"
    "CREATE TEMP TABLE ranked AS SELECT launch.id AS id, source, line, function, line || ' ' || mangled || ' ' || "
    "device_id";
static const char *const further_keys[] = {
    [KPROF_MATCH_NAME] = "",
#define SHAPE                                                                                                          \
    " || ' ' || grid_x || ' ' || grid_y || ' ' || grid_z || ' ' || block_x || ' ' || block_y || ' ' || block_z"
    [KPROF_MATCH_GRID] = SHAPE,
    [KPROF_MATCH_ALL] = SHAPE " || ' ' || context || ' ' || stream",
};
static const char rank_launches[] = " AS shape, row_number() OVER (PARTITION BY process_id ORDER BY position, "
                                    "launch.id) AS place FROM main.launch JOIN "
                                    "numbered ON numbered.id=process_id JOIN main.kernel ON kernel.id=kernel_id;"
                                    "CREATE TEMP TABLE placed AS SELECT id, source, function, shape, ";
static const char match_runs[] =
    " AS turn FROM ranked;"
    "CREATE INDEX temp.placed_place ON placed(shape, turn, source);"
    "CREATE TEMP TABLE whole AS SELECT shape, turn, min(source) AS source FROM placed GROUP BY shape, turn HAVING "
    "count(*)=";
static const char join_runs[] =
    ";CREATE INDEX temp.whole_place ON whole(shape, turn);"
    "CREATE TEMP TABLE bases AS SELECT id FROM placed JOIN whole USING (shape, turn, source);"
    "CREATE UNIQUE INDEX temp.bases_id ON bases(id);"
    "CREATE TEMP TABLE joined AS SELECT placed.id AS id, first.id AS base FROM placed JOIN whole USING (shape, turn) "
    "JOIN placed AS first ON first.shape=whole.shape AND first.turn=whole.turn AND first.source=whole.source WHERE "
    "placed.id!=first.id;"
    "CREATE UNIQUE INDEX temp.joined_id ON joined(id);"
    "CREATE INDEX temp.joined_base ON joined(base);";

/* All that launches lack of a run with metrics of several passes has one reason. */
#define TOLD                                                                                                           \
    "iif(other.id NOT IN (SELECT id FROM sampled), other.reason, iif(other.measured>0, '', 'metrics that take "        \
    "several passes at once are measured where a launch can be repeated, or others of its kernel and shape, or "       \
    "ranges of its name, follow'))"
static const char join_values_of_runs[] = JOIN_VALUES
    "UPDATE main.launch SET passes=passes+(SELECT coalesce(sum(other.passes), 0) FROM main.launch AS other JOIN joined "
    "ON joined.id=other.id WHERE base=main.launch.id), profile_ns=profile_ns+(SELECT coalesce(sum(other.profile_ns), "
    "0) FROM main.launch AS other JOIN joined ON joined.id=other.id WHERE base=main.launch.id), "
    "reason=(SELECT coalesce(group_concat(told, '; '), '') FROM (SELECT DISTINCT " TOLD " AS told FROM "
    "main.launch AS other WHERE (other.id=main.launch.id OR other.id IN (SELECT id FROM joined WHERE "
    "base=main.launch.id)) AND other.reason!='') WHERE told!=''), replay_mode=iif(EXISTS(SELECT 1 FROM main.launch AS "
    "other WHERE other.measured>0 AND (other.id=main.launch.id OR other.id IN (SELECT id FROM joined WHERE "
    "base=main.launch.id))), 'application', 'none') WHERE id IN (SELECT id FROM bases);";
static const char leave_bases[] = COUNT_MEASURED REMOVE_LAUNCHES("SELECT id FROM placed EXCEPT SELECT id FROM bases")
#define LATER "(SELECT id FROM numbered WHERE source!=(SELECT min(source) FROM numbered))"
    "DELETE FROM main.seen WHERE process_id IN " LATER ";"
    "DELETE FROM main.message WHERE process_id IN " LATER ";"
    "DELETE FROM main.process_source; DELETE FROM main.source;"
    "DELETE FROM main.process WHERE id IN " LATER ";";
static const char forget_runs[] = "DROP TABLE numbered; DROP TABLE ranked; DROP TABLE placed; DROP TABLE whole; DROP "
                                  "TABLE sampled; DROP TABLE bases; DROP TABLE joined";

static void match_launches_of_runs(kprof_report *report, const kprof_runs *runs)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(
        &sql, "%s%s%s%s%s%zu%s", number_processes, further_keys[runs->match], rank_launches,
        runs->order == KPROF_ORDER_STRICT ? "place" : "row_number() OVER (PARTITION BY source, shape ORDER BY place)",
        match_runs, runs->count, join_runs);
    kprof_strbuf_printf(
        &sql,
        "CREATE TEMP TABLE sampled AS SELECT id FROM placed WHERE %d AND source=(SELECT max(source) FROM "
        "placed); CREATE UNIQUE INDEX temp.sampled_id ON sampled(id)",
        runs->last_has_several);
    kprof_store_exec(report, sql.data);
}

/* Tell of kernels whose launches not all runs have. */
static void tell_kernels(kprof_report *report, const kprof_runs *runs)
{
    enum { KERNELS_TOLD = 4 };
    char query[640];
    size_t count = 0;
    snprintf(
        query, sizeof query,
        "SELECT function, iif(count(*)<%zu, 0, min(n)), max(n) FROM (SELECT function, source, count(*) AS n FROM "
        "placed GROUP BY function, source) WHERE function IN (SELECT function FROM placed WHERE NOT EXISTS(SELECT 1 "
        "FROM whole WHERE whole.shape=placed.shape AND whole.turn=placed.turn)) GROUP BY function ORDER BY function",
        runs->count);
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, query);
    while (kprof_cursor_next(&rows)) {
        const char *name = kprof_store_column(rows.row, 0);
        const long long least = sqlite3_column_int64(rows.row, 1), most = sqlite3_column_int64(rows.row, 2);
        if (++count > KERNELS_TOLD)
            continue;
        if (least == most)
            kprof_log(KPROF_LOG_WARNING,
                      "%s: all runs have it as often (%lld), but at other places or with other shapes", name, most);
        else
            kprof_log(KPROF_LOG_WARNING, "%s: one run has it %lld time%s, another one %lld time%s", name, least,
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
              "%llu of %lld %s of the %zu runs are left out, since not every run has them; %lld %s match%s",
              (unsigned long long)runs->left_out, (long long)all, several, runs->count, (long long)taken,
              taken == 1 ? one : several, taken == 1 ? "es" : "");
    tell_kernels(report, runs);
}

#define FROM_PARTS                                                                                                     \
    "FROM main.launch JOIN main.device ON device.id=device_id JOIN main.value ON launch_id=launch.id JOIN "            \
    "main.metric "                                                                                                     \
    "ON metric.id=metric_id JOIN main.metric AS own ON own.name=?1 WHERE chip=?2 AND metric.name IN (SELECT value "    \
    "FROM "                                                                                                            \
    "json_each(?3)) GROUP BY launch.id HAVING count(value.value)"
#define GREATEST_OF_SOME "a throughput is the greatest of those of its parts that were measured, and not all were"

/* A launch with all parts of a metric gets their greatest. A range gets that of those it has, and the reason tells. */
static void put_greatest(kprof_report *report, const kprof_greatest *metric, bool of_ranges)
{
    static const char sql[] = "INSERT INTO main.value SELECT launch.id, own.id, max(value.value) " FROM_PARTS
                              ">=iif(?4='some', 1, json_array_length(?3)) ON CONFLICT DO UPDATE SET "
                              "value=excluded.value";
    static const char tell[] = "UPDATE main.launch SET reason=reason || iif(reason='', '', '; ') || '" GREATEST_OF_SOME
                               "' WHERE ?4='some' AND "
                               "instr(reason, '" GREATEST_OF_SOME "')=0 AND id IN (SELECT launch.id " FROM_PARTS
                               " BETWEEN 1 AND json_array_length(?3)-1)";
    KPROF_AUTO(kprof_strbuf) parts = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < metric->parts->count; i++)
        kprof_strbuf_printf(&parts, "%s\"%s\"", i == 0 ? "[" : ",", metric->parts->items[i]);
    kprof_strbuf_puts(&parts, "]");
    const char *const texts[] = {metric->name, metric->chip, parts.data, of_ranges ? "some" : "all", NULL};
    kprof_store_ask(report, sql, texts);
    kprof_store_ask(report, tell, texts);
}

kprof_status kprof_merge_join_runs(kprof_report *into, kprof_runs *runs)
{
    kprof_store_note(into, kprof_report_begin(into));
    match_launches_of_runs(into, runs);
    tell_left_out(into, runs);
    kprof_store_exec(into, join_values_of_runs);
    for (size_t i = 0; i < runs->greatest_count; i++)
        put_greatest(into, &runs->greatest[i], runs->of_ranges);
    kprof_store_exec(into, leave_bases);
    derive_all(into);
    kprof_store_exec(into, forget_runs);
    return into->status == KPROF_OK ? kprof_report_commit(into) : into->status;
}
