/* A folder of small results that are dear to make and cheap to check: $XDG_CACHE_HOME/kprof or ~/.cache/kprof, private
 * to the user. Losing it costs time, never a result: every entry carries its whole key and a checksum, and is written
 * under another name first. The 128 entries used last are kept, within 64 MB. */
#ifndef KPROF_CORE_CACHE_H
#define KPROF_CORE_CACHE_H

#include "core/strbuf.h"

/* Fetch what was stored under `key`, appended to `out`; false when there is nothing, or something damaged or foreign.
 */
bool kprof_cache_get(const kprof_strbuf *key, kprof_strbuf *out);
/* Store; failures are silent, since the result is at hand anyway. KPROF_CACHE=off in the environment turns both off. */
void kprof_cache_put(const kprof_strbuf *key, const void *data, size_t size);

#endif
