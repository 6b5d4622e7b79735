/* Waiting for contexts with a limit: what does not end is told, and holds up no other context. */
#include "inject/wait.h"

#include "cupti/target.h"
#include "inject/engine.h"
#include "inject/launch.h"
#include "log_capture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BUSY, OTHER, BROKEN, CONTEXTS };

static char contexts[CONTEXTS];
static __thread void *current;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool busy;  /* contexts[BUSY] is */
static bool other; /* another context is at its place now */
static int inside; /* threads that have entered a context */
static unsigned sharing;

static int add_inside(int change)
{
    pthread_mutex_lock(&mutex);
    inside += change;
    int now = inside;
    pthread_mutex_unlock(&mutex);
    return now;
}

/* In place of the engine's and of the driver's. */
void kprof_launch_mark_own(void) {}

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

static unsigned target_sharing(void)
{
    return sharing;
}

static kprof_status target_synchronize(void)
{
    pthread_mutex_lock(&mutex);
    bool is_idle = current != &contexts[BUSY] || other;
    while (busy && !is_idle)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return current == &contexts[BROKEN] ? KPROF_INTERNAL : KPROF_OK;
}

static const kprof_device_ops device_ops = {.target_enter_context = target_enter_context,
                                            .target_leave_context = target_leave_context,
                                            .target_sharing = target_sharing,
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

static void test_idle_and_broken(void **state)
{
    (void)state;
    assert_int_equal(kprof_wait_with_limit(&contexts[OTHER]), KPROF_OK);
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    assert_int_equal(kprof_wait_for_context(&contexts[BROKEN]), KPROF_INTERNAL);
    assert_true(kprof_wait_is_idle(KPROF_INTERNAL));
    assert_false(kprof_wait_is_idle(KPROF_NOT_COLLECTED));
}

/* The thread that waits for what is done by now may take a while to find out. */
static void assert_ends(void *context)
{
    kprof_status status = KPROF_NOT_COLLECTED;
    while (status == KPROF_NOT_COLLECTED)
        status = kprof_wait_with_limit(context);
    assert_int_equal(status, KPROF_OK);
}

static void test_busy(void **state)
{
    (void)state;
    set_busy(true);
    assert_int_equal(kprof_wait_with_limit(&contexts[BUSY]), KPROF_NOT_COLLECTED);
    assert_int_equal(kprof_wait_with_limit(&contexts[BUSY]), KPROF_NOT_COLLECTED); /* at once */
    assert_int_equal(kprof_wait_for_context(&contexts[OTHER]), KPROF_OK);
    set_busy(false);
    assert_ends(&contexts[BUSY]);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_OK);
}

/* Starts work that does not end, and gives it up within the time that the message tells. */
static void assert_gives_up(const char *within)
{
    log_capture capture;
    log_capture_start(&capture);
    set_busy(true);
    assert_int_equal(kprof_wait_for_context(&contexts[BUSY]), KPROF_NOT_COLLECTED);
    assert_non_null(strstr(capture.last, within));
    kprof_log_set_sink(NULL, NULL);
}

static void test_long_wait_only_once(void **state)
{
    (void)state;
    kprof_engine.waits.long_limit_s = 2;
    kprof_engine.batch.needs = 1; /* a launch by itself is waited for less, and that tells nothing of others */
    assert_gives_up("within 1 s");
    kprof_engine.batch.needs = 0;
    set_busy(false);
    assert_ends(&contexts[BUSY]);
    assert_gives_up("within 2 s");
    set_busy(false);
    assert_ends(&contexts[BUSY]);
    assert_gives_up("within 1 s");
}

static void *end_work(void *user)
{
    (void)user;
    usleep(100000);
    set_busy(false);
    return NULL;
}

/* A wait from the test before goes on, and does not concern the next context at that address. */
static void test_context_that_ends_busy(void **state)
{
    (void)state;
    kprof_wait_forget(&contexts[BUSY]);
    set_other(true);
    assert_int_equal(kprof_wait_with_limit(&contexts[BUSY]), KPROF_OK);
    set_other(false);
    assert_int_equal(kprof_wait_with_limit(&contexts[BUSY]), KPROF_NOT_COLLECTED);
}

/* Last: what is busy from the test before ends meanwhile, and its thread is out of the context before that goes; the
 * one that was forgotten while it was busy may still be there. */
static void test_context_that_ends(void **state)
{
    (void)state;
    pthread_t thread;
    kprof_wait_forget(&contexts[OTHER]);
    assert_int_equal(pthread_create(&thread, NULL, end_work, NULL), 0);
    kprof_wait_forget(&contexts[BUSY]);
    assert_true(add_inside(0) <= 1);
    pthread_join(thread, NULL);
    assert_int_equal(kprof_wait_with_limit(&contexts[BUSY]), KPROF_OK);
}

/* Work that may wait for the application is not waited for at length, from the first time on. */
static void test_sharing(void **state)
{
    (void)state;
    kprof_engine.waits.long_limit_s = 2;
    assert_gives_up("within 1 s");
    set_busy(false);
    assert_ends(&contexts[BUSY]);
}

int main(int argc, char **argv)
{
    kprof_engine.device = &device_ops;
    const struct CMUnitTest shared[] = {cmocka_unit_test(test_sharing)};

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_and_broken),     cmocka_unit_test(test_busy),
        cmocka_unit_test(test_long_wait_only_once), cmocka_unit_test(test_context_that_ends_busy),
        cmocka_unit_test(test_context_that_ends),
    };
    (void)argv;
    if (argc > 1)
        sharing = KPROF_WAITS_FOR_HOST;
    return argc > 1 ? cmocka_run_group_tests(shared, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
