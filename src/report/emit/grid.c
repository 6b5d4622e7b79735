/* Column widths and alignment. */
#include "report/emit/grid.h"
#include "core/clean.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_GAP    2
#define KEY_WIDTH_MIN 4
#define KEY_WIDTH     24 /* if keys would be narrower, move columns to further blocks */
#define KEY_INDENT    2  /* of the further lines of a key */
#define NOTE_INDENT   2
#define LABEL_COLUMNS 12 /* of a label and the space after it */
#define WRAP_WIDTH    20 /* of a column whose texts are broken, at least */
#define FOLD_WIDTH    40 /* if a long text would be narrower, fold its column if it can be */

/* A text below a row. */
struct kprof_grid_note_text {
    size_t cells_before;
    const char *label; /* NULL: none */
    char *text;
};

kprof_grid kprof_grid_make(const char *kinds)
{
    kprof_grid grid = {.key_count = 1, .group = 1};
    for (; *kinds && grid.column_count < KPROF_GRID_COLUMNS_MAX; kinds++)
        grid.is_number[grid.column_count++] = *kinds == 'n';
    return grid;
}

static size_t add_text(kprof_grid *grid, const char *text)
{
    size_t start = grid->texts.length;
    kprof_strbuf_append(&grid->texts, text, strlen(text) + 1);
    return start;
}

void kprof_grid_add(kprof_grid *grid, const char *text, const char *unit)
{
    kprof_grid_cell cell = {.text = add_text(grid, text)};
    cell.unit = *unit ? add_text(grid, unit) : cell.text + strlen(text);
    *KPROF_ADD(grid->cells, grid->cell_count) = cell;
}

void kprof_grid_miss(kprof_grid *grid)
{
    if (grid->cell_count > 0)
        grid->cells[grid->cell_count - 1].is_missing = true;
}

void kprof_grid_mark(kprof_grid *grid)
{
    if (grid->cell_count > 0)
        grid->cells[grid->cell_count - 1].is_marked = true;
}

void kprof_grid_note(kprof_grid *grid, const char *label, const char *text)
{
    *KPROF_ADD(grid->notes, grid->note_count) =
        (struct kprof_grid_note_text){grid->cell_count, label, kprof_strdup(text)};
}

static void clear(kprof_grid *grid)
{
    kprof_strbuf_clear(&grid->texts);
    for (size_t i = 0; i < grid->note_count; i++)
        free(grid->notes[i].text);
    grid->cell_count = grid->note_count = 0;
}

void kprof_grid_free(kprof_grid *grid)
{
    clear(grid);
    kprof_strbuf_free(&grid->texts);
    KPROF_FREE(grid->cells, grid->notes);
    grid->cells = NULL;
    grid->notes = NULL;
}

size_t kprof_text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += !kprof_utf8_continues(*text);
    return width;
}

/* May a line end here? "13 %" stays together. */
static bool is_gap(const char *text)
{
    return text[0] == ' ' && text[1] != '%';
}

size_t kprof_text_line(const char *text, size_t width)
{
    size_t end = 0, columns = 0, space = 0, joint = 0;
    width = width ? width : 1;
    for (; text[end]; end++) {
        const bool begins = !kprof_utf8_continues(text[end]);
        if (begins && is_gap(text + end))
            space = end;
        if (begins && columns++ == width)
            break;
        if (strchr("_.,:/<>()", text[end]))
            joint = end + 1;
    }
    if (!text[end])
        return end;
    return space ? space : joint ? joint : end;
}

const char *kprof_text_next_line(const char *text, size_t width)
{
    text += kprof_text_line(text, width);
    return text + strspn(text, " ");
}

void kprof_text_labelled(kprof_output *out, kprof_text_place place, const char *label, const char *text)
{
    const size_t indent = place.indent + (label ? LABEL_COLUMNS : 0);
    const size_t room = place.width > indent ? place.width - indent : 1;
    for (bool is_first = true; *text; is_first = false, text = kprof_text_next_line(text, room)) {
        kprof_output_repeat(out, ' ', label && is_first ? place.indent : indent);
        if (label && is_first)
            kprof_output_printf(out, "%-*s", LABEL_COLUMNS, label);
        kprof_output_put(out, text, kprof_text_line(text, room));
        kprof_output_puts(out, "\n");
    }
}

/* Widths of a column: of its texts, and of the units and marks after them, with the space before these. */
typedef struct column_width {
    size_t text, unit, mark, total;
} column_width;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static const char *text_at(const kprof_grid *grid, size_t start)
{
    return grid->texts.data + start;
}

static const char *mark_of(const kprof_grid_cell *cell)
{
    return cell->is_marked ? "*" : "";
}

/* Columns of a unit or a mark; there is none without a space before it. */
static size_t with_space(const char *text)
{
    return *text ? kprof_text_width(text) + 1 : 0;
}

static column_width measure(const kprof_grid *grid, size_t column)
{
    column_width width = {0};
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        width.text = larger(width.text, kprof_text_width(text_at(grid, grid->cells[i].text)));
        width.unit = larger(width.unit, with_space(text_at(grid, grid->cells[i].unit)));
        width.mark = larger(width.mark, with_space(mark_of(&grid->cells[i])));
    }
    size_t content = width.text + width.unit + width.mark;
    width.total = larger(content, grid->headers[column] ? kprof_text_width(grid->headers[column]) : 0);
    width.text += width.total - content; /* a wide header moves the numbers to the right */
    return width;
}

/* A line being printed. Spaces are held back until something follows, so that none ends in them. */
typedef struct grid_line {
    kprof_output *out;
    size_t pending;
} grid_line;

static void put(grid_line *line, const char *text)
{
    if (!*text)
        return;
    kprof_output_repeat(line->out, ' ', line->pending);
    kprof_output_puts(line->out, text);
    line->pending = 0;
}

/* A unit or a mark, which begins its part of a column. */
static void put_after(grid_line *line, const char *text, size_t width)
{
    line->pending += *text ? 1 : 0;
    put(line, text);
    line->pending += width - with_space(text);
}

static void put_aligned(grid_line *line, const char *text, size_t width, bool is_number)
{
    size_t padding = width - kprof_text_width(text);
    line->pending += is_number ? padding : 0;
    put(line, text);
    line->pending += is_number ? 0 : padding;
}

/* How the columns are printed: the first `column_count` of them, and the lines of a key that is broken. */
typedef struct grid_layout {
    column_width widths[KPROF_GRID_COLUMNS_MAX];
    size_t column_count, indent;
    bool is_folded;  /* the columns that can be */
    size_t from, to; /* the columns of the block that is being printed, beside the key columns */
} grid_layout;

static size_t width_of_columns(const grid_layout *layout, size_t from, size_t to)
{
    size_t total = 0;
    for (size_t i = from; i < to; i++)
        total += layout->widths[i].total > 0 ? layout->widths[i].total + COLUMN_GAP : 0;
    return total;
}

static bool is_folded(const kprof_grid *grid, const grid_layout *layout, size_t column)
{
    return layout->is_folded && grid->folds[column] != KPROF_FOLD_NEVER;
}

static bool is_in_block(const kprof_grid *grid, const grid_layout *layout, size_t column)
{
    return !is_folded(grid, layout, column) &&
           (column < grid->key_count || (column >= layout->from && column < layout->to));
}

/* Would the key's column cut a word of a text? */
static bool is_cut(const kprof_grid *grid, const grid_layout *layout, const char *text)
{
    const size_t key = grid->key_count - 1, width = layout->widths[key].text;
    const size_t rest = grid->wraps ? width : width > KEY_INDENT ? width - KEY_INDENT : 1;
    if (grid->is_number[key] || is_folded(grid, layout, key))
        return false;
    for (size_t room = width, columns = 0; *text; text++) {
        columns = is_gap(text) ? 0 : columns + !kprof_utf8_continues(*text);
        room = *text == ' ' ? rest : room;
        if (columns > room)
            return true;
    }
    return false;
}

/* Columns before the further lines of a text: they stand behind the start of one that is indented itself. */
static size_t hang_of(const char *text)
{
    const size_t indent = strspn(text, " ");
    return indent > 0 ? indent + KEY_INDENT : 0;
}

/* A row, or the headers, and what is still to be printed of each text. */
typedef struct grid_row {
    const kprof_grid_cell *cells; /* NULL: these are headers, which take the place of a unit and a mark, too */
    const char *texts[KPROF_GRID_COLUMNS_MAX], *rest[KPROF_GRID_COLUMNS_MAX];
} grid_row;

/* Print the next line of each text, and move on. False when nothing is left. */
static bool print_line(const kprof_grid *grid, kprof_output *out, const grid_layout *layout, grid_row *row)
{
    grid_line line = {out, layout->indent};
    bool has_more = false;
    for (size_t i = 0; i < layout->column_count; i++) {
        const column_width *column = &layout->widths[i];
        const bool is_first = row->rest[i] == row->texts[i], is_key = i == grid->key_count - 1;
        const bool is_broken = !grid->is_number[i] && (grid->wraps || is_key);
        if (!is_in_block(grid, layout, i))
            continue;
        const size_t width = row->cells ? column->text : column->total;
        const size_t wanted = grid->wraps ? hang_of(row->texts[i]) : is_key ? KEY_INDENT : 0;
        const size_t hang = is_first || *row->rest[i] == '\0' || wanted >= width ? 0 : wanted;
        const size_t bytes = is_broken ? kprof_text_line(row->rest[i], width - hang) : strlen(row->rest[i]);
        KPROF_AUTO_FREE char *text = kprof_strndup(row->rest[i], bytes);
        line.pending += hang;
        put_aligned(&line, text, width - hang, grid->is_number[i]);
        if (row->cells) {
            put_after(&line, is_first ? text_at(grid, row->cells[i].unit) : "", column->unit);
            put_after(&line, is_first ? mark_of(&row->cells[i]) : "", column->mark);
        }
        line.pending += COLUMN_GAP;
        row->rest[i] += bytes + strspn(row->rest[i] + bytes, " ");
        has_more = has_more || *row->rest[i];
    }
    kprof_output_puts(out, "\n");
    return has_more;
}

/* Print a row whose texts are there. The key stands above the rest where its column would cut a word of it. */
static void print_texts(const kprof_grid *grid, kprof_output *out, const grid_layout *layout, grid_row *row)
{
    const size_t key = grid->key_count - 1;
    if (is_cut(grid, layout, row->texts[key])) {
        /* Print the key in lines of its own, above the rest of its row. */
        const size_t indent = layout->indent + width_of_columns(layout, 0, grid->key_count - 1);
        const size_t room = grid->width > indent ? grid->width - indent : 1;
        kprof_output_repeat(out, ' ', indent);
        kprof_output_put(out, row->texts[key], kprof_text_line(row->texts[key], room));
        kprof_output_puts(out, "\n");
        kprof_text_labelled(out, (kprof_text_place){indent + KEY_INDENT, grid->width}, NULL,
                            kprof_text_next_line(row->texts[key], room));
        row->texts[key] = "";
    }
    memcpy(row->rest, row->texts, sizeof row->rest);
    while (print_line(grid, out, layout, row))
        ;
}

static void print_header(const kprof_grid *grid, kprof_output *out, const grid_layout *layout)
{
    /* The later blocks belong to the same table, whose title stands above the first. */
    const bool is_first = layout->from <= grid->key_count;
    grid_row row = {.cells = NULL};
    for (size_t i = 0; i < layout->column_count; i++)
        row.texts[i] = grid->headers[i] && (is_first || i >= grid->key_count) ? grid->headers[i] : "";
    print_texts(grid, out, layout, &row);
}

/* Find the place of texts below a row. */
static kprof_text_place note_place(const kprof_grid *grid, const grid_layout *layout, const kprof_grid_cell *cells)
{
    const size_t hang = hang_of(text_at(grid, cells[grid->key_count - 1].text));
    const size_t indent = layout->indent + larger(NOTE_INDENT, hang);
    return (kprof_text_place){indent, grid->width > indent ? grid->width : SIZE_MAX};
}

/* The folded columns of a row: long texts, then "Minimum 1 us, Maximum 2 us". */
static void print_folded(const kprof_grid *grid, kprof_output *out, const grid_layout *layout,
                         const kprof_grid_cell *cells)
{
    KPROF_AUTO(kprof_strbuf) line = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < layout->column_count; i++) {
        const char *text = text_at(grid, cells[i].text), *unit = text_at(grid, cells[i].unit);
        const char *mark = mark_of(&cells[i]);
        if (!is_folded(grid, layout, i) || cells[i].is_missing || *text == '\0')
            continue;
        if (grid->folds[i] == KPROF_FOLD_TEXT)
            kprof_text_labelled(out, note_place(grid, layout, cells), NULL, text);
        else
            kprof_strbuf_printf(&line, "%s%s %s%s%s%s%s", line.length ? ", " : "",
                                grid->headers[i] ? grid->headers[i] : "", text, *unit ? " " : "", unit,
                                *mark ? " " : "", mark);
    }
    if (line.length)
        kprof_text_labelled(out, note_place(grid, layout, cells), NULL, line.data);
}

/* Width of a line with all columns. */
static size_t width_of_line(const grid_layout *layout)
{
    return layout->indent + width_of_columns(layout, 0, layout->column_count) - COLUMN_GAP;
}

/* Columns of a key that is broken into lines of at most `room` columns. */
static size_t width_when_broken(const char *text, size_t room)
{
    size_t widest = 0, indent = 0;
    while (*text) {
        const size_t line_room = room > indent ? room - indent : 1, bytes = kprof_text_line(text, line_room);
        size_t columns = indent;
        for (size_t i = 0; i < bytes; i++)
            columns += !kprof_utf8_continues(text[i]);
        widest = larger(widest, columns);
        text = kprof_text_next_line(text, line_room);
        indent = KEY_INDENT;
    }
    return widest;
}

/* Narrow the last key column to at most this many columns, or to what its lines need. */
static void limit_key(const kprof_grid *grid, grid_layout *layout, size_t room)
{
    const size_t column = grid->key_count - 1;
    column_width *key = &layout->widths[column];
    const size_t after = key->unit + key->mark, text_room = larger(room, after + 1) - after;
    if (key->total <= room)
        return;
    key->text = 0;
    for (size_t i = column; i < grid->cell_count; i += grid->column_count)
        key->text = larger(key->text, width_when_broken(text_at(grid, grid->cells[i].text), text_room));
    const char *header = grid->headers[column] ? grid->headers[column] : "";
    key->total = larger(key->text + after, width_when_broken(header, text_room + after));
    key->text = key->total - after;
}

/* The end of the block that begins at a column: at least one group, and as many as `width` has room for. */
static size_t end_of_block(const kprof_grid *grid, const grid_layout *layout, size_t from, size_t width)
{
    size_t total = layout->indent + width_of_columns(layout, 0, grid->key_count), to = from;
    while (to < layout->column_count) {
        size_t next = to + grid->group < layout->column_count ? to + grid->group : layout->column_count;
        total += width_of_columns(layout, to, next);
        if (to > from && total - COLUMN_GAP > width)
            break;
        to = next;
    }
    return to;
}

static size_t count_blocks(const kprof_grid *grid, const grid_layout *layout, size_t width)
{
    size_t count = 0;
    for (size_t from = grid->key_count; from < layout->column_count; count++)
        from = end_of_block(grid, layout, from, width);
    return count;
}

/* Columns that the key can have: all but the indent and the widest group. */
static size_t room_of_key(const kprof_grid *grid, const grid_layout *layout)
{
    size_t widest = 0;
    for (size_t from = grid->key_count; from < layout->column_count; from += grid->group) {
        const size_t to = from + grid->group < layout->column_count ? from + grid->group : layout->column_count;
        widest = larger(widest, width_of_columns(layout, from, to));
    }
    const size_t beside = layout->indent + width_of_columns(layout, 0, grid->key_count - 1) + widest;
    return grid->width > beside ? grid->width - beside : 0;
}

/* Columns of the longest word of a column of texts, wherever it stands. */
static size_t width_of_words(const kprof_grid *grid, size_t column)
{
    size_t widest = 0;
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        const char *text = text_at(grid, grid->cells[i].text);
        const size_t hang = grid->wraps ? hang_of(text) : 0;
        for (size_t columns = 0; *text; text++) {
            columns = is_gap(text) ? 0 : columns + !kprof_utf8_continues(*text);
            widest = larger(widest, hang + columns);
        }
    }
    return widest;
}

/* Take from the widest column of texts until the line fits or each has no more than its least. */
static void narrow_texts(const kprof_grid *grid, grid_layout *layout, const size_t *least)
{
    while (width_of_line(layout) > grid->width) {
        column_width *widest = NULL;
        for (size_t i = 0; i < layout->column_count; i++) {
            column_width *width = &layout->widths[i];
            if (!grid->is_number[i] && width->text > least[i] && (!widest || width->text > widest->text))
                widest = width;
        }
        if (!widest)
            return;
        widest->text--;
        widest->total--;
    }
}

/* Narrow the column of keys where its long texts stand above their rows, and give the other columns the room. */
static void release_key(const kprof_grid *grid, grid_layout *layout, const grid_layout *whole)
{
    const size_t column = grid->key_count - 1;
    size_t least[KPROF_GRID_COLUMNS_MAX], needed = grid->headers[column] ? kprof_text_width(grid->headers[column]) : 0;
    bool is_above = false;
    for (size_t i = column; i < grid->cell_count; i += grid->column_count) {
        const char *text = text_at(grid, grid->cells[i].text);
        const bool cut = is_cut(grid, layout, text);
        is_above = is_above || cut;
        needed = cut ? needed : larger(needed, kprof_text_width(text));
    }
    column_width *key = &layout->widths[column];
    if (!is_above || needed >= key->text)
        return;
    key->total -= key->text - needed;
    key->text = needed;
    for (size_t i = 0; i < layout->column_count; i++) {
        least[i] = layout->widths[i].text;
        if (i != column && least[i] > 0)
            layout->widths[i] = whole->widths[i];
    }
    narrow_texts(grid, layout, least);
}

/* Break the texts of all columns: between words, and where that is not enough fold columns and break words too. */
static void wrap_texts(const kprof_grid *grid, grid_layout *layout)
{
    size_t least[KPROF_GRID_COLUMNS_MAX] = {0}, words[KPROF_GRID_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < layout->column_count; i++) {
        least[i] = larger(WRAP_WIDTH, grid->headers[i] ? kprof_text_width(grid->headers[i]) : 0);
        words[i] = larger(least[i], grid->is_number[i] ? 0 : width_of_words(grid, i));
        if (grid->folds[i] == KPROF_FOLD_TEXT)
            words[i] = larger(words[i], FOLD_WIDTH);
    }
    grid_layout whole = *layout;
    narrow_texts(grid, layout, words);
    if (width_of_line(layout) > grid->width) {
        *layout = whole;
        /* Give columns that can fold no width, if there are any. */
        for (size_t i = 0; i < layout->column_count; i++) {
            if (grid->folds[i] == KPROF_FOLD_NEVER)
                continue;
            layout->is_folded = true;
            layout->widths[i] = (column_width){0};
        }
        narrow_texts(grid, layout, words);
    }
    narrow_texts(grid, layout, least);
    const size_t column = grid->key_count - 1, room = larger(room_of_key(grid, layout), KEY_WIDTH_MIN);
    column_width *key = &layout->widths[column];
    if (!grid->is_number[column] && key->total > room) {
        key->text -= key->total - room;
        key->total = room;
    }
    release_key(grid, layout, &whole);
}

static grid_layout lay_out(const kprof_grid *grid, size_t indent)
{
    grid_layout layout = {.column_count = grid->column_count, .indent = indent};
    for (size_t i = 0; i < grid->column_count; i++)
        layout.widths[i] = measure(grid, i);
    if (grid->width == 0 || width_of_line(&layout) <= grid->width)
        return layout;
    if (grid->has_bars)
        layout.column_count--;
    if (grid->wraps) {
        wrap_texts(grid, &layout);
        return layout;
    }
    const size_t key = layout.widths[grid->key_count - 1].total, others = width_of_line(&layout) - key;
    if (width_of_line(&layout) <= grid->width)
        return layout;
    const size_t room = room_of_key(grid, &layout), third = grid->width / 3;
    const size_t words = width_of_words(grid, grid->key_count - 1) + KEY_INDENT;
    const size_t wanted = words > room ? third : larger(words, third);
    if (others + KEY_WIDTH <= grid->width)
        limit_key(grid, &layout, grid->width - others);
    else
        limit_key(grid, &layout, larger(wanted < room ? wanted : room, KEY_WIDTH_MIN));
    return layout;
}

static void print_block(const kprof_grid *grid, kprof_output *out, const grid_layout *layout)
{
    if (KPROF_ANY(i, grid->column_count, grid->headers[i]))
        print_header(grid, out, layout);
    for (size_t i = 0; i + grid->column_count <= grid->cell_count; i += grid->column_count) {
        grid_row row = {.cells = &grid->cells[i]};
        for (size_t k = 0; k < layout->column_count; k++)
            row.texts[k] = text_at(grid, row.cells[k].text);
        print_texts(grid, out, layout, &row);
        if (layout->from != grid->key_count)
            continue;
        for (size_t k = 0; k < grid->note_count; k++) {
            if (grid->notes[k].cells_before == i + grid->column_count)
                kprof_text_labelled(out, note_place(grid, layout, &grid->cells[i]), grid->notes[k].label,
                                    grid->notes[k].text);
        }
        print_folded(grid, out, layout, &grid->cells[i]);
    }
}

void kprof_grid_print(kprof_grid *grid, kprof_output *out, size_t indent)
{
    if (grid->column_count == 0)
        return;
    grid_layout layout = lay_out(grid, indent);
    /* Find the smallest width that needs no more blocks: blocks of similar width read better. */
    size_t width = grid->width ? grid->width : SIZE_MAX;
    const size_t count = grid->width ? count_blocks(grid, &layout, width) : 1;
    while (count > 1 && width > 1 && count_blocks(grid, &layout, width - 1) == count)
        width--;
    layout.from = grid->key_count;
    do {
        layout.to = end_of_block(grid, &layout, layout.from, width);
        if (grid->cell_count > 0 || grid->is_headed)
            print_block(grid, out, &layout);
        layout.from = layout.to;
    } while (layout.from < layout.column_count);
    clear(grid);
}
