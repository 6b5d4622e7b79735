/* Packing: never more passes than CUPTI's own schedule and often fewer or cheaper ones, with every counter in exactly
 * one of them, in a domain that has it; and what comes from one execution in CUPTI's schedule still does. */
#include "log_capture.h"
#include "planner/nvpw.h"
#include "planner/pack.h"
#include "planner/planner.h"
#include "planner_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIMESTAMPS "0x0000000000000000"

typedef struct packed {
    kprof_host *host;
    kprof_plan plan; /* its image is the packed one */
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

/* What several tests look at is packed once, since that takes long. */
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

static void add_all_counters(const kprof_config_image *image, kprof_strlist *out)
{
    for (size_t i = 0; i < image->pass_count; i++) {
        kprof_strlist counters = KPROF_STRLIST_INIT;
        assert_int_equal(kprof_image_counters(image, i, &counters), KPROF_OK);
        for (size_t k = 0; k < counters.count; k++)
            assert_true(kprof_strlist_add(out, counters.items[k]));
        kprof_strlist_free(&counters);
    }
}

/* Both images hold the same counters, each once. */
static void assert_same_counters(const kprof_config_image *a, const kprof_config_image *b)
{
    kprof_strlist of_a = KPROF_STRLIST_INIT, of_b = KPROF_STRLIST_INIT, unique = KPROF_STRLIST_INIT;
    add_all_counters(a, &of_a);
    add_all_counters(b, &of_b);
    assert_int_equal(of_a.count, of_b.count);
    for (size_t i = 0; i < of_a.count; i++) {
        assert_true(kprof_strlist_contains(&of_b, of_a.items[i]));
        assert_true(kprof_strlist_add_unique(&unique, of_b.items[i]));
    }
    assert_int_equal(unique.count, of_b.count);
    kprof_strlist_free(&of_a);
    kprof_strlist_free(&of_b);
    kprof_strlist_free(&unique);
}

static void assert_is_a_place(const kprof_raw_config *config, const kprof_placed_counter *counter)
{
    kprof_counter_places places;
    if (counter->domain == 0)
        return; /* NVPW chooses */
    assert_int_equal(kprof_raw_config_places(config, counter->name, &places), KPROF_OK);
    for (size_t i = 0; i < places.count; i++) {
        if (places.items[i] == counter->domain)
            return;
    }
    fail_msg("%s cannot be read in domain %u", counter->name, counter->domain);
}

/* Time needs no counter: whatever pass it is put into, the image tells it for the first. */
static size_t count_real(const kprof_strlist *counters)
{
    return counters->count - kprof_strlist_contains(counters, TIMESTAMPS);
}

/* The placement tells each pass as the image has it. */
static void assert_placement(const packed *p)
{
    const kprof_config_image *image = &p->plan.image;
    kprof_raw_config *config;
    assert_int_equal(kprof_raw_config_open(p->host, false, &config), KPROF_OK);
    assert_int_equal(kprof_raw_config_begin(config, NULL, 0), KPROF_OK);
    for (size_t i = 0; i < image->pass_count; i++) {
        kprof_placed_counters placed;
        kprof_strlist counters = KPROF_STRLIST_INIT;
        assert_int_equal(kprof_placed_counters_read(image, i, &placed), KPROF_OK);
        assert_int_equal(kprof_image_counters(image, i, &counters), KPROF_OK);
        assert_int_equal(count_real(&placed.names), count_real(&counters));
        for (size_t k = 0; k < placed.names.count; k++) {
            const char *name = placed.names.items[k];
            assert_true(kprof_strlist_contains(&counters, name) || strcmp(name, TIMESTAMPS) == 0);
            assert_is_a_place(config, &placed.items[k]);
        }
        kprof_strlist_free(&counters);
        kprof_placed_counters_free(&placed);
    }
    kprof_raw_config_close(config);
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
static void assert_still_together(const packed *p)
{
    kprof_schedule before, after;
    size_t parts = 0, of_plain = 0, of_packed = 0;
    assert_int_equal(kprof_schedule_read(p->host, &p->plan.collect, &p->plain, &before), KPROF_OK);
    assert_int_equal(kprof_schedule_read(p->host, &p->plan.collect, &p->plan.image, &after), KPROF_OK);
    for (size_t i = 0; i < before.metric_count; i++) {
        const kprof_pass_list *passes = &before.metrics[i], *packed_passes = &after.metrics[i];
        assert_true(packed_passes->count > 0);
        if (passes->count != 1)
            continue;
        assert_int_equal(packed_passes->count, 1);
        if (!is_rate_part(p->plan.collect.items[i]) || strstr(p->plan.collect.items[i], "peak_sustained"))
            continue;
        if (parts++ == 0) {
            of_plain = passes->items[0];
            of_packed = packed_passes->items[0];
        }
        if (passes->items[0] == of_plain)
            assert_int_equal(packed_passes->items[0], of_packed);
    }
    assert_true(parts > 3);
    kprof_schedule_free(&before);
    kprof_schedule_free(&after);
}

static void test_sets(void **state)
{
    (void)state;
    static const char *const chips[] = {"GH100", "TU102", "GA100", "GB202"};
    static const char *const sets[] = {"default", "detailed", "full"};
    for (size_t i = 0; i < 12; i++) {
        if (!tries_chip(chips[i / 3]))
            continue;
        packed *p = pack_set(chips[i / 3], sets[i % 3]);
        assert_true(p->plan.pass_count <= p->plain.pass_count);
        if (p->plan.pass_count < p->plain.pass_count)
            assert_non_null(p->plan.image.placement);
        assert_same_counters(&p->plan.image, &p->plain);
        assert_still_together(p);
        if (p->plan.image.placement)
            assert_placement(p);
        else
            assert_same_bytes(&p->plan.image, &p->plain);
    }
}

static void test_fewer_passes_on_gh100(void **state)
{
    (void)state;
    static const char *const sets[] = {"default", "detailed", "full", "roofline"};
    static const size_t passes[] = {8, 9, 19, 6};
    for (size_t i = 0; i < 4; i++) {
        packed *p = pack_limited("GH100", sets[i], passes[i]);
        assert_int_equal(p->plan.left_out.count, 0);
        assert_true(p->plan.pass_count <= passes[i]);
        assert_true(p->plan.pass_count < p->plain.pass_count);
    }
}

typedef struct counts {
    size_t passes, sm_side, slow;
} counts;

static counts count_passes(const packed *p, const kprof_config_image *image)
{
    kprof_schedule schedule;
    assert_int_equal(kprof_schedule_read(p->host, &p->plan.collect, image, &schedule), KPROF_OK);
    counts count = {.passes = schedule.pass_count};
    for (size_t i = 0; i < schedule.pass_count; i++) {
        count.sm_side += schedule.passes[i].sm_side;
        count.slow += schedule.passes[i].is_slow;
    }
    kprof_schedule_free(&schedule);
    return count;
}

/* One more pass, where fewer make launches slow by it. */
static void test_fewer_slow_passes_on_gh100(void **state)
{
    (void)state;
    packed *p = pack_set("GH100", "default"), *few = pack_limited("GH100", "default", 8);
    assert_true(p->plan.pass_count <= 9);
    assert_int_equal(count_passes(p, &p->plan.image).slow, 7);
    assert_int_equal(count_passes(few, &few->plan.image).slow, 8);
    assert_int_equal(count_passes(p, &p->plain).slow, 9);
}

static void test_a_limit_that_does_not_bind_changes_nothing(void **state)
{
    (void)state;
    packed *p = pack_set("GH100", "default"), *loose = pack_limited("GH100", "default", 9);
    assert_same_bytes(&loose->plan.image, &p->plan.image);
}

static bool raises_no_price(counts ours, counts plain)
{
    return ours.passes <= plain.passes && ours.sm_side <= plain.sm_side && ours.slow <= plain.slow;
}

/* Of the images that a plan tries, one raises no price of CUPTI's schedule, so that what fits into a budget with that
 * still does. */
static void test_few_passes(void **state)
{
    (void)state;
    static const char *const chips[] = {"GH100", "TU102", "GA100"};
    static const char *const sets[] = {"default", "detailed", "full"};
    for (size_t i = 0; i < 9; i++) {
        if (!tries_chip(chips[i / 3]))
            continue;
        packed *p = pack_set(chips[i / 3], sets[i % 3]);
        kprof_config_image image;
        assert_int_equal(kprof_host_config_image(p->host, &p->plan.collect, true, &image), KPROF_OK);
        counts few = count_passes(p, &image), plain = count_passes(p, &p->plain);
        assert_true(few.passes <= plain.passes && few.passes <= p->plan.pass_count);
        assert_true(raises_no_price(few, plain) || raises_no_price(count_passes(p, &p->plan.image), plain));
        kprof_config_image_free(&image);
    }
}

/* Each bundle has a pass, and the counters of each pass go together where they are: those of the SMs, and the others.
 */
static void assert_schedulable(const kprof_packing *packing)
{
    kprof_placed_counter *list = calloc(packing->names.count, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < 2 * packing->pass_count; i++) {
        bool in_sm = i % 2, is_fixed = false, fits = false;
        size_t count = 0;
        for (size_t k = 0; k < packing->names.count; k++) {
            const kprof_pack_counter *counter = &packing->counters[k];
            const kprof_pack_bundle *bundle = &packing->bundles[counter->bundle];
            assert_true(bundle->pass < packing->pass_count);
            if (bundle->pass != i / 2 || counter->in_sm != in_sm)
                continue;
            is_fixed = is_fixed || bundle->is_fixed;
            list[count++] = (kprof_placed_counter){counter->name, counter->domain};
        }
        if (count > 0)
            assert_int_equal(kprof_raw_config_takes(packing->config, list, count, &fits), KPROF_OK);
        assert_true(fits || is_fixed || count == 0);
    }
    free(list);
}

static void assert_no_empty_pass(const kprof_packing *packing)
{
    for (size_t pass = 0; pass < packing->pass_count; pass++) {
        size_t i = 0;
        while (i < packing->bundle_count && packing->bundles[i].pass != pass)
            i++;
        assert_true(i < packing->bundle_count);
    }
}

/* What the passes take by the price list, after gathering. */
static double gather(const char *chip, const char *set, double *before_ms)
{
    packed *p = pack_set(chip, set);
    kprof_packing packing;
    assert_int_equal(kprof_packing_read(p->host, &p->plan.collect, &p->plain, &packing), KPROF_OK);
    assert_int_equal(kprof_packing_save_passes(&packing), KPROF_OK);
    *before_ms = kprof_packing_cost_ms(&packing);
    assert_int_equal(kprof_packing_save_time(&packing), KPROF_OK);
    assert_true(packing.pass_count <= p->plain.pass_count);
    assert_no_empty_pass(&packing);
    assert_schedulable(&packing);
    double after_ms = kprof_packing_cost_ms(&packing);
    kprof_packing_free(&packing);
    return after_ms;
}

/* Passes that lose all their counters go. */
static void test_a_pass_is_emptied(void **state)
{
    (void)state;
    char names[8192];
    if (!tries_chip("GA100"))
        return;
    FILE *file = fopen(KPROF_TESTS_DIR "/fixtures/cupti/ga100-names.txt", "r");
    assert_non_null(file);
    assert_non_null(fgets(names, sizeof names, file));
    fclose(file);
    kprof_strlist list = KPROF_STRLIST_INIT;
    for (char *rest, *name = strtok_r(names, ",\n", &rest); name; name = strtok_r(NULL, ",\n", &rest))
        assert_true(kprof_strlist_add(&list, name));
    kprof_host *host;
    kprof_config_image image;
    assert_int_equal(kprof_host_open("GA100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(host, &list, &image), KPROF_OK);
    assert_true(image.pass_count > 22);
    kprof_pack(host, &list, true, &image);
    assert_true(image.pass_count <= 23);
    kprof_config_image_free(&image);
    kprof_host_close(host);
    kprof_strlist_free(&list);
}

/* Passes cost less where anything can be gathered. */
static void test_gathering(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *set;
        double most_ms;
    } rows[] = {{"GH100", "default", 2617},  {"GH100", "detailed", 2605}, {"GH100", "full", 3183},
                {"GH100", "roofline", 1882}, {"GA102", "default", 2601},  {"GB202", "default", 2446},
                {"TU102", "full", 2497},     {"TU102", "default", 2155}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tries_chip(rows[i].chip))
            continue;
        double before_ms, after_ms = gather(rows[i].chip, rows[i].set, &before_ms);
        assert_true(after_ms <= before_ms);
        assert_true(after_ms <= rows[i].most_ms);
    }
}

/* CUPTI's schedule is replaced where its passes are as few, but cost more. */
static void test_as_many_but_cheaper(void **state)
{
    (void)state;
    if (!tries_chip("GA100"))
        return;
    packed *p = pack_set("GA100", "default");
    assert_int_equal(p->plan.pass_count, p->plain.pass_count);
    assert_non_null(p->plan.image.placement);
}

static void test_the_same_twice(void **state)
{
    (void)state;
    const packed *a = pack_set("GH100", "default");
    packed b = pack_now("GH100", "default", 0);
    assert_same_bytes(&a->plan.image, &b.plan.image);
    assert_string_equal(a->plan.image.placement, b.plan.image.placement);
    release(&b);
}

static void test_one_pass_stays_as_it_is(void **state)
{
    (void)state;
    char *names[] = {(char *)"dram__bytes.sum", (char *)"gpu__time_duration.sum"};
    kprof_strlist list = {names, 2, 2};
    kprof_host *host;
    kprof_config_image plain, image;
    assert_int_equal(kprof_host_open("GH100", NULL, &host), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(host, &list, &plain), KPROF_OK);
    assert_int_equal(kprof_host_config_image(host, &list, false, &image), KPROF_OK);
    assert_null(image.placement);
    assert_same_bytes(&image, &plain);
    kprof_config_image_free(&plain);
    kprof_config_image_free(&image);
    kprof_host_close(host);
}

/* Counters that NVPW does not know on this chip: nobody but who asks for debugging hears of it. */
static void test_failure_keeps_the_image(void **state)
{
    (void)state;
    packed *p = pack_set("GH100", "default");
    kprof_host *other;
    kprof_config_image image = p->plain;
    log_capture capture;
    assert_int_equal(kprof_host_open("TU102", NULL, &other), KPROF_OK);
    image.data = malloc(image.size);
    assert_non_null(image.data);
    memcpy(image.data, p->plain.data, image.size);
    log_capture_start(&capture);
    kprof_pack(other, &p->plan.collect, false, &image);
    kprof_log_set_sink(NULL, NULL);
    assert_int_equal(capture.count, 0);
    assert_null(image.placement);
    assert_same_bytes(&image, &p->plain);
    kprof_config_image_free(&image);
    kprof_host_close(other);
}

static void test_broken_placements(void **state)
{
    (void)state;
    static const char *const texts[] = {"0x1 \n", "0x1@3 0x2\n", "", "0x1@3 \n"};
    log_capture capture;
    log_capture_start(&capture);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kprof_config_image image = {.pass_count = 2, .placement = (char *)texts[i]};
        kprof_placed_counters placed;
        bool is_good = i >= 2;
        assert_int_equal(kprof_placed_counters_read(&image, 0, &placed), is_good ? KPROF_OK : KPROF_INTERNAL);
        kprof_placed_counters_free(&placed);
        assert_int_equal(kprof_placed_counters_read(&image, 2, &placed), KPROF_INTERNAL);
        kprof_placed_counters_free(&placed);
    }
    kprof_log_set_sink(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_fewer_passes_on_gh100),
        cmocka_unit_test(test_fewer_slow_passes_on_gh100),
        cmocka_unit_test(test_a_limit_that_does_not_bind_changes_nothing),
        cmocka_unit_test(test_few_passes),
        cmocka_unit_test(test_gathering),
        cmocka_unit_test(test_a_pass_is_emptied),
        cmocka_unit_test(test_as_many_but_cheaper),
        cmocka_unit_test(test_the_same_twice),
        cmocka_unit_test(test_one_pass_stays_as_it_is),
        cmocka_unit_test(test_failure_keeps_the_image),
        cmocka_unit_test(test_broken_placements),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, set_up_catalog, tear_down) : SKIPPED;
}
