/* Tells by the texts of instructions what these do: finds the one that a warp waits at where the hardware counts the
 * wait of a later one, and makes numbers that were not counted, of texts and of other counters. */
#include "report/model/code.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* An H200 samples a warp that waits at one of these instructions at one behind it: at the first branch behind BAR, up
 * to three instructions behind MEMBAR, and at the next one behind NANOSLEEP and EXIT. */
static const struct {
    const char *reason, *opcode;
} causes[] = {{"barrier", "BAR"}, {"drain", "EXIT"}, {"membar", "MEMBAR"}, {"sleeping", "NANOSLEEP"}};
enum { FARTHEST = 16 }; /* instructions, so that code without branches costs no more */

/* Control may have come to what follows these from elsewhere. */
static const char *const jumps[] = {"BRA", "BREAK", "BRX", "BRXU", "CALL", "EXIT", "JMP", "JMX", "JMXU", "KILL", "RET"};

const char *kprof_stall_cause_opcode(const char *reason, size_t length)
{
    const size_t at = KPROF_FIND(i, COUNT_OF(causes),
                                 strlen(causes[i].reason) == length && memcmp(causes[i].reason, reason, length) == 0);
    return at < COUNT_OF(causes) ? causes[at].opcode : NULL;
}

/* The text of an instruction without its predicate: "@!P0 BRA 0x10", or "@P0  BRA 0x10" of newer disassemblers. */
static const char *skip_predicate(const char *text)
{
    text += *text == '@' ? strcspn(text, " ") : 0;
    return text + strspn(text, " ");
}

static bool has_opcode(const char *text, const char *opcode)
{
    const size_t length = strlen(opcode);
    return strncmp(text, opcode, length) == 0 && strchr(". ;", text[length]);
}

static bool has_any(const char *text, const char *const *opcodes, size_t count)
{
    return KPROF_ANY(i, count, has_opcode(text, opcodes[i]));
}

bool kprof_instruction_multiplies(const char *text)
{
    static const char *const opcodes[] = {"HGMMA", "IGMMA", "QGMMA", "BGMMA"};
    return has_any(skip_predicate(text), opcodes, COUNT_OF(opcodes));
}

static bool is_jump(const char *text)
{
    return has_any(skip_predicate(text), jumps, COUNT_OF(jumps));
}

size_t kprof_stall_cause(const kprof_profiled_code *code, const char *opcode, size_t instruction)
{
    const size_t first = code->functions[code->instructions[instruction].function].first;
    for (size_t i = 0; i <= FARTHEST && instruction - first >= i; i++) {
        const char *text = code->instructions[instruction - i].text;
        if (!text)
            break;
        text = skip_predicate(text);
        if (has_opcode(text, opcode) && strncmp(text, "BAR.ARV", sizeof "BAR.ARV" - 1) != 0)
            return instruction - i;
        if (i > 0 && is_jump(text))
            break;
    }
    return instruction;
}

enum { WARP = 32 }; /* threads */

/* Columns that a number is made of, and the way. */
typedef struct made_number {
    kprof_code_counter is, needs[3]; /* `needs` ends with KPROF_COUNTER_NONE, or is full */
    bool needs_text;
    double (*make)(const kprof_profiled_code *code, size_t instruction);
} made_number;

/* The value of an instruction in the column of a counter. */
#define VALUE(which) kprof_profiled_values(code, instruction)[code->counters[KPROF_COUNTER_##which]]

static double count_singles(const kprof_profiled_code *code, size_t instruction)
{
    static const char *const opcodes[] = {"FADD", "FFMA", "FMUL"};
    const char *text = or_empty(code->instructions[instruction].text);
    const bool is_single = has_any(skip_predicate(text), opcodes, COUNT_OF(opcodes));
    return is_single ? VALUE(THREADS_ON) : 0;
}

static double count_doubles(const kprof_profiled_code *code, size_t instruction)
{
    static const char *const opcodes[] = {"DADD", "DFMA", "DMMA", "DMNMX", "DMUL", "DSETP"};
    const char *text = or_empty(code->instructions[instruction].text);
    const bool is_double = has_any(skip_predicate(text), opcodes, COUNT_OF(opcodes));
    return is_double ? VALUE(THREADS_ON) : 0;
}

/* From double precision to another, or to it. */
static double count_converted(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = skip_predicate(or_empty(code->instructions[instruction].text));
    const char *types = has_opcode(text, "F2F") ? strstr(text, ".F64") : NULL;
    const bool converts = types && types < text + strcspn(text, " ;");
    return converts ? VALUE(THREADS_ON) : 0;
}

/* CUPTI counts atomics on shared memory as well. Those have no cache lines. */
static double count_atomic_tags(const kprof_profiled_code *code, size_t instruction)
{
    const double atomics = VALUE(ATOM) + VALUE(RED);
    return atomics > 0 ? VALUE(TAGS) : 0;
}

/* RED.E.MIN.64: atomics that often change nothing. */
static double count_atomic_extremes(const kprof_profiled_code *code, size_t instruction)
{
    static const char *const modifiers[] = {".MIN", ".MAX", ".AND", ".OR"};
    const char *text = skip_predicate(or_empty(code->instructions[instruction].text));
    const char *end = text + strcspn(text, " ;");
    bool is_extreme = false;
    for (size_t i = 0; i < COUNT_OF(modifiers); i++) {
        const char *at = strstr(text, modifiers[i]);
        is_extreme |= at && at < end;
    }
    return is_extreme ? count_atomic_tags(code, instruction) : 0;
}

static double count_atomic_samples(const kprof_profiled_code *code, size_t instruction)
{
    const size_t awaited = kprof_profiled_awaited(code, instruction);
    const bool is_atomic = count_atomic_tags(code, awaited == SIZE_MAX ? instruction : awaited) > 0;
    const double samples = kprof_profiled_number(code, kprof_profiled_values(code, instruction), KPROF_NUMBER_SAMPLES);
    return is_atomic || isnan(samples) ? samples : 0; /* NaN: none were taken */
}

static double count_atomic_conflicts(const kprof_profiled_code *code, size_t instruction)
{
    const double conflicts = VALUE(WAVEFRONTS) - VALUE(WAVEFRONTS_IDEAL);
    return conflicts > 0 && VALUE(ATOM) > 0 ? conflicts : 0;
}

static double count_idle(const kprof_profiled_code *code, size_t instruction)
{
    const double idle = WARP * VALUE(INSTRUCTIONS) - VALUE(THREADS);
    return idle > 0 ? idle : 0;
}

/* The predicate of a jump is no work that is left out. */
static double count_off(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = code->instructions[instruction].text;
    const double off = VALUE(THREADS) - VALUE(THREADS_ON);
    return off > 0 && !(text && is_jump(text)) ? off : 0;
}

/* LDC R2, c[0x3][R0+0x8]: the index is in a register of each thread, and not in a uniform one (UR) or none (RZ). */
static double count_constants(const kprof_profiled_code *code, size_t instruction)
{
    const char *text = skip_predicate(or_empty(code->instructions[instruction].text));
    const char *index = has_opcode(text, "LDC") ? strstr(text, "][R") : NULL;
    const bool is_indexed = index && isdigit((unsigned char)index[strlen("][R")]);
    return is_indexed ? VALUE(INSTRUCTIONS) : 0;
}

#define OF(name) KPROF_COUNTER_##name
static const made_number made[] = {
    {OF(FP64), {OF(THREADS_ON), OF(NONE)}, true, count_doubles},
    {OF(FP64_CONVERTED), {OF(THREADS_ON), OF(NONE)}, true, count_converted},
    {OF(FP32), {OF(THREADS_ON), OF(NONE)}, true, count_singles},
    {OF(ATOMIC_SAMPLES), {OF(ATOM), OF(RED), OF(TAGS)}, false, count_atomic_samples},
    {OF(ATOMIC_TAGS), {OF(ATOM), OF(RED), OF(TAGS)}, false, count_atomic_tags},
    {OF(ATOMIC_EXTREMES), {OF(ATOM), OF(RED), OF(TAGS)}, true, count_atomic_extremes},
    {OF(ATOMIC_CONFLICTS), {OF(ATOM), OF(WAVEFRONTS), OF(WAVEFRONTS_IDEAL)}, false, count_atomic_conflicts},
    {OF(PREDICATED_OFF), {OF(THREADS), OF(THREADS_ON), OF(NONE)}, false, count_off},
    {OF(CONSTANTS), {OF(INSTRUCTIONS), OF(NONE)}, true, count_constants},
    {OF(IDLE), {OF(INSTRUCTIONS), OF(THREADS), OF(NONE)}, false, count_idle},
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
