/* A realistic report for tests, made through the public interface: sections from tests/golden/sections, values of one
 * launch from tests/golden/values.txt, two processes and launches of several kinds. */
#pragma once

#include "report/report.h"

typedef struct fixture_metrics {
    kprof_strlist names, units;
    double *values;
} fixture_metrics;

/* The metrics of tests/golden/values.txt; fails the test when they cannot be read. */
fixture_metrics fixture_metrics_load(void);
void fixture_metrics_free(fixture_metrics *metrics);

/* A plan for GH100 with the fixture's sections; free with fixture_plan_free. */
kprof_plan fixture_plan_make(const fixture_metrics *metrics);
void fixture_plan_free(kprof_plan *plan);

/* Records to start from. */
kprof_device_record fixture_device(void);
kprof_kernel_record fixture_kernel(void);
kprof_launch_record fixture_launch(const fixture_metrics *metrics);
/* Store a record; fails the test when that fails. */
void fixture_store(kprof_ingest *ingest, const kprof_record *record);

/* A new report at `path` (replaced when it is there) with the fixture's plan but no launches. */
kprof_report *fixture_create(const char *path, const fixture_metrics *metrics);
/* Process, device, metrics and kernels of the fixture's first process. */
void fixture_begin_process(kprof_ingest *ingest, const fixture_metrics *metrics);
/* The whole fixture, finished and closed. */
void fixture_write(const char *path);
/* A report of launches most of which were multiplexed, likewise: launch 0 was replayed; 1 to 8, of the same kernel and
 * shape, are four samples, the last one set apart; 9 and 10 are a sample that disagrees; 11 is no whole sample. */
void fixture_write_multiplexed(const char *path);

/* Store what the launch of position 0 has over time: two metrics, four samples, one value of which is not known. */
void fixture_store_timeline(kprof_ingest *ingest);

/* A report of a census of two processes, which counted 4,007 of 4,010 launches each, and one launch that was measured
 * in another run. */
void fixture_write_census(const char *path);

/* Load the findings of tests/golden/rules, or all that are shipped. Free items and the catalog. */
kprof_catalog *fixture_findings_load(bool shipped, kprof_finding_list *out);

/* A path in the folder of temporary files of this test program; static buffer, one at a time. */
const char *fixture_path(const char *name);
/* The whole of a file, NUL-terminated (caller frees); NULL when it cannot be read. */
char *fixture_read(const char *path, size_t *size);
/* Compare a text with tests/golden/NAME; with KPROF_UPDATE_GOLDEN=1 record it there first. */
void fixture_assert_golden(const char *name, const char *text);
/* Return the text that kprof_report_print prints (caller frees). */
char *fixture_print(kprof_report *report, const kprof_print_options *options, kprof_status *status);
