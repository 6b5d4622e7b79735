/* A library of its own, preloaded into the application. It tells the injection library before the process calls exec or
 * _exit, which no handler of the process sees, or starts a thread. It lists the threads that are not the application's,
 * drops what kernels print in replays, and lets control calls of the driver be left out there. It is so small since
 * each program that the application starts gets it, and needs nothing but libc. Where no hook is set, and for the
 * application's own threads, each function is the C library's. */
#include "inject/exec.h"

#include "core/process_filter.h"
#include "core/signals.h"
#include "core/strbuf.h"
#include "cupti/alone.h"
#include "cupti/counting.h"
#include "cupti/output.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED kprof_exec_slot kprof_exec_hook;
EXPORTED kprof_foreign_threads kprof_foreign_thread_ids;
EXPORTED kprof_output_control kprof_output;
EXPORTED kprof_ioctl_slot kprof_ioctl_hook_slot;

typedef int path_function(const char *path, char *const argv[], char *const environment[]);
typedef int fd_function(int fd, char *const argv[], char *const environment[]);
typedef void exit_function(int status);
typedef void *thread_function(void *argument);
typedef int create_function(pthread_t *out, const pthread_attr_t *attributes, thread_function *run, void *argument);
typedef int print_function(FILE *stream, const char *format, va_list list);
typedef int at_function(int folder, const char *path, char *const argv[], char *const environment[], int flags);

static struct {
    _Atomic(path_function *) execve, execvpe;
    _Atomic(fd_function *) fexecve;
    _Atomic(at_function *) execveat;
    _Atomic(exit_function *) exit;
    _Atomic(create_function *) pthread_create;
    _Atomic(print_function *) vfprintf;
    _Atomic(kprof_ioctl_function *) ioctl;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    _Atomic(__typeof__(&_dl_find_object)) find_object;
#endif
} next;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Mark the program in the environment, which all that it starts will have, if it is the root of a tree that is left
 * out. The mark takes the place of a character: setenv would be a function of the program, as in bash. */
static void mark_tree(char *trees)
{
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    const char *const names[] = {last_part(path), last_part(program_invocation_name)};
    for (size_t length; *trees; trees += length + (trees[length] == '/')) {
        length = strcspn(trees, "/");
        if (KPROF_ANY(i, COUNT_OF(names),
                      strlen(names[i]) == length - 1 && strncmp(trees + 1, names[i], length - 1) == 0))
            *trees = '+';
    }
}

__attribute__((constructor)) static void find_trees(void)
{
    for (char **variable = environ; variable && *variable; variable++)
        if (strncmp(*variable, KPROF_TREES_ENV "=", sizeof KPROF_TREES_ENV) == 0)
            mark_tree(*variable + sizeof KPROF_TREES_ENV);
}

/* As the library is loaded: dlsym must not be called between fork and exec. */
__attribute__((constructor)) static void find_functions(void)
{
    atomic_store(&next.execve, (path_function *)dlsym(RTLD_NEXT, "execve"));
    atomic_store(&next.execvpe, (path_function *)dlsym(RTLD_NEXT, "execvpe"));
    atomic_store(&next.fexecve, (fd_function *)dlsym(RTLD_NEXT, "fexecve"));
    atomic_store(&next.execveat, (at_function *)dlsym(RTLD_NEXT, "execveat"));
    atomic_store(&next.exit, (exit_function *)dlsym(RTLD_NEXT, "_exit"));
    atomic_store(&next.pthread_create, (create_function *)dlsym(RTLD_NEXT, "pthread_create"));
    atomic_store(&next.vfprintf, (print_function *)dlsym(RTLD_NEXT, "vfprintf"));
    atomic_store(&next.ioctl, (kprof_ioctl_function *)dlsym(RTLD_NEXT, "ioctl"));
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    atomic_store(&next.find_object, (__typeof__(&_dl_find_object))dlsym(RTLD_NEXT, "_dl_find_object"));
#endif
}

/* Constructors of other libraries may be earlier than this library's. */
static void prepare(kprof_exec_turn before)
{
    if (!atomic_load(&next.execve))
        find_functions();
    kprof_exec_function *hook = atomic_load(&kprof_exec_hook);
    int saved_errno = errno;
    if (hook)
        hook(before);
    errno = saved_errno;
}

static int fail(void)
{
    errno = ENOSYS;
    return -1;
}

EXPORTED int execve(const char *path, char *const argv[], char *const environment[])
{
    prepare(KPROF_BEFORE_EXEC);
    path_function *call = atomic_load(&next.execve);
    return call ? call(path, argv, environment) : fail();
}

EXPORTED int execvpe(const char *file, char *const argv[], char *const environment[])
{
    prepare(KPROF_BEFORE_EXEC);
    path_function *call = atomic_load(&next.execvpe);
    return call ? call(file, argv, environment) : fail();
}

EXPORTED int fexecve(int fd, char *const argv[], char *const environment[])
{
    prepare(KPROF_BEFORE_EXEC);
    fd_function *call = atomic_load(&next.fexecve);
    return call ? call(fd, argv, environment) : fail();
}

/* NOLINTNEXTLINE(readability-function-size): the C library's parameters */
EXPORTED int execveat(int folder, const char *path, char *const argv[], char *const environment[], int flags)
{
    prepare(KPROF_BEFORE_EXEC);
    at_function *call = atomic_load(&next.execveat);
    return call ? call(folder, path, argv, environment, flags) : fail();
}

EXPORTED int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORTED int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* On the stack, since between fork and exec nothing may be allocated. */
static size_t count_arguments(const char *first, va_list list)
{
    size_t count = 1; /* the NULL at the end */
    va_list copy;
    va_copy(copy, list);
    for (const char *argument = first; argument; argument = va_arg(copy, const char *))
        count++;
    va_end(copy);
    return count;
}

static void take_arguments(char **out, size_t count, const char *first, va_list *list)
{
    out[0] = (char *)first;
    for (size_t i = 1; i < count; i++)
        out[i] = va_arg(*list, char *);
}

/* Begin `list`, and take the arguments up to NULL as `argv`. */
#define TAKE_ARGUMENTS(first)                                                                                          \
    va_list list;                                                                                                      \
    va_start(list, first);                                                                                             \
    const size_t count = count_arguments(first, list);                                                                 \
    char *argv[count];                                                                                                 \
    take_arguments(argv, count, first, &list)

EXPORTED int execl(const char *path, const char *argument, ...)
{
    TAKE_ARGUMENTS(argument);
    va_end(list);
    return execve(path, argv, environ);
}

EXPORTED int execlp(const char *file, const char *argument, ...)
{
    TAKE_ARGUMENTS(argument);
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORTED int execle(const char *path, const char *argument, ...)
{
    TAKE_ARGUMENTS(argument);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, environment);
}

EXPORTED _Noreturn void _exit(int status)
{
    prepare(KPROF_BEFORE_EXIT);
    exit_function *call = atomic_load(&next.exit);
    for (;;) {
        if (call)
            call(status);
        syscall(SYS_exit_group, status);
    }
}

EXPORTED _Noreturn void _Exit(int status)
{
    _exit(status);
}

/* Threads */

/* The thread at place i of the list runs starts[i]. */
static struct start {
    thread_function *run;
    void *argument;
} starts[KPROF_MAX_FOREIGN_THREADS];

static bool is_foreign_file(const char *path)
{
    static const char *const beginnings[] = {"libcuda.so", "libcupti.so", "libnvperf_", "libkprof-inject"};
    const char *name = last_part(path);
    return KPROF_ANY(i, COUNT_OF(beginnings), strncmp(name, beginnings[i], strlen(beginnings[i])) == 0);
}

/* Is the code CUDA's or kprof's? dladdr would take the loader's lock, which another thread may hold while it waits for
 * the one that is about to begin. */
static bool is_foreign(void *code)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object object;
    __typeof__(&_dl_find_object) find = atomic_load(&next.find_object);
    return find && find(code, &object) == 0 && object.dlfo_link_map->l_name &&
           is_foreign_file(object.dlfo_link_map->l_name);
#else
    (void)code;
    return false;
#endif
}

/* Return the place's number, KPROF_MAX_FOREIGN_THREADS where all are taken: then the thread counts as the
 * application's. */
static int take_place(void)
{
    for (int i = 0; i < KPROF_MAX_FOREIGN_THREADS; i++) {
        int free_place = 0;
        if (atomic_compare_exchange_strong(&kprof_foreign_thread_ids[i], &free_place, -1))
            return i;
    }
    return KPROF_MAX_FOREIGN_THREADS;
}

static void leave_place(void *place)
{
    atomic_store((atomic_int *)place, 0);
}

/* NOLINTNEXTLINE(readability-function-size): the levels are those of the C library's macros */
static void *run_foreign(void *user)
{
    struct start start = *(struct start *)user;
    atomic_int *place = &kprof_foreign_thread_ids[(struct start *)user - starts];
    void *result;
    atomic_store(place, (int)syscall(SYS_gettid));
    pthread_cleanup_push(leave_place, place); /* also where the thread calls pthread_exit */
    kprof_handlers_block(NULL);               /* a handler would run code of the application */
    result = start.run(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

EXPORTED int pthread_create(pthread_t *out, const pthread_attr_t *attributes, thread_function *run, void *argument)
{
    if (!atomic_load(&next.pthread_create))
        find_functions();
    create_function *call = atomic_load(&next.pthread_create);
    if (!call)
        return EAGAIN;
    bool foreign = is_foreign(__builtin_return_address(0)) && is_foreign((void *)(uintptr_t)run);
    int place = foreign ? take_place() : KPROF_MAX_FOREIGN_THREADS;
    if (!foreign)
        prepare(KPROF_BEFORE_THREAD);
    if (place == KPROF_MAX_FOREIGN_THREADS)
        return call(out, attributes, run, argument);
    starts[place] = (struct start){run, argument};
    int error = call(out, attributes, run_foreign, &starts[place]);
    if (error)
        leave_place(&kprof_foreign_thread_ids[place]);
    return error;
}

/* Output of kernels */

EXPORTED int vfprintf(FILE *stream, const char *format, va_list list)
{
    if (atomic_load_explicit(&kprof_output.watches, memory_order_relaxed) && stream == stdout &&
        is_foreign(__builtin_return_address(0))) {
        atomic_fetch_add(&kprof_output.seen, 1);
        if (atomic_load(&kprof_output.drops))
            return vsnprintf(NULL, 0, format, list);
    }
    if (!atomic_load(&next.vfprintf))
        find_functions();
    print_function *call = atomic_load(&next.vfprintf);
    return call ? call(stream, format, list) : fail();
}

/* Control calls of the driver */

EXPORTED int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!atomic_load(&next.ioctl))
        find_functions();
    kprof_ioctl_call call = {.fd = fd, .request = request, .argument = argument, .issue = atomic_load(&next.ioctl)};
    kprof_ioctl_hook *hook = atomic_load_explicit(&kprof_ioctl_hook_slot, memory_order_acquire);
    if (!call.issue)
        return fail();
    return hook && hook(&call) ? call.result : call.issue(fd, request, argument);
}
