/* The options of nsys profile, nsys stats and nsys export that kprof spells in another way, or does not have: which of
 * kprof's options they stand for, why they have no effect, or how to do the same. A new one is a row here. */
#include "cli/parse.h"

#include "cli/commands.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

#define NO  "false|no|off|0|none"
#define YES "true|yes|on|1"
#define ANY "*"

#define TRACE  "nsys", KPROF_IN(trace)
#define STATS  "nsys", KPROF_IN(stats)
#define EXPORT "nsys", KPROF_IN(export)

#define MEANS(option) KPROF_EFFECT_MEANS, option, 0
#define IDLE(why)     ANY, KPROF_EFFECT_IDLE, why, 0
#define ELSE(how)     ANY, KPROF_EFFECT_REFUSED, how, 0
#define KEPT(field)   NULL, ANY, KPROF_EFFECT_KEPT, NULL, offsetof(kprof_options, field)
/* Some of what nsys records. */
#define OTHERS                                                                                                         \
    "cublas|cublas-verbose|cudla|cudla-verbose|cudnn|cusolver|cusolver-verbose|cusparse|cusparse-verbose|gds|mpi|"     \
    "nvmedia|nvvideo|openacc|openmp|opengl|opengl-annotations|openxr|openxr-annotations|oshmem|osrt|python-gil|"       \
    "syscall|tegra-accelerators|ucx|vulkan|vulkan-annotations"
#define ALWAYS ANY, ANY, KPROF_EFFECT_IDLE, "", 0
/* Parts of what nsys records, which kprof does not. */
#define WITHOUT(name, why)                                                                                             \
    {                                                                                                                  \
        TRACE, name, 0, true, NO, IDLE(why)                                                                            \
    }

static const char no_network[] = "kprof samples the GPU alone, with --pm-sampling";
static const char no_others[] = "kprof records CUDA and NVTX, with the kernels of all libraries, and nothing else";
static const char no_ranges[] = "kprof makes no NVTX ranges; in PyTorch torch.autograd.profiler.emit_nvtx does";
static const char no_sampling[] = "kprof does not sample the CPU; --call-stack tells where calls of CUDA are made";
static const char no_sessions[] = "kprof ctl finds the runs of a user by itself";
static const char no_system[] = "kprof does not trace calls of the operating system";

static const kprof_other_option rows[] = {
    {TRACE, "auto-report-name", 0, true, NO, IDLE("-o names the report")},
    {TRACE, "backtrace", 'b', true, NO, IDLE(no_sampling)},
    {TRACE, "capture-range", 'c', true, KEPT(capture_range)},
    {TRACE, "capture-range-end", 0, true, KEPT(capture_range_end)},
    WITHOUT("clock-frequency-changes", no_others),
    {TRACE, "command-file", 0, true, NULL, ELSE("give the options on the command line")},
    WITHOUT("cpu-cluster-events", no_sampling),
    WITHOUT("cpu-core-events", no_sampling),
    WITHOUT("cpu-core-metrics", no_sampling),
    WITHOUT("cpu-socket-events", no_sampling),
    WITHOUT("cpu-socket-metrics", no_sampling),
    WITHOUT("cpuctxsw", no_sampling),
    WITHOUT("cuda-event-trace", no_others),
    WITHOUT("cuda-trace-all-apis", no_others),
    WITHOUT("enable", no_others),
    {TRACE, "cuda-flush-interval", 0, true, ALWAYS},
    {TRACE, "cuda-graph-trace", 0, true, NULL, "node|node:host-only|node:host-and-device",
     MEANS("graph-profiling=node")},
    {TRACE, "cuda-graph-trace", 0, true, NULL, "graph|graph:host-only|graph:host-and-device",
     MEANS("graph-profiling=graph")},
    {TRACE, "cuda-memory-usage", 0, true, ALWAYS},
    {TRACE, "cuda-trace-scope", 0, true, "process-tree", IDLE("kprof traces what it starts")},
    {TRACE, "cuda-um-cpu-page-faults", 0, true, NO, YES, MEANS("unified-memory")},
    {TRACE, "cuda-um-gpu-page-faults", 0, true, NO, YES, MEANS("unified-memory")},
    {TRACE, "cudabacktrace", 0, true, NO, ANY, MEANS("call-stack")},
    WITHOUT("dask", no_ranges),
    {TRACE, "debug-symbols", 0, true, NULL, IDLE("kprof reads the symbols of the programs' own files")},
    {TRACE, "delay", 'y', true, "0", NULL, MEANS(NULL)},
    {TRACE, "env-var", 'e', true, "NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
     ELSE("set it in front: env NAME=VALUE kprof trace ...")},
    WITHOUT("event-sample", no_sampling),
    WITHOUT("event-sampling-interval", no_sampling),
    {TRACE, "export", 0, true, "sqlite|none", "text|json|jsonlines|hdf|arrow|arrowdir|parquetdir", KPROF_EFFECT_IDLE,
     "kprof export and kprof stats write the report in other formats; -o names it", 0},
    {TRACE, "flush-on-cudaprofilerstop", 0, true, ALWAYS},
    {TRACE, "force-overwrite", 'f', true, NO, YES, MEANS("force-overwrite")},
    {STATS | KPROF_IN(export), "force-overwrite", 0, true, NO, YES, MEANS("force-overwrite")},
    WITHOUT("ftrace", no_system),
    WITHOUT("ftrace-keep-user-config", no_system),
    {TRACE, "gpu-metrics-device", 0, true, "none", ANY, MEANS("pm-sampling")},
    {TRACE, "gpu-metrics-devices", 0, true, "none", ANY, MEANS("pm-sampling")},
    {TRACE, "gpu-metrics-frequency", 0, true, NULL,
     IDLE("--pm-sampling-interval takes nanoseconds: 100000 stands for 10000 Hz")},
    {TRACE, "gpu-metrics-set", 0, true, NULL, IDLE("kprof samples all that one pass has space for")},
    WITHOUT("gpuctxsw", no_others),
    WITHOUT("gds-metrics", no_others),
    WITHOUT("gpu-video-device", no_others),
    WITHOUT("ib-net-info-devices", no_network),
    WITHOUT("ib-net-info-files", no_network),
    WITHOUT("ib-net-info-output", no_network),
    WITHOUT("ib-switch-congestion-devices", no_network),
    WITHOUT("ib-switch-congestion-nic-device", no_network),
    WITHOUT("ib-switch-congestion-percent", no_network),
    WITHOUT("ib-switch-congestion-threshold-high", no_network),
    WITHOUT("ib-switch-metrics-devices", no_network),
    {TRACE, "inherit-environment", 'n', true, YES, ELSE("start the program by env -i")},
    WITHOUT("isr", no_system),
    {TRACE, "kill", 0, true, "none", IDLE("kprof ends no program; timeout(1) does")},
    {TRACE, "mpi-impl", 0, true, NULL, IDLE(no_others)},
    WITHOUT("nccl-trace", no_others),
    WITHOUT("opengl-gpu-workload", no_others),
    WITHOUT("vulkan-gpu-workload", no_others),
    WITHOUT("nic-metrics", no_network),
    {TRACE, "nvtx-capture", 'p', true, KEPT(nvtx_capture)},
    {TRACE, "nvtx-domain-exclude", 0, true, NULL, IDLE("kprof records all domains")},
    {TRACE, "nvtx-domain-include", 0, true, NULL, IDLE("kprof records all domains")},
    WITHOUT("os-events", no_system),
    WITHOUT("osrt-backtrace-depth", no_system),
    WITHOUT("osrt-backtrace-stack-size", no_system),
    WITHOUT("osrt-backtrace-threshold", no_system),
    WITHOUT("osrt-file-access", no_system),
    WITHOUT("osrt-threshold", no_system),
    WITHOUT("process-scope", no_sampling),
    {TRACE, "python-backtrace", 0, true, NO, ANY, MEANS("call-stack")},
    WITHOUT("python-functions-trace", no_ranges),
    WITHOUT("python-nvtx-annotations", no_ranges),
    WITHOUT("python-sampling", no_sampling),
    WITHOUT("python-sampling-frequency", no_sampling),
    WITHOUT("pytorch", no_ranges),
    {TRACE, "resolve-symbols", 0, true, ALWAYS},
    {TRACE, "run-as", 0, true, NULL, ELSE("run kprof as that user")},
    {TRACE, "sample", 's', true, NO, IDLE(no_sampling)},
    WITHOUT("samples-per-backtrace", no_sampling),
    WITHOUT("sampling-frequency", no_sampling),
    WITHOUT("sampling-period", no_sampling),
    WITHOUT("sampling-trigger", no_sampling),
    {TRACE, "session", 0, true, NULL, IDLE(no_sessions)},
    {TRACE, "session-new", 0, true, NULL, IDLE(no_sessions)},
    {TRACE, "show-output", 'w', true, YES, NO, KPROF_EFFECT_IDLE, "redirect the program's output to /dev/null", 0},
    WITHOUT("soc-metrics", no_others),
    WITHOUT("soc-metrics-frequency", no_others),
    WITHOUT("soc-metrics-set", no_others),
    {TRACE, "start-later", 'Y', true, NO, YES, MEANS("armed=no")},
    {TRACE, "stats", 0, true, NO, YES, MEANS("stats")},
    {TRACE, "stop-on-exit", 'x', true, YES, IDLE("a trace ends with the program")},
    {TRACE, "stop-on-range-end", 0, true, ALWAYS},
    WITHOUT("storage-metrics", no_network),
    WITHOUT("syscall", no_system),
    {TRACE, "trace", 't', true, "cuda|cuda-hw|nvtx|none", OTHERS, KPROF_EFFECT_IDLE, no_others, 0},
    {TRACE, "trace-fork-before-exec", 0, true, ALWAYS},
    {TRACE, "wait", 0, true, "all|primary", NULL, MEANS(NULL)},
    WITHOUT("xhv-trace", no_system),
    WITHOUT("xhv-trace-events", no_system),
    {STATS, "force-export", 0, true, ALWAYS},
    {STATS, "help-formats", 0, false, NULL, ELSE("kprof stats --help lists them")},
    {STATS, "help-reports", 0, false, NULL, ELSE("kprof list tables lists them")},
    {STATS, "report-dir", 0, true, NULL, ELSE("kprof list tables lists the tables")},
    {STATS, "sqlite", 0, true, ALWAYS},
    {STATS, "timeunit", 0, true, NULL, "nanoseconds|ns", MEANS("timeunit=nsec")},
    {STATS, "timeunit", 0, true, NULL, "microseconds|us", MEANS("timeunit=usec")},
    {STATS, "timeunit", 0, true, NULL, "milliseconds|ms", MEANS("timeunit=msec")},
    {STATS, "timeunit", 0, true, NULL, "seconds|s", MEANS("timeunit=sec")},
    {EXPORT, "append", 0, true, NO, ELSE("name a file of its own with -o")},
    {EXPORT, "include-blobs", 0, true, ALWAYS},
    {EXPORT, "include-empty-tables", 0, true, ALWAYS},
    {EXPORT, "include-json", 0, true, ALWAYS},
    {EXPORT, "lazy", 'l', true, ALWAYS},
    {EXPORT, "quiet", 'q', true, NO, YES, MEANS("quiet")},
    {EXPORT, "separate-strings", 0, true, ALWAYS},
    {EXPORT, "tables", 0, true, NULL,
     ELSE("the report is an SQLite file, and docs/report-schema.md explains its tables")},
    {EXPORT, "times", 0, true, NULL, ELSE("kprof writes all of a trace; kprof stats --filter-time takes a part")},
    {EXPORT, "ts-normalize", 0, true, ALWAYS},
    {EXPORT, "ts-shift", 0, true, "0", ELSE("kprof writes the times that were measured")},
    {EXPORT, "type", 't', true, NULL, "sqlite", MEANS("to=nsys-sqlite")},
    {EXPORT, "type", 't', true, NULL,
     ELSE("--to nsys-sqlite writes a trace as nsys does, the report is an SQLite file of its own, --to chrome is "
          "JSON, and kprof stats FILE --report cuda_gpu_trace --csv its activities as CSV")},
    {.name = NULL},
};

const kprof_other_option *kprof_nsys_find(const kprof_command *command, const char *name, char letter)
{
    return KPROF_FIRST(row, rows, COUNT_OF(rows) - 1,
                       (row->commands & command->mask) &&
                           (letter ? row->letter == letter : strcmp(row->name, name) == 0));
}

void kprof_nsys_names(const kprof_command *command, kprof_strlist *out)
{
    for (const kprof_other_option *row = rows; row->name; row++)
        if (row->commands & command->mask)
            kprof_strlist_add_unique(out, row->name);
}

/* Append a name as it stands in an expression in which these characters mean something. */
static void put_name(const char *text, size_t length, const char *special, kprof_strbuf *out)
{
    for (size_t i = 0; i < length; i++)
        kprof_strbuf_printf(out, "%s%c", strchr(special, text[i]) ? "\\" : "", text[i]);
}

/* "RANGE", "RANGE@DOMAIN" or "RANGE@*", of all domains, as an expression about a range that is started. */
static void put_range(const char *text, kprof_strbuf *out)
{
    static const char plain[] = "/@,[]*+\\", pattern[] = "/@,[]*+\\.^$|?(){}";
    const char *domain = strrchr(text, '@');
    const bool is_any = domain && strcmp(domain + 1, ANY) == 0;
    kprof_strbuf_puts(out, is_any ? "regex:.*@^" : "");
    if (domain && !is_any) {
        put_name(domain + 1, strlen(domain + 1), plain, out);
        kprof_strbuf_puts(out, "@");
    }
    put_name(text, domain ? (size_t)(domain - text) : strlen(text), is_any ? pattern : plain, out);
    kprof_strbuf_puts(out, is_any ? "$" : "");
}

/* How many ranges are captured; 0: all. False for a word that nsys does not have. */
static bool read_end(const char *word, unsigned long *count)
{
    static const char *const repeats[] = {"repeat:", "repeat[:", "repeat-shutdown:"};
    *count = !word || strcmp(word, "repeat") != 0;
    if (!word || *count == 0 || strcmp(word, "stop") == 0 || strcmp(word, "stop-shutdown") == 0)
        return true;
    const char *number = NULL;
    for (size_t i = 0; i < COUNT_OF(repeats) && !number; i++)
        number = kprof_after(word, repeats[i]);
    return number && (*count = strtoul(number, NULL, 10)) > 0;
}

static kprof_status check_capture(const kprof_options *options, const char *range, unsigned long *count)
{
    const kprof_filter_spec *filter = &options->filter;
    const bool is_nvtx = strcmp(range, "nvtx") == 0;
    if (!is_nvtx && strcmp(range, "cudaProfilerApi") != 0)
        return kprof_fail(
            KPROF_USAGE,
            "--capture-range %s: kprof takes cudaProfilerApi and nvtx; with --armed no it waits for kprof ctl start",
            range);
    if (is_nvtx && !options->nvtx_capture)
        return kprof_fail(KPROF_USAGE, "--capture-range nvtx: say with --nvtx-capture which range");
    if (!read_end(options->capture_range_end, count))
        return kprof_fail(KPROF_USAGE, "--capture-range-end %s: kprof takes stop, repeat and repeat:N",
                          options->capture_range_end);
    if (filter->schedule || filter->step || filter->nvtx_include.count > 0 ||
        options->profile_from_start != KPROF_UNSET)
        return kprof_fail(KPROF_USAGE,
                          "--capture-range stands for --profile-from-start, --nvtx-include, --schedule and "
                          "--step: give it or these");
    return KPROF_OK;
}

kprof_status kprof_nsys_settle(kprof_options *options)
{
    unsigned long count = 0;
    kprof_filter_spec *filter = &options->filter;
    const char *range = options->capture_range ? options->capture_range : options->nvtx_capture ? "nvtx" : "none";
    if (strcmp(range, "none") == 0) {
        if (options->capture_range_end)
            kprof_log(KPROF_LOG_WARNING, "--capture-range-end has no effect without --capture-range");
        return KPROF_OK;
    }
    const kprof_status status = check_capture(options, range, &count);
    if (status != KPROF_OK)
        return status;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    if (count > 0)
        filter->schedule = options->schedule_made = kprof_strprintf("0,0,0,%lu,1", count);
    if (strcmp(range, "nvtx") != 0) {
        options->profile_from_start = 0;
        return KPROF_OK;
    }
    put_range(options->nvtx_capture, &text);
    if (count == 0)
        kprof_strlist_add(&filter->nvtx_include, text.data);
    kprof_strbuf_puts(&text, "/");
    if (count == 0)
        kprof_strlist_add(&filter->nvtx_include, text.data);
    else
        filter->step = options->step_made = kprof_strdup(text.data);
    return KPROF_OK;
}
