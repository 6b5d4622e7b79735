/* What a report has before the application starts: the line, the sets, and a plan for each chip. */
#include "cli/begin.h"
#include "cli/words.h"
#include "core/log.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The sets asked for, NULL-terminated; the default set when nothing else was asked for either. */
static const char **asked_sets(const kprof_selection *selection, const char *default_set)
{
    bool nothing = selection->sets.count + selection->sections.count + selection->metrics.count == 0;
    const char **sets = calloc(selection->sets.count + 2, sizeof *sets);
    for (size_t i = 0; sets && i < selection->sets.count; i++)
        sets[i] = selection->sets.items[i];
    if (sets && nothing)
        sets[0] = default_set;
    return sets;
}

kprof_status kprof_report_begin_run(const kprof_options *options, const kprof_plans *plans,
                                    const kprof_report_target *to, kprof_report **out)
{
    char directory[PATH_MAX] = "";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char *command_line = kprof_words_join(options->words);
    const char **sets = asked_sets(&options->selection, to->default_set);
    kprof_run_info info = {
        .command_line = command_line ? command_line : "",
        .working_directory = getcwd(directory, sizeof directory) ? directory : "",
        .kprof_version = KPROF_VERSION,
        .sets = sets,
        .start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
    };
    kprof_status status =
        sets ? kprof_report_create(to->path, to->mode, &info, out) : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    if (status == KPROF_OK && options->source_per_launch)
        kprof_report_keep_launches_apart(*out);
    for (size_t i = 0; i < plans->count && status == KPROF_OK; i++) {
        const kprof_chip_plan *chip = &plans->chips[i];
        kprof_plan_passes passes = {&chip->plan.variants.witnesses, &chip->plan.schedule};
        status = kprof_report_add_plan(*out, &chip->plan, chip->host);
        if (status == KPROF_OK)
            status = kprof_report_add_passes(*out, &chip->plan, &passes);
    }
    free(sets);
    free(command_line);
    return status;
}
