/* A stream waits for a number in memory of the host. */
#include "cupti/latch.h"

#include "core/log.h"
#include "cupti/driver.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct kprof_latch {
    const kprof_driver_api *driver;
    _Atomic(uint32_t) *word; /* page-locked; it goes with the context */
    uint32_t turn;           /* that the stream waits for */
};

kprof_status kprof_latch_open(kprof_latch **out)
{
    void *word = NULL;
    kprof_latch *latch = *out = calloc(1, sizeof *latch);
    if (!latch)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to hold launches back");
    kprof_status status = kprof_driver_load(&latch->driver);
    if (status == KPROF_OK) {
        KPROF_RELAX(latch->driver);
        const CUresult result = latch->driver->cuMemAllocHost_(&word, sizeof *latch->word);
        if (result != CUDA_SUCCESS)
            status = kprof_fail(KPROF_NOT_COLLECTED, "no memory of the host for a stream to wait for: %s",
                                kprof_driver_error(result));
    }
    if (status != KPROF_OK) {
        free(latch);
        *out = NULL;
        return status;
    }
    latch->word = word;
    atomic_store(latch->word, 0);
    return KPROF_OK;
}

kprof_status kprof_latch_hold(kprof_latch *latch, void *stream)
{
    const uint32_t turn = latch->turn + 1;
    const CUresult result =
        latch->driver->cuStreamWaitValue32_(stream, (CUdeviceptr)(uintptr_t)latch->word, turn, CU_STREAM_WAIT_VALUE_EQ);
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_UNSUPPORTED, "a stream cannot wait for the host: %s", kprof_driver_error(result));
    latch->turn = turn;
    return KPROF_OK;
}

void kprof_latch_let_go(kprof_latch *latch)
{
    atomic_store(latch->word, latch->turn);
}

void kprof_latch_close(kprof_latch *latch)
{
    free(latch);
}
