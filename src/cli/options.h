/* The command line as data: one table of options, which the parser, --help, completion and the test of the manual pages
 * read, and the struct that the parser fills in. */
#pragma once

#include "core/filter.h"
#include "core/option.h"
#include "core/pool.h"
#include "metricset/metricset.h"
#include "report/report.h"

#include <stdio.h>

/* The commands that know an option, as bits of commands.h. This value stands for all commands, later ones too. */
#define KPROF_IN_ALL 0xffffu
/* These commands take the option, so that a line may be asked about with --plan or a list, but it has no effect. */
#define KPROF_IGNORED_IN(commands) ((commands) << 16)

typedef enum kprof_color { KPROF_COLOR_AUTO, KPROF_COLOR_ALWAYS, KPROF_COLOR_NEVER } kprof_color;

/* Rows of the table of options. */
enum {
    KPROF_OPTION_ROWS = 0
#define OPTION(...) +1
#include "cli/option_rows.h"
#undef OPTION
};

/* --call-stack-type both */
#define KPROF_CALL_STACK_NATIVE 1
#define KPROF_CALL_STACK_PYTHON 2
#define KPROF_CALL_STACK_BOTH   3

/* kprof export writes these formats, too; the others are those of pages. */
enum {
    KPROF_EXPORT_PARQUET = KPROF_FORMAT_COUNT,
    KPROF_EXPORT_FOLDED,
    KPROF_EXPORT_INSTRUCTIONS,
    KPROF_EXPORT_CHROME,
    KPROF_EXPORT_TIMELINE,
    KPROF_EXPORT_NSYS
};

/* A choice that was not made on the command line. */
#define KPROF_UNSET (-1)

typedef struct kprof_command kprof_command; /* commands.h */

/* The parsed command line. Strings point into argv; lists are owned. The rows of cli/option_rows.h make a field each,
 * but for those that say where theirs is; its help says what it means. */
typedef struct kprof_options {
    const kprof_command *command;  /* what is to be done */
    const kprof_command *topic;    /* what --help asks about; NULL: the help command's argument tells */
    const kprof_option_row *alias; /* the option that names the command, such as --list-sets, or NULL */
    char **words;                  /* all of argv */
    bool given[KPROF_OPTION_ROWS]; /* row i of kprof_option_rows was on the command line */

    kprof_selection selection; /* most of its limits' workload is settled when the parser has finished */
    kprof_filter_spec filter;
    kprof_table_style table_style; /* of a table that is printed apart */
#define OPTION(place, type, field, ...) KPROF_FOR_OPTIONS_##place(KPROF_OPTION_FIELD(type, field))
#include "cli/option_rows.h"
#undef OPTION
    bool is_measured;       /* of a run with --census: launches are measured, too */
    bool measures_beside;   /* and in the run that takes the census, as far as it can */
    int format;             /* kprof_format or KPROF_UNSET */
    uint64_t most_launches; /* that --launch-count allows in all; 0: that is not known */

    char *kernel_regex, *kernel_regex_exclude; /* of ncu: they become filter.kernel */
    char *restored;                            /* of ncu: --section-folder-restore */
    char *kernel_made;                         /* owned: filter.kernel, where it is none of the words */
    kprof_pool made_words;                     /* owned: words that stand in files, names that were expanded */
    char *capture_range, *capture_range_end, *nvtx_capture; /* of nsys: they become the filter's, ... */
    char *schedule_made, *step_made;                        /* ... which these are then; owned */
    kprof_strlist reports;              /* of a command that takes many, and `argument` is the first; or its words */
    struct kprof_condition *conditions; /* [filters.count]: what they say */
    char **application;                 /* NULL-terminated, NULL when none was given */
    const char *argument;               /* the one word after a command: a report file, a list or a command */
} kprof_options;

extern const kprof_option_row kprof_option_rows[KPROF_OPTION_ROWS];
/* Was an option with this field, an offset within kprof_options, on the command line? */
bool kprof_option_is_given(const kprof_options *options, size_t field);
#define KPROF_IS_GIVEN(options, field) kprof_option_is_given((options), offsetof(kprof_options, field))
/* The word of an option of choices that stands for a value; NULL: none does. */
const char *kprof_option_word(const char *name, int value);
/* Is the word after an option that needs an argument no argument, but the next option? */
bool kprof_option_follows(const kprof_option_row *row, const char *word);
/* The letter of a row on the line of a command; 0: none. */
char kprof_option_letter(const kprof_option_row *row, const kprof_command *command);

typedef enum kprof_effect {
    KPROF_EFFECT_IDLE,  /* changes nothing that kprof measures: the line runs, and a warning tells it */
    KPROF_EFFECT_KEPT,  /* kept in a field of kprof_options; kprof_nsys_settle makes options of kprof's of these */
    KPROF_EFFECT_MEANS, /* stands for options of kprof's */
    KPROF_EFFECT_REFUSED
} kprof_effect;

/* An option of another tool that kprof does not have, or with other values. */
typedef struct kprof_other_option {
    const char *tool;
    unsigned commands; /* of kprof's, KPROF_IN_* */
    const char *name;
    char letter; /* 0: none */
    bool takes_argument;
    const char *same;   /* values that ask for what kprof does anyway, as kprof_values_have takes them */
    const char *others; /* values that `effect` is of */
    kprof_effect effect;
    const char *text; /* MEANS: the options, parted by blanks, each with its value behind "="; else why it has none, or
                         how to do the same */
    size_t field;     /* KEPT: offset of a char * in kprof_options */
} kprof_other_option;

/* The row of a name (without dashes) or of a letter; NULL where ncu has no such option, or kprof has it too. */
const kprof_other_option *kprof_ncu_option_find(const char *name);
const kprof_other_option *kprof_ncu_option_of_letter(char letter);
/* The first row behind `after`, or of all, whose name begins so; NULL: none does. */
const kprof_other_option *kprof_ncu_option_next(const char *start, const kprof_other_option *after);
/* The name that is spelled nearly so, or NULL. */
const char *kprof_ncu_option_spelled_like(const char *name);
/* Is each of the words that commas part in a text among these, between "|"? "*" has all texts, and NULL, for an option
 * without a value; NULL has none. */
bool kprof_values_have(const char *words, const char *text);
/* Is the word of this length, in upper or lower case, among those that "|" parts? */
bool kprof_word_is_among(const char *words, const char *word, size_t length);
/* The name of kprof's option that an old name, or one of other tools, stands for; NULL: none. */
const char *kprof_ncu_other_name(const char *name);

/* Return what to use instead of a value that an option does not take, such as one of ncu's; NULL: not known. */
const char *kprof_value_hint(const char *option, const char *value);

/* How far a line has come that somebody types. */
typedef struct kprof_line {
    const kprof_option_row *wanting; /* the argument of this option comes next; NULL: of none */
    size_t operands;                 /* that it has */
    bool only_words;                 /* "--" has come */
    bool has_run;                    /* the word "run" has come, and no command follows */
} kprof_line;
/* Read it, and pass over what is wrong with it, as it is mostly incomplete. Free `out` as below. */
kprof_line kprof_options_read(char **argv, kprof_options *out);

/* Parse argv. USAGE, with a logged message that suggests the nearest name, when it is not valid. `out` is to be freed
 * with kprof_options_free in either case. */
kprof_status kprof_options_parse(char **argv, kprof_options *out) KPROF_MUST_CHECK;
void kprof_options_free(kprof_options *options); /* members */

/* Is it a layout of CSV? `format`: a kprof_format, or KPROF_UNSET. */
static inline bool kprof_is_csv(int format)
{
    return format == KPROF_FORMAT_CSV || format == KPROF_FORMAT_CSV_WIDE || format == KPROF_FORMAT_CSV_NCU;
}

/* Does what is printed look as ncu's? */
static inline bool kprof_is_as_ncu(const kprof_options *options)
{
    return options->format == KPROF_FORMAT_CSV_NCU || options->text_layout == KPROF_FORMAT_TEXT_NCU;
}

/* Print the help that `options` asks for: of kprof, or of one command. */
void kprof_help_print(const kprof_options *options, FILE *out);
/* Print, one a line, the words that --complete asks for: "commands", "options", "arguments" (options that take one),
 * the values of an option ("--page"), or for "line" what the application's last word may become, as kprof(1) tells.
 * USAGE for anything else. */
kprof_status kprof_complete(const kprof_options *options, FILE *out) KPROF_MUST_CHECK;
