/* Before memory is saved, kprof waits for the work of every context but the measured one. And one context at a time has
 * the counters. */
#include "inject/contexts.h"
#include "inject/early.h"
#include "inject/engine.h"
#include "inject/multiplex.h"
#include "inject/process.h"
#include "inject/samples.h"
#include "inject/wait.h"

#include "cupti/target.h"
#include "test.h"

#include <string.h>

static char places[20];
static unsigned waits[sizeof places]; /* for each context */
static void *late;                    /* its work does not end */
static void *broken;                  /* it is in error */
static unsigned opened, given_back;   /* how often counters were */
static bool exits;                    /* the application, by a signal handler within a wait */
static uint32_t device;               /* of the contexts that are opened */
static kprof_status open_status;
static void *entered;            /* NULL: the thread has its own context */
static bool released;            /* since the profiler was opened */
static unsigned popped, stopped; /* how often a range and a pass were ended */

/* In place of the engine's and of CUPTI's. */
kprof_status kprof_wait_for_context(void *context)
{
    waits[(char *)context - places]++;
    if (exits) {
        kprof_contexts_release(); /* samples of instructions end */
        kprof_contexts_forget(context, false);
    }
    if (context == late)
        return KPROF_NOT_COLLECTED;
    return context == broken ? KPROF_INTERNAL : KPROF_OK;
}

/* No context has samples early. */
void kprof_early_note(void *context) {}

kprof_pc_samples *kprof_early_take(const void *context)
{
    return NULL;
}

void kprof_early_leave_to(const void *context) {}

bool kprof_early_is_there(void)
{
    return false;
}

void kprof_early_end(void) {}

void kprof_early_forget(const void *context) {}

static kprof_status target_current_device(uint32_t *out)
{
    *out = device;
    return KPROF_OK;
}

static bool target_enter_context(void *context)
{
    assert_null(entered);
    entered = context;
    return true;
}

static void target_leave_context(void)
{
    entered = NULL;
}

static kprof_status profiler_open(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    *out = NULL;
    opened++;
    released = false;
    return open_status;
}

static void profiler_release(kprof_profiler *profiler)
{
    assert_non_null(entered);
    given_back++;
    released = true;
}

static void profiler_close(kprof_profiler *profiler) {}

void kprof_samples_end(kprof_samples *samples) {}

void kprof_samples_free(kprof_samples *samples) {}

static kprof_status profiler_pop(kprof_profiler *profiler)
{
    assert_non_null(entered);
    popped++;
    return KPROF_OK;
}

static kprof_status profiler_stop(kprof_profiler *profiler, bool *more)
{
    assert_non_null(entered);
    *more = true;
    stopped++;
    return KPROF_OK;
}

const char *kprof_process_reason(kprof_status status)
{
    return kprof_status_message(status);
}

static void instructions_close(kprof_instructions *instructions)
{
    assert_null(instructions);
}

/* Samples of instructions in the context that was opened last. */
static struct {
    unsigned opened, armed, disarmed;
    bool enabled;
    unsigned when_opened; /* profilers that had been opened by then */
    uint32_t period;
    size_t buffer_bytes;
    kprof_status opening, status; /* status: of enabling */
} sampling;

static kprof_status pc_samples_open(void *context, size_t buffer_bytes, kprof_pc_samples **out)
{
    static char place;
    sampling.opened++;
    sampling.buffer_bytes = buffer_bytes;
    sampling.when_opened = opened;
    *out = sampling.opening == KPROF_OK ? (kprof_pc_samples *)&place : NULL;
    return sampling.opening;
}

static kprof_status pc_samples_arm(kprof_pc_samples *samples, uint32_t period)
{
    assert_non_null(samples);
    sampling.armed++;
    sampling.period = period;
    sampling.enabled = sampling.status == KPROF_OK;
    return sampling.status;
}

static kprof_status pc_samples_disarm(kprof_pc_samples *samples)
{
    assert_non_null(samples);
    sampling.disarmed += sampling.enabled;
    sampling.enabled = false;
    return KPROF_OK;
}

static void pc_samples_close(kprof_pc_samples *samples) {}

static void snapshot_release(kprof_snapshot *snapshot) {}

static void snapshot_close(kprof_snapshot *snapshot, bool lives) {}

static void flush_close(kprof_flush *flush) {}

static const kprof_device_ops device_ops = {.target_current_device = target_current_device,
                                            .target_enter_context = target_enter_context,
                                            .target_leave_context = target_leave_context,
                                            .profiler_open = profiler_open,
                                            .profiler_release = profiler_release,
                                            .profiler_close = profiler_close,
                                            .profiler_pop = profiler_pop,
                                            .profiler_stop = profiler_stop,
                                            .snapshot_release = snapshot_release,
                                            .snapshot_close = snapshot_close,
                                            .flush_close = flush_close,
                                            .instructions_close = instructions_close,
                                            .pc_samples_open = pc_samples_open,
                                            .pc_samples_arm = pc_samples_arm,
                                            .pc_samples_disarm = pc_samples_disarm,
                                            .pc_samples_close = pc_samples_close};

static int note_all(void **state)
{
    late = broken = NULL;
    opened = given_back = popped = stopped = 0;
    exits = false;
    memset(&sampling, 0, sizeof sampling);
    kprof_engine.process.config.samples = false;
    kprof_engine.process.config.sampling_period = 0;
    device = 0;
    open_status = KPROF_OK;
    entered = NULL;
    for (size_t i = 0; i < sizeof places; i++) {
        waits[i] = 0;
        kprof_contexts_note(&places[i]);
    }
    return 0;
}

static int forget_all(void **state)
{
    for (size_t i = 0; i < sizeof places; i++)
        kprof_contexts_forget(&places[i], false);
    return 0;
}

TEST(test_every_other_context)
{
    assert_int_equal(kprof_contexts_wait_for_others(&places[3]), KPROF_OK);
    for (size_t i = 0; i < sizeof places; i++)
        assert_int_equal(waits[i], i != 3);
}

TEST(test_a_context_that_has_ended)
{
    kprof_contexts_forget(&places[5], false);
    assert_int_equal(kprof_contexts_wait_for_others(&places[3]), KPROF_OK);
    assert_int_equal(waits[5], 0);
    assert_int_equal(waits[sizeof places - 1], 1);
}

TEST(test_work_that_does_not_end)
{
    late = &places[7];
    assert_int_equal(kprof_contexts_wait_for_others(&places[3]), KPROF_NOT_COLLECTED);
    assert_int_equal(kprof_contexts_wait_for_others(&places[7]), KPROF_OK);
}

TEST(test_a_context_in_error_does_nothing)
{
    broken = &places[7];
    assert_int_equal(kprof_contexts_wait_for_others(&places[3]), KPROF_OK);
    assert_int_equal(waits[sizeof places - 1], 1);
}

/* CUPTI would wait for its work without a limit. */
TEST(test_counters_of_a_busy_context)
{
    kprof_profiled_context *out;
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &out), KPROF_OK);
    const kprof_profiled_context *first = out;
    out->replayed_ranges = 100;
    late = &places[1];
    assert_int_equal(kprof_contexts_open(&places[2], NULL, &out), KPROF_NOT_COLLECTED);
    assert_int_equal(opened, 1); /* one at a time has counters of the device */
    kprof_contexts_release();
    assert_int_equal(given_back, 0);
    late = NULL;
    assert_int_equal(kprof_contexts_open(&places[2], NULL, &out), KPROF_OK);
    assert_true(first->takes_turns && first->replayed_ranges == 0);
    assert_int_equal(opened, 2);
    assert_int_equal(given_back, 1);
    out->replayed_ranges = 100;
    kprof_contexts_release();
    assert_true(!out->takes_turns && out->replayed_ranges == 0); /* nobody else had them */
    kprof_contexts_release();                                    /* there are none to give back */
    assert_int_equal(given_back, 2);
}

static void open_one(void *context)
{
    kprof_profiled_context *out;
    assert_int_equal(kprof_contexts_open(context, NULL, &out), KPROF_OK);
    assert_ptr_equal(out->context, context);
}

/* What a context has learnt stays; its counters are those of the next launch's plan. */
TEST(test_another_plan)
{
    static const kprof_chip_metrics other;
    kprof_profiled_context *out;
    assert_true(kprof_contexts_change_plan()); /* nothing was measured yet */
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &out), KPROF_OK);
    const kprof_profiled_context *before = out;
    out->comparisons = 3;
    late = &places[1];
    assert_false(kprof_contexts_change_plan());
    assert_true(kprof_contexts_have_counters());
    late = NULL;
    assert_true(kprof_contexts_change_plan());
    assert_false(kprof_contexts_have_counters());
    assert_int_equal(given_back, 1);
    kprof_contexts_release(); /* there is nothing to give back */
    assert_int_equal(kprof_contexts_open(&places[1], &other, &out), KPROF_OK);
    assert_ptr_equal(out, before);
    assert_ptr_equal(out->metrics, &other);
    assert_int_equal(out->comparisons, 3);
    assert_int_equal(opened, 2);
    assert_true(kprof_contexts_have_counters());
    assert_true(kprof_contexts_change_plan());
    kprof_contexts_forget(&places[1], false);
    assert_null(kprof_contexts_find(&places[1]));
}

/* CUPTI gives back the counters of the current context, and the thread may be the application's. */
TEST(test_thread_keeps_its_context)
{
    open_one(&places[1]);
    kprof_contexts_release();
    assert_int_equal(given_back, 1);
    assert_null(entered);
    open_one(&places[1]);
    assert_int_equal(opened, 1);
    kprof_contexts_forget(&places[1], false);
    assert_int_equal(given_back, 2);
    assert_null(entered);
}

TEST(test_counters_of_another_device)
{
    open_one(&places[1]);
    device = 1;
    late = &places[1]; /* which nobody waits for */
    open_one(&places[2]);
    assert_int_equal(opened, 2);
    assert_int_equal(given_back, 0);
}

/* A context that could not be opened is not there the next time. */
TEST(test_not_opened)
{
    kprof_profiled_context *out;
    open_status = KPROF_UNSUPPORTED;
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &out), KPROF_UNSUPPORTED);
    assert_null(out);
    open_status = KPROF_OK;
    open_one(&places[1]);
    assert_int_equal(opened, 2);
}

/* CUPTI takes the next context at the address for this one, and waits for ever where a pass is under way. */
TEST(test_ends_with_counters)
{
    open_one(&places[1]);
    kprof_contexts_forget(&places[1], false);
    assert_true(released);
    open_one(&places[1]);
    kprof_contexts_forget(&places[1], true);
    assert_false(released);
    open_one(&places[1]);
    assert_int_equal(opened, 3);
}

/* Work that did not end when its batch was closed has ended by now; the pass around it is of no use. */
TEST(test_pass_that_was_left_open)
{
    kprof_profiled_context *context;
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &context), KPROF_OK);
    context->left_in_pass = true;
    late = &places[1];
    kprof_contexts_release(); /* CUPTI would wait */
    assert_true(popped == 0 && stopped == 0 && given_back == 0);
    late = NULL;
    kprof_contexts_release();
    assert_true(popped == 1 && stopped == 1 && released);
    assert_false(context->left_in_pass);
}

/* No pass of counters comes before samples are enabled: not the first, and none after the counters were given back. */
TEST(test_samples_of_instructions)
{
    open_one(&places[1]);
    assert_int_equal(sampling.opened, 0); /* nobody wants any */
    kprof_engine.process.config.samples = true;
    kprof_engine.process.config.sampling_buffer_bytes = 12345;
    open_one(&places[2]);
    kprof_engine.process.config.sampling_buffer_bytes = 0;
    assert_int_equal(sampling.buffer_bytes, 12345);
    assert_true(sampling.enabled && sampling.opened == 1 && sampling.when_opened == 1);
    assert_int_equal(sampling.armed, 1);
    open_one(&places[2]);
    assert_int_equal(sampling.armed, 1);
    kprof_contexts_release();
    assert_false(sampling.enabled);
    kprof_engine.process.config.sampling_period = 9;
    open_one(&places[2]);
    assert_true(sampling.enabled && sampling.period == 9 && sampling.opened == 1);
    kprof_contexts_forget(&places[2], false);
    assert_false(sampling.enabled);
}

/* Where the driver keeps samples from the user, everything else goes on. */
TEST(test_samples_that_are_not_there)
{
    kprof_profiled_context *context;
    kprof_engine.process.config.samples = true;
    sampling.opening = KPROF_UNSUPPORTED;
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &context), KPROF_OK);
    assert_null(context->pc_samples);
    assert_string_equal(context->pc_samples_reason, kprof_status_message(KPROF_UNSUPPORTED));
    kprof_contexts_release();
    open_one(&places[1]);
    assert_int_equal(sampling.opened, 1); /* not tried again */
    sampling.opening = KPROF_OK;
    sampling.status = KPROF_NO_PERMISSION;
    open_one(&places[3]);
    assert_true(sampling.opened == 2 && !sampling.enabled);
    sampling.status = KPROF_OK;
    open_status = KPROF_UNSUPPORTED;
    assert_int_equal(kprof_contexts_open(&places[2], NULL, &context), KPROF_UNSUPPORTED);
    assert_false(sampling.enabled);
}

TEST(test_all_idle)
{
    assert_true(kprof_contexts_idle());
    open_one(&places[1]);
    open_one(&places[2]);
    assert_true(kprof_contexts_idle());
    late = &places[3]; /* has nothing that is measured */
    assert_true(kprof_contexts_idle());
    late = &places[1];
    assert_false(kprof_contexts_idle());
    late = &places[2];
    assert_false(kprof_contexts_idle());
    late = NULL;
    broken = &places[2];
    assert_true(kprof_contexts_idle());
}

/* The driver tells then, in that thread, that its contexts end. */
TEST(test_exit_within_a_wait)
{
    kprof_profiled_context *out;
    assert_int_equal(kprof_contexts_open(&places[1], NULL, &out), KPROF_OK);
    exits = true;
    assert_int_equal(kprof_contexts_wait_for_others(&places[3]), KPROF_OK);
    exits = false;
    assert_int_equal(given_back, 0); /* whoever waits may be using the counters */
}

int main(void)
{
    kprof_engine.device = &device_ops;
    around_each(note_all, forget_all);
    return run_all_tests();
}
