/* Removes the file that a command is writing when a signal ends it. */
#include "cli/unfinished.h"
#include "core/signals.h"
#include "core/strbuf.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum { LONGEST = 4096 + 16 };

/* A handler may neither allocate nor print. */
static char files[4][LONGEST], folder_of[LONGEST];
static volatile sig_atomic_t is_unfinished;
static bool is_held;
static sigset_t mask_before;

void kprof_unfinished_remove(void)
{
    for (size_t i = 0; is_unfinished && i < COUNT_OF(files); i++)
        unlink(files[i]);
    if (is_unfinished && folder_of[0])
        rmdir(folder_of);
}

static void remove_and_end(int number)
{
    kprof_unfinished_remove();
    signal(number, SIG_DFL);
    raise(number);
}

void kprof_signals_follow(void (*handler)(int number))
{
    sigset_t set;
    kprof_signals_that_end(&set);
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigismember(&set, number) != 1 || sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN)
            continue;
        action = (struct sigaction){.sa_handler = handler};
        sigaction(number, &action, NULL);
    }
}

void kprof_unfinished_hold(void)
{
    sigset_t set;
    kprof_signals_that_end(&set);
    is_held = is_held || sigprocmask(SIG_BLOCK, &set, &mask_before) == 0;
}

static void release(void)
{
    if (is_held)
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
    is_held = false;
}

void kprof_unfinished_begin(const char *path, const char *folder)
{
    static const char *const endings[COUNT_OF(files)] = {"", "-wal", "-shm", "-journal"};
    bool is_whole = true; /* a longer name cannot be that of a file */
    is_unfinished = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++)
        is_whole = snprintf(files[i], LONGEST, "%s%s", path, endings[i]) < LONGEST && is_whole;
    is_whole = snprintf(folder_of, LONGEST, "%s", folder ? folder : "") < LONGEST && is_whole;
    kprof_signals_follow(remove_and_end);
    is_unfinished = is_whole;
    release();
}

void kprof_unfinished_end(void)
{
    is_unfinished = 0;
    release();
}
