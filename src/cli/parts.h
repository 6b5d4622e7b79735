/* Parts that kprof ctl measures with sets other than the run's, or keeps in a file of their own: plans, which processes
 * read from the session directory, and reports of the launches between a start and a stop. */
#pragma once

#include "cli/plans.h"
#include "cli/session.h"
#include "cli/spools.h"

/* The run; all is borrowed. */
typedef struct kprof_parts_run {
    const kprof_options *options;
    const kprof_session *session;
    const kprof_plans *plans; /* number 0 */
} kprof_parts_run;

typedef struct kprof_parts kprof_parts;

kprof_parts *kprof_parts_new(const kprof_parts_run *run);
void kprof_parts_free(kprof_parts *parts); /* safe for NULL */

/* The number of the plan that a line of kprof ctl asks for, by --set, --section and --metrics; 0 where it asks for
 * none. A new one is made for the run's chips, and its files are written. Errors as of kprof_plans_make_for; USAGE when
 * it needs what the run does not keep. */
kprof_status kprof_parts_plan(kprof_parts *parts, const kprof_options *wanted, uint32_t *plan) KPROF_MUST_CHECK;

/* Launches of a plan, since a turn of kprof ctl, in some processes. */
typedef struct kprof_part {
    uint32_t plan, first_turn;
    kprof_pids pids; /* none: of all */
} kprof_part;
/* Make a report of a part, from all that processes have written so far, at wanted->export_path. The caller frees *path;
 * it is NULL on failure. */
kprof_status kprof_parts_make(kprof_parts *parts, const kprof_part *part, const kprof_options *wanted,
                              char **path) KPROF_MUST_CHECK;
