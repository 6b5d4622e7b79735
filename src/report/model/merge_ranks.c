/* Joins the launches of ranks that collected other passes each: those of one kernel and shape that come at the same
 * place in their order become one launch, which has the values of all. */
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

static const char join_launches[] =
    "INSERT INTO main.value SELECT base, metric_id, value FROM main.value AS other JOIN joined ON "
    "joined.id=other.launch_id WHERE other.value IS NOT NULL ON CONFLICT DO UPDATE SET value=excluded.value WHERE "
    "value.value IS NULL;"
    "UPDATE main.launch SET passes=passes+(SELECT sum(other.passes) FROM main.launch AS other JOIN joined ON "
    "joined.id=other.id WHERE base=main.launch.id), "
    "reason=reason || iif(reason='', '', '; ') || 'its passes are of ' || (SELECT count(*)+1 FROM joined WHERE "
    "base=main.launch.id) || ' launches, one of each rank, of this kernel and shape at the same place in their order' "
    "WHERE id IN (SELECT base FROM joined);"
    "UPDATE main.launch SET measured=(SELECT count(value) FROM main.value JOIN main.metric ON metric.id=metric_id "
    "WHERE "
    "launch_id=main.launch.id AND kind='hardware') WHERE id IN (SELECT base FROM joined);"
    "DELETE FROM main.value WHERE launch_id IN (SELECT id FROM joined);"
    "DELETE FROM main.nvtx WHERE launch_id IN (SELECT id FROM joined);"
    "DELETE FROM main.graph_node WHERE launch_id IN (SELECT id FROM joined);"
    "DELETE FROM main.launch_stack WHERE launch_id IN (SELECT id FROM joined);"
    "DELETE FROM main.launch WHERE id IN (SELECT id FROM joined);";

static const char forget[] = "DROP TABLE ranked; DROP TABLE placed; DROP TABLE joined";

/* The values of a launch, by the names of their metrics. */
typedef struct launch_values {
    kprof_report *report;
    kprof_names names; /* -> id of the metric */
    kprof_strlist texts;
    double *values; /* [size], by id */
    size_t size;
    int64_t launch;
    kprof_status status;
} launch_values;

static kprof_status take_metric(void *user, sqlite3_stmt *row)
{
    launch_values *all = user;
    const size_t id = (size_t)sqlite3_column_int64(row, 0);
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const bool added = name && kprof_strlist_add(&all->texts, name) &&
                       kprof_names_add(&all->names, all->texts.items[all->texts.count - 1], id);
    all->size = id + 1 > all->size ? id + 1 : all->size;
    return added ? KPROF_OK : kprof_store_no_memory(all->report);
}

static double look_up(void *user, const char *name)
{
    const launch_values *all = user;
    const size_t id = kprof_names_find(&all->names, name);
    return id == KPROF_NAMES_NONE ? NAN : all->values[id];
}

static void put(void *user, int64_t metric, double value)
{
    launch_values *all = user;
    if (all->status == KPROF_OK && !isnan(value))
        all->status = kprof_store_write(all->report, KPROF_SQL_SET_VALUE, "iid", all->launch, metric, value);
    if ((size_t)metric < all->size)
        all->values[metric] = value;
}

/* Compute again what follows from the values of several ranks. */
static kprof_status derive(launch_values *all, const char *chip)
{
    sqlite3_stmt *row = NULL;
    for (size_t i = 0; i < all->size; i++)
        all->values[i] = NAN;
    int rc = sqlite3_prepare_v2(all->report->db, "SELECT metric_id, value FROM main.value WHERE launch_id=?1", -1, &row,
                                NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(row, 1, all->launch);
    while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        if (sqlite3_column_type(row, 1) != SQLITE_NULL && (uint64_t)sqlite3_column_int64(row, 0) < all->size)
            all->values[sqlite3_column_int64(row, 0)] = sqlite3_column_double(row, 1);
    sqlite3_finalize(row);
    if (rc != SQLITE_OK)
        return kprof_store_fail(all->report, "reading values");
    const kprof_derived_sink sink = {look_up, put, all};
    kprof_derived_evaluate(all->report, chip, &sink);
    return all->status;
}

/* The ids of launches that were joined, and their chips. */
typedef struct base_list {
    launch_values *values;
    int64_t *ids; /* [chips.count] */
    kprof_strlist chips;
} base_list;

static kprof_status take_base(void *user, sqlite3_stmt *row)
{
    base_list *list = user;
    const char *chip = (const char *)sqlite3_column_text(row, 1);
    int64_t *id = KPROF_APPEND(list->ids, list->chips.count);
    if (!id || !chip || !kprof_strlist_add(&list->chips, chip))
        return kprof_store_no_memory(list->values->report);
    *id = sqlite3_column_int64(row, 0);
    return KPROF_OK;
}

static kprof_status derive_all(kprof_report *report)
{
    launch_values all = {.report = report};
    base_list bases = {.values = &all};
    kprof_status status = kprof_report_load_plans(report);
    if (status == KPROF_OK)
        status = kprof_store_query(report, "SELECT id, name FROM main.metric ORDER BY id", take_metric, &all);
    if (status == KPROF_OK)
        status = kprof_store_query(report,
                                   "SELECT launch.id, chip FROM main.launch JOIN main.device ON device.id=device_id "
                                   "WHERE launch.id IN (SELECT base FROM joined) ORDER BY launch.id",
                                   take_base, &bases);
    if (status == KPROF_OK && !(all.values = calloc(all.size + 1, sizeof *all.values)))
        status = kprof_store_no_memory(report);
    for (size_t i = 0; i < bases.chips.count && status == KPROF_OK; i++) {
        all.launch = bases.ids[i];
        status = derive(&all, bases.chips.items[i]);
    }
    kprof_names_free(&all.names);
    kprof_strlist_free(&all.texts);
    kprof_strlist_free(&bases.chips);
    free(bases.ids);
    free(all.values);
    return status;
}

static void tell_incomplete(kprof_report *report)
{
    int64_t count = 0;
    static const char incomplete[] =
        "SELECT count(*) FROM (SELECT count(*) AS ranks FROM placed GROUP BY shape, turn) WHERE ranks<(SELECT "
        "count(DISTINCT source) FROM placed)";
    if (kprof_store_integer(report, incomplete, &count) == KPROF_OK && count > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%lld launch%s not measured by all ranks, and lack%s the passes of the others: ranks join where they "
                  "launch the same kernels in the same order",
                  (long long)count, count == 1 ? " was" : "es were", count == 1 ? "s" : "");
}

/* The ranks that the reports name. */
typedef struct rank_facts {
    int64_t reports, ranks;        /* all, and those of ranks */
    int64_t distinct, sizes, size; /* different ranks; sizes of jobs, and the largest */
} rank_facts;

static kprof_status take_facts(void *user, sqlite3_stmt *row)
{
    *(rank_facts *)user =
        (rank_facts){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                     sqlite3_column_int64(row, 3), sqlite3_column_int64(row, 4)};
    return KPROF_OK;
}

/* Are these the reports of ranks of one job that shared its passes? Warns where they are of ranks, but do not fit. */
static kprof_status fit_together(kprof_report *report, bool *fit)
{
    static const char query[] =
        "SELECT (SELECT count(*) FROM main.source), count(*), count(DISTINCT value), "
        "count(DISTINCT substr(value, instr(value, ' of '))), max(CAST(substr(value, instr(value, ' of ')+4) AS INT)) "
        "FROM main.source, json_each(iif(json_valid(sets), sets, '[]')) WHERE value LIKE '" KPROF_RANK_OF " % of %'";
    rank_facts of = {0};
    kprof_status status = kprof_store_query(report, query, take_facts, &of);
    *fit = status == KPROF_OK && of.reports > 1 && of.reports == of.ranks && of.ranks == of.distinct && of.sizes == 1;
    if (status == KPROF_OK && of.ranks > 0 && !*fit)
        kprof_log(KPROF_LOG_WARNING, "not all reports are of different ranks of one job with --rank-passes, so their "
                                     "launches are not joined");
    else if (*fit && of.ranks < of.size)
        kprof_log(KPROF_LOG_WARNING, "these are %lld of %lld ranks of the job: the passes of the others are missing",
                  (long long)of.ranks, (long long)of.size);
    return status;
}

kprof_status kprof_merge_join_ranks(kprof_report *into)
{
    bool fit = false;
    kprof_status status = fit_together(into, &fit);
    if (status != KPROF_OK || !fit)
        return status;
    status = kprof_report_begin(into);
    if (status == KPROF_OK)
        status = kprof_store_exec(into, match_launches);
    if (status == KPROF_OK)
        tell_incomplete(into);
    if (status == KPROF_OK)
        status = kprof_store_exec(into, join_launches);
    if (status == KPROF_OK)
        status = derive_all(into);
    if (status == KPROF_OK)
        status = kprof_store_exec(into, forget);
    return status == KPROF_OK ? kprof_report_commit(into) : status;
}
