/* Memory is saved in blocks of 64 KiB by kernels of kprof's own (blocks.cu). A block that repeats its first 16 bytes,
 * as memory that was never written does, is kept as these; any other takes space on the device. */
#include "cupti/snapshot.h"

#include "core/bisect.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/strbuf.h"
#include "cupti/activities.h"
#include "cupti/allocations.h"
#include "cupti/backing.h"
#include "cupti/calls.h"
#include "cupti/freed.h"
#include "cupti/pools.h"
#include "cupti/redirect.h"
#include "cupti/variables.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES   ((size_t)64 << 10)
#define THREADS       256
#define BLOCKS_PER_SM 8
#define MAX_BLOCKS    ((size_t)1 << 24) /* 1 TiB */
#define IDLE_LIMIT_NS INT64_C(10000000000)
#define BUSY_LIMIT_NS INT64_C(80000000)
#define SPIN_NS       INT64_C(2000000)
#define POLL_US       100
#define LARGEST_PIECE BLOCK_BYTES
#define KEPT_SHARE    4 /* keep no more than this share of free memory for transfers */
#define MOST_LOCKED   ((size_t)1 << 30)

/* The kernels of blocks.cu, as text that the driver compiles. */
__asm__(".pushsection .rodata\n"
        ".global kprof_blocks_ptx\n"
        ".hidden kprof_blocks_ptx\n"
        "kprof_blocks_ptx: .incbin \"" KPROF_BLOCKS_PTX "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char kprof_blocks_ptx[];

/* As blocks.cu has it. */
typedef struct block {
    uint64_t address, backing, pattern[2];
    uint32_t bytes, state;
} block;

enum { UNIFORM = 1, CHANGED = 2, LOST = 4 };
enum { LOOK, PUT_BACK, PUT_BACK_IN_GROUPS };
#define GROUP ((size_t)256)

typedef struct block_table {
    block *items; /* [count] */
    size_t count, capacity;
    CUdeviceptr device; /* [device_capacity] */
    size_t device_capacity;
} block_table;

struct kprof_snapshot {
    const kprof_driver_api *driver;
    CUcontext context;
    CUdevice device;
    unsigned grid;
    CUmodule module;
    CUfunction scan, keep, compare, follow, copy, set; /* of the module */
    CUstream stream;
    CUstream lanes[KPROF_LANES - 1];  /* further ones; NULL: it has had nothing to do yet */
    CUevent event, reached, followed; /* reached, followed: before and behind kprof's own work in _follow */
    pthread_mutex_t following;        /* one thread stops that work at a time */
    bool is_behind;                   /* it may go on, and touches what is listed */
    bool is_replayed;                 /* since _record_end all memory was compared behind a replay */
    kprof_backing backing, locked;
    uint64_t scratch; /* in `locked` */
    size_t scratch_bytes;
    block_table start, end, compared; /* compared: by kprof_snapshot_compare */
    CUdeviceptr groups;               /* a byte for each GROUP of the start: has something in it changed? 0: none is */
    block_table seen, differing;      /* by _watch: those of `start`, with what differs marked, which is kept apart: */
    uint64_t *places;                 /* [start.count]: where, by block; 0: nowhere */
    size_t place_count;
    size_t kept_bytes, most_kept_bytes; /* of what transfers move, in this batch; most: 0 until known */
    kprof_freed freed;                  /* in this batch */
    kprof_span *spans; /* [span_count]: what `start` has, by address, none overlapping or touching another */
    size_t span_count, span_capacity;
    kprof_span *without_host; /* [without_count]: all but the host's, whose blocks begin at first_host_block */
    size_t without_count, first_host_block;
    unsigned allocations_version, variables_version;
    bool taken, ended;
    bool covered;                /* _cover has looked for more since _take */
    bool follows;                /* the device's list of `start` tells what a launch has changed, or will */
    bool with_host;              /* it has memory of the host, too */
    bool watches, seen_is_start; /* seen_is_start: nothing differed */
    bool stuck;                  /* work in the stream did not end in time */
    void *peeked; /* [KPROF_PEEK_BYTES], pinned: a copy that does not end in time lands there later; or NULL */
};

static kprof_status fail(const char *operation, CUresult result)
{
    kprof_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? KPROF_NO_MEMORY : KPROF_UNSUPPORTED;
    return kprof_fail(status, "%s: %s", operation, kprof_driver_error(result));
}

static kprof_status wait(kprof_snapshot *s, int64_t limit_ns)
{
    int64_t start_ns = kprof_monotonic_ns(), spent_ns = 0;
    CUresult result = s->driver->cuStreamQuery_(s->stream);
    for (; result == CUDA_ERROR_NOT_READY && spent_ns < limit_ns; spent_ns = kprof_monotonic_ns() - start_ns) {
        if (spent_ns > SPIN_NS)
            usleep(POLL_US);
        result = s->driver->cuStreamQuery_(s->stream);
    }
    s->stuck = result == CUDA_ERROR_NOT_READY;
    if (s->stuck)
        return kprof_fail(KPROF_NOT_COLLECTED, "the GPU was busy for over %d ms while memory was saved",
                          (int)(limit_ns / 1000000));
    return result == CUDA_SUCCESS ? KPROF_OK : fail("saving or restoring memory", result);
}

/* Fail while work of an earlier batch still goes on after kprof has timed out. */
static kprof_status check_ready(kprof_snapshot *s)
{
    if (!s->stuck || s->driver->cuStreamQuery_(s->stream) == CUDA_SUCCESS) {
        s->stuck = false;
        return KPROF_OK;
    }
    return kprof_fail(KPROF_NOT_COLLECTED, "the GPU is still busy with saving memory");
}

static CUresult make_stream(const kprof_snapshot *s, CUstream *stream)
{
    const CUresult result = s->driver->cuStreamCreate_(stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        kprof_activities_leave_out(s->context, *stream);
    return result;
}

static CUresult open_device_side(kprof_snapshot *s)
{
    const kprof_driver_api *driver = s->driver;
    const struct {
        CUfunction *function;
        const char *name;
    } kernels[] = {{&s->scan, "kprof_scan"},     {&s->keep, "kprof_keep"}, {&s->compare, "kprof_compare"},
                   {&s->follow, KPROF_FOLLOWER}, {&s->copy, "kprof_copy"}, {&s->set, "kprof_set"}};
    int sms = 1;
    CUresult result = driver->cuCtxGetDevice_(&s->device);
    KPROF_THEN(result, driver->cuDeviceGetAttribute_(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, s->device));
    s->grid = (unsigned)sms * BLOCKS_PER_SM;
    KPROF_THEN(result, driver->cuModuleLoadData_(&s->module, kprof_blocks_ptx));
    for (size_t i = 0; i < COUNT_OF(kernels); i++)
        KPROF_THEN(result, driver->cuModuleGetFunction_(kernels[i].function, s->module, kernels[i].name));
    KPROF_THEN(result, driver->cuEventCreate_(&s->event, CU_EVENT_DISABLE_TIMING));
    KPROF_THEN(result, driver->cuEventCreate_(&s->followed, CU_EVENT_DISABLE_TIMING));
    KPROF_THEN(result, driver->cuEventCreate_(&s->reached, CU_EVENT_DISABLE_TIMING));
    if (result == CUDA_SUCCESS && driver->cuMemAllocHost_(&s->peeked, KPROF_PEEK_BYTES) != CUDA_SUCCESS)
        s->peeked = NULL; /* _peek tells nothing then */
    return result == CUDA_SUCCESS ? make_stream(s, &s->stream) : result;
}

/* Undo what was made, also if the rest could not be: each batch tries anew. */
static void close_device_side(const kprof_snapshot *s)
{
    const CUevent events[] = {s->event, s->followed, s->reached};
    if (s->stream)
        (void)s->driver->cuStreamDestroy_(s->stream);
    for (unsigned i = 0; i < KPROF_LANES - 1; i++)
        if (s->lanes[i])
            (void)s->driver->cuStreamDestroy_(s->lanes[i]);
    if (s->peeked)
        (void)s->driver->cuMemFreeHost_(s->peeked);
    for (size_t i = 0; i < COUNT_OF(events); i++)
        if (events[i])
            (void)s->driver->cuEventDestroy_(events[i]);
    if (s->module)
        (void)s->driver->cuModuleUnload_(s->module);
}

kprof_status kprof_snapshot_open(void *context, kprof_snapshot **out)
{
    *out = NULL;
    kprof_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a snapshot");
    s->context = context;
    s->locked.is_host = true;
    pthread_mutex_init(&s->following, NULL);
    kprof_status status = kprof_driver_load(&s->driver);
    if (status == KPROF_OK) {
        KPROF_RELAX(s->driver);
        CUresult result = open_device_side(s);
        if (result != CUDA_SUCCESS) {
            close_device_side(s);
            status = fail("preparing to save memory", result);
        }
    }
    if (status != KPROF_OK) {
        free(s);
        return status;
    }
    *out = s;
    return KPROF_OK;
}

/* Tables */

static bool append_block(block_table *table, uint64_t address, size_t bytes)
{
    if (table->count == table->capacity) {
        size_t wanted = table->capacity ? 2 * table->capacity : 1024;
        block *grown = wanted <= MAX_BLOCKS ? realloc(table->items, wanted * sizeof *grown) : NULL;
        if (!grown)
            return false;
        table->items = grown;
        table->capacity = wanted;
    }
    table->items[table->count++] = (block){.address = address, .bytes = (uint32_t)bytes};
    return true;
}

static bool append_blocks(block_table *table, uint64_t address, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES)
        if (!append_block(table, address + at, bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES))
            return false;
    return true;
}

/* Return device memory that is the batch's; 0 when there is none. */
static CUdeviceptr take_space(kprof_snapshot *s, size_t bytes)
{
    CUdeviceptr space = kprof_backing_take(&s->backing, bytes);
    if (!space && kprof_backing_grow(&s->backing, s->driver, bytes) == KPROF_OK)
        space = kprof_backing_take(&s->backing, bytes);
    return space;
}

/* The device has space for as many blocks as the host; its old content need not be kept. */
static kprof_status grow_device_table(kprof_snapshot *s, block_table *table)
{
    if (table->count <= table->device_capacity)
        return KPROF_OK;
    CUdeviceptr space = take_space(s, table->capacity * sizeof(block));
    if (!space)
        return kprof_fail(KPROF_NO_MEMORY, "no space on the device to list what is saved");
    table->device = space;
    table->device_capacity = table->capacity;
    return KPROF_OK;
}

static CUresult upload(kprof_snapshot *s, const block_table *table, size_t from)
{
    return s->driver->cuMemcpyHtoDAsync_(table->device + from * sizeof(block), table->items + from,
                                         (table->count - from) * sizeof(block), s->stream);
}

static CUresult download(kprof_snapshot *s, const block_table *table, size_t from)
{
    return s->driver->cuMemcpyDtoHAsync_(table->items + from, table->device + from * sizeof(block),
                                         (table->count - from) * sizeof(block), s->stream);
}

/* A kernel of kprof's own runs in as many blocks as the GPU runs at once, or `blocks` if these are fewer. */
static unsigned grid_for(const kprof_snapshot *s, size_t blocks)
{
    return blocks < s->grid ? (unsigned)blocks : s->grid;
}

static CUresult launch(kprof_snapshot *s, CUfunction kernel, size_t blocks, void **arguments)
{
    if (blocks == 0)
        return CUDA_SUCCESS;
    return s->driver->cuLaunchKernel_(kernel, grid_for(s, blocks), 1, 1, THREADS, 1, 1, 0, s->stream, arguments, NULL);
}

/* In a stream of the application's. */
static CUresult launch_behind(kprof_snapshot *s, CUstream stream, CUfunction kernel, const block_table *table)
{
    CUdeviceptr blocks = table->device;
    CUdeviceptr no_groups = 0;
    unsigned count = (unsigned)table->count, repair = LOOK;
    void *arguments[] = {&blocks, &count, &repair, &no_groups};
    if (count == 0)
        return CUDA_SUCCESS;
    return s->driver->cuLaunchKernel_(kernel, grid_for(s, count), 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

/* Run a kernel over the blocks from number `from` on; kprof_compare only looks at them. */
static CUresult run(kprof_snapshot *s, CUfunction kernel, const block_table *table, size_t from)
{
    CUdeviceptr blocks = table->device + from * sizeof(block), no_groups = 0;
    unsigned count = (unsigned)(table->count - from), repair = LOOK;
    return launch(s, kernel, count, (void *[]){&blocks, &count, &repair, &no_groups});
}

/* Compare all blocks of the start, or those of groups that have changed, and note which groups have. */
static CUresult compare_start(kprof_snapshot *s, unsigned repair)
{
    CUdeviceptr blocks = s->start.device;
    unsigned count = (unsigned)s->start.count;
    return launch(s, s->compare, count, (void *[]){&blocks, &count, &repair, &s->groups});
}

static CUresult restore_start(kprof_snapshot *s, bool everywhere)
{
    return compare_start(s, everywhere || !s->groups ? PUT_BACK : PUT_BACK_IN_GROUPS);
}

/* Put back what is kept of all blocks. */
static CUresult put_back(kprof_snapshot *s, const block_table *table)
{
    CUdeviceptr blocks = table->device, no_groups = 0;
    unsigned count = (unsigned)table->count, repair = PUT_BACK;
    return launch(s, s->compare, count, (void *[]){&blocks, &count, &repair, &no_groups});
}

/* Give each block from number `from` on that needs it a place to be kept. */
static kprof_status assign_backing(kprof_snapshot *s, block_table *table, size_t from)
{
    size_t bytes = 0;
    for (size_t i = from; i < table->count; i++)
        bytes +=
            table->items[i].state & UNIFORM || table->items[i].backing ? 0 : (table->items[i].bytes + 255u) / 256 * 256;
    kprof_status status = bytes > 0 ? kprof_backing_reserve(&s->backing, s->driver, bytes, LARGEST_PIECE) : KPROF_OK;
    for (size_t i = from; i < table->count && status == KPROF_OK; i++) {
        block *b = &table->items[i];
        if (b->state & UNIFORM || b->backing)
            continue;
        b->backing = kprof_backing_take(&s->backing, b->bytes);
        if (!b->backing)
            status = kprof_fail(KPROF_INTERNAL, "the space for saved memory is too small");
    }
    return status;
}

/* Spans */

KPROF_BY_NUMBER(compare_spans, kprof_span, address)

/* Number of the first span that ends behind the address. */
static size_t find_span(const kprof_snapshot *s, uint64_t address)
{
    size_t place;
    KPROF_BISECT(place, s->span_count, s->spans[middle].address + s->spans[middle].size_bytes <= address)
    return place;
}

bool kprof_snapshot_holds(const kprof_snapshot *s, uint64_t address, size_t size_bytes)
{
    size_t i = find_span(s, address);
    return i < s->span_count && s->spans[i].address <= address &&
           address + size_bytes <= s->spans[i].address + s->spans[i].size_bytes;
}

/* Append blocks for the parts of a range that no span has yet. */
static bool append_new_parts(kprof_snapshot *s, kprof_span range)
{
    uint64_t at = range.address, end = range.address + range.size_bytes;
    for (size_t i = find_span(s, at); at < end; i++) {
        uint64_t next = i < s->span_count && s->spans[i].address < end ? s->spans[i].address : end;
        if (next > at && !append_blocks(&s->start, at, (size_t)(next - at)))
            return false;
        at = i < s->span_count ? s->spans[i].address + s->spans[i].size_bytes : end;
    }
    return true;
}

/* Sort spans and join those that overlap or touch. */
static size_t join(kprof_span *spans, size_t count)
{
    size_t joined = 0;
    if (count > 1)
        qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 0; i < count; i++) {
        kprof_span *last = joined > 0 ? &spans[joined - 1] : NULL;
        uint64_t end = spans[i].address + spans[i].size_bytes;
        if (last && spans[i].address <= last->address + last->size_bytes) {
            if (end > last->address + last->size_bytes)
                last->size_bytes = (size_t)(end - last->address);
        } else {
            spans[joined++] = spans[i];
        }
    }
    return joined;
}

static bool add_spans(kprof_snapshot *s, kprof_span *added, size_t count)
{
    size_t wanted = s->span_count + count;
    count = join(added, count);
    for (size_t i = 0; i < count; i++)
        if (!append_new_parts(s, added[i]))
            return false;
    if (wanted > s->span_capacity) {
        kprof_span *grown = realloc(s->spans, 2 * wanted * sizeof *grown);
        if (!grown)
            return false;
        s->spans = grown;
        s->span_capacity = 2 * wanted;
    }
    if (count == 0)
        return true;
    memcpy(s->spans + s->span_count, added, count * sizeof *added);
    s->span_count = join(s->spans, s->span_count + count);
    return true;
}

/* Module variables */

/* If a variable cannot be read, it has gone with its module; less memory may be there now. */
static kprof_status locate_variable(kprof_snapshot *s, const kprof_variable *known, kprof_span *out)
{
    unsigned char first;
    *out = (kprof_span){known->address, known->size_bytes};
    if (known->size_bytes > 0 && kprof_snapshot_holds(s, known->address, known->size_bytes))
        return KPROF_OK;
    CUresult result = s->driver->cuMemcpyDtoHAsync_(&first, known->address, 1, s->stream);
    if (result == CUDA_ERROR_INVALID_VALUE) {
        kprof_variables_drop(known->context, known->address);
        out->size_bytes = 0;
        return KPROF_OK;
    }
    if (result != CUDA_SUCCESS)
        return fail("reading a module variable", result);
    size_t rest = kprof_driver_measure_rest(s->driver, known->address);
    if (out->size_bytes == 0 || (rest > 0 && rest < out->size_bytes))
        out->size_bytes = rest;
    if (out->size_bytes == 0)
        return kprof_fail(KPROF_UNSUPPORTED, "the size of a module variable is not known");
    return KPROF_OK;
}

static kprof_status add_variables(kprof_snapshot *s)
{
    kprof_variable *known;
    size_t count, found = 0;
    if (!kprof_variables_list(NULL, &known, &count))
        return kprof_fail(KPROF_UNSUPPORTED, "the module variables are not known");
    KPROF_AUTO_FREE kprof_span *spans = kprof_calloc(count + 1, sizeof *spans);
    kprof_status status = spans ? KPROF_OK : KPROF_NO_MEMORY;
    for (size_t i = 0; i < count && status == KPROF_OK; i++) {
        const bool is_others = known[i].context && known[i].context != s->context;
        if (known[i].is_managed ? kprof_allocations_managed_stays() : is_others)
            continue;
        status = locate_variable(s, &known[i], &spans[found]);
        found += status == KPROF_OK && spans[found].size_bytes > 0;
    }
    if (status == KPROF_OK && !add_spans(s, spans, found))
        status = KPROF_NO_MEMORY;
    free(known);
    return status;
}

static kprof_status add_allocations(kprof_snapshot *s)
{
    kprof_span *spans;
    size_t count;
    if (!kprof_allocations_list(s->context, s->device, &spans, &count))
        return kprof_fail(KPROF_UNSUPPORTED, "the application's memory is not known");
    bool added = add_spans(s, spans, count);
    free(spans);
    return added ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory to list what has to be saved");
}

static kprof_span *copy_spans(const kprof_snapshot *s)
{
    kprof_span *out = kprof_calloc(s->span_count + 1, sizeof *out);
    if (out && s->span_count > 0)
        memcpy(out, s->spans, s->span_count * sizeof *out);
    return out;
}

/* Behind all else, and remember what that was. */
static kprof_status add_host(kprof_snapshot *s)
{
    kprof_span *spans = NULL;
    size_t count;
    if (!s->with_host)
        return KPROF_OK;
    free(s->without_host);
    s->without_host = copy_spans(s);
    s->without_count = s->span_count;
    s->first_host_block = s->start.count;
    bool added = s->without_host && kprof_allocations_list_host(&spans, &count) && add_spans(s, spans, count);
    free(spans);
    return added ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory to list what has to be saved");
}

/* Read what a kernel that was launched with this result finds in the blocks from number `from` on. */
static kprof_status inspect(kprof_snapshot *s, CUresult result, size_t from, int64_t limit_ns)
{
    kprof_status status = result == CUDA_SUCCESS ? wait(s, limit_ns) : fail("looking at memory", result);
    if (status != KPROF_OK || s->start.count == from)
        return status;
    result = download(s, &s->start, from); /* waits without a limit, now that there is nothing to wait for */
    return result == CUDA_SUCCESS ? wait(s, limit_ns) : fail("looking at memory", result);
}

/* Copy the blocks of a table from number `from` on to where they are kept. */
static kprof_status keep_blocks(kprof_snapshot *s, block_table *table, size_t from, int64_t limit_ns)
{
    kprof_status status = assign_backing(s, table, from);
    if (status != KPROF_OK)
        return status;
    CUresult result = upload(s, table, from);
    KPROF_THEN(result, run(s, s->keep, table, from));
    return result == CUDA_SUCCESS ? wait(s, limit_ns) : fail("saving memory", result);
}

static kprof_status save_blocks(kprof_snapshot *s, size_t from, int64_t limit_ns)
{
    const bool grows = s->start.count > s->start.device_capacity;
    if (s->start.count == from)
        return KPROF_OK;
    if (s->follows && grows) /* what the launch has changed, or will, is noted in the list that is there */
        return kprof_fail(KPROF_NOT_COLLECTED, "the list of saved memory grew behind a launch that is followed");
    kprof_status status = grow_device_table(s, &s->start);
    if (status != KPROF_OK)
        return status;
    if (grows)
        s->groups = 0; /* there are too few for the list */
    CUresult result = upload(s, &s->start, grows ? 0 : from);
    KPROF_THEN(result, run(s, s->scan, &s->start, from));
    status = inspect(s, result, from, limit_ns);
    return KPROF_THEN(status, keep_blocks(s, &s->start, from, limit_ns));
}

/* If something cannot be saved, the snapshot keeps what it has. */
static kprof_status add_what_is_there(kprof_snapshot *s, int64_t limit_ns)
{
    size_t from = s->start.count, span_count = s->span_count;
    unsigned allocations_version = kprof_allocations_version(), variables_version = kprof_variables_version();
    KPROF_AUTO_FREE kprof_span *spans = copy_spans(s);
    if (!spans)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to list what has to be saved");
    kprof_status status = add_allocations(s);
    KPROF_THEN(status, add_variables(s));
    KPROF_THEN(status, add_host(s));
    KPROF_THEN(status, save_blocks(s, from, limit_ns));
    if (status == KPROF_OK) {
        s->allocations_version = allocations_version;
        s->variables_version = variables_version;
    } else {
        s->start.count = from;
        s->span_count = span_count;
        if (span_count > 0)
            memcpy(s->spans, spans, span_count * sizeof *spans);
    }
    return status;
}

kprof_status kprof_snapshot_take(kprof_snapshot *s, bool with_host)
{
    kprof_status status = check_ready(s);
    if (status != KPROF_OK)
        return status;
    kprof_snapshot_drop(s, true);
    s->with_host = with_host;
    s->covered = false;
    status = add_what_is_there(s, IDLE_LIMIT_NS);
    s->taken = status == KPROF_OK;
    (void)kprof_redirect_works(); /* to find out takes an idle context */
    return status;
}

/* The host's blocks are the last ones, all of them, unless _cover has added more. */
bool kprof_snapshot_leave_host(kprof_snapshot *s)
{
    if (!s->with_host)
        return true;
    if (s->covered)
        return false;
    if (s->without_count > 0)
        memcpy(s->spans, s->without_host, s->without_count * sizeof *s->spans);
    s->span_count = s->without_count;
    s->start.count = s->first_host_block;
    s->seen.count = s->seen.count < s->start.count ? s->seen.count : s->start.count;
    s->with_host = false;
    return true;
}

kprof_status kprof_snapshot_cover(kprof_snapshot *s, void *stream)
{
    if (s->allocations_version == kprof_allocations_version() && s->variables_version == kprof_variables_version())
        return KPROF_OK;
    KPROF_RELAX(s->driver);
    kprof_status status = check_ready(s);
    CUresult result = CUDA_SUCCESS;
    s->covered = true;
    if (status == KPROF_OK && stream)
        result = s->driver->cuEventRecord_(s->event, stream);
    if (status == KPROF_OK && stream && result == CUDA_SUCCESS)
        result = s->driver->cuStreamWaitEvent_(s->stream, s->event, 0);
    if (status == KPROF_OK && stream)
        status = result == CUDA_SUCCESS ? wait(s, BUSY_LIMIT_NS) : fail("waiting for new memory", result);
    KPROF_THEN(status, add_what_is_there(s, BUSY_LIMIT_NS));
    return status;
}

bool kprof_snapshot_keep_freed(kprof_snapshot *s, const kprof_call *call)
{
    const kprof_decoded_call *decoded = call->parameters;
    if (call->kind == KPROF_CALL_POOL_FREE)
        return s->taken && kprof_pools_hold(decoded->freed_to_pool);
    return s->taken && kprof_freed_keep(&s->freed, s->context, decoded->freed);
}

kprof_status kprof_snapshot_follow(kprof_snapshot *s, void *stream, bool becomes_start)
{
    CUresult result = s->driver->cuEventRecord_(s->reached, stream);
    s->is_behind = true;
    s->follows = becomes_start;
    if (s->watches && result == CUDA_SUCCESS)
        result = launch_behind(s, stream, s->compare, &s->seen);
    if (s->watches && result == CUDA_SUCCESS)
        result = launch_behind(s, stream, s->compare, &s->differing);
    if (becomes_start && result == CUDA_SUCCESS)
        result = launch_behind(s, stream, s->follow, &s->start);
    KPROF_THEN(result, s->driver->cuEventRecord_(s->followed, stream));
    return result == CUDA_SUCCESS ? KPROF_OK : fail("saving memory behind a launch", result);
}

bool kprof_snapshot_has_followed(const kprof_snapshot *s)
{
    return s->driver->cuEventQuery_(s->followed) == CUDA_SUCCESS;
}

/* The list is empty to a kernel that begins afterwards. A copy needs nothing that a kernel may hold. */
static CUresult empty_list(kprof_snapshot *s, const block_table *table)
{
    void *zeros = table->count > 0 ? calloc(table->count, sizeof(block)) : NULL;
    if (table->count == 0)
        return CUDA_SUCCESS;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (zeros)
        result = s->driver->cuMemcpyHtoDAsync_(table->device, zeros, table->count * sizeof(block), s->stream);
    if (result == CUDA_SUCCESS && wait(s, BUSY_LIMIT_NS) != KPROF_OK)
        result = CUDA_ERROR_NOT_READY;
    free(zeros);
    return result;
}

/* If the launch has not ended once the lists are empty, the kernels behind find nothing to do. Else they end soon. */
void kprof_snapshot_stop_following(kprof_snapshot *s)
{
    KPROF_HOLD(s->following);
    KPROF_RELAX(s->driver);
    CUresult result = s->is_behind ? s->driver->cuEventQuery_(s->followed) : CUDA_SUCCESS;
    if (result == CUDA_ERROR_NOT_READY) {
        result = empty_list(s, &s->seen);
        KPROF_THEN(result, empty_list(s, &s->differing));
        if (result == CUDA_SUCCESS && s->follows)
            result = empty_list(s, &s->start);
        const bool ends = result != CUDA_SUCCESS || s->driver->cuEventQuery_(s->reached) == CUDA_SUCCESS;
        for (int64_t since_ns = kprof_monotonic_ns();
             ends && s->driver->cuEventQuery_(s->followed) == CUDA_ERROR_NOT_READY &&
             (result == CUDA_SUCCESS || kprof_monotonic_ns() - since_ns < BUSY_LIMIT_NS);)
            usleep(POLL_US);
    }
    s->is_behind = false;
}

/* May a batch keep this many more bytes of what transfers move, or of what _watch sees? Its end will need space, too.
 * */
static bool may_keep(kprof_snapshot *s, size_t bytes)
{
    size_t free_bytes = 0, total_bytes;
    if (s->most_kept_bytes == 0 && s->driver->cuMemGetInfo_(&free_bytes, &total_bytes) == CUDA_SUCCESS)
        s->most_kept_bytes = (free_bytes + kprof_backing_bytes(&s->backing)) / KEPT_SHARE;
    return bytes <= s->most_kept_bytes - s->kept_bytes;
}

/* List the blocks that differ from the start, with the place that each has been given before. */
static kprof_status list_differing(kprof_snapshot *s)
{
    block_table *table = &s->differing;
    size_t bytes = 0;
    if (s->place_count < s->start.capacity) {
        uint64_t *grown = realloc(s->places, s->start.capacity * sizeof *grown);
        if (!grown)
            return kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
        memset(grown + s->place_count, 0, (s->start.capacity - s->place_count) * sizeof *grown);
        s->places = grown;
        s->place_count = s->start.capacity;
    }
    table->count = 0;
    for (size_t i = 0; i < s->seen.count; i++) {
        const block *b = &s->seen.items[i];
        if (!(b->state & CHANGED))
            continue;
        if (!append_block(table, b->address, b->bytes))
            return kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
        table->items[table->count - 1].backing = s->places[i];
        bytes += s->places[i] ? 0 : b->bytes;
    }
    if (!may_keep(s, bytes))
        return kprof_fail(KPROF_NO_MEMORY, "there is no space to keep what has changed");
    s->kept_bytes += bytes;
    return grow_device_table(s, table);
}

static kprof_status keep_differing(kprof_snapshot *s)
{
    kprof_status status = list_differing(s);
    if (status == KPROF_OK && s->differing.count > 0)
        status = keep_blocks(s, &s->differing, 0, IDLE_LIMIT_NS);
    for (size_t i = 0, next = 0; status == KPROF_OK && i < s->seen.count; i++)
        if (s->seen.items[i].state & CHANGED)
            s->places[i] = s->differing.items[next++].backing;
    return status;
}

/* Have a list like that of the start, on the device and, unless nothing differs, on the host. */
static kprof_status see_start(kprof_snapshot *s, bool is_start)
{
    block_table *table = &s->seen;
    if (table->capacity < s->start.capacity && !is_start) {
        block *grown = realloc(table->items, s->start.capacity * sizeof *grown);
        if (!grown)
            return kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
        table->items = grown;
        table->capacity = s->start.capacity;
    }
    table->count = s->start.count;
    if (table->device_capacity < s->start.capacity) {
        table->device = take_space(s, s->start.capacity * sizeof(block));
        table->device_capacity = table->device ? s->start.capacity : 0;
    }
    if (!table->device && table->count > 0)
        return kprof_fail(KPROF_NO_MEMORY, "no space on the device to list what has changed");
    const kprof_rows list = {
        .to = table->device, .from = s->start.device, .width = table->count * sizeof(block), .height = 1};
    kprof_status status = table->count > 0 ? kprof_snapshot_copy(s, &list) : KPROF_OK;
    return KPROF_THEN(status, wait(s, IDLE_LIMIT_NS));
}

static kprof_status watch(kprof_snapshot *s, bool is_start)
{
    kprof_status status = see_start(s, is_start);
    s->differing.count = 0;
    if (status != KPROF_OK || is_start || s->seen.count == 0)
        return status;
    CUresult result = run(s, s->compare, &s->seen, 0);
    status = result == CUDA_SUCCESS ? wait(s, IDLE_LIMIT_NS) : fail("looking at memory", result);
    if (status != KPROF_OK)
        return status;
    result = download(s, &s->seen, 0);
    status = result == CUDA_SUCCESS ? wait(s, IDLE_LIMIT_NS) : fail("looking at memory", result);
    return KPROF_THEN(status, keep_differing(s));
}

kprof_status kprof_snapshot_watch(kprof_snapshot *s, bool is_start)
{
    KPROF_RELAX(s->driver);
    kprof_status status = check_ready(s);
    KPROF_THEN(status, watch(s, is_start));
    s->watches = status == KPROF_OK;
    s->seen_is_start = is_start;
    return status;
}

/* A block was changed if it differs from the start now, and did not before, or if it differs from what was kept. */
static kprof_status find_changed(kprof_snapshot *s, block *now, bool *changed)
{
    block_table after = {.items = now, .count = s->seen.count, .device = s->seen.device};
    CUresult result = after.count > 0 ? download(s, &after, 0) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && s->differing.count > 0)
        result = download(s, &s->differing, 0);
    kprof_status status = result == CUDA_SUCCESS ? wait(s, IDLE_LIMIT_NS) : fail("looking at memory", result);
    for (size_t i = 0; status == KPROF_OK && i < after.count && !*changed; i++)
        *changed = (now[i].state & CHANGED) && (s->seen_is_start || !(s->seen.items[i].state & CHANGED));
    for (size_t i = 0; status == KPROF_OK && i < s->differing.count && !*changed; i++)
        *changed = s->differing.items[i].state & CHANGED;
    return status;
}

kprof_status kprof_snapshot_has_changed(kprof_snapshot *s, bool *changed)
{
    KPROF_AUTO_FREE block *now = kprof_calloc(s->seen.count + 1, sizeof *now);
    kprof_status status = now ? check_ready(s) : kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
    *changed = false;
    if (status == KPROF_OK && !s->watches)
        status = kprof_fail(KPROF_INTERNAL, "nothing was watched");
    KPROF_RELAX(s->driver);
    KPROF_THEN(status, find_changed(s, now, changed));
    s->watches = false;
    return status;
}

/* List rows for kprof_compare, which finds them kept at `to`, row behind row. */
static bool list_compared(block_table *table, const kprof_rows *rows)
{
    uint64_t kept = rows->to;
    table->count = 0;
    for (size_t row = 0; row < rows->height; row++)
        if (!append_blocks(table, rows->from + row * rows->from_pitch_bytes, rows->width))
            return false;
    for (size_t i = 0; i < table->count; i++) {
        table->items[i].backing = kept;
        kept += table->items[i].bytes;
    }
    return true;
}

uint64_t kprof_snapshot_space(kprof_snapshot *s, size_t width, size_t height)
{
    const kprof_rows rows = {.width = width, .height = height};
    size_t size_bytes = width * height;
    if (!may_keep(s, size_bytes))
        return 0;
    /* A replay has no time to make space for the list. */
    if (!list_compared(&s->compared, &rows) || grow_device_table(s, &s->compared) != KPROF_OK)
        return 0;
    CUdeviceptr space = take_space(s, size_bytes);
    if (space)
        s->kept_bytes += size_bytes;
    return space;
}

static uint64_t take_locked_space(kprof_snapshot *s, size_t size_bytes)
{
    const uint64_t space = kprof_backing_take(&s->locked, size_bytes);
    const size_t has_bytes = kprof_backing_bytes(&s->locked);
    if (space || has_bytes > MOST_LOCKED || size_bytes > MOST_LOCKED - has_bytes ||
        kprof_backing_grow(&s->locked, s->driver, size_bytes) != KPROF_OK)
        return space;
    return kprof_backing_take(&s->locked, size_bytes);
}

uint64_t kprof_snapshot_locked_space(kprof_snapshot *s, size_t size_bytes, bool is_scratch)
{
    if (!is_scratch)
        return take_locked_space(s, size_bytes);
    if (size_bytes > s->scratch_bytes) {
        s->scratch = take_locked_space(s, size_bytes);
        s->scratch_bytes = s->scratch ? size_bytes : 0;
    }
    return s->scratch;
}

kprof_status kprof_snapshot_compare(kprof_snapshot *s, const kprof_rows *rows, bool *same)
{
    block_table *table = &s->compared;
    if (!list_compared(table, rows))
        return kprof_fail(KPROF_NO_MEMORY, "no memory to list what is compared");
    kprof_status status = grow_device_table(s, table);
    if (status != KPROF_OK)
        return status;
    CUresult result = upload(s, table, 0);
    KPROF_THEN(result, run(s, s->compare, table, 0));
    KPROF_THEN(result, download(s, table, 0));
    status = result == CUDA_SUCCESS ? wait(s, IDLE_LIMIT_NS) : fail("comparing memory", result);
    *same = KPROF_ALL(i, table->count, !(table->items[i].state & CHANGED));
    return status;
}

/* Run a kernel whose threads share `items` pieces of work. */
static kprof_status run_plain(kprof_snapshot *s, CUfunction kernel, size_t items, void **arguments)
{
    CUresult result = launch(s, kernel, (items + THREADS - 1) / THREADS, arguments);
    return result == CUDA_SUCCESS ? KPROF_OK : fail("repeating a transfer", result);
}

kprof_status kprof_snapshot_copy(kprof_snapshot *s, const kprof_rows *rows)
{
    kprof_rows copy = *rows;
    if (copy.height == 1)
        copy.to_pitch_bytes = copy.from_pitch_bytes = 0;
    void *arguments[] = {&copy.to, &copy.to_pitch_bytes, &copy.from, &copy.from_pitch_bytes, &copy.width, &copy.height};
    return run_plain(s, s->copy, (copy.width + 15) / 16 * copy.height, arguments);
}

kprof_status kprof_snapshot_set(kprof_snapshot *s, const kprof_set *set)
{
    kprof_set copy = *set;
    void *arguments[] = {&copy.to, &copy.pitch_bytes, &copy.value, &copy.element_bytes, &copy.width, &copy.height};
    return run_plain(s, s->set, copy.width * copy.height, arguments);
}

bool kprof_snapshot_has_host(const kprof_snapshot *s)
{
    return s->with_host;
}

struct kprof_kept_memory {
    block_table table; /* without items on the host */
    bool is_all;       /* what is not in the table is as at the start */
};

static kprof_status keep_table(kprof_snapshot *s, block_table *table, size_t bytes)
{
    if (!may_keep(s, bytes))
        return kprof_fail(KPROF_NO_MEMORY, "there is no space to keep what the host did");
    table->device = take_space(s, table->count * sizeof(block));
    if (!table->device)
        return kprof_fail(KPROF_NO_MEMORY, "no space on the device to list what the host did");
    s->kept_bytes += bytes;
    return keep_blocks(s, table, 0, BUSY_LIMIT_NS);
}

/* Keep what is in the blocks of the table, if listing them went well. */
static kprof_status end_keeping(kprof_snapshot *s, kprof_status status, size_t bytes, kprof_kept_memory **out)
{
    if (status == KPROF_OK && bytes > 0)
        status = keep_table(s, &(*out)->table, bytes);
    if (*out) {
        free((*out)->table.items);
        (*out)->table.items = NULL;
    }
    if (status != KPROF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

kprof_status kprof_snapshot_keep(kprof_snapshot *s, const kprof_span *spans, size_t count, kprof_kept_memory **out)
{
    *out = calloc(1, sizeof **out);
    kprof_status status = *out ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory to keep what the host did");
    size_t bytes = 0;
    for (size_t i = 0; i < count && status == KPROF_OK; i++) {
        bytes += spans[i].size_bytes;
        if (!kprof_snapshot_holds(s, spans[i].address, spans[i].size_bytes) ||
            !append_blocks(&(*out)->table, spans[i].address, spans[i].size_bytes))
            status = kprof_fail(KPROF_NO_MEMORY, "what the host did is not in memory that is saved");
    }
    return end_keeping(s, status, bytes, out);
}

kprof_status kprof_snapshot_keep_all(kprof_snapshot *s, kprof_kept_memory **out)
{
    size_t bytes = 0;
    *out = calloc(1, sizeof **out);
    kprof_status status = *out ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory to keep what has changed");
    KPROF_THEN(status, inspect(s, compare_start(s, LOOK), 0, IDLE_LIMIT_NS));
    for (size_t i = 0; i < s->start.count && status == KPROF_OK; i++) {
        const block *b = &s->start.items[i];
        if (!(b->state & CHANGED))
            continue;
        bytes += b->bytes;
        if (!append_block(&(*out)->table, b->address, b->bytes))
            status = kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
    }
    if (status == KPROF_OK)
        (*out)->is_all = true;
    return end_keeping(s, status, bytes, out);
}

kprof_status kprof_snapshot_put(kprof_snapshot *s, const kprof_kept_memory *kept)
{
    /* The own run may have set back what an earlier launch had changed: no list has that yet. */
    CUresult result = kept->is_all ? restore_start(s, !s->is_replayed) : CUDA_SUCCESS;
    KPROF_THEN(result, put_back(s, &kept->table));
    return result == CUDA_SUCCESS ? KPROF_OK : fail("putting back what was kept", result);
}

unsigned kprof_kept_memory_kernels(const kprof_kept_memory *kept)
{
    return kept->is_all + (kept->table.count > 0);
}

void kprof_kept_memory_free(kprof_kept_memory *kept)
{
    free(kept);
}

static kprof_status list_changed(kprof_snapshot *s)
{
    s->end.count = 0;
    for (size_t i = 0; i < s->start.count; i++) {
        const block *b = &s->start.items[i];
        if (b->state & LOST)
            return kprof_fail(KPROF_NOT_COLLECTED,
                              "the launch that the batch stands behind wrote memory which had taken "
                              "no space to keep, and does now");
        if ((b->state & CHANGED) && !append_block(&s->end, b->address, b->bytes))
            return kprof_fail(KPROF_NO_MEMORY, "no memory to list what has changed");
    }
    return grow_device_table(s, &s->end);
}

/* Have space for the groups, of which none has changed. */
static kprof_status clear_groups(kprof_snapshot *s)
{
    const size_t count = (s->start.count + GROUP - 1) / GROUP;
    if (!s->groups)
        s->groups = take_space(s, (s->start.capacity + GROUP - 1) / GROUP);
    if (!s->groups)
        return kprof_fail(KPROF_NO_MEMORY, "no space on the device to list what has changed");
    return kprof_snapshot_set(s, &(kprof_set){.to = s->groups, .width = count, .height = 1, .element_bytes = 1});
}

kprof_status kprof_snapshot_record_end(kprof_snapshot *s)
{
    kprof_status status = s->start.count > 0 ? clear_groups(s) : KPROF_OK;
    s->is_replayed = false;
    KPROF_THEN(status, inspect(s, compare_start(s, LOOK), 0, IDLE_LIMIT_NS));
    KPROF_THEN(status, list_changed(s));
    kprof_backing_mark(&s->backing);
    if (status == KPROF_OK && s->end.count > 0)
        status = keep_blocks(s, &s->end, 0, IDLE_LIMIT_NS);
    s->ended = status == KPROF_OK;
    return status;
}

kprof_status kprof_snapshot_restore_start(kprof_snapshot *s, bool everywhere)
{
    CUresult result = restore_start(s, everywhere);
    s->is_replayed = s->is_replayed || everywhere;
    return result == CUDA_SUCCESS ? wait(s, IDLE_LIMIT_NS) : fail("restoring memory", result);
}

kprof_status kprof_snapshot_restore_end(kprof_snapshot *s)
{
    if (!s->ended)
        return kprof_fail(KPROF_INTERNAL, "restoring memory: what the application left was not recorded");
    CUresult result = put_back(s, &s->start);
    KPROF_THEN(result, put_back(s, &s->end));
    /* Wait without a limit: what is queued would undo what the application does next, and waits for nothing of it. */
    kprof_status status = result == CUDA_SUCCESS ? wait(s, INT64_MAX) : fail("restoring memory", result);
    if (status != KPROF_OK)
        return status;
    s->ended = false;
    kprof_backing_rewind(&s->backing);
    return KPROF_OK;
}

void kprof_snapshot_drop(kprof_snapshot *s, bool is_idle)
{
    if (!is_idle)
        kprof_snapshot_stop_following(s);
    s->is_behind = false;
    s->start.count = s->end.count = s->span_count = 0;
    s->seen.count = s->differing.count = s->place_count = 0;
    s->start.device_capacity = s->end.device_capacity = s->compared.device_capacity = 0; /* it goes with the rest */
    s->seen.device_capacity = s->differing.device_capacity = 0;
    s->groups = 0;
    s->taken = s->ended = s->follows = s->watches = false;
    s->kept_bytes = s->most_kept_bytes = s->scratch_bytes = 0;
    {
        KPROF_RELAX(s->driver);
        kprof_pools_let_go(is_idle && !s->stuck);
        if (is_idle && !s->stuck)
            kprof_backing_release(&s->locked, s->driver, true);
    }
    if (s->stuck)
        return;
    kprof_backing_reset(&s->backing);
    if (is_idle)
        kprof_freed_let_go(&s->freed, s->context);
}

void kprof_snapshot_release(kprof_snapshot *s)
{
    if (s->taken || s->stuck)
        return;
    kprof_backing_release(&s->backing, s->driver, true);
    kprof_backing_release(&s->locked, s->driver, true);
    kprof_freed_let_go(&s->freed, s->context);
}

unsigned kprof_snapshot_unloads(void)
{
    return kprof_freed_unloads();
}

size_t kprof_snapshot_held_bytes(const kprof_snapshot *s)
{
    return kprof_backing_bytes(&s->backing) + s->freed.bytes;
}

void kprof_snapshot_close(kprof_snapshot *s, bool lives)
{
    if (!s)
        return;
    kprof_backing_release(&s->backing, s->driver, lives);
    kprof_backing_release(&s->locked, s->driver, lives);
    if (lives)
        close_device_side(s);
    kprof_freed_close(&s->freed);
    KPROF_FREE(s->start.items, s->end.items, s->compared.items, s->seen.items, s->differing.items, s->places, s->spans,
               s->without_host, s);
}

/* A copy to pageable memory would wait without a limit. Even a copy may come behind what a kernel holds up, where
 * streams share a queue of the GPU. */
const void *kprof_snapshot_peek(kprof_snapshot *s, uint64_t address, size_t size_bytes)
{
    if (!s->peeked || size_bytes == 0 || size_bytes > KPROF_PEEK_BYTES)
        return NULL;
    KPROF_RELAX(s->driver);
    kprof_status status = check_ready(s);
    if (status == KPROF_OK) {
        CUresult result = s->driver->cuMemcpyDtoHAsync_(s->peeked, address, size_bytes, s->stream);
        status = result == CUDA_SUCCESS ? wait(s, BUSY_LIMIT_NS) : fail("reading what an argument points to", result);
    }
    return status == KPROF_OK ? s->peeked : NULL;
}

void *kprof_snapshot_stream(const kprof_snapshot *s)
{
    return s->stream;
}

static CUresult wait_for_lanes(const kprof_snapshot *s, CUstream stream, unsigned lanes)
{
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < KPROF_LANES && result == CUDA_SUCCESS; i++) {
        const CUstream other = i == 0 ? s->stream : s->lanes[i - 1];
        if (!other || other == stream || !(lanes >> i & 1))
            continue;
        result = s->driver->cuEventRecord_(s->event, other);
        KPROF_THEN(result, s->driver->cuStreamWaitEvent_(stream, s->event, 0));
    }
    return result;
}

void *kprof_snapshot_lane(kprof_snapshot *s, kprof_lane lane)
{
    CUstream *stream = lane.number == 0 ? &s->stream : &s->lanes[lane.number - 1];
    if (!*stream && make_stream(s, stream) != CUDA_SUCCESS)
        *stream = NULL;
    return *stream && wait_for_lanes(s, *stream, lane.waits_for) == CUDA_SUCCESS ? *stream : NULL;
}
