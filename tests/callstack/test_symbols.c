/* Names of this program's own functions, and files that are damaged or no programs. */

#include "callstack/native.h"
#include "core/filter.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((noinline)) static char *name_of_caller(void)
{
    uint64_t offset = 0;
    const uintptr_t address = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    const char *module = kprof_native_module(address, &offset);
    assert_non_null(module);
    return kprof_symbol_find(module, offset);
}

TEST(test_own_function)
{
    KPROF_AUTO_FREE char *name = name_of_caller();
    assert_non_null(name);
    assert_string_equal(name, "test_own_function");
}

TEST(test_names_of_cxx)
{
    static const char *const names[][2] = {{"_ZN3net4stepEi", "net::step"},
                                           {"_ZN3net4LossIfE7forwardEPKf", "net::Loss<float>::forward"},
                                           {"_ZN3net3addIiEEvT_", "net::add<int>"},
                                           {"main", "main"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = kprof_demangle_name(names[i][0]);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

static void *read_own(size_t *bytes)
{
    FILE *file = fopen("/proc/self/exe", "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*bytes);
    assert_true(text && fread(text, 1, *bytes, file) == *bytes);
    fclose(file);
    return text;
}

/* This program, as a copy of which nothing is left. */
__attribute__((noinline)) static int end_without_file(const char *path)
{
    kprof_native_prepare();
    unlink(path);
    KPROF_AUTO_FREE char *name = name_of_caller();
    const bool is_found = name && strcmp(name, "end_without_file") == 0;
    return is_found ? 0 : 1;
}

TEST(test_program_that_is_gone)
{
    char path[] = "/tmp/kprof-symbols-XXXXXX", command[64];
    size_t bytes;
    KPROF_AUTO_FREE char *text = read_own(&bytes);
    const int file = mkstemp(path);
    assert_true(file >= 0 && write(file, text, bytes) == (ssize_t)bytes && fchmod(file, 0700) == 0);
    close(file);
    snprintf(command, sizeof command, "%s gone", path);
    assert_int_equal(system(command), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void find_in(const char *path, const unsigned char *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
    free(kprof_symbol_find(path, 0x1000));
}

/* A file says nothing that is followed past its end. */
TEST(test_damaged_files)
{
    char path[] = "/tmp/kprof-symbols-XXXXXX";
    size_t bytes;
    unsigned char *text = read_own(&bytes);
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < 64; i++) { /* the header, where the tables are told of */
        const unsigned char was = text[i];
        text[i] = 0xff;
        find_in(path, text, bytes);
        text[i] = was;
    }
    for (size_t left = bytes; left > 0; left /= 2)
        find_in(path, text, left);
    for (size_t i = bytes < 4096 ? 0 : bytes - 4096; i < bytes; i += 16) { /* the headers of sections */
        const unsigned char was = text[i];
        text[i] ^= 0x5a;
        find_in(path, text, bytes);
        text[i] = was;
    }
    unlink(path);
    free(text);
    errno = EINTR;
    assert_null(kprof_symbol_find("/nonesuch", 0));
    assert_int_equal(errno, EINTR);
    assert_null(kprof_symbol_find("/dev/null", 0));
    assert_null(kprof_symbol_find("", 0));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "gone") == 0)
        return end_without_file(argv[0]);
    return run_all_tests();
}
