/* The table of options: adding one is one row here and a paragraph in its manual page. */
#include "cli/clocks.h"
#include "cli/options.h"
#include "core/config.h"
#include "report/report.h"

#include <stddef.h>
#include <string.h>

#define FIELD(name)   offsetof(kprof_options, name)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define IN_PROFILE  KPROF_IN_PROFILE
#define IN_ALL      KPROF_IN_ALL
#define IN_MEASURED (KPROF_IN_RUN | KPROF_IN_PLAN)
#define IN_OFFLINE  (KPROF_IN_PLAN | KPROF_IN_LISTS)

#define TEXT_OF(value)   #value
#define NUMBER_OF(macro) TEXT_OF(macro)

static const kprof_choice name_bases[] = {
    {"function", KPROF_NAME_FUNCTION}, {"demangled", KPROF_NAME_DEMANGLED}, {"mangled", KPROF_NAME_MANGLED}, {NULL, 0}};
static const kprof_choice query_modes[] = {
    {"base", KPROF_QUERY_BASE}, {"suffix", KPROF_QUERY_SUFFIX}, {"all", KPROF_QUERY_ALL}, {NULL, 0}};
static const kprof_choice target_processes[] = {{"application-only", 0}, {"all", 1}, {NULL, 0}};
static const kprof_choice replay_choices[] = {
    {"kernel", KPROF_REPLAY_ONLY}, {"multiplex", KPROF_MULTIPLEX_ALL}, {"auto", KPROF_REPLAY_WHERE_PROVED}, {NULL, 0}};
static const kprof_choice graph_profilings[] = {{"node", KPROF_GRAPH_NODES}, {"graph", KPROF_GRAPH_WHOLE}, {NULL, 0}};
static const kprof_choice replay_batches[] = {{"auto", 0}, {NULL, 0}};
static const kprof_choice cache_controls[] = {
    {"all", KPROF_CACHE_FLUSH_ALL}, {"none", KPROF_CACHE_FLUSH_NONE}, {NULL, 0}};
static const kprof_choice witness_controls[] = {
    {"all", KPROF_WITNESSES_ALL}, {"auto", KPROF_WITNESSES_AUTO}, {NULL, 0}};
static const kprof_choice clock_controls[] = {
    {"none", KPROF_CLOCKS_ALONE}, {"base", KPROF_CLOCKS_BASE}, {"boost", KPROF_CLOCKS_BOOST}, {NULL, 0}};
static const kprof_choice pages[] = {{"details", KPROF_PAGE_DETAILS},
                                     {"raw", KPROF_PAGE_RAW},
                                     {"summary", KPROF_PAGE_SUMMARY},
                                     {"session", KPROF_PAGE_SESSION},
                                     {NULL, 0}};
static const kprof_choice summaries[] = {{"none", 0}, {"per-kernel", 1}, {NULL, 0}};
static const kprof_choice csv_layouts[] = {
    {"long", KPROF_CSV_LONG}, {"wide", KPROF_CSV_WIDE}, {"ncu", KPROF_CSV_NCU}, {NULL, 0}};
static const kprof_choice unit_modes[] = {{"auto", 0}, {"base", 1}, {NULL, 0}};
static const kprof_choice colors[] = {
    {"auto", KPROF_COLOR_AUTO}, {"always", KPROF_COLOR_ALWAYS}, {"never", KPROF_COLOR_NEVER}, {NULL, 0}};

/* clang-format off */
#define FLAG(name, letter, field, help, in) \
    {name, letter, KPROF_OPTION_FLAG, FIELD(field), NULL, help, in, NULL, 0, NULL}
#define SET(name, letter, field, value, help, in) \
    {name, letter, KPROF_OPTION_SET, FIELD(field), NULL, help, in, NULL, value, NULL}
#define CHOICE(name, field, choices, arg, help, in, note) \
    {name, 0, KPROF_OPTION_CHOICE, FIELD(field), arg, help, in, choices, 0, note}
#define COUNT(name, field, choices, arg, help, in, most) \
    {name, 0, KPROF_OPTION_COUNT, FIELD(field), arg, help, in, choices, most, "N is from 1 to " NUMBER_OF(most)}
#define DURATION(name, field, arg, help, in) \
    {name, 0, KPROF_OPTION_SECONDS, FIELD(field), arg, help, in, NULL, 0, "a number above 0, without unit or exponent"}
#define BYTES(name, field, arg, help, in) \
    {name, 0, KPROF_OPTION_BYTES, FIELD(field), arg, help, in, NULL, 0, \
     "1 byte or more and less than 16 EiB, with K, M, G, T (powers of 1024) or KB, MB, GB, TB (powers of 1000)"}
#define VALUE(name, letter, type, field, arg, help, in) \
    {name, letter, KPROF_OPTION_##type, FIELD(field), arg, help, in, NULL, 0, NULL}

const kprof_option_row kprof_option_rows[] = {
    VALUE("set", 0, LIST, selection.sets, "ID[,ID]", "collect these sets (--list-sets shows them)", IN_PROFILE),
    VALUE("section", 0, LIST, selection.sections, "ID[,ID]", "collect these sections; ids, regex:PATTERN", IN_PROFILE),
    VALUE("section-folder", 0, PATHS, section_folders, "DIR", "read sets and sections from DIR too", IN_PROFILE),
    VALUE("metrics", 0, LIST, selection.metrics, "NAME[,NAME]",
          "collect these metrics: full or base names, regex:PATTERN, group:SECTION, breakdown:THROUGHPUT", IN_PROFILE),
    COUNT("max-passes", selection.limits.max_passes, NULL, "N",
          "collect in at most N passes: keep the most useful metrics, say which are left out", IN_MEASURED, 1000000),
    DURATION("budget", selection.limits.budget_s, "SECONDS",
             "keep the most useful metrics that cost each process about SECONDS at most", IN_MEASURED),
    BYTES("allocated", selection.limits.workload.allocated_bytes, "SIZE",
          "device memory that the application allocates, such as 1.5G: for --plan and --budget", IN_MEASURED),
    SET("plan", 0, action, KPROF_ACTION_PLAN,
        "tell passes, expected time and bytes to save of what would be collected; start nothing", IN_PROFILE),
    SET("list-sets", 0, action, KPROF_ACTION_LIST_SETS, "list the sets, with their passes on each chip", IN_PROFILE),
    SET("list-sections", 0, action, KPROF_ACTION_LIST_SECTIONS, "list the sections", IN_PROFILE),
    SET("list-chips", 0, action, KPROF_ACTION_LIST_CHIPS, "list the chips whose metrics are known", IN_PROFILE),
    SET("query-metrics", 0, action, KPROF_ACTION_QUERY_METRICS, "list the metrics of a chip; needs no GPU", IN_PROFILE),
    CHOICE("query-metrics-mode", query_mode, query_modes, "base|suffix|all",
           "list base names, the full names of the base names in --metrics, or all full names", IN_PROFILE, NULL),
    VALUE("chips", 0, LIST, chips, "CHIP[,CHIP]", "chips to list and plan for, not the GPU that is here", IN_OFFLINE),

    VALUE("kernel-name", 'k', STRING, filter.kernel, "NAME", "only kernels of this name, or regex:PATTERN", IN_ALL),
    CHOICE("kernel-name-base", name_base, name_bases, "function|demangled|mangled",
           "what --kernel-name is compared with (function)", IN_ALL, NULL),
    VALUE("launch-skip", 's', NUMBER, filter.launch_skip, "N", "skip the first N matching launches", IN_ALL),
    VALUE("launch-count", 'c', NUMBER, filter.launch_count, "N", "at most N matching launches; 0: no limit", IN_ALL),
    VALUE("launch-skip-before-match", 0, NUMBER, filter.launch_skip_before_match, "N",
          "skip the first N launches of any kernel", IN_ALL),
    VALUE("devices", 0, ORDINALS, filter.device_mask, "N[,N]", "only these CUDA devices", IN_ALL),
    CHOICE("target-processes", follow_children, target_processes, "application-only|all",
           "profile the first process only, or its children too (all)", IN_PROFILE, NULL),

    CHOICE("replay-mode", replay_choice, replay_choices, "kernel|multiplex|auto",
           "repeat launches for further passes, measure each launch in one pass, or repeat where it is safe (auto)",
           IN_PROFILE, NULL),
    COUNT("multiplex-samples", multiplex_samples, NULL, "N",
          "of launches measured in one pass each: at most N for each kernel, shape and pass (32)", IN_PROFILE,
          KPROF_MOST_SAMPLES),
    CHOICE("graph-profiling", graph_profiling, graph_profilings, "node|graph",
           "of a CUDA graph, measure each kernel, or the graph as one launch (node)", IN_PROFILE, NULL),
    COUNT("replay-batch", replay_batch, replay_batches, "N|auto",
          "repeat at most N launches together (auto: 512 at first, more where that is faster)", IN_PROFILE,
          KPROF_BATCH_MOST_LAUNCHES),
    CHOICE("cache-control", cache_control, cache_controls, "all|none", "flush L2 before each measured launch (all)",
           IN_PROFILE, NULL),
    CHOICE("witnesses", witness_control, witness_controls, "all|auto",
           "count instructions in every pass, to show passes that differ: in all batches (all), or after large ones",
           IN_PROFILE, NULL),
    CHOICE("clock-control", clock_control, clock_controls, "none|base|boost",
           "lock the GPUs' graphics clocks for this run, or leave them alone (none)", IN_PROFILE,
           "ncu's reset is not needed, since what is locked is undone; by hand: nvidia-smi --reset-gpu-clocks"),

    VALUE("export", 'o', STRING, export_path, "FILE", "keep the report as FILE.kprof; %h %p %q{ENV} %i %% are expanded",
          IN_PROFILE),
    FLAG("force-overwrite", 'f', force_overwrite, "let --export replace an existing file", IN_PROFILE),
    VALUE("import", 'i', STRING, import_path, "FILE", "print an existing report, like kprof report FILE", IN_ALL),
    CHOICE("page", page, pages, "details|raw|summary|session", "which page to print (details)", IN_ALL, NULL),
    CHOICE("print-summary", print_summary, summaries, "none|per-kernel", "per-kernel: --page summary", IN_ALL, NULL),
    SET("csv", 0, format, KPROF_FORMAT_CSV, "print CSV: base units, full metric names", IN_ALL),
    SET("json", 0, format, KPROF_FORMAT_JSON, "print JSON", IN_ALL),
    CHOICE("csv-layout", csv_layout, csv_layouts, "long|wide|ncu",
           "a row per value, a row per launch, or ncu's columns; implies --csv (long)", IN_ALL, NULL),
    CHOICE("print-units", base_units, unit_modes, "auto|base", "scale units in text (auto), or not", IN_ALL, NULL),
    CHOICE("print-kernel-base", kernel_base, name_bases, "function|demangled|mangled", "kernel names shown (demangled)",
           IN_ALL, NULL),
    VALUE("log-file", 0, STRING, log_file, "FILE", "write the results to FILE, or to \"stdout\" or \"stderr\"", IN_ALL),
    CHOICE("color", color, colors, "auto|always|never", "colour in text (auto: on a terminal)", IN_ALL, NULL),
    FLAG("quiet", 'q', quiet, "no progress, no messages but warnings and errors", IN_ALL),
    FLAG("verbose", 0, verbose, "more messages", IN_ALL),
    VALUE("injection-path", 0, STRING, injection_path, "FILE", "the injection library to use", IN_PROFILE),
    VALUE("counter-data", 0, STRING, counter_data_dir, "DIR", "keep each launch's counter data image in DIR",
          IN_PROFILE),
    VALUE("complete", 0, STRING, complete, "WHAT",
          "for shells: list commands, options, arguments (options with one) or an option's values", IN_ALL),
    SET("help", 'h', action, KPROF_ACTION_HELP, "print this help", IN_ALL),
    SET("version", 'v', action, KPROF_ACTION_VERSION, "print the version", IN_ALL),
};
/* clang-format on */

const size_t kprof_option_row_count = LENGTH(kprof_option_rows);
_Static_assert(LENGTH(kprof_option_rows) <= 64, "kprof_options.given has one bit per row");

/* Options of ncu that kprof does not take, and how to get the same where that is possible. */
static const struct {
    const char *name, *hint;
} ncu_options[] = {
    {"app-replay-buffer", ""},
    {"app-replay-match", ""},
    {"app-replay-mode", ""},
    {"apply-rules", ""},
    {"call-stack", ""},
    {"check-exit-code", "kprof always passes on the application's exit status"},
    {"communicator", ""},
    {"config-file", "kprof reads no configuration file"},
    {"config-file-path", "kprof reads no configuration file"},
    {"disable-extra-suffixes", ""},
    {"disable-profiler-start-stop", "kprof ignores cudaProfilerStart and cudaProfilerStop"},
    {"filter-mode", ""},
    {"forward-signals", "kprof always forwards SIGINT, SIGTERM, SIGHUP and SIGQUIT"},
    {"import-sass", ""},
    {"import-source", ""},
    {"injection-path-32", "use --injection-path"},
    {"injection-path-64", "use --injection-path"},
    {"kernel-id", "use --kernel-name, --launch-skip and --launch-count"},
    {"kill", ""},
    {"list-metrics", "use --query-metrics, or --list-sections"},
    {"list-rules", ""},
    {"lockstep-kernel-launch", ""},
    {"metric-distribution-groups", ""},
    {"mode", "kprof always launches the application"},
    {"mps", ""},
    {"null-stdin", "use </dev/null"},
    {"nvtx", ""},
    {"nvtx-exclude", ""},
    {"nvtx-include", ""},
    {"open-in-ui", ""},
    {"pm-sampling-interval", ""},
    {"preload-library", "use LD_PRELOAD"},
    {"print-details", ""},
    {"print-fp", "use --print-units base"},
    {"print-metric-instances", ""},
    {"print-metric-name", ""},
    {"print-rule-details", ""},
    {"print-source", ""},
    {"profile-from-start", "use --launch-skip-before-match"},
    {"query-metrics-collection", ""},
    {"range-filter", ""},
    {"range-replay-options", ""},
    {"rename-kernels", "use --print-kernel-base"},
    {"resolve-source-file", ""},
    {"rule", ""},
    {"section-folder-recursive", "use --section-folder"},
    {"section-folder-restore", ""},
    {"source-folders", ""},
    {"support-32bit", ""},
    {"target-processes-filter", "use --target-processes"},
    {"warp-sampling-interval", ""},
};

const char *kprof_ncu_option_hint(const char *name)
{
    for (size_t i = 0; i < LENGTH(ncu_options); i++) {
        if (strcmp(ncu_options[i].name, name) == 0)
            return ncu_options[i].hint;
    }
    return NULL;
}
