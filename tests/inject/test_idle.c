/* Tests what kprof gives back when nothing was launched for a while, and what it keeps since something was. */
#include "core/monotonic.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "sim/clock.h"
#include "test.h"

#include <limits.h>
#include <stdatomic.h>
#include <time.h>

#define MOST_NOTED 1024

/* What each call of the function saw, in order, however late the test comes to look. */
static struct {
    unsigned calls;
    bool lasted;
} noted[MOST_NOTED];
static atomic_uint note_count, end_count, launches_to_come;
static atomic_bool may_end;
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
    if (calls == 0 && atomic_load(&refusals) > 0) {
        atomic_fetch_sub(&refusals, 1);
        sim_clock_advance_ms(20);
    } else if (calls == 0 && kprof_idle_begin()) {
        atomic_fetch_add(&begun, 1);
        kprof_idle_answer();
    }
    bool ends = atomic_load(&may_end);
    unsigned number = atomic_load(&note_count) % MOST_NOTED;
    noted[number].calls = calls;
    noted[number].lasted = kprof_idle_lasts();
    atomic_fetch_add(&note_count, 1);
    atomic_fetch_add(&end_count, ends);
    return ends;
}

static void await_notes(unsigned count)
{
    while (atomic_load(&note_count) < count)
        wait_ms(1);
}

static void begin(unsigned launches)
{
    atomic_store(&note_count, 0);
    atomic_store(&end_count, 0);
    atomic_store(&launches_to_come, launches);
    atomic_store(&may_end, false);
}

/* Have the function give all back, and wait until it has. */
static void end(void)
{
    atomic_store(&may_end, true);
    while (atomic_load(&end_count) == 0)
        wait_ms(1);
}

static void assert_noted(unsigned number, unsigned calls, bool lasted)
{
    assert_int_equal(noted[number].calls, calls);
    assert_int_equal(noted[number].lasted, lasted);
}

TEST(test_counts_quarters_of_a_second_until_all_is_given_back)
{
    begin(0);
    kprof_idle_start(give_back);
    kprof_idle_watch();
    await_notes(2);
    end();
    assert_noted(0, 1, true);
    assert_noted(1, 2, true);
    unsigned count = atomic_load(&note_count);
    wait_ms(600);
    assert_int_equal(atomic_load(&note_count), count);
}

TEST(test_waits_can_be_shorter)
{
    begin(0);
    const int64_t since_ns = kprof_monotonic_ns();
    kprof_idle_set_wait(1);
    kprof_idle_watch();
    await_notes(100);
    end();
    kprof_idle_set_wait(0);
    assert_true(kprof_monotonic_ns() - since_ns < 25 * INT64_C(1000000000)); /* as 100 quarters are */
}

TEST(test_a_launch_meanwhile_begins_anew)
{
    begin(2);
    kprof_idle_watch();
    await_notes(4);
    end();
    assert_false(noted[0].lasted);
    assert_noted(1, 1, false); /* the second call is the first again */
    assert_noted(2, 1, true);
    assert_noted(3, 2, true);
}

/* As when a signal is about to end the process: the function is asked while launches go on, too. */
TEST(test_is_called_while_launches_go_on)
{
    begin(0);
    for (unsigned i = 0, asked = 0; asked < 2; wait_ms(1)) {
        kprof_idle_watch();
        for (; i < atomic_load(&note_count); i++) {
            assert_true(noted[i].calls > 0 || !noted[i].lasted);
            asked += noted[i].calls == 0;
        }
    }
    end();
}

/* As before an exec: the function may not be able to act yet, and is called again. */
TEST(test_is_asked_and_answers)
{
    begin(0);
    kprof_idle_watch();
    kprof_idle_ask();
    assert_int_equal(atomic_load(&begun), 1);
    atomic_store(&refusals, 3);
    kprof_idle_ask();
    assert_int_equal(atomic_load(&begun), 2);
}

/* A thread that asks does not wait for ever, and work that nobody waits for is not begun. */
TEST(test_a_request_in_vain_ends)
{
    atomic_store(&refusals, UINT_MAX);
    kprof_idle_ask();
    assert_false(kprof_idle_begin());
    assert_int_equal(atomic_load(&begun), 2);
    end();
}

TEST(test_nothing_after_the_stop)
{
    kprof_idle_watch();
    kprof_idle_stop();
    unsigned count = atomic_load(&note_count);
    wait_ms(600);
    assert_true(atomic_load(&note_count) <= count + 1); /* a call may have been under way */
}

/* The application's signal handler exits where its thread has the lock. */
TEST(test_stop_within_a_call)
{
    pthread_mutex_lock(&kprof_the_idle.mutex);
    kprof_idle_stop();
    assert_int_equal(pthread_mutex_unlock(&kprof_the_idle.mutex), 0);
}
