/* Every shipped set on every chip of a generation (compute capability 7.5 and up) that the Profiler Host API knows: it
 * must resolve without a required item missing and be schedulable, with a pass for every name, packed no worse than by
 * CUPTI; and with the set of everything, every shipped finding can be evaluated. Something stands for every alias, or
 * its file says that some chips have nothing. Prints the table of names and passes. Usage: test_planner_sets PREFIX,
 * such as GH; exit status 77 without libcupti. */
#include "log_capture.h"
#include "metricset/alias.h"
#include "planner/pack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

/* The most that a set may cost on the chip that the sets are tuned for. */
static const struct {
    const char *chip, *set;
    size_t most_passes;
} budgets[] = {{"GH100", "default", 9},
               {"GH100", "detailed", 9},
               {"GH100", "full", 20},
               {"GH100", "roofline", 6},
               {"GH100", "agent", 10}};

static bool within_budget(const char *chip, const char *set, size_t passes)
{
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        if (strcmp(chip, budgets[i].chip) == 0 && strcmp(set, budgets[i].set) == 0 && passes > budgets[i].most_passes) {
            printf("%s %s takes %zu passes, more than %zu\n", chip, set, passes, budgets[i].most_passes);
            return false;
        }
    }
    return true;
}

/* A section of which a chip has nothing would be an empty heading. */
static bool has_content(const kprof_plan *plan)
{
    bool all = true;
    for (size_t i = 0; i < plan->section_count; i++) {
        const kprof_section *section = &plan->sections[i];
        if (section->item_count + section->table_count + section->roofline_count > 0)
            continue;
        printf("%s: section %s is empty\n", plan->chip, section->id);
        all = false;
    }
    return all;
}

/* Every metric comes from some pass of the set's config image. */
static bool has_passes(const kprof_plan *plan)
{
    bool all = true;
    for (size_t i = 0; i < plan->schedule.metric_count; i++) {
        if (plan->schedule.metrics[i].count > 0)
            continue;
        printf("%s: %s has no pass\n", plan->chip, plan->collect.items[i]);
        all = false;
    }
    return all;
}

static bool is_in_one_pass(const kprof_packing *packing, size_t metric)
{
    const kprof_pack_metric *counters = &packing->metrics[metric];
    for (size_t i = 1; i < counters->required; i++) {
        if (packing->now.spots[counters->counters[i]].pass != packing->now.spots[counters->counters[0]].pass)
            return false;
    }
    return true;
}

/* Beside CUPTI's own schedule: no more passes, nor more dear ones, and no metric of one pass in several. */
static bool is_packed_well(const kprof_plan *plan, kprof_packing *plain)
{
    const kprof_effort effort = kprof_packing_effort(plain), packed = kprof_effort_of(&plan->schedule, 0);
    bool good = plan->pass_count <= plain->now.pass_count && packed.slow_pass_count <= effort.slow_pass_count;
    if (!good)
        printf("%s: packed into %zu passes instead of %zu\n", plan->chip, plan->pass_count, plain->now.pass_count);
    for (size_t i = 0; i < plan->collect.count; i++) {
        if (!is_in_one_pass(plain, i) || plan->schedule.metrics[i].count == 1)
            continue;
        printf("%s: %s comes from %zu passes\n", plan->chip, plan->collect.items[i], plan->schedule.metrics[i].count);
        good = false;
    }
    return good;
}

/* *plain_passes: how many CUPTI's own schedule has. */
static bool compare_with_plain(const kprof_plan *plan, kprof_host *host, size_t *plain_passes)
{
    kprof_config_image image;
    kprof_packing plain = {0};
    bool good = kprof_host_draft_image(host, &plan->collect, &image) == KPROF_OK &&
                kprof_packing_read(host, &plan->collect, &image, &plain) == KPROF_OK && is_packed_well(plan, &plain);
    *plain_passes = image.pass_count;
    kprof_packing_free(&plain);
    kprof_config_image_free(&image);
    return good;
}

/* Does the launch tell the name, or is it collected or computed from what is? */
static bool is_known(const kprof_plan *plan, const char *name)
{
    if (kprof_strlist_contains(&plan->collect, name) || kprof_launch_metric_find(name))
        return true;
    for (size_t i = 0; i < plan->section_count; i++) {
        char *json = kprof_section_to_json(&plan->sections[i]);
        char quoted[256];
        snprintf(quoted, sizeof quoted, "\"name\":\"%s\"", name);
        const bool found = json && strstr(json, quoted);
        free(json);
        if (found)
            return true;
    }
    return false;
}

enum { TRIES = 16 };

typedef struct name_values {
    const kprof_plan *plan;
    unsigned seed;
} name_values;

/* A number for each name that the plan has, or that section SourceCounters has of instructions, or that is computed of
 * samples over time, another one with each seed; the finding's own names have no "__". */
static double some_value(void *user, const char *name)
{
    const name_values *values = user;
    unsigned hash = values->seed;
    for (const char *at = name; *at; at++)
        hash = 31 * hash + (unsigned char)*at;
    const bool is_there = !strstr(name, "__") || is_known(values->plan, name) ||
                          kprof_instruction_metric_find(name) != NULL || kprof_made_number_find(name) != NULL;
    return is_there ? 1 + hash % 97 : NAN;
}

/* With some of the values, since formulas say by 0 / 0 that others make no number. */
static bool can_compute(const kprof_plan *plan, const kprof_expr *expression)
{
    bool can = !expression;
    for (unsigned seed = 1; seed <= TRIES && !can; seed++)
        can = !isnan(kprof_expr_evaluate(expression, some_value, &(name_values){plan, seed}));
    return can;
}

/* Every value, of one option at least, and the condition. */
static bool can_evaluate(const kprof_plan *plan, const kprof_finding *finding)
{
    bool can = can_compute(plan, finding->when) && can_compute(plan, finding->gain);
    for (size_t i = 0; i < finding->value_count; i++) {
        const kprof_finding_value *value = &finding->values[i];
        bool has_option = value->option_count == 0;
        for (size_t k = 0; k < value->option_count && !has_option; k++)
            has_option = can_compute(plan, value->options[k].value) && can_compute(plan, value->options[k].when);
        can = can && has_option && can_compute(plan, value->expression);
    }
    return can;
}

/* The set with everything can evaluate every finding on every chip, but for those that say that some chips cannot. */
static bool check_findings(const kprof_catalog *catalog, const kprof_plan *plan)
{
    kprof_finding_list findings;
    bool good = kprof_catalog_findings(catalog, &(kprof_strlist)KPROF_STRLIST_INIT, &findings) == KPROF_OK;
    for (size_t i = 0; i < findings.count; i++) {
        if (findings.items[i]->optional || can_evaluate(plan, findings.items[i]))
            continue;
        printf("%s: finding %s cannot be evaluated\n", plan->chip, findings.items[i]->id);
        good = false;
    }
    good = good && findings.count > 0;
    free(findings.items);
    return good;
}

/* The set of the brief page fills its fields: throughputs, time and occupancy, and the lines of the verdict. */
static bool check_brief(const kprof_catalog *catalog, const kprof_plan *plan)
{
    static const char *const values[] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                         "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                                         "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"};
    kprof_finding_list findings;
    bool good = kprof_catalog_findings(catalog, &(kprof_strlist)KPROF_STRLIST_INIT, &findings) == KPROF_OK;
    bool has_line[KPROF_VERDICT_LINES] = {true};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (is_known(plan, values[i]))
            continue;
        printf("%s: %s lacks %s\n", plan->chip, "agent", values[i]);
        good = false;
    }
    for (size_t i = 0; i < findings.count; i++) {
        const kprof_verdict_line line = findings.items[i]->verdict;
        has_line[line] = has_line[line] || can_evaluate(plan, findings.items[i]);
    }
    for (int line = 0; line < KPROF_VERDICT_LINES; line++) {
        if (has_line[line])
            continue;
        printf("%s: the set agent cannot tell line %d of the verdict\n", plan->chip, line);
        good = false;
    }
    free(findings.items);
    return good;
}

/* Each chip samples what tells how busy SMs, caches and pipes are, and each metric of the sections once. */
static bool check_timelines(const kprof_plan *plan)
{
    enum { LEAST_METRICS = 9, MOST_PASSES = 12 }; /* beside the one that tells where the launch is */
    size_t items = 0;
    const size_t metrics = kprof_timeline_metric_count(&plan->timeline);
    for (size_t i = 0; i < plan->section_count; i++)
        items += plan->sections[i].timeline_count;
    const bool good = metrics >= LEAST_METRICS && items == metrics + 1 && plan->timeline.count <= MOST_PASSES;
    if (!good)
        printf("%s: %zu metrics over time in %zu passes, %zu in sections\n", plan->chip, metrics, plan->timeline.count,
               items);
    return good;
}

static bool check_set(const kprof_catalog *catalog, const char *set, kprof_host *host)
{
    kprof_selection selection = {0};
    kprof_plan plan;
    bool good = kprof_strlist_add(&selection.sets, set);
    good = good && kprof_plan_make(catalog, &selection, host, &plan) == KPROF_OK;
    kprof_strlist_free(&selection.sets);
    if (!good) {
        printf("%-6s %-10s does not resolve\n", kprof_host_chip(host), set);
        return false;
    }
    size_t plain_passes;
    good = compare_with_plain(&plan, host, &plain_passes) && plan.collect.count > 0 && plan.pass_count > 0;
    printf("%-6s %-10s %4zu names %3zu passes, %3zu of CUPTI's\n", plan.chip, set, plan.collect.count, plan.pass_count,
           plain_passes);
    good = has_content(&plan) && within_budget(plan.chip, set, plan.pass_count) && good;
    good = has_passes(&plan) && good;
    if (strcmp(set, "full") == 0)
        good = check_findings(catalog, &plan) && good;
    if (strcmp(set, "pmsampling") == 0)
        good = check_timelines(&plan) && good;
    if (strcmp(set, "agent") == 0)
        good = check_brief(catalog, &plan) && good;
    kprof_plan_free(&plan);
    return good;
}

/* The closest metric has the name that it has on the chip that the sets are tuned for. */
static bool has_closest(const kprof_alias *alias, kprof_host *host)
{
    bool has = true;
    for (char **name = alias->closest; name && *name && strcmp(kprof_host_chip(host), "GH100") == 0; name++)
        has = kprof_host_has_metric(host, *name) && has;
    return has;
}

/* Something stands for an alias on every chip, but for those that say that some chips have nothing. */
static bool check_alias(const kprof_alias *alias, kprof_host *host)
{
    log_capture capture;
    KPROF_AUTO(kprof_strlist) metrics = KPROF_STRLIST_INIT;
    kprof_item item = {0};
    log_capture_start(&capture);
    const kprof_status status = kprof_alias_resolve(alias, host, &metrics, &item);
    kprof_log_set_sink(NULL, NULL);
    bool good = alias->item.choice_count == 0 || alias->item.optional ? status == KPROF_UNKNOWN_NAME : false;
    if (status == KPROF_OK)
        good = alias->item.choice_count > 0 && metrics.count > 0 && item.name != NULL;
    good = has_closest(alias, host) && good;
    if (!good)
        printf("%s: alias %s: %s\n", kprof_host_chip(host), alias->name, capture.last);
    return good;
}

static bool check_aliases(const kprof_catalog *catalog, kprof_host *host)
{
    bool good = kprof_catalog_alias_count(catalog) > 200;
    for (size_t i = 0; i < kprof_catalog_alias_count(catalog); i++)
        good = check_alias(kprof_catalog_alias(catalog, i), host) && good;
    return good;
}

static bool check_chip(const kprof_catalog *catalog, const char *chip)
{
    kprof_host *host;
    bool good = true;
    if (kprof_host_open(chip, NULL, &host) != KPROF_OK)
        return false;
    for (size_t i = 0; i < kprof_catalog_set_count(catalog); i++)
        good = check_set(catalog, kprof_catalog_set(catalog, i).id, host) && good;
    good = check_aliases(catalog, host) && good;
    kprof_host_close(host);
    return good;
}

static bool check_chips(const kprof_catalog *catalog, const kprof_strlist *chips, const char *prefix)
{
    size_t count = 0;
    bool good = true;
    for (size_t i = 0; i < chips->count; i++) {
        if (strncmp(chips->items[i], prefix, strlen(prefix)) != 0)
            continue;
        count++;
        good = check_chip(catalog, chips->items[i]) && good;
    }
    printf("%zu chips %s*: %s\n", count, prefix, good && count ? "all sets resolve" : "FAILED");
    return good && count > 0;
}

int main(int argc, char **argv)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT, folders = KPROF_STRLIST_INIT;
    kprof_catalog *catalog = NULL;
    kprof_status status = kprof_host_chips(&chips);
    if (status == KPROF_UNSUPPORTED)
        return SKIPPED;
    bool good = status == KPROF_OK && argc == 2 && kprof_strlist_add(&folders, KPROF_METRICSETS_DIR) &&
                kprof_catalog_load(&folders, &catalog) == KPROF_OK && check_chips(catalog, &chips, argv[1]);
    kprof_catalog_free(catalog);
    return good ? 0 : 1;
}
