/* The commands of kprof as data: the parser, the help, completion and the test of the manual pages read their table. */
#pragma once

#include "cli/options.h"

/* The kinds of words that a command takes beside its options. kprof_options has the first as `argument`, NULL where the
 * user gave none, unless a row names another field. */
typedef enum kprof_operand {
    KPROF_OPERAND_NONE,
    KPROF_OPERAND_APPLICATION,  /* a program and its arguments, `application`: all the rest of the line */
    KPROF_OPERAND_REPORT,       /* a report file */
    KPROF_OPERAND_REPORTS,      /* two report files, first the `baseline` */
    KPROF_OPERAND_MANY_REPORTS, /* any number of report files, all in `reports` */
    KPROF_OPERAND_WORD,         /* one of the words that `usage` gives, separated by "|" */
    KPROF_OPERAND_WORDS,        /* one of the words before the blank in `usage`, then any, all in `reports` */
    KPROF_OPERAND_COMMAND,      /* the name of a command, or nothing */
    KPROF_OPERAND_FOLDER,       /* a folder, or nothing */
    KPROF_OPERAND_METRICS,      /* any number of names of metrics, in `selection.metrics` */
} kprof_operand;

/* All commands. A new one is a row here and a file cmd_FUNCTION.c that defines kprof_cmd_FUNCTION; its manual page is
 * docs/man/MANUAL.1. The first row, without a name, is used when no word names a command. An option that is not for all
 * commands names those that have it in its own row, as KPROF_IN(FUNCTION).
 *
 *      function  name       has options  its operand  usage, after the name                     manual
 *      summary */
/* clang-format off */
#define KPROF_COMMANDS(ROW) \
    ROW(profile, "",         true,        APPLICATION, "[options] [--] application [arguments]",   "kprof", \
        "Profile the CUDA kernels of an application.") \
    ROW(report,  "report",   true,        MANY_REPORTS, "FILE.kprof ...",                          "kprof-report", \
        "Print a report that -o has kept, or a part of it.") \
    ROW(diff,    "diff",     true,        REPORTS,     "BASELINE.kprof FILE.kprof",                "kprof-diff", \
        "Compare two reports: which kernels became slower, and why.") \
    ROW(plan,    "plan",     true,        APPLICATION, "[options] [[--] application [arguments]]", "kprof-plan", \
        "Tell what a run would collect and what that costs.") \
    ROW(list, "list", true, WORD, "sets|sections|findings|chips|metrics|collected|aliases|tables", \
        "kprof-list", \
        "List what can be collected, and what kprof looks for in it.") \
    ROW(explain, "explain",  true,        METRICS,     "METRIC...",                                "kprof-explain", \
        "Tell what a metric, a section or a finding is, and who shows it.") \
    ROW(export,  "export",   true,        REPORT,      "FILE.kprof --to FORMAT",                   "kprof-export", \
        "Write a report in a format that other programs read.") \
    ROW(merge,   "merge",    true,        MANY_REPORTS, "A.kprof B.kprof ... -o ALL.kprof",        "kprof-merge", \
        "Join the reports of several ranks, processes or machines.") \
    ROW(recover, "recover",  true,        FOLDER,      "[DIR]",                                    "kprof-recover", \
        "Make a report of a run that was killed or could not store it.") \
    ROW(ctl,     "ctl",      true,        WORDS,       "start|stop|status [PID...|DIR...]",        "kprof-ctl", \
        "Start and stop measuring while an application runs.") \
    ROW(doctor,  "doctor",   true,        APPLICATION, "[options] [[--] application [arguments]]", "kprof-doctor", \
        "Tell what keeps kernels from being measured, and measure one.") \
    ROW(trace,   "trace",    true,        APPLICATION, "[options] [--] application [arguments]",   "kprof-trace", \
        "Record when kernels, copies and calls run; no counters.") \
    ROW(stats,   "stats",    true,        REPORT,      "FILE.kprof",                                "kprof-stats", \
        "Sum up a trace in the tables of Nsight Systems.") \
    ROW(help,    "help",     false,       COMMAND,     "[command]",                                "kprof", \
        "Print the help of kprof or of a command.") \
    ROW(version, "version",  false,       NONE,        "",                                         "kprof", \
        "Print the version.")
/* clang-format on */

#define KPROF_COMMAND_NUMBER(function, ...) KPROF_COMMAND_##function,
enum { KPROF_COMMANDS(KPROF_COMMAND_NUMBER) KPROF_COMMAND_COUNT };
#undef KPROF_COMMAND_NUMBER
#define KPROF_IN(function) (1u << KPROF_COMMAND_##function)
_Static_assert(KPROF_COMMAND_COUNT <= 16, "KPROF_IN_ALL has 16 bits");

struct kprof_command {
    const char *name;
    unsigned mask;                            /* its KPROF_IN; 0: it takes the options that all commands take */
    int (*run)(const kprof_options *options); /* gives the exit code */
    kprof_operand operand;
    const char *usage;  /* what stands after the name */
    const char *manual; /* the page in section 1 that documents it */
    const char *summary;
};

extern const kprof_command kprof_commands[KPROF_COMMAND_COUNT];

/* The first command also has this name, as in "kprof run ./app"; no command or report follows it. */
#define KPROF_COMMAND_RUN "run"

/* The command of that name, or NULL. */
const kprof_command *kprof_command_find(const char *name);
/* The command that a word is a misspelling of, or NULL. */
const char *kprof_command_nearest(const char *word);
/* The command that an option such as --list-sets stands for; *word is the operand that it gives, or NULL. */
const kprof_command *kprof_command_of_alias(const kprof_option_row *alias, const char **word);
/* Are its operands reports? */
bool kprof_command_reads_reports(const kprof_command *command);
/* Append the words that the command takes as its operand; none where it takes a file, a program or nothing. */
void kprof_command_words(const kprof_command *command, kprof_strlist *out);

#define KPROF_COMMAND_FUNCTION(function, ...) int kprof_cmd_##function(const kprof_options *options);
KPROF_COMMANDS(KPROF_COMMAND_FUNCTION)
#undef KPROF_COMMAND_FUNCTION
