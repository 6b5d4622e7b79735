/* CSV in three layouts: long (a row per launch and metric), wide (a row per launch) and ncu's. Always rectangular,
 * numbers with '.' whatever the locale, text quoted by libcsv. */
#include "report/emit.h"
#include "report/number.h"
#include "report/units.h"
#include "report/witness.h"

#include <csv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a layout names and fills the columns that tell a launch. */
typedef struct csv_layout {
    const char *const *launch_columns;                                               /* NULL-terminated */
    void (*launch_fields)(kprof_emitter *emitter, const kprof_model_launch *launch); /* into the prefix */
} csv_layout;

typedef struct csv_emitter {
    kprof_emitter base;
    const csv_layout *layout;
    bool is_ncu, is_wide;
    kprof_strbuf prefix; /* of the launch: its columns, each followed by a comma */
    kprof_strbuf row;    /* being put together */
    char **tails;        /* [slot_count]: the texts of a metric, quoted, each followed by a comma; made on first use */
    double *values;      /* [column_count], of the launch, in the wide layouts */
    const char *list;    /* key of the list being written */
    int64_t record;      /* number of the record in it, from 1 */
    kprof_strbuf record_prefix; /* the fields of a record that has rows */
    bool header_done;
} csv_emitter;

static csv_emitter *of(kprof_emitter *emitter)
{
    return (csv_emitter *)emitter;
}

/* Quote through libcsv: csv_write needs at most twice the length and two quotes. */
static void put_text(kprof_strbuf *out, const char *text)
{
    char fixed[512];
    size_t length = strlen(text), room = 2 * length + 2;
    char *quoted = room <= sizeof fixed ? fixed : malloc(room);
    if (!quoted) {
        out->failed = true;
        return;
    }
    kprof_strbuf_append(out, quoted, csv_write(quoted, room, text, length));
    if (quoted != fixed)
        free(quoted);
}

static void put_comma(kprof_strbuf *out)
{
    kprof_strbuf_append(out, ",", 1);
}

static void put_text_field(kprof_strbuf *out, const char *text)
{
    put_text(out, text);
    put_comma(out);
}

static void put_integer_field(kprof_strbuf *out, int64_t value)
{
    char number[KPROF_NUMBER_SIZE];
    kprof_strbuf_append(out, number, kprof_number_integer(number, value));
    put_comma(out);
}

static void put_real(kprof_strbuf *out, double value)
{
    char number[KPROF_NUMBER_SIZE];
    kprof_strbuf_append(out, number, kprof_number_exact(number, value));
}

static const char *const plain_columns[] = {
    "launch",     "process_id", "process",     "host",     "function", "kernel",        "context", "stream",
    "graph_node", "device",     "device_name", "cc",       "grid_x",   "grid_y",        "grid_z",  "block_x",
    "block_y",    "block_z",    "replay_mode", "measured", "reason",   "disagreements", NULL};

static void put_compute_capability(kprof_strbuf *row, const kprof_model_device *device)
{
    kprof_strbuf_printf(row, "%u.%u", device->record.cc_major, device->record.cc_minor);
}

/* "witness 12.5 %; witness 3 %" */
static void put_disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    size_t count;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_status status = kprof_disagreements(emitter->page.model, launch, &found, &count);
    if (status != KPROF_OK) {
        emitter->status = status;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        kprof_strbuf_printf(&text, "%s%s ", i > 0 ? "; " : "", found[i].witness);
        put_real(&text, found[i].spread_pct);
        kprof_strbuf_puts(&text, " %");
    }
    kprof_strbuf *row = &of(emitter)->prefix;
    if (text.failed)
        row->failed = true;
    else if (count > 0)
        put_text(row, text.data);
    put_comma(row);
    kprof_strbuf_free(&text);
    kprof_disagreements_free(found, count);
}

static const char *shown_name(const kprof_emitter *emitter, const kprof_model_launch *launch)
{
    return kprof_model_kernel_name(launch->kernel, emitter->page.options->kernel_base);
}

/* Empty for a launch in no graph. */
static void put_graph_node(kprof_strbuf *row, uint64_t node)
{
    if (node)
        put_integer_field(row, (int64_t)node);
    else
        put_comma(row);
}

/* Empty for a graph as a whole. */
static void put_shape(kprof_strbuf *row, const kprof_launch_record *launch, const uint32_t shape[3])
{
    for (int i = 0; i < 3; i++) {
        if (kprof_launch_is_graph(launch))
            put_comma(row);
        else
            put_integer_field(row, shape[i]);
    }
}

static void plain_fields(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_strbuf *row = &of(emitter)->prefix;
    put_integer_field(row, launch->id);
    put_integer_field(row, launch->process->pid);
    put_text_field(row, launch->process->name);
    put_text_field(row, launch->process->host);
    put_text_field(row, launch->kernel->function);
    put_text_field(row, shown_name(emitter, launch));
    put_integer_field(row, launch->record.context);
    put_integer_field(row, (int64_t)launch->record.stream);
    put_graph_node(row, launch->record.graph_node);
    put_integer_field(row, launch->record.device);
    put_text_field(row, launch->device->name);
    put_compute_capability(row, launch->device);
    put_comma(row);
    put_shape(row, &launch->record, launch->record.grid);
    put_shape(row, &launch->record, launch->record.block);
    put_text_field(row, launch->replay_mode);
    put_integer_field(row, launch->measured);
    if (*launch->reason)
        put_text(row, launch->reason);
    put_comma(row);
    put_disagreements(emitter, launch);
}

static const csv_layout plain_layout = {plain_columns, plain_fields};

static const char *const ncu_columns[] = {"ID",     "Process ID", "Process Name", "Host Name", "Kernel Name", "Context",
                                          "Stream", "Block Size", "Grid Size",    "Device",    "CC",          NULL};

static void put_quoted_integer(kprof_strbuf *row, uint64_t value)
{
    kprof_strbuf_printf(row, "\"%llu\",", (unsigned long long)value);
}

static void put_quoted_shape(kprof_strbuf *row, const kprof_launch_record *launch, const uint32_t shape[3])
{
    if (kprof_launch_is_graph(launch))
        put_text_field(row, "");
    else
        kprof_strbuf_printf(row, "\"(%u, %u, %u)\",", shape[0], shape[1], shape[2]);
}

static void ncu_fields(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_strbuf *row = &of(emitter)->prefix;
    put_quoted_integer(row, (uint64_t)launch->id);
    put_quoted_integer(row, (uint64_t)launch->process->pid);
    put_text_field(row, launch->process->name);
    put_text_field(row, launch->process->host);
    put_text_field(row, shown_name(emitter, launch));
    put_quoted_integer(row, launch->record.context);
    put_quoted_integer(row, launch->record.stream);
    put_quoted_shape(row, &launch->record, launch->record.block);
    put_quoted_shape(row, &launch->record, launch->record.grid);
    put_quoted_integer(row, launch->record.device);
    kprof_strbuf_puts(row, "\"");
    put_compute_capability(row, launch->device);
    kprof_strbuf_puts(row, "\",");
}

static const csv_layout ncu_layout = {ncu_columns, ncu_fields};

/* Finish the row in csv->row: the last comma becomes the line's end. */
static void end_row(csv_emitter *csv)
{
    kprof_strbuf *row = &csv->row;
    if (row->failed) {
        csv->base.status = KPROF_NO_MEMORY;
        return;
    }
    if (row->length > 0) {
        row->data[row->length - 1] = '\n';
        kprof_output_put(csv->base.out, row->data, row->length);
    }
    kprof_strbuf_clear(row);
}

static void put_names(kprof_strbuf *row, const char *const *names)
{
    for (; *names; names++)
        put_text_field(row, *names);
}

/* Row 2 of ncu's raw page: units below the metrics, nothing below the rest. */
static void ncu_units_row(csv_emitter *csv)
{
    for (const char *const *name = csv->layout->launch_columns; *name; name++)
        put_text_field(&csv->row, "");
    for (size_t i = 0; i < csv->base.page.column_count; i++) {
        char unit[64];
        kprof_units_ncu(csv->base.page.columns[i].unit, unit, sizeof unit);
        put_text_field(&csv->row, unit);
    }
    end_row(csv);
}

static void launch_header(csv_emitter *csv)
{
    static const char *const plain_metric[] = {"section", "metric", "unit", "value", "passes", "samples", "mad", NULL};
    static const char *const ncu_metric[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value", NULL};
    put_names(&csv->row, csv->layout->launch_columns);
    if (!csv->is_wide)
        put_names(&csv->row, csv->is_ncu ? ncu_metric : plain_metric);
    for (size_t i = 0; csv->is_wide && i < csv->base.page.column_count; i++)
        put_text_field(&csv->row, csv->base.page.columns[i].name);
    end_row(csv);
    if (csv->is_wide && csv->is_ncu)
        ncu_units_row(csv);
}

static bool shows_launches(const kprof_emit_page *page)
{
    return page->page == KPROF_PAGE_DETAILS || page->page == KPROF_PAGE_RAW;
}

static void csv_page_begin(kprof_emitter *emitter)
{
    csv_emitter *csv = of(emitter);
    /* ncu's details page is long and its raw page wide. */
    if (csv->is_ncu)
        csv->is_wide = emitter->page.page == KPROF_PAGE_RAW;
    csv->tails = calloc(emitter->page.slot_count + 1, sizeof *csv->tails);
    csv->values = calloc(emitter->page.column_count + 1, sizeof *csv->values);
    if (!csv->tails || !csv->values) {
        emitter->status = KPROF_NO_MEMORY;
        return;
    }
    if (shows_launches(&emitter->page))
        launch_header(csv);
}

static void csv_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    csv_emitter *csv = of(emitter);
    kprof_strbuf_clear(&csv->prefix);
    csv->layout->launch_fields(emitter, launch);
    if (csv->prefix.failed)
        emitter->status = KPROF_NO_MEMORY;
    for (size_t i = 0; csv->is_wide && i < emitter->page.column_count; i++)
        csv->values[i] = NAN;
}

/* Section, metric and unit of a metric, as its rows have them. */
static char *make_tail(const csv_emitter *csv, const kprof_emit_metric *metric)
{
    kprof_strbuf tail = KPROF_STRBUF_INIT;
    const kprof_section *section = metric->section;
    if (csv->is_ncu) {
        char unit[64];
        kprof_units_ncu(metric->unit, unit, sizeof unit);
        put_text_field(&tail, section ? section->name : "");
        put_text_field(&tail, metric->label);
        put_text_field(&tail, unit);
    } else {
        put_text_field(&tail, section ? section->id : "");
        put_text_field(&tail, metric->name);
        put_text_field(&tail, metric->unit);
    }
    char *text = kprof_strbuf_take(&tail);
    kprof_strbuf_free(&tail);
    return text;
}

/* ncu prints two decimals on the details page and six on the raw page. */
static void put_ncu_value(kprof_strbuf *out, double value, unsigned decimals)
{
    char number[KPROF_NUMBER_SIZE];
    size_t length = kprof_number_grouped(number, value, (kprof_number_style){.decimals = decimals});
    kprof_strbuf_puts(out, "\"");
    kprof_strbuf_append(out, number, length);
    kprof_strbuf_puts(out, "\"");
}

/* Value, passes, samples and how far these spread; without the last comma. */
static void put_plain_value(kprof_strbuf *row, const kprof_emit_metric *metric)
{
    put_real(row, metric->value);
    put_comma(row);
    if (*metric->passes)
        put_text(row, metric->passes);
    put_comma(row);
    if (metric->spread)
        kprof_strbuf_printf(row, "%zu", metric->spread->samples);
    put_comma(row);
    if (metric->spread)
        put_real(row, metric->spread->mad);
}

static void long_row(csv_emitter *csv, const kprof_emit_metric *metric)
{
    char **tail = &csv->tails[metric->slot];
    if (!*tail)
        *tail = make_tail(csv, metric);
    if (!*tail || csv->base.status != KPROF_OK) {
        csv->base.status = KPROF_NO_MEMORY;
        return;
    }
    kprof_output_put(csv->base.out, csv->prefix.data, csv->prefix.length);
    kprof_output_puts(csv->base.out, *tail);
    if (csv->is_ncu)
        put_ncu_value(&csv->row, metric->value, 2);
    else
        put_plain_value(&csv->row, metric);
    put_comma(&csv->row);
    end_row(csv);
}

static void csv_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    csv_emitter *csv = of(emitter);
    if (csv->is_wide)
        csv->values[metric->column] = metric->value;
    else if (csv->is_ncu ? !metric->repeated : !metric->shown_before)
        long_row(csv, metric);
}

static void csv_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    if (of(emitter)->is_ncu) /* ncu prints the header items alone */
        return;
    const size_t columns = table->table->column_count;
    for (size_t i = 0; i < table->table->row_count * columns; i++) {
        const kprof_emit_metric *cell = table->cells[table->order[i / columns] * columns + i % columns];
        if (cell)
            csv_metric(emitter, cell);
    }
}

static void csv_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    if (of(emitter)->is_ncu)
        return;
    for (size_t i = 0; i < count; i++) {
        csv_metric(emitter, rooflines[i].work);
        csv_metric(emitter, rooflines[i].peak);
        for (size_t k = 0; k < rooflines[i].point_count; k++) {
            const kprof_emit_point *point = &rooflines[i].points[k];
            csv_metric(emitter, point->traffic);
            csv_metric(emitter, point->peak);
            csv_metric(emitter, point->intensity);
            csv_metric(emitter, point->pct);
        }
    }
}

static void csv_launch_end(kprof_emitter *emitter)
{
    csv_emitter *csv = of(emitter);
    if (!csv->is_wide || emitter->status != KPROF_OK)
        return;
    kprof_strbuf_append(&csv->row, csv->prefix.data, csv->prefix.length);
    for (size_t i = 0; i < emitter->page.column_count; i++) {
        if (csv->is_ncu)
            put_ncu_value(&csv->row, csv->values[i], 6);
        else
            put_real(&csv->row, csv->values[i]);
        put_comma(&csv->row);
    }
    end_row(csv);
}

static void csv_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    (void)emitter;
    (void)section;
}

static void put_field(kprof_strbuf *row, const kprof_emit_field *field)
{
    if (field->type == KPROF_FIELD_TEXT && field->text)
        put_text(row, field->text);
    else if (field->type == KPROF_FIELD_INTEGER)
        kprof_strbuf_printf(row, "%lld", (long long)field->integer);
    else if (field->type == KPROF_FIELD_REAL)
        put_real(row, field->real);
}

/* ncu's columns of the summary, and the fields that fill them. */
static const char *const ncu_summary[][2] = {
    {"process_id", "Process ID"},     {"kernel", "Kernel Name"}, {"invocations", "Invocations"},
    {"section_name", "Section Name"}, {"label", "Metric Name"},  {"unit", "Metric Unit"},
    {"minimum", "Minimum"},           {"maximum", "Maximum"},    {"average", "Average"},
};
#define NCU_SUMMARY_COLUMNS (sizeof ncu_summary / sizeof *ncu_summary)

static bool in_ncu_summary(const char *key)
{
    for (size_t i = 0; i < NCU_SUMMARY_COLUMNS; i++) {
        if (strcmp(ncu_summary[i][0], key) == 0)
            return true;
    }
    return false;
}

/* As put_field, in ncu's spelling and always quoted. */
static void put_ncu_field(kprof_strbuf *row, const kprof_emit_field *field)
{
    char unit[64];
    if (field->type == KPROF_FIELD_REAL) {
        put_ncu_value(row, field->real, 2);
    } else if (field->type == KPROF_FIELD_INTEGER) {
        kprof_strbuf_printf(row, "\"%lld\"", (long long)field->integer);
    } else if (strcmp(field->key, "unit") == 0) {
        kprof_units_ncu(field->text, unit, sizeof unit);
        put_text(row, unit);
    } else {
        put_text(row, field->text ? field->text : "");
    }
}

static void put_record(csv_emitter *csv, kprof_strbuf *row, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        if (csv->is_ncu && !in_ncu_summary(record->fields[i].key))
            continue;
        if (csv->is_ncu)
            put_ncu_field(row, &record->fields[i]);
        else
            put_field(row, &record->fields[i]);
        put_comma(row);
    }
}

static bool is_of_lists(const kprof_emitter *emitter)
{
    return emitter->page.page == KPROF_PAGE_SESSION || emitter->page.page == KPROF_PAGE_PLAN;
}

static void csv_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    static const char *const columns[] = {"list", "record", "field", "unit", "value", NULL};
    csv_emitter *csv = of(emitter);
    csv->list = list->key;
    csv->record = 0;
    if (is_of_lists(emitter) && !csv->header_done) {
        put_names(&csv->row, columns);
        end_row(csv);
        csv->header_done = true;
    }
}

/* The lists of such a page have different fields: a row for each field keeps the table rectangular. */
static void session_rows(csv_emitter *csv, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        put_text_field(&csv->row, csv->list);
        put_integer_field(&csv->row, csv->record);
        put_text_field(&csv->row, record->fields[i].key);
        put_text_field(&csv->row, record->fields[i].unit);
        put_field(&csv->row, &record->fields[i]);
        put_comma(&csv->row);
        end_row(csv);
    }
}

static void put_keys(csv_emitter *csv, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++)
        put_text_field(&csv->row, record->fields[i].key);
}

static void csv_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    csv_emitter *csv = of(emitter);
    csv->record++;
    if (is_of_lists(emitter)) {
        session_rows(csv, record);
        return;
    }
    kprof_strbuf_clear(&csv->record_prefix);
    put_record(csv, &csv->record_prefix, record);
    if (csv->record_prefix.failed)
        emitter->status = KPROF_NO_MEMORY;
    if (!csv->header_done && !csv->is_ncu)
        put_keys(csv, record); /* the first row adds its own keys and ends the header */
}

static void csv_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    csv_emitter *csv = of(emitter);
    if (!csv->header_done) {
        for (size_t i = 0; csv->is_ncu && i < NCU_SUMMARY_COLUMNS; i++)
            put_text_field(&csv->row, ncu_summary[i][1]);
        if (!csv->is_ncu)
            put_keys(csv, row);
        end_row(csv);
        csv->header_done = true;
    }
    kprof_strbuf_append(&csv->row, csv->record_prefix.data, csv->record_prefix.length);
    put_record(csv, &csv->row, row);
    end_row(csv);
}

/* A record without rows is left out; so is the header that it would have begun. */
static void csv_record_end(kprof_emitter *emitter)
{
    kprof_strbuf_clear(&of(emitter)->row);
}

static void free_csv(kprof_emitter *emitter)
{
    csv_emitter *csv = of(emitter);
    for (size_t i = 0; csv->tails && i < emitter->page.slot_count; i++)
        free(csv->tails[i]);
    free(csv->tails);
    free(csv->values);
    kprof_strbuf_free(&csv->prefix);
    kprof_strbuf_free(&csv->row);
    kprof_strbuf_free(&csv->record_prefix);
    free(csv);
}

static const kprof_emitter_ops csv_ops = {
    .page_begin = csv_page_begin,
    .launch_begin = csv_launch_begin,
    .section_begin = csv_section_begin,
    .metric = csv_metric,
    .table = csv_table,
    .rooflines = csv_rooflines,
    .section_end = kprof_emit_nothing,
    .launch_end = csv_launch_end,
    .list_begin = csv_list_begin,
    .record_begin = csv_record_begin,
    .row = csv_row,
    .record_end = csv_record_end,
    .list_end = kprof_emit_nothing,
    .page_end = kprof_emit_nothing,
    .free = free_csv,
};

kprof_emitter *kprof_emit_csv_new(const kprof_print_options *options)
{
    csv_emitter *csv = calloc(1, sizeof *csv);
    if (!csv)
        return NULL;
    csv->base.ops = &csv_ops;
    csv->is_ncu = options->csv_layout == KPROF_CSV_NCU;
    csv->is_wide = options->csv_layout == KPROF_CSV_WIDE;
    csv->layout = csv->is_ncu ? &ncu_layout : &plain_layout;
    return &csv->base;
}
