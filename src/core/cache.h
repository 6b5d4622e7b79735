/* A folder of small results that are expensive to make and cheap to check: $XDG_CACHE_HOME/kprof or ~/.cache/kprof,
 * private to the user. Losing it costs time, never a result: every entry carries its whole key and a checksum, and
 * is written under another name first. The 1,024 entries used last are kept, within 64 MB. */
#pragma once

#include "core/strbuf.h"

/* An entry that is being read. It stays as it is when another process replaces or removes it. */
typedef struct kprof_cache_entry {
    int fd;               /* -1: none */
    uint64_t start, size; /* of what was stored, in bytes of the file */
} kprof_cache_entry;
/* Open what was stored under `key`, for a reader that checks the bytes itself; false as for kprof_cache_get. */
bool kprof_cache_open(const kprof_strbuf *key, kprof_cache_entry *out);
/* Append a part of it; false, with anything appended, when there is no such part, or no memory. */
bool kprof_cache_read(const kprof_cache_entry *entry, uint64_t offset, uint64_t size, kprof_strbuf *out);
void kprof_cache_close(kprof_cache_entry *entry);

/* Fetch what was stored under `key`, appended to `out`; false when nothing is there, or damage. */
bool kprof_cache_get(const kprof_strbuf *key, kprof_strbuf *out);
/* Store; failures are silent, since the result is at hand anyway. KPROF_CACHE=off in the environment turns both off. */
void kprof_cache_put(const kprof_strbuf *key, const void *data, size_t size);
