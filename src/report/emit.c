/* The table of formats. */
#include "report/emit.h"

typedef kprof_emitter *emitter_new(const kprof_print_options *options);

static emitter_new *const formats[] = {
    [KPROF_FORMAT_TEXT] = kprof_emit_text_new,
    [KPROF_FORMAT_CSV] = kprof_emit_csv_new,
    [KPROF_FORMAT_JSON] = kprof_emit_json_new,
};

kprof_status kprof_emitter_new(const kprof_emit_page *page, kprof_output *out, kprof_emitter **emitter)
{
    *emitter = formats[page->options->format](page->options);
    if (!*emitter)
        return kprof_fail(KPROF_NO_MEMORY, "printing the report: out of memory");
    (*emitter)->page = *page;
    (*emitter)->out = out;
    (*emitter)->status = KPROF_OK;
    return KPROF_OK;
}

void kprof_emitter_free(kprof_emitter *emitter)
{
    if (emitter)
        emitter->ops->free(emitter);
}

kprof_status kprof_emitter_status(const kprof_emitter *emitter)
{
    if (emitter->status == KPROF_OK && emitter->out->error)
        return KPROF_OUTPUT;
    return emitter->status;
}

void kprof_emit_nothing(kprof_emitter *emitter)
{
    (void)emitter;
}
