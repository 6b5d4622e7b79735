/* A table in monospaced text: cells are collected, then printed with aligned columns. */
#ifndef KPROF_REPORT_GRID_H
#define KPROF_REPORT_GRID_H

#include "core/strbuf.h"
#include "report/output.h"

#include <stddef.h>

#define KPROF_GRID_COLUMNS_MAX 64

/* Where the texts of a cell begin in those of the grid. */
typedef struct kprof_grid_cell {
    size_t text; /* a number or words */
    size_t unit; /* stands after a number, aligned in itself; may be "" */
    bool is_marked;
} kprof_grid_cell;

typedef struct kprof_grid {
    size_t column_count;
    bool is_number[KPROF_GRID_COLUMNS_MAX];      /* aligned right, with a unit */
    const char *headers[KPROF_GRID_COLUMNS_MAX]; /* borrowed; all NULL: no header line */
    kprof_grid_cell *cells;                      /* [cell_count], row by row */
    size_t cell_count, capacity;
    kprof_strbuf texts; /* of all cells, each ended by a NUL */
    size_t width;       /* of a line: the first column is shortened for it; 0: any */
    bool is_headed;     /* headers stand above no rows too */
    bool failed;        /* out of memory */
} kprof_grid;

/* An empty grid; `kinds` has a letter for each column: 't' text, 'n' numbers. At most KPROF_GRID_COLUMNS_MAX are kept.
 */
kprof_grid kprof_grid_make(const char *kinds);
/* Append the next cell (texts are copied). */
void kprof_grid_add(kprof_grid *grid, const char *text, const char *unit);
/* Mark the latest cell: " *" follows it, below the other marks of its column. */
void kprof_grid_mark(kprof_grid *grid);
/* Print all rows, indented; the grid is empty afterwards and can be filled again. */
void kprof_grid_print(kprof_grid *grid, kprof_output *out, size_t indent);
void kprof_grid_free(kprof_grid *grid);

/* Columns that text takes on a terminal: its code points. */
size_t kprof_text_width(const char *text);
/* A copy of a kernel's name in at most `width` columns (caller frees; NULL when out of memory): parameters go first,
 * then template arguments, then the middle. */
char *kprof_text_elide(const char *name, size_t width);

#endif
