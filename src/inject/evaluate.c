/* Threads live from one pass to the next; readers, which take longer to make, stay. */
#include "inject/evaluate.h"

#include "core/log.h"
#include "inject/engine.h"
#include "inject/process.h"
#include "inject/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kprof_evaluator kprof_the_evaluator;
static kprof_evaluator *const work = &kprof_the_evaluator;

/* For fewer launches, starting a thread does not pay. */
#define LAUNCHES_PER_WORKER 8

typedef struct kprof_evaluate_worker worker;

kprof_status kprof_evaluations_make(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, size_t count,
                                    kprof_evaluations *out)
{
    size_t value_count = metrics->metrics.count;
    *out = (kprof_evaluations){.profiler = profiler, .metrics = metrics, .count = count};
    out->items = calloc(count + 1, sizeof *out->items);
    out->values = malloc((count * value_count + 1) * sizeof *out->values);
    if (!out->items || !out->values) {
        kprof_evaluations_free(out);
        return kprof_fail(KPROF_NO_MEMORY, "no memory for the values of %zu launches", count);
    }
    for (size_t i = 0; i < count * value_count; i++)
        out->values[i] = NAN;
    for (size_t i = 0; i < count; i++)
        out->items[i].values = out->values + i * value_count;
    return KPROF_OK;
}

void kprof_evaluations_free(kprof_evaluations *evaluations)
{
    KPROF_FREE(evaluations->items, evaluations->values);
    *evaluations = (kprof_evaluations){0};
}

/* Add the witnesses of a pass. Equal launches may take different times, so compare kernel and range within one pass. */
static void add_witnesses(kprof_evaluation *e, const double *means)
{
    kprof_witness *range = NULL;
    double kernel_cycles = NAN;
    for (size_t i = work->metric_count; i < work->names.count; i++) {
        kprof_witness *witness = &e->witnesses[work->indices[i]];
        double own = kprof_witness_add(witness, means[i]);
        if (strcmp(work->names.items[i], KPROF_RANGE_CYCLES) == 0)
            range = witness;
        else if (strcmp(work->names.items[i], KPROF_KERNEL_CYCLES) == 0)
            kernel_cycles = own;
    }
    if (range)
        range->beside = kernel_cycles;
}

/* Read metrics and witnesses together: in an image of many ranges each question costs time. So if its witnesses cannot
 * be evaluated, a launch has no values. */
static kprof_status read_launch(const worker *self, kprof_evaluation *e)
{
    kprof_range range = {work->evaluations->profiler, e->range};
    kprof_status status = kprof_engine.device->reader_read(self->reader, range, &work->names, self->values);
    for (size_t i = 0; status == KPROF_OK && i < work->metric_count; i++)
        e->values[work->indices[i]] = self->values[i];
    if (status == KPROF_OK)
        add_witnesses(e, self->values);
    return status;
}

static void *run_worker(void *user)
{
    worker *self = user;
    kprof_process_forget_reason();
    kprof_status ready = KPROF_OK;
    self->values = work->prepared ? calloc(work->names.count + 1, sizeof *self->values) : NULL;
    if (!self->values)
        ready = kprof_fail(KPROF_NO_MEMORY, "no memory to evaluate counters");
    else if (!self->reader)
        ready = kprof_engine.device->reader_open(work->evaluations->metrics, &self->reader);
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->evaluations->count;) {
        kprof_evaluation *e = &work->evaluations->items[i];
        if (e->status != KPROF_OK)
            continue; /* in an earlier pass */
        e->status = ready;
        if (e->status == KPROF_OK)
            e->status = read_launch(self, e);
        if (e->status != KPROF_OK)
            snprintf(e->reason, sizeof e->reason, "%s", kprof_process_reason(e->status));
    }
    free(self->values);
    return NULL;
}

/* Make space for as many names as a pass may have. */
static bool reserve(size_t count)
{
    if (count <= work->capacity)
        return true;
    KPROF_FREE(work->names.items, work->indices);
    work->names.items = calloc(count, sizeof *work->names.items);
    work->indices = calloc(count, sizeof *work->indices);
    work->capacity = work->names.items && work->indices ? count : 0;
    return work->capacity > 0;
}

static void choose(const kprof_strlist *names, size_t index)
{
    work->indices[work->names.count] = index;
    work->names.items[work->names.count++] = names->items[index];
}

static void choose_names(const kprof_chip_metrics *metrics, uint32_t from, uint32_t end)
{
    work->names.count = work->metric_count = 0;
    work->prepared = reserve(metrics->metrics.count + metrics->witnesses.count);
    for (size_t i = 0; work->prepared && i < metrics->metrics.count; i++)
        if (metrics->last_passes[i] >= from && metrics->last_passes[i] < end)
            choose(&metrics->metrics, i);
    work->metric_count = work->names.count;
    for (size_t i = 0; work->prepared && i < metrics->witnesses.count && from < KPROF_WITNESS_PASSES; i++)
        if (metrics->witness_passes[i] >> from & 1)
            choose(&metrics->witnesses, i);
}

void kprof_evaluate_begin(kprof_evaluations *evaluations, uint32_t from, uint32_t end)
{
    work->evaluations = evaluations;
    choose_names(evaluations->metrics, from, end);
    for (size_t i = 0; work->readers_metrics != evaluations->metrics && i < KPROF_EVALUATE_THREADS; i++) {
        kprof_engine.device->reader_close(work->workers[i].reader);
        work->workers[i].reader = NULL;
    }
    work->readers_metrics = evaluations->metrics;
    worker *first = &work->workers[0];
    /* This opens libraries: do it before there are threads. If the application launches while it opens a library
     * itself, threads would wait for the loader, and this one for them. */
    if (!first->reader && kprof_engine.device->reader_open(evaluations->metrics, &first->reader) != KPROF_OK)
        first->reader = NULL; /* its thread tries again, and tells why not */
    atomic_store(&work->next, 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = evaluations->count / LAUNCHES_PER_WORKER + 1;
    size_t possible = cores < 1 ? 1 : cores > KPROF_EVALUATE_THREADS ? KPROF_EVALUATE_THREADS : (size_t)cores;
    work->running = 0;
    while (work->running < wanted && work->running < possible &&
           kprof_threads_start(&work->workers[work->running].thread, run_worker, &work->workers[work->running]))
        work->running++;
    if (work->running == 0) { /* a driver call of CUPTI's would wait for the gate, which is held until this has ended */
        kprof_threads_mark_own();
        run_worker(first);
    }
}

void kprof_evaluate_wait(void)
{
    while (work->running > 0)
        pthread_join(work->workers[--work->running].thread, NULL);
}

double kprof_witness_add(kprof_witness *witness, double mean)
{
    if (isnan(mean))
        return NAN;
    double before = witness->passes;
    double value = (before + 1) * mean - before * witness->mean;
    witness->low = witness->passes == 0 ? value : fmin(witness->low, value);
    witness->high = witness->passes == 0 ? value : fmax(witness->high, value);
    witness->mean = mean;
    witness->passes++;
    return value;
}

double kprof_witness_spread_pct(const kprof_witness *witness)
{
    if (witness->passes < 2 || witness->mean == 0)
        return NAN;
    return 100 * (witness->high - witness->low) / witness->mean;
}
