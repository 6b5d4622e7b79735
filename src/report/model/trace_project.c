/* Reads the ranges and calls of each thread in the order of time, with a list of the ranges that are open. */
#include "report/model/trace_tables.h"

#include "report/model/trace_functions.h"
#include "report/model/trace_project.sql.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN 512 /* ranges of a thread at a time: as many as kprof records */

enum { EVENT_BEGIN, EVENT_END, EVENT_CALL };      /* in this order at one time: a range that ends has no more calls */
enum { PROCESS, THREAD, WHAT = 3, ID };           /* columns of an event */
enum { IS_OPEN = 5, NAME, DOMAIN, STYLE, LEVEL }; /* of a range */
enum { WORK_START = 5, WORK_END, KERNEL_NAME };   /* of a call */
enum { KEYS = 3 };                                /* of a range: name, domain and style; 0: no domain */

typedef struct open_range {
    int64_t id, start_ns, end_ns, ops, level, keys[KEYS];
    size_t first_kernel; /* of this range, among those of its thread */
    bool is_left_open;   /* it has no end, and goes on */
} open_range;

/* The kernels from `first` to the one before `end` are in a range with these keys. */
typedef struct part {
    int64_t keys[KEYS];
    size_t first, end;
} part;

/* A kernel's name, and what is known of its kernels in ranges with the same keys. */
typedef struct kernel_name {
    int64_t id;
    kprof_spread times;
    int64_t ranges;
    size_t behind_last; /* the number of the kernel behind the last one; 0: there is none */
} kernel_name;

typedef struct projection {
    kprof_report *report;
    sqlite3_stmt *add; /* a row of the table that is made */
    int64_t keys[2];   /* process and thread */
    open_range open[MOST_OPEN];
    size_t open_count;
    void (*take_kernel)(struct projection *, sqlite3_stmt *call); /* NULL: of no interest */
    void (*take_range)(struct projection *, const open_range *);  /* that has ended, with calls; NULL as well */
    /* to sum up kernels */
    kernel_name *names; /* [name_count], owned, by id */
    size_t name_count;
    struct kernel {
        size_t name;
        double ns;
    } * kernels; /* [kernel_count] of the thread, owned */
    size_t kernel_count;
    part *parts; /* [part_count], owned */
    size_t part_count;
} projection;

static void take_span(projection *p, const open_range *range)
{
    kprof_store_run(p->report, p->add, "iiii", range->id, range->start_ns, range->end_ns, range->ops);
}

/* The deepest range that is open is the innermost one. */
static void take_innermost(projection *p, sqlite3_stmt *call)
{
    const open_range *found = NULL;
    for (const open_range *range = p->open; range < p->open + p->open_count; range++)
        found = !found || range->level >= found->level ? range : found;
    if (found)
        kprof_store_run(p->report, p->add, "ii", sqlite3_column_int64(call, ID), found->id);
}

KPROF_BY_NUMBER(compare_names, kernel_name, id)

static void keep_kernel(projection *p, sqlite3_stmt *call)
{
    const int64_t start_ns = sqlite3_column_int64(call, WORK_START), end_ns = sqlite3_column_int64(call, WORK_END);
    const kernel_name key = {.id = sqlite3_column_int64(call, KERNEL_NAME)},
                      *name = p->open_count == 0 || p->name_count == 0
                                  ? NULL
                                  : bsearch(&key, p->names, p->name_count, sizeof key, compare_names);
    if (name)
        *KPROF_ADD(p->kernels, p->kernel_count) =
            (struct kernel){(size_t)(name - p->names), (double)((uint64_t)end_ns - (uint64_t)start_ns)};
}

static void take_part(projection *p, const open_range *range)
{
    part own = {.first = range->first_kernel, .end = p->kernel_count};
    memcpy(own.keys, range->keys, sizeof own.keys);
    if (own.first < own.end)
        *KPROF_ADD(p->parts, p->part_count) = own;
}

static int compare_parts(const void *a, const void *b)
{
    const part *x = a, *y = b;
    for (size_t i = 0; i < KEYS; i++)
        if (x->keys[i] != y->keys[i])
            return KPROF_COMPARE(x->keys[i], y->keys[i]);
    return KPROF_COMPARE(x->first, y->first);
}

/* Add the row of a name of kernels in ranges with these keys, and forget its kernels. */
static void add_figures(projection *p, const int64_t *keys, kernel_name *name)
{
    const kprof_spread *times = &name->times;
    const double median = kprof_spread_median(&name->times), count = (double)times->count;
    const double total = KPROF_SUM(i, times->distinct, times->items[i].value * (double)times->items[i].count);
    double squares = 0;
    for (size_t i = 0; i < times->distinct; i++) {
        const double away = times->items[i].value - total / count;
        squares += away * away * (double)times->items[i].count;
    }
    kprof_store_run(p->report, p->add, "iiiiiiiidddddd", p->keys[0], p->keys[1], keys[0], keys[1], keys[2], name->id,
                    name->ranges, (int64_t)times->count, total, total / count, median, times->items[0].value,
                    times->items[times->distinct - 1].value, count > 1 ? sqrt(squares / (count - 1)) : 0.0);
    kprof_spread_free(&name->times);
    name->ranges = 0;
    name->behind_last = 0;
}

/* Parts with the same keys, by their first kernels: a kernel counts once for each part that it is in. */
static void sum_up_parts(projection *p, const part *parts, size_t count)
{
    const part *around[MOST_OPEN]; /* the kernel at hand, by their first kernels */
    size_t around_count = 0, next = 0;
    for (size_t at = parts->first;; at++) {
        size_t kept = 0;
        for (size_t i = 0; i < around_count; i++)
            if (around[i]->end > at)
                around[kept++] = around[i];
        if (kept == 0 && next == count)
            break;
        at = kept == 0 ? parts[next].first : at;
        while (next < count && parts[next].first == at)
            around[kept++] = &parts[next++];
        around_count = kept;
        kernel_name *name = &p->names[p->kernels[at].name];
        for (size_t i = around_count; i > 0 && around[i - 1]->first >= name->behind_last; i--)
            name->ranges++;
        name->behind_last = at + 1;
        kprof_spread_add(&name->times, p->kernels[at].ns, around_count);
    }
    for (size_t i = 0; i < p->name_count; i++)
        if (p->names[i].times.count > 0)
            add_figures(p, parts->keys, &p->names[i]);
}

static void sum_up_thread(projection *p)
{
    size_t count = 0;
    if (p->part_count > 0)
        qsort(p->parts, p->part_count, sizeof *p->parts, compare_parts);
    for (const part *first = p->parts, *end = first + p->part_count; first < end; first += count) {
        for (count = 1; first + count < end && memcmp(first[count].keys, first->keys, sizeof first->keys) == 0; count++)
            continue;
        sum_up_parts(p, first, count);
    }
    p->part_count = p->kernel_count = 0;
}

static void end_range(projection *p, int64_t id)
{
    size_t i = p->open_count;
    while (i > 0 && p->open[i - 1].id != id)
        i--;
    if (i == 0)
        return;
    const open_range ended = p->open[i - 1];
    memmove(&p->open[i - 1], &p->open[i], (p->open_count-- - i) * sizeof *p->open);
    if (ended.ops > 0 && p->take_range)
        p->take_range(p, &ended);
}

/* The thread does nothing more. */
static void end_thread(projection *p)
{
    for (size_t i = 0; i < p->open_count; i++)
        if (p->open[i].is_left_open && p->open[i].ops > 0 && p->take_range)
            p->take_range(p, &p->open[i]);
    p->open_count = 0;
    sum_up_thread(p);
}

static void begin_range(projection *p, sqlite3_stmt *event)
{
    open_range range = {.id = sqlite3_column_int64(event, ID),
                        .level = sqlite3_column_int64(event, LEVEL),
                        .first_kernel = p->kernel_count,
                        .is_left_open = sqlite3_column_int(event, IS_OPEN)};
    for (int i = 0; i < KEYS; i++)
        range.keys[i] = sqlite3_column_int64(event, NAME + i);
    if (p->open_count < MOST_OPEN)
        p->open[p->open_count++] = range;
}

static void take_event(projection *p, sqlite3_stmt *event)
{
    const int64_t keys[2] = {sqlite3_column_int64(event, PROCESS), sqlite3_column_int64(event, THREAD)};
    const int what = sqlite3_column_int(event, WHAT);
    if (memcmp(keys, p->keys, sizeof keys) != 0)
        end_thread(p);
    memcpy(p->keys, keys, sizeof keys);
    if (what == EVENT_BEGIN)
        begin_range(p, event);
    if (what == EVENT_END)
        end_range(p, sqlite3_column_int64(event, ID));
    if (what != EVENT_CALL)
        return;
    /* A call is in all ranges that are open. */
    const int64_t start_ns = sqlite3_column_int64(event, WORK_START), end_ns = sqlite3_column_int64(event, WORK_END);
    for (open_range *range = p->open; range < p->open + p->open_count; range++) {
        range->start_ns = range->ops == 0 || start_ns < range->start_ns ? start_ns : range->start_ns;
        range->end_ns = range->ops == 0 || end_ns > range->end_ns ? end_ns : range->end_ns;
        range->ops++;
    }
    if (sqlite3_column_int64(event, ID) && p->take_kernel)
        p->take_kernel(p, event);
}

/* A table that events make: SQL that makes it, that adds a row, and that gives the events. */
typedef struct made_table {
    const char *name, *columns, *add, *events;
} made_table;

static void project(projection *p, const made_table *table)
{
    kprof_report *report = p->report;
    if (!kprof_trace_begin_table(report, table->name))
        return;
    kprof_trace_find_calls(report);
    kprof_store_exec(report, table->columns);
    p->add = kprof_store_compile(report, table->add);
    sqlite3_stmt *rows = kprof_store_compile(report, table->events);
    while (kprof_store_next(report, rows))
        take_event(p, rows);
    end_thread(p);
    sqlite3_finalize(rows);
    sqlite3_finalize(p->add);
    kprof_trace_end_table(report);
}

/* Read the names that kernels have by this column of temp.name_key. */
static void read_names(projection *p, const char *column)
{
    KPROF_AUTO_FREE char *sql = kprof_strprintf(
        "SELECT DISTINCT %s FROM temp.name_key WHERE id IN (SELECT name_id FROM trace_kernel) ORDER BY 1", column);
    KPROF_EACH_ROW(rows, p->report, sql)
        *KPROF_ADD(p->names, p->name_count) = (kernel_name){.id = sqlite3_column_int64(rows.row, 0)};
}

void kprof_trace_sum_range_kernels(kprof_report *report, const char *name)
{
    projection p = {.report = report, .take_kernel = keep_kernel, .take_range = take_part};
    KPROF_AUTO_FREE char *table = kprof_strprintf("range_kernel_%s", name),
                         *columns = kprof_strprintf(RANGE_KERNEL, name), *add = kprof_strprintf(ADD_RANGE_KERNEL, name),
                         *events = kprof_strprintf(EVENTS("0", NAME_OF_KERNEL), name);
    kprof_trace_find_names(report);
    read_names(&p, name);
    project(&p, &(made_table){table, columns, add, events});
    KPROF_FREE(p.names, p.kernels, p.parts);
}

void kprof_trace_find_innermost_ranges(kprof_report *report)
{
    projection p = {.report = report, .take_kernel = take_innermost};
    kprof_trace_nest_ranges(report);
    project(&p, &(made_table){"kernel_range", KERNEL_RANGE, "INSERT INTO temp.kernel_range VALUES(?,?)",
                              EVENTS(LEVEL_OF_RANGE, "0")});
}

void kprof_trace_project_ranges(kprof_report *report)
{
    projection p = {.report = report, .take_range = take_span};
    project(&p,
            &(made_table){"range_span", RANGE_SPAN, "INSERT INTO temp.range_span VALUES(?,?,?,?)", EVENTS("0", "0")});
}
