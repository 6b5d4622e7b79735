/* Deals the metrics of a plan to ranks, so that each has few passes: a metric needs all of its own in one rank. */
#include "cli/ranks.h"
#include "core/log.h"
#include "report/model/change.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *number = secure_getenv(names[i][0]), *count = secure_getenv(names[i][1]);
        if (!number || !count)
            continue;
        if (parse_number(number, &out->number) && parse_number(count, &out->count) && out->number < out->count)
            return KPROF_OK;
        return kprof_fail(KPROF_USAGE, "--rank-passes: %s is %s and %s is %s, which is no rank of a job", names[i][0],
                          number, names[i][1], count);
    }
    return kprof_fail(KPROF_USAGE, "--rank-passes: nothing tells this process' rank; start kprof by mpirun, srun or "
                                   "torchrun for each rank, or set RANK and WORLD_SIZE");
}

#define NOBODY UINT_MAX

/* Deals the metrics of a plan to ranks. */
typedef struct deal {
    kprof_host *host;
    const kprof_plan *plan;
    unsigned rank_count;
    unsigned *owners; /* [of collect], a rank or NOBODY */
    size_t *loads;    /* [rank_count], about how many passes a rank has */
} deal;

static unsigned least_loaded(const deal *all)
{
    unsigned least = 0;
    for (unsigned i = 1; i < all->rank_count; i++)
        least = all->loads[i] < all->loads[least] ? i : least;
    return least;
}

/* A throughput is the greatest of its parts, and counts what they count. */
static kprof_status give_parts(deal *all, const char *name, unsigned rank)
{
    const kprof_strlist *collect = &all->plan->collect;
    kprof_strlist parts = KPROF_STRLIST_INIT;
    kprof_status status = kprof_limits_stand_ins(all->host, name, collect, &parts);
    for (size_t i = 0; i < collect->count && status == KPROF_OK; i++)
        if (all->owners[i] == NOBODY && kprof_strlist_contains(&parts, collect->items[i]))
            all->owners[i] = rank;
    kprof_strlist_free(&parts);
    return status;
}

/* Deal the metrics that take several passes, those with most first, and then what is left of each pass. */
static kprof_status deal_metrics(deal *all)
{
    const kprof_plan *plan = all->plan;
    kprof_status status = KPROF_OK;
    for (size_t passes = plan->pass_count; passes > 1; passes--)
        for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++) {
            if (all->owners[i] != NOBODY || plan->schedule.metrics[i].count != passes)
                continue;
            all->owners[i] = least_loaded(all);
            all->loads[all->owners[i]] += passes;
            status = give_parts(all, plan->collect.items[i], all->owners[i]);
        }
    for (uint32_t pass = 0; pass < plan->pass_count; pass++) {
        const unsigned rank = least_loaded(all);
        bool is_used = false;
        for (size_t i = 0; i < plan->collect.count; i++) {
            const kprof_pass_list *passes = &plan->schedule.metrics[i];
            if (all->owners[i] != NOBODY || passes->count != 1 || passes->items[0] != pass)
                continue;
            all->owners[i] = rank;
            is_used = true;
        }
        all->loads[rank] += is_used;
    }
    return status;
}

/* Append the metrics of this rank, and those that all have: the time, and what takes no counters. */
static kprof_status choose(kprof_host *host, const kprof_plan *plan, const kprof_rank *rank, kprof_strlist *out)
{
    deal all = {.host = host,
                .plan = plan,
                .rank_count = rank->count,
                .owners = calloc(plan->collect.count + 1, sizeof *all.owners),
                .loads = calloc(rank->count, sizeof *all.loads)};
    kprof_status status = all.owners && all.loads ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++)
        all.owners[i] = NOBODY;
    if (status == KPROF_OK)
        status = deal_metrics(&all);
    for (size_t i = 0; i < plan->collect.count && status == KPROF_OK; i++) {
        const char *name = plan->collect.items[i];
        const bool is_own = all.owners[i] == rank->number || plan->schedule.metrics[i].count == 0 ||
                            strcmp(name, KPROF_TIME_METRIC) == 0;
        if (is_own && !kprof_strlist_add(out, name))
            status = kprof_fail(KPROF_NO_MEMORY, "out of memory");
    }
    KPROF_FREE(all.owners, all.loads);
    return status;
}

#define SWAP(type, a, b)                                                                                               \
    do {                                                                                                               \
        const type kept = (a);                                                                                         \
        (a) = (b);                                                                                                     \
        (b) = kept;                                                                                                    \
    } while (0)

void kprof_plan_swap(kprof_plan *plan, kprof_plan *other)
{
    SWAP(kprof_strlist, plan->collect, other->collect);
    SWAP(size_t, plan->pass_count, other->pass_count);
    SWAP(kprof_image_variants, plan->variants, other->variants);
    SWAP(kprof_schedule, plan->schedule, other->schedule);
    SWAP(kprof_cost, plan->cost, other->cost);
}

kprof_status kprof_rank_take(const kprof_rank_source *from, const kprof_rank *rank, kprof_plan *plan)
{
    kprof_plan own;
    kprof_selection selection = {.sets = KPROF_STRLIST_INIT};
    kprof_status status = choose(from->host, plan, rank, &selection.metrics);
    if (status == KPROF_OK && selection.metrics.count == 0)
        status = kprof_fail(KPROF_USAGE,
                            "--rank-passes: rank %u of %u has no pass: the metrics take %zu; leave the "
                            "time in, %s",
                            rank->number, rank->count, plan->pass_count, KPROF_TIME_METRIC);
    if (status == KPROF_OK)
        status = kprof_plan_make(from->catalog, &selection, from->host, &own);
    if (status == KPROF_OK) {
        kprof_plan_swap(plan, &own);
        if (rank->number > 0)
            kprof_instruction_wish_free(&plan->instructions);
        kprof_plan_free(&own);
    }
    kprof_strlist_free(&selection.metrics);
    return status;
}
