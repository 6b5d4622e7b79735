/* Runs in the watching thread, which holds the gate while it closes anything. */
#include "inject/watch.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "inject/batch.h"
#include "inject/census.h"
#include "inject/choose.h"
#include "inject/contexts.h"
#include "inject/deliver.h"
#include "inject/early.h"
#include "inject/ending.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/launch_state.h"
#include "inject/lock.h"
#include "inject/nvtx.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "inject/trace_limit.h"
#include "inject/utilization.h"
#include "inject/wait.h"

#include <stdio.h>
#include <string.h>

kprof_launch_state kprof_the_launches;

/* After this long, say that a replay does not end. */
#define ENDLESS_S 10

/* After this many quarters of a second, give the counters back although no process of the run wants them. */
#define MAX_IDLE_CALLS 12

/* With --kill yes: has kprof chosen all launches that were asked for, and not said so yet? */
bool kprof_watch_may_be_done(void)
{
    return kprof_engine.process.config.kills && !atomic_load(&kprof_the_launches.told_done) &&
           kprof_process_has_chosen_all();
}

/* Tell that the process may be ended, if nothing is open. Needs the gate, alone. */
void kprof_watch_tell_done(void)
{
    if (!kprof_watch_may_be_done() || kprof_engine.device->target_capturing())
        return;
    if (kprof_batch_is_window() && !kprof_batch_spans_calls())
        kprof_batch_end("the last launch that was asked for");
    if (kprof_batch_is_open())
        return;
    atomic_store(&kprof_the_launches.told_done, true);
    kprof_contexts_end_samples();
    kprof_deliver_done();
}

/* Without the gate the answer is only a hint. */
static bool may_close(void)
{
    return !atomic_load(&kprof_the_launches.ended) && !kprof_engine.device->target_capturing() &&
           kprof_contexts_idle(); /* CUPTI would wait for them without a limit */
}

static void tell_steps(uint64_t launches)
{
    uint64_t first, steps = kprof_filter_steps(kprof_engine.process.filter, &first);
    if (steps > 0 && steps < first) /* else another message tells why there was none */
        kprof_log(
            KPROF_LOG_WARNING,
            "process %d had %llu launch%s, and %llu step%s; --schedule measures from step %llu on: let the program "
            "go on for longer, or make SKIP_FIRST, WAIT or WARMUP less",
            (int)kprof_engine.process.pid, (unsigned long long)launches, launches == 1 ? "" : "es",
            (unsigned long long)steps, steps == 1 ? "" : "s", (unsigned long long)first);
}

static void tell_ranges(void)
{
    const kprof_filter_spec *spec = &kprof_engine.process.config.filter;
    const kprof_range_counts counts = kprof_filter_count_ranges(kprof_engine.process.filter);
    const char *calls = spec->range_filter ? strchr(spec->range_filter, ':') : NULL;
    char text[160];
    if (!calls && spec->measures_ranges && counts.instances > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "process %d had %llu NVTX range%s of --nvtx-include, and no launch in those that were to be measured",
                  (int)kprof_engine.process.pid, (unsigned long long)counts.instances,
                  counts.instances == 1 ? "" : "s");
    if (!calls)
        return;
    if (calls[1] == ':')
        snprintf(text, sizeof text, "%llu NVTX range%s of --nvtx-include", (unsigned long long)counts.instances,
                 counts.instances == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "%llu range%s between cudaProfilerStart and cudaProfilerStop",
                 (unsigned long long)counts.calls, counts.calls == 1 ? "" : "s");
    kprof_log(KPROF_LOG_WARNING, "process %d had %s; no launch was in those that --range-filter %s asks for",
              (int)kprof_engine.process.pid, text, spec->range_filter);
}

/* Tell of conditions that kept all launches from being measured. */
static void tell_unreached(uint64_t launches)
{
    if (launches > 0 && kprof_filter_awaits_start(kprof_engine.process.filter))
        kprof_log(KPROF_LOG_WARNING,
                  "process %d never called cudaProfilerStart or cuProfilerStart, which %s waits for: none of its "
                  "launches was measured, %llu in all",
                  (int)kprof_engine.process.pid,
                  kprof_replay_is_of_ranges(kprof_engine.process.config.replay_choice)
                      ? "measuring ranges without --nvtx-include"
                      : "--profile-from-start off",
                  (unsigned long long)launches);
    if (launches > 0 && atomic_load(&kprof_engine.process.matched) == 0) {
        tell_steps(launches);
        tell_ranges();
        kprof_choose_tell_places();
        kprof_launch_stacks_tell_missed();
    }
}

/* Write the counts of all kernels, and that the process ends in an orderly way. */
void kprof_watch_write_end(void)
{
    const uint64_t launches = atomic_load(&kprof_engine.process.launches);
    if (kprof_engine.process.config.only_records)
        kprof_trace_limit_tell();
    else
        tell_unreached(launches);
    kprof_choose_write_counts();
    kprof_record record = {.type = KPROF_RECORD_END};
    record.end = (kprof_end_record){
        .launches = launches,
        .matched = atomic_load(&kprof_engine.process.matched),
        .profiled = atomic_load(&kprof_engine.process.profiled),
    };
    kprof_process_write(&record);
}

/* After an exec that fails the process goes on, and so do samples over time. */
static void end_trace(bool ends)
{
    kprof_nvtx_trace_open();
    if (ends)
        kprof_utilization_end();
    else
        kprof_utilization_settle();
    kprof_trace_end();
}

/* The process is about to call exec or _exit, and waits. After _exit no thread of the application runs on. Give up a
 * batch that is open over a capture, which may not end before. */
static void answer_process(void)
{
    kprof_wait_allow(KPROF_HOLD_AT_END_NS);
    if (!kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
        return;
    bool can = !kprof_batch_is_open() || kprof_engine.device->target_capturing() || may_close();
    if (can && kprof_idle_begin()) {
        bool ends = atomic_load(&kprof_engine.process.ending);
        kprof_batch_end_with_process(kprof_ending_is_due() ? KPROF_CLOSED_BY_SIGNAL : ends ? "_exit" : "an exec");
        kprof_contexts_end_samples();
        end_trace(ends);
        kprof_census_end();
        if (ends) {
            atomic_store(&kprof_the_launches.ended, true);
            kprof_watch_write_end();
        }
        kprof_idle_answer();
    }
    kprof_gate_leave_exclusive();
}

/* Nothing can end a replay in which a kernel waits for another one, so kprof waits for it without a limit, and says so.
 */
static void tell_endless_replay(void)
{
    const int limit_s = ENDLESS_S;
    size_t count;
    if (!kprof_batch_repeats_for_long(limit_s * INT64_C(1000000000), &count))
        return;
    if (atomic_exchange(&kprof_the_launches.told_endless, true))
        return;
    kprof_log(KPROF_LOG_WARNING,
              "%zu launches and copies are repeated, for more than %d s in this pass; if that does not end, a kernel "
              "waits for another one: end the program, and run it with --replay-mode multiplex, which repeats nothing",
              count, limit_s);
}

int64_t kprof_watch_learn_pause(int64_t limit_ns, int64_t further_ns)
{
    const int64_t limit = further_ns < limit_ns ? 2 * limit_ns : limit_ns / 2;
    return limit > KPROF_LONGEST_PAUSE_NS    ? KPROF_LONGEST_PAUSE_NS
           : limit < KPROF_SHORTEST_PAUSE_NS ? KPROF_SHORTEST_PAUSE_NS
                                             : limit;
}

/* While other processes wait for the counters. Needs the gate. */
static struct {
    int64_t limit_ns;
    int64_t closed_ns; /* when the last one closed a batch; 0: it is learnt from */
} pauses = {.limit_ns = KPROF_LONGEST_PAUSE_NS};

void kprof_watch_note_launch(void)
{
    const int64_t further_ns = kprof_batch_opened_ns() - pauses.closed_ns;
    if (pauses.closed_ns == 0 || further_ns <= 0)
        return;
    pauses.limit_ns = kprof_watch_learn_pause(pauses.limit_ns, further_ns);
    pauses.closed_ns = 0;
    kprof_idle_set_wait(pauses.limit_ns); /* others are likely to wait again */
}

/* The process has launched nothing for a while: it may be about to end without a word, and others may wait. Or a signal
 * is about to end it, and kprof asks: then close what is open, whatever is being launched. */
static bool give_back(unsigned calls)
{
    bool done = false, is_asked = calls == 0;
    kprof_wait_allow(is_asked ? KPROF_HOLD_AT_END_NS : 0); /* calls of the application wait for the gate meanwhile */
    tell_endless_replay();
    if (is_asked && kprof_idle_is_asked()) {
        answer_process();
        if (kprof_ending_is_due() && (!kprof_batch_is_open() || kprof_ending_is_overdue()))
            kprof_ending_end();
        return false;
    }
    if (is_asked && (!kprof_batch_is_open() || !kprof_lock_is_asked()))
        return false;
    if (atomic_load(&kprof_the_launches.settled) && !kprof_contexts_have_counters()) /* and calls pass by the gate */
        return true;
    if (!kprof_gate_enter_exclusive(is_asked ? KPROF_GATE_TIMEOUT_MS : 0))
        return false;
    /* If the application uses managed memory meanwhile, the launches of the batch are lost. */
    bool may_lose = kprof_batch_has_host() && !kprof_lock_is_wanted();
    bool is_due = is_asked || (kprof_idle_lasts() && !may_lose);
    bool can = is_due && may_close() && (is_asked || !kprof_batch_spans_calls());
    if (can && is_asked)
        kprof_batch_end_with_process(KPROF_CLOSED_BY_SIGNAL);
    const bool is_closed = can && kprof_batch_close_idle("a pause"), others_wait = kprof_lock_is_wanted();
    if (is_closed) {
        done = calls >= MAX_IDLE_CALLS || (!is_asked && others_wait);
        if (!is_asked && others_wait)
            pauses.closed_ns = kprof_monotonic_ns();
        if (done) { /* the next first pass costs 200 ms more */
            kprof_contexts_release();
            kprof_lock_give();
        }
    }
    kprof_idle_set_wait(others_wait ? pauses.limit_ns : 0);
    kprof_watch_tell_done();
    kprof_gate_leave_exclusive();
    return done;
}

/* Nothing is measured yet. If another process wants the counters, or kprof will measure nothing any more, samples would
 * slow down the program for no use. */
static void look_after_early(void)
{
    if (!kprof_gate_enter_exclusive(0))
        return;
    kprof_wait_allow(0);
    const bool is_over = !atomic_load(&kprof_engine.process.armed);
    if ((is_over || kprof_lock_is_wanted()) && !kprof_engine.device->target_capturing() && !kprof_batch_is_open())
        kprof_early_yield();
    kprof_gate_leave_exclusive();
}

/* Records and samples over time come as long as the program runs. */
bool kprof_watch_give_back(unsigned calls)
{
    const bool saves = !kprof_idle_is_asked() && kprof_recording_save(),
               samples = !kprof_idle_is_asked() && kprof_utilization_poll();
    if (calls > 0 && kprof_early_is_there() && !kprof_batch_is_open()) { /* of another context */
        look_after_early();
        return !saves && !samples && !kprof_early_is_there();
    }
    return give_back(calls) && !saves && !samples && !kprof_early_is_there();
}

/* Would something be lost if the process ended now? CUPTI keeps activities for a while. */
bool kprof_watch_has_unwritten(void)
{
    const kprof_config *config = &kprof_engine.process.config;
    return kprof_batch_is_open() || config->census || config->traces;
}
