/* Derived values: arithmetic over metric names, written in the set files. Numbers, + - * / ( ), unary minus, names such
 * as dram__bytes.sum.per_second, and min(a,b,...), max(...), sum(...), floor(a), ceil(a), if_missing(a, b). Conditions
 * are 1 or 0: < <= > >= == !=, and, or, not, and if(condition, a, b). Missing operands make a missing result (NaN), and
 * so does a division by zero: not measured is never 0. But "and" with a false operand is false, and "or" with a true
 * one is true. */
#pragma once

#include "core/pool.h"
#include "core/status.h"
#include "core/strbuf.h"

typedef struct kprof_expr kprof_expr;

/* Return the value of a name, NaN when it is not known. */
typedef double kprof_expr_lookup(void *user, const char *name);

/* Parse an expression, which the pool owns. BAD_METRICSET, with a message and the position, when it is none. Bounds
 * nesting and length. */
kprof_status kprof_expr_parse(kprof_pool *pool, const char *text, kprof_expr **out) KPROF_MUST_CHECK;
/* Append every name in the expression, each once. */
void kprof_expr_names(const kprof_expr *expr, kprof_strlist *out);
/* Append the names to two lists: those that a value needs, and those in the first argument of if_missing. */
void kprof_expr_operands(const kprof_expr *expr, kprof_strlist *required, kprof_strlist *optional);
double kprof_expr_evaluate(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user);

/* For an expression that is evaluated many times: `place` gives each name its slot, once; then the expression reads the
 * values of its names from an array. A status other than OK of `place` ends the binding. */
typedef kprof_status kprof_expr_place(void *user, const char *name, size_t *slot);
kprof_status kprof_expr_bind(kprof_expr *expr, kprof_expr_place *place, void *user) KPROF_MUST_CHECK;
double kprof_expr_compute(const kprof_expr *expr, const double *values);
/* Call `visit` with the missing slots (NaN) that may explain a missing result: for if_missing(a, b) only those in a,
 * and none if it has a value. A slot may be visited several times. */
typedef void kprof_expr_visit_slot(void *user, size_t slot);
void kprof_expr_missing(const kprof_expr *expr, const double *values, kprof_expr_visit_slot *visit, void *user);
