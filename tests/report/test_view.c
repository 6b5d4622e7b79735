/* Tests which values of a launch join passes that disagree, and how its values came about. */

#include "fixture.h"
#include "report/model/view.h"
#include "report/model/witness.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static kprof_emit_metric *find(const kprof_view *view, const char *name)
{
    for (size_t i = 0; i < view->column_count; i++) {
        if (strcmp(view->columns[i].name, name) == 0)
            return &view->columns[i];
    }
    fail_msg("%s is not in the report", name);
    return NULL;
}

static void expect(const kprof_view *view, const kprof_model_launch *launch, const char *name, bool disagrees)
{
    kprof_emit_metric *metric = find(view, name);
    kprof_view_fill_metric(view->model, launch, metric);
    if (metric->disagrees != disagrees)
        fail_msg("launch %lld: %s %s", (long long)launch->id, name, disagrees ? "is not marked" : "is marked");
}

/* The fixture's launches: replayed; replayed without values of the L1, with passes that disagree; not measured;
 * measured in one pass. */
static kprof_status check_launch(void *user, const kprof_model_launch *launch)
{
    const kprof_view *view = user;
    const bool disagrees = launch->id == 1;
    expect(view, launch, "gpu__time_duration.sum", false);
    expect(view, launch, "launch__grid_size", false);
    expect(view, launch, "sm__throughput.avg.pct_of_peak_sustained_elapsed", disagrees);
    expect(view, launch, "derived__roofline_fp32_dram_intensity", disagrees);
    expect(view, launch, "derived__sectors_per_request_ld", false);
    const kprof_joining joining = kprof_joining_of(view->model, launch);
    assert_int_equal(joining.of_several > 0, launch->id < 2);
    assert_int_equal(joining.of_one_pass > 0, launch->id != 2);
    assert_int_equal(joining.is_witnessed, launch->id < 2);
    assert_int_equal(joining.disagrees, disagrees);
    return KPROF_OK;
}

static void check_values(const char *path)
{
    kprof_report *report = NULL;
    kprof_model model;
    kprof_view view;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    assert_int_equal(kprof_model_load(report, &model), KPROF_OK);
    kprof_view_all(&model, false, &view);
    kprof_model_walk walk = {report, &model, NULL, true};
    assert_int_equal(kprof_model_launches(&walk, check_launch, &view), KPROF_OK);
    kprof_model_free(&model);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

TEST(test_joined_values)
{
    const char *path = fixture_path("view.kprof");
    fixture_write(path);
    check_values(path);
    assert_int_equal(unlink(path), 0);
}
