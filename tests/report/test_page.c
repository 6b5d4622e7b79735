/* Tests the parts of pages and formats: a page of two reports in every format, and a format that has no operations. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "log_capture.h"
#include "report/page/page.h"
#include "test.h"

static char paths[2][512];
static kprof_report *reports[2];
static log_capture said;

/* The launches of each kernel that both reports have. */
static kprof_status print_both(const kprof_page_context *context)
{
    const kprof_model *before = &context->reports[0].model, *after = &context->reports[1].model;
    kprof_emitter *emitter = kprof_page_begin(context);
    emitter->ops->list_begin(emitter, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_ALONE, false});
    for (size_t i = 0; i < before->kernel_count; i++) {
        for (size_t k = 0; k < after->kernel_count; k++) {
            if (strcmp(before->kernels[i].mangled, after->kernels[k].mangled) != 0)
                continue;
            const kprof_emit_field fields[] = {
                kprof_field_text("kernel", "Kernel", before->kernels[i].function),
                kprof_field_integer("before", "Before", (int64_t)before->kernels[i].launches),
                kprof_field_integer("after", "After", (int64_t)after->kernels[k].launches),
            };
            kprof_emit_record record = {fields, sizeof fields / sizeof *fields};
            if (i == 0 && k == 0)
                emitter->ops->columns(emitter, &record);
            emitter->ops->record_begin(emitter, &record);
            emitter->ops->record_end(emitter);
        }
    }
    emitter->ops->list_end(emitter);
    return kprof_page_end(emitter, KPROF_OK);
}

static const kprof_page_row page_of_both = {"both", 2, print_both, NULL};

static kprof_status show(const kprof_page_row *page, kprof_format format, size_t report_count, char **text)
{
    size_t size = 0;
    FILE *file = open_memstream(text, &size);
    assert_non_null(file);
    kprof_status status = kprof_page_show(page, &(kprof_page_input){reports, report_count, NULL},
                                          &(kprof_print_options){.format = format}, file);
    assert_int_equal(fclose(file), 0);
    return status;
}

TEST(two_reports)
{
    static const char *const expected[] = {
        [KPROF_FORMAT_TEXT] = "Kernel                         Before  After\n"
                              "vectorAdd                           2      9\n"
                              "vectorized_elementwise_kernel     199      3\n",
        [KPROF_FORMAT_CSV] = "kernel,before,after\n"
                             "vectorAdd,2,9\n"
                             "vectorized_elementwise_kernel,199,3\n",
        [KPROF_FORMAT_JSON] = "[{\n\t\t\"kernel\":\t\"vectorAdd\",\n\t\t\"before\":\t2,\n\t\t\"after\":\t9\n\t}, "
                              "{\n\t\t\"kernel\":\t\"vectorized_elementwise_kernel\",\n\t\t\"before\":\t199,\n"
                              "\t\t\"after\":\t3\n\t}]\n",
        [KPROF_FORMAT_MARKDOWN] = "| Kernel | Before | After |\n"
                                  "| --- | ---: | ---: |\n"
                                  "| vectorAdd | 2 | 9 |\n"
                                  "| vectorized_elementwise_kernel | 199 | 3 |\n",
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text = NULL;
        if (!expected[i])
            continue;
        assert_int_equal(show(&page_of_both, (kprof_format)i, 2, &text), KPROF_OK);
        assert_string_equal(text, expected[i]);
        free(text);
    }
}

static kprof_status print_nothing(const kprof_page_context *context)
{
    const kprof_emit_field fields[] = {
        kprof_field_text("kernel", "Kernel", NULL),
        kprof_field_integer("launches", "Launches", 0),
    };
    kprof_emitter *emitter = kprof_page_begin(context);
    emitter->ops->list_begin(emitter, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_ALONE, false});
    emitter->ops->columns(emitter, &(kprof_emit_record){fields, sizeof fields / sizeof *fields});
    emitter->ops->list_end(emitter);
    return kprof_page_end(emitter, KPROF_OK);
}

TEST(list_without_records)
{
    static const kprof_page_row page = {"nothing", 0, print_nothing, NULL};
    static const char *const expected[KPROF_FORMAT_COUNT] = {
        [KPROF_FORMAT_TEXT] = "Kernel  Launches\n",
        [KPROF_FORMAT_CSV] = "kernel,launches\n",
        [KPROF_FORMAT_CSV_WIDE] = "kernel,launches\n",
        [KPROF_FORMAT_CSV_NCU] = "kernel,launches\n",
        [KPROF_FORMAT_JSON] = "[]\n",
        [KPROF_FORMAT_MARKDOWN] = "| Kernel | Launches |\n| --- | ---: |\n",
        [KPROF_FORMAT_TEXT_NCU] = "", /* of launches alone */
        [KPROF_FORMAT_JSONL] = "",
        [KPROF_FORMAT_PROMETHEUS] = "",
        [KPROF_FORMAT_PERFETTO] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n",
        [KPROF_FORMAT_HTML] = "\"shape\":\"table\",\n\"records\":[]}]", /* in the midst of a page */
        [KPROF_FORMAT_TSV] = "Kernel\tLaunches\n",
        [KPROF_FORMAT_BOXES] = "+--------+----------+\n| Kernel | Launches |\n+--------+----------+\n"
                               "+--------+----------+\n",
        [KPROF_FORMAT_HTABLE] = "<table>\n<thead><tr><th>Kernel</th><th>Launches</th></tr></thead>\n<tbody>\n"
                                "</tbody>\n</table>\n",
        [KPROF_FORMAT_HDOC] = "<th>Launches</th></tr></thead>\n<tbody>\n</tbody>\n</table>\n</body>\n</html>\n",
    };
    for (size_t i = 0; i < KPROF_FORMAT_COUNT; i++) {
        char *text = NULL;
        if (!expected[i])
            fail_msg("say here what format %zu of KPROF_FORMATS makes of an empty list", i);
        assert_int_equal(show(&page, (kprof_format)i, 0, &text), KPROF_OK);
        if (i == KPROF_FORMAT_HTML || i == KPROF_FORMAT_HDOC)
            assert_non_null(strstr(text, expected[i]));
        else
            assert_string_equal(text, expected[i]);
        free(text);
    }
}

TEST(other_numbers_of_reports)
{
    char *text = NULL;
    assert_int_equal(show(&page_of_both, KPROF_FORMAT_TEXT, 1, &text), KPROF_USAGE);
    assert_string_equal(said.last, "page both shows 2 reports, not 1");
    assert_string_equal(text, "");
    free(text);
    text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(kprof_report_print(reports, 2, &(kprof_print_options){.page = KPROF_PAGE_RAW}, file), KPROF_USAGE);
    assert_string_equal(said.last, "page raw shows 1 report, not 2");
    assert_int_equal(fclose(file), 0);
    free(text);
}

/* A format with the two operations that no default can have. */
typedef struct counting_emitter {
    kprof_emitter base;
    kprof_strlist metrics; /* of this launch */
    size_t records, rows, values;
} counting_emitter;

static void count_record(kprof_emitter *emitter, const kprof_emit_record *record)
{
    assert_string_equal(record->fields[0].key, "kernel");
    ((counting_emitter *)emitter)->records++;
    kprof_strlist_free(&((counting_emitter *)emitter)->metrics);
}

static void count_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    counting_emitter *count = (counting_emitter *)emitter;
    assert_string_equal(row->fields[2].key, "metric");
    if (kprof_strlist_contains(&count->metrics, row->fields[2].text))
        return; /* an earlier section has it */
    assert_true(kprof_strlist_add(&count->metrics, row->fields[2].text));
    count->rows++;
    for (size_t i = 0; i < row->count; i++)
        count->values += strcmp(row->fields[i].key, "value") == 0 && !kprof_field_is_missing(&row->fields[i]);
}

/* As the details page does. */
static kprof_status emit_launch(void *user, const kprof_model_launch *launch)
{
    kprof_launch_page *page = user;
    const kprof_view_chip *chip = kprof_view_fill(page->view, launch);
    page->emitter->ops->launch_begin(page->emitter, launch);
    for (size_t i = 0; i < chip->section_count; i++) {
        const kprof_view_section *section = &chip->sections[i];
        page->emitter->ops->section_begin(page->emitter, section->section);
        for (size_t k = 0; k < section->section->item_count; k++)
            page->emitter->ops->metric(page->emitter, &section->metrics[k]);
        for (size_t k = 0; k < section->section->table_count; k++)
            page->emitter->ops->table(page->emitter, &section->tables[k]);
        page->emitter->ops->rooflines(page->emitter, section->rooflines, section->section->roofline_count);
        page->emitter->ops->section_end(page->emitter);
    }
    page->emitter->ops->launch_end(page->emitter);
    return page->emitter->status;
}

static void emit_launches(kprof_emitter *emitter, kprof_output *out)
{
    kprof_model model;
    kprof_view view;
    assert_non_null(emitter);
    assert_int_equal(kprof_model_load(reports[0], &model), KPROF_OK);
    kprof_view_sections(&model, KPROF_TITLE_LABEL, &view);
    emitter->options = &(kprof_print_options){0};
    emitter->out = out;
    emitter->launches =
        (kprof_emit_launches){&model, view.columns, view.column_count, view.slot_count, view.in_sections, false};
    kprof_launch_page page = {.view = &view, .emitter = emitter};
    kprof_model_walk walk = {reports[0], &model, NULL, true};
    emitter->ops->page_begin(emitter);
    emitter->ops->launches_begin(emitter);
    assert_int_equal(kprof_model_joined_launches(&walk, (kprof_model_parts){0}, emit_launch, &page), KPROF_OK);
    emitter->ops->launches_end(emitter);
    emitter->ops->page_end(emitter);
    assert_int_equal(out->length, 0);
    kprof_model_free(&model);
}

/* The rows are those that CSV has, each metric once for a launch. */
static size_t csv_rows(void)
{
    kprof_status status;
    size_t lines = 0;
    char *text = fixture_print(reports[0], &(kprof_print_options){.format = KPROF_FORMAT_CSV}, &status);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    free(text);
    return lines - 1;
}

TEST(missing_operations)
{
    static const kprof_emitter_ops none = {.size = sizeof(kprof_emitter)}, two = {.size = sizeof(counting_emitter),
                                                                                  .record_begin = count_record,
                                                                                  .row = count_row};
    kprof_output out;
    FILE *file = fopen("/dev/null", "w");
    assert_non_null(file);
    out = kprof_output_new(file, UINT64_MAX);
    kprof_emitter *silent = kprof_emitter_allocate(&none);
    emit_launches(silent, &out);
    kprof_emitter_free(silent);
    kprof_emitter *emitter = kprof_emitter_allocate(&two);
    emit_launches(emitter, &out);
    counting_emitter *count = (counting_emitter *)emitter;
    assert_int_equal(count->records, 4);
    assert_int_equal(count->rows, csv_rows());
    assert_in_range(count->values, 1, count->rows - 1);
    kprof_strlist_free(&count->metrics);
    kprof_emitter_free(emitter);
    assert_int_equal(kprof_output_finish(&out), KPROF_OK);
    assert_int_equal(fclose(file), 0);
}

static int open_reports(void **state)
{
    for (int i = 0; i < 2; i++)
        snprintf(paths[i], sizeof paths[i], "%s", fixture_path(i ? "page-after.kprof" : "page-before.kprof"));
    fixture_write(paths[0]);
    fixture_write_multiplexed(paths[1]);
    for (int i = 0; i < 2; i++) {
        if (kprof_report_open(paths[i], &reports[i]) != KPROF_OK)
            return -1;
    }
    log_capture_start(&said);
    return 0;
}

static int close_reports(void **state)
{
    int failed = 0;
    kprof_log_set_sink(NULL, NULL);
    for (int i = 0; i < 2; i++)
        failed += kprof_report_close(reports[i]) != KPROF_OK || unlink(paths[i]) != 0;
    return failed;
}

AROUND_ALL(open_reports, close_reports)
