/* Exit codes: the application's failure first, then kprof's, and never 0 with nothing collected. */
#include "cli/outcome.h"
#include "test.h"

#include <signal.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define EXITED(code)     ((code) << 8)
#define SIGNALLED(signo) (signo)

static int code_of(int wait_status, kprof_status collecting, kprof_status printing)
{
    kprof_outcome outcome = {
        .wait_status = wait_status, .collecting = collecting, .printing = printing, .counts = {.profiled = 1}};
    return kprof_outcome_exit_code(&outcome);
}

TEST(application_failures_pass_through)
{
    assert_int_equal(code_of(EXITED(0), KPROF_OK, KPROF_OK), 0);
    assert_int_equal(code_of(EXITED(1), KPROF_OK, KPROF_OK), 1);
    assert_int_equal(code_of(EXITED(99), KPROF_OK, KPROF_OK), 99);
    assert_int_equal(code_of(EXITED(120), KPROF_OK, KPROF_OK), 120);
    assert_int_equal(code_of(EXITED(255), KPROF_OK, KPROF_OK), 255);
    assert_int_equal(code_of(SIGNALLED(SIGSEGV), KPROF_OK, KPROF_OK), 139);
    assert_int_equal(code_of(SIGNALLED(SIGKILL), KPROF_OUTPUT, KPROF_OK), 137);
    assert_int_equal(code_of(EXITED(3), KPROF_OUTPUT, KPROF_OUTPUT), 3);
}

TEST(statuses_of_kprofs_own_range_become_119)
{
    for (int code = 100; code <= 119; code++)
        assert_int_equal(code_of(EXITED(code), KPROF_OK, KPROF_OK), 119);
}

TEST(kprofs_failures)
{
    assert_int_equal(code_of(EXITED(0), KPROF_OUTPUT, KPROF_OK), 108);
    assert_int_equal(code_of(EXITED(0), KPROF_OK, KPROF_OUTPUT), 108);
    assert_int_equal(code_of(EXITED(0), KPROF_INTERNAL, KPROF_OUTPUT), 100);
}

TEST(nothing_collected)
{
    static const struct {
        size_t processes;
        kprof_status told;
        uint64_t not_measured;
        int code;
    } rows[] = {
        {0, KPROF_OK, 0, 106},
        {1, KPROF_OK, 0, 106},
        {1, KPROF_OK, 3, 110},
        {1, KPROF_INTERNAL, 0, 100},
        {1, KPROF_INTERNAL, 3, 110},
        {1, KPROF_NO_PERMISSION, 3, 104},
        {1, KPROF_NO_PERMISSION, 0, 104},
        {1, KPROF_COUNTERS_BUSY, 3, 105},
        {1, KPROF_UNSUPPORTED, 3, 111},
        {1, KPROF_OUTPUT, 0, 108},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        kprof_outcome outcome = {.spools = {.processes = rows[i].processes, .told = rows[i].told},
                                 .counts = {.not_measured = rows[i].not_measured}};
        assert_int_equal(kprof_outcome_exit_code(&outcome), rows[i].code);
    }
}

TEST(something_collected)
{
    kprof_outcome outcome = {.spools = {.processes = 1, .told = KPROF_NO_PERMISSION},
                             .counts = {.profiled = 1, .not_measured = 1}};
    assert_int_equal(kprof_outcome_exit_code(&outcome), 0);
    outcome.wait_status = SIGTERM;
    assert_int_equal(kprof_outcome_exit_code(&outcome), 128 + SIGTERM);
    outcome.spools.killed = 1; /* by --kill, so that this is no failure */
    assert_int_equal(kprof_outcome_exit_code(&outcome), 0);
    outcome.spools.told = KPROF_OUTPUT; /* a process lost records to a full disk */
    assert_int_equal(kprof_outcome_exit_code(&outcome), 108);
}

/* A trace beside counters is no measurement, and what kprof trace records is all that it is for. */
TEST(activities)
{
    kprof_outcome outcome = {.spools = {.processes = 1}, .counts = {.activities = 7}};
    assert_int_equal(kprof_outcome_exit_code(&outcome), 106);
    outcome.is_trace = true;
    assert_int_equal(kprof_outcome_exit_code(&outcome), 0);
    outcome.counts.activities = 0;
    assert_int_equal(kprof_outcome_exit_code(&outcome), 106);
}
