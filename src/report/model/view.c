/* Lays out the metrics of each chip's sections in one array and fills it launch by launch. */
#include "report/model/view.h"
#include "metricset/instruction.h"
#include "report/model/witness.h"
#include "report/store/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The section that showed a metric last, and the label that it had below the heading of a section. */
typedef struct shown_place {
    const kprof_section *section; /* NULL: none has shown it */
    const char *item_label;       /* NULL: in tables and rooflines only */
} shown_place;

/* The state while a view is built. */
typedef struct builder {
    kprof_view *view;
    kprof_names columns; /* name -> column */
    const kprof_section *section;
    kprof_view_section *target;
} builder;

/* Keep a text that was made, as long as the view. */
static const char *keep(builder *build, char *text)
{
    return kprof_pool_keep(build->view->model->pool, text);
}

static const char *keep_label(builder *build, const char *const parts[2], const char *between)
{
    return keep(build, kprof_strprintf("%s%s%s", parts[0], between, parts[1]));
}

static void add_column(builder *build, kprof_emit_metric *metric)
{
    kprof_view *view = build->view;
    metric->column = kprof_names_find(&build->columns, metric->name);
    if (metric->column != KPROF_NAMES_NONE)
        return;
    metric->column = view->column_count;
    kprof_names_add(&build->columns, metric->name, metric->column);
    *KPROF_POOL_ADD(view->model->pool, view->columns, view->column_count) = *metric;
}

static kprof_emit_metric *add_metric(builder *build, const char *name, const char *label, const char *unit)
{
    const kprof_model *model = build->view->model;
    kprof_emit_metric *metric = &build->target->metrics[build->target->metric_count];
    size_t index = kprof_names_find(&model->metric_names, name);
    *metric = (kprof_emit_metric){.slot = build->view->slot_count++, .metric = index, .value = NAN};
    metric->section = build->section;
    metric->name = name;
    metric->label = label && *label ? label : name;
    metric->unit = unit ? unit : index == KPROF_NAMES_NONE ? "" : model->metrics[index].unit;
    add_column(build, metric);
    build->target->metric_count++;
    return metric;
}

static void set_help(const builder *build, kprof_emit_metric *metric, const char *help)
{
    metric->help = help;
    if (!build->view->columns[metric->column].help)
        build->view->columns[metric->column].help = help;
}

/* Does another metric of the section have this label? */
static bool is_label_taken(const builder *build, const char *label, const char *name)
{
    const kprof_emit_metric *metrics = build->target->metrics;
    return KPROF_ANY(i, build->target->metric_count,
                     strcmp(metrics[i].label, label) == 0 && strcmp(metrics[i].name, name) != 0);
}

/* Return a cell's name where no table is drawn: its row. The column follows where there are several, or where another
 * metric is called like the row. One may be a share of all cycles, the other of active ones. */
static const char *cell_label(builder *build, const kprof_table *table, size_t cell)
{
    const kprof_table_row *row = &table->rows[cell / table->column_count];
    const char *parts[] = {row->label ? row->label : "", table->column_labels[cell % table->column_count]};
    if (table->column_count > 1)
        return keep_label(build, parts, ": ");
    if (!parts[1] || !*parts[1] || !is_label_taken(build, parts[0], row->cells->name))
        return parts[0];
    return keep_label(build, parts, ", ");
}

/* The value below the heading that a table splits into parts, in the sections that come with kprof. */
static const kprof_emit_metric *whole_of(const builder *build, const kprof_table *table)
{
    static const struct breakdown {
        const char *table, *throughput;
    } breakdowns[] = {{"compute_breakdown", "sm__throughput."},
                      {"memory_breakdown", "gpu__compute_memory_throughput."},
                      {"l1_breakdown", "l1tex__throughput."},
                      {"l2_breakdown", "lts__throughput."},
                      {"busy_breakdown", "sm__instruction_throughput."}};
    const struct breakdown *own = KPROF_FIRST(it, breakdowns, COUNT_OF(breakdowns), strcmp(it->table, table->id) == 0);
    return own ? KPROF_FIRST(it, build->target->metrics, build->section->item_count,
                             kprof_begins_with(it->name, own->throughput))
               : NULL;
}

static void build_table(builder *build, const kprof_table *table, kprof_emit_table *out)
{
    out->table = table;
    out->cells =
        kprof_pool_calloc(build->view->model->pool, table->row_count * table->column_count + 1, sizeof *out->cells);
    size_t *order = kprof_pool_calloc(build->view->model->pool, table->row_count + 1, sizeof *order);
    out->order = order;
    for (size_t i = 0; i < table->row_count * table->column_count; i++) {
        const kprof_item *item = &table->rows[i / table->column_count].cells[i % table->column_count];
        if (!item->name)
            continue;
        kprof_emit_metric *cell = add_metric(build, item->name, cell_label(build, table, i), item->unit);
        set_help(build, cell, item->help);
        cell->table = table->title;
        out->cells[i] = cell;
    }
    for (size_t i = 0; i < table->row_count; i++)
        order[i] = i;
    out->whole = whole_of(build, table);
}

static kprof_emit_metric *add_point_metric(builder *build, const kprof_roofline *line, const char *level,
                                           const char *what)
{
    char name[256];
    bool is_pct = strcmp(what, "pct_of_roof") == 0;
    kprof_roofline_metric_name(name, sizeof name, (const char *const[]){line->id, level, what});
    const char *label = keep_label(build, (const char *const[]){line->label, level}, " against ");
    label = keep_label(build, (const char *const[]){label, is_pct ? "of the roof" : "intensity"}, ": ");
    return add_metric(build, keep(build, kprof_strdup(name)), label, is_pct ? "%" : "flop/byte");
}

/* Work, traffic and peaks are often labelled like the roofline or the roof that they belong to: say what they are. */
static kprof_emit_metric *add_rate(builder *build, const kprof_item *item, const char *owner, const char *what)
{
    bool has_label = item->label && *item->label && strcmp(item->label, owner) != 0;
    const char *label = has_label ? item->label : keep_label(build, (const char *const[]){owner, what}, " ");
    return add_metric(build, item->name ? item->name : "", label, item->unit);
}

static void build_roofline(builder *build, const kprof_roofline *line, kprof_emit_roofline *out)
{
    out->id = line->id;
    out->label = line->label;
    out->points = kprof_pool_calloc(build->view->model->pool, line->roof_count + 1, sizeof *out->points);
    out->work = add_rate(build, &line->work, line->label, "achieved");
    out->peak = add_rate(build, &line->peak, line->label, "peak");
    for (size_t i = 0; i < line->roof_count; i++) {
        const kprof_roof *roof = &line->roofs[i];
        kprof_emit_point *point = &out->points[out->point_count++];
        point->level = roof->label;
        point->traffic = add_rate(build, &roof->traffic, roof->label, "achieved");
        point->peak = add_rate(build, &roof->peak, roof->label, "peak");
        point->intensity = add_point_metric(build, line, roof->label, "intensity");
        point->pct = add_point_metric(build, line, roof->label, "pct_of_roof");
    }
}

static void build_section(builder *build, const kprof_section *section, kprof_view_section *out)
{
    build->section = out->section = section;
    build->target = out;
    out->tables = kprof_pool_calloc(build->view->model->pool, section->table_count + 1, sizeof *out->tables);
    out->rooflines = kprof_pool_calloc(build->view->model->pool, section->roofline_count + 1, sizeof *out->rooflines);
    for (size_t i = 0; i < section->item_count; i++) {
        /* A value below the heading. */
        kprof_emit_metric *metric =
            add_metric(build, section->items[i].name, section->items[i].label, section->items[i].unit);
        set_help(build, metric, section->items[i].help);
    }
    for (size_t i = 0; i < section->table_count; i++)
        build_table(build, &section->tables[i], &out->tables[i]);
    for (size_t i = 0; i < section->roofline_count; i++)
        build_roofline(build, &section->rooflines[i], &out->rooflines[i]);
}

static void build_chip(builder *build, const kprof_model_chip *chip, kprof_view_chip *out)
{
    out->metrics = kprof_pool_calloc(build->view->model->pool, chip->value_count + 1, sizeof *out->metrics);
    out->sections = kprof_pool_calloc(build->view->model->pool, chip->shown_count + 1, sizeof *out->sections);
    for (size_t i = 0; i < chip->shown_count; i++) {
        kprof_view_section *section = &out->sections[out->section_count++];
        section->metrics = out->metrics + out->metric_count;
        build_section(build, &chip->sections[i], section);
        out->metric_count += section->metric_count;
    }
    kprof_view_mark(build->view, out, NULL);
}

void kprof_view_mark(const kprof_view *view, kprof_view_chip *chip, const bool *is_shown)
{
    KPROF_AUTO_FREE shown_place *places = kprof_calloc(view->column_count + 1, sizeof *places);
    for (size_t i = 0; i < chip->section_count; i++) {
        const kprof_view_section *section = &chip->sections[i];
        for (size_t k = 0; k < section->metric_count && (!is_shown || is_shown[i]); k++) {
            kprof_emit_metric *metric = &section->metrics[k];
            shown_place *place = &places[metric->column];
            const bool is_item = k < section->section->item_count; /* below the heading */
            metric->repeated = place->section == section->section;
            metric->shown_before = place->section != NULL;
            metric->told_before = is_item && place->item_label && strcmp(place->item_label, metric->label) == 0;
            place->section = section->section;
            place->item_label = is_item && !place->item_label ? metric->label : place->item_label;
        }
    }
}

/* Cells of tables keep the words of their rows and columns where a table is drawn. */
static void entitle(builder *build, kprof_metric_title title, kprof_view_chip *chip)
{
    for (size_t i = 0; title != KPROF_TITLE_LABEL && i < chip->metric_count; i++) {
        kprof_emit_metric *metric = &chip->metrics[i];
        if (title == KPROF_TITLE_NAME || strcmp(metric->label, metric->name) == 0)
            metric->label = metric->name;
        else
            metric->label = keep(build, kprof_strprintf("%s (%s)", metric->label, metric->name));
    }
}

void kprof_view_sections(const kprof_model *model, kprof_metric_title title, kprof_view *out)
{
    *out = (kprof_view){.model = model, .in_sections = true};
    builder build = {.view = out};
    out->chips = kprof_pool_calloc(model->pool, model->chip_count + 1, sizeof *out->chips);
    for (size_t i = 0; i < model->chip_count; i++) {
        build_chip(&build, &model->chips[i], &out->chips[i]);
        entitle(&build, title, &out->chips[i]);
    }
    kprof_names_free(&build.columns);
}

KPROF_BY_TEXT(by_name, kprof_emit_metric, name)

/* Does the raw page have a metric? Of instructions it has what is counted or sampled. */
static bool is_listed(const kprof_model *model, size_t i, bool with_instructions, const char **name)
{
    const kprof_model_metric *metric = &model->metrics[i];
    if (strcmp(metric->kind, KPROF_TIMELINE_KIND) == 0 || (model->is_shown && !model->is_shown[i]))
        return false;
    if (strcmp(metric->kind, KPROF_INSTRUCTION_KIND) != 0)
        return true;
    const kprof_instruction_metric *row = with_instructions ? kprof_instruction_metric_find(metric->name) : NULL;
    *name = row && row->ncu ? row->ncu : metric->name;
    return row && row->kind != KPROF_INSTRUCTION_COMPUTED;
}

void kprof_view_all(const kprof_model *model, bool with_instructions, kprof_view *out)
{
    kprof_view_sections(model, KPROF_TITLE_LABEL, out);
    kprof_emit_metric *columns = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *columns);
    for (size_t i = 0; i < model->metric_count; i++) {
        const kprof_model_metric *metric = &model->metrics[i];
        columns[i] = (kprof_emit_metric){.metric = i, .value = NAN};
        columns[i].name = columns[i].label = metric->name;
        columns[i].unit = metric->unit;
    }
    /* The first section of any chip that shows a metric gives it its place, label and help on the raw page. */
    for (size_t i = 0; i < out->column_count; i++) {
        const kprof_emit_metric *shown = &out->columns[i];
        if (shown->metric == SIZE_MAX)
            continue;
        columns[shown->metric].section = shown->section;
        columns[shown->metric].label = shown->label;
        columns[shown->metric].help = shown->help;
    }
    size_t count = 0;
    for (size_t i = 0; i < model->metric_count; i++)
        if (is_listed(model, i, with_instructions, &columns[i].name))
            columns[count++] = columns[i];
    qsort(columns, count, sizeof *columns, by_name);
    for (size_t i = 0; i < count; i++)
        columns[i].slot = columns[i].column = i;
    out->columns = columns;
    out->in_sections = false;
    out->column_count = out->slot_count = count;
}

static double sort_key(const kprof_emit_table *table, size_t row)
{
    const kprof_emit_metric *cell = table->cells[row * table->table->column_count];
    return cell && !isnan(cell->value) ? cell->value : -INFINITY;
}

/* Falling order of the first column; equal rows keep theirs. */
static int compare_rows(const void *a, const void *b, void *user)
{
    const size_t left = *(const size_t *)a, right = *(const size_t *)b;
    const double left_key = sort_key(user, left), right_key = sort_key(user, right);
    return left_key != right_key ? KPROF_COMPARE(right_key, left_key) : KPROF_COMPARE(left, right);
}

static void fill_section(kprof_view_section *section)
{
    for (size_t i = 0; i < section->section->table_count; i++) {
        const kprof_emit_table *table = &section->tables[i];
        if (table->table->sorted && table->table->column_count > 0)
            qsort_r((size_t *)table->order, table->table->row_count, sizeof *table->order, compare_rows, (void *)table);
    }
    for (size_t i = 0; i < section->section->roofline_count; i++) {
        kprof_emit_roofline *line = &section->rooflines[i];
        for (size_t k = 0; k < line->point_count; k++) {
            kprof_emit_point *point = &line->points[k];
            point->at = kprof_roofline_locate((kprof_roofline_input){.work = line->work->value,
                                                                     .work_peak = line->peak->value,
                                                                     .traffic = point->traffic->value,
                                                                     .traffic_peak = point->peak->value});
        }
    }
}

void kprof_view_fill_metric(const kprof_model *model, const kprof_model_launch *launch, kprof_emit_metric *metric)
{
    bool known = metric->metric != SIZE_MAX;
    kprof_model_passes passes = {0};
    if (known && launch->measured > 0)
        passes = kprof_model_passes_of(launch->device, model, metric->metric);
    metric->value = known ? launch->values[metric->metric] : NAN;
    metric->passes = passes.text ? passes.text : "";
    metric->pass_count = passes.count;
    metric->disagrees = !isnan(metric->value) && kprof_passes_disagree(model, launch, &passes);
    const kprof_model_spread *spread = known && launch->samples ? &launch->samples->spreads[metric->metric] : NULL;
    metric->spread = spread && spread->samples > 0 ? spread : NULL;
}

const kprof_view_chip *kprof_view_fill(kprof_view *view, const kprof_model_launch *launch)
{
    size_t index = launch->device->chip_index;
    if (index == SIZE_MAX)
        return NULL;
    kprof_view_chip *chip = &view->chips[index];
    for (size_t i = 0; i < chip->metric_count; i++)
        kprof_view_fill_metric(view->model, launch, &chip->metrics[i]);
    for (size_t i = 0; i < chip->section_count; i++)
        fill_section(&chip->sections[i]);
    return chip;
}
