/* Keeps on disk what takes CUPTI long to tell: which names it can collect, and whole plans. */
#include "planner/pack.h"

#include "core/bytes.h"
#include "core/cache.h"

#include <stdlib.h>
#include <string.h>

/* False where the library cannot be told from others: then nothing is kept. */
static bool make_key(const kprof_host_question *question, kprof_strbuf *key)
{
    const kprof_host *host = question->host;
    kprof_strbuf_printf(key, "%s\nplanner %s\n", question->what, KPROF_PLANNER_SOURCES);
    if (!kprof_cupti_identify(key))
        return false;
    kprof_strbuf_printf(key, "%s\navailability %zu\n", host->chip, host->availability.size);
    kprof_strbuf_append(key, host->availability.image, host->availability.size);
    for (size_t i = 0; i < question->names->count; i++) {
        const char *name = question->names->items[i];
        kprof_strbuf_append(key, name, strlen(name) + 1); /* the NUL keeps names apart */
    }
    return !key->failed;
}

bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    bool found = make_key(question, &key) && kprof_cache_get(&key, out);
    kprof_strbuf_free(&key);
    return found;
}

void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    if (make_key(question, &key))
        kprof_cache_put(&key, answer, size);
    kprof_strbuf_free(&key);
}

static void put_array(kprof_strbuf *out, const void *items, size_t count, size_t size)
{
    kprof_put_u64(out, count);
    kprof_strbuf_append(out, items, count * size);
}

/* Allocate an array of items of this size; NULL after a failure, which `in` remembers. */
static void *get_array(kprof_bytes *in, size_t size, size_t *count)
{
    *count = kprof_get_u64(in);
    in->failed = in->failed || *count > in->left / size;
    const void *block = in->failed ? NULL : kprof_get_block(in, *count * size);
    void *items = block ? malloc(*count * size + 1) : NULL;
    in->failed = in->failed || !items;
    return items ? memcpy(items, block, *count * size) : NULL;
}

/* The cost is left out: prices are no part of the answer. */
void kprof_planned_keep(const kprof_host_question *question, const kprof_planned *plan)
{
    kprof_strbuf out = KPROF_STRBUF_INIT;
    const kprof_schedule *schedule = &plan->schedule;
    kprof_put_strings(&out, &plan->collect);
    kprof_put_strings(&out, &plan->left_out);
    kprof_put_strings(&out, &plan->variants.witnesses);
    kprof_put_strings(&out, &plan->variants.proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        kprof_put_u64(&out, plan->variants.items[i].pass_count);
        put_array(&out, plan->variants.items[i].data, plan->variants.items[i].size, 1);
    }
    put_array(&out, schedule->passes, schedule->pass_count, sizeof(*schedule->passes));
    put_array(&out, schedule->last_passes, schedule->metric_count, sizeof(*schedule->last_passes));
    put_array(&out, schedule->patched, schedule->metric_count, sizeof(*schedule->patched));
    for (size_t i = 0; i < schedule->metric_count; i++)
        put_array(&out, schedule->metrics[i].items, schedule->metrics[i].count, sizeof(*schedule->metrics[i].items));
    if (!out.failed)
        kprof_host_keep(question, out.data, out.length);
    kprof_strbuf_free(&out);
}

static void get_schedule(kprof_bytes *in, kprof_schedule *out)
{
    size_t patched_count;
    out->passes = get_array(in, sizeof(*out->passes), &out->pass_count);
    out->last_passes = get_array(in, sizeof(*out->last_passes), &out->metric_count);
    out->patched = get_array(in, sizeof(*out->patched), &patched_count);
    in->failed = in->failed || patched_count != out->metric_count;
    out->metrics = in->failed ? NULL : calloc(out->metric_count + 1, sizeof(*out->metrics));
    for (size_t i = 0; i < out->metric_count && out->metrics; i++) {
        kprof_pass_list *passes = &out->metrics[i];
        passes->items = get_array(in, sizeof(*passes->items), &passes->count);
        for (size_t k = 0; passes->items && k < passes->count; k++)
            in->failed = in->failed || passes->items[k] >= out->pass_count;
    }
    in->failed = in->failed || !out->metrics;
}

/* Do the parts of a plan belong together? */
static bool is_whole(const kprof_planned *plan)
{
    const kprof_image_variants *variants = &plan->variants;
    const size_t passes = plan->schedule.pass_count;
    bool is_good = variants->witnesses.count <= KPROF_MAX_WITNESSES &&
                   plan->schedule.metric_count == plan->collect.count + variants->witnesses.count;
    for (unsigned bits = 0; bits < KPROF_IMAGES; bits++) {
        const kprof_config_image *image = &variants->items[bits];
        bool is_there = passes > 0 && (!(bits & KPROF_IMAGE_PROVED) || variants->proof.count > 0) &&
                        (!(bits & KPROF_IMAGE_WITNESSED) || variants->witnesses.count > 0);
        is_good = is_good && (image->size > 0) == is_there &&
                  image->pass_count == (is_there ? passes + (bits & KPROF_IMAGE_PROVED ? 1 : 0) : 0);
    }
    return is_good;
}

bool kprof_planned_decode(kprof_bytes *in, kprof_planned *out)
{
    *out = (kprof_planned){0};
    kprof_get_strings(in, &out->collect);
    kprof_get_strings(in, &out->left_out);
    kprof_get_strings(in, &out->variants.witnesses);
    kprof_get_strings(in, &out->variants.proof);
    for (size_t i = 0; i < KPROF_IMAGES; i++) {
        out->variants.items[i].pass_count = kprof_get_u64(in);
        out->variants.items[i].data = get_array(in, 1, &out->variants.items[i].size);
    }
    get_schedule(in, &out->schedule);
    if (!in->failed && in->left == 0 && is_whole(out))
        return true;
    kprof_planned_free(out);
    return false;
}

/* The cache returns only the bytes that were put there: CUPTI crashes on bytes that are no image. */
bool kprof_planned_recall(const kprof_host_question *question, kprof_planned *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept);
    kprof_bytes in = {(const uint8_t *)kept.data, kept.length, false};
    found = found && kprof_planned_decode(&in, out);
    kprof_strbuf_free(&kept);
    return found;
}
