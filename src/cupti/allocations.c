/* A list in no order: programs have few allocations, since frameworks keep pools of their own. */
#include "cupti/allocations.h"

#include "core/hold.h"
#include "core/strbuf.h"
#include "cupti/driver.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct allocation {
    uint64_t address;
    size_t size_bytes;
    const void *context; /* NULL: all contexts of the device reach it */
    int device;          /* of those without a context */
    bool is_managed;
    bool is_host; /* of the host, in reach of all contexts */
} allocation;

#define MAX_UNMAPPED 64 /* programs map what they create at once */

static struct {
    pthread_mutex_t mutex;
    allocation *allocations; /* [count] */
    size_t count;
    uint64_t device_bytes; /* of all but the host's */
    bool incomplete;
    atomic_bool doubtful; /* a context has ended, perhaps with memory that has none here */
    atomic_uint version;
    atomic_bool managed_stays;                 /* on the host while a batch is open */
    unsigned long long unmapped[MAX_UNMAPPED]; /* [unmapped_count]: created, and mapped nowhere */
    size_t unmapped_count;
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void kprof_allocations_let_managed_stay(bool stays)
{
    if (atomic_exchange(&list.managed_stays, stays) != stays)
        atomic_fetch_add(&list.version, 1);
}

bool kprof_allocations_managed_stays(void)
{
    return atomic_load_explicit(&list.managed_stays, memory_order_relaxed);
}

static void add_locked(allocation added)
{
    atomic_fetch_add(&list.version, 1); /* also if memory runs out: whoever has listed all before must ask again */
    if (!KPROF_APPEND(list.allocations, list.count)) {
        list.incomplete = true;
        return;
    }
    list.allocations[list.count++] = added;
    list.device_bytes += added.is_host ? 0 : added.size_bytes;
}

/* The last one takes its place. */
static void remove_locked(size_t i)
{
    list.device_bytes -= list.allocations[i].is_host ? 0 : list.allocations[i].size_bytes;
    list.allocations[i] = list.allocations[--list.count];
}

static void add(allocation added)
{
    if (added.size_bytes == 0)
        return;
    KPROF_HOLD(list.mutex);
    add_locked(added);
}

/* Memory of a pool belongs to its device; the pool's device may be another one than the current. */
static void add_of_device(CUdeviceptr address, size_t size_bytes)
{
    const kprof_driver_api *driver;
    int device = -1;
    bool known = kprof_driver_load(&driver) == KPROF_OK &&
                 driver->cuPointerGetAttribute_(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS;
    add((allocation){address, size_bytes, NULL, device, false, false});
    if (known)
        return;
    KPROF_HOLD(list.mutex);
    list.incomplete = true;
    atomic_fetch_add(&list.version, 1);
}

static void free_at(uint64_t address)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = list.count; i-- > 0;)
        if (list.allocations[i].address == address)
            remove_locked(i);
}

/* Take a range out of memory without a context. An allocation may lose its beginning, its end, or a part between. */
static void take_out(uint64_t start, size_t size_bytes, bool of_host)
{
    const uint64_t end = start + size_bytes;
    KPROF_HOLD(list.mutex);
    for (size_t i = list.count; i-- > 0;) {
        allocation a = list.allocations[i];
        uint64_t a_end = a.address + a.size_bytes;
        if (a.context || a.is_host != of_host || a.address >= end || a_end <= start)
            continue;
        remove_locked(i);
        if (a.address < start)
            add_locked((allocation){a.address, (size_t)(start - a.address), NULL, a.device, false, of_host});
        if (a_end > end)
            add_locked((allocation){end, (size_t)(a_end - end), NULL, a.device, false, of_host});
    }
}

/* If there is new memory at an address in the list, the old memory went with its context. */
static void make_way(const kprof_memory_change *change)
{
    const bool of_host = change->kind == KPROF_MEMORY_OF_HOST;
    bool is_new = of_host || change->kind == KPROF_MEMORY_OF_CONTEXT || change->kind == KPROF_MEMORY_MANAGED ||
                  change->kind == KPROF_MEMORY_OF_DEVICE;
    if (is_new && atomic_load(&list.doubtful))
        take_out(change->address, change->size_bytes, of_host);
}

static allocation *copy_list(size_t *count)
{
    KPROF_HOLD(list.mutex);
    allocation *copy = kprof_calloc(list.count + 1, sizeof *copy);
    *count = copy ? list.count : 0;
    for (size_t i = 0; i < *count; i++)
        copy[i] = list.allocations[i];
    return copy;
}

/* Forget memory that went with a context, pinned or of a pool: the driver does not know it any more. */
static void drop_what_is_gone(void)
{
    const kprof_driver_api *driver;
    size_t count;
    if (!atomic_exchange(&list.doubtful, false))
        return;
    KPROF_AUTO_FREE allocation *copy = copy_list(&count);
    bool all_told = copy && kprof_driver_load(&driver) == KPROF_OK;
    for (size_t i = 0; all_told && i < count; i++) {
        unsigned type;
        CUresult result =
            copy[i].context ? CUDA_SUCCESS
                            : driver->cuPointerGetAttribute_(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, copy[i].address);
        if (result == CUDA_ERROR_INVALID_VALUE)
            take_out(copy[i].address, copy[i].size_bytes, copy[i].is_host);
        all_told = result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE;
    }
    if (!all_told)
        atomic_store(&list.doubtful, true);
}

static void forget_unmapped(unsigned long long handle)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = list.unmapped_count; i-- > 0;)
        if (list.unmapped[i] == handle)
            list.unmapped[i] = list.unmapped[--list.unmapped_count];
}

static void note_unmapped(unsigned long long handle)
{
    KPROF_HOLD(list.mutex);
    if (list.unmapped_count < MAX_UNMAPPED)
        list.unmapped[list.unmapped_count++] = handle;
}

bool kprof_allocations_is_unmapped(unsigned long long handle)
{
    KPROF_HOLD(list.mutex);
    return KPROF_ANY(i, list.unmapped_count, list.unmapped[i] == handle);
}

/* Leave out a mapping that may only be read: a write to it ends the context, and its memory changes through another
 * address only. */
static void set_access(const kprof_memory_change *change)
{
    take_out(change->address, change->size_bytes, false);
    for (size_t i = 0; i < change->access_count; i++)
        if (change->access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            change->access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            add((allocation){change->address, change->size_bytes, NULL, change->access[i].location.id, false, false});
}

void kprof_allocations_note(const kprof_memory_change *change, const void *context)
{
    make_way(change);
    switch (change->kind) {
    case KPROF_MEMORY_OF_CONTEXT:
    case KPROF_MEMORY_MANAGED:
        add((allocation){change->address, change->size_bytes, context, -1, change->kind == KPROF_MEMORY_MANAGED,
                         false});
        break;
    case KPROF_MEMORY_OF_HOST:
        add((allocation){change->address, change->size_bytes, NULL, -1, false, true});
        break;
    case KPROF_MEMORY_OF_DEVICE:
        add_of_device(change->address, change->size_bytes);
        break;
    case KPROF_MEMORY_FREED:
        free_at(change->address);
        break;
    case KPROF_MEMORY_ACCESSED:
        set_access(change);
        break;
    case KPROF_MEMORY_UNMAPPED:
        take_out(change->address, change->size_bytes, false);
        break;
    case KPROF_MEMORY_CREATED:
        note_unmapped(change->handle);
        break;
    case KPROF_MEMORY_USED:
        forget_unmapped(change->handle);
        break;
    case KPROF_MEMORY_UNCHANGED:
        break;
    }
}

unsigned kprof_allocations_version(void)
{
    return atomic_load(&list.version);
}

typedef struct wanted {
    const void *context;
    int device;
    bool only_managed, only_host, leaves_managed;
} wanted;

static bool list_those(wanted w, kprof_span **out, size_t *out_count)
{
    drop_what_is_gone();
    KPROF_HOLD(list.mutex);
    *out_count = 0;
    *out = list.incomplete ? NULL : kprof_calloc(list.count + 1, sizeof **out);
    for (size_t i = 0; *out && i < list.count; i++) {
        const allocation *a = &list.allocations[i];
        const bool stays = a->is_managed && w.leaves_managed;
        bool in_reach = a->is_host || a->is_managed || (a->context ? a->context == w.context : a->device == w.device);
        if (in_reach && !stays && a->is_host == w.only_host && (a->is_managed || !w.only_managed))
            (*out)[(*out_count)++] = (kprof_span){a->address, a->size_bytes};
    }
    return *out != NULL;
}

bool kprof_allocations_list(const void *context, int device, kprof_span **out, size_t *count)
{
    return list_those((wanted){context, device, false, false, kprof_allocations_managed_stays()}, out, count);
}

bool kprof_allocations_list_managed(kprof_span **out, size_t *count)
{
    return list_those((wanted){NULL, -1, true, false, false}, out, count);
}

bool kprof_allocations_list_host(kprof_span **out, size_t *count)
{
    return list_those((wanted){NULL, -1, false, true, false}, out, count);
}

bool kprof_allocations_find(uint64_t address, kprof_memory_change *out)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = 0; i < list.count; i++) {
        const allocation *a = &list.allocations[i];
        if (a->address != address)
            continue;
        *out = (kprof_memory_change){.kind = a->is_host      ? KPROF_MEMORY_OF_HOST
                                             : a->is_managed ? KPROF_MEMORY_MANAGED
                                             : a->context    ? KPROF_MEMORY_OF_CONTEXT
                                                             : KPROF_MEMORY_OF_DEVICE,
                                     .address = address,
                                     .size_bytes = a->size_bytes};
        return true;
    }
    return false;
}

uint64_t kprof_allocations_bytes(void)
{
    KPROF_HOLD(list.mutex);
    return list.incomplete ? 0 : list.device_bytes;
}

size_t kprof_allocations_size(uint64_t address, const void *context)
{
    size_t size_bytes = 0;
    KPROF_HOLD(list.mutex);
    for (size_t i = 0; i < list.count; i++) {
        const allocation *a = &list.allocations[i];
        if (a->address == address && a->context == context && context && !a->is_managed)
            size_bytes = a->size_bytes;
    }
    return size_bytes;
}

void kprof_allocations_forget(const void *context)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = list.count; i-- > 0;)
        if (list.allocations[i].context == context)
            remove_locked(i);
    atomic_store(&list.doubtful, true);
}
