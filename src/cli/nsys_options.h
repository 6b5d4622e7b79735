/* The options of nsys, on the lines of kprof trace, kprof stats and kprof export. */
#pragma once

#include "cli/options.h"

typedef enum kprof_nsys_effect {
    KPROF_NSYS_MEANS, /* stands for an option of kprof's */
    KPROF_NSYS_KEPT,  /* kept in a field of kprof_options, for kprof_nsys_settle */
    KPROF_NSYS_IDLE,  /* changes nothing: the line runs, and a warning tells it */
    KPROF_NSYS_REFUSED
} kprof_nsys_effect;

/* All options of nsys but --help take an argument. */
typedef struct kprof_nsys_option {
    unsigned commands; /* KPROF_IN_* */
    const char *name;
    char letter;        /* 0: none */
    const char *same;   /* values, between "|", that ask for what kprof does anyway; "*": all; NULL: there is none */
    const char *others; /* values that `effect` is of */
    kprof_nsys_effect effect;
    const char *text; /* MEANS: the option, with its value behind "="; else why, or how to do the same */
    size_t field;     /* KEPT: offset of a char * in kprof_options */
} kprof_nsys_option;

/* The first row of a name (without dashes), or of a letter unless it is 0; NULL where the command has none. */
const kprof_nsys_option *kprof_nsys_find(const kprof_command *command, const char *name, char letter);
/* The row of the same option that has a value, perhaps of several words with commas; NULL: none has. *is_same: kprof
 * does so anyway. */
const kprof_nsys_option *kprof_nsys_answer(const kprof_nsys_option *first, const char *value, bool *is_same);
/* Does the row take whatever stands there for a value? */
bool kprof_nsys_takes_any(const kprof_nsys_option *row);
/* Make options of kprof's of those that were kept. */
kprof_status kprof_nsys_settle(kprof_options *options) KPROF_MUST_CHECK;
