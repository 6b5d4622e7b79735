/* Limits the tables of a trace to a part of its time: views of its activities take the names of their tables, which all
 * SQL about a trace reads from then on. */
#include "report/model/trace_tables.h"

#include "core/log.h"
#include "report/model/trace_stats.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "1.5s" as nanoseconds; "" leaves *ns. False for another text. */
static bool read_time(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    const double number = strtod(text, &end);
    if (end == text || !(number >= 0 && number < 1e18))
        return *text == '\0';
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (strcmp(units[i].unit, end) == 0 && number * units[i].ns < 1e18) {
            *ns = llround(number * units[i].ns);
            return true;
        }
    return false;
}

/* "START/END", from the beginning of the trace; either may be missing. */
static kprof_status read_window(const char *text, kprof_trace_window *out)
{
    const char *slash = strchr(text, '/');
    KPROF_AUTO_FREE char *start = kprof_strndup(text, slash ? (size_t)(slash - text) : 0);
    if (!slash || !read_time(start, &out->start_ns) || !read_time(slash + 1, &out->end_ns))
        return kprof_fail(KPROF_USAGE,
                          "--filter-time %s: write START/END, such as 10ms/1.5s; without a unit these are nanoseconds",
                          text);
    if (out->end_ns < out->start_ns)
        return kprof_fail(KPROF_USAGE, "--filter-time %s: it ends before it begins", text);
    return KPROF_OK;
}

enum { WITH_NUMBER, WITH_DOMAIN, NAME_ALONE, READINGS }; /* of a text: less and less of it is no name */

static void look_for_range(kprof_report *report, const char *text, int reading, kprof_trace_window *out)
{
    const char *slash = reading == WITH_NUMBER ? strrchr(text, '/') : NULL;
    const bool has_number = slash && slash[1] && strspn(slash + 1, "0123456789") == strlen(slash + 1);
    KPROF_AUTO_FREE char *name = kprof_strndup(text, has_number ? (size_t)(slash - text) : strlen(text));
    char *domain = reading == NAME_ALONE ? NULL : strrchr(name, '@');
    if (domain)
        *domain++ = '\0';
    static const char *const columns[] = {"start_ns", "end_ns"};
    int64_t *const places[] = {&out->start_ns, &out->end_ns};
    for (size_t i = 0; i < 2; i++) {
        KPROF_AUTO_FREE char *sql = kprof_strprintf(
            "SELECT %s FROM trace_range JOIN trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN "
            "trace_name g ON g.id=domain_id WHERE n.text=?1 AND (?2='*' OR coalesce(g.text, '')=?2) AND "
            "s.text!='Marker' AND end_ns>=start_ns ORDER BY start_ns LIMIT 1 OFFSET %s",
            columns[i], has_number ? slash + 1 : "0");
        *places[i] = kprof_store_ask(report, sql, "ss", name, domain);
    }
}

/* "RANGE[@DOMAIN][/NUMBER]", the first one has number 0; or the name of a range that has such marks itself. */
static kprof_status find_range(kprof_report *report, const char *text, kprof_trace_window *out)
{
    out->end_ns = 0;
    for (int reading = 0; reading < READINGS && report->status == KPROF_OK && out->end_ns == 0; reading++)
        look_for_range(report, text, reading, out);
    if (report->status == KPROF_OK && out->end_ns == 0)
        return kprof_fail(KPROF_NO_MATCH,
                          "--filter-nvtx %s: the trace has no such range that has ended; kprof stats "
                          "--report nvtx_sum lists names, as DOMAIN:NAME",
                          text);
    return report->status;
}

static void make_views(kprof_report *report, const kprof_trace_window *window)
{
    static const char *const kinds[] = {"kernel",   "copy",  "set",    "call",   "range",
                                        "overhead", "graph", "sample", "managed"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        KPROF_AUTO_FREE char *table = kprof_strprintf("trace_%s", kinds[i]);
        KPROF_AUTO_FREE char *sql = kprof_strprintf("CREATE TEMP VIEW %s AS SELECT * FROM main.%s WHERE start_ns<%ld "
                                                    "AND (start_ns>=%ld OR end_ns>%ld OR end_ns IS NULL)",
                                                    table, table, window->end_ns, window->start_ns, window->start_ns);
        if (!kprof_trace_begin_table(report, table))
            continue;
        kprof_store_exec(report, sql);
        kprof_trace_end_table(report);
    }
}

/* All tables of what ran are empty then. */
static void tell_empty(kprof_report *report, int64_t begin)
{
    static const char any[] =
        "SELECT count(*) FROM (SELECT end_ns FROM trace_kernel UNION ALL SELECT end_ns FROM trace_copy UNION ALL "
        "SELECT end_ns FROM trace_set UNION ALL SELECT end_ns FROM trace_call) WHERE end_ns IS NOT NULL";
    static const char last[] =
        "SELECT max(end_ns) FROM (SELECT end_ns FROM main.trace_kernel UNION ALL SELECT end_ns FROM main.trace_copy "
        "UNION ALL SELECT end_ns FROM main.trace_set UNION ALL SELECT end_ns FROM main.trace_call UNION ALL "
        "SELECT coalesce(end_ns, start_ns) FROM main.trace_range)";
    if (report->status != KPROF_OK || kprof_store_integer(report, any) > 0)
        return;
    const int64_t end = kprof_store_integer(report, last); /* 0: the trace has nothing */
    char ending[64] = "";
    if (end >= begin)
        snprintf(ending, sizeof ending, "; the trace ends after %.3f ms", (double)(end - begin) / 1e6);
    kprof_log(KPROF_LOG_WARNING, "no work of the GPU and no call is in the time that is asked for%s", ending);
}

kprof_status kprof_trace_choose_time(kprof_report *report, const char *time, const char *range)
{
    kprof_trace_window window = {0, INT64_MAX}, of_range = {INT64_MIN, INT64_MAX};
    kprof_status status = kprof_trace_check(report);
    if (status == KPROF_OK && time)
        status = read_window(time, &window);
    if (status == KPROF_OK && range)
        status = find_range(report, range, &of_range);
    if (status != KPROF_OK)
        return status;
    const int64_t begin = kprof_store_integer(report, KPROF_TRACE_START);
    if (__builtin_add_overflow(window.start_ns, begin, &window.start_ns))
        window.start_ns = INT64_MAX;
    if (!time || __builtin_add_overflow(window.end_ns, begin, &window.end_ns))
        window.end_ns = INT64_MAX;
    window.start_ns = !time || of_range.start_ns > window.start_ns ? of_range.start_ns : window.start_ns;
    window.end_ns = of_range.end_ns < window.end_ns ? of_range.end_ns : window.end_ns;
    make_views(report, &window);
    tell_empty(report, begin);
    return report->status;
}
