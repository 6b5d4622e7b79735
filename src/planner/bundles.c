/* Bundles counters for packing. CUPTI's image counts some of a metric's counters in one pass, so in one execution,
 * and packing keeps them together: they are a bundle. The counters of a pass outside of SMs and L2 are a bundle too,
 * because rates combine time, clocks and DRAM under several names. */
#include "planner/pack.h"

#include "core/bisect.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* Plan for batches with this much counter data: calls of the application end many batches early. */
#define TYPICAL_BATCH_BYTES ((size_t)192 << 20)

/* Place counters of SMs only in the SMs: a pass with a TPC's domain takes 18 ms more to start and stop (H200). */
static kprof_status find_places(const kprof_raw_config *config, kprof_pack_counter *counter)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(config, counter->name, &places);
    counter->traits.certain = places.count > 0 ? ~0U : 0;
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        const kprof_placed_counter one = {counter->name, places.items[i]};
        unsigned traits = kprof_place_traits(one.domain);
        bool fits = false;
        counter->traits.possible |= traits;
        counter->traits.certain &= traits;
        if (traits & KPROF_IN_SM)
            status = kprof_raw_config_takes(config, &one, 1, &fits);
        if (fits)
            counter->places.items[counter->places.count++] = one.domain;
    }
    counter->in_sm = counter->traits.possible & KPROF_IN_SM;
    return status;
}

/* How many others want a place. */
static double demand_for(const kprof_packing *p, uint32_t place)
{
    double demand = 0;
    for (size_t i = 0; i < p->names.count; i++) {
        const kprof_counter_places *places = &p->counters[i].places;
        for (size_t k = 0; k < places->count; k++)
            demand += places->items[k] == place ? 1.0 / (double)places->count : 0;
    }
    return demand;
}

static void sort_places(const kprof_packing *p, kprof_counter_places *places)
{
    for (size_t i = 1; i < places->count; i++) {
        uint32_t place = places->items[i];
        double demand = demand_for(p, place);
        size_t k = i;
        for (; k > 0 && demand < demand_for(p, places->items[k - 1]); k--)
            places->items[k] = places->items[k - 1];
        places->items[k] = place;
    }
}

/* Append the counters of all passes of an image, and where they are. */
static kprof_status list_counters(kprof_packing *p, const kprof_config_image *image)
{
    kprof_status status = KPROF_OK;
    for (uint32_t pass = 0; pass < image->pass_count && status == KPROF_OK; pass++) {
        size_t before = p->names.count;
        status = kprof_image_counters(image, pass, &p->names);
        kprof_spot *spots = kprof_realloc(p->now.spots, (p->names.count + 1) * sizeof(*spots));
        p->now.spots = spots;
        for (size_t i = before; i < p->names.count; i++)
            spots[i] = (kprof_spot){pass, 0};
    }
    return status;
}

static void allocate(kprof_packing *p)
{
    size_t count = p->names.count + 1;
    if (!p->now.spots) /* there is no pass */
        p->now.spots = kprof_calloc(count, sizeof(*p->now.spots));
    p->counters = kprof_calloc(count, sizeof(*p->counters));
    p->bundles = kprof_calloc(count, sizeof(*p->bundles));
    p->metrics = kprof_calloc(p->metric_count + 1, sizeof(*p->metrics));
    p->passes = kprof_calloc(p->most_passes + 1, sizeof(*p->passes));
    p->before.spots = kprof_calloc(count, sizeof(*p->before.spots));
    p->answers = kprof_calloc(KPROF_PACK_ANSWERS, sizeof(*p->answers));
    p->question = kprof_calloc(count + KPROF_MAX_GUESTS * KPROF_MAX_GUEST_COUNTERS, sizeof(*p->question));
    p->listed = kprof_calloc(count, sizeof(*p->listed));
    p->moves = kprof_calloc(count + p->most_passes, sizeof(*p->moves));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const kprof_pack_counter *const *)a)->name, (*(const kprof_pack_counter *const *)b)->name);
}

/* Append to a metric the image's counters of these names. The image may have one of them in several passes. Returns
 * a name that the image lacks, or NULL. */
static const char *find_counters(const kprof_packing *p, const kprof_pack_counter *const *by_name,
                                 const kprof_strlist *names, kprof_pack_metric *metric)
{
    const char *missing = NULL;
    for (size_t i = 0; i < names->count; i++) {
        size_t low;
        KPROF_BISECT(low, p->names.count, strcmp(by_name[middle]->name, names->items[i]) < 0)
        if (low == p->names.count || strcmp(by_name[low]->name, names->items[i]) != 0)
            missing = names->items[i];
        for (; low < p->names.count && strcmp(by_name[low]->name, names->items[i]) == 0; low++)
            metric->counters[metric->count++] = (size_t)(by_name[low] - p->counters);
    }
    return missing;
}

static kprof_status read_metric(const kprof_packing *p, const kprof_pack_counter *const *by_name, const char *name,
                                kprof_pack_metric *metric)
{
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_raw_counters(p->host, name, &required, &optional);
    metric->counters = kprof_calloc(2 * p->names.count + 1, sizeof(*metric->counters));
    if (status == KPROF_OK) {
        const char *missing = find_counters(p, by_name, &required, metric);
        if (missing)
            status = kprof_fail(KPROF_INTERNAL, "a config image does not have counter %s", missing);
        metric->required = metric->count;
        (void)find_counters(p, by_name, &optional, metric);
        size_t *shrunk = kprof_realloc(metric->counters, (metric->count + 1) * sizeof(*shrunk));
        metric->counters = shrunk ? shrunk : metric->counters;
    }
    KPROF_FREE_LISTS(&required, &optional);
    return status;
}

static kprof_status read_metrics(kprof_packing *p, const kprof_strlist *names)
{
    kprof_status status = KPROF_OK;
    KPROF_AUTO_FREE const kprof_pack_counter **by_name = kprof_calloc(p->names.count + 1, sizeof(*by_name));
    for (size_t i = 0; i < p->names.count; i++)
        by_name[i] = &p->counters[i];
    qsort(by_name, p->names.count, sizeof(*by_name), compare_names);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = read_metric(p, by_name, names->items[i], &p->metrics[i]);
    return status;
}

static void tie(kprof_packing *p, size_t a, size_t b)
{
    size_t bundle_a = p->counters[a].bundle, bundle_b = p->counters[b].bundle;
    for (size_t i = 0; i < p->names.count; i++)
        if (p->counters[i].bundle == bundle_a || p->counters[i].bundle == bundle_b)
            p->counters[i].bundle = bundle_a < bundle_b ? bundle_a : bundle_b;
}

/* If all required counters are in one pass, tie the optional ones of that pass to them. */
static void tie_metric(kprof_packing *p, const kprof_pack_metric *metric)
{
    const size_t *counters = metric->counters;
    for (size_t i = 1; i < metric->required; i++)
        if (p->now.spots[counters[i]].pass != p->now.spots[counters[0]].pass)
            return;
    for (size_t i = 1; i < metric->count && metric->required > 0; i++)
        if (p->now.spots[counters[i]].pass == p->now.spots[counters[0]].pass)
            tie(p, counters[0], counters[i]);
}

static void make_bundles(kprof_packing *p)
{
    size_t bound = SIZE_MAX; /* a counter of this pass outside of SMs and L2 */
    for (size_t i = 0; i < p->names.count; i++)
        p->counters[i].bundle = i;
    for (size_t i = 0; i < p->names.count; i++) {
        if (p->counters[i].in_sm || p->counters[i].traits.certain & KPROF_IN_L2)
            continue;
        if (bound == SIZE_MAX || p->now.spots[bound].pass != p->now.spots[i].pass)
            bound = i;
        tie(p, bound, i);
    }
    for (size_t i = 0; i < p->metric_count; i++)
        tie_metric(p, &p->metrics[i]);
    for (size_t i = 0; i < p->names.count; i++) {
        kprof_pack_bundle *bundle = &p->bundles[p->counters[i].bundle];
        bundle->count++;
        bundle->sm_count += p->counters[i].in_sm;
        bundle->is_patch = bundle->is_patch || p->counters[i].traits.possible & KPROF_IS_PATCH;
    }
}

kprof_status kprof_packing_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                kprof_packing *out)
{
    *out = (kprof_packing){.host = host, .metric_count = names->count, .most_passes = image->pass_count};
    out->now.pass_count = image->pass_count;
    out->launches = kprof_launches_in(TYPICAL_BATCH_BYTES, image->pass_count);
    kprof_status status = kprof_raw_config_open(host, &out->config);
    KPROF_THEN(status, kprof_raw_config_begin(out->config, NULL, 0));
    KPROF_THEN(status, list_counters(out, image));
    if (status == KPROF_OK)
        allocate(out);
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++) {
        out->counters[i].name = out->names.items[i];
        status = find_places(out->config, &out->counters[i]);
    }
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++)
        sort_places(out, &out->counters[i].places);
    KPROF_THEN(status, read_metrics(out, names));
    if (status == KPROF_OK)
        make_bundles(out);
    return status;
}

void kprof_packing_free(kprof_packing *p)
{
    kprof_raw_config_close(p->config);
    for (size_t i = 0; i < p->metric_count && p->metrics; i++)
        free(p->metrics[i].counters);
    for (size_t i = 0; i < KPROF_MAX_GUESTS; i++) {
        kprof_strlist_free(&p->guests[i].counters);
        free(p->guests[i].domains);
    }
    KPROF_FREE_LISTS(&p->names, &p->taken);
    KPROF_FREE(p->counters, p->bundles, p->metrics, p->passes, p->now.spots, p->before.spots, p->answers, p->question,
               p->listed, p->moves);
    *p = (kprof_packing){0};
}
