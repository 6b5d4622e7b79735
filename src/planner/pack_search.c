/* Searches for a schedule of fewer passes. The lightest pass is dissolved: its bundles go into others, where each may
 * put out one that fits elsewhere. When that succeeds the next pass is dissolved. */
#include "planner/pack_moves.h"

/* Of the passes that have not been tried, the one with the least to be put elsewhere. */
static size_t lightest_pass(const kprof_pack_moves *m)
{
    size_t best = KPROF_NO_PASS;
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        const kprof_pack_pass *pass = &m->passes[i];
        if (pass->is_fixed || pass->failed)
            continue;
        if (best == KPROF_NO_PASS ||
            kprof_pack_weigh(pass->side_counts) < kprof_pack_weigh(m->passes[best].side_counts))
            best = i;
    }
    return best;
}

static size_t survey_sm_passes(kprof_pack_moves *m)
{
    size_t count = 0;
    kprof_pack_survey(m);
    for (size_t i = 0; i < m->problem->pass_count; i++)
        count += m->passes[i].side_counts[KPROF_SIDE_SM] > 0;
    return count;
}

static void dissolve_passes(kprof_pack_moves *m)
{
    size_t pass, sm_passes = survey_sm_passes(m);
    while (kprof_pack_may_ask(m->answers) && (pass = lightest_pass(m)) != KPROF_NO_PASS) {
        kprof_pack_save(m);
        kprof_pack_empty(m->problem, pass, true);
        kprof_pack_survey(m);
        bool is_settled = kprof_pack_settle(m) && survey_sm_passes(m) <= sm_passes;
        if (!is_settled)
            kprof_pack_restore(m);
        kprof_pack_note(m, pass, 1, is_settled);
        kprof_pack_survey(m);
    }
}

/* Of the bundles that have been taken out of a pass, the one with the fewest places. */
static size_t next_to_spread(const kprof_pack_moves *m)
{
    const kprof_pack_bundle *bundles = m->problem->bundles;
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < m->problem->bundle_count; i++) {
        if (bundles[i].pass == KPROF_NO_PASS &&
            (best == KPROF_NO_BUNDLE || bundles[i].tightness > bundles[best].tightness))
            best = i;
    }
    return best;
}

/* Place the counters of one of CUPTI's passes anew within it, so that they leave those places free that are wanted
 * most. Where that fails they stay with NVPW's choice; where even that is no single pass, the pass stays as it is. */
static void spread_pass(kprof_pack_moves *m, size_t pass)
{
    kprof_pack_problem *p = m->problem;
    size_t bundle;
    kprof_pack_save(m);
    kprof_pack_empty(p, pass, false);
    while ((bundle = next_to_spread(m)) != KPROF_NO_BUNDLE &&
           kprof_pack_has_room(m->answers, &p->bundles[bundle], pass, KPROF_NO_BUNDLE))
        p->bundles[bundle].pass = pass;
    if (bundle == KPROF_NO_BUNDLE)
        return;
    kprof_pack_restore(m);
    bool is_fixed = !kprof_pack_goes_together(m->answers, pass);
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass == pass && is_fixed)
            p->bundles[i].is_fixed = true;
    }
}

kprof_status kprof_pack_search(kprof_pack_problem *problem)
{
    kprof_pack_moves moves;
    kprof_status status = KPROF_NO_MEMORY;
    if (kprof_pack_moves_init(&moves, problem)) {
        kprof_pack_survey(&moves);
        for (size_t i = 0; i < problem->pass_count; i++) {
            if (!moves.passes[i].is_fixed)
                spread_pass(&moves, i);
        }
        dissolve_passes(&moves);
        status = kprof_pack_answers_status(moves.answers);
    }
    kprof_pack_moves_free(&moves);
    return status;
}
