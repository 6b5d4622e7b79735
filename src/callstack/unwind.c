/* Follows the tables of x86-64 as far as compilers make them: the frame pointer and the return address are what is
 * needed of all registers. Elsewhere, and with all else that the tables can have, nothing is known. Source: DWARF 5,
 * section 6.4; the Linux Standard Base, "Exception Frames"; libgcc finds the entry of a function. */
#include "callstack/unwind.h"

#include "core/bytes.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Registers by DWARF's numbers. */
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };

/* DWARF's instructions, without its DW_CFA_. The first three have an operand in their lower six bits. */
enum {
    ADVANCE_LOC = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    NOP = 0x00,
    ADVANCE_LOC1 = 0x02,
    ADVANCE_LOC2 = 0x03,
    ADVANCE_LOC4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    GNU_ARGS_SIZE = 0x2e
};

/* A place is counted from the frame's stack pointer, from its frame pointer, from the caller's stack pointer, or from
 * the word that the frame pointer leads to. */
enum { UNKNOWN, FROM_STACK, FROM_FRAME, FROM_CALLER, WORD_FROM_FRAME, UNCHANGED, NOWHERE };

typedef struct place {
    uint8_t from;
    int64_t offset;
} place;

/* The tables have such a row for each instruction. */
typedef struct row {
    place stack, frame, address; /* the caller's stack and frame pointers, and the return address */
} row;

/* The entries of many functions share this. */
typedef struct common {
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t pointer_bytes;
    bool has_more; /* entries have a size of further data */
    row first;
} common;

/* libgcc's unwind-dw2-fde.h declares this and the function, and is not installed. Neither changes, since exceptions
 * need both. */
typedef struct bases {
    void *text, *data, *function;
} bases;
static const void *(*find_entry)(void *address, bases *out);

void kprof_unwind_prepare(void)
{
#ifdef __x86_64__
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL); /* stays: backtrace() has it, too */
    void *found = library ? dlsym(library, "_Unwind_Find_FDE") : NULL;
    memcpy(&find_entry, &found, sizeof find_entry); /* NOLINT(bugprone-sizeof-expression): a function's address */
#endif
}

static int note_modules(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(uint64_t *)user = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

uint64_t kprof_unwind_modules(void)
{
    uint64_t modules = 0;
    (void)dl_iterate_phdr(note_modules, &modules);
    return modules;
}

void kprof_unwind_begin(kprof_unwind_rules *rules, uint64_t modules)
{
    if (rules->modules != modules)
        memset(rules->sets, 0, sizeof rules->sets);
    rules->modules = modules;
}

/* A little-endian number. */
static uint64_t fixed(kprof_bytes *in, size_t bytes)
{
    uint64_t value = 0;
    const void *block = kprof_get_block(in, bytes);
    if (block)
        memcpy(&value, block, bytes);
    return value;
}

/* A number in pieces of seven bits, of which the last one's highest bit may be a sign. */
static uint64_t pieces(kprof_bytes *in, bool has_sign)
{
    uint64_t value = 0, piece = 128;
    unsigned shift = 0;
    for (; shift < 63 && piece & 128; shift += 7) {
        piece = fixed(in, 1);
        value |= (piece & 127) << shift;
    }
    return has_sign && piece & 64 ? value | UINT64_MAX << shift : value;
}

static uint64_t number(kprof_bytes *in)
{
    return pieces(in, false);
}

static int64_t signed_number(kprof_bytes *in)
{
    return (int64_t)pieces(in, true);
}

/* An expression, of which the one kind is known that compilers use where they align a stack. */
static place expression(kprof_bytes *in, bool is_address)
{
    enum { FRAME_POINTER_AND = 0x76, WORD_THERE = 0x06 };
    const uint64_t bytes = number(in);
    kprof_bytes of = {kprof_get_block(in, bytes), bytes, false};
    const bool is_known = of.data && fixed(&of, 1) == FRAME_POINTER_AND;
    const int64_t offset = is_known ? signed_number(&of) : 0;
    if (!is_known || (!is_address && fixed(&of, 1) != WORD_THERE) || of.failed || of.left > 0)
        return (place){UNKNOWN, 0};
    return (place){is_address ? FROM_FRAME : WORD_FROM_FRAME, offset};
}

static place place_of_register(kprof_bytes *in, const common *of, uint64_t code, uint64_t which)
{
    switch (code) {
    case OFFSET:
    case OFFSET_EXTENDED:
        return (place){FROM_CALLER, (int64_t)number(in) * of->data_factor};
    case RESTORE:
    case RESTORE_EXTENDED:
        return which == RETURN_ADDRESS ? of->first.address : of->first.frame;
    case EXPRESSION:
        return expression(in, true);
    default:
        return (place){code == UNDEFINED ? NOWHERE : UNCHANGED, 0};
    }
}

static void set_register(row *r, uint64_t which, place found)
{
    if (which == FRAME_POINTER)
        r->frame = found;
    else if (which == RETURN_ADDRESS)
        r->address = found;
    else if (which == STACK_POINTER) /* a signal's frame */
        r->address.from = UNKNOWN;
}

static bool has_register(uint64_t code)
{
    return (code >= OFFSET_EXTENDED && code <= SAME_VALUE) || code == DEF_CFA || code == DEF_CFA_REGISTER ||
           code == EXPRESSION;
}

/* The row of the call that returns to `until`, in a function that starts at `at`. Unknown: it has what this file does
 * not know. */
static row run(kprof_bytes *in, const common *of, uintptr_t at, uintptr_t until)
{
    row r = of->first, kept[8];
    size_t depth = 0;
    while (in->left > 0 && !in->failed && at < until) {
        const uint64_t byte = fixed(in, 1), code = byte & 0xc0 ? byte & 0xc0 : byte;
        const uint64_t which = has_register(code) ? number(in) : byte & 0x3f;
        switch (code) {
        case NOP:
            break;
        case ADVANCE_LOC:
            at += which * of->code_factor;
            break;
        case ADVANCE_LOC1:
        case ADVANCE_LOC2:
        case ADVANCE_LOC4:
            at += fixed(in, (size_t)1 << (code - ADVANCE_LOC1)) * of->code_factor;
            break;
        case OFFSET:
        case OFFSET_EXTENDED:
        case RESTORE:
        case RESTORE_EXTENDED:
        case UNDEFINED:
        case SAME_VALUE:
        case EXPRESSION:
            set_register(&r, which, place_of_register(in, of, code, which));
            break;
        case REMEMBER_STATE:
        case RESTORE_STATE:
            if (depth == (code == REMEMBER_STATE ? COUNT_OF(kept) : 0))
                return (row){0};
            if (code == REMEMBER_STATE)
                kept[depth++] = r;
            else
                r = kept[--depth];
            break;
        case DEF_CFA:
        case DEF_CFA_REGISTER:
            r.stack.from = which == STACK_POINTER ? FROM_STACK : which == FRAME_POINTER ? FROM_FRAME : UNKNOWN;
            r.stack.offset = code == DEF_CFA ? (int64_t)number(in) : r.stack.offset;
            break;
        case DEF_CFA_OFFSET:
            r.stack.offset = (int64_t)number(in);
            break;
        case DEF_CFA_EXPRESSION:
            r.stack = expression(in, false);
            break;
        case GNU_ARGS_SIZE:
            (void)number(in);
            break;
        default:
            return (row){0};
        }
    }
    return in->failed ? (row){0} : r;
}

/* The bytes of an entry behind its size. */
static kprof_bytes entry_bytes(const uint8_t *entry)
{
    uint32_t bytes;
    memcpy(&bytes, entry, sizeof bytes);
    return (kprof_bytes){entry + sizeof bytes, bytes < UINT32_MAX - 16 ? bytes : 0, false};
}

static uint8_t pointer_bytes(uint64_t encoding)
{
    static const uint8_t bytes[8] = {8, 0, 2, 4, 8}; /* a whole pointer, and two, four or eight bytes */
    return encoding < 0x50 || encoding >= 0x80 ? bytes[encoding & 7] : 0;
}

static bool read_common(const uint8_t *entry, common *out)
{
    kprof_bytes in = entry_bytes(entry);
    *out = (common){.pointer_bytes = 8, .first = {.frame = {UNCHANGED, 0}}};
    (void)fixed(&in, 4);
    const uint64_t version = fixed(&in, 1);
    const char *letters = (const char *)in.data;
    while (fixed(&in, 1) != 0)
        continue;
    if (in.failed || (version != 1 && version != 3))
        return false;
    out->code_factor = number(&in);
    out->data_factor = signed_number(&in);
    if ((version == 1 ? fixed(&in, 1) : number(&in)) != RETURN_ADDRESS)
        return false;
    out->has_more = *letters == 'z';
    if (out->has_more)
        (void)number(&in);
    for (const char *letter = letters + out->has_more; *letter; letter++) {
        const uint64_t encoding = fixed(&in, 1);
        if (*letter == 'R')
            out->pointer_bytes = pointer_bytes(encoding);
        else if (*letter == 'P' && pointer_bytes(encoding) > 0)
            (void)fixed(&in, pointer_bytes(encoding));
        else if (*letter != 'L') /* such as S: a signal's frame */
            return false;
    }
    out->first = run(&in, out, 0, UINTPTR_MAX);
    return out->pointer_bytes > 0 && out->first.address.from != UNKNOWN;
}

static kprof_unwind_rule compute_rule(uintptr_t address)
{
    kprof_unwind_rule rule = {.address = address};
    bases found = {NULL, NULL, NULL};
    const uint8_t *entry = find_entry((void *)(address - 1), &found); /* NOLINT(performance-no-int-to-ptr) */
    common of;
    uint32_t back;
    if (!entry)
        return rule;
    memcpy(&back, entry + 4, sizeof back);
    kprof_bytes in = entry_bytes(entry);
    if (!read_common(entry + 4 - back, &of))
        return rule;
    (void)fixed(&in, 4);
    (void)kprof_get_block(&in, 2 * (size_t)of.pointer_bytes);
    if (of.has_more)
        (void)kprof_get_block(&in, number(&in));
    const row r = run(&in, &of, (uintptr_t)found.function, address);
    rule.stack_offset = (int32_t)r.stack.offset;
    rule.frame_offset = (int32_t)r.frame.offset;
    if (r.address.from == NOWHERE)
        rule.stack = NOWHERE;
    else if (r.address.from == FROM_CALLER && r.address.offset == -(int64_t)sizeof(uintptr_t) &&
             rule.stack_offset == r.stack.offset && rule.frame_offset == r.frame.offset && r.frame.from != NOWHERE) {
        rule.stack = r.frame.from == UNKNOWN ? UNKNOWN : r.stack.from;
        rule.frame = r.frame.from;
    }
    return rule;
}

static const kprof_unwind_rule *find_rule(kprof_unwind_rules *rules, uintptr_t address)
{
    kprof_unwind_rule *set = rules->sets[kprof_hash_number(address) % KPROF_UNWIND_SETS];
    for (size_t i = 0; i < KPROF_UNWIND_WAYS; i++)
        if (set[i].address == address)
            return &set[i];
    Dl_info module;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr); generated code may be at an address for a while only */
    if (!dladdr((void *)(address - 1), &module))
        set = &rules->of_generated;
    else
        memmove(set + 1, set, (KPROF_UNWIND_WAYS - 1) * sizeof *set);
    *set = compute_rule(address);
    return set;
}

static uintptr_t word_at(uintptr_t address)
{
    uintptr_t word;
    memcpy(&word, (const void *)address, sizeof word); /* NOLINT(performance-no-int-to-ptr): of the own stack */
    return word;
}

kprof_unwind_step kprof_unwind_caller(kprof_unwind_rules *rules, kprof_unwind_frame *frame)
{
    const kprof_unwind_rule *rule = find_entry ? find_rule(rules, frame->address) : NULL;
    if (!rule || rule->stack == UNKNOWN || rule->stack == NOWHERE)
        return rule && rule->stack == NOWHERE ? KPROF_UNWIND_OUTERMOST : KPROF_UNWIND_UNKNOWN;
    const uintptr_t from = (rule->stack == FROM_STACK ? frame->stack : frame->frame) + (uintptr_t)rule->stack_offset;
    const uintptr_t stack = rule->stack == WORD_FROM_FRAME ? word_at(from) : from;
    if (stack <= frame->stack || stack % sizeof(uintptr_t) != 0)
        return KPROF_UNWIND_UNKNOWN;
    if (rule->frame == FROM_CALLER)
        frame->frame = word_at(stack + (uintptr_t)rule->frame_offset);
    else if (rule->frame == FROM_FRAME)
        frame->frame = word_at(frame->frame + (uintptr_t)rule->frame_offset);
    frame->stack = stack;
    frame->address = word_at(stack - sizeof(uintptr_t));
    return frame->address != 0 ? KPROF_UNWIND_CALLER : KPROF_UNWIND_OUTERMOST;
}
