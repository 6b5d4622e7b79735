/* What the phases of packing share: their state, and moves that change where bundles are. */
#ifndef KPROF_PLANNER_PACK_MOVES_H
#define KPROF_PLANNER_PACK_MOVES_H

#include "planner/pack_private.h"

typedef struct kprof_pack_exchange {
    size_t bundle; /* that would be put out for another */
    size_t cost;
} kprof_pack_exchange;

typedef struct kprof_pack_pass {
    bool is_fixed;
    bool is_refused;  /* it has no room for the bundle at hand */
    unsigned failed;  /* bits of what has been tried with it in vain */
    unsigned kinship; /* of the bundle at hand with its bundles */
    size_t side_counts[KPROF_PACK_SIDES], kind_counts[KPROF_PACK_KINDS];
} kprof_pack_pass;

typedef struct kprof_pack_moves {
    kprof_pack_problem *problem;
    kprof_pack_answers *answers;
    kprof_pack_pass *passes;        /* [problem->most_passes] */
    size_t *troubles;               /* [bundle_count]: how often it found no room */
    kprof_pack_exchange *exchanges; /* [bundle_count] */
    /* What to go back to. */
    size_t *saved_passes;    /* [bundle_count] */
    uint32_t *saved_domains; /* [names.count] */
    size_t saved_pass_count;
} kprof_pack_moves;

/* False: out of memory. Caller frees *out, on failure too. */
bool kprof_pack_moves_init(kprof_pack_moves *out, kprof_pack_problem *problem) KPROF_MUST_CHECK;
void kprof_pack_moves_free(kprof_pack_moves *moves); /* members */

/* Remember where everything is, before something is tried, and go back to it. */
void kprof_pack_save(kprof_pack_moves *moves);
void kprof_pack_restore(kprof_pack_moves *moves);

/* Take the bundles out of a pass; with `remove` later passes move up. */
void kprof_pack_empty(kprof_pack_problem *problem, size_t pass, bool remove);

/* Count what each pass holds. */
void kprof_pack_survey(kprof_pack_moves *moves);

/* Something that `bit` stands for has been tried with a pass: it need not be again until something succeeds. */
void kprof_pack_note(kprof_pack_moves *moves, size_t pass, unsigned bit, bool success);

/* Find a pass for each bundle that has none. False: some are left without. After a survey. */
bool kprof_pack_settle(kprof_pack_moves *moves) KPROF_MUST_CHECK;

/* How hard counters are to place. */
size_t kprof_pack_weigh(const size_t *side_counts);

#endif
