/* Reads the sections and symbols of a cubin, with libelf. */
#include "code/code.h"

#include "code/lines.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The symbols of a cubin, and the texts that name them and the sections. */
typedef struct symbols {
    Elf *elf;
    Elf_Data *table;
    const char *names, *section_names; /* both end with a NUL */
    size_t names_size, section_names_size;
    kprof_strlist wanted; /* sorted */
    bool wants_all;
    size_t instructions_left; /* until the limits */
    size_t name_bytes_left;
} symbols;

static kprof_status damaged(kprof_code *out, const char *why)
{
    out->line_state = why;
    snprintf(out->text_state, sizeof out->text_state, "%s", why);
    return KPROF_BAD_REPORT;
}

/* The texts of a string table, which must end with a NUL; NULL where there is none such. */
static const char *read_texts(Elf *elf, size_t index, size_t *size)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, index);
    if (!section || !gelf_getshdr(section, &header) || header.sh_type != SHT_STRTAB)
        return NULL;
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !data->d_buf || data->d_size == 0 || ((const char *)data->d_buf)[data->d_size - 1] != '\0')
        return NULL;
    *size = data->d_size;
    return data->d_buf;
}

static bool find_symbols(symbols *from)
{
    GElf_Shdr header;
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(from->elf, section)) && gelf_getshdr(section, &header))
        if (header.sh_type == SHT_SYMTAB)
            break;
    size_t index;
    if (!section || elf_getshdrstrndx(from->elf, &index) != 0)
        return false;
    from->table = elf_getdata(section, NULL);
    from->names = read_texts(from->elf, header.sh_link, &from->names_size);
    from->section_names = read_texts(from->elf, index, &from->section_names_size);
    return from->table && from->names && from->section_names;
}

/* The code that a symbol names, but for its instructions; false where it names none that is wanted. */
static bool describe(const symbols *from, const GElf_Sym *symbol, kprof_code_function *function)
{
    GElf_Shdr header;
    if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_name >= from->names_size ||
        symbol->st_shndx >= SHN_LORESERVE)
        return false;
    function->mangled = (char *)from->names + symbol->st_name;
    if (!from->wants_all && !kprof_strlist_contains_sorted(&from->wanted, function->mangled))
        return false;
    Elf_Scn *section = elf_getscn(from->elf, symbol->st_shndx);
    if (!section || !gelf_getshdr(section, &header) || header.sh_name >= from->section_names_size)
        return false;
    function->section = (char *)from->section_names + header.sh_name;
    function->section_index = symbol->st_shndx;
    function->section_offset = symbol->st_value;
    function->bytes = symbol->st_size;
    return header.sh_type == SHT_PROGBITS && header.sh_flags & SHF_EXECINSTR &&
           kprof_begins_with(function->section, ".text.") && symbol->st_value <= header.sh_size &&
           symbol->st_size <= header.sh_size - symbol->st_value && header.sh_size <= KPROF_CODE_MOST_BYTES;
}

static void add_function(symbols *from, const kprof_code_function *described, kprof_code *out)
{
    kprof_code_function *function = KPROF_ADD(out->functions, out->function_count);
    *function = *described;
    function->mangled = kprof_strdup(described->mangled);
    function->section = kprof_strdup(described->section);
    function->instructions = kprof_calloc(function->count + 1, sizeof *function->instructions);
    Elf_Data *data = elf_getdata(elf_getscn(from->elf, function->section_index), NULL);
    for (size_t i = 0; i < function->count; i++) {
        kprof_code_instruction *instruction = &function->instructions[i];
        instruction->offset = i * KPROF_CODE_INSTRUCTION_BYTES;
        uint64_t at = function->section_offset + instruction->offset;
        uint64_t high; /* has the bits that schedule it: 21, since Volta, in front of three that nobody uses */
        if (!data || !data->d_buf || at + KPROF_CODE_INSTRUCTION_BYTES > data->d_size)
            continue;
        memcpy(&high, (const char *)data->d_buf + at + sizeof high, sizeof high);
        instruction->control = high >> 41 & ((1 << 21) - 1);
    }
}

static kprof_status read_functions(symbols *from, kprof_code *out)
{
    if (!find_symbols(from))
        return damaged(out, "the code has no symbols");
    size_t count = from->table->d_size / sizeof(Elf64_Sym);
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        kprof_code_function function = {.symbol = i};
        if (!gelf_getsym(from->table, (int)i, &symbol) || !describe(from, &symbol, &function))
            continue;
        function.count = function.bytes / KPROF_CODE_INSTRUCTION_BYTES;
        const size_t name_bytes = strlen(function.mangled) + strlen(function.section) + 2;
        if (out->function_count == KPROF_CODE_MOST_FUNCTIONS || function.count > from->instructions_left ||
            name_bytes > from->name_bytes_left)
            return damaged(out, "the code is larger than kprof reads");
        from->instructions_left -= function.count;
        from->name_bytes_left -= name_bytes;
        add_function(from, &function, out);
    }
    return KPROF_OK;
}

kprof_status kprof_code_read(const void *cubin, size_t size, const kprof_strlist *wanted, kprof_code *out)
{
    *out = (kprof_code)KPROF_CODE_INIT;
    snprintf(out->text_state, sizeof out->text_state, "the code was not disassembled");
    if (size > KPROF_CODE_MOST_BYTES)
        return damaged(out, "the code is larger than kprof reads");
    Elf64_Ehdr header = {0};
    if (size >= sizeof header)
        memcpy(&header, cubin, sizeof header);
    const bool is_cubin = !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                          header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_CUDA;
    if (!is_cubin || elf_version(EV_CURRENT) == EV_NONE)
        return damaged(out, "the code is no cubin");
    symbols from = {.elf = elf_memory((char *)cubin, size), /* which does not write there */
                    .wants_all = !wanted,
                    .instructions_left = KPROF_CODE_MOST_INSTRUCTIONS,
                    .name_bytes_left = KPROF_CODE_MOST_NAMES};
    if (!from.elf)
        return damaged(out, "the code is no cubin");
    if (wanted)
        kprof_strlist_add_all(&from.wanted, wanted);
    kprof_strlist_sort(&from.wanted);
    const kprof_status status = read_functions(&from, out);
    if (status == KPROF_OK) {
        kprof_code_read_lines(from.elf, out);
        kprof_code_read_ptx(from.elf, out);
    }
    kprof_strlist_free(&from.wanted);
    elf_end(from.elf);
    return status;
}

void kprof_code_free(kprof_code *code)
{
    for (size_t i = 0; i < code->function_count; i++) {
        kprof_code_function *function = &code->functions[i];
        for (size_t j = 0; function->instructions && j < function->count; j++)
            free(function->instructions[j].text);
        KPROF_FREE(function->instructions, function->mangled, function->section);
    }
    free(code->functions);
    KPROF_FREE_LISTS(&code->files, &code->names);
    for (size_t i = 0; i < code->ptx_count; i++)
        free(code->ptx[i].text);
    KPROF_FREE(code->frames, code->sources, code->waits, code->ptx);
    *code = (kprof_code)KPROF_CODE_INIT;
}
