/* Fills one run after the other with the metrics whose counters still fit into its pass, and deals such shares to
 * ranks, so that each has few passes. */
#include "cli/shares.h"
#include "core/log.h"
#include "report/model/change.h"

#include <stdlib.h>
#include <string.h>

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
    if (*is_one)
        *KPROF_ADD(out->throughputs, out->throughput_count) = (kprof_throughput){kprof_strdup(name), parts};
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

kprof_status kprof_shares_make(const kprof_shares_wish *wish, kprof_plan *plan, kprof_shares *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    *out = (kprof_shares){0};
    kprof_status status = list_names(wish, plan, out, &names);
    if (!wish->keeps_repeats && kprof_plan_pass_count(plan) != plan->pass_count) {
        kprof_log(KPROF_LOG_WARNING,
                  "%s: what is counted or sampled of instructions, or sampled over time, takes repeated launches and "
                  "is left out; --replay-mode auto measures it",
                  plan->chip);
        kprof_instruction_wish_free(&plan->instructions);
        kprof_timeline_free(&plan->timeline);
    }
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

#define MOST_RANKS (1U << 20)

static bool parse_number(const char *text, unsigned *out)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    *out = (unsigned)number;
    return *text >= '0' && *text <= '9' && *end == '\0' && number <= MOST_RANKS;
}

kprof_status kprof_rank_find(kprof_rank *out)
{
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"},
                                           {"RANK", "WORLD_SIZE"}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *number = secure_getenv(names[i][0]), *count = secure_getenv(names[i][1]);
        if (!number || !count)
            continue;
        if (parse_number(number, &out->number) && parse_number(count, &out->count) && out->number < out->count)
            return KPROF_OK;
        return kprof_fail(KPROF_USAGE, "--rank-passes: %s is \"%s\" and %s is \"%s\", which is no rank of a job",
                          names[i][0], number, names[i][1], count);
    }
    return kprof_fail(KPROF_USAGE, "--rank-passes: nothing tells this process' rank; start kprof by mpirun, srun or "
                                   "torchrun for each rank, or set RANK and WORLD_SIZE");
}

/* Append what this rank collects: its shares. The last share has most passes, so deal it first. */
static void take_shares(const kprof_shares *shares, const kprof_rank *rank, kprof_strlist *out)
{
    KPROF_AUTO_FREE size_t *loads = kprof_calloc(rank->count, sizeof *loads);
    for (size_t left = shares->count; left > 0; left--) {
        const kprof_plan *share = &shares->plans[left - 1];
        unsigned owner = 0; /* the rank with the fewest passes */
        for (unsigned i = 1; i < rank->count; i++)
            owner = loads[i] < loads[owner] ? i : owner;
        loads[owner] += share->pass_count;
        if (owner == rank->number)
            kprof_strlist_add_all_unique(out, &share->collect);
    }
}

/* Throughputs, and the host that knows their units. kprof merge computes from them what the ranks have collected in
 * parts. */
typedef struct greatest {
    kprof_pool *pool; /* of the plan */
    kprof_host *host;
    const kprof_shares *shares;
    kprof_status status;
} greatest;

static kprof_status compute_greatest(const greatest *how, const kprof_throughput *throughput, kprof_item *item)
{
    kprof_metric_info info;
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_status status = kprof_host_metric_info(how->host, throughput->name, &info);
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < throughput->parts.count; i++)
        kprof_strbuf_printf(&text, "%s%s", i == 0 ? "max(" : ", ", throughput->parts.items[i]);
    kprof_strbuf_puts(&text, ")");
    item->expression = kprof_pool_keep(how->pool, kprof_strbuf_take(&text));
    item->unit = item->unit ? item->unit : kprof_pool_strdup(how->pool, info.unit);
    kprof_metric_info_free(&info);
    return kprof_expr_parse(how->pool, item->expression, &item->compiled);
}

static void compute_item(void *user, kprof_item *item, const char *column)
{
    greatest *how = user;
    (void)column;
    for (size_t i = 0; i < how->shares->throughput_count && item->name && !item->expression; i++) {
        const kprof_throughput *throughput = &how->shares->throughputs[i];
        if (how->status == KPROF_OK && strcmp(throughput->name, item->name) == 0)
            how->status = compute_greatest(how, throughput, item);
    }
}

/* Values of --metrics that are computed stand in a list of their own. */
static void compute_shown(greatest *how, kprof_plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->shown.count; i++) {
        char *name = plan->shown.items[i];
        kprof_item item = {.name = name, .label = name};
        compute_item(how, &item, NULL);
        if (item.expression) {
            kprof_pool_keep(how->pool, name);
            *KPROF_POOL_ADD(how->pool, plan->computed, plan->computed_count) = item;
        } else {
            plan->shown.items[kept++] = name;
        }
    }
    plan->shown.count = kept;
}

/* Append the metrics of this rank. */
static kprof_status choose(const kprof_shares_wish *wish, const kprof_rank *rank, kprof_plan *plan, kprof_strlist *out)
{
    kprof_shares shares;
    kprof_status status = kprof_shares_make(wish, plan, &shares);
    take_shares(&shares, rank, out);
    for (size_t i = 0; i < plan->collect.count; i++) { /* all ranks have the time, and what takes no counters */
        const char *name = plan->collect.items[i];
        if (plan->schedule.metrics[i].count == 0 || strcmp(name, KPROF_TIME_METRIC) == 0)
            kprof_strlist_add_unique(out, name);
    }
    greatest how = {&plan->pool, wish->host, &shares, status};
    if (status == KPROF_OK)
        compute_shown(&how, plan);
    for (size_t i = 0; i < plan->section_count && how.status == KPROF_OK; i++)
        kprof_section_visit(&plan->sections[i], compute_item, &how);
    kprof_shares_free(&shares);
    return how.status;
}

void kprof_plan_swap(kprof_plan *plan, kprof_plan *other)
{
    const kprof_plan kept = *plan;
    plan->collect = other->collect, other->collect = kept.collect;
    plan->pass_count = other->pass_count, other->pass_count = kept.pass_count;
    plan->variants = other->variants, other->variants = kept.variants;
    plan->schedule = other->schedule, other->schedule = kept.schedule;
    plan->cost = other->cost, other->cost = kept.cost;
}

kprof_status kprof_rank_take(const kprof_catalog *catalog, kprof_host *host, const kprof_rank *rank, kprof_plan *plan)
{
    const kprof_shares_wish wish = {.catalog = catalog, .host = host, .keeps_repeats = true};
    kprof_plan own;
    kprof_selection selection = {.sets = KPROF_STRLIST_INIT};
    kprof_status status = choose(&wish, rank, plan, &selection.metrics);
    if (status == KPROF_OK && selection.metrics.count == 0)
        status = kprof_fail(KPROF_USAGE,
                            "--rank-passes: rank %u of %u has no pass: the metrics take %zu; leave the time in, %s",
                            rank->number, rank->count, plan->pass_count, KPROF_TIME_METRIC);
    KPROF_THEN(status, kprof_plan_make(catalog, &selection, host, &own));
    if (status == KPROF_OK) {
        kprof_plan_swap(plan, &own);
        if (rank->number > 0) {
            kprof_instruction_wish_free(&plan->instructions);
            kprof_timeline_free(&plan->timeline);
        }
        kprof_plan_free(&own);
    }
    kprof_strlist_free(&selection.metrics);
    return status;
}
