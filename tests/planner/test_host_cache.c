/* What is kept on disk of CUPTI's answers: found again for exactly the same question, and never able to give a wrong
 * one, whatever is in the folder. */
#include "planner/pack.h"
#include "planner_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PLAN_QUESTION "plan 0 0 0 0 0 0 0"

enum { MANY = 40, ENTRY_HEADER_BYTES = 24, CHECKSUM_BYTES = 8 };

static char folder[] = "/tmp/kprof-test-host-cache-XXXXXX";
static kprof_host *host;
static char *dram_items[] = {(char *)"dram__bytes.sum", (char *)"gpu__time_duration.sum"};
static char *swapped_items[] = {(char *)"gpu__time_duration.sum", (char *)"dram__bytes.sum"};
static char *sm_items[] = {(char *)"sm__inst_executed.sum"};
static const kprof_strlist dram = {dram_items, 2, 2}, swapped = {swapped_items, 2, 2}, sm = {sm_items, 1, 1};

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    unsetenv("KPROF_CACHE");
    return kprof_host_open("GH100", NULL, &host) == KPROF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    kprof_host_close(host);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int clear(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/kprof", folder);
    return system(command);
}

static bool is_about(const char *path, const char *what)
{
    char text[ENTRY_HEADER_BYTES + 16] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return strncmp(text + ENTRY_HEADER_BYTES, what, strlen(what)) == 0;
}

/* Number of entries whose question begins so; `path`, if asked for, is that of the last. */
static int count_kept(const char *what, char *path, size_t size)
{
    char inner[256], file[512];
    snprintf(inner, sizeof inner, "%s/kprof", folder);
    DIR *dir = opendir(inner);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(file, sizeof file, "%s/%s", inner, entry->d_name);
        if (entry->d_name[0] == '.' || !is_about(file, what))
            continue;
        count++;
        if (path)
            snprintf(path, size, "%s", file);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* Plans, and drafts of them. */
static int count_plans(char *path, size_t size)
{
    return count_kept("plan ", path, size);
}

/* This program, as another process. */
static pid_t start_as(const char *role)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_planner_host_cache", role, (char *)NULL);
        _exit(2);
    }
    return pid;
}

static int await(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

static void test_hit(void **state)
{
    (void)state;
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

/* What is on disk is what is given: another plan in its place is taken for it. */
static void test_hit_is_used(void **state)
{
    (void)state;
    kprof_planned other = fresh_plan(&sm);
    kprof_planned_keep(&(kprof_host_question){host, PLAN_QUESTION, &dram}, &other);
    assert_right(&dram, &other);
    kprof_planned_free(&other);
}

static kprof_strbuf read_availability(void)
{
    kprof_strbuf image = KPROF_STRBUF_INIT;
    FILE *file = fopen(AVAILABILITY, "rb");
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

static void test_each_part_of_the_key_counts(void **state)
{
    (void)state;
    static const kprof_strlist *const lists[] = {&dram, &swapped, &sm};
    for (int i = 0; i < 3; i++) {
        kprof_planned planned = plan_on(host, lists[i]);
        kprof_planned_free(&planned);
        assert_int_equal(count_plans(NULL, 0), i + 1);
    }
    ask_other_host("GA100", NULL);
    assert_int_equal(count_plans(NULL, 0), 4);
    kprof_strbuf bytes = read_availability();
    kprof_availability availability = {bytes.data, bytes.length};
    ask_other_host("GH100", &availability);
    assert_int_equal(count_plans(NULL, 0), 5);
    ask_other_host("GH100", &availability);
    ask_other_host("GH100", NULL);
    assert_int_equal(count_plans(NULL, 0), 5);
    kprof_strbuf_free(&bytes);
}

/* Each limit, and each part of the workload that a budget is for, is a question of its own. */
static void test_limits_are_part_of_the_key(void **state)
{
    (void)state;
    static const kprof_limits limits[] = {
        {.max_passes = 1},
        {.budget_s = 100},
        {.budget_s = 100.5},
        {.budget_s = 100, .workload = {.launches = 1}},
        {.budget_s = 100, .workload = {.batch = 1}},
        {.budget_s = 100, .workload = {.flush = true}},
        {.budget_s = 100, .workload = {.allocated_bytes = 1}},
        {.budget_s = 100, .workload = {.device_bytes = UINT64_C(1) << 40}},
    };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++) {
            kprof_planned planned;
            assert_int_equal(kprof_planner_make(host, &(kprof_planner_wish){&dram, &limits[i]}, &planned), KPROF_OK);
            assert_int_equal(count_plans(NULL, 0), round ? 8 : i + 1);
            kprof_planned_free(&planned);
        }
    }
}

/* Names that run together in one key would not do so in another. */
static void test_names_are_kept_apart(void **state)
{
    (void)state;
    char *pair[] = {(char *)"a", (char *)"b"}, *single[] = {(char *)"ab"}, *broken[] = {(char *)"a\nb"};
    kprof_strlist lists[] = {{pair, 2, 2}, {single, 1, 1}, {broken, 1, 1}};
    kprof_host_question question = {host, "test", &lists[0]};
    kprof_strbuf found = KPROF_STRBUF_INIT;
    kprof_host_keep(&question, "x", 1);
    assert_true(kprof_host_recall(&question, &found));
    for (size_t i = 1; i < sizeof lists / sizeof *lists; i++) {
        question.names = &lists[i];
        assert_false(kprof_host_recall(&question, &found));
    }
    question = (kprof_host_question){host, "test 2", &lists[0]};
    assert_false(kprof_host_recall(&question, &found));
    kprof_strbuf_free(&found);
}

static void test_library_is_identified(void **state)
{
    (void)state;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    assert_true(kprof_cupti_identify(&text));
    assert_non_null(strstr(text.data, "CUPTI 1"));
    assert_non_null(strstr(text.data, "/libcupti.so"));
    assert_non_null(strstr(text.data, "/libnvperf_host.so"));
    kprof_strbuf_free(&text);
}

/* One byte of each part of the file, and cuts within each. */
static void test_damaged_file_is_made_again(void **state)
{
    (void)state;
    kprof_planned right = plan_on(host, &dram);
    char path[512];
    struct stat info;
    assert_int_equal(count_plans(path, sizeof path), 1);
    assert_int_equal(stat(path, &info), 0);
    const off_t middle = info.st_size / 2;
    const off_t places[] = {0,
                            8,
                            15,
                            16,
                            23,
                            ENTRY_HEADER_BYTES,
                            middle,
                            middle + 17,
                            info.st_size - CHECKSUM_BYTES - 1,
                            info.st_size - CHECKSUM_BYTES,
                            info.st_size - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int fd = open(path, O_RDWR);
        char byte;
        assert_int_equal(pread(fd, &byte, 1, places[i]), 1);
        byte = (char)(byte ^ 0x40);
        assert_int_equal(pwrite(fd, &byte, 1, places[i]), 1);
        close(fd);
        assert_right(&dram, &right);
        assert_int_equal(truncate(path, places[i]), 0);
        assert_right(&dram, &right);
        assert_int_equal(truncate(path, info.st_size + places[i] + 1), 0);
        assert_right(&dram, &right);
    }
    kprof_planned_free(&right);
}

static void test_symlink_is_not_followed(void **state)
{
    (void)state;
    kprof_planned right = plan_on(host, &dram), other = fresh_plan(&sm);
    char path[512], moved[520];
    kprof_planned_keep(&(kprof_host_question){host, PLAN_QUESTION, &dram}, &other);
    assert_int_equal(count_plans(path, sizeof path), 1);
    snprintf(moved, sizeof moved, "%s/elsewhere", folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_right(&dram, &right);
    kprof_planned_free(&right);
    kprof_planned_free(&other);
}

/* Enough names to be worth keeping, the last of them of a counter that CUPTI does not collect beside others. */
static kprof_strlist many_names(void)
{
    kprof_strlist suffixes = KPROF_STRLIST_INIT, names = KPROF_STRLIST_INIT;
    assert_int_equal(kprof_host_submetrics(host, "dram__bytes", &suffixes), KPROF_OK);
    assert_true(suffixes.count >= MANY - 1);
    for (size_t i = 0; i < MANY - 1; i++) {
        char name[256];
        snprintf(name, sizeof name, "dram__bytes.%s", suffixes.items[i]);
        assert_true(kprof_strlist_add(&names, name));
    }
    assert_true(kprof_strlist_add(&names, "pcie__read_bytes.sum"));
    kprof_strlist_free(&suffixes);
    return names;
}

static void assert_answers(const kprof_strlist *names, bool of_dram)
{
    kprof_host *asked;
    assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
    assert_int_equal(kprof_host_check(asked, names), KPROF_OK);
    for (size_t i = 0; i < names->count; i++)
        assert_int_equal(kprof_host_can_collect(asked, names->items[i]), i < names->count - 1 && of_dram);
    kprof_host_close(asked);
}

static const kprof_strlist no_names = KPROF_STRLIST_INIT;

/* Keep in place of all answers that none of the names can be collected, or as many bytes of that. */
static void plant_answers(const kprof_strlist *names, size_t most)
{
    kprof_answers *planted = kprof_answers_new();
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < names->count; i++)
        kprof_answers_put(planted, 'c', names->items[i], &no_names);
    assert_true(kprof_answers_write(planted, &bytes));
    kprof_host_keep(&(kprof_host_question){host, "answers", &no_names}, bytes.data,
                    most < bytes.length ? most : bytes.length);
    kprof_answers_free(planted);
    kprof_strbuf_free(&bytes);
}

static void test_answers(void **state)
{
    (void)state;
    kprof_strlist names = many_names();
    char path[512];
    struct stat before, after;
    assert_answers(&names, true);
    assert_int_equal(count_kept("answers", path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    assert_answers(&names, true);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* there was nothing new to keep */
    plant_answers(&names, SIZE_MAX);               /* a hit is used */
    assert_answers(&names, false);
    static const size_t cuts[] = {0, 1, 7, 30, 100};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        plant_answers(&names, cuts[i]);
        assert_answers(&names, true);
        assert_answers(&names, true); /* which is kept in its place */
    }
    kprof_strlist_free(&names);
}

/* Inside an application nothing is read and nothing written. */
static void test_host_apart(void **state)
{
    (void)state;
    kprof_host *apart;
    plant_answers(&dram, SIZE_MAX);
    assert_int_equal(kprof_host_open_apart("GH100", &apart), KPROF_OK);
    assert_true(kprof_host_can_collect(apart, "dram__bytes.sum"));
    kprof_host_close(apart);
    assert_int_equal(kprof_host_open_apart("GH101", &apart), KPROF_UNKNOWN_NAME);
    assert_int_equal(count_kept("", NULL, 0), 1);
    assert_answers(&(kprof_strlist){dram_items, 1, 1}, false); /* what was planted is still there */
}

/* What is kept of a metric is asked anew where it is not what a metric has. */
static void test_info_that_is_not_whole(void **state)
{
    (void)state;
    static char *texts[] = {"0", "planted", "", "planted", ""}, *kinds[] = {"3", "planted", "", "planted"};
    const kprof_strlist lists[] = {{texts, 4, 4}, {texts, 3, 3}, {texts, 5, 5}, {kinds, 4, 4}, {texts, 0, 0}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        kprof_answers *planted = kprof_answers_new();
        kprof_strbuf bytes = KPROF_STRBUF_INIT;
        kprof_metric_info info;
        kprof_host *asked;
        kprof_answers_put(planted, 'i', "dram__bytes.sum", &lists[i]);
        assert_true(kprof_answers_write(planted, &bytes));
        kprof_host_keep(&(kprof_host_question){host, "answers", &no_names}, bytes.data, bytes.length);
        assert_int_equal(kprof_host_open("GH100", NULL, &asked), KPROF_OK);
        assert_int_equal(kprof_host_metric_info(asked, "dram__bytes.sum", &info), KPROF_OK);
        assert_string_equal(info.unit, i == 0 ? "planted" : "byte");
        assert_string_equal(info.name, "dram__bytes");
        kprof_metric_info_free(&info);
        kprof_host_close(asked);
        kprof_answers_free(planted);
        kprof_strbuf_free(&bytes);
    }
}

static bool is_mapped(const char *library)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps))
        found = found || strstr(line, library);
    if (maps)
        fclose(maps);
    return found;
}

/* Ask all kinds of questions and plan; false when something is wrong. */
static bool ask_all(void)
{
    kprof_strlist chips = KPROF_STRLIST_INIT, list = KPROF_STRLIST_INIT;
    kprof_metric_info info;
    kprof_host *asked;
    bool good =
        kprof_host_chips(&chips) == KPROF_OK && chips.count > 10 && kprof_host_open("GH100", NULL, &asked) == KPROF_OK;
    if (!good)
        return false;
    kprof_planned planned = plan_on(asked, &dram);
    good = kprof_host_base_metrics(asked, KPROF_METRIC_RATIO, &list) == KPROF_OK && list.count > 10 &&
           kprof_host_submetrics(asked, "dram__bytes", &list) == KPROF_OK &&
           kprof_host_breakdown(asked, "sm__throughput.avg.pct_of_peak_sustained_elapsed", &list) == KPROF_OK &&
           kprof_host_has_metric(asked, "dram__bytes") && !kprof_host_has_metric(asked, "dram__bites") &&
           kprof_host_can_collect(asked, "dram__bytes.sum") && !kprof_host_can_collect(asked, "pcie__read_bytes.sum") &&
           kprof_host_metric_info(asked, "dram__bytes.sum.per_second", &info) == KPROF_OK &&
           strcmp(info.unit, "byte/second") == 0;
    kprof_metric_info_free(&info);
    kprof_planned_free(&planned);
    kprof_host_close(asked);
    kprof_strlist_free(&chips);
    kprof_strlist_free(&list);
    return good;
}

/* A process that finds everything kept: no library is opened until something else is asked, and the library that was
 * foreseen is the one that is opened. */
static int act_warm(void)
{
    kprof_strbuf foreseen = KPROF_STRBUF_INIT, opened = KPROF_STRBUF_INIT;
    kprof_host *asked;
    bool good = kprof_cupti_identify(&foreseen);
    if (is_mapped("libcupti")) /* only the loader can tell where it is on this machine */
        return SKIPPED;
    good = good && ask_all() && !is_mapped("libcupti") && !is_mapped("libnvperf") &&
           kprof_host_open("GH100", NULL, &asked) == KPROF_OK && !is_mapped("libcupti");
    if (!good)
        return 1;
    good = kprof_host_has_metric(asked, "gpu__time_duration") && is_mapped("libcupti") &&
           kprof_cupti_identify(&opened) && strcmp(foreseen.data, opened.data) == 0;
    kprof_host_close(asked);
    kprof_strbuf_free(&foreseen);
    kprof_strbuf_free(&opened);
    return good ? 0 : 1;
}

static void test_libraries_wait_for_a_new_question(void **state)
{
    (void)state;
    assert_true(ask_all());
    int status = await(start_as("warm"));
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* Two passes at least, so that there is something to compare. */
static char *two_passes_items[] = {(char *)"sm__throughput.avg.pct_of_peak_sustained_elapsed"};
static const kprof_strlist two_passes = {two_passes_items, 1, 1};

/* Keep a plan that is changed in one thing, which is refused. */
static void plant(kprof_planned *wrong, const kprof_planned *right)
{
    kprof_planned_keep(&(kprof_host_question){host, PLAN_QUESTION, &two_passes}, wrong);
    assert_right(&two_passes, right);
}

static void test_plans_that_are_not_whole(void **state)
{
    (void)state;
    static char *names[] = {"a", "b", "c", "d", "e", "f"};
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
    for (size_t i = 0; i < 8; i++)
        plant(&wrong[i], &right);
    kprof_planned_free(&right);
}

/* Plans that are cut off or have something behind them. */
static void test_plans_of_another_size(void **state)
{
    (void)state;
    kprof_host_question question = {host, PLAN_QUESTION, &two_passes};
    kprof_planned right = plan_on(host, &two_passes);
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    assert_true(kprof_host_recall(&question, &bytes));
    const size_t cuts[] = {0, 1, bytes.length / 2, bytes.length - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        kprof_host_keep(&question, bytes.data, cuts[i]);
        assert_right(&two_passes, &right);
    }
    kprof_strbuf_append(&bytes, "", 1);
    kprof_host_keep(&question, bytes.data, bytes.length);
    assert_right(&two_passes, &right);
    kprof_strbuf_free(&bytes);
    kprof_planned_free(&right);
}

/* What each of several processes does that start with an empty folder. */
static int act_as_process(void)
{
    kprof_host_question question = {NULL, PLAN_QUESTION, &dram};
    bool good = kprof_host_open("GH100", NULL, &host) == KPROF_OK;
    question.host = host;
    for (int i = 0; i < 20 && good; i++) {
        kprof_planned planned = fresh_plan(&dram), again = plan_on(host, &dram);
        good = same(&planned, &again);
        kprof_planned_keep(&question, &planned);
        kprof_planned_free(&planned);
        kprof_planned_free(&again);
    }
    kprof_host_close(host);
    return good ? 0 : 1;
}

static void test_processes_at_the_same_time(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start_as("process");
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(await(pids[i]), 0);
    assert_int_equal(count_plans(NULL, 0), 1); /* and no draft */
}

static void test_off(void **state)
{
    (void)state;
    kprof_planned planned = fresh_plan(&dram);
    assert_int_equal(count_plans(NULL, 0), 0);
    kprof_planned_free(&planned);
}

/* Root may write anywhere but where there can be no folder. */
static void test_unwritable_folder(void **state)
{
    (void)state;
    kprof_planned right = fresh_plan(&dram);
    static const char *const places[] = {"/dev/null", "/proc/self", "/nowhere/at/all", "relative", ""};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        setenv("XDG_CACHE_HOME", places[i], 1);
        setenv("HOME", "/dev/null", 1);
        assert_right(&dram, &right);
    }
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(count_plans(NULL, 0), 0);
    kprof_planned_free(&right);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "process") == 0)
        return act_as_process();
    if (argc > 1 && strcmp(argv[1], "warm") == 0)
        return act_warm();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_hit, clear),
        cmocka_unit_test_teardown(test_hit_is_used, clear),
        cmocka_unit_test_teardown(test_each_part_of_the_key_counts, clear),
        cmocka_unit_test_teardown(test_limits_are_part_of_the_key, clear),
        cmocka_unit_test_teardown(test_names_are_kept_apart, clear),
        cmocka_unit_test_teardown(test_library_is_identified, clear),
        cmocka_unit_test_teardown(test_damaged_file_is_made_again, clear),
        cmocka_unit_test_teardown(test_symlink_is_not_followed, clear),
        cmocka_unit_test_teardown(test_answers, clear),
        cmocka_unit_test_teardown(test_host_apart, clear),
        cmocka_unit_test_teardown(test_info_that_is_not_whole, clear),
        cmocka_unit_test_teardown(test_libraries_wait_for_a_new_question, clear),
        cmocka_unit_test_teardown(test_plans_that_are_not_whole, clear),
        cmocka_unit_test_teardown(test_plans_of_another_size, clear),
        cmocka_unit_test_teardown(test_processes_at_the_same_time, clear),
        cmocka_unit_test_teardown(test_off, clear),
        cmocka_unit_test_teardown(test_unwritable_folder, clear),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, set_up, tear_down) : SKIPPED;
}
