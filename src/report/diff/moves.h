/* Finds the lines of a kernel, or instructions where none is known, that have another share of its samples now. */
#pragma once

#include "report/diff/diff.h"
#include "report/model/code.h"
#include "report/model/source_text.h"
#include "report/store/source_file.h"

/* The lines of a source file in another version of it. */
typedef struct kprof_line_map {
    uint32_t *to; /* [count]: the number of each line in the new version, from 1; 0: it is not there any more */
    size_t count;
} kprof_line_map;

/* Join the lines that begin or end both texts, that each has once, or that stand alike beside these. Edited lines are
 * joined, too, where as many of them stand between two joined ones as before. Indents do not count. */
void kprof_line_map_make(kprof_pool *pool, const kprof_source_text *from, const kprof_source_text *to,
                         kprof_line_map *out);

/* A line of both reports. Where its file was edited it has the number that it has now. */
typedef struct kprof_moved_line {
    char place[128];         /* "softmax.py:41", "softmax.py:41 of the baseline" where it is gone, or "0x0110" */
    bool is_line;            /* else an instruction */
    double pct[KPROF_SIDES]; /* of the samples of the kernel; 0: none */
    char stall[48];          /* what most warps wait for, where the line has the larger share; "": nothing */
    bool has_moved;          /* by more points than chance explains, and enough to matter */
} kprof_moved_line;

#define KPROF_MOVED_MAX 6
/* The hottest line of each report, and those that moved most; those with the largest changes first. */
typedef struct kprof_moved_lines {
    kprof_moved_line items[KPROF_MOVED_MAX + KPROF_SIDES];
    size_t count;       /* 0: a report has no samples of the kernel, or one has lines and the other none */
    char edited[96];    /* a file that was edited and lacks a text: its lines keep their numbers; "": none */
    bool is_recompiled; /* the new code has other instructions, and no line tells which belong together */
} kprof_moved_lines;

/* A file of the baseline, compared with the one of the new report. */
typedef struct kprof_file_versions {
    enum { KPROF_FILE_NOT_COMPARED, KPROF_FILE_SAME, KPROF_FILE_EDITED, KPROF_FILE_UNKNOWN } state;
    const kprof_code_file *now; /* where it was edited */
    kprof_line_map lines;       /* likewise */
} kprof_file_versions;

typedef struct kprof_moves {
    const kprof_page_context *context;
    const kprof_code_profiles *profiles[KPROF_SIDES];
    kprof_file_versions *files; /* [profiles[KPROF_BASELINE].file_count] */
    size_t *taken[KPROF_SIDES]; /* [profiles.count]: the kernel that took them last */
    size_t kernels;             /* asked about so far */
    kprof_source_index index;   /* of the folders with texts */
} kprof_moves;

/* In memory of the models, but for what kprof_moves_free frees. */
void kprof_moves_load(const kprof_page_context *context, kprof_moves *out);
void kprof_moves_free(kprof_moves *moves);
/* Do both reports tell of instructions at all? */
bool kprof_moves_are_there(const kprof_moves *moves);
/* Compare where the samples of a kernel are. */
void kprof_moves_find(kprof_moves *moves, const kprof_diff_kernel *kernel, kprof_moved_lines *out);
/* Append "the samples moved from line softmax.py:41 to line softmax.py:57", if one line lost and one won, or why their
 * numbers do not tell. */
void kprof_moves_describe(const kprof_moved_lines *lines, kprof_strbuf *out);
