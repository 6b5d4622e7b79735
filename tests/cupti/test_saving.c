/* Saving memory, recording how it ends, and putting both back: byte by byte, whatever is mapped where, in as little
 * space as that needs; and nothing counts as saved, or as put back, that is not. */
#include "core/config.h"
#include "cupti/allocations.h"
#include "cupti/calls.h"
#include "cupti/snapshot.h"
#include "cupti/variables.h"
#include "fake_device.h"
#include "no_frees.h"
#include "test.h"

#define BLOCK    ((size_t)FAKE_BLOCK_BYTES)
#define BYTES    (8 * BLOCK)
#define MEBIBYTE ((size_t)1 << 20)
#define SPANS    4

static char context;
static unsigned char *memory; /* [BYTES] of the "device" */
static kprof_span spans[SPANS];
static const kprof_span *many_spans; /* in place of these; else NULL */
static size_t span_count;
static kprof_variable known[2];
static size_t known_count;
static bool all_known, all_listed;
static unsigned version, allocations_version, drops;
static CUresult variable_result; /* of reading one */
static kprof_snapshot *snapshot;
static CUmemoryPool memory_pool; /* of all memory */
static cuuint64_t pool_threshold;
static unsigned pool_trims;

static uint64_t at(size_t offset)
{
    return (uint64_t)(uintptr_t)memory + offset;
}

/* Each variable is an allocation. */
static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) {
        *(CUmemoryPool *)out = memory_pool;
        return CUDA_SUCCESS;
    }
    size_t size_bytes = known_count > 0 && address == known[0].address ? known[0].size_bytes : known[1].size_bytes;
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)out = address;
    else
        *(size_t *)out = size_bytes;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_threshold(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    assert_ptr_equal(pool, memory_pool);
    assert_int_equal(attribute, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    *(cuuint64_t *)value = pool_threshold;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_threshold(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    assert_ptr_equal(pool, memory_pool);
    assert_int_equal(attribute, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    pool_threshold = *(const cuuint64_t *)value;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI trim(CUmemoryPool pool, size_t bytes)
{
    assert_ptr_equal(pool, memory_pool);
    assert_int_equal(bytes, pool_threshold);
    pool_trims++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI read_memory(void *host, CUdeviceptr device, size_t size, CUstream stream)
{
    return size == 1 && variable_result != CUDA_SUCCESS ? variable_result : fake_read(host, device, size, stream);
}

/* In place of the driver's, and of what is known of allocations and modules. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api;
    api = fake_api();
    api.cuPointerGetAttribute_ = get_attribute;
    api.cuMemcpyDtoHAsync_ = read_memory;
    api.cuMemPoolGetAttribute_ = get_threshold;
    api.cuMemPoolSetAttribute_ = set_threshold;
    api.cuMemPoolTrimTo_ = trim;
    *out = &api;
    return KPROF_OK;
}

bool kprof_allocations_managed_stays(void)
{
    return false;
}

unsigned kprof_allocations_version(void)
{
    return allocations_version;
}

bool kprof_allocations_list(const void *of_context, int device, kprof_span **out, size_t *count)
{
    assert_ptr_equal(of_context, &context);
    assert_int_equal(device, 3);
    *out = all_listed ? calloc(span_count + 1, sizeof **out) : NULL;
    if (*out)
        memcpy(*out, many_spans ? many_spans : spans, span_count * sizeof **out);
    *count = span_count;
    return *out != NULL;
}

unsigned kprof_variables_version(void)
{
    return version;
}

bool kprof_variables_list(const void *of_context, kprof_variable **out, size_t *count)
{
    *out = all_known ? calloc(known_count + 1, sizeof **out) : NULL;
    if (*out)
        memcpy(*out, known, known_count * sizeof **out);
    *count = known_count;
    return all_known;
}

size_t kprof_variables_bytes_of(const void *owner)
{
    return 0;
}

void kprof_variables_unload(const void *owner) {}

void kprof_variables_drop(const void *of_context, uint64_t address)
{
    drops++;
}

static void add_span(size_t offset, size_t size_bytes)
{
    assert_true(span_count < SPANS && offset + size_bytes <= BYTES);
    spans[span_count++] = (kprof_span){at(offset), size_bytes};
    allocations_version++;
}

/* In no pattern. */
static void fill(size_t offset, size_t size_bytes, unsigned seed)
{
    uint32_t random = seed * 2654435761u + 1;
    for (size_t i = 0; i < size_bytes; i++) {
        random = random * 1664525u + 1013904223u;
        memory[offset + i] = (unsigned char)(random >> 24);
    }
}

static int set_up(void **state)
{
    fake_reset();
    memory = aligned_alloc(BLOCK, BYTES);
    assert_non_null(memory);
    fill(0, BYTES, 1);
    span_count = known_count = 0;
    known[0] = (kprof_variable){.context = &context, .address = at(0), .size_bytes = 64, .told = true};
    known[1] = (kprof_variable){.context = &context, .address = at(BLOCK), .size_bytes = 64, .told = true};
    all_known = all_listed = true;
    variable_result = CUDA_SUCCESS;
    drops = 0;
    assert_int_equal(kprof_snapshot_open(&context, &snapshot), KPROF_OK);
    assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL); /* as it was */
    assert_ptr_equal(kprof_snapshot_stream(snapshot), &fake_stream);
    return 0;
}

static int tear_down(void **state)
{
    kprof_snapshot_close(snapshot, true);
    assert_int_equal(fake.chunks, 0);
    assert_false(fake.streams);
    assert_int_equal(fake.pinned_count, 0);
    free(memory);
    return 0;
}

static void take(void)
{
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_OK);
}

static void *copy_of_memory(void)
{
    void *copy = malloc(BYTES);
    assert_non_null(copy);
    memcpy(copy, memory, BYTES);
    return copy;
}

/* Each replay begins with the start and leaves something else behind; the end is what counts. */
static void assert_replays(const void *start, const unsigned char *end)
{
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_memory_equal(memory, end, BYTES);
    for (unsigned replay = 0; replay < 3; replay++) {
        assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
        assert_memory_equal(memory, start, BYTES);
        for (size_t i = 0; i < span_count; i++)
            fill((size_t)(spans[i].address - at(0)), spans[i].size_bytes, 10 + replay);
    }
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_memory_equal(memory, end, BYTES);
}

/* Have `run` change memory, as the application's own run does. */
static void assert_saved_around(void (*run)(void))
{
    KPROF_AUTO_FREE void *start = copy_of_memory();
    take();
    run();
    KPROF_AUTO_FREE void *end = copy_of_memory();
    assert_replays(start, end);
}

/* Memory of the host is saved where that is asked for. */
TEST(test_memory_of_the_host)
{
    spans[0] = (kprof_span){at(0), BLOCK};
    span_count = 1;
    host_memory = (kprof_span){at(4 * BLOCK), BLOCK};
    take();
    assert_false(kprof_snapshot_holds(snapshot, host_memory.address, BLOCK));
    fill(4 * BLOCK, BLOCK, 3);
    assert_int_equal(kprof_snapshot_take(snapshot, true), KPROF_OK);
    KPROF_AUTO_FREE void *start = copy_of_memory();
    fill(4 * BLOCK, BLOCK, 4);
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
    assert_memory_equal(memory, start, BYTES);
    host_memory.size_bytes = 0;
}

static void change_nothing(void) {}

static void change_all(void)
{
    fill(0, BYTES, 2);
}

static void change_two_bytes(void)
{
    memory[3 * BLOCK - 1] ^= 1;
    memory[3 * BLOCK] ^= 1;
}

TEST(test_all_of_memory)
{
    add_span(0, BYTES);
    assert_saved_around(change_all);
    assert_saved_around(change_nothing);
    assert_saved_around(change_two_bytes);
}

static void assert_put_back(const unsigned char *here, bool everywhere, const char *values)
{
    assert_int_equal(kprof_snapshot_restore_start(snapshot, everywhere), KPROF_OK);
    for (size_t i = 0; values[i]; i++)
        assert_int_equal(here[i * FAKE_GROUP * BLOCK], values[i]);
}

/* Only where something has changed before, unless that is asked for. */
TEST(test_put_back_where_memory_has_changed)
{
    const size_t bytes = (2 * FAKE_GROUP + 1) * BLOCK;
    unsigned char *many = calloc(1, bytes), *second, *last;
    assert_non_null(many);
    second = many + FAKE_GROUP * BLOCK;
    last = second + FAKE_GROUP * BLOCK;
    memset(many, 'a', bytes);
    spans[0] = (kprof_span){(uint64_t)(uintptr_t)many, bytes};
    span_count = 1;
    take();
    *last = 'b';
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    *many = *second = *last = 'c';
    assert_put_back(many, false, "cca");
    *last = 'd';
    assert_put_back(many, true, "aaa");
    *many = *second = *last = 'e';
    assert_put_back(many, false, "aaa");
    *second = 'f';
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_true(*many == 'a' && *second == 'a' && *last == 'b');
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK); /* what has changed is found anew */
    *second = 'g';
    assert_put_back(many, false, "aga");
    kprof_snapshot_drop(snapshot, true);
    free(many);
}

/* What a launch changes and a later one of the own run sets back differs neither then nor in the end. */
TEST(test_all_memory_that_was_set_back_by_then)
{
    const size_t bytes = (FAKE_GROUP + 1) * BLOCK;
    KPROF_AUTO_FREE unsigned char *many = calloc(1, bytes);
    kprof_kept_memory *kept;
    assert_non_null(many);
    unsigned char *last = many + FAKE_GROUP * BLOCK;
    spans[0] = (kprof_span){(uint64_t)(uintptr_t)many, bytes};
    span_count = 1;
    take();
    assert_int_equal(kprof_snapshot_keep_all(snapshot, &kept), KPROF_OK);
    *last = 'b';
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    for (unsigned replay = 0; replay < 3; replay++) {
        assert_int_equal(kprof_snapshot_restore_start(snapshot, replay == 1), KPROF_OK);
        *many = 'c';
        assert_int_equal(kprof_snapshot_put(snapshot, kept), KPROF_OK);
        fake_drain();
        assert_true(*many == 0 && *last == 0);
        *many = 'd'; /* so that the next start finds that it changes */
    }
    kprof_kept_memory_free(kept);
    kprof_snapshot_drop(snapshot, true);
}

static void list_small_spans(kprof_span *many, size_t count)
{
    many_spans = many;
    span_count = count;
    allocations_version++;
}

/* The own run goes on after replays, and memory comes that takes a longer list of what has changed. */
TEST(test_second_end_of_more_memory)
{
    enum { FEW = 10, MANY = 80000, DISTANCE = 32 };
    unsigned char *bytes = calloc(MANY, DISTANCE);
    KPROF_AUTO_FREE kprof_span *many = calloc(MANY, sizeof *many);
    assert_true(bytes && many);
    for (size_t i = 0; i < MANY; i++)
        many[i] = (kprof_span){(uint64_t)(uintptr_t)&bytes[i * DISTANCE], 1};
    list_small_spans(many, FEW);
    take();
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    list_small_spans(many, MANY);
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    for (size_t i = 0; i < MANY; i++)
        bytes[i * DISTANCE] = 1;
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, false), KPROF_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(bytes[i * DISTANCE], 0);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(bytes[i * DISTANCE], 1);
    many_spans = NULL;
    free(bytes);
}

/* The own run goes on after replays, and leaves another end. What the first one took is free again. */
TEST(test_second_end)
{
    add_span(0, BYTES);
    KPROF_AUTO_FREE void *start = copy_of_memory();
    take();
    unsigned chunks = 0;
    for (unsigned run = 0; run < 80; run++) { /* more than a chunk holds */
        fill(0, BYTES, 20 + run);
        void *end = copy_of_memory();
        assert_replays(start, end);
        free(end);
        if (run == 0)
            chunks = fake.chunks;
    }
    assert_int_equal(fake.chunks, chunks);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_INTERNAL); /* it is not recorded any more */
}

static void change_first_span(void)
{
    fill((size_t)(spans[0].address - at(0)), spans[0].size_bytes, 3);
}

/* Neither begin nor length need be multiples of anything; what is beside is nobody's. */
TEST(test_odd_places)
{
    static const size_t places[][2] = {
        {1, 1}, {5, 15}, {16, 17}, {BLOCK - 1, 2}, {7, 3 * BLOCK}, {BLOCK + 8, BLOCK}, {32, 2 * BLOCK + 16}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        span_count = 0;
        add_span(places[i][0], places[i][1]);
        assert_saved_around(change_first_span);
    }
}

TEST(test_nothing_allocated)
{
    assert_saved_around(change_nothing);
    assert_int_equal(fake.chunks, 0);
    assert_int_equal(fake.launches[FAKE_SCAN], 0);
}

static void set_pattern(size_t offset, size_t size_bytes, const char pattern[17])
{
    for (size_t i = 0; i < size_bytes; i++)
        memory[offset + i] = (unsigned char)pattern[i % 16];
}

static void break_patterns(void)
{
    memory[BLOCK - 1] = 1;
    memory[BLOCK + 16] = 2;
    fill(2 * BLOCK, BLOCK, 4);
}

/* Memory that was never written takes no space, but that for the list. */
TEST(test_uniform_blocks)
{
    memset(memory, 0, BLOCK);
    set_pattern(BLOCK, BLOCK, "sixteen letters!");
    memset(memory + 2 * BLOCK, 0xff, BLOCK + 32);
    span_count = 0;
    add_span(0, 3 * BLOCK + 32);
    KPROF_AUTO_FREE void *start = copy_of_memory();
    take();
    assert_int_equal(fake.launches[FAKE_SCAN], 1);
    assert_int_equal(fake.blocks[FAKE_SCAN], 4);
    break_patterns();
    KPROF_AUTO_FREE void *end = copy_of_memory();
    assert_replays(start, end);
}

/* A block that looks like a pattern for its first bytes only. */
TEST(test_nearly_uniform_block)
{
    memset(memory, 0, 2 * BLOCK);
    memory[BLOCK - 1] = 1;
    memory[BLOCK + 8] = 1; /* the second half of the first 16 bytes */
    add_span(0, 2 * BLOCK);
    assert_saved_around(change_first_span);
}

/* As large as what a device has, of which little was written: a table, and little else. */
TEST(test_space_that_uniform_blocks_take)
{
    memset(memory, 0, BYTES);
    add_span(0, BYTES);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES + 40 * MEBIBYTE;
    take();
    assert_true(fake.taken_bytes <= 40 * MEBIBYTE);
    size_t taken_bytes = fake.taken_bytes;
    kprof_snapshot_drop(snapshot, true);
    take(); /* the same space again */
    assert_int_equal(fake.taken_bytes, taken_bytes);
}

/* Ranges may overlap, touch, and lie in each other. */
TEST(test_overlapping_ranges)
{
    static const size_t ranges[][SPANS][2] = {
        {{0, 2 * BLOCK}, {BLOCK, 2 * BLOCK}, {100, 7}, {3 * BLOCK, BLOCK}},
        {{3 * BLOCK, BLOCK}, {0, BLOCK}, {BLOCK, BLOCK}, {2 * BLOCK, BLOCK}},
        {{0, BYTES}, {BLOCK, 1}, {0, BYTES}, {BYTES - 1, 1}},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        span_count = 0;
        for (size_t j = 0; j < SPANS; j++)
            add_span(ranges[i][j][0], ranges[i][j][1]);
        assert_saved_around(change_first_span);
        size_t end = i == 2 ? BYTES : 4 * BLOCK;
        assert_true(kprof_snapshot_holds(snapshot, at(0), end));
        assert_false(kprof_snapshot_holds(snapshot, at(0), end + 1));
        assert_false(kprof_snapshot_holds(snapshot, at(0) - 1, 2));
    }
}

TEST(test_what_is_held)
{
    add_span(BLOCK, BLOCK);
    add_span(4 * BLOCK, 100);
    take();
    assert_true(kprof_snapshot_holds(snapshot, at(BLOCK), BLOCK));
    assert_true(kprof_snapshot_holds(snapshot, at(4 * BLOCK + 99), 1));
    assert_false(kprof_snapshot_holds(snapshot, at(4 * BLOCK + 99), 2));
    assert_false(kprof_snapshot_holds(snapshot, at(BLOCK - 1), 1));
    assert_false(kprof_snapshot_holds(snapshot, at(2 * BLOCK), 1));
    assert_false(kprof_snapshot_holds(snapshot, at(BLOCK), 3 * BLOCK));
    kprof_snapshot_drop(snapshot, true);
    assert_false(kprof_snapshot_holds(snapshot, at(BLOCK), 1));
}

/* It is saved as it comes, beside and around what is saved; what changed meanwhile is not saved again. */
TEST(test_memory_that_comes_later)
{
    unsigned char *start = copy_of_memory();
    add_span(2 * BLOCK, BLOCK);
    take();
    fill(2 * BLOCK, BLOCK, 5);
    add_span(BLOCK + 8, 3 * BLOCK); /* around it */
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    add_span(6 * BLOCK, 24);
    assert_int_equal(kprof_snapshot_cover(snapshot, &context), KPROF_OK);
    unsigned scans = fake.launches[FAKE_SCAN];
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    assert_int_equal(fake.launches[FAKE_SCAN], scans); /* there is nothing new */
    fill(BLOCK + 8, 3 * BLOCK, 6);
    fill(6 * BLOCK, 24, 7);
    KPROF_AUTO_FREE void *end = copy_of_memory();
    assert_replays(start, end);
    assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL); /* as it was */
    free(start);
}

/* More blocks than a list can hold at first. */
enum { MANY = 1500 };

static unsigned char *make_large(size_t blocks, int byte)
{
    unsigned char *large = aligned_alloc(BLOCK, blocks * BLOCK);
    assert_non_null(large);
    memset(large, byte, blocks * BLOCK);
    return large;
}

/* It is the application's from now on. */
static void allocate(unsigned char *large, size_t blocks)
{
    spans[span_count++] = (kprof_span){(uint64_t)(uintptr_t)large, blocks * BLOCK};
    allocations_version++;
}

/* The list grows with it, on the device too. */
TEST(test_much_memory_that_comes_later)
{
    unsigned char *large = make_large(MANY, 7);
    add_span(0, BLOCK);
    take();
    allocate(large, MANY);
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    memory[5] ^= 1;
    large[MANY * BLOCK - 1] = 8;
    unsigned char mine = memory[5];
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
    assert_true(memory[5] != mine && large[MANY * BLOCK - 1] == 7);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_true(memory[5] == mine && large[MANY * BLOCK - 1] == 8);
    free(large);
}

/* A stream that waits for the host would have the application wait for itself. */
TEST(test_busy_stream)
{
    add_span(0, BLOCK);
    take();
    add_span(2 * BLOCK, BLOCK);
    fake.busy = true;
    assert_int_equal(kprof_snapshot_cover(snapshot, &context), KPROF_NOT_COLLECTED);
    kprof_snapshot_drop(snapshot, true);
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_NOT_COLLECTED);
    kprof_snapshot_release(snapshot);
    assert_true(fake.chunks > 0); /* it may be in use */
    fake.busy = false;
    assert_saved_around(change_first_span);
}

/* Nor may a look at memory wait for what the host is to write. What comes too late goes where nobody looks. */
TEST(test_peek)
{
    const unsigned char *seen = kprof_snapshot_peek(snapshot, at(16), 64);
    assert_non_null(seen);
    assert_memory_equal(seen, memory + 16, 64);
    assert_null(kprof_snapshot_peek(snapshot, at(16), 0));
    assert_null(kprof_snapshot_peek(snapshot, at(16), KPROF_PEEK_BYTES + 1));
    fake.read_result = CUDA_ERROR_INVALID_VALUE;
    assert_null(kprof_snapshot_peek(snapshot, at(16), 64));
    fake.read_result = CUDA_SUCCESS;
    fake.busy = fake.waits = true;
    assert_null(kprof_snapshot_peek(snapshot, at(16), 64));
    assert_null(kprof_snapshot_peek(snapshot, at(16), 64));
    fake.busy = false;
    assert_non_null(kprof_snapshot_peek(snapshot, at(16), 64));
    assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static CUmemoryPool pool_of_memory(const kprof_call **out)
{
    static char pool;
    static kprof_decoded_call decoded;
    static const kprof_call call = {.kind = KPROF_CALL_POOL_FREE, .parameters = &decoded};
    decoded = (kprof_decoded_call){.freed_to_pool = at(0)};
    *out = &call;
    return (CUmemoryPool)(void *)&pool;
}

/* Pools keep what is freed as long as it is saved. */
TEST(test_frees_to_pools)
{
    const kprof_call *call;
    memory_pool = pool_of_memory(&call);
    add_span(0, BLOCK);
    assert_false(kprof_snapshot_keep_freed(snapshot, call)); /* nothing is saved */
    take();
    assert_true(kprof_snapshot_keep_freed(snapshot, call));
    assert_int_equal(pool_threshold, UINT64_MAX);
    kprof_snapshot_drop(snapshot, true);
    assert_int_equal(pool_threshold, 0);
    assert_int_equal(pool_trims, 1);
    take();
    assert_true(kprof_snapshot_keep_freed(snapshot, call));
    kprof_snapshot_drop(snapshot, false); /* the application's work may use it still */
    assert_int_equal(pool_threshold, 0);
    assert_int_equal(pool_trims, 1);
}

/* For want of space nothing is saved, and the application's memory is as it was. */
TEST(test_no_space_on_the_device)
{
    add_span(0, BYTES);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_NO_MEMORY);
    fake.free_bytes += 40 * MEBIBYTE;
    take();
    kprof_snapshot_drop(snapshot, true);
    kprof_snapshot_release(snapshot);
    assert_int_equal(fake.chunks, 0); /* what the application needs is given back */
    fake.alloc_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_NO_MEMORY);
}

/* Not while it is in use. */
TEST(test_space_is_not_given_back_too_early)
{
    add_span(0, BYTES);
    take();
    kprof_snapshot_release(snapshot);
    assert_true(fake.chunks > 0);
}

/* The end takes as much space as what has changed; where that is missing, nothing has been put back. */
TEST(test_no_space_for_the_end)
{
    enum { BLOCKS = 640 };
    unsigned char *large = make_large(BLOCKS, 0);
    allocate(large, BLOCKS);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES + 40 * MEBIBYTE;
    take();
    for (size_t i = 0; i < BLOCKS; i++)
        large[i * BLOCK + i] = 1;
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_NO_MEMORY);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_int_equal(large[i * BLOCK + i], 1);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_INTERNAL);
    free(large);
}

/* Replays write it at its place among the launches. */
TEST(test_what_the_host_did)
{
    const kprof_span used[] = {{at(100), 50}, {at(2 * BLOCK - 64), BLOCK}};
    kprof_kept_memory *kept;
    add_span(0, 4 * BLOCK);
    take();
    unsigned char *then = copy_of_memory();
    assert_int_equal(kprof_snapshot_keep(snapshot, used, 2, &kept), KPROF_OK);
    for (unsigned replay = 2; replay < 4; replay++) {
        fill(0, BYTES, replay);
        unsigned char *now = copy_of_memory();
        for (size_t i = 0; i < 2; i++)
            memcpy(now + (used[i].address - at(0)), then + (used[i].address - at(0)), used[i].size_bytes);
        assert_int_equal(kprof_snapshot_put(snapshot, kept), KPROF_OK);
        fake_drain();
        assert_memory_equal(memory, now, BYTES);
        free(now);
    }
    kprof_kept_memory_free(kept);
    free(then);
}

/* Replays go on from there, whatever they have done before. */
TEST(test_all_memory_at_one_time)
{
    kprof_kept_memory *first, *second;
    add_span(0, 4 * BLOCK);
    take();
    assert_int_equal(kprof_snapshot_keep_all(snapshot, &first), KPROF_OK);
    assert_int_equal(kprof_kept_memory_kernels(first), 1); /* all is as at the start */
    KPROF_AUTO_FREE void *start = copy_of_memory();
    fill(BLOCK, 2 * BLOCK, 2);
    KPROF_AUTO_FREE void *then = copy_of_memory();
    assert_int_equal(kprof_snapshot_keep_all(snapshot, &second), KPROF_OK);
    assert_int_equal(kprof_kept_memory_kernels(second), 2);
    fill(2 * BLOCK, BLOCK, 3);
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    for (unsigned replay = 4; replay < 6; replay++) {
        assert_int_equal(kprof_snapshot_restore_start(snapshot, false), KPROF_OK);
        fill(0, 4 * BLOCK, replay);
        assert_int_equal(kprof_snapshot_put(snapshot, second), KPROF_OK);
        fake_drain();
        assert_memory_equal(memory, then, BYTES);
        assert_int_equal(kprof_snapshot_put(snapshot, first), KPROF_OK);
        fake_drain();
        assert_memory_equal(memory, start, BYTES);
    }
    kprof_kept_memory_free(first);
    kprof_kept_memory_free(second);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    while (kprof_snapshot_keep_all(snapshot, &first) == KPROF_OK) /* in what kprof has already */
        kprof_kept_memory_free(first);
    assert_null(first);
}

TEST(test_what_the_host_did_cannot_be_kept)
{
    const kprof_span beyond = {at(3 * BLOCK), 2 * BLOCK}, within = {at(0), 2 * BLOCK};
    kprof_kept_memory *kept;
    add_span(0, 4 * BLOCK);
    take();
    assert_int_equal(kprof_snapshot_keep(snapshot, &beyond, 1, &kept), KPROF_NO_MEMORY);
    assert_null(kept);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    unsigned fitted = 0; /* in what kprof has already */
    while (kprof_snapshot_keep(snapshot, &within, 1, &kept) == KPROF_OK) {
        kprof_kept_memory_free(kept);
        fitted++;
    }
    assert_true(fitted > 0);
    assert_null(kept);
}

TEST(test_end_that_was_not_recorded)
{
    add_span(0, BLOCK);
    take();
    memory[0] ^= 1;
    unsigned char mine = memory[0];
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_INTERNAL);
    assert_int_equal(memory[0], mine);
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    take(); /* of another batch */
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_INTERNAL);
}

TEST(test_driver_that_fails)
{
    add_span(0, BLOCK);
    fake.launch_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    fake.launch_result = CUDA_SUCCESS;
    fake.write_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    fake.write_result = CUDA_SUCCESS;
    fake.read_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    fake.read_result = CUDA_SUCCESS;
    fake.query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    fake.query_result = CUDA_SUCCESS;
    take();
    fake.launch_result = CUDA_ERROR_UNKNOWN;
    assert_int_not_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_not_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
    assert_int_not_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    fake.launch_result = CUDA_SUCCESS;
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
}

TEST(test_driver_that_takes_no_code)
{
    kprof_snapshot *none;
    fake.module_result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    assert_int_equal(kprof_snapshot_open(&context, &none), KPROF_UNSUPPORTED);
    assert_null(none);
    assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Each batch tries again, and must not take more of the device each time. */
TEST(test_driver_that_makes_no_stream)
{
    kprof_snapshot *none;
    kprof_snapshot_close(snapshot, true);
    snapshot = NULL;
    assert_false(fake.streams || fake.events || fake.modules);
    fake.stream_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(kprof_snapshot_open(&context, &none), KPROF_NO_MEMORY);
    assert_null(none);
    assert_false(fake.streams || fake.events || fake.modules);
}

TEST(test_memory_that_is_not_known)
{
    add_span(0, BLOCK);
    all_listed = false;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    all_listed = true;
    take();
}

/* A transfer's data is kept beside the batch's memory, until the batch is over. */
static kprof_status compare(uint64_t address, uint64_t kept, size_t size_bytes, bool *same)
{
    const kprof_rows row = {.to = kept, .from = address, .width = size_bytes, .height = 1};
    return kprof_snapshot_compare(snapshot, &row, same);
}

TEST(test_comparing)
{
    static const size_t sizes[] = {1, 16, 4096, 4099, 3 * BLOCK};
    bool same;
    add_span(0, BYTES);
    take();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t kept = kprof_snapshot_space(snapshot, sizes[i], 1);
        assert_true(kept != 0);
        memcpy(fake_at(kept), memory + BLOCK, sizes[i]);
        assert_int_equal(compare(at(BLOCK), kept, sizes[i], &same), KPROF_OK);
        assert_true(same);
        memory[BLOCK + sizes[i] - 1] ^= 1;
        assert_int_equal(compare(at(BLOCK), kept, sizes[i], &same), KPROF_OK);
        assert_false(same);
        assert_int_equal(compare(at(BLOCK), kept, sizes[i] - 1, &same), KPROF_OK);
        assert_true(same || sizes[i] == 1);
    }
    uint64_t kept = kprof_snapshot_space(snapshot, 3 * BLOCK, 1);
    memcpy(fake_at(kept), memory + BLOCK, 3 * BLOCK);
    memory[2 * BLOCK] ^= 1; /* neither the first nor the last of its blocks */
    assert_int_equal(compare(at(BLOCK), kept, 3 * BLOCK, &same), KPROF_OK);
    assert_false(same);
    fake.query_result = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_not_equal(compare(at(0), at(0), 1, &same), KPROF_OK);
    fake.query_result = CUDA_SUCCESS;
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    assert_int_equal(kprof_snapshot_space(snapshot, 100 * MEBIBYTE, 1), 0);
}

/* Rows lie apart in memory, and are kept one behind the other. */
TEST(test_comparing_rows)
{
    static const kprof_rows shapes[] = {{.from_pitch_bytes = 100, .width = 13, .height = 7},
                                        {.from_pitch_bytes = 64, .width = 64, .height = 5},
                                        {.from_pitch_bytes = 2 * BLOCK, .width = BLOCK + 8, .height = 3}};
    bool same;
    add_span(0, BYTES);
    take();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        kprof_rows rows = shapes[i];
        rows.from = at(BLOCK);
        rows.to = kprof_snapshot_space(snapshot, rows.width, rows.height);
        assert_true(rows.to != 0);
        for (size_t row = 0; row < rows.height; row++)
            memcpy(fake_at(rows.to + row * rows.width), memory + BLOCK + row * rows.from_pitch_bytes, rows.width);
        assert_int_equal(kprof_snapshot_compare(snapshot, &rows, &same), KPROF_OK);
        assert_true(same);
        size_t end = BLOCK + 2 * rows.from_pitch_bytes + rows.width; /* of the third row */
        memory[end] ^= rows.width < rows.from_pitch_bytes;
        assert_int_equal(kprof_snapshot_compare(snapshot, &rows, &same), KPROF_OK);
        assert_true(same);
        memory[end - 1] ^= 1;
        assert_int_equal(kprof_snapshot_compare(snapshot, &rows, &same), KPROF_OK);
        assert_false(same);
    }
}

TEST(test_copying_rows)
{
    add_span(0, BYTES);
    take();
    unsigned char *wanted = copy_of_memory();
    kprof_rows rows = {at(3), at(4 * BLOCK), 500, 13, 13, 6};
    for (size_t row = 0; row < rows.height; row++)
        memcpy(wanted + 3 + 500 * row, memory + 4 * BLOCK + 13 * row, 13);
    assert_int_equal(kprof_snapshot_copy(snapshot, &rows), KPROF_OK);
    assert_memory_equal(memory, wanted, BYTES);
    rows.height = 1; /* pitches are of no account then */
    assert_int_equal(kprof_snapshot_copy(snapshot, &rows), KPROF_OK);
    assert_memory_equal(memory, wanted, BYTES);
    free(wanted);
}

/* A quarter of what is free: what the batch changes has to be kept at its end. */
TEST(test_space_for_transfers_has_a_bound)
{
    add_span(0, BLOCK);
    fake.free_bytes = 4096 * MEBIBYTE;
    for (int batch = 0; batch < 2; batch++) {
        size_t pieces = 0;
        take();
        while (kprof_snapshot_space(snapshot, MEBIBYTE, 256))
            pieces++;
        assert_int_equal(pieces, 4);
        kprof_snapshot_drop(snapshot, true);
    }
}

/* Only of what is no address any more is it known that it is gone. */
/* 1 GiB, and no space of the device. What nobody needs lies in one place. */
TEST(test_page_locked_space_has_a_bound)
{
    take();
    const unsigned first = fake.pinned_count, chunks = fake.chunks;
    for (int batch = 0; batch < 2; batch++) {
        const uint64_t scratch = kprof_snapshot_locked_space(snapshot, 2 * MEBIBYTE, true);
        assert_true(scratch != 0 && kprof_snapshot_locked_space(snapshot, MEBIBYTE, true) == scratch);
        const uint64_t small = kprof_snapshot_locked_space(snapshot, 5, false);
        assert_true(small >= scratch + 2 * MEBIBYTE);
        *(unsigned char *)(uintptr_t)small = 1;
        assert_true(kprof_snapshot_locked_space(snapshot, 900 * MEBIBYTE, true) != scratch);
        assert_int_equal(kprof_snapshot_locked_space(snapshot, 256 * MEBIBYTE, false), 0);
        assert_int_equal(fake.pinned_count, first + 2);
        kprof_snapshot_drop(snapshot, false);
        assert_int_equal(fake.pinned_count, first + 2); /* to free it might wait */
        if (batch == 0)
            kprof_snapshot_drop(snapshot, true);
        else
            kprof_snapshot_release(snapshot);
        assert_int_equal(fake.pinned_count, first);
    }
    assert_true(fake.chunks <= chunks);
}

#define ALL ((1u << KPROF_LANES) - 1)

/* They are made as they are needed, and one waits for those that are there. */
TEST(test_lanes)
{
    void *const first = kprof_snapshot_lane(snapshot, (kprof_lane){0, ALL});
    assert_ptr_equal(first, &fake_stream);
    assert_int_equal(fake.lanes, 0);
    void *const other = kprof_snapshot_lane(snapshot, (kprof_lane){3, 0});
    assert_ptr_not_equal(other, first);
    assert_int_equal(fake.lanes, 1);
    assert_int_equal(fake.waited, 0);
    assert_ptr_equal(kprof_snapshot_lane(snapshot, (kprof_lane){3, ALL}), other);
    assert_ptr_equal(fake.recorded, first);
    assert_non_null(kprof_snapshot_lane(snapshot, (kprof_lane){KPROF_LANES - 1, ALL}));
    assert_ptr_equal(kprof_snapshot_lane(snapshot, (kprof_lane){0, ALL}), first);
    assert_int_equal(fake.waited, 1 + 2 + 2);
    assert_ptr_equal(kprof_snapshot_lane(snapshot, (kprof_lane){3, 1}), other);
    assert_ptr_equal(fake.recorded, first);
    assert_int_equal(fake.waited, 1 + 2 + 2 + 1);
    fake.stream_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_null(kprof_snapshot_lane(snapshot, (kprof_lane){1, 0}));
    kprof_snapshot_close(snapshot, true);
    assert_int_equal(fake.lanes, 0);
    fake.stream_result = CUDA_SUCCESS;
    assert_int_equal(kprof_snapshot_open(&context, &snapshot), KPROF_OK);
}

/* The program and others need the rest. */
TEST(test_page_locked_space_of_a_small_machine)
{
    take();
    fake.host_bytes = 400 * MEBIBYTE;
    assert_int_equal(kprof_snapshot_locked_space(snapshot, 101 * MEBIBYTE, false), 0);
    assert_true(kprof_snapshot_locked_space(snapshot, 90 * MEBIBYTE, false) != 0);
    kprof_snapshot_drop(snapshot, true);
    fake.host_bytes = 0;
}

/* A launch that was submitted after memory was saved, and ends later: what it leaves is the start. */
TEST(test_launch_that_is_followed)
{
    add_span(16, 3 * BLOCK);
    memset(memory + BLOCK + 16, 7, BLOCK); /* a block that takes no space */
    take();
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_OK);
    assert_false(kprof_snapshot_has_followed(snapshot));
    memory[20]++; /* by that launch */
    fill(2 * BLOCK + 16, BLOCK, 9);
    unsigned char *start = copy_of_memory();
    fake_end_followed();
    assert_true(kprof_snapshot_has_followed(snapshot));
    memory[20]++; /* by what is repeated */
    memory[40]++;
    memory[BLOCK + 30]++;
    unsigned char *end = copy_of_memory();
    assert_replays(start, end);
    free(start);
    free(end);
    kprof_snapshot_drop(snapshot, true);
}

/* Memory of the host is saved for a launch, and not put back behind it. */
TEST(test_memory_of_the_host_that_is_left)
{
    add_span(0, BLOCK);
    host_memory = (kprof_span){at(2 * BLOCK), BLOCK};
    assert_int_equal(kprof_snapshot_take(snapshot, true), KPROF_OK);
    assert_true(kprof_snapshot_has_host(snapshot) && kprof_snapshot_holds(snapshot, host_memory.address, BLOCK));
    assert_true(kprof_snapshot_leave_host(snapshot));
    assert_false(kprof_snapshot_has_host(snapshot) || kprof_snapshot_holds(snapshot, host_memory.address, 1));
    assert_true(kprof_snapshot_holds(snapshot, at(0), BLOCK));
    memory[2 * BLOCK + 5]++; /* by the host */
    unsigned char *start = copy_of_memory();
    memory[5]++;
    unsigned char *end = copy_of_memory();
    assert_replays(start, end);
    free(start);
    free(end);
    assert_int_equal(kprof_snapshot_take(snapshot, true), KPROF_OK);
    add_span(4 * BLOCK, BLOCK);
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    assert_false(kprof_snapshot_leave_host(snapshot)); /* its blocks are not the last ones any more */
    host_memory.size_bytes = 0;
    kprof_snapshot_drop(snapshot, true);
}

/* Behind a launch kprof looks whether that has changed memory, wherever others have changed it before. */
static bool changes_when_watched(bool is_start, size_t offset)
{
    bool changed = true;
    assert_int_equal(kprof_snapshot_watch(snapshot, is_start), KPROF_OK);
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, is_start), KPROF_OK);
    if (offset < BYTES)
        memory[offset]++; /* by the launch */
    fake_end_followed();
    for (size_t i = 0; i < 3 * BLOCK; i += BLOCK / 2)
        memory[i + 16]++; /* by what came behind it */
    assert_int_equal(kprof_snapshot_has_changed(snapshot, &changed), KPROF_OK);
    assert_int_equal(kprof_snapshot_has_changed(snapshot, &(bool){false}), KPROF_INTERNAL); /* once only */
    return changed;
}

TEST(test_launch_that_is_watched)
{
    add_span(0, 4 * BLOCK);
    memset(memory + 3 * BLOCK, 7, BLOCK); /* a block that takes no space */
    take();
    unsigned char *start = copy_of_memory();
    assert_false(changes_when_watched(true, BYTES));
    assert_false(changes_when_watched(false, BYTES));
    assert_false(changes_when_watched(false, BYTES));          /* those that differ have their places */
    assert_true(changes_when_watched(false, 5));               /* one that differed before */
    assert_true(changes_when_watched(false, 3 * BLOCK + 100)); /* one that did not */
    assert_false(changes_when_watched(false, BYTES));
    unsigned char *end = copy_of_memory();
    assert_replays(start, end);
    free(start);
    free(end);
    kprof_snapshot_drop(snapshot, true);
    take();
    assert_true(changes_when_watched(true, BLOCK));
    kprof_snapshot_drop(snapshot, true);
}

/* The application takes memory away before the launch has ended: what is behind that finds nothing to look at. */
TEST(test_following_that_is_stopped)
{
    add_span(0, 3 * BLOCK);
    take();
    memory[5]++;
    kprof_snapshot_stop_following(snapshot); /* there is none */
    assert_int_equal(kprof_snapshot_watch(snapshot, false), KPROF_OK);
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_OK);
    assert_int_equal(fake.follows, 3); /* what equals the start, what differs, and the start itself */
    kprof_snapshot_stop_following(snapshot);
    for (unsigned i = 0; i < fake.follows; i++)
        for (unsigned k = 0; k < fake.following[i].count; k++)
            assert_true(fake.following[i].blocks[k].address == 0 && fake.following[i].blocks[k].bytes == 0);
    fake_end_followed();
    assert_true(kprof_snapshot_has_followed(snapshot));
    kprof_snapshot_drop(snapshot, true);
    take();
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_OK);
    kprof_snapshot_drop(snapshot, false); /* nothing tells any more when memory goes */
    assert_true(fake.follows == 1 && fake.following[0].blocks[0].bytes == 0);
    fake_end_followed();
}

/* Without space nothing is watched. */
TEST(test_watching_without_space)
{
    add_span(0, 3 * BLOCK);
    take();
    memory[5]++;
    fake.free_bytes = 0;
    fake.info_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_watch(snapshot, false), KPROF_NO_MEMORY);
    fake.info_result = CUDA_SUCCESS;
    kprof_snapshot_drop(snapshot, true);
}

/* There is no space for the start that it leaves. */
TEST(test_followed_launch_that_writes_uniform_memory)
{
    add_span(0, 2 * BLOCK);
    memset(memory, 7, 2 * BLOCK);
    take();
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_OK);
    memory[BLOCK + 5] = 8;
    fake_end_followed();
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_NOT_COLLECTED);
    kprof_snapshot_drop(snapshot, true);
    take(); /* the next batch can have it */
    unsigned char *start = copy_of_memory();
    memory[BLOCK + 5] = 9;
    unsigned char *end = copy_of_memory();
    assert_replays(start, end);
    free(start);
    free(end);
    kprof_snapshot_drop(snapshot, true);
}

TEST(test_launch_that_cannot_be_followed)
{
    add_span(0, BLOCK);
    fill(0, BLOCK, 1);
    take();
    fake.launch_result = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_UNSUPPORTED);
    fake.launch_result = CUDA_SUCCESS;
    kprof_snapshot_drop(snapshot, true);
}

/* The list of blocks that the launch's changes are noted in stays where it is. */
TEST(test_memory_that_comes_behind_a_followed_launch)
{
    add_span(0, BLOCK);
    fill(0, BLOCK, 1);
    take();
    assert_int_equal(kprof_snapshot_follow(snapshot, &fake_app_stream, true), KPROF_OK);
    unsigned char *large = make_large(MANY, 3);
    allocate(large, MANY);
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_NOT_COLLECTED);
    fill(0, BLOCK, 2);
    fake_end_followed();
    KPROF_AUTO_FREE void *start = copy_of_memory();
    fill(0, BLOCK, 3);
    KPROF_AUTO_FREE void *end = copy_of_memory();
    assert_replays(start, end); /* of what was there before */
    kprof_snapshot_drop(snapshot, true);
    free(large);
}

TEST(test_variable_that_cannot_be_read)
{
    known_count = 1;
    variable_result = CUDA_ERROR_UNKNOWN;
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    assert_int_equal(drops, 0);
    variable_result = CUDA_ERROR_INVALID_VALUE;
    take();
    assert_int_equal(drops, 1);
    assert_false(kprof_snapshot_holds(snapshot, at(0), 1));
}

TEST(test_variables_within_allocations)
{
    known_count = 2;
    add_span(16, 32); /* a part of the first */
    add_span(BLOCK, BLOCK);
    KPROF_AUTO_FREE void *start = copy_of_memory();
    take();
    assert_true(kprof_snapshot_holds(snapshot, at(0), 64));
    fill(0, 64, 8);
    fill(BLOCK, BLOCK, 9);
    KPROF_AUTO_FREE void *end = copy_of_memory();
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
    assert_memory_equal(memory, start, BYTES);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_memory_equal(memory, end, BYTES);
}

TEST(test_variables_that_become_known)
{
    take();
    known_count = 1;
    variable_result = CUDA_ERROR_UNKNOWN;
    version++;
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_UNSUPPORTED);
    variable_result = CUDA_SUCCESS;
    version++;
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    assert_true(kprof_snapshot_holds(snapshot, at(0), 64));
    all_known = false;
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK); /* there are no new ones */
    version++;
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_UNSUPPORTED);
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
}

/* Nothing has been learnt since. */
TEST(test_variables_that_stay_unknown)
{
    take();
    known_count = 1;
    variable_result = CUDA_ERROR_UNKNOWN;
    version++;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_UNSUPPORTED);
}

/* Memory that was saved before can be put back, and memory that could not be saved is left alone. */
TEST(test_memory_that_comes_later_and_finds_no_space)
{
    unsigned char *large = make_large(MANY, 7);
    add_span(0, BLOCK);
    take();
    memory[5] ^= 1;
    unsigned char mine = memory[5];
    allocate(large, MANY);
    fake.free_bytes = KPROF_DEVICE_RESERVE_BYTES;
    while (kprof_snapshot_space(snapshot, BLOCK, 1))
        continue;
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_NO_MEMORY);
    large[0] = 8;
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_NO_MEMORY);
    fake.free_bytes = 2 * KPROF_DEVICE_RESERVE_BYTES;
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
    assert_int_equal(memory[5], mine ^ 1);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_int_equal(memory[5], mine);
    assert_int_equal(large[0], 8);
    assert_false(kprof_snapshot_holds(snapshot, (uint64_t)(uintptr_t)large, 1));
    free(large);
}

AROUND_EACH(set_up, tear_down)
