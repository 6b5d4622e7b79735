/* The words of command lines: joined to a text and split again, and those that stand in files: "@FILE", and options of
 * ncu's configuration. */
#pragma once

#include "cli/options.h"

/* Join the words of a command line with blanks, as a report keeps its own. A word that is empty or has other characters
 * than a shell takes as they are is quoted as for sh. `application` is the first word of the application, or NULL; "--"
 * stands before it. Caller frees. */
char *kprof_words_join(char *const *words, char *const *application);
/* Split a text as a shell does by blanks, quotes, backslashes and comments. False where a quote does not end. */
bool kprof_words_split(const char *text, kprof_strlist *out);

/* Words of a line: `count` from `at` on. */
typedef struct kprof_word_span {
    size_t at, count;
} kprof_word_span;

/* Return a line, NULL-terminated, with these words in place of those of the span. It and its new words
 * live as long as the pool. */
char **kprof_words_replace(kprof_pool *pool, char **line, kprof_word_span removed, const kprof_strlist *words);
/* Read the words of a file, as kprof_words_split takes them. USAGE where it cannot be read. */
kprof_status kprof_words_read(const char *path, kprof_strlist *out) KPROF_MUST_CHECK;

/* Read the options below headings such as "[Launch-and-attach, Import]" that name this mode of ncu: words as they stand
 * on a command line, each with its value. USAGE where the file cannot be read, or has other lines. */
kprof_status kprof_config_read(const char *path, const char *mode, kprof_strlist *out) KPROF_MUST_CHECK;
/* Return the path of the configuration that ncu reads by itself, of the working folder or of the user; NULL: there is
 * none. Whoever can write to the working folder could choose what kprof loads: kprof passes that file over, with a
 * message, unless the user has asked for it. Caller frees. */
char *kprof_config_find(bool of_folder);
