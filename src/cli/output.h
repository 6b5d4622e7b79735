/* Chooses where kprof's results go, so that they never mix with what the application prints. */
#pragma once

#include "cli/options.h"
#include "report/page/page.h"

#include <stdio.h>

/* Open /dev/null for each of stdin, stdout and stderr that kprof was started without: a report that got such a number
 * would have messages written into it. Those for stdout and stderr cannot be written, so that lost results are
 * noticed; the application does not get the one for stdout: its output fails as it does without kprof. */
void kprof_streams_settle(void);

/* Is it a terminal that can show colours, and move its cursor? */
bool kprof_output_takes_codes(FILE *out);

typedef enum kprof_destination {
    KPROF_TO_NOTHING, /* no results are printed */
    KPROF_TO_STDOUT,
    KPROF_TO_STDERR,
    KPROF_TO_FILE, /* --log-file */
    KPROF_TO_HTML, /* --html */
} kprof_destination;

typedef struct kprof_route {
    kprof_destination results;
    bool application_to_stderr; /* the application's stdout is sent to kprof's stderr */
    kprof_destination as_ncu;   /* the lines that ncu prints while it runs, "==PROF== ..." */
} kprof_route;

/* The rule for a profiling run:
 *   results are printed unless the report is kept (--export) and nothing asks for a page or format;
 *   --log-file names where they go, and the application's stdout is left alone unless that is "stdout" with another
 * format than text; other formats go to stdout, and the application's stdout goes to stderr, so that "> out.csv" holds
 * the CSV alone; text goes to stdout when that is a terminal, after the application has ended, and else to stderr, so
 * that "kprof ./app > app.txt" holds what the application printed and nothing else.
 * Where kprof is called ncu, text and ncu's CSV stand behind the lines that ncu prints; these go to stdout where no
 * results are printed, too. --quiet leaves them out. The application's stdout stays what it is, as with ncu. */
kprof_route kprof_route_profile(const kprof_options *options, bool stdout_is_terminal);
/* The rule for commands that start nothing: stdout, --log-file or --html. */
kprof_route kprof_route_report(const kprof_options *options);

/* Refuse an output (--log-file, --export, --html, and the stdout of a report) that is an input of the command, or
 * another of its outputs, by what the files are, not by name. USAGE, with a message, before anything is opened. Expands
 * the names of files that are no reports first. */
kprof_status kprof_outputs_check(kprof_options *options) KPROF_MUST_CHECK;

/* Do two paths lead to one regular file, or to one place for a file that does not exist yet? */
bool kprof_paths_are_same(const char *a, const char *b);

/* Open an output for writing, with flags and the mode of open(2); where it is a pipe that nothing reads yet, say that
 * kprof waits. NULL with errno where it cannot be opened. */
FILE *kprof_output_open(const char *path, int flags, mode_t mode);
/* The stream of a destination; *out is NULL for KPROF_TO_NOTHING. OUTPUT when the file cannot be made, as that of
 * --html (mode 0600) when it exists and nothing allows to replace it. */
kprof_status kprof_results_open(const kprof_options *options, kprof_destination to, FILE **out) KPROF_MUST_CHECK;
/* Flush, and close a file; NULL is nothing to do. Return `status`, that of printing; where that is OK, OUTPUT when
 * something could not be written. Say where the page of --html is, or remove it when it is not whole. */
kprof_status kprof_results_close(const kprof_options *options, FILE *results, kprof_status status) KPROF_MUST_CHECK;

/* Print a page to where commands that start nothing print. */
kprof_status kprof_results_show(const kprof_options *options, const kprof_page_row *page,
                                const kprof_page_input *input) KPROF_MUST_CHECK;

/* Columns as asked for, or those of the terminal, which COLUMNS may tell; 0 where nothing tells them. */
unsigned kprof_results_width(const kprof_options *options, FILE *results);
/* Page, format, colour, width and names as the options and the stream ask for. The result borrows from `options`. */
kprof_print_options kprof_print_options_make(const kprof_options *options, FILE *results);
