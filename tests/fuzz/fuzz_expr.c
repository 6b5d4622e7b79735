/* Expressions of derived metrics: any text is refused or has a value, by name and by slot the same. */
#include "fuzz.h"

#include "metricset/expr.h"

#include <math.h>
#include <string.h>

/* A value for each name; some are missing. */
static double value_of(void *user, const char *name)
{
    static const double values[] = {0, 1, -2.5, 1e300, -0.0, 132, INFINITY, NAN};
    unsigned sum = 0;
    for (; *name; name++)
        sum = sum * 31 + (unsigned char)*name;
    return values[sum % (sizeof values / sizeof *values)];
}

static kprof_status place(void *user, const char *name, size_t *slot)
{
    kprof_strlist *names = user;
    for (*slot = 0; *slot < names->count; ++*slot) {
        if (strcmp(names->items[*slot], name) == 0)
            return KPROF_OK;
    }
    return kprof_strlist_add(names, name) ? KPROF_OK : KPROF_NO_MEMORY;
}

static void visit(void *user, size_t slot)
{
    const kprof_strlist *names = user;
    FUZZ_CHECK(slot < names->count && isnan(value_of(NULL, names->items[slot])));
}

static void compute(kprof_expr *expr, kprof_strlist *bound)
{
    double expected = kprof_expr_evaluate(expr, value_of, NULL);
    FUZZ_CHECK(kprof_expr_bind(expr, place, bound) == KPROF_OK);
    KPROF_AUTO_FREE double *values = calloc(bound->count + 1, sizeof *values);
    FUZZ_CHECK(values != NULL);
    for (size_t i = 0; i < bound->count; i++)
        values[i] = value_of(NULL, bound->items[i]);
    double computed = kprof_expr_compute(expr, values);
    FUZZ_CHECK(computed == expected || (isnan(computed) && isnan(expected)));
    kprof_expr_missing(expr, values, visit, bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    KPROF_AUTO_FREE char *text = fuzz_take_text(&input, size);
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_expr *expr = NULL;
    kprof_strlist names = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT, bound = KPROF_STRLIST_INIT;
    if (kprof_expr_parse(&pool, text, &expr) == KPROF_OK) {
        kprof_expr_names(expr, &names);
        compute(expr, &bound);
        FUZZ_CHECK(bound.count == names.count);
        kprof_strlist_free(&names);
        kprof_expr_operands(expr, &names, &optional);
    }
    kprof_strlist_free(&names);
    kprof_strlist_free(&optional);
    kprof_strlist_free(&bound);
    return 0;
}
