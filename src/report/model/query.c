/* Answers the command line's questions about a report: how many launches, and which kernels. */
#include "report/model/model.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"

#include <stdlib.h>

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

static uint64_t total(kprof_report *report, const char *sql)
{
    const int64_t number = kprof_store_integer(report, sql);
    return number > 0 ? (uint64_t)number : 0;
}

static void count_activities(kprof_report *report, kprof_report_counts *out)
{
    if (report->version < 9) /* it has no table trace */
        return;
    out->has_samples = kprof_trace_has_samples(report);
    out->has_trace = kprof_trace_is_there(report);
    out->activities = total(report, "SELECT CAST(total(activities) AS INTEGER) FROM trace");
    out->dropped = total(report, "SELECT CAST(total(dropped) AS INTEGER) FROM trace");
    out->unknown = total(report, "SELECT CAST(total(unknown) AS INTEGER) FROM trace");
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

kprof_status kprof_report_count(kprof_report *report, kprof_report_counts *out)
{
    KPROF_AUTO(kprof_model) model = {0};
    *out = (kprof_report_counts){0};
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    status = kprof_model_launches(&(kprof_model_walk){report, &model, NULL, false}, count_launch, out);
    if (out->samples > 0)
        out->incomplete = (uint64_t)kprof_store_integer(
            report, "SELECT count(*) FROM launch JOIN device ON device.id=device_id WHERE replay_mode='multiplex' AND "
                    "measured>0 AND passes<(SELECT count(*) FROM pass WHERE pass.chip=device.chip)");
    if (report->version >= 7) /* else it has none of these tables */
        out->has_instructions =
            kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM code_profile WHERE counted+sampled>0)");
    /* The recorder says so in messages (kprof_process_warn_unmeasured). */
    out->has_untold = kprof_store_integer(
        report, "SELECT EXISTS(SELECT 1 FROM message WHERE level='warning' AND status='NOT_COLLECTED')");
    if (out->samples == 0 && !out->has_instructions) { /* launches that are parts of none */
        out->profiled -= out->multiplexed;
        out->not_measured += out->multiplexed;
        out->multiplexed = 0;
    }
    const uint64_t stored = out->profiled + out->not_measured,
                   seen = KPROF_SUM(i, model.kernel_count, model.kernels[i].launches);
    /* Those of one name count as one. */
    out->kernels = (size_t)kprof_store_integer(report, "SELECT count(DISTINCT mangled) FROM kernel");
    count_census(&model, out);
    /* Else kernels tell more, of a killed process; they count ranges, too. */
    const kprof_model_process *processes = model.processes;
    out->processes = model.process_count;
    out->cut_short = kprof_model_tell_cut_short(&model, NULL);
    const bool have_all_told = KPROF_ALL(i, model.process_count, processes[i].launches >= 0);
    const uint64_t told =
        KPROF_SUM(i, model.process_count, processes[i].launches > 0 ? (uint64_t)processes[i].launches : 0);
    if (out->launches == 0) /* no census has counted them */
        out->launches = seen > told && (!have_all_told || told == 0) ? seen : told;
    if (out->launches < stored) /* a killed process may have counted fewer than it stored */
        out->launches = stored;
    count_activities(report, out);
    return KPROF_THEN(status, report->status);
}

kprof_status kprof_report_tell_cut_short(kprof_report *report, const char *name)
{
    KPROF_AUTO(kprof_model) model = {0};
    const kprof_status status = kprof_report_is_unfinished(report->path) ? KPROF_OK : kprof_model_load(report, &model);
    kprof_model_tell_cut_short(&model, name ? name : report->path);
    return status;
}

kprof_status kprof_report_command_line(kprof_report *report, char **out)
{
    KPROF_AUTO(kprof_model) model = {0};
    const kprof_status status = kprof_model_load(report, &model);
    *out = status == KPROF_OK ? kprof_strdup(model.command_line) : NULL;
    return status;
}

kprof_status kprof_report_status(const kprof_report *report)
{
    return report->status;
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
    KPROF_AUTO(kprof_model) model = {0};
    *out = 0;
    kprof_status status = kprof_model_load(report, &model);
    return KPROF_THEN(status, kprof_model_launches(&(kprof_model_walk){report, &model, filter, false}, visit, out));
}

kprof_status kprof_report_count_taken(kprof_report *report, const kprof_filter_spec *filter, uint64_t *out)
{
    return visit_taken(report, filter, count_one, out);
}

kprof_status kprof_report_count_multiplexed(kprof_report *report, const kprof_filter_spec *filter, uint64_t *out)
{
    return visit_taken(report, filter, count_if_multiplexed, out);
}

kprof_status kprof_report_nvtx(kprof_report *report, size_t most, kprof_strlist *out)
{
    if (report->version < 6)
        return KPROF_OK;
    static const char query[] = "SELECT ranges FROM nvtx ORDER BY launch_id LIMIT 1000";
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, query, "");
    while (out->count < most && kprof_cursor_next(&rows))
        kprof_strlist_take_unique(out, kprof_store_text(report, rows.row, 0));
    return report->status;
}

kprof_status kprof_report_reasons(kprof_report *report, kprof_strlist *out)
{
    static const char query[] = "SELECT reason FROM launch WHERE measured=0 AND reason!='' GROUP BY reason ORDER BY "
                                "count(*) DESC, reason LIMIT 3";
    KPROF_EACH_ROW(rows, report, query)
        kprof_strlist_add(out, kprof_store_column(rows.row, 0));
    return report->status;
}

kprof_status kprof_report_launch_range(kprof_report *report, int64_t *first, int64_t *last)
{
    *first = kprof_store_integer(report, "SELECT coalesce(min(id), -1) FROM launch");
    *last = kprof_store_integer(report, "SELECT coalesce(max(id), -1) FROM launch");
    return report->status;
}

kprof_status kprof_report_metric_names(kprof_report *report, kprof_strlist *out)
{
    KPROF_EACH_ROW(rows, report, "SELECT name FROM metric")
        kprof_strlist_add(out, kprof_store_column(rows.row, 0));
    return report->status;
}

kprof_status kprof_report_seen(kprof_report *report, kprof_seen_kernel **kernels, size_t *count)
{
    static const char query[] = "SELECT function, demangled, mangled, CAST(total(launches) AS INTEGER) AS sum, "
                                "max_threads_per_block>0 FROM kernel LEFT JOIN seen ON kernel_id=kernel.id GROUP BY "
                                "mangled ORDER BY sum DESC, demangled";
    KPROF_AUTO(kprof_model) model = {0};
    *kernels = NULL;
    *count = 0;
    const kprof_status status = kprof_model_load(report, &model); /* which looks whether both tables come to an end */
    KPROF_EACH_ROW(rows, report, query)
        *KPROF_ADD(*kernels, *count) =
            (kprof_seen_kernel){kprof_store_text(report, rows.row, 0), kprof_store_text(report, rows.row, 1),
                                kprof_store_text(report, rows.row, 2), (uint64_t)sqlite3_column_int64(rows.row, 3),
                                sqlite3_column_int(rows.row, 4) != 0};
    return status == KPROF_OK ? report->status : status;
}

void kprof_seen_free(kprof_seen_kernel *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        KPROF_FREE(kernels[i].function, kernels[i].demangled, kernels[i].mangled);
    free(kernels);
}
