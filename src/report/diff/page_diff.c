/* The page that compares two reports: how the runs differ, a verdict on each kernel, and what changed in it. */
#include "report/diff/diff.h"
#include "report/diff/moves.h"
#include "report/emit/grid.h"
#include "report/model/number.h"

#include <math.h>
#include <stdlib.h>

/* People see this many of the metrics that explain a change. */
#define DRIVERS_SHOWN 6

static const char *const verdicts[KPROF_JUDGEMENT_COUNT] = {
    [KPROF_JUDGEMENT_WORSE] = "worse",
    [KPROF_JUDGEMENT_BETTER] = "better",
    [KPROF_JUDGEMENT_INCONCLUSIVE] = "inconclusive",
    [KPROF_JUDGEMENT_SAME] = "same",
    [KPROF_JUDGEMENT_ONLY_BASELINE] = "only in the baseline",
    [KPROF_JUDGEMENT_ONLY_NEW] = "only in the new report",
};
static const char *const matches[KPROF_MATCH_COUNT] = {[KPROF_MATCH_SAME] = "same",
                                                       [KPROF_MATCH_DEVICE] = "other device",
                                                       [KPROF_MATCH_SHARED] = "other shared memory",
                                                       [KPROF_MATCH_RENAMED] = "renamed"};
static const char *const gates[] = {
    [KPROF_GATE_PASSED] = "passed", [KPROF_GATE_FAILED] = "FAILED", [KPROF_GATE_INCONCLUSIVE] = "inconclusive"};
static const char *const states[] = {
    [KPROF_CHANGE_UNKNOWN] = "not known", [KPROF_CHANGE_NONE] = "same", [KPROF_CHANGE_REAL] = "changed"};

typedef struct diff_page {
    const kprof_page_context *context;
    const kprof_diff *diff;
    kprof_emitter *emitter;
    char **short_names; /* [kernel_count] of the kernels, for lines of limited width; NULL: lines are not limited */
} diff_page;

/* Programs get the record in any case. */
static void show_if(const diff_page *page, kprof_emit_field *fields, size_t count, bool is_visible)
{
    for (size_t i = 0; i < count; i++)
        fields[i] = shown_if(fields[i], is_visible);
    kprof_show_record(page->emitter, fields, count);
}

#define pct_field(key, label, pct, ...) kprof_field_pct(key, label, pct, .is_signed = true, __VA_ARGS__)

/* People see it only if there are any. */
static kprof_emit_field verdict_field(const kprof_diff *diff, kprof_judgement verdict, const char *key,
                                      const char *label)
{
    const size_t count = KPROF_SUM(i, diff->kernel_count, diff->kernels[i].verdict == verdict);
    return shown_if(kprof_field_integer(key, label, (int64_t)count), count > 0);
}

/* "11 passed, 1 failed, 0 inconclusive": people see further only those that did not pass. */
static kprof_emit_field conditions_field(const kprof_diff *diff, char text[96])
{
    size_t counts[] = {[KPROF_GATE_PASSED] = 0, [KPROF_GATE_FAILED] = 0, [KPROF_GATE_INCONCLUSIVE] = 0};
    for (size_t i = 0; i < diff->kernel_count; i++)
        for (size_t k = 0; k < diff->request->condition_count && diff->kernels[i].gates; k++)
            counts[diff->kernels[i].gates[k]]++;
    snprintf(text, 96, "%zu passed, %zu failed, %zu inconclusive", counts[KPROF_GATE_PASSED], counts[KPROF_GATE_FAILED],
             counts[KPROF_GATE_INCONCLUSIVE]);
    return kprof_field_with_role(
        or_nothing(kprof_field_text("passed", "Conditions", diff->request->condition_count ? text : NULL)),
        KPROF_ROLE_PEOPLE);
}

static void show_comparison(const diff_page *page)
{
    const kprof_diff *diff = page->diff;
    const kprof_diff_request *request = diff->request;
    const size_t tested = KPROF_SUM(i, diff->kernel_count, !isnan(diff->kernels[i].p));
    char method[80], conditions[96];
    int length = snprintf(method, sizeof method, "%g %%", KPROF_CONFIDENCE * 100);
    if (tested > 1)
        snprintf(method + length, sizeof method - (size_t)length, ", corrected for %zu kernels (Holm)", tested);
    const kprof_emit_field fields[] = {
        kprof_field_text("baseline", "Baseline", request->settings[KPROF_BASELINE].file),
        kprof_field_text("new", "New", request->settings[KPROF_NEW].file),
        kprof_field_integer("kernels", "Kernels in both", diff->pairs.count),
        verdict_field(diff, KPROF_JUDGEMENT_WORSE, "worse", "Worse"),
        verdict_field(diff, KPROF_JUDGEMENT_BETTER, "better", "Better"),
        verdict_field(diff, KPROF_JUDGEMENT_INCONCLUSIVE, "inconclusive", "Inconclusive"),
        verdict_field(diff, KPROF_JUDGEMENT_SAME, "same", "Same"),
        verdict_field(diff, KPROF_JUDGEMENT_ONLY_BASELINE, "only_baseline", "Only in the baseline"),
        verdict_field(diff, KPROF_JUDGEMENT_ONLY_NEW, "only_new", "Only in the new report"),
        conditions_field(diff, conditions),
        kprof_field_text("change", "Change of times", "median of the differences of all pairs of launches"),
        kprof_field_text("confidence", "Confidence", method),
        machine(kprof_field_real("confidence_pct", "Confidence", KPROF_CONFIDENCE * 100)),
        machine(kprof_field_integer("kernels_tested", "Kernels tested", tested)),
        kprof_field_pct("time_tolerance_pct", "Tolerance of times", request->tolerances.time_pct),
        kprof_field_pct("bytes_tolerance_pct", "Tolerance of bytes", request->tolerances.traffic_pct),
        shown_if(kprof_field_text("launches", "Launches", diff->is_cut ? "only the first ones of some kernels" : "all"),
                 diff->is_cut),
    };
    kprof_list_begin(page->emitter, "comparison", "Comparison", KPROF_LIST_BLOCKS, true);
    kprof_show_record(page->emitter, fields, COUNT_OF(fields));
    page->emitter->ops->list_end(page->emitter);
}

static void show_differences(const diff_page *page, const kprof_run_differences *differences)
{
    kprof_list_begin(page->emitter, "differences", "Differences between the runs", KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < differences->count; i++) {
        const kprof_run_difference *row = &differences->items[i];
        const kprof_emit_field fields[] = {
            kprof_field_text("what", "What", row->what),
            kprof_field_text("baseline", "Baseline", row->values[KPROF_BASELINE]),
            kprof_field_text("new", "New", row->values[KPROF_NEW]),
            kprof_field_text("effect", "Effect", row->effect),
            machine(kprof_field_integer("misleads", "Misleads", row->misleads)),
        };
        kprof_show_record(page->emitter, fields, COUNT_OF(fields));
    }
    page->emitter->ops->list_end(page->emitter);
}

static const kprof_launch_group *group_of(const kprof_diff_kernel *kernel)
{
    return kernel->groups[KPROF_NEW] ? kernel->groups[KPROF_NEW] : kernel->groups[KPROF_BASELINE];
}

static const char *name_of(const diff_page *page, const kprof_launch_group *group)
{
    return kprof_model_kernel_name(group->kernel, page->context->options->kernel_base);
}

/* "vectorAdd(float*) (65536, 1, 1)x(256, 1, 1), 1024 bytes shared" */
static void describe_kernel(const char *name, const kprof_launch_group *group, kprof_strbuf *out)
{
    const kprof_launch_record *shape = &group->shape;
    char shapes[96];
    kprof_strbuf_puts(out, name);
    if (*kprof_shapes_text(shape, shapes))
        kprof_strbuf_printf(out, " %s", shapes);
    if (shape->dynamic_smem_bytes)
        kprof_strbuf_printf(out, ", %u bytes shared", shape->dynamic_smem_bytes);
}

/* How the group's values were measured; NULL: it has none. */
static const char *way_of(const kprof_launch_group *group)
{
    static const char replayed[] = "replayed", multiplexed[] = "multiplexed";
    return group->replayed > 0 ? replayed : group->multiplexed > 0 ? multiplexed : NULL;
}

/* Launches that the filter did not choose, or that ran after the last sample; only for kernels with samples. */
static uint64_t untold_of(const kprof_launch_group *group)
{
    return group->multiplexed > 0 ? group->untold : 0;
}

/* Samples of a kernel that was also replayed. */
static uint64_t left_out(const kprof_launch_group *group)
{
    return group->replayed > 0 ? group->multiplexed : 0;
}

static uint64_t shared_bytes(const kprof_launch_group *group)
{
    return group->shape.dynamic_smem_bytes + group->kernel->record.static_smem_bytes;
}

/* How the groups were matched or measured, if the two differ, and what is not counted. */
static void describe_pair(const kprof_diff_kernel *kernel, kprof_strbuf *out)
{
    const kprof_launch_group *baseline = kernel->groups[KPROF_BASELINE], *newer = kernel->groups[KPROF_NEW];
    const uint64_t untold = untold_of(newer), untold_before = untold_of(baseline);
    if (kernel->match == KPROF_MATCH_RENAMED)
        kprof_strbuf_printf(kprof_strbuf_part(out), "renamed from %s", baseline->kernel->demangled);
    else if (kernel->match == KPROF_MATCH_DEVICE)
        kprof_strbuf_printf(kprof_strbuf_part(out), "on %s before", baseline->device->name);
    if (shared_bytes(newer) != shared_bytes(baseline))
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu bytes shared, %lu before", shared_bytes(newer),
                            shared_bytes(baseline));
    if (way_of(baseline) && way_of(newer) && way_of(baseline) != way_of(newer))
        kprof_strbuf_printf(kprof_strbuf_part(out), "%s, %s before", way_of(newer), way_of(baseline));
    else if (way_of(newer) && newer->replayed == 0)
        kprof_strbuf_puts(kprof_strbuf_part(out), way_of(newer));
    if (left_out(newer) > 0 || left_out(baseline) > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu multiplexed sample%s not compared, %lu before",
                            left_out(newer), kprof_ending(left_out(newer), "s"), left_out(baseline));
    if (baseline->launches != newer->launches)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu launch%s, %lu before", newer->launches,
                            kprof_ending(newer->launches, "es"), baseline->launches);
    if (untold > 0 || untold_before > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu more launch%s of the kernel not counted here, %lu before",
                            untold, kprof_ending(untold, "es"), untold_before);
}

/* The reason for the verdict, and what makes the numbers less certain. */
static void describe_note(const kprof_diff_kernel *kernel, kprof_strbuf *out)
{
    kprof_strbuf_puts(out, kernel->reason);
    if (kernel->groups[KPROF_BASELINE] && kernel->groups[KPROF_NEW])
        describe_pair(kernel, out);
    else {
        const kprof_launch_group *group = group_of(kernel);
        const uint64_t launches = group->launches;
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu launch%s", launches, kprof_ending(launches, "es"));
        if (way_of(group) && group->replayed == 0)
            kprof_strbuf_puts(kprof_strbuf_part(out), way_of(group));
        kprof_untold_note(untold_of(group), out);
    }
}

/* Texts that are made for a kernel. */
typedef struct kernel_texts {
    kprof_strbuf kernel, short_kernel, note;
} kernel_texts;

static kernel_texts make_texts(const diff_page *page, const kprof_diff_kernel *kernel)
{
    const kprof_launch_group *group = group_of(kernel);
    kernel_texts texts = {KPROF_STRBUF_INIT, KPROF_STRBUF_INIT, KPROF_STRBUF_INIT};
    describe_kernel(name_of(page, group), group, &texts.kernel);
    if (page->short_names)
        describe_kernel(page->short_names[kernel - page->diff->kernels], group, &texts.short_kernel);
    describe_note(kernel, &texts.note);
    return texts;
}

static void kernel_texts_free(kernel_texts *texts)
{
    KPROF_FREE_TEXTS(&texts->kernel, &texts->short_kernel, &texts->note);
}

#define kernel_field(key, label, texts, ...)                                                                           \
    kprof_field_text(key, label, kprof_strbuf_text(&(texts)->kernel), .short_text = (texts)->short_kernel.data,        \
                     __VA_ARGS__)

/* A change that the reports do not tell of. */
static const kprof_change no_change = {
    .centers = {{0, NAN, NAN}, {0, NAN, NAN}}, .difference = NAN, .shift = {NAN, NAN, {NAN, NAN}}};

static const kprof_change *change_of(const kprof_diff_kernel *kernel, size_t metric)
{
    return kernel->changes ? &kernel->changes[metric] : &no_change;
}

/* The best estimate of the change in percent: of the test, or of the medians. */
static double estimate_pct(const kprof_change *change)
{
    /* For traffic, always compare medians, even if a condition had it tested. */
    const bool is_by_medians = isnan(change->shift.estimate) || change->metric_class == KPROF_CLASS_TRAFFIC;
    return kprof_change_pct(change, is_by_medians ? change->difference : change->shift.estimate);
}

/* Return the weight of a change that is no noise; 0 of others. */
static double weight_if_real(const diff_page *page, const kprof_change *change, double weight)
{
    const bool is_real = change->state == KPROF_CHANGE_REAL, is_exact = change->metric_class == KPROF_CLASS_EXACT;
    return is_real && (is_exact || weight * 100 > page->diff->request->tolerances.time_pct) ? weight : 0;
}

/* Does the kernel have too few repeats for a verdict, and no other sign of a change? People see one line for all. */
static bool is_unjudged(const diff_page *page, const kprof_diff_kernel *kernel)
{
    const kprof_diff_metrics *metrics = &page->diff->metrics;
    if (!kernel->changes || page->context->options->all_rows ||
        kprof_change_is_repeated(&kernel->changes[KPROF_DIFF_TIME]))
        return false;
    KPROF_AUTO_FREE double *weights = kprof_calloc(metrics->count + 1, sizeof *weights);
    kprof_driver_weights(metrics, kernel->changes, weights);
    return !KPROF_ANY(i, metrics->count, weight_if_real(page, &kernel->changes[i], weights[i]) > 0);
}

static void show_verdict(const diff_page *page, const kprof_diff_kernel *kernel, bool is_visible)
{
    const kprof_change *time = change_of(kernel, KPROF_DIFF_TIME), *cycles = change_of(kernel, KPROF_DIFF_CYCLES);
    KPROF_AUTO(kernel_texts) texts = make_texts(page, kernel);
    char repeats[64];
    snprintf(repeats, sizeof repeats, "%zu, %zu", time->centers[KPROF_BASELINE].count, time->centers[KPROF_NEW].count);
    kprof_emit_field fields[] = {
        kprof_field_text("verdict", "Verdict", verdicts[kernel->verdict]),
        or_nothing(pct_field("change_pct", "Time", estimate_pct(time))),
        or_nothing(pct_field("low_pct", "From", kprof_change_pct(time, time->shift.interval.low), .folds = true)),
        or_nothing(pct_field("high_pct", "To", kprof_change_pct(time, time->shift.interval.high), .folds = true)),
        or_nothing(pct_field("cycles_pct", "Cycles", estimate_pct(cycles))),
        or_nothing(kprof_field_ns("baseline", "Baseline", time->centers[KPROF_BASELINE].median)),
        or_nothing(kprof_field_ns("new", "New", time->centers[KPROF_NEW].median)),
        kprof_field_text("repeats", "Repeats", kernel->changes ? repeats : "", .folds = true),
        machine(kprof_field_integer("baseline_repeats", "Repeats", time->centers[KPROF_BASELINE].count)),
        machine(kprof_field_integer("new_repeats", "Repeats", time->centers[KPROF_NEW].count)),
        machine(kprof_field_text("function", "Function", group_of(kernel)->kernel->function)),
        note(kernel_field("kernel", "Kernel", &texts, .plain = true)),
        note(kprof_field_text("note", "Note", kprof_strbuf_text(&texts.note), .plain = true)),
    };
    show_if(page, fields, COUNT_OF(fields), is_visible);
}

static bool is_unmatched(const kprof_diff_kernel *kernel)
{
    return kernel->verdict == KPROF_JUDGEMENT_ONLY_BASELINE || kernel->verdict == KPROF_JUDGEMENT_ONLY_NEW;
}

static bool is_only_new(const kprof_diff_kernel *kernel)
{
    return kernel->verdict == KPROF_JUDGEMENT_ONLY_NEW;
}

/* People see kernels that have no counterpart in a list of their own, with a line for each of the first ones. */
static void show_unmatched(const diff_page *page)
{
    enum { MANY = 10 }; /* in one report */
    const bool all = page->context->options->all_rows;
    size_t counts[2] = {0}, shown[2] = {0};
    for (size_t i = 0; i < page->diff->kernel_count; i++)
        counts[is_only_new(&page->diff->kernels[i])] += is_unmatched(&page->diff->kernels[i]);
    const bool is_cut = !all && (counts[false] > MANY || counts[true] > MANY);
    const char *title = is_cut ? "In one report only (the first 10 of each; --all shows all)" : "In one report only";
    kprof_list_begin(page->emitter, "unmatched", title, KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < page->diff->kernel_count; i++) {
        const kprof_diff_kernel *kernel = &page->diff->kernels[i];
        if (!is_unmatched(kernel))
            continue;
        KPROF_AUTO(kernel_texts) texts = make_texts(page, kernel);
        kprof_emit_field fields[] = {
            kprof_field_text("report", "Report", is_only_new(kernel) ? "new" : "baseline"),
            kprof_field_integer("launches", "Launches", group_of(kernel)->launches),
            kernel_field("kernel", "Kernel", &texts),
        };
        show_if(page, fields, COUNT_OF(fields), all || shown[is_only_new(kernel)]++ < MANY);
    }
    page->emitter->ops->list_end(page->emitter);
}

/* Kernels and shapes without a verdict that share a function's name. */
typedef struct unjudged_function {
    const char *name;
    int64_t count;
} unjudged_function;

typedef struct unjudged_list {
    kprof_names names; /* -> index */
    unjudged_function *functions;
    size_t count;
    size_t least, most; /* repeats */
    bool have_counts;   /* instructions and the like were compared, and are equal then */
} unjudged_list;

static void add_unjudged(const kprof_diff *diff, const kprof_diff_kernel *kernel, unjudged_list *to)
{
    const char *name = group_of(kernel)->kernel->function;
    size_t index;
    if (kprof_names_number(&to->names, name, &index))
        KPROF_ADD(to->functions, to->count)->name = name;
    to->functions[index].count++;
    for (int side = 0; side < KPROF_SIDES; side++) {
        const size_t repeats = kernel->changes[KPROF_DIFF_TIME].centers[side].count;
        to->least = repeats < to->least ? repeats : to->least;
        to->most = repeats > to->most ? repeats : to->most;
    }
    for (size_t i = 0; i < diff->metrics.count; i++) {
        const kprof_change *change = &kernel->changes[i];
        to->have_counts = to->have_counts || (change->metric_class == KPROF_CLASS_EXACT && !isnan(change->difference));
    }
}

/* Say once why many kernels have no verdict, and which they are. */
static void show_unjudged(const diff_page *page, const bool *unjudged)
{
    const kprof_diff *diff = page->diff;
    unjudged_list list = {.least = SIZE_MAX};
    char repeats[64], title[160];
    for (size_t i = 0; i < diff->kernel_count; i++)
        if (unjudged[i])
            add_unjudged(diff, &diff->kernels[i], &list);
    if (list.least == list.most)
        snprintf(repeats, sizeof repeats, "%zu repeat%s", list.most, list.most == 1 ? "" : "s");
    else
        snprintf(repeats, sizeof repeats, "%zu to %zu repeats", list.least, list.most);
    snprintf(title, sizeof title, "No verdict on time: %s of each kernel, %d are needed%s", repeats, KPROF_REPEATS_MIN,
             list.have_counts ? "; counts are equal" : "");
    kprof_list_begin(page->emitter, "unjudged", title, KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < list.count; i++) {
        const kprof_emit_field fields[] = {
            kprof_field_integer("shapes", "Shapes", list.functions[i].count),
            kprof_field_text("function", "Kernel", list.functions[i].name),
        };
        kprof_show_record(page->emitter, fields, COUNT_OF(fields));
    }
    page->emitter->ops->list_end(page->emitter);
    free(list.functions);
    kprof_names_free(&list.names);
}

static void show_condition(const diff_page *page, const kprof_diff_kernel *kernel, size_t index)
{
    const kprof_diff *diff = page->diff;
    const kprof_condition *condition = &diff->request->conditions[index];
    const kprof_diff_metric *metric = &diff->metrics.items[diff->condition_metrics[index]];
    const kprof_change *change = &kernel->changes[diff->condition_metrics[index]];
    const bool is_visible = page->context->options->all_rows || kernel->gates[index] != KPROF_GATE_PASSED;
    KPROF_AUTO(kernel_texts) texts = make_texts(page, kernel);
    kprof_emit_field fields[] = {
        kprof_field_text("result", "Result", gates[kernel->gates[index]]),
        kprof_field_text("condition", "Condition", condition->text),
        kprof_field_with("baseline", "Baseline", change->centers[KPROF_BASELINE].median, metric->unit),
        kprof_field_with("new", "New", change->centers[KPROF_NEW].median, metric->unit),
        or_nothing(pct_field("change_pct", "Change", estimate_pct(change))),
        or_nothing(pct_field("low_pct", "From", kprof_change_pct(change, change->shift.interval.low))),
        or_nothing(pct_field("high_pct", "To", kprof_change_pct(change, change->shift.interval.high))),
        note(kernel_field("kernel", "Kernel", &texts, .plain = true)),
    };
    show_if(page, fields, COUNT_OF(fields), is_visible);
}

/* People see conditions that failed or are inconclusive, or all of them. */
static void show_conditions(const diff_page *page)
{
    const kprof_diff *diff = page->diff;
    kprof_list_begin(page->emitter, "conditions", "Conditions", KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < diff->request->condition_count; i++)
        for (size_t k = 0; k < diff->kernel_count; k++)
            if (diff->kernels[k].gates)
                show_condition(page, &diff->kernels[k], i);
    page->emitter->ops->list_end(page->emitter);
}

/* A row of a kernel: which metric, and how much it explains. */
typedef struct driver {
    size_t metric;
    double weight; /* 0: it did not change */
} driver;

/* The time, the cycles, what changed most, and the rest in the order of the table. */
static int by_weight(const void *a, const void *b)
{
    const driver *left = a, *right = b;
    const bool is_first = left->metric <= KPROF_DIFF_CYCLES || right->metric <= KPROF_DIFF_CYCLES;
    if (!is_first && left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return left->metric < right->metric ? -1 : 1;
}

/* Sorted; caller frees. */
static driver *list_drivers(const diff_page *page, const kprof_diff_kernel *kernel)
{
    const kprof_diff_metrics *metrics = &page->diff->metrics;
    driver *drivers = kprof_calloc(metrics->count + 1, sizeof *drivers);
    KPROF_AUTO_FREE double *weights = kprof_calloc(metrics->count + 1, sizeof *weights);
    if (kernel->changes)
        kprof_driver_weights(metrics, kernel->changes, weights);
    for (size_t i = 0; i < metrics->count; i++)
        drivers[i] = (driver){i, kernel->changes ? weight_if_real(page, &kernel->changes[i], weights[i]) : 0};
    qsort(drivers, metrics->count, sizeof *drivers, by_weight);
    return drivers;
}

static bool is_judged(const kprof_diff_kernel *kernel)
{
    return kernel->verdict == KPROF_JUDGEMENT_WORSE || kernel->verdict == KPROF_JUDGEMENT_BETTER;
}

static void show_driver(const diff_page *page, const kprof_diff_kernel *kernel, const driver *row, bool is_visible)
{
    const kprof_diff_metric *metric = &page->diff->metrics.items[row->metric];
    const kprof_change *change = change_of(kernel, row->metric);
    const kprof_center *baseline = &change->centers[KPROF_BASELINE], *newer = &change->centers[KPROF_NEW];
    /* "DRAM bytes read rose"; of the time and the cycles only where the verdict says so. */
    char words[160];
    const bool is_told = row->weight > 0 && (row->metric > KPROF_DIFF_CYCLES || is_judged(kernel));
    snprintf(words, sizeof words, "%.140s%s", metric->label,
             !is_told                 ? ""
             : change->difference > 0 ? " rose"
                                      : " fell");
    const kprof_emit_field fields[] = {
        machine(kprof_field_text("theme", "Theme", metric->theme)),
        machine(kprof_field_text("metric", "Metric", metric->name)),
        shown_if(kprof_field_text("words", "What", words), is_visible),
        machine(kprof_field_text("unit", "Unit", metric->unit)),
        shown_if(kprof_field_value("baseline", "Baseline", baseline->median, metric->unit), is_visible),
        shown_if(kprof_field_value("new", "New", newer->median, metric->unit), is_visible),
        shown_if(or_nothing(pct_field("change_pct", "Change", estimate_pct(change))), is_visible),
        machine(kprof_field_text("state", "State", states[change->state])),
        machine(pct_field("low_pct", "From", kprof_change_pct(change, change->shift.interval.low))),
        machine(pct_field("high_pct", "To", kprof_change_pct(change, change->shift.interval.high))),
        machine(kprof_field_integer("baseline_repeats", "Repeats", baseline->count)),
        machine(kprof_field_integer("new_repeats", "Repeats", newer->count)),
        machine(kprof_field_real("baseline_mad", "Median deviation", baseline->mad)),
        machine(kprof_field_real("new_mad", "Median deviation", newer->mad)),
    };
    page->emitter->ops->row(page->emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

static void show_drivers(const diff_page *page, const kprof_diff_kernel *kernel, const driver *drivers, bool is_visible)
{
    const bool all = page->context->options->all_rows;
    size_t shown = 0;
    for (size_t i = 0; i < page->diff->metrics.count; i++) {
        const kprof_change *change = change_of(kernel, drivers[i].metric);
        const bool is_time = drivers[i].metric == KPROF_DIFF_TIME;
        if (change->centers[0].count + change->centers[1].count == 0 && !is_time)
            continue;
        const bool is_driver = drivers[i].metric > KPROF_DIFF_CYCLES && drivers[i].weight > 0;
        shown += is_driver;
        show_driver(page, kernel, &drivers[i],
                    is_visible &&
                        (all || !is_driver ? all || drivers[i].metric <= KPROF_DIFF_CYCLES : shown <= DRIVERS_SHOWN));
    }
}

static kprof_emit_field launches_field(const kprof_diff_kernel *kernel, int side, const char *key)
{
    const kprof_launch_group *group = kernel->groups[side];
    return machine(kprof_field_integer(key, "Launches", group ? (int64_t)group->launches : 0));
}

static void begin_kernel(const diff_page *page, const kprof_diff_kernel *kernel, bool is_visible)
{
    const kprof_launch_group *group = group_of(kernel), *baseline = kernel->groups[KPROF_BASELINE];
    const kprof_launch_record *shape = &group->shape;
    char grid[48], block[48];
    KPROF_AUTO(kernel_texts) texts = make_texts(page, kernel);
    const kprof_emit_field fields[] = {
        shown_if(kernel_field("launch", "Launch", &texts, .plain = true), is_visible),
        shown_if(kprof_field_text("verdict", "Verdict", verdicts[kernel->verdict], .plain = true), is_visible),
        shown_if(kprof_field_text("note", "Note", kprof_strbuf_text(&texts.note), .plain = true),
                 is_visible && texts.note.length),
        machine(kprof_field_real("p", "p", kernel->p)),
        machine(kprof_field_text("function", "Function", group->kernel->function)),
        machine(kprof_field_text("kernel", "Kernel", name_of(page, group))),
        machine(kprof_field_text("baseline_kernel", "Kernel", baseline ? name_of(page, baseline) : NULL)),
        machine(kprof_field_text("match", "Match", kernel->changes ? matches[kernel->match] : NULL)),
        machine(kprof_field_text("device_name", "Device", group->device->name)),
        machine(kprof_field_text("grid", "Grid", kprof_shape_text(shape, shape->grid, grid))),
        machine(kprof_field_text("block", "Block", kprof_shape_text(shape, shape->block, block))),
        machine(kprof_field_integer("dynamic_shared_memory_bytes", "Shared memory", shape->dynamic_smem_bytes)),
        launches_field(kernel, KPROF_BASELINE, "baseline_launches"),
        launches_field(kernel, KPROF_NEW, "new_launches"),
    };
    page->emitter->ops->record_begin(page->emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

/* People see a kernel that became better or worse or in which a driver changed. */
static void show_kernel(const diff_page *page, const kprof_diff_kernel *kernel)
{
    KPROF_AUTO_FREE driver *drivers = list_drivers(page, kernel);
    const bool is_visible =
        (kernel->changes && (page->context->options->all_rows || is_judged(kernel))) ||
        KPROF_ANY(i, page->diff->metrics.count, (drivers[i].metric > KPROF_DIFF_CYCLES && drivers[i].weight > 0));
    begin_kernel(page, kernel, is_visible);
    show_drivers(page, kernel, drivers, is_visible);
    page->emitter->ops->record_end(page->emitter);
}

/* People see the kernel and what moved once, below its first line. */
static void show_moved_line(const diff_page *page, const kprof_diff_kernel *kernel, const kprof_moved_lines *lines,
                            const kprof_moved_line *line)
{
    KPROF_AUTO(kernel_texts) texts = make_texts(page, kernel);
    KPROF_AUTO(kprof_strbuf) told = KPROF_STRBUF_INIT;
    const bool is_visible = KPROF_ANY(i, lines->count, lines->items[i].has_moved);
    kprof_moves_describe(lines, &told);
    const bool is_first = line == lines->items;
    kprof_emit_field fields[] = {
        kprof_field_text("place", line->is_line ? "Line" : "Instruction", line->place),
        kprof_field_pct("baseline_pct", "Baseline", line->pct[KPROF_BASELINE]),
        kprof_field_pct("new_pct", "New", line->pct[KPROF_NEW]),
        kprof_field_real("change_points", "Points", line->pct[KPROF_NEW] - line->pct[KPROF_BASELINE],
                         .is_signed = true),
        kprof_field_text("stall", "Waits for", line->stall, .folds = true),
        machine(kprof_field_integer("moved", "Moved", line->has_moved)),
        machine(kprof_field_text("function", "Function", group_of(kernel)->kernel->function)),
        shown_if(note(kernel_field("kernel", "Kernel", &texts, .plain = true)), is_first),
        shown_if(note(kprof_field_text("note", "Note", kprof_strbuf_text(&told), .plain = true)), is_first),
    };
    show_if(page, fields, COUNT_OF(fields), is_visible);
}

/* The lines of each kernel that had samples and have them, if both reports do. */
static void show_moves(const diff_page *page)
{
    KPROF_AUTO(kprof_moves) moves = {.kernels = 0};
    kprof_moved_lines lines;
    kprof_moves_load(page->context, &moves);
    if (kprof_moves_are_there(&moves)) {
        kprof_list_begin(page->emitter, "moved_samples", "Where the samples moved", KPROF_LIST_TABLE, true);
        for (size_t i = 0; i < page->diff->kernel_count; i++) {
            const kprof_diff_kernel *kernel = &page->diff->kernels[i];
            kprof_moves_find(&moves, kernel, &lines);
            for (size_t k = 0; k < lines.count; k++)
                show_moved_line(page, kernel, &lines, &lines.items[k]);
        }
        page->emitter->ops->list_end(page->emitter);
    }
}

/* Refuse to print numbers that mislead, unless the user wants them anyway. */
static kprof_status check_comparable(const diff_page *page, const kprof_run_differences *differences)
{
    KPROF_AUTO(kprof_strbuf) reasons = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < differences->count; i++) {
        const kprof_run_difference *row = &differences->items[i];
        if (row->misleads)
            kprof_strbuf_printf(&reasons, "%s%s is %s, not %s (%s)", reasons.length ? "; " : "", row->what,
                                row->values[KPROF_NEW], row->values[KPROF_BASELINE], row->effect);
    }
    kprof_status status = KPROF_OK;
    if (reasons.length && page->diff->request->anyway)
        kprof_log(KPROF_LOG_WARNING, "%s", reasons.data);
    else if (reasons.length)
        status = kprof_fail(KPROF_NOT_COMPARABLE, "the reports cannot be compared: %s; --anyway compares them",
                            reasons.data);
    return status;
}

/* Shorten each name to a line, if lines are limited. */
static void make_short_names(diff_page *page)
{
    const size_t width = page->context->options->width, count = page->diff->kernel_count;
    if (width == 0)
        return;
    KPROF_AUTO_FREE const char **names = kprof_calloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = name_of(page, group_of(&page->diff->kernels[i]));
    page->short_names = kprof_short_names_new(page->diff->pool, names, count, width);
}

static kprof_status show_page(diff_page *page, const kprof_run_differences *differences)
{
    page->emitter = kprof_page_begin(page->context);
    show_comparison(page);
    show_differences(page, differences);
    KPROF_AUTO_FREE bool *unjudged = kprof_calloc(page->diff->kernel_count + 1, sizeof *unjudged);
    make_short_names(page);
    for (size_t i = 0; i < page->diff->kernel_count; i++)
        unjudged[i] = is_unjudged(page, &page->diff->kernels[i]);
    kprof_list_begin(page->emitter, "verdicts", "Verdicts", KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < page->diff->kernel_count; i++) {
        const kprof_diff_kernel *kernel = &page->diff->kernels[i];
        show_verdict(page, kernel, !unjudged[i] && !is_unmatched(kernel));
    }
    page->emitter->ops->list_end(page->emitter);
    show_unjudged(page, unjudged);
    show_unmatched(page);
    show_conditions(page);
    show_moves(page);
    kprof_list_begin(page->emitter, "kernels", "What changed", KPROF_LIST_GROUPS, false);
    for (size_t i = 0; i < page->diff->kernel_count; i++)
        show_kernel(page, &page->diff->kernels[i]);
    page->emitter->ops->list_end(page->emitter);
    return kprof_page_end(page->emitter, KPROF_OK);
}

static kprof_status print_diff(const kprof_page_context *context)
{
    kprof_diff diff;
    kprof_run_differences differences;
    diff_page page = {context, &diff, NULL, NULL};
    kprof_status status = kprof_diff_make(context, &diff);
    if (status == KPROF_OK)
        kprof_run_differences_find(context, &diff, &differences);
    KPROF_THEN(status, check_comparable(&page, &differences));
    return KPROF_THEN(status, show_page(&page, &differences));
}

const kprof_page_row kprof_diff_page = {"diff", KPROF_SIDES, print_diff, NULL};
