/* CUPTI reads each raw counter in the first domain of the chip that has it, so it runs out of slots there while
 * other domains have room. On GH100 most counters of an SM's pipes go to gpu_sm_c, four to a pass, although gpu_sm_a
 * takes one more. The packer chooses domains, and makes passes fewer and cheaper. It repeats one step: take bundles
 * out of a pass, settle them elsewhere, where each may displace another, and keep the result if it is better. The
 * same image gives the same result, because a limit on questions to NVPW ends a search, not a limit on time. */
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

/* Do not pack more counters than this: it would take seconds. */
#define MAX_COUNTERS 1000
/* Stop settling bundles after this many moves: by then they go round in circles. */
#define MAX_MOVES 100
/* Limit of questions for a search. A search for fewer passes, which saves most, may ask three times as many. */
#define QUESTIONS_PER_COUNTER 20
#define MAX_QUESTIONS         6000
#define MORE_FOR_FEWER_PASSES 3
/* With more counters than this a question takes up to 0.4 ms, and looking through all counters takes as long. So the
 * packer asks a sixth as many questions, or two fifths to choose what to keep. None of kprof's sets is so large. */
#define MANY_COUNTERS 400
/* Limits of questions for placing all metrics, and for each bundle of one, with up to MAX_KIN bundles or more. */
#define FILL_QUESTIONS               15000
#define QUESTIONS_PER_BUNDLE         16
#define QUESTIONS_PER_BUNDLE_OF_MANY 24
/* Limit for one attempt. Successful attempts ask 20 to 170 questions. */
#define PATIENCE 200
/* A metric with more counters never fits into one pass. */
#define MAX_KIN 8

/* The last steps of MurmurHash3: spreads what differs in few bits. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ULL;
    return value ^ (value >> 33);
}

/* Do the first `count` listed counters fit into one pass? */
static bool ask(kprof_packing *p, size_t count)
{
    uint64_t question = 0;
    for (size_t i = 0; i < count; i++) {
        p->question[i] = (kprof_placed_counter){p->names.items[p->listed[i]], p->now.spots[p->listed[i]].domain};
        question += mix((uint64_t)p->listed[i] << 32 | p->question[i].domain);
    }
    kprof_pack_answer *answer = &p->answers[question % KPROF_PACK_ANSWERS];
    if (p->status != KPROF_OK || p->questions == 0 || p->patience == 0)
        return false;
    if (answer->question != question) {
        p->questions--;
        p->patience--;
        answer->question = question;
        p->status = kprof_raw_config_takes(p->config, p->question, count, &answer->fits);
    }
    return p->status == KPROF_OK && answer->fits;
}

static bool is_slow(const kprof_packing *p, size_t counter)
{
    uint32_t domain = p->now.spots[counter].domain;
    return (domain ? kprof_place_traits(domain) : p->counters[counter].traits.possible) & KPROF_IS_SLOW;
}

/* Find a domain for the counter that is listed last, beside the `count` before it. */
static bool find_domain(kprof_packing *p, size_t count, const kprof_pack_pass *pass)
{
    size_t counter = p->listed[count];
    const kprof_counter_places *places = &p->counters[counter].places;
    for (size_t i = 0; i == 0 || i < places->count; i++) {
        p->now.spots[counter].domain = places->count > 0 ? places->items[i] : 0;
        if ((pass->limit > KPROF_PASS_FAST || !is_slow(p, counter)) && ask(p, count + 1))
            return true;
    }
    return false;
}

/* In a pass, counters of the SMs compete with each other for room, and the other counters with each other. Counters
 * read in both places compete with all. */
static bool competes(const kprof_pack_counter *counter, bool in_sm)
{
    return counter->in_sm == in_sm || counter->traits.certain & KPROF_IN_TPC_TOO;
}

/* Would `pass` have room for an unplaced bundle if the bundle `without` left it? Choose the domains of its counters. */
static bool has_room(kprof_packing *p, size_t bundle, uint32_t pass, size_t without)
{
    const kprof_pack_bundle *b = &p->bundles[bundle];
    const kprof_pack_pass *to = &p->passes[pass];
    if ((b->is_patch != to->is_patch && to->count > 0) || (b->sm_count > 0 && to->limit < KPROF_PASS_FAST))
        return false;
    for (int in_sm = 1; in_sm >= 0; in_sm--) {
        size_t count = 0, before;
        for (size_t i = 0; i < p->names.count; i++)
            if (p->now.spots[i].pass == pass && competes(&p->counters[i], in_sm) && p->counters[i].bundle != without)
                p->listed[count++] = i;
        before = count;
        for (size_t i = bundle; i < p->names.count; i++) {
            if (p->counters[i].bundle != bundle || !competes(&p->counters[i], in_sm))
                continue;
            p->listed[count++] = i;
            if (in_sm && !find_domain(p, count - 1, to))
                return false;
        }
        if (!in_sm && count > before && !ask(p, count))
            return false;
    }
    return true;
}

static void put(kprof_packing *p, size_t bundle, uint32_t pass)
{
    for (size_t i = bundle; i < p->names.count; i++)
        if (p->counters[i].bundle == bundle)
            p->now.spots[i].pass = pass;
}

void kprof_packing_survey(kprof_packing *p)
{
    for (size_t i = 0; i < p->now.pass_count; i++) {
        kprof_pack_pass *pass = &p->passes[i];
        pass->count = pass->sm_count = pass->slow_count = 0;
        pass->is_patch = false;
    }
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->now.spots[i].pass >= p->now.pass_count)
            continue;
        kprof_pack_pass *pass = &p->passes[p->now.spots[i].pass];
        pass->is_patch = pass->is_patch || p->counters[i].traits.possible & KPROF_IS_PATCH;
        pass->count++;
        pass->sm_count += p->counters[i].in_sm;
        pass->slow_count += is_slow(p, i);
    }
}

kprof_effort kprof_packing_effort(kprof_packing *p)
{
    kprof_effort effort = {0};
    kprof_packing_survey(p);
    for (size_t i = 0; i < p->now.pass_count; i++) {
        effort.sm_pass_count += p->passes[i].sm_count > 0;
        effort.slow_pass_count += p->passes[i].slow_count > 0;
    }
    effort.other_pass_count = p->now.pass_count - effort.sm_pass_count;
    return effort;
}

double kprof_packing_cost_ms(kprof_packing *p)
{
    const kprof_effort effort = kprof_packing_effort(p);
    const kprof_cost cost = kprof_cost_of(&effort, &(kprof_workload){.cache_control = KPROF_CACHE_FLUSH_ALL});
    return cost.batch_ms + (double)p->launches * cost.launch_ms;
}

/* Remember where everything is, before an attempt. */
static void save(kprof_packing *p)
{
    memcpy(p->before.spots, p->now.spots, p->names.count * sizeof(*p->now.spots));
    p->before.pass_count = p->now.pass_count;
    for (size_t i = 0; i < p->names.count; i++)
        p->bundles[i].trouble = 0;
}

void kprof_packing_restore(kprof_packing *p)
{
    memcpy(p->now.spots, p->before.spots, p->names.count * sizeof(*p->now.spots));
    p->now.pass_count = p->before.pass_count;
    kprof_packing_survey(p);
}

/* Remove empty passes: later ones move up. */
static void remove_empty(kprof_packing *p)
{
    kprof_packing_survey(p);
    for (size_t pass = p->now.pass_count; pass-- > 0;) {
        if (p->passes[pass].count > 0)
            continue;
        for (size_t i = 0; i < p->names.count; i++)
            p->now.spots[i].pass -= p->now.spots[i].pass > pass && p->now.spots[i].pass < p->now.pass_count;
        p->now.pass_count--;
    }
    kprof_packing_survey(p);
}

/* Rank the passes for a bundle: first those that hold most of the counters that metrics combine with its own. */
static void rank_passes(const kprof_packing *p, size_t bundle, kprof_pack_move *passes)
{
    for (size_t i = 0; i < p->metric_count; i++) {
        const kprof_pack_metric *metric = &p->metrics[i];
        const bool is_kin = metric->required <= MAX_KIN &&
                            KPROF_ANY(k, metric->required, p->counters[metric->counters[k]].bundle == bundle);
        for (size_t k = 0; k < metric->required && is_kin; k++) {
            uint32_t pass = p->now.spots[metric->counters[k]].pass;
            if (pass < p->now.pass_count)
                passes[pass].rank--;
        }
    }
}

KPROF_BY_BOTH(compare_moves, kprof_pack_move, KPROF_COMPARE(a->rank, b->rank),
              a->victim == b->victim ? KPROF_COMPARE(a->pass, b->pass) : KPROF_COMPARE(a->victim, b->victim))

/* List the moves that may find room for a bundle: into a pass as it is, or in place of a bundle that competes with
 * it. Bundles that will easily find room again come first. */
static size_t list_moves(kprof_packing *p, size_t bundle)
{
    const kprof_pack_bundle *wants = &p->bundles[bundle];
    size_t count = 0;
    for (uint32_t i = 0; i < p->now.pass_count; i++)
        p->moves[count++] = (kprof_pack_move){i, KPROF_NO_BUNDLE, -1};
    rank_passes(p, bundle, p->moves);
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_bundle *b = &p->bundles[i];
        uint32_t pass = p->now.spots[i].pass;
        bool compete =
            (b->sm_count > 0 && wants->sm_count > 0) || (b->sm_count < b->count && wants->sm_count < wants->count);
        if (compete && pass < p->now.pass_count && b->count <= wants->count + 1)
            p->moves[count++] = (kprof_pack_move){pass, i, (long)(4 * b->trouble + b->count)};
    }
    qsort(p->moves, count, sizeof(*p->moves), compare_moves);
    return count;
}

static bool find_room(kprof_packing *p, size_t bundle)
{
    kprof_packing_survey(p);
    size_t count = list_moves(p, bundle);
    for (size_t i = 0; i < count && p->patience > 0; i++) {
        const kprof_pack_move *m = &p->moves[i];
        if (p->passes[m->pass].limit == KPROF_PASS_CLOSED || !has_room(p, bundle, m->pass, m->victim))
            continue;
        put(p, bundle, m->pass);
        if (m->victim != KPROF_NO_BUNDLE) {
            put(p, m->victim, KPROF_NO_PASS);
            p->bundles[bundle].trouble++;
        }
        return true;
    }
    return false;
}

/* Return the bundle to settle next: the one that found no room most often, or the largest of those. */
static size_t next_bundle(const kprof_packing *p)
{
    size_t best = KPROF_NO_BUNDLE;
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_pack_bundle *b = &p->bundles[i];
        if (b->count == 0 || p->now.spots[i].pass != KPROF_NO_PASS)
            continue;
        if (best == KPROF_NO_BUNDLE || b->trouble > p->bundles[best].trouble ||
            (b->trouble == p->bundles[best].trouble && b->count > p->bundles[best].count))
            best = i;
    }
    return best;
}

/* Find a pass for each unplaced bundle. A bundle may displace another one, which then has to be placed again. */
static bool settle(kprof_packing *p)
{
    size_t moves = p->names.count > MANY_COUNTERS ? MAX_MOVES / 5 : MAX_MOVES, bundle;
    while ((bundle = next_bundle(p)) != KPROF_NO_BUNDLE)
        if (moves-- == 0 || !find_room(p, bundle))
            return false;
    return true;
}

/* Prepare an attempt: limit how expensive each pass may become, and take out of `pass` what keeps it from the goal.
 * For witnesses that is `victim`, the bundle that makes room for a guest. */
static void prepare(kprof_packing *p, kprof_goal goal, uint32_t pass, size_t victim)
{
    for (size_t i = 0; i < p->now.pass_count; i++) {
        bool is_it = i == pass;
        p->passes[i].limit = KPROF_PASS_ANY;
        if (goal == KPROF_LESS_TIME && (is_it || p->passes[i].slow_count == 0))
            p->passes[i].limit = KPROF_PASS_FAST;
        else if (goal != KPROF_LESS_TIME && is_it == (goal != KPROF_OTHER_DOMAINS))
            p->passes[i].limit = KPROF_PASS_CLOSED;
    }
    for (size_t i = 0; i < p->names.count; i++) {
        size_t bundle = p->counters[i].bundle;
        if (p->before.spots[i].pass == pass && (goal != KPROF_LESS_TIME || is_slow(p, i)) &&
            (goal != KPROF_WITNESSES || bundle == victim))
            put(p, bundle, KPROF_NO_PASS);
    }
}

static size_t count_guests(kprof_packing *p)
{
    size_t count = 0;
    for (uint32_t i = 0; i < p->now.pass_count; i++)
        count += kprof_guests_count_instructions(p, i);
    return count;
}

/* Bring a pass closer to the goal, or undo the attempt if the schedule got no better. */
static bool attempt(kprof_packing *p, kprof_goal goal, uint32_t pass, size_t victim)
{
    const bool is_for_guests = goal == KPROF_WITNESSES;
    double before_ms = kprof_packing_cost_ms(p);
    size_t guests = p->guest_passes;
    if (is_for_guests && (p->now.spots[victim].pass != pass || p->bundles[victim].sm_count == 0))
        return false;
    save(p);
    prepare(p, goal, pass, victim);
    bool is_better = (!is_for_guests || kprof_guests_count_instructions(p, pass)) && settle(p);
    if (is_better) {
        remove_empty(p);
        double after_ms = kprof_packing_cost_ms(p);
        is_better = goal == KPROF_OTHER_DOMAINS || after_ms < before_ms ||
                    (is_for_guests && after_ms <= before_ms && (guests = count_guests(p)) > p->guest_passes);
    }
    if (is_better)
        p->guest_passes = guests;
    else
        kprof_packing_restore(p);
    return is_better;
}

/* Return the pass, among those that have not been tried, that is nearest to the goal and has not reached it. */
static uint32_t next_pass(kprof_packing *p, kprof_goal goal)
{
    uint32_t best = KPROF_NO_PASS;
    size_t least = SIZE_MAX;
    kprof_packing_survey(p);
    for (uint32_t i = 0; i < p->now.pass_count; i++) {
        size_t distance = goal == KPROF_OTHER_DOMAINS  ? 1
                          : goal == KPROF_FEWER_PASSES ? p->passes[i].count
                          : goal == KPROF_LESS_TIME    ? p->passes[i].slow_count
                                                       : !kprof_guests_count_instructions(p, i);
        if (p->passes[i].is_tried || distance == 0 || distance >= least)
            continue;
        best = i;
        least = distance;
    }
    return best;
}

/* Bring one pass after the other closer to the goal. After a success, try the failed ones again. */
kprof_status kprof_packing_improve(kprof_packing *p, kprof_goal goal)
{
    const size_t patience = goal < KPROF_LESS_TIME ? SIZE_MAX : PATIENCE;
    const size_t enough = QUESTIONS_PER_COUNTER * p->names.count,
                 allowed = p->names.count > MANY_COUNTERS         ? MAX_QUESTIONS / 6
                           : p->metric_count > KPROF_MANY_METRICS ? MAX_QUESTIONS / 2
                                                                  : MAX_QUESTIONS;
    if (p->names.count > MAX_COUNTERS)
        return KPROF_OK;
    p->questions = (enough < allowed ? enough : allowed) * (goal == KPROF_FEWER_PASSES ? MORE_FOR_FEWER_PASSES : 1);
    p->guest_passes = goal == KPROF_WITNESSES ? count_guests(p) : 0;
    for (size_t i = 0; i < p->most_passes; i++)
        p->passes[i].is_tried = false;
    for (uint32_t pass; p->questions > 0 && p->status == KPROF_OK && (pass = next_pass(p, goal)) != KPROF_NO_PASS;) {
        const size_t attempts = goal == KPROF_WITNESSES ? p->names.count : 1;
        bool success = false;
        for (size_t victim = 0; victim < attempts && !success && p->questions > 0; victim++) {
            p->patience = patience;
            success = attempt(p, goal, pass, victim);
        }
        for (size_t i = 0; i < p->most_passes && success && goal != KPROF_OTHER_DOMAINS; i++)
            p->passes[i].is_tried = false;
        p->passes[pass].is_tried = !success || goal == KPROF_OTHER_DOMAINS;
    }
    return p->status;
}

void kprof_packing_clear(kprof_packing *p, size_t most_passes)
{
    p->questions = p->names.count > MANY_COUNTERS ? MAX_QUESTIONS : FILL_QUESTIONS;
    for (size_t i = 0; i < p->names.count; i++)
        p->now.spots[i].pass = KPROF_NOT_WANTED;
    if (most_passes > 0 && most_passes < p->most_passes)
        p->most_passes = most_passes;
    p->now.pass_count = 0;
    for (size_t i = 0; i < p->metric_count; i++)
        p->metrics[i].is_hopeless = false;
}

/* Has a metric found no room although it needs only a part of what this one needs? */
static bool is_hopeless(kprof_packing *p, const kprof_pack_metric *metric)
{
    bool is_found = false;
    for (size_t i = 0; i < p->names.count; i++)
        p->bundles[i].is_needed = false;
    for (size_t i = 0; i < metric->required; i++)
        p->bundles[p->counters[metric->counters[i]].bundle].is_needed = true;
    for (size_t i = 0; i < p->metric_count && !is_found; i++) {
        const kprof_pack_metric *other = &p->metrics[i];
        is_found = other->is_hopeless;
        for (size_t k = 0; k < other->required && is_found; k++)
            is_found = p->bundles[p->counters[other->counters[k]].bundle].is_needed;
    }
    return is_found;
}

bool kprof_packing_place(kprof_packing *p, kprof_pack_metric *metric)
{
    enum { AS_CHEAP, DEARER, FURTHER };
    bool found = false;
    metric->is_hopeless = is_hopeless(p, metric);
    if (metric->is_hopeless)
        return false;
    save(p);
    for (size_t way = AS_CHEAP; way <= DEARER + p->most_passes - p->before.pass_count && !found; way++) {
        size_t wanted = 0;
        for (size_t i = 0; i < metric->required; i++) {
            if (p->now.spots[metric->counters[i]].pass != KPROF_NOT_WANTED)
                continue;
            put(p, p->counters[metric->counters[i]].bundle, KPROF_NO_PASS);
            wanted++;
        }
        if (wanted == 0)
            return true;
        if (p->questions == 0) {
            kprof_packing_restore(p);
            break;
        }
        p->now.pass_count += way < FURTHER ? 0 : way - DEARER;
        kprof_packing_survey(p);
        for (size_t i = 0; i < p->now.pass_count; i++)
            p->passes[i].limit = way != AS_CHEAP                ? KPROF_PASS_ANY
                                 : p->passes[i].sm_count == 0   ? KPROF_PASS_WITHOUT_SM
                                 : p->passes[i].slow_count == 0 ? KPROF_PASS_FAST
                                                                : KPROF_PASS_ANY;
        p->patience = (wanted > MAX_KIN ? QUESTIONS_PER_BUNDLE_OF_MANY : QUESTIONS_PER_BUNDLE) * (wanted + 1);
        found = settle(p);
        if (found)
            remove_empty(p);
        else
            kprof_packing_restore(p);
    }
    metric->is_hopeless = !found;
    return found;
}
