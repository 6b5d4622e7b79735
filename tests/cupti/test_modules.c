/* Reads a cubin, tests/fixtures/kernels.cubin, and what is left of it when it is damaged. */
#include "cupti/modules.h"

#include <elf.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPEN   "_Z11open_kernelPi"
#define HIDDEN "_Z13hidden_kernelPi"
#define HELPER "$_Z11open_kernelPi$_ZN41_INTERNAL_35639083_10_kernels_cu_839d96476helperEi"
/* In an anonymous namespace. */
#define NAMELESS "_ZN43_GLOBAL__N__35639083_10_kernels_cu_839d964715nameless_kernelEPi"

static unsigned char *cubin; /* [cubin_size] */
static size_t cubin_size;

static void read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    free(cubin);
    cubin = malloc(1 << 16);
    cubin_size = fread(cubin, 1, 1 << 16, file);
    fclose(file);
}

static int read_cubin(void **state)
{
    read_file(FIXTURES "/kernels.cubin");
    return 0;
}

static int free_cubin(void **state)
{
    free(cubin);
    return 0;
}

/* A copy of just this size, so that a sanitizer sees what is read beyond it. */
static void add_copy(size_t size, size_t changed, unsigned char value)
{
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, cubin, size);
    if (changed < size)
        copy[changed] = value;
    kprof_modules_add(copy, size);
    free(copy);
}

/* First, while nothing is known: then nothing may come of a part of the file but what is there. */
static void test_damaged(void **state)
{
    kprof_modules_add(NULL, 0);
    for (size_t size = 0; size < cubin_size / 2; size += 7)
        add_copy(size, size, 0);
    assert_string_equal(kprof_modules_side_effect(OPEN), "?");
    for (size_t file = 0; file < 2; file++) {
        for (size_t i = 0; i < cubin_size; i += 3) {
            add_copy(cubin_size, i, (unsigned char)~cubin[i]);
            add_copy(cubin_size, i, 0xff);
        }
        read_file(FIXTURES "/barriers.cubin");
    }
}

static void test_kernels(void **state)
{
    kprof_modules_add(cubin, cubin_size);
    assert_null(kprof_modules_side_effect(OPEN));
    assert_null(kprof_modules_side_effect(HIDDEN));
    assert_string_equal(kprof_modules_side_effect(NAMELESS), "vprintf");
    assert_string_equal(kprof_modules_side_effect(HELPER), "?");
    assert_string_equal(kprof_modules_side_effect("vprintf"), "?");
}

/* Kernels that one launches on the device have their side effects within it. */
static void test_children(void **state)
{
    read_file(FIXTURES "/children.cubin");
    kprof_modules_add(cubin, cubin_size);
    assert_null(kprof_modules_side_effect("_Z13parent_kernelPi"));
    assert_null(kprof_modules_side_effect("_Z12other_kernelPi"));
    assert_int_equal(kprof_modules_device_launches("_Z13parent_kernelPi"), KPROF_DEVICE_LAUNCHES_SOME);
    assert_int_equal(kprof_modules_device_launches("_Z12other_kernelPi"), KPROF_DEVICE_LAUNCHES_NONE);
    assert_int_equal(kprof_modules_device_launches("nothing"), KPROF_DEVICE_LAUNCHES_UNKNOWN);
    read_file(FIXTURES "/printing_children.cubin");
    kprof_modules_add(cubin, cubin_size);
    assert_string_equal(kprof_modules_side_effect("_Z22printing_parent_kernelPi"), "vprintf");
    assert_null(kprof_modules_side_effect("_Z12quiet_kernelPi"));
    assert_null(kprof_modules_side_effect("_Z13parent_kernelPi"));
}

static void test_barriers(void **state)
{
    read_file(FIXTURES "/barriers.cubin");
    add_copy(cubin_size, cubin_size, 0);
    assert_int_equal(kprof_modules_barriers("plain_kernel"), 1);
    assert_int_equal(kprof_modules_barriers("sync_kernel"), 2);
    assert_int_equal(kprof_modules_barriers("named_kernel"), 4);
    assert_int_equal(kprof_modules_barriers("all_kernel"), 17);
    assert_int_equal(kprof_modules_barriers("linked_kernel"), 0);
    read_file(FIXTURES "/linked_barriers.cubin");
    add_copy(cubin_size, cubin_size, 0);
    assert_int_equal(kprof_modules_barriers("linked_kernel"), 7);
    assert_int_equal(kprof_modules_barriers("sync_kernel"), 0); /* here it has two, there one */
    assert_int_equal(kprof_modules_barriers("plain_kernel"), 1);
}

static void test_variables(void **state)
{
    kprof_modules_add(cubin, cubin_size);
    kprof_modules_add(cubin, cubin_size); /* once more */
    const kprof_strlist *names = kprof_modules_variables(HIDDEN, 0);
    assert_non_null(names);
    assert_int_equal(names->count, 2);
    assert_string_equal(names->items[0], "open_variable");
    assert_string_equal(names->items[1], "hidden_variable");
    assert_null(kprof_modules_variables(HIDDEN, 1));
    assert_null(kprof_modules_variables(HELPER, 0));
}

/* Each time that a cubin is loaded its variables are somewhere else. */
static void test_variables_that_nobody_has_noted(void **state)
{
    assert_int_equal(kprof_modules_count_unnoted(NULL), 0);
    kprof_modules_add(cubin, cubin_size);
    assert_int_equal(kprof_modules_count_unnoted(NULL), 1);
    kprof_modules_note_variables(kprof_modules_variables(HIDDEN, 0));
    assert_int_equal(kprof_modules_count_unnoted(NULL), 0);
    kprof_modules_add(cubin, cubin_size);
    assert_int_equal(kprof_modules_count_unnoted(NULL), 1);
    kprof_modules_note_variables(kprof_modules_variables(OPEN, 0));
    assert_int_equal(kprof_modules_count_unnoted(NULL), 0);
}

/* It has variables alone, as one of cuBLAS: no kernel has left their addresses, and none ever notes them. */
static void test_cubin_without_kernels(void **state)
{
    unsigned char *copy = malloc(cubin_size);
    memcpy(copy, cubin, cubin_size);
    Elf64_Ehdr header;
    memcpy(&header, copy, sizeof header);
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, copy + header.e_shoff + i * sizeof section, sizeof section);
        for (size_t at = 0; section.sh_type == SHT_SYMTAB && at < section.sh_size; at += sizeof(Elf64_Sym)) {
            unsigned char *info = copy + section.sh_offset + at + offsetof(Elf64_Sym, st_info);
            if (ELF64_ST_TYPE(*info) == STT_FUNC)
                *info = ELF64_ST_INFO(ELF64_ST_BIND(*info), STT_NOTYPE);
        }
    }
    kprof_modules_add(cubin, cubin_size);
    assert_int_equal(kprof_modules_count_unnoted(NULL), 1);
    kprof_modules_note_variables(kprof_modules_variables(HIDDEN, 0));
    kprof_modules_add(copy, cubin_size);
    assert_int_equal(kprof_modules_count_unnoted(NULL), 0);
    free(copy);
}

static void test_misaligned(void **state)
{
    unsigned char *copy = malloc(cubin_size + 1);
    memcpy(copy + 1, cubin, cubin_size);
    kprof_modules_add(copy + 1, cubin_size);
    free(copy);
    assert_null(kprof_modules_side_effect(OPEN));
    assert_string_equal(kprof_modules_side_effect(NAMELESS), "vprintf");
}

/* As compilers leave it that do not tell kernels from functions. */
static void clear_flags(void)
{
    Elf64_Ehdr header;
    memcpy(&header, cubin, sizeof header);
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, cubin + header.e_shoff + i * sizeof section, sizeof section);
        for (size_t at = 0; section.sh_type == SHT_SYMTAB && at < section.sh_size; at += sizeof(Elf64_Sym))
            cubin[section.sh_offset + at + offsetof(Elf64_Sym, st_other)] = 0;
    }
}

/* A global function may be a kernel; the one that prints may be a function that any of them calls. */
static void test_kernels_without_flags(void **state)
{
    clear_flags();
    kprof_modules_add(cubin, cubin_size);
    assert_string_equal(kprof_modules_side_effect(OPEN), "vprintf");
    assert_string_equal(kprof_modules_side_effect(NAMELESS), "?");
    assert_int_equal(kprof_modules_variables(OPEN, 0)->count, 2);
}

/* Another build of the file: one in which a name begins otherwise. */
static void add_renamed(const char *name, char first)
{
    unsigned char *copy = malloc(cubin_size);
    size_t size = strlen(name) + 1; /* with its end */
    bool found = false;
    memcpy(copy, cubin, cubin_size);
    for (size_t i = 1; i + size <= cubin_size; i++) {
        if (copy[i - 1] != '\0' || memcmp(copy + i, name, size) != 0)
            continue;
        copy[i] = (unsigned char)first;
        found = true;
    }
    assert_true(found);
    kprof_modules_add(copy, cubin_size);
    free(copy);
}

/* Nobody knows which cubin a kernel is of: what any of them does or has counts. */
static void test_builds_that_differ(void **state)
{
    add_renamed("vprintf", '\0'); /* calls nothing that has a name */
    assert_null(kprof_modules_side_effect(NAMELESS));
    kprof_modules_add(cubin, cubin_size);
    assert_string_equal(kprof_modules_side_effect(NAMELESS), "vprintf");
    assert_non_null(kprof_modules_variables(OPEN, 1));
    assert_null(kprof_modules_variables(OPEN, 2));
    add_renamed("open_variable", 'O');
    assert_non_null(kprof_modules_variables(OPEN, 2));
    assert_string_equal(kprof_modules_variables(OPEN, 0)->items[0], "Open_variable");
    add_renamed("vprintf", '\0'); /* once more */
    assert_string_equal(kprof_modules_side_effect(NAMELESS), "vprintf");
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    const struct CMUnitTest whole[] = {cmocka_unit_test(test_variables_that_nobody_has_noted),
                                       cmocka_unit_test(test_cubin_without_kernels), cmocka_unit_test(test_kernels),
                                       cmocka_unit_test(test_variables)};
    const struct CMUnitTest children[] = {cmocka_unit_test(test_children)};
    const struct CMUnitTest damaged[] = {cmocka_unit_test(test_damaged)};
    const struct CMUnitTest misaligned[] = {cmocka_unit_test(test_misaligned)};
    const struct CMUnitTest without_flags[] = {cmocka_unit_test(test_kernels_without_flags)};
    const struct CMUnitTest barriers[] = {cmocka_unit_test(test_barriers)};
    const struct CMUnitTest builds[] = {cmocka_unit_test(test_builds_that_differ)};
    /* Each leaves kernels behind, those of a damaged one with odd names. */
    return strcmp(which, "damaged") == 0         ? cmocka_run_group_tests(damaged, read_cubin, free_cubin)
           : strcmp(which, "children") == 0      ? cmocka_run_group_tests(children, read_cubin, free_cubin)
           : strcmp(which, "misaligned") == 0    ? cmocka_run_group_tests(misaligned, read_cubin, free_cubin)
           : strcmp(which, "barriers") == 0      ? cmocka_run_group_tests(barriers, read_cubin, free_cubin)
           : strcmp(which, "builds") == 0        ? cmocka_run_group_tests(builds, read_cubin, free_cubin)
           : strcmp(which, "without_flags") == 0 ? cmocka_run_group_tests(without_flags, read_cubin, free_cubin)
                                                 : cmocka_run_group_tests(whole, read_cubin, free_cubin);
}
