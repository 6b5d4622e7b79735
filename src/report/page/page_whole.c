/* The whole page shows all of a report. It begins with a row for each kernel, as the summary page ranks them. The
 * tables of a trace, the session page, the code of kernels, call stacks and the details page follow. */
#include "report/page/page_stats.h"
#include "report/page/ranking.h"

#include <math.h>
#include <string.h>

static void show_row(kprof_emitter *emitter, const kprof_ranking *ranking, const kprof_ranked *row,
                     const kprof_findings *findings)
{
    const kprof_model *model = ranking->groups.model;
    const kprof_found *best = findings ? findings->verdict.best : NULL;
    const kprof_ranked_numbers numbers = kprof_ranked_describe(row);
    kprof_ranked_verdict verdict;
    KPROF_AUTO(kprof_strbuf) note = KPROF_STRBUF_INIT;
    kprof_group_note(&ranking->groups, row->group, &note);
    kprof_ranked_verdict_make(findings, false, &verdict);
    const kprof_emit_field others[] = {
        machine_count("kernel", "Kernel", (size_t)(row->group->kernel - model->kernels)),
        machine_count("device", "Device", (size_t)(row->group->device - model->devices)),
        kprof_field_text("finding", "Worth most", best ? best->finding->name : NULL),
        kprof_field_pct("finding_gain_pct", "Saves", best ? best->gain_pct : NAN),
        kprof_field_little_to_gain(findings),
        kprof_field_text("finding_text", "Worth most", kprof_verdict_known_text(&verdict.rows[KPROF_ROW_BEST])),
        kprof_field_text("note", "Note", kprof_strbuf_or_null(&note)),
        kprof_field_amount("not_counted", "Not counted", kprof_group_untold(&ranking->groups, row->group)),
    };
    kprof_emit_field fields[COUNT_OF(others) + KPROF_RANKED_VERDICT + KPROF_RANKED_NUMBERS];
    memcpy(fields, others, sizeof others);
    memcpy(fields + COUNT_OF(others), verdict.fields, sizeof verdict.fields);
    memcpy(fields + COUNT_OF(others) + KPROF_RANKED_VERDICT, numbers.fields, sizeof numbers.fields);
    kprof_show_record(emitter, fields, COUNT_OF(fields));
    kprof_ranked_verdict_free(&verdict);
}

static void show_stacks(kprof_emitter *emitter, const kprof_page_report *from)
{
    kprof_told_stacks stacks;
    if (from->model.stack_count == 0)
        return;
    kprof_told_stacks_load(from->file, from->model.pool, &stacks);
    emitter->ops->stacks(emitter, &stacks);
}

static kprof_status print_whole(const kprof_page_context *context)
{
    /* Put all launches of a kernel into one row, whatever the options say for the summary page. */
    kprof_print_options options = *context->options;
    options.group_by = KPROF_GROUP_KERNEL;
    options.top = 0;
    kprof_page_context summary = *context;
    summary.options = &options;
    kprof_ranking ranking;
    kprof_status status = kprof_ranking_make(&summary, &ranking);
    if (status == KPROF_OK) {
        kprof_emitter *emitter = kprof_page_begin(context);
        kprof_list_begin(emitter, "summary", "Kernels", KPROF_LIST_TABLE, false);
        for (size_t i = 0; i < ranking.count; i++) {
            const kprof_ranked *row = &ranking.rows[i];
            show_row(emitter, &ranking, row, kprof_ranking_evaluate(&ranking, row->group));
        }
        emitter->ops->list_end(emitter);
        status = kprof_page_show_shares(emitter, context);
        KPROF_THEN(status, kprof_page_show_census(emitter, &summary));
        KPROF_THEN(status, kprof_page_show_trace(emitter, context));
        kprof_page_show_session(emitter, &context->reports->model);
        KPROF_THEN(status, kprof_page_show_code(emitter, context));
        show_stacks(emitter, context->reports);
        KPROF_THEN(status, kprof_page_show_details(emitter, context));
        status = kprof_page_end(emitter, status);
    }
    return status;
}

const kprof_page_row kprof_whole_page = {"whole", 1, print_whole, NULL};
