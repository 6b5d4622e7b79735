/* Keeps whole plans on disk. */
#include "planner/pack.h"

#include "core/bytes.h"

#include <stdio.h>

void kprof_planned_question(const kprof_limits *limits, char *out, size_t size)
{
    /* The workload decides what a budget pays for, and nothing else. */
    static const kprof_workload any = {0};
    const kprof_workload *workload = limits->budget_s > 0 ? &limits->workload : &any;
    snprintf(out, size, "plan %u %.9g %lu %u %d %lu %lu %d %d %u planner %s", limits->max_passes, limits->budget_s,
             workload->launches, workload->batch, (int)workload->cache_control, workload->allocated_bytes,
             workload->device_bytes, workload->counts_instructions, workload->samples, workload->timelines,
             KPROF_PLANNER_SOURCES);
}

static void transfer(const kprof_codec *c, kprof_planned *plan)
{
    kprof_strlist *lists[] = {&plan->collect, &plan->left_out, &plan->variants.witnesses, &plan->variants.proof};
    kprof_schedule *schedule = &plan->schedule;
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        kprof_code_strings(c, lists[i]);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        kprof_config_image *image = &plan->variants.items[i];
        image->data = kprof_code_array(c, image->data, &image->size, 1);
    }
    size_t patched = schedule->metric_count;
    schedule->passes = kprof_code_array(c, schedule->passes, &schedule->pass_count, sizeof(*schedule->passes));
    schedule->last_passes = kprof_code_array(c, schedule->last_passes, &schedule->metric_count, sizeof(uint32_t));
    schedule->patched = kprof_code_array(c, schedule->patched, &patched, sizeof(uint32_t));
    if (kprof_codec_reads(c))
        schedule->metrics = kprof_calloc(schedule->metric_count + 1, sizeof(*schedule->metrics));
    kprof_code_check(c, schedule->metrics && patched == schedule->metric_count);
    for (size_t i = 0; i < schedule->metric_count && schedule->metrics; i++) {
        kprof_pass_list *passes = &schedule->metrics[i];
        passes->items = kprof_code_array(c, passes->items, &passes->count, sizeof(*passes->items));
    }
}

void kprof_planned_keep(const kprof_host_question *question, kprof_planned *plan)
{
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    transfer(&(kprof_codec){&out, NULL}, plan);
    if (!out.failed)
        kprof_host_keep(question, out.data, out.length);
}

/* Do the parts of a plan that was read belong together? If so, fill in what follows from them. */
static bool complete(kprof_planned *plan)
{
    const kprof_schedule *schedule = &plan->schedule;
    const kprof_strlist *witnesses = &plan->variants.witnesses, *proof = &plan->variants.proof;
    bool is_good =
        witnesses->count <= KPROF_MAX_WITNESSES && schedule->metric_count == plan->collect.count + witnesses->count;
    for (size_t i = 0; i < schedule->metric_count && is_good; i++)
        for (size_t k = 0; k < schedule->metrics[i].count; k++)
            is_good = is_good && schedule->metrics[i].items[k] < schedule->pass_count;
    for (unsigned index = 0; index < KPROF_IMAGES; index++) {
        kprof_config_image *image = &plan->variants.items[index];
        bool is_there = schedule->pass_count > 0 && (index < KPROF_IMAGE_PROVED || proof->count > 0) &&
                        (!(index & KPROF_IMAGE_WITNESSED) || witnesses->count > 0);
        is_good = is_good && (image->size > 0) == is_there;
        image->pass_count = is_there ? kprof_image_passes(schedule->pass_count, index) : 0;
    }
    return is_good;
}

bool kprof_planned_decode(kprof_bytes *in, kprof_planned *out)
{
    *out = (kprof_planned){0};
    transfer(&(kprof_codec){NULL, in}, out);
    if (!in->failed && in->left == 0 && complete(out))
        return true;
    kprof_planned_free(out);
    return false;
}

/* The cache returns only the bytes that were put there: CUPTI crashes on bytes that are no image. */
bool kprof_planned_recall(const kprof_host_question *question, kprof_planned *out)
{
    KPROF_AUTO(kprof_strbuf) kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept);
    kprof_bytes in = {(const uint8_t *)kept.data, kept.length, false};
    return found && kprof_planned_decode(&in, out);
}
