/* The tables of a trace, and how the records of a spool fill them. */
#pragma once

#include "core/activities.h"
#include "report/store/stack_ingest.h"
#include "report/store/store.h"

/* The state of one spool. Zero to begin, but for the first three. */
typedef struct kprof_trace_ingest {
    kprof_pool *pool;
    kprof_report *report;
    int64_t process;
    const kprof_stack_ingest *stacks; /* of the same spool */
    int64_t *names;                   /* [name_count], owned: the row of name i + 1 */
    size_t name_count;
    bool has_trace; /* the process is traced */
} kprof_trace_ingest;

/* The first version of the schema that has the table of a kind. */
#define KPROF_TRACE_SINCE(kind)                                                                                        \
    ((kind) < KPROF_ACTIVITY_SAMPLE    ? 9                                                                             \
     : (kind) < KPROF_ACTIVITY_MANAGED ? 10                                                                            \
     : (kind) < KPROF_ACTIVITY_CALLER  ? 11                                                                            \
                                       : 12)

/* The statement that makes the table "trace_<kind>". Caller frees. */
char *kprof_trace_definition(const char *table);

/* The statement that copies the activities of a kind from the attached database "source", whose names and stacks are
 * there already and whose processes get ids that are ?1 higher. Caller frees. */
char *kprof_trace_copy_statement(kprof_activity_kind kind);

/* Store a record of a trace. BAD_SPOOL where it refers to what is not there, or is no record of a trace. */
kprof_status kprof_trace_ingest_record(kprof_trace_ingest *ingest, const kprof_record *record) KPROF_MUST_CHECK;
