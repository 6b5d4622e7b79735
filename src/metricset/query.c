/* kprof list metrics: the metrics of a chip with units and descriptions. Needs no GPU. */
#include "metricset/select.h"

#include "core/log.h"
#include "core/regex.h"

#include <string.h>

const char *kprof_metric_unit(const char *name, const char *unit)
{
    const bool is_time =
        unit && strcmp(unit, "inst") == 0 && kprof_begins_with(name, "smsp__average_warps_issue_stalled_");
    const bool is_count = unit && strcmp(unit, "cycle") == 0 && strcmp(name, "sm__icc_requests.sum") == 0;
    return is_time ? "cycle" : is_count ? "request" : unit;
}

static kprof_status visit_name(kprof_host *host, const kprof_query *query, const char *name)
{
    static const char *const kinds[] = {"counter", "ratio", "throughput"};
    kprof_metric_info info;
    kprof_status status = kprof_host_metric_info(host, name, &info);
    if (status != KPROF_OK)
        return status;
    kprof_query_row row = {name, kprof_metric_unit(name, info.unit), info.description, kinds[info.type]};
    status = query->visit(query->user, &row);
    kprof_metric_info_free(&info);
    return status;
}

/* A base name; or a full name, which a pattern has found. */
static kprof_status visit_base(kprof_host *host, const kprof_query *query, const char *base)
{
    if (query->mode == KPROF_QUERY_BASE || base[kprof_metric_base_length(base)] != '\0')
        return visit_name(host, query, base);
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_status status = kprof_full_names(host, base, false, &names);
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++)
        status = visit_name(host, query, names.items[i]);
    return status;
}

/* Names that a word of --metrics is to be looked up for, and where to. */
typedef struct lookup {
    kprof_host *host;
    const kprof_query *query;
    const kprof_strlist *all; /* every base name */
    kprof_strlist *out;
} lookup;

/* Base names that match; where none does, full names, as in a run. */
static kprof_status add_matching(const lookup *at, const char *word)
{
    kprof_regex *regex;
    bool found = false;
    kprof_status status = kprof_regex_new("--metrics", kprof_regex_pattern(word), &regex);
    for (size_t i = 0; i < at->all->count && status == KPROF_OK; i++) {
        bool matches;
        status = kprof_regex_search(regex, at->all->items[i], &matches);
        if (status != KPROF_OK || !matches || kprof_instruction_is_word(at->all->items[i]))
            continue;
        found = true;
        kprof_strlist_add_unique(at->out, at->all->items[i]);
    }
    kprof_regex_free(regex);
    return status == KPROF_OK && !found ? kprof_select_metrics(at->query->catalog, at->host, word, at->out) : status;
}

/* "group:", "breakdown:" and aliases stand for full names: the query is about their base names. */
static kprof_status add_bases(const lookup *at, const char *word)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_status status = kprof_select_metrics(at->query->catalog, at->host, word, &names);
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++)
        kprof_strlist_take_unique(at->out, kprof_strndup(names.items[i], kprof_metric_base_length(names.items[i])));
    return status;
}

/* A base name, a full name that stands for its base, or a word that --metrics expands. */
static kprof_status add_named(const lookup *at, const char *word)
{
    if (kprof_regex_pattern(word))
        return add_matching(at, word);
    if (kprof_is_group(word) || kprof_catalog_find_alias(at->query->catalog, word) || kprof_instruction_is_word(word))
        return add_bases(at, word);
    KPROF_AUTO_FREE char *base = kprof_strndup(word, kprof_metric_base_length(word));
    if (!kprof_strlist_contains(at->all, base))
        return kprof_fail_unknown_metric(at->query->catalog, at->host, word);
    const bool is_full_name = strlen(base) < strlen(word);
    kprof_status status = is_full_name ? kprof_metrics_check(at->query->catalog, at->host, word) : KPROF_OK;
    if (status == KPROF_OK)
        kprof_strlist_add_unique(at->out, base);
    return status;
}

/* A word as lists show it. */
static kprof_status visit_instruction(const kprof_query *query, const char *word)
{
    const kprof_instruction_metric *row = kprof_instruction_of_word(word);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&text, row ? row->help : "counted for each instruction");
    if (row && row->ncu)
        kprof_strbuf_printf(&text, "; ncu: %s", row->ncu);
    return query->visit(query->user, &(kprof_query_row){word, row ? row->unit : "", text.data, "instruction"});
}

static kprof_status visit_all(kprof_host *host, const kprof_query *query, const kprof_strlist *names)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++) {
        const kprof_launch_metric *metric = kprof_launch_metric_find(names->items[i]);
        if (metric)
            status = query->visit(query->user,
                                  &(kprof_query_row){metric->name, metric->unit, metric->description, "launch"});
        else if (kprof_instruction_is_word(names->items[i]))
            status = visit_instruction(query, names->items[i]);
        else
            status = visit_base(host, query, names->items[i]);
    }
    return status;
}

kprof_status kprof_query_collected(kprof_host *host, const kprof_plan *plan, const kprof_query *query)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_strlist_add_all(&names, &plan->collect);
    kprof_strlist_add_all_unique(&names, &plan->shown);
    for (size_t i = 0; i < plan->section_count; i++)
        kprof_section_launch_metrics(&plan->sections[i], &names);
    /* All reasons are sampled together. */
    for (const kprof_instruction_metric *row = kprof_instruction_metrics; row->name && plan->instructions.samples;
         row++)
        if (row->kind == KPROF_INSTRUCTION_SAMPLE)
            kprof_strlist_add(&names, row->word);
    for (size_t i = 0; i < plan->instructions.counters.count; i++)
        kprof_strlist_take(&names,
                           kprof_strprintf(KPROF_INSTRUCTION_PREFIX "%s", plan->instructions.counters.items[i]));
    kprof_strlist_sort(&names);
    return visit_all(host, query, &names);
}

kprof_status kprof_query_metrics(kprof_host *host, const kprof_query *query)
{
    kprof_strlist all = KPROF_STRLIST_INIT, named = KPROF_STRLIST_INIT;
    bool narrowed = query->names && query->names->count > 0;
    if (query->mode == KPROF_QUERY_SUFFIX && !narrowed)
        return kprof_fail(KPROF_USAGE, "--query-metrics-mode suffix needs --metrics with the base names to list");
    kprof_status status = kprof_all_base_metrics(host, &all);
    for (const kprof_launch_metric *metric = kprof_launch_metrics; status == KPROF_OK && metric->name; metric++)
        kprof_strlist_add(&all, metric->name);
    for (const kprof_instruction_metric *row = kprof_instruction_metrics; status == KPROF_OK && row->name; row++)
        if (kprof_instruction_metric_on(host, row))
            kprof_strlist_add(&all, row->word);
    const lookup at = {host, query, &all, &named};
    for (size_t i = 0; narrowed && i < query->names->count && (status == KPROF_OK || status == KPROF_UNKNOWN_NAME);
         i++) /* tell all names that are unknown */
        KPROF_ALSO(status, add_named(&at, query->names->items[i]));
    kprof_strlist *chosen = narrowed ? &named : &all;
    if (status == KPROF_OK)
        kprof_strlist_sort(chosen);
    KPROF_THEN(status, visit_all(host, query, chosen));
    KPROF_FREE_LISTS(&all, &named);
    return status;
}
