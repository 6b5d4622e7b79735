/* What is said of words for chips that are no chip's name. */
#include "host/host.h"
#include "log_capture.h"
#include "test.h"

static char *names[] = {"TU102", "TU104", "GA100", "GA102", "GA103", "GA104", "GA106",
                        "GA107", "GA10B", "AD102", "GH100", "GB100", "GB202", "GB20B"};
static const kprof_strlist known = {names, sizeof names / sizeof *names, sizeof names / sizeof *names};
static log_capture captured;

static void assert_answer(const char *word, kprof_status status, const char *answer)
{
    log_capture_start(&captured);
    assert_int_equal(kprof_chip_check(word, &known), status);
    kprof_log_set_sink(NULL, NULL);
    if (!strstr(captured.last, answer))
        fail_msg("\"%s\" gave \"%s\", not \"%s\"", word, captured.last, answer);
}

static void assert_meant(const char *word, const char *hint)
{
    char answer[200];
    snprintf(answer, sizeof answer, "chip \"%s\" is not known; did you mean %s? kprof list chips", word, hint);
    assert_answer(word, KPROF_UNKNOWN_NAME, answer);
}

TEST(names_of_gpus)
{
    assert_meant("A100", "\"GA100\"");
    assert_meant("t4", "\"TU104\"");
    assert_meant("RTX4090", "\"AD102\"");
    assert_meant("rtx-4090", "\"AD102\"");
    assert_meant("4090", "\"AD102\"");
    assert_meant("A6000", "\"GA102\"");
    assert_meant("Orin", "\"GA10B\"");
}

TEST(capabilities_and_architectures)
{
    for (size_t i = 0; i < 6; i++)
        assert_meant(((const char *[]){"sm_80", "SM80", "compute_80", "8.0", "80", "cc 8.0"})[i], "\"GA100\"");
    assert_meant("sm_90a", "\"GH100\"");
    assert_meant("12.0", "\"GB202\"");
    assert_meant("8.6", "\"GA102\" or \"GA103\" or \"GA104\" or \"GA106\" or \"GA107\"");
    assert_meant("Hopper", "\"GH100\"");
    assert_meant("Ada Lovelace", "\"AD102\"");
    assert_meant("turing", "\"TU102\" or \"TU104\"");
}

TEST(misspelled_names)
{
    assert_meant("gh10", "\"GH100\"");
    assert_meant("NVIDIA H100", "\"GH100\"");
    for (size_t i = 0; i < 8; i++)
        assert_answer(((const char *[]){"all", "M100", "K80", "8", "8.00", "99", "Ti", "Laptop"})[i],
                      KPROF_UNKNOWN_NAME, "is not known; kprof list chips");
    assert_answer("GH100", KPROF_OK, "");
    assert_int_equal(kprof_chip_check("nonsense", NULL), KPROF_OK);
}

TEST(what_is_too_old)
{
    assert_answer("gv100", KPROF_UNSUPPORTED,
                  "chip GV100 has compute capability 7.0, and kprof supports 7.5 and higher");
    static const char *const volta[] = {"V100", "Titan V", "sm_70", "Volta"};
    for (size_t i = 0; i < sizeof volta / sizeof *volta; i++)
        assert_answer(volta[i], KPROF_UNSUPPORTED, "\" is too old: chip GV100 has compute capability 7.0");
    assert_answer("P100", KPROF_UNSUPPORTED, "\"P100\" is too old: chip GP100 has compute capability 6.0");
    assert_int_equal(kprof_chip_check("Xavier", NULL), KPROF_UNSUPPORTED);
}
