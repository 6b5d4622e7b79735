/* Expressions of the set files: a recursive-descent parser that makes a tree, and its evaluation. Length, depth and the
 * number of arguments are bounded, because the text may come from anyone. */
#include "metricset/expr.h"

#include "core/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LENGTH = 8192, MAX_DEPTH = 64, MAX_ARGUMENTS = 64 };

/* X(sign, operation, how tightly it binds, value of `left` and `right`): longer signs stand before those that they
 * begin with. */
#define OPERATORS(X)                                                                                                   \
    X("or", OR, OF_OR, join(OP_OR, left, right))                                                                       \
    X("and", AND, OF_AND, join(OP_AND, left, right))                                                                   \
    X("<=", LESS_EQUAL, OF_COMPARISON, left <= right)                                                                  \
    X(">=", MORE_EQUAL, OF_COMPARISON, left >= right)                                                                  \
    X("==", EQUAL, OF_COMPARISON, left == right)                                                                       \
    X("!=", NOT_EQUAL, OF_COMPARISON, left != right)                                                                   \
    X("<", LESS, OF_COMPARISON, left < right)                                                                          \
    X(">", MORE, OF_COMPARISON, left > right)                                                                          \
    X("+", ADD, OF_SUM, left + right)                                                                                  \
    X("-", SUB, OF_SUM, left - right)                                                                                  \
    X("*", MUL, OF_PRODUCT, (left) * (right))                                                                          \
    X("/", DIV, OF_PRODUCT, right == 0 ? NAN : left / right)
/* X(name, operation, its least arguments, its most) */
#define FUNCTIONS(X)                                                                                                   \
    X("min", MIN, 1, MAX_ARGUMENTS)                                                                                    \
    X("max", MAX, 1, MAX_ARGUMENTS)                                                                                    \
    X("sum", SUM, 1, MAX_ARGUMENTS)                                                                                    \
    X("if_missing", IF_MISSING, 2, 2)                                                                                  \
    X("if", IF, 3, 3)                                                                                                  \
    X("floor", FLOOR, 1, 1)                                                                                            \
    X("ceil", CEIL, 1, 1)

#define OPERATION(word, name, ...) OP_##name,
typedef enum operation { OPERATORS(OPERATION) FUNCTIONS(OPERATION) OP_NUMBER, OP_NAME, OP_NEGATE, OP_NOT } operation;

struct kprof_expr {
    operation op;
    double number;         /* OP_NUMBER */
    char *name;            /* OP_NAME */
    size_t slot;           /* OP_NAME, once bound */
    kprof_expr **operands; /* [count] */
    size_t count;
};

static const struct {
    const char *name;
    operation op;
    size_t least, most; /* arguments */
} functions[] = {
#define FUNCTION(text, name, least, most) {text, OP_##name, least, most},
    FUNCTIONS(FUNCTION)
#undef FUNCTION
};
enum { FUNCTION_COUNT = COUNT_OF(functions) };

typedef struct parser {
    kprof_pool *pool;
    const char *text, *at;
    unsigned depth;
    const char *error; /* NULL while all is well */
} parser;

/* How tightly operations bind, the loosest first. */
typedef enum level { OF_OR, OF_AND, OF_NOT, OF_COMPARISON, OF_SUM, OF_PRODUCT, OF_SIGN } level;

static const struct {
    const char *sign;
    operation op;
    level level;
} operators[] = {
#define OPERATOR(text, name, level, value) {text, OP_##name, level},
    OPERATORS(OPERATOR)
#undef OPERATOR
};

static kprof_expr *parse(parser *p, level of);

static kprof_expr *fail(parser *p, const char *error)
{
    if (!p->error)
        p->error = error;
    return NULL;
}

static kprof_expr *make_leaf(parser *p, operation op)
{
    kprof_expr *expr = kprof_pool_calloc(p->pool, 1, sizeof(*expr));
    expr->op = op;
    return expr;
}

static bool add_operand(parser *p, kprof_expr *expr, kprof_expr *operand)
{
    if (operand)
        *KPROF_POOL_ADD(p->pool, expr->operands, expr->count) = operand;
    return operand;
}

/* Make a node over one or two operands. NULL when an operand is NULL. */
static kprof_expr *make_node(parser *p, operation op, kprof_expr *left, kprof_expr *right)
{
    const bool unary = op == OP_NEGATE || op == OP_NOT;
    kprof_expr *expr = make_leaf(p, op);
    return add_operand(p, expr, left) && (unary || add_operand(p, expr, right)) ? expr : NULL;
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

static bool continues_name(char c)
{
    return starts_name(c) || is_digit(c) || c == '.';
}

/* Is the next word this one? */
static bool at_word(parser *p, const char *word)
{
    skip_spaces(p);
    const size_t length = strlen(word);
    return strncmp(p->at, word, length) == 0 && !continues_name(p->at[length]);
}

static bool accept_word(parser *p, const char *word)
{
    if (!at_word(p, word))
        return false;
    p->at += strlen(word);
    return true;
}

static kprof_expr *parse_number(parser *p)
{
    char *end;
    double number = strtod(p->at, &end);
    bool hexadecimal = p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X');
    if (end == p->at || hexadecimal || !isfinite(number) || starts_name(*end))
        return fail(p, "not a number");
    kprof_expr *expr = make_leaf(p, OP_NUMBER);
    expr->number = number;
    p->at = end;
    return expr;
}

static bool parse_arguments(parser *p, kprof_expr *call, size_t most)
{
    do {
        if (call->count == most)
            return fail(p, "too many arguments");
        if (!add_operand(p, call, parse(p, OF_OR)))
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
        return fail(p, "not a function; there are min, max, sum, floor, ceil, if and if_missing");
    }
    kprof_expr *call = make_leaf(p, functions[row].op);
    if (!parse_arguments(p, call, functions[row].most) || call->count < functions[row].least)
        return fail(p, "too few arguments");
    return call;
}

static kprof_expr *parse_name(parser *p)
{
    const char *name = p->at;
    if (at_word(p, "and") || at_word(p, "or") || at_word(p, "not"))
        return fail(p, "expected a value");
    while (continues_name(*p->at))
        p->at++;
    size_t length = (size_t)(p->at - name);
    if (accept(p, '('))
        return parse_call(p, name, length);
    kprof_expr *expr = make_leaf(p, OP_NAME);
    expr->name = kprof_pool_keep(p->pool, kprof_strndup(name, length));
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
    kprof_expr *inner = parse(p, OF_OR);
    return inner && !accept(p, ')') ? fail(p, "expected )") : inner;
}

/* `not` has been read; a minus may come, or a value. */
static kprof_expr *parse_signed(parser *p, level of)
{
    if (p->depth >= MAX_DEPTH)
        return fail(p, "nested too deeply");
    p->depth++;
    kprof_expr *expr = of == OF_NOT     ? make_node(p, OP_NOT, parse(p, OF_NOT), NULL)
                       : accept(p, '-') ? make_node(p, OP_NEGATE, parse(p, OF_SIGN), NULL)
                                        : parse_primary(p);
    p->depth--;
    return expr;
}

static bool accept_operator(parser *p, level of, operation *op)
{
    skip_spaces(p);
    const size_t at = KPROF_FIND(i, COUNT_OF(operators),
                                 operators[i].level == of && kprof_begins_with(p->at, operators[i].sign) &&
                                     (!starts_name(*p->at) || at_word(p, operators[i].sign)));
    if (at == COUNT_OF(operators))
        return false;
    p->at += strlen(operators[at].sign);
    *op = operators[at].op;
    return true;
}

/* One comparison at most: 1 < a < 3 would not mean what it looks like. */
static kprof_expr *parse(parser *p, level of)
{
    if (of == OF_SIGN || (of == OF_NOT && accept_word(p, "not")))
        return parse_signed(p, of);
    operation op;
    kprof_expr *left = parse(p, of + 1);
    for (bool more = true; left && more && accept_operator(p, of, &op); more = of != OF_COMPARISON)
        left = make_node(p, op, left, parse(p, of + 1));
    return left;
}

kprof_status kprof_expr_parse(kprof_pool *pool, const char *text, kprof_expr **out)
{
    parser p = {pool, text, text, 0, NULL};
    *out = NULL;
    if (strlen(text) > MAX_LENGTH)
        return kprof_fail(KPROF_BAD_METRICSET, "expression \"%.40s...\" is longer than %d characters", text,
                          MAX_LENGTH);
    kprof_expr *expr = parse(&p, OF_OR);
    skip_spaces(&p);
    if (expr && *p.at)
        expr = fail(&p, "expected an operator");
    if (!expr)
        return kprof_fail(KPROF_BAD_METRICSET, "expression \"%.200s\", character %zu: %s", text,
                          (size_t)(p.at - p.text) + 1, p.error);
    *out = expr;
    return KPROF_OK;
}

void kprof_expr_operands(const kprof_expr *expr, kprof_strlist *required, kprof_strlist *optional)
{
    if (expr->op == OP_NAME)
        kprof_strlist_add_unique(required, expr->name);
    for (size_t i = 0; i < expr->count; i++) {
        bool may_miss = expr->op == OP_IF_MISSING && i == 0;
        kprof_expr_operands(expr->operands[i], may_miss ? optional : required, optional);
    }
}

void kprof_expr_names(const kprof_expr *expr, kprof_strlist *out)
{
    kprof_expr_operands(expr, out, out);
}

kprof_status kprof_expr_bind(kprof_expr *expr, kprof_expr_place *place, void *user)
{
    if (expr->op == OP_NAME)
        return place(user, expr->name, &expr->slot);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < expr->count && status == KPROF_OK; i++)
        status = kprof_expr_bind(expr->operands[i], place, user);
    return status;
}

/* The source of the values of names: an array, or else a function. */
typedef struct name_source {
    const double *values;
    kprof_expr_lookup *lookup;
    void *user;
} name_source;

static double evaluate(const kprof_expr *expr, const name_source *source);

/* Fold the operands of min, max and sum. One missing operand makes the result missing; fmin and fmax would hide it. */
static double fold(const kprof_expr *expr, const name_source *source)
{
    double result = evaluate(expr->operands[0], source);
    for (size_t i = 1; i < expr->count; i++) {
        double value = evaluate(expr->operands[i], source);
        if (isnan(value) || isnan(result))
            result = NAN;
        else if (expr->op == OP_SUM)
            result += value;
        else if (expr->op == OP_MIN ? value < result : value > result)
            result = value;
    }
    return result;
}

/* One operand may decide alone: "and" when it is false, "or" when it is true. */
static double join(operation op, double left, double right)
{
    const bool decides = op == OP_OR;
    if ((!isnan(left) && (left != 0) == decides) || (!isnan(right) && (right != 0) == decides))
        return decides;
    return isnan(left) || isnan(right) ? NAN : !decides;
}

static double apply(operation op, double left, double right)
{
    if (op == OP_IF_MISSING)
        return isnan(left) ? right : left;
    if ((isnan(left) || isnan(right)) && op != OP_OR && op != OP_AND)
        return NAN;
    switch (op) {
#define VALUE(text, name, level, value)                                                                                \
    case OP_##name:                                                                                                    \
        return value;
        OPERATORS(VALUE)
#undef VALUE
    default:
        return NAN;
    }
}

static double evaluate(const kprof_expr *expr, const name_source *source)
{
    double condition;
    switch (expr->op) {
    case OP_NUMBER:
        return expr->number;
    case OP_NAME:
        return source->values ? source->values[expr->slot] : source->lookup(source->user, expr->name);
    case OP_NEGATE:
        return -evaluate(expr->operands[0], source);
    case OP_NOT:
        condition = evaluate(expr->operands[0], source);
        return isnan(condition) ? NAN : condition == 0;
    case OP_FLOOR:
        return floor(evaluate(expr->operands[0], source));
    case OP_CEIL:
        return ceil(evaluate(expr->operands[0], source));
    case OP_IF:
        condition = evaluate(expr->operands[0], source);
        return isnan(condition) ? NAN : evaluate(expr->operands[condition != 0 ? 1 : 2], source);
    case OP_MIN:
    case OP_MAX:
    case OP_SUM:
        return fold(expr, source);
    default:
        return apply(expr->op, evaluate(expr->operands[0], source), evaluate(expr->operands[1], source));
    }
}

double kprof_expr_evaluate(const kprof_expr *expr, kprof_expr_lookup *lookup, void *user)
{
    return evaluate(expr, &(name_source){NULL, lookup, user});
}

double kprof_expr_compute(const kprof_expr *expr, const double *values)
{
    return evaluate(expr, &(name_source){values, NULL, NULL});
}

void kprof_expr_missing(const kprof_expr *expr, const double *values, kprof_expr_visit_slot *visit, void *user)
{
    if (expr->op == OP_NAME && isnan(values[expr->slot]))
        visit(user, expr->slot);
    const bool has_choice = expr->op == OP_IF_MISSING;
    if (has_choice && !isnan(kprof_expr_compute(expr, values)))
        return;
    for (size_t i = 0; i < (has_choice ? 1 : expr->count); i++)
        kprof_expr_missing(expr->operands[i], values, visit, user);
}
