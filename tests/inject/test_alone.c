/* The application's threads are told from those of CUDA's libraries, with the preloaded library as it is. */
#include "cupti/alone.h"
#include "cupti/counting.h"
#include "cupti/output.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* In threads_of_driver.c, which is built as a library of the driver's name. */
typedef int start_function(pthread_t *out, void *(*run)(void *), void *argument);

typedef int print_function(FILE *stream, const char *format, ...);

static print_function *print_of_driver;
static start_function *start_of_driver, *start_others; /* start_others: a thread that begins in the application */
static sem_t begun, may_end;

static void *wait_for_end(void *unused)
{
    sem_post(&begun);
    sem_wait(&may_end);
    return unused;
}

static void *wait_and_exit(void *unused)
{
    (void)wait_for_end(unused);
    pthread_exit(unused);
}

static void *ask(void *out)
{
    *(bool *)out = kprof_thread_is_alone();
    return NULL;
}

/* The kernel may list a thread for a moment after it was joined. */
static bool comes_to_be_alone(void)
{
    while (!kprof_thread_is_alone())
        usleep(1000);
    return true;
}

static void end(pthread_t thread)
{
    sem_post(&may_end);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(test_one_thread)
{
    assert_true(kprof_thread_is_alone());
}

TEST(test_thread_of_the_application)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, NULL), 0);
    assert_false(kprof_thread_is_alone()); /* even before it runs */
    sem_wait(&begun);
    assert_false(kprof_thread_is_alone());
    end(thread);
    assert_true(comes_to_be_alone());
}

TEST(test_thread_of_the_driver)
{
    void *(*const runs[])(void *) = {wait_for_end, wait_and_exit};
    for (unsigned i = 0; i < 3 * KPROF_MAX_FOREIGN_THREADS; i++) { /* places are used again */
        pthread_t thread;
        assert_int_equal(start_of_driver(&thread, runs[i % 2], NULL), 0);
        sem_wait(&begun);
        assert_true(comes_to_be_alone());
        end(thread);
    }
}

TEST(test_more_threads_than_places)
{
    pthread_t threads[KPROF_MAX_FOREIGN_THREADS + 1];
    for (unsigned i = 0; i <= KPROF_MAX_FOREIGN_THREADS; i++) {
        assert_int_equal(start_of_driver(&threads[i], wait_for_end, NULL), 0);
        sem_wait(&begun);
        assert_int_equal(kprof_thread_is_alone(), i < KPROF_MAX_FOREIGN_THREADS);
    }
    for (unsigned i = 0; i <= KPROF_MAX_FOREIGN_THREADS; i++)
        sem_post(&may_end);
    for (unsigned i = 0; i <= KPROF_MAX_FOREIGN_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(comes_to_be_alone());
}

/* The driver calls back, and the application starts its thread there. */
TEST(test_thread_that_a_callback_starts)
{
    pthread_t thread;
    assert_int_equal(start_others(&thread, wait_for_end, NULL), 0);
    sem_wait(&begun);
    assert_false(kprof_thread_is_alone());
    assert_false(kprof_thread_is_alone()); /* seen before */
    end(thread);
    assert_true(comes_to_be_alone());
}

static sigset_t mask_of_driver;

static void *look_at_mask(void *unused)
{
    pthread_sigmask(SIG_BLOCK, NULL, &mask_of_driver);
    return unused;
}

/* A handler of the application may use what is being restored. */
TEST(test_signals_of_the_drivers_threads)
{
    pthread_t thread;
    assert_int_equal(start_of_driver(&thread, look_at_mask, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(sigismember(&mask_of_driver, SIGALRM) && sigismember(&mask_of_driver, SIGUSR1));
    assert_false(sigismember(&mask_of_driver, SIGSEGV));
}

/* A function of the application that the driver's thread calls is not alone either. */
TEST(test_asked_by_another_thread)
{
    pthread_t thread;
    bool alone = true;
    assert_int_equal(start_of_driver(&thread, ask, &alone), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(alone);
    alone = true;
    assert_int_equal(pthread_create(&thread, NULL, ask, &alone), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(alone);
}

/* The library counts what the driver writes to stdout, and drops it where that is asked for; all else is written. */
TEST(test_output_of_the_driver)
{
    char text[64] = "";
    FILE *own = stdout, *other = tmpfile();
    assert_non_null(stdout = tmpfile());
    assert_true(kprof_output_watch());
    unsigned seen = kprof_output_seen();
    assert_int_equal(print_of_driver(stdout, "%d and ", 12), 7);
    assert_int_equal(kprof_output_seen(), seen + 1);
    kprof_output_drop(true);
    assert_int_equal(print_of_driver(stdout, "%s and ", "dropped"), 12);
    assert_int_equal(print_of_driver(other, "%d", 3), 1);
    assert_int_equal(fprintf(stdout, "of the application, "), 20);
    kprof_output_drop(false);
    assert_int_equal(print_of_driver(stdout, "%s", "more"), 4);
    assert_int_equal(kprof_output_seen(), seen + 3);
    FILE *written = stdout;
    stdout = own;
    rewind(written);
    assert_non_null(fgets(text, sizeof text, written));
    assert_string_equal(text, "12 and of the application, more");
    assert_int_equal(ftell(other), 1);
    fclose(written);
    fclose(other);
}

static unsigned asked;

static bool take_none(kprof_ioctl_call *call)
{
    asked++;
    return false;
}

static bool take_all(kprof_ioctl_call *call)
{
    call->result = call->request == FIONREAD ? 77 : call->issue(call->fd, call->request, call->argument);
    return true;
}

/* Calls of ioctl are the C library's, but for those that the hook takes. */
TEST(test_control_calls)
{
    int ends[2], waiting = 0;
    kprof_ioctl_slot *slot = dlsym(RTLD_DEFAULT, KPROF_IOCTL_SLOT);
    assert_non_null(slot);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    assert_int_equal(waiting, 3);
    atomic_store(slot, take_none);
    assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    assert_int_equal(asked, 1);
    atomic_store(slot, take_all);
    assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 77);
    assert_int_equal(ioctl(ends[0], TIOCGWINSZ, &waiting), -1);
    assert_int_equal(errno, ENOTTY);
    atomic_store(slot, NULL);
    assert_int_equal(ioctl(-1, FIONREAD, &waiting), -1);
    assert_int_equal(errno, EBADF);
    close(ends[0]);
    close(ends[1]);
}

static void test_without_the_preloaded_library(void **state)
{
    assert_false(kprof_thread_is_alone());
    assert_false(kprof_output_watch());
    kprof_output_drop(true);
    assert_int_equal(kprof_output_seen(), 0);
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_the_preloaded_library)};
        kprof_thread_find_list();
        kprof_output_find();
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    void *driver = dlopen(FAKE_DRIVER, RTLD_NOW);
    start_of_driver = driver ? (start_function *)dlsym(driver, "start_thread") : NULL;
    start_others = driver ? (start_function *)dlsym(driver, "start_thread_of_others") : NULL;
    print_of_driver = driver ? (print_function *)dlsym(driver, "print_to") : NULL;
    if (!start_of_driver || !start_others || !print_of_driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    kprof_thread_find_list();
    kprof_output_find();
    sem_init(&begun, 0, 0);
    sem_init(&may_end, 0, 0);
    return run_all_tests();
}
