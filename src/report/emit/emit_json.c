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

static const bool are_lines = true; /* what the format of lines has as its trait */

/* Elements of the top-level arrays stand on lines of their own. */
static void write_element(json_emitter *json, cJSON *value)
{
    if (!json->base.ops->traits)
        kprof_output_puts(json->base.out, json->first ? "\n" : ",\n");
    json->first = false;
    kprof_json_write(&json->base, value);
    if (json->base.ops->traits)
        kprof_output_puts(json->base.out, "\n");
}

/* Make the list of sections of each chip, with their help texts. */
static cJSON *section_catalogue(const kprof_model *model)
{
    cJSON *sections = cJSON_CreateArray();
    for (size_t i = 0; i < model->chip_count; i++) {
        for (size_t k = 0; k < model->chips[i].shown_count; k++) {
            const kprof_section *section = &model->chips[i].sections[k];
            append(sections, KPROF_JSON_OBJECT({"chip", text_of(model->chips[i].name)}, {"id", text_of(section->id)},
                                               {"name", text_of(section->name)}, {"help", text_of(section->help)}));
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
        add(metrics, model->metrics[i].name, KPROF_JSON_EACH(k, passes->count, kprof_json_integer(passes->items[k])));
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
        cJSON *passes = KPROF_JSON_EACH(k, chip->pass_count,
                                        KPROF_JSON_OBJECT({"counters", kprof_json_integer(chip->passes[k].counters)},
                                                          {"sm_side", cJSON_CreateBool(chip->passes[k].sm_side)}));
        append(array, KPROF_JSON_OBJECT({"chip", text_of(chip->name)}, {"passes", passes},
                                        {"metrics", passes_of_metrics(model, chip)}));
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
    const bool is_graph = kprof_launch_is_graph(&launch->record);
    return KPROF_JSON_OBJECT({"function", text_of(kernel->function)}, {"demangled", text_of(kernel->demangled)},
                             {"mangled", text_of(kernel->mangled)},
                             {"registers_per_thread_compiled", known(!is_graph, kernel->record.registers_per_thread)},
                             {"static_shared_memory_bytes", known(!is_graph, kernel->record.static_smem_bytes)});
}

static cJSON *device_object(const kprof_model_device *device)
{
    return KPROF_JSON_OBJECT({"id", kprof_json_integer(device->record.device)}, {"name", text_of(device->name)},
                             {"chip", text_of(device->chip)}, {"compute_capability", text_of(device->cc)});
}

static cJSON *disagreements(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_disagreement *found;
    const size_t count = kprof_disagreements(emitter->launches.model, launch, &found);
    cJSON *array = KPROF_JSON_EACH(i, count,
                                   KPROF_JSON_OBJECT({"witness", text_of(found[i].witness)},
                                                     {"spread_pct", kprof_json_number(found[i].spread_pct)}));
    kprof_disagreements_free(found, count);
    return array;
}

static cJSON *multiplexed_object(const kprof_model_samples *samples)
{
    return KPROF_JSON_OBJECT(
        {"launches", kprof_json_integer(samples->launches)}, {"last_launch", kprof_json_integer(samples->last_launch)},
        {"other_lines", kprof_json_integer(samples->other_lines)},
        {"other_ranges", kprof_json_integer(samples->other_ranges)}, {"samples", kprof_json_integer(samples->count)},
        {"partial", kprof_json_integer(samples->partial)}, {"set_apart", kprof_json_integer(samples->set_apart)},
        {"used", kprof_json_integer(samples->used)});
}

static void json_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    json_emitter *json = of(emitter);
    const char *name = kprof_model_kernel_name(launch->kernel, emitter->options->kernel_base);
    cJSON *object = json->launch = KPROF_JSON_OBJECT(
        {"id", kprof_json_integer(launch->id)}, {"kernel_name", text_of(name)}, {"kernel", kernel_object(launch)},
        {"process", kprof_json_process(launch->process)}, {"device", device_object(launch->device)});
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
    KPROF_JSON_ADD(json->section, {"id", text_of(section->id)}, {"name", text_of(section->name)},
                   {"items", cJSON_CreateArray()}, {"tables", cJSON_CreateArray()}, {"rooflines", cJSON_CreateArray()});
}

static void add_spread(cJSON *object, const kprof_model_spread *spread)
{
    if (spread)
        KPROF_JSON_ADD(object, {"samples", kprof_json_integer(spread->samples)},
                       {"mad", kprof_json_number(spread->mad)});
}

static cJSON *metric_object(const kprof_emit_metric *metric)
{
    cJSON *object = KPROF_JSON_OBJECT({"name", text_of(metric->name)}, {"label", text_of(metric->label)},
                                      {"unit", text_of(metric->unit)}, {"value", kprof_json_number(metric->value)});
    add_spread(object, metric->spread);
    return object;
}

static cJSON *evidence(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < finding->value_count; i++) {
        const kprof_finding_value *value = &finding->values[i];
        kprof_strbuf option = KPROF_STRBUF_INIT;
        if (!value->label)
            continue;
        kprof_found_option(found, i, false, &option);
        append(array, KPROF_JSON_OBJECT({"name", text_of(value->name)}, {"label", text_of(value->label)},
                                        {"unit", text_of(value->unit)},
                                        {"value", kprof_json_number(found->values[finding->threshold_count + i])},
                                        {"option", kprof_json_take(&option)}));
    }
    return array;
}

static cJSON *threshold_object(const kprof_finding_threshold *threshold)
{
    return KPROF_JSON_OBJECT({"name", text_of(threshold->name)}, {"value", kprof_json_number(threshold->value)},
                             {"unit", text_of(threshold->unit)}, {"source", text_of(threshold->source)});
}

static cJSON *speedup(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    if (!finding->gain)
        return cJSON_CreateNull();
    return KPROF_JSON_OBJECT({"pct", kprof_json_number(found->gain_pct)},
                             {"scope", text_of(finding->gain_is_local ? "local" : "global")},
                             {"formula", text_of(finding->gain_formula)}, {"source", text_of(finding->gain_source)});
}

static cJSON *code_place_object(const kprof_code_place *place)
{
    return KPROF_JSON_OBJECT(
        {"place", text_of(place->name)}, {"file", text_of(place->path)}, {"line", known(place->line > 0, place->line)},
        {"in_library", place->library ? text_of(place->library) : NULL}, {"called_from", text_of(place->caller)});
}

static cJSON *place_object(const kprof_found_place *place)
{
    cJSON *object = code_place_object(&place->at);
    if (place->waits)
        add(object, "waits_for",
            KPROF_JSON_ADD(code_place_object(&place->waits_for), {"space", text_of(place->space)},
                           {"operation", text_of(place->operation)}));
    if (place->is_sampled_behind)
        add(object, "sampled_at", code_place_object(&place->sampled_at));
    add(object, "share_pct", kprof_json_number(place->share_pct));
    return object;
}

static cJSON *found_object(const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    cJSON *object = KPROF_JSON_OBJECT(
        {"id", text_of(finding->id)}, {"ncu_rule", text_of(finding->ncu ? kprof_finding_ncu_rule(finding) : NULL)},
        {"name", text_of(finding->name)}, {"section", text_of(finding->sections[0])},
        {"confidence", text_of(kprof_confidence_name(finding->confidence))},
        {"message", kprof_json_found(found, finding->message)}, {"advice", kprof_json_found(found, finding->advice)},
        {"estimated_speedup", speedup(found)}, {"severity_pct", kprof_json_number(found->severity_pct)},
        {"evidence", evidence(found)},
        {"thresholds", KPROF_JSON_EACH(i, finding->threshold_count, threshold_object(&finding->thresholds[i]))},
        {"next", text_of(kprof_found_next(found))});
    if (found->place_count > 0)
        add(object, "places", KPROF_JSON_EACH(i, found->place_count, place_object(&found->places[i])));
    return object;
}

static cJSON *unknown_object(const kprof_found *found)
{
    KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
    kprof_found_missing(found, &missing);
    return KPROF_JSON_OBJECT({"id", text_of(found->finding->id)}, {"missing", texts_of(&missing)});
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
            add(object, row.key,
                KPROF_JSON_OBJECT({i == KPROF_ROW_BEST ? "id" : "name", kprof_json_take(&row.name)},
                                  {"pct", kprof_json_number(row.value)}, {"text", kprof_json_take(&row.text)}));
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
    add(of(emitter)->launch, "hot_line",
        KPROF_JSON_OBJECT({"at", text_of(line->place)}, {"file", text_of(line->file ? line->file->path : NULL)},
                          {"line", known(line->file != NULL, line->line)},
                          {"in_library", *line->library ? text_of(line->library) : NULL},
                          {"called_from", text_of(*line->caller ? line->caller : NULL)},
                          {"pct", kprof_json_number(line->pct)}, {"stall", text_of(*line->stall ? line->stall : NULL)},
                          {"caused_at", *line->caused_at ? text_of(line->caused_at) : NULL}));
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
    cJSON *rows = cJSON_CreateArray();
    for (size_t i = 0; i < shape_of->row_count; i++) {
        const kprof_emit_metric **row = &table->cells[table->order[i] * shape_of->column_count];
        append(rows,
               KPROF_JSON_OBJECT({"label", text_of(shape_of->rows[table->order[i]].label)},
                                 {"cells", KPROF_JSON_EACH(k, shape_of->column_count,
                                                           row[k] ? metric_object(row[k]) : cJSON_CreateNull())}));
    }
    append(member(of(emitter)->section, "tables"),
           KPROF_JSON_OBJECT({"id", text_of(shape_of->id)}, {"title", text_of(shape_of->title)},
                             {"columns", kprof_json_columns(shape_of)}, {"rows", rows}));
}

static cJSON *point_object(const kprof_emit_point *point)
{
    const char *limit = !point->at.has_work ? NULL : point->at.memory_bound ? "memory" : "compute";
    return KPROF_JSON_OBJECT({"level", text_of(point->level)}, {"traffic", metric_object(point->traffic)},
                             {"peak", metric_object(point->peak)}, {"intensity", metric_object(point->intensity)},
                             {"pct_of_roof", metric_object(point->pct)},
                             {"ridge_flop_per_byte", kprof_json_number(point->at.ridge)},
                             {"attainable_flop_per_second", kprof_json_number(point->at.attainable)},
                             {"headroom", kprof_json_number(point->at.headroom)}, {"limited_by", text_of(limit)});
}

static void json_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    cJSON *array = member(of(emitter)->section, "rooflines");
    for (size_t i = 0; i < count; i++)
        append(array,
               KPROF_JSON_OBJECT(
                   {"id", text_of(rooflines[i].id)}, {"label", text_of(rooflines[i].label)},
                   {"work", metric_object(rooflines[i].work)}, {"peak", metric_object(rooflines[i].peak)},
                   {"points", KPROF_JSON_EACH(k, rooflines[i].point_count, point_object(&rooflines[i].points[k]))}));
}

static void json_what_if(kprof_emitter *emitter, const kprof_what_if *curves, size_t count)
{
    add(of(emitter)->section, "what_if", KPROF_JSON_EACH(i, count, kprof_json_what_if(&curves[i])));
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

static void json_record_end(kprof_emitter *emitter)
{
    json_emitter *json = of(emitter);
    if (json->is_alone) {
        /* Write the record as it stands in a document of cJSON_Print, without holding others. */
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
    } else
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
}

/* One document and lines of JSON share these operations. */
#define JSON_OPERATIONS                                                                                                \
    .launch_begin = json_launch_begin, .verdict = json_verdict, .hot_line = json_hot_line,                             \
    .section_begin = json_section_begin, .metric = json_metric, .table = json_table, .rooflines = json_rooflines,      \
    .what_if = json_what_if, .section_end = json_section_end, .launch_end = json_launch_end,                           \
    .record_begin = json_record_begin, .rows_begin = json_rows_begin, .row = json_row, .record_end = json_record_end,  \
    .free = json_free

const kprof_emitter_ops kprof_emit_json = {
    .size = sizeof(json_emitter),
    .launches_begin = json_launches_begin,
    .launches_end = json_array_end,
    .list_begin = json_list_begin,
    .list_end = json_list_end,
    .page_end = json_page_end,
    JSON_OPERATIONS,
};

static void lines_launches_begin(kprof_emitter *emitter)
{
    (void)emitter;
}

static void lines_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    of(emitter)->rows_key = key_of_rows(list);
}

const kprof_emitter_ops kprof_emit_jsonl = {
    .size = sizeof(json_emitter),
    .launches_begin = lines_launches_begin,
    .traits = &are_lines,
    .list_begin = lines_list_begin,
    JSON_OPERATIONS,
};
