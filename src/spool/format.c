/* Encoding and decoding of spool records: the rows of core/fields.h drive both, so they cannot drift apart. */
#include "spool/format.h"
#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

typedef enum field_kind {
    FIELD_U32,    /* 32-bit integers */
    FIELD_U64,    /* a 64-bit integer, signed or not */
    FIELD_STRING, /* const char * */
    FIELD_NAMES,  /* as many strings as the 32-bit integer before says */
    FIELD_VALUES, /* numbers, likewise */
    FIELD_BYTES,  /* bytes, likewise; they are not copied */
} field_kind;

/* How the kinds of core/fields.h are written. */
#define CODEC_U32       FIELD_U32, 1, UINT32_MAX
#define CODEC_SHAPE     FIELD_U32, 3, UINT32_MAX
#define CODEC_U64       FIELD_U64, 1, 0
#define CODEC_I64       FIELD_U64, 1, 0
#define CODEC_TEXT      FIELD_STRING, 1, 0
#define CODEC_MODE      FIELD_U32, 1, KPROF_REPLAY_RANGE
#define CODEC_LEVEL     FIELD_U32, 1, KPROF_LOG_DEBUG
#define CODEC_STATUS    FIELD_U32, 1, KPROF_STATUS_COUNT - 1
#define CODEC_NAMES     FIELD_NAMES, 0, 0
#define CODEC_WITNESSES FIELD_NAMES, 1, 0
#define CODEC_VALUES    FIELD_VALUES, 0, 0
#define CODEC_SPREADS   FIELD_VALUES, 1, 0
#define CODEC_BYTES     FIELD_BYTES, 0, 0

typedef struct field {
    field_kind kind;
    uint32_t count;   /* of neighbouring integers; of an array, its place in the scratch */
    uint32_t largest; /* that a 32-bit integer may be */
    size_t offset;    /* in the record's own struct */
} field;

typedef struct layout {
    const field *fields;
    size_t count;
} layout;

#define FIELD(kind, member, ...) {CODEC_##kind, offsetof(record_struct, member)},
#define NO_FIELD(...)
#define LAYOUT(number, NAME, name)                                                                                     \
    case number: {                                                                                                     \
        typedef kprof_##name##_record record_struct;                                                                   \
        static const field fields[] = {KPROF_##NAME##_FIELDS(FIELD, FIELD, NO_FIELD)};                                 \
        return (layout){fields, COUNT_OF(fields)};                                                                     \
    }

/* No fields for an unknown type. */
static layout layout_of(uint32_t type)
{
    switch (type) {
        KPROF_RECORD_MAP(LAYOUT)
    default:
        return (layout){NULL, 0};
    }
}

bool kprof_spool_type_known(uint32_t type)
{
    return layout_of(type).fields;
}

/* Return an array of the scratch for `count` elements. NULL where that many, of `least` bytes each or more, do not
 * follow, or memory runs out. */
static void *reserve(kprof_scratch_array *array, size_t count, size_t least, kprof_bytes *in)
{
    _Static_assert(sizeof(double) == sizeof(char *), "names and values are of one size");
    const bool may_be = count <= in->left / least, fits = array->items && count <= array->capacity;
    void *grown = may_be && !fits ? realloc(array->items, (count + 1) * sizeof(double)) : NULL;
    if (grown)
        *array = (kprof_scratch_array){grown, count + 1};
    in->failed = in->failed || !may_be || (!fits && !grown);
    return in->failed ? NULL : array->items;
}

static bool is_array(const field *f)
{
    return f->kind == FIELD_NAMES || f->kind == FIELD_VALUES || f->kind == FIELD_BYTES;
}

static void encode_field(const field *f, const char *content, kprof_strbuf *out)
{
    uint32_t count = f->count, small[3];
    uint64_t large;
    const void *pointer;
    const char *place = content + f->offset;
    if (is_array(f))
        memcpy(&count, content + f[-1].offset, sizeof count);
    switch (f->kind) {
    case FIELD_U32:
        memcpy(small, place, count * sizeof *small);
        for (uint32_t i = 0; i < count; i++)
            kprof_put_u32(out, small[i]);
        break;
    case FIELD_U64:
        memcpy(&large, place, sizeof large);
        kprof_put_u64(out, large);
        break;
    case FIELD_STRING:
        memcpy(&pointer, place, sizeof pointer);
        kprof_put_string(out, pointer);
        break;
    case FIELD_NAMES:
        memcpy(&pointer, place, sizeof pointer);
        for (uint32_t i = 0; i < count; i++)
            kprof_put_string(out, ((const char *const *)pointer)[i]);
        break;
    case FIELD_VALUES:
        memcpy(&pointer, place, sizeof pointer);
        for (uint32_t i = 0; i < count; i++) {
            memcpy(&large, (const double *)pointer + i, sizeof large);
            kprof_put_u64(out, large);
        }
        break;
    case FIELD_BYTES:
        memcpy(&pointer, place, sizeof pointer);
        kprof_strbuf_append(out, pointer, count);
        break;
    }
}

static void decode_field(const field *f, kprof_bytes *in, kprof_record_scratch *scratch, char *content)
{
    uint32_t count = f->count, small;
    uint64_t large;
    const void *pointer;
    const char **names;
    double *values;
    char *place = content + f->offset;
    if (is_array(f))
        memcpy(&count, content + f[-1].offset, sizeof count);
    switch (f->kind) {
    case FIELD_U32:
        for (uint32_t i = 0; i < count; i++) {
            small = kprof_get_u32(in);
            in->failed = in->failed || small > f->largest;
            memcpy(place + i * sizeof small, &small, sizeof small);
        }
        break;
    case FIELD_U64:
        large = kprof_get_u64(in);
        memcpy(place, &large, sizeof large);
        break;
    case FIELD_STRING:
        pointer = kprof_get_string(in);
        memcpy(place, &pointer, sizeof pointer);
        break;
    case FIELD_NAMES:
        names = reserve(&scratch->names[f->count], count, 5, in); /* the shortest name: a length and a NUL */
        for (uint32_t i = 0; i < count && names; i++)
            names[i] = kprof_get_string(in);
        memcpy(place, &names, sizeof names);
        break;
    case FIELD_VALUES:
        values = reserve(&scratch->values[f->count], count, sizeof *values, in);
        for (uint32_t i = 0; i < count && values; i++) {
            large = kprof_get_u64(in);
            memcpy(&values[i], &large, sizeof large);
        }
        memcpy(place, &values, sizeof values);
        break;
    case FIELD_BYTES:
        pointer = kprof_get_block(in, count);
        memcpy(place, &pointer, sizeof pointer);
        break;
    }
}

void kprof_spool_encode_header(kprof_strbuf *out)
{
    kprof_strbuf_append(out, KPROF_SPOOL_MAGIC, strlen(KPROF_SPOOL_MAGIC));
    kprof_put_u32(out, KPROF_SPOOL_VERSION);
    kprof_put_u32(out, KPROF_SPOOL_HEADER_BYTES);
}

static void store_u32(void *place, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    memcpy(place, bytes, sizeof bytes);
}

kprof_record_header kprof_spool_decode_record_header(const void *bytes)
{
    kprof_bytes in = {bytes, KPROF_SPOOL_RECORD_HEADER_BYTES, false};
    kprof_record_header header;
    header.length = kprof_get_u32(&in);
    header.type = kprof_get_u32(&in);
    header.checksum = kprof_get_u32(&in);
    return header;
}

uint32_t kprof_spool_checksum(kprof_record_header header, const void *payload)
{
    uint8_t start[8];
    store_u32(start, header.length);
    store_u32(start + 4, header.type);
    return kprof_crc32c(kprof_crc32c(0, start, sizeof start), payload, header.length);
}

bool kprof_spool_encode_record(const kprof_record *record, kprof_strbuf *out)
{
    if (!kprof_spool_type_known(record->type))
        return false;
    static const char room[KPROF_SPOOL_RECORD_HEADER_BYTES];
    size_t begin = out->length;
    kprof_strbuf_append(out, room, sizeof room); /* filled in when the payload is known */
    const layout written = layout_of(record->type);
    for (size_t i = 0; i < written.count; i++)
        encode_field(&written.fields[i], (const char *)&record->process, out); /* where all begin */
    if (out->failed)
        return true;
    size_t length = out->length - begin - sizeof room;
    if (length > KPROF_SPOOL_MAX_PAYLOAD_BYTES)
        return false;
    kprof_record_header header = {(uint32_t)length, record->type, 0};
    header.checksum = kprof_spool_checksum(header, out->data + begin + sizeof room);
    store_u32(out->data + begin, header.length);
    store_u32(out->data + begin + 4, header.type);
    store_u32(out->data + begin + 8, header.checksum);
    return true;
}

bool kprof_spool_decode_record(kprof_record_header header, const void *payload, kprof_record_scratch *scratch,
                               kprof_record *out)
{
    memset(out, 0, sizeof *out);
    out->type = (kprof_record_type)header.type;
    kprof_bytes in = {payload, header.length, false};
    const layout expected = layout_of(header.type);
    for (size_t i = 0; i < expected.count && !in.failed; i++)
        decode_field(&expected.fields[i], &in, scratch, (char *)&out->process);
    return !in.failed && in.left == 0;
}

void kprof_spool_scratch_free(kprof_record_scratch *scratch)
{
    for (int i = 0; i < 2; i++)
        KPROF_FREE(scratch->names[i].items, scratch->values[i].items);
    *scratch = (kprof_record_scratch){0};
}
