/* Prometheus' text format: the statistics of each kernel as gauges. All lines of a gauge have to stand together, so
 * keep the numbers of all kernels until the end, and each shared text once. */
#include "report/emit/emit.h"
#include "report/model/number.h"

#include <math.h>
#include <string.h>

typedef struct gauge {
    const char *key, *name, *help;
} gauge;

/* The gauges of a kernel, and those of a metric of a kernel. Fields of other keys are no gauges. */
static const gauge kernel_gauges[] = {
    {"invocations", "kprof_kernel_launches", "Launches of the kernel."},
    {"not_measured", "kprof_kernel_launches_not_measured", "Launches of the kernel that could not be measured."},
    {"not_counted", "kprof_kernel_launches_not_counted", "More launches of a multiplexed kernel, not counted here."},
};
static const gauge metric_gauges[] = {
    {"count", "kprof_metric_values", "Launches or samples of the kernel that have a value of the metric."},
    {"minimum", "kprof_metric_minimum", "Smallest value over the launches of the kernel, in the unit of the label."},
    {"maximum", "kprof_metric_maximum", "Largest value over the launches of the kernel, in the unit of the label."},
    {"average", "kprof_metric_average", "Mean value over the launches of the kernel, in the unit of the label."},
    {"sum", "kprof_metric_sum", "Sum over the launches of the kernel, in the unit of the label."},
};
enum { KERNEL_GAUGES = COUNT_OF(kernel_gauges), METRIC_GAUGES = COUNT_OF(metric_gauges), MOST_GAUGES = METRIC_GAUGES };
static const char *const kernel_labels[] = {"kernel", "function", "device_name", "cc"};
static const char *const metric_labels[] = {"metric", "unit", "section"};

/* The numbers of a kernel, or of a metric of a kernel. */
typedef struct numbers {
    const char *labels;    /* of a kernel, as they are printed */
    size_t kernel, metric; /* into the numbers of kernels, and the labels of metrics */
    double values[MOST_GAUGES];
} numbers;

typedef struct prometheus_emitter {
    kprof_emitter base;
    numbers *of_kernels; /* [kernel_count] */
    size_t kernel_count;
    kprof_names metrics; /* the labels of each, by their numbers */
    numbers *of_metrics;
    size_t count;
} prometheus_emitter;

static prometheus_emitter *of(kprof_emitter *emitter)
{
    return (prometheus_emitter *)emitter;
}

static void put_label(kprof_strbuf *out, const char *name, const char *value)
{
    kprof_strbuf_printf(out, "%s%s=\"", out->length ? "," : "", name);
    while (*value) {
        size_t plain = strcspn(value, "\"\\\n");
        kprof_strbuf_append(out, value, plain);
        value += plain;
        if (*value) {
            const char escaped[] = {'\\', *value == '\n' ? 'n' : *value};
            kprof_strbuf_append(out, escaped, sizeof escaped);
            value++;
        }
    }
    kprof_strbuf_puts(out, "\"");
}

static void put_labels(kprof_strbuf *out, const kprof_emit_record *record, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const kprof_emit_field *field = kprof_record_find(record, keys[i]);
        put_label(out, keys[i], field && field->text ? field->text : "");
    }
}

static void read_gauges(const kprof_emit_record *record, const gauge *gauges, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++) {
        const kprof_emit_field *field = kprof_record_find(record, gauges[i].key);
        out[i] = !field || kprof_field_is_missing(field) ? NAN
                 : field->type == KPROF_FIELD_INTEGER    ? (double)field->integer
                                                         : field->real;
    }
}

static void prometheus_record_begin(kprof_emitter *emitter, const kprof_emit_record *record)
{
    prometheus_emitter *all = of(emitter);
    kprof_strbuf labels = KPROF_STRBUF_INIT;
    const kprof_emit_field *samples = kprof_record_find(record, "samples");
    put_labels(&labels, record, kernel_labels, COUNT_OF(kernel_labels));
    put_label(&labels, "multiplexed", samples && !kprof_field_is_missing(samples) ? "yes" : "no");
    numbers *own = KPROF_POOL_ADD(&emitter->pool, all->of_kernels, all->kernel_count);
    own->kernel = all->kernel_count - 1;
    own->labels = kprof_pool_keep(&emitter->pool, kprof_strbuf_take(&labels));
    read_gauges(record, kernel_gauges, KERNEL_GAUGES, own->values);
}

static void prometheus_row(kprof_emitter *emitter, const kprof_emit_record *row)
{
    prometheus_emitter *all = of(emitter);
    KPROF_AUTO(kprof_strbuf) labels = KPROF_STRBUF_INIT;
    if (all->kernel_count == 0)
        return;
    put_labels(&labels, row, metric_labels, COUNT_OF(metric_labels));
    numbers *own = KPROF_POOL_ADD(&emitter->pool, all->of_metrics, all->count);
    all->metrics.pool = &emitter->pool;
    own->kernel = all->kernel_count - 1;
    kprof_names_number(&all->metrics, labels.data, &own->metric);
    read_gauges(row, metric_gauges, METRIC_GAUGES, own->values);
}

/* A line for each kernel, or metric of a kernel, that has a number. */
static void print_gauge(prometheus_emitter *all, const gauge *what, const numbers *rows, size_t count)
{
    kprof_output *out = all->base.out;
    const bool is_of_kernel = what >= kernel_gauges && what < kernel_gauges + KERNEL_GAUGES;
    const size_t column = (size_t)(what - (is_of_kernel ? kernel_gauges : metric_gauges));
    if (count == 0)
        return;
    kprof_output_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", what->name, what->help, what->name);
    for (size_t i = 0; i < count && !out->error; i++) {
        char number[KPROF_NUMBER_SIZE];
        if (isnan(rows[i].values[column]))
            continue;
        kprof_number_exact(number, rows[i].values[column]);
        kprof_output_printf(out, "%s{%s%s%s} %s\n", what->name, all->of_kernels[rows[i].kernel].labels,
                            is_of_kernel ? "" : ",", is_of_kernel ? "" : all->metrics.copies.items[rows[i].metric],
                            number);
    }
}

static void prometheus_page_end(kprof_emitter *emitter)
{
    prometheus_emitter *all = of(emitter);
    for (size_t i = 0; i < KERNEL_GAUGES; i++)
        print_gauge(all, &kernel_gauges[i], all->of_kernels, all->kernel_count);
    for (size_t i = 0; i < METRIC_GAUGES; i++)
        print_gauge(all, &metric_gauges[i], all->of_metrics, all->count);
}

const kprof_emitter_ops kprof_emit_prometheus = {
    .size = sizeof(prometheus_emitter),
    .record_begin = prometheus_record_begin,
    .row = prometheus_row,
    .page_end = prometheus_page_end,
};
