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
    return KPROF_SUM(i, plan->count, plan->passes[i].metrics.count - 1);
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

static kprof_status place(kprof_host *host, const char *name, size_t most, kprof_timeline_plan *plan)
{
    bool fits = false;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < plan->count && status == KPROF_OK && !fits; i++)
        status = try_pass(host, name, &plan->passes[i], &fits);
    if (fits || status != KPROF_OK)
        return status;
    if (plan->count < most) {
        kprof_timeline_pass *added = &plan->passes[plan->count++]; /* empty, as it was made */
        kprof_strlist_add(&added->metrics, KPROF_SAMPLE_ACTIVITY);
        status = try_pass(host, name, added, &fits);
    }
    if (status != KPROF_OK || fits)
        return status;
    kprof_strlist_add(&plan->left_out, name);
    return KPROF_OK;
}

static void transfer(const kprof_codec *c, kprof_timeline_plan *plan, size_t most)
{
    uint32_t count = (uint32_t)plan->count;
    kprof_code_strings(c, &plan->left_out);
    kprof_code_u32(c, &count);
    kprof_code_check(c, count <= most);
    if (kprof_codec_reads(c)) {
        plan->passes = kprof_calloc(count + 1, sizeof *plan->passes);
        plan->count = plan->passes ? count : 0;
        kprof_code_check(c, plan->passes);
    }
    for (size_t i = 0; i < plan->count; i++) {
        kprof_timeline_pass *pass = &plan->passes[i];
        kprof_code_strings(c, &pass->metrics);
        pass->image.data = kprof_code_array(c, pass->image.data, &pass->image.size, 1);
        pass->image.pass_count = 1;
        kprof_code_check(c, pass->metrics.count >= 2);
    }
}

/* The cache returns only the bytes that were put there. */
static bool recall(const kprof_host_question *question, kprof_timeline_plan *out)
{
    KPROF_AUTO(kprof_strbuf) kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept);
    kprof_bytes in = {(const uint8_t *)kept.data, kept.length, !found};
    transfer(&(kprof_codec){NULL, &in}, out, question->names->count);
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
    KPROF_AUTO(kprof_strbuf) kept = KPROF_STRBUF_INIT;
    kprof_status status = KPROF_OK;
    out->passes = kprof_calloc(names->count, sizeof *out->passes);
    for (size_t i = 0; i < names->count && status == KPROF_OK; i++)
        status = place(host, names->items[i], most, out);
    transfer(&(kprof_codec){&kept, NULL}, out, names->count);
    if (status == KPROF_OK && !kept.failed)
        kprof_host_keep(&question, kept.data, kept.length);
    return status;
}
