/* Makes numbers of instructions that were not counted, of their other counters and of their texts. */
#include "report/model/code.h"

enum { WARP = 32 }; /* threads */

/* Columns that a number is made of, and the way. */
typedef struct made_number {
    kprof_code_counter is, needs[3]; /* `needs` ends with KPROF_COUNTER_NONE, or is full */
    bool needs_text;
    double (*make)(const kprof_profiled_code *code, size_t instruction);
} made_number;

static double count_of(const kprof_profiled_code *code, size_t instruction, kprof_code_counter which)
{
    return kprof_profiled_values(code, instruction)[code->counters[which]];
}

static double count_doubles(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = code->instructions[instruction].text;
    return text && kprof_instruction_is_double(text) ? count_of(code, instruction, KPROF_COUNTER_THREADS_ON) : 0;
}

static double count_converted(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = code->instructions[instruction].text;
    return text && kprof_instruction_converts_double(text) ? count_of(code, instruction, KPROF_COUNTER_THREADS_ON) : 0;
}

/* CUPTI counts atomics on shared memory as well. Those have no cache lines. */
static double count_atomic_tags(const kprof_profiled_code *code, size_t instruction)
{
    const double atomics =
        count_of(code, instruction, KPROF_COUNTER_ATOM) + count_of(code, instruction, KPROF_COUNTER_RED);
    return atomics > 0 ? count_of(code, instruction, KPROF_COUNTER_TAGS) : 0;
}

static double count_atomic_conflicts(const kprof_profiled_code *code, size_t instruction)
{
    const double conflicts = count_of(code, instruction, KPROF_COUNTER_WAVEFRONTS) -
                             count_of(code, instruction, KPROF_COUNTER_WAVEFRONTS_IDEAL);
    return conflicts > 0 && count_of(code, instruction, KPROF_COUNTER_ATOM) > 0 ? conflicts : 0;
}

static double count_idle(const kprof_profiled_code *code, size_t instruction)
{
    const double idle = WARP * count_of(code, instruction, KPROF_COUNTER_INSTRUCTIONS) -
                        count_of(code, instruction, KPROF_COUNTER_THREADS);
    return idle > 0 ? idle : 0;
}

/* The predicate of a jump is no work that is left out. */
static double count_off(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = code->instructions[instruction].text;
    const double off =
        count_of(code, instruction, KPROF_COUNTER_THREADS) - count_of(code, instruction, KPROF_COUNTER_THREADS_ON);
    return off > 0 && !(text && kprof_instruction_is_jump(text)) ? off : 0;
}

static const made_number made[] = {
    {KPROF_COUNTER_FP64, {KPROF_COUNTER_THREADS_ON, KPROF_COUNTER_NONE}, true, count_doubles},
    {KPROF_COUNTER_FP64_CONVERTED, {KPROF_COUNTER_THREADS_ON, KPROF_COUNTER_NONE}, true, count_converted},
    {KPROF_COUNTER_ATOMIC_TAGS, {KPROF_COUNTER_ATOM, KPROF_COUNTER_RED, KPROF_COUNTER_TAGS}, false, count_atomic_tags},
    {KPROF_COUNTER_ATOMIC_CONFLICTS,
     {KPROF_COUNTER_ATOM, KPROF_COUNTER_WAVEFRONTS, KPROF_COUNTER_WAVEFRONTS_IDEAL},
     false,
     count_atomic_conflicts},
    {KPROF_COUNTER_PREDICATED_OFF,
     {KPROF_COUNTER_THREADS, KPROF_COUNTER_THREADS_ON, KPROF_COUNTER_NONE},
     false,
     count_off},
    {KPROF_COUNTER_IDLE, {KPROF_COUNTER_INSTRUCTIONS, KPROF_COUNTER_THREADS, KPROF_COUNTER_NONE}, false, count_idle},
};

static bool can_make(const kprof_profiled_code *code, const made_number *number)
{
    return code->counters[number->is] == SIZE_MAX && (!number->needs_text || kprof_profiled_has_text(code)) &&
           KPROF_ALL(i, COUNT_OF(number->needs),
                     number->needs[i] == KPROF_COUNTER_NONE || code->counters[number->needs[i]] != SIZE_MAX);
}

void kprof_profiled_add_made(kprof_profiled_code *code)
{
    for (size_t i = 0; i < COUNT_OF(made); i++)
        if (can_make(code, &made[i]))
            code->counters[made[i].is] = code->column_count++;
}

void kprof_profiled_make(kprof_profiled_code *code)
{
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        const size_t column = code->counters[made[i].is];
        for (size_t k = 0; k < code->instruction_count && column != SIZE_MAX && column >= code->metric_count; k++)
            code->totals[column] += code->values[k * code->column_count + column] = made[i].make(code, k);
    }
}
