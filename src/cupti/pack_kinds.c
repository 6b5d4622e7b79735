/* What it costs to start and stop a pass: that depends on the kinds of counters that it has, hardly on how many of a
 * kind, and not on the launches measured in it. */
#include "cupti/pack_private.h"

static bool is_in_sm_a(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A;
}

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

bool kprof_place_is_in_sm(uint32_t place)
{
    return is_in_sm_a(place) || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C;
}

static kprof_pack_kind kind_at(uint32_t place)
{
    if (is_in_sm_a(place))
        return KPROF_KIND_SM_A;
    if (is_in_l2(place))
        return KPROF_KIND_L2;
    return is_in_tpc(place) ? KPROF_KIND_TPC : KPROF_KIND_CHEAP;
}

kprof_pack_kind kprof_places_kind(const kprof_counter_places *places)
{
    kprof_pack_kind kind = places->count > 0 ? kind_at(places->items[0]) : KPROF_KIND_CHEAP;
    for (size_t i = 1; i < places->count; i++) {
        if (kind_at(places->items[i]) != kind)
            return KPROF_KIND_CHEAP;
    }
    return kind;
}

kprof_pack_kind kprof_pack_kind_of(const kprof_pack_counter *counter)
{
    return counter->domain ? kind_at(counter->domain) : counter->kind;
}

/* Measured on an H200 (GH100, driver 580), starting and stopping together: docs/internals.md, "What things cost". */
static const struct {
    size_t few; /* counters */
    unsigned few_ms, more_ms;
} costs[KPROF_PACK_KINDS] = {
    [KPROF_KIND_SM_A] = {SIZE_MAX, 27, 27},
    [KPROF_KIND_L2] = {4, 12, 23},
    [KPROF_KIND_TPC] = {SIZE_MAX, 18, 18},
};

static unsigned cost_of_pass(const kprof_pack_problem *p, size_t pass)
{
    size_t counts[KPROF_PACK_KINDS] = {0};
    unsigned sum = 0;
    for (size_t i = 0; i < p->names.count; i++)
        counts[kprof_pack_kind_of(&p->counters[i])] += p->bundles[p->counters[i].bundle].pass == pass;
    for (int kind = 0; kind < KPROF_PACK_KINDS; kind++) {
        if (counts[kind] > 0)
            sum += counts[kind] > costs[kind].few ? costs[kind].more_ms : costs[kind].few_ms;
    }
    return sum;
}

unsigned kprof_pack_cost_ms(const kprof_pack_problem *problem)
{
    unsigned sum = 0;
    for (size_t i = 0; i < problem->pass_count; i++)
        sum += cost_of_pass(problem, i);
    return sum;
}
