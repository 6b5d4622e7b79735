/* The proof in config images: one more pass in front with nothing but its counters, and all other passes as before. */
#include "image_view.h"
#include "log_capture.h"
#include "planner_test.h"
#include "test.h"

#define SYSMEM          "lts__t_sectors_srcunit_tex_aperture_sysmem.sum"
#define SYSMEM_REQUESTS "lts__t_requests_srcunit_tex_aperture_sysmem.sum"

typedef struct proved {
    kprof_host *host;
    kprof_planned planned;
} proved;

static proved prove_list(const char *chip, const kprof_strlist *names)
{
    proved p;
    assert_int_equal(kprof_host_open(chip, NULL, &p.host), KPROF_OK);
    p.planned = plan_names(p.host, names);
    return p;
}

static proved prove_set(const char *chip, const char *set)
{
    proved p;
    assert_int_equal(kprof_host_open(chip, NULL, &p.host), KPROF_OK);
    p.planned = plan_set(p.host, shipped_catalog, set);
    return p;
}

static proved prove_names(char **names, size_t count)
{
    kprof_strlist list = {names, count, count};
    return prove_list("GH100", &list);
}

static void release(proved *p)
{
    kprof_planned_free(&p->planned);
    kprof_host_close(p->host);
}

static void assert_same_names(const kprof_strlist *a, const kprof_strlist *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_string_equal(a->items[i], b->items[i]);
}

static void assert_proved(const proved *p, unsigned bits)
{
    const kprof_image_variants *variants = &p->planned.variants;
    KPROF_AUTO(kprof_strlist) wanted = KPROF_STRLIST_INIT;
    image_view before = view_image(&variants->items[bits]);
    image_view after = view_image(&variants->items[bits | KPROF_IMAGE_PROVED]);
    assert_int_equal(variants->proof.count, KPROF_PROOF_READS + 1);
    for (size_t i = 0; i < variants->proof.count; i++)
        assert_int_equal(kprof_host_raw_counters(p->host, variants->proof.items[i], &wanted, NULL), KPROF_OK);
    kprof_strlist_sort(&wanted);
    assert_int_equal(before.count, p->planned.schedule.pass_count);
    assert_int_equal(after.count, before.count + 1);
    assert_same_names(&after.passes[0], &wanted);
    for (size_t i = 0; i < before.count; i++)
        assert_same_names(&after.passes[i + 1], &before.passes[i]);
    image_view alone = view_image(&variants->items[KPROF_IMAGE_PROOF]);
    assert_int_equal(alone.count, 1);
    assert_same_names(&alone.passes[0], &wanted);
    view_free(&alone);
    for (size_t i = 0; i < wanted.count; i++) {
        for (size_t pass = 0; pass < before.count; pass++)
            assert_false(kprof_strlist_contains_sorted(&before.passes[pass], wanted.items[i]));
    }
    view_free(&before);
    view_free(&after);
}

TEST(test_sets_of_gh100)
{
    static const char *const sets[] = {"default", "full"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        proved p = prove_set("GH100", sets[i]);
        assert_proved(&p, 0);
        assert_proved(&p, KPROF_IMAGE_WITNESSED);
        release(&p);
    }
}

TEST(test_chips)
{
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
        assert_string_equal(p.planned.variants.proof.items[0], chips[i].first);
        assert_string_equal(p.planned.variants.proof.items[1], chips[i].second);
        assert_proved(&p, 0);
        assert_proved(&p, KPROF_IMAGE_WITNESSED);
        release(&p);
    }
}

static void assert_no_witnesses(const proved *p)
{
    const kprof_image_variants *variants = &p->planned.variants;
    assert_int_equal(variants->witnesses.count, 0);
    assert_int_equal(variants->items[KPROF_IMAGE_WITNESSED].size, 0);
    assert_int_equal(variants->items[KPROF_IMAGE_WITNESSED | KPROF_IMAGE_PROVED].size, 0);
    assert_true(variants->items[0].size > 0);
}

TEST(test_one_pass)
{
    char *names[] = {"dram__bytes.sum"};
    proved p = prove_names(names, 1);
    assert_int_equal(p.planned.schedule.pass_count, 1);
    assert_no_witnesses(&p);
    assert_proved(&p, 0);
    release(&p);
}

/* All metrics that could be witnesses are collected. */
TEST(test_several_passes_without_witnesses)
{
    char *names[] = {
        KPROF_SM_INSTRUCTIONS,   KPROF_TPC_INSTRUCTIONS, "TPC.TriageCompute.sm__cycles_active.avg",
        "gr__cycles_active.sum", KPROF_TIME_WITNESS,     "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        KPROF_KERNEL_CYCLES,     KPROF_RANGE_CYCLES,
    };
    proved p = prove_names(names, sizeof names / sizeof *names);
    assert_true(p.planned.schedule.pass_count > 1);
    assert_no_witnesses(&p);
    assert_proved(&p, 0);
    release(&p);
}

/* Collected metrics are no proof: in two passes a counter would read as the mean of both. */
TEST(test_collected_metrics_are_no_proof)
{
    char *names[] = {SYSMEM, "dram__bytes.sum", SYSMEM_REQUESTS};
    proved p = prove_names(names, 2);
    assert_string_equal(p.planned.variants.proof.items[0], SYSMEM_REQUESTS);
    assert_proved(&p, 0);
    release(&p);

    log_capture messages;
    log_capture_start(&messages);
    p = prove_names(names, 3);
    assert_int_equal(p.planned.variants.proof.count, 0);
    for (unsigned bits = KPROF_IMAGE_PROVED; bits < KPROF_IMAGES; bits++)
        assert_int_equal(p.planned.variants.items[bits].size, 0);
    assert_true(p.planned.variants.items[0].size > 0);
    assert_int_equal(messages.count, 0);
    release(&p);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_nothing_to_collect)
{
    proved p = prove_names(NULL, 0);
    assert_int_equal(p.planned.variants.proof.count, 0);
    for (unsigned bits = 0; bits < KPROF_IMAGES; bits++)
        assert_int_equal(p.planned.variants.items[bits].size, 0);
    release(&p);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_catalog, tear_down_catalog)
