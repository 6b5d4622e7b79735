/* Tells by the texts of instructions what these do, and finds the one that a warp waits at where the hardware counts
 * the wait of a later one. */
#include "report/model/code.h"

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

bool kprof_instruction_is_double(const char *text)
{
    static const char *const opcodes[] = {"DADD", "DFMA", "DMMA", "DMNMX", "DMUL", "DSETP"};
    return has_any(skip_predicate(text), opcodes, COUNT_OF(opcodes));
}

bool kprof_instruction_converts_double(const char *text)
{
    static const char *const opcodes[] = {"F2F"};
    text = skip_predicate(text);
    const char *types = has_any(text, opcodes, 1) ? strstr(text, ".F64") : NULL;
    return types && types < text + strcspn(text, " ;");
}

bool kprof_instruction_multiplies(const char *text)
{
    static const char *const opcodes[] = {"HGMMA", "IGMMA", "QGMMA", "BGMMA"};
    return has_any(skip_predicate(text), opcodes, COUNT_OF(opcodes));
}

bool kprof_instruction_is_jump(const char *text)
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
        if (i > 0 && kprof_instruction_is_jump(text))
            break;
    }
    return instruction;
}
