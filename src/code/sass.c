/* Reads the texts of instructions. An opcode is a name with modifiers, "LDG.E.64"; of most instructions the first
 * register gets the result. A set of registers may have too many, since nothing says how many an operand is of. */
#include "code/sass.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { UNIFORM = 256, PREDICATES = 384, UNIFORM_PREDICATES = 392, MOST_REGISTERS = 128 };

/* A part of a text. */
typedef struct span {
    const char *text;
    size_t length;
} span;

static bool span_is(span s, const char *word)
{
    return !strncmp(word, s.text, s.length) && word[s.length] == '\0';
}

static bool span_begins(span s, const char *word)
{
    return strlen(word) <= s.length && !memcmp(s.text, word, strlen(word));
}

static bool span_ends(span s, const char *word)
{
    const size_t length = strlen(word);
    return length <= s.length && !memcmp(s.text + s.length - length, word, length);
}

/* An instruction: its condition, opcode and operands. */
typedef struct parts {
    span condition; /* without the "@"; empty where there is none */
    span name;      /* "LDG" */
    span modifiers; /* ".E.64" */
    const char *operands;
} parts;

static span take_word(const char **at)
{
    *at += strspn(*at, " \t");
    span word = {*at, strcspn(*at, " \t;")};
    *at += word.length;
    return word;
}

static parts split(const char *text)
{
    parts p = {{text, 0}, {text, 0}, {text, 0}, text};
    span word = take_word(&text);
    if (word.length > 0 && word.text[0] == '@') {
        p.condition = (span){word.text + 1, word.length - 1};
        word = take_word(&text);
    }
    const char *dot = memchr(word.text, '.', word.length);
    p.name = (span){word.text, dot ? (size_t)(dot - word.text) : word.length};
    p.modifiers = (span){word.text + p.name.length, word.length - p.name.length};
    p.operands = text;
    return p;
}

/* The next modifier of "`.E.64`", without the dot; false after the last one. */
static bool next_modifier(span *rest, span *modifier)
{
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->text + 1, '.', rest->length - 1);
    size_t length = end ? (size_t)(end - rest->text) : rest->length;
    *modifier = (span){rest->text + 1, length - 1};
    *rest = (span){rest->text + length, rest->length - length};
    return true;
}

static bool has_modifier(const parts *p, const char *word)
{
    span rest = p->modifiers, modifier;
    while (next_modifier(&rest, &modifier))
        if (span_is(modifier, word))
            return true;
    return false;
}

static bool is_one_of(span word, const char *const *words)
{
    while (*words && !span_is(word, *words))
        words++;
    return *words;
}

/* The bits that modifiers give an operand; 32 where they say nothing. */
static uint32_t operand_bits(const parts *p)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } widths[] = {{"U8", 8},  {"S8", 8},   {"U16", 16}, {"S16", 16}, {"F16", 16},  {"BF16", 16},
                  {"64", 64}, {"U64", 64}, {"S64", 64}, {"F64", 64}, {"128", 128}, {"256", 256}};
    span rest = p->modifiers, modifier;
    while (next_modifier(&rest, &modifier))
        for (size_t i = 0; i < COUNT_OF(widths); i++)
            if (span_is(modifier, widths[i].name))
                return widths[i].bits;
    return 32;
}

/* LDSM.16.M88.4: a thread has a part of four matrices. */
static uint32_t matrix_bits(const parts *p)
{
    return has_modifier(p, "4") ? 128 : has_modifier(p, "2") ? 64 : 32;
}

kprof_code_access kprof_sass_access(const char *text)
{
    static const struct {
        const char *name, *space, *operation;
    } opcodes[] = {{"LDG", "Global", "Load"},        {"STG", "Global", "Store"},     {"LDGSTS", "Global", "Load"},
                   {"ATOMG", "Global", "Atomic"},    {"RED", "Global", "Reduction"}, {"REDG", "Global", "Reduction"},
                   {"LDS", "Shared", "Load"},        {"STS", "Shared", "Store"},     {"LDSM", "Shared", "Load"},
                   {"STSM", "Shared", "Store"},      {"ATOMS", "Shared", "Atomic"},  {"REDS", "Shared", "Reduction"},
                   {"LDL", "Local", "Load"},         {"STL", "Local", "Store"},      {"LD", "Generic", "Load"},
                   {"ST", "Generic", "Store"},       {"ATOM", "Generic", "Atomic"},  {"TEX", "Texture", "Load"},
                   {"TLD", "Texture", "Load"},       {"TLD4", "Texture", "Load"},    {"TXD", "Texture", "Load"},
                   {"SULD", "Surface", "Load"},      {"SUST", "Surface", "Store"},   {"SUATOM", "Surface", "Atomic"},
                   {"SURED", "Surface", "Reduction"}};
    parts p = split(text);
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        if (!span_is(p.name, opcodes[i].name))
            continue;
        kprof_code_access access = {opcodes[i].space, opcodes[i].operation, operand_bits(&p)};
        if (span_is(p.name, "LDSM") || span_is(p.name, "STSM"))
            access.bits = matrix_bits(&p);
        else if (!strcmp(access.space, "Texture") || !strcmp(access.space, "Surface"))
            access.bits = 0;
        return access;
    }
    return (kprof_code_access){0};
}

static void add(kprof_sass_registers *set, size_t first, size_t count, size_t end)
{
    for (size_t i = first; i < first + count && i < end; i++)
        set->words[i / 64] |= UINT64_C(1) << i % 64;
}

bool kprof_sass_overlap(const kprof_sass_registers *a, const kprof_sass_registers *b)
{
    return KPROF_ANY(i, COUNT_OF(a->words), a->words[i] & b->words[i]);
}

/* The results of HGMMA.64x128x16.F32: of 64 rows of 128 numbers each of 128 threads has half as many as a row. */
static size_t group_matrix_registers(const parts *p)
{
    span rest = p->modifiers, modifier;
    while (next_modifier(&rest, &modifier)) {
        const char *by = memchr(modifier.text, 'x', modifier.length);
        unsigned long columns = by ? strtoul(by + 1, NULL, 10) : 0;
        if (columns > 0)
            return columns / 2 < MOST_REGISTERS ? columns / 2 : MOST_REGISTERS;
    }
    return MOST_REGISTERS;
}

/* LDTM.16dp256bit.x4: four times what each thread has of a row of 256 bits. */
static size_t tensor_memory_registers(const parts *p)
{
    size_t times = 1, each = has_modifier(p, "16dp256bit") ? 4 : has_modifier(p, "16dp128bit") ? 2 : 1;
    span rest = p->modifiers, modifier;
    while (next_modifier(&rest, &modifier)) {
        const unsigned long number =
            modifier.length > 1 && modifier.text[0] == 'x' ? strtoul(modifier.text + 1, NULL, 10) : 0;
        times = number > 0 && number <= MOST_REGISTERS ? number : times;
    }
    return times * each < MOST_REGISTERS ? times * each : MOST_REGISTERS;
}

/* The most registers that an operand of these has. */
static size_t operand_registers(const parts *p)
{
    static const char *const fours[] = {"HMMA", "IMMA", "BMMA", "QMMA", "OMMA", "DMMA", "TEX",
                                        "TLD",  "TLD4", "TXD",  "SULD", "SUST", NULL};
    static const char *const groups[] = {"HGMMA", "IGMMA", "QGMMA", "BGMMA", NULL};
    if (is_one_of(p->name, groups))
        return group_matrix_registers(p);
    if (is_one_of(p->name, fours))
        return 4;
    if (span_is(p->name, "LDSM") || span_is(p->name, "STSM"))
        return matrix_bits(p) / 32;
    if (span_is(p->name, "LDTM") || span_is(p->name, "STTM"))
        return tensor_memory_registers(p);
    if (span_begins(p->name, "UTC") && span_ends(p->name, "MMA")) /* a bit for each row of the result */
        return has_modifier(p, "2CTA") ? 8 : 4;
    bool is_double = p->name.length > 1 && p->name.text[0] == 'D' && !span_is(p->name, "DEPBAR");
    if (is_double || has_modifier(p, "WIDE") || (span_is(p->name, "CS2R") && !has_modifier(p, "32")))
        return 2;
    uint32_t bits = operand_bits(p);
    return bits > 128 ? 4 : bits > 32 ? bits / 32 : 1;
}

/* Add the register that a text begins with, "UR4" or "R2.64", of which `count` follow each other. Returns the length of
 * its name; 0 where it is none. */
static size_t add_register(const char *text, size_t count, kprof_sass_registers *set)
{
    size_t letters = text[0] == 'U' ? 2 : 1;
    char kind = text[letters - 1];
    if ((kind != 'R' && kind != 'P') || !isdigit((unsigned char)text[letters]))
        return 0;
    char *end;
    unsigned long number = strtoul(text + letters, &end, 10);
    if (!strncmp(end, ".64", 3) && count < 2)
        count = 2;
    else if (!strncmp(end, ".U32", 4))
        count = 1;
    bool is_uniform = letters == 2;
    if (kind == 'R' && number < 256)
        add(set, number + (is_uniform ? UNIFORM : 0), count, is_uniform ? PREDICATES : UNIFORM);
    else if (kind == 'P' && number < 8)
        add(set, number + (is_uniform ? UNIFORM_PREDICATES : PREDICATES), 1, UNIFORM_PREDICATES + 8);
    return (size_t)(end - text);
}

/* Return how many of the registers in brackets that follow `before` belong to one operand, as ptxas of sm_90 fills
 * them: a descriptor has 64 bits, and those of both matrices of HGMMA stand together. Bulk copies find in the first
 * brackets where to put the data, the barrier, and up to five coordinates. Other addresses of global memory have 64
 * bits, also where older code does not say so. */
static size_t bracket_registers(const parts *p, span before, bool are_first)
{
    enum { BULK_TARGET = 8 };
    const bool is_bulk = span_begins(p->name, "UTMA") || span_begins(p->name, "UBLK");
    if (span_ends(before, "gdesc"))
        return memmem(p->name.text, p->name.length, "GMMA", 4) ? 4 : 2;
    if (span_ends(before, "tmem") || span_ends(before, "idesc"))
        return 1;
    if (span_ends(before, "desc") || span_ends(before, "cx"))
        return 2;
    if (is_bulk)
        return are_first && span_begins(p->name, "UTMA") && !span_is(p->name, "UTMACCTL") ? BULK_TARGET : 2;
    return has_modifier(p, "E") ? 2 : 1;
}

/* Add all registers in a text up to `end`. Names of functions and labels, "`(NAME)", have none. */
static void add_registers(const parts *p, const char *end, kprof_sass_registers *set)
{
    size_t count = operand_registers(p), in_brackets = 0, depth = 0;
    bool are_first = true;
    for (const char *at = p->operands; at < end;) {
        if (*at == '`' || !strncmp(at, "(*", 2)) {
            const char *close = memchr(at, ')', (size_t)(end - at));
            at = close ? close + 1 : end;
            continue;
        }
        if (*at == '[') {
            in_brackets = bracket_registers(p, (span){p->operands, (size_t)(at - p->operands)}, are_first);
            are_first = false;
        }
        depth += *at == '[';
        depth -= *at == ']' && depth > 0;
        char before = at > p->operands ? at[-1] : ' ';
        bool begins = !isalnum((unsigned char)before) && !strchr("_$.", before);
        size_t length = begins ? add_register(at, depth > 0 ? in_brackets : count, set) : 0;
        at += length > 0 ? length : 1;
    }
}

/* The end of the operand at `at`: the comma behind it or the end. */
static const char *operand_end(const char *at)
{
    size_t depth = 0;
    for (; *at && (*at != ',' || depth > 0) && *at != ';'; at++) {
        depth += *at == '[' || *at == '(';
        depth -= (*at == ']' || *at == ')') && depth > 0;
    }
    return at;
}

static bool gives_nothing(const parts *p)
{
    static const char *const names[] = {"RED",    "REDG",    "REDS",  "SUST",     "SURED",     "LDGSTS",    "BAR",
                                        "BRA",    "BRX",     "BRXU",  "JMP",      "JMX",       "JMXU",      "CALL",
                                        "RET",    "EXIT",    "NOP",   "BSSY",     "BSYNC",     "BREAK",     "KILL",
                                        "MEMBAR", "ERRBAR",  "CCTL",  "CCTLL",    "CCTLT",     "DEPBAR",    "LDGDEPBAR",
                                        "YIELD",  "ARRIVES", "FENCE", "WARPSYNC", "WARPGROUP", "NANOSLEEP", NULL};
    return is_one_of(p->name, names) || (span_begins(p->name, "ST") && p->name.length <= 4) ||
           span_begins(p->name, "UTMA") || span_begins(p->name, "UBLK");
}

/* Predicates come first, then the register with the result, then predicates that carry something. */
static void read_results(const parts *p, kprof_sass_registers *gives)
{
    if (gives_nothing(p))
        return;
    /* Textures give two components in each of two registers or pairs; the first one is RZ where few are wanted. */
    static const char *const textures[] = {"TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML", NULL};
    bool is_texture = is_one_of(p->name, textures);
    size_t count = is_texture ? 2 : operand_registers(p), wanted = is_texture || has_modifier(p, "256") ? 2 : 1;
    if (memmem(p->name.text, p->name.length, "SETP", 4) || span_is(p->name, "PLOP3") || span_is(p->name, "UPLOP3"))
        wanted = 0; /* predicates alone */
    for (const char *at = p->operands; *at && *at != ';';) {
        at += strspn(at, " \t");
        const char *end = operand_end(at);
        bool is_predicate = at[0] == 'P' || (at[0] == 'U' && at[1] == 'P');
        bool is_register = at[0] == 'R' || (at[0] == 'U' && at[1] == 'R');
        if (!is_predicate && (!is_register || wanted == 0))
            return;
        wanted -= is_register;
        add_register(at, count, gives);
        at = *end == ',' ? end + 1 : end;
    }
}

static kprof_sass_flow read_flow(const parts *p)
{
    static const struct {
        const char *name;
        kprof_sass_flow flow;
    } flows[] = {{"BRA", KPROF_SASS_JUMP},      {"JMP", KPROF_SASS_JUMP},     {"BRX", KPROF_SASS_INDIRECT},
                 {"BRXU", KPROF_SASS_INDIRECT}, {"JMX", KPROF_SASS_INDIRECT}, {"JMXU", KPROF_SASS_INDIRECT},
                 {"RET", KPROF_SASS_END},       {"EXIT", KPROF_SASS_END},     {"KILL", KPROF_SASS_END},
                 {"CALL", KPROF_SASS_CALL},     {"BSSY", KPROF_SASS_MEETING}};
    for (size_t i = 0; i < COUNT_OF(flows); i++)
        if (span_is(p->name, flows[i].name))
            return flows[i].flow;
    return KPROF_SASS_NEXT;
}

/* "SB0, 0x1, {5,4}" */
static void read_scoreboards(const char *operands, kprof_sass *out)
{
    const char *named = strstr(operands, "SB"), *others = strchr(operands, '{');
    if (named && named[2] >= '0' && named[2] <= '5')
        out->awaited = out->counted = (uint8_t)(1 << (named[2] - '0'));
    for (; others && *others && *others != '}'; others++)
        if (*others >= '0' && *others <= '5')
            out->awaited |= (uint8_t)(1 << (*others - '0'));
}

static kprof_sass_role read_role(const parts *p)
{
    /* The first row whose name and modifier an instruction has; NULL: any modifier. */
    static const struct {
        const char *name, *modifier;
        kprof_sass_role role;
    } roles[] = {{"LDGSTS", NULL, KPROF_SASS_COPY},
                 {"LDGDEPBAR", NULL, KPROF_SASS_COPY_GROUP},
                 {"DEPBAR", NULL, KPROF_SASS_AWAIT},
                 {"WARPGROUP", "DEPBAR", KPROF_SASS_AWAIT_MATRIX},
                 {"UTMALDG", NULL, KPROF_SASS_BULK_LOAD},
                 {"UTMASTG", NULL, KPROF_SASS_BULK_STORE},
                 {"UTMAREDG", NULL, KPROF_SASS_BULK_STORE},
                 {"UBLKRED", "G", KPROF_SASS_BULK_STORE},
                 {"UTMACMDFLUSH", NULL, KPROF_SASS_BULK_GROUP},
                 {"ARRIVES", "LDGSTSBAR", KPROF_SASS_COPY_ARRIVE},
                 {"SYNCS", "PHASECHK", KPROF_SASS_TEST},
                 {"SYNCS", "A1T0", KPROF_SASS_ARRIVE},
                 {"UTCBAR", NULL, KPROF_SASS_ARRIVE}};
    if (memmem(p->name.text, p->name.length, "GMMA", 4))
        return strstr(p->operands, "gsb") ? KPROF_SASS_MATRIX_GROUP : KPROF_SASS_MATRIX;
    if (span_is(p->name, "UBLKCP")) /* the target comes first */
        return span_begins(p->modifiers, ".G") ? KPROF_SASS_BULK_STORE : KPROF_SASS_BULK_LOAD;
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (span_is(p->name, roles[i].name) && (!roles[i].modifier || has_modifier(p, roles[i].modifier)))
            return roles[i].role;
    return KPROF_SASS_PLAIN;
}

void kprof_sass_read(const char *text, kprof_sass *out)
{
    *out = (kprof_sass){0};
    parts p = split(text);
    out->flow = read_flow(&p);
    out->role = read_role(&p);
    if (out->role == KPROF_SASS_AWAIT)
        read_scoreboards(p.operands, out);
    const char *comma = strchr(p.operands, ','); /* "SB0, 0x1" and "gsb0, 0x1" */
    const unsigned long pending = comma ? strtoul(comma + 1, NULL, 0) : 0;
    if (out->role == KPROF_SASS_AWAIT || out->role == KPROF_SASS_AWAIT_MATRIX)
        out->pending = (uint8_t)(pending < UINT8_MAX ? pending : UINT8_MAX);
    const char *open = strstr(p.operands, "`("), *close = open ? strchr(open, ')') : NULL; /* "BRA P1, `(.L_x_5)" */
    if (close) {
        out->label = open + 2;
        out->label_length = (size_t)(close - out->label);
    }
    read_results(&p, &out->gives);
    add_registers(&p, p.operands + strcspn(p.operands, ";"), &out->names);
    bool is_inverted = p.condition.length > 0 && p.condition.text[0] == '!';
    const char *condition = p.condition.text + is_inverted;
    if (p.condition.length > 0)
        add_register(condition, 1, &out->names);
    bool is_always = !strncmp(condition, "PT", 2) || !strncmp(condition, "UPT", 3);
    out->has_condition = p.condition.length > 0 && (is_inverted || !is_always);
    /* "BRA P1, `(.L)" and "BRA.DIV UR6, `(.L)" have a condition of their own. */
    if (out->flow == KPROF_SASS_JUMP && out->label && out->label - 2 != p.operands + strspn(p.operands, " \t"))
        out->has_condition = true;
}
