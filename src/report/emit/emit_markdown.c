/* Markdown with tables, as GitHub and others show it: for issues, pull requests and notes. Values are scaled as in
 * text. Launches, which have no operations here, come as lists by default. */
#include "report/emit/emit.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct markdown_emitter {
    kprof_emitter base;
    kprof_emit_list list;
    kprof_strbuf heading; /* of the rows being written */
    kprof_strbuf line;    /* being put together */
    kprof_strbuf notes;   /* what follows the section's values */
    bool in_table, has_title;
    bool begun;      /* something was printed: a blank line comes between */
    bool has_excess; /* the page ends by explaining shares over 100 % */
} markdown_emitter;

static markdown_emitter *of(kprof_emitter *emitter)
{
    return (markdown_emitter *)emitter;
}

/* Underscores between letters or digits, as in "dram__bytes", mean nothing to Markdown. */
static bool is_inside_word(const char *text, size_t at)
{
    size_t start = at, end = at;
    while (start > 0 && text[start - 1] == '_')
        start--;
    while (text[end] == '_')
        end++;
    return start > 0 && isalnum((unsigned char)text[start - 1]) && isalnum((unsigned char)text[end]);
}

static bool follows(const char *text, size_t at, const char *word)
{
    const size_t length = strlen(word);
    return at >= length && strncasecmp(text + at - length, word, length) == 0;
}

/* Would GitHub turn the end of this text into a link to an address, a person or an issue? A report mentions none of
 * these, and a link to a name would notify that person. */
static bool begins_link(const char *text, size_t at)
{
    const unsigned char next = (unsigned char)text[at + 1];
    switch (text[at]) {
    case '@':
    case '#':
        return isalnum(next) || next == '_' || next == '-';
    case ':':
        return next == '/' && text[at + 2] == '/';
    case '.':
        return follows(text, at, "www");
    case '-':
        return follows(text, at, "gh") && isdigit(next);
    default:
        return false;
    }
}

/* Append text so that GitHub shows it unchanged in its cell. An invisible comment breaks what would become a link. */
static void put_text(kprof_strbuf *line, const char *text)
{
    static const char comment[] = "<!-- -->";
    static const bool marks[UCHAR_MAX + 1] = {
        ['\\'] = true, ['`'] = true, ['*'] = true, ['['] = true, [']'] = true, ['<'] = true,
        ['>'] = true,  ['|'] = true, ['~'] = true, ['&'] = true, ['$'] = true, ['_'] = true};
    char chunk[256];
    size_t length = 0;
    for (size_t i = 0; text[i]; i++) {
        if (length + 2 + strlen(comment) > sizeof chunk) {
            kprof_strbuf_append(line, chunk, length);
            length = 0;
        }
        if (marks[(unsigned char)text[i]] && (text[i] != '_' || !is_inside_word(text, i)))
            chunk[length++] = '\\';
        chunk[length++] = iscntrl((unsigned char)text[i]) ? ' ' : text[i];
        if (begins_link(text, i)) {
            memcpy(chunk + length, comment, strlen(comment));
            length += strlen(comment);
        }
    }
    kprof_strbuf_append(line, chunk, length);
}

static bool is_shown(const kprof_emit_field *field)
{
    if (field->role == KPROF_ROLE_PEOPLE)
        return !kprof_field_is_missing(field);
    return field->role == KPROF_ROLE_SHOWN || field->role == KPROF_ROLE_NOTE || field->role == KPROF_ROLE_VERDICT;
}

static void put_value(markdown_emitter *markdown, const kprof_emit_field *field)
{
    KPROF_AUTO(kprof_strbuf) value = KPROF_STRBUF_INIT;
    markdown->has_excess = markdown->has_excess || (field->is_value && kprof_is_excess(field->real, field->unit));
    kprof_field_describe(field, markdown->base.options->base_units, &value);
    put_text(&markdown->line, kprof_strbuf_text(&value));
}

static void end_line(markdown_emitter *markdown)
{
    kprof_strbuf_append(&markdown->line, "\n", 1);
    kprof_output_put(markdown->base.out, kprof_strbuf_text(&markdown->line), markdown->line.length);
    kprof_strbuf_clear(&markdown->line);
}

static void begin_block(markdown_emitter *markdown)
{
    if (markdown->begun)
        end_line(markdown);
    markdown->begun = true;
}

/* `level`: "## " and the like; "": a plain paragraph. */
static void show_heading(markdown_emitter *markdown, const char *level, const char *text)
{
    begin_block(markdown);
    kprof_strbuf_puts(&markdown->line, level);
    put_text(&markdown->line, text);
    end_line(markdown);
}

/* Put the labels of a record, or its values, into a row of a table. */
static void show_cells(markdown_emitter *markdown, const kprof_emit_record *record, bool are_labels)
{
    for (size_t i = 0; i < record->count; i++) {
        if (!is_shown(&record->fields[i]))
            continue;
        kprof_strbuf_puts(&markdown->line, "| ");
        if (are_labels)
            put_text(&markdown->line, record->fields[i].label);
        else
            put_value(markdown, &record->fields[i]);
        kprof_strbuf_puts(&markdown->line, " ");
    }
    kprof_strbuf_puts(&markdown->line, "|");
    end_line(markdown);
}

static void show_header(markdown_emitter *markdown, const kprof_emit_record *record)
{
    begin_block(markdown);
    show_cells(markdown, record, true);
    for (size_t i = 0; i < record->count; i++)
        if (is_shown(&record->fields[i]))
            kprof_strbuf_puts(&markdown->line, record->fields[i].type == KPROF_FIELD_TEXT ? "| --- " : "| ---: ");
    kprof_strbuf_puts(&markdown->line, "|");
    end_line(markdown);
    markdown->in_table = true;
}

/* A record of many fields is a table of two columns, which the first field heads. */
static void show_block(markdown_emitter *markdown, const kprof_emit_record *record)
{
    bool is_first = true;
    begin_block(markdown);
    for (size_t i = 0; i < record->count; i++) {
        if (!is_shown(&record->fields[i]))
            continue;
        kprof_strbuf_puts(&markdown->line, "| ");
        put_text(&markdown->line, record->fields[i].label);
        kprof_strbuf_puts(&markdown->line, " | ");
        put_value(markdown, &record->fields[i]);
        kprof_strbuf_puts(&markdown->line, is_first ? " |\n| --- | --- |" : " |");
        end_line(markdown);
        is_first = false;
    }
}

/* The first field of a record with rows is its heading; the others follow in a line. */
static void show_group(markdown_emitter *markdown, const kprof_emit_record *record)
{
    size_t shown = 0;
    for (size_t i = 0; i < record->count; i++) {
        const kprof_emit_field *field = &record->fields[i];
        if (!is_shown(field))
            continue;
        if (shown < 2)
            begin_block(markdown);
        kprof_strbuf_puts(&markdown->line, shown == 0 ? "### " : shown == 1 ? "" : ", ");
        if (!field->plain) {
            put_text(&markdown->line, field->label);
            kprof_strbuf_puts(&markdown->line, " ");
        }
        put_value(markdown, field);
        if (shown++ == 0)
            end_line(markdown);
    }
    if (markdown->line.length > 0)
        end_line(markdown);
}

static void markdown_list_begin(kprof_emitter *emitter, const kprof_emit_list *list)
{
    of(emitter)->list = *list;
    of(emitter)->has_title = list->shape == KPROF_LIST_ALONE;
    of(emitter)->in_table = false;
}

static void markdown_columns(kprof_emitter *emitter, const kprof_emit_record *columns)
{
    show_header(of(emitter), columns);
}

static void markdown_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    markdown_emitter *markdown = of(emitter);
    if (!kprof_record_is_shown(record))
        return;
    if (!markdown->has_title)
        show_heading(markdown, "## ", markdown->list.title);
    markdown->has_title = true;
    if (markdown->list.shape == KPROF_LIST_BLOCKS) {
        show_block(markdown, record);
    } else if (kprof_list_is_grouped(markdown->list.shape)) {
        show_group(markdown, record);
        markdown->in_table = false;
    } else {
        if (!markdown->in_table)
            show_header(markdown, record);
        show_cells(markdown, record, false);
    }
}

static void markdown_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    markdown_emitter *markdown = of(emitter);
    const char *heading = kprof_record_heading(row);
    const char *last = markdown->in_table ? kprof_strbuf_text(&markdown->heading) : "";
    if (!kprof_record_is_shown(row))
        return;
    if (heading && strcmp(heading, last) != 0) {
        kprof_strbuf_clear(&markdown->heading);
        kprof_strbuf_puts(&markdown->heading, heading);
        show_heading(markdown, "#### ", heading);
        markdown->in_table = false;
    }
    if (!markdown->in_table)
        show_header(markdown, row);
    show_cells(markdown, row, false);
}

/* "**heading**: text", a paragraph of its own, or part of a list; frees the text. */
static void put_bold(markdown_emitter *markdown, const char *mark, const char *heading, kprof_strbuf *text)
{
    kprof_strbuf_printf(&markdown->line, "%s**", mark);
    put_text(&markdown->line, heading);
    kprof_strbuf_puts(&markdown->line, *mark == '-' ? "**: " : "**");
    put_text(&markdown->line, kprof_strbuf_text(text));
    end_line(markdown);
    markdown->in_table = false;
    kprof_strbuf_free(text);
}

/* A list: what limits the launch, and what to do. */
static void markdown_verdict(kprof_emitter *emitter, const kprof_emit_findings *all)
{
    begin_block(of(emitter));
    for (kprof_verdict_row i = 0; i < KPROF_VERDICT_ROWS; i++) {
        KPROF_AUTO(kprof_verdict_text) row = kprof_emit_verdict_row(all, i, emitter->options->base_units);
        if (row.text.length > 0)
            put_bold(of(emitter), "- ", row.label, &row.text);
    }
    kprof_strbuf names = KPROF_STRBUF_INIT;
    kprof_emit_not_evaluated(all, &names);
    if (names.length > 0)
        put_bold(of(emitter), "- ", "Not evaluated", &names);
}

static void markdown_hot_line(kprof_emitter *emitter, const kprof_hot_line *line)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_hot_line_describe(line, &text);
    put_bold(of(emitter), "- ", "Hottest", &text);
}

static void put_paragraph(markdown_emitter *markdown, const char *text)
{
    show_heading(markdown, "", text);
    markdown->in_table = false;
}

/* Put all values of a section into one table; remarks on some of them come after it. */
static void markdown_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    KPROF_AUTO(kprof_strbuf) note = KPROF_STRBUF_INIT;
    kprof_emit_cells(emitter, table);
    kprof_table_describe_excess(table, &note);
    if (note.length > 0)
        kprof_strbuf_printf(&of(emitter)->notes, "%s%s", of(emitter)->notes.length > 0 ? ". " : "", note.data);
}

static void markdown_section_end(kprof_emitter *emitter)
{
    markdown_emitter *markdown = of(emitter);
    if (markdown->notes.length > 0)
        put_paragraph(markdown, markdown->notes.data);
    kprof_strbuf_clear(&markdown->notes);
}

static void markdown_page_end(kprof_emitter *emitter)
{
    if (of(emitter)->has_excess)
        put_paragraph(of(emitter), KPROF_EXCESS_MEANING);
}

static void markdown_finding(kprof_emitter *emitter, const kprof_found *found)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    markdown_section_end(emitter); /* what is noted of its values comes first */
    kprof_found_describe(found, &text);
    kprof_strbuf_puts(&text, ". ");
    kprof_found_say(found, emitter->options->base_units, &text);
    begin_block(of(emitter));
    put_bold(of(emitter), "> ", found->finding->name, &text);
}

static void markdown_free(kprof_emitter *emitter)
{
    KPROF_FREE_TEXTS(&of(emitter)->heading, &of(emitter)->line, &of(emitter)->notes);
}

const kprof_emitter_ops kprof_emit_markdown = {
    .size = sizeof(markdown_emitter),
    .verdict = markdown_verdict,
    .hot_line = markdown_hot_line,
    .table = markdown_table,
    .finding = markdown_finding,
    .section_end = markdown_section_end,
    .list_begin = markdown_list_begin,
    .columns = markdown_columns,
    .record_begin = markdown_record_begin,
    .row = markdown_row,
    .page_end = markdown_page_end,
    .free = markdown_free,
};
