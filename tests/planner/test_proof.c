/* The proof in config images: one more pass in front with nothing but its counters, and all other passes as before. */
#include "log_capture.h"
#include "planner/nvpw.h"
#include "planner/planner.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SYSMEM          "lts__t_sectors_srcunit_tex_aperture_sysmem.sum"
#define SYSMEM_REQUESTS "lts__t_requests_srcunit_tex_aperture_sysmem.sum"

typedef struct proved {
    kprof_host *host;
    kprof_config_image image;
    kprof_image_variants variants;
} proved;

static proved prove_set(const char *chip, const char *set)
{
    proved p;
    kprof_plan plan;
    char *sets[] = {(char *)set};
    kprof_selection selection = {.sets = {sets, 1, 1}};
    assert_int_equal(kprof_host_open(chip, NULL, &p.host), KPROF_OK);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, p.host, &plan), KPROF_OK);
    assert_int_equal(kprof_host_image_variants(p.host, &plan.collect, &plan.image, &p.variants), KPROF_OK);
    p.image = plan.image;
    plan.image = (kprof_config_image){0};
    kprof_plan_free(&plan);
    return p;
}

static proved prove_names(char **names, size_t count)
{
    proved p;
    kprof_strlist list = {names, count, count};
    assert_int_equal(kprof_host_open("GH100", NULL, &p.host), KPROF_OK);
    assert_int_equal(kprof_host_config_image(p.host, &list, false, &p.image), KPROF_OK);
    assert_int_equal(kprof_host_image_variants(p.host, &list, &p.image, &p.variants), KPROF_OK);
    return p;
}

static void release(proved *p)
{
    kprof_image_variants_free(&p->variants);
    kprof_config_image_free(&p->image);
    kprof_host_close(p->host);
}

/* NVPW puts a counter of its own, on which no metric depends, into the first pass of every image: leave it out. */
static kprof_strlist counters_of(const kprof_config_image *image, size_t pass)
{
    kprof_strlist all = KPROF_STRLIST_INIT, counters = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_image_counters(image, pass, &all), KPROF_OK);
    for (size_t i = 0; i < all.count; i++) {
        bool is_own = strcmp(all.items[i], "0x0000000000000000") == 0;
        assert_true(is_own ? pass == 0 : kprof_strlist_add(&counters, all.items[i]));
    }
    kprof_strlist_free(&all);
    kprof_strlist_sort(&counters);
    return counters;
}

static void assert_same_names(kprof_strlist *a, kprof_strlist *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_string_equal(a->items[i], b->items[i]);
    kprof_strlist_free(a);
    kprof_strlist_free(b);
}

static void assert_passes_follow(const proved *p, unsigned bits)
{
    const kprof_config_image *plain = &p->variants.items[bits];
    const kprof_config_image *image = &p->variants.items[bits | KPROF_IMAGE_PROVED];
    assert_true(plain->size > 0 && image->size > 0);
    assert_int_equal(plain->pass_count, p->image.pass_count);
    assert_int_equal(image->pass_count, plain->pass_count + 1);
    for (size_t i = 0; i < plain->pass_count; i++) {
        kprof_strlist before = counters_of(plain, i), after = counters_of(image, i + 1);
        assert_same_names(&before, &after);
    }
}

static void assert_proof_in_front(const proved *p, unsigned bits)
{
    kprof_strlist wanted = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < p->variants.proof.count; i++)
        assert_int_equal(kprof_host_raw_counters(p->host, p->variants.proof.items[i], &wanted, NULL), KPROF_OK);
    kprof_strlist_sort(&wanted);
    kprof_strlist counters = counters_of(&p->variants.items[bits | KPROF_IMAGE_PROVED], 0);
    assert_same_names(&counters, &wanted);
}

/* The schedule of a proved image tells its passes like that of any other. */
static void assert_schedule_shifts(const proved *p, unsigned bits)
{
    char *items[] = {p->variants.proof.items[0]};
    kprof_strlist names = {items, 1, 1};
    kprof_schedule schedule, plain;
    const kprof_config_image *image = &p->variants.items[bits | KPROF_IMAGE_PROVED];
    assert_int_equal(kprof_schedule_read(p->host, &names, image, &schedule), KPROF_OK);
    assert_int_equal(kprof_schedule_read(p->host, &(kprof_strlist)KPROF_STRLIST_INIT, &p->image, &plain), KPROF_OK);
    assert_int_equal(schedule.metrics[0].count, 1);
    assert_int_equal(schedule.last_passes[0], 0);
    assert_false(schedule.passes[0].sm_side || schedule.passes[0].is_slow || schedule.passes[0].patches_code);
    for (size_t i = 0; i < plain.pass_count; i++) {
        assert_int_equal(schedule.passes[i + 1].is_slow, plain.passes[i].is_slow);
        assert_int_equal(schedule.passes[i + 1].patches_code, plain.passes[i].patches_code);
    }
    kprof_schedule_free(&schedule);
    kprof_schedule_free(&plain);
}

static void assert_proved(const proved *p, unsigned bits)
{
    assert_int_equal(p->variants.proof.count, 2);
    assert_passes_follow(p, bits);
    assert_proof_in_front(p, bits);
    assert_schedule_shifts(p, bits);
}

static void test_sets_of_gh100(void **state)
{
    (void)state;
    static const char *const sets[] = {"default", "full"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        proved p = prove_set("GH100", sets[i]);
        assert_proved(&p, 0);
        assert_proved(&p, KPROF_IMAGE_WITNESSED);
        release(&p);
    }
}

static void test_chips(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *first, *second; /* NULL: no proof */
    } chips[] = {
        {"TU102", SYSMEM, "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"GA100", SYSMEM, "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"GA102", SYSMEM, "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"GH100", SYSMEM, "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"AD102", SYSMEM, "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"GB100", "sys" SYSMEM, "syslts__t_sectors_srcunit_tex_aperture_peer.sum"},
        {"GB202", "sys" SYSMEM, "syslts__t_sectors_srcunit_tex_aperture_peer.sum"},
    };
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        if (!tries_chip(chips[i].chip))
            continue;
        proved p = prove_set(chips[i].chip, "default");
        assert_string_equal(p.variants.proof.items[0], chips[i].first);
        assert_string_equal(p.variants.proof.items[1], chips[i].second);
        assert_proved(&p, 0);
        assert_proved(&p, KPROF_IMAGE_WITNESSED);
        release(&p);
    }
}

static void assert_no_witnesses(const proved *p)
{
    assert_int_equal(p->variants.witnesses.count, 0);
    assert_int_equal(p->variants.items[KPROF_IMAGE_WITNESSED].size, 0);
    assert_int_equal(p->variants.items[KPROF_IMAGE_WITNESSED | KPROF_IMAGE_PROVED].size, 0);
    assert_int_equal(p->variants.items[0].size, p->image.size);
    assert_memory_equal(p->variants.items[0].data, p->image.data, p->image.size);
}

static void test_one_pass(void **state)
{
    (void)state;
    char *names[] = {"dram__bytes.sum"};
    proved p = prove_names(names, 1);
    assert_int_equal(p.image.pass_count, 1);
    assert_no_witnesses(&p);
    assert_proved(&p, 0);
    release(&p);
}

/* All metrics that could be witnesses are collected. */
static void test_several_passes_without_witnesses(void **state)
{
    (void)state;
    char *names[] = {
        KPROF_SM_INSTRUCTIONS,   KPROF_TPC_INSTRUCTIONS, "TPC.TriageCompute.sm__cycles_active.avg",
        "gr__cycles_active.sum", "gpu__time_active.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    };
    proved p = prove_names(names, sizeof names / sizeof *names);
    assert_true(p.image.pass_count > 1);
    assert_no_witnesses(&p);
    assert_proved(&p, 0);
    release(&p);
}

/* Collected metrics are no proof: in two passes a counter would read as the mean of both. */
static void test_collected_metrics_are_no_proof(void **state)
{
    (void)state;
    char *names[] = {SYSMEM, "dram__bytes.sum", SYSMEM_REQUESTS};
    proved p = prove_names(names, 2);
    assert_string_equal(p.variants.proof.items[0], SYSMEM_REQUESTS);
    assert_proved(&p, 0);
    release(&p);

    log_capture messages;
    log_capture_start(&messages);
    p = prove_names(names, 3);
    assert_int_equal(p.variants.proof.count, 0);
    for (unsigned bits = KPROF_IMAGE_PROVED; bits < KPROF_IMAGES; bits++)
        assert_int_equal(p.variants.items[bits].size, 0);
    assert_true(p.variants.items[0].size > 0);
    assert_int_equal(messages.count, 0);
    release(&p);
    kprof_log_set_sink(NULL, NULL);
}

static void test_nothing_to_collect(void **state)
{
    (void)state;
    proved p = prove_names(NULL, 0);
    assert_int_equal(p.variants.proof.count, 0);
    for (unsigned bits = 0; bits < KPROF_IMAGES; bits++)
        assert_int_equal(p.variants.items[bits].size, 0);
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_of_gh100),
        cmocka_unit_test(test_chips),
        cmocka_unit_test(test_one_pass),
        cmocka_unit_test(test_several_passes_without_witnesses),
        cmocka_unit_test(test_collected_metrics_are_no_proof),
        cmocka_unit_test(test_nothing_to_collect),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, set_up_catalog, tear_down_catalog) : SKIPPED;
}
