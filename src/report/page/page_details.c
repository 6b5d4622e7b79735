/* The details page: each launch with its verdict, its sections and what was found there. */
#include "report/page/page.h"

#include <math.h>
#include <string.h>

/* NULL: the launch has not got it. */
static const kprof_section *find_section(const kprof_view_chip *chip, const char *id)
{
    for (size_t i = 0; chip && id && i < chip->section_count; i++)
        if (strcmp(chip->sections[i].section->id, id) == 0)
            return chip->sections[i].section;
    return NULL;
}

/* Was the section asked for when the launch was measured, or most of it? Merged runs may have had other sets. */
static bool is_collected(const kprof_view_section *section, const kprof_model *model, const kprof_model_launch *launch)
{
    size_t count = 0, asked = 0;
    for (size_t i = 0; i < section->metric_count && launch->measured > 0 && model->has_other_sets; i++) {
        const size_t metric = section->metrics[i].metric;
        const bool is_counted = metric != SIZE_MAX && strcmp(model->metrics[metric].kind, "launch") != 0;
        count += is_counted;
        asked += is_counted && launch->asked[metric];
    }
    const bool is_named = strcmp(section->section->id, KPROF_NAMED_SECTION_ID) == 0; /* of metrics by themselves */
    return 2 * asked >= count || (is_named && asked > 0);
}

/* Is one of the finding's sections collected, or none of them on the page? */
static bool has_collected_place(const kprof_view_chip *chip, const kprof_model *model, const kprof_finding *finding,
                                const kprof_model_launch *launch)
{
    bool is_shown = false;
    for (char *const *id = finding->sections; chip && *id; id++)
        for (size_t i = 0; i < chip->section_count; i++) {
            const kprof_view_section *section = &chip->sections[i];
            const bool is_place = strcmp(section->section->id, *id) == 0;
            if (is_place && is_collected(section, model, launch))
                return true;
            is_shown = is_shown || is_place;
        }
    return !is_shown;
}

/* Does the report have the section for launches on a chip, shown or hidden? */
static bool has_section(const kprof_model_chip *chip, const char *id)
{
    return chip && id && KPROF_ANY(i, chip->section_count, strcmp(chip->sections[i].id, id) == 0);
}

/* Does the report have one of the finding's sections? */
static bool has_place(const kprof_model_chip *chip, const kprof_finding *finding)
{
    return KPROF_ANY(i, kprof_strings_count(finding->sections), has_section(chip, finding->sections[i]));
}

/* Return the first of a finding's sections that the page shows; NULL: it shows none of them. */
static const char *place_of(const kprof_view_chip *chip, const kprof_finding *finding)
{
    char *const *ids = finding->sections;
    return ids[KPROF_FIND(i, kprof_strings_count(ids), find_section(chip, ids[i]))];
}

/* Show the findings of a section; for NULL, those that belong to no section on the page. */
static void show_findings(kprof_emitter *emitter, const kprof_emit_findings *all, const kprof_view_chip *chip,
                          const char *section)
{
    for (size_t i = 0; i < all->told_count; i++) {
        const kprof_found *found = all->told[i];
        const char *place = found->state == KPROF_FOUND ? place_of(chip, found->finding) : NULL;
        if (found->state == KPROF_FOUND && (section && place ? strcmp(section, place) == 0 : section == place))
            emitter->ops->finding(emitter, found);
    }
}

static void show_section(kprof_emitter *emitter, const kprof_view_section *section, const kprof_model_launch *launch)
{
    bool shows_occupancy = false;
    for (size_t i = 0; i < section->section->item_count; i++) {
        emitter->ops->metric(emitter, &section->metrics[i]);
        shows_occupancy =
            shows_occupancy || strcmp(section->metrics[i].name, "sm__maximum_warps_per_active_cycle_pct") == 0;
    }
    for (size_t i = 0; i < section->section->table_count; i++)
        emitter->ops->table(emitter, &section->tables[i]);
    if (section->section->roofline_count > 0)
        emitter->ops->rooflines(emitter, section->rooflines, section->section->roofline_count);
    if (!shows_occupancy)
        return;
    /* Below theoretical occupancy, show what it would be if the launch were different. */
    kprof_what_if curves[KPROF_WHAT_IFS_MAX];
    const kprof_launch_facts facts = {&launch->record, &launch->kernel->record, &launch->device->record, 0};
    const size_t count = kprof_what_if_compute(&facts, curves);
    if (count > 0)
        emitter->ops->what_if(emitter, curves, count);
}

/* Tell of each section of the chip whether the page shows it: merged runs may have had other sets. Caller frees. */
static bool *choose_sections(const kprof_launch_page *page, const kprof_view_chip *chip,
                             const kprof_model_launch *launch)
{
    const size_t count = chip ? chip->section_count : 0;
    bool *is_shown = kprof_calloc(count + 1, sizeof *is_shown);
    for (size_t i = 0; i < count; i++)
        is_shown[i] = page->emitter->ops->has_layout || is_collected(&chip->sections[i], page->view->model, launch);
    if (chip && page->view->model->has_other_sets)
        kprof_view_mark(page->view, &page->view->chips[launch->device->chip_index], is_shown);
    return is_shown;
}

/* NULL: the report has no plan for the launch's chip. */
static const kprof_model_chip *model_chip(const kprof_emitter *emitter, const kprof_model_launch *launch)
{
    const size_t index = launch->device->chip_index;
    return index == SIZE_MAX ? NULL : &emitter->launches.model->chips[index];
}

/* Does the page show findings? Not if the user asked only for single metrics. */
static bool tells_findings(const kprof_view_chip *shown, const kprof_model_chip *chip,
                           const kprof_finding_list *findings)
{
    return shown &&
           KPROF_ANY(i, shown->section_count, strcmp(shown->sections[i].section->id, KPROF_NAMED_SECTION_ID) != 0) &&
           KPROF_ANY(i, findings->count, has_place(chip, findings->items[i]));
}

/* Choose the findings that the page shows: all, or, if sections were chosen, those of these sections and the one that
 * the verdict names. Open findings have their section but lack a value; without a measurement, all do. */
static void choose_findings(const kprof_launch_page *page, const kprof_view_chip *shown,
                            const kprof_model_launch *launch, kprof_emit_findings *all)
{
    const kprof_findings *findings = all->findings;
    const kprof_model_chip *chip = model_chip(page->emitter, launch);
    const char *next = findings->verdict.next;
    const bool tells_all = !page->view->model->is_shown || page->emitter->options->findings_are_named;
    all->next = find_section(shown, next);
    all->next_is_hidden = has_section(chip, next);
    all->told = kprof_calloc(findings->count + 1, sizeof(*all->told));
    all->open = kprof_calloc(findings->count + 1, sizeof(*all->open));
    for (size_t i = 0; i < findings->count; i++) {
        const kprof_found *found = &findings->items[i];
        if (!tells_all && found != findings->verdict.best && !place_of(shown, found->finding))
            continue;
        all->told[all->told_count++] = found;
        if (launch->measured > 0 && found->state == KPROF_FOUND_UNKNOWN && has_place(chip, found->finding) &&
            has_collected_place(shown, page->view->model, found->finding, launch))
            all->open[all->open_count++] = found;
    }
}

/* The hottest line of each profile, looked for once. */
typedef struct kprof_hot_cache {
    const kprof_code_profiles *profiles;
    struct {
        bool is_known, is_there;
        kprof_hot_line line;
    } * lines; /* [count of profiles] */
} kprof_hot_cache;

static void show_hot_line(const kprof_launch_page *page, const kprof_model_launch *launch)
{
    kprof_hot_cache *hot = page->hot;
    const kprof_code_profile *profile = kprof_code_profile_of(hot->profiles, launch->id);
    if (!profile)
        return;
    const size_t at = (size_t)(profile - hot->profiles->items);
    if (!hot->lines[at].is_known) {
        kprof_hot_lines found;
        kprof_hot_lines_find(hot->profiles, profile, &found);
        hot->lines[at].is_known = true;
        hot->lines[at].is_there = found.count > 0 || (profile->sampled == 0 && *profile->reason);
        hot->lines[at].line =
            found.count > 0 ? found.items[0] : (kprof_hot_line){.pct = NAN, .reason = profile->reason};
    }
    if (hot->lines[at].is_there)
        page->emitter->ops->hot_line(page->emitter, &hot->lines[at].line);
}

/* If a launch of the report has samples over time, read those of this one. */
static void show_over_time(const kprof_launch_page *page, const kprof_model_launch *launch)
{
    kprof_launch_timeline timeline;
    if (!page->has_timelines)
        return;
    kprof_launch_timeline_read(page->file, page->view->model, launch, &timeline);
    if (timeline.series_count > 0 || timeline.reason)
        page->emitter->ops->over_time(page->emitter, &timeline);
    kprof_launch_timeline_free(&timeline);
}

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_page *page = user;
    kprof_emitter *emitter = page->emitter;
    const kprof_view_chip *chip = kprof_view_fill(page->view, launch);
    const bool has_findings =
        page->rules && tells_findings(chip, model_chip(emitter, launch), emitter->options->findings);
    KPROF_AUTO_FREE bool *is_shown = choose_sections(page, chip, launch);
    kprof_emit_findings all = {.findings = NULL};
    if (has_findings) {
        const kprof_code_profile *profile = kprof_code_profile_of(page->hot->profiles, launch->id);
        const kprof_place_values of = kprof_places_values(page->finder, profile, launch->values);
        all.findings = kprof_rules_apply(page->rules, of.values, of.counters);
        kprof_places_find(page->finder, launch->id, page->rules);
        choose_findings(page, chip, launch, &all);
    }
    emitter->ops->launch_begin(emitter, launch);
    if (has_findings)
        emitter->ops->verdict(emitter, &all);
    show_hot_line(page, launch);
    show_over_time(page, launch);
    for (size_t i = 0; chip && i < chip->section_count; i++) {
        const kprof_section *section = chip->sections[i].section;
        if (!is_shown[i])
            continue;
        emitter->ops->section_begin(emitter, section);
        show_section(emitter, &chip->sections[i], launch);
        show_findings(emitter, &all, chip, section->id);
        emitter->ops->section_end(emitter);
    }
    show_findings(emitter, &all, chip, NULL);
    emitter->ops->launch_end(emitter);
    KPROF_FREE(all.told, all.open);
    return kprof_emitter_status(emitter);
}

kprof_status kprof_page_show_details(kprof_emitter *emitter, const kprof_page_context *context)
{
    kprof_view view;
    kprof_hot_cache hot = {0};
    kprof_launch_page page = {.view = &view, .emitter = emitter, .hot = &hot, .file = context->reports->file};
    kprof_view_sections(&context->reports->model, context->options->metric_title, &view);
    hot.profiles = kprof_code_profiles_load(page.file, &context->reports->model);
    hot.lines = kprof_pool_calloc(context->reports->model.pool, hot.profiles->count + 1, sizeof *hot.lines);
    page.has_timelines = kprof_report_has_timelines(page.file);
    if (context->options->findings)
        page.rules = kprof_rules_new(context->options->findings, &context->reports->model);
    if (page.rules)
        page.finder = kprof_place_finder_new(hot.profiles);
    return kprof_page_launches(context, &page, show_launch);
}

kprof_status kprof_page_details(const kprof_page_context *context)
{
    kprof_emitter *emitter = kprof_page_begin(context);
    return kprof_page_end(emitter, kprof_page_show_details(emitter, context));
}
