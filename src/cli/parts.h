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

/* Parts that kprof ctl has started and not stopped yet, for all processes or for one that did so for itself. They begin
 * as zeros but for `run`. */
typedef struct kprof_parts {
    kprof_parts_run run;
    kprof_strlist wanted;          /* what plan i + 1 was asked for with */
    struct kprof_open_part *items; /* [count] */
    size_t count;
    kprof_status lost; /* why a part has no report whose launches are in no other; OK: there is none */
} kprof_parts;

/* Launches of a plan, since a turn of kprof ctl, in some processes. */
typedef struct kprof_part {
    uint32_t plan, first_turn;
    kprof_pids pids; /* none: of all */
} kprof_part;

/* The number of the plan that a line of kprof ctl asks for, by --set, --section and --metrics; 0 where it asks for
 * none. A new one is made for the run's chips, and its files are written. Errors as of kprof_plans_make_for; USAGE when
 * it needs what the run does not keep. */
kprof_status kprof_parts_plan(kprof_parts *parts, const kprof_options *wanted, uint32_t *plan) KPROF_MUST_CHECK;

/* Launches of a part are being measured; they are to have the report that the options of the start name, if any. */
void kprof_parts_begin(kprof_parts *parts, const kprof_part *part, const kprof_options *options);
/* No process has begun the part of this turn: it will have no report. */
void kprof_parts_forget(kprof_parts *parts, uint32_t turn);
/* Is this to be the report of a part that is not made yet? */
bool kprof_parts_promise(const kprof_parts *parts, const char *path);
/* These processes stop, or start anew: end the parts that no other process takes part in; without processes end all
 * parts. `closer`, an address, stands for whoever ends them. */
void kprof_parts_end(kprof_parts *parts, const kprof_pids *whom, const void *closer);
/* A stop is going to end a part, and its options name the report of that. If more processes take part than it stops,
 * those that it stops get a report of their own. USAGE where nothing, or more than one part, was started. */
kprof_status kprof_parts_name(kprof_parts *parts, const kprof_pids *whom,
                              const kprof_options *options) KPROF_MUST_CHECK;
/* Make reports of the parts that `closer` has ended, and forget those. Lines "report PATH" go to `out`, or the log. */
kprof_status kprof_parts_make(kprof_parts *parts, const void *closer, kprof_strbuf *out) KPROF_MUST_CHECK;
void kprof_parts_free(kprof_parts *parts); /* members, once all parts have ended */
