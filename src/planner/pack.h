/* Packs raw counters into fewer passes than CUPTI does, and into cheaper ones. What CUPTI's image has in one pass for a
 * metric is a bundle, which stays together; packing moves bundles between passes and chooses where to count. */
#pragma once

#include "core/bytes.h"
#include "host/nvpw.h"
#include "planner/planner.h"

#define KPROF_NO_PASS    UINT32_MAX
#define KPROF_NOT_WANTED (UINT32_MAX - 1) /* in no pass, and not to be placed */
#define KPROF_NOWHERE    UINT32_MAX       /* no domain */
#define KPROF_NO_BUNDLE  SIZE_MAX

/* CUPTI schedules this many metrics slowly, so packing asks fewer questions then. None of kprof's sets has as many. */
#define KPROF_MANY_METRICS 400

/* The place of a counter: its pass, and the domain that it is read in (0: NVPW chooses). */
typedef struct kprof_spot {
    uint32_t pass, domain;
} kprof_spot;

/* The places of all counters. */
typedef struct kprof_arrangement {
    kprof_spot *spots; /* [names.count] of the packing */
    size_t pass_count;
} kprof_arrangement;

typedef struct kprof_pack_counter {
    const char *name;            /* borrowed from the packing's names */
    size_t bundle;               /* that it belongs to: an index of one of its counters */
    kprof_counter_places places; /* places in the SMs that one pass takes; first those that the fewest others want */
    kprof_traits traits;         /* wherever NVPW may place it; it prefers the SMs' slow domains */
    bool in_sm;                  /* counters of the SMs compete for room in a pass, and so do all others */
} kprof_pack_counter;

/* Counters that stay in one pass. */
typedef struct kprof_pack_bundle {
    size_t count, sm_count; /* count 0: there is no bundle of this number */
    size_t trouble;         /* how often it found no room in this attempt */
    bool is_patch;          /* counted by patched code, which takes a pass of its own */
    bool is_needed;         /* for the metric at hand */
} kprof_pack_bundle;

/* How expensive a pass may become. */
typedef enum kprof_pass_limit {
    KPROF_PASS_CLOSED,
    KPROF_PASS_WITHOUT_SM,
    KPROF_PASS_FAST,
    KPROF_PASS_ANY
} kprof_pass_limit;

typedef struct kprof_pack_pass {
    size_t count, sm_count, slow_count; /* counters; of the SMs; that make launches slow */
    bool is_patch;
    kprof_pass_limit limit;
    bool is_tried; /* an attempt with it failed, and none with another pass succeeded since */
} kprof_pack_pass;

/* The counters that a metric of the wish is computed from. */
typedef struct kprof_pack_metric {
    size_t *counters; /* [count], owned: indices; the required ones come first */
    size_t required, count;
    bool is_hopeless; /* found no room: a metric that needs all of its counters is not tried */
} kprof_pack_metric;

/* Counters that no value of the plan depends on, in each pass that has room for them. */
#define KPROF_MAX_GUESTS         (KPROF_MAX_WITNESSES + 1)
#define KPROF_MAX_GUEST_COUNTERS 8
typedef struct kprof_guest {
    const char *name;       /* of a witness: a metric */
    kprof_strlist counters; /* empty: this chip, or this plan, has no such guest */
    uint32_t *domains;      /* [most_passes], owned: of its first counter; KPROF_NOWHERE: it is not in the pass */
} kprof_guest;

/* A way to find room for a bundle: in the place of another, or beside all that a pass has. */
typedef struct kprof_pack_move {
    uint32_t pass;
    size_t victim; /* or KPROF_NO_BUNDLE */
    long rank;     /* the lowest is tried first */
} kprof_pack_move;

/* A remembered answer of NVPW, which takes about 50 us: a search returns to the same question. */
typedef struct kprof_pack_answer {
    uint64_t question; /* a number for a set of counters and domains, the same in any order; 0: none */
    bool fits;
} kprof_pack_answer;

#define KPROF_PACK_ANSWERS 65536

typedef struct kprof_packing {
    kprof_host *host;
    kprof_strlist names;
    kprof_pack_counter *counters; /* [names.count], in the order of CUPTI's passes */
    kprof_pack_bundle *bundles;   /* [names.count] */
    kprof_pack_metric *metrics;   /* [metric_count], in the order of the wish */
    size_t metric_count;
    kprof_pack_pass *passes; /* [most_passes] */
    size_t most_passes;
    kprof_arrangement now, before;        /* `before`: what to go back to */
    uint64_t launches;                    /* of the batch that the schedule is made for */
    kprof_raw_config *config;             /* with an empty group open: tells what goes into one pass */
    kprof_pack_answer *answers;           /* [KPROF_PACK_ANSWERS] */
    kprof_placed_counter *question;       /* [names.count, and of all guests]: scratch for questions to NVPW */
    size_t *listed;                       /* [names.count]: the counters of a question */
    kprof_pack_move *moves;               /* [names.count + most_passes] */
    size_t questions, patience;           /* how many may still be asked: in all, and for this attempt */
    kprof_guest guests[KPROF_MAX_GUESTS]; /* witness.c */
    kprof_strlist taken;                  /* counters that a value or a witness may depend on */
    size_t guest_passes;                  /* that have room for a guest that counts instructions */
    kprof_status status;                  /* of NVPW */
} kprof_packing;

/* Read how `image`, CUPTI's own, schedules `names`. Caller frees *out, on failure too. */
kprof_status kprof_packing_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                kprof_packing *out) KPROF_MUST_CHECK;
void kprof_packing_free(kprof_packing *packing); /* members */

/* The goals of a search, in the order of their weight. A later goal gives up nothing that an earlier one gained. */
typedef enum kprof_goal {
    KPROF_OTHER_DOMAINS, /* each counter is read in the domain that the fewest others want */
    KPROF_FEWER_PASSES,
    KPROF_LESS_TIME, /* fewer passes make launches slow */
    KPROF_WITNESSES  /* more passes have room for a counter of instructions */
} kprof_goal;
/* On failure the schedule is the best one found so far. */
kprof_status kprof_packing_improve(kprof_packing *packing, kprof_goal goal) KPROF_MUST_CHECK;

/* Return the effort of the passes; the caller sets the number of metrics. */
kprof_effort kprof_packing_effort(kprof_packing *packing);
/* The time that all passes take by the price list: to start and stop, and for a batch of launches in between. */
double kprof_packing_cost_ms(kprof_packing *packing);
/* Empty all passes. Then there may be up to `most_passes`; 0: as many as CUPTI needs. */
void kprof_packing_clear(kprof_packing *packing, size_t most_passes);
/* Find passes for the unplaced bundles of a metric, beside what is placed, or in a further pass if `most_passes`
 * allows one. False, with nothing changed, when there is no room. */
bool kprof_packing_place(kprof_packing *packing, kprof_pack_metric *metric);
/* Undo the last placing. */
void kprof_packing_restore(kprof_packing *packing);
/* Count anew what each pass holds. */
void kprof_packing_survey(kprof_packing *packing);

/* List the guests of a plan that collects these names: none shares a counter with what their values may depend on. */
kprof_status kprof_guests_list(kprof_packing *packing, const kprof_strlist *collect) KPROF_MUST_CHECK;
/* Does the pass have room for a guest that counts instructions, or need none? */
bool kprof_guests_count_instructions(kprof_packing *packing, uint32_t pass);
/* Put the guests into passes and make all variants of the image. INTERNAL when NVPW makes more passes of it. Caller
 * frees *out, on failure too. */
kprof_status kprof_guests_settle(kprof_packing *packing, kprof_image_variants *out) KPROF_MUST_CHECK;
/* Is the guest of this number in the pass? */
bool kprof_guest_is_there(const kprof_packing *packing, size_t number, uint32_t pass);

/* Whole plans on disk, without their cost (kept.c). Write what limits a plan as a text: its key. */
#define KPROF_PLANNED_QUESTION_SIZE 256
void kprof_planned_question(const kprof_limits *limits, char *out, size_t size);
/* False, with nothing in *out, where none is kept. */
bool kprof_planned_recall(const kprof_host_question *question, kprof_planned *out);
void kprof_planned_keep(const kprof_host_question *question, kprof_planned *plan);
/* The reverse of what keeps them. False, with nothing in *out, when the bytes are no plan. */
bool kprof_planned_decode(kprof_bytes *in, kprof_planned *out);
