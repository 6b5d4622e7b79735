/* Checks that hold for any printed page, whatever the report has. */
#pragma once

#include "report/report.h"

/* Check that the text has no characters that could steer a terminal, but for colors where these were asked for; that
 * CSV is rectangular; and that JSON is JSON. Changes the text. */
void fuzz_check_output(const kprof_print_options *options, char *text);
