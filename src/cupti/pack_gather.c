/* Makes passes cheaper, of which there may then be fewer: those counters are brought together that cost a pass the same
 * time whether it has one of them or many. Where a pass has fewest of a kind it is to have none: they go into passes
 * that have such already, or are read elsewhere. What makes the schedule no cheaper is taken back. */
#include "cupti/pack_moves.h"

#include <string.h>

/* Questions for one attempt: those that succeed take 20 to 170. */
#define PATIENCE 200

typedef struct target {
    size_t pass;
    kprof_pack_kind kind; /* of which the pass is to have none */
} target;

static bool is_open_to(const kprof_pack_pass *pass, kprof_pack_kind kind)
{
    return !pass->is_fixed && pass->kind_counts[kind] > 0 && !(pass->failed & 1u << kind);
}

/* Of what has not been tried, where there is least to be put elsewhere. False: all has been. */
static bool next_target(const kprof_pack_moves *m, target *out)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        for (int kind = KPROF_KIND_CHEAP + 1; kind < KPROF_PACK_KINDS; kind++) {
            if (!is_open_to(&m->passes[i], kind) || m->passes[i].kind_counts[kind] >= least)
                continue;
            least = m->passes[i].kind_counts[kind];
            *out = (target){i, kind};
        }
    }
    return least < SIZE_MAX;
}

/* No pass is to get a kind that it has not, nor the one that it is to lose. */
static void close_kinds(kprof_pack_moves *m, const target *at)
{
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        unsigned *closed = &m->problem->closed_kinds[i];
        *closed = i == at->pass ? 1u << at->kind : 0;
        for (int kind = KPROF_KIND_CHEAP + 1; kind < KPROF_PACK_KINDS; kind++)
            *closed |= m->passes[i].kind_counts[kind] == 0 ? 1u << kind : 0;
    }
}

static void take_out(kprof_pack_problem *p, const target *at)
{
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass == at->pass && kprof_pack_kind_of(&p->counters[i]) == at->kind)
            bundle->pass = KPROF_NO_PASS;
    }
}

/* A pass may have lost all that it had. */
static void remove_empty(kprof_pack_moves *m)
{
    for (size_t i = m->problem->pass_count; i-- > 0;) {
        const size_t *counts = m->passes[i].side_counts;
        if (counts[KPROF_SIDE_SM] == 0 && counts[KPROF_SIDE_OTHER] == 0)
            kprof_pack_empty(m->problem, i, true);
    }
}

static bool make_cheaper(kprof_pack_moves *m, const target *at, size_t sm_passes)
{
    unsigned before_ms = kprof_pack_cost_ms(m->problem);
    kprof_pack_save(m);
    close_kinds(m, at);
    take_out(m->problem, at);
    kprof_pack_survey(m);
    bool is_cheaper = kprof_pack_settle(m) && kprof_pack_count_sm_passes(m) <= sm_passes &&
                      kprof_pack_cost_ms(m->problem) < before_ms;
    if (is_cheaper)
        remove_empty(m);
    else
        kprof_pack_restore(m);
    kprof_pack_survey(m);
    return is_cheaper;
}

static void gather(kprof_pack_moves *m)
{
    target at;
    size_t sm_passes = kprof_pack_count_sm_passes(m), pass_count = m->problem->pass_count;
    while (kprof_pack_allow(m->answers, PATIENCE) && next_target(m, &at)) {
        bool is_cheaper = make_cheaper(m, &at, sm_passes);
        kprof_pack_note(m, at.pass, 1u << at.kind, is_cheaper);
    }
    memset(m->problem->closed_kinds, 0, pass_count * sizeof(*m->problem->closed_kinds));
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
