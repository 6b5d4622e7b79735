/* The tables that CPython keeps the lines of instructions in. They are in Objects/lnotab_notes.txt of 3.9 and 3.10, and
 * in Objects/locations.md of 3.11 and later. */
#include "callstack/python.h"

/* 3.9: pairs of bytes and lines, to the instruction's own. */
static int64_t line_of_pairs(const kprof_python_lines *lines, int32_t offset)
{
    const uint8_t *table = lines->table;
    int64_t line = lines->first_line;
    int64_t at = 0;
    for (size_t i = 0; i + 1 < lines->bytes; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

/* 3.10: pairs of bytes and lines; -128: these bytes have no line. */
static int64_t line_of_ranges(const kprof_python_lines *lines, int32_t offset)
{
    const uint8_t *table = lines->table;
    int64_t line = lines->first_line;
    int64_t end = 0;
    for (size_t i = 0; i + 1 < lines->bytes; i += 2) {
        const int8_t step = (int8_t)table[i + 1];
        end += table[i];
        line += step == -128 ? 0 : step;
        if (offset < end)
            return step == -128 ? 0 : line;
    }
    return 0;
}

/* A number in pieces of six bits whose lowest bit is its sign. */
static int64_t signed_number(const uint8_t *table, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && i < 6; i++) {
        value |= (uint64_t)(table[i] & 63) << (6 * i);
        if (!(table[i] & 64))
            break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11 on: entries that begin with a byte of 128 or more: four bits of kind, three of length in units of two bytes. */
static int64_t line_of_entries(const kprof_python_lines *lines, int32_t offset)
{
    const uint8_t *table = lines->table;
    int64_t line = lines->first_line;
    enum { FIRST_OF_ONE_LINE = 10, WITHOUT_COLUMNS = 13, LONG = 14, NONE = 15 };
    int64_t end = 0;
    for (size_t i = 0; i < lines->bytes;) {
        const int kind = table[i] >> 3 & 15;
        end += 2 * ((table[i] & 7) + 1);
        i++;
        if (kind == LONG || kind == WITHOUT_COLUMNS)
            line += signed_number(table + i, lines->bytes - i);
        else if (kind >= FIRST_OF_ONE_LINE && kind != NONE)
            line += kind - FIRST_OF_ONE_LINE;
        if (offset < end)
            return kind == NONE ? 0 : line;
        while (i < lines->bytes && !(table[i] & 128))
            i++;
    }
    return 0;
}

uint32_t kprof_python_line(const kprof_python_lines *lines, int32_t offset)
{
    if (offset < 0) /* the function has not begun */
        return lines->first_line;
    const int64_t line = lines->minor >= 11   ? line_of_entries(lines, offset)
                         : lines->minor == 10 ? line_of_ranges(lines, offset)
                                              : line_of_pairs(lines, offset);
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
