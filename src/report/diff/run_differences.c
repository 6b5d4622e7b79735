/* Tells how the runs of two reports differ, and whether what the reports share can be compared at all. */
#include "report/diff/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Measured clocks count as the same if they differ by less. */
#define CLOCK_TOLERANCE_PCT 1.0

typedef struct finder {
    const kprof_page_context *context;
    const kprof_diff *diff;
    kprof_run_differences *found;
} finder;

static const char *const unknown = "not known";

static void add(finder *to, kprof_run_difference row, const char *baseline, const char *newer)
{
    kprof_run_difference *added = KPROF_POOL_ADD(to->diff->pool, to->found->items, to->found->count);
    *added = row;
    added->values[KPROF_BASELINE] = kprof_pool_strdup(to->diff->pool, baseline);
    added->values[KPROF_NEW] = kprof_pool_strdup(to->diff->pool, newer);
}

static void add_if_different(finder *to, kprof_run_difference row, const char *baseline, const char *newer)
{
    if (strcmp(baseline, newer) != 0)
        add(to, row, baseline, newer);
}

/* Append a text to a list in words, once. */
static void list_once(kprof_strbuf *list, const char *text)
{
    const char *found = list->data ? strstr(list->data, text) : NULL;
    const size_t length = strlen(text);
    for (; found; found = strstr(found + 1, text)) {
        const bool begins = found == list->data || found[-1] == ' ', ends = found[length] == ',' || !found[length];
        if (begins && ends)
            return;
    }
    kprof_strbuf_printf(list, "%s%s", list->length ? ", " : "", text);
}

typedef enum attribute { CHIP, NAME, DRIVER, CUPTI } attribute;

static void describe(const kprof_model_device *device, attribute which, char text[160])
{
    const unsigned driver = device->record.driver_version; /* 13010 is 13.1 */
    if (which == CHIP)
        snprintf(text, 160, "%s", device->chip);
    else if (which == NAME)
        snprintf(text, 160, "%s (%u SMs)", device->name, device->record.sm_count);
    else if (which == DRIVER)
        snprintf(text, 160, "CUDA %u.%u", driver / 1000, driver % 1000 / 10);
    else
        snprintf(text, 160, "%u", device->record.cupti_version);
}

/* Compare an attribute of the devices that launches ran on. */
static void compare_devices(finder *to, kprof_run_difference row, attribute which)
{
    kprof_strbuf texts[KPROF_SIDES] = {KPROF_STRBUF_INIT, KPROF_STRBUF_INIT};
    for (int side = 0; side < KPROF_SIDES; side++) {
        const kprof_launch_group *groups = to->diff->pairs.groups[side];
        const kprof_model_device *last = NULL;
        for (size_t i = 0; i < to->diff->pairs.group_counts[side]; i++) {
            char text[160];
            if (groups[i].device == last)
                continue;
            last = groups[i].device;
            describe(last, which, text);
            list_once(&texts[side], text);
        }
    }
    if (texts[KPROF_BASELINE].length && texts[KPROF_NEW].length)
        add_if_different(to, row, texts[KPROF_BASELINE].data, texts[KPROF_NEW].data);
    for (int side = 0; side < KPROF_SIDES; side++)
        kprof_strbuf_free(&texts[side]);
}

/* Do the reports share metrics that depend on the machine and its caches, as instructions and SMs' requests do not? */
static bool share_measures(const finder *with)
{
    const kprof_model *baseline = &with->context->reports[KPROF_BASELINE].model;
    const kprof_model *newer = &with->context->reports[KPROF_NEW].model;
    const kprof_model_metric *metrics = baseline->metrics;
    return KPROF_ANY(i, baseline->metric_count,
                     strcmp(metrics[i].kind, "hardware") == 0 && kprof_class_of(&metrics[i]) != KPROF_CLASS_EXACT &&
                         kprof_names_find(&newer->metric_names, metrics[i].name) != KPROF_NAMES_NONE);
}

static void compare_modes(finder *to)
{
    static const char *const modes[] = {"nothing measured", "replayed", "multiplexed", "replayed and multiplexed"};
    unsigned used[KPROF_SIDES] = {0, 0};
    for (int side = 0; side < KPROF_SIDES; side++) {
        for (size_t i = 0; i < to->diff->pairs.group_counts[side]; i++) {
            const kprof_launch_group *group = &to->diff->pairs.groups[side][i];
            used[side] |= (group->replayed > 0 ? 1u : 0) | (group->multiplexed > 0 ? 2u : 0);
        }
    }
    add_if_different(
        to, (kprof_run_difference){"Launches", "values of multiplexed launches join several launches", {NULL}, false},
        modes[used[KPROF_BASELINE]], modes[used[KPROF_NEW]]);
}

static void compare_passes(finder *to)
{
    size_t most[KPROF_SIDES] = {0, 0};
    for (int side = 0; side < KPROF_SIDES; side++) {
        const kprof_model *model = &to->context->reports[side].model;
        for (size_t i = 0; i < model->chip_count; i++)
            most[side] = model->chips[i].pass_count > most[side] ? model->chips[i].pass_count : most[side];
    }
    char baseline[24], newer[24];
    snprintf(baseline, sizeof baseline, "%zu", most[KPROF_BASELINE]);
    snprintf(newer, sizeof newer, "%zu", most[KPROF_NEW]);
    if (most[KPROF_BASELINE] && most[KPROF_NEW])
        add_if_different(to, (kprof_run_difference){"Passes", "values may join other passes", {NULL}, false}, baseline,
                         newer);
}

/* Count the hardware metrics, and those of them that the other report lacks. */
static size_t count_metrics(const kprof_model *model, const kprof_model *other, size_t *only_here)
{
    size_t count = 0;
    *only_here = 0;
    for (size_t i = 0; i < model->metric_count; i++) {
        if (strcmp(model->metrics[i].kind, "hardware") != 0)
            continue;
        count++;
        *only_here += kprof_names_find(&other->metric_names, model->metrics[i].name) == KPROF_NAMES_NONE;
    }
    return count;
}

static void compare_metrics(finder *to)
{
    char texts[KPROF_SIDES][64];
    bool differ = false;
    for (int side = 0; side < KPROF_SIDES; side++) {
        size_t only_here;
        const kprof_page_report *reports = to->context->reports;
        size_t count = count_metrics(&reports[side].model, &reports[!side].model, &only_here);
        snprintf(texts[side], sizeof texts[side], "%zu, %zu only here", count, only_here);
        differ = differ || only_here > 0;
    }
    if (differ)
        add(to, (kprof_run_difference){"Metrics", "only what both have is compared", {NULL}, false},
            texts[KPROF_BASELINE], texts[KPROF_NEW]);
}

/* Compare the medians of a measured clock over all kernels. */
static void compare_clock(finder *to, const char *label, const char *effect)
{
    const kprof_diff *diff = to->diff;
    const size_t metric = KPROF_FIND(i, diff->metrics.count, strcmp(diff->metrics.items[i].label, label) == 0);
    double *values = kprof_calloc(diff->kernel_count + 1, sizeof *values), medians[KPROF_SIDES] = {NAN, NAN};
    for (int side = 0; side < KPROF_SIDES && metric < diff->metrics.count; side++) {
        size_t count = 0;
        for (size_t i = 0; i < diff->kernel_count; i++) {
            const kprof_change *changes = diff->kernels[i].changes;
            if (changes && !isnan(changes[metric].centers[side].median))
                values[count++] = changes[metric].centers[side].median;
        }
        kprof_sort(values, count);
        medians[side] = count ? values[count / 2] : NAN;
    }
    free(values);
    if (!(fabs(medians[KPROF_NEW] - medians[KPROF_BASELINE]) > CLOCK_TOLERANCE_PCT / 100 * medians[KPROF_BASELINE]))
        return;
    char baseline[40], newer[40];
    snprintf(baseline, sizeof baseline, "%.0f MHz", medians[KPROF_BASELINE] / 1e6);
    snprintf(newer, sizeof newer, "%.0f MHz", medians[KPROF_NEW] / 1e6);
    add(to, (kprof_run_difference){label, effect, {NULL}, false}, baseline, newer);
}

static void compare_settings(finder *to, bool are_measures)
{
    const kprof_diff_settings *baseline = &to->diff->request->settings[KPROF_BASELINE];
    const kprof_diff_settings *newer = &to->diff->request->settings[KPROF_NEW];
    const bool are_known = baseline->cache_control && newer->cache_control;
    add_if_different(to,
                     (kprof_run_difference){"Cache control",
                                            are_known ? "launches find other caches: times and traffic mislead"
                                                      : "launches may find other caches",
                                            {NULL},
                                            are_known && are_measures},
                     baseline->cache_control ? baseline->cache_control : unknown,
                     newer->cache_control ? newer->cache_control : unknown);
}

void kprof_run_differences_find(const kprof_page_context *context, const kprof_diff *diff, kprof_run_differences *out)
{
    *out = (kprof_run_differences){0};
    finder to = {context, diff, out};
    const bool are_measures = share_measures(&to);
    compare_devices(&to, (kprof_run_difference){"Chip", "times and shares of the peak mislead", {NULL}, are_measures},
                    CHIP);
    compare_devices(&to, (kprof_run_difference){"Device", "another device of the chip", {NULL}, false}, NAME);
    compare_settings(&to, are_measures);
    compare_clock(&to, "SM clock", "times differ with the clock; see the cycles");
    compare_clock(&to, "DRAM clock", "times and cycles differ with the clock");
    compare_modes(&to);
    compare_passes(&to);
    compare_metrics(&to);
    add_if_different(&to, (kprof_run_difference){"kprof", "another version", {NULL}, false},
                     context->reports[KPROF_BASELINE].model.kprof_version,
                     context->reports[KPROF_NEW].model.kprof_version);
    compare_devices(&to, (kprof_run_difference){"Driver", "may compile or schedule otherwise", {NULL}, false}, DRIVER);
    compare_devices(&to, (kprof_run_difference){"CUPTI", "may count otherwise", {NULL}, false}, CUPTI);
}
