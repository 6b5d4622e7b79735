/* Threads that could be in the middle of a launch: one that runs, one that sleeps, and one that has ended. */
#include "cupti/unseen.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool ends;

static void *run(void *unused)
{
    while (!atomic_load(&ends))
        continue;
    return unused;
}

static void *rest(void *unused)
{
    while (!atomic_load(&ends))
        usleep(1000);
    return unused;
}

TEST(threads_that_have_gone_on)
{
    pthread_t running, resting;
    assert_true(kprof_unseen_await()); /* there is no other */
    assert_int_equal(pthread_create(&running, NULL, run, NULL), 0);
    assert_int_equal(pthread_create(&resting, NULL, rest, NULL), 0);
    assert_true(kprof_unseen_await());
    atomic_store(&ends, true);
    pthread_join(running, NULL);
    pthread_join(resting, NULL);
    assert_true(kprof_unseen_await());
}
