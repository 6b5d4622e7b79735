/* The options of all commands, in the order of --help; those about what is measured are in core/recorder_options.h. A
 * new option is a row (core/option.h says how), a paragraph in its manual page, and the code that uses its field. */
/* clang-format off */
OPTION(ELSEWHERE, LIST, selection.sets, "set", RUN | PLAN | LIST | REPORT | CTL,
       "collect these sets, or show their sections of a report; kprof list sets shows them", .argument = "ID[,ID]")
OPTION(ELSEWHERE, LIST, selection.sections, "section", RUN | PLAN | LIST | REPORT | CTL,
       "collect these sections, or show those of a report; ids or regex:PATTERN", .argument = "ID[,ID]")
OPTION(ELSEWHERE, LIST, selection.excluded, "section-exclude", RUN | PLAN | LIST,
       "leave out the sections of these ids or regex:PATTERN, such as some of a set", .argument = "ID[,ID]")
OPTION(CLI, PATHS, section_folders, "section-folder", RUN | REPORT | PLAN | LIST | TELL,
       "also read sets, sections, findings, aliases and words from DIR", .argument = "DIR")
OPTION(CLI, PATHS, section_trees, "section-folder-recursive", RUN | REPORT | PLAN | LIST | TELL,
       "the same from DIR and each folder below it that has some", .argument = "DIR")
OPTION(ELSEWHERE, LIST, selection.metrics, "metrics", RUN | PLAN | LIST | REPORT | CTL,
       "collect, plan or list these metrics, or show those of a report: full or base names, aliases, regex:PATTERN; "
       "to collect, also group:SECTION and breakdown:THROUGHPUT", .argument = "NAME[,NAME]")
OPTION(ELSEWHERE, COUNT, selection.limits.max_passes, "max-passes", RUN | PLAN,
       "collect in at most N passes: keep the most useful metrics, and say which are left out", .argument = "N",
       .value = 1000000)
OPTION(CLI, FLAG, rank_passes, "rank-passes", RUNNING,
       "collect one share of the passes, that of this rank of a job whose ranks do the same; kprof merge joins them")
OPTION(ELSEWHERE, COUNT, selection.most_timelines, "pm-sampling-max-passes", RUN | PLAN,
       "sample counters over time in at most N passes (auto: as many as it takes)", .argument = "N|auto",
       .choices = KPROF_CHOICES({"auto", 0}, {"0", 0}), .value = 1000)
OPTION(ELSEWHERE, SECONDS, selection.limits.budget_s, "budget", RUN | PLAN,
       "keep the most useful metrics that add at most about SECONDS to each process", .argument = "SECONDS")
OPTION(ELSEWHERE, BYTES, selection.limits.workload.allocated_bytes, "allocated", RUN | PLAN,
       "device memory that the application allocates, such as 1.5G; for kprof plan and --budget", .argument = "SIZE")
OPTION(ELSEWHERE, ALIAS, alias, "plan", RUN,
       "kprof plan: tell what this run would collect and what that costs; start nothing", .note = "plan")
OPTION(ELSEWHERE, SET, starts_unarmed, "wait", RUNNING | TRACE,
       "the same as --armed no: measure or trace only when kprof ctl start says so", .value = 1)
OPTION(CLI, SECONDS, delay_s, "delay", TRACE, "trace nothing in the first SECONDS", .letter = 'y',
       .argument = "SECONDS")
OPTION(CLI, SECONDS, duration_s, "duration", TRACE, "trace SECONDS, and let the application run on", .letter = 'd',
       .argument = "SECONDS")
OPTION(ELSEWHERE, ALIAS, alias, "list-sets", RUN, "kprof list sets: the sets, with their passes on each chip",
       .note = "list sets")
OPTION(ELSEWHERE, ALIAS, alias, "list-sections", RUN, "kprof list sections: the sections", .note = "list sections")
OPTION(ELSEWHERE, ALIAS, alias, "list-rules", RUN, "kprof list findings: the findings that kprof looks for",
       .note = "list findings")
OPTION(ELSEWHERE, ALIAS, alias, "list-chips", RUN, "kprof list chips: the chips that kprof supports",
       .note = "list chips")
OPTION(ELSEWHERE, ALIAS, alias, "list-metrics", RUN,
       "kprof list collected: the metrics that these sets and sections collect", .note = "list collected")
OPTION(ELSEWHERE, ALIAS, alias, "query-metrics", RUN, "kprof list metrics: the metrics of a chip; needs no GPU",
       .note = "list metrics")
OPTION(CLI, CHOICE, query_mode, "query-metrics-mode", LIST | KPROF_IGNORED_IN(RUN | PLAN),
       "list base names, the full names of the base names in --metrics, or all full names",
       .argument = "base|suffix|all",
       .choices = KPROF_CHOICES({"base", KPROF_QUERY_BASE}, {"suffix", KPROF_QUERY_SUFFIX}, {"all", KPROF_QUERY_ALL}))
OPTION(CLI, LIST, chips, "chips", PLAN | LIST | TELL, "list or plan for these chips, not for the GPU of this machine",
       .argument = "CHIP[,CHIP]")

#include "core/recorder_options.h"

OPTION(CLI, STRING, export_path, "export", RUNNING | TRACE | SAVE | REPORT | EXPORT | MERGE | CTL | STATS,
       "keep the report, or the chosen part of one, as FILE.kprof; with kprof export: write to FILE; with kprof stats: "
       "each table to FILE_TABLE.csv. %h %p %q{ENV} %i %% are expanded", .letter = 'o',
       .argument = "FILE")
OPTION(CLI, FLAG, force_overwrite, "force-overwrite",
       RUNNING | TRACE | SAVE | REPORT | DIFF | EXPORT | MERGE | CTL | STATS,
       "let a report, a page or an export replace an existing file", .letter = 'f')
OPTION(CLI, CHOICE, export_format, "to", EXPORT,
       "the format to write: CSV in two layouts, JSON lines, Prometheus' text, a trace of launches, a trace of "
       "kprof trace, also as an HTML page or an SQLite file of nsys, Parquet, folded call stacks, or JSON lines of "
       "instructions",
       .argument = "long|wide|jsonl|prometheus|perfetto|chrome|timeline|parquet|folded|instructions|nsys-sqlite",
       .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"long", KPROF_FORMAT_CSV}, {"wide", KPROF_FORMAT_CSV_WIDE},
                                {"jsonl", KPROF_FORMAT_JSONL}, {"prometheus", KPROF_FORMAT_PROMETHEUS},
                                {"perfetto", KPROF_FORMAT_PERFETTO}, {"chrome", KPROF_EXPORT_CHROME},
                                {"timeline", KPROF_EXPORT_TIMELINE}, {"parquet", KPROF_EXPORT_PARQUET},
                                {"folded", KPROF_EXPORT_FOLDED}, {"instructions", KPROF_EXPORT_INSTRUCTIONS},
                                {"nsys-sqlite", KPROF_EXPORT_NSYS}))
OPTION(CLI, CHOICE, reads_config, "config-file", RUN | PLAN | REPORT | LIST,
       "also take options from ncu's file config.ncu-cfg, of this folder or the user (no; as ncu: the user's)",
       .argument = "yes|no", .initial = KPROF_UNSET, .choices = KPROF_CHOICES({"no", 0}, {"yes", 1}))
OPTION(CLI, STRING, config_path, "config-file-path", RUN | PLAN | REPORT | LIST,
       "also take options from FILE, which has them as config.ncu-cfg does", .argument = "FILE")
OPTION(CLI, STRING, import_path, "import", RUN | REPORT, "print an existing report: kprof report FILE.kprof",
       .letter = 'i', .argument = "FILE.kprof")
OPTION(CLI, STRING, baseline, "baseline", REPORT, "compare with this report: kprof diff FILE.kprof REPORT.kprof",
       .argument = "FILE.kprof")
OPTION(CLI, PATHS, fail_on, "fail-on", REPORT | DIFF,
       "of two reports: exit with 113 if a kernel meets it, such as \"dram__bytes_read.sum>+3%\" or \"duration>5%\"",
       .argument = "CONDITION")
OPTION(CLI, PERCENT, time_tolerance_pct, "time-tolerance", REPORT | DIFF,
       "of two reports: times that differ by less are the same (2)", .argument = "PERCENT")
OPTION(CLI, PERCENT, bytes_tolerance_pct, "bytes-tolerance", REPORT | DIFF,
       "of two reports: traffic that differs by less is the same (2)", .argument = "PERCENT")
OPTION(CLI, FLAG, anyway, "anyway", REPORT | DIFF,
       "compare two reports even where that misleads: other chips, another cache control")
OPTION(CLI, LIST, stats_reports, "report", STATS | TRACE,
       "print these tables of the trace, by the names that nsys gives them: cuda_gpu_kern_sum, nvtx_sum, ...",
       .letter = 'r', .argument = "NAME[,NAME]")
OPTION(CLI, STRING, stats_formats, "format", STATS,
       "print each table by itself, the first in the first of these formats and so on, the last for all that follow",
       .argument = "column|table|csv|tsv|json|hdoc|htable|markdown[:...][,...]")
OPTION(CLI, STRING, filter_time, "filter-time", STATS,
       "only what happens in this time, from the beginning of the trace, such as 10ms/1.5s", .argument = "START/END")
OPTION(CLI, STRING, filter_nvtx, "filter-nvtx", STATS,
       "only what happens in the time of this NVTX range, or of the one of this number, from 0",
       .argument = "RANGE[@DOMAIN][/NUMBER]")
OPTION(CLI, CHOICE, time_unit, "timeunit", STATS, "the unit of times (nsec)", .argument = "nsec|usec|msec|sec",
       .choices = KPROF_CHOICES({"nsec", 0}, {"usec", 1}, {"msec", 2}, {"sec", 3}))
OPTION(CLI, FLAG, prints_stats, "stats", TRACE, "print tables, too, where --export keeps the trace")
OPTION(CLI, CHOICE, page, "page", SHOWING,
       "the page to print (details; with --group-by, --sort or --top the one that has such rows)",
       .argument = PAGE_WORDS, .initial = KPROF_UNSET, .choices = pages)
OPTION(ELSEWHERE, SET, page, "brief", SHOWING,
       "--page brief: for each kernel at most 15 lines, or with --json a document of at most 2 KB",
       .value = KPROF_PAGE_BRIEF)
OPTION(CLI, CHOICE, print_summary, "print-summary", SHOWING,
       "the same as --page statistics, with rows for each kernel, GPU or NVTX range",
       .argument = "none|per-kernel|per-gpu|per-nvtx", .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"none", KPROF_UNSET}, {"per-kernel", KPROF_GROUP_KERNEL},
                                {"per-gpu", KPROF_GROUP_DEVICE}, {"per-nvtx", KPROF_GROUP_NVTX}))
OPTION(CLI, CHOICE, sort, "sort", SHOWING,
       "order of the summary and brief pages: by what can be gained of all the time, or by this (gain); of the source "
       "page: samples and what follows (samples)",
       .argument = "gain|time|launches|duration|compute|memory|name|samples|instructions|sectors|conflicts|local|"
                   "divergence",
       .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"gain", KPROF_SORT_GAIN}, {"time", KPROF_SORT_TIME},
                                {"launches", KPROF_SORT_LAUNCHES}, {"duration", KPROF_SORT_DURATION},
                                {"compute", KPROF_SORT_COMPUTE}, {"memory", KPROF_SORT_MEMORY},
                                {"name", KPROF_SORT_NAME}, {"samples", KPROF_SORT_SAMPLES},
                                {"instructions", KPROF_SORT_INSTRUCTIONS}, {"sectors", KPROF_SORT_SECTORS},
                                {"conflicts", KPROF_SORT_CONFLICTS}, {"local", KPROF_SORT_LOCAL},
                                {"divergence", KPROF_SORT_DIVERGENCE}))
OPTION(CLI, CHOICE, group_by, "group-by", SHOWING,
       "rows of the summary, statistics and brief pages: for each kernel, or each part of its launches (kernel)",
       .argument = "kernel|config|device|process|graph|nvtx|stack|line|module", .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"kernel", KPROF_GROUP_KERNEL}, {"config", KPROF_GROUP_CONFIG},
                                {"device", KPROF_GROUP_DEVICE}, {"process", KPROF_GROUP_PROCESS},
                                {"graph", KPROF_GROUP_GRAPH}, {"nvtx", KPROF_GROUP_NVTX},
                                {"stack", KPROF_GROUP_STACK}, {"line", KPROF_GROUP_LINE},
                                {"module", KPROF_GROUP_MODULE}))
OPTION(CLI, NUMBER, top, "top", SHOWING,
       "show the first N rows of the summary, census and brief pages, or of each kernel of the source page (10); 0: "
       "all. With --census, measure the N kernels with most of the GPU's time",
       .argument = "N")
OPTION(CLI, CHOICE, source_view, "print-source", SHOWING,
       "rows of the source page: instructions, lines of PTX, lines, or lines and their instructions (cuda, or sass "
       "where no line is known)",
       .argument = "sass|ptx|cuda|cuda,sass|sass,cuda", .initial = KPROF_VIEW_BEST,
       .choices = KPROF_CHOICES({"sass", KPROF_VIEW_SASS}, {"ptx", KPROF_VIEW_PTX}, {"cuda", KPROF_VIEW_CUDA},
                                {"cuda,sass", KPROF_VIEW_BOTH}, {"sass,cuda", KPROF_VIEW_BOTH}))
OPTION(CLI, CHOICE, inlined, "inlined", SHOWING,
       "line of an inlined instruction on the source page: in its function, or where the kernel calls that (callee)",
       .argument = "callee|caller", .initial = KPROF_INLINED_CALLEE,
       .choices = KPROF_CHOICES({"callee", KPROF_INLINED_CALLEE}, {"caller", KPROF_INLINED_CALLER}))
OPTION(CLI, LIST, source_folders, "source-folders", SHOWING | SAVE,
       "look below DIR for source files that are not where they were compiled", .argument = "DIR[,DIR]")
OPTION(CLI, LIST, resolve_source_files, "resolve-source-file", SHOWING,
       "take the source file of this name from FILE", .argument = "FILE[,FILE]")
OPTION(CLI, PATHS, filters, "filter", SHOWING,
       "show only launches that meet it, such as \"duration>10us\" or \"dram__bytes_read.sum>=1GB\"",
       .argument = "CONDITION")
#define FORMAT_OPTION(id, name, keeps_text, help) \
    OPTION(ELSEWHERE, SET, format, #name, OTHER_FORMAT, help, .value = KPROF_FORMAT_##id)
#define NO_OPTION(...)
KPROF_FORMATS(NO_OPTION, FORMAT_OPTION)
#undef FORMAT_OPTION
#undef NO_OPTION
OPTION(CLI, STRING, html_path, "html", REPORT | DIFF,
       "write all about the report to FILE, one HTML file for a browser; its name is expanded as that of --export",
       .argument = "FILE")
OPTION(CLI, CHOICE, csv_layout, "csv-layout", OTHER_FORMAT,
       "a row for each value, a row for each launch, or ncu's columns; implies --csv (long)",
       .argument = "long|wide|ncu", .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"long", KPROF_FORMAT_CSV}, {"wide", KPROF_FORMAT_CSV_WIDE},
                                {"ncu", KPROF_FORMAT_CSV_NCU}))
OPTION(CLI, CHOICE, text_layout, "text-layout", SHOWING,
       "text as kprof or as ncu prints it: a table of names, units and values for each section (kprof; under the name "
       "ncu, ncu)",
       .argument = "kprof|ncu", .initial = KPROF_UNSET,
       .choices = KPROF_CHOICES({"kprof", KPROF_FORMAT_TEXT}, {"ncu", KPROF_FORMAT_TEXT_NCU}))
OPTION(CLI, FLAG, csv_safe, "csv-safe", ALL & ~MERGE,
       "in CSV, put an apostrophe before texts that a spreadsheet would take for a formula")
OPTION(CLI, CHOICE, base_units, "print-units", PRINTING | PLAN, "in text, scale units (auto), or print base units",
       .argument = "auto|base", .choices = KPROF_CHOICES({"auto", 0}, {"base", 1}))
OPTION(CLI, FLAG, all_rows, "all", PRINTING,
       "in text, print rows of 0 too, and values that an earlier section has; on the source page, all rows in the "
       "order of the program; of two reports, compare all metrics")
OPTION(CLI, FLAG, details_help, "details-help", SHOWING, "in text, tell what sections and metrics mean")
OPTION(CLI, CHOICE, apply_rules, "apply-rules", SHOWING, "look for findings, and print a verdict on each launch (yes)",
       .argument = "yes|no", .initial = 1, .choices = KPROF_CHOICES({"no", 0}, {"yes", 1}))
OPTION(CLI, LIST, rules, "rule", SHOWING, "look for these findings only; kprof list findings shows them",
       .argument = "ID[,ID]")
OPTION(CLI, CHOICE, kernel_base, "print-kernel-base", PRINTING | STATS | TRACE, "the kernel names to print (demangled)",
       .argument = "function|demangled|mangled", .initial = KPROF_NAME_DEMANGLED,
       .choices = KPROF_CHOICES({"function", KPROF_NAME_FUNCTION}, {"demangled", KPROF_NAME_DEMANGLED},
                                {"mangled", KPROF_NAME_MANGLED}))
OPTION(CLI, CHOICE, with_tables, "print-details", SHOWING,
       "in ncu's layouts, also the cells of a section's tables; other formats have them all (header)",
       .argument = "header|body|all", .choices = KPROF_CHOICES({"header", 0}, {"body", 1}, {"all", 1}))
OPTION(CLI, FLAG, with_decimals, "print-fp", SHOWING,
       "in ncu's layouts, print decimals of whole numbers, too: 64.00")
OPTION(CLI, CHOICE, nvtx_rename, "print-nvtx-rename", SHOWING,
       "in ncu's layouts, put the innermost pushed NVTX range before the names of kernels; other formats have "
       "the ranges beside these (none)",
       .argument = "none|kernel", .choices = KPROF_CHOICES({"none", 0}, {"kernel", 1}))
OPTION(CLI, CHOICE, instances, "print-metric-instances", SHOWING,
       "in ncu's layout of CSV, the raw page has metrics of instructions, too: the sum and the value of each "
       "instruction, or its address and value (none)",
       .argument = "none|values|details",
       .choices = KPROF_CHOICES({"none", KPROF_INSTANCES_NONE}, {"values", KPROF_INSTANCES_VALUES},
                                {"details", KPROF_INSTANCES_DETAILS}))
OPTION(ELSEWHERE, SET, with_decimals, "fp", SHOWING, "--print-fp", .value = 1)
OPTION(ELSEWHERE, SET, with_tables, "details-all", SHOWING, "--print-details all", .value = 1)
OPTION(CLI, CHOICE, metric_title, "print-metric-name", SHOWING,
       "what metrics are called in sections: what people read, their full names, or both (label)",
       .argument = "label|name|label-name", .initial = KPROF_TITLE_LABEL,
       .choices = KPROF_CHOICES({"label", KPROF_TITLE_LABEL}, {"name", KPROF_TITLE_NAME},
                                {"label-name", KPROF_TITLE_BOTH}))
OPTION(CLI, STRING, log_file, "log-file", ALL, "write the results to FILE, or to \"stdout\" or \"stderr\"",
       .argument = "FILE")
OPTION(CLI, NUMBER, width, "width", ALL,
       "columns of text, 40 at least; 0: as many as COLUMNS says, or as the terminal has (0)", .letter = 'w',
       .argument = "N")
OPTION(CLI, CHOICE, color, "color", ALL, "colour in text (auto: on a terminal)", .argument = "auto|always|never",
       .choices = KPROF_CHOICES({"auto", KPROF_COLOR_AUTO}, {"always", KPROF_COLOR_ALWAYS},
                                {"never", KPROF_COLOR_NEVER}))
OPTION(CLI, FLAG, quiet, "quiet", ALL, "no progress, and no messages but warnings and errors", .letter = 'q')
OPTION(CLI, FLAG, verbose, "verbose", ALL,
       "more messages, and more of what the pages of lists, plans and summaries show")
OPTION(CLI, STRING, injection_path, "injection-path", RUNNING | TRACE | DOCTOR, "use this injection library",
       .argument = "FILE")
OPTION(CLI, STRING, counter_data_dir, "counter-data", RUNNING, "also keep each launch's counter data image in DIR",
       .argument = "DIR")
OPTION(CLI, STRING, nvdisasm, "nvdisasm", RUNNING | SAVE,
       "take the text of instructions from this nvdisasm, not from the first one that the machine has",
       .argument = "FILE")
OPTION(CLI, FLAG, source_per_launch, "source-per-launch", RUNNING | SAVE,
       "keep what is measured of instructions for each launch, not summed up for each kernel and shape")
OPTION(CLI, CHOICE, import_source, "import-source", RUNNING | SAVE,
       "keep the texts of source files in the report (no)", .argument = "yes|no",
       .choices = KPROF_CHOICES({"no", 0}, {"yes", 1}))
OPTION(CLI, CHOICE, import_sass, "import-sass", RUNNING | SAVE,
       "keep the cubins of measured kernels in the report (no)", .argument = "yes|no",
       .choices = KPROF_CHOICES({"no", 0}, {"yes", 1}))
OPTION(CLI, STRING, complete, "complete", ALL,
       "for shells: list commands, options, an option's values, or what a command line may be continued with",
       .argument = "WHAT")
OPTION(CLI, FLAG, help, "help", ALL, "print this help", .letter = 'h')
OPTION(CLI, FLAG, version, "version", ALL, "print the version", .letter = 'v')
/* clang-format on */
