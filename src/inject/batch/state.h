/* The open batch, as all its stages know it: what it is, its launches and transfers, and the ranges of its
 * measurement. The stages are the files beside this one: opening, the own run, closing, comparing, replaying. Hold the
 * gate, except to read what is atomic. */
#pragma once

#include "cupti/operation.h"
#include "inject/contexts.h"
#include "inject/decision.h"
#include "inject/deliver.h"
#include "inject/kernels.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The launch has had no range yet. */
#define KPROF_NO_RANGE SIZE_MAX

/* The launch has a record of timeline.h. */
#define KPROF_TOLD_TIMELINE 0x100u

typedef struct kprof_open_launch {
    kprof_operation *operation; /* NULL where nothing is replayed */
    kprof_kernel *kernel;       /* NULL: a transfer */
    bool chosen;
    bool is_unwatched;          /* no proof of this batch tells whether its own run reached memory of the host */
    bool shares_range;          /* with the launch before it, which had not ended */
    size_t own_range;           /* around its own run, or that of its graph; KPROF_NO_RANGE: none */
    size_t range;               /* that measures it, if it is chosen */
    unsigned lane;              /* of a range that is repeated: where */
    unsigned waits_for;         /* likewise: for all that these lanes, as bits, have so far */
    kprof_launch_record record; /* of a chosen launch */
    uint32_t period;            /* of its samples, as a power of two; 0: none are to be taken any more */
    uint64_t interval_ns;       /* of its samples over time; 0: none are to be taken */
    size_t expected_samples;    /* over time; 0: not known */
    size_t timeline_pass;       /* the pass of samples over time that it needs next */
    unsigned told;              /* kinds of source.h that have a record of its instructions, as bits; KPROF_TOLD_ */
} kprof_open_launch;

/* Launches and transfers, in their order. */
typedef struct kprof_launch_list {
    kprof_open_launch *items; /* [capacity] */
    size_t count, capacity;
    size_t chosen;           /* how many of them were chosen */
    size_t entered;          /* how many of the last ones belong to the call that is under way */
    unsigned entered_traits; /* kprof_node_trait bits of these */
    int64_t chosen_ns;       /* when the last chosen launch came */
} kprof_launch_list;

/* The ranges of the batch, besides the one around all of it. */
typedef struct kprof_batch_ranges {
    size_t capacity;  /* how many the measurement holds */
    size_t least;     /* how many it must hold when the batch opens */
    size_t first;     /* the batch's first one; before it are those of samples */
    size_t count;     /* so far: the next one's index */
    size_t wanted;    /* how many there will be */
    uint64_t lenient; /* the proof's, from the first one on, in which it looks for writes alone: bits */
    uint64_t unread;  /* likewise: those that have nothing of the batch */
} kprof_batch_ranges;

/* The log shows where a batch's time went: milliseconds, summed over its passes. evaluate_ms is the wait for it. */
typedef struct kprof_batch_times {
    double save_ms, prepare_ms, open_ms, try_ms, wait_ms, keep_ms, restore_ms, start_ms, run_ms, stop_ms, decode_ms,
        source_ms, evaluate_ms, deliver_ms;
} kprof_batch_times;

/* These bits tell any thread, without the gate, what it may do while the batch is open. */
typedef struct kprof_batch_signs {
    atomic_bool open;
    atomic_bool records;           /* it is open, replayed, and takes launches and transfers */
    atomic_bool replays;           /* it is open, and replayed */
    atomic_bool sealed;            /* it is open, and takes nothing more: it closes as soon as its work has ended */
    atomic_bool window;            /* it is open, and one of multiplex.h */
    atomic_bool in_range;          /* it is open, and so is the range of the application that it repeats */
    atomic_bool saves_host;        /* it puts memory of the host back, and may have several launches */
    atomic_uint sharing;           /* kprof_sharing bits as it was opened */
    _Atomic(const void *) context; /* its */
    _Atomic(const char *) spoiled; /* why the batch is not repeated; NULL: it is */
} kprof_batch_signs;

/* Work of each stream of a range is repeated in a stream of kprof's own, a lane. */
typedef struct kprof_lanes {
    _Atomic(void *) streams[KPROF_LANES]; /* the application's; NULL: it is free */
    atomic_uint waiting[KPROF_LANES];     /* lanes, as bits, that what comes next in this one waits for */
    unsigned seen;                        /* lanes, as bits, that have had work */
    atomic_uint independent; /* of these: where the legacy default stream and the lane do not wait for one another */
} kprof_lanes;

typedef struct kprof_batch_state {
    kprof_batch_signs signs;
    kprof_decision_kind kind;
    unsigned needs;      /* kprof_need bits of its first launch */
    kprof_kernel *range; /* of the application, which it repeats as a whole; NULL: it repeats launches */
    kprof_lanes lanes;   /* of the range */
    kprof_profiled_context *context;
    const kprof_chip_metrics *metrics;
    bool proved;      /* the application's own run is watched for traffic to host memory */
    bool searching;   /* likewise, launch by launch */
    bool unwatched;   /* no longer: it repeats only launches of kernels that an earlier batch has proved */
    bool stayed_away; /* from memory of the host: all that ran in the proof's ranges, as these tell */
    bool saved;       /* the context's snapshot has the start */
    kprof_launch_list list;
    kprof_batch_ranges ranges;
    char note[KPROF_NOTE_BYTES];   /* why launches are measured in another way than asked for; "" when all is well */
    int64_t opened_ns, started_ns; /* when opening began, and when it had ended */
    kprof_batch_times times;
} kprof_batch_state;

static inline bool kprof_state_is_open(const kprof_batch_state *state)
{
    return atomic_load_explicit(&state->signs.open, memory_order_relaxed);
}

static inline bool kprof_state_records(const kprof_batch_state *state)
{
    return atomic_load_explicit(&state->signs.records, memory_order_relaxed);
}

static inline bool kprof_state_replays(const kprof_batch_state *state)
{
    return atomic_load_explicit(&state->signs.replays, memory_order_relaxed);
}

static inline bool kprof_state_is_sealed(const kprof_batch_state *state)
{
    return atomic_load_explicit(&state->signs.sealed, memory_order_relaxed);
}

/* Does the call that enters work in a stream of its context? */
bool kprof_state_is_of(const kprof_batch_state *state, const kprof_call *call);
/* Is the batch repeated, in a process that has managed memory? */
bool kprof_state_has_managed(const kprof_batch_state *state);
/* Is it repeated, and does managed memory stay on the host meanwhile? */
bool kprof_state_has_managed_stay(const kprof_batch_state *state);
/* Do its replays put memory of the host back? */
bool kprof_state_saves_host(const kprof_batch_state *state);
/* Is either of these two true? */
bool kprof_state_has_host(const kprof_batch_state *state);
/* Return the kprof_sharing bits that matter to the batch and have been set since it was opened. */
unsigned kprof_state_new_sharing(const kprof_batch_state *state);
/* Has the batch no space for this many more ranges? */
bool kprof_state_is_full(const kprof_batch_state *state, size_t ranges);

/* Do not repeat the batch: something happened that it does not know of. `reason` is a literal. The first one stays. */
void kprof_state_spoil(kprof_batch_state *state, const char *reason);
/* Remember why launches are measured in another way. The first reason stays. */
void kprof_state_note(kprof_batch_state *state, const char *text, const char *why);
/* Make space for this many more launches and transfers; false when memory ran out. */
bool kprof_state_reserve(kprof_batch_state *state, size_t more);
/* Add a launch or transfer, and own its operation. There is space. */
void kprof_state_add(kprof_batch_state *state, const kprof_batch_launch *launch, kprof_operation *operation);
/* A chosen launch will not be measured, and later ones may: -c counts another one in its place. */
void kprof_state_leave_uncounted(const kprof_launch_record *record);
/* Return the index of a launch's range, which also names it. A launch without one gets the next index. */
size_t kprof_state_take_range(kprof_batch_state *state, size_t *range);
