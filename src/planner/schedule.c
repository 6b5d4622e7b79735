/* Reads a config image through NVPW: the raw counters of each pass, and the passes of the raw counters of each metric.
 */
#include "planner/planner.h"

#include "core/log.h"
#include "planner/nvpw.h"

#include <stdlib.h>
#include <string.h>

/* The context of reading one schedule, passed to every depth. */
typedef struct reader {
    kprof_evaluator *evaluator;
    const kprof_config_image *image;
    kprof_raw_config *domains; /* with a group open, to ask where counters are */
    kprof_schedule *out;
    bool *marked;    /* [pass_count], of the metric at hand */
    size_t *indices; /* [pass_count], likewise */
} reader;

static kprof_status read_pass(const reader *r, size_t pass)
{
    kprof_strlist counters = KPROF_STRLIST_INIT; /* witnesses have no place of their own in the placement */
    kprof_placed_counters placed;
    kprof_pass_traits traits = {0};
    kprof_schedule_pass *out = &r->out->passes[pass];
    kprof_status status = kprof_image_counters(r->image, pass, &counters);
    out->counters = (uint32_t)counters.count;
    kprof_strlist_free(&counters);
    if (status != KPROF_OK)
        return status;
    status = kprof_placed_counters_read(r->image, pass, &placed);
    for (size_t i = 0; i < placed.names.count && status == KPROF_OK; i++)
        status = kprof_raw_config_add_traits(
            r->domains, &(kprof_placed_counter){placed.names.items[i], placed.domains[i]}, &traits);
    kprof_placed_counters_free(&placed);
    out->sm_side = traits.in_sm;
    out->is_slow = traits.is_slow;
    out->patches_code = traits.is_patch;
    return status;
}

/* Mark the passes in which the image has a raw counter; false when it has it in none. */
static bool mark_passes(const reader *r, const char *counter)
{
    size_t count = 0;
    if (!kprof_image_passes(r->image, counter, r->indices, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (r->indices[i] < r->out->pass_count)
            r->marked[r->indices[i]] = true;
    }
    return count > 0;
}

static kprof_status take_marked(const reader *r, kprof_pass_list *out)
{
    out->items = calloc(r->out->pass_count + 1, sizeof(*out->items));
    if (!out->items)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < r->out->pass_count; i++) {
        if (r->marked[i])
            out->items[out->count++] = (uint32_t)i;
    }
    return KPROF_OK;
}

static uint32_t last_marked(const reader *r)
{
    size_t last = r->out->pass_count;
    while (last > 1 && !r->marked[last - 1])
        last--;
    return last > 0 ? (uint32_t)(last - 1) : 0;
}

static kprof_status read_metric(const reader *r, const char *name, kprof_pass_list *out, uint32_t *last_pass)
{
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    kprof_status status = kprof_evaluator_raw_counters(r->evaluator, name, &required, &optional);
    for (size_t i = 0; i < required.count && status == KPROF_OK; i++) {
        if (!mark_passes(r, required.items[i]))
            status = kprof_fail(KPROF_INTERNAL, "a config image does not have counter %s", required.items[i]);
    }
    if (status == KPROF_OK)
        status = take_marked(r, out);
    for (size_t i = 0; i < optional.count && status == KPROF_OK; i++)
        (void)mark_passes(r, optional.items[i]);
    *last_pass = last_marked(r);
    memset(r->marked, 0, r->out->pass_count * sizeof(*r->marked));
    kprof_strlist_free(&required);
    kprof_strlist_free(&optional);
    return status;
}

static kprof_status prepare(reader *r, kprof_host *host, size_t metric_count)
{
    kprof_schedule *out = r->out;
    out->pass_count = r->image->pass_count;
    out->metric_count = metric_count;
    out->passes = calloc(out->pass_count + 1, sizeof(*out->passes));
    out->metrics = calloc(metric_count + 1, sizeof(*out->metrics));
    out->last_passes = calloc(metric_count + 1, sizeof(*out->last_passes));
    out->patched = calloc(metric_count + 1, sizeof(*out->patched));
    r->marked = calloc(out->pass_count + 1, sizeof(*r->marked));
    r->indices = calloc(out->pass_count + 1, sizeof(*r->indices));
    if (!out->passes || !out->metrics || !out->last_passes || !out->patched || !r->marked || !r->indices)
        return KPROF_NO_MEMORY;
    kprof_status status = kprof_evaluator_get(host, &r->evaluator);
    if (status == KPROF_OK)
        status = kprof_raw_config_open(host, &r->domains);
    return status == KPROF_OK ? kprof_raw_config_begin(r->domains) : status;
}

static bool is_patched(const kprof_schedule *schedule, const kprof_pass_list *passes)
{
    bool found = false;
    for (size_t i = 0; i < passes->count; i++)
        found = found || schedule->passes[passes->items[i]].patches_code;
    return found;
}

kprof_status kprof_schedule_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 kprof_schedule *out)
{
    reader r = {.image = image, .out = out};
    *out = (kprof_schedule){0};
    kprof_status status = prepare(&r, host, names->count);
    for (size_t i = 0; i < out->pass_count && status == KPROF_OK; i++)
        status = read_pass(&r, i);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = read_metric(&r, names->items[i], &out->metrics[i], &out->last_passes[i]);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        out->patched[i] = is_patched(out, &out->metrics[i]);
    kprof_raw_config_close(r.domains);
    free(r.marked);
    free(r.indices);
    if (status != KPROF_OK)
        kprof_schedule_free(out);
    return status;
}

void kprof_schedule_free(kprof_schedule *schedule)
{
    for (size_t i = 0; schedule->metrics && i < schedule->metric_count; i++)
        free(schedule->metrics[i].items);
    free(schedule->metrics);
    free(schedule->last_passes);
    free(schedule->patched);
    free(schedule->passes);
    *schedule = (kprof_schedule){0};
}
