/* Follows every driver call: counts launches, chooses, and takes the chosen ones through the replay strategy. Whatever
 * goes wrong, the application's own call runs. */
#include "inject/launch.h"

#include "core/bytes.h"
#include "core/floats.h"
#include "core/log.h"
#include "inject/batch.h"
#include "inject/batch/span.h"
#include "inject/captures.h"
#include "inject/census.h"
#include "inject/choose.h"
#include "inject/contexts.h"
#include "inject/deliver.h"
#include "inject/devices.h"
#include "inject/early.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/kernels.h"
#include "inject/lock.h"
#include "inject/nvtx.h"
#include "inject/preload.h"
#include "inject/process.h"
#include "inject/range.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "inject/utilization.h"
#include "inject/wait.h"
#include "inject/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Later waits are shorter: try this often, while the call may wait, before giving up an open batch. */
#define CLOSE_TRIES 100

#define SIGNAL_POLL_NS 500000
/* A wait that is short, and yet long enough for its timeout to be remembered. */
#define LOOK_NS INT64_C(4000000)

/* Once this many launches of a kernel were short, one of MARK_INTERVAL launches of a thread has a mark. */
#define ENOUGH_SHORT  3
#define MARK_INTERVAL 8

#define NO_METRICS "no metrics were chosen for this device's chip"

/* The call that this thread is in the middle of. */
static __thread struct call_state {
    bool is_named;         /* signal handlers know of this struct */
    bool own_call;         /* kprof itself calls the driver: not the application's doing */
    int shared;            /* calls inside the gate, which may nest */
    bool alone;            /* this launch or transfer is in the open batch, or watched; the gate is held alone */
    uint32_t callback;     /* its callback_id */
    int nested;            /* calls of the same kind inside it */
    bool keeps_freed;      /* the open batch keeps what this call is to free or unload */
    bool captured;         /* it becomes a node of a graph, and runs nothing */
    bool unknown_end;      /* this launch is not known to end by itself */
    bool marks;            /* a mark follows the call */
    void *stream;          /* the call's, which does not tell it again as it leaves */
    kprof_kernel *watched; /* this launch's, which is in no batch; NULL: none */
    kprof_kernel *kernel;  /* this launch's; NULL: it is no launch */
    unsigned unmarked;     /* launches since this thread's last mark */
    unsigned matched;      /* launches of this call that were chosen, until they are in a batch or reported */
} thread;

static void note_unknown_end(void)
{
    thread.unknown_end = true;
    kprof_batch_note_unknown_end();
}

static void note_matched(void)
{
    thread.matched++;
    atomic_fetch_add(&kprof_engine.process.matched, 1);
}

/* The launches of the call that were chosen are in a batch, or reported. */
static void note_handled(void)
{
    if (thread.matched > 0)
        atomic_fetch_add(&kprof_engine.process.handled, thread.matched);
    thread.matched = 0;
}

/* Would every later launch fail in the same way? If this process has had the counters before, they are busy for a while
 * only: another of its contexts, or of the run's processes, is still giving them back. */
static bool is_final(kprof_status status)
{
    bool had_counters = atomic_load(&kprof_engine.process.profiled) > 0;
    bool has_others = kprof_engine.device->target_sharing() & KPROF_SHARES_WITH_DEVICES; /* which may have them now */
    const bool counts_instructions =
        kprof_engine.process.config.instruction_metrics.count > 0; /* no permission needed */
    return (status == KPROF_NO_PERMISSION && !counts_instructions) || status == KPROF_UNSUPPORTED ||
           (status == KPROF_COUNTERS_BUSY && !had_counters && !has_others);
}

/* Wait until no other thread is inside the driver. "" when the gate is held now, else why not. */
static const char *enter_alone(unsigned timeout_ms)
{
    if (!kprof_gate_enter_exclusive(timeout_ms))
        return "another thread stayed inside a CUDA call";
    bool armed = atomic_load(&kprof_engine.process.armed) && !atomic_load(&kprof_the_launches.ended);
    if (armed && !kprof_engine.device->target_capturing()) /* asked inside, where no thread can change it */
        return "";
    kprof_gate_leave_exclusive();
    return armed ? KPROF_BESIDE_CAPTURE : "profiling has ended in this process";
}

static void leave_watched(const kprof_call *call)
{
    kprof_kernel *kernel = thread.watched;
    kprof_status status =
        call->failed ? KPROF_INTERNAL : kprof_wait_at_most(call->context, kprof_kernel_patience_ns(kernel));
    if (status == KPROF_OK) {
        atomic_fetch_add(&kernel->watched_ends, 1);
        atomic_store(&kernel->ends_alone, true);
    } else if (status == KPROF_NOT_COLLECTED) {
        kprof_kernel_note_timeout(kernel);
    }
    thread.watched = NULL;
}

/* Make the launch or transfer part of a batch, and keep the gate until its call has returned. "" when it is in one, or
 * need not be; else why it is not measured. */
static const char *enter_batch(const kprof_batch_launch *launch)
{
    kprof_status status = KPROF_OK;
    if (launch->kernel && launch->chosen && !launch->metrics)
        return NO_METRICS;
    const char *obstacle = enter_alone(KPROF_GATE_TIMEOUT_MS);
    if (*obstacle)
        return obstacle;
    thread.callback = launch->call->callback_id;
    thread.alone = kprof_batch_enter(launch, &status);
    if (thread.alone)
        return status == KPROF_OK ? "" : kprof_process_reason(status);
    /* If kprof watches a launch instead of measuring it, the launch keeps the gate until it has ended. */
    if (launch->chosen && !kprof_batch_records() && atomic_load(&launch->kernel->to_watch)) {
        atomic_store(&launch->kernel->to_watch, false);
        thread.watched = launch->kernel;
        thread.alone = true;
    }
    kprof_idle_watch();
    if (!thread.alone)
        kprof_gate_leave_exclusive();
    if (is_final(status))
        kprof_process_disarm(status, "a chosen launch could not be measured");
    return launch->chosen && status != KPROF_OK ? kprof_process_reason(status) : "";
}

/* Does the call have the GPU use memory, so that a batch has to know of it? One that is captured runs nothing. */
static bool uses_memory(const kprof_call *call)
{
    return call->kind == KPROF_CALL_LAUNCH || call->kind == KPROF_CALL_TRANSFER ||
           call->kind == KPROF_CALL_GRAPH_LAUNCH;
}

/* Or has it a stream wait for what may never come, or move memory? */
static bool is_work(const kprof_call *call)
{
    return uses_memory(call) || call->kind == KPROF_CALL_VALUE_WAIT || call->kind == KPROF_CALL_MIGRATE;
}

/* Replay what is open before a call that replays could not repeat, or that shows the host what it must not see yet. */
static void close_batch(const char *why)
{
    if (!kprof_batch_is_open() || !kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    (void)kprof_batch_close(why);
    kprof_idle_watch();
    kprof_gate_leave_exclusive();
}

/* The same by a function of batch.h that gives up what cannot be replayed now. */
static void end_batch(void (*end)(const char *why), const char *why)
{
    if (!kprof_batch_is_open() || !kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    end(why);
    kprof_idle_watch();
    kprof_gate_leave_exclusive();
}

/* If the work of a sealed batch has ended by now, replay it. */
static void close_sealed(const kprof_call *call)
{
    if (kprof_batch_is_sealed() && kprof_gate_enter_exclusive(0)) {
        (void)kprof_batch_close_idle(call->name);
        kprof_gate_leave_exclusive();
    }
}

static bool frees_to_keeping_pool(const kprof_call *call)
{
    return call->kind == KPROF_CALL_POOL_FREE && kprof_engine.device->target_pool_keeps(call);
}

/* Replays use the memory that the call frees, or the code that it unloads, so an open batch keeps it, or ends first.
 * Keeping it takes an allocation, which may end a capture. */
static void keep_freed(const kprof_call *call)
{
    const bool takes = call->kind == KPROF_CALL_FREE || call->kind == KPROF_CALL_UNLOAD;
    const bool may_keep = call->kind == KPROF_CALL_POOL_FREE || (takes && !thread.keeps_freed);
    if (!may_keep || !atomic_load_explicit(&kprof_engine.process.armed, memory_order_relaxed))
        return;
    if (!kprof_batch_replays() || frees_to_keeping_pool(call) || !kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    thread.keeps_freed = !kprof_engine.device->target_capturing() && kprof_batch_keep_freed(call);
    kprof_gate_leave_exclusive();
}

static bool repeats_whole_graphs(void)
{
    return kprof_engine.process.config.graph_profiling == KPROF_GRAPH_WHOLE;
}

static bool is_gated(const kprof_call *call)
{
    return call->kind != KPROF_CALL_WAIT && call->kind != KPROF_CALL_HARMLESS && call->kind != KPROF_CALL_ORDER;
}

static bool may_take_host_memory(const kprof_call *call)
{
    return is_gated(call) && !uses_memory(call) && call->kind != KPROF_CALL_CODE;
}

/* Does the call take away what even an open pass needs? */
static bool takes_code(const kprof_call *call)
{
    return (call->kind == KPROF_CALL_UNLOAD && !thread.keeps_freed) || call->kind == KPROF_CALL_STOP;
}

/* Must the open batch be replayed before the call? */
static bool closes_batch(const kprof_call *call)
{
    if (takes_code(call))
        return true;
    if (kprof_batch_saves_host() && may_take_host_memory(call))
        return true;
    if (call->kind == KPROF_CALL_CAPTURE) /* programs often change a graph after it */
        return !kprof_batch_is_sealed() &&
               (!kprof_batch_records() || repeats_whole_graphs() || !kprof_captures_are_quiet());
    if (call->kind == KPROF_CALL_FREE)
        return kprof_batch_replays() && !thread.keeps_freed;
    if (call->kind == KPROF_CALL_POOL_FREE) /* once more: the batch that held the pool may have ended since */
        return kprof_batch_replays() && !frees_to_keeping_pool(call);
    if (call->kind == KPROF_CALL_VALUE_WAIT) /* a batch that records takes it, or closes as it joins */
        return !kprof_batch_replays() && !kprof_batch_is_window() && !kprof_batch_is_sealed() &&
               !kprof_batch_is_of(call);
    if (call->kind == KPROF_CALL_MEMORY_INFO)
        return kprof_batch_replays() && kprof_engine.device->target_holds_pools();
    if (call->kind == KPROF_CALL_GRAPH_CHANGE)
        return kprof_batch_replays() && repeats_whole_graphs(); /* a replay launches the same one */
    return call->kind == KPROF_CALL_OTHER && !kprof_batch_is_window();
}

/* Without --nvtx-include a range goes from one of these calls to the other. */
static void profiler_called(bool starts)
{
    KPROF_OWN_FLOATS();
    kprof_process *process = &kprof_engine.process;
    const bool was_started = !kprof_filter_is_stopped(process->filter);
    kprof_filter_note_profiler(process->filter, starts);
    if (starts == was_started || !kprof_range_is_asked_for() || process->config.filter.measures_ranges)
        return;
    if (starts)
        (void)kprof_range_begin("", "cudaProfilerStart to cudaProfilerStop",
                                process->config.nvtx ? kprof_nvtx_text() : "",
                                atomic_load(&process->armed) ? kprof_launch_stack() : 0);
    else
        kprof_range_end();
}

/* The application gets the memory that it needs. */
static void make_space(const kprof_call *call, size_t local_bytes)
{
    if (atomic_load(&kprof_engine.process.matched) == 0 || kprof_engine.device->target_has_space(call, local_bytes) ||
        !kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    if (kprof_batch_close(call->name) && !kprof_engine.device->target_capturing())
        kprof_contexts_release_memory();
    kprof_gate_leave_exclusive();
}

/* The driver allocates local memory within a launch, and the launch fails if kprof's copies take the space. kprof
 * cannot give them back during a capture; a later launch looks for the space then. */
static void make_local_space(const kprof_call *call, const kprof_device *device, const kprof_kernel *kernel)
{
    if (!device || !kernel || kprof_engine.device->target_capturing())
        return;
    size_t local_bytes = kprof_devices_grow_local(device, &kernel->record);
    if (local_bytes > 0)
        make_space(call, local_bytes);
}

/* Needs the gate, alone. */
static kprof_status measure_range(const kprof_batch_launch *launch)
{
    kprof_status status = KPROF_OK;
    if (!launch->metrics)
        return kprof_fail(KPROF_NOT_COLLECTED, NO_METRICS);
    if (launch->metrics->pass_count == 0)
        return kprof_fail(KPROF_NOT_COLLECTED, "no metric that was asked for is one of ranges");
    if (!kprof_batch_enter(launch, &status)) /* OK: it was not the range's turn, which is reported */
        return status;
    if (!kprof_range_note_measured()) /* another thread has ended it meanwhile */
        kprof_batch_end_range();
    return KPROF_OK;
}

/* A call launches this, in a range that may be repeated: one kernel, or the nodes of a graph. */
typedef struct range_work {
    const kprof_call *call;
    kprof_batch_launch *launches; /* [count]; owned, of a graph */
    size_t count;                 /* 0: it cannot be repeated */
    bool is_graph;                /* whose nodes these are; else it is one launch */
} range_work;

/* Repeat the range as a whole, if its first launches may join a batch for that: NULL, or why not. Needs the gate,
 * alone. */
static const char *repeat_range(const kprof_batch_launch *range, range_work *work)
{
    size_t first = 0;
    kprof_status status = KPROF_OK;
    const char *obstacle = range->metrics ? kprof_span_obstacle(range->kernel, range->metrics) : "";
    if (obstacle)
        return obstacle;
    while (first < work->count && !work->launches[first].kernel)
        first++;
    if (first == work->count)
        return work->is_graph ? "it begins with a graph that is not followed, or has no kernel" : "";
    work->launches[first].chosen = true;
    work->launches[first].repeats = range->kernel;
    work->launches[first].record = range->record;
    thread.callback = work->call->callback_id;
    thread.alone = work->is_graph ? kprof_batch_enter_all(work->launches, work->count, &status)
                                  : kprof_batch_enter(&work->launches[0], &status);
    if (thread.alone)
        (void)kprof_range_note_measured(); /* if another thread has ended it meanwhile, it ends behind the launch */
    return thread.alone ? NULL : status == KPROF_OK ? "" : kprof_process_reason(status);
}

/* The launch is the first one of a range to be measured. It runs in that range, as all calls until its end do. If the
 * range is repeated, the gate is kept until the call has returned. */
static void enter_range(range_work *work, uint64_t position, const kprof_device *device)
{
    const kprof_call *call = work->call;
    const char *obstacle = device ? enter_alone(KPROF_GATE_TIMEOUT_MS) : NO_METRICS;
    const kprof_range_name *name = kprof_range_take(device ? device->record.device : 0);
    kprof_counted range = {.position = position};
    if (name)
        range.kernel = kprof_kernels_find_named(name->text, true, kprof_engine.process.filter, kprof_deliver_kernel);
    if (range.kernel && device)
        kprof_choose_count_of_kernel(&range);
    if (range.kernel && device && kprof_choose_range(&range, device)) {
        kprof_batch_launch launch = {
            .call = call, .kernel = range.kernel, .metrics = device->metrics, .chosen = true, .begins_range = true};
        kprof_process_forget_reason();
        kprof_choose_describe(call, &range, &launch.record);
        launch.record.device = device->record.device;
        launch.record.nvtx = name->nvtx;
        launch.record.stack = name->stack;
        if (name->stack == 0)
            kprof_choose_take_stack(&launch.record);
        memset(launch.record.grid, 0, sizeof launch.record.grid);
        memset(launch.record.block, 0, sizeof launch.record.block);
        memset(launch.record.cluster, 0, sizeof launch.record.cluster);
        launch.record.dynamic_smem_bytes = 0;
        note_matched();
        char why[256] = "";
        const char *unrepeated = *obstacle ? "" : repeat_range(&launch, work);
        if (!unrepeated)
            return;
        snprintf(why, sizeof why, "%s", unrepeated); /* before the reason is forgotten */
        launch.unrepeated = why;
        kprof_process_forget_reason();
        kprof_status status = *obstacle ? KPROF_NOT_COLLECTED : measure_range(&launch);
        kprof_choose_settle_sampled(&launch.record);
        if (status != KPROF_OK)
            kprof_choose_write_unmeasured(&launch.record, *obstacle ? obstacle : kprof_process_reason(status));
        if (is_final(status))
            kprof_process_disarm(status, "a range could not be measured");
    }
    if (*obstacle)
        return;
    kprof_idle_watch();
    kprof_gate_leave_exclusive();
}

/* The nodes of a graph have no numbers among the launches, as the graph has one. */
static void list_nodes(const kprof_call *call, const kprof_device *device, range_work *work)
{
    size_t count = 0;
    const char *why = "";
    const kprof_graph_call *nodes = kprof_engine.device->target_graph(call, &count, &why);
    work->is_graph = true;
    work->launches = nodes ? kprof_calloc(count + 1, sizeof *work->launches) : NULL;
    work->count = work->launches ? count : 0;
    for (size_t i = 0; i < work->count; i++) {
        kprof_batch_launch *node = &work->launches[i];
        *node = (kprof_batch_launch){.call = &nodes[i].call, .metrics = device->metrics};
        if (nodes[i].call.kind != KPROF_CALL_LAUNCH)
            continue;
        node->kernel = kprof_kernels_find(node->call, kprof_engine.process.filter, kprof_deliver_kernel);
        if (node->kernel)
            make_local_space(node->call, device, node->kernel);
        else
            work->count = 0;
    }
}

static const char *enter_graph_batch(const kprof_call *call, const kprof_batch_launch *launches, size_t count)
{
    kprof_status status;
    const char *obstacle = enter_alone(KPROF_GATE_TIMEOUT_MS);
    if (*obstacle)
        return obstacle;
    thread.callback = call->callback_id;
    thread.alone = kprof_batch_enter_all(launches, count, &status);
    if (thread.alone)
        return "";
    kprof_idle_watch();
    kprof_gate_leave_exclusive();
    if (is_final(status))
        kprof_process_disarm(status, "a chosen launch could not be measured");
    return kprof_process_reason(status);
}

/* The open batch repeats a range, and the call is part of that; else the batch ends before it. */
static void join_range(const range_work *work)
{
    if (work->is_graph && work->count > 0)
        (void)enter_graph_batch(work->call, work->launches, work->count);
    else if (work->count > 0)
        (void)enter_batch(&work->launches[0]);
}

/* Ranges are measured, and no launches. */
static void enter_launch_of_range(const kprof_call *call, const kprof_counted *count, const kprof_device *device)
{
    const bool is_awaited = kprof_range_is_awaited();
    if (!is_awaited)
        kprof_nvtx_note_outside(kprof_engine.process.filter);
    if (!is_awaited && device)
        kprof_range_note_launch(device->record.device);
    if (!is_awaited && !kprof_batch_records())
        return;
    kprof_batch_launch launch = {.call = call, .kernel = count->kernel, .metrics = device ? device->metrics : NULL};
    range_work work = {.call = call, .launches = &launch, .count = count->kernel && device ? 1 : 0};
    if (!count->kernel || !atomic_load_explicit(&count->kernel->ends_alone, memory_order_relaxed))
        note_unknown_end();
    if (work.count > 0 && call->kind == KPROF_CALL_GRAPH_LAUNCH && !repeats_whole_graphs())
        list_nodes(call, device, &work);
    if (is_awaited)
        enter_range(&work, count->position, device);
    if (!thread.alone && kprof_batch_records())
        join_range(&work);
    if (work.is_graph)
        free(work.launches);
}

/* Called as such a range ends, in any thread, outside of driver calls. In a forked child the batch is the parent's. */
static void end_range(void)
{
    if (atomic_load(&kprof_the_launches.forked))
        return;
    const bool was_own = thread.own_call, own = kprof_engine.device->target_set_own(true);
    thread.own_call = true;
    kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    if (kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS)) {
        kprof_batch_end_range();
        kprof_idle_watch();
        kprof_gate_leave_exclusive();
    } else {
        kprof_batch_note_overdue_range("another thread stayed inside a CUDA call as the range ended");
    }
    (void)kprof_engine.device->target_set_own(own);
    thread.own_call = was_own;
}

static void enter_launch(const kprof_call *call)
{
    const kprof_counted count = kprof_choose_count(call);
    kprof_kernel *kernel = thread.kernel = count.kernel;
    const kprof_device *device = kprof_devices_find(call->context);
    make_local_space(call, device, kernel);
    if (kprof_range_is_asked_for()) {
        enter_launch_of_range(call, &count, device);
        return;
    }
    bool chosen = kprof_choose_launch(call, &count, device, NULL);
    if (!kernel || !atomic_load_explicit(&kernel->ends_alone, memory_order_relaxed))
        note_unknown_end();
    if (!chosen && !kprof_batch_records() && !kprof_batch_is_wanted(call->context))
        return;
    if (!kernel || !device) { /* out of memory */
        close_batch(call->name);
        return;
    }
    kprof_batch_launch launch = {.call = call, .kernel = kernel, .metrics = device->metrics, .chosen = chosen};
    launch.record.device = device->record.device;
    kprof_process_forget_reason();
    if (chosen) {
        note_matched();
        kprof_choose_describe(call, &count, &launch.record);
        kprof_choose_take_stack(&launch.record);
    }
    const char *obstacle = "";
    bool asks_nothing = launch.metrics && launch.metrics->pass_count == 0; /* but what the launch itself tells */
    if (asks_nothing)
        close_batch(call->name);
    else
        obstacle = enter_batch(&launch);
    if (chosen)
        kprof_choose_settle_sampled(&launch.record);
    if (chosen && (asks_nothing || *obstacle)) {
        kprof_choose_write_unmeasured(&launch.record, obstacle);
        kprof_process_check_owner();
    }
}

/* Count a node of a graph, and choose whether it is measured. */
static void look_at_node(const kprof_graph_call *node, const kprof_device *device, kprof_batch_launch *out)
{
    *out = (kprof_batch_launch){.call = &node->call};
    if (node->call.kind != KPROF_CALL_LAUNCH)
        return;
    const kprof_counted count = kprof_choose_count(&node->call);
    out->kernel = count.kernel;
    if (!out->kernel || !device)
        return;
    out->metrics = device->metrics;
    make_local_space(&node->call, device, out->kernel);
    out->chosen = kprof_choose_launch(&node->call, &count, device, node);
    if (!out->chosen)
        return;
    note_matched();
    kprof_choose_describe(&node->call, &count, &out->record);
    out->record.device = device->record.device;
    out->record.graph_node = node->node;
    kprof_choose_take_node_stack(node, &out->record);
}

/* Tell each reason once. */
static void tell_refused_graph(const char *why)
{
    const uint64_t hash = kprof_hash(KPROF_HASH_START, why, strlen(why)) | 1;
    bool is_new = false, is_told = false;
    for (size_t i = 0; i < KPROF_REFUSALS_TOLD && !is_new && !is_told; i++) {
        uint64_t before = 0;
        is_new = atomic_compare_exchange_strong(&kprof_the_launches.refusals[i], &before, hash);
        is_told = before == hash;
    }
    if (!is_new)
        return;
    char text[512];
    snprintf(text, sizeof text,
             "a CUDA graph, or a launch on several devices, is not profiled kernel by kernel: %s; "
             "--graph-profiling graph measures a graph as one launch",
             why);
    kprof_process_warn_unmeasured(text);
}

/* Each kernel of a graph is a launch. They run in the graph's own launch first, as all launches do. */
static void enter_graph(const kprof_call *call)
{
    size_t count = 0, chosen = 0;
    const char *why = "", *obstacle = "";
    note_unknown_end();
    const kprof_graph_call *nodes = kprof_engine.device->target_graph(call, &count, &why);
    if (!nodes) {
        kprof_call whole;
        if (why) {
            tell_refused_graph(why);
            (void)kprof_engine.device->target_name_graph(call, &whole); /* which notes the variables of its kernels */
        }
        return;
    }
    const kprof_device *device = kprof_devices_find(call->context);
    KPROF_AUTO_FREE kprof_batch_launch *launches = kprof_calloc(count + 1, sizeof *launches);
    bool known = launches != NULL;
    kprof_process_forget_reason();
    for (size_t i = 0; launches && i < count; i++) {
        look_at_node(&nodes[i], device, &launches[i]);
        known = known && (launches[i].kernel || nodes[i].call.kind == KPROF_CALL_TRANSFER);
        chosen += launches[i].chosen;
    }
    bool measures = chosen > 0 && device->metrics && device->metrics->pass_count > 0;
    bool is_repeated = chosen == 0 && kprof_batch_records(); /* in a batch of the launches around it */
    if (known && count > 0 && (measures || is_repeated))
        obstacle = enter_graph_batch(call, launches, count);
    for (size_t i = 0; launches && i < count; i++)
        if (launches[i].chosen && (!measures || *obstacle))
            kprof_choose_write_unmeasured(&launches[i].record, measures ? obstacle : device->metrics ? "" : NO_METRICS);
}

/* Must the call wait until the open batch has been replayed, or has taken it? */
static bool is_in_the_way(const kprof_call *call)
{
    bool is_unknown = is_work(call) && !thread.captured && kprof_batch_records();
    return kprof_batch_is_open() && (closes_batch(call) || is_unknown);
}

/* Does no call need kprof any more? */
static bool has_settled(void)
{
    return !atomic_load_explicit(&kprof_engine.process.armed, memory_order_relaxed) &&
           atomic_load_explicit(&kprof_the_launches.settled, memory_order_relaxed);
}

static bool may_try(int tries)
{
    return tries == 0 || (tries < CLOSE_TRIES && kprof_wait_rest_ns() > 0);
}

/* The call runs beside others. But another thread may have opened a batch since this call looked, which must keep what
 * the call frees, or be replayed first, or must take the call. While this thread is in the gate, nobody can open one. A
 * batch that cannot be closed in time is never replayed. If kprof ctl has ended the measurement meanwhile, nobody may
 * tell of the call's end: then it passes by the gate. */
static void enter_gate(const kprof_call *call)
{
    kprof_gate_enter_shared();
    for (int tries = 0; is_in_the_way(call) && !kprof_batch_is_sealed() && may_try(tries); tries++) {
        kprof_gate_leave_shared();
        keep_freed(call);
        if (is_in_the_way(call))
            close_batch(call->name);
        kprof_gate_enter_shared();
    }
    if (has_settled()) {
        kprof_gate_leave_shared();
        return;
    }
    if (is_in_the_way(call)) {
        kprof_batch_spoil(kprof_batch_is_sealed()
                              ? "its work did not end before a call that takes away what replays use"
                              : "another thread stayed inside a CUDA call, so that the batch could "
                                "not be closed in time");
        kprof_batch_stop_behind();
        if (call->kind == KPROF_CALL_MEMORY_INFO) /* the answer must not tell of kprof */
            kprof_engine.device->target_let_go_of_pools();
    }
    thread.shared++;
}

/* As kprof ctl arms the process, calls have to be at their end: what they bring must be in the lists, and what they
 * launch must not run beside a replay. CUPTI does not report launches before that. */
static bool counts_unarmed(const kprof_call *call)
{
    const bool is_launch = call->kind == KPROF_CALL_LAUNCH || call->kind == KPROF_CALL_GRAPH_LAUNCH;
    return atomic_load_explicit(&kprof_engine.process.waits, memory_order_relaxed) && is_gated(call) &&
           (!is_launch || atomic_load(&kprof_engine.process.is_arming));
}

/* False when the process has been armed meanwhile. Inside the gate nothing changes that matters here. */
static bool enter_unarmed(const kprof_call *call)
{
    kprof_gate_enter_shared();
    const bool is_unarmed = has_settled();
    if (is_unarmed && counts_unarmed(call))
        thread.shared++;
    else
        kprof_gate_leave_shared();
    return is_unarmed;
}

/* The process was disarmed while a batch was open, or about to be. Keep calls out until that batch is replayed: later,
 * its restore would undo what the application does now. Until the counters are given back, too, CUPTI must not wait for
 * work that comes meanwhile, nor during a capture. After that no call needs kprof any more. */
static void try_to_settle(const kprof_call *call)
{
    if (!kprof_gate_enter_exclusive(0))
        return;
    if (!atomic_load(&kprof_engine.process.armed)) { /* else kprof ctl has armed it meanwhile */
        kprof_batch_end(call->name);
        kprof_contexts_end_samples();
        if (!kprof_engine.device->target_capturing()) {
            kprof_contexts_release_memory();
            kprof_contexts_release();
            atomic_store(&kprof_the_launches.settled, !kprof_contexts_have_counters());
        }
        if (atomic_load(&kprof_the_launches.settled))
            kprof_lock_give();
    }
    kprof_gate_leave_exclusive();
}

static void enter_value_wait(const kprof_call *call)
{
    const kprof_device *device = kprof_devices_find(call->context);
    kprof_process_forget_reason();
    enter_batch(&(kprof_batch_launch){.call = call, .metrics = device ? device->metrics : NULL});
}

/* `awaited`: the work before a transfer. */
static void follow(const kprof_call *call, kprof_awaited awaited)
{
    kprof_call whole;
    if (thread.captured) /* it is no launch, and counts when its graph is launched */
        return;
    if (call->kind == KPROF_CALL_LAUNCH)
        enter_launch(call);
    else if (is_work(call) && call->kind != KPROF_CALL_GRAPH_LAUNCH && kprof_batch_records())
        enter_batch(&(kprof_batch_launch){.call = call, .awaited = awaited == KPROF_AWAITED});
    else if (call->kind == KPROF_CALL_VALUE_WAIT && kprof_batch_is_wanted(call->context))
        enter_value_wait(call);
    else if (call->kind == KPROF_CALL_GRAPH_LAUNCH && (repeats_whole_graphs() || !kprof_repeats_launches()) &&
             kprof_engine.device->target_name_graph(call, &whole))
        enter_launch(&whole);
    else if (call->kind == KPROF_CALL_GRAPH_LAUNCH)
        enter_graph(call);
    else if (call->kind == KPROF_CALL_UNLOAD)
        kprof_kernels_forget_handles();
    else if (call->kind == KPROF_CALL_ALLOCATE || call->kind == KPROF_CALL_SETUP || call->kind == KPROF_CALL_CODE ||
             call->kind == KPROF_CALL_GRAPH_CHANGE)
        make_space(call, 0);
}

/* Is the call captured? Note it if something runs beside a capture. */
static bool look_for_capture(const kprof_call *call)
{
    if (!kprof_engine.device->target_capturing())
        return false;
    if (is_work(call) && kprof_engine.device->target_launch_captured(call))
        return true;
    kprof_captures_note_call(call);
    return false;
}

/* In a transfer the host may wait for a kernel, or for a function of its own, that waits for another thread, which must
 * be able to launch meanwhile. During a capture kprof can await nothing. kprof may have waited already as earlier
 * kernels were launched, and some kernels give up after 0.1 s in all: so it waits here for half of the time that is
 * left. */
static kprof_awaited await_start(const kprof_call *call)
{
    if (call->kind != KPROF_CALL_TRANSFER || thread.captured || atomic_load(&kprof_engine.process.matched) == 0)
        return KPROF_NOT_AWAITED;
    if (kprof_engine.device->target_capturing())
        return KPROF_AWAIT_TIMED_OUT;
    const int64_t perhaps_ns = kprof_batch_records() ? kprof_wait_worth_ns(call->context) / 2 : -1;
    const kprof_awaited awaited = kprof_engine.device->transfer_await_start(call, perhaps_ns);
    if (awaited == KPROF_AWAIT_TIMED_OUT) /* to close the batch, which lacks the copy, look once more */
        kprof_wait_allow(LOOK_NS);
    return awaited;
}

/* A program that is bound by its launches would pay more for marks than for all else that kprof does. */
static bool may_go_unmarked(void)
{
    const kprof_kernel *kernel = thread.kernel;
    return kernel && !kprof_batch_is_open() && atomic_load(&kernel->short_ends) >= ENOUGH_SHORT &&
           atomic_load(&kernel->timeouts) == 0 && ++thread.unmarked < MARK_INTERVAL;
}

/* Marks tell later how far the GPU is. Each launch that may take long has one, until all chosen ones are measured. */
static bool is_marked(const kprof_call *call)
{
    const bool is_followed = thread.alone || thread.shared > 0;
    if (!is_followed || thread.captured || !is_work(call) ||
        (!kprof_batch_is_open() && kprof_filter_exhausted(kprof_engine.process.filter)))
        return false;
    const bool is_left_out = may_go_unmarked();
    atomic_store_explicit(&kprof_engine.waits.unmarked, is_left_out, memory_order_relaxed);
    return !is_left_out;
}

static void set_mark(const kprof_call *call)
{
    kprof_kernel *is_short = kprof_engine.device->marks_set(call->context, thread.stream, thread.kernel);
    if (is_short)
        atomic_fetch_add(&is_short->short_ends, 1);
    thread.unmarked = 0;
}

/* If another thread has the gate, the next call tries again. */
static void begin_early(void)
{
    if (*enter_alone(0))
        return;
    kprof_early_begin();
    kprof_gate_leave_exclusive();
}

static void enter(const kprof_call *call)
{
    if (thread.own_call)
        return;
    KPROF_OWN_FLOATS();
    kprof_batch_note_order(call, false);
    if (thread.alone) { /* a call that a launch itself makes is part of it */
        thread.nested += call->callback_id == thread.callback;
        return;
    }
    if (thread.shared > 0 && is_gated(call)) { /* likewise; the batch, if there is one, is as the outer call needs it */
        kprof_gate_enter_shared();
        thread.shared++;
        return;
    }
    const bool counts = counts_unarmed(call); /* before the next look: the process may be armed meanwhile */
    if (has_settled() && (!counts || enter_unarmed(call)))
        return;
    const bool armed = atomic_load_explicit(&kprof_engine.process.armed, memory_order_relaxed);
    if (!thread.is_named) {
        kprof_ending_name_thread(&thread);
        thread.is_named = true;
    }
    thread.own_call = true;
    if (call->is_told)
        kprof_recording_note_call(call);
    thread.unknown_end = thread.keeps_freed = false;
    thread.kernel = NULL;
    kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    kprof_batch_begin_call();
    if (armed && thread.shared == 0 && kprof_early_is_wanted(call->context))
        begin_early();
    thread.captured = armed && look_for_capture(call);
    if (kprof_batch_is_sealed() && !thread.captured)
        close_sealed(call);
    keep_freed(call);
    if (!armed && is_gated(call))
        try_to_settle(call);
    else if (kprof_batch_is_open() && closes_batch(call) && takes_code(call))
        end_batch(kprof_batch_end, call->name);
    else if (kprof_batch_is_open() && closes_batch(call) && !kprof_batch_is_sealed())
        close_batch(call->name);
    if (call->kind == KPROF_CALL_STOP)
        kprof_recording_flush();
    kprof_awaited awaited = armed ? await_start(call) : KPROF_NOT_AWAITED;
    if (armed && awaited != KPROF_AWAIT_TIMED_OUT) /* else it may keep others out of the batch for long */
        follow(call, awaited);
    note_handled();
    if (!thread.alone && is_gated(call))
        enter_gate(call);
    if (kprof_batch_is_sealed() && !thread.captured && (is_work(call) || call->kind == KPROF_CALL_OTHER))
        kprof_batch_note_other_work(call);
    thread.marks = armed && is_marked(call);
    thread.stream = call->stream;
    if (thread.unknown_end) /* again: a thread inside the gate may have taken back what this one noted before it */
        kprof_batch_note_unknown_end();
    thread.own_call = false;
}

/* Save memory that the call brought before the application can use it. If the call shares memory with others, later
 * launches may not be repeated, but those before it may. */
static void follow_up(const kprof_call *call)
{
    if (call->failed || !kprof_batch_is_open())
        return;
    if (kprof_batch_new_sharing() != 0) {
        close_batch(call->name);
        if (kprof_batch_new_sharing() != 0) /* it stays open, and others may write what a replay would put back */
            kprof_batch_spoil("memory came to be shared while another thread stayed inside a CUDA call");
    } else if (call->kind == KPROF_CALL_ALLOCATE && kprof_batch_records()) {
        if (!kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS)) {
            kprof_batch_spoil("memory was allocated while another thread stayed inside a CUDA call");
            return;
        }
        /* another thread may share memory now */
        if (kprof_batch_new_sharing() != 0 || kprof_engine.device->target_capturing())
            kprof_batch_end(call->name);
        else
            kprof_batch_cover(call);
        kprof_gate_leave_exclusive();
    }
}

/* Count what kprof keeps as free, since the application can have it. A process that has settled, such as a forked
 * child, keeps nothing, and may find locks taken for ever. */
static void correct_free_memory(const kprof_call *call)
{
    if (call->failed || atomic_load(&kprof_the_launches.settled) || atomic_load(&kprof_engine.process.matched) == 0)
        return;
    const kprof_device *device = kprof_devices_find(call->context);
    if (device)
        kprof_engine.device->target_add_free(call, kprof_contexts_held_bytes(device->record.device));
}

/* Only this thread can replay managed memory, unless it is in a signal handler. */
void kprof_launch_end_by_signal(void)
{
    KPROF_OWN_FLOATS();
    const struct timespec pause = {0, SIGNAL_POLL_NS};
    if (!kprof_ending_is_due())
        return;
    if (kprof_batch_has_host() && !kprof_idle_may_be_handler()) {
        thread.own_call = true;
        end_batch(kprof_batch_end, KPROF_CLOSED_BY_SIGNAL);
    }
    while (kprof_batch_is_open() && !kprof_ending_is_overdue())
        nanosleep(&pause, NULL);
    kprof_ending_end();
}

static void leave(const kprof_call *call)
{
    if (thread.own_call)
        return;
    KPROF_OWN_FLOATS();
    kprof_batch_note_order(call, true);
    if (thread.alone && call->callback_id != thread.callback)
        return;
    if (thread.nested > 0) {
        thread.nested--;
        return;
    }
    if (thread.shared == 0 && !thread.alone && has_settled()) { /* CUPTI may have reported that it entered, or not */
        thread.marks = false;
        return;
    }
    thread.own_call = true;
    if (call->kind == KPROF_CALL_UNLOAD) /* again: another thread may have used one while it was going */
        kprof_kernels_forget_handles();
    if (thread.marks && !call->failed)
        set_mark(call);
    thread.marks = false;
    if (thread.alone) {
        thread.alone = false;
        if (thread.watched)
            leave_watched(call);
        else
            kprof_batch_leave(call);
        if (kprof_batch_spans_calls() && !kprof_range_is_measured()) /* another thread had ended it before the call */
            kprof_batch_end_range();
        kprof_watch_note_launch();
        kprof_idle_watch();
        kprof_gate_leave_exclusive();
    }
    if (call->kind == KPROF_CALL_MEMORY_INFO)
        correct_free_memory(call);
    else if (call->kind == KPROF_CALL_CAPTURE_END && !call->failed && !kprof_engine.device->target_capturing())
        kprof_captures_note_end();
    if (thread.shared > 0 && is_gated(call)) {
        thread.shared--;
        kprof_gate_leave_shared();
        if (thread.shared == 0)
            follow_up(call);
    }
    if (thread.shared == 0 && kprof_watch_may_be_done() && kprof_gate_enter_exclusive(0)) {
        kprof_watch_tell_done();
        kprof_gate_leave_exclusive();
    }
    if (call->kind == KPROF_CALL_WAIT && thread.shared == 0 && !thread.alone && kprof_batch_ends_at_wait())
        close_batch(call->name);
    thread.own_call = false;
    if (thread.shared == 0) /* a signal that came within the call must end the process before its thread goes on */
        kprof_launch_end_by_signal();
}

static void note_context(void *context)
{
    KPROF_OWN_FLOATS();
    kprof_contexts_note(context);
    kprof_recording_note_context(context);
}

/* Within the call that ends it, or at the process' end without one. */
static void context_ending(void *context)
{
    KPROF_OWN_FLOATS();
    kprof_launch_state *state = &kprof_the_launches;
    bool own_call = thread.own_call;
    bool in_handler = atomic_load(&state->ended) && kprof_gate_is_own(); /* which exits in the middle of a replay */
    if (atomic_load(&state->forked) || in_handler)
        return;
    thread.own_call = true;
    kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    bool alone = thread.shared == 0 && kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS);
    kprof_wait_forget(context);
    bool in_pass = kprof_batch_context_ending(context);
    if (!atomic_load(&state->ended)) /* else all goes with the process, and CUPTI would wait for work without end */
        kprof_contexts_forget(context, in_pass);
    kprof_engine.device->marks_forget(context);
    kprof_devices_forget(context);
    kprof_kernels_forget_handles(); /* the next context may have its address */
    if (alone)
        kprof_gate_leave_exclusive();
    thread.own_call = own_call;
}

/* The watching thread does the work: this one, which may hold anything in a signal handler, waits for limited time. */
void kprof_launch_before(kprof_exec_turn turn)
{
    KPROF_OWN_FLOATS();
    static const char *const names[] = {"an exec", "_exit", "a thread"};
    kprof_process *process = &kprof_engine.process;
    bool is_own = getpid() == process->pid; /* not a child after vfork, which shares this memory */
    if (is_own && turn != KPROF_BEFORE_THREAD)
        kprof_launch_end_by_signal();
    const bool is_over = !atomic_load(&process->armed) && !atomic_load(&process->waits);
    if (!is_own || is_over || atomic_load(&kprof_the_launches.ended) || kprof_gate_is_own())
        return;
    bool is_within = thread.shared > 0 || thread.alone; /* a call, which has the gate */
    /* No other thread may replay managed memory. */
    if (kprof_batch_has_host() && !is_within && !kprof_idle_may_be_handler()) {
        bool was_own = thread.own_call, own = kprof_engine.device->target_set_own(true);
        thread.own_call = true;
        kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
        end_batch(kprof_batch_end, names[turn]);
        (void)kprof_engine.device->target_set_own(own);
        thread.own_call = was_own;
    }
    if (turn == KPROF_BEFORE_EXEC || (turn == KPROF_BEFORE_EXIT && !atomic_exchange(&process->ending, true)))
        kprof_idle_ask();
    if (turn == KPROF_BEFORE_EXEC)
        kprof_ending_before_exec();
}

/* The watching thread replays and writes what is open. A thread in the middle of a call goes on to its end, since the
 * watching thread, or the one that replays, may wait for that. */
int kprof_launch_take_signal(int number, const void *thread_state)
{
    const struct call_state *state = thread_state;
    const struct timespec pause = {0, SIGNAL_POLL_NS};
    number = kprof_ending_note(number);
    if (!atomic_load(&kprof_engine.process.armed) || !kprof_watch_has_unwritten())
        return number;
    atomic_store(&kprof_engine.process.ending, true);
    kprof_idle_rouse();
    if (state && (state->own_call || state->alone || state->shared > 0))
        return 0;
    while (kprof_watch_has_unwritten() && !kprof_ending_is_overdue()) {
        nanosleep(&pause, NULL);
        kprof_idle_rouse();
    }
    return number;
}

/* Its driver calls are not the application's. */
static void mark_own_thread(void)
{
    thread.own_call = true;
    (void)kprof_engine.device->target_set_own(true);
}

void kprof_launch_forget(void)
{
    kprof_launch_state *state = &kprof_the_launches;
    atomic_store(&state->forked, true);
    atomic_store(&state->settled, true);
}

void kprof_launch_prepare(void)
{
    atomic_store(&kprof_the_launches.ended, false);
    atomic_store(&kprof_the_launches.settled, kprof_engine.process.config.starts_unarmed);
    atomic_store(&kprof_engine.thread_begins, mark_own_thread);
    atomic_store(&kprof_the_range.ends, end_range);
    kprof_idle_start(kprof_watch_give_back);
}

/* CUPTI has threads for samples of instructions, which are to end before the process does. Not while another thread
 * replays, which may have had more time than a process that ends waits. */
static void end_instruction_samples(void)
{
    const bool may_be_there = kprof_engine.process.config.samples && !atomic_load(&kprof_the_gate.exclusive);
    if (!may_be_there || !kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    kprof_contexts_release();
    kprof_gate_leave_exclusive();
}

void kprof_launch_stop(void)
{
    kprof_idle_stop();
    atomic_store(&kprof_the_launches.ended, true);
    thread.own_call = true;
    bool own = kprof_engine.device->target_set_own(true);
    kprof_wait_allow(KPROF_HOLD_AT_END_NS);
    end_batch(kprof_batch_end_with_process, "the end of the process");
    kprof_gate_await_exclusive(KPROF_GATE_TIMEOUT_MS); /* another thread may be using CUPTI, which ends after this */
    end_instruction_samples();
    (void)kprof_engine.device->target_set_own(own);
    thread.own_call = false;
}

void kprof_launch_finish(void)
{
    kprof_nvtx_tell_missed();
    kprof_launch_stop();
    if (!kprof_gate_is_own()) /* else a signal handler exits, and its thread may be evaluating them */
        kprof_contexts_end_samples();
    kprof_nvtx_trace_open();
    kprof_utilization_end();
    kprof_trace_end();
    kprof_census_end();
    kprof_watch_write_end();
}

const kprof_target_hooks kprof_launch_hooks = {.enter = enter,
                                               .leave = leave,
                                               .driver_started = kprof_preload_start,
                                               .context_created = note_context,
                                               .context_ending = context_ending,
                                               .profiler_called = profiler_called,
                                               .node_made = kprof_choose_note_node};
