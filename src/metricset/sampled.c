/* Plans the samples over the time of a program: one section, in one pass, with nothing beside it. */
#include "metricset/catalog.h"
#include "metricset/definition.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

static const kprof_section_definition *find_section(const kprof_catalog *catalog, const char *id)
{
    for (size_t i = 0; i < catalog->section_count; i++)
        if (strcmp(catalog->sections[i].id, id) == 0)
            return &catalog->sections[i];
    return NULL;
}

static kprof_status note(kprof_plan *plan, const char *what, const char *why)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, "%s: %s is not sampled: %s", plan->chip, what, why);
    const bool added = !text.failed && kprof_strlist_add_unique(&plan->notes, text.data);
    kprof_strbuf_free(&text);
    return added ? KPROF_OK : KPROF_NO_MEMORY;
}

/* The names on the chip, each once, and a note of each item that the chip has no counter for. */
static kprof_status list_names(const kprof_section_definition *section, kprof_host *host, kprof_strlist *out,
                               kprof_plan *plan)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < section->timeline_count && status == KPROF_OK; i++) {
        const kprof_item_definition *item = &section->timeline[i];
        const kprof_choice *chosen = kprof_item_sampled(item, host);
        if (!chosen)
            status = note(plan, item->label, "CUPTI samples no such counter of the chip");
        else if (strcmp(chosen->text, KPROF_SAMPLE_ACTIVITY) != 0 && !kprof_strlist_add_unique(out, chosen->text))
            status = KPROF_NO_MEMORY;
    }
    return status;
}

/* A section does not show what the pass has no space for. */
static kprof_status drop_left_out(kprof_plan *plan)
{
    kprof_section *section = plan->sections;
    kprof_status status = KPROF_OK;
    size_t kept = 0;
    for (size_t i = 0; i < section->timeline_count; i++) {
        kprof_item *item = &section->timeline[i];
        if (!kprof_strlist_contains(&plan->timeline.left_out, item->name)) {
            section->timeline[kept++] = *item;
            continue;
        }
        KPROF_THEN(status, note(plan, item->label, "one pass has no space for it beside the others"));
        kprof_item_clear(item);
    }
    section->timeline_count = kept;
    return status;
}

static kprof_status fill(const kprof_section_definition *section, kprof_host *host, kprof_plan *out)
{
    const kprof_supply supply = {host, NULL};
    kprof_strlist names = KPROF_STRLIST_INIT;
    out->chip = kprof_strdup(kprof_host_chip(host));
    out->sections = calloc(1, sizeof *out->sections);
    kprof_status status = out->chip && out->sections ? list_names(section, host, &names, out) : KPROF_NO_MEMORY;
    KPROF_THEN(status, kprof_timeline_make(host, &names, 1, &out->timeline));
    KPROF_THEN(status, kprof_section_resolve(section, &supply, &out->collect, out->sections));
    out->section_count = status == KPROF_OK;
    KPROF_THEN(status, drop_left_out(out));
    kprof_strlist_free(&names);
    return status;
}

kprof_status kprof_plan_make_sampled(const kprof_catalog *catalog, const char *section, kprof_host *host,
                                     kprof_plan *out)
{
    const kprof_section_definition *found = find_section(catalog, section);
    *out = (kprof_plan){0};
    kprof_status status =
        found ? fill(found, host, out) : kprof_fail(KPROF_UNKNOWN_NAME, "there is no section \"%s\"", section);
    if (status == KPROF_OK && out->timeline.count == 0)
        status = kprof_fail(KPROF_UNSUPPORTED, "CUPTI samples no counter of %s over time", out->chip);
    if (status != KPROF_OK)
        kprof_plan_free(out);
    return status;
}
