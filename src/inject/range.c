/* Passes the range from one phase to the next. Threads that race for that compare and exchange. */
#include "inject/range.h"

#include "core/log.h"
#include "inject/engine.h"

#include <limits.h>
#include <stdio.h>

kprof_range_state kprof_the_range;

static bool pass_on(kprof_range_phase from, kprof_range_phase to)
{
    return atomic_compare_exchange_strong(&kprof_the_range.phase, &from, to);
}

static kprof_range_name *name_of(unsigned number)
{
    return &kprof_the_range.names[number % KPROF_RANGE_NAMES];
}

bool kprof_range_is_asked_for(void)
{
    return kprof_replay_is_of_ranges(kprof_engine.process.config.replay_choice);
}

static void tell_nested(const char *name)
{
    if (!atomic_exchange(&kprof_the_range.told_nested, true))
        kprof_log(KPROF_LOG_WARNING,
                  "the range \"%s\" begins while another one is measured: it is part of that, and has no values of its "
                  "own",
                  name);
}

bool kprof_range_begin(const char *domain, const char *name, const char *nvtx, uint32_t stack)
{
    kprof_range_state *range = &kprof_the_range;
    if (!pass_on(KPROF_RANGE_NONE, KPROF_RANGE_BEGINS)) {
        tell_nested(name);
        return false;
    }
    kprof_range_name *kept = name_of(atomic_fetch_add(&range->begun, 1) + 1);
    snprintf(kept->text, sizeof kept->text, "%s%s%s", domain, *domain ? "@" : "", *name ? name : "(no name)");
    kept->nvtx = nvtx;
    kept->stack = stack;
    atomic_store(&range->device, UINT_MAX);
    atomic_store(&range->elsewhere, 0);
    atomic_store(&range->phase, KPROF_RANGE_AWAITED);
    return true;
}

void kprof_range_end(void)
{
    if (pass_on(KPROF_RANGE_AWAITED, KPROF_RANGE_NONE) || pass_on(KPROF_RANGE_LEFT, KPROF_RANGE_NONE))
        return;
    kprof_range_hook *const ends = atomic_load(&kprof_the_range.ends);
    if (ends)
        ends();
    atomic_store(&kprof_the_range.phase, KPROF_RANGE_NONE);
}

void kprof_range_leave_out(void)
{
    (void)pass_on(KPROF_RANGE_AWAITED, KPROF_RANGE_LEFT);
}

bool kprof_range_is_awaited(void)
{
    return atomic_load_explicit(&kprof_the_range.phase, memory_order_relaxed) == KPROF_RANGE_AWAITED;
}

const kprof_range_name *kprof_range_take(unsigned device)
{
    if (!pass_on(KPROF_RANGE_AWAITED, KPROF_RANGE_LEFT))
        return NULL;
    atomic_store(&kprof_the_range.device, device);
    return name_of(atomic_load(&kprof_the_range.begun));
}

void kprof_range_note_launch(unsigned device)
{
    const unsigned first = atomic_load_explicit(&kprof_the_range.device, memory_order_relaxed);
    if (atomic_load_explicit(&kprof_the_range.phase, memory_order_relaxed) >= KPROF_RANGE_LEFT && first != UINT_MAX &&
        first != device)
        atomic_fetch_add(&kprof_the_range.elsewhere, 1);
}

bool kprof_range_is_measured(void)
{
    return atomic_load(&kprof_the_range.phase) == KPROF_RANGE_MEASURED;
}

bool kprof_range_note_measured(void)
{
    return pass_on(KPROF_RANGE_LEFT, KPROF_RANGE_MEASURED);
}
