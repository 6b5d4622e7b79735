/* A hash table by function handle and context over the list of kernels. */
#include "inject/kernels.h"

#include "core/hold.h"
#include "inject/engine.h"

#include <stdlib.h>
#include <string.h>

kprof_kernel_table kprof_the_kernels = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
static kprof_kernel_table *const table = &kprof_the_kernels;

#define MOST_TIMEOUTS 3

typedef struct kprof_kernel_slot slot;

static slot *find_slot(slot *slots, size_t size, const void *function, const void *context)
{
    uint64_t key = ((uintptr_t)function >> 4) + ((uintptr_t)context >> 4) * 31;
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (size - 1);
    while (slots[i].function && (slots[i].function != function || slots[i].context != context))
        i = (i + 1) & (size - 1);
    return &slots[i];
}

static bool grow_slots(void)
{
    size_t size = table->slot_count ? table->slot_count * 2 : 256;
    slot *grown = calloc(size, sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i].function)
            *find_slot(grown, size, table->slots[i].function, table->slots[i].context) = table->slots[i];
    free(table->slots);
    table->slots = grown;
    table->slot_count = size;
    return true;
}

static kprof_kernel *find_known(const kprof_kernel_record *record, bool is_range)
{
    for (size_t i = 0; i < table->kernel_count; i++) {
        const kprof_kernel_record *known = &table->kernels[i]->record;
        if (table->kernels[i]->is_range == is_range && known->registers_per_thread == record->registers_per_thread &&
            known->static_smem_bytes == record->static_smem_bytes &&
            known->local_bytes_per_thread == record->local_bytes_per_thread &&
            known->constant_bytes == record->constant_bytes && strcmp(known->mangled, record->mangled) == 0)
            return table->kernels[i];
    }
    return NULL;
}

static kprof_kernel *add_kernel(const kprof_kernel_record *record, const kprof_filter *filter)
{
    kprof_kernel **place = KPROF_APPEND(table->kernels, table->kernel_count);
    kprof_kernel *kernel = calloc(1, sizeof *kernel);
    char *mangled = strdup(record->mangled);
    if (!place || !kernel || !mangled) {
        KPROF_FREE(kernel, mangled);
        return NULL;
    }
    kernel->record = *record;
    kernel->record.mangled = mangled;
    kernel->record.kernel = (uint32_t)table->kernel_count + 1;
    kernel->matches = kprof_filter_match_name(filter, mangled);
    table->kernel_count++;
    return *place = kernel;
}

static void forget_old_handles(void)
{
    unsigned now = atomic_load(&table->generation) + kprof_engine.device->snapshot_unloads();
    if (table->slots_generation == now)
        return;
    if (table->slots)
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    table->slots_used = 0;
    table->slots_generation = now;
}

static kprof_kernel *find_handle(const kprof_call *call)
{
    KPROF_HOLD(table->mutex);
    forget_old_handles();
    const slot *found = table->slots ? find_slot(table->slots, table->slot_count, call->function, call->context) : NULL;
    kprof_kernel *kernel =
        found && found->kernel && strcmp(found->kernel->record.mangled, call->kernel_name) == 0 ? found->kernel : NULL;
    return kernel;
}

/* With the mutex held, like the next one. A new kernel is announced before other threads find it. */
static kprof_kernel *find_or_add(const kprof_kernel_record *record, bool is_range, const kprof_filter *filter,
                                 kprof_kernel_announcer *announce)
{
    kprof_kernel *kernel = find_known(record, is_range);
    if (!kernel && (kernel = add_kernel(record, filter)) != NULL) {
        kernel->is_range = is_range;
        announce(kernel);
    }
    return kernel;
}

static bool keep_handle(const kprof_call *call, kprof_kernel *kernel)
{
    forget_old_handles();
    if (table->slots_used * 2 >= table->slot_count && !grow_slots())
        return false;
    slot *found = find_slot(table->slots, table->slot_count, call->function, call->context);
    if (!found->function)
        table->slots_used++;
    *found = (slot){call->function, call->context, kernel};
    return true;
}

/* The driver is asked without the mutex: it may have a lock of its own, and whoever has that may wait for the mutex. */
kprof_kernel *kprof_kernels_find(const kprof_call *call, const kprof_filter *filter, kprof_kernel_announcer *announce)
{
    kprof_kernel *kernel = find_handle(call);
    if (kernel)
        return kernel;
    kprof_kernel_record record = {.mangled = call->kernel_name};
    kprof_engine.device->target_kernel(call, &record);
    kprof_engine.device->target_note_variables(call);
    KPROF_HOLD(table->mutex);
    kernel = find_or_add(&record, false, filter, announce);
    if (kernel && !keep_handle(call, kernel))
        kernel = NULL;
    return kernel;
}

kprof_kernel *kprof_kernels_find_named(const char *name, bool is_range, const kprof_filter *filter,
                                       kprof_kernel_announcer *announce)
{
    const kprof_kernel_record record = {.mangled = name};
    if (pthread_mutex_lock(&table->mutex) != 0) /* a signal handler has interrupted a thread that changes the table */
        return NULL;
    kprof_kernel *kernel = find_or_add(&record, is_range, filter, announce);
    pthread_mutex_unlock(&table->mutex);
    return kernel;
}

void kprof_kernels_forget_handles(void)
{
    atomic_fetch_add(&table->generation, 1);
}

kprof_filter_launch kprof_kernel_place(const kprof_launch_record *record)
{
    kprof_filter_launch place = {record->device, record->kernel, .dynamic_smem_bytes = record->dynamic_smem_bytes};
    memcpy(place.grid, record->grid, sizeof place.grid);
    memcpy(place.block, record->block, sizeof place.block);
    return place;
}

void kprof_kernels_visit(void (*visit)(kprof_kernel *kernel))
{
    /* The application's signal handler may exit while its thread finds a kernel: nobody changes the table then. */
    bool locked = pthread_mutex_lock(&table->mutex) == 0;
    for (size_t i = 0; i < table->kernel_count; i++)
        visit(table->kernels[i]);
    if (locked)
        pthread_mutex_unlock(&table->mutex);
}

int64_t kprof_kernel_patience_ns(const kprof_kernel *kernel)
{
    uint32_t timeouts = atomic_load(&kernel->timeouts);
    return timeouts < MOST_TIMEOUTS ? atomic_load(&kprof_engine.waits.patience_ns) << timeouts : 0;
}

void kprof_kernel_note_timeout(kprof_kernel *kernel)
{
    if (atomic_fetch_add(&kernel->timeouts, 1) + 1 >= MOST_TIMEOUTS)
        atomic_store(&kernel->ends_late, true);
}

void kprof_kernel_note_end(kprof_kernel *kernel)
{
    atomic_store(&kernel->ends_alone, true);
    atomic_store(&kernel->ends_late, false);
    atomic_store(&kernel->timeouts, 0);
}
