/* Tests numbers of the kernel's files. */
#include "core/files.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(test_numbers_of_lines)
{
    char root[] = "/tmp/kprof-proc-XXXXXX", path[64];
    uint64_t number = 7;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/status", root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "Name:\tkprof\nCapEffective: 3\nCapEff:\t0000000000200000\nCapEff: 1\nFree:    12 kB\nMany: many\n%0300d\n"
            "Last: 5",
            0);
    fclose(file);
    assert_true(kprof_proc_number(&(kprof_proc_file){root, "/status"}, "CapEff", 16, &number) && number == 0x200000);
    assert_true(kprof_proc_number(&(kprof_proc_file){root, "/status"}, "Free", 10, &number) && number == 12);
    assert_true(kprof_proc_number(&(kprof_proc_file){root, "/status"}, "Last", 10, &number) && number == 5);
    assert_false(kprof_proc_number(&(kprof_proc_file){root, "/status"}, "Many", 10, &number));
    assert_false(kprof_proc_number(&(kprof_proc_file){root, "/status"}, "Cap", 10, &number));
    assert_false(kprof_proc_number(&(kprof_proc_file){root, "/none"}, "CapEff", 16, &number));
    assert_true(number == 5);
    unlink(path);
    rmdir(root);
}

TEST(test_the_machine_itself)
{
    uint64_t number;
    assert_true(kprof_proc_number(&(kprof_proc_file){"", "/proc/self/status"}, "Pid", 10, &number));
    assert_int_equal(number, getpid());
}
