/* The placeholders of --export, and the program suggested for one that does not exist. */
#include "cmocka_all.h"

#include "cli/launch.h"
#include "cli/paths.h"
#include "log_capture.h"

#include <stdlib.h>
#include <unistd.h>

static log_capture captured;

static void assert_path(const char *pattern, const char *expected)
{
    char *path = NULL;
    bool claimed;
    assert_int_equal(kprof_export_path_expand(pattern, &path, &claimed), KPROF_OK);
    assert_int_equal(claimed, access(path, F_OK) == 0);
    assert_string_equal(path, expected);
    free(path);
}

static void placeholders(void **state)
{
    (void)state;
    char host[256] = "", expected[512];
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(expected, sizeof expected, "%s-%ld.kprof", host, (long)getpid());
    setenv("KPROF_TEST_RANK", "7", 1);
    assert_path("run", "run.kprof");
    assert_path("run.kprof", "run.kprof");
    assert_path("%h-%p", expected);
    assert_path("r%q{KPROF_TEST_RANK}-100%%", "r7-100%.kprof");
}

static void wrong_placeholders(void **state)
{
    (void)state;
    static const char *const patterns[] = {"%", "%x", "%q", "%q{", "%q{KPROF_TEST_NO_SUCH_VARIABLE}"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char *path = NULL;
        log_capture_start(&captured);
        assert_int_equal(kprof_export_path_expand(patterns[i], &path, &(bool){false}), KPROF_USAGE);
        assert_null(path);
        assert_int_equal(captured.count, 1);
    }
}

static void numbers_are_the_lowest_free(void **state)
{
    (void)state;
    char dir[] = "/tmp/kprof-test-XXXXXX", pattern[64], expected[64];
    assert_non_null(mkdtemp(dir));
    snprintf(pattern, sizeof pattern, "%s/r%%i", dir);
    snprintf(expected, sizeof expected, "%s/r1.kprof", dir);
    assert_path(pattern, expected); /* and it is taken by that */
    char second[64];
    snprintf(second, sizeof second, "%s/r2.kprof", dir);
    assert_path(pattern, second);
    unlink(expected);
    unlink(second);
    assert_int_equal(rmdir(dir), 0);
}

static void a_program_of_nearly_that_name(void **state)
{
    (void)state;
    char *found = kprof_program_nearest("/bin/sg");
    assert_non_null(found);
    assert_memory_equal(found, "/bin/", 5);
    free(found);
    assert_null(kprof_program_nearest("/nonexistent/app"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders),
        cmocka_unit_test(wrong_placeholders),
        cmocka_unit_test(numbers_are_the_lowest_free),
        cmocka_unit_test(a_program_of_nearly_that_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
