/* Reads /proc/self/task. */
#include "inject/threads.h"

#include "core/log.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_NAME    "kprof"
#define EVENTS_NAME "cuda-EvtHandlr"
#define NUMBER_NAME "cuda" /* and eleven digits */
#define DIGITS      "0123456789abcdefABCDEF"
#define NAME_SIZE   16 /* with its end, as the system has it */
#define MAX_STARTED 32

/* An id may come back as another thread's: the time at which it started tells them apart. */
typedef struct started_thread {
    long id;
    unsigned long long start_ticks; /* since boot */
} started_thread;

static started_thread started_with_cuda[MAX_STARTED]; /* [started_count], written before started_count is */
static atomic_size_t started_count;
static atomic_long starter; /* the thread in which CUDA is starting; 0: it was not alone, or CUDA has started */

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

/* False when there is no such thread, or no more. */
static bool read_file(const char *task, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%s", task, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    return length > 0;
}

static bool read_name(const char *task, char name[static NAME_SIZE + 1])
{
    bool named = read_file(task, "comm", name, NAME_SIZE + 1);
    name[strcspn(name, "\n")] = '\0';
    return named;
}

/* 0 when that cannot be told. */
static unsigned long long read_start_ticks(const char *task)
{
    char text[1024];
    const char *field = read_file(task, "stat", text, sizeof text) ? strrchr(text, ')') : NULL; /* ends the second */
    for (int number = 2; field && number < 22; number++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

static bool has_started_with_cuda(const char *task)
{
    size_t count = atomic_load(&started_count);
    for (size_t i = 0; i < count; i++)
        if (started_with_cuda[i].id == strtol(task, NULL, 10))
            return started_with_cuda[i].start_ticks == read_start_ticks(task);
    return false;
}

static bool is_name_of_cuda(const char *name)
{
    const char *number = name + strlen(NUMBER_NAME);
    if (strncmp(name, NUMBER_NAME, strlen(NUMBER_NAME)) != 0)
        return false;
    return strcmp(name, EVENTS_NAME) == 0 || (strlen(name) == NAME_SIZE - 1 && !number[strspn(number, DIGITS)]);
}

/* A thread gets the name of the one that starts it, and so, as a rule, the program's. */
static bool is_foreign(const char *task, const char *program, bool names_tell)
{
    static atomic_bool told;
    char name[NAME_SIZE + 1];
    if (strtol(task, NULL, 10) == syscall(SYS_gettid) || !read_name(task, name))
        return false;
    if (strcmp(name, program) != 0 && ((names_tell && is_name_of_cuda(name)) || strcmp(name, OWN_NAME) == 0))
        return false;
    if (has_started_with_cuda(task))
        return false;
    if (!atomic_exchange(&told, true))
        kprof_log(KPROF_LOG_DEBUG, "thread %s (%s) counts as one of the application's", task, name);
    return true;
}

bool kprof_threads_others(bool names_tell)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return true;
    char program[NAME_SIZE + 1] = "", process[24];
    snprintf(process, sizeof process, "%ld", (long)getpid());
    bool others = !read_name(process, program);
    for (struct dirent *entry; !others && (entry = readdir(tasks));)
        others = entry->d_name[0] != '.' && is_foreign(entry->d_name, program, names_tell);
    closedir(tasks);
    return others;
}

void kprof_threads_cuda_starts(void)
{
    atomic_store(&starter, kprof_threads_others(true) ? 0 : syscall(SYS_gettid));
}

void kprof_threads_cuda_started(void)
{
    long self = syscall(SYS_gettid);
    DIR *tasks = atomic_load(&starter) == self ? opendir("/proc/self/task") : NULL;
    size_t count = 0;
    if (!tasks)
        return;
    for (struct dirent *entry; count < MAX_STARTED && (entry = readdir(tasks));) {
        started_thread thread = {strtol(entry->d_name, NULL, 10), read_start_ticks(entry->d_name)};
        if (thread.id != 0 && thread.id != self && thread.start_ticks != 0)
            started_with_cuda[count++] = thread;
    }
    closedir(tasks);
    atomic_store(&starter, 0);
    atomic_store(&started_count, count);
}
