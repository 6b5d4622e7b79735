/* Config images: the schedule of a list of metrics, CUPTI's or one packed into fewer passes, made once and then taken
 * from disk. */
#include "planner/host_private.h"
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define QUESTION           "config image 6"

static CUptiResult count_passes(const kprof_host *host, kprof_config_image *image)
{
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, params);
    params.configImageSize = image->size;
    params.pConfigImage = image->data;
    CUptiResult result = host->api->cuptiProfilerHostGetNumOfPasses(&params);
    image->pass_count = result == CUPTI_SUCCESS ? params.numOfPasses : 0;
    return result;
}

kprof_status kprof_host_count_passes(const kprof_host *host, kprof_config_image *image)
{
    CUptiResult result = count_passes(host, image);
    return result == CUPTI_SUCCESS ? KPROF_OK : kprof_host_fail(host, "counting the passes", result);
}

static kprof_status take_image(const kprof_host *host, CUpti_Profiler_Host_Object *object, kprof_config_image *out)
{
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = object;
    CUptiResult result = host->api->cuptiProfilerHostGetConfigImageSize(&size);
    if (result != CUPTI_SUCCESS)
        return kprof_host_fail(host, "sizing the config image", result);
    out->size = size.configImageSize;
    out->data = malloc(out->size ? out->size : 1);
    if (!out->data)
        return KPROF_NO_MEMORY;
    PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image);
    image.pHostObject = object;
    image.configImageSize = out->size;
    image.pConfigImage = out->data;
    result = host->api->cuptiProfilerHostGetConfigImage(&image);
    if (result != CUPTI_SUCCESS)
        return kprof_host_fail(host, "making the config image", result);
    return kprof_host_count_passes(host, out);
}

static kprof_status make_image(const kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    CUpti_Profiler_Host_Object *object;
    CUptiResult result = kprof_host_object_open(host, &object);
    if (result != CUPTI_SUCCESS)
        return kprof_host_fail(host, "opening the metrics", result);
    kprof_status status;
    result = kprof_host_object_add(host, object, (const char **)names->items, names->count);
    if (result == CUPTI_SUCCESS)
        status = take_image(host, object, out);
    else
        status = kprof_host_fail(host, "scheduling the metrics (can all of them be collected together?)", result);
    kprof_host_object_close(host, object);
    return status;
}

/* What is kept: the placement, empty where there is none, its NUL, and the image. */
static bool unpack_image(const kprof_strbuf *kept, kprof_config_image *out)
{
    size_t placement = kept->length ? strnlen(kept->data, kept->length) : 0;
    if (placement + 1 >= kept->length)
        return false;
    out->size = kept->length - placement - 1;
    out->data = malloc(out->size);
    out->placement = placement ? strdup(kept->data) : NULL;
    if (!out->data || (placement && !out->placement))
        return false;
    memcpy(out->data, kept->data + placement + 1, out->size);
    return true;
}

/* What comes from disk is as it was put there: CUPTI crashes on bytes that are no image. */
bool kprof_host_recall_image(const kprof_host_question *question, kprof_config_image *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    kprof_config_image image = {0};
    bool found = kprof_host_recall(question, &kept) && unpack_image(&kept, &image);
    kprof_strbuf_free(&kept);
    found = found && count_passes(question->host, &image) == CUPTI_SUCCESS && image.pass_count > 0;
    if (found)
        *out = image;
    else
        kprof_config_image_free(&image);
    return found;
}

void kprof_host_keep_image(const kprof_host_question *question, const kprof_config_image *image)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&bytes, image->placement ? image->placement : "");
    kprof_strbuf_append(&bytes, "", 1);
    kprof_strbuf_append(&bytes, image->data, image->size);
    if (!bytes.failed)
        kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

static kprof_status get_image(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *out)
{
    kprof_host_question question = {host, few_passes ? QUESTION " few" : QUESTION, names};
    *out = (kprof_config_image){0};
    if (kprof_host_recall_image(&question, out))
        return KPROF_OK;
    kprof_status status = kprof_host_draft_image(host, names, out);
    if (status != KPROF_OK)
        return status;
    kprof_pack(host, names, few_passes, out);
    if (out->size > 0)
        kprof_host_keep_image(&question, out);
    return KPROF_OK;
}

kprof_status kprof_host_config_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return get_image(host, names, false, out);
}

kprof_status kprof_host_few_passes_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return get_image(host, names, true, out);
}

kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    *out = (kprof_config_image){0};
    if (names->count == 0)
        return KPROF_OK; /* nothing to collect takes no pass */
    kprof_status status = make_image(host, names, out);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

void kprof_config_image_free(kprof_config_image *image)
{
    free(image->data);
    free(image->placement);
    *image = (kprof_config_image){0};
}
