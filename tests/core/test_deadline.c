/* Waits end by the clock that nobody can set. */
#include "core/deadline.h"
#include "core/monotonic.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_monotonic(void **state)
{
    (void)state;
    const int64_t before_ns = kprof_monotonic_ns();
    const struct timespec until = kprof_deadline_after_ns(1500000000);
    const int64_t until_ns = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec;
    assert_in_range(until_ns - 1500000000, before_ns, kprof_monotonic_ns());
}

/* By the time of day, which counts from 1970, a moment of this clock has passed long ago. */
static void test_condition(void **state)
{
    (void)state;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    kprof_monotonic_condition(&condition);
    const struct timespec until = kprof_deadline_after_ns(1000000);
    assert_int_equal(pthread_mutex_lock(&mutex), 0);
    int result = 0;
    while (result == 0)
        result = pthread_cond_timedwait(&condition, &mutex, &until);
    assert_int_equal(result, ETIMEDOUT);
    assert_true(kprof_monotonic_ns() >= (int64_t)until.tv_sec * 1000000000 + until.tv_nsec);
    assert_int_equal(pthread_mutex_unlock(&mutex), 0);
    assert_int_equal(pthread_cond_destroy(&condition), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_monotonic), cmocka_unit_test(test_condition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
