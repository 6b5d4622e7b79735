/* Little-endian values, bounded reading and the checksum. */
#include "core/bytes.h"
#include "test.h"

TEST(bytes_are_little_endian)
{
    KPROF_AUTO(kprof_strbuf) buf = KPROF_STRBUF_INIT;
    kprof_put_u32(&buf, 0x04030201);
    kprof_put_u64(&buf, 0x0c0b0a0908070605);
    kprof_put_string(&buf, "hi");
    kprof_put_string(&buf, NULL);
    assert_int_equal(buf.length, 24);
    assert_memory_equal(buf.data, "\1\2\3\4\5\6\7\10\11\12\13\14\2\0\0\0hi\0\0\0\0\0\0", 24);
    kprof_bytes in = {(const uint8_t *)buf.data, buf.length, false};
    assert_int_equal(kprof_get_u32(&in), 0x04030201);
    assert_true(kprof_get_u64(&in) == 0x0c0b0a0908070605);
    assert_string_equal(kprof_get_string(&in), "hi");
    assert_string_equal(kprof_get_string(&in), "");
    assert_false(in.failed);
    assert_int_equal(in.left, 0);
}

TEST(reading_past_the_end_fails_for_good)
{
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
    kprof_bytes in = {bytes, sizeof bytes, false};
    assert_int_equal(kprof_get_u64(&in), 0x04030201);
    assert_true(in.failed);
    assert_int_equal(kprof_get_u32(&in), 0);
    assert_null(kprof_get_block(&in, 1));
    assert_null(kprof_get_string(&in));
}

TEST(strings_must_end_where_they_say)
{
    static const char *const bad[] = {"\2\0\0\0ab!", "\2\0\0\0a\0\0", "\3\0\0\0ab\0", "\377\377\377\377ab\0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kprof_bytes in = {(const uint8_t *)bad[i], 7, false};
        assert_null(kprof_get_string(&in));
        assert_true(in.failed);
    }
}

TEST(lists_of_strings_keep_their_order)
{
    char *items[] = {"b", "", "a"};
    kprof_strlist list = {items, 3, 3}, read = KPROF_STRLIST_INIT, cut = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strbuf) buf = KPROF_STRBUF_INIT;
    kprof_put_strings(&buf, &list);
    kprof_bytes in = {(const uint8_t *)buf.data, buf.length, false};
    kprof_get_strings(&in, &read);
    assert_false(in.failed);
    assert_int_equal(read.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(read.items[i], items[i]);
    in = (kprof_bytes){(const uint8_t *)buf.data, buf.length - 1, false};
    kprof_get_strings(&in, &cut);
    assert_true(in.failed);
    assert_int_equal(cut.count, 2);
    kprof_strlist_free(&read);
    kprof_strlist_free(&cut);
}

/* Check value of the CRC catalogue, and RFC 3720 appendix B.4. */
TEST(checksum_is_crc32c)
{
    const uint8_t zeros[32] = {0};
    assert_int_equal(kprof_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(kprof_crc32c(0, zeros, sizeof zeros), 0x8a9136aa);
    assert_int_equal(kprof_crc32c(kprof_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    assert_int_equal(kprof_crc32c(0, NULL, 0), 0);
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 9; from++) /* whatever the alignment and the rest are */
        for (size_t size = 0; from + size <= sizeof bytes; size++)
            assert_int_equal(kprof_crc32c(7, bytes + from, size), kprof_crc32c_by_table(7, bytes + from, size));
}
