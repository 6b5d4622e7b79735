/* The state that measuring needs in each context. It is made at the context's first chosen launch. */
#pragma once

#include "core/config.h"
#include "cupti/flush.h"
#include "cupti/pc_samples.h"
#include "cupti/pm_sampling.h"
#include "cupti/profiler.h"
#include "cupti/snapshot.h"

typedef struct kprof_profiled_context {
    void *context;
    uint32_t device;
    const kprof_chip_metrics *metrics; /* borrowed */
    kprof_profiler *profiler;
    bool lacks_plan;                  /* that has changed, and there is no profiler until the next launch */
    struct kprof_samples *samples;    /* NULL until wanted */
    kprof_instructions *instructions; /* counters of instructions; NULL until wanted */
    kprof_pc_samples *pc_samples;     /* NULL: none are wanted, or not possible */
    char pc_samples_reason[256];      /* why not */
    uint32_t own_period;              /* they are enabled for launches' own runs, with this period; 0: they are not */
    kprof_pm_sampling *pm_sampling;   /* samples over time; NULL until wanted */
    bool has_counters;                /* of the device */
    int64_t busy_before_ns;           /* another tool had the counters a short while before */
    kprof_flush *flush;               /* NULL until wanted */
    char flush_reason[160];           /* why there is none */
    bool flush_failed;                /* wanted, and there was no space */
    size_t replayed_ranges;           /* that measurements of replays are made for; 0: there was none */
    bool takes_turns;                 /* another context had the counters between measurements of replays */
    unsigned growths;                 /* how often kprof has doubled what it reserves for own runs that are measured */
    double ready_ms;                  /* what the first pass of a profiler took to start */
    double repeated_ms;               /* what full batches in a row took to start and stop their passes */
    double fixed_ms;                  /* what the last batch took whatever it held */
    size_t last_launches;             /* of the last batch */
    kprof_snapshot *snapshot;         /* NULL until wanted */
    unsigned comparisons;             /* how often replays with new kernels gave the host what the own runs gave */
    size_t compared;      /* launches and transfers at most of a batch whose replays gave the host the same */
    unsigned late_values; /* batches that lost launches because a value that a stream waited for had not come */
    bool pushes_ranges;   /* kernels did not become ranges by themselves */
    bool searches;        /* the last batch reached host memory: the next one finds out which launch does */
    bool diverges;        /* a replay computed something else: later ones do not tell the host what they compute */
    bool left_in_pass;    /* a pass could not be ended, because the GPU's work did not end */
    struct kprof_profiled_context *next;
} kprof_profiled_context;

/* Get the state of a context, which must be current. Other contexts of its device give the counters back. NOT_COLLECTED
 * when work of one of them does not end in time. Thread-safe; the result is for a launch at a time. */
kprof_status kprof_contexts_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiled_context **out) KPROF_MUST_CHECK;
/* Have samples of instructions enabled and not started, where they are wanted, as each measurement of passes must find
 * them. The context must be current and idle. Needs the gate. */
void kprof_contexts_arm(kprof_profiled_context *context);
/* Find the state of a context; NULL if nothing was measured there yet. Needs the gate. */
const kprof_profiled_context *kprof_contexts_find(const void *context);
/* Note a new context of the application, measured or not. Thread-safe. */
void kprof_contexts_note(void *context);
/* Wait, as kprof_wait_for_context does, until the work of all other contexts is done: a replay would undo what it
 * writes to this context's memory. NOT_COLLECTED when it does not end in time. Needs the gate. */
kprof_status kprof_contexts_wait_for_others(const void *context) KPROF_MUST_CHECK;
/* Has the application another context than this one, or can it have one that kprof does not know? */
bool kprof_contexts_has_others(const void *context);
/* Forget a context, which ends. `in_pass`: a pass is under way, and nothing ends it any more. */
void kprof_contexts_forget(void *context, bool in_pass);
/* Is the work of all contexts done? Waits for each as kprof_wait_for_context does. Needs the gate. */
bool kprof_contexts_idle(void);
/* Give the device memory that kprof keeps back to the application, except in contexts that are still at work when the
 * thread may not wait any longer. Needs the gate, and no batch may be open. */
void kprof_contexts_release_memory(void);
/* Device memory that kprof keeps copies in, on one device. */
size_t kprof_contexts_held_bytes(uint32_t device);
/* Let other processes have the counters, except those of contexts whose work does not end in time. The next
 * measurement takes them again. Needs the gate. */
void kprof_contexts_release(void);
/* Does a context still have counters? */
bool kprof_contexts_have_counters(void);

/* From now on contexts measure by other plans, which the next launches name. False when the work of one context does
 * not end in time. Needs the gate, and no batch may be open. */
bool kprof_contexts_change_plan(void);

/* Report the samples of all contexts that lack passes, as they are; see samples.h. Needs the gate. */
void kprof_contexts_end_samples(void);
