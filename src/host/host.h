/* CUPTI's Profiler Host API and NVPW behind plain C: what metrics a chip has, how many passes they take, and what a
 * counter data image says. Needs neither GPU nor driver. libcupti and libnvperf_host are loaded at run time
 * (dlopen), for the first answer that is not kept on disk. If they are missing, every call gives UNSUPPORTED and
 * names the places searched. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

typedef enum kprof_metric_type { KPROF_METRIC_COUNTER, KPROF_METRIC_RATIO, KPROF_METRIC_THROUGHPUT } kprof_metric_type;

typedef struct kprof_metric_info {
    char *name; /* base name */
    char *description, *hw_unit;
    char *unit; /* in base units, as reports have it: "ns", "byte", "byte/second", "%" ... */
    kprof_metric_type type;
} kprof_metric_info;

/* Length of the base name in a full or base name: "dram__bytes" of "dram__bytes.sum.per_second". A unit may have dots
 * of its own, as in "TPC.TriageCompute.sm__cycles_active.avg". */
static inline size_t kprof_metric_base_length(const char *name)
{
    const char *counter = strstr(name, "__");
    size_t unit = counter ? (size_t)(counter - name) : 0;
    return unit + strcspn(name + unit, ".");
}

/* One chip's host object. Not thread-safe: one per thread. */
typedef struct kprof_host kprof_host;

/* Names of the chips that the library knows and kprof supports, appended to `out`. */
kprof_status kprof_host_chips(kprof_strlist *out) KPROF_MUST_CHECK;

/* A chip, as NVIDIA publishes it. */
typedef struct kprof_chip {
    const char *name;
    int capability;   /* its compute capability: 90 is 9.0 */
    const char *gpus; /* some that have it: "H100, H200, GH200" */
} kprof_chip;
/* In capitals or small letters; NULL: nothing is known of it. */
const kprof_chip *kprof_chip_find(const char *name);
/* A chip whose compute capability is less than kprof supports; false for one that kprof does not know. */
bool kprof_chip_is_too_old(const char *name);
/* UNSUPPORTED, with a message, for the name of such a chip, and for what stands for it: a GPU such as "V100", an
 * architecture or a compute capability. UNKNOWN_NAME for a word that is not in `known`, with the chips that it stands
 * for, or else the nearest name. NULL: it is not known which chips there are, and no word is unknown. */
kprof_status kprof_chip_check(const char *word, const kprof_strlist *known) KPROF_MUST_CHECK;

/* A device's counter availability image: which of its counters can be used now. Borrowed while the host is open. */
typedef struct kprof_availability {
    const void *image;
    size_t size;
} kprof_availability;

/* `availability` NULL: the chip in general. UNKNOWN_NAME for a chip that the library does not know. */
kprof_status kprof_host_open(const char *chip, const kprof_availability *availability,
                             kprof_host **out) KPROF_MUST_CHECK;
/* As before, for the chip in general, inside an application: nothing is read from disk or kept there. */
kprof_status kprof_host_open_apart(const char *chip, kprof_host **out) KPROF_MUST_CHECK;
/* For counters sampled over time: kprof_host_evaluate takes their counter data, and each range is a sample. */
kprof_status kprof_host_open_sampler(const char *chip, kprof_host **out) KPROF_MUST_CHECK;
void kprof_host_close(kprof_host *host);
const char *kprof_host_chip(const kprof_host *host);
/* The same for messages: "chip GH100". */
const char *kprof_host_label(const kprof_host *host);

/* Base names of one type, appended to `out`; suffixes ("avg.pct_of_peak_sustained_active") of a base name, likewise. */
kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out) KPROF_MUST_CHECK;
kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out) KPROF_MUST_CHECK;
/* Names that make up a throughput metric ("breakdown:"), with the same suffix; no further passes. */
kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out) KPROF_MUST_CHECK;

/* Details of a full or base name; caller frees with kprof_metric_info_free. UNKNOWN_NAME when the chip has no such. */
kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out) KPROF_MUST_CHECK;
static inline void kprof_metric_info_free(kprof_metric_info *info) /* members, not the struct */
{
    free(info->name);
    free(info->description);
    free(info->hw_unit);
    free(info->unit);
    *info = (kprof_metric_info){0};
}

/* True when the chip has a metric of this full or base name, whether or not kprof can collect it. */
bool kprof_host_has_metric(kprof_host *host, const char *name);
/* Find out for many names at once what kprof_host_can_collect will say: much faster than one by one. */
kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names) KPROF_MUST_CHECK;
/* True when the range profiler can collect this full name beside a kernel's counters on the chip; the answer is
 * remembered. False for NVLink, PCIe and C2C counters, which CUPTI schedules only by themselves. */
bool kprof_host_can_collect(kprof_host *host, const char *name);

/* Does an SM work? Each sample over time has it beside its other metrics, on all chips. */
#define KPROF_SAMPLE_ACTIVITY "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
/* True when one pass samples this full name over time, beside KPROF_SAMPLE_ACTIVITY; the answer is remembered. */
bool kprof_host_can_sample(kprof_host *host, const char *name);

/* Schedules metrics into passes. */
typedef struct kprof_config_image {
    uint8_t *data;
    size_t size, pass_count;
} kprof_config_image;
static inline void kprof_config_image_free(kprof_config_image *image) /* members */
{
    free(image->data);
    *image = (kprof_config_image){0};
}

/* Make the config image that samples these names over time. CUPTI takes it where pass_count is 1. Caller frees *out. */
kprof_status kprof_host_sample_image(kprof_host *host, const kprof_strlist *names,
                                     kprof_config_image *out) KPROF_MUST_CHECK;

/* Values of `names` in one range of a decoded counter data image: `values` is [names->count], NaN where CUPTI has
 * none. One name that the chip does not have fails the whole call. */
typedef struct kprof_counter_data {
    const uint8_t *data;
    size_t size, range;
} kprof_counter_data;
kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values) KPROF_MUST_CHECK;

/* A question about a list of names whose answer is kept on disk: it depends on nothing but the chip, its availability,
 * the library, the sources of src/host and the list. */
typedef struct kprof_host_question {
    const kprof_host *host;
    const char *what; /* the kind of question */
    const kprof_strlist *names;
} kprof_host_question;
/* Append the answer to `out`; false when none is kept for exactly this question. */
bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out);
void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size);
