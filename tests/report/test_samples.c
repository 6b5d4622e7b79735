/* Medians over samples: what they are of, which launches are joined, and what is left out. */

#include "fixture.h"
#include "report/model/model.h"
#include "report/model/robust.h"
#include "test.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#define DURATION    "gpu__time_duration.sum"
#define DURATION_NS 62464.0
#define WALK_MAX    16

/* The launches that a walk saw. */
typedef struct seen_launch {
    int64_t id, measured;
    kprof_model_samples samples; /* none: 0 launches */
    kprof_model_spread spread;   /* of the duration */
    double duration_ns, stream;
    char reason[128];
    uint32_t pass_count;
    bool is_missing;
} seen_launch;

typedef struct walk_result {
    const kprof_model *model;
    seen_launch launches[WALK_MAX]; /* the first ones */
    size_t count;
} walk_result;

static char path[512];

static int set_up(void **state)
{
    snprintf(path, sizeof path, "%s", fixture_path("samples.kprof"));
    fixture_write_multiplexed(path);
    return 0;
}

static int tear_down(void **state)
{
    return unlink(path);
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static kprof_status note_launch(void *user, const kprof_model_launch *launch)
{
    walk_result *result = user;
    if (result->count++ >= WALK_MAX)
        return KPROF_OK;
    seen_launch *seen = &result->launches[result->count - 1];
    size_t duration = kprof_names_find(&result->model->metric_names, DURATION);
    size_t stream = kprof_names_find(&result->model->metric_names, "launch__stream_id");
    *seen = (seen_launch){.id = launch->id, .measured = launch->measured};
    seen->duration_ns = launch->values[duration];
    seen->stream = launch->values[stream];
    seen->pass_count = launch->record.pass_count;
    seen->is_missing = kprof_model_is_missing(launch);
    snprintf(seen->reason, sizeof seen->reason, "%s", launch->reason);
    if (launch->samples) {
        seen->samples = *launch->samples;
        seen->spread = launch->samples->spreads[duration];
    }
    return KPROF_OK;
}

static void walk(const kprof_filter_spec *filter, walk_result *result)
{
    kprof_report *report = NULL;
    kprof_model model;
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    assert_int_equal(kprof_model_load(report, &model), KPROF_OK);
    *result = (walk_result){.model = &model};
    kprof_model_walk how = {report, &model, filter, true};
    assert_int_equal(kprof_model_joined_launches(&how, (kprof_model_parts){0}, note_launch, result), KPROF_OK);
    kprof_model_free(&model);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
}

static void assert_center(const double *values, size_t count, kprof_center expected)
{
    double copy[8];
    memcpy(copy, values, count * sizeof *copy);
    kprof_center center = kprof_center_of(copy, count);
    assert_int_equal(center.count, expected.count);
    assert_true(center.median == expected.median || (isnan(center.median) && isnan(expected.median)));
    assert_true(center.mad == expected.mad || (isnan(center.mad) && isnan(expected.mad)));
}

TEST(test_center)
{
    assert_center((double[]){5, 1, 3}, 3, (kprof_center){3, 3, 2});
    assert_center((double[]){4, 1, 100, 2}, 4, (kprof_center){4, 3, 1.5});
    assert_center((double[]){7}, 1, (kprof_center){1, 7, 0});
    assert_center((double[]){-2, -4, -3}, 3, (kprof_center){3, -3, 1});
    assert_center((double[]){0, 0, 0, 9}, 4, (kprof_center){4, 0, 0});
    assert_center((double[]){1e308, 1.5e308}, 2, (kprof_center){2, 1.25e308, 0.25e308});
}

TEST(test_center_of_missing_values)
{
    assert_center((double[]){NAN, 5, NAN, 1, 3}, 5, (kprof_center){3, 3, 2});
    assert_center((double[]){NAN, NAN}, 2, (kprof_center){0, NAN, NAN});
    assert_center((double[]){0}, 0, (kprof_center){0, NAN, NAN});
    assert_center((double[]){1, INFINITY, INFINITY}, 3, (kprof_center){3, INFINITY, NAN});
    assert_center((double[]){1, 2, INFINITY}, 3, (kprof_center){3, 2, 1});
}

/* Medians of samples with the factors 1, 1.25 and 0.875; the one with 4 is set apart. */
TEST_WITH(test_joined, set_up, tear_down)
{
    walk_result result;
    walk(NULL, &result);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.launches[0].samples.launches, 0); /* replayed */
    const seen_launch *joined = &result.launches[1];
    assert_int_equal(joined->id, 1);
    assert_int_equal(joined->samples.last_launch, 8);
    assert_int_equal(joined->samples.launches, 8);
    assert_int_equal(joined->samples.count, 4);
    assert_int_equal(joined->samples.set_apart, 1);
    assert_int_equal(joined->samples.used, 3);
    assert_int_equal(joined->pass_count, 9);
    assert_true(joined->measured > 0);
    assert_true(joined->duration_ns == DURATION_NS);
    assert_int_equal(joined->spread.samples, 3);
    assert_true(joined->spread.mad == DURATION_NS / 8);
    assert_non_null(strstr(joined->reason, "vprintf"));
}

/* The last sample lacks passes. */
TEST_WITH(test_partial_sample, set_up, tear_down)
{
    walk_result result;
    KPROF_AUTO(kprof_strbuf) note = KPROF_STRBUF_INIT;
    execute("UPDATE launch SET passes=4 WHERE id=(SELECT max(id) FROM launch WHERE id<9 AND measured>0)");
    walk(NULL, &result);
    assert_int_equal(result.launches[1].samples.partial, 1);
    assert_int_equal(result.launches[1].pass_count, 9);
    assert_int_equal(result.launches[2].samples.partial, 0);
    kprof_samples_note(&(kprof_model){0}, &(kprof_model_samples){.count = 4, .partial = 1, .read = 4}, &note);
    assert_string_equal(note.data, "1 of 4 samples lacks passes, so some values are of fewer samples");
}

TEST_WITH(test_all_set_apart, set_up, tear_down)
{
    walk_result result;
    walk(NULL, &result);
    assert_int_equal(result.launches[2].id, 9);
    assert_int_equal(result.launches[2].samples.set_apart, 1);
    assert_int_equal(result.launches[2].samples.used, 1);
    assert_true(result.launches[2].duration_ns == DURATION_NS);
}

TEST_WITH(test_no_whole_sample, set_up, tear_down)
{
    walk_result result;
    walk(NULL, &result);
    assert_int_equal(result.launches[3].samples.launches, 1);
    assert_int_equal(result.launches[3].samples.used, 0);
    assert_true(isnan(result.launches[3].duration_ns));
    assert_true(result.launches[3].stream == 7); /* known without counters */
    assert_false(result.launches[3].is_missing);
}

/* The first launch that the filter takes gave counters to a sample that it does not take. */
TEST_WITH(test_filter, set_up, tear_down)
{
    walk_result result;
    char vector_add[] = "vectorAdd";
    kprof_filter_spec filter = {.kernel = vector_add, .launch_skip = 2, .launch_count = 4};
    walk(&filter, &result);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.launches[0].id, 2);
    assert_int_equal(result.launches[0].samples.last_launch, 5);
    assert_int_equal(result.launches[0].samples.launches, 4);
    assert_int_equal(result.launches[0].samples.used, 2);
    assert_true(result.launches[0].duration_ns == DURATION_NS * (1.25 + 0.875) / 2);
    assert_true(result.launches[0].stream == 8); /* the first launch's, not a median */
    assert_non_null(strstr(result.launches[0].reason, "vprintf"));
}

TEST_WITH(test_missing_values, set_up, tear_down)
{
    walk_result result;
    execute("UPDATE value SET value=NULL WHERE launch_id=1 AND metric_id="
            "(SELECT id FROM metric WHERE name='" DURATION "')");
    walk(NULL, &result);
    assert_int_equal(result.launches[1].samples.used, 3);
    assert_int_equal(result.launches[1].spread.samples, 2);
    assert_true(result.launches[1].duration_ns == DURATION_NS * (1.25 + 0.875) / 2);
}

TEST_WITH(test_shapes_and_processes, set_up, tear_down)
{
    static const char *const changes[] = {"grid_y=2",    "block_x=32",           "cluster_z=2",
                                          "kernel_id=2", "dynamic_smem_bytes=1", "replay_mode='batch'"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char sql[128];
        walk_result result;
        fixture_write_multiplexed(path);
        snprintf(sql, sizeof sql, "UPDATE launch SET %s WHERE id=3", changes[i]);
        execute(sql);
        walk(NULL, &result);
        assert_int_equal(result.launches[1].samples.launches, 7);
        assert_int_equal(result.launches[1].samples.last_launch, 8);
        assert_int_equal(result.launches[2].id, 3);
    }
}

/* Launch 5 once more, `count` times; `grid_x` tells its grid, by its id. */
static void add_launches(int count, const char *grid_x)
{
    char sql[1024];
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d) "
             "SELECT launch.* FROM n, launch WHERE id=5; UPDATE more SET id=11+rowid; UPDATE more SET grid_x=%s; "
             "INSERT INTO launch SELECT * FROM more",
             count, grid_x);
    execute(sql);
}

TEST_WITH(test_many_samples, set_up, tear_down)
{
    walk_result result;
    add_launches(3000, "grid_x");
    walk(NULL, &result);
    assert_int_equal(result.count, 4);
    assert_int_equal(result.launches[1].samples.launches, 3008);
    assert_int_equal(result.launches[1].samples.count, 3004);
    assert_int_equal(result.launches[1].samples.read, KPROF_SAMPLES_MAX);
    assert_int_equal(result.launches[1].samples.used, KPROF_SAMPLES_MAX - 1);
}

/* Three groups are the fixture's own; the first launch was replayed; launches of groups too many stand for themselves.
 */
TEST_WITH(test_many_groups, set_up, tear_down)
{
    walk_result result;
    add_launches(2 * KPROF_SAMPLE_GROUPS_MAX, "100000+id/2");
    walk(NULL, &result);
    const size_t groups_left = KPROF_SAMPLE_GROUPS_MAX - 3;
    const size_t launches_left = 2 * (KPROF_SAMPLE_GROUPS_MAX - groups_left);
    assert_int_equal(result.count, 1 + KPROF_SAMPLE_GROUPS_MAX + launches_left);
}
