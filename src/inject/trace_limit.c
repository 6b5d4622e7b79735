/* The last times are kept in a ring, in their order. A thread that has the mutex already is in a signal handler, which
 * ends the process: it changes nothing, and leaves nothing out. */
#include "inject/trace_limit.h"

#include "core/log.h"
#include "inject/engine.h"

#include <pthread.h>
#include <unistd.h>

/* Samples come up to a second late: 16,384 steps of 60 us take that long. */
#define TIMES_KEPT 16384

typedef struct chosen_time {
    int64_t start_ns, end_ns;
} chosen_time;

static struct {
    pthread_mutex_t mutex;
    int ranges;         /* of --nvtx-include that are open */
    bool is_armed;      /* by kprof ctl */
    atomic_bool is_in;  /* what happens now is chosen */
    int64_t changed_ns; /* when that last changed */
    chosen_time times[TIMES_KEPT];
    uint64_t count; /* there were so far */
} the_limit = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

static bool is_limited(void)
{
    const kprof_config *config = &kprof_engine.process.config;
    return kprof_trace_is_alone() && kprof_engine.process.filter &&
           (config->starts_unarmed || config->filter.profiler_calls != KPROF_PROFILER_CALLS_IGNORED ||
            config->filter.measures_ranges || config->filter.schedule);
}

bool kprof_trace_limit_needs_calls(void)
{
    return is_limited() && kprof_engine.process.config.filter.profiler_calls != KPROF_PROFILER_CALLS_IGNORED;
}

/* With the mutex held. */
static bool is_chosen(void)
{
    const kprof_filter *filter = kprof_engine.process.filter;
    return (the_limit.is_armed || !kprof_engine.process.config.starts_unarmed) && !kprof_filter_is_stopped(filter) &&
           !kprof_filter_is_between_steps(filter) &&
           (!kprof_engine.process.config.filter.measures_ranges || the_limit.ranges > 0);
}

void kprof_trace_limit_arm(bool armed)
{
    if (pthread_mutex_lock(&the_limit.mutex) != 0)
        return;
    the_limit.is_armed = armed;
    pthread_mutex_unlock(&the_limit.mutex);
}

int64_t kprof_trace_limit_follow(int64_t now_ns, int begun)
{
    int64_t left_out_ns = 0;
    if (!is_limited() || pthread_mutex_lock(&the_limit.mutex) != 0)
        return 0;
    the_limit.ranges += begun;
    const bool is_in = is_chosen(), was_in = atomic_exchange(&the_limit.is_in, is_in);
    now_ns = now_ns > the_limit.changed_ns ? now_ns : the_limit.changed_ns; /* another thread may have been faster */
    if (is_in != was_in) {
        left_out_ns = is_in ? the_limit.changed_ns : 0;
        if (is_in)
            the_limit.times[the_limit.count++ % TIMES_KEPT] = (chosen_time){now_ns, INT64_MAX};
        else
            the_limit.times[(the_limit.count - 1) % TIMES_KEPT].end_ns = now_ns;
        the_limit.changed_ns = now_ns;
    }
    pthread_mutex_unlock(&the_limit.mutex);
    return left_out_ns;
}

bool kprof_trace_limit_is_out(void)
{
    return !atomic_load_explicit(&the_limit.is_in, memory_order_relaxed) && is_limited();
}

/* With the mutex held: how many times have begun by then, of those that are kept and those before. */
static uint64_t count_begun(int64_t by_ns)
{
    uint64_t end = the_limit.count, begin = end > TIMES_KEPT ? end - TIMES_KEPT : 0;
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (the_limit.times[middle % TIMES_KEPT].start_ns <= by_ns)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

bool kprof_trace_limit_has(int64_t start_ns, int64_t end_ns)
{
    if (!is_limited() || pthread_mutex_lock(&the_limit.mutex) != 0)
        return true;
    const uint64_t begun = count_begun(end_ns > start_ns ? end_ns - 1 : start_ns);
    const bool is_known = begun == 0 || begun + TIMES_KEPT > the_limit.count;
    const bool has = begun > 0 && the_limit.times[(begun - 1) % TIMES_KEPT].end_ns > start_ns;
    pthread_mutex_unlock(&the_limit.mutex);
    return has || !is_known;
}

void kprof_trace_limit_tell(void)
{
    const kprof_filter *filter = kprof_engine.process.filter;
    if (!is_limited() || the_limit.count > 0)
        return;
    kprof_log(KPROF_LOG_WARNING, "process %d has an empty trace: it %s", (int)getpid(),
              kprof_engine.process.config.starts_unarmed && !the_limit.is_armed
                  ? "was not armed by kprof ctl start, or by --delay"
              : kprof_filter_awaits_start(filter)
                  ? "never called cudaProfilerStart or cuProfilerStart, which --profile-from-start off waits for"
              : kprof_filter_is_between_steps(filter) ? "had no active step of --schedule"
                                                      : "was in no NVTX range that --nvtx-include asks for");
}

void kprof_trace_limit_forget(void)
{
    pthread_mutex_init(&the_limit.mutex, NULL);
}
