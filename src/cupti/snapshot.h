/* Keeps the device memory of a context around a batch, twice. The start, as it was before the batch, is put back before
 * each replay. The end, as the application's own run left it, is put back after the last replay, so that the
 * application sees its own run alone. Host memory is saved and written only where that is asked for. Calls are for one
 * thread at a time, with the context current; they wait for work of kprof's own stream only, with a limit. */
#pragma once

#include "core/status.h"
#include "cupti/driver_call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of a context: it keeps device memory from batch to batch. */
typedef struct kprof_snapshot kprof_snapshot;

/* UNSUPPORTED, with a logged reason, when the driver does not take what is needed to copy memory. */
kprof_status kprof_snapshot_open(void *context, kprof_snapshot **out) KPROF_MUST_CHECK;
/* Save the start: the application's allocations, with those of the host's memory if `with_host`, and the module
 * variables that variables.h knows. The context must be idle. UNSUPPORTED when not everything can be saved, NO_MEMORY
 * when the device has no space for it. */
kprof_status kprof_snapshot_take(kprof_snapshot *snapshot, bool with_host) KPROF_MUST_CHECK;
/* Add memory and variables that came since; nothing that the application submits later may have used them. `stream`:
 * the one in whose order the memory came, NULL when it is there already. NOT_COLLECTED when the work before it
 * does not end within 80 ms. */
kprof_status kprof_snapshot_cover(kprof_snapshot *snapshot, void *stream) KPROF_MUST_CHECK;
/* From inside the enter hook of a call that frees memory or unloads a module: keep that until the batch is over, for
 * replays. The call takes something else away, or its pool keeps all that is freed to it. For a module the context must
 * be idle. False where that cannot be done: the call must then come after the batch. */
bool kprof_snapshot_keep_freed(kprof_snapshot *snapshot, const kprof_call *call);
/* From now on the snapshot has no memory of the host, although _take saved some. The context may be at work. False when
 * it has to keep that, as more memory came since. */
bool kprof_snapshot_leave_host(kprof_snapshot *snapshot);
/* Note what memory is now, for _follow, with the context idle. `is_start`: nothing has run since _take. NO_MEMORY when
 * there is no space for what differs from the start. */
kprof_status kprof_snapshot_watch(kprof_snapshot *snapshot, bool is_start) KPROF_MUST_CHECK;
/* A launch in `stream` is the only one at work since the start was saved, or since _watch, and nothing but what comes
 * behind it in that stream may begin until _has_followed. If `becomes_start`, the start becomes the memory as that
 * launch leaves it; where the launch writes what takes new space to keep, _record_end fails. Does not wait. */
kprof_status kprof_snapshot_follow(kprof_snapshot *snapshot, void *stream, bool becomes_start) KPROF_MUST_CHECK;
/* Has that launch ended, and is the start what it left? Does not wait. */
bool kprof_snapshot_has_followed(const kprof_snapshot *snapshot);
/* From inside a call that takes memory away: kprof's work behind a launch that has not ended must not touch any. What
 * _follow was to find out is lost. Waits for that work where the launch has ended. Thread-safe, as _has_followed is. */
void kprof_snapshot_stop_following(kprof_snapshot *snapshot);
/* After that: did the launch change memory since _watch? Once for each _watch. */
kprof_status kprof_snapshot_has_changed(kprof_snapshot *snapshot, bool *changed) KPROF_MUST_CHECK;
/* Is all of this memory in the start? */
bool kprof_snapshot_holds(const kprof_snapshot *snapshot, uint64_t address, size_t size_bytes);
/* Rows that a transfer moves: `width` bytes each, and nothing between them. */
typedef struct kprof_rows {
    uint64_t to, from;
    size_t to_pitch_bytes, from_pitch_bytes; /* of several rows */
    size_t width, height;
} kprof_rows;
/* Return space on the device, until _drop, for what a transfer moves, row behind row; 0 when there is none, or when the
 * transfers of the batch would take more than a quarter of what was free. */
uint64_t kprof_snapshot_space(kprof_snapshot *snapshot, size_t width, size_t height);
/* Return page-locked memory of the host, until _drop; 0 when there is none, when it would take more than a quarter of
 * what the machine has left, or when the batch would have more than 1 GiB of it. `is_scratch`: what is there is of no
 * use, and all who ask so share it. */
uint64_t kprof_snapshot_locked_space(kprof_snapshot *snapshot, size_t size_bytes, bool is_scratch);
/* Is what is at `from` the same as what is kept at `to`, in _space? Waits for all work of kprof's stream. */
kprof_status kprof_snapshot_compare(kprof_snapshot *snapshot, const kprof_rows *rows, bool *same) KPROF_MUST_CHECK;
/* Does it hold memory of the host? */
bool kprof_snapshot_has_host(const kprof_snapshot *snapshot);
/* Memory as it was at one time of the batch, in space of the snapshot's. */
typedef struct kprof_kept_memory kprof_kept_memory;
/* Keep what is in these spans, which must be saved, as it is now. The caller frees *out, NULL after a failure, before
 * the snapshot is dropped. NO_MEMORY when it takes too much space. */
kprof_status kprof_snapshot_keep(kprof_snapshot *snapshot, const kprof_span *spans, size_t count,
                                 kprof_kept_memory **out) KPROF_MUST_CHECK;
/* Keep all memory as it is now, with the context idle, by what differs from the start. As _keep. */
kprof_status kprof_snapshot_keep_all(kprof_snapshot *snapshot, kprof_kept_memory **out) KPROF_MUST_CHECK;
/* In kprof's stream: put it there again. Once all memory was compared behind a replay, what _keep_all has kept is not
 * put where neither the own run nor a replay has changed anything. */
kprof_status kprof_snapshot_put(kprof_snapshot *snapshot, const kprof_kept_memory *kept) KPROF_MUST_CHECK;
/* Return how many kernels _put launches. */
unsigned kprof_kept_memory_kernels(const kprof_kept_memory *kept);
void kprof_kept_memory_free(kprof_kept_memory *kept);
/* In kprof's stream: repeat a copy within the device, and a set of rows of elements of 1, 2 or 4 bytes. */
kprof_status kprof_snapshot_copy(kprof_snapshot *snapshot, const kprof_rows *rows) KPROF_MUST_CHECK;
typedef struct kprof_set {
    uint64_t to;
    size_t pitch_bytes, width, height;
    unsigned value, element_bytes;
} kprof_set;
kprof_status kprof_snapshot_set(kprof_snapshot *snapshot, const kprof_set *set) KPROF_MUST_CHECK;
/* Record the end, as the difference to the start. The context must be idle, here and in what follows. NO_MEMORY when
 * there is no space for it. */
kprof_status kprof_snapshot_record_end(kprof_snapshot *snapshot) KPROF_MUST_CHECK;
/* After _record_end: put the start back. If `everywhere`, all memory is compared with it; else, where most of memory
 * does not change, only the 16 MiB around what _record_end or an earlier call has found changed. */
kprof_status kprof_snapshot_restore_start(kprof_snapshot *snapshot, bool everywhere) KPROF_MUST_CHECK;
/* After _record_end only. The application's own run may go on then, until its end is recorded once more. */
kprof_status kprof_snapshot_restore_end(kprof_snapshot *snapshot) KPROF_MUST_CHECK;
/* The batch is over: forget start and end, and keep kprof's own device memory. What the application has freed or
 * unloaded meanwhile goes if the context is idle, so that nothing waits; else later, by _take or _release. */
void kprof_snapshot_drop(kprof_snapshot *snapshot, bool is_idle);
/* Give the device memory back to the application. The context must be idle, and nothing saved. */
void kprof_snapshot_release(kprof_snapshot *snapshot);
/* Return how many modules that snapshots kept are unloaded by now: handles of kernels may come back. Thread-safe. */
unsigned kprof_snapshot_unloads(void);
/* Device memory that _release gives back, or would once the copies are not needed any more. */
size_t kprof_snapshot_held_bytes(const kprof_snapshot *snapshot);
/* `lives`: the context still does, so that what kprof has in it must go. */
void kprof_snapshot_close(kprof_snapshot *snapshot, bool lives);

/* Read device memory now, beside what runs, for 80 ms at most: the snapshot's, until the next call. NULL where it
 * cannot be read in time, or size_bytes is 0 or over KPROF_PEEK_BYTES. Not during a capture. */
#define KPROF_PEEK_BYTES 4096
const void *kprof_snapshot_peek(kprof_snapshot *snapshot, uint64_t address, size_t size_bytes);
/* kprof's own stream in the context: replays run there. */
void *kprof_snapshot_stream(const kprof_snapshot *snapshot);
/* Replays may have further streams, which run beside one another. */
#define KPROF_LANES 8
typedef struct kprof_lane {
    unsigned number;    /* 0: kprof_snapshot_stream */
    unsigned waits_for; /* what comes in it waits for all that these, as bits, have so far */
} kprof_lane;
/* Return the lane's stream; NULL where the driver makes none, or does not order it. */
void *kprof_snapshot_lane(kprof_snapshot *snapshot, kprof_lane lane);
