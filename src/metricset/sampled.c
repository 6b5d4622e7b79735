/* Plans the samples over the time of a program: one section, in one pass, with nothing beside it, and in another pass
 * what is not of links. */
#include "metricset/catalog.h"
#include "metricset/definition.h"

#include "core/log.h"

#include <string.h>

static void note(kprof_plan *plan, const char *what, const char *why)
{
    char *text = kprof_strprintf("%s: %s is not sampled: %s", plan->chip, what, why);
    kprof_strlist_take_unique(&plan->notes, text);
}

typedef struct sampler {
    const kprof_section_definition *section;
    kprof_host *host;
    kprof_plan *plan;
} sampler;

/* Add the names on the chip, each once, of links or of all else, and a note of each item without a counter there. */
static void list_names(const sampler *s, bool are_linked, kprof_strlist *out)
{
    for (size_t i = 0; i < s->section->timeline_count; i++) {
        const kprof_item_definition *item = &s->section->timeline[i];
        if (item->linked != are_linked)
            continue;
        const kprof_choice *chosen = kprof_item_sampled(item, s->host);
        if (!chosen)
            note(s->plan, item->label, "CUPTI samples no such counter of the chip");
        else if (strcmp(chosen->text, KPROF_SAMPLE_ACTIVITY) != 0)
            kprof_strlist_add_unique(out, chosen->text);
    }
}

/* Move the pass of the other plan, if it has one with fewer metrics, behind that of this one. */
static void append_pass(kprof_timeline_plan *plan, kprof_timeline_plan *other)
{
    if (plan->count == 0 || other->count == 0 || other->passes->metrics.count == plan->passes->metrics.count)
        return;
    kprof_timeline_pass *passes = KPROF_ADD(plan->passes, plan->count);
    *passes = *other->passes;
    other->count = 0;
}

static kprof_status plan_passes(const sampler *s, bool is_linked)
{
    kprof_strlist names = KPROF_STRLIST_INIT, linked = KPROF_STRLIST_INIT;
    kprof_timeline_plan without = {0};
    list_names(s, false, &names);
    kprof_strlist_add_all(&linked, &names);
    if (is_linked)
        list_names(s, true, &linked);
    kprof_status status = kprof_timeline_make(s->host, &linked, 1, &s->plan->timeline);
    if (linked.count > names.count)
        KPROF_THEN(status, kprof_timeline_make(s->host, &names, 1, &without));
    if (status == KPROF_OK)
        append_pass(&s->plan->timeline, &without);
    kprof_timeline_free(&without);
    KPROF_FREE_LISTS(&names, &linked);
    return status;
}

static kprof_status fill(const sampler *s, bool is_linked)
{
    kprof_plan *out = s->plan;
    const kprof_supply supply = {&out->pool, s->host, NULL};
    out->chip = kprof_pool_strdup(&out->pool, kprof_host_chip(s->host));
    out->sections = kprof_pool_calloc(&out->pool, 1, sizeof *out->sections);
    kprof_status status = plan_passes(s, is_linked);
    KPROF_THEN(status, kprof_section_resolve(s->section, &supply, &out->collect, out->sections));
    out->section_count = status == KPROF_OK;
    if (status == KPROF_OK) {
        /* A section does not show what the first pass has not, as there is no space, or no link. */
        kprof_section *section = out->sections;
        const kprof_strlist *sampled = out->timeline.count > 0 ? &out->timeline.passes->metrics : &(kprof_strlist){0};
        size_t kept = 0;
        for (size_t i = 0; i < section->timeline_count; i++) {
            const kprof_item *item = &section->timeline[i];
            if (kprof_strlist_contains(sampled, item->name))
                section->timeline[kept++] = *item;
            else if (kprof_strlist_contains(&out->timeline.left_out, item->name))
                note(out, item->label, "one pass has no space for it beside the others");
        }
        section->timeline_count = kept;
    }
    return status;
}

kprof_status kprof_plan_make_sampled(const kprof_catalog *catalog, const kprof_sampled_section *section,
                                     kprof_host *host, kprof_plan *out)
{
    const size_t number = kprof_catalog_find_section(catalog, section->id);
    *out = (kprof_plan){0};
    if (number == catalog->section_count)
        return kprof_fail(KPROF_UNKNOWN_NAME, "there is no section \"%s\"", section->id);
    kprof_status status = fill(&(sampler){&catalog->sections[number], host, out}, section->is_linked);
    if (status == KPROF_OK && out->timeline.count == 0)
        status = kprof_fail(KPROF_UNSUPPORTED, "CUPTI samples no counter of %s over time", out->chip);
    if (status != KPROF_OK)
        kprof_plan_free(out);
    return status;
}
