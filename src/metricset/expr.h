/* Derived values: arithmetic over metric names, written in the set files. Numbers, + - * / ( ), unary minus, names such
 * as dram__bytes.sum.per_second, and min(a,b,...), max(...), sum(...), if_missing(a, b). Missing operands make a
 * missing result (NaN), and so does a division by zero: not measured is never 0. */
#ifndef KPROF_METRICSET_EXPR_H
#define KPROF_METRICSET_EXPR_H

#include "core/status.h"
#include "core/strbuf.h"

typedef struct kprof_expr kprof_expr;

/* Return the value of a name, NaN when it is not known. */
typedef double kprof_expr_lookup(void *user, const char *name);

/* Parse an expression. BAD_METRICSET, with a logged message and position, when the text is none. Nesting and length are
 * bounded. */
kprof_status kprof_expr_parse(const char *text, kprof_expr **out) KPROF_MUST_CHECK;
void kprof_expr_free(kprof_expr *expr);
/* Append every name in the expression, each once. */
kprof_status kprof_expr_names(const kprof_expr *expr, kprof_strlist *out) KPROF_MUST_CHECK;
/* Append the names to two lists: those that a value needs, and those in the first argument of if_missing. */
kprof_status kprof_expr_operands(const kprof_expr *expr, kprof_strlist *required,
                                 kprof_strlist *optional) KPROF_MUST_CHECK;
double kprof_expr_evaluate(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user);

#endif
