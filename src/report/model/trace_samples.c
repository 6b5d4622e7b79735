/* SQL gives samples their units and labels, and leaves out those that overlap, so that each time has one value. */
#include "report/model/trace_samples.h"

#include "report/model/trace_functions.h"
#include "report/store/store.h"

/* name_id, name, label, unit, and the factor from millionths to that unit: what the sections of the plans say, the
 * first that has the metric. */
static const char metrics[] =
    "CREATE TEMP TABLE sampled_metric AS WITH item AS (SELECT json_extract(value, '$.metric') AS name, "
    "json_extract(value, '$.label') AS label, coalesce(json_extract(value, '$.unit'), '') AS unit FROM section, "
    "json_each(definition, '$.timeline')), named AS (SELECT id AS name_id, text AS name, coalesce((SELECT label FROM "
    "item WHERE item.name=text LIMIT 1), text) AS label, coalesce((SELECT unit FROM item WHERE item.name=text LIMIT "
    "1), "
    "'') AS unit FROM trace_name WHERE id IN (SELECT name_id FROM trace_sample)) SELECT name_id, name, label, CASE "
    "unit "
    "WHEN 'byte/second' THEN 'GB/s' ELSE unit END AS unit, CASE unit WHEN 'byte/second' THEN 1e-15 ELSE 1e-6 END AS "
    "factor FROM named";

/* Of each process, device and metric samples that follow each other; `value` NULL: not known. */
static const char samples[] =
    "CREATE TEMP TABLE trace_sampled(process_id INTEGER, device INTEGER, name_id INTEGER, start_ns INTEGER, end_ns "
    "INTEGER, value REAL, PRIMARY KEY(process_id, device, name_id, start_ns)) WITHOUT ROWID;"
    "INSERT OR IGNORE INTO temp.trace_sampled SELECT process_id, device, name_id, start_ns, end_ns, "
    "value_millionths*factor FROM (SELECT *, max(end_ns) OVER (PARTITION BY process_id, device, name_id ORDER BY "
    "start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM trace_sample WHERE "
    "end_ns>start_ns) JOIN temp.sampled_metric USING(name_id) WHERE start_ns>=coalesce(before, start_ns)";

/* An older report has no table of samples. */
static const char no_samples[] =
    "CREATE TEMP TABLE sampled_metric(name_id, name, label, unit, factor);"
    "CREATE TEMP TABLE trace_sampled(process_id, device, name_id, start_ns, end_ns, value)";

static kprof_status make_tables(kprof_report *report)
{
    if (report->version < 10)
        return kprof_store_exec(report, no_samples);
    const kprof_status status = kprof_store_exec(report, metrics);
    return status == KPROF_OK ? kprof_store_exec(report, samples) : status;
}

/* The report is open for reading alone; temporary tables are in a file of their own. */
kprof_status kprof_trace_find_samples(kprof_report *report)
{
    int64_t is_made = 0;
    kprof_status status =
        kprof_store_integer(report, "SELECT count(*) FROM temp.sqlite_schema WHERE name='trace_sampled'", &is_made);
    if (status != KPROF_OK || is_made)
        return status;
    status = kprof_trace_add_functions(report);
    if (status == KPROF_OK)
        status = kprof_store_exec(report, "PRAGMA query_only=OFF");
    if (status == KPROF_OK)
        status = make_tables(report);
    const kprof_status closed = kprof_store_exec(report, "PRAGMA query_only=ON");
    return status == KPROF_OK ? closed : status;
}

kprof_status kprof_trace_has_samples(kprof_report *report, bool *out)
{
    int64_t is_there = 0;
    const kprof_status status =
        report->version < 10 ? KPROF_OK
                             : kprof_store_integer(report, "SELECT EXISTS(SELECT 1 FROM trace_sample)", &is_there);
    *out = is_there != 0;
    return status;
}
