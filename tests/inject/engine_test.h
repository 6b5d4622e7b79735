/* Helpers of the tests of the engine as a whole: they start it over the simulated machine, launch, and look at the
 * report. There are two metrics, one for each pass, where the test does not define fewer PASSES. REPLAY_CHOICE tells
 * what is repeated, GRAPHS what is a launch of a graph, INSTRUCTIONS how much is counted of each instruction, and
 * TIMELINES the passes of samples over time. */
#pragma once

#include "core/config.h"
#include "inject/batch.h"
#include "inject/contexts.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/life.h"
#include "inject/wait.h"
#include "sim/backend.h"
#include "sim/device.h"
#include "spool/spool.h"
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PASSES
#define PASSES 2
#endif
#ifndef GRAPHS
#define GRAPHS KPROF_GRAPH_NODES
#endif
#ifndef REPLAY_CHOICE
#define REPLAY_CHOICE KPROF_REPLAY_WHERE_PROVED
#endif
#ifndef SECOND_METRIC
#define SECOND_METRIC "m1"
#endif
#define METRICS    2
#define SLOT       2 /* memory for the device alone, of the first context */
#define SPARE_SLOT 4 /* the same */
#define NO_SLOT    3 /* nothing is there */

static pthread_t own_thread; /* that runs the tests */
static atomic_bool others_may_close;

/* To the thread that watches for pauses, which has the gate, a stream is always being captured: a pause of the test
 * closes no batch. */
static inline bool is_capturing_to_others(void)
{
    const bool is_other = !pthread_equal(pthread_self(), own_thread);
    return (is_other && kprof_gate_is_own() && !atomic_load(&others_may_close)) || sim_device.target_capturing();
}

static char folder[] = "/tmp/kprof-engine-XXXXXX";
static unsigned last_tag;

/* The values of one launch. */
typedef struct report {
    unsigned count;  /* how often it is reported */
    unsigned values; /* metrics that have one */
    char reason[512];
} report;

static inline void save_config(void)
{
    uint8_t image[4] = {0};
    uint32_t last_passes[] = {0, PASSES - 1};
    uint32_t patched[] = {0, 0};
    kprof_chip_metrics chip = {.chip = "GH100", .last_passes = last_passes, .patched = patched, .pass_count = PASSES};
    kprof_config config = {.chips = &chip,
                           .chip_count = 1,
                           .cache_control = KPROF_CACHE_FLUSH_NONE,
                           .witness_control = KPROF_WITNESSES_AUTO,
                           .graph_profiling = GRAPHS,
                           .replay_choice = REPLAY_CHOICE,
                           .follow_children = true,
                           .multiplex_samples = KPROF_MULTIPLEX_SAMPLES};
    for (unsigned i = 0; i < KPROF_IMAGES; i++)
        chip.images[i] = (kprof_chip_image){image, sizeof image};
    assert_true(kprof_strlist_add(&chip.metrics, "m0") && kprof_strlist_add(&chip.metrics, SECOND_METRIC));
#ifdef INSTRUCTIONS
    for (unsigned i = 0; i < INSTRUCTIONS; i++)
        assert_true(kprof_strlist_add(&config.instruction_metrics, i == 0 ? "i0" : "i1"));
    config.samples = true;
#endif
#ifdef TIMELINES
    kprof_chip_timeline timelines[TIMELINES] = {0};
    char *sampled[] = {(char *)"activity", (char *)"t0"};
    for (unsigned i = 0; i < TIMELINES; i++)
        timelines[i] = (kprof_chip_timeline){{sampled, 2, 2}, {image, sizeof image}};
    chip.timelines = timelines;
    chip.timeline_count = TIMELINES;
#endif
    assert_true(kprof_strlist_add(&chip.proof, "sectors of the host"));
    assert_true(kprof_strlist_add(&chip.proof, "sectors of peers"));
    assert_true(kprof_strlist_add(&chip.proof, "sectors read of the host"));
    assert_int_equal(kprof_config_save(&config, folder), KPROF_OK);
    kprof_strlist_free(&config.instruction_metrics);
    kprof_strlist_free(&chip.metrics);
    kprof_strlist_free(&chip.proof);
}

/* On the simulated machine, or a copy of it with functions of the test's own. */
static inline int start_engine_on(const kprof_device_ops *device)
{
    own_thread = pthread_self();
    assert_non_null(mkdtemp(folder));
    save_config();
    setenv(KPROF_SESSION_ENV, folder, 1);
    sim.capacity = 64;
    sim.second_chip = "GH100";
    kprof_life_begin(device);
    sim_reset(1);
    sim.hooked = true;
    sim_call(&(sim_step){.op = SIM_ALLOC, .a = SLOT}, NULL);
    return atomic_load(&kprof_engine.process.armed) ? 0 : -1;
}

/* Group set-up and tear-down. */
static inline int start_engine(void **state)
{
    static kprof_device_ops device;
    device = sim_device;
    device.target_capturing = is_capturing_to_others;
    return start_engine_on(&device);
}

static inline int remove_folder(void **state)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* Launch a kernel on memory of slot `a` too; the launch's number. */
static inline unsigned launch_on(sim_kernel kernel, unsigned a)
{
    sim_step step = {.op = SIM_LAUNCH, .kernel = kernel, .a = a, .b = SLOT, .tag = ++last_tag};
    assert_int_equal(sim_call(&step, NULL), 0);
    return last_tag;
}

static inline unsigned launch(sim_kernel kernel)
{
    return launch_on(kernel, SLOT);
}

static inline void do_call(sim_step step)
{
    assert_int_equal(sim_call(&step, NULL), 0);
}

/* By a call that no batch stays open for. */
static inline void close_batch(void)
{
    do_call((sim_step){.op = SIM_UNMAP, .a = NO_SLOT});
}

/* The same, where the call can wait for it: false when the batch is sealed. */
static inline bool try_to_close(void)
{
    assert_true(kprof_gate_enter_exclusive(1000));
    kprof_wait_allow(kprof_engine.waits.hold_ns);
    bool is_closed = kprof_batch_close("a test");
    kprof_gate_leave_exclusive();
    return is_closed;
}

/* The work that was waited for in vain has ended, or is about to: let the engine's threads find out. */
static inline void await_work(void)
{
    for (unsigned i = 0; i < SIM_CONTEXTS; i++)
        while (kprof_wait_goes_on(&sim.contexts[i]))
            usleep(1000);
}

/* A call finds the work of a sealed batch to have ended: the next one, unless the engine's thread that looks is late.
 */
static inline void close_when_ended(void)
{
    for (unsigned i = 0; i < 1000 && kprof_batch_is_open(); i++)
        do_call((sim_step){.op = SIM_QUERY});
    assert_false(kprof_batch_is_open());
}

/* A stream waits for what the host does later. */
static inline void hold(unsigned stream)
{
    sim.holds = 1;
    assert_int_equal(sim_call(&(sim_step){.op = SIM_HOLD, .stream = stream, .value = 1}, NULL), 0);
}

static inline void let_go(unsigned stream)
{
    assert_int_equal(sim_call(&(sim_step){.op = SIM_RELEASE, .stream = stream}, NULL), 0);
    await_work();
}

/* Samples that lack passes, as each launch here has a shape of its own, are told of as they are. */
static inline void end_samples(void)
{
    assert_true(kprof_gate_enter_exclusive(1000));
    kprof_wait_allow(SIM_LONG_HOLD_NS);
    assert_true(kprof_batch_close("a test"));
    kprof_contexts_end_samples();
    kprof_gate_leave_exclusive();
}

static inline void note_report(const kprof_launch_record *launch, report *out)
{
    out->count++;
    out->values = 0;
    for (uint32_t i = 0; i < launch->value_count; i++)
        out->values += !isnan(launch->values[i]);
    snprintf(out->reason, sizeof out->reason, "%s", launch->reason);
}

/* What the engine has written so far; the caller closes it. */
static inline kprof_spool_reader *open_spool(void)
{
    char path[sizeof folder + 64];
    kprof_spool_reader *reader;
    snprintf(path, sizeof path, "%s/%d-0.spool", folder, (int)getpid());
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, path, &reader), KPROF_OK);
    return reader;
}

static inline report look_up(unsigned tag)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    report found = {0};
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD)
        if (record.type == KPROF_RECORD_LAUNCH && record.launch.grid[0] == tag)
            note_report(&record.launch, &found);
    kprof_spool_reader_close(reader);
    return found;
}

static inline void assert_report(unsigned tag, unsigned values, const char *reason)
{
    report found = look_up(tag);
    assert_int_equal(found.count, 1);
    if (found.values != values || !strstr(found.reason, reason))
        fail_msg("%u values, and the reason is \"%s\"; not %u, and \"%s\"", found.values, found.reason, values, reason);
}

static inline void assert_unmeasured(unsigned tag, const char *why)
{
    assert_report(tag, 0, why);
}

/* In a single pass. */
static inline void assert_measured_once(unsigned tag, const char *why)
{
    end_samples();
    assert_report(tag, 1, why);
}

/* It is in the open batch. */
static inline void assert_pending(unsigned tag)
{
    report found = look_up(tag);
    if (found.count > 0)
        fail_msg("it is reported with %u values and the reason \"%s\"", found.values, found.reason);
}

static inline void assert_measured(unsigned tag)
{
    assert_report(tag, METRICS, "");
    assert_string_equal(look_up(tag).reason, "");
}
