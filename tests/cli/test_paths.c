/* The placeholders of --export, and how programs are found. */
#include "cli/paths.h"
#include "cli/program.h"
#include "log_capture.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static log_capture captured;

static void assert_path(const char *pattern, const char *expected)
{
    const kprof_options options = {.export_path = (char *)pattern};
    char *path = NULL;
    kprof_create_mode mode;
    assert_int_equal(kprof_export_path_claim(&options, &path, &mode), KPROF_OK);
    assert_int_equal(mode, access(path, F_OK) == 0 ? KPROF_CREATE_CLAIMED : KPROF_CREATE_NEW);
    assert_string_equal(path, expected);
    free(path);
}

TEST(placeholders)
{
    char host[256] = "", expected[512];
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(expected, sizeof expected, "%s-%ld.kprof", host, (long)getpid());
    setenv("KPROF_TEST_RANK", "7", 1);
    assert_path("run", "run.kprof");
    assert_path("run.kprof", "run.kprof");
    assert_path("%h-%p", expected);
    assert_path("r%q{KPROF_TEST_RANK}-100%%", "r7-100%.kprof");
    assert_path("100%%n", "100%n.kprof");
}

TEST(wrong_placeholders)
{
    static const char *const patterns[] = {".",  "..", "/tmp/", "./..", "%",
                                           "%x", "%q", "%q{",   "%q{}", "%q{KPROF_TEST_NO_SUCH_VARIABLE}"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char *path = NULL;
        log_capture_start(&captured);
        assert_int_equal(kprof_export_path_expand(patterns[i], &path), KPROF_USAGE);
        assert_null(path);
        assert_int_equal(captured.count, 1);
    }
}

TEST(numbers_are_the_lowest_free)
{
    char dir[] = "/tmp/kprof-test-XXXXXX", pattern[64], expected[64];
    assert_non_null(mkdtemp(dir));
    snprintf(pattern, sizeof pattern, "%s/r%%i", dir);
    snprintf(expected, sizeof expected, "%s/r1.kprof", dir);
    assert_path(pattern, expected); /* and it is taken by that */
    char second[64];
    snprintf(second, sizeof second, "%s/r2.kprof", dir);
    snprintf(pattern, sizeof pattern, "%s/r%%n", dir); /* nsys calls it so */
    assert_path(pattern, second);
    unlink(expected);
    unlink(second);
    assert_int_equal(symlink("/nowhere/at-all", expected), 0);
    assert_path(pattern, second); /* a link that leads nowhere is no free name */
    unlink(expected);
    unlink(second);
    assert_int_equal(rmdir(dir), 0);
}

static void write_start(const char *path, const char *start)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(start, 16, 1, file);
    fclose(file);
}

static void assert_report(const char *name, const char *expected)
{
    KPROF_AUTO_FREE char *path = kprof_report_path(name);
    assert_string_equal(path, expected);
}

TEST(a_report_is_found_without_its_extension)
{
    static const char report[] = "SQLite format 3", program[] = "\177ELF and so on ";
    char dir[] = "/tmp/kprof-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    assert_report("run", "run");
    write_start("run.kprof", report);
    assert_report("run", "run.kprof");
    assert_report("run.kprof", "run.kprof");
    write_start("run", program);
    assert_report("run", "run.kprof");
    write_start("run", report);
    assert_report("run", "run");
    write_start("other", program);
    assert_report("other", "other");
    assert_true(kprof_is_report("run") && !kprof_is_report("other") && !kprof_is_report("missing"));
    unlink("run");
    unlink("run.kprof");
    unlink("other");
    assert_int_equal(chdir("/"), 0);
    rmdir(dir);
}

TEST(programs_are_found_as_by_the_shell)
{
    KPROF_AUTO_FREE char *found = kprof_program_find("sh");
    assert_non_null(found);
    assert_non_null(strstr(found, "/sh"));
    assert_null(kprof_program_find("no-program-of-this-name"));
    assert_null(kprof_program_find("/etc/passwd"));
    assert_null(kprof_program_find("/"));
}

/* A program in PATH that somebody is writing: nothing of that name in the working folder is asked instead. */
TEST(why_a_program_cannot_start_is_told)
{
    log_capture_start(&captured);
    assert_int_equal(kprof_program_fail("no-program-of-this-name", ETXTBSY), KPROF_NO_APPLICATION);
    assert_non_null(strstr(captured.last, strerror(ETXTBSY)));
}
