/* The table of what explains a change of the time: a new driver is a row here. */
#include "report/diff/diff.h"
#include "report/model/code.h"

#include <math.h>
#include <string.h>

typedef struct driver_row {
    const char *theme, *label;
    const char *names[3]; /* the first one that both reports have is taken */
} driver_row;

static const driver_row rows[] = {
    {"time", "Duration", {KPROF_TIME_METRIC}},
    {"time", "Cycles", {"gpc__cycles_elapsed.max", "sm__cycles_elapsed.max", "sm__cycles_active.avg"}},
    {"traffic", "DRAM bytes read", {"dram__bytes_read.sum"}},
    {"traffic", "DRAM bytes written", {"dram__bytes_write.sum"}},
    {"traffic", "DRAM bytes", {"dram__bytes.sum"}},
    {"traffic", "L2 traffic", {"lts__t_bytes.sum", "lts__t_sectors.sum"}},
    {"traffic", "L2 traffic from L1", {"lts__t_sectors_srcunit_tex.sum"}},
    {"traffic", "L2 hit rate", {"lts__t_sector_hit_rate.pct"}},
    {"traffic", "L1 hit rate", {"l1tex__t_sector_hit_rate.pct"}},
    {"instructions", "Instructions", {"smsp__inst_executed.sum", "sm__inst_executed.sum"}},
    {"instructions", "Global loads", {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"}},
    {"instructions", "Global stores", {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"}},
    {"instructions", "Local memory loads", {"l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum"}},
    {"occupancy", "Achieved occupancy", {"sm__warps_active.avg.pct_of_peak_sustained_active"}},
    {"occupancy", "Theoretical occupancy", {"sm__maximum_warps_per_active_cycle_pct"}},
    {"occupancy", "Registers per thread", {"launch__registers_per_thread"}},
    {"clocks", "SM clock", {"gpc__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second"}},
    {"clocks", "DRAM clock", {"dram__cycles_elapsed.avg.per_second"}},
};
#define ROW_COUNT COUNT_OF(rows)

/* Each reason of a stall is a driver. */
static const char stall_prefix[] = "smsp__average_warps_issue_stalled_";
static const char stall_suffix[] = "_per_issue_active.ratio";

static bool is_stall(const char *name)
{
    const size_t length = strlen(name), fixed = strlen(stall_prefix) + strlen(stall_suffix);
    return length > fixed && strncmp(name, stall_prefix, strlen(stall_prefix)) == 0 &&
           strcmp(name + length - strlen(stall_suffix), stall_suffix) == 0;
}

/* "Stalls: Long Scoreboard": as other pages call it, or by the metric's own word. */
static const char *stall_label(kprof_pool *pool, const char *name)
{
    const char *reason = name + strlen(stall_prefix);
    const size_t length = strlen(reason) - strlen(stall_suffix);
    const kprof_stall_reason *known = kprof_stall_reason_find(reason, length);
    return kprof_pool_keep(pool, known ? kprof_strprintf("Stalls: %s", known->label)
                                       : kprof_strprintf("Stalls: %.*s", (int)length, reason));
}

/* Add a metric that at least one report has, or that the user asked for. */
static kprof_diff_metric *add_metric(kprof_diff_metrics *metrics, const kprof_model *const models[KPROF_SIDES],
                                     const char *name, const char *label)
{
    kprof_diff_metric *metric = KPROF_POOL_ADD(models[KPROF_BASELINE]->pool, metrics->items, metrics->count);
    *metric = (kprof_diff_metric){.name = name, .unit = "", .theme = "other", .label = label};
    metric->metric_class = KPROF_CLASS_NOISY;
    for (int side = 0; side < KPROF_SIDES; side++) {
        metric->indexes[side] = kprof_names_find(&models[side]->metric_names, name);
        if (metric->indexes[side] == KPROF_NAMES_NONE)
            continue;
        const kprof_model_metric *known = &models[side]->metrics[metric->indexes[side]];
        metric->name = known->name;
        metric->unit = known->unit;
        metric->metric_class = kprof_class_of(known);
    }
    return metric;
}

static bool both_have(const kprof_model *const models[KPROF_SIDES], const char *name)
{
    return KPROF_ALL(side, KPROF_SIDES, kprof_names_find(&models[side]->metric_names, name) != KPROF_NAMES_NONE);
}

static void add_row(kprof_diff_metrics *metrics, const kprof_model *const models[KPROF_SIDES], const driver_row *row)
{
    const char *chosen = NULL;
    for (size_t i = 0; i < COUNT_OF(row->names) && row->names[i] && !chosen; i++)
        chosen = both_have(models, row->names[i]) ? row->names[i] : NULL;
    const bool is_time = strcmp(row->theme, "time") == 0;
    if (!chosen && !is_time)
        return;
    kprof_diff_metric *metric = add_metric(metrics, models, chosen ? chosen : row->names[0], row->label);
    metric->theme = row->theme;
    metric->is_tested = is_time;
}

void kprof_diff_metrics_find(const kprof_model *const models[KPROF_SIDES], bool all, kprof_diff_metrics *out)
{
    *out = (kprof_diff_metrics){0};
    for (size_t i = 0; i < ROW_COUNT; i++)
        add_row(out, models, &rows[i]);
    const size_t row_count = out->count;
    const kprof_model *baseline = models[KPROF_BASELINE];
    for (size_t i = 0; i < baseline->metric_count; i++) {
        const char *name = baseline->metrics[i].name;
        const bool is_driver = KPROF_ANY(k, row_count, out->items[k].indexes[KPROF_BASELINE] == i);
        if (is_driver || !both_have(models, name) || (!all && !is_stall(name)))
            continue;
        kprof_diff_metric *metric =
            add_metric(out, models, name, is_stall(name) ? stall_label(baseline->pool, name) : name);
        if (is_stall(name))
            metric->theme = "stalls";
    }
}

size_t kprof_diff_metric_of(kprof_diff_metrics *metrics, const kprof_model *const models[KPROF_SIDES], const char *name)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->items[i].name, name) == 0)
            return i;
    add_metric(metrics, models, name, name);
    return metrics->count - 1;
}

static double weight_of(const kprof_diff_metric *metric, const kprof_change *change, double stalls)
{
    const double difference = fabs(change->difference);
    if (isnan(difference) || difference == 0)
        return 0;
    if (strcmp(metric->unit, "%") == 0)
        return difference / 100;
    if (strcmp(metric->theme, "stalls") == 0)
        return difference / fmax(stalls, difference);
    const double baseline = fabs(change->centers[0].median);
    return baseline > 0 ? difference / baseline : 1;
}

void kprof_driver_weights(const kprof_diff_metrics *metrics, const kprof_change *changes, double *weights)
{
    double stalls = 0;
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->items[i].theme, "stalls") == 0 && !isnan(changes[i].centers[0].median))
            stalls += changes[i].centers[0].median;
    for (size_t i = 0; i < metrics->count; i++)
        weights[i] = weight_of(&metrics->items[i], &changes[i], stalls);
}
