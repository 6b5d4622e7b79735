/* Memory of kprof's own in a context, for copies of the application's: the device's, or page-locked memory of the host.
 * It is taken when it is needed and stays for the next batch. Not thread-safe. */
#pragma once

#include "core/status.h"
#include "cupti/driver.h"

#include <stdbool.h>

typedef struct kprof_backing_chunk kprof_backing_chunk;

/* Starts as zeros. The context must be current in all calls. */
typedef struct kprof_backing {
    kprof_backing_chunk *chunks; /* owned */
    bool is_host;                /* page-locked; not for _reserve */
} kprof_backing;

/* Make space for pieces of `bytes` in all, and for one more of `largest`. NO_MEMORY, with a logged reason, when the
 * device would be left with less than KPROF_DEVICE_RESERVE_BYTES. */
kprof_status kprof_backing_reserve(kprof_backing *backing, const kprof_driver_api *driver, size_t bytes,
                                   size_t largest) KPROF_MUST_CHECK;
/* Make space for one piece of `bytes`, which fits into no chunk. NO_MEMORY likewise. */
kprof_status kprof_backing_grow(kprof_backing *backing, const kprof_driver_api *driver, size_t bytes) KPROF_MUST_CHECK;
/* A piece, at a multiple of 256 bytes; 0 when there is no space left. It is taken until _reset or _rewind. */
CUdeviceptr kprof_backing_take(kprof_backing *backing, size_t bytes);
/* Memory that the chunks take. */
size_t kprof_backing_bytes(const kprof_backing *backing);
/* Pieces that are taken from now on are free again after _rewind. The last mark counts. */
void kprof_backing_mark(kprof_backing *backing);
void kprof_backing_rewind(kprof_backing *backing);
/* All pieces are free again. */
void kprof_backing_reset(kprof_backing *backing);
/* Give the memory back; nothing of it may be in use. `lives`: the context still does. */
void kprof_backing_release(kprof_backing *backing, const kprof_driver_api *driver, bool lives);
