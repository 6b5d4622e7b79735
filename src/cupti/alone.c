/* Compares the threads in /proc with the list of those that are not the application's. */
#include "cupti/alone.h"

#include "core/files.h"
#include "core/strbuf.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not /proc/self, which is empty once the first thread has ended. */
#define THREADS "/proc/thread-self/.."

/* A thread of kprof's may have just begun or be about to end: it is not in the list then. */
#define TRIES      5
#define TRY_GAP_US 200

static struct {
    _Atomic(kprof_foreign_threads *) list; /* NULL: there is none */
    atomic_long other;                     /* this thread was still there after all tries: do not try again */
} found;

static bool is_listed(kprof_foreign_threads *list, long id)
{
    return KPROF_ANY(i, KPROF_MAX_FOREIGN_THREADS, atomic_load(&(*list)[i]) == id);
}

/* `*other`: the first thread that is not. The kernel ends the list early where a thread ends meanwhile. So its length
 * is compared with the folder's link count, which is the number of threads plus 2. */
static bool are_others_listed(kprof_foreign_threads *list, long own, long *other)
{
    KPROF_AUTO_CLOSEDIR DIR *threads = opendir(THREADS);
    struct stat folder;
    size_t seen = 0;
    bool seen_own = false, listed = threads != NULL;
    for (struct dirent *entry; listed && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.')
            continue;
        long id = strtol(entry->d_name, NULL, 10);
        seen++;
        seen_own = seen_own || id == own;
        listed = id == own || is_listed(list, id);
        if (!listed)
            *other = id;
    }
    return listed && seen_own && fstat(dirfd(threads), &folder) == 0 && folder.st_nlink == seen + 2;
}

void kprof_thread_find_list(void)
{
    atomic_store(&found.list, (kprof_foreign_threads *)dlsym(RTLD_DEFAULT, KPROF_FOREIGN_THREADS_NAME));
}

bool kprof_thread_is_foreign(void)
{
    kprof_foreign_threads *list = atomic_load(&found.list);
    return list && is_listed(list, syscall(SYS_gettid));
}

bool kprof_thread_is_alone(void)
{
    kprof_foreign_threads *list = atomic_load(&found.list);
    long own = syscall(SYS_gettid), before = atomic_load(&found.other), other = 0;
    if (!list || is_listed(list, own))
        return false;
    for (int tries = 0; tries < TRIES && (other == 0 || other != before); tries++) {
        if (tries > 0)
            usleep(TRY_GAP_US);
        if (are_others_listed(list, own, &other))
            return true;
    }
    atomic_store(&found.other, other);
    return false;
}
