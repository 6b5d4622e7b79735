/* Puts witnesses into a config image: NVPW's scheduler gets a group for each of the image's passes, with the counters
 * that the pass has and then the witnesses that fit beside them, so that no pass is added and none changes its place.
 */
#include "cupti/schedule.h"

#include "core/bytes.h"
#include "core/config.h"
#include "core/log.h"
#include "cupti/raw_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTION "witnesses 5"

/* Counters outside the SMs, which cost no launch anything: instructions and cycles of the SMs as their TPCs see them
 * (GH100, GB10x), whose domain takes 18 ms more to start and stop a pass; cycles of the whole GPU, which take 1 ms; and
 * time, which takes nothing. */
static const char *const candidate_names[] = {
    "TPC.TriageCompute.sm__inst_executed_realtime.sum",
    "TPC.TriageCompute.sm__cycles_active.avg",
    "gr__cycles_active.sum",
    "gpu__time_active.sum",
};
enum {
    CANDIDATES = sizeof(candidate_names) / sizeof(candidate_names[0]),
    FIRST_CHEAP = 2, /* of them, those that take little or nothing */
};

_Static_assert(CANDIDATES <= KPROF_MAX_WITNESSES, "all candidates may become witnesses");

typedef struct candidate {
    const char *name;
    kprof_strlist counters; /* none: it cannot be a witness here */
    bool *fits;             /* [pass_count] */
    size_t first, count;    /* the longest run of passes into which it fits */
} candidate;

typedef struct builder {
    kprof_host *host;
    const kprof_strlist *names; /* what the image collects */
    const kprof_config_image *image;
    size_t first_candidate;        /* earlier ones are left out */
    kprof_placed_counters *passes; /* [pass_count]: the counters of each */
    kprof_strlist taken;           /* counters that any collected value may depend on */
    candidate candidates[CANDIDATES];
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
static kprof_status list_candidate(builder *b, kprof_evaluator *evaluator, candidate *c)
{
    kprof_strlist optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(b->host, c->name))
        return KPROF_OK;
    kprof_status status = kprof_evaluator_raw_counters(evaluator, c->name, &c->counters, &optional);
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
    for (size_t i = b->first_candidate; i < CANDIDATES && status == KPROF_OK; i++) {
        b->candidates[i].name = candidate_names[i];
        status = list_candidate(b, evaluator, &b->candidates[i]);
    }
    return status;
}

static kprof_status prepare(builder *b)
{
    b->passes = calloc(b->image->pass_count, sizeof(*b->passes));
    kprof_status status = b->passes ? list_candidates(b) : KPROF_NO_MEMORY;
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

static kprof_status try_candidates(builder *b, kprof_raw_config *config, size_t pass)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
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
        if (pass >= c->first && pass < c->first + c->count)
            status = kprof_raw_config_add(config, &c->counters);
    }
    return status;
}

/* Who reads a mean over passes must know how many have counted: they follow each other, so that it is all since the
 * first. */
static void choose_run(candidate *c, size_t pass_count)
{
    for (size_t i = 0, length = 0; i < pass_count; i++) {
        length = c->fits[i] ? length + 1 : 0;
        if (length > c->count) {
            c->count = length;
            c->first = i + 1 - length;
        }
    }
    if (c->count < 2)
        c->count = 0; /* nothing to compare */
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

static kprof_status build(builder *b, kprof_config_image *out, kprof_strlist *witnesses)
{
    kprof_status status = prepare(b);
    if (status == KPROF_OK)
        status = run_scheduler(b, try_candidates, NULL);
    for (size_t i = 0; i < CANDIDATES && status == KPROF_OK; i++) {
        choose_run(&b->candidates[i], b->image->pass_count);
        if (b->candidates[i].count > 0 && !kprof_strlist_add(witnesses, b->candidates[i].name))
            status = KPROF_NO_MEMORY;
    }
    if (status == KPROF_OK && witnesses->count > 0)
        status = run_scheduler(b, add_candidates, out);
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
        if (!kprof_strlist_add(&out->names, kept->data + at))
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

static kprof_status make(const kprof_host_question *question, const kprof_config_image *image, size_t first_candidate,
                         kprof_witnesses *out)
{
    builder b = {
        .host = (kprof_host *)question->host,
        .names = question->names,
        .image = image,
        .first_candidate = first_candidate,
    };
    kprof_status status = build(&b, &out->image, &out->names);
    builder_free(&b);
    if (status == KPROF_OK && out->names.count > 0 && out->image.pass_count != image->pass_count)
        status =
            kprof_fail(KPROF_INTERNAL, "witnesses made %zu passes of %zu", out->image.pass_count, image->pass_count);
    if (status == KPROF_OK)
        keep(question, out);
    else
        kprof_witnesses_free(out);
    return status;
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

kprof_status kprof_host_witness(kprof_host *host, const kprof_strlist *names, kprof_config_image *image,
                                kprof_witnesses *out)
{
    char all_text[64], cheap_text[64]; /* with the schedule: other passes of the same names have other witnesses */
    kprof_host_question all_question = {host, all_text, names}, cheap_question = {host, cheap_text, names};
    kprof_witnesses all = {0}, cheap = {0};
    *out = (kprof_witnesses){0};
    if (image->pass_count < 2)
        return KPROF_OK;
    uint32_t checksum = kprof_crc32c(0, image->data, image->size);
    snprintf(all_text, sizeof(all_text), QUESTION " %08x", checksum);
    snprintf(cheap_text, sizeof(cheap_text), QUESTION " cheap %08x", checksum);
    kprof_status status = recall(&all_question, &all) ? KPROF_OK : make(&all_question, image, 0, &all);
    if (status == KPROF_OK && !recall(&cheap_question, &cheap))
        status = make(&cheap_question, image, FIRST_CHEAP, &cheap);
    if (status != KPROF_OK || all.image.size == 0) {
        kprof_witnesses_free(&all);
        kprof_witnesses_free(&cheap);
        return status;
    }
    *out = all;
    if (image->placement && !(out->image.placement = strdup(image->placement)))
        status = KPROF_NO_MEMORY;
    if (cheap.image.size > 0)
        replace_image(image, &cheap.image);
    kprof_witnesses_free(&cheap);
    return status;
}
