/* A trace in the JSON of Chrome, which Perfetto reads, with the names that PyTorch's profiler gives to things. SQLite
 * makes each event; kprof writes one after the other, into the page of a browser, too. */
#include "core/log.h"
#include "report/emit/json_text.h"
#include "report/model/trace_samples.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/page/page.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <string.h>

/* A process of the application has the number of its row times 1000, and each GPU that it uses its own behind that. */
#define HOST     "1000*process_id"
#define GPU      "1000*process_id+1+device"
#define STREAM   "65536*context+stream"
#define LANES    "temp.work_lane"
#define TIME(ns) "json(printf('%.3f', (" ns "-@start)/1e3))"
#define LENGTH   "json(printf('%.3f', max(0, end_ns-start_ns)/1e3))"
#define SLICE(category, name, pid, tid)                                                                                \
    "SELECT json_object('ph', 'X', 'cat', " category ", 'name', " name ", 'pid', " pid ", 'tid', " tid                 \
    ", 'ts', " TIME("start_ns") ", 'dur', " LENGTH ", 'args', json_object("
#define NAMED(what, pid, tid, name)                                                                                    \
    "json_object('ph', 'M', 'name', '" what "', 'pid', " pid ", 'tid', " tid ", 'args', json_object('name', " name ")" \
    ")"
#define KNOWN " WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL"
#define ON_GPU                                                                                                         \
    "'device', device, 'context', context, 'stream', stream, 'correlation', correlation, 'graph node id', "            \
    "coalesce(graph_node, 0)"
/* The work that calls asked for; `what` as in temp.work_lane. */
#define WORK                                                                                                           \
    "work AS (SELECT 1 AS what, id, process_id, correlation, device, context, stream, start_ns FROM "                  \
    "trace_kernel" KNOWN                                                                                               \
    " UNION ALL SELECT 2, id, process_id, correlation, device, context, stream, start_ns FROM trace_copy" KNOWN        \
    " UNION ALL SELECT 3, id, process_id, correlation, device, context, stream, start_ns FROM trace_set" KNOWN         \
    " UNION ALL SELECT 4, id, process_id, correlation, device, context, stream, start_ns FROM trace_graph" KNOWN ")"
#define STREAMS ", used AS (SELECT DISTINCT process_id, device, context, stream FROM work)"
#define FLOW(phase, pid, tid)                                                                                          \
    "json_object('ph', '" phase                                                                                        \
    "', 'cat', 'ac2g', 'name', 'ac2g', 'id', 4294967296*process_id+correlation, 'pid', " pid ", 'tid', " tid           \
    ", 'ts', " TIME("start_ns")

/* Ranges on the GPU: from the first start to the last end of what their calls asked for. */
#define PROJECTED(phase, ns)                                                                                           \
    "SELECT json_object('ph', '" phase "', 'cat', 'gpu_user_annotation', 'name', coalesce(g.text || ':', '') || "      \
    "n.text, 'id', r.id, 'pid', 1000*process_id, 'tid', thread, 'ts', " TIME(                                          \
        ns) ") FROM temp.range_span p JOIN "                                                                           \
            "trace_range r ON r.id=p.range JOIN trace_name n ON n.id=name_id LEFT JOIN trace_name g ON g.id=domain_id"

/* Ranges that are started need not nest, nor do those of several domains, or without an end, which viewers draw to the
 * end of the trace. */
#define CROSSES "EXISTS (SELECT 1 FROM " LANES " l WHERE l.what=5 AND l.id=r.id)"
#define RANGE_END(phase, ns, tid, of)                                                                                  \
    "SELECT json_object('ph', '" phase "', 'cat', 'user_annotation', 'name', coalesce(g.text || ':', '') || n.text, "  \
    "'id', r.id, 'pid', " HOST ", 'tid', " tid                                                                         \
    ", 'ts', " TIME(ns) ") FROM trace_range r JOIN trace_name n ON "                                                   \
                        "n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN trace_name g ON g.id=domain_id "    \
                        "WHERE " of

/* Overheads need not nest with calls, either: the page lays them out, and others are told their ends. */
#define OVERHEAD "'overhead'"
#define OVERHEAD_END(phase, ns)                                                                                        \
    "SELECT json_object('ph', '" phase "', 'cat', " OVERHEAD ", 'name', n.text, 'id', o.id, 'pid', " HOST              \
    ", 'tid', coalesce(thread, 0), 'ts', " TIME(ns) ") FROM trace_overhead o JOIN trace_name n ON n.id=name_id"

/* Samples for the page: begin and length in us and the value of each; above MOST_POINTS of a metric, means of them. */
#define SERIES                                                                                                         \
    "WITH part AS (SELECT *, row_number() OVER same-1 AS i, count(*) OVER (PARTITION BY process_id, device, name_id) " \
    "AS n FROM temp.trace_sampled WINDOW same AS (PARTITION BY process_id, device, name_id ORDER BY start_ns)), "      \
    "point "                                                                                                           \
    "AS (SELECT process_id, device, name_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns, "                       \
    "total(value*(end_ns-"                                                                                             \
    "start_ns))/nullif(total(CASE WHEN value IS NOT NULL THEN end_ns-start_ns END), 0) AS value FROM part GROUP "      \
    "BY process_id, device, name_id, i/((n+" MOST_POINTS "-1)/" MOST_POINTS ")) SELECT json_object('ph', 'samples', "  \
    "'name', label, 'unit', unit, 'pid', " GPU ", 'points', json_group_array(json_array(" TIME(                        \
        "start_ns") ", " LENGTH ", round(value, 3)))) FROM (SELECT * FROM point ORDER BY process_id, device, "         \
                    "name_id, start_ns) JOIN "                                                                         \
                    "temp.sampled_metric USING(name_id) GROUP BY process_id, device, name_id"
#define MOST_POINTS "20000"

/* Managed memory has rows of its own, below the streams of its GPU: what moves there, what moves away, and the rest. */
#define MANAGED_GPU "1000*process_id+1+coalesce(target_device, source_device, 0)"
#define MANAGED_ROW "2147483640+CASE o.text WHEN 'Host-to-Device' THEN 1 WHEN 'Device-to-Host' THEN 2 ELSE 3 END"
#define MANAGED_FROM                                                                                                   \
    " FROM trace_managed JOIN trace_name o ON o.id=operation_id WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL"

static const char *const events[] = {
    "SELECT DISTINCT " NAMED("thread_name", MANAGED_GPU, MANAGED_ROW,
                             "'managed memory, ' || CASE o.text WHEN 'Host-to-Device' THEN 'to the GPU' WHEN "
                             "'Device-to-Host' THEN 'to the host' ELSE 'faults' END") MANAGED_FROM " ORDER BY 1",
    SLICE("'managed'", "o.text", MANAGED_GPU, MANAGED_ROW) "'address', printf('0x%x', address), 'bytes', bytes, "
                                                           "'faults', faults))" MANAGED_FROM,
    "SELECT " NAMED("process_name", HOST, "0",
                    "name || ' (' || pid || ' on ' || host || ')'") " FROM trace JOIN process "
                                                                    "ON process.id=process_id ORDER BY process_id",
    "WITH " WORK ", used AS (SELECT process_id, device FROM work UNION SELECT process_id, device FROM "
    "temp.trace_sampled) SELECT DISTINCT " NAMED(
        "process_name", GPU, "0",
        "'GPU ' || device || coalesce(' (' || (SELECT name FROM device d WHERE d.ordinal=used.device ORDER BY id LIMIT "
        "1) "
        "|| ')', '') || ', of process ' || (SELECT pid FROM process WHERE id=process_id)") " FROM used ORDER BY 1",
    "WITH " WORK STREAMS " SELECT " NAMED("thread_name", GPU, STREAM,
                                          "'stream ' || stream || ' (context ' || context || "
                                          "')'") " FROM used ORDER BY 1",
    "WITH " WORK ", used AS (SELECT DISTINCT process_id, device, context, stream, tid FROM work JOIN " LANES
    " USING(what, id)) SELECT " NAMED("thread_name", GPU, "tid",
                                      "'stream ' || stream || ' (context ' || context || '), beside the row "
                                      "before'") " FROM used ORDER BY 1",
    "SELECT DISTINCT " NAMED("thread_name", HOST, "thread",
                             "'thread ' || thread") " FROM (SELECT process_id, thread FROM trace_call UNION SELECT "
                                                    "process_id, thread FROM trace_range) ORDER BY 1",
    SLICE("'kernel'", "n.demangled", GPU, "@kernel") ON_GPU
    ", 'grid', json_array(grid_x, grid_y, grid_z), 'block', json_array(block_x, block_y, block_z), 'registers per "
    "thread', registers_per_thread, 'shared memory', static_smem_bytes+dynamic_smem_bytes)) FROM trace_kernel JOIN "
    "trace_name n ON n.id=name_id" KNOWN,
    SLICE("'gpu_memcpy'", "'Memcpy ' || o.text", GPU, "@copy") ON_GPU
    ", 'bytes', bytes, 'memory bandwidth (GB/s)', CASE WHEN end_ns>start_ns THEN round(1.0*bytes/(end_ns-start_ns), 3) "
    "END, 'source', s.text, 'target', t.text)) FROM trace_copy JOIN trace_name o ON o.id=operation_id JOIN trace_name "
    "s "
    "ON s.id=source_memory_id JOIN trace_name t ON t.id=target_memory_id" KNOWN,
    SLICE("'gpu_memset'", "'Memset'", GPU, "@set") ON_GPU ", 'bytes', bytes)) FROM trace_set" KNOWN,
    SLICE("'kernel'", "'CUDA graph ' || graph", GPU, "@graph") "'graph', graph, 'correlation', correlation)) FROM "
                                                               "trace_graph" KNOWN,
    /* Viewers take slices that begin at one time in the order of the file: ranges have calls in them. */
    SLICE("'user_annotation'", "coalesce(g.text || ':', '') || n.text", HOST,
          "thread") "'style', s.text)) FROM "
                    "trace_range r JOIN trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN "
                    "trace_name g ON g.id=domain_id WHERE end_ns IS NOT NULL AND s.text!='StartEnd'@nested",
    SLICE("'cuda_' || l.text", "n.text", HOST,
          "thread") "'correlation', correlation, 'result', result@caller)) FROM trace_call "
                    "JOIN trace_name n ON n.id=name_id JOIN trace_name l ON l.id=layer_id",
    "SELECT json_object('ph', 'i', 's', 't', 'cat', 'user_annotation', 'name', coalesce(g.text || ':', '') || n.text, "
    "'pid', " HOST
    ", 'tid', thread, 'ts', " TIME("start_ns") ", 'args', json_object()) FROM trace_range JOIN trace_name n ON "
                                               "n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN trace_name g "
                                               "ON g.id=domain_id WHERE s.text='Marker'",
    RANGE_END("b", "start_ns", "thread", "s.text='StartEnd' OR (end_ns IS NULL AND s.text!='Marker') OR " CROSSES),
    RANGE_END("e", "end_ns", "end_thread", "(s.text='StartEnd' AND end_ns IS NOT NULL) OR " CROSSES),
    PROJECTED("b", "p.start_ns"),
    PROJECTED("e", "p.end_ns"),
    SLICE(OVERHEAD, "n.text", HOST, "coalesce(thread, 0)") "'correlation', correlation)) FROM trace_overhead JOIN "
                                                           "trace_name n ON n.id=name_id",
    OVERHEAD_END("b", "start_ns"),
    OVERHEAD_END("e", "end_ns"),
    "WITH " WORK ", asked AS (SELECT DISTINCT process_id, correlation FROM work) SELECT " FLOW(
        "s", HOST, "thread") ") FROM asked CROSS JOIN temp.first_call USING(process_id, correlation)",
    "WITH " WORK
    " SELECT " FLOW("f", GPU, "@work") ", 'bp', 'e') FROM work WHERE EXISTS (SELECT 1 FROM temp.first_call c "
                                       "WHERE c.process_id=work.process_id AND c.correlation=work.correlation)",
    "SELECT json_object('ph', 'C', 'name', 'allocated ' || n.text || ' memory', 'pid', " GPU ", 'tid', 0, 'ts', " TIME(
        "time_ns") ", 'args', json_object('MB', round(sum(CASE WHEN o.text='allocation' THEN bytes ELSE -bytes END) "
                   "OVER (PARTITION BY process_id, device, memory_id ORDER BY time_ns ROWS BETWEEN UNBOUNDED PRECEDING "
                   "AND CURRENT ROW)/1e6, 3))) FROM trace_memory JOIN trace_name n ON n.id=memory_id JOIN trace_name o "
                   "ON o.id=operation_id",
    "WITH " WORK
    ", steps AS (SELECT process_id, device, c.start_ns AS start_ns, 1 AS d FROM work CROSS JOIN temp.first_call c "
    "USING(process_id, correlation) UNION ALL SELECT process_id, device, work.start_ns, -1 FROM work CROSS JOIN "
    "temp.first_call USING(process_id, correlation)) SELECT json_object('ph', 'C', 'name', 'queue depth', 'pid', " GPU
    ", 'tid', 0, 'ts', " TIME(
        "start_ns") ", 'args', json_object('asked for', sum(d) OVER (PARTITION BY process_id, device "
                    "ORDER BY start_ns, d ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))) FROM steps",
    /* Names are in the order in which the plan has the metrics. */
    "SELECT json_object('ph', 'C', 'name', label, 'pid', " GPU
    ", 'tid', 0, 'ts', " TIME("start_ns") ", 'args', json_object(coalesce(nullif(unit, ''), 'value'), round(value, "
                                          "3))) FROM temp.trace_sampled JOIN temp.sampled_metric USING(name_id) WHERE "
                                          "value IS NOT NULL ORDER BY process_id, device, name_id, start_ns",
    SERIES,
};

typedef struct writer {
    kprof_output *out;
    bool has_event;
    bool has_callers;    /* calls have call stacks */
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

/* Is it written, and how? */
static bool is_slice(const char *sql)
{
    return strstr(sql, "'ph', 'X'") != NULL;
}

static bool is_wanted(const char *sql, const writer *to)
{
    const bool is_series = strstr(sql, "'ph', 'samples'") != NULL;
    const bool is_name = strstr(sql, "'ph', 'M'") != NULL && !strstr(sql, LANES);
    const bool is_for_page = is_series || (is_slice(sql) && strstr(sql, OVERHEAD) != NULL);
    return to->most_slices ? is_slice(sql) || is_series || is_name : !is_for_page;
}

/* The row of something: a stream's, but for what overlaps there. */
#define IN_LANE(what, id) "coalesce((SELECT tid FROM " LANES " l WHERE l.what=" what " AND l.id=" id "), " STREAM ")"

/* Return what stands for a word in SQL that begins with @; NULL: the time of the start. */
static const char *replace_word(const char *word, const writer *to, size_t *length)
{
    static const struct {
        const char *word, *text, *on_page;
    } words[] = {{"@kernel", IN_LANE("1", "trace_kernel.id"), STREAM},
                 {"@copy", IN_LANE("2", "trace_copy.id"), STREAM},
                 {"@set", IN_LANE("3", "trace_set.id"), STREAM},
                 {"@graph", IN_LANE("4", "trace_graph.id"), STREAM},
                 {"@work", IN_LANE("work.what", "work.id"), STREAM},
                 /* The last recorded has ended last: it stands before what begins with it and lies in it. */
                 {"@nested", " AND NOT " CROSSES " ORDER BY r.id DESC", ""}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        *length = strlen(words[i].word);
        if (strncmp(word, words[i].word, *length) == 0)
            return to->most_slices ? words[i].on_page : words[i].text;
    }
    const bool is_start = strncmp(word, "@start", strlen("@start")) == 0;
    *length = is_start ? strlen("@start") : strlen("@caller");
    return is_start          ? NULL
           : to->has_callers ? ", 'called from', (SELECT line FROM temp.caller c JOIN stack ON stack.id=stack_id WHERE "
                               "c.process_id=trace_call.process_id AND c.correlation=trace_call.correlation)"
                             : "";
}

/* Append SQL without its words that begin with @. */
static void expand(const char *sql, int64_t start_ns, const writer *to, kprof_strbuf *out)
{
    for (const char *at; (at = strchr(sql, '@'));) {
        size_t length;
        const char *text = replace_word(at, to, &length);
        kprof_strbuf_append(out, sql, (size_t)(at - sql));
        if (text)
            kprof_strbuf_puts(out, text);
        else
            kprof_strbuf_printf(out, "(%lld)", (long long)start_ns); /* "--" would begin a comment */
        sql = at + length;
    }
    kprof_strbuf_puts(out, sql);
}

static kprof_status write_events(kprof_report *report, int64_t start_ns, writer *to)
{
    const bool has_managed = report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_MANAGED);
    kprof_status status = KPROF_OK;
    to->has_callers = kprof_trace_has_callers(report);
    for (size_t i = 0; i < COUNT_OF(events) && status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
        if (!is_wanted(events[i], to) || (!has_managed && strstr(events[i], "trace_managed")))
            continue;
        expand(events[i], start_ns, to, &sql);
        if (to->most_slices && is_slice(events[i]))
            kprof_strbuf_printf(&sql, " ORDER BY end_ns-start_ns DESC LIMIT %lld", (long long)to->most_slices);
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
    kprof_trace_find_samples(report);
    return kprof_store_integer(report, KPROF_TRACE_START);
}

kprof_status kprof_report_print_chrome(kprof_report *report, FILE *out)
{
    kprof_status status = kprof_trace_check(report);
    if (status != KPROF_OK) /* the tables that are read next are not there then */
        return status;
    const int64_t start_ns = begin_events(report);
    kprof_trace_project_ranges(report);
    kprof_trace_find_lanes(report);
    kprof_trace_find_calls(report);
    if (report->status != KPROF_OK)
        return report->status;
    kprof_output output = kprof_output_new(out, UINT64_MAX);
    kprof_output_printf(&output, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%lld,",
                        (long long)start_ns);
    kprof_output_puts(&output, "\"traceEvents\":[");
    status = write_events(report, start_ns, &(writer){.out = &output});
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

static void put_members(void *user, kprof_output *out)
{
    kprof_report *report = user;
    int64_t slices = 0;
    const int64_t start_ns = begin_events(report), each = share_page(report, &slices);
    if (report->status != KPROF_OK)
        return;
    const bool too_many = slices > MOST_ON_PAGE;
    if (too_many)
        kprof_output_printf(out, ",\"lacks\":{\"of\":%lld,\"each\":%lld}", (long long)slices, (long long)each);
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
    const kprof_status status = kprof_trace_check(context->reports->file);
    if (status != KPROF_OK)
        return status;
    kprof_emitter *emitter = kprof_page_begin(context);
    kprof_page_show_program(emitter, context->reports->file);
    return kprof_page_end(emitter, KPROF_OK);
}

const kprof_page_row kprof_program_page = {"program", 1, print_program};
