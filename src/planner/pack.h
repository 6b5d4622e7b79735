/* Packs raw counters into fewer passes than CUPTI does, and into cheaper ones. What CUPTI's image has in one pass for a
 * metric is a bundle, which stays together; packing moves bundles between passes and chooses where counters are read.
 */
#ifndef KPROF_PLANNER_PACK_H
#define KPROF_PLANNER_PACK_H

#include "planner/nvpw.h"
#include "planner/planner.h"

#define KPROF_NO_PASS    SIZE_MAX
#define KPROF_NO_BUNDLE  SIZE_MAX
#define KPROF_NOT_WANTED (SIZE_MAX - 1) /* in no pass, and to be put into none */

typedef struct kprof_pack_counter {
    const char *name;            /* borrowed from the packing's names */
    kprof_counter_places places; /* in the SMs, where one pass takes it; those that are wanted least come first */
    kprof_traits traits;         /* wherever NVPW may place it; it prefers the SMs' slow domains */
    bool in_sm;                  /* counters of the SMs compete for room in a pass, and so do all others */
    size_t pass;                 /* in CUPTI's image */
    size_t bundle;
    uint32_t domain; /* where it is read; 0: NVPW chooses, as for CUPTI's image */
} kprof_pack_counter;

/* Counters that stay in one pass. */
typedef struct kprof_pack_bundle {
    const size_t *counters; /* [count]: indices, borrowed */
    size_t count, sm_count;
    bool is_fixed; /* its pass stays as it is */
    bool is_patch; /* counted by patched code, which takes a pass of its own */
    size_t pass;   /* now */
} kprof_pack_bundle;

/* The content of a pass. */
typedef struct kprof_pack_pass {
    size_t count, sm_count, slow_count; /* counters; of the SMs; that make launches slow */
    bool is_fixed, is_patch;
    bool is_closed;   /* it gets no bundle */
    bool is_refused;  /* it has no room for the bundle at hand */
    bool is_tried;    /* in vain, since an attempt with another pass succeeded */
    bool stays_fast;  /* it gets no counter that makes launches slow */
    bool stays_out;   /* it gets no counter of the SMs */
    unsigned kinship; /* of the bundle at hand with its bundles */
} kprof_pack_pass;

/* An answer of NVPW, which is asked once: an answer takes some 50 us, and a search comes back to the same question. */
typedef struct kprof_pack_answer {
    uint64_t question; /* a number for a set of counters and domains, the same in any order; 0: none */
    bool fits;
} kprof_pack_answer;

/* A power of two, so many that a table holds all answers with room to spare. */
#define KPROF_PACK_ANSWERS 131072

typedef struct kprof_packing {
    kprof_strlist names;
    kprof_pack_counter *counters; /* [names.count], in the order of CUPTI's passes */
    kprof_pack_bundle *bundles;   /* [bundle_count] */
    kprof_pack_pass *passes;      /* [most_passes] */
    size_t bundle_count, pass_count, most_passes;
    uint64_t launches;       /* of the batch that the schedule is made for */
    size_t *members;         /* [names.count]: the bundles' counters */
    unsigned char *kinships; /* [bundle_count * bundle_count]: how many metrics are computed from both; NULL: unknown */
    size_t *troubles;        /* [bundle_count]: how often it found no room */
    size_t *saved_passes;    /* [bundle_count]: what to go back to */
    uint32_t *saved_domains; /* [names.count]: likewise */
    size_t saved_pass_count;
    kprof_raw_config *config;       /* with an empty group open: tells what goes into one pass */
    kprof_pack_answer *answers;     /* [KPROF_PACK_ANSWERS] */
    size_t *listed, *alike;         /* [names.count]: the counters of a question; those of them in one domain */
    kprof_placed_counter *question; /* [names.count]: the same, as NVPW is asked */
    size_t questions, end, last; /* no more are asked than `end`, which moves up to `last`: every answer is no then */
    kprof_status status;         /* of NVPW */
} kprof_packing;

/* Bundle the counters of *image, CUPTI's own of `names`. UNSUPPORTED, without a message, when it has a counter in
 * several passes. Caller frees *out, on failure too. */
kprof_status kprof_packing_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                kprof_packing *out) KPROF_MUST_CHECK;
void kprof_packing_free(kprof_packing *packing); /* members */

/* Empty passes into others. On failure the schedule is as good as it was found so far. */
kprof_status kprof_packing_save_passes(kprof_packing *packing) KPROF_MUST_CHECK;
/* Then let fewer passes make launches slow, of which there may then be more again, up to CUPTI's number. */
kprof_status kprof_packing_save_time(kprof_packing *packing) KPROF_MUST_CHECK;
/* Then leave room in every pass for a counter of instructions (witness.c), as far as that makes nothing dearer. */
kprof_status kprof_packing_make_room(kprof_host *host, kprof_packing *packing) KPROF_MUST_CHECK;

/* What the passes cost, but for the number of metrics. */
kprof_effort kprof_packing_effort(kprof_packing *packing);
/* The time that all passes take by the price list: to start and stop, and for a batch of launches in between. */
double kprof_packing_cost_ms(kprof_packing *packing);
/* Take everything out of all passes, of which there may then be up to `most_passes`; 0: as many as CUPTI has. */
void kprof_packing_clear(kprof_packing *packing, size_t most_passes);
/* Find passes for the bundles that `metric_counters`, some of the packing's names, are in, beside all that has a pass,
 * in a further pass where `most_passes` allows one. False, with all as it was, when there is no room. */
bool kprof_packing_place(kprof_packing *packing, const kprof_strlist *metric_counters);
/* Go back to what was before the last placing. */
void kprof_packing_restore(kprof_packing *packing);
/* Make the image of what has a pass. Caller frees *out. */
kprof_status kprof_packing_image(const kprof_host *host, const kprof_packing *packing,
                                 kprof_config_image *out) KPROF_MUST_CHECK;

/* Replace *image, CUPTI's own of `names`, by one of fewer or cheaper passes and the same counters, with its placement.
 * It stays as it is, byte for byte, when none is found or anything fails. A metric that CUPTI's image takes from one
 * pass is taken from one pass, too. With few_passes there are as few as are found, and no more with counters of the SMs
 * than before; else there may be more, up to CUPTI's number, where launches get faster by it. Costs some tenths of a
 * second for hundreds of names. */
void kprof_pack(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *image);

#endif
