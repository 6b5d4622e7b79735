/* JSON through cJSON, one launch or record at a time, so that memory does not grow with the report. The shape is
 * published as docs/report.schema.json; change both together. */
#include "report/emit.h"
#include "report/number.h"
#include "report/witness.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JSON_VERSION 2

typedef struct json_emitter {
    kprof_emitter base;
    cJSON *launch, *sections, *section, *values,
        *spreads;               /* of the launch being put together; owned through `launch` */
    cJSON *record, *rows;       /* likewise of a record; owned through `record` */
    cJSON *alone;               /* the records of a list that is all of its page */
    bool has_rows;              /* the records of the list do */
    bool envelope_begun, first; /* `first`: the array has no element yet */
} json_emitter;

static json_emitter *of(kprof_emitter *emitter)
{
    return (json_emitter *)emitter;
}

/* Numbers as text: cJSON's own printing follows the locale and is slow. */
static cJSON *number(double value)
{
    char text[KPROF_NUMBER_SIZE];
    if (!isfinite(value))
        return cJSON_CreateNull();
    kprof_number_exact(text, value);
    return cJSON_CreateRaw(text);
}

static cJSON *integer(int64_t value)
{
    char text[KPROF_NUMBER_SIZE];
    kprof_number_integer(text, value);
    return cJSON_CreateRaw(text);
}

/* Keys are literals or live as long as the report's model. */
static void add(cJSON *object, const char *key, cJSON *value)
{
    cJSON_AddItemToObjectCS(object, key, value);
}

static void add_text(cJSON *object, const char *key, const char *text)
{
    add(object, key, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

static cJSON *add_array(cJSON *object, const char *key)
{
    cJSON *array = cJSON_CreateArray();
    add(object, key, array);
    return array;
}

static cJSON *add_object(cJSON *object, const char *key)
{
    cJSON *member = cJSON_CreateObject();
    add(object, key, member);
    return member;
}

static cJSON *append_object(cJSON *array)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(array, object);
    return object;
}

/* Write what cJSON has printed, NULL when out of memory, and free it. */
static void write_text(json_emitter *json, char *text)
{
    if (!text) {
        json->base.status = KPROF_NO_MEMORY;
        return;
    }
    kprof_output_puts(json->base.out, text);
    cJSON_free(text);
}

/* Print and free a value. */
static void write_value(json_emitter *json, cJSON *value)
{
    write_text(json, value ? cJSON_PrintUnformatted(value) : NULL);
    cJSON_Delete(value);
}

/* Elements of the top-level arrays stand on lines of their own. */
static void write_element(json_emitter *json, cJSON *value)
{
    kprof_output_puts(json->base.out, json->first ? "\n" : ",\n");
    json->first = false;
    write_value(json, value);
}

static cJSON *metric_catalogue(const kprof_emit_launches *launches)
{
    cJSON *metrics = cJSON_CreateArray();
    for (size_t i = 0; i < launches->column_count; i++) {
        const kprof_emit_metric *column = &launches->columns[i];
        const char *description =
            column->metric < launches->model->metric_count ? launches->model->metrics[column->metric].description : "";
        cJSON *metric = append_object(metrics);
        add_text(metric, "name", column->name);
        add_text(metric, "unit", column->unit);
        add_text(metric, "description", description);
        add_text(metric, "help", column->help);
    }
    return metrics;
}

/* Make the list of sections of each chip, with their help texts. */
static cJSON *section_catalogue(const kprof_model *model)
{
    cJSON *sections = cJSON_CreateArray();
    for (size_t i = 0; i < model->chip_count; i++) {
        for (size_t k = 0; k < model->chips[i].section_count; k++) {
            cJSON *section = append_object(sections);
            add_text(section, "chip", model->chips[i].name);
            add_text(section, "id", model->chips[i].sections[k].id);
            add_text(section, "name", model->chips[i].sections[k].name);
            add_text(section, "help", model->chips[i].sections[k].help);
        }
    }
    return sections;
}

static cJSON *passes_of_chip(const kprof_model_chip *chip)
{
    cJSON *passes = cJSON_CreateArray();
    for (size_t i = 0; i < chip->pass_count; i++) {
        cJSON *pass = append_object(passes);
        add(pass, "counters", integer(chip->passes[i].counters));
        add(pass, "sm_side", cJSON_CreateBool(chip->passes[i].sm_side));
    }
    return passes;
}

static cJSON *passes_of_metrics(const kprof_model *model, const kprof_model_chip *chip)
{
    cJSON *metrics = cJSON_CreateObject();
    for (size_t i = 0; chip->schedule && i < model->metric_count; i++) {
        const kprof_model_passes *passes = &chip->schedule[i];
        if (passes->count == 0)
            continue;
        cJSON *numbers = add_array(metrics, model->metrics[i].name);
        for (size_t k = 0; k < passes->count; k++)
            cJSON_AddItemToArray(numbers, integer(passes->items[k]));
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
        add(schedule, "passes", passes_of_chip(chip));
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
    write_value(json, metric_catalogue(&emitter->launches));
    kprof_output_puts(emitter->out, ",\n\"sections\":");
    write_value(json, section_catalogue(emitter->launches.model));
    kprof_output_puts(emitter->out, ",\n\"schedules\":");
    write_value(json, schedules(emitter->launches.model));
    kprof_output_puts(emitter->out, ",\n\"launches\":[");
    json->first = true;
}

static cJSON *known(bool is_known, int64_t value)
{
    return is_known ? integer(value) : cJSON_CreateNull();
}

static cJSON *shape(bool is_known, const uint32_t dimensions[3])
{
    if (!is_known)
        return cJSON_CreateNull();
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(array, integer(dimensions[i]));
    return array;
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

static cJSON *process_object(const kprof_model_process *process)
{
    cJSON *object = cJSON_CreateObject();
    add(object, "id", integer(process->pid));
    add_text(object, "name", process->name);
    add_text(object, "host", process->host);
    return object;
}

static cJSON *device_object(const kprof_model_device *device)
{
    char cc[24];
    snprintf(cc, sizeof cc, "%u.%u", device->record.cc_major, device->record.cc_minor);
    cJSON *object = cJSON_CreateObject();
    add(object, "id", integer(device->record.device));
    add_text(object, "name", device->name);
    add_text(object, "chip", device->chip);
    add_text(object, "compute_capability", cc);
    return object;
}

static cJSON *disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    size_t count;
    cJSON *array = cJSON_CreateArray();
    if (kprof_disagreements(emitter->launches.model, launch, &found, &count) != KPROF_OK) {
        emitter->status = KPROF_NO_MEMORY;
        return array;
    }
    for (size_t i = 0; i < count; i++) {
        cJSON *object = append_object(array);
        add_text(object, "witness", found[i].witness);
        add(object, "spread_pct", number(found[i].spread_pct));
    }
    kprof_disagreements_free(found, count);
    return array;
}

static cJSON *multiplexed_object(const kprof_model_samples *samples)
{
    cJSON *object = cJSON_CreateObject();
    add(object, "launches", integer((int64_t)samples->launches));
    add(object, "last_launch", integer(samples->last_launch));
    add(object, "samples", integer((int64_t)samples->count));
    add(object, "set_apart", integer((int64_t)samples->set_apart));
    add(object, "used", integer((int64_t)samples->used));
    return object;
}

static void json_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    json_emitter *json = of(emitter);
    const kprof_launch_record *record = &launch->record;
    const bool is_graph = kprof_launch_is_graph(record);
    cJSON *object = json->launch = cJSON_CreateObject();
    add(object, "id", integer(launch->id));
    add_text(object, "kernel_name", kprof_model_kernel_name(launch->kernel, emitter->options->kernel_base));
    add(object, "kernel", kernel_object(launch));
    add(object, "process", process_object(launch->process));
    add(object, "device", device_object(launch->device));
    add(object, "context", integer(record->context));
    add(object, "stream", integer((int64_t)record->stream));
    add(object, "graph_node", known(record->graph_node > 0, (int64_t)record->graph_node));
    add(object, "thread", integer(record->thread));
    add(object, "position", integer((int64_t)record->launch));
    add(object, "grid", shape(!is_graph, record->grid));
    add(object, "block", shape(!is_graph, record->block));
    add(object, "cluster", shape(record->cluster[0] > 0, record->cluster));
    add(object, "dynamic_shared_memory_bytes", known(!is_graph, record->dynamic_smem_bytes));
    add(object, "start_unix_ns", integer(record->start_unix_ns));
    add(object, "profile_ns", integer(record->profile_ns));
    add_text(object, "replay_mode", launch->replay_mode);
    add(object, "passes", integer(record->pass_count));
    add(object, "measured", integer(launch->measured));
    add_text(object, "reason", launch->reason);
    add(object, "disagreements", disagreements(emitter, launch));
    if (launch->samples)
        add(object, "multiplexed", multiplexed_object(launch->samples));
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
    add(object, "samples", integer((int64_t)spread->samples));
    add(object, "mad", number(spread->mad));
}

static cJSON *metric_object(const kprof_emit_metric *metric)
{
    cJSON *object = cJSON_CreateObject();
    add_text(object, "name", metric->name);
    add_text(object, "label", metric->label);
    add_text(object, "unit", metric->unit);
    add(object, "value", number(metric->value));
    add_spread(object, metric->spread);
    return object;
}

static cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static void json_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    json_emitter *json = of(emitter);
    if (json->section) {
        cJSON_AddItemToArray(member(json->section, "items"), metric_object(metric));
        return;
    }
    add(json->values, metric->name, number(metric->value));
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
        cJSON_AddItemToArray(columns, cJSON_CreateString(shape_of->column_labels[i]));
    cJSON *rows = add_array(object, "rows");
    for (size_t i = 0; i < shape_of->row_count; i++) {
        cJSON *row = append_object(rows);
        add_text(row, "label", shape_of->rows[table->order[i]].label);
        cJSON *cells = add_array(row, "cells");
        for (size_t k = 0; k < shape_of->column_count; k++) {
            const kprof_emit_metric *cell = table->cells[table->order[i] * shape_of->column_count + k];
            cJSON_AddItemToArray(cells, cell ? metric_object(cell) : cJSON_CreateNull());
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
    add(object, "ridge_flop_per_byte", number(point->at.ridge));
    add(object, "attainable_flop_per_second", number(point->at.attainable));
    add(object, "headroom", number(point->at.headroom));
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

static void json_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    json_emitter *json = of(emitter);
    json->has_rows = list->shape == KPROF_LIST_GROUPS;
    json->first = true;
    if (list->shape == KPROF_LIST_ALONE) {
        json->alone = cJSON_CreateArray();
        emitter->status = json->alone ? emitter->status : KPROF_NO_MEMORY;
        return;
    }
    begin_envelope(json);
    kprof_output_printf(emitter->out, ",\n\"%s\":[", list->key);
}

static void add_fields(cJSON *object, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (field->type == KPROF_FIELD_TEXT)
            add_text(object, field->key, field->text);
        else
            add(object, field->key, field->type == KPROF_FIELD_REAL ? number(field->real) : integer(field->integer));
    }
}

static void json_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    json_emitter *json = of(emitter);
    json->record = cJSON_CreateObject();
    add_fields(json->record, record);
    json->rows = json->has_rows ? add_array(json->record, "metrics") : NULL;
}

static void json_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    add_fields(append_object(of(emitter)->rows), row);
}

static void json_record_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    if (json->alone)
        cJSON_AddItemToArray(json->alone, json->record);
    else
        write_element(json, json->record);
    json->record = json->rows = NULL;
}

static void json_list_end(kprof_emitter *emitter)
{
    if (!of(emitter)->alone)
        json_array_end(emitter);
}

/* A list that is all of its page is an array for people too, not an object of one member. */
static void json_page_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    if (!json->alone) {
        begin_envelope(json);
        kprof_output_puts(emitter->out, "}\n");
        return;
    }
    write_text(json, cJSON_Print(json->alone));
    kprof_output_puts(emitter->out, "\n");
}

static void json_free(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    cJSON_Delete(json->launch);
    cJSON_Delete(json->record);
    cJSON_Delete(json->alone);
    free(json);
}

static const kprof_emitter_ops json_ops = {
    .launches_begin = json_launches_begin,
    .launch_begin = json_launch_begin,
    .section_begin = json_section_begin,
    .metric = json_metric,
    .table = json_table,
    .rooflines = json_rooflines,
    .section_end = json_section_end,
    .launch_end = json_launch_end,
    .launches_end = json_array_end,
    .list_begin = json_list_begin,
    .record_begin = json_record_begin,
    .row = json_row,
    .record_end = json_record_end,
    .list_end = json_list_end,
    .page_end = json_page_end,
    .free = json_free,
};

kprof_emitter *kprof_emit_json_new(void)
{
    return kprof_emitter_allocate(sizeof(json_emitter), &json_ops);
}
