/* The one file of this folder that calls CUPTI's Profiler Host API and NVPW. */
#include "planner/nvpw.h"

#include "core/log.h"
#include "planner/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define MAX_FACTORS        16

static kprof_status host_fail(const kprof_host *host, const char *operation, CUptiResult result)
{
    const char *text = NULL;
    (void)host->api->cuptiGetResultString(result, &text);
    return kprof_fail(KPROF_INTERNAL, "%s on chip %s: %s (CUPTI error %d)", operation, host->chip,
                      text ? text : "no text", (int)result);
}

static CUptiResult object_open(const kprof_host *host, CUpti_Profiler_Host_Object **out)
{
    PARAMS(CUpti_Profiler_Host_Initialize_Params, params);
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = host->chip;
    params.pCounterAvailabilityImage = host->availability.image;
    CUptiResult result = host->api->cuptiProfilerHostInitialize(&params);
    *out = params.pHostObject;
    return result;
}

static void object_close(const kprof_host *host, CUpti_Profiler_Host_Object *object)
{
    PARAMS(CUpti_Profiler_Host_Deinitialize_Params, params);
    params.pHostObject = object;
    if (object)
        (void)host->api->cuptiProfilerHostDeinitialize(&params);
}

static CUptiResult object_add(const kprof_host *host, CUpti_Profiler_Host_Object *object, const char **names,
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
    CUptiResult result = object_open(host, (CUpti_Profiler_Host_Object **)&host->object);
    if (result != CUPTI_SUCCESS) {
        (void)host_fail(host, "opening the metrics", result);
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
    object_close(host, host->object);
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
        return host_fail(host, "listing the metrics", result);
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
        return host_fail(host, "listing the suffixes of a metric", result);
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
    return result == CUPTI_SUCCESS ? KPROF_OK : host_fail(host, "evaluating counters", result);
}

bool kprof_host_takes(const kprof_host *host, const char **names, size_t count, bool *certain)
{
    CUpti_Profiler_Host_Object *object;
    CUptiResult result = object_open(host, &object);
    *certain = *certain && result == CUPTI_SUCCESS;
    if (result != CUPTI_SUCCESS)
        return false;
    result = object_add(host, object, names, count);
    *certain = *certain && result != CUPTI_ERROR_OUT_OF_MEMORY;
    object_close(host, object);
    return result == CUPTI_SUCCESS;
}

kprof_status kprof_host_count_passes(const kprof_host *host, kprof_config_image *image)
{
    PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, params);
    params.configImageSize = image->size;
    params.pConfigImage = image->data;
    CUptiResult result = host->api->cuptiProfilerHostGetNumOfPasses(&params);
    image->pass_count = result == CUPTI_SUCCESS ? params.numOfPasses : 0;
    return result == CUPTI_SUCCESS ? KPROF_OK : host_fail(host, "counting the passes", result);
}

static kprof_status take_image(const kprof_host *host, CUpti_Profiler_Host_Object *object, kprof_config_image *out)
{
    PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = object;
    CUptiResult result = host->api->cuptiProfilerHostGetConfigImageSize(&size);
    if (result != CUPTI_SUCCESS)
        return host_fail(host, "sizing the config image", result);
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
        return host_fail(host, "making the config image", result);
    return kprof_host_count_passes(host, out);
}

static kprof_status make_image(const kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    CUpti_Profiler_Host_Object *object;
    CUptiResult result = object_open(host, &object);
    if (result != CUPTI_SUCCESS)
        return host_fail(host, "opening the metrics", result);
    kprof_status status;
    result = object_add(host, object, (const char **)names->items, names->count);
    if (result == CUPTI_SUCCESS)
        status = take_image(host, object, out);
    else
        status = host_fail(host, "scheduling the metrics (can all of them be collected together?)", result);
    object_close(host, object);
    return status;
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

struct kprof_evaluator {
    const kprof_nvperf_api *api;
    NVPW_MetricsEvaluator *evaluator;
    uint8_t *scratch;
    const char *chip; /* the host's */
};

/* NVPW's names of units that reports spell otherwise: as ncu's users know them, and with the unit left out where the
 * metric's own name tells it. */
static const struct {
    const char *nvpw, *report;
} unit_names[] = {
    {"nanosecond", "ns"},   {"percent", "%"},  {"instruction", "inst"},          {"cta", "block"},
    {"cga", "cluster"},     {"math_op", "op"}, {"l1data_bank_access", "access"}, {"l1data_bank_conflict", "conflict"},
    {"lrc_req", "request"}, {"unitless", ""},
};

/* Endings that say all: "gpc_cycle", "l2_sector", "l1tex_request". */
static const char *const unit_endings[] = {"cycle", "sector", "request", "wavefront", "tag", "line"};

static const char *report_unit(const char *name)
{
    for (size_t i = 0; i < sizeof(unit_names) / sizeof(unit_names[0]); i++) {
        if (strcmp(unit_names[i].nvpw, name) == 0)
            return unit_names[i].report;
    }
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(unit_endings) / sizeof(unit_endings[0]); i++) {
        size_t ending = strlen(unit_endings[i]);
        if (length > ending && name[length - ending - 1] == '_' && strcmp(name + length - ending, unit_endings[i]) == 0)
            return unit_endings[i];
    }
    return name;
}

static kprof_status start(kprof_evaluator *self, const kprof_host *host)
{
    NVPW_InitializeHost_Params init = {.structSize = NVPW_InitializeHost_Params_STRUCT_SIZE};
    NVPA_Status result = self->api->NVPW_InitializeHost(&init);
    PARAMS(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize_Params, size);
    size.pChipName = host->chip;
    if (result == NVPA_STATUS_SUCCESS)
        result = self->api->NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size);
    if (result != NVPA_STATUS_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "opening the metrics of chip %s: NVPW error %d", host->chip, (int)result);
    self->scratch = malloc(size.scratchBufferSize ? size.scratchBufferSize : 1);
    if (!self->scratch)
        return KPROF_NO_MEMORY;
    PARAMS(NVPW_CUDA_MetricsEvaluator_Initialize_Params, params);
    params.pScratchBuffer = self->scratch;
    params.scratchBufferSize = size.scratchBufferSize;
    params.pChipName = host->chip;
    result = self->api->NVPW_CUDA_MetricsEvaluator_Initialize(&params);
    self->evaluator = params.pMetricsEvaluator;
    if (result != NVPA_STATUS_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "reading the metrics of chip %s: NVPW error %d", host->chip, (int)result);
    return KPROF_OK;
}

kprof_status kprof_evaluator_get(kprof_host *host, kprof_evaluator **out)
{
    *out = host->evaluator;
    if (*out)
        return KPROF_OK;
    const kprof_nvperf_api *api;
    kprof_status status = kprof_nvperf_load(&api);
    if (status != KPROF_OK)
        return status;
    kprof_evaluator *self = calloc(1, sizeof(*self));
    if (!self)
        return KPROF_NO_MEMORY;
    self->api = api;
    self->chip = host->chip;
    status = start(self, host);
    if (status != KPROF_OK) {
        kprof_evaluator_free(self);
        return status;
    }
    *out = host->evaluator = self;
    return KPROF_OK;
}

void kprof_evaluator_free(kprof_evaluator *evaluator)
{
    if (!evaluator)
        return;
    PARAMS(NVPW_MetricsEvaluator_Destroy_Params, params);
    params.pMetricsEvaluator = evaluator->evaluator;
    if (evaluator->evaluator)
        (void)evaluator->api->NVPW_MetricsEvaluator_Destroy(&params);
    free(evaluator->scratch);
    free(evaluator);
}

static bool to_request(const kprof_evaluator *self, const char *name, NVPW_MetricEvalRequest *out)
{
    PARAMS(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.pMetricName = name;
    params.pMetricEvalRequest = out;
    params.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    return self->api->NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&params) == NVPA_STATUS_SUCCESS;
}

/* Raw counters of one request, in arrays of NVPW's own names; NULL arrays are counted only. */
typedef struct dependencies {
    const char **required, **optional;
    size_t required_count, optional_count;
} dependencies;

static kprof_status list_dependencies(const kprof_evaluator *self, const NVPW_MetricEvalRequest *request,
                                      dependencies *out)
{
    PARAMS(NVPW_MetricsEvaluator_GetMetricRawDependencies_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.pMetricEvalRequests = request;
    params.numMetricEvalRequests = 1;
    params.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    params.metricEvalRequestStrideSize = sizeof(*request);
    params.ppRawDependencies = out->required;
    params.numRawDependencies = out->required_count;
    params.ppOptionalRawDependencies = out->optional;
    params.numOptionalRawDependencies = out->optional_count;
    NVPA_Status result = self->api->NVPW_MetricsEvaluator_GetMetricRawDependencies(&params);
    out->required_count = params.numRawDependencies;
    out->optional_count = params.numOptionalRawDependencies;
    return result == NVPA_STATUS_SUCCESS
               ? KPROF_OK
               : kprof_fail(KPROF_INTERNAL, "reading what a metric is made of: NVPW error %d", (int)result);
}

static bool add_names(const char **names, size_t count, kprof_strlist *out)
{
    bool added = true;
    for (size_t i = 0; i < count && added; i++)
        added = kprof_strlist_add(out, names[i]);
    return added;
}

kprof_status kprof_evaluator_raw_counters(kprof_evaluator *evaluator, const char *name, kprof_strlist *required,
                                          kprof_strlist *optional)
{
    NVPW_MetricEvalRequest request;
    dependencies found = {NULL, NULL, 0, 0};
    if (!to_request(evaluator, name, &request))
        return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on chip %s", name, evaluator->chip);
    kprof_status status = list_dependencies(evaluator, &request, &found);
    if (status != KPROF_OK)
        return status;
    found.required = calloc(found.required_count + 1, sizeof(*found.required));
    found.optional = calloc(found.optional_count + 1, sizeof(*found.optional));
    status = found.required && found.optional ? list_dependencies(evaluator, &request, &found) : KPROF_NO_MEMORY;
    if (status == KPROF_OK && !add_names(found.required, found.required_count, required))
        status = KPROF_NO_MEMORY;
    if (status == KPROF_OK && optional && !add_names(found.optional, found.optional_count, optional))
        status = KPROF_NO_MEMORY;
    free(found.required);
    free(found.optional);
    return status;
}

static const char *factor_name(const kprof_evaluator *self, uint32_t dim_unit)
{
    PARAMS(NVPW_MetricsEvaluator_DimUnitToString_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.dimUnit = dim_unit;
    if (self->api->NVPW_MetricsEvaluator_DimUnitToString(&params) != NVPA_STATUS_SUCCESS || !params.pSingularName)
        return "";
    return report_unit(params.pSingularName);
}

/* One unit of the report with its exponent: cycles of two clocks are both "cycle". */
typedef struct factor {
    const char *name;
    int exponent;
} factor;

static size_t merge_factors(const kprof_evaluator *self, const NVPW_DimUnitFactor *dims, size_t count, factor *out)
{
    size_t merged = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = factor_name(self, dims[i].dimUnit);
        size_t at = 0;
        while (at < merged && strcmp(out[at].name, name) != 0)
            at++;
        if (at == merged)
            out[merged++] = (factor){name, 0};
        out[at].exponent += dims[i].exponent;
    }
    return merged;
}

static void put_factors(kprof_strbuf *text, const factor *factors, size_t count, int sign)
{
    for (size_t i = 0; i < count; i++) {
        if (factors[i].exponent * sign <= 0 || factors[i].name[0] == '\0')
            continue;
        const char *joint = sign < 0 ? "/" : text->length ? "*" : "";
        kprof_strbuf_printf(text, "%s%s", joint, factors[i].name);
    }
}

char *kprof_evaluator_unit(kprof_evaluator *evaluator, const char *name)
{
    NVPW_MetricEvalRequest request;
    NVPW_DimUnitFactor dims[MAX_FACTORS];
    factor factors[MAX_FACTORS] = {{"", 0}};
    if (!to_request(evaluator, name, &request))
        return NULL;
    PARAMS(NVPW_MetricsEvaluator_GetMetricDimUnits_Params, params);
    params.pMetricsEvaluator = evaluator->evaluator;
    params.pMetricEvalRequest = &request;
    params.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
    params.pDimUnits = dims;
    params.numDimUnits = MAX_FACTORS;
    params.dimUnitFactorStructSize = NVPW_DimUnitFactor_STRUCT_SIZE;
    if (evaluator->api->NVPW_MetricsEvaluator_GetMetricDimUnits(&params) != NVPA_STATUS_SUCCESS)
        return NULL;
    size_t count = merge_factors(evaluator, dims, params.numDimUnits, factors);
    kprof_strbuf text = KPROF_STRBUF_INIT;
    put_factors(&text, factors, count, 1);
    if (text.length == 0 && count > 0)
        kprof_strbuf_puts(&text, factors[0].exponent < 0 ? "1" : "");
    put_factors(&text, factors, count, -1);
    return kprof_strbuf_take(&text);
}

/* Name number `index` of one metric type. */
static const char *name_at(const kprof_evaluator *self, NVPW_MetricType type, size_t index)
{
    PARAMS(NVPW_MetricsEvaluator_GetMetricNames_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.metricType = (uint8_t)type;
    if (self->api->NVPW_MetricsEvaluator_GetMetricNames(&params) != NVPA_STATUS_SUCCESS || index >= params.numMetrics)
        return NULL;
    return params.pMetricNames + params.pMetricNameBeginIndices[index];
}

static kprof_status add_counters(const kprof_evaluator *self, size_t throughput, kprof_strlist *out)
{
    PARAMS(NVPW_MetricsEvaluator_GetThroughputMetricProperties_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.throughputMetricIndex = throughput;
    NVPA_Status result = self->api->NVPW_MetricsEvaluator_GetThroughputMetricProperties(&params);
    if (result != NVPA_STATUS_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "reading the members of a throughput: NVPW error %d", (int)result);
    for (size_t i = 0; i < params.numCounters; i++) {
        const char *name = name_at(self, NVPW_METRIC_TYPE_COUNTER, params.pCounterIndices[i]);
        if (name && !kprof_strlist_add_unique(out, name))
            return KPROF_NO_MEMORY;
    }
    return KPROF_OK;
}

static kprof_status add_members(const kprof_evaluator *self, size_t throughput, unsigned depth, kprof_strlist *out)
{
    kprof_status status = add_counters(self, throughput, out);
    PARAMS(NVPW_MetricsEvaluator_GetThroughputMetricProperties_Params, params);
    params.pMetricsEvaluator = self->evaluator;
    params.throughputMetricIndex = throughput;
    if (status != KPROF_OK || depth == 0 ||
        self->api->NVPW_MetricsEvaluator_GetThroughputMetricProperties(&params) != NVPA_STATUS_SUCCESS)
        return status;
    for (size_t i = 0; i < params.numSubThroughputs && status == KPROF_OK; i++)
        status = add_members(self, params.pSubThroughputIndices[i], depth - 1, out);
    return status;
}

kprof_status kprof_evaluator_members(kprof_evaluator *evaluator, const char *throughput, kprof_strlist *out)
{
    PARAMS(NVPW_MetricsEvaluator_GetMetricTypeAndIndex_Params, params);
    params.pMetricsEvaluator = evaluator->evaluator;
    params.pMetricName = throughput;
    NVPA_Status result = evaluator->api->NVPW_MetricsEvaluator_GetMetricTypeAndIndex(&params);
    if (result != NVPA_STATUS_SUCCESS || params.metricType != NVPW_METRIC_TYPE_THROUGHPUT)
        return kprof_fail(KPROF_UNKNOWN_NAME, "\"%s\" is not a throughput metric of chip %s", throughput,
                          evaluator->chip);
    enum { MAX_DEPTH = 4 }; /* throughputs of throughputs; real ones nest once */
    return add_members(evaluator, params.metricIndex, MAX_DEPTH, out);
}

kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    kprof_evaluator *evaluator;
    kprof_strlist members = KPROF_STRLIST_INIT;
    kprof_status status = kprof_evaluator_get(host, &evaluator);
    if (status == KPROF_OK)
        status = kprof_evaluator_members(evaluator, throughput, &members);
    const char *suffix = throughput + kprof_metric_base_length(throughput);
    for (size_t i = 0; i < members.count && status == KPROF_OK; i++) {
        kprof_strbuf name = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&name, "%s%s", members.items[i], suffix);
        if (name.failed || !kprof_strlist_add_unique(out, name.data))
            status = KPROF_NO_MEMORY;
        kprof_strbuf_free(&name);
    }
    kprof_strlist_free(&members);
    return status;
}

struct kprof_raw_config {
    const kprof_nvperf_api *api;
    NVPW_RawCounterConfig *config;
    NVPW_RawCounterDomain domains[KPROF_RAW_DOMAINS_MAX]; /* all that the chip has */
    size_t domain_count;
    bool is_quiet;
};

static kprof_status fail(const kprof_raw_config *self, const char *operation, NVPA_Status result)
{
    kprof_log(self->is_quiet ? KPROF_LOG_DEBUG : KPROF_LOG_ERROR, "%s: NVPW error %d", operation, (int)result);
    return KPROF_INTERNAL;
}

static kprof_status create(kprof_raw_config *self, const kprof_host *host)
{
    NVPW_InitializeHost_Params init = {.structSize = NVPW_InitializeHost_Params_STRUCT_SIZE};
    NVPA_Status result = self->api->NVPW_InitializeHost(&init);
    PARAMS(NVPW_CUDA_RawCounterConfig_Create_Params, params);
    params.pChipName = host->chip;
    params.pCounterAvailabilityImage = host->availability.image;
    params.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    if (result == NVPA_STATUS_SUCCESS)
        result = self->api->NVPW_CUDA_RawCounterConfig_Create(&params);
    self->config = params.pRawCounterConfig;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(self, "opening the counters of a chip", result);
}

static kprof_status list_domains(kprof_raw_config *self)
{
    PARAMS(NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains_Params, params);
    params.pRawCounterConfig = self->config;
    params.pAvailableDomains = self->domains;
    params.numAvailableDomains = KPROF_RAW_DOMAINS_MAX;
    NVPA_Status result = self->api->NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains(&params);
    self->domain_count = params.numAvailableDomains;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(self, "listing where a chip has counters", result);
}

static kprof_status open_config(const kprof_host *host, bool is_quiet, kprof_raw_config **out)
{
    const kprof_nvperf_api *api;
    *out = NULL;
    kprof_status status = kprof_nvperf_load(&api);
    if (status != KPROF_OK)
        return status;
    kprof_raw_config *self = calloc(1, sizeof(*self));
    if (!self)
        return KPROF_NO_MEMORY;
    self->api = api;
    self->is_quiet = is_quiet;
    status = create(self, host);
    if (status == KPROF_OK)
        status = list_domains(self);
    if (status != KPROF_OK) {
        kprof_raw_config_close(self);
        return status;
    }
    *out = self;
    return KPROF_OK;
}

kprof_status kprof_raw_config_open(const kprof_host *host, kprof_raw_config **out)
{
    return open_config(host, false, out);
}

kprof_status kprof_raw_config_open_quietly(const kprof_host *host, kprof_raw_config **out)
{
    return open_config(host, true, out);
}

void kprof_raw_config_close(kprof_raw_config *config)
{
    if (!config)
        return;
    PARAMS(NVPW_RawCounterConfig_Destroy_Params, params);
    params.pRawCounterConfig = config->config;
    if (config->config)
        (void)config->api->NVPW_RawCounterConfig_Destroy(&params);
    free(config);
}

kprof_status kprof_raw_config_begin(kprof_raw_config *config)
{
    PARAMS(NVPW_RawCounterConfig_BeginPassGroup_Params, params);
    params.pRawCounterConfig = config->config;
    params.pDomains = config->domains;
    params.numDomains = config->domain_count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_BeginPassGroup(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "opening a group of passes", result);
}

kprof_status kprof_raw_config_end(kprof_raw_config *config)
{
    PARAMS(NVPW_RawCounterConfig_EndPassGroup_Params, params);
    params.pRawCounterConfig = config->config;
    params.pDomains = config->domains;
    params.numDomains = config->domain_count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_EndPassGroup(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "closing a group of passes", result);
}

static kprof_status add(kprof_raw_config *config, const NVPW_RawCounterRequest *requests, size_t count)
{
    PARAMS(NVPW_RawCounterConfig_AddRawCounters_Params, params);
    params.pRawCounterConfig = config->config;
    params.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    params.pRawCounterRequests = requests;
    params.numRawCounterRequests = count;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AddRawCounters(&params);
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "scheduling counters", result);
}

static kprof_status ask(const kprof_raw_config *config, const NVPW_RawCounterRequest *requests, size_t count, bool *out)
{
    PARAMS(NVPW_RawCounterConfig_AreRawCountersSchedulable_Params, params);
    params.pRawCounterConfig = config->config;
    params.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    params.pRawCounterRequests = requests;
    params.numRawCounterRequests = count;
    params.disallowAddingExtraPasses = 1;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AreRawCountersSchedulable(&params);
    *out = result == NVPA_STATUS_SUCCESS && params.schedulable;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "asking whether counters fit", result);
}

static NVPW_RawCounterRequest make_request(const char *counter, uint32_t domain)
{
    return (NVPW_RawCounterRequest){.pRawCounterName = counter, .domain = domain};
}

kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out)
{
    NVPW_RawCounterRequest *requests = calloc(count + 1, sizeof(*requests));
    *out = false;
    if (!requests)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        requests[i] = make_request(counters[i].name, counters[i].domain);
    kprof_status status = ask(config, requests, count, out);
    free(requests);
    return status;
}

kprof_status kprof_raw_config_put(kprof_raw_config *config, const kprof_placed_counter *counter)
{
    NVPW_RawCounterRequest request = make_request(counter->name, counter->domain);
    return add(config, &request, 1);
}

kprof_status kprof_raw_config_put_all(kprof_raw_config *config, const kprof_placed_counters *counters)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < counters->names.count && status == KPROF_OK; i++) {
        kprof_placed_counter one = {counters->names.items[i], counters->domains[i]};
        status = kprof_raw_config_put(config, &one);
    }
    return status;
}

/* Requests for counters, in the domain that NVPW chooses. NULL when out of memory. */
static NVPW_RawCounterRequest *make_requests(const kprof_strlist *counters)
{
    NVPW_RawCounterRequest *requests = calloc(counters->count + 1, sizeof(*requests));
    for (size_t i = 0; requests && i < counters->count; i++)
        requests[i] = make_request(counters->items[i], NVPW_RAW_COUNTER_DOMAIN_INVALID);
    return requests;
}

kprof_status kprof_raw_config_add(kprof_raw_config *config, const kprof_strlist *counters)
{
    NVPW_RawCounterRequest *requests = make_requests(counters);
    kprof_status status = requests ? add(config, requests, counters->count) : KPROF_NO_MEMORY;
    free(requests);
    return status;
}

kprof_status kprof_raw_config_fits(const kprof_raw_config *config, const kprof_strlist *counters, bool *out)
{
    NVPW_RawCounterRequest *requests = make_requests(counters);
    if (!requests)
        return KPROF_NO_MEMORY;
    kprof_status status = ask(config, requests, counters->count, out);
    free(requests);
    return status;
}

static NVPA_Status get_image(const kprof_raw_config *config, kprof_config_image *out)
{
    PARAMS(NVPW_RawCounterConfig_GetConfigImage_Params, params);
    params.pRawCounterConfig = config->config;
    params.bytesAllocated = out->size;
    params.pBuffer = out->data;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GetConfigImage(&params);
    out->size = params.bytesCopied;
    return result;
}

kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config, kprof_config_image *out)
{
    *out = (kprof_config_image){0};
    PARAMS(NVPW_RawCounterConfig_GenerateConfigImage_Params, params);
    params.pRawCounterConfig = config->config;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GenerateConfigImage(&params);
    if (result == NVPA_STATUS_SUCCESS)
        result = get_image(config, out);
    if (result != NVPA_STATUS_SUCCESS)
        return fail(config, "making a config image", result);
    out->data = malloc(out->size ? out->size : 1);
    if (!out->data)
        return KPROF_NO_MEMORY;
    result = get_image(config, out);
    kprof_status status = result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "making a config image", result);
    if (status == KPROF_OK)
        status = kprof_host_count_passes(host, out);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

/* The places that can read a counter: single domains, and groups of domains that work together. */
typedef struct listed_places {
    NVPW_RawCounterDomain domains[KPROF_RAW_DOMAINS_MAX];
    uint32_t groups[KPROF_RAW_DOMAINS_MAX];
    size_t domain_count, group_count;
} listed_places;

static kprof_status list_places(const kprof_raw_config *config, const char *counter, listed_places *out)
{
    PARAMS(NVPW_RawCounterConfig_GetRawCounterProperties_Params, params);
    params.pRawCounterConfig = config->config;
    params.pRawCounterName = counter;
    params.pSupportedDomains = out->domains;
    params.numSupportedDomains = KPROF_RAW_DOMAINS_MAX;
    params.pSupportedCdgDomains = out->groups;
    params.numSupportedCdgDomains = KPROF_RAW_DOMAINS_MAX;
    NVPA_Status result = config->api->NVPW_RawCounterConfig_GetRawCounterProperties(&params);
    out->domain_count = params.numSupportedDomains;
    out->group_count = params.numSupportedCdgDomains;
    return result == NVPA_STATUS_SUCCESS ? KPROF_OK : fail(config, "asking where a counter is", result);
}

kprof_status kprof_raw_config_places(const kprof_raw_config *config, const char *counter, kprof_counter_places *out)
{
    listed_places listed;
    kprof_status status = list_places(config, counter, &listed);
    out->count = 0;
    if (status != KPROF_OK)
        return status;
    for (size_t i = 0; i < listed.domain_count && out->count < KPROF_COUNTER_PLACES_MAX; i++)
        out->items[out->count++] = (uint32_t)listed.domains[i];
    for (size_t i = 0; i < listed.group_count && out->count < KPROF_COUNTER_PLACES_MAX; i++)
        out->items[out->count++] = listed.groups[i];
    return KPROF_OK;
}

kprof_status kprof_raw_config_add_traits(const kprof_raw_config *config, const kprof_placed_counter *counter,
                                         kprof_pass_traits *traits)
{
    kprof_counter_places places;
    kprof_status status = kprof_raw_config_places(config, counter->name, &places);
    bool in_sm_a = places.count > 0;
    for (size_t i = 0; i < places.count && status == KPROF_OK; i++) {
        bool may_be_there = counter->domain == 0 || counter->domain == places.items[i];
        traits->in_sm = traits->in_sm || kprof_place_is_in_sm(places.items[i]);
        traits->is_slow = traits->is_slow || (may_be_there && kprof_place_is_slow(places.items[i]));
        traits->is_patch = traits->is_patch || kprof_place_is_patch(places.items[i]);
        in_sm_a = in_sm_a && (!may_be_there || kprof_place_is_in_sm_a(places.items[i]));
    }
    traits->in_sm_a = traits->in_sm_a || in_sm_a;
    return status;
}

bool kprof_place_is_in_sm_a(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A;
}

bool kprof_place_is_slow(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A || place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A ||
           place == NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC;
}

bool kprof_place_is_free(uint32_t place, const kprof_pass_traits *pass)
{
    return kprof_place_is_in_sm_a(place) && pass->in_sm_a && (!kprof_place_is_slow(place) || pass->is_slow);
}

bool kprof_place_is_in_l2(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_LTS || place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS ||
           place == NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS_B;
}

bool kprof_place_is_patch(uint32_t place)
{
    return place == NVPW_RAW_COUNTER_DOMAIN_GPU_SASS;
}

bool kprof_place_is_in_sm(uint32_t place)
{
    return place != NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC &&
           (kprof_place_is_in_sm_a(place) || kprof_place_is_slow(place));
}

static NVPA_Status list_counters(const kprof_config_image *image, size_t pass, const char **names, size_t *count)
{
    const kprof_nvperf_api *api;
    if (kprof_nvperf_load(&api) != KPROF_OK)
        return NVPA_STATUS_NOT_LOADED;
    PARAMS(NVPW_Config_GetRawCounters_Params, params);
    params.pConfig = image->data;
    params.configSize = image->size;
    params.passIndex = pass;
    params.ppRawCounterNames = names;
    params.numRawCounters = *count;
    NVPA_Status result = api->NVPW_Config_GetRawCounters(&params);
    *count = params.numRawCounters;
    return result;
}

kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out)
{
    size_t count = 0;
    NVPA_Status result = list_counters(image, pass, NULL, &count);
    const char **names = calloc(count + 1, sizeof(*names));
    if (!names)
        return KPROF_NO_MEMORY;
    if (result == NVPA_STATUS_SUCCESS && count > 0)
        result = list_counters(image, pass, names, &count);
    kprof_status status = KPROF_OK;
    if (result != NVPA_STATUS_SUCCESS)
        status = kprof_fail(KPROF_INTERNAL, "reading a pass of a config image: NVPW error %d", (int)result);
    for (size_t i = 0; i < count && status == KPROF_OK; i++) {
        if (!kprof_strlist_add(out, names[i]))
            status = KPROF_NO_MEMORY;
    }
    free(names);
    return status;
}

bool kprof_image_passes(const kprof_config_image *image, const char *counter, size_t *passes, size_t *count)
{
    const kprof_nvperf_api *api;
    if (kprof_nvperf_load(&api) != KPROF_OK)
        return false;
    PARAMS(NVPW_Config_GetRawCounterInfo_Params, params);
    params.pConfig = image->data;
    params.configSize = image->size;
    params.pRawCounterName = counter;
    params.pPassIndices = passes;
    params.numPassIndices = image->pass_count;
    NVPA_Status result = api->NVPW_Config_GetRawCounterInfo(&params);
    *count = params.numPassIndices;
    return result == NVPA_STATUS_SUCCESS;
}
