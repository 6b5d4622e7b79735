/* Answers small questions about a report in memory, and keeps account of the work that pages do with it. */
#include "report/model/model.h"
#include "report/store/limits.h"

#include <string.h>

bool kprof_model_is_multiplexed(const kprof_model_launch *launch)
{
    return strcmp(launch->replay_mode, "multiplex") == 0;
}

bool kprof_model_begins_early(const kprof_model *model)
{
    return kprof_names_find(&model->metric_names, KPROF_RANGE_LEAD) == KPROF_NAMES_NONE;
}

bool kprof_model_is_missing(const kprof_model_launch *launch)
{
    return launch->measured == 0 && *launch->reason && !kprof_model_is_multiplexed(launch);
}

const char *kprof_model_kernel_name(const kprof_model_kernel *kernel, const char *base)
{
    if (base && strcmp(base, "function") == 0)
        return kernel->function;
    if (base && strcmp(base, "mangled") == 0)
        return kernel->mangled;
    return kernel->demangled;
}

kprof_model_passes kprof_model_passes_of(const kprof_model_device *device, const kprof_model *model, size_t metric)
{
    const kprof_model_chip *chip = device->chip_index == SIZE_MAX ? NULL : &model->chips[device->chip_index];
    return chip && chip->schedule ? chip->schedule[metric] : (kprof_model_passes){0};
}

kprof_status kprof_work_charge(kprof_work *work, uint64_t values)
{
    const kprof_report *first = work->reports[0], *second = work->reports[1];
    uint64_t most = 0;
    for (size_t i = 0; i < 2 && work->reports[i]; i++)
        most += KPROF_WORK_BASE + KPROF_WORK_PER_FILE_BYTE * (uint64_t)work->reports[i]->size_bytes;
    if (values <= most && work->done <= most - values) {
        work->done += values;
        return KPROF_OK;
    }
    return kprof_fail(KPROF_BAD_REPORT,
                      "%s%s%s: showing these launches takes more than %llu values, the most that kprof works out for "
                      "%s of this size; choose fewer launches with -k, -s and -c, or read %s with sqlite3",
                      first->path, second ? " and " : "", second ? second->path : "", (unsigned long long)most,
                      second ? "files" : "a file", second ? "them" : "it");
}
