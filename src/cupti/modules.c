/* Reads cubins: ELF files whose symbol table names kernels and variables, and whose .nv.callgraph section pairs callers
 * with callees by symbol index. The input comes from the application: every offset is checked. */
#include "cupti/modules.h"

#include "core/hold.h"
#include "core/log.h"

#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In a symbol's st_other: a kernel, of whatever binding; those in anonymous namespaces are local. Not all compilers set
 * it: what is global and has none may be a kernel, or a function that kernels call. */
#define ENTRY_FLAG 0x10
/* The attributes of a kernel are in the section ".nv.info.KERNEL". Each has a byte for its format, one that says which
 * attribute it is, and two for its value or, in the last format, for the size of the value that follows. */
enum { FORMAT_BYTE = 2, FORMAT_VALUE = 3, FORMAT_SIZED = 4, NUM_BARRIERS = 0x4c, MOST_BARRIERS = 16 };

typedef struct cubin_kernel {
    char *name;
    bool is_entry;           /* a kernel for certain */
    bool launches;           /* it may launch kernels of its cubin on the device */
    unsigned barriers;       /* that a block takes, plus 1; 0: not known */
    const char *side_effect; /* NULL, or one of the texts kept below */
} cubin_kernel;

typedef struct cubin_record {
    cubin_kernel *kernels; /* [kernel_count], sorted by name */
    size_t kernel_count;
    kprof_strlist variables;
    bool is_noted; /* its variables, since it was loaded last */
    struct cubin_record *next;
} cubin_record;

/* A cubin as it lies in memory, with its symbol table found. Tables need not be aligned. */
typedef struct cubin_view {
    const unsigned char *bytes;
    size_t size;
    const unsigned char *sections; /* [section_count * sizeof(Elf64_Shdr)] */
    size_t section_count;
    const char *section_names, *names;
    size_t section_names_size, names_size;
    const unsigned char *symbols; /* [symbol_count * sizeof(Elf64_Sym)] */
    size_t symbol_count;
} cubin_view;

static struct {
    pthread_mutex_t mutex;
    cubin_record *cubins;
    kprof_strlist side_effects; /* names of functions, each once */
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .side_effects = KPROF_STRLIST_INIT};

static const void *range_at(const cubin_view *view, uint64_t offset, uint64_t size)
{
    return offset <= view->size && size <= view->size - offset ? view->bytes + offset : NULL;
}

static const char *text_at(const char *table, size_t size, uint32_t offset)
{
    return offset < size && memchr(table + offset, '\0', size - offset) ? table + offset : "";
}

static Elf64_Shdr section_at(const cubin_view *view, size_t index)
{
    Elf64_Shdr section;
    memcpy(&section, view->sections + index * sizeof section, sizeof section);
    return section;
}

static Elf64_Sym symbol_at(const cubin_view *view, size_t index)
{
    Elf64_Sym symbol;
    memcpy(&symbol, view->symbols + index * sizeof symbol, sizeof symbol);
    return symbol;
}

static const char *section_name(const cubin_view *view, size_t index)
{
    return index < view->section_count
               ? text_at(view->section_names, view->section_names_size, section_at(view, index).sh_name)
               : "";
}

static bool find_symbols(cubin_view *view)
{
    for (size_t i = 0; i < view->section_count; i++) {
        Elf64_Shdr section = section_at(view, i);
        if (section.sh_type != SHT_SYMTAB || section.sh_link >= view->section_count)
            continue;
        Elf64_Shdr names = section_at(view, section.sh_link);
        view->symbols = range_at(view, section.sh_offset, section.sh_size);
        view->symbol_count = section.sh_size / sizeof(Elf64_Sym);
        view->names = range_at(view, names.sh_offset, names.sh_size);
        view->names_size = names.sh_size;
        return view->symbols && view->names;
    }
    return false;
}

static bool open_view(const void *cubin, size_t size, cubin_view *view)
{
    *view = (cubin_view){.bytes = cubin, .size = size};
    Elf64_Ehdr header;
    if (!cubin || size < sizeof header)
        return false;
    memcpy(&header, cubin, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    view->section_count = header.e_shnum;
    view->sections = range_at(view, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
    if (!view->sections || header.e_shstrndx >= header.e_shnum)
        return false;
    Elf64_Shdr names = section_at(view, header.e_shstrndx);
    view->section_names = range_at(view, names.sh_offset, names.sh_size);
    view->section_names_size = names.sh_size;
    return view->section_names && find_symbols(view);
}

static const char *symbol_name(const cubin_view *view, size_t index)
{
    return index < view->symbol_count ? text_at(view->names, view->names_size, symbol_at(view, index).st_name) : "";
}

static bool may_be_kernel(const cubin_view *view, const Elf64_Sym *symbol)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
           (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL || (symbol->st_other & ENTRY_FLAG)) &&
           kprof_begins_with(section_name(view, symbol->st_shndx), ".text.");
}

/* Strings of the compiler's own making, such as printf formats, are in the same sections and never written. */
static bool is_variable(const cubin_view *view, const Elf64_Sym *symbol, const char *name)
{
    const char *section = section_name(view, symbol->st_shndx);
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_size > 0 && name[0] != '$' &&
           !kprof_begins_with(name, "__unnamed_") &&
           (strcmp(section, ".nv.global") == 0 || strcmp(section, ".nv.global.init") == 0);
}

KPROF_BY_TEXT(compare_kernels, cubin_kernel, name)

static cubin_kernel *find_kernel(const cubin_record *record, const char *name)
{
    cubin_kernel key = {.name = (char *)name};
    return record->kernel_count == 0
               ? NULL
               : bsearch(&key, record->kernels, record->kernel_count, sizeof key, compare_kernels);
}

static bool read_symbols(const cubin_view *view, cubin_record *record)
{
    record->kernels = calloc(view->symbol_count + 1, sizeof *record->kernels);
    if (!record->kernels)
        return false;
    for (size_t i = 0; i < view->symbol_count; i++) {
        const char *name = symbol_name(view, i);
        Elf64_Sym symbol = symbol_at(view, i);
        if (may_be_kernel(view, &symbol)) {
            char *copy = strdup(name);
            if (!copy)
                return false;
            record->kernels[record->kernel_count++] =
                (cubin_kernel){.name = copy, .is_entry = (symbol.st_other & ENTRY_FLAG) != 0};
        } else if (is_variable(view, &symbol, name) && !kprof_strlist_add(&record->variables, name)) {
            return false;
        }
    }
    qsort(record->kernels, record->kernel_count, sizeof *record->kernels, compare_kernels);
    return true;
}

static const char *keep_text(const char *text)
{
    if (!kprof_strlist_add_unique(&seen.side_effects, text))
        return "?";
    for (size_t i = 0; i < seen.side_effects.count; i++)
        if (strcmp(seen.side_effects.items[i], text) == 0)
            return seen.side_effects.items[i];
    return "?";
}

/* If a kernel calls both, is it enough to name the first? */
static bool outweighs(const char *first, const char *second)
{
    return !second || (first && strcmp(second, KPROF_PRINTS) == 0);
}

/* The device runtime launches kernels of the same cubin, whose grids end before that of the kernel that launches them,
 * and its streams and events are gone by then: a replay does the same again and leaves nothing behind. */
static void note_call(cubin_kernel *kernel, const char *callee)
{
    if (kprof_begins_with(callee, "__cuda_syscall_cnpv2"))
        kernel->launches = true;
    else if (!outweighs(kernel->side_effect, callee))
        kernel->side_effect = keep_text(callee);
}

static void read_calls(const cubin_view *view, const Elf64_Shdr *section, cubin_record *record)
{
    uint32_t pair[2]; /* caller, callee */
    const unsigned char *pairs = range_at(view, section->sh_offset, section->sh_size);
    for (size_t i = 0; pairs && i < section->sh_size / sizeof pair; i++) {
        memcpy(pair, pairs + i * sizeof pair, sizeof pair);
        if (pair[1] >= view->symbol_count || symbol_at(view, pair[1]).st_shndx != SHN_UNDEF)
            continue;
        const char *name = symbol_name(view, pair[1]);
        if (name[0] == '\0' || strcmp(name, "__assertfail") == 0)
            continue; /* a failed assertion ends the context whether replayed or not */
        cubin_kernel *kernel = find_kernel(record, symbol_name(view, pair[0]));
        bool is_entry = kernel && kernel->is_entry;
        if (is_entry)
            note_call(kernel, name);
        /* Kernels call this function, and any of them may be the one. */
        for (size_t k = 0; !is_entry && k < record->kernel_count; k++)
            note_call(&record->kernels[k], name);
    }
}

/* ptxas leaves the attribute out where a kernel has no barrier. */
static void read_attributes(const cubin_view *view, const Elf64_Shdr *section, cubin_kernel *kernel)
{
    const unsigned char *bytes = range_at(view, section->sh_offset, section->sh_size);
    kernel->barriers = bytes != NULL;
    for (size_t at = 0; bytes && section->sh_size - at >= 4;) {
        uint16_t value;
        memcpy(&value, bytes + at + 2, sizeof value);
        const unsigned number = bytes[at] == FORMAT_BYTE ? bytes[at + 2] : value; /* the linker writes a byte */
        if ((bytes[at] == FORMAT_BYTE || bytes[at] == FORMAT_VALUE) && bytes[at + 1] == NUM_BARRIERS)
            kernel->barriers = number <= MOST_BARRIERS ? number + 1 : 0;
        const size_t rest = section->sh_size - at - 4, more = bytes[at] == FORMAT_SIZED ? value : 0;
        at += 4 + (more < rest ? more : rest);
    }
}

static void read_section(const cubin_view *view, size_t index, cubin_record *record)
{
    const Elf64_Shdr section = section_at(view, index);
    const char *name = section_name(view, index);
    const char *described = kprof_after(name, ".nv.info.");
    cubin_kernel *kernel = described ? find_kernel(record, described) : NULL;
    if (kernel)
        read_attributes(view, &section, kernel);
    else if (strcmp(name, ".nv.callgraph") == 0)
        read_calls(view, &section, record);
}

/* A kernel that launches others has their side effects, too. */
static void spread_side_effects(cubin_record *record)
{
    const char *side_effect = NULL;
    for (size_t i = 0; i < record->kernel_count; i++)
        if (!outweighs(side_effect, record->kernels[i].side_effect))
            side_effect = record->kernels[i].side_effect;
    for (size_t i = 0; i < record->kernel_count; i++)
        if (record->kernels[i].launches && !outweighs(record->kernels[i].side_effect, side_effect))
            record->kernels[i].side_effect = side_effect;
}

static void free_record(cubin_record *record)
{
    for (size_t i = 0; i < record->kernel_count; i++)
        free(record->kernels[i].name);
    free(record->kernels);
    kprof_strlist_free(&record->variables);
    free(record);
}

static bool same_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same(const cubin_record *a, const cubin_record *b)
{
    bool same = a->kernel_count == b->kernel_count && a->variables.count == b->variables.count;
    for (size_t i = 0; same && i < a->kernel_count; i++)
        same = strcmp(a->kernels[i].name, b->kernels[i].name) == 0 &&
               same_texts(a->kernels[i].side_effect, b->kernels[i].side_effect) &&
               a->kernels[i].launches == b->kernels[i].launches && a->kernels[i].barriers == b->kernels[i].barriers;
    for (size_t i = 0; same && i < a->variables.count; i++)
        same = strcmp(a->variables.items[i], b->variables.items[i]) == 0;
    return same;
}

void kprof_modules_add(const void *cubin, size_t size)
{
    cubin_view view;
    cubin_record *record = open_view(cubin, size, &view) ? calloc(1, sizeof *record) : NULL;
    if (!record)
        return;
    if (!read_symbols(&view, record)) {
        free_record(record);
        return;
    }
    KPROF_HOLD(seen.mutex);
    for (size_t i = 0; i < view.section_count; i++)
        read_section(&view, i, record);
    spread_side_effects(record);
    cubin_record *listed = seen.cubins;
    while (listed && !is_same(listed, record))
        listed = listed->next;
    if (listed) { /* it has been loaded before */
        listed->is_noted = false;
        free_record(record);
    } else {
        record->next = seen.cubins;
        seen.cubins = record;
    }
}

const char *kprof_modules_side_effect(const char *kernel)
{
    const char *side_effect = NULL;
    bool is_known = false;
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next) {
        const cubin_kernel *found = find_kernel(record, kernel);
        is_known = is_known || found;
        if (found && !outweighs(side_effect, found->side_effect))
            side_effect = found->side_effect;
    }
    return is_known ? side_effect : "?";
}

const kprof_strlist *kprof_modules_variables(const char *kernel, size_t index)
{
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next)
        if (find_kernel(record, kernel) && index-- == 0)
            return &record->variables;
    return NULL;
}

void kprof_modules_note_variables(const kprof_strlist *variables)
{
    KPROF_HOLD(seen.mutex);
    for (cubin_record *record = seen.cubins; record; record = record->next)
        record->is_noted = record->is_noted || &record->variables == variables;
}

/* A cubin without a kernel has left no addresses anywhere: CUPTI tells of calls that ask for them all the time. */
static bool is_unnoted(const cubin_record *record)
{
    return record->variables.count > 0 && record->kernel_count > 0 && !record->is_noted;
}

void kprof_modules_tell_unnoted(void)
{
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next)
        if (is_unnoted(record))
            kprof_log(KPROF_LOG_DEBUG,
                      "nobody has noted the %zu variables, such as %s, of the cubin of %zu kernels, such as %s",
                      record->variables.count, record->variables.items[0], record->kernel_count,
                      record->kernels[0].name);
}

size_t kprof_modules_count_unnoted(const char *kernel)
{
    size_t count = 0;
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next)
        count += is_unnoted(record) && (!kernel || find_kernel(record, kernel));
    return count;
}

kprof_device_launches kprof_modules_device_launches(const char *kernel)
{
    kprof_device_launches answer = KPROF_DEVICE_LAUNCHES_UNKNOWN;
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next) {
        const cubin_kernel *found = find_kernel(record, kernel);
        if (found && answer != KPROF_DEVICE_LAUNCHES_SOME)
            answer = found->launches ? KPROF_DEVICE_LAUNCHES_SOME : KPROF_DEVICE_LAUNCHES_NONE;
    }
    return answer;
}

unsigned kprof_modules_barriers(const char *kernel)
{
    unsigned barriers = 0;
    bool differ = false;
    KPROF_HOLD(seen.mutex);
    for (const cubin_record *record = seen.cubins; record; record = record->next) {
        const cubin_kernel *found = find_kernel(record, kernel);
        differ = differ || (found && barriers && found->barriers != barriers);
        barriers = found ? found->barriers : barriers;
    }
    return differ ? 0 : barriers;
}
