/* Resolves a selection for one chip: its sections, the order of its metrics, and the number of passes. */
#include "metricset/queue.h"
#include "metricset/select.h"

#include "core/log.h"
#include "core/regex.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char default_set[] = "default", duration[] = "gpu__time_duration.sum";

/* UNKNOWN_NAME for what is about a thing that no section can have. */
static kprof_status impossible(const char *kind, const char *name, const char *why)
{
    return kprof_fail(KPROF_UNKNOWN_NAME, "there is no %s \"%s\": %s", kind, name, why);
}

static kprof_status unknown_set(const kprof_catalog *catalog, const char *name)
{
    const char *why = kprof_catalog_why_not(catalog, name);
    if (why)
        return impossible("set", name, why);
    KPROF_AUTO(kprof_strlist) known = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) list = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < catalog->set_count; i++) {
        const kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        kprof_strlist_add(&known, set.id);
        for (const char *const *alias = set.aliases; alias && *alias; alias++)
            kprof_strlist_add(&known, *alias);
        kprof_strbuf_printf(&list, "%s%s", i ? ", " : "", set.id);
    }
    const char *nearest = kprof_nearest(name, (const char *const *)known.items, known.count);
    for (size_t i = 0; i < catalog->section_count; i++)
        if (strcasecmp(catalog->sections[i].id, name) == 0)
            return kprof_fail(KPROF_UNKNOWN_NAME, "there is no set \"%s\"; did you mean --section %s?", name,
                              catalog->sections[i].id);
    return kprof_fail(KPROF_UNKNOWN_NAME, "there is no set \"%s\"; there are %s%s%s%s", name,
                      list.data ? list.data : "none", nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                      nearest ? "\"?" : "");
}

static kprof_status unknown_section(const kprof_catalog *catalog, const char *name)
{
    const char *why = kprof_catalog_why_not(catalog, name);
    if (why)
        return impossible("section", name, why);
    const char *nearest = kprof_catalog_nearest_section(catalog, name);
    return kprof_fail(KPROF_UNKNOWN_NAME, "there is no section \"%s\"; %s%s%skprof list sections shows all", name,
                      nearest ? "did you mean \"" : "", nearest ? nearest : "", nearest ? "\"? " : "");
}

static kprof_status want_set(const kprof_catalog *catalog, const char *name, bool *wanted)
{
    size_t index = kprof_catalog_find_set(catalog, name);
    if (index == catalog->set_count)
        return unknown_set(catalog, name);
    for (char **id = catalog->sets[index].sections; *id; id++)
        wanted[kprof_catalog_find_section(catalog, *id)] = true;
    return KPROF_OK;
}

/* Sections that an option names, and what becomes of them. */
typedef struct choice {
    const char *option;
    bool is_wanted;
} choice;

static kprof_status mark_matching(const kprof_catalog *catalog, const char *pattern, choice of, bool *wanted)
{
    kprof_regex *regex;
    bool any = false;
    kprof_status status = kprof_regex_new(of.option, pattern, &regex);
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < catalog->section_count && status == KPROF_OK; i++) {
        bool matches;
        status = kprof_regex_search(regex, catalog->sections[i].id, &matches);
        if (status != KPROF_OK || !matches)
            continue;
        any = true;
        wanted[i] = of.is_wanted;
    }
    kprof_regex_free(regex);
    if (status != KPROF_OK)
        return status;
    return any ? KPROF_OK
               : kprof_fail(KPROF_UNKNOWN_NAME, "%s regex:%s matches no section; kprof list sections has them",
                            of.option, pattern);
}

const char *kprof_section_pattern(const char *word)
{
    const char *pattern = kprof_regex_pattern(word);
    return pattern ? pattern : strpbrk(word, "*+?|([^$\\") ? word : NULL;
}

static kprof_status mark_section(const kprof_catalog *catalog, const char *name, choice of, bool *wanted)
{
    const char *pattern = kprof_section_pattern(name);
    if (pattern)
        return mark_matching(catalog, pattern, of, wanted);
    size_t index = kprof_catalog_find_section(catalog, name);
    if (index == catalog->section_count)
        return unknown_section(catalog, name);
    wanted[index] = of.is_wanted;
    return KPROF_OK;
}

static kprof_status mark_sections(const kprof_catalog *catalog, const kprof_strlist *names, choice of, bool *wanted)
{
    kprof_status result = KPROF_OK;
    for (size_t i = 0; i < names->count; i++)
        KPROF_ALSO(result, mark_section(catalog, names->items[i], of, wanted));
    return result;
}

/* Is anything left of what was asked for? */
static kprof_status check_left(const kprof_catalog *catalog, const kprof_selection *selection, const bool *wanted)
{
    const size_t count = selection->metrics.count + KPROF_SUM(i, catalog->section_count, wanted[i]);
    return count > 0 || selection->excluded.count == 0
               ? KPROF_OK
               : kprof_fail(KPROF_USAGE, "--section-exclude leaves no section of what is asked for");
}

/* wanted[i]: section i of the catalog was asked for. Every unknown name is reported, not the first alone. */
static kprof_status want_all(const kprof_catalog *catalog, const kprof_selection *selection, bool *wanted)
{
    kprof_status result = kprof_selection_count(selection) == 0 ? want_set(catalog, default_set, wanted) : KPROF_OK;
    for (size_t i = 0; i < selection->sets.count; i++)
        KPROF_ALSO(result, want_set(catalog, selection->sets.items[i], wanted));
    KPROF_ALSO(result, mark_sections(catalog, &selection->sections, (choice){"--section", true}, wanted));
    KPROF_ALSO(result, mark_sections(catalog, &selection->excluded, (choice){"--section-exclude", false}, wanted));
    return result == KPROF_OK ? check_left(catalog, selection, wanted) : result;
}

kprof_status kprof_selection_check(const kprof_catalog *catalog, const kprof_selection *selection)
{
    KPROF_AUTO_FREE bool *wanted = kprof_calloc(catalog->section_count + 1, sizeof(*wanted));
    return want_all(catalog, selection, wanted);
}

/* Why nothing that kprof has is what a word of the selection names; NULL: something may be. */
static const char *why_lacking(const kprof_catalog *catalog, const kprof_strlist *list, const kprof_selection *of,
                               const char *word)
{
    const bool is_metric = list == &of->metrics;
    const kprof_alias *alias = is_metric ? kprof_catalog_find_alias(catalog, word) : NULL;
    const char *group = kprof_after(word, "group:"), *name = group ? group : word;
    if ((list == &of->sets && kprof_catalog_find_set(catalog, name) < catalog->set_count) ||
        ((list == &of->sections || group) && kprof_catalog_section_id(catalog, name)) || kprof_regex_pattern(word) ||
        (alias && alias->item.choice_count > 0) || kprof_launch_metric_find(word) || kprof_instruction_is_word(word))
        return NULL;
    return kprof_catalog_why_not(catalog, name);
}

void kprof_selection_trim(const kprof_catalog *catalog, const kprof_selection *from, kprof_selection *out)
{
    static const char *const options[] = {"set", "section", "metrics"};
    const kprof_strlist *const lists[] = {&from->sets, &from->sections, &from->metrics};
    size_t kept = 0;
    *out =
        (kprof_selection){.limits = from->limits, .most_timelines = from->most_timelines, .is_traced = from->is_traced};
    kprof_strlist_add_all(&out->excluded, &from->excluded);
    kprof_strlist *const targets[] = {&out->sets, &out->sections, &out->metrics};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            kept += !why_lacking(catalog, lists[i], from, lists[i]->items[k]);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (size_t k = 0; k < lists[i]->count; k++) {
            const char *word = lists[i]->items[k];
            const char *why = kept > 0 ? why_lacking(catalog, lists[i], from, word) : NULL;
            if (why)
                kprof_log(KPROF_LOG_WARNING, "--%s %s is left out: %s", options[i], word, why);
            else
                kprof_strlist_add(targets[i], word);
        }
    }
}

size_t kprof_selection_count(const kprof_selection *selection)
{
    return selection->sets.count + selection->sections.count + selection->metrics.count;
}

void kprof_selection_free(kprof_selection *selection)
{
    KPROF_FREE_LISTS(&selection->sets, &selection->sections, &selection->metrics, &selection->excluded);
}

/* A cut supply adds nothing to `collect`, and a section that it leaves nothing of is left out. */
static kprof_status resolve_sections(const kprof_catalog *catalog, const bool *wanted, const kprof_supply *supply,
                                     kprof_plan *out)
{
    out->sections = kprof_pool_calloc(&out->pool, catalog->section_count + 1, sizeof(*out->sections));
    for (size_t i = 0; i < catalog->section_count; i++) {
        if (!wanted[i])
            continue;
        kprof_section *section = &out->sections[out->section_count];
        kprof_status status = kprof_section_resolve(&catalog->sections[i], supply, &out->collect, section);
        if (status != KPROF_OK)
            return status;
        out->section_count +=
            !supply->only ||
            section->item_count + section->table_count + section->roofline_count + section->timeline_count > 0;
    }
    return KPROF_OK;
}

/* A value that is computed is shown instead of what it is computed from. */
static void add_computed(const kprof_item *item, const kprof_strlist *metrics, kprof_plan *out)
{
    if (KPROF_ANY(i, out->computed_count, strcmp(out->computed[i].name, item->name) == 0))
        return;
    *KPROF_POOL_ADD(&out->pool, out->computed, out->computed_count) = *item;
    for (size_t i = 0; i < metrics->count; i++)
        if (!kprof_launch_metric_find(metrics->items[i]))
            kprof_strlist_add_unique(&out->collect, metrics->items[i]);
}

static kprof_status add_alias(const kprof_alias *alias, kprof_host *host, kprof_plan *out)
{
    KPROF_AUTO(kprof_strlist) metrics = KPROF_STRLIST_INIT;
    kprof_item item;
    const kprof_status status = kprof_alias_resolve(alias, host, &metrics, &item);
    if (status != KPROF_OK)
        return status;
    if (alias->is_foreign) {
        /* Tell a user who asks for a name of another tool what stands for it. */
        const kprof_instruction_metric *own = kprof_instruction_of_word(alias->name);
        char *note =
            kprof_strprintf("metric \"%s\" of %s: taking %s%s%s%s%s", alias->name, alias->origin,
                            item.expression ? item.expression : item.name, own ? ", and for each instruction " : "",
                            own ? own->word : "", item.help ? ". " : "", item.help ? item.help : "");
        kprof_strlist_take_unique(&out->notes, note);
    }
    if (item.expression)
        add_computed(&item, &metrics, out);
    else
        kprof_strlist_add_unique(&out->shown, item.name);
    return KPROF_OK;
}

/* Ask CUPTI likewise about the full names among the words. */
static kprof_status check_words(const kprof_strlist *words, kprof_host *host)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->items[i];
        if (word[kprof_metric_base_length(word)] == '.' && !kprof_regex_pattern(word))
            kprof_strlist_add(&names, word);
    }
    return kprof_host_check(host, &names);
}

static kprof_status fail_many(const kprof_host *host, int most, const char *what)
{
    return kprof_fail(KPROF_USAGE,
                      "--metrics stands for more than the %d %s of chip %s that kprof plans at once; name fewer, or "
                      "measure them in several runs",
                      most, what, kprof_host_chip(host));
}

/* The values of one base name stand beside each other, and are computed from the same counters. */
static size_t count_bases(const kprof_strlist *names)
{
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        size_t length = kprof_metric_base_length(names->items[i]);
        count += i == 0 || length != kprof_metric_base_length(names->items[i - 1]) ||
                 memcmp(names->items[i], names->items[i - 1], length) != 0;
    }
    return count;
}

static kprof_status check_patterns(const kprof_strlist *words)
{
    const size_t count = KPROF_SUM(i, words->count, kprof_regex_pattern(words->items[i]) != NULL);
    return count <= KPROF_MOST_PATTERNS
               ? KPROF_OK
               : kprof_fail(KPROF_USAGE,
                            "--metrics has %zu patterns, more than the %d that kprof looks up at once; join some, as "
                            "in \"regex:^(sm|smsp)__\", or measure them in several runs",
                            count, KPROF_MOST_PATTERNS);
}

/* Metrics of instructions are no values of a launch: take them from what is shown. */
static void part_instructions(kprof_host *host, kprof_plan *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->shown.count; i++) {
        char *name = out->shown.items[i];
        if (!kprof_instruction_is_word(name)) {
            out->shown.items[kept++] = name;
            continue;
        }
        kprof_instruction_wish_add(host, name, &out->instructions);
        free(name);
    }
    out->shown.count = kept;
}

static kprof_status select_metrics(const kprof_catalog *catalog, const kprof_strlist *words, kprof_host *host,
                                   kprof_plan *out)
{
    if (words->count > KPROF_MOST_METRICS)
        return fail_many(host, KPROF_MOST_METRICS, "metrics");
    kprof_status result = check_patterns(words);
    if (result != KPROF_OK)
        return result;
    result = check_words(words, host);
    for (size_t i = 0; i < words->count; i++) {
        const kprof_alias *alias = kprof_catalog_find_alias(catalog, words->items[i]);
        kprof_status status =
            alias ? add_alias(alias, host, out) : kprof_select_metrics(catalog, host, words->items[i], &out->shown);
        if (alias && status == KPROF_OK && kprof_instruction_is_word(words->items[i]))
            status = kprof_instruction_select(host, words->items[i], &out->shown);
        KPROF_ALSO(result, status);
        if (out->shown.count > KPROF_MOST_METRICS)
            return fail_many(host, KPROF_MOST_METRICS, "metrics");
        if (count_bases(&out->shown) > KPROF_MOST_BASES)
            return fail_many(host, KPROF_MOST_BASES, "base names");
    }
    if (result == KPROF_OK)
        part_instructions(host, out);
    /* A launch that has nothing of its own to show shows its duration. */
    if (result == KPROF_OK && kprof_instruction_passes(&out->instructions) > 0 && out->shown.count == 0 &&
        out->computed_count == 0)
        kprof_strlist_add(&out->shown, duration);
    for (size_t i = 0; i < out->shown.count && result == KPROF_OK; i++) {
        const char *name = out->shown.items[i];
        if (!kprof_launch_metric_find(name))
            kprof_strlist_add_unique(&out->collect, name);
    }
    return result;
}

/* A name that was asked for is not shown when it, or what it is computed from, is not collected. */
static void drop_left_out(kprof_plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->shown.count; i++) {
        if (kprof_strlist_contains(&plan->left_out, plan->shown.items[i]))
            free(plan->shown.items[i]);
        else
            plan->shown.items[count++] = plan->shown.items[i];
    }
    plan->shown.count = count;
    count = 0;
    for (size_t i = 0; i < plan->computed_count; i++) {
        KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
        kprof_expr_names(plan->computed[i].compiled, &names);
        const bool lacks = KPROF_ANY(k, names.count, kprof_strlist_contains(&plan->left_out, names.items[k]));
        if (!lacks)
            plan->computed[count++] = plan->computed[i];
    }
    plan->computed_count = count;
}

static kprof_status fail_limits(const kprof_limits *limits, const kprof_plan *plan)
{
    if (limits->max_passes)
        return kprof_fail(
            KPROF_USAGE,
            "%s: no metric of the selection fits into --max-passes %u; --plan without it tells what they take",
            plan->chip, limits->max_passes);
    char batches[64] = "";
    if (limits->workload.batch)
        snprintf(batches, sizeof batches, " in batches of %u (--replay-batch)", limits->workload.batch);
    return kprof_fail(KPROF_USAGE,
                      "%s: no metric of the selection fits into --budget %g s for %lu launches (--launch-count tells "
                      "their number)%s: starting alone takes %g s; --plan without it tells what they cost",
                      plan->chip, limits->budget_s, limits->workload.launches, batches, kprof_prices.start_s);
}

/* The passes of instructions and of samples over time. */
static size_t further_passes(const kprof_plan *plan)
{
    return kprof_instruction_passes(&plan->instructions) + plan->timeline.count;
}

size_t kprof_plan_pass_count(const kprof_plan *plan)
{
    return plan->pass_count + further_passes(plan);
}

kprof_cost kprof_plan_cost_without_instructions(const kprof_plan *plan, const kprof_workload *workload)
{
    const kprof_effort effort = kprof_effort_of(&plan->schedule, plan->collect.count);
    kprof_workload others = *workload;
    others.counts_instructions = others.samples = false;
    others.timelines = (uint32_t)plan->timeline.count;
    return kprof_cost_of(&effort, &others);
}

kprof_workload kprof_plan_workload(const kprof_plan *plan, const kprof_workload *workload)
{
    kprof_workload all = *workload;
    all.counts_instructions = plan->instructions.counters.count > 0;
    all.samples = plan->instructions.samples;
    all.timelines = (uint32_t)plan->timeline.count;
    return all;
}

/* The names that passes are made of: all, the most useful first, and those that count more than instructions' do. */
typedef struct pass_wish {
    const kprof_strlist *names, *useful;
    const kprof_limits *limits;
    kprof_host *host;
    const kprof_planned *alone; /* the useful ones without limits, which take no less beside others; or of nothing */
} pass_wish;

/* Can what is left of the limits beside the passes of instructions be enough for the useful names? */
static bool may_fit(const pass_wish *wish, const kprof_limits *limits, size_t own)
{
    const kprof_schedule *alone = &wish->alone->schedule;
    const size_t least = own + (alone->pass_count > 0 ? alone->pass_count : 1);
    const kprof_effort effort = kprof_effort_of(alone, wish->alone->collect.count);
    return (limits->max_passes == 0 || limits->max_passes >= least) &&
           (limits->budget_s <= 0 || kprof_cost_of(&effort, &limits->workload).total_s <= limits->budget_s);
}

/* Plan the metrics of launches beside the passes of instructions. *fits: every name among the useful ones is kept. */
static kprof_status plan_beside(const pass_wish *wish, const kprof_plan *plan, kprof_planned *out, bool *fits)
{
    kprof_limits limits = *wish->limits;
    const uint32_t own = (uint32_t)further_passes(plan);
    limits.workload = kprof_plan_workload(plan, &limits.workload);
    *out = (kprof_planned){0};
    *fits = own == 0 || may_fit(wish, &limits, own);
    if (!*fits)
        return KPROF_OK;
    limits.max_passes -= limits.max_passes ? own : 0;
    kprof_status status = kprof_planner_make(wish->host, &(kprof_planner_wish){wish->names, &limits}, out);
    *fits = own == 0 || out->collect.count > 0 || out->left_out.count == 0;
    for (size_t i = 0; own > 0 && i < out->left_out.count && *fits; i++)
        *fits = !kprof_strlist_contains(wish->useful, out->left_out.items[i]);
    return status;
}

/* Leave out what is sampled over time, or else the counters of instructions, which are the dearest, or the samples. */
static void drop_further(kprof_plan *plan, kprof_strlist *dropped)
{
    if (plan->timeline.count > 0) {
        /* Leave out what is sampled over time. */
        for (size_t i = 0; i < plan->timeline.count; i++) {
            const kprof_strlist *names = &plan->timeline.passes[i].metrics;
            for (size_t k = 1; k < names->count; k++)
                kprof_strlist_take(dropped, kprof_strprintf(KPROF_TIMELINE_PREFIX "%s", names->items[k]));
        }
        kprof_timeline_free(&plan->timeline);
        return;
    }
    kprof_strlist *counters = &plan->instructions.counters;
    if (counters->count == 0)
        kprof_strlist_add(dropped, KPROF_SAMPLE_COUNT);
    plan->instructions.samples = plan->instructions.samples && counters->count > 0;
    for (size_t i = 0; i < counters->count; i++)
        kprof_strlist_take(dropped, kprof_strprintf(KPROF_INSTRUCTION_PREFIX "%s", counters->items[i]));
    kprof_strlist_free(counters);
}

/* The names that count more than metrics of instructions: those of sections whose priority is higher. None where
 * --metrics asks for these metrics. */
static kprof_status list_useful(const kprof_queue_sources *from, kprof_host *host, kprof_strlist *out)
{
    const kprof_catalog *catalog = from->catalog;
    KPROF_AUTO_FREE bool *before = kprof_calloc(catalog->section_count + 1, sizeof *before);
    int priority = INT_MAX;
    for (size_t i = 0; i < catalog->section_count; i++) {
        const kprof_section_definition *section = &catalog->sections[i];
        if (from->wanted[i] && (section->instructions || section->samples) && section->priority < priority)
            priority = section->priority;
    }
    for (size_t i = 0; i < catalog->section_count && before; i++) {
        const int own = catalog->sections[i].priority;
        before[i] = from->wanted[i] && own > 0 && own < priority;
    }
    return kprof_queue_fill(&(kprof_queue_sources){catalog, before, from->first}, host, out);
}

/* Make passes of what is wanted, or with limits of the part of it that keeps them. */
static kprof_status plan_passes(const pass_wish *wish, kprof_plan *out)
{
    kprof_planned planned;
    KPROF_AUTO(kprof_strlist) dropped = KPROF_STRLIST_INIT;
    bool fits;
    kprof_status status = plan_beside(wish, out, &planned, &fits);
    while (status == KPROF_OK && !fits) {
        kprof_planned_free(&planned);
        drop_further(out, &dropped);
        status = plan_beside(wish, out, &planned, &fits);
    }
    if (status == KPROF_OK)
        kprof_strlist_add_all(&planned.left_out, &dropped);
    kprof_strlist_free(&out->collect);
    out->collect = planned.collect;
    out->left_out = planned.left_out;
    out->variants = planned.variants;
    out->schedule = planned.schedule;
    out->cost = planned.cost;
    out->pass_count = out->schedule.pass_count;
    if (status == KPROF_OK && out->collect.count == 0 && out->left_out.count > 0)
        status = fail_limits(wish->limits, out);
    if (status == KPROF_OK)
        drop_left_out(out);
    return status;
}

static void add_section_instructions(const kprof_queue_sources *from, kprof_host *host, kprof_plan *out)
{
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < from->catalog->section_count; i++)
        if (from->wanted[i])
            kprof_section_instructions(&from->catalog->sections[i], host, &words);
    for (size_t i = 0; i < words.count; i++)
        kprof_instruction_wish_add(host, words.items[i], &out->instructions);
}

static kprof_status add_timelines(const kprof_queue_sources *from, const kprof_selection *selection, kprof_host *host,
                                  kprof_plan *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < from->catalog->section_count; i++) {
        const kprof_section_definition *section = &from->catalog->sections[i];
        for (size_t k = 0; from->wanted[i] && k < section->timeline_count; k++) {
            const kprof_choice *chosen = kprof_item_sampled(&section->timeline[k], host);
            if (chosen && strcmp(chosen->text, KPROF_SAMPLE_ACTIVITY) != 0)
                kprof_strlist_add_unique(&names, chosen->text);
        }
    }
    kprof_status status =
        names.count > 0 ? kprof_timeline_make(host, &names, selection->most_timelines, &out->timeline) : KPROF_OK;
    if (status == KPROF_OK) {
        const kprof_strlist *left_out = &out->timeline.left_out;
        KPROF_AUTO(kprof_strbuf) note = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&note, "%s: not sampled over time, to keep within --pm-sampling-max-passes:", out->chip);
        for (size_t i = 0; i < left_out->count; i++)
            kprof_strbuf_printf(&note, "%s %s", i ? "," : "", left_out->items[i]);
        if (left_out->count > 0)
            kprof_strlist_add_unique(&out->notes, note.data);
    }
    return status;
}

/* A section does not show what is not sampled. */
static void drop_unsampled(kprof_plan *plan)
{
    for (size_t i = 0; i < plan->section_count; i++) {
        kprof_section *section = &plan->sections[i];
        size_t kept = 0;
        for (size_t k = 0; k < section->timeline_count; k++)
            if (KPROF_ANY(pass, plan->timeline.count,
                          kprof_strlist_contains(&plan->timeline.passes[pass].metrics, section->timeline[k].name)))
                section->timeline[kept++] = section->timeline[k];
        section->timeline_count = kept;
    }
}

/* USAGE where nothing else was asked for. */
static kprof_status leave_to_trace(const kprof_selection *selection, kprof_plan *out)
{
    const bool is_alone =
        selection->sets.count + selection->sections.count + out->instructions.counters.count == 0 &&
        KPROF_ALL(i, selection->metrics.count, kprof_instruction_is_word(selection->metrics.items[i]));
    if (is_alone)
        return kprof_fail(KPROF_USAGE, "samples of instructions do not go with --trace, since CUPTI records no kernel "
                                       "while they are enabled: leave --trace out");
    out->instructions.samples = false;
    kprof_strlist_add(&out->notes, "samples of instructions are left out beside --trace: CUPTI records no "
                                   "kernel while they are enabled");
    return KPROF_OK;
}

/* `collect` has the names of --metrics so far. With limits, ask for the most useful names first; sections then show
 * those that the planner kept. */
static kprof_status fill_sections(const kprof_queue_sources *from, const kprof_selection *selection, kprof_host *host,
                                  kprof_plan *out)
{
    bool is_limited = kprof_limits_are_set(&selection->limits);
    kprof_supply supply = {&out->pool, host, is_limited ? &out->collect : NULL};
    kprof_strlist names = KPROF_STRLIST_INIT, useful = KPROF_STRLIST_INIT;
    kprof_planned alone = {0};
    const bool is_asked = kprof_instruction_passes(&out->instructions) > 0;
    add_section_instructions(from, host, out);
    kprof_status status = KPROF_OK;
    if (selection->is_traced && out->instructions.samples)
        status = leave_to_trace(selection, out);
    KPROF_THEN(status, add_timelines(from, selection, host, out));
    KPROF_THEN(status, is_limited ? kprof_queue_fill(from, host, &names)
                                  : resolve_sections(from->catalog, from->wanted, &supply, out));
    if (!is_limited) {
        names = out->collect;
        out->collect = (kprof_strlist)KPROF_STRLIST_INIT;
    }
    /* The engine repeats a launch, as instructions and samples need it to, only where it collects something. */
    if (status == KPROF_OK && names.count == 0 && further_passes(out) > 0)
        kprof_strlist_add(&names, duration);
    if (status == KPROF_OK && is_limited && !is_asked && kprof_instruction_passes(&out->instructions) > 0)
        status = list_useful(from, host, &useful);
    if (status == KPROF_OK && useful.count > 0) /* this spares plans that take seconds, and leave useful ones out */
        status = kprof_planner_make(host, &(kprof_planner_wish){&useful, &(kprof_limits){0}}, &alone);
    KPROF_THEN(status, plan_passes(&(pass_wish){&names, &useful, &selection->limits, host, &alone}, out));
    kprof_planned_free(&alone);
    KPROF_FREE_LISTS(&names, &useful);
    if (status == KPROF_OK && is_limited)
        status = resolve_sections(from->catalog, from->wanted, &supply, out);
    drop_unsampled(out);
    return status;
}

static kprof_status fill_plan(const kprof_catalog *catalog, const kprof_selection *selection, kprof_host *host,
                              kprof_plan *out)
{
    KPROF_AUTO_FREE bool *wanted = kprof_calloc(catalog->section_count + 1, sizeof(*wanted));
    out->chip = kprof_pool_strdup(&out->pool, kprof_host_chip(host));
    kprof_status status = want_all(catalog, selection, wanted);
    KPROF_THEN(status, kprof_catalog_check_sections(catalog, wanted, host));
    KPROF_THEN(status, select_metrics(catalog, &selection->metrics, host, out));
    return KPROF_THEN(status,
                      fill_sections(&(kprof_queue_sources){catalog, wanted, &out->collect}, selection, host, out));
}

kprof_status kprof_plan_make(const kprof_catalog *catalog, const kprof_selection *selection, kprof_host *host,
                             kprof_plan *out)
{
    *out = (kprof_plan){0};
    kprof_status status = fill_plan(catalog, selection, host, out);
    if (status != KPROF_OK)
        kprof_plan_free(out);
    return status;
}

void kprof_plan_free(kprof_plan *plan)
{
    kprof_pool_free(&plan->pool);
    kprof_instruction_wish_free(&plan->instructions);
    kprof_timeline_free(&plan->timeline);
    KPROF_FREE_LISTS(&plan->collect, &plan->shown, &plan->left_out, &plan->notes);
    kprof_image_variants_free(&plan->variants);
    kprof_schedule_free(&plan->schedule);
    *plan = (kprof_plan){0};
}

kprof_status kprof_set_cost_on(const kprof_catalog *catalog, const char *set, kprof_host *host, kprof_set_cost *out)
{
    char *names[] = {(char *)set};
    kprof_selection selection = {.sets = {names, 1, 1}};
    kprof_plan plan;
    *out = (kprof_set_cost){0};
    kprof_status status = kprof_plan_make(catalog, &selection, host, &plan);
    if (status != KPROF_OK)
        return status;
    const kprof_cost others = kprof_plan_cost_without_instructions(&plan, &selection.limits.workload);
    *out = (kprof_set_cost){plan.collect.count, kprof_plan_pass_count(&plan), 0};
    if (plan.cost.launch_ms > 0)
        out->instruction_pct = 100 * (plan.cost.launch_ms - others.launch_ms) / plan.cost.launch_ms;
    kprof_plan_free(&plan);
    return KPROF_OK;
}
