/* Keeps the compiled expressions of each chip's sections and evaluates them for a launch. */
#include "report/store/derived.h"
#include "report/store/rows.h"

#include <math.h>
#include <string.h>

typedef struct derived_item {
    const kprof_item *item; /* borrowed from the sections */
    int64_t metric;
} derived_item;

/* One roofline against one roof. */
typedef struct derived_point {
    const kprof_roofline *roofline;
    const kprof_roof *roof;
    int64_t intensity, pct; /* metric rows */
} derived_point;

struct kprof_derived {
    char *chip;
    derived_item *items;
    size_t item_count;
    derived_point *points;
    size_t point_count;
    kprof_derived *next;
};

void kprof_roofline_metric_name(char *out, size_t size, const char *const parts[3])
{
    snprintf(out, size, "derived__roofline_%s_%s_%s", parts[0], parts[1], parts[2]);
    for (char *c = out; *c; c++) { /* not isalnum: letters and digits are ASCII's in any locale */
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
        else if (!(*c >= 'a' && *c <= 'z') && !(*c >= '0' && *c <= '9'))
            *c = '_';
    }
}

static void add_item(kprof_report *report, kprof_derived *derived, const kprof_item *item)
{
    /* A launch gets the value if the report has its row. */
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    if (item->compiled)
        kprof_expr_names(item->compiled, &names);
    for (size_t i = 0; i < names.count; i++) {
        const kprof_launch_metric *metric = kprof_launch_metric_find(names.items[i]);
        if (metric && metric->on_request)
            kprof_store_metric(report,
                               &(kprof_model_metric){metric->name, metric->unit, metric->description, "launch"});
    }
    if (!item->name || !item->expression)
        return;
    const kprof_model_metric row = {item->name, or_empty(item->unit), item->help ? item->help : or_empty(item->label),
                                    "derived"};
    *KPROF_POOL_ADD(&report->pool, derived->items, derived->item_count) =
        (derived_item){item, kprof_store_metric(report, &row)};
}

static int64_t add_point_metric(kprof_report *report, const derived_point *point, const char *what)
{
    char name[256];
    const char *parts[] = {point->roofline->id, point->roof->label, what};
    kprof_roofline_metric_name(name, sizeof name, parts);
    bool is_pct = strcmp(what, "pct_of_roof") == 0;
    kprof_model_metric row = {
        name, is_pct ? "%" : "flop/byte",
        is_pct ? "achieved work of what the roof allows at this intensity" : "arithmetic intensity", "derived"};
    return kprof_store_metric(report, &row);
}

static void add_roofline(kprof_report *report, kprof_derived *derived, const kprof_roofline *roofline)
{
    add_item(report, derived, &roofline->work);
    add_item(report, derived, &roofline->peak);
    for (size_t i = 0; i < roofline->roof_count; i++) {
        const kprof_roof *roof = &roofline->roofs[i];
        add_item(report, derived, &roof->traffic);
        add_item(report, derived, &roof->peak);
        derived_point *added = KPROF_POOL_ADD(&report->pool, derived->points, derived->point_count);
        *added = (derived_point){roofline, roof, 0, 0};
        added->intensity = add_point_metric(report, added, "intensity");
        added->pct = add_point_metric(report, added, "pct_of_roof");
    }
}

/* Those of a chip; NULL: it has none. */
static kprof_derived *derived_of(const kprof_report *report, const char *chip)
{
    kprof_derived *derived = report->derived;
    while (derived && strcmp(derived->chip, chip) != 0)
        derived = derived->next;
    return derived;
}

void kprof_derived_add(kprof_report *report, const char *chip, const kprof_section *section)
{
    kprof_derived *derived = derived_of(report, chip);
    if (!derived) {
        derived = kprof_pool_calloc(&report->pool, 1, sizeof *derived);
        *derived = (kprof_derived){.chip = kprof_pool_strdup(&report->pool, chip), .next = report->derived};
        report->derived = derived;
    }
    for (size_t i = 0; i < section->item_count; i++)
        add_item(report, derived, &section->items[i]);
    for (size_t i = 0; i < section->table_count; i++) {
        const kprof_table *table = &section->tables[i];
        for (size_t k = 0; k < table->row_count * table->column_count; k++)
            add_item(report, derived, &table->rows[k / table->column_count].cells[k % table->column_count]);
    }
    for (size_t i = 0; i < section->roofline_count; i++)
        add_roofline(report, derived, &section->rooflines[i]);
}

static bool is_measured(kprof_roofline_input in)
{
    return isfinite(in.work) && isfinite(in.work_peak) && isfinite(in.traffic) && isfinite(in.traffic_peak) &&
           in.work >= 0 && in.traffic >= 0 && in.work_peak > 0 && in.traffic_peak > 0;
}

kprof_roofline_point kprof_roofline_locate(kprof_roofline_input in)
{
    kprof_roofline_point point = {NAN, NAN, NAN, NAN, NAN, false, false, false};
    if (!is_measured(in))
        return point;
    point.measured = true;
    point.has_work = in.work > 0;
    point.ridge = in.work_peak / in.traffic_peak;
    if (in.traffic > 0)
        point.intensity = in.work / in.traffic;
    else if (point.has_work)
        point.intensity = INFINITY;
    if (!point.has_work)
        return point;
    point.memory_bound = point.intensity < point.ridge;
    point.attainable = point.memory_bound ? point.intensity * in.traffic_peak : in.work_peak;
    point.pct = 100 * in.work / point.attainable;
    point.headroom = point.attainable / in.work;
    return point;
}

static double evaluate(const kprof_item *item, const kprof_derived_sink *sink)
{
    return kprof_expr_evaluate(item->compiled, sink->lookup, sink->user);
}

void kprof_derived_evaluate(const kprof_report *report, const char *chip, const kprof_derived_sink *sink)
{
    const kprof_derived *derived = derived_of(report, chip);
    for (size_t i = 0; derived && i < derived->item_count; i++)
        sink->store(sink->user, derived->items[i].metric, evaluate(derived->items[i].item, sink));
    for (size_t i = 0; derived && i < derived->point_count; i++) {
        const derived_point *point = &derived->points[i];
        const kprof_roofline_point at = kprof_roofline_locate(
            (kprof_roofline_input){evaluate(&point->roofline->work, sink), evaluate(&point->roofline->peak, sink),
                                   evaluate(&point->roof->traffic, sink), evaluate(&point->roof->peak, sink)});
        sink->store(sink->user, point->intensity, at.intensity);
        sink->store(sink->user, point->pct, at.pct);
    }
}

void kprof_derived_walk(const kprof_report *report, const char *chip, kprof_derived_visit *visit, void *user)
{
    const kprof_derived *derived = derived_of(report, chip);
    for (size_t i = 0; derived && i < derived->item_count; i++)
        visit(user, derived->items[i].metric, derived->items[i].item->compiled);
    for (size_t i = 0; derived && i < derived->point_count; i++) {
        const derived_point *point = &derived->points[i];
        const kprof_expr *const sources[] = {point->roofline->work.compiled, point->roof->traffic.compiled,
                                             point->roofline->peak.compiled, point->roof->peak.compiled};
        for (size_t k = 0; k < 2; k++)
            visit(user, point->intensity, sources[k]);
        for (size_t k = 0; k < 4; k++)
            visit(user, point->pct, sources[k]);
    }
}
