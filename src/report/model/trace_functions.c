/* Numbers are kept with how often they occur: times come in steps, so that millions have few values. */
#include "report/model/trace_functions.h"

#include "core/bytes.h"
#include "core/regex.h"
#include "report/model/timeline.h"
#include "report/store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kprof_spread_value *place_of(const kprof_spread *of, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t i = kprof_hash_number(bits) & (of->capacity - 1);
    while (of->items[i].count > 0 && of->items[i].value != value)
        i = (i + 1) & (of->capacity - 1);
    return &of->items[i];
}

static void grow(kprof_spread *of)
{
    const kprof_spread old = *of;
    of->capacity = old.capacity ? 2 * old.capacity : 64;
    of->items = kprof_calloc(of->capacity, sizeof *of->items);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.items[i].count > 0)
            *place_of(of, old.items[i].value) = old.items[i];
    free(old.items);
}

void kprof_spread_add(kprof_spread *of, double value, uint64_t count)
{
    value += 0.0; /* so that 0 and -0 are one */
    if (isnan(value))
        return;
    if (2 * of->distinct >= of->capacity)
        grow(of);
    kprof_spread_value *place = place_of(of, value);
    of->distinct += place->count == 0;
    place->value = value;
    place->count += count;
    of->count += count;
}

void kprof_spread_free(kprof_spread *of)
{
    free(of->items);
    *of = (kprof_spread){0};
}

static int compare(const void *a, const void *b)
{
    const kprof_spread_value *x = a, *y = b;
    if ((x->count > 0) != (y->count > 0)) /* places without a number come last */
        return x->count > 0 ? -1 : 1;
    return KPROF_COMPARE(x->value, y->value);
}

/* The number of this rank, of sorted ones. */
static double ranked(const kprof_spread *of, uint64_t rank)
{
    size_t i = 0;
    for (uint64_t before = of->items[0].count; before <= rank; before += of->items[i].count)
        i++;
    return of->items[i].value;
}

double kprof_spread_median(kprof_spread *of)
{
    if (of->count == 0)
        return NAN;
    qsort(of->items, of->capacity, sizeof *of->items, compare);
    return ranked(of, (of->count - 1) / 2) / 2 + ranked(of, of->count / 2) / 2;
}

static bool is_number(sqlite3_value *value)
{
    const int type = sqlite3_value_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void add_number(sqlite3_context *context, int count, sqlite3_value **values)
{
    kprof_spread *of = sqlite3_aggregate_context(context, sizeof *of);
    (void)count;
    if (of && is_number(values[0]))
        kprof_spread_add(of, sqlite3_value_double(values[0]), 1);
}

static void finish_median(sqlite3_context *context)
{
    kprof_spread *of = sqlite3_aggregate_context(context, 0);
    if (of && of->count > 0)
        sqlite3_result_double(context, kprof_spread_median(of));
    if (of)
        kprof_spread_free(of);
}

/* Welford's sums: the mean of the numbers so far, and the sum of the squares of what they are away from it. */
typedef struct deviation {
    double count, mean, squares;
} deviation;

static void add_deviation(sqlite3_context *context, int count, sqlite3_value **values)
{
    deviation *of = sqlite3_aggregate_context(context, sizeof *of);
    (void)count;
    if (!of || !is_number(values[0]))
        return;
    const double value = sqlite3_value_double(values[0]), away = value - of->mean;
    of->count++;
    of->mean += away / of->count;
    of->squares += away * (value - of->mean);
}

/* That of a single number is 0. */
static void finish_deviation(sqlite3_context *context)
{
    const deviation *of = sqlite3_aggregate_context(context, 0);
    if (of && of->count > 0)
        sqlite3_result_double(context, of->count > 1 ? sqrt(of->squares / (of->count - 1)) : 0);
}

#define LINE_PARTS 40

/* How much of a value each part of a time has. */
typedef struct line {
    double values[LINE_PARTS], times[LINE_PARTS]; /* of value times time */
} line;

/* The time from `first` on. */
static double time_since(sqlite3_value *time, sqlite3_value *first)
{
    return (double)(int64_t)((uint64_t)sqlite3_value_int64(time) - (uint64_t)sqlite3_value_int64(first));
}

/* kprof_line(start, end, value, first, last): the part of a sample in each part of the time from first to last. */
static void add_sample(sqlite3_context *context, int count, sqlite3_value **values)
{
    line *of = sqlite3_aggregate_context(context, sizeof *of);
    const double start = time_since(values[0], values[3]), end = time_since(values[1], values[3]),
                 value = sqlite3_value_double(values[2]), part = time_since(values[4], values[3]) / LINE_PARTS;
    (void)count;
    if (!of || sqlite3_value_type(values[2]) == SQLITE_NULL || !(part > 0) || start < 0)
        return;
    for (double i = floor(fmin(start / part, LINE_PARTS)); i < LINE_PARTS && i * part < end; i++) {
        const double shared = fmin(end, (i + 1) * part) - fmax(start, i * part);
        of->values[(size_t)i] += shared > 0 ? value * shared : 0;
        of->times[(size_t)i] += shared > 0 ? shared : 0;
    }
}

/* From 0 to the greatest part. */
static void draw_line(sqlite3_context *context)
{
    const line *of = sqlite3_aggregate_context(context, 0);
    char text[LINE_PARTS + 3];
    double most = 0;
    if (!of)
        return;
    for (size_t i = 0; i < LINE_PARTS; i++)
        most = of->times[i] > 0 ? fmax(most, of->values[i] / of->times[i]) : most;
    for (size_t i = 0; i < LINE_PARTS; i++) {
        const double share = most > 0 ? of->values[i] / of->times[i] / most : 0;
        text[1 + i] = kprof_timeline_shade(of->times[i] > 0 ? share : NAN);
    }
    text[0] = text[LINE_PARTS + 1] = '|';
    text[LINE_PARTS + 2] = '\0';
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void quote(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *text = (const char *)sqlite3_value_text(values[0]);
    kprof_strbuf out = KPROF_STRBUF_INIT;
    (void)count;
    if (text)
        kprof_regex_quote(text, strlen(text), &out);
    char *quoted = kprof_strbuf_take(&out);
    if (quoted)
        sqlite3_result_text(context, quoted, -1, free);
    else
        sqlite3_result_error_nomem(context);
}

/* Return the application of a command line of kprof: what follows the first "--". NULL: there is none. */
static void find_application(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *text = (const char *)sqlite3_value_text(values[0]);
    bool is_quoted = false;
    (void)count;
    for (; text && *text; text++) {
        if (*text == '\\' && !is_quoted && text[1])
            text++;
        else if (*text == '\'')
            is_quoted = !is_quoted;
        else if (!is_quoted && strncmp(text, " -- ", 4) == 0) {
            sqlite3_result_text(context, text + 4, -1, SQLITE_TRANSIENT);
            return;
        }
    }
}

void kprof_trace_add_functions(kprof_report *report)
{
    enum { OPTIONS = SQLITE_UTF8 | SQLITE_DETERMINISTIC };
    int rc = sqlite3_create_function(report->db, "kprof_median", 1, OPTIONS, NULL, NULL, add_number, finish_median);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(report->db, "kprof_deviation", 1, OPTIONS, NULL, NULL, add_deviation,
                                     finish_deviation);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(report->db, "kprof_line", 5, OPTIONS, NULL, NULL, add_sample, draw_line);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(report->db, "kprof_quote", 1, OPTIONS, NULL, quote, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(report->db, "kprof_application", 1, OPTIONS, NULL, find_application, NULL, NULL);
    if (rc != SQLITE_OK)
        kprof_store_note(report, kprof_store_fail(report, "adding functions"));
}
