/* A launch or a transfer kept for replays: its arguments copied while the application's call is under way. */
#pragma once

#include "cupti/driver_call.h"
#include "cupti/snapshot.h"

typedef struct kprof_operation kprof_operation;

/* Copy a launch, of a kernel or of a named graph as a whole, or a transfer from inside its enter hook; NULL when it
 * cannot be repeated: the arguments of a launch cannot be copied, its stream is another context's, or a transfer
 * reaches memory that `snapshot` does not hold or is too large. kprof first keeps on the device what a transfer takes
 * to the host, and what a node of a graph brings from the host. If the latter is pageable memory, the context must be
 * idle. `snapshot`: of transfers only. */
kprof_operation *kprof_operation_copy(const kprof_call *call, kprof_snapshot *snapshot);
/* Copy what the host may have written to managed memory since a kernel or kprof last used it, and memory of the host if
 * the snapshot holds that: *out writes it again, and is NULL where the host can have written nothing. The snapshot's
 * context must be current, and idle since then. A failure if kprof cannot find that out or keep it. */
kprof_status kprof_operation_keep_host(kprof_snapshot *snapshot, kprof_operation **out) KPROF_MUST_CHECK;
/* Copy all memory that the snapshot has, as it is now: *out, the caller's, writes it again. The snapshot's context must
 * be current, and idle. A failure if there is no space. */
kprof_status kprof_operation_keep_all(kprof_snapshot *snapshot, kprof_operation **out) KPROF_MUST_CHECK;
/* Call this in the leave hook of a call that succeeded: keep on the device what a transfer has brought from the host,
 * and what a node of a graph has brought to it. */
kprof_status kprof_operation_returned(kprof_operation *operation) KPROF_MUST_CHECK;
/* Repeat it in the snapshot's stream; its context must be current. NOT_COLLECTED, with a logged reason, when a transfer
 * to the host would take something else than it did in the application's own run: what follows may depend on that. */
kprof_status kprof_operation_run(const kprof_operation *operation, kprof_snapshot *snapshot) KPROF_MUST_CHECK;
/* Before _run_counted: have the lane's stream, and page-locked memory for what a transfer moves from the host or to it,
 * and put there what came from the host. The context must be idle. NOT_COLLECTED when there is none, or all transfers
 * of the batch that come from the host would take more than 1 GiB. */
kprof_status kprof_operation_prepare_counted(kprof_operation *operation, kprof_snapshot *snapshot,
                                             unsigned lane) KPROF_MUST_CHECK;
/* The same as _run within a range that counts all that runs in it, and in a lane: the driver sets and copies, as in the
 * application's own run, and nothing is compared. A failure where the driver refuses to, as the memory has been given
 * back since. What the host did is put there in lane 0, whatever `lane` is. */
kprof_status kprof_operation_run_counted(const kprof_operation *operation, kprof_snapshot *snapshot,
                                         kprof_lane lane) KPROF_MUST_CHECK;
/* Does the snapshot hold all memory that a graph sets or copies? For other operations _copy has found that out. */
bool kprof_operation_is_saved(const kprof_operation *operation, const kprof_snapshot *snapshot);
/* The number of kernels that kprof_operation_run launches, transfers included; KPROF_MANY_KERNELS: a graph's. */
#define KPROF_MANY_KERNELS SIZE_MAX
size_t kprof_operation_kernels(const kprof_operation *operation);
/* Return how many bytes it transfers to the host; 0 for any other operation. */
size_t kprof_operation_output_bytes(const kprof_operation *operation);
typedef enum kprof_awaited {
    KPROF_NOT_AWAITED, /* the host does not wait in the call, or perhaps not */
    KPROF_AWAITED,
    KPROF_AWAIT_TIMED_OUT, /* as far as kprof knows, the work has not ended */
} kprof_awaited;

/* Does a transfer set or copy memory of the host alone, which no replay touches? */
bool kprof_transfer_is_hosts(const kprof_call *call);
/* Call this before a transfer of the application's. If the host waits in it for earlier work of its stream, wait here
 * for that work, without a limit. If the host may or may not wait, wait for `perhaps_ns` at most; less than 0: not at
 * all. While a thread waits in a copy, others cannot launch: it holds the gate if the copy joins, and the driver keeps
 * them out once a profiler has the context. Not during a capture. */
kprof_awaited kprof_transfer_await_start(const kprof_call *call, int64_t perhaps_ns);
void kprof_operation_free(kprof_operation *operation);
/* The application has changed how a function runs. From now on launches are repeated with what their function had. */
void kprof_operations_note_setting(void);

/* Does an argument of a launch point to host memory, as far as arguments show? */
bool kprof_operation_sees_host(const kprof_operation *operation);
/* Does memory of the device that an argument points to begin with an address of the host's memory? True also where it
 * cannot be read. It is read now, beside what runs, as kprof_snapshot_peek does: what queued work is to write there is
 * not known. Not during a capture. */
bool kprof_operation_leads_to_host(const kprof_operation *operation, kprof_snapshot *snapshot);
