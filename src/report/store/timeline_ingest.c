/* Stores samples over time: a row for each pass of a launch, and one for each value. */
#include "report/store/timeline_ingest.h"
#include "report/store/rows.h"
#include "report/store/timeline_metrics.h"

#include <math.h>

#define MOST_TIME_NS 1e15 /* eleven days */
#define MOST_PASSES  1024

static bool is_time(double ns)
{
    return ns >= 0 && ns <= MOST_TIME_NS && ns == floor(ns);
}

/* Rows are in the order of their time, and each begins at another one. */
static kprof_status check_record(const kprof_timeline_record *record)
{
    const size_t width = 2 + (size_t)record->name_count;
    if (record->value_count % width != 0 || (record->value_count > 0 && record->name_count == 0) ||
        record->pass >= MOST_PASSES || record->interval_ns > (uint64_t)MOST_TIME_NS)
        return kprof_store_bad_record("it has a wrong number of samples over time,", record->launch);
    for (size_t i = 0; i < record->value_count; i += width) {
        const double *row = record->values + i;
        if (!is_time(row[0]) || !is_time(row[1]) || (i > 0 && row[0] <= row[-(ptrdiff_t)width]))
            return kprof_store_bad_record("it has impossible times of samples; launch", record->launch);
    }
    return KPROF_OK;
}

/* The activity, which each pass has, is kept of the first one. */
static void store_metric_samples(kprof_report *report, int64_t launch, const kprof_timeline_record *record, size_t name)
{
    const char *text = record->names[name];
    const kprof_model_metric metric = {text, "", "", KPROF_TIMELINE_KIND};
    const size_t width = 2 + (size_t)record->name_count;
    const int64_t metric_row = kprof_store_metric(report, &metric);
    sqlite3_stmt *insert = kprof_store_statement(report, KPROF_SQL_ADD_SAMPLE);
    for (size_t i = 0; i < record->value_count; i += width) {
        const double *row = record->values + i;
        sqlite3_bind_int64(insert, 1, launch);
        sqlite3_bind_int64(insert, 2, metric_row);
        sqlite3_bind_int64(insert, 3, (int64_t)row[0]);
        sqlite3_bind_int64(insert, 4, (int64_t)row[1]);
        sqlite3_bind_double(insert, 5, row[2 + name]); /* SQLite stores NaN as NULL */
        kprof_store_step(report, insert);
    }
}

kprof_status kprof_timeline_ingest(kprof_report *report, int64_t process, const kprof_timeline_record *record)
{
    const size_t width = 2 + (size_t)record->name_count;
    const kprof_status status = check_record(record);
    if (status != KPROF_OK)
        return status;
    const int64_t launch = kprof_store_find_launch(report, process, record->launch);
    if (launch < 0 && report->status == KPROF_OK)
        return kprof_store_bad_record("it tells of samples over time of an unknown launch,", record->launch);
    kprof_store_write(report, KPROF_SQL_ADD_TIMELINE_PASS, "iiiis", launch, (int64_t)record->pass,
                      (int64_t)record->interval_ns, (int64_t)(record->value_count / width),
                      record->reason ? record->reason : "");
    for (size_t i = record->pass > 0; i < record->name_count; i++)
        store_metric_samples(report, launch, record, i);
    for (size_t i = 0; i < record->name_count; i++)
        kprof_timeline_metrics_store(report, launch, record, i);
    kprof_timeline_phases_store(report, launch, record);
    return report->status;
}
