/* Threads live for one call; readers, which take longer to make, stay for the next. */
#include "inject/evaluate.h"

#include "core/log.h"
#include "inject/process.h"
#include "inject/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_WORKERS 16
/* Fewer are not worth a thread's start. */
#define LAUNCHES_PER_WORKER 8

typedef struct evaluation_work {
    const kprof_profiler *profiler;
    const kprof_chip_metrics *metrics;
    kprof_evaluation *evaluations; /* [count] */
    size_t count;
    atomic_size_t next;
} evaluation_work;

typedef struct worker {
    evaluation_work *work;
    kprof_reader **reader;
    pthread_t thread;
} worker;

static kprof_reader *readers[MAX_WORKERS];
static const kprof_chip_metrics *readers_metrics; /* what the readers are for: another chip's are made anew */

static kprof_status open_reader(kprof_reader **reader, const kprof_chip_metrics *metrics)
{
    return *reader ? KPROF_OK : kprof_reader_open(metrics, reader);
}

static void *run_worker(void *user)
{
    worker *self = user;
    evaluation_work *work = self->work;
    kprof_process_forget_reason();
    kprof_status opened = open_reader(self->reader, work->metrics);
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) {
        kprof_evaluation *e = &work->evaluations[i];
        e->status =
            opened == KPROF_OK ? kprof_reader_read(*self->reader, work->profiler, e->launch, e->values) : opened;
        if (e->status != KPROF_OK)
            snprintf(e->reason, sizeof e->reason, "%s", kprof_process_reason(e->status));
    }
    return NULL;
}

static size_t count_workers(size_t launches)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = launches / LAUNCHES_PER_WORKER + 1;
    size_t possible = cores < 1 ? 1 : cores > MAX_WORKERS ? MAX_WORKERS : (size_t)cores;
    return wanted < possible ? wanted : possible;
}

static void close_readers(void)
{
    for (size_t i = 0; i < MAX_WORKERS; i++) {
        kprof_reader_close(readers[i]);
        readers[i] = NULL;
    }
}

static void use_readers_of(const kprof_chip_metrics *metrics)
{
    if (readers_metrics != metrics)
        close_readers();
    readers_metrics = metrics;
}

void kprof_evaluate(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, kprof_evaluation *evaluations,
                    size_t count)
{
    evaluation_work work = {.profiler = profiler, .metrics = metrics, .evaluations = evaluations, .count = count};
    worker workers[MAX_WORKERS];
    size_t worker_count = count_workers(count);
    use_readers_of(metrics);
    for (size_t i = 0; i < worker_count; i++)
        workers[i] = (worker){.work = &work, .reader = &readers[i]};
    size_t running = 1; /* the first is this thread */
    while (running < worker_count && kprof_threads_start(&workers[running].thread, run_worker, &workers[running]))
        running++;
    run_worker(&workers[0]);
    while (running-- > 1)
        pthread_join(workers[running].thread, NULL);
}

kprof_status kprof_evaluate_witnesses(const kprof_profiler *profiler, const kprof_chip_metrics *metrics, size_t launch,
                                      double *values)
{
    use_readers_of(metrics);
    kprof_status status = open_reader(&readers[0], metrics);
    return status == KPROF_OK ? kprof_reader_witnesses(readers[0], profiler, launch, values) : status;
}
