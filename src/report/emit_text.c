/* Text for people: headings, aligned columns, scaled units, bars for percentages and a drawn roofline. Plain ASCII. */
#include "report/emit.h"
#include "report/grid.h"
#include "report/plot.h"
#include "report/units.h"
#include "report/witness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WIDTH 100
#define BAR_WIDTH     20

typedef struct text_emitter {
    kprof_emitter base;
    const kprof_model_process *process; /* of the latest heading */
    bool begun;                         /* something was printed: a blank line comes between */
    kprof_grid items;                   /* of the section, or of the launch on the raw page */
    kprof_grid rows;                    /* of a list or a record */
    kprof_list_shape shape;
    const char *list;    /* title of a list that nothing was printed of yet */
    size_t record_count; /* in the list, so far */
    bool hides_missing;  /* the launch was not measured: show only what is known all the same */
    const char *section; /* name of a section that nothing was printed of yet */
    char *heading;       /* of the rows being collected */
    bool shows_spread;   /* of the launch's values over samples */
    bool marked[3];      /* by kprof_joins: the page ends with what marks mean */
    bool has_spreads;    /* likewise */
} text_emitter;

typedef enum text_style { STYLE_HEADING, STYLE_SECTION, STYLE_NOTE } text_style;

static text_emitter *of(kprof_emitter *emitter)
{
    return (text_emitter *)emitter;
}

static unsigned width_of(const kprof_emitter *emitter)
{
    return emitter->options->width ? emitter->options->width : DEFAULT_WIDTH;
}

static void put_styled(kprof_emitter *emitter, text_style style, const char *text)
{
    static const char *const codes[] = {"\033[1m", "\033[1;36m", "\033[33m"};
    bool color = emitter->options->color;
    kprof_output_puts(emitter->out, color ? codes[style] : "");
    kprof_output_puts(emitter->out, text);
    kprof_output_puts(emitter->out, color ? "\033[0m" : "");
    kprof_output_puts(emitter->out, "\n");
}

static void blank_line(text_emitter *text)
{
    if (text->begun)
        kprof_output_puts(text->base.out, "\n");
    text->begun = true;
}

static void print_grid(text_emitter *text, kprof_grid *grid, size_t indent)
{
    if (grid->failed)
        text->base.status = KPROF_NO_MEMORY;
    kprof_grid_print(grid, text->base.out, indent);
}

static void show_process(text_emitter *text, const kprof_model_process *process)
{
    if (text->process == process)
        return;
    text->process = process;
    blank_line(text);
    kprof_output_printf(text->base.out, "[%lld] %s@%s\n", (long long)process->pid, process->name, process->host);
}

/* " (65536, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0", and ", Graph Node 17" for a launch in a graph;
 * a graph as a whole has no shape. Returns the length. */
static int describe_launch(const kprof_model_launch *launch, char text[256])
{
    const kprof_launch_record *record = &launch->record;
    char shape[80] = "", node[40] = "";
    if (!kprof_launch_is_graph(record))
        snprintf(shape, sizeof shape, " (%u, %u, %u)x(%u, %u, %u)", record->grid[0], record->grid[1], record->grid[2],
                 record->block[0], record->block[1], record->block[2]);
    if (record->graph_node)
        snprintf(node, sizeof node, ", Graph Node %llu", (unsigned long long)record->graph_node);
    return snprintf(text, 256, "%s, Context %u, Stream %llu, Device %u, CC %u.%u%s", shape, record->context,
                    (unsigned long long)record->stream, record->device, launch->device->record.cc_major,
                    launch->device->record.cc_minor, node);
}

/* The kernel's name and describe_launch's text, in one line if it can be. */
static void show_heading(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    char shape[256];
    int length = describe_launch(launch, shape);
    size_t room = width_of(emitter) > (unsigned)length + 24 ? width_of(emitter) - (unsigned)length : 24;
    const char *full = kprof_model_kernel_name(launch->kernel, emitter->options->kernel_base);
    char *name = kprof_text_elide(full, room);
    char *heading = NULL;
    if (!name || asprintf(&heading, "%s%s", name, shape) < 0)
        emitter->status = KPROF_NO_MEMORY;
    else
        put_styled(emitter, STYLE_HEADING, heading);
    free(heading);
    free(name);
}

static void show_note(kprof_emitter *emitter, const char *what, const char *text)
{
    char *note = NULL;
    if (asprintf(&note, "  %s: %s", what, text) < 0)
        emitter->status = KPROF_NO_MEMORY;
    else
        put_styled(emitter, STYLE_NOTE, note);
    free(note);
}

static void show_disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    size_t count;
    emitter->status = kprof_disagreements(emitter->launches.model, launch, &found, &count);
    if (emitter->status != KPROF_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        kprof_human spread = kprof_units_human(found[i].spread_pct, "%", false);
        char *text = NULL;
        if (asprintf(&text, "the passes disagree: %s differs by %s %s between them", found[i].witness, spread.number,
                     spread.unit) < 0)
            emitter->status = KPROF_NO_MEMORY;
        else
            show_note(emitter, "Note", text);
        free(text);
    }
    kprof_disagreements_free(found, count);
}

static const char *ending(uint64_t count, const char *of_several)
{
    return count == 1 ? "" : of_several;
}

static void show_one_launch(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    const uint32_t passes = launch->record.pass_count;
    kprof_output_printf(emitter->out, "  Launch %lld, %s", (long long)launch->id, launch->device->name);
    if (launch->measured > 0)
        kprof_output_printf(emitter->out, ", %u pass%s (%s replay)", passes, ending(passes, "es"), launch->replay_mode);
    kprof_output_puts(emitter->out, "\n");
}

/* "  Launches 3 to 41, NVIDIA H200, 38 multiplexed: medians of 4 samples of 9 passes" */
static void show_multiplexed(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    const kprof_model_samples *samples = launch->samples;
    const uint32_t passes = launch->record.pass_count;
    kprof_output_printf(emitter->out, "  Launch%s %lld", ending(samples->launches, "es"), (long long)launch->id);
    if (samples->launches > 1)
        kprof_output_printf(emitter->out, " to %lld", (long long)samples->last_launch);
    kprof_output_printf(emitter->out, ", %s, %llu multiplexed: ", launch->device->name,
                        (unsigned long long)samples->launches);
    if (samples->used == 0)
        kprof_output_puts(emitter->out, "no whole sample\n");
    else
        kprof_output_printf(emitter->out, "%s%zu sample%s of %u pass%s\n", samples->used > 1 ? "medians of " : "",
                            samples->used, ending(samples->used, "s"), passes, ending(passes, "es"));
}

/* Tell which samples the medians are not of. */
static void show_set_apart(kprof_emitter *emitter, const kprof_model_samples *samples)
{
    char text[160];
    if (samples->read < samples->count) {
        snprintf(text, sizeof text, "only the first %zu of %llu samples were read", samples->read,
                 (unsigned long long)samples->count);
        show_note(emitter, "Note", text);
    }
    if (samples->set_apart == 0)
        return;
    if (samples->set_apart == samples->read)
        snprintf(text, sizeof text, "the passes of no sample agree; all samples are used");
    else
        snprintf(text, sizeof text, "%zu of %zu samples %s set apart: the passes disagree", samples->set_apart,
                 samples->read, samples->set_apart == 1 ? "is" : "are");
    show_note(emitter, "Note", text);
}

static void show_origin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    if (launch->samples) {
        show_multiplexed(emitter, launch);
        show_set_apart(emitter, launch->samples);
    } else {
        show_one_launch(emitter, launch);
    }
    if (*launch->reason)
        show_note(emitter, kprof_model_is_missing(launch) ? "Not measured" : "Note", launch->reason);
    if (emitter->status == KPROF_OK)
        show_disagreements(emitter, launch);
}

/* Columns of items: the name, the value, how far samples of it spread, its passes where no section shows it, a bar. */
static void begin_items(text_emitter *text)
{
    const bool in_sections = text->base.launches.in_sections;
    kprof_grid_free(&text->items);
    text->items = kprof_grid_make(text->shows_spread ? in_sections ? "tnnt" : "tnntt" : in_sections ? "tnt" : "tntt");
}

static void text_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    show_process(of(emitter), launch->process);
    blank_line(of(emitter));
    show_heading(emitter, launch);
    show_origin(emitter, launch);
    of(emitter)->hides_missing = launch->measured == 0;
    of(emitter)->shows_spread = launch->samples && launch->samples->used > 1;
    begin_items(of(emitter));
}

static void text_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    of(emitter)->section = section->name;
}

/* Print what the section has collected so far, below its name. */
static void flush_items(text_emitter *text)
{
    if (text->section && text->items.cell_count > 0) {
        kprof_output_puts(text->base.out, "\n  ");
        put_styled(&text->base, STYLE_SECTION, text->section);
        text->section = NULL;
    }
    print_grid(text, &text->items, text->base.launches.in_sections ? 4 : 2);
}

/* Before something else of the section than its items. */
static void begin_part(text_emitter *text)
{
    flush_items(text);
    if (text->section) {
        kprof_output_puts(text->base.out, "\n  ");
        put_styled(&text->base, STYLE_SECTION, text->section);
        text->section = NULL;
    } else {
        kprof_output_puts(text->base.out, "\n");
    }
}

static bool is_share(const kprof_emit_metric *metric)
{
    return strcmp(metric->unit, "%") == 0 && !isnan(metric->value);
}

static void put_bar(kprof_grid *grid, const kprof_emit_metric *metric)
{
    char bar[BAR_WIDTH + 3] = "";
    if (is_share(metric)) {
        double share = fmin(fmax(metric->value / 100, 0), 1);
        size_t filled = (size_t)(share * BAR_WIDTH + 0.5);
        memset(bar, ' ', sizeof bar);
        memset(bar + 1, '#', filled);
        bar[0] = '[';
        bar[BAR_WIDTH + 1] = ']';
        bar[BAR_WIDTH + 2] = '\0';
    }
    kprof_grid_add(grid, bar, "");
}

/* Mark the latest cell if it joins several executions. */
static void mark_joined(text_emitter *text, kprof_grid *grid, kprof_joins joins)
{
    if (joins == KPROF_JOINS_NOTHING)
        return;
    kprof_grid_mark(grid);
    text->marked[joins] = true;
}

static void put_value(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_metric *metric)
{
    kprof_human human = kprof_units_human(metric->value, metric->unit, emitter->options->base_units);
    kprof_grid_add(grid, human.number, human.unit);
    if (emitter->launches.in_sections) /* else words tell the passes */
        mark_joined(of(emitter), grid, metric->joins);
}

/* "+- 1.25 %": in percent of the value, or in its unit where it is 0. */
static void put_spread(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_metric *metric)
{
    char text[KPROF_NUMBER_SIZE + 3];
    if (!metric->spread || metric->spread->samples < 2 || isnan(metric->spread->mad)) {
        kprof_grid_add(grid, "", "");
        return;
    }
    const bool is_share = metric->value != 0;
    double amount = is_share ? 100 * metric->spread->mad / fabs(metric->value) : metric->spread->mad;
    kprof_human human = kprof_units_human(amount, is_share ? "%" : metric->unit, emitter->options->base_units);
    snprintf(text, sizeof text, "+- %s", human.number);
    kprof_grid_add(grid, text, human.unit);
    of(emitter)->has_spreads = true;
}

/* A value and, where the launch stands for several samples, a column for how far they spread. */
static void put_value_columns(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_metric *metric)
{
    put_value(emitter, grid, metric);
    if (of(emitter)->shows_spread)
        put_spread(emitter, grid, metric);
}

/* "pass 1", "passes 1-3 5" */
static void put_passes(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_metric *metric)
{
    char *text = NULL;
    if (asprintf(&text, "%s %s", metric->pass_count == 1 ? "pass" : "passes", metric->passes) < 0) {
        emitter->status = KPROF_NO_MEMORY;
        return;
    }
    kprof_grid_add(grid, metric->pass_count > 0 ? text : "", "");
    free(text);
}

/* In a section a metric has what people read, else everything. */
static void text_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    kprof_grid *items = &of(emitter)->items;
    const bool in_sections = emitter->launches.in_sections;
    if (of(emitter)->hides_missing && isnan(metric->value))
        return;
    kprof_grid_add(items, in_sections ? metric->label : metric->name, "");
    put_value_columns(emitter, items, metric);
    if (!in_sections)
        put_passes(emitter, items, metric);
    put_bar(items, metric);
}

/* Columns of a table: the label, a number for each of `columns` columns, perhaps with its spread, and a bar for the
 * first share of a row. */
static kprof_grid table_grid(const text_emitter *text, const kprof_emit_table *table, size_t columns)
{
    const size_t step = text->shows_spread ? 2 : 1;
    char kinds[KPROF_GRID_COLUMNS_MAX + 1];
    memset(kinds, 'n', sizeof kinds);
    kinds[0] = 't';
    kinds[columns * step + 1] = 't';
    kinds[columns * step + 2] = '\0';
    kprof_grid grid = kprof_grid_make(kinds);
    grid.headers[0] = table->table->title ? table->table->title : "";
    for (size_t i = 0; i < columns; i++)
        grid.headers[i * step + 1] = table->table->column_labels[i];
    grid.width = width_of(&text->base);
    return grid;
}

/* The first share in a row, which gets the bar; NULL: none. */
static const kprof_emit_metric *first_share(const kprof_emit_metric **cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cells[i] && is_share(cells[i]))
            return cells[i];
    }
    return NULL;
}

static bool has_cells(const kprof_emit_table *table)
{
    for (size_t i = 0; i < table->table->row_count * table->table->column_count; i++) {
        if (table->cells[i] && !isnan(table->cells[i]->value))
            return true;
    }
    return false;
}

static void put_cell(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_metric *metric)
{
    if (metric) {
        put_value_columns(emitter, grid, metric);
        return;
    }
    for (int i = of(emitter)->shows_spread ? 2 : 1; i > 0; i--)
        kprof_grid_add(grid, "", "");
}

static void text_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    text_emitter *text = of(emitter);
    if (text->hides_missing && !has_cells(table))
        return;
    begin_part(text);
    const size_t stride = table->table->column_count;
    const size_t most = (KPROF_GRID_COLUMNS_MAX - 2) / (text->shows_spread ? 2 : 1);
    const size_t columns = stride > most ? most : stride;
    kprof_grid grid = table_grid(text, table, columns);
    for (size_t i = 0; i < table->table->row_count; i++) {
        const kprof_emit_metric **cells = &table->cells[table->order[i] * stride];
        const char *label = table->table->rows[table->order[i]].label;
        kprof_grid_add(&grid, label ? label : "", "");
        for (size_t k = 0; k < columns; k++)
            put_cell(emitter, &grid, cells[k]);
        const kprof_emit_metric *share = first_share(cells, columns);
        if (share)
            put_bar(&grid, share);
        else
            kprof_grid_add(&grid, "", "");
    }
    print_grid(text, &grid, 4);
    kprof_grid_free(&grid);
}

static void put_human(kprof_emitter *emitter, kprof_grid *grid, double value, const char *unit)
{
    kprof_human human = kprof_units_human(value, unit, emitter->options->base_units);
    kprof_grid_add(grid, human.number, human.unit);
}

/* Mark, precision and level; achieved, peak, intensity; the roof there and the distance to it. */
static void legend_row(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_roofline *line,
                       const kprof_emit_point *point)
{
    char below[KPROF_NUMBER_SIZE], limit[96];
    put_human(emitter, grid, line->work->value, "flop/second");
    put_human(emitter, grid, line->peak->value, "flop/second");
    put_human(emitter, grid, point->at.intensity, "flop/byte");
    put_human(emitter, grid, point->at.attainable, "flop/second");
    put_human(emitter, grid, point->at.pct, "%");
    size_t length = kprof_number_grouped(below, point->at.headroom, (kprof_number_style){2, 1});
    kprof_grid_add(grid, length ? below : "n/a", length ? "x" : "");
    if (!point->at.measured)
        snprintf(limit, sizeof limit, "n/a");
    else if (!point->at.has_work)
        snprintf(limit, sizeof limit, "no such work");
    else
        snprintf(limit, sizeof limit, "%s: %.40s", point->at.memory_bound ? "memory" : "compute",
                 point->at.memory_bound ? point->level : line->label);
    kprof_grid_add(grid, limit, "");
}

/* Measured, and found to do nothing: true for most precisions of most kernels. */
static bool is_idle(const kprof_emit_roofline *line)
{
    for (size_t i = 0; i < line->point_count; i++) {
        if (!line->points[i].at.measured || line->points[i].at.has_work)
            return false;
    }
    return line->point_count > 0;
}

static void show_idle(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        if (!is_idle(&rooflines[i]))
            continue;
        kprof_output_puts(emitter->out, is_first ? "    No work: " : ", ");
        kprof_output_puts(emitter->out, rooflines[i].label);
        is_first = false;
    }
    kprof_output_puts(emitter->out, is_first ? "" : "\n");
}

/* A roofline's point is marked once, at its name: its numbers come from one another. */
static kprof_joins joins_of_point(const kprof_emit_roofline *line, const kprof_emit_point *point)
{
    const kprof_emit_metric *const metrics[] = {line->work, line->peak, point->intensity, point->pct};
    kprof_joins joins = KPROF_JOINS_NOTHING;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        joins = metrics[i]->joins > joins ? metrics[i]->joins : joins;
    return joins;
}

static void show_legend(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    static const char *const headers[] = {"",     "Roofline", "Achieved", "Peak",      "Intensity",
                                          "Roof", "Of roof",  "Distance", "Limited by"};
    kprof_grid grid = kprof_grid_make("ttnnnnnnt");
    for (size_t i = 0; i < grid.column_count; i++)
        grid.headers[i] = headers[i];
    size_t index = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rooflines[i].point_count && !is_idle(&rooflines[i]); k++) {
            const kprof_emit_point *point = &rooflines[i].points[k];
            char mark[2] = {point->at.has_work ? kprof_plot_mark(index++) : ' ', '\0'}, name[96];
            snprintf(name, sizeof name, "%.40s / %.40s", rooflines[i].label, point->level);
            kprof_grid_add(&grid, mark, "");
            kprof_grid_add(&grid, name, "");
            mark_joined(of(emitter), &grid, joins_of_point(&rooflines[i], point));
            legend_row(emitter, &grid, &rooflines[i], point);
        }
    }
    print_grid(of(emitter), &grid, 4);
    kprof_grid_free(&grid);
    show_idle(emitter, rooflines, count);
}

static void text_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    bool has_points = kprof_plot_has_points(rooflines, count);
    if (of(emitter)->hides_missing && !has_points)
        return;
    begin_part(of(emitter));
    if (has_points) {
        kprof_plot_rooflines(emitter->out, rooflines, count, width_of(emitter));
        kprof_output_puts(emitter->out, "\n");
    }
    show_legend(emitter, rooflines, count);
}

static void text_section_end(kprof_emitter *emitter)
{
    flush_items(of(emitter));
    of(emitter)->section = NULL;
}

static void text_launch_end(kprof_emitter *emitter)
{
    flush_items(of(emitter));
}

static void show_list_title(kprof_emitter *emitter)
{
    text_emitter *text = of(emitter);
    if (!text->list)
        return;
    blank_line(text);
    put_styled(emitter, STYLE_HEADING, text->list);
    text->list = NULL;
}

static void put_field(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_field *field)
{
    char number[KPROF_NUMBER_SIZE];
    if (kprof_field_is_missing(field)) {
        kprof_grid_add(grid, field->missing ? field->missing : "n/a", "");
    } else if (field->type == KPROF_FIELD_TEXT) {
        kprof_grid_add(grid, field->text, "");
    } else if (field->type == KPROF_FIELD_INTEGER) {
        kprof_number_integer(number, field->integer);
        kprof_grid_add(grid, number, "");
    } else {
        put_human(emitter, grid, field->real, field->unit);
    }
    mark_joined(of(emitter), grid, field->joins);
}

/* A record is a block of "label: value" lines. */
static void show_block(kprof_emitter *emitter, const kprof_emit_record *record)
{
    kprof_grid grid = kprof_grid_make("tt");
    if (of(emitter)->record_count++ > 0)
        kprof_output_puts(emitter->out, "\n");
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (field->role != KPROF_ROLE_SHOWN)
            continue;
        kprof_strbuf value = KPROF_STRBUF_INIT;
        kprof_field_describe(field, emitter->options->base_units, &value);
        kprof_grid_add(&grid, field->label, "");
        kprof_grid_add(&grid, value.length ? value.data : "", "");
        mark_joined(of(emitter), &grid, field->joins);
        grid.failed = grid.failed || value.failed;
        kprof_strbuf_free(&value);
    }
    print_grid(of(emitter), &grid, 2);
    kprof_grid_free(&grid);
}

/* The grid of rows gets its columns from the first of them. */
static void begin_rows(text_emitter *text, const kprof_emit_record *record)
{
    char kinds[KPROF_GRID_COLUMNS_MAX + 1];
    const char *headers[KPROF_GRID_COLUMNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < record->count && count < KPROF_GRID_COLUMNS_MAX; i++) {
        if (record->fields[i].role != KPROF_ROLE_SHOWN)
            continue;
        headers[count] = record->fields[i].label;
        kinds[count++] = record->fields[i].type == KPROF_FIELD_TEXT ? 't' : 'n';
    }
    kinds[count] = '\0';
    kprof_grid_free(&text->rows);
    text->rows = kprof_grid_make(kinds);
    for (size_t i = 0; i < count; i++)
        text->rows.headers[i] = headers[i];
}

static void text_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    text_emitter *text = of(emitter);
    text->shape = list->shape;
    text->record_count = 0;
    text->list = list->title;
}

static void text_columns(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    begin_rows(of(emitter), columns);
    of(emitter)->rows.is_headed = true;
}

static void add_row(text_emitter *text, const kprof_emit_record *record)
{
    if (text->rows.column_count == 0)
        begin_rows(text, record);
    for (size_t i = 0; i < record->count; i++) {
        if (record->fields[i].role == KPROF_ROLE_SHOWN)
            put_field(&text->base, &text->rows, &record->fields[i]);
    }
}

/* A record with rows has a heading made of its fields. */
static void show_record_heading(kprof_emitter *emitter, const kprof_emit_record *record)
{
    kprof_strbuf heading = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (field->role != KPROF_ROLE_SHOWN)
            continue;
        kprof_strbuf_puts(&heading, heading.length == 0 ? "" : ", ");
        if (!field->plain)
            kprof_strbuf_printf(&heading, "%s ", field->label);
        kprof_field_describe(field, emitter->options->base_units, &heading);
    }
    char *text = kprof_strbuf_take(&heading);
    if (!text) {
        emitter->status = KPROF_NO_MEMORY;
        return;
    }
    kprof_output_puts(emitter->out, "\n");
    put_styled(emitter, STYLE_HEADING, text);
    free(text);
}

static void text_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    text_emitter *text = of(emitter);
    if (text->shape != KPROF_LIST_ALONE)
        show_list_title(emitter);
    if (text->shape == KPROF_LIST_BLOCKS)
        show_block(emitter, record);
    else if (text->shape == KPROF_LIST_GROUPS)
        show_record_heading(emitter, record);
    else
        add_row(text, record);
}

static void flush_rows(text_emitter *text)
{
    if (text->heading && text->rows.cell_count > 0) {
        kprof_output_puts(text->base.out, "\n  ");
        put_styled(&text->base, STYLE_SECTION, text->heading);
    }
    print_grid(text, &text->rows, text->heading ? 4 : text->shape == KPROF_LIST_ALONE ? 0 : 2);
    kprof_grid_free(&text->rows);
    text->rows = (kprof_grid){0};
    free(text->heading);
    text->heading = NULL;
}

static void text_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    text_emitter *text = of(emitter);
    const char *heading = kprof_record_heading(row);
    if (heading && (!text->heading || strcmp(heading, text->heading) != 0)) {
        flush_rows(text);
        text->heading = strdup(heading);
    }
    add_row(text, row);
}

static void text_rows_end(kprof_emitter *emitter)
{
    if (of(emitter)->shape == KPROF_LIST_GROUPS)
        flush_rows(of(emitter));
}

static void text_list_end(kprof_emitter *emitter)
{
    flush_rows(of(emitter));
    of(emitter)->list = NULL;
}

static void text_page_end(kprof_emitter *emitter)
{
    text_emitter *text = of(emitter);
    const bool has_marks = text->marked[KPROF_JOINS_PASSES] || text->marked[KPROF_JOINS_LAUNCHES];
    if (has_marks || text->has_spreads)
        blank_line(text);
    if (has_marks)
        kprof_output_puts(emitter->out,
                          "* joins counters of several passes, so of several executions; --page raw names them\n");
    if (text->marked[KPROF_JOINS_LAUNCHES])
        kprof_output_puts(emitter->out,
                          "  Where launches were multiplexed, these are executions of several launches.\n");
    if (text->has_spreads)
        kprof_output_puts(emitter->out,
                          "+- is the median distance of the samples from the median, in percent of it, or "
                          "in its unit where it is 0\n");
}

static void text_free(kprof_emitter *emitter)
{
    text_emitter *text = of(emitter);
    kprof_grid_free(&text->items);
    kprof_grid_free(&text->rows);
    free(text->heading);
    free(text);
}

static const kprof_emitter_ops text_ops = {
    .launch_begin = text_launch_begin,
    .section_begin = text_section_begin,
    .metric = text_metric,
    .table = text_table,
    .rooflines = text_rooflines,
    .section_end = text_section_end,
    .launch_end = text_launch_end,
    .list_begin = text_list_begin,
    .columns = text_columns,
    .record_begin = text_record_begin,
    .row = text_row,
    .record_end = text_rows_end,
    .list_end = text_list_end,
    .page_end = text_page_end,
    .free = text_free,
};

kprof_emitter *kprof_emit_text_new(void)
{
    return kprof_emitter_allocate(sizeof(text_emitter), &text_ops);
}
