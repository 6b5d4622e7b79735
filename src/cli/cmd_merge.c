/* kprof merge: make one report of those of several ranks, processes or machines. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/words.h"
#include "core/log.h"
#include "report/merge.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Refuse a file that is named twice, also by a link. */
static kprof_status check_files(const kprof_strlist *names)
{
    struct stat *files = calloc(names->count + 1, sizeof *files);
    kprof_status status = files ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++) {
        char *path = kprof_report_path(names->items[i]);
        if (!path)
            status = kprof_fail(KPROF_NO_MEMORY, "out of memory");
        else if (stat(path, &files[i]) != 0)
            files[i].st_nlink = 0; /* opening it tells why */
        for (size_t k = 0; k < i && status == KPROF_OK && files[i].st_nlink > 0; k++) {
            if (files[k].st_nlink > 0 && files[k].st_dev == files[i].st_dev && files[k].st_ino == files[i].st_ino)
                status = kprof_fail(KPROF_USAGE, "%s and %s are one file", names->items[k], names->items[i]);
        }
        free(path);
    }
    free(files);
    return status;
}

static kprof_status create(const kprof_options *options, const char *path, bool claimed, kprof_report **out)
{
    char *command_line = kprof_words_join(options->words), *folder = getcwd(NULL, 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    kprof_run_info info = {
        .command_line = command_line ? command_line : "",
        .working_directory = folder ? folder : "",
        .kprof_version = KPROF_VERSION,
        .start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
    };
    kprof_create_mode mode = options->force_overwrite ? KPROF_CREATE_REPLACE : KPROF_CREATE_NEW;
    kprof_status status = kprof_report_create(path, claimed ? KPROF_CREATE_CLAIMED : mode, &info, out);
    free(command_line);
    free(folder);
    return status;
}

static kprof_status add_all(const kprof_options *options, kprof_report *report)
{
    kprof_merge *merge = NULL;
    kprof_status status = kprof_merge_new(report, &merge);
    for (size_t i = 0; i < options->reports.count && status == KPROF_OK; i++) {
        char *path = kprof_report_path(options->reports.items[i]);
        status = path ? kprof_merge_add(merge, path, options->reports.items[i])
                      : kprof_fail(KPROF_NO_MEMORY, "out of memory");
        free(path);
    }
    if (status == KPROF_OK)
        status = kprof_merge_finish(merge);
    kprof_merge_free(merge);
    return status;
}

int kprof_cmd_merge(const kprof_options *options)
{
    kprof_report *report = NULL;
    char *path = NULL;
    bool claimed = false;
    kprof_status status = KPROF_OK;
    if (options->reports.count < 2 || !options->export_path)
        status = kprof_fail(KPROF_USAGE, "which reports? usage: kprof merge A.kprof B.kprof ... -o ALL.kprof");
    if (status == KPROF_OK && (options->format != KPROF_UNSET || options->log_file))
        status = kprof_fail(KPROF_USAGE, "kprof merge prints nothing; leave formats and --log-file out");
    if (status == KPROF_OK)
        status = check_files(&options->reports);
    if (status == KPROF_OK)
        status = kprof_export_path_claim(options->export_path, &path, &claimed);
    if (status == KPROF_OK)
        status = create(options, path, claimed, &report);
    if (status == KPROF_OK)
        status = add_all(options, report);
    if (status == KPROF_OK)
        status = kprof_report_close(report);
    else
        kprof_report_discard(report);
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "report: %s (%zu reports)", path, options->reports.count);
    free(path);
    return kprof_status_exit_code(status);
}
