/* Shared by the fuzz harnesses. Each is one file with the function that libFuzzer calls for each input; it returns 0.
 * A harness finds a fault by a sanitizer's report, by FUZZ_CHECK, by its time or by its memory. */
#pragma once

#include "core/strbuf.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Keeps messages from being printed, but checks them, and makes the scratch folder; then calls fuzz_set_up. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
/* A harness may define it: called once, before the first input. */
void fuzz_set_up(void);

/* End the process, as a fault, unless the condition holds. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *condition, const char *file, int line);

/* The part of an input that is still to be read. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t left;
} fuzz_input;
uint8_t fuzz_take_byte(fuzz_input *input); /* 0 at the end */
/* The next `size` bytes, or as many as there are, with a NUL behind them. The caller frees. */
char *fuzz_take_text(fuzz_input *input, size_t size);
/* The next line, without its end; NULL at the end of the input. The caller frees. */
char *fuzz_take_line(fuzz_input *input);

/* A path in the scratch folder, which is in memory and goes with the process; static buffer, one at a time. */
const char *fuzz_path(const char *name);
void fuzz_write_file(const char *path, const void *data, size_t size);
/* The whole file, which must be there. The caller frees. */
uint8_t *fuzz_read_file(const char *path, size_t *size);
/* A stream that takes everything and keeps nothing; one for the whole process. */
FILE *fuzz_nowhere(void);
