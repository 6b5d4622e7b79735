/* Text as ncu prints it, for scripts that read its lines: a table of names, units and values for each section, with
 * ncu's units, and the findings below it. It has the pages that ncu has, without kprof's verdict. */
#include "report/emit/ncu.h"
#include "report/model/number.h"

#include <math.h>
#include <string.h>

#define RULE_COLUMNS 110 /* of the text of a rule */

static const char *const metric_heads[] = {"Metric Name", "Metric Unit", "Metric Value"};
static const char *const summary_heads[] = {"Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"};
enum { MOST_COLUMNS = COUNT_OF(summary_heads) };

typedef struct ncu_text {
    kprof_emitter base;
    kprof_strlist cells;      /* of the table being put together, row by row */
    const char *const *heads; /* [column_count] */
    size_t column_count;
    char *section; /* the name above the table; NULL: it has none, or it has been printed */
    bool has_rule; /* behind the table */
    const kprof_model_launch *launch;
    int64_t pid; /* of the process told last; -1: none */
} ncu_text;

static ncu_text *of(kprof_emitter *emitter)
{
    return (ncu_text *)emitter;
}

static void put_dashes(const ncu_text *text, const size_t widths[MOST_COLUMNS])
{
    kprof_output_puts(text->base.out, "   ");
    for (size_t i = 0; i < text->column_count; i++) {
        kprof_output_puts(text->base.out, " ");
        kprof_output_repeat(text->base.out, '-', widths[i]);
    }
    kprof_output_puts(text->base.out, "\n");
}

/* Names stand on the left, all else on the right. */
static void put_line(const ncu_text *text, const size_t widths[MOST_COLUMNS], const char *const *cells)
{
    kprof_output_puts(text->base.out, "   ");
    for (size_t i = 0; i < text->column_count; i++)
        kprof_output_printf(text->base.out, i == 0 ? " %-*s" : " %*s", (int)widths[i], cells[i]);
    kprof_output_puts(text->base.out, "\n");
}

static void tell_section(ncu_text *text)
{
    if (text->section)
        kprof_output_printf(text->base.out, "    Section: %s\n", text->section);
    KPROF_FREE(text->section);
    text->section = NULL;
}

static void flush_table(ncu_text *text)
{
    size_t widths[MOST_COLUMNS];
    if (text->cells.count == 0)
        return;
    tell_section(text);
    for (size_t i = 0; i < text->column_count; i++)
        widths[i] = strlen(text->heads[i]);
    for (size_t i = 0; i < text->cells.count; i++) {
        const size_t length = strlen(text->cells.items[i]), column = i % text->column_count;
        widths[column] = length > widths[column] ? length : widths[column];
    }
    put_dashes(text, widths);
    put_line(text, widths, text->heads);
    put_dashes(text, widths);
    for (size_t i = 0; i + text->column_count <= text->cells.count; i += text->column_count)
        put_line(text, widths, (const char *const *)text->cells.items + i);
    put_dashes(text, widths);
    kprof_output_puts(text->base.out, "\n");
    kprof_strlist_free(&text->cells);
}

/* Return what the value is to be divided by, and write the unit that it has then. */
static double scale_of(const kprof_emitter *emitter, double value, const char *base, char unit[KPROF_NCU_UNIT_SIZE])
{
    if (!emitter->options->base_units)
        return kprof_units_ncu_scale(value, base, unit, KPROF_NCU_UNIT_SIZE);
    kprof_units_ncu(base, unit, KPROF_NCU_UNIT_SIZE);
    return 1;
}

static void add_number(ncu_text *text, double value, bool is_fixed)
{
    char number[KPROF_NUMBER_SIZE];
    kprof_ncu_number(number, value, is_fixed);
    kprof_strlist_add(&text->cells, isnan(value) ? "n/a" : number);
}

static void add_row(ncu_text *text, const char *name, const char *base, double value)
{
    char unit[KPROF_NCU_UNIT_SIZE];
    const double scale = scale_of(&text->base, value, base, unit);
    kprof_strlist_add(&text->cells, name);
    kprof_strlist_add(&text->cells, unit);
    add_number(text, value / scale, text->base.options->with_decimals);
}

static void begin_table(ncu_text *text, const char *const *heads, size_t count, const char *section)
{
    flush_table(text);
    KPROF_FREE(text->section);
    text->heads = heads;
    text->column_count = count;
    text->section = section ? kprof_ncu_section_name(section) : NULL;
}

/* Programs know the machine that they run on by this address, as ncu does. */
static void tell_process(ncu_text *text, int64_t pid, const char *name)
{
    if (text->pid != pid)
        kprof_output_printf(text->base.out, "[%ld] %s@127.0.0.1\n", pid, name);
    text->pid = pid;
}

static void forget_process(kprof_emitter *emitter)
{
    of(emitter)->pid = -1;
}

static void text_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    ncu_text *text = of(emitter);
    char shapes[96];
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    KPROF_AUTO_FREE char *name = kprof_ncu_kernel_name(emitter, launch, texts.kernel);
    const kprof_launch_record *record = &launch->record;
    const bool has_shape = *kprof_shapes_text(record, shapes);
    text->launch = launch;
    tell_process(text, launch->process->pid, launch->process->name);
    kprof_output_printf(emitter->out, "  %s%s%s, Context %u, Stream %lu, Device %u, CC %s\n", name,
                        has_shape ? " " : "", shapes, record->context, record->stream, record->device,
                        launch->device->cc);
    if (kprof_model_is_missing(launch) && *launch->reason)
        kprof_output_printf(emitter->out, "    WRN   Not measured: %s\n\n", launch->reason);
    begin_table(text, metric_heads, COUNT_OF(metric_heads), NULL);
}

static void text_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    begin_table(of(emitter), metric_heads, COUNT_OF(metric_heads), section->name);
}

static void text_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    const bool in_sections = emitter->launches.in_sections;
    const bool is_missing = of(emitter)->launch->measured == 0 && isnan(metric->value);
    if (is_missing || kprof_ncu_is_unknown(metric) || (in_sections && (metric->repeated || metric->told_before)))
        return;
    add_row(of(emitter), in_sections ? metric->label : metric->name, kprof_ncu_base_unit(metric), metric->value);
}

static void put_roofline_row(void *user, const kprof_ncu_row *row)
{
    add_row(user, row->label, row->unit, row->value);
}

static void text_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    kprof_ncu_rooflines(&(kprof_ncu_writer){emitter, of(emitter)->launch, put_roofline_row, emitter}, rooflines, count);
}

/* Break lines between words, and set all but the first below it. */
static void put_wrapped(kprof_output *out, const char *words)
{
    size_t column = 0;
    while (*words) {
        const size_t length = strcspn(words, " ");
        if (column > 0 && column + 1 + length > RULE_COLUMNS) {
            kprof_output_puts(out, "\n          ");
            column = 0;
        }
        if (column > 0)
            kprof_output_puts(out, " ");
        kprof_output_put(out, words, length);
        column += length + (column > 0);
        words += length + strspn(words + length, " ");
    }
    kprof_output_puts(out, "\n");
}

/* ncu gives four digits of an estimate, and a line between two rules. */
static void text_finding(kprof_emitter *emitter, const kprof_found *found)
{
    KPROF_AUTO(kprof_strbuf) words = KPROF_STRBUF_INIT;
    const bool has_gain = !isnan(found->gain_pct);
    flush_table(of(emitter));
    tell_section(of(emitter));
    if (of(emitter)->has_rule) {
        kprof_output_puts(emitter->out, "    ----- ");
        kprof_output_repeat(emitter->out, '-', RULE_COLUMNS);
        kprof_output_puts(emitter->out, "\n");
    }
    of(emitter)->has_rule = true;
    kprof_found_say(found, emitter->options->base_units, &words);
    kprof_output_printf(emitter->out, "    %s   ", kprof_ncu_rule_type(found));
    if (has_gain) {
        char estimate[KPROF_NUMBER_SIZE];
        kprof_number_general(estimate, found->gain_pct, 4);
        kprof_output_printf(emitter->out, "Est. %sSpeedup: %s%%\n          ",
                            found->finding->gain_is_local ? "Local " : "", estimate);
    }
    put_wrapped(emitter->out, kprof_strbuf_text(&words));
}

static void text_section_end(kprof_emitter *emitter)
{
    flush_table(of(emitter));
    if (of(emitter)->has_rule)
        kprof_output_puts(emitter->out, "\n");
    of(emitter)->has_rule = false;
}

/* Find the fields of these keys; false: a record of another list has not all of them. */
static bool find_fields(const kprof_emit_record *record, const char *const *keys, size_t count,
                        const kprof_emit_field **fields)
{
    return KPROF_ALL(i, count, (fields[i] = kprof_record_find(record, keys[i])));
}

/* Each of these is a row of its own: a kernel with a shape. */
static void text_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    enum { PID, PROCESS, KERNEL, GRID, BLOCK, DEVICE, CC, INVOCATIONS, FIELDS };
    static const char *const keys[FIELDS] = {"process_id", "process", "kernel", "grid",
                                             "block",      "device",  "cc",     "invocations"};
    const kprof_emit_field *fields[FIELDS];
    if (!find_fields(record, keys, FIELDS, fields))
        return;
    tell_process(of(emitter), fields[PID]->integer, fields[PROCESS]->text);
    kprof_output_printf(emitter->out, "  %s", fields[KERNEL]->text);
    if (fields[GRID]->text && fields[BLOCK]->text)
        kprof_output_printf(emitter->out, " %sx%s", fields[GRID]->text, fields[BLOCK]->text);
    kprof_output_printf(emitter->out, ", Device %ld, CC %s, Invocations %ld", fields[DEVICE]->integer, fields[CC]->text,
                        fields[INVOCATIONS]->integer);
    const kprof_emit_field *group = kprof_record_find(record, "group");
    if (emitter->options->group_by == KPROF_GROUP_NVTX && group && group->text)
        kprof_output_printf(emitter->out, ", %s", group->text);
    kprof_output_puts(emitter->out, "\n");
}

/* Minimum, maximum and average have one unit, that of the largest. */
static void text_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    enum { SECTION, LABEL, UNIT, MINIMUM, MAXIMUM, AVERAGE, FIELDS };
    static const char *const keys[FIELDS] = {"section_name", "label", "unit", "minimum", "maximum", "average"};
    const kprof_emit_field *fields[FIELDS];
    ncu_text *text = of(emitter);
    char unit[KPROF_NCU_UNIT_SIZE];
    if (!find_fields(row, keys, FIELDS, fields) || !kprof_record_is_shown(row) ||
        (fields[LABEL]->is_cell && !emitter->options->with_tables))
        return;
    KPROF_AUTO_FREE char *name = kprof_ncu_section_name(fields[SECTION]->text);
    if (!text->section || strcmp(text->section, name) != 0)
        begin_table(text, summary_heads, COUNT_OF(summary_heads), fields[SECTION]->text);
    const double scale = scale_of(emitter, fields[MAXIMUM]->real, fields[UNIT]->text, unit);
    kprof_strlist_add(&text->cells, fields[LABEL]->text);
    kprof_strlist_add(&text->cells, unit);
    for (size_t i = MINIMUM; i < FIELDS; i++)
        add_number(text, fields[i]->real / scale, true);
}

static void text_free(kprof_emitter *emitter)
{
    KPROF_FREE(of(emitter)->section);
    kprof_strlist_free(&of(emitter)->cells);
}

const kprof_emitter_ops kprof_emit_text_ncu = {
    .size = sizeof(ncu_text),
    .page_begin = forget_process,
    .launches_begin = forget_process,
    .launch_begin = text_launch_begin,
    .section_begin = text_section_begin,
    .metric = text_metric,
    .table = kprof_ncu_table,
    .rooflines = text_rooflines,
    .finding = text_finding,
    .section_end = text_section_end,
    .launch_end = text_section_end,
    .record_begin = text_record_begin,
    .row = text_row,
    .record_end = text_section_end,
    .free = text_free,
};
