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
static bool read_name(const char *task, char name[static NAME_SIZE + 1])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool named = fgets(name, NAME_SIZE + 1, file) != NULL;
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return named;
}

static bool is_name_of_cuda(const char *name)
{
    const char *number = name + strlen(NUMBER_NAME);
    if (strncmp(name, NUMBER_NAME, strlen(NUMBER_NAME)) != 0)
        return false;
    return strcmp(name, EVENTS_NAME) == 0 || (strlen(name) == NAME_SIZE - 1 && !number[strspn(number, DIGITS)]);
}

/* A thread gets the name of the one that starts it, and so, as a rule, the program's. */
static bool is_foreign(const char *task, const char *program)
{
    static atomic_bool told;
    char name[NAME_SIZE + 1];
    if (strtol(task, NULL, 10) == syscall(SYS_gettid) || !read_name(task, name))
        return false;
    if (strcmp(name, program) != 0 && (is_name_of_cuda(name) || strcmp(name, OWN_NAME) == 0))
        return false;
    if (!atomic_exchange(&told, true))
        kprof_log(KPROF_LOG_DEBUG, "thread %s (%s) counts as one of the application's", task, name);
    return true;
}

bool kprof_threads_others(void)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return true;
    char program[NAME_SIZE + 1] = "", process[24];
    snprintf(process, sizeof process, "%ld", (long)getpid());
    bool others = !read_name(process, program);
    for (struct dirent *entry; !others && (entry = readdir(tasks));)
        others = entry->d_name[0] != '.' && is_foreign(entry->d_name, program);
    closedir(tasks);
    return others;
}
