/* Reads /proc/self/task. */
#include "inject/threads.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_NAME  "kprof"
#define CUDA_NAME "cuda"

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

static bool is_foreign(const char *task)
{
    char path[64], name[32] = "";
    if (strtol(task, NULL, 10) == syscall(SYS_gettid))
        return false;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    FILE *file = fopen(path, "re");
    if (!file)
        return false; /* it has ended */
    bool named = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return named && strncmp(name, CUDA_NAME, strlen(CUDA_NAME)) != 0 && strcmp(name, OWN_NAME "\n") != 0;
}

bool kprof_threads_others(void)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return true;
    bool others = false;
    for (struct dirent *entry; !others && (entry = readdir(tasks));)
        others = entry->d_name[0] != '.' && is_foreign(entry->d_name);
    closedir(tasks);
    return others;
}
