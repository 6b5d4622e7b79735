/* The sources page: how evenly kernels load the reports that were merged or, in the report of one run, its processes.
 */
#include "report/limits.h"
#include "report/page.h"
#include "report/robust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DURATION "gpu__time_duration.sum"

typedef struct source {
    char *name;
    uint64_t processes, launches;
    double time_ns;
} source;

typedef struct kernel_share {
    const kprof_model_kernel *kernel;
    uint64_t launches;
    double total_ns;
    double *time_ns; /* [source_count]; NaN: no launch of it with a time */
} kernel_share;

typedef struct shares {
    const kprof_model *model;
    kprof_report *report;
    source *sources;
    size_t source_count;
    size_t *source_of;    /* [process_count] */
    int64_t last_process; /* of the latest row of `process_source` */
    kernel_share *kernels;
    size_t kernel_count;
    kprof_names kernel_numbers; /* by mangled name */
    kprof_value_reader reader;
    size_t duration; /* index of the metric */
    double *values;  /* [metric_count] */
    bool *asked;
} shares;

static kprof_status read_source(void *user, sqlite3_stmt *row)
{
    shares *all = user;
    source *own = KPROF_APPEND(all->sources, all->source_count);
    if (!own || !(own->name = kprof_store_text(all->report, row, 1)))
        return kprof_store_no_memory(all->report);
    if (sqlite3_column_int64(row, 0) != (int64_t)++all->source_count)
        return kprof_store_damaged(all->report, "source");
    return KPROF_OK;
}

static kprof_status read_process(void *user, sqlite3_stmt *row)
{
    shares *all = user;
    int64_t process = sqlite3_column_int64(row, 0), from = sqlite3_column_int64(row, 1);
    bool rises = process > all->last_process;
    if (!rises || process > (int64_t)all->model->process_count || from < 1 || from > (int64_t)all->source_count)
        return kprof_store_damaged(all->report, "process_source");
    all->last_process = process;
    all->source_of[process - 1] = (size_t)from - 1;
    return KPROF_OK;
}

static kprof_status take_processes(shares *all)
{
    for (size_t i = 0; i < all->model->process_count; i++) {
        const kprof_model_process *process = &all->model->processes[i];
        source *own = KPROF_APPEND(all->sources, all->source_count);
        if (!own || asprintf(&own->name, "%s %lld on %s", process->name, (long long)process->pid, process->host) < 0)
            return kprof_store_no_memory(all->report);
        all->source_of[i] = all->source_count++;
    }
    return KPROF_OK;
}

static kprof_status find_sources(shares *all)
{
    const kprof_model *model = all->model;
    kprof_status status = KPROF_OK;
    all->source_of = calloc(model->process_count + 1, sizeof *all->source_of);
    all->values = calloc(model->metric_count + 1, sizeof *all->values);
    all->asked = calloc(model->metric_count + 1, sizeof *all->asked);
    if (!all->source_of || !all->values || !all->asked)
        return kprof_store_no_memory(all->report);
    if (all->report->version >= 5)
        status = kprof_store_query(all->report, "SELECT id, name FROM source ORDER BY id", read_source, all);
    if (status == KPROF_OK && all->source_count == 0)
        status = take_processes(all);
    else if (status == KPROF_OK)
        status = kprof_store_query(all->report, "SELECT process_id, source_id FROM process_source ORDER BY process_id",
                                   read_process, all);
    for (size_t i = 0; i < model->process_count && status == KPROF_OK; i++)
        all->sources[all->source_of[i]].processes++;
    return status;
}

/* The kernel of that name, which several rows may have. */
static kernel_share *share_of(shares *all, const kprof_model_kernel *kernel)
{
    size_t number = kprof_names_find(&all->kernel_numbers, kernel->mangled);
    if (number != KPROF_NAMES_NONE)
        return &all->kernels[number];
    if ((all->kernel_count + 1) * all->source_count > KPROF_SUMMARY_MAX)
        return NULL;
    kernel_share *own = KPROF_APPEND(all->kernels, all->kernel_count);
    if (!own || !(own->time_ns = malloc((all->source_count + 1) * sizeof *own->time_ns)))
        return NULL;
    own->kernel = kernel;
    for (size_t i = 0; i < all->source_count; i++)
        own->time_ns[i] = NAN;
    all->kernel_count++;
    return kprof_names_add(&all->kernel_numbers, kernel->mangled, all->kernel_count - 1) ? own : NULL;
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    shares *all = user;
    const size_t number = all->source_of[launch->process - all->model->processes];
    kernel_share *own = share_of(all, launch->kernel);
    if (!own)
        return kprof_store_too_much(all->report, KPROF_SUMMARY_MAX, "kernels times sources");
    own->launches++;
    all->sources[number].launches++;
    if (all->duration == KPROF_NAMES_NONE)
        return KPROF_OK;
    kprof_status status = kprof_value_reader_read(&all->reader, launch->id, all->values, all->asked);
    const double time_ns = all->values[all->duration];
    if (status != KPROF_OK || !isfinite(time_ns))
        return status;
    own->time_ns[number] = time_ns + (isnan(own->time_ns[number]) ? 0 : own->time_ns[number]);
    own->total_ns += time_ns;
    all->sources[number].time_ns += time_ns;
    return KPROF_OK;
}

static kprof_status count_launches(const kprof_page_context *context, shares *all)
{
    kprof_model_walk walk = {all->report, all->model, context->options->filter, false};
    kprof_status status = KPROF_OK;
    all->duration = kprof_names_find(&all->model->metric_names, DURATION);
    if (all->duration != KPROF_NAMES_NONE)
        status = kprof_value_reader_open_some(&walk, &all->duration, 1, &all->reader);
    if (status == KPROF_OK)
        status = kprof_model_launches(&walk, count_launch, all);
    kprof_value_reader_close(&all->reader);
    return status;
}

static void show_sources(kprof_emitter *emitter, const shares *all)
{
    emitter->ops->list_begin(emitter, &(kprof_emit_list){"sources", "Sources", KPROF_LIST_TABLE, false});
    for (size_t i = 0; i < all->source_count; i++) {
        const source *own = &all->sources[i];
        const kprof_emit_field fields[] = {
            kprof_field_text("source", "Source", own->name),
            kprof_field_integer("processes", "Processes", (int64_t)own->processes),
            kprof_field_integer("launches", "Launches", (int64_t)own->launches),
            kprof_field_with_unit(kprof_field_real("time", "Kernel time", own->time_ns > 0 ? own->time_ns : NAN), "ns"),
        };
        kprof_show_record(emitter, fields, sizeof fields / sizeof *fields);
    }
    emitter->ops->list_end(emitter);
}

static int by_time(const void *a, const void *b)
{
    const kernel_share *left = a, *right = b;
    if (left->total_ns != right->total_ns)
        return left->total_ns < right->total_ns ? 1 : -1;
    return strcmp(left->kernel->mangled, right->kernel->mangled);
}

/* Sources that never ran a kernel do not count: ranks may have different work. `sorted` has room for all of them. */
static void show_kernel(kprof_emitter *emitter, const shares *all, const kernel_share *own, double *sorted)
{
    size_t count = 0, slowest = 0;
    for (size_t i = 0; i < all->source_count; i++) {
        if (isnan(own->time_ns[i]))
            continue;
        if (count == 0 || own->time_ns[i] > own->time_ns[slowest])
            slowest = i;
        sorted[count++] = own->time_ns[i];
    }
    kprof_sort(sorted, count);
    const double median = count == 0 ? NAN : (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    const double least = count == 0 ? NAN : sorted[0], most = count == 0 ? NAN : sorted[count - 1];
    const double mean = count == 0 ? NAN : own->total_ns / (double)count;
    const kprof_emit_field fields[] = {
        kprof_field_folding(kprof_field_plain(
            kprof_field_text("kernel", "Kernel", kprof_model_kernel_name(own->kernel, emitter->options->kernel_base)))),
        kprof_field_integer("launches", "Launches", (int64_t)own->launches),
        kprof_field_integer("sources", "Sources", (int64_t)count),
        kprof_field_folding_unless(kprof_field_with_unit(kprof_field_real("minimum", "Minimum", least), "ns"),
                                   count == 1),
        kprof_field_with_unit(kprof_field_real("median", "Median", median), "ns"),
        kprof_field_with_unit(kprof_field_real("maximum", "Maximum", most), "ns"),
        kprof_field_with_unit(kprof_field_real("imbalance", "Above mean", mean > 0 ? 100 * (most / mean - 1) : NAN),
                              "%"),
        kprof_field_text("slowest", "Slowest source", count == 0 ? NULL : all->sources[slowest].name),
    };
    kprof_show_record(emitter, fields, sizeof fields / sizeof *fields);
}

static kprof_status show(const kprof_page_context *context, shares *all)
{
    kprof_emitter *emitter = NULL;
    double *sorted = calloc(all->source_count + 1, sizeof *sorted);
    if (!sorted)
        return kprof_store_no_memory(all->report);
    kprof_status status = kprof_page_begin(context, &emitter);
    if (status == KPROF_OK) {
        show_sources(emitter, all);
        if (all->kernel_count > 0)
            qsort(all->kernels, all->kernel_count, sizeof *all->kernels, by_time);
        emitter->ops->list_begin(emitter, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_TABLE, false});
        for (size_t i = 0; i < all->kernel_count; i++)
            show_kernel(emitter, all, &all->kernels[i], sorted);
        emitter->ops->list_end(emitter);
        status = kprof_page_end(emitter, kprof_emitter_status(emitter));
    }
    free(sorted);
    return status;
}

kprof_status kprof_page_sources(const kprof_page_context *context)
{
    shares all = {.model = &context->reports->model, .report = context->reports->file};
    kprof_status status = find_sources(&all);
    if (status == KPROF_OK)
        status = count_launches(context, &all);
    if (status == KPROF_OK)
        status = show(context, &all);
    for (size_t i = 0; i < all.kernel_count; i++)
        free(all.kernels[i].time_ns);
    for (size_t i = 0; i < all.source_count; i++)
        free(all.sources[i].name);
    free(all.kernels);
    free(all.sources);
    free(all.source_of);
    free(all.values);
    free(all.asked);
    kprof_names_free(&all.kernel_numbers);
    return status;
}
