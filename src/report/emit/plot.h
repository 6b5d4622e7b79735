/* Drawings in text, ASCII only, so that they look the same on every terminal: a roofline plot, both axes logarithmic,
 * and a chart of what goes between the units of the memory system. */
#pragma once

#include "report/emit/emit.h"

/* The letter of a point in plot and legend: 'A' to 'Z', then 'a' to 'z', then '*'. */
char kprof_plot_mark(size_t index);
/* True when there is anything to draw: a roofline with a point that did work. */
bool kprof_plot_has_points(const kprof_emit_roofline *rooflines, size_t count);
/* Draw all rooflines in one plot of at most `width` columns, lines ending in newlines. Points are numbered in the order
 * of the rooflines and their levels, those without work left out. False, and nothing is drawn, where too few. */
bool kprof_plot_rooflines(kprof_output *out, const kprof_emit_roofline *rooflines, size_t count, size_t width);

/* Draw a table as a chain of units, in two lines: what each reads of the next one, and what it writes. The rows of such
 * a table are "SM and L1", "L1 and L2" and so on, and its first two columns what is read and written. Nothing is drawn
 * of other tables, or where `width` columns are too few. */
void kprof_plot_chain(kprof_output *out, const kprof_emit_table *table, bool base_units, size_t width);
