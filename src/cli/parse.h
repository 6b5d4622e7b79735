/* The parser has three parts: parse.c reads words, values.c their values, and settle.c what they mean together. */
#pragma once

#include "cli/options.h"

/* Store the value of an option that takes one, or that of one without. USAGE where the text is no value of it. */
kprof_status kprof_value_store(const kprof_option_row *row, char *text, kprof_options *options) KPROF_MUST_CHECK;
kprof_status kprof_flag_store(const kprof_option_row *row, kprof_options *options) KPROF_MUST_CHECK;
bool kprof_option_takes_argument(const kprof_option_row *row);

/* Append the items of a comma-separated list, without the blanks around them; commas inside brackets belong to the
 * item. */
void kprof_value_list(const char *text, kprof_strlist *out);

/* Settle the options of a whole line. USAGE where they contradict one another. */
kprof_status kprof_options_settle(kprof_options *options) KPROF_MUST_CHECK;

/* The row of another tool's option that has this value, which may be several words with commas; `first` is the option's
 * first row. NULL: none has. *is_same: kprof does so anyway. */
const kprof_other_option *kprof_other_answer(const kprof_other_option *first, const char *value, bool *is_same);

/* Return the words of the value that ask for more than kprof does anyway; NULL where the row does not know each word.
 * Caller frees. */
char *kprof_other_words(const kprof_other_option *row, const char *value);
/* USAGE: name the word that no row has, and the words that they have. */
kprof_status kprof_other_refuse(const kprof_other_option *first, const char *value) KPROF_MUST_CHECK;

/* The options of nsys, on the lines of kprof trace, kprof stats and kprof export. */

/* The first row of a name (without dashes), or of a letter unless it is 0; NULL where the command has none. */
const kprof_other_option *kprof_nsys_find(const kprof_command *command, const char *name, char letter);
/* Append the names of those that a command has. */
void kprof_nsys_names(const kprof_command *command, kprof_strlist *out);
/* Make options of kprof's of those that were kept. */
kprof_status kprof_nsys_settle(kprof_options *options) KPROF_MUST_CHECK;
