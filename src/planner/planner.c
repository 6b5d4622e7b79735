/* The one call that plans. There is one greedy fill for --max-passes and --budget: in order of usefulness, each name
 * gets room for the counters that it lacks, in the passes that there are, or in a further one, as long as the limits
 * are kept. */
#include "planner/planner.h"
#include "core/log.h"
#include "planner/pack.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADLINES 4
/* A name of more is dear: such are the throughputs, each the greatest of many metrics. */
#define MANY_COUNTERS 8

/* One way to fill passes. */
typedef struct filling {
    kprof_host *host;
    const kprof_planner_wish *wish;
    bool *kept; /* [names->count] of the wish */
    size_t kept_count;
    double usefulness; /* of the names that are kept */
    kprof_config_image image;
} filling;

static bool is_paid_for(const kprof_limits *limits, const kprof_effort *effort)
{
    size_t passes = effort->sm_pass_count + effort->other_pass_count;
    return (limits->max_passes == 0 || passes <= limits->max_passes) &&
           (limits->budget_s <= 0 || kprof_cost_of(effort, &limits->workload).total_s <= limits->budget_s);
}

/* Take the first image of all names that keeps the limits. */
static kprof_status try_all(kprof_host *host, const kprof_limits *limits, kprof_planned *out, bool *fits)
{
    kprof_status status = KPROF_OK;
    *fits = false;
    for (int few_passes = 0; few_passes < 2 && status == KPROF_OK && !*fits; few_passes++) {
        kprof_schedule schedule = {0};
        kprof_config_image_free(&out->image);
        status = kprof_host_config_image(host, &out->collect, few_passes, &out->image);
        if (status == KPROF_OK)
            status = kprof_schedule_read(host, &out->collect, &out->image, &schedule);
        kprof_effort effort = kprof_effort_of(&schedule, out->collect.count);
        *fits = status == KPROF_OK && is_paid_for(limits, &effort);
        kprof_schedule_free(&schedule);
    }
    return status;
}

/* Keep each name, in its turn, if there is room for it and the limits allow what it costs; with `defers` those of many
 * counters come after all others. The first names are the headlines of a report: the first counts for as much as the
 * fourth and the tenth. */
static kprof_status keep_what_fits(filling *f, bool defers, kprof_packing *packing)
{
    const kprof_strlist *names = f->wish->names;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < names->count << defers && status == KPROF_OK; i++) {
        kprof_strlist counters = KPROF_STRLIST_INIT;
        size_t name = i % names->count;
        status = kprof_host_raw_counters(f->host, names->items[name], &counters, NULL);
        bool is_its_turn = !defers || (counters.count > MANY_COUNTERS) == (i >= names->count);
        if (status == KPROF_OK && is_its_turn && kprof_packing_place(packing, &counters)) {
            kprof_effort effort = kprof_packing_effort(packing);
            effort.metric_count = f->kept_count + 1;
            f->kept[name] = is_paid_for(f->wish->limits, &effort);
            f->kept_count += f->kept[name];
            f->usefulness += f->kept[name] ? 1.0 / (double)(HEADLINES + name) : 0;
            if (!f->kept[name])
                kprof_packing_restore(packing);
        }
        kprof_strlist_free(&counters);
    }
    return status;
}

static kprof_status fill(filling *f, bool defers, kprof_packing *packing)
{
    kprof_packing_clear(packing, f->wish->limits->max_passes);
    kprof_status status = keep_what_fits(f, defers, packing);
    if (status == KPROF_OK && packing->pass_count > 0)
        status = kprof_packing_make_room(f->host, packing);
    return status == KPROF_OK && packing->pass_count > 0 ? kprof_packing_image(f->host, packing, &f->image) : status;
}

/* Put names where they belong: `collect` gets those that are kept, or has them already where `kept` is NULL. */
static kprof_status sort_out(const kprof_strlist *names, const bool *kept, kprof_planned *out)
{
    bool added = true;
    for (size_t i = 0; i < names->count && added; i++) {
        bool is_kept = kept ? kept[i] : kprof_strlist_contains_sorted(&out->collect, names->items[i]);
        if (kept || !is_kept)
            added = kprof_strlist_add(is_kept ? &out->collect : &out->left_out, names->items[i]);
    }
    kprof_strlist_sort(&out->collect);
    return added ? KPROF_OK : KPROF_NO_MEMORY;
}

/* A dear name is worth its room, or several others are: take the better of both. */
static kprof_status keep_the_best(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    filling best = {.usefulness = -1};
    kprof_packing packing = {0};
    kprof_config_image draft;
    kprof_config_image_free(&out->image);
    kprof_status status = kprof_host_draft_image(host, &out->collect, &draft);
    if (status == KPROF_OK)
        status = kprof_packing_read(host, &out->collect, &draft, &packing);
    kprof_config_image_free(&draft);
    for (int defers = 0; defers < 2 && status == KPROF_OK; defers++) {
        filling f = {.host = host, .wish = wish, .kept = calloc(wish->names->count + 1, sizeof(*f.kept))};
        status = f.kept ? fill(&f, defers, &packing) : KPROF_NO_MEMORY;
        filling worse = f;
        if (status == KPROF_OK && f.usefulness > best.usefulness) {
            worse = best;
            best = f;
        }
        kprof_config_image_free(&worse.image);
        free(worse.kept);
    }
    kprof_packing_free(&packing);
    out->image = best.image;
    kprof_strlist_free(&out->collect);
    if (status == KPROF_OK)
        status = sort_out(wish->names, best.kept, out);
    free(best.kept);
    return status;
}

/* `out` has all names in `collect`, in alphabetical order. */
static kprof_status apply_limits(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    char text[256];
    bool fits;
    const kprof_workload *workload = &wish->limits->workload;
    kprof_strlist kept[2] = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
    kprof_host_question question = {host, text, wish->names};
    kprof_image_answer answer = {kept, &out->image, 1};
    snprintf(text, sizeof(text), "limits %u %.9g %llu %u %d %llu %llu", wish->limits->max_passes,
             wish->limits->budget_s, (unsigned long long)workload->launches, workload->batch, workload->flush,
             (unsigned long long)workload->allocated_bytes, (unsigned long long)workload->device_bytes);
    if (kprof_host_recall_images(&question, &answer)) {
        kprof_strlist_free(&out->collect);
        out->collect = kept[0];
        kprof_strlist_free(&kept[1]);
        return sort_out(wish->names, NULL, out);
    }
    kprof_status status = try_all(host, wish->limits, out, &fits);
    if (status == KPROF_OK && !fits && out->image.pass_count > 0) /* else leaving names out saves nothing */
        status = keep_the_best(host, wish, out);
    kept[0] = out->collect;
    if (status == KPROF_OK && out->image.size > 0)
        kprof_host_keep_images(&question, &answer);
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics fit", kprof_host_chip(host), out->collect.count,
              wish->names->count);
    return status;
}

/* Read which passes have which names. The witnesses come after what is collected; only their own image has all of them.
 */
static kprof_status read_schedule(kprof_host *host, kprof_planned *out)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    const kprof_strlist *lists[] = {&out->collect, &out->variants.witnesses};
    const kprof_config_image *image =
        &out->variants.items[out->variants.witnesses.count > 0 ? KPROF_IMAGE_WITNESSED : 0];
    bool added = true;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < lists[i]->count && added; k++)
            added = kprof_strlist_add(&names, lists[i]->items[k]);
    }
    kprof_status status = added ? kprof_schedule_read(host, &names, image, &out->schedule) : KPROF_NO_MEMORY;
    kprof_strlist_free(&names);
    return status;
}

/* CUPTI packs counters greedily in the order given. Alphabetical order, which puts the counters of a unit together,
 * never took more passes than the order of the sections on any chip and set, and often took one or two fewer. */
kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    *out = (kprof_planned){0};
    for (size_t i = 0; i < wish->names->count; i++) {
        if (!kprof_strlist_add(&out->collect, wish->names->items[i]))
            return KPROF_NO_MEMORY;
    }
    kprof_strlist_sort(&out->collect);
    kprof_status status = kprof_limits_are_set(wish->limits)
                              ? apply_limits(host, wish, out)
                              : kprof_host_config_image(host, &out->collect, false, &out->image);
    if (status != KPROF_OK || wish->only_passes)
        return status;
    status = kprof_host_image_variants(host, &out->collect, &out->image, &out->variants);
    if (status == KPROF_OK)
        status = read_schedule(host, out);
    kprof_effort effort = kprof_effort_of(&out->schedule, out->collect.count);
    out->cost = kprof_cost_of(&effort, &wish->limits->workload);
    return status;
}

kprof_status kprof_limits_stand_ins(kprof_host *host, const char *left_out, const kprof_strlist *kept,
                                    kprof_strlist *out)
{
    kprof_metric_info info;
    kprof_strlist members = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_metric_info(host, left_out, &info);
    if (status != KPROF_OK)
        return status;
    if (info.type == KPROF_METRIC_THROUGHPUT)
        status = kprof_host_breakdown(host, left_out, &members);
    for (size_t i = 0; i < members.count && status == KPROF_OK; i++) {
        if (kprof_strlist_contains_sorted(kept, members.items[i]) && !kprof_strlist_add(out, members.items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_free(&members);
    kprof_metric_info_free(&info);
    return status;
}
