/* Module variables in snapshots: whoever tells of them, in whatever order, restoring puts back what was there at first.
 * The "device" is an array that the test's driver copies from and to. */
#include "cupti/allocations.h"
#include "cupti/modules.h"
#include "cupti/snapshot.h"
#include "cupti/variables.h"
#include "fake_device.h"
#include "no_frees.h"
#include "test.h"

enum { LOW, HIGH, FAR, PLACES };

/* `LOW` and `HIGH` are in one allocation and of one module. */
static int memory[PLACES];
static size_t readable;     /* places that there are */
static bool single;         /* each is an allocation now */
static unsigned char *next; /* context: each test has its own */
static bool without_context, managed;
static kprof_strlist of_module, of_other;

static CUdeviceptr at(unsigned place)
{
    return (CUdeviceptr)&memory[place];
}

static CUresult CUDAAPI get_global(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
    *size = sizeof *memory;
    *address = at(strcmp(name, "low") == 0 ? LOW : HIGH);
    return strcmp(name, "low") == 0 || strcmp(name, "high") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult CUDAAPI get_module(CUmodule *module, CUfunction function)
{
    *module = (CUmodule)function;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    bool is_far = address >= at(FAR);
    if (without_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (address >= at((unsigned)readable))
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)out = managed;
    else if (single && attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)out = address;
    else if (single)
        *(size_t *)out = sizeof *memory;
    else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)out = at(is_far ? FAR : LOW);
    else
        *(size_t *)out = (is_far ? 1 : readable < FAR ? readable : FAR) * sizeof *memory;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI read_memory(void *host, CUdeviceptr device, size_t size, CUstream stream)
{
    if (device >= at(LOW) && device < at(PLACES) && device + size > at((unsigned)readable))
        return CUDA_ERROR_INVALID_VALUE;
    return fake_read(host, device, size, stream);
}

static CUresult CUDAAPI push(CUcontext context)
{
    without_context = false;
    return context == (CUcontext)next ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult CUDAAPI pop(CUcontext *context)
{
    without_context = true;
    *context = (CUcontext)next;
    return CUDA_SUCCESS;
}

/* In place of the driver's, of what is allocated, and of what cubins tell. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static kprof_driver_api api;
    api = fake_api();
    api.cuModuleGetGlobal_ = get_global;
    api.cuFuncGetModule_ = get_module;
    api.cuPointerGetAttribute_ = get_attribute;
    api.cuCtxPushCurrent_ = push;
    api.cuCtxPopCurrent_ = pop;
    api.cuMemcpyDtoHAsync_ = read_memory;
    *out = &api;
    return KPROF_OK;
}

static bool managed_stays;

bool kprof_allocations_managed_stays(void)
{
    return managed_stays;
}

unsigned kprof_allocations_version(void)
{
    return 0;
}

bool kprof_allocations_list(const void *context, int device, kprof_span **out, size_t *count)
{
    *count = 0;
    *out = malloc(sizeof **out);
    return *out != NULL;
}

const kprof_strlist *kprof_modules_variables(const char *kernel, size_t index)
{
    if (strcmp(kernel, "twice") == 0)
        return index == 0 ? &of_other : index == 1 ? &of_module : NULL;
    if (strcmp(kernel, "odd") == 0)
        return index == 0 ? &of_other : NULL;
    if (strcmp(kernel, "unseen") == 0)
        return NULL;
    return index == 0 ? &of_module : NULL;
}

void kprof_modules_note_variables(const kprof_strlist *variables) {}

static int set_up(void **state)
{
    static unsigned char contexts[64];
    next = next ? next + 1 : contexts;
    memset(memory, 0, sizeof memory);
    readable = PLACES;
    fake_reset();
    return 0;
}

static int name_variables(void **state)
{
    return kprof_strlist_add(&of_module, "low") && kprof_strlist_add(&of_module, "high") &&
                   kprof_strlist_add(&of_other, "elsewhere")
               ? 0
               : -1;
}

static int forget_names(void **state)
{
    kprof_strlist_free(&of_module);
    kprof_strlist_free(&of_other);
    return 0;
}

static void launch_first(const char *kernel)
{
    kprof_variables_note_module(next, &memory, kernel);
}

static void hand_out(unsigned place)
{
    kprof_variables_note(next, &of_module, at(place), sizeof *memory);
}

static kprof_snapshot *take(void)
{
    kprof_snapshot *snapshot = NULL;
    assert_int_equal(kprof_snapshot_open(next, &snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_OK);
    return snapshot;
}

static void put_back(kprof_snapshot *snapshot)
{
    assert_int_equal(kprof_snapshot_record_end(snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_restore_start(snapshot, true), KPROF_OK);
}

static void close_snapshot(kprof_snapshot *snapshot)
{
    kprof_snapshot_close(snapshot, true);
    assert_int_equal(fake.chunks, 0);
}

/* The start is put back, and then the end. */
static void assert_restored(kprof_snapshot *snapshot)
{
    int end[PLACES];
    memcpy(end, memory, sizeof end);
    put_back(snapshot);
    for (unsigned place = 0; place < PLACES; place++)
        assert_int_equal(memory[place], 0);
    assert_int_equal(kprof_snapshot_restore_end(snapshot), KPROF_OK);
    assert_memory_equal(memory, end, sizeof end);
    close_snapshot(snapshot);
}

TEST(test_module)
{
    launch_first("kernel");
    kprof_snapshot *snapshot = take();
    memory[LOW] = memory[HIGH] = 1;
    assert_restored(snapshot);
}

/* The application asks for one that is known as a part of its module. */
TEST(test_asked_for_after_launch)
{
    launch_first("kernel");
    hand_out(LOW);
    hand_out(HIGH);
    kprof_snapshot *snapshot = take();
    memory[LOW] = memory[HIGH] = 1;
    assert_restored(snapshot);
}

TEST(test_asked_for_before_launch)
{
    hand_out(LOW);
    kprof_snapshot *snapshot = take();
    launch_first("kernel"); /* joins */
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    memory[LOW] = memory[HIGH] = 1;
    assert_restored(snapshot);
}

/* The first snapshot has what was there first. */
TEST(test_changed_before_launch)
{
    hand_out(HIGH);
    kprof_snapshot *snapshot = take();
    memory[HIGH] = 1; /* by a kernel of another module */
    launch_first("kernel");
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_OK);
    memory[LOW] = memory[HIGH] = 2;
    assert_restored(snapshot);
}

TEST(test_size_not_asked_for)
{
    kprof_variables_note(next, &of_module, at(FAR), 0);
    kprof_snapshot *snapshot = take();
    memory[FAR] = 1;
    assert_restored(snapshot);
}

/* The module is gone, and something smaller is where it was; or nothing is. */
TEST(test_stale)
{
    launch_first("kernel");
    readable = HIGH;
    close_snapshot(take());
    readable = LOW;
    close_snapshot(take());
    readable = PLACES;
    kprof_snapshot *snapshot = take();
    memory[LOW] = 1;
    put_back(snapshot);
    assert_int_equal(memory[LOW], 1); /* not known any more */
    close_snapshot(snapshot);
}

static bool is_known_after(void (*happens)(void))
{
    happens();
    readable = PLACES;
    kprof_snapshot *snapshot = take();
    memory[LOW] = 1; /* what is there now is somebody else's, where nothing is known */
    put_back(snapshot);
    close_snapshot(snapshot);
    return memory[LOW] == 0;
}

static void unload(void)
{
    kprof_variables_unload(&memory); /* the module: see launch_first */
}

static void unload_another(void)
{
    kprof_variables_unload(&readable);
}

static void lose_place(void)
{
    readable = LOW;
    unload_another();
}

TEST(test_unloaded)
{
    launch_first("kernel");
    assert_true(is_known_after(unload_another));
    memory[LOW] = 0;
    assert_false(is_known_after(unload));
}

/* As a library's, which the driver calls by another name than its module. */
TEST(test_gone_with_another)
{
    launch_first("kernel");
    hand_out(LOW);
    assert_false(is_known_after(lose_place));
}

static void lose_place_without_context(void)
{
    without_context = true;
    lose_place();
    without_context = false;
}

/* By a thread that has another context current, or none. */
TEST(test_gone_with_a_library_elsewhere)
{
    launch_first("kernel");
    assert_false(is_known_after(lose_place_without_context));
}

TEST(test_managed)
{
    launch_first("kernel");
    assert_false(kprof_variables_managed());
    managed = true;
    hand_out(FAR);
    managed = false;
    assert_true(kprof_variables_managed());
    assert_restored(take());
}

/* Another module's are where a part of it was. */
TEST(test_new_within_stale)
{
    launch_first("kernel");
    hand_out(HIGH);
    single = true;
    kprof_snapshot *snapshot = take();
    memory[HIGH] = 1;
    assert_restored(snapshot);
    single = false;
}

/* Two cubins have the kernel, and one of them is the module's. */
TEST(test_kernel_of_two_cubins)
{
    launch_first("twice");
    kprof_snapshot *snapshot = take();
    memory[HIGH] = 1;
    assert_restored(snapshot);
}

/* The last: from here on nothing can be saved. */
TEST(test_variable_that_is_not_found)
{
    kprof_snapshot *snapshot = NULL;
    launch_first("odd");
    assert_int_equal(kprof_snapshot_open(next, &snapshot), KPROF_OK);
    assert_int_equal(kprof_snapshot_take(snapshot, false), KPROF_UNSUPPORTED);
    close_snapshot(snapshot);
}

/* For good, too. */
static void test_code_not_seen(void **state)
{
    kprof_snapshot *snapshot = take();
    launch_first("unseen");
    assert_int_equal(kprof_snapshot_cover(snapshot, NULL), KPROF_UNSUPPORTED);
    close_snapshot(snapshot);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest unseen[] = {cmocka_unit_test_setup(test_code_not_seen, set_up)};
    if (argc > 1)
        return cmocka_run_group_tests(unseen, name_variables, forget_names);
    around_each(set_up, NULL);
    around_all(name_variables, forget_names);
    return run_all_tests();
}
