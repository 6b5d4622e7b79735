/* Finds what may not be drawn in its own row, since viewers of Chrome's JSON drop slices of a row that overlap: kernels
 * that begin before the one before them in their stream has ended (programmatic dependent launch), and NVTX ranges that
 * end behind the range of their thread in which they began. */
#include "report/model/trace_tables.h"

#include "report/model/trace_lanes.sql.h"
#include "report/store/store.h"

#include <string.h>

#define KEYS  4 /* process, device, context and stream */
#define LANES 32
#define DEPTH 512 /* ranges of a thread at a time */
#define RANGE 5   /* what a row of work_lane is of */
/* Rows of streams have lower numbers (report/page/chrome.c), and those of managed memory higher ones. */
#define FIRST_ROW INT64_C(1073741824)
#define MOST_ROWS INT64_C(1000000000)

typedef struct walk {
    kprof_report *report;
    sqlite3_stmt *work, *insert;        /* work: a row of it */
    int64_t keys[KEYS], ends_ns[LANES]; /* of the last slice of each lane */
    int64_t streams;                    /* so far */
    size_t lanes;                       /* of this stream */
} walk;

static int64_t number(const walk *w, int column)
{
    return sqlite3_column_int64(w->work, column);
}

static void begin_stream(walk *w)
{
    int64_t keys[KEYS];
    for (int i = 0; i < KEYS; i++)
        keys[i] = number(w, i);
    if (w->streams > 0 && memcmp(keys, w->keys, sizeof keys) == 0)
        return;
    memcpy(w->keys, keys, sizeof keys);
    w->streams++;
    w->lanes = 0;
}

static void take_work(walk *w)
{
    begin_stream(w);
    /* If more overlap than there are lanes, the last ones share one. */
    size_t lane = 0;
    while (lane < w->lanes && w->ends_ns[lane] > number(w, 6))
        lane++;
    lane = lane < LANES ? lane : LANES - 1;
    w->lanes = lane < w->lanes ? w->lanes : lane + 1;
    w->ends_ns[lane] = number(w, 7);
    if (lane == 0)
        return;
    kprof_store_run(w->report, w->insert, "iii", number(w, 4), number(w, 5),
                    FIRST_ROW + (w->streams * LANES + (int64_t)lane) % MOST_ROWS);
}

typedef struct nest {
    kprof_report *report;
    sqlite3_stmt *insert;
    int64_t keys[2], ends_ns[DEPTH]; /* of the ranges that lie in one another */
    size_t depth;
} nest;

/* A range that ends behind the one in which it begins lies beside it. */
static void take_range(nest *n, sqlite3_stmt *row)
{
    const int64_t keys[2] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)},
                  start_ns = sqlite3_column_int64(row, 3), end_ns = sqlite3_column_int64(row, 4);
    if (memcmp(keys, n->keys, sizeof keys) != 0)
        n->depth = 0;
    memcpy(n->keys, keys, sizeof keys);
    while (n->depth > 0 && n->ends_ns[n->depth - 1] <= start_ns)
        n->depth--;
    if (n->depth < DEPTH && (n->depth == 0 || end_ns <= n->ends_ns[n->depth - 1])) {
        n->ends_ns[n->depth++] = end_ns;
        return;
    }
    kprof_store_run(n->report, n->insert, "iiz", (int64_t)RANGE, sqlite3_column_int64(row, 2));
}

void kprof_trace_find_lanes(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "work_lane"))
        return;
    kprof_store_exec(report,
                     "CREATE TEMP TABLE work_lane(what INTEGER, id INTEGER, tid INTEGER, PRIMARY KEY(what, id)) "
                     "WITHOUT ROWID");
    walk w = {.report = report, .work = kprof_store_compile(report, WORK)};
    w.insert = kprof_store_compile(report, "INSERT INTO temp.work_lane VALUES(?,?,?)");
    while (kprof_store_next(report, w.work))
        take_work(&w);
    nest n = {.report = report, .insert = w.insert};
    sqlite3_stmt *rows = kprof_store_compile(report, RANGES);
    while (kprof_store_next(report, rows))
        take_range(&n, rows);
    sqlite3_finalize(rows);
    sqlite3_finalize(w.work);
    sqlite3_finalize(w.insert);
    kprof_trace_end_table(report);
}
