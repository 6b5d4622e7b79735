/* For which instructions an instruction waits. */
#pragma once

#include "code/code.h"

typedef struct kprof_code_label {
    const char *name;
    uint64_t offset; /* in the section */
} kprof_code_label;

/* The text of the section that a function is in. */
typedef struct kprof_code_listing {
    char **lines; /* of the instructions, as nvdisasm prints them; NULL: none */
    size_t line_count;
    const kprof_code_label *labels; /* sorted by name */
    size_t label_count;
} kprof_code_listing;

/* The label of this name; NULL where there is none. */
const kprof_code_label *kprof_code_find_label(const kprof_code_listing *listing, const char *name, size_t length);

/* Give a function's instructions their waits, which are appended to `waits`, an array of uint64_t. `steps_left` is what
 * remains of KPROF_CODE_MOST_STEPS; when it is 0 the rest has none. */
void kprof_code_find_waits(kprof_code_function *function, const kprof_code_listing *listing, kprof_strbuf *waits,
                           size_t *steps_left);
