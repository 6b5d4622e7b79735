/* Tries in two ways what fits, and takes the better one: in the order of usefulness, packed where that is needed; and
 * by CUPTI's own schedules, whole groups first. What of a group does not fit whole is halved, down to single names.
 * Either way room that is left is filled with single names. Every trial asks for a schedule, which takes tens of
 * milliseconds, and tenths of a second where its passes are packed, so there is an end to trying. */
#include "metricset/limit_private.h"

#include "core/log.h"
#include "planner/pack.h"
#include "planner/schedule.h"

#include <stdlib.h>
#include <string.h>

/* After so many trials, either way, what has not been tried is left to filling: it is the least useful. */
#define MAX_TRIALS 60
/* Of trials that do not fit as CUPTI schedules them, so many are packed, and only where what is over the limits may be
 * what packing saves: up to a quarter of the passes, of the shipped sets. */
#define MAX_PACKED_TRIALS 10

/* The second way is not tried where the first leaves out no more than one name of so many. */
#define FEW_OF_NAMES 32

/* Of the budget, what the second way gives to groups: where a dear one leaves next to nothing for single names, less is
 * kept in all. */
#define SHARE_OF_GROUPS 0.9

#define IMAGE_OF "image of "

bool kprof_limits_are_set(const kprof_limits *limits)
{
    return limits->max_passes > 0 || limits->budget_s > 0;
}

static kprof_status fits_budget(kprof_host *host, const kprof_limits *limits, const candidate *tried, bool *out)
{
    kprof_schedule schedule;
    kprof_status status = kprof_schedule_read(host, &tried->names, &tried->image, &schedule);
    if (status != KPROF_OK)
        return status;
    kprof_effort effort = kprof_effort_of(&schedule, tried->names.count);
    kprof_schedule_free(&schedule);
    *out = kprof_cost_of(&effort, &limits->workload).total_s <= limits->budget_s;
    return KPROF_OK;
}

static kprof_status allows(kprof_host *host, const kprof_limits *limits, const candidate *tried, bool *out)
{
    *out = limits->max_passes == 0 || tried->image.pass_count <= limits->max_passes;
    return *out && limits->budget_s > 0 ? fits_budget(host, limits, tried, out) : KPROF_OK;
}

/* Witnesses add no pass, but a pass that has some may be reckoned dearer. */
kprof_status kprof_limiter_allows(const limiter *l, const candidate *tried, bool *out)
{
    kprof_config_image witnessed;
    kprof_status status = allows(l->host, l->limits, tried, out);
    if (status != KPROF_OK || !*out || l->limits->budget_s <= 0)
        return status;
    status = kprof_host_try_witnesses(l->host, &tried->names, &tried->image, &witnessed);
    if (status == KPROF_OK && witnessed.size > 0)
        status = fits_budget(l->host, l->limits, &(candidate){tried->names, witnessed}, out);
    kprof_config_image_free(&witnessed);
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
            status = kprof_limiter_allows(l, &(candidate){*names, l->image}, fits);
    }
    return status;
}

bool kprof_limiter_list(const limiter *l, size_t begin, size_t end, kprof_strlist *out)
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

size_t kprof_limiter_count(const limiter *l)
{
    size_t count = 0;
    for (size_t i = 0; i < l->queue->names.count; i++)
        count += l->kept[i];
    return count;
}

static void keep_range(limiter *l, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        l->kept[i] = true;
}

/* Pack what does not fit as CUPTI schedules it, where that may help. What fits then is what will be used: with
 * witnesses. */
static kprof_status try_packed(limiter *l, candidate *tried, bool *fits)
{
    bool near = false;
    kprof_status status = KPROF_OK;
    kprof_limits of_draft = *l->limits;
    of_draft.max_passes += of_draft.max_passes / 3;
    of_draft.budget_s *= 4.0 / 3;
    if (l->packed_trials < MAX_PACKED_TRIALS)
        status = allows(l->host, &of_draft, tried, &near);
    if (status != KPROF_OK || !near)
        return status;
    l->packed_trials++;
    kprof_pack(l->host, &tried->names, true, &tried->image);
    return kprof_limiter_allows(l, tried, fits);
}

/* Keep a range of names whole if it fits beside what is kept. */
static kprof_status try_range(limiter *l, size_t begin, size_t end, bool *fits)
{
    candidate tried = {0};
    *fits = false;
    if (begin == end || l->trials >= MAX_TRIALS)
        return KPROF_OK;
    if (!kprof_limiter_list(l, begin, end, &tried.names))
        return KPROF_NO_MEMORY;
    l->trials++;
    kprof_status status = kprof_host_draft_image(l->host, &tried.names, &tried.image);
    if (status == KPROF_OK)
        status = allows(l->host, l->limits, &tried, fits);
    if (status == KPROF_OK && !*fits && l->packs)
        status = try_packed(l, &tried, fits);
    if (*fits)
        keep_range(l, begin, end);
    kprof_config_image_free(&tried.image);
    free(tried.names.items);
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

/* The dear names at the front of the queue take what they need; or whole groups go first, lest a dear name of one takes
 * the room of several others. */
static kprof_status take_groups(limiter *l)
{
    kprof_status status = take_range(l, 0, l->queue->named_count);
    if (status == KPROF_OK)
        status = visit_groups(l, l->packs ? take_range : take_whole);
    return status == KPROF_OK && !l->packs ? visit_groups(l, take_parts) : status;
}

/* Schedule what is kept already, with names `begin` to `end` of the queue, which are kept if that keeps the limits. */
static kprof_status settle(limiter *l, size_t begin, size_t end, bool *fits)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    *fits = false;
    if (!kprof_limiter_list(l, begin, end, &names))
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
static kprof_status choose_by(limiter *l)
{
    bool fits = false;
    const kprof_limits *limits = l->limits;
    kprof_limits of_groups = *limits;
    of_groups.budget_s *= l->packs ? 1 : SHARE_OF_GROUPS;
    l->limits = &of_groups;
    kprof_status status = take_groups(l);
    l->limits = limits;
    if (status == KPROF_OK)
        status = settle(l, 0, 0, &fits);
    if (!fits) {
        keep_nothing(l);
        kprof_config_image_free(&l->image);
    }
    return status == KPROF_OK ? kprof_limiter_fill(l) : status;
}

/* The first names are the headlines of a report: of 200 names the first counts for 17 of the last, the tenth for 10. */
#define HEADLINES 12

static double usefulness(const limiter *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->queue->names.count; i++)
        sum += l->kept[i] ? 1.0 / (double)(HEADLINES + i) : 0;
    return sum;
}

/* Choose in one way, and keep in `best` the better choice. */
static kprof_status try_way(bool packs, limiter *best)
{
    limiter l = {.limits = best->limits, .host = best->host, .queue = best->queue, .packs = packs};
    l.kept = calloc(l.queue->names.count + 1, sizeof(*l.kept));
    if (!l.kept)
        return KPROF_NO_MEMORY;
    kprof_status status = choose_by(&l);
    best->trials += l.trials;
    best->packed_trials += l.packed_trials;
    if (status == KPROF_OK && usefulness(&l) > usefulness(best)) {
        limiter worse = *best;
        best->kept = l.kept;
        best->image = l.image;
        l = worse;
    }
    kprof_config_image_free(&l.image);
    free(l.kept);
    return status;
}

static kprof_status take_what_fits(limiter *l)
{
    bool fits;
    size_t count = l->queue->names.count;
    kprof_status status = settle(l, 0, count, &fits);
    if (status != KPROF_OK || fits)
        return status;
    kprof_config_image_free(&l->image);
    status = try_way(true, l);
    return status == KPROF_OK && count - kprof_limiter_count(l) > count / FEW_OF_NAMES ? try_way(false, l) : status;
}

/* What is kept on disk. */
typedef struct questions {
    kprof_host_question kept; /* a byte for each name of the queue, 1 where it is kept */
    kprof_host_question image;
} questions;

/* The text differs: the kept names may be all of the queue in its order. */
static questions ask(const limiter *l, const char *text, const kprof_strlist *names)
{
    return (questions){{l->host, text + strlen(IMAGE_OF), &l->queue->names}, {l->host, text, names}};
}

static bool recall(limiter *l, const char *text)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    kprof_strlist names = KPROF_STRLIST_INIT;
    questions asked = ask(l, text, &names);
    bool found = kprof_host_recall(&asked.kept, &answers) && answers.length == l->queue->names.count;
    for (size_t i = 0; i < l->queue->names.count && found; i++)
        l->kept[i] = answers.data[i] == 1;
    found = found && kprof_limiter_list(l, 0, 0, &names) && kprof_host_recall_image(&asked.image, &l->image);
    free(names.items);
    kprof_strbuf_free(&answers);
    return found;
}

static void keep(const limiter *l, const char *text)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    kprof_strlist names = KPROF_STRLIST_INIT;
    questions asked = ask(l, text, &names);
    for (size_t i = 0; i < l->queue->names.count; i++)
        kprof_strbuf_append(&answers, &(char){(char)l->kept[i]}, 1);
    if (!answers.failed && l->image.size > 0 && kprof_limiter_list(l, 0, 0, &names)) {
        kprof_host_keep_image(&asked.image, &l->image);
        kprof_host_keep(&asked.kept, answers.data, answers.length);
    }
    free(names.items);
    kprof_strbuf_free(&answers);
}

/* What is asked for the image, and behind IMAGE_OF for the kept names.
 * The order of names and the bounds of groups are those of the set files, which may change: both are in the question.
 * The number stands for the prices of cost.c and for how this file tries. */
static char *question_text(const limiter *l)
{
    const kprof_limits *limits = l->limits;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&text, IMAGE_OF "limits 19 %u %.9g %llu %u %d %llu %llu %zu:", limits->max_passes,
                        limits->budget_s, (unsigned long long)limits->workload.launches, limits->workload.batch,
                        limits->workload.flush, (unsigned long long)limits->workload.allocated_bytes,
                        (unsigned long long)limits->workload.device_bytes, l->queue->named_count);
    for (size_t i = 0; i < l->queue->group_count; i++)
        kprof_strbuf_printf(&text, " %zu", l->queue->group_ends[i]);
    return kprof_strbuf_take(&text);
}

static kprof_status choose(limiter *l)
{
    char *text = question_text(l);
    kprof_status status = text ? KPROF_OK : KPROF_NO_MEMORY;
    if (status == KPROF_OK && !recall(l, text)) {
        status = take_what_fits(l);
        if (status == KPROF_OK)
            keep(l, text);
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
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu of %zu metrics fit, after %zu trials, of which %zu packed",
              kprof_host_chip(host), out->kept.count, queue->names.count, l.trials, l.packed_trials);
    free(l.kept);
    return status;
}
