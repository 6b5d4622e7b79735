/* Three ways, the best that is safe: one pass needs no replay; where all memory that the kernel can change can be
 * saved, kprof replays, with caches flushed before each pass; else CUPTI replays inside the launch. */
#include "inject/replay.h"

#include "core/log.h"
#include "cupti/snapshot.h"
#include "inject/contexts.h"
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

typedef struct replay {
    kprof_profiled_context *context;
    kprof_snapshot *snapshot; /* NULL: nothing is restored */
    uint32_t passes;
    char reason[512];
} replay;

static __thread replay current; /* of the launch that this thread is in */

static void note(const char *text, const char *why)
{
    snprintf(current.reason, sizeof current.reason, "%s: %s", text, why);
}

static void prepare_flush(const kprof_replay_launch *launch)
{
    kprof_profiled_context *context = current.context;
    if (!launch->flush_caches || context->flush || context->flush_failed)
        return;
    context->flush_failed = kprof_flush_open(&context->flush) != KPROF_OK;
}

static kprof_status flush(const kprof_replay_launch *launch)
{
    if (!launch->flush_caches)
        return KPROF_OK;
    if (current.context->flush)
        return kprof_flush_run(current.context->flush);
    note("caches were not flushed before each pass", "the device had no room for it");
    return KPROF_OK;
}

static kprof_status start_pass(kprof_replay_launch *launch)
{
    kprof_status status = flush(launch);
    if (status == KPROF_OK)
        status = kprof_profiler_start(current.context->profiler);
    if (status == KPROF_OK)
        launch->pass_started(++current.passes);
    return status;
}

static kprof_status begin_cupti_replay(kprof_replay_launch *launch, const char *why)
{
    note(launch->flush_caches ? "CUPTI replayed the kernel, without flushing caches" : "CUPTI replayed the kernel",
         why);
    launch->record.mode = KPROF_REPLAY_CUPTI_KERNEL;
    kprof_status status = kprof_profiler_begin(current.context->profiler, KPROF_PROFILER_CUPTI_REPLAYS, 1);
    return status == KPROF_OK ? kprof_profiler_start(current.context->profiler) : status;
}

static kprof_status begin_own_replay(kprof_replay_launch *launch)
{
    launch->record.mode = KPROF_REPLAY_BATCH;
    kprof_status status = kprof_profiler_begin(current.context->profiler, KPROF_PROFILER_CALLER_REPLAYS, 1);
    if (status == KPROF_OK)
        status = start_pass(launch);
    if (status == KPROF_OK)
        return KPROF_OK;
    kprof_snapshot_free(current.snapshot);
    current.snapshot = NULL;
    return status;
}

kprof_status kprof_replay_enter(kprof_replay_launch *launch)
{
    const kprof_call *call = launch->call;
    current = (replay){0};
    launch->record.reason = current.reason;
    kprof_status status = kprof_target_synchronize();
    if (status == KPROF_OK)
        status = kprof_contexts_open(call->context, launch->metrics, &current.context);
    if (status != KPROF_OK)
        return status;
    prepare_flush(launch);
    if (launch->metrics->pass_count <= 1)
        return begin_own_replay(launch);
    const char *side_effect = kprof_target_side_effect(call);
    if (side_effect)
        return kprof_fail(KPROF_NOT_COLLECTED, "the kernel cannot be replayed: %s", side_effect);
    void *function = kprof_target_function(call);
    if (!function)
        return begin_cupti_replay(launch, "the launch cannot be repeated through the driver");
    if (kprof_snapshot_take(call->context, function, call->kernel_name, &current.snapshot) != KPROF_OK)
        return begin_cupti_replay(launch, kprof_process_reason(KPROF_UNSUPPORTED));
    return begin_own_replay(launch);
}

static kprof_status run_pass(kprof_replay_launch *launch, bool *more)
{
    kprof_status status = kprof_snapshot_restore(current.snapshot);
    if (status == KPROF_OK)
        status = start_pass(launch);
    if (status != KPROF_OK)
        return status;
    status = kprof_target_relaunch(launch->call);
    if (status == KPROF_OK)
        status = kprof_target_synchronize();
    kprof_status stopped = kprof_profiler_stop(current.context->profiler, more);
    return status == KPROF_OK ? stopped : status;
}

/* A pass failed half-way: put memory back and run the kernel once, unmeasured. */
static void recover(const kprof_replay_launch *launch)
{
    kprof_status status = kprof_snapshot_restore(current.snapshot);
    if (status == KPROF_OK)
        status = kprof_target_relaunch(launch->call);
    if (status == KPROF_OK)
        status = kprof_target_synchronize();
    if (status != KPROF_OK)
        kprof_process_disarm(status, "a replay failed, and the memory that it changed could not be put right");
}

static kprof_status run_passes(kprof_replay_launch *launch)
{
    bool more = false;
    bool refused = launch->call->failed; /* nothing ran: there is nothing to repeat */
    kprof_status status = kprof_target_synchronize();
    kprof_status stopped = kprof_profiler_stop(current.context->profiler, &more);
    if (status != KPROF_OK || refused)
        return kprof_fail(KPROF_NOT_COLLECTED, refused ? "the driver refused the launch" : "the kernel failed");
    if (stopped != KPROF_OK || !current.snapshot)
        return stopped;
    while (more && status == KPROF_OK)
        status = run_pass(launch, &more);
    if (status != KPROF_OK)
        recover(launch);
    return status;
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

/* For those who want to evaluate the counters themselves; failing to is no reason to drop the launch. */
static void keep_image(const kprof_replay_launch *launch)
{
    const char *dir = kprof_this_process.config.counter_data_dir;
    if (!dir)
        return;
    char path[PATH_MAX];
    size_t size;
    const char *image = kprof_profiler_image(current.context->profiler, &size);
    snprintf(path, sizeof path, "%s/%d-%llu.counterdata", dir, (int)getpid(),
             (unsigned long long)launch->record.launch);
    if (!write_file(path, image, size))
        kprof_log(KPROF_LOG_WARNING, "counter data cannot be kept in %s: %m", path);
}

kprof_status kprof_replay_leave(kprof_replay_launch *launch)
{
    kprof_profiler *profiler = current.context->profiler;
    bool more, cupti_replays = launch->record.mode == KPROF_REPLAY_CUPTI_KERNEL;
    kprof_status status = cupti_replays ? kprof_profiler_stop(profiler, &more) : run_passes(launch);
    kprof_snapshot_free(current.snapshot);
    if (status == KPROF_OK)
        status = kprof_profiler_decode(profiler, 1);
    if (status == KPROF_OK)
        status = kprof_profiler_read(profiler, 0, current.context->values);
    if (status != KPROF_OK) {
        launch->record.mode = KPROF_REPLAY_NONE;
        return status;
    }
    keep_image(launch);
    launch->record.pass_count = cupti_replays ? launch->metrics->pass_count : current.passes;
    launch->record.values = current.context->values;
    launch->record.value_count = (uint32_t)launch->metrics->metrics.count;
    return KPROF_OK;
}

void kprof_replay_pass_started(kprof_replay_launch *launch)
{
    if (launch->record.mode == KPROF_REPLAY_CUPTI_KERNEL && current.passes < launch->metrics->pass_count)
        launch->pass_started(++current.passes);
}

void kprof_replay_context_ending(void *context)
{
    kprof_contexts_forget(context);
}
