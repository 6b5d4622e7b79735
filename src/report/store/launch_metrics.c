/* Values of the metrics that kprof_launch_metrics[] names, from the launch, kernel and device records. */
#include "report/store/launch_metrics.h"
#include "core/strbuf.h"

#include <math.h>

/* cuda_occupancy.h: registers are given to warps in units of 256, from one of four equal parts of the register file. */
#define REGISTER_UNIT 256
#define SM_PARTS      4

/* CUDA Programming Guide, "Technical Specifications per Compute Capability". */
#define MAX_BLOCK_THREADS    1024
#define MAX_THREAD_REGISTERS 255
#define MAX_SMEM_BYTES       (1u << 30) /* more than any GPU has */

static double known(double value)
{
    return value > 0 ? value : NAN;
}

static double product(const uint32_t dimensions[3])
{
    return (double)dimensions[0] * dimensions[1] * dimensions[2];
}

static double round_up(double value, double unit)
{
    return ceil(value / unit) * unit;
}

/* cuda_occupancy.h, cudaOccSMemAllocationGranularity: 256 bytes up to compute capability 7.x, 128 from 8.0. */
static double smem_unit(const kprof_device_record *device)
{
    return device->cc_major >= 8 ? 128 : 256;
}

/* Compute capability 9.0 gives a thread no fewer than 16 (as ncu reports it on GH100 for kernels of 8, 12 and 14). */
static double registers_per_thread(const kprof_launch_facts *facts)
{
    double compiled = facts->kernel->registers_per_thread;
    return facts->device->cc_major == 9 && compiled > 0 ? fmax(compiled, 16) : compiled;
}

/* cuda_occupancy.h, cudaOccMaxBlocksPerSMRegsLimit: a block's warps must fit, part by part; too many registers for one
 * block means that it cannot run at all. A kernel without registers is not limited by them. */
static double limit_by_registers(const kprof_launch_facts *facts, const kprof_occupancy *occupancy)
{
    double per_warp = round_up(registers_per_thread(facts) * facts->device->warp_size, REGISTER_UNIT);
    if (per_warp == 0)
        return known(facts->device->max_blocks_per_sm);
    double per_block = per_warp * round_up(occupancy->warps_per_block, SM_PARTS);
    if (facts->device->max_registers_per_block > 0 && per_block > facts->device->max_registers_per_block)
        return 0;
    double warps_per_part = floor(known(facts->device->max_registers_per_sm) / SM_PARTS / per_warp);
    return floor(warps_per_part * SM_PARTS / occupancy->warps_per_block);
}

/* The current carve-out is the limit; when it is not known, assume the largest that the SM supports. */
static double limit_by_smem(const kprof_launch_facts *facts, const kprof_occupancy *occupancy)
{
    double available = facts->launch->configured_smem_bytes;
    if (available < occupancy->smem_per_block_allocated_bytes)
        available = facts->device->max_smem_per_sm_bytes;
    if (occupancy->smem_per_block_allocated_bytes == 0)
        return known(facts->device->max_blocks_per_sm);
    return floor(known(available) / occupancy->smem_per_block_allocated_bytes);
}

/* An SM has two barriers for each block that it can hold, or one. */
static double barriers_per_sm(const kprof_device_record *device)
{
    const uint32_t major = device->cc_major, minor = device->cc_minor;
    const bool has_one =
        (major == 8 && minor > 0) || (major == 10 && minor == 1) || (major == 11 && minor == 0) || major == 12;
    return major > 12 ? NAN : (has_one ? 1.0 : 2.0) * device->max_blocks_per_sm;
}

static double limit_by_barriers(const kprof_launch_facts *facts, const kprof_occupancy *occupancy)
{
    const uint32_t barriers = facts->kernel->barriers;
    if (barriers == 0)
        return NAN;
    const double fit = barriers == 1 ? INFINITY : floor(barriers_per_sm(facts->device) / (barriers - 1));
    return isnan(fit) ? NAN : fmin(fit, occupancy->limit_blocks);
}

static double least_limit(const kprof_occupancy *occupancy)
{
    const double limits[] = {occupancy->limit_blocks, occupancy->limit_registers, occupancy->limit_smem,
                             occupancy->limit_warps};
    double least = limits[0];
    for (size_t i = 1; i < COUNT_OF(limits); i++) {
        if (isnan(limits[i]))
            return NAN;
        least = limits[i] < least ? limits[i] : least;
    }
    return least;
}

kprof_occupancy kprof_occupancy_compute(const kprof_launch_facts *facts)
{
    const kprof_device_record *device = facts->device;
    double warp_size = known(device->warp_size);
    double max_warps = floor(known(device->max_threads_per_sm) / warp_size);
    kprof_occupancy out;
    out.warps_per_block = known(ceil(product(facts->launch->block) / warp_size));
    out.registers_per_thread_allocated = round_up(registers_per_thread(facts) * warp_size, REGISTER_UNIT) / warp_size;
    out.smem_per_block_bytes = (double)facts->kernel->static_smem_bytes + facts->launch->dynamic_smem_bytes +
                               device->reserved_smem_per_block_bytes;
    out.smem_per_block_allocated_bytes = round_up(out.smem_per_block_bytes, smem_unit(device));
    out.limit_blocks = known(device->max_blocks_per_sm);
    out.limit_warps = floor(max_warps / out.warps_per_block);
    out.limit_registers = limit_by_registers(facts, &out);
    out.limit_smem = limit_by_smem(facts, &out);
    const double least = least_limit(&out), answer = facts->launch->max_blocks_per_sm;
    out.blocks_per_sm = answer > 0 ? answer : least;
    out.limit_barriers = answer > 0 && answer < least ? answer : limit_by_barriers(facts, &out);
    if (out.limit_barriers < answer) /* the driver knows better */
        out.limit_barriers = NAN;
    if (facts->blocks_by_barriers > 0 && facts->blocks_by_barriers < out.blocks_per_sm)
        out.blocks_per_sm = facts->blocks_by_barriers;
    out.warps_per_sm = isnan(out.blocks_per_sm) ? NAN : fmin(out.blocks_per_sm * out.warps_per_block, max_warps);
    out.warps_pct = 100 * out.warps_per_sm / max_warps;
    out.waves = product(facts->launch->grid) / known(out.blocks_per_sm * device->sm_count);
    return out;
}

/* A property of a launch to vary. Values from `least` to `most` have one occupancy up to each multiple of `step`. */
typedef struct property {
    const char *id, *label, *unit;
    uint32_t now, least, step, most;
    bool only_falls; /* the occupancy, as the value rises */
    uint32_t *field; /* what kprof_occupancy_compute reads */
} property;

static double pct_at(const kprof_launch_facts *facts, const property *varied, uint32_t value)
{
    *varied->field = value;
    return kprof_occupancy_compute(facts).warps_pct;
}

static uint32_t end_of_unit(const property *varied, uint32_t value)
{
    const uint32_t end = (value + varied->step - 1) / varied->step * varied->step;
    return end > varied->most ? varied->most : end;
}

/* The largest value such that all from `from` up to it have the occupancy `pct`. */
static uint32_t find_end(const kprof_launch_facts *facts, const property *varied, uint32_t from, double pct)
{
    uint32_t same = end_of_unit(varied, from), other = varied->most + 1;
    while (!varied->only_falls && same < varied->most && pct_at(facts, varied, same + 1) == pct)
        same = end_of_unit(varied, same + 1);
    while (varied->only_falls && end_of_unit(varied, same + 1) < other && same < varied->most) {
        const uint32_t middle = end_of_unit(varied, same + (other - same) / 2);
        if (pct_at(facts, varied, middle) == pct)
            same = middle;
        else
            other = middle;
    }
    return same;
}

/* Compute a curve; false where the records do not tell. */
static bool vary(const kprof_launch_facts *facts, const property *varied, kprof_what_if *out)
{
    *out = (kprof_what_if){.id = varied->id, .label = varied->label, .unit = varied->unit, .now = varied->now};
    for (uint32_t from = varied->least; from <= varied->most && out->step_count < KPROF_WHAT_IF_STEPS_MAX;) {
        const double pct = pct_at(facts, varied, from);
        if (isnan(pct))
            return false;
        const uint32_t to = find_end(facts, varied, from, pct);
        out->steps[out->step_count++] = (kprof_what_if_step){from, to, pct};
        from = to + 1;
    }
    *varied->field = varied->now;
    return out->step_count > 0;
}

size_t kprof_what_if_compute(const kprof_launch_facts *facts, kprof_what_if out[KPROF_WHAT_IFS_MAX])
{
    kprof_launch_record launch = *facts->launch;
    kprof_kernel_record kernel = *facts->kernel;
    const kprof_device_record *device = facts->device;
    const double by_barriers = kprof_occupancy_compute(facts).limit_barriers;
    const kprof_launch_facts changed = {&launch, &kernel, device, isnan(by_barriers) ? 0 : by_barriers};
    const double threads = product(launch.block);
    const bool is_odd = device->warp_size < 1 || device->warp_size > REGISTER_UNIT ||
                        device->max_smem_per_block_optin_bytes > MAX_SMEM_BYTES; /* the report may be anyone's */
    if (is_odd || kprof_launch_is_graph(&launch) || threads < 1 || threads > MAX_BLOCK_THREADS)
        return 0;
    launch.max_blocks_per_sm = 0; /* the driver's answer holds for the launch as it is */
    launch.configured_smem_bytes = 0;
    launch.block[0] = (uint32_t)threads;
    launch.block[1] = launch.block[2] = 1;
    launch.dynamic_smem_bytes += kernel.static_smem_bytes;
    kernel.static_smem_bytes = 0;
    const property properties[] = {
        {"block_size", "Block Size", "thread", launch.block[0], 1, device->warp_size, MAX_BLOCK_THREADS, false,
         &launch.block[0]},
        {"registers_per_thread", "Compiled Registers Per Thread", "register", kernel.registers_per_thread, 1,
         REGISTER_UNIT / device->warp_size, MAX_THREAD_REGISTERS, true, &kernel.registers_per_thread},
        {"shared_memory_per_block", "Shared Memory Per Block", "byte", launch.dynamic_smem_bytes, 0,
         (uint32_t)smem_unit(device), device->max_smem_per_block_optin_bytes, true, &launch.dynamic_smem_bytes},
    };
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(properties); i++)
        count += vary(&changed, &properties[i], &out[count]);
    return count;
}

/* Values being listed. */
typedef struct value_list {
    kprof_launch_value *items; /* [KPROF_LAUNCH_VALUE_MAX] */
    size_t count;
    bool is_graph;
} value_list;

static void put_anyway(value_list *list, const char *name, double value)
{
    if (list->count < KPROF_LAUNCH_VALUE_MAX)
        list->items[list->count++] = (kprof_launch_value){name, value};
}

/* A graph as a whole has no such value. */
static void put(value_list *list, const char *name, double value)
{
    put_anyway(list, name, list->is_graph ? NAN : value);
}

/* The ways that the rows of core/fields.h make metrics of a number. */
#define NONE()                  (void)number;
#define VALUE(name, unit, help) put(list, name, (double)*number);
#define KNOWN(name, unit, help) put(list, name, known((double)*number));
#define PLACE(name, unit, help) put_anyway(list, name, (double)*number);
#define OF_RANGES(name, ...)    put_anyway(list, name, known((double)*number));
#define ON_REQUEST              VALUE
#define DIMENSIONS(name, ...)                                                                                          \
    put(list, name "_x", (*number)[0]);                                                                                \
    put(list, name "_y", (*number)[1]);                                                                                \
    put(list, name "_z", (*number)[2]);

#define FIELD(kind, member, column, since, attribute, ...) SPOOL(kind, member, __VA_ARGS__)
#define SPOOL(kind, member, ...)                                                                                       \
    {                                                                                                                  \
        const kprof_type_##kind *number = &record->member;                                                             \
        KPROF_METRIC_OF(__VA_ARGS__)                                                                                   \
    }
#define REPORT(...)
#define PUT_FIELDS(NAME, name)                                                                                         \
    static void put_##name(const kprof_##name##_record *record, value_list *list)                                      \
    {                                                                                                                  \
        KPROF_##NAME##_FIELDS(FIELD, SPOOL, REPORT)                                                                    \
    }
PUT_FIELDS(DEVICE, device)
PUT_FIELDS(KERNEL, kernel)
PUT_FIELDS(LAUNCH, launch)

#define COMPUTED(expression, ...)                                                                                      \
    {                                                                                                                  \
        const double value = expression, *number = &value;                                                             \
        KPROF_METRIC_OF(__VA_ARGS__)                                                                                   \
    }

#define ATTRIBUTE_NAME(name, ...) "device__attribute_" #name,

static void put_computed(const kprof_launch_facts *facts, value_list *list)
{
    const kprof_launch_record *launch = facts->launch;
    const kprof_device_record *device = facts->device;
    const kprof_occupancy occupancy = kprof_occupancy_compute(facts);
    KPROF_COMPUTED_METRICS(COMPUTED)
}

size_t kprof_launch_values(const kprof_launch_facts *facts, kprof_launch_value out[KPROF_LAUNCH_VALUE_MAX])
{
    value_list list = {out, 0, false};
    put_device(facts->device, &list);
    list.is_graph = kprof_launch_is_graph(facts->launch);
    put_kernel(facts->kernel, &list);
    put_launch(facts->launch, &list);
    put_computed(facts, &list);
    static const char *const names[] = {KPROF_DEVICE_ATTRIBUTES(ATTRIBUTE_NAME)};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        put_anyway(&list, names[i], i < facts->device->attribute_count ? facts->device->attributes[i] : NAN);
    return list.count;
}
