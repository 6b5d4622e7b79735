/* The columns of a launch beside its metrics. A field of a launch that somebody is to see is one row here: it has
 * its key, its title, its value and the formats that show it. */
#pragma once

#include "report/model/model.h"

typedef enum kprof_cell_kind {
    KPROF_CELL_WHOLE,
    KPROF_CELL_REAL,
    KPROF_CELL_TEXT,
    KPROF_CELL_DIGITS, /* a text that CSV does not quote */
    KPROF_CELL_SHAPE,  /* of a grid, a block or a cluster; CSV has three columns, <id>_x, <id>_y and <id>_z */
} kprof_cell_kind;

typedef struct kprof_column {
    const char *id;
    kprof_cell_kind kind;
    const char *unit;        /* NULL: none */
    bool in_csv;             /* CSV has it, under its id */
    bool or_none;            /* and says "none" where it is missing, so that programs do not take it for numbers */
    const char *json, *html; /* its key in a launch of JSON and of the HTML page; NULL: they do not have it, or have it
                                among other things */
    bool always;             /* these have its value where it is missing, too: 0, or "" */
    int place;    /* of those that people see in lists of fields, the lowest comes first; 0: it is not there */
    bool plain;   /* such lists give it without its title */
    bool in_text; /* text has it in a line of its own: title and value */
} kprof_column;

/* X(kind, id, title, it is there, value, ...): CSV, JSON and HTML have them in this order. An expression may use
 * `launch`, its `record`, its `samples` (NULL: the launch is one) and the `texts` made for it; the value has to be
 * valid where it is not there, too. */
#define KPROF_LAUNCH_COLUMNS(X)                                                                                        \
    X(WHOLE, launch, "Launch", true, launch->id, .in_csv = true, .place = 30)                                          \
    X(WHOLE, process_id, "Process", true, launch->process->pid, .in_csv = true, .place = 80)                           \
    X(TEXT, process, "Name", true, launch->process->name, .in_csv = true)                                              \
    X(TEXT, host, "Host", true, launch->process->host, .in_csv = true)                                                 \
    X(TEXT, function, "Function", true, launch->kernel->function, .in_csv = true)                                      \
    X(TEXT, kernel, "Kernel", true, texts->kernel, .in_csv = true, .place = 10, .plain = true)                         \
    X(WHOLE, context, "Context", true, record->context, .in_csv = true, .json = "context", .html = "context",          \
      .place = 130)                                                                                                    \
    X(WHOLE, stream, "Stream", true, record->stream, .in_csv = true, .json = "stream", .html = "stream", .place = 140) \
    X(WHOLE, graph_node, "Graph node", record->graph_node > 0, record->graph_node, .in_csv = true,                     \
      .json = "graph_node", .html = "node", .place = 150)                                                              \
    X(TEXT, nvtx, "NVTX ranges", *record->nvtx, record->nvtx, .in_csv = true, .or_none = true, .json = "nvtx",         \
      .html = "nvtx", .place = 160, .in_text = true)                                                                   \
    X(TEXT, launched_from, "Launched from", *texts->line, texts->line, .in_csv = true, .or_none = true,                \
      .json = "launched_from")                                                                                         \
    X(TEXT, stack_origin, "Call stack of", *launch->stack_origin, launch->stack_origin, .in_csv = true,                \
      .or_none = true, .json = "stack_origin")                                                                         \
    X(TEXT, line_and_origin, "Launched from", texts->launched_from.length > 0, texts->launched_from.data,              \
      .html = "from", .place = 165, .in_text = true)                                                                   \
    X(WHOLE, device, "Device", true, record->device, .in_csv = true)                                                   \
    X(TEXT, device_name, "Device", true, launch->device->name, .in_csv = true, .place = 90, .plain = true)             \
    X(DIGITS, cc, "CC", true, launch->device->cc, .in_csv = true, .place = 100)                                        \
    X(WHOLE, thread, "Thread", true, record->thread, .json = "thread")                                                 \
    X(WHOLE, position, "Position", true, record->launch, .json = "position")                                           \
    X(SHAPE, grid, "Grid", !kprof_launch_is_graph(record), record->grid, .in_csv = true, .json = "grid",               \
      .html = "grid", .place = 110)                                                                                    \
    X(SHAPE, block, "Block", !kprof_launch_is_graph(record), record->block, .in_csv = true, .json = "block",           \
      .html = "block", .place = 120)                                                                                   \
    X(SHAPE, cluster, "Cluster", record->cluster[0] > 0, record->cluster, .json = "cluster")                           \
    X(WHOLE, dynamic_shared_memory_bytes, "Dynamic shared memory", !kprof_launch_is_graph(record),                     \
      record->dynamic_smem_bytes, .unit = "byte", .json = "dynamic_shared_memory_bytes")                               \
    X(WHOLE, start_unix_ns, "Start", true, record->start_unix_ns, .unit = "ns", .json = "start_unix_ns")               \
    X(WHOLE, profile_ns, "Profiling took", true, record->profile_ns, .unit = "ns", .json = "profile_ns")               \
    X(TEXT, replay_mode, "Replay", true, launch->replay_mode, .in_csv = true, .json = "replay_mode", .html = "mode")   \
    X(WHOLE, passes, "Passes", launch->measured > 0, record->pass_count, .json = "passes", .html = "passes",           \
      .always = true, .place = 170)                                                                                    \
    X(WHOLE, measured, "Metrics measured", true, launch->measured, .in_csv = true, .json = "measured")                 \
    X(TEXT, reason, kprof_model_is_missing(launch) ? "Not measured:" : "Note:", *launch->reason, launch->reason,       \
      .in_csv = true, .or_none = true, .json = "reason", .html = "reason", .always = true, .place = 180)               \
    X(TEXT, disagreements, "Passes disagree:", texts->disagreements.length > 0, texts->disagreements.data,             \
      .in_csv = true, .or_none = true, .html = "disagree", .place = 190)                                               \
    X(WHOLE, multiplexed_launches, "Multiplexed launches", samples, samples ? samples->launches : 0, .in_csv = true,   \
      .place = 50)                                                                                                     \
    X(WHOLE, multiplexed_samples, "Samples", samples, samples ? samples->used : 0, .in_csv = true, .place = 60)        \
    X(WHOLE, set_apart_samples, "Samples set apart", samples, samples ? samples->set_apart : 0, .in_csv = true)        \
    X(WHOLE, last_launch, "Last launch", samples, samples ? samples->last_launch : 0, .place = 40)                     \
    X(TEXT, samples_note, "Note:", texts->samples_note.length > 0, texts->samples_note.data, .place = 70)

#define KPROF_COLUMN_ENUM(kind, id, ...) KPROF_COLUMN_##id,
typedef enum kprof_column_id { KPROF_LAUNCH_COLUMNS(KPROF_COLUMN_ENUM) KPROF_COLUMN_COUNT } kprof_column_id;
extern const kprof_column kprof_launch_columns[KPROF_COLUMN_COUNT];
/* The columns that follow in CSV with a row for each metric; of the others only id and kind are set. */
#define KPROF_METRIC_COLUMN_COUNT 9
extern const kprof_column kprof_metric_columns[KPROF_METRIC_COLUMN_COUNT];

/* A launch with the texts made for it. */
typedef struct kprof_launch_texts {
    const kprof_model_launch *launch;
    const char *kernel; /* its name */
    const char *line;   /* that it was launched from; "": not known */
    kprof_strbuf disagreements, samples_note, launched_from;
} kprof_launch_texts;
/* `kernel_base`: the name of the kernel that is wanted. Free with kprof_launch_texts_free. */
kprof_launch_texts kprof_launch_texts_make(const kprof_model *model, const kprof_model_launch *launch,
                                           const char *kernel_base);
void kprof_launch_texts_free(kprof_launch_texts *texts);

/* The text of a column for a launch. */
typedef struct kprof_cell {
    const char *title;
    bool is_there;
    int64_t whole;
    const char *text; /* not NULL */
    const uint32_t *shape;
} kprof_cell;
kprof_cell kprof_launch_cell(const kprof_launch_texts *texts, kprof_column_id column);
