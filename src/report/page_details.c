/* The details page: each launch with its sections. */
#include "report/page.h"

static void show_section(kprof_emitter *emitter, const kprof_view_section *section)
{
    emitter->ops->section_begin(emitter, section->section);
    for (size_t i = 0; i < section->section->item_count; i++)
        emitter->ops->metric(emitter, &section->metrics[i]);
    for (size_t i = 0; i < section->section->table_count; i++)
        emitter->ops->table(emitter, &section->tables[i]);
    if (section->section->roofline_count > 0)
        emitter->ops->rooflines(emitter, section->rooflines, section->section->roofline_count);
    emitter->ops->section_end(emitter);
}

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_page *page = user;
    const kprof_view_chip *chip = kprof_view_fill(page->view, launch);
    page->emitter->ops->launch_begin(page->emitter, launch);
    for (size_t i = 0; chip && i < chip->section_count; i++)
        show_section(page->emitter, &chip->sections[i]);
    page->emitter->ops->launch_end(page->emitter);
    return kprof_emitter_status(page->emitter);
}

kprof_status kprof_page_details(const kprof_page_context *context)
{
    kprof_view view;
    kprof_status status = kprof_view_sections(&context->reports->model, &view);
    if (status != KPROF_OK)
        return status;
    status = kprof_page_launches(context, &view, show_launch);
    kprof_view_free(&view);
    return status;
}
