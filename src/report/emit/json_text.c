/* Writes JSON through cJSON. */
#include "report/emit/json_text.h"
#include "core/clean.h"
#include "report/model/number.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

cJSON *kprof_json_number(double value)
{
    char text[KPROF_NUMBER_SIZE];
    if (!isfinite(value))
        return cJSON_CreateNull();
    kprof_number_exact(text, value);
    return cJSON_CreateRaw(text);
}

cJSON *kprof_json_integer(int64_t value)
{
    char text[KPROF_NUMBER_SIZE];
    kprof_number_integer(text, value);
    return cJSON_CreateRaw(text);
}

cJSON *kprof_json_take(kprof_strbuf *text)
{
    cJSON *value = text->length > 0 ? cJSON_CreateString(text->data) : cJSON_CreateNull();
    kprof_strbuf_free(text);
    return value;
}

cJSON *kprof_json_found(const kprof_found *found, const char *text)
{
    kprof_strbuf line = KPROF_STRBUF_INIT;
    kprof_found_text(found, text, false, &line);
    return kprof_json_take(&line);
}

cJSON *kprof_json_cell(const kprof_column *column, const kprof_cell *cell)
{
    if (!cell->is_there && !column->always)
        return cJSON_CreateNull();
    if (column->kind == KPROF_CELL_WHOLE)
        return kprof_json_integer(cell->whole);
    if (column->kind != KPROF_CELL_SHAPE)
        return cJSON_CreateString(cell->text);
    return KPROF_JSON_EACH(i, 3, kprof_json_integer(cell->shape[i]));
}

cJSON *kprof_json_process(const kprof_model_process *process)
{
    return KPROF_JSON_OBJECT({"id", kprof_json_integer(process->pid)}, {"name", text_of(process->name)},
                             {"host", text_of(process->host)});
}

void kprof_json_add_range(cJSON *object, const kprof_model *model, const kprof_model_launch *launch)
{
    const double launches = kprof_model_value(model, launch->values, KPROF_RANGE_LAUNCHES);
    if (launches > 0 && kprof_launch_is_graph(&launch->record))
        KPROF_JSON_ADD(object, {"kind", text_of("range")}, {"launches", kprof_json_number(launches)});
}

cJSON *kprof_json_metrics(const kprof_emit_launches *launches)
{
    cJSON *metrics = cJSON_CreateArray();
    for (size_t i = 0; i < launches->column_count; i++) {
        const kprof_emit_metric *column = &launches->columns[i];
        const char *description =
            column->metric < launches->model->metric_count ? launches->model->metrics[column->metric].description : "";
        append(metrics, KPROF_JSON_OBJECT({"name", text_of(column->name)}, {"unit", text_of(column->unit)},
                                          {"description", text_of(description)}, {"help", text_of(column->help)}));
    }
    return metrics;
}

cJSON *kprof_json_what_if(const kprof_what_if *curve)
{
    cJSON *steps = KPROF_JSON_EACH(i, curve->step_count,
                                   KPROF_JSON_OBJECT({"from", kprof_json_integer(curve->steps[i].from)},
                                                     {"to", kprof_json_integer(curve->steps[i].to)},
                                                     {"occupancy_pct", kprof_json_number(curve->steps[i].warps_pct)}));
    return KPROF_JSON_OBJECT({"id", text_of(curve->id)}, {"label", text_of(curve->label)},
                             {"unit", text_of(curve->unit)}, {"now", kprof_json_integer(curve->now)}, {"steps", steps});
}

/* Return the first byte that is DEL or not ASCII, or `end`. Looks at whole words, since nearly all bytes are ASCII. */
static const char *skip_ascii(const char *text, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low = 0x7f * ones, high = 0x80 * ones;
    uint64_t word;
    for (; end - text >= (ptrdiff_t)sizeof word; text += sizeof word) {
        memcpy(&word, text, sizeof word);
        if ((word | ((word & low) + ones)) & high)
            break;
    }
    while (text < end && (unsigned char)*text < 0x7f)
        text++;
    return text;
}

/* cJSON escapes only what JSON demands and passes on any bytes. Also escape what could control a terminal, and replace
 * invalid UTF-8 by U+FFFD. Outside of strings, everything is ASCII. */
void kprof_json_put_text(kprof_output *out, const char *text)
{
    const char *plain = text, *end = text + strlen(text); /* `plain`: what was not written yet */
    while ((text = skip_ascii(text, end)) < end) {
        uint32_t code;
        size_t length = kprof_utf8_decode(text, &code);
        if (length > 0 && !kprof_utf8_is_unsafe(code)) {
            text += length;
            continue;
        }
        kprof_output_put(out, plain, (size_t)(text - plain));
        if (length == 0)
            kprof_output_puts(out, "\xef\xbf\xbd");
        else
            kprof_output_printf(out, "\\u%04x", code);
        plain = text += length ? length : 1;
    }
    kprof_output_put(out, plain, (size_t)(text - plain));
}

void kprof_json_write(kprof_emitter *emitter, cJSON *value)
{
    KPROF_AUTO_FREE char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    kprof_json_put_text(emitter->out, text);
    cJSON_Delete(value);
}
