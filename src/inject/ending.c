/* A file tells the command line which signals would end the process: in /proc it sees only that there is a handler. */
#include "inject/ending.h"

#include "core/files.h"
#include "core/folder.h"
#include "core/monotonic.h"
#include "inject/engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* The command line holds back a signal for this long. */
#define LIMIT_NS INT64_C(2000000000)

static struct {
    const kprof_default_actions *actions; /* NULL: there is no preloaded library */
    kprof_signal_hooks hooks;
    atomic_bool stands_in;
    atomic_int number;        /* of the signal that ends the process; 0: none has come */
    _Atomic int64_t since_ns; /* when it came */
} ending;

static int open_folder(char *name, size_t size)
{
    const char *reason;
    snprintf(name, size, KPROF_DEFAULTS_FILE, (long)getpid());
    return kprof_folder_open(kprof_engine.process.session_dir, &reason);
}

static void publish(uint64_t signals)
{
    const char *reason;
    char name[64];
    KPROF_AUTO_CLOSE int folder = open_folder(name, sizeof name);
    KPROF_AUTO_CLOSE int fd = folder >= 0 ? kprof_folder_open_file(folder, name, O_WRONLY | O_CREAT, &reason) : -1;
    if (fd >= 0)
        (void)!kprof_write_at(fd, &signals, sizeof signals, 0);
}

void kprof_ending_before_exec(void)
{
    char name[64];
    KPROF_AUTO_CLOSE int folder = atomic_load(&ending.stands_in) ? open_folder(name, sizeof name) : -1;
    if (folder >= 0)
        (void)unlinkat(folder, name, 0);
}

void kprof_ending_prepare(int (*decide)(int number, const void *thread))
{
    ending.hooks = (kprof_signal_hooks){decide, publish};
    ending.actions = (const kprof_default_actions *)dlsym(RTLD_DEFAULT, KPROF_DEFAULT_ACTIONS);
}

void kprof_ending_watch(void)
{
    if (ending.actions && !atomic_exchange(&ending.stands_in, true))
        ending.actions->stand_in(&ending.hooks);
}

void kprof_ending_name_thread(void *state)
{
    const kprof_default_actions *actions = ending.actions;
    if (actions)
        *actions->thread_slot() = state;
}

int kprof_ending_note(int number)
{
    int64_t never = 0;
    int first = 0;
    (void)atomic_compare_exchange_strong(&ending.since_ns, &never, kprof_monotonic_ns());
    return atomic_compare_exchange_strong(&ending.number, &first, number) ? number : first;
}

bool kprof_ending_is_due(void)
{
    return atomic_load_explicit(&ending.number, memory_order_relaxed) != 0;
}

bool kprof_ending_is_overdue(void)
{
    return kprof_monotonic_ns() - atomic_load(&ending.since_ns) > LIMIT_NS;
}

void kprof_ending_end(void)
{
    if (ending.actions && kprof_ending_is_due())
        ending.actions->end(atomic_load(&ending.number));
}
