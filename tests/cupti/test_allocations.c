/* From the application's calls kprof knows its device memory, and the context that each block belongs to. */
#include "cupti/allocations.h"

#include "cupti/calls.h"
#include "cupti/driver.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { DEVICE, OTHER_DEVICE, DEVICES };
enum { LOW = 0x10000, HIGH = 0x20000, FAR_OFF = 0x90000 };
#define OTHER_DEVICES_POOL UINT64_C(0x7000000)

static bool no_memory; /* of the host */

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
    return no_memory ? NULL : __real_realloc(old, size);
}

static char context, other_context;
static CUresult attribute_result;

static CUdeviceptr gone; /* the driver knows nothing there; 0: all */
static CUresult type_result;

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        return address == gone ? CUDA_ERROR_INVALID_VALUE : type_result;
    assert_int_equal(attribute, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    *(int *)out = address >= OTHER_DEVICES_POOL ? OTHER_DEVICE : DEVICE;
    return attribute_result;
}

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* In place of the driver's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuPointerGetAttribute_ = get_attribute, .cuStreamIsCapturing_ = is_capturing};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

static void note_in(const void *of, CUpti_CallbackId id, const void *parameters)
{
    kprof_memory_change change;
    kprof_call_memory_change(id, parameters, &change);
    kprof_allocations_note(&change, of);
}

static void note(CUpti_CallbackId id, const void *parameters)
{
    note_in(&context, id, parameters);
}

static void allocate_in(const void *of, CUdeviceptr address, size_t size)
{
    cuMemAlloc_v2_params p = {.dptr = &address, .bytesize = size};
    note_in(of, ID(cuMemAlloc_v2), &p);
}

static void allocate(CUdeviceptr address, size_t size)
{
    allocate_in(&context, address, size);
}

static void allocate_async(CUdeviceptr address, size_t size)
{
    cuMemAllocAsync_params p = {.dptr = &address, .bytesize = size};
    note(ID(cuMemAllocAsync), &p);
}

static void free_memory(CUdeviceptr address)
{
    note(ID(cuMemFree_v2), &(cuMemFree_v2_params){.dptr = address});
}

static void free_async(CUdeviceptr address)
{
    note(ID(cuMemFreeAsync), &(cuMemFreeAsync_params){.dptr = address});
}

static void unmap(CUdeviceptr address, size_t size)
{
    note(ID(cuMemUnmap), &(cuMemUnmap_params){.ptr = address, .size = size});
}

static void give_access(CUdeviceptr address, size_t size, CUmemAccess_flags flags, int device)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, .flags = flags};
    cuMemSetAccess_params p = {.ptr = address, .size = size, .desc = &access, .count = 1};
    note(ID(cuMemSetAccess), &p);
}

static void map(CUdeviceptr address, size_t size)
{
    give_access(address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, DEVICE);
}

static int compare_spans(const void *a, const void *b)
{
    const kprof_span *left = a, *right = b;
    return (left->address > right->address) - (left->address < right->address);
}

/* `expected` ends with one of 0 bytes. */
static void assert_spans_in(const void *of, int device, const kprof_span *expected)
{
    kprof_span *found;
    size_t count, i = 0;
    assert_true(kprof_allocations_list(of, device, &found, &count));
    qsort(found, count, sizeof *found, compare_spans);
    for (; expected[i].size_bytes > 0; i++) {
        assert_true(i < count);
        assert_int_equal(found[i].address, expected[i].address);
        assert_int_equal(found[i].size_bytes, expected[i].size_bytes);
    }
    assert_int_equal(count, i);
    free(found);
}

#define assert_spans(...) assert_spans_in(&context, DEVICE, (const kprof_span[]){__VA_ARGS__{0, 0}})

static void assert_host_memory(uint64_t address, size_t size_bytes)
{
    kprof_span *found;
    size_t count;
    assert_true(kprof_allocations_list_host(&found, &count));
    assert_int_equal(count, size_bytes > 0);
    if (size_bytes > 0) {
        assert_int_equal(found[0].address, address);
        assert_int_equal(found[0].size_bytes, size_bytes);
    }
    free(found);
}

/* It is listed apart, from whichever call it is. */
TEST(test_memory_of_the_host)
{
    void *memory = (void *)(uintptr_t)LOW;
    allocate(HIGH, 64);
    note(ID(cuMemAllocHost_v2), &(cuMemAllocHost_v2_params){.pp = &memory, .bytesize = 32});
    assert_host_memory(LOW, 32);
    assert_spans({HIGH, 64}, );
    unmap(LOW, 32);
    assert_host_memory(LOW, 32);
    note(ID(cuMemFreeHost), &(cuMemFreeHost_params){.p = memory});
    assert_host_memory(LOW, 0);
    note(ID(cuMemHostAlloc), &(cuMemHostAlloc_params){.pp = &memory, .bytesize = 16});
    assert_host_memory(LOW, 16);
    note(ID(cuMemFreeHost), &(cuMemFreeHost_params){.p = memory});
    note(ID(cuMemHostRegister_v2), &(cuMemHostRegister_v2_params){.p = memory, .bytesize = 8});
    assert_host_memory(LOW, 8);
    note(ID(cuMemHostUnregister), &(cuMemHostUnregister_params){.p = memory});
    assert_host_memory(LOW, 0);
}

TEST(test_what_is_freed_is_found)
{
    kprof_memory_change found;
    void *memory = (void *)(uintptr_t)LOW;
    allocate(HIGH, 64);
    note(ID(cuMemAllocHost_v2), &(cuMemAllocHost_v2_params){.pp = &memory, .bytesize = 32});
    assert_true(kprof_allocations_find(HIGH, &found));
    assert_true(found.kind == KPROF_MEMORY_OF_CONTEXT && found.size_bytes == 64);
    assert_true(kprof_allocations_find(LOW, &found));
    assert_true(found.kind == KPROF_MEMORY_OF_HOST && found.size_bytes == 32);
    assert_false(kprof_allocations_find(HIGH + 1, &found));
    assert_int_equal(kprof_allocations_bytes(), 64); /* without the host's */
    note(ID(cuMemFreeHost), &(cuMemFreeHost_params){.p = memory});
    assert_false(kprof_allocations_find(LOW, &found));
}

TEST(test_sizes)
{
    allocate(HIGH, 64);
    allocate_async(LOW, 32);
    assert_int_equal(kprof_allocations_size(HIGH, &context), 64);
    assert_int_equal(kprof_allocations_size(HIGH + 1, &context), 0);
    assert_int_equal(kprof_allocations_size(HIGH, &other_context), 0);
    assert_int_equal(kprof_allocations_size(LOW, &context), 0); /* of a pool, and so of no context */
    free_memory(HIGH);
    assert_int_equal(kprof_allocations_size(HIGH, &context), 0);
    free_async(LOW);
}

TEST(test_sum_of_sizes)
{
    allocate(HIGH, 64);
    allocate_in(&other_context, HIGH + 64, 16);
    allocate_async(LOW, 32);
    assert_int_equal(kprof_allocations_bytes(), 112);
    unmap(LOW + 8, 4); /* both ends stay */
    assert_int_equal(kprof_allocations_bytes(), 108);
    free_memory(HIGH);
    assert_int_equal(kprof_allocations_bytes(), 44);
    kprof_allocations_forget(&other_context);
    assert_int_equal(kprof_allocations_bytes(), 28);
    unmap(LOW, 32);
    assert_int_equal(kprof_allocations_bytes(), 0);
}

static int forget_all(void **state)
{
    attribute_result = type_result = CUDA_SUCCESS;
    gone = 0;
    kprof_allocations_forget(&context);
    kprof_allocations_forget(&other_context);
    unmap(0, SIZE_MAX);
    free_async(OTHER_DEVICES_POOL);
    assert_spans();
    return 0;
}

TEST(test_allocated_and_freed)
{
    allocate(HIGH, 100);
    allocate(LOW, 200);
    assert_spans({LOW, 200}, {HIGH, 100}, );
    free_memory(HIGH);
    assert_spans({LOW, 200}, );
    free_memory(FAR_OFF); /* it was not known */
    free_memory(LOW);
    assert_spans();
    allocate(LOW, 0);
    assert_spans();
}

TEST(test_rows)
{
    CUdeviceptr address = LOW;
    size_t pitch = 512;
    cuMemAllocPitch_v2_params p = {.dptr = &address, .pPitch = &pitch, .WidthInBytes = 500, .Height = 3};
    note(ID(cuMemAllocPitch_v2), &p);
    assert_spans({LOW, 3 * 512}, );
}

TEST(test_managed)
{
    CUdeviceptr address = LOW;
    cuMemAllocManaged_params p = {.dptr = &address, .bytesize = 300};
    kprof_span *found;
    size_t count;
    note(ID(cuMemAllocManaged), &p);
    allocate(HIGH, 100);
    assert_spans({LOW, 300}, {HIGH, 100}, );
    assert_true(kprof_allocations_list_managed(&found, &count));
    assert_true(count == 1 && found[0].address == LOW && found[0].size_bytes == 300);
    free(found);
    kprof_allocations_let_managed_stay(true); /* no snapshot has it */
    assert_spans({HIGH, 100}, );
    kprof_allocations_let_managed_stay(false);
    static char other;
    assert_true(kprof_allocations_list(&other, 0, &found, &count)); /* its kernels reach managed memory alone */
    assert_true(count == 1 && found[0].address == LOW);
    free(found);
    free_memory(LOW);
    assert_spans({HIGH, 100}, );
}

/* All contexts of the pool's device reach it. */
TEST(test_pools)
{
    CUdeviceptr address = HIGH, far = OTHER_DEVICES_POOL;
    cuMemAllocFromPoolAsync_params p = {.dptr = &address, .bytesize = 64};
    cuMemAllocFromPoolAsync_params of_other = {.dptr = &far, .bytesize = 32};
    allocate_async(LOW, 128);
    note(ID(cuMemAllocFromPoolAsync_ptsz), &p);
    note(ID(cuMemAllocFromPoolAsync), &of_other);
    assert_spans({LOW, 128}, {HIGH, 64}, );
    assert_spans_in(&other_context, DEVICE, (const kprof_span[]){{LOW, 128}, {HIGH, 64}, {0, 0}});
    assert_spans_in(&context, OTHER_DEVICE, (const kprof_span[]){{OTHER_DEVICES_POOL, 32}, {0, 0}});
    note(ID(cuMemFreeAsync_ptsz), &(cuMemFreeAsync_params){.dptr = HIGH});
    free_memory(LOW); /* which waits, but is allowed */
    assert_spans();
}

TEST(test_contexts)
{
    allocate_in(&context, LOW, 16);
    allocate_in(&other_context, HIGH, 32);
    allocate_async(FAR_OFF, 64);
    assert_spans({LOW, 16}, {FAR_OFF, 64}, );
    kprof_allocations_forget(&context);
    assert_spans({FAR_OFF, 64}, );
    assert_spans_in(&other_context, DEVICE, (const kprof_span[]){{HIGH, 32}, {FAR_OFF, 64}, {0, 0}});
    free_async(FAR_OFF);
}

/* To save it would end the context that is there now. */
TEST(test_pool_that_goes_with_a_context)
{
    allocate_async(LOW, 128);
    allocate_async(HIGH, 64);
    gone = LOW;
    assert_spans({LOW, 128}, {HIGH, 64}, );   /* no context has ended: the driver is not asked */
    type_result = CUDA_ERROR_INVALID_CONTEXT; /* it does not tell yet */
    kprof_allocations_forget(&context);
    assert_spans({HIGH, 64}, );
    type_result = CUDA_SUCCESS;
    gone = HIGH;
    assert_spans();
}

TEST(test_new_memory_where_a_pool_has_been)
{
    allocate_async(LOW, 128);
    map(HIGH, 0x1000);
    kprof_allocations_forget(&context);
    allocate(LOW, 16);
    gone = LOW + 16;
    assert_spans({LOW, 16}, {HIGH, 0x1000}, );
}

TEST(test_memory_of_the_host_that_goes_with_a_context)
{
    void *memory = (void *)(uintptr_t)LOW;
    note(ID(cuMemHostRegister_v2), &(cuMemHostRegister_v2_params){.p = memory, .bytesize = 64});
    kprof_allocations_forget(&context);
    gone = LOW;
    assert_host_memory(LOW, 0);
}

/* A mapping may lose any part of it. */
TEST(test_parts_that_are_unmapped)
{
    map(LOW, 0x8000);
    unmap(LOW, 0x1000);
    assert_spans({LOW + 0x1000, 0x7000}, );
    unmap(LOW + 0x7000, 0x1000);
    assert_spans({LOW + 0x1000, 0x6000}, );
    unmap(LOW + 0x3000, 0x1000);
    assert_spans({LOW + 0x1000, 0x2000}, {LOW + 0x4000, 0x3000}, );
    map(HIGH, 0x1000);
    unmap(LOW + 0x2000, HIGH - LOW); /* the end of one, another one, and the beginning of a third */
    assert_spans({LOW + 0x1000, 0x1000}, );
    unmap(FAR_OFF, 0x1000);
    unmap(LOW, 0x1000);
    assert_spans({LOW + 0x1000, 0x1000}, );
    unmap(LOW + 0x1000, 0x1000);
    assert_spans();
}

/* The application has not mapped memory that it allocated otherwise. */
TEST(test_mappings_beside_allocations)
{
    allocate(LOW, 0x1000);
    map(HIGH, 0x1000);
    unmap(0, FAR_OFF);
    assert_spans({LOW, 0x1000}, );
}

TEST(test_access)
{
    map(LOW, 0x4000);
    map(LOW, 0x4000); /* once more */
    assert_spans({LOW, 0x4000}, );
    give_access(LOW + 0x1000, 0x1000, CU_MEM_ACCESS_FLAGS_PROT_READ, DEVICE);
    assert_spans({LOW, 0x1000}, {LOW + 0x2000, 0x2000}, ); /* putting it back would be an error */
    map(LOW + 0x1000, 0x1000);
    assert_spans({LOW, 0x1000}, {LOW + 0x1000, 0x1000}, {LOW + 0x2000, 0x2000}, );
    give_access(LOW + 0x1000, 0x1000, CU_MEM_ACCESS_FLAGS_PROT_NONE, DEVICE);
    assert_spans({LOW, 0x1000}, {LOW + 0x2000, 0x2000}, );
}

TEST(test_access_of_several_devices)
{
    const CUmemAccessDesc access[] = {
        {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = DEVICE}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OTHER_DEVICE}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        {{.type = CU_MEM_LOCATION_TYPE_HOST}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
    };
    cuMemSetAccess_params p = {.ptr = LOW, .size = 0x1000, .desc = access, .count = 3};
    note(ID(cuMemSetAccess), &p);
    for (int device = 0; device < DEVICES; device++)
        assert_spans_in(&context, device, (const kprof_span[]){{LOW, 0x1000}, {0, 0}});
    unmap(LOW, 0x1000);
    for (int device = 0; device < DEVICES; device++)
        assert_spans_in(&context, device, (const kprof_span[]){{0, 0}});
}

static void create(CUmemGenericAllocationHandle handle)
{
    note(ID(cuMemCreate), &(cuMemCreate_params){.handle = &handle});
}

TEST(test_physical_memory)
{
    assert_false(kprof_allocations_is_unmapped(5));
    create(5);
    create(6);
    assert_true(kprof_allocations_is_unmapped(5) && kprof_allocations_is_unmapped(6));
    note(ID(cuMemMap), &(cuMemMap_params){.ptr = LOW, .size = 0x1000, .handle = 5});
    assert_false(kprof_allocations_is_unmapped(5));
    assert_spans(); /* nobody has access yet */
    note(ID(cuMemRelease), &(cuMemRelease_params){.handle = 6});
    assert_false(kprof_allocations_is_unmapped(6));
}

/* One that is not known to be unmapped may be mapped: no more than that. */
TEST(test_much_physical_memory)
{
    for (CUmemGenericAllocationHandle handle = 1000; handle < 2000; handle++)
        create(handle);
    assert_true(kprof_allocations_is_unmapped(1000));
    for (CUmemGenericAllocationHandle handle = 1000; handle < 2000; handle++)
        note(ID(cuMemRelease), &(cuMemRelease_params){.handle = handle});
    create(2000);
    assert_true(kprof_allocations_is_unmapped(2000));
    note(ID(cuMemRelease), &(cuMemRelease_params){.handle = 2000});
}

TEST(test_version)
{
    unsigned version = kprof_allocations_version();
    allocate(LOW, 16);
    assert_int_not_equal(kprof_allocations_version(), version);
    version = kprof_allocations_version();
    free_memory(LOW);
    note(ID(cuMemsetD8_v2), &(cuMemsetD8_v2_params){.dstDevice = LOW});
    assert_int_equal(kprof_allocations_version(), version);
    map(LOW, 0x1000);
    assert_int_not_equal(kprof_allocations_version(), version);
}

TEST(test_many)
{
    enum { MANY = 5000 };
    kprof_span *found;
    size_t count;
    for (unsigned i = 0; i < MANY; i++)
        allocate(UINT64_C(0x100000) + i * 256, 256);
    assert_true(kprof_allocations_list(&context, DEVICE, &found, &count));
    assert_int_equal(count, MANY);
    free(found);
    for (unsigned i = 0; i < MANY; i += 2)
        free_memory(UINT64_C(0x100000) + i * 256);
    assert_true(kprof_allocations_list(&context, DEVICE, &found, &count));
    assert_int_equal(count, MANY / 2);
    free(found);
}

/* The last of its process: what may not be listed may be there. */
static void test_pool_whose_device_is_not_known(void **state)
{
    kprof_span *found;
    size_t count;
    attribute_result = CUDA_ERROR_INVALID_VALUE;
    allocate_async(LOW, 128);
    bool listed = kprof_allocations_list(&context, DEVICE, &found, &count);
    bool complete = listed && count == 1;
    free(found);
    assert_true(!listed || complete);
}

/* An open batch, which has saved what there was before, gets to know. */
static void test_no_memory_for_the_list(void **state)
{
    kprof_span *spans;
    size_t count;
    unsigned before = kprof_allocations_version();
    for (CUdeviceptr address = LOW; kprof_allocations_list(&context, DEVICE, &spans, &count); address += HIGH) {
        free(spans);
        before = kprof_allocations_version();
        no_memory = count > 0;
        note(ID(cuMemAlloc_v2), &(cuMemAlloc_v2_params){.dptr = &address, .bytesize = LOW});
        no_memory = false;
    }
    assert_int_not_equal(kprof_allocations_version(), before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest out_of_memory[] = {cmocka_unit_test(test_no_memory_for_the_list)};
    const struct CMUnitTest unknown[] = {cmocka_unit_test(test_pool_whose_device_is_not_known)};
    if (argc > 1 && strcmp(argv[1], "unlisted") == 0)
        return cmocka_run_group_tests(out_of_memory, NULL, NULL);
    around_each(forget_all, NULL);
    return argc > 1 ? cmocka_run_group_tests(unknown, NULL, NULL) : run_all_tests();
}
