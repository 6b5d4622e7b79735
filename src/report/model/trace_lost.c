/* Makes the temporary tables of lost time, in the order in which they need each other. It walks once through what ran
 * on each GPU, in the order of time. A thread asked for the work that ended a gap: the calls where this thread spent
 * time since the gap began tell why the GPU was idle. Differences of times have no sign and become numbers with a
 * point, since a report from anywhere may have any integers. */
#include "report/model/trace_tables.h"

#include "core/activities.h"
#include "report/model/trace_functions.h"
#include "report/model/trace_lost.sql.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 5 }; /* of intervals */
/* For so long after the call that asked for it work may not have reached the GPU, and waits for nothing else. */
#define ON_ITS_WAY_NS 10000.

enum { HOST_CODE, SYNCHRONIZATION, COPYING, LAUNCHING, ALLOCATION, OTHER_CALLS, QUEUED, NOT_KNOWN, CAUSES };
static const char *const cause_names[CAUSES] = {"host code",  "synchronization", "calls that copy", "launching",
                                                "allocation", "other calls",     "queued work",     "not known"};

static double between(int64_t from, int64_t to)
{
    return to > from ? (double)((uint64_t)to - (uint64_t)from) : 0;
}

/* How much time of intervals of several classes has passed at each of many points: the time of a class between two
 * points is a difference. Points and intervals are read once, in the order of time, and none is kept. */
typedef struct cumulation {
    const char *points;    /* SQL: two keys, time, number of the point, and more; in the order of keys and time */
    const char *intervals; /* SQL: two keys, start, end, class; likewise. A later one that begins in an earlier one
                              counts from where that ends */
    /* Take a point: its row, and the time of each class until then (ns). */
    void (*take)(void *user, sqlite3_stmt *point, const double sums[CLASSES]);
    void *user;
} cumulation;

typedef struct interval {
    int64_t keys[2], start, end;
    unsigned class;
    bool is_there;
} interval;

typedef struct walker {
    kprof_report *report;
    const cumulation *what;
    sqlite3_stmt *points, *intervals;
    interval next;        /* the first that does not end before the last point */
    int64_t keys[2];      /* that the sums are of */
    int64_t covered;      /* until then */
    double sums[CLASSES]; /* of intervals that have ended */
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
    w->next.class = (unsigned)sqlite3_column_int(w->intervals, 4) % CLASSES;
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

/* Two statements step through points and intervals beside each other. */
static void cumulate(kprof_report *report, const cumulation *what)
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
        double sums[CLASSES];
        for (unsigned i = 0; i < CLASSES; i++)
            sums[i] = w.sums[i] + (is_within && w.next.class == i ? part_before(&w, time) : 0);
        w.what->take(w.what->user, w.points, sums);
    }
    sqlite3_finalize(w.points);
    sqlite3_finalize(w.intervals);
}

/* Time of gaps by cause, of as many devices as have a place. */
typedef struct idle_time {
    kprof_report *report;
    sqlite3_stmt *insert;
    struct idle_device {
        int64_t device;
        double ns[CAUSES], longest_ns[CAUSES];
        int64_t gaps[CAUSES];
    } devices[64];
    size_t count;
} idle_time;

static void write_idle(idle_time *idle)
{
    for (size_t i = 0; i < idle->count * CAUSES; i++) {
        const struct idle_device *of = &idle->devices[i / CAUSES];
        const size_t cause = i % CAUSES;
        if (of->gaps[cause] == 0)
            continue;
        kprof_store_run(idle->report, idle->insert, "isdid", of->device, cause_names[cause], of->ns[cause],
                        of->gaps[cause], of->longest_ns[cause]);
    }
    idle->count = 0;
}

static void add_idle(idle_time *idle, int64_t device, size_t cause, double ns)
{
    size_t i = 0;
    if (!(ns > 0))
        return;
    while (i < idle->count && idle->devices[i].device != device)
        i++;
    if (i == COUNT_OF(idle->devices)) {
        write_idle(idle);
        i = 0;
    }
    struct idle_device *of = &idle->devices[i];
    if (i == idle->count) {
        *of = (struct idle_device){.device = device};
        idle->count++;
    }
    of->ns[cause] += ns;
    of->longest_ns[cause] = fmax(of->longest_ns[cause], ns);
    of->gaps[cause]++;
}

static void begin_idle(idle_time *idle, kprof_report *report)
{
    idle->report = report;
    idle->insert = kprof_store_compile(report, "INSERT INTO temp.gpu_idle_part VALUES(?,?,?,?,?)");
}

/* Time that something covers. */
typedef struct track {
    int64_t until;
    double ns;
} track;
enum { COVER, ANY_WORK, KERNELS, MEMORY, TRACKS }; /* COVER: work, and times in which kprof measured */

/* A walk through what ran on one device after the other. */
typedef struct walk {
    kprof_report *report;
    sqlite3_stmt *rows, *add_gap, *add_busy;
    idle_time idle;
    bool has_device;
    int64_t device, first_ns, last_ns;
    track tracks[TRACKS];
    int64_t kernel_count;
    kprof_spread latencies;
} walk;

enum { DEVICE, START, END, IS_KERNEL, PROCESS, THREAD, CALL, RETURN, IS_OWN }; /* columns of a row */

static int64_t number(const walk *w, int column)
{
    return sqlite3_column_int64(w->rows, column);
}

static bool is_known(const walk *w, int column)
{
    return sqlite3_column_type(w->rows, column) != SQLITE_NULL;
}

static void end_device(walk *w)
{
    const double covered = w->tracks[COVER].ns - w->tracks[ANY_WORK].ns;
    if (!w->has_device || w->first_ns > w->last_ns)
        return;
    kprof_store_run(w->report, w->add_busy, "iddddid", w->device, between(w->first_ns, w->last_ns) - covered,
                    w->tracks[ANY_WORK].ns, w->tracks[KERNELS].ns, w->tracks[MEMORY].ns, w->kernel_count,
                    kprof_spread_median(&w->latencies)); /* which is NULL for NaN */
}

/* A gap ends with the row at hand. What the host did in it is found out later. */
static void put_gap(walk *w, int64_t from, int64_t to)
{
    const bool is_own = number(w, IS_OWN), is_asked = is_known(w, CALL);
    const int64_t call = is_own ? to : number(w, CALL), asked = call < to ? call : to,
                  host = asked > from ? asked : from;
    const bool is_unknown = !is_own && !is_asked;
    if (is_unknown || host == from) {
        const int64_t returned = number(w, RETURN);
        const double gap = between(from, to), since = between(returned, from) - between(from, returned),
                     left = is_unknown ? 0 : fmax(0, ON_ITS_WAY_NS - since);
        add_idle(&w->idle, w->device, LAUNCHING, fmin(gap, left));
        add_idle(&w->idle, w->device, is_unknown ? NOT_KNOWN : QUEUED, fmax(0, gap - left));
        return;
    }
    kprof_store_run(w->report, w->add_gap, "iiiiii", w->device, from, to, number(w, PROCESS), number(w, THREAD), host);
}

static void cover(track *of, int64_t start, int64_t end)
{
    of->ns += between(start > of->until ? start : of->until, end);
    of->until = end > of->until ? end : of->until;
}

static void take_row(walk *w)
{
    const int64_t start = number(w, START), end = number(w, END), device = number(w, DEVICE);
    if (!w->has_device || device != w->device) {
        end_device(w);
        kprof_spread_free(&w->latencies);
        w->has_device = true;
        w->device = device;
        w->first_ns = INT64_MAX;
        w->last_ns = INT64_MIN;
        w->kernel_count = 0;
        for (int i = 0; i < TRACKS; i++)
            w->tracks[i] = (track){INT64_MIN, 0};
    }
    const int64_t before = w->tracks[COVER].until;
    if (before != INT64_MIN && start > before)
        put_gap(w, before, start);
    cover(&w->tracks[COVER], start, end);
    if (number(w, IS_OWN))
        return;
    const bool is_kernel = number(w, IS_KERNEL);
    cover(&w->tracks[ANY_WORK], start, end);
    cover(&w->tracks[is_kernel ? KERNELS : MEMORY], start, end);
    w->first_ns = start < w->first_ns ? start : w->first_ns;
    w->last_ns = end > w->last_ns ? end : w->last_ns;
    w->kernel_count += is_kernel;
    if (is_kernel && is_known(w, RETURN))
        kprof_spread_add(&w->latencies, between(number(w, RETURN), start) - between(start, number(w, RETURN)), 1);
}

/* Kernels that were asked for and have not begun, by the time at which they begin: a heap, the first on top. */
typedef struct queue {
    int64_t *begins; /* [count], owned */
    size_t count;
} queue;

static void push(queue *of, int64_t begin)
{
    KPROF_ADD(of->begins, of->count);
    size_t i = of->count - 1;
    for (; i > 0 && of->begins[(i - 1) / 2] > begin; i = (i - 1) / 2)
        of->begins[i] = of->begins[(i - 1) / 2];
    of->begins[i] = begin;
}

static void pop(queue *of)
{
    const int64_t last = of->begins[--of->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < of->count; i = child) {
        if (child + 1 < of->count && of->begins[child + 1] < of->begins[child])
            child++;
        if (of->begins[child] >= last)
            break;
        of->begins[i] = of->begins[child];
    }
    of->begins[i] = last;
}

typedef struct depths {
    kprof_report *report;
    sqlite3_stmt *asked, *update;
    queue queue;
    int64_t device, most;
    double sum, count;
} depths;

static void end_depths(depths *of)
{
    if (of->count == 0)
        return;
    kprof_store_run(of->report, of->update, "dii", of->sum / of->count, of->most, of->device);
    of->sum = of->count = 0;
    of->most = 0;
    of->queue.count = 0;
}

/* Make gpu_busy, and gpu_idle_part and trace_gap, of trace_work and trace_own. Memory grows with what is asked for at
 * one time, and with the number of different latencies. */
static void find_gaps(kprof_report *report)
{
    kprof_store_exec(report, TABLES);
    walk w = {.report = report, .rows = kprof_store_compile(report, ROWS)};
    begin_idle(&w.idle, report);
    w.add_gap = kprof_store_compile(report, "INSERT INTO temp.trace_gap VALUES(NULL,?,?,?,?,?,?)");
    w.add_busy = kprof_store_compile(report, "INSERT INTO temp.gpu_busy VALUES(?,?,?,?,?,?,?,NULL,NULL)");
    while (kprof_store_next(report, w.rows))
        take_row(&w);
    end_device(&w);
    write_idle(&w.idle);
    kprof_spread_free(&w.latencies);
    sqlite3_finalize(w.rows);
    sqlite3_finalize(w.add_gap);
    sqlite3_finalize(w.add_busy);
    sqlite3_finalize(w.idle.insert);
    depths of = {.report = report, .asked = kprof_store_compile(report, ASKED)};
    of.update = kprof_store_compile(report, "UPDATE temp.gpu_busy SET depth=?, most_depth=? WHERE device=?");
    while (kprof_store_next(report, of.asked)) {
        const int64_t device = sqlite3_column_int64(of.asked, 0), call = sqlite3_column_int64(of.asked, 1);
        if (device != of.device)
            end_depths(&of);
        of.device = device;
        while (of.queue.count > 0 && of.queue.begins[0] <= call)
            pop(&of.queue);
        push(&of.queue, sqlite3_column_int64(of.asked, 2));
        of.sum += (double)of.queue.count;
        of.count++;
        of.most = (int64_t)of.queue.count > of.most ? (int64_t)of.queue.count : of.most;
    }
    end_depths(&of);
    free(of.queue.begins);
    sqlite3_finalize(of.asked);
    sqlite3_finalize(of.update);
}

/* Gaps whose begin a thread has passed, and not yet the time at which it asked for what ended them. A thread has one of
 * each device at a time; of a hostile report those that have no place are left out. */
typedef struct open_gaps {
    idle_time idle;
    struct {
        int64_t gap;
        double sums[CLASSES];
    } items[64];
    size_t count;
} open_gaps;

enum { POINT = 3, GAP_DEVICE, GAP_START, GAP_HOST, GAP_END }; /* columns of a point */

static void explain_gap(open_gaps *open, sqlite3_stmt *point, const double *sums)
{
    const int64_t device = sqlite3_column_int64(point, GAP_DEVICE), host = sqlite3_column_int64(point, GAP_HOST);
    double ns[CAUSES] = {[HOST_CODE] = between(sqlite3_column_int64(point, GAP_START), host)};
    for (size_t i = 0; i < CLASSES; i++) {
        ns[SYNCHRONIZATION + i] = sums[i];
        ns[HOST_CODE] -= sums[i];
    }
    ns[LAUNCHING] += between(host, sqlite3_column_int64(point, GAP_END));
    for (size_t i = 0; i < CAUSES; i++)
        add_idle(&open->idle, device, i, ns[i]);
}

static void take_point(void *user, sqlite3_stmt *point, const double *sums)
{
    open_gaps *open = user;
    const int64_t number_of = sqlite3_column_int64(point, POINT), gap = number_of / 2;
    size_t i = 0;
    double since[CLASSES];
    while (i < open->count && open->items[i].gap != gap)
        i++;
    if (number_of % 2 == 0 && i < COUNT_OF(open->items)) {
        open->items[i].gap = gap;
        memcpy(open->items[i].sums, sums, sizeof open->items[i].sums);
        open->count += i == open->count;
    }
    if (number_of % 2 == 0 || i == open->count)
        return;
    for (size_t k = 0; k < CLASSES; k++)
        since[k] = sums[k] - open->items[i].sums[k];
    open->items[i] = open->items[--open->count];
    explain_gap(open, point, since);
}

/* Make gpu_idle, with the time of the gaps of trace_gap. */
static void explain_gaps(kprof_report *report)
{
    open_gaps open = {.count = 0};
    const cumulation what = {POINTS, CALLS, take_point, &open};
    kprof_store_exec(report, CALL_CLASSES);
    begin_idle(&open.idle, report);
    cumulate(report, &what);
    write_idle(&open.idle);
    sqlite3_finalize(open.idle.insert);
    kprof_store_exec(report, "CREATE TEMP TABLE gpu_idle AS SELECT device, cause, total(ns) AS ns, "
                             "CAST(total(gaps) AS INTEGER) AS gaps, max(longest_ns) AS longest_ns FROM "
                             "temp.gpu_idle_part GROUP BY device, cause");
}

typedef struct range_ends {
    kprof_report *report;
    sqlite3_stmt *insert;
} range_ends;

static void take_end(void *user, sqlite3_stmt *point, const double *sums)
{
    const range_ends *to = user;
    kprof_store_run(to->report, to->insert, "id", sqlite3_column_int64(point, 3), sums[0]);
}

/* point, c0: how long some GPU had worked for the process at each begin and end of a range; range_cover: or it is not
 * known whether. */
static void find_work_in_ranges(kprof_report *report)
{
    kprof_store_exec(report, "CREATE TEMP TABLE range_work(point INTEGER PRIMARY KEY, c0 REAL);"
                             "CREATE TEMP TABLE range_cover(point INTEGER PRIMARY KEY, c0 REAL)");
    range_ends to = {report, kprof_store_compile(report, "INSERT INTO temp.range_work VALUES(?,?)")};
    cumulate(report, &(cumulation){ENDS_OF_RANGES, ALL_WORK_BY_TIME, take_end, &to});
    sqlite3_finalize(to.insert);
    if (kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM main.trace_overhead " UNRECORDED ")") == 0) {
        kprof_store_exec(report, "INSERT INTO temp.range_cover SELECT point, c0 FROM temp.range_work");
        return;
    }
    to.insert = kprof_store_compile(report, "INSERT INTO temp.range_cover VALUES(?,?)");
    cumulate(report, &(cumulation){ENDS_OF_RANGES, WORK_AND_UNRECORDED, take_end, &to});
    sqlite3_finalize(to.insert);
}

void kprof_trace_find_lost(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "gpu_idle"))
        return;
    kprof_trace_add_functions(report);
    kprof_trace_find_calls(report);
    kprof_trace_find_gpus(report);
    kprof_store_exec(report, OWN);
    kprof_store_exec(report, TRACE_WORK);
    find_gaps(report);
    explain_gaps(report);
    find_work_in_ranges(report);
    kprof_store_exec(report, STEPS);
    kprof_store_exec(report, TRANSFERS);
    kprof_store_exec(report, ALLOCATIONS);
    kprof_trace_end_table(report);
}
