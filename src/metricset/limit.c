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
    bool *kept;               /* [names.count of the queue] */
    kprof_config_image image; /* of what is kept, once that is settled */
    size_t trials;
} limiter;

bool kprof_limits_are_set(const kprof_limits *limits)
{
    return limits->max_passes > 0 || limits->budget_s > 0;
}

static kprof_status fits_budget(const limiter *l, const kprof_strlist *names, const kprof_config_image *image,
                                bool *out)
{
    kprof_schedule schedule;
    kprof_status status = kprof_schedule_read(l->host, names, image, &schedule);
    if (status != KPROF_OK)
        return status;
    kprof_effort effort = kprof_effort_of(&schedule, names->count);
    kprof_schedule_free(&schedule);
    *out = kprof_cost_of(&effort, &l->limits->workload).total_s <= l->limits->budget_s;
    return KPROF_OK;
}

static kprof_status allows(const limiter *l, const kprof_strlist *names, const kprof_config_image *image, bool *out)
{
    *out = l->limits->max_passes == 0 || image->pass_count <= l->limits->max_passes;
    return *out && l->limits->budget_s > 0 ? fits_budget(l, names, image, out) : KPROF_OK;
}

static kprof_status copy_image(const kprof_config_image *image, kprof_config_image *out)
{
    *out = (kprof_config_image){malloc(image->size + 1), image->size, image->pass_count, NULL};
    if (image->placement)
        out->placement = strdup(image->placement);
    if (!out->data || (image->placement && !out->placement))
        return KPROF_NO_MEMORY;
    if (image->size > 0)
        memcpy(out->data, image->data, image->size);
    return KPROF_OK;
}

/* Witnesses add no pass, but a pass that has some may be reckoned dearer. */
static kprof_status allows_witnessed(const limiter *l, const kprof_strlist *names, const kprof_config_image *image,
                                     bool *out)
{
    kprof_witnesses witnesses = {0};
    kprof_config_image copy;
    kprof_status status = allows(l, names, image, out);
    if (status != KPROF_OK || !*out || l->limits->budget_s <= 0)
        return status;
    status = copy_image(image, &copy);
    if (status == KPROF_OK)
        status = kprof_host_witness(l->host, names, &copy, &witnesses);
    if (status == KPROF_OK && witnesses.image.size > 0)
        status = fits_budget(l, names, &witnesses.image, out);
    kprof_witnesses_free(&witnesses);
    kprof_config_image_free(&copy);
    return status;
}

typedef kprof_status make_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out);

/* Take the first image of names that keeps the limits. */
static kprof_status find_image(limiter *l, const kprof_strlist *names, bool *fits)
{
    static make_image *const makers[] = {kprof_host_config_image, kprof_host_few_passes_image, kprof_host_draft_image};
    kprof_status status = KPROF_OK;
    *fits = false;
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]) && status == KPROF_OK && !*fits; i++) {
        kprof_config_image_free(&l->image);
        status = makers[i](l->host, names, &l->image);
        if (status == KPROF_OK)
            status = allows_witnessed(l, names, &l->image, fits);
    }
    return status;
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

static void keep_range(limiter *l, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        l->kept[i] = true;
}

/* Keep a range of names whole if it fits beside what is kept. */
static kprof_status try_range(limiter *l, size_t begin, size_t end, bool *fits)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    kprof_config_image image = {0};
    *fits = false;
    if (begin == end || l->trials >= MAX_TRIALS)
        return KPROF_OK;
    if (!list_candidates(l, begin, end, &names))
        return KPROF_NO_MEMORY;
    l->trials++;
    kprof_status status = kprof_host_draft_image(l->host, &names, &image);
    if (status == KPROF_OK)
        status = allows(l, &names, &image, fits);
    if (*fits)
        keep_range(l, begin, end);
    kprof_config_image_free(&image);
    free(names.items);
    return status;
}

static kprof_status take_range(limiter *l, size_t begin, size_t end);

/* Of a range that does not fit whole. */
static kprof_status take_halves(limiter *l, size_t begin, size_t end)
{
    size_t middle = begin + (end - begin + 1) / 2;
    if (end - begin < 2)
        return KPROF_OK;
    kprof_status status = take_range(l, begin, middle);
    return status == KPROF_OK ? take_range(l, middle, end) : status;
}

/* Depth is the logarithm of the number of names. */
static kprof_status take_range(limiter *l, size_t begin, size_t end)
{
    bool fits;
    kprof_status status = try_range(l, begin, end, &fits);
    return status == KPROF_OK && !fits ? take_halves(l, begin, end) : status;
}

static kprof_status take_whole(limiter *l, size_t begin, size_t end)
{
    bool fits;
    return try_range(l, begin, end, &fits);
}

static kprof_status take_parts(limiter *l, size_t begin, size_t end)
{
    return l->kept[begin] ? KPROF_OK : take_halves(l, begin, end);
}

/* All groups but that of --metrics. */
static kprof_status visit_groups(limiter *l, kprof_status (*visit)(limiter *l, size_t begin, size_t end))
{
    const kprof_queue *queue = l->queue;
    kprof_status status = KPROF_OK;
    for (size_t i = 0, begin = 0; i < queue->group_count && status == KPROF_OK; i++) {
        if (begin >= queue->named_count)
            status = visit(l, begin, queue->group_ends[i]);
        begin = queue->group_ends[i];
    }
    return status;
}

/* Whole groups go first, lest a dear name of one takes the room of several others. */
static kprof_status take_groups(limiter *l)
{
    kprof_status status = take_range(l, 0, l->queue->named_count);
    if (status == KPROF_OK)
        status = visit_groups(l, take_whole);
    return status == KPROF_OK ? visit_groups(l, take_parts) : status;
}

/* Schedule what is kept already, with names `begin` to `end` of the queue, which are kept if that keeps the limits. */
static kprof_status settle(limiter *l, size_t begin, size_t end, bool *fits)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    *fits = false;
    if (!list_candidates(l, begin, end, &names))
        return KPROF_NO_MEMORY;
    kprof_status status = find_image(l, &names, fits);
    *fits = *fits || names.count == 0;
    if (*fits)
        keep_range(l, begin, end);
    free(names.items);
    return status;
}

static void keep_nothing(limiter *l)
{
    memset(l->kept, 0, l->queue->names.count * sizeof(*l->kept));
}

/* What drafts promised is kept only if it holds with witnesses, which drafts do not have. */
static kprof_status take_what_fits(limiter *l)
{
    bool fits;
    keep_nothing(l);
    kprof_status status = settle(l, 0, l->queue->names.count, &fits);
    if (status != KPROF_OK || fits)
        return status;
    status = take_groups(l);
    if (status == KPROF_OK)
        status = settle(l, 0, 0, &fits);
    if (!fits)
        keep_nothing(l);
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
    kprof_strbuf_printf(&text, "limits 13 %u %.9g %llu %u %d %llu %zu:", limits->max_passes, limits->budget_s,
                        (unsigned long long)limits->workload.launches, limits->workload.batch, limits->workload.flush,
                        (unsigned long long)limits->workload.allocated_bytes, l->queue->named_count);
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
    bool fits = false;
    if (recall(l, &question))
        status = settle(l, 0, 0, &fits);
    if (status == KPROF_OK && !fits) {
        status = take_what_fits(l);
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
    limiter l = {.limits = limits, .host = host, .queue = queue};
    l.kept = calloc(queue->names.count + 1, sizeof(*l.kept));
    *out = (kprof_choice_of_names){0};
    kprof_status status = l.kept ? choose(&l) : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = share_out(&l, out);
    out->image = l.image;
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics fit, after %zu trials", kprof_host_chip(host), out->kept.count,
              queue->names.count, l.trials);
    free(l.kept);
    return status;
}
