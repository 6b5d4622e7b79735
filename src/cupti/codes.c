/* A list of cubins. kprof asks CUPTI for a checksum only when somebody looks for it: within the callback that shows the
 * cubin, CUPTI may never answer. */
#include "cupti/codes.h"

#include "core/bytes.h"
#include "core/hold.h"
#include "core/log.h"
#include "host/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Keep at most this many bytes of cubins that nobody has asked for. */
#define MOST_BYTES ((size_t)2 << 30)
/* Small cubins often share CUPTI's checksum: those of kernels that a program makes while it runs. */
#define MOST_SMALL_BYTES ((size_t)256 << 10)

typedef struct code {
    void *bytes; /* [size], owned; NULL: they are not needed any more */
    size_t size;
    uint64_t crc, id; /* id: 0 until it is asked for */
    bool has_crc;
    struct code *next;
} code;

static atomic_bool keeps;

/* Cubins are loaded within CUPTI, which may hold locks of its own then: nobody has `mutex` while CUPTI is asked. */
static struct {
    pthread_mutex_t asking; /* taken before `mutex`, and for crc, id and has_crc; never as a cubin is loaded */
    pthread_mutex_t mutex;
    code *first; /* none is taken out */
    size_t bytes;
    bool lacks; /* some were not kept, and a warning has said so */
} kept = {.asking = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER};

void kprof_codes_keep(void)
{
    atomic_store(&keeps, true);
}

static bool is_kept(const void *cubin, size_t size)
{
    for (const code *c = kept.first; c; c = c->next)
        if (c->bytes && c->size == size && memcmp(c->bytes, cubin, size) == 0)
            return true;
    return false;
}

void kprof_codes_add(const void *cubin, size_t size)
{
    if (!atomic_load(&keeps) || !cubin || size == 0)
        return;
    bool tells = false;
    pthread_mutex_lock(&kept.mutex);
    if (!is_kept(cubin, size)) { /* it is loaded again, or in another context */
        code *added = size <= MOST_BYTES - kept.bytes ? calloc(1, sizeof *added) : NULL;
        void *bytes = added ? malloc(size) : NULL;
        if (bytes) {
            memcpy(bytes, cubin, size);
            *added = (code){.bytes = bytes, .size = size, .next = kept.first};
            kept.first = added;
            kept.bytes += size;
        } else {
            free(added);
            tells = !kept.lacks;
            kept.lacks = true;
        }
    }
    pthread_mutex_unlock(&kept.mutex);
    if (tells)
        kprof_log(KPROF_LOG_WARNING,
                  "the process loads more code than kprof keeps (%zu MiB): the source page may lack "
                  "the text of kernels that were loaded late",
                  MOST_BYTES >> 20);
}

static void take_crc(code *c)
{
    const kprof_cupti_api *cupti;
    CUpti_GetCubinCrcParams params = {.size = CUpti_GetCubinCrcParamsSize, .cubinSize = c->size, .cubin = c->bytes};
    if (c->has_crc || kprof_cupti_load(&cupti) != KPROF_OK)
        return;
    CUptiResult result = cupti->cuptiGetCubinCrc(&params);
    c->has_crc = result == CUPTI_SUCCESS;
    c->crc = params.cubinCrc;
    if (result != CUPTI_SUCCESS)
        kprof_log(KPROF_LOG_DEBUG, "cuptiGetCubinCrc failed (CUPTI error %d)", (int)result);
}

/* Is there a symbol of this name, or a section of its code? */
static bool has_function(const code *c, const char *function)
{
    const size_t length = strlen(function) + 1;
    const char *at = c->bytes, *end = at + c->size;
    while ((at = memmem(at + 1, (size_t)(end - at - 1), function, length)))
        if (at[-1] == '\0' || at[-1] == '.')
            return true;
    return false;
}

/* Choose the one that was loaded last of those that have the function. If none has it, it is in one whose bytes are
 * gone. */
static code *choose(code *first, uint64_t crc, const char *function)
{
    code *newest = NULL, *gone = NULL;
    size_t count = 0;
    for (code *c = first; c; c = c->next) {
        if (c->bytes)
            take_crc(c);
        if (!c->has_crc || c->crc != crc)
            continue;
        newest = newest ? newest : c;
        gone = gone || c->bytes ? gone : c;
        count++;
    }
    for (code *c = first; c && count > 1; c = c->next)
        if (c->bytes && c->has_crc && c->crc == crc && has_function(c, function))
            return c;
    return gone ? gone : newest;
}

const void *kprof_codes_find(uint64_t crc, const char *function, size_t *size, uint64_t *id)
{
    KPROF_HOLD(kept.asking);
    pthread_mutex_lock(&kept.mutex);
    code *first = kept.first;
    pthread_mutex_unlock(&kept.mutex);
    code *c = choose(first, crc, function);
    *id = crc;
    if (!c)
        return NULL;
    if (c->id == 0) /* SQLite's numbers have a sign */
        c->id = crc ^ (uint64_t)(kprof_crc32c(0, c->bytes, c->size) & INT32_MAX) << 32;
    *id = c->id;
    *size = c->size;
    return c->bytes;
}

void kprof_codes_drop(uint64_t id)
{
    KPROF_HOLD(kept.asking);
    KPROF_HOLD(kept.mutex);
    for (code *c = kept.first; c; c = c->next)
        if (c->bytes && c->id == id && c->size > MOST_SMALL_BYTES) {
            kept.bytes -= c->size;
            free(c->bytes);
            c->bytes = NULL;
        }
}
