/* Reads what the driver's kernel module and the system say of themselves in files, and the CSV that nvidia-smi prints.
 */
#include "cli/machine.h"

#include "cli/program.h"
#include "cli/session.h"
#include "code/nvdisasm.h"
#include "core/child.h"
#include "core/files.h"
#include "core/memory.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAST_DRIVER 580                 /* CUPTI of CUDA 13 needs it */
#define LITTLE_SPACE (UINT64_C(1) << 30) /* a run of 10,000 launches keeps 100 MB */

/* The text of a small file below the root, up to `size`; "": there is none. */
static void read_file(const char *root, const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    kprof_read_text(path, text, size);
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64 580.159.04 Release Build": the first of digits and dots. */
static void read_module_version(const char *root, kprof_machine *out)
{
    char text[1024];
    read_file(root, "/proc/driver/nvidia/version", text, sizeof text);
    for (const char *at = text; *at; at += strcspn(at, " \n")) {
        at += strspn(at, " \n");
        const size_t digits = strspn(at, "0123456789."), word = strcspn(at, " \n");
        if (digits == word && *at != '.' && memchr(at, '.', word) && word < sizeof out->module_version) {
            snprintf(out->module_version, sizeof out->module_version, "%.*s", (int)word, at);
            return;
        }
        if (word == 0)
            return;
    }
}

/* libcuda.so.1 is a link to libcuda.so.580.159.04. */
static void find_library(kprof_machine *out)
{
    struct link_map *map = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(out->library_reason, sizeof out->library_reason, "%s", reason ? reason : "");
        return;
    }
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && realpath(map->l_name, out->library)) {
        const char *version = strstr(out->library, "libcuda.so.");
        const size_t length = version ? strlen(version + 11) : 0;
        if (length < sizeof out->library_version && version && strspn(version + 11, "0123456789.") == length &&
            strchr(version + 11, '.'))
            memcpy(out->library_version, version + 11, length + 1);
    }
}

static void read_permission(const char *root, kprof_machine *out)
{
    uint64_t admin_only, effective;
    const bool is_told = kprof_proc_number(&(kprof_proc_file){root, "/proc/driver/nvidia/params"},
                                           "RmProfilingAdminOnly", 10, &admin_only);
    out->admin_only = is_told ? (int)admin_only : -1;
    out->is_admin = geteuid() == 0;
    if (kprof_proc_number(&(kprof_proc_file){root, "/proc/self/status"}, "CapEff", 16, &effective))
        out->is_admin = (effective >> CAP_SYS_ADMIN & 1) != 0; /* which root may lack in a container */
}

/* Tools that keep a GPU's counters for as long as they run. */
static void find_holder(const char *root, kprof_machine *out)
{
    static const char *const holders[] = {"nv-hostengine", "dcgm-exporter", "dcgmi", "ncu", "nsys", "nv-nsight-cu-cl"};
    char path[PATH_MAX], name[64];
    snprintf(path, sizeof path, "%s/proc", root);
    KPROF_AUTO_CLOSEDIR DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !out->holder[0] && (entry = readdir(folder));) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
            continue;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        read_file(root, path, name, sizeof name);
        name[strcspn(name, "\n")] = '\0';
        for (size_t i = 0; i < COUNT_OF(holders); i++)
            if (strcmp(name, holders[i]) == 0)
                snprintf(out->holder, sizeof out->holder, "%s (process %.12s)", holders[i], entry->d_name);
    }
}

#define CLOCKS_LIMIT_NS   INT64_C(3000000000)
#define CLOCKS_MOST_BYTES ((size_t)64 << 10)

enum { PERSISTENCE, CLOCK, MOST_CLOCK, FIRST_REASON, FIELDS = FIRST_REASON + 4 };

#define QUERY                                                                                                          \
    "--query-gpu=persistence_mode,clocks.sm,clocks.max.sm,clocks_event_reasons.hw_thermal_slowdown,"                   \
    "clocks_event_reasons.sw_thermal_slowdown,clocks_event_reasons.hw_power_brake_slowdown,"                           \
    "clocks_event_reasons.hw_slowdown"

/* In the order of the query. */
static const char *const reasons[] = {"heat", "heat", "its power supply", "heat or its power supply"};

/* "A, B" -> its fields; false when they are others than were asked for. */
static bool split(char *line, char *fields[FIELDS])
{
    size_t count = 0;
    for (char *at = line, *comma; at && count < FIELDS; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        fields[count++] = at + strspn(at, " ");
    }
    return count == FIELDS;
}

static void take_gpu(char *fields[FIELDS], int gpu, kprof_clocks *out)
{
    for (int i = 0; i < FIELDS - FIRST_REASON && out->slowed < 0; i++)
        if (strcmp(fields[FIRST_REASON + i], "Active") == 0) {
            out->slowed = gpu;
            out->slowed_by = reasons[i];
        }
    if (out->not_persistent < 0 && strcmp(fields[PERSISTENCE], "Disabled") == 0)
        out->not_persistent = gpu;
    if (gpu > 0)
        return;
    out->mhz = strtol(fields[CLOCK], NULL, 10);
    out->most_mhz = strtol(fields[MOST_CLOCK], NULL, 10);
}

void kprof_clocks_parse(const char *text, kprof_clocks *out)
{
    char line[512], *fields[FIELDS];
    int gpu = 0;
    *out = (kprof_clocks){.slowed = -1, .not_persistent = -1};
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (length < sizeof line && split(line, fields))
            take_gpu(fields, gpu++, out);
    }
    out->is_known = gpu > 0;
    if (!out->is_known)
        snprintf(out->why_not, sizeof out->why_not, "nvidia-smi does not tell them");
}

void kprof_clocks_look(kprof_clocks *out)
{
    char *program = kprof_program_find("nvidia-smi"), query[] = QUERY, format[] = "--format=csv,noheader,nounits";
    char *arguments[] = {program, query, format, NULL};
    KPROF_AUTO(kprof_child) child = {0};
    const kprof_child_limits limits = {.most_bytes = CLOCKS_MOST_BYTES, .limit_ns = CLOCKS_LIMIT_NS};
    const char *failed = program ? kprof_child_run(arguments, &limits, &child) : "there is no nvidia-smi in PATH";
    const bool is_well = !failed && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && child.out.data;
    kprof_clocks_parse(is_well ? child.out.data : "", out);
    if (failed)
        snprintf(out->why_not, sizeof out->why_not, "%s%s", program ? "nvidia-smi: " : "", failed);
    free(program);
}

const char *kprof_injection_of_others(void)
{
    const char *other = getenv("CUDA_INJECTION64_PATH");
    return other && *other && strcmp(other, "none") != 0 ? other : NULL;
}

/* Can a run make its folder there? Permission to write is not enough, as in /proc. Returns errno, or 0. */
static int try_folder(const char *folder)
{
    KPROF_AUTO_FREE char *own = kprof_strprintf("%s/doctor-of-kprof-XXXXXX", folder);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); /* no signal is to end kprof while it is there */
    const bool is_made = mkdtemp(own) != NULL;
    const int error = is_made ? 0 : errno;
    if (is_made)
        rmdir(own);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

void kprof_machine_look(const char *root, kprof_machine *out)
{
    KPROF_AUTO(kprof_strlist) programs = KPROF_STRLIST_INIT;
    *out = (kprof_machine){.injection = kprof_injection_of_others()};
    read_module_version(root, out);
    find_library(out);
    read_permission(root, out);
    static const char *const signs[] = {"/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io",
                                        "/.singularity.d", "/run/systemd/container"};
    for (size_t i = 0; i < COUNT_OF(signs); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s", root, signs[i]);
        out->in_container = out->in_container || access(path, F_OK) == 0;
    }
    char pattern[PATH_MAX];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/capabilities/gpu*/mig/gi*", root);
    if (glob(pattern, 0, NULL, &found) == 0)
        out->mig_instances = (unsigned)found.gl_pathc;
    globfree(&found);
    find_holder(root, out);
    struct statvfs space;
    out->folder = kprof_sessions_folder();
    out->folder_error = try_folder(out->folder);
    if (statvfs(out->folder, &space) == 0)
        out->free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    out->memory_bytes = kprof_memory_available_bytes(root);
    kprof_nvdisasm_find(&programs);
    if (programs.count > 0)
        snprintf(out->disassembler, sizeof out->disassembler, "%s", programs.items[0]);
}

void kprof_machine_tell(kprof_listing *out, const kprof_check *check, const char *text)
{
    static const char *const verdicts[] = {"fine", "note", "warning", "fault"};
    char code[16] = "";
    if (check->verdict == KPROF_CHECK_FAULT)
        snprintf(code, sizeof code, "%d", kprof_status_exit_code(check->status));
    KPROF_LISTING_ADD(out, check->name, verdicts[check->verdict], check->code, text, check->fix, code);
}

static const char no_stubs[] = "take the folder of stubs out of LD_LIBRARY_PATH";

static bool has_stubs(const kprof_machine *m)
{
    return strstr(m->library, "/stubs/") != NULL;
}

const char *kprof_machine_fix(const kprof_machine *m, kprof_status status)
{
    switch (status) {
    case KPROF_NO_PERMISSION:
        return m->in_container ? "start the container with --cap-add=SYS_ADMIN, or a pod with SYS_ADMIN in "
                                 "securityContext.capabilities.add"
                               : "run as root, or write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` "
                                 "into a file in /etc/modprobe.d and reload the nvidia module";
    case KPROF_NO_GPU:
        return has_stubs(m)      ? no_stubs
               : m->in_container ? "start the container with its GPUs: docker run --gpus all; name some in "
                                   "CUDA_VISIBLE_DEVICES, or unset it"
                                 : "see what nvidia-smi -L and ls /dev/nvidia* list; name some in "
                                   "CUDA_VISIBLE_DEVICES, or unset it";
    case KPROF_COUNTERS_BUSY:
        return "end the other tool, or pause DCGM for the run: dcgmi profile --pause, and --resume afterwards";
    case KPROF_UNSUPPORTED:
        return "use a GPU of compute capability 7.5 or higher, with a driver and CUPTI of CUDA 13";
    default:
        return "see all that a run says: kprof --launch-count 1 with the same program";
    }
}

/* Judges one thing, and puts what it found into `text`. */
typedef kprof_check judge(const kprof_machine *m, char text[512]);

/* Behind these: what was found, as printf takes it. */
#define CHECK(name, verdict, status, fix, code, ...)                                                                   \
    (snprintf(text, 512, __VA_ARGS__), (kprof_check){name, KPROF_CHECK_##verdict, KPROF_##status, fix, code})
#define FINE(name, ...)                     CHECK(name, FINE, OK, "", NULL, __VA_ARGS__)
#define NOTE(name, fix, code, ...)          CHECK(name, NOTE, OK, fix, code, __VA_ARGS__)
#define WARNING(name, fix, code, ...)       CHECK(name, WARNING, OK, fix, code, __VA_ARGS__)
#define FAULT(name, status, fix, code, ...) CHECK(name, FAULT, status, fix, code, __VA_ARGS__)

static kprof_check judge_module(const kprof_machine *m, char text[512])
{
    if (!m->module_version[0] && m->library[0]) /* as in some sandboxes: whether there is a GPU is seen below */
        return NOTE("driver", "", "driver-version-unknown", "NVIDIA's kernel module does not tell its version");
    if (!m->module_version[0])
        return FAULT("driver", NO_GPU,
                     m->in_container ? "start the container with its GPUs: docker run --gpus all"
                                     : "install NVIDIA's driver, or load it: modprobe nvidia",
                     "driver-missing", "NVIDIA's kernel module is not loaded");
    if (atoi(m->module_version) < LEAST_DRIVER)
        return FAULT("driver", UNSUPPORTED, "install a newer driver", "driver-old",
                     "NVIDIA's kernel module is %s, and CUPTI of CUDA 13 needs %d or later", m->module_version,
                     LEAST_DRIVER);
    return FINE("driver", "NVIDIA's kernel module is %s", m->module_version);
}

static kprof_check judge_library(const kprof_machine *m, char text[512])
{
    if (!m->library[0])
        return FAULT("library", NO_GPU, "install the driver's libraries, or name their folder in LD_LIBRARY_PATH",
                     "library-missing", "programs find no libcuda.so.1: %s", m->library_reason);
    if (has_stubs(m))
        return FAULT("library", NO_GPU, no_stubs, "library-stub",
                     "programs load %.300s, which is for linking and starts no GPU", m->library);
    if (m->library_version[0] && m->module_version[0] && strcmp(m->library_version, m->module_version) != 0)
        return FAULT(
            "library", NO_GPU, "load the kernel module of the driver that is installed: reboot, or reload nvidia",
            "library-mismatch", "programs load %.300s, and the kernel module is %s", m->library, m->module_version);
    return FINE("library", "programs load %.400s", m->library);
}

static kprof_check judge_permission(const kprof_machine *m, char text[512])
{
    if (m->admin_only == 1 && !m->is_admin)
        return FAULT("permission", NO_PERMISSION, kprof_machine_fix(m, KPROF_NO_PERMISSION), "permission-denied",
                     "the driver keeps GPU counters from this user: RmProfilingAdminOnly is 1");
    if (m->admin_only == -1 && !m->is_admin)
        return NOTE("permission", "", "permission-unknown",
                    "the kernel module does not tell whether this user may read GPU counters");
    return FINE("permission", "%s user may read GPU counters", m->admin_only == 0 ? "every" : "this");
}

static kprof_check judge_others(const kprof_machine *m, char text[512])
{
    if (m->holder[0])
        return WARNING("other tools",
                       strstr(m->holder, "dcgm") || strstr(m->holder, "hostengine")
                           ? "pause it for the run: dcgmi profile --pause, and --resume afterwards"
                           : "wait for it to end",
                       "counters-held", "%s may hold the counters of GPUs%s%.300s", m->holder,
                       m->injection ? ", and CUDA_INJECTION64_PATH names another profiler, " : "",
                       m->injection ? m->injection : "");
    if (m->injection)
        return WARNING("other tools", "kprof takes its place for a run; unset it if that is not wanted",
                       "other-profiler", "CUDA_INJECTION64_PATH names another profiler, %.300s", m->injection);
    return FINE("other tools", "no tool is known to hold the counters");
}

static kprof_check judge_container(const kprof_machine *m, char text[512])
{
    return m->in_container ? NOTE("container", "", "container", "this is a container")
                           : FINE("container", "this is no container");
}

static kprof_check judge_mig(const kprof_machine *m, char text[512])
{
    if (m->mig_instances == 0)
        return FINE("MIG", "no GPU is split into instances");
    return WARNING("MIG", "for these values, have an administrator turn it off: nvidia-smi -mig 0", "mig",
                   "GPUs are split into %u instances: units that these share have no values", m->mig_instances);
}

static kprof_check judge_space(const kprof_machine *m, char text[512])
{
    static const char found[] = "%.1f GB are free in %.200s, where a run keeps what it measures until its end";
    const double free_gb = (double)m->free_bytes * 1e-9;
    if (m->folder_error)
        return FAULT("disk", OUTPUT, "name another folder in TMPDIR", "folder-unusable",
                     "runs can keep nothing in %.200s: %s", m->folder, strerror(m->folder_error));
    if (m->free_bytes < LITTLE_SPACE)
        return WARNING("disk", "make space there, or name another folder in TMPDIR", "low-disk", found, free_gb,
                       m->folder);
    return FINE("disk", found, free_gb, m->folder);
}

static kprof_check judge_memory(const kprof_machine *m, char text[512])
{
    const double gb = (double)m->memory_bytes * 1e-9;
    if (m->memory_bytes == 0)
        return FINE("memory", "the system does not tell how much memory is available");
    if (m->memory_bytes >= m->device_bytes)
        return FINE("memory", "%.1f GB of the host's memory are available", gb);
    return NOTE("memory",
                m->in_container ? "give the container more memory, or measure fewer launches (-c)"
                                : "end other programs, or measure fewer launches (-c)",
                "low-memory",
                "%.1f GB of the host's memory are available, and a GPU has %.1f: of a program that fills more than "
                "half of it, launches may be multiplexed in place of repeated",
                gb, (double)m->device_bytes * 1e-9);
}

static kprof_check judge_disassembler(const kprof_machine *m, char text[512])
{
    if (m->disassembler[0])
        return FINE("nvdisasm", "%.400s shows instructions", m->disassembler);
    return WARNING("nvdisasm", "install it with a CUDA toolkit, or with pip: nvidia-cuda-nvdisasm", "no-nvdisasm",
                   "there is no nvdisasm: the source page has lines and addresses, and no instructions");
}

/* A CUPTI that is newer than the driver counts nothing, and says so only when it starts. */
static kprof_check judge_cupti(const kprof_machine *m, char text[512])
{
    static const char fix[] = "install a newer driver, or name an older toolkit of CUDA 13 in CUDA_HOME",
                      found[] = "CUPTI is of CUDA %u.%u, and the driver is for CUDA %u.%u";
    const unsigned major = m->versions.cupti / 10000, minor = m->versions.cupti / 100 % 100,
                   driver_major = m->versions.driver / 1000, driver_minor = m->versions.driver / 10 % 100;
    if (m->cupti_reason)
        return FAULT("CUPTI", UNSUPPORTED,
                     "install CUPTI of CUDA 13, with a toolkit or with pip (nvidia-cuda-cupti), and name the "
                     "toolkit's folder in CUDA_HOME",
                     "cupti-missing", "%s", m->cupti_reason);
    if (m->versions.driver == 0 || m->versions.cupti == 0 || (major * 100 + minor <= driver_major * 100 + driver_minor))
        return FINE("CUPTI", "CUPTI is of CUDA %u.%u", major, minor);
    if (major > driver_major)
        return FAULT("CUPTI", UNSUPPORTED, fix, "cupti-newer", found, major, minor, driver_major, driver_minor);
    return WARNING("CUPTI", fix, "cupti-newer", found, major, minor, driver_major, driver_minor);
}

/* Why CUPTI measures nothing on a GPU, what to do, and the code. */
static const struct {
    const char *why, *fix, *code;
} obstacles[] = {
    [KPROF_PROBE_CONFIDENTIAL] = {"confidential computing is on, which keeps its counters from everybody",
                                  "have an administrator set the GPU's mode of confidential computing to devtools, or "
                                  "off, and reset it",
                                  "confidential-computing"},
    [KPROF_PROBE_VGPU] = {"this virtual GPU has no counters", "use a whole GPU, or a profile of vGPU that has them",
                          "vgpu"},
    [KPROF_PROBE_VGPU_DISABLED] = {"the host does not let this virtual GPU have counters",
                                   "have the host's administrator set enable_profiling for the vGPU", "vgpu-disabled"},
    [KPROF_PROBE_SLI] = {"it is one of several that SLI joins", "turn SLI off", "sli"},
    [KPROF_PROBE_MINING] = {"it is a mining processor, which has no counters", "use another GPU", "mining-gpu"},
    [KPROF_PROBE_WSL] = {"Windows does not let Linux have its counters",
                         "allow them in NVIDIA's control panel: Developer, Manage GPU Performance Counters", "wsl"},
};

static kprof_check judge_setup(const kprof_machine *m, char text[512])
{
    if (m->obstacle == KPROF_PROBE_NO_OBSTACLE)
        return FINE("set-up", "nothing is known to keep CUPTI from measuring");
    return FAULT("set-up", UNSUPPORTED, obstacles[m->obstacle].fix, obstacles[m->obstacle].code, "GPU %zu: %s",
                 m->obstructed, obstacles[m->obstacle].why);
}

static kprof_check judge_clocks(const kprof_machine *m, char text[512])
{
    const kprof_clocks *clocks = &m->clocks;
    if (!clocks->is_known)
        return NOTE("clocks", "", "clocks-unknown", "clocks were not looked at: %s", clocks->why_not);
    if (clocks->slowed >= 0)
        return WARNING("clocks", "see to its cooling and power: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
                       "gpu-slowed", "GPU %d is slowed down by %s: times are longer, and differ from run to run",
                       clocks->slowed, clocks->slowed_by);
    if (clocks->not_persistent >= 0)
        return NOTE("clocks", "have an administrator call nvidia-smi -pm 1", "no-persistence",
                    "the driver lets go of GPU %d between programs, so that each starts more slowly",
                    clocks->not_persistent);
    return FINE("clocks", "the SMs of GPU 0 run at %ld MHz now, and at %ld at most", clocks->mhz, clocks->most_mhz);
}

kprof_status kprof_machine_judge(const kprof_machine *machine, kprof_listing *out)
{
    static judge *const judges[] = {judge_module, judge_library,   judge_cupti,  judge_permission,
                                    judge_others, judge_container, judge_mig,    judge_setup,
                                    judge_clocks, judge_space,     judge_memory, judge_disassembler};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < COUNT_OF(judges); i++) {
        char text[512];
        const kprof_check check = judges[i](machine, text);
        kprof_machine_tell(out, &check, text);
        if (check.verdict == KPROF_CHECK_FAULT && status == KPROF_OK)
            status = check.status;
    }
    return status;
}
