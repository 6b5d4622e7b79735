/* Launches of one pass each where memory of the host runs out. The engine runs on the simulated machine. */
#include "engine_test.h"

#define GROUPS 200 /* more than fit without more memory */

static size_t refused_bytes; /* allocations of at least as much fail; 0: none */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    bool is_table = size == sizeof(void *) && count >= 64;
    return is_table && refused_bytes && count * size >= refused_bytes ? NULL : __real_calloc(count, size);
}

/* Each launch here has a shape of its own. Those that are told apart already are measured all the same. */
static void test_no_memory_for_more_groups(void **state)
{
    (void)state;
    (void)launch(SIM_PRINT); /* it is watched */
    refused_bytes = 128 * sizeof(void *);
    unsigned first = launch(SIM_PRINT), last = 0;
    for (unsigned i = 1; i < GROUPS; i++)
        last = launch(SIM_PRINT);
    refused_bytes = 0;
    end_samples();
    assert_report(first, 1, "measured in 1 of 2 passes");
    assert_true(look_up(last).count <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory_for_more_groups)};
    return cmocka_run_group_tests(tests, start_engine, remove_folder);
}
