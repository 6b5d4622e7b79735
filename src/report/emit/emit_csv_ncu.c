/* CSV as `ncu --csv` writes it: its columns, its units, every field quoted, numbers as in its locale. Metrics of
 * sections stand in rows of their own, all metrics of a launch in one. Lists that ncu does not have look as in plain
 * CSV. */
#include "core/nvtx.h"
#include "report/emit/csv.h"
#include "report/emit/ncu.h"
#include "report/model/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ncu's names for columns of launches. */
typedef struct ncu_column {
    const char *name;
    kprof_column_id column;
} ncu_column;
static const ncu_column process_columns[] = {{"ID", KPROF_COLUMN_launch},
                                             {"Process ID", KPROF_COLUMN_process_id},
                                             {"Process Name", KPROF_COLUMN_process},
                                             {"Host Name", KPROF_COLUMN_host}};
static const ncu_column launch_columns[] = {{"Kernel Name", KPROF_COLUMN_kernel},
                                            {"Context", KPROF_COLUMN_context},
                                            {"Stream", KPROF_COLUMN_stream},
                                            {"Block Size", KPROF_COLUMN_block},
                                            {"Grid Size", KPROF_COLUMN_grid},
                                            {"Device", KPROF_COLUMN_device},
                                            {"CC", KPROF_COLUMN_cc}};
static const ncu_column gpu_column = {"device__attribute_display_name", KPROF_COLUMN_device_name}; /* raw page alone */
#define DEFAULT_DOMAIN "<default domain>"
/* Only a report with NVTX ranges has these columns, as in ncu with --nvtx. */
static const char *const nvtx_columns[] = {"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
                                           "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
                                           NULL};
static const char *const metric_columns[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value", NULL};
/* With the cells of tables, as in ncu with the bodies of sections. */
static const char *const all_metric_columns[] = {"Section Name", "Body Item Label", "Metric Name",
                                                 "Metric Unit",  "Metric Value",    NULL};
static const char *const rule_columns[] = {
    "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup", NULL};

static void put_unit(kprof_csv_line *row, const char *base)
{
    char unit[KPROF_NCU_UNIT_SIZE];
    kprof_units_ncu(base, unit, sizeof unit);
    kprof_csv_put_text(row, unit);
}

/* Does the report show sections other than that of single metrics? */
static bool has_sections(const kprof_model *model)
{
    return KPROF_ANY(
        i, model->chip_count,
        KPROF_ANY(k, model->chips[i].shown_count, strcmp(model->chips[i].sections[k].id, KPROF_NAMED_SECTION_ID) != 0));
}

/* Metrics that are chosen from a report stand alone. */
static bool shows_gpu(const kprof_emitter *emitter)
{
    const kprof_model *model = emitter->launches.model;
    return !emitter->launches.in_sections && (!model->is_shown || has_sections(model));
}

/* The names of a launch's columns; or as many empty ones. */
static void put_launch_columns(kprof_csv *csv, bool are_empty)
{
    for (size_t i = 0; i < COUNT_OF(process_columns); i++)
        kprof_csv_text(&csv->row, are_empty ? "" : process_columns[i].name);
    for (size_t i = 0; csv->base.launches.model->has_nvtx && nvtx_columns[i]; i++)
        kprof_csv_text(&csv->row, are_empty ? "" : nvtx_columns[i]);
    for (size_t i = 0; i < COUNT_OF(launch_columns); i++)
        kprof_csv_text(&csv->row, are_empty ? "" : launch_columns[i].name);
    if (shows_gpu(&csv->base))
        kprof_csv_text(&csv->row, are_empty ? "" : gpu_column.name);
}

/* ncu has no rules for single metrics. */
static bool has_rules(const kprof_emitter *emitter)
{
    return emitter->options->findings && has_sections(emitter->launches.model);
}

typedef struct ncu_emitter {
    kprof_csv csv;
    kprof_csv_code code;
    const kprof_model_launch *launch; /* at hand, ... */
    const kprof_section *section;     /* ... and one of its sections */
    kprof_strbuf *instances;          /* [column_count], of the launch, on the raw page: what stands behind the value */
} ncu_emitter;

static void ncu_launches_begin(kprof_emitter *emitter)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    const kprof_emit_launches *launches = &emitter->launches;
    if (!launches->in_sections && emitter->options->instances != KPROF_INSTANCES_NONE)
        ((ncu_emitter *)emitter)->instances =
            kprof_pool_calloc(&emitter->pool, launches->column_count + 1, sizeof(kprof_strbuf));
    kprof_csv_begin_launches(csv);
    put_launch_columns(csv, false);
    if (launches->in_sections)
        kprof_csv_names(&csv->row, emitter->options->with_tables ? all_metric_columns : metric_columns);
    if (launches->in_sections && has_rules(emitter))
        kprof_csv_names(&csv->row, rule_columns);
    for (size_t i = 0; !launches->in_sections && i < launches->column_count; i++)
        if (!kprof_ncu_is_unknown(&launches->columns[i]))
            kprof_csv_text(&csv->row, launches->columns[i].name);
    kprof_csv_end_row(csv);
    if (launches->in_sections)
        return;
    put_launch_columns(csv, true); /* row 2 has units below the metrics, and nothing below the rest */
    for (size_t i = 0; i < launches->column_count; i++) {
        if (kprof_ncu_is_unknown(&launches->columns[i]))
            continue;
        put_unit(&csv->row, kprof_ncu_base_unit(&launches->columns[i]));
        kprof_csv_put_comma(&csv->row);
    }
    kprof_csv_end_row(csv);
}

static void put_cells(kprof_csv_line *row, const kprof_launch_texts *texts, const ncu_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const kprof_cell cell = kprof_launch_cell(texts, columns[i].column);
        const kprof_cell_kind kind = kprof_launch_columns[columns[i].column].kind;
        if (kind == KPROF_CELL_WHOLE)
            kprof_strbuf_printf(&row->text, "\"%lu\",", cell.whole);
        else if (kind == KPROF_CELL_SHAPE && cell.is_there)
            kprof_strbuf_printf(&row->text, "\"(%u, %u, %u)\",", cell.shape[0], cell.shape[1], cell.shape[2]);
        else
            kprof_csv_text(row, cell.text);
    }
}

/* The ranges that were pushed, or those that were started, each as ncu quotes it: "domain:range:none:none..." with the
 * outermost first. kprof keeps no payload, colour or message. */
static void put_ranges(kprof_csv_line *row, const kprof_nvtx_parsed *ranges, bool are_started)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < ranges->count; i++) {
        const kprof_nvtx_range *range = &ranges->items[i];
        if (range->is_started == are_started)
            kprof_strbuf_printf(&text, "%s\"%s:%s:none:none:none:none:none:none\"", text.length ? "  " : "",
                                *range->domain ? range->domain : DEFAULT_DOMAIN, range->name);
    }
    kprof_csv_take(row, &text);
}

static void ncu_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_csv_line *row = &kprof_csv_of(emitter)->prefix;
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    KPROF_AUTO_FREE char *name = kprof_ncu_kernel_name(emitter, launch, texts.kernel);
    texts.kernel = name;
    ((ncu_emitter *)emitter)->launch = launch;
    kprof_csv_begin_launch(kprof_csv_of(emitter));
    put_cells(row, &texts, process_columns, COUNT_OF(process_columns));
    if (emitter->launches.model->has_nvtx) {
        KPROF_AUTO(kprof_nvtx_parsed) ranges;
        kprof_nvtx_parse_text(launch->record.nvtx ? launch->record.nvtx : "", &ranges);
        put_ranges(row, &ranges, false);
        put_ranges(row, &ranges, true);
    }
    put_cells(row, &texts, launch_columns, COUNT_OF(launch_columns));
    if (shows_gpu(emitter))
        put_cells(row, &texts, &gpu_column, 1);
}

/* " (4; 8)", with the addresses before the values where these are asked for. */
static void keep_instances(ncu_emitter *ncu, const kprof_emit_metric *metric)
{
    const kprof_emit_instances *instances = metric->instances;
    kprof_strbuf *out = &ncu->instances[metric->column];
    for (size_t i = 0; i < instances->count; i++) {
        char number[KPROF_NUMBER_SIZE];
        kprof_strbuf_puts(out, i ? "; " : " (");
        if (ncu->csv.base.options->instances == KPROF_INSTANCES_DETAILS)
            kprof_strbuf_printf(out, "0x%lx: ", instances->addresses[i]);
        kprof_ncu_number(number, instances->values[i], ncu->csv.base.options->with_decimals);
        kprof_strbuf_puts(out, number);
    }
    kprof_strbuf_puts(out, instances->count ? ")" : "");
}

static void put_value(kprof_csv_line *row, double value, bool is_fixed)
{
    char quoted[KPROF_NUMBER_SIZE + 2] = "\"";
    size_t length = kprof_ncu_number(quoted + 1, value, is_fixed);
    quoted[length + 1] = '"';
    kprof_strbuf_append(&row->text, quoted, length + 2);
}

static void put_label(kprof_csv_line *tail, const kprof_emit_metric *metric)
{
    kprof_csv_text(tail, metric->label);
    put_unit(tail, kprof_ncu_base_unit(metric));
    kprof_csv_put_comma(tail);
}

static void put_section_name(kprof_csv_line *row, const char *name)
{
    KPROF_AUTO_FREE char *own = kprof_ncu_section_name(name);
    kprof_csv_put_text(row, own);
}

static void put_section(kprof_csv_line *row, const kprof_section *section)
{
    put_section_name(row, section ? section->name : "");
    kprof_csv_put_comma(row);
}

static void put_texts(kprof_csv_line *tail, const kprof_emit_metric *metric)
{
    put_section(tail, metric->section);
    put_label(tail, metric);
}

static void put_texts_with_table(kprof_csv_line *tail, const kprof_emit_metric *metric)
{
    put_section(tail, metric->section);
    kprof_csv_text(tail, metric->table ? metric->table : "");
    put_label(tail, metric);
}

static void put_no_rule(ncu_emitter *ncu)
{
    for (const char *const *name = rule_columns; has_rules(&ncu->csv.base) && *name; name++)
        kprof_csv_text(&ncu->csv.row, "");
}

static void ncu_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    if (!emitter->launches.in_sections) {
        kprof_csv_keep_value(emitter, metric);
        if (metric->instances && ((ncu_emitter *)emitter)->instances)
            keep_instances((ncu_emitter *)emitter, metric);
        return;
    }
    if (metric->repeated || metric->told_before)
        return;
    kprof_csv_begin_metric(csv, metric, emitter->options->with_tables ? put_texts_with_table : put_texts);
    put_value(&csv->row, metric->value, emitter->options->with_decimals);
    kprof_csv_put_comma(&csv->row);
    put_no_rule((ncu_emitter *)emitter);
    kprof_csv_end_row(csv);
}

static void ncu_finding(kprof_emitter *emitter, const kprof_found *found)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_found_say(found, false, &text);
    kprof_csv_begin_row(csv);
    /* ncu names the section of a rule by its identifier. */
    const kprof_finding *finding = found->finding;
    const bool has_gain = !isnan(found->gain_pct);
    kprof_csv_text(&csv->row, finding->sections[0]);
    const size_t empty = COUNT_OF(metric_columns) - 2 + (emitter->options->with_tables != 0);
    for (size_t i = 0; i < empty; i++) /* a rule is no metric */
        kprof_csv_text(&csv->row, "");
    kprof_csv_text(&csv->row, kprof_finding_ncu_rule(finding));
    kprof_csv_text(&csv->row, kprof_ncu_rule_type(found));
    kprof_csv_text(&csv->row, kprof_strbuf_text(&text));
    kprof_csv_text(&csv->row, !has_gain ? "" : finding->gain_is_local ? "local" : "global");
    put_value(&csv->row, found->gain_pct, false);
    kprof_csv_put_comma(&csv->row);
    kprof_csv_end_row(csv);
}

/* Rows of a roofline are cells of the section's body. */
static void put_roofline_row(void *user, const kprof_ncu_row *row)
{
    ncu_emitter *ncu = user;
    kprof_csv_line *line = &ncu->csv.row;
    kprof_csv_begin_row(&ncu->csv);
    put_section(line, ncu->section);
    kprof_csv_text(line, row->item);
    kprof_csv_text(line, row->label);
    put_unit(line, row->unit);
    kprof_csv_put_comma(line);
    put_value(line, row->value, ncu->csv.base.options->with_decimals);
    kprof_csv_put_comma(line);
    put_no_rule(ncu);
    kprof_csv_end_row(&ncu->csv);
}

static void ncu_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    ncu_emitter *ncu = (ncu_emitter *)emitter;
    kprof_ncu_rooflines(&(kprof_ncu_writer){emitter, ncu->launch, put_roofline_row, ncu}, rooflines, count);
}

static void ncu_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    ((ncu_emitter *)emitter)->section = section;
}

static void ncu_launch_end(kprof_emitter *emitter)
{
    ncu_emitter *ncu = (ncu_emitter *)emitter;
    kprof_csv *csv = &ncu->csv;
    if (emitter->launches.in_sections)
        return;
    kprof_csv_begin_row(csv);
    for (size_t i = 0; i < emitter->launches.column_count; i++) {
        if (kprof_ncu_is_unknown(&emitter->launches.columns[i]))
            continue;
        put_value(&csv->row, csv->values[i], emitter->options->with_decimals);
        if (ncu->instances && ncu->instances[i].length > 0) {
            csv->row.text.length--; /* the quote */
            kprof_strbuf_append(&csv->row.text, ncu->instances[i].data, ncu->instances[i].length);
            kprof_strbuf_puts(&csv->row.text, "\"");
            kprof_strbuf_clear(&ncu->instances[i]);
        }
        kprof_csv_put_comma(&csv->row);
    }
    kprof_csv_end_row(csv);
}

/* ncu's name for the column of a field; NULL: it has none. */
static const char *ncu_name(const char *key)
{
    static const char *const names[][2] = {
        {"process_id", "Process ID"},
        {"process", "Process Name"},
        {"host", "Host Name"},
        {"kernel", "Kernel Name"},
        {"nvtx_domain", "Domain"},
        {"nvtx_ranges", "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"},
        {"block", "Block Size"},
        {"grid", "Grid Size"},
        {"device", "Device"},
        {"cc", "CC"},
        {"invocations", "Invocations"},
        {"label", "Metric Name"},
        {"section_name", "Section Name"},
        {"unit", "Metric Unit"},
        {"minimum", "Minimum"},
        {"maximum", "Maximum"},
        {"average", "Average"},
    };
    const size_t at = KPROF_FIND(i, COUNT_OF(names), strcmp(names[i][0], key) == 0);
    return at < COUNT_OF(names) ? names[at][1] : NULL;
}

static void put_field(kprof_csv_line *row, const kprof_emit_field *field)
{
    if (field->type == KPROF_FIELD_REAL)
        put_value(row, field->real, true);
    else if (field->type == KPROF_FIELD_INTEGER)
        kprof_strbuf_printf(&row->text, "\"%ld\"", field->integer);
    else if (strcmp(field->key, "unit") == 0)
        put_unit(row, field->text);
    else if (strcmp(field->key, "section_name") == 0 && field->text)
        put_section_name(row, field->text);
    else
        kprof_csv_put_text(row, field->text ? field->text : "");
}

static const kprof_csv_columns ncu_columns = {ncu_name, put_field};

static bool is_code(const kprof_emitter *emitter)
{
    return ((const kprof_csv *)emitter)->list.shape == KPROF_LIST_CODE;
}

/* Groups of NVTX ranges have two columns before the kernel, as in ncu. */
static void begin_group_of_ranges(kprof_emitter *emitter, const kprof_emit_record *record)
{
    enum { ADDED = 2 };
    KPROF_AUTO_FREE kprof_emit_field *fields = kprof_calloc(record->count + ADDED, sizeof *fields);
    const kprof_emit_field *kernel = kprof_record_find(record, "kernel"), *group = kprof_record_find(record, "group");
    const size_t before = (size_t)(kernel - record->fields);
    KPROF_AUTO(kprof_strbuf) names = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_nvtx_parsed) ranges;
    kprof_nvtx_parse_text(group->text && strcmp(group->text, KPROF_GROUP_OF_NO_RANGE) != 0 ? group->text : "", &ranges);
    for (size_t i = 0; i < ranges.count; i++) /* ncu writes blanks at both ends, too */
        kprof_strbuf_printf(&names, " \"%s:none:none:none:none:none:none\" ", ranges.items[i].name);
    const char *domain = ranges.count > 0 ? ranges.items[0].domain : NULL;
    memcpy(fields, record->fields, before * sizeof *fields);
    fields[before] = kprof_field_text("nvtx_domain", "", domain && !*domain ? DEFAULT_DOMAIN : domain);
    fields[before + 1] = kprof_field_text("nvtx_ranges", "", kprof_strbuf_text(&names));
    memcpy(&fields[before + ADDED], kernel, (record->count - before) * sizeof *fields);
    kprof_csv_record_begin(emitter, &(kprof_emit_record){fields, record->count + ADDED});
}

static void ncu_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    ncu_emitter *ncu = (ncu_emitter *)emitter;
    if (is_code(emitter))
        kprof_csv_code_begin(&ncu->code, record);
    else if (emitter->options->group_by == KPROF_GROUP_NVTX && ncu->csv.list.shape == KPROF_LIST_GROUPS)
        begin_group_of_ranges(emitter, record);
    else
        kprof_csv_record_begin(emitter, record);
}

static void ncu_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    ncu_emitter *ncu = (ncu_emitter *)emitter;
    const kprof_emit_field *label = kprof_record_find(row, "label"); /* of a metric */
    if (is_code(emitter))
        kprof_csv_code_row(&ncu->csv, &ncu->code, row);
    else if (!label || (kprof_record_is_shown(row) && (!label->is_cell || emitter->options->with_tables)))
        kprof_csv_row(emitter, row);
}

static void ncu_free(kprof_emitter *emitter)
{
    ncu_emitter *ncu = (ncu_emitter *)emitter;
    for (size_t i = 0; ncu->instances && i < emitter->launches.column_count; i++)
        kprof_strbuf_free(&ncu->instances[i]);
    kprof_csv_code_free(&ncu->code);
    kprof_csv_free(emitter);
}

const kprof_emitter_ops kprof_emit_csv_ncu = {
    .size = sizeof(ncu_emitter),
    .traits = &ncu_columns,
    .sums_instances = true,
    .launches_begin = ncu_launches_begin,
    .launch_begin = ncu_launch_begin,
    .metric = ncu_metric,
    .finding = ncu_finding,
    .table = kprof_ncu_table,
    .section_begin = ncu_section_begin,
    .rooflines = ncu_rooflines,
    .launch_end = ncu_launch_end,
    .launches_end = kprof_csv_launches_end,
    .list_begin = kprof_csv_list_begin,
    .columns = kprof_csv_columns_of_list,
    .record_begin = ncu_record_begin,
    .row = ncu_row,
    .record_end = kprof_csv_record_end,
    .free = ncu_free,
};
