/* Makes room for a guest: a counter that is wanted in every pass, although no value depends on it. Where a pass has
 * none, a bundle of counters of the SMs moves into another, as far as that costs no more than a guest is worth. */
#include "planner/pack_private.h"

#include <stdlib.h>

/* Seen: 30 for a bundle that moves, 400 where none can. */
#define QUESTIONS 2000

/* What a pass may take longer to start for it: as much as one takes that has a guest in its TPCs. */
#define WORTH_MS 25

typedef struct room {
    kprof_pack_problem *problem;
    const kprof_pack_guests *guests;
    kprof_pack_answers *answers;
    kprof_placed_counter *list; /* [names.count + 1]: a pass and a guest */
    uint32_t *domains;          /* [names.count]: of a bundle that may move */
    kprof_status status;
} room;

static bool goes_with_pass(room *r, size_t count, const char *guest, uint32_t domain)
{
    bool fits = false;
    r->list[count] = (kprof_placed_counter){guest, domain};
    if (r->status == KPROF_OK)
        r->status = kprof_raw_config_takes(r->problem->config, r->list, count + 1, &fits);
    return r->status == KPROF_OK && fits;
}

/* Some guest fits into the pass; that of the SMs only where it costs nothing. */
static bool takes_guest(room *r, size_t pass)
{
    const kprof_pack_problem *p = r->problem;
    kprof_counter_places places = {.count = 0};
    unsigned kinds = 0;
    size_t count = 0;
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->bundles[p->counters[i].bundle].pass != pass)
            continue;
        kinds |= kprof_pack_kinds_of(&p->counters[i]);
        r->list[count++] = (kprof_placed_counter){p->counters[i].name, p->counters[i].domain};
    }
    if (r->guests->in_tpcs && goes_with_pass(r, count, r->guests->in_tpcs, 0))
        return true;
    if (r->guests->in_sms && r->status == KPROF_OK)
        r->status = kprof_raw_config_places(p->config, r->guests->in_sms, &places);
    for (size_t i = 0; i < places.count; i++) {
        if (kprof_place_is_free(places.items[i], kinds) && goes_with_pass(r, count, r->guests->in_sms, places.items[i]))
            return true;
    }
    return false;
}

static bool is_patched(const kprof_pack_problem *p, size_t pass)
{
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->counters[i].is_patch && p->bundles[p->counters[i].bundle].pass == pass)
            return true;
    }
    return false;
}

/* The bundle, which is in no pass, goes into one that still takes a guest. */
static bool find_pass(room *r, kprof_pack_bundle *bundle, size_t without, unsigned most_ms)
{
    for (size_t pass = 0; pass < r->problem->pass_count; pass++) {
        if (pass == without || is_patched(r->problem, pass) ||
            !kprof_pack_has_room(r->answers, bundle, pass, KPROF_NO_BUNDLE))
            continue;
        bundle->pass = pass;
        if (kprof_pack_cost_ms(r->problem) <= most_ms && takes_guest(r, pass))
            return true;
        bundle->pass = KPROF_NO_PASS;
    }
    return false;
}

/* Move the bundle from `pass` to another, if that lets a guest in and all passes then take `most_ms` at most. */
static bool move_out(room *r, kprof_pack_bundle *bundle, unsigned most_ms)
{
    kprof_pack_counter *counters = r->problem->counters;
    size_t pass = bundle->pass;
    for (size_t i = 0; i < bundle->count; i++)
        r->domains[i] = counters[bundle->counters[i]].domain;
    bundle->pass = KPROF_NO_PASS;
    if (takes_guest(r, pass) && find_pass(r, bundle, pass, most_ms))
        return true;
    bundle->pass = pass;
    for (size_t i = 0; i < bundle->count; i++)
        counters[bundle->counters[i]].domain = r->domains[i];
    return false;
}

static bool move_some(room *r, size_t pass, unsigned most_ms)
{
    for (size_t i = 0; i < r->problem->bundle_count && r->status == KPROF_OK; i++) {
        kprof_pack_bundle *bundle = &r->problem->bundles[i];
        bool may_move = bundle->pass == pass && !bundle->is_fixed && bundle->side_counts[KPROF_SIDE_SM] > 0;
        if (may_move && move_out(r, bundle, most_ms))
            return true;
    }
    return false;
}

static void make_room_in(room *r, size_t pass)
{
    unsigned before_ms = kprof_pack_cost_ms(r->problem);
    if (is_patched(r->problem, pass) || takes_guest(r, pass))
        return;
    if (!move_some(r, pass, before_ms))
        (void)move_some(r, pass, before_ms + WORTH_MS);
}

kprof_status kprof_pack_make_room(kprof_pack_problem *problem, const kprof_pack_guests *guests)
{
    room r = {.problem = problem, .guests = guests, .answers = kprof_pack_answers_new(problem, QUESTIONS)};
    r.list = calloc(problem->names.count + 1, sizeof(*r.list));
    r.domains = calloc(problem->names.count + 1, sizeof(*r.domains));
    r.status = r.answers && r.list && r.domains ? KPROF_OK : KPROF_NO_MEMORY;
    for (size_t i = 0; i < problem->pass_count && r.status == KPROF_OK; i++)
        make_room_in(&r, i);
    kprof_pack_answers_free(r.answers);
    free(r.list);
    free(r.domains);
    return r.status;
}
