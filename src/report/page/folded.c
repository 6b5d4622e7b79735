/* The time of the GPU by call stack, as flame graph tools read it: a line for each stack and kernel, frames from the
 * outermost one on with ; between them, the kernel as the last one, and nanoseconds. */
#include "core/clean.h"
#include "core/log.h"
#include "report/model/stacks.h"
#include "report/model/trace_stats.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>

typedef struct folder {
    kprof_report *report;
    const kprof_model *model;
    kprof_told_stacks stacks;
    kprof_names lines; /* that are kept, in the order of `times` */
    double *times;
    size_t time_count;
    uint64_t untimed; /* launches */
} folder;

/* A frame without what would end it, or the line, or steer a terminal. */
static void put_frame(kprof_strbuf *out, const char *text)
{
    const size_t begin = out->length;
    KPROF_AUTO_FREE char *clean = kprof_clean_text(text);
    kprof_strbuf_puts(out, clean);
    for (size_t i = begin; i < out->length; i++)
        if (out->data[i] == ';')
            out->data[i] = ' ';
}

/* The frames of a stack, joined. */
static void put_stack(const folder *into, size_t number, kprof_strbuf *out)
{
    const kprof_told_stack *stack = &into->stacks.stacks[number];
    if (stack->is_cut && stack->count > 0) /* it began further outside */
        kprof_strbuf_puts(out, "(more frames);");
    for (size_t i = kprof_told_stack_length(&into->stacks, stack); i-- > 0;) {
        put_frame(out, into->stacks.frames[stack->frames[i]].text);
        kprof_strbuf_puts(out, i > 0 ? ";" : "");
    }
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    folder *into = user;
    const kprof_model_stack *stack = kprof_model_stack_of(into->model, launch);
    const uint64_t launches = launch->samples ? launch->samples->launches : 1;
    const double time_ns = kprof_model_value(into->model, launch->values, KPROF_TIME_METRIC);
    KPROF_AUTO(kprof_strbuf) line = KPROF_STRBUF_INIT;
    if (!(time_ns >= 0) || isinf(time_ns)) {
        into->untimed += launches;
        return KPROF_OK;
    }
    if (stack)
        put_stack(into, (size_t)launch->stack - 1, &line);
    if (line.length == 0)
        put_frame(&line, stack ? stack->line : "(no call stack)");
    kprof_strbuf_puts(&line, ";");
    put_frame(&line, launch->kernel->function);
    size_t at;
    if (kprof_names_number(&into->lines, line.data, &at))
        KPROF_ADD(into->times, into->time_count);
    into->times[at] += time_ns * (double)launches;
    return KPROF_OK;
}

static kprof_status print_lines(const folder *from, FILE *out)
{
    if (from->untimed > 0)
        kprof_log(KPROF_LOG_WARNING, "%lu launch%s without " KPROF_TIME_METRIC " %s left out", from->untimed,
                  from->untimed == 1 ? "" : "es", from->untimed == 1 ? "is" : "are");
    if (from->time_count == 0)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "%s: no launch has a time: --to folded needs the metric " KPROF_TIME_METRIC,
                          from->report->path);
    if (from->stacks.stack_count == 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%s: it has no call stacks, which a run keeps with --call-stack: each kernel is a line of its own",
                  from->report->path);
    for (size_t i = 0; i < from->time_count; i++)
        if (fprintf(out, "%s %.0f\n", from->lines.copies.items[i], from->times[i]) < 0)
            return kprof_fail(KPROF_OUTPUT, "folded stacks cannot be written");
    return KPROF_OK;
}

/* A line of a trace: the number of a stack, a kernel and its time. */
static kprof_status put_line(const folder *of, sqlite3_stmt *row, FILE *out)
{
    const int64_t stack = sqlite3_column_int64(row, 0);
    KPROF_AUTO(kprof_strbuf) line = KPROF_STRBUF_INIT;
    if (stack >= 0 && (uint64_t)stack < of->stacks.stack_count)
        put_stack(of, (size_t)stack, &line);
    if (line.length == 0)
        put_frame(&line, "(no call stack)");
    kprof_strbuf_puts(&line, ";");
    put_frame(&line, kprof_store_column(row, 1));
    const int written = fprintf(out, "%s %.0f\n", line.data, sqlite3_column_double(row, 2));
    return written < 0 ? kprof_fail(KPROF_OUTPUT, "folded stacks cannot be written") : KPROF_OK;
}

static kprof_status print_trace(kprof_report *report, FILE *out)
{
    static const char query[] =
        "WITH numbered AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY id)-1 AS number FROM stack) SELECT "
        "coalesce(number, -1), function, total(end_ns-start_ns) FROM trace_kernel k JOIN trace_name n ON n.id=name_id "
        "LEFT JOIN temp.caller c ON c.process_id=k.process_id AND c.correlation=k.correlation LEFT JOIN numbered ON "
        "numbered.id=stack_id WHERE end_ns>=start_ns GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2";
    KPROF_AUTO(kprof_pool) pool = {0};
    folder of = {.report = report};
    kprof_status status = KPROF_OK;
    kprof_told_stacks_load(report, &pool, &of.stacks);
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, query, "");
    while (status == KPROF_OK && kprof_cursor_next(&rows))
        status = put_line(&of, rows.row, out);
    return KPROF_THEN(status, report->status);
}

static char *name_stack(const void *of, const kprof_model_launch *launch)
{
    (void)of;
    return kprof_strprintf("%ld", launch->stack);
}

kprof_status kprof_report_print_folded(kprof_report *report, const kprof_filter_spec *filter, FILE *out)
{
    KPROF_AUTO(kprof_model) model = {0};
    const bool is_measured = kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM launch)");
    if (!is_measured && kprof_trace_is_there(report) && kprof_trace_has_callers(report))
        return print_trace(report, out);
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    folder into = {.report = report, .model = &model};
    kprof_told_stacks_load(report, model.pool, &into.stacks);
    if (report->status == KPROF_OK && into.stacks.stack_count != model.stack_count) /* it has changed meanwhile */
        status = kprof_store_damaged(report, "stack");
    if (status == KPROF_OK)
        status = kprof_model_joined_launches(&(kprof_model_walk){report, &model, filter, true},
                                             (kprof_model_parts){name_stack, NULL}, count_launch, &into);
    KPROF_THEN(status, print_lines(&into, out));
    free(into.times);
    kprof_names_free(&into.lines);
    return status;
}
