/* The sources page: how evenly kernels load merged reports or, in the report of one run, its processes. */
#include "report/model/change.h"
#include "report/model/robust.h"
#include "report/model/witness.h"
#include "report/page/page.h"
#include "report/store/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    char *name;
    uint64_t processes, launches;
    double time_ns;
} source;

typedef struct timed_launches {
    uint64_t launches, timed, set_apart; /* set apart: samples with times whose passes disagree */
    double timed_ns, set_apart_ns;       /* of all of them */
} timed_launches;

/* The launches of one kernel in one source. */
typedef struct load {
    timed_launches multiplexed, others;
    uint64_t counted_ns; /* of all launches, by a census; 0: there was none */
    double time_ns;      /* of all launches, known once all are counted; NaN: none has a time */
} load;

typedef struct kernel_share {
    const kprof_model_kernel *kernel;
    uint64_t launches, multiplexed;
    uint64_t seen; /* all launches of the kernel, also those that no filter chose */
    double total_ns;
    load *loads; /* [source_count] */
} kernel_share;

struct kprof_page_shares {
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
    double *sorted; /* [source_count] */
    bool is_merged; /* its sources are reports, not processes */
};

typedef struct kprof_page_shares shares;

static void take_processes(shares *all)
{
    for (size_t i = 0; i < all->model->process_count; i++) {
        const kprof_model_process *process = &all->model->processes[i];
        all->source_of[i] = all->source_count;
        KPROF_POOL_ADD(all->model->pool, all->sources, all->source_count)->name = kprof_pool_keep(
            all->model->pool, kprof_strprintf("%s %ld on %s", process->name, process->pid, process->host));
    }
}

static void find_sources(shares *all)
{
    const kprof_model *model = all->model;
    all->source_of = kprof_pool_calloc(model->pool, model->process_count + 1, sizeof *all->source_of);
    all->values = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *all->values);
    all->asked = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *all->asked);
    if (all->report->version >= 5)
        KPROF_EACH_ROW(rows, all->report, "SELECT id, name FROM source ORDER BY id") {
            source *own = KPROF_POOL_ADD(all->model->pool, all->sources, all->source_count);
            own->name = kprof_pool_keep(all->model->pool, kprof_store_text(all->report, rows.row, 1));
            if (sqlite3_column_int64(rows.row, 0) != (int64_t)all->source_count)
                kprof_store_damaged(all->report, "source");
        }
    all->is_merged = all->source_count > 0;
    if (all->is_merged) {
        static const char query[] = "SELECT process_id, source_id FROM process_source ORDER BY process_id";
        KPROF_EACH_ROW(rows, all->report, query) {
            int64_t process = sqlite3_column_int64(rows.row, 0), from = sqlite3_column_int64(rows.row, 1);
            bool rises = process > all->last_process;
            all->last_process = process;
            if (rises && process <= (int64_t)all->model->process_count && from >= 1 &&
                from <= (int64_t)all->source_count)
                all->source_of[process - 1] = (size_t)from - 1;
            else
                kprof_store_damaged(all->report, "process_source");
        }
    } else {
        take_processes(all);
    }
    for (size_t i = 0; i < model->process_count; i++)
        all->sources[all->source_of[i]].processes++;
}

/* The kernel of that name, which several rows may have. NULL: there are too many. */
static kernel_share *find_share(shares *all, const kprof_model_kernel *kernel)
{
    size_t number = kprof_names_find(&all->kernel_numbers, kernel->mangled);
    if (number == KPROF_NAMES_NONE) {
        number = all->kernel_count;
        if ((number + 1) * all->source_count > KPROF_SUMMARY_MAX) {
            kprof_store_too_much(all->report, KPROF_SUMMARY_MAX, "kernels times sources");
            return NULL;
        }
        kernel_share *added = KPROF_POOL_ADD(all->model->pool, all->kernels, all->kernel_count);
        added->loads = kprof_pool_calloc(all->model->pool, all->source_count + 1, sizeof *added->loads);
        added->kernel = kernel;
        kprof_names_add(&all->kernel_numbers, kernel->mangled, number);
    }
    return &all->kernels[number];
}

static kprof_status add_time(shares *all, const kprof_model_launch *launch, timed_launches *counts)
{
    kprof_model_launch with_values = *launch;
    kprof_status status = kprof_value_reader_read(&all->reader, launch->id, all->values, all->asked);
    const double time_ns = all->values[all->duration];
    if (status != KPROF_OK || !isfinite(time_ns))
        return status;
    with_values.values = all->values;
    const bool agrees = !kprof_model_is_multiplexed(launch) || kprof_disagreements(all->model, &with_values, NULL) == 0;
    counts->timed += agrees;
    counts->timed_ns += agrees ? time_ns : 0;
    counts->set_apart += !agrees;
    counts->set_apart_ns += agrees ? 0 : time_ns;
    return KPROF_OK;
}

static kprof_status count_launch(void *user, const kprof_model_launch *launch)
{
    shares *all = user;
    const size_t number = all->source_of[launch->process - all->model->processes];
    kernel_share *own = find_share(all, launch->kernel);
    if (!own)
        return all->report->status;
    own->launches++;
    own->multiplexed += kprof_model_is_multiplexed(launch);
    load *of = &own->loads[number];
    timed_launches *counts = kprof_model_is_multiplexed(launch) ? &of->multiplexed : &of->others;
    counts->launches++;
    all->sources[number].launches++;
    return all->duration == KPROF_NAMES_NONE ? KPROF_OK : add_time(all, launch, counts);
}

static double time_of(const timed_launches *counts, double mean_ns)
{
    return (counts->timed ? counts->timed_ns / (double)counts->timed : mean_ns) * (double)counts->launches;
}

/* In each sample, one multiplexed launch has a time, which stands for the others. A census has timed all launches, also
 * those that nothing else was measured of; where the program ran once more for that, it is not counted again. */
static void find_time(const shares *all, load *of)
{
    timed_launches *multiplexed = &of->multiplexed;
    const timed_launches *others = &of->others;
    if (multiplexed->timed == 0) { /* where no sample's passes agree, all samples count */
        multiplexed->timed = multiplexed->set_apart;
        multiplexed->timed_ns = multiplexed->set_apart_ns;
    }
    const uint64_t timed = multiplexed->timed + others->timed;
    const double mean_ns = timed ? (multiplexed->timed_ns + others->timed_ns) / (double)timed : NAN;
    const bool is_once_more = of->counted_ns == 0 && !all->is_merged && all->model->census_count > 0;
    of->time_ns = of->counted_ns > 0       ? (double)of->counted_ns
                  : timed && !is_once_more ? time_of(multiplexed, mean_ns) + time_of(others, mean_ns)
                                           : NAN;
}

/* Take the census of the kernels whose launches were measured, which the page is about; of all kernels where no launch
 * was. */
static void take_census(shares *all)
{
    const bool is_alone = all->kernel_count == 0;
    for (size_t i = 0; i < all->model->census_count; i++) {
        const kprof_model_census *row = &all->model->census[i];
        const kprof_model_kernel *kernel = &all->model->kernels[row->kernel_id - 1];
        const size_t from = all->source_of[row->process_id - 1];
        const size_t number = kprof_names_find(&all->kernel_numbers, kernel->mangled);
        kernel_share *own = number != KPROF_NAMES_NONE ? &all->kernels[number]
                            : is_alone                 ? find_share(all, kernel)
                                                       : NULL;
        if (!own)
            continue;
        own->loads[from].counted_ns += row->total_ns;
        own->launches += is_alone ? row->launches : 0;
        all->sources[from].launches += is_alone ? row->launches : 0;
    }
}

static void add_times(shares *all)
{
    for (size_t i = 0; i < all->kernel_count; i++) {
        kernel_share *own = &all->kernels[i];
        for (size_t k = 0; k < all->source_count; k++) {
            find_time(all, &own->loads[k]);
            const double time_ns = isnan(own->loads[k].time_ns) ? 0 : own->loads[k].time_ns;
            own->total_ns += time_ns;
            all->sources[k].time_ns += time_ns;
        }
    }
}

static kprof_status count_launches(const kprof_page_context *context, shares *all)
{
    kprof_model_walk walk = {all->report, all->model, context->options->filter, false};
    all->duration = kprof_names_find(&all->model->metric_names, KPROF_TIME_METRIC);
    if (all->duration != KPROF_NAMES_NONE) {
        /* Read times, and the witnesses that tell which samples are set apart. */
        const size_t witnesses = all->model->witness_count;
        KPROF_AUTO_FREE size_t *metrics = kprof_calloc(witnesses + 1, sizeof *metrics);
        if (witnesses > 0)
            memcpy(metrics, all->model->witnesses, witnesses * sizeof *metrics);
        metrics[witnesses] = all->duration;
        kprof_value_reader_open_some(&walk, metrics, witnesses + 1, &all->reader);
    }
    const kprof_status status = kprof_model_launches(&walk, count_launch, all);
    take_census(all);
    add_times(all);
    for (size_t i = 0; i < all->model->kernel_count; i++) {
        const kprof_model_kernel *kernel = &all->model->kernels[i];
        const size_t number = kprof_names_find(&all->kernel_numbers, kernel->mangled);
        if (number != KPROF_NAMES_NONE)
            all->kernels[number].seen += kernel->launches;
    }
    kprof_value_reader_close(&all->reader);
    return status;
}

static void show_sources(kprof_emitter *emitter, const shares *all, const char *title)
{
    kprof_list_begin(emitter, "sources", title, KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < all->source_count; i++) {
        const source *own = &all->sources[i];
        const kprof_emit_field fields[] = {
            kprof_field_text("source", "Source", own->name),
            kprof_field_amount("processes", "Processes", own->processes),
            kprof_field_amount("launches", "Launches", own->launches),
            kprof_field_ns("time", "Kernel time", own->time_ns > 0 ? own->time_ns : NAN),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

KPROF_BY_BOTH(by_time, kernel_share, KPROF_COMPARE(b->total_ns, a->total_ns),
              strcmp(a->kernel->mangled, b->kernel->mangled))

/* Mention multiplexed launches, which samples stand for, and launches after the last sample. */
static void describe_note(const kernel_share *own, kprof_strbuf *out)
{
    if (own->multiplexed == 0)
        return;
    kprof_strbuf_printf(out, "%lu of %lu launch%s multiplexed", own->multiplexed, own->launches,
                        kprof_ending(own->launches, "es"));
    kprof_untold_note(own->seen > own->launches ? own->seen - own->launches : 0, out);
}

/* Ranks may have different work, so sources that never ran a kernel do not count. */
static kprof_source_spread spread_of(const shares *all, const kernel_share *own)
{
    kprof_source_spread spread = {.least_ns = NAN, .median_ns = NAN, .most_ns = NAN, .mean_ns = NAN};
    size_t slowest = 0;
    for (size_t i = 0; i < all->source_count; i++) {
        if (isnan(own->loads[i].time_ns))
            continue;
        if (spread.count == 0 || own->loads[i].time_ns > own->loads[slowest].time_ns)
            slowest = i;
        all->sorted[spread.count++] = own->loads[i].time_ns;
    }
    if (spread.count == 0)
        return spread;
    kprof_sort(all->sorted, spread.count);
    spread.least_ns = all->sorted[0];
    spread.median_ns = (all->sorted[(spread.count - 1) / 2] + all->sorted[spread.count / 2]) / 2;
    spread.most_ns = all->sorted[spread.count - 1];
    spread.mean_ns = own->total_ns / (double)spread.count;
    spread.slowest = all->sources[slowest].name;
    return spread;
}

kprof_source_spread kprof_page_shares_of(const kprof_page_shares *all, const kprof_model_kernel *kernel)
{
    const size_t number = kprof_names_find(&all->kernel_numbers, kernel->mangled);
    return number == KPROF_NAMES_NONE ? (kprof_source_spread){.least_ns = NAN, .median_ns = NAN, .most_ns = NAN}
                                      : spread_of(all, &all->kernels[number]);
}

const char *kprof_page_shares_label(const kprof_page_shares *all)
{
    const bool spreads = all->is_merged || KPROF_ANY(i, all->kernel_count, spread_of(all, &all->kernels[i]).count > 1);
    return all->source_count < 2 || !spreads ? NULL : all->is_merged ? "Reports" : "Processes";
}

static void show_kernel(kprof_emitter *emitter, const shares *all, const kernel_share *own)
{
    const kprof_source_spread spread = spread_of(all, own);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    describe_note(own, &text);
    const kprof_emit_field fields[] = {
        kprof_field_text("kernel", "Kernel", kprof_model_kernel_name(own->kernel, emitter->options->kernel_base),
                         .plain = true, .folds = true),
        kprof_field_amount("launches", "Launches", own->launches),
        kprof_field_amount("sources", "Sources", spread.count),
        kprof_field_ns("minimum", "Least total", spread.least_ns, .folds = true, .is_told = spread.count == 1),
        kprof_field_ns("median", "Median total", spread.median_ns),
        kprof_field_ns("maximum", "Largest total", spread.most_ns),
        kprof_field_pct("imbalance", "Above mean",
                        spread.mean_ns > 0 ? 100 * (spread.most_ns / spread.mean_ns - 1) : NAN),
        kprof_field_text("slowest", "Slowest source", spread.slowest),
        or_nothing(kprof_field_text("note", "Note", kprof_strbuf_or_null(&text), .folds = true)),
    };
    kprof_show_record(emitter, fields, COUNT_OF(fields));
}

static void show_kernels(kprof_emitter *emitter, const shares *all, const kprof_emit_list *list)
{
    if (all->kernel_count > 0)
        qsort(all->kernels, all->kernel_count, sizeof *all->kernels, by_time);
    emitter->ops->list_begin(emitter, list);
    for (size_t i = 0; i < all->kernel_count; i++)
        show_kernel(emitter, all, &all->kernels[i]);
    emitter->ops->list_end(emitter);
}

static kprof_status show(const kprof_page_context *context, shares *all)
{
    kprof_emitter *emitter = kprof_page_begin(context);
    show_sources(emitter, all, "Sources");
    show_kernels(emitter, all, &(kprof_emit_list){"kernels", "Kernels", KPROF_LIST_TABLE, false});
    return kprof_page_end(emitter, KPROF_OK);
}

kprof_status kprof_page_shares_new(const kprof_page_context *context, kprof_page_shares **out)
{
    const kprof_model *model = &context->reports->model;
    kprof_page_shares *all = *out = kprof_pool_calloc(model->pool, 1, sizeof *all);
    all->model = model;
    all->report = context->reports->file;
    all->kernel_numbers.pool = model->pool;
    find_sources(all);
    all->sorted = kprof_pool_calloc(model->pool, all->source_count + 1, sizeof *all->sorted);
    return count_launches(context, all);
}

kprof_status kprof_page_show_shares(kprof_emitter *emitter, const kprof_page_context *context)
{
    shares *all = NULL;
    const kprof_status status = kprof_page_shares_new(context, &all);
    if (status == KPROF_OK && kprof_page_shares_label(all)) {
        show_sources(emitter, all, all->is_merged ? "Reports" : "Time of each process");
        show_kernels(emitter, all,
                     &(kprof_emit_list){"shares",
                                        all->is_merged ? "Kernels over the reports" : "Kernels over the processes",
                                        KPROF_LIST_TABLE, false});
    }
    return status;
}

kprof_status kprof_page_sources(const kprof_page_context *context)
{
    kprof_page_shares *all = NULL;
    kprof_status status = kprof_page_shares_new(context, &all);
    return KPROF_THEN(status, show(context, all));
}
