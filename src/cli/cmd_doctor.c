/* kprof doctor: tells what on this machine keeps kernels from being measured and what to do, and measures one. */
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "cli/unfinished.h"
#include "core/child.h"
#include "core/log.h"
#include "core/monotonic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS     INT64_C(60000000000)
#define OWN_PROGRAM  "kprof-one-kernel"
#define MOST_OPTIONS 16

/* Keep messages about the GPUs instead of printing them. */
static void keep_message(void *user, kprof_log_level level, const char *message)
{
    if (level <= KPROF_LOG_WARNING)
        kprof_strbuf_puts(kprof_strbuf_part(user), message);
}

static kprof_status look_at_gpus(kprof_machine *machine, kprof_listing *out)
{
    KPROF_AUTO(kprof_strbuf) told = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_probe) probe = {0};
    kprof_status status = KPROF_HEAR(keep_message, &told, kprof_probe_devices(&probe));
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < probe.device_count; i++) {
        kprof_strbuf_printf(kprof_strbuf_part(&text), "GPU %zu is a %s", i, probe.devices[i].name);
        if (probe.devices[i].memory_bytes > machine->device_bytes)
            machine->device_bytes = probe.devices[i].memory_bytes;
    }
    const size_t count = status == KPROF_OK ? probe.device_count : 0;
    for (size_t i = 0; i < count && machine->obstacle == KPROF_PROBE_NO_OBSTACLE; i++) {
        machine->obstacle = kprof_probe_find_obstacle(i);
        machine->obstructed = i;
    }
    KPROF_THEN(status, KPROF_HEAR(keep_message, &told, kprof_probe_chips(&probe, UINT64_MAX, &chips)));
    kprof_check check = {"GPUs", KPROF_CHECK_FINE, KPROF_OK, "", NULL};
    if (status != KPROF_OK)
        check = (kprof_check){"GPUs", KPROF_CHECK_FAULT, status, kprof_machine_fix(machine, status),
                              status == KPROF_NO_PERMISSION ? "permission-denied"
                              : status == KPROF_NO_GPU      ? "no-gpu"
                                                            : "gpu-unsupported"};
    kprof_machine_tell(out, &check, kprof_strbuf_text(status == KPROF_OK ? &text : &told));
    return status;
}

/* kprof's own program, which launches one kernel, stands beside the injection library. Caller frees. */
static char *find_own_program(const kprof_options *options)
{
    KPROF_AUTO_FREE char *library = NULL;
    KPROF_AUTO(kprof_strbuf) path = KPROF_STRBUF_INIT;
    if (KPROF_MUTE(kprof_injection_locate(options, &library)) == KPROF_OK) {
        kprof_strbuf_append(&path, library, (size_t)(strrchr(library, '/') + 1 - library));
        kprof_strbuf_puts(&path, OWN_PROGRAM);
    }
    const bool is_there = path.data && access(path.data, X_OK) == 0;
    return is_there ? kprof_strbuf_take(&path) : NULL;
}

static volatile sig_atomic_t interrupted; /* the number of the signal that did it */

static void note_signal(int number)
{
    interrupted = number;
}

/* All borrowed. */
typedef struct examination {
    const kprof_options *options;
    const kprof_machine *machine;
    kprof_listing *out;
} examination;

static kprof_status judge_run(const examination *of, const kprof_child *child, const char *ended, double seconds)
{
    static const char *const starts[] = {"kprof: error: ", "kprof: warning: "}; /* how the program ended is a warning */
    char text[512] = "";
    kprof_check check = {"measurement", KPROF_CHECK_FAULT, KPROF_NOT_COLLECTED, "", "measurement-failed"};
    const int code = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
    for (size_t i = 0; i < COUNT_OF(starts) && !text[0]; i++)
        for (const char *at = child->errors.data; at && (at = strstr(at, starts[i]));) { /* the last one */
            at += strlen(starts[i]);
            snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "\n"), at);
        }
    if (ended)
        snprintf(text, sizeof text, "measuring a kernel failed: %s", ended);
    else if (code == 0)
        snprintf(text, sizeof text, "one kernel was measured in %.1f s", seconds);
    else if (!text[0])
        snprintf(text, sizeof text, "measuring a kernel ended with exit code %d", code);
    const size_t told = KPROF_FIND(i, KPROF_STATUS_COUNT, kprof_status_exit_code((kprof_status)i) == code);
    if (code > 0 && told < KPROF_STATUS_COUNT)
        check.status = (kprof_status)told;
    check.fix = kprof_machine_fix(of->machine, check.status);
    if (!ended && code == 0)
        check = (kprof_check){"measurement", KPROF_CHECK_FINE, KPROF_OK, "", NULL};
    kprof_machine_tell(of->out, &check, text);
    return check.status;
}

/* Have this kprof measure a kernel, in a process of its own. */
static kprof_status measure(const examination *of, const char *program, const char *report)
{
    const kprof_options *options = of->options;
    char self[4096] = "";
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return kprof_fail(KPROF_INTERNAL, "/proc/self/exe cannot be read: %m");
    char *const *given = options->application;
    size_t count = 0, words = 0;
    while (given && given[count])
        count++;
    KPROF_AUTO_FREE char **arguments = kprof_calloc(count + MOST_OPTIONS, sizeof *arguments);
    KPROF_AUTO(kprof_strbuf) export = KPROF_STRBUF_INIT;
    kprof_export_path_quote(report, &export);
    const char *const fixed[] = {
        self, "--quiet", "--launch-count", "1", "--force-overwrite", "--export", kprof_strbuf_or_null(&export)};
    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        arguments[words++] = (char *)fixed[i];
    if (options->injection_path) {
        arguments[words++] = (char *)"--injection-path";
        arguments[words++] = options->injection_path;
    }
    arguments[words++] = (char *)"--";
    if (count == 0)
        arguments[words++] = (char *)program;
    memcpy(arguments + words, given, count * sizeof *arguments);
    KPROF_AUTO(kprof_child) child = {0};
    const kprof_child_limits limits = {.limit_ns = LIMIT_NS, .interrupted = &interrupted};
    int64_t lap_ns = kprof_monotonic_ns();
    const char *ended = kprof_child_run(arguments, &limits, &child);
    return judge_run(of, &child, ended, kprof_monotonic_lap_ms(&lap_ns) * 1e-3);
}

static kprof_status try_measurement(const examination *of)
{
    const kprof_options *options = of->options;
    const kprof_machine *machine = of->machine;
    KPROF_AUTO_FREE char *program = options->application && options->application[0] ? NULL : find_own_program(options);
    KPROF_AUTO_FREE char *folder = kprof_strprintf("%s/doctor-of-kprof-XXXXXX", machine->folder);
    kprof_status status = KPROF_OK;
    if (!program && !(options->application && options->application[0])) {
        kprof_machine_tell(of->out, &(kprof_check){"measurement", KPROF_CHECK_NOTE, KPROF_OK, "", "no-program"},
                           "no kernel was measured: this kprof has no program for that");
        /* A signal ends the measured program first, then kprof, so that nothing runs on or is left behind. */
    } else if (kprof_signals_follow(note_signal), !mkdtemp(folder)) {
        status = kprof_fail(KPROF_OUTPUT, "cannot make a folder in %s: %m", machine->folder);
    } else {
        KPROF_AUTO_FREE char *report = kprof_strprintf("%s/doctor.kprof", folder);
        status = measure(of, program, report);
        unlink(report);
        rmdir(folder);
        if (interrupted) {
            signal(interrupted, SIG_DFL);
            raise(interrupted);
        }
    }
    return status;
}

int kprof_cmd_doctor(const kprof_options *options)
{
    static const kprof_listing_column columns[] = {
        {.key = "check", .label = "Check"},
        {.key = "verdict", .label = "Verdict"},
        {.key = "code", .label = "Code", .missing = ""},
        {.key = "found", .label = "Found", .folds = true},
        {.key = "fix", .label = "What to do", .folds = true},
        {.key = "exit_code", .label = "Exit code", .type = KPROF_FIELD_INTEGER, .missing = ""},
        {0},
    };
    kprof_machine machine;
    KPROF_AUTO(kprof_listing) listing = {.columns = columns}, gpus = {.columns = columns};
    KPROF_AUTO(kprof_strbuf) told = KPROF_STRBUF_INIT;
    kprof_machine_look("", &machine);
    kprof_clocks_look(&machine.clocks);
    kprof_status found = look_at_gpus(&machine, &gpus); /* the driver's library tells once why it does not load */
    /* The search for CUPTI names the places where kprof looked. */
    const kprof_status asked = KPROF_HEAR(keep_message, &told, kprof_probe_ask_versions(&machine.versions));
    machine.cupti_reason = asked == KPROF_OK ? NULL : told.data ? told.data : kprof_status_message(asked);
    kprof_status status = kprof_machine_judge(&machine, &listing);
    kprof_strlist_add_all(&listing.cells, &gpus.cells);
    status = status == KPROF_OK ? found : status;
    if (status == KPROF_OK)
        status = try_measurement(&(examination){options, &machine, &listing});
    else
        kprof_machine_tell(&listing, &(kprof_check){"measurement", KPROF_CHECK_NOTE, KPROF_OK, "", "not-tried"},
                           "no kernel was measured: mend the faults first");
    kprof_status shown = kprof_results_show(options, &kprof_listing_page, &(kprof_page_input){.content = &listing});
    return kprof_status_exit_code(shown == KPROF_OK ? status : shown);
}
