/* What is measured of the instructions of launches in a batch, and what happens where that fails: the launches keep
 * their values, and each tells why it has nothing of the kind. The engine runs on the simulated machine. */
#define INSTRUCTIONS 2
#include "engine_test.h"

#include "inject/batch/stages.h"
#include "inject/contexts.h"
#include "inject/early.h"
#include "inject/launch.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/watch.h"
#include "sim/clock.h"
#include "test.h"

#include <sys/wait.h>

/* What goes wrong until the test is over. */
static struct {
    kprof_status enable, read, arm, start, sample, pass;
    bool cannot_disarm, captures;
    unsigned restores; /* the last of so many goes wrong; 0: none does */
} faults;

static struct {
    unsigned enabled, armed, started, passes;
    uint32_t periods[8]; /* of the samples that were started, each once in a row */
    unsigned period_count;
    uint32_t period;
    bool looks_everywhere; /* as memory is put back */
} seen;

static int launch_s; /* the next operations take so long, one after the other */

static kprof_status enable(kprof_instructions *s)
{
    seen.enabled++;
    return faults.enable == KPROF_OK ? sim_device.instructions_enable(s) : kprof_fail(faults.enable, "not enabled");
}

static kprof_status read_counters(kprof_instructions *s, kprof_instruction_data *out)
{
    return faults.read == KPROF_OK ? sim_device.instructions_read(s, out) : kprof_fail(faults.read, "not read");
}

static kprof_status arm(kprof_pc_samples *s, uint32_t period)
{
    seen.armed++;
    seen.period = period;
    return faults.arm == KPROF_OK ? sim_device.pc_samples_arm(s, period) : kprof_fail(faults.arm, "not allowed");
}

static kprof_status disarm(kprof_pc_samples *s)
{
    return faults.cannot_disarm ? kprof_fail(KPROF_INTERNAL, "not disarmed") : sim_device.pc_samples_disarm(s);
}

static kprof_status start(kprof_pc_samples *s)
{
    seen.started++;
    if (seen.period_count == 0 || seen.periods[seen.period_count - 1] != seen.period)
        seen.periods[seen.period_count++ % 8] = seen.period;
    return faults.start == KPROF_OK ? sim_device.pc_samples_start(s) : kprof_fail(faults.start, "not started");
}

static kprof_status read_samples(kprof_pc_samples *s, kprof_instruction_data *out)
{
    return faults.sample == KPROF_OK ? sim_device.pc_samples_read(s, out)
                                     : kprof_fail(faults.sample, "the buffer is full");
}

static kprof_status start_pass(kprof_profiler *profiler)
{
    seen.passes++;
    return faults.pass == KPROF_OK ? sim_device.profiler_start(profiler) : kprof_fail(faults.pass, "no pass");
}

static kprof_status run_operation(const kprof_operation *operation, kprof_snapshot *snapshot)
{
    sim_clock_advance_s(launch_s);
    launch_s = 0;
    return sim_device.operation_run(operation, snapshot);
}

static kprof_status restore_start(kprof_snapshot *snapshot, bool everywhere)
{
    seen.looks_everywhere = everywhere;
    return faults.restores > 0 && --faults.restores == 0 ? kprof_fail(KPROF_UNSUPPORTED, "not put back")
                                                         : sim_device.snapshot_restore_start(snapshot, everywhere);
}

/* Another thread begins a capture as this one is about to enter the gate. */
static bool is_capturing(void)
{
    return is_capturing_to_others() || (faults.captures && kprof_gate_is_own());
}

static int start_faulty(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.instructions_enable = enable;
    device.instructions_read = read_counters;
    device.pc_samples_arm = arm;
    device.pc_samples_disarm = disarm;
    device.pc_samples_start = start;
    device.pc_samples_read = read_samples;
    device.profiler_start = start_pass;
    device.target_capturing = is_capturing;
    device.operation_run = run_operation;
    device.snapshot_restore_start = restore_start;
    return start_engine_on(&device);
}

static int mend(void **state)
{
    close_batch();
    memset(&faults, 0, sizeof faults);
    memset(&seen, 0, sizeof seen);
    sim.contexts[0].ran_unarmed = false;
    kprof_engine.process.config.samples = true;
    kprof_engine.process.config.sampling_period = 0;
    return 0;
}

/* The kernel is known to end by itself. */
static int begin_alike(void **state)
{
    (void)mend(state);
    last_tag += 100; /* no launch before has one of these */
    sim.few_shapes = true;
    kprof_engine.process.config.replay_choice = KPROF_MULTIPLEX_ALL;
    kprof_engine.process.config.sampling_period = 10;
    kprof_engine.process.config.multiplex_samples = 1;
    return 0;
}

static int end_alike(void **state)
{
    end_samples();
    (void)mend(state);
    kprof_contexts_change_plan(); /* groups are forgotten */
    sim.few_shapes = false;
    kprof_engine.process.config.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    kprof_engine.process.config.multiplex_samples = KPROF_MULTIPLEX_SAMPLES;
    return 0;
}

/* What a launch has of its instructions: of counters, or of samples. */
typedef struct instructions {
    unsigned records, functions;
    double sums[INSTRUCTIONS];
    uint64_t period_cycles;
    char reason[256];
    bool has_launch, has_code; /* told before */
} instructions;

static void note_instructions(const kprof_instructions_record *record, instructions *out)
{
    const size_t width = 1 + (size_t)record->name_count;
    out->records++;
    out->functions += record->value_count > 0;
    out->period_cycles = record->period_cycles;
    snprintf(out->reason, sizeof out->reason, "%s", record->reason);
    for (uint32_t i = 0; i < record->value_count; i++)
        if (i % width > 0 && i % width <= INSTRUCTIONS)
            out->sums[i % width - 1] += record->values[i];
}

static instructions look_up_instructions(unsigned tag, bool sampled)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    instructions found = {0};
    uint64_t position = UINT64_MAX, code = 0;
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        if (record.type == KPROF_RECORD_LAUNCH && record.launch.max_blocks_per_sm == tag)
            position = record.launch.launch;
        if (record.type == KPROF_RECORD_CODE)
            code = record.code.crc;
        if (record.type != KPROF_RECORD_INSTRUCTIONS || record.instructions.launch != position ||
            record.instructions.sampled != sampled)
            continue;
        note_instructions(&record.instructions, &found);
        found.has_launch = true;
        found.has_code = record.instructions.crc == code;
    }
    kprof_spool_reader_close(reader);
    return found;
}

static void assert_has(unsigned tag, bool sampled)
{
    const instructions found = look_up_instructions(tag, sampled);
    if (found.functions != 2 || found.records != 2 || found.reason[0])
        fail_msg("%u of %u records have instructions, and the reason is \"%s\"", found.functions, found.records,
                 found.reason);
    assert_true(found.has_code);
    for (size_t i = 0; i < INSTRUCTIONS; i++)
        assert_true(found.sums[i] ==
                    (sampled ? sim_samples(sim.signatures[tag], i) : sim_value(sim.signatures[tag], i)));
}

static void assert_lacks(unsigned tag, bool sampled, const char *reason)
{
    const instructions found = look_up_instructions(tag, sampled);
    if (found.records != 1 || found.functions != 0 || !strstr(found.reason, reason))
        fail_msg("%u records, %u functions, and the reason is \"%s\"; not \"%s\"", found.records, found.functions,
                 found.reason, reason);
}

/* The first test: the context is new. Another process of the run that wants the counters gets them, though this one
 * launches nothing that is chosen. */
TEST_WITH(early_samples_are_left_to_others, mend, NULL)
{
    kprof_filter *before = kprof_engine.process.filter, *later;
    int status = -1;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_skip = 1000000}, &later), KPROF_OK);
    kprof_engine.process.filter = later;
    sim.tells_contexts = true;
    sim.hooks->context_created(&sim.contexts[0]);
    (void)launch(SIM_ADD);
    assert_true(kprof_early_is_there());
    atomic_store(&others_may_close, true);
    pid_t pid = fork();
    if (pid == 0)
        _exit(kprof_lock_take(60000, NULL) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    atomic_store(&others_may_close, false);
    assert_false(kprof_early_is_there());
    assert_null(sim.contexts[0].sampling);
    kprof_engine.process.filter = before;
    kprof_filter_free(later);
    sim.hooks->context_ending(&sim.contexts[0]);
    sim.contexts[0].loaded = sim.contexts[0].loaded_unarmed = 0; /* it is a new one */
}

/* Early samples stay where the work of their context does not end, and a window of another one is closed in a pause. */
TEST_WITH(a_window_beside_early_samples_ends_in_a_pause, mend, NULL)
{
    sim_step step = {.op = SIM_ALLOC, .stream = 2, .a = 9};
    (void)begin_alike(state);
    sim.tells_contexts = true;
    sim.hooks->context_created(&sim.contexts[0]);
    close_batch();
    sim.hooks->context_created(&sim.contexts[1]);
    hold(0);
    do_call(step);
    step = (sim_step){.op = SIM_LAUNCH, .kernel = SIM_ADD, .stream = 2, .a = 9, .b = 9};
    for (int i = 0; i < 20 && !kprof_batch_is_open(); i++) {
        step.tag = last_tag += 2;
        do_call(step);
    }
    assert_true(kprof_batch_is_open() && kprof_early_is_there());
    atomic_store(&others_may_close, true);
    for (int i = 0; i < 100000 && kprof_batch_is_open(); i++) /* the engine's own thread looks four times a second */
        usleep(1000);
    assert_false(kprof_batch_is_open());
    atomic_store(&others_may_close, false);
    let_go(0);
    (void)end_alike(state);
    sim.hooks->context_ending(&sim.contexts[1]);
    sim.hooks->context_ending(&sim.contexts[0]);
}

/* Here it comes to an error, say, before the first launch that is chosen. */
TEST_WITH(early_samples_end_where_nothing_is_measured_any_more, mend, NULL)
{
    sim.tells_contexts = true;
    sim.hooks->context_created(&sim.contexts[0]);
    close_batch();
    assert_true(kprof_early_is_there());
    atomic_store(&kprof_engine.process.armed, false);
    for (int i = 0; i < 100000 && kprof_early_is_there(); i++) { /* the engine's own thread may have the gate */
        (void)kprof_watch_give_back(1);
        usleep(1000);
    }
    assert_false(kprof_early_is_there());
    assert_null(sim.contexts[0].sampling);
    atomic_store(&kprof_engine.process.armed, true);
    sim.hooks->context_ending(&sim.contexts[0]);
}

/* Before a launch is chosen, the first call in the process' first context enables samples, and kernels that come then
 * have some later. */
TEST_WITH(what_is_loaded_before_has_samples, mend, NULL)
{
    kprof_filter *before = kprof_engine.process.filter, *later;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.launch_skip = 2}, &later), KPROF_OK);
    kprof_engine.process.filter = later;
    sim.tells_contexts = true;
    sim.hooks->context_created(&sim.contexts[0]);
    assert_null(sim.contexts[0].sampling);
    faults.captures = true;
    close_batch();
    assert_int_equal(seen.armed, 0);
    faults.captures = false;
    (void)launch(SIM_ADD);
    assert_int_equal(seen.armed, 1);
    assert_non_null(sim.contexts[0].sampling);
    (void)launch(SIM_SCALE);
    assert_int_equal(seen.armed, 1);
    unsigned tag = launch(SIM_ADD);
    close_batch();
    kprof_engine.process.filter = before;
    kprof_filter_free(later);
    assert_has(tag, true);
    assert_has(tag, false);
}

TEST_WITH(instructions_add_up_to_the_launch, mend, NULL)
{
    do_call((sim_step){.op = SIM_ALLOC, .a = SPARE_SLOT});
    unsigned first = launch(SIM_ADD), second = launch(SIM_COUNT);
    do_call((sim_step){.op = SIM_MEMSET, .a = SPARE_SLOT});
    unsigned third = launch_on(SIM_ADD, SPARE_SLOT);
    close_batch();
    for (unsigned tag = first; tag <= third; tag++) {
        assert_measured(tag);
        assert_has(tag, false);
        assert_has(tag, true);
    }
    assert_true(second < third && seen.enabled == 1);
    /* It is as it was before the first pass of the next batch. */
    assert_true(kprof_contexts_find(&sim.contexts[0])->pc_samples && sim.contexts[0].sampling);
    assert_null(sim.contexts[0].counting);
}

TEST_WITH(counters_that_cannot_be_enabled, mend, NULL)
{
    faults.enable = KPROF_UNSUPPORTED;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_has(tag, true);
    assert_lacks(tag, false, "not enabled");
    faults.enable = KPROF_OK;
    tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, false);
}

TEST_WITH(counters_that_cannot_be_read, mend, NULL)
{
    faults.read = KPROF_INTERNAL;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, false, "not read");
    assert_null(sim.contexts[0].counting);
}

TEST_WITH(samples_that_are_not_allowed, mend, NULL)
{
    faults.arm = KPROF_NO_PERMISSION;
    kprof_engine.process.config.sampling_period = 20; /* not the one that they are enabled with */
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_has(tag, false);
    assert_lacks(tag, true, "not allowed");
    assert_int_equal(seen.started, 0);
}

TEST_WITH(samples_that_cannot_be_started, mend, NULL)
{
    faults.start = KPROF_INTERNAL;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, true, "not started");
    assert_has(tag, false);
}

TEST_WITH(samples_that_cannot_be_read, mend, NULL)
{
    faults.sample = KPROF_NOT_COLLECTED;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_measured(tag);
    assert_lacks(tag, true, "the buffer is full");
    assert_has(tag, false);
}

/* Counters of instructions need no permission. */
TEST_WITH(counters_of_the_launch_that_are_not_allowed, mend, NULL)
{
    faults.pass = KPROF_NO_PERMISSION;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_unmeasured(tag, "no pass");
    assert_has(tag, false);
    assert_has(tag, true);
}

/* Nobody knows what memory has then: before the next replay all of it is compared. */
TEST_WITH(memory_that_was_not_put_back, mend, NULL)
{
    faults.restores = 3;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_unmeasured(tag, "not put back");
    assert_int_equal(seen.passes, 0);
    assert_true(seen.looks_everywhere);
    assert_has(tag, false);
    assert_has(tag, true);
}

TEST_WITH(the_period_follows_from_the_time, mend, NULL)
{
    unsigned tag = launch(SIM_ADD);
    launch_s = 2; /* in the replay that tells how long launches take */
    close_batch();
    assert_has(tag, true);
    /* 2 s of 132 SMs at 1.98 GHz are 522,720,000,000 cycles: 2^23 of them are the first to make less than 100,000. */
    assert_int_equal(seen.period_count, 1);
    assert_true(look_up_instructions(tag, true).period_cycles == UINT64_C(1) << 23);
    kprof_engine.process.config.sampling_period = 11;
    tag = launch(SIM_ADD);
    close_batch();
    assert_true(look_up_instructions(tag, true).period_cycles == UINT64_C(1) << 11);
}

/* Launches that are much shorter have a replay with a period of their own. */
TEST_WITH(short_launches_have_a_shorter_period, mend, NULL)
{
    unsigned slow = launch(SIM_ADD), fast = launch(SIM_ADD);
    launch_s = 2;
    close_batch();
    assert_has(slow, true);
    assert_has(fast, true);
    assert_int_equal(seen.period_count, 2);
    assert_true(seen.periods[0] == 23 && seen.periods[1] < 23 - 6);
}

/* Unless the user allows no further replay: then they have that of the longest launch. */
TEST_WITH(short_launches_share_the_only_replay, mend, NULL)
{
    kprof_engine.process.config.sampling_passes = 1;
    unsigned slow = launch(SIM_ADD), fast = launch(SIM_ADD);
    launch_s = 2;
    close_batch();
    kprof_engine.process.config.sampling_passes = 0;
    assert_has(slow, true);
    assert_int_equal(seen.period_count, 1);
    assert_true(look_up_instructions(fast, true).period_cycles == UINT64_C(1) << 23);
}

/* Launches that are not repeated */

/* Those of one shape have tags that are all even, or all odd. */
static unsigned launch_alike(sim_step step)
{
    step.op = SIM_LAUNCH;
    step.kernel = step.kernel ? step.kernel : SIM_ADD;
    step.a = step.b = SLOT;
    step.tag = last_tag += 2;
    (void)sim_call(&step, NULL);
    return last_tag;
}

static kprof_launch_record find_launch(unsigned tag, char *reason, size_t size)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    kprof_launch_record found = {0};
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD)
        if (record.type == KPROF_RECORD_LAUNCH && record.launch.max_blocks_per_sm == tag) {
            found = record.launch;
            snprintf(reason, size, "%s", record.launch.reason);
        }
    kprof_spool_reader_close(reader);
    return found;
}

static void assert_told(unsigned tag, uint32_t passes, const char *why)
{
    char reason[512] = "it is not told of";
    const kprof_launch_record found = find_launch(tag, reason, sizeof reason);
    if (found.pass_count != passes || !strstr(reason, why) || (!*why && *reason))
        fail_msg("%u passes, and the reason is \"%s\"; not %u, \"%s\"", found.pass_count, reason, passes, why);
}

/* Samples come first, then counters, then the passes, and all are of launches of one kernel and shape. */
TEST_WITH(each_kind_is_a_pass_of_a_sample, begin_alike, end_alike)
{
    const unsigned sampled = launch_alike((sim_step){0}), counted = launch_alike((sim_step){0});
    const unsigned first = launch_alike((sim_step){0}), second = launch_alike((sim_step){0});
    end_samples();
    assert_told(sampled, 1, "multiplexed: its instructions were sampled");
    assert_has(sampled, true);
    assert_lacks(sampled, false, "instructions are counted in one launch");
    assert_told(counted, 1, "multiplexed: its instructions were counted");
    assert_has(counted, false);
    assert_lacks(counted, true, "and sampled in another");
    assert_told(first, PASSES, "");
    assert_told(second, 1, "its counters are part of the values");
    assert_int_equal(seen.passes, PASSES);
    assert_null(sim.contexts[0].counting);
    seen.enabled = seen.started = 0;
    for (int i = 0; i < 4; i++) /* as many as were asked for are there */
        (void)launch_alike((sim_step){0});
    assert_true(seen.enabled == 0 && seen.started == 0);
}

static unsigned launch_other(void)
{
    const sim_step step = {.op = SIM_LAUNCH, .kernel = SIM_ADD, .a = SLOT, .b = SLOT, .tag = last_tag + 1};
    last_tag += 2;
    do_call(step);
    return step.tag;
}

/* A sample that lacks passes would be lost. */
TEST_WITH(instructions_wait_for_open_samples, begin_alike, end_alike)
{
    for (int i = 0; i < 3; i++)
        (void)launch_alike((sim_step){0});
    const unsigned first = launch_other();
    (void)launch_alike((sim_step){0});
    const unsigned second = launch_other();
    assert_int_equal(seen.started, 1);
    const unsigned third = launch_other(); /* the samples of both shapes have all passes */
    assert_has(third, true);
    end_samples();
    assert_told(first, PASSES, "");
    assert_told(second, 1, "its counters are part of the values");
}

/* The next launch takes its place. */
TEST_WITH(a_launch_that_the_driver_refuses, begin_alike, end_alike)
{
    const unsigned refused = launch_alike((sim_step){.refused = true});
    assert_told(refused, 0, "the driver refused the launch");
    assert_int_equal(look_up_instructions(refused, true).functions, 0);
    assert_has(launch_alike((sim_step){0}), true);
}

TEST_WITH(samples_of_own_runs_that_are_not_allowed, begin_alike, end_alike)
{
    faults.arm = KPROF_NO_PERMISSION;
    for (int i = 0; i < 3; i++)
        assert_lacks(launch_alike((sim_step){0}), true, "not allowed");
    const unsigned counted = launch_alike((sim_step){0});
    assert_has(counted, false);
    assert_int_equal(seen.started, 0);
}

TEST_WITH(counters_of_own_runs_that_cannot_be_read, begin_alike, end_alike)
{
    (void)launch_alike((sim_step){0});
    faults.read = KPROF_INTERNAL;
    const unsigned tag = launch_alike((sim_step){0});
    assert_told(tag, 1, "its instructions were counted");
    assert_lacks(tag, false, "not read");
    assert_null(sim.contexts[0].counting);
}

/* A launch that has few samples is sampled again, more often. */
TEST_WITH(the_period_of_own_runs_follows_from_the_samples, begin_alike, end_alike)
{
    kprof_engine.process.config.sampling_period = 0;
    uint64_t before = UINT64_MAX;
    unsigned tag = 0;
    for (int i = 0; i < 2; i++) {
        tag = launch_alike((sim_step){0});
        assert_true(look_up_instructions(tag, true).period_cycles < before);
        before = look_up_instructions(tag, true).period_cycles;
        double samples = 0;
        for (unsigned k = 0; k < SIM_REASONS; k++)
            samples += k != 1 ? sim_samples(sim.signatures[tag], k) : 0; /* that of warps that were not issued */
        if (samples >= 1000)
            break;
    }
    assert_has(tag, true);
}

/* It waits for what the host does, though its kernel has ended by itself before. Once it ends, it has what it has. */
TEST_WITH(a_launch_that_goes_on, begin_alike, end_alike)
{
    hold(0);
    const unsigned waits = launch_alike((sim_step){0});
    let_go(0);
    close_when_ended();
    const unsigned next = launch_alike((sim_step){0});
    assert_true(look_up_instructions(waits, true).records > 0);
    assert_has(next, look_up_instructions(waits, true).functions == 0);
}

TEST_WITH(launches_that_cannot_be_repeated_are_measured_so, begin_alike, end_alike)
{
    kprof_engine.process.config.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    const unsigned tag = launch_alike((sim_step){.uncopyable = true});
    assert_has(tag, true);
}

TEST_WITH(what_is_not_asked_for_is_not_told, mend, NULL)
{
    kprof_engine.process.config.samples = false;
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, false);
    assert_int_equal(look_up_instructions(tag, true).records, 0);
    assert_int_equal(seen.started, 0);
}

TEST_WITH(the_cubin_is_a_file_of_the_session, mend, NULL)
{
    char path[sizeof folder + 64], content[64] = "";
    unsigned tag = launch(SIM_ADD);
    close_batch();
    assert_has(tag, false);
    snprintf(path, sizeof path, "%s/%d-0.cubin", folder, (int)getpid());
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(content, 1, sizeof content - 1, file) > 0);
    fclose(file);
    assert_string_equal(content, "the code of a module (simulated)");
}

static unsigned launch_graph(void)
{
    do_call((sim_step){.op = SIM_GRAPH_LAUNCH, .a = SLOT, .b = SLOT, .tag = ++last_tag});
    return last_tag;
}

/* Whether or not there are launches beside it, whose instructions are measured. */
TEST_WITH(graphs_as_a_whole_tell_why_they_have_none, mend, NULL)
{
    kprof_engine.process.config.graph_profiling = KPROF_GRAPH_WHOLE;
    for (int i = 0; i < 2; i++) {
        const unsigned tag = launch_graph(), other = i > 0 ? launch(SIM_ADD) : 0;
        close_batch();
        assert_measured(tag);
        assert_lacks(tag, false, "of a graph");
        assert_lacks(tag, true, "of a graph");
        if (other)
            assert_has(other, true);
    }
    kprof_engine.process.config.graph_profiling = KPROF_GRAPH_NODES;
}

/* A pass would end the process. The last test: nothing is measured any more. */
TEST_WITH(samples_that_cannot_be_ended, mend, NULL)
{
    close_batch();
    unsigned tag = launch(SIM_ADD);
    faults.cannot_disarm = true;
    seen.passes = seen.enabled = 0;
    close_batch();
    assert_int_equal(seen.passes, 0);
    assert_false(atomic_load(&kprof_engine.process.armed));
    assert_unmeasured(tag, "");
    assert_has(tag, true);
    assert_int_equal(seen.enabled, 0); /* nor are kernels patched any more */
    assert_lacks(tag, false, "");
    faults.cannot_disarm = false;
    assert_non_null(sim.contexts[0].sampling);
    kprof_launch_stop(); /* as the process ends: CUPTI's threads are to end before */
    assert_null(sim.contexts[0].sampling);
}

AROUND_ALL(start_faulty, remove_folder)
