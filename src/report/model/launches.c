/* Walks through the launches of a report: one row and its values at a time, so that memory does not grow with them. */
#include "report/model/model.h"
#include "report/store/limits.h"
#include "report/store/rows.h"

#include <math.h>
#include <string.h>

typedef struct launch_walker {
    const kprof_model_walk *walk;
    kprof_model_visit *visit;
    void *user;
    kprof_filter *filter;
    char *name_matches;   /* [kernel_count]: 0 not known yet, 1 no, 2 yes */
    kprof_names counters; /* "PROCESS KERNEL" -> index into counts */
    uint64_t *counts;     /* [count]: launches so far, for --kernel-id */
    size_t count;
    kprof_value_reader reader;
    double *values;
    bool *asked;
    int64_t last_id;
} launch_walker;

/* The element of an array for a row id from the file; NULL when there is no such row. */
static const void *element(const void *array, size_t count, const size_t size, int64_t id)
{
    return id < 1 || (uint64_t)id > count ? NULL : (const char *)array + (size_t)(id - 1) * size;
}

/* The columns behind those of the launch, from the last one. */
enum { ORIGIN = 1, STACK, RANGES, NODE };

static int column_of(sqlite3_stmt *row, int from_last)
{
    return sqlite3_column_count(row) - from_last;
}

/* Are the ranges of a launch among those of the filter? An older report has none. */
static bool matches_nvtx(const launch_walker *walker, sqlite3_stmt *row)
{
    KPROF_AUTO(kprof_nvtx_parsed) ranges;
    KPROF_AUTO_FREE char *text = kprof_store_text(walker->walk->report, row, column_of(row, RANGES));
    kprof_nvtx_parse_text(text, &ranges);
    return kprof_filter_match_nvtx(walker->filter, &(kprof_nvtx_ranges){ranges.items, ranges.count});
}

/* Number a launch, from 1, among those of its process and kernel. */
static uint64_t number_launch(launch_walker *walker, const kprof_model_launch *launch)
{
    const kprof_model *model = walker->walk->model;
    char key[64];
    snprintf(key, sizeof key, "%zu %zu", (size_t)(launch->process - model->processes),
             (size_t)(launch->kernel - model->kernels));
    size_t index;
    if (kprof_names_number(&walker->counters, key, &index))
        KPROF_ADD(walker->counts, walker->count);
    return ++walker->counts[index];
}

/* Is a launch of the right kernel where --kernel-id wants it, and has it one of the numbers there? */
static bool matches_id(launch_walker *walker, const kprof_model_launch *launch)
{
    const kprof_launch_record *record = &launch->record;
    const kprof_filter_place place = {
        .device = record->device,
        .numbers = {[KPROF_PART_CONTEXT] = record->context, [KPROF_PART_STREAM] = record->stream}};
    if (kprof_filter_needs_place(walker->filter) && !kprof_filter_match_place(walker->filter, &place))
        return false;
    return !walker->walk->filter->invocation ||
           kprof_filter_match_invocation(walker->filter, number_launch(walker, launch));
}

/* Does the filter take a launch? */
static bool is_taken(launch_walker *walker, const kprof_model_launch *launch, sqlite3_stmt *row)
{
    if (!walker->filter)
        return true;
    const kprof_launch_record *record = &launch->record;
    kprof_filter_launch place = {.device = record->device,
                                 .kernel = (uint32_t)(launch->kernel - walker->walk->model->kernels),
                                 .dynamic_smem_bytes = record->dynamic_smem_bytes};
    memcpy(place.grid, record->grid, sizeof place.grid);
    memcpy(place.block, record->block, sizeof place.block);
    char *known = &walker->name_matches[place.kernel];
    if (*known == 0)
        *known = kprof_filter_match_name(walker->filter, launch->kernel->mangled) ? 2 : 1;
    bool matches = *known == 2 && matches_id(walker, launch);
    if (matches && kprof_filter_needs_nvtx(walker->filter))
        matches = matches_nvtx(walker, row);
    return kprof_filter_take_launch(walker->filter, matches, &place);
}

/* `choice` is a condition on metric_id, or "". */
static void open_reader(const kprof_model_walk *walk, const char *choice, kprof_value_reader *reader)
{
    KPROF_AUTO_FREE char *sql =
        kprof_strprintf("SELECT metric_id, value FROM value WHERE launch_id=?%s ORDER BY metric_id", choice);
    *reader = (kprof_value_reader){.report = walk->report, .metric_count = walk->model->metric_count};
    reader->rows = kprof_store_compile(walk->report, sql);
}

void kprof_value_reader_open(const kprof_model_walk *walk, kprof_value_reader *reader)
{
    open_reader(walk, "", reader);
}

void kprof_value_reader_open_some(const kprof_model_walk *walk, const size_t *metrics, size_t count,
                                  kprof_value_reader *reader)
{
    KPROF_AUTO(kprof_strbuf) choice = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&choice, " AND metric_id IN (0");
    for (size_t i = 0; i < count; i++)
        kprof_strbuf_printf(&choice, ",%zu", metrics[i] + 1);
    kprof_strbuf_puts(&choice, ")");
    open_reader(walk, choice.data, reader);
}

kprof_status kprof_value_reader_read(kprof_value_reader *reader, int64_t launch, double *values, bool *asked)
{
    for (size_t i = 0; i < reader->metric_count; i++)
        values[i] = NAN;
    memset(asked, 0, reader->metric_count * sizeof *asked);
    sqlite3_stmt *rows = reader->rows;
    sqlite3_reset(rows);
    sqlite3_bind_int64(rows, 1, launch);
    int64_t last = 0;
    while (kprof_store_next(reader->report, rows)) {
        int64_t metric = sqlite3_column_int64(rows, 0);
        if (metric <= last || (uint64_t)metric > reader->metric_count)
            return kprof_store_damaged(reader->report, "value");
        last = metric;
        asked[metric - 1] = true;
        const int type = sqlite3_column_type(rows, 1);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) { /* no value, but SQLite stores it */
            reader->text_bytes += kprof_store_text_bytes(rows);
            kprof_store_check_text(reader->report, reader->text_bytes);
        }
        values[metric - 1] = kprof_store_real(rows, 1);
    }
    return reader->report->status;
}

void kprof_value_reader_close(kprof_value_reader *reader)
{
    sqlite3_finalize(reader->rows);
    reader->rows = NULL;
}

static kprof_status hand_over(launch_walker *walker, kprof_model_launch *launch)
{
    kprof_status status = KPROF_OK;
    if (walker->walk->values) {
        status = kprof_value_reader_read(&walker->reader, launch->id, walker->values, walker->asked);
        launch->values = walker->values;
        launch->asked = walker->asked;
    }
    return status == KPROF_OK ? walker->visit(walker->user, launch) : status;
}

static kprof_status visit_row(launch_walker *walker, sqlite3_stmt *row)
{
    const kprof_model *model = walker->walk->model;
    kprof_model_launch launch = {.id = sqlite3_column_int64(row, 0)};
    launch.process =
        element(model->processes, model->process_count, sizeof *model->processes, sqlite3_column_int64(row, 1));
    launch.kernel = element(model->kernels, model->kernel_count, sizeof *model->kernels, sqlite3_column_int64(row, 2));
    launch.device = element(model->devices, model->device_count, sizeof *model->devices, sqlite3_column_int64(row, 3));
    launch.stack = sqlite3_column_int64(row, column_of(row, STACK));
    const bool has_stack = launch.stack >= 0 && (uint64_t)launch.stack <= model->stack_count;
    if (launch.id <= walker->last_id || !launch.process || !launch.kernel || !launch.device || !has_stack)
        return kprof_store_damaged(walker->walk->report, "launch");
    walker->last_id = launch.id;
    KPROF_AUTO(kprof_pool) texts = {0};
    kprof_launch_row columns = {0};
    kprof_rows_read(&(kprof_row_source){walker->walk->report, row, &texts}, KPROF_ROWS_LAUNCH, &columns);
    launch.record = columns.record;
    launch.record.device = launch.device->record.device;
    const bool taken = is_taken(walker, &launch, row);
    if (walker->filter && kprof_filter_work(walker->filter) > KPROF_MATCHING_MAX)
        return kprof_fail(KPROF_USAGE,
                          "%s: the patterns of -k, --nvtx-include and --nvtx-exclude take too long on this report; "
                          "simplify repetitions, or give names",
                          walker->walk->report->path);
    if (!taken)
        return KPROF_OK;
    launch.record.graph_node = (uint64_t)sqlite3_column_int64(row, column_of(row, NODE));
    KPROF_AUTO_FREE char *nvtx = kprof_store_text(walker->walk->report, row, column_of(row, RANGES));
    KPROF_AUTO_FREE char *origin = kprof_store_text(walker->walk->report, row, column_of(row, ORIGIN));
    launch.record.nvtx = nvtx;
    launch.stack_origin = origin;
    launch.replay_mode = columns.replay_mode;
    launch.reason = columns.reason;
    launch.measured = columns.measured;
    return hand_over(walker, &launch);
}

kprof_status kprof_model_launches(const kprof_model_walk *walk, kprof_model_visit *visit, void *user)
{
    launch_walker walker = {.walk = walk,
                            .visit = visit,
                            .user = user,
                            .name_matches = kprof_calloc(walk->model->kernel_count + 1, 1),
                            .values = kprof_calloc(walk->model->metric_count + 1, sizeof *walker.values),
                            .asked = kprof_calloc(walk->model->metric_count + 1, sizeof *walker.asked),
                            .last_id = -1};
    /* The columns of `launch`, then its graph node, 0 or NULL outside of graphs, its NVTX ranges, and its call stack
     * with the origin of that, or NULL. */
    const char *query = "SELECT launch.*, node, ranges, stack_id, origin FROM launch "
                        "LEFT JOIN graph_node ON graph_node.launch_id=id LEFT JOIN nvtx ON nvtx.launch_id=id "
                        "LEFT JOIN launch_stack ON launch_stack.launch_id=id ORDER BY id";
    if (walk->report->version < 3) /* it has no table graph_node */
        query = "SELECT launch.*, 0, NULL, 0, NULL FROM launch ORDER BY id";
    else if (walk->report->version < 6) /* it has no table nvtx */
        query = "SELECT launch.*, node, NULL, 0, NULL FROM launch LEFT JOIN graph_node ON launch_id=id ORDER BY id";
    else if (walk->report->version < 8) /* it has no table launch_stack */
        query = "SELECT launch.*, node, ranges, 0, NULL FROM launch LEFT JOIN graph_node ON graph_node.launch_id=id "
                "LEFT JOIN nvtx ON nvtx.launch_id=id ORDER BY id";
    kprof_status status = walk->filter ? kprof_filter_new(walk->filter, &walker.filter) : KPROF_OK;
    if (status == KPROF_OK && walk->filter &&
        (kprof_filter_needs_part_name(walker.filter, KPROF_PART_CONTEXT) ||
         kprof_filter_needs_part_name(walker.filter, KPROF_PART_STREAM)))
        status = kprof_fail(KPROF_USAGE, "--kernel-id: a report has numbers of contexts and streams, as "
                                         "launch__context_id and launch__stream_id, and not their names");
    kprof_value_reader_open(walk, &walker.reader);
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(walk->report, query, "");
    while (status == KPROF_OK && kprof_cursor_next(&rows))
        status = visit_row(&walker, rows.row);
    KPROF_THEN(status, walk->report->status);
    kprof_value_reader_close(&walker.reader);
    kprof_filter_free(walker.filter);
    kprof_names_free(&walker.counters);
    KPROF_FREE(walker.name_matches, walker.values, walker.asked, walker.counts);
    return status;
}
