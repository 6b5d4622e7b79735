/* Tests what counts as shared with other processes, and what as mapped. */
#include "cupti/mappings.h"

#include "descriptor_limit.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 16 };

static char *map(int flags)
{
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

TEST(test_shared)
{
    char *memory = map(MAP_SHARED);
    assert_true(kprof_mappings_shared(memory, SIZE));
    assert_true(kprof_mappings_shared(memory + 1, 1));
    assert_true(kprof_mappings_shared(memory - 16, 17));
    munmap(memory, SIZE);
}

TEST(test_private)
{
    char *memory = map(MAP_PRIVATE);
    int local = 0;
    assert_false(kprof_mappings_shared(memory, SIZE));
    assert_false(kprof_mappings_shared(&local, sizeof local));
    munmap(memory, SIZE);
}

/* A part of a private range that others share. */
TEST(test_partly_shared)
{
    char *memory = map(MAP_PRIVATE), *middle = memory + SIZE / 2;
    assert_ptr_equal(mmap(middle, SIZE / 4, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), middle);
    assert_true(kprof_mappings_shared(memory, SIZE));
    assert_false(kprof_mappings_shared(memory, SIZE / 2));
    assert_false(kprof_mappings_shared(middle + SIZE / 4, SIZE / 4));
    munmap(memory, SIZE);
}

/* The first byte of what is found in a range, and of what is behind it, from the beginning of the memory on. */
typedef struct found_range {
    size_t begin, end;
} found_range;

static bool find(const char *memory, size_t begin, size_t end, found_range *out)
{
    uint64_t at = (uintptr_t)memory;
    uint64_t first = at + begin, behind = at + end;
    bool found = kprof_mappings_find_present(&first, &behind);
    *out = (found_range){(size_t)(first - at), (size_t)(behind - at)};
    return found;
}

/* Once the page was used. */
TEST(test_present)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = 5000 * page_bytes; /* read in two parts */
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    found_range range;
    assert_false(find(memory, 0, bytes, &range));
    memory[4999 * page_bytes + 17] = 1;
    assert_true(find(memory, 0, bytes, &range));
    assert_int_equal(range.begin, 4999 * page_bytes);
    assert_int_equal(range.end, bytes);
    const size_t within = 4999 * page_bytes + 100;
    assert_true(find(memory, within, within + 1, &range)); /* of the page */
    assert_int_equal(range.begin, within);
    assert_int_equal(range.end, within + 1);
    assert_true(find(memory, within - page_bytes, within, &range));
    assert_int_equal(range.begin, 4999 * page_bytes);
    assert_false(find(memory, 0, 4999 * page_bytes, &range));
    assert_false(find(memory, 0, 0, &range));
    memory[508 * page_bytes] = memory[515 * page_bytes] = memory[600 * page_bytes] = 1; /* two are near each other */
    assert_true(find(memory, 0, bytes, &range));
    assert_int_equal(range.begin, 508 * page_bytes);
    assert_int_equal(range.end, 516 * page_bytes);
    assert_true(find(memory, range.end, bytes, &range));
    assert_int_equal(range.begin, 600 * page_bytes);
    assert_int_equal(range.end, 601 * page_bytes);
    munmap(memory, bytes);
}

TEST(test_all_present)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = 4 * page_bytes;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    const uint64_t at = (uintptr_t)memory;
    memory[0] = memory[page_bytes] = memory[3 * page_bytes] = 1;
    assert_true(kprof_mappings_all_present(at + 5, 2 * page_bytes - 5));
    assert_false(kprof_mappings_all_present(at + 5, 2 * page_bytes - 4)); /* a byte of the third page */
    assert_false(kprof_mappings_all_present(at, bytes));
    assert_true(kprof_mappings_all_present(at + bytes - 1, 1));
    munmap(memory, bytes);
}

TEST(test_named)
{
    assert_true(kprof_mappings_named("/")); /* the program itself */
    assert_true(kprof_mappings_named("[stack"));
    assert_false(kprof_mappings_named("/[aio]"));
}

/* Other code has memory there, too. */
TEST(test_general)
{
    char *memory = map(MAP_PRIVATE), *heap = sbrk(SIZE);
    assert_true(heap != (void *)-1);
    assert_false(kprof_mappings_general(memory, SIZE));
    assert_true(kprof_mappings_general(__builtin_frame_address(0), 8)); /* a sanitizer may have variables elsewhere */
    assert_true(kprof_mappings_general(heap, SIZE));
    assert_true(kprof_mappings_general(heap + SIZE - 1, 1));
    munmap(memory, SIZE);
}

/* A list that cannot be read may have the mapping. */
TEST(test_nothing_can_be_read)
{
    char *memory = map(MAP_PRIVATE);
    rlim_t before = limit_descriptors(0);
    found_range range;
    bool present = find(memory, 0, SIZE, &range);
    limit_descriptors(before);
    assert_true(present);
    assert_int_equal(range.begin, 0);
    assert_int_equal(range.end, SIZE);
    before = limit_descriptors(0);
    bool named = kprof_mappings_named("/[aio]");
    limit_descriptors(before);
    assert_true(named);
    before = limit_descriptors(0);
    bool general = kprof_mappings_general(memory, SIZE);
    limit_descriptors(before);
    assert_true(general);
    munmap(memory, SIZE);
}
