/* Part of the preloaded library: puts a handler where a signal has its default action, once the injection library wants
 * that. The functions that set and tell actions are the C library's, with the handler taken out while they run. A child
 * of fork inherits the handler, which ends it at once as the default action would. */
#include "inject/default_action.h"

#include "core/strbuf.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* A thread that was there when the process forked may have been changing actions, and is not there in the child. */
#define MOST_TRIES 100000

typedef int action_function(int number, const struct sigaction *wanted, struct sigaction *before);
typedef __sighandler_t handler_function(int number, __sighandler_t handler);
typedef int interrupt_function(int number, int interrupts);

static struct {
    _Atomic(action_function *) sigaction;
    _Atomic(handler_function *) signal, sysv_signal, sigset;
    _Atomic(interrupt_function *) siginterrupt;
} next;

static _Atomic(const kprof_signal_hooks *) hooks;
static _Atomic pid_t owner;             /* the process that the handler stands in for; 0: none */
static struct sigaction defaults[NSIG]; /* what the program has set where the handler stands in */
static _Atomic uint64_t stood_in;       /* bits of these */
static atomic_bool is_told;             /* of every change from now on */
static atomic_flag changing = ATOMIC_FLAG_INIT;
static __thread void *slot __attribute__((tls_model("initial-exec"))); /* so that a handler may read it */

__attribute__((constructor)) static void find_functions(void)
{
    atomic_store(&next.signal, (handler_function *)dlsym(RTLD_NEXT, "signal"));
    atomic_store(&next.sysv_signal, (handler_function *)dlsym(RTLD_NEXT, "sysv_signal"));
    atomic_store(&next.sigset, (handler_function *)dlsym(RTLD_NEXT, "sigset"));
    atomic_store(&next.siginterrupt, (interrupt_function *)dlsym(RTLD_NEXT, "siginterrupt"));
    atomic_store(&next.sigaction, (action_function *)dlsym(RTLD_NEXT, "sigaction"));
}

static int set_action(int number, const struct sigaction *wanted, struct sigaction *before)
{
    if (!atomic_load(&next.sigaction))
        find_functions();
    action_function *call = atomic_load(&next.sigaction);
    if (call)
        return call(number, wanted, before);
    errno = ENOSYS;
    return -1;
}

/* Those that end a process by default and that others send, or the kernel for it. Faults are not among them, since what
 * the process holds may be damaged then. */
static bool ends_process(int number)
{
    static const int numbers[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGUSR1, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM,
                                  SIGXCPU, SIGSTKFLT, SIGXFSZ, SIGPROF, SIGVTALRM, SIGIO,   SIGPWR};
    return KPROF_ANY(i, COUNT_OF(numbers), numbers[i] == number);
}

static void end(int number)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t only;
    (void)set_action(number, &action, NULL);
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void handle(int number, siginfo_t *info, void *context)
{
    const int saved_errno = errno;
    const kprof_signal_hooks *known = atomic_load(&hooks);
    const bool is_own = known && atomic_load(&owner) == getpid();
    int ending = is_own ? known->decide(number, slot) : number;
    (void)info;
    (void)context;
    if (ending)
        end(ending);
    errno = saved_errno;
}

typedef struct change {
    int number;
    bool goes_on;  /* else no handler of ours ever stands in */
    bool stood_in; /* the handler did, until now */
    sigset_t mask;
} change;

/* Take the handler out. No signal reaches this thread until the change is done. */
static change begin_change(int number)
{
    change change = {.number = number, .goes_on = atomic_load(&owner) != 0 && ends_process(number)};
    struct sigaction now;
    sigset_t all;
    if (!change.goes_on)
        return change;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &change.mask);
    for (int tries = 0; atomic_flag_test_and_set(&changing) && tries < MOST_TRIES; tries++)
        sched_yield();
    change.stood_in = set_action(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle;
    if (change.stood_in)
        (void)set_action(number, &defaults[number], NULL);
    return change;
}

/* Put the handler where the program has left the default action. A child of vfork shares this memory, but has actions
 * of its own: there it stays out. */
static void end_change(const change *change)
{
    const int saved_errno = errno, number = change->number;
    if (!change->goes_on)
        return;
    if (atomic_load(&owner) == getpid()) {
        struct sigaction now, ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
        const uint64_t before = atomic_load(&stood_in), bit = UINT64_C(1) << (number - 1);
        bool is_default = set_action(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
        sigemptyset(&ours.sa_mask);
        if (is_default)
            defaults[number] = now;
        is_default = is_default && set_action(number, &ours, NULL) == 0;
        atomic_store(&stood_in, is_default ? before | bit : before & ~bit);
        if (atomic_load(&stood_in) != before && atomic_load(&is_told))
            atomic_load(&hooks)->publish(atomic_load(&stood_in));
    }
    atomic_flag_clear(&changing);
    pthread_sigmask(SIG_SETMASK, &change->mask, NULL);
    errno = saved_errno;
}

/* The kernel never ends the first process of a container by a default action, so there nothing stands in for one. */
static void stand_in(const kprof_signal_hooks *wanted)
{
    if (getpid() == 1)
        return;
    atomic_store(&hooks, wanted);
    atomic_store(&owner, getpid());
    for (int number = 1; number < NSIG; number++) {
        const change change = begin_change(number);
        end_change(&change);
    }
    wanted->publish(atomic_load(&stood_in));
    atomic_store(&is_told, true);
}

static void **thread_slot(void)
{
    return &slot;
}

EXPORTED const kprof_default_actions kprof_default_action_table = {stand_in, end, thread_slot};

EXPORTED int sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    const change change = begin_change(number);
    const struct sigaction was = change.stood_in ? defaults[number] : (struct sigaction){0};
    int result = set_action(number, wanted, before);
    end_change(&change);
    if (change.stood_in && before) /* the C library has added a flag to what was put back */
        *before = was;
    return result;
}

static __sighandler_t set_handler(_Atomic(handler_function *) *function, int number, __sighandler_t handler)
{
    if (!atomic_load(function))
        find_functions();
    handler_function *call = atomic_load(function);
    if (!call) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    change change = begin_change(number);
    __sighandler_t result = call(number, handler);
    end_change(&change);
    return result;
}

EXPORTED __sighandler_t signal(int number, __sighandler_t handler)
{
    return set_handler(&next.signal, number, handler);
}

EXPORTED __sighandler_t ssignal(int number, __sighandler_t handler) __attribute__((alias("signal")));
EXPORTED __sighandler_t bsd_signal(int number, __sighandler_t handler) __attribute__((alias("signal"), leaf, nothrow));

EXPORTED __sighandler_t sysv_signal(int number, __sighandler_t handler)
{
    return set_handler(&next.sysv_signal, number, handler);
}

EXPORTED __sighandler_t __sysv_signal(int number, __sighandler_t handler) __attribute__((alias("sysv_signal")));

/* Changes the mask, too, which the change must not undo: the signal is let through, or held, as this function says. */
EXPORTED __sighandler_t sigset(int number, __sighandler_t handler)
{
    sigset_t now;
    if (!atomic_load(&next.sigset))
        find_functions();
    handler_function *call = atomic_load(&next.sigset);
    if (!call) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    change change = begin_change(number);
    if (change.goes_on) { /* so that it tells whether the signal was held */
        sigfillset(&now);
        if (!sigismember(&change.mask, number))
            sigdelset(&now, number);
        pthread_sigmask(SIG_SETMASK, &now, NULL);
    }
    __sighandler_t result = call(number, handler);
    if (change.goes_on) {
        pthread_sigmask(SIG_BLOCK, NULL, &now);
        if (sigismember(&now, number))
            sigaddset(&change.mask, number);
        else
            sigdelset(&change.mask, number);
    }
    end_change(&change);
    return result;
}

EXPORTED int sigignore(int number)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    return sigaction(number, &ignore, NULL);
}

EXPORTED int siginterrupt(int number, int interrupts)
{
    if (!atomic_load(&next.siginterrupt))
        find_functions();
    interrupt_function *call = atomic_load(&next.siginterrupt);
    if (!call) {
        errno = ENOSYS;
        return -1;
    }
    change change = begin_change(number);
    int result = call(number, interrupts);
    end_change(&change);
    return result;
}
