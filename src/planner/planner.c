/* The one call that plans. There is one greedy fill for --max-passes and --budget: in order of usefulness, each name
 * gets room for the counters that it lacks, in the passes that there are, or in a further one, as long as the limits
 * are kept. */
#include "planner/planner.h"
#include "core/log.h"
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

#define IMAGE_OF  "image of "
#define HEADLINES 4
/* A name of more is dear: such are the throughputs, each the greatest of many metrics. */
#define MANY_COUNTERS 8

typedef struct limiter {
    const kprof_limits *limits;
    kprof_host *host;
    const kprof_strlist *names; /* in order of usefulness */
    bool *kept;                 /* [names->count] */
    size_t kept_count;
    kprof_config_image image; /* of what is kept */
} limiter;

static bool is_paid_for(const kprof_limits *limits, const kprof_effort *effort)
{
    size_t passes = effort->sm_pass_count + effort->other_pass_count;
    return (limits->max_passes == 0 || passes <= limits->max_passes) &&
           (limits->budget_s <= 0 || kprof_cost_of(effort, &limits->workload).total_s <= limits->budget_s);
}

/* Names that are kept, or all: borrowed and sorted. Caller frees the items. */
static kprof_status list_names(const limiter *l, bool all, kprof_strlist *out)
{
    *out = (kprof_strlist){.items = calloc(l->names->count + 1, sizeof(*out->items))};
    if (!out->items)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < l->names->count; i++) {
        if (all || l->kept[i])
            out->items[out->count++] = l->names->items[i];
    }
    kprof_strlist_sort(out);
    return KPROF_OK;
}

/* Take the first image of all names that keeps the limits. */
static kprof_status try_all(limiter *l, const kprof_strlist *names, bool *fits)
{
    kprof_status status = KPROF_OK;
    *fits = false;
    for (int few_passes = 0; few_passes < 2 && status == KPROF_OK && !*fits; few_passes++) {
        kprof_schedule schedule = {0};
        kprof_config_image_free(&l->image);
        status = few_passes ? kprof_host_few_passes_image(l->host, names, &l->image)
                            : kprof_host_config_image(l->host, names, &l->image);
        if (status == KPROF_OK)
            status = kprof_schedule_read(l->host, names, &l->image, &schedule);
        kprof_effort effort = kprof_effort_of(&schedule, names->count);
        *fits = status == KPROF_OK && is_paid_for(l->limits, &effort);
        kprof_schedule_free(&schedule);
    }
    return status;
}

static kprof_effort effort_of(const kprof_packing *packing, size_t metric_count)
{
    kprof_effort effort = {.metric_count = metric_count};
    for (size_t i = 0; i < packing->pass_count; i++) {
        effort.sm_pass_count += packing->passes[i].sm_count > 0;
        effort.slow_pass_count += packing->passes[i].slow_count > 0;
    }
    effort.other_pass_count = packing->pass_count - effort.sm_pass_count;
    return effort;
}

/* Keep a name if there is room for it and the limits allow what it costs. */
static void try_name(limiter *l, kprof_packing *packing, size_t name, const kprof_strlist *counters)
{
    if (!kprof_packing_place(packing, counters))
        return;
    kprof_effort effort = effort_of(packing, l->kept_count + 1);
    l->kept[name] = is_paid_for(l->limits, &effort);
    l->kept_count += l->kept[name];
    if (!l->kept[name])
        kprof_packing_restore(packing);
}

/* Try each name in its turn; with `defers` those of many counters come after all others. */
static kprof_status keep_what_fits(limiter *l, bool defers, kprof_packing *packing)
{
    kprof_evaluator *evaluator;
    kprof_status status = kprof_evaluator_get(l->host, &evaluator);
    for (size_t i = 0; i < l->names->count << defers && status == KPROF_OK; i++) {
        kprof_strlist counters = KPROF_STRLIST_INIT;
        size_t name = i % l->names->count;
        status = kprof_evaluator_raw_counters(evaluator, l->names->items[name], &counters, NULL);
        if (status == KPROF_OK && (!defers || (counters.count > MANY_COUNTERS) == (i >= l->names->count)))
            try_name(l, packing, name, &counters);
        kprof_strlist_free(&counters);
    }
    return status;
}

/* The first names are the headlines of a report: the first counts for as much as the fourth and the tenth. */
static double usefulness(const limiter *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->names->count; i++)
        sum += l->kept[i] ? 1.0 / (double)(HEADLINES + i) : 0;
    return sum;
}

static kprof_status fill_image(limiter *l, bool defers, const kprof_strlist *names, const kprof_config_image *draft)
{
    kprof_packing packing = {0};
    if (draft->pass_count == 0) { /* nothing needs a counter: leaving names out saves nothing */
        memset(l->kept, true, l->names->count * sizeof(*l->kept));
        return KPROF_OK;
    }
    kprof_status status = kprof_packing_read(l->host, names, draft, &packing);
    if (status == KPROF_OK)
        status = kprof_packing_clear(&packing, l->limits->max_passes);
    if (status == KPROF_OK)
        status = keep_what_fits(l, defers, &packing);
    if (status == KPROF_OK && packing.pass_count > 0) {
        if (kprof_packing_make_room(l->host, &packing) != KPROF_OK)
            kprof_log(KPROF_LOG_DEBUG, "%s: no room was made for witnesses", kprof_host_chip(l->host));
        status = kprof_packing_image(l->host, &packing, &l->image);
    }
    kprof_packing_free(&packing);
    return status;
}

/* A dear name is worth its room, or several others are: take the better of both. */
static kprof_status fill(limiter *best, const kprof_strlist *names)
{
    kprof_config_image draft;
    kprof_config_image_free(&best->image);
    kprof_status status = kprof_host_draft_image(best->host, names, &draft);
    for (int defers = 0; defers < 2 && status == KPROF_OK; defers++) {
        limiter l = {.limits = best->limits, .host = best->host, .names = best->names};
        l.kept = calloc(l.names->count + 1, sizeof(*l.kept));
        status = l.kept ? fill_image(&l, defers, names, &draft) : KPROF_NO_MEMORY;
        if (status == KPROF_OK && usefulness(&l) > usefulness(best)) {
            limiter worse = *best;
            *best = l;
            l = worse;
        }
        kprof_config_image_free(&l.image);
        free(l.kept);
    }
    kprof_config_image_free(&draft);
    return status;
}

static kprof_status choose(limiter *l)
{
    bool fits = false;
    kprof_strlist names;
    kprof_status status = list_names(l, true, &names);
    if (status == KPROF_OK)
        status = try_all(l, &names, &fits);
    if (fits)
        memset(l->kept, true, l->names->count * sizeof(*l->kept));
    else if (status == KPROF_OK)
        status = fill(l, &names);
    free(names.items);
    return status;
}

/* The two answers that the disk keeps. */
typedef struct questions {
    kprof_host_question kept; /* a byte for each name, 1 where it is kept */
    kprof_host_question image;
} questions;

/* The text differs: the kept names may be all names in their order. */
static questions ask(const limiter *l, const char *text, const kprof_strlist *names)
{
    return (questions){{l->host, text + strlen(IMAGE_OF), l->names}, {l->host, text, names}};
}

static bool recall(limiter *l, const char *text)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    kprof_strlist names = KPROF_STRLIST_INIT;
    questions asked = ask(l, text, &names);
    bool found = kprof_host_recall(&asked.kept, &answers) && answers.length == l->names->count;
    for (size_t i = 0; i < l->names->count && found; i++)
        l->kept[i] = answers.data[i] == 1;
    found = found && list_names(l, false, &names) == KPROF_OK && kprof_host_recall_image(&asked.image, &l->image);
    free(names.items);
    kprof_strbuf_free(&answers);
    if (!found)
        memset(l->kept, false, l->names->count * sizeof(*l->kept));
    return found;
}

static void keep(const limiter *l, const char *text)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    kprof_strlist names = KPROF_STRLIST_INIT;
    questions asked = ask(l, text, &names);
    for (size_t i = 0; i < l->names->count; i++)
        kprof_strbuf_append(&answers, &(char){(char)l->kept[i]}, 1);
    if (!answers.failed && l->image.size > 0 && list_names(l, false, &names) == KPROF_OK) {
        kprof_host_keep_image(&asked.image, &l->image);
        kprof_host_keep(&asked.kept, answers.data, answers.length);
    }
    free(names.items);
    kprof_strbuf_free(&answers);
}

static kprof_status choose_once(limiter *l)
{
    const kprof_workload *workload = &l->limits->workload;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, IMAGE_OF "limits %u %.9g %llu %u %d %llu %llu", l->limits->max_passes,
                        l->limits->budget_s, (unsigned long long)workload->launches, workload->batch, workload->flush,
                        (unsigned long long)workload->allocated_bytes, (unsigned long long)workload->device_bytes);
    kprof_status status = text.failed ? KPROF_NO_MEMORY : KPROF_OK;
    if (status == KPROF_OK && !recall(l, text.data)) {
        status = choose(l);
        if (status == KPROF_OK)
            keep(l, text.data);
    }
    kprof_strbuf_free(&text);
    return status;
}

static kprof_status apply_limits(const kprof_planner_wish *wish, kprof_host *host, kprof_planned *out)
{
    limiter l = {.limits = wish->limits, .host = host, .names = wish->names};
    l.kept = calloc(l.names->count + 1, sizeof(*l.kept));
    kprof_status status = l.kept ? choose_once(&l) : KPROF_NO_MEMORY;
    for (size_t i = 0; i < l.names->count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(l.kept[i] ? &out->collect : &out->left_out, l.names->items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_sort(&out->collect);
    out->image = l.image;
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics fit", kprof_host_chip(host), out->collect.count, l.names->count);
    free(l.kept);
    return status;
}

/* CUPTI packs counters greedily in the order given. Alphabetical order, which puts the counters of a unit together,
 * never took more passes than the order of the sections on any chip and set, and often took one or two fewer. */
static kprof_status schedule_all(const kprof_strlist *names, kprof_host *host, kprof_planned *out)
{
    for (size_t i = 0; i < names->count; i++) {
        if (!kprof_strlist_add(&out->collect, names->items[i]))
            return KPROF_NO_MEMORY;
    }
    kprof_strlist_sort(&out->collect);
    return kprof_host_config_image(host, &out->collect, &out->image);
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

kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    *out = (kprof_planned){0};
    kprof_status status =
        kprof_limits_are_set(wish->limits) ? apply_limits(wish, host, out) : schedule_all(wish->names, host, out);
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
