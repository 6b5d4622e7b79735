/* Puts further metrics into a config image: NVPW's scheduler gets a group for each of the image's passes, with the
 * counters that the pass has and then those of metrics for which it has room. */
#include "core/log.h"
#include "planner/placement.h"
#include "planner/raw_config.h"

#include <stdlib.h>

typedef struct filler {
    kprof_host *host;
    kprof_fill *fill;
    kprof_strlist *counters; /* [wanted->count]: what each metric is computed from */
    kprof_strlist placed;    /* counters of all passes */
    kprof_strbuf placement;
    kprof_raw_config *config;
    size_t pass_count, sm_passes, slow_passes; /* the last two: that may still become so */
    size_t counter_count;                      /* in the open pass */
    kprof_pass_traits pass;                    /* likewise */
} filler;

static kprof_status list_counters(filler *f)
{
    kprof_evaluator *evaluator;
    const kprof_strlist *wanted = f->fill->wanted;
    f->counters = calloc(wanted->count + 1, sizeof(*f->counters));
    kprof_status status = f->counters ? kprof_evaluator_get(f->host, &evaluator) : KPROF_NO_MEMORY;
    for (size_t i = 0; i < wanted->count && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(evaluator, wanted->items[i], &f->counters[i], NULL);
    return status;
}

static kprof_status list_placed(filler *f, const kprof_config_image *image)
{
    kprof_status status = KPROF_OK;
    for (size_t pass = 0; pass < image->pass_count && status == KPROF_OK; pass++)
        status = kprof_image_counters(image, pass, &f->placed);
    return status;
}

/* What no pass has of a metric's counters. */
typedef struct missing_counters {
    kprof_strlist names; /* borrowed; caller frees the items */
    kprof_pass_traits traits;
    size_t patch_count; /* of those that are counted by patched code */
} missing_counters;

static kprof_status add_missing(const filler *f, char *counter, missing_counters *out)
{
    kprof_pass_traits traits = {0};
    kprof_placed_counter placed = {counter, 0};
    kprof_status status = kprof_raw_config_add_traits(f->config, &placed, &traits);
    out->names.items[out->names.count++] = counter;
    out->traits.in_sm = out->traits.in_sm || traits.in_sm;
    out->traits.is_slow = out->traits.is_slow || traits.is_slow;
    out->patch_count += traits.is_patch;
    return status;
}

static kprof_status list_missing(const filler *f, size_t metric, missing_counters *out)
{
    const kprof_strlist *counters = &f->counters[metric];
    kprof_status status = KPROF_OK;
    *out = (missing_counters){.names.items = calloc(counters->count + 1, sizeof(*out->names.items))};
    if (!out->names.items)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < counters->count && status == KPROF_OK; i++) {
        if (!kprof_strlist_contains(&f->placed, counters->items[i]))
            status = add_missing(f, counters->items[i], out);
    }
    return status;
}

/* The open pass does not become dearer than it may. Patched code takes a pass of its own. */
static bool may_place(const filler *f, const missing_counters *missing)
{
    bool becomes_sm = missing->traits.in_sm && !f->pass.in_sm,
         becomes_slow = missing->traits.is_slow && !f->pass.is_slow;
    bool is_patch_pass = f->counter_count == 0 ? missing->patch_count > 0 : f->pass.is_patch;
    return missing->patch_count == (is_patch_pass ? missing->names.count : 0) && (!becomes_sm || f->sm_passes > 0) &&
           (!becomes_slow || f->slow_passes > 0);
}

static kprof_status place(filler *f, const kprof_strlist *counters)
{
    kprof_status status = kprof_raw_config_add(f->config, counters);
    for (size_t i = 0; i < counters->count && status == KPROF_OK; i++) {
        kprof_placement_put(&f->placement, counters->items[i], 0);
        status = kprof_strlist_add(&f->placed, counters->items[i]) ? KPROF_OK : KPROF_NO_MEMORY;
    }
    return status;
}

static kprof_status place_missing(filler *f, const missing_counters *missing)
{
    f->sm_passes -= missing->traits.in_sm && !f->pass.in_sm;
    f->slow_passes -= missing->traits.is_slow && !f->pass.is_slow;
    f->pass.in_sm = f->pass.in_sm || missing->traits.in_sm;
    f->pass.is_slow = f->pass.is_slow || missing->traits.is_slow;
    f->pass.is_patch = f->pass.is_patch || missing->patch_count > 0;
    f->counter_count += missing->names.count;
    return place(f, &missing->names);
}

/* Add a metric to the open pass if there is room for all that it lacks. */
static kprof_status try_metric(filler *f, size_t metric)
{
    missing_counters missing;
    kprof_status status = list_missing(f, metric, &missing);
    bool is_there = missing.names.count == 0, fits = is_there || may_place(f, &missing);
    if (status == KPROF_OK && !is_there && fits)
        status = kprof_raw_config_fits(f->config, &missing.names, &fits);
    if (status == KPROF_OK && !is_there && fits)
        status = place_missing(f, &missing);
    f->fill->found[metric] = status == KPROF_OK && fits;
    free(missing.names.items);
    return status;
}

static kprof_status fill_pass(filler *f)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < f->fill->wanted->count && status == KPROF_OK; i++) {
        if (!f->fill->found[i])
            status = try_metric(f, i);
    }
    return status;
}

static kprof_status put_own(filler *f, const kprof_config_image *image, size_t pass)
{
    kprof_placed_counters counters;
    kprof_status status = kprof_placed_counters_read(image, pass, &counters);
    if (status == KPROF_OK)
        status = kprof_raw_config_put_all(f->config, &counters);
    for (size_t i = 0; i < counters.names.count && status == KPROF_OK; i++) {
        kprof_placed_counter counter = {counters.names.items[i], counters.domains[i]};
        kprof_placement_put(&f->placement, counter.name, counter.domain);
        status = kprof_raw_config_add_traits(f->config, &counter, &f->pass);
    }
    f->counter_count = counters.names.count;
    kprof_placed_counters_free(&counters);
    return status;
}

static kprof_status walk_passes(filler *f, const kprof_config_image *image)
{
    kprof_status status = KPROF_OK;
    size_t own = image->pass_count, count = own + f->fill->new_passes;
    for (size_t pass = 0; pass < count && status == KPROF_OK; pass++) {
        size_t before = f->placed.count;
        f->pass = (kprof_pass_traits){0};
        f->counter_count = 0;
        status = kprof_raw_config_begin(f->config);
        if (status == KPROF_OK && pass < own)
            status = put_own(f, image, pass);
        if (status == KPROF_OK)
            status = fill_pass(f);
        if (status == KPROF_OK)
            status = kprof_raw_config_end(f->config);
        if (pass < own || f->placed.count > before) {
            kprof_placement_end_pass(&f->placement);
            f->pass_count++;
        }
    }
    return status;
}

static kprof_status take_image(filler *f, kprof_config_image *out)
{
    kprof_status status = kprof_raw_config_image(f->host, f->config, out);
    if (status != KPROF_OK)
        return status;
    out->placement = kprof_strbuf_take(&f->placement);
    if (!out->placement)
        status = KPROF_NO_MEMORY;
    else if (out->pass_count != f->pass_count)
        status = kprof_fail(KPROF_INTERNAL, "filling passes made %zu of %zu", out->pass_count, f->pass_count);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

static void filler_free(filler *f)
{
    for (size_t i = 0; f->counters && i < f->fill->wanted->count; i++)
        kprof_strlist_free(&f->counters[i]);
    free(f->counters);
    kprof_strlist_free(&f->placed);
    kprof_strbuf_free(&f->placement);
    kprof_raw_config_close(f->config);
}

kprof_status kprof_host_fill(kprof_host *host, kprof_fill *fill, const kprof_config_image *image,
                             kprof_config_image *out)
{
    *out = (kprof_config_image){0};
    filler f = {.host = host, .fill = fill, .placement = KPROF_STRBUF_INIT};
    f.sm_passes = fill->sm_passes;
    f.slow_passes = fill->slow_passes;
    for (size_t i = 0; i < fill->wanted->count; i++)
        fill->found[i] = false;
    kprof_status status = kprof_raw_config_open_quietly(host, &f.config);
    if (status == KPROF_OK)
        status = list_counters(&f);
    if (status == KPROF_OK)
        status = list_placed(&f, image);
    if (status == KPROF_OK)
        status = walk_passes(&f, image);
    if (status == KPROF_OK && f.pass_count > 0)
        status = take_image(&f, out);
    filler_free(&f);
    return status;
}
