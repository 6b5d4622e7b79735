/* Contexts are few and looked up on every launch: each thread remembers its last one. */
#include "inject/devices.h"

#include "core/hold.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct context_device {
    void *context;
    const kprof_device *device;
    struct context_device *next;
} context_device;

static struct {
    pthread_mutex_t mutex;
    context_device *contexts;
    kprof_device *devices[KPROF_MAX_DEVICES];                   /* by ordinal */
    _Atomic uint32_t local_bytes_per_thread[KPROF_MAX_DEVICES]; /* most that a kernel launched there needs */
    _Atomic uint64_t generation; /* changes when a context goes: what threads remember is then stale */
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static __thread struct {
    void *context;
    const kprof_device *device;
    uint64_t generation;
} last;

static void announce_metrics(const kprof_chip_metrics *metrics)
{
    for (size_t i = 0; i < KPROF_MAX_DEVICES; i++)
        if (list.devices[i] && list.devices[i]->metrics == metrics)
            return; /* another GPU has this chip */
    const char *witnesses[KPROF_MAX_WITNESSES];
    uint32_t witness_count = 0;
    for (size_t i = 0; i < metrics->witnesses.count; i++)
        if (kprof_witness_compares(metrics, i))
            witnesses[witness_count++] = metrics->witnesses.items[i];
    kprof_record record = {.type = KPROF_RECORD_METRICS};
    record.metrics = (kprof_metrics_record){
        .chip = metrics->chip,
        .pass_count = metrics->pass_count,
        .count = (uint32_t)metrics->metrics.count,
        .names = (const char *const *)metrics->metrics.items,
        .witness_count = witness_count,
        .witnesses = witnesses,
    };
    kprof_process_write(&record);
}

/* NULL: nothing was chosen for the chip. */
static const kprof_chip_metrics *find_metrics(const char *chip)
{
    const kprof_config *config = &kprof_engine.process.config;
    const kprof_chip_metrics *found = NULL;
    for (size_t i = 0; i < config->chip_count && !found; i++)
        if (strcmp(config->chips[i].chip, chip) == 0)
            found = &config->chips[i];
    return found;
}

void kprof_devices_use_plans(void)
{
    KPROF_HOLD(list.mutex);
    for (size_t i = 0; i < KPROF_MAX_DEVICES; i++) {
        kprof_device *device = list.devices[i];
        const kprof_chip_metrics *metrics = device ? find_metrics(device->record.chip) : NULL;
        if (metrics)
            announce_metrics(metrics);
        if (device)
            device->metrics = metrics;
    }
}

static const kprof_device *open_device(uint32_t ordinal)
{
    if (ordinal >= KPROF_MAX_DEVICES)
        return NULL;
    if (list.devices[ordinal])
        return list.devices[ordinal];
    kprof_device *device = calloc(1, sizeof *device);
    if (!device || kprof_engine.device->target_device(ordinal, &device->record) != KPROF_OK) {
        free(device);
        return NULL;
    }
    device->metrics = find_metrics(device->record.chip);
    kprof_record record = {.type = KPROF_RECORD_DEVICE, .device = device->record};
    kprof_process_write(&record);
    if (device->metrics)
        announce_metrics(device->metrics);
    list.devices[ordinal] = device;
    return device;
}

static const kprof_device *find_locked(void *context)
{
    for (context_device *c = list.contexts; c; c = c->next)
        if (c->context == context)
            return c->device;
    uint32_t ordinal;
    if (kprof_engine.device->target_current_device(&ordinal) != KPROF_OK)
        return NULL;
    const kprof_device *device = open_device(ordinal);
    context_device *added = device ? calloc(1, sizeof *added) : NULL;
    if (!added)
        return device;
    *added = (context_device){context, device, list.contexts};
    list.contexts = added;
    return device;
}

const kprof_device *kprof_devices_find(void *context)
{
    if (!context)
        return NULL;
    if (last.context == context && last.generation == atomic_load(&list.generation))
        return last.device;
    pthread_mutex_lock(&list.mutex);
    const kprof_device *device = find_locked(context);
    pthread_mutex_unlock(&list.mutex);
    last.context = device ? context : NULL;
    last.device = device;
    last.generation = atomic_load(&list.generation);
    return device;
}

size_t kprof_devices_grow_local(const kprof_device *device, const kprof_kernel_record *kernel)
{
    const kprof_device_record *record = &device->record;
    if (record->device >= KPROF_MAX_DEVICES)
        return 0;
    _Atomic uint32_t *most = &list.local_bytes_per_thread[record->device];
    uint32_t wanted = kernel->local_bytes_per_thread, before = atomic_load_explicit(most, memory_order_relaxed);
    while (wanted > before)
        if (atomic_compare_exchange_weak(most, &before, wanted))
            return (size_t)wanted * record->max_threads_per_sm * record->sm_count;
    return 0;
}

const kprof_device *kprof_devices_get(uint32_t ordinal)
{
    KPROF_HOLD(list.mutex);
    return open_device(ordinal);
}

void kprof_devices_announce(void)
{
    pthread_mutex_lock(&list.mutex);
    for (uint32_t i = 0; i < KPROF_MAX_DEVICES && open_device(i); i++)
        continue;
    pthread_mutex_unlock(&list.mutex);
    kprof_process_forget_reason(); /* of the first that is not there */
}

void kprof_devices_forget(void *context)
{
    KPROF_HOLD(list.mutex);
    for (context_device **link = &list.contexts; *link; link = &(*link)->next) {
        context_device *going = *link;
        if (going->context != context)
            continue;
        *link = going->next;
        free(going);
        break;
    }
    atomic_fetch_add(&list.generation, 1);
}
