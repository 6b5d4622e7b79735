/* kprof recover: makes a report of what the processes of a run wrote, if its kprof was killed or could not store
 * that. */
#include "cli/begin.h"
#include "cli/commands.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/spools.h"
#include "core/control.h"
#include "core/log.h"
#include "report/model/number.h"
#include "report/page/page_stats.h"
#include "report/store/report_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct recovery {
    const kprof_options *options;
    kprof_signals signals;
    kprof_session session;
    kprof_session_note note;
    char *path;
    kprof_create_mode mode;
    kprof_report *report;
    kprof_report_counts counts;
    bool has_parts; /* launches were measured with plans of kprof ctl */
    bool is_empty;  /* the run ended before any process wrote anything */
} recovery;

/* Find the named session, or the only one. *out is not open if there is none. */
static kprof_status open_session(const kprof_options *options, kprof_session *out)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    if (options->argument)
        return kprof_session_reopen(options->argument, out);
    kprof_session_find_old(&found);
    if (found.count == 0)
        kprof_log(KPROF_LOG_INFO, "no run in %s was cut short: there is nothing to recover", kprof_sessions_folder());
    else if (found.count == 1)
        status = kprof_session_reopen(found.items[0], out);
    else
        status = kprof_fail(KPROF_USAGE, "%zu runs were cut short; name one: kprof recover DIR", found.count);
    for (size_t i = 0; i < found.count && found.count > 1; i++) {
        struct stat info;
        struct tm began;
        char text[32] = "?";
        if (stat(found.items[i], &info) == 0 && localtime_r(&info.st_mtim.tv_sec, &began))
            strftime(text, sizeof text, "%F %R", &began);
        kprof_log(KPROF_LOG_ERROR, "  %s, last changed %s", found.items[i], text);
    }
    return status;
}

/* Was the run to replace a report? Then it built its own beside that. */
static bool replaces(const kprof_session_note *note)
{
    return note->path && strcmp(note->place, note->path) != 0;
}

/* Is it the file in which the run began its report? The inode alone does not tell, since another file may have been
 * given it. */
static bool is_known(const recovery *run, const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && file.st_dev == run->note.device && file.st_ino == run->note.inode;
}

/* Has the run begun its report in this file, and never finished it? */
static bool is_own_unfinished(const recovery *run, const char *path)
{
    return is_known(run, path) && kprof_report_is_unfinished(path);
}

/* Did the run itself leave this report: unfinished, damaged, or without what the disk had no space for? */
static bool is_own_remainder(const recovery *run, const char *path)
{
    char seed[PATH_MAX + 32];
    snprintf(seed, sizeof seed, "%s/" KPROF_SESSION_SEED, run->session.dir);
    if (is_own_unfinished(run, path))
        return true;
    if (!kprof_is_report(path))
        return false;
    return kprof_report_is_readable(path) ? kprof_report_is_same_run(seed, path) : is_known(run, path);
}

/* Name the report as --export says, else as the run's own --export said, else after the session, in the current
 * folder. */
static kprof_status name_report(recovery *run)
{
    const kprof_options *options = run->options;
    run->mode = options->force_overwrite ? KPROF_CREATE_REPLACE : KPROF_CREATE_NEW;
    if (options->export_path)
        return kprof_export_path_claim(options, &run->path, &run->mode);
    const char *path = run->note.path, *name = strrchr(run->session.dir, '/') + 1;
    run->path = kprof_strprintf("%s%s", path ? path : name, path ? "" : ".kprof");
    if (replaces(&run->note) || is_own_remainder(run, run->path))
        run->mode = KPROF_CREATE_REPLACE;
    return KPROF_OK;
}

static kprof_status read_code(const recovery *run, kprof_report *report)
{
    static char here[] = ".", *current[] = {here};
    const kprof_strlist *given = &run->options->source_folders, working = {current, 1, 1};
    kprof_code_options code = kprof_code_options_of(run->options, &run->session);
    code.source_folders = given->count ? given : &working;
    return kprof_report_read_code(report, &code);
}

/* Store the records of the processes that have ended, and say which still run. */
static kprof_status ingest(recovery *run)
{
    kprof_progress progress = {.out = NULL};
    kprof_spools *spools = kprof_spools_new(&run->session, run->report, &progress);
    kprof_status status = kprof_spools_finish(spools, 0);
    KPROF_THEN(status, read_code(run, run->report));
    if (status == KPROF_OK) {
        const kprof_spools_summary summary = kprof_spools_summarize(spools);
        run->is_empty = summary.processes == 0;
        run->has_parts = summary.elsewhere > 0;
        status = run->is_empty ? summary.unread : KPROF_OK;
    }
    KPROF_THEN(status, kprof_report_count(run->report, &run->counts));
    kprof_spools_free(spools);
    return status;
}

/* Make "run-1.kprof" beside the run's own report, "run.kprof": it has the launches that kprof ctl had measured with its
 * first plan. */
static kprof_status recover_part(const recovery *run, uint32_t plan, const char *seed)
{
    kprof_report *report = NULL;
    kprof_report_counts counts = {0};
    KPROF_AUTO(kprof_strbuf) path = KPROF_STRBUF_INIT;
    const size_t length = strlen(run->path), extension = kprof_has_extension(run->path) ? strlen(".kprof") : 0;
    kprof_strbuf_printf(&path, "%.*s-%u.kprof", (int)(length - extension), run->path, plan);
    const kprof_create_mode mode = run->options->force_overwrite ? KPROF_CREATE_REPLACE : KPROF_CREATE_NEW;
    kprof_status status = kprof_report_begin_again(run->options, &run->session,
                                                   &(kprof_report_target){path.data, mode, NULL, seed}, &report);
    kprof_progress progress = {.out = NULL};
    kprof_spools *spools = kprof_spools_new(&run->session, report, &progress);
    kprof_spools_choose(spools, &(kprof_spools_choice){.plan = plan});
    KPROF_THEN(status, kprof_spools_poll(spools));
    kprof_spools_free(spools);
    KPROF_THEN(status, read_code(run, report));
    KPROF_THEN(status, kprof_report_count(report, &counts));
    if (status == KPROF_OK && counts.profiled + counts.not_measured > 0)
        status = kprof_report_close(report);
    else
        kprof_report_discard(report);
    if (status == KPROF_OK && counts.profiled + counts.not_measured > 0)
        kprof_log(KPROF_LOG_INFO, "report: %s (%lu launch%s profiled, with other sets)", path.data, counts.profiled,
                  kprof_ending(counts.profiled, "es"));
    return status;
}

static kprof_status recover_parts(const recovery *run)
{
    char seed[64];
    kprof_status status = KPROF_OK;
    for (uint32_t plan = 1; plan < KPROF_CONTROL_PLANS && run->has_parts && status == KPROF_OK; plan++) {
        snprintf(seed, sizeof seed, KPROF_SESSION_SEED ".%u", plan);
        if (faccessat(run->session.folder, seed, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            status = recover_part(run, plan, seed);
    }
    return status;
}

/* Was it a run of kprof trace? */
static bool is_trace(const recovery *run)
{
    return run->counts.activities > 0 && run->counts.profiled + run->counts.not_measured == 0;
}

static kprof_status print_pages(const recovery *run, kprof_report *report, FILE *results)
{
    const kprof_print_options print = kprof_print_options_make(run->options, results);
    KPROF_AUTO(kprof_strlist) tables = KPROF_STRLIST_INIT;
    const kprof_stats_content content = {.tables = &tables};
    if (!is_trace(run))
        return kprof_report_print(&report, 1, &print, results);
    const kprof_status status = kprof_stats_choose(&run->options->stats_reports, &tables);
    return status == KPROF_OK
               ? kprof_page_show(&kprof_stats_page, &(kprof_page_input){&report, 1, &content}, &print, results)
               : status;
}

static kprof_status print_report(const recovery *run)
{
    const kprof_options *options = run->options;
    kprof_report *report = NULL;
    FILE *results = NULL;
    if (options->format == KPROF_UNSET)
        return KPROF_OK;
    kprof_status status = kprof_report_open(run->path, &report);
    KPROF_THEN(status, kprof_results_open(options, kprof_route_report(options).results, &results));
    KPROF_THEN(status, print_pages(run, report, results));
    status = kprof_results_close(options, results, status);
    (void)!kprof_report_close(report);
    return status;
}

static kprof_status recover(recovery *run)
{
    /* Without a seed no process has started, or kprof was removing the session, and its report is complete. */
    if (faccessat(run->session.folder, KPROF_SESSION_SEED, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        run->is_empty = true;
        return KPROF_OK;
    }
    kprof_session_read_note(&run->session, &run->note);
    kprof_status status = name_report(run);
    KPROF_THEN(status, kprof_report_begin_again(run->options, &run->session,
                                                &(kprof_report_target){run->path, run->mode, NULL, KPROF_SESSION_SEED},
                                                &run->report));
    KPROF_THEN(status, ingest(run));
    if (status != KPROF_OK || run->is_empty) {
        kprof_report_discard(run->report);
        if (status == KPROF_OK && run->note.place && is_own_unfinished(run, run->note.place))
            kprof_report_file_remove(run->note.place);
        return status;
    }
    status = kprof_report_close(run->report);
    if (status != KPROF_OK)
        return status;
    if (replaces(&run->note) && is_own_remainder(run, run->note.place))
        kprof_report_file_remove(run->note.place);
    if (is_trace(run))
        kprof_log(KPROF_LOG_INFO, "report: %s (%lu activities)", run->path, run->counts.activities);
    else
        kprof_log(KPROF_LOG_INFO, "report: %s (%lu launch%s profiled, %lu seen)", run->path, run->counts.profiled,
                  kprof_ending(run->counts.profiled, "es"), run->counts.launches);
    return recover_parts(run);
}

int kprof_cmd_recover(const kprof_options *options)
{
    recovery run = {.options = options, .signals.fd = -1};
    kprof_status status = kprof_nvdisasm_check(options->nvdisasm);
    KPROF_THEN(status, open_session(options, &run.session));
    if (status != KPROF_OK || !run.session.dir)
        return kprof_status_exit_code(status);
    status = kprof_signals_block(&run.signals);
    KPROF_THEN(status, recover(&run));
    if (status == KPROF_OK && run.is_empty)
        kprof_log(KPROF_LOG_INFO, "%s: the run ended before it collected anything", run.session.dir);
    if (status == KPROF_UNSUPPORTED || status == KPROF_BAD_SPOOL || status == KPROF_BAD_REPORT) {
        kprof_log(KPROF_LOG_ERROR,
                  "%s is left as it is, with all that the processes of the run wrote: remove it if nobody needs that",
                  run.session.dir);
        kprof_session_leave(&run.session);
    }
    kprof_session_close(&run.session, status != KPROF_OK);
    kprof_signals_restore(&run.signals);
    if (status == KPROF_OK && !run.is_empty)
        status = print_report(&run);
    kprof_session_note_free(&run.note);
    free(run.path);
    return kprof_status_exit_code(status);
}
