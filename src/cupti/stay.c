/* Tells the driver that the host is the preferred location: then it maps pages for kernels where they are. */
#include "cupti/stay.h"

#include "core/hold.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/allocations.h"
#include "cupti/driver.h"
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

typedef struct span_list {
    kprof_span *items; /* [count], owned */
    size_t count;
} span_list;

static struct {
    pthread_mutex_t mutex;
    span_list spans;  /* that the driver was told to keep on the host */
    unsigned changes; /* batches that were lost since memory came or went */
    atomic_bool over; /* nothing stays any more */
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* All there is, of all contexts. */
static bool list_all(span_list *list)
{
    kprof_variable *variables = NULL;
    size_t count = 0;
    *list = (span_list){0};
    bool known =
        kprof_allocations_list_managed(&list->items, &list->count) && kprof_variables_list(NULL, &variables, &count);
    for (size_t i = 0; i < count && known; i++) {
        if (!variables[i].is_managed)
            continue;
        known = variables[i].size_bytes > 0 && KPROF_APPEND(list->items, list->count);
        if (known)
            list->items[list->count++] = (kprof_span){variables[i].address, variables[i].size_bytes};
    }
    free(variables);
    if (known)
        return true;
    free(list->items);
    *list = (span_list){0};
    return false;
}

bool kprof_managed_moves_freely(void)
{
    const kprof_driver_api *driver;
    CUdevice device = -1;
    int concurrent = 0;
    return kprof_driver_load(&driver) == KPROF_OK && driver->cuCtxGetDevice_(&device) == CUDA_SUCCESS &&
           driver->cuDeviceGetAttribute_(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device) ==
               CUDA_SUCCESS &&
           concurrent;
}

bool kprof_managed_may_stay(void)
{
    span_list all;
    if (atomic_load(&held.over) || kprof_allocations_managed_stays() || !list_all(&all))
        return false;
    const size_t bytes = KPROF_SUM(i, all.count, all.items[i].size_bytes);
    free(all.items);
    return all.count > 0 && bytes <= MOST_STAYS_BYTES && kprof_managed_moves_freely();
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
    for (size_t i = 0; i < held.spans.count; i++)
        (void)advise(driver, &held.spans.items[i], CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
    free(held.spans.items);
    held.spans = (span_list){0};
}

kprof_status kprof_managed_hold(void)
{
    const kprof_driver_api *driver;
    span_list all = {0};
    KPROF_HOLD(held.mutex);
    if (kprof_driver_load(&driver) != KPROF_OK)
        return kprof_fail(KPROF_NOT_COLLECTED, "there is no driver to keep managed memory on the host");
    KPROF_RELAX(driver);
    bool holds = list_all(&all);
    const size_t bytes = holds ? KPROF_SUM(i, all.count, all.items[i].size_bytes) : 0;
    holds = holds && bytes <= MOST_STAYS_BYTES && KPROF_ALL(i, all.count, is_free(driver, &all.items[i]));
    const size_t count = all.count;
    drop_held(driver);
    held.spans = (span_list){all.items, 0};
    while (holds && held.spans.count < count) {
        holds = advise(driver, &all.items[held.spans.count], CU_MEM_ADVISE_SET_PREFERRED_LOCATION) == CUDA_SUCCESS;
        held.spans.count += holds;
    }
    for (size_t i = 0; i < count && holds; i++)
        holds = touch_pages(&all.items[i]);
    if (holds)
        return KPROF_OK;
    drop_held(driver);
    end_stay();
    return kprof_fail(KPROF_NOT_COLLECTED, "managed memory could not be kept on the host");
}

static bool is_same(const span_list *a, const span_list *b)
{
    return a->count == b->count &&
           KPROF_ALL(i, a->count,
                     a->items[i].address == b->items[i].address && a->items[i].size_bytes == b->items[i].size_bytes);
}

/* Memory that came meanwhile was never brought to the host, so kernels may have used it unseen. */
bool kprof_managed_let_go(bool reached)
{
    const kprof_driver_api *driver;
    span_list now;
    KPROF_HOLD(held.mutex);
    if (reached)
        end_stay();
    if (held.spans.count == 0 || kprof_driver_load(&driver) != KPROF_OK)
        return true;
    KPROF_RELAX(driver);
    const span_list *spans = &held.spans;
    const bool is_there =
        KPROF_ALL(i, spans->count, kprof_mappings_all_present(spans->items[i].address, spans->items[i].size_bytes));
    const bool known = list_all(&now), same = known && is_same(spans, &now);
    if (known)
        free(now.items);
    drop_held(driver);
    held.changes += !same;
    if (!is_there || held.changes == MOST_CHANGES)
        end_stay();
    return is_there && same;
}
