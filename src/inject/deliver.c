/* Turns a measured batch into records, and keeps the counter data images of single launches. */
#include "inject/batch_private.h"

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

void kprof_deliver_reason(const char *reason)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->launches[i].chosen)
            batch->listener->done(&batch->launches[i].record, reason);
}

/* Counters of patched code see nothing of a graph as a whole, whose kernels were made before. */
#define NOT_IN_GRAPHS "counters of code that is patched into kernels do not see those of a graph as a whole"

/* Values that such counters would make become NaN; true when there are any. */
static bool leave_out_patched(const kprof_chip_metrics *metrics, const kprof_launch_record *record, double *values)
{
    bool found = false;
    for (size_t i = 0; i < metrics->metrics.count && kprof_launch_is_graph(record); i++) {
        if (!metrics->patched[i])
            continue;
        values[i] = NAN;
        found = true;
    }
    return found;
}

void kprof_deliver(const kprof_chip_metrics *metrics, const kprof_evaluation *e, kprof_launch_record *record,
                   const char *reason)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    double spreads_pct[KPROF_MAX_WITNESSES];
    if (e->status != KPROF_OK) {
        batch->listener->done(record, e->reason);
        return;
    }
    for (size_t w = 0; w < metrics->witnesses.count; w++)
        spreads_pct[w] = kprof_witness_spread_pct(&e->witnesses[w]);
    bool incomplete = leave_out_patched(metrics, record, e->values);
    record->values = e->values;
    record->value_count = (uint32_t)metrics->metrics.count;
    record->witness_count = (uint32_t)metrics->witnesses.count;
    record->witness_spreads_pct = spreads_pct;
    batch->listener->done(record, incomplete && !*reason ? NOT_IN_GRAPHS : reason);
}

/* Is the duration, or a share of elapsed time, among the values? */
static bool tells_time(const kprof_chip_metrics *metrics)
{
    static const char *const marks[] = {"elapsed", "per_second", "time_duration"};
    for (size_t i = 0; i < metrics->metrics.count; i++)
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
            if (strstr(metrics->metrics.items[i], marks[m]))
                return true;
    return false;
}

void kprof_deliver_all(uint32_t passes)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    bool is_early = !batch->automatic && tells_time(batch->metrics);
    char reason[sizeof batch->note + sizeof KPROF_BEGINS_EARLY + 2];
    snprintf(reason, sizeof reason, "%s%s%s", batch->note, is_early && batch->note[0] ? "; " : "",
             is_early ? KPROF_BEGINS_EARLY : "");
    for (size_t i = 0; i < batch->evaluations.count; i++) {
        const kprof_evaluation *evaluation = &batch->evaluations.items[i];
        if (evaluation->launch >= batch->replay_count)
            continue;
        kprof_launch_record *record = &batch->launches[evaluation->launch].record;
        if (evaluation->status == KPROF_OK) {
            record->mode = KPROF_REPLAY_BATCH;
            record->pass_count = passes;
        }
        kprof_deliver(batch->metrics, evaluation, record, reason);
    }
    for (size_t i = batch->replay_count; i < batch->count; i++)
        if (batch->launches[i].chosen)
            batch->listener->done(&batch->launches[i].record,
                                  "a replay computed something else than the application's own run, as what the "
                                  "host got before this launch shows; later batches end there");
}

/* errno says why not. */
static bool write_file(const char *path, const char *content, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    ssize_t written = 0;
    for (size_t at = 0; at < size && (written >= 0 || errno == EINTR); at += written > 0 ? (size_t)written : 0)
        written = write(fd, content + at, size - at);
    int reason = errno;
    bool closed = close(fd) == 0;
    if (written < 0)
        errno = reason;
    return written >= 0 && closed;
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
