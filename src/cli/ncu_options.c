/* The options and values of ncu that kprof does not take, so that each is answered with what to use instead. They are
 * those of ncu 2025.3.1, of the versions after it, and old names that scripts still have. Formats that kprof has in
 * another command are answered alike. Adding one is a row here. */
#include "cli/options.h"

#include <string.h>

static const char no_app_replay[] = "kprof does not run an application more than once; see --replay-mode";
static const char no_call_stack[] = "kprof records no call stacks; choose launches with -k, -s and -c";
static const char no_communicator[] =
    "kprof does not keep ranks in step; --replay-mode multiplex repeats no launch, so "
    "that ranks need not wait for each other";
static const char no_config[] = "kprof reads no configuration file";
static const char no_filter[] = "choose launches with -k, -s and -c";
static const char no_mps[] = "kprof has no support of MPS";
static const char no_port[] = "kprof does not connect to processes, and needs no port";
static const char no_ranges[] = "kprof measures launches and graphs, not ranges; see --graph-profiling";
static const char no_rename[] = "--print-kernel-base chooses the names to print";
static const char no_sampling[] = "kprof does not sample; see kprof list metrics for what can be counted";
static const char no_source[] = "kprof has no source view; it shows values of launches";
static const char fixed_details[] = "--page details prints all of a section, --page raw each metric by its full name";
static const char fixed_folders[] = "use --section-folder for each folder";

static const kprof_ncu_option rows[] = {
    {"app-replay-buffer", 0, no_app_replay},
    {"app-replay-match", 0, no_app_replay},
    {"app-replay-mode", 0, no_app_replay},
    {"call-stack", 0, no_call_stack},
    {"call-stack-type", 0, no_call_stack},
    {"check-exit-code", 0, "kprof always passes on the application's exit status"},
    {"communicator", 0, no_communicator},
    {"communicator-num-peers", 0, no_communicator},
    {"communicator-shmem-num-peers", 0, no_communicator},
    {"communicator-tcp-hostname", 0, no_communicator},
    {"communicator-tcp-num-peers", 0, no_communicator},
    {"communicator-tcp-port", 0, no_communicator},
    {"config-file", 0, no_config},
    {"config-file-path", 0, no_config},
    {"details-all", 0, fixed_details},
    {"disable-extra-suffixes", 0, "give full names to --metrics, such as dram__bytes.sum"},
    {"disable-pm-warp-sampling", 0, no_sampling},
    {"disable-profiler-start-stop", 0, "kprof always ignores cudaProfilerStart and cudaProfilerStop"},
    {"filter-mode", 0, "-s and -c count the launches of each process"},
    {"forward-signals", 0, "kprof always forwards SIGINT, SIGTERM, SIGHUP and SIGQUIT"},
    {"fp", 0, "use --print-units base"},
    {"hostname", 0, "kprof starts the application on this machine, and does not attach to a process"},
    {"import-sass", 0, no_source},
    {"import-source", 0, no_source},
    {"injection-path-32", 0, "use --injection-path"},
    {"injection-path-64", 0, "use --injection-path"},
    {"kernel-id", 0, "use --kernel-name, --launch-skip and --launch-count, or --launch of a report"},
    {"kernel-regex", 0, "use --kernel-name regex:PATTERN"},
    {"kernel-regex-base", 0, "use --kernel-name-base"},
    {"kill", 0, "kprof lets the application run to its end; after --launch-count launches it runs as without kprof"},
    {"list-metrics", 0, "use kprof list metrics --metrics group:SECTION, or kprof list sections"},
    {"lockstep-kernel-launch", 0, no_communicator},
    {"lockstep-nvtx-exclude", 0, no_communicator},
    {"lockstep-nvtx-include", 0, no_communicator},
    {"max-connections", 0, no_port},
    {"metric-distribution-groups", 0, "kprof distributes metrics over passes by itself; see kprof plan"},
    {"mode", 0, "kprof always launches the application, and measures it from the start"},
    {"mps", 0, no_mps},
    {"mps-num-clients", 0, no_mps},
    {"mps-timeout", 0, no_mps},
    {"native-exclude", 0, no_call_stack},
    {"native-include", 0, no_call_stack},
    {"null-stdin", 0, "use </dev/null"},
    {"open-in-ui", 0, "kprof has no window; kprof report FILE.kprof --html OUT.html writes a page for a browser"},
    {"pipeline-boost-state", 0, "--clock-control can lock the graphics clock"},
    {"pm-sampling-buffer-size", 0, no_sampling},
    {"pm-sampling-interval", 0, no_sampling},
    {"pm-sampling-max-passes", 0, no_sampling},
    {"port", 'p', no_port},
    {"preload-library", 0, "set LD_PRELOAD"},
    {"print-details", 0, fixed_details},
    {"print-fp", 0, "use --print-units base"},
    {"print-metric-attribution", 0, fixed_details},
    {"print-metric-instances", 0, "kprof keeps no instances of metrics"},
    {"print-metric-name", 0, fixed_details},
    {"print-nvtx-rename", 0, "the ranges stand below the kernel's name; see also --group-by nvtx"},
    {"print-rule-details", 0, "use --details-help"},
    {"print-source", 0, no_source},
    {"process-id", 0, "kprof starts the application, and does not attach to a process"},
    {"profile-from-start", 0, "use --launch-skip-before-match"},
    {"python-exclude", 0, no_call_stack},
    {"python-include", 0, no_call_stack},
    {"query-metrics-collection", 0, "kprof list metrics lists what can be counted for each launch"},
    {"range-filter", 0, no_filter},
    {"range-replay-options", 0, no_ranges},
    {"rename-kernels", 0, no_rename},
    {"rename-kernels-export", 0, no_rename},
    {"rename-kernels-path", 0, no_rename},
    {"resolve-source-file", 0, no_source},
    {"sampling-buffer-size", 0, no_sampling},
    {"sampling-interval", 0, no_sampling},
    {"sampling-max-passes", 0, no_sampling},
    {"section-folder-recursive", 0, fixed_folders},
    {"section-folder-restore", 0, "kprof never changes the files it is installed with"},
    {"source-folders", 0, no_source},
    {"summary", 0, "use --print-summary, or --page summary"},
    {"support-32bit", 0, "kprof measures 64-bit programs"},
    {"target-processes-filter", 0, "use --target-processes"},
    {"units", 0, "use --print-units"},
    {"warp-samples-per-interval", 0, no_sampling},
    {"warp-sampling-buffer-size", 0, no_sampling},
    {"warp-sampling-interval", 0, no_sampling},
    {"warp-sampling-max-passes", 0, no_sampling},
};

/* Values of options that both have, and formats. */
static const struct {
    const char *option, *value, *hint;
} values[] = {
    {"apply-rules", "off", "off is no"},
    {"apply-rules", "on", "on is yes"},
    {"clock-control", "force-boost", "boost is the nearest"},
    {"clock-control", "reset", "kprof undoes what it locked; by hand: nvidia-smi --reset-gpu-clocks"},
    {"page", "source", no_source},
    {"print-summary", "per-gpu", "use --page statistics --group-by device"},
    {"print-summary", "per-nvtx", "use --page statistics --group-by nvtx"},
    {"replay-mode", "app-range", no_ranges},
    {"replay-mode", "application", "kprof runs an application once; multiplex repeats no launch"},
    {"replay-mode", "range", no_ranges},
    {"to", "csv", "long and wide are CSV, and kprof report FILE --csv prints a page as CSV"},
    {"to", "html", "kprof report FILE --html OUT.html writes a page for a browser"},
    {"to", "json", "jsonl has a line of JSON for each launch, and kprof report FILE --json prints one document"},
    {"to", "markdown", "kprof report FILE --markdown prints a page as Markdown"},
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

/* A beginning of fewer letters may mean anything. */
#define PREFIX_MIN 3

const kprof_ncu_option *kprof_ncu_option_find(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

const char *kprof_value_hint(const char *option, const char *value)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(values[i].option, option) == 0 && strcmp(values[i].value, value) == 0)
            return values[i].hint;
    }
    return NULL;
}

const kprof_ncu_option *kprof_ncu_option_of_letter(char letter)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].letter == letter)
            return &rows[i];
    }
    return NULL;
}

const kprof_ncu_option *kprof_ncu_option_like(const char *name)
{
    const char *names[ROW_COUNT];
    for (size_t i = 0; i < ROW_COUNT; i++) {
        names[i] = rows[i].name;
        if (strlen(name) >= PREFIX_MIN && strncmp(rows[i].name, name, strlen(name)) == 0)
            return &rows[i];
    }
    const char *nearest = kprof_nearest_spelling(name, names, ROW_COUNT);
    return nearest ? kprof_ncu_option_find(nearest) : NULL;
}
