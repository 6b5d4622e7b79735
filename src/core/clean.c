/* One pass over UTF-8; what must not reach a terminal is replaced by its escape. */
#include "core/clean.h"
#include "core/strbuf.h"

#include <string.h>

size_t kprof_utf8_decode(const char *text, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    size_t length = at[0] < 0x80                    ? 1
                    : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                    : (at[0] & 0xf0) == 0xe0        ? 3
                    : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                    : 0;
    if (length == 0)
        return 0;
    *code = length == 1 ? at[0] : at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < smallest[length] || surrogate || *code > 0x10ffff ? 0 : length;
}

bool kprof_utf8_is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x206f) || code == 0xfeff;
}

static void escape(kprof_strbuf *out, const char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    const char *known = count == 1 && *bytes ? strchr("\nn\tt\rr", *bytes) : NULL;
    if (known) {
        kprof_strbuf_append(out, (char[]){'\\', known[1]}, 2);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        kprof_strbuf_append(out, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
    }
}

/* The first place that has to be spelled out, or the end of the text. */
static const char *find_unsafe(const char *text)
{
    uint32_t code = 0;
    while (*text) {
        if (*text >= ' ' && *text <= '~') { /* nearly all are such */
            text++;
            continue;
        }
        size_t length = kprof_utf8_decode(text, &code);
        if (length == 0 || kprof_utf8_is_unsafe(code))
            break;
        text += length;
    }
    return text;
}

bool kprof_text_is_clean(const char *text)
{
    return *find_unsafe(text) == '\0';
}

char *kprof_clean_text(const char *text)
{
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    for (const char *at = text ? text : ""; *at;) {
        uint32_t code;
        const char *unsafe = find_unsafe(at);
        kprof_strbuf_append(&out, at, (size_t)(unsafe - at));
        size_t length = kprof_utf8_decode(unsafe, &code);
        length = length ? length : 1;
        if (*unsafe)
            escape(&out, unsafe, length);
        at = *unsafe ? unsafe + length : unsafe;
    }
    return kprof_strbuf_take(&out);
}

/* Bytes of the characters that fit into `size` bytes. */
static size_t length_within(const char *text, size_t size)
{
    const size_t length = strlen(text);
    if (length <= size)
        return length;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
        size--;
    return size;
}

void kprof_cut_text(char *text, size_t size)
{
    text[length_within(text, size)] = '\0';
}

void kprof_fit_text(char *out, size_t size, const char *text)
{
    const size_t length = length_within(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}
