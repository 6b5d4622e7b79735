/* The tables of a trace: the columns are those that SQL names. */
#include "report/page/page_stats.h"

#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/page/ranking.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 32
#define JOINED_TABLE "kern_counters" /* tells something of reports that have counters, too */

typedef struct stats_page {
    kprof_emitter *emitter;
    kprof_report *report;
    bool is_alone;
    const char *base;      /* the kernels' names; NULL: as the options say */
    kprof_strlist columns; /* of all tables: emitters keep them until the page ends */
    size_t first_column;   /* of the table at hand */
    int time_unit;         /* as in kprof_stats_content */
} stats_page;

/* A column without a value. */
static kprof_emit_field field_of(const char *name)
{
    return (kprof_emit_field){.key = name,
                              .label = name,
                              .unit = "",
                              .type = KPROF_FIELD_REAL,
                              .real = NAN,
                              .is_copied = strcmp(name, "Command") == 0};
}

/* The first row tells what a column has; these are texts where it has nothing there. */
static kprof_field_type type_of(sqlite3_stmt *statement, int column)
{
    static const char *const texts[] = {"Limited by", "Worth Most", "SrcMemKd", "DstMemKd", "Line", "Met"};
    const int type = sqlite3_column_type(statement, column);
    const bool is_text = (type == SQLITE_TEXT || type == SQLITE_BLOB) ||
                         KPROF_ANY(i, COUNT_OF(texts), strcmp(sqlite3_column_name(statement, column), texts[i]) == 0);
    return is_text ? KPROF_FIELD_TEXT : type == SQLITE_INTEGER ? KPROF_FIELD_INTEGER : KPROF_FIELD_REAL;
}

/* Is it a column of times, in another unit than that of SQL? */
static bool is_scaled(const stats_page *page, sqlite3_stmt *statement, int column)
{
    return page->time_unit > 0 && kprof_ends_with(or_empty(sqlite3_column_name(statement, column)), "(ns)");
}

static void show_columns(stats_page *page, sqlite3_stmt *statement)
{
    kprof_emit_field fields[MOST_COLUMNS];
    const int count = sqlite3_column_count(statement);
    page->first_column = page->columns.count;
    for (int i = 0; i < count && i < MOST_COLUMNS; i++) {
        static const char *const units[] = {"ns", "us", "ms", "s"};
        const char *name = or_empty(sqlite3_column_name(statement, i));
        if (is_scaled(page, statement, i))
            kprof_strlist_take(&page->columns, kprof_strprintf("%.*s(%s)", (int)(strlen(name) - strlen("(ns)")), name,
                                                               units[page->time_unit]));
        else
            kprof_strlist_add(&page->columns, name);
        fields[i] = field_of(page->columns.items[page->first_column + (size_t)i]);
        fields[i].type = is_scaled(page, statement, i) ? KPROF_FIELD_REAL : type_of(statement, i);
    }
    if (page->is_alone)
        page->emitter->ops->columns(page->emitter,
                                    &(kprof_emit_record){fields, page->columns.count - page->first_column});
}

/* Numbers in these columns name something. */
static bool is_amount(const char *column)
{
    static const char *const names[] = {"Device", "DevId", "Ctx", "Strm",   "CorrId",  "CorrID",   "PID",
                                        "TID",    "Pid",   "Tid", "Result", "RangeId", "ParentId", "Graph"};
    return !KPROF_ANY(i, COUNT_OF(names), strcmp(column, names[i]) == 0);
}

static void show_row(stats_page *page, sqlite3_stmt *statement)
{
    kprof_emit_field fields[MOST_COLUMNS];
    char *texts[MOST_COLUMNS] = {NULL};
    const int count = (int)(page->columns.count - page->first_column);
    memset(fields, 0, sizeof fields);
    for (int i = 0; i < count; i++) {
        const int type = sqlite3_column_type(statement, i);
        fields[i] = field_of(page->columns.items[page->first_column + (size_t)i]);
        fields[i].type = type_of(statement, i);
        if (type != SQLITE_NULL && is_scaled(page, statement, i)) {
            fields[i].type = KPROF_FIELD_REAL;
            fields[i].real = kprof_store_real(statement, i) / pow(1000, page->time_unit);
        } else if (type == SQLITE_INTEGER) {
            fields[i].integer = sqlite3_column_int64(statement, i);
            fields[i].is_amount = is_amount(fields[i].key);
        } else if (type == SQLITE_FLOAT) {
            fields[i].real = kprof_store_real(statement, i);
        } else if (type != SQLITE_NULL) {
            fields[i].text = texts[i] = kprof_store_text(page->report, statement, i);
        }
    }
    kprof_show_record(page->emitter, fields, (size_t)count);
    for (int i = 0; i < count; i++)
        free(texts[i]);
}

/* With `is_second` an earlier table has this one's key: the words behind the name tell them apart. */
static kprof_status show_table(stats_page *page, const char *name, bool is_second)
{
    const char *shown = page->base ? page->base : page->emitter->options->kernel_base;
    kprof_trace_names names;
    const kprof_trace_stats *stats = kprof_trace_stats_find(name, &names);
    const kprof_list_shape shape = page->is_alone ? KPROF_LIST_ALONE : KPROF_LIST_TABLE;
    sqlite3_stmt *statement = NULL;
    if (!stats)
        return KPROF_UNKNOWN_NAME;
    if (stats->why_none)
        return kprof_fail(KPROF_NOT_COLLECTED, "%s: %s", name, stats->why_none);
    kprof_list_begin(page->emitter, is_second ? name : stats->name, stats->title, shape, false);
    if (!names.base)
        names.base = shown ? shown : "demangled";
    const kprof_status status = kprof_trace_stats_open(page->report, stats, &names, &statement);
    bool is_row = status == KPROF_OK && kprof_store_next(page->report, statement);
    if (statement)
        show_columns(page, statement);
    for (; is_row && kprof_emitter_status(page->emitter) == KPROF_OK;
         is_row = kprof_store_next(page->report, statement))
        show_row(page, statement);
    sqlite3_finalize(statement);
    page->emitter->ops->list_end(page->emitter);
    return status;
}

/* `counters`: SQL that counts the launches that were measured. */
static kprof_stats_records find_records(kprof_report *report, const char *counters)
{
    return (kprof_stats_records){.managed = kprof_trace_has_managed(report),
                                 .samples = kprof_trace_has_samples(report),
                                 .callers = kprof_trace_has_callers(report),
                                 .counters = kprof_store_integer(report, counters) > 0};
}

/* Few traces have this part: `option` of kprof trace records it, and `why` tells why a report has no table of it. */
typedef struct rare_part {
    kprof_trace_need need;
    const char *option, *why;
} rare_part;

/* The part that a table is about and that is not there; NULL: there is none. */
static const rare_part *lacking_part(const kprof_trace_stats *stats, const kprof_stats_records *has)
{
    static const rare_part parts[] = {
        {KPROF_NEEDS_MANAGED, "unified-memory",
         "the trace has nothing about managed memory; kprof trace --unified-memory records it"},
        {KPROF_NEEDS_SAMPLES, "pm-sampling", "the trace has no samples; kprof trace --pm-sampling takes them"},
        {KPROF_NEEDS_CALLERS, "call-stack", "the trace has no call stacks; kprof trace --call-stack records them"},
    };
    const bool are_there[] = {has->managed, has->samples, has->callers};
    const size_t at = KPROF_FIND(i, COUNT_OF(parts), stats->need == parts[i].need && !are_there[i]);
    return at < COUNT_OF(parts) ? &parts[at] : NULL;
}

/* Is a usual table shown? */
static bool is_filled(const char *name, const kprof_stats_records *has)
{
    kprof_trace_names names;
    return strcmp(name, JOINED_TABLE) == 0 ? has->counters : !lacking_part(kprof_trace_stats_find(name, &names), has);
}

/* `kernel` is mangled. `ns` is the median duration of the launches that were measured, `limit_pct` a share of the peak,
 * and `gain_pct` the share of their time that the finding worth most saves. */
static const char counted[] =
    "CREATE TEMP TABLE trace_counted(kernel TEXT, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, "
    "block_y INTEGER, block_z INTEGER, dynamic_smem_bytes INTEGER, measured INTEGER, ns REAL, limited TEXT, limit_pct "
    "REAL, finding TEXT, gain_pct REAL, PRIMARY KEY(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, "
    "dynamic_smem_bytes)) WITHOUT ROWID";
/* Rows of other devices or clusters have the same key: the first one, which takes most of the time, stays. */
static const char add_counted[] = "INSERT OR IGNORE INTO temp.trace_counted VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

static void add_counted_row(kprof_ranking *ranking, const kprof_ranked *row, kprof_report *report, sqlite3_stmt *insert)
{
    const kprof_group *group = row->group;
    const kprof_launch_record *shape = &group->shape;
    const kprof_findings *findings = kprof_ranking_evaluate(ranking, group);
    if (group->not_measured >= group->launches)
        return;
    KPROF_AUTO(kprof_verdict_text) limit = {.value = NAN};
    if (findings)
        limit = kprof_verdict_describe(findings, KPROF_ROW_LIMIT, false);
    const kprof_found *best = findings ? findings->verdict.best : NULL;
    const bool is_near = findings && findings->verdict.near;
    kprof_store_run(report, insert, "tiiiiiiiidtdtd", group->kernel->mangled, (int64_t)shape->grid[0],
                    (int64_t)shape->grid[1], (int64_t)shape->grid[2], (int64_t)shape->block[0],
                    (int64_t)shape->block[1], (int64_t)shape->block[2], (int64_t)shape->dynamic_smem_bytes,
                    (int64_t)(group->launches - group->not_measured), row->median_ns,
                    limit.is_known && limit.name.length > 0 ? limit.name.data : NULL, limit.value, /* NULL for NaN */
                    is_near ? "no large gain"
                    : best  ? best->finding->name
                            : NULL,
                    best && !is_near && !best->finding->gain_is_local ? best->gain_pct : NAN);
}

/* Make the temporary table trace_counted, once for an open report. It has no row where nothing was measured, and no
 * limits where `findings` is NULL. Verdicts follow from a report's values, and no SQL could make them. */
static kprof_status join_counted(const kprof_page_context *context, const kprof_finding_list *findings)
{
    kprof_report *report = context->reports->file;
    kprof_print_options options = *context->options;
    kprof_page_context shapes = *context;
    kprof_ranking ranking;
    if (!kprof_trace_begin_table(report, "trace_counted"))
        return report->status;
    options.group_by = KPROF_GROUP_CONFIG;
    options.sort = KPROF_SORT_TIME;
    options.condition_count = 0;
    options.findings = findings;
    shapes.options = &options;
    const kprof_status status = kprof_ranking_make(&shapes, &ranking);
    kprof_store_exec(report, counted);
    sqlite3_stmt *insert = kprof_store_compile(report, add_counted);
    for (size_t i = 0; i < ranking.count; i++)
        add_counted_row(&ranking, &ranking.rows[i], report, insert);
    sqlite3_finalize(insert);
    kprof_trace_end_table(report);
    return status == KPROF_OK ? report->status : status;
}

kprof_status kprof_page_show_trace(kprof_emitter *emitter, const kprof_page_context *context)
{
    static const char *const tables[] = {"gpu_busy",          "goal_sum",      "lost_sum",      "gpu_idle_sum",
                                         "transfer_sum",      "memory_sum",    "step_sum",      "pm_sampling_sum",
                                         "pm_sampling_steps", "kern_line_sum", "call_line_sum", JOINED_TABLE,
                                         "count_command"};
    /* The page finds kernels by these names. */
    stats_page page = {.report = context->reports->file, .emitter = emitter, .base = "demangled"};
    if (!kprof_trace_is_there(page.report))
        return page.report->status;
    kprof_status status = kprof_store_check_pages(page.report);
    KPROF_THEN(status, join_counted(context, context->options->findings));
    const kprof_stats_records has = find_records(page.report, "SELECT 1"); /* without counters: the kernels' times */
    for (size_t i = 0; i < COUNT_OF(tables) && status == KPROF_OK; i++)
        if (is_filled(tables[i], &has))
            status = show_table(&page, tables[i], false);
    kprof_strlist_free(&page.columns);
    if (status == KPROF_OK)
        kprof_page_show_program(emitter, page.report);
    return status;
}

static bool has_table_before(const kprof_strlist *names, size_t at)
{
    kprof_trace_names words;
    const kprof_trace_stats *stats = kprof_trace_stats_find(names->items[at], &words);
    return KPROF_ANY(i, at, kprof_trace_stats_find(names->items[i], &words) == stats);
}

/* No table but those of events has what did not end. */
static void tell_open_ranges(kprof_report *report)
{
    static const char are_all[] = "SELECT (SELECT total(activities) FROM trace)=count(*) AND count(*)>0 FROM "
                                  "main.trace_range WHERE end_ns IS NULL";
    if (kprof_store_integer(report, are_all))
        kprof_log(KPROF_LOG_WARNING, "the trace has nothing but NVTX marks and ranges that did not end, and no table "
                                     "sums these up; kprof export --to chrome has them");
}

static kprof_status show_stats(const kprof_page_context *context)
{
    const kprof_stats_content *content = context->content;
    const kprof_strlist *names = content->tables;
    stats_page page = {.report = context->reports->file,
                       .is_alone = names->count == 1 && !content->has_titles,
                       .time_unit = content->time_unit};
    kprof_status status = kprof_trace_check(page.report);
    KPROF_THEN(status, join_counted(context, content->findings));
    if (status != KPROF_OK) /* the tables that are counted next are not there then */
        return status;
    const kprof_stats_records has = find_records(page.report, "SELECT count(*) FROM temp.trace_counted");
    if (page.report->status != KPROF_OK)
        return page.report->status;
    page.emitter = kprof_page_begin(context);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        if (content->are_asked_for || is_filled(names->items[i], &has))
            status = show_table(&page, names->items[i], has_table_before(names, i));
    status = kprof_page_end(page.emitter, status);
    kprof_strlist_free(&page.columns);
    if (status == KPROF_OK && !content->are_asked_for && names->count > 1)
        tell_open_ranges(page.report);
    return status;
}

kprof_status kprof_stats_choose(const kprof_strlist *asked, kprof_strlist *out)
{
    static const char usual[] =
        "gpu_busy goal_sum lost_sum gpu_idle_sum transfer_sum memory_sum step_sum pm_sampling_sum "
        "pm_sampling_steps " JOINED_TABLE
        " cuda_gpu_kern_sum graph_sum kern_line_sum cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum um_total_sum "
        "cuda_api_sum call_line_sum nvtx_sum kern_worth count_command";
    kprof_trace_names names;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < asked->count; i++) { /* tell all that are unknown */
        if (!kprof_trace_stats_find(asked->items[i], &names))
            status = KPROF_UNKNOWN_NAME;
        kprof_strlist_add(out, asked->items[i]);
    }
    KPROF_AUTO_FREE char *words = kprof_strdup(usual);
    for (char *rest = asked->count == 0 ? words : NULL, *word; (word = strsep(&rest, " "));)
        kprof_strlist_add(out, word);
    return status;
}

kprof_status kprof_stats_check(const kprof_strlist *asked, const kprof_stats_records *records)
{
    kprof_trace_names names;
    for (size_t i = 0; i < asked->count; i++) {
        const kprof_trace_stats *stats = kprof_trace_stats_find(asked->items[i], &names);
        if (!stats)
            return KPROF_UNKNOWN_NAME;
        if (stats->why_none)
            return kprof_fail(KPROF_NOT_COLLECTED, "%s: %s", stats->name, stats->why_none);
        const rare_part *lacks = lacking_part(stats, records);
        if (lacks)
            return kprof_fail(KPROF_USAGE, "--report %s: this run would have nothing for it; add --%s", stats->name,
                              lacks->option);
    }
    return KPROF_OK;
}

kprof_status kprof_stats_leave_out(kprof_report *report, bool are_asked_for, kprof_strlist *tables)
{
    size_t kept = 0;
    if (tables->count < 2)
        return KPROF_OK;
    const kprof_status status = kprof_trace_check(report);
    if (status != KPROF_OK)
        return status;
    const kprof_stats_records has = find_records(report, "SELECT EXISTS(SELECT 1 FROM launch)");
    if (report->status != KPROF_OK)
        return report->status;
    for (size_t i = 0; i < tables->count; i++) {
        kprof_trace_names names;
        char *name = tables->items[i];
        const kprof_trace_stats *stats = kprof_trace_stats_find(name, &names);
        const rare_part *lacks = lacking_part(stats, &has);
        const char *why = stats->why_none ? stats->why_none : lacks ? lacks->why : NULL;
        if (why && are_asked_for)
            kprof_log(KPROF_LOG_WARNING, "%s is left out: %s", name, why);
        if (are_asked_for ? why != NULL : !is_filled(name, &has))
            free(name);
        else
            tables->items[kept++] = name;
    }
    tables->count = kept;
    return kept == 0 ? KPROF_NOT_COLLECTED : KPROF_OK;
}

const kprof_page_row kprof_stats_page = {"stats", 1, show_stats,
                                         "print fewer tables with --report, or less of the time with --filter-time or "
                                         "--filter-nvtx"};
