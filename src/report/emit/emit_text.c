/* Text for people: headings, aligned columns, scaled units, bars for percentages and a drawn roofline. Plain ASCII. */
#include "report/emit/emit.h"
#include "report/emit/grid.h"
#include "report/emit/plot.h"
#include "report/model/units.h"
#include "report/model/witness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BAR_WIDTH 20

typedef struct text_emitter {
    kprof_emitter base;
    const kprof_model_process *process; /* of the latest heading */
    bool begun;                         /* something was printed: a blank line comes between */
    kprof_grid items;                   /* of the section, or of the launch on the raw page */
    kprof_grid rows;                    /* of a list or a record */
    kprof_list_shape shape;
    const char *list;                        /* title of the list, until its first record is printed */
    size_t record_count;                     /* in the list, so far */
    bool hides_missing;                      /* the launch was not measured: show only what is known without counters */
    const kprof_section *section;            /* that nothing was printed of yet */
    bool is_told;                            /* values of the section stand in earlier ones */
    bool is_idle;                            /* the section has no work to show */
    bool follows_idle;                       /* the latest section printed is a line */
    char *heading;                           /* of the rows being collected */
    char **short_names;                      /* [kernel_count]; NULL: not made yet */
    bool shows_spread;                       /* of the launch's values over samples */
    bool has_marks, has_spreads, has_folded; /* the page ends with what these mean */
    bool has_excess;                         /* likewise with what a share above 100 % means */
    bool lacks_verdicts;                     /* likewise with how to see verdicts that are not shown */
    bool has_verdict;                        /* the launch has one */
} text_emitter;

typedef enum text_style { STYLE_HEADING, STYLE_SECTION, STYLE_NOTE, STYLE_PLAIN } text_style;

/* How to print a text that may take several lines. The further ones are indented by two columns more, unless flush. */
typedef struct text_block {
    text_style style;
    size_t indent, width;
    bool is_flush;
} text_block;

static text_emitter *of(kprof_emitter *emitter)
{
    return (text_emitter *)emitter;
}

static unsigned width_of(const kprof_emitter *emitter)
{
    return emitter->options->width ? emitter->options->width : KPROF_TEXT_COLUMNS;
}

static void put_styled(kprof_emitter *emitter, text_style style, const char *text)
{
    static const char *const codes[] = {"\033[1m", "\033[1;36m", "\033[33m", ""};
    bool color = emitter->options->color && style != STYLE_PLAIN;
    kprof_output_puts(emitter->out, color ? codes[style] : "");
    kprof_output_puts(emitter->out, text);
    kprof_output_puts(emitter->out, color ? "\033[0m" : "");
    kprof_output_puts(emitter->out, "\n");
}

/* Columns for texts that hold names and messages, which are broken into lines on request only. */
static size_t text_width(const kprof_emitter *emitter)
{
    return emitter->options->width ? emitter->options->width : SIZE_MAX;
}

static void put_lines(kprof_emitter *emitter, text_block block, const char *text)
{
    for (bool is_first = true; *text; is_first = false) {
        const size_t indent = block.indent + (is_first || block.is_flush ? 0 : 2);
        const size_t room = block.width > indent ? block.width - indent : 1;
        KPROF_AUTO_FREE char *line = kprof_strndup(text, kprof_text_line(text, room));
        kprof_output_repeat(emitter->out, ' ', indent);
        put_styled(emitter, block.style, line);
        text = kprof_text_next_line(text, room);
    }
}

/* Print a text made as by printf. */
#define PUT_FORMAT(emitter, block, ...)                                                                                \
    do {                                                                                                               \
        KPROF_AUTO_FREE char *formatted = kprof_strprintf(__VA_ARGS__);                                                \
        put_lines((emitter), (block), formatted);                                                                      \
    } while (0)

/* Print a text and free it; an empty one prints nothing. */
static void put_buffer(kprof_emitter *emitter, text_block block, kprof_strbuf *text)
{
    put_lines(emitter, block, kprof_strbuf_text(text));
    kprof_strbuf_free(text);
}

static void blank_line(text_emitter *text)
{
    if (text->begun)
        kprof_output_puts(text->base.out, "\n");
    text->begun = true;
}

/* " (65536, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0", and ", Graph Node 17" for a launch in a graph;
 * a graph as a whole has no shape. Returns the length. */
static int describe_launch(const kprof_model_launch *launch, char text[256])
{
    const kprof_launch_record *record = &launch->record;
    char shapes[96], node[40] = "";
    const bool has_shape = *kprof_shapes_text(record, shapes);
    if (record->graph_node)
        snprintf(node, sizeof node, ", Graph Node %lu", record->graph_node);
    return snprintf(text, 256, "%s%s, Context %u, Stream %lu, Device %u, CC %s%s", has_shape ? " " : "", shapes,
                    record->context, record->stream, record->device, launch->device->cc, node);
}

/* A kernel's name, shortened if it does not fit into a line. */
static const char *shown_name(kprof_emitter *emitter, const kprof_model_kernel *kernel)
{
    text_emitter *text = of(emitter);
    const char *name = kprof_model_kernel_name(kernel, emitter->options->kernel_base);
    if (kprof_text_width(name) <= text_width(emitter))
        return name;
    const kprof_model *model = emitter->launches.model;
    if (!text->short_names)
        text->short_names = kprof_kernel_names_new(model, emitter->options->kernel_base, text_width(emitter));
    return text->short_names[kernel - model->kernels];
}

/* The kernel's name and describe_launch's text, in one line if it can be. */
static void show_heading(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    char shape[256];
    const size_t length = (size_t)describe_launch(launch, shape), width = text_width(emitter);
    const char *name = shown_name(emitter, launch->kernel);
    if (width == SIZE_MAX || kprof_text_width(name) + length <= width) {
        PUT_FORMAT(emitter, ((text_block){STYLE_HEADING, 0, SIZE_MAX, true}), "%s%s", name, shape);
        return;
    }
    put_styled(emitter, STYLE_HEADING, name);
    put_lines(emitter, (text_block){STYLE_HEADING, 2, width, false}, shape + strspn(shape, ", "));
}

static void show_note(kprof_emitter *emitter, const char *what, const char *text)
{
    PUT_FORMAT(emitter, ((text_block){STYLE_NOTE, 2, text_width(emitter), false}), "%s: %s", what, text);
}

static void show_disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    const size_t count = kprof_disagreements(emitter->launches.model, launch, &found);
    for (size_t i = 0; i < count; i++) {
        const text_block note = {STYLE_NOTE, 2, text_width(emitter), false};
        kprof_human spread = kprof_units_human(found[i].spread_pct, "%", false);
        PUT_FORMAT(emitter, note, "Note: the passes disagree: %s differs by %s %s between them", found[i].witness,
                   spread.number, spread.unit);
    }
    kprof_disagreements_free(found, count);
}

static void describe_one_launch(const kprof_model_launch *launch, kprof_strbuf *out)
{
    const uint32_t passes = launch->record.pass_count;
    kprof_strbuf_printf(out, "Launch %ld, %s", launch->id, launch->device->name);
    if (launch->measured > 0)
        kprof_strbuf_printf(out, ", %u pass%s (%s replay)", passes, kprof_ending(passes, "es"), launch->replay_mode);
}

/* "Launches 3 to 41, NVIDIA H200, 38 multiplexed: medians of 4 samples of 9 passes" */
static void describe_multiplexed(const kprof_model_launch *launch, kprof_strbuf *out)
{
    const kprof_model_samples *samples = launch->samples;
    kprof_strbuf_printf(out, "Launch%s %ld", kprof_ending(samples->launches, "es"), launch->id);
    if (samples->launches > 1)
        kprof_strbuf_printf(out, " to %ld", samples->last_launch);
    kprof_strbuf_printf(out, ", %s, ", launch->device->name);
    kprof_samples_describe(launch, out);
}

/* "254 values come from one pass each, 109 join several passes, which agree" */
static void describe_joining(const kprof_emitter *emitter, const kprof_model_launch *launch, kprof_strbuf *out)
{
    const kprof_joining joining = kprof_joining_of(emitter->launches.model, launch);
    const char *where = kprof_model_is_multiplexed(launch) ? "passes of several launches" : "several passes";
    if (joining.of_several == 0)
        return;
    kprof_strbuf_printf(out, "%zu value%s from one pass%s, %zu join%s %s, ", joining.of_one_pass,
                        joining.of_one_pass == 1 ? " comes" : "s come", joining.of_one_pass == 1 ? "" : " each",
                        joining.of_several, joining.of_several == 1 ? "s" : "", where);
    if (joining.disagrees)
        kprof_strbuf_puts(out, "those marked * passes that disagree");
    else
        kprof_strbuf_puts(out, joining.is_witnessed ? "which agree" : "and nothing tells whether these agree");
}

/* Show what has a line of its own, and which samples the medians leave out. */
static void show_columns(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    for (kprof_column_id i = 0; i < KPROF_COLUMN_COUNT; i++) {
        char shape[48];
        kprof_strbuf line = KPROF_STRBUF_INIT;
        if (!kprof_launch_columns[i].in_text || !kprof_launch_cell(&texts, i).is_there)
            continue;
        const kprof_emit_field field = kprof_field_of_launch(&texts, i, shape);
        kprof_strbuf_printf(&line, "%s: ", field.label);
        kprof_field_describe(&field, emitter->options->base_units, &line);
        put_buffer(emitter, (text_block){STYLE_PLAIN, 2, text_width(emitter), false}, &line);
    }
    if (texts.samples_note.length > 0)
        show_note(emitter, "Note", texts.samples_note.data);
}

static void show_origin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    const text_block lines = {STYLE_PLAIN, 2, text_width(emitter), false};
    kprof_strbuf origin = KPROF_STRBUF_INIT, joining = KPROF_STRBUF_INIT;
    if (launch->samples)
        describe_multiplexed(launch, &origin);
    else
        describe_one_launch(launch, &origin);
    if (emitter->launches.in_sections) /* it tells the passes of each value */
        describe_joining(emitter, launch, &joining);
    put_buffer(emitter, lines, &origin);
    put_buffer(emitter, lines, &joining);
    show_columns(emitter, launch);
    if (*launch->reason)
        show_note(emitter, kprof_model_is_missing(launch) ? "Not measured" : "Note", launch->reason);
    show_disagreements(emitter, launch);
}

/* Does each value have a column for its passes? Only on the raw page; in narrow output they stand below the row, so
 * that names stay whole as far as possible. */
static bool has_pass_column(const kprof_emitter *emitter)
{
    const unsigned width = emitter->options->width;
    return !emitter->launches.in_sections && (width == 0 || width >= KPROF_TEXT_COLUMNS);
}

static void text_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    text_emitter *text = of(emitter);
    const kprof_model_process *process = launch->process;
    if (text->process != process) {
        text->process = process;
        blank_line(text);
        kprof_output_printf(emitter->out, "[%ld] %s@%s\n", process->pid, process->name, process->host);
    }
    blank_line(text);
    show_heading(emitter, launch);
    show_origin(emitter, launch);
    text->hides_missing = launch->measured == 0;
    text->shows_spread = launch->samples && launch->samples->used > 1;
    text->follows_idle = false;
    const bool has_passes = has_pass_column(emitter);
    kprof_grid_free(&text->items);
    /* The name, the value, how far samples of it spread, its passes where no section shows it, a bar. */
    text->items = kprof_grid_make(text->shows_spread ? has_passes ? "tnntt" : "tnnt" : has_passes ? "tntt" : "tnt");
    /* Programs search the raw page line by line: its lines have any length unless a width is asked for. */
    text->items.width = emitter->launches.in_sections ? width_of(emitter) : emitter->options->width;
    text->items.has_bars = true;
    text->items.group = text->shows_spread ? 2 : 1;
}

static void text_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    of(emitter)->section = section;
    of(emitter)->is_told = of(emitter)->is_idle = false;
}

/* The section's name, with what can be said of it in a line ("": nothing), and its help where that is wanted. */
static void show_section(text_emitter *text, const char *in_short)
{
    kprof_emitter *emitter = &text->base;
    const kprof_section *section = text->section;
    text->section = NULL;
    /* Sections of a line each stand below each other. */
    if (!*in_short || !text->follows_idle)
        kprof_output_puts(emitter->out, "\n");
    text->follows_idle = *in_short;
    PUT_FORMAT(emitter, ((text_block){STYLE_SECTION, 2, width_of(emitter), false}), "%s%s", section->name, in_short);
    if (emitter->options->details_help && section->help)
        put_lines(emitter, (text_block){STYLE_PLAIN, 2, width_of(emitter), true}, section->help);
}

/* Print what the section has collected so far, below its name. */
static void flush_items(text_emitter *text)
{
    if (text->section && text->items.cell_count > 0)
        show_section(text, "");
    kprof_grid_print(&text->items, text->base.out, text->base.launches.in_sections ? 4 : 2);
}

/* Finish the items of a section before something else of it is printed. */
static void begin_part(text_emitter *text)
{
    flush_items(text);
    if (text->section)
        show_section(text, "");
    else
        kprof_output_puts(text->base.out, "\n");
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

/* Mark the latest cell if it joins passes that disagree. */
static void mark_disagreeing(text_emitter *text, kprof_grid *grid, bool disagrees)
{
    if (!disagrees)
        return;
    kprof_grid_mark(grid);
    text->has_marks = true;
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
    kprof_human human = kprof_units_human(metric->value, metric->unit, emitter->options->base_units);
    kprof_grid_add(grid, human.number, human.unit);
    if (emitter->launches.in_sections) { /* words tell the passes elsewhere */
        of(emitter)->has_excess = of(emitter)->has_excess || kprof_is_excess(metric->value, metric->unit);
        mark_disagreeing(of(emitter), grid, metric->disagrees);
    }
    if (of(emitter)->shows_spread)
        put_spread(emitter, grid, metric);
}

/* "pass 1", "passes 1-3 5", in the next cell or below the row that ends with the latest one. */
static void put_passes(kprof_grid *grid, const kprof_emit_metric *metric, bool in_cell)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    if (metric->pass_count > 0)
        kprof_strbuf_printf(&text, "%s %s", metric->pass_count == 1 ? "pass" : "passes", metric->passes);
    if (in_cell)
        kprof_grid_add(grid, kprof_strbuf_text(&text), "");
    else if (metric->pass_count > 0)
        kprof_grid_note(grid, NULL, kprof_strbuf_text(&text));
}

/* Return the meaning of a metric: the section's help, or else the description from CUPTI. */
static const char *help_of(const kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    const kprof_model *model = emitter->launches.model;
    if (metric->help)
        return metric->help;
    return metric->metric < model->metric_count ? model->metrics[metric->metric].description : "";
}

static void put_help(const kprof_emitter *emitter, kprof_grid *grid, const char *help)
{
    if (emitter->options->details_help && help && *help)
        kprof_grid_note(grid, NULL, help);
}

/* In a section a metric has what people read, else everything. */
static void text_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    kprof_grid *items = &of(emitter)->items;
    const bool in_sections = emitter->launches.in_sections;
    if (of(emitter)->hides_missing && isnan(metric->value))
        return;
    if (metric->told_before && !emitter->options->all_rows) {
        of(emitter)->is_told = true;
        return;
    }
    kprof_grid_add(items, in_sections ? metric->label : metric->name, "");
    put_value_columns(emitter, items, metric);
    const bool has_passes = has_pass_column(emitter);
    if (has_passes)
        put_passes(items, metric, true);
    put_bar(items, metric);
    if (!in_sections && !has_passes)
        put_passes(items, metric, false);
    put_help(emitter, items, help_of(emitter, metric));
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
    grid.has_bars = true;
    grid.group = step;
    return grid;
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

/* Are all values zero, or ratios of zeros? A missing value is not zero. */
static bool is_zero_row(const kprof_emit_table *table, size_t row)
{
    const size_t columns = table->table->column_count;
    bool has_zero = false;
    for (size_t i = 0; i < columns; i++) {
        const kprof_emit_metric *cell = table->cells[row * columns + i];
        if (!cell || (isnan(cell->value) && table->table->rows[row].cells[i].expression))
            continue;
        if (cell->value != 0 || (cell->spread && cell->spread->mad > 0)) /* NaN too */
            return false;
        has_zero = true;
    }
    return has_zero;
}

static void add_table_row(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_table *table, size_t row)
{
    const size_t columns = (grid->column_count - 2) / grid->group;
    const kprof_emit_metric **cells = &table->cells[row * table->table->column_count];
    const char *label = table->table->rows[row].label;
    kprof_grid_add(grid, label ? label : "", "");
    const kprof_emit_metric *share = NULL; /* the first one gets the bar */
    for (size_t k = 0; k < columns; k++) {
        put_cell(emitter, grid, cells[k]);
        if (!share && cells[k] && is_share(cells[k]))
            share = cells[k];
    }
    if (share)
        put_bar(grid, share);
    else
        kprof_grid_add(grid, "", "");
    if (columns == 1 && cells[0])
        put_help(emitter, grid, help_of(emitter, cells[0]));
    for (size_t k = 0; k < columns && columns > 1; k++)
        put_help(emitter, grid, cells[k] ? cells[k]->help : NULL);
}

/* List the rows that are zero in one line, or say how many there are. */
static void show_folded(kprof_emitter *emitter, const kprof_emit_table *table, size_t count)
{
    KPROF_AUTO(kprof_strbuf) names = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&names, "Zero: ");
    for (size_t i = 0, named = 0; i < table->table->row_count; i++) {
        const char *label = table->table->rows[table->order[i]].label;
        if (is_zero_row(table, table->order[i]))
            kprof_strbuf_printf(&names, "%s%s", named++ ? ", " : "", label ? label : "");
    }
    if (kprof_text_width(kprof_strbuf_text(&names)) + 4 <= width_of(emitter))
        kprof_output_printf(emitter->out, "    %s\n", kprof_strbuf_text(&names));
    else
        kprof_output_printf(emitter->out, "    Zero: %zu more rows\n", count);
    of(emitter)->has_folded = true;
}

static void text_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    text_emitter *text = of(emitter);
    const bool has_cells = KPROF_ANY(i, table->table->row_count * table->table->column_count,
                                     table->cells[i] && !isnan(table->cells[i]->value));
    if (text->hides_missing && !has_cells)
        return;
    begin_part(text);
    const size_t most = (KPROF_GRID_COLUMNS_MAX - 2) / (text->shows_spread ? 2 : 1);
    const size_t stride = table->table->column_count, row_count = table->table->row_count;
    KPROF_AUTO(kprof_grid) grid = table_grid(text, table, stride > most ? most : stride);
    size_t folded = 0;
    for (size_t i = 0; i < row_count; i++) {
        const bool is_folded = !emitter->options->all_rows && is_zero_row(table, table->order[i]);
        folded += is_folded;
        if (!is_folded)
            add_table_row(emitter, &grid, table, table->order[i]);
    }
    if (folded == row_count && row_count > 0)
        put_lines(emitter, (text_block){STYLE_PLAIN, 4, width_of(emitter), false}, table->table->title);
    kprof_grid_print(&grid, emitter->out, 4);
    kprof_strbuf excess = KPROF_STRBUF_INIT;
    kprof_table_describe_excess(table, &excess);
    put_buffer(emitter, (text_block){STYLE_PLAIN, 4, width_of(emitter), false}, &excess);
    if (folded > 0)
        show_folded(emitter, table, folded);
    kprof_plot_chain(emitter->out, table, emitter->options->base_units, width_of(emitter));
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
    size_t length = kprof_number_grouped(below, point->at.headroom, (kprof_number_style){.decimals = 2, .fixed = 1});
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

/* True when a roofline was measured but did no work, as for most precisions in most kernels. */
static bool is_idle(const kprof_emit_roofline *line)
{
    return !KPROF_ANY(i, line->point_count, !line->points[i].at.measured || line->points[i].at.has_work) &&
           line->point_count > 0;
}

static bool is_hidden(const kprof_emitter *emitter, const kprof_emit_roofline *line)
{
    return !emitter->options->all_rows && is_idle(line);
}

static void show_legend(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    static const char *const headers[] = {"",     "Roofline", "Achieved", "Peak",      "Intensity",
                                          "Roof", "Of roof",  "Distance", "Limited by"};
    KPROF_AUTO(kprof_grid) grid = kprof_grid_make("ttnnnnnnt");
    grid.width = width_of(emitter);
    grid.key_count = 2;
    for (size_t i = 0; i < grid.column_count; i++)
        grid.headers[i] = headers[i];
    size_t index = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rooflines[i].point_count && !is_hidden(emitter, &rooflines[i]); k++) {
            const kprof_emit_roofline *line = &rooflines[i];
            const kprof_emit_point *point = &line->points[k];
            char mark[2] = {point->at.has_work ? kprof_plot_mark(index++) : ' ', '\0'}, name[96];
            snprintf(name, sizeof name, "%.40s / %.40s", line->label, point->level);
            kprof_grid_add(&grid, mark, "");
            kprof_grid_add(&grid, name, "");
            /* Marked once, at its name: its numbers come from one another. */
            mark_disagreeing(of(emitter), &grid,
                             line->work->disagrees || line->peak->disagrees || point->intensity->disagrees ||
                                 point->pct->disagrees);
            legend_row(emitter, &grid, line, point);
        }
    }
    kprof_grid_print(&grid, emitter->out, 4);
    kprof_strbuf names = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        if (is_hidden(emitter, &rooflines[i]))
            kprof_strbuf_printf(&names, "%s%s", names.length > 0 ? ", " : "No work: ", rooflines[i].label);
    put_buffer(emitter, (text_block){STYLE_PLAIN, 4, width_of(emitter), false}, &names);
}

static void text_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    bool has_points = kprof_plot_has_points(rooflines, count);
    if (of(emitter)->hides_missing && !has_points)
        return;
    const kprof_section *section = of(emitter)->section;
    if (section && section->table_count == 0 && KPROF_ALL(i, count, is_hidden(emitter, &rooflines[i]))) {
        of(emitter)->is_idle = true;
        return;
    }
    begin_part(of(emitter));
    if (has_points && kprof_plot_rooflines(emitter->out, rooflines, count, width_of(emitter)))
        kprof_output_puts(emitter->out, "\n");
    show_legend(emitter, rooflines, count);
}

/* Lines of a list whose elements are not broken. */
typedef struct text_list {
    kprof_emitter *emitter;
    kprof_strbuf line;
} text_list;

static void end_line(text_list *list, const char *end)
{
    if (list->line.length > 0)
        kprof_output_printf(list->emitter->out, "      %s%s\n", list->line.data, end);
    kprof_strbuf_clear(&list->line);
}

/* Add values with the same occupancy, as "33 to 40: 75 %". */
static void add_step(text_list *list, const kprof_what_if_step *step)
{
    char from[KPROF_NUMBER_SIZE], to[KPROF_NUMBER_SIZE], text[3 * KPROF_NUMBER_SIZE + 16];
    const kprof_human share = kprof_units_human(step->warps_pct, "%", false);
    const bool is_range = step->to != step->from, runs = step->warps_pct > 0;
    kprof_number_grouped(from, step->from, (kprof_number_style){0});
    kprof_number_grouped(to, step->to, (kprof_number_style){0});
    const int length = snprintf(text, sizeof text, "%s%s%s: %s%s", from, is_range ? " to " : "", is_range ? to : "",
                                runs ? share.number : "cannot run", runs ? " %" : "");
    if (list->line.length + (size_t)length + 9 > width_of(list->emitter))
        end_line(list, ",");
    kprof_strbuf_printf(&list->line, "%s%s", list->line.length > 0 ? ", " : "", text);
}

static void text_what_if(kprof_emitter *emitter, const kprof_what_if *curves, size_t count)
{
    begin_part(of(emitter));
    const text_block lines = {STYLE_PLAIN, 4, width_of(emitter), false};
    put_lines(emitter, lines, "Theoretical occupancy, if one of these were different");
    for (size_t i = 0; i < count; i++) {
        char now[KPROF_NUMBER_SIZE];
        kprof_number_grouped(now, curves[i].now, (kprof_number_style){0});
        PUT_FORMAT(emitter, lines, "%s (%s now)", curves[i].label, now);
        /* Show some values of a curve with many steps, and all with --all. */
        enum { MANY = 12, LEAST = 32 };
        const bool in_short = curves[i].step_count > MANY && !emitter->options->all_rows;
        text_list list = {emitter, KPROF_STRBUF_INIT};
        uint32_t power = LEAST;
        for (size_t k = 0; k < curves[i].step_count; k++) {
            const kprof_what_if_step *step = &curves[i].steps[k];
            if (!in_short)
                add_step(&list, step);
            for (; in_short && power <= step->to; power *= 2)
                add_step(&list, &(kprof_what_if_step){power, power, step->warps_pct});
        }
        end_line(&list, "");
        kprof_strbuf_free(&list.line);
    }
}

static void text_section_end(kprof_emitter *emitter)
{
    text_emitter *text = of(emitter);
    if (text->is_idle) { /* its items stand in the next section that has more than a line */
        show_section(text, ": no work");
        return;
    }
    flush_items(text);
    if (text->section && text->is_told)
        show_section(text, ": all of it stands above");
    text->section = NULL;
}

static void text_launch_end(kprof_emitter *emitter)
{
    if (of(emitter)->follows_idle && of(emitter)->items.cell_count > 0)
        kprof_output_puts(emitter->out, "\n");
    flush_items(of(emitter));
}

static void text_verdict(kprof_emitter *emitter, const kprof_emit_findings *findings)
{
    const bool base_units = emitter->options->base_units;
    bool has_rows = false;
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_emit_verdict_row(findings, i, base_units);
        kprof_strbuf_puts(&row.text, i == KPROF_ROW_NEXT && findings->next ? " below" : "");
        const bool is_shown = row.text.length > 0 && (row.is_known || !of(emitter)->hides_missing);
        kprof_output_puts(emitter->out, is_shown && !has_rows ? "\n" : "");
        if (is_shown)
            kprof_text_labelled(emitter->out, (kprof_text_place){2, width_of(emitter)}, row.label, row.text.data);
        has_rows = has_rows || is_shown;
    }
    /* "Not evaluated: PartialSectors (needs ...)" */
    kprof_strbuf line = KPROF_STRBUF_INIT;
    if (findings->open_count > 0)
        kprof_strbuf_puts(&line, "Not evaluated: ");
    kprof_emit_not_evaluated(findings, &line);
    put_buffer(emitter, (text_block){STYLE_PLAIN, 2, width_of(emitter), true}, &line);
    of(emitter)->has_verdict = has_rows;
}

static void text_hot_line(kprof_emitter *emitter, const kprof_hot_line *line)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_hot_line_describe(line, &text);
    if (!line->reason)
        kprof_strbuf_puts(&text, "; --page source has more");
    kprof_output_puts(emitter->out, of(emitter)->has_verdict ? "" : "\n");
    kprof_text_labelled(emitter->out, (kprof_text_place){2, width_of(emitter)}, "Hottest", kprof_strbuf_text(&text));
}

static void put_series(kprof_emitter *emitter, const kprof_launch_timeline *timeline,
                       const kprof_timeline_series *series)
{
    enum { INDENT = 6 };
    const struct {
        const char *word;
        double value;
    } values[] = {{": least ", series->least}, {", mean ", series->mean}, {", most ", series->most}};
    const size_t width = width_of(emitter);
    char line[KPROF_TIMELINE_SIZE];
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&text, or_empty(series->label));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const kprof_human human = kprof_units_human(values[i].value, series->unit, emitter->options->base_units);
        kprof_strbuf_puts(&text, values[i].word);
        kprof_human_put(&human, &text);
    }
    put_buffer(emitter, (text_block){STYLE_PLAIN, 4, width, false}, &text);
    kprof_timeline_draw(timeline, series, width > INDENT ? width - INDENT : 1, line);
    kprof_output_printf(emitter->out, "      %s\n", line);
}

static void text_over_time(kprof_emitter *emitter, const kprof_launch_timeline *timeline)
{
    const kprof_human end = kprof_units_human((double)timeline->end_ns, "ns", emitter->options->base_units);
    kprof_strbuf heading = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&heading, "Over time");
    if (timeline->series_count > 0)
        kprof_strbuf_printf(&heading, ", %s %s from begin to end", end.number, end.unit);
    if (timeline->laid_over > 1)
        kprof_strbuf_printf(&heading, ", mean of %lu launches laid over one another", timeline->laid_over);
    kprof_output_puts(emitter->out, "\n");
    put_buffer(emitter, (text_block){STYLE_PLAIN, 2, width_of(emitter), false}, &heading);
    if (timeline->reason)
        kprof_text_labelled(emitter->out, (kprof_text_place){4, width_of(emitter)}, "Note", timeline->reason);
    for (size_t i = 0; i < timeline->series_count; i++)
        put_series(emitter, timeline, &timeline->series[i]);
}

/* The values that show it, and where its estimate comes from. */
static void show_evidence(kprof_emitter *emitter, const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    const text_block lines = {STYLE_PLAIN, 6, width_of(emitter), true};
    kprof_strbuf line = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < finding->value_count; i++) {
        const kprof_finding_value *value = &finding->values[i];
        kprof_human human =
            kprof_units_human(found->values[finding->threshold_count + i], value->unit, emitter->options->base_units);
        if (!value->label)
            continue;
        kprof_strbuf_printf(&line, "%s%s ", line.length ? "; " : "Values: ", value->label);
        if (found->options[i] != SIZE_MAX) {
            kprof_found_option(found, i, emitter->options->base_units, &line);
            kprof_strbuf_puts(&line, ", ");
        }
        kprof_human_put(&human, &line);
    }
    put_buffer(emitter, lines, &line);
    if (finding->gain_formula)
        PUT_FORMAT(emitter, lines, "Estimate: %s", finding->gain_formula);
    if (finding->gain_source)
        PUT_FORMAT(emitter, lines, "Estimate from: %s", finding->gain_source);
}

/* "Uncoalesced access: up to 12.50 % of the time (high confidence)" */
static void text_finding(kprof_emitter *emitter, const kprof_found *found)
{
    text_emitter *text = of(emitter);
    const kprof_finding *finding = found->finding;
    const text_block paragraph = {STYLE_PLAIN, 6, width_of(emitter), true};
    kprof_strbuf heading = KPROF_STRBUF_INIT, message = KPROF_STRBUF_INIT, advice = KPROF_STRBUF_INIT;
    kprof_strbuf where = KPROF_STRBUF_INIT;
    text->is_idle = false; /* the section has more than a line */
    begin_part(text);
    kprof_strbuf_printf(&heading, "! %s", finding->name);
    kprof_found_describe(found, &heading);
    put_buffer(emitter, (text_block){STYLE_NOTE, 4, width_of(emitter), false}, &heading);
    kprof_found_text(found, finding->message, emitter->options->base_units, &message);
    kprof_found_text(found, finding->advice, emitter->options->base_units, &advice);
    kprof_found_where(found, &where);
    put_buffer(emitter, paragraph, &message);
    put_buffer(emitter, paragraph, &advice);
    put_buffer(emitter, paragraph, &where);
    if (emitter->options->details_help)
        show_evidence(emitter, found);
    text->follows_idle = false;
}

/* As kprof_field_describe, with shorter names where there are any. */
static void describe_field(const kprof_emitter *emitter, const kprof_emit_field *field, kprof_strbuf *out)
{
    if (field->short_text)
        kprof_strbuf_puts(out, field->short_text);
    else
        kprof_field_describe(field, emitter->options->base_units, out);
}

static void put_field(kprof_emitter *emitter, kprof_grid *grid, const kprof_emit_field *field)
{
    char number[KPROF_NUMBER_SIZE];
    if (kprof_field_is_missing(field)) {
        kprof_grid_add(grid, field->missing ? field->missing : "n/a", "");
        kprof_grid_miss(grid);
    } else if (field->type == KPROF_FIELD_TEXT) {
        kprof_grid_add(grid, field->short_text ? field->short_text : field->text, "");
    } else if (field->type == KPROF_FIELD_INTEGER) {
        (field->is_amount ? kprof_number_integer_grouped : kprof_number_integer)(number, field->integer);
        kprof_grid_add(grid, number, "");
    } else {
        kprof_human human = kprof_field_human(field, emitter->options->base_units);
        kprof_grid_add(grid, human.number, human.unit);
        of(emitter)->has_excess =
            of(emitter)->has_excess || (field->is_value && kprof_is_excess(field->real, field->unit));
    }
    if (field->is_told)
        kprof_grid_miss(grid);
    mark_disagreeing(of(emitter), grid, field->disagrees);
}

/* A record is a block of "label: value" lines. */
static void show_block(kprof_emitter *emitter, const kprof_emit_record *record)
{
    KPROF_AUTO(kprof_grid) grid = kprof_grid_make("tt");
    grid.width = emitter->options->width;
    grid.wraps = true;
    if (of(emitter)->record_count++ > 0)
        kprof_output_puts(emitter->out, "\n");
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        const bool is_line = field->role == KPROF_ROLE_PEOPLE && !kprof_field_is_missing(field);
        if (field->role != KPROF_ROLE_SHOWN && !is_line)
            continue;
        KPROF_AUTO(kprof_strbuf) value = KPROF_STRBUF_INIT;
        kprof_field_describe(field, emitter->options->base_units, &value);
        kprof_grid_add(&grid, field->label, "");
        kprof_grid_add(&grid, kprof_strbuf_text(&value), "");
        mark_disagreeing(of(emitter), &grid, field->disagrees);
    }
    kprof_grid_print(&grid, emitter->out, 2);
}

/* The grid of rows gets its columns from the first of them. */
static void begin_rows(text_emitter *text, const kprof_emit_record *record)
{
    kprof_grid *rows = &text->rows;
    kprof_grid_free(rows);
    *rows = kprof_grid_make("");
    rows->width = text->base.options->width;
    rows->wraps = true;
    for (size_t i = 0; i < record->count && rows->column_count < KPROF_GRID_COLUMNS_MAX; i++) {
        const kprof_emit_field *field = &record->fields[i];
        const size_t column = rows->column_count;
        if (field->role != KPROF_ROLE_SHOWN)
            continue;
        rows->width = field->is_copied ? 0 : rows->width;
        rows->headers[column] = field->label;
        rows->folds[column] = !field->folds ? KPROF_FOLD_NEVER : field->plain ? KPROF_FOLD_TEXT : KPROF_FOLD_LABELS;
        rows->is_number[column] = field->type != KPROF_FIELD_TEXT;
        rows->column_count++;
    }
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

/* In a list with verdicts, only the first rows show theirs, and what does not fit into a line. */
static void add_row(text_emitter *text, const kprof_emit_record *record)
{
    enum { WITH_VERDICT = 5 };
    const bool is_verbose = text->record_count < WITH_VERDICT || text->base.options->verbose;
    const bool has_verdict = KPROF_ANY(i, record->count, record->fields[i].role == KPROF_ROLE_VERDICT);
    if (text->rows.column_count == 0)
        begin_rows(text, record);
    for (size_t i = 0; i < record->count; i++) {
        if (record->fields[i].role != KPROF_ROLE_SHOWN)
            continue;
        put_field(&text->base, &text->rows, &record->fields[i]);
        if (has_verdict && !is_verbose && record->fields[i].folds)
            kprof_grid_miss(&text->rows);
    }
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        const bool is_note = field->role == KPROF_ROLE_NOTE || (field->role == KPROF_ROLE_VERDICT && is_verbose);
        if (is_note && !kprof_field_is_missing(field)) {
            KPROF_AUTO(kprof_strbuf) note = KPROF_STRBUF_INIT;
            describe_field(&text->base, field, &note);
            text->rows.width = width_of(&text->base);
            kprof_grid_note(&text->rows, field->plain ? NULL : field->label, kprof_strbuf_text(&note));
        } else if (has_verdict && is_verbose && field->longer_text &&
                   strcmp(field->longer_text, field->short_text) != 0)
            kprof_grid_note(&text->rows, NULL, field->longer_text);
    }
    text->record_count++;
    text->lacks_verdicts = text->lacks_verdicts || (has_verdict && !is_verbose);
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
        describe_field(emitter, field, &heading);
    }
    kprof_output_puts(emitter->out, "\n");
    put_buffer(emitter, (text_block){STYLE_HEADING, 0, text_width(emitter), false}, &heading);
}

static void flush_rows(text_emitter *text)
{
    if (text->heading && text->rows.cell_count > 0) {
        kprof_output_puts(text->base.out, "\n");
        put_lines(&text->base, (text_block){STYLE_SECTION, 2, text_width(&text->base), false}, text->heading);
    }
    kprof_grid_print(&text->rows, text->base.out, text->heading ? 4 : text->shape == KPROF_LIST_ALONE ? 0 : 2);
    kprof_grid_free(&text->rows);
    text->rows = (kprof_grid){0};
    free(text->heading);
    text->heading = NULL;
}

/* Columns are as wide as their widest cell: of very long tables that of a part, so that memory does not grow with them.
 */
#define MOST_CELLS 262144

static void text_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    text_emitter *text = of(emitter);
    if (!kprof_record_is_shown(record))
        return;
    if (text->shape != KPROF_LIST_ALONE && text->list) {
        blank_line(text);
        put_styled(emitter, STYLE_HEADING, text->list);
        text->list = NULL;
    }
    if (text->shape == KPROF_LIST_BLOCKS)
        show_block(emitter, record);
    else if (kprof_list_is_grouped(text->shape))
        show_record_heading(emitter, record);
    else {
        if (text->rows.cell_count >= MOST_CELLS) {
            flush_rows(text);
            kprof_output_puts(emitter->out, "\n");
        }
        add_row(text, record);
    }
}

static void text_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    text_emitter *text = of(emitter);
    const char *heading = kprof_record_heading(row);
    if (!kprof_record_is_shown(row))
        return;
    if (heading && (!text->heading || strcmp(heading, text->heading) != 0)) {
        flush_rows(text);
        text->heading = kprof_strdup(heading);
    }
    add_row(text, row);
}

static void text_rows_end(kprof_emitter *emitter)
{
    if (kprof_list_is_grouped(of(emitter)->shape))
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
    const text_block lines = {STYLE_PLAIN, 0, width_of(emitter), false};
    if (text->has_marks || text->has_excess || text->has_spreads || text->has_folded || text->lacks_verdicts)
        blank_line(text);
    if (text->has_marks)
        put_lines(emitter, lines,
                  "* joins counters of passes that disagree, by more than 0.1 % in instructions or 10 % in cycles or "
                  "time; --page raw names the passes");
    if (text->has_excess)
        put_lines(emitter, lines, KPROF_EXCESS_MEANING);
    if (text->has_spreads)
        put_lines(emitter, lines,
                  "+- is the median distance of the samples from the median, in percent of it, or in its unit where it "
                  "is 0");
    if (text->lacks_verdicts)
        put_lines(emitter, lines, "Verdicts stand below the first 5 kernels; --verbose shows all of them");
    if (text->has_folded)
        put_lines(emitter, lines, "Zero: rows whose values are all 0; --all shows them");
}

static void text_free(kprof_emitter *emitter)
{
    text_emitter *text = of(emitter);
    kprof_grid_free(&text->items);
    kprof_grid_free(&text->rows);
    free(text->heading);
}

const kprof_emitter_ops kprof_emit_text = {
    .size = sizeof(text_emitter),
    .launch_begin = text_launch_begin,
    .verdict = text_verdict,
    .hot_line = text_hot_line,
    .over_time = text_over_time,
    .section_begin = text_section_begin,
    .metric = text_metric,
    .table = text_table,
    .rooflines = text_rooflines,
    .what_if = text_what_if,
    .finding = text_finding,
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
