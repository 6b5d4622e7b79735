/* Plans on disk: found again for exactly the same question, and never able to give a wrong one, whatever is in the
 * folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_folder.h"
#include "planner/pack.h"
#include "planner_test.h"
#include "test.h"

#include <sys/stat.h>

enum { CHECKSUM_BYTES = 8 };

static char plan_question[KPROF_PLANNED_QUESTION_SIZE]; /* without limits */
static kprof_host *host;
static char *dram_items[] = {(char *)"dram__bytes.sum", (char *)"gpu__time_duration.sum"};
static char *swapped_items[] = {(char *)"gpu__time_duration.sum", (char *)"dram__bytes.sum"};
static char *sm_items[] = {(char *)"sm__inst_executed.sum"};
static const kprof_strlist dram = {dram_items, 2, 2}, swapped = {swapped_items, 2, 2}, sm = {sm_items, 1, 1};

static int set_up(void **state)
{
    use_cache_folder();
    kprof_planned_question(&(kprof_limits){0}, plan_question, sizeof plan_question);
    return kprof_host_open("GH100", NULL, &host) == KPROF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    kprof_host_close(host);
    return remove_cache_folder("");
}

/* Plans, and drafts of them. */
static int count_plans(char *path, size_t size)
{
    return count_kept("plan ", path, size);
}

static kprof_planned plan_on(kprof_host *on, const kprof_strlist *names)
{
    const kprof_limits none = {0};
    kprof_planned planned;
    assert_int_equal(kprof_planner_make(on, &(kprof_planner_wish){names, &none}, &planned), KPROF_OK);
    assert_true(planned.variants.items[0].size > 0 && planned.schedule.pass_count > 0);
    return planned;
}

static bool same_lists(const kprof_strlist *a, const kprof_strlist *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

static bool same_schedules(const kprof_schedule *a, const kprof_schedule *b)
{
    bool same = a->pass_count == b->pass_count && a->metric_count == b->metric_count;
    for (size_t i = 0; i < a->pass_count && same; i++)
        same = a->passes[i].counters == b->passes[i].counters && a->passes[i].sm_side == b->passes[i].sm_side &&
               a->passes[i].is_slow == b->passes[i].is_slow && a->passes[i].patches_code == b->passes[i].patches_code;
    for (size_t i = 0; i < a->metric_count && same; i++) {
        const kprof_pass_list *x = &a->metrics[i], *y = &b->metrics[i];
        same = a->last_passes[i] == b->last_passes[i] && a->patched[i] == b->patched[i] && x->count == y->count &&
               memcmp(x->items, y->items, x->count * sizeof *x->items) == 0;
    }
    return same;
}

/* Also where one of them came from the disk. */
static bool same(const kprof_planned *a, const kprof_planned *b)
{
    bool same = same_lists(&a->collect, &b->collect) && same_lists(&a->left_out, &b->left_out) &&
                same_lists(&a->variants.witnesses, &b->variants.witnesses) &&
                same_lists(&a->variants.proof, &b->variants.proof) && same_schedules(&a->schedule, &b->schedule) &&
                a->cost.total_s == b->cost.total_s;
    for (size_t i = 0; i < KPROF_IMAGES && same; i++) {
        const kprof_config_image *x = &a->variants.items[i], *y = &b->variants.items[i];
        same = x->size == y->size && x->pass_count == y->pass_count &&
               (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
    return same;
}

/* As CUPTI and packing make it, without looking at the disk. */
static kprof_planned fresh_plan(const kprof_strlist *names)
{
    setenv("KPROF_CACHE", "off", 1);
    kprof_planned planned = plan_on(host, names);
    unsetenv("KPROF_CACHE");
    return planned;
}

static void assert_right(const kprof_strlist *names, const kprof_planned *right)
{
    kprof_planned planned = plan_on(host, names);
    assert_true(same(&planned, right));
    kprof_planned_free(&planned);
}

TEST(test_hit)
{
    char path[512];
    struct stat before, after;
    kprof_planned right = fresh_plan(&dram);
    assert_int_equal(count_plans(NULL, 0), 0);
    assert_right(&dram, &right);
    assert_int_equal(count_plans(path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    assert_right(&dram, &right);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not written again */
    kprof_planned_free(&right);
}

/* The planner gives the plan that is on disk: the test puts another one there, and gets it. */
TEST(test_hit_is_used)
{
    kprof_planned other = fresh_plan(&sm);
    kprof_planned_keep(&(kprof_host_question){host, plan_question, &dram}, &other);
    assert_right(&dram, &other);
    kprof_planned_free(&other);
}

static kprof_strbuf read_file(const char *path)
{
    kprof_strbuf image = KPROF_STRBUF_INIT;
    FILE *file = fopen(path, "rb");
    char chunk[4096];
    assert_non_null(file);
    for (size_t size; (size = fread(chunk, 1, sizeof chunk, file)) > 0;)
        kprof_strbuf_append(&image, chunk, size);
    fclose(file);
    assert_false(image.failed);
    return image;
}

static void ask_other_host(const char *chip, const kprof_availability *availability)
{
    kprof_host *other;
    assert_int_equal(kprof_host_open(chip, availability, &other), KPROF_OK);
    kprof_planned planned = plan_on(other, &dram);
    kprof_planned_free(&planned);
    kprof_host_close(other);
}

TEST(test_each_part_of_the_key_counts)
{
    static const kprof_strlist *const lists[] = {&dram, &swapped, &sm};
    for (int i = 0; i < 3; i++) {
        kprof_planned planned = plan_on(host, lists[i]);
        kprof_planned_free(&planned);
        assert_int_equal(count_plans(NULL, 0), i + 1);
    }
    ask_other_host("GA100", NULL);
    assert_int_equal(count_plans(NULL, 0), 4);
    kprof_strbuf bytes = read_file(AVAILABILITY);
    kprof_availability availability = {bytes.data, bytes.length};
    ask_other_host("GH100", &availability);
    assert_int_equal(count_plans(NULL, 0), 5);
    ask_other_host("GH100", &availability);
    ask_other_host("GH100", NULL);
    assert_int_equal(count_plans(NULL, 0), 5);
    kprof_strbuf_free(&bytes);
}

/* Each limit, and each part of the workload that a budget is for, is a question of its own. */
TEST(test_limits_are_part_of_the_key)
{
    static const kprof_limits limits[] = {
        {.max_passes = 1},
        {.budget_s = 100},
        {.budget_s = 100.5},
        {.budget_s = 100, .workload = {.launches = 1}},
        {.budget_s = 100, .workload = {.batch = 1}},
        {.budget_s = 100, .workload = {.cache_control = KPROF_CACHE_FLUSH_NONE}},
        {.budget_s = 100, .workload = {.cache_control = KPROF_CACHE_FLUSH_L2}},
        {.budget_s = 100, .workload = {.allocated_bytes = 1}},
        {.budget_s = 100, .workload = {.device_bytes = UINT64_C(1) << 40}},
    };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 9; i++) {
            kprof_planned planned;
            assert_int_equal(kprof_planner_make(host, &(kprof_planner_wish){&dram, &limits[i]}, &planned), KPROF_OK);
            assert_int_equal(count_plans(NULL, 0), round ? 9 : i + 1);
            kprof_planned_free(&planned);
        }
    }
}

/* Where no budget limits the plan, all workloads have the same one, with costs of their own. */
TEST(test_the_workload_is_none_without_a_budget)
{
    static const kprof_limits limits[] = {{.max_passes = 0},
                                          {.workload = {.launches = 1000, .batch = 1}},
                                          {.workload = {.launches = 1, .allocated_bytes = UINT64_C(1) << 36}},
                                          {.workload = {.launches = 1, .counts_instructions = true, .timelines = 4}}};
    double total_s[4];
    for (int i = 0; i < 4; i++) {
        kprof_planned planned;
        assert_int_equal(kprof_planner_make(host, &(kprof_planner_wish){&dram, &limits[i]}, &planned), KPROF_OK);
        assert_int_equal(count_plans(NULL, 0), 1);
        total_s[i] = planned.cost.total_s;
        kprof_planned_free(&planned);
    }
    assert_true(total_s[1] > total_s[2] && total_s[3] > total_s[2] && total_s[2] > 0);
}

static void assert_refused(const kprof_strlist *names)
{
    kprof_planned planned = {0};
    assert_false(kprof_planned_recall(&(kprof_host_question){host, plan_question, names}, &planned));
    kprof_planned_free(&planned);
}

static void write_all(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void assert_damaged(const char *path, const void *data, size_t size)
{
    write_all(path, data, size);
    assert_refused(&dram);
}

/* One byte of each part of the file, and cuts within each. */
TEST(test_damaged_file_is_made_again)
{
    kprof_planned right = plan_on(host, &dram);
    char path[512];
    assert_int_equal(count_plans(path, sizeof path), 1);
    kprof_strbuf file = read_file(path);
    const size_t size = file.length, middle = size / 2;
    const size_t places[] = {0,
                             8,
                             15,
                             16,
                             23,
                             ENTRY_HEADER_BYTES,
                             middle,
                             middle + 17,
                             size - CHECKSUM_BYTES - 1,
                             size - CHECKSUM_BYTES,
                             size - 1};
    kprof_strbuf zeros = KPROF_STRBUF_INIT; /* behind the file */
    kprof_strbuf_append(&zeros, file.data, size);
    for (size_t i = 0; i < size; i++)
        kprof_strbuf_append(&zeros, "", 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        file.data[places[i]] ^= 0x40;
        assert_damaged(path, file.data, size);
        file.data[places[i]] ^= 0x40;
        assert_damaged(path, file.data, places[i]);
        assert_damaged(path, zeros.data, size + places[i] + 1);
    }
    assert_right(&dram, &right); /* made again */
    write_all(path, file.data, size);
    kprof_planned intact;
    assert_true(kprof_planned_recall(&(kprof_host_question){host, plan_question, &dram}, &intact));
    kprof_planned_free(&intact);
    kprof_strbuf_free(&file);
    kprof_strbuf_free(&zeros);
    kprof_planned_free(&right);
}

TEST(test_symlink_is_not_followed)
{
    kprof_planned right = plan_on(host, &dram), other = fresh_plan(&sm);
    char path[512], moved[520];
    kprof_planned_keep(&(kprof_host_question){host, plan_question, &dram}, &other);
    assert_int_equal(count_plans(path, sizeof path), 1);
    snprintf(moved, sizeof moved, "%s/elsewhere", cache_folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_right(&dram, &right);
    kprof_planned_free(&right);
    kprof_planned_free(&other);
}

/* Two passes at least, so that there is something to compare. */
static char *two_passes_items[] = {(char *)"l1tex__throughput.avg.pct_of_peak_sustained_elapsed"};
static const kprof_strlist two_passes = {two_passes_items, 1, 1};

TEST(test_plans_that_are_not_whole)
{
    static char *names[KPROF_MAX_WITNESSES + 1] = {"a", "b", "c", "d", "e", "f", "g"};
    kprof_planned right = plan_on(host, &two_passes), wrong[8];
    assert_true(right.variants.witnesses.count > 0 && right.variants.proof.count > 0);
    assert_int_equal(count_plans(NULL, 0), 1);
    for (size_t i = 0; i < 8; i++)
        wrong[i] = right;
    uint32_t beyond = (uint32_t)right.schedule.pass_count;
    kprof_pass_list lists[8] = {{&beyond, 1}};
    wrong[0].variants.witnesses = (kprof_strlist){names, KPROF_MAX_WITNESSES + 1, KPROF_MAX_WITNESSES + 1};
    wrong[1].variants.witnesses = (kprof_strlist)KPROF_STRLIST_INIT;
    wrong[2].variants.proof = (kprof_strlist)KPROF_STRLIST_INIT;
    wrong[3].variants.items[KPROF_IMAGE_PROVED].size = 0;
    wrong[4].variants.items[KPROF_IMAGE_WITNESSED].size = 0;
    wrong[5].variants.items[0].size = 0;
    wrong[6].collect = (kprof_strlist){names, 2, 2};
    assert_true(right.schedule.metric_count <= 8);
    wrong[7].schedule.metrics = lists;
    for (size_t i = 0; i < 8; i++) {
        kprof_planned_keep(&(kprof_host_question){host, plan_question, &two_passes}, &wrong[i]);
        assert_refused(&two_passes);
    }
    assert_right(&two_passes, &right); /* made again */
    kprof_planned_free(&right);
}

/* Plans that are cut off or have something behind them. */
TEST(test_plans_of_another_size)
{
    kprof_host_question question = {host, plan_question, &two_passes};
    kprof_planned right = plan_on(host, &two_passes);
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_host_recall(&question, &bytes));
    const size_t cuts[] = {0, 1, bytes.length / 2, bytes.length - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        kprof_host_keep(&question, bytes.data, cuts[i]);
        assert_refused(&two_passes);
    }
    kprof_strbuf_append(&bytes, "", 1);
    kprof_host_keep(&question, bytes.data, bytes.length);
    assert_refused(&two_passes);
    assert_right(&two_passes, &right); /* made again */
    kprof_planned_free(&right);
}

/* Run by each of several processes that start with an empty folder. */
static int act_as_process(void)
{
    kprof_host_question question = {NULL, plan_question, &dram};
    bool good = kprof_host_open("GH100", NULL, &host) == KPROF_OK;
    question.host = host;
    kprof_planned planned = fresh_plan(&dram);
    for (int i = 0; i < 20 && good; i++) {
        kprof_planned again = plan_on(host, &dram);
        good = same(&planned, &again);
        kprof_planned_keep(&question, &planned);
        kprof_planned_free(&again);
    }
    kprof_planned_free(&planned);
    kprof_host_close(host);
    return good ? 0 : 1;
}

TEST(test_processes_at_the_same_time)
{
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start_as("process");
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(await(pids[i]), 0);
    assert_int_equal(count_plans(NULL, 0), 1); /* and no draft */
}

/* A process that finds the plan needs no library for it. */
static int act_warm(void)
{
    kprof_host *asked;
    KPROF_AUTO(kprof_strbuf) unused = KPROF_STRBUF_INIT;
    bool is_foreseen = kprof_cupti_identify(&unused) && !is_loaded("libcupti");
    if (!is_foreseen) /* only the loader can tell where the library is on this machine */
        return SKIPPED;
    if (kprof_host_open("GH100", NULL, &asked) != KPROF_OK)
        return 1;
    kprof_planned planned = plan_on(asked, &dram);
    bool good = !is_loaded("libcupti") && !is_loaded("libnvperf");
    kprof_planned_free(&planned);
    planned = plan_on(asked, &sm);
    good = good && is_loaded("libcupti") && is_loaded("libnvperf");
    kprof_planned_free(&planned);
    kprof_host_close(asked);
    return good ? 0 : 1;
}

TEST(test_plan_without_libraries)
{
    kprof_host *asked;
    assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
    kprof_planned planned = plan_on(asked, &dram);
    assert_true(kprof_host_has_metric(asked, "dram__bytes"));
    kprof_planned_free(&planned);
    kprof_host_close(asked);
    int status = await(start_as("warm"));
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

TEST(test_off)
{
    kprof_planned planned = fresh_plan(&dram);
    assert_int_equal(count_plans(NULL, 0), 0);
    kprof_planned_free(&planned);
}

/* Root may write anywhere but where there can be no folder. */
TEST(test_unwritable_folder)
{
    kprof_planned right = fresh_plan(&dram);
    static const char *const places[] = {"/dev/null", "/proc/self", "/nowhere/at/all", "relative", ""};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        setenv("XDG_CACHE_HOME", places[i], 1);
        setenv("HOME", "/dev/null", 1);
        assert_right(&dram, &right);
    }
    setenv("XDG_CACHE_HOME", cache_folder, 1);
    assert_int_equal(count_plans(NULL, 0), 0);
    kprof_planned_free(&right);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "process") == 0)
        return act_as_process();
    if (argc > 1 && strcmp(argv[1], "warm") == 0)
        return act_warm();
    around_each(NULL, clear_cache);
    only_where(cupti_is_here);
    around_all(set_up, tear_down);
    return run_all_tests();
}
