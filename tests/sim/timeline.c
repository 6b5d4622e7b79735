/* A host and a GPU on one clock, which begins at START_NS. Each stream runs one thing after the other, and all streams
 * run beside each other. A call takes CALL_NS of the host's time, an allocation ALLOCATE_NS; what it asks for begins
 * LATENCY_NS after the call, or when its stream is free; kprof takes MEASURE_NS each time that it measures. A kernel
 * takes 20 us, unless "kernel" says otherwise, a copy 40 ps for each byte (25 GB/s), a set 1 ps. What can be done:
 *
 *   kernel:US  later kernels take so long            gap:US           the host does something else
 *   copy:HOW:MEMORY:BYTES  such as Host-to-Device from Pageable memory, for which the host waits; else it does not
 *   set:BYTES  alloc:BYTES                           sync             the host waits for the GPU
 *   free:BYTES  the newest allocation of this size, or memory that no record told of
 *   stream:N   of what follows                       drop:N           CUPTI had no space for N activities
 *   junk:N     N records of a kind that kprof does not know
 *   lost:N     N kernels whose times CUPTI does not know
 *   kept:N     CUPTI keeps N buffers when it is flushed
 *   failed     the context is in error: CUPTI keeps what it has, and knows no times of kernels
 *   move:HOW:BYTES  managed memory moves, at 25 GB/s; fault:WHERE  of CPU or GPU, for the next of its pages
 *   graph:N    a graph of N kernels is launched; overhead:US  CUPTI takes so long for itself in a call of the host
 *   sampled    wait until the GPU is sampled over time (utilization.h)
 *   unlinked   wait until it is so without counters of links that give no sample
 *   lose:N     CUPTI loses the next N of these samples
 *
 * CUPTI's thread hands activities over when there are FULL of them, and kprof_activities_flush the rest. */
#include "sim/timeline.h"
#include "sim/device.h"
#include "sim/utilization.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_NS    INT64_C(1700000000000000000)
#define CALL_NS     4000
#define ALLOCATE_NS 100000
#define LATENCY_NS  6000
#define MEASURE_NS  300000
#define MOST        8
#define GRAPH       3
#define FULL        64
#define ALLOCATIONS 64 /* that are known until they are freed */

static struct {
    pthread_mutex_t mutex;
    kprof_activity_sink sink;
    bool runs, pauses, follows_managed, has_whole_graphs, failed;
    int64_t now_ns, free_ns[MOST]; /* of streams */
    int64_t kernel_ns;
    int stream;
    int64_t correlation, address;
    struct {
        int64_t address, bytes;
    } allocations[ALLOCATIONS];
    size_t allocation_count;
    uint64_t dropped, junk, lost;
    size_t kept;
    kprof_activity full[FULL];
    size_t count;
} timeline = {.mutex = PTHREAD_MUTEX_INITIALIZER, .now_ns = START_NS, .kernel_ns = 20000};

static void hand_over(void)
{
    for (size_t i = 0; i < timeline.count; i++)
        timeline.sink.take(&timeline.full[i]);
    if (timeline.runs)
        timeline.sink.end(timeline.dropped, timeline.junk);
    timeline.count = 0;
    timeline.dropped = timeline.junk = 0;
}

static void add(const kprof_activity *activity)
{
    if (!timeline.runs || (timeline.pauses && activity->kind != KPROF_ACTIVITY_CALL))
        return;
    timeline.full[timeline.count++] = *activity;
    if (timeline.count == FULL)
        hand_over();
}

static int64_t name(const char *text)
{
    return timeline.runs ? timeline.sink.name(text, false) : 0;
}

/* A call of the host's from now on, which ends then. */
static void add_call(const char *text, int64_t end_ns)
{
    const kprof_call entered = {.kind = KPROF_CALL_OTHER, .correlation = (uint32_t)timeline.correlation};
    if (timeline.runs && sim.hooks && sim.hooks->is_brief && sim.hooks->sees_calls)
        sim.hooks->enter(&entered);
    const kprof_activity call = {.kind = KPROF_ACTIVITY_CALL,
                                 .call = {.start_ns = timeline.now_ns,
                                          .end_ns = end_ns,
                                          .thread = gettid(),
                                          .correlation = timeline.correlation,
                                          .name = name(text),
                                          .layer = name("runtime")}};
    add(&call);
    timeline.now_ns = end_ns;
}

/* When what the next call asks for begins; its stream is free again after so long. */
static int64_t begin(int64_t duration_ns)
{
    int64_t *free_ns = &timeline.free_ns[timeline.stream], start_ns = timeline.now_ns + LATENCY_NS;
    start_ns = *free_ns > start_ns ? *free_ns : start_ns;
    *free_ns = start_ns + duration_ns;
    timeline.correlation++;
    return start_ns;
}

static void fill_kernel(kprof_kernel_activity *out, const kprof_launch_record *launch)
{
    out->device = 0;
    out->context = 1;
    out->stream = timeline.stream;
    out->correlation = timeline.correlation;
    out->graph = out->graph_node = -1;
    out->grid_x = launch->grid[0];
    out->grid_y = launch->grid[1];
    out->grid_z = launch->grid[2];
    out->block_x = launch->block[0];
    out->block_y = launch->block[1];
    out->block_z = launch->block[2];
    out->registers_per_thread = 32;
    out->dynamic_smem_bytes = launch->dynamic_smem_bytes;
}

/* The first that the application does makes a context. */
static void note_context(void)
{
    static atomic_bool is_noted;
    if (!timeline.runs || !sim.hooks || !sim.hooks->context_created || atomic_exchange(&is_noted, true))
        return;
    sim.hooks->context_created(&sim.contexts[0]);
}

void sim_timeline_launch(const char *mangled, const kprof_launch_record *launch)
{
    kprof_activity kernel = {.kind = KPROF_ACTIVITY_KERNEL};
    note_context();
    pthread_mutex_lock(&timeline.mutex);
    kernel.kernel.start_ns = begin(timeline.kernel_ns);
    kernel.kernel.end_ns = kernel.kernel.start_ns + timeline.kernel_ns;
    kernel.kernel.name = timeline.runs ? timeline.sink.name(mangled, true) : 0;
    fill_kernel(&kernel.kernel, launch);
    if (timeline.lost > 0) {
        timeline.lost--;
        kernel.kernel.start_ns = kernel.kernel.end_ns = -1;
    }
    add_call("cudaLaunchKernel", timeline.now_ns + CALL_NS);
    if (!sim.contexts[0].sampling) /* CUPTI has no records of kernels while instructions may be sampled */
        add(&kernel);
    sim_utilization_add(kernel.kernel.start_ns, kernel.kernel.end_ns);
    sim_utilization_reach(timeline.now_ns);
    pthread_mutex_unlock(&timeline.mutex);
}

uint32_t sim_timeline_next_call(void)
{
    pthread_mutex_lock(&timeline.mutex);
    const uint32_t next = (uint32_t)timeline.correlation + 1;
    pthread_mutex_unlock(&timeline.mutex);
    return next;
}

static void copy(const char *text)
{
    char how[32] = "", memory[32] = "";
    long bytes = 0;
    if (sscanf(text, "%31[^:]:%31[^:]:%ld", how, memory, &bytes) != 3)
        return;
    const bool waits = strcmp(memory, "Pageable") == 0, from_host = strncmp(how, "Host", 4) == 0,
               to_host = strstr(how, "to-Host") != NULL;
    const int64_t duration_ns = bytes / 25, start_ns = begin(duration_ns);
    kprof_activity out = {.kind = KPROF_ACTIVITY_COPY,
                          .copy = {.start_ns = start_ns,
                                   .end_ns = start_ns + duration_ns,
                                   .context = 1,
                                   .stream = timeline.stream,
                                   .correlation = timeline.correlation,
                                   .graph = -1,
                                   .graph_node = -1,
                                   .operation = name(how),
                                   .source_memory = name(from_host ? memory : "Device"),
                                   .target_memory = name(to_host ? memory : "Device"),
                                   .source_device = -1,
                                   .target_device = -1,
                                   .bytes = bytes,
                                   .is_async = !waits}};
    add_call(waits ? "cudaMemcpy" : "cudaMemcpyAsync", waits ? out.copy.end_ns : timeline.now_ns + CALL_NS);
    add(&out);
}

static void set(const char *text)
{
    const long bytes = atol(text);
    const int64_t duration_ns = bytes / 1000, start_ns = begin(duration_ns);
    kprof_activity out = {.kind = KPROF_ACTIVITY_SET,
                          .set = {.start_ns = start_ns,
                                  .end_ns = start_ns + duration_ns,
                                  .context = 1,
                                  .stream = timeline.stream,
                                  .correlation = timeline.correlation,
                                  .graph = -1,
                                  .graph_node = -1,
                                  .memory = name("Device"),
                                  .bytes = bytes}};
    add_call("cudaMemsetAsync", timeline.now_ns + CALL_NS);
    add(&out);
}

static int64_t place_of(int64_t bytes, bool frees)
{
    for (size_t i = timeline.allocation_count; frees && i-- > 0;)
        if (timeline.allocations[i].bytes == bytes) {
            const int64_t address = timeline.allocations[i].address;
            timeline.allocations[i] = timeline.allocations[--timeline.allocation_count];
            return address;
        }
    const int64_t address = ++timeline.address << 20;
    if (!frees && timeline.allocation_count < ALLOCATIONS) {
        timeline.allocations[timeline.allocation_count].address = address;
        timeline.allocations[timeline.allocation_count++].bytes = bytes;
    }
    return address;
}

static void allocate(const char *text, bool frees)
{
    timeline.correlation++;
    add_call(frees ? "cudaFree" : "cudaMalloc", timeline.now_ns + ALLOCATE_NS);
    const long bytes = atol(text);
    kprof_activity out = {.kind = KPROF_ACTIVITY_MEMORY,
                          .memory = {.time_ns = timeline.now_ns,
                                     .context = 1,
                                     .stream = -1,
                                     .correlation = timeline.correlation,
                                     .operation = name(frees ? "release" : "allocation"),
                                     .memory = name("Device"),
                                     .address = place_of(bytes, frees),
                                     .bytes = bytes}};
    add(&out);
}

/* Nobody is told of managed memory who has not asked for that. */
static void add_managed(const char *operation, kprof_managed_activity what)
{
    what.start_ns = timeline.now_ns;
    what.operation = name(operation);
    what.address = ++timeline.address << 20;
    if (timeline.follows_managed)
        add(&(kprof_activity){.kind = KPROF_ACTIVITY_MANAGED, .managed = what});
}

static void move(const char *text)
{
    char how[32] = "";
    long bytes = 0;
    if (sscanf(text, "%31[^:]:%ld", how, &bytes) != 2)
        return;
    const bool to_device = strcmp(how, "Host-to-Device") == 0;
    add_managed(how, (kprof_managed_activity){.end_ns = timeline.now_ns + bytes / 25,
                                              .bytes = bytes,
                                              .faults = -1,
                                              .instruction = -1,
                                              .source_device = to_device ? -1 : 0,
                                              .target_device = to_device ? 0 : -1});
    timeline.now_ns += bytes / 25;
}

static void fault(bool is_cpu)
{
    add_managed(is_cpu ? "CPU page fault" : "GPU page fault",
                (kprof_managed_activity){.end_ns = is_cpu ? -1 : timeline.now_ns + 10,
                                         .bytes = -1,
                                         .faults = is_cpu ? -1 : 3,
                                         .instruction = is_cpu ? 0x401000 : -1,
                                         .source_device = is_cpu ? -1 : 0,
                                         .target_device = -1});
}

/* One kernel behind the other. */
static void launch_graph(long kernels)
{
    const int64_t start_ns = begin(kernels * timeline.kernel_ns), end_ns = start_ns + kernels * timeline.kernel_ns;
    const kprof_launch_record shape = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    const kprof_graph_activity whole = {.start_ns = start_ns,
                                        .end_ns = end_ns,
                                        .context = 1,
                                        .stream = timeline.stream,
                                        .correlation = timeline.correlation,
                                        .graph = GRAPH};
    add_call("cudaGraphLaunch", timeline.now_ns + CALL_NS);
    if (timeline.has_whole_graphs)
        add(&(kprof_activity){.kind = KPROF_ACTIVITY_GRAPH, .graph = whole});
    for (long i = 0; i < kernels && !timeline.has_whole_graphs; i++) {
        kprof_activity node = {.kind = KPROF_ACTIVITY_KERNEL};
        fill_kernel(&node.kernel, &shape);
        node.kernel.start_ns = start_ns + i * timeline.kernel_ns;
        node.kernel.end_ns = node.kernel.start_ns + timeline.kernel_ns;
        node.kernel.name = timeline.runs ? timeline.sink.name("_Z4nodePf", true) : 0;
        node.kernel.graph = GRAPH;
        node.kernel.graph_node = i + 1;
        add(&node);
    }
    sim_utilization_add(start_ns, end_ns);
}

static void take_time(int64_t ns)
{
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_OVERHEAD,
                          .overhead = {.start_ns = timeline.now_ns,
                                       .end_ns = timeline.now_ns + ns,
                                       .thread = gettid(),
                                       .correlation = -1,
                                       .name = name("Module loading")}});
    timeline.now_ns += ns;
}

static void synchronize(void)
{
    int64_t end_ns = timeline.now_ns + CALL_NS;
    for (int i = 0; i < MOST; i++)
        end_ns = timeline.free_ns[i] > end_ns ? timeline.free_ns[i] : end_ns;
    timeline.correlation++;
    add_call("cudaDeviceSynchronize", end_ns);
}

static bool do_locked(const char *word, const char *rest)
{
    const long number = atol(rest);
    if (strcmp(word, "kernel") == 0)
        timeline.kernel_ns = 1000 * number;
    else if (strcmp(word, "gap") == 0)
        timeline.now_ns += 1000 * number;
    else if (strcmp(word, "copy") == 0)
        copy(rest);
    else if (strcmp(word, "set") == 0)
        set(rest);
    else if (strcmp(word, "alloc") == 0 || strcmp(word, "free") == 0)
        allocate(rest, *word == 'f');
    else if (strcmp(word, "sync") == 0)
        synchronize();
    else if (strcmp(word, "graph") == 0)
        launch_graph(number);
    else if (strcmp(word, "overhead") == 0)
        take_time(1000 * number);
    else if (strcmp(word, "move") == 0)
        move(rest);
    else if (strcmp(word, "fault") == 0)
        fault(*rest == 'C');
    else if (strcmp(word, "stream") == 0)
        timeline.stream = (int)number % MOST;
    else if (strcmp(word, "drop") == 0)
        timeline.dropped += (uint64_t)number;
    else if (strcmp(word, "junk") == 0)
        timeline.junk += (uint64_t)number;
    else if (strcmp(word, "kept") == 0)
        timeline.kept = (size_t)number;
    else if (strcmp(word, "failed") == 0)
        timeline.failed = true;
    else if (strcmp(word, "lose") == 0)
        sim_utilization_lose(number);
    else if (strcmp(word, "lost") == 0)
        timeline.lost += (uint64_t)number;
    else
        return false;
    return true;
}

bool sim_timeline_do(const char *text)
{
    char word[16] = "";
    const char *colon = strchr(text, ':');
    snprintf(word, sizeof word, "%.*s", colon ? (int)(colon - text) : 15, text);
    note_context();
    pthread_mutex_lock(&timeline.mutex);
    const bool unlinked = strcmp(word, "unlinked") == 0, waits = unlinked || strcmp(word, "sampled") == 0,
               done = waits || do_locked(word, colon ? colon + 1 : "");
    sim_utilization_reach(timeline.now_ns);
    pthread_mutex_unlock(&timeline.mutex);
    if (waits && timeline.runs)
        sim_utilization_await(unlinked);
    return done;
}

static kprof_status start(const kprof_activity_sink *sink, kprof_activity_scope scope)
{
    if (getenv("KPROF_SIM_NO_TRACE"))
        return kprof_fail(KPROF_UNSUPPORTED, "another tool traces this process (simulated)");
    timeline.has_whole_graphs = scope == KPROF_ACTIVITIES_OF_GRAPHS;
    timeline.sink = *sink;
    timeline.runs = sim.records_kernels = true;
    return KPROF_OK;
}

static kprof_status follow_managed(void)
{
    if (getenv("KPROF_SIM_NO_MANAGED"))
        return kprof_fail(KPROF_UNSUPPORTED, "the GPUs do not tell how memory moves (simulated)");
    timeline.follows_managed = true;
    return KPROF_OK;
}

static size_t flush(void)
{
    pthread_mutex_lock(&timeline.mutex);
    if (!timeline.failed)
        hand_over();
    pthread_mutex_unlock(&timeline.mutex);
    return timeline.failed ? 1 : timeline.kept;
}

static size_t flush_failed(void)
{
    pthread_mutex_lock(&timeline.mutex);
    for (size_t i = 0; i < timeline.count && timeline.failed; i++)
        if (timeline.full[i].kind == KPROF_ACTIVITY_KERNEL)
            timeline.full[i].kernel.start_ns = timeline.full[i].kernel.end_ns = -1;
    hand_over();
    pthread_mutex_unlock(&timeline.mutex);
    return timeline.kept;
}

/* Records of kernels would add to what passes count (device.c). */
static void pause_records(bool pauses)
{
    pthread_mutex_lock(&timeline.mutex);
    timeline.now_ns += pauses ? MEASURE_NS : 0;
    timeline.pauses = pauses;
    sim.records_kernels = timeline.runs && !pauses;
    pthread_mutex_unlock(&timeline.mutex);
}

static int64_t now(void)
{
    pthread_mutex_lock(&timeline.mutex);
    const int64_t now_ns = timeline.now_ns;
    pthread_mutex_unlock(&timeline.mutex);
    return now_ns;
}

void sim_timeline_prepare(kprof_device_ops *device)
{
    device->activities_start = start;
    device->activities_follow_managed = follow_managed;
    device->activities_flush = flush;
    device->activities_flush_failed = flush_failed;
    device->activities_pause = pause_records;
    device->activities_now_ns = now;
    sim_utilization_reach(START_NS); /* kprof's thread may sample before the application does anything */
    sim_utilization_prepare(device);
}
