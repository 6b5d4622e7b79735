/* A hash table by function handle and context over the list of kernels. */
#include "inject/kernels.h"

#include "inject/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
    void *function, *context; /* a library's kernel has one handle in all contexts */
    kprof_kernel *kernel;
} slot;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static slot *slots; /* [slot_count], a power of two; open addressing */
static size_t slot_count, slots_used;
static atomic_uint generation; /* of handles */
static unsigned slots_generation;
static kprof_kernel **kernels; /* [kernel_count] */
static size_t kernel_count, kernel_capacity;

static slot *find_slot(slot *table, size_t size, const void *function, const void *context)
{
    uint64_t key = ((uintptr_t)function >> 4) + ((uintptr_t)context >> 4) * 31;
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (size - 1);
    while (table[i].function && (table[i].function != function || table[i].context != context))
        i = (i + 1) & (size - 1);
    return &table[i];
}

static bool grow_slots(void)
{
    size_t size = slot_count ? slot_count * 2 : 256;
    slot *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].function)
            *find_slot(table, size, slots[i].function, slots[i].context) = slots[i];
    free(slots);
    slots = table;
    slot_count = size;
    return true;
}

static bool same_kernel(const kprof_kernel_record *a, const kprof_kernel_record *b)
{
    return a->registers_per_thread == b->registers_per_thread && a->static_smem_bytes == b->static_smem_bytes &&
           a->local_bytes_per_thread == b->local_bytes_per_thread && a->constant_bytes == b->constant_bytes &&
           strcmp(a->mangled, b->mangled) == 0;
}

static kprof_kernel *find_known(const kprof_kernel_record *record)
{
    for (size_t i = 0; i < kernel_count; i++)
        if (same_kernel(&kernels[i]->record, record))
            return kernels[i];
    return NULL;
}

static kprof_kernel *add_kernel(const kprof_kernel_record *record, const kprof_filter *filter)
{
    if (kernel_count == kernel_capacity) {
        size_t capacity = kernel_capacity ? kernel_capacity * 2 : 64;
        kprof_kernel **grown = realloc(kernels, capacity * sizeof(kprof_kernel *));
        if (!grown)
            return NULL;
        kernels = grown;
        kernel_capacity = capacity;
    }
    kprof_kernel *kernel = calloc(1, sizeof *kernel);
    char *mangled = strdup(record->mangled);
    if (!kernel || !mangled) {
        free(kernel);
        free(mangled);
        return NULL;
    }
    kernels[kernel_count++] = kernel;
    kernel->record = *record;
    kernel->record.mangled = mangled;
    kernel->record.kernel = (uint32_t)kernel_count;
    kernel->matches = kprof_filter_match_name(filter, mangled);
    return kernel;
}

static void forget_old_handles(void)
{
    unsigned now = atomic_load(&generation);
    if (slots_generation == now)
        return;
    if (slots)
        memset(slots, 0, slot_count * sizeof *slots);
    slots_used = 0;
    slots_generation = now;
}

static kprof_kernel *find_locked(const kprof_call *call, const kprof_filter *filter, kprof_kernel_announcer *announce)
{
    forget_old_handles();
    if (slots_used * 2 >= slot_count && !grow_slots())
        return NULL;
    slot *found = find_slot(slots, slot_count, call->function, call->context);
    if (found->kernel && strcmp(found->kernel->record.mangled, call->kernel_name) == 0)
        return found->kernel;
    kprof_kernel_record record = {.mangled = call->kernel_name};
    kprof_engine.device->target_kernel(call, &record);
    kprof_engine.device->target_note_variables(call);
    kprof_kernel *kernel = find_known(&record);
    if (!kernel) {
        kernel = add_kernel(&record, filter);
        if (!kernel)
            return NULL;
        announce(kernel); /* before another thread finds it, and tells of its launches */
    }
    if (!found->function)
        slots_used++;
    *found = (slot){call->function, call->context, kernel};
    return kernel;
}

kprof_kernel *kprof_kernels_find(const kprof_call *call, const kprof_filter *filter, kprof_kernel_announcer *announce)
{
    pthread_mutex_lock(&mutex);
    kprof_kernel *kernel = find_locked(call, filter, announce);
    pthread_mutex_unlock(&mutex);
    return kernel;
}

void kprof_kernels_forget_handles(void)
{
    atomic_fetch_add(&generation, 1);
}

void kprof_kernels_visit(void (*visit)(kprof_kernel *kernel))
{
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < kernel_count; i++)
        visit(kernels[i]);
    pthread_mutex_unlock(&mutex);
}
