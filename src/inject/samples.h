/* The samples of one context. Launches of one kernel and shape (grid, block, cluster, dynamic shared memory) form a
 * group. A sample is a range that one launch of its group opens in each pass: CUPTI goes through the passes in a fixed
 * order, over and over, and keeps the counters of a range by its name. Call these with the gate held. */
#pragma once

#include "core/config.h"
#include "cupti/profiler.h"
#include "inject/deliver.h"
#include "inject/evaluate.h"
#include "inject/kernels.h"

/* The most passes that a sample can have. */
#define KPROF_SAMPLE_PASSES 64
#define KPROF_NO_SAMPLE     SIZE_MAX

/* Launches make up a sample when these are equal. */
typedef struct kprof_shape {
    const kprof_kernel *kernel;
    uint32_t grid[3], block[3], cluster[3], dynamic_smem_bytes;
} kprof_shape;

/* Launches of a group whose instructions were measured in their own runs. */
typedef struct kprof_instructed {
    uint32_t measured, failed;
} kprof_instructed;

typedef struct kprof_group {
    kprof_shape shape;
    uint32_t complete;              /* samples */
    uint32_t open;                  /* samples that lack passes */
    size_t first_open;              /* the first of them; KPROF_NO_SAMPLE: there is none */
    uint32_t window;                /* the last one that measured a launch, from 1 */
    uint32_t in_window;             /* launches measured in that */
    kprof_instructed instructed[2]; /* by kprof_source_kind */
    uint32_t period;                /* of the next samples of instructions, as a power of two; 0: not known yet */
} kprof_group;

typedef struct kprof_sample {
    kprof_group *group;         /* NULL: it is a range of a batch */
    size_t next_open;           /* of its group; KPROF_NO_SAMPLE: the last */
    uint64_t passes;            /* that it has, as bits */
    bool dropped;               /* nothing comes of it any more */
    kprof_launch_record record; /* of its first launch */
    kprof_witness witnesses[KPROF_MAX_WITNESSES];
    char why[256];               /* its launches are not repeated */
    char note[KPROF_NOTE_BYTES]; /* why one of them was measured in another way than asked for; "": none was */
} kprof_sample;

/* The number of a sample is that of its range. */
typedef struct kprof_samples {
    kprof_profiler *profiler;          /* the context's, borrowed */
    const kprof_chip_metrics *metrics; /* of its chip, borrowed */
    kprof_group **slots;               /* [slot_count], a power of two; open addressing; owned */
    size_t slot_count, group_count;
    kprof_sample *items; /* [capacity], owned */
    size_t capacity, count;
    bool measures;              /* the profiler has a measurement for the samples */
    bool all_witnesses, proved; /* it was begun so */
    uint32_t pass;              /* of the open window */
    uint32_t windows;           /* so far */
    uint32_t prompt;            /* of these: opened after one that ended early, for a group without a sample */
    uint32_t first_window;      /* of the measurement */
    uint32_t since_full;        /* windows since no further sample fitted */
    size_t gone_by;             /* launches that were not measured in this window, and wait for another */
} kprof_samples;

/* Make samples, if there are none yet, and space for `capacity` of them in a new measurement. */
kprof_status kprof_samples_make(kprof_samples **samples, size_t capacity) KPROF_MUST_CHECK;
/* Find the launch's group. NULL where it has none, or there are no samples yet. */
kprof_group *kprof_samples_find_group(const kprof_samples *samples, const kprof_batch_launch *launch);
/* Find or make the launch's group; NULL when memory ran out, or there are too many. */
kprof_group *kprof_samples_get_group(kprof_samples *samples, const kprof_batch_launch *launch);
/* Has the group as many samples as were asked for? */
bool kprof_samples_are_enough(const kprof_group *group);
/* Can a launch of the group add the window's pass to a sample? */
bool kprof_samples_lack_pass(const kprof_samples *samples, const kprof_group *group);
/* Is the group of ranges that take one pass, so that each is measured in the window that is open? */
bool kprof_samples_need_no_turns(const kprof_samples *samples, const kprof_group *group);
/* Has the group had all launches that it may have in this window? */
bool kprof_samples_had_turn(const kprof_samples *samples, const kprof_group *group);
/* Does no further sample fit? */
bool kprof_samples_are_full(const kprof_samples *samples);

/* Add the launch, whose turn it is, to a sample, and return its range. `why` says why it is not repeated. */
size_t kprof_samples_take(kprof_samples *samples, const kprof_batch_launch *launch, const char *why);
/* Has the sample of this range all passes, or will it when its last launch has run? */
bool kprof_samples_have_all(const kprof_samples *samples, size_t range);
/* Drop the sample of this range, as one of its launches, `lost`, was not measured, so that it cannot be completed.
 * `why` goes into the record of another launch of the sample. */
void kprof_samples_drop(kprof_samples *samples, size_t range, const kprof_launch_record *lost, const char *why);
/* The sample of this range has all passes: its group may begin another one. */
void kprof_samples_note_complete(kprof_samples *samples, size_t range);

/* Evaluate the samples numbers[count], and report them. */
void kprof_samples_deliver(kprof_samples *samples, const size_t *numbers, size_t count);
/* Forget all samples, but not the groups. */
void kprof_samples_forget(kprof_samples *samples);
/* Report the samples that lack passes, as they are. Call this before the context's profiler is used for something else
 * or given back. NULL does nothing. */
void kprof_samples_end(kprof_samples *samples);
/* Do the same for a context that ends, and free its samples. */
void kprof_samples_free(kprof_samples *samples);
