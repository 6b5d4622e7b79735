/* Searches for a schedule of fewer passes. The lightest pass is dissolved: its bundles go into others, where each may
 * put out one that fits elsewhere. When that succeeds the next pass is dissolved. The same image gives the same result,
 * since the end is a number of questions to NVPW and not a time. */
#include "cupti/pack_private.h"

#include <stdlib.h>
#include <string.h>

/* More hardly help: 15 bring the shipped sets as far as 25, but for three of 112. */
#define QUESTIONS_PER_COUNTER 20
#define MAX_QUESTIONS         6000
#define MAX_STEPS             100 /* to settle the bundles of one pass: it would go round in circles */

typedef struct exchange {
    size_t bundle; /* that would be put out for another */
    size_t cost;
} exchange;

typedef struct pass_state {
    bool is_fixed;
    bool is_tried;    /* dissolving it has failed */
    bool is_refused;  /* it has no room for the bundle at hand */
    unsigned kinship; /* of the bundle at hand with its bundles */
    size_t side_counts[KPROF_PACK_SIDES];
} pass_state;

typedef struct search {
    kprof_pack_problem *problem;
    kprof_pack_answers *answers;
    pass_state *passes;  /* [pass_count] */
    size_t *troubles;    /* [bundle_count]: how often it found no room */
    exchange *exchanges; /* [bundle_count] */
    /* What to go back to. */
    size_t *saved_passes;    /* [bundle_count] */
    uint32_t *saved_domains; /* [names.count] */
    size_t saved_pass_count;
} search;

static void save(search *s)
{
    const kprof_pack_problem *p = s->problem;
    for (size_t i = 0; i < p->bundle_count; i++)
        s->saved_passes[i] = p->bundles[i].pass;
    for (size_t i = 0; i < p->names.count; i++)
        s->saved_domains[i] = p->counters[i].domain;
    s->saved_pass_count = p->pass_count;
}

static void restore(search *s)
{
    kprof_pack_problem *p = s->problem;
    for (size_t i = 0; i < p->bundle_count; i++)
        p->bundles[i].pass = s->saved_passes[i];
    for (size_t i = 0; i < p->names.count; i++)
        p->counters[i].domain = s->saved_domains[i];
    p->pass_count = s->saved_pass_count;
}

/* Take the bundles out of a pass; with `remove` later passes move up. */
static void empty_pass(kprof_pack_problem *p, size_t pass, bool remove)
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

/* Count what each pass holds. */
static void survey(search *s)
{
    for (size_t i = 0; i < s->problem->pass_count; i++) {
        s->passes[i].is_fixed = false;
        memset(s->passes[i].side_counts, 0, sizeof(s->passes[i].side_counts));
    }
    for (size_t i = 0; i < s->problem->bundle_count; i++) {
        const kprof_pack_bundle *b = &s->problem->bundles[i];
        if (b->pass == KPROF_NO_PASS)
            continue;
        s->passes[b->pass].is_fixed = s->passes[b->pass].is_fixed || b->is_fixed;
        for (int side = 0; side < KPROF_PACK_SIDES; side++)
            s->passes[b->pass].side_counts[side] += b->side_counts[side];
    }
}

static void consider(search *s, size_t bundle)
{
    const kprof_pack_problem *p = s->problem;
    for (size_t i = 0; i < p->pass_count; i++) {
        s->passes[i].is_refused = s->passes[i].is_fixed;
        s->passes[i].kinship = 0;
    }
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass != KPROF_NO_PASS)
            s->passes[p->bundles[i].pass].kinship += p->kinships[bundle * p->bundle_count + i];
    }
}

static bool is_better(const pass_state *a, const pass_state *b, bool for_sm)
{
    bool a_has = a->side_counts[KPROF_SIDE_SM] > 0, b_has = b->side_counts[KPROF_SIDE_SM] > 0;
    return for_sm && a_has != b_has ? a_has : a->kinship > b->kinship;
}

/* The pass with most kin that has not refused, else the first; KPROF_NO_PASS: all have. Counters of SMs go where such
 * are already, since the first makes a pass dear. */
static size_t next_pass(const search *s, bool for_sm)
{
    size_t best = KPROF_NO_PASS;
    for (size_t i = 0; i < s->problem->pass_count; i++) {
        if (!s->passes[i].is_refused && (best == KPROF_NO_PASS || is_better(&s->passes[i], &s->passes[best], for_sm)))
            best = i;
    }
    return best;
}

static bool place(search *s, size_t bundle)
{
    kprof_pack_bundle *b = &s->problem->bundles[bundle];
    consider(s, bundle);
    bool for_sm = b->side_counts[KPROF_SIDE_SM] > 0;
    for (size_t pass; (pass = next_pass(s, for_sm)) != KPROF_NO_PASS;) {
        if (kprof_pack_has_room(s->answers, b, pass, KPROF_NO_BUNDLE)) {
            b->pass = pass;
            return true;
        }
        s->passes[pass].is_refused = true;
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
static size_t weigh(const size_t *side_counts)
{
    return side_counts[KPROF_SIDE_SM] + (side_counts[KPROF_SIDE_OTHER] > 0 ? 3 : 0);
}

static int compare_costs(const void *a, const void *b)
{
    const exchange *left = a, *right = b;
    if (left->cost != right->cost)
        return left->cost < right->cost ? -1 : 1;
    return (left->bundle > right->bundle) - (left->bundle < right->bundle);
}

/* The bundles that may be put out for another, those first that will find room again most easily. */
static size_t list_exchanges(search *s, const kprof_pack_bundle *wanting)
{
    size_t count = 0;
    for (size_t i = 0; i < s->problem->bundle_count; i++) {
        const kprof_pack_bundle *b = &s->problem->bundles[i];
        if (b->pass == KPROF_NO_PASS || s->passes[b->pass].is_fixed || b->count > wanting->count + 1)
            continue;
        if (compete(s->problem, wanting, b))
            s->exchanges[count++] = (exchange){i, 4 * s->troubles[i] + weigh(b->side_counts)};
    }
    qsort(s->exchanges, count, sizeof(*s->exchanges), compare_costs);
    return count;
}

static bool put_out_another(search *s, size_t bundle)
{
    kprof_pack_bundle *b = &s->problem->bundles[bundle];
    size_t count = list_exchanges(s, b);
    s->troubles[bundle]++;
    for (size_t i = 0; i < count; i++) {
        kprof_pack_bundle *other = &s->problem->bundles[s->exchanges[i].bundle];
        if (!kprof_pack_has_room(s->answers, b, other->pass, s->exchanges[i].bundle))
            continue;
        b->pass = other->pass;
        other->pass = KPROF_NO_PASS;
        return true;
    }
    return false;
}

/* Of the bundles without a pass, the one that has given most trouble, else the largest. */
static size_t next_homeless(const search *s)
{
    const kprof_pack_bundle *bundles = s->problem->bundles;
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < s->problem->bundle_count; i++) {
        if (bundles[i].pass != KPROF_NO_PASS)
            continue;
        if (best == KPROF_NO_BUNDLE || s->troubles[i] > s->troubles[best] ||
            (s->troubles[i] == s->troubles[best] && bundles[i].count > bundles[best].count))
            best = i;
    }
    return best;
}

static bool settle(search *s)
{
    size_t bundle;
    for (size_t steps = 0; (bundle = next_homeless(s)) != KPROF_NO_BUNDLE; steps++) {
        if (steps == MAX_STEPS || !kprof_pack_may_ask(s->answers))
            return false;
        if (!place(s, bundle) && !put_out_another(s, bundle))
            return false;
    }
    return true;
}

/* Of the passes that have not been tried, the one with the least to be put elsewhere. */
static size_t lightest_pass(const search *s)
{
    size_t best = KPROF_NO_PASS;
    for (size_t i = 0; i < s->problem->pass_count; i++) {
        const pass_state *pass = &s->passes[i];
        if (pass->is_fixed || pass->is_tried)
            continue;
        if (best == KPROF_NO_PASS || weigh(pass->side_counts) < weigh(s->passes[best].side_counts))
            best = i;
    }
    return best;
}

static size_t count_sm_passes(search *s)
{
    size_t count = 0;
    survey(s);
    for (size_t i = 0; i < s->problem->pass_count; i++)
        count += s->passes[i].side_counts[KPROF_SIDE_SM] > 0;
    return count;
}

static void dissolve_passes(search *s)
{
    size_t pass, sm_passes = count_sm_passes(s);
    while (kprof_pack_may_ask(s->answers) && (pass = lightest_pass(s)) != KPROF_NO_PASS) {
        save(s);
        memset(s->troubles, 0, s->problem->bundle_count * sizeof(*s->troubles));
        empty_pass(s->problem, pass, true);
        survey(s);
        bool is_settled = settle(s) && count_sm_passes(s) <= sm_passes;
        if (!is_settled)
            restore(s);
        for (size_t i = 0; i < s->problem->pass_count && is_settled; i++)
            s->passes[i].is_tried = false;
        if (!is_settled)
            s->passes[pass].is_tried = true;
        survey(s);
    }
}

/* Of the bundles that have been taken out of a pass, the one with the fewest places. */
static size_t next_to_spread(const search *s)
{
    const kprof_pack_bundle *bundles = s->problem->bundles;
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < s->problem->bundle_count; i++) {
        if (bundles[i].pass == KPROF_NO_PASS &&
            (best == KPROF_NO_BUNDLE || bundles[i].tightness > bundles[best].tightness))
            best = i;
    }
    return best;
}

/* Place the counters of one of CUPTI's passes anew within it, so that they leave those places free that are wanted
 * most. Where that fails they stay with NVPW's choice; where even that is no single pass, the pass stays as it is. */
static void spread_pass(search *s, size_t pass)
{
    kprof_pack_problem *p = s->problem;
    size_t bundle;
    save(s);
    empty_pass(p, pass, false);
    while ((bundle = next_to_spread(s)) != KPROF_NO_BUNDLE &&
           kprof_pack_has_room(s->answers, &p->bundles[bundle], pass, KPROF_NO_BUNDLE))
        p->bundles[bundle].pass = pass;
    if (bundle == KPROF_NO_BUNDLE)
        return;
    restore(s);
    bool is_fixed = !kprof_pack_goes_together(s->answers, pass);
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass == pass && is_fixed)
            p->bundles[i].is_fixed = true;
    }
}

static bool allocate(search *s)
{
    size_t bundles = s->problem->bundle_count + 1;
    s->answers = kprof_pack_answers_new(s->problem);
    s->passes = calloc(s->problem->pass_count + 1, sizeof(*s->passes));
    s->troubles = calloc(bundles, sizeof(*s->troubles));
    s->exchanges = calloc(bundles, sizeof(*s->exchanges));
    s->saved_passes = calloc(bundles, sizeof(*s->saved_passes));
    s->saved_domains = calloc(s->problem->names.count + 1, sizeof(*s->saved_domains));
    return s->answers && s->passes && s->troubles && s->exchanges && s->saved_passes && s->saved_domains;
}

static void search_free(search *s)
{
    kprof_pack_answers_free(s->answers);
    free(s->passes);
    free(s->troubles);
    free(s->exchanges);
    free(s->saved_passes);
    free(s->saved_domains);
}

kprof_status kprof_pack_search(kprof_pack_problem *problem)
{
    search s = {.problem = problem};
    size_t end = QUESTIONS_PER_COUNTER * problem->names.count;
    kprof_status status = KPROF_NO_MEMORY;
    if (allocate(&s)) {
        kprof_pack_end_at(s.answers, end < MAX_QUESTIONS ? end : MAX_QUESTIONS);
        survey(&s);
        for (size_t i = 0; i < problem->pass_count; i++) {
            if (!s.passes[i].is_fixed)
                spread_pass(&s, i);
        }
        dissolve_passes(&s);
        status = kprof_pack_answers_status(s.answers);
    }
    search_free(&s);
    return status;
}
