/* Refuses an output that is one of kprof's inputs, under whatever name: writing it would destroy what is to be read. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/program.h"
#include "core/log.h"

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Identifies the file that a path leads to, or for a file that does not exist yet, its folder and name. */
typedef struct identity {
    dev_t device;
    ino_t inode;
    char *name; /* NULL: the file exists */
} identity;

/* False where nothing can be overwritten: a device, a pipe, a folder, or a path that leads nowhere. */
static bool identify(const char *path, identity *out)
{
    struct stat file;
    *out = (identity){0};
    if (stat(path, &file) == 0) {
        *out = (identity){file.st_dev, file.st_ino, NULL};
        return S_ISREG(file.st_mode);
    }
    char *copy = kprof_strdup(path), *other = kprof_strdup(path);
    if (copy && other && stat(dirname(copy), &file) == 0)
        *out = (identity){file.st_dev, file.st_ino, kprof_strdup(basename(other))};
    KPROF_FREE(copy, other);
    return out->name != NULL;
}

static bool is_same(const char *a, const char *b)
{
    identity first, second;
    bool is_known = identify(a, &first), is_other_known = identify(b, &second);
    bool is_one = is_known && is_other_known && first.device == second.device && first.inode == second.inode &&
                  (first.name ? second.name && strcmp(first.name, second.name) == 0 : !second.name);
    KPROF_FREE(first.name, second.name);
    return is_one;
}

static void add_folder(kprof_strlist *out, const char *folder, const char *part)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, part);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, part, entry->d_name);
        kprof_strlist_add(out, path);
    }
    if (dir)
        closedir(dir);
}

/* The files of sets, sections and findings, shipped ones and the user's. */
static kprof_status add_set_files(const kprof_options *options, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    kprof_status status = kprof_catalog_folders(options, &folders);
    for (size_t i = 0; i < folders.count && status == KPROF_OK; i++) {
        const char *folder = folders.items[i];
        add_folder(out, folder, "sets");
        add_folder(out, folder, "sections");
        add_folder(out, folder, "findings");
    }
    return status;
}

/* All that the command reads: the report, the program and the files that its arguments name, libraries, sets. */
static kprof_status find_inputs(const kprof_options *options, kprof_strlist *out)
{
    bool is_report = kprof_command_reads_reports(options->command);
    if (is_report && options->baseline)
        kprof_strlist_take(out, kprof_report_path(options->baseline));
    if (is_report && options->argument)
        kprof_strlist_take(out, kprof_report_path(options->argument));
    for (size_t i = 0; i < options->reports.count; i++)
        kprof_strlist_take(out, kprof_report_path(options->reports.items[i]));
    if (options->application)
        kprof_strlist_take(out, kprof_program_find(options->application[0])); /* NULL: there is none */
    for (char **word = options->application; word && *word; word++)
        kprof_strlist_add(out, *word);
    if (options->injection_path)
        kprof_strlist_add(out, options->injection_path);
    if (options->nvdisasm)
        kprof_strlist_add(out, options->nvdisasm);
    return is_report && !kprof_catalog_is_there() ? KPROF_OK : add_set_files(options, out);
}

/* A path of NULL is none. */
static kprof_status check_output(const char *shown, const char *path, const kprof_strlist *inputs, bool may_be_report)
{
    for (size_t i = 0; path && i < inputs->count; i++) {
        const char *input = inputs->items[i];
        if (access(input, F_OK) == 0 && is_same(path, input))
            return kprof_fail(KPROF_USAGE, "%s would overwrite %s, which is to be read; name another file", shown,
                              input);
    }
    if (path && !may_be_report && kprof_is_report(path))
        return kprof_fail(KPROF_USAGE, "%s %s is a report; name another file, or remove it", shown, path);
    return KPROF_OK;
}

/* Does --export name a file of another format? It is taken as it is. */
static bool is_export(const kprof_options *options)
{
    return options->command->run == kprof_cmd_export;
}

static kprof_status check_outputs(const kprof_options *options, const char *log_file, const char *export_path,
                                  const kprof_strlist *inputs)
{
    kprof_status status = check_output("--log-file", log_file, inputs, false);
    KPROF_THEN(status, check_output("--html", options->html_path, inputs, false));
    KPROF_THEN(status, check_output("--export", export_path, inputs, !is_export(options)));
    if (status == KPROF_OK && log_file && export_path && is_same(log_file, export_path))
        status = kprof_fail(KPROF_USAGE, "--log-file %s and --export %s are one file", log_file, export_path);
    /* "kprof report run.kprof >>run.kprof". What an application prints may go wherever its user wants. */
    if (status == KPROF_OK && kprof_command_reads_reports(options->command))
        status = check_output("stdout", "/dev/fd/1", inputs, true);
    return status;
}

kprof_status kprof_outputs_check(const kprof_options *options)
{
    bool makes_report = options->command == kprof_commands || options->command->operand == KPROF_OPERAND_FOLDER ||
                        options->command->operand == KPROF_OPERAND_MANY_REPORTS;
    bool is_file = options->log_file && kprof_route_report(options).results == KPROF_TO_FILE;
    bool is_report = kprof_command_reads_reports(options->command);
    KPROF_AUTO_FREE char *export_path = NULL;
    KPROF_AUTO(kprof_strlist) inputs = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    if (makes_report && options->export_path)
        status = kprof_export_path_expand(options->export_path, &export_path);
    if (is_export(options) && options->export_path && strcmp(options->export_path, "-") != 0)
        export_path = kprof_strdup(options->export_path);
    if (status == KPROF_OK && (is_file || export_path || is_report))
        status = find_inputs(options, &inputs);
    return KPROF_THEN(status, check_outputs(options, is_file ? options->log_file : NULL, export_path, &inputs));
}
