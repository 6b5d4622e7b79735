/* The statistics page: for each group of launches, how its metrics spread over its launches, and over the samples of
 * those that were multiplexed. */
#include "report/page/groups.h"

#include <math.h>

typedef struct statistics_page {
    const kprof_groups *groups;
    const kprof_view *view;
    kprof_emitter *emitter;
    kprof_rolled_up rolled_up;
    char **names; /* of kernels, for people; NULL: they see whole ones */
} statistics_page;

/* For people only where there are any. */
static kprof_emit_field noted_field(const char *key, const char *label, uint64_t launches)
{
    return shown_if(kprof_field_amount(key, label, (int64_t)launches), launches > 0);
}

/* Do not add up samples: there are fewer than launches. People see a value once. */
static void show_metric(const statistics_page *page, const kprof_group *group, const kprof_emit_metric *metric,
                        bool is_cell)
{
    static const kprof_rollup_total none;
    const bool is_known = metric->metric != SIZE_MAX;
    const kprof_rollup_total *s = is_known ? &group->totals[metric->metric] : &none;
    const bool has_sum = is_known && group->source != KPROF_SOURCE_SAMPLES &&
                         kprof_rollup_is_amount(page->groups->rollup, metric->metric);
    const double average = is_known ? page->rolled_up.values[metric->metric] : NAN;
    const kprof_rollup_method method = is_known ? page->rolled_up.methods[metric->metric] : KPROF_ROLLUP_NONE;
    enum { LABEL_FIELD = 3, SUM_FIELD = 9 };
    kprof_emit_field fields[] = {
        machine(kprof_field_text("section", "Section", metric->section->id)),
        kprof_field_text("section_name", "Section", metric->section->name, .role = KPROF_ROLE_HEADING),
        machine(kprof_field_text("metric", "Name", metric->name)),
        kprof_field_text("label", "Metric", metric->label),
        machine(kprof_field_text("unit", "Unit", metric->unit)),
        machine(kprof_field_integer("count", "Values", s->count)),
        kprof_field_value("minimum", "Minimum", s->count ? s->minimum : NAN, metric->unit),
        kprof_field_value("maximum", "Maximum", s->count ? s->maximum : NAN, metric->unit),
        kprof_field_value("average", "Average", average, metric->unit),
        kprof_field_value("sum", "Sum", s->count && has_sum ? s->sum : NAN, metric->unit),
        machine(kprof_field_text("rollup", "Average is", kprof_rollup_name(method))),
    };
    fields[LABEL_FIELD].disagrees = s->disagrees;
    fields[LABEL_FIELD].is_cell = is_cell;
    for (size_t i = 0; metric->told_before && !page->emitter->options->all_rows && i < COUNT_OF(fields); i++)
        fields[i] = machine(fields[i]);
    fields[SUM_FIELD].missing = has_sum ? NULL : "";
    page->emitter->ops->row(page->emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

/* Return the number of samples that multiplexed launches make up; missing for others. */
static kprof_emit_field samples_field(const kprof_group *group)
{
    if (group->source == KPROF_SOURCE_SAMPLES)
        return kprof_field_integer("samples", "Multiplexed samples", group->samples);
    return machine(kprof_field_real("samples", "Multiplexed samples", NAN));
}

static void show_group(statistics_page *page, const kprof_group *group)
{
    kprof_emitter *emitter = page->emitter;
    const size_t chip = group->device->chip_index;
    KPROF_AUTO(kprof_strbuf) part = KPROF_STRBUF_INIT;
    const bool has_shape = page->groups->by == KPROF_GROUP_SHAPE || group->configurations == 1;
    const kprof_launch_record *shape = &group->shape;
    char grid[48], block[48];
    kprof_group_describe(page->groups, group, &part);
    const kprof_emit_field fields[] = {
        machine(kprof_field_integer("process_id", "Process", group->process->pid)),
        machine(kprof_field_text("process", "Process", group->process->name)),
        machine(kprof_field_text("host", "Host", group->process->host)),
        machine(kprof_field_text("function", "Function", group->kernel->function)),
        kprof_field_text("kernel", "Kernel", kprof_model_kernel_name(group->kernel, emitter->options->kernel_base),
                         .plain = true,
                         .short_text = page->names ? page->names[group->kernel - page->view->model->kernels] : NULL),
        shown_if(kprof_field_text("group", "Group", kprof_strbuf_or_null(&part), .plain = true), part.length > 0),
        machine(kprof_field_text("block", "Block", has_shape ? kprof_shape_text(shape, shape->block, block) : NULL)),
        machine(kprof_field_text("grid", "Grid", has_shape ? kprof_shape_text(shape, shape->grid, grid) : NULL)),
        machine(kprof_field_integer("device", "Device", group->device->record.device)),
        kprof_field_text("device_name", "Device", group->device->name, .plain = true),
        kprof_field_text("cc", "CC", group->device->cc),
        kprof_field_amount("invocations", "Invocations", group->launches),
        noted_field("not_measured", "Not measured", group->not_measured),
        noted_field("not_counted", "More launches of the kernel not counted here",
                    kprof_group_untold(page->groups, group)),
        samples_field(group),
        noted_field("disagreeing", "Passes disagree in", group->disagreeing),
    };
    page->rolled_up = kprof_rollup_finish(page->groups->rollup, chip, group->totals);
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    const kprof_view_chip *shown = chip == SIZE_MAX ? NULL : &page->view->chips[chip];
    for (size_t i = 0; shown && i < shown->section_count; i++) {
        const kprof_view_section *section = &shown->sections[i];
        for (size_t k = 0; k < section->metric_count; k++)
            if (!section->metrics[k].repeated)
                show_metric(page, group, &section->metrics[k], k >= section->section->item_count);
    }
    emitter->ops->record_end(emitter);
}

static kprof_status show_groups(const kprof_page_context *context, statistics_page *page)
{
    kprof_emitter *emitter = page->emitter = kprof_page_begin(context);
    kprof_list_begin(emitter, "kernels", "Kernels", KPROF_LIST_GROUPS, false);
    for (size_t i = 0; i < page->groups->count; i++)
        show_group(page, &page->groups->items[i]);
    emitter->ops->list_end(emitter);
    return kprof_page_end(emitter, KPROF_OK);
}

/* The page shows these kinds of some group's sections. */
typedef struct shown_kinds {
    bool metrics, cells; /* cells: metrics that stand in tables */
} shown_kinds;

static void note_kinds(const kprof_view_section *section, shown_kinds *out)
{
    const size_t first = KPROF_FIND(i, section->metric_count, !section->metrics[i].repeated);
    out->cells = out->cells || first < section->metric_count;
    out->metrics = out->metrics || (first < section->metric_count && first < section->section->item_count);
}

static shown_kinds find_kinds(const statistics_page *page)
{
    shown_kinds found = {false, false};
    for (size_t i = 0; i < page->groups->count; i++) {
        const size_t chip = page->groups->items[i].device->chip_index;
        const kprof_view_chip *shown = chip == SIZE_MAX ? NULL : &page->view->chips[chip];
        for (size_t k = 0; shown && k < shown->section_count; k++)
            note_kinds(&shown->sections[k], &found);
    }
    return found;
}

/* Refuse where no row would be printed, and no launches would be counted. */
static kprof_status check_rows(const kprof_page_context *context, const statistics_page *page)
{
    const kprof_print_options *options = context->options;
    const char *path = context->reports->file->path;
    const shown_kinds found = find_kinds(page);
    if (found.metrics || page->groups->count == 0 || kprof_format_counts_launches(options))
        return KPROF_OK;
    if (!found.cells)
        return kprof_fail(KPROF_NO_MATCH,
                          "%s has no section with metrics of launches; kprof --section SpeedOfLight "
                          "collects one, and --page raw shows what was measured",
                          path);
    return options->with_tables || !kprof_format_is_of_ncu(options)
               ? KPROF_OK
               : kprof_fail(KPROF_NO_MATCH,
                            "%s: all that these sections have stands in tables, which ncu's layouts "
                            "leave out; --print-details all shows them",
                            path);
}

kprof_status kprof_page_statistics(const kprof_page_context *context)
{
    kprof_view view;
    kprof_groups groups;
    const kprof_model *model = &context->reports->model;
    kprof_view_sections(model, context->options->metric_title, &view);
    statistics_page page = {.groups = &groups, .view = &view};
    page.names = kprof_page_whole_names(context->options, model);
    kprof_status status = kprof_groups_collect(context, &groups);
    KPROF_THEN(status, check_rows(context, &page));
    return KPROF_THEN(status, show_groups(context, &page));
}
