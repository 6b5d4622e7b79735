/* Reads the ranges and calls of each thread in the order of time, with a list of the ranges that are open. */
#include "report/model/trace_tables.h"

#include "report/model/trace_project.sql.h"
#include "report/store/store.h"

#include <string.h>

#define MOST_OPEN 512 /* ranges of a thread at a time: as many as kprof records */

enum { EVENT_BEGIN, EVENT_END, EVENT_CALL }; /* in this order at one time: a range that ends has no more calls */

typedef struct open_range {
    int64_t id, start_ns, end_ns, ops;
    bool is_left_open; /* it has no end, and goes on */
} open_range;

typedef struct projection {
    kprof_report *report;
    sqlite3_stmt *add_kernel, *add_span; /* of which one is NULL */
    int64_t keys[2];                     /* process and thread */
    open_range open[MOST_OPEN];
    size_t open_count;
} projection;

static void insert(projection *p, sqlite3_stmt *statement, const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, i + 1, numbers[i]);
    kprof_store_step(p->report, statement);
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
    const int64_t numbers[] = {id, ended.start_ns, ended.end_ns, ended.ops};
    if (ended.ops > 0 && p->add_span)
        insert(p, p->add_span, numbers, 4);
}

/* The thread does nothing more. */
static void end_thread(projection *p)
{
    for (size_t i = 0; i < p->open_count; i++) {
        const open_range *range = &p->open[i];
        const int64_t numbers[] = {range->id, range->start_ns, range->end_ns, range->ops};
        if (range->is_left_open && range->ops > 0 && p->add_span)
            insert(p, p->add_span, numbers, 4);
    }
    p->open_count = 0;
}

static void take_event(projection *p, sqlite3_stmt *event)
{
    const int64_t keys[2] = {sqlite3_column_int64(event, 0), sqlite3_column_int64(event, 1)},
                  id = sqlite3_column_int64(event, 4);
    const int what = sqlite3_column_int(event, 3);
    if (memcmp(keys, p->keys, sizeof keys) != 0)
        end_thread(p);
    memcpy(p->keys, keys, sizeof keys);
    if (what == EVENT_CALL) {
        /* A call is in all ranges that are open. */
        const int64_t start_ns = sqlite3_column_int64(event, 5);
        const int64_t end_ns = sqlite3_column_int64(event, 6);
        for (size_t i = 0; i < p->open_count; i++) {
            open_range *range = &p->open[i];
            const int64_t numbers[] = {range->id, id};
            range->start_ns = range->ops == 0 || start_ns < range->start_ns ? start_ns : range->start_ns;
            range->end_ns = range->ops == 0 || end_ns > range->end_ns ? end_ns : range->end_ns;
            range->ops++;
            if (id && p->add_kernel)
                insert(p, p->add_kernel, numbers, 2);
        }
    } else if (what == EVENT_END)
        end_range(p, id);
    else if (p->open_count < MOST_OPEN)
        p->open[p->open_count++] = (open_range){.id = id, .is_left_open = sqlite3_column_int(event, 5)};
}

/* Make a table of columns, to which `of_kernels` a kernel adds a row for each range, which are many; else each range
 * adds one. */
static void project(kprof_report *report, const char *table, const char *columns, bool of_kernels)
{
    projection p = {.report = report};
    if (!kprof_trace_begin_table(report, table))
        return;
    kprof_trace_find_calls(report);
    kprof_store_exec(report, columns);
    if (of_kernels)
        p.add_kernel = kprof_store_compile(report, "INSERT INTO temp.range_kernel VALUES(?,?)");
    else
        p.add_span = kprof_store_compile(report, "INSERT INTO temp.range_span VALUES(?,?,?,?)");
    sqlite3_stmt *rows = kprof_store_compile(report, EVENTS);
    while (kprof_store_next(report, rows))
        take_event(&p, rows);
    end_thread(&p);
    sqlite3_finalize(rows);
    sqlite3_finalize(p.add_kernel);
    sqlite3_finalize(p.add_span);
    kprof_trace_end_table(report);
}

void kprof_trace_find_range_kernels(kprof_report *report)
{
    project(report, "range_kernel", RANGE_KERNEL, true);
}

void kprof_trace_project_ranges(kprof_report *report)
{
    project(report, "range_span", RANGE_SPAN, false);
}
