/* For tests: how many descriptors the process may open. */
#pragma once

#include "test.h"

#include <sys/resource.h>

/* The limit before; it is to be set again before anything is asserted. */
static inline rlim_t limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}
