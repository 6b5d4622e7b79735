/* CUPTI reads each raw counter in the first domain of the chip that has it, and so runs out of slots there while other
 * domains have room. On GH100 most counters of an SM's pipes go to gpu_sm_c, four to a pass, although gpu_sm_a takes
 * one more. Here domains are chosen, passes are saved and made cheaper, and an image is made of that. The same image
 * gives the same result, since a search ends with a number of questions to NVPW and not with a time. */
#include "planner/pack.h"

#include "core/log.h"
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

/* More are not packed: it would take seconds. */
#define MAX_COUNTERS 1000
/* Settling bundles ends after so many steps: it would go round in circles. */
#define MAX_STEPS 100
/* Each search may ask so many questions. More hardly help: 15 bring the shipped sets as far as 25, but for three of
 * 112. */
#define QUESTIONS_PER_COUNTER 20
#define MAX_QUESTIONS         6000
/* Finding room for a metric may take so many. */
#define QUESTIONS_PER_BUNDLE 40
/* One attempt among many may ask so many: those that succeed take 20 to 170. */
#define PATIENCE 200
/* Passes that are added at a time, at most, and what each has to bring beside its own price: programs of few launches
 * only pay for it, and the witnesses of a pass take time to start, too. */
#define MOST_ADDED    2
#define ADDED_PASS_MS 25

/* Attempts with a pass that may fail. */
enum { TO_DISSOLVE = 1, TO_MAKE_FAST = 2 };

/* Answers of NVPW, each kept so that it is asked once: an answer takes some 50 us, and a search comes back to the same
 * question now and then. SLOTS is a power of two, so many that a table holds all answers with room to spare. */
enum { SLOTS = 131072 };
struct kprof_pack_answers {
    size_t questions, end;      /* no more are asked than `end`: every answer is no then ... */
    size_t last;                /* ... which moves up to this */
    kprof_status status;        /* of NVPW */
    size_t *listed;             /* [names.count]: the counters of a question */
    size_t *alike;              /* [names.count]: those of them in one domain */
    kprof_placed_counter *list; /* [names.count]: the same, as NVPW is asked */
    struct {
        uint64_t question; /* a number for a set of counters and domains, the same in any order; 0: none */
        bool fits;
    } slots[SLOTS];
};

static bool may_ask(const kprof_packing *p)
{
    return p->answers->status == KPROF_OK && p->answers->questions < p->answers->end;
}

/* Ask no more than `questions` from now on, up to the end of the search. */
static bool allow(kprof_packing *p, size_t questions)
{
    kprof_pack_answers *a = p->answers;
    size_t left = a->last - a->questions;
    a->end = a->questions + (questions < left ? questions : left);
    return may_ask(p);
}

static size_t questions_for(const kprof_packing *p)
{
    size_t questions = QUESTIONS_PER_COUNTER * p->names.count;
    return questions < MAX_QUESTIONS ? questions : MAX_QUESTIONS;
}

static kprof_status begin_search(kprof_packing *p, size_t questions)
{
    size_t count = p->names.count + 1;
    kprof_pack_answers *a = p->answers;
    if (!a) {
        a = p->answers = calloc(1, sizeof(*a) + count * (2 * sizeof(*a->listed) + sizeof(*a->list)));
        if (!a)
            return KPROF_NO_MEMORY;
        a->list = (kprof_placed_counter *)(a + 1);
        a->listed = (size_t *)(a->list + count);
        a->alike = a->listed + count;
    }
    size_t left = SLOTS / 2 - a->questions;
    a->last = a->end = a->questions + (questions < left ? questions : left);
    return a->status;
}

/* The last steps of MurmurHash3: spreads what differs in few bits. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ULL;
    return value ^ (value >> 33);
}

/* Do the counters go into one pass? */
static bool ask(kprof_packing *p, const size_t *counters, size_t count)
{
    kprof_pack_answers *a = p->answers;
    uint64_t question = 0;
    for (size_t i = 0; i < count; i++) {
        const kprof_pack_counter *counter = &p->counters[counters[i]];
        a->list[i] = (kprof_placed_counter){counter->name, counter->domain};
        question += mix((uint64_t)counters[i] << 32 | counter->domain);
    }
    size_t slot = question % SLOTS;
    while (a->slots[slot].question != 0 && a->slots[slot].question != question)
        slot = (slot + 1) % SLOTS;
    if (!may_ask(p))
        return false;
    if (a->slots[slot].question == question && question != 0)
        return a->slots[slot].fits;
    a->questions++;
    a->status = kprof_raw_config_takes(p->config, a->list, count, &a->slots[slot].fits);
    a->slots[slot].question = question;
    return a->status == KPROF_OK && a->slots[slot].fits;
}

static size_t list_bundle(kprof_packing *p, const kprof_pack_bundle *bundle, bool in_sm, size_t count)
{
    for (size_t i = 0; i < bundle->count; i++) {
        if (p->counters[bundle->counters[i]].in_sm == in_sm)
            p->answers->listed[count++] = bundle->counters[i];
    }
    return count;
}

static size_t list_pass(kprof_packing *p, size_t pass, size_t without, bool in_sm)
{
    size_t count = 0;
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass == pass && i != without)
            count = list_bundle(p, &p->bundles[i], in_sm, count);
    }
    return count;
}

/* The counters of a pass go together where they are. */
static bool goes_together(kprof_packing *p, size_t pass)
{
    size_t in_sm = list_pass(p, pass, KPROF_NO_BUNDLE, true);
    if (in_sm > 0 && !ask(p, p->answers->listed, in_sm))
        return false;
    size_t others = list_pass(p, pass, KPROF_NO_BUNDLE, false);
    return others == 0 || ask(p, p->answers->listed, others);
}

/* Does the counter listed last go with the `count` before it? Ask about the counters of its domain first: they are the
 * same in many questions, and if they do not go together, nothing does. */
static bool goes_with(kprof_packing *p, size_t count)
{
    kprof_pack_answers *a = p->answers;
    size_t alike = 0;
    for (size_t i = 0; i <= count; i++) {
        if (p->counters[a->listed[i]].domain == p->counters[a->listed[count]].domain)
            a->alike[alike++] = a->listed[i];
    }
    return ask(p, a->alike, alike) && ask(p, a->listed, count + 1);
}

static bool is_slow(const kprof_pack_counter *counter)
{
    return counter->domain ? kprof_place_is_slow(counter->domain) : counter->is_slow;
}

/* Find a place for one more counter beside `count` that are listed. */
static bool find_place(kprof_packing *p, size_t counter, size_t pass, size_t count)
{
    kprof_pack_counter *c = &p->counters[counter];
    size_t places = c->places.count > 0 ? c->places.count : 1;
    p->answers->listed[count] = counter;
    for (size_t i = 0; i < places; i++) {
        c->domain = c->places.count > 0 ? c->places.items[i] : 0;
        if (!(p->passes[pass].stays_fast && is_slow(c)) && goes_with(p, count))
            return true;
    }
    return false;
}

/* There is room in `pass`, were it without the bundle `without`, for a bundle that is in none; chooses the domains of
 * its counters. */
static bool has_room(kprof_packing *p, const kprof_pack_bundle *bundle, size_t pass, size_t without)
{
    const kprof_pack_pass *to = &p->passes[pass];
    if ((bundle->is_patch != to->is_patch && to->count > 0) || (bundle->sm_count > 0 && to->stays_out))
        return false;
    size_t count = bundle->sm_count > 0 ? list_pass(p, pass, without, true) : 0;
    for (size_t i = 0; i < bundle->count; i++) {
        size_t counter = bundle->counters[i];
        if (p->counters[counter].in_sm && !find_place(p, counter, pass, count++))
            return false;
    }
    if (bundle->sm_count == bundle->count)
        return true;
    count = list_pass(p, pass, without, false);
    return ask(p, p->answers->listed, list_bundle(p, bundle, false, count));
}

/* Count what each pass holds. */
static void survey(kprof_packing *p)
{
    for (size_t i = 0; i < p->pass_count; i++) {
        kprof_pack_pass *pass = &p->passes[i];
        pass->count = pass->sm_count = pass->slow_count = 0;
        pass->is_fixed = pass->is_patch = false;
    }
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass >= p->pass_count)
            continue;
        kprof_pack_pass *pass = &p->passes[bundle->pass];
        pass->is_fixed = pass->is_fixed || bundle->is_fixed;
        pass->is_patch = pass->is_patch || bundle->is_patch;
        pass->count++;
        pass->sm_count += p->counters[i].in_sm;
        pass->slow_count += is_slow(&p->counters[i]);
    }
}

double kprof_packing_cost_ms(kprof_packing *p)
{
    double sum_ms = 0;
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        const kprof_pack_pass *pass = &p->passes[i];
        sum_ms += pass->sm_count > 0 ? kprof_prices.sm_pass_start_ms : kprof_prices.other_pass_start_ms;
        sum_ms += p->launches * (pass->slow_count > 0 ? kprof_prices.slow_pass_ms + kprof_prices.slow_pass_flush_ms
                                                      : kprof_prices.other_pass_ms + kprof_prices.other_pass_flush_ms);
    }
    return sum_ms;
}

static size_t count_sm_passes(kprof_packing *p)
{
    size_t count = 0;
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++)
        count += p->passes[i].sm_count > 0;
    return count;
}

/* Remember where everything is, before something is tried. */
static void save(kprof_packing *p)
{
    for (size_t i = 0; i < p->bundle_count; i++)
        p->saved_passes[i] = p->bundles[i].pass;
    for (size_t i = 0; i < p->names.count; i++)
        p->saved_domains[i] = p->counters[i].domain;
    p->saved_pass_count = p->pass_count;
    memset(p->troubles, 0, p->bundle_count * sizeof(*p->troubles));
}

void kprof_packing_restore(kprof_packing *p)
{
    for (size_t i = 0; i < p->bundle_count; i++)
        p->bundles[i].pass = p->saved_passes[i];
    for (size_t i = 0; i < p->names.count; i++)
        p->counters[i].domain = p->saved_domains[i];
    p->pass_count = p->saved_pass_count;
    survey(p);
}

/* Take the bundles out of a pass; with `remove` later passes move up. */
static void empty_pass(kprof_packing *p, size_t pass, bool remove)
{
    for (size_t i = 0; i < p->bundle_count; i++) {
        size_t *of = &p->bundles[i].pass;
        if (*of == pass)
            *of = KPROF_NO_PASS;
        else if (remove && *of > pass && *of < p->pass_count)
            (*of)--;
    }
    p->pass_count -= remove;
}

/* A pass may have lost all that it had, or got nothing. */
static void remove_empty(kprof_packing *p)
{
    survey(p);
    for (size_t i = p->pass_count; i-- > 0;) {
        if (p->passes[i].count == 0)
            empty_pass(p, i, true);
    }
    survey(p);
}

/* Counters of SMs go where such are already, since the first makes a pass dear; then to most kin. */
static bool suits_better(const kprof_pack_pass *a, const kprof_pack_pass *b, bool for_sm)
{
    bool a_has = a->sm_count > 0, b_has = b->sm_count > 0;
    return for_sm && a_has != b_has ? a_has : a->kinship > b->kinship;
}

/* Put a bundle into the pass that suits best of those that have room for it. */
static bool place(kprof_packing *p, size_t bundle)
{
    bool for_sm = p->bundles[bundle].sm_count > 0;
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        p->passes[i].is_refused = p->passes[i].is_fixed || p->passes[i].is_closed;
        p->passes[i].kinship = 0;
    }
    for (size_t i = 0; i < p->bundle_count && p->kinships; i++) {
        if (p->bundles[i].pass < p->pass_count)
            p->passes[p->bundles[i].pass].kinship += p->kinships[bundle * p->bundle_count + i];
    }
    for (;;) {
        size_t best = KPROF_NO_PASS;
        for (size_t i = 0; i < p->pass_count; i++) {
            if (!p->passes[i].is_refused &&
                (best == KPROF_NO_PASS || suits_better(&p->passes[i], &p->passes[best], for_sm)))
                best = i;
        }
        if (best == KPROF_NO_PASS)
            return false;
        if (has_room(p, &p->bundles[bundle], best, KPROF_NO_BUNDLE)) {
            p->bundles[bundle].pass = best;
            return true;
        }
        p->passes[best].is_refused = true;
    }
}

static bool share_a_place(const kprof_pack_counter *a, const kprof_pack_counter *b)
{
    if (!a->in_sm || !b->in_sm)
        return a->in_sm == b->in_sm;
    for (size_t i = 0; i < a->places.count; i++) {
        for (size_t k = 0; k < b->places.count; k++) {
            if (a->places.items[i] == b->places.items[k])
                return true;
        }
    }
    return false;
}

static bool compete(const kprof_packing *p, const kprof_pack_bundle *a, const kprof_pack_bundle *b)
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
static size_t weigh(size_t count, size_t sm_count)
{
    return sm_count + (count > sm_count ? 3 : 0);
}

/* The bundle that has not been tried for another, and will find room again most easily, where it may be put out. */
static size_t next_exchange(const kprof_packing *p, const kprof_pack_bundle *wanting, const bool *tried)
{
    size_t best = KPROF_NO_BUNDLE, least = SIZE_MAX;
    for (size_t i = 0; i < p->bundle_count; i++) {
        const kprof_pack_bundle *b = &p->bundles[i];
        size_t cost = 4 * p->troubles[i] + weigh(b->count, b->sm_count);
        if (b->pass >= p->pass_count || tried[i] || cost >= least || p->passes[b->pass].is_fixed ||
            p->passes[b->pass].is_closed || b->count > wanting->count + 1 || !compete(p, wanting, b))
            continue;
        best = i;
        least = cost;
    }
    return best;
}

static bool put_out_another(kprof_packing *p, size_t bundle)
{
    kprof_pack_bundle *b = &p->bundles[bundle];
    bool *tried = calloc(p->bundle_count + 1, sizeof(*tried)), found = false;
    p->troubles[bundle]++;
    for (size_t i; tried && !found && may_ask(p) && (i = next_exchange(p, b, tried)) != KPROF_NO_BUNDLE;) {
        tried[i] = true;
        found = has_room(p, b, p->bundles[i].pass, i);
        if (found) {
            b->pass = p->bundles[i].pass;
            p->bundles[i].pass = KPROF_NO_PASS;
        }
    }
    free(tried);
    return found;
}

/* Return the bundle without a pass that has given most trouble, or the largest of those. */
static size_t next_homeless(const kprof_packing *p)
{
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass != KPROF_NO_PASS)
            continue;
        if (best == KPROF_NO_BUNDLE || p->troubles[i] > p->troubles[best] ||
            (p->troubles[i] == p->troubles[best] && p->bundles[i].count > p->bundles[best].count))
            best = i;
    }
    return best;
}

/* Find a pass for each bundle that has none, where each may put out one that fits elsewhere. After a survey. */
static bool settle(kprof_packing *p)
{
    size_t bundle;
    for (size_t steps = 0; (bundle = next_homeless(p)) != KPROF_NO_BUNDLE; steps++) {
        if (steps == MAX_STEPS || !may_ask(p))
            return false;
        if (!place(p, bundle) && !put_out_another(p, bundle))
            return false;
    }
    return true;
}

/* Note how an attempt with a pass ended: one that failed is skipped until another succeeds. */
static void note(kprof_packing *p, size_t pass, unsigned attempt, bool success)
{
    for (size_t i = 0; i < p->pass_count && success; i++)
        p->passes[i].failed = 0;
    if (!success)
        p->passes[pass].failed |= attempt;
}

/* Return the pass, among those that have not been tried, that has the least to be put elsewhere. */
static size_t next_pass(kprof_packing *p, unsigned attempt)
{
    size_t best = KPROF_NO_PASS, least = SIZE_MAX;
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        const kprof_pack_pass *pass = &p->passes[i];
        size_t cost = attempt == TO_DISSOLVE ? weigh(pass->count, pass->sm_count) : pass->slow_count;
        if (cost == 0 || cost >= least || pass->is_fixed || pass->failed & attempt)
            continue;
        best = i;
        least = cost;
    }
    return best;
}

/* Return the bundle, among those taken out of a pass, that has the fewest places. */
static size_t next_to_spread(const kprof_packing *p)
{
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->bundles[i].pass == KPROF_NO_PASS &&
            (best == KPROF_NO_BUNDLE || p->bundles[i].tightness > p->bundles[best].tightness))
            best = i;
    }
    return best;
}

/* Place the counters of one of CUPTI's passes anew within it, so that they leave those places free that are wanted
 * most. Where that fails they stay with NVPW's choice; where even that is no single pass, the pass stays as it is. */
static void spread_pass(kprof_packing *p, size_t pass)
{
    size_t bundle;
    save(p);
    empty_pass(p, pass, false);
    while ((bundle = next_to_spread(p)) != KPROF_NO_BUNDLE && has_room(p, &p->bundles[bundle], pass, KPROF_NO_BUNDLE))
        p->bundles[bundle].pass = pass;
    if (bundle == KPROF_NO_BUNDLE)
        return;
    kprof_packing_restore(p);
    bool is_fixed = !goes_together(p, pass);
    for (size_t i = 0; i < p->bundle_count; i++)
        p->bundles[i].is_fixed = p->bundles[i].is_fixed || (p->bundles[i].pass == pass && is_fixed);
}

kprof_status kprof_packing_save_passes(kprof_packing *p)
{
    kprof_status status = begin_search(p, questions_for(p));
    survey(p);
    for (size_t i = 0; i < p->pass_count && status == KPROF_OK; i++) {
        if (!p->passes[i].is_fixed)
            spread_pass(p, i);
    }
    size_t pass, sm_passes = count_sm_passes(p);
    while (status == KPROF_OK && may_ask(p) && (pass = next_pass(p, TO_DISSOLVE)) != KPROF_NO_PASS) {
        save(p);
        empty_pass(p, pass, true);
        survey(p);
        bool is_settled = settle(p) && count_sm_passes(p) <= sm_passes;
        if (!is_settled)
            kprof_packing_restore(p);
        note(p, pass, TO_DISSOLVE, is_settled);
    }
    return status == KPROF_OK ? p->answers->status : status;
}

/* The slow counters of a pass go into passes that are slow anyhow, or are read elsewhere; what makes the schedule no
 * cheaper is taken back. */
static bool make_fast(kprof_packing *p, size_t fast, size_t more_passes)
{
    double before_ms = kprof_packing_cost_ms(p);
    save(p);
    for (size_t i = 0; i < p->pass_count + more_passes; i++)
        p->passes[i].stays_fast = i == fast || i >= p->pass_count || p->passes[i].slow_count == 0;
    p->pass_count += more_passes;
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass == fast && is_slow(&p->counters[i]))
            bundle->pass = KPROF_NO_PASS;
    }
    survey(p);
    bool is_settled = settle(p);
    if (is_settled)
        remove_empty(p);
    size_t added = p->pass_count > p->saved_pass_count ? p->pass_count - p->saved_pass_count : 0;
    bool is_cheaper = is_settled && kprof_packing_cost_ms(p) + (double)added * ADDED_PASS_MS < before_ms;
    if (!is_cheaper)
        kprof_packing_restore(p);
    for (size_t i = 0; i < p->most_passes; i++)
        p->passes[i].stays_fast = false;
    return is_cheaper;
}

kprof_status kprof_packing_save_time(kprof_packing *p)
{
    kprof_status status = begin_search(p, questions_for(p));
    size_t pass;
    while (status == KPROF_OK && allow(p, PATIENCE) && (pass = next_pass(p, TO_MAKE_FAST)) != KPROF_NO_PASS) {
        bool success = false;
        size_t most = p->most_passes - p->pass_count;
        for (size_t more = 0; more <= most && more <= MOST_ADDED && allow(p, PATIENCE) && !success; more++)
            success = make_fast(p, pass, more);
        note(p, pass, TO_MAKE_FAST, success);
    }
    return status == KPROF_OK ? p->answers->status : status;
}

static size_t pass_of(const kprof_packing *p, size_t counter)
{
    return p->bundles[p->counters[counter].bundle].pass;
}

kprof_status kprof_packing_clear(kprof_packing *p, size_t most_passes)
{
    kprof_status status = begin_search(p, SLOTS / 2 - MAX_QUESTIONS);
    for (size_t i = 0; i < p->bundle_count; i++) {
        p->bundles[i].pass = KPROF_NOT_WANTED;
        p->bundles[i].is_fixed = false;
    }
    if (most_passes > 0 && most_passes < p->most_passes)
        p->most_passes = most_passes;
    p->pass_count = 0;
    return status;
}

/* Returns how many bundles of the counters have no pass yet. */
static size_t want(kprof_packing *p, const kprof_strlist *metric_counters)
{
    size_t count = 0;
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass != KPROF_NOT_WANTED || !kprof_strlist_contains(metric_counters, p->counters[i].name))
            continue;
        bundle->pass = KPROF_NO_PASS;
        count++;
    }
    return count;
}

bool kprof_packing_place(kprof_packing *p, const kprof_strlist *metric_counters)
{
    enum { AS_CHEAP, DEARER, FURTHER };
    bool found = false;
    save(p);
    for (size_t way = AS_CHEAP; way <= DEARER + p->most_passes - p->saved_pass_count && !found; way++) {
        size_t wanted = want(p, metric_counters);
        if (wanted == 0)
            return true;
        p->pass_count += way < FURTHER ? 0 : way - DEARER;
        survey(p);
        bool is_closed = false;
        for (size_t i = 0; i < p->pass_count; i++) {
            p->passes[i].stays_fast = way == AS_CHEAP && p->passes[i].slow_count == 0;
            p->passes[i].stays_out = way == AS_CHEAP && p->passes[i].sm_count == 0;
            is_closed = is_closed || p->passes[i].stays_fast;
        }
        found = p->pass_count > 0 && (is_closed || way != AS_CHEAP) && allow(p, QUESTIONS_PER_BUNDLE * (wanted + 1)) &&
                settle(p);
        if (found)
            remove_empty(p);
        else
            kprof_packing_restore(p);
    }
    return found;
}

/* Raw counters that are wanted in every pass, although no value depends on them; NULL: the chip has none. */
typedef struct guests {
    const char *in_sms, *in_tpcs;
} guests;

/* Some guest fits into the pass; that of the SMs only where it costs nothing. */
static bool takes_guest(kprof_packing *p, size_t pass, const guests *g)
{
    kprof_placed_counter *list = p->answers->list;
    kprof_pass_traits has = {0};
    kprof_counter_places places = {.count = 0};
    size_t count = 0;
    bool fits = false;
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_counter *counter = &p->counters[i];
        if (p->bundles[counter->bundle].pass != pass)
            continue;
        has.in_sm_a = has.in_sm_a || (counter->domain ? kprof_place_is_in_sm_a(counter->domain) : counter->in_sm_a);
        has.is_slow = has.is_slow || is_slow(counter);
        list[count++] = (kprof_placed_counter){counter->name, counter->domain};
    }
    list[count] = (kprof_placed_counter){g->in_tpcs, 0};
    if (g->in_tpcs)
        p->answers->status = kprof_raw_config_takes(p->config, list, count + 1, &fits);
    if (!fits && p->answers->status == KPROF_OK)
        p->answers->status = kprof_raw_config_places(p->config, g->in_sms, &places);
    for (size_t i = 0; i < places.count && !fits && p->answers->status == KPROF_OK; i++) {
        list[count] = (kprof_placed_counter){g->in_sms, places.items[i]};
        if (kprof_place_is_free(places.items[i], &has))
            p->answers->status = kprof_raw_config_takes(p->config, list, count + 1, &fits);
    }
    return fits;
}

static size_t count_guests(kprof_packing *p, const guests *g)
{
    size_t count = 0;
    for (size_t i = 0; i < p->pass_count; i++)
        count += p->passes[i].is_patch || takes_guest(p, i, g);
    return count;
}

/* Move a bundle out of its pass, if that lets a guest in, more passes take one then and nothing is dearer. */
static bool move_out(kprof_packing *p, kprof_pack_bundle *bundle, const guests *g)
{
    size_t from = bundle->pass, before = 0;
    double before_ms = kprof_packing_cost_ms(p);
    save(p);
    bundle->pass = KPROF_NO_PASS;
    if (takes_guest(p, from, g) && allow(p, PATIENCE)) {
        kprof_packing_restore(p);
        before = count_guests(p, g);
        bundle->pass = KPROF_NO_PASS;
        p->passes[from].is_closed = true;
        bool is_settled = settle(p);
        p->passes[from].is_closed = false;
        if (is_settled && kprof_packing_cost_ms(p) <= before_ms && count_guests(p, g) > before)
            return true;
    }
    kprof_packing_restore(p);
    return false;
}

/* Append the raw counter of a metric, where the chip has it and nothing that is collected is made of it. */
static const char *find_guest(kprof_host *host, const kprof_packing *p, const char *metric, kprof_strlist *counters)
{
    kprof_evaluator *evaluator;
    size_t before = counters->count;
    if (!kprof_host_can_collect(host, metric) || kprof_evaluator_get(host, &evaluator) != KPROF_OK ||
        kprof_evaluator_raw_counters(evaluator, metric, counters, NULL) != KPROF_OK || counters->count != before + 1 ||
        kprof_strlist_contains(&p->names, counters->items[before]))
        return NULL;
    return counters->items[before];
}

kprof_status kprof_packing_make_room(kprof_host *host, kprof_packing *p)
{
    kprof_strlist counters = KPROF_STRLIST_INIT;
    guests g = {.in_sms = find_guest(host, p, KPROF_SM_INSTRUCTIONS, &counters)};
    g.in_tpcs = find_guest(host, p, KPROF_TPC_INSTRUCTIONS, &counters);
    kprof_status status = begin_search(p, questions_for(p));
    survey(p);
    for (size_t pass = 0; pass < p->pass_count && g.in_sms && status == KPROF_OK; pass++) {
        bool is_done = p->passes[pass].is_patch || takes_guest(p, pass, &g);
        for (size_t i = 0; i < p->bundle_count && !is_done; i++) {
            kprof_pack_bundle *bundle = &p->bundles[i];
            if (bundle->pass == pass && !bundle->is_fixed && bundle->sm_count > 0)
                is_done = move_out(p, bundle, &g);
        }
        status = p->answers->status;
    }
    kprof_strlist_free(&counters);
    return status;
}

static kprof_status add_passes(const kprof_packing *p, kprof_raw_config *config, kprof_strbuf *placement)
{
    kprof_status status = KPROF_OK;
    for (size_t pass = 0; pass < p->pass_count && status == KPROF_OK; pass++) {
        status = kprof_raw_config_begin(config);
        for (size_t i = 0; i < p->names.count && status == KPROF_OK; i++) {
            kprof_placed_counter one = {p->counters[i].name, p->counters[i].domain};
            if (pass_of(p, i) != pass)
                continue;
            status = kprof_raw_config_put(config, &one);
            kprof_placement_put(placement, one.name, one.domain);
        }
        kprof_placement_end_pass(placement);
        if (status == KPROF_OK)
            status = kprof_raw_config_end(config);
    }
    return status;
}

kprof_status kprof_packing_image(const kprof_host *host, const kprof_packing *p, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_strbuf placement = KPROF_STRBUF_INIT;
    *out = (kprof_config_image){0};
    kprof_status status = kprof_raw_config_open_quietly(host, &config);
    if (status == KPROF_OK)
        status = add_passes(p, config, &placement);
    if (status == KPROF_OK)
        status = kprof_raw_config_image(host, config, out);
    kprof_raw_config_close(config);
    out->placement = kprof_strbuf_take(&placement);
    if (status == KPROF_OK && !out->placement)
        status = KPROF_NO_MEMORY;
    if (status == KPROF_OK && out->pass_count != p->pass_count) /* a group of counters took more than one pass */
        status = KPROF_INTERNAL;
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

static kprof_status improve(kprof_host *host, bool few_passes, kprof_packing *p, kprof_config_image *image)
{
    kprof_config_image packed;
    double before_ms = kprof_packing_cost_ms(p);
    kprof_status status = kprof_packing_save_passes(p);
    if (status == KPROF_OK && !few_passes && kprof_packing_save_time(p) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "%s: launches were not made faster", kprof_host_chip(host));
    if (status != KPROF_OK || (p->pass_count >= image->pass_count && kprof_packing_cost_ms(p) >= before_ms))
        return status;
    if (kprof_packing_make_room(host, p) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "%s: no room was made for witnesses", kprof_host_chip(host));
    status = kprof_packing_image(host, p, &packed);
    if (status != KPROF_OK)
        return status;
    kprof_config_image_free(image);
    *image = packed;
    return KPROF_OK;
}

void kprof_pack(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *image)
{
    kprof_packing packing = {0};
    size_t before = image->pass_count;
    if (before < 2)
        return;
    kprof_status status = kprof_packing_read(host, names, image, &packing);
    if (status == KPROF_OK && packing.names.count <= MAX_COUNTERS)
        status = improve(host, few_passes, &packing, image);
    kprof_log(KPROF_LOG_DEBUG, "%s: %zu metrics take %zu passes; CUPTI takes %zu%s%s", kprof_host_chip(host),
              names->count, image->pass_count, before, status == KPROF_OK ? "" : ": ",
              status == KPROF_OK ? "" : kprof_status_message(status));
    kprof_packing_free(&packing);
}
