/* A table in monospaced text: cells are collected, then printed with aligned columns. And what else fits text into a
 * width: breaking lines, and shortening kernel names. */
#pragma once

#include "core/pool.h"
#include "core/strbuf.h"
#include "report/emit/output.h"

#include <stddef.h>

#define KPROF_GRID_COLUMNS_MAX 64

/* A cell: the offsets of its texts in the grid's. */
typedef struct kprof_grid_cell {
    size_t text; /* a number or words */
    size_t unit; /* stands after a number, aligned in itself; may be "" */
    bool is_marked;
    bool is_missing; /* the text stands for no value */
} kprof_grid_cell;

/* A table that is too wide may fold a column. */
typedef enum kprof_grid_fold {
    KPROF_FOLD_NEVER,
    KPROF_FOLD_TEXT,   /* its text stands in lines of its own below the row */
    KPROF_FOLD_LABELS, /* it stands with others in a line below the row, each after its header */
} kprof_grid_fold;

typedef struct kprof_grid {
    size_t column_count;
    bool is_number[KPROF_GRID_COLUMNS_MAX];      /* aligned right, with a unit */
    const char *headers[KPROF_GRID_COLUMNS_MAX]; /* borrowed; all NULL: no header line */
    kprof_grid_cell *cells;                      /* [cell_count], row by row */
    size_t cell_count;
    struct kprof_grid_note_text *notes; /* [note_count] */
    size_t note_count;
    kprof_strbuf texts; /* of all cells, each ended by a NUL */
    /* Lines keep within `width` columns (0: any). The grid takes these steps, in this order, until they do: it leaves
     * out the last column if that holds bars; it breaks the texts of the last key column into lines; it prints the
     * other columns in several blocks, each with the key columns before it. A key where a word would be cut stands
     * above the rest of its row. */
    size_t width;
    bool has_bars;
    bool wraps; /* instead of the second step it breaks the texts of all columns, the widest first; and before
                   that, where it would break words or leave long texts little, it folds those columns that can */
    kprof_grid_fold folds[KPROF_GRID_COLUMNS_MAX];
    size_t key_count; /* at least 1 */
    size_t group;     /* how many other columns stay together; at least 1 */
    bool is_headed;   /* headers stand above no rows too */
} kprof_grid;

/* An empty grid; `kinds` has a letter for each column: 't' text, 'n' numbers. It keeps KPROF_GRID_COLUMNS_MAX. */
kprof_grid kprof_grid_make(const char *kinds);
/* Append the next cell (texts are copied). */
void kprof_grid_add(kprof_grid *grid, const char *text, const char *unit);
/* The latest cell has no value: leave it out if its column is folded. */
void kprof_grid_miss(kprof_grid *grid);
/* Mark the latest cell: " *" follows it, below the other marks of its column. */
void kprof_grid_mark(kprof_grid *grid);
/* Print a text below the latest row, which is complete; broken into lines, after a label (borrowed) or NULL. */
void kprof_grid_note(kprof_grid *grid, const char *label, const char *text);
/* Print all rows, indented; the grid is empty afterwards and can be filled again. */
void kprof_grid_print(kprof_grid *grid, kprof_output *out, size_t indent);
void kprof_grid_free(kprof_grid *grid);

/* The width of a line where none is given. */
#define KPROF_TEXT_COLUMNS 100

/* The place of lines: columns before them, and up to their end (SIZE_MAX: any). */
typedef struct kprof_text_place {
    size_t indent, width;
} kprof_text_place;

/* Columns that text takes on a terminal: its code points. */
size_t kprof_text_width(const char *text);
/* Bytes of the line that `text` begins with, in at most `width` columns (but at least one): up to a space, else behind
 * a sign that names are joined with, else as many as fit. What follows begins behind the spaces. */
size_t kprof_text_line(const char *text, size_t width);
const char *kprof_text_next_line(const char *text, size_t width);
/* Print a text in lines, after a label if there is one; its further lines stand below its first. */
void kprof_text_labelled(kprof_output *out, kprof_text_place place, const char *label, const char *text);

/* Copies of the names in at most `width` columns each, at least KPROF_SHORT_NAME: names that are longer lose a part in
 * their middle. What tells a name from the one most like it stays, and different names stay different. */
#define KPROF_SHORT_NAME 24
char **kprof_short_names_new(kprof_pool *pool, const char *const *names, size_t count, size_t width);
