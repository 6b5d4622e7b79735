/* What `kprof doctor` sees in the files of a machine, and what it says of each fault. */
#include "cli/machine.h"
#include "cli/session.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COLUMNS = 6 };

static char root[64];

/* Write a file below the root, with the folders that it needs. */
static void stage(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        (void)mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    strcpy(root, "/tmp/kprof-test-machine-XXXXXX");
    assert_non_null(mkdtemp(root));
    stage("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n"
          "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6)\n");
    stage("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nDeviceFileUID: 0\n");
    stage("/proc/self/status", "Name:\tkprof\nCapEff:\t0000000000000000\n");
    stage("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 3 kB\nMemAvailable:    2000000 kB\n");
    stage("/proc/17/comm", "bash\n");
    return 0;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* A machine with nothing wrong. */
static kprof_machine fine_machine(void)
{
    return (kprof_machine){.module_version = "580.159.04",
                           .library = "/usr/lib/libcuda.so.580.159.04",
                           .library_version = "580.159.04",
                           .admin_only = 0,
                           .folder = "/tmp",
                           .free_bytes = UINT64_C(50) << 30,
                           .memory_bytes = UINT64_C(256) << 30,
                           .device_bytes = UINT64_C(140) << 30,
                           .versions = {130001, 13000},
                           .clocks = {.is_known = true, .slowed = -1, .not_persistent = -1},
                           .disassembler = "/usr/local/cuda/bin/nvdisasm"};
}

/* The machine has this row: what was looked at, the verdict, the code, and parts of what was found and is to be done.
 * It has no fault or warning besides. */
static void assert_row(const kprof_machine *machine, const char *const row[5], kprof_status status)
{
    kprof_listing listing = {0};
    bool found = false;
    assert_int_equal(kprof_machine_judge(machine, &listing), status);
    assert_int_equal(listing.cells.count % COLUMNS, 0);
    for (size_t i = 0; i < listing.cells.count; i += COLUMNS) {
        char *const *cells = listing.cells.items + i;
        const bool is_it = strcmp(cells[0], row[0]) == 0;
        if (!is_it && strcmp(cells[1], "fine") != 0 && strcmp(cells[1], "note") != 0)
            fail_msg("%s: %s, %s", cells[0], cells[1], cells[3]);
        if (!is_it)
            continue;
        found = true;
        if (strcmp(cells[1], row[1]) != 0 || strcmp(cells[2], row[2]) != 0 || !strstr(cells[3], row[3]) ||
            !strstr(cells[4], row[4]))
            fail_msg("%s is %s (%s): %s; do: %s", cells[0], cells[1], cells[2], cells[3], cells[4]);
        assert_int_equal(atoi(cells[5]), status == KPROF_OK ? 0 : kprof_status_exit_code(status));
    }
    assert_true(found);
    kprof_listing_free(&listing);
}

TEST_WITH(files_are_read, make_root, remove_root)
{
    kprof_machine machine;
    kprof_machine_look(root, &machine);
    assert_string_equal(machine.module_version, "580.159.04");
    assert_int_equal(machine.admin_only, 1);
    assert_false(machine.is_admin);
    assert_false(machine.in_container);
    assert_int_equal(machine.mig_instances, 0);
    assert_string_equal(machine.holder, "");
    assert_int_equal(machine.memory_bytes, 2048000000);
    assert_string_equal(machine.folder, kprof_sessions_folder());
    assert_true(machine.free_bytes > 0);
    stage("/proc/self/status", "CapEff:\t0000000000200000\n");
    stage("/run/secrets/kubernetes.io/namespace", "");
    stage("/sys/fs/cgroup/memory.max", "1000000000\n");
    stage("/sys/fs/cgroup/memory.current", "400000000\n");
    stage("/proc/812/comm", "nv-hostengine\n");
    stage("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "");
    stage("/proc/driver/nvidia/capabilities/gpu0/mig/gi2/access", "");
    stage("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu\n");
    kprof_machine_look(root, &machine);
    assert_true(machine.is_admin && machine.in_container && machine.mig_instances == 2);
    assert_int_equal(machine.memory_bytes, 600000000);
    stage("/sys/fs/cgroup/memory.stat", "anon 100000000\ninactive_file 300000000\n"); /* gives way when it is needed */
    kprof_machine_look(root, &machine);
    assert_int_equal(machine.memory_bytes, 900000000);
    stage("/proc/self/cgroup", "0::/job\n");
    stage("/sys/fs/cgroup/job/memory.max", "500000000\n");
    stage("/sys/fs/cgroup/job/memory.current", "500000000\n");
    kprof_machine_look(root, &machine);
    assert_int_equal(machine.memory_bytes, 1);
    assert_string_equal(machine.holder, "nv-hostengine (process 812)");
    assert_string_equal(machine.module_version, "570.86.15");
}

TEST_WITH(strange_files_are_no_trouble, make_root, remove_root)
{
    static char text[20000];
    kprof_machine machine;
    memset(text, '9', sizeof text - 1);
    stage("/proc/driver/nvidia/version", text);
    stage("/proc/driver/nvidia/params", "RmProfilingAdminOnly: many\n");
    stage("/proc/meminfo", "MemAvailable: none\n");
    stage("/proc/17/comm", text);
    kprof_machine_look(root, &machine);
    assert_string_equal(machine.module_version, "");
    assert_int_equal(machine.admin_only, -1);
    assert_int_equal(machine.memory_bytes, 0);
    stage("/proc/driver/nvidia/version", " . 1 \n");
    kprof_machine_look(root, &machine);
    assert_string_equal(machine.module_version, "");
    kprof_machine_look("/none", &machine);
    assert_string_equal(machine.module_version, "");
}

TEST(a_fine_machine_has_no_fault)
{
    kprof_machine machine = fine_machine();
    assert_row(&machine, (const char *const[]){"driver", "fine", "", "580.159.04", ""}, KPROF_OK);
    machine.module_version[0] = '\0'; /* a sandbox */
    assert_row(&machine, (const char *const[]){"driver", "note", "driver-version-unknown", "does not tell", ""},
               KPROF_OK);
    machine.in_container = true;
    assert_row(&machine, (const char *const[]){"container", "note", "container", "is a container", ""}, KPROF_OK);
    machine.memory_bytes = UINT64_C(16) << 30;
    assert_row(&machine, (const char *const[]){"memory", "note", "low-memory", "multiplexed", "container more memory"},
               KPROF_OK);
    machine.admin_only = -1;
    assert_row(&machine, (const char *const[]){"permission", "note", "permission-unknown", "does not tell", ""},
               KPROF_OK);
    machine.is_admin = true;
    assert_row(&machine, (const char *const[]){"permission", "fine", "", "this user may", ""}, KPROF_OK);
}

TEST(each_fault_has_its_fix)
{
    kprof_machine machine = fine_machine();
    strcpy(machine.module_version, "570.86.15");
    strcpy(machine.library_version, "570.86.15");
    assert_row(&machine, (const char *const[]){"driver", "fault", "driver-old", "580 or later", "newer driver"},
               KPROF_UNSUPPORTED);
    machine = fine_machine();
    machine.module_version[0] = machine.library[0] = '\0';
    strcpy(machine.library_reason, "no such file");
    kprof_listing listing = {0};
    assert_int_equal(kprof_machine_judge(&machine, &listing), KPROF_NO_GPU);
    assert_string_equal(listing.cells.items[2], "driver-missing");
    kprof_listing_free(&listing);
    machine = fine_machine();
    strcpy(machine.library_version, "580.95.05");
    assert_row(&machine,
               (const char *const[]){"library", "fault", "library-mismatch", "kernel module is 580.159.04", "reboot"},
               KPROF_NO_GPU);
    machine = fine_machine();
    strcpy(machine.library, "/usr/local/cuda/lib64/stubs/libcuda.so");
    machine.library_version[0] = '\0';
    assert_row(&machine, (const char *const[]){"library", "fault", "library-stub", "for linking", "LD_LIBRARY_PATH"},
               KPROF_NO_GPU);
    machine.library[0] = '\0';
    strcpy(machine.library_reason, "no such file");
    assert_row(&machine, (const char *const[]){"library", "fault", "library-missing", "no such file", "install"},
               KPROF_NO_GPU);
    machine = fine_machine();
    machine.admin_only = 1;
    assert_row(
        &machine,
        (const char *const[]){"permission", "fault", "permission-denied", "RmProfilingAdminOnly is 1", "modprobe.d"},
        KPROF_NO_PERMISSION);
    machine.in_container = true;
    assert_row(&machine,
               (const char *const[]){"permission", "fault", "permission-denied", "keeps", "--cap-add=SYS_ADMIN"},
               KPROF_NO_PERMISSION);
}

TEST(what_cupti_tells_is_a_fault)
{
    static const struct {
        kprof_probe_obstacle obstacle;
        const char *code, *fix;
    } rows[] = {
        {KPROF_PROBE_CONFIDENTIAL, "confidential-computing", "devtools"},
        {KPROF_PROBE_VGPU, "vgpu", "whole GPU"},
        {KPROF_PROBE_VGPU_DISABLED, "vgpu-disabled", "enable_profiling"},
        {KPROF_PROBE_SLI, "sli", "SLI off"},
        {KPROF_PROBE_MINING, "mining-gpu", "another GPU"},
        {KPROF_PROBE_WSL, "wsl", "control panel"},
    };
    kprof_machine machine = fine_machine();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine.obstacle = rows[i].obstacle;
        machine.obstructed = 3;
        assert_row(&machine, (const char *const[]){"set-up", "fault", rows[i].code, "GPU 3: ", rows[i].fix},
                   KPROF_UNSUPPORTED);
    }
    machine = fine_machine();
    machine.cupti_reason = "libcupti.so.13 is not found";
    assert_row(&machine, (const char *const[]){"CUPTI", "fault", "cupti-missing", "not found", "CUDA_HOME"},
               KPROF_UNSUPPORTED);
    machine = fine_machine();
    machine.versions = (kprof_probe_versions){140000, 13020};
    assert_row(&machine,
               (const char *const[]){"CUPTI", "fault", "cupti-newer",
                                     "CUDA 14.0, and the driver is for CUDA "
                                     "13.2",
                                     "newer driver"},
               KPROF_UNSUPPORTED);
}

TEST(warnings_are_no_faults)
{
    kprof_machine machine = fine_machine();
    strcpy(machine.holder, "dcgm-exporter (process 5)");
    assert_row(&machine, (const char *const[]){"other tools", "warning", "counters-held", "process 5", "--pause"},
               KPROF_OK);
    strcpy(machine.holder, "ncu (process 5)");
    assert_row(&machine, (const char *const[]){"other tools", "warning", "counters-held", "ncu", "wait"}, KPROF_OK);
    machine.injection = "/other.so";
    assert_row(&machine, (const char *const[]){"other tools", "warning", "counters-held", "/other.so", "wait"},
               KPROF_OK);
    machine = fine_machine();
    machine.injection = "/other.so";
    assert_row(&machine, (const char *const[]){"other tools", "warning", "other-profiler", "/other.so", "unset"},
               KPROF_OK);
    machine = fine_machine();
    machine.mig_instances = 3;
    assert_row(&machine, (const char *const[]){"MIG", "warning", "mig", "3 instances", "-mig 0"}, KPROF_OK);
    machine = fine_machine();
    machine.free_bytes = 1 << 20;
    assert_row(&machine, (const char *const[]){"disk", "warning", "low-disk", "/tmp", "TMPDIR"}, KPROF_OK);
    machine.folder_error = EROFS;
    assert_row(&machine, (const char *const[]){"disk", "fault", "folder-unusable", "Read-only", "TMPDIR"},
               KPROF_OUTPUT);
    machine.folder_error = 0;
    machine = fine_machine();
    machine.versions.cupti = 130200;
    assert_row(&machine, (const char *const[]){"CUPTI", "warning", "cupti-newer", "CUDA 13.2", "older toolkit"},
               KPROF_OK);
    machine = fine_machine();
    machine.disassembler[0] = '\0';
    assert_row(&machine, (const char *const[]){"nvdisasm", "warning", "no-nvdisasm", "no nvdisasm", "toolkit"},
               KPROF_OK);
}

/* Lines as nvidia-smi prints them. */
#define NORMAL "Enabled, 345, 1980, Not Active, Not Active, Not Active, Not Active\n"

TEST(clocks_are_judged)
{
    static const struct {
        const char *text, *verdict, *code, *found, *fix;
    } rows[] = {
        {NORMAL NORMAL, "fine", "", "345 MHz now, and at 1980", ""},
        {NORMAL "Enabled, 345, 1980, Not Active, Active, Not Active, Not Active\n", "warning", "gpu-slowed",
         "GPU 1 is slowed down by heat", "TEMPERATURE"},
        {"Enabled, 345, 1980, Not Active, Not Active, Active, Active\n", "warning", "gpu-slowed", "its power supply",
         "POWER"},
        {NORMAL "Disabled, 345, 1980, Not Active, Not Active, Not Active, Not Active", "note", "no-persistence",
         "GPU 1", "-pm 1"},
        {"NVIDIA-SMI has failed\n", "note", "clocks-unknown", "does not tell", ""},
        {"Enabled, 345\n,,,,,,,,,,,\n", "fine", "", "0 MHz", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_machine machine = fine_machine();
        kprof_clocks_parse(rows[i].text, &machine.clocks);
        assert_row(&machine, (const char *const[]){"clocks", rows[i].verdict, rows[i].code, rows[i].found, rows[i].fix},
                   KPROF_OK);
    }
}
