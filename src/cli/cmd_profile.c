/* The default command: run an application, collect, and print or keep the report. */
#include "cli/aliases.h"
#include "cli/begin.h"
#include "cli/commands.h"
#include "cli/idle.h"
#include "cli/launch.h"
#include "cli/machine.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/session.h"
#include "cli/spools.h"
#include "core/clean.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/process_filter.h"
#include "report/model/merge.h"
#include "report/model/number.h"
#include "report/model/trace_stats.h"
#include "report/model/units.h"
#include "report/page/page_stats.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS            50
#define BUSY_POLL_MS       2 /* while kprof ctl waits */
#define SIGNAL_PATIENCE_NS INT64_C(2000000000)
#define REPORT_IN_TEMP     "report.kprof"

typedef struct profile {
    const kprof_options *options;
    char *injection, *preloaded;
    bool nvtx; /* collect ranges */
    kprof_plans plans;
    kprof_finding_list findings; /* to look for */
    kprof_strlist tables;        /* of a trace, to be printed */
    kprof_route route;
    FILE *results; /* NULL: nothing is printed */
    FILE *as_ncu;  /* gets the lines that ncu prints of a run; NULL: there are none */
    kprof_signals signals;
    kprof_session session;
    char *report_path;
    kprof_create_mode create_mode;
    kprof_report *report;
    kprof_child child;
    kprof_bystander bystander;
    kprof_progress progress;
    kprof_spools *spools;
    bool takes_census;          /* by the run of the application that is under way */
    kprof_census_choice choice; /* the kernels to measure, after a census */
    bool has_several;           /* the run of a share that is under way has metrics that take several passes at once */
    kprof_remote *remote;       /* NULL: kprof ctl is not heard */
    bool interrupted;           /* a signal that asks for an end has arrived in one of the runs */
    int64_t signal_ns;          /* when a signal arrived while launches were being measured; 0: none has */
    kprof_outcome outcome;
} profile;

/* Is it a trace, without counters? */
static bool is_trace(const profile *run)
{
    return run->options->command->mask == KPROF_IN(trace);
}

/* NVTX takes one tool. If the user has set one up, it stays; `run->nvtx` tells whether kprof is the tool. */
static kprof_status settle_nvtx(profile *run)
{
    const kprof_filter_spec *filter = &run->options->filter;
    const char *other = getenv("NVTX_INJECTION64_PATH");
    bool is_free = !other || !*other || strcmp(other, run->injection) == 0; /* as an outer kprof sets it */
    const bool is_wanted = run->options->nvtx || run->options->traces || is_trace(run);
    run->nvtx = is_wanted && is_free;
    if (!is_wanted || is_free)
        return KPROF_OK;
    if (kprof_filter_asks_nvtx(filter))
        return kprof_fail(KPROF_USAGE,
                          "NVTX_INJECTION64_PATH is %s: another tool gets the NVTX ranges, so that no launch can be "
                          "chosen by them; unset it, or leave out --nvtx-include, --nvtx-exclude and what else needs "
                          "NVTX",
                          other);
    kprof_log(KPROF_LOG_WARNING,
              "NVTX_INJECTION64_PATH is %s: another tool gets the NVTX ranges, and kprof collects none; unset it for "
              "--nvtx",
              other);
    return KPROF_OK;
}

/* "kprof reprot" and "kprof run.kprof" mean a command; "kprof -- reprot" does not. */
static kprof_status check_application(const kprof_options *options)
{
    const char *name = options->application[0];
    KPROF_AUTO_FREE char *program = kprof_program_find(name);
    const bool is_named = strcmp(options->application[-1], "--") == 0;
    if (kprof_is_report(name) || (!program && kprof_has_extension(name)))
        return kprof_fail(KPROF_NO_APPLICATION, "%s is no program; did you mean kprof report %s?", name, name);
    kprof_status status = is_named || program ? KPROF_OK : kprof_program_word_check(options);
    return KPROF_THEN(status, kprof_program_check(name));
}

/* Does kprof measure a run of the application? Not in a trace, and not in a census alone. */
static bool measures(const profile *run)
{
    return !is_trace(run) && (!run->options->census || run->options->is_measured);
}

static kprof_status prepare_counters(profile *run)
{
    const kprof_options *options = run->options;
    const char *dir = options->counter_data_dir; /* absolute, as the application may change directory */
    kprof_status status = KPROF_OK;
    if (dir && (dir[0] != '/' || access(dir, W_OK | X_OK) != 0))
        status = kprof_fail(KPROF_USAGE, "--counter-data %s: %s", dir,
                            dir[0] != '/' ? "give the folder's absolute path" : strerror(errno));
    KPROF_THEN(status, kprof_nvdisasm_check(options->nvdisasm));
    KPROF_THEN(status, kprof_plans_make(options, &run->plans));
    const kprof_instruction_wish *wish = &run->plans.instructions;
    const kprof_plans_hold held = {wish->samples || wish->counters.count > 0, wish->samples,
                                   KPROF_ANY(i, run->plans.count, run->plans.chips[i].plan.timeline.count > 0)};
    if (status == KPROF_OK && !options->starts_unarmed) /* kprof ctl start may bring another plan */
        kprof_idle_tell_planned(options, &held);
    if (status == KPROF_OK && options->apply_rules)
        status = kprof_catalog_findings(run->plans.catalog, &options->rules, &run->findings);
    return status;
}

static kprof_status prepare_trace(profile *run)
{
    const kprof_options *options = run->options;
    kprof_status status = kprof_stats_choose(&options->stats_reports, &run->tables);
    KPROF_THEN(status, kprof_stats_check(&options->stats_reports,
                                         &(kprof_stats_records){.managed = options->follows_managed,
                                                                .samples = options->samples_program,
                                                                .callers = options->call_stack_type != 0}));
    if (status == KPROF_OK && options->samples_program)
        kprof_plans_sample(options, &run->plans);
    return status;
}

/* Check everything that can be wrong before anything is made or started. */
static kprof_status prepare(profile *run)
{
    const kprof_options *options = run->options;
    if (!options->application)
        return kprof_fail(
            KPROF_USAGE, "which application? usage: kprof%s [options] [--] application [arguments]; see kprof%s --help",
            is_trace(run) ? " trace" : "", is_trace(run) ? " trace" : "");
    const char *other = kprof_injection_of_others(); /* it would load into kprof itself when it looks at the GPUs */
    if (other) {
        kprof_log(KPROF_LOG_WARNING,
                  "CUDA_INJECTION64_PATH is %s: another profiler is set up; kprof takes its place for this run", other);
        unsetenv("CUDA_INJECTION64_PATH");
    }
    kprof_status status = check_application(options);
    if (status == KPROF_OK && measures(run))
        status = prepare_counters(run);
    else if (status == KPROF_OK && is_trace(run))
        status = prepare_trace(run);
    KPROF_THEN(status, kprof_injection_locate(options, &run->injection));
    KPROF_THEN(status, settle_nvtx(run));
    if (status == KPROF_OK)
        run->preloaded = kprof_preloaded_find(run->injection, options->starts_unarmed && !is_trace(run));
    run->route = kprof_route_profile(options, isatty(STDOUT_FILENO));
    KPROF_THEN(status, kprof_results_open(options, run->route.results, &run->results));
    run->as_ncu = run->results;
    if (status == KPROF_OK && run->route.as_ncu != run->route.results)
        status = kprof_results_open(options, run->route.as_ncu, &run->as_ncu);
    return status;
}

/* Write the files that a report can be made from if this kprof is killed. */
static kprof_status keep_seed(const profile *run)
{
    char seed[PATH_MAX + 32];
    snprintf(seed, sizeof seed, "%s/" KPROF_SESSION_SEED, run->session.dir);
    return kprof_report_keep_seed(run->report, seed);
}

/* Does the application run once for each share of the plans? Each run has a report of its own then, with its share. */
static bool runs_shares(const profile *run)
{
    return kprof_plans_runs(&run->plans) > 0;
}

/* Make the session directory and the report. From here on no signal ends kprof until both are settled. */
static kprof_status open_session(profile *run)
{
    const kprof_plans none = {.count = 0}, *plans = runs_shares(run) ? &none : &run->plans;
    kprof_status status = kprof_signals_block(&run->signals);
    if (status == KPROF_OK)
        kprof_bystander_fork(&run->bystander);
    KPROF_THEN(status, kprof_session_open(kprof_sessions_folder(), &run->session));
    if (status == KPROF_OK && run->options->export_path)
        status = kprof_export_path_claim(run->options, &run->report_path, &run->create_mode);
    else if (status == KPROF_OK)
        run->report_path = kprof_strprintf("%s/" REPORT_IN_TEMP, run->session.dir);
    KPROF_THEN(status, kprof_report_begin_run(run->options, plans,
                                              &(kprof_report_target){run->report_path, run->create_mode,
                                                                     measures(run) ? "default" : NULL, NULL},
                                              &run->report));
    KPROF_THEN(status, keep_seed(run));
    if (status == KPROF_OK && run->options->export_path)
        status = kprof_session_note_report(&run->session, run->report_path, kprof_report_place(run->report));
    if (status == KPROF_OK) {
        KPROF_AUTO(kprof_strlist) old = KPROF_STRLIST_INIT;
        kprof_session_find_old(&old);
        if (old.count == 1)
            kprof_log(KPROF_LOG_INFO, "an earlier run was cut short; kprof recover %s makes a report of it",
                      old.items[0]);
        else if (old.count > 1)
            kprof_log(KPROF_LOG_INFO,
                      "%zu earlier runs were cut short; kprof recover lists them and makes reports of them", old.count);
    }
    return status;
}

/* A census needs the times of kernels, and CUPTI records no kernel while samples of instructions are enabled. */
static bool measures_beside(const profile *run)
{
    return run->options->measures_beside && !run->plans.instructions.samples;
}

/* Does the run of the application that is under way count and time launches, and measure none? */
static bool only_takes_census(const profile *run)
{
    return run->takes_census && !measures_beside(run);
}

static kprof_status save_config(const profile *run)
{
    kprof_config config;
    kprof_plans_config(&run->plans, run->options, &config);
    config.root_pid = run->child.pid;
    const bool only_counts = only_takes_census(run), counts = run->takes_census;
    config.nvtx = run->nvtx && !only_counts;
    config.only_records = is_trace(run) || only_counts;
    config.traces = is_trace(run) || (config.traces && !counts);
    config.census = counts;
    if (counts && !only_counts)
        config.census_top = run->options->top < INT32_MAX ? (uint32_t)run->options->top : INT32_MAX;
    config.call_stack_type = only_counts ? 0 : config.call_stack_type;
    config.filter.mangled = measures_beside(run) ? run->choice.missing : run->choice.chosen;
    config.chip_count = only_counts ? 0 : config.chip_count;
    config.tells_all = run->has_several;                  /* launches of several runs are matched by their order */
    if (config.replay_choice == KPROF_REPLAY_APPLICATION) /* plans have one pass, where metrics do not take several */
        config.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    kprof_status status = kprof_config_save(&config, run->session.dir);
    free(config.chips);
    return status;
}

static kprof_status start_application(profile *run)
{
    KPROF_AUTO_FREE char *trees = kprof_process_trees(&run->options->filter.processes);
    kprof_child_spec spec = {
        .argv = run->options->application,
        .injection_library = run->injection,
        .preloaded = run->preloaded,
        .session_dir = run->session.dir,
        .trees = trees,
        .nvtx = run->nvtx && !only_takes_census(run),
        .null_stdin = run->options->null_stdin,
        .stdout_to_stderr = run->route.application_to_stderr,
        .signals = &run->signals,
        .bystander = &run->bystander,
    };
    run->spools = kprof_spools_new(&run->session, run->report, &run->progress);
    kprof_status status = KPROF_OK;
    if (run->options->starts_unarmed)
        status = kprof_remote_open(
            &(kprof_remote_run){&run->session, run->spools, run->options, &run->plans, run->report_path}, &run->remote);
    KPROF_THEN(status, kprof_child_fork(&spec, &run->child));
    KPROF_THEN(status, save_config(run));
    return KPROF_THEN(status, kprof_child_start(&run->child, run->options->application[0]));
}

/* Note that somebody wants the whole to end, whatever this run of the application makes of the signal. */
static void note_interruption(profile *run)
{
    const int number = run->child.arrived;
    run->interrupted =
        run->interrupted || number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/* A signal may end the application, so ask its processes to close their batches first. A signal that would certainly
 * end it waits for that, but not for long. */
static void settle_signal(profile *run)
{
    kprof_child *child = &run->child;
    if (!child->arrived)
        return;
    note_interruption(run);
    uint64_t open = kprof_spools_open_launches(run->spools);
    int64_t now_ns = kprof_monotonic_ns();
    if (open > 0 && run->signal_ns == 0) {
        run->signal_ns = now_ns;
        kprof_session_ask_to_close(&run->session, true);
        kprof_log(KPROF_LOG_INFO, "%s: at least %lu launches are still being measured; %s", strsignal(child->arrived),
                  open,
                  child->held ? "the application gets the signal when that is done, or in 2 s"
                              : "the application's processes measure them before they end, for 2 s at most");
    }
    if (open > 0 && now_ns - run->signal_ns < SIGNAL_PATIENCE_NS)
        return;
    kprof_child_release(child);
    child->arrived = 0;
    if (run->signal_ns != 0)
        kprof_session_ask_to_close(&run->session, false);
    run->signal_ns = 0;
}

/* Ingest until the application has ended. A report that cannot be written is no reason to stop the application. */
static void collect(profile *run)
{
    kprof_outcome *outcome = &run->outcome;
    kprof_progress_begin(&run->progress, run->options->quiet ? NULL : stderr, run->options->most_launches);
    if (measures(run) && !run->takes_census)
        run->progress.as_ncu = run->as_ncu;
    bool is_busy = false;
    if (run->remote && run->options->delay_s + run->options->duration_s <= 0)
        kprof_log(KPROF_LOG_INFO, "process %d is not measured before kprof ctl start %d", (int)run->child.pid,
                  (int)run->child.pid);
    while (!kprof_child_wait(&run->child, is_busy ? BUSY_POLL_MS : POLL_MS)) {
        if (outcome->collecting == KPROF_OK)
            outcome->collecting = kprof_spools_poll(run->spools);
        is_busy = run->remote && kprof_remote_serve(run->remote);
        run->child.also = run->remote && !is_busy ? kprof_remote_descriptor(run->remote) : -1;
        kprof_spools_end_done(run->spools);
        settle_signal(run);
    }
    note_interruption(run);
    outcome->parts = kprof_remote_close(run->remote);
    run->remote = NULL;
    int64_t start_ns = kprof_monotonic_ns();
    kprof_status finished = kprof_spools_finish(run->spools, run->child.pid);
    kprof_log(KPROF_LOG_DEBUG, "storing what was left when the application had ended took %.0f ms",
              kprof_monotonic_lap_ms(&start_ns));
    kprof_code_options code = kprof_code_options_of(run->options, &run->session);
    code.tell = kprof_progress_code;
    code.user = &run->progress;
    KPROF_THEN(finished, kprof_report_read_code(run->report, &code));
    outcome->is_trace = is_trace(run);
    outcome->wait_status = run->child.wait_status;
    outcome->spools = kprof_spools_summarize(run->spools);
    if (finished == KPROF_OK && outcome->spools.root_seen)
        finished = kprof_report_set_exit(run->report, run->child.pid, outcome->wait_status);
    KPROF_THEN(finished, kprof_report_count(run->report, &outcome->counts));
    outcome->collecting = finished;
    kprof_progress_end(&run->progress);
}

/* Close what was written. A temporary report is opened again before its directory is removed, so that nothing is left
 * behind however the printing ends. */
static void close_session(profile *run)
{
    kprof_outcome *outcome = &run->outcome;
    kprof_spools_free(run->spools);
    run->spools = NULL;
    kprof_status closed = kprof_report_close(run->report);
    run->report = NULL;
    if (outcome->collecting == KPROF_OK)
        outcome->collecting = closed;
    if (run->results && closed == KPROF_OK) /* else the path may still be that of an older report */
        outcome->printing = kprof_report_open(run->report_path, &run->report);
    kprof_session_close(&run->session, outcome->collecting != KPROF_OK || outcome->parts != KPROF_OK);
    kprof_bystander_end(&run->bystander);
    kprof_signals_restore(&run->signals);
}

static void tell_samples(const profile *run)
{
    const kprof_report_counts *counts = &run->outcome.counts;
    const bool of_ranges = kprof_replay_is_of_ranges(run->options->replay_choice);
    if (of_ranges && counts->samples == counts->multiplexed && counts->incomplete == 0)
        return; /* each range had all passes: there is nothing to tell */
    kprof_log(KPROF_LOG_INFO, "%lu of the %s %s multiplexed: %lu sample%s, each with the passes of several %s",
              counts->multiplexed, of_ranges ? "ranges" : "launches", counts->multiplexed == 1 ? "is" : "are",
              counts->samples, kprof_ending(counts->samples, "s"),
              of_ranges ? "ranges of one name" : "launches of one kernel and shape");
    if (counts->incomplete > 0)
        kprof_log(of_ranges ? KPROF_LOG_WARNING : KPROF_LOG_INFO,
                  "%lu sample%s passes, since no more equal %s came, and what is missing is n/a%s", counts->incomplete,
                  counts->incomplete == 1 ? " lacks" : "s lack", of_ranges ? "ranges" : "launches",
                  of_ranges ? "; --replay-mode app-range runs the program once for each pass" : "");
}

static void announce_report(const profile *run)
{
    const bool of_ranges = kprof_replay_is_of_ranges(run->options->replay_choice);
    const kprof_report_counts *counts = &run->outcome.counts;
    const bool is_kept = run->options->export_path && run->outcome.collecting == KPROF_OK;
    const uint64_t seen = counts->launches > 0 ? counts->launches : counts->timed;
    if (is_kept && is_trace(run))
        kprof_log(KPROF_LOG_INFO, "report: %s (%lu activities)", run->report_path, counts->activities);
    KPROF_AUTO_FREE char *path = is_kept && run->as_ncu ? realpath(run->report_path, NULL) : NULL;
    KPROF_AUTO_FREE char *clean = kprof_clean_text(path ? path : run->report_path);
    if (is_kept && !is_trace(run) && run->as_ncu)
        fprintf(run->as_ncu, "==PROF== Report: %s\n", clean);
    if (is_kept && !is_trace(run))
        kprof_log(KPROF_LOG_INFO, "report: %s (%lu %s%s profiled, %lu%s seen)", run->report_path, counts->profiled,
                  of_ranges ? "range" : "launch", kprof_ending(counts->profiled, of_ranges ? "s" : "es"), seen,
                  !of_ranges  ? ""
                  : seen == 1 ? " launch"
                              : " launches");
    if (run->options->samples_program && run->plans.count > 0 && counts->activities > 0 && !counts->has_samples)
        kprof_log(KPROF_LOG_INFO, "nothing was sampled over time: samples begin within a second of the first context, "
                                  "and the program may have ended before");
    if (is_kept && !is_trace(run) && counts->activities > 0)
        kprof_log(KPROF_LOG_INFO, "it has a trace of %lu activities, too; kprof stats %s shows it", counts->activities,
                  run->report_path);
    if (counts->multiplexed > 0)
        tell_samples(run);
}

static void print_results(profile *run)
{
    const kprof_report_counts *counts = &run->outcome.counts;
    const uint64_t found = is_trace(run) ? counts->activities : counts->profiled + counts->not_measured + counts->timed;
    const int format = run->options->format;
    const bool is_as_ncu = !is_trace(run) && kprof_is_called_ncu() && format == KPROF_FORMAT_CSV_NCU;
    if (!run->report || (found == 0 && (format == KPROF_UNSET || is_as_ncu))) /* ncu has no columns for nothing */
        return;
    if (is_trace(run) && !kprof_trace_is_there(run->report))
        return; /* nothing was collected, as has been told */
    kprof_print_options print = kprof_print_options_make(run->options, run->results);
    const kprof_stats_content content = {&run->tables, run->options->stats_reports.count > 0, NULL, false, 0};
    if (is_trace(run)) {
        run->outcome.printing =
            kprof_page_show(&kprof_stats_page, &(kprof_page_input){&run->report, 1, &content}, &print, run->results);
        return;
    }
    print.findings = run->options->apply_rules ? &run->findings : NULL;
    const bool lacks = run->options->page == KPROF_PAGE_TIMELINE && !kprof_report_has_timelines(run->report);
    if (run->options->page == KPROF_PAGE_TIMELINE)
        run->outcome.printing = kprof_report_status(run->report);
    if (lacks && run->outcome.printing == KPROF_OK) /* the page of timelines is empty then */
        kprof_log(KPROF_LOG_WARNING,
                  "nothing was sampled over time; --set pmsampling samples counters while kernels run");
    KPROF_THEN(run->outcome.printing, kprof_filters_translate(run->options, run->report));
    if (run->outcome.printing == KPROF_OK)
        run->outcome.printing = kprof_report_print(&run->report, 1, &print, run->results);
}

/* Free everything, whatever was reached; a report that no application has written to is removed. */
static void dispose(profile *run, bool started)
{
    kprof_child_close(&run->child);
    (void)kprof_remote_close(run->remote);
    kprof_spools_free(run->spools);
    if (started)
        (void)!kprof_report_close(run->report);
    else
        kprof_report_discard(run->report);
    kprof_session_close(&run->session, false);
    kprof_bystander_end(&run->bystander);
    kprof_signals_restore(&run->signals);
    free(run->findings.items);
    KPROF_FREE_LISTS(&run->tables, &run->choice.chosen, &run->choice.missing);
    kprof_plans_free(&run->plans);
    KPROF_FREE(run->report_path, run->injection, run->preloaded);
}

/* Shapes that have less than this share of the chosen kernels' time are not worth another run of the program. */
#define LITTLE_TIME   0.01
#define MISSING_SHOWN 3

/* Tell what the run with the census has measured. True when it has measured all that matters. */
static bool has_measured(const kprof_census_choice *choice)
{
    const char *those = choice->chosen.count == 1 ? "it" : "them";
    if (choice->missing_ns > LITTLE_TIME * choice->chosen_ns)
        return false;
    kprof_log(KPROF_LOG_INFO,
              "%zu kernel%s took %.3g %% of that time, and kprof has measured launches of %s in the same run",
              choice->chosen.count, kprof_ending(choice->chosen.count, "s"), 100 * choice->chosen_ns / choice->total_ns,
              those);
    if (choice->missing.count > 0)
        kprof_log(KPROF_LOG_INFO,
                  "launches with grids, blocks or shared memory that took %.2g %% of %s time did not come again, and "
                  "were not measured",
                  100 * choice->missing_ns / choice->chosen_ns, choice->chosen.count == 1 ? "its" : "their");
    return true;
}

static void tell_second_run(const profile *run)
{
    const kprof_census_choice *choice = &run->choice;
    const size_t chosen = choice->chosen.count, missing = choice->missing.count;
    const double share_pct = 100 * choice->chosen_ns / choice->total_ns;
    if (measures_beside(run))
        kprof_log(KPROF_LOG_INFO,
                  "%zu kernel%s took %.3g %% of that time: the application runs once more, since launches of %zu "
                  "kernel%s were not measured in the same run",
                  chosen, kprof_ending(chosen, "s"), share_pct, missing, kprof_ending(missing, "s"));
    else
        kprof_log(KPROF_LOG_INFO,
                  "%zu kernel%s took %.3g %% of that time: the application runs once more, and kprof measures launches "
                  "of %s",
                  chosen, kprof_ending(chosen, "s"), share_pct, chosen == 1 ? "it" : "them");
}

/* Choose what to measure after a census; false when the program is not to be run once more. */
static bool choose_kernels(profile *run)
{
    kprof_outcome *outcome = &run->outcome;
    kprof_census_choice *choice = &run->choice;
    const bool is_well = WIFEXITED(outcome->wait_status) && WEXITSTATUS(outcome->wait_status) == 0;
    if (outcome->collecting != KPROF_OK || outcome->counts.timed == 0)
        return false;
    outcome->collecting = kprof_report_choose(run->report, &run->options->filter, run->options->top, choice);
    if (outcome->collecting != KPROF_OK)
        return false;
    KPROF_AUTO(kprof_strbuf) time = KPROF_STRBUF_INIT;
    const kprof_human human = kprof_units_human(choice->total_ns, "ns", false);
    kprof_human_put(&human, &time);
    kprof_log(KPROF_LOG_INFO, "census: %lu launch%s of %zu kernel%s took %s of the GPU's time", choice->launches,
              kprof_ending(choice->launches, "es"), choice->kernels, kprof_ending(choice->kernels, "s"),
              time.data ? time.data : "");
    if (!run->options->is_measured)
        return false;
    if (choice->chosen.count == 0 && is_well) {
        outcome->choosing = KPROF_NO_MATCH;
        kprof_outcome_explain_no_match(run->options, run->report, NULL);
    } else if (measures_beside(run) && has_measured(choice)) {
        return false;
    } else if (!is_well) {
        kprof_log(KPROF_LOG_WARNING, "the application failed, so kprof does not run it once more to measure %skernels",
                  measures_beside(run) ? "other " : "");
    }
    if (!is_well || choice->chosen.count == 0)
        return false;
    tell_second_run(run);
    return true;
}

static kprof_status run_once(profile *run)
{
    const kprof_status status = start_application(run);
    if (status == KPROF_OK)
        collect(run);
    return status;
}

/* Run the application with its spools in a session of their own, below `parent`, as it is one of several runs. */
static kprof_status run_apart(profile *run, const char *parent)
{
    const kprof_session session = run->session;
    run->session = (kprof_session){.dir = NULL};
    kprof_status status = kprof_session_open(parent, &run->session);
    KPROF_THEN(status, keep_seed(run));
    KPROF_THEN(status, run_once(run));
    kprof_spools_free(run->spools);
    run->spools = NULL;
    kprof_session_close(&run->session, status == KPROF_OK && run->outcome.collecting != KPROF_OK);
    run->session = session;
    return status;
}

/* Forget the run before. */
static void end_run(profile *run)
{
    kprof_child_close(&run->child);
    run->child = (kprof_child){.gate = -1, .error = -1};
    run->outcome = (kprof_outcome){0};
}

/* The reports of the runs, each with the share of one. */
typedef struct share_reports {
    kprof_session folder; /* where they are, if not with the run's session */
    const char *parent;   /* of sessions */
    kprof_strlist paths;
    off_t input; /* where standard input begins; -1: nobody can go back there */
} share_reports;

/* Run the application for one share, and close its report. */
static kprof_status run_share(profile *run, share_reports *reports)
{
    const size_t number = reports->paths.count;
    char path[PATH_MAX + 64];
    kprof_report *whole = run->report;
    snprintf(path, sizeof path, "%s/" REPORT_IN_TEMP ".%zu",
             reports->folder.dir ? reports->folder.dir : run->session.dir, number + 1);
    if (reports->input >= 0 && reports->paths.count > 0) /* read a file again from where the first run read it */
        (void)lseek(STDIN_FILENO, reports->input, SEEK_SET);
    kprof_plans_swap_run(&run->plans, number);
    run->has_several = KPROF_ANY(i, run->plans.count, run->plans.chips[i].plan.pass_count > 1);
    run->report = NULL;
    kprof_status status = kprof_report_begin_run(
        run->options, &run->plans, &(kprof_report_target){path, KPROF_CREATE_NEW, "default", NULL}, &run->report);
    KPROF_THEN(status, run_apart(run, reports->parent));
    kprof_plans_swap_run(&run->plans, number);
    kprof_status closed = KPROF_OK;
    if (status == KPROF_OK && run->outcome.collecting == KPROF_OK)
        closed = kprof_report_close(run->report);
    else /* its folder will be removed */
        kprof_report_discard(run->report);
    run->report = whole;
    if (status == KPROF_OK)
        kprof_strlist_add(&reports->paths, path);
    return status == KPROF_OK ? closed : status;
}

/* Is the application to run once more? Not if it failed or a signal ended it. `first`: how the first run ended. */
static bool goes_on(const profile *run, const kprof_outcome *first, size_t number)
{
    const kprof_outcome *outcome = &run->outcome;
    const bool is_well =
        outcome->spools.killed > 0 || (WIFEXITED(outcome->wait_status) && WEXITSTATUS(outcome->wait_status) == 0);
    if (number > 1 && outcome->wait_status != first->wait_status)
        kprof_log(KPROF_LOG_WARNING, "run %zu of the application ended in another way than the first one: with %s %d",
                  number, WIFSIGNALED(outcome->wait_status) ? "signal" : "status",
                  WIFSIGNALED(outcome->wait_status) ? WTERMSIG(outcome->wait_status)
                                                    : WEXITSTATUS(outcome->wait_status));
    if (outcome->collecting != KPROF_OK || outcome->counts.profiled + outcome->counts.not_measured == 0)
        return false;
    const bool may = !run->interrupted && (number == 1 ? is_well : !WIFSIGNALED(outcome->wait_status) || is_well);
    const size_t left = kprof_plans_runs(&run->plans) - number;
    if (!may && left > 0)
        kprof_log(KPROF_LOG_WARNING,
                  "the application failed or was interrupted, so kprof does not run it once more; what %zu further "
                  "run%s to collect is missing",
                  left, left == 1 ? " was" : "s were");
    return may;
}

/* List the metrics that the runs have collected in parts. */
static void list_greatest(const kprof_plans *plans, kprof_runs *out)
{
    const size_t count = KPROF_SUM(i, plans->count, plans->chips[i].shares.throughput_count);
    kprof_greatest *list = kprof_calloc(count + 1, sizeof *list);
    out->greatest = list;
    for (size_t i = 0; i < plans->count; i++) {
        const kprof_chip_plan *chip = &plans->chips[i];
        for (size_t k = 0; k < chip->shares.throughput_count; k++)
            list[out->greatest_count++] =
                (kprof_greatest){chip->plan.chip, chip->shares.throughputs[k].name, &chip->shares.throughputs[k].parts};
    }
}

static kprof_status refuse_runs(const kprof_runs *runs)
{
    if (runs->taken > 0)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the runs differ; --app-replay-mode relaxed takes what they have in common");
    const char *what = runs->of_ranges ? "range" : "launch", *other = runs->of_ranges ? "range" : "auto";
    if (!runs->are_moved)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "no %s is the same in all runs; let the program launch the same kernels in each of them, or "
                          "measure it in one run with --replay-mode %s",
                          what, other);
    return kprof_fail(KPROF_NOT_COLLECTED, "no %s is the same in all runs;%s%s --replay-mode %s needs one run", what,
                      runs->order == KPROF_ORDER_STRICT ? " --app-replay-mode balanced takes any order," : "",
                      runs->match == KPROF_MATCH_NAME   ? ""
                      : runs->match == KPROF_MATCH_GRID ? " --app-replay-match name takes any shape,"
                                                        : " --app-replay-match grid takes any context and stream, and "
                                                          "name any shape, too,",
                      other);
}

static kprof_status join_shares(profile *run, const share_reports *reports)
{
    kprof_merge *merge = kprof_merge_new(run->report);
    char plans[PATH_MAX + 64];
    kprof_runs runs = {.count = reports->paths.count,
                       .match = (kprof_run_match)run->options->run_match,
                       .order = (kprof_run_order)run->options->run_order,
                       .last_has_several = run->has_several,
                       .last_has_further = run->has_several && run->options->filter.launch_count > 0,
                       .of_ranges = kprof_replay_is_of_ranges(run->options->replay_choice)};
    snprintf(plans, sizeof plans, "%s/" REPORT_IN_TEMP ".0", run->session.dir);
    list_greatest(&run->plans, &runs);
    /* The plans as they were before they were dealt to runs, and nothing measured. */
    kprof_report *whole = NULL;
    kprof_status status = kprof_report_begin_run(
        run->options, &run->plans, &(kprof_report_target){plans, KPROF_CREATE_NEW, "default", NULL}, &whole);
    KPROF_THEN(status, kprof_report_close(whole));
    KPROF_THEN(status, kprof_merge_add(merge, plans, NULL, NULL));
    for (size_t i = 0; i < runs.count && status == KPROF_OK; i++)
        status = kprof_merge_add(merge, reports->paths.items[i], NULL, NULL);
    KPROF_THEN(status, kprof_merge_join_runs(run->report, &runs));
    kprof_merge_free(merge);
    free((void *)runs.greatest);
    KPROF_THEN(status, kprof_report_count(run->report, &run->outcome.counts));
    if (runs.left_out > 0 && reports->input < 0 && !run->options->null_stdin && !isatty(STDIN_FILENO))
        kprof_log(KPROF_LOG_WARNING, "the standard input is a pipe, which the first run may have read to its end; a "
                                     "file (< FILE) is read anew by each run");
    if (runs.left_out > 0 && (runs.order != KPROF_ORDER_RELAXED || runs.taken == 0))
        run->outcome.choosing = refuse_runs(&runs);
    return status;
}

/* Run the application for each share, and join the reports. The first run tells how the application ended. */
static kprof_status run_all_shares(profile *run)
{
    share_reports reports = {.parent = run->options->buffers_in_memory ? "/dev/shm" : kprof_sessions_folder(),
                             .input = run->options->null_stdin ? -1 : lseek(STDIN_FILENO, 0, SEEK_CUR)};
    const size_t count = kprof_plans_runs(&run->plans);
    FILE *as_ncu = run->as_ncu;
    kprof_outcome first = {0};
    bool may = true;
    kprof_status status =
        run->options->buffers_in_memory ? kprof_session_open(reports.parent, &reports.folder) : KPROF_OK;
    for (size_t i = 0; i < count && status == KPROF_OK && may; i++) {
        end_run(run);
        kprof_log(KPROF_LOG_INFO, "run %zu of %zu of the application", i + 1, count);
        run->as_ncu = i == 0 ? as_ncu : NULL; /* further runs launch the same */
        status = run_share(run, &reports);
        first = i == 0 ? run->outcome : first;
        may = status == KPROF_OK && goes_on(run, &first, i + 1);
    }
    run->as_ncu = as_ncu;
    first.collecting = run->outcome.collecting;
    if (status == KPROF_OUTPUT || first.collecting == KPROF_OUTPUT)
        kprof_log(KPROF_LOG_ERROR, "what the runs measure is kept in %s until the last one has ended: %s",
                  reports.parent,
                  run->options->buffers_in_memory ? "--app-replay-buffer file keeps it in TMPDIR"
                                                  : "set TMPDIR to a folder with more space");
    run->outcome = first;
    if (status == KPROF_OK && first.collecting == KPROF_OK)
        status = join_shares(run, &reports);
    kprof_session_close(&reports.folder, false);
    kprof_strlist_free(&reports.paths);
    return status;
}

/* Programs may do something else each time that they run. */
static void tell_missing(profile *run)
{
    kprof_census_choice now = {0};
    KPROF_AUTO(kprof_strbuf) names = KPROF_STRBUF_INIT;
    const bool is_known = kprof_report_choose(run->report, &run->options->filter, run->options->top, &now) == KPROF_OK;
    for (size_t i = 0; i < now.missing.count && i < MISSING_SHOWN; i++) {
        KPROF_AUTO_FREE char *name = kprof_demangle_name(now.missing.items[i]);
        kprof_strbuf_printf(&names, "%s%s", i == 0 ? "" : ", ", name ? name : now.missing.items[i]);
    }
    if (is_known && now.missing_ns > LITTLE_TIME * now.chosen_ns)
        kprof_log(KPROF_LOG_WARNING,
                  "kernels, or grids, blocks and shared memory of them, that took %.3g %% of the chosen kernels' time "
                  "have no value from the second run either: they did not come, or could not be measured: %s%s",
                  100 * now.missing_ns / now.chosen_ns, kprof_strbuf_text(&names),
                  now.missing.count > MISSING_SHOWN ? " and others" : "");
    KPROF_FREE_LISTS(&now.chosen, &now.missing);
}

static kprof_status run_application(profile *run)
{
    kprof_status status = KPROF_OK;
    bool measures = true;
    if (runs_shares(run))
        return run_all_shares(run);
    if (run->options->census) { /* count and time launches, and measure what can be */
        run->takes_census = run->outcome.is_census = true;
        status = run->options->is_measured ? run_apart(run, kprof_sessions_folder()) : run_once(run);
        run->takes_census = false;
        measures = status == KPROF_OK && choose_kernels(run);
    }
    if (status != KPROF_OK || !measures)
        return status;
    end_run(run);
    status = run_once(run);
    if (run->options->census && status == KPROF_OK && run->outcome.collecting == KPROF_OK)
        tell_missing(run);
    return status;
}

static kprof_status profile_application(profile *run)
{
    kprof_status status = prepare(run);
    KPROF_THEN(status, open_session(run));
    KPROF_THEN(status, run_application(run));
    if (status != KPROF_OK)
        return status;
    kprof_outcome_explain(&run->outcome, run->options, run->report);
    if (run->as_ncu && measures(run))
        kprof_outcome_tell_as_ncu(&run->outcome, run->as_ncu);
    close_session(run);
    announce_report(run);
    print_results(run);
    return KPROF_OK;
}

/* Scripts look for this failure where ncu prints it, even if kprof finds it before the application starts. */
static void tell_permission_as_ncu(profile *run)
{
    const kprof_destination to = kprof_route_profile(run->options, isatty(STDOUT_FILENO)).as_ncu;
    if (!run->as_ncu && kprof_results_open(run->options, to, &run->as_ncu) == KPROF_OK && run->as_ncu) {
        run->outcome.spools.told = KPROF_NO_PERMISSION;
        kprof_outcome_tell_as_ncu(&run->outcome, run->as_ncu);
    }
}

int kprof_cmd_profile(const kprof_options *options)
{
    profile run = {.options = options, .signals.fd = -1, .child = {.gate = -1, .error = -1, .also = -1}};
    kprof_status status = profile_application(&run);
    if (status == KPROF_NO_PERMISSION)
        tell_permission_as_ncu(&run);
    if (run.as_ncu != run.results)
        (void)!kprof_results_close(options, run.as_ncu, KPROF_OK);
    run.outcome.printing = kprof_results_close(options, run.results, run.outcome.printing);
    int code = status == KPROF_OK ? kprof_outcome_exit_code(&run.outcome) : kprof_status_exit_code(status);
    dispose(&run, status == KPROF_OK);
    if (code == kprof_status_exit_code(KPROF_NO_GPU) || code == kprof_status_exit_code(KPROF_NO_PERMISSION) ||
        code == kprof_status_exit_code(KPROF_COUNTERS_BUSY)) /* the machine may be at fault, not the command line */
        kprof_log(KPROF_LOG_INFO, "kprof doctor tells what is wrong with this machine");
    return code;
}

int kprof_cmd_trace(const kprof_options *options)
{
    return kprof_cmd_profile(options); /* which records activities in place of counters */
}
