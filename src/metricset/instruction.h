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
/* Names of samples with one reason; the suffix is there where the warp's scheduler issued nothing. */
#define KPROF_STALL_PREFIX KPROF_SAMPLE_PREFIX "warps_issue_stalled_"
#define KPROF_STALL_SUFFIX "_not_issued"
/* The reasons of a warp to wait, in the order of ncu's columns: in the words of metrics, people, ncu's column and that
 * of samples that issued nothing; OPTIONAL: ncu has these only where a warp had the reason; the meaning. An H200
 * counts as "gmma" what it samples as "warpgroup_arrive": people read one word for both. */
#define KPROF_STALL_REASONS(X)                                                                                         \
    X("barrier", "Barrier", "barrier", "barrier", COUNT, "The warp waits for other warps at a barrier")                \
    X("branch_resolving", "Branch Resolving", "branch_resolving", "branch_resolving", COUNT,                           \
      "The warp waits for the target of a branch")                                                                     \
    X("dispatch_stall", "Dispatch Stall", "dispatch", "dispatch", COUNT, "The dispatcher holds the instruction back")  \
    X("drain", "Drain", "drain", "drain", COUNT, "The warp has ended, and waits until its stores are out")             \
    X("gmma", "GMMA", "gmma", "gmma", OPTIONAL, "The warp waits for matrix operations of its warpgroup")               \
    X("warpgroup_arrive", "GMMA", "warpgroup_arrive", "warpgroup_arrive", OPTIONAL,                                    \
      "The warp waits for its warpgroup, before matrix operations")                                                    \
    X("imc_miss", "IMC Miss", "imc", "imc", COUNT, "The warp waits for a constant that the cache does not have")       \
    X("lg_throttle", "LG Throttle", "lg", "lg", COUNT, "The queue for local and global memory is full")                \
    X("long_scoreboard", "Long Scoreboard", "long_sb", "long_sb", COUNT,                                               \
      "The warp waits for a value from global, local or texture memory")                                               \
    X("math_pipe_throttle", "Math Pipe Throttle", "math", "math", COUNT,                                               \
      "The pipe that the instruction needs is busy")                                                                   \
    X("membar", "Membar", "membar", "membar", COUNT, "The warp waits at a memory barrier")                             \
    X("mio_throttle", "MIO Throttle", "mio", "mio", COUNT,                                                             \
      "The queue for shared memory and special instructions is full")                                                  \
    X("misc", "Misc", "misc", "misc", COUNT, "Another reason")                                                         \
    X("no_instructions", "No Instruction", "no_inst", "no_inst", COUNT,                                                \
      "The warp waits for the instruction to be fetched")                                                              \
    X("not_selected", "Not Selected", "not_selected", "not_selected", COUNT,                                           \
      "The warp could issue, and its scheduler chose another one")                                                     \
    X("selected", "Selected", "selected", "selected", COUNT, "The warp issues the instruction")                        \
    X("short_scoreboard", "Short Scoreboard", "short_sb", "short_sb", COUNT,                                           \
      "The warp waits for a value from shared memory or a special instruction")                                        \
    X("sleeping", "Sleeping", "sleep", "sleeping", COUNT, "All threads of the warp sleep")                             \
    X("tex_throttle", "TEX Throttle", "tex", "tex", COUNT, "The queue for texture instructions is full")               \
    X("wait", "Wait", "wait", "wait", COUNT, "The warp waits a fixed number of cycles for the instruction before")

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
/* The metric that pages call so where they show lines and instructions; NULL: none. */
const kprof_instruction_metric *kprof_instruction_of_label(const char *label);
/* Return what such a number is; NULL: pages call none so. */
const char *kprof_instruction_label_help(const char *label);
/* Is it a count, which can be added up over instructions? So are samples, and the excess of one count over another. */
bool kprof_instruction_can_add(const kprof_instruction_metric *metric);
/* The report makes these numbers of counters and texts of instructions, for findings alone: the name, the unit, and
 * what it is. */
#define KPROF_MADE_NUMBERS(X)                                                                                          \
    X(FP64_CONVERTED, "derived__source_thread_inst_fp64_converted", "thread",                                          \
      "threads that convert from or to double precision")                                                              \
    X(FP32, "derived__source_thread_inst_fp32", "thread", "threads that add or multiply in single precision")          \
    X(ATOMIC_SAMPLES, "derived__source_samples_atomic", "sample",                                                      \
      "samples at atomics on global memory, and of warps that wait for their values")                                  \
    X(ATOMIC_TAGS, "derived__source_tags_global_atomic", "", "cache lines that atomics on global memory ask for")      \
    X(ATOMIC_EXTREMES, "derived__source_tags_atomic_extreme", "",                                                      \
      "cache lines that minima, maxima, ANDs and ORs on global memory ask for")                                        \
    X(ATOMIC_CONFLICTS, "derived__source_conflicts_shared_atomic", "wavefront",                                        \
      "wavefronts of shared memory that its atomics take beyond "                                                      \
      "the ideal ones")                                                                                                \
    X(PREDICATED_OFF, "derived__source_thread_inst_pred_off", "thread",                                                \
      "active threads whose predicate was false, but at jumps")                                                        \
    X(IDLE, "derived__source_thread_inst_idle", "thread", "threads of a warp that are not active")                     \
    X(CONSTANTS, "derived__source_inst_constant_indexed", "inst",                                                      \
      "times that a warp read constants at an index of each thread")                                                   \
    X(WORST_EXCESS, "derived__source_sectors_worst_excess", "sector",                                                  \
      "excess sectors of the line that has the most of them")                                                          \
    X(WORST_SECTORS, "derived__source_sectors_worst", "sector",                                                        \
      "sectors of those instructions of the line with the most "                                                       \
      "excess sectors that have excess ones")                                                                          \
    X(SAMPLES, "derived__source_samples", "sample", "samples with any reason")                                         \
    X(SAMPLES_UNISSUED, "derived__source_samples_not_issued", "sample",                                                \
      "samples of cycles in which the warp's scheduler issued "                                                        \
      "nothing")
/* Does the chip have it? CUPTI counts for whole kernels what it counts for instructions, but for the ideal numbers,
 * which are where the real ones are. */
bool kprof_instruction_metric_on(kprof_host *host, const kprof_instruction_metric *metric);

/* Does a word of --metrics stand for metrics of instructions? Such words are names that only instructions have, names
 * with the prefix, and ncu's groups of samples. */
bool kprof_instruction_is_word(const char *word);
/* Is it a number of all samples of a launch? CUPTI lists these as reasons, too, and counts nothing by them. */
bool kprof_instruction_is_of_launch(const char *name);
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
void kprof_instruction_wish_add(kprof_host *host, const char *word, kprof_instruction_wish *out);
