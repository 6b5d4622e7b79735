/* Asks the filter, once for each launch, in the order of launches. */
#include "inject/choose.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/batch.h"
#include "inject/deliver.h"
#include "inject/engine.h"
#include "inject/forward.h"
#include "inject/launch_state.h"
#include "inject/nvtx.h"
#include "inject/process.h"
#include "inject/stacks.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void write_seen(kprof_kernel *kernel)
{
    kprof_record record = {.type = KPROF_RECORD_SEEN};
    record.seen = (kprof_seen_record){kernel->record.kernel, atomic_load(&kernel->launches)};
    if (record.seen.launches > 0) /* else it may not have been announced yet */
        kprof_process_write(&record);
}

void kprof_choose_write_counts(void)
{
    kprof_kernels_visit(write_seen);
}

/* Write a count each time it has doubled, so that counts survive a process that is killed. */
void kprof_choose_count_of_kernel(kprof_counted *launch)
{
    launch->number = atomic_fetch_add(&launch->kernel->launches, 1) + 1;
    if ((launch->number & (launch->number - 1)) == 0)
        write_seen(launch->kernel);
}

kprof_counted kprof_choose_count(const kprof_call *call)
{
    kprof_counted launch = {.kernel = kprof_kernels_find(call, kprof_engine.process.filter, kprof_deliver_kernel)};
    launch.position = atomic_fetch_add(&kprof_engine.process.launches, 1);
    if (launch.kernel)
        kprof_choose_count_of_kernel(&launch);
    return launch;
}

void kprof_choose_describe(const kprof_call *call, const kprof_counted *launch, kprof_launch_record *record)
{
    record->launch = launch->position;
    record->kernel = launch->kernel->record.kernel;
    record->thread = syscall(SYS_gettid);
    record->start_unix_ns = kprof_unix_ns();
    record->mode = KPROF_REPLAY_NONE;
    record->nvtx = kprof_engine.process.config.nvtx ? kprof_nvtx_text() : "";
    kprof_engine.device->target_launch(call, record);
}

/* The call stack of the calling thread; in a backward pass of PyTorch, whose threads run no Python, that of the
 * operator in the forward pass, where NVTX ranges tell which. */
void kprof_choose_take_stack(kprof_launch_record *record)
{
    uint64_t sequence;
    if (kprof_engine.process.config.call_stack_type == 0)
        return;
    const uint32_t forward = kprof_nvtx_backward(&sequence) ? kprof_forward_find(sequence) : 0;
    record->stack = forward ? forward : kprof_launch_stack();
    record->stack_origin = forward ? KPROF_STACK_OF_FORWARD : KPROF_STACK_OF_LAUNCH;
}

/* The number that a node of a graph keeps: that of the stack, and this bit where the stack is of the forward pass. */
#define NOTE_OF_FORWARD (1u << 31)

uint32_t kprof_choose_note_node(void)
{
    kprof_launch_record made = {0};
    if (atomic_load(&kprof_engine.process.armed))
        kprof_choose_take_stack(&made);
    return made.stack | (made.stack > 0 && made.stack_origin == KPROF_STACK_OF_FORWARD ? NOTE_OF_FORWARD : 0);
}

/* The stack of the call that made the node; where it is not known, that of the graph's launch. */
void kprof_choose_take_node_stack(const kprof_graph_call *node, kprof_launch_record *record)
{
    const bool is_forward = node->note & NOTE_OF_FORWARD;
    if (node->note == 0)
        kprof_choose_take_stack(record);
    else
        record->stack = node->note & ~NOTE_OF_FORWARD;
    record->stack_origin = node->note == 0 ? KPROF_STACK_OF_GRAPH
                           : is_forward    ? KPROF_STACK_OF_FORWARD
                                           : KPROF_STACK_OF_CAPTURE;
}

/* A program may call cudaProfilerStop for another profiler's sake. */
static void tell_stopped(void)
{
    const bool was_asked_for = kprof_engine.process.config.filter.profiler_calls == KPROF_FROM_A_START_CALL;
    if (was_asked_for || atomic_exchange(&kprof_the_launches.told_stopped, true))
        return;
    kprof_log(KPROF_LOG_INFO,
              "process %d has called cudaProfilerStop: launches are not measured before it calls cudaProfilerStart; "
              "--disable-profiler-start-stop measures them",
              (int)kprof_engine.process.pid);
}

/* Contexts and streams, as bits, of launches that --kernel-id leaves out because of them. */
static struct {
    _Atomic uint64_t contexts, streams;
} misplaced;

static void note_place(const kprof_launch_record *record)
{
    if (record->context < 64)
        atomic_fetch_or_explicit(&misplaced.contexts, UINT64_C(1) << record->context, memory_order_relaxed);
    if (record->stream < 64)
        atomic_fetch_or_explicit(&misplaced.streams, UINT64_C(1) << record->stream, memory_order_relaxed);
}

/* "s 1, 7" of the bits 1 and 7 */
static void put_numbers(uint64_t bits, char *text, size_t size)
{
    size_t length = (size_t)snprintf(text, size, "%s", bits & (bits - 1) ? "s" : "");
    const char *before = " ";
    for (unsigned i = 0; i < 64 && length < size; i++)
        if (bits >> i & 1) {
            length += (size_t)snprintf(text + length, size - length, "%s%u", before, i);
            before = ", ";
        }
}

void kprof_choose_tell_places(void)
{
    char contexts[256], streams[256];
    const uint64_t seen = atomic_load(&misplaced.contexts);
    put_numbers(seen, contexts, sizeof contexts);
    put_numbers(atomic_load(&misplaced.streams), streams, sizeof streams);
    if (seen != 0 && atomic_load(&kprof_engine.process.matched) == 0)
        kprof_log(KPROF_LOG_WARNING,
                  "process %d launched kernels that --kernel-id names in context%s and stream%s, and not where it "
                  "asks for",
                  (int)kprof_engine.process.pid, contexts, streams);
}

/* Return the launch's number among those of its kernel where --kernel-id wants them; 0: it is in another place. */
static uint64_t number_launch(const kprof_call *call, const kprof_counted *launch, const kprof_device *device)
{
    const kprof_filter *filter = kprof_engine.process.filter;
    if (!kprof_filter_needs_place(filter))
        return launch->number;
    if (!launch->kernel || !launch->kernel->matches || !device)
        return 0;
    kprof_launch_record record = {0};
    kprof_engine.device->target_shape(call, &record);
    const kprof_filter_place place = {
        .device = device->record.device,
        .numbers = {[KPROF_PART_CONTEXT] = record.context, [KPROF_PART_STREAM] = record.stream},
        .is_named = {[KPROF_PART_CONTEXT] = kprof_nvtx_match_name(filter, KPROF_PART_CONTEXT, call->context),
                     [KPROF_PART_STREAM] = kprof_nvtx_match_name(filter, KPROF_PART_STREAM, call->stream)}};
    if (!kprof_filter_match_place(filter, &place)) {
        note_place(&record);
        return 0;
    }
    return atomic_fetch_add(&launch->kernel->placed, 1) + 1;
}

static bool is_wanted(const kprof_kernel *kernel)
{
    return kernel->matches &&
           (kprof_engine.process.config.census_top == 0 || atomic_load_explicit(&kernel->is_top, memory_order_relaxed));
}

/* Does the filter take no launch at present, whatever it is? */
static bool is_closed(const kprof_filter *filter)
{
    return kprof_filter_is_stopped(filter) || kprof_filter_is_between_steps(filter) || kprof_filter_exhausted(filter);
}

/* Is the launch, or the graph's node, made in functions of Python that the filter takes? */
static bool matches_stack(const kprof_filter *filter, const kprof_graph_call *node)
{
    if (!kprof_filter_needs_functions(filter, KPROF_PYTHON_FUNCTIONS) &&
        !kprof_filter_needs_functions(filter, KPROF_NATIVE_FUNCTIONS))
        return true;
    kprof_launch_record made = {0};
    if (node)
        kprof_choose_take_node_stack(node, &made);
    else
        kprof_choose_take_stack(&made);
    return kprof_launch_stack_matches(made.stack);
}

bool kprof_choose_launch(const kprof_call *call, const kprof_counted *launch, const kprof_device *device,
                         const kprof_graph_call *node)
{
    kprof_filter *filter = kprof_engine.process.filter;
    const uint64_t number = number_launch(call, launch, device);
    if (kprof_filter_is_stopped(filter))
        tell_stopped();
    if (kprof_filter_is_between_steps(filter))
        kprof_nvtx_note_outside(filter);
    if (!launch->kernel || !device || is_closed(filter))
        return false;
    bool matches = is_wanted(launch->kernel) && kprof_filter_match_invocation(filter, number) &&
                   kprof_filter_match_calls(filter) && (!kprof_filter_needs_nvtx(filter) || kprof_nvtx_match(filter)) &&
                   matches_stack(filter, node);
    kprof_filter_launch place = {.device = device->record.device, .kernel = launch->kernel->record.kernel};
    if (matches && kprof_filter_needs_shape(filter)) {
        kprof_launch_record record = {.device = place.device, .kernel = place.kernel};
        kprof_engine.device->target_shape(call, &record);
        place = kprof_kernel_place(&record);
    }
    return kprof_filter_take_launch(filter, matches, &place);
}

/* -c counts one launch of a sample: the one with the last pass. */
void kprof_choose_settle_sampled(const kprof_launch_record *record)
{
    const kprof_filter_launch place = kprof_kernel_place(record);
    if (kprof_batch_has_sampled())
        kprof_filter_take_another(kprof_engine.process.filter, &place);
}

/* A chosen launch was not measured. If it was put off, -c does not count it. */
void kprof_choose_write_unmeasured(kprof_launch_record *record, const char *obstacle)
{
    const kprof_filter_launch place = kprof_kernel_place(record);
    if (kprof_batch_has_put_off())
        kprof_filter_take_another(kprof_engine.process.filter, &place);
    kprof_deliver_launch(record, obstacle);
}

/* Count a range that has had a launch, and choose whether it is measured. */
bool kprof_choose_range(const kprof_counted *range, const kprof_device *device)
{
    kprof_filter *filter = kprof_engine.process.filter;
    if (kprof_filter_is_stopped(filter))
        tell_stopped();
    if (is_closed(filter) || !kprof_filter_match_calls(filter))
        return false;
    const kprof_filter_launch place = {.device = device->record.device, .kernel = range->kernel->record.kernel};
    return kprof_filter_take_launch(filter, true, &place);
}
