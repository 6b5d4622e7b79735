/* Warnings of options that have no effect. */
#pragma once

#include "cli/options.h"

/* Warn of options that have no effect beside the others of a line that is settled. `told`: the same line before
 * something else was settled, if the user has been warned of that; or NULL. */
void kprof_idle_tell(const kprof_options *options, const kprof_options *told);

/* Tells whether the plans of a run measure instructions, and sample over time. */
typedef struct kprof_plans_hold {
    bool instructions; /* counted or sampled */
    bool samples;      /* of instructions */
    bool timelines;
} kprof_plans_hold;

/* Warn of options of a run that its plans leave without effect. */
void kprof_idle_tell_planned(const kprof_options *options, const kprof_plans_hold *held);
/* Has an option of words or of a count the value that it has where it is not given? Scripts spell such values out. */
bool kprof_option_has_default(const kprof_options *options, const kprof_option_row *row);
