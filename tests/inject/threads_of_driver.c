/* Stands in for libcuda.so, which starts threads of its own, and writes what kernels print. Without sibling calls, so
 * that threads are started from here. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct start {
    void *(*run)(void *);
    void *argument;
} start;

int start_thread(pthread_t *out, void *(*run)(void *), void *argument);
int start_thread_of_others(pthread_t *out, void *(*run)(void *), void *argument);
int print_to(FILE *stream, const char *format, ...);

static void *go(void *user)
{
    start given = *(start *)user;
    free(user);
    return given.run(given.argument);
}

EXPORTED int start_thread(pthread_t *out, void *(*run)(void *), void *argument)
{
    start *given = malloc(sizeof *given);
    if (!given)
        return -1;
    *given = (start){run, argument};
    return pthread_create(out, NULL, go, given);
}

EXPORTED int start_thread_of_others(pthread_t *out, void *(*run)(void *), void *argument)
{
    return pthread_create(out, NULL, run, argument);
}

EXPORTED int print_to(FILE *stream, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = vfprintf(stream, format, list);
    va_end(list);
    return result;
}
