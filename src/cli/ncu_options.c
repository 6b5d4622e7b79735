/* The options and values of ncu that kprof does not have. A line with one that changes no value runs, as does one that
 * asks for what kprof does anyway; others are answered with what to use instead. They are those of ncu 2025.3.1, of the
 * versions after it, and old names that scripts still have. Adding one is a row here. */
#include "cli/options.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NO         "no|off|0|false"
#define YES        "yes|on|1|true"
#define ANY        "*"
#define SAME(hint) KPROF_NCU_IDLE, hint, 0
#define ELSE(hint) KPROF_NCU_REFUSED, hint, 0

static const char no_communicator[] = "kprof does not keep ranks in step; --replay-mode multiplex repeats no launch, "
                                      "so that ranks need not wait for each other";
static const char no_config[] = "kprof reads no configuration file: give the options on the command line";
static const char no_mps[] = "kprof has no support of MPS: run the processes without it";
static const char no_own_files[] = "kprof takes its own files; --injection-path gives another library";
static const char no_port[] = "kprof does not connect to processes, and needs no port";
static const char no_ranges[] = "kprof itself finds what of a range it has to save, and whether it may repeat it";
static const char no_rename[] = "--print-kernel-base chooses the names to print";
static const char no_warps[] = "kprof samples counters over time, and warps for each instruction alone";
static const char fixed_details[] =
    "kprof prints all of a section with --page details, and each metric by its full name with --page raw";

static const kprof_ncu_option rows[] = {
    {"check-exit-code", 0, true, YES, SAME("kprof always passes on the application's exit status")},
    {"clock-control", 0, true, "none", ELSE("kprof changes no clock: leave the option out; nvidia-smi locks clocks")},
    {"communicator", 0, true, "none", SAME(no_communicator)},
    {"communicator-num-peers", 0, true, NULL, SAME(no_communicator)},
    {"communicator-shmem-num-peers", 0, true, NULL, SAME(no_communicator)},
    {"communicator-tcp-hostname", 0, true, NULL, SAME(no_communicator)},
    {"communicator-tcp-num-peers", 0, true, NULL, SAME(no_communicator)},
    {"communicator-tcp-port", 0, true, NULL, SAME(no_communicator)},
    {"config-file", 0, true, NO, SAME(no_config)},
    {"config-file-path", 0, true, NULL, ELSE(no_config)},
    {"disable-extra-suffixes", 0, false, NULL, SAME("a base name stands for its avg, max, min and sum")},
    {"disable-pm-warp-sampling", 0, false, ANY, SAME("")},
    {"forward-signals", 0, false, ANY, SAME("")},
    {"hostname", 0, true, NULL, ELSE("kprof starts the application on this machine: give the application instead")},
    {"injection-path-32", 0, true, NULL, SAME(no_own_files)},
    {"injection-path-64", 0, true, NULL, SAME(no_own_files)},
    {"kernel-regex", 0, true, NULL, KPROF_NCU_KEPT, "use --kernel-name regex:PATTERN",
     offsetof(kprof_options, kernel_regex)},
    {"kernel-regex-exclude", 0, true, NULL, KPROF_NCU_KEPT, "use --kernel-name \"regex:^(?!.*PATTERN)\"",
     offsetof(kprof_options, kernel_regex_exclude)},
    {"lockstep-kernel-launch", 0, false, NULL, SAME(no_communicator)},
    {"lockstep-nvtx-exclude", 0, true, NULL, SAME(no_communicator)},
    {"lockstep-nvtx-include", 0, true, NULL, SAME(no_communicator)},
    {"max-connections", 0, true, ANY, SAME(no_port)},
    {"metric-distribution-groups", 0, true, NULL, SAME("kprof distributes metrics over passes by itself")},
    {"mode", 0, true, "launch-and-attach",
     ELSE("kprof launches the application and measures it at once: leave the option out")},
    {"mps", 0, true, "none", ELSE(no_mps)},
    {"mps-num-clients", 0, true, NULL, SAME(no_mps)},
    {"mps-timeout", 0, true, NULL, SAME(no_mps)},
    {"open-in-ui", 0, false, NULL,
     SAME("kprof has no window; kprof report FILE.kprof --html OUT.html writes a page for a browser")},
    {"pipeline-boost-state", 0, true, NULL, SAME("kprof leaves it alone")},
    {"port", 'p', true, ANY, SAME(no_port)},
    {"preload-library", 0, true, NULL, ELSE("set it in front: LD_PRELOAD=FILE kprof ...")},
    {"print-metric-attribution", 0, false, NULL, SAME(fixed_details)},
    {"print-rule-details", 0, false, ANY, SAME("")},
    {"process-id", 0, true, NULL,
     ELSE("kprof starts the application, and does not attach to a process: give the application instead")},
    {"query-metrics-collection", 0, true, "profiling",
     ELSE("kprof list metrics lists what can be counted for each launch, and with --metrics "
          "\"regex:^(source:|smsp__pcsamp_)\" of each instruction: leave the option out")},
    {"range-replay-options", 0, true, NULL, SAME(no_ranges)},
    {"rename-kernels", 0, true, NO, SAME(no_rename)},
    {"rename-kernels-export", 0, true, NO, SAME(no_rename)},
    {"rename-kernels-path", 0, true, NULL, SAME(no_rename)},
    {"section-folder-recursive", 0, true, NULL, ELSE("use --section-folder for each folder")},
    {"section-folder-restore", 0, false, NULL, SAME("kprof never changes the files it is installed with")},
    {"support-32bit", 0, false, NULL, SAME("kprof measures 64-bit programs")},
    {"target-processes-filter", 0, true, "all",
     ELSE("--target-processes application-only measures the first process alone")},
    {"warp-samples-per-interval", 0, true, NULL, SAME(no_warps)},
};

/* Old names, and those that other tools have for the same. */
static const struct {
    const char *name, *means;
} other_names[] = {
    {"kernel-regex-base", "kernel-name-base"},
    {"output", "export"},
    {"sampling-buffer-size", "warp-sampling-buffer-size"},
    {"sampling-interval", "warp-sampling-interval"},
    {"sampling-max-passes", "warp-sampling-max-passes"},
    {"summary", "print-summary"},
    {"units", "print-units"},
};

/* Values of options that both have, which kprof does not take, and formats. */
static const struct {
    const char *option, *value, *hint;
} values[] = {
    {"print-source", "tileir", "kprof keeps no tile IR; cuda shows lines, and sass instructions"},
    {"to", "csv", "long and wide are CSV, and kprof report FILE --csv prints a page as CSV"},
    {"to", "html", "kprof report FILE --html OUT.html writes a page for a browser"},
    {"to", "json", "jsonl has a line of JSON for each launch, and kprof report FILE --json prints one document"},
    {"to", "markdown", "kprof report FILE --markdown prints a page as Markdown"},
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

const kprof_ncu_option *kprof_ncu_option_find(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const kprof_ncu_option *kprof_ncu_option_of_letter(char letter)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

const kprof_ncu_option *kprof_ncu_option_next(const char *start, const kprof_ncu_option *after)
{
    for (size_t i = after ? (size_t)(after - rows) + 1 : 0; i < ROW_COUNT; i++)
        if (strncmp(rows[i].name, start, strlen(start)) == 0)
            return &rows[i];
    return NULL;
}

const char *kprof_ncu_option_spelled_like(const char *name)
{
    const char *names[ROW_COUNT];
    for (size_t i = 0; i < ROW_COUNT; i++)
        names[i] = rows[i].name;
    return kprof_nearest_spelling(name, names, ROW_COUNT);
}

bool kprof_word_is_among(const char *words, const char *word, size_t length)
{
    while (true) {
        const size_t own = strcspn(words, "|");
        if (own == length && strncasecmp(words, word, own) == 0)
            return true;
        if (!words[own])
            return false;
        words += own + 1;
    }
}

bool kprof_ncu_asks_for_same(const kprof_ncu_option *option, const char *value)
{
    if (!option->same || strcmp(option->same, ANY) == 0)
        return option->same != NULL;
    return value && kprof_word_is_among(option->same, value, strlen(value));
}

const char *kprof_ncu_other_name(const char *name)
{
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(other_names[i].name, name) == 0)
            return other_names[i].means;
    return NULL;
}

const char *kprof_value_hint(const char *option, const char *value)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].option, option) == 0 && strcmp(values[i].value, value) == 0)
            return values[i].hint;
    return NULL;
}
