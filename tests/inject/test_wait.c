/* Waiting for contexts with a limit: what does not end is told, and holds up no other context. */
#include "inject/wait.h"

#include "cupti/target.h"
#include "inject/engine.h"
#include "test.h"

#include <pthread.h>
#include <unistd.h>

#define HOLD_NS INT64_C(30000000)
#define LONG_NS INT64_C(60000000000) /* longer than a thread takes on any machine to begin */

enum { BUSY, OTHER, BROKEN, CONTEXTS };

static char contexts[CONTEXTS];
static __thread void *current;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool busy;              /* contexts[BUSY] is */
static bool other;             /* another context is at its place now */
static int inside;             /* threads that have entered a context */
static uint64_t passed, ahead; /* marks */
static uint64_t first;         /* the oldest of those ahead */
static bool moves;             /* a mark is passed at each look */
static bool captures;          /* a stream is captured, */
static unsigned captures_seen; /* as was asked so often */
static bool waited_within;     /* a wait began meanwhile */

static int add_inside(int change)
{
    pthread_mutex_lock(&mutex);
    inside += change;
    int now = inside;
    pthread_mutex_unlock(&mutex);
    return now;
}

/* In place of the engine's and of the driver's. */

static bool target_enter_context(void *context)
{
    current = context;
    add_inside(1);
    return true;
}

static void target_leave_context(void)
{
    current = NULL;
    add_inside(-1);
}

static kprof_progress marks_look(const void *context)
{
    if (moves)
        passed++;
    return (kprof_progress){passed, ahead, first};
}

static kprof_status target_synchronize(void)
{
    pthread_mutex_lock(&mutex);
    waited_within = waited_within || captures;
    bool is_idle = current != &contexts[BUSY] || other;
    while (busy && !is_idle)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return current == &contexts[BROKEN] ? KPROF_INTERNAL : KPROF_OK;
}

/* The capture ends while the thread looks. */
static bool target_capturing(void)
{
    pthread_mutex_lock(&mutex);
    const bool are = captures;
    captures = captures && ++captures_seen < 3;
    pthread_mutex_unlock(&mutex);
    return are;
}

static const kprof_device_ops device_ops = {.target_capturing = target_capturing,
                                            .target_enter_context = target_enter_context,
                                            .target_leave_context = target_leave_context,
                                            .marks_look = marks_look,
                                            .target_synchronize = target_synchronize};

static void set_busy(bool is)
{
    pthread_mutex_lock(&mutex);
    busy = is;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void set_other(bool is)
{
    pthread_mutex_lock(&mutex);
    other = is;
    pthread_mutex_unlock(&mutex);
}

TEST(test_idle_and_broken)
{
    kprof_wait_allow(LONG_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    assert_int_equal(kprof_wait_for_context(&contexts[BROKEN]), KPROF_INTERNAL);
    assert_true(kprof_wait_is_idle(KPROF_INTERNAL));
    assert_false(kprof_wait_is_idle(KPROF_NOT_COLLECTED));
}

/* The thread that waits for what is done by now may take a while to find out. */
static void assert_ends(void *context)
{
    kprof_status status = KPROF_NOT_COLLECTED;
    kprof_wait_allow(LONG_NS);
    while (status == KPROF_NOT_COLLECTED)
        status = kprof_wait_for_context(context);
    assert_int_equal(status, KPROF_OK);
}

TEST(test_busy)
{
    set_busy(true);
    kprof_wait_allow(HOLD_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED); /* at once */
    kprof_wait_allow(LONG_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    set_busy(false);
    assert_ends(&contexts[BUSY]);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_OK);
}

/* It would end the capture of another thread. */
TEST(test_no_wait_begins_within_a_capture)
{
    captures = true;
    kprof_wait_allow(LONG_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    assert_int_equal(captures_seen, 3);
    assert_false(waited_within);
}

/* Ends what is busy, long after the time in which a wait is given up where nothing ends. */
static void *end_work_late(void *user)
{
    usleep(10 * HOLD_NS / 1000);
    set_busy(false);
    return NULL;
}

/* Waits for work that does not end, and returns for how long. */
static int64_t give_up(int64_t limit_ns)
{
    kprof_wait_allow(kprof_engine.waits.hold_ns);
    assert_int_equal(kprof_wait_at_most(&contexts[BUSY], limit_ns), KPROF_NOT_COLLECTED);
    return kprof_engine.waits.hold_ns - kprof_wait_rest_ns();
}

/* All waits of a call together have the limit, work that was waited for in vain is only looked at from then on, and
 * work that ends meanwhile begins the time anew. */
TEST(test_limit)
{
    set_busy(true);
    ahead = 1;
    assert_int_equal(give_up(HOLD_NS / 2), HOLD_NS / 2);
    passed = 1; /* then it is worth to wait once more */
    kprof_wait_allow(HOLD_NS);
    assert_int_equal(kprof_wait_at_most(&contexts[BUSY], HOLD_NS / 2), KPROF_NOT_COLLECTED);
    passed = 2;
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED);
    assert_int_equal(kprof_wait_rest_ns(), 0);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED); /* at once */
    assert_int_equal(kprof_wait_rest_ns(), 0);
    assert_int_equal(give_up(INT64_MAX), 0);
    assert_int_equal(give_up(0), 0);
    set_busy(false);
    ahead = 0;
    assert_ends(&contexts[BUSY]);
}

/* Work that ends beside what a wait timed out for tells nothing of that. */
TEST(test_progress_beside)
{
    set_busy(true);
    ahead = 2;
    first = 7;
    assert_int_equal(give_up(HOLD_NS), HOLD_NS);
    passed++;
    assert_int_equal(give_up(HOLD_NS), 0);
    passed++;
    first = 8;
    assert_int_equal(give_up(HOLD_NS), HOLD_NS);
    set_busy(false);
    ahead = first = 0;
    assert_ends(&contexts[BUSY]);
}

/* Nor do marks of what comes behind a launch that has none. */
TEST(test_unmarked)
{
    set_busy(true);
    assert_int_equal(give_up(HOLD_NS), HOLD_NS);
    ahead = 1;
    first = 9;
    assert_int_equal(give_up(HOLD_NS), 0);
    passed++;
    assert_int_equal(give_up(HOLD_NS), 0);
    set_busy(false);
    ahead = first = 0;
    assert_ends(&contexts[BUSY]);
}

/* It goes on for as long as work ends. */
TEST(test_progress)
{
    pthread_t thread;
    set_busy(true);
    ahead = 1;
    moves = true;
    kprof_wait_allow(HOLD_NS);
    assert_int_equal(pthread_create(&thread, NULL, end_work_late, NULL), 0);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_OK);
    pthread_join(thread, NULL);
    moves = false;
    ahead = 0;
}

static void *end_work(void *user)
{
    usleep(100000);
    set_busy(false);
    return NULL;
}

/* A wait goes on, and does not concern the next context at that address. */
TEST(test_context_that_ends_busy)
{
    set_busy(true);
    (void)give_up(HOLD_NS);
    kprof_wait_forget(&contexts[BUSY]);
    set_other(true);
    kprof_wait_allow(LONG_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_OK);
    set_other(false);
    kprof_wait_allow(HOLD_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED);
}

/* Last: what is busy from the test before ends meanwhile, and its thread is out of the context before that goes; the
 * one that was forgotten while it was busy may still be there. */
TEST(test_context_that_ends)
{
    pthread_t thread;
    kprof_wait_forget(&contexts[OTHER]);
    assert_int_equal(pthread_create(&thread, NULL, end_work, NULL), 0);
    kprof_wait_forget(&contexts[BUSY]);
    assert_true(add_inside(0) <= 1);
    pthread_join(thread, NULL);
    kprof_wait_allow(LONG_NS);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_OK);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    kprof_engine.waits.hold_ns = HOLD_NS;
    return run_all_tests();
}
