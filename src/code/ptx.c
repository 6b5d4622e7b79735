/* The PTX that a cubin was assembled from: ptxas keeps it in a section, with a NUL at the end of each line, and lines
 * of instructions in a table of their own, where the PTX had lines of its source or -lineinfo was given. A cubin that
 * was linked has several such sections, by whose names its tables call them. */
#include "code/lines.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Give each of the texts that lines are of the section of its name; a table alone names none, and there is one. */
static void find_texts(Elf *elf, const kprof_strlist *names, Elf_Data **found)
{
    static const char prefix[] = ".nv_debug_ptx_txt";
    size_t names_index, count = 0;
    if (elf_getshdrstrndx(elf, &names_index) != 0)
        return;
    GElf_Shdr header;
    Elf_Data *text = NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header);) {
        const char *name = header.sh_type == SHT_PROGBITS ? elf_strptr(elf, names_index, header.sh_name) : NULL;
        if (!name || !kprof_begins_with(name, prefix))
            continue;
        text = elf_getdata(section, NULL);
        count++;
        for (size_t i = 0; i < names->count; i++)
            found[i] = strcmp(name, names->items[i]) == 0 ? text : found[i];
    }
    if (count == 1 && names->count == 1)
        found[0] = text;
}

/* Returns the number of lines. */
static uint32_t read_text(const Elf_Data *from, kprof_code_ptx *out)
{
    uint32_t lines = 1;
    out->text = kprof_calloc(1, from->d_size + 1);
    out->size = from->d_size;
    memcpy(out->text, from->d_buf, from->d_size);
    for (size_t i = 0; i < from->d_size; i++) {
        lines += out->text[i] == '\0' || out->text[i] == '\n';
        out->text[i] = out->text[i] == '\0' ? '\n' : out->text[i];
    }
    return lines;
}

/* Forget the lines of a function that the texts do not have, and those of texts without a line. */
static void check_lines(kprof_code_function *function, uint32_t *lines)
{
    for (size_t i = 0; i < function->count; i++) {
        kprof_code_instruction *at = &function->instructions[i];
        if (at->ptx_line > lines[at->ptx])
            lines[at->ptx] = at->ptx_line = 0;
    }
}

/* Drop texts that have fewer lines than instructions name. */
static void drop_texts(kprof_code *code, uint32_t *lines)
{
    for (size_t i = 0; i < 2 * code->function_count; i++) /* once to find them, and once to forget their lines */
        check_lines(&code->functions[i % code->function_count], lines);
    for (size_t i = 0; i < code->ptx_count; i++)
        if (lines[i] == 0) {
            free(code->ptx[i].text);
            code->ptx[i] = (kprof_code_ptx){0};
        }
}

void kprof_code_read_ptx(Elf *elf, kprof_code *code)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    const bool has_lines = kprof_code_read_ptx_lines(elf, code, &names);
    const size_t count = has_lines && names.count <= KPROF_CODE_MOST_PTX_TEXTS ? names.count : 0;
    KPROF_AUTO_FREE Elf_Data **texts = kprof_calloc(count + 1, sizeof *texts);
    KPROF_AUTO_FREE uint32_t *lines = kprof_calloc(names.count + 1, sizeof *lines);
    code->ptx = kprof_calloc(count + 1, sizeof *code->ptx);
    code->ptx_count = count;
    if (count > 0)
        find_texts(elf, &names, texts);
    size_t left = KPROF_CODE_MOST_PTX_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (!texts[i] || !texts[i]->d_buf || texts[i]->d_size > left)
            continue;
        left -= texts[i]->d_size;
        lines[i] = read_text(texts[i], &code->ptx[i]);
    }
    drop_texts(code, lines);
}
