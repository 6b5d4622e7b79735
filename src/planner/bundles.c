/* Bundles counters for packing. What CUPTI takes from one pass comes from one execution, and stays so: the counters of
 * a metric that are all in one pass are a bundle. So are the counters of a pass outside of SMs and L2, because rates
 * are made of time, clocks and DRAM under several names. */
#include "planner/pack.h"

#include "core/config.h"

#include <stdlib.h>
#include <string.h>

/* Metrics of more counters do not get into one pass anyhow. */
#define MAX_KIN 8
/* Kinship is looked at for lists that are packed: it takes the square of their number of bundles. */
#define MAX_KIN_BUNDLES 1000

typedef struct named {
    const char *name;
    size_t counter;
} named;

typedef struct reader {
    kprof_packing *out;
    kprof_evaluator *evaluator;
    named *by_name; /* [names.count], sorted */
    size_t *heads;  /* [names.count]: an earlier counter of the same bundle, or itself */
} reader;

/* Counters that the image has, of those that a metric is computed from. */
typedef struct known {
    size_t *counters;
    size_t count;
} known;

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
    return status;
}

/* Counters of SMs are placed in the SMs only: where a TPC's domain is used, a pass takes 18 ms more to start and stop
 * on an H200. */
static kprof_status find_places(const kprof_raw_config *config, kprof_pack_counter *counter)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(config, counter->name, &places);
    bool is_in_l2 = places.count > 0;
    counter->in_sm_a = places.count > 0;
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        kprof_placed_counter one = {counter->name, places.items[i]};
        bool fits = false;
        if (kprof_place_is_in_sm(places.items[i])) {
            counter->in_sm = true;
            status = kprof_raw_config_takes(config, &one, 1, &fits);
        }
        if (fits)
            counter->places.items[counter->places.count++] = places.items[i];
        counter->is_patch = counter->is_patch || kprof_place_is_patch(places.items[i]);
        counter->is_slow = counter->is_slow || kprof_place_is_slow(places.items[i]);
        counter->in_sm_a = counter->in_sm_a && kprof_place_is_in_sm_a(places.items[i]);
        is_in_l2 = is_in_l2 && kprof_place_is_in_l2(places.items[i]);
    }
    counter->is_bound = !counter->in_sm && !is_in_l2;
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

static void sort_places(const kprof_packing *out, kprof_pack_counter *counter)
{
    for (size_t i = 1; i < counter->places.count; i++) {
        uint32_t place = counter->places.items[i];
        double demand = demand_for(out, place);
        size_t k = i;
        for (; k > 0 && demand < demand_for(out, counter->places.items[k - 1]); k--)
            counter->places.items[k] = counter->places.items[k - 1];
        counter->places.items[k] = place;
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

static void tie_bound(reader *r)
{
    const kprof_packing *out = r->out;
    for (size_t i = 0, first = SIZE_MAX; i < out->names.count; i++) {
        const kprof_pack_counter *counter = &out->counters[i];
        if (!counter->is_bound)
            continue;
        if (first == SIZE_MAX || out->counters[first].pass != counter->pass)
            first = i;
        tie(r, first, i);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static kprof_status sort_names(reader *r)
{
    const kprof_strlist *names = &r->out->names;
    for (size_t i = 0; i < names->count; i++)
        r->by_name[i] = (named){names->items[i], i};
    qsort(r->by_name, names->count, sizeof(*r->by_name), compare_names);
    for (size_t i = 1; i < names->count; i++) {
        if (compare_names(&r->by_name[i - 1], &r->by_name[i]) == 0)
            return KPROF_UNSUPPORTED;
    }
    return KPROF_OK;
}

/* The image's counters among `names`; caller frees the counters. */
static kprof_status find_known(const reader *r, const kprof_strlist *names, known *out)
{
    *out = (known){calloc(names->count + 1, sizeof(*out->counters)), 0};
    if (!out->counters)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < names->count; i++) {
        named key = {names->items[i], 0};
        const named *found = bsearch(&key, r->by_name, r->out->names.count, sizeof(key), compare_names);
        if (found)
            out->counters[out->count++] = found->counter;
    }
    return KPROF_OK;
}

/* Tie those that are in the pass of all `required`; none where these are in several. */
static void tie_metric(reader *r, const known *required, const known *optional)
{
    const kprof_pack_counter *counters = r->out->counters;
    for (size_t i = 1; i < required->count; i++) {
        if (counters[required->counters[i]].pass != counters[required->counters[0]].pass)
            return;
    }
    for (size_t i = 1; i < required->count; i++)
        tie(r, required->counters[0], required->counters[i]);
    for (size_t i = 0; i < optional->count && required->count > 0; i++) {
        if (counters[optional->counters[i]].pass == counters[required->counters[0]].pass)
            tie(r, required->counters[0], optional->counters[i]);
    }
}

static void count_kin(reader *r, const known *required, const known *optional)
{
    kprof_packing *out = r->out;
    (void)optional;
    if (required->count > MAX_KIN || !out->kinships)
        return;
    for (size_t i = 0; i < required->count; i++) {
        for (size_t k = 0; k < required->count; k++) {
            size_t a = out->counters[required->counters[i]].bundle, b = out->counters[required->counters[k]].bundle;
            unsigned char *kinship = &out->kinships[a * out->bundle_count + b];
            *kinship += *kinship < UINT8_MAX;
        }
    }
}

static kprof_status walk_metrics(reader *r, const kprof_strlist *metrics,
                                 void (*visit)(reader *r, const known *required, const known *optional))
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < metrics->count && status == KPROF_OK; i++) {
        kprof_strlist names[2] = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
        known required = {NULL, 0}, optional = {NULL, 0};
        status = kprof_evaluator_raw_counters(r->evaluator, metrics->items[i], &names[0], &names[1]);
        if (status == KPROF_OK)
            status = find_known(r, &names[0], &required);
        if (status == KPROF_OK)
            status = find_known(r, &names[1], &optional);
        if (status == KPROF_OK)
            visit(r, &required, &optional);
        free(required.counters);
        free(optional.counters);
        kprof_strlist_free(&names[0]);
        kprof_strlist_free(&names[1]);
    }
    return status;
}

static void add_member(kprof_packing *out, kprof_pack_bundle *bundle, size_t index)
{
    kprof_pack_counter *counter = &out->counters[index];
    counter->bundle = out->bundle_count;
    out->members[(size_t)(bundle->counters - out->members) + bundle->count++] = index;
    bundle->pass = counter->pass;
    bundle->is_patch = bundle->is_patch || counter->is_patch;
    bundle->is_fixed = bundle->is_fixed || counter->is_patch || (counter->in_sm && counter->places.count == 0);
    if (!counter->in_sm)
        return;
    double tightness = counter->places.count > 0 ? 1.0 / (double)counter->places.count : 0;
    bundle->tightness += (tightness - bundle->tightness) / (double)++bundle->sm_count;
}

static kprof_status make_bundles(const reader *r)
{
    kprof_packing *out = r->out;
    out->members = calloc(out->names.count + 1, sizeof(*out->members));
    out->bundles = calloc(out->names.count + 1, sizeof(*out->bundles));
    if (!out->members || !out->bundles)
        return KPROF_NO_MEMORY;
    for (size_t head = 0, used = 0; head < out->names.count; head++) {
        if (head_of(r, head) != head)
            continue;
        kprof_pack_bundle *bundle = &out->bundles[out->bundle_count];
        bundle->counters = &out->members[used];
        for (size_t i = head; i < out->names.count; i++) {
            if (head_of(r, i) == head)
                add_member(out, bundle, i);
        }
        used += bundle->count;
        out->bundle_count++;
    }
    size_t count = out->bundle_count;
    out->kinships = count <= MAX_KIN_BUNDLES ? calloc(count * count + 1, sizeof(*out->kinships)) : NULL;
    out->troubles = calloc(count + 1, sizeof(*out->troubles));
    out->saved_passes = calloc(count + 1, sizeof(*out->saved_passes));
    out->saved_domains = calloc(out->names.count + 1, sizeof(*out->saved_domains));
    return out->troubles && out->saved_passes && out->saved_domains ? KPROF_OK : KPROF_NO_MEMORY;
}

static kprof_status bundle(reader *r, const kprof_strlist *metrics)
{
    size_t count = r->out->names.count;
    r->by_name = calloc(count + 1, sizeof(*r->by_name));
    r->heads = calloc(count + 1, sizeof(*r->heads));
    if (!r->by_name || !r->heads)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        r->heads[i] = i;
    kprof_status status = sort_names(r);
    tie_bound(r);
    if (status == KPROF_OK)
        status = walk_metrics(r, metrics, tie_metric);
    if (status == KPROF_OK)
        status = make_bundles(r);
    return status == KPROF_OK ? walk_metrics(r, metrics, count_kin) : status;
}

/* Launches for which a context's first batch has room. */
static unsigned first_batch(size_t pass_count)
{
    size_t by_memory = KPROF_BATCH_FIRST_BYTES / (KPROF_COUNTER_BYTES_PER_PASS * pass_count);
    return (unsigned)(by_memory < KPROF_BATCH_FIRST_LAUNCHES ? by_memory : KPROF_BATCH_FIRST_LAUNCHES);
}

kprof_status kprof_packing_read(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                kprof_packing *out)
{
    reader r = {.out = out};
    *out = (kprof_packing){
        .pass_count = image->pass_count, .most_passes = image->pass_count, .launches = first_batch(image->pass_count)};
    out->passes = calloc(image->pass_count + 1, sizeof(*out->passes));
    kprof_status status = out->passes ? list_counters(image, out) : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = kprof_raw_config_open_quietly(host, &out->config);
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(out->config);
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++)
        status = find_places(out->config, &out->counters[i]);
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++)
        sort_places(out, &out->counters[i]);
    if (status == KPROF_OK)
        status = kprof_evaluator_get(host, &r.evaluator);
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
    free(packing->saved_passes);
    free(packing->saved_domains);
    free(packing->answers);
    *packing = (kprof_packing){0};
}
