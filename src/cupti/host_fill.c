/* Puts further metrics into a config image: NVPW's scheduler gets a group for each of the image's passes, with the
 * counters that the pass has and then those of metrics for which it has room. */
#include "core/log.h"
#include "cupti/placement.h"
#include "cupti/raw_config.h"

#include <stdlib.h>

typedef struct filler {
    kprof_host *host;
    kprof_fill *fill;
    kprof_strlist *counters; /* [wanted->count]: what each metric is computed from */
    kprof_strlist placed;    /* counters of all passes */
    kprof_strbuf placement;
    kprof_raw_config *config;
    size_t pass_count, slow_passes; /* slow_passes: that may still become slow */
    bool is_slow;                   /* the open pass */
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

/* A counter where it is placed, or where NVPW may place it. */
static kprof_status note_place(const filler *f, const kprof_placed_counter *counter, bool *slow, bool *patch)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(f->config, counter->name, &places);
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        bool may_be_there = counter->domain == 0 || counter->domain == places.items[i];
        *slow = *slow || (may_be_there && kprof_place_is_slow(places.items[i]));
        *patch = *patch || kprof_place_is_patch(places.items[i]);
    }
    return status;
}

/* What no pass has of a metric's counters. */
typedef struct missing_counters {
    kprof_strlist names; /* borrowed; caller frees the items */
    bool slow, patch;    /* one makes a pass slow; one is counted by patched code, which takes a pass of its own */
} missing_counters;

static kprof_status list_missing(const filler *f, size_t metric, missing_counters *out)
{
    const kprof_strlist *counters = &f->counters[metric];
    kprof_status status = KPROF_OK;
    *out = (missing_counters){.names.items = calloc(counters->count + 1, sizeof(*out->names.items))};
    if (!out->names.items)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < counters->count && status == KPROF_OK; i++) {
        if (kprof_strlist_contains(&f->placed, counters->items[i]))
            continue;
        out->names.items[out->names.count++] = counters->items[i];
        status = note_place(f, &(kprof_placed_counter){counters->items[i], 0}, &out->slow, &out->patch);
    }
    return status;
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

/* The open pass becomes as slow as its counters. */
static kprof_status place_missing(filler *f, const missing_counters *missing)
{
    if (missing->slow && !f->is_slow)
        f->slow_passes--;
    f->is_slow = f->is_slow || missing->slow;
    return place(f, &missing->names);
}

/* Add a metric to the open pass if there is room for all that it lacks. */
static kprof_status try_metric(filler *f, size_t metric)
{
    missing_counters missing;
    kprof_status status = list_missing(f, metric, &missing);
    bool fits = !missing.patch && (!missing.slow || f->is_slow || f->slow_passes > 0);
    if (status == KPROF_OK && missing.names.count > 0 && fits)
        status = kprof_raw_config_fits(f->config, &missing.names, &fits);
    if (status == KPROF_OK && missing.names.count > 0 && fits)
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
        bool patch;
        kprof_placement_put(&f->placement, counter.name, counter.domain);
        status = note_place(f, &counter, &f->is_slow, &patch);
    }
    kprof_placed_counters_free(&counters);
    return status;
}

static kprof_status walk_passes(filler *f, const kprof_config_image *image)
{
    kprof_status status = KPROF_OK;
    size_t own = image->pass_count, count = own + f->fill->new_passes;
    for (size_t pass = 0; pass < count && status == KPROF_OK; pass++) {
        size_t before = f->placed.count;
        f->is_slow = false;
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

static kprof_status take_image(filler *f, kprof_config_image *image)
{
    kprof_config_image filled;
    kprof_status status = kprof_raw_config_image(f->host, f->config, &filled);
    if (status != KPROF_OK)
        return status;
    filled.placement = kprof_strbuf_take(&f->placement);
    if (!filled.placement)
        status = KPROF_NO_MEMORY;
    else if (filled.pass_count != f->pass_count)
        status = kprof_fail(KPROF_INTERNAL, "filling passes made %zu of %zu", filled.pass_count, f->pass_count);
    if (status != KPROF_OK) {
        kprof_config_image_free(&filled);
        return status;
    }
    kprof_config_image_free(image);
    *image = filled;
    return KPROF_OK;
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

kprof_status kprof_host_fill(kprof_host *host, kprof_fill *fill, kprof_config_image *image)
{
    filler f = {.host = host, .fill = fill, .placement = KPROF_STRBUF_INIT, .slow_passes = fill->slow_passes};
    for (size_t i = 0; i < fill->wanted->count; i++)
        fill->found[i] = false;
    kprof_status status = kprof_raw_config_open(host, &f.config);
    if (status == KPROF_OK)
        status = list_counters(&f);
    if (status == KPROF_OK)
        status = list_placed(&f, image);
    if (status == KPROF_OK)
        status = walk_passes(&f, image);
    if (status == KPROF_OK && f.pass_count > 0)
        status = take_image(&f, image);
    filler_free(&f);
    return status;
}
