/* Asks NVPW which counters go into one pass. An answer takes some 50 us, and a search comes back to the same question
 * now and then, so answers are kept: under a number for each set of counters and domains, the same in any order. */
#include "cupti/pack_private.h"

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
    kprof_placed_counter *list; /* [names.count]: the same, as NVPW is asked */
    size_t questions, end;
    kprof_status status;
    answer slots[SLOTS];
};

kprof_pack_answers *kprof_pack_answers_new(kprof_pack_problem *problem)
{
    kprof_pack_answers *answers = calloc(1, sizeof(*answers));
    if (!answers)
        return NULL;
    answers->problem = problem;
    answers->end = SLOTS / 2;
    answers->listed = calloc(problem->names.count + 1, sizeof(*answers->listed));
    answers->list = calloc(problem->names.count + 1, sizeof(*answers->list));
    if (answers->listed && answers->list)
        return answers;
    kprof_pack_answers_free(answers);
    return NULL;
}

void kprof_pack_answers_free(kprof_pack_answers *answers)
{
    if (!answers)
        return;
    free(answers->listed);
    free(answers->list);
    free(answers);
}

void kprof_pack_end_at(kprof_pack_answers *answers, size_t end)
{
    answers->end = end < SLOTS / 2 ? end : SLOTS / 2;
}

bool kprof_pack_may_ask(const kprof_pack_answers *answers)
{
    return answers->status == KPROF_OK && answers->questions < answers->end;
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

static uint64_t number_of(const kprof_pack_answers *a, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += mix((uint64_t)a->listed[i] << 32 | a->problem->counters[a->listed[i]].domain);
    return sum ? sum : 1;
}

static answer *find_slot(kprof_pack_answers *a, uint64_t question)
{
    size_t slot = question % SLOTS;
    while (a->slots[slot].question != 0 && a->slots[slot].question != question)
        slot = (slot + 1) % SLOTS;
    return &a->slots[slot];
}

/* Whether the first `count` listed counters go into one pass. */
static bool ask(kprof_pack_answers *a, size_t count)
{
    uint64_t question = number_of(a, count);
    answer *slot = find_slot(a, question);
    if (!kprof_pack_may_ask(a))
        return false;
    if (slot->question == question)
        return slot->fits;
    for (size_t i = 0; i < count; i++) {
        const kprof_pack_counter *counter = &a->problem->counters[a->listed[i]];
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
    if (in_sm > 0 && !ask(answers, in_sm))
        return false;
    size_t others = list_pass(answers, pass, KPROF_NO_BUNDLE, KPROF_SIDE_OTHER);
    return others == 0 || ask(answers, others);
}

/* Find a place for one more counter beside `count` that are listed. */
static bool find_place(kprof_pack_answers *a, size_t counter, size_t count)
{
    kprof_pack_counter *c = &a->problem->counters[counter];
    a->listed[count] = counter;
    for (size_t i = 0; i < c->places.count; i++) {
        c->domain = c->places.items[i];
        if (ask(a, count + 1))
            return true;
    }
    return false;
}

bool kprof_pack_has_room(kprof_pack_answers *answers, const kprof_pack_bundle *bundle, size_t pass, size_t without)
{
    size_t count = bundle->side_counts[KPROF_SIDE_SM] ? list_pass(answers, pass, without, KPROF_SIDE_SM) : 0;
    for (size_t i = 0; i < bundle->count; i++) {
        size_t counter = bundle->counters[i];
        if (answers->problem->counters[counter].side == KPROF_SIDE_SM && !find_place(answers, counter, count++))
            return false;
    }
    if (bundle->side_counts[KPROF_SIDE_OTHER] == 0)
        return true;
    count = list_pass(answers, pass, without, KPROF_SIDE_OTHER);
    return ask(answers, list_bundle(answers, bundle, KPROF_SIDE_OTHER, count));
}
