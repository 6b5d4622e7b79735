/* Reads the values of one pair of groups after the other, compares them, and then judges all kernels together. */
#include "report/diff/diff.h"
#include "report/model/witness.h"
#include "report/store/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX ((size_t)1 << 23) /* values of one group that are kept: 64 MiB of them, whatever a report says */

/* Look up values one by one if at most one in this many is wanted. */
#define FEW_METRICS 3

/* A message about an unknown metric names this many that may be meant. */
#define NAMES_TOLD 3

/* Reads the values of a report's launches. */
typedef struct side_reader {
    const kprof_model *model;
    kprof_value_reader reader;
    size_t lookups; /* values of a launch that are found one by one; 0: all are read */
    double *values; /* [metric_count of the model] */
    bool *asked;
} side_reader;

typedef struct comparer {
    const kprof_page_context *context;
    kprof_diff *diff;
    kprof_work *work;
    side_reader readers[KPROF_SIDES];
} comparer;

/* Look up the metrics of the comparison, and the witnesses of samples, one by one if they are few. */
static void open_values(const kprof_model_walk *walk, const kprof_diff_metrics *metrics, int side, side_reader *out)
{
    const kprof_model *model = walk->model;
    size_t *wanted = kprof_calloc(metrics->count + model->witness_count + 1, sizeof *wanted), count = 0;
    for (size_t i = 0; i < metrics->count; i++)
        if (metrics->items[i].indexes[side] != SIZE_MAX)
            wanted[count++] = metrics->items[i].indexes[side];
    for (size_t i = 0; i < model->witness_count; i++)
        wanted[count++] = model->witnesses[i];
    out->lookups = count < model->metric_count / FEW_METRICS ? count : 0;
    if (out->lookups)
        kprof_value_reader_open_some(walk, wanted, count, &out->reader);
    else
        kprof_value_reader_open(walk, &out->reader);
    free(wanted);
}

/* Fill columns[metric * launches + launch] with what is compared; samples that are set apart are NaN. */
static void read_columns(comparer *with, int side, const kprof_launch_group *group, kprof_sample *columns)
{
    const kprof_diff_metrics *metrics = &with->diff->metrics;
    side_reader *reader = &with->readers[side];
    for (size_t i = 0; i < columns->count; i++) {
        kprof_value_reader_read(&reader->reader, group->ids[i], reader->values, reader->asked);
        const kprof_model_launch sample = {.values = reader->values};
        const bool agrees = group->replayed > 0 || kprof_disagreements(reader->model, &sample, NULL) == 0;
        for (size_t k = 0; k < metrics->count; k++) {
            const size_t index = metrics->items[k].indexes[side];
            const bool is_there = agrees && index != SIZE_MAX;
            columns->values[k * columns->count + i] = is_there ? reader->values[index] : NAN;
        }
    }
}

/* Compare all metrics; columns[side].count launches are in each column of a side. */
static void compare_columns(const comparer *with, const kprof_sample columns[KPROF_SIDES], kprof_diff_kernel *kernel)
{
    const kprof_diff *diff = with->diff;
    for (size_t k = 0; k < diff->metrics.count; k++) {
        const kprof_diff_metric *metric = &diff->metrics.items[k];
        kprof_changed_values values = {.metric_class = metric->metric_class, .is_tested = metric->is_tested};
        for (int side = 0; side < KPROF_SIDES; side++)
            values.sides[side] = (kprof_sample){columns[side].values + k * columns[side].count, columns[side].count};
        kprof_change_of(&values, &diff->request->tolerances, &kernel->changes[k]);
    }
}

/* The launches of a group whose values are read. */
static size_t launches_read(const kprof_diff *diff, const kprof_launch_group *group)
{
    const size_t most = CELLS_MAX / (diff->metrics.count + 1) + KPROF_REPEATS_MIN;
    return group->id_count < most ? group->id_count : most;
}

/* Count what it costs to compare a pair, before anything of it is read: a change of each metric, whose row has the
 * kernel's names, and the values of each launch. */
static void charge_pair(comparer *with, const kprof_diff_kernel *kernel)
{
    const kprof_diff *diff = with->diff;
    uint64_t values = 0, of_change = KPROF_WORK_OF_CHANGE;
    for (int side = 0; side < KPROF_SIDES; side++) {
        const kprof_launch_group *group = kernel->groups[side];
        const side_reader *reader = &with->readers[side];
        const uint64_t of_launch = reader->model->metric_count + KPROF_WORK_OF_LOOKUP * reader->lookups +
                                   KPROF_WORK_OF_SORTING * diff->metrics.count +
                                   (group->replayed == 0 ? reader->model->witness_count : 0);
        of_change += strlen(group->kernel->demangled) / KPROF_NAME_BYTES_OF_VALUE;
        values += of_launch * launches_read(diff, group);
    }
    kprof_work_charge(with->work, values + of_change * diff->metrics.count);
}

static void compare_pair(comparer *with, kprof_diff_kernel *kernel)
{
    kprof_diff *diff = with->diff;
    kprof_sample columns[KPROF_SIDES] = {{NULL, 0}, {NULL, 0}};
    kernel->changes = kprof_pool_calloc(diff->pool, diff->metrics.count + 1, sizeof *kernel->changes);
    kernel->gates = kprof_pool_calloc(diff->pool, diff->request->condition_count + 1, sizeof *kernel->gates);
    for (int side = 0; side < KPROF_SIDES; side++) {
        columns[side].count = launches_read(diff, kernel->groups[side]);
        diff->is_cut = diff->is_cut || kernel->groups[side]->id_count > columns[side].count;
        columns[side].values = kprof_calloc(diff->metrics.count * columns[side].count + 1, sizeof(double));
        read_columns(with, side, kernel->groups[side], &columns[side]);
    }
    compare_columns(with, columns, kernel);
    for (int side = 0; side < KPROF_SIDES; side++)
        free(columns[side].values);
}

/* If time changes and cycles change by less than half as much, clocks are the cause. */
static bool is_of_clocks(const kprof_diff_kernel *kernel)
{
    const kprof_change *time = &kernel->changes[KPROF_DIFF_TIME], *cycles = &kernel->changes[KPROF_DIFF_CYCLES];
    if (!kprof_change_is_repeated(cycles))
        return false;
    const double share =
        kprof_change_pct(cycles, cycles->shift.estimate) / kprof_change_pct(time, time->shift.estimate);
    return share < 0.5;
}

static kprof_judgement judge_repeats(kprof_diff_kernel *kernel, double tolerance_pct)
{
    const kprof_change *time = &kernel->changes[KPROF_DIFF_TIME];
    const double estimate = kprof_change_pct(time, time->shift.estimate);
    const double low = kprof_change_pct(time, time->shift.interval.low);
    const double high = kprof_change_pct(time, time->shift.interval.high);
    const bool is_worse = estimate > 0;
    if (low >= -tolerance_pct && high <= tolerance_pct)
        return KPROF_JUDGEMENT_SAME;
    if (!(fabs(estimate) > tolerance_pct))
        snprintf(kernel->reason, sizeof kernel->reason, "the interval reaches beyond %+.3g %%",
                 high > tolerance_pct ? tolerance_pct : -tolerance_pct);
    else if (!(kernel->p < 1 - KPROF_CONFIDENCE))
        snprintf(kernel->reason, sizeof kernel->reason, "may be chance: p = %.2g", kernel->p);
    else if (is_of_clocks(kernel))
        snprintf(kernel->reason, sizeof kernel->reason, "the cycles do not confirm it: a clock changed");
    else
        return is_worse ? KPROF_JUDGEMENT_WORSE : KPROF_JUDGEMENT_BETTER;
    return KPROF_JUDGEMENT_INCONCLUSIVE;
}

void kprof_diff_judge(kprof_diff_kernel *kernel, double tolerance_pct)
{
    const kprof_change *time = &kernel->changes[KPROF_DIFF_TIME];
    const size_t baseline = time->centers[KPROF_BASELINE].count, newer = time->centers[KPROF_NEW].count;
    kernel->reason[0] = '\0';
    if (kprof_change_is_repeated(time)) {
        kernel->verdict = judge_repeats(kernel, tolerance_pct);
        return;
    }
    if (baseline == newer)
        snprintf(kernel->reason, sizeof kernel->reason, "%zu repeat%s, %d are needed", newer, newer == 1 ? "" : "s",
                 KPROF_REPEATS_MIN);
    else
        snprintf(kernel->reason, sizeof kernel->reason, "%zu and %zu repeats, %d are needed", baseline, newer,
                 KPROF_REPEATS_MIN);
    kernel->verdict = KPROF_JUDGEMENT_INCONCLUSIVE;
}

/* p of a metric in each kernel that has enough repeats, corrected for their number; others are NaN. */
static void correct_p(const kprof_diff *diff, size_t metric, double *p)
{
    for (size_t i = 0; i < diff->kernel_count; i++) {
        const kprof_change *change = diff->kernels[i].changes ? &diff->kernels[i].changes[metric] : NULL;
        p[i] = change && kprof_change_is_repeated(change) ? change->shift.p : NAN;
    }
    kprof_holm(p, diff->kernel_count);
}

/* With few repeats of many kernels, even the largest difference may be chance: say how many repeats are needed. */
static void tell_needed(size_t tested, kprof_diff_kernel *kernel)
{
    const kprof_change *time = &kernel->changes[KPROF_DIFF_TIME];
    const size_t needed = kprof_repeats_needed(tested, 1 - KPROF_CONFIDENCE), length = strlen(kernel->reason);
    const bool is_few = time->centers[KPROF_BASELINE].count < needed && time->centers[KPROF_NEW].count < needed;
    if (kernel->verdict != KPROF_JUDGEMENT_INCONCLUSIVE || !(kernel->p >= 1 - KPROF_CONFIDENCE) || !is_few)
        return;
    snprintf(kernel->reason + length, sizeof kernel->reason - length, "; %zu kernels need %zu repeats", tested, needed);
}

static void judge_all(kprof_diff *diff)
{
    KPROF_AUTO_FREE double *p = kprof_calloc(diff->kernel_count + 1, sizeof *p);
    correct_p(diff, KPROF_DIFF_TIME, p);
    const size_t tested = KPROF_SUM(i, diff->kernel_count, !isnan(p[i]));
    for (size_t i = 0; i < diff->kernel_count; i++) {
        diff->kernels[i].p = p[i];
        if (!diff->kernels[i].changes)
            continue;
        kprof_diff_judge(&diff->kernels[i], diff->request->tolerances.time_pct);
        tell_needed(tested, &diff->kernels[i]);
    }
}

static void check_condition(kprof_diff *diff, size_t index)
{
    const size_t metric = diff->condition_metrics[index];
    kprof_diff_outcome *outcome = diff->request->outcome;
    KPROF_AUTO_FREE double *p = kprof_calloc(diff->kernel_count + 1, sizeof *p);
    correct_p(diff, metric, p);
    for (size_t i = 0; i < diff->kernel_count; i++) {
        kprof_diff_kernel *kernel = &diff->kernels[i];
        if (!kernel->changes)
            continue;
        const kprof_change *change = &kernel->changes[metric];
        kernel->gates[index] = kprof_condition_check(&diff->request->conditions[index], change, p[i]);
        if (kernel->gates[index] == KPROF_GATE_FAILED && metric == KPROF_DIFF_TIME && is_of_clocks(kernel))
            kernel->gates[index] = KPROF_GATE_INCONCLUSIVE;
        outcome->failed += kernel->gates[index] == KPROF_GATE_FAILED;
        outcome->inconclusive += kernel->gates[index] == KPROF_GATE_INCONCLUSIVE;
    }
}

/* Name similar metrics that the reports have, or the page that lists all. */
static kprof_status fail_unknown_metric(const kprof_model *const models[KPROF_SIDES], const kprof_diff_request *request,
                                        const kprof_condition *condition)
{
    kprof_strlist names = KPROF_STRLIST_INIT, near = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) told = KPROF_STRBUF_INIT;
    const kprof_model *baseline = models[KPROF_BASELINE], *newer = models[KPROF_NEW];
    for (size_t i = 0; i < newer->metric_count; i++)
        kprof_strlist_add(&names, newer->metrics[i].name);
    for (size_t i = 0; i < baseline->metric_count; i++)
        if (kprof_names_find(&newer->metric_names, baseline->metrics[i].name) == KPROF_NAMES_NONE)
            kprof_strlist_add(&names, baseline->metrics[i].name);
    kprof_nearest_few(condition->metric, &names, NAMES_TOLD, &near);
    for (size_t i = 0; i < near.count; i++)
        kprof_strbuf_printf(&told, "%s\"%s\"",
                            i == 0               ? "did you mean "
                            : i + 1 < near.count ? ", "
                                                 : " or ",
                            near.items[i]);
    if (near.count == 0)
        kprof_strbuf_printf(&told, "kprof report %s --page raw lists its metrics", request->settings[KPROF_NEW].file);
    kprof_status status =
        kprof_fail(KPROF_UNKNOWN_NAME, "--fail-on \"%s\": metric \"%s\" is in neither report; %s%s", condition->text,
                   condition->metric, kprof_strbuf_text(&told), near.count ? "?" : "");
    KPROF_FREE_LISTS(&names, &near);
    return status;
}

/* The metrics of the conditions are compared and tested too. */
static kprof_status find_condition_metrics(const kprof_model *const models[KPROF_SIDES], kprof_diff *diff)
{
    const kprof_diff_request *request = diff->request;
    diff->condition_metrics =
        kprof_pool_calloc(diff->pool, request->condition_count + 1, sizeof *diff->condition_metrics);
    for (size_t i = 0; i < request->condition_count; i++) {
        size_t metric = kprof_diff_metric_of(&diff->metrics, models, request->conditions[i].metric);
        const kprof_diff_metric *found = &diff->metrics.items[metric];
        const bool in_baseline = found->indexes[KPROF_BASELINE] != SIZE_MAX;
        const bool in_new = found->indexes[KPROF_NEW] != SIZE_MAX;
        if (!in_baseline && !in_new)
            return fail_unknown_metric(models, request, &request->conditions[i]);
        if (!in_baseline || !in_new)
            return kprof_fail(KPROF_UNKNOWN_NAME,
                              "--fail-on \"%s\": only %s has the metric \"%s\"; collect it in both runs",
                              request->conditions[i].text, request->settings[in_new ? KPROF_NEW : KPROF_BASELINE].file,
                              request->conditions[i].metric);
        kprof_status status = kprof_condition_settle_unit(&request->conditions[i], found->unit);
        if (status != KPROF_OK)
            return status;
        diff->metrics.items[metric].is_tested = true;
        diff->condition_metrics[i] = metric;
    }
    return KPROF_OK;
}

/* Make a kernel of each pair and of each group without one. */
static void list_kernels(kprof_diff *diff)
{
    const kprof_launch_pairs *pairs = &diff->pairs;
    const size_t most = pairs->group_counts[KPROF_BASELINE] + pairs->group_counts[KPROF_NEW];
    diff->kernels = kprof_pool_calloc(diff->pool, most + 1, sizeof *diff->kernels);
    for (size_t i = 0; i < pairs->count; i++) {
        kprof_diff_kernel *kernel = &diff->kernels[diff->kernel_count++];
        kernel->match = pairs->pairs[i].match;
        for (int side = 0; side < KPROF_SIDES; side++)
            kernel->groups[side] = pairs->pairs[i].sides[side];
    }
    for (int side = 0; side < KPROF_SIDES; side++) {
        for (size_t i = 0; i < pairs->group_counts[side]; i++) {
            const kprof_launch_group *group = &pairs->groups[side][i];
            if (group->partner != SIZE_MAX)
                continue;
            kprof_diff_kernel *kernel = &diff->kernels[diff->kernel_count++];
            kernel->groups[side] = group;
            kernel->verdict = side == KPROF_BASELINE ? KPROF_JUDGEMENT_ONLY_BASELINE : KPROF_JUDGEMENT_ONLY_NEW;
        }
    }
}

/* The time that a change adds to or takes from all launches. */
static double time_at_stake(const kprof_diff_kernel *kernel)
{
    if (!kernel->changes)
        return 0;
    const double amount =
        fabs(kernel->changes[KPROF_DIFF_TIME].difference) * (double)kernel->groups[KPROF_NEW]->launches;
    return isnan(amount) ? 0 : amount;
}

static int by_importance(const void *a, const void *b)
{
    const kprof_diff_kernel *left = a, *right = b;
    const int verdicts = KPROF_COMPARE(left->verdict, right->verdict);
    const double left_time = time_at_stake(left), right_time = time_at_stake(right);
    const int times = KPROF_COMPARE(right_time, left_time);
    const int side = left->groups[KPROF_NEW] ? KPROF_NEW : KPROF_BASELINE;
    return verdicts ? verdicts : times ? times : KPROF_COMPARE(left->groups[side], right->groups[side]);
}

/* Return the status of the baseline, or that of the new report if the baseline could be read. */
static kprof_status status_of(const kprof_page_context *context)
{
    kprof_status status = kprof_report_status(context->reports[KPROF_BASELINE].file);
    return KPROF_THEN(status, kprof_report_status(context->reports[KPROF_NEW].file));
}

static kprof_status compare_all(comparer *with)
{
    kprof_diff *diff = with->diff;
    for (int side = 0; side < KPROF_SIDES; side++) {
        const kprof_page_report *report = &with->context->reports[side];
        side_reader *out = &with->readers[side];
        kprof_model_walk walk = {report->file, &report->model, NULL, true};
        out->model = &report->model;
        out->values = kprof_pool_calloc(report->model.pool, report->model.metric_count + 1, sizeof *out->values);
        out->asked = kprof_pool_calloc(report->model.pool, report->model.metric_count + 1, sizeof *out->asked);
        open_values(&walk, &with->diff->metrics, side, out);
    }
    for (size_t i = 0; i < diff->pairs.count && status_of(with->context) == KPROF_OK; i++)
        charge_pair(with, &diff->kernels[i]);
    for (size_t i = 0; i < diff->pairs.count && status_of(with->context) == KPROF_OK; i++)
        compare_pair(with, &diff->kernels[i]);
    for (int side = 0; side < KPROF_SIDES; side++)
        kprof_value_reader_close(&with->readers[side].reader);
    return status_of(with->context);
}

kprof_status kprof_diff_make(const kprof_page_context *context, kprof_diff *out)
{
    const kprof_page_report *reports = context->reports;
    const kprof_model *const models[KPROF_SIDES] = {&reports[KPROF_BASELINE].model, &reports[KPROF_NEW].model};
    kprof_model_walk walks[KPROF_SIDES];
    *out = (kprof_diff){.pool = models[KPROF_BASELINE]->pool, .request = context->content};
    for (int side = 0; side < KPROF_SIDES; side++)
        walks[side] = (kprof_model_walk){reports[side].file, models[side], context->options->filter, false};
    kprof_work work = {{reports[KPROF_BASELINE].file, reports[KPROF_NEW].file}, 0};
    comparer with = {.context = context, .diff = out, .work = &work};
    kprof_diff_metrics_find(models, context->options->all_rows, &out->metrics);
    kprof_status status = find_condition_metrics(models, out);
    KPROF_THEN(status, kprof_launch_pairs_find(walks, &work, &out->pairs));
    if (status == KPROF_OK)
        list_kernels(out);
    KPROF_THEN(status, compare_all(&with));
    *out->request->outcome = (kprof_diff_outcome){.pairs = out->pairs.count};
    if (status != KPROF_OK)
        return status;
    judge_all(out);
    for (size_t i = 0; i < out->request->condition_count; i++)
        check_condition(out, i);
    qsort(out->kernels, out->kernel_count, sizeof *out->kernels, by_importance);
    return KPROF_OK;
}
