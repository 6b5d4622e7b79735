/* Patterns of the user (PCRE2, matching anywhere in the text, as ncu's "regex:" does), against names of others. The
 * work for a text is bounded, since a plain pattern takes minutes on a name that was made for it. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct kprof_regex kprof_regex;

typedef enum kprof_regex_result {
    KPROF_REGEX_NO,
    KPROF_REGEX_YES,
    KPROF_REGEX_TOO_LONG, /* given up: the pattern takes too long on this text */
} kprof_regex_result;

/* The pattern of a word that begins with "regex:"; NULL when it is a plain name. */
const char *kprof_regex_pattern(const char *word);
/* The pattern that a word without "regex:" seems to be meant as: "^a|b" itself, and "^a.*$" of "a*", as a shell has it.
 * The caller frees it; NULL: the word looks like a name, or has the prefix. */
char *kprof_regex_meant(const char *word);
/* Messages say this of such a word, before the pattern. */
#define KPROF_REGEX_TAKEN_PLAIN " is taken as it stands; a pattern is written "
/* Append the pattern of this very text. It may stand between a shell's double quotes, if the text may. */
void kprof_regex_quote(const char *text, size_t length, kprof_strbuf *out);

/* Compile a pattern. `option` (borrowed) is what messages begin with: "-k". USAGE, with the place, if it is none. */
kprof_status kprof_regex_new(const char *option, const char *pattern, kprof_regex **out) KPROF_MUST_CHECK;
/* The same, of a pattern that the whole text is to match. */
kprof_status kprof_regex_new_whole(const char *option, const char *pattern, kprof_regex **out) KPROF_MUST_CHECK;
void kprof_regex_free(kprof_regex *regex);

/* Thread-safe. Running out of memory gives up, too. */
kprof_regex_result kprof_regex_match(kprof_regex *regex, const char *text);
/* Does the pattern match this name of kprof's own? USAGE when matching takes too long: none may be missed. */
kprof_status kprof_regex_search(kprof_regex *regex, const char *text, bool *found) KPROF_MUST_CHECK;
/* The work of all matches so far: about one for each character looked at, and more for each item of the pattern. */
uint64_t kprof_regex_work(const kprof_regex *regex);
