/* The passes of each metric: every metric of the shipped sets has some, and CUPTI can be seen to put it into these. */
#include "image_view.h"
#include "log_capture.h"
#include "planner/pack.h"
#include "planner_test.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

typedef struct scheduled {
    kprof_host *host;
    kprof_plan plan; /* of a set */
    kprof_planned planned;
    kprof_schedule schedule; /* borrowed */
} scheduled;

static scheduled schedule_set(const char *chip, const char *set)
{
    scheduled s = {0};
    char *sets[] = {(char *)set};
    kprof_selection selection = {.sets = {sets, 1, 1}};
    assert_int_equal(kprof_host_open(chip, NULL, &s.host), KPROF_OK);
    assert_int_equal(kprof_plan_make(shipped_catalog, &selection, s.host, &s.plan), KPROF_OK);
    s.schedule = s.plan.schedule;
    return s;
}

static void release(scheduled *s)
{
    kprof_planned_free(&s->planned);
    kprof_plan_free(&s->plan);
    kprof_host_close(s->host);
}

/* Every pass is somebody's, every metric has passes, and lists rise within bounds. */
static void assert_whole(const scheduled *s)
{
    const kprof_schedule *schedule = &s->schedule;
    KPROF_AUTO_FREE bool *used = calloc(schedule->pass_count, sizeof *used);
    assert_non_null(used);
    assert_int_equal(schedule->pass_count, s->plan.pass_count);
    assert_int_equal(schedule->metric_count, s->plan.collect.count + s->plan.variants.witnesses.count);
    image_view view = view_image(&s->plan.variants.items[KPROF_IMAGE_WITNESSED]);
    for (size_t i = 0; i < schedule->metric_count; i++) {
        const kprof_pass_list *list = &schedule->metrics[i];
        const char *name = i < s->plan.collect.count ? s->plan.collect.items[i]
                                                     : s->plan.variants.witnesses.items[i - s->plan.collect.count];
        if (list->count == 0 || bits_of_passes(list) != view_metric(&view, s->host, name))
            fail_msg("%s on %s is in other passes", name, s->plan.chip);
        for (size_t k = 0; k < list->count; k++) {
            assert_true(list->items[k] < schedule->pass_count && (k == 0 || list->items[k] > list->items[k - 1]));
            used[list->items[k]] = true;
        }
        assert_true(schedule->last_passes[i] >= list->items[list->count - 1]);
        assert_true(schedule->last_passes[i] < schedule->pass_count);
    }
    for (size_t i = 0; i < schedule->pass_count; i++)
        assert_true(used[i] && schedule->passes[i].counters == view.passes[i].count + (i == 0));
    view_free(&view);
}

TEST(test_shipped_sets)
{
    static const char *const sets[] = {"default", "detailed", "full", "roofline"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        scheduled s = schedule_set("GH100", sets[i]);
        assert_whole(&s);
        release(&s);
    }
}

static const kprof_pass_list *passes_of(const scheduled *s, const char *name)
{
    for (size_t i = 0; i < s->plan.collect.count; i++) {
        if (strcmp(s->plan.collect.items[i], name) == 0)
            return &s->schedule.metrics[i];
    }
    fail_msg("%s is not in the set", name);
    return NULL;
}

static size_t sm_passes(const kprof_schedule *schedule)
{
    size_t count = 0;
    for (size_t i = 0; i < schedule->pass_count; i++)
        count += schedule->passes[i].sm_side;
    return count;
}

TEST(test_known_metrics)
{
    scheduled s = schedule_set("GH100", "detailed");
    assert_int_equal(passes_of(&s, "gpu__time_duration.sum")->count, 1);
    assert_int_equal(passes_of(&s, "dram__bytes_read.sum")->count, 1);
    assert_true(passes_of(&s, "sm__throughput.avg.pct_of_peak_sustained_elapsed")->count >= 7);
    /* FLOP counts come from patched code, in a pass that holds nothing else. */
    const kprof_pass_list *sass = passes_of(&s, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
    assert_int_equal(sass->count, 1);
    assert_false(s.schedule.passes[sass->items[0]].sm_side);
    for (uint32_t i = 0; i < s.schedule.pass_count; i++)
        assert_int_equal(s.schedule.passes[i].patches_code, i == sass->items[0]);
    assert_int_equal(sm_passes(&s.schedule), s.schedule.pass_count - 1);
    release(&s);
}

static scheduled schedule_names(char **names, size_t count)
{
    scheduled s = {0};
    kprof_strlist list = {names, count, count};
    assert_int_equal(kprof_host_open("GH100", NULL, &s.host), KPROF_OK);
    s.planned = plan_names(s.host, &list);
    s.schedule = s.planned.schedule;
    return s;
}

TEST(test_kinds_of_passes)
{
    char *memory[] = {(char *)"gpu__time_duration.sum", (char *)"dram__bytes.sum.per_second",
                      (char *)"lts__t_sectors.sum", (char *)"TPC.TriageCompute.sm__cycles_active.avg"};
    char *sm[] = {(char *)"l1tex__t_requests.sum"};
    char *throughput[] = {(char *)"sm__throughput.avg.pct_of_peak_sustained_elapsed"};
    scheduled s = schedule_names(memory, 4);
    assert_int_equal(s.schedule.pass_count, 1);
    assert_false(s.schedule.passes[0].sm_side);
    assert_int_equal(s.schedule.metrics[1].count, 1);
    release(&s);
    s = schedule_names(sm, 1);
    assert_true(s.schedule.passes[0].sm_side);
    release(&s);
    s = schedule_names(throughput, 1);
    assert_true(s.schedule.pass_count > 1);
    assert_int_equal(s.schedule.metrics[0].count, s.schedule.pass_count);
    release(&s);
}

TEST(test_no_names)
{
    scheduled s = schedule_names(NULL, 0);
    assert_int_equal(s.schedule.pass_count, 0);
    assert_int_equal(s.schedule.metric_count, 0);
    release(&s);
}

/* A name of another image: not a schedule with a hole in it. */
TEST(test_name_that_the_image_lacks)
{
    char *one[] = {(char *)"dram__bytes.sum"}, *other[] = {(char *)"sm__inst_executed.sum"};
    scheduled s = schedule_names(one, 1);
    kprof_strlist list = {other, 1, 1};
    kprof_packing packing;
    log_capture capture;
    log_capture_start(&capture);
    assert_int_equal(kprof_packing_read(s.host, &list, &s.planned.variants.items[0], &packing), KPROF_INTERNAL);
    kprof_log_set_sink(NULL, NULL);
    kprof_packing_free(&packing);
    release(&s);
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_catalog, tear_down_catalog)
