/* Passes of samples over time, as CUPTI schedules them on the chips. */
#include "planner/timeline.h"
#include "planner_test.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* The last two need two passes each, or are not there. */
static char *const tried[] = {
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram__read_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.per_cycle_elapsed",
    "sm__ctas_launched.sum",
    "l1tex__t_sector_hit_rate.pct",
    "smsp__inst_executed.avg.per_cycle_elapsed",
    "lts__t_sector_hit_rate.pct",
    "no__such_metric.sum",
};
#define TRIED_COUNT (sizeof tried / sizeof *tried)

static kprof_host *open_chip(const char *chip)
{
    kprof_host *host;
    assert_int_equal(kprof_host_open(chip, NULL, &host), KPROF_OK);
    return host;
}

static void list_possible(kprof_host *host, kprof_strlist *out)
{
    for (size_t i = 0; i < TRIED_COUNT; i++)
        if (kprof_host_can_sample(host, tried[i]))
            assert_true(kprof_strlist_add(out, tried[i]));
}

/* CUPTI takes each image: it has one pass, and nothing is in two of them. */
static void assert_is_plan(kprof_host *host, const kprof_strlist *names, const kprof_timeline_plan *plan)
{
    size_t count = plan->left_out.count;
    for (size_t i = 0; i < plan->count; i++) {
        const kprof_timeline_pass *pass = &plan->passes[i];
        kprof_config_image image;
        assert_string_equal(pass->metrics.items[0], KPROF_SAMPLE_ACTIVITY);
        assert_int_equal(kprof_host_sample_image(host, &pass->metrics, &image), KPROF_OK);
        assert_int_equal(image.pass_count, 1);
        assert_int_equal(image.size, pass->image.size);
        kprof_config_image_free(&image);
        for (size_t k = 1; k < pass->metrics.count; k++)
            assert_true(kprof_strlist_contains(names, pass->metrics.items[k]));
        count += pass->metrics.count - 1;
    }
    assert_int_equal(count, names->count);
}

static void assert_same(const kprof_timeline_plan *a, const kprof_timeline_plan *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->passes[i].metrics.count, b->passes[i].metrics.count);
        for (size_t k = 0; k < a->passes[i].metrics.count; k++)
            assert_string_equal(a->passes[i].metrics.items[k], b->passes[i].metrics.items[k]);
        assert_int_equal(a->passes[i].image.size, b->passes[i].image.size);
        assert_memory_equal(a->passes[i].image.data, b->passes[i].image.data, a->passes[i].image.size);
    }
}

static void plan_on(const char *chip)
{
    kprof_host *host = open_chip(chip);
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_timeline_plan plan, again, one;
    assert_true(kprof_host_can_sample(host, tried[0]));
    assert_false(kprof_host_can_sample(host, "lts__t_sector_hit_rate.pct"));
    assert_false(kprof_host_can_sample(host, "no__such_metric.sum"));
    assert_false(kprof_host_can_sample(host, "sm__cycles_active"));
    list_possible(host, &names);
    assert_true(names.count >= 4);
    assert_int_equal(kprof_timeline_make(host, &names, 0, &plan), KPROF_OK);
    assert_int_equal(plan.left_out.count, 0);
    assert_true(plan.count > 1); /* hit rates and warps of the SMs take counters of the same kind */
    assert_is_plan(host, &names, &plan);
    assert_int_equal(kprof_timeline_metric_count(&plan), names.count);
    assert_int_equal(kprof_timeline_make(host, &names, 0, &again), KPROF_OK);
    assert_same(&plan, &again); /* the latter was kept */
    assert_int_equal(kprof_timeline_make(host, &names, 1, &one), KPROF_OK);
    assert_int_equal(one.count, 1);
    assert_true(one.left_out.count > 0);
    assert_is_plan(host, &names, &one);
    kprof_timeline_free(&plan);
    kprof_timeline_free(&again);
    kprof_timeline_free(&one);
    kprof_host_close(host);
}

TEST(test_each_chip_samples_in_passes)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_chips(&chips), KPROF_OK);
    for (size_t i = 0; i < chips.count; i++)
        if (tries_chip(chips.items[i]))
            plan_on(chips.items[i]);
}

TEST(test_nothing_takes_no_pass)
{
    kprof_host *host = open_chip("GH100");
    kprof_strlist none = KPROF_STRLIST_INIT;
    kprof_timeline_plan plan;
    assert_int_equal(kprof_timeline_make(host, &none, 0, &plan), KPROF_OK);
    assert_int_equal(plan.count, 0);
    assert_int_equal(kprof_timeline_metric_count(&plan), 0);
    kprof_timeline_free(&plan);
    kprof_host_close(host);
}

/* Where GPUs are linked the one pass has all that it has elsewhere, and the links if there is space; then a second pass
 * is as elsewhere. */
static void sample_links_on(const kprof_catalog *catalog, kprof_host *host, const kprof_plan *elsewhere)
{
    const kprof_sampled_section linked = {"ProgramUtilization", true};
    const kprof_strlist *names = &elsewhere->timeline.passes->metrics;
    kprof_plan plan;
    assert_int_equal(kprof_plan_make_sampled(catalog, &linked, host, &plan), KPROF_OK);
    const kprof_strlist *more = &plan.timeline.passes->metrics;
    const size_t links = more->count - names->count;
    assert_int_equal(plan.timeline.count, links > 0 ? 2 : 1);
    assert_int_equal(plan.sections->timeline_count, more->count);
    assert_int_equal(plan.sections->timeline_count + plan.notes.count, 9);
    assert_int_equal(kprof_strlist_contains(more, "nvlrx__bytes.sum.per_second"), links > 0);
    for (size_t i = 0; i < names->count; i++) {
        assert_true(kprof_strlist_contains(more, names->items[i]));
        assert_true(links == 0 || kprof_strlist_contains(&plan.timeline.passes[1].metrics, names->items[i]));
    }
    printf("%s: %zu of links\n", plan.chip, links);
    if (strcmp(plan.chip, "GH100") == 0)
        assert_int_equal(links, 2);
    kprof_plan_free(&plan);
}

/* What kprof trace --pm-sampling samples: each item of the section is in the one pass, or a note tells why not. */
static void sample_program_on(const kprof_catalog *catalog, const char *chip)
{
    kprof_host *host = open_chip(chip);
    kprof_plan plan;
    size_t found = 0;
    assert_int_equal(
        kprof_plan_make_sampled(catalog, &(kprof_sampled_section){"ProgramUtilization", false}, host, &plan), KPROF_OK);
    assert_string_equal(plan.chip, chip);
    assert_int_equal(plan.collect.count, 0);
    assert_int_equal(plan.section_count, 1);
    assert_int_equal(plan.timeline.count, 1);
    const kprof_section *section = plan.sections;
    assert_int_equal(section->timeline_count, plan.timeline.passes->metrics.count);
    assert_int_equal(section->timeline_count + plan.notes.count, 7);
    for (size_t i = 0; i < section->timeline_count; i++) {
        assert_true(kprof_strlist_contains(&plan.timeline.passes->metrics, section->timeline[i].name));
        found += strcmp(section->timeline[i].label, "SMs Busy") == 0 ||
                 strcmp(section->timeline[i].label, "Instructions") == 0 ||
                 strncmp(section->timeline[i].label, "DRAM ", 5) == 0;
    }
    /* Graphics processors that share the memory of the host tell nothing of it. */
    const bool has_memory = strcmp(chip, "GA10B") != 0 && strcmp(chip, "GB10B") != 0 && strcmp(chip, "GB20B") != 0;
    assert_int_equal(found, has_memory ? 4 : 2);
    if (strcmp(chip, "GH100") == 0)
        assert_int_equal(section->timeline_count, 7);
    sample_links_on(catalog, host, &plan);
    kprof_plan_free(&plan);
    kprof_host_close(host);
}

TEST(test_each_chip_samples_programs)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    kprof_catalog *catalog = load_shipped_catalog();
    kprof_plan plan;
    assert_non_null(catalog);
    assert_int_equal(kprof_host_chips(&chips), KPROF_OK);
    for (size_t i = 0; i < chips.count; i++)
        if (tries_chip(chips.items[i]))
            sample_program_on(catalog, chips.items[i]);
    kprof_host *host = open_chip(chips.items[0]);
    assert_int_equal(kprof_plan_make_sampled(catalog, &(kprof_sampled_section){"NoSuchSection", false}, host, &plan),
                     KPROF_UNKNOWN_NAME);
    assert_int_equal(kprof_plan_make_sampled(catalog, &(kprof_sampled_section){"Occupancy", true}, host, &plan),
                     KPROF_UNSUPPORTED);
    kprof_host_close(host);
    kprof_catalog_free(catalog);
}

ONLY_WHERE(cupti_is_here)
