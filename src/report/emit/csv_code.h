/* Lines and instructions as `ncu --page source --csv` writes them: a table for each kernel, or for each file of a
 * kernel, below its name. */
#pragma once

#include "report/emit/csv.h"

/* The tables of a list of CODE. */
typedef struct kprof_csv_code {
    bool has_lines, has_instructions; /* the kind of rows that the kernel has */
    char *kernel, *file;              /* of the table that was begun; NULL: none was */
    bool is_open;                     /* the table has its header */
    bool *is_column;                  /* which of ncu's columns the table has */
} kprof_csv_code;

void kprof_csv_code_begin(kprof_csv_code *code, const kprof_emit_record *kernel);
void kprof_csv_code_row(kprof_csv *csv, kprof_csv_code *code, const kprof_emit_record *row);
void kprof_csv_code_free(kprof_csv_code *code); /* members */
