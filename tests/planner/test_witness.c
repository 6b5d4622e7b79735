/* Witnesses in config images: each in several passes, at no cost in passes, and apart from every counter that a value
 * is computed from. */
#include "image_view.h"
#include "planner_test.h"
#include "test.h"

#include <string.h>

#define SM_COUNTED   "sm__inst_executed_realtime.sum"
#define INSTRUCTIONS "TPC.TriageCompute.sm__inst_executed_realtime.sum"
#define CYCLES       KPROF_KERNEL_CYCLES
#define BUSY_CYCLES  "gr__cycles_active.sum" /* where the chip has no such counter */
#define TIME         "gpu__time_active.sum"
#define THROUGHPUT   "sm__throughput.avg.pct_of_peak_sustained_elapsed"

typedef struct witnessed {
    kprof_host *host;
    kprof_planned planned;
    image_view cheap, image; /* without and with what takes time */
} witnessed;

static witnessed witness(kprof_host *host, kprof_planned planned)
{
    const kprof_image_variants *variants = &planned.variants;
    const unsigned bits = variants->witnesses.count > 0 ? KPROF_IMAGE_WITNESSED : 0;
    return (witnessed){host, planned, view_image(&variants->items[0]), view_image(&variants->items[bits])};
}

static witnessed witness_set(const char *chip, const char *set)
{
    kprof_host *host;
    assert_int_equal(kprof_host_open(chip, NULL, &host), KPROF_OK);
    return witness(host, plan_set(host, shipped_catalog, set));
}

static witnessed witness_names(char **names, size_t count)
{
    kprof_strlist list = {names, count, count};
    kprof_host *host;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    return witness(host, plan_names(host, &list));
}

static void release(witnessed *w)
{
    view_free(&w->cheap);
    view_free(&w->image);
    kprof_planned_free(&w->planned);
    kprof_host_close(w->host);
}

/* The passes of a witness as bits; none where it is not there. */
static uint64_t passes_of(const witnessed *w, const char *name)
{
    bool is_there = kprof_strlist_contains(&w->planned.variants.witnesses, name);
    return is_there ? view_metric(&w->image, w->host, name) : 0;
}

/* All that is collected is in the same passes, whatever is beside it, and in the last one that the schedule tells. */
static void assert_nothing_moved(const witnessed *w)
{
    assert_int_equal(w->cheap.count, w->planned.schedule.pass_count);
    assert_int_equal(w->image.count, w->planned.schedule.pass_count);
    for (size_t i = 0; i < w->planned.collect.count; i++) {
        const char *name = w->planned.collect.items[i];
        uint64_t bits = view_metric(&w->cheap, w->host, name);
        assert_true(bits == view_metric(&w->image, w->host, name));
        assert_true(bits == bits_of_passes(&w->planned.schedule.metrics[i]));
        assert_true(bits >> w->planned.schedule.last_passes[i] <= 1);
    }
    for (size_t i = 0; i < w->image.count; i++) {
        for (size_t k = 0; k < w->cheap.passes[i].count; k++)
            assert_true(kprof_strlist_contains_sorted(&w->image.passes[i], w->cheap.passes[i].items[k]));
    }
}

/* The image without what takes time has all else that bears witness in the same passes. */
static void assert_cheap(const witnessed *w)
{
    static const char *const cheap[] = {TIME, CYCLES, BUSY_CYCLES, SM_COUNTED};
    assert_true((passes_of(w, CYCLES) != 0) != (passes_of(w, BUSY_CYCLES) != 0));
    for (size_t i = 0; i < 4; i++) {
        uint64_t bits = passes_of(w, cheap[i]);
        assert_true(bits != 0 || i > 0);
        assert_true(bits == 0 || view_metric(&w->cheap, w->host, cheap[i]) == bits);
    }
}

/* No counter of a witness is one that a value depends on. */
static void assert_apart(const witnessed *w)
{
    KPROF_AUTO(kprof_strlist) taken = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < w->planned.collect.count; i++)
        assert_int_equal(kprof_host_raw_counters(w->host, w->planned.collect.items[i], &taken, &taken), KPROF_OK);
    for (size_t i = 0; i < w->planned.variants.witnesses.count; i++) {
        kprof_strlist counters = KPROF_STRLIST_INIT;
        const char *name = w->planned.variants.witnesses.items[i];
        assert_int_equal(kprof_host_raw_counters(w->host, name, &counters, &counters), KPROF_OK);
        for (size_t k = 0; k < counters.count; k++)
            assert_false(kprof_strlist_contains(&taken, counters.items[k]));
        kprof_strlist_free(&counters);
    }
}

static void assert_witnesses(const witnessed *w)
{
    const kprof_strlist *names = &w->planned.variants.witnesses;
    assert_cheap(w);
    assert_apart(w);
    assert_true(names->count > 0);
    for (size_t i = 0; i < names->count; i++) {
        uint64_t bits = passes_of(w, names->items[i]);
        assert_false(kprof_strlist_contains(&w->planned.collect, names->items[i]));
        bool is_share = strcmp(names->items[i], KPROF_RANGE_CYCLES) == 0;
        assert_true((bits & (bits - 1)) != 0 || is_share); /* two passes at least */
        assert_true(bits == bits_of_passes(&w->planned.schedule.metrics[w->planned.collect.count + i]));
    }
}

TEST(test_sets)
{
    static const char *const chips[] = {"TU102", "GA100", "GH100", "AD102", "GB202"};
    static const char *const sets[] = {"default", "detailed", "full", "roofline"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        for (size_t k = 0; k < sizeof sets / sizeof *sets && tries_chip(chips[i]); k++) {
            witnessed w = witness_set(chips[i], sets[k]);
            assert_nothing_moved(&w);
            assert_witnesses(&w);
            release(&w);
        }
    }
}

/* Passes that take counters of the hardware; that of patched code takes none. */
static uint64_t hardware_passes(const witnessed *w)
{
    const kprof_schedule *schedule = &w->planned.schedule;
    uint64_t bits = 0;
    for (size_t i = 0; i < schedule->pass_count; i++)
        bits |= (uint64_t)!schedule->passes[i].patches_code << i;
    return bits;
}

/* Instructions are counted in every pass, by one of two counters; one pass has both, and so links all. */
static void assert_instructions_everywhere(const char *set)
{
    witnessed w = witness_set("GH100", set);
    uint64_t all = hardware_passes(&w);
    uint64_t in_sms = passes_of(&w, SM_COUNTED), in_tpcs = passes_of(&w, INSTRUCTIONS), both = in_sms & in_tpcs;
    assert_true((in_sms | in_tpcs) == all);
    assert_true(both != 0 && (both & (both - 1)) == 0);
    assert_true(passes_of(&w, CYCLES) == all);
    assert_true(passes_of(&w, TIME) == all);
    uint64_t timed = view_metric(&w.cheap, w.host, "gpc__cycles_elapsed.max");
    assert_true(timed != 0 && passes_of(&w, KPROF_RANGE_CYCLES) == timed);
    assert_true(view_metric(&w.cheap, w.host, KPROF_RANGE_CYCLES) == timed);
    release(&w);
}

TEST(test_sets_of_gh100)
{
    assert_instructions_everywhere("default");
    assert_instructions_everywhere("detailed");
    assert_instructions_everywhere("full");
}

/* If the SMs' own counter is asked for, that of the TPCs is in all passes. If the TPCs have none, the SMs' is in the
 * passes where it costs nothing. */
TEST(test_one_counter_of_instructions)
{
    char *names[] = {(char *)SM_COUNTED, (char *)THROUGHPUT};
    witnessed w = witness_names(names, 2);
    assert_true(w.planned.schedule.pass_count > 2);
    assert_true(passes_of(&w, INSTRUCTIONS) == (UINT64_C(1) << w.planned.schedule.pass_count) - 1);
    assert_nothing_moved(&w);
    release(&w);
    w = witness_set("TU102", "default");
    assert_true(passes_of(&w, INSTRUCTIONS) == 0);
    assert_true(passes_of(&w, SM_COUNTED) != 0);
    for (size_t i = 0; i < w.planned.schedule.pass_count; i++)
        assert_true((passes_of(&w, SM_COUNTED) >> i & 1) == 0 || w.planned.schedule.passes[i].sm_side);
    release(&w);
}

/* A plan of one pass compares nothing. If it counts time, witnesses tell how much of a range its kernel takes. */
TEST(test_one_pass)
{
    char *timed[] = {(char *)"gpu__time_duration.sum"}, *per_second[] = {(char *)"dram__bytes.sum.per_second"};
    char *untimed[] = {(char *)"dram__bytes.sum"};
    char **const lists[] = {timed, per_second};
    for (size_t i = 0; i < 2; i++) {
        witnessed w = witness_names(lists[i], 1);
        assert_int_equal(w.planned.schedule.pass_count, 1);
        assert_int_equal(w.planned.variants.witnesses.count, 3);
        assert_true(passes_of(&w, KPROF_KERNEL_CYCLES) == 1 && passes_of(&w, KPROF_RANGE_CYCLES) == 1);
        assert_true(passes_of(&w, TIME) == 1);
        assert_nothing_moved(&w);
        assert_apart(&w);
        release(&w);
    }
    witnessed w = witness_names(untimed, 1);
    assert_int_equal(w.planned.variants.witnesses.count, 0);
    release(&w);
    char *cycles[] = {(char *)"gpu__time_duration.sum", (char *)KPROF_KERNEL_CYCLES};
    w = witness_names(cycles, 2); /* what is collected is no witness, and without it the others tell nothing */
    assert_int_equal(w.planned.variants.witnesses.count, 0);
    release(&w);
}

/* A metric that is asked for is no witness: in several passes it would read as their mean. */
TEST(test_collected_metrics_are_no_witnesses)
{
    char *names[] = {(char *)INSTRUCTIONS, (char *)THROUGHPUT, (char *)TIME};
    witnessed w = witness_names(names, 3);
    assert_false(kprof_strlist_contains(&w.planned.variants.witnesses, INSTRUCTIONS));
    assert_false(kprof_strlist_contains(&w.planned.variants.witnesses, TIME));
    assert_nothing_moved(&w);
    release(&w);
}

TEST(test_nothing_to_compare)
{
    char *one_pass[] = {(char *)"dram__bytes.sum"};
    witnessed w = witness_names(one_pass, 1);
    assert_int_equal(w.planned.variants.witnesses.count, 0);
    assert_int_equal(w.planned.variants.items[KPROF_IMAGE_WITNESSED].size, 0);
    assert_nothing_moved(&w);
    release(&w);
    w = witness_names(NULL, 0);
    assert_int_equal(w.planned.variants.witnesses.count, 0);
    release(&w);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_catalog, tear_down_catalog)
