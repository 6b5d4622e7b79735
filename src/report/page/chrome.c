/* A trace in the JSON of Chrome, which Perfetto reads, with the names that PyTorch's profiler gives to things. SQLite
 * makes each event; kprof writes one after the other, into the page of a browser, too. */
#include "report/emit/json_text.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/page/chrome.sql.h"
#include "report/page/page.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <string.h>

enum { IN_EXPORT = 1, ON_PAGE = 2, EVERYWHERE = 3 };

static const struct {
    const char *sql;
    int places;
} events[] = {{MANAGED_GPU_NAMES, EVERYWHERE},
              {MANAGED_NAMES, EVERYWHERE},
              {MANAGED, IN_EXPORT},
              {MANAGED_MARKS, IN_EXPORT},
              {MANAGED_ON_PAGE, ON_PAGE},
              {HOST_NAMES, EVERYWHERE},
              {GPU_NAMES, EVERYWHERE},
              {STREAM_NAMES, EVERYWHERE},
              {LANE_NAMES, IN_EXPORT},
              {THREAD_NAMES, EVERYWHERE},
              {KERNELS, EVERYWHERE},
              {COPIES, EVERYWHERE},
              {SETS, EVERYWHERE},
              {GRAPHS, EVERYWHERE},
              {RANGES, IN_EXPORT},
              {RANGES_ON_PAGE, ON_PAGE},
              {CALLS, EVERYWHERE},
              {MARKERS, IN_EXPORT},
              {RANGE_BEGINS, IN_EXPORT},
              {RANGE_ENDS, IN_EXPORT},
              {PROJECTION_BEGINS, IN_EXPORT},
              {PROJECTION_ENDS, IN_EXPORT},
              {OVERHEADS, ON_PAGE},
              {OVERHEAD_BEGINS, IN_EXPORT},
              {OVERHEAD_ENDS, IN_EXPORT},
              {FLOW_BEGINS, IN_EXPORT},
              {FLOW_ENDS, IN_EXPORT},
              {MEMORY, IN_EXPORT},
              {QUEUE_DEPTH, IN_EXPORT},
              {SAMPLES, IN_EXPORT},
              {SERIES, ON_PAGE}};

typedef struct writer {
    kprof_output *out;
    bool has_event;
    int64_t most_slices; /* of a kind, the longest; names and slices alone are written then. 0: all events */
} writer;

#define MOST_ON_PAGE 200000 /* slices */

static kprof_status write_event(void *user, sqlite3_stmt *row)
{
    writer *to = user;
    const char *text = (const char *)sqlite3_column_text(row, 0);
    if (!text)
        return KPROF_OK;
    kprof_output_puts(to->out, to->has_event ? ",\n" : "\n");
    if (to->most_slices) /* no text may end the element that it stands in */
        for (const char *at; (at = strchr(text, '<')); text = at + 1) {
            KPROF_AUTO(kprof_strbuf) part = KPROF_STRBUF_INIT;
            kprof_strbuf_append(&part, text, (size_t)(at - text));
            kprof_json_put_text(to->out, part.length ? part.data : "");
            kprof_output_puts(to->out, "\\u003c");
        }
    kprof_json_put_text(to->out, text);
    to->has_event = true;
    return to->out->error ? KPROF_OUTPUT : KPROF_OK;
}

static kprof_status write_events(kprof_report *report, int64_t start_ns, writer *to)
{
    const bool has_managed = report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_MANAGED);
    const bool on_page = to->most_slices > 0;
    kprof_status status = KPROF_OK;
    KPROF_AUTO_FREE char *start = kprof_strprintf("(%ld)", start_ns); /* "--" would begin a comment */
    const kprof_sql_word words[] = {
        {"@start", start},
        {"@kernel", on_page ? STREAM : IN_LANE("1", "trace_kernel.id")},
        {"@copy", on_page ? STREAM : IN_LANE("2", "trace_copy.id")},
        {"@set", on_page ? STREAM : IN_LANE("3", "trace_set.id")},
        {"@graph", on_page ? STREAM : IN_LANE("4", "trace_graph.id")},
        {"@work", on_page ? STREAM : IN_LANE("work.what", "work.id")},
        /* The last recorded has ended last: it stands before what begins with it and lies in it. */
        {"@nested", on_page ? "" : " AND NOT " CROSSES " ORDER BY r.id DESC"},
        {"@caller", kprof_trace_has_callers(report)
                        ? ", 'called from', (SELECT line FROM temp.caller c JOIN stack ON stack.id=stack_id WHERE "
                          "c.process_id=trace_call.process_id AND c.correlation=trace_call.correlation)"
                        : ""},
        {NULL, NULL}};
    for (size_t i = 0; i < COUNT_OF(events) && status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
        const char *event = events[i].sql;
        if (!(events[i].places & (on_page ? ON_PAGE : IN_EXPORT)) || (!has_managed && strstr(event, "trace_managed")))
            continue;
        kprof_sql_expand(event, words, &sql);
        if (on_page && strstr(event, "'ph', 'X'")) /* a slice */
            kprof_strbuf_printf(&sql, " ORDER BY end_ns-start_ns DESC LIMIT %ld", to->most_slices);
        sqlite3_stmt *statement = kprof_store_compile(report, sql.data);
        while (status == KPROF_OK && kprof_store_next(report, statement))
            status = write_event(to, statement);
        sqlite3_finalize(statement);
    }
    return KPROF_THEN(status, report->status);
}

/* Make the table of samples, and return when the trace starts. */
static int64_t begin_events(kprof_report *report)
{
    kprof_trace_find_samples(report); /* and the GPUs */
    kprof_trace_find_memory(report);
    return kprof_store_integer(report, KPROF_TRACE_START);
}

kprof_status kprof_report_print_chrome(kprof_report *report, FILE *out)
{
    const int64_t start_ns = begin_events(report);
    kprof_trace_project_ranges(report);
    kprof_trace_find_lanes(report);
    kprof_trace_find_calls(report);
    if (report->status != KPROF_OK)
        return report->status;
    kprof_output output = kprof_output_new(out, UINT64_MAX);
    kprof_output_printf(&output, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%ld,",
                        start_ns);
    kprof_output_puts(&output, "\"traceEvents\":[");
    kprof_status status = write_events(report, start_ns, &(writer){.out = &output});
    kprof_output_puts(&output, "\n]}\n");
    kprof_status written = kprof_output_finish(&output);
    return status == KPROF_OK ? written : status;
}

/* Count what the page may show, and return how many of each kind it has space for: kinds with few leave theirs to
 * others. */
static int64_t share_page(kprof_report *report, int64_t *slices)
{
    static const char *const kinds[] = {"kernel", "copy", "set", "graph", "call", "range", "overhead", "managed"};
    const bool has_managed = report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_MANAGED);
    const size_t count = COUNT_OF(kinds) - !has_managed; /* which is the last one */
    int64_t of[COUNT_OF(kinds)], each = 0, space = MOST_ON_PAGE, sharing = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&sql, "SELECT count(*) FROM trace_%s", kinds[i]);
        of[i] = kprof_store_integer(report, sql.data);
        *slices += of[i];
    }
    while (sharing > 0 && each < space / sharing) {
        each = space / sharing;
        space = MOST_ON_PAGE;
        sharing = 0;
        for (size_t i = 0; i < count; i++) {
            space -= of[i] <= each ? of[i] : 0;
            sharing += of[i] > each;
        }
    }
    return each;
}

/* Tell people what the trace lacks. */
static void put_missing(kprof_report *report, kprof_output *out)
{
    KPROF_AUTO(kprof_strlist) notes = KPROF_STRLIST_INIT;
    kprof_trace_list_missing(report, KPROF_TRACE_PAGE, &notes);
    kprof_output_puts(out, ",\"missing\":[");
    for (size_t i = 0; i < notes.count; i++) /* no text has a mark that JSON knows */
        kprof_output_printf(out, "%s\"%s\"", i ? "," : "", notes.items[i]);
    kprof_output_puts(out, "]");
}

static void put_members(void *user, kprof_output *out)
{
    kprof_report *report = user;
    int64_t slices = 0;
    const int64_t start_ns = begin_events(report), each = share_page(report, &slices);
    if (report->status != KPROF_OK)
        return;
    const bool too_many = slices > MOST_ON_PAGE;
    if (too_many)
        kprof_output_printf(out, ",\"lacks\":{\"of\":%ld,\"each\":%ld}", slices, each);
    put_missing(report, out);
    kprof_output_puts(out, ",\"traceEvents\":[");
    (void)write_events(report, start_ns, &(writer){.out = out, .most_slices = too_many ? each : INT64_MAX});
    kprof_output_puts(out, "\n]");
}

void kprof_page_show_program(kprof_emitter *emitter, kprof_report *report)
{
    emitter->ops->members(emitter, &(kprof_emit_members){"program", put_members, report});
}

static kprof_status print_program(const kprof_page_context *context)
{
    kprof_emitter *emitter = kprof_page_begin(context);
    kprof_page_show_program(emitter, context->reports->file);
    return kprof_page_end(emitter, KPROF_OK);
}

const kprof_page_row kprof_program_page = {"program", 1, print_program, "kprof stats sums it up in tables"};
