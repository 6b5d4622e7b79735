/* Bundles counters for packing. What CUPTI takes from one pass comes from one execution, and stays so: the counters of
 * a metric that are all in one pass are a bundle. So are the counters of a pass outside of SMs and L2, because rates
 * are made of time, clocks and DRAM under several names. */
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

/* Metrics of more counters do not get into one pass anyhow. */
#define MAX_KIN 8
/* Kinship is looked at for lists that are packed: it takes the square of their number of bundles. */
#define MAX_KIN_BUNDLES 1000

typedef struct reader {
    kprof_host *host;
    kprof_packing *out;
    const kprof_pack_counter **by_name; /* [names.count], sorted */
    size_t *heads;                      /* [names.count]: an earlier counter of the same bundle, or itself */
    size_t *required, *optional;        /* [names.count]: counters of the metric at hand */
} reader;

/* Counters of SMs are placed in the SMs only: where a TPC's domain is used, a pass takes 18 ms more to start and stop
 * on an H200. */
static kprof_status find_places(const kprof_raw_config *config, kprof_pack_counter *counter)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(config, counter->name, &places);
    counter->traits = kprof_places_traits(&places);
    counter->in_sm = counter->traits.possible & KPROF_IN_SM;
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        kprof_placed_counter one = {counter->name, places.items[i]};
        bool fits = false;
        if (kprof_place_traits(places.items[i]) & KPROF_IN_SM)
            status = kprof_raw_config_takes(config, &one, 1, &fits);
        if (fits)
            counter->places.items[counter->places.count++] = places.items[i];
    }
    return status;
}

static kprof_status list_counters(const kprof_config_image *image, kprof_packing *out)
{
    kprof_status status = KPROF_OK;
    for (size_t pass = 0; pass < image->pass_count && status == KPROF_OK; pass++) {
        size_t before = out->names.count;
        status = kprof_image_counters(image, pass, &out->names);
        kprof_pack_counter *counters = realloc(out->counters, (out->names.count + 1) * sizeof(*counters));
        if (!counters)
            return KPROF_NO_MEMORY;
        out->counters = counters;
        for (size_t i = before; i < out->names.count; i++)
            counters[i] = (kprof_pack_counter){.name = out->names.items[i], .pass = pass};
    }
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++)
        status = find_places(out->config, &out->counters[i]);
    return status;
}

/* How much a place is wanted. */
static double demand_for(const kprof_packing *out, uint32_t place)
{
    double demand = 0;
    for (size_t i = 0; i < out->names.count; i++) {
        const kprof_pack_counter *counter = &out->counters[i];
        for (size_t k = 0; k < counter->places.count; k++)
            demand += counter->places.items[k] == place ? 1.0 / (double)counter->places.count : 0;
    }
    return demand;
}

static void sort_places(const kprof_packing *out, kprof_counter_places *places)
{
    for (size_t i = 1; i < places->count; i++) {
        uint32_t place = places->items[i];
        double demand = demand_for(out, place);
        size_t k = i;
        for (; k > 0 && demand < demand_for(out, places->items[k - 1]); k--)
            places->items[k] = places->items[k - 1];
        places->items[k] = place;
    }
}

static size_t head_of(const reader *r, size_t counter)
{
    while (r->heads[counter] != counter)
        counter = r->heads[counter];
    return counter;
}

static void tie(reader *r, size_t a, size_t b)
{
    size_t head_a = head_of(r, a), head_b = head_of(r, b);
    r->heads[head_a < head_b ? head_b : head_a] = head_a < head_b ? head_a : head_b;
}

/* Tie the counters of each pass that are outside of SMs and L2. */
static void tie_bound(reader *r)
{
    const kprof_packing *out = r->out;
    for (size_t i = 0, first = SIZE_MAX; i < out->names.count; i++) {
        const kprof_pack_counter *counter = &out->counters[i];
        if (counter->in_sm || counter->traits.certain & KPROF_IN_L2)
            continue;
        if (first == SIZE_MAX || out->counters[first].pass != counter->pass)
            first = i;
        tie(r, first, i);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const kprof_pack_counter *const *)a)->name, (*(const kprof_pack_counter *const *)b)->name);
}

static kprof_status sort_names(reader *r)
{
    size_t count = r->out->names.count;
    for (size_t i = 0; i < count; i++)
        r->by_name[i] = &r->out->counters[i];
    qsort(r->by_name, count, sizeof(*r->by_name), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (compare_names(&r->by_name[i - 1], &r->by_name[i]) == 0)
            return KPROF_UNSUPPORTED;
    }
    return KPROF_OK;
}

/* The image's counters among `names`; returns how many. */
static size_t find_known(const reader *r, const kprof_strlist *names, size_t *counters)
{
    size_t count = 0;
    for (size_t i = 0; i < names->count && count < r->out->names.count; i++) {
        const kprof_pack_counter key = {.name = names->items[i]}, *key_pointer = &key;
        const kprof_pack_counter **found =
            bsearch(&key_pointer, r->by_name, r->out->names.count, sizeof(key_pointer), compare_names);
        if (found)
            counters[count++] = (size_t)(*found - r->out->counters);
    }
    return count;
}

/* Tie those that are in the pass of all that are required; none where these are in several. */
static void tie_metric(reader *r, size_t required, size_t optional)
{
    const kprof_pack_counter *counters = r->out->counters;
    for (size_t i = 1; i < required; i++) {
        if (counters[r->required[i]].pass != counters[r->required[0]].pass)
            return;
    }
    for (size_t i = 1; i < required; i++)
        tie(r, r->required[0], r->required[i]);
    for (size_t i = 0; i < optional && required > 0; i++) {
        if (counters[r->optional[i]].pass == counters[r->required[0]].pass)
            tie(r, r->required[0], r->optional[i]);
    }
}

static void count_kin(reader *r, size_t required, size_t optional)
{
    kprof_packing *out = r->out;
    (void)optional;
    for (size_t i = 0; i < required && required <= MAX_KIN && out->kinships; i++) {
        for (size_t k = 0; k < required; k++) {
            size_t a = out->counters[r->required[i]].bundle, b = out->counters[r->required[k]].bundle;
            unsigned char *kinship = &out->kinships[a * out->bundle_count + b];
            *kinship += *kinship < UINT8_MAX;
        }
    }
}

static kprof_status walk_metrics(reader *r, const kprof_strlist *metrics,
                                 void (*visit)(reader *r, size_t required, size_t optional))
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < metrics->count && status == KPROF_OK; i++) {
        kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
        status = kprof_host_raw_counters(r->host, metrics->items[i], &required, &optional);
        if (status == KPROF_OK)
            visit(r, find_known(r, &required, r->required), find_known(r, &optional, r->optional));
        kprof_strlist_free(&required);
        kprof_strlist_free(&optional);
    }
    return status;
}

static void make_bundles(const reader *r)
{
    kprof_packing *out = r->out;
    for (size_t head = 0, used = 0; head < out->names.count; head++) {
        if (head_of(r, head) != head)
            continue;
        kprof_pack_bundle *bundle = &out->bundles[out->bundle_count];
        *bundle = (kprof_pack_bundle){.counters = &out->members[used], .pass = out->counters[head].pass};
        for (size_t i = head; i < out->names.count; i++) {
            kprof_pack_counter *counter = &out->counters[i];
            if (head_of(r, i) != head)
                continue;
            counter->bundle = out->bundle_count;
            out->members[used++] = i;
            bundle->count++;
            bundle->sm_count += counter->in_sm;
            bundle->is_patch = bundle->is_patch || counter->traits.possible & KPROF_IS_PATCH;
            bundle->is_fixed = bundle->is_fixed || bundle->is_patch || (counter->in_sm && counter->places.count == 0);
        }
        out->bundle_count++;
    }
    if (out->bundle_count <= MAX_KIN_BUNDLES)
        out->kinships = calloc(out->bundle_count * out->bundle_count + 1, sizeof(*out->kinships));
}

static kprof_status bundle(reader *r, const kprof_strlist *metrics)
{
    kprof_packing *out = r->out;
    size_t count = out->names.count + 1; /* of bundles, too, at most */
    r->by_name = calloc(count, sizeof(*r->by_name));
    r->heads = calloc(3 * count, sizeof(*r->heads));
    out->members = calloc(3 * count, sizeof(*out->members));
    out->bundles = calloc(count, sizeof(*out->bundles));
    out->troubles = calloc(2 * count, sizeof(*out->troubles));
    out->saved_domains = calloc(count, sizeof(*out->saved_domains));
    out->question = calloc(count, sizeof(*out->question));
    out->answers = calloc(KPROF_PACK_ANSWERS, sizeof(*out->answers));
    if (!r->by_name || !r->heads || !out->members || !out->bundles || !out->troubles || !out->saved_domains ||
        !out->question || !out->answers)
        return KPROF_NO_MEMORY;
    r->required = r->heads + count;
    r->optional = r->required + count;
    out->listed = out->members + count;
    out->alike = out->listed + count;
    out->saved_passes = out->troubles + count;
    for (size_t i = 0; i < out->names.count; i++)
        r->heads[i] = i;
    kprof_status status = sort_names(r);
    tie_bound(r);
    if (status == KPROF_OK)
        status = walk_metrics(r, metrics, tie_metric);
    if (status != KPROF_OK)
        return status;
    make_bundles(r);
    return walk_metrics(r, metrics, count_kin);
}

kprof_status kprof_packing_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                kprof_packing *out)
{
    reader r = {.host = host, .out = out};
    *out = (kprof_packing){.pass_count = image->pass_count, .most_passes = image->pass_count};
    out->launches = kprof_first_batch(&(kprof_workload){0}, image->pass_count);
    out->passes = calloc(image->pass_count + 1, sizeof(*out->passes));
    kprof_status status = out->passes ? kprof_raw_config_open(host, true, &out->config) : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(out->config, NULL, 0);
    if (status == KPROF_OK)
        status = list_counters(image, out);
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++)
        sort_places(out, &out->counters[i].places);
    if (status == KPROF_OK)
        status = bundle(&r, names);
    free(r.by_name);
    free(r.heads);
    return status;
}

void kprof_packing_free(kprof_packing *packing)
{
    kprof_raw_config_close(packing->config);
    kprof_strlist_free(&packing->names);
    free(packing->counters);
    free(packing->bundles);
    free(packing->passes);
    free(packing->members);
    free(packing->kinships);
    free(packing->troubles);
    free(packing->saved_domains);
    free(packing->question);
    free(packing->answers);
    *packing = (kprof_packing){0};
}
