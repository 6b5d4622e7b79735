/* Helpers of the tests over the real Profiler Host API. */
#pragma once

#include "host/host.h"

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
