/* Reports for harnesses: the fixtures, and printing a report in a way that a number chooses. */
#pragma once

#include "report/report.h"

/* How a report is printed: a number from 0 to 65535 chooses page, format and the other options. */
#define FUZZ_PRINT_FINDINGS 1u /* a bit of that number: with the shipped findings */

/* The cubin of a session, and its kernel. */
#define FUZZ_CUBIN          "4711-fedcba98.cubin"
#define FUZZ_CUBIN_FUNCTION "softmax_kernel"

/* Print it and check what is printed; the page of a comparison compares it with a fixture. Some numbers ask for its
 * counts too. */
kprof_status fuzz_print_report(kprof_report *report, unsigned how);
/* The same, with one finding, instead of the shipped ones. */
kprof_status fuzz_print_finding(kprof_report *report, const kprof_finding *finding);
/* Try a file as kprof report and kprof diff do: it is printed or refused. */
void fuzz_try_report(const char *path, unsigned how);

/* A small report with plans and nothing measured, and a whole one. The caller frees. */
uint8_t *fuzz_read_seed_report(size_t *size);
uint8_t *fuzz_read_fixture(bool multiplexed, size_t *size);
/* One with a trace, likewise. */
uint8_t *fuzz_read_trace(size_t *size);
/* One whose instructions were measured, likewise. */
uint8_t *fuzz_read_code(size_t *size);
