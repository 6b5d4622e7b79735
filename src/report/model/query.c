/* Answers the command line's questions about a report: how many launches, and which kernels. */
#include "report/model/model.h"
#include "report/model/trace_samples.h"

#include <stdlib.h>
#include <string.h>

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    kprof_report_counts *counts = user;
    bool multiplexed = kprof_model_is_multiplexed(launch);
    counts->samples += multiplexed && launch->measured > 0;
    counts->multiplexed += multiplexed;
    if (kprof_model_is_missing(launch))
        counts->not_measured++;
    else
        counts->profiled++;
    return KPROF_OK;
}

static kprof_status count_activities(kprof_report *report, kprof_report_counts *out)
{
    int64_t activities = 0, dropped = 0, traces = 0;
    if (report->version < 9) /* it has no table trace */
        return KPROF_OK;
    kprof_status status =
        kprof_store_integer(report, "SELECT CAST(total(activities) AS INTEGER) FROM trace", &activities);
    KPROF_THEN(status, kprof_store_integer(report, "SELECT CAST(total(dropped) AS INTEGER) FROM trace", &dropped));
    KPROF_THEN(status, kprof_store_integer(report, "SELECT count(*) FROM trace", &traces));
    KPROF_THEN(status, kprof_trace_has_samples(report, &out->has_samples));
    out->has_trace = traces > 0;
    out->activities = activities > 0 ? (uint64_t)activities : 0;
    out->dropped = dropped > 0 ? (uint64_t)dropped : 0;
    return status;
}

/* Processes that take a census count all launches; others beside them have made the same once more. */
static void count_census(const kprof_model *model, kprof_report_counts *out)
{
    for (size_t i = 0; i < model->census_count; i++) {
        kprof_model_process *process = &model->processes[model->census[i].process_id - 1];
        out->timed += model->census[i].launches;
        out->launches += process->launches > 0 ? (uint64_t)process->launches : 0;
        process->launches = 0; /* it may have more rows */
    }
}

static kprof_status find_instructions(kprof_report *report, kprof_report_counts *out)
{
    int64_t has = 0;
    const kprof_status status =
        report->version < 7 /* it has none of these tables */
            ? KPROF_OK
            : kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM code_profile WHERE counted+sampled>0)", &has);
    out->has_instructions = has;
    return status;
}

/* The recorder says so in messages (kprof_process_warn_unmeasured). */
static kprof_status find_untold(kprof_report *report, kprof_report_counts *out)
{
    int64_t has = 0;
    static const char query[] = "SELECT EXISTS(SELECT 1 FROM message WHERE level='warning' AND status='NOT_COLLECTED')";
    const kprof_status status = kprof_store_integer(report, query, &has);
    out->has_untold = has;
    return status;
}

static kprof_status count_incomplete(kprof_report *report, kprof_report_counts *out)
{
    int64_t count = 0;
    static const char query[] =
        "SELECT count(*) FROM launch JOIN device ON device.id=device_id WHERE replay_mode='multiplex' AND measured>0 "
        "AND passes<(SELECT count(*) FROM pass WHERE pass.chip=device.chip)";
    const kprof_status status = out->samples > 0 ? kprof_store_integer(report, query, &count) : KPROF_OK;
    out->incomplete = (uint64_t)count;
    return status;
}

kprof_status kprof_report_count(kprof_report *report, kprof_report_counts *out)
{
    kprof_model model;
    memset(out, 0, sizeof *out);
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    kprof_model_walk walk = {report, &model, NULL, false};
    status = kprof_model_launches(&walk, count_launch, out);
    KPROF_THEN(status, count_incomplete(report, out));
    KPROF_THEN(status, find_instructions(report, out));
    KPROF_THEN(status, find_untold(report, out));
    if (out->samples == 0 && !out->has_instructions) { /* launches that are parts of none */
        out->profiled -= out->multiplexed;
        out->not_measured += out->multiplexed;
        out->multiplexed = 0;
    }
    uint64_t stored = out->profiled + out->not_measured, seen = 0, told = 0;
    int64_t kernels = 0;
    for (size_t i = 0; i < model.kernel_count; i++)
        seen += model.kernels[i].launches;
    if (status == KPROF_OK) /* those of one name count as one */
        status = kprof_store_integer(report, "SELECT count(DISTINCT mangled) FROM kernel", &kernels);
    out->kernels = (size_t)kernels;
    count_census(&model, out);
    bool have_all_told = true; /* else kernels tell more, of a killed process; they count ranges, too */
    for (size_t i = 0; i < model.process_count; i++) {
        have_all_told = have_all_told && model.processes[i].launches >= 0;
        told += model.processes[i].launches > 0 ? (uint64_t)model.processes[i].launches : 0;
    }
    if (out->launches == 0) /* no census has counted them */
        out->launches = seen > told && (!have_all_told || told == 0) ? seen : told;
    if (out->launches < stored) /* a killed process may have counted fewer than it stored */
        out->launches = stored;
    kprof_model_free(&model);
    return status == KPROF_OK ? count_activities(report, out) : status;
}

kprof_status kprof_report_command_line(kprof_report *report, char **out)
{
    kprof_model model;
    *out = NULL;
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    *out = model.command_line;
    model.command_line = NULL;
    kprof_model_free(&model);
    return KPROF_OK;
}

static kprof_status count_one(void *user, const kprof_model_launch *launch)
{
    (void)launch;
    ++*(uint64_t *)user;
    return KPROF_OK;
}

static kprof_status count_if_multiplexed(void *user, const kprof_model_launch *launch)
{
    *(uint64_t *)user += kprof_model_is_multiplexed(launch);
    return KPROF_OK;
}

static kprof_status visit_taken(kprof_report *report, const kprof_filter_spec *filter, kprof_model_visit *visit,
                                uint64_t *out)
{
    kprof_model model;
    *out = 0;
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    kprof_model_walk walk = {report, &model, filter, false};
    status = kprof_model_launches(&walk, visit, out);
    kprof_model_free(&model);
    return status;
}

kprof_status kprof_report_count_taken(kprof_report *report, const kprof_filter_spec *filter, uint64_t *out)
{
    return visit_taken(report, filter, count_one, out);
}

kprof_status kprof_report_count_multiplexed(kprof_report *report, const kprof_filter_spec *filter, uint64_t *out)
{
    return visit_taken(report, filter, count_if_multiplexed, out);
}

typedef struct range_list {
    kprof_report *report;
    size_t most;
    kprof_strlist *out;
} range_list;

static kprof_status read_ranges(void *user, sqlite3_stmt *row)
{
    range_list *list = user;
    if (list->out->count == list->most)
        return KPROF_OK;
    kprof_strlist_take_unique(list->out, kprof_store_text(list->report, row, 0));
    return KPROF_OK;
}

kprof_status kprof_report_nvtx(kprof_report *report, size_t most, kprof_strlist *out)
{
    range_list list = {report, most, out};
    return report->version < 6
               ? KPROF_OK
               : kprof_store_query(report, "SELECT ranges FROM nvtx ORDER BY launch_id LIMIT 1000", read_ranges, &list);
}

static kprof_status read_reason(void *user, sqlite3_stmt *row)
{
    kprof_strlist_add(user, kprof_store_column(row, 0));
    return KPROF_OK;
}

kprof_status kprof_report_reasons(kprof_report *report, kprof_strlist *out)
{
    return kprof_store_query(report,
                             "SELECT reason FROM launch WHERE measured=0 AND reason!='' GROUP BY reason ORDER BY "
                             "count(*) DESC, reason LIMIT 3",
                             read_reason, out);
}

/* The first number that a row has, and the last. */
static kprof_status read_range(void *user, sqlite3_stmt *row)
{
    int64_t *range = user;
    range[0] = sqlite3_column_int64(row, 0);
    range[1] = sqlite3_column_int64(row, 1);
    return KPROF_OK;
}

kprof_status kprof_report_launch_range(kprof_report *report, int64_t *first, int64_t *last)
{
    int64_t range[2] = {-1, -1};
    kprof_status status =
        kprof_store_query(report, "SELECT coalesce(min(id), -1), coalesce(max(id), -1) FROM launch", read_range, range);
    *first = range[0];
    *last = range[1];
    return status;
}

static kprof_status take_metric_name(void *user, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (name)
        kprof_strlist_add(user, name);
    return KPROF_OK;
}

kprof_status kprof_report_metric_names(kprof_report *report, kprof_strlist *out)
{
    return kprof_store_query(report, "SELECT name FROM metric", take_metric_name, out);
}

typedef struct seen_list {
    kprof_report *report;
    kprof_seen_kernel *items; /* [count] */
    size_t count;
} seen_list;

static kprof_status take_seen(void *user, sqlite3_stmt *row)
{
    seen_list *list = user;
    kprof_seen_kernel *added = KPROF_ADD(list->items, list->count);
    *added = (kprof_seen_kernel){kprof_store_text(list->report, row, 0), kprof_store_text(list->report, row, 1),
                                 kprof_store_text(list->report, row, 2), (uint64_t)sqlite3_column_int64(row, 3)};
    return KPROF_OK;
}

kprof_status kprof_report_seen(kprof_report *report, kprof_seen_kernel **kernels, size_t *count)
{
    static const char query[] =
        "SELECT function, demangled, mangled, CAST(total(launches) AS INTEGER) AS sum FROM kernel LEFT JOIN seen ON "
        "kernel_id=kernel.id GROUP BY mangled ORDER BY sum DESC, demangled";
    seen_list list = {.report = report};
    kprof_model model;
    kprof_status status = kprof_model_load(report, &model); /* which looks whether both tables come to an end */
    kprof_model_free(&model);
    KPROF_THEN(status, kprof_store_query(report, query, take_seen, &list));
    if (status != KPROF_OK) {
        kprof_seen_free(list.items, list.count);
        list = (seen_list){.count = 0};
    }
    *kernels = list.items;
    *count = list.count;
    return status;
}

void kprof_seen_free(kprof_seen_kernel *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        KPROF_FREE(kernels[i].function, kernels[i].demangled, kernels[i].mangled);
    free(kernels);
}
