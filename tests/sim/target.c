/* A simulated device under the real injection library, in place of CUDA and CUPTI. The application calls
 * kprof_sim_launch where CUDA's driver would call back; counter i of a launch reads 1000.5
 * + i. The device's memory is one number, to which each run of a kernel adds one: kprof_sim_memory tells it.
 * KPROF_SIM_FAULT makes the device fail: "busy" or "permission" (as CUPTI does at the first launch), "unmeasured" (at
 * every launch), "damage" (garbage follows the first launch in the spool), "talk" (the same warning twice).
 * KPROF_SIM_MS is the time that a measured launch takes, KPROF_SIM_SAVE_MS that of saving memory. With KPROF_SIM_PINNED
 * the application has pinned memory, which kernels reach whose names have "pinned"; with "hidden" too, their arguments
 * do not show it. */
#include "core/log.h"
#include "cupti/device_ops.h"
#include "inject/nvtx.h"
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONTEXT     ((void *)&simulated)
#define MAX_KERNELS 64
#define MAX_RANGES  65 /* with one around all */

int InitializeInjection(void) __attribute__((visibility("default")));
int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table) __attribute__((visibility("default")));
void kprof_sim_launch(const char *mangled) __attribute__((visibility("default")));
unsigned long kprof_sim_memory(void) __attribute__((visibility("default")));

struct kprof_profiler {
    const kprof_chip_metrics *metrics;
    uint32_t passes_done;
    bool all_witnesses, proved, proof_alone, automatic;
    size_t range;                      /* that is pushed */
    unsigned sectors[MAX_RANGES];      /* of host memory, in the pass of the proof */
    uint64_t range_passes[MAX_RANGES]; /* that each range has had, as bits */
};

struct kprof_reader {
    const kprof_chip_metrics *metrics;
};

struct kprof_snapshot {
    unsigned long start, end;
};

struct kprof_operation {
    const char *kernel;
};

static struct {
    const kprof_target_hooks *hooks;
    char *kernels[MAX_KERNELS]; /* a kernel's handle is the address of its name */
    size_t kernel_count;
    unsigned long memory;
} simulated;

static kprof_profiler *armed; /* under way */

static bool has_fault(const char *name)
{
    const char *fault = getenv("KPROF_SIM_FAULT");
    return fault && strcmp(fault, name) == 0;
}

static void damage_spool(void)
{
    static const char garbage[256] = {1, 0, 0, 0, 3, 0, 0, 0, 66};
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld-0.spool", getenv(KPROF_SESSION_ENV), (long)getpid());
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 || write(file, garbage, sizeof garbage) < 0)
        kprof_log(KPROF_LOG_ERROR, "cannot damage %s", path);
    close(file);
}

static kprof_status target_start(const kprof_target_hooks *hooks)
{
    simulated.hooks = hooks;
    for (int i = 0; has_fault("talk") && i < 2; i++)
        kprof_log(KPROF_LOG_WARNING, "said once");
    return KPROF_OK;
}

static kprof_status target_current_device(uint32_t *device)
{
    *device = 0;
    return KPROF_OK;
}

static kprof_status target_device(uint32_t device, kprof_device_record *out)
{
    *out = (kprof_device_record){
        .device = device,
        .name = "Simulated H200",
        .chip = "GH100",
        .uuid = "00112233445566778899aabbccddeeff",
        .cc_major = 9,
        .sm_count = 132,
        .sm_clock_max_khz = 1980000,
        .memory_clock_max_khz = 3201000,
        .memory_bytes = UINT64_C(150754820096),
        .l2_bytes = 62914560,
        .memory_bus_bits = 6144,
        .driver_version = 13000,
        .cupti_version = 130000,
        .max_threads_per_sm = 2048,
        .max_blocks_per_sm = 32,
        .max_registers_per_sm = 65536,
        .max_registers_per_block = 65536,
        .max_smem_per_sm_bytes = 233472,
        .max_smem_per_block_bytes = 49152,
        .max_smem_per_block_optin_bytes = 232448,
        .reserved_smem_per_block_bytes = 1024,
        .warp_size = 32,
    };
    return KPROF_OK;
}

static void target_launch(const kprof_call *call, kprof_launch_record *out)
{
    (void)call;
    out->context = 1;
    out->stream = 7;
    out->grid[0] = 65536;
    out->block[0] = 256;
    out->grid[1] = out->grid[2] = out->block[1] = out->block[2] = 1;
    out->max_blocks_per_sm = 8;
}

static void target_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    (void)call;
    out->registers_per_thread = 16;
    out->max_threads_per_block = 1024;
    out->binary_version = out->ptx_version = 90;
}

static void target_note_variables(const kprof_call *call)
{
    (void)call;
}

static const kprof_graph_call *target_graph(const kprof_call *call, size_t *count, const char **why)
{
    (void)call;
    *count = 0;
    *why = "graphs are not followed (simulated)";
    return NULL;
}

static bool target_name_graph(const kprof_call *call, kprof_call *out)
{
    (void)call;
    (void)out;
    return false;
}

static bool target_awaits(const kprof_call *call)
{
    (void)call;
    return false;
}

static bool target_capturing(void)
{
    return false;
}

static bool target_launch_captured(const kprof_call *call)
{
    (void)call;
    return false;
}

static kprof_status target_synchronize(void)
{
    return KPROF_OK;
}

static void profiler_preload(void) {}

static kprof_status profiler_open(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    (void)context;
    if (has_fault("busy"))
        return kprof_fail(KPROF_COUNTERS_BUSY, "another tool holds the counters (simulated)");
    *out = malloc(sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    **out = (kprof_profiler){.metrics = metrics};
    return KPROF_OK;
}

static size_t profiler_capacity(kprof_profiler *profiler, size_t bytes)
{
    (void)profiler;
    return bytes > 0 ? 64 : 1;
}

static kprof_status profiler_begin(kprof_profiler *profiler, const kprof_measurement *wanted)
{
    profiler->all_witnesses = wanted->all_witnesses;
    profiler->proved = wanted->proved;
    profiler->proof_alone = wanted->proof_alone;
    profiler->automatic = wanted->automatic;
    profiler->passes_done = 0;
    memset(profiler->sectors, 0, sizeof profiler->sectors);
    memset(profiler->range_passes, 0, sizeof profiler->range_passes);
    if (has_fault("permission"))
        return kprof_fail(KPROF_NO_PERMISSION, "counters are for root alone (simulated)");
    return KPROF_OK;
}

static uint32_t count_passes(const kprof_profiler *profiler)
{
    return (profiler->proof_alone ? 0 : profiler->metrics->pass_count) + profiler->proved;
}

static kprof_status profiler_skip_pass(kprof_profiler *profiler)
{
    profiler->passes_done++;
    return KPROF_OK;
}

static kprof_status profiler_run_out(kprof_profiler *profiler)
{
    profiler->passes_done = 0;
    return KPROF_OK;
}

static bool profiler_goes_on(const kprof_profiler *profiler)
{
    (void)profiler;
    return true;
}

static kprof_status profiler_next_pass(kprof_profiler *profiler, uint32_t *pass)
{
    if (profiler->proved && profiler->passes_done % count_passes(profiler) == 0)
        profiler->passes_done++;
    *pass = profiler->passes_done % count_passes(profiler) - profiler->proved;
    return KPROF_OK;
}

static kprof_status profiler_push(kprof_profiler *profiler, size_t number)
{
    if (number >= MAX_RANGES)
        return kprof_fail(KPROF_INTERNAL, "range %zu of the simulated device", number);
    profiler->range = number;
    profiler->range_passes[number] |= UINT64_C(1) << profiler->passes_done % count_passes(profiler);
    return KPROF_OK;
}

static kprof_status profiler_pop(kprof_profiler *profiler)
{
    (void)profiler;
    return KPROF_OK;
}

static kprof_status profiler_start(kprof_profiler *profiler)
{
    armed = profiler;
    profiler->range = 0;
    return KPROF_OK;
}

static kprof_status profiler_stop(kprof_profiler *profiler, bool *more)
{
    armed = NULL;
    *more = ++profiler->passes_done % count_passes(profiler) != 0;
    return KPROF_OK;
}

static kprof_status profiler_decode(kprof_profiler *profiler, size_t ranges)
{
    (void)profiler;
    (void)ranges;
    return KPROF_OK;
}

static kprof_status reader_open(const kprof_chip_metrics *metrics, kprof_reader **out)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return kprof_fail(KPROF_NO_MEMORY, "out of memory");
    (*out)->metrics = metrics;
    return KPROF_OK;
}

static void reader_close(kprof_reader *reader)
{
    free(reader);
}

static bool has_last_pass(const kprof_reader *reader, const kprof_range *range, size_t metric)
{
    uint32_t pass = reader->metrics->last_passes[metric] + range->profiler->proved;
    return range->profiler->range_passes[range->index] >> pass & 1;
}

/* Metric number i is i more than 1000.5, in a range that has had its last pass; witnesses are 1000 in every pass that
 * has them. */
static double value_of(const kprof_reader *reader, const kprof_range *range, const char *name)
{
    const kprof_profiler *profiler = range->profiler;
    const kprof_strlist *metrics = &reader->metrics->metrics, *proof = &reader->metrics->proof;
    for (size_t i = 0; i < metrics->count; i++) {
        if (strcmp(metrics->items[i], name) == 0)
            return has_last_pass(reader, range, i) ? 1000.5 + (double)i : NAN;
    }
    for (size_t i = 0; i < proof->count; i++) {
        if (strcmp(proof->items[i], name) == 0)
            return profiler->proved ? profiler->sectors[range->index] : NAN;
    }
    bool is_cheap = strncmp(name, "TPC.", 4) != 0;
    return is_cheap || profiler->all_witnesses ? 1000 : NAN;
}

static kprof_status reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    if (has_fault("unmeasured"))
        return kprof_fail(KPROF_NOT_COLLECTED, "the simulated device would not");
    for (size_t i = 0; i < names->count; i++)
        values[i] = value_of(reader, &range, names->items[i]);
    return KPROF_OK;
}

static const void *profiler_image(const kprof_profiler *profiler, size_t *size)
{
    (void)profiler;
    *size = sizeof simulated.memory;
    return &simulated.memory;
}

static void profiler_release(kprof_profiler *profiler)
{
    (void)profiler;
}

static void profiler_close(kprof_profiler *profiler)
{
    free(profiler);
}

static void wait_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&time, NULL);
}

static kprof_status snapshot_open(void *context, kprof_snapshot **out)
{
    (void)context;
    *out = calloc(1, sizeof **out);
    return *out ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

static kprof_status snapshot_take(kprof_snapshot *snapshot, bool with_host)
{
    const char *text = getenv("KPROF_SIM_SAVE_MS");
    (void)with_host;
    snapshot->start = simulated.memory;
    wait_us(1000 * (text ? atol(text) : 0));
    return KPROF_OK;
}

static kprof_status snapshot_cover(kprof_snapshot *snapshot, void *stream)
{
    (void)snapshot;
    (void)stream;
    return KPROF_OK;
}

static bool snapshot_keep_freed(kprof_snapshot *snapshot, const kprof_call *call)
{
    (void)snapshot;
    (void)call;
    return false;
}

static kprof_status snapshot_record_end(kprof_snapshot *snapshot)
{
    snapshot->end = simulated.memory;
    return KPROF_OK;
}

static kprof_status snapshot_restore_start(kprof_snapshot *snapshot)
{
    simulated.memory = snapshot->start;
    return KPROF_OK;
}

static kprof_status snapshot_restore_end(kprof_snapshot *snapshot)
{
    simulated.memory = snapshot->end;
    return KPROF_OK;
}

static void snapshot_drop(kprof_snapshot *snapshot, bool is_idle)
{
    (void)is_idle;
    (void)snapshot;
}

static size_t snapshot_held_bytes(const kprof_snapshot *snapshot)
{
    (void)snapshot;
    return 0;
}

static void snapshot_close(kprof_snapshot *snapshot, bool lives)
{
    (void)lives;
    free(snapshot);
}

static void snapshot_release(kprof_snapshot *snapshot)
{
    (void)snapshot;
}

static void *snapshot_stream(const kprof_snapshot *snapshot)
{
    (void)snapshot;
    return NULL;
}

static kprof_status flush_open(kprof_flush **out)
{
    *out = NULL;
    return kprof_fail(KPROF_NO_MEMORY, "the simulated device has no caches");
}

static kprof_status flush_run(kprof_flush *flush, void *stream)
{
    (void)flush;
    (void)stream;
    return KPROF_OK;
}

static kprof_status flush_behind(kprof_flush *flush, void *stream)
{
    (void)flush;
    (void)stream;
    return KPROF_OK;
}

static void flush_prepare_to_empty(kprof_flush *flush)
{
    (void)flush;
}

static const char *flush_shortfall(const kprof_flush *flush)
{
    (void)flush;
    return NULL;
}

static kprof_status flush_empty(kprof_flush *flush, void *stream)
{
    (void)flush;
    (void)stream;
    return KPROF_OK;
}

static void flush_close(kprof_flush *flush)
{
    (void)flush;
}

static bool reaches_host(const char *kernel)
{
    return strstr(kernel, "pinned") != NULL;
}

/* One run of the kernel; while it is measured, it takes its share of KPROF_SIM_MS. */
static void run_kernel(const char *name)
{
    const char *text = getenv("KPROF_SIM_MS");
    long pass_count = armed ? armed->metrics->pass_count : 0;
    if (armed && armed->passes_done == 0 && reaches_host(name))
        armed->sectors[armed->range]++;
    wait_us(text && pass_count > 0 ? 1000 * atol(text) / pass_count : 0);
    simulated.memory++;
}

unsigned long kprof_sim_memory(void)
{
    return simulated.memory;
}

static kprof_operation *operation_copy(const kprof_call *call, kprof_snapshot *snapshot)
{
    (void)snapshot;
    kprof_operation *operation = malloc(sizeof *operation);
    if (operation)
        operation->kernel = call->kernel_name;
    return operation;
}

static kprof_status operation_returned(kprof_operation *operation)
{
    (void)operation;
    return KPROF_OK;
}

static kprof_status operation_run(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    (void)snapshot;
    if (armed && armed->automatic && profiler_push(armed, armed->range) != KPROF_OK)
        return KPROF_INTERNAL;
    run_kernel(operation->kernel);
    if (armed && armed->automatic)
        armed->range++;
    return KPROF_OK;
}

static bool operation_is_saved(const kprof_operation *operation, const kprof_snapshot *snapshot)
{
    (void)operation;
    (void)snapshot;
    return true;
}

static size_t operation_kernels(const kprof_operation *operation)
{
    (void)operation;
    return 1;
}

static size_t operation_output_bytes(const kprof_operation *operation)
{
    (void)operation;
    return 0;
}

static void operation_free(kprof_operation *operation)
{
    free(operation);
}

static bool operation_sees_host(const kprof_operation *operation)
{
    return reaches_host(operation->kernel) && !strstr(operation->kernel, "hidden");
}

static unsigned target_sharing(void)
{
    return getenv("KPROF_SIM_PINNED") ? KPROF_SHARES_WITH_HOST : 0;
}

static const char *target_managed_obstacle(void)
{
    return NULL;
}

static bool target_managed_touched(void)
{
    return false;
}

static bool target_has_space(const kprof_call *call, size_t local_bytes)
{
    (void)call, (void)local_bytes;
    return true;
}

static void target_add_free(const kprof_call *call, size_t size_bytes)
{
    (void)call, (void)size_bytes;
}

static bool target_set_own(bool own)
{
    return own;
}

static bool target_reaches_pageable(void)
{
    return false;
}

static bool target_enter_context(void *context)
{
    (void)context;
    return false;
}

static void target_leave_context(void) {}

static void *target_function(const kprof_call *call)
{
    return call->function;
}

static const char *target_side_effect(const kprof_call *call)
{
    return strstr(call->kernel_name, "printing") ? "it prints (simulated)" : NULL;
}

static const char *target_host_obstacle(void)
{
    return "memory of the host cannot be saved (simulated)";
}

static bool target_only_prints(const kprof_call *call)
{
    (void)call;
    return false;
}

static bool output_watch(void)
{
    return false;
}

static unsigned output_seen(void)
{
    return 0;
}

static void output_drop(bool drops)
{
    (void)drops;
}

static void counting_keep(bool keeps)
{
    (void)keeps;
}

/* The handle of a kernel; the same for the same name. */
static char *find_kernel(const char *mangled)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    char *found = NULL;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < simulated.kernel_count && !found; i++)
        found = strcmp(simulated.kernels[i], mangled) == 0 ? simulated.kernels[i] : NULL;
    if (!found && simulated.kernel_count < MAX_KERNELS)
        found = simulated.kernels[simulated.kernel_count++] = strdup(mangled);
    pthread_mutex_unlock(&mutex);
    return found;
}

void kprof_sim_launch(const char *mangled)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char *kernel = find_kernel(mangled);
    if (!simulated.hooks || !kernel)
        return;
    kprof_call call = {
        .kind = KPROF_CALL_LAUNCH,
        .name = "cuLaunchKernel",
        .context = CONTEXT,
        .context_id = 1,
        .function = kernel,
        .kernel_name = kernel,
    };
    simulated.hooks->enter(&call);
    run_kernel(kernel);
    simulated.hooks->leave(&call);
    if (has_fault("damage"))
        pthread_once(&once, damage_spool);
}

static const char *writers_devices(void)
{
    return NULL;
}

#define ENTRY(name) .name = name,

int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table)
{
    return kprof_nvtx_attach(get_table);
}

int InitializeInjection(void)
{
    static const kprof_device_ops device = {KPROF_DEVICE_FUNCTIONS(ENTRY)};
    kprof_process_start(&device);
    return 1;
}
