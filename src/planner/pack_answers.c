/* Asks NVPW which counters go into one pass. An answer takes some 50 us, and a search comes back to the same question
 * now and then, so answers are kept: under a number for each set of counters and domains, the same in any order. */
#include "planner/pack_private.h"

#include <stdlib.h>

/* A power of two, so many that a table holds all answers of a search with room to spare. */
#define SLOTS 16384

typedef struct answer {
    uint64_t question; /* 0: none */
    bool fits;
} answer;

struct kprof_pack_answers {
    kprof_pack_problem *problem;
    size_t *listed;             /* [names.count]: the counters of a question */
    size_t *alike;              /* [names.count]: those of them in one domain */
    kprof_placed_counter *list; /* [names.count]: the same, as NVPW is asked */
    size_t questions, end;      /* no more are asked than `end` ... */
    size_t last;                /* ... which moves up to this */
    kprof_status status;
    answer slots[SLOTS];
};

kprof_pack_answers *kprof_pack_answers_new(kprof_pack_problem *problem, size_t end)
{
    kprof_pack_answers *answers = calloc(1, sizeof(*answers));
    if (!answers)
        return NULL;
    answers->problem = problem;
    answers->end = answers->last = end < SLOTS / 2 ? end : SLOTS / 2;
    answers->listed = calloc(problem->names.count + 1, sizeof(*answers->listed));
    answers->list = calloc(problem->names.count + 1, sizeof(*answers->list));
    answers->alike = calloc(problem->names.count + 1, sizeof(*answers->alike));
    if (answers->listed && answers->list && answers->alike)
        return answers;
    kprof_pack_answers_free(answers);
    return NULL;
}

void kprof_pack_answers_free(kprof_pack_answers *answers)
{
    if (!answers)
        return;
    free(answers->listed);
    free(answers->alike);
    free(answers->list);
    free(answers);
}

bool kprof_pack_may_ask(const kprof_pack_answers *answers)
{
    return answers->status == KPROF_OK && answers->questions < answers->end;
}

bool kprof_pack_allow(kprof_pack_answers *answers, size_t questions)
{
    size_t left = answers->last - answers->questions;
    answers->end = answers->questions + (questions < left ? questions : left);
    return kprof_pack_may_ask(answers);
}

kprof_status kprof_pack_answers_status(const kprof_pack_answers *answers)
{
    return answers->status;
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

static uint64_t number_of(const kprof_pack_answers *a, const size_t *counters, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += mix((uint64_t)counters[i] << 32 | a->problem->counters[counters[i]].domain);
    return sum ? sum : 1;
}

static answer *find_slot(kprof_pack_answers *a, uint64_t question)
{
    size_t slot = question % SLOTS;
    while (a->slots[slot].question != 0 && a->slots[slot].question != question)
        slot = (slot + 1) % SLOTS;
    return &a->slots[slot];
}

/* Whether counters go into one pass. */
static bool ask(kprof_pack_answers *a, const size_t *counters, size_t count)
{
    uint64_t question = number_of(a, counters, count);
    answer *slot = find_slot(a, question);
    if (!kprof_pack_may_ask(a))
        return false;
    if (slot->question == question)
        return slot->fits;
    for (size_t i = 0; i < count; i++) {
        const kprof_pack_counter *counter = &a->problem->counters[counters[i]];
        a->list[i] = (kprof_placed_counter){counter->name, counter->domain};
    }
    a->questions++;
    a->status = kprof_raw_config_takes(a->problem->config, a->list, count, &slot->fits);
    slot->question = question;
    return a->status == KPROF_OK && slot->fits;
}

static size_t list_bundle(kprof_pack_answers *a, const kprof_pack_bundle *bundle, kprof_pack_side side, size_t count)
{
    for (size_t i = 0; i < bundle->count; i++) {
        if (a->problem->counters[bundle->counters[i]].side == side)
            a->listed[count++] = bundle->counters[i];
    }
    return count;
}

static size_t list_pass(kprof_pack_answers *a, size_t pass, size_t without, kprof_pack_side side)
{
    size_t count = 0;
    for (size_t i = 0; i < a->problem->bundle_count; i++) {
        if (a->problem->bundles[i].pass == pass && i != without)
            count = list_bundle(a, &a->problem->bundles[i], side, count);
    }
    return count;
}

bool kprof_pack_goes_together(kprof_pack_answers *answers, size_t pass)
{
    size_t in_sm = list_pass(answers, pass, KPROF_NO_BUNDLE, KPROF_SIDE_SM);
    if (in_sm > 0 && !ask(answers, answers->listed, in_sm))
        return false;
    size_t others = list_pass(answers, pass, KPROF_NO_BUNDLE, KPROF_SIDE_OTHER);
    return others == 0 || ask(answers, answers->listed, others);
}

static bool is_closed_to(const kprof_pack_problem *p, size_t pass, const kprof_pack_counter *counter)
{
    return (p->closed_kinds[pass] & kprof_pack_kinds_of(counter)) != 0;
}

/* Whether the counter listed last goes with the `count` before it. Those of one domain are asked about first: they are
 * the same in many questions, and where they do not go together, nothing does. */
static bool goes_with(kprof_pack_answers *a, size_t count)
{
    const kprof_pack_counter *counters = a->problem->counters;
    size_t alike = 0;
    for (size_t i = 0; i <= count; i++) {
        if (counters[a->listed[i]].domain == counters[a->listed[count]].domain)
            a->alike[alike++] = a->listed[i];
    }
    return ask(a, a->alike, alike) && ask(a, a->listed, count + 1);
}

/* Find a place for one more counter beside `count` that are listed. */
static bool find_place(kprof_pack_answers *a, size_t counter, size_t pass, size_t count)
{
    kprof_pack_counter *c = &a->problem->counters[counter];
    a->listed[count] = counter;
    for (size_t i = 0; i < c->places.count; i++) {
        c->domain = c->places.items[i];
        if (!is_closed_to(a->problem, pass, c) && goes_with(a, count))
            return true;
    }
    return false;
}

static bool all_find_a_place(kprof_pack_answers *a, const kprof_pack_bundle *bundle, size_t pass, size_t without)
{
    size_t count = list_pass(a, pass, without, KPROF_SIDE_SM);
    for (size_t i = 0; i < bundle->count; i++) {
        size_t counter = bundle->counters[i];
        if (a->problem->counters[counter].side == KPROF_SIDE_SM && !find_place(a, counter, pass, count++))
            return false;
    }
    return true;
}

static bool has_room_outside(kprof_pack_answers *a, const kprof_pack_bundle *bundle, size_t pass, size_t without)
{
    for (size_t i = 0; i < bundle->count; i++) {
        const kprof_pack_counter *counter = &a->problem->counters[bundle->counters[i]];
        if (counter->side == KPROF_SIDE_OTHER && is_closed_to(a->problem, pass, counter))
            return false;
    }
    size_t count = list_pass(a, pass, without, KPROF_SIDE_OTHER);
    return ask(a, a->listed, list_bundle(a, bundle, KPROF_SIDE_OTHER, count));
}

bool kprof_pack_has_room(kprof_pack_answers *answers, const kprof_pack_bundle *bundle, size_t pass, size_t without)
{
    if (bundle->side_counts[KPROF_SIDE_SM] > 0 && !all_find_a_place(answers, bundle, pass, without))
        return false;
    return bundle->side_counts[KPROF_SIDE_OTHER] == 0 || has_room_outside(answers, bundle, pass, without);
}
