/* Tells the driver that the host is the preferred location: then it maps pages for kernels where they are. */
#include "cupti/stay.h"

#include "core/hold.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/driver.h"
#include "cupti/managed.h"
#include "cupti/mappings.h"
#include "cupti/variables.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More takes long to bring to the host, and is there for kernels to use. */
#define MOST_STAYS_BYTES ((size_t)1 << 20)
#define MOST_DEVICES     64
#define MOST_CHANGES     3

static struct {
    pthread_mutex_t mutex;
    kprof_span *spans;          /* [count]: the driver was told to keep them on the host */
    size_t count;               /* the mutex guards these two, and the next */
    unsigned changes;           /* batches that were lost since memory came or went */
    atomic_bool over;           /* nothing stays any more */
    atomic_uint_fast64_t unfit; /* the version of a list of memory of which there was none, or too much */
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Looking takes long where there is much, and launches that are not repeated ask each time: remember that there was. */
bool kprof_managed_may_stay(void)
{
    const uint64_t version = (uint64_t)kprof_allocations_version() << 32 | kprof_variables_version();
    KPROF_AUTO_FREE kprof_span *all = NULL;
    size_t count;
    if (atomic_load(&held.over) || kprof_allocations_managed_stays() || atomic_load(&held.unfit) == version ||
        !kprof_managed_list(&all, &count))
        return false;
    if (count > 0 && KPROF_SUM(i, count, all[i].size_bytes) <= MOST_STAYS_BYTES)
        return kprof_managed_moves_freely();
    atomic_store(&held.unfit, version);
    return false;
}

void kprof_managed_stay(void)
{
    kprof_allocations_let_managed_stay(true);
}

static void end_stay(void)
{
    atomic_store(&held.over, true);
    kprof_allocations_let_managed_stay(false);
}

static uint64_t next_page(uint64_t at)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return (at / page_bytes + 1) * page_bytes;
}

/* Has the application told the driver nothing of where the page is to be? */
static bool is_page_free(const kprof_driver_api *driver, CUdeviceptr at, size_t size_bytes)
{
    int mostly_read = 1, preferred = 0, reached_by[MOST_DEVICES];
    memset(reached_by, 0, sizeof reached_by);
    return driver->cuMemRangeGetAttribute_(&mostly_read, sizeof mostly_read, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at,
                                           size_bytes) == CUDA_SUCCESS &&
           driver->cuMemRangeGetAttribute_(&preferred, sizeof preferred, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, at,
                                           size_bytes) == CUDA_SUCCESS &&
           driver->cuMemRangeGetAttribute_(reached_by, sizeof reached_by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, at,
                                           size_bytes) == CUDA_SUCCESS &&
           !mostly_read && preferred == CU_DEVICE_INVALID &&
           KPROF_ALL(i, MOST_DEVICES, reached_by[i] == CU_DEVICE_INVALID);
}

/* The driver tells of a range what it was told of all of it, so ask of each page. */
static bool is_free(const kprof_driver_api *driver, const kprof_span *span)
{
    const uint64_t end = span->address + span->size_bytes;
    bool free = true;
    for (uint64_t at = span->address; at < end && free; at = next_page(at))
        free = is_page_free(driver, at, (next_page(at) < end ? next_page(at) : end) - at);
    return free;
}

static CUresult advise(const kprof_driver_api *driver, const kprof_span *span, CUmem_advise advice)
{
    const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
    return driver->cuMemAdvise_(span->address, span->size_bytes, advice, host);
}

/* The driver brings a page to the host as the host reads it. The system reads here, and refuses where the application
 * has made the page unreadable. */
static bool touch_pages(const kprof_span *span)
{
    const uint64_t end = span->address + span->size_bytes;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    bool touched = true;
    for (uint64_t at = span->address; at < end && touched; at = next_page(at))
        touched = write(ends[1], (const void *)(uintptr_t)at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return touched;
}

static void drop_held(const kprof_driver_api *driver)
{
    for (size_t i = 0; i < held.count; i++)
        (void)advise(driver, &held.spans[i], CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
    free(held.spans);
    held.spans = NULL;
    held.count = 0;
}

kprof_status kprof_managed_hold(void)
{
    const kprof_driver_api *driver;
    kprof_span *all = NULL;
    size_t count = 0;
    KPROF_HOLD(held.mutex);
    if (kprof_driver_load(&driver) != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "there is no driver to keep managed memory on the host");
    KPROF_RELAX(driver);
    bool holds = kprof_managed_list(&all, &count) && KPROF_SUM(i, count, all[i].size_bytes) <= MOST_STAYS_BYTES &&
                 KPROF_ALL(i, count, is_free(driver, &all[i]));
    drop_held(driver);
    held.spans = all;
    while (holds && held.count < count) {
        holds = advise(driver, &all[held.count], CU_MEM_ADVISE_SET_PREFERRED_LOCATION) == CUDA_SUCCESS;
        held.count += holds;
    }
    if (holds && KPROF_ALL(i, count, touch_pages(&all[i])))
        return KPROF_OK;
    drop_held(driver);
    end_stay();
    return kprof_fail(KPROF_NOT_COLLECTED, "managed memory could not be kept on the host");
}

/* Is what is held all that there is? */
static bool is_complete(void)
{
    KPROF_AUTO_FREE kprof_span *now = NULL;
    size_t count;
    return kprof_managed_list(&now, &count) && count == held.count &&
           KPROF_ALL(i, count,
                     now[i].address == held.spans[i].address && now[i].size_bytes == held.spans[i].size_bytes);
}

/* Memory that came meanwhile was never brought to the host, so kernels may have used it unseen. */
bool kprof_managed_let_go(bool reached)
{
    const kprof_driver_api *driver;
    KPROF_HOLD(held.mutex);
    if (reached)
        end_stay();
    if (held.count == 0 || kprof_driver_load(&driver) != KPROF_OK)
        return true;
    KPROF_RELAX(driver);
    const bool is_there = KPROF_ALL(i, held.count,
                                    kprof_mappings_all_present(held.spans[i].address, held.spans[i].size_bytes)),
               same = is_complete();
    drop_held(driver);
    held.changes += !same;
    if (!is_there || held.changes == MOST_CHANGES)
        end_stay();
    return is_there && same;
}
