/* The PTX that a cubin was assembled from: ptxas keeps it in a section, with a NUL at the end of each line, and lines
 * of instructions in a table of their own, where the PTX had lines of its source or -lineinfo was given. */
#include "code/lines.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* The section with the text; NULL where there is none, or several, whose lines one table tells apart in a way that
 * nobody has written down. */
static Elf_Data *find_text(Elf *elf)
{
    static const char name_of_text[] = ".nv_debug_ptx_txt";
    size_t names_index, count = 0;
    if (elf_getshdrstrndx(elf, &names_index) != 0)
        return NULL;
    GElf_Shdr header;
    Elf_Data *text = NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header);) {
        const char *name = header.sh_type == SHT_PROGBITS ? elf_strptr(elf, names_index, header.sh_name) : NULL;
        if (!name || strncmp(name, name_of_text, strlen(name_of_text)) != 0)
            continue;
        text = elf_getdata(section, NULL);
        count++;
    }
    return count == 1 && text && text->d_buf && text->d_size <= KPROF_CODE_MOST_PTX_BYTES ? text : NULL;
}

void kprof_code_read_ptx(Elf *elf, kprof_code *code)
{
    const Elf_Data *text = find_text(elf);
    if (!text || !kprof_code_read_ptx_lines(elf, code))
        return;
    uint32_t lines = 0;
    code->ptx = kprof_calloc(1, text->d_size + 1);
    code->ptx_size = text->d_size;
    memcpy(code->ptx, text->d_buf, text->d_size);
    code->ptx[text->d_size] = '\0';
    for (size_t i = 0; i < text->d_size; i++) {
        lines += code->ptx[i] == '\0' || code->ptx[i] == '\n';
        code->ptx[i] = code->ptx[i] == '\0' ? '\n' : code->ptx[i];
    }
    bool are_in_text = true;
    for (size_t i = 0; i < code->function_count; i++)
        for (size_t j = 0; j < code->functions[i].count; j++)
            are_in_text = are_in_text && code->functions[i].instructions[j].ptx_line <= lines + 1;
    for (size_t i = 0; i < code->function_count && !are_in_text; i++)
        for (size_t j = 0; j < code->functions[i].count; j++)
            code->functions[i].instructions[j].ptx_line = 0;
    if (are_in_text)
        return;
    free(code->ptx);
    code->ptx = NULL;
    code->ptx_size = 0;
}
