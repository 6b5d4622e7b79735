/* The measured instructions of a kernel, with their text and the lines that they come
 * from. Everything comes from a file that may be anyone's: rows are checked and counted before they take memory. */
#pragma once

#include "metricset/instruction.h"
#include "report/model/model.h"
#include "report/store/own_code.h"

/* CUPTI does not count this one of instructions on every chip. Where it did not, the texts of instructions tell which
 * compute in double precision. */
#define KPROF_FP64_COUNTER "smsp__sass_thread_inst_executed_op_fp64_pred_on"

/* The counters of an instruction that numbers are made of. */
#define KPROF_CODE_COUNTERS(X)                                                                                         \
    X(INSTRUCTIONS, "smsp__sass_inst_executed")                                                                        \
    X(THREADS, "smsp__sass_thread_inst_executed")                                                                      \
    X(THREADS_ON, "smsp__sass_thread_inst_executed_pred_on")                                                           \
    X(DIVERGENT, "smsp__sass_branch_targets_threads_divergent")                                                        \
    X(TAGS, "smsp__sass_l1tex_tags_mem_global")                                                                        \
    X(WAVEFRONTS, "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared")                                                   \
    X(WAVEFRONTS_IDEAL, "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal")                                       \
    X(SECTORS, "smsp__sass_sectors_mem_global")                                                                        \
    X(SECTORS_IDEAL, "smsp__sass_sectors_mem_global_ideal")                                                            \
    X(LOCAL, "smsp__sass_sectors_mem_local")                                                                           \
    X(ATOM, "smsp__sass_inst_executed_op_atom")                                                                        \
    X(RED, "smsp__sass_inst_executed_op_global_red")                                                                   \
    X(FP64, KPROF_FP64_COUNTER)                                                                                        \
    X(HIT_FIRST, "smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_first")                                      \
    X(HIT_LAST, "smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_last")                                        \
    X(HIT_NORMAL, "smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_normal")                                    \
    X(HIT_DEMOTE, "smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_normal_demote")                             \
    X(MISS_FIRST, "smsp__sass_inst_executed_memdesc_explicit_missprop_evict_first")                                    \
    X(MISS_NORMAL, "smsp__sass_inst_executed_memdesc_explicit_missprop_evict_normal")                                  \
    KPROF_MADE_NUMBERS(X)
#define KPROF_CODE_COUNTER_ID(id, ...) KPROF_COUNTER_##id,
typedef enum kprof_code_counter {
    KPROF_CODE_COUNTERS(KPROF_CODE_COUNTER_ID) KPROF_COUNTER_COUNT,
    KPROF_COUNTER_NONE
} kprof_code_counter;

/* The numbers that pages show of an instruction or of a line, X(ID, key, label, way, a, b, memory). The way says how a
 * number is made of its counters. STALLS and UNISSUED add up samples. COUNT is one counter, SUM a + b, RATIO a / b,
 * REST what a / b lacks to a warp's 32 threads, and EXCESS a - b but no less than 0. Only code that accesses the memory
 * has the number, or for L2 code that says what it is to keep. */
#define KPROF_CODE_NUMBERS(X)                                                                                          \
    X(SAMPLES, samples, "Samples", STALLS, NONE, NONE, ANY)                                                            \
    X(UNISSUED, samples_not_issued, "Not issued", UNISSUED, NONE, NONE, ANY)                                           \
    X(INSTRUCTIONS, instructions, "Instructions", COUNT, INSTRUCTIONS, NONE, ANY)                                      \
    X(THREADS, thread_instructions, "Thread instructions", COUNT, THREADS, NONE, ANY)                                  \
    X(THREADS_ON, thread_instructions_on, "Predicated on", COUNT, THREADS_ON, NONE, ANY)                               \
    X(ACTIVE, threads_per_instruction, "Threads", RATIO, THREADS, INSTRUCTIONS, ANY)                                   \
    X(ACTIVE_ON, threads_on_per_instruction, "Threads on", RATIO, THREADS_ON, INSTRUCTIONS, ANY)                       \
    X(ACTIVE_OFF, threads_off_per_instruction, "Threads off", REST, THREADS_ON, INSTRUCTIONS, ANY)                     \
    X(DIVERGENT, divergent_branches, "Divergent branches", COUNT, DIVERGENT, NONE, ANY)                                \
    X(TAGS, l1_tag_requests, "L1 tag requests", COUNT, TAGS, NONE, ANY)                                                \
    X(WAYS, shared_ways, "Shared ways", RATIO, WAVEFRONTS, INSTRUCTIONS, ANY)                                          \
    X(CONFLICTS, shared_conflicts, "Bank conflicts", EXCESS, WAVEFRONTS, WAVEFRONTS_IDEAL, SHARED)                     \
    X(WAVEFRONTS, shared_wavefronts, "Shared wavefronts", COUNT, WAVEFRONTS, NONE, SHARED)                             \
    X(WAVEFRONTS_IDEAL, shared_wavefronts_ideal, "Ideal wavefronts", COUNT, WAVEFRONTS_IDEAL, NONE, SHARED)            \
    X(EXCESS, excess_sectors, "Excess sectors", EXCESS, SECTORS, SECTORS_IDEAL, ANY)                                   \
    X(SECTORS, sectors, "L2 sectors", COUNT, SECTORS, NONE, ANY)                                                       \
    X(SECTORS_IDEAL, sectors_ideal, "Ideal sectors", COUNT, SECTORS_IDEAL, NONE, ANY)                                  \
    X(LOCAL, local_sectors, "Local sectors", COUNT, LOCAL, NONE, LOCAL)                                                \
    X(ATOMICS, atomics, "Atomics", SUM, ATOM, RED, ANY)                                                                \
    X(FP64, fp64_thread_instructions, "FP64 thread instructions", COUNT, FP64, NONE, ANY)                              \
    X(HIT_FIRST, hit_evict_first, "Evict first on hit", COUNT, HIT_FIRST, NONE, L2)                                    \
    X(HIT_LAST, hit_evict_last, "Evict last on hit", COUNT, HIT_LAST, NONE, L2)                                        \
    X(HIT_NORMAL, hit_evict_normal, "Evict normal on hit", COUNT, HIT_NORMAL, NONE, L2)                                \
    X(HIT_DEMOTE, hit_evict_normal_demote, "Demote on hit", COUNT, HIT_DEMOTE, NONE, L2)                               \
    X(MISS_FIRST, miss_evict_first, "Evict first on miss", COUNT, MISS_FIRST, NONE, L2)                                \
    X(MISS_NORMAL, miss_evict_normal, "Evict normal on miss", COUNT, MISS_NORMAL, NONE, L2)
#define KPROF_CODE_NUMBER_ID(id, ...) KPROF_NUMBER_##id,
typedef enum kprof_code_number { KPROF_CODE_NUMBERS(KPROF_CODE_NUMBER_ID) KPROF_NUMBER_COUNT } kprof_code_number;
typedef struct kprof_code_number_row {
    const char *key, *label;
    enum { KPROF_OF_ANY, KPROF_OF_LOCAL, KPROF_OF_SHARED, KPROF_OF_L2, KPROF_MEMORIES } memory;
} kprof_code_number_row;
extern const kprof_code_number_row kprof_code_numbers[KPROF_NUMBER_COUNT];

/* The reasons of a warp to wait, in the words of metrics, of people and of ncu's columns. */
typedef struct kprof_stall_reason {
    const char *name, *label, *ncu;
} kprof_stall_reason;
/* The reason of that name, `length` bytes long; NULL: an unknown one. */
const kprof_stall_reason *kprof_stall_reason_find(const char *name, size_t length);

/* A source file. */
typedef struct kprof_code_file {
    int64_t id;
    char *path;
    const char *name; /* its last part; the whole path where another file has the same last part */
    int64_t bytes;    /* -1: not known */
    char *hash;       /* NULL: not known */
    bool has_content; /* the report has its text */
    kprof_code_home home;
} kprof_code_file;

/* The instructions of one kernel as they were measured, over launches of one shape. */
typedef struct kprof_code_profile {
    int64_t id;
    const kprof_model_process *process;
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    int64_t launch;            /* id of the first one */
    uint64_t counted, sampled; /* launches that have counters, and samples */
    uint64_t period_cycles, dropped;
    char *reason;              /* why something is missing; "": nothing is */
    uint64_t taken;            /* launches that the page takes */
    kprof_launch_record shape; /* of the first of these: grid, block, cluster, dynamic shared memory */
} kprof_code_profile;

typedef struct kprof_code_profiles {
    kprof_report *report;
    const kprof_model *model;
    kprof_code_profile *items; /* [count], by id */
    size_t count;
    kprof_code_file *files; /* [file_count], by id */
    size_t file_count;
    struct kprof_code_launch *launches; /* [launch_count], by id */
    size_t launch_count;
    bool takes_ptx;                 /* lines are those of the PTX */
    struct kprof_code_cache *cache; /* instructions that were read */
} kprof_code_profiles;

/* Read which profiles and files there are, or give those that were read before; none in a report of an older version.
 * They live as long as the model, and all pages of it share them, with the instructions that are read. */
const kprof_code_profiles *kprof_code_profiles_load(kprof_report *report, const kprof_model *model);
/* The same profiles with lines of the PTX. They live as long, with a cache of their own. */
const kprof_code_profiles *kprof_code_profiles_of_ptx(const kprof_code_profiles *profiles);
/* The profile that a launch is part of; NULL: none. */
kprof_code_profile *kprof_code_profile_of(const kprof_code_profiles *profiles, int64_t launch);

/* A place in the source. */
typedef struct kprof_profiled_frame {
    const kprof_code_file *file;
    uint32_t line;
    char *function; /* that the line is in; NULL: not known */
} kprof_profiled_frame;

typedef struct kprof_profiled_instruction {
    size_t function; /* index */
    uint64_t offset; /* bytes from the start of the function */
    char *text;      /* NULL: not known */
    char *space, *operation;
    uint32_t access_bits;
    size_t first_frame, frame_count; /* the innermost inlined function first */
    size_t own_frame;                /* the one that its line is of: see kprof_profiled_place */
    size_t first_wait, wait_count;   /* indexes of the instructions whose values it waits for */
} kprof_profiled_instruction;

typedef struct kprof_profiled_function {
    int64_t id;
    char *mangled, *demangled;
    char *text_state, *line_state; /* why there is no text, and why no lines; "": there are */
    size_t first, count;           /* of its instructions */
    uint64_t base;                 /* its offset, if the functions followed one another */
} kprof_profiled_function;

/* A reason with the columns of its samples; SIZE_MAX: not measured. */
typedef struct kprof_profiled_reason {
    const char *name; /* as metrics have it, without prefix and suffix; `length` bytes */
    size_t length;
    const kprof_stall_reason *known; /* NULL: one that kprof does not know */
    size_t all, unissued;
} kprof_profiled_reason;

/* The instructions of a profile. A row of values has a column for each metric that was measured, and behind them
 * those that kprof makes of these. */
typedef struct kprof_profiled_code {
    kprof_pool *pool;                    /* of all of it */
    const kprof_code_profiles *profiles; /* in memory of the model, as those of kprof_code_profiles_load */
    const kprof_code_profile *profile;
    size_t *metrics; /* [metric_count]: indexes into the model's metrics, of each column */
    size_t metric_count, column_count;
    size_t counters[KPROF_COUNTER_COUNT]; /* their columns; SIZE_MAX: not measured */
    kprof_profiled_reason *reasons;       /* [reason_count] */
    size_t reason_count;
    kprof_profiled_function *functions; /* [function_count] */
    size_t function_count;
    kprof_profiled_instruction *instructions; /* [instruction_count], by function and offset */
    size_t instruction_count;
    double *values; /* [instruction_count * column_count] */
    double *totals; /* [column_count]: their sums */
    kprof_profiled_frame *frames;
    size_t frame_count;
    size_t *waits;
    size_t wait_count;
} kprof_profiled_code;

/* Do any of the instructions have lines, and texts? */
bool kprof_profiled_has_lines(const kprof_profiled_code *code);
bool kprof_profiled_has_text(const kprof_profiled_code *code);
/* Does the report have lines of the PTX that they were assembled from? */
bool kprof_profiled_has_ptx(const kprof_profiled_code *code);

static inline const double *kprof_profiled_values(const kprof_profiled_code *code, size_t instruction)
{
    return code->values + instruction * code->column_count;
}

/* Return the frame that an instruction's line is of: the innermost one outside of libraries, or the innermost of all
 * where all are in some. NULL: no line is known. */
const kprof_profiled_frame *kprof_profiled_place(const kprof_profiled_code *code, size_t instruction);
/* Return the innermost frame, in a library that the user's line calls; NULL: the instruction is of that line itself. */
const kprof_profiled_frame *kprof_profiled_library(const kprof_profiled_code *code, size_t instruction);
/* Return the frame that enters the file of an instruction's line: the nearest one around it in another file, or the
 * kernel's own where all of them are in libraries. NULL: the line is of the kernel's own file, or not known. */
const kprof_profiled_frame *kprof_profiled_caller(const kprof_profiled_code *code, size_t instruction);

/* A number of a row of values; NaN: it was not measured. */
double kprof_profiled_number(const kprof_profiled_code *code, const double *values, kprof_code_number number);
/* The reason with the rank-th most samples of a row, 0 first, without those of warps that were selected; NULL: there is
 * none. *pct is its share of the row's samples. */
const kprof_profiled_reason *kprof_profiled_stall(const kprof_profiled_code *code, const double *values, size_t rank,
                                                  double *pct);
/* The hardware tells of some waits only behind the instruction that a warp waits at. The opcode of such instructions,
 * by the name of the reason, `length` bytes long; NULL: the reason's samples are where the wait is. */
const char *kprof_stall_cause_opcode(const char *reason, size_t length);
/* The instruction of that opcode that a sample of `instruction` is about: it, or the last one before it with no jump in
 * between; `instruction` itself where there is none. */
size_t kprof_stall_cause(const kprof_profiled_code *code, const char *opcode, size_t instruction);
/* Does an instruction of that text multiply matrices for a group of warps, which go on meanwhile? */
bool kprof_instruction_multiplies(const char *text);
/* Add columns for what can be made of the measured ones, and fill them once the others have their values. */
void kprof_profiled_add_made(kprof_profiled_code *code);
void kprof_profiled_make(kprof_profiled_code *code);
/* Return the counter of that name; KPROF_COUNTER_NONE: there is none. */
kprof_code_counter kprof_code_counter_find(const char *name);
/* Is the metric of instructions a counter that no number is made of? Users may ask for such by name. */
bool kprof_code_counter_is_alone(const char *name);
/* Return the name of the column's metric if it is such a counter, else NULL. */
const char *kprof_profiled_lone_name(const kprof_profiled_code *code, size_t column);
/* Return the instruction whose value this one waits for: the last one of those that its samples can be about, Long or
 * Short Scoreboard, whichever are more; SIZE_MAX: none. */
size_t kprof_profiled_producer(const kprof_profiled_code *code, size_t instruction);
/* Return the instruction that most samples of this one wait for: as above where they wait for a value, or the barrier,
 * fence, sleep or end that they are about; SIZE_MAX: neither. */
size_t kprof_profiled_awaited(const kprof_profiled_code *code, size_t instruction);
/* Return the instruction that most samples are of; SIZE_MAX: there are none. */
size_t kprof_profiled_hottest(const kprof_profiled_code *code, const size_t *members, size_t count);
/* Return what the hottest instruction of a row of values waits for, as above; SIZE_MAX also where that is hardly what
 * the row waits for. */
size_t kprof_profiled_row_awaited(const kprof_profiled_code *code, const double *values, size_t hottest);
/* The name of a reason for people: its label or, of an unknown one, its name. */
void kprof_profiled_reason_name(const kprof_profiled_reason *reason, char *out, size_t size);

/* A line with what its instructions add up to. */
typedef struct kprof_profiled_line {
    const kprof_code_file *file; /* NULL: the instructions whose line is not known */
    uint32_t line;
    const char *function; /* of its first instruction; NULL: not known */
    size_t first, count;  /* its instructions, in `members` */
    double *values;       /* [column_count] */
} kprof_profiled_line;

typedef struct kprof_profiled_lines {
    kprof_profiled_line *items; /* [count], by file and line; what has no line comes last */
    size_t count;
    size_t *members;   /* instructions, in order */
    size_t *by_caller; /* the same, those of a line in order of what kprof_profiled_caller says */
    double *values;    /* of all lines */
} kprof_profiled_lines;

/* A line of an instruction is that of one of its frames: of the one that kprof_profiled_place tells, of the innermost
 * one, as other tools have it, or of the kernel's own, from where the inlined functions were called. */
typedef enum kprof_line_frame { KPROF_FRAME_OWN, KPROF_FRAME_INNERMOST, KPROF_FRAME_OUTERMOST } kprof_line_frame;

/* Add up instructions by lines. They live as long as the code. */
void kprof_profiled_lines_make(const kprof_profiled_code *code, kprof_line_frame of, kprof_profiled_lines *out);

/* The instructions of a profile, and the lines that they are of themselves. */
typedef struct kprof_loaded_code {
    kprof_profiled_code code;
    kprof_profiled_lines lines;
} kprof_loaded_code;

/* Read the instructions of a profile, or give those that were read before: they are kept for as long as there is space,
 * and valid until the next call. NULL where the report has noted a failure: they do not fit, or reading all that was
 * asked for is more work than a file of this size can be. */
const kprof_loaded_code *kprof_code_load(const kprof_code_profiles *profiles, const kprof_code_profile *profile);

/* Put "softmax.py:41" into `size` bytes (at least 32). A longer name loses its end, and the line stays. */
void kprof_code_put_place(char *out, size_t size, const kprof_code_file *file, uint32_t line);

/* A line with its share of the samples; an instruction, where no line is known. */
typedef struct kprof_hot_line {
    char place[96];              /* "softmax.py:41", or "0x0110" */
    char library[96];            /* "binary_search.inl:201", where most samples are in a library that it calls; or "" */
    char caller[96];             /* "stalls.cu:298", where the line is of a function inlined from another file; or "" */
    const kprof_code_file *file; /* NULL: an instruction */
    uint32_t line;
    double pct;         /* of the samples of the kernel */
    char stall[48];     /* what most warps wait for there; "": nothing */
    char caused_at[96]; /* "stalls.cu:63", where the instruction is that most of these wait at; "": the line is its own
                         */
    const char *reason; /* why the kernel has no samples, and so no such line; NULL: it has */
} kprof_hot_line;

#define KPROF_HOT_LINES_MAX 5
typedef struct kprof_hot_lines {
    kprof_hot_line items[KPROF_HOT_LINES_MAX];
    size_t count;
} kprof_hot_lines;

/* Find the lines of a profile that most samples are of, the hottest first; none where it was not sampled. */
void kprof_hot_lines_find(const kprof_code_profiles *profiles, const kprof_code_profile *profile, kprof_hot_lines *out);
/* Append "line softmax.py:41, 31.20 % of the samples (Long Scoreboard)", "line intrinsics.hpp:170, called from ...", or
 * "... (Barrier at softmax.py:44)". */
void kprof_hot_line_describe(const kprof_hot_line *line, kprof_strbuf *out);
