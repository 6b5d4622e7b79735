/* Reads of each thread in /proc whether it can run, and how long it has run. */
#include "cupti/unseen.h"

#include "core/files.h"
#include "core/monotonic.h"
#include "core/strbuf.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not /proc/self, which is empty once the first thread has ended. */
#define THREADS  "/proc/thread-self/.."
#define LEAST_US 20000
#define GAP_US   2000
#define LIMIT_NS INT64_C(5000000000)
#define RAN_NS   1000000

typedef struct running {
    long id;
    uint64_t ran_ns; /* when it was seen first */
} running;

typedef struct thread_list {
    running *items; /* [count] */
    size_t count;
} thread_list;

/* False where the kernel does not tell. */
static bool read_line(long id, const char *name, char line[512])
{
    char path[96];
    snprintf(path, sizeof path, THREADS "/%ld/%s", id, name);
    return kprof_read_text(path, line, 512) > 0;
}

static bool read_time(long id, uint64_t *ran_ns)
{
    char line[512];
    return read_line(id, "schedstat", line) && sscanf(line, "%" SCNu64, ran_ns) == 1;
}

static bool can_run(long id)
{
    char line[512];
    const char *name_end = read_line(id, "stat", line) ? strrchr(line, ')') : NULL;
    return name_end && kprof_begins_with(name_end, ") R");
}

/* False when memory runs out. */
static bool add(thread_list *list, long id, uint64_t ran_ns)
{
    if (!KPROF_APPEND(list->items, list->count))
        return false;
    list->items[list->count++] = (running){id, ran_ns};
    return true;
}

static bool list_threads(thread_list *out)
{
    const long own = syscall(SYS_gettid);
    KPROF_AUTO_CLOSEDIR DIR *threads = opendir(THREADS);
    bool added = threads != NULL;
    uint64_t ran_ns;
    for (struct dirent *entry; added && (entry = readdir(threads));) {
        const long id = strtol(entry->d_name, NULL, 10);
        if (id > 0 && id != own && read_time(id, &ran_ns))
            added = add(out, id, ran_ns);
    }
    return added;
}

/* Drop the threads that have run on. Those that sleep stay, as they may be about to go on with a launch. */
static bool have_run(thread_list *list)
{
    bool have = true;
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t ran_ns;
        if (!read_time(list->items[i].id, &ran_ns) || ran_ns - list->items[i].ran_ns >= RAN_NS)
            continue;
        have = have && !can_run(list->items[i].id);
        list->items[left++] = list->items[i];
    }
    list->count = left;
    return have;
}

bool kprof_unseen_await(void)
{
    const int64_t began_ns = kprof_monotonic_ns();
    thread_list threads = {0};
    bool have = list_threads(&threads);
    const bool are_listed = have;
    usleep(LEAST_US);
    while (are_listed && !(have = have_run(&threads)) && kprof_monotonic_ns() - began_ns < LIMIT_NS)
        usleep(GAP_US);
    free(threads.items);
    return have;
}
