/* Stands in for libcuda.so, which starts threads of its own. */
#include <pthread.h>

int start_thread(pthread_t *out, void *(*run)(void *), void *argument);

__attribute__((visibility("default"))) int start_thread(pthread_t *out, void *(*run)(void *), void *argument)
{
    int error = pthread_create(out, NULL, run, argument);
    return error; /* no jump: the call has to come from here */
}
