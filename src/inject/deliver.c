/* Turns a measured batch into records. */
#include "inject/batch_private.h"

#include <math.h>

void kprof_deliver_reason(const char *reason)
{
    for (size_t i = 0; i < kprof_batch.count; i++)
        if (kprof_batch.launches[i].chosen)
            kprof_batch.listener->done(&kprof_batch.launches[i].record, reason);
}

static void add_witnesses(const kprof_evaluation *evaluation, kprof_launch_record *record, double *spreads_pct)
{
    size_t count = kprof_batch.metrics->witnesses.count;
    for (size_t w = 0; w < count; w++)
        spreads_pct[w] = kprof_witness_spread_pct(&evaluation->witnesses[w]);
    record->witness_count = (uint32_t)count;
    record->witness_spreads_pct = spreads_pct;
}

bool kprof_deliver_unpatched(const kprof_chip_metrics *metrics, const kprof_launch_record *record, double *values)
{
    bool found = false;
    for (size_t i = 0; i < metrics->metrics.count && kprof_launch_is_graph(record); i++) {
        if (!metrics->patched[i])
            continue;
        values[i] = NAN;
        found = true;
    }
    return found;
}

static void deliver(const kprof_evaluation *evaluation, uint32_t passes)
{
    double spreads_pct[KPROF_MAX_WITNESSES];
    kprof_launch_record *record = &kprof_batch.launches[evaluation->launch].record;
    if (evaluation->status != KPROF_OK) {
        kprof_batch.listener->done(record, evaluation->reason);
        return;
    }
    record->mode = KPROF_REPLAY_BATCH;
    record->pass_count = passes;
    if (kprof_deliver_unpatched(kprof_batch.metrics, record, evaluation->values))
        kprof_batch_note("not all was counted", KPROF_NOT_IN_GRAPHS);
    record->values = evaluation->values;
    record->value_count = (uint32_t)kprof_batch.metrics->metrics.count;
    add_witnesses(evaluation, record, spreads_pct);
    kprof_batch.listener->done(record, kprof_batch.note);
}

void kprof_deliver_all(uint32_t passes)
{
    for (size_t i = 0; i < kprof_batch.evaluations.count; i++)
        if (kprof_batch.evaluations.items[i].launch < kprof_batch.replay_count)
            deliver(&kprof_batch.evaluations.items[i], passes);
    for (size_t i = kprof_batch.replay_count; i < kprof_batch.count; i++)
        if (kprof_batch.launches[i].chosen)
            kprof_batch.listener->done(&kprof_batch.launches[i].record,
                                       "a replay computed something else than the application's own run, as what the "
                                       "host got before this launch shows; later batches end there");
}
