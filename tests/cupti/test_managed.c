/* Which parts of managed memory the host has used, where the test says what pages the system has. */
#include "cupti/managed.h"

#include "cupti/driver.h"
#include "cupti/mappings.h"
#include "cupti/variables.h"
#include "test.h"

#include <stdlib.h>

#define PAGE     UINT64_C(0x1000)
#define FIRST    UINT64_C(0x100000)
#define SECOND   UINT64_C(0x200000)
#define VARIABLE UINT64_C(0x300010)

static char context;
static kprof_span spans[2];
static kprof_variable variable;
static bool spans_known, variables_known;
static uint64_t used[4]; /* [used_count], pages that the host has, in order */
static size_t used_count;

bool kprof_mappings_find_present(uint64_t *begin, uint64_t *end)
{
    for (size_t i = 0; i < used_count; i++) {
        if (used[i] + PAGE <= *begin || used[i] >= *end)
            continue;
        *begin = used[i] > *begin ? used[i] : *begin;
        *end = used[i] + PAGE < *end ? used[i] + PAGE : *end;
        return true;
    }
    return false;
}

bool kprof_allocations_list_managed(kprof_span **out, size_t *count)
{
    *out = spans_known ? calloc(2, sizeof **out) : NULL;
    *count = spans_known ? 2 : 0;
    for (size_t i = 0; *out && i < 2; i++)
        (*out)[i] = spans[i];
    return spans_known;
}

bool kprof_variables_list(const void *of, kprof_variable **out, size_t *count)
{
    assert_null(of); /* of all contexts */
    *out = variables_known ? calloc(1, sizeof **out) : NULL;
    *count = variables_known;
    if (*out)
        **out = variable;
    return variables_known;
}

kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    return KPROF_NO_GPU; /* nothing here asks it */
}

static int set_up(void **state)
{
    spans[0] = (kprof_span){FIRST, 16 * PAGE};
    spans[1] = (kprof_span){SECOND, 16 * PAGE - 5};
    variable = (kprof_variable){.context = &context, .address = VARIABLE, .size_bytes = 64, .is_managed = true};
    spans_known = variables_known = true;
    used_count = 0;
    return 0;
}

static void use(uint64_t page)
{
    used[used_count++] = page;
}

static void check(const kprof_span *wanted, size_t wanted_count)
{
    kprof_span *found;
    size_t count;
    assert_true(kprof_managed_list_touched(&found, &count));
    assert_int_equal(count, wanted_count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].address, wanted[i].address);
        assert_int_equal(found[i].size_bytes, wanted[i].size_bytes);
    }
    free(found);
}

TEST(test_touched)
{
    check(NULL, 0);
    use(FIRST);
    use(FIRST + 3 * PAGE);
    use(SECOND + 15 * PAGE);
    use(VARIABLE & ~(PAGE - 1));
    const kprof_span all[] = {{FIRST, PAGE}, {FIRST + 3 * PAGE, PAGE}, {SECOND + 15 * PAGE, PAGE - 5}, {VARIABLE, 64}};
    check(all, 4);
    variable.is_managed = false;
    check(all, 3);
}

static void check_unknown(void)
{
    kprof_span *found;
    size_t count;
    assert_false(kprof_managed_list_touched(&found, &count));
    assert_null(found);
    assert_int_equal(count, 0);
}

TEST(test_unknown)
{
    use(FIRST);
    spans_known = false;
    check_unknown();
    spans_known = true;
    variables_known = false;
    check_unknown();
    variables_known = true;
    variable.size_bytes = 0; /* it is not known */
    check_unknown();
    variable.size_bytes = 64;
    spans[1].size_bytes = (size_t)8 << 30; /* to look takes too long */
    check_unknown();
}

AROUND_EACH(set_up, NULL)
