/* Little-endian encoding, its bounded decoding, and the checksum that guards both. */
#include "core/bytes.h"

#include <string.h>

void kprof_put_u32(kprof_strbuf *out, uint32_t value)
{
    uint8_t bytes[4];
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    kprof_strbuf_append(out, bytes, sizeof bytes);
}

void kprof_put_u64(kprof_strbuf *out, uint64_t value)
{
    kprof_put_u32(out, (uint32_t)value);
    kprof_put_u32(out, (uint32_t)(value >> 32));
}

void kprof_put_string(kprof_strbuf *out, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length >= UINT32_MAX) {
        out->failed = true;
        return;
    }
    kprof_put_u32(out, (uint32_t)length);
    kprof_strbuf_append(out, text ? text : "", length + 1);
}

void kprof_put_strings(kprof_strbuf *out, const kprof_strlist *list)
{
    kprof_put_u32(out, (uint32_t)list->count);
    for (size_t i = 0; i < list->count; i++)
        kprof_put_string(out, list->items[i]);
}

const void *kprof_get_block(kprof_bytes *in, size_t size)
{
    if (in->failed || size > in->left) {
        in->failed = true;
        return NULL;
    }
    const void *block = in->data;
    in->data += size;
    in->left -= size;
    return block;
}

uint32_t kprof_get_u32(kprof_bytes *in)
{
    const uint8_t *bytes = kprof_get_block(in, 4);
    if (!bytes)
        return 0;
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t kprof_get_u64(kprof_bytes *in)
{
    uint64_t low = kprof_get_u32(in);
    return low | (uint64_t)kprof_get_u32(in) << 32;
}

const char *kprof_get_string(kprof_bytes *in)
{
    size_t length = kprof_get_u32(in);
    const char *text = kprof_get_block(in, length + 1);
    if (!text || memchr(text, '\0', length + 1) != text + length) {
        in->failed = true;
        return NULL;
    }
    return text;
}

void kprof_get_strings(kprof_bytes *in, kprof_strlist *list)
{
    uint32_t count = kprof_get_u32(in);
    for (uint32_t i = 0; i < count && !in->failed; i++) {
        const char *text = kprof_get_string(in);
        if (text && !kprof_strlist_add(list, text))
            in->failed = true;
    }
}

void kprof_code_u32(const kprof_codec *c, uint32_t *value)
{
    if (c->in)
        *value = kprof_get_u32(c->in);
    else
        kprof_put_u32(c->out, *value);
}

void kprof_code_u64(const kprof_codec *c, uint64_t *value)
{
    if (c->in)
        *value = kprof_get_u64(c->in);
    else
        kprof_put_u64(c->out, *value);
}

void kprof_code_text(const kprof_codec *c, char **text)
{
    if (!c->in) {
        kprof_put_string(c->out, *text);
        return;
    }
    const char *read = kprof_get_string(c->in);
    *text = read ? kprof_strdup(read) : NULL;
    kprof_code_check(c, *text);
}

void kprof_code_strings(const kprof_codec *c, kprof_strlist *list)
{
    if (c->in)
        kprof_get_strings(c->in, list);
    else
        kprof_put_strings(c->out, list);
}

void *kprof_code_array(const kprof_codec *c, void *items, size_t *count, size_t size)
{
    uint64_t number = *count;
    kprof_code_u64(c, &number);
    if (!c->in) {
        kprof_strbuf_append(c->out, items, *count * size);
        return items;
    }
    kprof_code_check(c, number <= c->in->left / size);
    const void *block = kprof_get_block(c->in, c->in->failed ? 0 : number * size);
    items = block ? kprof_calloc(1, number * size + 1) : NULL;
    kprof_code_check(c, items);
    *count = items ? number : 0;
    return items ? memcpy(items, block, number * size) : NULL;
}

bool kprof_codec_reads(const kprof_codec *c)
{
    return c->in && !c->in->failed;
}

void kprof_code_check(const kprof_codec *c, bool is_good)
{
    if (c->in)
        c->in->failed = c->in->failed || !is_good;
}

/* Reversed Castagnoli polynomial, four bits at a time: 64 bytes of table that need no initialisation at run time. */
static const uint32_t crc_table[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t kprof_crc32c_by_table(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ crc_table[crc & 15];
        crc = crc >> 4 ^ crc_table[crc & 15];
    }
    return ~crc;
}

#ifdef __x86_64__
/* Eight bytes take three cycles; by the table one byte takes ten. */
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t sum = ~crc, word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    crc = (uint32_t)sum;
    for (; size > 0; size--)
        crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return ~crc;
}
#endif

uint32_t kprof_crc32c(uint32_t crc, const void *data, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_by_instruction(crc, data, size);
#endif
    return kprof_crc32c_by_table(crc, data, size);
}

uint64_t kprof_hash(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}
