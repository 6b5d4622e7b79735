/* The time of the GPU by call stack, as flame graph tools read it: a line for each stack and kernel, frames from the
 * outermost one on with ; between them, the kernel as the last one, and nanoseconds. */
#include "core/clean.h"
#include "core/log.h"
#include "report/model/change.h"
#include "report/model/model.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct folder {
    const kprof_report *report;
    const kprof_model *model;
    size_t duration; /* the metric */
    char **stacks;   /* [model->stack_count]: frames of each, joined */
    size_t stack_count;
    kprof_names lines; /* of `texts` */
    kprof_strlist texts;
    double *times; /* [texts.count] */
    size_t time_count;
    uint64_t untimed; /* launches */
} folder;

/* A frame without what would end it, or the line. */
static void put_frame(kprof_strbuf *out, const char *text)
{
    const size_t begin = out->length;
    kprof_strbuf_puts(out, text);
    for (size_t i = begin; !out->failed && i < out->length; i++)
        if (out->data[i] == ';' || (unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
}

static const char *string_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* "step (train.py:57)", "main (app)", "app+0x1234" */
static void describe_frame(const cJSON *frame, kprof_strbuf *out)
{
    const char *function = string_of(frame, "function"), *module = string_of(frame, "module");
    const char *file = string_of(frame, "file");
    const cJSON *place = cJSON_GetObjectItemCaseSensitive(frame, module ? "offset" : "line");
    kprof_strbuf text = KPROF_STRBUF_INIT;
    const double number =
        cJSON_IsNumber(place) && place->valuedouble > 0 && place->valuedouble < 9e15 ? place->valuedouble : 0;
    if (module && function)
        kprof_strbuf_printf(&text, "%s (%s)", function, last_part(module));
    else if (module)
        kprof_strbuf_printf(&text, "%s+0x%llx", *module ? last_part(module) : "generated code",
                            (unsigned long long)number);
    else
        kprof_strbuf_printf(&text, "%s (%s:%.0f)", function ? function : "?", file ? last_part(file) : "?", number);
    out->failed = out->failed || text.failed;
    if (!text.failed)
        put_frame(out, text.data);
    kprof_strbuf_free(&text);
}

/* Frames of Python, which know more, or native ones where there are none. NULL when out of memory. */
static char *fold(const char *json)
{
    cJSON *frames = cJSON_Parse(json);
    const cJSON *first = cJSON_IsArray(frames) ? frames->child : NULL;
    const bool is_native = first && string_of(first, "module");
    kprof_strbuf out = KPROF_STRBUF_INIT;
    const cJSON *frame = first;
    while (frame && frame->next && is_native == (string_of(frame->next, "module") != NULL))
        frame = frame->next;
    for (; frame; frame = frame == first ? NULL : frame->prev) {
        kprof_strbuf_puts(&out, out.length ? ";" : "");
        describe_frame(frame, &out);
    }
    cJSON_Delete(frames);
    return kprof_strbuf_take(&out);
}

static kprof_status read_stack(void *user, sqlite3_stmt *row)
{
    folder *into = user;
    char *json = kprof_store_text(into->report, row, 0);
    char *folded = json ? fold(json) : NULL;
    free(json);
    if (!folded || into->stack_count == into->model->stack_count) {
        free(folded);
        return kprof_store_no_memory(into->report);
    }
    into->stacks[into->stack_count++] = folded;
    return KPROF_OK;
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    folder *into = user;
    const kprof_model_stack *stack = kprof_model_stack_of(into->model, launch);
    const uint64_t launches = launch->samples ? launch->samples->launches : 1;
    const double time_ns = into->duration == KPROF_NAMES_NONE ? NAN : launch->values[into->duration];
    kprof_strbuf line = KPROF_STRBUF_INIT;
    if (!(time_ns >= 0) || isinf(time_ns)) {
        into->untimed += launches;
        return KPROF_OK;
    }
    if (stack && *into->stacks[launch->stack - 1])
        kprof_strbuf_puts(&line, into->stacks[launch->stack - 1]);
    else
        put_frame(&line, stack ? stack->line : "(no call stack)");
    kprof_strbuf_puts(&line, ";");
    put_frame(&line, launch->kernel->function);
    size_t at = line.failed ? KPROF_NAMES_NONE : kprof_names_find(&into->lines, line.data);
    if (!line.failed && at == KPROF_NAMES_NONE) {
        at = into->texts.count;
        double *time = KPROF_APPEND(into->times, into->time_count);
        line.failed = !time || !kprof_strlist_add(&into->texts, line.data) ||
                      !kprof_names_add(&into->lines, into->texts.items[at], at);
        if (!line.failed)
            into->time_count++;
    }
    if (!line.failed)
        into->times[at] += time_ns * (double)launches;
    const bool failed = line.failed;
    kprof_strbuf_free(&line);
    return failed ? kprof_store_no_memory(into->report) : KPROF_OK;
}

static kprof_status print_lines(const folder *from, FILE *out)
{
    if (from->untimed > 0)
        kprof_log(KPROF_LOG_WARNING, "%llu launch%s without " KPROF_TIME_METRIC " %s left out",
                  (unsigned long long)from->untimed, from->untimed == 1 ? "" : "es", from->untimed == 1 ? "is" : "are");
    if (from->texts.count == 0)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "%s: no launch has a time: --to folded needs the metric " KPROF_TIME_METRIC,
                          from->report->path);
    for (size_t i = 0; i < from->texts.count; i++)
        if (fprintf(out, "%s %.0f\n", from->texts.items[i], from->times[i]) < 0)
            return kprof_fail(KPROF_OUTPUT, "folded stacks cannot be written");
    return KPROF_OK;
}

kprof_status kprof_report_print_folded(kprof_report *report, const kprof_filter_spec *filter, FILE *out)
{
    kprof_model model;
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    folder into = {.report = report, .model = &model};
    into.duration = kprof_names_find(&model.metric_names, KPROF_TIME_METRIC);
    into.stacks = calloc(model.stack_count + 1, sizeof *into.stacks);
    if (!into.stacks)
        status = kprof_store_no_memory(report);
    if (status == KPROF_OK && model.stack_count > 0)
        status = kprof_store_query(report, "SELECT frames FROM stack ORDER BY id", read_stack, &into);
    if (status == KPROF_OK)
        status = kprof_model_joined_launches(&(kprof_model_walk){report, &model, filter, true}, count_launch, &into);
    if (status == KPROF_OK)
        status = print_lines(&into, out);
    for (size_t i = 0; i < into.stack_count; i++)
        free(into.stacks[i]);
    free(into.stacks);
    free(into.times);
    kprof_names_free(&into.lines);
    kprof_strlist_free(&into.texts);
    kprof_model_free(&model);
    return status;
}
