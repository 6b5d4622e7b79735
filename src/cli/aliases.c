/* Finds the metrics of reports that the aliases of conditions stand for. */
#include "cli/aliases.h"
#include "cli/paths.h"
#include "core/log.h"

#include <stdlib.h>

/* The metrics of all reports, each list sorted. */
typedef struct metric_names {
    kprof_strlist *lists; /* [count] */
    size_t count;
} metric_names;

static size_t count_having(const metric_names *names, const char *name)
{
    return KPROF_SUM(i, names->count, kprof_strlist_contains_sorted(&names->lists[i], name));
}

static bool all_have(void *user, const char *name)
{
    const metric_names *names = user;
    return names->count > 0 && count_having(names, name) == names->count;
}

static kprof_status read_names(const kprof_condition_use *use, metric_names *out)
{
    kprof_status status = KPROF_OK;
    out->lists = kprof_calloc(use->report_count + 1, sizeof *out->lists);
    for (size_t i = 0; i < use->report_count && status == KPROF_OK; i++) {
        out->count = i + 1;
        status = kprof_report_metric_names(use->reports[i], &out->lists[i]);
        kprof_strlist_sort(&out->lists[i]);
    }
    return status;
}

static kprof_status fail_alias(const kprof_condition_use *use, const kprof_condition *condition,
                               const kprof_alias_entry *alias)
{
    const char *reports = use->report_count == 1 ? "the report has" : "the reports have";
    if (alias->is_formula)
        return kprof_fail(KPROF_UNKNOWN_NAME,
                          "%s \"%s\": %s no value of %s; it is computed where --metrics %s asks for it", use->option,
                          condition->text, reports, alias->name, alias->name);
    return kprof_fail(KPROF_UNKNOWN_NAME, "%s \"%s\": %s no metric that stands for %s%s%s", use->option,
                      condition->text, reports, alias->name, alias->stands_for ? ", such as " : "",
                      alias->stands_for ? alias->stands_for : "");
}

static kprof_status translate(const kprof_condition_use *use, const metric_names *names, const kprof_alias *alias,
                              kprof_condition *condition)
{
    const kprof_name_supply supply = {all_have, (void *)names};
    const kprof_alias_entry entry = kprof_alias_describe(alias);
    KPROF_AUTO(kprof_strlist) chosen = KPROF_STRLIST_INIT;
    kprof_alias_choose(alias, &supply, &chosen);
    if (chosen.count != 1 || (entry.is_formula && !kprof_begins_with(chosen.items[0], "derived__")))
        return fail_alias(use, condition, &entry);
    free(condition->metric);
    condition->metric = kprof_strdup(chosen.items[0]);
    return KPROF_OK;
}

kprof_status kprof_conditions_translate(const kprof_options *options, const kprof_condition_use *use)
{
    kprof_catalog *catalog = NULL;
    metric_names names = {NULL, 0};
    const kprof_name_supply supply = {all_have, &names};
    if (use->condition_count == 0 || !kprof_catalog_is_there())
        return KPROF_OK;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    KPROF_THEN(status, read_names(use, &names));
    for (size_t i = 0; i < use->condition_count && status == KPROF_OK; i++) {
        kprof_condition *condition = &use->conditions[i];
        const kprof_alias *alias = kprof_catalog_find_alias(catalog, condition->metric);
        if (alias)
            status = translate(use, &names, alias, condition);
        const bool is_unknown = !alias && count_having(&names, condition->metric) == 0;
        const char *nearest = is_unknown ? kprof_nearest_alias(catalog, condition->metric, &supply) : NULL;
        if (nearest)
            status = kprof_fail(KPROF_UNKNOWN_NAME, "%s \"%s\": there is no metric \"%s\"; did you mean \"%s\"?",
                                use->option, condition->text, condition->metric, nearest);
    }
    for (size_t i = 0; i < names.count; i++)
        kprof_strlist_free(&names.lists[i]);
    free(names.lists);
    kprof_catalog_free(catalog);
    return status;
}

kprof_status kprof_filters_translate(const kprof_options *options, kprof_report *report)
{
    const kprof_condition_use use = {"--filter", options->conditions, options->filters.count, &report, 1};
    return kprof_conditions_translate(options, &use);
}
