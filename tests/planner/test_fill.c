/* Placing metrics one after the other, as limits do: what is there keeps a pass, and a further pass or a dearer one is
 * taken only where nothing cheaper has room. */
#include "image_view.h"
#include "planner/pack.h"
#include "planner_test.h"
#include "test.h"

/* Metrics of DRAM and time; of L2; of the SMs' pipes, one counter each; of patched code; and a metric that is there
 * already, with another unit. */
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
    f->found[name] = kprof_packing_place(&f->packing, &f->packing.metrics[name]);
}

/* Make the image of what was found, which has each of its metrics in one pass; tell what the passes cost. */
static kprof_effort read_image(filled *f)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    kprof_image_variants variants = {.proof = KPROF_STRLIST_INIT};
    for (size_t i = 0; i < NAMES; i++)
        assert_true(!f->found[i] || kprof_strlist_add(&found, names[i]));
    assert_int_equal(kprof_guests_list(&f->packing, &found), KPROF_OK);
    assert_int_equal(kprof_guests_settle(&f->packing, &variants), KPROF_OK);
    image_view view = view_image(&variants.items[0]);
    assert_int_equal(view.count, f->packing.now.pass_count);
    for (size_t i = 0; i < found.count; i++) {
        uint64_t bits = view_metric(&view, f->host, found.items[i]);
        assert_true((bits & (bits - 1)) == 0);
    }
    view_free(&view);
    kprof_image_variants_free(&variants);
    return kprof_packing_effort(&f->packing);
}

static void release(filled *f)
{
    kprof_packing_free(&f->packing);
    kprof_host_close(f->host);
}

TEST(test_a_fast_pass_stays_fast)
{
    filled f = start(1);
    static const size_t free_of_charge[] = {DRAM, DURATION, L2, THERE};
    for (size_t i = 0; i < 4; i++)
        place(&f, free_of_charge[i]);
    assert_true(f.found[DRAM] && f.found[DURATION] && f.found[L2] && f.found[THERE]);
    assert_int_equal(f.packing.now.pass_count, 1);
    kprof_effort effort = read_image(&f);
    assert_true(effort.slow_pass_count == 0 && effort.sm_pass_count == 0);
    release(&f);
}

/* Patched code takes no pass that has something else. */
TEST(test_a_pass_may_become_dearer)
{
    filled f = start(1);
    for (size_t i = 0; i < NAMES; i++)
        place(&f, i);
    assert_true(f.found[L2] && f.found[ALU] && f.found[FMA] && f.found[THERE]);
    assert_false(f.found[PATCH]);
    kprof_effort effort = read_image(&f);
    assert_true(effort.sm_pass_count == 1 && effort.other_pass_count == 0 && effort.slow_pass_count <= 1);
    release(&f);
}

/* One pass of three, for patched code: an empty pass does not count. */
TEST(test_new_passes_are_made_where_they_help)
{
    filled f = start(3);
    for (size_t i = 0; i < NAMES; i++)
        place(&f, i);
    for (size_t i = 0; i < NAMES; i++)
        assert_true(f.found[i]);
    (void)read_image(&f);
    assert_int_equal(f.packing.now.pass_count, 2);
    assert_true(f.packing.passes[1].is_patch && !f.packing.passes[0].is_patch);
    assert_int_equal(f.packing.passes[1].count, 1);
    release(&f);
}

/* The planner can take the last metric back, and then has room for it again. */
TEST(test_placing_is_undone)
{
    filled f = start(1);
    place(&f, ALU);
    size_t passes = f.packing.now.pass_count, counter = 0;
    kprof_packing_restore(&f.packing);
    assert_true(passes == 1 && f.packing.now.pass_count == 0);
    while (counter < f.packing.names.count && f.packing.now.spots[counter].pass == KPROF_NOT_WANTED)
        counter++;
    assert_int_equal(counter, f.packing.names.count);
    place(&f, PATCH);
    assert_true(f.found[PATCH] && f.packing.now.pass_count == 1);
    release(&f);
}

ONLY_WHERE(cupti_is_here)
