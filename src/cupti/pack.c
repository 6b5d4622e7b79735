/* CUPTI reads each raw counter in the first domain of the chip that has it, and so runs out of slots there while other
 * domains have room: on GH100 most counters of an SM's pipes go to gpu_sm_c, four to a pass, although gpu_sm_a takes
 * one more. Here passes are filled one after the other, each counter wherever it fits, those with the fewest places
 * first. An attempt takes tens of milliseconds; counters that came last in one come earlier in the next. */
#include "cupti/pack.h"

#include "core/log.h"
#include "cupti/placement.h"
#include "cupti/raw_config.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ATTEMPTS 8
/* Beyond this packing takes many seconds. */
#define MAX_COUNTERS 600

typedef struct counter {
    const char *name;
    kprof_counter_places places;
    size_t position; /* in the order of the names */
    double weight;   /* the greatest is placed first */
    bool alone;      /* does not go beside the witnesses: it needs their slots, or patches the code */
    bool placed;
    size_t pass;
} counter;

/* How much is wanted of a domain. */
typedef struct domain_load {
    uint32_t domain;
    double load;
} domain_load;

typedef struct packer {
    kprof_host *host;
    kprof_strlist names;     /* of the counters */
    kprof_strlist witnesses; /* counters for which room is left in every pass */
    counter *counters;       /* [names.count], in the order of the attempt */
    domain_load loads[KPROF_RAW_DOMAINS_MAX];
    size_t load_count;
    kprof_config_image best;
} packer;

static kprof_status list_counters(packer *p, const kprof_strlist *metrics)
{
    kprof_evaluator *evaluator;
    kprof_strlist required = KPROF_STRLIST_INIT;
    kprof_status status = kprof_evaluator_get(p->host, &evaluator);
    for (size_t i = 0; i < metrics->count && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(evaluator, metrics->items[i], &required, NULL);
    for (size_t i = 0; i < required.count && status == KPROF_OK && p->names.count <= MAX_COUNTERS; i++) {
        if (!kprof_strlist_add_unique(&p->names, required.items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_free(&required);
    return status;
}

static double *load_of(packer *p, uint32_t domain)
{
    for (size_t i = 0; i < p->load_count; i++) {
        if (p->loads[i].domain == domain)
            return &p->loads[i].load;
    }
    if (p->load_count == KPROF_RAW_DOMAINS_MAX)
        return &p->loads[KPROF_RAW_DOMAINS_MAX - 1].load;
    p->loads[p->load_count] = (domain_load){domain, 0};
    return &p->loads[p->load_count++].load;
}

/* The places that are wanted least come first, the dear ones last. */
static void sort_places(packer *p, counter *c)
{
    for (size_t i = 1; i < c->places.count; i++) {
        uint32_t place = c->places.items[i];
        size_t k = i;
        for (; k > 0 && *load_of(p, place) < *load_of(p, c->places.items[k - 1]); k--)
            c->places.items[k] = c->places.items[k - 1];
        c->places.items[k] = place;
    }
}

static bool same_places(const counter *a, const counter *b)
{
    return a->places.count == b->places.count &&
           memcmp(a->places.items, b->places.items, a->places.count * sizeof(*a->places.items)) == 0;
}

/* Few places weigh most; among equals, those of which there are many. What goes alone comes the other way round, so
 * that patched code, which takes one pass for everything, is last and the passes with witnesses follow each other. */
static void weigh(packer *p)
{
    for (size_t i = 0; i < p->names.count; i++) {
        counter *c = &p->counters[i];
        size_t alike = 0;
        for (size_t k = 0; k < p->names.count; k++)
            alike += same_places(c, &p->counters[k]);
        c->weight = (c->places.count ? 1.0 / (double)c->places.count : 0) + (double)alike * (c->alone ? -1e-4 : 1e-4);
    }
}

static kprof_status find_places(packer *p, kprof_raw_config *config)
{
    kprof_status status = kprof_raw_config_begin(config);
    for (size_t i = 0; i < p->names.count && status == KPROF_OK; i++) {
        counter *c = &p->counters[i];
        *c = (counter){.name = p->names.items[i], .position = i};
        status = kprof_raw_config_places(config, c->name, &c->places);
        for (size_t k = 0; k < c->places.count; k++)
            *load_of(p, c->places.items[k]) += 1.0 / (double)c->places.count;
    }
    for (size_t i = 0; i < p->load_count; i++) {
        if (kprof_raw_domain_is_dear(p->loads[i].domain))
            p->loads[i].load += (double)p->names.count;
    }
    return status;
}

static kprof_status put_witnesses(const packer *p, kprof_raw_config *config)
{
    return p->witnesses.count > 0 ? kprof_raw_config_add(config, &p->witnesses) : KPROF_OK;
}

static kprof_status fits_somewhere(const kprof_raw_config *config, const counter *c, bool *out)
{
    kprof_status status = KPROF_OK;
    *out = false;
    for (size_t i = 0; i < c->places.count && status == KPROF_OK && !*out; i++)
        status = kprof_raw_config_takes(config, &(kprof_placed_counter){c->name, c->places.items[i]}, false, out);
    return status;
}

static kprof_status find_loners(packer *p, kprof_raw_config *config)
{
    kprof_status status = put_witnesses(p, config);
    for (size_t i = 0; i < p->names.count && status == KPROF_OK && p->witnesses.count > 0; i++) {
        bool fits;
        status = fits_somewhere(config, &p->counters[i], &fits);
        p->counters[i].alone = !fits;
    }
    return status;
}

static kprof_status prepare(packer *p)
{
    kprof_raw_config *config;
    p->counters = calloc(p->names.count + 1, sizeof(*p->counters));
    kprof_status status = p->counters ? kprof_raw_config_open(p->host, &config) : KPROF_NO_MEMORY;
    if (status != KPROF_OK)
        return status;
    status = find_places(p, config);
    if (status == KPROF_OK)
        status = find_loners(p, config);
    kprof_raw_config_close(config);
    for (size_t i = 0; i < p->names.count; i++)
        sort_places(p, &p->counters[i]);
    weigh(p);
    return status;
}

static int compare_weights(const void *a, const void *b)
{
    const counter *left = a, *right = b;
    if (left->weight < right->weight || left->weight > right->weight)
        return left->weight > right->weight ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

/* One attempt: the scheduler, and what has been written down of it. */
typedef struct attempt {
    kprof_raw_config *config;
    kprof_strbuf placement, tail; /* the passes with witnesses, and those without, which come last */
    size_t pass_count;
    size_t left, loners; /* counters that are not placed; of them, those that go alone */
} attempt;

static kprof_status place(attempt *a, counter *c, kprof_strbuf *into, bool is_empty)
{
    for (size_t i = 0; i < c->places.count; i++) {
        kprof_placed_counter one = {c->name, c->places.items[i]};
        bool fits;
        kprof_status status = kprof_raw_config_takes(a->config, &one, is_empty, &fits);
        if (status == KPROF_OK && fits)
            status = kprof_raw_config_put(a->config, &one);
        if (status != KPROF_OK)
            return status;
        if (!fits)
            continue;
        kprof_placement_put(into, c->name, c->places.items[i]);
        c->placed = true;
        c->pass = a->pass_count;
        a->left--;
        a->loners -= c->alone;
        return KPROF_OK;
    }
    return KPROF_OK;
}

/* One pass without witnesses, begun with what goes alone and filled up with others. */
static kprof_status fill_tail_pass(packer *p, attempt *a)
{
    size_t before = a->left;
    kprof_status status = kprof_raw_config_begin(a->config);
    for (int others = 0; others < 2; others++) {
        for (size_t i = 0; i < p->names.count && status == KPROF_OK; i++) {
            counter *c = &p->counters[i];
            if (!c->placed && c->alone != others)
                status = place(a, c, &a->tail, a->left == before);
        }
    }
    kprof_placement_end_pass(&a->tail);
    a->pass_count++;
    return status == KPROF_OK ? kprof_raw_config_end(a->config) : status;
}

static kprof_status fill_pass(packer *p, attempt *a)
{
    size_t before = a->left;
    kprof_status status = kprof_raw_config_begin(a->config);
    if (status == KPROF_OK)
        status = put_witnesses(p, a->config);
    for (size_t i = 0; i < p->names.count && status == KPROF_OK; i++) {
        bool is_empty = a->left == before && p->witnesses.count == 0;
        if (!p->counters[i].placed)
            status = place(a, &p->counters[i], &a->placement, is_empty);
    }
    kprof_placement_end_pass(&a->placement);
    a->pass_count++;
    return status == KPROF_OK ? kprof_raw_config_end(a->config) : status;
}

/* The image of a placement, without witnesses. */
static kprof_status build_image(const packer *p, const attempt *a, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_config_image placed = {.pass_count = a->pass_count, .placement = a->placement.data};
    kprof_status status = kprof_raw_config_open(p->host, &config);
    for (size_t i = 0; i < a->pass_count && status == KPROF_OK; i++) {
        kprof_placed_counters counters;
        status = kprof_placed_counters_read(&placed, i, &counters);
        if (status == KPROF_OK)
            status = kprof_raw_config_begin(config);
        if (status == KPROF_OK)
            status = kprof_raw_config_put_all(config, &counters);
        if (status == KPROF_OK)
            status = kprof_raw_config_end(config);
        kprof_placed_counters_free(&counters);
    }
    if (status == KPROF_OK)
        status = kprof_raw_config_image(p->host, config, out);
    kprof_raw_config_close(config);
    return status;
}

/* Keep the attempt if it has fewer passes. A group that took several passes does not count for one. */
static kprof_status keep_better(packer *p, attempt *a)
{
    kprof_config_image image = {0};
    kprof_status status = build_image(p, a, &image);
    if (status != KPROF_OK || image.pass_count != a->pass_count || image.pass_count >= p->best.pass_count) {
        kprof_config_image_free(&image);
        return status;
    }
    image.placement = kprof_strbuf_take(&a->placement);
    kprof_config_image_free(&p->best);
    p->best = image;
    return image.placement ? KPROF_OK : KPROF_NO_MEMORY;
}

/* Fill passes until everything is placed, or as many as the best has are not enough. */
static kprof_status fill_passes(packer *p, attempt *a)
{
    kprof_status status = KPROF_OK;
    size_t before = SIZE_MAX;
    while (status == KPROF_OK && a->left > 0 && a->left < before && a->pass_count + 1 < p->best.pass_count) {
        before = a->left;
        status = a->loners > 0 ? fill_tail_pass(p, a) : fill_pass(p, a);
    }
    if (status != KPROF_OK || a->left > 0)
        return status;
    kprof_strbuf_append(&a->placement, a->tail.data, a->tail.length);
    return a->placement.failed || a->tail.failed ? KPROF_NO_MEMORY : keep_better(p, a);
}

static kprof_status try_order(packer *p)
{
    attempt a = {.left = p->names.count};
    for (size_t i = 0; i < p->names.count; i++) {
        p->counters[i].placed = false;
        a.loners += p->counters[i].alone;
    }
    qsort(p->counters, p->names.count, sizeof(*p->counters), compare_weights);
    kprof_status status = kprof_raw_config_open(p->host, &a.config);
    if (status == KPROF_OK)
        status = fill_passes(p, &a);
    kprof_raw_config_close(a.config);
    kprof_strbuf_free(&a.placement);
    kprof_strbuf_free(&a.tail);
    for (size_t i = 0; i < p->names.count; i++) {
        counter *c = &p->counters[i];
        if (c->alone)
            continue;
        if (!c->placed || c->pass + 1 == a.pass_count)
            c->weight += 1;
        else if (c->pass + 2 == a.pass_count)
            c->weight += 0.3;
    }
    return status;
}

static kprof_status pack(packer *p, const kprof_strlist *metrics)
{
    kprof_status status = list_counters(p, metrics);
    if (status != KPROF_OK || p->names.count > MAX_COUNTERS)
        return status;
    status = kprof_host_witness_counters(p->host, metrics, &p->witnesses);
    if (status == KPROF_OK)
        status = prepare(p);
    for (size_t i = 0; i < MAX_ATTEMPTS && status == KPROF_OK && p->best.pass_count > 1; i++)
        status = try_order(p);
    return status;
}

kprof_status kprof_pack(kprof_host *host, const kprof_strlist *names, kprof_config_image *image)
{
    packer p = {.host = host, .best = *image};
    kprof_status status = image->pass_count > 1 ? pack(&p, names) : KPROF_OK;
    *image = p.best;
    kprof_strlist_free(&p.names);
    kprof_strlist_free(&p.witnesses);
    free(p.counters);
    return status;
}
