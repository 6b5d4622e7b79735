/* Chooses by free memory, by how many launches earlier batches had, and by the options. It is a file of its own because
 * its test links nothing else of the batch. */
#include "inject/capacity.h"

#include "core/memory.h"
#include "inject/engine.h"
#include "inject/process.h"

/* The counter data of a batch lies in host memory, and each launch that the batch can hold costs the first pass 0.6 to
 * 1.2 ms, used or not. The capacity doubles when full batches in a row have cost about as much as the larger first pass
 * will: a program that ends soon after has lost no more by it than one that goes on had lost without it. It is a small
 * part of that where batches have been far smaller, since counter data stays in memory, all of which is written at
 * first. */
#define SMALL_IMAGE_BYTES ((size_t)16 << 20)
#define SMALL_PART        8 /* of the capacity */
#define SMALL_IN_A_ROW    3
#define MEMORY_SHARE      8 /* of what the machine has: not more */

/* Return the number of launches whose counter data fits into what the batch may take of the memory. */
static size_t fit_in_memory(const kprof_profiled_context *context)
{
    size_t available = kprof_memory_available_bytes() / MEMORY_SHARE;
    if (available < SMALL_IMAGE_BYTES)
        available = SMALL_IMAGE_BYTES;
    size_t bytes = KPROF_BATCH_FIRST_BYTES << context->growths, most = KPROF_BATCH_FIRST_LAUNCHES << context->growths;
    if (context->small_batches >= SMALL_IN_A_ROW)
        bytes = SMALL_IMAGE_BYTES;
    if (kprof_engine.process.config.replay_batch > 0) {
        bytes = available;
        most = KPROF_BATCH_MOST_LAUNCHES;
    }
    size_t launches = kprof_engine.device->profiler_capacity(context->profiler, bytes < available ? bytes : available);
    return launches < most ? launches : most;
}

size_t kprof_capacity_choose(const kprof_profiled_context *context)
{
    const kprof_config *config = &kprof_engine.process.config;
    size_t capacity = fit_in_memory(context);
    if (config->replay_batch && config->replay_batch < capacity)
        capacity = config->replay_batch;
    if (config->counter_data_dir) /* the image of each launch is kept by itself */
        capacity = 1;
    if (config->filter.launch_count && config->filter.launch_count < capacity)
        capacity = config->filter.launch_count;
    return capacity;
}

void kprof_capacity_note(kprof_profiled_context *context, size_t count, size_t capacity, double overhead_ms)
{
    bool full = count == capacity;
    context->small_batches = full || count * SMALL_PART > capacity ? 0 : context->small_batches + 1;
    context->repeated_ms = full ? context->repeated_ms + overhead_ms : 0;
    if (context->growths == KPROF_BATCH_GROWTHS || context->repeated_ms < KPROF_BATCH_GROWTH_COST * context->ready_ms)
        return;
    context->growths++;
    context->repeated_ms = 0;
}
