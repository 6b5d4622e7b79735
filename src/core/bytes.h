/* Little-endian encoding shared by the configuration and the spool: values are appended to a kprof_strbuf and taken
 * from a bounded byte range, which remembers a failure so that callers check once at the end. */
#pragma once

#include "core/strbuf.h"

void kprof_put_u32(kprof_strbuf *out, uint32_t value);
void kprof_put_u64(kprof_strbuf *out, uint64_t value);
/* Length, bytes and a NUL; NULL is written as "". */
void kprof_put_string(kprof_strbuf *out, const char *text);
/* Append the number of strings, then each as kprof_put_string does. */
void kprof_put_strings(kprof_strbuf *out, const kprof_strlist *list);

/* The bytes still to be read; borrowed. */
typedef struct kprof_bytes {
    const uint8_t *data;
    size_t left;
    bool failed; /* set when something did not fit; every later value is 0 or NULL */
} kprof_bytes;

uint32_t kprof_get_u32(kprof_bytes *in);
uint64_t kprof_get_u64(kprof_bytes *in);
/* The next `size` bytes, inside the range; NULL on failure. */
const void *kprof_get_block(kprof_bytes *in, size_t size);
/* A NUL-terminated string inside the range, without any other NUL; NULL on failure. */
const char *kprof_get_string(kprof_bytes *in);
/* Append strings to `list`, on failure those that could be read. */
void kprof_get_strings(kprof_bytes *in, kprof_strlist *list);

/* Writes values, or reads them again in the same order, so that one function does both for a struct. */
typedef struct kprof_codec {
    kprof_strbuf *out;
    kprof_bytes *in; /* NULL: it writes */
} kprof_codec;

/* Write the value, or read it. */
void kprof_code_u32(const kprof_codec *c, uint32_t *value);
void kprof_code_u64(const kprof_codec *c, uint64_t *value);
void kprof_code_text(const kprof_codec *c, char **text); /* the caller frees what is read */
void kprof_code_strings(const kprof_codec *c, kprof_strlist *list);
/* Write an array and return it; or read and return one, which the caller frees. NULL after a failure. */
void *kprof_code_array(const kprof_codec *c, void *items, size_t *count, size_t size);
/* Is something read, and nothing has failed so far? */
bool kprof_codec_reads(const kprof_codec *c);
/* Fail if what has been read is no good. */
void kprof_code_check(const kprof_codec *c, bool is_good);

/* CRC-32C (Castagnoli) of `data`, continuing from `crc` (0 to begin). */
uint32_t kprof_crc32c(uint32_t crc, const void *data, size_t size);
/* The same on processors other than x86-64 with SSE 4.2. */
uint32_t kprof_crc32c_by_table(uint32_t crc, const void *data, size_t size);
/* FNV-1a, 64 bits, of `data`, continuing from `hash` (KPROF_HASH_START to begin): tells accidents, not attacks. */
#define KPROF_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t kprof_hash(uint64_t hash, const void *data, size_t size);
/* Return a hash of one number, such as an address. Multiplying spreads it as Fibonacci hashing does (Knuth, The Art of
 * Computer Programming, 6.4). */
static inline uint32_t kprof_hash_number(uint64_t number)
{
    return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
