/* A roofline plot in text: both axes logarithmic, ASCII only, so that it looks the same on every terminal. */
#ifndef KPROF_REPORT_PLOT_H
#define KPROF_REPORT_PLOT_H

#include "report/emit.h"

/* The letter of a point in plot and legend: 'A' to 'Z', then 'a' to 'z', then '*'. */
char kprof_plot_mark(size_t index);
/* True when there is anything to draw: a roofline with a point that did work. */
bool kprof_plot_has_points(const kprof_emit_roofline *rooflines, size_t count);
/* Draw all rooflines in one plot of at most `width` columns, lines ending in newlines. Points are numbered in the order
 * of the rooflines and their levels, those without work left out. */
void kprof_plot_rooflines(kprof_output *out, const kprof_emit_roofline *rooflines, size_t count, unsigned width);

#endif
