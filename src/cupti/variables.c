/* An array: programs have few modules with variables. */
#include "cupti/variables.h"

#include "core/hold.h"
#include "core/log.h"
#include "core/strbuf.h"
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

static struct {
    pthread_mutex_t mutex;
    kprof_variable *variables; /* [count] */
    size_t count;
    uint64_t bytes; /* of all */
    bool incomplete;
    atomic_bool managed; /* the host reaches one */
    atomic_uint version;
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Note a variable although it lies within another one: that may be of a module that is gone. */
static bool is_known(const kprof_variable *v)
{
    const kprof_variable *known = list.variables;
    return KPROF_ANY(i, list.count,
                     known[i].context == v->context && known[i].owner == v->owner && known[i].address == v->address &&
                         known[i].size_bytes == v->size_bytes);
}

/* The last one takes its place. */
static void remove_locked(size_t i)
{
    list.bytes -= list.variables[i].size_bytes;
    list.variables[i] = list.variables[--list.count];
}

/* Return the start of the allocation that the address is in, or the address itself if the driver does not tell. */
static CUresult find_allocation(uint64_t address, CUdeviceptr *start)
{
    const kprof_driver_api *driver;
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;
    if (kprof_driver_load(&driver) == KPROF_OK)
        result = driver->cuPointerGetAttribute_(start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    if (result != CUDA_SUCCESS)
        *start = address;
    return result;
}

/* Is the variable managed, or does the driver not tell? */
static bool is_managed_at(uint64_t address)
{
    const kprof_driver_api *driver;
    unsigned is_managed = 1;
    if (kprof_driver_load(&driver) == KPROF_OK &&
        driver->cuPointerGetAttribute_(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
        !is_managed)
        return false;
    if (!atomic_exchange(&list.managed, true))
        kprof_log(KPROF_LOG_DEBUG, "a module variable is managed: from now on memory is shared with the host");
    return true;
}

/* Entries may overlap: a variable that the application asked for, and the module's that it is one of. */
void kprof_variables_note(const void *context, const void *owner, uint64_t address, size_t size_bytes)
{
    const kprof_driver_api *driver;
    CUdeviceptr start;
    kprof_variable v = {
        context, owner, address, size_bytes, find_allocation(address, &start) == CUDA_SUCCESS, is_managed_at(address)};
    if (v.is_managed && v.size_bytes == 0 && kprof_driver_load(&driver) == KPROF_OK) /* its pages are looked for */
        v.size_bytes = kprof_driver_measure_rest(driver, address);
    KPROF_HOLD(list.mutex);
    if (!is_known(&v)) {
        if (KPROF_APPEND(list.variables, list.count)) {
            list.variables[list.count++] = v;
            list.bytes += v.size_bytes;
        } else {
            list.incomplete = true;
        }
        atomic_fetch_add(&list.version, 1);
    }
}

static void lose(const char *why)
{
    pthread_mutex_lock(&list.mutex);
    list.incomplete = true;
    atomic_fetch_add(&list.version, 1);
    pthread_mutex_unlock(&list.mutex);
    kprof_log(KPROF_LOG_DEBUG, "module variables are not known any more: %s", why);
}

/* The variables of these names that the module has, and how many. */
static size_t place(const kprof_driver_api *driver, CUmodule module, const kprof_strlist *names, placed *out)
{
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++) {
        placed *p = &out[found];
        if (driver->cuModuleGetGlobal_(&p->address, &p->size_bytes, module, names->items[i]) != CUDA_SUCCESS)
            continue;
        (void)find_allocation(p->address, &p->allocation);
        found++;
    }
    return found;
}

KPROF_BY_NUMBER(compare_places, placed, address)

/* Merge variables that lie in one allocation: modules can have dozens of variables of one byte. */
static void note_places(const void *context, CUmodule module, placed *places, size_t place_count)
{
    qsort(places, place_count, sizeof *places, compare_places);
    for (size_t first = 0, next; first < place_count; first = next) {
        const placed *p = &places[first];
        CUdeviceptr end = p->address + p->size_bytes;
        for (next = first + 1; next < place_count && places[next].allocation == p->allocation; next++)
            if (places[next].address + places[next].size_bytes > end)
                end = places[next].address + places[next].size_bytes;
        kprof_variables_note(context, module, p->address, (size_t)(end - p->address));
    }
}

typedef enum match {
    NO_VARIABLES,
    OTHER_MODULE, /* none of the cubin's variables is there */
    PARTLY,
    MATCH
} match;

/* Note the cubin's variables that the module has. */
static match note_cubin(const kprof_driver_api *driver, const void *context, CUmodule module,
                        const kprof_strlist *names)
{
    KPROF_AUTO_FREE placed *places = kprof_calloc(names->count + 1, sizeof *places);
    if (!places)
        return PARTLY;
    size_t found = place(driver, module, names, places);
    note_places(context, module, places, found);
    return names->count == 0 ? NO_VARIABLES : found == 0 ? OTHER_MODULE : found < names->count ? PARTLY : MATCH;
}

/* Several cubins can have a kernel of this name. kprof knows the module's by finding all variables of one of them. */
void kprof_variables_note_module(const void *context, void *function, const char *kernel)
{
    const kprof_driver_api *driver;
    const kprof_strlist *names;
    CUmodule module;
    bool seen[MATCH + 1] = {false};
    if (!kprof_modules_variables(kernel, 0)) {
        lose("a kernel's code was not seen being loaded");
        return;
    }
    if (kprof_driver_load(&driver) != KPROF_OK || driver->cuFuncGetModule_(&module, function) != CUDA_SUCCESS) {
        lose("the driver does not tell a kernel's module");
        return;
    }
    for (size_t i = 0; (names = kprof_modules_variables(kernel, i)); i++) {
        const match found = note_cubin(driver, context, module, names);
        seen[found] = true;
        if (found == MATCH)
            kprof_modules_note_variables(names);
    }
    if (!seen[MATCH] && (seen[PARTLY] || !seen[NO_VARIABLES]))
        lose("the driver does not find those of a kernel's module");
}

bool kprof_variables_managed(void)
{
    return atomic_load(&list.managed);
}

unsigned kprof_variables_version(void)
{
    return atomic_load(&list.version);
}

bool kprof_variables_list(const void *context, kprof_variable **out, size_t *out_count)
{
    KPROF_HOLD(list.mutex);
    *out_count = 0;
    *out = !list.incomplete && list.count > 0 ? kprof_calloc(list.count, sizeof **out) : NULL;
    bool listed = !list.incomplete && (*out || list.count == 0);
    for (size_t i = 0; listed && i < list.count; i++)
        if (!context || !list.variables[i].context || list.variables[i].context == context)
            (*out)[(*out_count)++] = list.variables[i];
    return listed;
}

bool kprof_variables_bytes(uint64_t *out)
{
    KPROF_HOLD(list.mutex);
    const bool is_known = !list.incomplete;
    *out = list.bytes;
    return is_known;
}

size_t kprof_variables_bytes_of(const void *owner)
{
    KPROF_HOLD(list.mutex);
    return KPROF_SUM(i, list.count, list.variables[i].owner == owner ? list.variables[i].size_bytes : 0);
}

/* The driver may want a context to tell it in, which the calling thread need not have. */
static bool is_gone(const kprof_variable *v)
{
    const kprof_driver_api *driver;
    CUdeviceptr start;
    CUcontext popped;
    CUresult result = find_allocation(v->address, &start);
    if (result == CUDA_ERROR_INVALID_CONTEXT && kprof_driver_load(&driver) == KPROF_OK &&
        driver->cuCtxPushCurrent_((CUcontext)(uintptr_t)v->context) == CUDA_SUCCESS) {
        result = find_allocation(v->address, &start);
        driver->cuCtxPopCurrent_(&popped);
    }
    return result == CUDA_ERROR_INVALID_VALUE;
}

void kprof_variables_unload(const void *owner)
{
    KPROF_AUTO_FREE kprof_variable *left = NULL;
    size_t left_count;
    pthread_mutex_lock(&list.mutex);
    for (size_t i = list.count; i-- > 0;)
        if (list.variables[i].owner == owner)
            remove_locked(i);
    pthread_mutex_unlock(&list.mutex);
    if (!kprof_variables_list(NULL, &left, &left_count))
        left_count = 0;
    for (size_t i = 0; i < left_count; i++)
        if (left[i].told && is_gone(&left[i]))
            kprof_variables_drop(left[i].context, left[i].address);
}

void kprof_variables_drop(const void *context, uint64_t address)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = list.count; i-- > 0;)
        if (list.variables[i].context == context && list.variables[i].address == address)
            remove_locked(i);
}

void kprof_variables_forget(const void *context)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = list.count; i-- > 0;)
        if (list.variables[i].context == context)
            remove_locked(i);
}
