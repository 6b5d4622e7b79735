/* One pass over UTF-8; what must not reach a terminal or a JSON file is replaced by its escape. */
#include "report/clean.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <string.h>

/* Length of the UTF-8 sequence at `text` and its code point; 0 when it is not one (overlong, surrogate, cut). */
static size_t decode(const unsigned char *text, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80                      ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                    : (text[0] & 0xf0) == 0xe0          ? 3
                    : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                        : 0;
    if (length == 0)
        return 0;
    *code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < smallest[length] || surrogate || *code > 0x10ffff ? 0 : length;
}

/* Controls, and the marks that change the direction of text around them. */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

static void escape(kprof_strbuf *out, const unsigned char *bytes, size_t count)
{
    const char *known = count == 1 && *bytes ? strchr("\nn\tt\rr", *bytes) : NULL;
    if (known) {
        kprof_strbuf_printf(out, "\\%c", known[1]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        kprof_strbuf_printf(out, "\\x%02x", bytes[i]);
}

char *kprof_clean_text(const char *text)
{
    kprof_strbuf out = KPROF_STRBUF_INIT;
    const unsigned char *at = (const unsigned char *)(text ? text : "");
    while (*at) {
        uint32_t code = 0;
        size_t length = decode(at, &code);
        if (length == 0)
            escape(&out, at, 1);
        else if (is_unsafe(code))
            escape(&out, at, length);
        else
            kprof_strbuf_append(&out, at, length);
        at += length ? length : 1;
    }
    char *clean = kprof_strbuf_take(&out);
    kprof_strbuf_free(&out);
    return clean;
}
