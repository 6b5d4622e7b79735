/* The session page: the run, its processes and devices, passes, what is left out, kernels seen and what went wrong. */
#include "report/page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* Counts that may be unknown. */
static kprof_emit_field count_field(const char *key, const char *label, int64_t value)
{
    return kprof_field_real(key, label, value < 0 ? NAN : (double)value);
}

static const char *utc_time(int64_t unix_ns, char text[32])
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    return gmtime_r(&seconds, &parts) && strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0 ? text : NULL;
}

static void show_run(kprof_emitter *emitter, const kprof_model *model)
{
    char start[32];
    const kprof_emit_field fields[] = {
        kprof_field_text("command_line", "Command line", model->command_line),
        kprof_field_text("working_directory", "Working directory", model->working_directory),
        kprof_field_text("kprof_version", "kprof version", model->kprof_version),
        kprof_field_text("sets", "Sets", model->sets),
        kprof_field_text("start", "Started (UTC)", utc_time(model->start_unix_ns, start)),
        machine(kprof_field_integer("start_unix_ns", "Started", model->start_unix_ns)),
    };
    kprof_list_begin(emitter, "run", "Run", KPROF_LIST_BLOCKS, false);
    kprof_show_record(emitter, fields, COUNT_OF(fields));
    emitter->ops->list_end(emitter);
}

static const char *exit_text(const kprof_model_process *process, char text[64])
{
    if (process->wait_status < 0)
        return NULL;
    int status = (int)process->wait_status;
    if (WIFSIGNALED(status))
        snprintf(text, 64, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, 64, "exit %d", WEXITSTATUS(status));
    return text;
}

static void show_processes(kprof_emitter *emitter, const kprof_model *model)
{
    kprof_list_begin(emitter, "processes", "Processes", KPROF_LIST_BLOCKS, false);
    for (size_t i = 0; i < model->process_count; i++) {
        const kprof_model_process *process = &model->processes[i];
        char start[32], end[64];
        const kprof_emit_field fields[] = {
            kprof_field_integer("process_id", "Process", process->pid),
            kprof_field_integer("parent_id", "Parent", process->parent_pid),
            kprof_field_text("name", "Name", process->name),
            kprof_field_text("host", "Host", process->host),
            kprof_field_text("executable", "Executable", process->executable),
            kprof_field_text("command_line", "Command line", process->command_line),
            kprof_field_text("start", "Started (UTC)", utc_time(process->start_unix_ns, start)),
            kprof_field_text("end", "Ended", exit_text(process, end)),
            kprof_field_text("complete", "Results complete",
                             process->ended     ? "yes"
                             : process->goes_on ? "yes, until it called exec"
                                                : "no, it was cut short"),
            count_field("launches", "Kernel launches", process->launches),
            count_field("matched", "Launches that matched", process->matched),
            count_field("profiled", "Launches measured", process->profiled),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

static void show_device(kprof_emitter *emitter, const kprof_model_device *own)
{
    const kprof_device_record *device = &own->record;
    char driver[32];
    snprintf(driver, sizeof driver, "%u.%u", device->driver_version / 1000, /* 13000: 13.0 */
             device->driver_version % 1000 / 10);
    const kprof_emit_field fields[] = {
        kprof_field_integer("device", "Device", device->device),
        kprof_field_text("name", "Name", device->name),
        kprof_field_text("chip", "Chip", device->chip),
        kprof_field_text("cc", "Compute capability", own->cc),
        kprof_field_text("uuid", "UUID", device->uuid),
        kprof_field_integer("sm_count", "SMs", device->sm_count),
        kprof_field_with("sm_clock_max", "Highest SM clock", (double)device->sm_clock_max_khz, "khz"),
        kprof_field_with("memory_clock_max", "Highest memory clock", (double)device->memory_clock_max_khz, "khz"),
        kprof_field_with("memory", "Memory", (double)device->memory_bytes, "byte"),
        kprof_field_with("memory_bus", "Memory bus", device->memory_bus_bits, "bit"),
        kprof_field_with("l2_cache", "L2 cache", (double)device->l2_bytes, "byte"),
        kprof_field_text("cuda_driver", "CUDA version of the driver", driver),
        kprof_field_integer("cupti_version", "CUPTI API version", device->cupti_version),
    };
    kprof_show_record(emitter, fields, COUNT_OF(fields));
}

static void show_passes(kprof_emitter *emitter, const kprof_model *model)
{
    kprof_list_begin(emitter, "passes", "Passes", KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < model->chip_count; i++) {
        for (size_t k = 0; k < model->chips[i].pass_count; k++) {
            const kprof_model_pass *pass = &model->chips[i].passes[k];
            const kprof_emit_field fields[] = {
                kprof_field_text("chip", "Chip", model->chips[i].name),
                kprof_field_integer("pass", "Pass", k + 1),
                kprof_field_integer("counters", "Counters", pass->counters),
                kprof_field_text("sm_side", "In the SMs", pass->sm_side ? "yes" : "no"),
            };
            kprof_show_record(emitter, fields, COUNT_OF(fields));
        }
    }
    emitter->ops->list_end(emitter);
}

KPROF_BY_BOTH(by_launches, kprof_model_kernel *const, KPROF_COMPARE((*b)->launches, (*a)->launches),
              strcmp((*a)->demangled, (*b)->demangled))

static void show_kernels(kprof_emitter *emitter, const kprof_model *model)
{
    KPROF_AUTO_FREE const kprof_model_kernel **sorted = kprof_calloc(model->kernel_count + 1, sizeof *sorted);
    for (size_t i = 0; i < model->kernel_count; i++)
        sorted[i] = &model->kernels[i];
    qsort(sorted, model->kernel_count, sizeof *sorted, by_launches);
    char **names = kprof_page_whole_names(emitter->options, model);
    kprof_list_begin(emitter, "kernels", "Kernels seen", KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < model->kernel_count; i++) {
        if (model->census_count > 0 && sorted[i]->launches == 0) /* the census page has what it counted */
            continue;
        const kprof_emit_field fields[] = {
            kprof_field_amount("launches", "Launches", sorted[i]->launches),
            machine(kprof_field_text("function", "Function", sorted[i]->function)),
            kprof_field_text("kernel", "Kernel", kprof_model_kernel_name(sorted[i], emitter->options->kernel_base),
                             .short_text = names ? names[sorted[i] - model->kernels] : NULL),
            machine(kprof_field_text("mangled", "Mangled", sorted[i]->mangled)),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

static void show_messages(kprof_emitter *emitter, const kprof_model *model)
{
    kprof_list_begin(emitter, "messages", "Messages", KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < model->message_count; i++) {
        const kprof_model_message *message = &model->messages[i];
        const kprof_emit_field fields[] = {
            kprof_field_integer("process_id", "Process", model->processes[message->process].pid),
            kprof_field_text("level", "Level", message->level),
            machine(kprof_field_text("status", "Status", message->status)),
            kprof_field_text("text", "Message", message->text),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

void kprof_page_show_session(kprof_emitter *emitter, const kprof_model *model)
{
    show_run(emitter, model);
    show_processes(emitter, model);
    kprof_list_begin(emitter, "devices", "Devices", KPROF_LIST_BLOCKS, false);
    for (size_t i = 0; i < model->device_count; i++)
        show_device(emitter, &model->devices[i]);
    emitter->ops->list_end(emitter);
    show_passes(emitter, model);
    kprof_list_begin(emitter, "left_out", "Metrics left out", KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < model->left_out_count; i++) {
        const kprof_emit_field fields[] = {
            kprof_field_text("chip", "Chip", model->left_out[i].chip),
            kprof_field_text("metric", "Metric", model->left_out[i].name),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
    show_kernels(emitter, model);
    show_messages(emitter, model);
}

kprof_status kprof_page_session(const kprof_page_context *context)
{
    kprof_emitter *emitter = kprof_page_begin(context);
    kprof_page_show_session(emitter, &context->reports->model);
    return kprof_page_end(emitter, KPROF_OK);
}
