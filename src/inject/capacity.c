/* Chooses by free memory and by the options. Its test links nothing else of the batch. */
#include "inject/capacity.h"

#include "core/memory.h"
#include "inject/engine.h"

/* The counter data of a batch lies in host memory, and CUPTI takes 1 ms per MiB of it, used or not. Replays know how
 * many ranges they need; own runs that are measured do not. So kprof doubles what it reserves for them when full
 * batches in a row have cost about as much as the larger first pass will. A program that ends soon after loses no more
 * by that than one that goes on would have lost without it. */
#define RESERVED_BYTES     ((size_t)192 << 20)
#define RESERVED_RANGES    512
#define RESERVED_GROWTHS   2
#define GROWTH_COST        1.5
#define LEAST_MEMORY_BYTES ((size_t)16 << 20)
#define MEMORY_SHARE       8 /* of what the machine has: not more */

/* A measurement with more ranges is a new one, which takes 150 ms besides, so kprof makes few of them. Where contexts
 * take turns with the counters, each measurement is a new one anyway. At the end of a process a range that nobody uses
 * costs a millisecond. */
#define RANGE_GROWTH 2

/* -c counts samples that have all passes, and others have to be open beside these. */
#define SAMPLES_AT_LEAST 64

/* Values of instructions stay in host memory until the batch is reported: up to a megabyte for each launch. */
#define MEASURED_LAUNCHES 512

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t kprof_capacity_of_memory(const kprof_profiled_context *context, bool reserves)
{
    size_t available = kprof_memory_available_bytes("") / MEMORY_SHARE;
    if (available < LEAST_MEMORY_BYTES)
        available = LEAST_MEMORY_BYTES;
    size_t bytes = KPROF_BATCH_BYTES, most = KPROF_BATCH_MOST_LAUNCHES;
    if (kprof_engine.process.config.replay_batch > 0) {
        bytes = available;
    } else if (reserves) {
        bytes = RESERVED_BYTES << context->growths;
        most = RESERVED_RANGES << context->growths;
    }
    return smaller(kprof_engine.device->profiler_capacity(context->profiler, smaller(bytes, available)), most);
}

static size_t choose(const kprof_profiled_context *context, bool reserves, size_t least)
{
    const kprof_config *config = &kprof_engine.process.config;
    size_t capacity = kprof_capacity_of_memory(context, reserves);
    if (config->replay_batch)
        capacity = smaller(capacity, config->replay_batch);
    if (kprof_measures_instructions())
        capacity = smaller(capacity, MEASURED_LAUNCHES);
    if (config->counter_data_dir) /* the image of each launch is kept by itself */
        capacity = 1;
    if (config->filter.launch_count &&
        config->filter.filter_mode == KPROF_FILTER_GLOBAL) /* else of each kernel or GPU */
        capacity = smaller(capacity, config->filter.launch_count < least ? least : config->filter.launch_count);
    return capacity;
}

size_t kprof_capacity_choose(const kprof_profiled_context *context, bool reserves)
{
    return choose(context, reserves, 0);
}

size_t kprof_capacity_choose_samples(const kprof_profiled_context *context)
{
    return choose(context, true, SAMPLES_AT_LEAST);
}

void kprof_capacity_note(kprof_profiled_context *context, bool is_full, double overhead_ms)
{
    context->repeated_ms = is_full ? context->repeated_ms + overhead_ms : 0;
    if (context->growths == RESERVED_GROWTHS || context->repeated_ms < GROWTH_COST * context->ready_ms)
        return;
    context->growths++;
    context->repeated_ms = 0;
}

size_t kprof_capacity_make(kprof_profiled_context *context, size_t needed, size_t most)
{
    if (needed > context->replayed_ranges) {
        const size_t before = context->replayed_ranges;
        const bool is_last = atomic_load(&kprof_engine.process.ending);
        size_t more = is_last ? needed : RANGE_GROWTH * before;
        if (before == 0 && !context->takes_turns && !is_last) { /* later batches may have more */
            size_t fits = kprof_engine.device->profiler_capacity(context->profiler, RESERVED_BYTES);
            more = smaller(kprof_capacity_choose(context, true), fits);
        }
        context->replayed_ranges = needed > more ? needed : more;
    }
    return smaller(context->replayed_ranges, needed > most ? needed : most);
}
