/* Two statements step through points and intervals beside each other. */
#include "report/model/trace_cumulate.h"

#include "report/store/store.h"

#include <string.h>

typedef struct interval {
    int64_t keys[2], start, end;
    unsigned class;
    bool is_there;
} interval;

typedef struct walker {
    kprof_report *report;
    const kprof_cumulation *what;
    sqlite3_stmt *points, *intervals;
    interval next;                       /* the first that does not end before the last point */
    int64_t keys[2];                     /* that the sums are of */
    int64_t covered;                     /* until then */
    double sums[KPROF_CUMULATE_CLASSES]; /* of intervals that have ended */
} walker;

static int compare_keys(const int64_t a[2], const int64_t b[2])
{
    return a[0] != b[0] ? KPROF_COMPARE(a[0], b[0]) : KPROF_COMPARE(a[1], b[1]);
}

static kprof_status read_interval(walker *w)
{
    const int rc = sqlite3_step(w->intervals);
    w->next.is_there = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? KPROF_OK : kprof_store_fail(w->report, "reading intervals of the trace");
    w->next.keys[0] = sqlite3_column_int64(w->intervals, 0);
    w->next.keys[1] = sqlite3_column_int64(w->intervals, 1);
    w->next.start = sqlite3_column_int64(w->intervals, 2);
    w->next.end = sqlite3_column_int64(w->intervals, 3);
    w->next.class = (unsigned)sqlite3_column_int(w->intervals, 4) % KPROF_CUMULATE_CLASSES;
    return KPROF_OK;
}

/* Time of the next interval before `time`; what earlier ones cover does not count. */
static double part_before(const walker *w, int64_t time)
{
    const int64_t from = w->next.start > w->covered ? w->next.start : w->covered,
                  to = w->next.end < time ? w->next.end : time;
    return to > from ? (double)((uint64_t)to - (uint64_t)from) : 0;
}

static kprof_status go_to(walker *w, const int64_t keys[2], int64_t time)
{
    kprof_status status = KPROF_OK;
    if (compare_keys(w->keys, keys) != 0) {
        memcpy(w->keys, keys, sizeof w->keys);
        memset(w->sums, 0, sizeof w->sums);
        w->covered = INT64_MIN;
    }
    while (status == KPROF_OK && w->next.is_there) {
        const int order = compare_keys(w->next.keys, keys);
        if (order > 0 || (order == 0 && w->next.end > time))
            break;
        if (order == 0) {
            w->sums[w->next.class] += part_before(w, w->next.end);
            w->covered = w->next.end > w->covered ? w->next.end : w->covered;
        }
        status = read_interval(w);
    }
    return status;
}

static kprof_status put_point(walker *w)
{
    const int64_t keys[2] = {sqlite3_column_int64(w->points, 0), sqlite3_column_int64(w->points, 1)},
                  time = sqlite3_column_int64(w->points, 2);
    kprof_status status = go_to(w, keys, time);
    if (status != KPROF_OK)
        return status;
    const bool is_within = w->next.is_there && compare_keys(w->next.keys, keys) == 0;
    double sums[KPROF_CUMULATE_CLASSES];
    for (unsigned i = 0; i < KPROF_CUMULATE_CLASSES; i++)
        sums[i] = w->sums[i] + (is_within && w->next.class == i ? part_before(w, time) : 0);
    return w->what->take(w->what->user, w->points, sums);
}

kprof_status kprof_trace_cumulate(kprof_report *report, const kprof_cumulation *what)
{
    walker w = {.report = report, .what = what, .covered = INT64_MIN};
    int rc = SQLITE_DONE;
    kprof_status status = kprof_store_compile(report, what->points, &w.points);
    KPROF_THEN(status, kprof_store_compile(report, what->intervals, &w.intervals));
    KPROF_THEN(status, read_interval(&w));
    while (status == KPROF_OK && (rc = sqlite3_step(w.points)) == SQLITE_ROW)
        status = put_point(&w);
    if (status == KPROF_OK && rc != SQLITE_DONE)
        status = kprof_store_fail(report, "reading points of the trace");
    sqlite3_finalize(w.points);
    sqlite3_finalize(w.intervals);
    return status;
}
