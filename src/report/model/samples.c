/* Joins multiplexed launches of one kernel and shape, or of a part of these, into one that has the medians of the
 * samples. A first walk counts them; the second one reads the samples of a group when it comes to the group's first
 * launch, so that memory holds the numbers of samples, and the values of one group. */
#include "report/model/model.h"
#include "report/model/number.h"
#include "report/model/robust.h"
#include "report/model/witness.h"
#include "report/store/limits.h"

#include <math.h>
#include <string.h>

#define GROUP_CELLS_MAX ((size_t)1 << 24) /* most values of one group: 128 MiB, whatever the report says */

typedef struct sample_group {
    size_t whole_group;                /* has the samples: itself, or where it is a part the group of all parts */
    int64_t first, last;               /* ids of launches */
    uint64_t launches, samples, whole; /* whole: samples with pass_count passes */
    int64_t *ids;                      /* [id_count]: of the samples to read */
    size_t id_count;
    char *reason; /* of the first sample; NULL: there is no sample */
    char *nvtx;   /* of the first launch */
    uint64_t other_ranges;
    kprof_stack_count *stacks; /* [stack_count] */
    size_t stack_count;
    uint32_t pass_count;
    int64_t measured;
} sample_group;

typedef struct sample_walker {
    const kprof_model_walk *walk;
    kprof_model_parts parts;
    kprof_model_visit *visit;
    void *user;
    kprof_names keys;   /* of groups -> index */
    kprof_names stacks; /* of a group and a stack -> index in the group's */
    sample_group *groups;
    size_t group_count;
    uint64_t *told; /* [kernel_count + 1]: launches that the report has */
    kprof_value_reader reader;
    kprof_work work; /* of the launches so far */
} sample_walker;

/* The buffers and results of the group at hand. */
typedef struct joined_values {
    double *samples; /* [read * metric_count] */
    double *medians; /* [metric_count] */
    double *column;  /* [read]: the values of one metric */
    bool *asked, *sample_asked;
    kprof_model_spread *spreads;
    kprof_model_samples result;
} joined_values;

/* Equal for launches that share samples, or with `part` for those of one part. Caller frees. */
static char *make_key(const sample_walker *walker, const kprof_model_launch *launch, const char *part)
{
    const kprof_model *model = walker->walk->model;
    const kprof_launch_record *r = &launch->record;
    return kprof_strprintf("%zu %zu %zu %u %u %u %u %u %u %u %u %u %u%s%s",
                           (size_t)(launch->process - model->processes), (size_t)(launch->device - model->devices),
                           (size_t)(launch->kernel - model->kernels), r->grid[0], r->grid[1], r->grid[2], r->block[0],
                           r->block[1], r->block[2], r->cluster[0], r->cluster[1], r->cluster[2], r->dynamic_smem_bytes,
                           part ? " " : "", part ? part : "");
}

/* The group of the launch, or NONE; with `whole_group` another than NULL it is added if there is room. */
static size_t find_group(sample_walker *walker, const kprof_model_launch *launch, const char *part,
                         const size_t *whole_group)
{
    KPROF_AUTO_FREE char *key = make_key(walker, launch, part);
    const size_t index = kprof_names_find(&walker->keys, key);
    if (index != KPROF_NAMES_NONE || !whole_group || walker->group_count == KPROF_SAMPLE_GROUPS_MAX)
        return index;
    const size_t added = walker->group_count;
    kprof_names_keep(&walker->keys, key, added);
    *KPROF_ADD(walker->groups, walker->group_count) =
        (sample_group){.first = launch->id, .whole_group = *whole_group == KPROF_NAMES_NONE ? added : *whole_group};
    return added;
}

/* The group that the launch is shown with. NONE: it was not multiplexed, or its group is one too many. `adds` in the
 * first walk. */
static size_t find_shown(sample_walker *walker, const kprof_model_launch *launch, bool adds)
{
    const size_t none = KPROF_NAMES_NONE;
    if (!kprof_model_is_multiplexed(launch))
        return none;
    const size_t whole = find_group(walker, launch, NULL, adds ? &none : NULL);
    if (whole == none || !walker->parts.part)
        return whole;
    KPROF_AUTO_FREE char *part = walker->parts.part(walker->parts.of, launch);
    return find_group(walker, launch, part, adds ? &whole : NULL);
}

static void add_sample(const sample_walker *walker, sample_group *group, const kprof_model_launch *launch)
{
    if (group->samples++ == 0)
        group->reason = kprof_strdup(launch->reason);
    if (launch->record.pass_count > group->pass_count) {
        group->pass_count = launch->record.pass_count;
        group->whole = 0;
    }
    group->whole += launch->record.pass_count == group->pass_count;
    group->measured = launch->measured > group->measured ? launch->measured : group->measured;
    const size_t fit = GROUP_CELLS_MAX / (walker->walk->model->metric_count + 1);
    if (group->id_count < KPROF_SAMPLES_MAX && (group->id_count == 0 || group->id_count < fit)) /* else read no more */
        *KPROF_ADD(group->ids, group->id_count) = launch->id;
}

/* Count the cost of reading and showing a launch. The first walk does so, before anything is printed, so that a report
 * that costs too much prints nothing. */
static kprof_status charge(sample_walker *walker, const kprof_model_launch *launch)
{
    const kprof_model *model = walker->walk->model;
    uint64_t values = model->metric_count;
    if (launch->device->chip_index != SIZE_MAX) {
        const kprof_model_chip *chip = &model->chips[launch->device->chip_index];
        uint64_t telling = model->witness_count * model->metric_count; /* which values join passes that disagree */
        for (size_t i = 0; chip->schedule && i < model->witness_count; i++)
            telling += chip->scheduled + model->metric_count * chip->schedule[model->witnesses[i]].count;
        values += chip->value_count + telling / KPROF_WORK_OF_WITNESS;
    }
    return kprof_work_charge(&walker->work, values);
}

/* Note from where the launch was made, in a group of that index. */
static void note_origin(sample_walker *walker, size_t index, const kprof_model_launch *launch)
{
    sample_group *group = &walker->groups[index];
    KPROF_AUTO_FREE char *key = kprof_strprintf("%zu %ld", index, launch->stack);
    size_t at = kprof_names_find(&walker->stacks, key);
    if (at == KPROF_NAMES_NONE) {
        at = group->stack_count;
        kprof_names_keep(&walker->stacks, key, at);
        KPROF_ADD(group->stacks, group->stack_count)->stack = launch->stack;
    }
    group->stacks[at].launches++;
    if (!group->nvtx)
        group->nvtx = kprof_strdup(launch->record.nvtx);
    group->other_ranges += group->nvtx && strcmp(group->nvtx, launch->record.nvtx) != 0;
}

static const char *line_of(const kprof_model *model, int64_t stack)
{
    const kprof_model_stack *of = kprof_model_stack_of(model, &(kprof_model_launch){.stack = stack});
    return of ? of->line : "";
}

static uint64_t count_other_lines(const kprof_model *model, const sample_group *group)
{
    return KPROF_SUM(i, group->stack_count,
                     strcmp(line_of(model, group->stacks[i].stack), line_of(model, group->stacks[0].stack)) != 0
                         ? group->stacks[i].launches
                         : 0);
}

/* The first walk. Of multiplexed launches only the first is shown, and only samples have values. */
static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    sample_walker *walker = user;
    walker->told[launch->kernel - walker->walk->model->kernels]++;
    const size_t index = find_shown(walker, launch, true);
    if (index == KPROF_NAMES_NONE)
        return charge(walker, launch);
    sample_group *group = &walker->groups[index];
    if (group->launches++ == 0 || launch->measured > 0) {
        kprof_status status = charge(walker, launch);
        if (status != KPROF_OK)
            return status;
    }
    group->last = launch->id;
    note_origin(walker, index, launch);
    sample_group *whole = &walker->groups[group->whole_group];
    whole->launches += whole != group;
    if (launch->measured > 0)
        add_sample(walker, whole, launch);
    return KPROF_OK;
}

/* Count the cost of reading samples once more, for each further part. */
static kprof_status charge_parts(sample_walker *walker)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < walker->group_count && status == KPROF_OK && walker->parts.part; i++) {
        const sample_group *whole = &walker->groups[walker->groups[i].whole_group];
        status = kprof_work_charge(&walker->work, whole->id_count * walker->walk->model->metric_count);
    }
    return status;
}

/* Read the samples and keep those whose passes agree. If there are none, keep all. */
static kprof_status read_samples(sample_walker *walker, const sample_group *group, joined_values *joined)
{
    const kprof_model *model = walker->walk->model;
    size_t agreeing = 0;
    for (size_t i = 0; i < group->id_count; i++) {
        double *values = joined->samples + i * model->metric_count;
        kprof_status status = kprof_value_reader_read(&walker->reader, group->ids[i], values, joined->sample_asked);
        if (status != KPROF_OK)
            return status;
        for (size_t k = 0; k < model->metric_count; k++)
            joined->asked[k] = joined->asked[k] || joined->sample_asked[k];
        if (kprof_disagreements(model, &(kprof_model_launch){.values = values}, NULL) == 0)
            memmove(joined->samples + agreeing++ * model->metric_count, values, model->metric_count * sizeof *values);
    }
    joined->result.read = group->id_count;
    joined->result.set_apart = group->id_count - agreeing;
    joined->result.used = agreeing ? agreeing : group->id_count;
    return KPROF_OK;
}

/* Compute the medians of the samples. Values that need no counters, such as the stream, come from the first launch. The
 * lead of a range is measured, so it is a median too. */
static void find_medians(const kprof_model *model, const kprof_model_launch *first, joined_values *joined)
{
    const size_t used = joined->result.used, lead = kprof_names_find(&model->metric_names, KPROF_RANGE_LEAD);
    for (size_t i = 0; i < model->metric_count; i++) {
        joined->asked[i] = joined->asked[i] || first->asked[i];
        if (used == 0 || (strcmp(model->metrics[i].kind, "launch") == 0 && i != lead)) {
            joined->medians[i] = first->values[i];
            joined->spreads[i] = (kprof_model_spread){0, NAN};
            continue;
        }
        for (size_t k = 0; k < used; k++)
            joined->column[k] = joined->samples[k * model->metric_count + i];
        kprof_center center = kprof_center_of(joined->column, used);
        joined->medians[i] = center.median;
        joined->spreads[i] = (kprof_model_spread){center.count, center.mad};
    }
}

static kprof_status show_joined(const sample_walker *walker, const sample_group *group, const kprof_model_launch *first,
                                joined_values *joined)
{
    kprof_model_launch launch = *first;
    const sample_group *whole = &walker->groups[group->whole_group];
    const uint64_t seen = first->kernel->launches, told = walker->told[first->kernel - walker->walk->model->kernels];
    joined->result.untold = seen > told ? seen - told : 0;
    joined->result.last_launch = group->last;
    joined->result.launches = group->launches;
    joined->result.is_part = group->launches < whole->launches;
    joined->result.other_lines = count_other_lines(walker->walk->model, group);
    joined->result.other_ranges = group->other_ranges;
    joined->result.stacks = group->stacks;
    joined->result.stack_count = group->stack_count;
    joined->result.count = whole->samples;
    joined->result.partial = whole->samples - whole->whole;
    joined->result.values = joined->samples;
    joined->result.spreads = joined->spreads;
    launch.values = joined->medians;
    launch.asked = joined->asked;
    launch.samples = &joined->result;
    if (whole->reason) {
        launch.reason = whole->reason;
        launch.measured = whole->measured;
        launch.record.pass_count = whole->pass_count;
    }
    return walker->visit(walker->user, &launch);
}

/* The second walk. */
static kprof_status show_launch(void *user, const kprof_model_launch *launch)
{
    sample_walker *walker = user;
    const size_t index = find_shown(walker, launch, false);
    if (index == KPROF_NAMES_NONE)
        return walker->visit(walker->user, launch);
    const sample_group *group = &walker->groups[index], *whole = &walker->groups[group->whole_group];
    if (launch->id != group->first)
        return KPROF_OK;
    joined_values joined = {0};
    size_t metrics = walker->walk->model->metric_count + 1;
    joined.samples = kprof_calloc((whole->id_count + 1) * metrics, sizeof *joined.samples);
    joined.medians = kprof_calloc(metrics, sizeof *joined.medians);
    joined.column = kprof_calloc(whole->id_count + 1, sizeof *joined.column);
    joined.asked = kprof_calloc(metrics, sizeof *joined.asked);
    joined.sample_asked = kprof_calloc(metrics, sizeof *joined.sample_asked);
    joined.spreads = kprof_calloc(metrics, sizeof *joined.spreads);
    kprof_status status = read_samples(walker, whole, &joined);
    if (status == KPROF_OK) {
        find_medians(walker->walk->model, launch, &joined);
        status = show_joined(walker, group, launch, &joined);
    }
    KPROF_FREE(joined.samples, joined.medians, joined.column, joined.asked, joined.sample_asked, joined.spreads);
    return status;
}

kprof_status kprof_model_joined_launches(const kprof_model_walk *walk, kprof_model_parts parts,
                                         kprof_model_visit *visit, void *user)
{
    sample_walker walker = {
        .walk = walk, .parts = parts, .visit = visit, .user = user, .work = {{walk->report, NULL}, 0}};
    kprof_model_walk step = {walk->report, walk->model, walk->filter, false};
    kprof_value_reader_open(walk, &walker.reader);
    walker.told = kprof_calloc(walk->model->kernel_count + 1, sizeof *walker.told);
    kprof_status status = kprof_model_launches(&step, count_launch, &walker);
    KPROF_THEN(status, charge_parts(&walker));
    step.values = true;
    KPROF_THEN(status, kprof_model_launches(&step, show_launch, &walker));
    kprof_value_reader_close(&walker.reader);
    for (size_t i = 0; i < walker.group_count; i++)
        KPROF_FREE(walker.groups[i].ids, walker.groups[i].reason, walker.groups[i].nvtx, walker.groups[i].stacks);
    KPROF_FREE(walker.groups, walker.told);
    kprof_names_free(&walker.keys);
    kprof_names_free(&walker.stacks);
    return status;
}

void kprof_samples_describe(const kprof_model_launch *launch, kprof_strbuf *out)
{
    const kprof_model_samples *samples = launch->samples;
    const uint32_t passes = launch->record.pass_count;
    kprof_strbuf_printf(out, "%lu multiplexed: ", samples->launches);
    if (samples->used == 0)
        kprof_strbuf_puts(out, "no whole sample");
    else
        kprof_strbuf_printf(out, "%s%zu sample%s of %u pass%s", samples->used > 1 ? "medians of " : "", samples->used,
                            kprof_ending(samples->used, "s"), passes, kprof_ending(passes, "es"));
}

void kprof_untold_note(uint64_t untold, kprof_strbuf *out)
{
    if (untold > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu more launch%s of the kernel not counted here", untold,
                            kprof_ending(untold, "es"));
}

/* "3 launches are from other lines", than the first one; nothing for 0. */
static void put_others(uint64_t count, const char *where, const char *what, kprof_strbuf *out)
{
    if (count > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%lu launch%s %s %s %s %s%s", count, kprof_ending(count, "es"),
                            count == 1 ? "is" : "are", where, count == 1 ? "another" : "other", what,
                            kprof_ending(count, "s"));
}

void kprof_samples_note(const kprof_model *model, const kprof_model_samples *samples, kprof_strbuf *out)
{
    const uint64_t count = samples->count;
    kprof_untold_note(samples->untold, out);
    put_others(samples->other_lines, "from", "line", out);
    put_others(samples->other_ranges, "in", "NVTX range", out);
    if (samples->partial > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out),
                            "%lu of %lu samples lack%s passes, so some values are of fewer samples", samples->partial,
                            count, samples->partial == 1 ? "s" : "");
    if (samples->read < samples->count)
        kprof_strbuf_printf(kprof_strbuf_part(out), "only the first %zu of %lu samples were read", samples->read,
                            count);
    if (samples->set_apart > 0 && samples->set_apart == samples->read)
        kprof_strbuf_puts(kprof_strbuf_part(out), "the passes of no sample agree; all samples are used");
    else if (samples->set_apart > 0)
        kprof_strbuf_printf(kprof_strbuf_part(out), "%zu of %zu samples %s set apart: the passes disagree",
                            samples->set_apart, samples->read, samples->set_apart == 1 ? "is" : "are");
    if (samples->used > 0 && kprof_model_begins_early(model))
        kprof_strbuf_puts(kprof_strbuf_part(out), KPROF_BEGINS_EARLY);
}
