/* Tries, group by group, what still fits. Every trial asks for a schedule, which takes tens of milliseconds, so halves
 * are tried before single names, and there is an end to trying. */
#include "metricset/limit.h"

#include "core/log.h"
#include "cupti/schedule.h"

#include <stdlib.h>
#include <string.h>

/* After so many trials what has not been tried is left out: it is the least useful. */
#define MAX_TRIALS 150

typedef struct limiter {
    const kprof_limits *limits;
    kprof_host *host;
    const kprof_queue *queue;
    bool *kept; /* [names.count of the queue] */
    size_t trials;
} limiter;

bool kprof_limits_are_set(const kprof_limits *limits)
{
    return limits->max_passes > 0 || limits->budget_s > 0;
}

/* What is to be collected, and the limits that it has to keep. */
typedef struct request {
    const kprof_limits *limits;
    kprof_host *host;
    const kprof_strlist *names;
} request;

static kprof_status allows(const request *r, const kprof_config_image *image, bool *out)
{
    kprof_schedule schedule;
    *out = r->limits->max_passes == 0 || image->pass_count <= r->limits->max_passes;
    if (!*out || r->limits->budget_s <= 0)
        return KPROF_OK;
    kprof_status status = kprof_schedule_read(r->host, r->names, image, &schedule);
    if (status != KPROF_OK)
        return status;
    kprof_effort effort = kprof_effort_of(&schedule, r->names->count);
    kprof_schedule_free(&schedule);
    *out = kprof_cost_of(&effort, &r->limits->workload).total_s <= r->limits->budget_s;
    return KPROF_OK;
}

kprof_status kprof_limits_image(const kprof_limits *limits, kprof_host *host, const kprof_strlist *names,
                                kprof_limited_image *out)
{
    request r = {limits, host, names};
    kprof_status status = kprof_host_config_image(host, names, &out->image);
    if (status == KPROF_OK)
        status = allows(&r, &out->image, &out->fits);
    if (status != KPROF_OK || out->fits)
        return status;
    kprof_config_image_free(&out->image);
    status = kprof_host_few_passes_image(host, names, &out->image);
    return status == KPROF_OK ? allows(&r, &out->image, &out->fits) : status;
}

/* What is kept already, with names `begin` to `end` of the queue: borrowed and sorted. Caller frees the items. */
static bool list_candidates(const limiter *l, size_t begin, size_t end, kprof_strlist *out)
{
    const kprof_strlist *names = &l->queue->names;
    out->items = calloc(names->count + 1, sizeof(*out->items));
    if (!out->items)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        if (l->kept[i] || (i >= begin && i < end))
            out->items[out->count++] = names->items[i];
    }
    kprof_strlist_sort(out);
    return true;
}

static kprof_status try_range(limiter *l, size_t begin, size_t end, bool *fits)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    kprof_limited_image limited = {0};
    kprof_status status;
    *fits = false;
    if (!list_candidates(l, begin, end, &names))
        return KPROF_NO_MEMORY;
    l->trials++;
    if (begin == 0 && end == l->queue->names.count) {
        status = kprof_limits_image(l->limits, l->host, &names, &limited);
    } else {
        status = kprof_host_draft_image(l->host, &names, &limited.image);
        if (status == KPROF_OK)
            status = allows(&(request){l->limits, l->host, &names}, &limited.image, &limited.fits);
    }
    *fits = limited.fits;
    kprof_config_image_free(&limited.image);
    free(names.items);
    return status;
}

/* Depth is the logarithm of the number of names. */
static kprof_status take_range(limiter *l, size_t begin, size_t end)
{
    bool fits;
    if (begin == end || l->trials >= MAX_TRIALS)
        return KPROF_OK;
    kprof_status status = try_range(l, begin, end, &fits);
    if (status != KPROF_OK)
        return status;
    for (size_t i = begin; i < end && fits; i++)
        l->kept[i] = true;
    if (fits || end - begin == 1)
        return KPROF_OK;
    size_t middle = begin + (end - begin + 1) / 2;
    status = take_range(l, begin, middle);
    return status == KPROF_OK ? take_range(l, middle, end) : status;
}

static kprof_status take_groups(limiter *l)
{
    bool fits;
    kprof_status status = try_range(l, 0, l->queue->names.count, &fits);
    for (size_t i = 0; i < l->queue->names.count && fits; i++)
        l->kept[i] = true;
    for (size_t i = 0, begin = 0; i < l->queue->group_count && status == KPROF_OK && !fits; i++) {
        status = take_range(l, begin, l->queue->group_ends[i]);
        begin = l->queue->group_ends[i];
    }
    return status;
}

/* A byte for each name of the queue, 1 where it is kept. */
static bool recall(limiter *l, const kprof_host_question *question)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &answers) && answers.length == l->queue->names.count;
    for (size_t i = 0; i < l->queue->names.count && found; i++)
        l->kept[i] = answers.data[i] == 1;
    kprof_strbuf_free(&answers);
    return found;
}

static void keep(const limiter *l, const kprof_host_question *question)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < l->queue->names.count; i++)
        kprof_strbuf_append(&answers, &(char){(char)l->kept[i]}, 1);
    if (!answers.failed)
        kprof_host_keep(question, answers.data, answers.length);
    kprof_strbuf_free(&answers);
}

/* The order of names and the bounds of groups are those of the set files, which may change: both are in the question.
 * The number stands for the prices of cost.c and for how this file tries. */
static char *question_text(const limiter *l)
{
    const kprof_limits *limits = l->limits;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, "limits 10 %u %.9g %llu %u %d:", limits->max_passes, limits->budget_s,
                        (unsigned long long)limits->workload.launches, limits->workload.batch, limits->workload.flush);
    for (size_t i = 0; i < l->queue->group_count; i++)
        kprof_strbuf_printf(&text, " %zu", l->queue->group_ends[i]);
    return kprof_strbuf_take(&text);
}

static kprof_status choose(limiter *l)
{
    char *text = question_text(l);
    kprof_host_question question = {l->host, text, &l->queue->names};
    if (!text)
        return KPROF_NO_MEMORY;
    kprof_status status = KPROF_OK;
    if (!recall(l, &question)) {
        status = take_groups(l);
        if (status == KPROF_OK)
            keep(l, &question);
    }
    free(text);
    return status;
}

static kprof_status share_out(const limiter *l, kprof_choice_of_names *out)
{
    for (size_t i = 0; i < l->queue->names.count; i++) {
        if (!kprof_strlist_add(l->kept[i] ? &out->kept : &out->left_out, l->queue->names.items[i]))
            return KPROF_NO_MEMORY;
    }
    kprof_strlist_sort(&out->kept);
    return KPROF_OK;
}

kprof_status kprof_limits_apply(const kprof_limits *limits, kprof_host *host, const kprof_queue *queue,
                                kprof_choice_of_names *out)
{
    limiter l = {limits, host, queue, calloc(queue->names.count + 1, sizeof(*l.kept)), 0};
    *out = (kprof_choice_of_names){KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
    kprof_status status = l.kept ? choose(&l) : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = share_out(&l, out);
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics fit, after %zu trials", kprof_host_chip(host), out->kept.count,
              queue->names.count, l.trials);
    free(l.kept);
    return status;
}
