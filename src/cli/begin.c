/* Gives a report the line, the sets, and a plan for each chip, before the application starts. */
#include "cli/begin.h"
#include "cli/words.h"
#include "core/files.h"
#include "core/folder.h"
#include "core/log.h"
#include "core/monotonic.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* The sets asked for, NULL-terminated; the default set when nothing else was asked for either. */
static const char **asked_sets(const kprof_selection *selection, const char *default_set, const char *rank)
{
    bool nothing = kprof_selection_count(selection) == 0;
    const char **sets = kprof_calloc(selection->sets.count + 3, sizeof *sets);
    for (size_t i = 0; i < selection->sets.count; i++)
        sets[i] = selection->sets.items[i];
    if (nothing)
        sets[0] = default_set;
    for (size_t i = 0; *rank; i++) /* behind them; kprof merge knows by it what to join */
        if (!sets[i]) {
            sets[i] = rank;
            break;
        }
    return sets;
}

kprof_status kprof_report_begin_run(const kprof_options *options, const kprof_plans *plans,
                                    const kprof_report_target *to, kprof_report **out)
{
    char directory[PATH_MAX] = "";
    KPROF_AUTO_FREE char *command_line = kprof_words_join(options->words, options->application);
    kprof_rank rank;
    char rank_text[64] = "";
    kprof_status status = options->rank_passes ? kprof_rank_find(&rank) : KPROF_OK;
    if (status == KPROF_OK && options->rank_passes)
        snprintf(rank_text, sizeof rank_text, KPROF_RANK_OF " %u of %u", rank.number, rank.count);
    KPROF_AUTO_FREE const char **sets = asked_sets(&options->selection, to->default_set, rank_text);
    kprof_run_info info = {
        .command_line = command_line,
        .working_directory = getcwd(directory, sizeof directory) ? directory : "",
        .kprof_version = KPROF_VERSION,
        .sets = sets,
        .start_unix_ns = kprof_unix_ns(),
    };
    KPROF_THEN(status, kprof_report_create(to->path, to->mode, &info, out));
    if (status == KPROF_OK && options->source_per_launch)
        kprof_report_keep_launches_apart(*out);
    const bool has_passes = kprof_plans_runs(plans) == 0 || plans->in_run;
    for (size_t i = 0; i < plans->count && status == KPROF_OK; i++) {
        const kprof_chip_plan *chip = &plans->chips[i];
        kprof_plan_passes passes = {&chip->plan.variants.witnesses, &chip->plan.schedule};
        status = kprof_report_add_plan(*out, &chip->plan, chip->host);
        if (status == KPROF_OK && has_passes)
            status = kprof_report_add_passes(*out, &chip->plan, &passes);
    }
    return status;
}

kprof_status kprof_report_begin_again(const kprof_options *options, const kprof_session *session,
                                      const kprof_report_target *to, kprof_report **out)
{
    const char *reason;
    KPROF_AUTO_CLOSE const int file = kprof_folder_open_file(session->folder, to->seed, O_RDONLY, &reason);
    if (file < 0)
        return kprof_fail(KPROF_BAD_SPOOL, "reading %s/%s: %s", session->dir, to->seed, reason);
    kprof_status status = kprof_report_recreate(to->path, to->mode, file, out);
    if (status == KPROF_OK && options->source_per_launch)
        kprof_report_keep_launches_apart(*out);
    return status;
}

kprof_code_options kprof_code_options_of(const kprof_options *options, const kprof_session *session)
{
    return (kprof_code_options){.folder = session->folder,
                                .nvdisasm = options->nvdisasm,
                                .keeps_source = options->import_source == 1,
                                .keeps_sass = options->import_sass == 1,
                                .places = {&options->source_folders, &options->resolve_source_files, NULL}};
}
