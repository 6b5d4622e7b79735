/* Column widths and alignment. */
#include "report/grid.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN_GAP      2
#define FIRST_WIDTH_MIN 24

kprof_grid kprof_grid_make(const char *kinds)
{
    kprof_grid grid = {0};
    for (; *kinds && grid.column_count < KPROF_GRID_COLUMNS_MAX; kinds++)
        grid.is_number[grid.column_count++] = *kinds == 'n';
    return grid;
}

static bool reserve(kprof_grid *grid)
{
    if (grid->cell_count < grid->capacity)
        return true;
    size_t capacity = grid->capacity ? grid->capacity * 2 : 64;
    kprof_grid_cell *grown = realloc(grid->cells, capacity * sizeof *grown);
    if (!grown)
        return false;
    grid->cells = grown;
    grid->capacity = capacity;
    return true;
}

static size_t add_text(kprof_grid *grid, const char *text)
{
    size_t start = grid->texts.length;
    kprof_strbuf_append(&grid->texts, text, strlen(text) + 1);
    return start;
}

void kprof_grid_add(kprof_grid *grid, const char *text, const char *unit)
{
    kprof_grid_cell cell = {.text = add_text(grid, text)};
    cell.unit = *unit ? add_text(grid, unit) : cell.text + strlen(text);
    if (grid->texts.failed || !reserve(grid)) {
        grid->failed = true;
        return;
    }
    grid->cells[grid->cell_count++] = cell;
}

void kprof_grid_mark(kprof_grid *grid)
{
    if (grid->cell_count > 0)
        grid->cells[grid->cell_count - 1].is_marked = true;
}

static void clear(kprof_grid *grid)
{
    kprof_strbuf_clear(&grid->texts);
    grid->cell_count = 0;
}

void kprof_grid_free(kprof_grid *grid)
{
    clear(grid);
    kprof_strbuf_free(&grid->texts);
    free(grid->cells);
    grid->cells = NULL;
    grid->capacity = 0;
}

size_t kprof_text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Widths of a column: of its texts, and of the units and marks after them, with the space before these. */
typedef struct column_width {
    size_t text, unit, mark, total;
} column_width;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static const char *text_at(const kprof_grid *grid, size_t start)
{
    return grid->texts.data + start;
}

static const char *mark_of(const kprof_grid_cell *cell)
{
    return cell->is_marked ? "*" : "";
}

/* Columns of a unit or a mark; there is none without a space before it. */
static size_t with_space(const char *text)
{
    return *text ? kprof_text_width(text) + 1 : 0;
}

static column_width measure(const kprof_grid *grid, size_t column)
{
    column_width width = {0};
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        width.text = larger(width.text, kprof_text_width(text_at(grid, grid->cells[i].text)));
        width.unit = larger(width.unit, with_space(text_at(grid, grid->cells[i].unit)));
        width.mark = larger(width.mark, with_space(mark_of(&grid->cells[i])));
    }
    size_t content = width.text + width.unit + width.mark;
    width.total = larger(content, grid->headers[column] ? kprof_text_width(grid->headers[column]) : 0);
    width.text += width.total - content; /* a wide header moves the numbers to the right */
    return width;
}

/* A line being printed. Spaces are held back until something follows, so that none ends in them. */
typedef struct grid_line {
    kprof_output *out;
    size_t pending;
} grid_line;

static void put(grid_line *line, const char *text)
{
    if (!*text)
        return;
    kprof_output_repeat(line->out, ' ', line->pending);
    kprof_output_puts(line->out, text);
    line->pending = 0;
}

/* A unit or a mark, which begins its part of a column. */
static void put_after(grid_line *line, const char *text, size_t width)
{
    line->pending += *text ? 1 : 0;
    put(line, text);
    line->pending += width - with_space(text);
}

static void put_aligned(grid_line *line, const char *text, size_t width, bool is_number)
{
    size_t padding = width - kprof_text_width(text);
    line->pending += is_number ? padding : 0;
    put(line, text);
    line->pending += is_number ? 0 : padding;
}

static void print_header(const kprof_grid *grid, kprof_output *out, const column_width *widths)
{
    grid_line line = {out, 0};
    for (size_t i = 0; i < grid->column_count; i++) {
        put_aligned(&line, grid->headers[i] ? grid->headers[i] : "", widths[i].total, grid->is_number[i]);
        line.pending += COLUMN_GAP;
    }
    kprof_output_puts(out, "\n");
}

static void print_row(const kprof_grid *grid, kprof_output *out, const kprof_grid_cell *cells,
                      const column_width *widths)
{
    grid_line line = {out, 0};
    for (size_t i = 0; i < grid->column_count; i++) {
        put_aligned(&line, text_at(grid, cells[i].text), widths[i].text, grid->is_number[i]);
        put_after(&line, text_at(grid, cells[i].unit), widths[i].unit);
        put_after(&line, mark_of(&cells[i]), widths[i].mark);
        line.pending += COLUMN_GAP;
    }
    kprof_output_puts(out, "\n");
}

static bool has_header(const kprof_grid *grid)
{
    for (size_t i = 0; i < grid->column_count; i++) {
        if (grid->headers[i])
            return true;
    }
    return false;
}

static void shorten_cells(kprof_grid *grid, size_t room)
{
    for (size_t i = 0; i < grid->cell_count; i += grid->column_count) {
        const char *text = text_at(grid, grid->cells[i].text);
        char *shorter = kprof_text_width(text) > room ? kprof_text_elide(text, room) : NULL;
        if (!shorter)
            continue;
        size_t start = add_text(grid, shorter);
        free(shorter);
        if (grid->texts.failed)
            return;
        grid->cells[i].text = start;
    }
}

/* Make the lines as narrow as wanted, where shortening the first column's texts is enough for that. */
static void fit(kprof_grid *grid, column_width *widths, size_t indent)
{
    size_t total = indent;
    for (size_t i = 0; i < grid->column_count; i++)
        total += widths[i].total + (i ? COLUMN_GAP : 0);
    size_t excess = total - grid->width;
    if (grid->width == 0 || total <= grid->width || widths[0].total < excess + FIRST_WIDTH_MIN)
        return;
    shorten_cells(grid, widths[0].text - excess);
    widths[0] = measure(grid, 0);
}

void kprof_grid_print(kprof_grid *grid, kprof_output *out, size_t indent)
{
    column_width widths[KPROF_GRID_COLUMNS_MAX];
    if (grid->column_count == 0)
        return;
    for (size_t i = 0; i < grid->column_count; i++)
        widths[i] = measure(grid, i);
    fit(grid, widths, indent);
    if (has_header(grid) && (grid->cell_count > 0 || grid->is_headed)) {
        kprof_output_repeat(out, ' ', indent);
        print_header(grid, out, widths);
    }
    for (size_t i = 0; i + grid->column_count <= grid->cell_count; i += grid->column_count) {
        kprof_output_repeat(out, ' ', indent);
        print_row(grid, out, &grid->cells[i], widths);
    }
    clear(grid);
}
