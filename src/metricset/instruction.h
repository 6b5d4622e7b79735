/* The metrics of single instructions: counters that code patched into a kernel counts, samples of where its warps
 * stand, and what is computed of them. Names are CUPTI's, which the reports store, and ncu's. */
#pragma once

#include "core/strbuf.h"
#include "host/host.h"

typedef enum kprof_instruction_kind {
    KPROF_INSTRUCTION_COUNTER,  /* CUPTI counts it; `name` is what CUPTI calls it */
    KPROF_INSTRUCTION_SAMPLE,   /* samples with one reason; all reasons are sampled together */
    KPROF_INSTRUCTION_COMPUTED, /* of the counters in `needs` when it is shown, or, without any, of samples */
} kprof_instruction_kind;

enum { KPROF_INSTRUCTION_NEEDS = 3 };

/* The prefix of a word of --metrics that is about instructions only: "source:inst_executed". */
#define KPROF_INSTRUCTION_PREFIX "source:"
/* The beginning of the names of all samples. */
#define KPROF_SAMPLE_PREFIX "smsp__pcsamp_"
#define KPROF_SAMPLE_COUNT  KPROF_SAMPLE_PREFIX "sample_count"

typedef struct kprof_instruction_metric {
    kprof_instruction_kind kind;
    const char *name;  /* as reports store it */
    const char *word;  /* as lists show it, and --metrics takes it: with the prefix, if a launch has the name too */
    const char *ncu;   /* ncu's name for the same; NULL: ncu has none, or the same */
    const char *label; /* the heading of ncu's column, or one like it */
    const char *unit, *help;
    const char *needs[KPROF_INSTRUCTION_NEEDS + 1]; /* counters that a computed one is made of, NULL-terminated */
} kprof_instruction_metric;

/* All of them, ended by a row without a name: counters, then samples, then what is computed. */
extern const kprof_instruction_metric *const kprof_instruction_metrics;
/* The row of CUPTI's or ncu's name, or NULL. */
const kprof_instruction_metric *kprof_instruction_metric_find(const char *name);
/* Is it a count, which can be added up over instructions? So are samples, and the excess of one count over another. */
bool kprof_instruction_can_add(const kprof_instruction_metric *metric);
/* Does the chip have it? CUPTI counts for whole kernels what it counts for instructions, but for the ideal numbers,
 * which are where the real ones are. */
bool kprof_instruction_metric_on(kprof_host *host, const kprof_instruction_metric *metric);

/* Does a word of --metrics stand for metrics of instructions? Such words are names that only instructions have, names
 * with the prefix, and ncu's groups of samples. */
bool kprof_instruction_is_word(const char *word);
/* The metric that one of these names is of, or NULL: it is a group, or a counter that the table does not have. */
const kprof_instruction_metric *kprof_instruction_of_word(const char *word);
/* Append the words, as lists show them, of the metrics that such a word stands for. UNKNOWN_NAME, with the nearest,
 * where the chip has none. */
kprof_status kprof_instruction_select(kprof_host *host, const char *word, kprof_strlist *out) KPROF_MUST_CHECK;

/* The counters and samples to take of instructions. */
typedef struct kprof_instruction_wish {
    kprof_strlist counters; /* names for CUPTI, each once */
    bool samples;
} kprof_instruction_wish;

void kprof_instruction_wish_free(kprof_instruction_wish *wish); /* members */
/* The passes that it takes for itself: one for all counters, and one for the samples. */
size_t kprof_instruction_passes(const kprof_instruction_wish *wish);
/* Add what the metric of a word as lists show it is made of, as far as the chip has it. */
kprof_status kprof_instruction_wish_add(kprof_host *host, const char *word,
                                        kprof_instruction_wish *out) KPROF_MUST_CHECK;
