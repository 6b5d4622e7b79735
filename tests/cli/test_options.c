/* The parser: words to fields, what it refuses, and what it suggests. */
#include "cli/commands.h"
#include "cli/parse.h"
#include "core/config.h"
#include "log_capture.h"
#include "report/model/change.h"
#include "report/report.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_WORDS     16

static log_capture captured;
static char line_buffer[1024];
static char *words[MAX_WORDS + 1];
static kprof_options options;

/* Parse "kprof LINE", split at spaces. The words live until the next call. */
static kprof_status parse(const char *line)
{
    size_t count = 0;
    char *rest = line_buffer;
    kprof_options_free(&options);
    snprintf(line_buffer, sizeof line_buffer, "kprof %s", line);
    for (char *word; (word = strsep(&rest, " ")) && count < MAX_WORDS;) {
        if (*word)
            words[count++] = word;
    }
    words[count] = NULL;
    log_capture_start(&captured);
    return kprof_options_parse(words, &options);
}

static void assert_refused(const char *line, const char *message)
{
    assert_int_equal(parse(line), KPROF_USAGE);
    assert_int_equal(captured.count, 1);
    if (!strstr(captured.last, message))
        fail_msg("\"%s\" gave \"%s\", not \"%s\"", line, captured.last, message);
}

TEST(application_takes_the_rest)
{
    assert_int_equal(parse("--csv ./app --json -x"), KPROF_OK);
    assert_string_equal(options.application[0], "./app");
    assert_string_equal(options.application[1], "--json");
    assert_string_equal(options.application[2], "-x");
    assert_null(options.application[3]);
    assert_int_equal(options.format, KPROF_FORMAT_CSV);
    assert_ptr_equal(options.command, &kprof_commands[0]);
}

TEST(defaults)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_null(options.filter.kernel);
    assert_int_equal(options.filter.name_base, KPROF_NAME_FUNCTION);
    assert_int_equal(options.filter.device_mask, 0);
    assert_true(options.follow_children);
    assert_int_equal(options.cache_control, KPROF_CACHE_FLUSH_ALL);
    assert_int_equal(options.witness_control, KPROF_WITNESSES_ALL);
    assert_int_equal(options.page, KPROF_UNSET);
    assert_int_equal(options.format, KPROF_UNSET);
    assert_int_equal(options.kernel_base, KPROF_NAME_DEMANGLED);
}

TEST(commands_and_programs_of_the_same_name)
{
    assert_int_equal(parse("report run.kprof --page raw"), KPROF_OK);
    assert_ptr_equal(options.command, kprof_command_find("report"));
    assert_string_equal(options.argument, "run.kprof");
    assert_int_equal(options.page, KPROF_PAGE_RAW);
    assert_int_equal(parse("--csv report run.kprof"), KPROF_OK);
    assert_ptr_equal(options.command, kprof_command_find("report"));
    assert_int_equal(parse("-- report run.kprof"), KPROF_OK);
    assert_ptr_equal(options.command, &kprof_commands[0]);
    assert_string_equal(options.application[0], "report");
    assert_int_equal(parse("run --wait report app"), KPROF_OK);
    assert_ptr_equal(options.command, &kprof_commands[0]);
    assert_string_equal(options.application[0], "report");
    assert_int_equal(options.starts_unarmed, 1);
    assert_int_equal(parse("-- run app"), KPROF_OK);
    assert_string_equal(options.application[0], "run");
    assert_int_equal(parse("run run"), KPROF_OK);
    assert_string_equal(options.application[0], "run");
    assert_refused("run --wait --armed yes app", "--wait");
    assert_int_equal(parse("app report"), KPROF_OK);
    assert_ptr_equal(options.command, &kprof_commands[0]);
    assert_int_equal(parse("report a.kprof b.kprof --set full --launch 3,5-9"), KPROF_OK);
    assert_string_equal(options.argument, "a.kprof");
    assert_true(options.reports.count == 2 && options.launches.count == 2);
    assert_refused("diff a.kprof b.kprof c.kprof", "c.kprof");
    assert_refused("report a.kprof --page raw --top 2",
                   "--top is about rows of kernels or code, and --page raw has none: give summary, census, brief or ");
    assert_refused("--page details --sort time app",
                   "--sort is about rows of kernels, and --page details has none: give summary or brief");
    assert_refused("report a.kprof --page raw --sort sectors",
                   "--sort is about rows of code, and --page raw has none: give source");
    assert_refused(
        "report a.kprof --page details --group-by kernel",
        "--group-by is about rows of kernels, and --page details has none: give summary, statistics or brief");
    assert_refused("report a.kprof --page statistics --top 2", "--top is about the summary and brief pages");
    assert_refused("report a.kprof --print-summary per-kernel --sort time",
                   "--sort is about the summary and brief pages");
    assert_int_equal(parse("report a.kprof --page statistics --group-by config"), KPROF_OK);
    assert_refused("report a.kprof --html a.html --top 2", "the page of --html has all kernels and launches");
    assert_refused("report a.kprof --html a.html --group-by config", "--group-by is about rows of text");
    assert_int_equal(parse("report a.kprof --brief --top 2 --sort time --group-by device"), KPROF_OK);
    assert_refused("report a.kprof --page source --sort time", "--page source sorts by samples, instructions");
    assert_refused("report a.kprof --page summary --sort sectors", "is about rows of code: give --page source");
    static const char *const grouped_source[] = {"--page source", "--sort samples", "--page source --sort samples",
                                                 "--page source --top 2", "--sort samples --top 2"};
    for (size_t i = 0; i < sizeof grouped_source / sizeof grouped_source[0]; i++) {
        char line[100];
        snprintf(line, sizeof line, "report a.kprof --group-by device %s", grouped_source[i]);
        assert_refused(line, "--group-by is about rows of kernels, and --page source has none");
    }
    assert_refused("report a.kprof --budget 3", "--budget is no option of kprof report");
    assert_refused("report a.kprof --plan", "--plan is no option of kprof report; it is the command kprof plan");
    assert_refused("version 1", "kprof version: \"1\" is one word too many; kprof help version tells what it takes");
    assert_refused("help --list-chips", "--list-chips is no option of kprof help");
    assert_refused("--import a.kprof --list-sets", "it is the command kprof list sets");
}

TEST(rows_choose_their_page)
{
    static const struct {
        const char *line;
        int page;
    } cases[] = {{"report a.kprof --top 2", KPROF_PAGE_SUMMARY},
                 {"--sort time app", KPROF_PAGE_SUMMARY},
                 {"report a.kprof --sort gain", KPROF_PAGE_SUMMARY},
                 {"report a.kprof --csv --group-by kernel", KPROF_PAGE_SUMMARY},
                 {"report a.kprof --sort samples", KPROF_PAGE_SOURCE},
                 {"report a.kprof --sort conflicts --top 3", KPROF_PAGE_SOURCE},
                 {"report a.kprof --print-source sass --top 3", KPROF_PAGE_SOURCE},
                 {"report a.kprof --brief --top 2", KPROF_PAGE_BRIEF},
                 {"report a.kprof", KPROF_UNSET}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].line), KPROF_OK);
        assert_int_equal(options.page, cases[i].page);
    }
}

TEST(comparisons)
{
    assert_int_equal(parse("diff a.kprof b.kprof --fail-on a.sum>1,b.sum>2 --fail-on duration>5% --anyway"), KPROF_OK);
    assert_ptr_equal(options.command, kprof_command_find("diff"));
    assert_string_equal(options.baseline, "a.kprof");
    assert_string_equal(options.argument, "b.kprof");
    assert_int_equal(options.fail_on.count, 2); /* conditions are no lists */
    assert_string_equal(options.fail_on.items[1], "duration>5%");
    assert_true(options.anyway);
    assert_true(options.time_tolerance_pct == KPROF_TIME_TOLERANCE_PCT);
    assert_int_equal(parse("report b.kprof --baseline a.kprof --time-tolerance 0.5 --bytes-tolerance 0"), KPROF_OK);
    assert_string_equal(options.baseline, "a.kprof");
    assert_string_equal(options.argument, "b.kprof");
    assert_true(options.time_tolerance_pct == 0.5);
    assert_true(options.bytes_tolerance_pct == 0);
    assert_refused("diff a.kprof b.kprof c.kprof", "one word too many");
    assert_refused("diff a.kprof b.kprof --time-tolerance 2%", "--time-tolerance: \"2%\" is not valid");
    assert_refused("diff a.kprof b.kprof --time-tolerance .", "--time-tolerance: \".\" is not valid");
    assert_refused("diff a.kprof b.kprof --bytes-tolerance -1", "--bytes-tolerance: \"-1\" is not valid");
    assert_refused("diff a.kprof b.kprof --page raw", "--page is no option of kprof diff");
    assert_refused("--fail-on a>1 app", "--fail-on is no option of a run");
    assert_string_equal(kprof_option_word("cache-control", KPROF_CACHE_FLUSH_NONE), "none");
    assert_null(kprof_option_word("cache-control", 99));
    assert_null(kprof_option_word("page-control", 0));
}

TEST(import_is_report)
{
    assert_int_equal(parse("-i run.kprof --csv"), KPROF_OK);
    assert_ptr_equal(options.command, kprof_command_find("report"));
    assert_string_equal(options.argument, "run.kprof");
    assert_refused("-i run.kprof app", "takes no application");
    assert_refused("report a.kprof -i b.kprof", "once");
    assert_int_equal(parse("-i run.kprof --budget 3"), KPROF_OK);
    assert_string_equal(captured.last, "--budget has no effect on a report, which is measured already");
    assert_refused("-i run.kprof --plan", "--plan");
}

TEST(values_in_every_spelling)
{
    static const char *const lines[] = {"--launch-count=7 app",
                                        "--launch-count 7 app",
                                        "-c 7 app",
                                        "-c7 app",
                                        "--launch-c 7 app",
                                        "-fc7 app",
                                        "-qfc 7 app"};
    for (size_t i = 0; i < LENGTH(lines); i++) {
        assert_int_equal(parse(lines[i]), KPROF_OK);
        assert_int_equal(options.filter.launch_count, 7);
        assert_string_equal(options.application[0], "app");
    }
    assert_true(options.force_overwrite && options.quiet);
    assert_int_equal(parse("--chip GH100 --list-sets"), KPROF_OK);
    assert_string_equal(options.chips.items[0], "GH100");
}

TEST(filters)
{
    assert_int_equal(
        parse("-k regex:a|b --kernel-name-base demangled -s 2 --launch-skip-before-match 3 --devices 0,5 app"),
        KPROF_OK);
    assert_string_equal(options.filter.kernel, "regex:a|b");
    assert_int_equal(options.filter.name_base, KPROF_NAME_DEMANGLED);
    assert_int_equal(options.filter.launch_skip, 2);
    assert_int_equal(options.filter.launch_skip_before_match, 3);
    assert_int_equal(options.filter.device_mask, 0x21);
}

TEST(lists)
{
    assert_int_equal(parse("--set a,b --set=c --metrics m,regex:x{1,2},[a,b],m --section-folder a,b app"), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 3);
    assert_string_equal(options.selection.sets.items[2], "c");
    assert_int_equal(options.selection.metrics.count, 3);
    assert_string_equal(options.selection.metrics.items[1], "regex:x{1,2}");
    assert_string_equal(options.selection.metrics.items[2], "[a,b]");
    assert_int_equal(options.section_folders.count, 1);
    KPROF_AUTO(kprof_strlist) spaced = KPROF_STRLIST_INIT;
    kprof_value_list(" a, b ,\n\tc d\n,", &spaced);
    assert_int_equal(spaced.count, 3);
    assert_string_equal(spaced.items[0], "a");
    assert_string_equal(spaced.items[1], "b");
    assert_string_equal(spaced.items[2], "c d");
    static char *blank[] = {"kprof", "--metrics", " ,\n", "app", NULL};
    kprof_options_free(&options);
    assert_int_equal(kprof_options_parse(blank, &options), KPROF_USAGE);
}

TEST(batches_are_counted_or_automatic)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(options.replay_batch, 0);
    assert_int_equal(parse("--replay-batch 1 app"), KPROF_OK);
    assert_int_equal(options.replay_batch, 1);
    assert_int_equal(parse("--replay-batch=2048 app"), KPROF_OK);
    assert_int_equal(options.replay_batch, 2048);
    assert_refused("--replay-batch 2049 app", "N is from 1 to 2048");
    assert_int_equal(parse("--replay-batch auto app"), KPROF_OK);
    assert_int_equal(options.replay_batch, 0);
    assert_refused("--replay-batch 0 app", "\"0\" is not valid, give N|auto");
    assert_refused("--replay-batch -3 app", "\"-3\"");
    assert_refused("--replay-batch 4294967296 app", "\"4294967296\"");
    assert_refused("--replay-batch many app", "\"many\"");
    assert_refused("--replay-batch", "needs an argument");
}

TEST(intervals_of_samples_are_those_of_ncu)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(options.sampling_period, 0);
    assert_int_equal(options.sampling_passes, 3);
    assert_int_equal(parse("--warp-sampling-interval 0 --warp-sampling-buffer-size 32M app"), KPROF_OK);
    assert_int_equal(options.sampling_period, 5);
    assert_int_equal(options.sampling_buffer_bytes, 32 << 20);
    assert_int_equal(parse("--sampling-interval 26 --sampling-max-passes 5 --sampling-buffer-size 33554432 app"),
                     KPROF_OK);
    assert_int_equal(options.sampling_period, 31);
    assert_int_equal(options.sampling_passes, 5);
    assert_int_equal(parse("--warp-sampling-interval=Auto app"), KPROF_OK);
    assert_int_equal(options.sampling_period, 0);
    assert_refused("--warp-sampling-interval 27 app",
                   "N is from 0 to 26, since CUPTI samples every 2^31 cycles at most");
    assert_refused("--warp-sampling-max-passes 0 app", "N is from 1 to 1000000");
}

TEST(clocks_are_left_alone)
{
    assert_int_equal(parse("--clock-control=none app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_refused("--clock-control base app", "kprof changes no clock");
}

TEST(limits_and_their_workload)
{
    const kprof_limits *limits = &options.selection.limits;
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(limits->max_passes, 0);
    assert_true(limits->budget_s == 0);
    assert_int_equal(limits->workload.launches, KPROF_ASSUMED_LAUNCHES);
    assert_int_equal(parse("--max-passes 4 --budget 2.5 -c 7 --replay-batch 3 app"), KPROF_OK);
    assert_int_equal(limits->max_passes, 4);
    assert_true(limits->budget_s == 2.5);
    assert_int_equal(limits->workload.launches, 7);
    assert_int_equal(limits->workload.batch, 3);
    assert_refused("--max-passes 0 app", "\"0\" is not valid, give N");
    assert_refused("--max-passes auto app", "\"auto\"");
    static const char *const no_budgets[] = {"0", "-1", "1e3", "0x10", "3s", "nan", ".", "1.2.3", ""};
    for (size_t i = 0; i < LENGTH(no_budgets); i++) {
        char line[64];
        snprintf(line, sizeof line, "--budget=%s app", no_budgets[i]);
        assert_refused(line, "is not valid, give SECONDS");
    }
}

TEST(sizes_of_memory)
{
    static const struct {
        const char *size;
        uint64_t bytes;
    } sizes[] = {{"1", 1},
                 {"4096", 4096},
                 {"1.5G", UINT64_C(3) << 29},
                 {"1.5GiB", UINT64_C(3) << 29},
                 {"1.5GB", 1500000000},
                 {"2k", 2048},
                 {"2KB", 2000},
                 {".5M", 1 << 19},
                 {"60gb", UINT64_C(60000000000)},
                 {"2T", UINT64_C(1) << 41},
                 {"16777215T", UINT64_C(16777215) << 40}};
    static const char *const no_sizes[] = {
        "0",   "0G",  "0.5",       "-1",  "-1G", "G",  "GB", "1.5.2G", "1e9", "0x10", "1P",
        "1GG", "1Gi", "16777216T", "nan", "",    "+1", "1B", "many",   "inf", "1,5G", "99999999999999999999"};
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(options.selection.limits.workload.allocated_bytes, 0);
    char line[64];
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        snprintf(line, sizeof line, "--allocated %s app", sizes[i].size);
        assert_int_equal(parse(line), KPROF_OK);
        assert_int_equal(options.selection.limits.workload.allocated_bytes, sizes[i].bytes);
    }
    for (size_t i = 0; i < LENGTH(no_sizes); i++) {
        snprintf(line, sizeof line, "--allocated=%s app", no_sizes[i]);
        assert_refused(line, "is not valid, give SIZE: 1 byte or more");
    }
    assert_refused("report run.kprof --allocated 1G", "no option of kprof report");
}

static void assert_command(const char *line, const char *name, const char *argument)
{
    assert_int_equal(parse(line), KPROF_OK);
    assert_string_equal(options.command->name, name);
    assert_true(argument ? options.argument && strcmp(options.argument, argument) == 0 : !options.argument);
}

TEST(a_plan_takes_an_application)
{
    assert_command("--plan --set full app -x", "plan", NULL);
    assert_string_equal(options.application[0], "app");
    assert_command("plan --set full app -x", "plan", NULL);
    assert_string_equal(options.application[1], "-x");
    assert_command("plan -- list", "plan", NULL);
    assert_string_equal(options.application[0], "list");
    assert_command("plan", "plan", NULL);
    assert_command("-- plan", "", NULL);
    assert_refused("--plan --list-sets", "exclude each other");
    assert_refused("report run.kprof --max-passes 3", "no option of kprof report");
    assert_refused("report run.kprof --chips GH100", "no option of kprof report");
    assert_refused("--chips GH100 app", "--chips is no option of a run; it belongs to: kprof plan, kprof list");
    assert_refused("plan -i run.kprof", "no option of kprof plan");
    assert_command("--plan --chips GH100 --max-passes 3 -o run app", "plan", NULL);
    assert_command("--help --chips GH100", "help", NULL);
}

TEST(lists_have_words)
{
    static const char *const rows[][2] = {{"list sets", "sets"},
                                          {"--list-sets", "sets"},
                                          {"list sections", "sections"},
                                          {"--list-sections app", "sections"},
                                          {"list findings", "findings"},
                                          {"--list-rules --rule Bottleneck", "findings"},
                                          {"list --csv chips", "chips"},
                                          {"--list-chips", "chips"},
                                          {"list metrics --chips GH100 --metrics dram__bytes", "metrics"},
                                          {"--query-metrics --query-metrics-mode all", "metrics"},
                                          {"--query-metrics-mode all --metrics dram__bytes", "metrics"},
                                          {"--list-metrics --set full --section Occupancy app", "collected"}};
    for (size_t i = 0; i < LENGTH(rows); i++)
        assert_command(rows[i][0], "list", rows[i][1]);
    assert_command("list", "list", NULL);
    assert_command("list -v", "list", NULL);
    assert_refused(
        "list set",
        "\"set\" is none of sets, sections, findings, chips, metrics, collected, aliases, tables; did you mean sets?");
    assert_refused("list sets chips", "one word too many");
    assert_refused("list metrics regex:bank",
                   "\"regex:bank\" is one word too many; give names and regex:PATTERN with --metrics");
    assert_refused("--list-sets --max-passes 3",
                   "--max-passes is no option of kprof list; it belongs to: a run, kprof plan");
    assert_refused("list metrics --budget 3", "--budget is no option of kprof list");
    assert_refused("trace --set full ./app",
                   "kprof ctl; kprof --trace measures launches and records a trace in one run");
    assert_command("--replay-mode kernel --list-sets", "list", "sets");
}

TEST(help_and_version_come_first)
{
    assert_command("help report", "help", "report");
    assert_null(options.topic);
    assert_command("list --help", "help", NULL);
    assert_string_equal(options.topic->name, "list");
    assert_command("--list-sets -h", "help", "sets");
    assert_string_equal(options.topic->name, "list");
    assert_command("--version --list-sets", "version", "sets");
    assert_command("list sections -v", "list", "sections");
    assert_true(options.verbose);
    assert_command("list -v sections", "list", "sections");
    assert_true(options.verbose);
    assert_command("-i run.kprof -h", "help", "run.kprof");
    assert_string_equal(options.topic->name, "report");
    assert_refused("help repot", "did you mean report?");
}

/* What does not go together is refused once, and not at all where help is asked for. */
TEST(first_error_ends)
{
    static const char *const wrong[] = {"--multiplex-samples 3 --replay-mode kernel app",
                                        "--csv-layout wide --json app",
                                        "--html a.html --csv app",
                                        "--page raw --top 2 app",
                                        "--brief --csv app",
                                        "--filter x app",
                                        "--page session --filter duration>10us app"};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        char line[200];
        for (size_t k = i + 1; k < LENGTH(wrong); k++) {
            snprintf(line, sizeof line, "--chips GH100 --list-sets --max-passes 3 %.*s %s", (int)strlen(wrong[i]) - 4,
                     wrong[i], wrong[k]);
            (void)parse(line);
            assert_int_equal(captured.count, 1);
        }
        assert_refused(wrong[i], "--");
        snprintf(line, sizeof line, "-h %s", wrong[i]);
        assert_command(line, "help", NULL);
        snprintf(line, sizeof line, "--version %s", wrong[i]);
        assert_command(line, "version", NULL);
        snprintf(line, sizeof line, "--complete line %s", wrong[i]);
        assert_int_equal(parse(line), KPROF_OK);
    }
}

TEST(output_choices)
{
    assert_int_equal(parse("--csv-layout ncu app"), KPROF_OK);
    assert_int_equal(options.format, KPROF_FORMAT_CSV_NCU);
    assert_int_equal(parse("--print-summary per-kernel --print-units base app"), KPROF_OK);
    assert_int_equal(options.page, KPROF_PAGE_STATISTICS);
    assert_int_equal(options.base_units, 1);
    assert_false(options.csv_safe);
    assert_int_equal(parse("report r.kprof --csv --csv-safe"), KPROF_OK);
    assert_true(options.csv_safe);
    assert_int_equal(parse("report r.kprof -w 80"), KPROF_OK);
    assert_int_equal(options.width, 80);
    assert_refused("--width wide app", "--width: \"wide\" is not valid");
    assert_refused("--csv --json app", "--csv and --json exclude each other");
    assert_refused("--json --csv app", "--json and --csv exclude each other");
    assert_refused("--json --csv-layout wide app", "--csv-layout and --json exclude each other");
    assert_int_equal(parse("--markdown app"), KPROF_OK);
    assert_int_equal(options.format, KPROF_FORMAT_MARKDOWN);
    assert_refused("--markdown --json app", "--markdown and --json exclude each other");
    assert_refused("--csv-layout ncu --markdown app", "--csv-layout and --markdown exclude each other");
    assert_int_equal(parse("--text-layout ncu --page raw app"), KPROF_OK);
    assert_int_equal(options.text_layout, KPROF_FORMAT_TEXT_NCU);
    assert_int_equal(options.format, KPROF_UNSET);
    assert_int_equal(parse("--text-layout ncu --print-summary per-kernel app"), KPROF_OK);
    assert_int_equal(options.group_by, KPROF_GROUP_SHAPE);
    assert_int_equal(parse("report r.kprof"), KPROF_OK);
    assert_int_equal(options.text_layout, KPROF_FORMAT_TEXT);
    assert_refused("--text-layout ncu --csv app", "--text-layout and formats other than text exclude each other");
    assert_refused("report r.kprof --text-layout kprof --html x.html", "--text-layout and --html exclude each other");
    assert_refused("diff r.kprof s.kprof --json --html x.html",
                   "--html writes all pages to its own file; leave --json out");
    assert_refused("diff r.kprof s.kprof --csv-layout wide --html x.html", "; leave --csv-layout out");
    assert_refused("report r.kprof --brief --html x.html", "; leave --brief out");
    assert_refused("report r.kprof --page raw --html x.html", "; leave --page out");
    assert_refused("report r.kprof --print-summary per-gpu --html x.html", "; leave --print-summary out");
    assert_refused("diff r.kprof s.kprof --log-file l --html x.html", "; leave --log-file out");
    assert_refused("report r.kprof --text-layout ncu --page summary",
                   "--text-layout ncu has the pages details, raw and statistics");
    assert_refused("--list-sets --list-chips", "exclude each other");
}

TEST(summaries)
{
    assert_int_equal(parse("report r.kprof --page summary --sort time --group-by config --top 5"), KPROF_OK);
    assert_int_equal(options.sort, KPROF_SORT_TIME);
    assert_int_equal(options.group_by, KPROF_GROUP_CONFIG);
    assert_int_equal(options.top, 5);
    assert_int_equal(parse("report r.kprof --filter duration>10us --filter dram__bytes.sum>=1.5GB"), KPROF_OK);
    assert_string_equal(options.conditions[0].metric, KPROF_TIME_METRIC);
    assert_string_equal(options.conditions[0].unit, "us");
    assert_true(options.conditions[1].limit == 1.5);
    assert_refused("report r.kprof --sort gian", "--sort: \"gian\" is not valid, give gain|time|launches");
    assert_int_equal(parse("report r.kprof --page summary"), KPROF_OK);
    assert_true(options.sort == KPROF_SORT_GAIN && options.group_by == KPROF_GROUP_KERNEL);
    assert_int_equal(parse("report r.kprof --page summary --group-by nvtx"), KPROF_OK);
    assert_int_equal(options.group_by, KPROF_GROUP_NVTX);
    assert_int_equal(parse("report r.kprof --print-summary per-nvtx"), KPROF_OK);
    assert_true(options.page == KPROF_PAGE_STATISTICS && options.group_by == KPROF_GROUP_NVTX);
    assert_int_equal(parse("report r.kprof --print-summary per-gpu --group-by config"), KPROF_OK);
    assert_int_equal(options.group_by, KPROF_GROUP_CONFIG);
    assert_refused("report r.kprof --filter duration", "--filter \"duration\": \"duration\" is no comparison; give");
    assert_refused("report r.kprof --page session --filter duration>1us", "--filter chooses launches for the pages");
    assert_refused("report r.kprof --filter duration>5", "give \"duration>5us\"");
    assert_int_equal(parse("report r.kprof --filter duration>0"), KPROF_OK);
    assert_refused("--filter duration>long app", "\"long\" is no number with or without unit");
}

TEST(nvtx_ranges)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_false(options.nvtx);
    assert_int_equal(parse("--nvtx app"), KPROF_OK);
    assert_true(options.nvtx);
    assert_int_equal(parse("--nvtx-include a,b --nvtx-include c@d/*/e] --nvtx-exclude f/ app"), KPROF_OK);
    assert_true(options.nvtx);
    assert_int_equal(options.filter.nvtx_include.count, 2);
    assert_string_equal(options.filter.nvtx_include.items[0], "a,b");
    assert_string_equal(options.filter.nvtx_exclude.items[0], "f/");
    assert_int_equal(parse("report r.kprof --nvtx --nvtx-include a/"), KPROF_OK);
    assert_int_equal(parse("--nvtx-push-pop-scope process app"), KPROF_OK);
    assert_true(options.nvtx && options.nvtx_of_process);
    assert_refused("--nvtx-push-pop-scope all app", "thread|process");
}

TEST(brief_pages)
{
    assert_int_equal(parse("report r.kprof --brief"), KPROF_OK);
    assert_int_equal(options.page, KPROF_PAGE_BRIEF);
    assert_int_equal(parse("report r.kprof --brief --json"), KPROF_OK);
    assert_int_equal(options.format, KPROF_FORMAT_JSONL);
    assert_int_equal(options.selection.sets.count, 0);
    assert_int_equal(parse("--brief app"), KPROF_OK);
    assert_string_equal(options.selection.sets.items[0], "agent");
    assert_int_equal(parse("--brief --section SpeedOfLight app"), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 0);
    assert_refused("report r.kprof --brief --csv",
                   "the brief page is not a table; give --json, or --page summary --csv");
    assert_refused("report r.kprof --brief --page raw", "--brief and --page exclude each other");
    assert_refused("report r.kprof --page raw --brief", "--page and --brief exclude each other");
}

TEST(a_run_collects_what_its_page_shows)
{
    assert_int_equal(parse("--page timeline app"), KPROF_OK);
    assert_string_equal(options.selection.sets.items[0], "pmsampling");
    assert_int_equal(parse("--page source app"), KPROF_OK);
    assert_string_equal(options.selection.sets.items[0], "source");
    assert_int_equal(parse("--page timeline --metrics dram__bytes.sum app"), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 0);
    assert_int_equal(parse("report r.kprof --page timeline"), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 0);
    assert_refused("--page census app", "--page census shows what --census counts: give --census, too");
    assert_int_equal(parse("--census --page census app"), KPROF_OK);
    assert_int_equal(parse("-i r.kprof --page census"), KPROF_OK);
}

/* Text shows the hottest rows, tables all in the order of the program; and ncu's table has instructions. */
TEST(rows_of_the_source_page)
{
    static const struct {
        const char *line;
        uint64_t top;
        bool are_all;
        kprof_source_view view;
    } cases[] = {
        {"", 10, false, KPROF_VIEW_BEST},
        {"--top 3", 3, false, KPROF_VIEW_BEST},
        {"--top 0", 0, false, KPROF_VIEW_BEST},
        {"--all", 0, true, KPROF_VIEW_BEST},
        {"--json", 10, false, KPROF_VIEW_BEST},
        {"--csv", 0, true, KPROF_VIEW_BEST},
        {"--csv --top 5", 5, false, KPROF_VIEW_BEST},
        {"--csv --sort sectors", 10, false, KPROF_VIEW_BEST},
        {"--csv-layout ncu", 0, true, KPROF_VIEW_SASS},
        {"--csv-layout ncu --print-source cuda,sass", 0, true, KPROF_VIEW_BOTH},
        {"--csv-layout ncu --print-source sass,cuda", 0, true, KPROF_VIEW_BOTH},
        {"--print-source cuda", 10, false, KPROF_VIEW_CUDA},
        {"--print-source ptx", 10, false, KPROF_VIEW_PTX},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char line[128];
        snprintf(line, sizeof line, "report a.kprof --page source %s", cases[i].line);
        assert_int_equal(parse(line), KPROF_OK);
        assert_int_equal(options.top, cases[i].top);
        assert_int_equal(options.all_rows, cases[i].are_all);
        assert_int_equal(options.source_view, cases[i].view);
    }
    assert_int_equal(parse("--page source app"), KPROF_OK);
    assert_string_equal(options.selection.sets.items[0], "source");
    assert_int_equal(parse("--page source --set full app"), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 1);
    assert_int_equal(parse("report a.kprof --page source --source-folder a,b --resolve-source-file c"), KPROF_OK);
    assert_true(options.source_folders.count == 2 && options.resolve_source_files.count == 1);
}

TEST(refused_values)
{
    assert_refused("-c x app", "--launch-count: \"x\"");
    assert_refused("-c -1 app", "\"-1\"");
    assert_refused("-c 99999999999999999999 app", "--launch-count");
    assert_refused("--devices 64 app", "\"64\" is not valid, give N[,N]: numbers of CUDA devices, from 0 to 63");
    assert_refused("--devices= app", "--devices");
    assert_refused("--set , app", "--set");
    assert_refused("--page detail app", "details|raw|summary|census|");
    assert_refused("--replay-mode repeat app", "give kernel|multiplex|auto|application|range|app-range");
    assert_refused("--graph-profiling none app", "give node|graph");
    assert_refused("--multiplex-samples 0 app", "N is from 1 to 100000");
    assert_refused("--replay-mode kernel --multiplex-samples 5 app", "give --replay-mode auto or multiplex");
    assert_refused("--csv=yes app", "takes no argument");
    assert_refused("--set", "--set needs an argument");
    assert_refused("-k", "--kernel-name needs an argument");
    assert_refused("--kernel-name= app", "--kernel-name");
}

/* Somebody has forgotten the value. */
TEST(the_next_option_is_no_value)
{
    assert_refused("report r.kprof --html -f", "--html needs an argument: FILE; \"-f\" looks like an option: give "
                                               "--html=-f if it is the argument");
    assert_refused("-o --csv app", "--export needs an argument: FILE; \"--csv\" looks like an option");
    assert_refused("-k -c 1 app", "--kernel-name needs an argument: NAME");
    assert_refused("--metrics -- app", "--metrics needs an argument: NAME[,NAME]; \"--\"");
    assert_refused("--section-folder -v app", "give --section-folder=-v if it is the argument");
    assert_refused("-c -.5 app", "--launch-count: \"-.5\" is not valid, give N");
    static const char *const chosen[] = {"--page", "--launch-count", "--max-passes", "--budget", "--devices"};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) { /* it could not be the argument of these */
        char line[64];
        snprintf(line, sizeof line, "%s --csv app", chosen[i]);
        assert_refused(line, "needs an argument: ");
        assert_refused(line, "; \"--csv\" looks like an option");
        assert_null(strstr(captured.last, "if it is the argument"));
    }
    assert_int_equal(parse("report r.kprof --html=-f"), KPROF_OK);
    assert_string_equal(options.html_path, "-f");
    assert_int_equal(parse("-o-f --log-file - app"), KPROF_OK);
    assert_string_equal(options.export_path, "-f");
    assert_string_equal(options.log_file, "-");
    assert_int_equal(parse("--complete --page"), KPROF_OK);
    assert_string_equal(options.complete, "--page");
}

TEST(values_of_ncu_have_hints)
{
    assert_int_equal(parse("--replay-mode application app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(options.replay_choice, KPROF_REPLAY_APPLICATION);
    assert_int_equal(options.run_match, KPROF_MATCH_GRID);
    assert_int_equal(options.run_order, KPROF_ORDER_BALANCED);
    assert_int_equal(parse("--replay-mode application --app-replay-match all --app-replay-mode relaxed "
                           "--app-replay-buffer memory app"),
                     KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(options.run_match, KPROF_MATCH_ALL);
    assert_int_equal(options.run_order, KPROF_ORDER_RELAXED);
    assert_int_equal(options.buffers_in_memory, 1);
    assert_refused("--replay-mode application --census app", "does not go with --census");
    assert_refused("--replay-mode application --armed no app", "does not go with --armed no");
    assert_refused("--replay-mode application --budget 3 app", "limit the runs with --max-passes");
    assert_refused("--replay-mode application --multiplex-samples 3 app", "give --replay-mode auto or multiplex");
    assert_int_equal(parse("--clock-control None --cache-control NONE --apply-rules oN --filter-mode Per-GPU app"),
                     KPROF_OK);
    assert_int_equal(options.cache_control, KPROF_CACHE_FLUSH_NONE);
    assert_true(options.apply_rules && options.filter.filter_mode == KPROF_FILTER_PER_DEVICE);
    assert_int_equal(parse("--filter-mode per-launch-config -c 3 app"), KPROF_OK);
    assert_int_equal(options.filter.filter_mode, KPROF_FILTER_PER_CONFIG);
    assert_int_equal(options.most_launches, 0); /* nobody knows how many configurations there will be */
    assert_int_equal(parse("-c 3 app"), KPROF_OK);
    assert_int_equal(options.most_launches, 3);
    assert_int_equal(parse("--print-summary per-gpu app"), KPROF_OK);
    assert_int_equal(options.group_by, KPROF_GROUP_DEVICE);
    assert_refused("--print-source tileir app", "give sass|ptx|cuda|cuda,sass|sass,cuda: kprof keeps no tile IR");
    assert_null(strstr(captured.last, "did you mean"));
    assert_refused("--apply-rules maybe app", "give yes|no");
}

TEST(formats_of_other_commands_are_named)
{
    assert_refused("export r.kprof --to csv",
                   "give long|wide|jsonl|prometheus|perfetto|chrome|timeline|parquet|folded|instructions|nsys-sqlite: "
                   "long and wide are CSV, and kprof report FILE --csv prints a page as CSV");
    assert_refused("export r.kprof --to html", "kprof report FILE --html OUT.html");
    assert_refused("export r.kprof --to json", "kprof report FILE --json");
    assert_refused("export r.kprof --to markdown", "kprof report FILE --markdown");
    assert_refused("export r.kprof --to perfeto", "did you mean perfetto?");
}

TEST(misspelt_choices_find_their_word)
{
    assert_refused("--page sourc app", "did you mean source?");
    assert_refused("--width wide app", "give N: a whole number");
    assert_refused("--warp-sampling-interval 31 app", "N is from 0 to 26");
    assert_null(strstr(captured.last, "did you mean"));
    assert_refused("-w", "--width needs an argument: N");
    assert_refused("-w ./app", "--width: \"./app\" is not valid, give N: a whole number");
    assert_command("-v", "version", NULL);
}

TEST(kinds_of_call_stacks_add_up)
{
    static const char *const lines[] = {"--call-stack-type native --call-stack-type python app",
                                        "--call-stack-type Python, --call-stack-type=native,native app",
                                        "--call-stack-type both app", "--call-stack-type python,both app"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_equal(parse(lines[i]), KPROF_OK);
        assert_int_equal(options.call_stack_type, KPROF_CALL_STACK_BOTH);
    }
    assert_int_equal(parse("--call-stack-type none,none app"), KPROF_OK);
    assert_int_equal(options.call_stack_type, 0);
    assert_refused("--call-stack-type native --call-stack-type none app", "none excludes the others");
    assert_refused("--call-stack-type none --call-stack-type native app", "none excludes the others");
    assert_refused("--call-stack-type none,native app", "none excludes the others");
    assert_refused("--call-stack-type native,pyton app", "\"pyton\" is not valid");
    assert_non_null(strstr(captured.last, "did you mean python?"));
    assert_refused("--call-stack-type , app", "\",\" is not valid");
}

/* Which of two values counts is anybody's guess. */
TEST(options_of_one_value_take_one)
{
    assert_refused("-k add,scale app", "one pattern takes kernels of several names: -k \"regex:^(add|scale)$\"");
    assert_refused("report r.kprof --kernel-name-base mangled -k add,scale", "\"regex:^(add|scale)$\"");
    assert_int_equal(parse("--kernel-name-base demangled -k f(int,int) app"), KPROF_OK);
    assert_int_equal(parse("-k regex:a{1,2} app"), KPROF_OK);
    assert_refused("-k add -k scale app", "--kernel-name is given as \"add\" and as \"scale\"; give it once");
    assert_refused("-c 1 --launch-count=2 app", "--launch-count is given as \"1\" and as \"2\"; give it once");
    assert_refused("--page raw --page details app", "--page is given as");
    assert_refused("-o a -o b app", "--export is given as");
    assert_int_equal(parse("-k add -k add -c 2 -c 2 app"), KPROF_OK);
    assert_string_equal(options.filter.kernel, "add");
    assert_int_equal(parse("--set full --set basic --metrics a --metrics b --devices 0 --devices 1 app"), KPROF_OK);
    assert_int_equal(parse("-k add app -k scale"), KPROF_OK);
}

TEST(unknown_options)
{
    assert_refused("--kernal-name x app", "did you mean --kernel-name?");
    assert_refused("--metrisc x app", "did you mean --metrics?");
    assert_refused("--colour never app", "did you mean --color?");
    assert_refused("--zzzzzzzzzzzz app", "kprof --help");
    assert_refused("--nothing-like-it app", "kprof --help");
    assert_refused("doctor --nothing-like-it", "kprof doctor --help");
    assert_refused("merge a b -o c --jsonn", "kprof merge --help"); /* it has no --json */
    assert_refused("trace --metrisc x app", "kprof trace --help");
    assert_refused("stats r.kprof -Z", "kprof stats --help");
    assert_refused("-Z app", "-Z");
    assert_refused("-set full app", "-set: long options have two dashes; write --set");
    assert_refused("-k=gemm app", "-k=gemm: no \"=\" follows a letter; write -k gemm");
    assert_refused("-fo=x app", "-fo=x: no \"=\" follows a letter; write -o x");
    assert_refused("trace -t=cuda app", "-t=cuda: no \"=\" follows a letter; write -t cuda");
    assert_refused("-page=raw app", "-page: long options have two dashes; write --page");
    assert_refused("-print-gpu-trace app", "-print-gpu-trace: long options have two dashes; write --print-gpu-trace");
    assert_refused("-kernels k app", "-kernels: long options have two dashes; write --kernels");
    assert_refused("-events=e app", "-events: long options have two dashes; write --events");
    assert_refused("--=x app", "\"--=x\" names no option");
    assert_refused("--launch-s 1 app", "--launch-skip");
    assert_refused("--preload-lib x app", "--preload-library x: this option of ncu is not supported");
    assert_refused("--warp-sampling-intervall 1 app",
                   "unknown option --warp-sampling-intervall; did you mean --warp-sampling-interval?");
}

static char files[] = "/tmp/kprof-options-XXXXXX";

/* Write a text to a file of that name in a folder of the test. */
static void write_file(const char *name, const char *text)
{
    char path[sizeof files + 32];
    snprintf(path, sizeof path, "%s/%s", files, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(words_of_files)
{
    char line[200];
    write_file("own", "--metrics 'a, b'\n\t-k \"a b\"\n-c");
    snprintf(line, sizeof line, "--csv @%s/own 3 -s 1 app @x", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_string_equal(options.filter.kernel, "a b");
    assert_int_equal(options.selection.metrics.count, 2);
    assert_true(options.filter.launch_count == 3 && options.filter.launch_skip == 1);
    assert_string_equal(options.application[0], "app");
    assert_string_equal(options.application[1], "@x");
    assert_string_equal(options.application[-1], "1");
    assert_string_equal(options.words[1], "--csv");
    assert_int_equal(parse("-- @x"), KPROF_OK);
    assert_string_equal(options.application[0], "@x");
    assert_int_equal(parse("-o @x app"), KPROF_OK);
    assert_string_equal(options.export_path, "@x");
    write_file("app", "app 1");
    snprintf(line, sizeof line, "@%s/app 2", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_string_equal(options.application[2], "2");
    snprintf(line, sizeof line, "@%s/itself", files);
    write_file("itself", line);
    assert_refused(line, "options from more than 64 files; does a file name itself?");
    snprintf(line, sizeof line, "@%s/none app", files);
    assert_refused(line, "/none: No such file or directory; \"-- @FILE\" starts a program whose name begins so");
    snprintf(line, sizeof line, "@%s app", files);
    assert_refused(line, "Is a directory");
    assert_int_equal(parse("@/dev/null --config-file-path /dev/null app"), KPROF_OK);
    assert_refused("@/dev/zero app", "is no file of options: it is longer than 1 MiB, or no text");
    write_file("open", "--set 'basic");
    snprintf(line, sizeof line, "@%s/open app", files);
    assert_refused(line, "/open: a quote does not end");
    char many[70000];
    for (size_t i = 0; i + 1 < sizeof many; i++)
        many[i] = i % 2 ? ' ' : 'x';
    many[sizeof many - 1] = '\0';
    write_file("many", many);
    snprintf(line, sizeof line, "@%s/many", files);
    assert_int_equal(parse(line), KPROF_OK);
    snprintf(line, sizeof line, "@%s/twice", files);
    snprintf(many, sizeof many, "--csv @%s/twice ", files);
    const size_t length = strlen(many);
    size_t end = length;
    for (; end + length < sizeof many; end += length)
        memcpy(many + end, many, length);
    many[end] = '\0';
    write_file("twice", many);
    assert_refused(line, "/twice: files have more than 65536 words");
    snprintf(line, sizeof line, "%s/pipe", files);
    assert_int_equal(mkfifo(line, 0600), 0);
    snprintf(line, sizeof line, "@%s/pipe app", files);
    assert_refused(line, "/pipe is a pipe to which nobody writes");
    snprintf(line, sizeof line, "--config-file-path %s/pipe app", files);
    assert_refused(line, "/pipe is a pipe to which nobody writes");
}

TEST(configuration_of_ncu)
{
    char line[200];
    write_file("c", "; a comment\n[launch-and-attach , Import]\n -c = 1 \n--section=LaunchStats, Occupancy\r\n"
                    "--nvtx-include = a/, b/\n# and\n[Import]\n--open-in-ui\n-c=2\n[Query]\n--chips=GH100\n"
                    "--query-metrics-mode = all\n[List]\n--set = full\n[Attach]\n--hostname=x\n");
    snprintf(line, sizeof line, "--config-file-path %s/c app -c 7", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_int_equal(options.filter.launch_count, 1);
    assert_int_equal(options.selection.sections.count, 2);
    assert_int_equal(options.filter.nvtx_include.count, 2);
    assert_string_equal(options.filter.nvtx_include.items[1], "b/");
    assert_string_equal(options.application[0], "app");
    assert_string_equal(options.application[2], "7");
    assert_string_equal(options.application[-1], strchr(options.words[6], '/'));
    assert_non_null(strstr(captured.last, "/c adds to the command line: -c1 '--section=LaunchStats, Occupancy' "));
    snprintf(line, sizeof line, "-q --config-file-path %s/c -c 7 --section SpeedOfLight app", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(options.filter.launch_count, 7);
    assert_int_equal(options.selection.sections.count, 3);
    snprintf(line, sizeof line, "--list-sections --config-file-path %s/c", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_int_equal(options.selection.sets.count, 1);
    snprintf(line, sizeof line, "--query-metrics --config-file-path %s/c", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_int_equal(options.chips.count, 1);
    for (const char *const *what = (const char *[]){"app", "-i r.kprof", "--list-sections", NULL}; *what; what++) {
        snprintf(line, sizeof line, "--config-file no --config-file-path %s/c %s", files, *what);
        assert_int_equal(parse(line), KPROF_OK);
        assert_int_equal(options.selection.sections.count, 0);
        assert_non_null(strstr(captured.last, "--config-file-path has no effect beside --config-file no"));
    }
    snprintf(line, sizeof line, "-i r.kprof --config-file-path %s/c", files); /* a line and a heading cannot both */
    assert_int_equal(parse(line), KPROF_USAGE);
    assert_non_null(strstr(captured.last, "/c has that under [Import]"));
    static const char *const bad[][2] = {{"-c = 1", "\"-c = 1\" is no option below a heading"},
                                         {"[Import]\nc = 1", "\"c = 1\" is no option below a heading"},
                                         {"[Import]\n-", "\"-\" is no option below a heading"},
                                         {"[Import]\n--=x", "\"--=x\" is no option below a heading"},
                                         {"[Launch-and-attach]\n--nothing", "has that under [Launch-and-attach]"}};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        write_file("bad", bad[i][0]);
        snprintf(line, sizeof line, "--config-file-path %s/bad app", files);
        assert_int_equal(parse(line), KPROF_USAGE);
        assert_non_null(strstr(captured.last, bad[i][1]));
    }
    static const char *const alone[] = {
        "--list-sets",         "--query-metrics",         "--help",   "-h", "--import = x", "-i = x",
        "--config-file = yes", "--config-file-path = /x", "--version"};
    for (size_t i = 0; i < LENGTH(alone); i++) {
        char text[80];
        snprintf(text, sizeof text, "[Launch-and-attach]\n%s", alone[i]);
        write_file("bad", text);
        snprintf(line, sizeof line, "--config-file-path %s/bad app", files);
        assert_int_equal(parse(line), KPROF_USAGE);
        assert_true(captured.count >= 2);
    }
    write_file("quoted", "[Launch-and-attach]\n--section = \"Occupancy\"\n-k = 'a b'\n");
    snprintf(line, sizeof line, "--config-file-path %s/quoted app", files);
    assert_int_equal(parse(line), KPROF_OK);
    assert_string_equal(options.selection.sections.items[0], "Occupancy");
    assert_string_equal(options.filter.kernel, "a b");
    assert_refused("--config-file-path /none app", "reading options from /none: No such file or directory");
    assert_refused("--config-file maybe app", "--config-file: \"maybe\" is not valid, give yes|no");
}

static int make_files(void **state)
{
    return mkdtemp(files) ? 0 : -1;
}

static int remove_files(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", files);
    return system(command);
}

static const char *const ncu_options[] = {"help h",
                                          "version v",
                                          "mode",
                                          "port p",
                                          "max-connections",
                                          "config-file",
                                          "config-file-path",
                                          "mps",
                                          "mps-num-clients",
                                          "mps-timeout",
                                          "check-exit-code",
                                          "forward-signals",
                                          "injection-path-32",
                                          "injection-path-64",
                                          "preload-library",
                                          "call-stack",
                                          "call-stack-type",
                                          "nvtx",
                                          "nvtx-push-pop-scope",
                                          "support-32bit",
                                          "target-processes",
                                          "target-processes-filter",
                                          "null-stdin",
                                          "hostname",
                                          "process-id",
                                          "communicator",
                                          "communicator-num-peers",
                                          "communicator-tcp-num-peers",
                                          "communicator-tcp-hostname",
                                          "communicator-tcp-port",
                                          "communicator-shmem-num-peers",
                                          "lockstep-kernel-launch",
                                          "lockstep-nvtx-include",
                                          "lockstep-nvtx-exclude",
                                          "kernel-name k",
                                          "kernel-name-base",
                                          "kernel-id",
                                          "launch-skip s",
                                          "launch-count c",
                                          "launch-skip-before-match",
                                          "filter-mode",
                                          "devices",
                                          "nvtx-include",
                                          "nvtx-exclude",
                                          "range-filter",
                                          "native-include",
                                          "native-exclude",
                                          "python-include",
                                          "python-exclude",
                                          "rename-kernels",
                                          "rename-kernels-export",
                                          "rename-kernels-path",
                                          "profile-from-start",
                                          "disable-profiler-start-stop",
                                          "kill",
                                          "replay-mode",
                                          "app-replay-buffer",
                                          "app-replay-match",
                                          "app-replay-mode",
                                          "range-replay-options",
                                          "graph-profiling",
                                          "cache-control",
                                          "clock-control",
                                          "pipeline-boost-state",
                                          "pm-sampling-interval",
                                          "pm-sampling-buffer-size",
                                          "pm-sampling-max-passes",
                                          "warp-samples-per-interval",
                                          "disable-pm-warp-sampling",
                                          "warp-sampling-interval",
                                          "warp-sampling-max-passes",
                                          "warp-sampling-buffer-size",
                                          "sampling-interval",
                                          "sampling-max-passes",
                                          "sampling-buffer-size",
                                          "set",
                                          "list-sets",
                                          "section",
                                          "list-sections",
                                          "section-folder",
                                          "section-folder-recursive",
                                          "section-folder-restore",
                                          "metrics",
                                          "disable-extra-suffixes",
                                          "metric-distribution-groups",
                                          "list-metrics",
                                          "query-metrics",
                                          "query-metrics-mode",
                                          "query-metrics-collection",
                                          "chips",
                                          "list-chips",
                                          "list-injection-path-64",
                                          "apply-rules",
                                          "rule",
                                          "list-rules",
                                          "import-source",
                                          "source-folders",
                                          "import-sass",
                                          "export o",
                                          "force-overwrite f",
                                          "import i",
                                          "open-in-ui",
                                          "log-file",
                                          "quiet",
                                          "verbose",
                                          "page",
                                          "csv",
                                          "print-summary",
                                          "print-details",
                                          "print-metric-name",
                                          "print-units",
                                          "print-fp",
                                          "print-kernel-base",
                                          "print-metric-instances",
                                          "print-nvtx-rename",
                                          "print-rule-details",
                                          "print-metric-attribution",
                                          "print-source",
                                          "resolve-source-file"};

static const kprof_option_row *row_of(const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return letter == 0 || row->letter == letter ? row : NULL;
    }
    return NULL;
}

/* Parse the option with an argument, if it takes one, that asks for nothing that kprof does. */
static kprof_status parse_ncu(const char *name, const kprof_other_option *option)
{
    char line[128];
    snprintf(line, sizeof line, "--%s%s app", name, option->takes_argument ? " else" : "");
    return parse(line);
}

/* kprof has each option of ncu, with its letter, or says that it has not; and never both. One that changes no value is
 * taken, with one warning. */
TEST(every_option_of_ncu_is_answered)
{
    for (size_t i = 0; i < LENGTH(ncu_options); i++) {
        char name[64];
        size_t length = strcspn(ncu_options[i], " ");
        char letter = ncu_options[i][length] ? ncu_options[i][length + 1] : 0;
        snprintf(name, sizeof name, "%.*s", (int)length, ncu_options[i]);
        bool is_known = row_of(name, length, letter) != NULL || kprof_ncu_other_name(name) != NULL;
        const kprof_other_option *missing = kprof_ncu_option_find(name);
        if (is_known == (missing != NULL))
            fail_msg("ncu's --%s is %s", name,
                     is_known ? "there and said to be missing" : "neither there nor answered");
        if (is_known)
            continue;
        bool is_same;
        missing = kprof_other_answer(missing, missing->takes_argument ? "else" : NULL, &is_same);
        const bool is_refused = missing->effect == KPROF_EFFECT_REFUSED && !is_same;
        assert_int_equal(parse_ncu(name, missing), is_refused ? KPROF_USAGE : KPROF_OK);
        assert_int_equal(captured.count, is_same || missing->effect == KPROF_EFFECT_KEPT ? 0 : 1);
        if (captured.count > 0)
            assert_non_null(
                strstr(captured.last, is_refused ? "this option of ncu is not supported; " : "has no effect: "));
        assert_true(is_refused || options.application);
        assert_true(letter == 0 || kprof_ncu_option_of_letter(letter) == missing);
    }
}

TEST(options_of_nsys)
{
    assert_int_equal(parse("trace -t cuda,nvtx -w true -xtrue -f true --wait all --export=sqlite -o r app"), KPROF_OK);
    assert_true(options.force_overwrite && !options.starts_unarmed && captured.count == 0);
    assert_string_equal(options.export_path, "r");
    assert_string_equal(options.application[0], "app");
    assert_int_equal(parse("trace -f true"), KPROF_OK); /* which is the application */
    assert_true(options.force_overwrite);
    assert_string_equal(options.application[0], "true");
    assert_int_equal(parse("trace --wait app"), KPROF_OK);
    assert_true(options.starts_unarmed);
    assert_int_equal(parse("trace -c nvtx -p a/b@c app"), KPROF_OK);
    assert_string_equal(options.filter.step, "c@a\\/b/");
    assert_string_equal(options.filter.schedule, "0,0,0,1,1");
    assert_int_equal(parse("trace -p s.1@* --capture-range-end=repeat:2 app"), KPROF_OK);
    assert_string_equal(options.filter.step, "regex:.*@^s\\.1$/");
    assert_string_equal(options.filter.schedule, "0,0,0,2,1");
    assert_int_equal(parse("trace -c nvtx -p s --capture-range-end repeat app"), KPROF_OK);
    assert_int_equal(options.filter.nvtx_include.count, 2);
    assert_string_equal(options.filter.nvtx_include.items[0], "s");
    assert_string_equal(options.filter.nvtx_include.items[1], "s/");
    assert_int_equal(parse("trace -c cudaProfilerApi --cuda-graph-trace=graph --python-backtrace=cuda app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_A_START_CALL);
    assert_int_equal(options.graph_profiling, KPROF_GRAPH_WHOLE);
    assert_int_equal(options.call_stack_type, KPROF_CALL_STACK_BOTH);
    assert_int_equal(parse("trace -s cpu --backtrace=dwarf -s cpu app"), KPROF_OK);
    assert_int_equal(captured.count, 1);
    assert_non_null(strstr(captured.last, "--sample, --backtrace have no effect: "));
    assert_int_equal(parse("stats r -f csv --force-overwrite true"), KPROF_OK);
    assert_true(options.force_overwrite);
    assert_string_equal(options.stats_formats, "csv");
    assert_int_equal(parse("stats r --timeunit milliseconds"), KPROF_OK);
    assert_int_equal(options.time_unit, 2);
    assert_int_equal(parse("trace -t cuda,osrt,MPI --trace=nvtx,ucx -t osrt,mpi app"), KPROF_OK);
    assert_int_equal(captured.count, 1);
    assert_non_null(strstr(captured.last, "--trace osrt,MPI, --trace ucx, --trace osrt,mpi have no effect: "));
    assert_refused("trace -t cuda,osr,foo app", "--trace: \"osr\" is not valid, give cuda|cuda-hw|nvtx|none|cublas|");
    assert_non_null(strstr(captured.last, "; did you mean osrt?"));
    assert_refused("trace --start-later maybe app", "--start-later: \"maybe\" is not valid, give false|no|");
    assert_refused("-t cuda app", "unknown option -t"); /* they are of three commands */
    assert_refused("trace --sample", "--sample needs an argument");
}

TEST(options_of_nvprof)
{
    assert_int_equal(parse("--analysis-metrics --profile-child-processes --output-profile x app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_string_equal(options.selection.sets.items[0], "full");
    assert_string_equal(options.export_path, "x");
    assert_int_equal(parse("--demangling off --unified-memory-profiling off --concurrent-kernels on app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(options.kernel_base, KPROF_NAME_MANGLED);
    assert_int_equal(parse("--demangling on --aggregate-mode on app"), KPROF_OK);
    assert_int_equal(options.kernel_base, KPROF_NAME_DEMANGLED);
    assert_int_equal(parse("--import-profile x.kprof"), KPROF_OK);
    assert_string_equal(options.argument, "x.kprof");
    assert_refused("--print-gpu-trace app",
                   "--print-gpu-trace: this option of nvprof is not supported; kprof trace ./app");
    assert_refused("--kernels foo app",
                   "--kernels foo: this option of nvprof is not supported; use --kernel-name NAME");
    assert_refused("--events warps_launched app", "of nvprof is not supported; use --metrics");
    assert_refused("-e warps_launched app", "of nvprof is not supported; use --metrics");
    assert_refused("-m all app", "of nvprof is not supported; use --metrics");
    assert_refused("-u ms app", "of nvprof is not supported; --print-units base prints ns");
    assert_refused("--timeout 5 app", "timeout SECONDS kprof ... ends the application");
    assert_refused("--unified-memory-profiling per-process-device app", "kprof trace --unified-memory ./app");
    assert_refused("--devices all app", "kprof measures the launches on all devices: leave the option out");
}

TEST(samples_over_time)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(options.timeline_interval_ns, 0);
    assert_int_equal(parse("--pm-sampling-interval 2000 --pm-sampling-buffer-size 8M --pm-sampling-max-passes 3 app"),
                     KPROF_OK);
    assert_int_equal(options.timeline_interval_ns, 2000);
    assert_true(options.timeline_buffer_bytes == 8 << 20);
    assert_int_equal(options.selection.most_timelines, 3);
    assert_int_equal(parse("--pm-sampling-interval 0 --pm-sampling-buffer-size 0 --pm-sampling-max-passes auto app"),
                     KPROF_OK);
    assert_int_equal(options.timeline_interval_ns, 0);
    assert_true(options.timeline_buffer_bytes == 0);
    assert_int_equal(options.selection.most_timelines, 0);
    assert_refused("--pm-sampling-interval 2000000000 app", "--pm-sampling-interval");
    assert_refused("--pm-sampling-buffer-size none app", "--pm-sampling-buffer-size");
}

TEST(options_of_ncu_without_effect)
{
    assert_int_equal(
        parse("--check-exit-code yes --forward-signals --config-file off --target-processes-filter all app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(parse("--import-source no --kill 0 --print-details ALL --mode launch-and-attach -p 5 app"),
                     KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(parse("--import-source yes --source-folder . --page source --print-source=sass app"), KPROF_OK);
    assert_int_equal(captured.count, 0);
    assert_int_equal(options.import_source, 1);
    assert_int_equal(options.import_sass, 0);
    assert_int_equal(
        parse("--disable-extra-suffixes --app-replay-mode strict --pm-sampling-interval 0 --import-sass yes app"),
        KPROF_OK);
    assert_int_equal(options.import_sass, 1);
    assert_int_equal(captured.count, 2);
    assert_string_equal(options.application[0], "app");
    assert_int_equal(parse("app --kill yes"), KPROF_OK); /* the application's own */
    assert_int_equal(captured.count, 0);
    assert_refused("--kill", "--kill needs an argument");
    assert_refused("--app-replay-buffer --csv app", "--app-replay-buffer needs an argument");
    assert_refused("--call-stack=1 app", "--call-stack takes no argument");
    assert_refused("--lockstep x app",
                   "could be --lockstep-kernel-launch, --lockstep-nvtx-exclude or --lockstep-nvtx-include");
}

TEST(all_refusals_of_a_line)
{
    assert_int_equal(parse("--mps client --print-source tileir --hostname x --preload-library a -c x --csv app"),
                     KPROF_USAGE);
    assert_int_equal(captured.count, 5);
    assert_non_null(strstr(captured.last, "--launch-count: \"x\" is not valid"));
    assert_int_equal(parse("--mps client --unheard-of x --print-source tileir app"), KPROF_USAGE);
    assert_int_equal(captured.count, 2); /* whose argument x is, nobody knows */
    assert_refused("--mps control app", "--mps control: this option of ncu is not supported; kprof does not support");
}

TEST(ending_the_application)
{
    static const char *const silent[] = {"-c 5 --kill yes app", "-c 5 --kill=on app", "--kill no app",
                                         "--filter-mode per-gpu --devices 0,1 -c 1 --kill yes app"};
    static const char *const idle[] = {"--kill yes app", "--filter-mode per-gpu -c 1 --kill yes app",
                                       "--filter-mode per-launch-config -c 1 --kill yes app"};
    for (size_t i = 0; i < LENGTH(silent); i++) {
        assert_int_equal(parse(silent[i]), KPROF_OK);
        assert_int_equal(captured.count, 0);
        assert_int_equal(options.kills, i != 2);
    }
    for (size_t i = 0; i < LENGTH(idle); i++) {
        assert_int_equal(parse(idle[i]), KPROF_OK);
        assert_non_null(strstr(captured.last, "--kill has no effect: nothing tells when all launches are measured"));
        assert_int_equal(strstr(captured.last, "without --filter-mode per-launch-config") != NULL, i == 2);
    }
}

/* A census alone measures nothing; with something to measure there is a second run. */
TEST(a_census)
{
    static const struct {
        const char *line;
        bool is_measured;
        int mode, page;
        uint64_t count;
    } rows[] = {
        {"--census app", false, KPROF_FILTER_GLOBAL, KPROF_PAGE_CENSUS, 0},
        {"--census -o x app", false, KPROF_FILTER_GLOBAL, KPROF_UNSET, 0},
        {"--census --top 6 app", true, KPROF_FILTER_PER_CONFIG, KPROF_PAGE_SUMMARY, 1},
        {"--census --top 6 -c 5 app", true, KPROF_FILTER_GLOBAL, KPROF_PAGE_SUMMARY, 5},
        {"--census --top 6 --filter-mode per-gpu -o x app", true, KPROF_FILTER_PER_DEVICE, KPROF_UNSET, 0},
        {"--census --set full app", true, KPROF_FILTER_GLOBAL, KPROF_PAGE_SUMMARY, 0},
        {"--census --page session app", false, KPROF_FILTER_GLOBAL, KPROF_PAGE_SESSION, 0},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        assert_int_equal(parse(rows[i].line), KPROF_OK);
        assert_true(options.census);
        assert_int_equal(options.is_measured, rows[i].is_measured);
        assert_int_equal(options.filter.filter_mode, rows[i].mode);
        assert_int_equal(options.filter.launch_count, rows[i].count);
        assert_int_equal(options.page, rows[i].page);
    }
    assert_refused("--census --graph-profiling graph app", "leave one of them out");
    assert_refused("--census --replay-mode range --nvtx-include a/ app", "measures ranges; leave one of them out");
    assert_refused("--census --trace app", "--census alone measures none");
    assert_refused("--census --page details app", "--census alone measures no launch that --page would show");
    assert_refused("--census --print-summary per-gpu app", "no launch that --print-summary would show");
    assert_refused("--census --armed no --top 3 app", "--census with --armed no counts launches alone");
    assert_refused("report x.kprof --page census --sort time", "--page census ranks kernels by their time");
    assert_refused("report x.kprof --page census --filter duration>1us", "leave it out of --page session");
}

/* A line says once of each option that it has no effect beside the others. */
TEST(options_without_effect)
{
    static const struct {
        const char *line, *told;
    } rows[] = {
        {"--kernel-name-base mangled app", "--kernel-name-base has no effect without --kernel-name"},
        {"--kernel-name-base mangled -k x app", NULL},
        {"report x.kprof --filter-mode per-gpu", "--filter-mode has no effect without --launch-skip"},
        {"report x.kprof --filter-mode per-gpu -c 1", NULL},
        {"--filter-mode per-gpu --plan app", NULL}, /* only those of the command */
        {"--kernel-name-base function --app-replay-match grid --app-replay-mode balanced --app-replay-buffer file app",
         NULL},
        {"--range-replay-options none --pipeline-boost-state dynamic --print-metric-instances none app", NULL},
        {"trace --pm-sampling-interval auto --pm-sampling-buffer-size 0 app", NULL},
        {"--app-replay-match name app", "--app-replay-match has no effect without --replay-mode application"},
        {"trace --pm-sampling-interval 1000 app", "--pm-sampling-interval has no effect without --pm-sampling"},
        {"report x.kprof --csv-safe --json", "--csv-safe has no effect but in CSV"},
        {"export x.kprof --to wide --csv-safe", NULL},
        {"list metrics --set full", "--set has no effect: kprof list collected"},
        {"list metrics --metrics dram__bytes", NULL},
        {"list sets --query-metrics-mode all", "--query-metrics-mode has no effect: kprof list metrics takes it"},
        {"list sections --chips GH100", "--chips has no effect: this list is the same for all chips"},
        {"plan --chips GH100 --devices 1 --set full", "--devices has no effect beside --chips"},
        {"list sets --chips GH100", NULL},
        {"list collected --set full", NULL},
        {"report x.kprof --page summary --section Occupancy", "--section has no effect on this page: "},
        {"--page summary --section Occupancy app", NULL},
        {"report x.kprof --page session -k x", "--kernel-name has no effect on the census and session pages"},
        {"report x.kprof --page session --launch 1", "--launch has no effect on the census and session pages"},
        {"report x.kprof --inlined caller", "--inlined has no effect without --page source"},
        {"report x.kprof --print-source sass --html y", NULL},
        {"report x.kprof --page source --print-source sass --inlined caller",
         "--inlined has no effect on rows of instructions"},
        {"report x.kprof --page source --all --top 3", "--top has no effect beside --all"},
        {"report x.kprof --source-folders .", "--source-folders has no effect without --page source, --html or"},
        {"report x.kprof --source-folders . --page source", NULL},
        {"report x.kprof --source-folders . --html y", NULL},
        {"report x.kprof --source-folders . --baseline y.kprof", NULL},
        {"report x.kprof --page summary --all", "--all has no effect on this page: --top 0 shows all rows"},
        {"report x.kprof --page source --all --json", NULL},
        {"report x.kprof --csv --details-help", "--details-help has no effect but in text"},
        {"report x.kprof --json --details-help", NULL},
        {"report x.kprof --page brief --details-help", "--details-help has no effect on this page: the pages details"},
        {"report x.kprof --page raw --details-help", NULL},
        {"report x.kprof --brief --print-metric-name name", "--print-metric-name has no effect on this page: "},
        {"report x.kprof --page statistics --print-metric-name name", NULL},
        {"report x.kprof --rule Bottleneck --apply-rules no", "--rule has no effect with --apply-rules no"},
        {"report x.kprof --rule Bottleneck --page raw", "--rule has no effect: the pages details"},
        {"report x.kprof --csv --print-units auto", "--print-units has no effect in CSV, which has base units"},
        {"report x.kprof --csv --print-units base", NULL},
        {"report x.kprof --print-units auto", NULL},
        {"report x.kprof --text-layout ncu --details-help", "--details-help has no effect in ncu's layout of text"},
        {"report x.kprof --rule Bottleneck --csv-layout wide", "--rule has no effect: the pages details"},
        {"report x.kprof --rule Bottleneck --page brief", NULL},
        {"-o x --log-file y app", "--log-file has no effect with --export alone, which prints nothing"},
        {"-o x --filter duration>1us app", "--filter has no effect with --export alone"},
        {"-o x --rule Bottleneck app", "--rule has no effect with --export alone"},
        {"--print-source sass app", "--print-source has no effect without --page source"},
        {"--page source --print-source sass app", NULL},
        {"-o x --log-file y --page raw app", NULL},
        {"trace -o x --log-file y app", "--log-file has no effect with --export alone"},
        {"trace -o x --report nvtx_sum --log-file y app", NULL},
        {"trace -o x --stats=true --log-file y app", NULL},
        {"report x.kprof -o y --rule Bottleneck", "--rule has no effect with --export alone"},
        {"report x.kprof -o y --page details --rule Bottleneck --log-file z", NULL},
        {"merge x.kprof y.kprof -o z --log-file l", "--log-file has no effect: kprof merge prints no results"},
        {"ctl start --json", "--json has no effect: kprof ctl status alone prints results"},
        {"ctl status --json", NULL},
        {"ctl status --set full", "--set has no effect on kprof ctl status; kprof ctl start takes it"},
        {"ctl start --set full -o x", NULL},
        {"--allocated 1G app", "--allocated has no effect without --budget or kprof plan"},
        {"--allocated 1G --budget 1 app", NULL},
        {"plan --allocated 1G", NULL},
        {"--section-exclude Occupancy --metrics a app", "--section-exclude has no effect beside metrics alone"},
        {"--section-exclude Occupancy app", NULL},
        {"--census --call-stack app", "--call-stack has no effect: --census alone counts all launches"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        assert_int_equal(parse(rows[i].line), KPROF_OK);
        if (captured.count != (rows[i].told ? 1 : 0) || (rows[i].told && !strstr(captured.last, rows[i].told)))
            fail_msg("\"%s\" told \"%s\"", rows[i].line, captured.last);
    }
    assert_refused("report x.kprof --page source --print-summary per-kernel", "leave it or --page out");
    assert_refused("report x.kprof --brief --print-summary per-kernel", "leave it or --brief out");
    assert_int_equal(parse("report x.kprof --page raw --print-summary per-kernel"), KPROF_OK);
}

TEST(steps_and_ranges)
{
    assert_int_equal(parse("--schedule 10,1,1,3,2 --step step/ --range-filter yes:[1-3]: app"), KPROF_OK);
    assert_string_equal(options.filter.schedule, "10,1,1,3,2");
    assert_string_equal(options.filter.step, "step/");
    assert_string_equal(options.filter.range_filter, "yes:[1-3]:");
    assert_true(options.nvtx);
    assert_int_equal(kprof_filter_check(&options.filter), KPROF_OK);
    assert_int_equal(parse("--schedule 0,0,0,1,1 --kill yes app"), KPROF_OK);
    assert_false(options.nvtx);
    assert_int_equal(captured.count, 0); /* it ends */
    assert_int_equal(parse("--schedule 0,0,0,1,0 --kill yes app"), KPROF_OK);
    assert_non_null(strstr(captured.last, "--kill has no effect"));
    assert_refused("--schedule 1 --schedule 2 app", "is given as");
}

TEST(old_names_and_letters)
{
    assert_int_equal(parse("--o=ts --f --profile-from-start=off app"), KPROF_OK);
    assert_string_equal(options.export_path, "ts");
    assert_true(options.force_overwrite);
    assert_int_equal(parse("--output a --units base --summary per-kernel --kernel-regex-base mangled app"), KPROF_OK);
    assert_string_equal(options.export_path, "a");
    assert_int_equal(options.filter.name_base, KPROF_NAME_MANGLED);
    assert_int_equal(options.page, KPROF_PAGE_STATISTICS);
    assert_int_equal(parse("--kernel-regex ^sum app"), KPROF_OK);
    assert_string_equal(options.filter.kernel, "regex:^sum");
    assert_int_equal(parse("--kernel-regex regex:^sum app"), KPROF_OK);
    assert_string_equal(options.filter.kernel, "regex:^sum");
    assert_int_equal(parse("--kernel-regex-exclude warm|tune app"), KPROF_OK);
    assert_string_equal(options.filter.kernel, "regex:^(?!.*(?:warm|tune))");
    assert_refused("--kernel-regex-exclude a -k b app", "exclude each other");
    assert_refused("--kernel-regex ( app", "--kernel-regex: missing closing parenthesis");
    assert_refused("--kernel-regex-exclude ( app", "--kernel-regex-exclude: missing closing parenthesis");
    assert_refused("--kernel-id ::regex:(: app", "--kernel-id: missing closing parenthesis");
    assert_refused("--k -s 1 app", "--kernel-name needs an argument");
}

#define PARTS(...) ((const char *const[]){__VA_ARGS__})

/* `parts`: the context, stream, name and number that the filter has. */
static void assert_kernel_id(const char *line, const char *const *parts)
{
    assert_int_equal(parse(line), KPROF_OK);
    const kprof_filter_spec *filter = &options.filter;
    const char *const found[] = {filter->context, filter->stream, filter->kernel, filter->invocation};
    for (size_t i = 0; i < LENGTH(found); i++)
        assert_string_equal(found[i] ? found[i] : "", parts[i]);
}

static void assert_no_kernel_id(const char *line, const char *why)
{
    assert_int_equal(parse(line), KPROF_USAGE);
    if (!strstr(captured.last, why))
        fail_msg("%s: %s", line, captured.last);
}

TEST(kernels_by_id)
{
    assert_kernel_id("--kernel-id ::gemm:2 app", PARTS("", "", "gemm", "2"));
    assert_kernel_id("--kernel-id :::1 app", PARTS("", "", "", "1"));
    assert_kernel_id("--kernel-id ::regex:^ns::a: -s 10 app", PARTS("", "", "regex:^ns::a", ""));
    assert_kernel_id("--kernel-id :::.*5|3 app", PARTS("", "", "", ".*5|3"));
    assert_kernel_id("--kernel-id 1:20:gemm_v00:5 app", PARTS("1", "20", "gemm_v00", "5"));
    assert_false(options.nvtx);
    assert_kernel_id("--kernel-id :compute.*:regex:^(?!foo): app", PARTS("", "compute.*", "regex:^(?!foo)", ""));
    assert_true(options.nvtx); /* which names streams */
    assert_refused("--kernel-id gemm app", "write CONTEXT:STREAM:NAME:N");
    assert_refused("--kernel-id ::gemm app", "\"::gemm\": write CONTEXT:STREAM:NAME:N");
    assert_refused("--kernel-id :::: app", "\"::::\": its NAME would be \":\", but no name begins or ends with");
    assert_refused("--kernel-id 1:7:gemm::2 app", "its NAME would be \"gemm:\"");
    assert_refused("--kernel-id :::gemm:2 app", "its NAME would be \":gemm\"");
    assert_kernel_id("--kernel-id ::ns::gemm:2 app", PARTS("", "", "ns::gemm", "2"));
    assert_refused("--kernel-id ::gemm:2 -k gemm app", "exclude each other");
    assert_no_kernel_id("--kernel-id ::gemm:0 app", "\"0\" is no number from 1");
    assert_no_kernel_id("--kernel-id ::gemm:two app", "\"two\" is no number from 1, and no pattern of numbers");
    assert_no_kernel_id("--kernel-id ::gemm:2,5 app", "\"2,5\" is no number from 1, and no pattern of numbers");
    assert_no_kernel_id("--kernel-id ::gemm:[2 app", "at character 3 of the pattern: [2 <-- here");
    assert_no_kernel_id("--kernel-id :(:gemm:2 app", "at character 2 of the pattern: ( <-- here");
}

TEST(calls_of_the_profiler)
{
    assert_int_equal(parse("app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_THE_START);
    static const char *const off[] = {"off", "no", "0", "false", "OFF"};
    for (size_t i = 0; i < LENGTH(off); i++) {
        char line[64];
        snprintf(line, sizeof line, "--profile-from-start %s app", off[i]);
        assert_int_equal(parse(line), KPROF_OK);
        assert_int_equal(options.filter.profiler_calls, KPROF_FROM_A_START_CALL);
    }
    assert_int_equal(parse("--profile-from-start on app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_THE_START);
    assert_int_equal(parse("--disable-profiler-start-stop app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_PROFILER_CALLS_IGNORED);
    assert_refused("--disable-profiler-start-stop --profile-from-start off app", "leave one of them out");
    assert_int_equal(parse("--replay-mode app-range app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_A_START_CALL);
    assert_int_equal(captured.count, 0);
    assert_false(options.filter.measures_ranges);
    assert_int_equal(parse("--replay-mode range --profile-from-start on app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_A_START_CALL);
    assert_int_equal(parse("--replay-mode range --nvtx-include a/ app"), KPROF_OK);
    assert_int_equal(options.filter.profiler_calls, KPROF_FROM_THE_START);
    assert_true(options.filter.measures_ranges && options.nvtx);
    assert_refused("--replay-mode range -k a app", "leave out --kernel-name");
    assert_refused("--replay-mode app-range --native-include a app", "leave out --python-include, --native-include");
    assert_refused("--replay-mode range --kernel-id 1::: app", "leave out --kernel-id");
    assert_refused("--replay-mode range --nvtx-exclude a/ app", "leave out --nvtx-exclude");
    assert_refused("--replay-mode range --disable-profiler-start-stop app", "give --nvtx-include");
}

static void check_hint(const kprof_other_option *option)
{
    for (const char *at = option->text; (at = strstr(at, "--")); at += 2) {
        if (!row_of(at + 2, strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-"), 0))
            fail_msg("the hint for --%s names %s", option->name, at);
    }
}

/* Options that a hint names exist. */
TEST(hints_name_what_there_is)
{
    for (size_t i = 0; i < LENGTH(ncu_options); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(ncu_options[i], " "), ncu_options[i]);
        const kprof_other_option *option = kprof_ncu_option_find(name);
        if (option)
            check_hint(option);
    }
    assert_null(kprof_ncu_option_find("nonsense"));
}

TEST(missing_sources_are_told)
{
    assert_int_equal(parse("report r.kprof --source-folders / --source-folders /none/here --page source"), KPROF_OK);
    assert_int_equal(captured.count, 1);
    assert_non_null(strstr(captured.last, "--source-folders /none/here: No such file or directory"));
    assert_int_equal(parse("report r.kprof --resolve-source-file /none/a.cu --page source"), KPROF_OK);
    assert_non_null(strstr(captured.last, "--resolve-source-file /none/a.cu: No such file or directory"));
    assert_int_equal(parse("report r.kprof --source-folders /etc/passwd --page source"), KPROF_OK);
    assert_non_null(strstr(captured.last, "--source-folders /etc/passwd: Not a directory"));
    assert_int_equal(parse("report r.kprof --resolve-source-file /etc --page source"), KPROF_OK);
    assert_non_null(strstr(captured.last, "--resolve-source-file /etc: Is a directory"));
}

TEST(rows_are_consistent)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        bool is_flag =
            row->type == KPROF_OPTION_FLAG || row->type == KPROF_OPTION_SET || row->type == KPROF_OPTION_ALIAS;
        assert_int_equal(is_flag, row->argument == NULL);
        assert_true(row->type == KPROF_OPTION_CHOICE || row->type == KPROF_OPTION_COUNT ||
                    row->type == KPROF_OPTION_BYTES || !row->choices);
        assert_true(row->type != KPROF_OPTION_CHOICE || row->choices);
        assert_true(row->commands != 0 && row->help[0] != '\0');
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(row->name, kprof_option_rows[j].name);
            assert_true(row->letter == 0 || row->letter != kprof_option_rows[j].letter);
        }
        for (const kprof_option_choice *choice = row->choices; choice && choice->word; choice++)
            assert_non_null(strstr(row->argument, strspn(choice->word, "0123456789") ? "N" : choice->word));
    }
}

static void check_listed(const kprof_command *command, const char *text)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        char word[64];
        snprintf(word, sizeof word, " --%s ", row->name);
        const bool is_its_own = (row->commands & command->mask) != 0 || command == kprof_commands; /* which lists all */
        if ((strstr(text, word) != NULL) != is_its_own)
            fail_msg("help of \"%s\": --%s", command->name, row->name);
    }
}

static void check_width(const char *text, size_t columns)
{
    for (size_t length; *text; text += length + 1) {
        length = strcspn(text, "\n");
        if (length > columns)
            fail_msg("longer than %zu columns: %.*s", columns, (int)length, text);
    }
}

TEST(help_lists_what_a_command_takes)
{
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++) {
        char *text = NULL, line[64], usage[256];
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        const kprof_command *command = &kprof_commands[i];
        snprintf(line, sizeof line, i ? "help %s" : "--help", command->name);
        assert_int_equal(parse(line), KPROF_OK);
        kprof_help_print(&options, out);
        fclose(out);
        snprintf(usage, sizeof usage, "usage: kprof%s%s%s%s", i ? " " : "", command->name, *command->usage ? " " : "",
                 command->usage);
        assert_memory_equal(text, usage, strlen(usage));
        check_listed(command, text);
        check_width(text, 100);
        free(text);
    }
}

/* Return the text that "kprof LINE" prints for shells; caller frees. */
static char *complete(const char *line)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(parse(line), KPROF_OK);
    assert_int_equal(kprof_complete(&options, out), KPROF_OK);
    fclose(out);
    return text;
}

TEST(completion_words)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {{"--complete --csv-layout", "long\nwide\nncu\n"},
                 {"--complete --replay-batch", "auto\n"},
                 {"--complete --witnesses", "all\nauto\n"},
                 {"--complete --kernel-name", ""},
                 {"--complete -o", ""},
                 {"--complete line -- --page r", "raw\n"},
                 {"--complete line -- --page=r", "--page=raw\n"},
                 {"--complete line -- report r.kprof --page s", "summary\nstatistics\nsource\nsources\nsession\n"},
                 {"--complete line -- run report r", ":application 2\n"},
                 {"--complete line -- -i r", ":files .kprof\n"},
                 {"--complete line -- report r", ":files .kprof\n"},
                 {"--complete line -- recover a", ":folders\n"},
                 {"--complete line -- recover a b", ""},
                 {"--complete line -- report r.kprof r", ":files .kprof\n"},
                 {"--complete line -- -o r", ":files\n"},
                 {"--complete line -- --section-folder r", ":folders\n"},
                 {"--complete line -- list s", "sets\nsections\n"},
                 {"--complete --apply-rules", "no\nyes\n"},
                 {"--complete line -- list sets s", ""},
                 {"--complete line -- help p", "plan\n"},
                 {"--complete line -- -- rep", ":programs\n"},
                 {"--complete line -- -k x app rep", ":application 3\n"},
                 {"--complete line -- plan --set x -- app rep", ":application 5\n"},
                 {"--complete line -- trace --sample none app rep", ":application 4\n"},
                 {"--complete line -- report -k", "-k\tonly kernels of this name; a name or regex:PATTERN\n"},
                 {"--complete line -- --list-sets --chip",
                  "--chips\tlist or plan for these chips, not for the GPU of this machine\n"},
                 {"--complete line -- app", ":programs\n"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *text = complete(cases[i].line);
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s: \"%s\"", cases[i].line, text);
        free(text);
    }
    char *text = complete("--complete commands");
    for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++)
        assert_non_null(strstr(text, kprof_commands[i].name));
    free(text);
    text = complete("--complete line -- rep");
    assert_string_equal(text, "report\tPrint a report that -o has kept, or a part of it.\n:programs\n");
    free(text);
    assert_int_equal(parse("--complete nonsense"), KPROF_OK);
    assert_int_equal(kprof_complete(&options, stdout), KPROF_USAGE);
}

int main(void)
{
    around_all(make_files, remove_files);
    int failed = run_all_tests();
    kprof_options_free(&options);
    return failed;
}
