/* Tests what counts as shared with other processes, and what as mapped. */
#include "core/mappings.h"

#include "descriptor_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 1 << 16 };

static char *map(int flags)
{
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void test_shared(void **state)
{
    (void)state;
    char *memory = map(MAP_SHARED);
    assert_true(kprof_mappings_shared(memory, SIZE));
    assert_true(kprof_mappings_shared(memory + 1, 1));
    assert_true(kprof_mappings_shared(memory - 16, 17));
    munmap(memory, SIZE);
}

static void test_private(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE);
    int local = 0;
    assert_false(kprof_mappings_shared(memory, SIZE));
    assert_false(kprof_mappings_shared(&local, sizeof local));
    munmap(memory, SIZE);
}

/* A part of a private range that others share. */
static void test_partly_shared(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE), *middle = memory + SIZE / 2;
    assert_ptr_equal(mmap(middle, SIZE / 4, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), middle);
    assert_true(kprof_mappings_shared(memory, SIZE));
    assert_false(kprof_mappings_shared(memory, SIZE / 2));
    assert_false(kprof_mappings_shared(middle + SIZE / 4, SIZE / 4));
    munmap(memory, SIZE);
}

/* Once the page was used. */
static void test_present(void **state)
{
    (void)state;
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = 5000 * page_bytes; /* read in two parts */
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    assert_false(kprof_mappings_present(memory, bytes));
    memory[4999 * page_bytes + 17] = 1;
    assert_true(kprof_mappings_present(memory, bytes));
    assert_true(kprof_mappings_present(memory + 4999 * page_bytes + 100, 1)); /* of the page */
    assert_true(kprof_mappings_present(memory + 4998 * page_bytes + 100, page_bytes));
    assert_false(kprof_mappings_present(memory, 4999 * page_bytes));
    assert_false(kprof_mappings_present(memory, 0));
    munmap(memory, bytes);
}

static void test_named(void **state)
{
    (void)state;
    assert_true(kprof_mappings_named("/")); /* the program itself */
    assert_true(kprof_mappings_named("[stack"));
    assert_false(kprof_mappings_named("/[aio]"));
}

/* Other code has memory there, too. */
static void test_general(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE), *heap = sbrk(SIZE);
    assert_true(heap != (void *)-1);
    assert_false(kprof_mappings_general(memory, SIZE));
    assert_true(kprof_mappings_general(__builtin_frame_address(0), 8)); /* a sanitizer may have variables elsewhere */
    assert_true(kprof_mappings_general(heap, SIZE));
    assert_true(kprof_mappings_general(heap + SIZE - 1, 1));
    munmap(memory, SIZE);
}

/* A list that cannot be read may have the mapping. */
static void test_nothing_can_be_read(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE);
    rlim_t before = limit_descriptors(0);
    bool present = kprof_mappings_present(memory, SIZE);
    limit_descriptors(before);
    assert_true(present);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_partly_shared),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_general),
        cmocka_unit_test(test_present),
        cmocka_unit_test(test_nothing_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
