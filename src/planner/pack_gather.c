/* Makes passes cheaper, of which there may then be fewer, or more: those counters are brought together that cost a pass
 * the same time whether it has one of them or many. Where a pass has fewest of a kind it is to have none: they go into
 * passes that have such already, or are read elsewhere. What makes the schedule no cheaper is taken back. */
#include "planner/pack_moves.h"

#include <string.h>

/* Questions for one attempt: those that succeed take 20 to 170. */
#define PATIENCE 200
/* Passes that are added at a time, at most, and what each has to bring: programs of few launches only pay for it, and
 * the witnesses of a pass take time to start, too. */
#define MOST_ADDED    2
#define ADDED_PASS_MS 60

typedef struct target {
    size_t pass;
    kprof_pack_kind kind; /* of which the pass is to have none */
} target;

static bool is_open_to(const kprof_pack_pass *pass, kprof_pack_kind kind)
{
    return !pass->is_fixed && pass->kind_counts[kind] > 0 && !(pass->failed & KPROF_KIND_BIT(kind));
}

/* Of what has not been tried, where there is least to be put elsewhere. False: all has been. */
static bool next_target(const kprof_pack_moves *m, target *out)
{
    size_t least = SIZE_MAX;
    *out = (target){0};
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        for (int kind = 0; kind < KPROF_PACK_KINDS; kind++) {
            bool is_wanted = kind != KPROF_KIND_SLOW || !m->problem->few_passes;
            if (!is_wanted || !is_open_to(&m->passes[i], kind) || m->passes[i].kind_counts[kind] >= least)
                continue;
            least = m->passes[i].kind_counts[kind];
            *out = (target){i, kind};
        }
    }
    return least < SIZE_MAX;
}

/* No pass is to get a kind that it has not, nor the one that it is to lose; but counters that leave the SMs' dear
 * domains may be read in the other one wherever there is room. */
static void close_kinds(kprof_pack_moves *m, const target *at)
{
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        unsigned *closed = &m->problem->closed_kinds[i];
        *closed = i == at->pass ? KPROF_KIND_BIT(at->kind) : 0;
        for (int kind = 0; kind < KPROF_PACK_KINDS; kind++)
            *closed |= m->passes[i].kind_counts[kind] == 0 ? KPROF_KIND_BIT(kind) : 0;
        if (at->kind == KPROF_KIND_SLOW)
            *closed &= ~KPROF_KIND_BIT(KPROF_KIND_SM_A);
    }
}

static void take_out(kprof_pack_problem *p, const target *at)
{
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass == at->pass && kprof_pack_kinds_of(&p->counters[i]) & KPROF_KIND_BIT(at->kind))
            bundle->pass = KPROF_NO_PASS;
    }
}

/* A pass may have lost all that it had, or got nothing. */
static void remove_empty(kprof_pack_moves *m)
{
    for (size_t i = m->problem->pass_count; i-- > 0;) {
        const size_t *counts = m->passes[i].side_counts;
        if (counts[KPROF_SIDE_SM] == 0 && counts[KPROF_SIDE_OTHER] == 0)
            kprof_pack_empty(m->problem, i, true);
    }
}

static bool make_cheaper(kprof_pack_moves *m, const target *at, size_t more_passes)
{
    unsigned before_ms = kprof_pack_cost_ms(m->problem);
    kprof_pack_save(m);
    m->problem->pass_count += more_passes;
    kprof_pack_survey(m);
    close_kinds(m, at);
    take_out(m->problem, at);
    kprof_pack_survey(m);
    bool is_settled = kprof_pack_settle(m);
    kprof_pack_survey(m);
    if (is_settled)
        remove_empty(m);
    size_t added = m->problem->pass_count > m->saved_pass_count ? m->problem->pass_count - m->saved_pass_count : 0;
    bool is_cheaper = is_settled && kprof_pack_cost_ms(m->problem) + added * ADDED_PASS_MS < before_ms;
    if (!is_cheaper)
        kprof_pack_restore(m);
    kprof_pack_survey(m);
    return is_cheaper;
}

/* Launches are dear enough that a pass or two may be added to make them cheaper. */
static bool try_target(kprof_pack_moves *m, const target *at)
{
    size_t most = at->kind == KPROF_KIND_SLOW ? m->problem->most_passes - m->problem->pass_count : 0;
    for (size_t more = 0; more <= most && more <= MOST_ADDED && kprof_pack_allow(m->answers, PATIENCE); more++) {
        if (make_cheaper(m, at, more))
            return true;
    }
    return false;
}

static void gather(kprof_pack_moves *m)
{
    target at;
    kprof_pack_survey(m);
    while (kprof_pack_allow(m->answers, PATIENCE) && next_target(m, &at))
        kprof_pack_note(m, at.pass, KPROF_KIND_BIT(at.kind), try_target(m, &at));
    memset(m->problem->closed_kinds, 0, m->problem->most_passes * sizeof(*m->problem->closed_kinds));
}

kprof_status kprof_pack_gather(kprof_pack_problem *problem)
{
    kprof_pack_moves moves;
    kprof_status status = KPROF_NO_MEMORY;
    if (kprof_pack_moves_init(&moves, problem)) {
        gather(&moves);
        status = kprof_pack_answers_status(moves.answers);
    }
    kprof_pack_moves_free(&moves);
    return status;
}
