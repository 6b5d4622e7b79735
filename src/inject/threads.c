/* Starts threads under kprof's name. It is a file of its own because tests link it with each part that has threads. */
#include "inject/threads.h"

#include <signal.h>

#define OWN_NAME "kprof"

bool kprof_threads_start(pthread_t *out, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(out, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        (void)pthread_setname_np(*out, OWN_NAME);
    return started;
}
