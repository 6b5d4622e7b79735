/* The report: one SQLite file per run. Written while the application runs, read by every page and format.
 * docs/report-schema.md is the schema. */
#ifndef KPROF_REPORT_REPORT_H
#define KPROF_REPORT_REPORT_H

#include "core/filter.h"
#include "metricset/metricset.h"
#include "planner/planner.h"
#include "spool/record.h"

#include <stdio.h>

typedef struct kprof_report kprof_report;

typedef struct kprof_run_info {
    const char *command_line; /* of kprof */
    const char *working_directory;
    const char *kprof_version;
    const char *const *sets; /* NULL-terminated, as asked for */
    int64_t start_unix_ns;
} kprof_run_info;

/* Create a new report (mode 0600) at `path`; an existing file is an error (OUTPUT) unless `overwrite`. */
kprof_status kprof_report_create(const char *path, bool overwrite, const kprof_run_info *run,
                                 kprof_report **out) KPROF_MUST_CHECK;
/* Store what was planned for a chip: its sections as JSON, the metrics with unit and description (from `host`), and the
 * names that are left out. */
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
kprof_status kprof_ingest_new(kprof_report *report, kprof_ingest **out) KPROF_MUST_CHECK;
/* Store one record. Values, launch__* metrics (src/report/launch_metrics.c) and demangled names are made here. OUTPUT
 * when the disk is full; what was stored before stays readable. */
kprof_status kprof_ingest_record(kprof_ingest *ingest, const kprof_record *record) KPROF_MUST_CHECK;
void kprof_ingest_free(kprof_ingest *ingest);

/* Group the next records into one transaction; commit makes them durable for readers. */
kprof_status kprof_report_begin(kprof_report *report) KPROF_MUST_CHECK;
kprof_status kprof_report_commit(kprof_report *report) KPROF_MUST_CHECK;

/* How a process ended, once known: exit status as wait(2) has it. */
kprof_status kprof_report_set_exit(kprof_report *report, int64_t pid, int wait_status) KPROF_MUST_CHECK;

/* Open an existing report for reading. BAD_REPORT with a message for a missing, truncated, foreign or newer file. */
kprof_status kprof_report_open(const char *path, kprof_report **out) KPROF_MUST_CHECK;
/* Finish (checkpoint; one file, no -wal beside it) and close. */
kprof_status kprof_report_close(kprof_report *report) KPROF_MUST_CHECK;

typedef struct kprof_report_counts {
    uint64_t launches;     /* all launches seen, profiled or not */
    uint64_t profiled;     /* launch rows with values, in a sample, or with nothing that had to be measured */
    uint64_t not_measured; /* launch rows without, which have a reason */
    uint64_t multiplexed;  /* of the profiled ones: measured in one pass each, as parts of samples, or between */
    uint64_t samples;      /* of those */
    size_t kernels;        /* distinct kernels seen */
} kprof_report_counts;
kprof_status kprof_report_count(kprof_report *report, kprof_report_counts *out) KPROF_MUST_CHECK;

/* How many stored launches the filter takes. */
kprof_status kprof_report_count_taken(kprof_report *report, const kprof_filter_spec *filter,
                                      uint64_t *out) KPROF_MUST_CHECK;

/* Kernels seen with launch counts, most launched first: names of up to `limit` distinct kernels. */
typedef struct kprof_seen_kernel {
    char *function, *demangled, *mangled;
    uint64_t launches;
} kprof_seen_kernel;
kprof_status kprof_report_seen(kprof_report *report, kprof_seen_kernel **kernels, size_t *count) KPROF_MUST_CHECK;
void kprof_seen_free(kprof_seen_kernel *kernels, size_t count);

typedef enum kprof_page {
    KPROF_PAGE_DETAILS,
    KPROF_PAGE_RAW,
    KPROF_PAGE_SUMMARY,
    KPROF_PAGE_SESSION,
    KPROF_PAGE_PLAN, /* of no report: what kprof --plan prints */
} kprof_page;
typedef enum kprof_format { KPROF_FORMAT_TEXT, KPROF_FORMAT_CSV, KPROF_FORMAT_JSON } kprof_format;
typedef enum kprof_csv_layout { KPROF_CSV_LONG, KPROF_CSV_WIDE, KPROF_CSV_NCU } kprof_csv_layout;

typedef struct kprof_print_options {
    kprof_page page;
    kprof_format format;
    kprof_csv_layout csv_layout;
    bool color;                      /* already decided: terminal, NO_COLOR */
    bool base_units;                 /* --print-units base; CSV and JSON always are */
    unsigned width;                  /* terminal columns; 0: 100 */
    const kprof_filter_spec *filter; /* of the reporter: -k, -s, -c apply to stored launches too; NULL: all */
    const char *kernel_base;         /* name shown: "function", "demangled" or "mangled"; NULL: "demangled" */
} kprof_print_options;

/* Print one page to `out`. OUTPUT when `out` cannot be written. */
kprof_status kprof_report_print(kprof_report *report, const kprof_print_options *options, FILE *out) KPROF_MUST_CHECK;

#endif
