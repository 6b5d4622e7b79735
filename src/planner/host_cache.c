/* Keeps on disk what CUPTI makes of lists of names. */
#include "planner/host_private.h"

#include "core/cache.h"

#include <string.h>

/* False where the library cannot be told from others: then nothing is kept. */
static bool make_key(const kprof_host_question *question, kprof_strbuf *key)
{
    const kprof_host *host = question->host;
    kprof_strbuf_printf(key, "%s\nkprof %s\n", question->what, KPROF_VERSION);
    if (!kprof_cupti_identify(key))
        return false;
    kprof_strbuf_printf(key, "%s\navailability %zu\n", host->chip, host->availability.size);
    kprof_strbuf_append(key, host->availability.image, host->availability.size);
    for (size_t i = 0; i < question->names->count; i++) {
        const char *name = question->names->items[i];
        kprof_strbuf_append(key, name, strlen(name) + 1); /* the NUL keeps names apart */
    }
    return !key->failed;
}

bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    bool found = make_key(question, &key) && kprof_cache_get(&key, out);
    kprof_strbuf_free(&key);
    return found;
}

void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    if (make_key(question, &key))
        kprof_cache_put(&key, answer, size);
    kprof_strbuf_free(&key);
}
