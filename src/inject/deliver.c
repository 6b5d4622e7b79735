/* Corrects values for what a range has besides its kernel, and keeps the counter data of single launches. */
#include "inject/deliver.h"

#include "core/files.h"
#include "core/log.h"
#include "inject/engine.h"
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void kprof_deliver_kernel(const kprof_kernel *kernel)
{
    kprof_record record = {.type = KPROF_RECORD_KERNEL, .kernel = kernel->record};
    kprof_process_write(&record);
}

void kprof_deliver_progress(const kprof_launch_record *last, uint64_t open, uint32_t pass, uint32_t pass_count)
{
    kprof_record record = {.type = KPROF_RECORD_PROGRESS};
    record.progress = (kprof_progress_record){
        .kernel = last->kernel,
        .launch = last->launch,
        .profiled = atomic_load(&kprof_engine.process.profiled),
        .open = open,
        .pass = pass,
        .pass_count = pass_count,
    };
    kprof_process_write(&record);
}

void kprof_deliver_done(void)
{
    kprof_deliver_progress(&(kprof_launch_record){0}, 0, 0, 0);
}

static __thread bool tells_nothing; /* about instructions and timelines */

void kprof_deliver_tell_instructions(bool tells)
{
    tells_nothing = !tells;
}

/* Why does a launch that is measured outside of batches of replays have nothing of its instructions? */
static const char *why_no_instructions(const kprof_launch_record *launch)
{
    if (kprof_replay_is_of_ranges((int)kprof_engine.process.config.replay_choice))
        return KPROF_OF_A_RANGE;
    if (launch->mode != KPROF_REPLAY_MULTIPLEX)
        return KPROF_ONLY_IN_REPLAYS;
    return kprof_launch_is_graph(launch) ? KPROF_OF_A_GRAPH : KPROF_IN_ANOTHER;
}

/* Tell why a launch that is in no batch of replays has nothing of its instructions, and nothing over time. */
static void deliver_lacks(const kprof_launch_record *launch, const char *reason)
{
    const kprof_config *config = &kprof_engine.process.config;
    const bool is_measured = launch->value_count > 0 || launch->mode == KPROF_REPLAY_MULTIPLEX || !*reason;
    const bool is_range = kprof_replay_is_of_ranges((int)config->replay_choice);
    kprof_record record = {.type = KPROF_RECORD_INSTRUCTIONS};
    record.instructions.launch = launch->launch;
    record.instructions.reason = is_measured ? why_no_instructions(launch) : reason;
    if (config->instruction_metrics.count > 0)
        kprof_process_write(&record);
    record.instructions.sampled = 1;
    if (config->samples)
        kprof_process_write(&record);
    record = (kprof_record){.type = KPROF_RECORD_TIMELINE};
    record.timeline.launch = launch->launch;
    record.timeline.reason = !is_measured ? reason : is_range ? KPROF_NO_TIMELINE_OF_RANGE : KPROF_NO_TIMELINE;
    if (kprof_measures_timelines())
        kprof_process_write(&record);
}

void kprof_deliver_launch(kprof_launch_record *launch, const char *reason)
{
    const bool is_multiplexed = launch->mode == KPROF_REPLAY_MULTIPLEX && launch->pass_count > 0; /* for a sample */
    launch->reason = reason;
    if (launch->value_count > 0 || !*reason || is_multiplexed)
        atomic_fetch_add(&kprof_engine.process.profiled, 1);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH, .launch = *launch};
    kprof_process_write(&record);
    if (!tells_nothing)
        deliver_lacks(launch, reason);
}

/* A range that CUPTI makes for a kernel has this many cycles without work: 1,034 to 1,099 on an H200. Source:
 * docs/data/range-lead.csv. */
#define CYCLES_AROUND_KERNEL 1050

/* Counters of patched code see nothing of a graph as a whole, whose kernels were made before. */
#define NOT_IN_GRAPHS "counters of code that is patched into kernels do not see those of a graph as a whole"

/* Set values of such counters to NaN; true when there are any. */
static bool leave_out_patched(const kprof_chip_metrics *metrics, const kprof_launch_record *record, double *values)
{
    bool found = false;
    const bool by_node = record->mode == KPROF_REPLAY_RANGE &&
                         kprof_engine.process.config.graph_profiling != KPROF_GRAPH_WHOLE; /* replays patch kernels */
    for (size_t i = 0; i < metrics->metrics.count && kprof_launch_is_graph(record) && !by_node; i++) {
        if (!metrics->patched[i])
            continue;
        values[i] = NAN;
        found = true;
    }
    return found;
}

/* Its values are NaN where it is no witness of the chip, or no pass had it. */
static const kprof_witness *find_witness(const kprof_chip_metrics *metrics, const kprof_evaluation *e, const char *name)
{
    static const kprof_witness none = {.mean = NAN, .beside = NAN};
    for (size_t i = 0; i < metrics->witnesses.count; i++)
        if (strcmp(metrics->witnesses.items[i], name) == 0 && e->witnesses[i].passes > 0)
            return &e->witnesses[i];
    return &none;
}

/* Return how long a pushed range lasts before its kernel begins, and put the share that is left into *share. NaN if
 * that is not known, as for a graph: between its kernels the GPU executes none, either. */
static double find_lead_ns(const kprof_chip_metrics *metrics, const kprof_evaluation *e,
                           const kprof_launch_record *record, double *share)
{
    const kprof_witness *range = find_witness(metrics, e, KPROF_RANGE_CYCLES);
    double time_ns = find_witness(metrics, e, KPROF_TIME_WITNESS)->mean;
    for (size_t i = 0; i < metrics->metrics.count; i++) /* the time is no witness where it is collected */
        if (strcmp(metrics->metrics.items[i], KPROF_TIME_WITNESS) == 0)
            time_ns = e->values[i];
    if (!(range->beside > 0) || !(range->mean > 0) || !(time_ns > 0) || kprof_launch_is_graph(record))
        return NAN;
    *share = fmin(1, (range->beside + CYCLES_AROUND_KERNEL) / range->mean);
    return (1 - *share) * time_ns;
}

/* Return 1 for a metric that is a time of the range, -1 for one that is per such a time, and 0 for all others. */
static int power_of_time(const char *name)
{
    static const struct {
        const char *part;
        int power;
    } rows[] = {
        {"__cycles_elapsed", 1},
        {"__cycles_in_frame", 1},
        {"__cycles_in_region", 1},
        {"__time_duration", 1},
        {"__time_active", 1},
        {".peak_sustained_elapsed", 1},
        {".peak_sustained_frame", 1},
        {".peak_sustained_region", 1},
        {".per_second", -1},
        {".per_cycle_elapsed", -1},
        {".per_cycle_in_frame", -1},
        {".per_cycle_in_region", -1},
        {".pct_of_peak_sustained_elapsed", -1},
        {".pct_of_peak_sustained_frame", -1},
        {".pct_of_peak_sustained_region", -1},
    };
    int power = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        power += strstr(name, rows[i].part) ? rows[i].power : 0;
    return power;
}

/* Reduce values of a pushed range to the share that its kernel takes. True when there are any such values. */
static bool scale_times(const kprof_chip_metrics *metrics, double share, double *values)
{
    bool found = false;
    for (size_t i = 0; i < metrics->metrics.count; i++) {
        int power = power_of_time(metrics->metrics.items[i]);
        values[i] *= power > 0 ? share : power < 0 ? 1 / share : 1;
        found = found || power != 0;
    }
    return found;
}

void kprof_deliver(const kprof_chip_metrics *metrics, const kprof_evaluation *e, kprof_launch_record *record,
                   const char *reason)
{
    double spreads_pct[KPROF_MAX_WITNESSES], share = 1;
    const char *const early = record->mode == KPROF_REPLAY_RANGE ? KPROF_TIME_OF_REPLAY : KPROF_BEGINS_EARLY;
    char with_note[KPROF_NOTE_BYTES + sizeof KPROF_BEGINS_EARLY + sizeof KPROF_TIME_OF_REPLAY];
    if (e->status != KPROF_OK) {
        kprof_deliver_launch(record, e->reason);
        return;
    }
    record->witness_count = 0;
    for (size_t w = 0; w < metrics->witnesses.count; w++) {
        if (!kprof_witness_compares(metrics, w))
            continue;
        /* How long a pushed range lasts depends on the host, differs from pass to pass, and is not the kernel's. */
        bool is_hosts = !e->automatic && strcmp(metrics->witnesses.items[w], KPROF_TIME_WITNESS) == 0;
        spreads_pct[record->witness_count++] = is_hosts ? NAN : kprof_witness_spread_pct(&e->witnesses[w]);
    }
    if (leave_out_patched(metrics, record, e->values) && !*reason)
        reason = NOT_IN_GRAPHS;
    double lead_ns = e->automatic ? 0 : find_lead_ns(metrics, e, record, &share);
    if (!e->automatic && scale_times(metrics, share, e->values) && isnan(lead_ns)) {
        snprintf(with_note, sizeof with_note, "%s%s%s", reason, *reason ? "; " : "", early);
        reason = with_note;
    }
    record->range_lead_ns = lead_ns > 0 ? (uint64_t)lround(lead_ns) : 0;
    record->values = e->values;
    record->value_count = (uint32_t)metrics->metrics.count;
    record->witness_spreads_pct = spreads_pct;
    kprof_deliver_launch(record, reason);
}

/* errno says why not. */
static bool write_file(const char *path, const char *content, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    const bool is_written = kprof_write_all(fd, content, size) == size;
    const int reason = errno;
    const bool is_closed = close(fd) == 0;
    if (!is_written)
        errno = reason;
    return is_written && is_closed;
}

void kprof_deliver_image(const kprof_profiler *profiler, const kprof_launch_record *launch)
{
    const char *dir = kprof_engine.process.config.counter_data_dir;
    if (!dir)
        return;
    char path[PATH_MAX];
    size_t size;
    const char *image = kprof_engine.device->profiler_image(profiler, &size);
    snprintf(path, sizeof path, "%s/%d-%llu.counterdata", dir, (int)getpid(), (unsigned long long)launch->launch);
    if (!write_file(path, image, size))
        kprof_log(KPROF_LOG_WARNING, "counter data cannot be kept in %s: %m", path);
}
