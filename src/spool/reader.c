/* Reads a spool that may still be growing, may have been cut anywhere, and may have been made by anyone. The reader
 * takes a record only when all of it is there and its checksum holds. The largest record bounds its memory. */
#include "core/bytes.h"
#include "core/files.h"
#include "spool/format.h"
#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES 4096

struct kprof_spool_reader {
    int folder;      /* borrowed */
    int fd;          /* -1: at rest */
    char *name;      /* for messages */
    uint64_t offset; /* offset of the next record; 0 until the file header is there */
    uint8_t *payload;
    size_t payload_capacity;
    kprof_record_scratch scratch;
    bool damaged;
    uint64_t seen_bytes; /* of the file, at the last look */
    bool partial;        /* at the last look, bytes were left behind `offset` */
};

/* Read the file header if it is whole by now. BAD_SPOOL as soon as it is certain that this is no spool, UNSUPPORTED for
 * one of another version. */
static kprof_status read_header(kprof_spool_reader *reader)
{
    uint8_t bytes[KPROF_SPOOL_HEADER_BYTES];
    size_t magic = strlen(KPROF_SPOOL_MAGIC);
    size_t got = kprof_read_at(reader->fd, bytes, sizeof bytes, 0);
    if (memcmp(bytes, KPROF_SPOOL_MAGIC, got < magic ? got : magic) != 0)
        return kprof_fail(KPROF_BAD_SPOOL, "%s is not a kprof spool", reader->name);
    if (got < sizeof bytes)
        return KPROF_OK;
    kprof_bytes in = {bytes + magic, sizeof bytes - magic, false};
    uint32_t version = kprof_get_u32(&in);
    uint32_t header_size = kprof_get_u32(&in);
    if (version != KPROF_SPOOL_VERSION)
        return kprof_fail(KPROF_UNSUPPORTED,
                          "%s has format version %u, this kprof reads %d; use the kprof that wrote it", reader->name,
                          version, KPROF_SPOOL_VERSION);
    if (header_size < KPROF_SPOOL_HEADER_BYTES || header_size > MAX_HEADER_BYTES)
        return kprof_fail(KPROF_BAD_SPOOL, "%s has a damaged header", reader->name);
    reader->offset = header_size;
    return KPROF_OK;
}

static kprof_status open_file(kprof_spool_reader *reader)
{
    struct stat info;
    reader->fd = openat(reader->folder, reader->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (reader->fd < 0 || fstat(reader->fd, &info) != 0)
        return kprof_fail(KPROF_BAD_SPOOL, "opening %s: %s", reader->name, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return kprof_fail(KPROF_BAD_SPOOL, "%s is not a regular file", reader->name);
    return KPROF_OK;
}

kprof_status kprof_spool_reader_open(int folder, const char *name, kprof_spool_reader **out)
{
    *out = NULL;
    kprof_spool_reader *reader = kprof_calloc(1, sizeof *reader);
    reader->folder = folder;
    reader->name = kprof_strdup(name);
    kprof_status status = open_file(reader);
    KPROF_THEN(status, read_header(reader));
    if (status != KPROF_OK) {
        kprof_spool_reader_close(reader);
        return status;
    }
    *out = reader;
    return KPROF_OK;
}

void kprof_spool_reader_rest(kprof_spool_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

bool kprof_spool_has_news(const kprof_spool_reader *reader)
{
    struct stat info;
    return reader->partial || fstatat(reader->folder, reader->name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
           (uint64_t)info.st_size != reader->seen_bytes;
}

bool kprof_spool_lacks_records(const kprof_spool_reader *reader)
{
    struct stat info;
    return fstatat(reader->folder, reader->name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           (info.st_mode & KPROF_SPOOL_LACKS_RECORDS);
}

void kprof_spool_reader_close(kprof_spool_reader *reader)
{
    if (!reader)
        return;
    kprof_spool_reader_rest(reader);
    kprof_spool_scratch_free(&reader->scratch);
    KPROF_FREE(reader->payload, reader->name, reader);
}

static kprof_spool_next_result damaged_at(kprof_spool_reader *reader, const char *reason)
{
    reader->damaged = true;
    reader->partial = true;
    kprof_log(KPROF_LOG_WARNING, "%s is damaged at byte %lu (%s); what comes before it is used", reader->name,
              reader->offset, reason);
    return KPROF_SPOOL_DAMAGED;
}

static uint64_t look_at_size(kprof_spool_reader *reader)
{
    struct stat info;
    reader->seen_bytes = fstat(reader->fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
    return reader->seen_bytes;
}

/* Bring the next record's header and payload into memory. RECORD when both are whole and the checksum holds. */
static kprof_spool_next_result fetch(kprof_spool_reader *reader, kprof_record_header *header)
{
    uint8_t bytes[KPROF_SPOOL_RECORD_HEADER_BYTES];
    uint64_t size = look_at_size(reader);
    reader->partial = size > reader->offset;
    if (kprof_read_at(reader->fd, bytes, sizeof bytes, reader->offset) < sizeof bytes)
        return KPROF_SPOOL_WAIT;
    *header = kprof_spool_decode_record_header(bytes);
    if (header->length > KPROF_SPOOL_MAX_PAYLOAD_BYTES)
        return KPROF_SPOOL_DAMAGED;
    uint64_t begin = reader->offset + sizeof bytes;
    if (size < begin + header->length)
        return KPROF_SPOOL_WAIT;
    if (header->length > reader->payload_capacity) {
        reader->payload = kprof_realloc(reader->payload, header->length);
        reader->payload_capacity = header->length;
    }
    if (kprof_read_at(reader->fd, reader->payload, header->length, begin) < header->length)
        return KPROF_SPOOL_WAIT;
    return kprof_spool_checksum(*header, reader->payload) == header->checksum ? KPROF_SPOOL_RECORD
                                                                              : KPROF_SPOOL_DAMAGED;
}

kprof_spool_next_result kprof_spool_next(kprof_spool_reader *reader, kprof_record *record)
{
    if (reader->damaged)
        return KPROF_SPOOL_DAMAGED;
    if (reader->fd < 0 && open_file(reader) != KPROF_OK)
        return damaged_at(reader, "it cannot be opened again");
    if (reader->offset == 0 && read_header(reader) != KPROF_OK)
        return damaged_at(reader, "its header is not valid");
    if (reader->offset == 0) {
        reader->partial = look_at_size(reader) > 0;
        return KPROF_SPOOL_WAIT;
    }
    for (;;) {
        kprof_record_header header;
        kprof_spool_next_result result = fetch(reader, &header);
        /* Read again: on a full disk the writer takes a partial record back and may put another in its place. */
        if (result == KPROF_SPOOL_DAMAGED && (result = fetch(reader, &header)) == KPROF_SPOOL_DAMAGED)
            return damaged_at(reader, "a record's checksum or length is wrong");
        if (result != KPROF_SPOOL_RECORD)
            return result;
        bool known = kprof_spool_type_known(header.type);
        if (known && !kprof_spool_decode_record(header, reader->payload, &reader->scratch, record))
            return damaged_at(reader, "a record's content is not valid");
        reader->offset += KPROF_SPOOL_RECORD_HEADER_BYTES + (uint64_t)header.length;
        if (known)
            return KPROF_SPOOL_RECORD;
    }
}
