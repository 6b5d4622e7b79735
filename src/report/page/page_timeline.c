/* The timeline page: what each launch has over time, a line for each metric; programs get the samples. */
#include "report/model/timeline.h"
#include "report/page/page.h"

typedef struct shown_timelines {
    const kprof_page_context *context;
    kprof_emitter *emitter;
} shown_timelines;

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    const shown_timelines *page = user;
    const kprof_page_context *context = page->context;
    kprof_emitter *emitter = page->emitter;
    kprof_launch_timeline timeline;
    kprof_launch_timeline_read(context->reports->file, &context->reports->model, launch, &timeline);
    if (timeline.series_count > 0 || timeline.reason)
        emitter->ops->timeline(emitter, launch, &timeline);
    kprof_launch_timeline_free(&timeline);
    return kprof_emitter_status(emitter);
}

kprof_status kprof_page_timeline(const kprof_page_context *context)
{
    shown_timelines page = {.context = context, .emitter = kprof_page_begin(context)};
    page.emitter->launches.model = &context->reports->model;
    page.emitter->ops->list_begin(page.emitter, &(kprof_emit_list){"timelines", "Timelines", KPROF_LIST_GROUPS, false});
    const kprof_status status = kprof_page_walk(context, show_launch, &page);
    page.emitter->ops->list_end(page.emitter);
    return kprof_page_end(page.emitter, status);
}
