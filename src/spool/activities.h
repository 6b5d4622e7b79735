/* Packs the activities of a trace into a block of bytes, the payload of a spool's record, and takes them out again. An
 * activity is written as its kind, the fields that differ from the last one of that kind in the block, and by how much:
 * a kernel takes 12 to 16 bytes. A block needs no other. */
#pragma once

#include "core/activities.h"
#include "core/strbuf.h"

/* The last activity of each kind. Zero to begin a block. */
typedef struct kprof_activity_history {
    int64_t last[KPROF_ACTIVITY_KINDS][KPROF_ACTIVITY_FIELDS_MAX];
} kprof_activity_history;

/* Append an activity. A failed allocation is left in out->failed. */
void kprof_activity_encode(kprof_activity_history *history, const kprof_activity *activity, kprof_strbuf *out);

/* A block that is being read; borrowed. */
typedef struct kprof_activity_block {
    const uint8_t *data;
    size_t left;
    bool failed; /* it has something that is no activity */
    kprof_activity_history history;
} kprof_activity_block;

/* Take the next activity out. False at the end, and at what is no activity, after which nothing comes. */
bool kprof_activity_decode(kprof_activity_block *block, kprof_activity *out);
