/* The text of the status line. */
#include "cli/progress.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_line(const kprof_progress *progress, double now_s, const char *expected)
{
    char *line = kprof_progress_line(progress, now_s);
    assert_string_equal(line, expected);
    free(line);
}

TEST(lines)
{
    assert_line(&(kprof_progress){.kernel = "vectorAdd", .start_s = 1, .pass_count = 28}, 2,
                "0 launches, vectorAdd, 28 passes");
    assert_line(&(kprof_progress){.kernel = "vectorAdd", .start_s = 1, .pass = 3, .pass_count = 28}, 2,
                "0 launches, vectorAdd, pass 3 of 28");
    assert_line(&(kprof_progress){.kernel = "f", .start_s = 1, .done = 1, .pass_count = 1}, 1.5,
                "1 launch, f, 1 pass, 500 ms per launch");
    assert_line(&(kprof_progress){.kernel = "f", .start_s = 1, .done = 50, .goal = 200}, 51,
                "50 of 200 launches, f, 1 s per launch, about 2:30 min left");
    assert_line(&(kprof_progress){.kernel = "f", .start_s = 1, .done = 9, .code = 3, .code_count = 40}, 3,
                "reading the code of module 3 of 40");
    assert_line(&(kprof_progress){.kernel = "f", .start_s = 1, .done = 200, .goal = 200}, 3,
                "200 of 200 launches, f, 10 ms per launch");
}

/* A name is whatever the program called its kernel. */
TEST(names_cannot_steer_the_terminal)
{
    kprof_progress progress = {.done = 0};
    kprof_progress_launch(&progress,
                          "\x1b]0;title\a\xc2\x9b"
                          "31m\xff",
                          1);
    char *line = kprof_progress_line(&progress, progress.start_s);
    assert_non_null(strstr(line, ", \\x1b]0;title\\x07\\xc2\\x9b31m\\xff, 1 pass"));
    free(line);
    char name[81] = "a"; /* every further character takes two bytes; the name is cut between two of them */
    for (size_t i = 1; i < 80; i++)
        name[i] = (char)(i % 2 ? 0xc3 : 0xbc);
    kprof_progress_launch(&progress, name, 1);
    assert_int_equal(strlen(progress.kernel), sizeof progress.kernel - 1);
    kprof_progress_launch(&progress, name + 1, 1);
    assert_int_equal(strlen(progress.kernel), sizeof progress.kernel - 2);
}

TEST(lines_of_ncu)
{
    char text[1024] = "";
    kprof_progress progress = {.as_ncu = fmemopen(text, sizeof text, "w")};
    kprof_progress_connect(&progress, 7, "/bin/a\x1b");
    kprof_progress_launch(&progress, "of_just_thirty_two_bytes________", 1);
    progress.launches = 4;
    kprof_progress_launch(&progress, "of_more_than_thirty_two_bytes____", 12);
    kprof_progress_launch(&progress, "of_twenty_eight_bytes______e\xc3\xbc_and_more", 2); /* not cut in a character */
    kprof_progress_disconnect(&progress, 7);
    fclose(progress.as_ncu);
    assert_string_equal(text,
                        "==PROF== Connected to process 7 (/bin/a\\x1b)\n"
                        "==PROF== Profiling \"of_just_thirty_two_bytes________\" - 0: 0%....50%....100% - 1 pass\n"
                        "==PROF== Profiling \"of_more_than_thirty_two_bytes...\" - 4: 0%....50%....100% - 12 passes\n"
                        "==PROF== Profiling \"of_twenty_eight_bytes______e...\" - 4: 0%....50%....100% - 2 passes\n"
                        "==PROF== Disconnected from process 7\n");
}

static bool draws_on(FILE *out, const char *terminal)
{
    kprof_progress progress;
    assert_int_equal(setenv("TERM", terminal, 1), 0);
    kprof_progress_begin(&progress, out, 0);
    const bool draws = progress.terminal;
    kprof_progress_end(&progress);
    return draws;
}

/* Of one that is dumb the cursor cannot be moved. */
TEST(terminals)
{
    const int controller = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(controller >= 0);
    assert_int_equal(grantpt(controller) | unlockpt(controller), 0);
    FILE *out = fdopen(open(ptsname(controller), O_RDWR | O_NOCTTY), "w");
    assert_non_null(out);
    assert_true(draws_on(out, "xterm"));
    assert_false(draws_on(out, "dumb"));
    fclose(out);
    close(controller);
}
