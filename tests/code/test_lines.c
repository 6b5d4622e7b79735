/* The functions and lines of cubins that ptxas made, and of damaged ones. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/fixture.h"
#include "test.h"

static void put_frames(const kprof_code *code, const kprof_code_instruction *at, kprof_strbuf *out)
{
    if (at->frame_count == 0)
        kprof_strbuf_puts(out, " none");
    for (size_t i = 0; i < at->frame_count; i++) {
        const kprof_code_frame *frame = &code->frames[at->first_frame + i];
        const char *path = code->files.items[frame->file];
        kprof_strbuf_printf(out, " %s:%u", strrchr(path, '/') + 1, frame->line);
        if (frame->name != KPROF_CODE_NO_NAME)
            kprof_strbuf_printf(out, " %s", code->names.items[frame->name]);
    }
}

/* The lines of a function: "OFFSET FILE:LINE NAME FILE:LINE", one line for instructions in a row that have the same. */
static char *describe(const kprof_code *code, const char *mangled)
{
    kprof_strbuf out = KPROF_STRBUF_INIT, last = KPROF_STRBUF_INIT;
    const kprof_code_function *function = find_function(code, mangled);
    for (size_t j = 0; j < function->count; j++) {
        kprof_strbuf now = KPROF_STRBUF_INIT;
        put_frames(code, &function->instructions[j], &now);
        if (!last.data || strcmp(now.data, last.data) != 0)
            kprof_strbuf_printf(&out, "%llx%s\n", (unsigned long long)function->instructions[j].offset, now.data);
        kprof_strbuf_free(&last);
        last = now;
    }
    kprof_strbuf_printf(&out, "%llx\n", (unsigned long long)function->bytes);
    kprof_strbuf_free(&last);
    return kprof_strbuf_take(&out);
}

static void check_lines(const char *cubin, const char *mangled, const char *expected)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture(cubin, &size);
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    assert_string_equal(code.line_state, "");
    KPROF_AUTO_FREE char *found = describe(&code, mangled);
    assert_string_equal(found, expected);
    kprof_code_free(&code);
}

TEST(inlined_functions_have_callers)
{
    check_lines("lengths_sm90.cubin", "lengths",
                "0 lengths.cu:10\n"
                "10 lengths.cu:11\n"
                "50 lengths.cu:12\n"
                "80 lengths.cu:13\n"
                "110 lengths.cu:2 _Z6squaref lengths.cu:5 _Z4normff lengths.cu:13\n"
                "120 lengths.cu:5 _Z4normff lengths.cu:13\n"
                "130 lengths.cu:13\n"
                "140 lengths.cu:14\n"
                "200\n");
    check_lines("lengths_sm80.cubin", "lengths",
                "0 lengths.cu:10\n"
                "10 lengths.cu:11\n"
                "40 lengths.cu:12\n"
                "60 lengths.cu:13\n"
                "d0 lengths.cu:2 _Z6squaref lengths.cu:5 _Z4normff lengths.cu:13\n"
                "e0 lengths.cu:5 _Z4normff lengths.cu:13\n"
                "f0 lengths.cu:13\n"
                "100 lengths.cu:14\n"
                "200\n");
    check_lines("lengths_sm100.cubin", "lengths",
                "0 lengths.cu:10\n"
                "10 lengths.cu:11\n"
                "30 lengths.cu:12\n"
                "40 lengths.cu:11\n"
                "60 lengths.cu:12\n"
                "80 lengths.cu:13\n"
                "110 lengths.cu:2 _Z6squaref lengths.cu:5 _Z4normff lengths.cu:13\n"
                "120 lengths.cu:5 _Z4normff lengths.cu:13\n"
                "130 lengths.cu:13\n"
                "140 lengths.cu:14\n"
                "200\n");
}

/* The compiler keeps a function that it does not inline in the kernel's section. */
TEST(called_functions_are_part_of_the_kernel)
{
    check_lines("lengths_sm90.cubin", "doubled",
                "0 lengths.cu:15\n"
                "10 lengths.cu:16\n"
                "20 lengths.cu:17\n"
                "b0 lengths.cu:18\n"
                "c0 lengths.cu:8\n"
                "200\n");
    check_lines("lengths_sm90.cubin", "$doubled$_Z5twicef",
                "0 lengths.cu:8\n"
                "140\n");
}

TEST(linked_code_has_several_tables)
{
    check_lines("linked.cubin", "_Z5twicef",
                "0 lengths.cu:8\n"
                "100\n");
    check_lines("linked.cubin", "quadrupled",
                "0 other.cu:3\n"
                "10 other.cu:4\n"
                "d0 other.cu:5\n"
                "180\n");
    check_lines("linked.cubin", "lengths",
                "0 lengths.cu:10\n"
                "10 lengths.cu:11\n"
                "40 lengths.cu:12\n"
                "60 lengths.cu:13\n"
                "d0 lengths.cu:2 _Z6squaref lengths.cu:5 _Z4normff lengths.cu:13\n"
                "e0 lengths.cu:5 _Z4normff lengths.cu:13\n"
                "f0 lengths.cu:13\n"
                "100 lengths.cu:14\n"
                "200\n");
}

/* As Triton writes it: lines of Python in PTX. */
TEST(python_lines_are_lines)
{
    check_lines("softmax.cubin", "softmax_kernel",
                "0 softmax.py:20\n"
                "10 softmax.py:23\n"
                "60 standard.py:168 max softmax.py:27\n"
                "70 softmax.py:27\n"
                "80 softmax.py:29\n"
                "90 softmax.py:20\n"
                "180\n");
}

/* Give a cubin another text of the same length in place of one that it has. */
static void replace(char *bytes, size_t size, const char *old, const char *new)
{
    char *at = memmem(bytes, size, old, strlen(old));
    assert_non_null(at);
    assert_int_equal(strlen(new), strlen(old));
    memcpy(at, new, strlen(new));
}

static void check_path(const char *folder, const char *file, const char *expected)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm90.cubin", &size);
    replace(bytes, size, "/home/ada/project", folder);
    replace(bytes, size, "lengths.cu", file);
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    assert_string_equal(code.files.items[0], expected);
    kprof_code_free(&code);
}

/* As nvcc and Triton write them into PTX; nvcc takes the last backslash for a slash. */
TEST(paths_are_spelled_as_on_the_disk)
{
    check_path("/hom/\\303\\244/ada", "lengths.cu", "/hom/\303\244/ada/lengths.cu");
    check_path("/home\\360\\237\\224", "245ngth.cu", "/home\360\237\224\245ngth.cu");
    check_path("/home\\303\\266\\303", "237ngth.cu", "/home\303\266\303\237ngth.cu");
    check_path("/home/\\303/projec", "lengths.cu", "/home/\\303/projec/lengths.cu");
    check_path("/home/a\\033/proje", "244ngth.cu", "/home/a\\033/proje/244ngth.cu");
    check_path("/home/ada/projec\\", "303\\244.cu", "/home/ada/projec\\/303\\244.cu");
}

/* Of very many frames those in the middle are left out: the kernel's own line is always the last one. */
TEST(deep_frames_end_in_the_kernel)
{
    size_t size, deepest = 0;
    KPROF_AUTO_FREE char *bytes = read_fixture("deep.cubin", &size);
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    const kprof_code_function *function = find_function(&code, "deep");
    for (size_t i = 0; i < function->count; i++) {
        const kprof_code_instruction *at = &function->instructions[i];
        const kprof_code_frame *outermost = &code.frames[at->first_frame + at->frame_count - 1];
        assert_in_range(outermost->line, 10, 12);
        assert_int_equal(outermost->name, KPROF_CODE_NO_NAME);
        assert_true(at->frame_count == 1 || outermost->line == 11);
        deepest = at->frame_count > deepest ? at->frame_count : deepest;
    }
    assert_int_equal(deepest, KPROF_CODE_MOST_DEPTH);
    kprof_code_free(&code);
}

/* "OFFSET PTX" where the line changes. */
static void check_ptx(const char *cubin, const char *mangled, const char *expected)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture(cubin, &size);
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    const kprof_code_function *function = find_function(&code, mangled);
    for (size_t i = 0; i < function->count; i++) {
        const kprof_code_instruction *at = &function->instructions[i];
        const char *line = code.ptx_count > 0 ? code.ptx[at->ptx].text : NULL;
        if (at->ptx_line == 0 || (i > 0 && at[-1].ptx_line == at->ptx_line))
            continue;
        for (uint32_t n = 1; n < at->ptx_line; n++)
            line = strchr(line, '\n') + 1;
        kprof_strbuf_printf(&out, "%llx %.*s\n", (unsigned long long)at->offset, (int)strcspn(line, "\n"), line);
    }
    assert_string_equal(out.data ? out.data : "", expected);
    kprof_code_free(&code);
}

TEST(lines_of_ptx_are_lines)
{
    check_ptx("softmax.cubin", "softmax_kernel",
              "0 {\n"
              "10 mov.u32 %r1, %tid.x;\n"
              "20 add.s64 %rd3, %rd1, %rd2;\n"
              "30 {\n"
              "40 add.s64 %rd3, %rd1, %rd2;\n"
              "50 ld.global.f32 %f1, [%rd3];\n"
              "60 max.f32 %f2, %f1, 0f00000000;\n"
              "70 add.f32 %f3, %f2, 0f3F800000;\n"
              "80 st.global.f32 [%rd3], %f3;\n"
              "90 ret;\n");
    check_ptx("plain.cubin", "lengths", "");
    /* Linked of two texts. */
    check_ptx("linked.cubin", "_Z5twicef",
              "0 add.f32 \t%f2, %f1, %f1;\n"
              "10 ret;\n");
    check_ptx("linked.cubin", "quadrupled",
              "0 {\n"
              "10 mov.u32 \t%r1, %tid.x;\n"
              "20 add.s64 \t%rd4, %rd2, %rd3;\n"
              "30 {\n"
              "40 add.s64 \t%rd4, %rd2, %rd3;\n"
              "50 ld.global.f32 \t%f1, [%rd4];\n"
              "60 call.uni (retval0), \n"
              "90 call.uni (retval0), \n"
              "c0 st.global.f32 \t[%rd4], %f3;\n"
              "d0 ret;\n");
}

TEST(code_without_lines_says_so)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("plain.cubin", &size);
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
    assert_string_equal(code.line_state, "the code was compiled without lines");
    assert_int_equal(code.function_count, 3);
    KPROF_AUTO_FREE char *found = describe(&code, "lengths");
    assert_string_equal(found, "0 none\n200\n");
    kprof_code_free(&code);
}

TEST(only_wanted_functions_are_read)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm90.cubin", &size);
    KPROF_AUTO(kprof_strlist) wanted = KPROF_STRLIST_INIT;
    assert_true(kprof_strlist_add(&wanted, "nonesuch"));
    assert_true(kprof_strlist_add(&wanted, "lengths"));
    kprof_code code;
    assert_int_equal(kprof_code_read(bytes, size, &wanted, &code), KPROF_OK);
    assert_int_equal(code.function_count, 1);
    const kprof_code_function *function = &code.functions[0];
    assert_string_equal(function->mangled, "lengths");
    assert_string_equal(function->section, ".text.lengths");
    assert_int_equal(function->bytes, 0x200);
    assert_int_equal(function->count, 0x20);
    assert_int_equal(function->instructions[31].offset, 0x1f0);
    assert_null(function->instructions[31].text);
    assert_string_equal(code.files.items[0], "/home/ada/project/lengths.cu");
    kprof_code_free(&code);
}

static Elf64_Shdr *find_section(char *cubin, uint32_t type)
{
    Elf64_Ehdr *file = (Elf64_Ehdr *)cubin;
    Elf64_Shdr *sections = (Elf64_Shdr *)(cubin + file->e_shoff);
    for (size_t i = 0; i < file->e_shnum; i++)
        if (sections[i].sh_type == type)
            return &sections[i];
    fail();
    return NULL;
}

static void check_refused(const char *cubin, size_t size, const char *why)
{
    kprof_code code;
    assert_int_equal(kprof_code_read(cubin, size, NULL, &code), KPROF_BAD_REPORT);
    assert_string_equal(code.line_state, why);
    assert_string_equal(code.text_state, why);
    kprof_code_free(&code);
}

TEST(other_files_are_refused)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm90.cubin", &size);
    check_refused("", 0, "the code is no cubin");
    check_refused("\177ELF", 4, "the code is no cubin");
    find_section(bytes, SHT_SYMTAB)->sh_type = SHT_NOBITS;
    check_refused(bytes, size, "the code has no symbols");
    ((Elf64_Ehdr *)bytes)->e_machine = EM_X86_64;
    check_refused(bytes, size, "the code is no cubin");
}

/* Each byte in turn is another one: nothing is promised of what is read, but that it ends. */
TEST(damaged_code_is_survived)
{
    size_t size;
    KPROF_AUTO_FREE char *bytes = read_fixture("lengths_sm80.cubin", &size);
    for (size_t i = 0; i < size; i++) {
        kprof_code code;
        char kept = bytes[i];
        bytes[i] = (char)~kept;
        kprof_status status = kprof_code_read(bytes, size, NULL, &code);
        assert_true(status == KPROF_OK || status == KPROF_BAD_REPORT);
        kprof_code_free(&code);
        bytes[i] = kept;
    }
    for (size_t length = 0; length < size; length += 16) {
        kprof_code code;
        char *shorter = malloc(length + 1);
        memcpy(shorter, bytes, length);
        kprof_status status = kprof_code_read(shorter, length, NULL, &code);
        assert_true(status == KPROF_OK || status == KPROF_BAD_REPORT);
        kprof_code_free(&code);
        free(shorter);
    }
}
