/* The moves of packing: bundles without a pass are placed, where each may put out one that fits elsewhere, and what
 * came of it can be taken back. The same image gives the same result, since the end is a number of questions to NVPW
 * and not a time. */
#include "planner/pack_moves.h"

#include <stdlib.h>
#include <string.h>

/* To settle bundles: it would go round in circles. */
#define MAX_STEPS 100
/* Of each phase. More hardly help: 15 bring the shipped sets as far as 25, but for three of 112. */
#define QUESTIONS_PER_COUNTER 20
#define MAX_QUESTIONS         6000

void kprof_pack_save(kprof_pack_moves *m)
{
    const kprof_pack_problem *p = m->problem;
    for (size_t i = 0; i < p->bundle_count; i++)
        m->saved_passes[i] = p->bundles[i].pass;
    for (size_t i = 0; i < p->names.count; i++)
        m->saved_domains[i] = p->counters[i].domain;
    m->saved_pass_count = p->pass_count;
    memset(m->troubles, 0, p->bundle_count * sizeof(*m->troubles));
}

void kprof_pack_restore(kprof_pack_moves *m)
{
    kprof_pack_problem *p = m->problem;
    for (size_t i = 0; i < p->bundle_count; i++)
        p->bundles[i].pass = m->saved_passes[i];
    for (size_t i = 0; i < p->names.count; i++)
        p->counters[i].domain = m->saved_domains[i];
    p->pass_count = m->saved_pass_count;
}

void kprof_pack_empty(kprof_pack_problem *p, size_t pass, bool remove)
{
    for (size_t i = 0; i < p->bundle_count; i++) {
        size_t *of = &p->bundles[i].pass;
        if (*of == pass)
            *of = KPROF_NO_PASS;
        else if (remove && *of > pass && *of != KPROF_NO_PASS)
            (*of)--;
    }
    p->pass_count -= remove;
}

void kprof_pack_survey(kprof_pack_moves *m)
{
    const kprof_pack_problem *p = m->problem;
    for (size_t i = 0; i < p->pass_count; i++) {
        m->passes[i].is_fixed = false;
        memset(m->passes[i].side_counts, 0, sizeof(m->passes[i].side_counts));
        memset(m->passes[i].kind_counts, 0, sizeof(m->passes[i].kind_counts));
    }
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_counter *counter = &p->counters[i];
        const kprof_pack_bundle *bundle = &p->bundles[counter->bundle];
        if (bundle->pass == KPROF_NO_PASS)
            continue;
        kprof_pack_pass *pass = &m->passes[bundle->pass];
        pass->is_fixed = pass->is_fixed || bundle->is_fixed;
        pass->side_counts[counter->side]++;
        kprof_pack_count_kinds(counter, pass->kind_counts);
    }
}

static void consider(kprof_pack_moves *m, size_t bundle)
{
    const kprof_pack_problem *p = m->problem;
    for (size_t i = 0; i < p->pass_count; i++) {
        m->passes[i].is_refused = m->passes[i].is_fixed;
        m->passes[i].kinship = 0;
    }
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass != KPROF_NO_PASS)
            m->passes[p->bundles[i].pass].kinship += p->kinships[bundle * p->bundle_count + i];
    }
}

static bool is_better(const kprof_pack_pass *a, const kprof_pack_pass *b, bool for_sm)
{
    bool a_has = a->side_counts[KPROF_SIDE_SM] > 0, b_has = b->side_counts[KPROF_SIDE_SM] > 0;
    return for_sm && a_has != b_has ? a_has : a->kinship > b->kinship;
}

/* The pass with most kin that has not refused, else the first; KPROF_NO_PASS: all have. Counters of SMs go where such
 * are already, since the first makes a pass dear. */
static size_t next_pass(const kprof_pack_moves *m, bool for_sm)
{
    size_t best = KPROF_NO_PASS;
    for (size_t i = 0; i < m->problem->pass_count; i++) {
        if (!m->passes[i].is_refused && (best == KPROF_NO_PASS || is_better(&m->passes[i], &m->passes[best], for_sm)))
            best = i;
    }
    return best;
}

static bool place(kprof_pack_moves *m, size_t bundle)
{
    kprof_pack_bundle *b = &m->problem->bundles[bundle];
    consider(m, bundle);
    bool for_sm = b->side_counts[KPROF_SIDE_SM] > 0;
    for (size_t pass; (pass = next_pass(m, for_sm)) != KPROF_NO_PASS;) {
        if (kprof_pack_has_room(m->answers, b, pass, KPROF_NO_BUNDLE)) {
            b->pass = pass;
            return true;
        }
        m->passes[pass].is_refused = true;
    }
    return false;
}

static bool share_a_place(const kprof_pack_counter *a, const kprof_pack_counter *b)
{
    if (a->side == KPROF_SIDE_OTHER)
        return b->side == KPROF_SIDE_OTHER;
    for (size_t i = 0; i < a->places.count; i++) {
        for (size_t k = 0; k < b->places.count; k++) {
            if (a->places.items[i] == b->places.items[k])
                return true;
        }
    }
    return false;
}

static bool compete(const kprof_pack_problem *p, const kprof_pack_bundle *a, const kprof_pack_bundle *b)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < b->count; k++) {
            if (share_a_place(&p->counters[a->counters[i]], &p->counters[b->counters[k]]))
                return true;
        }
    }
    return false;
}

/* How hard counters are to place: outside of the SMs it is room for all of them or none. */
size_t kprof_pack_weigh(const size_t *side_counts)
{
    return side_counts[KPROF_SIDE_SM] + (side_counts[KPROF_SIDE_OTHER] > 0 ? 3 : 0);
}

static int compare_costs(const void *a, const void *b)
{
    const kprof_pack_exchange *left = a, *right = b;
    if (left->cost != right->cost)
        return left->cost < right->cost ? -1 : 1;
    return (left->bundle > right->bundle) - (left->bundle < right->bundle);
}

/* The bundles that may be put out for another, those first that will find room again most easily. */
static size_t list_exchanges(kprof_pack_moves *m, const kprof_pack_bundle *wanting)
{
    size_t count = 0;
    for (size_t i = 0; i < m->problem->bundle_count; i++) {
        const kprof_pack_bundle *b = &m->problem->bundles[i];
        if (b->pass == KPROF_NO_PASS || m->passes[b->pass].is_fixed || b->count > wanting->count + 1)
            continue;
        if (compete(m->problem, wanting, b))
            m->exchanges[count++] = (kprof_pack_exchange){i, 4 * m->troubles[i] + kprof_pack_weigh(b->side_counts)};
    }
    qsort(m->exchanges, count, sizeof(*m->exchanges), compare_costs);
    return count;
}

static bool put_out_another(kprof_pack_moves *m, size_t bundle)
{
    kprof_pack_bundle *b = &m->problem->bundles[bundle];
    size_t count = list_exchanges(m, b);
    m->troubles[bundle]++;
    for (size_t i = 0; i < count; i++) {
        kprof_pack_bundle *other = &m->problem->bundles[m->exchanges[i].bundle];
        if (!kprof_pack_has_room(m->answers, b, other->pass, m->exchanges[i].bundle))
            continue;
        b->pass = other->pass;
        other->pass = KPROF_NO_PASS;
        return true;
    }
    return false;
}

/* Of the bundles without a pass, the one that has given most trouble, else the largest. */
static size_t next_homeless(const kprof_pack_moves *m)
{
    const kprof_pack_bundle *bundles = m->problem->bundles;
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < m->problem->bundle_count; i++) {
        if (bundles[i].pass != KPROF_NO_PASS)
            continue;
        if (best == KPROF_NO_BUNDLE || m->troubles[i] > m->troubles[best] ||
            (m->troubles[i] == m->troubles[best] && bundles[i].count > bundles[best].count))
            best = i;
    }
    return best;
}

bool kprof_pack_settle(kprof_pack_moves *m)
{
    size_t bundle;
    for (size_t steps = 0; (bundle = next_homeless(m)) != KPROF_NO_BUNDLE; steps++) {
        if (steps == MAX_STEPS || !kprof_pack_may_ask(m->answers))
            return false;
        if (!place(m, bundle) && !put_out_another(m, bundle))
            return false;
    }
    return true;
}

void kprof_pack_note(kprof_pack_moves *m, size_t pass, unsigned bit, bool success)
{
    for (size_t i = 0; i < m->problem->pass_count && success; i++)
        m->passes[i].failed = 0;
    if (!success)
        m->passes[pass].failed |= bit;
}

bool kprof_pack_moves_init(kprof_pack_moves *m, kprof_pack_problem *problem)
{
    size_t bundles = problem->bundle_count + 1, questions = QUESTIONS_PER_COUNTER * problem->names.count;
    *m = (kprof_pack_moves){.problem = problem};
    m->answers = kprof_pack_answers_new(problem, questions < MAX_QUESTIONS ? questions : MAX_QUESTIONS);
    m->passes = calloc(problem->most_passes + 1, sizeof(*m->passes));
    m->troubles = calloc(bundles, sizeof(*m->troubles));
    m->exchanges = calloc(bundles, sizeof(*m->exchanges));
    m->saved_passes = calloc(bundles, sizeof(*m->saved_passes));
    m->saved_domains = calloc(problem->names.count + 1, sizeof(*m->saved_domains));
    return m->answers && m->passes && m->troubles && m->exchanges && m->saved_passes && m->saved_domains;
}

void kprof_pack_moves_free(kprof_pack_moves *m)
{
    kprof_pack_answers_free(m->answers);
    free(m->passes);
    free(m->troubles);
    free(m->exchanges);
    free(m->saved_passes);
    free(m->saved_domains);
}
