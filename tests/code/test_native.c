/* Functions and lines of this program itself, which has debug information, and files that are no program. */
#include "code/native.h"
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE "native-test-file"

/* The address of a function in the file of this program. */
static uint64_t address_of(const void *function)
{
    Dl_info info;
    struct link_map *map = NULL;
    assert_true(dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP));
    return (uintptr_t)function - map->l_addr;
}

static const int first_line = __LINE__ + 1;
static int a_static_function(int x)
{
    return x * 2;
}

TEST(functions_and_lines)
{
    kprof_native_module *module = kprof_native_open("/proc/self/exe");
    assert_non_null(module);
    int (*volatile function)(int) = a_static_function;
    const void *address;
    memcpy(&address, (const void *)&function, sizeof address);
    const kprof_native_place place = kprof_native_find(module, address_of(address));
    assert_string_equal(place.function, "a_static_function");
    assert_non_null(strstr(place.file, "test_native.c"));
    assert_in_range(place.line, first_line, first_line + 2);
    const kprof_native_place nowhere = kprof_native_find(module, UINT64_MAX - 8);
    assert_null(nowhere.function);
    assert_int_equal(nowhere.line, 0);
    kprof_native_close(module);
}

static void write_file(const char *content, size_t size)
{
    FILE *file = fopen(HERE, "w");
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

TEST(no_programs)
{
    assert_null(kprof_native_open("/does/not/exist"));
    assert_null(kprof_native_open("/"));
    assert_null(kprof_native_open("/dev/null"));
    write_file("text", 4);
    assert_null(kprof_native_open(HERE));
    assert_int_equal(unlink(HERE), 0);
    assert_int_equal(mkfifo(HERE, 0600), 0); /* which nobody writes to */
    assert_null(kprof_native_open(HERE));
    assert_int_equal(unlink(HERE), 0);
}

/* Parts of a program, and one with bytes that are wrong, tell something or nothing. */
TEST(damaged_programs)
{
    FILE *self = fopen("/proc/self/exe", "r");
    char *content = malloc(1 << 20);
    const size_t size = fread(content, 1, 1 << 20, self);
    assert_int_equal(fclose(self), 0);
    for (unsigned seed = 1; seed < 200; seed++) {
        for (int i = 0; seed % 2 && i < 20; i++)
            content[(seed * 7919u + (unsigned)i * 104729u) % (i % 3 ? size : 512)] ^= (char)(seed + (unsigned)i);
        write_file(content, seed % 2 ? size : size * seed / 200);
        kprof_native_module *module = kprof_native_open(HERE);
        for (uint64_t at = 0; module && at < 1 << 16; at += 4096)
            (void)kprof_native_find(module, at);
        if (module)
            kprof_native_close(module);
    }
    free(content);
    assert_int_equal(unlink(HERE), 0);
}
