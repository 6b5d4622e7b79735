/* A row of the table of options, which the parser, --help and completion read, and for options that reach the
 * recorder the configuration. Rows are in core/recorder_options.h and cli/option_rows.h; a file that includes them
 * defines OPTION first. */
#pragma once

#include "core/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kprof_option_type {
    KPROF_OPTION_FLAG,     /* no argument */
    KPROF_OPTION_SET,      /* takes `value`, no argument; refuses a second, different one */
    KPROF_OPTION_CHOICE,   /* one of `choices` */
    KPROF_OPTION_STRING,   /* any text but an empty one */
    KPROF_OPTION_LIST,     /* comma-separated, repeatable */
    KPROF_OPTION_PATHS,    /* repeatable, not split */
    KPROF_OPTION_NUMBER,   /* a whole number */
    KPROF_OPTION_COUNT,    /* 1 to `value`, or one of `choices` where the row has them */
    KPROF_OPTION_SECONDS,  /* more than 0, with or without decimals */
    KPROF_OPTION_PERCENT,  /* 0 or more, with or without decimals */
    KPROF_OPTION_BYTES,    /* 1 or more, with or without decimals and a suffix such as G */
    KPROF_OPTION_ORDINALS, /* comma-separated numbers below 64, as bits */
    KPROF_OPTION_ALIAS     /* names a command, no argument: `note` is the command and its word */
} kprof_option_type;

/* The types of their fields. A choice is an int, so that every row can store into it. */
typedef bool kprof_value_of_FLAG;
typedef int kprof_value_of_SET, kprof_value_of_CHOICE;
typedef char *kprof_value_of_STRING;
typedef kprof_strlist kprof_value_of_LIST, kprof_value_of_PATHS;
typedef uint32_t kprof_value_of_COUNT;
typedef uint64_t kprof_value_of_NUMBER, kprof_value_of_BYTES, kprof_value_of_ORDINALS;
typedef double kprof_value_of_SECONDS, kprof_value_of_PERCENT;

typedef struct kprof_option_choice {
    const char *word;
    int value;
} kprof_option_choice;
#define KPROF_CHOICES(...)                                                                                             \
    (const kprof_option_choice[])                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__,                                                                                                   \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }

typedef struct kprof_option_row {
    const char *name;
    kprof_option_type type;
    size_t field;      /* offset in kprof_options, or in the configuration's own table in kprof_config */
    unsigned commands; /* KPROF_IN_*, KPROF_IGNORED_IN */
    const char *help;
    const char *argument;
    char letter;                        /* 0: none */
    const kprof_option_choice *choices; /* ends with a NULL word */
    int initial;                        /* of a CHOICE or COUNT, where the option is not given */
    int value; /* that of a SET; the most of a COUNT; of a CHOICE not 0: its values are bits, and those given add up */
    const char *note; /* added when the argument is refused */
} kprof_option_row;

/* OPTION(place, type, field, name, commands, help, more): `more` are members of the row such as .argument. The place is
 * FILTER for a field of kprof_filter_spec: which launches are measured, or shown; RECORDER for one of kprof_config and
 * of kprof_options, as the recorder is told; CLI for one of kprof_options; ELSEWHERE for one that something else
 * declares, by its whole path in kprof_options. The macros below keep their arguments for some of the places, and drop
 * them for the others. */
#define KPROF_FOR_FILTER_FILTER(...) __VA_ARGS__
#define KPROF_FOR_FILTER_RECORDER(...)
#define KPROF_FOR_FILTER_CLI(...)
#define KPROF_FOR_FILTER_ELSEWHERE(...)
#define KPROF_FOR_RECORDER_FILTER(...)
#define KPROF_FOR_RECORDER_RECORDER(...) __VA_ARGS__
#define KPROF_FOR_RECORDER_CLI(...)
#define KPROF_FOR_RECORDER_ELSEWHERE(...)
#define KPROF_FOR_OPTIONS_FILTER(...)
#define KPROF_FOR_OPTIONS_RECORDER(...) __VA_ARGS__
#define KPROF_FOR_OPTIONS_CLI(...)      __VA_ARGS__
#define KPROF_FOR_OPTIONS_ELSEWHERE(...)
#define KPROF_OPTION_FIELD(type, field) kprof_value_of_##type field;
/* The path of a field from kprof_options. */
#define KPROF_PATH_FILTER(field)    filter.field
#define KPROF_PATH_RECORDER(field)  field
#define KPROF_PATH_CLI(field)       field
#define KPROF_PATH_ELSEWHERE(field) field
