/* The one file of this folder that calls CUPTI's Profiler Host API and NVPW. */
#include "host/nvpw.h"

#include "core/log.h"
#include "host/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Declare the parameters `p` of a function: both interfaces take and give back everything in one structure. */
#define HOST_PARAMS(p, name, ...) KPROF_CUPTI_PARAMS(p, Profiler_Host_##name, __VA_ARGS__)
#define NVPW_PARAMS(p, name, ...) NVPW_##name##_Params p = {.structSize = NVPW_##name##_Params_STRUCT_SIZE, __VA_ARGS__}
/* Call a function with its parameters, and check the result. */
#define HOST_CALL(host, operation, name, p) check_host(host, operation, (host)->api->cuptiProfilerHost##name(&(p)))
#define NVPW_CALL(api, name, p)             check_nvpw(#name, (api)->NVPW_##name(&(p)))

#define MAX_FACTORS 16
#define MAX_DOMAINS 128 /* more than any chip has */

static kprof_status check_host(const kprof_host *host, const char *operation, CUptiResult result)
{
    const char *text = NULL;
    if (result == CUPTI_SUCCESS)
        return KPROF_OK;
    (void)host->api->cuptiGetResultString(result, &text);
    return kprof_fail(KPROF_INTERNAL, "%s on chip %s: %s (CUPTI error %d)", operation, host->chip,
                      text ? text : "no text", (int)result);
}

static kprof_status check_nvpw(const char *function, NVPA_Status result)
{
    if (result == NVPA_STATUS_SUCCESS)
        return KPROF_OK;
    return kprof_fail(KPROF_INTERNAL, "%s of NVPW gives error %d", function, (int)result);
}

static kprof_status add_names(kprof_strlist *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!kprof_strlist_add(out, names[i]))
            return KPROF_NO_MEMORY;
    return KPROF_OK;
}

/* libcupti opens libnvperf_host by its name alone, and then has the one that is identified if that is open already.
 * Inside an application kprof_libraries_preload opens it, so that nobody waits for another thread that does. */
static kprof_status load_libraries(const kprof_host *host, const kprof_cupti_api **out)
{
    const kprof_nvperf_api *unused;
    kprof_status status = host->keeps_answers ? kprof_nvperf_load(&unused) : KPROF_OK;
    return KPROF_THEN(status, kprof_cupti_load(out));
}

kprof_status kprof_ask_chips(kprof_host *host, const char *unused, kprof_strlist *out)
{
    const kprof_cupti_api *api;
    (void)unused;
    kprof_status status = load_libraries(host, &api);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(params, GetSupportedChips, .pPriv = NULL);
    CUptiResult result = api->cuptiProfilerHostGetSupportedChips(&params);
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "listing the chips that CUPTI knows: CUPTI error %d", (int)result);
    return add_names(out, params.ppChipNames, params.numChips);
}

static kprof_status object_open(kprof_host *host, CUpti_ProfilerType type, CUpti_Profiler_Host_Object **out)
{
    HOST_PARAMS(params, Initialize, .profilerType = type, .pChipName = host->chip,
                .pCounterAvailabilityImage = host->availability.image);
    kprof_status status = load_libraries(host, &host->api);
    KPROF_THEN(status, HOST_CALL(host, "opening the metrics", Initialize, params));
    *out = status == KPROF_OK ? params.pHostObject : NULL;
    return status;
}

static void object_close(const kprof_host *host, CUpti_Profiler_Host_Object *object)
{
    HOST_PARAMS(params, Deinitialize, .pHostObject = object);
    if (object)
        (void)host->api->cuptiProfilerHostDeinitialize(&params);
}

static CUptiResult object_add(const kprof_host *host, CUpti_Profiler_Host_Object *object, const char **names,
                              size_t count)
{
    HOST_PARAMS(params, ConfigAddMetrics, .pHostObject = object, .ppMetricNames = names, .numMetrics = count);
    return host->api->cuptiProfilerHostConfigAddMetrics(&params);
}

kprof_status kprof_ask_open(kprof_host *host)
{
    CUpti_Profiler_Host_Object *object = host->object;
    const CUpti_ProfilerType type =
        host->samples ? CUPTI_PROFILER_TYPE_PM_SAMPLING : CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    bool is_open = object || object_open(host, type, &object) == KPROF_OK;
    host->object = object;
    return is_open ? KPROF_OK : KPROF_UNSUPPORTED;
}

void kprof_ask_close(kprof_host *host)
{
    NVPW_PARAMS(evaluator, MetricsEvaluator_Destroy, .pMetricsEvaluator = host->evaluator);
    if (host->evaluator)
        (void)host->nvpw->NVPW_MetricsEvaluator_Destroy(&evaluator);
    object_close(host, host->object);
    free(host->scratch);
}

/* Ask each object only once: CUPTI appends its list to the previous call's. The name is the number of a type. */
kprof_status kprof_ask_base_metrics(kprof_host *host, const char *type, kprof_strlist *out)
{
    kprof_status status = kprof_ask_open(host);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(params, GetBaseMetrics, .pHostObject = host->object, .metricType = (CUpti_MetricType)(type[0] - '0'));
    status = HOST_CALL(host, "listing the metrics", GetBaseMetrics, params);
    return KPROF_THEN(status, add_names(out, params.ppMetricNames, params.numMetrics));
}

typedef CUpti_Profiler_Host_GetMetricProperties_Params properties;

/* UNKNOWN_NAME, in silence, where the chip has no such metric. */
static kprof_status find_properties(kprof_host *host, const char *name, properties *out)
{
    kprof_status status = kprof_ask_open(host);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(params, GetMetricProperties, .pHostObject = host->object, .pMetricName = name);
    CUptiResult result = host->api->cuptiProfilerHostGetMetricProperties(&params);
    *out = params;
    return result == CUPTI_SUCCESS               ? KPROF_OK
           : result == CUPTI_ERROR_OUT_OF_MEMORY ? KPROF_NO_MEMORY
                                                 : KPROF_UNKNOWN_NAME;
}

static kprof_status unknown_metric(const kprof_host *host, const char *name)
{
    return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on chip %s", name, host->chip);
}

static kprof_status need_properties(kprof_host *host, const char *name, properties *out)
{
    kprof_status status = find_properties(host, name, out);
    return status == KPROF_UNKNOWN_NAME ? unknown_metric(host, name) : status;
}

kprof_status kprof_ask_known(kprof_host *host, const char *name, kprof_strlist *out)
{
    properties unused;
    kprof_status status = find_properties(host, name, &unused);
    if (status == KPROF_UNKNOWN_NAME)
        return KPROF_OK;
    return KPROF_THEN(status, add_names(out, &name, 1));
}

kprof_status kprof_ask_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    properties of_base;
    kprof_status status = need_properties(host, base, &of_base);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(params, GetSubMetrics, .pHostObject = host->object, .metricType = of_base.metricType,
                .pMetricName = base);
    status = HOST_CALL(host, "listing the suffixes of a metric", GetSubMetrics, params);
    for (size_t i = 0; status == KPROF_OK && i < params.numOfSubmetrics; i++) {
        const char *suffix = params.ppSubMetrics[i];
        kprof_strlist_add(out, suffix + (suffix[0] == '.'));
    }
    return status;
}

kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values)
{
    for (size_t i = 0; i < names->count; i++)
        values[i] = NAN;
    kprof_status status = names->count > 0 ? kprof_ask_open(host) : KPROF_OK;
    if (names->count == 0 || status != KPROF_OK)
        return status;
    HOST_PARAMS(params, EvaluateToGpuValues, .pHostObject = host->object, .pCounterDataImage = counters->data,
                .counterDataImageSize = counters->size, .rangeIndex = counters->range,
                .ppMetricNames = (const char **)names->items, .numMetrics = names->count, .pMetricValues = values);
    return HOST_CALL(host, "evaluating counters", EvaluateToGpuValues, params);
}

bool kprof_ask_takes(kprof_host *host, const char **names, size_t count, bool *certain)
{
    CUpti_Profiler_Host_Object *object;
    CUptiResult result = CUPTI_ERROR_OUT_OF_MEMORY;
    if (object_open(host, CUPTI_PROFILER_TYPE_RANGE_PROFILER, &object) == KPROF_OK)
        result = object_add(host, object, names, count);
    *certain = *certain && result != CUPTI_ERROR_OUT_OF_MEMORY;
    object_close(host, object);
    return result == CUPTI_SUCCESS;
}

static kprof_status count_passes(const kprof_host *host, kprof_config_image *image)
{
    HOST_PARAMS(params, GetNumOfPasses, .configImageSize = image->size, .pConfigImage = image->data);
    kprof_status status = HOST_CALL(host, "counting the passes", GetNumOfPasses, params);
    image->pass_count = status == KPROF_OK ? params.numOfPasses : 0;
    return status;
}

static kprof_status take_image(const kprof_host *host, CUpti_Profiler_Host_Object *object, kprof_config_image *out)
{
    HOST_PARAMS(size, GetConfigImageSize, .pHostObject = object);
    kprof_status status = HOST_CALL(host, "sizing the config image", GetConfigImageSize, size);
    if (status != KPROF_OK)
        return status;
    *out = (kprof_config_image){.data = kprof_calloc(1, size.configImageSize), .size = size.configImageSize};
    HOST_PARAMS(image, GetConfigImage, .pHostObject = object, .configImageSize = out->size, .pConfigImage = out->data);
    status = HOST_CALL(host, "making the config image", GetConfigImage, image);
    return KPROF_THEN(status, count_passes(host, out));
}

/* Nothing to collect takes no pass. */
static kprof_status make_image(kprof_host *host, CUpti_ProfilerType type, const kprof_strlist *names,
                               kprof_config_image *out)
{
    CUpti_Profiler_Host_Object *object;
    *out = (kprof_config_image){0};
    if (names->count == 0)
        return KPROF_OK;
    kprof_status status = object_open(host, type, &object);
    KPROF_THEN(status, check_host(host, "scheduling the metrics (can all of them be collected together?)",
                                  object_add(host, object, (const char **)names->items, names->count)));
    KPROF_THEN(status, take_image(host, object, out));
    object_close(host, object);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return make_image(host, CUPTI_PROFILER_TYPE_RANGE_PROFILER, names, out);
}

kprof_status kprof_host_sample_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return make_image(host, CUPTI_PROFILER_TYPE_PM_SAMPLING, names, out);
}

/* CUPTI refuses names that the chip does not have, or that it cannot count. */
kprof_status kprof_ask_sampled(kprof_host *host, const char *name, kprof_strlist *out)
{
    const char *names[] = {KPROF_SAMPLE_ACTIVITY, name};
    properties unused;
    CUpti_Profiler_Host_Object *object;
    kprof_config_image image = {0};
    kprof_status status =
        name[kprof_metric_base_length(name)] ? find_properties(host, name, &unused) : KPROF_UNKNOWN_NAME;
    if (status == KPROF_UNKNOWN_NAME)
        return KPROF_OK;
    KPROF_THEN(status, object_open(host, CUPTI_PROFILER_TYPE_PM_SAMPLING, &object));
    if (status != KPROF_OK)
        return status;
    const CUptiResult taken = object_add(host, object, names, 2);
    if (taken == CUPTI_SUCCESS)
        status = take_image(host, object, &image);
    else if (taken == CUPTI_ERROR_OUT_OF_MEMORY)
        status = KPROF_NO_MEMORY;
    object_close(host, object);
    const bool is_one = image.pass_count == 1;
    kprof_config_image_free(&image);
    return status == KPROF_OK && is_one ? add_names(out, &name, 1) : status;
}

/* Load and initialise NVPW, as often as somebody needs it. */
static kprof_status load_nvpw(const kprof_nvperf_api **out)
{
    NVPW_PARAMS(init, InitializeHost, .pPriv = NULL);
    kprof_status status = kprof_nvperf_load(out);
    return KPROF_THEN(status, NVPW_CALL(*out, InitializeHost, init));
}

/* The evaluator of a host, made on the first call. */
static kprof_status need_evaluator(kprof_host *host)
{
    if (host->evaluator)
        return KPROF_OK;
    NVPW_PARAMS(size, CUDA_MetricsEvaluator_CalculateScratchBufferSize, .pChipName = host->chip);
    kprof_status status = load_nvpw(&host->nvpw);
    KPROF_THEN(status, NVPW_CALL(host->nvpw, CUDA_MetricsEvaluator_CalculateScratchBufferSize, size));
    if (status != KPROF_OK)
        return status;
    free(host->scratch);
    host->scratch = kprof_calloc(1, size.scratchBufferSize);
    NVPW_PARAMS(params, CUDA_MetricsEvaluator_Initialize, .pScratchBuffer = host->scratch,
                .scratchBufferSize = size.scratchBufferSize, .pChipName = host->chip);
    status = NVPW_CALL(host->nvpw, CUDA_MetricsEvaluator_Initialize, params);
    host->evaluator = params.pMetricsEvaluator;
    return status;
}

static bool to_request(const kprof_host *host, const char *name, NVPW_MetricEvalRequest *out)
{
    NVPW_PARAMS(params, MetricsEvaluator_ConvertMetricNameToMetricEvalRequest, .pMetricsEvaluator = host->evaluator,
                .pMetricName = name, .pMetricEvalRequest = out,
                .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE);
    return host->nvpw->NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&params) == NVPA_STATUS_SUCCESS;
}

kprof_status kprof_host_raw_counters(kprof_host *host, const char *name, kprof_strlist *required,
                                     kprof_strlist *optional)
{
    NVPW_MetricEvalRequest request;
    kprof_status status = need_evaluator(host);
    if (status != KPROF_OK)
        return status;
    if (!to_request(host, name, &request))
        return unknown_metric(host, name);
    NVPW_PARAMS(params, MetricsEvaluator_GetMetricRawDependencies, .pMetricsEvaluator = host->evaluator,
                .pMetricEvalRequests = &request, .numMetricEvalRequests = 1,
                .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE,
                .metricEvalRequestStrideSize = sizeof(request));
    status = NVPW_CALL(host->nvpw, MetricsEvaluator_GetMetricRawDependencies, params);
    if (status != KPROF_OK)
        return status;
    params.ppRawDependencies = kprof_calloc(params.numRawDependencies + 1, sizeof(*params.ppRawDependencies));
    params.ppOptionalRawDependencies =
        kprof_calloc(params.numOptionalRawDependencies + 1, sizeof(*params.ppOptionalRawDependencies));
    status = NVPW_CALL(host->nvpw, MetricsEvaluator_GetMetricRawDependencies, params);
    KPROF_THEN(status, add_names(required, params.ppRawDependencies, params.numRawDependencies));
    if (status == KPROF_OK && optional)
        status = add_names(optional, params.ppOptionalRawDependencies, params.numOptionalRawDependencies);
    KPROF_FREE(params.ppRawDependencies, params.ppOptionalRawDependencies);
    return status;
}

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

static const char *factor_name(const kprof_host *host, uint32_t dim_unit)
{
    NVPW_PARAMS(params, MetricsEvaluator_DimUnitToString, .pMetricsEvaluator = host->evaluator, .dimUnit = dim_unit);
    if (host->nvpw->NVPW_MetricsEvaluator_DimUnitToString(&params) != NVPA_STATUS_SUCCESS || !params.pSingularName)
        return "";
    const char *name = params.pSingularName, *last = strrchr(name, '_');
    for (size_t i = 0; i < COUNT_OF(unit_names); i++)
        if (strcmp(unit_names[i].nvpw, name) == 0)
            return unit_names[i].report;
    for (size_t i = 0; last && last > name && i < COUNT_OF(unit_endings); i++)
        if (strcmp(last + 1, unit_endings[i]) == 0)
            return unit_endings[i];
    return name;
}

/* Unit of a full name in base units ("byte/second"); caller frees. "" when NVPW cannot tell. Factors of one name count
 * once: cycles of two clocks are both "cycle". */
static char *unit_of(const kprof_host *host, const char *name)
{
    NVPW_MetricEvalRequest request;
    NVPW_DimUnitFactor dims[MAX_FACTORS];
    kprof_strbuf text = KPROF_STRBUF_INIT;
    NVPW_PARAMS(params, MetricsEvaluator_GetMetricDimUnits, .pMetricsEvaluator = host->evaluator,
                .pMetricEvalRequest = &request, .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE,
                .pDimUnits = dims, .numDimUnits = MAX_FACTORS,
                .dimUnitFactorStructSize = NVPW_DimUnitFactor_STRUCT_SIZE);
    if (!to_request(host, name, &request) ||
        host->nvpw->NVPW_MetricsEvaluator_GetMetricDimUnits(&params) != NVPA_STATUS_SUCCESS)
        return kprof_strdup("");
    for (size_t i = 0; i < 2 * params.numDimUnits; i++) { /* those above the line, and then those below it */
        const bool is_below = i >= params.numDimUnits;
        const char *factor = factor_name(host, dims[i % params.numDimUnits].dimUnit);
        size_t first = SIZE_MAX;
        int exponent = 0;
        for (size_t k = 0; k < params.numDimUnits; k++) {
            if (strcmp(factor, factor_name(host, dims[k].dimUnit)) != 0)
                continue;
            exponent += dims[k].exponent;
            first = first < k ? first : k;
        }
        if (first == i % params.numDimUnits && factor[0] && exponent != 0 && (exponent < 0) == is_below)
            kprof_strbuf_printf(&text, "%s%s", is_below ? (text.length ? "/" : "1/") : text.length ? "*" : "", factor);
    }
    return kprof_strbuf_take(&text);
}

kprof_status kprof_ask_info(kprof_host *host, const char *name, kprof_strlist *out)
{
    /* A base name has no unit of its own; that of its plainest suffix stands for it. */
    static const char *const plainest[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};
    properties of_name;
    kprof_status status = need_properties(host, name, &of_name);
    KPROF_THEN(status, need_evaluator(host));
    if (status != KPROF_OK)
        return status;
    const bool is_base = name[kprof_metric_base_length(name)] == '\0';
    const char type[] = {(char)('0' + of_name.metricType), '\0'};
    KPROF_AUTO_FREE char *full = kprof_strprintf("%s%s", name, is_base ? plainest[of_name.metricType] : "");
    KPROF_AUTO_FREE char *unit = unit_of(host, full);
    const char *const texts[] = {type, of_name.pDescription ? of_name.pDescription : "",
                                 of_name.pHwUnit ? of_name.pHwUnit : "", unit};
    return add_names(out, texts, COUNT_OF(texts));
}

/* Append the counters that a throughput is the greatest of, and those of its throughputs, with a suffix. */
static kprof_status add_members(const kprof_host *host, size_t throughput, const char *suffix, kprof_strlist *out)
{
    NVPW_PARAMS(names, MetricsEvaluator_GetMetricNames, .pMetricsEvaluator = host->evaluator,
                .metricType = NVPW_METRIC_TYPE_COUNTER);
    NVPW_PARAMS(params, MetricsEvaluator_GetThroughputMetricProperties, .pMetricsEvaluator = host->evaluator,
                .throughputMetricIndex = throughput);
    kprof_status status = NVPW_CALL(host->nvpw, MetricsEvaluator_GetThroughputMetricProperties, params);
    KPROF_THEN(status, NVPW_CALL(host->nvpw, MetricsEvaluator_GetMetricNames, names));
    for (size_t i = 0; status == KPROF_OK && i < params.numCounters; i++) {
        size_t index = params.pCounterIndices[i];
        if (index >= names.numMetrics)
            continue;
        const char *name = names.pMetricNames + names.pMetricNameBeginIndices[index];
        kprof_strlist_take_unique(out, kprof_strprintf("%s%s", name, suffix));
    }
    for (size_t i = 0; status == KPROF_OK && i < params.numSubThroughputs; i++)
        status = add_members(host, params.pSubThroughputIndices[i], suffix, out);
    return status;
}

kprof_status kprof_ask_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    kprof_status status = need_evaluator(host);
    if (status != KPROF_OK)
        return status;
    NVPW_PARAMS(params, MetricsEvaluator_GetMetricTypeAndIndex, .pMetricsEvaluator = host->evaluator,
                .pMetricName = throughput);
    NVPA_Status result = host->nvpw->NVPW_MetricsEvaluator_GetMetricTypeAndIndex(&params);
    if (result != NVPA_STATUS_SUCCESS || params.metricType != NVPW_METRIC_TYPE_THROUGHPUT)
        return kprof_fail(KPROF_UNKNOWN_NAME, "\"%s\" is not a throughput metric of chip %s", throughput, host->chip);
    return add_members(host, params.metricIndex, throughput + kprof_metric_base_length(throughput), out);
}

struct kprof_raw_config {
    const kprof_nvperf_api *api;
    NVPW_RawCounterConfig *config;
    NVPW_RawCounterDomain domains[MAX_DOMAINS]; /* all that the chip has */
    size_t domain_count;
    bool is_open; /* a pass group */
};

kprof_status kprof_raw_config_open(kprof_host *host, kprof_raw_config **out)
{
    const kprof_nvperf_api *api;
    *out = NULL;
    kprof_status status = kprof_ask_open(host);
    KPROF_THEN(status, load_nvpw(&api));
    if (status != KPROF_OK)
        return status;
    kprof_raw_config *self = kprof_calloc(1, sizeof(*self));
    NVPW_PARAMS(params, CUDA_RawCounterConfig_Create, .pChipName = host->chip,
                .pCounterAvailabilityImage = host->availability.image, .activityKind = NVPA_ACTIVITY_KIND_PROFILER);
    status = NVPW_CALL(api, CUDA_RawCounterConfig_Create, params);
    *self = (kprof_raw_config){.api = api, .config = params.pRawCounterConfig};
    NVPW_PARAMS(domains, RawCounterConfig_GetAllAvailableRawCounterDomains, .pRawCounterConfig = self->config,
                .pAvailableDomains = self->domains, .numAvailableDomains = MAX_DOMAINS);
    KPROF_THEN(status, NVPW_CALL(api, RawCounterConfig_GetAllAvailableRawCounterDomains, domains));
    self->domain_count = domains.numAvailableDomains;
    if (status == KPROF_OK)
        *out = self;
    else
        kprof_raw_config_close(self);
    return status;
}

void kprof_raw_config_close(kprof_raw_config *config)
{
    if (!config)
        return;
    NVPW_PARAMS(params, RawCounterConfig_Destroy, .pRawCounterConfig = config->config);
    if (config->config)
        (void)config->api->NVPW_RawCounterConfig_Destroy(&params);
    free(config);
}

static kprof_status end_group(kprof_raw_config *config)
{
    NVPW_PARAMS(params, RawCounterConfig_EndPassGroup, .pRawCounterConfig = config->config, .pDomains = config->domains,
                .numDomains = config->domain_count);
    if (!config->is_open)
        return KPROF_OK;
    config->is_open = false;
    return NVPW_CALL(config->api, RawCounterConfig_EndPassGroup, params);
}

/* Caller frees. */
static NVPW_RawCounterRequest *make_requests(const kprof_placed_counter *counters, size_t count)
{
    NVPW_RawCounterRequest *requests = kprof_calloc(count + 1, sizeof(*requests));
    for (size_t i = 0; i < count; i++)
        requests[i] = (NVPW_RawCounterRequest){.pRawCounterName = counters[i].name, .domain = counters[i].domain};
    return requests;
}

kprof_status kprof_raw_config_begin(kprof_raw_config *config, const kprof_placed_counter *counters, size_t count)
{
    NVPW_PARAMS(params, RawCounterConfig_BeginPassGroup, .pRawCounterConfig = config->config,
                .pDomains = config->domains, .numDomains = config->domain_count);
    KPROF_AUTO_FREE NVPW_RawCounterRequest *requests = make_requests(counters, count);
    NVPW_PARAMS(added, RawCounterConfig_AddRawCounters, .pRawCounterConfig = config->config,
                .rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE, .pRawCounterRequests = requests,
                .numRawCounterRequests = count);
    kprof_status status = end_group(config);
    KPROF_THEN(status, NVPW_CALL(config->api, RawCounterConfig_BeginPassGroup, params));
    config->is_open = status == KPROF_OK;
    if (status == KPROF_OK && count > 0)
        status = NVPW_CALL(config->api, RawCounterConfig_AddRawCounters, added);
    return status;
}

kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out)
{
    KPROF_AUTO_FREE NVPW_RawCounterRequest *requests = make_requests(counters, count);
    NVPW_PARAMS(params, RawCounterConfig_AreRawCountersSchedulable, .pRawCounterConfig = config->config,
                .rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE, .pRawCounterRequests = requests,
                .numRawCounterRequests = count, .disallowAddingExtraPasses = 1);
    kprof_status status = NVPW_CALL(config->api, RawCounterConfig_AreRawCountersSchedulable, params);
    *out = status == KPROF_OK && params.schedulable;
    return status;
}

kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config, kprof_config_image *out)
{
    *out = (kprof_config_image){0};
    NVPW_PARAMS(made, RawCounterConfig_GenerateConfigImage, .pRawCounterConfig = config->config);
    NVPW_PARAMS(params, RawCounterConfig_GetConfigImage, .pRawCounterConfig = config->config);
    kprof_status status = end_group(config);
    KPROF_THEN(status, NVPW_CALL(config->api, RawCounterConfig_GenerateConfigImage, made));
    KPROF_THEN(status, NVPW_CALL(config->api, RawCounterConfig_GetConfigImage, params));
    *out = (kprof_config_image){.data = kprof_calloc(1, params.bytesCopied), .size = params.bytesCopied};
    params.bytesAllocated = out->size;
    params.pBuffer = out->data;
    KPROF_THEN(status, NVPW_CALL(config->api, RawCounterConfig_GetConfigImage, params));
    KPROF_THEN(status, count_passes(host, out));
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

kprof_status kprof_raw_config_places(const kprof_raw_config *config, const char *counter, kprof_counter_places *out)
{
    NVPW_RawCounterDomain domains[MAX_DOMAINS];
    uint32_t groups[MAX_DOMAINS];
    NVPW_PARAMS(params, RawCounterConfig_GetRawCounterProperties, .pRawCounterConfig = config->config,
                .pRawCounterName = counter, .pSupportedDomains = domains, .numSupportedDomains = MAX_DOMAINS,
                .pSupportedCdgDomains = groups, .numSupportedCdgDomains = MAX_DOMAINS);
    kprof_status status = NVPW_CALL(config->api, RawCounterConfig_GetRawCounterProperties, params);
    out->count = 0;
    const size_t count = status == KPROF_OK ? params.numSupportedDomains + params.numSupportedCdgDomains : 0;
    for (; out->count < count && out->count < KPROF_COUNTER_PLACES_MAX; out->count++) {
        const size_t i = out->count;
        out->items[i] = i < params.numSupportedDomains ? (uint32_t)domains[i] : groups[i - params.numSupportedDomains];
    }
    return status;
}

unsigned kprof_place_traits(uint32_t place)
{
    switch (place) {
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_A:
        return KPROF_IN_SM | KPROF_IN_SM_A;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B:
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C:
        return KPROF_IN_SM | KPROF_IS_SLOW;
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A:
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A:
        return KPROF_IN_SM | KPROF_IN_SM_A | KPROF_IS_SLOW;
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_TPC_SM_A:
        return KPROF_IN_SM | KPROF_IN_SM_A | KPROF_IN_TPC_TOO;
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_TPC:
        return KPROF_IS_SLOW;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_LTS:
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS:
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SYSLTS_B:
        return KPROF_IN_L2;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SASS:
        return KPROF_IS_PATCH;
    default:
        return 0;
    }
}

kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out)
{
    const kprof_nvperf_api *api;
    NVPW_PARAMS(params, Config_GetRawCounters, .pConfig = image->data, .configSize = image->size, .passIndex = pass);
    kprof_status status = kprof_nvperf_load(&api);
    KPROF_THEN(status, NVPW_CALL(api, Config_GetRawCounters, params));
    if (status != KPROF_OK)
        return status;
    KPROF_AUTO_FREE const char **names = kprof_calloc(params.numRawCounters + 1, sizeof(*names));
    params.ppRawCounterNames = names;
    if (params.numRawCounters > 0)
        status = NVPW_CALL(api, Config_GetRawCounters, params);
    return KPROF_THEN(status, add_names(out, names, params.numRawCounters));
}
