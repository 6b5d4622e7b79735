/* Finds the lines of a kernel, or instructions where none is known, that have another share of its samples now. */
#pragma once

#include "report/diff/diff.h"
#include "report/model/code.h"

/* A line of both reports. */
typedef struct kprof_moved_line {
    char place[96];          /* "softmax.py:41", or "0x0110" */
    bool is_line;            /* else an instruction */
    double pct[KPROF_SIDES]; /* of the samples of the kernel; 0: none */
    char stall[48];          /* what most warps wait for, where the line has the larger share; "": nothing */
    bool has_moved;          /* by more points than chance would, and than nobody cares for */
} kprof_moved_line;

#define KPROF_MOVED_MAX 6
/* The hottest line of each report, and those that moved most; those with the largest changes first. */
typedef struct kprof_moved_lines {
    kprof_moved_line items[KPROF_MOVED_MAX + KPROF_SIDES];
    size_t count; /* 0: a report has no samples of the kernel, or one has lines and the other none */
} kprof_moved_lines;

typedef struct kprof_moves {
    kprof_code_profiles profiles[KPROF_SIDES];
    size_t *taken[KPROF_SIDES]; /* [profiles.count]: the kernel that took them last */
    size_t kernels;             /* asked about so far */
} kprof_moves;

/* To be freed with kprof_moves_free, also after a failure. */
kprof_status kprof_moves_load(const kprof_page_context *context, kprof_moves *out) KPROF_MUST_CHECK;
void kprof_moves_free(kprof_moves *moves); /* members */
/* Do both reports tell of instructions at all? */
bool kprof_moves_are_there(const kprof_moves *moves);
/* Compare where the samples of a kernel are. */
kprof_status kprof_moves_find(kprof_moves *moves, const kprof_diff_kernel *kernel,
                              kprof_moved_lines *out) KPROF_MUST_CHECK;
/* Append "the samples moved from line softmax.py:41 to line softmax.py:57", if one line lost and one won. */
void kprof_moves_describe(const kprof_moved_lines *lines, kprof_strbuf *out);
