/* The table of launch metrics: complete rows, each name once, in alphabetical order, found by name. */
#include "metricset/metricset.h"
#include "test.h"

#include <string.h>

TEST(test_rows)
{
    for (const kprof_launch_metric *row = kprof_launch_metrics; row->name; row++) {
        assert_non_null(row->unit);
        assert_true(strlen(row->description) > 0);
        assert_true(!row[1].name || strcmp(row[0].name, row[1].name) < 0);
        assert_ptr_equal(kprof_launch_metric_find(row->name), row);
    }
}

TEST(test_names_that_people_know)
{
    static const char *const names[] = {"launch__grid_size", "launch__registers_per_thread",
                                        "launch__occupancy_limit_shared_mem", "launch__waves_per_multiprocessor",
                                        "sm__maximum_warps_per_active_cycle_pct"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(kprof_launch_metric_find(names[i]));
    assert_false(kprof_launch_metric_find("launch__grid_size")->on_request);
    assert_true(kprof_launch_metric_find("launch__uses_cdp")->on_request);
    assert_true(kprof_launch_metric_find("device__attribute_max_pitch")->on_request);
    assert_null(kprof_launch_metric_find("launch__grid"));
    assert_null(kprof_launch_metric_find(""));
}
