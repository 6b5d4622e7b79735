/* How the injection library sees CUDA: every driver call as it enters and leaves, and what launches, devices and
 * kernels are. The vendor's types stay behind opaque pointers, so that a simulated device can stand in. */
#ifndef KPROF_CUPTI_TARGET_H
#define KPROF_CUPTI_TARGET_H

#include "core/status.h"
#include "spool/record.h"

/* Says what a call means for an open batch. */
typedef enum kprof_call_kind {
    KPROF_CALL_OTHER = 0,    /* closes it: what a replay cannot repeat or survive; every unknown call is one of these */
    KPROF_CALL_LAUNCH,       /* one kernel launch, which can be measured */
    KPROF_CALL_TRANSFER,     /* sets memory, or copies it: repeated where that is possible */
    KPROF_CALL_GRAPH_LAUNCH, /* kernels of a CUDA graph */
    KPROF_CALL_CAPTURE,      /* begins to capture a stream: closes it, but where nothing runs beside captures */
    KPROF_CALL_CAPTURE_END,  /* leaves it open */
    KPROF_CALL_STOP,         /* ends a context: closes it */
    KPROF_CALL_GRAPH_CHANGE, /* changes, ends or uploads an executable graph: what a batch repeats node by node stays */
    KPROF_CALL_UNLOAD,       /* takes kernels away: their handles may come back as other kernels */
    KPROF_CALL_ALLOCATE,     /* brings device memory, which has to be saved */
    KPROF_CALL_FREE,         /* takes device memory away: closes it where that memory cannot be kept for replays */
    KPROF_CALL_POOL_FREE,    /* likewise, in the order of a stream, to a memory pool */
    KPROF_CALL_MEMORY_INFO,  /* asks how much memory is free, or what pools keep: leaves it open, unless pools are held.
                              * What kprof keeps counts as free */
    KPROF_CALL_SETUP,        /* leaves it open: loads code, makes streams and host memory; never beside a replay */
    KPROF_CALL_WAIT,         /* waits for the GPU or asks how far it is, and changes nothing */
    KPROF_CALL_HARMLESS,     /* neither tells of the GPU's progress nor changes memory */
} kprof_call_kind;

/* Says what matters of a node of a graph: nothing of kprof's runs right before or behind it. */
typedef enum kprof_node_trait {
    KPROF_NODE = 1,                /* the call stands for a node */
    KPROF_NODE_READS_PAGEABLE = 2, /* it copies from pageable memory of the host */
    KPROF_NODE_READS_RESULTS =
        4,                  /* it copies from the host what an earlier launch of its graph may still write there */
    KPROF_NODE_IS_TOLD = 8, /* it copies to the host, which gets to know of that before the graph has ended */
    KPROF_NODE_HIDES_OUTPUT = 16,   /* it copies to the host, from memory that later nodes may write */
    KPROF_NODE_CHANGES_STREAM = 32, /* it copies from or to the host, and its graph was in another stream before */
} kprof_node_trait;

/* One driver call of the application. Pointers are valid until the hook returns. */
typedef struct kprof_call {
    kprof_call_kind kind;
    const char *name; /* "cuLaunchKernel" */
    void *context;    /* current context, NULL when there is none */
    uint32_t context_id;
    uint32_t callback_id; /* which of the driver's functions it is */
    /* The stream of a launch, a transfer, or an allocation in a stream's order, in a form that any thread may use. NULL
     * is the legacy default stream of the first two. Where an allocation has NULL, its memory is there on return. */
    void *stream;
    bool is_threads_stream; /* that is the default stream of the calling thread: to another thread it is another one */
    /* These are set for a launch as it enters, and for a graph launch by kprof_target_name_graph: */
    void *function;          /* handle as the application passed it */
    const char *kernel_name; /* mangled */
    unsigned node_traits;    /* kprof_node_trait bits, of a call that stands for a node of a graph */
    /* The device keeps here what else it knows of the call. It decodes that as the call enters, and once more as the
     * call leaves where something asks for it then. */
    const void *parameters;
    /* This is set on leaving only: */
    bool failed; /* the driver returned an error */
} kprof_call;

typedef struct kprof_target_hooks {
    void (*enter)(const kprof_call *call);
    void (*leave)(const kprof_call *call);
    void (*driver_started)(void); /* within the call that starts it, on its thread */
    void (*context_created)(void *context);
    void (*context_ending)(void *context);
    /* The application calls cudaProfilerStart or cudaProfilerStop, or the driver's functions that these end in: one
     * call may be told twice. */
    void (*profiler_called)(bool starts);
} kprof_target_hooks;

/* Become CUPTI's subscriber and have the hooks called on the application's threads, for every driver call.
 * COUNTERS_BUSY when another tool is the subscriber already. */
kprof_status kprof_target_start(const kprof_target_hooks *hooks) KPROF_MUST_CHECK;

/* Ordinal of the context's device, which must be current on this thread. */
kprof_status kprof_target_current_device(uint32_t *device) KPROF_MUST_CHECK;
/* Fill a device record; strings live as long as the process. */
kprof_status kprof_target_device(uint32_t device, kprof_device_record *out) KPROF_MUST_CHECK;
/* Fill grid, block, cluster, shared memory, stream and occupancy of a launch, from inside its enter hook. */
void kprof_target_launch(const kprof_call *call, kprof_launch_record *out);
/* Fill registers and memory of a launch's kernel, but not its number and name; what the driver does not tell stays 0.
 */
void kprof_target_kernel(const kprof_call *call, kprof_kernel_record *out);
/* From now on snapshots of the context hold the variables of the module that a launch's kernel is in. To be called
 * before any kernel of the module has run there: it may leave their addresses to kernels of other modules. */
void kprof_target_note_variables(const kprof_call *call);
/* One node of a graph, as the call that would do the same by itself, and CUPTI's number of it. */
typedef struct kprof_graph_call {
    kprof_call call;
    uint64_t node;
} kprof_graph_call;

/* The kernels and transfers of a graph launch, in an order that keeps their dependencies; valid until the hook returns.
 * NULL when they are not known, or the graph does what no such call can: `*why` is the reason, and NULL where the graph
 * launches no kernel at all. */
const kprof_graph_call *kprof_target_graph(const kprof_call *call, size_t *count, const char **why);
/* Make a graph launch one that the functions here take like that of a kernel: `out` is the same call with the
 * executable graph as its function and a name, "CUDAGraph<12 kernels, 3fa2c1>", that graphs of the same kernels share;
 * valid until the hook returns. False for a launch on several devices, which is none of a graph, and for a graph that
 * launches no kernel. */
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
/* These bits say with whom the process shares memory that the GPU reaches, and whether work may wait for the host. Once
 * set, a bit stays. */
typedef enum kprof_sharing {
    KPROF_SHARES_WITH_HOST = 1,    /* pinned or registered memory: the proof tells which launches reach it */
    KPROF_SHARES_WITH_DEVICES = 2, /* peer, exported or imported memory: other GPUs or other processes */
    KPROF_WAITS_FOR_HOST = 4,      /* not memory: work that the GPU does only once the host lets it */
    KPROF_RUNS_HOST_CODE = 8,      /* CUDA's threads run functions of the application */
    KPROF_MAY_NOT_SAVE = 16,       /* not shared: memory that a snapshot does not hold */
    KPROF_MANAGED = 32,            /* memory that moves between host and device, which both reach at any time */
    KPROF_UNLISTED_HOST = 64,      /* memory of the host that no list has */
} kprof_sharing;
unsigned kprof_target_sharing(void);
/* Has the device space for what the call is about to allocate, or for as much local memory, and some to spare? */
bool kprof_target_has_space(const kprof_call *call, size_t local_bytes);
/* Add to what a call that asks for free memory has answered, as it leaves: memory that kprof would give back. */
void kprof_target_add_free(const kprof_call *call, size_t size_bytes);
/* Does the pool to which the call frees keep the memory, so that a replay can use it? */
bool kprof_target_pool_keeps(const kprof_call *call);
/* Do pools keep memory for the open batch that the application has not asked them to keep? */
bool kprof_target_holds_pools(void);
/* Does the driver free what a hook has put in the place of a call's argument? Needs a current context at first. */
bool kprof_target_redirects_frees(void);
/* Are the calls that this thread makes from now on kprof's own? Returns what they were. Calls within hooks are its own
 * anyway. */
bool kprof_target_set_own(bool own);
/* Does a GPU of the process reach pageable memory of the host? */
bool kprof_target_reaches_pageable(void);
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
/* Is printing all that a replay of this launch of a kernel would do more? */
bool kprof_target_only_prints(const kprof_call *call);
/* Wait for all work of the current context. INTERNAL when the context is in error: the application's error, which it
 * will see itself. */
kprof_status kprof_target_synchronize(void) KPROF_MUST_CHECK;

#endif
