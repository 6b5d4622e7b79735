/* How the injection library sees CUDA: every driver call as it enters and leaves, and what launches, devices and
 * kernels are. The vendor's types stay behind opaque pointers, so that a simulated device can stand in. */
#pragma once

#include "core/status.h"
#include "cupti/driver_call.h"
#include "spool/record.h"

typedef struct kprof_target_hooks {
    bool is_brief;     /* only calls that end a context or change memory matter, and no code does */
    bool sees_calls;   /* also see calls that a trace tells of, and mark them */
    bool sees_order;   /* also see calls by which a stream waits for others */
    bool takes_guests; /* another tool of the process may use CUPTI while nothing but lists is followed */
    void (*enter)(const kprof_call *call);
    void (*leave)(const kprof_call *call);
    void (*driver_started)(void); /* within the call that starts it, on its thread */
    void (*context_created)(void *context);
    void (*context_ending)(void *context); /* NULL: nobody wants to know */
    /* The application calls cudaProfilerStart or cudaProfilerStop, or the driver's functions that these end in: CUPTI
     * may report one call twice. NULL: nobody wants to know. */
    void (*profiler_called)(bool starts);
    /* The calling thread makes a kernel node of a graph, by capturing a launch or by itself. Returns a number to keep
     * for the node, 0: none. NULL: nobody wants to know. */
    uint32_t (*node_made)(void);
} kprof_target_hooks;

/* Do the stream and the legacy default stream wait for one another? Also true where that is not known. */
bool kprof_target_stream_blocks(void *stream);

/* Become CUPTI's subscriber and have the hooks called on the application's threads, for every driver call.
 * COUNTERS_BUSY when another tool is the subscriber already. */
kprof_status kprof_target_start(const kprof_target_hooks *hooks) KPROF_MUST_CHECK;

/* Have the hooks called, or no longer, for launches and for all that changes nothing which kprof lists. After _start
 * they are called. They are called for what changes lists all the time. Whoever calls this holds no lock that hooks
 * wait for. Calls that are under way may be told on entering alone, or on leaving alone. COUNTERS_BUSY when a guest
 * records activities, INTERNAL when CUPTI refuses. */
kprof_status kprof_target_follow(bool follow) KPROF_MUST_CHECK;

/* Ordinal of the context's device, which must be current on this thread. */
kprof_status kprof_target_current_device(uint32_t *device) KPROF_MUST_CHECK;
/* Is the context the device's primary one, which lives until the process ends if nobody resets the device? */
bool kprof_target_is_primary(const void *context, uint32_t device);
/* Fill grid, block, cluster, shared memory, context and stream of a launch, from inside its enter hook. */
void kprof_target_shape(const kprof_call *call, kprof_launch_record *out);
/* The same, and fill its occupancy, too. */
void kprof_target_launch(const kprof_call *call, kprof_launch_record *out);
/* Fill registers and memory of a launch's kernel, but not its number and name; what the driver does not tell stays 0.
 */
void kprof_target_kernel(const kprof_call *call, kprof_kernel_record *out);
/* From now on snapshots of the context hold the variables of the module that a launch's kernel is in. To be called
 * before any kernel of the module has run there: it may leave their addresses to kernels of other modules. */
void kprof_target_note_variables(const kprof_call *call);
/* Load the other kernels of the module that a launch's kernel is in, unless they are very many, for 40 ms at most.
 * Otherwise the driver loads a kernel at its first launch: if that comes behind a kernel that waits, nothing that
 * follows in any stream runs before the waiting one has ended. To be called while the context is idle. */
void kprof_target_load_beside(const kprof_call *call);
/* The kernels and transfers of a graph launch, in an order that keeps their dependencies; valid until the hook returns.
 * NULL when they are not known, or the graph does what no such call can: `*why` is the reason, and NULL where the graph
 * launches no kernel at all. */
const kprof_graph_call *kprof_target_graph(const kprof_call *call, size_t *count, const char **why);
/* Prepare a graph launch so that the functions here take it like that of a kernel. `out` is the same call with the
 * executable graph as its function, and with a name, "CUDAGraph<12 kernels, 3fa2c1>", that graphs of the same kernels
 * share; valid until the hook returns. False for a graph that launches no kernel, and for a launch of kernels on
 * several devices. */
bool kprof_target_name_graph(const kprof_call *call, kprof_call *out);
/* Is this the launch of a graph that may wait for functions of the host, for events, or for what is not known? */
bool kprof_target_awaits(const kprof_call *call);
/* Is a stream of this process being captured into a graph? Nothing may be synchronised or saved meanwhile. */
bool kprof_target_capturing(void);
/* Is this launch one that is captured, not run? */
bool kprof_target_launch_captured(const kprof_call *call);
/* Does this launch run in another context than the current one, whose counters would not see it? */
bool kprof_target_runs_elsewhere(const kprof_call *call);
/* The driver's own handle of the call's kernel: NULL when it tells none, or when the launch cannot be repeated, being
 * made through one of the driver's oldest entry points. */
void *kprof_target_function(const kprof_call *call);
/* Return the kprof_sharing bits of the process. */
unsigned kprof_target_sharing(void);
/* Has the device space for what the call is about to allocate, or for as much local memory, and some to spare? */
bool kprof_target_has_space(const kprof_call *call, size_t local_bytes);
/* Add to what a call that asks for free memory has answered, as it leaves: memory that kprof would give back. */
void kprof_target_add_free(const kprof_call *call, size_t size_bytes);
/* Does the pool that gets the freed memory keep it, so that a replay can use it? */
bool kprof_target_pool_keeps(const kprof_call *call);
/* Do pools keep memory for the open batch that the application has not asked them to keep? */
bool kprof_target_holds_pools(void);
/* Nothing will be replayed that uses memory of pools: have them give back what the application does not ask them to
 * keep. */
void kprof_target_let_go_of_pools(void);
/* Are this thread's calls from now on kprof's own? Returns what they were. Calls within hooks are its own anyway. */
bool kprof_target_set_own(bool own);
/* Return why a replay may not save and restore managed memory now, as "other threads of ..."; NULL if it may, until the
 * calling thread leaves the call that it is in. Needs a current context. */
const char *kprof_target_managed_obstacle(void);
/* Return why a replay may not save and restore the memory of the host that the GPU reaches, likewise. */
const char *kprof_target_host_obstacle(void);
/* Make a context current on this thread, unless it is; true when _leave_context has to undo it. */
bool kprof_target_enter_context(void *context);
void kprof_target_leave_context(void);
/* Return why replaying this launch would do more than the launch itself, or something else, as "it calls vprintf, which
 * ..."; NULL if it would not. The text is valid until the thread's next call of this. */
const char *kprof_target_side_effect(const kprof_call *call);
/* If this kernel is replayed, is printing the only side effect? */
bool kprof_target_only_prints(const kprof_call *call);
/* Wait for all work of the current context. INTERNAL when the context is in error: the application's error, which it
 * will see itself. */
kprof_status kprof_target_synchronize(void) KPROF_MUST_CHECK;
