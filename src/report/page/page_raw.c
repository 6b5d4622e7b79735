/* The raw page: every metric of a launch, by name, and in ncu's layout those of its instructions. */
#include "report/model/code.h"
#include "report/page/page.h"

#include <math.h>
#include <string.h>

typedef struct raw_page {
    kprof_launch_page launches;          /* first: visitors get it */
    const kprof_code_profiles *profiles; /* NULL: another layout */
} raw_page;

/* A metric of instructions: the launches of a profile get as much each. */
static void show_instances(kprof_emitter *emitter, const kprof_profiled_code *code, size_t column,
                           kprof_emit_metric *metric)
{
    const bool is_sample = strncmp(metric->name, KPROF_SAMPLE_PREFIX, strlen(KPROF_SAMPLE_PREFIX)) == 0;
    const uint64_t launches = is_sample ? code->profile->sampled : code->profile->counted;
    KPROF_AUTO_FREE double *values = kprof_calloc(code->instruction_count + 1, sizeof *values);
    KPROF_AUTO_FREE uint64_t *addresses = kprof_calloc(code->instruction_count + 1, sizeof *addresses);
    metric->value = launches ? 0 : NAN;
    for (size_t i = 0; i < code->instruction_count; i++) {
        const kprof_profiled_instruction *instruction = &code->instructions[i];
        values[i] = kprof_profiled_values(code, i)[column] / (double)launches;
        addresses[i] = code->functions[instruction->function].base + instruction->offset;
        metric->value += values[i];
    }
    metric->instances = &(kprof_emit_instances){values, addresses, code->instruction_count};
    if (launches)
        emitter->ops->metric(emitter, metric);
    metric->instances = NULL;
}

static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_page *page = user;
    raw_page *raw = user;
    page->emitter->ops->launch_begin(page->emitter, launch);
    for (size_t i = 0; i < page->view->column_count; i++) {
        kprof_emit_metric *metric = &page->view->columns[i];
        if (!launch->asked[metric->metric])
            continue;
        kprof_view_fill_metric(page->view->model, launch, metric);
        page->emitter->ops->metric(page->emitter, metric);
    }
    const kprof_code_profile *profile = raw->profiles ? kprof_code_profile_of(raw->profiles, launch->id) : NULL;
    const kprof_loaded_code *loaded = profile ? kprof_code_load(raw->profiles, profile) : NULL;
    for (size_t i = 0; loaded && i < page->view->column_count; i++) {
        kprof_emit_metric *metric = &page->view->columns[i];
        const kprof_profiled_code *code = &loaded->code;
        const size_t column = KPROF_FIND(k, code->metric_count, code->metrics[k] == metric->metric);
        if (column < code->metric_count)
            show_instances(page->emitter, code, column, metric);
    }
    page->emitter->ops->launch_end(page->emitter);
    return kprof_emitter_status(page->emitter);
}

kprof_status kprof_page_raw(const kprof_page_context *context)
{
    kprof_view view;
    raw_page page = {.launches = {.view = &view, .emitter = kprof_page_begin(context)}};
    const bool has_instances = page.launches.emitter->ops->sums_instances;
    kprof_view_all(&context->reports->model, has_instances, &view);
    if (has_instances)
        page.profiles = kprof_code_profiles_load(context->reports->file, &context->reports->model);
    return kprof_page_end(page.launches.emitter, kprof_page_launches(context, &page.launches, show_launch));
}
