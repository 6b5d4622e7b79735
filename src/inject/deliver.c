/* Turns a measured batch into records. */
#include "inject/batch_private.h"

#include "inject/engine.h"

#include <math.h>

void kprof_deliver_reason(const char *reason)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->launches[i].chosen)
            batch->listener->done(&batch->launches[i].record, reason);
}

/* Counters of patched code see nothing of a graph as a whole, whose kernels were made before. */
#define NOT_IN_GRAPHS "counters of code that is patched into kernels do not see those of a graph as a whole"

/* Values that such counters would make become NaN; true when there are any. */
static bool leave_out_patched(const kprof_chip_metrics *metrics, const kprof_launch_record *record, double *values)
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

void kprof_deliver(const kprof_chip_metrics *metrics, const kprof_evaluation *e, kprof_launch_record *record,
                   const char *reason)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    double spreads_pct[KPROF_MAX_WITNESSES];
    if (e->status != KPROF_OK) {
        batch->listener->done(record, e->reason);
        return;
    }
    for (size_t w = 0; w < metrics->witnesses.count; w++)
        spreads_pct[w] = kprof_witness_spread_pct(&e->witnesses[w]);
    bool incomplete = leave_out_patched(metrics, record, e->values);
    record->values = e->values;
    record->value_count = (uint32_t)metrics->metrics.count;
    record->witness_count = (uint32_t)metrics->witnesses.count;
    record->witness_spreads_pct = spreads_pct;
    batch->listener->done(record, incomplete && !*reason ? NOT_IN_GRAPHS : reason);
}

static void deliver(const kprof_evaluation *evaluation, uint32_t passes)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    kprof_launch_record *record = &batch->launches[evaluation->launch].record;
    if (evaluation->status == KPROF_OK) {
        record->mode = KPROF_REPLAY_BATCH;
        record->pass_count = passes;
    }
    kprof_deliver(batch->metrics, evaluation, record, batch->note);
}

void kprof_deliver_all(uint32_t passes)
{
    kprof_open_batch *batch = &kprof_engine.batch;
    for (size_t i = 0; i < batch->evaluations.count; i++)
        if (batch->evaluations.items[i].launch < batch->replay_count)
            deliver(&batch->evaluations.items[i], passes);
    for (size_t i = batch->replay_count; i < batch->count; i++)
        if (batch->launches[i].chosen)
            batch->listener->done(&batch->launches[i].record,
                                  "a replay computed something else than the application's own run, as what the "
                                  "host got before this launch shows; later batches end there");
}
