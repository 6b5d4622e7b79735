/* A driver call of the application, as all of the injection library sees it. The vendor's types stay behind opaque
 * pointers, so that a simulated device can stand in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    KPROF_CALL_ALLOCATE,     /* brings device memory, which has to be saved */
    KPROF_CALL_FREE,         /* takes device memory away: closes it where that cannot be kept for replays */
    KPROF_CALL_POOL_FREE,    /* likewise, in the order of a stream, to a memory pool */
    KPROF_CALL_UNLOAD,       /* takes code away, likewise: handles of kernels may come back as other kernels */
    KPROF_CALL_MEMORY_INFO,  /* asks how much memory is free, or what pools keep: leaves it open, unless pools are held.
                              * What kprof keeps counts as free */
    KPROF_CALL_SETUP,        /* leaves it open, unless memory of the host is put back: makes streams, graphs and host
                              * memory, or takes these away; never beside a replay */
    KPROF_CALL_CODE,         /* leaves it open: loads code, looks for functions or sets limits, never beside a replay */
    KPROF_CALL_WAIT,         /* waits for the GPU or asks how far it is, and changes nothing */
    KPROF_CALL_HARMLESS,     /* neither tells of the GPU's progress nor changes memory */
    KPROF_CALL_ORDER,        /* likewise, and later work of a stream, or of several, waits for other work */
    KPROF_CALL_VALUE_WAIT,   /* later work of a stream waits for a value in memory, which may be written later: leaves
                              * it open, and replays leave it out */
    KPROF_CALL_MIGRATE,      /* moves managed memory between host and device, in the order of a stream, and changes
                              * none: leaves it open once kprof knows what the host wrote there */
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
    uint32_t correlation; /* the number of the call in records of activities */
    bool is_told;         /* a trace tells of it; set where the hooks want to see calls */
    /* The stream of a launch, a transfer, or an allocation in a stream's order, or the one that waits, in a form that
     * any thread may use. NULL is the legacy default stream, but for an allocation. Where an allocation has NULL, its
     * memory is there on return. */
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

/* One node of a graph, as the call that would do the same by itself, CUPTI's number of it, and the number that was
 * given for it when it was made. */
typedef struct kprof_graph_call {
    kprof_call call;
    uint64_t node;
    uint32_t note; /* 0: none */
} kprof_graph_call;

/* These bits say who shares memory that the GPU reaches with the process, and whether work may wait for the host. Once
 * set, a bit stays. */
typedef enum kprof_sharing {
    KPROF_SHARES_WITH_HOST = 1,    /* pinned or registered memory: the proof tells which launches reach it */
    KPROF_SHARES_WITH_DEVICES = 2, /* peer, exported or imported memory: other GPUs or other processes */
    KPROF_WAITS_FOR_HOST = 4,      /* not memory: work that the GPU does only once the host lets it */
    KPROF_RUNS_HOST_CODE = 8,      /* CUDA's threads run functions of the application */
    KPROF_MAY_NOT_SAVE = 16,       /* not shared: memory that a snapshot does not hold */
    KPROF_MANAGED = 32,            /* memory that moves between host and device, which both reach at any time */
    KPROF_UNLISTED_HOST = 64,      /* memory of the host that no list has */
    KPROF_MANAGED_STAYS = 128,     /* managed memory, which stays on the host while a batch is open */
} kprof_sharing;

/* Memory that kernels of a context reach. */
typedef struct kprof_span {
    uint64_t address;
    size_t size_bytes;
} kprof_span;
