/* The report: one SQLite file per run. Written while the application runs, read by every page and format.
 * docs/report-schema.md is the schema. */
#pragma once

#include "core/filter.h"
#include "metricset/metricset.h"
#include "planner/planner.h"
#include "spool/record.h"

#include <stdio.h>

typedef struct kprof_report kprof_report;

/* With --rank-passes, "rank 2 of 8" stands among the sets of a run. */
#define KPROF_RANK_OF "rank"

typedef struct kprof_run_info {
    const char *command_line; /* of kprof */
    const char *working_directory;
    const char *kprof_version;
    const char *const *sets; /* NULL-terminated, as asked for */
    int64_t start_unix_ns;
} kprof_run_info;

typedef enum kprof_create_mode {
    KPROF_CREATE_NEW,     /* a file of that name is an error */
    KPROF_CREATE_REPLACE, /* built under another name beside it, and renamed when it is closed */
    KPROF_CREATE_CLAIMED, /* the caller has just created the file, empty, with O_EXCL */
} kprof_create_mode;

/* Create a new report (mode 0600) at `path`. OUTPUT, and nothing is left behind, when that cannot be done. */
kprof_status kprof_report_create(const char *path, kprof_create_mode mode, const kprof_run_info *run,
                                 kprof_report **out) KPROF_MUST_CHECK;
/* Can a report of this name be made, as far as one can tell without making it? OUTPUT with a message. */
kprof_status kprof_report_check_place(const char *path, bool may_replace) KPROF_MUST_CHECK;
/* The path of the file that a report is being written to: its own, or the one that replaces it at the end. */
const char *kprof_report_place(const kprof_report *report);
/* Copy what has been stored so far to a report of its own at `path` (mode 0600): the run and its plans, from which
 * kprof_report_recreate makes the report again. OUTPUT with a message. */
kprof_status kprof_report_keep_seed(kprof_report *report, const char *path) KPROF_MUST_CHECK;
/* Create a report as kprof_report_create does, with the run and the plans of a seed, which is read from the descriptor
 * `seed`. BAD_REPORT, and nothing is left behind, when the file is no seed or has launches. */
kprof_status kprof_report_recreate(const char *path, kprof_create_mode mode, int seed,
                                   kprof_report **out) KPROF_MUST_CHECK;
/* The report that is being written is made of other ones: if it cannot be completed, nothing of it is to stay. */
void kprof_report_keep_only_if_whole(kprof_report *report);
/* Close a report that is being written, and remove its files. */
void kprof_report_discard(kprof_report *report);
/* Remove the files of the report that is being written, if any: the process ends. */
void kprof_report_abandon(void);
/* Store the plan for a chip: its sections as JSON, its metrics with unit and description (from `host`), and the names
 * that are left out. */
kprof_status kprof_report_add_plan(kprof_report *report, const kprof_plan *plan, kprof_host *host) KPROF_MUST_CHECK;
/* Store what each pass holds, and which passes each metric and each witness comes from. The plan has been added. */
typedef struct kprof_plan_passes {
    const kprof_strlist *witnesses;
    const kprof_schedule *schedule; /* of what the plan collects, and then of the witnesses */
} kprof_plan_passes;
kprof_status kprof_report_add_passes(kprof_report *report, const kprof_plan *plan,
                                     const kprof_plan_passes *passes) KPROF_MUST_CHECK;

/* One spool being ingested: maps the process' own kernel and device numbers to rows. */
typedef struct kprof_ingest kprof_ingest;
kprof_ingest *kprof_ingest_new(kprof_report *report);
/* Store only launches of this plan of kprof ctl, and of its turns from this one on: see KPROF_ARMED_FIELDS. To be
 * called before anything is stored; without it the plan is the run's own. */
void kprof_ingest_choose(kprof_ingest *ingest, uint32_t plan, uint32_t first_turn);
/* Store one record. Values, launch__* metrics (src/report/store/launch_metrics.c) and demangled names are made here.
 * OUTPUT when the disk is full; what was stored before stays readable. */
kprof_status kprof_ingest_record(kprof_ingest *ingest, const kprof_record *record) KPROF_MUST_CHECK;
void kprof_ingest_free(kprof_ingest *ingest);

/* Keep what is measured of instructions for each launch, not for each kernel and shape. */
void kprof_report_keep_launches_apart(kprof_report *report);

/* Group the next records into one transaction; commit makes them durable for readers. */
kprof_status kprof_report_begin(kprof_report *report) KPROF_MUST_CHECK;
kprof_status kprof_report_commit(kprof_report *report) KPROF_MUST_CHECK;

/* How a process ended, once known: exit status as wait(2) has it. */
kprof_status kprof_report_set_exit(kprof_report *report, int64_t pid, int wait_status) KPROF_MUST_CHECK;
/* The report has all that the process did in its time. */
void kprof_report_set_whole(kprof_report *report, int64_t pid);

/* Open an existing report for reading. BAD_REPORT with a message for a missing, truncated, foreign or newer file. */
kprof_status kprof_report_open(const char *path, kprof_report **out) KPROF_MUST_CHECK;
/* True when kprof_report_close never finished the file. False when the file cannot be read. */
bool kprof_report_is_unfinished(const char *path);
/* True when the report can be opened. Prints no message when it cannot. */
bool kprof_report_is_readable(const char *path);
/* True when two files are reports of the same run: the runs began in the same nanosecond. */
bool kprof_report_is_same_run(const char *path, const char *other);
/* Finish the report (one plain file, no -wal beside it) and close it. Whoever reads the report meanwhile still sees the
 * old content. When the report cannot be put in its place, a message says where it is. */
kprof_status kprof_report_close(kprof_report *report) KPROF_MUST_CHECK;

typedef struct kprof_report_counts {
    uint64_t launches;     /* all launches seen, profiled or not */
    uint64_t profiled;     /* launch rows with values, in a sample, or with nothing that had to be measured */
    uint64_t not_measured; /* launch rows without, which have a reason */
    size_t processes;      /* that called CUDA */
    size_t cut_short;      /* of them: what they did last is missing */
    bool has_untold;       /* launches ran that no row stands for, as of graphs that are not profiled by kernel */
    uint64_t multiplexed;  /* of the profiled ones: measured in one pass each, in a sample or between samples */
    uint64_t samples;      /* of those */
    uint64_t incomplete;   /* samples without some of the passes, since no more launches or ranges came */
    size_t kernels;        /* distinct kernels seen */
    uint64_t activities;   /* of a trace */
    bool has_trace;        /* perhaps an empty one */
    uint64_t dropped;      /* activities that were lost */
    uint64_t unknown;      /* records of CUPTI's that kprof cannot read */
    bool has_samples;      /* of a trace: of counters over the time of the program */
    uint64_t timed;        /* launches that --census timed, which none of the others count */
    bool has_instructions; /* of some launches, measured themselves or not, instructions were counted or sampled */
} kprof_report_counts;
kprof_status kprof_report_count(kprof_report *report, kprof_report_counts *out) KPROF_MUST_CHECK;
/* Warn if processes were cut short, in a run that has ended. `name`: of the report; NULL: its path. */
kprof_status kprof_report_tell_cut_short(kprof_report *report, const char *name) KPROF_MUST_CHECK;

/* The kernels of the census that have most of the GPU's time: `most` at most (0: all) of those the filter takes. */
typedef struct kprof_census_choice {
    kprof_strlist chosen;  /* their mangled names; the caller frees both lists, also after a failure */
    kprof_strlist missing; /* those of them that have a shape with fewer measured launches than the filter's
                              launch_count, and as it has in the census */
    double missing_ns;     /* the time of these shapes */
    size_t kernels;        /* in the census */
    uint64_t launches;
    double total_ns, chosen_ns; /* of all, and of those chosen */
} kprof_census_choice;
kprof_status kprof_report_choose(kprof_report *report, const kprof_filter_spec *filter, uint64_t most,
                                 kprof_census_choice *out) KPROF_MUST_CHECK;

/* Does any launch have samples over time, or a reason why it has none? */
bool kprof_report_has_timelines(kprof_report *report);
/* Return the status of the first failure to read the report, which has had its message. kprof reads nothing more behind
 * one, as if there was nothing. */
kprof_status kprof_report_status(const kprof_report *report);

/* kprof's own command line, as kprof_report_create was given it, but safe to print. Caller frees. */
kprof_status kprof_report_command_line(kprof_report *report, char **out) KPROF_MUST_CHECK;

/* How many stored launches the filter takes, and how many of these were multiplexed. */
kprof_status kprof_report_count_taken(kprof_report *report, const kprof_filter_spec *filter,
                                      uint64_t *out) KPROF_MUST_CHECK;
kprof_status kprof_report_count_multiplexed(kprof_report *report, const kprof_filter_spec *filter,
                                            uint64_t *out) KPROF_MUST_CHECK;

/* Print a trace that kprof_trace_check found, in the JSON of Chrome. */
kprof_status kprof_report_print_chrome(kprof_report *report, FILE *out) KPROF_MUST_CHECK;
/* Write such a trace as an SQLite file with tables of Nsight Systems to `path`, an empty file. */
kprof_status kprof_report_write_nsys(kprof_report *report, const char *path) KPROF_MUST_CHECK;
/* Print the GPU's time of each call stack and kernel as folded stacks, a line each. */
kprof_status kprof_report_print_folded(kprof_report *report, const kprof_filter_spec *filter,
                                       FILE *out) KPROF_MUST_CHECK;
/* Add the NVTX ranges of the first 1,000 launches that have any, each text once, and at most `most` of them. */
kprof_status kprof_report_nvtx(kprof_report *report, size_t most, kprof_strlist *out) KPROF_MUST_CHECK;
/* Add up to three reasons why launches have no values, the most frequent first. */
kprof_status kprof_report_reasons(kprof_report *report, kprof_strlist *out) KPROF_MUST_CHECK;

/* The numbers of the first and the last stored launch; -1: there is none. */
kprof_status kprof_report_launch_range(kprof_report *report, int64_t *first, int64_t *last) KPROF_MUST_CHECK;
/* Append the names of all metrics, as the file has them. */
kprof_status kprof_report_metric_names(kprof_report *report, kprof_strlist *out) KPROF_MUST_CHECK;

/* Kernels seen with their launch counts, the most launched first. Kernels of the same name count as one. */
typedef struct kprof_seen_kernel {
    char *function, *demangled, *mangled;
    uint64_t launches;
    bool has_code; /* else it is a range, where such are measured, or the report does not tell */
} kprof_seen_kernel;
kprof_status kprof_report_seen(kprof_report *report, kprof_seen_kernel **kernels, size_t *count) KPROF_MUST_CHECK;
void kprof_seen_free(kprof_seen_kernel *kernels, size_t count);

/* The pages of a report, X(ID, name, reports that it shows): a new page is one row here and one file with the function
 * kprof_page_<name>, which report/page/page.h declares. */
#define KPROF_PAGES(X)                                                                                                 \
    X(DETAILS, details, 1)       /* sections, launch by launch */                                                      \
    X(RAW, raw, 1)               /* every metric of each launch */                                                     \
    X(SUMMARY, summary, 1)       /* a row for each kernel: its time, its limit and what can be gained */               \
    X(CENSUS, census, 1)         /* how often each kernel was launched, measured or not, and how long that took */     \
    X(STATISTICS, statistics, 1) /* how each metric spreads over the launches of each kernel */                        \
    X(BRIEF, brief, 1)           /* a few lines, or a small document, for each kernel */                               \
    X(SOURCE, source, 1)         /* lines and instructions of each kernel, the hottest first */                        \
    X(TIMELINE, timeline, 1)     /* what each launch has over time */                                                  \
    X(SOURCES, sources, 1)       /* each kernel over the reports that were merged, or the processes */                 \
    X(SESSION, session, 1)       /* run, processes, devices, kernels seen, messages */
#define KPROF_PAGE_ID(id, name, reports) KPROF_PAGE_##id,
typedef enum kprof_page { KPROF_PAGES(KPROF_PAGE_ID) KPROF_PAGE_COUNT } kprof_page;

/* The formats, PLAIN(ID, name, keeps_text) or OPTION(ID, name, keeps_text, help) for those with an option of that name:
 * a new format is one row here and one file, emit_<name>.c, with the table kprof_emit_<name>, which
 * report/emit/emit.h declares. One that keeps text encodes any text itself; the others get it cleaned. */
#define KPROF_FORMATS(PLAIN, OPTION)                                                                                   \
    PLAIN(TEXT, text, false)                                                                                           \
    OPTION(CSV, csv, false, "print CSV: base units, full metric names")                                                \
    PLAIN(CSV_WIDE, csv_wide, false)                                                                                   \
    PLAIN(CSV_NCU, csv_ncu, false)                                                                                     \
    OPTION(JSON, json, true, "print JSON")                                                                             \
    OPTION(MARKDOWN, markdown, false, "print Markdown with tables")                                                    \
    PLAIN(TEXT_NCU, text_ncu, false)                                                                                   \
    PLAIN(JSONL, jsonl, true)                                                                                          \
    PLAIN(PROMETHEUS, prometheus, false)                                                                               \
    PLAIN(PERFETTO, perfetto, true)                                                                                    \
    PLAIN(TSV, tsv, false)                                                                                             \
    PLAIN(BOXES, boxes, false)                                                                                         \
    PLAIN(HTABLE, htable, false)                                                                                       \
    PLAIN(HDOC, hdoc, false)                                                                                           \
    PLAIN(HTML, html, false)
#define KPROF_FORMAT_ID(id, ...) KPROF_FORMAT_##id,
typedef enum kprof_format { KPROF_FORMATS(KPROF_FORMAT_ID, KPROF_FORMAT_ID) KPROF_FORMAT_COUNT } kprof_format;

/* A row of the summary, statistics and brief pages stands for launches of one kernel on one kind of device that also
 * have this in common. */
typedef enum kprof_grouping {
    KPROF_GROUP_KERNEL, /* nothing else */
    KPROF_GROUP_CONFIG, /* grid, block, cluster and dynamic shared memory */
    KPROF_GROUP_DEVICE,
    KPROF_GROUP_PROCESS,
    KPROF_GROUP_GRAPH,  /* the node of a CUDA graph, or none */
    KPROF_GROUP_NVTX,   /* the innermost NVTX ranges, or none */
    KPROF_GROUP_STACK,  /* the call stack, or none */
    KPROF_GROUP_LINE,   /* the innermost line of it that is the user's own */
    KPROF_GROUP_SHAPE,  /* process, number of the device, grid and block, as in ncu's summary */
    KPROF_GROUP_MODULE, /* the module or operator that PyTorch names in NVTX ranges, else the file of that line */
} kprof_grouping;

/* The order of rows of the summary, brief and source pages: the largest first, names in alphabetical order. */
typedef enum kprof_sort_key {
    KPROF_SORT_GAIN, /* share of the time that can be gained */
    KPROF_SORT_TIME,
    KPROF_SORT_LAUNCHES,
    KPROF_SORT_DURATION, /* the median of one launch */
    KPROF_SORT_COMPUTE,
    KPROF_SORT_MEMORY,
    KPROF_SORT_NAME,
    KPROF_SORT_SAMPLES, /* from here on, of the source page */
    KPROF_SORT_INSTRUCTIONS,
    KPROF_SORT_SECTORS,    /* moved for nothing */
    KPROF_SORT_CONFLICTS,  /* of shared memory's banks */
    KPROF_SORT_LOCAL,      /* sectors of local memory */
    KPROF_SORT_DIVERGENCE, /* branches that divided a warp */
} kprof_sort_key;

/* The rows of the source page. */
typedef enum kprof_source_view {
    KPROF_VIEW_BEST, /* lines if the code has any, else instructions */
    KPROF_VIEW_SASS, /* instructions */
    KPROF_VIEW_CUDA, /* lines */
    KPROF_VIEW_BOTH, /* lines, each with its instructions */
    KPROF_VIEW_PTX,  /* lines of the PTX */
} kprof_source_view;

/* The line that counts for an instruction of an inlined function. */
typedef enum kprof_inlined {
    KPROF_INLINED_CALLEE, /* that in the function */
    KPROF_INLINED_CALLER, /* that of the kernel, where the function is called */
} kprof_inlined;

/* The names of metrics in sections. */
typedef enum kprof_metric_title {
    KPROF_TITLE_LABEL,
    KPROF_TITLE_NAME,
    KPROF_TITLE_BOTH, /* "Duration (gpu__time_duration.sum)" */
} kprof_metric_title;

/* Tells what the raw page in ncu's layout shows of metrics of single instructions. */
typedef enum kprof_instances {
    KPROF_INSTANCES_NONE,
    KPROF_INSTANCES_VALUES,  /* "12 (4; 8)" */
    KPROF_INSTANCES_DETAILS, /* "12 (0x0: 4; 0x10: 8)" */
} kprof_instances;

#define KPROF_TABLE_WIDTHS 32

/* How the one table of a page looks, beside its format. */
typedef struct kprof_table_style {
    bool no_header;                 /* its columns have no names */
    bool no_limit;                  /* its boxes may be wider than 100 characters */
    bool no_lines;                  /* its boxes have no lines around them */
    bool no_grouping;               /* its numbers have all digits, and no thousands apart */
    bool has_title;                 /* its title stands above its boxes */
    const char *title, *css;        /* of a document of HTML; NULL: the table's title, and kprof's style */
    int widths[KPROF_TABLE_WIDTHS]; /* of its first boxes: 0: the column is left out, -1: as its rows make it */
    size_t width_count;
} kprof_table_style;

typedef struct kprof_print_options {
    kprof_page page;
    kprof_format format;
    bool color;                      /* already decided: terminal, NO_COLOR */
    bool base_units;                 /* --print-units base; formats for programs always are */
    unsigned width;                  /* columns of a line; 0: names are never cut, all else is laid out for 100 */
    bool all_rows;                   /* in text: also show rows of zeros and values that an earlier section has shown */
    bool csv_safe;                   /* in CSV: quote texts so that no spreadsheet reads one as a formula */
    bool details_help;               /* in text: what sections and metrics mean */
    bool verbose;                    /* in text: the verdict on every kernel of the summary */
    bool begins_with_summary;        /* details of many launches: the summary page comes first */
    const kprof_filter_spec *filter; /* of the reporter: -k, -s, -c apply to stored launches too; NULL: all */
    const struct kprof_subset *part; /* its sections and metrics are shown; NULL: all are */
    const kprof_finding_list *findings; /* to evaluate; NULL: none, and no verdict */
    bool findings_are_named; /* the user named them: show them even when the page shows none of their sections */
    const char *kernel_base; /* name shown: "function", "demangled" or "mangled"; NULL: "demangled" */
    kprof_metric_title metric_title;
    bool with_tables;   /* ncu's layout has the cells of tables, too */
    bool with_decimals; /* and decimals behind whole numbers */
    bool nvtx_renames;  /* and the innermost pushed NVTX range before the kernel's name */
    kprof_instances instances;
    kprof_grouping group_by;
    kprof_sort_key sort;
    uint64_t top; /* the summary, brief and source pages show this many rows; 0: all */
    kprof_source_view source_view;
    kprof_inlined inlined;
    const kprof_strlist *source_folders, *source_files; /* where source files may be; NULL: nowhere else */
    const struct kprof_condition *conditions; /* [condition_count]: take only launches that meet all of them */
    size_t condition_count;
    kprof_table_style table;
} kprof_print_options;

/* Print one page to `out`. USAGE when the page shows another number of reports, OUTPUT when `out` cannot be written. */
kprof_status kprof_report_print(kprof_report *const *reports, size_t count, const kprof_print_options *options,
                                FILE *out) KPROF_MUST_CHECK;
