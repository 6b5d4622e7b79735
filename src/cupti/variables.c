/* An array: programs ask for few variables. */
#include "cupti/variables.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static kprof_variable *variables; /* [count] */
static size_t count, capacity;
static bool incomplete;

static kprof_variable *find(const void *context, uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (variables[i].context == context && variables[i].address == address)
            return &variables[i];
    return NULL;
}

static bool grow(void)
{
    if (count < capacity)
        return true;
    size_t wanted = capacity ? 2 * capacity : 64;
    kprof_variable *grown = realloc(variables, wanted * sizeof *variables);
    if (!grown)
        return false;
    variables = grown;
    capacity = wanted;
    return true;
}

void kprof_variables_note(const void *context, uint64_t address, size_t size_bytes)
{
    pthread_mutex_lock(&mutex);
    kprof_variable *known = find(context, address);
    if (known && size_bytes > 0)
        known->size_bytes = size_bytes; /* the module may be another one by now */
    else if (!known && grow())
        variables[count++] = (kprof_variable){context, address, size_bytes};
    else if (!known)
        incomplete = true;
    pthread_mutex_unlock(&mutex);
}

bool kprof_variables_list(const void *context, kprof_variable **out, size_t *out_count)
{
    pthread_mutex_lock(&mutex);
    *out_count = 0;
    *out = count > 0 ? malloc(count * sizeof **out) : NULL;
    bool listed = !incomplete && (*out || count == 0);
    for (size_t i = 0; listed && i < count; i++)
        if (variables[i].context == context)
            (*out)[(*out_count)++] = variables[i];
    pthread_mutex_unlock(&mutex);
    return listed;
}

void kprof_variables_drop(const void *context, uint64_t address)
{
    pthread_mutex_lock(&mutex);
    kprof_variable *known = find(context, address);
    if (known)
        *known = variables[--count];
    pthread_mutex_unlock(&mutex);
}

void kprof_variables_forget(const void *context)
{
    pthread_mutex_lock(&mutex);
    for (size_t i = count; i-- > 0;)
        if (variables[i].context == context)
            variables[i] = variables[--count];
    pthread_mutex_unlock(&mutex);
}
