/* Computes how a launch begins and ends, from how busy its SMs are over time, and how evenly it uses DRAM. */
#include "report/store/timeline_metrics.h"
#include "report/store/rows.h"

#include <math.h>
#include <string.h>

#define LEAST_SAMPLES 20  /* fewer tell no tenth of the time */
#define FULL          0.9 /* of the most: from then on the GPU is as busy as it gets */

#define SMS_BUSY "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
#define DRAM     "dram__throughput.avg.pct_of_peak_sustained_elapsed"

/* The samples of one metric. */
typedef struct series {
    const double *rows; /* of the record */
    size_t count, width, column;
    double total_ns, mean, most;
} series;

static double value_of(const series *s, size_t sample)
{
    const double value = s->rows[sample * s->width + s->column];
    return isnan(value) ? 0 : value;
}

static double duration_of(const series *s, size_t sample)
{
    return s->rows[sample * s->width + 1];
}

static series read_series(const kprof_timeline_record *record, size_t name)
{
    const size_t width = 2 + (size_t)record->name_count;
    series s = {.rows = record->values, .count = record->value_count / width, .width = width, .column = 2 + name};
    for (size_t i = 0; i < s.count; i++) {
        s.total_ns += duration_of(&s, i);
        s.mean += value_of(&s, i) * duration_of(&s, i);
        s.most = fmax(s.most, value_of(&s, i));
    }
    s.mean = s.total_ns > 0 ? s.mean / s.total_ns : 0;
    return s;
}

static kprof_status put(kprof_report *report, int64_t launch, const kprof_model_metric *metric, double value)
{
    int64_t row;
    kprof_status status = kprof_store_metric(report, metric, &row);
    return status == KPROF_OK ? kprof_store_write(report, KPROF_SQL_ADD_VALUE_ONCE, "iid", launch, row, value) : status;
}

#define METRIC(name, description)                                                                                      \
    (&(kprof_model_metric){(char *)("timeline__" name), (char *)"%", (char *)(description), (char *)"derived"})

/* How long the SMs take to be busy, and how long they are not any more. */
static kprof_status store_ends(kprof_report *report, int64_t launch, const series *s)
{
    size_t first = 0, end = s->count;
    double ramp_ns = 0, tail_ns = 0, lost_ns = 0;
    while (first < s->count && value_of(s, first) < FULL * s->most)
        ramp_ns += duration_of(s, first++);
    while (end > first && value_of(s, end - 1) < FULL * s->most) {
        tail_ns += duration_of(s, --end);
        lost_ns += (1 - value_of(s, end) / s->most) * duration_of(s, end);
    }
    kprof_status status =
        put(report, launch, METRIC("ramp_up_pct", "share of the time before the SMs are as busy as they get"),
            100 * ramp_ns / s->total_ns);
    if (status == KPROF_OK)
        status =
            put(report, launch, METRIC("tail_pct", "share of the time after the SMs were last as busy as they get"),
                100 * tail_ns / s->total_ns);
    if (status == KPROF_OK)
        status = put(report, launch, METRIC("tail_lost_pct", "share of the time that SMs are idle in this tail"),
                     100 * lost_ns / s->total_ns);
    return status;
}

static kprof_status store_dram(kprof_report *report, int64_t launch, const series *s)
{
    kprof_status status =
        put(report, launch, METRIC("dram_most_pct", "DRAM throughput in the busiest sample"), s->most);
    return status == KPROF_OK
               ? put(report, launch, METRIC("dram_mean_pct", "DRAM throughput over the samples"), s->mean)
               : status;
}

kprof_status kprof_timeline_metrics_store(kprof_report *report, int64_t launch, const kprof_timeline_record *record,
                                          size_t name)
{
    const bool is_busy = strcmp(record->names[name], SMS_BUSY) == 0;
    if (!is_busy && strcmp(record->names[name], DRAM) != 0)
        return KPROF_OK;
    const series s = read_series(record, name);
    if (s.count < LEAST_SAMPLES || !(s.total_ns > 0) || !(s.most > 0) || !isfinite(s.most))
        return KPROF_OK;
    return is_busy ? store_ends(report, launch, &s) : store_dram(report, launch, &s);
}
