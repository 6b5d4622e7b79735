/* Counter data recorded on an H200 (c[i] = a[i] + b[i] over 2^24 floats), evaluated here without a GPU: the values must
 * be those that the recording machine printed, and the sections made from them must say what is known by arithmetic. */
#include "planner_test.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 1 << 24, MAX_LINE = 512 };

static kprof_host *host;
static kprof_counter_data counters;
static uint8_t *image;

static int open_fixture(void **state)
{
    FILE *file = fopen(COUNTER_DATA, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return -1;
    long size = ftell(file);
    rewind(file);
    image = malloc((size_t)size);
    if (!image || fread(image, 1, (size_t)size, file) != (size_t)size)
        return -1;
    fclose(file);
    counters = (kprof_counter_data){image, (size_t)size, 0};
    return kprof_host_open("GH100", NULL, &host) == KPROF_OK ? 0 : -1;
}

static int close_fixture(void **state)
{
    kprof_host_close(host);
    free(image);
    return 0;
}

/* Read "name value" lines; the values stay text, since six digits are all that was printed. */
static void read_expected(kprof_strlist *names, kprof_strlist *texts)
{
    FILE *file = fopen(KPROF_TESTS_DIR "/fixtures/cupti/vectoradd.values.txt", "r");
    assert_non_null(file);
    char line[MAX_LINE];
    while (fgets(line, sizeof(line), file)) {
        char *space = strchr(line, ' ');
        assert_non_null(space);
        *space = '\0';
        space[1 + strcspn(space + 1, "\n")] = '\0';
        assert_true(kprof_strlist_add(names, line) && kprof_strlist_add(texts, space + 1));
    }
    fclose(file);
}

TEST(test_recorded_values)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT, texts = KPROF_STRLIST_INIT;
    read_expected(&names, &texts);
    assert_int_equal(names.count, 292);
    KPROF_AUTO_FREE double *values = calloc(names.count, sizeof(*values));
    assert_non_null(values);
    assert_int_equal(kprof_host_evaluate(host, &counters, &names, values), KPROF_OK);
    for (size_t i = 0; i < names.count; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%g", values[i]);
        if (strcmp(text, texts.items[i]) != 0)
            fail_msg("%s is %s, not %s", names.items[i], text, texts.items[i]);
    }
}

/* Counters that were not recorded are missing, not 0. */
TEST(test_not_measured)
{
    char *items[] = {(char *)"lts__t_requests.sum", (char *)"smsp__inst_executed.sum"};
    kprof_strlist names = {items, 2, 2};
    double values[2] = {0, 0};
    assert_int_equal(kprof_host_evaluate(host, &counters, &names, values), KPROF_OK);
    assert_true(isnan(values[0]));
    assert_true(values[1] == ELEMENTS / 32.0 * 20); /* 20 instructions a warp */
}

typedef struct launch_values {
    const kprof_strlist *names;
    double *values;
} launch_values;

static double lookup(void *user, const char *name)
{
    const launch_values *from = user;
    for (size_t i = 0; i < from->names->count; i++) {
        if (strcmp(from->names->items[i], name) == 0)
            return from->values[i];
    }
    return NAN;
}

static kprof_plan plan_sections(const kprof_catalog *catalog, const char *first, const char *second)
{
    char *sections[] = {(char *)first, (char *)second};
    kprof_selection selection = {.sections = {sections, 2, 2}};
    kprof_plan plan;
    assert_non_null(catalog);
    assert_int_equal(kprof_plan_make(catalog, &selection, host, &plan), KPROF_OK);
    return plan;
}

static double value_of(const kprof_item *item, launch_values *from)
{
    return kprof_expr_evaluate(item->compiled, lookup, from);
}

static void assert_near(double value, double expected, const char *what)
{
    if (!(fabs(value - expected) <= 1e-3 * fabs(expected)))
        fail_msg("%s is %g, not %g", what, value, expected);
}

static void check_speed_of_light(const kprof_section *section, launch_values *from)
{
    assert_string_equal(section->id, "SpeedOfLight");
    assert_string_equal(section->items[1].label, "Memory Throughput");
    assert_near(value_of(&section->items[1], from), 70.3804, "memory throughput");
    /* A throughput is the greatest of its breakdown. */
    for (size_t i = 0; i < section->table_count; i++) {
        double greatest = -1;
        for (size_t j = 0; j < section->tables[i].row_count; j++)
            greatest = fmax(greatest, value_of(&section->tables[i].rows[j].cells[0], from));
        assert_near(greatest, value_of(&section->items[i], from), section->tables[i].id);
    }
}

static void check_roofline(const kprof_section *section, launch_values *from)
{
    assert_int_equal(section->roofline_count, 1);
    const kprof_roofline *line = &section->rooflines[0];
    assert_string_equal(line->id, "fp32");
    double ghz = lookup(from, "sm__cycles_elapsed.avg.per_second");
    assert_near(value_of(&line->peak, from), 132 * 128 * 2 * ghz, "FP32 peak: 132 SMs, 128 FMA each");
    assert_true(isnan(value_of(&line->work, from))); /* its counters were not recorded */
    assert_string_equal(line->roofs[0].label, "DRAM");
    double bytes = value_of(&line->roofs[0].traffic, from) * lookup(from, "gpu__time_duration.sum") * 1e-9;
    assert_true(bytes > 3.0 * 4 * ELEMENTS && bytes < 1.08 * 3 * 4 * ELEMENTS);
    assert_true(fabs(value_of(&line->roofs[0].peak, from) / 4.8e12 - 1) < 0.01); /* as sold: 4.8 TB/s */
    double l2 = value_of(&line->roofs[1].traffic, from), l2_peak = value_of(&line->roofs[1].peak, from);
    assert_true(l2 > 0 && l2 < l2_peak);
}

TEST(test_sections)
{
    kprof_catalog *catalog = load_shipped_catalog();
    kprof_plan plan = plan_sections(catalog, "SpeedOfLight", "SpeedOfLight_HierarchicalSingleRooflineChart");
    KPROF_AUTO_FREE double *values = calloc(plan.collect.count, sizeof(*values));
    assert_non_null(values);
    assert_int_equal(kprof_host_evaluate(host, &counters, &plan.collect, values), KPROF_OK);
    launch_values from = {&plan.collect, values};
    assert_int_equal(plan.section_count, 2);
    check_speed_of_light(&plan.sections[0], &from);
    check_roofline(&plan.sections[1], &from);
    kprof_plan_free(&plan);
    kprof_catalog_free(catalog);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(open_fixture, close_fixture)
