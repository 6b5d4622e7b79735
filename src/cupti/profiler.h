/* CUPTI's Range Profiler on one context: the counters of some launches, in as many passes as the config image has. Each
 * launch is a range of its own; the caller repeats all of them between start and stop of each pass. */
#ifndef KPROF_CUPTI_PROFILER_H
#define KPROF_CUPTI_PROFILER_H

#include "core/config.h"

typedef struct kprof_profiler kprof_profiler;

/* Load the libraries that what is below needs, which takes about 50 ms; else the first that needs them does. Says
 * nothing when one is missing. Thread-safe. */
void kprof_profiler_preload(void);
/* Get a context ready; it must be current. `metrics` is borrowed while the profiler lives. The first profiler of a
 * process costs about 80 ms. NO_PERMISSION, COUNTERS_BUSY or UNSUPPORTED as CUPTI says. */
kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiler **out) KPROF_MUST_CHECK;
/* About how many launches' counter data fit into `bytes` of host memory; at least 1. */
size_t kprof_profiler_capacity(kprof_profiler *profiler, size_t bytes);
/* Begin a measurement of at most `launches` launches in all passes, with all witnesses or those that take no time.
 * Forgets the last one. The first pass of all costs 150 ms and 0.6 to 1.2 ms for each of its launches, used or not,
 * later ones with no more launches 2 to 60 ms (H200); with tens of thousands it does not start. More launches than the
 * first measurement had cost as much as the first. */
kprof_status kprof_profiler_begin(kprof_profiler *profiler, size_t launches, bool all_witnesses) KPROF_MUST_CHECK;
/* Begin a measurement of one launch in one pass: the one that follows the pass measured so the last time, or the first.
 * Forgets the last measurement. */
kprof_status kprof_profiler_begin_pass(kprof_profiler *profiler) KPROF_MUST_CHECK;
/* Around the launches of each pass, with the context idle. `more` tells whether passes are left. */
kprof_status kprof_profiler_start(kprof_profiler *profiler) KPROF_MUST_CHECK;
kprof_status kprof_profiler_stop(kprof_profiler *profiler, bool *more) KPROF_MUST_CHECK;
/* Decode what was measured so far, after any pass. NOT_COLLECTED when CUPTI did not record exactly `launches`. */
kprof_status kprof_profiler_decode(kprof_profiler *profiler, size_t launches) KPROF_MUST_CHECK;
/* The counter data image that was decoded: *size bytes, valid until the next _begin. */
const void *kprof_profiler_image(const kprof_profiler *profiler, size_t *size);
/* Give the GPU's counters to other contexts and processes; the next _begin takes them again. The context must be
 * current. */
void kprof_profiler_release(kprof_profiler *profiler);
/* A module of some context is unloaded. CUPTI keeps lists of the kernels whose code it has patched, and does not see
 * modules go between passes: where the module's address comes up again it crashes, or leaves new kernels out. Thread-
 * safe. */
void kprof_profilers_note_unload(void);
/* The context is going: free what is ours without touching it. */
void kprof_profiler_close(kprof_profiler *profiler);

/* One launch of a measurement. */
typedef struct kprof_range {
    const kprof_profiler *profiler;
    size_t launch; /* in launch order, from 0 */
} kprof_range;

/* Evaluates decoded measurements; one for each thread that does. */
typedef struct kprof_reader kprof_reader;

kprof_status kprof_reader_open(const kprof_chip_metrics *metrics, kprof_reader **out) KPROF_MUST_CHECK;
void kprof_reader_close(kprof_reader *reader);
/* Values of one launch: values is [names->count], NaN where counters are missing. A counter
 * that several passes have is the mean over those decoded so far. May run beside a further pass, but not beside
 * _decode. */
kprof_status kprof_reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names,
                               double *values) KPROF_MUST_CHECK;

#endif
