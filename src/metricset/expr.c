/* Expressions of the set files: a recursive-descent parser that makes a tree, and its evaluation. Length, depth and the
 * number of arguments are bounded, because the text may come from anyone. */
#include "metricset/expr.h"

#include "core/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LENGTH = 8192, MAX_DEPTH = 64, MAX_ARGUMENTS = 64 };

typedef enum operation {
    OP_NUMBER,
    OP_NAME,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_NEGATE,
    OP_MIN,
    OP_MAX,
    OP_SUM,
    OP_IF_MISSING
} operation;

struct kprof_expr {
    operation op;
    double number;         /* OP_NUMBER */
    char *name;            /* OP_NAME */
    kprof_expr **operands; /* [count] */
    size_t count;
};

static const struct {
    const char *name;
    operation op;
    size_t least, most; /* arguments */
} functions[] = {
    {"min", OP_MIN, 1, MAX_ARGUMENTS},
    {"max", OP_MAX, 1, MAX_ARGUMENTS},
    {"sum", OP_SUM, 1, MAX_ARGUMENTS},
    {"if_missing", OP_IF_MISSING, 2, 2},
};
enum { FUNCTION_COUNT = sizeof(functions) / sizeof(functions[0]) };

typedef struct parser {
    const char *text, *at;
    unsigned depth;
    const char *error; /* NULL while all is well */
} parser;

static kprof_expr *parse_sum(parser *p);

void kprof_expr_free(kprof_expr *expr)
{
    if (!expr)
        return;
    for (size_t i = 0; i < expr->count; i++)
        kprof_expr_free(expr->operands[i]);
    free(expr->operands);
    free(expr->name);
    free(expr);
}

static kprof_expr *fail(parser *p, const char *error)
{
    if (!p->error)
        p->error = error;
    return NULL;
}

static bool add_operand(parser *p, kprof_expr *expr, kprof_expr *operand)
{
    if (!operand)
        return false;
    kprof_expr **operands = realloc(expr->operands, (expr->count + 1) * sizeof(kprof_expr *));
    if (!operands) {
        kprof_expr_free(operand);
        (void)fail(p, "out of memory");
        return false;
    }
    expr->operands = operands;
    expr->operands[expr->count++] = operand;
    return true;
}

/* Make a node over one or two operands, and own them. NULL when an operand is NULL. */
static kprof_expr *make_node(parser *p, operation op, kprof_expr *left, kprof_expr *right)
{
    kprof_expr *expr = calloc(1, sizeof(*expr));
    bool unary = op == OP_NEGATE;
    if (!expr || !left || (!unary && !right)) {
        kprof_expr_free(left);
        kprof_expr_free(right);
        free(expr);
        return fail(p, "out of memory");
    }
    expr->op = op;
    bool added = add_operand(p, expr, left);
    if (!unary && !added)
        kprof_expr_free(right);
    else if (!unary)
        added = add_operand(p, expr, right);
    if (added)
        return expr;
    kprof_expr_free(expr);
    return NULL;
}

static void skip_spaces(parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

static bool accept(parser *p, char c)
{
    skip_spaces(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static kprof_expr *parse_number(parser *p)
{
    char *end;
    double number = strtod(p->at, &end);
    bool hexadecimal = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
    if (end == p->at || hexadecimal || !isfinite(number) || starts_name(*end))
        return fail(p, "not a number");
    kprof_expr *expr = calloc(1, sizeof(*expr));
    if (!expr)
        return fail(p, "out of memory");
    expr->op = OP_NUMBER;
    expr->number = number;
    p->at = end;
    return expr;
}

static bool parse_arguments(parser *p, kprof_expr *call, size_t most)
{
    do {
        if (call->count == most)
            return fail(p, "too many arguments");
        if (!add_operand(p, call, parse_sum(p)))
            return false;
    } while (accept(p, ','));
    return accept(p, ')') || fail(p, "expected , or )");
}

static kprof_expr *parse_call(parser *p, const char *name, size_t length)
{
    size_t row = 0;
    while (row < FUNCTION_COUNT &&
           (strlen(functions[row].name) != length || strncmp(functions[row].name, name, length) != 0))
        row++;
    if (row == FUNCTION_COUNT) {
        p->at = name;
        return fail(p, "not a function; there are min, max, sum and if_missing");
    }
    kprof_expr *call = calloc(1, sizeof(*call));
    if (!call)
        return fail(p, "out of memory");
    call->op = functions[row].op;
    if (!parse_arguments(p, call, functions[row].most) || call->count < functions[row].least) {
        kprof_expr_free(call);
        return fail(p, "too few arguments");
    }
    return call;
}

static kprof_expr *parse_name(parser *p)
{
    const char *name = p->at;
    while (starts_name(*p->at) || is_digit(*p->at) || *p->at == '.')
        p->at++;
    size_t length = (size_t)(p->at - name);
    if (accept(p, '('))
        return parse_call(p, name, length);
    kprof_expr *expr = calloc(1, sizeof(*expr));
    if (expr)
        expr->name = strndup(name, length);
    if (!expr || !expr->name) {
        free(expr);
        return fail(p, "out of memory");
    }
    expr->op = OP_NAME;
    return expr;
}

static kprof_expr *parse_primary(parser *p)
{
    skip_spaces(p);
    if (is_digit(*p->at) || *p->at == '.')
        return parse_number(p);
    if (starts_name(*p->at))
        return parse_name(p);
    if (!accept(p, '('))
        return fail(p, *p->at ? "expected a number, a name or (" : "the expression ends too early");
    kprof_expr *inner = parse_sum(p);
    if (inner && !accept(p, ')')) {
        kprof_expr_free(inner);
        return fail(p, "expected )");
    }
    return inner;
}

static kprof_expr *parse_unary(parser *p)
{
    if (p->depth >= MAX_DEPTH)
        return fail(p, "nested too deeply");
    p->depth++;
    kprof_expr *expr = accept(p, '-') ? make_node(p, OP_NEGATE, parse_unary(p), NULL) : parse_primary(p);
    p->depth--;
    return expr;
}

static kprof_expr *parse_product(parser *p)
{
    kprof_expr *left = parse_unary(p);
    while (left) {
        if (accept(p, '*'))
            left = make_node(p, OP_MUL, left, parse_unary(p));
        else if (accept(p, '/'))
            left = make_node(p, OP_DIV, left, parse_unary(p));
        else
            break;
    }
    return left;
}

static kprof_expr *parse_sum(parser *p)
{
    kprof_expr *left = parse_product(p);
    while (left) {
        if (accept(p, '+'))
            left = make_node(p, OP_ADD, left, parse_product(p));
        else if (accept(p, '-'))
            left = make_node(p, OP_SUB, left, parse_product(p));
        else
            break;
    }
    return left;
}

kprof_status kprof_expr_parse(const char *text, kprof_expr **out)
{
    parser p = {text, text, 0, NULL};
    *out = NULL;
    if (strlen(text) > MAX_LENGTH)
        return kprof_fail(KPROF_BAD_METRICSET, "expression \"%.40s...\" is longer than %d characters", text,
                          MAX_LENGTH);
    kprof_expr *expr = parse_sum(&p);
    skip_spaces(&p);
    if (expr && *p.at) {
        kprof_expr_free(expr);
        expr = fail(&p, "expected an operator");
    }
    if (!expr)
        return kprof_fail(KPROF_BAD_METRICSET, "expression \"%.200s\", character %zu: %s", text,
                          (size_t)(p.at - p.text) + 1, p.error);
    *out = expr;
    return KPROF_OK;
}

kprof_status kprof_expr_operands(const kprof_expr *expr, kprof_strlist *required, kprof_strlist *optional)
{
    if (expr->op == OP_NAME)
        return kprof_strlist_add_unique(required, expr->name) ? KPROF_OK : KPROF_NO_MEMORY;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < expr->count && status == KPROF_OK; i++) {
        bool may_miss = expr->op == OP_IF_MISSING && i == 0;
        status = kprof_expr_operands(expr->operands[i], may_miss ? optional : required, optional);
    }
    return status;
}

kprof_status kprof_expr_names(const kprof_expr *expr, kprof_strlist *out)
{
    return kprof_expr_operands(expr, out, out);
}

/* Fold the operands of min, max and sum. One missing operand makes the result missing; fmin and fmax would hide it. */
static double fold(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user)
{
    double result = kprof_expr_evaluate(expr->operands[0], lookup, user);
    for (size_t i = 1; i < expr->count; i++) {
        double value = kprof_expr_evaluate(expr->operands[i], lookup, user);
        if (isnan(value) || isnan(result))
            result = NAN;
        else if (expr->op == OP_SUM)
            result += value;
        else if (expr->op == OP_MIN ? value < result : value > result)
            result = value;
    }
    return result;
}

static double apply(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user)
{
    double left = kprof_expr_evaluate(expr->operands[0], lookup, user);
    double right = kprof_expr_evaluate(expr->operands[1], lookup, user);
    switch (expr->op) {
    case OP_ADD:
        return left + right;
    case OP_SUB:
        return left - right;
    case OP_MUL:
        return left * right;
    case OP_DIV:
        return right == 0 ? NAN : left / right;
    default: /* OP_IF_MISSING */
        return isnan(left) ? right : left;
    }
}

double kprof_expr_evaluate(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user)
{
    switch (expr->op) {
    case OP_NUMBER:
        return expr->number;
    case OP_NAME:
        return lookup(user, expr->name);
    case OP_NEGATE:
        return -kprof_expr_evaluate(expr->operands[0], lookup, user);
    case OP_MIN:
    case OP_MAX:
    case OP_SUM:
        return fold(expr, lookup, user);
    default:
        return apply(expr, lookup, user);
    }
}
