/* Samples of a device's counters over time, in one pass. The caller enables them in an idle context, configures a pass,
 * and starts and stops them around a launch; or it starts them in a program that runs, and reads them again and again.
 * They are of the whole device: other processes' work is in them. */
#pragma once

#include "core/config.h"

/* A reading has at most this many samples. */
#define KPROF_PM_MOST_SAMPLES 4096

typedef struct kprof_pm_sampling kprof_pm_sampling;

/* The samples of one launch, in their order, valid until the next reading. */
typedef struct kprof_pm_data {
    const uint64_t *starts_ns, *ends_ns; /* [count], on a clock of CUPTI's */
    const double *values;                /* [count][names of the pass]; NaN: not known */
    size_t count;
    bool is_cut; /* there were more than the buffers hold */
} kprof_pm_data;

typedef struct kprof_pm_setup {
    const kprof_chip_timeline *pass; /* borrowed until another one is configured */
    uint64_t interval_ns;            /* chips without a clock of their own for it take as many cycles of the system's */
    size_t buffer_bytes;             /* of the GPU's memory; 0: as many as usual */
    size_t most_samples; /* KPROF_PM_MOST_SAMPLES at most; each takes up to 64e3 bytes of the host's, and time */
} kprof_pm_setup;

/* Get CUDA's device of this number ready, whose context is current. */
kprof_status kprof_pm_sampling_open(uint32_t device, const char *chip, kprof_pm_sampling **out) KPROF_MUST_CHECK;
/* Take the device's counters for samples, or give them back; 230 ms on an H200. No pass of a profiler may be open. */
kprof_status kprof_pm_sampling_enable(kprof_pm_sampling *sampling) KPROF_MUST_CHECK;
kprof_status kprof_pm_sampling_disable(kprof_pm_sampling *sampling) KPROF_MUST_CHECK;
/* Choose what is sampled. Each time but the first takes as long as enabling does. */
kprof_status kprof_pm_sampling_configure(kprof_pm_sampling *sampling, const kprof_pm_setup *setup) KPROF_MUST_CHECK;
/* Around one launch, with the context idle, or around all that a program does. */
kprof_status kprof_pm_sampling_start(kprof_pm_sampling *sampling) KPROF_MUST_CHECK;
kprof_status kprof_pm_sampling_stop(kprof_pm_sampling *sampling) KPROF_MUST_CHECK;
/* Read the samples since the last start, or, where they were not stopped, since the reading before. NOT_COLLECTED when
 * there were more than the GPU's buffer holds. */
kprof_status kprof_pm_sampling_read(kprof_pm_sampling *sampling, kprof_pm_data *out) KPROF_MUST_CHECK;
/* Read only the samples of a launch, about `expected` of them (0: not known): from the first to the last in which the
 * pass's first metric is above 0. As a rule samples behind the launch are not decoded, which would take 10 to 60 us
 * each. Those before it get no other values, which would take 5 to 40 us each. Where the launch was longer than
 * expected, or began later, the samples are cut; reading a repetition with 0 gives as many as setup has. */
kprof_status kprof_pm_sampling_read_launch(kprof_pm_sampling *sampling, size_t expected,
                                           kprof_pm_data *out) KPROF_MUST_CHECK;
/* Free what is ours; what is still enabled stays CUPTI's. NULL is allowed. */
void kprof_pm_sampling_close(kprof_pm_sampling *sampling);
