/* Buffered output to a stdio stream that remembers a failed write: emitters need not check each one. */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define KPROF_OUTPUT_BUFFER_BYTES (256 * 1024)

typedef struct kprof_output {
    FILE *file; /* borrowed */
    char *buffer;
    size_t length;
    int error;     /* errno of the first write that failed; 0: all is well */
    uint64_t left; /* bytes that may still be written */
    bool is_full;  /* more was to be written, which `error` tells too */
} kprof_output;

/* `most_bytes`: nothing more is written. */
kprof_output kprof_output_new(FILE *file, uint64_t most_bytes);
void kprof_output_put(kprof_output *out, const void *data, size_t size);
void kprof_output_puts(kprof_output *out, const char *text);
void kprof_output_repeat(kprof_output *out, char c, size_t count);
void kprof_output_printf(kprof_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Write what is left and free the buffer. OUTPUT when any write had failed, with a message unless it was too much. */
kprof_status kprof_output_finish(kprof_output *out) KPROF_MUST_CHECK;
