/* Collects output in a buffer of its own: the stream may be unbuffered, or a terminal that is flushed per line. */
#include "report/emit/output.h"
#include "core/log.h"
#include "core/strbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

kprof_output kprof_output_new(FILE *file, uint64_t most_bytes)
{
    return (kprof_output){.file = file, .buffer = kprof_calloc(1, KPROF_OUTPUT_BUFFER_BYTES), .left = most_bytes};
}

static void write_out(kprof_output *out, const void *data, size_t size)
{
    if (out->error || size == 0)
        return;
    if (size > out->left) {
        out->is_full = true;
        out->error = EFBIG;
        return;
    }
    out->left -= size;
    errno = 0;
    if (fwrite(data, 1, size, out->file) != size)
        out->error = errno ? errno : EIO;
}

static void flush(kprof_output *out)
{
    write_out(out, out->buffer, out->length);
    out->length = 0;
}

void kprof_output_put(kprof_output *out, const void *data, size_t size)
{
    if (size > KPROF_OUTPUT_BUFFER_BYTES - out->length)
        flush(out);
    if (size > KPROF_OUTPUT_BUFFER_BYTES) {
        write_out(out, data, size);
        return;
    }
    memcpy(out->buffer + out->length, data, size);
    out->length += size;
}

void kprof_output_puts(kprof_output *out, const char *text)
{
    kprof_output_put(out, text, strlen(text));
}

void kprof_output_repeat(kprof_output *out, char c, size_t count)
{
    while (count-- > 0)
        kprof_output_put(out, &c, 1);
}

void kprof_output_printf(kprof_output *out, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        kprof_memory_note_lack();
    kprof_output_put(out, text, (size_t)length);
    free(text);
}

kprof_status kprof_output_finish(kprof_output *out)
{
    flush(out);
    errno = 0;
    if (!out->error && fflush(out->file) != 0)
        out->error = errno ? errno : EIO;
    free(out->buffer);
    out->buffer = NULL;
    if (out->is_full ||
        out->error == EPIPE) /* the caller tells of the first; for the second, the reader has seen enough */
        return KPROF_OUTPUT;
    if (out->error)
        return kprof_fail(KPROF_OUTPUT, "printing the report: cannot write: %s", strerror(out->error));
    return KPROF_OK;
}
