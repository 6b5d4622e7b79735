/* Kernels by handle: found again, told apart, forgotten with their modules, announced before others find them, counted
 * by many threads. */
#include "inject/engine.h"
#include "inject/kernels.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define MANY 3000
#define SLOW 16 /* registers of kernels that take long to announce */

static kprof_filter *filter; /* takes names with "keep" */
static char handles[MANY * 16];

static void *handle(unsigned i)
{
    return &handles[i * 16];
}

static unsigned visited;

static void count_visit(kprof_kernel *kernel)
{
    visited += kernel->record.mangled != NULL;
}

#define INTERRUPTED 5000 /* registers of a kernel about which the driver is asked when a handler exits */

/* Stands in for the driver: the launch's "arguments" are the registers of its kernel. */
static void target_kernel(const kprof_call *call, kprof_kernel_record *out)
{
    out->registers_per_thread = *(const uint32_t *)call->parameters;
    if (out->registers_per_thread == INTERRUPTED)
        kprof_kernels_visit(count_visit);
}

static _Atomic unsigned noted; /* kernels whose modules' variables were */

static void target_note_variables(const kprof_call *call)
{
    atomic_fetch_add(&noted, 1);
}

static unsigned unloads; /* of modules that snapshots kept */

static unsigned snapshot_unloads(void)
{
    return unloads;
}

static const kprof_device_ops device_ops = {.target_kernel = target_kernel,
                                            .target_note_variables = target_note_variables,
                                            .snapshot_unloads = snapshot_unloads};

static _Atomic unsigned announced;

static void announce(const kprof_kernel *kernel)
{
    if (kernel->record.registers_per_thread == SLOW)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    atomic_fetch_add(&announced, 1);
}

static kprof_kernel *find_in(void *context, void *function, const char *name, uint32_t registers)
{
    kprof_call call = {.kind = KPROF_CALL_LAUNCH,
                       .context = context,
                       .function = function,
                       .kernel_name = name,
                       .parameters = &registers};
    return kprof_kernels_find(&call, filter, announce);
}

static kprof_kernel *find(void *function, const char *name, uint32_t registers)
{
    return find_in(NULL, function, name, registers);
}

static bool is_new(void *function, const char *name, uint32_t registers)
{
    unsigned before = atomic_load(&announced);
    assert_non_null(find(function, name, registers));
    return atomic_load(&announced) > before;
}

static int set_up(void **state)
{
    kprof_filter_spec spec = {.kernel = (char *)"regex:keep"};
    return kprof_filter_new(&spec, &filter) == KPROF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    kprof_filter_free(filter);
    return 0;
}

TEST(test_found_again)
{
    assert_true(is_new(handle(0), "keep_a", 8));
    assert_false(is_new(handle(0), "keep_a", 8));
    kprof_kernel *kernel = find(handle(0), "keep_a", 8);
    assert_string_equal(kernel->record.mangled, "keep_a");
    assert_int_equal(kernel->record.registers_per_thread, 8);
    assert_true(kernel->matches);
    assert_false(find(handle(1), "leave_b", 8)->matches);
}

TEST(test_one_kernel_by_several_handles)
{
    kprof_kernel *kernel = find(handle(2), "keep_c", 8);
    assert_ptr_equal(find(handle(3), "keep_c", 8), kernel); /* the same in another context */
    assert_ptr_not_equal(find(handle(4), "keep_c", 9), kernel);
}

TEST(test_reused_handle)
{
    kprof_kernel *before = find(handle(5), "keep_d", 8);
    kprof_kernel *other = find(handle(5), "keep_e", 8); /* nobody told, but the name did */
    assert_ptr_not_equal(other, before);
    assert_string_equal(other->record.mangled, "keep_e");
    kprof_kernel *old = find(handle(6), "keep_f", 8);
    assert_ptr_equal(find(handle(6), "keep_f", 12), old); /* a handle is not looked into twice */
    kprof_kernels_forget_handles();
    assert_ptr_not_equal(find(handle(6), "keep_f", 12), old);
    assert_ptr_equal(find(handle(5), "keep_d", 8), before);
}

/* A kernel of a library has one handle, and variables in each context. */
TEST(test_variables_noted_for_each_context)
{
    kprof_kernel *kernel = find_in(handle(0), handle(7), "keep_g", 8);
    atomic_store(&noted, 0);
    assert_ptr_equal(find_in(handle(1), handle(7), "keep_g", 8), kernel);
    assert_int_equal(atomic_load(&noted), 1);
    find_in(handle(0), handle(7), "keep_g", 8);
    find_in(handle(1), handle(7), "keep_g", 8);
    assert_int_equal(atomic_load(&noted), 1);
    kprof_kernels_forget_handles();
    find_in(handle(1), handle(7), "keep_g", 8);
    assert_int_equal(atomic_load(&noted), 2);
    unloads++; /* kprof has unloaded code that the application had unloaded before */
    find_in(handle(1), handle(7), "keep_g", 8);
    assert_int_equal(atomic_load(&noted), 3);
}

static void count_kernel(kprof_kernel *kernel)
{
    atomic_fetch_add(&kernel->launches, 1000);
}

TEST(test_many_and_visit)
{
    char name[32];
    kprof_kernel *kernels[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many_%u", i);
        kernels[i] = find(handle(i), name, i);
        assert_non_null(kernels[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many_%u", i);
        assert_ptr_equal(find(handle(i), name, i), kernels[i]);
        if (i > 0)
            assert_int_equal(kernels[i]->record.kernel, kernels[i - 1]->record.kernel + 1);
    }
    kprof_kernels_visit(count_kernel);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(atomic_load(&kernels[i]->launches), 1000);
}

/* The application's signal handler exits, and counts are written, where its thread holds the lock. */
TEST(test_visit_within_a_search)
{
    find(handle(0), "before", 8);
    visited = 0;
    assert_non_null(find(handle(1), "interrupted", INTERRUPTED));
    assert_true(visited > 0);
    assert_int_equal(pthread_mutex_trylock(&kprof_the_kernels.mutex), 0); /* nobody has it now */
    pthread_mutex_unlock(&kprof_the_kernels.mutex);
}

/* Longer each time, and not any more after the third: then it is known. */
TEST(test_patience)
{
    kprof_kernel *kernel = find(handle(0), "keep_patient", 8);
    for (int64_t ms = 20; ms <= 80; ms *= 2) {
        assert_int_equal(kprof_kernel_patience_ns(kernel), ms * 1000000);
        assert_false(atomic_load(&kernel->ends_late));
        kprof_kernel_note_timeout(kernel);
    }
    assert_true(atomic_load(&kernel->ends_late));
    assert_int_equal(kprof_kernel_patience_ns(kernel), 0);
    kprof_kernel_note_timeout(kernel);
    assert_true(atomic_load(&kernel->ends_late));
    assert_int_equal(kprof_kernel_patience_ns(kernel), 0);
}

static void *launch_all(void *unused)
{
    char name[32];
    for (unsigned i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "thread_%u", i % 40);
        atomic_fetch_add(&find(handle(i % 40), name, 1)->launches, 1);
        if (i % 500 == 0)
            kprof_kernels_forget_handles();
    }
    return NULL;
}

TEST(test_threads)
{
    char name[32];
    pthread_t threads[8];
    unsigned before = atomic_load(&announced);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_all, NULL), 0);
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&announced) - before, 40);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "thread_%u", i);
        assert_int_equal(atomic_load(&find(handle(i), name, 1)->launches), 8 * 100);
    }
}

static void *find_slow(void *unannounced)
{
    find(handle(0), "slow", SLOW);
    *(bool *)unannounced = atomic_load(&announced) == 0;
    return NULL;
}

TEST(test_announced_before_anybody_finds_it)
{
    pthread_t threads[2];
    bool unannounced[2];
    atomic_store(&announced, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_slow, &unannounced[i]), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_false(unannounced[0] || unannounced[1]);
    assert_int_equal(atomic_load(&announced), 1);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    around_all(set_up, tear_down);
    return run_all_tests();
}
