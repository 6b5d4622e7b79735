/* Rolls up each group once to rank it; pages do it again for the rows that they show. */
#include "report/page/ranking.h"
#include "report/model/census.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMPUTE "sm__throughput.avg.pct_of_peak_sustained_elapsed"
#define MEMORY  "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
#define WARPS   "sm__warps_active.avg.pct_of_peak_sustained_active"

const kprof_findings *kprof_ranking_evaluate(kprof_ranking *ranking, const kprof_group *group)
{
    ranking->rolled_up = kprof_rollup_finish(ranking->groups.rollup, group->device->chip_index, group->totals);
    if (!ranking->rules || (group->not_measured >= group->launches && !group->code))
        return NULL;
    const kprof_place_values of = kprof_places_values(ranking->finder, group->code, ranking->rolled_up.values);
    return kprof_rules_apply(ranking->rules, of.values, of.counters);
}

/* All but the shares, which need all rows. */
static void fill_row(kprof_ranking *ranking, const kprof_group *group, kprof_ranked *out)
{
    *out = (kprof_ranked){.group = group, .time_ns = kprof_group_time_ns(group), .minimum_ns = NAN, .maximum_ns = NAN};
    const kprof_findings *findings = kprof_ranking_evaluate(ranking, group);
    const kprof_found *best = findings ? findings->verdict.best : NULL;
    out->gain_pct = best && !best->finding->gain_is_local ? best->gain_pct : NAN; /* of the kernel's own time */
    out->compute_pct = kprof_model_value(ranking->groups.model, ranking->rolled_up.values, COMPUTE);
    out->memory_pct = kprof_model_value(ranking->groups.model, ranking->rolled_up.values, MEMORY);
    out->occupancy_pct = kprof_model_value(ranking->groups.model, ranking->rolled_up.values, WARPS);
    if (group->duration_count > 0) {
        out->minimum_ns = group->totals[ranking->groups.duration].minimum;
        out->maximum_ns = group->totals[ranking->groups.duration].maximum;
    }
    if (group->duration_count > 0)
        memcpy(ranking->durations, group->durations, group->duration_count * sizeof *group->durations);
    out->repeats = kprof_repeats_of(ranking->durations, group->duration_count, KPROF_CONFIDENCE);
    out->median_ns = out->repeats.center.median;
    if (group->configurations > 1)
        out->repeats = (kprof_repeats){{0, NAN, NAN}, {NAN, NAN}, false};
}

static const kprof_census_total *find_total(const kprof_census *census, const kprof_group *group)
{
    kprof_model_census shape = {.dynamic_smem_bytes = group->shape.dynamic_smem_bytes};
    memcpy(shape.grid, group->shape.grid, sizeof shape.grid);
    memcpy(shape.block, group->shape.block, sizeof shape.block);
    return kprof_census_find(census,
                             &(kprof_census_total){.kernel = group->kernel, .device = group->device, .shape = &shape});
}

/* A census tells how long all launches took, whether they were measured or not. Groups of one kernel, such as those of
 * launches and of samples, share its time by their launches. */
static void take_census(kprof_ranking *ranking, const kprof_census *census, uint64_t *sums)
{
    for (size_t i = 0; i < ranking->count; i++) {
        const kprof_census_total *total = find_total(census, ranking->rows[i].group);
        if (total)
            sums[total - census->items] += ranking->rows[i].group->launches;
    }
    for (size_t i = 0; i < ranking->count; i++) {
        kprof_ranked *row = &ranking->rows[i];
        const kprof_census_total *total = find_total(census, row->group);
        const double share = total ? (double)row->group->launches / (double)sums[total - census->items] : NAN;
        row->time_ns = total ? total->total_ns * share : row->time_ns;
        row->counted = total ? (uint64_t)((double)total->launches * share + 0.5) : 0;
    }
    ranking->time_ns = census->total_ns;
}

static kprof_status weigh_by_census(const kprof_page_context *context, kprof_ranking *ranking)
{
    const kprof_model_walk walk = {context->reports->file, ranking->groups.model, context->options->filter, false};
    const kprof_grouping by = ranking->groups.by;
    kprof_census census;
    if (by != KPROF_GROUP_KERNEL && by != KPROF_GROUP_CONFIG)
        return KPROF_OK;
    kprof_status status =
        kprof_census_make(&walk, by == KPROF_GROUP_CONFIG ? KPROF_CENSUS_OF_SHAPES : KPROF_CENSUS_OF_DEVICES, &census);
    KPROF_AUTO_FREE uint64_t *sums = kprof_calloc(census.count + 1, sizeof *sums);
    if (status == KPROF_OK && census.count > 0)
        take_census(ranking, &census, sums);
    return status;
}

static void share_time(kprof_ranking *ranking)
{
    const double sum = KPROF_SUM(i, ranking->count, isnan(ranking->rows[i].time_ns) ? 0 : ranking->rows[i].time_ns);
    if (isnan(ranking->time_ns)) /* no census tells it */
        ranking->time_ns = sum > 0 ? sum : NAN;
    for (size_t i = 0; i < ranking->count; i++) {
        kprof_ranked *row = &ranking->rows[i];
        row->share_pct = 100 * row->time_ns / ranking->time_ns;
        row->gain_pct = row->gain_pct * row->share_pct / 100;
    }
}

static double sort_value(const kprof_ranked *row, kprof_sort_key key)
{
    return key == KPROF_SORT_LAUNCHES   ? (double)row->group->launches
           : key == KPROF_SORT_TIME     ? row->time_ns
           : key == KPROF_SORT_DURATION ? row->median_ns
           : key == KPROF_SORT_COMPUTE  ? row->compute_pct
           : key == KPROF_SORT_MEMORY   ? row->memory_pct
                                        : row->gain_pct;
}

/* 0: neither comes first. Unknown values come last. */
static int by_value(double left, double right)
{
    if (isnan(left) || isnan(right))
        return isnan(left) - isnan(right);
    return (left < right) - (left > right);
}

static int compare_rows(const void *a, const void *b, void *key)
{
    const kprof_ranked *left = a, *right = b;
    const kprof_sort_key sort = *(const kprof_sort_key *)key;
    int order = sort == KPROF_SORT_NAME ? strcmp(left->group->kernel->demangled, right->group->kernel->demangled)
                                        : by_value(sort_value(left, sort), sort_value(right, sort));
    if (order == 0)
        order = by_value(left->time_ns, right->time_ns);
    return order ? order : KPROF_COMPARE(left->group, right->group);
}

/* "yes" or "no" where there are enough launches of one shape for an interval. */
static kprof_emit_field stable_field(const kprof_ranked *row)
{
    const char *stable = isnan(row->repeats.interval.low) ? NULL : row->repeats.is_stable ? "yes" : "no";
    return kprof_field_text("stable", "Stable", stable, .folds = true,
                            .missing = row->group->configurations > 1 ? "n/a" : "few");
}

kprof_emit_field kprof_field_little_to_gain(const kprof_findings *findings)
{
    return kprof_field_text("little_to_gain", "Little to gain",
                            findings ? kprof_verdict_little_to_gain(&findings->verdict) : NULL);
}

kprof_emit_field kprof_verdict_field(kprof_emit_field field, const char *otherwise)
{
    field.missing = otherwise;
    return kprof_field_with_role(field, KPROF_ROLE_VERDICT);
}

void kprof_ranked_verdict_make(const kprof_findings *findings, bool base_units, kprof_ranked_verdict *out)
{
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++)
        out->rows[i] = findings ? kprof_verdict_describe(findings, i, base_units) : (kprof_verdict_text){.value = NAN};
    const kprof_verdict_text *limit = &out->rows[KPROF_ROW_LIMIT], *stall = &out->rows[KPROF_ROW_STALL],
                             *occupancy = &out->rows[KPROF_ROW_OCCUPANCY];
    const kprof_emit_field fields[KPROF_RANKED_VERDICT] = {
        machine(kprof_field_text("limit", "Limit", kprof_strbuf_or_null(&limit->name))),
        machine(kprof_field_pct("limit_pct", "At", limit->value)),
        kprof_verdict_field(kprof_field_text("limit_text", "Limited by", kprof_strbuf_or_null(&limit->text)), NULL),
        machine(kprof_field_text("stall", "Top stall", kprof_strbuf_or_null(&stall->name))),
        machine(kprof_field_pct("stall_pct", "Of a warp's time", stall->value)),
        kprof_verdict_field(kprof_field_text("stall_text", "Top stall", kprof_verdict_known_text(stall)), "not known"),
        machine(kprof_field_text("occupancy", "Occupancy limited by", kprof_strbuf_or_null(&occupancy->name))),
        machine(kprof_field_pct("occupancy_pct", "Possible occupancy", occupancy->value)),
        kprof_verdict_field(kprof_field_text("occupancy_text", "Occupancy", kprof_verdict_known_text(occupancy)),
                            "not known"),
    };
    memcpy(out->fields, fields, sizeof fields);
}

void kprof_ranked_verdict_free(kprof_ranked_verdict *verdict)
{
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++)
        kprof_verdict_text_free(&verdict->rows[i]);
}

kprof_ranked_numbers kprof_ranked_describe(const kprof_ranked *row)
{
    const kprof_group *group = row->group;
    const bool are_samples = group->source == KPROF_SOURCE_SAMPLES;
    const bool is_one = group->duration_count == 1; /* and all these are its duration */
    return (kprof_ranked_numbers){{
        kprof_field_pct("gain_pct", "Gain up to", row->gain_pct),
        kprof_field_pct("time_share_pct", "Of time", row->share_pct),
        kprof_field_ns("time", "Time", row->time_ns),
        kprof_field_amount("launches", "Launches", (int64_t)(row->counted ? row->counted : group->launches)),
        shown_if(kprof_field_amount("measured", "Measured", group->duration_count, .folds = true), row->counted > 0),
        machine_count("not_measured", "Not measured", group->not_measured),
        machine(kprof_field_real("samples", "Samples", are_samples ? (double)group->samples : NAN)),
        machine_count("disagreeing", "Passes disagree in", group->disagreeing),
        machine_count("configurations", "Shapes", group->configurations),
        kprof_field_ns("minimum", "Minimum", row->minimum_ns, .folds = true, .is_told = is_one),
        kprof_field_ns("median", "Median", row->median_ns),
        kprof_field_ns("maximum", "Maximum", row->maximum_ns, .folds = true, .is_told = is_one),
        machine(kprof_field_ns("mad", "Median deviation", row->repeats.center.mad)),
        machine(kprof_field_ns("low", "Median from", row->repeats.interval.low)),
        machine(kprof_field_ns("high", "Median to", row->repeats.interval.high)),
        stable_field(row),
        kprof_field_pct("compute_pct", "Compute", row->compute_pct, .folds = true),
        kprof_field_pct("memory_pct", "Memory", row->memory_pct, .folds = true),
    }};
}

kprof_status kprof_ranking_make(const kprof_page_context *context, kprof_ranking *out)
{
    const kprof_print_options *options = context->options;
    kprof_sort_key sort = options->sort;
    *out = (kprof_ranking){.time_ns = NAN};
    kprof_status status = kprof_groups_collect(context, &out->groups);
    if (status != KPROF_OK)
        return status;
    kprof_pool *pool = context->reports->model.pool;
    size_t most = 1;
    for (size_t i = 0; i < out->groups.count; i++)
        most = out->groups.items[i].duration_count > most ? out->groups.items[i].duration_count : most;
    out->durations = kprof_pool_calloc(pool, most, sizeof *out->durations);
    out->rows = kprof_pool_calloc(pool, out->groups.count + 1, sizeof *out->rows);
    out->finder = kprof_place_finder_new(out->groups.code);
    if (options->findings)
        out->rules = kprof_rules_new(options->findings, out->groups.model);
    for (size_t i = 0; i < out->groups.count; i++)
        fill_row(out, &out->groups.items[i], &out->rows[i]);
    out->count = out->groups.count;
    status = weigh_by_census(context, out);
    if (status != KPROF_OK)
        return status;
    share_time(out);
    qsort_r(out->rows, out->count, sizeof *out->rows, compare_rows, &sort);
    out->shown = options->top > 0 && options->top < out->count ? (size_t)options->top : out->count;
    return KPROF_OK;
}
