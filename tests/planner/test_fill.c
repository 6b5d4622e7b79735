/* Filling an image: what is in it stays in its pass, and only what may be had for nothing, or for the passes that were
 * allowed, comes beside it. */
#include "planner/schedule.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WANTED 5

static char *const own[] = {"dram__bytes_read.sum", "gpu__time_duration.sum"};
/* Of L2; of the SMs' pipes, one counter each; of patched code; and once more what is there, with another unit. */
static char *const wanted_names[WANTED] = {"lts__t_sectors.sum", "sm__inst_executed_pipe_alu.sum",
                                           "sm__inst_executed_pipe_fma.sum", "smsp__sass_thread_inst_executed.sum",
                                           "dram__bytes_read.sum.per_second"};
enum { L2, ALU, FMA, PATCH, THERE };

typedef struct filled {
    kprof_host *host;
    kprof_config_image image;
    kprof_schedule schedule; /* of own and of what was found, in this order */
    bool found[WANTED];
} filled;

static kprof_strlist list_of(char *const *items, size_t count)
{
    return (kprof_strlist){(char **)items, count, count};
}

static filled fill(size_t new_passes, size_t sm_passes, size_t slow_passes)
{
    filled f = {0};
    kprof_strlist names = list_of(own, 2), wanted = list_of(wanted_names, WANTED), all = KPROF_STRLIST_INIT;
    kprof_fill what = {&wanted, new_passes, sm_passes, slow_passes, f.found};
    assert_int_equal(kprof_host_open("GH100", NULL, &f.host), KPROF_OK);
    kprof_config_image before;
    assert_int_equal(kprof_host_draft_image(f.host, &names, &before), KPROF_OK);
    assert_int_equal(before.pass_count, 1);
    assert_int_equal(kprof_host_fill(f.host, &what, &before, &f.image), KPROF_OK);
    kprof_config_image_free(&before);
    for (size_t i = 0; i < 2; i++)
        assert_true(kprof_strlist_add(&all, own[i]));
    for (size_t i = 0; i < WANTED; i++)
        assert_true(!f.found[i] || kprof_strlist_add(&all, wanted_names[i]));
    assert_int_equal(kprof_schedule_read(f.host, &all, &f.image, &f.schedule), KPROF_OK);
    for (size_t i = 0; i < 2; i++)
        assert_true(f.schedule.metrics[i].count == 1 && f.schedule.metrics[i].items[0] == 0);
    kprof_strlist_free(&all);
    return f;
}

static size_t count_slow(const filled *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->schedule.pass_count; i++)
        count += f->schedule.passes[i].is_slow;
    return count;
}

static void release(filled *f)
{
    kprof_schedule_free(&f->schedule);
    kprof_config_image_free(&f->image);
    kprof_host_close(f->host);
}

static void test_a_fast_pass_stays_fast(void **state)
{
    (void)state;
    filled f = fill(0, 0, 0);
    assert_true(f.found[L2] && f.found[THERE]);
    assert_false(f.found[ALU] || f.found[FMA] || f.found[PATCH]);
    assert_int_equal(f.image.pass_count, 1);
    assert_int_equal(count_slow(&f), 0);
    release(&f);
}

static void test_a_pass_may_become_slow(void **state)
{
    (void)state;
    filled f = fill(0, 1, 1);
    assert_true(f.found[L2] && f.found[ALU] && f.found[FMA] && f.found[THERE]);
    assert_false(f.found[PATCH]);
    assert_int_equal(f.image.pass_count, 1);
    assert_int_equal(count_slow(&f), 1);
    release(&f);
}

/* Of three one, for patched code: a pass that nothing goes into is none. */
static void test_new_passes_are_made_where_they_help(void **state)
{
    (void)state;
    for (size_t dear = 0; dear < 2; dear++) {
        filled f = fill(3, dear, dear);
        assert_true(f.found[PATCH] && f.found[ALU] == (dear > 0));
        assert_int_equal(f.image.pass_count, 2);
        assert_true(f.schedule.passes[1].patches_code && !f.schedule.passes[0].patches_code);
        assert_int_equal(f.schedule.passes[1].counters, 1);
        release(&f);
    }
}

static void test_an_image_may_be_empty(void **state)
{
    (void)state;
    kprof_host *host;
    kprof_config_image empty = {0}, image;
    kprof_strlist wanted = list_of(wanted_names, WANTED);
    bool found[WANTED];
    kprof_fill none = {&wanted, 0, 1, 1, found}, one = {&wanted, 1, 1, 1, found};
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_fill(host, &none, &empty, &image), KPROF_OK);
    assert_int_equal(image.size, 0);
    assert_int_equal(kprof_host_fill(host, &one, &empty, &image), KPROF_OK);
    assert_int_equal(image.pass_count, 1);
    assert_true(found[L2] && found[ALU] && found[THERE]);
    kprof_config_image_free(&image);
    kprof_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fast_pass_stays_fast),
        cmocka_unit_test(test_a_pass_may_become_slow),
        cmocka_unit_test(test_new_passes_are_made_where_they_help),
        cmocka_unit_test(test_an_image_may_be_empty),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
