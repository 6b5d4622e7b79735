/* Fewer passes: CUPTI reads each raw counter in the first domain of the chip that has it, and so runs out of slots
 * there while other domains have room. On GH100 most counters of an SM's pipes go to gpu_sm_c, four to a pass, although
 * gpu_sm_a takes one more. Here domains are chosen, passes are saved and made cheaper, and an image is made of that. */
#include "planner/pack.h"

#include "core/log.h"
#include "planner/pack_private.h"
#include "planner/schedule.h"

#include <stdlib.h>

/* More are not packed: it would take seconds. */
#define MAX_COUNTERS 1000

static size_t count_counters(const kprof_config_image *image)
{
    kprof_strlist counters = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < image->pass_count && status == KPROF_OK; i++)
        status = kprof_image_counters(image, i, &counters);
    size_t count = counters.count;
    kprof_strlist_free(&counters);
    return status == KPROF_OK ? count : 0;
}

static size_t pass_of(const kprof_pack_problem *problem, size_t counter)
{
    return problem->bundles[problem->counters[counter].bundle].pass;
}

static kprof_status add_pass(const kprof_pack_problem *problem, size_t pass, kprof_raw_config *config)
{
    kprof_status status = kprof_raw_config_begin(config);
    for (size_t i = 0; i < problem->names.count && status == KPROF_OK; i++) {
        const kprof_pack_counter *counter = &problem->counters[i];
        if (pass_of(problem, i) == pass)
            status = kprof_raw_config_put(config, &(kprof_placed_counter){counter->name, counter->domain});
    }
    return status == KPROF_OK ? kprof_raw_config_end(config) : status;
}

static kprof_status make_image(const kprof_host *host, const kprof_pack_problem *problem, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_status status = kprof_raw_config_open_quietly(host, &config);
    for (size_t i = 0; i < problem->pass_count && status == KPROF_OK; i++)
        status = add_pass(problem, i, config);
    if (status == KPROF_OK)
        status = kprof_raw_config_image(host, config, out);
    kprof_raw_config_close(config);
    return status;
}

static char *write_placement(const kprof_pack_problem *problem)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    for (size_t pass = 0; pass < problem->pass_count; pass++) {
        for (size_t i = 0; i < problem->names.count; i++) {
            if (pass_of(problem, i) == pass)
                kprof_placement_put(&text, problem->counters[i].name, problem->counters[i].domain);
        }
        kprof_placement_end_pass(&text);
    }
    return kprof_strbuf_take(&text);
}

/* A group of counters that took more than one pass would be seen here. */
static bool is_as_packed(const kprof_pack_problem *problem, const kprof_config_image *image)
{
    return image->pass_count == problem->pass_count && count_counters(image) == problem->names.count;
}

static kprof_status replace(const kprof_host *host, const kprof_pack_problem *problem, kprof_config_image *image)
{
    kprof_config_image packed = {0};
    kprof_status status = make_image(host, problem, &packed);
    if (status == KPROF_OK)
        packed.placement = write_placement(problem);
    if (!packed.placement || !is_as_packed(problem, &packed)) {
        kprof_config_image_free(&packed);
        return status == KPROF_OK ? KPROF_INTERNAL : status;
    }
    kprof_config_image_free(image);
    *image = packed;
    return KPROF_OK;
}

/* Append the raw counter of a metric, where the chip has it and nothing that is collected is made of it. */
static const char *find_guest(kprof_host *host, const kprof_pack_problem *problem, const char *metric,
                              kprof_strlist *counters)
{
    kprof_evaluator *evaluator;
    size_t before = counters->count;
    if (!kprof_host_can_collect(host, metric) || kprof_evaluator_get(host, &evaluator) != KPROF_OK ||
        kprof_evaluator_raw_counters(evaluator, metric, counters, NULL) != KPROF_OK || counters->count != before + 1 ||
        kprof_strlist_contains(&problem->names, counters->items[before]))
        return NULL;
    return counters->items[before];
}

/* For witnesses (host_witness.c). */
static kprof_status make_room(kprof_host *host, kprof_pack_problem *problem)
{
    kprof_strlist counters = KPROF_STRLIST_INIT;
    kprof_pack_guests guests = {.in_sms = find_guest(host, problem, KPROF_SM_INSTRUCTIONS, &counters),
                                .in_tpcs = find_guest(host, problem, KPROF_TPC_INSTRUCTIONS, &counters)};
    kprof_status status = guests.in_sms ? kprof_pack_make_room(problem, &guests) : KPROF_OK;
    kprof_strlist_free(&counters);
    return status;
}

static kprof_status improve(kprof_host *host, const kprof_strlist *names, kprof_pack_problem *problem,
                            kprof_config_image *image)
{
    kprof_status status = kprof_pack_read(host, names, image, problem);
    if (status != KPROF_OK)
        return status;
    unsigned before_ms = kprof_pack_cost_ms(problem);
    status = kprof_pack_search(problem);
    if (status != KPROF_OK)
        return status;
    if (kprof_pack_gather(problem) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "%s: counters were not gathered", kprof_host_chip(host));
    if (problem->pass_count >= image->pass_count && kprof_pack_cost_ms(problem) >= before_ms)
        return KPROF_OK;
    if (make_room(host, problem) != KPROF_OK) /* may cost a little, and does not undo what was won */
        kprof_log(KPROF_LOG_DEBUG, "%s: no room was made for witnesses", kprof_host_chip(host));
    return replace(host, problem, image);
}

void kprof_pack(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *image)
{
    kprof_pack_problem problem = {.few_passes = few_passes};
    if (image->pass_count < 2 || count_counters(image) > MAX_COUNTERS)
        return;
    size_t before = image->pass_count;
    kprof_status status = improve(host, names, &problem, image);
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "%s: %zu metrics take %zu passes; CUPTI takes %zu", kprof_host_chip(host),
                  names->count, image->pass_count, before);
    else
        kprof_log(KPROF_LOG_DEBUG, "%s: %zu metrics stay in CUPTI's %zu passes: %s", kprof_host_chip(host),
                  names->count, before, kprof_status_message(status));
    kprof_pack_free(&problem);
}
