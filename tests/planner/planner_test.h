/* Helpers of the tests of plans. */
#pragma once

#include "host/host_test.h"
#include "metricset/metricset.h"

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
    shipped_catalog = load_shipped_catalog();
    return shipped_catalog ? 0 : -1;
}

static inline int tear_down_catalog(void **state)
{
    kprof_catalog_free(shipped_catalog);
    return 0;
}

/* The same with a host of GH100. */
static kprof_host *gh100;

static inline int set_up_gh100(void **state)
{
    return set_up_catalog(state) == 0 && kprof_host_open("GH100", NULL, &gh100) == KPROF_OK ? 0 : -1;
}

static inline int tear_down_gh100(void **state)
{
    kprof_host_close(gh100);
    return tear_down_catalog(state);
}
