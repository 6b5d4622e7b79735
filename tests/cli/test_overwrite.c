/* An output that is an input is refused, under whatever name it is given, and nothing is written. */
#include "cli/commands.h"
#include "cli/output.h"
#include "log_capture.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WORDS 16

static char folder[] = "/tmp/kprof-test-XXXXXX";
static log_capture captured;

static void write_text(const char *name, mode_t mode, const char *text)
{
    int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, mode);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, 25), 25);
    close(file);
}

static void write_file(const char *name, mode_t mode)
{
    write_text(name, mode, "SQLite format 3\0 and more");
}

static int make_files(void **state)
{
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_file("run.kprof", 0600);
    write_file("app", 0700);
    write_text("data", 0600, "text of twenty-five bytes");
    assert_int_equal(symlink("run.kprof", "symbolic"), 0);
    assert_int_equal(link("run.kprof", "hard"), 0);
    assert_int_equal(mkdir("own", 0700) | mkdir("own/sections", 0700) | mkdir("own/findings", 0700), 0);
    write_file("own/sections/mine.json", 0600);
    write_file("own/findings/mine.json", 0600);
    return setenv("PATH", folder, 1);
}

static int remove_files(void **state)
{
    static const char *const names[] = {
        "run.kprof",    "app",          "data", "symbolic", "hard", "own/sections/mine.json", "own/findings/mine.json",
        "own/findings", "own/sections", "own",  "."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)remove(names[i]);
    return rmdir(folder);
}

static kprof_status check(const char *line)
{
    char buffer[512], *words[MAX_WORDS + 1], *rest = buffer;
    size_t count = 0;
    kprof_options options;
    snprintf(buffer, sizeof buffer, "kprof %s", line);
    for (char *word; (word = strsep(&rest, " ")) && count < MAX_WORDS;)
        words[count++] = word;
    words[count] = NULL;
    log_capture_start(&captured);
    assert_int_equal(kprof_options_parse(words, &options), KPROF_OK);
    kprof_status status = kprof_outputs_check(&options);
    kprof_options_free(&options);
    return status;
}

TEST(outputs_that_are_inputs)
{
    static const char *const lines[] = {
        "report run.kprof --log-file run.kprof",
        "report run --log-file run.kprof",
        "report run.kprof --html run.kprof",
        "report run.kprof -f --html hard",
        "diff run.kprof data --html data",
        "-i run.kprof --log-file ./own/../run.kprof",
        "report run.kprof --log-file symbolic",
        "report run.kprof --log-file hard",
        "report symbolic --log-file hard",
        "--log-file app ./app",
        "--log-file app app",
        "--log-file data app -x data",
        "plan --log-file app ./app",
        "-f -o run app run.kprof",
        "-f -o run.kprof app hard",
        "--injection-path data --log-file data app",
        "--nvdisasm data --log-file data app",
        "--section-folder own --log-file own/sections/mine.json app",
        "list sections --section-folder own --log-file own/sections/mine.json",
        "report run.kprof --section-folder own --log-file own/findings/mine.json",
        "export run.kprof --to long -o hard",
        "export run --to long --log-file run.kprof",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (check(lines[i]) != KPROF_USAGE || !strstr(captured.last, "would overwrite"))
            fail_msg("%s: %s", lines[i], captured.count ? captured.last : "is not refused");
    }
}

/* A report of another run is no place for text, either. */
TEST(logs_over_reports)
{
    static const char *const lines[] = {"list sets --log-file log.kprof", "plan --log-file log.kprof app",
                                        "report run.kprof --log-file log.kprof", "--log-file log.kprof app",
                                        "report run.kprof -f --html log.kprof"};
    FILE *report = fopen("log.kprof", "w");
    assert_non_null(report);
    assert_int_equal(fwrite("SQLite format 3", 16, 1, report), 1);
    assert_int_equal(fclose(report), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(check(lines[i]), KPROF_USAGE);
        assert_non_null(strstr(captured.last, "is a report"));
    }
    unlink("log.kprof");
}

TEST(outputs_that_are_one)
{
    assert_int_equal(check("-o new --log-file new.kprof app"), KPROF_USAGE);
    assert_int_equal(check("-o new --log-file ./own/../new.kprof app"), KPROF_USAGE);
    assert_non_null(strstr(captured.last, "are one file"));
    assert_int_equal(check("-f -o run --log-file hard app"), KPROF_USAGE);
    assert_int_equal(check("-o new --log-file own/new.kprof app"), KPROF_OK);
}

TEST(outputs_of_their_own)
{
    static const char *const lines[] = {
        "report run.kprof --log-file new",
        "report run.kprof --log-file data",
        "report run.kprof --log-file stdout",
        "report run.kprof --html new",
        "report run.kprof --log-file /dev/null",
        "report run.kprof",
        "report missing --log-file missing.txt",
        "--log-file new app new",
        "-o new app",
        "--log-file /dev/null app /dev/null",
        "--plan -o app app",
        "export run.kprof --to long -o data",
        "export run.kprof --to long -o -",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (check(lines[i]) != KPROF_OK)
            fail_msg("%s: %s", lines[i], captured.last);
    }
}

TEST(stdout_is_an_output)
{
    int saved = dup(STDOUT_FILENO), file = open("run.kprof", O_WRONLY | O_APPEND);
    assert_true(saved >= 0 && file >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    kprof_status refused = check("report run.kprof"), other = check("report data");
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(file);
    assert_int_equal(refused, KPROF_USAGE);
    assert_int_equal(other, KPROF_OK);
}

AROUND_ALL(make_files, remove_files)
