/* Finds CPython in the process and walks the frames of the calling thread. Where its members are is fixed for each
 * version up to 3.12; later versions publish that at the start of _PyRuntime. */
#include "callstack/python.h"

#include "core/bytes.h"
#include "core/strbuf.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Offsets of members in bytes; NONE: there is no such member. */
#define NONE UINT16_MAX
typedef struct layout {
    uint16_t state_frame;                /* of the thread's state: its frame, or what leads there */
    uint16_t cframe_frame;               /* of what leads there: the frame */
    uint16_t previous, executable, next; /* of a frame: the one before, its code, its instruction */
    uint16_t owner;        /* of a frame: who owns it; THEIRS and more: the interpreter, which has no code */
    uint16_t instructions; /* of the code: its first instruction */
    uint16_t file, name, lines, first_line;
    uint16_t type;                           /* of an object */
    uint16_t length, kind, ascii_text, text; /* of a text */
    uint16_t bytes_length, bytes;            /* of bytes */
} layout;

#define THEIRS 3

#define OLDEST_MINOR      9
#define FIRST_PUBLISHED   13
#define LATEST_MINOR      14
#define BYTES_OF_CODE     208
#define BYTES_OF_FRAME    128
#define MOST_BYTES_LINES  65536
#define MOST_STEPS        4096 /* from frame to frame, with those that have no code */
#define CODE_UNIT_OF_3_10 2

/* These versions publish no offsets. Source: offsetof over the headers of CPython 3.9.18, 3.10.13, 3.11.7 and 3.12.1 on
 * x86_64 (Include/cpython/code.h, frameobject.h, pystate.h, Include/internal/pycore_frame.h); releases of one minor
 * version have one ABI. */
static const layout layouts[] = {
    /* 3.9 */ {24, NONE, 24, 32, 104, NONE, NONE, 104, 112, 120, 40, 8, 16, 32, 48, 72, 16, 32},
    /* 3.10 */ {24, NONE, 24, 32, 96, NONE, NONE, 104, 112, 120, 40, 8, 16, 32, 48, 72, 16, 32},
    /* 3.11 */ {56, 8, 48, 32, 56, 69, 184, 112, 128, 136, 72, 8, 16, 32, 48, 72, 16, 32},
    /* 3.12 */ {56, 0, 8, 0, 56, 70, 192, 112, 128, 136, 68, 8, 16, 32, 40, 56, 16, 32},
};

/* _PyRuntime publishes where the members of each structure begin, in words of 8 bytes. Source: _Py_DebugOffsets
 * in Include/internal/pycore_runtime.h of CPython 3.13 and Include/internal/pycore_debug_offsets.h of 3.14. */
typedef struct published {
    uint8_t state, frame, code, object, bytes, text; /* the words with the sizes of the structures */
    uint8_t words;
} published;
static const published publications[] = {
    /* 3.13 */ {19, 28, 34, 44, 64, 67, 71},
    /* 3.14 */ {22, 31, 39, 50, 74, 77, 81},
};
#define COOKIE     "xdebugpy"
#define MOST_WORDS 81

#define BYTES_TO_DEALLOC 48 /* of a type: tp_dealloc, in all versions */
#define BUCKETS          1024

static struct interpreter {
    pthread_mutex_t mutex;
    atomic_bool settled; /* nothing below changes any more */
    uint64_t looks;
    int minor; /* 0: there is none */
    layout at;
    size_t frame_bytes; /* of a frame, up to its last member here */
    uintptr_t code_type;
    void *(*own_state)(void);
    void (*_Atomic *dealloc)(void *code); /* CPython calls it when nobody refers to a code object any more */
    void (*next_dealloc)(void *code);
    atomic_uint_fast64_t freed[BUCKETS]; /* code objects, by their addresses */
    char reason[128];                    /* why it cannot be read; "": it can */
} python = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool read_word(kprof_memory *memory, uintptr_t address, uintptr_t *out)
{
    return kprof_memory_read(memory, address, out, sizeof *out);
}

/* Read where the members are. False where _PyRuntime does not say. */
static bool read_published(kprof_memory *memory, const published *words, layout *out)
{
    uint64_t at[MOST_WORDS];
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (!runtime || !kprof_memory_read(memory, (uintptr_t)runtime, at, words->words * sizeof *at) ||
        memcmp(at, COOKIE, sizeof *at) != 0 || at[2] != 0) /* at[2]: free-threaded */
        return false;
    for (size_t i = 3; i < words->words; i++) /* those in the interpreter's own state are large */
        if (i >= words->state && at[i] >= NONE)
            return false;
    const uint64_t *state = at + words->state, *frame = at + words->frame, *code = at + words->code;
    const uint64_t *bytes = at + words->bytes, *text = at + words->text;
    *out = (layout){
        .state_frame = (uint16_t)state[4],
        .cframe_frame = NONE,
        .previous = (uint16_t)frame[1],
        .executable = (uint16_t)frame[2],
        .next = (uint16_t)frame[3],
        .owner = (uint16_t)frame[5],
        .file = (uint16_t)code[1],
        .name = (uint16_t)code[3],
        .lines = (uint16_t)code[4],
        .first_line = (uint16_t)code[5],
        .instructions = (uint16_t)code[9],
        .type = (uint16_t)at[words->object + 1],
        .bytes_length = (uint16_t)bytes[1],
        .bytes = (uint16_t)bytes[2],
        .kind = (uint16_t)text[1],
        .length = (uint16_t)text[2],
        .ascii_text = (uint16_t)text[3],
        .text = (uint16_t)(text[3] + 16),
    };
    return true;
}

/* A frame's member `next` has an address, or up to 3.10 a number. */
static size_t bytes_of_next(void)
{
    return python.minor >= 11 ? sizeof(uintptr_t) : sizeof(int);
}

static void find_layout(kprof_memory *memory)
{
    if (python.minor < FIRST_PUBLISHED)
        python.at = layouts[python.minor - OLDEST_MINOR];
    else if (!read_published(memory, &publications[python.minor - FIRST_PUBLISHED], &python.at))
        snprintf(python.reason, sizeof python.reason,
                 "this build of Python 3.%d does not publish where its frames are as others do", python.minor);
    const layout *at = &python.at;
    const size_t ends[] = {at->previous + sizeof(uintptr_t), at->executable + sizeof(uintptr_t),
                           at->next + bytes_of_next(), at->owner == NONE ? 0 : at->owner + 1u};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        python.frame_bytes = ends[i] > python.frame_bytes ? ends[i] : python.frame_bytes;
    const size_t code_ends[] = {at->file, at->name, at->lines, at->first_line, at->type};
    bool fits = python.frame_bytes <= BYTES_OF_FRAME;
    for (size_t i = 0; i < COUNT_OF(code_ends); i++)
        fits = fits && code_ends[i] + sizeof(uintptr_t) <= BYTES_OF_CODE;
    if (!fits && !python.reason[0])
        snprintf(python.reason, sizeof python.reason, "the frames of this build of Python 3.%d are larger than others",
                 python.minor);
}

static atomic_uint_fast64_t *count_of(uintptr_t code)
{
    return &python.freed[kprof_hash_number(code) % BUCKETS];
}

static void note_freed(void *code)
{
    atomic_fetch_add(count_of((uintptr_t)code), 1);
    python.next_dealloc(code);
}

/* Code objects have no version in most Pythons, and a new one may lie where an old one was, with texts where those of
 * the old one were. So kprof stands before what frees them. */
static void watch_code(void *type)
{
    python.dealloc = (void (*_Atomic *)(void *))((char *)type + BYTES_TO_DEALLOC);
    python.next_dealloc = atomic_load(python.dealloc);
    atomic_store(python.dealloc, note_freed);
}

uint64_t kprof_python_freed(uintptr_t code)
{
    static atomic_uint_fast64_t unknown = UINT64_C(1) << 63; /* somebody has taken kprof's function out */
    return atomic_load(python.dealloc) == note_freed ? atomic_load(count_of(code)) : atomic_fetch_add(&unknown, 1);
}

/* Needs the mutex. */
static void look_for_python(kprof_memory *memory)
{
    const char *(*version)(void);
    void *get_version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    void *get_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"), *type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    int major = 0;
    if (!get_version || !get_state || !type)
        return;
    memcpy(&version, &get_version, sizeof version); /* NOLINT(bugprone-sizeof-expression): a function's address */
    memcpy(&python.own_state, &get_state, sizeof python.own_state); /* NOLINT(bugprone-sizeof-expression) */
    python.code_type = (uintptr_t)type;
    if (sscanf(version(), "%d.%d", &major, &python.minor) != 2)
        return;
#if defined(__x86_64__) || defined(__aarch64__)
    const bool is_known = major == 3 && python.minor >= OLDEST_MINOR && python.minor <= LATEST_MINOR;
#else
    const bool is_known = false;
#endif
    if (!is_known)
        snprintf(python.reason, sizeof python.reason,
                 "kprof knows the frames of Python 3.%d to 3.%d, not those of %d.%d", OLDEST_MINOR, LATEST_MINOR, major,
                 python.minor);
    else
        find_layout(memory);
    if (!python.reason[0])
        watch_code(type);
    atomic_store(&python.settled, true);
}

/* A program may load Python late, so look again, but ever more seldom. */
static bool find_python(kprof_memory *memory)
{
    if (!atomic_load(&python.settled)) {
        pthread_mutex_lock(&python.mutex);
        const uint64_t looks = ++python.looks;
        if (!atomic_load(&python.settled) && (looks & (looks - 1)) == 0)
            look_for_python(memory);
        pthread_mutex_unlock(&python.mutex);
    }
    return atomic_load(&python.settled);
}

/* The thread's innermost frame; 0: none, or it cannot be read. */
static uintptr_t innermost(kprof_memory *memory, uintptr_t state)
{
    uintptr_t frame = 0;
    if (!read_word(memory, state + python.at.state_frame, &frame))
        return 0;
    if (python.at.cframe_frame != NONE && (!frame || !read_word(memory, frame + python.at.cframe_frame, &frame)))
        return 0;
    return frame;
}

/* The members of a code object. */
typedef struct code_object {
    uintptr_t file, name, lines;
    uint32_t first_line;
} code_object;

static bool read_code(kprof_memory *memory, uintptr_t address, code_object *out)
{
    unsigned char bytes[BYTES_OF_CODE];
    const layout *at = &python.at;
    uintptr_t type;
    if (!kprof_memory_read(memory, address, bytes, sizeof bytes))
        return false;
    memcpy(&type, bytes + at->type, sizeof type);
    memcpy(&out->file, bytes + at->file, sizeof out->file);
    memcpy(&out->name, bytes + at->name, sizeof out->name);
    memcpy(&out->lines, bytes + at->lines, sizeof out->lines);
    memcpy(&out->first_line, bytes + at->first_line, sizeof out->first_line);
    return type == python.code_type;
}

/* The members of a frame. */
typedef struct frame {
    uintptr_t previous, executable, next;
    unsigned char owner;
} frame;

static bool read_frame(kprof_memory *memory, uintptr_t address, frame *out)
{
    const layout *at = &python.at;
    unsigned char bytes[BYTES_OF_FRAME];
    *out = (frame){0};
    if (!kprof_memory_read(memory, address, bytes, python.frame_bytes))
        return false;
    memcpy(&out->previous, bytes + at->previous, sizeof out->previous);
    memcpy(&out->executable, bytes + at->executable, sizeof out->executable);
    memcpy(&out->next, bytes + at->next, bytes_of_next());
    out->executable &= ~(uintptr_t)3; /* 3.14 has marks in these bits */
    if (at->owner != NONE)
        out->owner = bytes[at->owner];
    return true;
}

static int32_t offset_of(const frame *f)
{
    if (python.minor >= 11)
        return (int32_t)(f->next - f->executable - python.at.instructions);
    const int32_t instruction = (int32_t)(uint32_t)f->next;
    return python.minor == 10 ? instruction * CODE_UNIT_OF_3_10 : instruction;
}

void kprof_python_walk_state(kprof_memory *memory, uintptr_t state, kprof_python_frames *frames)
{
    frame f = {.previous = state ? innermost(memory, state) : 0};
    frames->count = 0;
    frames->is_cut = false;
    for (int steps = 0; f.previous && !frames->is_cut; steps++) {
        frames->is_cut = frames->count == frames->most || steps == MOST_STEPS || !read_frame(memory, f.previous, &f);
        if (!frames->is_cut && f.owner < THEIRS)
            frames->sites[frames->count++] = (kprof_python_site){f.executable, offset_of(&f)};
    }
}

void kprof_python_walk(kprof_memory *memory, kprof_python_frames *frames)
{
    frames->count = 0;
    frames->is_cut = false;
    const bool is_there = find_python(memory);
    frames->reason = is_there ? python.reason : "there is no Python in the process";
    if (!is_there || python.reason[0])
        return;
    kprof_python_walk_state(memory, (uintptr_t)python.own_state(), frames);
}

static size_t put_character(uint32_t code, char out[4])
{
    if (code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[bytes] | code);
    return bytes;
}

/* Copy a text as UTF-8, as much of it as there is space for. */
static bool read_text(kprof_memory *memory, uintptr_t text, char *out, size_t size)
{
    int64_t length;
    uint32_t state;
    size_t used = 0;
    if (!kprof_memory_read(memory, text + python.at.length, &length, sizeof length) ||
        !kprof_memory_read(memory, text + python.at.kind, &state, sizeof state))
        return false;
    const uint32_t width = state >> 2 & 7;
    const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    if (!is_compact || (width != 1 && width != 2 && width != 4) || length < 0)
        return false;
    const uintptr_t from = text + (is_ascii ? python.at.ascii_text : python.at.text);
    for (int64_t i = 0; i < length; i++) {
        uint32_t code = 0; /* little-endian, as all machines here */
        char bytes[4];
        if (!kprof_memory_read(memory, from + (uintptr_t)i * width, &code, width))
            return false;
        const size_t count = put_character(code, bytes);
        if (used + count >= size)
            break;
        memcpy(out + used, bytes, count);
        used += count;
    }
    out[used] = '\0';
    return true;
}

/* The table that CPython keeps the lines of instructions in, of 3.`minor`: Objects/lnotab_notes.txt of 3.9 and 3.10,
 * and Objects/locations.md of 3.11 and later tell of it. */
typedef struct line_table {
    int minor;
    const uint8_t *table; /* [bytes] */
    size_t bytes;
    uint32_t first_line;
} line_table;

/* 3.9: pairs of bytes and lines, to the instruction's own. */
static int64_t line_of_pairs(const line_table *lines, int32_t offset)
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
static int64_t line_of_ranges(const line_table *lines, int32_t offset)
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
static int64_t line_of_entries(const line_table *lines, int32_t offset)
{
    const uint8_t *table = lines->table;
    int64_t line = lines->first_line;
    enum { FIRST_OF_ONE_LINE = 10, WITHOUT_COLUMNS = 13, LONG = 14, NO_LINE = 15 };
    int64_t end = 0;
    for (size_t i = 0; i < lines->bytes;) {
        const int kind = table[i] >> 3 & 15;
        end += 2 * ((table[i] & 7) + 1);
        i++;
        if (kind == LONG || kind == WITHOUT_COLUMNS)
            line += signed_number(table + i, lines->bytes - i);
        else if (kind >= FIRST_OF_ONE_LINE && kind != NO_LINE)
            line += kind - FIRST_OF_ONE_LINE;
        if (offset < end)
            return kind == NO_LINE ? 0 : line;
        while (i < lines->bytes && !(table[i] & 128))
            i++;
    }
    return 0;
}

/* The line of the instruction at `offset`, in bytes; 0: it has none. */
static uint32_t line_at(const line_table *lines, int32_t offset)
{
    if (offset < 0) /* the function has not begun */
        return lines->first_line;
    const int64_t line = lines->minor >= 11   ? line_of_entries(lines, offset)
                         : lines->minor == 10 ? line_of_ranges(lines, offset)
                                              : line_of_pairs(lines, offset);
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

bool kprof_python_describe(kprof_memory *memory, const kprof_python_site *site, kprof_python_text *out)
{
    static uint8_t table[MOST_BYTES_LINES];
    int64_t bytes = 0;
    code_object found;
    *out->function = *out->file = '\0';
    out->line = 0;
    if (!read_code(memory, site->address, &found))
        return false;
    if (!read_text(memory, found.name, out->function, sizeof out->function) ||
        !read_text(memory, found.file, out->file, sizeof out->file) ||
        !kprof_memory_read(memory, found.lines + python.at.bytes_length, &bytes, sizeof bytes) || bytes < 0)
        return true;
    const size_t read = bytes < MOST_BYTES_LINES ? (size_t)bytes : MOST_BYTES_LINES;
    const line_table lines = {python.minor, table, read, found.first_line};
    if (kprof_memory_read(memory, found.lines + python.at.bytes, table, read))
        out->line = line_at(&lines, site->offset);
    return true;
}
