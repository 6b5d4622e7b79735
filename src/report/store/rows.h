/* The tables of a report that core/fields.h lists, and structs for their rows. The list of columns makes a table's
 * definition, and reads and writes its rows. */
#pragma once

#include "core/pool.h"
#include "report/store/store.h"

/* A row of a table of core/fields.h: the record that the spool tells, whose members are also the row's own, and the
 * columns that the command line fills in. Texts are borrowed, or owned by whoever has read the row. */
#define KPROF_ROW_MEMBERS(NAME, name)                                                                                  \
    union {                                                                                                            \
        kprof_##name##_record record;                                                                                  \
        struct {                                                                                                       \
            KPROF_##NAME##_FIELDS(KPROF_MEMBER, KPROF_MEMBER, KPROF_NO_MEMBER)                                         \
        };                                                                                                             \
    };                                                                                                                 \
    KPROF_##NAME##_FIELDS(KPROF_NO_MEMBER, KPROF_NO_MEMBER, KPROF_MEMBER)

typedef struct kprof_model_process {
    KPROF_ROW_MEMBERS(PROCESS, process)
    bool goes_on; /* it called exec: a later row is the same process */
} kprof_model_process;

typedef struct kprof_model_device {
    KPROF_ROW_MEMBERS(DEVICE, device)
    size_t chip_index; /* into chips; SIZE_MAX when no plan was stored for the chip */
    char cc[24];       /* its compute capability: "9.0" */
} kprof_model_device;

typedef struct kprof_model_kernel {
    KPROF_ROW_MEMBERS(KERNEL, kernel)
    uint64_t launches; /* seen, profiled or not */
} kprof_model_kernel;

typedef struct kprof_model_census {
    KPROF_ROW_MEMBERS(CENSUS, census)
} kprof_model_census;

typedef struct kprof_launch_row {
    KPROF_ROW_MEMBERS(LAUNCH, launch)
} kprof_launch_row;

typedef struct kprof_model_metric {
    KPROF_METRIC_FIELDS(KPROF_NO_MEMBER, KPROF_NO_MEMBER, KPROF_MEMBER)
} kprof_model_metric;

typedef struct kprof_model_left_out {
    KPROF_LEFT_OUT_FIELDS(KPROF_NO_MEMBER, KPROF_NO_MEMBER, KPROF_MEMBER)
} kprof_model_left_out;

typedef struct kprof_model_message {
    KPROF_MESSAGE_FIELDS(KPROF_MEMBER, KPROF_NO_MEMBER, KPROF_MEMBER)
    size_t process; /* index of process_id */
} kprof_model_message;

/* Name of the table, and struct of its rows. */
#define KPROF_ROWS_MAP(X)                                                                                              \
    X(PROCESS, process, kprof_model_process)                                                                           \
    X(DEVICE, device, kprof_model_device)                                                                              \
    X(KERNEL, kernel, kprof_model_kernel)                                                                              \
    X(METRIC, metric, kprof_model_metric)                                                                              \
    X(LEFT_OUT, left_out, kprof_model_left_out)                                                                        \
    X(MESSAGE, message, kprof_model_message)                                                                           \
    X(CENSUS, census, kprof_model_census)                                                                              \
    X(LAUNCH, launch, kprof_launch_row)

#define KPROF_ROWS_ENUM(NAME, name, row) KPROF_ROWS_##NAME,
typedef enum kprof_rows { KPROF_ROWS_MAP(KPROF_ROWS_ENUM) KPROF_ROWS_COUNT } kprof_rows;
_Static_assert(KPROF_SQL_ADD_ROW + KPROF_ROWS_COUNT <= (int)KPROF_SQL_ADD_ACTIVITY, "each table has a statement");

/* The statement that makes a table in a report of this version. Caller frees. */
char *kprof_rows_definition(const char *name, int version);

/* Add a row and give its id. Its texts are borrowed. With an id below 0 the row gets the next one. */
int64_t kprof_rows_insert(kprof_report *report, kprof_rows table, const void *row, int64_t id);
/* The id of the kernel that has the same attributes in the spool; 0: there is none. */
int64_t kprof_rows_find_kernel(kprof_report *report, const kprof_model_kernel *kernel);

/* Row id of a metric, added when new; a unit and description that were not known before are filled in. */
int64_t kprof_store_metric(kprof_report *report, const kprof_model_metric *metric);
/* The same of the metric that holds the spread of a witness: "<witness>.pct_spread_over_passes". */
#define KPROF_WITNESS_KIND     "witness"     /* in the table of metrics */
#define KPROF_INSTRUCTION_KIND "instruction" /* likewise: launches have no value */
#define KPROF_TIMELINE_KIND    "timeline"    /* likewise */
#define KPROF_SPREAD_SUFFIX    ".pct_spread_over_passes"
int64_t kprof_store_witness(kprof_report *report, const char *witness);

/* Append the values of all columns, so that different rows give different texts. */
void kprof_rows_describe(kprof_rows table, const void *row, kprof_strbuf *out);
/* Append ", NAME" for each column that refers to no other row, to select from a report of this version; where that is
 * too old to have the column, what kprof_rows_read gives. */
void kprof_rows_list_plain(kprof_rows table, int version, kprof_strbuf *out);

/* A row of a report's file, and the pool that gets its texts. */
typedef struct kprof_row_source {
    const kprof_report *report;
    sqlite3_stmt *columns; /* the first one is the id */
    kprof_pool *pool;
} kprof_row_source;
/* Fill `row`. Texts are those of kprof_store_text. Numbers that the report is too old to have are 0, or -1 if they are
 * optional. */
void kprof_rows_read(const kprof_row_source *from, kprof_rows table, void *row);
