/* Tables that sum up a trace, by the names and with the columns that Nsight Systems gives them, and tables of kprof's
 * own about what is lost. SQL makes them from the tables of the report. */
#pragma once

#include "report/report.h"

#include <sqlite3.h>

/* The temporary tables that a table needs. */
typedef enum kprof_trace_need {
    KPROF_NEEDS_NOTHING,
    KPROF_NEEDS_LOST,       /* kprof_trace_find_lost makes them */
    KPROF_NEEDS_PROJECTION, /* kprof_trace_sum_range_kernels, with the column of their names */
    KPROF_NEEDS_NESTING,    /* kprof_trace_nest_ranges */
    KPROF_NEEDS_SPANS,      /* both of them */
    KPROF_NEEDS_SAMPLES,    /* kprof_trace_find_samples */
    KPROF_NEEDS_MANAGED,    /* nothing, but records of managed memory */
    KPROF_NEEDS_CALLS,      /* kprof_trace_find_calls */
    KPROF_NEEDS_CALLERS,    /* kprof_trace_find_callers, with rows */
    KPROF_NEEDS_COUNTERS    /* kprof_trace_find_shapes, and trace_counted, which the caller has made
                               (report/page/page_stats.c) */
} kprof_trace_need;

typedef struct kprof_trace_stats {
    const char *name, *title;
    const char *sql;      /* "@kernel" stands for a column of trace_name */
    const char *why_none; /* why kprof has no such table; NULL: it has */
    kprof_trace_need need;
    const char *old_name; /* that nsys had for it until 2022; NULL: none */
} kprof_trace_stats;

/* When a trace begins, from which its tables count times: SQL that gives Unix ns. */
#define KPROF_TRACE_START                                                                                              \
    "SELECT min(t) FROM (SELECT min(start_unix_ns) AS t FROM trace UNION ALL SELECT min(start_ns) FROM "               \
    "main.trace_range UNION ALL SELECT min(start_ns) FROM main.trace_call)"

extern const kprof_trace_stats kprof_trace_stats_tables[];
extern const size_t kprof_trace_stats_count;

/* How kernels are named: `base` is "function", "demangled" or "mangled"; with `in_ranges` behind the innermost NVTX
 * range that their call is in, and a slash. */
typedef struct kprof_trace_names {
    const char *base;
    bool in_ranges;
    int64_t most_rows; /* that the table has; 0: all */
} kprof_trace_names;

/* The table of a name; NULL, with a message that suggests the nearest, where there is none. `name` may end with ":base"
 * or ":mangled", without which the base is NULL, ":nvtx-name" and ":rows=NUMBER". */
const kprof_trace_stats *kprof_trace_stats_find(const char *name, kprof_trace_names *kernels);

/* Open a table, whose rows *out gives; the caller finalizes that. `names` has a base. NOT_COLLECTED when the trace has
 * nothing of what the table is about. */
kprof_status kprof_trace_stats_open(kprof_report *report, const kprof_trace_stats *stats,
                                    const kprof_trace_names *names, sqlite3_stmt **out) KPROF_MUST_CHECK;

typedef enum kprof_trace_place { KPROF_TRACE_TABLES, KPROF_TRACE_EXPORT, KPROF_TRACE_PAGE } kprof_trace_place;
/* Add to *out what a trace lacks, and with it this place: activities that were lost, or all of them, times and names of
 * some, processes that were cut short. */
void kprof_trace_list_missing(kprof_report *report, kprof_trace_place place, kprof_strlist *out);
/* Warn of it. */
kprof_status kprof_trace_tell_missing(kprof_report *report, kprof_trace_place place) KPROF_MUST_CHECK;
/* Has the report a trace? */
bool kprof_trace_is_there(kprof_report *report);
/* Does the report tell how managed memory moved? */
bool kprof_trace_has_managed(kprof_report *report);
/* Does the report tell where the program made its calls? */
bool kprof_trace_has_callers(kprof_report *report);
/* NOT_COLLECTED, with a message, when it has none; BAD_REPORT when the file is damaged. */
kprof_status kprof_trace_check(kprof_report *report) KPROF_MUST_CHECK;
