/* JSON through cJSON, one launch or record at a time, so that memory does not grow with the report. The shape is
 * published as docs/report.schema.json; change both together. JSON lines are the same launches and records, each alone
 * in its line. */
#include "report/emit/json_text.h"
#include "report/model/places.h"
#include "report/model/witness.h"

#include <stdlib.h>
#include <string.h>

#define JSON_VERSION 3

typedef struct json_emitter {
    kprof_emitter base;
    cJSON *launch, *sections, *section, *values,
        *spreads;               /* of the launch being put together; owned through `launch` */
    cJSON *record, *rows;       /* likewise of a record; owned through `record` */
    bool is_alone;              /* a list is all of its page */
    const char *rows_key;       /* of the rows that the records of the list have; NULL: they have none */
    bool envelope_begun, first; /* `first`: the array has no element yet */
} json_emitter;

static json_emitter *of(kprof_emitter *emitter)
{
    return (json_emitter *)emitter;
}

/* Elements of the top-level arrays stand on lines of their own. */
static void write_element(json_emitter *json, cJSON *value)
{
    kprof_output_puts(json->base.out, json->first ? "\n" : ",\n");
    json->first = false;
    kprof_json_write(&json->base, value);
}

/* Make the list of sections of each chip, with their help texts. */
static cJSON *section_catalogue(const kprof_model *model)
{
    cJSON *sections = cJSON_CreateArray();
    for (size_t i = 0; i < model->chip_count; i++) {
        for (size_t k = 0; k < model->chips[i].shown_count; k++) {
            cJSON *section = append_object(sections);
            add_text(section, "chip", model->chips[i].name);
            add_text(section, "id", model->chips[i].sections[k].id);
            add_text(section, "name", model->chips[i].sections[k].name);
            add_text(section, "help", model->chips[i].sections[k].help);
        }
    }
    return sections;
}

static cJSON *passes_of_metrics(const kprof_model *model, const kprof_model_chip *chip)
{
    cJSON *metrics = cJSON_CreateObject();
    for (size_t i = 0; chip->schedule && i < model->metric_count; i++) {
        const kprof_model_passes *passes = &chip->schedule[i];
        if (passes->count == 0 || (model->is_kept && !model->is_kept[i]))
            continue;
        cJSON *numbers = add_array(metrics, model->metrics[i].name);
        for (size_t k = 0; k < passes->count; k++)
            append(numbers, kprof_json_integer(passes->items[k]));
    }
    return metrics;
}

static cJSON *schedules(const kprof_model *model)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < model->chip_count; i++) {
        const kprof_model_chip *chip = &model->chips[i];
        if (chip->pass_count == 0)
            continue;
        cJSON *schedule = append_object(array);
        add_text(schedule, "chip", chip->name);
        cJSON *passes = add_array(schedule, "passes");
        for (size_t k = 0; k < chip->pass_count; k++) {
            cJSON *pass = append_object(passes);
            add(pass, "counters", kprof_json_integer(chip->passes[k].counters));
            add(pass, "sm_side", cJSON_CreateBool(chip->passes[k].sm_side));
        }
        add(schedule, "metrics", passes_of_metrics(model, chip));
    }
    return array;
}

static void begin_envelope(json_emitter *json)
{
    if (!json->envelope_begun)
        kprof_output_printf(json->base.out, "{\"format\":\"kprof\",\"version\":%d,\"page\":\"%s\"", JSON_VERSION,
                            json->base.page);
    json->envelope_begun = true;
}

static void json_launches_begin(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    begin_envelope(json);
    kprof_output_puts(emitter->out, ",\n\"metrics\":");
    kprof_json_write(&json->base, kprof_json_metrics(&emitter->launches));
    kprof_output_puts(emitter->out, ",\n\"sections\":");
    kprof_json_write(&json->base, section_catalogue(emitter->launches.model));
    kprof_output_puts(emitter->out, ",\n\"schedules\":");
    kprof_json_write(&json->base, schedules(emitter->launches.model));
    kprof_output_puts(emitter->out, ",\n\"launches\":[");
    json->first = true;
}

static cJSON *kernel_object(const kprof_model_launch *launch)
{
    const kprof_model_kernel *kernel = launch->kernel;
    bool is_graph = kprof_launch_is_graph(&launch->record);
    cJSON *object = cJSON_CreateObject();
    add_text(object, "function", kernel->function);
    add_text(object, "demangled", kernel->demangled);
    add_text(object, "mangled", kernel->mangled);
    add(object, "registers_per_thread_compiled", known(!is_graph, kernel->record.registers_per_thread));
    add(object, "static_shared_memory_bytes", known(!is_graph, kernel->record.static_smem_bytes));
    return object;
}

static cJSON *device_object(const kprof_model_device *device)
{
    char cc[24];
    snprintf(cc, sizeof cc, "%u.%u", device->record.cc_major, device->record.cc_minor);
    cJSON *object = cJSON_CreateObject();
    add(object, "id", kprof_json_integer(device->record.device));
    add_text(object, "name", device->name);
    add_text(object, "chip", device->chip);
    add_text(object, "compute_capability", cc);
    return object;
}

static cJSON *disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    const size_t count = kprof_disagreements(emitter->launches.model, launch, &found);
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        cJSON *object = append_object(array);
        add_text(object, "witness", found[i].witness);
        add(object, "spread_pct", kprof_json_number(found[i].spread_pct));
    }
    kprof_disagreements_free(found, count);
    return array;
}

static cJSON *multiplexed_object(const kprof_model_samples *samples)
{
    cJSON *object = cJSON_CreateObject();
    add(object, "launches", kprof_json_integer((int64_t)samples->launches));
    add(object, "last_launch", kprof_json_integer(samples->last_launch));
    add(object, "samples", kprof_json_integer((int64_t)samples->count));
    add(object, "partial", kprof_json_integer((int64_t)samples->partial));
    add(object, "set_apart", kprof_json_integer((int64_t)samples->set_apart));
    add(object, "used", kprof_json_integer((int64_t)samples->used));
    return object;
}

static void json_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    json_emitter *json = of(emitter);
    cJSON *object = json->launch = cJSON_CreateObject();
    add(object, "id", kprof_json_integer(launch->id));
    add_text(object, "kernel_name", kprof_model_kernel_name(launch->kernel, emitter->options->kernel_base));
    add(object, "kernel", kernel_object(launch));
    add(object, "process", kprof_json_process(launch->process));
    add(object, "device", device_object(launch->device));
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    for (kprof_column_id i = 0; i < KPROF_COLUMN_COUNT; i++) {
        const kprof_column *column = &kprof_launch_columns[i];
        const kprof_cell cell = kprof_launch_cell(&texts, i);
        if (column->json)
            add(object, column->json, kprof_json_cell(column, &cell));
    }
    add(object, "disagreements", disagreements(emitter, launch));
    if (launch->samples)
        add(object, "multiplexed", multiplexed_object(launch->samples));
    kprof_json_add_range(object, emitter->launches.model, launch);
    if (emitter->launches.in_sections) {
        json->sections = add_array(object, "sections");
        return;
    }
    json->values = add_object(object, "values");
    json->spreads = launch->samples ? add_object(object, "spreads") : NULL;
}

static void json_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    json_emitter *json = of(emitter);
    json->section = append_object(json->sections);
    add_text(json->section, "id", section->id);
    add_text(json->section, "name", section->name);
    add_array(json->section, "items");
    add_array(json->section, "tables");
    add_array(json->section, "rooflines");
}

static void add_spread(cJSON *object, const kprof_model_spread *spread)
{
    if (!spread)
        return;
    add(object, "samples", kprof_json_integer((int64_t)spread->samples));
    add(object, "mad", kprof_json_number(spread->mad));
}

static cJSON *metric_object(const kprof_emit_metric *metric)
{
    cJSON *object = cJSON_CreateObject();
    add_text(object, "name", metric->name);
    add_text(object, "label", metric->label);
    add_text(object, "unit", metric->unit);
    add(object, "value", kprof_json_number(metric->value));
    add_spread(object, metric->spread);
    return object;
}

static cJSON *evidence(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < finding->value_count; i++) {
        kprof_strbuf option = KPROF_STRBUF_INIT;
        if (!finding->values[i].label)
            continue;
        cJSON *value = append_object(array);
        add_text(value, "name", finding->values[i].name);
        add_text(value, "label", finding->values[i].label);
        add_text(value, "unit", finding->values[i].unit);
        add(value, "value", kprof_json_number(found->values[finding->threshold_count + i]));
        kprof_found_option(found, i, false, &option);
        add(value, "option", kprof_json_take(&option));
    }
    return array;
}

static cJSON *thresholds(const kprof_finding *finding)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < finding->threshold_count; i++) {
        const kprof_finding_threshold *threshold = &finding->thresholds[i];
        cJSON *object = append_object(array);
        add_text(object, "name", threshold->name);
        add(object, "value", kprof_json_number(threshold->value));
        add_text(object, "unit", threshold->unit);
        add_text(object, "source", threshold->source);
    }
    return array;
}

static cJSON *speedup(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    if (!finding->gain)
        return cJSON_CreateNull();
    cJSON *object = cJSON_CreateObject();
    add(object, "pct", kprof_json_number(found->gain_pct));
    add_text(object, "scope", finding->gain_is_local ? "local" : "global");
    add_text(object, "formula", finding->gain_formula);
    add_text(object, "source", finding->gain_source);
    return object;
}

static cJSON *code_place_object(const kprof_code_place *place)
{
    cJSON *object = cJSON_CreateObject();
    add_text(object, "place", place->name);
    add_text(object, "file", place->path);
    add(object, "line", place->line ? kprof_json_integer(place->line) : cJSON_CreateNull());
    add_text(object, "called_from", place->caller);
    return object;
}

static cJSON *place_object(const kprof_found_place *place)
{
    cJSON *object = code_place_object(&place->at);
    if (place->waits) {
        cJSON *waited = code_place_object(&place->waits_for);
        add_text(waited, "space", place->space);
        add_text(waited, "operation", place->operation);
        add(object, "waits_for", waited);
    }
    if (place->is_sampled_behind)
        add(object, "sampled_at", code_place_object(&place->sampled_at));
    add(object, "share_pct", kprof_json_number(place->share_pct));
    return object;
}

static cJSON *found_object(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    cJSON *object = cJSON_CreateObject();
    add_text(object, "id", finding->id);
    add_text(object, "name", finding->name);
    add_text(object, "section", finding->sections[0]);
    add_text(object, "confidence", kprof_confidence_name(finding->confidence));
    add(object, "message", kprof_json_found(found, finding->message));
    add(object, "advice", kprof_json_found(found, finding->advice));
    add(object, "estimated_speedup", speedup(found));
    add(object, "evidence", evidence(found));
    add(object, "thresholds", thresholds(finding));
    add_text(object, "next", kprof_found_next(found));
    cJSON *places = found->place_count > 0 ? add_array(object, "places") : NULL;
    for (size_t i = 0; i < found->place_count; i++)
        append(places, place_object(&found->places[i]));
    return object;
}

static cJSON *unknown_object(const kprof_found *found)
{
    KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
    cJSON *object = cJSON_CreateObject();
    add_text(object, "id", found->finding->id);
    kprof_found_missing(found, &missing);
    cJSON *names = add_array(object, "missing");
    for (size_t i = 0; i < missing.count; i++)
        append(names, cJSON_CreateString(missing.items[i]));
    return object;
}

static cJSON *verdict_object(const kprof_findings *findings)
{
    cJSON *object = cJSON_CreateObject();
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_verdict_describe(findings, i, false);
        if (i == KPROF_ROW_NEXT) {
            add(object, row.key, kprof_json_take(&row.name));
        } else if (row.name.length == 0 && (i != KPROF_ROW_BEST || !row.is_known)) {
            add(object, row.key, cJSON_CreateNull());
        } else {
            cJSON *line = add_object(object, row.key);
            add(line, i == KPROF_ROW_BEST ? "id" : "name", kprof_json_take(&row.name));
            add(line, "pct", kprof_json_number(row.value));
            add(line, "text", kprof_json_take(&row.text));
        }
    }
    add_text(object, "little_to_gain", kprof_verdict_little_to_gain(&findings->verdict));
    return object;
}

static void json_verdict(kprof_emitter *emitter, const kprof_emit_findings *all)
{
    json_emitter *json = of(emitter);
    add(json->launch, "verdict", verdict_object(all->findings));
    cJSON *found = add_array(json->launch, "findings");
    cJSON *unknown = add_array(json->launch, "not_evaluated");
    for (size_t i = 0; i < all->told_count; i++) {
        const kprof_found *item = all->told[i];
        if (item->state == KPROF_FOUND)
            append(found, found_object(item));
        else if (item->state == KPROF_FOUND_UNKNOWN)
            append(unknown, unknown_object(item));
    }
}

static void json_hot_line(kprof_emitter *emitter, const kprof_hot_line *line)
{
    if (line->reason)
        return;
    cJSON *object = add_object(of(emitter)->launch, "hot_line");
    add_text(object, "at", line->place);
    add_text(object, "file", line->file ? line->file->path : NULL);
    add(object, "line", known(line->file != NULL, line->line));
    add_text(object, "called_from", *line->caller ? line->caller : NULL);
    add(object, "pct", kprof_json_number(line->pct));
    add_text(object, "stall", *line->stall ? line->stall : NULL);
    if (*line->caused_at)
        add_text(object, "caused_at", line->caused_at);
}

static cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static void json_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    json_emitter *json = of(emitter);
    if (json->section) {
        append(member(json->section, "items"), metric_object(metric));
        return;
    }
    add(json->values, metric->name, kprof_json_number(metric->value));
    if (metric->spread)
        add_spread(add_object(json->spreads, metric->name), metric->spread);
}

static void json_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    const kprof_table *shape_of = table->table;
    cJSON *object = append_object(member(of(emitter)->section, "tables"));
    add_text(object, "id", shape_of->id);
    add_text(object, "title", shape_of->title);
    cJSON *columns = add_array(object, "columns");
    for (size_t i = 0; i < shape_of->column_count; i++)
        append(columns, cJSON_CreateString(shape_of->column_labels[i]));
    cJSON *rows = add_array(object, "rows");
    for (size_t i = 0; i < shape_of->row_count; i++) {
        cJSON *row = append_object(rows);
        add_text(row, "label", shape_of->rows[table->order[i]].label);
        cJSON *cells = add_array(row, "cells");
        for (size_t k = 0; k < shape_of->column_count; k++) {
            const kprof_emit_metric *cell = table->cells[table->order[i] * shape_of->column_count + k];
            append(cells, cell ? metric_object(cell) : cJSON_CreateNull());
        }
    }
}

static void add_point(cJSON *points, const kprof_emit_point *point)
{
    cJSON *object = append_object(points);
    add_text(object, "level", point->level);
    add(object, "traffic", metric_object(point->traffic));
    add(object, "peak", metric_object(point->peak));
    add(object, "intensity", metric_object(point->intensity));
    add(object, "pct_of_roof", metric_object(point->pct));
    add(object, "ridge_flop_per_byte", kprof_json_number(point->at.ridge));
    add(object, "attainable_flop_per_second", kprof_json_number(point->at.attainable));
    add(object, "headroom", kprof_json_number(point->at.headroom));
    add_text(object, "limited_by", !point->at.has_work ? NULL : point->at.memory_bound ? "memory" : "compute");
}

static void json_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    cJSON *array = member(of(emitter)->section, "rooflines");
    for (size_t i = 0; i < count; i++) {
        cJSON *object = append_object(array);
        add_text(object, "id", rooflines[i].id);
        add_text(object, "label", rooflines[i].label);
        add(object, "work", metric_object(rooflines[i].work));
        add(object, "peak", metric_object(rooflines[i].peak));
        cJSON *points = add_array(object, "points");
        for (size_t k = 0; k < rooflines[i].point_count; k++)
            add_point(points, &rooflines[i].points[k]);
    }
}

static void json_what_if(kprof_emitter *emitter, const kprof_what_if *curves, size_t count)
{
    cJSON *array = add_array(of(emitter)->section, "what_if");
    for (size_t i = 0; i < count; i++)
        append(array, kprof_json_what_if(&curves[i]));
}

static void json_section_end(kprof_emitter *emitter)
{
    of(emitter)->section = NULL;
}

static void json_launch_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    write_element(json, json->launch);
    json->launch = json->sections = json->section = json->values = json->spreads = NULL;
}

static void json_array_end(kprof_emitter *emitter)
{
    kprof_output_puts(emitter->out, "]");
}

static const char *key_of_rows(const kprof_emit_list *list)
{
    return list->shape == KPROF_LIST_GROUPS ? "metrics" : list->shape == KPROF_LIST_CODE ? "rows" : NULL;
}

static void json_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    json_emitter *json = of(emitter);
    json->rows_key = key_of_rows(list);
    json->first = true;
    if (list->shape == KPROF_LIST_ALONE) {
        json->is_alone = true;
        return;
    }
    begin_envelope(json);
    kprof_output_printf(emitter->out, ",\n\"%s\":[", list->key);
}

static void add_fields(cJSON *object, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (field->role == KPROF_ROLE_PEOPLE)
            continue;
        if (field->type == KPROF_FIELD_TEXT)
            add_text(object, field->key, field->text);
        else
            add(object, field->key,
                field->type == KPROF_FIELD_REAL ? kprof_json_number(field->real) : kprof_json_integer(field->integer));
    }
}

static void json_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    json_emitter *json = of(emitter);
    json->record = cJSON_CreateObject();
    add_fields(json->record, record);
    json->rows = json->rows_key ? add_array(json->record, json->rows_key) : NULL;
}

static void json_rows_begin(kprof_emitter *emitter, const char *key)
{
    json_emitter *json = of(emitter);
    if (json->rows_key) /* its rows have a kind of their own */
        cJSON_DeleteItemFromObject(json->record, json->rows_key);
    json->rows = add_array(json->record, key);
}

static void json_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    add_fields(append_object(of(emitter)->rows), row);
}

/* Write the record as it stands in a document of cJSON_Print, without holding others. */
static void write_alone(json_emitter *json)
{
    cJSON *array = cJSON_CreateArray();
    append(array, json->record);
    KPROF_AUTO_FREE char *text = cJSON_Print(array);
    if (text) {
        text[strlen(text) - 1] = '\0';
        kprof_output_puts(json->base.out, json->first ? "[" : ", ");
        kprof_json_put_text(json->base.out, text + 1);
    }
    json->first = false;
    cJSON_Delete(array);
}

static void json_record_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    if (json->is_alone)
        write_alone(json);
    else
        write_element(json, json->record);
    json->record = json->rows = NULL;
}

static void json_list_end(kprof_emitter *emitter)
{
    if (!of(emitter)->is_alone)
        json_array_end(emitter);
}

/* If a list is the whole page, print an array rather than an object with one member. */
static void json_page_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    if (!json->is_alone)
        begin_envelope(json);
    kprof_output_puts(emitter->out, !json->is_alone ? "}\n" : json->first ? "[]\n" : "]\n");
}

static void json_free(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    cJSON_Delete(json->launch);
    cJSON_Delete(json->record);
    free(json);
}

/* One document and lines of JSON share these operations. */
#define JSON_OPERATIONS                                                                                                \
    .launch_begin = json_launch_begin, .verdict = json_verdict, .hot_line = json_hot_line,                             \
    .section_begin = json_section_begin, .metric = json_metric, .table = json_table, .rooflines = json_rooflines,      \
    .what_if = json_what_if, .section_end = json_section_end, .record_begin = json_record_begin,                       \
    .rows_begin = json_rows_begin, .row = json_row, .free = json_free

const kprof_emitter_ops kprof_emit_json = {
    .size = sizeof(json_emitter),
    .launches_begin = json_launches_begin,
    .launch_end = json_launch_end,
    .launches_end = json_array_end,
    .list_begin = json_list_begin,
    .record_end = json_record_end,
    .list_end = json_list_end,
    .page_end = json_page_end,
    JSON_OPERATIONS,
};

static void lines_launches_begin(kprof_emitter *emitter)
{
    (void)emitter;
}

static void lines_launch_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    kprof_json_write(emitter, json->launch);
    kprof_output_puts(emitter->out, "\n");
    json->launch = json->sections = json->section = json->values = json->spreads = NULL;
}

static void lines_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    of(emitter)->rows_key = key_of_rows(list);
}

static void lines_record_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    kprof_json_write(emitter, json->record);
    kprof_output_puts(emitter->out, "\n");
    json->record = json->rows = NULL;
}

const kprof_emitter_ops kprof_emit_jsonl = {
    .size = sizeof(json_emitter),
    .launches_begin = lines_launches_begin,
    .launch_end = lines_launch_end,
    .list_begin = lines_list_begin,
    .record_end = lines_record_end,
    JSON_OPERATIONS,
};
