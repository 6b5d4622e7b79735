/* The command line as data: one table of options that the parser, --help, completion and the manual's test read, and
 * the struct that the parser fills in. */
#ifndef KPROF_CLI_OPTIONS_H
#define KPROF_CLI_OPTIONS_H

#include "core/filter.h"
#include "metricset/metricset.h"

#include <stdio.h>

/* What knows an option: the commands, of which profiling is to run an application, to plan, or to list. */
#define KPROF_IN_RUN     1u
#define KPROF_IN_REPORT  2u
#define KPROF_IN_PLAN    4u
#define KPROF_IN_LISTS   8u
#define KPROF_IN_PROFILE (KPROF_IN_RUN | KPROF_IN_PLAN | KPROF_IN_LISTS)
#define KPROF_IN_ALL     (KPROF_IN_PROFILE | KPROF_IN_REPORT)

/* What to do instead of the command's own work. */
typedef enum kprof_action {
    KPROF_ACTION_RUN,
    KPROF_ACTION_HELP,
    KPROF_ACTION_VERSION,
    KPROF_ACTION_LIST_SETS,
    KPROF_ACTION_LIST_SECTIONS,
    KPROF_ACTION_LIST_CHIPS,
    KPROF_ACTION_QUERY_METRICS,
    KPROF_ACTION_PLAN,
} kprof_action;

typedef enum kprof_color { KPROF_COLOR_AUTO, KPROF_COLOR_ALWAYS, KPROF_COLOR_NEVER } kprof_color;

/* A choice that was not made on the command line. */
#define KPROF_UNSET (-1)

struct kprof_command;

/* The parsed command line. Strings point into argv; lists are owned. Fields that hold a choice are int, so that every
 * table row can store into them. */
typedef struct kprof_options {
    const struct kprof_command *commands; /* the table given to the parser */
    const struct kprof_command *command;  /* the row chosen */
    int action;                           /* kprof_action */
    char **words;                         /* all of argv */
    uint64_t given;                       /* bit i: row i of kprof_option_rows was on the command line */

    kprof_selection selection; /* most of its limits' workload is settled when the parser has finished */
    kprof_strlist section_folders;
    kprof_strlist chips;
    int query_mode; /* kprof_query_mode */

    kprof_filter_spec filter;   /* name_base is in `name_base` until the parser has finished */
    int name_base;              /* kprof_name_base */
    int follow_children;        /* 0: --target-processes application-only */
    int replay_choice;          /* kprof_replay_choice */
    int graph_profiling;        /* kprof_graph_profiling */
    uint32_t multiplex_samples; /* of each kernel and shape */
    uint32_t replay_batch;      /* launches; 0: auto */
    int cache_control;          /* kprof_cache_control */
    int witness_control;        /* kprof_witness_control */
    int clock_control;          /* kprof_clock_control */

    char *export_path; /* as given: placeholders are not expanded yet */
    bool force_overwrite;
    char *import_path; /* the report to read */
    int page;          /* kprof_page or KPROF_UNSET */
    int format;        /* kprof_format or KPROF_UNSET */
    int csv_layout;    /* the kprof_format that --csv-layout names, or KPROF_UNSET */
    int print_summary; /* 1: --print-summary per-kernel */
    int base_units;
    bool all_rows, details_help;
    int kernel_base; /* kprof_name_base shown */
    char *log_file;
    int color; /* kprof_color */
    char *injection_path;
    char *counter_data_dir;
    bool quiet, verbose;
    char *complete; /* what to list for the shell, see kprof_complete */

    char **application;   /* NULL-terminated, NULL when none was given */
    const char *argument; /* the one word after a command: report file or topic */
} kprof_options;

/* One command. The table ends with a row whose run is NULL; row 0, with an empty name, is used when no word names one.
 */
typedef struct kprof_command {
    const char *name;
    unsigned mask;                            /* KPROF_IN_*; 0: it takes what all commands take */
    int (*run)(const kprof_options *options); /* gives the exit code */
    const char *summary;
} kprof_command;

typedef struct kprof_choice {
    const char *word;
    int value;
} kprof_choice;

typedef enum kprof_option_type {
    KPROF_OPTION_FLAG,    /* bool, no argument */
    KPROF_OPTION_SET,     /* int: takes `value`, no argument; refuses a second, different one */
    KPROF_OPTION_CHOICE,  /* int: one of `choices` */
    KPROF_OPTION_STRING,  /* char * */
    KPROF_OPTION_LIST,    /* kprof_strlist: comma-separated, repeatable */
    KPROF_OPTION_PATHS,   /* kprof_strlist: repeatable, not split */
    KPROF_OPTION_NUMBER,  /* uint64_t */
    KPROF_OPTION_COUNT,   /* uint32_t: 1 to `value`, or one of `choices` where the row has them */
    KPROF_OPTION_SECONDS, /* double: more than 0, with or without decimals */
    KPROF_OPTION_BYTES,   /* uint64_t: 1 or more, with or without decimals and a suffix such as G */
    KPROF_OPTION_ORDINALS /* uint64_t: comma-separated numbers below 64, as bits */
} kprof_option_type;

typedef struct kprof_option_row {
    const char *name;
    char letter; /* 0: none */
    kprof_option_type type;
    size_t field; /* offset in kprof_options */
    const char *argument, *help;
    unsigned commands;
    const kprof_choice *choices; /* ends with a NULL word */
    int value;
    const char *note; /* added when the argument is refused */
} kprof_option_row;

extern const kprof_option_row kprof_option_rows[];
extern const size_t kprof_option_row_count;

/* What ncu's option `name` (without dashes) is to kprof, for the error message: how to do the same, or "" when kprof
 * has nothing like it. NULL when ncu has no such option either. */
const char *kprof_ncu_option_hint(const char *name);

/* Parse argv. USAGE, with a logged message that suggests the nearest name, when it is not valid. `out` is to be freed
 * with kprof_options_free in either case. */
kprof_status kprof_options_parse(char **argv, const kprof_command *commands, kprof_options *out) KPROF_MUST_CHECK;
void kprof_options_free(kprof_options *options); /* members */

/* Append the items of a comma-separated list; commas inside brackets belong to the item. */
bool kprof_list_split(const char *text, kprof_strlist *out);

/* Print the help of the command that `options` chose; for the help command, of the one that its argument names: USAGE
 * when there is none of that name. */
kprof_status kprof_help_print(const kprof_options *options, FILE *out) KPROF_MUST_CHECK;
/* Print, one a line, the words that --complete asks for: "commands", "options", "arguments" (options that
 * take one) or the values of an option ("--page"). USAGE for anything else. */
kprof_status kprof_complete(const kprof_options *options, FILE *out) KPROF_MUST_CHECK;

#endif
