/* Groups launches by keys, texts that tell what the launches of a group have in common. */
#include "report/page/groups.h"
#include "core/log.h"
#include "core/torch.h"
#include "report/model/change.h"
#include "report/model/number.h"
#include "report/model/witness.h"
#include "report/store/limits.h"

#include <math.h>
#include <string.h>

#define MOST_CALLERS 3

static kprof_value_source source_of(const kprof_model_launch *launch)
{
    if (kprof_model_is_multiplexed(launch))
        return KPROF_SOURCE_SAMPLES;
    return launch->measured > 0 ? KPROF_SOURCE_LAUNCHES : KPROF_SOURCE_NONE;
}

static void put_shape(kprof_strbuf *out, const kprof_launch_record *shape)
{
    kprof_strbuf_printf(out, "(%u, %u, %u)x(%u, %u, %u)", shape->grid[0], shape->grid[1], shape->grid[2],
                        shape->block[0], shape->block[1], shape->block[2]);
    if (shape->cluster[0] > 0)
        kprof_strbuf_printf(out, ", cluster (%u, %u, %u)", shape->cluster[0], shape->cluster[1], shape->cluster[2]);
    kprof_strbuf_printf(out, ", %u B dynamic", shape->dynamic_smem_bytes);
}

/* PyTorch's name of the module or operator, else the file of the user's own line. */
static void put_module(const kprof_groups *groups, const kprof_model_launch *launch, kprof_strbuf *key)
{
    const kprof_model_stack *stack = kprof_model_stack_of(groups->model, launch);
    const size_t before = key->length;
    kprof_torch_put_module(launch->record.nvtx, key);
    if (key->length == before && stack)
        kprof_strbuf_puts(key, *stack->module ? stack->module : stack->line);
}

static void put_line(const kprof_groups *groups, const kprof_model_launch *launch, kprof_strbuf *key)
{
    const kprof_model_stack *stack = kprof_model_stack_of(groups->model, launch);
    if (stack)
        kprof_strbuf_printf(key, "%s %s", stack->line, stack->module);
}

static void put_place_and_shape(const kprof_groups *groups, const kprof_model_launch *launch, kprof_strbuf *key)
{
    const kprof_launch_record *shape = &launch->record;
    kprof_strbuf_printf(key, "%zu %u", (size_t)(launch->process - groups->model->processes),
                        launch->device->record.device);
    for (size_t i = 0; i < COUNT_OF(shape->grid); i++)
        kprof_strbuf_printf(key, " %u %u", shape->grid[i], shape->block[i]);
}

/* Caller frees. */
static char *make_key(const void *of, const kprof_model_launch *launch)
{
    const kprof_groups *groups = of;
    kprof_strbuf key = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&key, "%zu %zu ", kprof_names_find(&groups->kernels, launch->kernel->mangled),
                        kprof_names_find(&groups->devices, launch->device->name));
    switch (groups->by) {
    case KPROF_GROUP_CONFIG:
        put_shape(&key, &launch->record);
        break;
    case KPROF_GROUP_SHAPE:
        put_place_and_shape(groups, launch, &key);
        break;
    case KPROF_GROUP_DEVICE:
        kprof_strbuf_printf(&key, "%zu", kprof_names_find(&groups->uuids, launch->device->uuid));
        break;
    case KPROF_GROUP_PROCESS:
        kprof_strbuf_printf(&key, "%zu", (size_t)(launch->process - groups->model->processes));
        break;
    case KPROF_GROUP_GRAPH:
        kprof_strbuf_printf(&key, "%lu", launch->record.graph_node);
        break;
    case KPROF_GROUP_NVTX:
        kprof_strbuf_append(&key, launch->record.nvtx, kprof_nvtx_innermost_length(launch->record.nvtx));
        break;
    case KPROF_GROUP_STACK:
        kprof_strbuf_printf(&key, "%ld", launch->stack);
        break;
    case KPROF_GROUP_LINE:
        put_line(groups, launch, &key);
        break;
    case KPROF_GROUP_MODULE:
        put_module(groups, launch, &key);
        break;
    default:
        break;
    }
    return kprof_strbuf_take(&key);
}

/* May launches that share samples be in several groups? */
static bool parts_samples(kprof_grouping by)
{
    return by == KPROF_GROUP_GRAPH || by == KPROF_GROUP_NVTX || by == KPROF_GROUP_STACK || by == KPROF_GROUP_LINE ||
           by == KPROF_GROUP_MODULE;
}

/* The group of a key that can take values from this source, or NULL. *last is the last group of the key, or NULL. */
static kprof_group *find_group(const kprof_groups *groups, const char *key, kprof_value_source source,
                               kprof_group **last)
{
    size_t at = kprof_names_find(&groups->keys, key);
    *last = NULL;
    while (at != KPROF_NAMES_NONE) {
        kprof_group *group = *last = &groups->items[at];
        if (group->source == source || group->source == KPROF_SOURCE_NONE || source == KPROF_SOURCE_NONE)
            return group;
        at = group->next ? group->next : KPROF_NAMES_NONE;
    }
    return NULL;
}

/* Add a group for a launch after the last one of its key (NULL: it is the first), to *group. */
static kprof_status add_group(kprof_groups *groups, const kprof_model_launch *launch, const char *key,
                              kprof_group **group)
{
    const size_t metrics = groups->model->metric_count + 1;
    const size_t previous = *group ? (size_t)(*group - groups->items) : KPROF_NAMES_NONE;
    const size_t index = groups->count;
    kprof_pool *pool = groups->model->pool;
    if ((groups->count + 1) * metrics > KPROF_SUMMARY_MAX)
        return kprof_store_too_much(groups->report, KPROF_SUMMARY_MAX, "values to sum up");
    kprof_group *added = KPROF_POOL_ADD(pool, groups->items, groups->count);
    *added = (kprof_group){.kernel = launch->kernel, .device = launch->device, .process = launch->process};
    added->key = kprof_pool_strdup(pool, key);
    added->stack = launch->stack;
    added->shape = launch->record;
    added->totals = kprof_pool_calloc(pool, metrics, sizeof *added->totals);
    *group = added;
    if (previous != KPROF_NAMES_NONE)
        groups->items[previous].next = index;
    else
        kprof_names_add(&groups->keys, added->key, index);
    return KPROF_OK;
}

static void add_duration(const kprof_groups *groups, kprof_group *group, const double *values)
{
    if (groups->duration != KPROF_NAMES_NONE && !isnan(values[groups->duration]))
        *KPROF_POOL_ADD(groups->model->pool, group->durations, group->duration_count) = values[groups->duration];
}

/* Note which values of the launch join passes that disagree. */
static void mark_disagreeing(const kprof_groups *groups, kprof_group *group, const kprof_model_launch *launch)
{
    group->disagreeing++;
    for (size_t i = 0; i < groups->model->metric_count; i++) {
        kprof_rollup_total *total = &group->totals[i];
        if (isnan(launch->values[i]) || total->disagrees)
            continue;
        const kprof_model_passes passes = kprof_model_passes_of(launch->device, groups->model, i);
        total->disagrees = kprof_passes_disagree(groups->model, launch, &passes);
    }
}

static void count_single(kprof_groups *groups, kprof_group *group, const kprof_model_launch *launch)
{
    group->launches++;
    group->samples += source_of(launch) == KPROF_SOURCE_SAMPLES && launch->measured > 0;
    group->not_measured += kprof_model_is_missing(launch);
    if (launch->measured > 0 && *launch->reason && group->noted++ == 0)
        group->note = kprof_pool_strdup(groups->model->pool, launch->reason);
    kprof_rollup_add(groups->rollup, launch->values, group->totals);
    if (kprof_disagreements(groups->model, launch, NULL) > 0)
        mark_disagreeing(groups, group, launch);
    add_duration(groups, group, launch->values);
}

/* A launch that stands for several: count its samples, not their medians. */
static void count_samples(kprof_groups *groups, kprof_group *group, const kprof_model_launch *launch)
{
    const kprof_model_samples *samples = launch->samples;
    kprof_model_launch sample = *launch;
    group->launches += samples->launches;
    group->samples += samples->count;
    group->shares_samples = group->shares_samples || samples->is_part;
    for (size_t i = 0; i < samples->used; i++) {
        sample.values = samples->values + i * groups->model->metric_count;
        kprof_rollup_add(groups->rollup, sample.values, group->totals);
        if (samples->set_apart == samples->read) /* then all are used, and none agrees */
            mark_disagreeing(groups, group, &sample);
        add_duration(groups, group, sample.values);
    }
    if (samples->set_apart < samples->read)
        group->disagreeing += samples->set_apart;
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    kprof_groups *groups = user;
    kprof_group *last;
    KPROF_AUTO_FREE char *key = make_key(groups, launch);
    kprof_group *group = find_group(groups, key, source_of(launch), &last);
    const kprof_status status = group ? KPROF_OK : add_group(groups, launch, key, &last);
    if (status != KPROF_OK)
        return status;
    group = group ? group : last;
    if (group->source == KPROF_SOURCE_NONE)
        group->source = source_of(launch);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, "%zu ", (size_t)(group - groups->items));
    put_shape(&text, &launch->record);
    group->configurations += kprof_names_find(&groups->configurations, text.data) == KPROF_NAMES_NONE;
    kprof_names_keep(&groups->configurations, text.data, 0);
    /* Samples of many launches tell more than those of a few. */
    const kprof_code_profile *code = kprof_code_profile_of(groups->code, launch->id);
    if (code && (!group->code || code->sampled > group->code->sampled))
        group->code = code;
    (launch->samples ? count_samples : count_single)(groups, group, launch);
    return KPROF_OK;
}

static void find_untold(kprof_groups *groups)
{
    const kprof_model *model = groups->model;
    groups->untold = kprof_pool_calloc(model->pool, model->kernel_count + 1, sizeof *groups->untold);
    for (size_t i = 0; i < model->kernel_count; i++)
        groups->untold[kprof_names_find(&groups->kernels, model->kernels[i].mangled)] += model->kernels[i].launches;
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t *untold = &groups->untold[kprof_names_find(&groups->kernels, groups->items[i].kernel->mangled)];
        *untold -= *untold < groups->items[i].launches ? *untold : groups->items[i].launches;
    }
}

/* Keys end in texts, behind two numbers. */
static const char *text_of_key(const kprof_group *group)
{
    return strchr(strchr(group->key, ' ') + 1, ' ') + 1;
}

/* A table of rows that differ in nothing does not tell why. */
static void tell_no_parts(const kprof_groups *groups)
{
    const bool of_ranges = groups->by == KPROF_GROUP_NVTX;
    if (groups->count == 0 || !parts_samples(groups->by) || groups->by == KPROF_GROUP_GRAPH)
        return;
    const bool has_any =
        KPROF_ANY(i, groups->count, of_ranges ? *text_of_key(&groups->items[i]) : groups->items[i].stack > 0);
    if (!has_any)
        kprof_log(KPROF_LOG_WARNING, "no launch here %s",
                  of_ranges ? "is in an NVTX range to group by; a run keeps ranges with --nvtx"
                            : "has a call stack to group by; a run keeps stacks with --call-stack");
}

kprof_status kprof_groups_collect(const kprof_page_context *context, kprof_groups *out)
{
    const kprof_model *model = &context->reports->model;
    const kprof_names names = {.pool = model->pool};
    *out = (kprof_groups){.model = model,
                          .report = context->reports->file,
                          .by = context->options->group_by,
                          .kernels = names,
                          .devices = names,
                          .uuids = names,
                          .keys = names,
                          .configurations = names};
    out->duration = kprof_names_find(&model->metric_names, KPROF_TIME_METRIC);
    out->rollup = kprof_rollup_new(model);
    for (size_t i = 0; i < model->kernel_count; i++)
        kprof_names_add(&out->kernels, model->kernels[i].mangled, i);
    for (size_t i = 0; i < model->device_count; i++) {
        kprof_names_add(&out->devices, model->devices[i].name, i);
        kprof_names_add(&out->uuids, model->devices[i].uuid, i);
    }
    out->code = kprof_code_profiles_load(context->reports->file, model);
    if (out->by == KPROF_GROUP_STACK)
        kprof_told_stacks_load(context->reports->file, model->pool, &out->stacks);
    const kprof_model_parts parts = {parts_samples(out->by) ? make_key : NULL, out};
    const kprof_status status = kprof_page_walk_parts(context, parts, count_launch, out);
    if (status == KPROF_OK) {
        find_untold(out);
        tell_no_parts(out);
    }
    return status;
}

uint64_t kprof_group_untold(const kprof_groups *groups, const kprof_group *group)
{
    if (group->source != KPROF_SOURCE_SAMPLES)
        return 0;
    return groups->untold[kprof_names_find(&groups->kernels, group->kernel->mangled)];
}

double kprof_group_time_ns(const kprof_group *group)
{
    const double sum = KPROF_SUM(i, group->duration_count, group->durations[i]);
    return group->duration_count ? sum / (double)group->duration_count * (double)group->launches : NAN;
}

void kprof_group_tell_missing(const kprof_group *group, kprof_strbuf *out)
{
    const uint64_t launches = group->launches, missing = group->not_measured;
    if (missing > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out),
                            group->code ? "no counters of %lu of %lu launch%s" : "%lu of %lu launch%s not measured",
                            missing, launches, kprof_ending(launches, "es"));
}

void kprof_group_tell_disagreeing(const kprof_group *group, kprof_strbuf *out)
{
    const bool are_samples = group->source == KPROF_SOURCE_SAMPLES;
    const uint64_t disagreeing = group->disagreeing, count = are_samples ? group->samples : group->launches;
    if (disagreeing > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "passes disagree in %lu of %lu %s%s", disagreeing, count,
                            are_samples ? "sample" : "launch", kprof_ending(count, are_samples ? "s" : "es"));
}

void kprof_group_note(const kprof_groups *groups, const kprof_group *group, kprof_strbuf *out)
{
    const bool are_samples = group->source == KPROF_SOURCE_SAMPLES;
    const uint64_t samples = group->samples;
    if (are_samples && samples == 0)
        kprof_strbuf_puts(out, "multiplexed, no whole sample");
    else if (are_samples)
        kprof_strbuf_printf(out, "multiplexed, %lu sample%s%s", samples, kprof_ending(samples, "s"),
                            group->shares_samples ? ", with launches of other groups" : "");
    kprof_untold_note(kprof_group_untold(groups, group), out);
    if (groups->model->census_count > 0 && groups->by != KPROF_GROUP_KERNEL && groups->by != KPROF_GROUP_CONFIG)
        kprof_strbuf_puts(kprof_strbuf_part(out), "time of the launches measured alone, not of the census");
    kprof_group_tell_missing(group, out);
    kprof_group_tell_disagreeing(group, out);
}

/* Stacks may share their innermost line of the user's own: tell which line called that. */
static void describe_callers(const kprof_told_stacks *stacks, size_t number, kprof_strbuf *out)
{
    const kprof_told_stack *stack = number < stacks->stack_count ? &stacks->stacks[number] : NULL;
    const size_t length = stack ? kprof_told_stack_length(stacks, stack) : 0;
    size_t own = 0;
    for (size_t i = 0; i < length && own <= MOST_CALLERS + 1; i++) {
        const kprof_told_frame *frame = &stacks->frames[stack->frames[i]];
        if (frame->is_installed || own++ == 0) /* the line itself */
            continue;
        kprof_strbuf_puts(out, own == 2 ? ", from " : ", ");
        kprof_strbuf_puts(out, own > MOST_CALLERS + 1 ? "..." : frame->text);
    }
}

static void describe_stack(const kprof_groups *groups, const kprof_group *group, kprof_strbuf *out)
{
    const kprof_model_stack *stack = group->stack > 0 ? &groups->model->stacks[group->stack - 1] : NULL;
    if (!stack)
        kprof_strbuf_puts(out, "no call stack");
    else if (groups->by != KPROF_GROUP_STACK)
        kprof_strbuf_puts(out, stack->line);
    else {
        kprof_strbuf_printf(out, "stack %ld, %s", group->stack, stack->line);
        describe_callers(&groups->stacks, (size_t)group->stack - 1, out);
    }
}

void kprof_group_describe(const kprof_groups *groups, const kprof_group *group, kprof_strbuf *out)
{
    switch (groups->by) {
    case KPROF_GROUP_CONFIG:
        put_shape(out, &group->shape);
        break;
    case KPROF_GROUP_DEVICE:
        kprof_strbuf_printf(out, "device %u, %.8s", group->device->record.device, group->device->uuid);
        break;
    case KPROF_GROUP_PROCESS:
        kprof_strbuf_printf(out, "%s %ld on %s", group->process->name, group->process->pid, group->process->host);
        break;
    case KPROF_GROUP_GRAPH:
        if (group->shape.graph_node > 0)
            kprof_strbuf_printf(out, "graph node %lu", group->shape.graph_node);
        else
            kprof_strbuf_puts(out, "no graph");
        break;
    case KPROF_GROUP_NVTX:
        kprof_strbuf_puts(out, *text_of_key(group) ? text_of_key(group) : KPROF_GROUP_OF_NO_RANGE);
        break;
    case KPROF_GROUP_STACK:
    case KPROF_GROUP_LINE:
        describe_stack(groups, group, out);
        break;
    case KPROF_GROUP_MODULE:
        kprof_strbuf_puts(out, *text_of_key(group) ? text_of_key(group) : "no call stack");
        break;
    default:
        break;
    }
}
