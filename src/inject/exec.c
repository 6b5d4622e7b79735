/* A library of its own, preloaded into the application: tells the injection library before the process calls exec or
 * _exit, which no handler of the process sees. It is so small since each program that the application starts gets it,
 * and needs nothing but libc. Where no hook is set, each function is the C library's. */
#include "inject/exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED kprof_exec_slot kprof_exec_hook;

typedef int path_function(const char *path, char *const argv[], char *const environment[]);
typedef int fd_function(int fd, char *const argv[], char *const environment[]);
typedef void exit_function(int status);
typedef int at_function(int folder, const char *path, char *const argv[], char *const environment[], int flags);

static struct {
    _Atomic(path_function *) execve, execvpe;
    _Atomic(fd_function *) fexecve;
    _Atomic(at_function *) execveat;
    _Atomic(exit_function *) exit;
} next;

/* As the library is loaded: dlsym must not be called between fork and exec. */
__attribute__((constructor)) static void find_functions(void)
{
    atomic_store(&next.execve, (path_function *)dlsym(RTLD_NEXT, "execve"));
    atomic_store(&next.execvpe, (path_function *)dlsym(RTLD_NEXT, "execvpe"));
    atomic_store(&next.fexecve, (fd_function *)dlsym(RTLD_NEXT, "fexecve"));
    atomic_store(&next.execveat, (at_function *)dlsym(RTLD_NEXT, "execveat"));
    atomic_store(&next.exit, (exit_function *)dlsym(RTLD_NEXT, "_exit"));
}

/* Constructors of other libraries may be earlier than this library's. */
static void prepare(bool ends)
{
    if (!atomic_load(&next.execve))
        find_functions();
    kprof_exec_function *hook = atomic_load(&kprof_exec_hook);
    int saved_errno = errno;
    if (hook)
        hook(ends);
    errno = saved_errno;
}

static int fail(void)
{
    errno = ENOSYS;
    return -1;
}

EXPORTED int execve(const char *path, char *const argv[], char *const environment[])
{
    prepare(false);
    path_function *call = atomic_load(&next.execve);
    return call ? call(path, argv, environment) : fail();
}

EXPORTED int execvpe(const char *file, char *const argv[], char *const environment[])
{
    prepare(false);
    path_function *call = atomic_load(&next.execvpe);
    return call ? call(file, argv, environment) : fail();
}

EXPORTED int fexecve(int fd, char *const argv[], char *const environment[])
{
    prepare(false);
    fd_function *call = atomic_load(&next.fexecve);
    return call ? call(fd, argv, environment) : fail();
}

/* NOLINTNEXTLINE(readability-function-size): the C library's parameters */
EXPORTED int execveat(int folder, const char *path, char *const argv[], char *const environment[], int flags)
{
    prepare(false);
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

EXPORTED int execl(const char *path, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(argument, list);
    char *argv[count];
    take_arguments(argv, count, argument, &list);
    va_end(list);
    return execve(path, argv, environ);
}

EXPORTED int execlp(const char *file, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(argument, list);
    char *argv[count];
    take_arguments(argv, count, argument, &list);
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORTED int execle(const char *path, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(argument, list);
    char *argv[count];
    take_arguments(argv, count, argument, &list);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, environment);
}

EXPORTED _Noreturn void _exit(int status)
{
    prepare(true);
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
