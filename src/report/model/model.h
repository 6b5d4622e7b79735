/* A report in memory, as the pages read it: the small tables whole, launches one at a time. Everything comes from a
 * file that may be anyone's: text is made safe to print, numbers that refer to rows are checked. */
#pragma once

#include "core/names.h"
#include "report/report.h"
#include "report/store/rows.h"

/* The passes that the counters of a metric are in, in rising order, from 1. */
typedef struct kprof_model_passes {
    uint32_t *items; /* [count] */
    size_t count;
    char *text; /* "1-3 5"; NULL when there are none */
} kprof_model_passes;

typedef struct kprof_model_pass {
    uint32_t counters;
    bool sm_side; /* some of them are in the SMs */
} kprof_model_pass;

/* The plan for one chip: its sections, in display order, and the passes. */
typedef struct kprof_model_chip {
    char *name;
    kprof_section *sections; /* those that pages show, then the others */
    size_t section_count, shown_count;
    size_t value_count;       /* that these show for a launch, with what is around them */
    kprof_model_pass *passes; /* [pass_count]; none in a report that does not tell */
    size_t pass_count;
    kprof_model_passes *schedule; /* [metric_count of the model], or NULL */
    size_t scheduled;             /* passes in it, over all metrics */
} kprof_model_chip;

/* A call stack. Pages that show its frames read them. */
typedef struct kprof_model_stack {
    char *line;   /* "train.py:57 in step": the innermost line that is the user's own; or why there is none */
    char *module; /* the file, or of native code the module, that it is in; "": not known */
} kprof_model_stack;

/* Arrays have their rows in the order of their ids, which count from 1. */
typedef struct kprof_model {
    kprof_pool *pool; /* has all of it, and what pages make of it */
    char *command_line, *working_directory, *kprof_version, *sets;
    int64_t start_unix_ns;
    bool has_nvtx;       /* some launch has NVTX ranges */
    bool has_other_sets; /* it is merged of runs that may have collected other metrics */
    kprof_model_stack *stacks;
    size_t stack_count;
    kprof_model_process *processes;
    size_t process_count;
    kprof_model_device *devices;
    size_t device_count;
    kprof_model_kernel *kernels;
    size_t kernel_count;
    kprof_model_metric *metrics;
    size_t metric_count;
    kprof_names metric_names; /* name -> index into metrics */
    bool *is_shown;           /* [metric_count]: pages show the metric; NULL: they show all */
    bool *is_kept;            /* [metric_count]: a report made of this one has the metric; NULL: it has all */
    size_t *witnesses;        /* [witness_count]: the metrics that hold the spread of a witness */
    size_t witness_count;
    kprof_model_chip *chips;
    size_t chip_count;
    kprof_model_left_out *left_out; /* [left_out_count], the most useful of each chip first */
    size_t left_out_count;
    kprof_model_message *messages;
    size_t message_count;
    struct kprof_code_profiles **code; /* what kprof_code_profiles_load has read */
    kprof_model_census *census;        /* what --census counted and timed; its rows refer to others that are there */
    size_t census_count;
} kprof_model;

/* Read all but launches and values. */
kprof_status kprof_model_load(kprof_report *report, kprof_model *out) KPROF_MUST_CHECK;
void kprof_model_free(kprof_model *model); /* members, not the struct */
/* How many processes were cut short. With `path`, a warning tells so. */
size_t kprof_model_tell_cut_short(const kprof_model *model, const char *path);

/* How the values of a metric spread over samples. */
typedef struct kprof_model_spread {
    size_t samples; /* that have a value; 0 for values that are known without counters */
    double mad;     /* their median absolute deviation, in the unit of the metric; NaN: none */
} kprof_model_spread;

/* How many launches have a call stack. */
typedef struct kprof_stack_count {
    int64_t stack; /* as kprof_model_launch has it */
    uint64_t launches;
} kprof_stack_count;

/* Multiplexed launches of one process, device, kernel and shape, which pages show as one. A sample is a full set of
 * values, joined from as many of these launches as there are passes. */
typedef struct kprof_model_samples {
    int64_t last_launch; /* id; the entry's own is that of the first one */
    uint64_t launches;
    bool is_part;                    /* there are launches of other parts, and they have the same samples */
    uint64_t other_lines;            /* launches from other lines than the first one's */
    uint64_t other_ranges;           /* launches in other NVTX ranges than the first one's */
    const kprof_stack_count *stacks; /* [stack_count]: of all launches, that of the first one first */
    size_t stack_count;
    uint64_t untold;      /* other launches of the kernel, of any shape, that the walk does not visit */
    uint64_t count;       /* samples among them */
    uint64_t partial;     /* of those: they lack passes that others have */
    size_t read;          /* of those, at most KPROF_SAMPLES_MAX, the first ones */
    size_t set_apart;     /* of those read: their passes disagree */
    size_t used;          /* the medians are of these: all that agree, or all that were read if none does */
    const double *values; /* [used * metric_count]: of each sample used */
    const kprof_model_spread *spreads; /* [metric_count] */
} kprof_model_samples;

/* One launch with its values. Pointers are into the model or the cursor. */
typedef struct kprof_model_launch {
    int64_t id;
    const kprof_model_process *process;
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    kprof_launch_record record;       /* without values */
    const char *reason, *replay_mode; /* valid until the next launch, as record.nvtx is */
    int64_t stack;                    /* row of the call stack; 0: none was kept */
    const char *stack_origin;         /* the call that the stack is of, as the table launch_stack has it; "": none */
    int64_t measured;
    const double *values;               /* [metric_count of the model]; NaN: not measured or not asked for */
    const bool *asked;                  /* [metric_count]: the launch has a row for the metric */
    const kprof_model_samples *samples; /* the launch stands for several, `values` are medians; NULL: for itself */
} kprof_model_launch;

/* Call `visit` for each launch that the filter (NULL: all) takes, in stored order, until it fails. */
typedef kprof_status kprof_model_visit(void *user, const kprof_model_launch *launch);
typedef struct kprof_model_walk {
    kprof_report *report;
    const kprof_model *model;
    const kprof_filter_spec *filter;
    bool values; /* read the values too */
} kprof_model_walk;
kprof_status kprof_model_launches(const kprof_model_walk *walk, kprof_model_visit *visit, void *user) KPROF_MUST_CHECK;

/* As kprof_model_launches, always with values; but multiplexed launches of one process, device, kernel, shape and part
 * are handed over as one, in the place of the first. Its `samples`, `reason`, `measured` and passes are those of its
 * samples; all else is the first launch's. A report of more than KPROF_SAMPLE_GROUPS_MAX such kernels and shapes has
 * the launches of further ones visited one by one. BAD_REPORT, before anything is visited, when the values of all
 * launches are more than a file of this size can be about. */
#define KPROF_SAMPLES_MAX       1024
#define KPROF_SAMPLE_GROUPS_MAX 16384
/* Returns the name of a launch's part, such as one line of code, or an NVTX range, which is to be freed. Each part has
 * all samples of its kernel and shape, since a sample may belong to several parts. */
typedef char *kprof_model_part(const void *of, const kprof_model_launch *launch);
typedef struct kprof_model_parts {
    kprof_model_part *part; /* NULL: there is one */
    const void *of;
} kprof_model_parts;
kprof_status kprof_model_joined_launches(const kprof_model_walk *walk, kprof_model_parts parts,
                                         kprof_model_visit *visit, void *user) KPROF_MUST_CHECK;

/* Counts the values that a page is about to read of one or two reports, so that no small file asks for minutes. */
typedef struct kprof_work {
    kprof_report *reports[2]; /* the second one may be NULL */
    uint64_t done;
} kprof_work;
/* Count values as work. BAD_REPORT, with a message of what to do: they are more than a file of this size can hold. The
 * first report notes that. */
kprof_status kprof_work_charge(kprof_work *work, uint64_t values);

/* Reads the values of single launches. */
typedef struct kprof_value_reader {
    kprof_report *report;
    size_t metric_count;
    sqlite3_stmt *rows;
    int64_t text_bytes; /* read so far */
} kprof_value_reader;
void kprof_value_reader_open(const kprof_model_walk *walk, kprof_value_reader *reader);
/* The same for some metrics only, given as indexes, which is faster. Others look as if they had not been asked for. */
void kprof_value_reader_open_some(const kprof_model_walk *walk, const size_t *metrics, size_t count,
                                  kprof_value_reader *reader);
/* Fill values[metric_count] and asked[metric_count], as kprof_model_launch has them. */
kprof_status kprof_value_reader_read(kprof_value_reader *reader, int64_t launch, double *values, bool *asked);
void kprof_value_reader_close(kprof_value_reader *reader);

/* The passes that a metric comes from on a device (borrowed); none when it has no counters or they are not known. */
kprof_model_passes kprof_model_passes_of(const kprof_model_device *device, const kprof_model *model, size_t metric);

/* The one of values[metric_count] that the metric of this name has; NaN: the report has no such metric. */
double kprof_model_value(const kprof_model *model, const double *values, const char *name);

/* The call stack of a launch; NULL: none was kept. */
const kprof_model_stack *kprof_model_stack_of(const kprof_model *model, const kprof_model_launch *launch);
/* Was the launch multiplexed: measured in one pass, in its own run, for a sample that it shares with others? */
bool kprof_model_is_multiplexed(const kprof_model_launch *launch);
/* True when the launch should have been measured but was not. A launch without counters to measure has no reason, and a
 * multiplexed launch has its counters in its sample. */
bool kprof_model_is_missing(const kprof_model_launch *launch);
/* Do the times of samples include time before their kernels, without a note in their reasons? They do in reports from
 * before kprof measured that time. */
bool kprof_model_begins_early(const kprof_model *model);

/* Append how many launches and samples the values stand for: "88 multiplexed: medians of 3 samples of 8 passes". */
void kprof_samples_describe(const kprof_model_launch *launch, kprof_strbuf *out);
/* Append that the report omits this many launches of a multiplexed kernel; nothing for 0. */
void kprof_untold_note(uint64_t untold, kprof_strbuf *out);
/* Append which launches and samples the medians leave out, and why times are too long; nothing when all is well. */
void kprof_samples_note(const kprof_model *model, const kprof_model_samples *samples, kprof_strbuf *out);

/* "function", "demangled" or "mangled" name of a kernel; demangled when `base` is NULL. */
const char *kprof_model_kernel_name(const kprof_model_kernel *kernel, const char *base);
