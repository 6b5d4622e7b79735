/* The options of nsys profile, nsys stats and nsys export that kprof spells in another way, or does not have: what of
 * kprof's they stand for, why they have no effect, or how to do the same. Adding one is a row here. */
#include "cli/nsys_options.h"

#include "cli/commands.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

#define NO  "false|no|off|0|none"
#define YES "true|yes|on|1"
#define ANY "*"

#define TRACE  KPROF_IN(trace)
#define STATS  KPROF_IN(stats)
#define EXPORT KPROF_IN(export)

#define MEANS(option) KPROF_NSYS_MEANS, option, 0
#define IDLE(why)     ANY, KPROF_NSYS_IDLE, why, 0
#define ELSE(how)     ANY, KPROF_NSYS_REFUSED, how, 0
#define KEPT(field)   NULL, ANY, KPROF_NSYS_KEPT, NULL, offsetof(kprof_options, field)
#define ALWAYS        ANY, ANY, KPROF_NSYS_IDLE, "", 0
/* Parts of what nsys records, which kprof does not. */
#define WITHOUT(name, why)                                                                                             \
    {                                                                                                                  \
        TRACE, name, 0, NO, IDLE(why)                                                                                  \
    }

static const char no_network[] = "kprof samples the GPU alone, with --pm-sampling";
static const char no_others[] = "kprof records CUDA and NVTX, with the kernels of all libraries, and nothing else";
static const char no_ranges[] = "kprof makes no NVTX ranges; in PyTorch torch.autograd.profiler.emit_nvtx does";
static const char no_sampling[] = "kprof does not sample the CPU; --call-stack tells where calls of CUDA are made";
static const char no_sessions[] = "kprof ctl finds the runs of a user by itself";
static const char no_system[] = "kprof does not trace calls of the operating system";

static const kprof_nsys_option rows[] = {
    {TRACE, "backtrace", 'b', NO, IDLE(no_sampling)},
    {TRACE, "capture-range", 'c', KEPT(capture_range)},
    {TRACE, "capture-range-end", 0, KEPT(capture_range_end)},
    {TRACE, "command-file", 0, NULL, ELSE("give the options on the command line")},
    WITHOUT("cpuctxsw", no_sampling),
    WITHOUT("cuda-event-trace", no_others),
    WITHOUT("cuda-trace-all-apis", no_others),
    WITHOUT("enable", no_others),
    {TRACE, "cuda-flush-interval", 0, ALWAYS},
    {TRACE, "cuda-graph-trace", 0, NULL, "node|node:host-only|node:host-and-device", MEANS("graph-profiling=node")},
    {TRACE, "cuda-graph-trace", 0, NULL, "graph|graph:host-only|graph:host-and-device", MEANS("graph-profiling=graph")},
    {TRACE, "cuda-memory-usage", 0, ALWAYS},
    {TRACE, "cuda-um-cpu-page-faults", 0, NO, YES, MEANS("unified-memory")},
    {TRACE, "cuda-um-gpu-page-faults", 0, NO, YES, MEANS("unified-memory")},
    {TRACE, "cudabacktrace", 0, NO, ANY, MEANS("call-stack")},
    WITHOUT("dask", no_ranges),
    {TRACE, "delay", 'y', "0", NULL, MEANS(NULL)},
    {TRACE, "env-var", 'e', "NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
     ELSE("set it in front: env NAME=VALUE kprof trace ...")},
    {TRACE, "export", 0, "sqlite|none", "sqlite|text|json|jsonlines|hdf|arrow|arrowdir|parquetdir", KPROF_NSYS_IDLE,
     "kprof export and kprof stats write the report in other formats; -o names it", 0},
    {TRACE, "force-overwrite", 'f', NO, YES, MEANS("force-overwrite")},
    {STATS | EXPORT, "force-overwrite", 0, NO, YES, MEANS("force-overwrite")},
    WITHOUT("ftrace", no_system),
    {TRACE, "gpu-metrics-device", 0, "none", ANY, MEANS("pm-sampling")},
    {TRACE, "gpu-metrics-devices", 0, "none", ANY, MEANS("pm-sampling")},
    {TRACE, "gpu-metrics-frequency", 0, NULL,
     IDLE("--pm-sampling-interval takes nanoseconds: 100000 stands for 10000 Hz")},
    {TRACE, "gpu-metrics-set", 0, NULL, IDLE("kprof samples all that one pass has space for")},
    WITHOUT("gpuctxsw", no_others),
    {TRACE, "inherit-environment", 'n', YES, ELSE("start the program by env -i")},
    {TRACE, "kill", 0, "none", IDLE("kprof ends no program; timeout(1) does")},
    {TRACE, "mpi-impl", 0, NULL, IDLE(no_others)},
    WITHOUT("nccl-trace", no_others),
    WITHOUT("opengl-gpu-workload", no_others),
    WITHOUT("vulkan-gpu-workload", no_others),
    WITHOUT("nic-metrics", no_network),
    {TRACE, "nvtx-capture", 'p', KEPT(nvtx_capture)},
    {TRACE, "nvtx-domain-exclude", 0, NULL, IDLE("kprof records all domains")},
    {TRACE, "nvtx-domain-include", 0, NULL, IDLE("kprof records all domains")},
    WITHOUT("os-events", no_system),
    WITHOUT("osrt-backtrace-depth", no_system),
    WITHOUT("osrt-backtrace-threshold", no_system),
    WITHOUT("osrt-threshold", no_system),
    {TRACE, "python-backtrace", 0, NO, ANY, MEANS("call-stack")},
    WITHOUT("python-functions-trace", no_ranges),
    WITHOUT("python-nvtx-annotations", no_ranges),
    WITHOUT("python-sampling", no_sampling),
    WITHOUT("python-sampling-frequency", no_sampling),
    WITHOUT("pytorch", no_ranges),
    {TRACE, "resolve-symbols", 0, ALWAYS},
    {TRACE, "run-as", 0, NULL, ELSE("run kprof as that user")},
    {TRACE, "sample", 's', NO, IDLE(no_sampling)},
    WITHOUT("samples-per-backtrace", no_sampling),
    WITHOUT("sampling-frequency", no_sampling),
    WITHOUT("sampling-period", no_sampling),
    WITHOUT("sampling-trigger", no_sampling),
    {TRACE, "session", 0, NULL, IDLE(no_sessions)},
    {TRACE, "session-new", 0, NULL, IDLE(no_sessions)},
    {TRACE, "show-output", 'w', YES, NO, KPROF_NSYS_IDLE, "redirect the program's output to /dev/null", 0},
    {TRACE, "start-later", 0, NO, YES, MEANS("armed=no")},
    {TRACE, "stats", 0, NO, YES, MEANS("stats")},
    {TRACE, "stop-on-exit", 'x', YES, IDLE("a trace ends with the program")},
    {TRACE, "stop-on-range-end", 0, ALWAYS},
    WITHOUT("storage-metrics", no_network),
    WITHOUT("syscall", no_system),
    {TRACE, "trace", 't', "cuda|nvtx|none", IDLE(no_others)},
    {TRACE, "trace-fork-before-exec", 0, ALWAYS},
    {TRACE, "wait", 0, "all|primary", NULL, MEANS(NULL)},
    {STATS, "force-export", 0, ALWAYS},
    {STATS, "report-dir", 0, NULL, ELSE("man kprof-stats has the tables that there are")},
    {STATS, "sqlite", 0, ALWAYS},
    {STATS, "timeunit", 0, NULL, "nanoseconds", MEANS("timeunit=nsec")},
    {STATS, "timeunit", 0, NULL, "microseconds", MEANS("timeunit=usec")},
    {STATS, "timeunit", 0, NULL, "milliseconds", MEANS("timeunit=msec")},
    {STATS, "timeunit", 0, NULL, "seconds", MEANS("timeunit=sec")},
    {EXPORT, "lazy", 'l', ALWAYS},
    {EXPORT, "separate-strings", 0, ALWAYS},
    {EXPORT, "tables", 0, NULL, ELSE("the report is an SQLite file, and docs/report-schema.md explains its tables")},
    {EXPORT, "ts-normalize", 0, ALWAYS},
    {EXPORT, "type", 't', NULL,
     ELSE("the report is an SQLite file, and docs/report-schema.md explains its tables; --to chrome writes a trace as "
          "JSON, and kprof stats FILE --report cuda_gpu_trace --csv its activities as CSV")},
};
#define ROWS_END (rows + sizeof rows / sizeof *rows)

const kprof_nsys_option *kprof_nsys_find(const kprof_command *command, const char *name, char letter)
{
    for (const kprof_nsys_option *row = rows; row < ROWS_END; row++)
        if ((row->commands & command->mask) && (letter ? row->letter == letter : strcmp(row->name, name) == 0))
            return row;
    return NULL;
}

bool kprof_nsys_takes_any(const kprof_nsys_option *row)
{
    return row->others && strcmp(row->others, ANY) == 0;
}

/* Is each of the words that commas part among these, which bars part? */
static bool are_among(const char *values, const char *text)
{
    for (bool is_last = false; values && strcmp(values, ANY) != 0 && !is_last;) {
        const size_t length = strcspn(text, ",");
        if (!kprof_word_is_among(values, text, length))
            return false;
        is_last = !text[length];
        text += length + 1;
    }
    return values != NULL;
}

const kprof_nsys_option *kprof_nsys_answer(const kprof_nsys_option *first, const char *value, bool *is_same)
{
    for (const kprof_nsys_option *row = first; row < ROWS_END && strcmp(row->name, first->name) == 0; row++) {
        *is_same = are_among(row->same, value);
        if (*is_same || are_among(row->others, value))
            return row;
    }
    return NULL;
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
    for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++)
        if (strncmp(word, repeats[i], strlen(repeats[i])) == 0)
            return (*count = strtoul(word + strlen(repeats[i]), NULL, 10)) > 0;
    return false;
}

static kprof_status check_capture(const kprof_options *options, const char *range, unsigned long *count)
{
    const kprof_filter_spec *filter = &options->filter;
    const bool is_nvtx = strcmp(range, "nvtx") == 0;
    if (!is_nvtx && strcmp(range, "cudaProfilerApi") != 0)
        return kprof_fail(
            KPROF_USAGE,
            "--capture-range %s: kprof takes cudaProfilerApi and nvtx; with --armed no it waits for kprof "
            "ctl start",
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
