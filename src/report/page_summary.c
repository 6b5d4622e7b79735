/* The summary page: for each kernel on each kind of device, how its metrics spread over its launches, and over the
 * samples of those that were multiplexed. */
#include "report/limits.h"
#include "report/page.h"
#include "report/witness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct value_spread {
    uint64_t count; /* launches with a value, or samples */
    double minimum, maximum, sum;
    bool disagrees; /* of a launch at least the passes do */
} value_spread;

typedef enum value_source { SOURCE_NONE, SOURCE_LAUNCHES, SOURCE_SAMPLES } value_source;

/* Launches of one kernel name on one kind of device, of all processes. A group has the values of single launches or of
 * samples, never both; launches that were not measured go with either. */
typedef struct kernel_group {
    const kprof_model_kernel *kernel;
    const kprof_model_device *device;
    const kprof_model_process *process; /* of the first launch */
    const kprof_view_chip *chip;        /* NULL: no sections are known */
    value_source source;
    uint64_t launches, not_measured, samples;
    uint64_t disagreeing;     /* launches, or samples */
    value_spread *statistics; /* [chip->metric_count] */
    char *key;                /* that find_group looks for */
    size_t next;              /* group of the same key, and another source; 0: none */
} kernel_group;

typedef struct kernel_groups {
    kprof_view *view;
    const kprof_report *report;
    kernel_group *groups;
    size_t group_count, value_count;
    kprof_names kernels, devices; /* name -> the first of that name */
    kprof_names keys;             /* -> the first group of it */
} kernel_groups;

static value_source source_of(const kprof_model_launch *launch)
{
    if (kprof_model_is_multiplexed(launch))
        return SOURCE_SAMPLES;
    return launch->measured > 0 ? SOURCE_LAUNCHES : SOURCE_NONE;
}

#define KEY_SIZE 48

/* Equal for launches of kernels of one name on devices of one name. */
static void write_key(const kernel_groups *summary, const kprof_model_launch *launch, char key[KEY_SIZE])
{
    snprintf(key, KEY_SIZE, "%zu %zu", kprof_names_find(&summary->kernels, launch->kernel->mangled),
             kprof_names_find(&summary->devices, launch->device->name));
}

static bool name_all(const kprof_model *model, kernel_groups *summary)
{
    bool added = true;
    for (size_t i = 0; i < model->kernel_count && added; i++)
        added = kprof_names_add(&summary->kernels, model->kernels[i].mangled, i);
    for (size_t i = 0; i < model->device_count && added; i++)
        added = kprof_names_add(&summary->devices, model->devices[i].name, i);
    return added;
}

/* The group of a launch, or NULL. *last is the last one of its key, NULL where there is none. */
static kernel_group *find_group(const kernel_groups *summary, const kprof_model_launch *launch, kernel_group **last)
{
    const value_source source = source_of(launch);
    char key[KEY_SIZE];
    write_key(summary, launch, key);
    size_t at = kprof_names_find(&summary->keys, key);
    *last = NULL;
    while (at != KPROF_NAMES_NONE) {
        kernel_group *group = *last = &summary->groups[at];
        if (group->source == source || group->source == SOURCE_NONE || source == SOURCE_NONE)
            return group;
        at = group->next ? group->next : KPROF_NAMES_NONE;
    }
    return NULL;
}

/* Add the group of a launch behind the last one of its key. */
static kprof_status add_group(kernel_groups *summary, const kprof_model_launch *launch, kernel_group *last)
{
    const kprof_view_chip *chip = kprof_view_fill(summary->view, launch);
    const size_t previous = last ? (size_t)(last - summary->groups) : 0;
    char key[KEY_SIZE];
    summary->value_count += chip ? chip->metric_count : 0;
    if (summary->value_count > KPROF_SUMMARY_MAX)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: its kernels have more than %d values to sum up, the most that kprof takes into memory; "
                          "choose fewer kernels with -k",
                          summary->report->path, KPROF_SUMMARY_MAX);
    kernel_group *added = KPROF_APPEND(summary->groups, summary->group_count);
    if (!added)
        return kprof_store_no_memory(summary->report);
    *added =
        (kernel_group){.kernel = launch->kernel, .device = launch->device, .process = launch->process, .chip = chip};
    added->statistics = calloc(chip ? chip->metric_count + 1 : 1, sizeof *added->statistics);
    write_key(summary, launch, key);
    added->key = strdup(key);
    const size_t index = summary->group_count++;
    if (last)
        summary->groups[previous].next = index;
    bool whole = added->statistics && added->key && (last || kprof_names_add(&summary->keys, added->key, index));
    return whole ? KPROF_OK : kprof_store_no_memory(summary->report);
}

static void count_value(value_spread *statistic, const kprof_emit_metric *metric)
{
    const double value = metric->value;
    if (isnan(value))
        return;
    statistic->disagrees = statistic->disagrees || metric->disagrees;
    if (statistic->count == 0 || value < statistic->minimum)
        statistic->minimum = value;
    if (statistic->count == 0 || value > statistic->maximum)
        statistic->maximum = value;
    statistic->sum += value;
    statistic->count++;
}

static kprof_status count_noted(const kprof_model *model, const kprof_model_launch *launch, kernel_group *group)
{
    kprof_disagreement *found;
    size_t count;
    kprof_status status = kprof_disagreements(model, launch, &found, &count);
    if (status != KPROF_OK)
        return status;
    group->not_measured += kprof_model_is_missing(launch);
    group->disagreeing += count > 0;
    kprof_disagreements_free(found, count);
    return KPROF_OK;
}

static void count_values(kernel_groups *summary, kernel_group *group, const kprof_model_launch *launch)
{
    const kprof_view_chip *chip = kprof_view_fill(summary->view, launch);
    for (size_t i = 0; chip == group->chip && chip && i < chip->metric_count; i++)
        count_value(&group->statistics[i], &chip->metrics[i]);
}

/* A launch that stands for several: count its samples, not their medians. */
static void count_samples(kernel_groups *summary, kernel_group *group, const kprof_model_launch *launch)
{
    const kprof_model_samples *samples = launch->samples;
    kprof_model_launch sample = *launch;
    group->launches += samples->launches;
    group->samples += samples->count;
    group->disagreeing += samples->set_apart;
    for (size_t i = 0; i < samples->used; i++) {
        sample.values = samples->values + i * summary->view->model->metric_count;
        count_values(summary, group, &sample);
    }
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    kernel_groups *summary = user;
    kernel_group *last, *group = find_group(summary, launch, &last);
    if (!group) {
        kprof_status status = add_group(summary, launch, last);
        if (status != KPROF_OK)
            return status;
        group = &summary->groups[summary->group_count - 1];
    }
    if (group->source == SOURCE_NONE)
        group->source = source_of(launch);
    if (launch->samples) {
        count_samples(summary, group, launch);
        return KPROF_OK;
    }
    group->launches++;
    group->samples += source_of(launch) == SOURCE_SAMPLES && launch->measured > 0;
    count_values(summary, group, launch);
    return count_noted(summary->view->model, launch, group);
}

/* Adding up makes sense for amounts ("inst", "byte", "ns"), not for shares, rates, averages and properties; and not for
 * samples, which are fewer than the launches that they are made of. */
static bool is_additive(const kernel_group *group, const kprof_emit_metric *metric)
{
    if (group->source == SOURCE_SAMPLES)
        return false;
    const char *suffix = strrchr(metric->name, '.');
    return suffix && strcmp(suffix, ".sum") == 0 && *metric->unit && !strpbrk(metric->unit, "%/");
}

/* For people only where there are any. */
static kprof_emit_field noted_field(const char *key, const char *label, uint64_t launches)
{
    kprof_emit_field field = kprof_field_integer(key, label, (int64_t)launches);
    return launches > 0 ? field : kprof_field_with_role(field, KPROF_ROLE_MACHINE);
}

static void show_metric(kprof_emitter *emitter, const kernel_group *group, size_t index)
{
    const kprof_emit_metric *metric = &group->chip->metrics[index];
    const value_spread *s = &group->statistics[index];
    const bool has_sum = is_additive(group, metric);
    double average = s->count ? s->sum / (double)s->count : NAN;
    enum { LABEL_FIELD = 3, SUM_FIELD = 9 };
    kprof_emit_field fields[] = {
        kprof_field_with_role(kprof_field_text("section", "Section", metric->section->id), KPROF_ROLE_MACHINE),
        kprof_field_with_role(kprof_field_text("section_name", "Section", metric->section->name), KPROF_ROLE_HEADING),
        kprof_field_with_role(kprof_field_text("metric", "Name", metric->name), KPROF_ROLE_MACHINE),
        kprof_field_text("label", "Metric", metric->label),
        kprof_field_with_role(kprof_field_text("unit", "Unit", metric->unit), KPROF_ROLE_MACHINE),
        kprof_field_with_role(kprof_field_integer("count", "Values", (int64_t)s->count), KPROF_ROLE_MACHINE),
        kprof_field_with_unit(kprof_field_real("minimum", "Minimum", s->count ? s->minimum : NAN), metric->unit),
        kprof_field_with_unit(kprof_field_real("maximum", "Maximum", s->count ? s->maximum : NAN), metric->unit),
        kprof_field_with_unit(kprof_field_real("average", "Average", average), metric->unit),
        kprof_field_with_unit(kprof_field_real("sum", "Sum", s->count && has_sum ? s->sum : NAN), metric->unit),
    };
    fields[LABEL_FIELD].disagrees = s->disagrees;
    fields[SUM_FIELD].missing = has_sum ? NULL : "";
    emitter->ops->row(emitter, &(kprof_emit_record){fields, sizeof fields / sizeof *fields});
}

/* Return the number of samples that multiplexed launches make up; missing for others. */
static kprof_emit_field samples_field(const kernel_group *group)
{
    if (group->source == SOURCE_SAMPLES)
        return kprof_field_integer("samples", "Multiplexed samples", (int64_t)group->samples);
    return kprof_field_with_role(kprof_field_real("samples", "Multiplexed samples", NAN), KPROF_ROLE_MACHINE);
}

static void show_group(kprof_emitter *emitter, const kernel_group *group)
{
    char cc[24];
    snprintf(cc, sizeof cc, "%u.%u", group->device->record.cc_major, group->device->record.cc_minor);
    const kprof_emit_field fields[] = {
        kprof_field_with_role(kprof_field_integer("process_id", "Process", group->process->pid), KPROF_ROLE_MACHINE),
        kprof_field_with_role(kprof_field_text("function", "Function", group->kernel->function), KPROF_ROLE_MACHINE),
        kprof_field_plain(kprof_field_text("kernel", "Kernel",
                                           kprof_model_kernel_name(group->kernel, emitter->options->kernel_base))),
        kprof_field_plain(kprof_field_text("device_name", "Device", group->device->name)),
        kprof_field_text("cc", "CC", cc),
        kprof_field_integer("invocations", "Invocations", (int64_t)group->launches),
        noted_field("not_measured", "Not measured", group->not_measured),
        samples_field(group),
        noted_field("disagreeing", "Passes disagree in", group->disagreeing),
    };
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, sizeof fields / sizeof *fields});
    for (size_t i = 0; group->chip && i < group->chip->metric_count; i++) {
        if (!group->chip->metrics[i].repeated)
            show_metric(emitter, group, i);
    }
    emitter->ops->record_end(emitter);
}

static kprof_status show_groups(const kprof_page_context *context, const kernel_groups *summary)
{
    kprof_emitter *emitter = NULL;
    kprof_status status = kprof_page_begin(context, &emitter);
    if (status != KPROF_OK)
        return status;
    emitter->ops->list_begin(emitter, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_GROUPS, false});
    for (size_t i = 0; i < summary->group_count && status == KPROF_OK; i++) {
        show_group(emitter, &summary->groups[i]);
        status = kprof_emitter_status(emitter);
    }
    emitter->ops->list_end(emitter);
    return kprof_page_end(emitter, status);
}

static void free_groups(kernel_groups *summary)
{
    for (size_t i = 0; i < summary->group_count; i++) {
        free(summary->groups[i].statistics);
        free(summary->groups[i].key);
    }
    free(summary->groups);
    kprof_names_free(&summary->kernels);
    kprof_names_free(&summary->devices);
    kprof_names_free(&summary->keys);
}

kprof_status kprof_page_summary(const kprof_page_context *context)
{
    kprof_view view;
    kprof_status status = kprof_view_sections(&context->reports->model, &view);
    if (status != KPROF_OK)
        return status;
    kernel_groups summary = {.view = &view, .report = context->reports->file};
    kprof_model_walk walk = {context->reports->file, &context->reports->model, context->options->filter, true};
    if (!name_all(walk.model, &summary))
        status = kprof_store_no_memory(summary.report);
    if (status == KPROF_OK)
        status = kprof_model_joined_launches(&walk, count_launch, &summary);
    if (status == KPROF_OK)
        status = show_groups(context, &summary);
    free_groups(&summary);
    kprof_view_free(&view);
    return status;
}
