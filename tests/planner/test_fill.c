/* Placing metrics one after the other, as limits do: what is there keeps a pass, and a further pass or a dearer one is
 * taken only where nothing cheaper has room. */
#include "planner/pack.h"
#include "planner/planner.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of DRAM and time; of L2; of the SMs' pipes, one counter each; of patched code; and once more what is there, with
 * another unit. */
static char *names[] = {"dram__bytes_read.sum",
                        "dram__bytes_read.sum.per_second",
                        "gpu__time_duration.sum",
                        "lts__t_sectors.sum",
                        "sm__inst_executed_pipe_alu.sum",
                        "sm__inst_executed_pipe_fma.sum",
                        "smsp__sass_thread_inst_executed.sum"};
enum { DRAM, THERE, DURATION, L2, ALU, FMA, PATCH, NAMES };

typedef struct filled {
    kprof_host *host;
    kprof_packing packing;
    bool found[NAMES];
} filled;

static filled start(size_t most_passes)
{
    filled f = {0};
    kprof_strlist all = {names, NAMES, NAMES};
    kprof_config_image draft;
    assert_int_equal(kprof_host_open("GH100", NULL, &f.host), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(f.host, &all, &draft), KPROF_OK);
    assert_int_equal(kprof_packing_read(f.host, &all, &draft, &f.packing), KPROF_OK);
    kprof_packing_clear(&f.packing, most_passes);
    assert_int_equal(f.packing.status, KPROF_OK);
    kprof_config_image_free(&draft);
    return f;
}

static void place(filled *f, size_t name)
{
    kprof_strlist counters = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_raw_counters(f->host, names[name], &counters, NULL), KPROF_OK);
    f->found[name] = kprof_packing_place(&f->packing, &counters);
    kprof_strlist_free(&counters);
}

/* The image of what was found: its metrics, each in one pass, and how many of its passes are slow. */
static kprof_schedule read_schedule(filled *f, size_t *slow)
{
    kprof_strlist found = KPROF_STRLIST_INIT;
    kprof_config_image image;
    kprof_schedule schedule;
    assert_int_equal(kprof_packing_image(f->host, &f->packing, &image), KPROF_OK);
    for (size_t i = 0; i < NAMES; i++)
        assert_true(!f->found[i] || kprof_strlist_add(&found, names[i]));
    assert_int_equal(kprof_schedule_read(f->host, &found, &image, &schedule), KPROF_OK);
    assert_int_equal(schedule.pass_count, f->packing.pass_count);
    *slow = 0;
    for (size_t i = 0; i < schedule.pass_count; i++)
        *slow += schedule.passes[i].is_slow;
    for (size_t i = 0; i < schedule.metric_count; i++)
        assert_int_equal(schedule.metrics[i].count, 1);
    kprof_strlist_free(&found);
    kprof_config_image_free(&image);
    return schedule;
}

static void release(filled *f)
{
    kprof_packing_free(&f->packing);
    kprof_host_close(f->host);
}

static void test_a_fast_pass_stays_fast(void **state)
{
    (void)state;
    filled f = start(1);
    static const size_t free_of_charge[] = {DRAM, DURATION, L2, THERE};
    for (size_t i = 0; i < 4; i++)
        place(&f, free_of_charge[i]);
    assert_true(f.found[DRAM] && f.found[DURATION] && f.found[L2] && f.found[THERE]);
    assert_int_equal(f.packing.pass_count, 1);
    size_t slow;
    kprof_schedule schedule = read_schedule(&f, &slow);
    assert_true(slow == 0 && !schedule.passes[0].sm_side);
    kprof_schedule_free(&schedule);
    release(&f);
}

/* Patched code takes no pass that has something else. */
static void test_a_pass_may_become_dearer(void **state)
{
    (void)state;
    filled f = start(1);
    for (size_t i = 0; i < NAMES; i++)
        place(&f, i);
    assert_true(f.found[L2] && f.found[ALU] && f.found[FMA] && f.found[THERE]);
    assert_false(f.found[PATCH]);
    size_t slow;
    kprof_schedule schedule = read_schedule(&f, &slow);
    assert_true(schedule.pass_count == 1 && slow <= 1 && schedule.passes[0].sm_side);
    kprof_schedule_free(&schedule);
    release(&f);
}

/* Of three one, for patched code: a pass that nothing goes into is none. */
static void test_new_passes_are_made_where_they_help(void **state)
{
    (void)state;
    filled f = start(3);
    for (size_t i = 0; i < NAMES; i++)
        place(&f, i);
    for (size_t i = 0; i < NAMES; i++)
        assert_true(f.found[i]);
    size_t slow;
    kprof_schedule schedule = read_schedule(&f, &slow);
    assert_int_equal(schedule.pass_count, 2);
    assert_true(schedule.passes[1].patches_code && !schedule.passes[0].patches_code);
    assert_int_equal(schedule.passes[1].counters, 1);
    kprof_schedule_free(&schedule);
    release(&f);
}

/* What was placed last can be taken back, and has room again. */
static void test_placing_is_undone(void **state)
{
    (void)state;
    filled f = start(1);
    place(&f, ALU);
    size_t passes = f.packing.pass_count, bundle = 0;
    kprof_packing_restore(&f.packing);
    assert_true(passes == 1 && f.packing.pass_count == 0);
    while (bundle < f.packing.bundle_count && f.packing.bundles[bundle].pass == KPROF_NOT_WANTED)
        bundle++;
    assert_int_equal(bundle, f.packing.bundle_count);
    place(&f, PATCH);
    assert_true(f.found[PATCH] && f.packing.pass_count == 1);
    release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fast_pass_stays_fast),
        cmocka_unit_test(test_a_pass_may_become_dearer),
        cmocka_unit_test(test_new_passes_are_made_where_they_help),
        cmocka_unit_test(test_placing_is_undone),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
