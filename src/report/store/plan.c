/* Stores what was planned for a chip: metrics with unit and description, sections as they are shown, and passes. */
#include "report/store/derived.h"
#include "report/store/rows.h"

#include <stdlib.h>
#include <string.h>

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

static void add_section(kprof_report *report, const char *chip, const kprof_section *section)
{
    KPROF_AUTO_FREE char *json = kprof_section_to_json(section);
    kprof_store_write(report, KPROF_SQL_ADD_SECTION, "ssss", chip, section->id, section->name, json);
}

/* `shown` has the values of --metrics. */
static kprof_status add_derived(kprof_report *report, const kprof_plan *plan, const kprof_section *shown)
{
    kprof_section *sections = kprof_calloc(plan->section_count + 1, sizeof *sections);
    kprof_status status = KPROF_OK;
    size_t count = 0;
    const size_t all = plan->section_count + (shown->item_count > 0);
    while (count < all && status == KPROF_OK) {
        /* The report keeps a copy for its derived values, made the way a reader will make it. */
        KPROF_AUTO_FREE char *json =
            kprof_section_to_json(count < plan->section_count ? &plan->sections[count] : shown);
        status = kprof_section_from_json(report->path, json, &sections[count]);
        if (status == KPROF_OK)
            count++;
    }
    if (status == KPROF_OK)
        return kprof_derived_add(report, plan->chip, sections, count);
    for (size_t i = 0; i < count; i++)
        kprof_section_free(&sections[i]);
    free(sections);
    return status;
}

/* Store the section of --metrics, and the derived values of all sections. What the items say is borrowed from the plan:
 * only the array is ours. */
static kprof_status add_shown(kprof_report *report, const kprof_plan *plan)
{
    const size_t plain = plan->shown.count;
    KPROF_AUTO_FREE kprof_item *items = kprof_calloc(plain + plan->computed_count + 1, sizeof *items);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plain && status == KPROF_OK; i++) {
        items[i].name = items[i].label = plan->shown.items[i];
        status = kprof_expr_parse(items[i].name, &items[i].compiled);
    }
    for (size_t i = 0; i < plan->computed_count; i++)
        items[plain + i] = plan->computed[i];
    char id[] = KPROF_NAMED_SECTION_ID, name[] = KPROF_NAMED_SECTION_NAME;
    kprof_section section = {.id = id, .name = name, .order = KPROF_NAMED_SECTION_ORDER};
    section.items = items;
    section.item_count = plain + plan->computed_count;
    if (status == KPROF_OK && section.item_count > 0)
        add_section(report, plan->chip, &section);
    KPROF_THEN(status, add_derived(report, plan, &section));
    for (size_t i = 0; i < plain; i++)
        kprof_expr_free(items[i].compiled);
    return status;
}

static kprof_status store_plan(kprof_report *report, const kprof_plan *plan, kprof_host *host)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++)
        status = add_metric(report, host, plan->collect.items[i], "hardware");
    KPROF_THEN(status, add_sampled_metrics(report, plan, host));
    for (size_t i = 0; i < plan->section_count; i++)
        add_section(report, plan->chip, &plan->sections[i]);
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

/* The sections of one chip, which are stored one after the other. */
typedef struct stored_sections {
    kprof_report *report;
    char *chip;
    kprof_section *items;
    size_t count;
} stored_sections;

static kprof_status end_chip(stored_sections *stored)
{
    kprof_status status = KPROF_OK;
    if (stored->chip)
        status = kprof_derived_add(stored->report, stored->chip, stored->items, stored->count);
    free(stored->chip);
    *stored = (stored_sections){.report = stored->report};
    return status;
}

static kprof_status take_section(stored_sections *stored, sqlite3_stmt *row)
{
    const char *chip = (const char *)sqlite3_column_text(row, 0), *json = (const char *)sqlite3_column_text(row, 1);
    kprof_status status = KPROF_OK;
    if (!chip || !json)
        return kprof_store_damaged(stored->report, "section");
    if (stored->chip && strcmp(stored->chip, chip) != 0)
        status = end_chip(stored);
    if (status == KPROF_OK && !stored->chip)
        stored->chip = kprof_strdup(chip);
    kprof_section *grown = status == KPROF_OK ? KPROF_APPEND(stored->items, stored->count) : NULL;
    KPROF_THEN(status, kprof_section_from_json(stored->report->path, json, grown));
    stored->count += status == KPROF_OK;
    return status;
}

kprof_status kprof_report_load_plans(kprof_report *report)
{
    stored_sections stored = {.report = report};
    kprof_status status = KPROF_OK;
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, "SELECT chip, definition FROM section ORDER BY chip, id");
    while (status == KPROF_OK && kprof_cursor_next(&rows))
        status = take_section(&stored, rows.row);
    if (KPROF_THEN(status, report->status) == KPROF_OK)
        return end_chip(&stored);
    for (size_t i = 0; i < stored.count; i++)
        kprof_section_free(&stored.items[i]);
    KPROF_FREE(stored.items, stored.chip);
    return status;
}

static void add_metric_passes(kprof_report *report, const char *chip, int64_t metric, const kprof_pass_list *passes)
{
    for (size_t i = 0; i < passes->count; i++)
        kprof_store_write(report, KPROF_SQL_ADD_METRIC_PASS, "sii", chip, metric, (int64_t)passes->items[i] + 1);
}

static void add_all_passes(kprof_report *report, const kprof_plan *plan, const kprof_plan_passes *passes)
{
    const size_t count = plan->collect.count;
    const kprof_pass_list *lists = passes->schedule->metrics;
    for (size_t i = 0; i < count; i++)
        add_metric_passes(report, plan->chip,
                          kprof_store_find(report, KPROF_SQL_FIND_METRIC, "s", plan->collect.items[i]), &lists[i]);
    for (size_t i = 0; i < passes->witnesses->count; i++)
        if (lists[count + i].count >= 2) /* else it compares nothing */
            add_metric_passes(report, plan->chip, kprof_store_witness(report, passes->witnesses->items[i]),
                              &lists[count + i]);
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
    add_all_passes(report, plan, passes);
    kprof_derived_walk(report, plan->chip, add_derived_passes, &derived);
    return kprof_store_release(report);
}
