/* What the tests over the real Profiler Host API share. */
#ifndef KPROF_TESTS_PLANNER_TEST_H
#define KPROF_TESTS_PLANNER_TEST_H

#include "metricset/metricset.h"

#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

/* False where libcupti is not installed or not built for: the test is to end with SKIPPED. */
static inline bool cupti_is_here(void)
{
    kprof_strlist chips = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_chips(&chips);
    kprof_strlist_free(&chips);
    return status != KPROF_UNSUPPORTED;
}

/* For what is tried on several chips: KPROF_TEST_CHIPS names fewer, where CUPTI is slow. */
static inline bool tries_chip(const char *chip)
{
    const char *wanted = getenv("KPROF_TEST_CHIPS");
    return !wanted || strstr(wanted, chip);
}

/* The shipped sets; NULL when they cannot be loaded. */
static inline kprof_catalog *load_shipped_catalog(void)
{
    char *items[] = {(char *)KPROF_METRICSETS_DIR};
    kprof_strlist folders = {items, 1, 1};
    kprof_catalog *catalog;
    return kprof_catalog_load(&folders, &catalog) == KPROF_OK ? catalog : NULL;
}

/* Group set-up and tear-down for tests that plan with the shipped sets. */
static kprof_catalog *shipped_catalog;

static inline int set_up_catalog(void **state)
{
    (void)state;
    shipped_catalog = load_shipped_catalog();
    return shipped_catalog ? 0 : -1;
}

static inline int tear_down_catalog(void **state)
{
    (void)state;
    kprof_catalog_free(shipped_catalog);
    return 0;
}

#endif
