/* Waits end by the clock that nobody can set. */
#include "core/deadline.h"
#include "core/monotonic.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

TEST(test_monotonic)
{
    const int64_t before_ns = kprof_monotonic_ns();
    const struct timespec until = kprof_deadline_after_ns(1500000000);
    const int64_t until_ns = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec;
    assert_in_range(until_ns - 1500000000, before_ns, kprof_monotonic_ns());
}

/* By the time of day, which counts from 1970, a moment of this clock has passed long ago. */
TEST(test_condition)
{
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

static void ignore(int number) {}

/* A signal each millisecond does not prolong it, and what comes meanwhile is told. */
TEST(test_poll_beside_signals)
{
    const struct itimerval often = {{.tv_usec = 1000}, {.tv_usec = 1000}}, never = {{0}, {0}};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore}, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    const int64_t before_ns = kprof_monotonic_ns();
    assert_int_equal(kprof_monotonic_poll(&wait, 50), 0);
    assert_true(kprof_monotonic_ns() - before_ns >= 50000000);
    assert_int_equal(write(ends[1], "", 1), 1);
    assert_int_equal(kprof_monotonic_poll(&wait, 60000), 1);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    close(ends[0]);
    close(ends[1]);
}
