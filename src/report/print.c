/* kprof_report_print and what the pages share. */
#include "report/page.h"

#include <string.h>

static kprof_page_print *const pages[] = {
    [KPROF_PAGE_DETAILS] = kprof_page_details,
    [KPROF_PAGE_RAW] = kprof_page_raw,
    [KPROF_PAGE_SUMMARY] = kprof_page_summary,
    [KPROF_PAGE_SESSION] = kprof_page_session,
};

kprof_status kprof_page_begin(const kprof_page_context *context, const kprof_view *view, kprof_emitter **emitter)
{
    kprof_emit_page page = {.page = context->options->page, .model = context->model, .options = context->options};
    if (view) {
        page.columns = view->columns;
        page.column_count = view->column_count;
        page.slot_count = view->slot_count;
    }
    kprof_status status = kprof_emitter_new(&page, context->out, emitter);
    if (status == KPROF_OK)
        (*emitter)->ops->page_begin(*emitter);
    return status;
}

kprof_status kprof_page_end(kprof_emitter *emitter, kprof_status status)
{
    if (status == KPROF_OK)
        emitter->ops->page_end(emitter);
    if (status == KPROF_OK)
        status = kprof_emitter_status(emitter);
    if (status == KPROF_NO_MEMORY)
        kprof_log(KPROF_LOG_ERROR, "printing the report: out of memory");
    kprof_emitter_free(emitter);
    return status;
}

kprof_status kprof_page_launches(const kprof_page_context *context, kprof_view *view, kprof_model_visit *show)
{
    kprof_launch_page page = {NULL, view};
    kprof_model_walk walk = {context->report, context->model, context->options->filter, true};
    kprof_status status = kprof_page_begin(context, view, &page.emitter);
    if (status != KPROF_OK)
        return status;
    return kprof_page_end(page.emitter, kprof_model_joined_launches(&walk, show, &page));
}

kprof_emit_field kprof_field_text(const char *key, const char *label, const char *text)
{
    return (kprof_emit_field){.key = key, .label = label, .unit = "", .type = KPROF_FIELD_TEXT, .text = text};
}

kprof_emit_field kprof_field_integer(const char *key, const char *label, int64_t value)
{
    return (kprof_emit_field){.key = key, .label = label, .unit = "", .type = KPROF_FIELD_INTEGER, .integer = value};
}

kprof_emit_field kprof_field_real(const char *key, const char *label, double value)
{
    return (kprof_emit_field){.key = key, .label = label, .unit = "", .type = KPROF_FIELD_REAL, .real = value};
}

static kprof_status print_page(kprof_report *report, const kprof_print_options *options, kprof_output *out)
{
    kprof_model model;
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    kprof_page_context context = {report, &model, options, out};
    status = pages[options->page](&context);
    kprof_model_free(&model);
    return status;
}

kprof_status kprof_report_print(kprof_report *report, const kprof_print_options *options, FILE *out)
{
    kprof_output output;
    kprof_status status = kprof_output_init(&output, out);
    if (status != KPROF_OK)
        return status;
    status = print_page(report, options, &output);
    kprof_status written = kprof_output_finish(&output);
    return status == KPROF_OK ? written : status;
}
