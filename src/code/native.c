/* Symbols come from the symbol table or, in a stripped file, from the dynamic one. That may not have the function,
 * which is not known then. Lines come from DWARF, where it has a table of addresses. */
#include "code/native.h"
#include "core/strbuf.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Debug information of a larger file is left alone: it would be read whole. */
#define MOST_BYTES_WITH_LINES ((off_t)512 << 20)

struct kprof_native_module {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL: none */
    Elf_Data *symbols;
    size_t symbol_count, names; /* `names`: the section with those of symbols */
};

static void find_symbols(kprof_native_module *module)
{
    GElf_Shdr header;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(module->elf, s)) && gelf_getshdr(s, &header);) {
        const bool is_full = header.sh_type == SHT_SYMTAB;
        if ((!is_full && (header.sh_type != SHT_DYNSYM || module->symbols)) || header.sh_entsize == 0)
            continue;
        module->symbols = elf_getdata(s, NULL);
        module->symbol_count = module->symbols ? header.sh_size / header.sh_entsize : 0;
        module->names = header.sh_link;
        if (is_full)
            break;
    }
}

kprof_native_module *kprof_native_open(const char *path)
{
    struct stat info;
    kprof_native_module *module = kprof_calloc(1, sizeof *module);
    if (!module)
        return NULL;
    (void)elf_version(EV_CURRENT);
    const bool is_file = stat(path, &info) == 0 && S_ISREG(info.st_mode); /* opening a device may have an effect */
    module->fd = is_file ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
    if (module->fd >= 0 && fstat(module->fd, &info) == 0 && S_ISREG(info.st_mode))
        module->elf = elf_begin(module->fd, ELF_C_READ, NULL); /* not mapped: the file may become shorter */
    if (!module->elf || elf_kind(module->elf) != ELF_K_ELF) {
        kprof_native_close(module);
        return NULL;
    }
    find_symbols(module);
    if (info.st_size <= MOST_BYTES_WITH_LINES)
        module->dwarf = dwarf_begin_elf(module->elf, DWARF_C_READ, NULL);
    return module;
}

void kprof_native_close(kprof_native_module *module)
{
    if (module->dwarf)
        (void)dwarf_end(module->dwarf);
    if (module->elf)
        (void)elf_end(module->elf);
    if (module->fd >= 0)
        (void)close(module->fd);
    free(module);
}

kprof_native_place kprof_native_find(kprof_native_module *module, uint64_t address)
{
    kprof_native_place place = {NULL, NULL, 0};
    Dwarf_Die unit;
    int line = 0;
    for (size_t i = 0; i < module->symbol_count && !place.function; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(module->symbols, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_shndx == SHN_UNDEF)
            continue;
        if (address >= symbol.st_value && address - symbol.st_value < symbol.st_size)
            place.function = elf_strptr(module->elf, module->names, symbol.st_name);
    }
    Dwarf_Line *found =
        module->dwarf && dwarf_addrdie(module->dwarf, address, &unit) ? dwarf_getsrc_die(&unit, address) : NULL;
    if (found && dwarf_lineno(found, &line) == 0 && line > 0) {
        place.file = dwarf_linesrc(found, NULL, NULL);
        place.line = place.file ? (uint32_t)line : 0;
    }
    return place;
}
