/* Makes the variants of a config image. Some add witnesses: counters that each pass has room for beside its own. Some
 * put the pass of the proof in front, whose counters tell that kernels use no memory outside their GPU. NVPW's
 * scheduler gets one group of counters for each pass of the given image, so that all variants have its passes, and no
 * counter changes its place. Variants are made once and then taken from disk. */
#include "planner/nvpw.h"
#include "planner/planner.h"

#include "core/bytes.h"
#include "core/config.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION "image variants"

/* A metric that may become a witness. */
typedef struct candidate {
    kprof_strlist counters; /* none: it cannot be a witness here */
    bool *fits;             /* [image->pass_count]; in the end: it is there */
} candidate;

typedef struct builder {
    kprof_host *host;
    kprof_evaluator *evaluator;
    const kprof_config_image *image; /* the given one */
    kprof_placed_counters *passes;   /* [image->pass_count]: the counters of each */
    kprof_strlist taken;             /* counters that a collected value or a witness may depend on */
    candidate candidates[KPROF_MAX_WITNESSES];
    uint32_t *sm_domains;         /* [image->pass_count]: where the instructions of the SMs are read */
    kprof_strlist proof_counters; /* empty: there is no proof */
    unsigned bits;                /* KPROF_IMAGE_, of the variant that is being made */
} builder;

/* Called for each pass of the given image, while the pass' group is open and has the pass' counters. */
typedef kprof_status pass_visitor(builder *b, kprof_raw_config *config, size_t pass);

static kprof_status list_taken(builder *b, const kprof_strlist *names)
{
    kprof_status status = kprof_evaluator_get(b->host, &b->evaluator);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(b->evaluator, names->items[i], &b->taken, &b->taken);
    return status;
}

/* `b` has the host and the image. */
static kprof_status prepare(builder *b, const kprof_strlist *names)
{
    size_t pass_count = b->image->pass_count;
    b->passes = calloc(pass_count, sizeof(*b->passes));
    b->sm_domains = calloc(pass_count, sizeof(*b->sm_domains));
    kprof_status status = b->passes && b->sm_domains ? list_taken(b, names) : KPROF_NO_MEMORY;
    for (size_t i = 0; i < pass_count && status == KPROF_OK; i++)
        status = kprof_placed_counters_read(b->image, i, &b->passes[i]);
    for (size_t i = 0; i < KPROF_MAX_WITNESSES && status == KPROF_OK; i++) {
        b->candidates[i].fits = calloc(pass_count, sizeof(*b->candidates[i].fits));
        status = b->candidates[i].fits ? KPROF_OK : KPROF_NO_MEMORY;
    }
    return status;
}

static void builder_free(builder *b)
{
    for (size_t i = 0; b->passes && i < b->image->pass_count; i++)
        kprof_placed_counters_free(&b->passes[i]);
    for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++) {
        kprof_strlist_free(&b->candidates[i].counters);
        free(b->candidates[i].fits);
    }
    free(b->passes);
    free(b->sm_domains);
    kprof_strlist_free(&b->taken);
    kprof_strlist_free(&b->proof_counters);
}

static bool has_taken(const builder *b, const kprof_strlist *counters)
{
    for (size_t i = 0; i < counters->count; i++) {
        if (kprof_strlist_contains(&b->taken, counters->items[i]))
            return true;
    }
    return false;
}

static kprof_status put_proof(builder *b, kprof_raw_config *config)
{
    kprof_status status = kprof_raw_config_begin(config);
    if (status == KPROF_OK)
        status = kprof_raw_config_add(config, &b->proof_counters);
    return status == KPROF_OK ? kprof_raw_config_end(config) : status;
}

static kprof_status put_pass(builder *b, kprof_raw_config *config, size_t pass, pass_visitor *visit)
{
    kprof_status status = kprof_raw_config_begin(config);
    if (status == KPROF_OK)
        status = kprof_raw_config_put_all(config, &b->passes[pass]);
    if (status == KPROF_OK)
        status = visit(b, config, pass);
    return status == KPROF_OK ? kprof_raw_config_end(config) : status;
}

static kprof_status run_builder(builder *b, pass_visitor *visit, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_status status = kprof_raw_config_open(b->host, &config);
    if (status == KPROF_OK && (b->bits & KPROF_IMAGE_PROVED))
        status = put_proof(b, config);
    for (size_t i = 0; i < b->image->pass_count && status == KPROF_OK; i++)
        status = put_pass(b, config, i, visit);
    if (status == KPROF_OK && out)
        status = kprof_raw_config_image(b->host, config, out);
    kprof_raw_config_close(config);
    return status;
}

/* The place that counts a witness decides its cost. */
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

/* A counter that is in several passes reads as their mean, so a witness must be nothing that a value is computed from;
 * nor may it be computed from what is in some pass already. */
static kprof_status list_candidate(builder *b, const char *name, candidate *c)
{
    kprof_strlist optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(b->host, name))
        return KPROF_OK;
    kprof_status status = kprof_evaluator_raw_counters(b->evaluator, name, &c->counters, &optional);
    if (status == KPROF_OK && (has_taken(b, &c->counters) || has_taken(b, &optional)))
        kprof_strlist_free(&c->counters);
    for (size_t i = 0; i < c->counters.count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(&b->taken, c->counters.items[i]))
            status = KPROF_NO_MEMORY;
    }
    kprof_strlist_free(&optional);
    return status;
}

static kprof_status try_in_sms(builder *b, kprof_raw_config *config, size_t pass)
{
    candidate *c = &b->candidates[SM_INSTRUCTIONS];
    kprof_counter_places places;
    kprof_pass_traits has = {0};
    const kprof_placed_counters *own = &b->passes[pass];
    if (c->counters.count != 1)
        return KPROF_OK;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < own->names.count && status == KPROF_OK; i++)
        status =
            kprof_raw_config_add_traits(config, &(kprof_placed_counter){own->names.items[i], own->domains[i]}, &has);
    if (status == KPROF_OK)
        status = kprof_raw_config_places(config, c->counters.items[0], &places);
    for (size_t i = 0; status == KPROF_OK && i < places.count && !c->fits[pass]; i++) {
        kprof_placed_counter one = {c->counters.items[0], places.items[i]};
        if (!kprof_place_is_free(one.domain, &has))
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

static kprof_status add_witnesses(builder *b, kprof_raw_config *config, size_t pass)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        const candidate *c = &b->candidates[i];
        bool takes_time = kinds[i].place == IN_TPCS;
        if (!c->fits[pass] || (takes_time && !(b->bits & KPROF_IMAGE_WITNESSED)))
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

static kprof_status choose_witnesses(builder *b, kprof_strlist *names)
{
    if (b->image->pass_count < 2)
        return KPROF_OK;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++)
        status = list_candidate(b, kinds[i].name, &b->candidates[i]);
    if (status == KPROF_OK)
        status = run_builder(b, try_candidates, NULL);
    if (status != KPROF_OK)
        return status;
    choose_passes(b);
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        if (count_passes(b, i) > 0 && !kprof_strlist_add(names, kinds[i].name))
            status = KPROF_NO_MEMORY;
    }
    return status;
}

/* The proof is the first row that the chip can count in one pass and that shares no counter with a collected value.
 * Most GB10x and GB20x chips have a second-level cache for memory outside the GPU alone: syslts. */
enum { PROOF_METRICS = 2 };
static const char *const alternatives[][PROOF_METRICS] = {
    {"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"lts__t_requests_srcunit_tex_aperture_sysmem.sum", "lts__t_requests_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_sectors_srcunit_tex_aperture_sysmem.sum", "syslts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_requests_srcunit_tex_aperture_sysmem.sum", "syslts__t_requests_srcunit_tex_aperture_peer.sum"},
};
enum { ROWS = sizeof(alternatives) / sizeof(alternatives[0]) };

static bool can_collect(kprof_host *host, const char *const *names)
{
    for (size_t i = 0; i < PROOF_METRICS; i++) {
        if (!kprof_host_can_collect(host, names[i]))
            return false;
    }
    return true;
}

/* False after a failure of NVPW too: kprof can do without a proof. */
static bool fit_one_pass(const kprof_host *host, const kprof_strlist *counters)
{
    kprof_raw_config *config;
    bool fit = false;
    kprof_status status = kprof_raw_config_open_quietly(host, &config);
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(config);
    if (status == KPROF_OK)
        status = kprof_raw_config_fits(config, counters, &fit);
    kprof_raw_config_close(config);
    return status == KPROF_OK && fit;
}

static kprof_status list_proof_counters(builder *b, const char *const *names)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < PROOF_METRICS && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(b->evaluator, names[i], &b->proof_counters, NULL);
    return status;
}

/* A counter that is in several passes reads as their mean, so no collected value may depend on those of the proof. */
static kprof_status find_row(builder *b, size_t *row)
{
    for (*row = 0; *row < ROWS; (*row)++) {
        if (!can_collect(b->host, alternatives[*row]))
            continue;
        kprof_status status = list_proof_counters(b, alternatives[*row]);
        if (status != KPROF_OK)
            return status;
        if (!has_taken(b, &b->proof_counters) && fit_one_pass(b->host, &b->proof_counters))
            return KPROF_OK;
        kprof_strlist_free(&b->proof_counters);
    }
    return KPROF_OK;
}

static kprof_status choose_proof(builder *b, kprof_strlist *names)
{
    size_t row;
    kprof_status status = find_row(b, &row);
    for (size_t i = 0; i < PROOF_METRICS && row < ROWS && status == KPROF_OK; i++)
        status = kprof_strlist_add(names, alternatives[row][i]) ? KPROF_OK : KPROF_NO_MEMORY;
    return status;
}

/* False where the image of these bits would be the given one, or another variant. */
static bool is_needed(const kprof_image_variants *variants, unsigned bits)
{
    if ((bits & KPROF_IMAGE_PROVED) && variants->proof.count == 0)
        return false;
    return bits == KPROF_IMAGE_PROVED || variants->witnesses.count > 0;
}

static size_t passes_of(size_t pass_count, unsigned bits)
{
    return pass_count + ((bits & KPROF_IMAGE_PROVED) != 0);
}

static void drop_proof(kprof_image_variants *variants)
{
    kprof_strlist_free(&variants->proof);
    for (unsigned bits = KPROF_IMAGE_PROVED; bits < KPROF_IMAGES; bits++)
        kprof_config_image_free(&variants->items[bits]);
}

static kprof_status make_image(builder *b, unsigned bits, kprof_image_variants *out)
{
    kprof_config_image *image = &out->items[bits];
    b->bits = bits;
    kprof_status status = run_builder(b, add_witnesses, image);
    if (status != KPROF_OK || image->pass_count == passes_of(b->image->pass_count, bits))
        return status;
    if (!(bits & KPROF_IMAGE_PROVED))
        return kprof_fail(KPROF_INTERNAL, "witnesses made %zu passes of %zu", image->pass_count, b->image->pass_count);
    kprof_log(KPROF_LOG_DEBUG, "the proof made %zu passes of %zu: there is none", image->pass_count,
              b->image->pass_count);
    drop_proof(out);
    return KPROF_OK;
}

static kprof_status make(builder *b, const kprof_strlist *names, kprof_image_variants *out)
{
    kprof_status status = prepare(b, names);
    if (status == KPROF_OK)
        status = choose_witnesses(b, &out->witnesses);
    if (status == KPROF_OK)
        status = choose_proof(b, &out->proof);
    for (unsigned bits = 0; bits < KPROF_IMAGES && status == KPROF_OK; bits++)
        status = is_needed(out, bits) ? make_image(b, bits, out) : KPROF_OK;
    return status;
}

/* Keep the names of the witnesses and of the proof, and the size and the bytes of each image. */
static void keep(const kprof_host_question *question, const kprof_image_variants *variants)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_put_strings(&bytes, &variants->witnesses);
    kprof_put_strings(&bytes, &variants->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        kprof_put_u64(&bytes, variants->items[i].size);
        kprof_strbuf_append(&bytes, variants->items[i].data, variants->items[i].size);
    }
    if (!bytes.failed)
        kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

static bool unpack_image(kprof_bytes *in, kprof_config_image *out)
{
    size_t size = kprof_get_u64(in);
    const void *data = kprof_get_block(in, size);
    if (in->failed || size == 0)
        return !in->failed;
    out->data = malloc(size);
    if (!out->data)
        return false;
    memcpy(out->data, data, size);
    out->size = size;
    return true;
}

static bool unpack(const kprof_strbuf *kept, kprof_image_variants *out)
{
    kprof_bytes in = {(const uint8_t *)kept->data, kept->length, false};
    kprof_get_strings(&in, &out->witnesses);
    kprof_get_strings(&in, &out->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        if (!unpack_image(&in, &out->items[i]))
            return false;
    }
    return in.left == 0 && out->witnesses.count <= KPROF_MAX_WITNESSES;
}

/* The images that are needed are there, and have the right number of passes. */
static bool is_complete(const kprof_host *host, size_t pass_count, kprof_image_variants *variants)
{
    for (unsigned bits = 0; bits < KPROF_IMAGES; bits++) {
        kprof_config_image *image = &variants->items[bits];
        if ((image->size > 0) != is_needed(variants, bits))
            return false;
        if (image->size == 0)
            continue;
        if (kprof_host_count_passes(host, image) != KPROF_OK || image->pass_count != passes_of(pass_count, bits))
            return false;
    }
    return true;
}

static bool recall(const kprof_host_question *question, size_t pass_count, kprof_image_variants *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    bool found =
        kprof_host_recall(question, &kept) && unpack(&kept, out) && is_complete(question->host, pass_count, out);
    kprof_strbuf_free(&kept);
    if (!found)
        kprof_image_variants_free(out);
    return found;
}

static kprof_status find_or_make(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                 kprof_image_variants *out)
{
    char text[64]; /* names the schedule: the same names in other passes have other witnesses */
    kprof_host_question question = {host, text, names};
    snprintf(text, sizeof(text), QUESTION " %08x", kprof_crc32c(0, image->data, image->size));
    if (recall(&question, image->pass_count, out))
        return KPROF_OK;
    builder b = {.host = host, .image = image};
    kprof_status status = make(&b, names, out);
    builder_free(&b);
    if (status == KPROF_OK)
        keep(&question, out);
    return status;
}

/* Write down where the counters of `image` are read, for the variant of these bits. Witnesses and the counters of the
 * proof are left out: they are never read where they make a launch slow. Caller frees *out. */
static kprof_status copy_placement(const kprof_config_image *image, unsigned bits, char **out)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    kprof_status status = KPROF_OK;
    if (bits & KPROF_IMAGE_PROVED)
        kprof_placement_end_pass(&text);
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

static kprof_status copy_bytes(const kprof_config_image *image, kprof_config_image *out)
{
    out->data = malloc(image->size);
    if (!out->data)
        return KPROF_NO_MEMORY;
    memcpy(out->data, image->data, image->size);
    out->size = image->size;
    out->pass_count = image->pass_count;
    return KPROF_OK;
}

kprof_status kprof_host_image_variants(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                       kprof_image_variants *out)
{
    *out = (kprof_image_variants){0};
    if (image->pass_count == 0)
        return KPROF_OK;
    kprof_status status = find_or_make(host, names, image, out);
    if (status == KPROF_OK && out->items[0].size == 0)
        status = copy_bytes(image, &out->items[0]);
    for (unsigned bits = 0; bits < KPROF_IMAGES && status == KPROF_OK; bits++) {
        if (out->items[bits].size > 0)
            status = copy_placement(image, bits, &out->items[bits].placement);
    }
    if (status != KPROF_OK)
        kprof_image_variants_free(out);
    return status;
}

void kprof_image_variants_free(kprof_image_variants *variants)
{
    kprof_strlist_free(&variants->witnesses);
    kprof_strlist_free(&variants->proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        kprof_config_image_free(&variants->items[i]);
}
