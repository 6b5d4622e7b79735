/* How a launch is measured, by what its kernel does and who else reaches its memory. */
#include "inject/treatment.h"

#include "inject/process.h"
#include "inject/writers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct kprof_operation {
    bool sees_host;
};

/* Of the launch, and of the process. */
static struct {
    const char *side_effect, *others, *devices;
    unsigned sharing;
    bool uncopyable, no_function, sees_host;
} seen;

static kprof_kernel kernel;

/* In place of the engine's and of CUPTI's. */
kprof_process kprof_this_process;

const char *kprof_target_side_effect(const kprof_call *call)
{
    (void)call;
    return seen.side_effect;
}

void *kprof_target_function(const kprof_call *call)
{
    (void)call;
    return seen.no_function ? NULL : &kernel;
}

unsigned kprof_target_sharing(void)
{
    return seen.sharing;
}

bool kprof_operation_sees_host(const kprof_operation *operation)
{
    return operation->sees_host;
}

const char *kprof_writers_others(void)
{
    return seen.others;
}

const char *kprof_writers_devices(void)
{
    return seen.devices;
}

static int forget_all(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    memset(&kernel, 0, sizeof kernel);
    memset(&kprof_this_process, 0, sizeof kprof_this_process);
    return 0;
}

static kprof_treatment choose(uint32_t passes)
{
    kprof_call call = {.kind = KPROF_CALL_LAUNCH};
    kprof_chip_metrics metrics = {.pass_count = passes};
    kprof_operation operation = {.sees_host = seen.sees_host};
    kprof_batch_launch launch = {.call = &call, .kernel = &kernel, .metrics = &metrics, .chosen = true};
    return kprof_treatment_choose(&launch, seen.uncopyable ? NULL : &operation);
}

static void assert_chosen(uint32_t passes, kprof_treatment_kind kind, const char *why)
{
    kprof_treatment chosen = choose(passes);
    assert_int_equal(chosen.kind, kind);
    assert_false(chosen.watched);
    assert_non_null(strstr(chosen.why, why));
}

static void assert_watched(kprof_treatment_kind kind, const char *why)
{
    kprof_treatment chosen = choose(2);
    assert_int_equal(chosen.kind, kind);
    assert_true(chosen.watched);
    assert_non_null(strstr(chosen.why, why));
}

static void test_memory_of_the_device(void **state)
{
    (void)state;
    assert_chosen(1, KPROF_TOGETHER, "");
    assert_chosen(2, KPROF_TOGETHER, "");
    kprof_this_process.config.replay_batch = 1;
    assert_chosen(1, KPROF_ALONE, "");
    assert_chosen(2, KPROF_ALONE, "");
}

/* The host needs no call to write it, nor does the process share it by one. */
static void test_pageable_memory(void **state)
{
    (void)state;
    seen.sees_host = true;
    assert_chosen(1, KPROF_REFUSED, "the kernel takes pageable host memory");
    assert_chosen(2, KPROF_REFUSED, "the kernel takes pageable host memory");
    kprof_this_process.config.replay_batch = 1;
    assert_chosen(2, KPROF_REFUSED, "the kernel takes pageable host memory");
    seen.side_effect = "it prints (test)";
    assert_chosen(2, KPROF_REFUSED, "the kernel takes pageable host memory");
}

static void test_launches_that_cannot_be_repeated(void **state)
{
    (void)state;
    seen.side_effect = "it prints (test)";
    assert_chosen(1, KPROF_TOGETHER, "");
    assert_chosen(2, KPROF_ONE_PASS, "the kernel cannot be replayed: it prints (test)");
    seen.side_effect = NULL;
    seen.uncopyable = true;
    assert_chosen(2, KPROF_ONE_PASS, "the launch cannot be repeated through the driver");
    seen.uncopyable = false;
    seen.no_function = true;
    assert_chosen(2, KPROF_ONE_PASS, "the launch cannot be repeated through the driver");
}

static void test_memory_of_the_host(void **state)
{
    (void)state;
    seen.sharing = KPROF_SHARES_WITH_HOST;
    seen.sees_host = true;
    assert_watched(KPROF_ALONE, "");
    seen.others = "threads write (test)";
    assert_chosen(2, KPROF_REFUSED, "the kernel takes host memory");
    seen.sees_host = false;
    assert_watched(KPROF_ONE_PASS, "threads write (test)");
    atomic_store(&kernel.watched_ends, 2);
    assert_chosen(2, KPROF_ONE_PASS, "threads write (test)");
    atomic_store(&kernel.ends_late, true);
    assert_chosen(2, KPROF_REFUSED, "an earlier launch of the kernel did not end by itself");
}

static void test_memory_of_other_devices(void **state)
{
    (void)state;
    seen.sharing = KPROF_SHARES_WITH_DEVICES;
    assert_chosen(1, KPROF_TOGETHER, "");
    assert_watched(KPROF_ONE_PASS, "other GPUs or other processes reach the memory");
    seen.sharing = 0;
    seen.side_effect = "it prints (test)";
    seen.devices = "a network card may write (test)";
    assert_watched(KPROF_ONE_PASS, "it prints (test)");
}

static void test_memory_that_may_not_be_saved(void **state)
{
    (void)state;
    seen.sharing = KPROF_MAY_NOT_SAVE;
    assert_chosen(1, KPROF_TOGETHER, "");
    assert_chosen(2, KPROF_ONE_PASS, "it is not known how to save memory of sparse or deferred arrays");
    seen.sharing = KPROF_MAY_NOT_SAVE | KPROF_SHARES_WITH_HOST;
    assert_watched(KPROF_ONE_PASS, "it is not known how to save");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_memory_of_the_device, forget_all),
        cmocka_unit_test_setup(test_pageable_memory, forget_all),
        cmocka_unit_test_setup(test_launches_that_cannot_be_repeated, forget_all),
        cmocka_unit_test_setup(test_memory_of_the_host, forget_all),
        cmocka_unit_test_setup(test_memory_of_other_devices, forget_all),
        cmocka_unit_test_setup(test_memory_that_may_not_be_saved, forget_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
