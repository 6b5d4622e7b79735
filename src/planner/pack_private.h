/* What packing works on: the raw counters of CUPTI's image in bundles that stay together, and the pass of each. */
#ifndef KPROF_PLANNER_PACK_PRIVATE_H
#define KPROF_PLANNER_PACK_PRIVATE_H

#include "planner/raw_config.h"

#define KPROF_NO_PASS   SIZE_MAX
#define KPROF_NO_BUNDLE SIZE_MAX

/* Counters of the SMs compete with each other for room in a pass, and so do all others among themselves. */
typedef enum kprof_pack_side { KPROF_SIDE_SM, KPROF_SIDE_OTHER, KPROF_PACK_SIDES } kprof_pack_side;

/* A pass takes longer with counters of these kinds. One that is read in two domains together is of both. */
typedef enum kprof_pack_kind {
    KPROF_KIND_SM_A, /* in the first of the SMs' domains */
    KPROF_KIND_SLOW, /* in the second or third of them */
    KPROF_KIND_L2,
    KPROF_KIND_TPC,
    KPROF_PACK_KINDS,
} kprof_pack_kind;
#define KPROF_KIND_BIT(kind) (1u << (kind))

typedef struct kprof_pack_counter {
    const char *name;            /* borrowed from the problem's names */
    kprof_counter_places places; /* in the SMs, where one pass takes it; those that are wanted least come first */
    kprof_pack_side side;
    unsigned kinds; /* bits of those that it is of where NVPW chooses its domain */
    bool is_bound;  /* stays with all others of its pass that are bound */
    bool is_patch;  /* counted by patched code, which takes a pass of its own */
    size_t pass;    /* in CUPTI's image */
    size_t bundle;
    uint32_t domain; /* where it is read; 0: NVPW chooses, as for CUPTI's image */
} kprof_pack_counter;

/* Counters that stay in one pass. */
typedef struct kprof_pack_bundle {
    const size_t *counters; /* [count]: indices, borrowed */
    size_t count, side_counts[KPROF_PACK_SIDES];
    double tightness; /* 1 where each of its counters in the SMs has one place, less for more */
    bool is_fixed;    /* its pass stays as it is */
    size_t pass;      /* now */
} kprof_pack_bundle;

typedef struct kprof_pack_problem {
    kprof_strlist names;
    kprof_pack_counter *counters; /* [names.count], in the order of CUPTI's passes */
    kprof_pack_bundle *bundles;   /* [bundle_count] */
    size_t bundle_count, pass_count;
    unsigned launches;        /* of the batch that the schedule is made for */
    size_t most_passes;       /* CUPTI's */
    bool few_passes;          /* rather than fast launches */
    size_t *members;          /* [names.count]: the bundles' counters */
    unsigned char *kinships;  /* [bundle_count * bundle_count]: how many metrics are computed from both */
    unsigned *closed_kinds;   /* [most_passes]: bits of the kinds that a pass is not to get */
    kprof_raw_config *config; /* with an empty group open: tells what goes into one pass */
} kprof_pack_problem;

/* Bundle the counters of *image, CUPTI's own of `names`; out->few_passes is the caller's to set. UNSUPPORTED, without a
 * message, when it has a counter in several passes. Caller frees *out, on failure too. */
kprof_status kprof_pack_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                             kprof_pack_problem *out) KPROF_MUST_CHECK;
void kprof_pack_free(kprof_pack_problem *problem); /* members */

/* Empty passes into others: changes pass_count, the passes of bundles and the domains of counters. */
kprof_status kprof_pack_search(kprof_pack_problem *problem) KPROF_MUST_CHECK;

/* Then make the passes cheaper: changes the same; a pass that has lost all its counters goes, and there may be more
 * passes again where launches get cheaper by it. On failure the schedule is as good as it was found so far. */
kprof_status kprof_pack_gather(kprof_pack_problem *problem) KPROF_MUST_CHECK;

/* Counters of which each pass is to have one, though no value depends on them; NULL: none of that kind. */
typedef struct kprof_pack_guests {
    const char *in_sms;  /* in the SMs' first domain */
    const char *in_tpcs; /* where NVPW places it */
} kprof_pack_guests;

/* Then leave room for a guest in every pass, as far as it makes hardly anything dearer. */
kprof_status kprof_pack_make_room(kprof_pack_problem *problem, const kprof_pack_guests *guests) KPROF_MUST_CHECK;

/* Bits of the kinds of a counter that NVPW places. It prefers the second and third domain of the SMs, since it takes
 * the first in their order that a counter has. */
unsigned kprof_places_kinds(const kprof_counter_places *places);
/* In the first domain of the SMs, alone or with another, and of no kind that a pass with these kinds has not: one more
 * counter there costs nothing. */
bool kprof_place_is_free(uint32_t place, unsigned kinds);
/* Bits of the kinds that it is of where it is read now. */
unsigned kprof_pack_kinds_of(const kprof_pack_counter *counter);
/* Add one to counts[kind] for each of these; counts is [KPROF_PACK_KINDS]. */
void kprof_pack_count_kinds(const kprof_pack_counter *counter, size_t *counts);
/* What all passes take: starting and stopping them, and a batch of launches in between. */
unsigned kprof_pack_cost_ms(const kprof_pack_problem *problem);

/* Answers of NVPW, each kept so that it is asked once. */
typedef struct kprof_pack_answers kprof_pack_answers;

/* NULL: out of memory. Once NVPW has been asked `end` times, or has failed, every answer is no. */
kprof_pack_answers *kprof_pack_answers_new(kprof_pack_problem *problem, size_t end);
void kprof_pack_answers_free(kprof_pack_answers *answers);
bool kprof_pack_may_ask(const kprof_pack_answers *answers);
/* Answer no more than `questions` from now on, up to that end. False: not one. */
bool kprof_pack_allow(kprof_pack_answers *answers, size_t questions);
kprof_status kprof_pack_answers_status(const kprof_pack_answers *answers) KPROF_MUST_CHECK;

/* The counters of a pass go together where they are. */
bool kprof_pack_goes_together(kprof_pack_answers *answers, size_t pass);
/* There is room in `pass`, were it without the bundle `without`, for a bundle that is in none; chooses the domains of
 * its counters. */
bool kprof_pack_has_room(kprof_pack_answers *answers, const kprof_pack_bundle *bundle, size_t pass, size_t without);

#endif
