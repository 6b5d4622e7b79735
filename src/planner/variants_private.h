/* Shared by the files that make variants of a config image: host_variants.c makes them, host_witness.c chooses the
 * witnesses, and host_proof.c chooses the proof. */
#ifndef KPROF_PLANNER_VARIANTS_PRIVATE_H
#define KPROF_PLANNER_VARIANTS_PRIVATE_H

#include "core/config.h"
#include "planner/raw_config.h"
#include "planner/schedule.h"

/* A metric that may become a witness. */
typedef struct kprof_witness_candidate {
    kprof_strlist counters; /* none: it cannot be a witness here */
    bool *fits;             /* [image->pass_count]; in the end: it is there */
} kprof_witness_candidate;

typedef struct kprof_variant_builder {
    kprof_host *host;
    kprof_evaluator *evaluator;
    const kprof_config_image *image; /* the given one */
    kprof_placed_counters *passes;   /* [image->pass_count]: the counters of each */
    kprof_strlist taken;             /* counters that a collected value or a witness may depend on */
    kprof_witness_candidate candidates[KPROF_MAX_WITNESSES];
    uint32_t *sm_domains;         /* [image->pass_count]: where the instructions of the SMs are read */
    kprof_strlist proof_counters; /* empty: there is no proof */
    unsigned bits;                /* KPROF_IMAGE_, of the variant that is being made */
} kprof_variant_builder;

/* Called for each pass of the given image, while the pass' group is open and has the pass' counters. */
typedef kprof_status kprof_pass_visitor(kprof_variant_builder *b, kprof_raw_config *config, size_t pass);

/* Schedule the passes of the given image again, after the pass of the proof when b->bits has PROVED. *out is the new
 * image, which the caller frees; with `out` NULL none is made. */
kprof_status kprof_variant_builder_run(kprof_variant_builder *b, kprof_pass_visitor *visit,
                                       kprof_config_image *out) KPROF_MUST_CHECK;
/* Is one of the counters among b->taken? */
bool kprof_variant_builder_has_taken(const kprof_variant_builder *b, const kprof_strlist *counters);

/* Choose witnesses and their passes; append the names to `names`. */
kprof_status kprof_witnesses_choose(kprof_variant_builder *b, kprof_strlist *names) KPROF_MUST_CHECK;
/* Add the witnesses that the pass has in the variant b->bits. */
kprof_pass_visitor kprof_witnesses_add;

/* Choose the metrics of the proof and append them to `names`; nothing where the chip has no proof. */
kprof_status kprof_proof_choose(kprof_variant_builder *b, kprof_strlist *names) KPROF_MUST_CHECK;

#endif
