/* glibc unwinds by the tables that exceptions use. A library of its own would bring functions of the same names into
 * the application, which its exceptions might then run through. */
#include "callstack/native.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_FRAMES 512

/* The linker's: where the module begins and ends that this code is in. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* NOLINT(bugprone-reserved-identifier) */
extern const char _end[] __attribute__((visibility("hidden")));         /* NOLINT(bugprone-reserved-identifier) */

static bool is_own(const void *address)
{
    return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}

static char program[PATH_MAX]; /* its path; "": not known */

void kprof_native_prepare(void)
{
    void *frames[2];
    (void)backtrace(frames, 2);
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
}

size_t kprof_native_walk(uintptr_t *addresses, size_t most, bool *cut)
{
    void *frames[MOST_FRAMES];
    const size_t wanted = most < MOST_FRAMES - 32 ? most + 32 : MOST_FRAMES; /* kprof's and CUPTI's own beside them */
    const int got = backtrace(frames, (int)wanted);
    int first = 0;
    size_t count = 0;
    while (first < got && is_own(frames[first]))
        first++;
    for (int i = first; i < got && count < most; i++)
        addresses[count++] = (uintptr_t)frames[i];
    *cut = got == (int)wanted || (size_t)(got - first) > count;
    return count;
}

const char *kprof_native_module(uintptr_t address, uint64_t *offset)
{
    Dl_info info;
    struct link_map *map = NULL;
    const void *call = (const void *)(address - 1); /* NOLINT(performance-no-int-to-ptr): never followed */
    if (!dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    *offset = address - 1 - map->l_addr;
    if (!*map->l_name && *program) /* the linker calls it what the shell called it, such as ./app */
        return program;
    static char path[PATH_MAX];
    return info.dli_fname[0] != '/' && realpath(info.dli_fname, path) ? path : info.dli_fname;
}

bool kprof_native_is_program(const char *module)
{
    return strcmp(module, program) == 0;
}
