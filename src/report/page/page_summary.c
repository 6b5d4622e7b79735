/* The summary page: a row for each group of launches, which tells its time, what limits it and what can be gained. */
#include "report/emit/grid.h"
#include "report/page/ranking.h"

#include <math.h>
#include <string.h>

/* People see `otherwise` where it is missing. */
static kprof_emit_field note(kprof_emit_field field, const char *otherwise)
{
    field.missing = otherwise;
    return kprof_field_with_role(field, KPROF_ROLE_NOTE);
}

/* A line of the verdict on a row. */
static kprof_emit_field line(kprof_emit_field field, const char *otherwise)
{
    field.missing = otherwise;
    return kprof_field_with_role(field, KPROF_ROLE_VERDICT);
}

/* The texts of a row. */
typedef struct row_texts {
    const kprof_page_context *context;
    const kprof_page_names *names;
    kprof_strbuf part, notes;
    kprof_verdict_text rows[KPROF_VERDICT_ROWS];
    const kprof_findings *findings;  /* NULL: none were looked for */
    const kprof_page_shares *shares; /* NULL: there are not several sources */
} row_texts;

#define SPREAD_FIELDS 6

/* How evenly the ranks of a job, or what else the merged reports are of, load the kernel. */
static size_t describe_spread(const row_texts *texts, const kprof_model_kernel *kernel, char text[512],
                              kprof_emit_field fields[SPREAD_FIELDS])
{
    if (!texts->shares)
        return 0;
    const kprof_source_spread spread = kprof_page_shares_of(texts->shares, kernel);
    const kprof_human least = kprof_units_human(spread.least_ns, "ns", false),
                      median = kprof_units_human(spread.median_ns, "ns", false),
                      most = kprof_units_human(spread.most_ns, "ns", false);
    snprintf(text, 512, "%s %s to %s %s, median %s %s, over %zu; slowest %.100s", least.number, least.unit, most.number,
             most.unit, median.number, median.unit, spread.count, spread.slowest ? spread.slowest : "");
    fields[0] = machine(kprof_field_amount("sources", "Sources", (int64_t)spread.count));
    fields[1] = machine(kprof_field_ns("source_minimum", "Least", spread.least_ns));
    fields[2] = machine(kprof_field_ns("source_median", "Median", spread.median_ns));
    fields[3] = machine(kprof_field_ns("source_maximum", "Most", spread.most_ns));
    fields[4] = machine(kprof_field_text("slowest_source", "Slowest", spread.slowest));
    fields[5] = line(
        kprof_field_text("spread_text", kprof_page_shares_label(texts->shares), spread.count > 1 ? text : NULL), NULL);
    return SPREAD_FIELDS;
}

static void show_row(kprof_emitter *emitter, const kprof_ranked *row, const row_texts *texts)
{
    const kprof_group *group = row->group;
    const kprof_verdict_text *limit = &texts->rows[KPROF_ROW_LIMIT], *stall = &texts->rows[KPROF_ROW_STALL],
                             *occupancy = &texts->rows[KPROF_ROW_OCCUPANCY];
    const kprof_found *finding = texts->findings ? texts->findings->verdict.best : NULL;
    const kprof_emit_field part = kprof_field_text("group", "Group", kprof_strbuf_or_null(&texts->part));
    char cc[24];
    snprintf(cc, sizeof cc, "%u.%u", group->device->record.cc_major, group->device->record.cc_minor);
    const kprof_emit_field of[] = {
        kprof_page_name_field(texts->context, texts->names, group->kernel),
        machine(kprof_field_text("function", "Function", group->kernel->function)),
        texts->part.length ? kprof_field_plain(note(part, NULL)) : machine(part),
        machine(kprof_field_text("device_name", "Device", group->device->name)),
        machine(kprof_field_text("cc", "CC", cc)),
    };
    const kprof_ranked_numbers numbers = kprof_ranked_describe(row);
    const kprof_emit_field verdict[] = {
        machine(kprof_field_text("limit", "Limit", kprof_strbuf_or_null(&limit->name))),
        machine(kprof_field_pct("limit_pct", "At", limit->value)),
        line(kprof_field_text("limit_text", "Limited by", kprof_strbuf_or_null(&limit->text)), NULL),
        machine(kprof_field_text("stall", "Top stall", kprof_strbuf_or_null(&stall->name))),
        machine(kprof_field_pct("stall_pct", "Of a warp's time", stall->value)),
        line(kprof_field_text("stall_text", "Top stall", kprof_verdict_known_text(stall)), "not known"),
        machine(kprof_field_text("occupancy", "Occupancy limited by", kprof_strbuf_or_null(&occupancy->name))),
        machine(kprof_field_pct("occupancy_pct", "Possible occupancy", occupancy->value)),
        line(kprof_field_text("occupancy_text", "Occupancy", kprof_verdict_known_text(occupancy)), "not known"),
        machine(kprof_field_text("finding", "Finding", finding ? finding->finding->id : NULL)),
        machine(kprof_field_pct("finding_gain_pct", "Saves", finding ? finding->gain_pct : NAN)),
        machine(kprof_field_text("finding_gain_of", "Saves of",
                                 !finding || isnan(finding->gain_pct) ? NULL
                                 : finding->finding->gain_is_local    ? "part"
                                                                      : "kernel")),
        machine(kprof_field_text("finding_confidence", "Confidence",
                                 finding ? kprof_confidence_name(finding->finding->confidence) : NULL)),
        machine(kprof_field_little_to_gain(texts->findings)),
        line(kprof_field_text("finding_text", "Worth most", kprof_verdict_known_text(&texts->rows[KPROF_ROW_BEST])),
             "no finding"),
        line(kprof_field_text("next", "Look next", kprof_strbuf_or_null(&texts->rows[KPROF_ROW_NEXT].name)), ""),
        note(kprof_field_text("note", "Note", kprof_strbuf_or_null(&texts->notes)), ""),
    };
    char spread[512];
    kprof_emit_field fields[COUNT_OF(of) + KPROF_RANKED_NUMBERS + COUNT_OF(verdict) + SPREAD_FIELDS];
    memcpy(fields, of, sizeof of);
    memcpy(fields + COUNT_OF(of), numbers.fields, sizeof numbers.fields);
    memcpy(fields + COUNT_OF(of) + KPROF_RANKED_NUMBERS, verdict, sizeof verdict);
    const size_t known = COUNT_OF(of) + KPROF_RANKED_NUMBERS + COUNT_OF(verdict);
    const size_t more = describe_spread(texts, group->kernel, spread, fields + known);
    kprof_show_record(emitter, fields, known + more);
}

typedef struct shown_with {
    const kprof_page_context *context;
    const kprof_page_names *names;
    const kprof_page_shares *shares; /* as in row_texts */
} shown_with;

static void show_group(kprof_emitter *emitter, kprof_ranking *ranking, const kprof_ranked *row, const shown_with *with)
{
    const kprof_findings *findings = kprof_ranking_evaluate(ranking, row->group);
    const bool base_units = emitter->options->base_units;
    row_texts texts = {.names = with->names,
                       .shares = with->shares,
                       .context = with->context,
                       .findings = findings,
                       .part = KPROF_STRBUF_INIT,
                       .notes = KPROF_STRBUF_INIT};
    kprof_group_describe(&ranking->groups, row->group, &texts.part);
    kprof_group_note(&ranking->groups, row->group, &texts.notes);
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++)
        texts.rows[i] = findings ? kprof_verdict_describe(findings, i, base_units) : (kprof_verdict_text){.value = NAN};
    show_row(emitter, row, &texts);
    KPROF_FREE_TEXTS(&texts.part, &texts.notes);
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++)
        kprof_verdict_text_free(&texts.rows[i]);
}

/* Show in one line all that --top leaves out. */
static void show_rest(kprof_emitter *emitter, const kprof_ranking *ranking)
{
    double time_ns = 0;
    uint64_t launches = 0;
    for (size_t i = ranking->shown; i < ranking->count; i++) {
        time_ns += isnan(ranking->rows[i].time_ns) ? 0 : ranking->rows[i].time_ns;
        launches += ranking->rows[i].group->launches;
    }
    const kprof_emit_field fields[] = {
        kprof_field_amount("rows", "Rows", (int64_t)(ranking->count - ranking->shown)),
        kprof_field_amount("launches", "Launches", (int64_t)launches),
        kprof_field_ns("time", "Time", time_ns > 0 ? time_ns : NAN),
        kprof_field_pct("time_share_pct", "Of time", time_ns > 0 ? 100 * time_ns / ranking->time_ns : NAN),
    };
    emitter->ops->list_begin(emitter, &(kprof_emit_list){"left_out", "Left out", KPROF_LIST_TABLE, true});
    if (ranking->shown < ranking->count)
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    emitter->ops->list_end(emitter);
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
        const shown_with with = {context, &names, spreads ? shares : NULL};
        emitter->ops->list_begin(emitter, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_MAIN, false});
        for (size_t i = 0; i < ranking.shown; i++)
            show_group(emitter, &ranking, &ranking.rows[i], &with);
        emitter->ops->list_end(emitter);
        show_rest(emitter, &ranking);
        status = kprof_page_end(emitter, kprof_page_show_census(emitter, context));
    }
    return status;
}
