/* The raw page: every metric that a launch has, by name. */
#include "report/page/page.h"

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_page *page = user;
    page->emitter->ops->launch_begin(page->emitter, launch);
    for (size_t i = 0; i < page->view->column_count; i++) {
        kprof_emit_metric *metric = &page->view->columns[i];
        if (!launch->asked[metric->metric])
            continue;
        kprof_view_fill_metric(page->view->model, launch, metric);
        page->emitter->ops->metric(page->emitter, metric);
    }
    page->emitter->ops->launch_end(page->emitter);
    return kprof_emitter_status(page->emitter);
}

kprof_status kprof_page_raw(const kprof_page_context *context)
{
    kprof_view view;
    kprof_launch_page page = {.view = &view, .emitter = kprof_page_begin(context)};
    kprof_view_all(&context->reports->model, &view);
    const kprof_status status = kprof_page_end(page.emitter, kprof_page_launches(context, &page, show_launch));
    kprof_view_free(&view);
    return status;
}
