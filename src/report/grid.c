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

void kprof_grid_add(kprof_grid *grid, const char *text, const char *unit)
{
    kprof_grid_cell cell = {strdup(text), strdup(unit)};
    if (!cell.text || !cell.unit || !reserve(grid)) {
        free(cell.text);
        free(cell.unit);
        grid->failed = true;
        return;
    }
    grid->cells[grid->cell_count++] = cell;
}

static void clear(kprof_grid *grid)
{
    for (size_t i = 0; i < grid->cell_count; i++) {
        free(grid->cells[i].text);
        free(grid->cells[i].unit);
    }
    grid->cell_count = 0;
}

void kprof_grid_free(kprof_grid *grid)
{
    clear(grid);
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

/* Widths of a column: of its texts, and of the units after them. */
typedef struct column_width {
    size_t text, unit, total;
} column_width;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static column_width measure(const kprof_grid *grid, size_t column)
{
    column_width width = {0, 0, 0};
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        width.text = larger(width.text, kprof_text_width(grid->cells[i].text));
        width.unit = larger(width.unit, kprof_text_width(grid->cells[i].unit));
    }
    size_t content = width.text + (width.unit ? width.unit + 1 : 0);
    width.total = larger(content, grid->headers[column] ? kprof_text_width(grid->headers[column]) : 0);
    width.text += width.total - content; /* a wide header moves the numbers to the right */
    return width;
}

/* Spaces are held back until something follows, so that no line ends in them. */
static void print_header(const kprof_grid *grid, kprof_output *out, const column_width *widths)
{
    size_t pending = 0;
    for (size_t i = 0; i < grid->column_count; i++) {
        const char *header = grid->headers[i] ? grid->headers[i] : "";
        size_t padding = widths[i].total - kprof_text_width(header);
        pending += grid->is_number[i] ? padding : 0;
        if (*header) {
            kprof_output_repeat(out, ' ', pending);
            pending = 0;
        }
        kprof_output_puts(out, header);
        pending += (grid->is_number[i] ? 0 : padding) + COLUMN_GAP;
    }
    kprof_output_puts(out, "\n");
}

static void print_row(const kprof_grid *grid, kprof_output *out, const kprof_grid_cell *cells,
                      const column_width *widths)
{
    size_t pending = 0;
    for (size_t i = 0; i < grid->column_count; i++) {
        size_t padding = widths[i].text - kprof_text_width(cells[i].text);
        pending += grid->is_number[i] ? padding : 0;
        if (*cells[i].text || *cells[i].unit) {
            kprof_output_repeat(out, ' ', pending);
            pending = 0;
        }
        kprof_output_puts(out, cells[i].text);
        pending += grid->is_number[i] ? 0 : padding + widths[i].total - widths[i].text;
        if (grid->is_number[i] && widths[i].unit) {
            kprof_output_puts(out, *cells[i].unit ? " " : "");
            kprof_output_puts(out, cells[i].unit);
            pending += widths[i].unit - kprof_text_width(cells[i].unit) + !*cells[i].unit;
        }
        pending += COLUMN_GAP;
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
        if (kprof_text_width(grid->cells[i].text) <= room)
            continue;
        char *shorter = kprof_text_elide(grid->cells[i].text, room);
        if (!shorter)
            return;
        free(grid->cells[i].text);
        grid->cells[i].text = shorter;
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
    shorten_cells(grid, widths[0].total - excess);
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
    if (has_header(grid) && grid->cell_count > 0) {
        kprof_output_repeat(out, ' ', indent);
        print_header(grid, out, widths);
    }
    for (size_t i = 0; i + grid->column_count <= grid->cell_count; i += grid->column_count) {
        kprof_output_repeat(out, ' ', indent);
        print_row(grid, out, &grid->cells[i], widths);
    }
    clear(grid);
}
