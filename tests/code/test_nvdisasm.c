/* How nvdisasm is found and run, with programs of the name that stand for it. */
#include "code/nvdisasm.h"

#include "code/code.h"

#include <sys/stat.h>
#include <unistd.h>

#include "code/fixture.h"
#include "test.h"

static char folder[] = "/tmp/kprof-nvdisasm-XXXXXX";

/* The path of a name in the test's folder; valid until the fourth call after. */
static const char *in_folder(const char *name)
{
    static char paths[4][4096];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void make_folders(const char *path)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(copy, 0755);
        *slash = '/';
    }
}

/* A program that runs these lines of shell. */
static const char *make_program(const char *name, const char *lines)
{
    const char *path = in_folder(name);
    make_folders(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static void check_found(const char *expected)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_nvdisasm_find(&found);
    for (size_t i = 0; i < found.count; i++)
        if (!strncmp(found.items[i], folder, strlen(folder))) /* this machine may have others */
            kprof_strbuf_printf(&text, "%s\n", found.items[i] + strlen(folder) + 1);
    KPROF_AUTO_FREE char *names = kprof_strbuf_take(&text);
    assert_string_equal(names, expected);
}

TEST(places_are_searched_in_order)
{
    make_program("path/nvdisasm", "");
    make_program("toolkit/bin/nvdisasm", "");
    make_program("a [b] {c,d}/lib/python3.12/site-packages/triton/backends/nvidia/bin/nvdisasm", "");
    make_program("python/bin/python3", "");
    make_program("python/lib/python3.11/dist-packages/nvidia/cuda_nvcc/bin/nvdisasm", "");
    make_program("home/.local/lib/python3.9/site-packages/nvidia/cu13/bin/nvdisasm", "");
    chmod(make_program("plain/nvdisasm", ""), 0644);
    char path[4096];
    snprintf(path, sizeof path, "::relative:%s/plain:%s/none:%s/path:%s/python/bin", folder, folder, folder, folder);
    setenv("PATH", path, 1);
    setenv("CUDA_HOME", in_folder("toolkit"), 1);
    setenv("CUDA_PATH", in_folder("toolkit"), 1);
    setenv("VIRTUAL_ENV", in_folder("a [b] {c,d}"), 1);
    setenv("HOME", in_folder("home"), 1);
    check_found("path/nvdisasm\n"
                "toolkit/bin/nvdisasm\n"
                "a [b] {c,d}/lib/python3.12/site-packages/triton/backends/nvidia/bin/nvdisasm\n"
                "python/lib/python3.11/dist-packages/nvidia/cuda_nvcc/bin/nvdisasm\n"
                "home/.local/lib/python3.9/site-packages/nvidia/cu13/bin/nvdisasm\n");
}

/* Whoever may write into the current folder does not choose what runs. */
TEST(the_current_folder_is_not_searched)
{
    make_program("nvdisasm", "");
    make_program("bin/nvdisasm", "");
    assert_int_equal(chdir(folder), 0);
    setenv("PATH", ":.:bin:./bin", 1);
    setenv("CUDA_HOME", ".", 1);
    setenv("CUDA_PATH", "", 1);
    setenv("VIRTUAL_ENV", ".", 1);
    setenv("HOME", ".", 1);
    check_found("");
    assert_int_equal(chdir("/"), 0);
}

/* Run a program; returns what it printed, or the reason with "reason: " before it. */
static char *run(const char *program, size_t most_bytes, int64_t limit_ns)
{
    const kprof_child_limits limits = {.most_bytes = most_bytes, .limit_ns = limit_ns};
    char *arguments[] = {(char *)program, "-c", "file name", NULL};
    kprof_strbuf out = KPROF_STRBUF_INIT, reason = KPROF_STRBUF_INIT;
    kprof_status status = kprof_nvdisasm_run(arguments, &limits, &out, &reason);
    if (status != KPROF_UNSUPPORTED)
        assert_int_equal(status, reason.length > 0 ? KPROF_INTERNAL : KPROF_OK);
    char *text = kprof_strbuf_take(&out);
    if (reason.length > 0) {
        free(text);
        kprof_strbuf_printf(&out, "reason: %s", reason.data);
        text = kprof_strbuf_take(&out);
    }
    kprof_strbuf_free(&reason);
    return text;
}

static const int64_t minute_ns = INT64_C(60000000000);

static void check_run(const char *lines, const char *expected)
{
    KPROF_AUTO_FREE char *text = run(make_program("program", lines), 1 << 20, minute_ns);
    assert_string_equal(text, expected);
}

TEST(programs_get_arguments_and_no_input)
{
    setenv("PATH", "/usr/bin:/bin", 1);
    check_run("printf '%s|' \"$@\"; cat; echo end", "-c|file name|end\n");
    check_run("exec 1>&- 2>&-; sleep 0.05", ""); /* closes its output before it ends */
}

TEST(failures_are_told)
{
    check_run("echo part; echo 'nvdisasm fatal   : no' >&2; echo more >&2; exit 1", "reason: nvdisasm fatal   : no");
    check_run("printf '\\033[31mred\\n' >&2; exit 255", "reason: \\x1b[31mred");
    check_run("exit 3", "reason: it ended with status 3");
    check_run("kill -SEGV $$", "reason: signal 11 ended it");
    KPROF_AUTO_FREE char *text = run(in_folder("missing"), 1, minute_ns);
    assert_string_equal(text, "reason: No such file or directory");
}

TEST(programs_without_end_are_ended)
{
    const char *pid_path = in_folder("pid");
    char lines[4096];
    snprintf(lines, sizeof lines, "sleep 1000 & echo $! >'%s'; wait", pid_path);
    char *text = run(make_program("program", lines), 1 << 20, INT64_C(500000000));
    assert_string_equal(text, "reason: it runs for too long");
    free(text);
    text = run(make_program("program", "while :; do echo flood; done"), 100000, minute_ns);
    assert_string_equal(text, "reason: it prints more than kprof reads");
    free(text);
    text = run(make_program("program", "exec 1>&- 2>&-; sleep 1000"), 100000, INT64_C(500000000));
    assert_string_equal(text, "reason: it runs for too long");
    free(text);
}

static void disassemble(const char *cubin, const char *program, kprof_code *code)
{
    size_t size;
    char path[4096], *bytes = read_fixture(cubin, &size);
    assert_int_equal(kprof_code_read(bytes, size, NULL, code), KPROF_OK);
    free(bytes);
    snprintf(path, sizeof path, "%s/fixtures/code/%s", KPROF_TESTS_DIR, cubin);
    kprof_disassemblers disassemblers = {.given = program};
    kprof_code_disassemble(code, path, &disassemblers);
    kprof_disassemblers_free(&disassemblers);
}

TEST(code_gets_the_text_that_a_program_prints)
{
    char lines[4096];
    snprintf(lines, sizeof lines,
             "[ \"$*\" = \"-c -fun 6,14,15 %s/fixtures/code/lengths_sm90.cubin\" ] || exit 9\n"
             "cat '%s/fixtures/code/lengths_sm90.sass'",
             KPROF_TESTS_DIR, KPROF_TESTS_DIR);
    kprof_code code;
    disassemble("lengths_sm90.cubin", make_program("good/nvdisasm", lines), &code);
    assert_string_equal(code.text_state, "");
    assert_string_equal(find_function(&code, "lengths")->instructions[0].text, "LDC R1, c[0x0][0x28]");
    kprof_code_free(&code);
}

TEST(all_is_printed_where_symbols_are_not_found)
{
    char lines[4096];
    snprintf(lines, sizeof lines,
             "case \"$*\" in *-fun*) echo 'nvdisasm error   : No symbol with index 6' >&2; exit 255;; esac\n"
             "/bin/cat '%s/fixtures/code/lengths_sm90.sass'",
             KPROF_TESTS_DIR);
    kprof_code code;
    disassemble("lengths_sm90.cubin", make_program("picky/nvdisasm", lines), &code);
    assert_string_equal(code.text_state, "");
    assert_non_null(find_function(&code, "lengths")->instructions[0].text);
    kprof_code_free(&code);
}

/* The first one may be of a toolkit that does not know the GPU. */
TEST(the_next_program_is_tried)
{
    char lines[4096], path[4096];
    make_program("old/nvdisasm", "echo \"nvdisasm fatal   : Cannot decode architecture 'SM90'\" >&2; exit 255");
    make_program("silent/nvdisasm", "");
    snprintf(lines, sizeof lines, "/bin/cat '%s/fixtures/code/lengths_sm90.sass'", KPROF_TESTS_DIR);
    make_program("new/nvdisasm", lines);
    snprintf(path, sizeof path, "%s/old:%s/silent:%s/new", folder, folder, folder);
    setenv("PATH", path, 1);
    kprof_code code;
    disassemble("lengths_sm90.cubin", NULL, &code);
    assert_string_equal(code.text_state, "");
    assert_non_null(find_function(&code, "lengths")->instructions[0].text);
    kprof_code_free(&code);

    disassemble("lengths_sm90.cubin", in_folder("old/nvdisasm"), &code);
    snprintf(path, sizeof path, "%s/old/nvdisasm: nvdisasm fatal   : Cannot decode architecture 'SM90'", folder);
    assert_string_equal(code.text_state, path);
    assert_null(find_function(&code, "lengths")->instructions[0].text);
    kprof_code_free(&code);
}

/* Of 40 cubins one waits for it. */
TEST(a_program_that_hangs_is_asked_once)
{
    char path[4096], expected[4096];
    make_program("hangs/nvdisasm", "/bin/sleep 1000");
    snprintf(path, sizeof path, "%s/hangs", folder);
    setenv("PATH", path, 1);
    kprof_disassemblers disassemblers = {.limit_ns = INT64_C(300000000)};
    snprintf(expected, sizeof expected, "%s/hangs/nvdisasm: it runs for too long", folder);
    for (size_t i = 0; i < 3; i++) {
        size_t size;
        kprof_code code;
        char *bytes = read_fixture("lengths_sm90.cubin", &size);
        assert_int_equal(kprof_code_read(bytes, size, NULL, &code), KPROF_OK);
        free(bytes);
        kprof_code_disassemble(&code, "cubin", &disassemblers);
        assert_string_equal(code.text_state, expected);
        kprof_code_free(&code);
        assert_true(disassemblers.is_gone[0]);
    }
    kprof_disassemblers_free(&disassemblers);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[4096];
    snprintf(command, sizeof command, "/bin/rm -rf '%s'", folder);
    return system(command);
}

AROUND_ALL(make_folder, remove_folder)
