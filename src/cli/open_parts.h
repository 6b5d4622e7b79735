/* Keeps what kprof ctl has started and not stopped yet, for all processes or for one that did so for itself. */
#pragma once

#include "cli/parts.h"

struct kprof_open_part;

typedef struct kprof_open_parts {
    kprof_parts *parts;            /* borrowed */
    struct kprof_open_part *items; /* [count] */
    size_t count;
    kprof_status lost; /* why a part has no report whose launches are in no other; OK: there is none */
} kprof_open_parts;

/* Launches of a part are being measured; they are to have the report that the options of the start name, if any. */
void kprof_open_parts_begin(kprof_open_parts *open, const kprof_part *part, const kprof_options *options);
/* No process has begun the part of this turn: it will have no report. */
void kprof_open_parts_forget(kprof_open_parts *open, uint32_t turn);
/* Is this to be the report of a part that is not made yet? */
bool kprof_open_parts_promise(const kprof_open_parts *open, const char *path);
/* The processes are stopped, or started anew: parts that are of these alone end, and with none named all of them.
 * `closer`, an address, stands for whoever ends them. */
void kprof_open_parts_end(kprof_open_parts *open, const kprof_pids *whom, const void *closer);
/* The options of a stop name the report of the part that it is going to end. Of a part of more processes, these have a
 * report of their own. USAGE where nothing, or more than one part, was started. */
kprof_status kprof_open_parts_name(kprof_open_parts *open, const kprof_pids *whom,
                                   const kprof_options *options) KPROF_MUST_CHECK;
/* Make reports of the parts that `closer` has ended, and forget those. Lines "report PATH" go to `out`, or the log. */
kprof_status kprof_open_parts_make(kprof_open_parts *open, const void *closer, kprof_strbuf *out) KPROF_MUST_CHECK;
