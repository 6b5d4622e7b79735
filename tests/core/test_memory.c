/* What the machine has left. */
#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static void test_within_the_machine(void **state)
{
    (void)state;
    size_t total = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t available = kprof_memory_available_bytes();
    assert_true(available > 0);
    assert_true(available <= total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_within_the_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
