/* What is kept on disk of CUPTI's answers: found again for exactly the same question, and never able to give a wrong
 * one, whatever is in the folder. */
#include "core/bytes.h"
#include "planner/nvpw.h"
#include "planner/planner.h"
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

#define IMAGE_QUESTION    "config image"
#define NAMES_QUESTION    "collectable"
#define VARIANTS_QUESTION "image variants"

enum { MANY = 40, ENTRY_HEADER_BYTES = 24, CHECKSUM_BYTES = 8, NO_PLACEMENT_BYTES = 5 };

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

/* Number of entries; `path`, if asked for, is that of the last. */
static int count_entries(char *path, size_t size)
{
    char inner[256];
    snprintf(inner, sizeof inner, "%s/kprof", folder);
    DIR *dir = opendir(inner);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (path)
            snprintf(path, size, "%s/%s", inner, entry->d_name);
    }
    if (dir)
        closedir(dir);
    return count;
}

static kprof_config_image image_on(kprof_host *on, const kprof_strlist *names)
{
    kprof_config_image image;
    assert_int_equal(kprof_host_config_image(on, names, false, &image), KPROF_OK);
    assert_true(image.size > 0 && image.pass_count > 0);
    return image;
}

static bool same(const kprof_config_image *a, const kprof_config_image *b)
{
    return a->size == b->size && a->pass_count == b->pass_count &&
           (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* As CUPTI makes it, without looking at the disk. */
static kprof_config_image fresh_image(const kprof_strlist *names)
{
    setenv("KPROF_CACHE", "off", 1);
    kprof_config_image image = image_on(host, names);
    unsetenv("KPROF_CACHE");
    return image;
}

/* As it is kept: the bytes, and the placement, which CUPTI's own images lack. */
static void put_image(kprof_strbuf *bytes, const kprof_config_image *image)
{
    kprof_put_u64(bytes, image->size);
    kprof_strbuf_append(bytes, image->data, image->size);
    kprof_put_string(bytes, image->placement);
}

/* The answer to a question for one image has no names. */
static void keep_image(const kprof_host_question *question, const kprof_config_image *image)
{
    kprof_strlist none = KPROF_STRLIST_INIT;
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_put_strings(&bytes, &none);
    kprof_put_strings(&bytes, &none);
    put_image(&bytes, image);
    kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

static void assert_right_image(const kprof_config_image *right)
{
    kprof_config_image image = image_on(host, &dram);
    assert_true(same(&image, right));
    kprof_config_image_free(&image);
}

static void test_hit(void **state)
{
    (void)state;
    char path[512];
    struct stat before, after;
    kprof_config_image right = fresh_image(&dram);
    assert_int_equal(count_entries(NULL, 0), 0);
    assert_right_image(&right);
    assert_int_equal(count_entries(path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    assert_right_image(&right);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* not written again */
    kprof_config_image_free(&right);
}

/* What is on disk is what is given: another image in its place is taken for it. */
static void test_hit_is_used(void **state)
{
    (void)state;
    kprof_config_image other = fresh_image(&sm), image;
    kprof_host_question question = {host, IMAGE_QUESTION, &dram};
    keep_image(&question, &other);
    image = image_on(host, &dram);
    assert_true(same(&image, &other));
    kprof_config_image_free(&other);
    kprof_config_image_free(&image);
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
    kprof_config_image image = image_on(other, &dram);
    kprof_config_image_free(&image);
    kprof_host_close(other);
}

static void test_each_part_of_the_key_counts(void **state)
{
    (void)state;
    kprof_config_image image = image_on(host, &dram);
    kprof_config_image_free(&image);
    assert_int_equal(count_entries(NULL, 0), 1);
    image = image_on(host, &swapped);
    kprof_config_image_free(&image);
    assert_int_equal(count_entries(NULL, 0), 2);
    image = image_on(host, &sm);
    kprof_config_image_free(&image);
    assert_int_equal(count_entries(NULL, 0), 3);
    ask_other_host("GA100", NULL);
    assert_int_equal(count_entries(NULL, 0), 4);
    kprof_strbuf bytes = read_availability();
    kprof_availability availability = {bytes.data, bytes.length};
    ask_other_host("GH100", &availability);
    assert_int_equal(count_entries(NULL, 0), 5);
    ask_other_host("GH100", &availability);
    ask_other_host("GH100", NULL);
    assert_int_equal(count_entries(NULL, 0), 5);
    kprof_strbuf_free(&bytes);
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
    kprof_config_image right = image_on(host, &dram);
    char path[512];
    struct stat info;
    assert_int_equal(count_entries(path, sizeof path), 1);
    assert_int_equal(stat(path, &info), 0);
    off_t image_at = info.st_size - CHECKSUM_BYTES - NO_PLACEMENT_BYTES - (off_t)right.size;
    const off_t places[] = {0,
                            8,
                            15,
                            16,
                            23,
                            ENTRY_HEADER_BYTES,
                            image_at - 1,
                            image_at,
                            image_at + 17,
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
        assert_right_image(&right);
        assert_int_equal(truncate(path, places[i]), 0);
        assert_right_image(&right);
        assert_int_equal(truncate(path, info.st_size + places[i] + 1), 0);
        assert_right_image(&right);
    }
    kprof_config_image_free(&right);
}

static void test_symlink_is_not_followed(void **state)
{
    (void)state;
    kprof_config_image right = image_on(host, &dram), other = fresh_image(&sm);
    kprof_host_question question = {host, IMAGE_QUESTION, &dram};
    char path[512], moved[520];
    keep_image(&question, &other);
    assert_int_equal(count_entries(path, sizeof path), 1);
    snprintf(moved, sizeof moved, "%s/elsewhere", folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_right_image(&right);
    kprof_config_image_free(&right);
    kprof_config_image_free(&other);
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

static void test_answers(void **state)
{
    (void)state;
    kprof_strlist names = many_names();
    kprof_host_question question = {host, NAMES_QUESTION, &names};
    char planted[MANY + 1] = {0};
    assert_answers(&names, true);
    assert_int_equal(count_entries(NULL, 0), 1);
    assert_answers(&names, true);
    kprof_host_keep(&question, planted, MANY); /* a hit is used */
    assert_answers(&names, false);
    kprof_host_keep(&question, planted, MANY + 1);
    assert_answers(&names, true);
    kprof_host_keep(&question, planted, MANY - 1);
    assert_answers(&names, true);
    planted[MANY - 1] = 2;
    kprof_host_keep(&question, planted, MANY);
    assert_answers(&names, true);
    kprof_strlist_free(&names);
}

/* Two passes at least, so that there is something to compare. */
static char *two_passes_items[] = {(char *)"sm__throughput.avg.pct_of_peak_sustained_elapsed"};
static const kprof_strlist two_passes = {two_passes_items, 1, 1};

static kprof_image_variants variants_of(const kprof_strlist *names)
{
    kprof_image_variants variants;
    kprof_config_image image = image_on(host, names);
    assert_int_equal(kprof_host_image_variants(host, names, &image, &variants), KPROF_OK);
    kprof_config_image_free(&image);
    return variants;
}

static void assert_right_variants(const kprof_image_variants *right)
{
    kprof_image_variants variants = variants_of(&two_passes);
    assert_int_equal(variants.witnesses.count, right->witnesses.count);
    assert_int_equal(variants.proof.count, right->proof.count);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        assert_true(same(&variants.items[i], &right->items[i]));
    kprof_image_variants_free(&variants);
}

/* An answer as it is kept on disk. */
static kprof_strbuf pack_variants(const kprof_image_variants *variants)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_put_strings(&bytes, &variants->witnesses);
    kprof_put_strings(&bytes, &variants->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        put_image(&bytes, &variants->items[i]);
    assert_false(bytes.failed);
    return bytes;
}

static void plant(const kprof_host_question *question, const kprof_image_variants *variants)
{
    kprof_strbuf bytes = pack_variants(variants);
    kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

/* Change one thing of the right answer at a time. */
static void plant_wrong_variants(const kprof_host_question *question, const kprof_image_variants *right)
{
    static char *names[] = {"a", "b", "c", "d", "e", "f"};
    kprof_image_variants wrong[6];
    for (size_t i = 0; i < 6; i++)
        wrong[i] = *right;
    wrong[0].witnesses = (kprof_strlist){names, KPROF_MAX_WITNESSES + 1, KPROF_MAX_WITNESSES + 1};
    wrong[1].witnesses = (kprof_strlist)KPROF_STRLIST_INIT;
    wrong[2].proof = (kprof_strlist)KPROF_STRLIST_INIT;
    wrong[3].items[KPROF_IMAGE_PROVED].size = 0;
    wrong[4].items[KPROF_IMAGE_PROVED] = right->items[0];
    wrong[5].items[0] = right->items[KPROF_IMAGE_PROVED];
    for (size_t i = 0; i < 6; i++) {
        plant(question, &wrong[i]);
        assert_right_variants(right);
    }
    kprof_strbuf bytes = pack_variants(right);
    const size_t cuts[] = {0, 1, bytes.length / 2, bytes.length - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        kprof_host_keep(question, bytes.data, cuts[i]);
        assert_right_variants(right);
    }
    kprof_strbuf_append(&bytes, "", 1);
    kprof_host_keep(question, bytes.data, bytes.length);
    assert_right_variants(right);
    kprof_strbuf_free(&bytes);
}

static void test_variants(void **state)
{
    (void)state;
    char text[64];
    kprof_host_question question = {host, text, &two_passes};
    kprof_config_image image = image_on(host, &two_passes);
    snprintf(text, sizeof text, VARIANTS_QUESTION " %08x", kprof_crc32c(0, image.data, image.size));
    kprof_image_variants right = variants_of(&two_passes);
    assert_true(right.witnesses.count > 0 && right.proof.count > 0);
    assert_int_equal(count_entries(NULL, 0), 2);
    assert_right_variants(&right);
    plant_wrong_variants(&question, &right);
    kprof_image_variants none = {.items = {image}}; /* no witnesses and no proof: an answer too */
    plant(&question, &none);
    assert_right_variants(&none);
    kprof_image_variants_free(&right);
    kprof_config_image_free(&image);
}

/* The same names in other passes, as another packing gives them. */
static void test_variants_of_another_schedule(void **state)
{
    (void)state;
    char *item = (char *)"sm__throughput.avg.pct_of_peak_sustained_elapsed";
    kprof_strlist names = {&item, 1, 1};
    kprof_config_image images[2];
    assert_int_equal(kprof_host_config_image(host, &names, true, &images[0]), KPROF_OK);
    assert_int_equal(kprof_host_draft_image(host, &names, &images[1]), KPROF_OK);
    size_t passes[] = {images[0].pass_count, images[1].pass_count};
    assert_true(passes[0] < passes[1]);
    for (size_t i = 0; i < 2; i++) {
        kprof_image_variants variants;
        assert_int_equal(kprof_host_image_variants(host, &names, &images[i], &variants), KPROF_OK);
        assert_int_equal(variants.items[KPROF_IMAGE_WITNESSED].pass_count, passes[i]);
        assert_int_equal(variants.items[0].pass_count, passes[i]);
        kprof_image_variants_free(&variants);
        kprof_config_image_free(&images[i]);
    }
}

/* What each of several processes does that start with an empty folder. */
static int act_as_process(void)
{
    kprof_config_image image, again;
    bool good = kprof_host_open("GH100", NULL, &host) == KPROF_OK;
    for (int i = 0; i < 20 && good; i++) {
        setenv("KPROF_CACHE", "off", 1);
        good = kprof_host_config_image(host, &dram, false, &image) == KPROF_OK;
        unsetenv("KPROF_CACHE");
        good = good && kprof_host_config_image(host, &dram, false, &again) == KPROF_OK && same(&image, &again);
        kprof_host_question question = {host, IMAGE_QUESTION, &dram};
        keep_image(&question, &image);
        kprof_config_image_free(&image);
        kprof_config_image_free(&again);
    }
    kprof_host_close(host);
    return good ? 0 : 1;
}

static void test_processes_at_the_same_time(void **state)
{
    (void)state;
    enum { PROCESSES = 4 };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            execl("/proc/self/exe", "test_planner_host_cache", "process", (char *)NULL);
            _exit(2);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_entries(NULL, 0), 1); /* and no draft */
}

static void test_off(void **state)
{
    (void)state;
    kprof_config_image image = fresh_image(&dram);
    assert_int_equal(count_entries(NULL, 0), 0);
    kprof_config_image_free(&image);
}

/* Root may write anywhere but where there can be no folder. */
static void test_unwritable_folder(void **state)
{
    (void)state;
    kprof_config_image right = fresh_image(&dram);
    static const char *const places[] = {"/dev/null", "/proc/self", "/nowhere/at/all", "relative", ""};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        setenv("XDG_CACHE_HOME", places[i], 1);
        setenv("HOME", "/dev/null", 1);
        assert_right_image(&right);
    }
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(count_entries(NULL, 0), 0);
    kprof_config_image_free(&right);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "process") == 0)
        return act_as_process();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_hit, clear),
        cmocka_unit_test_teardown(test_hit_is_used, clear),
        cmocka_unit_test_teardown(test_each_part_of_the_key_counts, clear),
        cmocka_unit_test_teardown(test_names_are_kept_apart, clear),
        cmocka_unit_test_teardown(test_library_is_identified, clear),
        cmocka_unit_test_teardown(test_damaged_file_is_made_again, clear),
        cmocka_unit_test_teardown(test_symlink_is_not_followed, clear),
        cmocka_unit_test_teardown(test_answers, clear),
        cmocka_unit_test_teardown(test_variants, clear),
        cmocka_unit_test_teardown(test_variants_of_another_schedule, clear),
        cmocka_unit_test_teardown(test_processes_at_the_same_time, clear),
        cmocka_unit_test_teardown(test_off, clear),
        cmocka_unit_test_teardown(test_unwritable_folder, clear),
    };
    return cupti_is_here() ? cmocka_run_group_tests(tests, set_up, tear_down) : SKIPPED;
}
