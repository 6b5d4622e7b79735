/* Starts threads under kprof's name. It is a file of its own because tests link it with each part that has threads. */
#include "inject/threads.h"

#include "core/floats.h"
#include "inject/engine.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define OWN_NAME "kprof"

/* It tells a new thread what to run. */
typedef struct kprof_thread_work {
    void *(*run)(void *user);
    void *user;
} kprof_thread_work;

void kprof_threads_mark_own(void)
{
    kprof_thread_hook *const begins = atomic_load(&kprof_engine.thread_begins);
    if (begins)
        begins();
}

/* A thread that names itself makes one system call; to name another one takes three. */
static void *begin(void *user)
{
    const kprof_thread_work work = *(kprof_thread_work *)user;
    KPROF_OWN_FLOATS(); /* it begins with what the application's thread has */
    free(user);
    (void)prctl(PR_SET_NAME, OWN_NAME);
    kprof_threads_mark_own();
    return work.run(work.user);
}

bool kprof_threads_start(pthread_t *out, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    kprof_thread_work *work = malloc(sizeof *work);
    if (!work)
        return false;
    *work = (kprof_thread_work){run, user};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(out, NULL, begin, work) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started)
        free(work);
    return started;
}
