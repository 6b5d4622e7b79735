/* Reads the samples of a launch, and sums each metric up. */
#include "report/model/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 4000000 /* of a launch */
#define SERIES_MAX  1000
#define REASONS_MAX 4096 /* characters, about */
#define TIME_MAX_NS INT64_C(1000000000000000)

/* A launch with fewer than FEW_SAMPLES has those of up to MOST_LAUNCHES others laid over them, at most MOST_DISTANCE
 * launches away. */
#define FEW_SAMPLES   20
#define MOST_LAUNCHES 64
#define MOST_DISTANCE 256

typedef struct reader {
    kprof_report *report;
    const kprof_model *model;
    const kprof_model_chip *chip; /* NULL: the report has no plan for it */
    kprof_launch_timeline *out;
} reader;

/* The item of the first section that has the metric over time; *place: where it stands. NULL: none has. */
static const kprof_item *find_item(const reader *r, const char *name, size_t *place)
{
    *place = 0;
    for (size_t i = 0; r->chip && i < r->chip->section_count; i++) {
        const kprof_section *section = &r->chip->sections[i];
        const size_t at = KPROF_FIND(k, section->timeline_count, strcmp(section->timeline[k].name, name) == 0);
        *place += at;
        if (at < section->timeline_count)
            return &section->timeline[at];
    }
    *place = SIZE_MAX;
    return NULL;
}

static kprof_status begin_series(reader *r, int64_t metric)
{
    kprof_launch_timeline *out = r->out;
    if (metric < 1 || (uint64_t)metric > r->model->metric_count)
        return kprof_store_damaged(r->report, "timeline");
    if (out->series_count == SERIES_MAX)
        return kprof_store_too_much(r->report, SERIES_MAX, "metrics over time of a launch");
    kprof_timeline_series *series = KPROF_ADD(out->series, out->series_count);
    size_t place;
    const kprof_model_metric *row = &r->model->metrics[metric - 1];
    const kprof_item *item = find_item(r, row->name, &place);
    *series = (kprof_timeline_series){.metric = row, .first = out->sample_count, .place = place};
    series->label = item && item->label ? item->label : row->name;
    series->unit = item && item->unit ? item->unit : row->unit;
    series->help = item ? item->help : NULL;
    return KPROF_OK;
}

static bool is_shown(const kprof_model *model, int64_t metric)
{
    return !model->is_shown || metric < 1 || (uint64_t)metric > model->metric_count || model->is_shown[metric - 1];
}

static void take_sample(reader *r, sqlite3_stmt *row)
{
    kprof_launch_timeline *out = r->out;
    const int64_t metric = sqlite3_column_int64(row, 0);
    const kprof_time_sample sample = {sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                                      kprof_store_real(row, 3)};
    if (!is_shown(r->model, metric))
        return;
    if (sample.start_ns < 0 || sample.start_ns > TIME_MAX_NS || sample.duration_ns < 0 ||
        sample.duration_ns > TIME_MAX_NS)
        kprof_store_damaged(r->report, "timeline");
    else if (out->sample_count == SAMPLES_MAX)
        kprof_store_too_much(r->report, SAMPLES_MAX, "samples over time of a launch");
    else if (out->series_count == 0 ||
             out->series[out->series_count - 1].metric != &r->model->metrics[metric > 0 ? metric - 1 : 0])
        begin_series(r, metric);
    if (r->report->status != KPROF_OK)
        return;
    *KPROF_ADD(out->samples, out->sample_count) = sample;
    out->series[out->series_count - 1].count++;
    if (sample.start_ns + sample.duration_ns > out->end_ns)
        out->end_ns = sample.start_ns + sample.duration_ns;
}

static void sum_up(const kprof_launch_timeline *timeline, kprof_timeline_series *series)
{
    double sum = 0, time = 0;
    series->least = series->mean = series->most = NAN;
    for (size_t i = series->first; i < series->first + series->count; i++) {
        const kprof_time_sample *sample = &timeline->samples[i];
        if (isnan(sample->value))
            continue;
        sum += sample->value * (double)sample->duration_ns;
        time += (double)sample->duration_ns;
        series->least = fmin(series->least, sample->value);
        series->most = fmax(series->most, sample->value);
    }
    if (time > 0 && isfinite(sum))
        series->mean = sum / time;
}

KPROF_BY_BOTH(by_place, kprof_timeline_series, KPROF_COMPARE(a->place, b->place), KPROF_COMPARE(a->first, b->first))

#define SHAPE                                                                                                          \
    "kernel_id, device_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, "       \
    "dynamic_smem_bytes"
static const char alike[] =
    "SELECT l.id FROM launch own JOIN launch l USING(" SHAPE ") WHERE own.id=?1 AND l.id BETWEEN own.id-?2 AND "
    "own.id+?2 AND EXISTS (SELECT 1 FROM timeline_pass p WHERE p.launch_id=l.id AND p.interval_ns=?3 AND "
    "p.samples>0) ORDER BY abs(l.id-own.id) LIMIT ?4";
static const char of_launch[] =
    "SELECT metric_id, start_ns, duration_ns, value FROM timeline WHERE launch_id=? ORDER BY metric_id, start_ns";
/* Samples of several launches begin at about the same multiples of the interval. */
static const char before_ids[] = "SELECT metric_id, CAST(round(avg(start_ns)) AS INTEGER), "
                                 "CAST(round(avg(duration_ns)) AS INTEGER), avg(value) FROM "
                                 "timeline WHERE launch_id IN (";
static const char behind_ids[] = ") GROUP BY metric_id, (start_ns+?1/2)/?1 ORDER BY 1, 2";

/* `number`: what the SQL is about. */
static void read_samples(reader *r, const char *sql, int64_t number)
{
    kprof_launch_timeline *out = r->out;
    out->series_count = out->sample_count = 0;
    out->end_ns = 0;
    KPROF_EACH_ROW(rows, r->report, sql, "i", number)
        take_sample(r, rows.row);
}

/* Lay those of other launches of its kernel and shape over the samples of a short one. */
static void lay_over(reader *r, int64_t launch)
{
    kprof_launch_timeline *out = r->out;
    const int64_t interval_ns = out->interval_ns;
    uint64_t count = 0;
    KPROF_AUTO(kprof_strbuf) all = KPROF_STRBUF_INIT;
    if (out->series_count == 0 || interval_ns <= 0 || out->end_ns / FEW_SAMPLES >= interval_ns)
        return;
    kprof_strbuf_puts(&all, before_ids);
    KPROF_EACH_ROW(ids, r->report, alike, "iiii", launch, (int64_t)MOST_DISTANCE, interval_ns, (int64_t)MOST_LAUNCHES)
        kprof_strbuf_printf(&all, "%s%lld", count++ ? "," : "", sqlite3_column_int64(ids.row, 0));
    kprof_strbuf_puts(&all, behind_ids);
    if (count > 1) {
        out->laid_over = count;
        read_samples(r, all.data, interval_ns);
    }
}

void kprof_launch_timeline_read(kprof_report *report, const kprof_model *model, const kprof_model_launch *launch,
                                kprof_launch_timeline *out)
{
    const size_t chip = launch->device->chip_index;
    reader r = {report, model, chip == SIZE_MAX ? NULL : &model->chips[chip], out};
    *out = (kprof_launch_timeline){.laid_over = 1};
    if (report->version < 9) /* it has none of these tables */
        return;
    KPROF_EACH_ROW(passes, report, "SELECT interval_ns, reason FROM timeline_pass WHERE launch_id=? ORDER BY pass", "i",
                   launch->id) {
        char **own = &r.out->reason, *reason = kprof_store_text(r.report, passes.row, 1);
        if (r.out->passes++ == 0)
            r.out->interval_ns = sqlite3_column_int64(passes.row, 0);
        if (*reason && (!*own || (strlen(*own) < REASONS_MAX && !strstr(*own, reason)))) {
            char *both = kprof_strprintf("%s%s%s", *own ? *own : "", *own ? "; " : "", reason);
            free(*own);
            *own = both;
        }
        free(reason);
    }
    if (out->passes > 0)
        read_samples(&r, of_launch, launch->id);
    lay_over(&r, launch->id);
    for (size_t i = 0; i < out->series_count; i++)
        sum_up(out, &out->series[i]);
    if (out->series_count > 0)
        qsort(out->series, out->series_count, sizeof *out->series, by_place);
}

void kprof_launch_timeline_free(kprof_launch_timeline *timeline)
{
    KPROF_FREE(timeline->series, timeline->samples, timeline->reason);
    *timeline = (kprof_launch_timeline){0};
}

bool kprof_report_has_timelines(kprof_report *report)
{
    return report->version >= 9 && kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM timeline_pass)");
}

char kprof_timeline_shade(double share)
{
    static const char shades[] = " .:-=+*#%@";
    const size_t darkest = sizeof shades - 2;
    if (isnan(share))
        return '?';
    if (share <= 0)
        return shades[0];
    /* it may be above 1 where a sum was too large for a number */
    return shades[share >= 1 ? darkest : 1 + (size_t)floor(share * ((double)darkest - 1) + 0.5)];
}

void kprof_timeline_resample(const kprof_launch_timeline *timeline, const kprof_timeline_series *series, double *parts,
                             size_t count)
{
    size_t next = series->first;
    const size_t end = series->first + series->count;
    for (size_t i = 0; i < count; i++) {
        const double from = (double)timeline->end_ns * (double)i / (double)count;
        const double to = (double)timeline->end_ns * (double)(i + 1) / (double)count;
        double sum = 0, time = 0;
        /* Samples before this part are of no later one either. */
        while (next < end && (double)(timeline->samples[next].start_ns + timeline->samples[next].duration_ns) <= from)
            next++;
        for (size_t k = next; k < end && (double)timeline->samples[k].start_ns < to; k++) {
            const kprof_time_sample *s = &timeline->samples[k];
            const double shared = fmin(to, (double)(s->start_ns + s->duration_ns)) - fmax(from, (double)s->start_ns);
            if (isnan(s->value) || shared <= 0)
                continue;
            sum += s->value * shared;
            time += shared;
        }
        parts[i] = time > 0 ? sum / time : NAN;
    }
}
