/* The roofline's arithmetic, and its drawing. */

#include "report/emit/plot.h"
#include "report/store/derived.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kprof_roofline_point locate(double work, double traffic)
{
    return kprof_roofline_locate((kprof_roofline_input){work, 100e12, traffic, 4e12});
}

TEST(test_memory_bound)
{
    kprof_roofline_point point = locate(1e12, 2e12);
    assert_true(point.measured && point.has_work && point.memory_bound);
    assert_float_equal(point.intensity, 0.5, 1e-12);
    assert_float_equal(point.ridge, 25, 1e-12);
    assert_float_equal(point.attainable / 2e12, 1, 1e-12);
    assert_float_equal(point.pct, 50, 1e-9);
    assert_float_equal(point.headroom, 2, 1e-12);
}

TEST(test_compute_bound)
{
    kprof_roofline_point point = locate(80e12, 1e12);
    assert_true(point.has_work && !point.memory_bound);
    assert_float_equal(point.attainable / 100e12, 1, 1e-12);
    assert_float_equal(point.pct, 80, 1e-9);
    assert_float_equal(point.headroom, 1.25, 1e-12);
}

TEST(test_edges)
{
    kprof_roofline_point ridge = locate(100e12, 4e12);
    assert_false(ridge.memory_bound);
    assert_float_equal(ridge.pct, 100, 1e-9);
    kprof_roofline_point no_traffic = locate(50e12, 0);
    assert_true(no_traffic.has_work && isinf(no_traffic.intensity) && !no_traffic.memory_bound);
    assert_float_equal(no_traffic.pct, 50, 1e-9);
    kprof_roofline_point no_work = locate(0, 1e12);
    assert_true(no_work.measured && !no_work.has_work && isnan(no_work.pct) && no_work.intensity == 0);
    kprof_roofline_point nothing = locate(0, 0);
    assert_true(nothing.measured && !nothing.has_work && isnan(nothing.intensity));
}

TEST(test_missing)
{
    const kprof_roofline_input inputs[] = {
        {NAN, 1, 1, 1}, {1, NAN, 1, 1}, {1, 1, NAN, 1}, {1, 1, 1, NAN},
        {1, 0, 1, 1},   {1, 1, 1, 0},   {-1, 1, 1, 1},  {INFINITY, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        kprof_roofline_point point = kprof_roofline_locate(inputs[i]);
        assert_false(point.measured);
        assert_true(isnan(point.intensity) && isnan(point.attainable) && isnan(point.pct) && isnan(point.headroom));
    }
}

typedef struct drawn_point {
    double work, traffic;
} drawn_point;

/* Points of up to three rooflines with the same roofs, drawn into one plot. */
static char *draw(const drawn_point *points, size_t count, unsigned width)
{
    kprof_emit_metric metrics[3][4] = {{{0}}};
    kprof_emit_point at[3] = {{0}};
    kprof_emit_roofline lines[3];
    for (size_t i = 0; i < count; i++) {
        metrics[i][0].value = points[i].work;
        metrics[i][1].value = 100e12;
        metrics[i][2].value = points[i].traffic;
        metrics[i][3].value = 4e12;
        at[i] = (kprof_emit_point){.level = "DRAM", .traffic = &metrics[i][2], .peak = &metrics[i][3]};
        at[i].at = locate(points[i].work, points[i].traffic);
        lines[i] = (kprof_emit_roofline){"fp32", "FP32", &metrics[i][0], &metrics[i][1], &at[i], 1};
    }
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    kprof_output out;
    out = kprof_output_new(file, UINT64_MAX);
    assert_int_equal(kprof_plot_has_points(lines, count), at[0].at.has_work);
    kprof_plot_rooflines(&out, lines, count, width);
    assert_int_equal(kprof_output_finish(&out), KPROF_OK);
    fclose(file);
    return text;
}

/* Line and column of a point's mark, from the top left; labels are words, a mark stands alone. */
static void find(const char *text, char mark, size_t at[2])
{
    at[0] = at[1] = 0;
    for (; *text; text++) {
        bool alone = !(text[1] >= 'A' && text[1] <= 'Z') && !(text[-(at[1] > 0)] >= 'A' && text[-1] <= 'Z');
        if (*text == mark && alone)
            return;
        at[0] += *text == '\n';
        at[1] = *text == '\n' ? 0 : at[1] + 1;
    }
    fail_msg("no %c in the plot", mark);
}

TEST(test_points_stand_where_they_belong)
{
    const drawn_point points[] = {{0.1e12, 1e12}, {0.3e12, 3e12}, {60e12, 1e12}};
    KPROF_AUTO_FREE char *text = draw(points, 3, 100);
    assert_non_null(strstr(text, "FP32 100 TFLOP/s"));
    assert_non_null(strstr(text, "DRAM 4 TB/s"));
    assert_non_null(strstr(text, "FLOP/byte"));
    size_t slow[2], fast[2], intense[2];
    find(text, 'A', slow);
    find(text, 'B', fast);
    find(text, 'C', intense);
    assert_true(fast[0] < slow[0]); /* same intensity, more work: higher */
    assert_int_equal(fast[1], slow[1]);
    assert_true(intense[0] < fast[0]);
    assert_true(intense[1] > slow[1]); /* more work per byte: further right */
}

TEST(test_extremes_are_drawn_inside)
{
    const double works[] = {1e-300, 1e3, 1e300}, traffics[] = {0, 1e-300, 1e300};
    for (size_t i = 0; i < 9; i++) {
        const drawn_point point = {works[i / 3], traffics[i % 3]};
        char *text = draw(&point, 1, 40 + 30 * (unsigned)(i % 4));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            assert_true(strlen(line) <= 40 + 30 * (i % 4));
        free(text);
    }
}

TEST(test_few_columns_show_no_plot)
{
    const drawn_point point = {0.1e12, 1e12};
    for (unsigned width = 40; width < 100; width++) {
        char *text = draw(&point, 1, width);
        assert_int_equal(*text != '\0', width >= 54);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            assert_true(strlen(line) <= width);
        free(text);
    }
}
