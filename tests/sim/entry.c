/* Entry of the injection library over the simulated machine, for tests/e2e: sim-app calls kprof_sim_launch where CUDA's
 * driver would call back. Each kernel adds one to a number in memory, which has to be the number of launches whenever
 * the application launches. A violation ends the process, and is added to the file KPROF_SIM_VIOLATIONS.
 * KPROF_SIM_FAULT makes the device fail: "busy" or "permission" (as CUPTI does at the first launch), "unmeasured" (at
 * every launch), "damage" (garbage follows the first launch in the spool), "talk" (the same warning twice), "graph"
 * (each kernel is in a graph that kprof does not look into).
 * KPROF_SIM_MS is the time that a measured launch takes, KPROF_SIM_SAVE_MS that of saving memory. The third
 * launch runs until the file KPROF_SIM_HOLD is there. While the file KPROF_SIM_GUEST is there, another tool records.
 * With KPROF_SIM_BUSY no pause closes a batch, however slow the machine is: only a signal does, and what the
 * application calls. With KPROF_SIM_PINNED the application has pinned memory, which kernels reach whose names have
 * "pinned"; with "hidden" too, their arguments do not show it. */
#include "core/bytes.h"
#include "core/log.h"
#include "inject/batch.h"
#include "inject/batch/stages.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/life.h"
#include "inject/lock.h"
#include "inject/nvtx.h"
#include "inject/nvtx_abi.h"
#include "sim/backend.h"
#include "sim/clock.h"
#include "sim/device.h"
#include "sim/nvtx_client.h"
#include "sim/timeline.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_KERNELS  64
#define MAX_RANGES   64
#define STREAM       0
#define CAPTURED     1 /* a stream of the same context */
#define SLOT         0
#define PINNED_SLOT  2
#define OTHER_STREAM 2 /* of the other device */
#define OTHER_SLOT   1

int InitializeInjection(void) __attribute__((visibility("default")));
int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table) __attribute__((visibility("default")));
void kprof_sim_launch(const char *mangled) __attribute__((visibility("default")));
void kprof_sim_profiler(bool starts) __attribute__((visibility("default")));
/* Launch a kernel in a thread of this library. */
void kprof_sim_thread(void) __attribute__((visibility("default")));
/* Push an NVTX range, as the module of a framework does, and pop it. */
void kprof_sim_push(const char *range) __attribute__((visibility("default")));
void kprof_sim_pop(void) __attribute__((visibility("default")));
/* Capture what is launched from now on into the graph, or end that. */
void kprof_sim_capture(bool begins) __attribute__((visibility("default")));
/* Launch the graph. */
void kprof_sim_graph(void) __attribute__((visibility("default")));
/* Let later launches tell this number, such as of their "grid". */
void kprof_sim_place(const char *name, uint32_t number) __attribute__((visibility("default")));
/* Of the "stream" or the "context" that launches are in. */
void *kprof_sim_handle(const char *kind) __attribute__((visibility("default")));
/* The open batch, by when it began; 0 where none is open. */
int64_t kprof_sim_batch(void) __attribute__((visibility("default")));
/* Wait until the batch that is open has been closed, by a pause. */
void kprof_sim_settle(void) __attribute__((visibility("default")));
/* Let so much of the time pass by which batches are closed. */
void kprof_sim_pass_ms(int64_t ms) __attribute__((visibility("default")));
/* Do something on the machine's timeline, which a trace shows: "gap:100" and what else timeline.c tells. */
bool kprof_sim_do(const char *text) __attribute__((visibility("default")));

/* What the next launches tell of themselves. */
enum { GRID, BLOCK, SMEM, STREAM_ID, CONTEXT_ID, DEVICE, PLACES };
static const char *const place_names[PLACES] = {"grid", "block", "smem", "stream", "context", "device"};
static uint32_t places[PLACES] = {65536, 256, 0, 0, 1, 0};

static kprof_device_ops device;
static uint32_t pass_count;    /* of the plan */
static __thread bool launched; /* by this thread, so it is the application's */

static bool has_fault(const char *name)
{
    const char *fault = getenv("KPROF_SIM_FAULT");
    return fault && strcmp(fault, name) == 0;
}

/* A share of the time that a variable gives, in ms. */
static void wait_share(const char *variable, uint32_t shares)
{
    const char *text = getenv(variable);
    long us = text ? 1000 * atol(text) / shares : 0;
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&time, NULL);
}

/* A kernel takes its time in each pass. */
static void wait_while_measured(void)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_measured = sim.contexts[0].armed;
    pthread_mutex_unlock(&sim.mutex);
    if (is_measured)
        wait_share("KPROF_SIM_MS", pass_count);
}

static void hold_third(void)
{
    static unsigned count;
    const struct timespec pause = {0, 1000000};
    const char *path = getenv("KPROF_SIM_HOLD");
    if (++count == 3)
        while (path && access(path, F_OK) != 0)
            nanosleep(&pause, NULL);
}

static kprof_status start(const kprof_target_hooks *hooks)
{
    for (int i = 0; has_fault("talk") && i < 2; i++)
        kprof_log(KPROF_LOG_WARNING, "said once");
    const kprof_status status = sim_device.target_start(hooks);
    if (status == KPROF_OK)
        hooks->context_created(&sim.contexts[0]);
    return status;
}

static kprof_status follow(bool follow)
{
    const char *path = getenv("KPROF_SIM_GUEST");
    return follow && path && access(path, F_OK) == 0
               ? kprof_fail(KPROF_COUNTERS_BUSY, "another tool records (simulated)")
               : sim_device.target_follow(follow);
}

static void describe_shape(const kprof_call *call, kprof_launch_record *out)
{
    sim_device.target_shape(call, out);
    out->grid[0] = places[GRID];
    out->block[0] = places[BLOCK];
    out->dynamic_smem_bytes = places[SMEM];
    out->stream = places[STREAM_ID];
    out->grid[1] = out->grid[2] = out->block[1] = out->block[2] = 1;
}

static void describe_launch(const kprof_call *call, kprof_launch_record *out)
{
    sim_device.target_launch(call, out);
    describe_shape(call, out);
    out->max_blocks_per_sm = 8;
}

static void describe_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    sim_device.target_kernel(call, out);
    out->max_threads_per_block = 1024;
    out->binary_version = out->ptx_version = 90;
}

static kprof_status open_profiler(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    if (has_fault("busy"))
        return kprof_fail(KPROF_COUNTERS_BUSY, "another tool holds the counters (simulated)");
    pass_count = metrics->pass_count;
    return sim_device.profiler_open(context, metrics, out);
}

static kprof_status begin_measurement(kprof_profiler *profiler, const kprof_measurement *wanted)
{
    if (has_fault("permission"))
        return kprof_fail(KPROF_NO_PERMISSION, "counters are for root alone (simulated)");
    return sim_device.profiler_begin(profiler, wanted);
}

static kprof_status arm_samples(kprof_pc_samples *samples, uint32_t period)
{
    if (has_fault("permission"))
        return kprof_fail(KPROF_NO_PERMISSION, "samples are for root alone (simulated)");
    return sim_device.pc_samples_arm(samples, period);
}

static kprof_status read_values(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    if (has_fault("unmeasured"))
        return kprof_fail(KPROF_NOT_COLLECTED, "the simulated device would not");
    kprof_status status = sim_device.reader_read(reader, range, names, values);
    for (size_t i = 0; i < names->count && getenv("KPROF_SIM_VALUES_BY_NAME"); i++)
        if (!isnan(values[i])) /* so that plans of other metrics have the same values */
            values[i] = 1000 + (double)(kprof_hash(KPROF_HASH_START, names->items[i], strlen(names->items[i])) % 1000);
    return status;
}

static kprof_status take_snapshot(kprof_snapshot *snapshot, bool with_host)
{
    wait_share("KPROF_SIM_SAVE_MS", 1);
    return sim_device.snapshot_take(snapshot, with_host);
}

static const kprof_graph_call *find_nodes(const kprof_call *call, size_t *count, const char **why)
{
    if (!has_fault("graph"))
        return sim_device.target_graph(call, count, why);
    *why = "it has a conditional node (simulated)";
    return NULL;
}

static kprof_status repeat(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    wait_while_measured();
    return sim_device.operation_run(operation, snapshot);
}

static void note_violation(const char *what)
{
    const char *path = getenv("KPROF_SIM_VIOLATIONS");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (file) {
        fprintf(file, "%s\n", what);
        fclose(file);
    }
}

/* A child of fork finds the machine unlocked, whatever other threads did. */
static void lock_machine(void)
{
    pthread_mutex_lock(&sim.mutex);
}

static void unlock_machine(void)
{
    pthread_mutex_unlock(&sim.mutex);
}

/* Where kernels of a stream add one. */
static _Atomic uint64_t *find_sum(unsigned stream)
{
    return &sim_words(sim_variable_of_stream(stream))[0];
}

/* Modules are this file, if a variable names one. */
static const void *find_code(uint64_t crc, const char *function, size_t *size, uint64_t *id)
{
    static char code[1 << 24];
    const char *path = getenv("KPROF_SIM_CUBIN");
    FILE *file = path ? fopen(path, "re") : NULL;
    const void *found = sim_device.codes_find(crc, function, size, id);
    if (found && file) {
        *size = fread(code, 1, sizeof code, file);
        found = code;
    }
    if (file)
        fclose(file);
    return found;
}

/* To the thread that watches for pauses, and has the gate then, a stream is being captured, until it is asked to close
 * what is open. */
static bool is_capturing(void)
{
    bool watches = !launched && gettid() != getpid() && kprof_gate_is_own();
    bool is_kept_open = watches && getenv("KPROF_SIM_BUSY") && !kprof_lock_is_asked() &&
                        atomic_load(&kprof_the_idle.asked) == KPROF_NOT_ASKED;
    return is_kept_open || sim_device.target_capturing();
}

static void make_device(void)
{
    device = sim_device;
    device.target_capturing = is_capturing;
    device.target_start = start;
    device.target_follow = follow;
    device.target_shape = describe_shape;
    device.target_launch = describe_launch;
    device.target_kernel = describe_kernel;
    device.profiler_open = open_profiler;
    device.profiler_begin = begin_measurement;
    device.pc_samples_arm = arm_samples;
    device.codes_find = find_code;
    device.reader_read = read_values;
    device.snapshot_take = take_snapshot;
    device.target_graph = find_nodes;
    device.operation_run = repeat;
    sim_timeline_prepare(&device);
}

static void make_machine(void)
{
    static const sim_step allocate = {.op = SIM_ALLOC, .stream = STREAM, .a = SLOT},
                          allocate_other = {.op = SIM_ALLOC, .stream = OTHER_STREAM, .a = OTHER_SLOT},
                          pin = {.op = SIM_ALLOC, .stream = STREAM, .a = PINNED_SLOT, .shared = true};
    sim_reset(1);
    *find_sum(STREAM) = *find_sum(OTHER_STREAM) = 0;
    (void)sim_call(&allocate_other, NULL);
    (void)sim_call(&allocate, NULL); /* the last one's device is the current one */
    sim.capacity = MAX_RANGES;
    sim.second_chip = "GH100";
    sim.is_even = true;
    sim.on_violation = note_violation;
    if (getenv("KPROF_SIM_PINNED"))
        (void)sim_call(&pin, NULL);
    pthread_atfork(lock_machine, unlock_machine, unlock_machine);
    make_device();
}

/* The kernel of this name, in the stream's module; the same for the same name. */
static sim_function *find_kernel(const char *mangled, unsigned stream)
{
    static sim_function kernels[MAX_KERNELS];
    sim_function *kernel = kernels;
    pthread_mutex_lock(&sim.mutex);
    while (kernel->name && (strcmp(kernel->name, mangled) != 0 || kernel->module != stream))
        kernel++;
    if (!kernel->name && kernel == &kernels[MAX_KERNELS - 1])
        sim_violation("the test itself: too many kernels");
    if (!kernel->name)
        *kernel = (sim_function){.name = strdup(mangled), .module = stream, .kernel = SIM_COUNT};
    pthread_mutex_unlock(&sim.mutex);
    return kernel;
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

/* Before so many kernels are launched in the stream. */
static void check_memory(unsigned stream, unsigned kernels)
{
    static uint64_t launches[OTHER_STREAM + 1];
    sim_drain();
    if (*find_sum(stream) != launches[stream])
        sim_violation("%llu launches leave a sum of %llu", (unsigned long long)launches[stream],
                      (unsigned long long)*find_sum(stream));
    launches[stream] += kernels;
}

static void create_other_context(void)
{
    sim.hooks->context_created(&sim.contexts[1]);
}

static void launch(const sim_step *step)
{
    static pthread_once_t other = PTHREAD_ONCE_INIT;
    const unsigned nodes = step->op == SIM_GRAPH_LAUNCH ? sim.streams[CAPTURED].graph.count : 1;
    kprof_call call = sim_describe(step);
    call.context_id = places[CONTEXT_ID] + places[DEVICE];
    sim_current = sim_context_of_stream(step->stream);
    if (sim.hooks && sim_current > 0)
        pthread_once(&other, create_other_context);
    call.is_told = sim.hooks && sim.hooks->sees_calls && !sim.hooks->is_brief; /* else timeline.c tells of calls */
    call.correlation = call.is_told ? sim_timeline_next_call() : 0;
    if (sim.hooks && !atomic_load(&sim.is_unfollowed))
        sim.hooks->enter(&call);
    wait_while_measured();
    hold_third();
    if (!sim.streams[step->stream].capturing)
        check_memory(step->stream, nodes);
    call.failed = sim_call(step, NULL) != 0;
    if (sim.hooks && !atomic_load(&sim.is_unfollowed)) /* it may have changed meanwhile */
        sim.hooks->leave(&call);
}

static void launch_in_graph(const char *mangled)
{
    kprof_sim_capture(true);
    kprof_sim_launch(mangled);
    kprof_sim_capture(false);
    kprof_sim_graph();
}

void kprof_sim_launch(const char *mangled)
{
    if (has_fault("graph") && !sim.streams[CAPTURED].capturing) {
        launch_in_graph(mangled);
        return;
    }
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const bool reaches_host = strstr(mangled, "pinned") && sim.slots[PINNED_SLOT].live, is_other = places[DEVICE] > 0;
    const unsigned module = is_other ? OTHER_STREAM : STREAM, slot = is_other ? OTHER_SLOT : SLOT;
    sim_step step = {.op = SIM_LAUNCH,
                     .kernel = SIM_COUNT,
                     .stream = sim.streams[CAPTURED].capturing ? CAPTURED : module,
                     .function = find_kernel(mangled, module),
                     .a = reaches_host ? PINNED_SLOT : slot,
                     .b = slot,
                     .hidden = strstr(mangled, "hidden")};
    kprof_launch_record record = {.grid = {places[GRID], 1, 1}, .block = {places[BLOCK], 1, 1}};
    record.dynamic_smem_bytes = places[SMEM];
    launched = true;
    launch(&step);
    sim_timeline_launch(mangled, &record);
    if (has_fault("damage"))
        pthread_once(&once, damage_spool);
}

static void *launch_in_thread(void *user)
{
    kprof_sim_launch("_Z5scaleIfEvPT_S0_i");
    return user;
}

void kprof_sim_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, launch_in_thread, NULL) == 0)
        pthread_join(thread, NULL);
}

/* As a call of the runtime that ends in the driver's. */
void kprof_sim_profiler(bool starts)
{
    for (int i = 0; sim.hooks && sim.hooks->profiler_called && i < 2; i++)
        sim.hooks->profiler_called(starts);
}

void kprof_sim_capture(bool begins)
{
    const sim_step step = {.op = begins ? SIM_BEGIN_CAPTURE : SIM_END_CAPTURE, .stream = CAPTURED};
    kprof_call call = sim_describe(&step);
    sim.hooks->enter(&call);
    (void)sim_call(&step, NULL);
    sim.hooks->leave(&call);
}

void kprof_sim_graph(void)
{
    launch(&(sim_step){.op = SIM_GRAPH_LAUNCH, .stream = STREAM, .from = CAPTURED, .a = SLOT, .b = SLOT});
}

/* NVTX loads a tool where the environment names one. */
static void load_nvtx(void)
{
    if (getenv("NVTX_INJECTION64_PATH"))
        (void)InitializeInjectionNvtx2(nvtx_get_table);
}

void kprof_sim_push(const char *range)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_nvtx);
    nvtx_push(range);
}

void kprof_sim_pop(void)
{
    nvtx_pop();
}

void kprof_sim_place(const char *name, uint32_t number)
{
    for (size_t i = 0; i < PLACES; i++)
        if (strcmp(place_names[i], name) == 0)
            places[i] = number;
}

void *kprof_sim_handle(const char *kind)
{
    return strcmp(kind, "stream") == 0 ? (void *)&sim.streams[STREAM] : (void *)&sim.contexts[0];
}

int64_t kprof_sim_batch(void)
{
    return kprof_batch_is_open() ? kprof_the_batch.state.started_ns : 0;
}

void kprof_sim_settle(void)
{
    const struct timespec pause = {0, 1000000};
    while (kprof_batch_is_open())
        nanosleep(&pause, NULL);
    kprof_gate_await_exclusive(UINT_MAX); /* for whoever has closed it */
}

void kprof_sim_pass_ms(int64_t ms)
{
    sim_clock_advance_ms(ms);
}

bool kprof_sim_do(const char *text)
{
    return sim_timeline_do(text);
}

int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table)
{
    return kprof_nvtx_attach(get_table);
}

int InitializeInjection(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_machine);
    kprof_life_begin(&device);
    return 1;
}
