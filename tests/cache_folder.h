/* Helpers of the tests of the cache: a folder for it, a view of its files, and other processes that use it. */
#pragma once

#include "test.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENTRY_HEADER_BYTES = 24 };

static char cache_folder[] = "/tmp/kprof-test-cache-XXXXXX";

static inline void use_cache_folder(void)
{
    assert_non_null(mkdtemp(cache_folder));
    setenv("XDG_CACHE_HOME", cache_folder, 1);
    unsetenv("KPROF_CACHE");
}

static inline int remove_cache_folder(const char *below)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s%s", cache_folder, below);
    return system(command);
}

static inline int clear_cache(void **state)
{
    return remove_cache_folder("/kprof");
}

static inline bool is_about(const char *path, const char *what)
{
    char text[ENTRY_HEADER_BYTES + 16] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return strncmp(text + ENTRY_HEADER_BYTES, what, strlen(what)) == 0;
}

/* Number of entries whose question begins so; `path`, if asked for, is that of the last. */
static inline int count_kept(const char *what, char *path, size_t size)
{
    char inner[256], file[512];
    snprintf(inner, sizeof inner, "%s/kprof", cache_folder);
    DIR *dir = opendir(inner);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(file, sizeof file, "%s/%s", inner, entry->d_name);
        if (entry->d_name[0] == '.' || !is_about(file, what))
            continue;
        count++;
        if (path)
            snprintf(path, size, "%s", file);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* This program, as another process. */
static inline pid_t start_as(const char *role)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", role, (char *)NULL);
        _exit(2);
    }
    return pid;
}

static inline int await(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline bool is_loaded(const char *library)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, library);
    if (maps)
        fclose(maps);
    return found;
}
