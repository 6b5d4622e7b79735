/* Rows of CSV, and lists as such rows. */
#include "report/emit/csv.h"
#include "report/model/number.h"

#include <csv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const kprof_csv_columns *columns_of(const kprof_csv *csv)
{
    return csv->base.ops->traits;
}

void kprof_csv_launches_end(kprof_emitter *emitter)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    for (size_t i = 0; csv->tails && i < csv->base.launches.slot_count; i++)
        kprof_strbuf_free(&csv->tails[i].text);
    csv->tails = NULL;
}

void kprof_csv_free(kprof_emitter *emitter)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    kprof_csv_launches_end(emitter);
    KPROF_FREE_TEXTS(&csv->prefix.text, &csv->row.text);
}

/* Quote through libcsv: csv_write needs at most twice the length and two quotes. */
void kprof_csv_put_text(kprof_csv_line *row, const char *text)
{
    char fixed[512];
    const bool is_formula = row->is_safe && *text && strchr("=+-@\t\r", *text);
    if (row->is_bare && !is_formula && *text && !strpbrk(text, ",\"\r\n")) {
        kprof_strbuf_puts(&row->text, text);
        return;
    }
    size_t length = strlen(text), room = 2 * length + 2;
    char *quoted = room <= sizeof fixed ? fixed : kprof_calloc(1, room);
    size_t size = csv_write(quoted, room, text, length);
    kprof_strbuf_puts(&row->text, is_formula ? "\"'" : "\"");
    kprof_strbuf_append(&row->text, quoted + 1, size - 1); /* without its first quote */
    if (quoted != fixed)
        free(quoted);
}

void kprof_csv_text(kprof_csv_line *row, const char *text)
{
    kprof_csv_put_text(row, text);
    kprof_csv_put_comma(row);
}

void kprof_csv_take(kprof_csv_line *row, kprof_strbuf *text)
{
    kprof_csv_text(row, kprof_strbuf_text(text));
    kprof_strbuf_free(text);
}

static void put_integer(kprof_csv_line *row, int64_t value)
{
    char number[KPROF_NUMBER_SIZE];
    kprof_strbuf_append(&row->text, number, kprof_number_integer(number, value));
}

void kprof_csv_integer(kprof_csv_line *row, int64_t value)
{
    put_integer(row, value);
    kprof_csv_put_comma(row);
}

void kprof_csv_real(kprof_csv_line *row, double value)
{
    char number[KPROF_NUMBER_SIZE + 1];
    size_t length = kprof_number_exact(number, value);
    number[length] = ',';
    kprof_strbuf_append(&row->text, number, length + 1);
}

static void put_plain(kprof_csv_line *row, const kprof_emit_field *field)
{
    char number[KPROF_NUMBER_SIZE];
    if (field->type == KPROF_FIELD_TEXT && field->text)
        kprof_csv_put_text(row, field->text);
    else if (field->type == KPROF_FIELD_INTEGER)
        put_integer(row, field->integer);
    else if (field->type == KPROF_FIELD_REAL)
        kprof_strbuf_append(&row->text, number, kprof_number_exact(number, field->real));
}

void kprof_csv_names(kprof_csv_line *row, const char *const *names)
{
    for (; *names; names++)
        kprof_csv_text(row, *names);
}

void kprof_csv_end_row(kprof_csv *csv)
{
    kprof_strbuf *row = &csv->row.text;
    if (row->length > 0) {
        row->data[row->length - 1] = '\n';
        kprof_output_put(csv->base.out, row->data, row->length);
    }
    kprof_strbuf_clear(row);
}

/* The options are known once the emitter has been made. */
static void settle_safety(kprof_csv *csv)
{
    csv->row.is_safe = csv->prefix.is_safe = csv->base.options->csv_safe;
}

void kprof_csv_begin_launches(kprof_csv *csv)
{
    const kprof_emit_launches *launches = &csv->base.launches;
    settle_safety(csv);
    csv->tails = kprof_pool_calloc(&csv->base.pool, launches->slot_count + 1, sizeof *csv->tails);
    csv->values = kprof_pool_calloc(&csv->base.pool, launches->column_count + 1, sizeof *csv->values);
}

void kprof_csv_begin_launch(kprof_csv *csv)
{
    kprof_strbuf_clear(&csv->prefix.text);
    csv->has_row = false;
    for (size_t i = 0; i < csv->base.launches.column_count; i++)
        csv->values[i] = NAN;
}

void kprof_csv_begin_row(kprof_csv *csv)
{
    csv->has_row = true;
    kprof_strbuf_append(&csv->row.text, csv->prefix.text.data, csv->prefix.text.length);
}

void kprof_csv_begin_metric(kprof_csv *csv, const kprof_emit_metric *metric,
                            void (*put)(kprof_csv_line *tail, const kprof_emit_metric *metric))
{
    kprof_csv_line *tail = &csv->tails[metric->slot];
    csv->has_row = true;
    tail->is_safe = csv->row.is_safe;
    if (tail->text.length == 0)
        put(tail, metric);
    kprof_output_put(csv->base.out, csv->prefix.text.data, csv->prefix.text.length);
    kprof_output_put(csv->base.out, tail->text.data, tail->text.length);
}

void kprof_csv_keep_value(kprof_emitter *emitter, const kprof_emit_metric *metric)
{
    kprof_csv_of(emitter)->values[metric->column] = metric->value;
}

static void put_keys(kprof_csv *csv, const kprof_emit_record *record, const kprof_csv_columns *columns)
{
    for (size_t i = 0; i < record->count; i++) {
        const char *name = columns->name(record->fields[i].key);
        if (name && record->fields[i].role != KPROF_ROLE_PEOPLE)
            kprof_csv_text(&csv->row, name);
    }
}

static void put_fields(kprof_csv_line *row, const kprof_emit_record *record, const kprof_csv_columns *columns)
{
    for (size_t i = 0; i < record->count; i++) {
        if (!columns->name(record->fields[i].key) || record->fields[i].role == KPROF_ROLE_PEOPLE)
            continue;
        columns->put(row, &record->fields[i]);
        kprof_csv_put_comma(row);
    }
}

static const char *same_name(const char *key)
{
    return key;
}

const kprof_csv_columns kprof_csv_plain_columns = {same_name, put_plain};

static bool is_one_table(const kprof_emit_list *list)
{
    return list->shape == KPROF_LIST_ALONE || list->shape == KPROF_LIST_MAIN;
}

/* The columns of a page of one list are the fields of its records. Several lists have different fields: a row for each
 * field keeps the table rectangular. */
void kprof_csv_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    static const char *const columns[] = {"list", "record", "field", "unit", "value", NULL};
    kprof_csv *csv = kprof_csv_of(emitter);
    settle_safety(csv);
    csv->row.is_bare = list->shape == KPROF_LIST_ALONE; /* as scripts that read nsys's tables want them */
    csv->list = *list;
    csv->record = 0;
    if (list->is_aside)
        return;
    if (is_one_table(list) || kprof_list_is_grouped(list->shape) || csv->header_done)
        return;
    kprof_csv_names(&csv->row, columns);
    kprof_csv_end_row(csv);
    csv->header_done = true;
}

void kprof_csv_columns_of_list(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    if (emitter->options->table.no_header)
        return;
    put_keys(kprof_csv_of(emitter), columns, &kprof_csv_plain_columns);
    kprof_csv_end_row(kprof_csv_of(emitter));
}

/* The first row of GROUPS ends the header that its record has begun. */
void kprof_csv_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    csv->record++;
    if (csv->list.is_aside)
        return;
    if (is_one_table(&csv->list)) {
        if (csv->list.shape == KPROF_LIST_MAIN && !csv->header_done)
            kprof_csv_columns_of_list(emitter, record);
        csv->header_done = true;
        put_fields(&csv->row, record, &kprof_csv_plain_columns);
        kprof_csv_end_row(csv);
    } else if (kprof_list_is_grouped(csv->list.shape)) {
        kprof_strbuf_clear(&csv->prefix.text);
        put_fields(&csv->prefix, record, columns_of(csv));
        if (!csv->header_done)
            put_keys(csv, record, columns_of(csv));
    } else {
        for (size_t i = 0; i < record->count; i++) {
            kprof_csv_text(&csv->row, csv->list.key);
            kprof_csv_integer(&csv->row, csv->record);
            kprof_csv_text(&csv->row, record->fields[i].key);
            kprof_csv_text(&csv->row, record->fields[i].unit);
            put_plain(&csv->row, &record->fields[i]);
            kprof_csv_put_comma(&csv->row);
            kprof_csv_end_row(csv);
        }
    }
}

void kprof_csv_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    kprof_csv *csv = kprof_csv_of(emitter);
    if (!csv->header_done) {
        put_keys(csv, row, columns_of(csv));
        kprof_csv_end_row(csv);
        csv->header_done = true;
    }
    kprof_strbuf_append(&csv->row.text, csv->prefix.text.data, csv->prefix.text.length);
    put_fields(&csv->row, row, columns_of(csv));
    kprof_csv_end_row(csv);
}

/* Leave out a record without rows, and the header that it began. */
void kprof_csv_record_end(kprof_emitter *emitter)
{
    kprof_strbuf_clear(&kprof_csv_of(emitter)->row.text);
}
