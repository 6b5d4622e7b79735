/* Stores samples over time: a row for each pass of a launch, and one for each value. Computes how a launch begins and
 * ends, from how busy its SMs are over time, how evenly it uses DRAM, and the phases in which different units are the
 * busiest. */
#include "report/store/timeline_ingest.h"
#include "metricset/finding.h"
#include "report/store/phases.h"
#include "report/store/rows.h"

#include <math.h>
#include <string.h>

#define MOST_TIME_NS 1e15 /* eleven days */
#define MOST_PASSES  1024

#define FULL 0.9 /* of the most: from then on the GPU is as busy as it gets */

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

static void put(kprof_report *report, int64_t launch, size_t number, double value)
{
    const kprof_made_number *made = &kprof_timeline_numbers[number];
    const int64_t row =
        kprof_store_metric(report, &(kprof_model_metric){made->name, made->unit, made->description, "derived"});
    kprof_store_write(report, KPROF_SQL_ADD_VALUE_ONCE, "iid", launch, row, value);
}

/* How long the SMs take to be busy, and how long they are not any more. */
static void store_ends(kprof_report *report, int64_t launch, const series *s)
{
    size_t first = 0, end = s->count;
    double ramp_ns = 0, tail_ns = 0, lost_ns = 0;
    while (first < s->count && value_of(s, first) < FULL * s->most)
        ramp_ns += duration_of(s, first++);
    while (end > first && value_of(s, end - 1) < FULL * s->most) {
        tail_ns += duration_of(s, --end);
        lost_ns += (1 - value_of(s, end) / s->most) * duration_of(s, end);
    }
    put(report, launch, KPROF_TIMELINE_RAMP_UP, 100 * ramp_ns / s->total_ns);
    put(report, launch, KPROF_TIMELINE_TAIL, 100 * tail_ns / s->total_ns);
    put(report, launch, KPROF_TIMELINE_TAIL_LOST, 100 * lost_ns / s->total_ns);
}

static void store_dram(kprof_report *report, int64_t launch, const series *s)
{
    put(report, launch, KPROF_TIMELINE_DRAM_MOST, s->most);
    put(report, launch, KPROF_TIMELINE_DRAM_MEAN, s->mean);
}

static void store_phase(kprof_report *report, int64_t launch, const kprof_phase *phase, size_t i)
{
    const size_t first =
        KPROF_TIMELINE_PHASE_END + i * (KPROF_TIMELINE_NUMBERS - KPROF_TIMELINE_PHASE_END) / KPROF_PHASES_MOST;
    put(report, launch, first, 100.0 * (double)phase->end / KPROF_PHASE_PARTS);
    put(report, launch, first + 1, phase->unit);
    put(report, launch, first + 2, phase->pct);
}

/* Store the phases of the launch, where the record has two units or more. The first pass that does counts. */
static void store_phases(kprof_report *report, int64_t launch, const kprof_timeline_record *record)
{
    kprof_phase_input input = {{{0}}};
    kprof_phase phases[KPROF_PHASES_MOST];
    bool has_unit[KPROF_PHASE_UNITS] = {false};
    size_t units = 0;
    for (size_t name = 0; name < record->name_count; name++) {
        double scale;
        const kprof_phase_unit unit = kprof_phase_unit_of(record->names[name], &scale);
        const series s = read_series(record, name);
        if (unit == KPROF_PHASE_NONE || has_unit[unit] || s.count < KPROF_TIMELINE_LEAST_SAMPLES || !(s.total_ns > 0) ||
            !isfinite(s.most))
            continue;
        has_unit[unit] = true;
        units++;
        /* Spread what a unit did in its samples over equal parts of the launch's time. */
        const double first_ns = s.rows[0], part_ns = s.total_ns / KPROF_PHASE_PARTS;
        for (size_t i = 0; i < s.count; i++) {
            const double start = (s.rows[i * s.width] - first_ns) / part_ns, end = start + duration_of(&s, i) / part_ns;
            for (double part = floor(fmax(start, 0)); part < end && part < KPROF_PHASE_PARTS; part++)
                input.pct[unit][(size_t)part] +=
                    scale * value_of(&s, i) * fmax(0, fmin(end, part + 1) - fmax(start, part));
        }
    }
    if (units < 2)
        return;
    const size_t count = kprof_phases_find(&input, phases);
    put(report, launch, KPROF_TIMELINE_PHASES, (double)count);
    for (size_t i = 0; i < count; i++)
        store_phase(report, launch, &phases[i], i);
}

/* Store the values that are computed from a metric of the record; none of most metrics, or of few samples. */
static void store_numbers(kprof_report *report, int64_t launch, const kprof_timeline_record *record, size_t name)
{
    const bool is_busy = strcmp(record->names[name], SMS_BUSY) == 0;
    if (!is_busy && strcmp(record->names[name], DRAM) != 0)
        return;
    const series s = read_series(record, name);
    if (s.count < KPROF_TIMELINE_LEAST_SAMPLES || !(s.total_ns > 0) || !(s.most > 0) || !isfinite(s.most))
        return;
    (is_busy ? store_ends : store_dram)(report, launch, &s);
}

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
    const kprof_model_metric metric = {record->names[name], "", "", KPROF_TIMELINE_KIND};
    const size_t width = 2 + (size_t)record->name_count;
    const int64_t metric_row = kprof_store_metric(report, &metric);
    sqlite3_stmt *insert = kprof_store_statement(report, KPROF_SQL_ADD_SAMPLE);
    for (size_t i = 0; i < record->value_count; i += width) {
        const double *row = record->values + i;
        kprof_store_run(report, insert, "iiiid", launch, metric_row, (int64_t)row[0], (int64_t)row[1],
                        row[2 + name]); /* SQLite stores NaN as NULL */
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
        store_numbers(report, launch, record, i);
    store_phases(report, launch, record);
    return report->status;
}
