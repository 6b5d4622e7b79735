/* CUPTI reads each raw counter in the first domain of the chip that has it, and so runs out of slots there while other
 * domains have room. On GH100 most counters of an SM's pipes go to gpu_sm_c, four to a pass, although gpu_sm_a takes
 * one more. Here domains are chosen, passes are saved and made cheaper, and an image is made of that. The same image
 * gives the same result, since a search ends with a number of questions to NVPW and not with a time. */
#include "planner/pack.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* More are not packed: it would take seconds. */
#define MAX_COUNTERS 1000
/* Settling bundles ends after so many steps: it would go round in circles. */
#define MAX_STEPS 100
/* Each search may ask so many questions. */
#define QUESTIONS_PER_COUNTER 20
#define MAX_QUESTIONS         6000
/* Choosing what to keep may ask as many as there are answers to remember. */
#define MAX_QUESTIONS_TO_FILL (KPROF_PACK_ANSWERS / 2 - MAX_QUESTIONS)
/* With more counters than this a question takes up to 0.4 ms, so that a sixth as many are asked, and to choose what to
 * keep a tenth. No set of kprof's has as many. */
#define MANY_COUNTERS 400
/* Finding room for a metric may take so many. */
#define QUESTIONS_PER_BUNDLE 40
/* One attempt among many may ask so many: those that succeed take 20 to 170. */
#define PATIENCE 200
/* Passes that are added at a time, at most. */
#define MOST_ADDED 2

static bool may_ask(const kprof_packing *p)
{
    return p->status == KPROF_OK && p->questions < p->end;
}

/* Ask no more than `questions` from now on, up to the end of the search. */
static bool allow(kprof_packing *p, size_t questions)
{
    size_t left = p->last - p->questions;
    p->end = p->questions + (questions < left ? questions : left);
    return may_ask(p);
}

static void begin_search(kprof_packing *p, size_t questions)
{
    size_t left = KPROF_PACK_ANSWERS / 2 - p->questions;
    p->last = p->end = p->questions + (questions < left ? questions : left);
}

static size_t questions_for(const kprof_packing *p)
{
    size_t questions = QUESTIONS_PER_COUNTER * p->names.count;
    if (p->names.count > MANY_COUNTERS)
        return MAX_QUESTIONS / 6;
    return questions < MAX_QUESTIONS ? questions : MAX_QUESTIONS;
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
    uint64_t question = 0;
    for (size_t i = 0; i < count; i++) {
        const kprof_pack_counter *counter = &p->counters[counters[i]];
        p->question[i] = (kprof_placed_counter){counter->name, counter->domain};
        question += mix((uint64_t)counters[i] << 32 | counter->domain);
    }
    kprof_pack_answer *answer = &p->answers[question % KPROF_PACK_ANSWERS];
    while (answer->question != 0 && answer->question != question)
        answer = answer + 1 == p->answers + KPROF_PACK_ANSWERS ? p->answers : answer + 1;
    if (!may_ask(p))
        return false;
    if (answer->question == 0) {
        p->questions++;
        p->status = kprof_raw_config_takes(p->config, p->question, count, &answer->fits);
        answer->question = question;
    }
    return p->status == KPROF_OK && answer->fits;
}

/* List the counters of a pass, those in the SMs or all others, but for a bundle. */
static size_t list_pass(kprof_packing *p, size_t pass, size_t without, bool in_sm)
{
    size_t count = 0;
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_counter *counter = &p->counters[i];
        if (counter->in_sm == in_sm && counter->bundle != without && p->bundles[counter->bundle].pass == pass)
            p->listed[count++] = i;
    }
    return count;
}

/* Does the counter listed last go with the `count` before it? Ask about the counters of its domain first: they are the
 * same in many questions, and if they do not go together, nothing does. */
static bool goes_with(kprof_packing *p, size_t count)
{
    size_t alike = 0;
    for (size_t i = 0; i <= count; i++) {
        if (p->counters[p->listed[i]].domain == p->counters[p->listed[count]].domain)
            p->alike[alike++] = p->listed[i];
    }
    return ask(p, p->alike, alike) && ask(p, p->listed, count + 1);
}

static bool is_slow(const kprof_pack_counter *counter)
{
    return (counter->domain ? kprof_place_traits(counter->domain) : counter->traits.possible) & KPROF_IS_SLOW;
}

/* Find a place for one more counter beside `count` that are listed. */
static bool find_place(kprof_packing *p, size_t counter, size_t pass, size_t count)
{
    kprof_pack_counter *c = &p->counters[counter];
    size_t places = c->places.count > 0 ? c->places.count : 1;
    p->listed[count] = counter;
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
    for (size_t i = 0; i < bundle->count; i++) {
        if (!p->counters[bundle->counters[i]].in_sm)
            p->listed[count++] = bundle->counters[i];
    }
    return ask(p, p->listed, count);
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

kprof_effort kprof_packing_effort(kprof_packing *p)
{
    kprof_effort effort = {0};
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        effort.sm_pass_count += p->passes[i].sm_count > 0;
        effort.slow_pass_count += p->passes[i].slow_count > 0;
    }
    effort.other_pass_count = p->pass_count - effort.sm_pass_count;
    return effort;
}

double kprof_packing_cost_ms(kprof_packing *p)
{
    const kprof_effort effort = kprof_packing_effort(p);
    const kprof_cost cost = kprof_cost_of(&effort, &(kprof_workload){.flush = true});
    return cost.batch_ms + (double)p->launches * cost.launch_ms;
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

/* A pass may have lost all that it had, or got nothing: later ones move up. */
static void remove_empty(kprof_packing *p)
{
    survey(p);
    for (size_t pass = p->pass_count; pass-- > 0;) {
        if (p->passes[pass].count > 0)
            continue;
        for (size_t i = 0; i < p->bundle_count; i++)
            p->bundles[i].pass -= p->bundles[i].pass > pass && p->bundles[i].pass < p->pass_count;
        p->pass_count--;
    }
    survey(p);
}

/* Put a bundle into the pass that has most kin of those that have room for it. */
static bool place(kprof_packing *p, size_t bundle)
{
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
            if (!p->passes[i].is_refused && (best == KPROF_NO_PASS || p->passes[i].kinship > p->passes[best].kinship))
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

/* They take room from each other: there is one for counters of the SMs, and one for all others. */
static bool compete(const kprof_pack_bundle *a, const kprof_pack_bundle *b)
{
    return (a->sm_count > 0 && b->sm_count > 0) || (a->sm_count < a->count && b->sm_count < b->count);
}

/* Take the place of another bundle, of those that will find room again most easily first. */
static bool put_out_another(kprof_packing *p, size_t bundle)
{
    bool *tried = calloc(p->bundle_count + 1, sizeof(*tried)), found = false;
    p->troubles[bundle]++;
    while (tried && !found && may_ask(p)) {
        size_t best = KPROF_NO_BUNDLE, least = SIZE_MAX;
        for (size_t i = 0; i < p->bundle_count; i++) {
            const kprof_pack_bundle *b = &p->bundles[i];
            size_t cost = 4 * p->troubles[i] + b->count;
            if (b->pass >= p->pass_count || tried[i] || cost >= least || p->passes[b->pass].is_fixed ||
                p->passes[b->pass].is_closed || b->count > p->bundles[bundle].count + 1 ||
                !compete(b, &p->bundles[bundle]))
                continue;
            best = i;
            least = cost;
        }
        if (best == KPROF_NO_BUNDLE)
            break;
        tried[best] = true;
        found = has_room(p, &p->bundles[bundle], p->bundles[best].pass, best);
        if (found) {
            p->bundles[bundle].pass = p->bundles[best].pass;
            p->bundles[best].pass = KPROF_NO_PASS;
        }
    }
    free(tried);
    return found;
}

/* Find a pass for each bundle that has none, where each may put out one that fits elsewhere. First comes the one that
 * has given most trouble, or the largest of those. */
static bool settle(kprof_packing *p)
{
    for (size_t steps = 0;; steps++) {
        size_t best = KPROF_NO_BUNDLE;
        for (size_t i = 0; i < p->bundle_count; i++) {
            if (p->bundles[i].pass == KPROF_NO_PASS &&
                (best == KPROF_NO_BUNDLE || p->troubles[i] > p->troubles[best] ||
                 (p->troubles[i] == p->troubles[best] && p->bundles[i].count > p->bundles[best].count)))
                best = i;
        }
        if (best == KPROF_NO_BUNDLE)
            return true;
        if (steps == MAX_STEPS || !may_ask(p) || (!place(p, best) && !put_out_another(p, best)))
            return false;
    }
}

/* Place the counters of one of CUPTI's passes anew within it, so that they leave those places free that are wanted
 * most. Where that fails they stay with NVPW's choice; where even that is no single pass, the pass stays as it is. */
static void spread_pass(kprof_packing *p, size_t pass)
{
    bool fits = true;
    save(p);
    for (size_t i = 0; i < p->bundle_count; i++) {
        if (p->saved_passes[i] == pass)
            p->bundles[i].pass = KPROF_NO_PASS;
    }
    for (size_t i = 0; i < p->bundle_count * (KPROF_COUNTER_PLACES_MAX + 1) && fits; i++) {
        kprof_pack_bundle *bundle = &p->bundles[i % p->bundle_count]; /* those of few places first */
        size_t places = p->counters[bundle->counters[0]].places.count;
        if (bundle->pass != KPROF_NO_PASS || places > i / p->bundle_count)
            continue;
        fits = has_room(p, bundle, pass, KPROF_NO_BUNDLE);
        bundle->pass = pass;
    }
    if (fits)
        return;
    kprof_packing_restore(p);
    fits = true;
    for (int in_sm = 0; in_sm < 2 && fits; in_sm++) {
        size_t count = list_pass(p, pass, KPROF_NO_BUNDLE, in_sm);
        fits = count == 0 || ask(p, p->listed, count);
    }
    for (size_t i = 0; i < p->bundle_count && !fits; i++)
        p->bundles[i].is_fixed = p->bundles[i].is_fixed || p->bundles[i].pass == pass;
}

/* Empty a pass into others; or its slow counters alone, which go into passes that are slow anyhow, or are read
 * elsewhere. What then makes the schedule no cheaper is taken back. */
static bool relieve(kprof_packing *p, size_t pass, bool dissolve, size_t more_passes)
{
    double before_ms = kprof_packing_cost_ms(p);
    save(p);
    p->pass_count += more_passes;
    p->passes[pass].is_closed = dissolve;
    for (size_t i = 0; i < p->pass_count && !dissolve; i++)
        p->passes[i].stays_fast = i == pass || i >= p->saved_pass_count || p->passes[i].slow_count == 0;
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        if (bundle->pass == pass && (dissolve || is_slow(&p->counters[i])))
            bundle->pass = KPROF_NO_PASS;
    }
    survey(p);
    bool is_better = settle(p);
    if (is_better)
        remove_empty(p);
    is_better = is_better && (dissolve || kprof_packing_cost_ms(p) < before_ms);
    if (!is_better)
        kprof_packing_restore(p);
    for (size_t i = 0; i < p->most_passes; i++)
        p->passes[i].is_closed = p->passes[i].stays_fast = false;
    return is_better;
}

/* Return the pass, among those that have not been tried, that has the least to be put elsewhere. */
static size_t next_pass(kprof_packing *p, bool dissolve)
{
    size_t best = KPROF_NO_PASS, least = SIZE_MAX;
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        const kprof_pack_pass *pass = &p->passes[i];
        size_t cost = dissolve ? pass->count : pass->slow_count;
        if (cost == 0 || cost >= least || pass->is_fixed || pass->is_tried)
            continue;
        best = i;
        least = cost;
    }
    return best;
}

/* Relieve one pass after the other; those that failed are tried again after a success. */
static void relieve_all(kprof_packing *p, bool dissolve)
{
    const size_t patience = dissolve ? SIZE_MAX : PATIENCE;
    bool success = true;
    for (size_t pass; allow(p, patience); p->passes[pass].is_tried = !success) {
        for (size_t i = 0; i < p->most_passes && success; i++)
            p->passes[i].is_tried = false;
        pass = next_pass(p, dissolve);
        if (pass == KPROF_NO_PASS)
            return;
        success = relieve(p, pass, dissolve, 0);
        size_t most = dissolve ? 0 : p->most_passes - p->pass_count;
        for (size_t more = 1; more <= most && more <= MOST_ADDED && !success && allow(p, patience); more++)
            success = relieve(p, pass, dissolve, more);
    }
}

kprof_status kprof_packing_save_passes(kprof_packing *p)
{
    begin_search(p, questions_for(p));
    survey(p);
    for (size_t i = 0; i < p->pass_count; i++) {
        if (!p->passes[i].is_fixed)
            spread_pass(p, i);
    }
    relieve_all(p, true);
    return p->status;
}

kprof_status kprof_packing_save_time(kprof_packing *p)
{
    begin_search(p, questions_for(p));
    relieve_all(p, false);
    return p->status;
}

void kprof_packing_clear(kprof_packing *p, size_t most_passes)
{
    begin_search(p, p->names.count > MANY_COUNTERS ? MAX_QUESTIONS : MAX_QUESTIONS_TO_FILL);
    for (size_t i = 0; i < p->bundle_count; i++) {
        p->bundles[i].pass = KPROF_NOT_WANTED;
        p->bundles[i].is_fixed = false;
    }
    if (most_passes > 0 && most_passes < p->most_passes)
        p->most_passes = most_passes;
    p->pass_count = 0;
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
        if (p->questions >= p->last) {
            kprof_packing_restore(p);
            return false;
        }
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
    kprof_counter_places places; /* of the one in the SMs */
    size_t pass_count;           /* that take one */
} guests;

/* Some guest fits into the pass; that of the SMs only where it costs nothing. */
static bool takes_guest(kprof_packing *p, size_t pass, const guests *g)
{
    kprof_traits has = {0, 0};
    size_t count = 0;
    bool fits = p->passes[pass].is_patch;
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_counter *counter = &p->counters[i];
        if (p->bundles[counter->bundle].pass != pass)
            continue;
        has.possible |= counter->domain ? kprof_place_traits(counter->domain) : counter->traits.possible;
        has.certain |= counter->domain ? kprof_place_traits(counter->domain) : counter->traits.certain;
        p->question[count++] = (kprof_placed_counter){counter->name, counter->domain};
    }
    p->question[count] = (kprof_placed_counter){g->in_tpcs, 0};
    if (g->in_tpcs && !fits && p->status == KPROF_OK)
        p->status = kprof_raw_config_takes(p->config, p->question, count + 1, &fits);
    for (size_t i = 0; i < g->places.count && !fits && p->status == KPROF_OK; i++) {
        p->question[count] = (kprof_placed_counter){g->in_sms, g->places.items[i]};
        if (kprof_place_is_free(g->places.items[i], &has))
            p->status = kprof_raw_config_takes(p->config, p->question, count + 1, &fits);
    }
    return fits;
}

static size_t count_guests(kprof_packing *p, const guests *g)
{
    size_t count = 0;
    for (size_t i = 0; i < p->pass_count; i++)
        count += takes_guest(p, i, g);
    return count;
}

/* Move a bundle out of its pass, if that lets a guest in, more passes take one then and nothing is dearer. */
static bool move_out(kprof_packing *p, kprof_pack_bundle *bundle, guests *g)
{
    size_t from = bundle->pass, before = g->pass_count;
    double before_ms = kprof_packing_cost_ms(p);
    save(p);
    bundle->pass = KPROF_NO_PASS;
    if (takes_guest(p, from, g) && allow(p, PATIENCE)) {
        p->passes[from].is_closed = true;
        bool is_settled = settle(p);
        p->passes[from].is_closed = false;
        if (is_settled && kprof_packing_cost_ms(p) <= before_ms && (g->pass_count = count_guests(p, g)) > before)
            return true;
    }
    g->pass_count = before;
    kprof_packing_restore(p);
    return false;
}

/* Append the raw counter of a metric, where the chip has it and nothing that is collected is made of it. */
static const char *find_guest(kprof_host *host, const kprof_packing *p, const char *metric, kprof_strlist *counters)
{
    size_t before = counters->count;
    if (!kprof_host_can_collect(host, metric) || kprof_host_raw_counters(host, metric, counters, NULL) != KPROF_OK ||
        counters->count != before + 1 || kprof_strlist_contains(&p->names, counters->items[before]))
        return NULL;
    return counters->items[before];
}

kprof_status kprof_packing_make_room(kprof_host *host, kprof_packing *p)
{
    kprof_strlist counters = KPROF_STRLIST_INIT;
    guests g = {.in_sms = find_guest(host, p, KPROF_SM_INSTRUCTIONS, &counters)};
    g.in_tpcs = find_guest(host, p, KPROF_TPC_INSTRUCTIONS, &counters);
    begin_search(p, questions_for(p));
    survey(p);
    if (g.in_sms && p->status == KPROF_OK)
        p->status = kprof_raw_config_places(p->config, g.in_sms, &g.places);
    g.pass_count = g.in_sms ? count_guests(p, &g) : 0;
    for (size_t pass = 0; pass < p->pass_count && g.in_sms && p->status == KPROF_OK; pass++) {
        bool is_done = takes_guest(p, pass, &g);
        for (size_t i = 0; i < p->bundle_count && !is_done; i++) {
            kprof_pack_bundle *bundle = &p->bundles[i];
            if (bundle->pass == pass && !bundle->is_fixed && bundle->sm_count > 0)
                is_done = move_out(p, bundle, &g);
        }
    }
    kprof_strlist_free(&counters);
    return p->status;
}

static kprof_status add_pass(const kprof_packing *p, size_t pass, kprof_raw_config *config, kprof_strbuf *placement)
{
    size_t count = 0;
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->bundles[p->counters[i].bundle].pass == pass)
            p->question[count++] = (kprof_placed_counter){p->counters[i].name, p->counters[i].domain};
    }
    kprof_placement_put(placement, p->question, count);
    return kprof_raw_config_begin(config, p->question, count);
}

kprof_status kprof_packing_image(const kprof_host *host, const kprof_packing *p, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_strbuf placement = KPROF_STRBUF_INIT;
    *out = (kprof_config_image){0};
    kprof_status status = kprof_raw_config_open(host, true, &config);
    for (size_t pass = 0; pass < p->pass_count && status == KPROF_OK; pass++)
        status = add_pass(p, pass, config, &placement);
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
    if (status == KPROF_OK && !few_passes)
        status = kprof_packing_save_time(p);
    if (status != KPROF_OK || (p->pass_count >= image->pass_count && kprof_packing_cost_ms(p) >= before_ms))
        return status;
    status = kprof_packing_make_room(host, p);
    if (status == KPROF_OK)
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
