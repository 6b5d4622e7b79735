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

static uint64_t end_of(const kprof_variable *v)
{
    return v->address + v->size_bytes;
}

/* Does the first hold all of the second? */
static bool holds(const kprof_variable *outer, const kprof_variable *inner)
{
    return outer->context == inner->context && outer->address <= inner->address &&
           (end_of(inner) <= end_of(outer) && (inner->size_bytes > 0 || inner->address < end_of(outer)));
}

static bool is_known(const kprof_variable *v)
{
    for (size_t i = 0; i < count; i++)
        if (holds(&variables[i], v) || (v->size_bytes == 0 && variables[i].size_bytes == 0 &&
                                        variables[i].context == v->context && variables[i].address == v->address))
            return true;
    return false;
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

/* Entries may overlap: a variable that the application asked for, and the module's that it is one of. */
void kprof_variables_note(const void *context, uint64_t address, size_t size_bytes)
{
    kprof_variable v = {context, address, size_bytes};
    pthread_mutex_lock(&mutex);
    if (!is_known(&v)) {
        if (grow())
            variables[count++] = v;
        else
            incomplete = true;
        atomic_fetch_add(&version, 1);
    }
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

static CUdeviceptr allocation_of(const kprof_driver_api *driver, CUdeviceptr address)
{
    CUdeviceptr start = address;
    CUresult result = driver->cuPointerGetAttribute_(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    return result == CUDA_SUCCESS ? start : address;
}

/* The variables of these names that the module has, and how many. */
static size_t place(const kprof_driver_api *driver, CUmodule module, const kprof_strlist *names, placed *out)
{
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++) {
        placed *p = &out[found];
        if (driver->cuModuleGetGlobal_(&p->address, &p->size_bytes, module, names->items[i]) != CUDA_SUCCESS)
            continue;
        p->allocation = allocation_of(driver, p->address);
        found++;
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

/* Note the variables of a cubin if it is the module's, of which another may have a kernel of the same name: all or none
 * of its variables are there. False when it is not. */
static bool note_cubin(const kprof_driver_api *driver, const void *context, CUmodule module, const kprof_strlist *names)
{
    placed *places = malloc((names->count + 1) * sizeof *places);
    if (!places) {
        lose("no memory");
        return true;
    }
    size_t found = place(driver, module, names, places);
    note_places(context, places, found);
    free(places);
    if (found > 0 && found < names->count)
        lose("the driver does not find some of a module");
    return found == names->count;
}

void kprof_variables_note_module(const void *context, void *function, const char *kernel)
{
    const kprof_driver_api *driver;
    const kprof_strlist *names;
    CUmodule module = NULL;
    bool is_found = true;
    for (size_t i = 0; (names = kprof_modules_variables(kernel, i)); i++) {
        if (names->count > 0 && !module &&
            (kprof_driver_load(&driver) != KPROF_OK || driver->cuFuncGetModule_(&module, function) != CUDA_SUCCESS)) {
            is_found = false;
            break;
        }
        is_found = names->count == 0 || note_cubin(driver, context, module, names) || (i > 0 && is_found);
    }
    if (!is_found)
        lose("the driver does not find those of a kernel's module");
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
    for (size_t i = count; i-- > 0;)
        if (variables[i].context == context && variables[i].address == address)
            variables[i] = variables[--count];
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
