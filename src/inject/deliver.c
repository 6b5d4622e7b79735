/* Turns a measured batch into records. */
#include "inject/batch_private.h"

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
