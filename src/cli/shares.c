/* Fills one run after the other with the metrics whose counters still fit into its pass. */
#include "cli/shares.h"
#include "core/log.h"

#include <stdlib.h>

/* A throughput of several passes is collected by its parts; *is_one: it is such a one. */
static kprof_status take_throughput(const kprof_shares_wish *wish, const char *name, kprof_shares *out, bool *is_one)
{
    kprof_metric_info info;
    kprof_strlist parts = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_metric_info(wish->host, name, &info);
    if (status != KPROF_OK)
        return status;
    if (info.type == KPROF_METRIC_THROUGHPUT)
        status = kprof_host_breakdown(wish->host, name, &parts);
    kprof_metric_info_free(&info);
    *is_one = status == KPROF_OK && parts.count > 0;
    kprof_throughput *added = *is_one ? KPROF_APPEND(out->throughputs, out->throughput_count) : NULL;
    char *copy = added ? kprof_strdup(name) : NULL;
    if (copy)
        out->throughputs[out->throughput_count++] = (kprof_throughput){copy, parts};
    else
        kprof_strlist_free(&parts);
    return status;
}

/* The metrics of one pass of the plan next to each other, as they fit together. */
static kprof_status list_names(const kprof_shares_wish *wish, const kprof_plan *plan, kprof_shares *shares,
                               kprof_strlist *out)
{
    kprof_status status = KPROF_OK;
    for (size_t pass = 0; pass <= plan->pass_count; pass++)
        for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++) {
            const kprof_pass_list *passes = &plan->schedule.metrics[i];
            bool is_in_parts = false;
            if ((passes->count > 0 ? passes->items[0] + 1 : 0) != pass)
                continue;
            if (passes->count > 1)
                status = take_throughput(wish, plan->collect.items[i], shares, &is_in_parts);
            if (status == KPROF_OK && !is_in_parts)
                kprof_strlist_add(out, plan->collect.items[i]);
        }
    for (size_t i = 0; i < shares->throughput_count && status == KPROF_OK; i++)
        kprof_strlist_add_all_unique(out, &shares->throughputs[i].parts);
    return status;
}

/* Plan a run with as many of the names as one pass has space for; `names` becomes what is left. */
static kprof_status fill_run(const kprof_shares_wish *wish, uint32_t passes, kprof_strlist *names, kprof_shares *out)
{
    const kprof_selection selection = {.metrics = *names, .limits.max_passes = passes};
    kprof_plan *plan = KPROF_APPEND(out->plans, out->count);
    const kprof_log_receiver before = kprof_log_set_sink(kprof_log_discard, NULL);
    kprof_log_set_sink(passes > 0 ? kprof_log_discard : before.sink, before.user);
    kprof_status status = kprof_plan_make(wish->catalog, &selection, wish->host, plan);
    kprof_log_set_sink(before.sink, before.user);
    if (status != KPROF_OK)
        return status;
    out->count++;
    kprof_strlist_free(names);
    *names = plan->left_out;
    plan->left_out = (kprof_strlist)KPROF_STRLIST_INIT;
    return KPROF_OK;
}

static void leave_repeats_out(kprof_plan *plan)
{
    if (kprof_plan_pass_count(plan) == plan->pass_count)
        return;
    kprof_log(
        KPROF_LOG_WARNING,
        "%s: what is counted or sampled of instructions, or sampled over time, takes repeated launches and is left "
        "out; --replay-mode auto measures it",
        plan->chip);
    kprof_instruction_wish_free(&plan->instructions);
    kprof_timeline_free(&plan->timeline);
}

kprof_status kprof_shares_make(const kprof_shares_wish *wish, kprof_plan *plan, kprof_shares *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    *out = (kprof_shares){0};
    kprof_status status = list_names(wish, plan, out, &names);
    if (!wish->keeps_repeats)
        leave_repeats_out(plan);
    while (names.count > 0 && status == KPROF_OK && (wish->most == 0 || out->count < wish->most)) {
        status = fill_run(wish, 1, &names, out);
        if (status == KPROF_USAGE) /* none of them fits into one pass */
            status = fill_run(wish, 0, &names, out);
    }
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++)
        kprof_strlist_add(&plan->left_out, names.items[i]);
    return status;
}

void kprof_shares_free(kprof_shares *shares)
{
    for (size_t i = 0; i < shares->count; i++)
        kprof_plan_free(&shares->plans[i]);
    free(shares->plans);
    for (size_t i = 0; i < shares->throughput_count; i++) {
        free(shares->throughputs[i].name);
        kprof_strlist_free(&shares->throughputs[i].parts);
    }
    free(shares->throughputs);
    *shares = (kprof_shares){0};
}
