/* What a pass costs depends on the kinds of counters that it has, hardly on how many of a kind. Most make it longer to
 * start and stop; those of the SMs' second and third domain make each launch longer, by two control calls of the
 * driver. */
#include "planner/pack_private.h"

static bool is_in_l2(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_LTS || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS ||
           place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS_B;
}

static bool is_in_tpc(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_TPC || place == NVPW_RAW_COUNTER_DOMAIN_GPU_TPC_B ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_TPC_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC;
}

static unsigned kinds_at(uint32_t place)
{
    return (kprof_place_is_in_sm_a(place) ? KPROF_KIND_BIT(KPROF_KIND_SM_A) : 0) |
           (kprof_place_is_slow(place) ? KPROF_KIND_BIT(KPROF_KIND_SLOW) : 0) |
           (is_in_l2(place) ? KPROF_KIND_BIT(KPROF_KIND_L2) : 0) |
           (is_in_tpc(place) ? KPROF_KIND_BIT(KPROF_KIND_TPC) : 0);
}

unsigned kprof_places_kinds(const kprof_counter_places *places)
{
    unsigned all = 0, common = ~0u;
    for (size_t i = 0; i < places->count; i++) {
        all |= kinds_at(places->items[i]);
        common &= kinds_at(places->items[i]);
    }
    return places->count == 0 ? 0 : common | (all & KPROF_KIND_BIT(KPROF_KIND_SLOW));
}

bool kprof_place_is_free(uint32_t place, unsigned kinds)
{
    return kprof_place_is_in_sm_a(place) && (kinds_at(place) & ~kinds) == 0;
}

unsigned kprof_pack_kinds_of(const kprof_pack_counter *counter)
{
    return counter->domain ? kinds_at(counter->domain) : counter->kinds;
}

void kprof_pack_count_kinds(const kprof_pack_counter *counter, size_t *counts)
{
    unsigned kinds = kprof_pack_kinds_of(counter);
    for (int kind = 0; kind < KPROF_PACK_KINDS; kind++)
        counts[kind] += (kinds & KPROF_KIND_BIT(kind)) != 0;
}

/* Measured on an H200 (GH100, driver 580): docs/internals.md, "What things cost". */
#define PASS_MS        7
#define PASS_LAUNCH_US 150
static const struct {
    size_t few; /* counters */
    unsigned few_ms, more_ms, launch_us;
} costs[KPROF_PACK_KINDS] = {
    [KPROF_KIND_SM_A] = {SIZE_MAX, 20, 20, 30},
    [KPROF_KIND_SLOW] = {SIZE_MAX, 0, 0, 1250},
    [KPROF_KIND_L2] = {4, 12, 23, 0},
    [KPROF_KIND_TPC] = {SIZE_MAX, 18, 18, 0},
};

static unsigned cost_of_pass(const kprof_pack_problem *p, size_t pass)
{
    size_t counts[KPROF_PACK_KINDS] = {0};
    unsigned start_ms = PASS_MS, launch_us = PASS_LAUNCH_US;
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->bundles[p->counters[i].bundle].pass == pass)
            kprof_pack_count_kinds(&p->counters[i], counts);
    }
    for (int kind = 0; kind < KPROF_PACK_KINDS; kind++) {
        if (counts[kind] == 0)
            continue;
        start_ms += counts[kind] > costs[kind].few ? costs[kind].more_ms : costs[kind].few_ms;
        launch_us += costs[kind].launch_us;
    }
    return start_ms + launch_us * p->launches / 1000;
}

unsigned kprof_pack_cost_ms(const kprof_pack_problem *problem)
{
    unsigned sum = 0;
    for (size_t i = 0; i < problem->pass_count; i++)
        sum += cost_of_pass(problem, i);
    return sum;
}
