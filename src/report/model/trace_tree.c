/* Finds what range each NVTX range of a thread lies in: of those that begin no later and end no earlier the shortest
 * one, as ranges may overlap. */
#include "report/model/trace_tables.h"

#include "report/model/trace_tree.sql.h"
#include "report/store/store.h"

#include <string.h>

#define MOST_OPEN 512 /* ranges of a thread at a time: as many as kprof records */

typedef struct open_range {
    int64_t id, start_ns, end_ns, level;
} open_range;

typedef struct walk {
    sqlite3_stmt *ranges, *insert; /* ranges: a row of them */
    int64_t keys[2];               /* process and thread */
    open_range open[MOST_OPEN];
    size_t open_count;
} walk;

static int64_t number(const walk *w, int column)
{
    return sqlite3_column_int64(w->ranges, column);
}

/* NULL: it lies in none. Differences have no sign, since a report from anywhere may have any integers. */
static const open_range *find_parent(const walk *w, int64_t end_ns)
{
    const open_range *found = NULL;
    for (const open_range *range = w->open; range < w->open + w->open_count; range++) {
        const uint64_t ns = (uint64_t)range->end_ns - (uint64_t)range->start_ns;
        if (range->end_ns >= end_ns && (!found || ns <= (uint64_t)found->end_ns - (uint64_t)found->start_ns))
            found = range;
    }
    return found;
}

static void nest(kprof_report *report, const char *ranges, const char *insert)
{
    walk w = {.ranges = kprof_store_compile(report, ranges), .insert = kprof_store_compile(report, insert)};
    while (kprof_store_next(report, w.ranges)) {
        const int64_t keys[2] = {number(&w, 0), number(&w, 1)}, id = number(&w, 2), start_ns = number(&w, 3),
                      end_ns = number(&w, 4);
        if (memcmp(keys, w.keys, sizeof keys) != 0)
            w.open_count = 0;
        memcpy(w.keys, keys, sizeof keys);
        /* Forget what has ended before this range begins. */
        size_t kept = 0;
        for (size_t i = 0; i < w.open_count; i++)
            if (w.open[i].end_ns >= start_ns)
                w.open[kept++] = w.open[i];
        w.open_count = kept;
        const open_range *parent = find_parent(&w, end_ns);
        const int64_t level = parent ? parent->level + 1 : 0;
        if (parent)
            kprof_store_run(report, w.insert, "iii", id, parent->id, level);
        else
            kprof_store_run(report, w.insert, "izi", id, level);
        if (w.open_count < MOST_OPEN)
            w.open[w.open_count++] = (open_range){id, start_ns, end_ns, level};
    }
    sqlite3_finalize(w.ranges);
    sqlite3_finalize(w.insert);
}

void kprof_trace_nest_ranges(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "range_tree"))
        return;
    kprof_store_exec(report, TABLES);
    nest(report, ALL_RANGES, "INSERT INTO temp.range_tree VALUES(?,?,?)");
    nest(report, PUSHED_RANGES, "INSERT INTO temp.push_tree VALUES(?,?,?)");
    kprof_store_exec(report, "CREATE INDEX temp.range_child ON range_tree(parent);"
                             "CREATE INDEX temp.push_child ON push_tree(parent)");
    kprof_trace_end_table(report);
}
