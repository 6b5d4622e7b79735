/* The bytes of a spool, written by the writer and read by the reader from one table per record type.
 *
 * File: magic "KPROFSPL", u32 version, u32 header size (16). Then records: u32 payload length, u32 type, u32 CRC-32C of
 * these eight bytes and the payload, payload. Everything is little-endian; a string is its length, its bytes and a NUL.
 */
#pragma once

#include "core/strbuf.h"
#include "spool/record.h"

#define KPROF_SPOOL_MAGIC               "KPROFSPL"
#define KPROF_SPOOL_HEADER_BYTES        16
#define KPROF_SPOOL_RECORD_HEADER_BYTES 12
#define KPROF_SPOOL_MAX_PAYLOAD_BYTES   (256u << 20)

/* The mode of the file, and a bit of it for a record that could not be written: a bit takes no space on a full disk. */
#define KPROF_SPOOL_MODE          0600
#define KPROF_SPOOL_LACKS_RECORDS 0100

/* The header in front of each payload. */
typedef struct kprof_record_header {
    uint32_t length, type, checksum;
} kprof_record_header;

typedef struct kprof_scratch_array {
    void *items; /* [capacity], owned: names or values */
    size_t capacity;
} kprof_scratch_array;

/* A decoded record points into these arrays, which the next record reuses: one for metrics, one for witnesses. Zero to
 * begin; owned. */
typedef struct kprof_record_scratch {
    kprof_scratch_array names[2], values[2];
} kprof_record_scratch;

/* Append the file header. A failed allocation is left in out->failed. */
void kprof_spool_encode_header(kprof_strbuf *out);
/* Append one whole record. NULL strings are written as "". False for an unknown type or a record beyond the size limit;
 * a failed allocation is left in out->failed. */
bool kprof_spool_encode_record(const kprof_record *record, kprof_strbuf *out);

kprof_record_header kprof_spool_decode_record_header(const void *bytes);
/* The checksum that `header` should carry for this payload. */
uint32_t kprof_spool_checksum(kprof_record_header header, const void *payload);
bool kprof_spool_type_known(uint32_t type);
/* Fill `out` from a payload of a known type; strings point into `payload`, arrays into `scratch`. False when the
 * payload is not exactly one valid record of that type, or when memory runs out. */
bool kprof_spool_decode_record(kprof_record_header header, const void *payload, kprof_record_scratch *scratch,
                               kprof_record *out);
void kprof_spool_scratch_free(kprof_record_scratch *scratch);
