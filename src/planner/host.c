/* Questions to CUPTI's Profiler Host API: chips, metrics, and values of counter data. */
#include "planner/host_private.h"

#include "core/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}

kprof_status kprof_host_fail(const kprof_host *host, const char *operation, CUptiResult result)
{
    const char *text = NULL;
    (void)host->api->cuptiGetResultString(result, &text);
    return kprof_fail(KPROF_INTERNAL, "%s on chip %s: %s (CUPTI error %d)", operation, host->chip,
                      text ? text : "no text", (int)result);
}

CUptiResult kprof_host_object_open(const kprof_host *host, CUpti_Profiler_Host_Object **out)
{
    PARAMS(CUpti_Profiler_Host_Initialize_Params, params);
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = host->chip;
    params.pCounterAvailabilityImage = host->availability.image;
    CUptiResult result = host->api->cuptiProfilerHostInitialize(&params);
    *out = params.pHostObject;
    return result;
}

void kprof_host_object_close(const kprof_host *host, CUpti_Profiler_Host_Object *object)
{
    PARAMS(CUpti_Profiler_Host_Deinitialize_Params, params);
    params.pHostObject = object;
    if (object)
        (void)host->api->cuptiProfilerHostDeinitialize(&params);
}

CUptiResult kprof_host_object_add(const kprof_host *host, CUpti_Profiler_Host_Object *object, const char **names,
                                  size_t count)
{
    PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, params);
    params.pHostObject = object;
    params.ppMetricNames = names;
    params.numMetrics = count;
    return host->api->cuptiProfilerHostConfigAddMetrics(&params);
}

static kprof_status get_chips(const kprof_cupti_api *api, const char *const **chips, size_t *count)
{
    PARAMS(CUpti_Profiler_Host_GetSupportedChips_Params, params);
    CUptiResult result = api->cuptiProfilerHostGetSupportedChips(&params);
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "listing the chips that CUPTI knows: CUPTI error %d", (int)result);
    *chips = params.ppChipNames;
    *count = params.numChips;
    return KPROF_OK;
}

kprof_status kprof_host_chips(kprof_strlist *out)
{
    const kprof_cupti_api *api;
    const char *const *chips = NULL;
    size_t count = 0;
    kprof_status status = kprof_cupti_load(&api);
    if (status == KPROF_OK)
        status = get_chips(api, &chips, &count);
    for (size_t i = 0; status == KPROF_OK && i < count; i++) {
        if (!kprof_strlist_add(out, chips[i]))
            status = KPROF_NO_MEMORY;
    }
    return status;
}

/* The library's own errors for a wrong chip name are not told apart from others, so the list decides. */
static kprof_status check_chip(const kprof_cupti_api *api, const char *chip)
{
    const char *const *chips = NULL;
    size_t count = 0;
    kprof_status status = get_chips(api, &chips, &count);
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(chips[i], chip) == 0)
            return KPROF_OK;
    }
    const char *nearest = kprof_nearest(chip, chips, count);
    return kprof_fail(KPROF_UNKNOWN_NAME, "chip \"%s\" is not known%s%s%s; --list-chips lists those that are", chip,
                      nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    const kprof_cupti_api *api;
    *out = NULL;
    kprof_status status = kprof_cupti_load(&api);
    if (status == KPROF_OK && !availability)
        status = check_chip(api, chip);
    if (status != KPROF_OK)
        return status;
    kprof_host *host = calloc(1, sizeof(*host));
    if (!host)
        return KPROF_NO_MEMORY;
    *host = (kprof_host){.api = api, .chip = strdup(chip)};
    if (availability)
        host->availability = *availability;
    if (!host->chip) {
        kprof_host_close(host);
        return KPROF_NO_MEMORY;
    }
    CUptiResult result = kprof_host_object_open(host, &host->object);
    if (result != CUPTI_SUCCESS) {
        (void)kprof_host_fail(host, "opening the metrics", result);
        kprof_host_close(host);
        return KPROF_UNSUPPORTED;
    }
    *out = host;
    return KPROF_OK;
}

void kprof_host_close(kprof_host *host)
{
    if (!host)
        return;
    kprof_host_object_close(host, host->object);
    kprof_evaluator_free(host->evaluator);
    kprof_name_memo_free(host->memo);
    free(host->chip);
    free(host);
}

const char *kprof_host_chip(const kprof_host *host)
{
    return host->chip;
}

kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out)
{
    PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, params);
    params.pHostObject = host->object;
    params.metricType = (CUpti_MetricType)type;
    CUptiResult result = host->api->cuptiProfilerHostGetBaseMetrics(&params);
    if (result != CUPTI_SUCCESS)
        return kprof_host_fail(host, "listing the metrics", result);
    for (size_t i = 0; i < params.numMetrics; i++) {
        if (!kprof_strlist_add(out, params.ppMetricNames[i]))
            return KPROF_NO_MEMORY;
    }
    return KPROF_OK;
}

static bool get_properties(const kprof_host *host, const char *name,
                           CUpti_Profiler_Host_GetMetricProperties_Params *params)
{
    *params = (CUpti_Profiler_Host_GetMetricProperties_Params){
        .structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE};
    params->pHostObject = host->object;
    params->pMetricName = name;
    return host->api->cuptiProfilerHostGetMetricProperties(params) == CUPTI_SUCCESS;
}

bool kprof_host_has_metric(kprof_host *host, const char *name)
{
    CUpti_Profiler_Host_GetMetricProperties_Params properties;
    return get_properties(host, name, &properties);
}

static kprof_status unknown_metric(const kprof_host *host, const char *name)
{
    return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on chip %s", name, host->chip);
}

kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    CUpti_Profiler_Host_GetMetricProperties_Params properties;
    if (!get_properties(host, base, &properties))
        return unknown_metric(host, base);
    PARAMS(CUpti_Profiler_Host_GetSubMetrics_Params, params);
    params.pHostObject = host->object;
    params.metricType = properties.metricType;
    params.pMetricName = base;
    CUptiResult result = host->api->cuptiProfilerHostGetSubMetrics(&params);
    if (result != CUPTI_SUCCESS)
        return kprof_host_fail(host, "listing the suffixes of a metric", result);
    for (size_t i = 0; i < params.numOfSubmetrics; i++) {
        const char *suffix = params.ppSubMetrics[i];
        if (!kprof_strlist_add(out, suffix + (suffix[0] == '.')))
            return KPROF_NO_MEMORY;
    }
    return KPROF_OK;
}

/* A base name has no unit of its own; that of its plainest suffix stands for it. */
static char *unit_of(kprof_evaluator *evaluator, const char *name, kprof_metric_type type)
{
    static const char *const plainest[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};
    if (name[kprof_metric_base_length(name)])
        return kprof_evaluator_unit(evaluator, name);
    kprof_strbuf full = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&full, "%s%s", name, plainest[type]);
    char *unit = full.failed ? NULL : kprof_evaluator_unit(evaluator, full.data);
    kprof_strbuf_free(&full);
    return unit;
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    CUpti_Profiler_Host_GetMetricProperties_Params properties;
    kprof_evaluator *evaluator;
    memset(out, 0, sizeof(*out));
    if (!get_properties(host, name, &properties))
        return unknown_metric(host, name);
    kprof_status status = kprof_evaluator_get(host, &evaluator);
    if (status != KPROF_OK)
        return status;
    out->type = (kprof_metric_type)properties.metricType;
    out->name = strndup(name, kprof_metric_base_length(name));
    out->description = strdup(properties.pDescription ? properties.pDescription : "");
    out->hw_unit = strdup(properties.pHwUnit ? properties.pHwUnit : "");
    out->unit = unit_of(evaluator, name, out->type);
    if (!out->unit)
        out->unit = strdup("");
    if (out->name && out->description && out->hw_unit && out->unit)
        return KPROF_OK;
    kprof_metric_info_free(out);
    return KPROF_NO_MEMORY;
}

void kprof_metric_info_free(kprof_metric_info *info)
{
    free(info->name);
    free(info->description);
    free(info->hw_unit);
    free(info->unit);
    memset(info, 0, sizeof(*info));
}

static CUptiResult evaluate(const kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                            double *values)
{
    PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, params);
    params.pHostObject = host->object;
    params.pCounterDataImage = counters->data;
    params.counterDataImageSize = counters->size;
    params.rangeIndex = counters->range;
    params.ppMetricNames = (const char **)names->items;
    params.numMetrics = names->count;
    params.pMetricValues = values;
    return host->api->cuptiProfilerHostEvaluateToGpuValues(&params);
}

kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values)
{
    for (size_t i = 0; i < names->count; i++)
        values[i] = NAN;
    if (names->count == 0)
        return KPROF_OK;
    CUptiResult result = evaluate(host, counters, names, values);
    return result == CUPTI_SUCCESS ? KPROF_OK : kprof_host_fail(host, "evaluating counters", result);
}
