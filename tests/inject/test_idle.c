/* Tests what kprof gives back when nothing was launched for a while, and what it keeps since something was. */
#include "inject/engine.h"
#include "inject/idle.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static atomic_uint calls_seen, launches_to_come;
static atomic_uint zero_calls;
static atomic_bool may_end, lasted;
static atomic_uint refusals, begun; /* of what is asked for before an exec */

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* As when a launch ends while the watching thread waits for its turn. */
static bool give_back(unsigned calls)
{
    if (atomic_load(&launches_to_come) > 0) {
        atomic_fetch_sub(&launches_to_come, 1);
        kprof_idle_watch();
    }
    atomic_fetch_add(&zero_calls, calls == 0);
    if (calls == 0 && atomic_load(&refusals) > 0) {
        atomic_fetch_sub(&refusals, 1);
    } else if (calls == 0 && kprof_idle_begin()) {
        atomic_fetch_add(&begun, 1);
        kprof_idle_answer();
    }
    atomic_store(&lasted, kprof_idle_lasts());
    atomic_store(&calls_seen, calls);
    return atomic_load(&may_end);
}

static void await_calls(unsigned wanted)
{
    while (atomic_load(&calls_seen) < wanted)
        wait_ms(1);
}

static void test_counts_quarters_of_a_second_until_all_is_given_back(void **state)
{
    (void)state;
    kprof_idle_start(give_back);
    kprof_idle_watch();
    await_calls(1);
    assert_true(atomic_load(&lasted));
    atomic_store(&may_end, true);
    await_calls(2);
    atomic_store(&calls_seen, 0);
    wait_ms(600);
    assert_int_equal(atomic_load(&calls_seen), 0);
}

static void test_a_launch_meanwhile_begins_anew(void **state)
{
    (void)state;
    atomic_store(&may_end, false);
    atomic_store(&launches_to_come, 2);
    kprof_idle_watch();
    await_calls(1);
    assert_false(atomic_load(&lasted));
    while (atomic_load(&launches_to_come) > 0) /* the second call is the first again */
        wait_ms(1);
    await_calls(2);
    assert_true(atomic_load(&lasted));
    atomic_store(&may_end, true);
    await_calls(3);
}

/* As when a signal is about to end the process: the function is asked while launches go on, too. */
static void test_is_called_while_launches_go_on(void **state)
{
    (void)state;
    atomic_store(&may_end, false);
    atomic_store(&zero_calls, 0);
    while (atomic_load(&zero_calls) < 2) {
        kprof_idle_watch();
        wait_ms(1);
    }
    assert_false(atomic_load(&lasted));
    atomic_store(&may_end, true);
    atomic_store(&calls_seen, 0);
    await_calls(1);
}

/* As before an exec: the function may not be able to act yet, and is called again. */
static void test_is_asked_and_answers(void **state)
{
    (void)state;
    atomic_store(&may_end, false);
    kprof_idle_watch();
    kprof_idle_ask();
    assert_int_equal(atomic_load(&begun), 1);
    atomic_store(&refusals, 3);
    kprof_idle_ask();
    assert_int_equal(atomic_load(&begun), 2);
}

/* A thread that asks does not wait for ever, and work that nobody waits for is not begun. */
static void test_a_request_in_vain_ends(void **state)
{
    (void)state;
    atomic_store(&refusals, UINT_MAX);
    kprof_idle_ask();
    assert_false(kprof_idle_begin());
    assert_int_equal(atomic_load(&begun), 2);
    atomic_store(&may_end, true);
    atomic_store(&calls_seen, 0);
    await_calls(1);
}

static void test_nothing_after_the_stop(void **state)
{
    (void)state;
    atomic_store(&calls_seen, 0);
    kprof_idle_watch();
    kprof_idle_stop();
    wait_ms(600);
    assert_int_equal(atomic_load(&calls_seen), 0);
}

/* The application's signal handler exits where its thread has the lock. */
static void test_stop_within_a_call(void **state)
{
    (void)state;
    pthread_mutex_lock(&kprof_engine.idle.mutex);
    kprof_idle_stop();
    assert_int_equal(pthread_mutex_unlock(&kprof_engine.idle.mutex), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_quarters_of_a_second_until_all_is_given_back),
        cmocka_unit_test(test_a_launch_meanwhile_begins_anew),
        cmocka_unit_test(test_is_called_while_launches_go_on),
        cmocka_unit_test(test_is_asked_and_answers),
        cmocka_unit_test(test_a_request_in_vain_ends),
        cmocka_unit_test(test_nothing_after_the_stop),
        cmocka_unit_test(test_stop_within_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
