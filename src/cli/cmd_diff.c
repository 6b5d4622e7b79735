/* kprof diff: compare a report with a baseline. kprof report --baseline does the same. */
#include "cli/aliases.h"
#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/words.h"
#include "core/log.h"
#include "report/diff/diff.h"

#include <stdlib.h>

typedef struct comparison {
    const kprof_options *options;
    kprof_report *reports[KPROF_SIDES]; /* open, or NULL */
    kprof_condition *conditions;        /* [request.condition_count] */
    kprof_diff_request request;
    kprof_diff_outcome outcome;
} comparison;

/* Only a run's command line tells its settings. If this kprof cannot read that line, the settings are not known. */
static void read_settings(kprof_strlist *words, kprof_diff_settings *out)
{
    kprof_options run;
    kprof_strlist_add(words, "");
    char *last = words->items[words->count - 1];
    words->items[words->count - 1] = NULL;
    const kprof_status status = KPROF_MUTE(kprof_options_parse(words->items, &run));
    if (status == KPROF_OK && run.command == kprof_commands && run.application)
        out->cache_control = kprof_option_word("cache-control", run.cache_control);
    kprof_options_free(&run);
    words->items[words->count - 1] = last;
}

static kprof_status open_side(comparison *of, int side, const char *name)
{
    uint64_t taken = 0;
    KPROF_AUTO_FREE char *line = NULL;
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    kprof_status status = kprof_report_open_named(name, &of->reports[side]);
    of->request.settings[side].file = name;
    KPROF_THEN(status, kprof_report_command_line(of->reports[side], &line));
    if (status == KPROF_OK) {
        kprof_words_split(line, &words);
        read_settings(&words, &of->request.settings[side]);
    }
    KPROF_THEN(status, kprof_report_count_taken(of->reports[side], &of->options->filter, &taken));
    if (status != KPROF_OK || taken > 0)
        return KPROF_THEN(status, kprof_report_tell_cut_short(of->reports[side], NULL));
    kprof_outcome_explain_no_match(of->options, of->reports[side], name);
    return KPROF_NO_MATCH;
}

static kprof_status parse_conditions(comparison *of)
{
    const kprof_strlist *texts = &of->options->fail_on;
    of->conditions = kprof_calloc(texts->count + 1, sizeof *of->conditions);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < texts->count && status == KPROF_OK; i++) {
        status = kprof_condition_parse(texts->items[i], &of->conditions[i]);
        of->request.condition_count = i + 1;
    }
    of->request.conditions = of->conditions;
    return status;
}

/* Return the status that the comparison comes to. */
static kprof_status conclude(const kprof_diff_outcome *outcome)
{
    if (outcome->pairs == 0)
        return kprof_fail(KPROF_NO_MATCH, "no kernel of one name and shape is in both reports; kprof report FILE.kprof "
                                          "--page session lists the kernels of each");
    if (outcome->failed > 0)
        return kprof_fail(KPROF_REGRESSION, "--fail-on: %zu failed, %zu inconclusive", outcome->failed,
                          outcome->inconclusive);
    if (outcome->inconclusive > 0)
        return kprof_fail(KPROF_INCONCLUSIVE, "--fail-on: %zu inconclusive; more repeats of each kernel may tell",
                          outcome->inconclusive);
    return KPROF_OK;
}

static kprof_status check_line(const kprof_options *options)
{
    if (!options->argument)
        return kprof_fail(KPROF_USAGE, "which reports? usage: kprof diff BASELINE.kprof FILE.kprof [options]");
    if (options->page != KPROF_UNSET)
        return kprof_fail(KPROF_USAGE, "--baseline prints a page of its own; leave --page out");
    if (options->filters.count > 0 || options->rules.count > 0)
        return kprof_fail(KPROF_USAGE, "--%s is about pages of one report; leave it or --baseline out",
                          options->filters.count > 0 ? "filter" : "rule");
    if (options->format == KPROF_FORMAT_CSV_NCU)
        return kprof_fail(KPROF_USAGE, "--csv-layout ncu: ncu has no comparison; give long or wide");
    return KPROF_OK;
}

int kprof_cmd_diff(const kprof_options *options)
{
    comparison of = {.options = options};
    of.request.tolerances = (kprof_tolerances){options->time_tolerance_pct, options->bytes_tolerance_pct};
    of.request.anyway = options->anyway;
    of.request.outcome = &of.outcome;
    kprof_status status = check_line(options);
    KPROF_THEN(status, parse_conditions(&of));
    KPROF_THEN(status, open_side(&of, KPROF_BASELINE, options->baseline));
    KPROF_THEN(status, open_side(&of, KPROF_NEW, options->argument));
    const kprof_condition_use use = {"--fail-on", of.conditions, of.request.condition_count, of.reports, KPROF_SIDES};
    KPROF_THEN(status, kprof_conditions_translate(options, &use));
    KPROF_THEN(status, kprof_results_show(options, &kprof_diff_page,
                                          &(kprof_page_input){of.reports, KPROF_SIDES, &of.request}));
    KPROF_THEN(status, conclude(&of.outcome));
    for (size_t i = 0; i < of.request.condition_count; i++)
        kprof_condition_free(&of.conditions[i]);
    free(of.conditions);
    for (int side = 0; side < KPROF_SIDES; side++)
        (void)!kprof_report_close(of.reports[side]);
    return kprof_status_exit_code(status);
}
