/* Reads a config image through NVPW: the raw counters of each pass, and the passes of the raw counters of each metric.
 */
#include "planner/planner.h"

#include "core/log.h"
#include "planner/nvpw.h"

#include <stdlib.h>
#include <string.h>

/* The context of reading one schedule. */
typedef struct reader {
    kprof_host *host;
    const kprof_config_image *image;
    kprof_strlist *counters; /* [pass_count], sorted */
    bool *marked;            /* [pass_count], of the metric at hand */
    kprof_schedule *out;
} reader;

/* Witnesses are among the counters of a pass, but have no place of their own in the placement. */
static kprof_status read_pass(const reader *r, kprof_raw_config *config, size_t pass)
{
    kprof_placed_counters placed;
    kprof_traits traits = {0, 0};
    kprof_status status = kprof_image_counters(r->image, pass, &r->counters[pass]);
    if (status != KPROF_OK)
        return status;
    kprof_strlist_sort(&r->counters[pass]);
    status = kprof_placed_counters_read(r->image, pass, &placed);
    for (size_t i = 0; i < placed.names.count && status == KPROF_OK; i++)
        status = kprof_raw_config_add_traits(config, &placed.items[i], &traits);
    kprof_placed_counters_free(&placed);
    r->out->passes[pass] = (kprof_schedule_pass){
        .counters = (uint32_t)r->counters[pass].count,
        .sm_side = traits.possible & KPROF_IN_SM,
        .is_slow = traits.possible & KPROF_IS_SLOW,
        .patches_code = traits.possible & KPROF_IS_PATCH,
    };
    return status;
}

static kprof_status read_passes(const reader *r)
{
    kprof_raw_config *config; /* with a group open, to ask where counters are */
    kprof_status status = kprof_raw_config_open(r->host, false, &config);
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(config, NULL, 0);
    for (size_t i = 0; i < r->out->pass_count && status == KPROF_OK; i++)
        status = read_pass(r, config, i);
    kprof_raw_config_close(config);
    return status;
}

/* Mark the passes in which the image has a raw counter; false when it has it in none. */
static bool mark_passes(const reader *r, const char *counter)
{
    bool found = false;
    for (size_t i = 0; i < r->out->pass_count; i++) {
        bool is_here = kprof_strlist_contains_sorted(&r->counters[i], counter);
        r->marked[i] = r->marked[i] || is_here;
        found = found || is_here;
    }
    return found;
}

static kprof_status read_metric(const reader *r, const char *name, size_t metric)
{
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    kprof_schedule *out = r->out;
    kprof_pass_list *passes = &out->metrics[metric];
    memset(r->marked, 0, out->pass_count * sizeof(*r->marked));
    passes->items = calloc(out->pass_count + 1, sizeof(*passes->items));
    kprof_status status =
        passes->items ? kprof_host_raw_counters(r->host, name, &required, &optional) : KPROF_NO_MEMORY;
    for (size_t i = 0; i < required.count && status == KPROF_OK; i++) {
        if (!mark_passes(r, required.items[i]))
            status = kprof_fail(KPROF_INTERNAL, "a config image does not have counter %s", required.items[i]);
    }
    for (size_t i = 0; i < out->pass_count && status == KPROF_OK; i++) {
        if (!r->marked[i])
            continue;
        passes->items[passes->count++] = (uint32_t)i;
        out->patched[metric] = out->patched[metric] || out->passes[i].patches_code;
    }
    for (size_t i = 0; i < optional.count && status == KPROF_OK; i++)
        (void)mark_passes(r, optional.items[i]);
    for (size_t i = 0; i < out->pass_count; i++)
        out->last_passes[metric] = r->marked[i] ? (uint32_t)i : out->last_passes[metric];
    kprof_strlist_free(&required);
    kprof_strlist_free(&optional);
    return status;
}

kprof_status kprof_schedule_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 kprof_schedule *out)
{
    size_t pass_count = image->pass_count, metric_count = names->count;
    *out = (kprof_schedule){
        .passes = calloc(pass_count + 1, sizeof(*out->passes)),
        .pass_count = pass_count,
        .metrics = calloc(metric_count + 1, sizeof(*out->metrics)),
        .last_passes = calloc(metric_count + 1, sizeof(*out->last_passes)),
        .patched = calloc(metric_count + 1, sizeof(*out->patched)),
        .metric_count = metric_count,
    };
    reader r = {host, image, calloc(pass_count + 1, sizeof(*r.counters)), calloc(pass_count + 1, sizeof(*r.marked)),
                out};
    kprof_status status = KPROF_NO_MEMORY;
    if (out->passes && out->metrics && out->last_passes && out->patched && r.counters && r.marked)
        status = read_passes(&r);
    for (size_t i = 0; i < metric_count && status == KPROF_OK; i++)
        status = read_metric(&r, names->items[i], i);
    for (size_t i = 0; i < pass_count && r.counters; i++)
        kprof_strlist_free(&r.counters[i]);
    free(r.counters);
    free(r.marked);
    if (status != KPROF_OK)
        kprof_schedule_free(out);
    return status;
}
