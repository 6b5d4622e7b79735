/* Lists the metrics of a chip with units and descriptions (--query-metrics). Needs no GPU. */
#include "metricset/select.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

static kprof_status visit_name(kprof_host *host, const kprof_query *query, const char *name)
{
    static const char *const kinds[] = {"counter", "ratio", "throughput"};
    kprof_metric_info info;
    kprof_status status = kprof_host_metric_info(host, name, &info);
    if (status != KPROF_OK)
        return status;
    kprof_query_row row = {name, info.unit, info.description, kinds[info.type]};
    status = query->visit(query->user, &row);
    kprof_metric_info_free(&info);
    return status;
}

static kprof_status visit_base(kprof_host *host, const kprof_query *query, const char *base)
{
    if (query->mode == KPROF_QUERY_BASE)
        return visit_name(host, query, base);
    kprof_strlist names = KPROF_STRLIST_INIT;
    kprof_status status = kprof_full_names(host, base, false, &names);
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++)
        status = visit_name(host, query, names.items[i]);
    kprof_strlist_free(&names);
    return status;
}

static kprof_status visit_launch(const kprof_query *query, const char *name)
{
    const kprof_launch_metric *metric = kprof_launch_metric_find(name);
    kprof_query_row row = {metric->name, metric->unit, metric->description, "launch"};
    return query->visit(query->user, &row);
}

static kprof_status list_everything(kprof_host *host, kprof_strlist *out)
{
    kprof_status status = kprof_all_base_metrics(host, out);
    for (const kprof_launch_metric *metric = kprof_launch_metrics; status == KPROF_OK && metric->name; metric++) {
        if (!kprof_strlist_add(out, metric->name))
            status = KPROF_NO_MEMORY;
    }
    return status;
}

static kprof_status add_matching(const kprof_strlist *all, const char *pattern, kprof_strlist *out)
{
    kprof_regex *regex;
    kprof_status status = kprof_regex_new(pattern, &regex);
    for (size_t i = 0; i < all->count && status == KPROF_OK; i++) {
        if (kprof_regex_matches(regex, all->items[i]) && !kprof_strlist_add_unique(out, all->items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_regex_free(regex);
    return status;
}

/* Append the bases of one word of the query: a base, a full name that stands for its base, or regex:... */
static kprof_status add_named(kprof_host *host, const kprof_strlist *all, const char *word, kprof_strlist *out)
{
    const char *pattern = kprof_regex_pattern(word);
    if (pattern)
        return add_matching(all, pattern, out);
    char *base = strndup(word, kprof_metric_base_length(word));
    kprof_status status = KPROF_NO_MEMORY;
    if (base && !kprof_strlist_contains(all, base)) {
        const char *nearest = kprof_nearest(base, (const char *const *)all->items, all->count);
        status =
            kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on chip %s%s%s%s", word, kprof_host_chip(host),
                       nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    } else if (base && kprof_strlist_add_unique(out, base)) {
        status = KPROF_OK;
    }
    free(base);
    return status;
}

kprof_status kprof_query_metrics(kprof_host *host, const kprof_query *query)
{
    kprof_strlist all = KPROF_STRLIST_INIT, named = KPROF_STRLIST_INIT;
    bool narrowed = query->names && query->names->count > 0;
    if (query->mode == KPROF_QUERY_SUFFIX && !narrowed)
        return kprof_fail(KPROF_USAGE, "--query-metrics-mode suffix needs --metrics with the base names to list");
    kprof_status status = list_everything(host, &all);
    for (size_t i = 0; narrowed && i < query->names->count && status == KPROF_OK; i++)
        status = add_named(host, &all, query->names->items[i], &named);
    kprof_strlist *chosen = narrowed ? &named : &all;
    if (status == KPROF_OK)
        kprof_strlist_sort(chosen);
    for (size_t i = 0; i < chosen->count && status == KPROF_OK; i++) {
        const char *name = chosen->items[i];
        status = kprof_launch_metric_find(name) ? visit_launch(query, name) : visit_base(host, query, name);
    }
    kprof_strlist_free(&all);
    kprof_strlist_free(&named);
    return status;
}
