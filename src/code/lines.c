/* Reads .debug_line with libdw, and the table of lines in PTX, which is another one. NVIDIA's tables differ from others
 * in three ways, which this file makes up for: each sequence of rows starts at address 0 until a relocation is applied;
 * an inlined row names its caller by the number of a row of its sequence, where libdw counts those of the table; and
 * there may be no .debug_info beside it. */
#include "code/lines.h"

#include "core/bisect.h"
#include "core/clean.h"
#include "core/names.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define R_CUDA_64 2

static const char no_lines[] = "the code was compiled without lines";
static const char damaged_lines[] = "the code's lines are damaged";
static const char too_many_lines[] = "the code has more lines than kprof reads";

/* Texts by number: each text once. What somebody else made up may be long and many: both have a limit. */
typedef struct intern {
    kprof_strlist *texts; /* borrowed: gets the texts */
    size_t bytes_left;    /* that further texts may have */
    size_t compared_left; /* bytes of texts that may still be looked up, new or not */
    kprof_names numbers;
} intern;

static bool take(size_t *left, size_t bytes)
{
    if (bytes > *left)
        return false;
    *left -= bytes;
    return true;
}

/* The number of a text in `texts`, which it joins when it is new. Returns KPROF_UNSUPPORTED past a limit. */
static kprof_status intern_text(intern *in, const char *text, uint32_t *number)
{
    size_t bytes = strlen(text) + 1;
    if (!take(&in->compared_left, bytes))
        return KPROF_UNSUPPORTED;
    size_t known = kprof_names_find(&in->numbers, text);
    if (known == KPROF_NAMES_NONE) {
        if (!take(&in->bytes_left, bytes))
            return KPROF_UNSUPPORTED;
        known = in->texts->count;
        kprof_strlist_add(in->texts, text);
        kprof_names_add(&in->numbers, in->texts->items[known], known);
    }
    *number = (uint32_t)known;
    return KPROF_OK;
}

/* A relocated address. libdw sorts rows by address, so each gets addresses of its own, in the order of the table: rows
 * stay in this order, and sequences apart. */
typedef struct window {
    uint64_t at;          /* in the table's section */
    uint64_t base, bytes; /* the addresses that libdw sees */
    size_t section;       /* where they are in the cubin */
    uint64_t section_offset;
} window;

/* From this address on, until that of the next row, code has these frames. */
typedef struct row {
    size_t section;
    uint64_t section_offset;
    size_t first_frame, frame_count; /* none at the end of a sequence */
    bool ends;
} row;

typedef struct reader {
    Elf *elf;
    kprof_code *code;
    const char *name;        /* of the section with the table */
    Elf_Data *lines, *texts; /* it, and .debug_str or NULL */
    size_t lines_index;
    bool *is_read; /* the sections that have functions which have been read */
    size_t section_count;
    kprof_strbuf windows, rows, frames, sources; /* arrays */
    intern files, names;
    size_t passed_over; /* frames of which there were too many for an instruction */
    Dwarf *dwarf;
    const char *state; /* why there are no lines; NULL while there may be some */
} reader;

/* The rows of one table, and the first of the sequence that is read. */
typedef struct table {
    Dwarf_Lines *lines;
    size_t count, first;
} table;

static bool find_sections(reader *r)
{
    size_t names_index;
    if (elf_getshdrstrndx(r->elf, &names_index) != 0)
        return false;
    GElf_Shdr header;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(r->elf, section)) && gelf_getshdr(section, &header);) {
        const char *name = header.sh_type == SHT_PROGBITS ? elf_strptr(r->elf, names_index, header.sh_name) : NULL;
        if (name && !strcmp(name, r->name)) {
            r->lines = elf_getdata(section, NULL);
            r->lines_index = elf_ndxscn(section);
        } else if (name && !strcmp(name, ".debug_str"))
            r->texts = elf_getdata(section, NULL);
    }
    if (!r->lines || r->lines->d_size == 0 || elf_getshdrnum(r->elf, &r->section_count) != 0)
        return false;
    r->is_read = kprof_calloc(r->section_count, sizeof *r->is_read);
    for (size_t i = 0; i < r->code->function_count; i++)
        r->is_read[r->code->functions[i].section_index] = true;
    return true;
}

/* Find the code that a relocation refers to; false where it refers to none. */
static bool find_code(const reader *r, const GElf_Sym *symbol, const GElf_Rela *relocation, window *found)
{
    GElf_Shdr header;
    Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(r->elf, symbol->st_shndx) : NULL;
    if (!section || !gelf_getshdr(section, &header) || header.sh_size > KPROF_CODE_MOST_BYTES)
        return false;
    *found = (window){.at = relocation->r_offset,
                      .section = symbol->st_shndx,
                      .section_offset = symbol->st_value + (uint64_t)relocation->r_addend};
    if (found->section_offset > header.sh_size)
        return false;
    found->bytes = header.sh_size - found->section_offset;
    return true;
}

static size_t window_count(const reader *r)
{
    return r->windows.length / sizeof(window);
}

/* Relocation number `i` with its addend, which before Hopper stands at the place itself. False: the place is not in the
 * table. */
static bool get_relocation(const reader *r, Elf_Data *data, size_t i, GElf_Rela *relocation)
{
    GElf_Rel plain;
    bool has_addend = data->d_type == ELF_T_RELA;
    if (has_addend ? !gelf_getrela(data, (int)i, relocation) : !gelf_getrel(data, (int)i, &plain))
        return false;
    if (!has_addend)
        *relocation = (GElf_Rela){.r_offset = plain.r_offset, .r_info = plain.r_info};
    if (GELF_R_TYPE(relocation->r_info) != R_CUDA_64 || relocation->r_offset > r->lines->d_size ||
        r->lines->d_size - relocation->r_offset < sizeof(uint64_t))
        return false;
    if (!has_addend)
        memcpy(&relocation->r_addend, (const char *)r->lines->d_buf + relocation->r_offset, sizeof(uint64_t));
    return true;
}

static void read_relocations(reader *r, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Scn *symbols_section = elf_getscn(r->elf, header->sh_link);
    Elf_Data *symbols = symbols_section ? elf_getdata(symbols_section, NULL) : NULL;
    Elf_Data *data = elf_getdata(section, NULL);
    if (!symbols || symbols->d_type != ELF_T_SYM || !data || (data->d_type != ELF_T_RELA && data->d_type != ELF_T_REL))
        return;
    size_t size = data->d_type == ELF_T_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (size_t i = 0; i < data->d_size / size && !r->state; i++) {
        GElf_Rela relocation;
        GElf_Sym symbol;
        window found;
        if (get_relocation(r, data, i, &relocation) &&
            gelf_getsym(symbols, (int)GELF_R_SYM(relocation.r_info), &symbol) &&
            find_code(r, &symbol, &relocation, &found))
            kprof_strbuf_append(&r->windows, &found, sizeof found);
        if (window_count(r) > r->lines->d_size)
            r->state = damaged_lines;
    }
}

KPROF_BY_NUMBER(compare_windows, window, at)

/* Apply the relocations to a copy of the section. */
static void relocate(reader *r, uint8_t *lines)
{
    window *windows = (window *)r->windows.data;
    if (window_count(r) > 0)
        qsort(windows, window_count(r), sizeof *windows, compare_windows);
    uint64_t next = KPROF_CODE_INSTRUCTION_BYTES;
    for (size_t i = 0; i < window_count(r); i++) {
        windows[i].base = next;
        next += windows[i].bytes + KPROF_CODE_INSTRUCTION_BYTES;
        memcpy(lines + windows[i].at, &windows[i].base, sizeof windows[i].base);
    }
}

static uint64_t get_number(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

/* libdw puts a directory before the name of each file of a table, so few bytes may ask for much memory. Returns the
 * most bytes that it may take for the table of these many bytes, or SIZE_MAX where it is none of DWARF 2 to 4. */
static size_t directory_bytes(const uint8_t *unit, size_t size)
{
    enum { VERSION = 4, OPCODES = 14, SMALLEST_FILE = 5 };
    uint64_t version = size > OPCODES + 1 ? get_number(unit + VERSION, 2) : 0;
    if (version < 2 || version > 4)
        return SIZE_MAX;
    size_t at = version == 4 ? OPCODES + 1 : OPCODES;
    at += unit[at] > 0 ? unit[at] : 1;
    size_t longest = 0;
    while (at < size && unit[at] != '\0') {
        size_t length = strnlen((const char *)unit + at, size - at);
        longest = length > longest ? length : longest;
        at += length + 1;
    }
    return longest * (size / SMALLEST_FILE);
}

/* Is the section one that libdw reads in little time and memory? */
static bool is_harmless(reader *r)
{
    const uint8_t *bytes = r->lines->d_buf;
    size_t size = r->lines->d_size, needed = 0;
    if (size > KPROF_CODE_MOST_LINE_BYTES || (r->texts && r->texts->d_size > KPROF_CODE_MOST_NAMES)) {
        r->state = too_many_lines;
        return false;
    }
    for (size_t at = 0; at + sizeof(uint32_t) <= size;) {
        size_t length = get_number(bytes + at, sizeof(uint32_t)) + sizeof(uint32_t);
        size_t more = length <= size - at ? directory_bytes(bytes + at, length) : SIZE_MAX;
        needed = more <= KPROF_CODE_MOST_DIRECTORY_BYTES ? needed + more : SIZE_MAX;
        if (needed > KPROF_CODE_MOST_DIRECTORY_BYTES) {
            r->state = more == SIZE_MAX ? damaged_lines : too_many_lines;
            return false;
        }
        at += length;
    }
    return true;
}

static void set_section(Elf64_Shdr *section, uint32_t name, uint64_t offset, uint64_t size)
{
    section->sh_name = name;
    section->sh_type = SHT_PROGBITS;
    section->sh_offset = offset;
    section->sh_size = size;
    section->sh_addralign = 1;
}

/* An ELF file with these two sections alone, so that libdw looks at nothing else. */
static char *make_image(const reader *r, size_t *size)
{
    static const char names[] = "\0.shstrtab\0.debug_line\0.debug_str";
    enum { NAMES = 1, LINES = 11, TEXTS = 23 };
    struct {
        Elf64_Ehdr file;
        Elf64_Shdr sections[4];
        char names[sizeof names];
    } head = {.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_EXEC,
                       .e_machine = EM_CUDA,
                       .e_version = EV_CURRENT,
                       .e_shoff = sizeof(Elf64_Ehdr),
                       .e_ehsize = sizeof(Elf64_Ehdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 4,
                       .e_shstrndx = 1}};
    size_t texts_size = r->texts ? r->texts->d_size : 0;
    memcpy(head.names, names, sizeof names);
    set_section(&head.sections[1], NAMES, (uint64_t)(head.names - (char *)&head), sizeof names);
    head.sections[1].sh_type = SHT_STRTAB;
    set_section(&head.sections[2], LINES, sizeof head, r->lines->d_size);
    set_section(&head.sections[3], TEXTS, sizeof head + r->lines->d_size, texts_size);
    *size = sizeof head + r->lines->d_size + texts_size;
    char *image = kprof_calloc(1, *size);
    memcpy(image, &head, sizeof head);
    memcpy(image + sizeof head, r->lines->d_buf, r->lines->d_size);
    if (texts_size > 0)
        memcpy(image + sizeof head + r->lines->d_size, r->texts->d_buf, texts_size);
    return image;
}

/* The number of a line that libdw gave; its array holds them one after the other. */
static size_t number_of(const table *t, const Dwarf_Line *line)
{
    size_t place;
    KPROF_BISECT(place, t->count, (uintptr_t)dwarf_onesrcline(t->lines, middle) < (uintptr_t)line)
    return place;
}

/* The byte that an escape after its first character stands for: "303"; 0 for a text that is none. */
static uint8_t read_escape(const char *digits)
{
    bool is_escape = (digits[0] == '2' || digits[0] == '3') && digits[1] >= '0' && digits[1] <= '7' &&
                     digits[2] >= '0' && digits[2] <= '7';
    return is_escape ? (uint8_t)((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0')) : 0;
}

/* Append the character at `at` that compilers wrote as escapes, "\303\274": in PTX each byte beyond ASCII is one. nvcc
 * takes the last backslash of a path for a slash, so that may begin an escape within a character. Returns the length of
 * the escapes; 0 where none stand there. */
static size_t add_escaped(const char *at, kprof_strbuf *out)
{
    enum { ESCAPE = 4, MOST_BYTES = 4 };
    char bytes[MOST_BYTES + 1] = "";
    uint32_t code;
    for (size_t i = 0; i < MOST_BYTES; i++, at += ESCAPE) {
        bytes[i] = *at == '\\' || (*at == '/' && i > 0) ? (char)read_escape(at + 1) : '\0';
        if (bytes[i] == '\0')
            return 0;
        if (kprof_utf8_decode(bytes, &code) == i + 1) {
            kprof_strbuf_append(out, bytes, i + 1);
            return (i + 1) * ESCAPE;
        }
    }
    return 0;
}

static kprof_status intern_path(reader *r, const char *path, uint32_t *number)
{
    if (!strchr(path, '\\'))
        return intern_text(&r->files, path, number);
    KPROF_AUTO(kprof_strbuf) plain = KPROF_STRBUF_INIT;
    while (*path) {
        size_t length = add_escaped(path, &plain);
        if (length == 0)
            kprof_strbuf_append(&plain, path, 1);
        path += length > 0 ? length : 1;
    }
    return intern_text(&r->files, plain.data, number);
}

/* The row of the function that a row was inlined into; `index`: it was not. */
static size_t caller_of(const table *t, size_t index)
{
    Dwarf_Line *context = dwarf_linecontext(t->lines, dwarf_onesrcline(t->lines, index));
    const size_t caller = context ? t->first + number_of(t, context) : index;
    return caller < index ? caller : index;
}

/* Append the frame of a row. Returns the row of the function that it was inlined into, else `index`. */
static size_t add_frame(reader *r, const table *t, size_t index)
{
    Dwarf_Line *line = dwarf_onesrcline(t->lines, index);
    kprof_code_frame frame = {.name = KPROF_CODE_NO_NAME};
    int number;
    Dwarf_Word modified, bytes;
    const char *path = dwarf_linesrc(line, &modified, &bytes);
    if (!path || dwarf_lineno(line, &number) != 0 || number <= 0)
        return index;
    frame.line = (uint32_t)number;
    const size_t caller = caller_of(t, index);
    const char *name = caller < index ? dwarf_linefunctionname(r->dwarf, line) : NULL;
    kprof_status status = intern_path(r, path, &frame.file);
    if (status == KPROF_OK && frame.file == r->sources.length / sizeof(kprof_code_source))
        kprof_strbuf_append(&r->sources, &(kprof_code_source){bytes, modified}, sizeof(kprof_code_source));
    if (status == KPROF_OK && name && *name)
        status = intern_text(&r->names, name, &frame.name);
    if (status == KPROF_OK && r->frames.length / sizeof frame == KPROF_CODE_MOST_FRAMES)
        status = KPROF_UNSUPPORTED;
    if (status != KPROF_OK) {
        r->state = too_many_lines;
        return index;
    }
    kprof_strbuf_append(&r->frames, &frame, sizeof frame);
    return caller;
}

/* The last row on the way from one to its callers. */
static size_t outermost_of(reader *r, const table *t, size_t index)
{
    for (size_t caller; (caller = caller_of(t, index)) != index && !r->state; index = caller)
        if (++r->passed_over > KPROF_CODE_MOST_FRAMES)
            r->state = too_many_lines;
    return index;
}

static void add_row(reader *r, const table *t, size_t index, row added)
{
    added.first_frame = r->frames.length / sizeof(kprof_code_frame);
    for (size_t depth = 1; !added.ends && depth <= KPROF_CODE_MOST_DEPTH; depth++) {
        if (depth == KPROF_CODE_MOST_DEPTH) /* the line of the kernel itself is worth more than another one's */
            index = outermost_of(r, t, index);
        size_t caller = add_frame(r, t, index);
        if (caller == index || r->state)
            break;
        index = caller;
    }
    added.frame_count = r->frames.length / sizeof(kprof_code_frame) - added.first_frame;
    kprof_strbuf_append(&r->rows, &added, sizeof added);
}

static void read_table(reader *r, table *t)
{
    const window *windows = (const window *)r->windows.data;
    Dwarf_Addr address, next = 0;
    bool ends = false;
    for (size_t i = 0; i < t->count && !r->state; i++) {
        Dwarf_Line *line = dwarf_onesrcline(t->lines, i), *after = dwarf_onesrcline(t->lines, i + 1);
        if (ends)
            t->first = i;
        if (dwarf_lineaddr(line, &address) != 0 || dwarf_lineendsequence(line, &ends) != 0)
            return;
        size_t low;
        KPROF_BISECT(low, window_count(r), windows[middle].base + windows[middle].bytes < address)
        const window *in = low < window_count(r) && windows[low].base <= address ? &windows[low] : NULL;
        /* The last one of rows with one address holds; the others are callers. */
        if (in && r->is_read[in->section] && (ends || !after || dwarf_lineaddr(after, &next) != 0 || next != address))
            add_row(r, t, i, (row){in->section, in->section_offset + (address - in->base), 0, 0, ends});
    }
}

static _Thread_local jmp_buf out_of_memory;

/* libdw would end the program otherwise, and leave files behind. */
__attribute__((noreturn)) static void leave(void)
{
    kprof_memory_note_lack();
    longjmp(out_of_memory, 1);
}

static void read_tables(reader *r)
{
    dwarf_new_oom_handler(r->dwarf, leave);
    if (setjmp(out_of_memory)) {
        r->state = damaged_lines;
        return;
    }
    Dwarf_Off at = 0, next;
    Dwarf_CU *unit = NULL;
    for (int got = 0; got == 0 && !r->state; at = next) {
        table t = {0};
        Dwarf_Files *files;
        size_t file_count;
        got = dwarf_next_lines(r->dwarf, at, &next, &unit, &files, &file_count, &t.lines, &t.count);
        if (got == 0)
            read_table(r, &t);
        else if (got < 0)
            r->state = damaged_lines;
    }
}

static void read_image(reader *r)
{
    size_t size;
    KPROF_AUTO_FREE char *image = make_image(r, &size);
    relocate(r, (uint8_t *)image + size - r->lines->d_size - (r->texts ? r->texts->d_size : 0));
    Elf *elf = elf_memory(image, size);
    r->dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    if (r->dwarf)
        read_tables(r);
    else
        r->state = damaged_lines;
    dwarf_end(r->dwarf);
    elf_end(elf);
}

/* By address; where a sequence ends and another one begins, the end first. The array is in the order of the table. */
static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int sections = KPROF_COMPARE(x->section, y->section);
    const int offsets = KPROF_COMPARE(x->section_offset, y->section_offset);
    if (sections || offsets || x->ends != y->ends)
        return sections ? sections : offsets ? offsets : x->ends ? -1 : 1;
    return KPROF_COMPARE(x->first_frame, y->first_frame);
}

/* The last row at this place or before it. */
static const row *find_row(const reader *r, size_t section, uint64_t section_offset)
{
    const row *rows = (const row *)r->rows.data;
    size_t low;
    KPROF_BISECT(low, r->rows.length / sizeof *rows,
                 rows[middle].section < section ||
                     (rows[middle].section == section && rows[middle].section_offset <= section_offset))
    return low > 0 && rows[low - 1].section == section ? &rows[low - 1] : NULL;
}

/* Give each instruction the frames of its row or, of PTX, the line. */
static void give_rows(reader *r, bool of_ptx)
{
    kprof_code *code = r->code;
    const kprof_code_frame *frames = (const kprof_code_frame *)r->frames.data;
    for (size_t i = 0; i < code->function_count && !r->state; i++) {
        kprof_code_function *function = &code->functions[i];
        for (size_t j = 0; j < function->count; j++) {
            kprof_code_instruction *instruction = &function->instructions[j];
            const row *at = find_row(r, function->section_index, function->section_offset + instruction->offset);
            if (!at || at->frame_count == 0)
                continue;
            const kprof_code_frame *frame = &frames[at->first_frame];
            if (of_ptx)
                instruction->ptx = frame->file, instruction->ptx_line = frame->line;
            else
                instruction->first_frame = at->first_frame, instruction->frame_count = at->frame_count;
        }
    }
}

static intern intern_into(kprof_strlist *texts)
{
    enum { COMPARED_PER_KEPT = 16 };
    return (intern){.texts = texts,
                    .bytes_left = KPROF_CODE_MOST_NAMES,
                    .compared_left = KPROF_CODE_MOST_NAMES * COMPARED_PER_KEPT};
}

static void read_section(reader *r)
{
    if (find_sections(r) && is_harmless(r)) {
        GElf_Shdr header;
        for (Elf_Scn *section = NULL; (section = elf_nextscn(r->elf, section)) && gelf_getshdr(section, &header);)
            if ((header.sh_type == SHT_RELA || header.sh_type == SHT_REL) && header.sh_info == r->lines_index)
                read_relocations(r, section, &header);
        if (!r->state)
            read_image(r);
    }
    if (!r->state && r->frames.length == 0)
        r->state = no_lines;
    if (!r->state && r->rows.length > 0)
        qsort(r->rows.data, r->rows.length / sizeof(row), sizeof(row), compare_rows);
}

static void forget(reader *r)
{
    free(r->is_read);
    KPROF_FREE_TEXTS(&r->windows, &r->rows, &r->frames, &r->sources);
    kprof_names_free(&r->files.numbers);
    kprof_names_free(&r->names.numbers);
}

void kprof_code_read_lines(Elf *elf, kprof_code *code)
{
    reader r = {.elf = elf,
                .code = code,
                .name = ".debug_line",
                .files = intern_into(&code->files),
                .names = intern_into(&code->names)};
    read_section(&r);
    give_rows(&r, false);
    if (!r.state) {
        code->frame_count = r.frames.length / sizeof(kprof_code_frame);
        code->frames = (kprof_code_frame *)r.frames.data;
        code->sources = (kprof_code_source *)r.sources.data;
        r.frames = r.sources = (kprof_strbuf)KPROF_STRBUF_INIT;
    }
    code->line_state = r.state ? r.state : "";
    forget(&r);
}

bool kprof_code_read_ptx_lines(Elf *elf, kprof_code *code, kprof_strlist *texts)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    reader r = {.elf = elf,
                .code = code,
                .name = ".nv_debug_line_sass",
                .files = intern_into(texts),
                .names = intern_into(&names)};
    read_section(&r);
    give_rows(&r, true);
    forget(&r);
    return !r.state;
}
