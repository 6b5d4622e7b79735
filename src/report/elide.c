/* Shortens kernel names, which with templates run to thousands of characters. */
#include "report/grid.h"

#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* Copy `name` with what the outermost `open` ... `close` enclose replaced by "...". */
static char *hollow(const char *name, char open, char close)
{
    kprof_strbuf out = KPROF_STRBUF_INIT;
    size_t depth = 0;
    for (const char *c = name; *c; c++) {
        bool is_operator = c > name && (c[-1] == '-' || c[-1] == '='); /* "->", not a bracket */
        if (*c == close && depth > 0 && !is_operator && --depth == 0)
            kprof_strbuf_puts(&out, "...");
        if (depth == 0)
            kprof_strbuf_append(&out, c, 1);
        if (*c == open)
            depth++;
    }
    return kprof_strbuf_take(&out);
}

/* Byte offset of the `count`-th code point. */
static size_t offset_of(const char *text, size_t count)
{
    size_t i = 0;
    for (; text[i]; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && count-- == 0)
            break;
    }
    return i;
}

static char *cut_middle(const char *name, size_t width)
{
    size_t total = kprof_text_width(name);
    size_t kept = width > 3 ? width - 3 : 1;
    size_t head = (kept + 1) / 2;
    kprof_strbuf out = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&out, name, offset_of(name, head));
    kprof_strbuf_puts(&out, "...");
    kprof_strbuf_puts(&out, name + offset_of(name, total - (kept - head)));
    return kprof_strbuf_take(&out);
}

char *kprof_text_elide(const char *name, size_t width)
{
    static const char *const brackets[] = {"()", "<>"};
    /* The return type of a kernel is always the same. */
    const bool cut_void = kprof_text_width(name) > width && strncmp(name, "void ", 5) == 0;
    char *text = strdup(cut_void ? name + 5 : name);
    for (size_t i = 0; text && i < 2 && kprof_text_width(text) > width; i++) {
        char *shorter = hollow(text, brackets[i][0], brackets[i][1]);
        free(text);
        text = shorter;
    }
    if (!text || kprof_text_width(text) <= width)
        return text;
    char *shorter = cut_middle(text, width);
    free(text);
    return shorter;
}
