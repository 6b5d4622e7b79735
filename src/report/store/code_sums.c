/* Keeps the rows of each function in a profile in the order of offsets, so that further launches are merged into them.
 */
#include "report/store/code_sums.h"

#include <stdlib.h>
#include <string.h>

#define MOST_VALUES ((size_t)8 << 20) /* that are kept: 64 MB */
#define AT_ONCE     8                 /* values that a statement stores: half the time of as many statements */

struct kprof_code_sums {
    kprof_names known;        /* indexes of items, by profile, function and metrics */
    kprof_code_values *items; /* own their metrics and values; [count] */
    size_t count, value_count;
};

/* Values on their way into the table, in the order of the statement: offset, metric and value of each. */
typedef struct waiting {
    struct {
        int64_t offset, metric;
        double value;
    } items[AT_ONCE];
    size_t count;
} waiting;

static void store_waiting(kprof_report *report, const kprof_code_values *of, waiting *from)
{
    const size_t step = from->count == AT_ONCE ? AT_ONCE : 1;
    sqlite3_stmt *insert =
        kprof_store_statement(report, step > 1 ? KPROF_SQL_ADD_INSTRUCTION_VALUES : KPROF_SQL_ADD_INSTRUCTION_VALUE);
    sqlite3_bind_int64(insert, 1, of->profile);
    sqlite3_bind_int64(insert, 2, of->function);
    for (size_t i = 0; i < from->count; i++) {
        const int at = 3 + 3 * (int)(i % step);
        sqlite3_bind_int64(insert, at, from->items[i].offset);
        sqlite3_bind_int64(insert, at + 1, from->items[i].metric);
        sqlite3_bind_double(insert, at + 2, from->items[i].value);
        if ((i + 1) % step == 0)
            kprof_store_step(report, insert);
    }
    from->count = 0;
}

static void store_rows(kprof_report *report, const kprof_code_values *from)
{
    waiting waits = {.count = 0};
    const double *row = from->values;
    for (size_t i = 0; i < from->rows; i++, row += 1 + from->count) {
        for (size_t k = 0; k < from->count; k++) {
            if (row[1 + k] == 0 || from->metrics[k] == 0)
                continue;
            waits.items[waits.count].offset = (int64_t)row[0];
            waits.items[waits.count].metric = from->metrics[k];
            waits.items[waits.count++].value = row[1 + k];
            if (waits.count == AT_ONCE)
                store_waiting(report, from, &waits);
        }
    }
    store_waiting(report, from, &waits);
}

static bool rises(const kprof_code_values *of)
{
    const size_t columns = 1 + of->count;
    return KPROF_ALL(i, of->rows, i == 0 || of->values[i * columns] > of->values[(i - 1) * columns]);
}

/* The sums that values belong to; new ones have no rows yet. */
static kprof_code_values *find(struct kprof_code_sums *sums, const kprof_code_values *of)
{
    char key[96];
    const int64_t first = of->count > 0 ? of->metrics[0] : 0; /* tells counters and samples apart */
    snprintf(key, sizeof key, "%ld %ld %ld", of->profile, of->function, first);
    const size_t known = kprof_names_find(&sums->known, key);
    if (known != KPROF_NAMES_NONE)
        return &sums->items[known];
    kprof_names_keep(&sums->known, key, sums->count);
    kprof_code_values *added = KPROF_ADD(sums->items, sums->count);
    *added = (kprof_code_values){.profile = of->profile, .function = of->function, .count = of->count};
    int64_t *metrics = kprof_calloc(of->count + 1, sizeof *metrics);
    memcpy(metrics, of->metrics, of->count * sizeof *metrics);
    added->metrics = metrics;
    return added;
}

/* Merge two lists of rows that rise, into a new one. */
static void merge(kprof_code_values *into, const kprof_code_values *from)
{
    const size_t columns = 1 + into->count;
    double *merged = kprof_calloc((into->rows + from->rows) * columns + 1, sizeof *merged), *to = merged;
    size_t i = 0, k = 0;
    for (; i < into->rows || k < from->rows; to += columns) {
        const double *a = into->values + i * columns, *b = from->values + k * columns;
        const bool takes_a = k == from->rows || (i < into->rows && a[0] <= b[0]);
        const bool takes_b = i == into->rows || (k < from->rows && b[0] <= a[0]);
        memcpy(to, takes_a ? a : b, columns * sizeof *to);
        for (size_t c = 1; takes_a && takes_b && c < columns; c++)
            to[c] += b[c];
        i += takes_a;
        k += takes_b;
    }
    free((void *)into->values);
    into->values = merged;
    into->rows = (size_t)(to - merged) / columns;
}

void kprof_code_sums_begin(kprof_report *report)
{
    report->sums = report->sums ? report->sums : kprof_calloc(1, sizeof *report->sums);
}

void kprof_code_sums_add(kprof_report *report, const kprof_code_values *values)
{
    struct kprof_code_sums *sums = report->sums;
    kprof_code_values *own = sums && rises(values) ? find(sums, values) : NULL;
    const bool fits = own && own->count == values->count &&
                      memcmp(own->metrics, values->metrics, own->count * sizeof *own->metrics) == 0;
    if (!fits) {
        store_rows(report, values);
        return;
    }
    const size_t before = own->rows;
    merge(own, values);
    sums->value_count += (own->rows - before) * (1 + own->count);
    if (sums->value_count > MOST_VALUES) {
        kprof_code_sums_store(report);
        kprof_code_sums_begin(report);
    }
}

void kprof_code_sums_store(kprof_report *report)
{
    for (size_t i = 0; report->sums && i < report->sums->count; i++)
        store_rows(report, &report->sums->items[i]);
    kprof_code_sums_drop(report);
}

void kprof_code_sums_drop(kprof_report *report)
{
    struct kprof_code_sums *sums = report->sums;
    if (!sums)
        return;
    for (size_t i = 0; i < sums->count; i++)
        KPROF_FREE((void *)sums->items[i].metrics, (void *)sums->items[i].values);
    kprof_names_free(&sums->known);
    KPROF_FREE(sums->items, sums);
    report->sums = NULL;
}
