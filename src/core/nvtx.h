/* The NVTX ranges that a launch is in: expressions that choose launches by them, as ncu's --nvtx-include has them, and
 * the text that spools and reports keep. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

/* A launch is reported with at most this many ranges: those that its thread has pushed, and the started ones. */
#define KPROF_NVTX_PUSHED_MAX  128
#define KPROF_NVTX_STARTED_MAX 128
#define KPROF_NVTX_RANGES_MAX  (KPROF_NVTX_PUSHED_MAX + KPROF_NVTX_STARTED_MAX)

typedef struct kprof_nvtx_range {
    const char *domain; /* "": the default one */
    const char *name;   /* "": it has none */
    bool is_started;    /* by nvtxRangeStart; else pushed by nvtxRangePush */
    uint64_t marks;     /* bit i: it is a chosen instance of expression i to include */
} kprof_nvtx_range;

/* Open ranges in the order of opening, the outermost first. Of each domain the first KPROF_NVTX_RANGES_MAX count. */
typedef struct kprof_nvtx_ranges {
    const kprof_nvtx_range *items; /* [count] */
    size_t count;
} kprof_nvtx_ranges;

typedef struct kprof_nvtx_filter kprof_nvtx_filter;

/* Compile the expressions (copied); messages name the options of those to include and to exclude. A launch passes if
 * one of `include` matches its ranges, or `include` is empty, and none of `exclude` does. *out is NULL when both are
 * empty. USAGE with a message that names expression and fault. */
kprof_status kprof_nvtx_filter_new(const char *const options[2], const kprof_strlist *include,
                                   const kprof_strlist *exclude, kprof_nvtx_filter **out) KPROF_MUST_CHECK;
void kprof_nvtx_filter_free(kprof_nvtx_filter *filter);
/* Bits of `how`: ask that the last range of an expression to include is marked for it, or do not look at what is to be
 * included. Thread-safe. */
enum { KPROF_NVTX_BY_INSTANCE = 1, KPROF_NVTX_INCLUDES_ALL = 2 };
bool kprof_nvtx_filter_match(const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *ranges, unsigned how);
/* The range at place `begun` has just begun. Return, as bits, the expressions to include that lacked only this one.
 * Thread-safe. */
uint64_t kprof_nvtx_filter_completed(const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *ranges, size_t begun);
/* The work of matching patterns so far, as kprof_regex_work has it. */
uint64_t kprof_nvtx_filter_work(const kprof_nvtx_filter *filter);

/* Append the ranges as a text: "step/forward/" for what is pushed in the default domain, "net@layer/" for what is
 * pushed in another one, "epoch" for what is started, with "; " between them. The domain whose range was pushed last
 * comes first, and started ranges come last. A \ stands before each \ / @ ; that is part of a name. "" for no range. */
void kprof_nvtx_put_text(const kprof_nvtx_ranges *ranges, kprof_strbuf *out);

/* The ranges of a text. */
typedef struct kprof_nvtx_parsed {
    kprof_nvtx_range items[KPROF_NVTX_RANGES_MAX];
    size_t count;
    char *names; /* owned */
} kprof_nvtx_parsed;
/* Take a text apart; any text will do, and ranges past the limit are left out. Ranges of each domain are in their
 * order. False when out of memory. `out` is to be freed by kprof_nvtx_parsed_free. */
bool kprof_nvtx_parse_text(const char *text, kprof_nvtx_parsed *out);
void kprof_nvtx_parsed_free(kprof_nvtx_parsed *parsed);

/* Length of the text's first part, the innermost ranges: those of the domain whose range was pushed last, or the first
 * started one. 0 when there is none. */
size_t kprof_nvtx_innermost_length(const char *text);
