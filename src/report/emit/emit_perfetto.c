/* The trace format of Chrome, which Perfetto reads: a slice for each launch with its values, in the row of its stream,
 * and a track of each headline of the first section. One launch at a time is in memory. */
#include "report/emit/json_text.h"
#include "report/model/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct perfetto_emitter {
    kprof_emitter base;
    bool begun, has_event;
    int64_t *ends_ns; /* [stream_count]: of the last slice in the row of each stream, since the run began */
    size_t stream_count;
    kprof_names stream_numbers; /* by process, device, context and stream */
    /* the launch being put together */
    const kprof_model_launch *launch;
    size_t row; /* into ends_ns */
    int64_t start_ns;
    double duration_ns;
    cJSON *args;     /* of its slice; owned */
    cJSON *counters; /* an array of {name, args}; owned */
} perfetto_emitter;

static perfetto_emitter *of(kprof_emitter *emitter)
{
    return (perfetto_emitter *)emitter;
}

/* The format wants microseconds. Print their decimals from whole nanoseconds, since a double would round them. */
static cJSON *time_of(int64_t ns)
{
    char text[48];
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    snprintf(text, sizeof text, "%s%lu.%03u", ns < 0 ? "-" : "", size / 1000, (unsigned)(size % 1000));
    return cJSON_CreateRaw(text);
}

static void write_event(perfetto_emitter *trace, cJSON *event)
{
    kprof_output_puts(trace->base.out, trace->has_event ? ",\n" : "\n");
    trace->has_event = true;
    kprof_json_write(&trace->base, event);
}

/* An event that names a process or, with `row`, one of its rows. */
static void write_name(perfetto_emitter *trace, int64_t process, int64_t row, const char *name)
{
    write_event(trace,
                KPROF_JSON_OBJECT({"name", text_of(row > 0 ? "thread_name" : "process_name")}, {"ph", text_of("M")},
                                  {"pid", kprof_json_integer(process)}, {"tid", kprof_json_integer(row)},
                                  {"args", KPROF_JSON_OBJECT({"name", text_of(name)})}));
}

/* Processes have the numbers of their rows in the report: two machines may have used one pid. */
static int64_t number_of_process(const perfetto_emitter *trace, const kprof_model_launch *launch)
{
    return launch->process - trace->base.launches.model->processes + 1;
}

static void begin_trace(perfetto_emitter *trace)
{
    kprof_output_puts(trace->base.out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    trace->begun = true;
}

static void perfetto_launches_begin(kprof_emitter *emitter)
{
    perfetto_emitter *trace = of(emitter);
    const kprof_model *model = emitter->launches.model;
    trace->stream_numbers.pool = &emitter->pool;
    begin_trace(trace);
    for (size_t i = 0; i < model->process_count; i++) {
        const kprof_model_process *process = &model->processes[i];
        KPROF_AUTO(kprof_strbuf) name = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&name, "%s (%ld on %s)", process->name, process->pid, process->host);
        write_name(trace, (int64_t)i + 1, 0, kprof_strbuf_text(&name));
    }
}

/* The row of a launch's stream; a new one is named in the trace. */
static size_t row_of(perfetto_emitter *trace, const kprof_model_launch *launch)
{
    char key[128], name[128];
    const kprof_launch_record *record = &launch->record;
    const int64_t process = number_of_process(trace, launch);
    snprintf(key, sizeof key, "%ld %td %u %lu", process, launch->device - trace->base.launches.model->devices,
             record->context, record->stream);
    size_t row;
    if (!kprof_names_number(&trace->stream_numbers, key, &row))
        return row;
    *KPROF_POOL_ADD(&trace->base.pool, trace->ends_ns, trace->stream_count) = INT64_MIN;
    snprintf(name, sizeof name, "device %u, context %u, stream %lu", record->device, record->context, record->stream);
    write_name(trace, process, (int64_t)row + 1, name);
    return row;
}

static void perfetto_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    perfetto_emitter *trace = of(emitter);
    trace->launch = launch;
    trace->duration_ns = NAN;
    trace->row = row_of(trace, launch);
    if (__builtin_sub_overflow(launch->record.start_unix_ns, emitter->launches.model->start_unix_ns, &trace->start_ns))
        trace->start_ns = 0;
    trace->counters = cJSON_CreateArray();
    trace->args = KPROF_JSON_OBJECT(
        {"launch", kprof_json_integer(launch->id)}, {"start_unix_ns", kprof_json_integer(launch->record.start_unix_ns)},
        {"replay_mode", text_of(launch->replay_mode)}, {"reason", *launch->reason ? text_of(launch->reason) : NULL});
    if (launch->samples) {
        /* If a slice stands for several launches, say how many, and how many samples its values come from. */
        kprof_strbuf text = KPROF_STRBUF_INIT, note = KPROF_STRBUF_INIT;
        kprof_samples_describe(launch, &text);
        kprof_samples_note(trace->base.launches.model, launch->samples, &note);
        add_text(trace->args, "samples", kprof_strbuf_text(&text));
        if (note.length > 0)
            add_text(trace->args, "samples_note", note.data);
        KPROF_FREE_TEXTS(&text, &note);
    }
}

/* Does the first section of the launch's chip show it below its heading? */
static bool is_headline(const perfetto_emitter *trace, const kprof_emit_metric *metric)
{
    const kprof_model *model = trace->base.launches.model;
    const size_t chip = trace->launch->device->chip_index;
    if (chip >= model->chip_count || model->chips[chip].shown_count == 0)
        return false;
    const kprof_section *first = &model->chips[chip].sections[0];
    return KPROF_ANY(i, first->item_count, strcmp(first->items[i].name, metric->name) == 0);
}

static void perfetto_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    perfetto_emitter *trace = of(emitter);
    if (metric->repeated)
        return;
    add(trace->args, metric->name, kprof_json_number(metric->value));
    if (strcmp(metric->name, KPROF_TIME_METRIC) == 0)
        trace->duration_ns = metric->value;
    if (!isfinite(metric->value) || !is_headline(trace, metric))
        return;
    const char *unit = *metric->unit ? metric->unit : "value";
    append(trace->counters, KPROF_JSON_OBJECT({"name", text_of(metric->name)},
                                              {"args", KPROF_JSON_OBJECT({unit, kprof_json_number(metric->value)})}));
}

/* Applications launch ahead of the GPU, but slices of one row must not overlap: a slice begins at the call, or when the
 * slice before it ends. Without a duration, print a mark at the call. */
static void place(perfetto_emitter *trace, cJSON *event)
{
    int64_t *end_ns = &trace->ends_ns[trace->row];
    const bool has_length = trace->duration_ns >= 0 && trace->duration_ns < 1e15;
    if (trace->start_ns < *end_ns)
        trace->start_ns = *end_ns;
    KPROF_JSON_ADD(event, {"ph", text_of(has_length ? "X" : "i")}, {"ts", time_of(trace->start_ns)});
    *end_ns = trace->start_ns;
    if (has_length) {
        int64_t length_ns = (int64_t)trace->duration_ns;
        add(event, "dur", time_of(length_ns));
        if (__builtin_add_overflow(trace->start_ns, length_ns, end_ns))
            *end_ns = INT64_MAX;
    } else {
        add_text(event, "s", "t");
    }
}

static void perfetto_launch_end(kprof_emitter *emitter)
{
    perfetto_emitter *trace = of(emitter);
    const int64_t process = number_of_process(trace, trace->launch);
    const char *name = kprof_model_kernel_name(trace->launch->kernel, emitter->options->kernel_base);
    cJSON *event = KPROF_JSON_OBJECT({"name", text_of(name)}, {"cat", text_of("kernel")},
                                     {"pid", kprof_json_integer(process)}, {"tid", kprof_json_integer(trace->row + 1)});
    place(trace, event);
    add(event, "args", trace->args);
    trace->args = NULL;
    write_event(trace, event);
    for (cJSON *counter; (counter = cJSON_DetachItemFromArray(trace->counters, 0));) {
        write_event(trace,
                    KPROF_JSON_ADD(counter, {"ph", text_of("C")}, {"pid", kprof_json_integer(process)},
                                   {"id", kprof_json_integer(trace->row + 1)}, {"ts", time_of(trace->start_ns)}));
    }
    cJSON_Delete(trace->counters);
    trace->counters = NULL;
}

static void perfetto_launches_end(kprof_emitter *emitter)
{
    perfetto_emitter *trace = of(emitter);
    cJSON_Delete(trace->args);
    cJSON_Delete(trace->counters);
    trace->args = trace->counters = NULL;
}

static void perfetto_page_end(kprof_emitter *emitter)
{
    perfetto_emitter *trace = of(emitter);
    if (!trace->begun)
        begin_trace(trace);
    kprof_output_puts(emitter->out, "\n]}\n");
}

const kprof_emitter_ops kprof_emit_perfetto = {
    .size = sizeof(perfetto_emitter),
    .launches_begin = perfetto_launches_begin,
    .launch_begin = perfetto_launch_begin,
    .metric = perfetto_metric,
    .launch_end = perfetto_launch_end,
    .launches_end = perfetto_launches_end,
    .page_end = perfetto_page_end,
    .free = perfetto_launches_end,
};
