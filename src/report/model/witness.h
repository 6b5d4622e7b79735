/* Witnesses: counters that every pass of a launch should give alike. Their spread over the passes is stored as a metric
 * of its own, and a launch says whether its passes disagree. */
#pragma once

#include "report/model/model.h"

typedef struct kprof_disagreement {
    char *witness; /* owned */
    double spread_pct;
} kprof_disagreement;

/* The witnesses that vary more between the passes of a launch than a kernel does that repeats the same work:
 * instructions may not vary at all, cycles and time by a tenth. Return how many; *out, which may be NULL, gets them,
 * for kprof_disagreements_free. */
size_t kprof_disagreements(const kprof_model *model, const kprof_model_launch *launch, kprof_disagreement **out);
void kprof_disagreements_free(kprof_disagreement *disagreements, size_t count);
/* Append them as words, "witness 12.5 %; witness 3 %"; nothing when there are none. */
void kprof_disagreements_describe(const kprof_model *model, const kprof_model_launch *launch, kprof_strbuf *out);

/* Does a value from these passes join passes that may have done different work? Yes, if a witness that disagrees was
 * counted in at least two of them. */
bool kprof_passes_disagree(const kprof_model *model, const kprof_model_launch *launch,
                           const kprof_model_passes *passes);

/* How the values of a launch that needed counters came about. */
typedef struct kprof_joining {
    size_t of_one_pass, of_several; /* values */
    bool is_witnessed;              /* a witness was counted in several passes */
    bool disagrees;                 /* and at least one value joins passes that disagree */
} kprof_joining;
kprof_joining kprof_joining_of(const kprof_model *model, const kprof_model_launch *launch);
