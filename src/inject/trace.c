/* One mutex guards the block that is being filled and the names that it refers to. What is written takes no other of
 * kprof's locks but that of the spool. A thread that has it already is in a signal handler, and adds nothing. */
#include "inject/trace.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "core/names.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/recording.h"
#include "inject/stacks.h"
#include "inject/trace_limit.h"
#include "spool/activities.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES     ((size_t)48 << 10)
#define MOST_NAMES      (1u << 20)
#define MOST_NAME_BYTES ((size_t)64 << 20)
#define UNENDED                                                                                                        \
    "activities that had not ended as the process did are missing, and others beside them in CUPTI's buffers"
#define ONE_NAME_TOO_MANY "(kprof keeps no more names)"
/* Remember this many of kprof's turns: CUPTI tells of calls of their time half a second later. */
#define TURNS_KEPT 4096
#define EARLY_MOST 4096

/* A time in which a thread of the application's works for kprof. */
typedef struct kprof_trace_turn {
    int64_t start_ns, end_ns, thread;
} kprof_trace_turn;

static struct {
    pthread_mutex_t mutex; /* guards all below */
    kprof_names names;     /* by their numbers from 1 */
    size_t name_bytes;
    kprof_activity_history history;
    kprof_strbuf block;
    uint32_t block_count; /* activities in it */
    uint64_t dropped, unknown;
    bool is_told; /* these two, as they are now */
    kprof_trace_turn turns[TURNS_KEPT];
    uint64_t turn_count; /* there were so far */
} trace = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* NVTX ranges that ended before the process began to use CUDA, and with it its spool. */
static struct early {
    pthread_mutex_t mutex; /* guards all below but is_over */
    kprof_trace_range ranges[EARLY_MOST];
    char *names[EARLY_MOST]; /* of these, owned */
    size_t count, lost;
    pid_t pid;           /* whose they are */
    atomic_bool is_over; /* the process has begun */
} early = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* With the mutex held, like all up to the sink. */
static void write_block(void)
{
    kprof_record record = {.type = KPROF_RECORD_ACTIVITIES};
    record.activities = (kprof_activities_record){trace.block_count, (uint32_t)trace.block.length, trace.block.data};
    if (trace.block.failed)
        trace.dropped += trace.block_count;
    else if (trace.block_count > 0)
        kprof_process_write(&record);
    kprof_strbuf_clear(&trace.block);
    trace.block.failed = false;
    trace.block_count = 0;
    memset(&trace.history, 0, sizeof trace.history);
}

static void write_state(int64_t end_unix_ns, const char *reason)
{
    kprof_record record = {.type = KPROF_RECORD_TRACED};
    record.traced = (kprof_traced_record){end_unix_ns, trace.dropped, trace.unknown, reason};
    kprof_process_write(&record);
    trace.is_told = true;
}

static int64_t add_name(const char *text, bool is_mangled)
{
    if (trace.names.count + 1 >= MOST_NAMES || trace.name_bytes + strlen(text) >= MOST_NAME_BYTES) {
        text = ONE_NAME_TOO_MANY;
        is_mangled = false;
    }
    const size_t known = kprof_names_find(&trace.names, text), number = trace.names.count + 1;
    if (known != KPROF_NAMES_NONE)
        return (int64_t)known;
    if (!kprof_names_keep(&trace.names, text, number))
        return 0;
    trace.name_bytes += strlen(text) + 1;
    kprof_record record = {.type = KPROF_RECORD_NAME, .name = {(uint32_t)number, is_mangled, text}};
    kprof_process_write(&record);
    return (int64_t)number;
}

static int64_t number_name(const char *text, bool is_mangled)
{
    if (!kprof_recording_runs() || pthread_mutex_lock(&trace.mutex) != 0)
        return 0;
    const size_t known = kprof_names_find(&trace.names, text);
    const int64_t number = known != KPROF_NAMES_NONE ? (int64_t)known : add_name(text, is_mangled);
    pthread_mutex_unlock(&trace.mutex);
    return number;
}

/* Did kprof itself make the call? Turns follow one another. */
static bool is_own(const kprof_call_activity *call)
{
    uint64_t end = trace.turn_count, begin = end > TURNS_KEPT ? end - TURNS_KEPT : 0;
    const uint64_t first = begin;
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (trace.turns[middle % TURNS_KEPT].start_ns <= call->start_ns)
            begin = middle + 1;
        else
            end = middle;
    }
    const kprof_trace_turn *last = begin > first ? &trace.turns[(begin - 1) % TURNS_KEPT] : NULL;
    return last && last->thread == call->thread && call->end_ns <= last->end_ns;
}

/* Does it fall into a time that the trace has? Levels of memory need all changes, and what only pairs numbers has no
 * time. */
static bool is_chosen(const kprof_activity *activity)
{
    const int64_t start_ns = activity->fields[0], end_ns = activity->fields[1];
    const bool has_times = activity->kind != KPROF_ACTIVITY_MEMORY && activity->kind != KPROF_ACTIVITY_EXTERNAL &&
                           activity->kind != KPROF_ACTIVITY_CALLER && start_ns >= 0;
    return !has_times || kprof_trace_limit_has(start_ns, end_ns);
}

static void take_any(const kprof_activity *activity)
{
    if (!kprof_recording_runs() || pthread_mutex_lock(&trace.mutex) != 0)
        return;
    if (activity->kind == KPROF_ACTIVITY_KERNEL && kprof_engine.process.config.only_records)
        atomic_fetch_add(&kprof_engine.process.launches, 1); /* else each is counted as it is launched */
    if (activity->kind != KPROF_ACTIVITY_CALL || !is_own(&activity->call)) {
        kprof_activity_encode(&trace.history, activity, &trace.block);
        trace.block_count++;
        if (trace.block.failed || trace.block.length >= BLOCK_BYTES)
            write_block();
    }
    pthread_mutex_unlock(&trace.mutex);
}

static void take(const kprof_activity *activity)
{
    if (is_chosen(activity))
        take_any(activity);
}

static void end_buffer(uint64_t dropped, uint64_t unknown)
{
    if (!kprof_recording_runs() || pthread_mutex_lock(&trace.mutex) != 0)
        return;
    trace.dropped += dropped;
    trace.unknown += unknown;
    trace.is_told = trace.is_told && dropped == 0 && unknown == 0;
    write_block();
    if (!trace.is_told)
        write_state(-1, "");
    pthread_mutex_unlock(&trace.mutex);
}

int64_t kprof_trace_now_ns(void)
{
    if (!kprof_engine.process.config.traces)
        return 0;
    return kprof_recording_runs() ? kprof_engine.device->activities_now_ns() : kprof_unix_ns();
}

static void lock_early(void)
{
    pthread_mutex_lock(&early.mutex);
}

static void unlock_early(void)
{
    pthread_mutex_unlock(&early.mutex);
}

/* A child of fork has a copy of what its parent has kept, and none of its parent's other threads. */
static void prepare_for_fork(void)
{
    pthread_atfork(lock_early, unlock_early, unlock_early);
}

/* Keep a range, or without one count another that is lost. */
static void keep_early(const kprof_trace_range *range)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (atomic_load(&early.is_over))
        return;
    pthread_once(&once, prepare_for_fork);
    lock_early();
    if (early.pid != getpid())
        early.count = early.lost = 0;
    early.pid = getpid();
    const bool has_space = early.count < EARLY_MOST && !atomic_load(&early.is_over);
    char *name = range && has_space ? strdup(range->name) : NULL;
    if (name) {
        free(early.names[early.count]); /* of a parent */
        early.names[early.count] = name;
        early.ranges[early.count] = *range;
        early.ranges[early.count++].name = name;
    } else {
        early.lost++;
    }
    unlock_early();
}

/* Call this once recording has begun. No thread keeps ranges from then on. */
static void take_early(void)
{
    lock_early();
    atomic_store(&early.is_over, true);
    const bool is_own = early.pid == getpid();
    const size_t count = is_own ? early.count : 0, lost = is_own ? early.lost : 0;
    unlock_early();
    for (size_t i = 0; i < count; i++)
        kprof_trace_take_range(&early.ranges[i]);
    for (size_t i = 0; i < lost; i++)
        kprof_trace_lose_range();
    for (size_t i = 0; i < EARLY_MOST; i++)
        free(early.names[i]);
    memset(early.names, 0, sizeof early.names);
}

void kprof_trace_lose_range(void)
{
    if (!kprof_engine.process.config.traces)
        return;
    if (!kprof_recording_runs())
        keep_early(NULL);
    else if (pthread_mutex_lock(&trace.mutex) == 0) {
        trace.dropped++;
        trace.is_told = false;
        pthread_mutex_unlock(&trace.mutex);
    }
}

void kprof_trace_take_range(const kprof_trace_range *range)
{
    if (!kprof_recording_runs()) {
        keep_early(range);
        return;
    }
    const kprof_activity activity = {.kind = KPROF_ACTIVITY_RANGE,
                                     .range = {.start_ns = range->start_ns,
                                               .end_ns = range->end_ns,
                                               .thread = range->thread,
                                               .end_thread = range->end_thread,
                                               .name = number_name(range->name, false),
                                               .domain = *range->domain ? number_name(range->domain, false) : 0,
                                               .style = number_name(range->style, false)}};
    const bool goes_on = range->end_ns < 0 && strcmp(range->style, KPROF_TRACE_MARK) != 0;
    if (kprof_trace_limit_has(range->start_ns, goes_on ? INT64_MAX : range->end_ns))
        take_any(&activity);
}

void kprof_trace_take_sample(const kprof_sample_activity *sample, const char *metric)
{
    kprof_activity activity = {.kind = KPROF_ACTIVITY_SAMPLE, .sample = *sample};
    activity.sample.name = number_name(metric, false);
    take(&activity);
}

static void tell(int64_t start_ns, int64_t end_ns, const char *what)
{
    const kprof_activity activity = {.kind = KPROF_ACTIVITY_OVERHEAD,
                                     .overhead = {.start_ns = start_ns,
                                                  .end_ns = end_ns,
                                                  .thread = gettid(),
                                                  .correlation = -1,
                                                  .name = number_name(what, false)}};
    take_any(&activity);
}

void kprof_trace_follow(int begun)
{
    const int64_t now_ns = kprof_trace_now_ns(), left_out_ns = kprof_trace_limit_follow(now_ns, begun);
    if (left_out_ns > 0)
        tell(left_out_ns, now_ns, KPROF_TRACE_LEFT_OUT);
}

void kprof_trace_arm(bool armed)
{
    kprof_trace_limit_arm(armed);
    kprof_trace_follow(0);
}

void kprof_trace_note_profiler(bool starts)
{
    kprof_filter_note_profiler(kprof_engine.process.filter, starts);
    kprof_trace_follow(0);
}

/* CUPTI may report calls of this time before it has ended. */
static void begin_turn(int64_t start_ns, int64_t counted_ns)
{
    if (counted_ns > 0)
        tell(counted_ns, start_ns, KPROF_TRACE_COUNTED);
    if (pthread_mutex_lock(&trace.mutex) != 0)
        return;
    trace.turns[trace.turn_count++ % TURNS_KEPT] = (kprof_trace_turn){start_ns, INT64_MAX, gettid()};
    pthread_mutex_unlock(&trace.mutex);
}

static void end_turn(int64_t start_ns, int64_t end_ns)
{
    if (pthread_mutex_lock(&trace.mutex) != 0)
        return;
    trace.turns[(trace.turn_count - 1) % TURNS_KEPT].end_ns = end_ns;
    pthread_mutex_unlock(&trace.mutex);
    tell(start_ns, end_ns, KPROF_TRACE_OWN);
}

/* Several calls of the driver may be parts of one of the runtime, and have its number. */
static void called(uint32_t correlation)
{
    static __thread uint32_t last;
    if (correlation == 0 || correlation == last || kprof_trace_limit_is_out())
        return;
    last = correlation;
    const uint32_t stack = kprof_launch_stack();
    if (stack > 0)
        take(&(kprof_activity){.kind = KPROF_ACTIVITY_CALLER, .caller = {correlation, stack}});
}

kprof_status kprof_trace_start(void)
{
    static const kprof_activity_sink sink = {number_name, take, end_buffer};
    static const kprof_recording_turns turns = {begin_turn, end_turn, called};
    const kprof_config *config = &kprof_engine.process.config;
    kprof_record record = {.type = KPROF_RECORD_TRACE, .trace = {kprof_unix_ns()}};
    kprof_process_write(&record);
    if (!config->only_records)
        kprof_log(
            KPROF_LOG_INFO,
            "while kprof measures launches, the trace has calls alone, and no GPU counts as idle; a call in which "
            "kprof measures lasts longer by that time");
    const bool is_whole = config->graph_profiling == KPROF_GRAPH_WHOLE;
    const kprof_status status =
        kprof_recording_start(&sink, is_whole ? KPROF_ACTIVITIES_OF_GRAPHS : KPROF_ACTIVITIES_OF_NODES, &turns);
    take_early();
    kprof_trace_follow(0);
    return status;
}

void kprof_trace_end(void)
{
    if (!kprof_engine.process.config.traces || !kprof_recording_runs())
        return;
    const size_t kept = kprof_recording_finish();
    if (pthread_mutex_lock(&trace.mutex) != 0) /* a signal handler ends the process in the middle of a block */
        return;
    write_block();
    write_state(kprof_unix_ns(), kept > 0 ? UNENDED : "");
    pthread_mutex_unlock(&trace.mutex);
}
