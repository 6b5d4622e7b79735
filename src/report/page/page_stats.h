/* The tables of a trace as a page. */
#pragma once

#include "report/page/page.h"

typedef struct kprof_stats_content {
    const kprof_strlist *tables;        /* names that kprof_trace_stats_find knows */
    bool are_asked_for;                 /* else the usual ones, as far as the report has anything for them */
    const kprof_finding_list *findings; /* that the limits of kernels follow from; NULL: none */
    bool has_titles;                    /* a table has one even where it is alone */
    int time_unit;                      /* 0: ns, 1: us, 2: ms, 3: s */
} kprof_stats_content;

/* Its content is a kprof_stats_content. */
extern const kprof_page_row kprof_stats_page;

/* Show where the time goes, and when what ran; nothing where the report has no trace. */
kprof_status kprof_page_show_trace(kprof_emitter *emitter, const kprof_page_context *context) KPROF_MUST_CHECK;

/* Append the names of the tables that were asked for, or those of the usual ones where none was. UNKNOWN_NAME, with a
 * message, where there is no such table. */
kprof_status kprof_stats_choose(const kprof_strlist *asked, kprof_strlist *out) KPROF_MUST_CHECK;
/* Leave out those of several tables that the report has nothing for, with a warning for each if they were asked for.
 * NOT_COLLECTED where it has nothing for any, or no trace. */
kprof_status kprof_stats_leave_out(kprof_report *report, bool are_asked_for, kprof_strlist *tables) KPROF_MUST_CHECK;
/* Tells which parts a report has that few traces have. */
typedef struct kprof_stats_records {
    bool managed, samples, callers, counters;
} kprof_stats_records;
/* Will a run record what these tables need? USAGE, with a message, where a table needs an option of kprof trace that is
 * not given; NOT_COLLECTED where kprof records nothing for it. */
kprof_status kprof_stats_check(const kprof_strlist *asked, const kprof_stats_records *records) KPROF_MUST_CHECK;
