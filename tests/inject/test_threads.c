/* Threads that kprof starts: under its name, and out of reach of the application's signals. */
#include "inject/threads.h"
#include "test.h"

#include <signal.h>
#include <sys/prctl.h>

static void *read_name(void *user)
{
    prctl(PR_GET_NAME, user, 0, 0, 0);
    return NULL;
}

/* Debuggers and `ps` show whose it is. */
TEST(test_name)
{
    char name[16] = "", own[16];
    pthread_t thread;
    prctl(PR_GET_NAME, own, 0, 0, 0);
    assert_true(kprof_threads_start(&thread, read_name, name));
    pthread_join(thread, NULL);
    assert_string_equal(name, "kprof");
    assert_string_not_equal(name, own);
}

static void *read_mask(void *user)
{
    pthread_sigmask(SIG_SETMASK, NULL, user);
    return NULL;
}

/* Signals are the application's: none comes to a thread of kprof's, and the thread that starts it gets the same ones as
 * before. */
TEST(test_signals)
{
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
