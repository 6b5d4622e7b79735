/* Finds the chips and resolves the selection for each, ready for the injection library. */
#pragma once

#include "cli/options.h"
#include "cli/shares.h"
#include "core/config.h"
#include "cupti/probe.h"
#include "report/report.h"

typedef struct kprof_chip_plan {
    kprof_host *host;
    kprof_plan plan;
    kprof_chip_timeline *timelines; /* [plan.timeline.count], for the recorder */
    kprof_shares shares;            /* of the runs of --replay-mode application; else none */
} kprof_chip_plan;

typedef struct kprof_plans {
    kprof_catalog *catalog;
    kprof_probe probe;
    kprof_selection selection; /* of the options, less what kprof lacks */
    kprof_limits limits;       /* of the options, with the memory of the GPU */
    kprof_chip_plan *chips;    /* one for each distinct chip among the chosen devices */
    size_t count;
    bool by_application;                 /* the program runs once for each share of a plan */
    bool in_run;                         /* they are those of one run: the whole ones have passes that nobody makes */
    kprof_instruction_wish instructions; /* what is measured of instructions on any of them */
    char *denied;                        /* why counters are kept from this user; NULL: they are not */
} kprof_plans;

/* Check the names, look at the GPUs and resolve. Errors as of kprof_catalog_load, kprof_selection_check,
 * kprof_probe_devices and kprof_plan_make; USAGE when --devices leaves none. NO_PERMISSION does not count where half of
 * the passes or more are those of instructions. Free with kprof_plans_free in either case. */
kprof_status kprof_plans_make(const kprof_options *options, kprof_plans *out) KPROF_MUST_CHECK;
/* The same for the chips of that name, without looking at the GPUs: `probe` stays empty. Their memory is
 * device_bytes; 0: not known. */
kprof_status kprof_plans_make_for(const kprof_options *options, const kprof_strlist *chips, uint64_t device_bytes,
                                  kprof_plans *out) KPROF_MUST_CHECK;
/* Plan the samples over the time of a program, for the GPUs that are there. Where nothing can be sampled, warn, and
 * leave the plans without a chip. Free with kprof_plans_free. */
void kprof_plans_sample(const kprof_options *options, kprof_plans *out);
void kprof_plans_free(kprof_plans *plans);
/* How often --replay-mode application runs the program: as often as the chip with most shares needs. 0: that is not the
 * mode, or nothing is to be collected. */
size_t kprof_plans_runs(const kprof_plans *plans);
/* Have the plans collect what a run does. The same call takes that back. */
void kprof_plans_swap_run(kprof_plans *plans, size_t run);

/* Chips among the devices that --devices leaves, each once, appended to `out`. */
kprof_status kprof_probe_chips(const kprof_probe *probe, uint64_t device_mask, kprof_strlist *out) KPROF_MUST_CHECK;

/* The configuration for the injection library; it borrows from `plans` and `options`, but for its chips array, which
 * the caller frees with free(3). */
void kprof_plans_config(const kprof_plans *plans, const kprof_options *options, kprof_config *out);

/* The chips to list or plan for when no application runs. */
typedef struct kprof_chips {
    kprof_strlist names;   /* each once; the caller frees it */
    uint64_t device_bytes; /* memory of the smallest GPU, where they are those of GPUs that are present; 0: not known */
} kprof_chips;

/* Those of --chips; else those of the GPUs that are present, limited by --devices; else, with a message, the chip
 * that the sets are tuned for. Errors of --chips as of kprof_chip_check, with a message for each. */
kprof_status kprof_chips_named(const kprof_options *options, kprof_chips *out) KPROF_MUST_CHECK;
/* For callers that can do without a host: if CUPTI cannot be asked here, warn, leave *out NULL and return OK. */
kprof_status kprof_chip_open(const char *chip, kprof_host **out) KPROF_MUST_CHECK;
