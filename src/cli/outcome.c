/* Turns what happened into an exit code and an explanation. */
#include "cli/outcome.h"
#include "cli/commands.h"
#include "core/clean.h"
#include "core/log.h"
#include "core/names.h"
#include "core/regex.h"
#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define OWN_CODES_FIRST 100
#define OWN_CODES_LAST  119
#define SEEN_SHOWN      20
#define UNTOLD                                                                                                         \
    "in CUDA graphs, or on several devices, that are not profiled kernel by kernel; --graph-profiling graph measures " \
    "a graph as one launch"
#define RANGES_SHOWN_BYTES 200 /* of the ranges of a launch */

/* A process' reason for having measured nothing that has an exit code of its own. */
static bool is_telling(kprof_status told)
{
    return told != KPROF_OK && told != KPROF_INTERNAL && told != KPROF_NOT_COLLECTED;
}

static kprof_status nothing_status(const kprof_outcome *outcome)
{
    kprof_status told = outcome->spools.told;
    if (is_telling(told))
        return told;
    if (outcome->counts.not_measured > 0 || outcome->counts.has_untold)
        return KPROF_NOT_COLLECTED;
    return told != KPROF_OK ? told : KPROF_NO_MATCH;
}

/* Did the run measure what it was to measure, or a part of that? */
static bool has_results(const kprof_outcome *outcome)
{
    const kprof_report_counts *counts = &outcome->counts;
    if (outcome->is_census || outcome->is_trace)
        return (outcome->is_census ? counts->timed : counts->activities) > 0;
    return counts->profiled + outcome->spools.elsewhere > 0 || counts->has_instructions;
}

/* kprof's own result, the application's apart. */
static kprof_status own_status(const kprof_outcome *outcome)
{
    if (outcome->collecting != KPROF_OK)
        return outcome->collecting;
    if (outcome->parts != KPROF_OK)
        return outcome->parts;
    if (outcome->spools.told == KPROF_OUTPUT)
        return KPROF_OUTPUT;
    if (!has_results(outcome) && outcome->choosing == KPROF_OK)
        return nothing_status(outcome);
    return outcome->choosing != KPROF_OK ? outcome->choosing : outcome->printing;
}

/* An application does not fail because --kill has ended its process, or one that it waited for. */
static bool application_failed(const kprof_outcome *outcome)
{
    const int status = outcome->wait_status;
    return outcome->spools.killed == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

int kprof_outcome_exit_code(const kprof_outcome *outcome)
{
    int wait_status = outcome->wait_status;
    if (!application_failed(outcome))
        return kprof_status_exit_code(own_status(outcome));
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    int code = WEXITSTATUS(wait_status);
    return code >= OWN_CODES_FIRST && code <= OWN_CODES_LAST ? kprof_status_exit_code(KPROF_APPLICATION) : code;
}

void kprof_outcome_tell_as_ncu(const kprof_outcome *outcome, FILE *out)
{
    const int status = outcome->wait_status;
    if (outcome->spools.told == KPROF_NO_PERMISSION)
        fputs("==ERROR== ERR_NVGPUCTRPERM - This user may not read the GPU's performance counters.\n", out);
    if (application_failed(outcome))
        fprintf(out, "==ERROR== The application returned an error code (%d).\n",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (!has_results(outcome))
        fputs("==WARNING== No kernels were profiled.\n", out);
}

static void explain_application(const kprof_outcome *outcome)
{
    const int wait_status = outcome->wait_status;
    if (!application_failed(outcome))
        return;
    if (WIFSIGNALED(wait_status)) {
        kprof_log(KPROF_LOG_WARNING, "the application was ended by signal %d (%s)", WTERMSIG(wait_status),
                  strsignal(WTERMSIG(wait_status)));
        return;
    }
    int code = WEXITSTATUS(wait_status);
    bool is_own = code >= OWN_CODES_FIRST && code <= OWN_CODES_LAST;
    kprof_log(KPROF_LOG_WARNING, "the application exited with status %d%s", code,
              is_own ? "; kprof exits with 119, since it uses that status itself" : "");
}

/* The name that --kernel-name is compared with. */
static const char *compared_name(const kprof_options *options, const kprof_seen_kernel *kernel)
{
    const char *const bases[] = {[KPROF_NAME_FUNCTION] = kernel->function,
                                 [KPROF_NAME_DEMANGLED] = kernel->demangled,
                                 [KPROF_NAME_MANGLED] = kernel->mangled};
    return bases[options->filter.name_base];
}

/* Do any of the names match? */
static bool matches_any(const char *pattern, const char *const *names, size_t count)
{
    kprof_regex *regex = NULL;
    bool matches = false;
    if (KPROF_MUTE(kprof_regex_new("-k", pattern, &regex)) == KPROF_OK) /* it may be no pattern */
        for (size_t i = 0; i < count && !matches; i++)
            matches = kprof_regex_match(regex, names[i]) == KPROF_REGEX_YES;
    kprof_regex_free(regex);
    return matches;
}

/* "a|b", ".*gemm.*" and "*gemm*" without "regex:" are plain names, in ncu, too. Is a name matched by the pattern? */
static bool suggest_pattern(const kprof_options *options, const char *const *names, size_t count)
{
    const kprof_filter_spec *filter = &options->filter;
    const char *asked = filter->kernel;
    KPROF_AUTO_FREE char *meant = kprof_regex_meant(asked);
    const char *pattern = meant ? meant : strpbrk(asked, "+?.[") ? asked : NULL;
    const bool matches = pattern && !kprof_regex_pattern(asked) && matches_any(pattern, names, count);
    KPROF_AUTO(kprof_strbuf) option = KPROF_STRBUF_INIT;
    if (options->kernel_id)
        kprof_strbuf_printf(&option, "--kernel-id \"%s:%s:regex:%s:%s\"", filter->context ? filter->context : "",
                            filter->stream ? filter->stream : "", pattern ? pattern : "",
                            filter->invocation ? filter->invocation : "");
    else
        kprof_strbuf_printf(&option, "-k \"regex:%s\"", pattern ? pattern : "");
    if (matches)
        kprof_log(KPROF_LOG_ERROR, "did you mean %s?", option.data);
    else if (meant)
        kprof_log(KPROF_LOG_ERROR, "%s" KPROF_REGEX_TAKEN_PLAIN "%s", asked, option.data);
    return matches;
}

/* Only the whole name has what is more than the name of a function. */
static void explain_function_name(const char *asked)
{
    KPROF_AUTO(kprof_strbuf) pattern = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE char *function = strpbrk(asked, "<(:") ? kprof_name_function_base(asked) : NULL;
    for (const char *at = asked; *at; at += strspn(at, ", ")) { /* demangled names have one blank behind each comma */
        const size_t length = strcspn(at, ",");
        kprof_regex_quote(at, length, &pattern);
        at += length;
        kprof_strbuf_puts(&pattern, *at ? ", " : "");
    }
    if (function && strcmp(function, asked) != 0)
        kprof_log(KPROF_LOG_ERROR,
                  "the name of a function has no namespace, template arguments or parameters; for those, give -k "
                  "\"regex:%s\" and add --kernel-name-base demangled",
                  pattern.data);
}

/* -k may give another of the kernel's names. */
static void suggest_name_base(const kprof_options *options, const kprof_seen_kernel *kernels, size_t count)
{
    const char *asked = options->filter.kernel;
    for (size_t i = 0; asked && i < count; i++) {
        const char *base = strcmp(asked, kernels[i].function) == 0    ? "function"
                           : strcmp(asked, kernels[i].demangled) == 0 ? "demangled"
                           : strcmp(asked, kernels[i].mangled) == 0   ? "mangled"
                                                                      : NULL;
        if (base && strcmp(asked, compared_name(options, &kernels[i])) != 0) {
            kprof_log(KPROF_LOG_ERROR, "this is the %s name of a kernel; add --kernel-name-base %s", base, base);
            return;
        }
    }
    if (asked && options->filter.name_base == KPROF_NAME_FUNCTION && !kprof_regex_pattern(asked))
        explain_function_name(asked);
}

static void append_each(const char *option, const kprof_strlist *values, kprof_strbuf *out)
{
    for (size_t i = 0; i < values->count; i++)
        kprof_strbuf_printf(out, " --%s \"%s\"", option, values->items[i]);
}

/* The options of nsys that stand for filters, as they were given. */
static void append_capture(const kprof_options *options, kprof_strbuf *out)
{
    kprof_strbuf_printf(out, " --capture-range %s", options->capture_range ? options->capture_range : "nvtx");
    if (options->nvtx_capture)
        kprof_strbuf_printf(out, " --nvtx-capture \"%s\"", options->nvtx_capture);
    if (options->capture_range_end)
        kprof_strbuf_printf(out, " --capture-range-end %s", options->capture_range_end);
}

/* The filters that were given, as options. */
static void append_filters(const kprof_options *options, kprof_strbuf *out)
{
    const kprof_filter_spec *filter = &options->filter;
    const bool is_captured =
        options->nvtx_capture || (options->capture_range && strcmp(options->capture_range, "none") != 0);
    if (options->kernel_id)
        kprof_strbuf_printf(out, " --kernel-id %s", options->kernel_id);
    else if (filter->kernel)
        kprof_strbuf_printf(out, " -k %s", filter->kernel);
    if (!options->import_path && kprof_replay_is_of_ranges(options->replay_choice) && !filter->measures_ranges)
        kprof_strbuf_printf(out, " --replay-mode %s without --nvtx-include", kprof_replay_name(options->replay_choice));
    else if (is_captured)
        append_capture(options, out);
    else if (filter->profiler_calls == KPROF_FROM_A_START_CALL)
        kprof_strbuf_puts(out, " --profile-from-start off");
    if (!is_captured)
        append_each("nvtx-include", &filter->nvtx_include, out);
    append_each("nvtx-exclude", &filter->nvtx_exclude, out);
    append_each("python-include", &filter->python_include, out);
    append_each("python-exclude", &filter->python_exclude, out);
    append_each("native-include", &filter->native_include, out);
    append_each("native-exclude", &filter->native_exclude, out);
    append_each("target-processes-filter", &filter->processes, out);
    if (filter->range_filter)
        kprof_strbuf_printf(out, " --range-filter \"%s\"", filter->range_filter);
    if (filter->schedule && !is_captured)
        kprof_strbuf_printf(out, " --schedule %s", filter->schedule);
    if (filter->step && !is_captured)
        kprof_strbuf_printf(out, " --step \"%s\"", filter->step);
    if (filter->launch_skip)
        kprof_strbuf_printf(out, " -s %lu", filter->launch_skip);
    if (filter->launch_skip_before_match)
        kprof_strbuf_printf(out, " --launch-skip-before-match %lu", filter->launch_skip_before_match);
    const char *before = " --devices ";
    for (int i = 0; i < 64; i++) {
        if (!(filter->device_mask >> i & 1))
            continue;
        kprof_strbuf_printf(out, "%s%d", before, i);
        before = ",";
    }
}

/* Tell which ranges launches of a report are in; a run keeps those of chosen launches only. */
static void list_ranges(kprof_report *report)
{
    KPROF_AUTO(kprof_strlist) ranges = KPROF_STRLIST_INIT;
    if (kprof_report_nvtx(report, SEEN_SHOWN + 1, &ranges) == KPROF_OK)
        kprof_log(KPROF_LOG_ERROR, ranges.count > 0
                                       ? "launches of the report are in these ranges:"
                                       : "no launch of the report has NVTX ranges; a run with --nvtx keeps them");
    for (size_t i = 0; i < ranges.count && i < SEEN_SHOWN; i++) {
        kprof_cut_text(ranges.items[i], RANGES_SHOWN_BYTES);
        kprof_log(KPROF_LOG_ERROR, "  %s", ranges.items[i]);
    }
    if (ranges.count > SEEN_SHOWN)
        kprof_log(KPROF_LOG_ERROR, "  and others");
}

/* The two kinds of ranges are easily taken for one another. */
static void explain_kind(const char *option, const char *text)
{
    if (*text && !strpbrk(text, "/[]\\"))
        kprof_log(KPROF_LOG_ERROR, "%s %s is about ranges of nvtxRangeStart; those of nvtxRangePush are \"%s/\"",
                  option, text, text);
}

static void explain_kinds(const kprof_filter_spec *filter)
{
    for (size_t i = 0; i < filter->nvtx_include.count; i++)
        explain_kind("--nvtx-include", filter->nvtx_include.items[i]);
    if (filter->step)
        explain_kind("--step", filter->step);
}

static void explain_nvtx(const kprof_options *options, kprof_report *report)
{
    const kprof_filter_spec *filter = &options->filter;
    if (filter->nvtx_include.count > 0 && !options->application)
        list_ranges(report);
    explain_kinds(filter);
    if (filter->step && kprof_replay_is_of_ranges(options->replay_choice) && !filter->measures_ranges)
        kprof_log(KPROF_LOG_ERROR,
                  "--step names what --schedule counts; add --nvtx-include \"%s\" to measure these ranges",
                  filter->step);
}

/* Launches of kernels of one name, as it is compared. */
typedef struct seen_name {
    const char *name;
    uint64_t launches; /* 0: the report does not count them */
    bool is_range;
} seen_name;

KPROF_BY_BOTH(by_launches, seen_name, KPROF_COMPARE(b->launches, a->launches), strcmp(a->name, b->name))

/* Add up kernels that the option calls the same, as instances of a template; return how many are left. */
static size_t join_seen(const kprof_options *options, const kprof_seen_kernel *kernels, size_t count, seen_name *out)
{
    const bool of_ranges = kprof_replay_is_of_ranges(options->replay_choice); /* which are listed as kernels are */
    size_t joined = 0;
    kprof_names numbers = {0};
    for (size_t i = 0; i < count; i++) {
        const char *name = compared_name(options, &kernels[i]);
        const size_t found = kprof_names_find(&numbers, name), at = found == KPROF_NAMES_NONE ? joined++ : found;
        if (found == KPROF_NAMES_NONE) {
            kprof_names_add(&numbers, name, at);
            out[at] = (seen_name){.name = name, .is_range = of_ranges && !kernels[i].has_code};
        }
        out[at].launches += kernels[i].launches;
    }
    kprof_names_free(&numbers);
    qsort(out, joined, sizeof *out, by_launches);
    return joined;
}

/* List the kernels that were seen. `why` tells why none of their launches is shown. */
static void list_seen(const kprof_options *options, const kprof_seen_kernel *kernels, size_t kernel_count,
                      const char *why)
{
    KPROF_AUTO_FREE seen_name *seen = kprof_calloc(kernel_count + 1, sizeof *seen);
    const size_t count = join_seen(options, kernels, kernel_count, seen);
    kprof_log(KPROF_LOG_ERROR, "%s; %s launched:", why,
              options->census ? "all runs of the application" : "the application");
    for (size_t i = 0; i < count && i < SEEN_SHOWN; i++) {
        if (seen[i].launches > 0)
            kprof_log(KPROF_LOG_ERROR, "  %lu x %s%s", seen[i].launches, seen[i].is_range ? "the range " : "",
                      seen[i].name);
        else
            kprof_log(KPROF_LOG_ERROR, "  %s", seen[i].name);
    }
    if (count > SEEN_SHOWN)
        kprof_log(KPROF_LOG_ERROR, "  and %zu more kernels", count - SEEN_SHOWN);
    const char *asked = options->filter.kernel;
    KPROF_AUTO_FREE const char **names = kprof_calloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = seen[i].name;
    const bool is_pattern = asked && suggest_pattern(options, names, count);
    const char *nearest = asked && !is_pattern ? kprof_nearest(asked, names, count) : NULL;
    if (nearest && strcmp(nearest, asked) != 0)
        kprof_log(KPROF_LOG_ERROR, "did you mean -k %s?", nearest);
    if (!is_pattern)
        suggest_name_base(options, kernels, kernel_count);
}

/* A trace and a census have no launch that was measured. */
static bool explain_others(const kprof_report_counts *counts, const char *name)
{
    if ((!counts->has_trace && counts->timed == 0) || counts->profiled + counts->not_measured > 0)
        return false;
    kprof_log(KPROF_LOG_ERROR,
              counts->has_trace && counts->activities == 0
                  ? "%s is a trace in which nothing happened, so there is nothing to show"
              : counts->has_trace ? "%s is a trace, which has no launch that was measured; kprof stats shows it, "
                                    "kprof report --html writes a page with its timeline, and kprof export --to "
                                    "chrome one for Perfetto"
                                  : "%s is a census, which has no launch that was measured; kprof report shows it "
                                    "with --page census, and kprof --census --top N measures launches, too",
              name);
    return true;
}

/* Say why none of the launches is shown. Caller frees. Filters may leave an empty part of a report. */
static char *tell_why(const kprof_report_counts *counts, bool is_run, const char *filters)
{
    if (is_run || *filters || counts->profiled + counts->not_measured > 0)
        return kprof_strprintf("no launch matched%s", *filters ? filters : " the filters");
    return kprof_strdup(counts->cut_short > 0 ? "the report has no launch, as its process was cut short before it had "
                                                "measured any"
                                              : "the report has no launch, as its run chose none");
}

void kprof_outcome_explain_no_match(const kprof_options *options, kprof_report *report, const char *name)
{
    const bool is_run = options->command->mask == KPROF_IN(profile); /* its report may have a trace or a census, too */
    kprof_report_counts counts = {0};
    if (kprof_report_count(report, &counts) != KPROF_OK || (!is_run && explain_others(&counts, name ? name : "this")))
        return;
    if (name)
        kprof_log(KPROF_LOG_ERROR, "%s has no launch that matches", name);
    kprof_seen_kernel *kernels = NULL;
    size_t count = 0;
    KPROF_AUTO(kprof_strbuf) filters = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < options->launches.count; i++)
        kprof_strbuf_printf(&filters, "%s%s", i == 0 ? " --launch " : ",", options->launches.items[i]);
    const size_t length_of_numbers = filters.length;
    append_filters(options, &filters);
    const char *text = kprof_strbuf_text(&filters);
    if (*text && filters.length == length_of_numbers) {
        kprof_log(KPROF_LOG_ERROR, "no launch matched%s", text); /* no name helps to find a number */
    } else if (kprof_report_seen(report, &kernels, &count) == KPROF_OK) {
        KPROF_AUTO_FREE char *why = tell_why(&counts, is_run, text);
        if (counts.processes == 0 && !is_run && !*text)
            kprof_log(KPROF_LOG_ERROR, "the report is empty: no process of its run has called CUDA");
        else if (count == 0 && counts.has_untold)
            kprof_log(KPROF_LOG_ERROR, "all kernels that the application launched were " UNTOLD);
        else if (count == 0)
            kprof_log(KPROF_LOG_ERROR, options->starts_unarmed ? "the application launched no kernel between kprof ctl "
                                                                 "start and kprof ctl stop"
                                                               : "the application used CUDA but launched no kernel");
        else
            list_seen(options, kernels, count, why);
        if (count > 0 && counts.has_untold)
            kprof_log(KPROF_LOG_ERROR, "others were launched " UNTOLD);
        explain_nvtx(options, report);
        kprof_seen_free(kernels, count);
    }
}

static void tell_reasons(const kprof_options *options, kprof_report *report)
{
    KPROF_AUTO(kprof_strlist) reasons = KPROF_STRLIST_INIT;
    if (kprof_report_reasons(report, &reasons) != KPROF_OK)
        return;
    bool is_first = false;
    for (size_t i = 0; i < reasons.count; i++) {
        kprof_log(KPROF_LOG_ERROR, "  %s", reasons.items[i]);
        is_first = is_first || strstr(reasons.items[i], "only watched");
    }
    if (is_first && !kprof_replay_is_of_runs(options->replay_choice))
        kprof_log(KPROF_LOG_ERROR,
                  "kprof --census times such kernels, too; --replay-mode application runs the program once for each "
                  "pass, and measures those that cannot wait for the host; --replay-mode app-range counts what all "
                  "kernels of a range do: of NVTX, or between cudaProfilerStart and cudaProfilerStop");
    if (options->replay_choice == KPROF_RANGES && reasons.count > 0)
        kprof_log(KPROF_LOG_ERROR, "a range that is not repeated is measured in one pass each time that it comes; "
                                   "--replay-mode app-range runs the program once for each pass");
}

/* The reason where processes were cut short. */
static const char none_came[] = "CUPTI hands records over twice a second, and none had come yet; let the application "
                                "end by exit, wait for its processes, or live for half a second more";

static void explain_empty_trace(const kprof_outcome *outcome, const kprof_options *options)
{
    KPROF_AUTO(kprof_strbuf) filters = KPROF_STRBUF_INIT;
    const char *why = "the application called CUDA for nothing that a trace tells of";
    append_filters(options, &filters);
    if (outcome->spools.cut_short > 0)
        why = none_came;
    else if (options->delay_s + options->duration_s > 0)
        why = "the application did nothing in the time of --delay and --duration";
    else if (options->starts_unarmed)
        why = "the application did nothing between kprof ctl start and kprof ctl stop";
    if (filters.length > 0 && outcome->spools.cut_short == 0)
        kprof_log(KPROF_LOG_ERROR, "the trace is empty: nothing that the application did is in what%s asks for",
                  filters.data);
    else
        kprof_log(KPROF_LOG_ERROR, "the trace is empty: %s", why);
    if (!options->nvtx_capture && outcome->spools.cut_short == 0)
        explain_kinds(&options->filter);
}

static void explain_nothing(const kprof_outcome *outcome, const kprof_options *options, kprof_report *report)
{
    if (outcome->spools.processes == 0 && !is_telling(outcome->spools.told))
        kprof_log(
            KPROF_LOG_ERROR,
            "nothing was collected: the application did not initialise CUDA, was started without the variables "
            "that kprof sets (env -i, sudo, ssh, a setuid program), could not reach kprof's folder in TMPDIR, or ended "
            "before the injection library was loaded%s%s%s",
            options->follow_children ? "" : "; its child processes are left out by --target-processes application-only",
            options->filter.processes.count > 0 ? "; --target-processes-filter leaves processes out, too" : "",
            outcome->is_trace ? "; kprof doctor tells whether this machine can run CUDA" : "");
    else if (options->starts_unarmed && !outcome->spools.armed && !is_telling(outcome->spools.told))
        kprof_log(KPROF_LOG_ERROR, "nothing was measured: %s",
                  options->delay_s > 0 ? "the application ended, or called CUDA no more, before --delay had passed"
                                       : "kprof ctl start has armed no process of the application");
    else if (outcome->is_census && nothing_status(outcome) == KPROF_NO_MATCH)
        kprof_log(KPROF_LOG_ERROR, "the census has no launch: %s",
                  outcome->spools.cut_short > 0 ? none_came : "the application launched no kernel that was timed");
    else if (outcome->is_trace && nothing_status(outcome) == KPROF_NO_MATCH)
        explain_empty_trace(outcome, options);
    else if (nothing_status(outcome) == KPROF_NO_MATCH ||
             (outcome->counts.has_untold && outcome->counts.not_measured == 0 && !is_telling(outcome->spools.told)))
        kprof_outcome_explain_no_match(options, report, NULL);
    else {
        kprof_log(KPROF_LOG_ERROR, "nothing was collected: %s", kprof_status_message(nothing_status(outcome)));
        tell_reasons(options, report);
    }
}

void kprof_outcome_explain(const kprof_outcome *outcome, const kprof_options *options, kprof_report *report)
{
    const kprof_report_counts *counts = &outcome->counts;
    explain_application(outcome);
    if (outcome->collecting != KPROF_OK)
        return;
    if (counts->dropped > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "%lu activities were lost: they came faster than they could be written, or are NVTX ranges beyond "
                  "those that kprof follows",
                  counts->dropped);
    if (counts->unknown > 0)
        kprof_log(KPROF_LOG_WARNING, "kprof cannot read %lu of CUPTI's records, and leaves them out", counts->unknown);
    if (counts->profiled == 0 && outcome->spools.elsewhere > 0)
        kprof_log(KPROF_LOG_INFO, "%lu launch%s measured with sets of kprof ctl start, and %s in its reports",
                  outcome->spools.elsewhere, outcome->spools.elsewhere == 1 ? " was" : "es were",
                  outcome->spools.elsewhere == 1 ? "is" : "are");
    else if (!has_results(outcome) && outcome->choosing == KPROF_OK)
        explain_nothing(outcome, options, report);
    else if (counts->not_measured > 0)
        kprof_log(KPROF_LOG_WARNING, "%lu of %lu selected %s could not be measured; the report says why",
                  counts->not_measured, (counts->not_measured + counts->profiled),
                  kprof_replay_is_of_ranges(options->replay_choice) ? "ranges" : "launches");
}
