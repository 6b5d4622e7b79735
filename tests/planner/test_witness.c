/* Witnesses in config images: each in several passes, at no cost in passes, and apart from every counter that a value
 * is computed from. */
#include "planner/planner.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SM_COUNTED   "sm__inst_executed_realtime.sum"
#define INSTRUCTIONS "TPC.TriageCompute.sm__inst_executed_realtime.sum"
#define CYCLES       "gr__cycles_active.sum"
#define TIME         "gpu__time_active.sum"
#define THROUGHPUT   "sm__throughput.avg.pct_of_peak_sustained_elapsed"

typedef struct witnessed {
    kprof_host *host;
    kprof_strlist names, witnesses;
    kprof_config_image plain, cheap, image;
    kprof_schedule before, after, of_witnesses;
} witnessed;

static kprof_config_image copy_image(const kprof_config_image *image)
{
    kprof_config_image copy = *image;
    copy.data = malloc(image->size + 1);
    assert_non_null(copy.data);
    if (image->size > 0)
        memcpy(copy.data, image->data, image->size);
    copy.placement = image->placement ? strdup(image->placement) : NULL;
    return copy;
}

/* `image` is that of the names. */
static witnessed witness(const char *chip, const kprof_strlist *names, const kprof_config_image *image)
{
    witnessed w = {.plain = copy_image(image)};
    assert_int_equal(kprof_host_open(chip, NULL, &w.host), KPROF_OK);
    for (size_t i = 0; i < names->count; i++)
        assert_true(kprof_strlist_add(&w.names, names->items[i]));
    kprof_image_variants made;
    assert_int_equal(kprof_host_image_variants(w.host, &w.names, &w.plain, &made), KPROF_OK);
    for (size_t i = 0; i < made.witnesses.count; i++)
        assert_true(kprof_strlist_add(&w.witnesses, made.witnesses.items[i]));
    w.cheap = copy_image(&made.items[0]);
    w.image = copy_image(made.witnesses.count > 0 ? &made.items[KPROF_IMAGE_WITNESSED] : image);
    kprof_image_variants_free(&made);
    assert_int_equal(kprof_schedule_read(w.host, &w.names, &w.plain, &w.before), KPROF_OK);
    assert_int_equal(kprof_schedule_read(w.host, &w.names, &w.image, &w.after), KPROF_OK);
    assert_int_equal(kprof_schedule_read(w.host, &w.witnesses, &w.image, &w.of_witnesses), KPROF_OK);
    return w;
}

static witnessed witness_set(const char *chip, const char *set)
{
    char *sets[] = {(char *)set};
    kprof_selection selection = {.sets = {sets, 1, 1}};
    kprof_catalog *catalog = load_shipped_catalog();
    kprof_host *host;
    kprof_plan plan;
    assert_non_null(catalog);
    assert_int_equal(kprof_host_open(chip, NULL, &host), KPROF_OK);
    assert_int_equal(kprof_plan_make(catalog, &selection, host, &plan), KPROF_OK);
    witnessed w = witness(chip, &plan.collect, &plan.image);
    kprof_plan_free(&plan);
    kprof_host_close(host);
    kprof_catalog_free(catalog);
    return w;
}

static witnessed witness_names(char **names, size_t count)
{
    kprof_strlist list = {names, count, count};
    kprof_host *host;
    kprof_config_image image;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_config_image(host, &list, false, &image), KPROF_OK);
    witnessed w = witness("GH100", &list, &image);
    kprof_config_image_free(&image);
    kprof_host_close(host);
    return w;
}

static void release(witnessed *w)
{
    kprof_schedule_free(&w->before);
    kprof_schedule_free(&w->after);
    kprof_schedule_free(&w->of_witnesses);
    kprof_config_image_free(&w->plain);
    kprof_config_image_free(&w->image);
    kprof_config_image_free(&w->cheap);
    kprof_strlist_free(&w->names);
    kprof_strlist_free(&w->witnesses);
    kprof_host_close(w->host);
}

/* All that is collected stays where it was, and no pass is added or made dearer. */
static void assert_nothing_moved(const witnessed *w)
{
    assert_int_equal(w->before.pass_count, w->after.pass_count);
    for (size_t i = 0; i < w->before.metric_count; i++) {
        const kprof_pass_list *before = &w->before.metrics[i], *after = &w->after.metrics[i];
        assert_int_equal(before->count, after->count);
        assert_memory_equal(before->items, after->items, before->count * sizeof *before->items);
    }
    for (size_t i = 0; i < w->before.pass_count; i++) {
        assert_int_equal(w->before.passes[i].sm_side, w->after.passes[i].sm_side);
        assert_int_equal(w->before.passes[i].is_slow, w->after.passes[i].is_slow);
        assert_true(w->after.passes[i].counters >= w->before.passes[i].counters);
    }
}

static const kprof_pass_list *list_of(const witnessed *w, const char *name)
{
    for (size_t i = 0; i < w->witnesses.count; i++) {
        if (strcmp(w->witnesses.items[i], name) == 0)
            return &w->of_witnesses.metrics[i];
    }
    return NULL;
}

/* The image without what takes time has the same passes, and all else that bears witness in the same ones. */
static void assert_cheap(const witnessed *w)
{
    char *cheap[] = {TIME, CYCLES, SM_COUNTED};
    kprof_strlist witness = {cheap, list_of(w, SM_COUNTED) ? 3 : 2, 3};
    kprof_schedule collected, witnesses;
    assert_int_equal(w->cheap.pass_count, w->image.pass_count);
    assert_int_equal(kprof_schedule_read(w->host, &w->names, &w->cheap, &collected), KPROF_OK);
    assert_int_equal(kprof_schedule_read(w->host, &witness, &w->cheap, &witnesses), KPROF_OK);
    assert_int_equal(collected.metric_count, w->before.metric_count);
    for (size_t i = 0; i < w->before.pass_count; i++)
        assert_int_equal(w->before.passes[i].is_slow, collected.passes[i].is_slow);
    assert_memory_equal(w->after.last_passes, collected.last_passes,
                        collected.metric_count * sizeof *collected.last_passes);
    for (size_t i = 0; i < witness.count; i++) {
        const kprof_pass_list *all = list_of(w, cheap[i]), *here = &witnesses.metrics[i];
        assert_non_null(all);
        assert_true(here->count >= 2 && here->count == all->count);
        assert_memory_equal(here->items, all->items, here->count * sizeof *here->items);
    }
    kprof_schedule_free(&collected);
    kprof_schedule_free(&witnesses);
}

static void assert_witnesses(const witnessed *w)
{
    assert_cheap(w);
    assert_true(w->witnesses.count > 0);
    for (size_t i = 0; i < w->witnesses.count; i++) {
        const kprof_pass_list *passes = &w->of_witnesses.metrics[i];
        assert_false(kprof_strlist_contains(&w->names, w->witnesses.items[i]));
        assert_true(passes->count >= 2);
    }
}

static void test_sets(void **state)
{
    (void)state;
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

/* The passes of a witness as bits; none where it is not there. */
static uint64_t passes_of(const witnessed *w, const char *name)
{
    uint64_t bits = 0;
    const kprof_pass_list *passes = list_of(w, name);
    for (size_t i = 0; passes && i < passes->count; i++)
        bits |= UINT64_C(1) << passes->items[i];
    return bits;
}

/* Passes that take counters of the hardware; that of patched code, which is the last, takes none. */
static uint64_t hardware_passes(const witnessed *w)
{
    size_t count = w->before.pass_count;
    bool has_patch = !w->before.passes[count - 1].sm_side;
    return (UINT64_C(1) << (count - has_patch)) - 1;
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
    release(&w);
}

static void test_sets_of_gh100(void **state)
{
    (void)state;
    assert_instructions_everywhere("default");
    assert_instructions_everywhere("detailed");
    assert_instructions_everywhere("full");
}

/* Where the SMs' own counter is asked for, that of the TPCs is in all passes; and where the TPCs have none, the SMs' is
 * where it costs nothing. */
static void test_one_counter_of_instructions(void **state)
{
    (void)state;
    char *names[] = {(char *)SM_COUNTED, (char *)THROUGHPUT};
    witnessed w = witness_names(names, 2);
    assert_true(w.after.pass_count > 2);
    assert_true(passes_of(&w, INSTRUCTIONS) == (UINT64_C(1) << w.after.pass_count) - 1);
    assert_nothing_moved(&w);
    release(&w);
    w = witness_set("TU102", "default");
    assert_true(passes_of(&w, INSTRUCTIONS) == 0);
    assert_true(passes_of(&w, SM_COUNTED) != 0);
    for (size_t i = 0; i < w.after.pass_count; i++)
        assert_true((passes_of(&w, SM_COUNTED) >> i & 1) == 0 || w.before.passes[i].sm_side);
    release(&w);
}

/* What is asked for is no witness: in several passes it would read as their mean. */
static void test_collected_metrics_are_no_witnesses(void **state)
{
    (void)state;
    char *names[] = {(char *)INSTRUCTIONS, (char *)THROUGHPUT, (char *)TIME};
    witnessed w = witness_names(names, 3);
    assert_false(kprof_strlist_contains(&w.witnesses, INSTRUCTIONS));
    assert_false(kprof_strlist_contains(&w.witnesses, TIME));
    assert_nothing_moved(&w);
    release(&w);
}

static void test_nothing_to_compare(void **state)
{
    (void)state;
    char *one_pass[] = {(char *)"dram__bytes.sum"};
    witnessed w = witness_names(one_pass, 1);
    assert_int_equal(w.witnesses.count, 0);
    assert_int_equal(w.image.size, w.plain.size);
    assert_memory_equal(w.image.data, w.plain.data, w.plain.size);
    assert_int_equal(w.cheap.size, w.plain.size);
    assert_memory_equal(w.cheap.data, w.plain.data, w.plain.size);
    release(&w);
    w = witness_names(NULL, 0);
    assert_int_equal(w.witnesses.count, 0);
    release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_sets_of_gh100),
        cmocka_unit_test(test_one_counter_of_instructions),
        cmocka_unit_test(test_collected_metrics_are_no_witnesses),
        cmocka_unit_test(test_nothing_to_compare),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
