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

static void read_interval(walker *w)
{
    w->next.is_there = kprof_store_next(w->report, w->intervals);
    w->next.keys[0] = sqlite3_column_int64(w->intervals, 0);
    w->next.keys[1] = sqlite3_column_int64(w->intervals, 1);
    w->next.start = sqlite3_column_int64(w->intervals, 2);
    w->next.end = sqlite3_column_int64(w->intervals, 3);
    w->next.class = (unsigned)sqlite3_column_int(w->intervals, 4) % KPROF_CUMULATE_CLASSES;
}

/* Time of the next interval before `time`; what earlier ones cover does not count. */
static double part_before(const walker *w, int64_t time)
{
    const int64_t from = w->next.start > w->covered ? w->next.start : w->covered,
                  to = w->next.end < time ? w->next.end : time;
    return to > from ? (double)((uint64_t)to - (uint64_t)from) : 0;
}

static void advance_to(walker *w, const int64_t keys[2], int64_t time)
{
    if (compare_keys(w->keys, keys) != 0) {
        memcpy(w->keys, keys, sizeof w->keys);
        memset(w->sums, 0, sizeof w->sums);
        w->covered = INT64_MIN;
    }
    while (w->next.is_there) {
        const int order = compare_keys(w->next.keys, keys);
        if (order > 0 || (order == 0 && w->next.end > time))
            break;
        if (order == 0) {
            w->sums[w->next.class] += part_before(w, w->next.end);
            w->covered = w->next.end > w->covered ? w->next.end : w->covered;
        }
        read_interval(w);
    }
}

void kprof_trace_cumulate(kprof_report *report, const kprof_cumulation *what)
{
    walker w = {.report = report, .what = what, .covered = INT64_MIN};
    w.points = kprof_store_compile(report, what->points);
    w.intervals = kprof_store_compile(report, what->intervals);
    read_interval(&w);
    while (kprof_store_next(report, w.points)) {
        const int64_t keys[2] = {sqlite3_column_int64(w.points, 0), sqlite3_column_int64(w.points, 1)},
                      time = sqlite3_column_int64(w.points, 2);
        advance_to(&w, keys, time);
        const bool is_within = w.next.is_there && compare_keys(w.next.keys, keys) == 0;
        double sums[KPROF_CUMULATE_CLASSES];
        for (unsigned i = 0; i < KPROF_CUMULATE_CLASSES; i++)
            sums[i] = w.sums[i] + (is_within && w.next.class == i ? part_before(&w, time) : 0);
        w.what->take(w.what->user, w.points, sums);
    }
    sqlite3_finalize(w.points);
    sqlite3_finalize(w.intervals);
}
