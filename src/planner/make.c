/* The one call that plans. CUPTI drafts an image of all names, and the planner packs its counters. If that exceeds
 * the limits, the planner fills passes greedily for --max-passes and --budget: in order of usefulness, each name
 * gets room for its missing counters in the existing passes or in a further one, as long as the limits allow. */
#include "planner/planner.h"

#include "core/log.h"
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

#define HEADLINES 4
/* A name with more counters is expensive, such as a throughput, which is the greatest of many metrics. */
#define MANY_COUNTERS 8

/* Copy what the packing has now. */
static void take_arrangement(const kprof_packing *p, kprof_arrangement *out)
{
    out->pass_count = p->now.pass_count;
    out->spots = kprof_calloc(1, (p->names.count + 1) * sizeof(*out->spots));
    memcpy(out->spots, p->now.spots, p->names.count * sizeof(*out->spots));
}

static void swap_arrangement(kprof_packing *p, kprof_arrangement *arrangement)
{
    kprof_arrangement left = p->now;
    p->now = *arrangement;
    *arrangement = left;
}

static bool is_paid_for(kprof_packing *p, const kprof_limits *limits, size_t metric_count)
{
    kprof_effort effort = kprof_packing_effort(p);
    effort.metric_count = metric_count;
    return (limits->max_passes == 0 || p->now.pass_count <= limits->max_passes) &&
           (limits->budget_s <= 0 || kprof_cost_of(&effort, &limits->workload).total_s <= limits->budget_s);
}

/* Pack all names for the fastest large batches. If that exceeds the budget, go back to the fewest passes. */
static kprof_status keep_all(kprof_packing *p, const kprof_limits *limits, bool *fits)
{
    kprof_arrangement few = {NULL, 0};
    *fits = false;
    if (limits->max_passes > 0 && p->now.pass_count / 2 > limits->max_passes)
        return KPROF_OK; /* packing never saves half of CUPTI's passes */
    kprof_status status = kprof_packing_improve(p, KPROF_OTHER_DOMAINS);
    KPROF_THEN(status, kprof_packing_improve(p, KPROF_FEWER_PASSES));
    if (limits->max_passes > 0 && p->now.pass_count > limits->max_passes)
        return status;
    if (status == KPROF_OK)
        take_arrangement(p, &few);
    KPROF_THEN(status, kprof_packing_improve(p, KPROF_LESS_TIME));
    *fits = status == KPROF_OK && is_paid_for(p, limits, p->metric_count);
    if (status == KPROF_OK && !*fits) {
        swap_arrangement(p, &few);
        *fits = is_paid_for(p, limits, p->metric_count);
    }
    free(few.spots);
    return status;
}

/* Keep each name in turn if it finds room and the limits allow its cost. With `defers` the names of many counters
 * come last. Returns the usefulness of the kept names: the first names are a report's headlines, and the first of
 * all counts as much as the fourth and the tenth together. */
static double fill(kprof_packing *p, const kprof_limits *limits, bool defers, bool *kept)
{
    double usefulness = 0;
    size_t kept_count = 0;
    kprof_packing_clear(p, limits->max_passes);
    for (size_t i = 0; i < p->metric_count << defers; i++) {
        size_t name = i % p->metric_count;
        bool is_its_turn = !defers || (p->metrics[name].required > MANY_COUNTERS) == (i >= p->metric_count);
        if (!is_its_turn)
            continue;
        bool has_room = kprof_packing_place(p, &p->metrics[name]);
        kept[name] = has_room && is_paid_for(p, limits, kept_count + 1);
        kept_count += kept[name];
        usefulness += kept[name] ? 1.0 / (double)(HEADLINES + name) : 0;
        if (has_room && !kept[name]) {
            kprof_packing_restore(p);
            p->metrics[name].is_hopeless = true;
        }
    }
    return usefulness;
}

/* Try both orders, as either an expensive name or several others may deserve the room, and take the more useful plan.
 * In 99 limited plans of five chips, one order alone would lose up to a fifth, or a third, of it. */
static kprof_status keep_the_best(kprof_packing *p, const kprof_limits *limits, bool *kept)
{
    kprof_arrangement eager = {NULL, 0};
    KPROF_AUTO_FREE bool *kept_patiently = kprof_calloc(p->metric_count + 1, sizeof(*kept_patiently));
    double usefulness = fill(p, limits, false, kept);
    take_arrangement(p, &eager);
    if (fill(p, limits, true, kept_patiently) > usefulness)
        memcpy(kept, kept_patiently, p->metric_count * sizeof(*kept));
    else
        swap_arrangement(p, &eager);
    free(eager.spots);
    return p->status;
}

/* Keep all names where the limits allow it, else the most useful ones, and arrange their counters in passes. */
static kprof_status arrange(kprof_packing *p, const kprof_limits *limits, bool *kept)
{
    bool fits;
    kprof_status status = keep_all(p, limits, &fits);
    for (size_t i = 0; i < p->metric_count; i++)
        kept[i] = true;
    return status != KPROF_OK || fits || p->now.pass_count == 0 /* leaving names out saves nothing */
               ? status
               : keep_the_best(p, limits, kept);
}

/* Append to the schedule a metric of the wish, or with NULL the witness of this number. */
static void schedule_metric(const kprof_packing *p, const kprof_pack_metric *metric, size_t witness,
                            kprof_schedule *out)
{
    const size_t number = out->metric_count++;
    kprof_pass_list *passes = &out->metrics[number];
    passes->items = kprof_calloc(out->pass_count + 1, sizeof(*passes->items));
    for (uint32_t pass = 0; pass < out->pass_count; pass++) {
        bool is_here = !metric && kprof_guest_is_there(p, witness, pass), may_be_here = is_here;
        for (size_t i = 0; metric && i < metric->count; i++) {
            bool has_counter = p->now.spots[metric->counters[i]].pass == pass;
            is_here = is_here || (has_counter && i < metric->required);
            may_be_here = may_be_here || has_counter;
        }
        if (is_here)
            passes->items[passes->count++] = pass;
        if (may_be_here)
            out->last_passes[number] = pass;
        out->patched[number] = out->patched[number] || (is_here && out->passes[pass].patches_code);
    }
}

/* Describe each pass. Ask the image for its counters: NVPW reports the time in the first pass, wherever requested. */
static kprof_status schedule_passes(kprof_packing *p, const kprof_config_image *image, kprof_schedule *out)
{
    kprof_status status = KPROF_OK;
    kprof_packing_survey(p);
    for (size_t i = 0; i < out->pass_count && status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strlist) counters = KPROF_STRLIST_INIT;
        status = kprof_image_counters(image, i, &counters);
        out->passes[i] = (kprof_schedule_pass){(uint32_t)counters.count, p->passes[i].sm_count > 0,
                                               p->passes[i].slow_count > 0, p->passes[i].is_patch};
        kprof_strlist_sort(&counters);
        for (size_t k = 0; k < p->names.count; k++)
            if (kprof_strlist_contains_sorted(&counters, p->names.items[k]))
                p->now.spots[k].pass = (uint32_t)i;
    }
    return status;
}

/* The witnesses come after what is collected. */
static kprof_status make_schedule(kprof_packing *p, const kprof_strlist *names, kprof_planned *plan)
{
    kprof_schedule *out = &plan->schedule;
    const kprof_image_variants *variants = &plan->variants;
    const size_t count = plan->collect.count + variants->witnesses.count;
    *out = (kprof_schedule){
        .passes = kprof_calloc(p->now.pass_count + 1, sizeof(*out->passes)),
        .pass_count = p->now.pass_count,
        .metrics = kprof_calloc(count + 1, sizeof(*out->metrics)),
        .last_passes = kprof_calloc(count + 1, sizeof(*out->last_passes)),
        .patched = kprof_calloc(count + 1, sizeof(*out->patched)),
    };
    const unsigned bits = variants->witnesses.count > 0 ? KPROF_IMAGE_WITNESSED : 0;
    kprof_status status = schedule_passes(p, &variants->items[bits], out);
    for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++) {
        size_t metric = 0;
        while (strcmp(names->items[metric], plan->collect.items[i]) != 0)
            metric++;
        schedule_metric(p, &p->metrics[metric], 0, out);
    }
    for (size_t i = 0; i < KPROF_MAX_WITNESSES && status == KPROF_OK; i++)
        if (p->guests[i].counters.count > 0)
            schedule_metric(p, NULL, i, out);
    return status;
}

/* CUPTI packs counters greedily in the order given. Alphabetical order, which puts the counters of a unit together,
 * never took more passes than the order of the sections on any chip and set, and often took one or two fewer. For
 * all counters of L1, where CUPTI takes seconds, the order from Z to A gives as few passes in half the time. */
static kprof_status draft(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    KPROF_AUTO(kprof_strlist) sorted = KPROF_STRLIST_INIT;
    kprof_strlist_add_all(&sorted, names);
    *out = (kprof_config_image){0};
    kprof_strlist_sort(&sorted);
    for (size_t i = 0; sorted.count > KPROF_MANY_METRICS && i < sorted.count / 2; i++) {
        char *other = sorted.items[sorted.count - 1 - i];
        sorted.items[sorted.count - 1 - i] = sorted.items[i];
        sorted.items[i] = other;
    }
    return kprof_host_draft_image(host, &sorted, out);
}

static kprof_status plan(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    KPROF_AUTO(kprof_packing) packing = {0};
    kprof_config_image image;
    KPROF_AUTO_FREE bool *kept = kprof_calloc(wish->names->count + 1, sizeof(*kept));
    kprof_status status = draft(host, wish->names, &image);
    KPROF_THEN(status, kprof_packing_read(host, wish->names, &image, &packing));
    KPROF_THEN(status, arrange(&packing, wish->limits, kept));
    for (size_t i = 0; i < wish->names->count && status == KPROF_OK; i++)
        kprof_strlist_add(kept[i] ? &out->collect : &out->left_out, wish->names->items[i]);
    kprof_strlist_sort(&out->collect);
    KPROF_THEN(status, kprof_guests_list(&packing, &out->collect));
    KPROF_THEN(status, kprof_packing_improve(&packing, KPROF_WITNESSES));
    KPROF_THEN(status, kprof_guests_settle(&packing, &out->variants));
    KPROF_THEN(status, make_schedule(&packing, wish->names, out));
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics in %zu passes; CUPTI takes %zu", kprof_host_chip(host),
              out->collect.count, wish->names->count, packing.now.pass_count, image.pass_count);
    kprof_config_image_free(&image);
    return status;
}

kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    char text[KPROF_PLANNED_QUESTION_SIZE];
    kprof_host_question question = {host, text, wish->names};
    kprof_status status = KPROF_OK;
    *out = (kprof_planned){0};
    kprof_planned_question(wish->limits, text, sizeof(text));
    if (!kprof_planned_recall(&question, out)) {
        status = plan(host, wish, out);
        if (status == KPROF_OK)
            kprof_planned_keep(&question, out);
    }
    if (status != KPROF_OK)
        return status;
    const kprof_effort effort = kprof_effort_of(&out->schedule, out->collect.count);
    out->cost = kprof_cost_of(&effort, &wish->limits->workload);
    return KPROF_OK;
}

void kprof_planned_free(kprof_planned *planned)
{
    KPROF_FREE_LISTS(&planned->collect, &planned->left_out);
    kprof_image_variants_free(&planned->variants);
    kprof_schedule_free(&planned->schedule);
    planned->cost = (kprof_cost){0};
}
