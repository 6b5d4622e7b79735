/* Chooses sections and metrics in the model of a report, and launches while walking through them. */
#include "report/model/subset.h"
#include "core/log.h"
#include "core/regex.h"
#include "metricset/instruction.h"
#include "report/model/view.h"

#include <string.h>

/* The names that may be chosen from. */
typedef struct name_list {
    const char *option, *what; /* "--section", "section" */
    const char *const *names;  /* [count] */
    size_t count;
    const kprof_catalog *catalog; /* that may know more of a word; NULL: there is none */
} name_list;

static bool has_name(void *user, const char *name)
{
    const name_list *list = user;
    return KPROF_ANY(i, list->count, strcmp(list->names[i], name) == 0);
}

/* List the names if they are few, else say which page lists them. */
static void tell_what_there_is(const name_list *list, kprof_strbuf *hint)
{
    enum { FEW = 24 };
    if (list->count > FEW)
        kprof_strbuf_puts(hint, "; --page raw shows those that it has");
    else
        for (size_t i = 0; i < list->count; i++)
            kprof_strbuf_printf(hint, "%s%s", i ? ", " : "; it has ", list->names[i]);
}

/* Say that no report can have the section, or that a run has to collect it. False when the catalog does not know it. */
static bool tell_section(const name_list *list, const char *word, kprof_strbuf *hint)
{
    const char *why = list->catalog ? kprof_catalog_why_not(list->catalog, word) : NULL;
    if (why)
        kprof_strbuf_printf(hint, ": %s", why);
    else if (list->catalog && kprof_catalog_section_id(list->catalog, word)) {
        kprof_strbuf_printf(hint, " (a run with --section %s collects it)", word);
        tell_what_there_is(list, hint);
    }
    return hint->length > 0;
}

/* Fail with the nearest name or alias, or else with a list of names that exist. */
static kprof_status fail_unknown(const name_list *list, const char *path, const char *word, const char *nearest)
{
    const bool are_sections = strcmp(list->option, "--section") == 0;
    const kprof_name_supply supply = {has_name, (void *)list};
    const char *alias = list->catalog && !are_sections ? kprof_nearest_alias(list->catalog, word, &supply) : NULL;
    KPROF_AUTO_FREE char *meant = are_sections ? NULL : kprof_regex_meant(word);
    nearest = alias ? alias : nearest;
    KPROF_AUTO(kprof_strbuf) hint = KPROF_STRBUF_INIT;
    if (are_sections && tell_section(list, word, &hint))
        nearest = NULL;
    else if (strncmp(word, "breakdown:", 10) == 0)
        kprof_strbuf_puts(&hint, "; breakdown: is for runs: give --section ID or regex:PATTERN");
    else if (strncmp(word, "group:", 6) == 0)
        kprof_strbuf_puts(&hint, "; group: takes the id of a section, as --section does");
    else if (meant)
        kprof_strbuf_printf(&hint, "; did you mean \"regex:%s\"?", meant);
    else if (nearest)
        kprof_strbuf_printf(&hint, "; did you mean %s?", nearest);
    else
        tell_what_there_is(list, &hint);
    return kprof_fail(KPROF_UNKNOWN_NAME, "%s: %s %s: the report has no such %s%s", path, list->option, word,
                      list->what, kprof_strbuf_text(&hint));
}

/* Set taken[i] for the names that a word asks for. UNKNOWN_NAME when that is none. */
static kprof_status take_word(const name_list *list, const char *path, const char *word, bool *taken)
{
    const bool are_sections = strcmp(list->option, "--section") == 0;
    const char *id = are_sections && list->catalog ? kprof_catalog_section_id(list->catalog, word) : NULL;
    word = id ? id : word;
    const char *pattern = are_sections ? kprof_section_pattern(word) : kprof_regex_pattern(word);
    kprof_regex *regex = NULL;
    const char *nearest = pattern ? NULL : kprof_nearest_metric(word, list->names, list->count);
    const size_t length = strlen(word);
    const bool is_base = word[kprof_metric_base_length(word)] == '\0'; /* else a full name, of one metric */
    bool found = false;
    kprof_status status = pattern ? kprof_regex_new(list->option, pattern, &regex) : KPROF_OK;
    for (size_t i = 0; i < list->count && status == KPROF_OK; i++) {
        /* The word is that name, the base of it, or a pattern that matches. */
        const char *name = list->names[i];
        bool is_one = strncmp(name, word, length) == 0 && (name[length] == '\0' || (is_base && name[length] == '.'));
        if (regex)
            status = kprof_regex_search(regex, name, &is_one);
        taken[i] = taken[i] || is_one;
        found = found || is_one;
    }
    kprof_regex_free(regex);
    if (status == KPROF_OK && !found)
        status = fail_unknown(list, path, word, nearest);
    return status;
}

/* The names of a report, and those that an option takes of them. */
typedef struct choice {
    const name_list list;
    const char *path;
    const kprof_model *model;
    bool *taken; /* [list.count] */
    bool with_instances;
} choice;

typedef kprof_status take_one(const choice *from, const char *word);

/* Take the section, or where the report lacks it those that show the same. */
static kprof_status take_section(const choice *from, const char *word)
{
    const name_list *list = &from->list;
    char *const *others = list->catalog ? kprof_catalog_held_by(list->catalog, word) : NULL;
    KPROF_AUTO(kprof_strbuf) taken = KPROF_STRBUF_INIT;
    kprof_status status = KPROF_OK;
    for (; others && *others && !has_name((void *)list, word) && status == KPROF_OK; others++) {
        if (!has_name((void *)list, *others))
            continue;
        status = take_word(list, from->path, *others, from->taken);
        kprof_strbuf_printf(&taken, "%s%s", taken.length ? ", " : "", *others);
    }
    if (taken.length == 0)
        return take_word(list, from->path, word, from->taken);
    kprof_log(KPROF_LOG_WARNING, "%s: --section %s: taking %s, which have its points", from->path, word,
              kprof_strbuf_text(&taken));
    return status;
}

static void keep_text(void *user, kprof_log_level level, const char *message)
{
    (void)level;
    (void)kprof_strlist_add(user, message);
}

/* Take each word. What the report lacks is left out with a warning beside others that it has, or where something else
 * is shown, too. */
static kprof_status take_each(take_one *take, const choice *from, const kprof_strlist *words, bool has_any)
{
    KPROF_AUTO(kprof_strlist) told = KPROF_STRLIST_INIT;
    bool has_all = true;
    kprof_status status = KPROF_OK;
    const kprof_log_receiver before = kprof_log_set_sink(keep_text, &told);
    for (size_t i = 0; i < words->count && status == KPROF_OK; i++) {
        status = take(from, words->items[i]);
        has_any = has_any || status == KPROF_OK;
        has_all = has_all && status == KPROF_OK;
        status = status == KPROF_UNKNOWN_NAME ? KPROF_OK : status;
    }
    (void)kprof_log_set_sink(before.sink, before.user);
    status = status == KPROF_OK && !has_all && !has_any ? KPROF_UNKNOWN_NAME : status;
    for (size_t i = 0; i < told.count; i++)
        kprof_log(status == KPROF_OK ? KPROF_LOG_WARNING : KPROF_LOG_ERROR, "%s", told.items[i]);
    return status;
}

/* Set taken[i] for the names of a list, and tell which of them the report lacks. UNKNOWN_NAME when that is all. */
static kprof_status take_any(const name_list *list, const char *path, const kprof_strlist *wanted, bool *taken)
{
    kprof_strbuf lacking = KPROF_STRBUF_INIT, hint = KPROF_STRBUF_INIT;
    size_t found = 0;
    for (size_t i = 0; i < list->count; i++)
        taken[i] = taken[i] || kprof_strlist_contains(wanted, list->names[i]);
    for (size_t i = 0; i < wanted->count; i++) {
        if (has_name((void *)list, wanted->items[i]))
            found++;
        else
            kprof_strbuf_printf(&lacking, "%s%s", lacking.length ? ", " : "", wanted->items[i]);
    }
    tell_what_there_is(list, &hint);
    kprof_status status = KPROF_OK;
    if (lacking.length > 0 && found > 0)
        kprof_log(KPROF_LOG_INFO, "%s: not in this report: %s", path, lacking.data);
    else if (lacking.length > 0)
        status = kprof_fail(KPROF_UNKNOWN_NAME, "%s: --set: the report has no section of these sets (%s)%s", path,
                            lacking.data, kprof_strbuf_text(&hint));
    KPROF_FREE_TEXTS(&lacking, &hint);
    return status;
}

/* Set taken[i] for the metrics that an alias stands for. UNKNOWN_NAME when the report has none of them. */
static kprof_status take_alias(const name_list *list, const char *path, const kprof_alias *alias, bool *taken)
{
    const kprof_name_supply supply = {has_name, (void *)list};
    const kprof_alias_entry entry = kprof_alias_describe(alias);
    KPROF_AUTO(kprof_strlist) chosen = KPROF_STRLIST_INIT;
    kprof_alias_choose(alias, &supply, &chosen);
    kprof_status status = KPROF_OK;
    if (chosen.count == 0)
        status = kprof_fail(KPROF_UNKNOWN_NAME, "%s: %s %s: the report has nothing that stands for it%s%s%s", path,
                            list->option, entry.name, entry.stands_for ? ", such as " : "; nothing does",
                            entry.stands_for ? entry.stands_for : "", entry.stands_for ? "" : " on any chip");
    for (size_t i = 0; i < chosen.count && status == KPROF_OK; i++)
        status = take_word(list, path, chosen.items[i], taken);
    return status;
}

static bool is_over_time(const kprof_model_metric *metric)
{
    return strcmp(metric->kind, KPROF_TIMELINE_KIND) == 0;
}

/* Launches have no value of it, or none but the sum over their instructions. */
static bool is_of_none(const kprof_model_metric *metric, bool with_instances)
{
    return (strcmp(metric->kind, KPROF_INSTRUCTION_KIND) == 0 && !with_instances) || is_over_time(metric);
}

/* UNKNOWN_NAME when launches have nothing of that name. */
static kprof_status take_metric(const choice *from, const char *word)
{
    const kprof_model *model = from->model;
    const kprof_alias *alias = from->list.catalog ? kprof_catalog_find_alias(from->list.catalog, word) : NULL;
    const size_t number = kprof_names_find(&model->metric_names, word);
    const bool is_known = number != KPROF_NAMES_NONE;
    if (is_known && is_over_time(&model->metrics[number]))
        return kprof_fail(KPROF_UNKNOWN_NAME,
                          "%s: --metrics %s: launches have it over time alone; --page timeline without --metrics "
                          "shows it",
                          from->path, word);
    if (is_known ? is_of_none(&model->metrics[number], from->with_instances)
                 : !alias && kprof_instruction_is_word(word))
        return kprof_fail(KPROF_UNKNOWN_NAME,
                          "%s: --metrics %s: single instructions have it, not launches; --page source shows what was "
                          "measured of these",
                          from->path, word);
    return alias ? take_alias(&from->list, from->path, alias, from->taken)
                 : take_word(&from->list, from->path, word, from->taken);
}

/* Have the metrics shown that are named; `has_sections`: the report shows sections, too. */
static kprof_status take_metrics(const kprof_subset *subset, const char *path, const kprof_model *model,
                                 bool has_sections)
{
    bool *taken = model->is_shown;
    KPROF_AUTO_FREE const char **names = kprof_calloc(model->metric_count + 1, sizeof *names);
    for (size_t i = 0; i < model->metric_count; i++)
        names[i] = is_of_none(&model->metrics[i], subset->with_instances) ? "" : model->metrics[i].name;
    const choice from = {.list = {"--metrics", "metric", names, model->metric_count, subset->catalog},
                         .path = path,
                         .model = model,
                         .taken = taken,
                         .with_instances = subset->with_instances};
    const kprof_status status = take_each(take_metric, &from, subset->metrics, has_sections);
    for (size_t i = 0; i < model->metric_count; i++) /* a pattern may match no name at all */
        taken[i] = taken[i] && !is_of_none(&model->metrics[i], subset->with_instances);
    return status;
}

/* Put the sections that are taken before the others, which pages do not show. */
static void hide_others(kprof_model *model, kprof_model_chip *chip, const bool *taken)
{
    kprof_section *ordered = kprof_pool_calloc(model->pool, chip->section_count + 1, sizeof *ordered);
    size_t at = 0;
    for (size_t i = 0; i < chip->section_count; i++)
        if (taken[i])
            ordered[at++] = chip->sections[i];
    chip->shown_count = at;
    for (size_t i = 0; i < chip->section_count; i++)
        if (!taken[i])
            ordered[at++] = chip->sections[i];
    chip->sections = ordered;
}

/* Hide the sections that are not chosen. A chip may be left with none. */
static kprof_status take_sections(const kprof_subset *subset, const char *path, kprof_model *model)
{
    const size_t count = KPROF_SUM(i, model->chip_count, model->chips[i].section_count);
    size_t at = 0;
    KPROF_AUTO_FREE const char **names = kprof_calloc(count + 1, sizeof *names);
    KPROF_AUTO_FREE bool *taken = kprof_calloc(count + 1, sizeof *taken);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < model->chip_count && status == KPROF_OK; i++)
        for (size_t k = 0; k < model->chips[i].section_count; k++)
            names[at++] = model->chips[i].sections[k].id;
    const choice from = {
        .list = {"--section", "section", names, count, subset->catalog}, .path = path, .model = model, .taken = taken};
    const bool has_others = subset->metrics->count > 0 || subset->sections_of_set->count > 0;
    KPROF_THEN(status, take_each(take_section, &from, subset->sections, has_others));
    KPROF_THEN(status, take_any(&from.list, path, subset->sections_of_set, taken));
    at = 0;
    for (size_t i = 0; i < model->chip_count && status == KPROF_OK; i++) {
        kprof_model_chip *chip = &model->chips[i];
        /* The section of the metrics named here replaces the one from the run's own --metrics. */
        for (size_t k = 0; k < chip->section_count && subset->metrics->count > 0; k++)
            taken[at + k] = taken[at + k] && strcmp(names[at + k], KPROF_NAMED_SECTION_ID) != 0;
        hide_others(model, chip, taken + at);
        at += chip->section_count;
    }
    return status;
}

static void take_name(const kprof_model *model, const char *name, bool *taken)
{
    const size_t number = kprof_names_find(&model->metric_names, name);
    if (number != KPROF_NAMES_NONE)
        taken[number] = true;
}

/* Mark what the sections of the model show, too. */
static void take_shown(const kprof_model *model, bool *taken)
{
    kprof_view view;
    kprof_view_sections(model, KPROF_TITLE_LABEL, &view);
    for (size_t i = 0; i < view.column_count; i++)
        if (view.columns[i].metric < model->metric_count)
            taken[view.columns[i].metric] = true;
    for (size_t i = 0; i < model->chip_count; i++) {
        /* Add the metrics over time of the sections, with the activity. */
        for (size_t j = 0; j < model->chips[i].shown_count; j++) {
            const kprof_section *section = &model->chips[i].sections[j];
            for (size_t k = 0; k < section->timeline_count; k++)
                take_name(model, section->timeline[k].name, taken);
            if (section->timeline_count > 0)
                take_name(model, KPROF_SAMPLE_ACTIVITY, taken);
        }
    }
}

/* Add to a chip the section of the metrics that are named. */
static void add_named(kprof_model *model, kprof_model_chip *chip, const bool *taken)
{
    KPROF_POOL_ADD(model->pool, chip->sections, chip->section_count);
    kprof_section *section = &chip->sections[chip->shown_count++];
    memmove(section + 1, section, (chip->section_count - chip->shown_count) * sizeof *section);
    *section = (kprof_section){
        .id = KPROF_NAMED_SECTION_ID, .name = KPROF_NAMED_SECTION_NAME, .order = KPROF_NAMED_SECTION_ORDER};
    for (size_t i = 0; i < model->metric_count; i++)
        if (taken[i])
            *KPROF_POOL_ADD(model->pool, section->items, section->item_count) =
                (kprof_item){.name = model->metrics[i].name, .label = model->metrics[i].name};
    chip->value_count += section->item_count;
}

kprof_status kprof_subset_apply(const kprof_subset *subset, const char *path, kprof_model *model)
{
    const bool has_sections = subset->sections->count > 0 || subset->sections_of_set->count > 0;
    if (!has_sections && subset->metrics->count == 0)
        return KPROF_OK;
    model->is_shown = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *model->is_shown);
    model->is_kept = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *model->is_kept);
    bool *taken = model->is_shown;
    kprof_status status = take_sections(subset, path, model);
    const bool shows_sections = KPROF_ANY(i, model->chip_count, model->chips[i].shown_count > 0);
    KPROF_THEN(status, take_metrics(subset, path, model, shows_sections));
    for (size_t i = 0; i < model->chip_count && subset->metrics->count > 0 && status == KPROF_OK; i++)
        add_named(model, &model->chips[i], taken);
    if (status == KPROF_OK)
        take_shown(model, taken);
    /* Findings need the values that are known without counters, and the witnesses say whether a value's passes agree: a
     * part made of sections keeps both. A part made of named metrics needs neither. */
    for (size_t i = 0; i < model->metric_count; i++)
        model->is_kept[i] = taken[i] || (has_sections && strcmp(model->metrics[i].kind, "launch") == 0);
    for (size_t i = 0; i < model->witness_count && has_sections; i++)
        model->is_kept[model->witnesses[i]] = true;
    return status;
}

/* Passes on the launches that are in the ranges. */
typedef struct range_visit {
    const kprof_subset *subset;
    kprof_model_visit *visit;
    void *user;
} range_visit;

static kprof_status visit_if_taken(void *user, const kprof_model_launch *launch)
{
    const range_visit *to = user;
    const bool is_taken =
        to->subset->range_count == 0 ||
        KPROF_ANY(i, to->subset->range_count,
                  (launch->id >= to->subset->ranges[i].first && launch->id <= to->subset->ranges[i].last));
    return is_taken ? to->visit(to->user, launch) : KPROF_OK;
}

kprof_status kprof_subset_launches(const kprof_subset *subset, const kprof_model_walk *walk, kprof_model_visit *visit,
                                   void *user)
{
    range_visit to = {subset, visit, user};
    const kprof_model_walk filtered = {walk->report, walk->model, subset->filter, walk->values};
    return kprof_model_launches(&filtered, visit_if_taken, &to);
}
