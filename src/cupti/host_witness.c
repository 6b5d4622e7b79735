/* Puts witnesses into a config image: NVPW's scheduler gets a group for each of the image's passes, with the counters
 * that the pass has and then the witnesses that fit beside them, so that no pass is added and none changes its place.
 */
#include "cupti/schedule.h"

#include "core/bytes.h"
#include "core/config.h"
#include "core/log.h"
#include "cupti/pack_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION "witnesses 7"

/* Where a witness is counted decides what it costs. */
typedef enum witness_place {
    IN_SMS,    /* nothing, in a pass that has counters of the SMs' first domain: in no other */
    IN_TPCS,   /* 18 ms more to start and stop a pass: only where the one in the SMs is not, and once beside it */
    ELSEWHERE, /* 1 ms or nothing */
} witness_place;

/* Instructions of the SMs, counted by themselves or as their TPCs see them (GH100, GB10x); active cycles, likewise, or
 * of the whole GPU; and time. Passes are compared by one counter at a time: where a pass has room for both counters of
 * instructions, one such pass has them, so that the passes of either are compared with those of the other. */
static const struct {
    const char *name;
    witness_place place;
} kinds[] = {
    {KPROF_SM_INSTRUCTIONS, IN_SMS},
    {KPROF_TPC_INSTRUCTIONS, IN_TPCS},
    {"TPC.TriageCompute.sm__cycles_active.avg", IN_TPCS},
    {"gr__cycles_active.sum", ELSEWHERE},
    {"gpu__time_active.sum", ELSEWHERE},
};
enum { SM_INSTRUCTIONS, TPC_INSTRUCTIONS, TPC_CYCLES, CANDIDATES = sizeof(kinds) / sizeof(kinds[0]) };

_Static_assert(CANDIDATES <= KPROF_MAX_WITNESSES, "all candidates may become witnesses");

typedef struct candidate {
    kprof_strlist counters; /* none: it cannot be a witness here */
    bool *fits;             /* [pass_count]; in the end: it is there */
} candidate;

typedef struct builder {
    kprof_host *host;
    const kprof_strlist *names; /* what the image collects */
    const kprof_config_image *image;
    kprof_placed_counters *passes; /* [pass_count]: the counters of each */
    kprof_strlist taken;           /* counters that any collected value may depend on */
    candidate candidates[CANDIDATES];
    uint32_t *sm_domains; /* [pass_count]: where the instructions of the SMs are read */
    bool cheap;           /* the image that is made has none that takes time */
} builder;

static kprof_status list_taken(builder *b, kprof_evaluator *evaluator)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < b->names->count && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(evaluator, b->names->items[i], &b->taken, &b->taken);
    return status;
}

static bool any_taken(builder *b, const kprof_strlist *counters)
{
    for (size_t i = 0; i < counters->count; i++) {
        if (kprof_strlist_contains(&b->taken, counters->items[i]))
            return true;
    }
    return false;
}

/* A counter that is in several passes reads as their mean, so a witness must be nothing that a value is computed from;
 * nor may it be computed from what is in some pass already. */
static kprof_status list_candidate(builder *b, kprof_evaluator *evaluator, const char *name, candidate *c)
{
    kprof_strlist optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(b->host, name))
        return KPROF_OK;
    kprof_status status = kprof_evaluator_raw_counters(evaluator, name, &c->counters, &optional);
    if (status == KPROF_OK && (any_taken(b, &c->counters) || any_taken(b, &optional)))
        kprof_strlist_free(&c->counters);
    for (size_t i = 0; i < c->counters.count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(&b->taken, c->counters.items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_free(&optional);
    return status;
}

static kprof_status list_candidates(builder *b)
{
    kprof_evaluator *evaluator;
    kprof_status status = kprof_evaluator_get(b->host, &evaluator);
    if (status == KPROF_OK)
        status = list_taken(b, evaluator);
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++)
        status = list_candidate(b, evaluator, kinds[i].name, &b->candidates[i]);
    return status;
}

static kprof_status prepare(builder *b)
{
    b->passes = calloc(b->image->pass_count, sizeof(*b->passes));
    b->sm_domains = calloc(b->image->pass_count, sizeof(*b->sm_domains));
    kprof_status status = b->passes && b->sm_domains ? list_candidates(b) : KPROF_NO_MEMORY;
    for (size_t i = 0; i < b->image->pass_count && status == KPROF_OK; i++)
        status = kprof_placed_counters_read(b->image, i, &b->passes[i]);
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        b->candidates[i].fits = calloc(b->image->pass_count, sizeof(*b->candidates[i].fits));
        status = b->candidates[i].fits ? KPROF_OK : KPROF_NO_MEMORY;
    }
    return status;
}

/* Open the group of a pass, fill it with the counters that it has, and try or add candidates; then close it. */
typedef kprof_status visit_pass(builder *b, kprof_raw_config *config, size_t pass);

static kprof_status walk_passes(builder *b, kprof_raw_config *config, visit_pass *visit)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < b->image->pass_count && status == KPROF_OK; i++) {
        status = kprof_raw_config_begin(config);
        if (status == KPROF_OK)
            status = kprof_raw_config_put_all(config, &b->passes[i]);
        if (status == KPROF_OK)
            status = visit(b, config, i);
        if (status == KPROF_OK)
            status = kprof_raw_config_end(config);
    }
    return status;
}

/* Bits of the kinds of counters that a pass has. */
static kprof_status read_kinds(const kprof_raw_config *config, const kprof_placed_counters *counters, unsigned *out)
{
    kprof_status status = KPROF_OK;
    *out = 0;
    for (size_t i = 0; i < counters->names.count && status == KPROF_OK; i++) {
        kprof_counter_places places = {{counters->domains[i]}, 1};
        if (counters->domains[i] == 0)
            status = kprof_raw_config_places(config, counters->names.items[i], &places);
        *out |= status == KPROF_OK ? kprof_places_kinds(&places) : 0;
    }
    return status;
}

static kprof_status try_in_sms(builder *b, kprof_raw_config *config, size_t pass)
{
    candidate *c = &b->candidates[SM_INSTRUCTIONS];
    kprof_counter_places places;
    unsigned has;
    if (c->counters.count != 1)
        return KPROF_OK;
    kprof_status status = read_kinds(config, &b->passes[pass], &has);
    if (status == KPROF_OK)
        status = kprof_raw_config_places(config, c->counters.items[0], &places);
    for (size_t i = 0; status == KPROF_OK && i < places.count && !c->fits[pass]; i++) {
        kprof_placed_counter one = {c->counters.items[0], places.items[i]};
        if (!kprof_place_is_free(one.domain, has))
            continue;
        b->sm_domains[pass] = one.domain;
        status = kprof_raw_config_takes(config, &one, 1, &c->fits[pass]);
        if (status == KPROF_OK && c->fits[pass])
            status = kprof_raw_config_put(config, &one);
    }
    return status;
}

static kprof_status try_candidates(builder *b, kprof_raw_config *config, size_t pass)
{
    if (pass >= KPROF_WITNESS_PASSES)
        return KPROF_OK;
    kprof_status status = try_in_sms(b, config, pass);
    for (size_t i = SM_INSTRUCTIONS + 1; i < CANDIDATES && status == KPROF_OK; i++) {
        candidate *c = &b->candidates[i];
        if (c->counters.count == 0)
            continue;
        status = kprof_raw_config_fits(config, &c->counters, &c->fits[pass]);
        if (status == KPROF_OK && c->fits[pass])
            status = kprof_raw_config_add(config, &c->counters);
    }
    return status;
}

static kprof_status add_candidates(builder *b, kprof_raw_config *config, size_t pass)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        const candidate *c = &b->candidates[i];
        if (!c->fits[pass] || (b->cheap && kinds[i].place == IN_TPCS))
            continue;
        kprof_placed_counter in_sms = {c->counters.items[0], b->sm_domains[pass]};
        status = kinds[i].place == IN_SMS ? kprof_raw_config_put(config, &in_sms)
                                          : kprof_raw_config_add(config, &c->counters);
    }
    return status;
}

static size_t count_passes(const builder *b, size_t number)
{
    size_t count = 0;
    for (size_t i = 0; i < b->image->pass_count; i++)
        count += b->candidates[number].fits[i];
    return count;
}

/* A witness in one pass has nothing to be compared with. */
static void drop_lonely(builder *b, size_t number)
{
    if (count_passes(b, number) < 2)
        memset(b->candidates[number].fits, 0, b->image->pass_count * sizeof(bool));
}

static void choose_passes(builder *b)
{
    const bool *in_sms = b->candidates[SM_INSTRUCTIONS].fits;
    bool *in_tpcs = b->candidates[TPC_INSTRUCTIONS].fits, *cycles = b->candidates[TPC_CYCLES].fits, both = false;
    drop_lonely(b, SM_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++) {
        bool here = in_tpcs[i] && (!in_sms[i] || !both);
        both = both || (here && in_sms[i]);
        in_tpcs[i] = here;
    }
    drop_lonely(b, TPC_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++)
        cycles[i] = cycles[i] && in_tpcs[i];
    for (size_t i = TPC_CYCLES; i < CANDIDATES; i++)
        drop_lonely(b, i);
}

static kprof_status run_scheduler(builder *b, visit_pass *visit, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_status status = kprof_raw_config_open(b->host, &config);
    if (status == KPROF_OK)
        status = walk_passes(b, config, visit);
    if (status == KPROF_OK && out)
        status = kprof_raw_config_image(b->host, config, out);
    kprof_raw_config_close(config);
    return status;
}

/* With none that takes time, or all. */
static kprof_status make_image(builder *b, bool cheap, kprof_witnesses *out)
{
    b->cheap = cheap;
    for (size_t i = 0; i < CANDIDATES; i++) {
        bool wanted = count_passes(b, i) > 0 && !(cheap && kinds[i].place == IN_TPCS);
        if (wanted && !kprof_strlist_add(&out->names, kinds[i].name))
            return KPROF_NO_MEMORY;
    }
    if (out->names.count == 0)
        return KPROF_OK;
    kprof_status status = run_scheduler(b, add_candidates, &out->image);
    if (status == KPROF_OK && out->image.pass_count != b->image->pass_count)
        status =
            kprof_fail(KPROF_INTERNAL, "witnesses made %zu passes of %zu", out->image.pass_count, b->image->pass_count);
    return status;
}

static void builder_free(builder *b)
{
    for (size_t i = 0; b->passes && i < b->image->pass_count; i++)
        kprof_placed_counters_free(&b->passes[i]);
    for (size_t i = 0; i < CANDIDATES; i++) {
        kprof_strlist_free(&b->candidates[i].counters);
        free(b->candidates[i].fits);
    }
    free(b->passes);
    free(b->sm_domains);
    kprof_strlist_free(&b->taken);
}

void kprof_witnesses_free(kprof_witnesses *witnesses)
{
    kprof_strlist_free(&witnesses->names);
    kprof_config_image_free(&witnesses->image);
}

/* Read what was kept on disk: the names, each with its NUL, an empty one, and the image; no image where there are no
 * witnesses. */
static bool unpack(const kprof_host *host, const kprof_strbuf *kept, kprof_witnesses *out)
{
    size_t at = 0;
    for (; at < kept->length && kept->data[at]; at += strlen(kept->data + at) + 1) {
        if (out->names.count == KPROF_MAX_WITNESSES || !kprof_strlist_add(&out->names, kept->data + at))
            return false;
    }
    if (at >= kept->length)
        return false;
    out->image.size = kept->length - at - 1;
    if (out->image.size == 0)
        return out->names.count == 0;
    out->image.data = malloc(out->image.size);
    if (!out->image.data)
        return false;
    memcpy(out->image.data, kept->data + at + 1, out->image.size);
    return kprof_host_count_passes(host, &out->image) == KPROF_OK;
}

static bool recall(const kprof_host_question *question, kprof_witnesses *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept) && unpack(question->host, &kept, out);
    kprof_strbuf_free(&kept);
    if (!found)
        kprof_witnesses_free(out);
    return found;
}

static void keep(const kprof_host_question *question, const kprof_witnesses *w)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < w->names.count; i++)
        kprof_strbuf_append(&bytes, w->names.items[i], strlen(w->names.items[i]) + 1);
    kprof_strbuf_append(&bytes, "", 1);
    kprof_strbuf_append(&bytes, w->image.data, w->image.size);
    if (!bytes.failed)
        kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

/* An image with all witnesses, and one with those that take hardly any time, of one choice of passes. */
typedef struct witness_images {
    kprof_witnesses all, cheap;
} witness_images;

static void images_free(witness_images *images)
{
    kprof_witnesses_free(&images->all);
    kprof_witnesses_free(&images->cheap);
}

static kprof_status choose(builder *b)
{
    kprof_status status = prepare(b);
    if (status == KPROF_OK)
        status = run_scheduler(b, try_candidates, NULL);
    if (status == KPROF_OK)
        choose_passes(b);
    return status;
}

static kprof_status make(builder *b, witness_images *out)
{
    kprof_status status = choose(b);
    if (status == KPROF_OK)
        status = make_image(b, false, &out->all);
    return status == KPROF_OK ? make_image(b, true, &out->cheap) : status;
}

static kprof_status find_or_make(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 witness_images *out)
{
    char all_text[64], cheap_text[64]; /* with the schedule: other passes of the same names have other witnesses */
    kprof_host_question all_question = {host, all_text, names}, cheap_question = {host, cheap_text, names};
    uint32_t checksum = kprof_crc32c(0, image->data, image->size);
    snprintf(all_text, sizeof(all_text), QUESTION " %08x", checksum);
    snprintf(cheap_text, sizeof(cheap_text), QUESTION " cheap %08x", checksum);
    if (recall(&all_question, &out->all) && recall(&cheap_question, &out->cheap))
        return KPROF_OK;
    images_free(out);
    builder b = {.host = host, .names = names, .image = image};
    kprof_status status = make(&b, out);
    builder_free(&b);
    if (status != KPROF_OK)
        return status;
    keep(&all_question, &out->all);
    keep(&cheap_question, &out->cheap);
    return KPROF_OK;
}

/* Take `with` in place of *image, whose counters it has where they were placed. */
static void replace_image(kprof_config_image *image, kprof_config_image *with)
{
    with->placement = image->placement;
    image->placement = NULL;
    kprof_config_image_free(image);
    *image = *with;
    *with = (kprof_config_image){0};
}

/* Where CUPTI placed the counters it does not tell. Written down like ours, they are told from the witnesses beside
 * them, which are never read where they make a launch slow. Caller frees *out. */
static kprof_status copy_placement(const kprof_config_image *image, char **out)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < image->pass_count && status == KPROF_OK; i++) {
        kprof_placed_counters counters;
        status = kprof_placed_counters_read(image, i, &counters);
        for (size_t k = 0; k < counters.names.count && status == KPROF_OK; k++)
            kprof_placement_put(&text, counters.names.items[k], counters.domains[k]);
        kprof_placement_end_pass(&text);
        kprof_placed_counters_free(&counters);
    }
    *out = kprof_strbuf_take(&text);
    if (status == KPROF_OK && !*out)
        status = KPROF_NO_MEMORY;
    return status;
}

kprof_status kprof_host_try_witnesses(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                      kprof_witnesses *out)
{
    builder b = {.host = host, .names = names, .image = image};
    *out = (kprof_witnesses){0};
    if (image->pass_count < 2)
        return KPROF_OK;
    kprof_status status = choose(&b);
    if (status == KPROF_OK)
        status = make_image(&b, false, out);
    if (status == KPROF_OK && out->image.size > 0)
        status = copy_placement(image, &out->image.placement);
    builder_free(&b);
    return status;
}

kprof_status kprof_host_witness(kprof_host *host, const kprof_strlist *names, kprof_config_image *image,
                                kprof_witnesses *out)
{
    witness_images images = {0};
    *out = (kprof_witnesses){0};
    if (image->pass_count < 2)
        return KPROF_OK;
    kprof_status status = find_or_make(host, names, image, &images);
    if (status != KPROF_OK || images.all.image.size == 0) {
        images_free(&images);
        return status;
    }
    *out = images.all;
    if (!image->placement)
        status = copy_placement(image, &image->placement);
    if (status == KPROF_OK && !(out->image.placement = strdup(image->placement)))
        status = KPROF_NO_MEMORY;
    if (images.cheap.image.size > 0)
        replace_image(image, &images.cheap.image);
    kprof_witnesses_free(&images.cheap);
    return status;
}
