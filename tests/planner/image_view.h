/* Reads a config image, beside what the planner says about it. */
#pragma once

#include "host/nvpw.h"
#include "metricset/metricset.h"
#include "planner/planner.h"
#include "test.h"

#include <string.h>

/* NVPW puts this counter into the first pass of every image, whatever pass it is asked for. Peak rates have no other.
 */
#define TIMESTAMPS "0x0000000000000000"

enum { MOST_PASSES = 64 };

typedef struct image_view {
    kprof_strlist passes[MOST_PASSES]; /* [count]: the counters of each, sorted */
    size_t count;
} image_view;

static inline image_view view_image(const kprof_config_image *image)
{
    image_view view = {.count = image->pass_count};
    assert_true(view.count <= MOST_PASSES);
    for (size_t i = 0; i < view.count; i++) {
        kprof_strlist all = KPROF_STRLIST_INIT;
        assert_int_equal(kprof_image_counters(image, i, &all), KPROF_OK);
        for (size_t k = 0; k < all.count; k++)
            assert_true(strcmp(all.items[k], TIMESTAMPS) == 0 || kprof_strlist_add(&view.passes[i], all.items[k]));
        kprof_strlist_sort(&view.passes[i]);
        kprof_strlist_free(&all);
    }
    return view;
}

static inline void view_free(image_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        kprof_strlist_free(&view->passes[i]);
}

/* The passes that have counters of a metric as bits; the image has all that the metric requires. */
static inline uint64_t view_metric(const image_view *view, kprof_host *host, const char *name)
{
    kprof_strlist required = KPROF_STRLIST_INIT;
    uint64_t bits = 0;
    assert_int_equal(kprof_host_raw_counters(host, name, &required, NULL), KPROF_OK);
    for (size_t i = 0; i < required.count; i++) {
        uint64_t of_counter = strcmp(required.items[i], TIMESTAMPS) == 0;
        for (size_t pass = 0; pass < view->count; pass++)
            of_counter |= (uint64_t)kprof_strlist_contains_sorted(&view->passes[pass], required.items[i]) << pass;
        if (of_counter == 0)
            fail_msg("%s: %s", name, required.items[i]);
        bits |= of_counter;
    }
    kprof_strlist_free(&required);
    return bits;
}

static inline uint64_t bits_of_passes(const kprof_pass_list *list)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < list->count; i++)
        bits |= UINT64_C(1) << list->items[i];
    return bits;
}

/* Of the plan of a shipped set, what runs in passes of counters. */
static inline kprof_planned plan_set(kprof_host *host, const kprof_catalog *catalog, const char *set)
{
    char *sets[] = {(char *)set};
    kprof_selection selection = {.sets = {sets, 1, 1}};
    kprof_plan plan;
    assert_int_equal(kprof_plan_make(catalog, &selection, host, &plan), KPROF_OK);
    kprof_planned planned = {.collect = plan.collect, .variants = plan.variants, .schedule = plan.schedule};
    plan.collect = (kprof_strlist)KPROF_STRLIST_INIT;
    plan.variants = (kprof_image_variants){.witnesses = KPROF_STRLIST_INIT};
    plan.schedule = (kprof_schedule){0};
    kprof_plan_free(&plan);
    return planned;
}

/* Plan these names without limits. */
static inline kprof_planned plan_names(kprof_host *host, const kprof_strlist *names)
{
    const kprof_limits none = {0};
    kprof_planned planned;
    assert_int_equal(kprof_planner_make(host, &(kprof_planner_wish){names, &none}, &planned), KPROF_OK);
    return planned;
}
