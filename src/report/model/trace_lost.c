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

/* Time that something covers. */
typedef struct track {
    int64_t until;
    double ns;
} track;

static void cover(track *of, int64_t start, int64_t end)
{
    of->ns += between(start > of->until ? start : of->until, end);
    of->until = end > of->until ? end : of->until;
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
    sqlite3_stmt *intervals;
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
    return between(w->next.start > w->covered ? w->next.start : w->covered, w->next.end < time ? w->next.end : time);
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
    walker w = {.report = report, .covered = INT64_MIN, .intervals = kprof_store_compile(report, what->intervals)};
    sqlite3_stmt *points = kprof_store_compile(report, what->points);
    read_interval(&w);
    while (kprof_store_next(report, points)) {
        const int64_t keys[2] = {sqlite3_column_int64(points, 0), sqlite3_column_int64(points, 1)},
                      time = sqlite3_column_int64(points, 2);
        double sums[CLASSES];
        advance_to(&w, keys, time);
        memcpy(sums, w.sums, sizeof sums);
        if (w.next.is_there && compare_keys(w.next.keys, keys) == 0)
            sums[w.next.class] += part_before(&w, time);
        what->take(what->user, points, sums);
    }
    sqlite3_finalize(points);
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
        if (of->gaps[cause] > 0)
            kprof_store_run(idle->report, idle->insert, "isdid", of->device, cause_names[cause], of->ns[cause],
                            of->gaps[cause], of->longest_ns[cause]);
    }
    idle->count = 0;
}

static void add_idle(idle_time *idle, int64_t device, size_t cause, double ns)
{
    if (!(ns > 0))
        return;
    size_t i = KPROF_FIND(k, idle->count, idle->devices[k].device == device);
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

/* A walk through what ran on one device after the other, and the times in which kprof measured. */
typedef struct walk {
    kprof_report *report;
    sqlite3_stmt *rows, *add_gap, *add_busy;
    idle_time *idle;
    struct device_time {
        int64_t id, kernel_count;
        bool has_work;
        double gaps_ns;
        track any, work, kernels, memory; /* any: work, or kprof measured */
        kprof_spread latencies;
    } device;
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
    struct device_time *of = &w->device;
    if (of->has_work)
        kprof_store_run(w->report, w->add_busy, "iddddid", of->id, of->gaps_ns + of->work.ns, of->work.ns,
                        of->kernels.ns, of->memory.ns, of->kernel_count,
                        kprof_spread_median(&of->latencies)); /* which is NULL for NaN */
    kprof_spread_free(&of->latencies);
}

/* A gap ends with the row at hand. What the host did in it is found out later. */
static void put_gap(walk *w, int64_t from, int64_t to)
{
    const int64_t call = number(w, CALL), asked = call < to ? call : to, returned = number(w, RETURN);
    const bool is_asked = is_known(w, CALL);
    const double gap = between(from, to), since = between(returned, from) - between(from, returned),
                 left = is_asked ? fmax(0, ON_ITS_WAY_NS - since) : 0;
    w->device.gaps_ns += gap;
    if (is_asked && asked > from) {
        kprof_store_run(w->report, w->add_gap, "iiiiii", w->device.id, from, to, number(w, PROCESS), number(w, THREAD),
                        asked);
        return;
    }
    add_idle(w->idle, w->device.id, LAUNCHING, fmin(gap, left));
    add_idle(w->idle, w->device.id, is_asked ? QUEUED : NOT_KNOWN, gap - left);
}

static void take_row(walk *w)
{
    const int64_t start = number(w, START), end = number(w, END), device = number(w, DEVICE);
    struct device_time *of = &w->device;
    if (device != of->id || of->any.until == INT64_MIN) {
        const track none = {INT64_MIN, 0};
        end_device(w);
        *of = (struct device_time){.id = device, .any = {start, 0}, .work = none, .kernels = none, .memory = none};
    }
    if (start > of->any.until)
        put_gap(w, of->any.until, start);
    cover(&of->any, start, end);
    if (number(w, IS_OWN))
        return;
    const bool is_kernel = number(w, IS_KERNEL);
    of->has_work = true;
    of->kernel_count += is_kernel;
    cover(&of->work, start, end);
    cover(is_kernel ? &of->kernels : &of->memory, start, end);
    if (number(w, IS_KERNEL) == 1 && is_known(w, RETURN))
        kprof_spread_add(&of->latencies, between(number(w, RETURN), start) - between(start, number(w, RETURN)), 1);
}

/* Make gpu_busy and trace_gap of trace_work and trace_own. Memory grows with the number of different latencies. */
static void find_gaps(kprof_report *report, idle_time *idle)
{
    walk w = {.report = report, .idle = idle, .rows = kprof_store_compile(report, ROWS), .device.any.until = INT64_MIN};
    w.add_gap = kprof_store_compile(report, "INSERT INTO temp.trace_gap VALUES(NULL,?,?,?,?,?,?)");
    w.add_busy = kprof_store_compile(report, "INSERT INTO temp.gpu_busy VALUES(?,?,?,?,?,?,?,NULL,NULL)");
    while (kprof_store_next(report, w.rows))
        take_row(&w);
    end_device(&w);
    sqlite3_finalize(w.rows);
    sqlite3_finalize(w.add_gap);
    sqlite3_finalize(w.add_busy);
}

/* How many kernels of a device wait, whenever another one is asked for. */
static void find_depths(kprof_report *report)
{
    sqlite3_stmt *steps = kprof_store_compile(report, QUEUES), *update = kprof_store_compile(report, SET_DEPTH);
    int64_t device = 0, depth = 0, most = 0, calls = 0;
    double sum = 0;
    for (bool has_step = true; has_step;) {
        has_step = kprof_store_next(report, steps);
        const int64_t step = sqlite3_column_int64(steps, 2);
        if (!has_step || sqlite3_column_int64(steps, 0) != device) {
            if (calls > 0)
                kprof_store_run(report, update, "idi", device, sum / (double)calls, most);
            device = sqlite3_column_int64(steps, 0);
            depth = most = calls = 0;
            sum = 0;
        }
        depth += step;
        most = depth > most ? depth : most;
        calls += step > 0;
        sum += step > 0 ? (double)depth : 0;
    }
    sqlite3_finalize(steps);
    sqlite3_finalize(update);
}

/* Gaps whose begin a thread has passed, and not yet the time at which it asked for what ended them. A thread has one of
 * each device at a time; of a hostile report those that have no place are left out. */
typedef struct open_gaps {
    idle_time *idle;
    struct {
        int64_t gap;
        double sums[CLASSES];
    } items[64];
    size_t count;
} open_gaps;

enum { POINT = 3, GAP_DEVICE, GAP_START, GAP_HOST, GAP_END }; /* columns of a point */

static void explain_gap(idle_time *idle, sqlite3_stmt *point, const double *calls)
{
    const int64_t device = sqlite3_column_int64(point, GAP_DEVICE), host = sqlite3_column_int64(point, GAP_HOST);
    double ns[CAUSES] = {[HOST_CODE] = between(sqlite3_column_int64(point, GAP_START), host)};
    for (size_t i = 0; i < CLASSES; i++) {
        ns[SYNCHRONIZATION + i] = calls[i];
        ns[HOST_CODE] -= calls[i];
    }
    ns[LAUNCHING] += between(host, sqlite3_column_int64(point, GAP_END));
    for (size_t i = 0; i < CAUSES; i++)
        add_idle(idle, device, i, ns[i]);
}

static void take_point(void *user, sqlite3_stmt *point, const double *sums)
{
    open_gaps *open = user;
    const int64_t number_of = sqlite3_column_int64(point, POINT), gap = number_of / 2;
    const size_t i = KPROF_FIND(k, open->count, open->items[k].gap == gap);
    if (number_of % 2 == 0 && i < COUNT_OF(open->items)) {
        open->items[i].gap = gap;
        memcpy(open->items[i].sums, sums, sizeof open->items[i].sums);
        open->count += i == open->count;
    }
    if (number_of % 2 == 0 || i == open->count)
        return;
    double since[CLASSES];
    for (size_t k = 0; k < CLASSES; k++)
        since[k] = sums[k] - open->items[i].sums[k];
    open->items[i] = open->items[--open->count];
    explain_gap(open->idle, point, since);
}

static void find_idle_time(kprof_report *report)
{
    idle_time idle = {.report = report};
    open_gaps open = {.idle = &idle};
    kprof_store_exec(report, TABLES);
    idle.insert = kprof_store_compile(report, "INSERT INTO temp.gpu_idle_part VALUES(?,?,?,?,?)");
    find_gaps(report, &idle);
    cumulate(report, &(cumulation){POINTS, CALLS, take_point, &open});
    write_idle(&idle);
    sqlite3_finalize(idle.insert);
    kprof_store_exec(report, GPU_IDLE);
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

static void cumulate_to_ends(kprof_report *report, const char *insert, const char *intervals)
{
    range_ends to = {report, kprof_store_compile(report, insert)};
    cumulate(report, &(cumulation){ENDS_OF_RANGES, intervals, take_end, &to});
    sqlite3_finalize(to.insert);
}

/* point, c0: how long some GPU had worked for the process at each begin and end of a range; range_cover: or it is not
 * known whether. */
static void find_work_in_ranges(kprof_report *report)
{
    kprof_store_exec(report, "CREATE TEMP TABLE range_work(point INTEGER PRIMARY KEY, c0 REAL)");
    cumulate_to_ends(report, "INSERT INTO temp.range_work VALUES(?,?)", ALL_WORK_BY_TIME);
    if (kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM main.trace_overhead " UNRECORDED ")") == 0) {
        kprof_store_exec(report, "CREATE TEMP VIEW range_cover AS SELECT * FROM temp.range_work");
        return;
    }
    kprof_store_exec(report, "CREATE TEMP TABLE range_cover(point INTEGER PRIMARY KEY, c0 REAL)");
    cumulate_to_ends(report, "INSERT INTO temp.range_cover VALUES(?,?)", WORK_AND_UNRECORDED);
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
    kprof_store_exec(report, CALL_CLASSES);
    find_idle_time(report);
    find_depths(report);
    find_work_in_ranges(report);
    kprof_store_exec(report, STEPS);
    kprof_store_exec(report, TRANSFERS);
    kprof_trace_find_memory(report);
    kprof_store_exec(report, ALLOCATIONS);
    kprof_trace_end_table(report);
}
