/* Which threads of a process count as the application's. */
#include "descriptor_limit.h"
#include "inject/threads.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>

#include <cmocka.h>

static pthread_barrier_t barrier;

typedef struct role {
    const char *name; /* NULL: as it is */
    bool own;         /* started as kprof starts its own */
} role;

static void *live(void *user)
{
    const role *self = user;
    if (self->name)
        prctl(PR_SET_NAME, self->name, 0, 0, 0);
    pthread_barrier_wait(&barrier); /* it is there */
    pthread_barrier_wait(&barrier); /* and may go */
    return NULL;
}

static pthread_t start(const role *self)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    if (self->own)
        assert_true(kprof_threads_start(&thread, live, (void *)self));
    else
        assert_int_equal(pthread_create(&thread, NULL, live, (void *)self), 0);
    pthread_barrier_wait(&barrier);
    return thread;
}

static void end(pthread_t thread)
{
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static bool others_where(role self, bool names_tell)
{
    pthread_t thread = start(&self);
    bool others = kprof_threads_others(names_tell);
    end(thread);
    return others;
}

static bool others_beside(role self)
{
    return others_where(self, true);
}

static void test_names(void **state)
{
    (void)state;
    if (kprof_threads_others(true))
        skip(); /* a sanitizer's own thread */
    assert_true(others_beside((role){NULL, false}));
    assert_true(others_beside((role){"worker", false}));
    assert_false(others_beside((role){"cuda-EvtHandlr", false}));
    assert_false(others_beside((role){"cuda00001400006", false}));
    assert_false(others_beside((role){NULL, true}));
}

/* A thread that a host function starts has the name of CUDA's thread in which the function runs. */
static void test_names_that_do_not_tell(void **state)
{
    (void)state;
    if (kprof_threads_others(true))
        skip(); /* a sanitizer's own thread */
    assert_true(others_where((role){"cuda-EvtHandlr", false}, false));
    assert_true(others_where((role){"cuda00001400006", false}, false));
    assert_false(others_where((role){NULL, true}, false));
}

/* Threads are named as the program, which may be like CUDA's. */
static void test_program_is_named_like_cuda(void **state)
{
    (void)state;
    static const char *const programs[] = {
        "cuda", "cuda_train", "cudaOpenMP", "cuda-EvtHandlr", "cuda00001400006", "cuda0000140000", "kprof"};
    char before[16];
    prctl(PR_GET_NAME, before, 0, 0, 0);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        prctl(PR_SET_NAME, programs[i], 0, 0, 0);
        assert_true(others_beside((role){NULL, false}));
    }
    prctl(PR_SET_NAME, "cuda_train", 0, 0, 0);
    assert_true(others_beside((role){"cuda_worker", false}));
    assert_true(others_beside((role){"cuda-EvtHandlrs", false}));
    prctl(PR_SET_NAME, before, 0, 0, 0);
}

static void *tell_that_cuda_started(void *user)
{
    (void)user;
    kprof_threads_cuda_started();
    return NULL;
}

/* A thread that CUDA or CUPTI starts may have any name, the program's say. */
static void test_started_with_cuda(void **state)
{
    (void)state;
    static const role unnamed = {NULL, false};
    if (kprof_threads_others(true))
        skip(); /* a sanitizer's own thread */
    pthread_t thread = start(&unnamed), teller;
    kprof_threads_cuda_starts(); /* beside another: whose threads come now cannot be told */
    kprof_threads_cuda_started();
    assert_true(kprof_threads_others(true));
    end(thread);

    kprof_threads_cuda_starts();
    thread = start(&unnamed);
    assert_int_equal(pthread_create(&teller, NULL, tell_that_cuda_started, NULL), 0);
    pthread_join(teller, NULL);
    assert_true(kprof_threads_others(true)); /* it did not start here */
    kprof_threads_cuda_started();
    assert_false(kprof_threads_others(true));
    assert_false(kprof_threads_others(false));
    kprof_threads_cuda_started(); /* a second call tells of nothing */
    end(thread);
    assert_true(others_beside(unnamed)); /* it came later */
}

/* Signals are the application's: none comes to a thread of kprof's, and the thread that starts it gets the same ones as
 * before. */
static void *read_mask(void *user)
{
    pthread_sigmask(SIG_SETMASK, NULL, user);
    return NULL;
}

static void test_signals(void **state)
{
    (void)state;
    sigset_t own, before, after, started;
    pthread_t thread;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    sigemptyset(&started);
    pthread_sigmask(SIG_SETMASK, &own, &before);
    assert_true(kprof_threads_start(&thread, read_mask, &started));
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    assert_true(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGUSR2) == 0);
    assert_true(sigismember(&after, SIGINT) == 0 && sigismember(&after, SIGPROF) == 0);
    assert_true(sigismember(&started, SIGUSR1) == 1 && sigismember(&started, SIGUSR2) == 1);
    assert_true(sigismember(&started, SIGINT) == 1 && sigismember(&started, SIGPROF) == 1);
}

/* More than CUDA starts, and than there is room for: the rest count as the application's. */
static void test_many_started_with_cuda(void **state)
{
    (void)state;
    enum { MANY = 100 };
    static const role unnamed = {NULL, false};
    pthread_t threads[MANY];
    if (kprof_threads_others(true))
        skip(); /* a sanitizer's own thread */
    pthread_barrier_init(&barrier, NULL, MANY + 1);
    kprof_threads_cuda_starts();
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live, (void *)&unnamed), 0);
    pthread_barrier_wait(&barrier);
    kprof_threads_cuda_started();
    assert_true(kprof_threads_others(true));
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

/* What cannot be listed may be there. */
static void test_no_descriptor_left(void **state)
{
    (void)state;
    rlim_t before = limit_descriptors(0);
    bool others = kprof_threads_others(true);
    limit_descriptors(before);
    assert_true(others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_that_do_not_tell),
        cmocka_unit_test(test_program_is_named_like_cuda),
        cmocka_unit_test(test_started_with_cuda),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_many_started_with_cuda),
        cmocka_unit_test(test_no_descriptor_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
