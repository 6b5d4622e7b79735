/* Puts metrics into passes of samples over time, and keeps the plans on disk. */
#include "planner/timeline.h"

#include "core/bytes.h"

#include <stdio.h>

void kprof_timeline_free(kprof_timeline_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        kprof_strlist_free(&plan->passes[i].metrics);
        kprof_config_image_free(&plan->passes[i].image);
    }
    free(plan->passes);
    kprof_strlist_free(&plan->left_out);
    *plan = (kprof_timeline_plan){0};
}

size_t kprof_timeline_metric_count(const kprof_timeline_plan *plan)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++)
        count += plan->passes[i].metrics.count - 1;
    return count;
}

/* Add the name to a pass if the pass is still one then. */
static kprof_status try_pass(kprof_host *host, const char *name, kprof_timeline_pass *pass, bool *fits)
{
    kprof_config_image image = {0};
    kprof_strlist_add(&pass->metrics, name);
    kprof_status status = kprof_host_sample_image(host, &pass->metrics, &image);
    *fits = status == KPROF_OK && image.pass_count == 1;
    if (*fits) {
        kprof_config_image_free(&pass->image);
        pass->image = image;
        return status;
    }
    kprof_config_image_free(&image);
    free(pass->metrics.items[--pass->metrics.count]);
    return status;
}

/* Append an empty pass; there is space. */
static void add_pass(kprof_timeline_plan *plan)
{
    kprof_timeline_pass *pass = &plan->passes[plan->count];
    *pass = (kprof_timeline_pass){.metrics = KPROF_STRLIST_INIT};
    plan->count++;
    kprof_strlist_add(&pass->metrics, KPROF_SAMPLE_ACTIVITY);
}

static kprof_status place(kprof_host *host, const char *name, size_t most, kprof_timeline_plan *plan)
{
    bool fits = false;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plan->count && status == KPROF_OK && !fits; i++)
        status = try_pass(host, name, &plan->passes[i], &fits);
    if (fits || status != KPROF_OK)
        return status;
    if (plan->count < most) {
        add_pass(plan);
        KPROF_THEN(status, try_pass(host, name, &plan->passes[plan->count - 1], &fits));
    }
    if (status != KPROF_OK || fits)
        return status;
    kprof_strlist_add(&plan->left_out, name);
    return KPROF_OK;
}

static kprof_status pack(kprof_host *host, const kprof_strlist *names, size_t most, kprof_timeline_plan *out)
{
    kprof_status status = KPROF_OK;
    out->passes = kprof_calloc(names->count, sizeof *out->passes);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = place(host, names->items[i], most, out);
    return status;
}

static void keep(const kprof_host_question *question, const kprof_timeline_plan *plan)
{
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    kprof_put_strings(&out, &plan->left_out);
    kprof_put_u32(&out, (uint32_t)plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        kprof_put_strings(&out, &plan->passes[i].metrics);
        kprof_put_u64(&out, plan->passes[i].image.size);
        kprof_strbuf_append(&out, plan->passes[i].image.data, plan->passes[i].image.size);
    }
    if (!out.failed)
        kprof_host_keep(question, out.data, out.length);
}

static void read_pass(kprof_bytes *in, kprof_timeline_pass *pass)
{
    *pass = (kprof_timeline_pass){.metrics = KPROF_STRLIST_INIT};
    kprof_get_strings(in, &pass->metrics);
    const uint64_t size = kprof_get_u64(in);
    const void *block = kprof_get_block(in, size);
    pass->image.data = in->failed ? NULL : kprof_calloc(1, size + 1);
    in->failed = in->failed || !pass->image.data || pass->metrics.count < 2;
    if (in->failed)
        return;
    memcpy(pass->image.data, block, size);
    pass->image.size = size;
    pass->image.pass_count = 1;
}

/* The cache returns only the bytes that were put there. */
static bool recall(const kprof_host_question *question, kprof_timeline_plan *out)
{
    KPROF_AUTO(kprof_strbuf) kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept);
    kprof_bytes in = {(const uint8_t *)kept.data, kept.length, !found};
    kprof_get_strings(&in, &out->left_out);
    const uint32_t count = kprof_get_u32(&in);
    in.failed = in.failed || count > question->names->count;
    out->passes = in.failed ? NULL : kprof_calloc(count + 1, sizeof *out->passes);
    in.failed = in.failed || !out->passes;
    for (; !in.failed && out->count < count; out->count++)
        read_pass(&in, &out->passes[out->count]);
    found = !in.failed && in.left == 0;
    if (!found)
        kprof_timeline_free(out);
    return found;
}

kprof_status kprof_timeline_make(kprof_host *host, const kprof_strlist *names, size_t most, kprof_timeline_plan *out)
{
    char what[96];
    most = most ? most : names->count;
    *out = (kprof_timeline_plan){0};
    if (names->count == 0)
        return KPROF_OK;
    snprintf(what, sizeof what, "timeline %zu planner %s", most, KPROF_PLANNER_SOURCES);
    const kprof_host_question question = {host, what, names};
    if (recall(&question, out))
        return KPROF_OK;
    kprof_status status = pack(host, names, most, out);
    if (status == KPROF_OK)
        keep(&question, out);
    return status;
}
