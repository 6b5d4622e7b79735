/* Preloaded into kprof, it makes one allocation fail, or all from one on; or it lists the first one of each call stack,
 * so that a test can fail each. What CUPTI allocates is let be: how it takes a failure is its own affair. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH  9
#define STACKS 65536 /* a power of 2 */

void *__libc_malloc(size_t size); /* of glibc */
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static atomic_uint_fast64_t calls; /* of all threads */
static uint64_t failing;           /* the number of the call that fails; 0: none */
static bool fails_all;             /* and all calls after it */
static int list = -1;              /* file that gets the numbers */
static _Thread_local bool is_listing;
static uint64_t stacks[STACKS]; /* hashes that have been listed; a list is for programs of one thread */

static void __attribute__((constructor)) begin(void)
{
    void *frames[DEPTH];
    const char *number = getenv("KPROF_TEST_FAILING"), *path = getenv("KPROF_TEST_ALLOCATIONS");
    if (strncmp(program_invocation_short_name, "kprof", 5) != 0) /* applications run as they are */
        return;
    (void)backtrace(frames, DEPTH); /* its first call loads a library, which allocates */
    fails_all = getenv("KPROF_TEST_FAILS_ALL") != NULL;
    atomic_store(&calls, 0);
    failing = number ? strtoull(number, NULL, 10) : 0;
    list = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
}

/* Is a frame in a library of CUPTI's or of the loader's? */
static bool is_foreign(void *frame)
{
    Dl_info info;
    return dladdr(frame, &info) && info.dli_fname &&
           (strstr(info.dli_fname, "libcupti") || strstr(info.dli_fname, "libnvperf") ||
            strstr(info.dli_fname, "ld-linux") || strstr(info.dli_fname, "libcuda"));
}

static bool is_new(uint64_t hash)
{
    for (size_t i = hash % STACKS, n = 0; n < STACKS; i = (i + 1) % STACKS, n++) {
        if (stacks[i] == hash)
            return false;
        if (stacks[i] == 0) {
            stacks[i] = hash;
            return true;
        }
    }
    return false;
}

static bool is_stack_foreign(void *const *frames, int count)
{
    bool foreign = false;
    for (int i = 0; i < count && !foreign; i++)
        foreign = is_foreign(frames[i]);
    return foreign;
}

static bool is_call_foreign(void)
{
    void *frames[DEPTH];
    is_listing = true;
    const bool foreign = is_stack_foreign(frames, backtrace(frames, DEPTH));
    is_listing = false;
    return foreign;
}

static void list_call(uint64_t number)
{
    void *frames[DEPTH];
    uint64_t hash = 14695981039346656037u;
    is_listing = true;
    const int count = backtrace(frames, DEPTH);
    for (int i = 0; i < count; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    if (is_new(hash) && !is_stack_foreign(frames, count))
        dprintf(list, "%llu\n", (unsigned long long)number);
    is_listing = false;
}

/* Does this call fail? */
static bool fails(void)
{
    if (is_listing || (failing == 0 && list < 0))
        return false;
    const uint64_t number = atomic_fetch_add(&calls, 1) + 1;
    if (list >= 0)
        list_call(number);
    const bool result = failing > 0 && (number == failing || (fails_all && number > failing && !is_call_foreign()));
    if (result)
        errno = ENOMEM;
    return result;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return fails() ? NULL : __libc_realloc(block, size);
}

#pragma GCC visibility pop
