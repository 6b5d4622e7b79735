/* Makes variants of a config image: with witnesses, and with the pass of the proof in front. NVPW's scheduler gets one
 * group of counters for each pass of the given image, so that all variants have its passes. They are made once and then
 * taken from disk. */
#include "planner/variants_private.h"

#include "core/bytes.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION "image variants 1"

typedef kprof_variant_builder builder;

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

bool kprof_variant_builder_has_taken(const builder *b, const kprof_strlist *counters)
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

static kprof_status put_pass(builder *b, kprof_raw_config *config, size_t pass, kprof_pass_visitor *visit)
{
    kprof_status status = kprof_raw_config_begin(config);
    if (status == KPROF_OK)
        status = kprof_raw_config_put_all(config, &b->passes[pass]);
    if (status == KPROF_OK)
        status = visit(b, config, pass);
    return status == KPROF_OK ? kprof_raw_config_end(config) : status;
}

kprof_status kprof_variant_builder_run(builder *b, kprof_pass_visitor *visit, kprof_config_image *out)
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
    kprof_status status = kprof_variant_builder_run(b, kprof_witnesses_add, image);
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
        status = kprof_witnesses_choose(b, &out->witnesses);
    if (status == KPROF_OK)
        status = kprof_proof_choose(b, &out->proof);
    for (unsigned bits = 0; bits < KPROF_IMAGES && status == KPROF_OK; bits++)
        status = is_needed(out, bits) ? make_image(b, bits, out) : KPROF_OK;
    return status;
}

/* What is kept: the names of the witnesses and of the proof, and the size and the bytes of each image. */
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
