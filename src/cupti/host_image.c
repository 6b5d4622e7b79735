/* Config images: CUPTI's schedule of a list of metrics, made once and then taken from disk. */
#include "cupti/host_private.h"

#include <stdlib.h>
#include <string.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define QUESTION           "config image 1"

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

/* What comes from disk is as it was put there: CUPTI crashes on bytes that are no image. */
static bool recall_image(const kprof_host_question *question, kprof_config_image *out)
{
    kprof_strbuf found = KPROF_STRBUF_INIT;
    if (!kprof_host_recall(question, &found)) {
        kprof_strbuf_free(&found);
        return false;
    }
    *out = (kprof_config_image){(uint8_t *)found.data, found.length, 0};
    if (out->size > 0 && count_passes(question->host, out) == CUPTI_SUCCESS && out->pass_count > 0)
        return true;
    kprof_config_image_free(out);
    return false;
}

kprof_status kprof_host_config_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    kprof_host_question question = {host, QUESTION, names};
    *out = (kprof_config_image){NULL, 0, 0};
    if (recall_image(&question, out))
        return KPROF_OK;
    kprof_status status = kprof_host_draft_image(host, names, out);
    if (status == KPROF_OK && out->size > 0)
        kprof_host_keep(&question, out->data, out->size);
    return status;
}

kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    *out = (kprof_config_image){NULL, 0, 0};
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
    *image = (kprof_config_image){NULL, 0, 0};
}
