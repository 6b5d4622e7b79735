/* Turns a measured batch into records. */
#include "inject/batch_private.h"

#include "inject/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void kprof_deliver_reason(const char *reason)
{
    for (size_t i = 0; i < kprof_batch.count; i++)
        if (kprof_batch.launches[i].chosen)
            kprof_batch.listener->done(&kprof_batch.launches[i].record, reason);
}

static void add_witnesses(const kprof_open_launch *launch, kprof_launch_record *record, double *spreads_pct)
{
    size_t count = kprof_batch.metrics->witnesses.count;
    for (size_t w = 0; w < count && count <= KPROF_MAX_WITNESSES; w++)
        spreads_pct[w] = kprof_witness_spread_pct(&launch->witnesses[w]);
    record->witness_count = count <= KPROF_MAX_WITNESSES ? (uint32_t)count : 0;
    record->witness_spreads_pct = spreads_pct;
}

static bool has_value(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isnan(values[i]))
            return true;
    }
    return false;
}

static void deliver(kprof_open_launch *launch, const kprof_evaluation *evaluation, uint32_t passes)
{
    char reason[sizeof kprof_batch.note + 128];
    double spreads_pct[KPROF_MAX_WITNESSES];
    kprof_launch_record *record = &launch->record;
    if (evaluation->status != KPROF_OK) {
        kprof_batch.listener->done(record, evaluation->reason);
        return;
    }
    bool partly = kprof_passes_partly();
    if (partly && !has_value(evaluation->values, kprof_batch.metrics->metrics.count)) {
        snprintf(reason, sizeof reason, "%s; the pass that was this launch's turn gave no metric a value",
                 kprof_batch.note);
        kprof_batch.listener->done(record, reason);
        return;
    }
    record->mode = partly ? KPROF_REPLAY_ONE_PASS : KPROF_REPLAY_BATCH;
    record->pass_count = passes;
    record->values = evaluation->values;
    record->value_count = (uint32_t)kprof_batch.metrics->metrics.count;
    add_witnesses(launch, record, spreads_pct);
    kprof_batch.listener->done(record, kprof_batch.note);
}

void kprof_deliver_all(uint32_t passes)
{
    size_t chosen = kprof_batch.chosen_count, value_count = kprof_batch.metrics->metrics.count, next = 0;
    kprof_evaluation *evaluations = calloc(chosen + 1, sizeof *evaluations);
    double *values = calloc(chosen * value_count + 1, sizeof *values);
    for (size_t i = 0; evaluations && values && i < kprof_batch.count; i++)
        if (kprof_batch.launches[i].chosen) {
            evaluations[next] = (kprof_evaluation){.launch = i, .values = values + next * value_count};
            next++;
        }
    if (next < chosen) {
        kprof_deliver_reason("no memory for the values");
    } else {
        kprof_evaluate(kprof_batch.context->profiler, kprof_batch.metrics, evaluations, chosen);
        for (size_t i = 0; i < chosen; i++)
            deliver(&kprof_batch.launches[evaluations[i].launch], &evaluations[i], passes);
    }
    free(values);
    free(evaluations);
}
