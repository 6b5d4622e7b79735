/* CSV in two layouts: long has a row for each launch and metric, wide one for each launch. */
#include "report/emit/csv.h"

#include <math.h>

/* Begin a header with the columns of launches. */
static kprof_csv_line *begin_header(kprof_emitter *emitter)
{
    kprof_csv_line *row = &kprof_csv_of(emitter)->row;
    kprof_csv_begin_launches(kprof_csv_of(emitter));
    for (size_t i = 0; i < KPROF_COLUMN_COUNT; i++) {
        const kprof_column *column = &kprof_launch_columns[i];
        if (column->in_csv && column->kind == KPROF_CELL_SHAPE)
            kprof_strbuf_printf(&row->text, "\"%s_x\",\"%s_y\",\"%s_z\",", column->id, column->id, column->id);
        else if (column->in_csv)
            kprof_csv_text(row, column->id);
    }
    return row;
}

static void long_launches_begin(kprof_emitter *emitter)
{
    kprof_csv_line *row = begin_header(emitter);
    for (size_t i = 0; i < KPROF_METRIC_COLUMN_COUNT; i++)
        kprof_csv_text(row, kprof_metric_columns[i].id);
    kprof_csv_end_row(kprof_csv_of(emitter));
}

static void wide_launches_begin(kprof_emitter *emitter)
{
    kprof_csv_line *row = begin_header(emitter);
    for (size_t i = 0; i < emitter->launches.column_count; i++)
        kprof_csv_text(row, emitter->launches.columns[i].name);
    kprof_csv_end_row(kprof_csv_of(emitter));
}

static void put_text_if_any(kprof_csv_line *row, const char *text)
{
    if (*text)
        kprof_csv_put_text(row, text);
    kprof_csv_put_comma(row);
}

static void put_cell(kprof_csv_line *row, const kprof_column *column, const kprof_cell *cell)
{
    if (column->or_none && !cell->is_there)
        kprof_csv_text(row, "none");
    else if (!cell->is_there)
        kprof_strbuf_puts(&row->text, column->kind == KPROF_CELL_SHAPE ? ",,," : ",");
    else if (column->kind == KPROF_CELL_SHAPE)
        kprof_strbuf_printf(&row->text, "%u,%u,%u,", cell->shape[0], cell->shape[1], cell->shape[2]);
    else if (column->kind == KPROF_CELL_WHOLE)
        kprof_csv_integer(row, cell->whole);
    else if (column->kind == KPROF_CELL_DIGITS)
        kprof_strbuf_printf(&row->text, "%s,", cell->text);
    else
        kprof_csv_text(row, cell->text);
}

static void csv_launch_begin(kprof_emitter *emitter, const kprof_model_launch *launch)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    kprof_csv_begin_launch(csv);
    for (kprof_column_id i = 0; i < KPROF_COLUMN_COUNT; i++) {
        const kprof_cell cell = kprof_launch_cell(&texts, i);
        if (kprof_launch_columns[i].in_csv)
            put_cell(&csv->prefix, &kprof_launch_columns[i], &cell);
    }
}

static void put_texts(kprof_csv_line *tail, const kprof_emit_metric *metric)
{
    kprof_csv_text(tail, metric->section ? metric->section->id : "");
    kprof_csv_text(tail, metric->name);
    kprof_csv_text(tail, metric->unit);
}

static void long_metric(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    kprof_csv_line *row = &csv->row;
    if (metric->shown_before)
        return;
    kprof_csv_begin_metric(csv, metric, put_texts);
    kprof_csv_real(row, metric->value);
    put_text_if_any(row, metric->passes);
    if (metric->spread) {
        kprof_strbuf_printf(&row->text, "%zu,", metric->spread->samples);
        kprof_csv_real(row, metric->spread->mad);
    } else {
        kprof_strbuf_append(&row->text, ",,", 2);
    }
    kprof_strbuf_append(&row->text, ",,", 2); /* metrics have neither confidence nor message */
    kprof_csv_end_row(csv);
}

/* A row about something other than a metric. */
typedef struct told_row {
    const char *section, *kind, *name; /* the metric is kind__name */
    double pct;                        /* NaN: none */
    const char *confidence;            /* "": none */
    const char *text;                  /* "": none */
} told_row;

static void put_told(kprof_emitter *emitter, const told_row *told)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    kprof_csv_line *row = &csv->row;
    kprof_csv_begin_row(csv);
    put_text_if_any(row, told->section);
    kprof_strbuf_printf(&row->text, "\"%s__%s\",\"%s\",", told->kind, told->name, isnan(told->pct) ? "" : "%");
    kprof_csv_real(row, told->pct);
    kprof_strbuf_append(&row->text, ",,,", 3);
    put_text_if_any(row, told->confidence);
    put_text_if_any(row, told->text);
    kprof_csv_end_row(csv);
}

static void long_verdict(kprof_emitter *emitter, const kprof_emit_findings *all)
{
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_verdict_describe(all->findings, i, true);
        if (row.name.length > 0)
            put_told(emitter, &(told_row){"", "verdict", row.key, row.value, "", row.name.data});
    }
    for (size_t i = 0; i < all->open_count; i++) {
        /* A finding that was not evaluated has no value; its text has the metrics that it needs. */
        KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
        KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
        kprof_found_missing(all->open[i], &missing);
        for (size_t k = 0; k < missing.count; k++)
            kprof_strbuf_printf(&text, "%s%s", k ? " " : "", missing.items[k]);
        kprof_found_why_not(all->open[i], &text);
        put_told(emitter, &(told_row){all->open[i]->finding->sections[0], "not_evaluated", all->open[i]->finding->id,
                                      NAN, "", kprof_strbuf_text(&text)});
    }
}

static void long_hot_line(kprof_emitter *emitter, const kprof_hot_line *line)
{
    put_told(emitter, &(told_row){"", "verdict", "hot_line", line->pct, "", line->reason ? line->reason : line->place});
}

static void long_finding(kprof_emitter *emitter, const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_found_say(found, true, &text);
    put_told(emitter, &(told_row){finding->sections[0], "finding", finding->id, found->gain_pct,
                                  kprof_confidence_name(finding->confidence), kprof_strbuf_text(&text)});
}

/* A launch without values has a row, too, which tells the reason. */
static void long_launch_end(kprof_emitter *emitter)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    if (csv->has_row)
        return;
    kprof_csv_begin_row(csv);
    for (size_t i = 0; i < KPROF_METRIC_COLUMN_COUNT; i++)
        kprof_csv_put_comma(&csv->row);
    kprof_csv_end_row(csv);
}

static void wide_launch_end(kprof_emitter *emitter)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    kprof_csv_begin_row(csv);
    for (size_t i = 0; i < emitter->launches.column_count; i++)
        kprof_csv_real(&csv->row, csv->values[i]);
    kprof_csv_end_row(csv);
}

const kprof_emitter_ops kprof_emit_csv = {
    .size = sizeof(kprof_csv),
    .traits = &kprof_csv_plain_columns,
    .launches_begin = long_launches_begin,
    .launch_begin = csv_launch_begin,
    .verdict = long_verdict,
    .hot_line = long_hot_line,
    .metric = long_metric,
    .finding = long_finding,
    .launch_end = long_launch_end,
    KPROF_CSV_OPERATIONS,
};

const kprof_emitter_ops kprof_emit_csv_wide = {
    .size = sizeof(kprof_csv),
    .traits = &kprof_csv_plain_columns,
    .launches_begin = wide_launches_begin,
    .launch_begin = csv_launch_begin,
    .metric = kprof_csv_keep_value,
    .launch_end = wide_launch_end,
    KPROF_CSV_OPERATIONS,
};
