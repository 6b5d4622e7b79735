/* The part that the CSV formats share: quoting, rows, the values of launches, and lists. Every table is rectangular,
 * numbers have '.' in any locale, and libcsv quotes text. */
#pragma once

#include "report/emit/emit.h"

/* A row, or part of one, being put together. */
typedef struct kprof_csv_line {
    kprof_strbuf text;
    bool is_safe; /* texts that a spreadsheet would take for a formula get an apostrophe in front */
    bool is_bare; /* quotes stand only where a text needs them */
} kprof_csv_line;

/* How the columns of a list of GROUPS look. */
typedef struct kprof_csv_columns {
    const char *(*name)(const char *key); /* of a field; NULL: it is left out */
    void (*put)(kprof_csv_line *row, const kprof_emit_field *field);
} kprof_csv_columns;
extern const kprof_csv_columns kprof_csv_plain_columns; /* all, by their keys */

typedef struct kprof_csv {
    kprof_emitter base;
    kprof_csv_line prefix; /* of the launch or record: its columns, each followed by a comma */
    kprof_csv_line row;    /* being put together */
    kprof_csv_line
        *tails;     /* [slot_count]: the texts of a metric, quoted, each followed by a comma; made on first use */
    double *values; /* [column_count], of the launch, for a row of all */
    kprof_emit_list list;
    int64_t record; /* number of the record in the list, from 1 */
    bool header_done;
    bool has_row; /* the launch */
} kprof_csv;

/* Free an emitter whose traits are kprof_csv_columns. */
void kprof_csv_free(kprof_emitter *emitter);
static inline kprof_csv *kprof_csv_of(kprof_emitter *emitter)
{
    return (kprof_csv *)emitter;
}

/* Append a value without or with the comma after it. One that is missing is an empty field. */
void kprof_csv_put_text(kprof_csv_line *row, const char *text);
static inline void kprof_csv_put_comma(kprof_csv_line *row)
{
    kprof_strbuf_append(&row->text, ",", 1);
}
void kprof_csv_text(kprof_csv_line *row, const char *text);
void kprof_csv_take(kprof_csv_line *row, kprof_strbuf *text); /* and free it */
void kprof_csv_integer(kprof_csv_line *row, int64_t value);
void kprof_csv_real(kprof_csv_line *row, double value);
void kprof_csv_names(kprof_csv_line *row, const char *const *names); /* NULL-terminated */
/* Finish csv->row: the last comma becomes the line's end. */
void kprof_csv_end_row(kprof_csv *csv);

/* Allocate the values of launches, in launches_begin. launches_end frees them. */
void kprof_csv_begin_launches(kprof_csv *csv);
void kprof_csv_launches_end(kprof_emitter *emitter);
/* Forget the previous launch. Call it from launch_begin, which then fills in the prefix. */
void kprof_csv_begin_launch(kprof_csv *csv);
/* Begin a row with the columns of the launch or record; kprof_csv_end_row ends it. */
void kprof_csv_begin_row(kprof_csv *csv);
/* Begin a row for a metric, with the launch's columns and the metric's own, which `put` writes once for each slot;
 * kprof_csv_end_row ends it. */
void kprof_csv_begin_metric(kprof_csv *csv, const kprof_emit_metric *metric,
                            void (*put)(kprof_csv_line *tail, const kprof_emit_metric *metric));
/* Keep the value for the launch's one row. */
void kprof_csv_keep_value(kprof_emitter *emitter, const kprof_emit_metric *metric);

/* The operations that all layouts share: those for lists, and the ends. */
void kprof_csv_list_begin(kprof_emitter *emitter, const kprof_emit_list *list);
void kprof_csv_columns_of_list(kprof_emitter *emitter, const kprof_emit_record *columns);
void kprof_csv_record_begin(kprof_emitter *emitter, const kprof_emit_record *record);
void kprof_csv_row(kprof_emitter *emitter, const kprof_emit_record *row);
void kprof_csv_record_end(kprof_emitter *emitter);
#define KPROF_CSV_OPERATIONS                                                                                           \
    .launches_end = kprof_csv_launches_end, .list_begin = kprof_csv_list_begin, .columns = kprof_csv_columns_of_list,  \
    .record_begin = kprof_csv_record_begin, .row = kprof_csv_row, .record_end = kprof_csv_record_end,                  \
    .free = kprof_csv_free

/* Lines and instructions as `ncu --page source --csv` writes them: a table for each kernel, or for each file of a
 * kernel, below its name. These are the tables of a list of CODE. */
typedef struct kprof_csv_code {
    bool has_lines, has_instructions; /* the kind of rows that the kernel has */
    char *kernel, *file;              /* of the table that was begun; NULL: none was */
    bool is_open;                     /* the table has its header */
    bool *is_column;                  /* which of ncu's columns the table has */
} kprof_csv_code;

void kprof_csv_code_begin(kprof_csv_code *code, const kprof_emit_record *kernel);
void kprof_csv_code_row(kprof_csv *csv, kprof_csv_code *code, const kprof_emit_record *row);
void kprof_csv_code_free(kprof_csv_code *code); /* members */
