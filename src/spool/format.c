/* Encoding and decoding of spool records: one table of fields per record type drives both, so they cannot drift apart.
 */
#include "spool/format.h"
#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>

typedef enum field_kind {
    FIELD_U32,    /* `count` neighbouring 32-bit integers */
    FIELD_U64,    /* one 64-bit integer, signed or not */
    FIELD_ENUM,   /* an enum below `count` */
    FIELD_STRING, /* const char * */
    FIELD_NAMES,  /* a 32-bit count and an array of strings; `count` is that of the scratch array */
    FIELD_VALUES, /* a 32-bit count and an array of numbers; `count` as above */
} field_kind;

typedef struct field {
    field_kind kind;
    size_t offset; /* in kprof_record */
    uint32_t count;
    size_t array; /* offset of an array, whose count is at `offset` */
} field;

#define U32(member)                                                                                                    \
    {                                                                                                                  \
        FIELD_U32, offsetof(kprof_record, member), sizeof(((kprof_record *)0)->member) / 4, 0                          \
    }
#define U64(member)                                                                                                    \
    {                                                                                                                  \
        FIELD_U64, offsetof(kprof_record, member), 1, 0                                                                \
    }
#define ENUM(member, last)                                                                                             \
    {                                                                                                                  \
        FIELD_ENUM, offsetof(kprof_record, member), (last) + 1, 0                                                      \
    }
#define STRING(member)                                                                                                 \
    {                                                                                                                  \
        FIELD_STRING, offsetof(kprof_record, member), 1, 0                                                             \
    }
#define ARRAY(kind, counter, member, place)                                                                            \
    {                                                                                                                  \
        kind, offsetof(kprof_record, counter), place, offsetof(kprof_record, member)                                   \
    }

static const field process_fields[] = {
    U64(process.pid),     U64(process.parent_pid),    U64(process.start_unix_ns),
    STRING(process.host), STRING(process.executable), STRING(process.command_line),
};

static const field device_fields[] = {
    U32(device.device),
    STRING(device.name),
    STRING(device.chip),
    STRING(device.uuid),
    U32(device.cc_major),
    U32(device.cc_minor),
    U32(device.sm_count),
    U64(device.sm_clock_max_khz),
    U64(device.memory_clock_max_khz),
    U64(device.memory_bytes),
    U64(device.l2_bytes),
    U32(device.memory_bus_bits),
    U32(device.driver_version),
    U32(device.cupti_version),
    U32(device.max_threads_per_sm),
    U32(device.max_blocks_per_sm),
    U32(device.max_registers_per_sm),
    U32(device.max_registers_per_block),
    U32(device.max_smem_per_sm_bytes),
    U32(device.max_smem_per_block_bytes),
    U32(device.max_smem_per_block_optin_bytes),
    U32(device.reserved_smem_per_block_bytes),
    U32(device.warp_size),
};

static const field metrics_fields[] = {
    STRING(metrics.chip),
    U32(metrics.pass_count),
    ARRAY(FIELD_NAMES, metrics.count, metrics.names, 0),
    ARRAY(FIELD_NAMES, metrics.witness_count, metrics.witnesses, 1),
};

static const field kernel_fields[] = {
    U32(kernel.kernel),
    STRING(kernel.mangled),
    U32(kernel.registers_per_thread),
    U32(kernel.static_smem_bytes),
    U32(kernel.local_bytes_per_thread),
    U32(kernel.constant_bytes),
    U32(kernel.max_threads_per_block),
    U32(kernel.binary_version),
    U32(kernel.ptx_version),
};

static const field launch_fields[] = {
    U64(launch.launch),
    U32(launch.kernel),
    U32(launch.device),
    U32(launch.context),
    U64(launch.stream),
    U64(launch.thread),
    U32(launch.grid),
    U32(launch.block),
    U32(launch.cluster),
    U32(launch.dynamic_smem_bytes),
    U32(launch.configured_smem_bytes),
    U32(launch.cooperative),
    U32(launch.max_blocks_per_sm),
    U32(launch.max_active_clusters),
    U64(launch.graph_node),
    U64(launch.start_unix_ns),
    U64(launch.profile_ns),
    ENUM(launch.mode, KPROF_REPLAY_BATCH),
    U32(launch.pass_count),
    STRING(launch.reason),
    ARRAY(FIELD_VALUES, launch.value_count, launch.values, 0),
    ARRAY(FIELD_VALUES, launch.witness_count, launch.witness_spreads_pct, 1),
};

static const field seen_fields[] = {U32(seen.kernel), U64(seen.launches)};

static const field progress_fields[] = {
    U32(progress.kernel), U64(progress.launch), U64(progress.profiled),
    U64(progress.open),   U32(progress.pass),   U32(progress.pass_count),
};

static const field message_fields[] = {
    ENUM(message.level, KPROF_LOG_DEBUG),
    ENUM(message.status, KPROF_STATUS_COUNT - 1),
    STRING(message.text),
};

static const field end_fields[] = {U64(end.launches), U64(end.matched), U64(end.profiled)};

#define LAYOUT(fields)                                                                                                 \
    {                                                                                                                  \
        fields, sizeof(fields) / sizeof *(fields)                                                                      \
    }

static const struct layout {
    const field *fields;
    size_t count;
} layouts[] = {
    [KPROF_RECORD_PROCESS] = LAYOUT(process_fields),   [KPROF_RECORD_DEVICE] = LAYOUT(device_fields),
    [KPROF_RECORD_METRICS] = LAYOUT(metrics_fields),   [KPROF_RECORD_KERNEL] = LAYOUT(kernel_fields),
    [KPROF_RECORD_LAUNCH] = LAYOUT(launch_fields),     [KPROF_RECORD_SEEN] = LAYOUT(seen_fields),
    [KPROF_RECORD_PROGRESS] = LAYOUT(progress_fields), [KPROF_RECORD_MESSAGE] = LAYOUT(message_fields),
    [KPROF_RECORD_END] = LAYOUT(end_fields),
};

bool kprof_spool_type_known(uint32_t type)
{
    return type < sizeof layouts / sizeof *layouts && layouts[type].fields;
}

static uint32_t count_at(const field *f, const kprof_record *record)
{
    uint32_t count;
    memcpy(&count, (const char *)record + f->offset, sizeof count);
    return count;
}

static const void *array_at(const field *f, const kprof_record *record)
{
    const void *array;
    memcpy(&array, (const char *)record + f->array, sizeof array);
    return array;
}

static void set_array(const field *f, kprof_record *record, uint32_t count, const void *array)
{
    memcpy((char *)record + f->offset, &count, sizeof count);
    memcpy((char *)record + f->array, &array, sizeof array);
}

static void encode_names(const field *f, const kprof_record *record, kprof_strbuf *out)
{
    const char *const *names = array_at(f, record);
    uint32_t count = count_at(f, record);
    kprof_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        kprof_put_string(out, names[i]);
}

/* Return an array of the scratch for `count` elements. NULL when out of memory; the old array is unchanged then. */
static void *grow(void *array, size_t *capacity, size_t count, size_t size)
{
    if (array && count <= *capacity)
        return array;
    void *grown = realloc(array, (count + 1) * size);
    if (grown)
        *capacity = count + 1;
    return grown;
}

static void decode_names(const field *f, kprof_bytes *in, kprof_record_scratch *scratch, kprof_record *out)
{
    kprof_name_array *names = &scratch->names[f->count];
    uint32_t count = kprof_get_u32(in);
    bool possible = count <= in->left / 5; /* the shortest name: a length and a NUL */
    const char **items = possible ? grow(names->items, &names->capacity, count, sizeof *items) : NULL;
    if (!items) {
        in->failed = true;
        return;
    }
    names->items = items;
    for (uint32_t i = 0; i < count; i++)
        names->items[i] = kprof_get_string(in);
    set_array(f, out, count, names->items);
}

static void encode_values(const field *f, const kprof_record *record, kprof_strbuf *out)
{
    const double *values = array_at(f, record);
    uint32_t count = count_at(f, record);
    kprof_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        kprof_put_u64(out, bits);
    }
}

static void decode_values(const field *f, kprof_bytes *in, kprof_record_scratch *scratch, kprof_record *out)
{
    kprof_value_array *values = &scratch->values[f->count];
    uint32_t count = kprof_get_u32(in);
    bool possible = count <= in->left / sizeof(double);
    double *items = possible ? grow(values->items, &values->capacity, count, sizeof *items) : NULL;
    if (!items) {
        in->failed = true;
        return;
    }
    values->items = items;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = kprof_get_u64(in);
        memcpy(&values->items[i], &bits, sizeof bits);
    }
    set_array(f, out, count, values->items);
}

static void encode_field(const field *f, const kprof_record *record, kprof_strbuf *out)
{
    const char *place = (const char *)record + f->offset;
    uint32_t small[9];
    uint64_t large;
    const char *text;
    switch (f->kind) {
    case FIELD_U32:
        memcpy(small, place, f->count * sizeof *small);
        for (uint32_t i = 0; i < f->count; i++)
            kprof_put_u32(out, small[i]);
        break;
    case FIELD_U64:
        memcpy(&large, place, sizeof large);
        kprof_put_u64(out, large);
        break;
    case FIELD_ENUM:
        memcpy(small, place, sizeof *small);
        kprof_put_u32(out, small[0]);
        break;
    case FIELD_STRING:
        memcpy(&text, place, sizeof text);
        kprof_put_string(out, text);
        break;
    case FIELD_NAMES:
        encode_names(f, record, out);
        break;
    case FIELD_VALUES:
        encode_values(f, record, out);
        break;
    }
}

static void decode_field(const field *f, kprof_bytes *in, kprof_record_scratch *scratch, kprof_record *out)
{
    char *place = (char *)out + f->offset;
    uint32_t small;
    uint64_t large;
    const char *text;
    switch (f->kind) {
    case FIELD_U32:
        for (uint32_t i = 0; i < f->count; i++) {
            small = kprof_get_u32(in);
            memcpy(place + i * sizeof small, &small, sizeof small);
        }
        break;
    case FIELD_U64:
        large = kprof_get_u64(in);
        memcpy(place, &large, sizeof large);
        break;
    case FIELD_ENUM:
        small = kprof_get_u32(in);
        in->failed = in->failed || small >= f->count;
        memcpy(place, &small, sizeof small);
        break;
    case FIELD_STRING:
        text = kprof_get_string(in);
        memcpy(place, &text, sizeof text);
        break;
    case FIELD_NAMES:
        decode_names(f, in, scratch, out);
        break;
    case FIELD_VALUES:
        decode_values(f, in, scratch, out);
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

static void store_record_header(char *place, kprof_record_header header)
{
    store_u32(place, header.length);
    store_u32(place + 4, header.type);
    store_u32(place + 8, header.checksum);
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
    kprof_strbuf_append(out, room, sizeof room); /* overwritten when the payload is known */
    const struct layout *layout = &layouts[record->type];
    for (size_t i = 0; i < layout->count; i++)
        encode_field(&layout->fields[i], record, out);
    if (out->failed)
        return true;
    size_t length = out->length - begin - sizeof room;
    if (length > KPROF_SPOOL_MAX_PAYLOAD_BYTES)
        return false;
    kprof_record_header header = {(uint32_t)length, record->type, 0};
    header.checksum = kprof_spool_checksum(header, out->data + begin + sizeof room);
    store_record_header(out->data + begin, header);
    return true;
}

bool kprof_spool_decode_record(kprof_record_header header, const void *payload, kprof_record_scratch *scratch,
                               kprof_record *out)
{
    memset(out, 0, sizeof *out);
    out->type = (kprof_record_type)header.type;
    kprof_bytes in = {payload, header.length, false};
    const struct layout *layout = &layouts[header.type];
    for (size_t i = 0; i < layout->count && !in.failed; i++)
        decode_field(&layout->fields[i], &in, scratch, out);
    return !in.failed && in.left == 0;
}

void kprof_spool_scratch_free(kprof_record_scratch *scratch)
{
    for (int i = 0; i < 2; i++) {
        free(scratch->names[i].items);
        free(scratch->values[i].items);
    }
    *scratch = (kprof_record_scratch){0};
}
