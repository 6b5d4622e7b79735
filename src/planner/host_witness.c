/* Chooses witnesses and the passes that have them: each goes into a pass after the pass' own counters and fits beside
 * them, so that no pass is added and none changes its place. */
#include "planner/variants_private.h"

#include <stdlib.h>
#include <string.h>

typedef kprof_variant_builder builder;

/* Where a witness is counted decides what it costs. */
typedef enum witness_place {
    IN_SMS,    /* nothing, in a pass that has counters of the SMs' first domain: in no other */
    IN_TPCS,   /* 18 ms more to start and stop a pass: only where the one in the SMs is not, and once beside it */
    ELSEWHERE, /* 1 ms or nothing */
} witness_place;

/* Instructions of the SMs, counted by themselves or as their TPCs see them (GH100, GB10x); active cycles, likewise, or
 * of the whole GPU; and time. Passes are compared by one counter at a time: where a pass has room for both counters of
 * instructions, one such pass has them, so that the passes of either are compared with those of the other. */
static const struct {
    const char *name;
    witness_place place;
} kinds[] = {
    {KPROF_SM_INSTRUCTIONS, IN_SMS},
    {KPROF_TPC_INSTRUCTIONS, IN_TPCS},
    {"TPC.TriageCompute.sm__cycles_active.avg", IN_TPCS},
    {"gr__cycles_active.sum", ELSEWHERE},
    {"gpu__time_active.sum", ELSEWHERE},
};
enum { SM_INSTRUCTIONS, TPC_INSTRUCTIONS, TPC_CYCLES, CANDIDATES = sizeof(kinds) / sizeof(kinds[0]) };

_Static_assert(CANDIDATES <= KPROF_MAX_WITNESSES, "all candidates may become witnesses");

/* A counter that is in several passes reads as their mean, so a witness must be nothing that a value is computed from;
 * nor may it be computed from what is in some pass already. */
static kprof_status list_candidate(builder *b, const char *name, kprof_witness_candidate *c)
{
    kprof_strlist optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(b->host, name))
        return KPROF_OK;
    kprof_status status = kprof_evaluator_raw_counters(b->evaluator, name, &c->counters, &optional);
    if (status == KPROF_OK &&
        (kprof_variant_builder_has_taken(b, &c->counters) || kprof_variant_builder_has_taken(b, &optional)))
        kprof_strlist_free(&c->counters);
    for (size_t i = 0; i < c->counters.count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(&b->taken, c->counters.items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_free(&optional);
    return status;
}

static kprof_status try_in_sms(builder *b, kprof_raw_config *config, size_t pass)
{
    kprof_witness_candidate *c = &b->candidates[SM_INSTRUCTIONS];
    kprof_counter_places places;
    kprof_pass_traits has = {0};
    const kprof_placed_counters *own = &b->passes[pass];
    if (c->counters.count != 1)
        return KPROF_OK;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < own->names.count && status == KPROF_OK; i++)
        status =
            kprof_raw_config_add_traits(config, &(kprof_placed_counter){own->names.items[i], own->domains[i]}, &has);
    if (status == KPROF_OK)
        status = kprof_raw_config_places(config, c->counters.items[0], &places);
    for (size_t i = 0; status == KPROF_OK && i < places.count && !c->fits[pass]; i++) {
        kprof_placed_counter one = {c->counters.items[0], places.items[i]};
        if (!kprof_place_is_free(one.domain, &has))
            continue;
        b->sm_domains[pass] = one.domain;
        status = kprof_raw_config_takes(config, &one, 1, &c->fits[pass]);
        if (status == KPROF_OK && c->fits[pass])
            status = kprof_raw_config_put(config, &one);
    }
    return status;
}

static kprof_status try_candidates(builder *b, kprof_raw_config *config, size_t pass)
{
    if (pass >= KPROF_WITNESS_PASSES)
        return KPROF_OK;
    kprof_status status = try_in_sms(b, config, pass);
    for (size_t i = SM_INSTRUCTIONS + 1; i < CANDIDATES && status == KPROF_OK; i++) {
        kprof_witness_candidate *c = &b->candidates[i];
        if (c->counters.count == 0)
            continue;
        status = kprof_raw_config_fits(config, &c->counters, &c->fits[pass]);
        if (status == KPROF_OK && c->fits[pass])
            status = kprof_raw_config_add(config, &c->counters);
    }
    return status;
}

kprof_status kprof_witnesses_add(builder *b, kprof_raw_config *config, size_t pass)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        const kprof_witness_candidate *c = &b->candidates[i];
        bool takes_time = kinds[i].place == IN_TPCS;
        if (!c->fits[pass] || (takes_time && !(b->bits & KPROF_IMAGE_WITNESSED)))
            continue;
        kprof_placed_counter in_sms = {c->counters.items[0], b->sm_domains[pass]};
        status = kinds[i].place == IN_SMS ? kprof_raw_config_put(config, &in_sms)
                                          : kprof_raw_config_add(config, &c->counters);
    }
    return status;
}

static size_t count_passes(const builder *b, size_t number)
{
    size_t count = 0;
    for (size_t i = 0; i < b->image->pass_count; i++)
        count += b->candidates[number].fits[i];
    return count;
}

/* A witness in one pass has nothing to be compared with. */
static void drop_lonely(builder *b, size_t number)
{
    if (count_passes(b, number) < 2)
        memset(b->candidates[number].fits, 0, b->image->pass_count * sizeof(bool));
}

static void choose_passes(builder *b)
{
    const bool *in_sms = b->candidates[SM_INSTRUCTIONS].fits;
    bool *in_tpcs = b->candidates[TPC_INSTRUCTIONS].fits, *cycles = b->candidates[TPC_CYCLES].fits, both = false;
    drop_lonely(b, SM_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++) {
        bool here = in_tpcs[i] && (!in_sms[i] || !both);
        both = both || (here && in_sms[i]);
        in_tpcs[i] = here;
    }
    drop_lonely(b, TPC_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++)
        cycles[i] = cycles[i] && in_tpcs[i];
    for (size_t i = TPC_CYCLES; i < CANDIDATES; i++)
        drop_lonely(b, i);
}

kprof_status kprof_witnesses_choose(builder *b, kprof_strlist *names)
{
    if (b->image->pass_count < 2)
        return KPROF_OK;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++)
        status = list_candidate(b, kinds[i].name, &b->candidates[i]);
    if (status == KPROF_OK)
        status = kprof_variant_builder_run(b, try_candidates, NULL);
    if (status != KPROF_OK)
        return status;
    choose_passes(b);
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        if (count_passes(b, i) > 0 && !kprof_strlist_add(names, kinds[i].name))
            status = KPROF_NO_MEMORY;
    }
    return status;
}
