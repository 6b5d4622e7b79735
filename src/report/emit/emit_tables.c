/* A list as a table in the other formats that nsys stats has: with tabs between columns, in boxes, and as HTML. */
#include "core/clean.h"
#include "report/emit/emit.h"
#include "report/emit/grid.h"
#include "report/model/number.h"

#define FIRST_ROWS 100 /* tell how wide a box is */
#define MOST_WIDTH 100 /* of a box, unless the style has no limit */

typedef struct tables_emitter {
    kprof_emitter base;
    kprof_emit_list list;
    kprof_strbuf line;    /* being put together */
    kprof_strlist cells;  /* of the rows that wait for the width of boxes, the header's first */
    kprof_strbuf numbers; /* a character for each cell: 'n' aligned right, 't' left, 'h' in the middle */
    size_t column_count, widths[KPROF_GRID_COLUMNS_MAX];
    bool is_laid_out; /* no row waits any more */
} tables_emitter;

static tables_emitter *of(kprof_emitter *emitter)
{
    return (tables_emitter *)emitter;
}

static void end_line(tables_emitter *tables)
{
    kprof_strbuf_append(&tables->line, "\n", 1);
    kprof_output_put(tables->base.out, tables->line.data, tables->line.length);
    kprof_strbuf_clear(&tables->line);
}

static void tables_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    of(emitter)->list = *list;
}

/* Append a value with all its digits, for programs. A missing one is empty. */
static void put_exact(kprof_strbuf *out, const kprof_emit_field *field)
{
    char number[KPROF_NUMBER_SIZE];
    if (kprof_field_is_missing(field))
        return;
    if (field->type == KPROF_FIELD_TEXT)
        kprof_strbuf_puts(out, field->text);
    else
        kprof_strbuf_append(out, number,
                            field->type == KPROF_FIELD_INTEGER ? kprof_number_integer(number, field->integer)
                                                               : kprof_number_exact(number, field->real));
}

static void put_value(const tables_emitter *tables, const kprof_emit_field *field, kprof_strbuf *out)
{
    if (tables->base.options->table.no_grouping)
        put_exact(out, field);
    else
        kprof_field_describe(field, false, out);
}

/* Texts come clean: a tab in one is spelled out. */
static void tsv_columns(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    if (emitter->options->table.no_header)
        return;
    for (size_t i = 0; i < columns->count; i++)
        kprof_strbuf_printf(&of(emitter)->line, "%s%s", i ? "\t" : "", columns->fields[i].label);
    end_line(of(emitter));
}

static void tsv_record(kprof_emitter *emitter, const kprof_emit_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        kprof_strbuf_puts(&of(emitter)->line, i ? "\t" : "");
        put_exact(&of(emitter)->line, &record->fields[i]);
    }
    end_line(of(emitter));
}

/* Append a cell in its width: what does not fit ends in an ellipsis. */
static void put_cell(kprof_strbuf *line, const char *text, char kind, size_t width)
{
    const size_t length = kprof_text_width(text), space = length < width ? width - length : 0,
                 left = kind == 'n'   ? space
                        : kind == 'h' ? space / 2
                                      : 0;
    kprof_strbuf_printf(line, "%*s", (int)left, "");
    if (length > width) {
        size_t end = 0;
        for (size_t columns = 0; columns < width || kprof_utf8_continues(text[end]); end++)
            columns += !kprof_utf8_continues(text[end + 1]);
        while (end > 0 && kprof_utf8_continues(text[--end]))
            continue;
        kprof_strbuf_append(line, text, end);
        kprof_strbuf_puts(line, "\u2026");
    } else {
        kprof_strbuf_puts(line, text);
    }
    kprof_strbuf_printf(line, "%*s ", (int)(space - left), "");
}

/* The width that is asked for of a column; -1: none. */
static int asked_width(const tables_emitter *tables, size_t column)
{
    const kprof_table_style *style = &tables->base.options->table;
    return column < style->width_count ? style->widths[column] : -1;
}

static void show_edge(tables_emitter *tables, bool is_below_header)
{
    const bool no_lines = tables->base.options->table.no_lines;
    if (no_lines && !is_below_header)
        return;
    for (size_t i = 0; i < tables->column_count; i++) {
        if (asked_width(tables, i) == 0)
            continue;
        kprof_strbuf_puts(&tables->line, no_lines ? " " : "+-");
        for (size_t k = 0; k < tables->widths[i]; k++)
            kprof_strbuf_append(&tables->line, "-", 1);
        kprof_strbuf_puts(&tables->line, no_lines ? " " : "-");
    }
    kprof_strbuf_puts(&tables->line, no_lines ? "" : "+");
    end_line(tables);
}

/* Print the rows that wait. */
static void show_boxes(tables_emitter *tables)
{
    const bool no_lines = tables->base.options->table.no_lines;
    for (size_t i = 0; i < tables->cells.count; i++) {
        const bool is_header = tables->numbers.data[i] == 'h';
        const size_t column = i % tables->column_count;
        if (asked_width(tables, column) != 0) {
            kprof_strbuf_puts(&tables->line, no_lines ? " " : "| ");
            put_cell(&tables->line, tables->cells.items[i], tables->numbers.data[i], tables->widths[column]);
        }
        if (column + 1 < tables->column_count)
            continue;
        kprof_strbuf_puts(&tables->line, no_lines ? "" : "|");
        end_line(tables);
        if (is_header)
            show_edge(tables, true);
    }
    kprof_strlist_free(&tables->cells);
    kprof_strbuf_clear(&tables->numbers);
}

static void lay_out(tables_emitter *tables)
{
    const size_t most = tables->base.options->table.no_limit ? SIZE_MAX : MOST_WIDTH;
    for (size_t i = 0; i < tables->cells.count; i++) {
        size_t *width = &tables->widths[i % tables->column_count];
        const size_t own = kprof_text_width(tables->cells.items[i]);
        *width = own <= *width ? *width : own < most ? own : most;
    }
    for (size_t i = 0; i < tables->column_count; i++)
        tables->widths[i] = asked_width(tables, i) > 0 ? (size_t)asked_width(tables, i) : tables->widths[i];
    tables->is_laid_out = true;
    show_edge(tables, false);
    show_boxes(tables);
}

static void boxes_columns(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    tables_emitter *tables = of(emitter);
    if (emitter->options->table.has_title)
        kprof_output_printf(emitter->out, " ** %s (%s):\n\n", tables->list.title, tables->list.key);
    tables->column_count = columns->count < KPROF_GRID_COLUMNS_MAX ? columns->count : KPROF_GRID_COLUMNS_MAX;
    for (size_t i = 0; i < tables->column_count && !emitter->options->table.no_header; i++) {
        kprof_strlist_add(&tables->cells, columns->fields[i].label);
        kprof_strbuf_append(&tables->numbers, "h", 1);
    }
}

static void boxes_record(kprof_emitter *emitter, const kprof_emit_record *record)
{
    tables_emitter *tables = of(emitter);
    if (tables->column_count == 0)
        boxes_columns(emitter, record);
    for (size_t i = 0; i < tables->column_count; i++) {
        const bool is_there = i < record->count;
        kprof_strbuf value = KPROF_STRBUF_INIT;
        if (is_there)
            put_value(tables, &record->fields[i], &value);
        kprof_strlist_take(&tables->cells, kprof_strbuf_take(&value));
        kprof_strbuf_append(&tables->numbers, is_there && record->fields[i].type != KPROF_FIELD_TEXT ? "n" : "t", 1);
    }
    if (tables->is_laid_out)
        show_boxes(tables);
    else if (tables->cells.count >= FIRST_ROWS * tables->column_count)
        lay_out(tables);
}

static void boxes_list_end(kprof_emitter *emitter)
{
    tables_emitter *tables = of(emitter);
    if (!tables->is_laid_out)
        lay_out(tables);
    show_edge(tables, false);
}

static void put_html(kprof_strbuf *out, const char *text)
{
    for (; *text; text++) {
        static const char *const names[] = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
        const unsigned char c = (unsigned char)*text;
        if (c < COUNT_OF(names) && names[c])
            kprof_strbuf_puts(out, names[c]);
        else
            kprof_strbuf_append(out, text, 1);
    }
}

static void html_columns(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    kprof_strbuf *line = &of(emitter)->line;
    kprof_strbuf_puts(line, "<table>\n<thead><tr>");
    for (size_t i = 0; i < columns->count; i++) {
        kprof_strbuf_puts(line, "<th>");
        put_html(line, columns->fields[i].label);
        kprof_strbuf_puts(line, "</th>");
    }
    kprof_strbuf_puts(line, "</tr></thead>\n<tbody>");
    end_line(of(emitter));
}

static void html_record(kprof_emitter *emitter, const kprof_emit_record *record)
{
    kprof_strbuf *line = &of(emitter)->line;
    kprof_strbuf_puts(line, "<tr>");
    for (size_t i = 0; i < record->count; i++) {
        KPROF_AUTO(kprof_strbuf) value = KPROF_STRBUF_INIT;
        put_value(of(emitter), &record->fields[i], &value);
        kprof_strbuf_puts(line, record->fields[i].type == KPROF_FIELD_TEXT ? "<td>" : "<td class=\"number\">");
        put_html(line, kprof_strbuf_text(&value));
        kprof_strbuf_puts(line, "</td>");
    }
    kprof_strbuf_puts(line, "</tr>");
    end_line(of(emitter));
}

static void html_list_end(kprof_emitter *emitter)
{
    kprof_output_puts(emitter->out, "</tbody>\n</table>\n");
}

static void hdoc_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    static const char style[] = "<style>body{font-family:sans-serif}table{border-collapse:collapse}th,td{padding:2px "
                                "8px;border:1px solid #bbb;text-align:left}td.number{text-align:right;"
                                "font-variant-numeric:tabular-nums}</style>";
    const kprof_table_style *table = &emitter->options->table;
    kprof_strbuf *line = &of(emitter)->line;
    kprof_strbuf_puts(line, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
    put_html(line, table->title ? table->title : list->title);
    kprof_strbuf_puts(line, "</title>\n");
    kprof_strbuf_puts(line, table->css ? "<link rel=\"stylesheet\" href=\"" : style);
    put_html(line, table->css ? table->css : "");
    kprof_strbuf_puts(line, table->css ? "\">\n</head>\n<body>" : "\n</head>\n<body>");
    end_line(of(emitter));
}

static void hdoc_list_end(kprof_emitter *emitter)
{
    html_list_end(emitter);
    kprof_output_puts(emitter->out, "</body>\n</html>\n");
}

static void tables_free(kprof_emitter *emitter)
{
    KPROF_FREE_TEXTS(&of(emitter)->line, &of(emitter)->numbers);
    kprof_strlist_free(&of(emitter)->cells);
}

#define OPERATIONS .size = sizeof(tables_emitter), .free = tables_free
const kprof_emitter_ops kprof_emit_tsv = {OPERATIONS, .columns = tsv_columns, .record_begin = tsv_record};
const kprof_emitter_ops kprof_emit_boxes = {OPERATIONS, .list_begin = tables_list_begin, .columns = boxes_columns,
                                            .record_begin = boxes_record, .list_end = boxes_list_end};
const kprof_emitter_ops kprof_emit_htable = {OPERATIONS, .columns = html_columns, .record_begin = html_record,
                                             .list_end = html_list_end};
const kprof_emitter_ops kprof_emit_hdoc = {OPERATIONS, .list_begin = hdoc_list_begin, .columns = html_columns,
                                           .record_begin = html_record, .list_end = hdoc_list_end};
