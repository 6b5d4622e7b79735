/* Times of activities that CUPTI does not know are left out, as NULL is. All sums are of numbers with a point, since a
 * report from anywhere may have any integers. */
#include "report/model/trace_stats.h"

#include "report/model/trace_functions.h"
#include "report/model/trace_stats.sql.h"
#include "report/model/trace_tables.h"
#include "report/store/store.h"
#include "report/store/trace_ingest.h"

#include <stdlib.h>
#include <string.h>

/* `table` names its SQL, too. */
#define TABLE(table, its_title, needs, old)                                                                            \
    {                                                                                                                  \
        .name = #table, .title = (its_title), .sql = table, .need = KPROF_NEEDS_##needs, .old_name = (old)             \
    }
#define NO_TABLE(table, its_title, why, old)                                                                           \
    {                                                                                                                  \
        .name = #table, .title = (its_title), .why_none = "kprof does not trace " why, .old_name = (old)               \
    }
const kprof_trace_stats kprof_trace_stats_tables[] = {
    TABLE(cuda_gpu_kern_sum, "CUDA GPU Kernel Summary", NOTHING, "gpukernsum"),
    TABLE(cuda_api_sum, "CUDA API Summary", NOTHING, "cudaapisum"),
    TABLE(cuda_gpu_mem_time_sum, "CUDA GPU MemOps Summary (by Time)", NOTHING, "gpumemtimesum"),
    TABLE(cuda_gpu_mem_size_sum, "CUDA GPU MemOps Summary (by Size)", NOTHING, "gpumemsizesum"),
    TABLE(cuda_gpu_sum, "CUDA GPU Summary (Kernels/MemOps)", NOTHING, "gpusum"),
    TABLE(cuda_api_gpu_sum, "CUDA Summary (API/Kernels/MemOps)", NOTHING, "apigpusum"),
    TABLE(cuda_gpu_kern_gb_sum, "CUDA GPU Kernel/Grid/Block Summary", NOTHING, NULL),
    TABLE(graph_sum, "CUDA Graphs as a Whole", NOTHING, NULL),
    TABLE(cuda_gpu_trace, "CUDA GPU Trace", NOTHING, "gputrace"),
    TABLE(cuda_api_trace, "CUDA API Trace", NOTHING, "cudaapitrace"),
    TABLE(cuda_kern_exec_sum, "CUDA Kernel Launch & Exec Time Summary", CALLS, "kernexecsum"),
    TABLE(cuda_kern_exec_trace, "CUDA Kernel Launch & Exec Time Trace", CALLS, "kernexectrace"),
    TABLE(nvtx_sum, "NVTX Range Summary", NOTHING, "nvtxsum"),
    TABLE(nvtx_pushpop_sum, "NVTX Push/Pop Range Summary", NOTHING, "nvtxppsum"),
    TABLE(nvtx_startend_sum, "NVTX Start/End Range Summary", NOTHING, "nvtxsesum"),
    TABLE(nvtx_pushpop_trace, "NVTX Push/Pop Range Trace", NESTING, "nvtxpptrace"),
    TABLE(kern_line_sum, "Kernels by Line", CALLERS, NULL),
    TABLE(call_line_sum, "CUDA API by Line", CALLERS, NULL),
    TABLE(gpu_busy, "GPU Use", LOST, NULL),
    TABLE(goal_sum, "Goals", LOST, NULL),
    TABLE(gpu_idle_sum, "GPU Idle Time by Cause", LOST, NULL),
    TABLE(transfer_sum, "Transfers", LOST, NULL),
    TABLE(memory_sum, "Memory", LOST, NULL),
    TABLE(step_sum, "Steps (NVTX)", LOST, NULL),
    TABLE(lost_sum, "What Is Lost", LOST, NULL),
    TABLE(kern_counters, "Kernels, Their Time and Limits", COUNTERS, NULL),
    TABLE(kern_worth, "Kernels Worth Counting", COUNTERS, NULL),
    TABLE(count_command, "How to Count Them", COUNTERS, NULL),
    TABLE(nvtx_gpu_proj_sum, "NVTX GPU Projection Summary", SPANS, NULL),
    TABLE(nvtx_gpu_proj_trace, "NVTX GPU Projection Trace", SPANS, "nvtxgpuproj"),
    TABLE(nvtx_kern_sum, "NVTX Range Kernel Summary", PROJECTION, "nvtxkernsum"),
    TABLE(pm_sampling_sum, "GPU Utilization over Time", SAMPLES, NULL),
    TABLE(pm_sampling_steps, "GPU Utilization of Steps (NVTX)", SAMPLES, NULL),
    TABLE(pm_sampling_step_spread, "Spread of GPU Utilization over Steps (NVTX)", SAMPLES, NULL),
    TABLE(pm_sampling_trace, "GPU Utilization Trace", SAMPLES, NULL),
    TABLE(um_sum, "Unified Memory Analysis Summary", MANAGED, "unifiedmemory"),
    TABLE(um_total_sum, "Unified Memory Totals Summary", MANAGED, "unifiedmemorytotals"),
    TABLE(um_cpu_page_faults_sum, "Unified Memory CPU Page Faults Summary", MANAGED, "umcpupagefaults"),
    NO_TABLE(osrt_sum, "OS Runtime Summary", "calls of the operating system", "osrtsum"),
    NO_TABLE(osrt_trace, "OS Runtime Trace", "calls of the operating system", NULL),
    NO_TABLE(syscall_sum, "Syscall Summary", "calls of the operating system", NULL),
    NO_TABLE(mpi_event_sum, "MPI Event Summary", "MPI", NULL),
    NO_TABLE(mpi_event_trace, "MPI Event Trace", "MPI", NULL),
    NO_TABLE(openacc_sum, "OpenACC Summary", "OpenACC", "openaccsum"),
    NO_TABLE(openmp_sum, "OpenMP Summary", "OpenMP", "openmpevtsum"),
    NO_TABLE(nvvideo_api_sum, "NvVideo API Summary", "calls about video", NULL),
    NO_TABLE(vulkan_api_sum, "Vulkan API Summary", "graphics", NULL),
    NO_TABLE(vulkan_api_trace, "Vulkan API Trace", "graphics", NULL),
    NO_TABLE(vulkan_marker_sum, "Vulkan Range Summary", "graphics", "vulkanmarkerssum"),
    NO_TABLE(mpi_msg_size_sum, "MPI Message Size Summary", "MPI", NULL),
    NO_TABLE(vulkan_gpu_marker_sum, "Vulkan GPU Range Summary", "graphics", "vulkangpumarkersum"),
    NO_TABLE(opengl_khr_gpu_range_sum, "OpenGL KHR_debug GPU Range Summary", "graphics", "khrdebuggpusum"),
    NO_TABLE(dx11_pix_sum, "DX11 PIX Range Summary", "graphics", "dx11pixsum"),
    NO_TABLE(dx12_pix_sum, "DX12 PIX Range Summary", "graphics", "dx12pixsum"),
    NO_TABLE(dx12_gpu_marker_sum, "DX12 GPU Command List PIX Ranges Summary", "graphics", "dx12gpumarkersum"),
    NO_TABLE(opengl_khr_range_sum, "OpenGL KHR_debug Range Summary", "graphics", "khrdebugsum"),
    NO_TABLE(network_congestion, "Network Devices Congestion", "network devices", NULL),
    NO_TABLE(wddm_queue_sum, "WDDM Queue Utilization Summary", "Windows", NULL),
};
const size_t kprof_trace_stats_count = COUNT_OF(kprof_trace_stats_tables);

/* Read what stands behind the name of a table: ":nvtx-name", ":base", ":mangled" or ":rows=NUMBER". False for another
 * word. */
static bool read_names(const char *words, kprof_trace_names *out)
{
    static const struct {
        const char *word, *base;
    } known[] = {{":nvtx-name", NULL}, {":base", "function"}, {":mangled", "mangled"}};
    *out = (kprof_trace_names){NULL, false, 0};
    while (*words) {
        static const char rows[] = ":rows=";
        size_t i = 0, length = 1 + strcspn(words + 1, ":");
        const char *digits = words + strlen(rows);
        const bool is_rows = strncmp(words, rows, strlen(rows)) == 0 && length > strlen(rows) &&
                             length < strlen(rows) + 18 && strspn(digits, "0123456789") == length - strlen(rows);
        while (i < 3 && (strlen(known[i].word) != length || strncmp(words, known[i].word, length) != 0))
            i++;
        if (i == 3 && !is_rows)
            return false;
        out->most_rows = is_rows ? strtoll(digits, NULL, 10) : out->most_rows;
        out->in_ranges = out->in_ranges || (i < 3 && !known[i].base);
        out->base = i < 3 && known[i].base ? known[i].base : out->base;
        words += length;
    }
    return true;
}

/* Has the table what the words behind its name are about? */
static bool takes_names(const kprof_trace_stats *stats, const kprof_trace_names *names)
{
    const char *sql = or_empty(stats->sql);
    return (!names->in_ranges || strstr(sql, "@kernel")) &&
           (!names->base || strstr(sql, "@kernel") || strstr(sql, "@name"));
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

const kprof_trace_stats *kprof_trace_stats_find(const char *name, kprof_trace_names *kernels)
{
    const char *names[2 * COUNT_OF(kprof_trace_stats_tables)]; /* new and old ones of tables that there are */
    const size_t length = strcspn(name, ":");
    size_t count = 0;
    if (!read_names(name + length, kernels)) {
        kprof_log(
            KPROF_LOG_ERROR,
            "--report %s: after a colon comes base, mangled or nvtx-name, of the names of kernels, or rows=NUMBER",
            name);
        return NULL;
    }
    for (size_t i = 0; i < kprof_trace_stats_count; i++) {
        const kprof_trace_stats *stats = &kprof_trace_stats_tables[i];
        if (stats->sql)
            names[count++] = stats->name;
        if (stats->sql && stats->old_name)
            names[count++] = stats->old_name;
        if (!is_name(stats->name, name, length) && !is_name(stats->old_name, name, length))
            continue;
        if (stats->why_none || takes_names(stats, kernels))
            return stats;
        kprof_log(KPROF_LOG_ERROR, "--report %s: %s has no %s; leave out what follows the colon", name, stats->name,
                  kernels->in_ranges && strstr(stats->sql, "@name") ? "names of single kernels" : "names of kernels");
        return NULL;
    }
    KPROF_AUTO_FREE char *word = kprof_strndup(name, length);
    const size_t containing = KPROF_FIND(i, count, length > 3 && strstr(names[i], word)); /* kern_sum */
    const char *nearest = containing < count ? names[containing] : kprof_nearest(word, names, count);
    kprof_log(KPROF_LOG_ERROR, "--report %s: there is no such table; %s%s%s", name,
              nearest ? "did you mean " : "kprof list tables lists all", nearest ? nearest : "", nearest ? "?" : "");
    return NULL;
}

/* The column of trace_name. */
static const char *column_of(const kprof_trace_names *names)
{
    return strcmp(names->base, "mangled") == 0 ? "text" : names->base;
}

/* Append SQL, with the kernels' names for "@kernel", in rows of "@names", their column without its table for "@name",
 * the text of such a name for "@shown", and when the trace begins for "@start"; and for "@sampled" a column for each
 * metric that is sampled. */
static void expand(kprof_report *report, const char *sql, const kprof_trace_names *names, kprof_strbuf *out)
{
    const char *column = column_of(names);
    KPROF_AUTO(kprof_strbuf) sampled = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE char *kernel = kprof_strprintf("%sn.%s", names->in_ranges ? IN_RANGE : "", column);
    KPROF_AUTO_FREE char *shown = kprof_strprintf(
        "iif(typeof(name)='integer', (SELECT shown.%s FROM trace_name shown WHERE shown.id=name), name)", column);
    if (strstr(sql, "@sampled"))
        kprof_trace_list_samples(report, &sampled);
    const kprof_sql_word words[] = {{"@names", names->in_ranges ? "trace_name" : "temp.name_key"},
                                    {"@name", column},
                                    {"@shown", shown},
                                    {"@start", "(" KPROF_TRACE_START ")"},
                                    {"@kernel", kernel},
                                    {"@sampled", kprof_strbuf_text(&sampled)},
                                    {NULL, NULL}};
    kprof_sql_expand(sql, words, out);
}

bool kprof_trace_is_there(kprof_report *report)
{
    return report->version >= 9 && kprof_store_integer(report, "SELECT count(*) FROM trace") > 0;
}

kprof_status kprof_trace_check(kprof_report *report)
{
    if (!kprof_trace_is_there(report) && report->status == KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          kprof_store_integer(report, "SELECT count(*) FROM process") > 0
                              ? "%s has no trace; kprof trace makes one"
                              : "%s is empty: no process of its run has called CUDA",
                          report->path);
    return kprof_store_check_pages(report);
}

#define BACKWARDS     "end_ns<start_ns"
#define WITHOUT_TIMES "start_ns IS NULL OR end_ns IS NULL"

/* Activities that some tables are without. */
typedef struct odd_activities {
    int64_t without_times, backwards, without_name;
} odd_activities;

static odd_activities find_odd(kprof_report *report)
{
    /* is_backwards and without_times are 0 where a kind has no such times */
    static const struct {
        kprof_activity_kind kind;
        const char *table, *names, *is_backwards, *without_times;
    } kinds[] = {
        {KPROF_ACTIVITY_KERNEL, "kernel", "name_id", BACKWARDS, WITHOUT_TIMES},
        {KPROF_ACTIVITY_COPY, "copy", "operation_id+source_memory_id+target_memory_id", BACKWARDS, WITHOUT_TIMES},
        {KPROF_ACTIVITY_SET, "set", "0", BACKWARDS, WITHOUT_TIMES},
        {KPROF_ACTIVITY_GRAPH, "graph", "0", BACKWARDS, WITHOUT_TIMES},
        {KPROF_ACTIVITY_CALL, "call", "name_id+layer_id", BACKWARDS, "0"},
        {KPROF_ACTIVITY_MEMORY, "memory", "memory_id+operation_id", "0", "0"},
        {KPROF_ACTIVITY_RANGE, "range", "name_id+style_id", BACKWARDS, "0"},
        {KPROF_ACTIVITY_OVERHEAD, "overhead", "name_id", BACKWARDS, "0"},
        {KPROF_ACTIVITY_MANAGED, "managed", "operation_id", BACKWARDS, "0"},
    };
    odd_activities count = {0, 0, 0};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (report->version < KPROF_TRACE_SINCE(kinds[i].kind))
            continue;
        KPROF_AUTO_FREE char *sql = kprof_strprintf(
            "SELECT CAST(total(%s) AS INTEGER), CAST(total(%s) AS INTEGER), CAST(total(%s IS NULL) AS INTEGER) FROM "
            "trace_%s",
            kinds[i].without_times, kinds[i].is_backwards, kinds[i].names, kinds[i].table);
        KPROF_EACH_ROW(rows, report, sql) {
            count.without_times += sqlite3_column_int64(rows.row, 0);
            count.backwards += sqlite3_column_int64(rows.row, 1);
            count.without_name += sqlite3_column_int64(rows.row, 2);
        }
    }
    return count;
}

void kprof_trace_list_missing(kprof_report *report, kprof_trace_place place, kprof_strlist *out)
{
    static const char *const places[] = {"the tables are", "the export is", "the page is"};
    const bool of_tables = place == KPROF_TRACE_TABLES;
    const char *all = places[place], *some = of_tables ? "tables of times are" : all,
               *named = of_tables ? "tables with names are" : all, *without = " without them";
    const odd_activities odd = find_odd(report);
    const struct {
        int64_t count;
        const char *what, *whose, *effect;
    } notes[] = {
        {kprof_store_integer(report, "SELECT CAST(total(dropped) AS INTEGER) FROM trace"), "activities lost", all,
         without},
        {kprof_store_integer(report, "SELECT CAST(total(unknown) AS INTEGER) FROM trace"),
         "records of CUPTI's that kprof cannot read", all, without},
        {of_tables ? kprof_store_integer(report, "SELECT count(*) FROM trace_graph") : 0, "launches of whole graphs",
         "",
         "tables of kernels are without theirs, which kprof trace --graph-profiling node records; graph_sum has the "
         "graphs' time"},
        {kprof_store_integer(report, "SELECT count(*) FROM trace WHERE end_unix_ns IS NULL"), "processes cut short", "",
         "what they did last is missing, and NVTX ranges that had not ended"},
        {kprof_store_integer(report, "SELECT count(*) FROM trace WHERE reason!=''"),
         "processes that ended before their work on the GPU", "",
         "what had not ended is missing, and some of what had"},
        {odd.without_times, "kernels, copies, sets and graphs whose times CUPTI does not know", some, without},
        {odd.backwards, "activities that end before they begin", some, without},
        {odd.without_name, "activities without a name", named, without},
    };
    for (size_t i = 0; i < COUNT_OF(notes); i++)
        if (notes[i].count > 0)
            kprof_strlist_take(
                out, kprof_strprintf("%s: %ld; %s%s", notes[i].what, notes[i].count, notes[i].whose, notes[i].effect));
    if (kprof_store_integer(report, "SELECT total(activities)=0 FROM trace"))
        kprof_strlist_add(out, "the trace is empty: nothing happened that it tells of");
}

kprof_status kprof_trace_tell_missing(kprof_report *report, kprof_trace_place place)
{
    KPROF_AUTO(kprof_strlist) notes = KPROF_STRLIST_INIT;
    kprof_trace_list_missing(report, place, &notes);
    for (size_t i = 0; i < notes.count; i++)
        kprof_log(KPROF_LOG_WARNING, "%s", notes.items[i]);
    return report->status;
}

bool kprof_trace_has_managed(kprof_report *report)
{
    return report->version >= KPROF_TRACE_SINCE(KPROF_ACTIVITY_MANAGED) &&
           kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM trace_managed)");
}

bool kprof_trace_has_callers(kprof_report *report)
{
    kprof_trace_find_callers(report);
    return kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM temp.caller)");
}

static void make_spans(kprof_report *report)
{
    kprof_trace_project_ranges(report);
    kprof_trace_nest_ranges(report);
}

static kprof_status make_needed(kprof_report *report, kprof_trace_need need, const kprof_trace_names *names)
{
    static void (*const makers[])(kprof_report *) = {[KPROF_NEEDS_LOST] = kprof_trace_find_lost,
                                                     [KPROF_NEEDS_NESTING] = kprof_trace_nest_ranges,
                                                     [KPROF_NEEDS_SPANS] = make_spans,
                                                     [KPROF_NEEDS_SAMPLES] = kprof_trace_find_samples,
                                                     [KPROF_NEEDS_CALLS] = kprof_trace_find_calls,
                                                     [KPROF_NEEDS_COUNTERS] = kprof_trace_find_shapes};
    if (need == KPROF_NEEDS_MANAGED && !kprof_trace_has_managed(report) && report->status == KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "the trace has nothing about managed memory; kprof trace "
                                               "--unified-memory records it, where the program has any");
    if (need == KPROF_NEEDS_CALLERS && !kprof_trace_has_callers(report) && report->status == KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the trace has no call stacks; kprof trace --call-stack records those of calls");
    if (need == KPROF_NEEDS_PROJECTION)
        kprof_trace_sum_range_kernels(report, column_of(names));
    if (need < COUNT_OF(makers) && makers[need])
        makers[need](report);
    return report->status;
}

kprof_status kprof_trace_stats_open(kprof_report *report, const kprof_trace_stats *stats,
                                    const kprof_trace_names *names, sqlite3_stmt **out)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    kprof_trace_add_functions(report);
    kprof_trace_find_gpus(report);
    const kprof_status status = make_needed(report, stats->need, names);
    if (status != KPROF_OK)
        return status;
    if (strstr(stats->sql, "@names"))
        kprof_trace_find_names(report);
    if (names->in_ranges)
        kprof_trace_find_innermost_ranges(report);
    expand(report, stats->sql, names, &sql);
    if (names->most_rows > 0)
        kprof_strbuf_printf(&sql, " LIMIT %ld", names->most_rows);
    *out = kprof_store_compile(report, sql.data);
    return report->status;
}
