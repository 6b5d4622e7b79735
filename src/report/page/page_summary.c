/* The summary page: a row for each group of launches, which tells its time, what limits it and what can be gained. */
#include "report/page/ranking.h"

#include <math.h>
#include <string.h>

/* All rows are shown with these. */
typedef struct summary_page {
    const kprof_page_context *context;
    kprof_ranking *ranking;
    const kprof_page_names *names;
    const kprof_page_shares *shares; /* NULL: there are not several sources */
} summary_page;

#define SPREAD_FIELDS 6

/* How evenly the ranks of a job, or the other sources of merged reports, load the kernel. */
static size_t describe_spread(const kprof_page_shares *shares, const kprof_model_kernel *kernel, char text[512],
                              kprof_emit_field fields[SPREAD_FIELDS])
{
    if (!shares)
        return 0;
    const kprof_source_spread spread = kprof_page_shares_of(shares, kernel);
    const kprof_human least = kprof_units_human(spread.least_ns, "ns", false),
                      median = kprof_units_human(spread.median_ns, "ns", false),
                      most = kprof_units_human(spread.most_ns, "ns", false);
    snprintf(text, 512, "%s %s to %s %s, median %s %s, over %zu; slowest %.100s", least.number, least.unit, most.number,
             most.unit, median.number, median.unit, spread.count, spread.slowest ? spread.slowest : "");
    fields[0] = machine(kprof_field_amount("sources", "Sources", spread.count));
    fields[1] = machine(kprof_field_ns("source_minimum", "Least", spread.least_ns));
    fields[2] = machine(kprof_field_ns("source_median", "Median", spread.median_ns));
    fields[3] = machine(kprof_field_ns("source_maximum", "Most", spread.most_ns));
    fields[4] = machine(kprof_field_text("slowest_source", "Slowest", spread.slowest));
    fields[5] = kprof_verdict_field(
        kprof_field_text("spread_text", kprof_page_shares_label(shares), spread.count > 1 ? text : NULL), NULL);
    return SPREAD_FIELDS;
}

static void show_row(kprof_emitter *emitter, const summary_page *page, const kprof_ranked *row)
{
    const kprof_group *group = row->group;
    const kprof_findings *findings = kprof_ranking_evaluate(page->ranking, group);
    const kprof_found *finding = findings ? findings->verdict.best : NULL;
    const kprof_ranked_numbers numbers = kprof_ranked_describe(row);
    KPROF_AUTO(kprof_strbuf) part = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strbuf) notes = KPROF_STRBUF_INIT;
    kprof_ranked_verdict verdict;
    kprof_group_describe(&page->ranking->groups, group, &part);
    kprof_group_note(&page->ranking->groups, group, &notes);
    kprof_ranked_verdict_make(findings, emitter->options->base_units, &verdict);
    const kprof_emit_field part_field =
        kprof_field_text("group", "Group", kprof_strbuf_or_null(&part), .plain = part.length > 0);
    const kprof_emit_field of[] = {
        kprof_page_name_field(page->context, page->names, group->kernel),
        machine(kprof_field_text("function", "Function", group->kernel->function)),
        part.length > 0 ? note(part_field) : machine(part_field),
        machine(kprof_field_text("device_name", "Device", group->device->name)),
        machine(kprof_field_text("cc", "CC", group->device->cc)),
    };
    const kprof_emit_field rest[] = {
        machine(kprof_field_text("finding", "Finding", finding ? finding->finding->id : NULL)),
        machine(kprof_field_pct("finding_gain_pct", "Saves", finding ? finding->gain_pct : NAN)),
        machine(kprof_field_text("finding_gain_of", "Saves of",
                                 !finding || isnan(finding->gain_pct) ? NULL
                                 : finding->finding->gain_is_local    ? "part"
                                                                      : "kernel")),
        machine(kprof_field_text("finding_confidence", "Confidence",
                                 finding ? kprof_confidence_name(finding->finding->confidence) : NULL)),
        machine(kprof_field_little_to_gain(findings)),
        kprof_verdict_field(
            kprof_field_text("finding_text", "Worth most", kprof_verdict_known_text(&verdict.rows[KPROF_ROW_BEST])),
            "no finding"),
        kprof_verdict_field(
            kprof_field_text("next", "Look next", kprof_strbuf_or_null(&verdict.rows[KPROF_ROW_NEXT].name)), ""),
        note(kprof_field_text("note", "Note", kprof_strbuf_or_null(&notes))),
    };
    char spread[512];
    enum { KNOWN = COUNT_OF(of) + KPROF_RANKED_NUMBERS + KPROF_RANKED_VERDICT + COUNT_OF(rest) };
    kprof_emit_field fields[KNOWN + SPREAD_FIELDS], *at = fields;
    at = mempcpy(at, of, sizeof of);
    at = mempcpy(at, numbers.fields, sizeof numbers.fields);
    at = mempcpy(at, verdict.fields, sizeof verdict.fields);
    at = mempcpy(at, rest, sizeof rest);
    const size_t more = describe_spread(page->shares, group->kernel, spread, at);
    kprof_show_record(emitter, fields, KNOWN + more);
    kprof_ranked_verdict_free(&verdict);
}

kprof_status kprof_page_summary(const kprof_page_context *context)
{
    kprof_ranking ranking;
    kprof_page_names names;
    kprof_page_shares *shares = NULL;
    kprof_status status = kprof_ranking_make(context, &ranking);
    KPROF_THEN(status, kprof_page_shares_new(context, &shares));
    kprof_page_names_new(context, &names);
    if (status == KPROF_OK) {
        kprof_emitter *emitter = kprof_page_begin(context);
        const bool spreads = kprof_page_shares_label(shares) && context->options->group_by == KPROF_GROUP_KERNEL;
        const summary_page page = {context, &ranking, &names, spreads ? shares : NULL};
        kprof_list_begin(emitter, "kernels", "Kernels", KPROF_LIST_MAIN, false);
        for (size_t i = 0; i < ranking.shown; i++)
            show_row(emitter, &page, &ranking.rows[i]);
        emitter->ops->list_end(emitter);
        kprof_page_rest rest = {.rows = ranking.count - ranking.shown, .all_ns = ranking.time_ns};
        for (size_t i = ranking.shown; i < ranking.count; i++) {
            rest.time_ns += isnan(ranking.rows[i].time_ns) ? 0 : ranking.rows[i].time_ns;
            rest.launches += ranking.rows[i].group->launches;
        }
        rest.time_ns = rest.time_ns > 0 ? rest.time_ns : NAN;
        kprof_page_show_rest(emitter, &(kprof_emit_list){"left_out", "Left out", KPROF_LIST_TABLE, true}, "Time",
                             &rest);
        status = kprof_page_end(emitter, kprof_page_show_census(emitter, context));
    }
    return status;
}
