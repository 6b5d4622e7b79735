/* SQL gives samples their units and labels, and leaves out those that overlap, so that each time has one value. */
#include "report/model/trace_samples.h"

#include "core/activities.h"
#include "report/model/trace_functions.h"
#include "report/model/trace_samples.sql.h"
#include "report/model/trace_tables.h"
#include "report/store/store.h"

#include <string.h>

#define MOST_LABEL 60 /* of a column */

void kprof_trace_find_samples(kprof_report *report)
{
    if (!kprof_trace_begin_table(report, "trace_sampled"))
        return;
    kprof_trace_add_functions(report);
    kprof_trace_find_gpus(report);
    kprof_store_exec(report, report->version < 10 ? NO_SAMPLES : SAMPLED_METRICS);
    if (report->version >= 10)
        kprof_store_exec(report, SAMPLES);
    kprof_store_exec(report, TIMES_LEFT_OUT);
    kprof_store_exec(report, STEPS);
    kprof_trace_end_table(report);
}

void kprof_trace_list_samples(kprof_report *report, kprof_strbuf *out)
{
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, METRICS_SHOWN);
    while (kprof_cursor_next(&rows)) {
        kprof_strbuf_printf(out, ", round(avg(CASE WHEN name_id=%lld THEN mean END), 3)",
                            (long long)sqlite3_column_int64(rows.row, 0));
        /* A column's name, of what no terminal and no SQL takes for something else. */
        const char *label = kprof_store_column(rows.row, 1);
        const char *unit = kprof_store_column(rows.row, 2);
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./-%";
        const size_t length = strspn(label, allowed), unit_length = strspn(unit, allowed);
        kprof_strbuf_printf(out, " AS \"%.*s", (int)(length < MOST_LABEL ? length : MOST_LABEL), label);
        if (unit_length > 0)
            kprof_strbuf_printf(out, " (%.*s)", (int)(unit_length < MOST_LABEL ? unit_length : MOST_LABEL), unit);
        kprof_strbuf_puts(out, "\"");
    }
}

bool kprof_trace_has_samples(kprof_report *report)
{
    return report->version >= 10 && kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM trace_sample)");
}
