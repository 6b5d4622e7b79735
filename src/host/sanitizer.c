/* In AddressSanitizer builds only: libcupti opens libnvperf_host with RTLD_DEEPBIND, where the sanitizer's runtime ends
 * the program. This dlopen stands before the runtime's and takes the flag away. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &symbol, sizeof(next));
    return next ? next(file, mode & ~RTLD_DEEPBIND) : NULL;
}
