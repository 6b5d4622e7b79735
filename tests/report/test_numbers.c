/* Numbers, units, names made shorter and text made safe. */

#include "core/names.h"
#include "report/emit/grid.h"
#include "report/model/number.h"
#include "report/model/units.h"
#include "test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_exact(double value, const char *expected)
{
    char text[KPROF_NUMBER_SIZE];
    size_t length = kprof_number_exact(text, value);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

TEST(test_exact)
{
    expect_exact(0, "0");
    expect_exact(-0.0, "0");
    expect_exact(-17, "-17");
    expect_exact(0.1, "0.1");
    expect_exact(-38.72, "-38.72");
    expect_exact(0.05, "0.05");
    expect_exact(0.00012345, "0.00012345");
    expect_exact(999999999999999, "999999999999999");
    expect_exact(1e15, "1e+15");
    expect_exact(1e20, "1e+20");
    expect_exact(1.5e-9, "1.5e-09");
    expect_exact(100.0 / 3, "33.3333333333333");
    expect_exact(0.99999999999999989, "1");
    expect_exact(123456.789, "123456.789");
    expect_exact(NAN, "");
    expect_exact(INFINITY, "inf");
    expect_exact(-INFINITY, "-inf");
}

/* The texts are those of printf, for many magnitudes; a tie in the last digit may fall to the other side. */
TEST(test_exact_agrees_with_printf)
{
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double value = ((double)random / 1.8446744073709552e19 - 0.5) * pow(10, (double)(i % 24) - 7);
        char text[KPROF_NUMBER_SIZE], expected[KPROF_NUMBER_SIZE];
        kprof_number_exact(text, value);
        snprintf(expected, sizeof expected, "%.15g", value);
        double difference = fabs(strtod(text, NULL) - strtod(expected, NULL));
        if (difference > fabs(value) * 1.1e-14)
            fail_msg("%s is not %s", text, expected);
    }
}

static void expect_grouped(double value, kprof_number_style style, const char *expected)
{
    char text[KPROF_NUMBER_SIZE];
    kprof_number_grouped(text, value, style);
    assert_string_equal(text, expected);
}

TEST(test_integers_grouped)
{
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0"},
                {999, "999"},
                {-999, "-999"},
                {1000, "1,000"},
                {-1000, "-1,000"},
                {123456, "123,456"},
                {INT64_MAX, "9,223,372,036,854,775,807"},
                {INT64_MIN, "-9,223,372,036,854,775,808"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[KPROF_NUMBER_SIZE];
        assert_int_equal(kprof_number_integer_grouped(text, rows[i].value), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

TEST(test_grouped)
{
    expect_grouped(4963609951.19, (kprof_number_style){.decimals = 2}, "4,963,609,951.19");
    expect_grouped(123504, (kprof_number_style){.decimals = 2}, "123,504");
    expect_grouped(999.999, (kprof_number_style){.decimals = 2}, "1,000.00");
    expect_grouped(-0.001, (kprof_number_style){.decimals = 2}, "0.00");
    expect_grouped(-1234.5, (kprof_number_style){.decimals = 2}, "-1,234.50");
    expect_grouped(2, (kprof_number_style){.decimals = 2, .fixed = 1}, "2.00");
    expect_grouped(55.515539, (kprof_number_style){.decimals = 6}, "55.515539");
    expect_grouped(3225191234567.89, (kprof_number_style){.decimals = 2}, "3,225,191,234,567.89");
    expect_grouped(3225191234567.89, (kprof_number_style){.decimals = 2, .plain = 1}, "3225191234567.89");
    expect_grouped(-1234.5, (kprof_number_style){.decimals = 6, .plain = 1}, "-1234.500000");
    expect_grouped(NAN, (kprof_number_style){.decimals = 2}, "");
}

TEST(test_locale_changes_nothing)
{
    const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < 3; i++) {
        if (!setlocale(LC_NUMERIC, locales[i]))
            continue;
        expect_exact(0.5, "0.5");
        expect_exact(1.5e-9, "1.5e-09");
        expect_grouped(1234.5, (kprof_number_style){.decimals = 2}, "1,234.50");
    }
    setlocale(LC_NUMERIC, "C");
}

static void expect_human(double value, const char *unit, const char *expected)
{
    char text[160];
    kprof_human human = kprof_units_human(value, unit, false);
    snprintf(text, sizeof text, "%s|%s", human.number, human.unit);
    assert_string_equal(text, expected);
}

TEST(test_units)
{
    expect_human(62464, "ns", "62.46|us");
    expect_human(12, "ns", "12|ns");
    expect_human(2.5e12, "ns", "2,500|s");
    expect_human(3.2e12, "byte/second", "3.20|TB/s");
    expect_human(150754820096, "byte", "150.75|GB");
    expect_human(16384, "byte/block", "16.38|KB/block");
    expect_human(1.97321e9, "cycle/second", "1.97|GHz");
    expect_human(1980000, "khz", "1.98|GHz");
    expect_human(2500, "cycle/second", "2.50|kHz");
    expect_human(6.7e13, "flop/second", "67|TFLOP/s");
    expect_human(2.5e9, "inst/second", "2.50|Ginst/s");
    expect_human(123504, "cycle", "123,504|cycle");
    expect_human(38.7247, "%", "38.72|%");
    expect_human(0.00123456, "%", "0.00123|%");
    expect_human(0, "byte/second", "0|B/s");
    expect_human(NAN, "byte/second", "n/a|");
    kprof_human base = kprof_units_human(62464, "ns", true);
    assert_string_equal(base.number, "62,464");
    assert_string_equal(base.unit, "ns");
}

/* A number is read in any unit that it may be shown in. */
TEST(test_read_units)
{
    static const struct {
        const char *text, *unit;
        double factor; /* 0: no such unit */
    } rows[] = {
        {"", "ns", 1},
        {"ns", "ns", 1},
        {"us", "ns", 1e3},
        {"ms", "ns", 1e6},
        {"s", "ns", 1e9},
        {"KB", "byte", 1e3},
        {"gb", "byte", 1e9},
        {"byte", "byte", 1},
        {"GB/s", "byte/second", 1e9},
        {"GHz", "cycle/second", 1e9},
        {"%", "%", 1},
        {"inst", "inst", 1},
        {"us", "byte", 0},
        {"GB", "byte/second", 0},
        {"min", "ns", 0},
        {"%", "ns", 0},
        {"KB", "inst", 0},
        {"x", "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double factor;
        const bool is_unit = kprof_units_parse(rows[i].text, rows[i].unit, &factor);
        if (is_unit != (rows[i].factor > 0) || (is_unit && factor != rows[i].factor))
            fail_msg("\"%s\" of \"%s\": %d, %g", rows[i].text, rows[i].unit, is_unit, factor);
    }
}

TEST(test_units_like_ncu)
{
    char unit[64];
    kprof_units_ncu("cycle/second", unit, sizeof unit);
    assert_string_equal(unit, "hz");
    kprof_units_ncu("byte/second", unit, sizeof unit);
    assert_string_equal(unit, "byte/s");
    static const struct {
        double value, factor;
        const char *base, *scaled;
    } cases[] = {
        {999, 1, "ns", "ns"},
        {58850, 1e3, "ns", "us"},
        {7.2e13, 1e9, "ns", "s"},
        {189.52e6, 1e6, "byte", "Mbyte"},
        {3.22e12, 1e12, "byte/second", "Tbyte/s"},
        {1024, 1e3, "byte/block", "Kbyte/block"},
        {1.98e9, 1e9, "cycle/second", "Ghz"},
        {1980000, 1e6, "khz", "Ghz"},
        {5e12, 1e12, "inst/second", "Tinst/s"},
        {12058624, 1, "inst", "inst"},
        {5000, 1, "%", "%"},
        {-2000, 1e3, "byte", "Kbyte"},
        {NAN, 1, "byte", "byte"},
        {0, 1, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double factor = kprof_units_ncu_scale(cases[i].value, cases[i].base, unit, sizeof unit);
        assert_string_equal(unit, cases[i].scaled);
        assert_true(fabs(factor / cases[i].factor - 1) < 1e-12);
    }
    kprof_units_ncu("register/thread", unit, sizeof unit);
    assert_string_equal(unit, "register/thread");
}

/* Prints the grid, indented by one, and frees it. */
static void expect_grid(kprof_grid *grid, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    kprof_output out;
    out = kprof_output_new(file, UINT64_MAX);
    kprof_grid_print(grid, &out, 1);
    assert_int_equal(kprof_output_finish(&out), KPROF_OK);
    fclose(file);
    assert_string_equal(text, expected);
    kprof_grid_free(grid);
    free(text);
}

/* Two rows on lines of at most `width` columns. */
static void expect_rows(size_t width, const char *expected)
{
    kprof_grid grid = kprof_grid_make("tn");
    grid.width = width;
    kprof_grid_add(&grid, "Short", "");
    kprof_grid_add(&grid, "1", "%");
    kprof_grid_add(&grid, "A label of more than thirty letters", "");
    kprof_grid_add(&grid, "22", "%");
    expect_grid(&grid, expected);
}

TEST(test_grid_width)
{
    const char *in_full = " Short                                 1 %\n A label of more than thirty letters  22 %\n";
    expect_rows(0, in_full);
    expect_rows(42, in_full);
    expect_rows(32, " Short                  1 %\n A label of more than  22 %\n   thirty letters\n");
    expect_rows(10, " Short\n        1 %\n A label\n   of more\n   than\n   thirty\n   letters\n       22 %\n");
}

/* The grid leaves out the bars first, and then moves columns that do not fit into further blocks. */
static void expect_blocks(size_t width, const char *expected)
{
    kprof_grid grid = kprof_grid_make("tnnnt");
    grid.headers[0] = "Cache";
    grid.headers[1] = "Requests";
    grid.headers[2] = "Sectors";
    grid.headers[3] = "Hit Rate";
    grid.has_bars = true;
    grid.width = width;
    kprof_grid_add(&grid, "L1", "");
    kprof_grid_add(&grid, "10", "request");
    kprof_grid_add(&grid, "40", "sector");
    kprof_grid_add(&grid, "25", "%");
    kprof_grid_add(&grid, "[#   ]", "");
    kprof_grid_note(&grid, NULL, "What it is, in words.");
    expect_grid(&grid, expected);
}

/* The further lines of a text with a label stand below its first. */
TEST(test_grid_labelled_note)
{
    kprof_grid grid = kprof_grid_make("t");
    grid.width = 26;
    kprof_grid_add(&grid, "row", "");
    kprof_grid_note(&grid, "Top stall", "a wait that is long");
    expect_grid(&grid, " row\n"
                       "   Top stall   a wait that\n"
                       "               is long\n");
}

TEST(test_grid_blocks)
{
    expect_blocks(100, " Cache    Requests    Sectors  Hit Rate\n"
                       " L1     10 request  40 sector      25 %  [#   ]\n"
                       "   What it is, in words.\n");
    expect_blocks(40, " Cache    Requests    Sectors  Hit Rate\n"
                      " L1     10 request  40 sector      25 %\n"
                      "   What it is, in words.\n");
    expect_blocks(30, " Cache    Requests\n"
                      " L1     10 request\n"
                      "   What it is, in words.\n"
                      "          Sectors  Hit Rate\n"
                      " L1     40 sector      25 %\n");
}

/* Texts break between words, the longest first, and within words where that is not enough. */
static void expect_wrapped(size_t width, const char *expected)
{
    kprof_grid grid = kprof_grid_make("tnt");
    grid.headers[0] = "Metric";
    grid.headers[1] = "Value";
    grid.headers[2] = "Description";
    grid.width = width;
    grid.wraps = true;
    kprof_grid_add(&grid, "sm__throughput.avg.pct", "");
    kprof_grid_add(&grid, "1.50", "MB");
    kprof_grid_add(&grid, "The busiest part of the SMs, as a share of its peak", "");
    kprof_grid_add(&grid, "b", "");
    kprof_grid_add(&grid, "7", "");
    kprof_grid_add(&grid, "Short", "");
    expect_grid(&grid, expected);
}

TEST(test_grid_wraps)
{
    expect_wrapped(0, " Metric                    Value  Description\n"
                      " sm__throughput.avg.pct  1.50 MB  The busiest part of the SMs, as a share of its peak\n"
                      " b                          7     Short\n");
    expect_wrapped(61, " Metric                    Value  Description\n"
                       " sm__throughput.avg.pct  1.50 MB  The busiest part of the\n"
                       "                                  SMs, as a share of its peak\n"
                       " b                          7     Short\n");
    /* The name above its row leaves its column to the others. */
    expect_wrapped(52, " Metric    Value  Description\n"
                       " sm__throughput.avg.pct\n"
                       "         1.50 MB  The busiest part of the SMs, as a\n"
                       "                  share of its peak\n"
                       " b          7     Short\n");
}

/* Columns that can be folded stand below their rows before a word is broken, and long texts before they get narrow. */
static void expect_folded(size_t width, const char *expected)
{
    kprof_grid grid = kprof_grid_make("tnntt");
    static const char *const headers[] = {"Metric", "Minimum", "Maximum", "Kind", "Help"};
    static const kprof_grid_fold folds[] = {KPROF_FOLD_NEVER, KPROF_FOLD_LABELS, KPROF_FOLD_LABELS, KPROF_FOLD_NEVER,
                                            KPROF_FOLD_TEXT};
    for (size_t i = 0; i < 5; i++) {
        grid.headers[i] = headers[i];
        grid.folds[i] = folds[i];
    }
    grid.width = width;
    grid.wraps = true;
    kprof_grid_add(&grid, "sm__throughput.avg.pct", "");
    kprof_grid_add(&grid, "1.50", "MB");
    kprof_grid_add(&grid, "2", "MB");
    kprof_grid_add(&grid, "counter", "");
    kprof_grid_add(&grid, "The busiest part of the SMs, as a share of its peak", "");
    kprof_grid_add(&grid, "b", "");
    kprof_grid_add(&grid, "7", "");
    kprof_grid_add(&grid, "n/a", "");
    kprof_grid_miss(&grid);
    kprof_grid_add(&grid, "ratio", "");
    kprof_grid_add(&grid, "-", "");
    kprof_grid_miss(&grid);
    expect_grid(&grid, expected);
}

TEST(test_grid_folds)
{
    expect_folded(95, " Metric                  Minimum  Maximum  Kind     Help\n"
                      " sm__throughput.avg.pct  1.50 MB     2 MB  counter  The busiest part of the SMs, as a share of\n"
                      "                                                    its peak\n"
                      " b                          7      n/a     ratio    -\n");
    expect_folded(80, " Metric                  Kind\n"
                      " sm__throughput.avg.pct  counter\n"
                      "   The busiest part of the SMs, as a share of its peak\n"
                      "   Minimum 1.50 MB, Maximum 2 MB\n"
                      " b                       ratio\n"
                      "   Minimum 7\n");
}

/* Only a column with a mark is wider for it, and no line ends in spaces. */
TEST(test_grid_marks)
{
    kprof_grid grid = kprof_grid_make("tnn");
    kprof_grid_mark(&grid); /* no cell yet */
    grid.headers[0] = "What";
    grid.headers[1] = "One";
    grid.headers[2] = "Two";
    kprof_grid_add(&grid, "Read", "");
    kprof_grid_add(&grid, "1.50", "MB");
    kprof_grid_mark(&grid);
    kprof_grid_add(&grid, "2", "%");
    kprof_grid_add(&grid, "Written", "");
    kprof_grid_add(&grid, "11", "B");
    kprof_grid_add(&grid, "3", "%");
    kprof_grid_mark(&grid);
    kprof_grid_add(&grid, "All", "");
    kprof_grid_add(&grid, "4", "");
    kprof_grid_mark(&grid);
    kprof_grid_add(&grid, "n/a", "");
    expect_grid(&grid, " What           One      Two\n"
                       " Read     1.50 MB *    2 %\n"
                       " Written    11 B       3 % *\n"
                       " All         4    *  n/a\n");
}

/* `names` end with NULL, and so do the expected ones. */
static void expect_short(const char *const *names, size_t width, const char *const *expected)
{
    size_t count = 0;
    while (names[count])
        count++;
    KPROF_AUTO(kprof_pool) pool = {0};
    char **texts = kprof_short_names_new(&pool, names, count, width);
    assert_non_null(texts);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(texts[i], expected[i]);
        assert_true(kprof_text_width(texts[i]) <= width);
    }
}

#define NAMES(...)                                                                                                     \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

TEST(test_short_names)
{
    const char *add = "void ns::elementwise_kernel<4, ns::BinaryFunctor<float, float, ns::Add<float>>>(int, float*)";
    const char *mul = "void ns::elementwise_kernel<4, ns::BinaryFunctor<float, float, ns::Mul<float>>>(int, float*)";
    const char *other = "void reduce<512>(float const*, float*)";
    expect_short(NAMES(add, mul), 100, NAMES(add, mul));
    expect_short(NAMES(add), 40, NAMES("ns::elementwise_kernel<4, ns..., float*)"));
    expect_short(NAMES(add, mul, other), 40,
                 NAMES("ns::eleme... ns::Add<float>>>... float*)", "ns::eleme... ns::Mul<float>>>... float*)", other));
}

/* However alike and however narrow the lines: different names stay different, equal ones stay equal. */
TEST(test_short_names_differ)
{
    enum { COUNT = 64 };
    static char texts[COUNT][256];
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i],
                 "kernel<Layout<%zu, Shape<int, 128>>, Policy<%zu, Shape<int, 256>>, Tile<%zu>>(float*)", i / 16,
                 i / 4 % 4, i / 2 % 2);
        names[i] = texts[i];
    }
    for (size_t width = KPROF_SHORT_NAME; width < 90; width++) {
        KPROF_AUTO(kprof_pool) pool = {0};
        char **shown = kprof_short_names_new(&pool, names, COUNT, width);
        assert_non_null(shown);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(kprof_text_width(shown[i]) <= width);
            for (size_t k = 0; k < i; k++)
                assert_true((strcmp(shown[i], shown[k]) == 0) == (strcmp(names[i], names[k]) == 0));
        }
    }
}

static void expect_lines(const char *text, size_t width, const char *const *lines)
{
    for (; *text; text = kprof_text_next_line(text, width)) {
        assert_non_null(*lines);
        assert_int_equal(kprof_text_line(text, width), strlen(*lines));
        assert_memory_equal(text, *lines, strlen(*lines));
        lines++;
    }
    assert_null(*lines);
}

TEST(test_lines)
{
    expect_lines("Fits", 4, NAMES("Fits"));
    expect_lines("Some words here", 10, NAMES("Some words", "here"));
    expect_lines("l1tex__throughput.avg.pct", 20, NAMES("l1tex__throughput.", "avg.pct"));
    expect_lines("Barrier 40 %", 10, NAMES("Barrier", "40 %"));
    expect_lines("abcdefgh", 3, NAMES("abc", "def", "gh"));
    expect_lines("gr\xc3\xbc\xc3\x9f dich", 4, NAMES("gr\xc3\xbc\xc3\x9f", "dich"));
    expect_lines("ab", 0, NAMES("a", "b"));
}

TEST(test_names)
{
    static char texts[1000][16];
    kprof_names names = {0};
    assert_true(kprof_names_find(&names, "a") == KPROF_NAMES_NONE);
    for (size_t i = 0; i < 1000; i++) {
        snprintf(texts[i], sizeof texts[i], "metric%zu", i);
        assert_true(kprof_names_add(&names, texts[i], i));
    }
    assert_true(kprof_names_add(&names, "metric7", 99));
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(kprof_names_find(&names, texts[i]), i);
    assert_true(kprof_names_find(&names, "metric1000") == KPROF_NAMES_NONE);
    char text[] = "kept";
    assert_true(kprof_names_keep(&names, text, 5) && kprof_names_keep(&names, text, 6));
    text[0] = 'l';
    assert_true(kprof_names_find(&names, "kept") == 5 && kprof_names_find(&names, text) == KPROF_NAMES_NONE);
    assert_int_equal(names.copies.count, 1);
    kprof_names_free(&names);
}
