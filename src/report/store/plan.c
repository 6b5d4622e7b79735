/* Stores what was planned for a chip: metrics with unit and description, sections as they are shown, and passes. */
#include "report/store/derived.h"
#include "report/store/rows.h"

static kprof_status add_metric(kprof_report *report, kprof_host *host, const char *name, const char *kind)
{
    kprof_metric_info info = {NULL, NULL, NULL, NULL, KPROF_METRIC_COUNTER};
    if (host) {
        kprof_status status = kprof_host_metric_info(host, name, &info);
        if (status != KPROF_OK)
            return status;
    }
    const char *unit = kprof_metric_unit(name, info.unit);
    kprof_model_metric row = {name, unit ? unit : "", info.description ? info.description : "", kind};
    kprof_store_metric(report, &row);
    if (host)
        kprof_metric_info_free(&info);
    return report->status;
}

static kprof_status add_sampled_metrics(kprof_report *report, const kprof_plan *plan, kprof_host *host)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plan->timeline.count; i++) {
        const kprof_strlist *names = &plan->timeline.passes[i].metrics;
        for (size_t k = 0; k < names->count && status == KPROF_OK; k++)
            status = add_metric(report, host, names->items[k], KPROF_TIMELINE_KIND);
    }
    return status;
}

/* Keep the derived values of a section, from a copy made the way a reader will make it. */
static kprof_status keep_derived(kprof_report *report, const char *chip, const char *json)
{
    kprof_section section;
    const kprof_json_place file = {.name = report->path, .pool = &report->pool};
    const kprof_status status = kprof_section_from_json(&file, json, &section);
    if (status == KPROF_OK)
        kprof_derived_add(report, chip, &section);
    return status;
}

static kprof_status add_section(kprof_report *report, const char *chip, const kprof_section *section)
{
    KPROF_AUTO_FREE char *json = kprof_section_to_json(section);
    kprof_store_write(report, KPROF_SQL_ADD_SECTION, "ssss", chip, section->id, section->name, json);
    return keep_derived(report, chip, json);
}

/* Store the section of --metrics. */
static kprof_status add_shown(kprof_report *report, const kprof_plan *plan)
{
    KPROF_AUTO_FREE kprof_item *items = kprof_calloc(plan->shown.count + plan->computed_count + 1, sizeof *items);
    kprof_section section = {.id = KPROF_NAMED_SECTION_ID,
                             .name = KPROF_NAMED_SECTION_NAME,
                             .order = KPROF_NAMED_SECTION_ORDER,
                             .items = items};
    for (size_t i = 0; i < plan->shown.count; i++)
        items[section.item_count++] = (kprof_item){.name = plan->shown.items[i], .label = plan->shown.items[i]};
    for (size_t i = 0; i < plan->computed_count; i++)
        items[section.item_count++] = plan->computed[i];
    return section.item_count > 0 ? add_section(report, plan->chip, &section) : KPROF_OK;
}

static kprof_status store_plan(kprof_report *report, const kprof_plan *plan, kprof_host *host)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++)
        status = add_metric(report, host, plan->collect.items[i], "hardware");
    KPROF_THEN(status, add_sampled_metrics(report, plan, host));
    for (size_t i = 0; i < plan->section_count && status == KPROF_OK; i++)
        status = add_section(report, plan->chip, &plan->sections[i]);
    for (size_t i = 0; i < plan->left_out.count; i++) {
        const kprof_model_left_out row = {plan->chip, plan->left_out.items[i]};
        kprof_rows_insert(report, KPROF_ROWS_LEFT_OUT, &row, -1);
    }
    return status == KPROF_OK ? add_shown(report, plan) : status;
}

/* Use one transaction, also inside the caller's: hundreds of small ones would be slow and fill the log. */
kprof_status kprof_report_add_plan(kprof_report *report, const kprof_plan *plan, kprof_host *host)
{
    kprof_store_write(report, KPROF_SQL_SAVEPOINT, "");
    if (report->status == KPROF_OK)
        kprof_store_note(report, store_plan(report, plan, host));
    return kprof_store_release(report);
}

kprof_status kprof_report_load_plans(kprof_report *report)
{
    kprof_status status = KPROF_OK;
    KPROF_AUTO(kprof_cursor)
    rows = kprof_cursor_new(report, "SELECT chip, definition FROM section ORDER BY chip, id", "");
    while (status == KPROF_OK && kprof_cursor_next(&rows)) {
        const char *chip = (const char *)sqlite3_column_text(rows.row, 0);
        const char *json = (const char *)sqlite3_column_text(rows.row, 1);
        status = chip && json ? keep_derived(report, chip, json) : kprof_store_damaged(report, "section");
    }
    return KPROF_THEN(status, report->status);
}

static void add_metric_passes(kprof_report *report, const char *chip, int64_t metric, const kprof_pass_list *passes)
{
    for (size_t i = 0; i < passes->count; i++)
        kprof_store_write(report, KPROF_SQL_ADD_METRIC_PASS, "sii", chip, metric, (int64_t)passes->items[i] + 1);
}

typedef struct derived_passes {
    kprof_report *report;
    const char *chip;
} derived_passes;

/* A derived value comes from the passes of everything that it is computed from. */
static void add_derived_passes(void *user, int64_t metric, const kprof_expr *expression)
{
    const derived_passes *to = user;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_expr_names(expression, &names);
    for (size_t i = 0; i < names.count; i++)
        kprof_store_write(to->report, KPROF_SQL_ADD_PASSES_OF, "sis", to->chip, metric, names.items[i]);
}

kprof_status kprof_report_add_passes(kprof_report *report, const kprof_plan *plan, const kprof_plan_passes *passes)
{
    derived_passes derived = {report, plan->chip};
    const kprof_schedule *schedule = passes->schedule;
    kprof_store_write(report, KPROF_SQL_SAVEPOINT, "");
    for (size_t i = 0; i < schedule->pass_count; i++)
        kprof_store_write(report, KPROF_SQL_ADD_PASS, "siii", plan->chip, (int64_t)i + 1,
                          (int64_t)schedule->passes[i].counters, (int64_t)schedule->passes[i].sm_side);
    const size_t count = plan->collect.count;
    const kprof_pass_list *lists = passes->schedule->metrics;
    for (size_t i = 0; i < count; i++)
        add_metric_passes(report, plan->chip,
                          kprof_store_find(report, KPROF_SQL_FIND_METRIC, "s", plan->collect.items[i]), &lists[i]);
    for (size_t i = 0; i < passes->witnesses->count; i++)
        if (lists[count + i].count >= 2) /* else it compares nothing */
            add_metric_passes(report, plan->chip, kprof_store_witness(report, passes->witnesses->items[i]),
                              &lists[count + i]);
    kprof_derived_walk(report, plan->chip, add_derived_passes, &derived);
    return kprof_store_release(report);
}
