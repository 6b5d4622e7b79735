/* CUPTI's Range Profiler on one context: the counters of ranges, in as many passes as the config image has. The caller
 * pushes and pops the same ranges in each pass; what runs outside of them is not measured and costs nothing. In an
 * automatic measurement each kernel is a range, which begins and ends with it; a pushed one begins up to 20 us earlier,
 * as the host launches the kernel only when the range has begun. */
#pragma once

#include "core/config.h"

typedef struct kprof_profiler kprof_profiler;

/* For the files of this folder that call CUPTI: get it ready to measure, once in the process; the status of a call that
 * failed with this CUptiResult, with a message. */
struct kprof_cupti_api;
kprof_status kprof_profilers_initialize(const struct kprof_cupti_api *cupti) KPROF_MUST_CHECK;
kprof_status kprof_cupti_fail(const struct kprof_cupti_api *cupti, const char *operation, int failure);
static inline kprof_status kprof_cupti_check(const struct kprof_cupti_api *cupti, const char *operation, int result)
{
    return result == 0 ? KPROF_OK : kprof_cupti_fail(cupti, operation, result);
}
/* Call a function of CUPTI with its parameters, and check the result. */
#define KPROF_CUPTI_CALL(api, function, params) kprof_cupti_check((api), #function, (api)->function(&(params)))

/* Load the libraries that the functions below need, which takes about 50 ms; else the first of these does. Says nothing
 * when one is missing. Thread-safe. */
void kprof_profiler_preload(void);
/* Start CUPTI, which takes 60 ms and no counters. A failure shows in _open. */
void kprof_profiler_prepare(void);
/* Get a context ready; it must be current. `metrics` is borrowed while the profiler lives. The first profiler of a
 * process costs about 80 ms. NO_PERMISSION, COUNTERS_BUSY or UNSUPPORTED as CUPTI says. */
kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics,
                                 kprof_profiler **out) KPROF_MUST_CHECK;
/* About how many ranges' counter data fit into `bytes` of host memory; at least 1. */
size_t kprof_profiler_capacity(kprof_profiler *profiler, size_t bytes);

/* Tells people how to get the counters from another tool. */
#define KPROF_FREES_COUNTERS "DCGM can be paused with `dcgmi profile --pause`"

typedef struct kprof_measurement {
    size_t ranges;      /* at most */
    bool all_witnesses; /* else those that take no time */
    bool proved;        /* the first pass is the proof's; see kprof_chip_metrics */
    bool proof_alone;   /* and there is no other */
    bool automatic;     /* every kernel that runs in a pass is a range; nothing is pushed */
} kprof_measurement;
/* Begin a measurement in all passes, with the context idle. Forgets the last one. The first pass of all costs 150 ms
 * and 0.6 to 1.2 ms for each of its ranges, used or not, later ones with no more ranges 2 to 60 ms (H200); with tens of
 * thousands it does not start. More ranges than the first measurement had, or other flags, cost as much as it did. */
kprof_status kprof_profiler_begin(kprof_profiler *profiler, const kprof_measurement *wanted) KPROF_MUST_CHECK;
/* After its last pass a measurement may go on with the first, for ranges that have not had it. Can this one? */
bool kprof_profiler_goes_on(const kprof_profiler *profiler);
/* Run the next pass empty. The context must be idle. */
kprof_status kprof_profiler_skip_pass(kprof_profiler *profiler) KPROF_MUST_CHECK;
/* If some passes have been run, run the others empty, so that the first is next. The context must be idle. */
kprof_status kprof_profiler_run_out(kprof_profiler *profiler) KPROF_MUST_CHECK;
/* The pass that _start will begin, from 0; the proof's is run empty. The context must be idle. */
kprof_status kprof_profiler_next_pass(kprof_profiler *profiler, uint32_t *pass) KPROF_MUST_CHECK;
/* Begin and end a pass, with the context idle. `more` tells whether passes are left. */
kprof_status kprof_profiler_start(kprof_profiler *profiler) KPROF_MUST_CHECK;
kprof_status kprof_profiler_stop(kprof_profiler *profiler, bool *more) KPROF_MUST_CHECK;
/* Within a pass: begin and end a range, in any thread. Ranges of one number are one in all passes; the counter data has
 * the ranges in the order that their numbers came up in. _pop waits for the range's kernels in a pass with counters of
 * the SMs, without a limit. Not in an automatic measurement: kernels are ranges there, as they are launched. */
kprof_status kprof_profiler_push(kprof_profiler *profiler, size_t number) KPROF_MUST_CHECK;
kprof_status kprof_profiler_pop(kprof_profiler *profiler) KPROF_MUST_CHECK;
/* Decode what was measured so far, after any pass. NOT_COLLECTED when CUPTI did not record exactly `ranges`. */
kprof_status kprof_profiler_decode(kprof_profiler *profiler, size_t ranges) KPROF_MUST_CHECK;
/* The counter data image that was decoded: *size bytes, valid until the next _begin. */
const void *kprof_profiler_image(const kprof_profiler *profiler, size_t *size);
/* Give the GPU's counters to other contexts and processes; the next _begin takes them. The context must be current. */
void kprof_profiler_release(kprof_profiler *profiler);
/* A module of some context is unloaded. CUPTI keeps lists of the kernels whose code it has patched, and does not see
 * modules go between passes: where a module's address comes up again it crashes, or lacks new kernels. Thread-safe. */
void kprof_profilers_note_unload(void);
/* Memory came to be shared with other devices or processes, whose work may wait for this process: kprof does not wait
 * for long from now on where another tool has the counters. Thread-safe. */
void kprof_profilers_note_sharing(void);
/* The context is going: free what is ours without touching it. */
void kprof_profiler_close(kprof_profiler *profiler);

/* One range of a measurement. */
typedef struct kprof_range {
    const kprof_profiler *profiler;
    size_t index; /* as the ranges came up, from 0 */
} kprof_range;

/* Evaluates decoded measurements; one for each thread that does. */
typedef struct kprof_reader kprof_reader;

kprof_status kprof_reader_open(const kprof_chip_metrics *metrics, kprof_reader **out) KPROF_MUST_CHECK;
void kprof_reader_close(kprof_reader *reader);
/* Values of a range: [names->count], NaN where counters are missing. A counter that several passes have is the mean
 * over those decoded so far. May run beside a pass, but not beside _decode. */
kprof_status kprof_reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names,
                               double *values) KPROF_MUST_CHECK;
