/* The table of formats, and the default operations of emitters. */
#include "report/emit/emit.h"
#include "core/clean.h"
#include "report/emit/grid.h"
#include "report/store/limits.h"
#include "report/store/timeline_ingest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_ROW(id, name, keeps_text, ...) [KPROF_FORMAT_##id] = {&kprof_emit_##name, keeps_text},
static const struct {
    const kprof_emitter_ops *ops;
    bool keeps_text;
} formats[] = {KPROF_FORMATS(FORMAT_ROW, FORMAT_ROW)};

static void nothing(kprof_emitter *emitter)
{
    (void)emitter;
}

static void begin_list_of_launches(kprof_emitter *emitter)
{
    kprof_list_begin(emitter, "launches", "Launches", KPROF_LIST_GROUPS, false);
}

static int by_place(const void *a, const void *b)
{
    const kprof_column_id *left = a, *right = b;
    return kprof_launch_columns[*left].place - kprof_launch_columns[*right].place;
}

const kprof_emit_field *kprof_record_find(const kprof_emit_record *record, const char *key)
{
    return KPROF_FIRST(it, record->fields, record->count, strcmp(it->key, key) == 0);
}

/* A launch as a record of what people see of it. */
static void begin_record_of_launch(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    kprof_column_id columns[KPROF_COLUMN_COUNT];
    kprof_emit_field fields[KPROF_COLUMN_COUNT];
    char shapes[KPROF_COLUMN_COUNT][48];
    size_t count = 0;
    for (kprof_column_id i = 0; i < KPROF_COLUMN_COUNT; i++)
        if (kprof_launch_columns[i].place > 0 && kprof_launch_cell(&texts, i).is_there)
            columns[count++] = i;
    qsort(columns, count, sizeof *columns, by_place);
    for (size_t i = 0; i < count; i++)
        fields[i] = kprof_field_of_launch(&texts, columns[i], shapes[i]);
    emitter->launches.has_spreads = launch->samples && launch->samples->used > 1;
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, count});
}

/* In a section, people see the metric's label below the section's name, else its name and its passes. */
static void show_row_of_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    const kprof_model_spread *spread = metric->spread;
    const bool in_sections = emitter->launches.in_sections;
    const kprof_field_role of_sections = in_sections ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE;
    const kprof_field_role of_names = in_sections ? KPROF_ROLE_MACHINE : KPROF_ROLE_SHOWN;
    const kprof_field_role of_headings = in_sections ? KPROF_ROLE_HEADING : KPROF_ROLE_MACHINE;
    if (metric->repeated || metric->told_before)
        return;
    kprof_emit_field value = kprof_field_with("value", "Value", metric->value, metric->unit);
    kprof_emit_field mad = kprof_field_with("mad", "Median deviation", spread ? spread->mad : NAN, metric->unit);
    mad.missing = "";             /* as of what is known without counters */
    value.is_value = in_sections; /* the passes tell elsewhere */
    const kprof_emit_field fields[] = {
        kprof_field_text("section", "Section", metric->section ? metric->section->id : "", .role = KPROF_ROLE_MACHINE),
        kprof_field_text("section_name", "Section", metric->section ? metric->section->name : "", .role = of_headings),
        kprof_field_text("metric", "Metric", metric->name, .role = of_names),
        kprof_field_text("label", "Metric", metric->label, .role = of_sections),
        kprof_field_text("unit", "Unit", metric->unit, .role = KPROF_ROLE_MACHINE),
        value,
        kprof_field_text("passes", "Passes", metric->passes, .role = of_names),
        kprof_field_real("samples", "Samples", spread ? (double)spread->samples : NAN, .role = KPROF_ROLE_MACHINE),
        kprof_field_with_role(mad, emitter->launches.has_spreads ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
    };
    emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

void kprof_emit_cells(kprof_emitter *emitter, const kprof_emit_table *table)
{
    const size_t columns = table->table->column_count;
    for (size_t i = 0; i < table->table->row_count * columns; i++) {
        const kprof_emit_metric *cell = table->cells[table->order[i / columns] * columns + i % columns];
        if (cell)
            emitter->ops->metric(emitter, cell);
    }
}

static void show_points(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        emitter->ops->metric(emitter, rooflines[i].work);
        emitter->ops->metric(emitter, rooflines[i].peak);
        for (size_t k = 0; k < rooflines[i].point_count; k++) {
            const kprof_emit_point *point = &rooflines[i].points[k];
            emitter->ops->metric(emitter, point->traffic);
            emitter->ops->metric(emitter, point->peak);
            emitter->ops->metric(emitter, point->intensity);
            emitter->ops->metric(emitter, point->pct);
        }
    }
}

kprof_verdict_text kprof_emit_verdict_row(const kprof_emit_findings *all, kprof_verdict_row row, bool base_units)
{
    kprof_verdict_text text = kprof_verdict_describe(all->findings, row, base_units);
    if (row == KPROF_ROW_NEXT && text.is_known) {
        kprof_strbuf_clear(&text.text);
        kprof_strbuf_printf(&text.text, "%s%s",
                            all->next             ? "section "
                            : all->next_is_hidden ? "show --section "
                                                  : "collect --section ",
                            all->next ? all->next->name : text.name.data);
    }
    return text;
}

void kprof_table_describe_excess(const kprof_emit_table *table, kprof_strbuf *out)
{
    double greatest = NAN;
    for (size_t i = 0; table->whole && i < table->table->row_count * table->table->column_count; i++)
        greatest = table->cells[i] ? fmax(greatest, table->cells[i]->value) : greatest;
    if (table->whole && table->whole->value > greatest + 0.005)
        kprof_strbuf_printf(out, "%s is above each part here: CUPTI does not compute it from these averages",
                            table->whole->label);
}

bool kprof_is_excess(double value, const char *unit)
{
    return strcmp(unit, "%") == 0 && (value > 100.005 || value < -0.005);
}

void kprof_emit_lacks(const kprof_found *found, kprof_strlist *out)
{
    static const char of_samples[] = "timeline__";
    KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
    bool is_told = false;
    kprof_found_missing(found, &missing);
    for (size_t i = 0; i < missing.count; i++) {
        const bool is_of_samples = strncmp(missing.items[i], of_samples, strlen(of_samples)) == 0;
        if (!is_of_samples)
            kprof_strlist_add(out, missing.items[i]);
        else if (!is_told)
            kprof_strlist_take(out, kprof_strprintf("%d samples over time", KPROF_TIMELINE_LEAST_SAMPLES));
        is_told = is_told || is_of_samples;
    }
}

void kprof_emit_not_evaluated(const kprof_emit_findings *all, kprof_strbuf *out)
{
    for (size_t i = 0; i < all->open_count; i++) {
        KPROF_AUTO(kprof_strlist) lacks = KPROF_STRLIST_INIT;
        kprof_emit_lacks(all->open[i], &lacks);
        kprof_strbuf_printf(out, "%s%s", i > 0 ? "; " : "", all->open[i]->finding->id);
        for (size_t k = 0; k < lacks.count; k++)
            kprof_strbuf_printf(out, "%s%s", k ? ", " : " (needs ", lacks.items[k]);
        kprof_strbuf_puts(out, lacks.count ? ")" : "");
        if (all->open[i]->impossible_pct > 0) {
            kprof_strbuf_puts(out, " (");
            kprof_found_why_not(all->open[i], out);
            kprof_strbuf_puts(out, ")");
        }
    }
}

/* Operations that do nothing where the emitter has none. */
#define NO_OPERATIONS(X)                                                                                               \
    X(verdict, kprof_emit_findings)                                                                                    \
    X(members, kprof_emit_members)                                                                                     \
    X(code, kprof_emit_code)                                                                                           \
    X(stacks, kprof_told_stacks)                                                                                       \
    X(over_time, kprof_launch_timeline)                                                                                \
    X(hot_line, kprof_hot_line)                                                                                        \
    X(finding, kprof_found)                                                                                            \
    X(section_begin, kprof_section)                                                                                    \
    X(rows_begin, char)                                                                                                \
    X(list_begin, kprof_emit_list)                                                                                     \
    X(columns, kprof_emit_record)                                                                                      \
    X(record_begin, kprof_emit_record)                                                                                 \
    X(row, kprof_emit_record)
#define NO_OPERATION(name, type)                                                                                       \
    static void no_##name(kprof_emitter *emitter, const type *ignored)                                                 \
    {                                                                                                                  \
        (void)emitter;                                                                                                 \
        (void)ignored;                                                                                                 \
    }
NO_OPERATIONS(NO_OPERATION)

static void no_what_if(kprof_emitter *emitter, const kprof_what_if *curves, size_t count)
{
    (void)emitter;
    (void)curves;
    (void)count;
}

static void end_record(kprof_emitter *emitter)
{
    emitter->ops->record_end(emitter);
}

static void end_list(kprof_emitter *emitter)
{
    emitter->ops->list_end(emitter);
}

/* Fill in the operations that are missing; emit.h says how. */
static void add_defaults(kprof_emitter_ops *ops)
{
#define DEFAULT(operation, function) ops->operation = ops->operation ? ops->operation : (function)
    DEFAULT(launches_end, ops->launches_begin ? nothing : end_list);
    DEFAULT(launch_end, ops->launch_begin ? nothing : end_record);
#define DEFAULT_NO_OPERATION(name, type) DEFAULT(name, no_##name);
    NO_OPERATIONS(DEFAULT_NO_OPERATION)
    DEFAULT(page_begin, nothing);
    DEFAULT(launches_begin, begin_list_of_launches);
    DEFAULT(launch_begin, begin_record_of_launch);
    DEFAULT(metric, show_row_of_metric);
    DEFAULT(table, kprof_emit_cells);
    DEFAULT(rooflines, show_points);
    DEFAULT(what_if, no_what_if);
    DEFAULT(section_end, nothing);
    DEFAULT(record_end, nothing);
    DEFAULT(timeline, kprof_emit_timeline);
    DEFAULT(list_end, nothing);
    DEFAULT(page_end, nothing);
    DEFAULT(free, nothing);
#undef DEFAULT_NO_OPERATION
#undef DEFAULT
}

kprof_emitter *kprof_emitter_allocate(const kprof_emitter_ops *ops)
{
    kprof_emitter *emitter = kprof_calloc(1, ops->size);
    emitter->own = *ops;
    add_defaults(&emitter->own);
    emitter->ops = &emitter->own;
    return emitter;
}

bool kprof_format_keeps_text(const kprof_print_options *options)
{
    return formats[options->format].keeps_text;
}

bool kprof_format_repeats_names(const kprof_print_options *options)
{
    return options->format == KPROF_FORMAT_CSV;
}

bool kprof_format_counts_launches(const kprof_print_options *options)
{
    return options->format == KPROF_FORMAT_PROMETHEUS;
}

bool kprof_format_is_of_ncu(const kprof_print_options *options)
{
    return options->format == KPROF_FORMAT_CSV_NCU || options->format == KPROF_FORMAT_TEXT_NCU;
}

typedef void record_operation(kprof_emitter *emitter, const kprof_emit_record *record);

/* Clean one text of a field; `made` gets the copy, if one is needed. */
static void clean(const char **text, kprof_strlist *made)
{
    if (!*text || kprof_text_is_clean(*text))
        return;
    kprof_strlist_take(made, kprof_clean_text(*text));
    *text = made->items[made->count - 1];
}

/* Run an operation with a record of clean texts. */
static void run_clean(kprof_emitter *emitter, const kprof_emit_record *record, record_operation *operation)
{
    KPROF_AUTO_FREE kprof_emit_field *fields = kprof_calloc(record->count + 1, sizeof *fields);
    KPROF_AUTO(kprof_strlist) made = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < record->count; i++) {
        fields[i] = record->fields[i];
        clean(&fields[i].text, &made);
        clean(&fields[i].label, &made);
        clean(&fields[i].unit, &made);
        if (fields[i].text != record->fields[i].text) /* a part of a clean text is as clean as it is */
            fields[i].longer_text = fields[i].short_text = NULL;
    }
    operation(emitter, &(kprof_emit_record){fields, record->count});
}

#define CLEAN(operation)                                                                                               \
    static void clean_##operation(kprof_emitter *emitter, const kprof_emit_record *record)                             \
    {                                                                                                                  \
        run_clean(emitter, record, emitter->raw.operation);                                                            \
    }
CLEAN(columns)
CLEAN(record_begin)
CLEAN(row)

kprof_emitter *kprof_emitter_new(const char *page, const kprof_print_options *options, kprof_output *out)
{
    kprof_emitter *emitter = kprof_emitter_allocate(formats[options->format].ops);
    emitter->page = page;
    emitter->options = options;
    emitter->out = out;
    if (kprof_format_keeps_text(options))
        return emitter;
    emitter->raw = emitter->own;
    emitter->own.columns = clean_columns;
    emitter->own.record_begin = clean_record_begin;
    emitter->own.row = clean_row;
    return emitter;
}

char **kprof_kernel_names_new(const kprof_model *model, const char *kernel_base, size_t width)
{
    KPROF_AUTO_FREE const char **names = kprof_calloc(model->kernel_count + 1, sizeof *names);
    for (size_t i = 0; i < model->kernel_count; i++)
        names[i] = kprof_model_kernel_name(&model->kernels[i], kernel_base);
    return kprof_short_names_new(model->pool, names, model->kernel_count, width);
}

kprof_launch_texts kprof_emitter_texts(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    return kprof_launch_texts_make(emitter->launches.model, launch, emitter->options->kernel_base);
}

void kprof_emitter_free(kprof_emitter *emitter)
{
    if (!emitter)
        return;
    emitter->ops->free(emitter);
    kprof_pool_free(&emitter->pool);
    free(emitter);
}

kprof_status kprof_emitter_status(const kprof_emitter *emitter)
{
    return emitter->status == KPROF_OK && emitter->out->error ? KPROF_OUTPUT : emitter->status;
}

kprof_emit_field kprof_field_of_launch(const kprof_launch_texts *texts, kprof_column_id column, char shape[48])
{
    const kprof_column *own = &kprof_launch_columns[column];
    const kprof_cell cell = kprof_launch_cell(texts, column);
    kprof_emit_field field = kprof_field_integer(own->id, cell.title, cell.whole);
    if (own->kind == KPROF_CELL_SHAPE)
        field = kprof_field_text(own->id, cell.title, kprof_shape_text(&texts->launch->record, cell.shape, shape));
    else if (own->kind != KPROF_CELL_WHOLE)
        field = kprof_field_text(own->id, cell.title, cell.text);
    field.plain = own->plain;
    field.unit = own->unit ? own->unit : "";
    return field;
}

const char *kprof_shape_text(const kprof_launch_record *launch, const uint32_t shape[3], char text[48])
{
    if (kprof_launch_is_graph(launch))
        return NULL;
    snprintf(text, 48, "(%u, %u, %u)", shape[0], shape[1], shape[2]);
    return text;
}

const char *kprof_shapes_text(const kprof_launch_record *launch, char text[96])
{
    const uint32_t *grid = launch->grid, *block = launch->block;
    text[0] = '\0';
    if (!kprof_launch_is_graph(launch))
        snprintf(text, 96, "(%u, %u, %u)x(%u, %u, %u)", grid[0], grid[1], grid[2], block[0], block[1], block[2]);
    return text;
}

void kprof_show_record(kprof_emitter *emitter, const kprof_emit_field *fields, size_t count)
{
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, count});
    emitter->ops->record_end(emitter);
}

bool kprof_record_is_shown(const kprof_emit_record *record)
{
    return KPROF_ANY(i, record->count, record->fields[i].role != KPROF_ROLE_MACHINE);
}

kprof_emit_field kprof_field_with_role(kprof_emit_field field, kprof_field_role role)
{
    field.role = role;
    return field;
}

bool kprof_field_is_missing(const kprof_emit_field *field)
{
    return field->type == KPROF_FIELD_TEXT ? !field->text : field->type == KPROF_FIELD_REAL && isnan(field->real);
}

kprof_human kprof_field_human(const kprof_emit_field *field, bool base_units)
{
    kprof_human human = kprof_units_human(field->real, field->unit, base_units);
    if (field->is_signed && field->real > 0) {
        memmove(human.number + 1, human.number, sizeof human.number - 2); /* numbers are shorter */
        human.number[0] = '+';
    }
    return human;
}

void kprof_field_describe(const kprof_emit_field *field, bool base_units, kprof_strbuf *out)
{
    if (kprof_field_is_missing(field)) {
        kprof_strbuf_puts(out, field->missing ? field->missing : "n/a");
    } else if (field->type == KPROF_FIELD_TEXT) {
        size_t length = strnlen(field->text, field->is_copied ? SIZE_MAX : KPROF_CELL_BYTES + 1);
        const bool is_cut = length > KPROF_CELL_BYTES && !field->is_copied;
        while (is_cut && (length > KPROF_CELL_BYTES || kprof_utf8_continues(field->text[length])))
            length--; /* not within a character */
        kprof_strbuf_append(out, field->text, length);
        kprof_strbuf_puts(out, is_cut ? "..." : "");
    } else if (field->type == KPROF_FIELD_INTEGER) {
        char number[KPROF_NUMBER_SIZE];
        (field->is_amount ? kprof_number_integer_grouped : kprof_number_integer)(number, field->integer);
        kprof_strbuf_puts(out, number);
    } else {
        kprof_human human = kprof_field_human(field, base_units);
        kprof_human_put(&human, out);
    }
}

const char *kprof_record_heading(const kprof_emit_record *record)
{
    const size_t at = KPROF_FIND(i, record->count, record->fields[i].role == KPROF_ROLE_HEADING);
    return at < record->count ? record->fields[at].text : NULL;
}
