/* The options and values of ncu that kprof does not have, and those of nvprof, before it. A line runs with an option
 * that changes no value, or that asks for what kprof does anyway; for the others kprof says what to use instead. They
 * are those of ncu 2025.3.1, of later versions, and old names that scripts still have. A new one is a row here. */
#include "cli/parse.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NO         "no|off|0|false"
#define YES        "yes|on|1|true"
#define ANY        "*"
#define NCU        "ncu", KPROF_IN_ALL
#define NVPROF     "nvprof", KPROF_IN_ALL
#define MEANS(row) KPROF_EFFECT_MEANS, row, 0
#define SAME(hint) ANY, KPROF_EFFECT_IDLE, hint, 0
#define ELSE(hint) ANY, KPROF_EFFECT_REFUSED, hint, 0

#define QUERY "query-metrics metrics=regex:"

static const char no_communicator[] = "kprof does not keep ranks in step; --replay-mode multiplex repeats no launch, "
                                      "so that ranks need not wait for each other";
static const char no_mps[] = "kprof does not support MPS: run the processes without it";
static const char no_own_files[] = "kprof takes its own files; --injection-path gives another library";
static const char no_port[] = "kprof does not connect to processes, and needs no port";
static const char no_ranges[] = "kprof finds by itself what a range needs saved, and whether it may repeat it";
static const char no_rename[] = "--print-kernel-base chooses the names to print";
static const char no_trace[] = "kprof trace ./app prints where the time goes, and with --report cuda_gpu_trace or "
                               "cuda_api_trace each kernel, copy and call; each launch's metrics are printed anyway";
static const char no_warps[] = "kprof samples counters over time, and warps for each instruction alone";
static const char fixed_details[] =
    "kprof prints all of a section with --page details, and each metric by its full name with --page raw";

static const kprof_other_option rows[] = {
    {NCU, "check-exit-code", 0, true, YES, SAME("kprof always passes on the application's exit status")},
    {NCU, "clock-control", 0, true, "none",
     ELSE("kprof changes no clock: leave the option out; nvidia-smi locks clocks")},
    {NCU, "communicator", 0, true, "none", SAME(no_communicator)},
    {NCU, "communicator-num-peers", 0, true, NULL, SAME(no_communicator)},
    {NCU, "communicator-shmem-num-peers", 0, true, NULL, SAME(no_communicator)},
    {NCU, "communicator-tcp-hostname", 0, true, NULL, SAME(no_communicator)},
    {NCU, "communicator-tcp-num-peers", 0, true, NULL, SAME(no_communicator)},
    {NCU, "communicator-tcp-port", 0, true, NULL, SAME(no_communicator)},
    {NCU, "disable-extra-suffixes", 0, false, NULL, SAME("a base name stands for its avg, max, min and sum")},
    {NCU, "disable-pm-warp-sampling", 0, false, ANY, SAME("")},
    {NCU, "forward-signals", 0, false, ANY, SAME("")},
    {NCU, "hostname", 0, true, NULL,
     ELSE("kprof starts the application on this machine: give the application instead")},
    {NCU, "injection-path-32", 0, true, NULL, SAME(no_own_files)},
    {NCU, "injection-path-64", 0, true, NULL, SAME(no_own_files)},
    {NCU, "kernel-regex", 0, true, NULL, ANY, KPROF_EFFECT_KEPT, "use --kernel-name regex:PATTERN",
     offsetof(kprof_options, kernel_regex)},
    {NCU, "kernel-regex-exclude", 0, true, NULL, ANY, KPROF_EFFECT_KEPT, "use --kernel-name \"regex:^(?!.*PATTERN)\"",
     offsetof(kprof_options, kernel_regex_exclude)},
    {NCU, "list-injection-path-64", 0, false, NULL,
     ELSE("kprof injects its library into programs that it starts itself; --injection-path gives another one")},
    {NCU, "lockstep-kernel-launch", 0, false, NULL, SAME(no_communicator)},
    {NCU, "lockstep-nvtx-exclude", 0, true, NULL, SAME(no_communicator)},
    {NCU, "lockstep-nvtx-include", 0, true, NULL, SAME(no_communicator)},
    {NCU, "max-connections", 0, true, ANY, SAME(no_port)},
    {NCU, "metric-distribution-groups", 0, true, NULL, SAME("kprof distributes metrics over passes by itself")},
    {NCU, "mode", 0, true, "launch-and-attach",
     ELSE("kprof launches the application and measures it at once: leave the option out")},
    {NCU, "mps", 0, true, "none", ELSE(no_mps)},
    {NCU, "mps-num-clients", 0, true, NULL, SAME(no_mps)},
    {NCU, "mps-timeout", 0, true, NULL, SAME(no_mps)},
    {NCU, "open-in-ui", 0, false, NULL,
     SAME("kprof has no window; kprof report FILE.kprof --html OUT.html writes a page for a browser")},
    {NCU, "pipeline-boost-state", 0, true, "dynamic", SAME("kprof leaves it alone")},
    {NCU, "port", 'p', true, ANY, SAME(no_port)},
    {NCU, "preload-library", 0, true, NULL, ELSE("set it in front: LD_PRELOAD=FILE kprof ...")},
    {NCU, "print-metric-attribution", 0, false, NULL, SAME(fixed_details)},
    {NCU, "print-rule-details", 0, false, ANY, SAME("")},
    {NCU, "process-id", 0, true, NULL,
     ELSE("kprof starts the application, and does not attach to a process: give the application instead")},
    {NCU, "query-metrics-collection", 0, true, NULL, "device", MEANS(QUERY "^device__attribute_")},
    {NCU, "query-metrics-collection", 0, true, NULL, "launch", MEANS(QUERY "^launch__")},
    {NCU, "query-metrics-collection", 0, true, NULL, "profiling", MEANS("query-metrics")},
    {NCU, "query-metrics-collection", 0, true, NULL, "source", MEANS(QUERY "^(source:|smsp__pcsamp_)")},
    {NCU, "query-metrics-collection", 0, true, NULL, "warpsampling", MEANS(QUERY "^smsp__pcsamp_")},
    {NCU, "query-metrics-collection", 0, true, NULL,
     ELSE("kprof lists those of profiling, device, launch, source and warpsampling, and kprof list sections what it "
          "samples over time")},
    {NCU, "range-replay-options", 0, true, "none", SAME(no_ranges)},
    {NCU, "rename-kernels", 0, true, NO, SAME(no_rename)},
    {NCU, "rename-kernels-export", 0, true, NO, SAME(no_rename)},
    {NCU, "rename-kernels-path", 0, true, NULL, SAME(no_rename)},
    {NCU, "section-folder-restore", 0, false, NULL, ANY, KPROF_EFFECT_KEPT, "leave it out",
     offsetof(kprof_options, restored)},
    {NCU, "support-32bit", 0, false, NULL, SAME("kprof measures 64-bit programs")},
    {NCU, "warp-samples-per-interval", 0, true, NULL, SAME(no_warps)},
    {NVPROF, "aggregate-mode", 0, true, YES,
     ELSE("kprof has the sum, avg, min and max over a unit's instances: leave the option out")},
    {NVPROF, "analysis-metrics", 0, false, NULL, ANY, MEANS("set=full")},
    {NVPROF, "concurrent-kernels", 0, true, ANY, SAME("")},
    {NVPROF, "cpu-profiling", 0, true, NO,
     ELSE("kprof does not sample the CPU; --call-stack tells where launches are made")},
    {NVPROF, "dependency-analysis", 0, false, NULL, ELSE("kprof trace ./app tells what waits for what in time")},
    {NVPROF, "demangling", 0, true, YES, ANY, MEANS("print-kernel-base=mangled")},
    {NVPROF, "events", 'e', true, NULL,
     ELSE("use --metrics, which takes nvprof's names, too: kprof list aliases has them")},
    {NVPROF, "kernels", 0, true, NULL,
     ELSE("use --kernel-name NAME, --kernel-name regex:PATTERN, or --kernel-id CONTEXT:STREAM:NAME:N")},
    {NVPROF, "m", 'm', true, NULL, ELSE("use --metrics, which takes nvprof's names, too")},
    {NVPROF, "normalized-time-unit", 'u', true, "auto", ELSE("--print-units base prints ns")},
    {NVPROF, "openacc-profiling", 0, true, NO, ELSE("kprof trace --nvtx ./app has the ranges that the runtime marks")},
    {NVPROF, "pc-sampling-period", 0, true, NULL, ELSE("use --warp-sampling-interval")},
    {NVPROF, "print-api-summary", 0, false, NULL, ELSE(no_trace)},
    {NVPROF, "print-api-trace", 0, false, NULL, ELSE(no_trace)},
    {NVPROF, "print-gpu-summary", 0, false, NULL, ELSE(no_trace)},
    {NVPROF, "print-gpu-trace", 0, false, NULL, ELSE(no_trace)},
    {NVPROF, "profile-all-processes", 0, false, NULL,
     ELSE("kprof measures what it starts, with all child processes: give the application instead")},
    {NVPROF, "profile-child-processes", 0, false, NULL, ANY, MEANS("target-processes=all")},
    {NVPROF, "query-events", 0, false, NULL, ELSE("use --query-metrics; kprof list aliases has nvprof's names")},
    {NVPROF, "skip-kernel-replay-save-restore", 0, true, ANY, SAME("")},
    {NVPROF, "source-level-analysis", 0, true, NULL, ELSE("use --set source")},
    {NVPROF, "system-profiling", 0, true, NO, ELSE("kprof trace --pm-sampling ./app samples how busy the GPU is")},
    {NVPROF, "timeout", 0, true, NULL, ELSE("timeout SECONDS kprof ... ends the application after that time")},
    {NVPROF, "track-memory-allocations", 0, true, NO, ELSE("kprof trace ./app records them")},
    {NVPROF, "unified-memory-profiling", 0, true, NO,
     ELSE("kprof trace --unified-memory ./app records moves of pages")},
    {.name = NULL},
};

/* Old names, beginnings that only ncu has one option of, and what other tools call the same. */
static const struct {
    const char *name, *means;
} other_names[] = {
    {"details", "details-all"},
    {"export-profile", "export"},
    {"import-profile", "import"},
    {"kernel-regex-base", "kernel-name-base"},
    {"output", "export"},
    {"output-profile", "export"},
    {"replay", "replay-mode"},
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
    {"devices", "all", "kprof measures the launches on all devices: leave the option out"},
    {"page", "diff", "kprof diff BEFORE AFTER compares two reports"},
    {"print-source", "tileir", "kprof keeps no tile IR; cuda shows lines, and sass instructions"},
    {"to", "csv", "long and wide are CSV, and kprof report FILE --csv prints a page as CSV"},
    {"to", "html", "kprof report FILE --html OUT.html writes a page for a browser"},
    {"to", "json", "jsonl has a line of JSON for each launch, and kprof report FILE --json prints one document"},
    {"to", "markdown", "kprof report FILE --markdown prints a page as Markdown"},
};

#define ROW_COUNT (COUNT_OF(rows) - 1)

const kprof_other_option *kprof_ncu_option_find(const char *name)
{
    return KPROF_FIRST(it, rows, ROW_COUNT, strcmp(it->name, name) == 0);
}

const kprof_other_option *kprof_ncu_option_of_letter(char letter)
{
    return KPROF_FIRST(it, rows, ROW_COUNT, it->letter == letter);
}

const kprof_other_option *kprof_ncu_option_next(const char *start, const kprof_other_option *after)
{
    for (size_t i = after ? (size_t)(after - rows) + 1 : 0; i < ROW_COUNT; i++)
        if (kprof_begins_with(rows[i].name, start))
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

bool kprof_values_have(const char *words, const char *text)
{
    if (words && strcmp(words, ANY) == 0)
        return true;
    bool has_all = words && text;
    for (size_t length = 0; has_all; text += length + 1) {
        length = strcspn(text, ",");
        has_all = kprof_word_is_among(words, text, length);
        if (!text[length])
            break;
    }
    return has_all;
}

/* Does the row have each word of the value, among the one or the other? */
static bool has_words(const kprof_other_option *row, const char *value)
{
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    if (!value || !strchr(value, ','))
        return kprof_values_have(row->others, value);
    kprof_value_list(value, &words);
    return KPROF_ALL(i, words.count,
                     kprof_values_have(row->same, words.items[i]) || kprof_values_have(row->others, words.items[i]));
}

const kprof_other_option *kprof_other_answer(const kprof_other_option *first, const char *value, bool *is_same)
{
    for (const kprof_other_option *row = first; row->name && strcmp(row->name, first->name) == 0; row++) {
        *is_same = kprof_values_have(row->same, value);
        if (*is_same || has_words(row, value))
            return row;
    }
    return NULL;
}

char *kprof_other_words(const kprof_other_option *row, const char *value)
{
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) others = KPROF_STRBUF_INIT;
    if (!value || !row->others || strcmp(row->others, ANY) == 0)
        return NULL;
    kprof_value_list(value, &words);
    for (size_t i = 0; i < words.count; i++)
        if (!kprof_values_have(row->same, words.items[i]))
            kprof_strbuf_printf(&others, "%s%s", others.length > 0 ? "," : "", words.items[i]);
    return kprof_strbuf_take(&others);
}

kprof_status kprof_other_refuse(const kprof_other_option *first, const char *value)
{
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strlist) known = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) all = KPROF_STRBUF_INIT;
    for (const kprof_other_option *row = first; row->name && strcmp(row->name, first->name) == 0; row++) {
        const char *const lists[] = {row->same, row->others};
        for (size_t i = 0; i < COUNT_OF(lists); i++)
            if (lists[i])
                kprof_strbuf_printf(&all, "%s%s", all.length > 0 ? "|" : "", lists[i]);
    }
    KPROF_AUTO_FREE char *split = kprof_strdup(kprof_strbuf_text(&all));
    char *rest = split;
    for (char *word; (word = strsep(&rest, "|"));)
        kprof_strlist_add(&known, word);
    kprof_value_list(value, &words);
    size_t wrong = KPROF_FIND(i, words.count, !kprof_values_have(all.data, words.items[i]));
    const char *word = wrong < words.count ? words.items[wrong] : value;
    const char *nearest = kprof_nearest(word, (const char *const *)known.items, known.count);
    return kprof_fail(KPROF_USAGE, "--%s: \"%s\" is not valid, give %s%s%s%s", first->name, word,
                      kprof_strbuf_text(&all), nearest ? "; did you mean " : "", nearest ? nearest : "",
                      nearest ? "?" : "");
}

const char *kprof_ncu_other_name(const char *name)
{
    const size_t at = KPROF_FIND(i, COUNT_OF(other_names), strcmp(other_names[i].name, name) == 0);
    return at < COUNT_OF(other_names) ? other_names[at].means : NULL;
}

const char *kprof_value_hint(const char *option, const char *value)
{
    const size_t at =
        KPROF_FIND(i, COUNT_OF(values), strcmp(values[i].option, option) == 0 && strcmp(values[i].value, value) == 0);
    return at < COUNT_OF(values) ? values[at].hint : NULL;
}
