/* Rows of values for instructions: one block of memory, which each reading uses again. */
#include "cupti/instructions.h"

#include <stdlib.h>
#include <string.h>

bool kprof_instruction_rows_begin(kprof_instruction_rows *rows, size_t count, size_t names)
{
    rows->count = 0;
    if (count <= rows->capacity && names == rows->names)
        return true;
    kprof_instruction_rows_free(rows);
    rows->items = calloc(count + 1, sizeof *rows->items);
    rows->values = calloc((count + 1) * (names + 1), sizeof *rows->values);
    rows->capacity = rows->items && rows->values ? count : 0;
    rows->names = names;
    return rows->items && rows->values;
}

double *kprof_instruction_rows_next(kprof_instruction_rows *rows)
{
    double *values = rows->values + rows->count * rows->names;
    memset(values, 0, rows->names * sizeof *values);
    return values;
}

void kprof_instruction_rows_keep(kprof_instruction_rows *rows, uint64_t crc, const char *function, uint64_t offset)
{
    const double *values = rows->values + rows->count * rows->names;
    if (KPROF_ANY(i, rows->names, values[i] != 0))
        rows->items[rows->count++] =
            (kprof_instruction){.crc = crc, .function = function ? function : "", .offset = offset, .values = values};
}

void kprof_instruction_rows_free(kprof_instruction_rows *rows)
{
    KPROF_FREE(rows->items, rows->values);
    *rows = (kprof_instruction_rows){0};
}
