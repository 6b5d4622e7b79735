/* libnvperf_host writes 100 MB of its static memory when it is opened. That takes most of a run of kprof-sim, of which
 * the tests start hundreds, in 26000 page faults; in huge pages it takes a third of the time. Nothing but the time
 * changes: the library is opened before libcupti opens it, and its first call of memset asks for such pages. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEXT_TO "/libcupti.so"

void *__real_dlopen(const char *path, int flags); /* of the linker's --wrap */
void *__wrap_dlopen(const char *path, int flags);

static _Thread_local bool is_opening;

/* Ask for huge pages where the segment that has an address is not backed by the file. */
static int take_huge_pages(struct dl_phdr_info *library, size_t size, void *address)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        uintptr_t start = library->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type != PT_LOAD || (uintptr_t)address < start || (uintptr_t)address >= end)
            continue;
        start = (start + segment->p_filesz + page - 1) / page * page;
        if (start < end)
            (void)madvise((void *)start, end / page * page - start, MADV_HUGEPAGE); /* small ones do, too */
        return 1;
    }
    return 0;
}

/* The library finds this one, because it is in the program. */
__attribute__((visibility("default"))) void *memset(void *to, int byte, size_t size)
{
    static void *(*next)(void *, int, size_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "memset");
    if (is_opening && size >= 65536) { /* static memory: nothing else is as large */
        is_opening = false;
        (void)dl_iterate_phdr(take_huge_pages, to);
    }
    return next(to, byte, size);
}

void *__wrap_dlopen(const char *path, int flags)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char beside[4096];
    if (slash && strncmp(slash, NEXT_TO, strlen(NEXT_TO)) == 0) {
        snprintf(beside, sizeof beside, "%.*s/libnvperf_host.so", (int)(slash - path), path);
        is_opening = true;
        (void)__real_dlopen(beside, flags); /* stays open; where there is none, libcupti finds another */
        is_opening = false;
    }
    return __real_dlopen(path, flags);
}
