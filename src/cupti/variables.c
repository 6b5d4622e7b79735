/* An array: programs have few modules with variables. */
#include "cupti/variables.h"

#include "core/log.h"
#include "cupti/driver.h"
#include "cupti/modules.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A variable of a module, and the driver's allocation that it lies in. */
typedef struct placed {
    CUdeviceptr address, allocation;
    size_t size_bytes;
} placed;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static kprof_variable *variables; /* [count] */
static size_t count, capacity;
static bool incomplete;
static atomic_uint version;

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
    if (!known)
        atomic_fetch_add(&version, 1);
    pthread_mutex_unlock(&mutex);
}

static void lose(const char *why)
{
    pthread_mutex_lock(&mutex);
    incomplete = true;
    atomic_fetch_add(&version, 1);
    pthread_mutex_unlock(&mutex);
    kprof_log(KPROF_LOG_DEBUG, "module variables are not known any more: %s", why);
}

/* The variables of `names` that the module has, placed, and how many; the others are those of another module that has a
 * kernel of the same name. */
static size_t place(const kprof_driver_api *driver, CUmodule module, const kprof_strlist *names, placed *out)
{
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++) {
        placed *p = &out[found];
        CUresult result = driver->cuModuleGetGlobal_(&p->address, &p->size_bytes, module, names->items[i]);
        if (result == CUDA_SUCCESS)
            found++;
        else if (result != CUDA_ERROR_NOT_FOUND)
            lose(kprof_driver_error(result));
        if (result == CUDA_SUCCESS &&
            driver->cuPointerGetAttribute_(&p->allocation, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p->address) !=
                CUDA_SUCCESS)
            p->allocation = p->address;
    }
    return found;
}

static int compare_places(const void *a, const void *b)
{
    const placed *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

/* What lies in one allocation is copied at once: modules can have dozens of variables of a byte. */
static void note_places(const void *context, placed *places, size_t place_count)
{
    qsort(places, place_count, sizeof *places, compare_places);
    for (size_t first = 0, next; first < place_count; first = next) {
        const placed *p = &places[first];
        CUdeviceptr end = p->address + p->size_bytes;
        for (next = first + 1; next < place_count && places[next].allocation == p->allocation; next++)
            if (places[next].address + places[next].size_bytes > end)
                end = places[next].address + places[next].size_bytes;
        kprof_variables_note(context, p->address, (size_t)(end - p->address));
    }
}

static void note_names(const void *context, CUfunction function, const kprof_strlist *names)
{
    const kprof_driver_api *driver;
    CUmodule module;
    placed *places = malloc(names->count * sizeof *places);
    if (!places || kprof_driver_load(&driver) != KPROF_OK)
        lose("no memory");
    else if (driver->cuFuncGetModule_(&module, function) != CUDA_SUCCESS)
        lose("the driver does not tell a kernel's module");
    else
        note_places(context, places, place(driver, module, names, places));
    free(places);
}

void kprof_variables_note_module(const void *context, void *function, const char *kernel)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    if (!kprof_modules_variables(kernel, &names))
        lose("no memory");
    else if (names.count > 0)
        note_names(context, function, &names);
    kprof_strlist_free(&names);
}

unsigned kprof_variables_version(void)
{
    return atomic_load(&version);
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
