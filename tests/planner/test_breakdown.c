/* The tables of the parts of throughputs: on counter data recorded on an H200, the first row of one of a section's
 * tables is what each throughput is limited by; and a part that is not collected keeps its row. */
#include <stdio.h>

#include "planner_test.h"
#include "test.h"

static kprof_strbuf image = KPROF_STRBUF_INIT;

static int set_up(void **state)
{
    FILE *file = fopen(COUNTER_DATA, "rb");
    char chunk[65536];
    size_t size;
    while (file && (size = fread(chunk, 1, sizeof chunk, file)) > 0)
        kprof_strbuf_append(&image, chunk, size);
    return file && fclose(file) == 0 && !image.failed ? set_up_catalog(state) : -1;
}

static int tear_down(void **state)
{
    kprof_strbuf_free(&image);
    return tear_down_catalog(state);
}

static double value_of(kprof_host *host, const char *name)
{
    char *names[] = {(char *)name};
    const kprof_strlist list = {names, 1, 1};
    const kprof_counter_data counters = {(const uint8_t *)image.data, image.length, 0};
    double value = -1;
    assert_int_equal(kprof_host_evaluate(host, &counters, &list, &value), KPROF_OK);
    return value;
}

static double highest_part(kprof_host *host, const kprof_table *table)
{
    double highest = -1;
    for (size_t i = 0; i < table->row_count; i++) {
        double value = value_of(host, table->rows[i].cells[0].name);
        highest = value > highest ? value : highest;
    }
    return highest;
}

static bool has_table_for(kprof_host *host, const kprof_section *section, double throughput)
{
    for (size_t i = 0; i < section->table_count; i++) {
        const double highest = highest_part(host, &section->tables[i]);
        if (highest > throughput - 1e-9 && highest < throughput + 1e-9)
            return true;
    }
    return false;
}

static kprof_plan plan_section(const char *id, kprof_host *host, uint32_t max_passes)
{
    char *ids[] = {(char *)id};
    const kprof_selection selection = {.sections = {ids, 1, 1}, .limits.max_passes = max_passes};
    kprof_plan plan;
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, host, &plan), KPROF_OK);
    return plan;
}

/* Each value below the heading that is a throughput, and that the section has tables for. */
static void check_throughputs(const char *id, size_t expected)
{
    kprof_host *host = NULL;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    kprof_plan plan = plan_section(id, host, 0);
    const kprof_section *section = &plan.sections[0];
    size_t checked = 0;
    for (size_t i = 0; i < section->item_count; i++) {
        const kprof_item *item = &section->items[i];
        if (!strstr(item->name, "throughput"))
            continue;
        checked++;
        if (!has_table_for(host, section, value_of(host, item->name)))
            fail_msg("%s is %f, which no row of a breakdown is", item->label, value_of(host, item->name));
    }
    assert_int_equal(checked, expected);
    kprof_plan_free(&plan);
    kprof_host_close(host);
}

TEST(test_speed_of_light)
{
    check_throughputs("SpeedOfLight", 5);
}

TEST(test_sm_busy)
{
    check_throughputs("ComputeWorkloadAnalysis", 1);
}

static size_t count_rows(const kprof_plan *plan, const char *table)
{
    const kprof_section *section = &plan->sections[0];
    for (size_t i = 0; i < section->table_count; i++) {
        if (strcmp(section->tables[i].id, table) == 0)
            return section->tables[i].row_count;
    }
    return 0;
}

/* In few passes some parts are not collected: their rows stay, as long as any part is. */
TEST(test_not_collected)
{
    kprof_host *host = NULL;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    kprof_plan whole = plan_section("SpeedOfLight", host, 0), part = plan_section("SpeedOfLight", host, 2);
    assert_true(part.collect.count < whole.collect.count);
    assert_int_equal(count_rows(&whole, "memory_breakdown"), 24);
    assert_int_equal(count_rows(&part, "memory_breakdown"), 24);
    assert_int_equal(count_rows(&whole, "l2_breakdown"), 10);
    kprof_plan_free(&part);
    kprof_plan_free(&whole);
    kprof_host_close(host);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up, tear_down)
