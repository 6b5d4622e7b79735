/* The timeline page: what each launch has over time, a line for each metric; programs get the samples. */
#include "report/model/timeline.h"
#include "report/page/page.h"

typedef struct shown_timelines {
    const kprof_page_context *context;
    kprof_emitter *emitter;
    bool has_any;
} shown_timelines;

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    shown_timelines *page = user;
    const kprof_page_context *context = page->context;
    kprof_emitter *emitter = page->emitter;
    kprof_launch_timeline timeline;
    kprof_launch_timeline_read(context->reports->file, &context->reports->model, launch, &timeline);
    const bool is_shown = timeline.series_count > 0 || timeline.reason;
    page->has_any = page->has_any || is_shown;
    if (is_shown)
        emitter->ops->timeline(emitter, launch, &timeline);
    kprof_launch_timeline_free(&timeline);
    return kprof_emitter_status(emitter);
}

kprof_status kprof_page_timeline(const kprof_page_context *context)
{
    shown_timelines page = {.context = context, .emitter = kprof_page_begin(context)};
    page.emitter->launches.model = &context->reports->model;
    kprof_list_begin(page.emitter, "timelines", "Timelines", KPROF_LIST_GROUPS, false);
    kprof_status status = kprof_page_walk(context, show_launch, &page);
    page.emitter->ops->list_end(page.emitter);
    if (status == KPROF_OK && !page.has_any && kprof_report_has_timelines(context->reports->file)) /* else it is told */
        status = kprof_fail(KPROF_NO_MATCH, "%s",
                            context->reports->model.is_shown
                                ? "nothing of what is chosen was sampled over time; --page timeline without --metrics, "
                                  "--section and --set shows all that was"
                                : "none of these launches has samples over time; kprof --set pmsampling takes them");
    return kprof_page_end(page.emitter, status);
}
