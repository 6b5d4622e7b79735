/* Each thread runs an nvdisasm of its own, which loads a whole cubin, and libdw, which may take much memory. Threads
 * begin with the largest cubins, so that none of these is left when all others are done. */
#include "report/store/code_jobs.h"

#include "core/files.h"
#include "core/hold.h"
#include "core/memory.h"
#include "core/monotonic.h"
#include "core/signals.h"
#include "report/store/source_file.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_READERS      8
#define READER_BYTES      ((size_t)3 << 30)   /* of memory that a reader and its nvdisasm may take */
#define MEMORY_SHARE      2                   /* readers take one part of so many of what the machine has left */
#define MOST_HELD_BYTES   ((size_t)512 << 20) /* that wait to be taken; beyond them threads begin no more */
#define INSTRUCTION_BYTES 256                 /* of memory, with its text, roughly */

struct kprof_code_jobs {
    kprof_code_jobs_input input;
    kprof_disassemblers disassemblers;
    pthread_mutex_t mutex; /* of what follows and of the jobs' states */
    pthread_cond_t changed;
    kprof_code_job **order; /* [input.count], the largest first */
    size_t next;            /* in there: those before it have begun */
    size_t held_bytes;
    bool ends;
    kprof_code_jobs_times times;
    pthread_t threads[MOST_READERS];
    size_t thread_count;
};

/* Read the functions of a cubin that are wanted, and their texts by nvdisasm, which opens the very file anew. */
static void read_cubin(kprof_code_jobs *jobs, kprof_code_job *job, int file)
{
    char path[64];
    int64_t start_ns = kprof_monotonic_ns();
    job->bytes = kprof_calloc(job->size + 1, 1);
    const bool is_whole = kprof_read_at(file, job->bytes, job->size, 0) == job->size;
    const bool is_cubin = is_whole && kprof_code_read(job->bytes, job->size, &job->wanted, &job->code) == KPROF_OK;
    const double read_ms = kprof_monotonic_lap_ms(&start_ns);
    if (!is_whole || job->size > jobs->input.most_kept_bytes) {
        free(job->bytes);
        job->bytes = NULL;
    }
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), file);
    if (is_cubin)
        kprof_code_disassemble(&job->code, path, &jobs->disassemblers);
    const double disassemble_ms = kprof_monotonic_lap_ms(&start_ns);
    KPROF_HOLD(jobs->mutex);
    jobs->times.read_ms += read_ms;
    jobs->times.disassemble_ms += disassemble_ms;
}

static void run_job(kprof_code_jobs *jobs, kprof_code_job *job)
{
    static const char gone[] = "its code is not in the run's folder any more";
    const bool is_name = !strchr(job->file, '/') && strcmp(job->file, "..") != 0;
    const int file = job->wanted.count > 0 && is_name
                         ? kprof_source_open(jobs->input.folder, job->file, KPROF_CODE_MOST_BYTES, &job->size)
                         : -1;
    job->code = (kprof_code)KPROF_CODE_INIT;
    snprintf(job->code.text_state, sizeof job->code.text_state, "%s", gone);
    job->code.line_state = gone;
    if (file >= 0) {
        read_cubin(jobs, job, file);
        close(file);
    }
    job->held_bytes = job->bytes ? job->size : 0;
    for (size_t i = 0; i < job->code.function_count; i++)
        job->held_bytes += job->code.functions[i].count * INSTRUCTION_BYTES;
    KPROF_HOLD(jobs->mutex);
    job->state = KPROF_JOB_DONE;
    jobs->held_bytes += job->held_bytes;
    pthread_cond_broadcast(&jobs->changed);
}

/* The next one that nobody has begun; NULL: there is none. */
static kprof_code_job *next_job(kprof_code_jobs *jobs)
{
    KPROF_HOLD(jobs->mutex);
    while (!jobs->ends && jobs->held_bytes > MOST_HELD_BYTES)
        pthread_cond_wait(&jobs->changed, &jobs->mutex);
    while (jobs->next < jobs->input.count && jobs->order[jobs->next]->state != KPROF_JOB_WAITS)
        jobs->next++;
    if (jobs->ends || jobs->next == jobs->input.count)
        return NULL;
    kprof_code_job *job = jobs->order[jobs->next++];
    job->state = KPROF_JOB_RUNS;
    return job;
}

static void *run_jobs(void *user)
{
    kprof_code_jobs *jobs = user;
    for (kprof_code_job *job; (job = next_job(jobs));)
        run_job(jobs, job);
    return NULL;
}

/* The largest first; those of a size in their order. */
static int compare_jobs(const void *a, const void *b)
{
    const kprof_code_job *x = *(kprof_code_job *const *)a, *y = *(kprof_code_job *const *)b;
    return x->size != y->size ? -KPROF_COMPARE(x->size, y->size) : KPROF_COMPARE(x, y);
}

/* The thread that takes what is read is one of them. */
static size_t count_readers(size_t jobs)
{
    cpu_set_t allowed;
    const size_t processors = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    const size_t fit = kprof_memory_available_bytes("") / MEMORY_SHARE / READER_BYTES;
    size_t readers = processors < MOST_READERS ? processors : MOST_READERS;
    readers = fit < readers ? fit : readers;
    readers = jobs < readers ? jobs : readers;
    return readers > 0 ? readers : 1;
}

kprof_code_jobs *kprof_code_jobs_begin(const kprof_code_jobs_input *input)
{
    kprof_code_jobs *jobs = kprof_calloc(1, sizeof *jobs);
    *jobs = (kprof_code_jobs){.input = *input,
                              .disassemblers = {.given = input->nvdisasm},
                              .mutex = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER,
                              .times = {.readers = count_readers(input->count)}};
    jobs->order = kprof_calloc(input->count + 1, sizeof(kprof_code_job *));
    for (size_t i = 0; i < input->count; i++)
        jobs->order[i] = &input->jobs[i];
    qsort(jobs->order, input->count, sizeof(kprof_code_job *), compare_jobs);
    sigset_t before;
    kprof_handlers_block(&before); /* in the threads, which inherit it */
    while (jobs->thread_count + 1 < jobs->times.readers &&
           pthread_create(&jobs->threads[jobs->thread_count], NULL, run_jobs, jobs) == 0)
        jobs->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    jobs->times.readers = jobs->thread_count + 1;
    return jobs;
}

kprof_code_job *kprof_code_jobs_take(kprof_code_jobs *jobs, size_t number)
{
    kprof_code_job *job = &jobs->input.jobs[number];
    pthread_mutex_lock(&jobs->mutex);
    const bool is_own = job->state == KPROF_JOB_WAITS;
    if (is_own)
        job->state = KPROF_JOB_RUNS;
    while (!is_own && job->state != KPROF_JOB_DONE)
        pthread_cond_wait(&jobs->changed, &jobs->mutex);
    pthread_mutex_unlock(&jobs->mutex);
    if (is_own)
        run_job(jobs, job);
    return job;
}

void kprof_code_jobs_drop(kprof_code_jobs *jobs, kprof_code_job *job)
{
    kprof_strlist_free(&job->wanted);
    kprof_code_free(&job->code);
    free(job->bytes);
    job->bytes = NULL;
    KPROF_HOLD(jobs->mutex);
    jobs->held_bytes -= job->held_bytes;
    job->held_bytes = 0;
    pthread_cond_broadcast(&jobs->changed);
}

kprof_code_jobs_times kprof_code_jobs_end(kprof_code_jobs *jobs)
{
    pthread_mutex_lock(&jobs->mutex);
    jobs->ends = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->mutex);
    for (size_t i = 0; i < jobs->thread_count; i++)
        pthread_join(jobs->threads[i], NULL);
    for (size_t i = 0; i < jobs->input.count; i++)
        kprof_code_jobs_drop(jobs, &jobs->input.jobs[i]);
    const kprof_code_jobs_times times = jobs->times;
    kprof_disassemblers_free(&jobs->disassemblers);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->mutex);
    KPROF_FREE(jobs->order, jobs);
    return times;
}
