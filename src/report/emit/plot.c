/* Draws into a grid of characters: memory roofs as rising lines, compute roofs as level ones, then points and labels.
 * And a chain of units with arrows between them. */
#include "report/emit/plot.h"
#include "report/emit/grid.h"
#include "report/model/units.h"

#include <math.h>
#include <string.h>

#define ROWS        18
#define COLUMNS_MIN 24
#define COLUMNS_MAX 84
#define AXIS_WIDTH  14 /* of the labels left of the plot */
#define DECADES_MAX 7  /* points further away are drawn at the edge */

typedef struct plot_area {
    char cells[ROWS][COLUMNS_MAX + 1];
    char labels[ROWS][COLUMNS_MAX + 1]; /* of the level lines of a row */
    size_t columns;
    double x_low, x_high, y_low, y_high; /* log10 of FLOP per byte and of FLOP per second */
    double top, steepest;                /* highest compute peak, FLOP/s; highest memory peak, bytes/s */
} plot_area;

char kprof_plot_mark(size_t index)
{
    static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return index < sizeof marks - 1 ? marks[index] : '*';
}

bool kprof_plot_has_points(const kprof_emit_roofline *rooflines, size_t count)
{
    return KPROF_ANY(i, count, KPROF_ANY(k, rooflines[i].point_count, rooflines[i].points[k].at.has_work));
}

static void widen(double range[2], double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    range[0] = fmin(range[0], log10(value));
    range[1] = fmax(range[1], log10(value));
}

/* Take in every measured point and the ridge of every pair of roofs. */
static void find_ranges(plot_area *plot, const kprof_emit_roofline *rooflines, size_t count)
{
    double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rooflines[i].point_count; k++) {
            const kprof_emit_point *point = &rooflines[i].points[k];
            if (!point->at.measured)
                continue;
            plot->top = fmax(plot->top, rooflines[i].peak->value);
            plot->steepest = fmax(plot->steepest, point->peak->value);
            widen(x, point->at.ridge);
            widen(x, point->at.has_work ? point->at.intensity : NAN);
            widen(y, rooflines[i].peak->value);
            widen(y, rooflines[i].work->value);
        }
    }
    plot->x_low = fmax(floor(x[0] - 0.3), floor(x[1] - DECADES_MAX));
    plot->x_high = ceil(x[1] + 1.2); /* room for the labels of the level lines */
    plot->y_high = ceil(y[1] + 0.1);
    plot->y_low = fmin(floor(y[0] - 0.1), plot->y_high - 3);
    plot->y_low = fmax(plot->y_low, plot->y_high - DECADES_MAX);
}

/* Row, from the top, and place inside the row (0 bottom to 1) of a rate; outside the plot, its edge. */
static size_t row_of(const plot_area *plot, double rate, double *inside)
{
    double at = (log10(rate) - plot->y_low) / (plot->y_high - plot->y_low) * ROWS;
    double row = floor(fmin(fmax(at, 0), ROWS - 0.001));
    *inside = at - row;
    return ROWS - 1 - (size_t)row;
}

static size_t column_of(const plot_area *plot, double intensity)
{
    double at = (log10(intensity) - plot->x_low) / (plot->x_high - plot->x_low) * (double)plot->columns;
    return (size_t)fmin(fmax(at, 0), (double)plot->columns - 1);
}

/* From where the steepest memory roof reaches it to the right edge. */
static void draw_compute_roof(plot_area *plot, const kprof_emit_roofline *roofline)
{
    double peak = roofline->peak->value, inside;
    size_t row = row_of(plot, peak, &inside);
    for (size_t column = column_of(plot, peak / plot->steepest); column < plot->columns; column++)
        plot->cells[row][column] = '-';
    kprof_human human = kprof_units_human(peak, "flop/second", false);
    size_t length = strlen(plot->labels[row]);
    snprintf(plot->labels[row] + length, sizeof plot->labels[row] - length, "%s %s %s %s", length ? "," : "",
             roofline->label, human.number, human.unit);
}

static void draw_points(plot_area *plot, const kprof_emit_roofline *rooflines, size_t count)
{
    size_t index = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rooflines[i].point_count; k++) {
            const kprof_emit_point *point = &rooflines[i].points[k];
            double inside;
            if (!point->at.has_work)
                continue;
            size_t row = row_of(plot, rooflines[i].work->value, &inside);
            char *cell = &plot->cells[row][column_of(plot, point->at.intensity)];
            *cell = (*cell >= 'A' && *cell <= 'Z') ? *cell : kprof_plot_mark(index);
            index++;
        }
    }
}

/* Write a text into a row if the cells are free; a free cell before and after keeps it apart. */
static bool put_if_free(plot_area *plot, size_t row, size_t column, const char *text)
{
    size_t length = strlen(text);
    if (column + length + 1 > plot->columns)
        return false;
    for (size_t i = 0; i < length; i++)
        if (plot->cells[row][column + i] != ' ')
            return false;
    memcpy(&plot->cells[row][column], text, length);
    return true;
}

/* Put it to the right of the line, which runs below it, or else to its left. */
static bool put_beside(plot_area *plot, size_t row, size_t column, const char *text)
{
    size_t length = strlen(text);
    return put_if_free(plot, row, column + 2, text) ||
           (column > length + 5 && put_if_free(plot, row, column - length - 5, text));
}

/* As low as there is room beside the line. */
static void label_memory_roof(plot_area *plot, const kprof_emit_point *point)
{
    char text[128];
    kprof_human human = kprof_units_human(point->peak->value, "byte/second", false);
    snprintf(text, sizeof text, "%.24s %s %s", point->level, human.number, human.unit);
    for (size_t row = ROWS - 1; row-- > 1;) {
        double rate = pow(10, plot->y_low + (ROWS - row) * (plot->y_high - plot->y_low) / ROWS);
        double at = log10(rate / point->peak->value);
        if (at >= plot->x_low && at < plot->x_high && put_beside(plot, row, column_of(plot, pow(10, at)), text))
            return;
    }
}

static bool is_same_level(const kprof_emit_point *point, const kprof_emit_point *other)
{
    return other->at.measured && strcmp(other->level, point->level) == 0 &&
           fabs(other->peak->value - point->peak->value) < 0.01 * point->peak->value;
}

/* The same level of memory appears under every precision: draw it once. */
static bool is_repeated(const kprof_emit_roofline *rooflines, size_t line, size_t level)
{
    const kprof_emit_point *point = &rooflines[line].points[level];
    return KPROF_ANY(i, line, KPROF_ANY(k, rooflines[i].point_count, is_same_level(point, &rooflines[i].points[k])));
}

typedef void draw_level(plot_area *plot, const kprof_emit_point *point);

static void draw_level_line(plot_area *plot, const kprof_emit_point *point)
{
    /* A rising line climbs less than a row per column: four characters give it a height inside the row. */
    static const char heights[] = "_.-'";
    for (size_t column = 0; column < plot->columns; column++) {
        double share = ((double)column + 0.5) / (double)plot->columns;
        double intensity = pow(10, plot->x_low + share * (plot->x_high - plot->x_low));
        double rate = intensity * point->peak->value, inside;
        if (rate > plot->top || log10(rate) < plot->y_low)
            continue;
        size_t row = row_of(plot, rate, &inside);
        plot->cells[row][column] = heights[(size_t)fmin(fmax(inside * 4, 0), 3)];
    }
}

static void each_level(plot_area *plot, const kprof_emit_roofline *rooflines, size_t count, draw_level *draw)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rooflines[i].point_count; k++)
            if (rooflines[i].points[k].at.measured && !is_repeated(rooflines, i, k))
                draw(plot, &rooflines[i].points[k]);
    }
}

static void draw(plot_area *plot, const kprof_emit_roofline *rooflines, size_t count)
{
    each_level(plot, rooflines, count, draw_level_line);
    for (size_t i = 0; i < count; i++)
        if (rooflines[i].point_count > 0 && rooflines[i].points[0].at.measured)
            draw_compute_roof(plot, &rooflines[i]);
    for (size_t row = 0; row < ROWS; row++) { /* labels of the level lines replace the lines' right ends */
        size_t length = strlen(plot->labels[row]);
        if (length > 0 && length < plot->columns)
            memcpy(&plot->cells[row][plot->columns - length], plot->labels[row], length);
    }
    draw_points(plot, rooflines, count);
    each_level(plot, rooflines, count, label_memory_roof);
}

/* A label at the row that a power of ten begins in, else nothing. */
static void axis_label(const plot_area *plot, size_t row, char *text, size_t size)
{
    double step = (plot->y_high - plot->y_low) / ROWS;
    double low = plot->y_low + (double)(ROWS - 1 - row) * step;
    double decade = ceil(low - 1e-9);
    *text = '\0';
    if (decade >= low + step - 1e-9)
        return;
    kprof_human human = kprof_units_human(pow(10, decade), "flop/second", false);
    snprintf(text, size, "%s %s", human.number, human.unit);
}

static void print_x_axis(const plot_area *plot, kprof_output *out)
{
    char ticks[COLUMNS_MAX + 32], numbers[COLUMNS_MAX + 32];
    memset(ticks, '-', sizeof ticks);
    memset(numbers, ' ', sizeof numbers);
    size_t end = 0;
    const int decades = (int)(plot->x_high - plot->x_low);
    for (int i = 0; i <= decades; i++) {
        size_t column = (size_t)i * plot->columns / (size_t)decades;
        char number[KPROF_NUMBER_SIZE];
        size_t length = kprof_number_general(number, pow(10, plot->x_low + i), 4);
        ticks[column] = '+';
        if (i > 0 && column <= end) /* the numbers would run together */
            continue;
        memcpy(&numbers[column], number, length);
        end = column + length;
    }
    const char *unit = end > plot->columns + 4 ? " FLOP/byte" : "  FLOP/byte"; /* within the width */
    kprof_output_printf(out, "%*s %.*s\n", AXIS_WIDTH, "", (int)plot->columns + 1, ticks);
    kprof_output_printf(out, "%*s %.*s%s\n", AXIS_WIDTH, "FLOP/s", (int)end, numbers, unit);
}

bool kprof_plot_rooflines(kprof_output *out, const kprof_emit_roofline *rooflines, size_t count, size_t width)
{
    plot_area plot;
    if (width < AXIS_WIDTH + COLUMNS_MIN + 16)
        return false;
    memset(&plot, 0, sizeof plot);
    memset(plot.cells, ' ', sizeof plot.cells);
    const size_t room = width - AXIS_WIDTH - 16;
    plot.columns = room > COLUMNS_MAX ? COLUMNS_MAX : room;
    find_ranges(&plot, rooflines, count);
    draw(&plot, rooflines, count);
    for (size_t row = 0; row < ROWS; row++) {
        char label[128];
        axis_label(&plot, row, label, sizeof label);
        size_t length = plot.columns;
        while (length > 0 && plot.cells[row][length - 1] == ' ')
            length--;
        kprof_output_printf(out, "%*s %c%.*s\n", AXIS_WIDTH, label, *label ? '+' : '|', (int)length, plot.cells[row]);
    }
    print_x_axis(&plot, out);
    return true;
}

#define CHAIN_INDENT 4
#define BETWEEN      " and "

static const char *second_unit(const char *label)
{
    const char *between = strstr(label, BETWEEN);
    return between ? between + strlen(BETWEEN) : NULL;
}

/* Does each row begin with the unit that the row before ends with? */
static bool is_chain(const kprof_table *table)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const char *label = table->rows[i].label, *unit = second_unit(label);
        if (!unit || strstr(label, BETWEEN) == label)
            return false;
        const char *next = i + 1 < table->row_count ? table->rows[i + 1].label : NULL;
        if (next &&
            (strncmp(next, unit, strlen(unit)) != 0 || second_unit(next) != next + strlen(unit) + strlen(BETWEEN)))
            return false;
    }
    return table->row_count > 1 && table->column_count > 1;
}

/* "<-- 1 MB ---" of `room` columns, or to the right. */
static void put_arrow(kprof_strbuf *line, const char *text, size_t room, bool to_left)
{
    static const char dashes[] = "--------------------------------";
    const size_t count = room - kprof_text_width(text) - strlen("<  ");
    kprof_strbuf_printf(line, " %s%.*s %s %.*s%s ", to_left ? "<" : "", (int)(count / 2), dashes, text,
                        (int)(count - count / 2), dashes, to_left ? "" : ">");
}

/* The first line has the units, and what goes to the left; the second what goes to the right. */
static void put_chain(kprof_strbuf lines[2], const kprof_table *table, const kprof_strbuf *cells, size_t room)
{
    const char *first = table->rows[0].label;
    kprof_strbuf_printf(&lines[0], "%.*s", (int)(strstr(first, BETWEEN) - first), first);
    for (size_t i = 0; i < table->row_count; i++) {
        const size_t column = kprof_text_width(kprof_strbuf_text(&lines[0]));
        kprof_strbuf_printf(&lines[1], "%*s", (int)(column - lines[1].length), "");
        put_arrow(&lines[0], kprof_strbuf_text(&cells[2 * i]), room, true);
        put_arrow(&lines[1], kprof_strbuf_text(&cells[2 * i + 1]), room, false);
        kprof_strbuf_puts(&lines[0], second_unit(table->rows[i].label));
    }
}

void kprof_plot_chain(kprof_output *out, const kprof_emit_table *table, bool base_units, size_t width)
{
    enum { ROWS_MAX = 8, DASHES = 6, ROOM_MAX = 40 };
    const kprof_table *rows = table->table;
    kprof_strbuf cells[2 * ROWS_MAX] = {{0}}, lines[2] = {{0}};
    if (rows->row_count > ROWS_MAX || !is_chain(rows))
        return;
    size_t room = 0;
    for (size_t i = 0; i < 2 * rows->row_count; i++) {
        const kprof_emit_metric *metric = table->cells[i / 2 * rows->column_count + i % 2];
        const kprof_human human =
            kprof_units_human(metric ? metric->value : NAN, metric ? metric->unit : "", base_units);
        kprof_human_put(&human, &cells[i]);
        const size_t needed = kprof_text_width(kprof_strbuf_text(&cells[i])) + strlen("<  ") + DASHES;
        room = needed > room ? needed : room;
    }
    if (room <= ROOM_MAX)
        put_chain(lines, rows, cells, room);
    const bool is_drawn = lines[0].length > 0 && CHAIN_INDENT + kprof_text_width(lines[0].data) <= width;
    for (int i = 0; is_drawn && i < 2; i++) {
        kprof_output_repeat(out, ' ', CHAIN_INDENT);
        kprof_output_put(out, lines[i].data, lines[i].length - (i == 1)); /* no space ends a line */
        kprof_output_puts(out, "\n");
    }
    for (size_t i = 0; i < 2 * rows->row_count; i++)
        kprof_strbuf_free(&cells[i]);
    KPROF_FREE_TEXTS(&lines[0], &lines[1]);
}
