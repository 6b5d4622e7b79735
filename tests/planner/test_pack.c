/* Packing: never more passes than CUPTI's own schedule and often fewer or cheaper ones, with every counter in exactly
 * one of them, in a domain that has it; and what comes from one execution in CUPTI's schedule still does. */
#include "image_view.h"
#include "log_capture.h"
#include "planner/pack.h"
#include "planner_test.h"
#include "test.h"

#include <math.h>

typedef struct packed {
    kprof_host *host;
    kprof_plan plan; /* its images are packed */
    kprof_config_image plain;
} packed;

static packed pack_now(const char *chip, const char *set, uint32_t max_passes)
{
    packed p;
    char *sets[] = {(char *)set};
    kprof_selection selection = {.sets = {sets, 1, 1}, .limits = {.max_passes = max_passes}};
    assert_int_equal(kprof_host_open(chip, NULL, &p.host), KPROF_OK);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, p.host, &p.plan), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(p.host, &p.plan.collect, &p.plain), KPROF_OK);
    return p;
}

static void release(packed *p)
{
    kprof_config_image_free(&p->plain);
    kprof_plan_free(&p->plan);
    kprof_host_close(p->host);
}

/* Several tests look at one packed plan, since packing takes long. */
static struct {
    const char *chip, *set;
    uint32_t max_passes;
    packed packed;
} kept[32];
static size_t kept_count;

static packed *pack_limited(const char *chip, const char *set, uint32_t max_passes)
{
    for (size_t i = 0; i < kept_count; i++) {
        if (strcmp(kept[i].chip, chip) == 0 && strcmp(kept[i].set, set) == 0 && kept[i].max_passes == max_passes)
            return &kept[i].packed;
    }
    assert_true(kept_count < sizeof kept / sizeof *kept);
    kept[kept_count].packed = pack_now(chip, set, max_passes);
    kept[kept_count].chip = chip;
    kept[kept_count].set = set;
    kept[kept_count].max_passes = max_passes;
    return &kept[kept_count++].packed;
}

static packed *pack_set(const char *chip, const char *set)
{
    return pack_limited(chip, set, 0);
}

static int tear_down(void **state)
{
    while (kept_count > 0)
        release(&kept[--kept_count].packed);
    return tear_down_catalog(state);
}

static void assert_same_bytes(const kprof_config_image *a, const kprof_config_image *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* The packed image has each counter of the other in one pass; what else it has are witnesses, in several. */
static void assert_same_counters(const packed *p, const image_view *plain, const image_view *view)
{
    KPROF_AUTO(kprof_strlist) of_plain = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < plain->count; i++) {
        for (size_t k = 0; k < plain->passes[i].count; k++)
            assert_true(kprof_strlist_add(&of_plain, plain->passes[i].items[k]));
    }
    kprof_strlist_sort(&of_plain);
    for (size_t i = 0; i < of_plain.count; i++) {
        size_t passes = 0;
        for (size_t k = 0; k < view->count; k++)
            passes += kprof_strlist_contains_sorted(&view->passes[k], of_plain.items[i]);
        assert_int_equal(passes, 1);
    }
    KPROF_AUTO(kprof_strlist) witnesses = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < p->plan.variants.witnesses.count; i++)
        assert_int_equal(kprof_host_raw_counters(p->host, p->plan.variants.witnesses.items[i], &witnesses, NULL),
                         KPROF_OK);
    for (size_t i = 0; i < view->count; i++) {
        for (size_t k = 0; k < view->passes[i].count; k++)
            assert_true(kprof_strlist_contains_sorted(&of_plain, view->passes[i].items[k]) !=
                        kprof_strlist_contains(&witnesses, view->passes[i].items[k]));
    }
}

static void assert_is_a_place(const kprof_packing *packing, size_t counter)
{
    kprof_counter_places places;
    uint32_t domain = packing->now.spots[counter].domain;
    if (domain == 0)
        return; /* NVPW chooses */
    assert_int_equal(kprof_raw_config_places(packing->config, packing->names.items[counter], &places), KPROF_OK);
    for (size_t i = 0; i < places.count; i++) {
        if (places.items[i] == domain)
            return;
    }
    fail_msg("%s cannot be read in domain %u", packing->names.items[counter], domain);
}

/* Rates are made of these, under several names. */
static bool is_rate_part(const char *name)
{
    static const char *const parts[] = {"gpu__time_duration.", "gpc__cycles_elapsed.", "dram__", "fbpa__"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strncmp(name, parts[i], strlen(parts[i])) == 0)
            return true;
    }
    return false;
}

/* Metrics of one pass keep to one, and the parts of rates that CUPTI has in one stay with each other. */
static void assert_still_together(const packed *p, const image_view *plain, const image_view *view)
{
    uint64_t of_plain = 0, of_packed = 0;
    size_t parts = 0;
    for (size_t i = 0; i < p->plan.collect.count; i++) {
        const char *name = p->plan.collect.items[i];
        uint64_t before = view_metric(plain, p->host, name), after = view_metric(view, p->host, name);
        if (before & (before - 1))
            continue;
        assert_true((after & (after - 1)) == 0);
        if (!is_rate_part(name) || strstr(name, "peak_sustained"))
            continue;
        if (parts++ == 0) {
            of_plain = before;
            of_packed = after;
        }
        if (before == of_plain)
            assert_true(after == of_packed);
    }
    assert_true(parts > 3);
}

TEST(test_sets)
{
    static const char *const chips[] = {"GH100", "TU102", "GA100", "GB202"};
    static const char *const sets[] = {"default", "detailed", "full"};
    for (size_t i = 0; i < 12; i++) {
        if (!tries_chip(chips[i / 3]))
            continue;
        packed *p = pack_set(chips[i / 3], sets[i % 3]);
        image_view plain = view_image(&p->plain), view = view_image(&p->plan.variants.items[0]);
        assert_true(p->plan.pass_count <= plain.count && view.count == p->plan.pass_count);
        assert_same_counters(p, &plain, &view);
        assert_still_together(p, &plain, &view);
        view_free(&plain);
        view_free(&view);
    }
}

TEST(test_fewer_passes_on_gh100)
{
    static const char *const sets[] = {"default", "detailed", "full", "roofline"};
    static const size_t passes[] = {8, 11, 22, 6};
    for (size_t i = 0; i < 4; i++) {
        packed *p = pack_set("GH100", sets[i]);
        assert_true(p->plan.pass_count + kprof_instruction_passes(&p->plan.instructions) <= passes[i]);
        assert_true(p->plan.pass_count < p->plain.pass_count);
    }
}

static kprof_effort effort_of(const packed *p)
{
    return kprof_effort_of(&p->plan.schedule, p->plan.collect.count);
}

static kprof_packing read_plain(const packed *p)
{
    kprof_packing packing;
    assert_int_equal(kprof_packing_read(p->host, &p->plan.collect, &p->plain, &packing), KPROF_OK);
    return packing;
}

static kprof_effort effort_of_plain(const packed *p)
{
    kprof_packing packing = read_plain(p);
    kprof_effort effort = kprof_packing_effort(&packing);
    kprof_packing_free(&packing);
    return effort;
}

static void improve(kprof_packing *packing, kprof_goal first, kprof_goal second)
{
    assert_int_equal(kprof_packing_improve(packing, first), KPROF_OK);
    assert_int_equal(kprof_packing_improve(packing, second), KPROF_OK);
}

TEST(test_a_limit_that_does_not_bind_changes_nothing)
{
    packed *p = pack_set("GH100", "default"), *loose = pack_limited("GH100", "default", 9);
    assert_same_bytes(&loose->plan.variants.items[0], &p->plan.variants.items[0]);
}

static bool raises_no_price(kprof_effort ours, kprof_effort plain)
{
    return ours.sm_pass_count + ours.other_pass_count <= plain.sm_pass_count + plain.other_pass_count &&
           ours.sm_pass_count <= plain.sm_pass_count && ours.slow_pass_count <= plain.slow_pass_count;
}

/* Each counter has a pass and a place, and the counters of each pass go together: those of the SMs, and the others. */
static void assert_schedulable(const kprof_packing *packing)
{
    KPROF_AUTO_FREE kprof_placed_counter *list = calloc(packing->names.count, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < 2 * packing->now.pass_count; i++) {
        bool fits = false;
        size_t count = 0;
        for (size_t k = 0; k < packing->names.count; k++) {
            const kprof_spot *spot = &packing->now.spots[k];
            assert_true(spot->pass < packing->now.pass_count);
            assert_int_equal(spot->pass, packing->now.spots[packing->counters[k].bundle].pass);
            assert_is_a_place(packing, k);
            if (spot->pass == i / 2 && packing->counters[k].in_sm == i % 2)
                list[count++] = (kprof_placed_counter){packing->names.items[k], spot->domain};
        }
        if (count > 0)
            assert_int_equal(kprof_raw_config_takes(packing->config, list, count, &fits), KPROF_OK);
        assert_true(fits || count == 0);
    }
}

static void assert_no_empty_pass(const kprof_packing *packing)
{
    for (size_t pass = 0; pass < packing->now.pass_count; pass++) {
        size_t i = 0;
        while (i < packing->names.count && packing->now.spots[i].pass != pass)
            i++;
        assert_true(i < packing->names.count);
    }
}

/* The time that the passes take by the price list, after gathering. The planner tries several ways, and one of them
 * raises no price of CUPTI's schedule: so a set that fits into a budget with that schedule still does. */
static double gather(const packed *p, double *before_ms)
{
    kprof_packing packing = read_plain(p);
    const kprof_effort plain = kprof_packing_effort(&packing);
    improve(&packing, KPROF_OTHER_DOMAINS, KPROF_FEWER_PASSES);
    assert_true(packing.now.pass_count <= p->plain.pass_count);
    assert_true(raises_no_price(kprof_packing_effort(&packing), plain) || raises_no_price(effort_of(p), plain));
    *before_ms = kprof_packing_cost_ms(&packing);
    assert_int_equal(kprof_packing_improve(&packing, KPROF_LESS_TIME), KPROF_OK);
    assert_true(packing.now.pass_count <= p->plain.pass_count);
    assert_no_empty_pass(&packing);
    assert_schedulable(&packing);
    double after_ms = kprof_packing_cost_ms(&packing);
    kprof_packing_free(&packing);
    return after_ms;
}

/* Passes that lose all their counters go. */
TEST(test_a_pass_is_emptied)
{
    char names[8192];
    if (!tries_chip("GA100"))
        return;
    FILE *file = fopen(KPROF_TESTS_DIR "/fixtures/cupti/ga100-names.txt", "r");
    assert_non_null(file);
    assert_non_null(fgets(names, sizeof names, file));
    fclose(file);
    KPROF_AUTO(kprof_strlist) list = KPROF_STRLIST_INIT;
    for (char *rest, *name = strtok_r(names, ",\n", &rest); name; name = strtok_r(NULL, ",\n", &rest))
        assert_true(kprof_strlist_add(&list, name));
    kprof_host *host;
    kprof_config_image image;
    assert_int_equal(kprof_host_open("GA100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(host, &list, &image), KPROF_OK);
    assert_true(image.pass_count > 22);
    kprof_packing packing;
    assert_int_equal(kprof_packing_read(host, &list, &image, &packing), KPROF_OK);
    improve(&packing, KPROF_OTHER_DOMAINS, KPROF_FEWER_PASSES);
    assert_true(packing.now.pass_count <= 23);
    assert_no_empty_pass(&packing);
    kprof_packing_free(&packing);
    kprof_config_image_free(&image);
    kprof_host_close(host);
}

/* Passes cost less where anything can be gathered. */
TEST(test_gathering)
{
    static const struct {
        const char *chip, *set;
        double most_ms;
    } rows[] = {{"GH100", "default", 1610},  {"GH100", "detailed", 1598},    {"GH100", "full", 2179},
                {"GH100", "roofline", 1297}, {"GA102", "default", 1458},     {"GB202", "default", 1409},
                {"TU102", "full", 2035},     {"TU102", "default", 1556},     {"TU102", "detailed", INFINITY},
                {"GB110", "full", 2121},     {"GA100", "default", INFINITY}, {"GA100", "detailed", INFINITY},
                {"GA100", "full", INFINITY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tries_chip(rows[i].chip))
            continue;
        double before_ms, after_ms = gather(pack_set(rows[i].chip, rows[i].set), &before_ms);
        assert_true(after_ms <= before_ms);
        assert_true(after_ms <= rows[i].most_ms);
    }
}

/* CUPTI's schedule is replaced where its passes are as few, but cost more. */
TEST(test_as_many_but_cheaper)
{
    if (!tries_chip("GA100"))
        return;
    packed *p = pack_set("GA100", "default");
    assert_int_equal(p->plan.pass_count, p->plain.pass_count);
    assert_true(effort_of(p).slow_pass_count < effort_of_plain(p).slow_pass_count);
}

/* Planned by this process or another, and planned anew. */
TEST(test_the_same_twice)
{
    const packed *a = pack_set("GH100", "default");
    setenv("KPROF_CACHE", "off", 1);
    packed b = pack_now("GH100", "default", 0);
    unsetenv("KPROF_CACHE");
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        assert_same_bytes(&a->plan.variants.items[i], &b.plan.variants.items[i]);
    release(&b);
}

TEST(test_one_pass_stays_as_it_is)
{
    char *names[] = {(char *)"dram__bytes.sum", (char *)"lts__t_sectors.sum"}; /* no time, so no witness */
    kprof_strlist list = {names, 2, 2};
    kprof_host *host;
    kprof_config_image plain;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(host, &list, &plain), KPROF_OK);
    kprof_planned planned = plan_names(host, &list);
    assert_same_bytes(&planned.variants.items[0], &plain);
    kprof_config_image_free(&plain);
    kprof_planned_free(&planned);
    kprof_host_close(host);
}

/* A counter that is read in the SMs and in their TPCs at once takes room in both: GB20x chips count threads so. */
TEST(test_a_counter_of_sms_and_tpcs)
{
    char *names[] = {(char *)"sm__average_threads_launched_per_warp.ratio"};
    kprof_strlist list = {names, 1, 1};
    kprof_host *host;
    assert_int_equal(kprof_host_open("GB202", NULL, &host), KPROF_OK);
    kprof_planned planned = plan_names(host, &list);
    assert_int_equal(planned.schedule.pass_count, 1);
    assert_int_equal(planned.variants.items[0].pass_count, 1);
    assert_int_equal(planned.schedule.metrics[0].count, 1);
    kprof_planned_free(&planned);
    kprof_host_close(host);
}

/* Counters that NVPW does not know on this chip are an error that is told, not a plan. */
TEST(test_counters_of_another_chip)
{
    packed *p = pack_set("GH100", "default");
    kprof_host *other;
    kprof_packing packing;
    log_capture capture;
    assert_int_equal(kprof_host_open("TU102", NULL, &other), KPROF_OK);
    log_capture_start(&capture);
    assert_int_not_equal(kprof_packing_read(other, &p->plan.collect, &p->plain, &packing), KPROF_OK);
    kprof_log_set_sink(NULL, NULL);
    assert_int_equal(capture.count, 1);
    kprof_packing_free(&packing);
    kprof_host_close(other);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_catalog, tear_down)
