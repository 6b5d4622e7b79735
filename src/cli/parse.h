/* The parser has three parts: parse.c reads words, values.c their values, and settle.c what they mean together. */
#pragma once

#include "cli/options.h"

/* Store the value of an option that takes one, or that of one without. USAGE where the text is no value of it. */
kprof_status kprof_value_store(const kprof_option_row *row, char *text, kprof_options *options) KPROF_MUST_CHECK;
kprof_status kprof_flag_store(const kprof_option_row *row, kprof_options *options) KPROF_MUST_CHECK;
bool kprof_option_takes_argument(const kprof_option_row *row);

/* Append the items of a comma-separated list; commas inside brackets belong to the item. */
void kprof_value_list(const char *text, kprof_strlist *out);

/* Settle the options of a whole line. USAGE where they contradict one another. */
kprof_status kprof_options_settle(kprof_options *options) KPROF_MUST_CHECK;
