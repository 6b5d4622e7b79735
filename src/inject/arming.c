/* One thread sleeps until somebody writes to the switch of this process. While the process is not armed, CUPTI calls
 * kprof only about what changes its lists, there are no counters, and no launch looks whether that has changed. */
#include "inject/arming.h"

#include "core/control.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "inject/batch.h"
#include "inject/census.h"
#include "inject/choose.h"
#include "inject/contexts.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/kernels.h"
#include "inject/launch_state.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/range.h"
#include "inject/threads.h"
#include "inject/trace.h"
#include "inject/wait.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A thread may stay inside a CUDA call, or a capture may last, for this long. Then kprof gives up open launches, or the
 * process stays armed. */
#define RETRY_NS   10000000
#define PAUSE_NS   50000000
#define MOST_TRIES 1000

/* A plan sets these in the configuration. */
typedef struct plan {
    kprof_chip_metrics *chips; /* NULL: it has not been read yet */
    size_t chip_count;
    kprof_strlist instruction_metrics;
    bool samples;
    uint32_t sampling_period;
} plan;

/* Only the listening thread uses this, once there is one. Plans stay, since devices and records refer to them. */
static struct {
    void *mapping;
    uint32_t turn, plan;
    plan plans[KPROF_CONTROL_PLANS];
} the_arming;

static plan plan_of(const kprof_config *config)
{
    return (plan){config->chips, config->chip_count, config->instruction_metrics, config->samples,
                  config->sampling_period};
}

static kprof_status read_plan(uint32_t number, plan *out)
{
    char name[64];
    kprof_config config;
    snprintf(name, sizeof name, KPROF_CONTROL_CONFIG, number);
    kprof_status status = kprof_config_load_as(kprof_engine.process.session_dir, name, &config);
    if (status != KPROF_OK)
        return status;
    *out = plan_of(&config);
    config.chips = NULL;
    config.chip_count = 0;
    config.instruction_metrics = (kprof_strlist)KPROF_STRLIST_INIT;
    kprof_config_free(&config);
    return out->chips ? KPROF_OK : kprof_fail(KPROF_INTERNAL, "the plan of kprof ctl has no chip");
}

/* With the gate held, and nothing open. */
static kprof_status use_plan(uint32_t number)
{
    plan *wanted = &the_arming.plans[number];
    kprof_config *config = &kprof_engine.process.config;
    if (number == the_arming.plan)
        return KPROF_OK;
    kprof_status status = wanted->chips ? KPROF_OK : read_plan(number, wanted);
    if (status == KPROF_OK && !kprof_contexts_change_plan())
        status = kprof_fail(KPROF_NOT_COLLECTED, "the GPU's work did not end, so that the counters of the plan before "
                                                 "could not be given back");
    if (status != KPROF_OK)
        return status;
    config->chips = wanted->chips;
    config->chip_count = wanted->chip_count;
    config->instruction_metrics = wanted->instruction_metrics;
    config->samples = wanted->samples;
    config->sampling_period = wanted->sampling_period;
    kprof_devices_use_plans();
    the_arming.plan = number;
    return KPROF_OK;
}

/* This thread is in no call of the application, so it waits for the gate as long as that takes. */
static bool enter_alone(void)
{
    const struct timespec pause = {0, RETRY_NS};
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
        if (kprof_gate_enter_exclusive(KPROF_GATE_TIMEOUT_MS))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool has_ended(void)
{
    return atomic_load(&kprof_the_launches.ended) || atomic_load(&kprof_engine.process.ending);
}

/* Calls that began before the callbacks were on might submit their work beside a replay. Those that CUPTI reports all
 * the time are inside the gate, and others may wait for them. */
static bool await_unseen(void)
{
    if (!enter_alone())
        return false;
    kprof_gate_leave_exclusive();
    return kprof_engine.device->unseen_await();
}

/* From here on launches are inside the gate, too. Not before CUPTI reports all of them: one that it was about to report
 * when its callbacks were turned off would enter, and nobody would hear that it leaves. */
static kprof_status tell_launches(void)
{
    kprof_status status = kprof_engine.device->target_follow(true);
    atomic_store(&kprof_engine.process.is_arming, status == KPROF_OK);
    if (status == KPROF_OK && (has_ended() || !await_unseen() || !enter_alone()))
        status =
            kprof_fail(KPROF_NOT_COLLECTED, has_ended() ? "the process ends" : "a thread stayed inside a CUDA call");
    if (status != KPROF_OK)
        atomic_store(&kprof_engine.process.is_arming, false);
    return status;
}

static kprof_status arm(const kprof_control_wish *wish)
{
    kprof_process *process = &kprof_engine.process;
    const kprof_record record = {.type = KPROF_RECORD_ARMED, .armed = {wish->turn, wish->plan}};
    kprof_status status = tell_launches();
    if (status != KPROF_OK)
        return status;
    status = kprof_spool_write(process->spool, &record);
    KPROF_THEN(status, use_plan(wish->plan));
    if (status == KPROF_OK) {
        kprof_filter_restart(process->filter);
        kprof_kernels_forget_handles(); /* modules may have gone unseen */
        atomic_store(&process->waits, false);
        kprof_range_leave_out();
        atomic_store(&process->armed, true);
        atomic_store(&kprof_the_launches.settled, false);
    }
    atomic_store(&process->is_arming, false);
    kprof_gate_leave_exclusive();
    return status;
}

/* After a failure CUPTI no longer tells of calls that leave, so none may still be inside the gate. */
static void untell_launches(void)
{
    if (enter_alone())
        kprof_gate_leave_exclusive();
    (void)!kprof_engine.device->target_follow(false);
}

/* Replay what is open, and give everything back. */
static void end_measuring(void)
{
    kprof_process *process = &kprof_engine.process;
    kprof_wait_allow(KPROF_HOLD_AT_END_NS);
    kprof_batch_end("kprof ctl stop");
    kprof_contexts_end_samples();
    kprof_choose_write_counts();
    kprof_contexts_release_memory();
    kprof_contexts_release();
    if (kprof_contexts_have_counters()) {
        kprof_log(KPROF_LOG_WARNING, "process %d keeps the counters until the GPU's work ends", (int)getpid());
        kprof_idle_watch();
    }
    kprof_lock_give();
    atomic_store(&kprof_the_launches.settled, true);
    atomic_store(&process->waits, true);
    atomic_store(&process->armed, false);
}

/* Has the GPU done the work of the open batch? While a stream is captured kprof may wait for nothing. It holds the gate
 * only as long as it may hold calls up: others may have to go on before the work ends. */
static bool may_end(void)
{
    kprof_wait_allow(atomic_load(&kprof_engine.waits.hold_ns));
    return !kprof_engine.device->target_capturing() && (!kprof_batch_is_open() || kprof_contexts_idle());
}

static bool disarm(void)
{
    const struct timespec pause = {0, RETRY_NS};
    bool is_done = false;
    for (int tries = 1; !is_done && enter_alone(); tries++) {
        is_done = may_end() || tries == MOST_TRIES;
        if (is_done)
            end_measuring();
        kprof_gate_leave_exclusive();
        if (!is_done)
            nanosleep(&pause, NULL);
    }
    return is_done;
}

/* A census alone holds no call, and has no plans and nothing open. */
static kprof_control_state follow_census(const kprof_control_wish *wish)
{
    kprof_process *process = &kprof_engine.process;
    const kprof_record record = {.type = KPROF_RECORD_ARMED, .armed = {wish->turn, wish->plan}};
    if (atomic_load(&process->armed)) {
        kprof_engine.device->activities_pause(true);
        kprof_census_end();
    }
    atomic_store(&process->waits, !wish->armed);
    atomic_store(&process->armed, wish->armed);
    if (!wish->armed)
        return KPROF_CONTROL_UNARMED;
    kprof_process_write(&record);
    kprof_census_begin_turn();
    kprof_engine.device->activities_pause(false);
    return KPROF_CONTROL_ARMED;
}

static kprof_control_state follow_trace(const kprof_control_wish *wish)
{
    const kprof_record record = {.type = KPROF_RECORD_ARMED, .armed = {wish->turn, wish->plan}};
    if (wish->armed)
        kprof_process_write(&record);
    kprof_trace_arm(wish->armed);
    return wish->armed ? KPROF_CONTROL_ARMED : KPROF_CONTROL_UNARMED;
}

kprof_control_state kprof_arming_follow(const kprof_control_wish *wish)
{
    kprof_process *process = &kprof_engine.process;
    if (kprof_trace_is_alone())
        return follow_trace(wish);
    if (process->config.only_records)
        return follow_census(wish);
    kprof_status status = KPROF_OK;
    if (!atomic_load(&process->waits) && !disarm())
        return KPROF_CONTROL_ARMED;
    kprof_process_forget_reason();
    status = wish->armed ? arm(wish) : kprof_engine.device->target_follow(false);
    if (status == KPROF_OK)
        return wish->armed ? KPROF_CONTROL_ARMED : KPROF_CONTROL_UNARMED;
    if (wish->armed)
        untell_launches();
    kprof_log(KPROF_LOG_WARNING, "process %d could not be %s: %s", (int)getpid(), wish->armed ? "armed" : "disarmed",
              kprof_process_reason(status));
    return KPROF_CONTROL_FAILED;
}

/* If the program has no descriptor left, wait a moment, as it may soon have one again. `error`: of opening a file. */
static bool pause_if_short(int error)
{
    const struct timespec pause = {0, PAUSE_NS};
    const bool is_short = error == EMFILE || error == ENFILE;
    if (is_short)
        nanosleep(&pause, NULL);
    return is_short;
}

/* False when kprof is gone, or with errno set. */
static bool look(int folder)
{
    kprof_control control;
    if (!kprof_control_read(folder, getpid(), &control))
        return false;
    if (control.wish.turn == the_arming.turn)
        return true;
    const kprof_control_state state = kprof_arming_follow(&control.wish);
    the_arming.turn = control.wish.turn;
    while (!kprof_control_answer(folder, getpid(), the_arming.turn, state) && !has_ended() && pause_if_short(errno))
        continue;
    return true;
}

/* The process no longer follows wishes: nobody should wait for its answer. */
static void remove_switch(void)
{
    const char *reason;
    KPROF_AUTO_CLOSE const int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
    if (folder >= 0)
        kprof_control_remove(folder, getpid());
}

static void *listen(void *unused)
{
    const char *reason;
    bool is_there = true;
    while (is_there && !has_ended()) {
        errno = 0;
        const int folder = kprof_folder_open(kprof_engine.process.session_dir, &reason);
        is_there = folder >= 0 && look(folder);
        const int error = errno;
        if (folder >= 0)
            close(folder);
        is_there = is_there ? kprof_control_await(the_arming.mapping, the_arming.turn) : pause_if_short(error);
    }
    remove_switch();
    return unused;
}

/* Do what is wanted already, either of this process, by its id, as after exec, or of all processes. The command line
 * writes the wish for all before it looks for switches, and this process makes its own before it reads that wish: so
 * one of the two sees the other. */
static void follow_first(int folder)
{
    kprof_control own, all;
    const bool has_own = kprof_control_read(folder, getpid(), &own);
    const bool has_all = kprof_control_read(folder, KPROF_CONTROL_ALL, &all);
    const kprof_control_wish none = {0};
    const kprof_control_wish *wish = has_own ? &own.wish : &none;
    if (has_all && all.wish.turn > wish->turn)
        wish = &all.wish;
    the_arming.turn = has_own ? own.wish.turn : 0;
    (void)kprof_control_answer(folder, getpid(), the_arming.turn,
                               wish->armed ? kprof_arming_follow(wish) : KPROF_CONTROL_UNARMED);
}

kprof_status kprof_arming_start(void)
{
    kprof_process *process = &kprof_engine.process;
    const char *reason = NULL;
    pthread_t thread;
    KPROF_AUTO_CLOSE const int folder = kprof_folder_open(process->session_dir, &reason);
    if (folder >= 0)
        reason = kprof_control_make(folder, getpid());
    if (!reason && !(the_arming.mapping = kprof_control_map(folder, getpid())))
        reason = "the switch cannot be mapped";
    the_arming.plans[0] = plan_of(&process->config);
    kprof_status status = reason ? kprof_fail(KPROF_OUTPUT, "kprof ctl cannot reach the process: %s", reason)
                          : process->config.only_records ? KPROF_OK
                                                         : kprof_engine.device->target_follow(false);
    if (process->config.only_records && !process->config.traces)
        kprof_engine.device->activities_pause(true);
    if (status == KPROF_OK) {
        follow_first(folder);
        if (kprof_threads_start(&thread, listen, NULL))
            pthread_detach(thread);
        else
            status = kprof_fail(KPROF_NO_MEMORY, "no thread to be had for kprof ctl");
    }
    if (status != KPROF_OK)
        remove_switch();
    return status;
}
