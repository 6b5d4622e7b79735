/* HTML: one file that shows a page in a browser, from disk and without any other file. It is the page of
 * html/report.html, which web/ has the sources of, with one block of JSON in it. The block tells each thing once and
 * refers to it by number, so that thousands of launches fit; web/src/data.js reads it. Names come from anywhere: the
 * block has no "<", which could end it. */
#include "core/log.h"
#include "report/emit/json_text.h"
#include "report/model/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HTML_VERSION 1

/* The page is part of the program, so that a kprof that was copied alone has it. */
__asm__(".pushsection .rodata\n"
        ".global kprof_html_page, kprof_html_page_end\n"
        ".hidden kprof_html_page, kprof_html_page_end\n"
        "kprof_html_page: .incbin \"" KPROF_HTML_PAGE "\"\n"
        "kprof_html_page_end: .byte 0\n"
        ".popsection\n");
extern const char kprof_html_page[], kprof_html_page_end[];
static const char data_mark[] = "@KPROF_DATA@"; /* where the data goes */

typedef struct html_emitter {
    kprof_emitter base;
    kprof_names texts;                   /* that occur often, kept by their numbers */
    cJSON *launch, *spreads, *doubtful;  /* the launch being put together; owned through `launch` */
    double *values, *values_before;      /* [columns] of that launch, and of the one before it */
    cJSON *record, *rows;                /* likewise of a record */
    cJSON **layouts;                     /* [chips]: the sections of launches on each, or NULL */
    cJSON *sections, *section;           /* of the layout, if this launch is its first; else NULL */
    cJSON *rules, *verdict;              /* findings and lines of the verdict, or NULL */
    const kprof_code_profiles *profiles; /* those of the page; NULL: it has no code */
    const char *data_place;
    bool not_first_part, not_first; /* the array of parts, or of a part's elements, has an element */
} html_emitter;

static html_emitter *of(kprof_emitter *emitter)
{
    return (html_emitter *)emitter;
}

/* Write a value and free it. "<" occurs in texts only, where its escape means the same. */
static void write_value(html_emitter *html, cJSON *value)
{
    char *text = cJSON_PrintUnformatted(value);
    cJSON_Delete(value);
    const char *rest = text;
    for (const char *sign; (sign = strchr(rest, '<')); rest = sign + 1) {
        kprof_output_put(html->base.out, rest, (size_t)(sign - rest));
        kprof_output_puts(html->base.out, "\\u003c");
    }
    kprof_output_puts(html->base.out, rest);
    cJSON_free(text);
}

static void write_member(html_emitter *html, const char *key, cJSON *value)
{
    kprof_output_printf(html->base.out, ",\n\"%s\":", key);
    write_value(html, value);
}

static void write_element(html_emitter *html, cJSON *value)
{
    kprof_output_puts(html->base.out, html->not_first ? ",\n" : "\n");
    html->not_first = true;
    write_value(html, value);
}

/* The number of a text in the pool, which is added if it is new; null for NULL. */
static cJSON *pooled(html_emitter *html, const char *text)
{
    if (!text)
        return cJSON_CreateNull();
    size_t number_of;
    kprof_names_number(&html->texts, text, &number_of);
    return kprof_json_integer(number_of);
}

/* As kprof_json_take, but the text goes into the pool. */
static cJSON *take_pooled(html_emitter *html, kprof_strbuf *text)
{
    cJSON *value = pooled(html, kprof_strbuf_or_null(text));
    kprof_strbuf_free(text);
    return value;
}

/* Launches often have equal arrays: one goes into the pool as a text of JSON, and is freed. */
static cJSON *pooled_array(html_emitter *html, cJSON *array)
{
    char *text = cJSON_PrintUnformatted(array);
    cJSON_Delete(array);
    cJSON *number_of = pooled(html, text);
    cJSON_free(text);
    return number_of;
}

static void html_page_begin(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    const size_t size = (size_t)(kprof_html_page_end - kprof_html_page);
    html->texts.pool = &emitter->pool;
    html->data_place = memmem(kprof_html_page, size, data_mark, strlen(data_mark));
    if (!html->data_place) {
        emitter->status =
            kprof_fail(KPROF_UNSUPPORTED, "this kprof was built with an HTML page that has no place for data");
        return;
    }
    kprof_output_put(emitter->out, kprof_html_page, (size_t)(html->data_place - kprof_html_page));
    kprof_output_printf(emitter->out, "{\"format\":\"kprof-html\",\"version\":%d,\"page\":\"%s\",\n\"parts\":[",
                        HTML_VERSION, emitter->page);
}

static void html_page_end(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    if (!html->data_place)
        return;
    kprof_output_puts(emitter->out, "]");
    write_member(html, "texts", KPROF_JSON_EACH(i, html->texts.count, cJSON_CreateString(html->texts.copies.items[i])));
    kprof_output_puts(emitter->out, "}");
    const char *rest = html->data_place + strlen(data_mark);
    kprof_output_put(emitter->out, rest, (size_t)(kprof_html_page_end - rest));
}

static void begin_part(html_emitter *html)
{
    kprof_output_puts(html->base.out, html->not_first_part ? ",\n" : "\n");
    html->not_first_part = true;
    html->not_first = false;
}

static void html_members(kprof_emitter *emitter, const kprof_emit_members *members)
{
    begin_part(of(emitter));
    kprof_output_printf(emitter->out, "{\"part\":\"%s\"", members->name);
    members->put(members->user, emitter->out);
    kprof_output_puts(emitter->out, "}");
}

static void html_code(kprof_emitter *emitter, const kprof_emit_code *code)
{
    const bool is_first = !of(emitter)->profiles;
    of(emitter)->profiles = code->profiles;
    if (is_first) {
        begin_part(of(emitter));
        write_value(of(emitter), kprof_html_code_files(code->profiles));
    }
    begin_part(of(emitter));
    write_value(of(emitter), kprof_html_code(code, emitter->options->source_view));
}

/* Frames as [text, file, is native, is installed], and stacks as [is cut, frames...]. */
static void html_stacks(kprof_emitter *emitter, const kprof_told_stacks *all)
{
    html_emitter *html = of(emitter);
    begin_part(html);
    kprof_output_puts(emitter->out, "{\"part\":\"stacks\",\n\"frames\":[");
    for (size_t i = 0; i < all->frame_count; i++) {
        const kprof_told_frame *frame = &all->frames[i];
        write_element(html,
                      KPROF_JSON_ARRAY(cJSON_CreateString(frame->text), pooled(html, frame->file),
                                       kprof_json_integer(frame->is_native), kprof_json_integer(frame->is_installed)));
    }
    kprof_output_puts(emitter->out, "],\n\"stacks\":[");
    html->not_first = false;
    for (size_t i = 0; i < all->stack_count; i++) {
        const kprof_told_stack *stack = &all->stacks[i];
        cJSON *array = KPROF_JSON_ARRAY(kprof_json_integer(stack->is_cut));
        for (size_t k = 0; k < stack->count; k++)
            append(array, kprof_json_integer(stack->frames[k]));
        write_element(html, array);
    }
    kprof_output_puts(emitter->out, "]}");
}

/* Kernels of one mangled name are the same one: `same` is the number of the first of them. */
static cJSON *kernels(kprof_emitter *emitter)
{
    const kprof_model *model = emitter->launches.model;
    cJSON *array = cJSON_CreateArray();
    KPROF_AUTO(kprof_names) names = {0};
    for (size_t i = 0; i < model->kernel_count; i++) {
        const kprof_model_kernel *kernel = &model->kernels[i];
        kprof_names_add(&names, kernel->mangled, i);
        append(array,
               KPROF_JSON_OBJECT({"name", text_of(kprof_model_kernel_name(kernel, emitter->options->kernel_base))},
                                 {"function", text_of(kernel->function)}, {"demangled", text_of(kernel->demangled)},
                                 {"seen", kprof_json_integer(kernel->launches)},
                                 {"same", kprof_json_integer(kprof_names_find(&names, kernel->mangled))}));
    }
    return array;
}

static cJSON *device_object(const kprof_model_device *device)
{
    return KPROF_JSON_OBJECT({"id", kprof_json_integer(device->record.device)}, {"name", text_of(device->name)},
                             {"chip", text_of(device->chip)}, {"cc", text_of(device->cc)});
}

static void html_launches_begin(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    const kprof_model *model = emitter->launches.model;
    html->layouts = kprof_pool_calloc(&emitter->pool, model->chip_count + 1, sizeof *html->layouts);
    html->values = kprof_pool_calloc(&emitter->pool, emitter->launches.column_count + 1, sizeof *html->values);
    html->values_before =
        kprof_pool_calloc(&emitter->pool, emitter->launches.column_count + 1, sizeof *html->values_before);
    begin_part(html);
    kprof_output_puts(emitter->out, "{\"part\":\"launches\"");
    write_member(html, "kernels", kernels(emitter));
    write_member(html, "processes", KPROF_JSON_EACH(i, model->process_count, kprof_json_process(&model->processes[i])));
    write_member(html, "devices", KPROF_JSON_EACH(i, model->device_count, device_object(&model->devices[i])));
    write_member(html, "metrics", kprof_json_metrics(&emitter->launches));
    kprof_output_puts(emitter->out, ",\n\"launches\":[");
}

static void html_launches_end(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    cJSON *layouts = cJSON_CreateArray();
    for (size_t i = 0; i < emitter->launches.model->chip_count; i++) {
        append(layouts, html->layouts[i] ? html->layouts[i] : cJSON_CreateNull());
        html->layouts[i] = NULL;
    }
    kprof_output_puts(emitter->out, "]");
    write_member(html, "layouts", layouts);
    write_member(html, "rules", html->rules ? html->rules : cJSON_CreateArray());
    write_member(html, "verdict", html->verdict ? html->verdict : cJSON_CreateArray());
    html->rules = html->verdict = NULL;
    kprof_output_puts(emitter->out, "}");
}

/* [stack, line, launches] of each call stack */
static cJSON *callers(html_emitter *html, const kprof_model_samples *samples)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < samples->stack_count; i++) {
        const int64_t number = samples->stacks[i].stack;
        const kprof_model_stack *stack =
            kprof_model_stack_of(html->base.launches.model, &(kprof_model_launch){.stack = number});
        append(array,
               KPROF_JSON_ARRAY(known(number > 0, number - 1), stack ? pooled(html, stack->line) : cJSON_CreateNull(),
                                kprof_json_integer(samples->stacks[i].launches)));
    }
    return array;
}

static cJSON *multiplexed(html_emitter *html, const kprof_model_launch *launch)
{
    kprof_strbuf text = KPROF_STRBUF_INIT, note = KPROF_STRBUF_INIT;
    kprof_samples_describe(launch, &text);
    kprof_samples_note(html->base.launches.model, launch->samples, &note);
    cJSON *object = KPROF_JSON_OBJECT({"launches", kprof_json_integer(launch->samples->launches)},
                                      {"last", kprof_json_integer(launch->samples->last_launch)},
                                      {"used", kprof_json_integer(launch->samples->used)},
                                      {"text", take_pooled(html, &text)}, {"note", take_pooled(html, &note)});
    if (launch->samples->stack_count > 1)
        add(object, "callers", callers(html, launch->samples));
    return object;
}

static cJSON *launch_object(html_emitter *html, const kprof_model_launch *launch)
{
    const kprof_model *model = html->base.launches.model;
    cJSON *object = KPROF_JSON_OBJECT(
        {"id", kprof_json_integer(launch->id)}, {"kernel", kprof_json_integer(launch->kernel - model->kernels)},
        {"process", kprof_json_integer(launch->process - model->processes)},
        {"device", kprof_json_integer(launch->device - model->devices)},
        {"layout", known(launch->device->chip_index != SIZE_MAX, (int64_t)launch->device->chip_index)});
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(&html->base, launch);
    for (kprof_column_id i = 0; i < KPROF_COLUMN_COUNT; i++) {
        const kprof_column *column = &kprof_launch_columns[i];
        const kprof_cell cell = kprof_launch_cell(&texts, i);
        const bool is_text = column->kind == KPROF_CELL_TEXT;
        if (!column->html || !(cell.is_there || column->always) || (is_text && !*cell.text))
            continue; /* the page takes it for missing */
        add(object, column->html, is_text ? pooled(html, cell.text) : kprof_json_cell(column, &cell));
    }
    const kprof_code_profile *profile = html->profiles ? kprof_code_profile_of(html->profiles, launch->id) : NULL;
    if (profile)
        add(object, "code", kprof_json_integer(profile->id));
    if (launch->stack > 0)
        add(object, "stack", kprof_json_integer(launch->stack - 1));
    if (kprof_model_is_missing(launch))
        add(object, "missing", cJSON_CreateTrue());
    if (launch->samples)
        add(object, "multiplexed", multiplexed(html, launch));
    kprof_json_add_range(object, model, launch);
    return object;
}

static void html_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    html_emitter *html = of(emitter);
    const size_t chip = launch->device->chip_index;
    /* Sections are the same for all launches on a chip: the first one gives the layout and the others values alone. */
    html->sections = NULL;
    if (chip != SIZE_MAX && !html->layouts[chip])
        html->sections = html->layouts[chip] = cJSON_CreateArray();
    html->launch = launch_object(html, launch);
    html->spreads = launch->samples ? add_array(html->launch, "spreads") : NULL;
    html->doubtful = NULL;
    for (size_t i = 0; i < emitter->launches.column_count; i++)
        html->values[i] = NAN;
}

/* A value as people may read it: whole numbers whole, others with 9 significant digits, and with the decimals that are
 * shown where they are large, which makes the page a sixth shorter. */
static cJSON *value_of(double value)
{
    char text[KPROF_NUMBER_SIZE];
    if (!isfinite(value) || value == nearbyint(value))
        return kprof_json_number(value);
    kprof_number_general(text, value, fabs(value) < 1e6 ? 9 : 12);
    return cJSON_CreateRaw(text);
}

/* Keep the value of a metric for the launch, and make its number, for the layout. */
static cJSON *place(html_emitter *html, const kprof_emit_metric *metric)
{
    if (!metric)
        return cJSON_CreateNull();
    html->values[metric->column] = metric->value;
    if (metric->spread) {
        append(html->spreads,
               KPROF_JSON_ARRAY(kprof_json_integer(metric->column), kprof_json_integer(metric->spread->samples),
                                kprof_json_number(metric->spread->mad)));
    }
    if (metric->disagrees) {
        html->doubtful = html->doubtful ? html->doubtful : add_array(html->launch, "doubtful");
        append(html->doubtful, kprof_json_integer(metric->column));
    }
    return kprof_json_integer(metric->column);
}

/* Add a metric to an array of the layout or, under a key, to an object; NULL: the layout is already known. */
static void add_place(html_emitter *html, cJSON *to, const char *key, const kprof_emit_metric *metric)
{
    cJSON *number_of = place(html, metric);
    if (!(key ? cJSON_AddItemToObjectCS(to, key, number_of) : cJSON_AddItemToArray(to, number_of)))
        cJSON_Delete(number_of);
}

static void html_section_begin(kprof_emitter *emitter, const kprof_section *section)
{
    html_emitter *html = of(emitter);
    html->section = NULL;
    if (!html->sections)
        return;
    html->section =
        KPROF_JSON_ADD(append_object(html->sections), {"id", text_of(section->id)}, {"name", text_of(section->name)},
                       {"help", text_of(section->help)}, {"items", cJSON_CreateArray()},
                       {"tables", cJSON_CreateArray()}, {"rooflines", cJSON_CreateArray()});
}

static void html_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    cJSON *section = of(emitter)->section, *item = section ? append_object(member(section, "items")) : NULL;
    add_place(of(emitter), item, "metric", metric);
    if (item)
        add_text(item, "label", metric->label);
}

static void html_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    html_emitter *html = of(emitter);
    const kprof_table *shape_of = table->table;
    cJSON *object = html->section ? append_object(member(html->section, "tables")) : NULL;
    cJSON *rows = object ? cJSON_CreateArray() : NULL;
    if (object)
        KPROF_JSON_ADD(object, {"columns", kprof_json_columns(shape_of)}, {"rows", rows}, {"id", text_of(shape_of->id)},
                       {"title", text_of(shape_of->title)}, {"sorted", cJSON_CreateBool(shape_of->sorted)},
                       {"whole", table->whole ? kprof_json_integer(table->whole->column) : NULL});
    for (size_t i = 0; i < shape_of->row_count; i++) {
        cJSON *row = rows ? append_object(rows) : NULL, *cells = row ? add_array(row, "cells") : NULL;
        if (row)
            add_text(row, "label", shape_of->rows[i].label);
        for (size_t k = 0; k < shape_of->column_count; k++)
            add_place(html, cells, NULL, table->cells[i * shape_of->column_count + k]);
    }
}

/* A roofline and its points are objects whose members are numbers of metrics. */
static void show_roofline(html_emitter *html, const kprof_emit_roofline *roofline)
{
    cJSON *object = html->section ? append_object(member(html->section, "rooflines")) : NULL;
    cJSON *points = object ? add_array(object, "points") : NULL;
    if (object)
        KPROF_JSON_ADD(object, {"id", text_of(roofline->id)}, {"label", text_of(roofline->label)});
    add_place(html, object, "work", roofline->work);
    add_place(html, object, "peak", roofline->peak);
    for (size_t i = 0; i < roofline->point_count; i++) {
        cJSON *point = points ? append_object(points) : NULL;
        if (point)
            add_text(point, "level", roofline->points[i].level);
        add_place(html, point, "traffic", roofline->points[i].traffic);
        add_place(html, point, "peak", roofline->points[i].peak);
        add_place(html, point, "intensity", roofline->points[i].intensity);
        add_place(html, point, "pct", roofline->points[i].pct);
    }
}

static void html_rooflines(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        show_roofline(of(emitter), &rooflines[i]);
}

/* Launches of one shape have the same curves. */
static void html_what_if(kprof_emitter *emitter, const kprof_what_if *curves, size_t count)
{
    html_emitter *html = of(emitter);
    add(html->launch, "what_if", pooled_array(html, KPROF_JSON_EACH(i, count, kprof_json_what_if(&curves[i]))));
    if (html->section)
        add(html->section, "what_if", cJSON_CreateTrue());
}

static cJSON *rule_object(const kprof_finding *finding)
{
    const char *scope = !finding->gain ? NULL : finding->gain_is_local ? "local" : "global";
    return KPROF_JSON_OBJECT({"id", text_of(finding->id)}, {"name", text_of(finding->name)},
                             {"section", text_of(finding->sections[0])}, {"help", text_of(finding->help)},
                             {"confidence", text_of(kprof_confidence_name(finding->confidence))},
                             {"scope", text_of(scope)}, {"formula", text_of(finding->gain_formula)},
                             {"source", text_of(finding->gain_source)});
}

/* [what people call the place, path, line]; path and line null where the line is not known. */
static cJSON *place_array(const char *name, const char *path, uint32_t line)
{
    return KPROF_JSON_ARRAY(cJSON_CreateString(name), text_of(path), known(path != NULL, line));
}

static cJSON *series_object(const kprof_launch_timeline *timeline, const kprof_timeline_series *series)
{
    const kprof_time_sample *samples = timeline->samples + series->first;
    return KPROF_JSON_OBJECT(
        {"name", text_of(series->metric->name)}, {"label", text_of(series->label)}, {"unit", text_of(series->unit)},
        {"help", text_of(series->help)}, {"least", value_of(series->least)}, {"mean", value_of(series->mean)},
        {"most", value_of(series->most)},
        {"starts", KPROF_JSON_EACH(i, series->count, kprof_json_integer(samples[i].start_ns))},
        {"durations", KPROF_JSON_EACH(i, series->count, kprof_json_integer(samples[i].duration_ns))},
        {"values", KPROF_JSON_EACH(i, series->count, value_of(samples[i].value))});
}

static void html_over_time(kprof_emitter *emitter, const kprof_launch_timeline *timeline)
{
    cJSON *series = KPROF_JSON_EACH(i, timeline->series_count, series_object(timeline, &timeline->series[i]));
    add(of(emitter)->launch, "timeline",
        KPROF_JSON_OBJECT({"interval", kprof_json_integer(timeline->interval_ns)},
                          {"end", kprof_json_integer(timeline->end_ns)},
                          {"laid_over", kprof_json_integer(timeline->laid_over)}, {"reason", text_of(timeline->reason)},
                          {"series", series}));
}

static void html_hot_line(kprof_emitter *emitter, const kprof_hot_line *line)
{
    cJSON *hot = place_array(line->place, line->file ? line->file->path : NULL, line->line);
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_hot_line_describe(line, &text);
    append(hot, kprof_json_take(&text));
    add(of(emitter)->launch, "hot", hot);
}

/* [number of the finding, gain, message, advice, section to look at next, places in the code] */
static cJSON *found_array(html_emitter *html, const kprof_found *found, size_t rule)
{
    const kprof_finding *finding = found->finding;
    kprof_strbuf advice = KPROF_STRBUF_INIT;
    cJSON *array = KPROF_JSON_ARRAY(kprof_json_integer(rule), value_of(found->gain_pct),
                                    kprof_json_found(found, finding->message));
    kprof_found_text(found, finding->advice, false, &advice);
    kprof_strbuf_puts(&advice, advice.length > 0 && found->place_count > 0 ? " " : "");
    kprof_found_where(found, &advice);
    append(array, take_pooled(html, &advice));
    append(array, pooled(html, kprof_found_next(found)));
    const kprof_found_place *places = found->places;
    if (found->place_count > 0)
        append(array, KPROF_JSON_EACH(i, found->place_count,
                                      place_array(places[i].at.name, places[i].at.path, places[i].at.line)));
    return array;
}

/* Describe once what the findings and verdicts of all launches share. */
static void describe_rules(html_emitter *html, const kprof_findings *findings)
{
    html->rules = KPROF_JSON_EACH(i, findings->count, rule_object(findings->items[i].finding));
    html->verdict = cJSON_CreateArray();
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_verdict_describe(findings, i, false);
        append(html->verdict, KPROF_JSON_OBJECT({"key", text_of(row.key)}, {"label", text_of(row.label)}));
    }
}

/* [number of the finding, [what it lacks], why else (optional)] of each that was not evaluated. Launches lack
 * the same, so this is a text of JSON that is told once. */
static void add_not_evaluated(html_emitter *html, const kprof_emit_findings *all)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < all->open_count; i++) {
        KPROF_AUTO(kprof_strlist) lacks = KPROF_STRLIST_INIT;
        kprof_emit_lacks(all->open[i], &lacks);
        KPROF_AUTO(kprof_strbuf) why = KPROF_STRBUF_INIT;
        kprof_found_why_not(all->open[i], &why);
        cJSON *open = KPROF_JSON_ARRAY(kprof_json_integer(all->open[i] - all->findings->items), texts_of(&lacks));
        if (why.length > 0)
            append(open, kprof_json_take(&why));
        append(array, open);
    }
    if (all->open_count > 0)
        add(html->launch, "not_evaluated", pooled_array(html, array));
    else
        cJSON_Delete(array);
}

static void html_verdict(kprof_emitter *emitter, const kprof_emit_findings *all)
{
    html_emitter *html = of(emitter);
    const kprof_findings *findings = all->findings;
    if (!html->rules)
        describe_rules(html, findings);
    cJSON *verdict = add_array(html->launch, "verdict"), *found = add_array(html->launch, "findings");
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_emit_verdict_row(all, i, false);
        cJSON *line = KPROF_JSON_ARRAY(take_pooled(html, &row.name), value_of(row.value), take_pooled(html, &row.text));
        if (i == KPROF_ROW_BEST && findings->verdict.near)
            append(line, cJSON_CreateString(kprof_verdict_little_to_gain(&findings->verdict)));
        append(verdict, line);
    }
    for (size_t i = 0; i < all->told_count; i++)
        if (all->told[i]->state == KPROF_FOUND)
            append(found, found_array(html, all->told[i], (size_t)(all->told[i] - findings->items)));
    add_not_evaluated(html, all);
}

/* The number of values, from a column on, that equal those of the previous launch. */
static size_t same_values(const html_emitter *html, size_t from, size_t end)
{
    size_t at = from;
    while (at < end &&
           (html->values[at] == html->values_before[at] || (isnan(html->values[at]) && isnan(html->values_before[at]))))
        at++;
    return at - from;
}

/* Launches of one kernel share most counts, and all launches what is known of the device: [n] stands for n values that
 * are the same as in the launch before, where that is shorter. */
static void add_values(html_emitter *html, size_t count)
{
    enum { LEAST = 3 };
    cJSON *values = add_array(html->launch, "values");
    for (size_t i = 0; i < count;) {
        const size_t same = html->not_first ? same_values(html, i, count) : 0;
        if (same < LEAST) {
            append(values, value_of(html->values[i++]));
            continue;
        }
        append(values, KPROF_JSON_ARRAY(kprof_json_integer(same)));
        i += same;
    }
    memcpy(html->values_before, html->values, count * sizeof *html->values);
}

static void html_launch_end(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    add_values(html, emitter->launches.column_count);
    write_element(html, html->launch);
    html->launch = html->spreads = html->doubtful = html->sections = html->section = NULL;
}

static void html_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    static const char *const shapes[] = {
        [KPROF_LIST_BLOCKS] = "blocks", [KPROF_LIST_TABLE] = "table", [KPROF_LIST_GROUPS] = "groups",
        [KPROF_LIST_CODE] = "groups",   [KPROF_LIST_ALONE] = "table", [KPROF_LIST_MAIN] = "table"};
    begin_part(of(emitter));
    kprof_output_puts(emitter->out, "{\"part\":\"list\"");
    write_member(of(emitter), "key", cJSON_CreateString(list->key));
    write_member(of(emitter), "title", cJSON_CreateString(list->title));
    write_member(of(emitter), "shape", cJSON_CreateString(shapes[list->shape]));
    kprof_output_puts(emitter->out, ",\n\"records\":[");
}

/* The fields of a record without their values, as JSON. All records of a list have the same. */
static cJSON *fields_of(html_emitter *html, const kprof_emit_record *record)
{
    static const char *const roles[] = {
        [KPROF_ROLE_SHOWN] = "shown", [KPROF_ROLE_MACHINE] = "machine", [KPROF_ROLE_HEADING] = "heading",
        [KPROF_ROLE_NOTE] = "shown",  [KPROF_ROLE_VERDICT] = "shown",   [KPROF_ROLE_PEOPLE] = "shown",
    };
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        append(array, KPROF_JSON_OBJECT({"key", text_of(field->key)}, {"label", text_of(field->label)},
                                        {"role", text_of(roles[field->role])},
                                        {"number", cJSON_CreateBool(field->type != KPROF_FIELD_TEXT)},
                                        {"integer", cJSON_CreateBool(field->type == KPROF_FIELD_INTEGER)},
                                        {"amount", field->is_amount ? cJSON_CreateTrue() : NULL},
                                        {"signed", cJSON_CreateBool(field->is_signed)},
                                        {"missing", text_of(field->missing ? field->missing : "n/a")}));
    }
    return pooled_array(html, array);
}

/* [number of its fields, [[value, unit]...]]: the unit of a field may differ from row to row. */
static cJSON *record_array(html_emitter *html, const kprof_emit_record *record)
{
    cJSON *values = cJSON_CreateArray(), *array = KPROF_JSON_ARRAY(fields_of(html, record), values);
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (field->type == KPROF_FIELD_TEXT) {
            append(values, text_of(field->text));
        } else if (field->type == KPROF_FIELD_INTEGER) {
            append(values, kprof_json_integer(field->integer));
        } else if (!*field->unit || kprof_field_is_missing(field)) {
            append(values, kprof_json_number(field->real));
        } else {
            append(values, KPROF_JSON_ARRAY(kprof_json_number(field->real), pooled(html, field->unit)));
        }
    }
    return array;
}

static void html_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    html_emitter *html = of(emitter);
    html->record = record_array(html, record);
    html->rows = cJSON_CreateArray();
    append(html->record, html->rows);
}

static void html_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    append(of(emitter)->rows, record_array(of(emitter), row));
}

static void html_record_end(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    write_element(html, html->record);
    html->record = html->rows = NULL;
}

static void html_list_end(kprof_emitter *emitter)
{
    kprof_output_puts(emitter->out, "]}");
}

static void html_free(kprof_emitter *emitter)
{
    html_emitter *html = of(emitter);
    cJSON_Delete(html->launch);
    cJSON_Delete(html->record);
    cJSON_Delete(html->rules);
    cJSON_Delete(html->verdict);
    for (size_t i = 0; html->layouts && i < emitter->launches.model->chip_count; i++)
        cJSON_Delete(html->layouts[i]);
}

const kprof_emitter_ops kprof_emit_html = {
    .size = sizeof(html_emitter),
    .has_layout = true,
    .page_begin = html_page_begin,
    .members = html_members,
    .code = html_code,
    .stacks = html_stacks,
    .launches_begin = html_launches_begin,
    .launch_begin = html_launch_begin,
    .verdict = html_verdict,
    .hot_line = html_hot_line,
    .over_time = html_over_time,
    .section_begin = html_section_begin,
    .metric = html_metric,
    .table = html_table,
    .rooflines = html_rooflines,
    .what_if = html_what_if,
    .launch_end = html_launch_end,
    .launches_end = html_launches_end,
    .list_begin = html_list_begin,
    .record_begin = html_record_begin,
    .row = html_row,
    .record_end = html_record_end,
    .list_end = html_list_end,
    .page_end = html_page_end,
    .free = html_free,
};
