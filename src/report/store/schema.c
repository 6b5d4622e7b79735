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
static const schema_entry tables[] = {{1, "run", RUN},
                                      {1, "process", NULL},
                                      {1, "device", NULL},
                                      {1, "kernel", NULL},
                                      {1, "metric", NULL},
                                      {1, "section", SECTION},
                                      {1, "launch", NULL},
                                      {1, "value", VALUE},
                                      {1, "seen", SEEN},
                                      {1, "message", NULL},
                                      {2, "pass", PASS},
                                      {2, "schedule", SCHEDULE},
                                      {2, "left_out", NULL},
                                      {3, "graph_node", GRAPH_NODE},
                                      {6, "nvtx", NVTX},
                                      {8, "stack", STACK},
                                      {8, "launch_stack", LAUNCH_STACK},
                                      {9, "census", NULL},
                                      {5, "source", SOURCE},
                                      {5, "process_source", PROCESS_SOURCE},
                                      {KPROF_PROCESS_DEVICES_SINCE, "process_device", PROCESS_DEVICE},
                                      {7, "code", CODE},
                                      {7, "code_function", CODE_FUNCTION},
                                      {7, "code_file", CODE_FILE},
                                      {7, "code_instruction", CODE_INSTRUCTION},
                                      {7, "code_line", CODE_LINE},
                                      {9, "code_ptx", CODE_PTX},
                                      {7, "code_wait", CODE_WAIT},
                                      {7, "code_profile", CODE_PROFILE},
                                      {7, "launch_code_profile", LAUNCH_CODE_PROFILE},
                                      {7, "code_profile_metric", CODE_PROFILE_METRIC},
                                      {7, "instruction_value", INSTRUCTION_VALUE},
                                      {9, "timeline_pass", TIMELINE_PASS},
                                      {9, "timeline", TIMELINE},
                                      {9, "trace", TRACE},
                                      {9, "trace_name", TRACE_NAME},
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
    KPROF_EACH_ROW(rows, report, "SELECT name, sql FROM sqlite_schema WHERE type='table'")
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
            return kprof_fail(KPROF_BAD_REPORT,
                              "%s: the report is damaged: table \"%s\" is missing or not as kprof writes it in version "
                              "%d of reports" KPROF_DAMAGED_ADVICE,
                              report->path, tables[i].name, report->version);
    }
    return report->status;
}
