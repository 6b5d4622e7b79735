/* The lists of core/activities.h make the columns, and what is bound to them. */
#include "report/store/trace_ingest.h"

#include "core/filter.h"
#include "spool/activities.h"

#include <string.h>

/* A process has no more names: the recorder keeps to it. */
#define MOST_NAMES (1u << 20)

typedef enum field_type { FIELD_NUMBER, FIELD_OPTIONAL, FIELD_NAME, FIELD_STACK } field_type;

typedef struct field {
    field_type type;
    const char *name;
} field;

typedef struct activity_table {
    const char *name;
    field fields[KPROF_ACTIVITY_FIELDS_MAX];
} activity_table;

#define FIELD(type, name)         {FIELD_##type, #name},
#define TABLE(number, KIND, kind) [number] = {"trace_" #kind, {KPROF_##KIND##_ACTIVITY_FIELDS(FIELD)}},
static const activity_table tables[KPROF_ACTIVITY_KINDS] = {KPROF_ACTIVITY_MAP(TABLE)};

char *kprof_trace_definition(const char *table)
{
    kprof_strbuf sql = KPROF_STRBUF_INIT;
    unsigned kind = 1;
    while (kind < KPROF_ACTIVITY_KINDS - 1 && strcmp(tables[kind].name, table) != 0)
        kind++;
    kprof_strbuf_printf(&sql, "CREATE TABLE %s(id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process",
                        tables[kind].name);
    for (size_t i = 0; i < kprof_activity_field_count(kind); i++) {
        static const char *const ends[] = {" INTEGER NOT NULL", " INTEGER", "_id INTEGER REFERENCES trace_name",
                                           "_id INTEGER REFERENCES stack"};
        kprof_strbuf_printf(&sql, ", %s%s", tables[kind].fields[i].name, ends[tables[kind].fields[i].type]);
    }
    kprof_strbuf_puts(&sql, ")");
    return kprof_strbuf_take(&sql);
}

char *kprof_trace_copy_statement(kprof_activity_kind kind)
{
    const activity_table *table = &tables[kind];
    kprof_strbuf sql = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&sql, "INSERT INTO main.%s SELECT NULL, process_id+?1", table->name);
    for (size_t i = 0; i < kprof_activity_field_count(kind); i++) {
        if (table->fields[i].type == FIELD_NAME)
            kprof_strbuf_printf(&sql,
                                ", (SELECT own.id FROM main.trace_name own JOIN source.trace_name old USING(text) "
                                "WHERE old.id=%s_id)",
                                table->fields[i].name);
        else if (table->fields[i].type == FIELD_STACK)
            kprof_strbuf_printf(&sql,
                                ", (SELECT own.id FROM main.stack own JOIN source.stack old USING(frames, cut, reason) "
                                "WHERE old.id=%s_id)",
                                table->fields[i].name);
        else
            kprof_strbuf_printf(&sql, ", %s", table->fields[i].name);
    }
    kprof_strbuf_printf(&sql, " FROM source.%s ORDER BY id", table->name);
    return kprof_strbuf_take(&sql);
}

/* The row of a text, which all processes share. */
static int64_t name_row(kprof_report *report, const kprof_name_record *name)
{
    const int64_t row = kprof_store_find(report, KPROF_SQL_FIND_TRACE_NAME, "s", name->text);
    if (row)
        return row;
    KPROF_AUTO_FREE char *demangled = name->mangled ? kprof_demangle(name->text) : kprof_strdup(name->text);
    KPROF_AUTO_FREE char *function = name->mangled ? kprof_name_function_base(demangled) : NULL;
    return kprof_store_add(report, KPROF_SQL_ADD_TRACE_NAME, "sss", name->text, demangled,
                           function ? function : demangled);
}

static kprof_status store_name(kprof_trace_ingest *ingest, const kprof_name_record *name)
{
    if (name->name != ingest->name_count + 1 || name->name > MOST_NAMES)
        return kprof_store_bad_record("a name of its trace is not the next one,", name->name);
    int64_t *place = KPROF_POOL_ADD(ingest->pool, ingest->names, ingest->name_count);
    *place = name_row(ingest->report, name);
    ingest->name_count -= ingest->report->status != KPROF_OK;
    return ingest->report->status;
}

/* The row that a number of the process stands for; 0: it has no such one. */
static int64_t row_of(const kprof_trace_ingest *ingest, field_type type, int64_t number)
{
    if (type == FIELD_STACK)
        return kprof_stack_ingest_row(ingest->stacks, number);
    return number > 0 && (uint64_t)number <= ingest->name_count ? ingest->names[number - 1] : 0;
}

/* Bind field i. False: it refers to a name or a stack that is not there. */
static bool bind_field(const kprof_trace_ingest *ingest, sqlite3_stmt *insert, const kprof_activity *activity, size_t i)
{
    const field_type type = tables[activity->kind].fields[i].type;
    const int64_t value = activity->fields[i];
    const bool refers = type == FIELD_NAME || type == FIELD_STACK;
    const int place = (int)i + 3; /* behind the id, which SQLite gives, and the process */
    if (refers && value != 0) {
        const int64_t row = row_of(ingest, type, value);
        sqlite3_bind_int64(insert, place, row);
        return row != 0;
    } else if (refers || (type == FIELD_OPTIONAL && value == -1)) {
        sqlite3_bind_null(insert, place);
    } else {
        sqlite3_bind_int64(insert, place, value);
    }
    return true;
}

static kprof_status store_activity(kprof_trace_ingest *ingest, const kprof_activity *activity)
{
    const size_t count = kprof_activity_field_count(activity->kind);
    sqlite3_stmt *insert = kprof_store_insert(ingest->report, KPROF_SQL_ADD_ACTIVITY + (kprof_statement)activity->kind,
                                              tables[activity->kind].name, 2 + count);
    bool is_whole = true;
    sqlite3_bind_int64(insert, 2, ingest->process);
    for (size_t i = 0; i < count; i++)
        is_whole = bind_field(ingest, insert, activity, i) && is_whole;
    if (!is_whole)
        return kprof_store_bad_record("an activity has an unknown name or stack; kind", activity->kind);
    kprof_store_step(ingest->report, insert);
    return ingest->report->status;
}

static kprof_status store_activities(kprof_trace_ingest *ingest, const kprof_activities_record *record)
{
    kprof_activity_block block = {.data = record->bytes, .left = record->byte_count};
    kprof_activity activity;
    kprof_status status = KPROF_OK;
    uint32_t count = 0;
    while (status == KPROF_OK && kprof_activity_decode(&block, &activity)) {
        status = store_activity(ingest, &activity);
        count++;
    }
    if (status == KPROF_OK && (block.failed || count != record->count))
        status = kprof_store_bad_record("a block of activities does not have as many as it says,", record->count);
    if (status != KPROF_OK)
        return status;
    kprof_store_write(ingest->report, KPROF_SQL_COUNT_ACTIVITIES, "ii", ingest->process, (int64_t)count);
    return KPROF_OK;
}

kprof_status kprof_trace_ingest_record(kprof_trace_ingest *ingest, const kprof_record *record)
{
    if (ingest->has_trace == (record->type == KPROF_RECORD_TRACE))
        return kprof_store_bad_record(
            ingest->has_trace ? "its trace begins twice; type" : "its trace does not begin; type", record->type);
    switch (record->type) {
    case KPROF_RECORD_TRACE:
        ingest->has_trace = true;
        kprof_store_write(ingest->report, KPROF_SQL_ADD_TRACE, "ii", ingest->process, record->trace.start_unix_ns);
        return KPROF_OK;
    case KPROF_RECORD_NAME:
        return store_name(ingest, &record->name);
    case KPROF_RECORD_ACTIVITIES:
        return store_activities(ingest, &record->activities);
    default:
        kprof_store_write(ingest->report, KPROF_SQL_SET_TRACE, "iiiis", ingest->process, record->traced.end_unix_ns,
                          (int64_t)record->traced.dropped, (int64_t)record->traced.unknown, record->traced.reason);
        return KPROF_OK;
    }
}
