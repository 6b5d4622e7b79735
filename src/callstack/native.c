/* unwind.c finds the callers; glibc does where the tables have what unwind.c does not know. No library for unwinding is
 * linked: it would bring functions of its own by the names that the application's exceptions call. ELF files are read
 * piece by piece: a mapped file that somebody shortens meanwhile would end the program. */
#include "callstack/native.h"

#include "core/files.h"
#include "core/filter.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_FRAMES 512

/* The linker sets these: the first byte of the module that has this code, and the end. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* NOLINT(bugprone-reserved-identifier) */
extern const char _end[] __attribute__((visibility("hidden")));         /* NOLINT(bugprone-reserved-identifier) */

static bool is_own(uintptr_t address)
{
    return address >= (uintptr_t)__ehdr_start && address < (uintptr_t)_end;
}

static char program[PATH_MAX]; /* its path; "": not known */

void kprof_native_prepare(void)
{
    void *frames[2];
    (void)backtrace(frames, 2);
    kprof_unwind_prepare();
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
}

static size_t walk_by_glibc(uintptr_t *addresses, size_t most, bool *cut)
{
    void *frames[MOST_FRAMES];
    const size_t wanted = most < MOST_FRAMES - 32 ? most + 32 : MOST_FRAMES; /* kprof's and CUPTI's own beside them */
    const int got = backtrace(frames, (int)wanted);
    int first = 0;
    size_t count = 0;
    while (first < got && is_own((uintptr_t)frames[first]))
        first++;
    for (int i = first; i < got && count < most; i++)
        addresses[count++] = (uintptr_t)frames[i];
    *cut = got == (int)wanted || (size_t)(got - first) > count;
    return count;
}

/* With a frame of its own, which begins with the caller's frame pointer and the return address. */
__attribute__((noinline)) size_t kprof_native_walk(kprof_unwind_rules *rules, uintptr_t *addresses, size_t most,
                                                   bool *cut)
{
    const uintptr_t *here = __builtin_frame_address(0);
    kprof_unwind_frame frame = {.frame = here[0], .address = here[1], .stack = (uintptr_t)(here + 2)};
    kprof_unwind_step step = KPROF_UNWIND_CALLER;
    size_t count = 0;
    for (; step == KPROF_UNWIND_CALLER && count < most; step = kprof_unwind_caller(rules, &frame))
        if (count > 0 || !is_own(frame.address))
            addresses[count++] = frame.address;
    *cut = step == KPROF_UNWIND_CALLER;
    return step == KPROF_UNWIND_UNKNOWN ? walk_by_glibc(addresses, most, cut) : count;
}

const char *kprof_native_module(uintptr_t address, uint64_t *offset)
{
    Dl_info info;
    struct link_map *map = NULL;
    const void *call = (const void *)(address - 1); /* NOLINT(performance-no-int-to-ptr): never followed */
    if (!dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    *offset = address - 1 - map->l_addr;
    if (!*map->l_name && *program) /* the linker calls it what the shell called it, such as ./app */
        return program;
    static char path[PATH_MAX];
    return info.dli_fname[0] != '/' && realpath(info.dli_fname, path) ? path : info.dli_fname;
}

#define MOST_NAME_BYTES 4096
#define AT_ONCE         1024

/* A table of symbols, and the table with their names. */
typedef struct symbol_table {
    uint64_t offset, bytes, names_offset, names_bytes;
} symbol_table;

static bool read_section(int file, const Elf64_Ehdr *header, uint32_t number, Elf64_Shdr *out)
{
    return number < header->e_shnum &&
           kprof_read_at(file, out, sizeof *out, header->e_shoff + (uint64_t)number * header->e_shentsize) ==
               sizeof *out;
}

/* A stripped file has dynamic symbols alone. */
static bool find_table(int file, symbol_table *out)
{
    Elf64_Ehdr header;
    Elf64_Shdr section, names;
    bool is_found = false;
    if (kprof_read_at(file, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize < sizeof section)
        return false;
    for (uint32_t i = 0; read_section(file, &header, i, &section); i++) {
        const bool is_full = section.sh_type == SHT_SYMTAB;
        if ((!is_full && (is_found || section.sh_type != SHT_DYNSYM)) ||
            !read_section(file, &header, section.sh_link, &names))
            continue;
        *out = (symbol_table){section.sh_offset, section.sh_size, names.sh_offset, names.sh_size};
        is_found = true;
        if (is_full)
            break;
    }
    return is_found;
}

static bool find_symbol(int file, const symbol_table *table, uint64_t address, Elf64_Sym *out)
{
    Elf64_Sym symbols[AT_ONCE];
    ssize_t got = 1;
    for (uint64_t at = 0; at < table->bytes && table->offset + at <= INT64_MAX && got > 0; at += (uint64_t)got) {
        got = pread(file, symbols, sizeof symbols, (off_t)(table->offset + at));
        got -= got > 0 ? got % (ssize_t)sizeof *symbols : 0;
        const uint64_t left = table->bytes - at;
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *symbols && i < left / sizeof *symbols; i++) {
            *out = symbols[i];
            const int type = ELF64_ST_TYPE(out->st_info);
            if ((type == STT_FUNC || type == STT_GNU_IFUNC) && out->st_shndx != SHN_UNDEF && address >= out->st_value &&
                address - out->st_value < out->st_size)
                return true;
        }
    }
    return false;
}

static char *read_name(int file, const symbol_table *table, uint32_t at)
{
    char text[MOST_NAME_BYTES + 1];
    const uint64_t left = at < table->names_bytes ? table->names_bytes - at : 0;
    const size_t most = left < MOST_NAME_BYTES ? (size_t)left : MOST_NAME_BYTES;
    if (table->names_offset > INT64_MAX - UINT32_MAX)
        return NULL;
    const ssize_t got = pread(file, text, most, (off_t)(table->names_offset + at));
    if (got <= 0)
        return NULL;
    text[got] = '\0';
    return *text ? kprof_demangle_name(text) : NULL;
}

char *kprof_symbol_find(const char *module, uint64_t address)
{
    symbol_table table;
    Elf64_Sym symbol;
    char *name = NULL;
    const int before = errno;
    const bool is_program =
        strcmp(module, program) == 0; /* there may be another build by now; /proc/self/exe is what runs */
    const int file = open(is_program ? "/proc/self/exe" : module, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && find_table(file, &table) && find_symbol(file, &table, address, &symbol))
        name = read_name(file, &table, symbol.st_name);
    if (file >= 0)
        close(file);
    errno = before;
    return name;
}
