/* Opens pages: the table of those of reports, and what pages share. */
#include "core/strbuf.h"
#include "report/emit/grid.h"
#include "report/model/subset.h"
#include "report/page/page.h"
#include "report/store/limits.h"
#include "report/store/store.h"

#define PAGE_ROW(id, name, reports) [KPROF_PAGE_##id] = {#name, reports, kprof_page_##name, NULL},
static const kprof_page_row pages[] = {KPROF_PAGES(PAGE_ROW)};

kprof_emitter *kprof_page_begin(const kprof_page_context *context)
{
    kprof_emitter *emitter = kprof_emitter_new(context->name, context->options, context->out);
    emitter->ops->page_begin(emitter);
    return emitter;
}

kprof_status kprof_page_end(kprof_emitter *emitter, kprof_status status)
{
    if (status == KPROF_OK)
        emitter->ops->page_end(emitter);
    KPROF_THEN(status, kprof_emitter_status(emitter));
    kprof_emitter_free(emitter);
    return status;
}

/* Most of a line is for where names break. */
static char **names_of_three_lines(const kprof_print_options *options, const kprof_model *model)
{
    const size_t room = (options->width ? options->width : KPROF_TEXT_COLUMNS) - 4;
    return kprof_kernel_names_new(model, options->kernel_base, 2 * room + room / 4);
}

char **kprof_page_whole_names(const kprof_print_options *options, const kprof_model *model)
{
    return options->width > 0 ? names_of_three_lines(options, model) : NULL;
}

void kprof_page_names_new(const kprof_page_context *context, kprof_page_names *out)
{
    enum { NUMBERS = 56, ALL_NUMBERS = 118 }; /* columns of the numbers beside a name, folded and not */
    const size_t width = context->options->width ? context->options->width : KPROF_TEXT_COLUMNS;
    const size_t numbers = width >= ALL_NUMBERS + KPROF_SHORT_NAME ? ALL_NUMBERS : NUMBERS;
    *out = (kprof_page_names){.is_beside = width >= NUMBERS + KPROF_SHORT_NAME};
    const kprof_model *model = &context->reports->model;
    const char *base = context->options->kernel_base;
    out->beside = kprof_kernel_names_new(model, base, out->is_beside ? width - numbers : KPROF_SHORT_NAME);
    out->below = names_of_three_lines(context->options, model);
}

kprof_emit_field kprof_page_name_field(const kprof_page_context *context, const kprof_page_names *names,
                                       const kprof_model_kernel *kernel)
{
    const size_t number = (size_t)(kernel - context->reports->model.kernels);
    const char *name = kprof_model_kernel_name(kernel, context->options->kernel_base);
    kprof_emit_field field = kprof_field_text("kernel", "Kernel", name, .plain = true);
    field.short_text = names->is_beside ? names->beside[number] : names->below[number];
    field.longer_text = names->below[number];
    return names->is_beside ? field : kprof_field_with_role(field, KPROF_ROLE_NOTE);
}

void kprof_page_show_rest(kprof_emitter *emitter, const kprof_emit_list *list, const char *time_label,
                          const kprof_page_rest *rest)
{
    const kprof_emit_field fields[] = {
        kprof_field_amount("rows", "Rows", rest->rows),
        kprof_field_amount("launches", "Launches", rest->launches),
        kprof_field_ns("time", time_label, rest->time_ns),
        kprof_field_pct("time_share_pct", "Of time", 100 * rest->time_ns / rest->all_ns),
    };
    emitter->ops->list_begin(emitter, list);
    if (rest->rows > 0)
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    emitter->ops->list_end(emitter);
}

static kprof_status pass_over(void *user, const kprof_model_launch *launch)
{
    (void)user;
    (void)launch;
    return KPROF_OK;
}

kprof_status kprof_page_launches(const kprof_page_context *context, kprof_launch_page *page, kprof_model_visit *show)
{
    const kprof_view *view = page->view;
    kprof_status status = KPROF_OK;
    if (context->options->condition_count > 0) /* where no launch meets them nothing is printed */
        status = kprof_page_walk(context, pass_over, NULL);
    if (status != KPROF_OK)
        return status;
    page->emitter->launches = (kprof_emit_launches){view->model,      view->columns,     view->column_count,
                                                    view->slot_count, view->in_sections, false};
    page->emitter->ops->launches_begin(page->emitter);
    status = kprof_page_walk(context, show, page);
    page->emitter->ops->launches_end(page->emitter);
    return status;
}

KPROF_BY_TEXT(by_label, kprof_item, label)

/* ncu has single metrics by name, kprof in the order in which they were asked for. */
static void order_as_ncu(const kprof_model *model)
{
    for (size_t i = 0; i < model->chip_count; i++)
        for (size_t k = 0; k < model->chips[i].section_count; k++)
            if (strcmp(model->chips[i].sections[k].id, KPROF_NAMED_SECTION_ID) == 0)
                qsort(model->chips[i].sections[k].items, model->chips[i].sections[k].item_count, sizeof(kprof_item),
                      by_label);
}

static kprof_status print_page(const kprof_page_row *page, const kprof_page_input *source,
                               const kprof_print_options *options, kprof_output *out)
{
    size_t loaded = 0;
    kprof_status status = KPROF_OK;
    KPROF_AUTO_FREE kprof_page_report *reports = kprof_calloc(page->report_count + 1, sizeof *reports);
    for (size_t i = 0; i < page->report_count && status == KPROF_OK; i++) {
        reports[i].file = source->reports[i];
        reports[i].file->keeps_text = kprof_format_keeps_text(options);
        status = kprof_model_load(source->reports[i], &reports[i].model);
        loaded += status == KPROF_OK;
        if (status == KPROF_OK && options->part)
            status = kprof_subset_apply(
                options->part, options->part->name ? options->part->name : source->reports[i]->path, &reports[i].model);
        if (status == KPROF_OK && kprof_format_is_of_ncu(options))
            order_as_ncu(&reports[i].model);
    }
    KPROF_THEN(status, page->print(&(kprof_page_context){page->name, reports, source->content, options, out}));
    for (size_t i = 0; i < loaded; i++) {
        KPROF_THEN(status, reports[i].file->status);
        kprof_model_free(&reports[i].model);
    }
    return status;
}

/* Do not limit lists, which show no report, or kprof's own report of a run. */
static uint64_t most_bytes_of(const kprof_page_input *source)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < source->report_count; i++) {
        if (source->reports[i]->writable)
            return UINT64_MAX;
        bytes += KPROF_OUTPUT_BASE_BYTES + KPROF_OUTPUT_PER_FILE_BYTE * (uint64_t)source->reports[i]->size_bytes;
    }
    return source->report_count > 0 ? bytes : UINT64_MAX;
}

kprof_status kprof_page_show(const kprof_page_row *page, const kprof_page_input *source,
                             const kprof_print_options *options, FILE *out)
{
    if (source->report_count != page->report_count)
        return kprof_fail(KPROF_USAGE, "page %s shows %zu report%s, not %zu", page->name, page->report_count,
                          page->report_count == 1 ? "" : "s", source->report_count);
    const uint64_t most_bytes = most_bytes_of(source);
    kprof_output output = kprof_output_new(out, most_bytes);
    const kprof_status status = print_page(page, source, options, &output);
    kprof_status written = kprof_output_finish(&output);
    if (output.is_full)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: this takes more than %lu MB, the most that kprof writes of a file of this size; %s%s",
                          source->reports[0]->path, (most_bytes >> 20),
                          page->less ? page->less : "choose fewer launches with -k, -s and -c",
                          !page->less && kprof_format_repeats_names(options)
                              ? ", or --csv-layout wide, which has each launch's names once"
                              : "");
    return status == KPROF_OK ? written : status;
}

/* The summary, and what comes after it. */
static kprof_status print_summary(kprof_report *const *reports, uint64_t launches, const kprof_print_options *options,
                                  FILE *out)
{
    kprof_print_options summary = *options;
    summary.page = KPROF_PAGE_SUMMARY;
    kprof_status status =
        kprof_page_show(&pages[KPROF_PAGE_SUMMARY], &(kprof_page_input){reports, 1, NULL}, &summary, out);
    if (status == KPROF_OK)
        (void)fprintf(out, "\nEach of the %lu launches follows; --page summary shows only the summary\n\n", launches);
    return status;
}

kprof_status kprof_report_print(kprof_report *const *reports, size_t count, const kprof_print_options *options,
                                FILE *out)
{
    enum { MANY = 20 }; /* launches fill pages and pages */
    uint64_t launches = 0;
    kprof_status status = KPROF_OK;
    if (options->begins_with_summary && options->page == KPROF_PAGE_DETAILS && count == 1)
        status = kprof_report_count_taken(reports[0], options->filter, &launches);
    if (status == KPROF_OK && launches > MANY)
        status = print_summary(reports, launches, options, out);
    if (status != KPROF_OK)
        return status;
    return kprof_page_show(&pages[options->page], &(kprof_page_input){reports, count, NULL}, options, out);
}
