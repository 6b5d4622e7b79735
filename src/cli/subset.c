/* Goes through the merging of reports, also for one. */
#include "cli/subset.h"
#include "cli/begin.h"
#include "cli/paths.h"
#include "cli/unfinished.h"
#include "core/log.h"
#include "report/model/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuse a file that is named twice, also by a link. */
static kprof_status check_files(const kprof_strlist *names)
{
    KPROF_AUTO_FREE struct stat *files = kprof_calloc(names->count + 1, sizeof *files);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++) {
        KPROF_AUTO_FREE char *path = kprof_report_path(names->items[i]);
        if (stat(path, &files[i]) != 0)
            files[i].st_nlink = 0; /* opening it tells why */
        for (size_t k = 0; k < i && status == KPROF_OK && files[i].st_nlink > 0; k++)
            if (files[k].st_nlink > 0 && files[k].st_dev == files[i].st_dev && files[k].st_ino == files[i].st_ino)
                status = kprof_fail(KPROF_USAGE, "%s and %s are one file", names->items[k], names->items[i]);
    }
    return status;
}

static kprof_status add_all(const kprof_options *options, const kprof_subset *subset, kprof_report *report)
{
    kprof_merge *merge = kprof_merge_new(report);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < options->reports.count && status == KPROF_OK; i++) {
        KPROF_AUTO_FREE char *path = kprof_report_path(options->reports.items[i]);
        status = kprof_merge_add(merge, path, options->reports.items[i], subset);
    }
    KPROF_THEN(status, kprof_merge_finish(merge));
    kprof_merge_free(merge);
    return status;
}

/* The file to build the report in: without --export, in a folder of its own, which is closed to others. */
static kprof_status claim(const kprof_options *options, char **path, kprof_create_mode *mode)
{
    if (options->export_path)
        return kprof_export_path_claim(options, path, mode);
    *mode = KPROF_CREATE_NEW;
    const char *folder = secure_getenv("TMPDIR");
    *path = kprof_strprintf("%s/kprof-part-XXXXXX/part.kprof", folder && *folder == '/' ? folder : "/tmp");
    char *name = strrchr(*path, '/');
    *name = '\0';
    kprof_unfinished_hold();
    if (mkdtemp(*path)) {
        KPROF_AUTO_FREE char *own = kprof_strdup(*path);
        *name = '/';
        kprof_unfinished_begin(*path, own);
        return KPROF_OK;
    }
    kprof_status status = kprof_fail(KPROF_OUTPUT, "cannot make %s: %s; set TMPDIR", *path, strerror(errno));
    kprof_unfinished_end();
    free(*path);
    *path = NULL;
    return status;
}

void kprof_subset_discard(char *path)
{
    if (!path)
        return;
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    free(path);
    kprof_unfinished_end();
}

kprof_status kprof_reports_join(const kprof_options *options, const kprof_subset *subset, char **path)
{
    kprof_report *report = NULL;
    kprof_create_mode mode;
    *path = NULL;
    kprof_status status = check_files(&options->reports);
    KPROF_THEN(status, claim(options, path, &mode));
    kprof_options line = *options;
    line.selection = (kprof_selection){.sets = KPROF_STRLIST_INIT}; /* the sets are those of the reports */
    if (options->export_path)
        kprof_unfinished_hold();
    KPROF_THEN(status, kprof_report_begin_run(&line, &(kprof_plans){.count = 0},
                                              &(kprof_report_target){*path, mode, NULL, NULL}, &report));
    if (status == KPROF_OK && options->export_path)
        kprof_unfinished_begin(kprof_report_place(report), NULL);
    if (status == KPROF_OK)
        kprof_report_keep_only_if_whole(report);
    KPROF_THEN(status, add_all(options, subset, report));
    if (status == KPROF_OK)
        status = kprof_report_close(report);
    else
        kprof_report_discard(report);
    if (options->export_path)
        kprof_unfinished_end();
    if (status == KPROF_OK)
        return KPROF_OK;
    if (options->export_path)
        free(*path);
    else
        kprof_subset_discard(*path);
    *path = NULL;
    return status;
}

bool kprof_subset_needs_file(const kprof_options *options)
{
    return options->reports.count > 1 || options->export_path || options->launches.count > 0;
}

bool kprof_subset_is_wanted(const kprof_options *options)
{
    const kprof_selection *selection = &options->selection;
    return kprof_subset_needs_file(options) || selection->sets.count > 0 || selection->sections.count > 0 ||
           selection->metrics.count > 0;
}

/* "5" or "5-9". */
static kprof_status read_range(const char *word, kprof_launch_range *out)
{
    char *end = NULL;
    errno = 0;
    out->first = out->last = strtoll(word, &end, 10);
    bool is_valid = *word >= '0' && *word <= '9' && errno == 0;
    if (is_valid && *end == '-' && end[1] >= '0' && end[1] <= '9')
        out->last = strtoll(end + 1, &end, 10);
    if (!is_valid || *end || errno || out->last < out->first)
        return kprof_fail(KPROF_USAGE, "--launch: \"%s\" is not valid, give the number of a launch, or two as 5-9",
                          word);
    return KPROF_OK;
}

/* The sections of the sets that are asked for. */
static kprof_status find_sections(const kprof_options *options, const kprof_catalog *catalog, kprof_strlist *out)
{
    if (options->selection.sets.count == 0)
        return KPROF_OK;
    const kprof_selection sets = {.sets = options->selection.sets};
    kprof_status status = kprof_selection_check(catalog, &sets);
    for (size_t i = 0; status == KPROF_OK && i < kprof_catalog_set_count(catalog); i++) {
        const kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        bool is_asked_for = kprof_strlist_contains(&sets.sets, set.id);
        for (const char *const *alias = set.aliases; *alias; alias++)
            is_asked_for = is_asked_for || kprof_strlist_contains(&sets.sets, *alias);
        for (const char *const *id = set.section_ids; is_asked_for && *id && status == KPROF_OK; id++)
            kprof_strlist_add(out, *id);
    }
    return status;
}

/* "--metrics group:ID" shows the section, whose metrics a run collects for it. */
static void part_groups(const kprof_selection *selection, kprof_choice_of_part *out)
{
    kprof_strlist_add_all(&out->sections, &selection->sections);
    for (size_t i = 0; i < selection->metrics.count; i++) {
        const char *word = selection->metrics.items[i];
        const char *group = out->catalog ? kprof_after(word, "group:") : NULL;
        const char *id = group ? kprof_catalog_section_id(out->catalog, group) : NULL;
        (void)kprof_strlist_add(id ? &out->sections : &out->metrics, id ? id : word);
    }
}

kprof_status kprof_subset_read(const kprof_options *options, kprof_choice_of_part *out)
{
    *out = (kprof_choice_of_part){.sections_of_sets = KPROF_STRLIST_INIT};
    const kprof_strlist *launches = &options->launches;
    out->ranges = kprof_calloc(launches->count + 1, sizeof *out->ranges);
    out->path = options->reports.count == 1 ? kprof_report_path(options->argument) : NULL;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < launches->count && status == KPROF_OK; i++)
        status = read_range(launches->items[i], &out->ranges[i]);
    /* Set files, where a choice is made by name. A kprof that was copied alone knows neither aliases nor sections. */
    const kprof_selection *selection = &options->selection;
    const bool may_tell = (selection->metrics.count > 0 || selection->sections.count > 0) && kprof_catalog_is_there();
    if (status == KPROF_OK && (selection->sets.count > 0 || may_tell))
        status = kprof_catalog_locate(options, &out->catalog);
    KPROF_THEN(status, find_sections(options, out->catalog, &out->sections_of_sets));
    part_groups(selection, out);
    out->subset = (kprof_subset){
        .name = out->path ? out->path : "these reports",
        .filter = &options->filter,
        .ranges = out->ranges,
        .range_count = launches->count,
        .sections = &out->sections,
        .sections_of_set = &out->sections_of_sets,
        .metrics = &out->metrics,
        .with_instances = options->page == KPROF_PAGE_RAW && options->format == KPROF_FORMAT_CSV_NCU,
        .catalog = out->catalog,
    };
    return status;
}

void kprof_subset_free(kprof_choice_of_part *choice)
{
    KPROF_FREE_LISTS(&choice->sections_of_sets, &choice->sections, &choice->metrics);
    kprof_catalog_free(choice->catalog);
    KPROF_FREE(choice->path, choice->ranges);
}

kprof_status kprof_subset_make(const kprof_options *options, const kprof_subset *subset, char **path)
{
    static const kprof_strlist all = KPROF_STRLIST_INIT;
    kprof_subset made = *subset;
    if (!options->export_path)
        made.sections = made.sections_of_set = made.metrics = &all;
    return kprof_reports_join(options, &made, path);
}
