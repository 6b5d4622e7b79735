/* Explains the headings of pages. */
#pragma once

#include <stddef.h>

typedef struct kprof_page_word {
    const char *word, *meaning;
} kprof_page_word;
extern const kprof_page_word kprof_page_words[]; /* a NULL word ends them */
