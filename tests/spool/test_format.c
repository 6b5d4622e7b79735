/* The spool as bytes: every record survives the trip, and whatever is cut, flipped, foreign or newer is refused without
 * losing what came before. */
#include "core/activities.h"
#include "core/attributes.h"
#include "core/bytes.h"
#include "log_capture.h"
#include "spool/format.h"
#include "spool/spool.h"
#include "spool_samples.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static log_capture log_seen;
static char spool_path[64];

static void put_file(const void *data, size_t size)
{
    int fd = open(spool_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

/* A whole spool of all samples; ends[i] is where the i-th ends. */
static kprof_strbuf make_spool(size_t *ends)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_spool_encode_header(&bytes);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        assert_true(kprof_spool_encode_record(&samples[i], &bytes));
        if (ends)
            ends[i] = bytes.length;
    }
    assert_false(bytes.failed);
    return bytes;
}

/* Equal when they encode to the same bytes: the format has one encoding for each record. */
static void assert_record_equal(const kprof_record *a, const kprof_record *b)
{
    KPROF_AUTO(kprof_strbuf) x = KPROF_STRBUF_INIT, y = KPROF_STRBUF_INIT;
    assert_true(kprof_spool_encode_record(a, &x));
    assert_true(kprof_spool_encode_record(b, &y));
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.data, y.data, x.length);
}

/* Read the file, comparing with the samples; returns how many records came, and how it ended. */
static size_t read_samples(kprof_spool_next_result *end, bool *partial)
{
    kprof_spool_reader *reader;
    kprof_record record;
    size_t count = 0;
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), KPROF_OK);
    while ((*end = kprof_spool_next(reader, &record)) == KPROF_SPOOL_RECORD) {
        assert_true(count < SAMPLE_COUNT);
        assert_record_equal(&record, &samples[count++]);
    }
    assert_int_equal(kprof_spool_next(reader, &record), *end);
    *partial = kprof_spool_has_news(reader);
    kprof_spool_reader_close(reader);
    return count;
}

TEST(every_field_survives)
{
    kprof_record_scratch scratch = {0};
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        kprof_record decoded;
        assert_true(kprof_spool_encode_record(&samples[i], &bytes));
        kprof_record_header header = kprof_spool_decode_record_header(bytes.data);
        assert_int_equal(header.length, bytes.length - KPROF_SPOOL_RECORD_HEADER_BYTES);
        assert_true(
            kprof_spool_decode_record(header, bytes.data + KPROF_SPOOL_RECORD_HEADER_BYTES, &scratch, &decoded));
        assert_record_equal(&decoded, &samples[i]);
        kprof_strbuf_free(&bytes);
    }
    kprof_spool_scratch_free(&scratch);
}

/* assert_record_equal would not see a field that is missing from the table: look at the structs themselves. */
TEST(the_tables_cover_the_structs)
{
    kprof_spool_reader *reader;
    kprof_record record;
    kprof_strbuf bytes = make_spool(NULL);
    put_file(bytes.data, bytes.length);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), KPROF_OK);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        if (record.type == KPROF_RECORD_DEVICE) {
            record.device.name = samples[i].device.name;
            record.device.chip = samples[i].device.chip;
            record.device.uuid = samples[i].device.uuid;
            record.device.attributes = samples[i].device.attributes;
            assert_memory_equal(&record.device, &samples[i].device, sizeof record.device);
        } else if (record.type == KPROF_RECORD_LAUNCH) {
            assert_memory_equal(record.launch.values, samples[i].launch.values,
                                record.launch.value_count * sizeof(double));
            record.launch.values = samples[i].launch.values;
            assert_memory_equal(record.launch.witness_spreads_pct, samples[i].launch.witness_spreads_pct,
                                record.launch.witness_count * sizeof(double));
            record.launch.witness_spreads_pct = samples[i].launch.witness_spreads_pct;
            assert_string_equal(record.launch.reason, samples[i].launch.reason);
            record.launch.reason = samples[i].launch.reason;
            assert_string_equal(record.launch.nvtx, samples[i].launch.nvtx ? samples[i].launch.nvtx : "");
            record.launch.nvtx = samples[i].launch.nvtx;
            if (record.launch.value_count)
                assert_memory_equal(&record.launch, &samples[i].launch, sizeof record.launch);
        } else if (record.type == KPROF_RECORD_KERNEL) {
            assert_string_equal(record.kernel.mangled, samples[i].kernel.mangled);
            record.kernel.mangled = samples[i].kernel.mangled;
            assert_memory_equal(&record.kernel, &samples[i].kernel, sizeof record.kernel);
        } else if (record.type == KPROF_RECORD_PROCESS) {
            assert_string_equal(record.process.command_line, samples[i].process.command_line);
            assert_string_equal(record.process.executable, samples[i].process.executable);
            assert_string_equal(record.process.host, samples[i].process.host);
        } else if (record.type == KPROF_RECORD_METRICS) {
            assert_int_equal(record.metrics.count, 3);
            assert_string_equal(record.metrics.names[2], sample_names[2]);
            assert_int_equal(record.metrics.witness_count, 2);
            assert_string_equal(record.metrics.witnesses[1], sample_witnesses[1]);
        }
    }
    kprof_spool_reader_close(reader);
    kprof_strbuf_free(&bytes);
}

/* A layout that changes needs another KPROF_SPOOL_VERSION; then this number changes with it. */
TEST(the_bytes_are_those_of_the_version)
{
    kprof_strbuf bytes = make_spool(NULL);
    assert_int_equal(KPROF_SPOOL_VERSION, 18);
    assert_int_equal(kprof_crc32c(0, bytes.data, bytes.length), 0x75de5500);
    kprof_strbuf_free(&bytes);
}

TEST(null_strings_are_empty)
{
    kprof_record bare = {.type = KPROF_RECORD_MESSAGE, .message = {KPROF_LOG_INFO, KPROF_OK, NULL}};
    kprof_record empty = {.type = KPROF_RECORD_MESSAGE, .message = {KPROF_LOG_INFO, KPROF_OK, ""}};
    assert_record_equal(&bare, &empty);
}

TEST(a_whole_file_reads_to_its_end)
{
    kprof_strbuf bytes = make_spool(NULL);
    kprof_spool_next_result end;
    bool partial;
    put_file(bytes.data, bytes.length);
    assert_int_equal(read_samples(&end, &partial), SAMPLE_COUNT);
    assert_int_equal(end, KPROF_SPOOL_WAIT);
    assert_false(partial);
    kprof_strbuf_free(&bytes);
}

TEST(a_cut_at_any_byte_keeps_what_is_whole)
{
    size_t ends[SAMPLE_COUNT];
    kprof_strbuf bytes = make_spool(ends);
    for (size_t size = 0; size < bytes.length; size++) {
        kprof_spool_next_result end;
        bool partial;
        size_t whole = 0;
        while (whole < SAMPLE_COUNT && ends[whole] <= size)
            whole++;
        put_file(bytes.data, size);
        assert_int_equal(read_samples(&end, &partial), whole);
        assert_int_equal(end, KPROF_SPOOL_WAIT);
        bool clean = size == 0 || size == KPROF_SPOOL_HEADER_BYTES || (whole > 0 && ends[whole - 1] == size);
        assert_int_equal(partial, !clean);
    }
    kprof_strbuf_free(&bytes);
}

TEST(a_flipped_byte_ends_the_spool_there)
{
    size_t ends[SAMPLE_COUNT];
    kprof_strbuf bytes = make_spool(ends);
    for (size_t at = KPROF_SPOOL_HEADER_BYTES; at < bytes.length; at++) {
        kprof_spool_next_result end;
        bool partial;
        size_t before = 0;
        while (ends[before] <= at)
            before++;
        bytes.data[at] ^= (char)(1 << at % 8);
        put_file(bytes.data, bytes.length);
        bytes.data[at] ^= (char)(1 << at % 8);
        assert_int_equal(read_samples(&end, &partial), before);
        /* A longer length is a record that has not come yet; everything else is certain damage. */
        assert_true(end == KPROF_SPOOL_DAMAGED || end == KPROF_SPOOL_WAIT);
        assert_true(partial);
    }
    kprof_strbuf_free(&bytes);
}

TEST(damage_is_logged_once)
{
    kprof_strbuf bytes = make_spool(NULL);
    kprof_spool_next_result end;
    bool partial;
    bytes.data[bytes.length - 1] ^= 1;
    put_file(bytes.data, bytes.length);
    unsigned messages = log_seen.count;
    assert_int_equal(read_samples(&end, &partial), SAMPLE_COUNT - 1);
    assert_int_equal(end, KPROF_SPOOL_DAMAGED);
    assert_int_equal(log_seen.count, messages + 1);
    assert_non_null(strstr(log_seen.last, spool_path));
    kprof_strbuf_free(&bytes);
}

TEST(a_broken_header_is_refused_at_once)
{
    kprof_strbuf bytes = make_spool(NULL);
    kprof_spool_reader *reader;
    for (size_t at = 0; at < KPROF_SPOOL_HEADER_BYTES; at++) {
        bytes.data[at] ^= 64;
        put_file(bytes.data, bytes.length);
        bytes.data[at] ^= 64;
        if (at == 12) /* 16 ^ 64: a larger header, which a later version may have */
            continue;
        const kprof_status status = at >= 8 && at < 12 ? KPROF_UNSUPPORTED : KPROF_BAD_SPOOL; /* another version */
        assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), status);
        assert_null(reader);
    }
    put_file("KPxx", 4);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), KPROF_BAD_SPOOL);
    kprof_strbuf_free(&bytes);
}

TEST(another_version_is_named)
{
    for (int step = -1; step <= 1; step += 2) {
        char header[] = KPROF_SPOOL_MAGIC "\0\0\0\0\20\0\0", text[32];
        kprof_spool_reader *reader;
        header[8] = (char)(KPROF_SPOOL_VERSION + step);
        put_file(header, sizeof header);
        assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), KPROF_UNSUPPORTED);
        snprintf(text, sizeof text, "version %d", KPROF_SPOOL_VERSION + step);
        assert_non_null(strstr(log_seen.last, text));
    }
}

/* What the bytes of records follow from. */
#define FIELD(kind, member, ...)     #kind " " #member ";"
#define REPORT(...)                  ""
#define RECORD(number, NAME, name)   #number #name ":" KPROF_##NAME##_FIELDS(FIELD, FIELD, REPORT)
#define VALUE(type, name)            #type " " #name ";"
#define ACTIVITY(number, KIND, kind) #number #kind ":" KPROF_##KIND##_ACTIVITY_FIELDS(VALUE)
static const char layout[] = KPROF_RECORD_MAP(RECORD) KPROF_ACTIVITY_MAP(ACTIVITY);

TEST(a_change_of_records_is_a_new_version)
{
    static const struct {
        uint32_t version, layout;
    } recorded = {18, 0xfbb148d2};
    const uint32_t now = kprof_crc32c(KPROF_DEVICE_ATTRIBUTE_COUNT, layout, sizeof layout);
    if (now != recorded.layout || recorded.version != KPROF_SPOOL_VERSION)
        fail_msg("records have changed since version %u, so that another kprof would read them wrong: raise "
                 "KPROF_SPOOL_VERSION above that and record {it, 0x%08x} here",
                 recorded.version, now);
}

/* Append a record of any type with a good checksum. */
static void put_raw(kprof_strbuf *bytes, uint32_t type, const void *payload, size_t size)
{
    kprof_record_header header = {(uint32_t)size, type, 0};
    kprof_put_u32(bytes, header.length);
    kprof_put_u32(bytes, header.type);
    kprof_put_u32(bytes, kprof_spool_checksum(header, payload));
    kprof_strbuf_append(bytes, payload, size);
}

TEST(unknown_types_are_skipped)
{
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    kprof_spool_next_result end;
    bool partial;
    kprof_spool_encode_header(&bytes);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        put_raw(&bytes, 1000 + (uint32_t)i, "something new", 13);
        put_raw(&bytes, 0, "", 0);
        assert_true(kprof_spool_encode_record(&samples[i], &bytes));
        put_raw(&bytes, UINT32_MAX, "", 0);
    }
    put_file(bytes.data, bytes.length);
    assert_int_equal(read_samples(&end, &partial), SAMPLE_COUNT);
    assert_int_equal(end, KPROF_SPOOL_WAIT);
}

/* A payload with a good checksum but changed content must be refused or read; it must not crash. */
TEST(forged_content_does_no_harm)
{
    kprof_record_scratch scratch = {0};
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        assert_true(kprof_spool_encode_record(&samples[i], &bytes));
        kprof_record_header header = kprof_spool_decode_record_header(bytes.data);
        char *payload = malloc(header.length);
        assert_non_null(payload);
        kprof_record record;
        for (size_t bit = 0; bit < (size_t)header.length * 8; bit++) {
            memcpy(payload, bytes.data + KPROF_SPOOL_RECORD_HEADER_BYTES, header.length);
            payload[bit / 8] ^= (char)(1 << bit % 8);
            (void)kprof_spool_decode_record(header, payload, &scratch, &record);
        }
        for (kprof_record_header cut = header; cut.length-- > 0;)
            assert_false(kprof_spool_decode_record(cut, payload, &scratch, &record));
        free(payload);
        kprof_strbuf_free(&bytes);
    }
    kprof_spool_scratch_free(&scratch);
}

TEST(values_outside_an_enum_are_damage)
{
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    kprof_spool_next_result end;
    bool partial;
    kprof_spool_encode_header(&bytes);
    put_raw(&bytes, KPROF_RECORD_MESSAGE, "\4\0\0\0\0\0\0\0\0\0\0\0\0", 13);
    put_file(bytes.data, bytes.length);
    assert_int_equal(read_samples(&end, &partial), 0);
    assert_int_equal(end, KPROF_SPOOL_DAMAGED);
}

TEST(huge_lengths_are_not_believed)
{
    static const uint32_t lengths[] = {KPROF_SPOOL_MAX_PAYLOAD_BYTES + 1, UINT32_MAX};
    kprof_spool_next_result end;
    bool partial;
    for (size_t i = 0; i < 2; i++) {
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        kprof_spool_encode_header(&bytes);
        kprof_put_u32(&bytes, lengths[i]);
        kprof_put_u64(&bytes, KPROF_RECORD_END);
        put_file(bytes.data, bytes.length);
        assert_int_equal(read_samples(&end, &partial), 0);
        assert_int_equal(end, KPROF_SPOOL_DAMAGED);
        kprof_strbuf_free(&bytes);
    }
}

TEST(a_growing_file_is_followed)
{
    size_t ends[SAMPLE_COUNT], next = 0;
    kprof_strbuf bytes = make_spool(ends);
    kprof_spool_reader *reader;
    kprof_record record;
    put_file("", 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, spool_path, &reader), KPROF_OK);
    int fd = open(spool_path, O_WRONLY | O_APPEND);
    for (size_t at = 0; at < bytes.length; at++) {
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_WAIT);
        assert_int_equal(write(fd, bytes.data + at, 1), 1);
        if (at + 1 != ends[next])
            continue;
        assert_int_equal(kprof_spool_next(reader, &record), KPROF_SPOOL_RECORD);
        assert_record_equal(&record, &samples[next++]);
    }
    assert_int_equal(next, SAMPLE_COUNT);
    close(fd);
    kprof_spool_reader_close(reader);
    kprof_strbuf_free(&bytes);
}

TEST(what_is_no_file_is_refused)
{
    kprof_spool_reader *reader;
    char link_path[80];
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, "/nonexistent/1-0.spool", &reader), KPROF_BAD_SPOOL);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, "/tmp", &reader), KPROF_BAD_SPOOL);
    snprintf(link_path, sizeof link_path, "%s.link", spool_path);
    assert_int_equal(symlink(spool_path, link_path), 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, link_path, &reader), KPROF_BAD_SPOOL);
    unlink(link_path);
    assert_int_equal(mkfifo(link_path, 0600), 0);
    assert_int_equal(kprof_spool_reader_open(AT_FDCWD, link_path, &reader), KPROF_BAD_SPOOL);
    unlink(link_path);
    kprof_spool_reader_close(NULL);
}

static int make_path(void **state)
{
    log_capture_start(&log_seen);
    strcpy(spool_path, "/tmp/kprof-test-XXXXXX");
    int fd = mkstemp(spool_path);
    close(fd);
    return fd < 0;
}

static int remove_path(void **state)
{
    return unlink(spool_path);
}

AROUND_ALL(make_path, remove_path)
