/* A plan asks NVPW's scheduler a bounded number of questions: the answers are most of the time that a plan takes. The
 * linker puts the function here in front of the planner's (--wrap). */
#include "host/nvpw.h"
#include "planner_test.h"
#include "test.h"

static size_t questions;

kprof_status __real_kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters,
                                           size_t count, bool *out);
kprof_status __wrap_kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters,
                                           size_t count, bool *out);

kprof_status __wrap_kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters,
                                           size_t count, bool *out)
{
    questions++;
    return __real_kprof_raw_config_takes(config, counters, count, out);
}

/* An answer takes some 50 us, and for counters of L1 up to 400 us. Most rows ask for far more than the limits let in.
 * `least`: metrics that are kept all the same. */
TEST(test_questions_are_bounded)
{
    static const struct {
        const char *chip, *set, *metric;
        kprof_limits limits;
        size_t least, most_questions;
    } rows[] = {
        {"GH100", "full", NULL, {.max_passes = 8}, 200, 50000},
        {"GH100", "full", NULL, {.budget_s = 8, .workload = {.launches = 1000}}, 180, 70000},
        {"GB202", NULL, "regex:^l1tex__", {.max_passes = 16}, 780, 32000},
        {"GH100", NULL, "regex:^(smsp|sm__|l1tex__[a-m]).*[.]sum$", {.max_passes = 10}, 190, 20000},
        {"GH100",
         NULL,
         "regex:^(smsp|sm__|l1tex__[a-m]).*[.]sum$",
         {.budget_s = 10, .workload = {.launches = 1000}},
         190,
         20000},
        {"TU102", "full", NULL, {.max_passes = 4}, 120, 45000},
        {"GB202", NULL, "regex:^l1tex__", {0}, 1800, 18000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tries_chip(rows[i].chip))
            continue;
        kprof_host *host;
        kprof_plan plan;
        kprof_selection selection = {.limits = rows[i].limits};
        assert_true(!rows[i].set || kprof_strlist_add(&selection.sets, rows[i].set));
        assert_true(!rows[i].metric || kprof_strlist_add(&selection.metrics, rows[i].metric));
        questions = 0;
        assert_int_equal(kprof_host_open(rows[i].chip, NULL, &host), KPROF_OK);
        assert_int_equal(kprof_plan_make(shipped_catalog, &selection, host, &plan), KPROF_OK);
        if (questions == 0 || questions > rows[i].most_questions || plan.collect.count < rows[i].least)
            fail_msg("row %zu: %zu questions, %zu metrics", i, questions, plan.collect.count);
        kprof_plan_free(&plan);
        kprof_host_close(host);
        kprof_strlist_free(&selection.sets);
        kprof_strlist_free(&selection.metrics);
    }
}

ONLY_WHERE(cupti_is_here)
AROUND_ALL(set_up_catalog, tear_down_catalog)
