/* The tables and views of a report, version KPROF_SCHEMA_VERSION. docs/report-schema.md explains every column; change
 * both together, and the version with them. */
#include "core/activities.h"
#include "report/store/rows.h"
#include "report/store/schema.sql.h"
#include "report/store/trace_ingest.h"

#include <string.h>

typedef struct schema_entry {
    int since; /* the first version that has it */
    const char *name;
    const char *sql; /* NULL: core/fields.h or core/activities.h has the columns */
} schema_entry;

/* SQLite keeps the text of these statements in the file, so that a report can be compared with them word for word. */
static const schema_entry tables[] = {
    {1, "run",
     "CREATE TABLE run(id INTEGER PRIMARY KEY, command_line TEXT NOT NULL, working_directory TEXT NOT NULL, "
     "kprof_version TEXT NOT NULL, sets TEXT NOT NULL, start_unix_ns INTEGER NOT NULL)"},
    {1, "process", NULL},
    {1, "device", NULL},
    {1, "kernel", NULL},
    {1, "metric", NULL},
    {1, "section",
     "CREATE TABLE section(id INTEGER PRIMARY KEY, chip TEXT NOT NULL, identifier TEXT NOT NULL, "
     "name TEXT NOT NULL, definition TEXT NOT NULL)"},
    {1, "launch", NULL},
    {1, "value",
     "CREATE TABLE value(launch_id INTEGER NOT NULL REFERENCES launch, metric_id INTEGER NOT NULL REFERENCES metric, "
     "value REAL, PRIMARY KEY(launch_id, metric_id)) WITHOUT ROWID"},
    {1, "seen",
     "CREATE TABLE seen(process_id INTEGER NOT NULL REFERENCES process, kernel_id INTEGER NOT NULL REFERENCES kernel, "
     "launches INTEGER NOT NULL, PRIMARY KEY(process_id, kernel_id)) WITHOUT ROWID"},
    {1, "message", NULL},
    {2, "pass",
     "CREATE TABLE pass(chip TEXT NOT NULL, pass INTEGER NOT NULL, counters INTEGER NOT NULL, "
     "sm_side INTEGER NOT NULL, PRIMARY KEY(chip, pass)) WITHOUT ROWID"},
    {2, "schedule",
     "CREATE TABLE schedule(chip TEXT NOT NULL, metric_id INTEGER NOT NULL REFERENCES metric, "
     "pass INTEGER NOT NULL, PRIMARY KEY(chip, metric_id, pass)) WITHOUT ROWID"},
    {2, "left_out", NULL},
    {3, "graph_node",
     "CREATE TABLE graph_node(launch_id INTEGER PRIMARY KEY REFERENCES launch, node INTEGER NOT NULL)"},
    {6, "nvtx", "CREATE TABLE nvtx(launch_id INTEGER PRIMARY KEY REFERENCES launch, ranges TEXT NOT NULL)"},
    {8, "stack",
     "CREATE TABLE stack(id INTEGER PRIMARY KEY, line TEXT NOT NULL, module TEXT NOT NULL, frames TEXT NOT NULL, "
     "cut INTEGER NOT NULL, reason TEXT NOT NULL, UNIQUE(frames, cut, reason))"},
    {8, "launch_stack",
     "CREATE TABLE launch_stack(launch_id INTEGER PRIMARY KEY REFERENCES launch, "
     "stack_id INTEGER NOT NULL REFERENCES stack, origin TEXT NOT NULL)"},
    {9, "census", NULL},
    {5, "source",
     "CREATE TABLE source(id INTEGER PRIMARY KEY, name TEXT NOT NULL, command_line TEXT NOT NULL, working_directory "
     "TEXT NOT NULL, kprof_version TEXT NOT NULL, sets TEXT NOT NULL, start_unix_ns INTEGER NOT NULL)"},
    {5, "process_source",
     "CREATE TABLE process_source(process_id INTEGER PRIMARY KEY REFERENCES process, "
     "source_id INTEGER NOT NULL REFERENCES source)"},
    {KPROF_PROCESS_DEVICES_SINCE, "process_device",
     "CREATE TABLE process_device(process_id INTEGER NOT NULL REFERENCES process, device_id INTEGER NOT NULL "
     "REFERENCES device, PRIMARY KEY(process_id, device_id)) WITHOUT ROWID"},
    {7, "code",
     "CREATE TABLE code(id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes INTEGER NOT NULL, "
     "text_state TEXT NOT NULL, line_state TEXT NOT NULL, cubin BLOB)"},
    {7, "code_function",
     "CREATE TABLE code_function(id INTEGER PRIMARY KEY, code_id INTEGER NOT NULL REFERENCES code, "
     "mangled TEXT NOT NULL, demangled TEXT NOT NULL, bytes INTEGER NOT NULL, UNIQUE(code_id, mangled))"},
    {7, "code_file",
     "CREATE TABLE code_file(id INTEGER PRIMARY KEY, path TEXT NOT NULL, bytes INTEGER, hash TEXT, content TEXT)"},
    {7, "code_instruction",
     "CREATE TABLE code_instruction(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, "
     "text TEXT, space TEXT, operation TEXT, access_bits INTEGER, PRIMARY KEY(function_id, offset)) WITHOUT ROWID"},
    {7, "code_line",
     "CREATE TABLE code_line(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, "
     "depth INTEGER NOT NULL, file_id INTEGER NOT NULL REFERENCES code_file, line INTEGER NOT NULL, function TEXT, "
     "PRIMARY KEY(function_id, offset, depth)) WITHOUT ROWID"},
    {9, "code_ptx",
     "CREATE TABLE code_ptx(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, file_id "
     "INTEGER NOT NULL REFERENCES code_file, line INTEGER NOT NULL, PRIMARY KEY(function_id, offset)) WITHOUT ROWID"},
    {7, "code_wait",
     "CREATE TABLE code_wait(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, "
     "producer_offset INTEGER NOT NULL, PRIMARY KEY(function_id, offset, producer_offset)) WITHOUT ROWID"},
    {7, "code_profile",
     "CREATE TABLE code_profile(id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process, "
     "kernel_id INTEGER NOT NULL REFERENCES kernel, device_id INTEGER NOT NULL REFERENCES device, "
     "launch_id INTEGER NOT NULL REFERENCES launch, counted INTEGER NOT NULL, sampled INTEGER NOT NULL, "
     "period_cycles INTEGER NOT NULL, dropped INTEGER NOT NULL, reason TEXT NOT NULL)"},
    {7, "launch_code_profile",
     "CREATE TABLE launch_code_profile(launch_id INTEGER PRIMARY KEY REFERENCES launch, "
     "profile_id INTEGER NOT NULL REFERENCES code_profile)"},
    {7, "code_profile_metric",
     "CREATE TABLE code_profile_metric(profile_id INTEGER NOT NULL REFERENCES code_profile, "
     "metric_id INTEGER NOT NULL REFERENCES metric, PRIMARY KEY(profile_id, metric_id)) WITHOUT ROWID"},
    {7, "instruction_value",
     "CREATE TABLE instruction_value(profile_id INTEGER NOT NULL REFERENCES code_profile, function_id INTEGER NOT NULL "
     "REFERENCES code_function, offset INTEGER NOT NULL, metric_id INTEGER NOT NULL REFERENCES metric, value REAL NOT "
     "NULL, PRIMARY KEY(profile_id, function_id, offset, metric_id)) WITHOUT ROWID"},
    {9, "timeline_pass",
     "CREATE TABLE timeline_pass(launch_id INTEGER NOT NULL REFERENCES launch, pass INTEGER NOT NULL, interval_ns "
     "INTEGER NOT NULL, samples INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY(launch_id, pass)) WITHOUT ROWID"},
    {9, "timeline",
     "CREATE TABLE timeline(launch_id INTEGER NOT NULL REFERENCES launch, "
     "metric_id INTEGER NOT NULL REFERENCES metric, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, "
     "value REAL, PRIMARY KEY(launch_id, metric_id, start_ns)) WITHOUT ROWID"},
    {9, "trace",
     "CREATE TABLE trace(process_id INTEGER PRIMARY KEY REFERENCES process, start_unix_ns INTEGER NOT NULL, "
     "end_unix_ns INTEGER, activities INTEGER NOT NULL, dropped INTEGER NOT NULL, unknown INTEGER NOT NULL, "
     "reason TEXT NOT NULL)"},
    {9, "trace_name",
     "CREATE TABLE trace_name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, demangled TEXT NOT NULL, "
     "function TEXT NOT NULL)"},
#define ACTIVITY_TABLE(number, KIND, kind) {KPROF_TRACE_SINCE(number), "trace_" #kind, NULL},
    KPROF_ACTIVITY_MAP(ACTIVITY_TABLE)
#undef ACTIVITY_TABLE
};
#define TABLE_COUNT COUNT_OF(tables)

/* The statement that makes a table in a report of this version. Caller frees. */
static char *definition_of(const schema_entry *table, int version)
{
    if (table->sql)
        return kprof_strdup(table->sql);
    return strncmp(table->name, "trace_", strlen("trace_")) == 0 ? kprof_trace_definition(table->name)
                                                                 : kprof_rows_definition(table->name, version);
}

void kprof_schema_create(kprof_report *report)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        KPROF_AUTO_FREE char *sql = definition_of(&tables[i], KPROF_SCHEMA_VERSION);
        kprof_store_exec(report, sql);
    }
    kprof_store_exec(report, VIEWS);
}

/* Has the file the table of this name, made by this SQL? */
static bool is_there(kprof_report *report, const char *name, const char *sql)
{
    bool found = false;
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(report, "SELECT name, sql FROM sqlite_schema WHERE type='table'");
    while (kprof_cursor_next(&rows))
        found = found || (strcmp(kprof_store_column(rows.row, 0), name) == 0 &&
                          strcmp(kprof_store_column(rows.row, 1), sql) == 0);
    return found;
}

kprof_status kprof_schema_check(kprof_report *report)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (tables[i].since > report->version)
            continue;
        KPROF_AUTO_FREE char *sql = definition_of(&tables[i], report->version);
        if (!is_there(report, tables[i].name, sql) && report->status == KPROF_OK)
            return kprof_fail(
                KPROF_BAD_REPORT,
                "%s: the report is damaged: table \"%s\" is missing or not as kprof writes it in version %d of "
                "reports" KPROF_DAMAGED_ADVICE,
                report->path, tables[i].name, report->version);
    }
    return report->status;
}
