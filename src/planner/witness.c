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

/* Instructions of the SMs, counted by themselves or as their TPCs see them (GH100, GB10x); active cycles, likewise, or
 * of the whole GPU; and time. Passes are compared by one counter at a time: where a pass has room for both counters of
 * instructions, one such pass has them, so that the passes of either are compared with those of the other. The one in
 * the SMs costs nothing in a pass that has counters of their first domain, and is in no other. Those of the TPCs take
 * 18 ms more to start and stop a pass: they are only where the one in the SMs is not, and once beside it. The others
 * take 1 ms or nothing. */
enum { SM_INSTRUCTIONS, TPC_INSTRUCTIONS, TPC_CYCLES, GPU_CYCLES, TIME, CANDIDATES };
static const struct {
    const char *name;
    bool takes_time;
} kinds[CANDIDATES] = {
    {KPROF_SM_INSTRUCTIONS, false},
    {KPROF_TPC_INSTRUCTIONS, true},
    {"TPC.TriageCompute.sm__cycles_active.avg", true},
    {"gr__cycles_active.sum", false},
    {"gpu__time_active.sum", false},
};
_Static_assert(CANDIDATES <= KPROF_MAX_WITNESSES, "all candidates may become witnesses");

/* A metric that may become a witness. */
typedef struct candidate {
    kprof_placed_counters counters; /* none: it cannot be a witness here */
    bool *fits;                     /* [image->pass_count]; in the end: it is there */
} candidate;

typedef struct builder {
    kprof_host *host;
    const kprof_config_image *image; /* the given one */
    kprof_placed_counters *passes;   /* [image->pass_count]: the counters of each */
    kprof_strlist taken;             /* counters that a collected value or a witness may depend on */
    candidate candidates[CANDIDATES];
    uint32_t *sm_domains;        /* [image->pass_count]: where the instructions of the SMs are read */
    kprof_placed_counters proof; /* none: there is no proof */
} builder;

/* `b` has the host and the image. */
static kprof_status prepare(builder *b, const kprof_strlist *names)
{
    size_t pass_count = b->image->pass_count;
    b->passes = calloc(pass_count, sizeof(*b->passes));
    b->sm_domains = calloc(pass_count, sizeof(*b->sm_domains));
    kprof_status status = b->passes && b->sm_domains ? KPROF_OK : KPROF_NO_MEMORY;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        b->candidates[i].fits = calloc(pass_count, sizeof(*b->candidates[i].fits));
        status = b->candidates[i].fits ? KPROF_OK : KPROF_NO_MEMORY;
    }
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = kprof_host_raw_counters(b->host, names->items[i], &b->taken, &b->taken);
    for (size_t i = 0; i < pass_count && status == KPROF_OK; i++)
        status = kprof_placed_counters_read(b->image, i, &b->passes[i]);
    return status;
}

static void builder_free(builder *b)
{
    for (size_t i = 0; b->passes && i < b->image->pass_count; i++)
        kprof_placed_counters_free(&b->passes[i]);
    for (size_t i = 0; i < CANDIDATES; i++) {
        kprof_placed_counters_free(&b->candidates[i].counters);
        free(b->candidates[i].fits);
    }
    free(b->passes);
    free(b->sm_domains);
    kprof_strlist_free(&b->taken);
    kprof_placed_counters_free(&b->proof);
}

static bool has_taken(const builder *b, const kprof_strlist *counters)
{
    for (size_t i = 0; i < counters->count; i++) {
        if (kprof_strlist_contains(&b->taken, counters->items[i]))
            return true;
    }
    return false;
}

/* A counter that is in several passes reads as their mean, so a witness must be nothing that a value is computed from;
 * nor may it be computed from what is in some pass already. */
static kprof_status list_candidate(builder *b, const char *name, kprof_placed_counters *counters)
{
    kprof_strlist optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(b->host, name))
        return KPROF_OK;
    kprof_status status = kprof_host_raw_counters(b->host, name, &counters->names, &optional);
    if (status == KPROF_OK && (has_taken(b, &counters->names) || has_taken(b, &optional)))
        kprof_strlist_free(&counters->names);
    for (size_t i = 0; i < counters->names.count && status == KPROF_OK; i++)
        status = kprof_strlist_add(&b->taken, counters->names.items[i]) ? KPROF_OK : KPROF_NO_MEMORY;
    kprof_strlist_free(&optional);
    return status == KPROF_OK ? kprof_placed_counters_make(counters) : status;
}

/* Find a domain for the instructions of the SMs, where they cost nothing. */
static kprof_status try_in_sms(builder *b, const kprof_raw_config *config, size_t pass)
{
    candidate *c = &b->candidates[SM_INSTRUCTIONS];
    kprof_placed_counter one = c->counters.items[0];
    kprof_counter_places places;
    kprof_traits has = {0, 0};
    kprof_status status = kprof_raw_config_places(config, one.name, &places);
    for (size_t i = 0; i < b->passes[pass].names.count && status == KPROF_OK; i++)
        status = kprof_raw_config_add_traits(config, &b->passes[pass].items[i], &has);
    for (size_t i = 0; status == KPROF_OK && i < places.count && !c->fits[pass]; i++) {
        one.domain = b->sm_domains[pass] = places.items[i];
        if (kprof_place_is_free(one.domain, &has))
            status = kprof_raw_config_takes(config, &one, 1, &c->fits[pass]);
    }
    return status;
}

/* In the open group of a pass, which has the pass' counters: find out which candidates fit beside each other. */
static kprof_status try_candidate(builder *b, size_t number, const kprof_raw_config *config, size_t pass)
{
    candidate *c = &b->candidates[number];
    size_t count = c->counters.names.count;
    if (count == 0 || pass >= KPROF_WITNESS_PASSES)
        return KPROF_OK;
    if (number == SM_INSTRUCTIONS)
        return count == 1 ? try_in_sms(b, config, pass) : KPROF_OK;
    return kprof_raw_config_takes(config, c->counters.items, count, &c->fits[pass]);
}

/* Put all passes into a scheduler, with the candidates that fit. Without `out` that is found out, else it is the image
 * of these bits, KPROF_IMAGE_. */
static kprof_status build(builder *b, unsigned bits, kprof_config_image *out)
{
    kprof_raw_config *config;
    kprof_status status = kprof_raw_config_open(b->host, false, &config);
    if (status == KPROF_OK && bits & KPROF_IMAGE_PROVED)
        status = kprof_raw_config_begin(config, b->proof.items, b->proof.names.count);
    for (size_t pass = 0; pass < b->image->pass_count && status == KPROF_OK; pass++) {
        status = kprof_raw_config_begin(config, b->passes[pass].items, b->passes[pass].names.count);
        for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
            candidate *c = &b->candidates[i];
            if (!out)
                status = try_candidate(b, i, config, pass);
            if (status != KPROF_OK || !c->fits[pass] || (out && kinds[i].takes_time && !(bits & KPROF_IMAGE_WITNESSED)))
                continue;
            c->counters.items[0].domain = i == SM_INSTRUCTIONS ? b->sm_domains[pass] : 0;
            status = kprof_raw_config_add(config, c->counters.items, c->counters.names.count);
        }
    }
    if (status == KPROF_OK && out)
        status = kprof_raw_config_image(b->host, config, out);
    kprof_raw_config_close(config);
    return status;
}

/* A witness in one pass has nothing to be compared with. Returns the passes that it is in. */
static size_t drop_lonely(builder *b, size_t number)
{
    size_t count = 0;
    bool *fits = b->candidates[number].fits;
    for (size_t i = 0; i < b->image->pass_count; i++)
        count += fits[i];
    if (count == 1)
        memset(fits, 0, b->image->pass_count * sizeof(*fits));
    return count == 1 ? 0 : count;
}

static kprof_status choose_witnesses(builder *b, kprof_strlist *names)
{
    const bool *in_sms = b->candidates[SM_INSTRUCTIONS].fits;
    bool *in_tpcs = b->candidates[TPC_INSTRUCTIONS].fits, *cycles = b->candidates[TPC_CYCLES].fits, both = false;
    kprof_status status = KPROF_OK;
    if (b->image->pass_count < 2)
        return KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++)
        status = list_candidate(b, kinds[i].name, &b->candidates[i].counters);
    if (status == KPROF_OK)
        status = build(b, 0, NULL);
    (void)drop_lonely(b, SM_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++) {
        in_tpcs[i] = in_tpcs[i] && (!in_sms[i] || !both);
        both = both || (in_tpcs[i] && in_sms[i]);
    }
    (void)drop_lonely(b, TPC_INSTRUCTIONS);
    for (size_t i = 0; i < b->image->pass_count; i++)
        cycles[i] = cycles[i] && in_tpcs[i];
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        if (drop_lonely(b, i) > 0 && !kprof_strlist_add(names, kinds[i].name))
            status = KPROF_NO_MEMORY;
    }
    return status;
}

/* The proof is the first row that the chip can count in one pass and that shares no counter with a collected value.
 * Most GB10x and GB20x chips have a second-level cache for memory outside the GPU alone: syslts. */
static const char *const alternatives[][2] = {
    {"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"lts__t_requests_srcunit_tex_aperture_sysmem.sum", "lts__t_requests_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_sectors_srcunit_tex_aperture_sysmem.sum", "syslts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_requests_srcunit_tex_aperture_sysmem.sum", "syslts__t_requests_srcunit_tex_aperture_peer.sum"},
};

/* False after a failure of NVPW too: kprof can do without a proof. */
static bool fit_one_pass(const kprof_host *host, const kprof_placed_counters *counters)
{
    kprof_raw_config *config;
    bool fit = false;
    kprof_status status = kprof_raw_config_open(host, true, &config);
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(config, NULL, 0);
    if (status == KPROF_OK)
        status = kprof_raw_config_takes(config, counters->items, counters->names.count, &fit);
    kprof_raw_config_close(config);
    return status == KPROF_OK && fit;
}

/* A counter that is in several passes reads as their mean, so no collected value may depend on those of the proof. */
static kprof_status choose_proof(builder *b, kprof_strlist *names)
{
    for (size_t row = 0; row < sizeof(alternatives) / sizeof(alternatives[0]); row++) {
        const char *const *pair = alternatives[row];
        if (!kprof_host_can_collect(b->host, pair[0]) || !kprof_host_can_collect(b->host, pair[1]))
            continue;
        kprof_status status = kprof_host_raw_counters(b->host, pair[0], &b->proof.names, NULL);
        if (status == KPROF_OK)
            status = kprof_host_raw_counters(b->host, pair[1], &b->proof.names, NULL);
        if (status == KPROF_OK)
            status = kprof_placed_counters_make(&b->proof);
        if (status != KPROF_OK)
            return status;
        if (!has_taken(b, &b->proof.names) && fit_one_pass(b->host, &b->proof))
            return kprof_strlist_add(names, pair[0]) && kprof_strlist_add(names, pair[1]) ? KPROF_OK : KPROF_NO_MEMORY;
        kprof_placed_counters_free(&b->proof);
    }
    return KPROF_OK;
}

/* False where the image of these bits would be another variant. */
static bool is_needed(const kprof_image_variants *variants, unsigned bits)
{
    return (!(bits & KPROF_IMAGE_PROVED) || variants->proof.count > 0) &&
           (!(bits & KPROF_IMAGE_WITNESSED) || variants->witnesses.count > 0);
}

static size_t passes_of(const kprof_config_image *image, unsigned bits)
{
    return image->pass_count + ((bits & KPROF_IMAGE_PROVED) != 0);
}

/* Write down where the counters of the given image are read in the variant of these bits. Witnesses and the counters of
 * the proof are left out: they are never read where they make a launch slow. */
static kprof_status put_placement(const builder *b, unsigned bits, kprof_config_image *out)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    if (bits & KPROF_IMAGE_PROVED)
        kprof_placement_put(&text, NULL, 0);
    for (size_t i = 0; i < b->image->pass_count; i++)
        kprof_placement_put(&text, b->passes[i].items, b->passes[i].names.count);
    out->placement = kprof_strbuf_take(&text);
    return out->placement ? KPROF_OK : KPROF_NO_MEMORY;
}

static kprof_status make_image(builder *b, unsigned bits, kprof_image_variants *out)
{
    kprof_config_image *image = &out->items[bits];
    kprof_status status = KPROF_OK;
    if (bits == 0 && out->witnesses.count == 0) { /* a copy, byte for byte */
        *image = (kprof_config_image){malloc(b->image->size), b->image->size, b->image->pass_count, NULL};
        if (!image->data)
            return KPROF_NO_MEMORY;
        memcpy(image->data, b->image->data, image->size);
    } else {
        status = build(b, bits, image);
    }
    if (status != KPROF_OK)
        return status;
    if (image->pass_count == passes_of(b->image, bits))
        return put_placement(b, bits, image);
    if (!(bits & KPROF_IMAGE_PROVED))
        return kprof_fail(KPROF_INTERNAL, "witnesses made %zu passes of %zu", image->pass_count, b->image->pass_count);
    kprof_log(KPROF_LOG_DEBUG, "the proof made %zu passes of %zu: there is none", image->pass_count,
              b->image->pass_count);
    kprof_strlist_free(&out->proof);
    for (unsigned i = KPROF_IMAGE_PROVED; i < KPROF_IMAGES; i++)
        kprof_config_image_free(&out->items[i]);
    return KPROF_OK;
}

/* The images that are needed are there, and have the right number of passes. */
static bool is_complete(const kprof_config_image *image, const kprof_image_variants *variants)
{
    bool is_good = variants->witnesses.count <= KPROF_MAX_WITNESSES;
    for (unsigned bits = 0; bits < KPROF_IMAGES; bits++) {
        size_t passes = is_needed(variants, bits) ? passes_of(image, bits) : 0;
        is_good = is_good && variants->items[bits].pass_count == passes;
    }
    return is_good;
}

kprof_status kprof_host_image_variants(kprof_host *host, const kprof_strlist *names, const kprof_config_image *image,
                                       kprof_image_variants *out)
{
    char text[64]; /* names the schedule: the same names in other passes have other witnesses */
    kprof_host_question question = {host, text, names};
    kprof_strlist lists[2] = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
    kprof_image_answer answer = {lists, out->items, KPROF_IMAGES};
    *out = (kprof_image_variants){0};
    if (image->pass_count == 0)
        return KPROF_OK;
    snprintf(text, sizeof(text), "image variants %08x", kprof_crc32c(0, image->data, image->size));
    bool found = kprof_host_recall_images(&question, &answer);
    out->witnesses = lists[0];
    out->proof = lists[1];
    if (found && is_complete(image, out))
        return KPROF_OK;
    kprof_image_variants_free(out);
    builder b = {.host = host, .image = image};
    kprof_status status = prepare(&b, names);
    if (status == KPROF_OK)
        status = choose_witnesses(&b, &out->witnesses);
    if (status == KPROF_OK)
        status = choose_proof(&b, &out->proof);
    for (unsigned bits = 0; bits < KPROF_IMAGES && status == KPROF_OK; bits++)
        status = is_needed(out, bits) ? make_image(&b, bits, out) : KPROF_OK;
    builder_free(&b);
    lists[0] = out->witnesses;
    lists[1] = out->proof;
    if (status == KPROF_OK)
        kprof_host_keep_images(&question, &answer);
    else
        kprof_image_variants_free(out);
    return status;
}
