/* Values of the metrics that kprof_launch_metrics[] names, from the launch, kernel and device records. */
#include "report/launch_metrics.h"

#include <math.h>

/* cuda_occupancy.h: registers are given to warps in units of 256, from one of four equal parts of the register file. */
#define REGISTER_UNIT 256
#define SM_PARTS      4

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

/* Compute capability 9.0 gives a thread no fewer than 16 (seen on GH100 as ncu reports it, for kernels of 8, 12 and
 * 14). */
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

/* The carve-out in force is what limits; where it is not known, the largest that the SM can have. */
static double limit_by_smem(const kprof_launch_facts *facts, const kprof_occupancy *occupancy)
{
    double available = facts->launch->configured_smem_bytes;
    if (available < occupancy->smem_per_block_allocated_bytes)
        available = facts->device->max_smem_per_sm_bytes;
    if (occupancy->smem_per_block_allocated_bytes == 0)
        return known(facts->device->max_blocks_per_sm);
    return floor(known(available) / occupancy->smem_per_block_allocated_bytes);
}

static double least_limit(const kprof_occupancy *occupancy)
{
    const double limits[] = {occupancy->limit_blocks, occupancy->limit_registers, occupancy->limit_smem,
                             occupancy->limit_warps};
    double least = limits[0];
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++) {
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
    out.blocks_per_sm = facts->launch->max_blocks_per_sm ? facts->launch->max_blocks_per_sm : least_limit(&out);
    out.warps_per_sm = fmin(out.blocks_per_sm * out.warps_per_block, max_warps);
    if (isnan(out.blocks_per_sm))
        out.warps_per_sm = NAN;
    out.warps_pct = 100 * out.warps_per_sm / max_warps;
    out.waves = product(facts->launch->grid) / known(out.blocks_per_sm * device->sm_count);
    return out;
}

static size_t put_all(kprof_launch_value *out, const kprof_launch_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = values[i];
    return count;
}
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static size_t device_values(const kprof_device_record *device, kprof_launch_value *out)
{
    const kprof_launch_value values[] = {
        {"device__attribute_clock_rate", known(device->sm_clock_max_khz)},
        {"device__attribute_compute_capability_major", known(device->cc_major)},
        {"device__attribute_compute_capability_minor", device->cc_minor},
        {"device__attribute_global_memory_bus_width", known(device->memory_bus_bits)},
        {"device__attribute_l2_cache_size", known(device->l2_bytes)},
        {"device__attribute_max_blocks_per_multiprocessor", known(device->max_blocks_per_sm)},
        {"device__attribute_max_registers_per_block", known(device->max_registers_per_block)},
        {"device__attribute_max_registers_per_multiprocessor", known(device->max_registers_per_sm)},
        {"device__attribute_max_shared_memory_per_block", known(device->max_smem_per_block_bytes)},
        {"device__attribute_max_shared_memory_per_block_optin", known(device->max_smem_per_block_optin_bytes)},
        {"device__attribute_max_shared_memory_per_multiprocessor", known(device->max_smem_per_sm_bytes)},
        {"device__attribute_max_threads_per_multiprocessor", known(device->max_threads_per_sm)},
        {"device__attribute_max_warps_per_multiprocessor",
         known(device->max_threads_per_sm) / known(device->warp_size)},
        {"device__attribute_memory_clock_rate", known(device->memory_clock_max_khz)},
        {"device__attribute_multiprocessor_count", known(device->sm_count)},
        {"device__attribute_reserved_shared_memory_per_block", device->reserved_smem_per_block_bytes},
        {"device__attribute_total_memory", known(device->memory_bytes)},
        {"device__attribute_warp_size", known(device->warp_size)},
    };
    return put_all(out, values, COUNT_OF(values));
}

/* What a graph as a whole has, too. */
static size_t place_values(const kprof_launch_facts *facts, kprof_launch_value *out)
{
    const kprof_launch_value values[] = {
        {"launch__context_id", facts->launch->context},
        {"launch__device_id", facts->launch->device},
        {"launch__sm_count", known(facts->device->sm_count)},
        {"launch__stream_id", (double)facts->launch->stream},
    };
    return put_all(out, values, COUNT_OF(values));
}

static size_t kernel_values(const kprof_kernel_record *kernel, kprof_launch_value *out)
{
    const kprof_launch_value values[] = {
        {"launch__binary_version", known(kernel->binary_version)},
        {"launch__constant_mem_size", kernel->constant_bytes},
        {"launch__local_mem_per_thread", kernel->local_bytes_per_thread},
        {"launch__max_threads_per_block", known(kernel->max_threads_per_block)},
        {"launch__ptx_version", known(kernel->ptx_version)},
        {"launch__shared_mem_per_block_static", kernel->static_smem_bytes},
    };
    return put_all(out, values, COUNT_OF(values));
}

static size_t shape_values(const kprof_launch_record *launch, kprof_launch_value *out)
{
    double cluster_size = product(launch->cluster);
    const kprof_launch_value values[] = {
        {"launch__block_dim_x", launch->block[0]},
        {"launch__block_dim_y", launch->block[1]},
        {"launch__block_dim_z", launch->block[2]},
        {"launch__block_size", product(launch->block)},
        {"launch__cluster_dim_x", launch->cluster[0]},
        {"launch__cluster_dim_y", launch->cluster[1]},
        {"launch__cluster_dim_z", launch->cluster[2]},
        {"launch__cluster_max_active", cluster_size > 0 ? known(launch->max_active_clusters) : 0},
        {"launch__cluster_size", cluster_size},
        {"launch__cooperative", launch->cooperative},
        {"launch__grid_dim_x", launch->grid[0]},
        {"launch__grid_dim_y", launch->grid[1]},
        {"launch__grid_dim_z", launch->grid[2]},
        {"launch__grid_size", product(launch->grid)},
        {"launch__occupancy_blocks_per_multiprocessor", known(launch->max_blocks_per_sm)},
        {"launch__shared_mem_config_size", known(launch->configured_smem_bytes)},
        {"launch__shared_mem_per_block_dynamic", launch->dynamic_smem_bytes},
        {"launch__thread_count", product(launch->grid) * product(launch->block)},
    };
    return put_all(out, values, COUNT_OF(values));
}

static size_t occupancy_values(const kprof_launch_facts *facts, kprof_launch_value *out)
{
    kprof_occupancy occupancy = kprof_occupancy_compute(facts);
    const kprof_launch_value values[] = {
        {"launch__occupancy_limit_blocks", occupancy.limit_blocks},
        {"launch__occupancy_limit_registers", occupancy.limit_registers},
        {"launch__occupancy_limit_shared_mem", occupancy.limit_smem},
        {"launch__occupancy_limit_warps", occupancy.limit_warps},
        {"launch__registers_per_thread", registers_per_thread(facts)},
        {"launch__registers_per_thread_allocated", occupancy.registers_per_thread_allocated},
        {"launch__shared_mem_per_block", occupancy.smem_per_block_bytes},
        {"launch__shared_mem_per_block_allocated", occupancy.smem_per_block_allocated_bytes},
        {"launch__shared_mem_per_block_driver", facts->device->reserved_smem_per_block_bytes},
        {"launch__warps_per_block", occupancy.warps_per_block},
        {"launch__waves_per_multiprocessor", occupancy.waves},
        {"sm__maximum_warps_avg_per_active_cycle", occupancy.warps_per_sm},
        {"sm__maximum_warps_per_active_cycle_pct", occupancy.warps_pct},
    };
    return put_all(out, values, COUNT_OF(values));
}

size_t kprof_launch_values(const kprof_launch_facts *facts, kprof_launch_value out[KPROF_LAUNCH_VALUE_MAX])
{
    size_t count = device_values(facts->device, out);
    count += place_values(facts, out + count);
    size_t first = count;
    count += kernel_values(facts->kernel, out + count);
    count += shape_values(facts->launch, out + count);
    count += occupancy_values(facts, out + count);
    for (size_t i = first; i < count && kprof_launch_is_graph(facts->launch); i++)
        out[i].value = NAN;
    return count;
}
