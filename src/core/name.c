/* Kernel names: demangling through libiberty, and the bare function name inside a demangled signature. Names come from
 * other people's binaries, so nothing here trusts their length or their brackets. */
#include "core/filter.h"
#include "core/strbuf.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

/* Names of real kernels stay below 100 KB. A hostile one of 200 characters can stand for terabytes of text. */
#define DEMANGLED_MAX_BYTES (1024 * 1024)
/* libiberty's own limit, which names of CUTLASS and Thrust exceed; and ours, with the stack that names of that length
 * can take at worst. */
#define PLAIN_MAX_BYTES   1024
#define MANGLED_MAX_BYTES ((size_t)32 * 1024)
#define LARGE_STACK_BYTES ((size_t)256 << 20)

#define STUB_PREFIX "__device_stub__"

typedef struct demangling {
    const char *mangled;
    int flags;
    kprof_strbuf text;
    bool done;
    jmp_buf too_long;
} demangling;

static void append_demangled(const char *text, size_t size, void *user)
{
    demangling *state = user;
    /* A callback cannot stop the demangler otherwise. Jumping out is safe: it keeps all its state on the stack. */
    if (state->text.failed || state->text.length + size > DEMANGLED_MAX_BYTES)
        longjmp(state->too_long, 1);
    kprof_strbuf_append(&state->text, text, size);
}

/* A function of its own, so that `state` of its caller is certain to survive the jump. */
static bool demangle_into(demangling *state, int more_flags)
{
    const int flags = state->flags | more_flags;
    return setjmp(state->too_long) == 0 && cplus_demangle_v3_callback(state->mangled, flags, append_demangled, state) &&
           state->text.length > 0;
}

static void *demangle_long(void *user)
{
    demangling *state = user;
    state->done = demangle_into(state, DMGL_NO_RECURSE_LIMIT);
    return NULL;
}

/* libiberty refuses longer names, unless a flag lifts that limit; then it needs a large stack. */
static bool demangle_on_large_stack(demangling *state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it: signals are the application's */
    bool started = pthread_attr_setstacksize(&attributes, LARGE_STACK_BYTES) == 0 &&
                   pthread_create(&thread, &attributes, demangle_long, state) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started && pthread_join(thread, NULL) == 0 && state->done;
}

static char *demangle(const char *mangled, int flags)
{
    demangling state = {.mangled = mangled, .flags = flags, .text = KPROF_STRBUF_INIT};
    size_t length = strnlen(mangled, MANGLED_MAX_BYTES + 1);
    bool is_mangled = kprof_begins_with(mangled, "_Z") && length <= MANGLED_MAX_BYTES;
    if (is_mangled && (length <= PLAIN_MAX_BYTES ? demangle_into(&state, 0) : demangle_on_large_stack(&state)))
        return kprof_strbuf_take(&state.text); /* NULL when out of memory */
    kprof_strbuf_free(&state.text);
    return kprof_strdup(mangled);
}

char *kprof_demangle(const char *mangled)
{
    return demangle(mangled, DMGL_PARAMS | DMGL_ANSI);
}

char *kprof_demangle_name(const char *mangled)
{
    return demangle(mangled, DMGL_ANSI);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           (unsigned char)c >= 128;
}

/* The bracket that closes this one; a NUL: it opens nothing. */
static char closing(char opening)
{
    static const char opens[] = "(<[{", closes[] = ")>]}";
    const char *found = strchr(opens, opening); /* for a NUL the end of both */
    return found ? closes[found - opens] : '\0';
}

/* Does the '<' at `p` open template arguments? In expressions, "(4)<(N)", it follows a bracket. */
static bool opens_template(const char *begin, const char *p)
{
    static const char call_operator[] = "operator()";
    size_t before = (size_t)(p - begin);
    if (before == 0 || is_word(p[-1]) || p[-1] == '}' || p[-1] == ']')
        return true;
    return before >= strlen(call_operator) && kprof_begins_with(p - strlen(call_operator), call_operator);
}

/* Return the first character behind the group that opens at `p`, or the end of the text. `stack` holds one byte per
 * character. A closing bracket also closes what was left open inside, so '<' and '>' in expressions such as "((4)>(2))"
 * or "a->b" do no harm. */
static const char *skip_group(const char *p, char *stack)
{
    size_t depth = 0;
    const char *begin = p;
    for (; *p; p++) {
        if (closing(*p) && (*p != '<' || opens_template(begin, p))) {
            stack[depth++] = closing(*p);
            continue;
        }
        if (!strchr(")>]}", *p) || (*p == '>' && (stack[depth - 1] != '>' || p[-1] == '-')))
            continue;
        while (depth > 0 && stack[--depth] != *p) {
        }
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* Longest first, so that "<<=" is not taken for "<". */
static const char *const operator_symbols[] = {
    "<=>", "<<=", ">>=", "->*", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=",
    "&&",  "||",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<",
    ">",   "+",   "-",   "*",   "/",  "%",  "^",  "&",  "|",  "~",  "!",  "=",  ",",
};

/* Return the end of the name that begins with "operator" at `p`: a symbol, new or a conversion ("operator int"). */
static const char *operator_end(const char *p, char *stack)
{
    p += strlen("operator");
    for (size_t i = 0; i < COUNT_OF(operator_symbols); i++)
        if (kprof_begins_with(p, operator_symbols[i]))
            return p + strlen(operator_symbols[i]);
    while (*p && *p != '(')
        p = *p == '<' ? skip_group(p, stack) : p + 1;
    return p;
}

/* A "::" behind a parameter list says that the function encloses a local name. Return that "::", or NULL. */
static const char *enclosing_scope(const char *p)
{
    static const char *const qualifiers[] = {" const", " volatile", " &&", " &", " noexcept"};
    for (size_t i = 0; i < COUNT_OF(qualifiers); i++)
        if (kprof_begins_with(p, qualifiers[i]))
            p += strlen(qualifiers[i]);
    return kprof_begins_with(p, "::") ? p : NULL;
}

/* A walk along the top level of a demangled name. */
typedef struct scan {
    const char *p;     /* the next character to read */
    const char *begin; /* the first character of this component */
    const char *end;   /* NULL, or the end of that component where template arguments or an ABI tag follow */
    char *stack;       /* for skip_group */
} scan;

static void start_component(scan *s, const char *begin)
{
    s->p = s->begin = begin;
    s->end = NULL;
}

static void end_component(scan *s)
{
    s->end = s->end ? s->end : s->p;
}

/* A '(' at the top level belongs to the name or the return type, or opens parameters. False for the function's own. */
static bool scan_parenthesis(scan *s)
{
    const char *behind = skip_group(s->p, s->stack);
    bool is_decltype = kprof_begins_with(s->begin, "decltype(") || kprof_begins_with(s->begin, "decltype (");
    if (!is_decltype && !kprof_begins_with(s->p, "(anonymous namespace)"))
        behind = enclosing_scope(behind);
    end_component(s);
    s->p = behind;
    return behind != NULL;
}

/* Read one token. False when the function's name is complete. */
static bool scan_token(scan *s)
{
    const char *next = s->p + 1;
    switch (*s->p) {
    case '<':
    case '[':
        end_component(s);
        s->p = skip_group(s->p, s->stack);
        return true;
    case '{':
        s->p = skip_group(s->p, s->stack);
        return true;
    case '(':
        return scan_parenthesis(s);
    case ' ': /* ends a return type, but not in "operator< <int>", "name [clone]", "decltype (" */
        s->p = next;
        if (*next != '<' && *next != '[' && *next != '(')
            start_component(s, next);
        return true;
    case ':':
        start_component(s, *next == ':' ? next + 1 : next);
        return true;
    default:
        do
            s->p++;
        while (is_word(s->p[-1]) && is_word(*s->p));
        return true;
    }
}

/* A copy of the last component of the function's qualified name. */
static char *base_copy(const char *demangled)
{
    const size_t length = strlen("operator");
    KPROF_AUTO_FREE char *stack = kprof_calloc(strlen(demangled) + 1, 1);
    if (!stack)
        return NULL;
    scan s = {demangled, demangled, NULL, stack};
    bool more = true;
    while (more && *s.p) {
        if (s.p == s.begin && kprof_begins_with(s.p, "operator") && s.p[length] != '\0' && !is_word(s.p[length]))
            s.end = s.p = operator_end(s.p, s.stack);
        else
            more = scan_token(&s);
    }
    if (more)
        end_component(&s);
    while (s.end > s.begin && s.end[-1] == ' ')
        s.end--;
    return s.end > s.begin ? kprof_strndup(s.begin, (size_t)(s.end - s.begin)) : kprof_strdup(demangled);
}

char *kprof_name_function_base(const char *demangled)
{
    char *base = base_copy(demangled);
    if (!base || !kprof_begins_with(base, STUB_PREFIX) || strcmp(base, STUB_PREFIX) == 0)
        return base;
    /* nvcc and clang name the host function of a kernel "__device_stub__" and the kernel's name. In the kernel's symbol
     * an underscore belongs to both. */
    const char *symbol = base + strlen(STUB_PREFIX) - 1;
    char *name = kprof_demangle(symbol), *kernel = NULL;
    if (name)
        kernel = strcmp(name, symbol) != 0 ? base_copy(name) : kprof_strdup(symbol + 1);
    KPROF_FREE(name, base);
    return kernel;
}

char *kprof_name_function(const char *mangled)
{
    KPROF_AUTO_FREE char *demangled = kprof_demangle(mangled);
    const bool is_whole = demangled && strcmp(demangled, mangled) == 0 && !kprof_begins_with(mangled, STUB_PREFIX) &&
                          !kprof_begins_with(mangled, KPROF_NAME_OF_GRAPH);
    return !demangled ? NULL : is_whole ? kprof_strdup(mangled) : kprof_name_function_base(demangled);
}
