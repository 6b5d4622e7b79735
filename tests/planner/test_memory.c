/* Each allocation with calloc that planning makes fails once: the plan is whole, or the planner says that memory is
 * short. */
#include "planner/planner.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t calls, failing; /* counted from 1; 0: none fails */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return ++calls == failing ? NULL : __real_calloc(count, size);
}

static kprof_status make_plan(kprof_plan *out, size_t fails)
{
    kprof_host *host;
    kprof_selection selection = {.metrics = KPROF_STRLIST_INIT};
    assert_true(kprof_strlist_add(&selection.metrics, "dram__bytes.sum"));
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    calls = 0;
    failing = fails;
    kprof_status status = kprof_plan_make(shipped_catalog, &selection, host, out);
    failing = 0;
    kprof_host_close(host);
    kprof_selection_free(&selection);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    kprof_plan plan;
    assert_int_equal(make_plan(&plan, 0), KPROF_OK);
    const size_t all = calls, passes = plan.pass_count;
    size_t failed = 0;
    kprof_plan_free(&plan);
    assert_true(all > 0);
    for (size_t i = 1; i <= all; i++) {
        const kprof_status status = make_plan(&plan, i);
        assert_true(status == KPROF_NO_MEMORY || (status == KPROF_OK && plan.pass_count == passes));
        failed += status == KPROF_NO_MEMORY;
        kprof_plan_free(&plan);
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    if (!cupti_is_here())
        return SKIPPED;
    return cmocka_run_group_tests(tests, set_up_catalog, tear_down_catalog);
}
