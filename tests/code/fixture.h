/* What tests read of tests/fixtures/code. */
#pragma once

#include "code/code.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of tests/fixtures/code with a NUL behind it, which the test frees. */
static char *read_fixture(const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/fixtures/code/%s", KPROF_TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 16];
    *size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(*size, 1, sizeof bytes - 1);
    char *copy = malloc(*size + 1);
    assert_non_null(copy);
    copy[*size] = '\0';
    return memcpy(copy, bytes, *size);
}

/* The function of this name. */
static inline const kprof_code_function *find_function(const kprof_code *code, const char *mangled)
{
    for (size_t i = 0; i < code->function_count; i++)
        if (!strcmp(code->functions[i].mangled, mangled))
            return &code->functions[i];
    fail();
    return NULL;
}
