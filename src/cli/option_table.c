/* The table of options: adding one is one row here and a paragraph in its manual page. */
#include "cli/clocks.h"
#include "cli/commands.h"
#include "core/config.h"
#include "report/report.h"

#include <stddef.h>
#include <string.h>

#define FIELD(name)   offsetof(kprof_options, name)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define RUN    KPROF_IN(profile)
#define REPORT KPROF_IN(report)
#define PLAN   KPROF_IN(plan)
#define LIST   KPROF_IN(list)
#define TELL   KPROF_IN(explain)
#define SAVE   KPROF_IN(recover)
#define DIFF   KPROF_IN(diff)
#define MERGE  KPROF_IN(merge)
#define EXPORT KPROF_IN(export)
#define ALL    KPROF_IN_ALL
/* Those that print, with a format of their choice; kprof merge prints nothing, and kprof export what --to says. */
#define FORMATTING   (ALL & ~(MERGE | EXPORT))
#define OTHER_FORMAT (FORMATTING | KPROF_IGNORED_IN(EXPORT)) /* which tells of --to */
/* A whole line may be given to --plan and lists; most of its options change nothing there. */
#define RUNNING  (RUN | KPROF_IGNORED_IN(PLAN | LIST))
#define PLANNING (RUN | PLAN | KPROF_IGNORED_IN(LIST))
#define SHOWING  (RUN | REPORT | KPROF_IGNORED_IN(PLAN | LIST))
#define PRINTING (SHOWING | DIFF)
#define CHOOSING (PRINTING | EXPORT)

#define TEXT_OF(value)   #value
#define NUMBER_OF(macro) TEXT_OF(macro)

static const kprof_choice name_bases[] = {
    {"function", KPROF_NAME_FUNCTION}, {"demangled", KPROF_NAME_DEMANGLED}, {"mangled", KPROF_NAME_MANGLED}, {NULL, 0}};
static const kprof_choice query_modes[] = {
    {"base", KPROF_QUERY_BASE}, {"suffix", KPROF_QUERY_SUFFIX}, {"all", KPROF_QUERY_ALL}, {NULL, 0}};
static const kprof_choice target_processes[] = {{"application-only", 0}, {"all", 1}, {NULL, 0}};
static const kprof_choice filter_modes[] = {{"global", 0}, {"per-gpu", 1}, {NULL, 0}};
static const kprof_choice nvtx_scopes[] = {{"thread", 0}, {"process", 1}, {NULL, 0}};
static const kprof_choice replay_choices[] = {
    {"kernel", KPROF_REPLAY_ONLY}, {"multiplex", KPROF_MULTIPLEX_ALL}, {"auto", KPROF_REPLAY_WHERE_PROVED}, {NULL, 0}};
static const kprof_choice graph_profilings[] = {{"node", KPROF_GRAPH_NODES}, {"graph", KPROF_GRAPH_WHOLE}, {NULL, 0}};
static const kprof_choice replay_batches[] = {{"auto", 0}, {NULL, 0}};
static const kprof_choice cache_controls[] = {
    {"all", KPROF_CACHE_FLUSH_ALL}, {"l2", KPROF_CACHE_FLUSH_L2}, {"none", KPROF_CACHE_FLUSH_NONE}, {NULL, 0}};
static const kprof_choice witness_controls[] = {
    {"all", KPROF_WITNESSES_ALL}, {"auto", KPROF_WITNESSES_AUTO}, {NULL, 0}};
static const kprof_choice clock_controls[] = {
    {"none", KPROF_CLOCKS_ALONE}, {"base", KPROF_CLOCKS_BASE}, {"boost", KPROF_CLOCKS_BOOST}, {NULL, 0}};
#define PAGE_CHOICE(id, name, reports) {#name, KPROF_PAGE_##id},
#define PAGE_WORD(id, name, reports)   "|" #name
#define PAGE_WORDS                     &(KPROF_PAGES(PAGE_WORD))[1]
static const kprof_choice pages[] = {KPROF_PAGES(PAGE_CHOICE){NULL, 0}};
static const kprof_choice summaries[] = {{"none", 0},
                                         {"per-kernel", KPROF_GROUP_KERNEL + 1},
                                         {"per-gpu", KPROF_GROUP_DEVICE + 1},
                                         {"per-nvtx", KPROF_GROUP_NVTX + 1},
                                         {NULL, 0}};
static const kprof_choice sort_keys[] = {{"gain", KPROF_SORT_GAIN},         {"time", KPROF_SORT_TIME},
                                         {"launches", KPROF_SORT_LAUNCHES}, {"duration", KPROF_SORT_DURATION},
                                         {"compute", KPROF_SORT_COMPUTE},   {"memory", KPROF_SORT_MEMORY},
                                         {"name", KPROF_SORT_NAME},         {NULL, 0}};
static const kprof_choice groupings[] = {{"kernel", KPROF_GROUP_KERNEL},
                                         {"config", KPROF_GROUP_CONFIG},
                                         {"device", KPROF_GROUP_DEVICE},
                                         {"process", KPROF_GROUP_PROCESS},
                                         {"graph", KPROF_GROUP_GRAPH},
                                         {"nvtx", KPROF_GROUP_NVTX},
                                         {NULL, 0}};
static const kprof_choice csv_layouts[] = {
    {"long", KPROF_FORMAT_CSV}, {"wide", KPROF_FORMAT_CSV_WIDE}, {"ncu", KPROF_FORMAT_CSV_NCU}, {NULL, 0}};
static const kprof_choice export_formats[] = {{"long", KPROF_FORMAT_CSV},
                                              {"wide", KPROF_FORMAT_CSV_WIDE},
                                              {"jsonl", KPROF_FORMAT_JSONL},
                                              {"prometheus", KPROF_FORMAT_PROMETHEUS},
                                              {"perfetto", KPROF_FORMAT_PERFETTO},
                                              {"parquet", KPROF_FORMAT_COUNT},
                                              {NULL, 0}};
static const kprof_choice on_off[] = {{"on", 1}, {"off", 0}, {NULL, 0}};
static const kprof_choice yes_no[] = {{"no", 0}, {"yes", 1}, {NULL, 0}};
static const kprof_choice unit_modes[] = {{"auto", 0}, {"base", 1}, {NULL, 0}};
static const kprof_choice colors[] = {
    {"auto", KPROF_COLOR_AUTO}, {"always", KPROF_COLOR_ALWAYS}, {"never", KPROF_COLOR_NEVER}, {NULL, 0}};

/* clang-format off */
#define FLAG(name, letter, field, help, in) \
    {name, letter, KPROF_OPTION_FLAG, FIELD(field), NULL, help, in, NULL, 0, NULL}
#define ALIAS(name, line, help) \
    {name, 0, KPROF_OPTION_ALIAS, FIELD(alias), NULL, help, RUN, NULL, 0, line}
#define SET(name, letter, field, value, help, in) \
    {name, letter, KPROF_OPTION_SET, FIELD(field), NULL, help, in, NULL, value, NULL}
#define CHOICE(name, field, choices, arg, help, in, note) \
    {name, 0, KPROF_OPTION_CHOICE, FIELD(field), arg, help, in, choices, 0, note}
#define COUNT(name, field, choices, arg, help, in, most) \
    {name, 0, KPROF_OPTION_COUNT, FIELD(field), arg, help, in, choices, most, "N is from 1 to " NUMBER_OF(most)}
#define DURATION(name, field, arg, help, in) \
    {name, 0, KPROF_OPTION_SECONDS, FIELD(field), arg, help, in, NULL, 0, "a number above 0, without unit or exponent"}
#define PERCENT(name, field, help, in) \
    {name, 0, KPROF_OPTION_PERCENT, FIELD(field), "PERCENT", help, in, NULL, 0, "a number from 0, without unit"}
#define BYTES(name, field, arg, help, in) \
    {name, 0, KPROF_OPTION_BYTES, FIELD(field), arg, help, in, NULL, 0, \
     "1 byte or more and less than 16 EiB, with K, M, G, T (powers of 1024) or KB, MB, GB, TB (powers of 1000)"}
#define NO_OPTION(...)
#define FORMAT_OPTION(id, name, keeps_text, help) SET(#name, 0, format, KPROF_FORMAT_##id, help, OTHER_FORMAT),
#define VALUE(name, letter, type, field, arg, help, in) \
    {name, letter, KPROF_OPTION_##type, FIELD(field), arg, help, in, NULL, 0, NULL}

const kprof_option_row kprof_option_rows[] = {
    VALUE("set", 0, LIST, selection.sets, "ID[,ID]",
          "collect these sets, or show their sections of a report; kprof list sets shows them", PLANNING | REPORT),
    VALUE("section", 0, LIST, selection.sections, "ID[,ID]",
          "collect these sections, or show those of a report; ids or regex:PATTERN", PLANNING | REPORT),
    VALUE("section-folder", 0, PATHS, section_folders, "DIR", "also read sets, sections, findings and aliases from DIR",
          RUN | REPORT | PLAN | LIST | TELL),
    VALUE("metrics", 0, LIST, selection.metrics, "NAME[,NAME]",
          "collect, plan or list these metrics, or show those of a report: full or base names, aliases, regex:PATTERN; "
          "to collect, also group:SECTION and breakdown:THROUGHPUT",
          RUN | PLAN | LIST | REPORT),
    COUNT("max-passes", selection.limits.max_passes, NULL, "N",
          "collect in at most N passes: keep the most useful metrics, and say which are left out", RUN | PLAN, 1000000),
    DURATION("budget", selection.limits.budget_s, "SECONDS",
             "keep the most useful metrics that add at most about SECONDS to each process", RUN | PLAN),
    BYTES("allocated", selection.limits.workload.allocated_bytes, "SIZE",
          "device memory that the application allocates, such as 1.5G; for kprof plan and --budget", RUN | PLAN),
    ALIAS("plan", "plan", "kprof plan: tell what this run would collect and what that costs; start nothing"),
    ALIAS("list-sets", "list sets", "kprof list sets: the sets, with their passes on each chip"),
    ALIAS("list-sections", "list sections", "kprof list sections: the sections"),
    ALIAS("list-rules", "list findings", "kprof list findings: the findings that kprof looks for"),
    ALIAS("list-chips", "list chips", "kprof list chips: the chips that kprof supports"),
    ALIAS("query-metrics", "list metrics", "kprof list metrics: the metrics of a chip; needs no GPU"),
    CHOICE("query-metrics-mode", query_mode, query_modes, "base|suffix|all",
           "list base names, the full names of the base names in --metrics, or all full names",
           LIST | KPROF_IGNORED_IN(RUN | PLAN), NULL),
    VALUE("chips", 0, LIST, chips, "CHIP[,CHIP]", "list or plan for these chips, not for the GPU of this machine",
          PLAN | LIST | TELL),

    VALUE("kernel-name", 'k', STRING, filter.kernel, "NAME", "only kernels of this name; a name or regex:PATTERN",
          CHOOSING),
    CHOICE("kernel-name-base", name_base, name_bases, "function|demangled|mangled",
           "the name that --kernel-name is compared with (function)", CHOOSING, NULL),
    VALUE("kernel-id", 0, STRING, kernel_id, "::NAME:N",
          "only launch N, from 1, of each kernel of this name, or regex:PATTERN; without a name, of each kernel",
          RUNNING),
    FLAG("nvtx", 0, nvtx, "keep the NVTX ranges that launches are in", RUNNING | KPROF_IGNORED_IN(REPORT)),
    VALUE("nvtx-include", 0, PATHS, filter.nvtx_include, "RANGES",
          "only launches in these NVTX ranges: \"step/\" (pushed), \"net@a/*/b]\", \"epoch\" (started), regex:...; "
          "implies --nvtx",
          CHOOSING),
    VALUE("nvtx-exclude", 0, PATHS, filter.nvtx_exclude, "RANGES", "no launches in these NVTX ranges; implies --nvtx",
          CHOOSING),
    CHOICE("nvtx-push-pop-scope", nvtx_of_process, nvtx_scopes, "thread|process",
           "a launch is in what its own thread has pushed, or in what any thread has (thread)", RUNNING, NULL),
    VALUE("launch-skip", 's', NUMBER, filter.launch_skip, "N", "skip the first N launches that match", CHOOSING),
    VALUE("launch", 0, LIST, launches, "ID[-ID][,ID]", "of a report, only the launches of these numbers", REPORT),
    VALUE("launch-count", 'c', NUMBER, filter.launch_count, "N", "take at most N launches that match; 0: no limit",
          RUN | REPORT | DIFF | EXPORT | PLANNING),
    VALUE("launch-skip-before-match", 0, NUMBER, filter.launch_skip_before_match, "N",
          "skip the first N launches of any kernel", CHOOSING),
    CHOICE("filter-mode", per_device, filter_modes, "global|per-gpu",
           "skip and count the launches of all devices together, or of each by itself (global)", RUNNING, NULL),
    CHOICE("profile-from-start", profile_from_start, on_off, "on|off",
           "measure from the start, or from the application's call of cudaProfilerStart on (on); "
           "cudaProfilerStop ends both",
           RUNNING, NULL),
    FLAG("disable-profiler-start-stop", 0, ignores_profiler_calls, "ignore cudaProfilerStart and cudaProfilerStop",
         RUNNING),
    VALUE("devices", 0, ORDINALS, filter.device_mask, "N[,N]", "only these CUDA devices",
          RUN | REPORT | DIFF | EXPORT | PLAN | LIST | TELL),
    CHOICE("target-processes", follow_children, target_processes, "application-only|all",
           "profile the first process only, or its child processes too (all)", RUNNING, NULL),

    FLAG("null-stdin", 0, null_stdin, "the application reads /dev/null as its standard input", RUNNING),

    CHOICE("replay-mode", replay_choice, replay_choices, "kernel|multiplex|auto",
           "repeat each launch for every pass, measure each launch in one pass, or repeat where that is safe (auto)",
           RUNNING, NULL),
    COUNT("multiplex-samples", multiplex_samples, NULL, "N",
          "when launches are not repeated: take at most N samples of each kernel and shape (32)", RUNNING,
          KPROF_MOST_SAMPLES),
    CHOICE("graph-profiling", graph_profiling, graph_profilings, "node|graph",
           "measure each kernel of a CUDA graph, or the graph as one launch (node)", RUNNING, NULL),
    COUNT("replay-batch", replay_batch, replay_batches, "N|auto",
          "repeat at most N launches together (auto: as many as memory allows, up to 2048)", PLANNING,
          KPROF_BATCH_MOST_LAUNCHES),
    CHOICE("cache-control", cache_control, cache_controls, "all|l2|none",
           "before each measured launch, empty all caches as ncu does, or L2 alone, which is faster, or none (all)",
           PLANNING, NULL),
    CHOICE("witnesses", witness_control, witness_controls, "all|auto",
           "count instructions in every pass to find passes that differ: always, or after large batches (all)", RUNNING,
           NULL),
    CHOICE("clock-control", clock_control, clock_controls, "none|base|boost",
           "lock the GPUs' graphics clocks during this run, or leave them alone (none)", RUNNING, NULL),

    VALUE("export", 'o', STRING, export_path, "FILE",
          "keep the report, or the chosen part of one, as FILE.kprof; %h %p %q{ENV} %i %% are expanded. "
          "Of kprof export: write to FILE",
          RUNNING | SAVE | REPORT | EXPORT | MERGE),
    FLAG("force-overwrite", 'f', force_overwrite, "let a report, a page or an export replace an existing file",
         RUNNING | SAVE | REPORT | DIFF | EXPORT | MERGE),
    CHOICE("to", export_format, export_formats, "long|wide|jsonl|prometheus|perfetto|parquet",
           "the format to write: CSV in two layouts, JSON lines, Prometheus' text, a trace, or Parquet", EXPORT, NULL),
    VALUE("import", 'i', STRING, import_path, "FILE.kprof", "print an existing report: kprof report FILE.kprof",
          RUN | REPORT),
    VALUE("baseline", 0, STRING, baseline, "FILE.kprof",
          "compare with this report: kprof diff FILE.kprof REPORT.kprof", REPORT),
    VALUE("fail-on", 0, PATHS, fail_on, "CONDITION",
          "of two reports: exit with 113 if a kernel meets it, such as \"dram__bytes_read.sum>+3%\" or \"duration>5%\"",
          REPORT | DIFF),
    PERCENT("time-tolerance", time_tolerance_pct, "of two reports: times that differ by less are the same (2)",
            REPORT | DIFF),
    PERCENT("bytes-tolerance", bytes_tolerance_pct, "of two reports: traffic that differs by less is the same (2)",
            REPORT | DIFF),
    FLAG("anyway", 0, anyway, "compare two reports even where that misleads: of other chips or cache control",
         REPORT | DIFF),
    CHOICE("page", page, pages, PAGE_WORDS, "the page to print (details)", SHOWING, NULL),
    SET("brief", 0, page, KPROF_PAGE_BRIEF,
        "--page brief: for each kernel at most 15 lines, or with --json a document of at most 2 KB", SHOWING),
    CHOICE("print-summary", print_summary, summaries, "none|per-kernel|per-gpu|per-nvtx",
           "the same as --page statistics, with rows for each kernel, GPU or NVTX range",
           SHOWING, NULL),
    CHOICE("sort", sort, sort_keys, "gain|time|launches|duration|compute|memory|name",
           "order of the summary and brief pages: by what can be gained of all the time, or by this (gain)", SHOWING,
           NULL),
    CHOICE("group-by", group_by, groupings, "kernel|config|device|process|graph|nvtx",
           "rows of the summary, statistics and brief pages: for each kernel, or each part of its launches (kernel)",
           SHOWING, NULL),
    VALUE("top", 0, NUMBER, top, "N", "show the first N rows of the summary and brief pages; 0: all", SHOWING),
    VALUE("filter", 0, PATHS, filters, "CONDITION",
          "show only launches that meet it, such as \"duration>10us\" or \"dram__bytes_read.sum>=1GB\"", SHOWING),
    KPROF_FORMATS(NO_OPTION, FORMAT_OPTION)
    VALUE("html", 0, STRING, html_path, "FILE", "write all about the report to FILE, one HTML file for a browser",
          REPORT | DIFF),
    CHOICE("csv-layout", csv_layout, csv_layouts, "long|wide|ncu",
           "a row for each value, a row for each launch, or ncu's columns; implies --csv (long)", OTHER_FORMAT, NULL),
    FLAG("csv-safe", 0, csv_safe, "in CSV, put an apostrophe before texts that a spreadsheet would take for a formula",
         ALL & ~MERGE),
    CHOICE("print-units", base_units, unit_modes, "auto|base", "in text, scale units (auto), or print base units",
           PRINTING | PLAN, NULL),
    FLAG("all", 0, all_rows,
         "in text, print rows of 0 too, and values that an earlier section has; of two reports, compare all metrics",
         PRINTING),
    FLAG("details-help", 0, details_help, "in text, tell what sections and metrics mean", SHOWING),
    CHOICE("apply-rules", apply_rules, yes_no, "yes|no", "look for findings, and print a verdict on each launch (yes)",
           SHOWING, NULL),
    VALUE("rule", 0, LIST, rules, "ID[,ID]", "look for these findings only; kprof list findings shows them", SHOWING),
    CHOICE("print-kernel-base", kernel_base, name_bases, "function|demangled|mangled",
           "the kernel names to print (demangled)", PRINTING, NULL),
    VALUE("log-file", 0, STRING, log_file, "FILE", "write the results to FILE, or to \"stdout\" or \"stderr\"", ALL),
    VALUE("width", 'w', NUMBER, width, "N",
          "columns of text, 40 at least; 0: as many as COLUMNS says, or as the terminal has (0)", ALL),
    CHOICE("color", color, colors, "auto|always|never", "colour in text (auto: on a terminal)", ALL, NULL),
    FLAG("quiet", 'q', quiet, "no progress, and no messages but warnings and errors", ALL),
    FLAG("verbose", 0, verbose, "more messages, and more of what the pages of lists, plans and summaries show", ALL),
    VALUE("injection-path", 0, STRING, injection_path, "FILE", "use this injection library", RUNNING),
    VALUE("counter-data", 0, STRING, counter_data_dir, "DIR", "also keep each launch's counter data image in DIR",
          RUNNING),
    VALUE("complete", 0, STRING, complete, "WHAT",
          "for shells: list commands, options, an option's values, or what a command line may be continued with", ALL),
    FLAG("help", 'h', help, "print this help", ALL),
    FLAG("version", 'v', version, "print the version", ALL),
};
/* clang-format on */

const size_t kprof_option_row_count = LENGTH(kprof_option_rows);
_Static_assert(LENGTH(kprof_option_rows) <= KPROF_OPTIONS_MAX, "kprof_options.given has an element for each row");
