/* Reads ELF files piece by piece: a mapped file that somebody shortens meanwhile would end the program. */
#include "callstack/symbols.h"

#include "callstack/native.h"
#include "core/files.h"
#include "core/filter.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

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

static bool has_address(const Elf64_Sym *symbol, uint64_t address)
{
    const int type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           address >= symbol->st_value && address - symbol->st_value < symbol->st_size;
}

static bool find_symbol(int file, const symbol_table *table, uint64_t address, Elf64_Sym *out)
{
    Elf64_Sym symbols[AT_ONCE];
    ssize_t got = 1;
    for (uint64_t at = 0; at < table->bytes && table->offset + at <= INT64_MAX && got > 0; at += (uint64_t)got) {
        got = pread(file, symbols, sizeof symbols, (off_t)(table->offset + at));
        got -= got > 0 ? got % (ssize_t)sizeof *symbols : 0;
        const uint64_t left = table->bytes - at;
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *symbols && i < left / sizeof *symbols; i++)
            if (has_address(&symbols[i], address)) {
                *out = symbols[i];
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
    const int file =
        open(kprof_native_is_program(module) ? "/proc/self/exe" : module, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && find_table(file, &table) && find_symbol(file, &table, address, &symbol))
        name = read_name(file, &table, symbol.st_name);
    if (file >= 0)
        close(file);
    errno = before;
    return name;
}
