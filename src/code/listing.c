/* Reads nvdisasm's listing of code, which is the same in every version: ".text.NAME:" begins a section, "NAME:" is a
 * label. The line of an instruction is its offset in the section, its text and a semicolon. Newer versions put the
 * scoreboards of the instruction between text and semicolon. */
#include "code/listing.h"

#include "code/parts.h"
#include "code/sass.h"
#include "code/waits.h"
#include "core/bisect.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    kprof_code *code;
    kprof_code_function **functions; /* sorted by section */
    bool *is_taken;                  /* a section is read once; by the number of its first function */
    size_t first, end;               /* those of the section that is read */
    kprof_code_listing listing;
    kprof_strbuf labels;  /* of the section */
    size_t labels_placed; /* these stand before an instruction that has been read */
    kprof_strbuf waits;
    size_t steps_left;
} reader;

static int compare_functions(const void *a, const void *b)
{
    return strcmp((*(kprof_code_function *const *)a)->section, (*(kprof_code_function *const *)b)->section);
}

KPROF_BY_TEXT(compare_labels, kprof_code_label, name)

/* The text of a label's place in its function; what is elsewhere keeps its name. */
static void put_label(const reader *r, const kprof_code_function *function, const kprof_sass *sass, kprof_strbuf *out)
{
    const kprof_code_label *label = kprof_code_find_label(&r->listing, sass->label, sass->label_length);
    bool is_inside = label && label->offset >= function->section_offset &&
                     label->offset - function->section_offset < function->bytes && sass->label[0] == '.';
    if (is_inside)
        kprof_strbuf_printf(out, "0x%lx", (label->offset - function->section_offset));
    else
        kprof_strbuf_append(out, sass->label, sass->label_length);
}

/* An instruction as people read it: labels of nvdisasm's are offsets, and its remarks, "(*...*)", are left out. */
static char *make_text(const reader *r, const kprof_code_function *function, const char *line)
{
    kprof_sass sass;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_sass_read(line, &sass);
    if (sass.label) {
        kprof_strbuf_append(&text, line, (size_t)(sass.label - 2 - line));
        put_label(r, function, &sass, &text);
        line = sass.label + sass.label_length + 1;
    }
    const char *remark = strstr(line, "(*");
    kprof_strbuf_append(&text, line, remark ? (size_t)(remark - line) : strlen(line));
    while (text.length > 0 && isspace((unsigned char)text.data[text.length - 1]))
        text.data[--text.length] = '\0';
    return kprof_strbuf_take(&text);
}

static void end_section(reader *r)
{
    /* Labels behind the last instruction are of no use. */
    r->listing.labels = (kprof_code_label *)r->labels.data;
    r->listing.label_count = r->labels_placed;
    if (r->labels_placed > 0)
        qsort(r->labels.data, r->labels_placed, sizeof(kprof_code_label), compare_labels);
    for (size_t i = r->first; i < r->end; i++) {
        kprof_code_function *function = r->functions[i];
        const size_t first = function->section_offset / KPROF_CODE_INSTRUCTION_BYTES;
        for (size_t k = 0; k < function->count && first + k < r->listing.line_count; k++) {
            const char *line = r->listing.lines[first + k];
            if (!line)
                continue;
            function->instructions[k].text = make_text(r, function, line);
            function->instructions[k].access = kprof_sass_access(line);
        }
        kprof_code_find_waits(function, &r->listing, &r->waits, &r->steps_left);
        kprof_code_give_parts_lines(r->code, function, &r->listing);
    }
    free(r->listing.lines);
    r->listing = (kprof_code_listing){0};
    kprof_strbuf_clear(&r->labels);
    r->labels_placed = r->first = r->end = 0;
}

/* The functions of a section are neighbours. */
static void begin_section(reader *r, const char *name)
{
    end_section(r);
    size_t low;
    KPROF_BISECT(low, r->code->function_count, strcmp(r->functions[middle]->section, name) < 0)
    r->first = r->end = low;
    if (low == r->code->function_count || strcmp(r->functions[low]->section, name) != 0 || r->is_taken[low])
        return;
    r->is_taken[low] = true;
    uint64_t bytes = 0;
    for (; r->end < r->code->function_count && !strcmp(r->functions[r->end]->section, name); r->end++) {
        const kprof_code_function *function = r->functions[r->end];
        uint64_t end = function->section_offset + function->count * KPROF_CODE_INSTRUCTION_BYTES;
        bytes = end > bytes ? end : bytes;
    }
    r->listing.line_count = bytes / KPROF_CODE_INSTRUCTION_BYTES;
    r->listing.lines = kprof_calloc(r->listing.line_count + 1, sizeof *r->listing.lines);
}

/* Cut off what follows the operands: the semicolon, or "&wr=0x0 ?trans1 ;". */
static void cut(char *text)
{
    size_t length = strcspn(text, ";");
    for (size_t i = 1; i + 1 < length; i++)
        if ((text[i] == '&' || text[i] == '?') && isspace((unsigned char)text[i - 1]) &&
            isalpha((unsigned char)text[i + 1]))
            length = i;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
}

/* A line with an instruction: its offset in a comment, its text, a semicolon. */
static void take_instruction(reader *r, char *line)
{
    char *end;
    unsigned long long offset = strtoull(line + 2, &end, 16);
    if (end == line + 2 || !kprof_begins_with(end, "*/"))
        return;
    kprof_code_label *labels = (kprof_code_label *)r->labels.data;
    for (; r->labels_placed < r->labels.length / sizeof *labels; r->labels_placed++)
        labels[r->labels_placed].offset = offset;
    size_t number = offset / KPROF_CODE_INSTRUCTION_BYTES;
    if (number >= r->listing.line_count || offset % KPROF_CODE_INSTRUCTION_BYTES != 0)
        return;
    end += 2;
    end += strspn(end, " \t");
    cut(end);
    if (*end)
        r->listing.lines[number] = end;
}

static void take_line(reader *r, char *line)
{
    size_t length = strcspn(line, " \t\r");
    bool is_label = length > 1 && line[length - 1] == ':' && line[length] == '\0';
    if (is_label) {
        line[length - 1] = '\0';
        if (kprof_begins_with(line, ".text."))
            begin_section(r, line);
        else if (r->end > r->first)
            kprof_strbuf_append(&r->labels, &(kprof_code_label){.name = line}, sizeof(kprof_code_label));
        return;
    }
    line += strspn(line, " \t");
    if (kprof_begins_with(line, "/*") && r->end > r->first)
        take_instruction(r, line);
}

void kprof_code_take_listing(kprof_code *code, char *text, size_t size)
{
    reader r = {.code = code, .steps_left = KPROF_CODE_MOST_STEPS};
    r.functions = kprof_calloc(code->function_count + 1, sizeof *r.functions);
    r.is_taken = kprof_calloc(code->function_count + 1, sizeof *r.is_taken);
    for (size_t i = 0; i < code->function_count; i++)
        r.functions[i] = &code->functions[i];
    qsort(r.functions, code->function_count, sizeof *r.functions, compare_functions);
    for (char *line = text, *end = text + size; line < end;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *next = newline ? newline + 1 : end;
        if (newline)
            *newline = '\0';
        take_line(&r, line);
        line = next;
    }
    end_section(&r);
    KPROF_FREE(r.functions, r.is_taken);
    kprof_strbuf_free(&r.labels);
    free(code->waits);
    code->waits = (uint64_t *)r.waits.data;
    code->wait_count = r.waits.length / sizeof *code->waits;
}
