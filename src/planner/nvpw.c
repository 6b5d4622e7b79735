/* The one file of this folder that calls CUPTI's Profiler Host API and NVPW. */
#include "planner/nvpw.h"

#include "core/log.h"
#include "planner/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Declare the parameters `p` of a function: both interfaces take and give back everything in one structure. */
#define HOST_PARAMS(p, name, ...)                                                                                      \
    CUpti_Profiler_Host_##name##_Params p = {.structSize = CUpti_Profiler_Host_##name##_Params_STRUCT_SIZE, __VA_ARGS__}
#define NVPW_PARAMS(p, name, ...) NVPW_##name##_Params p = {.structSize = NVPW_##name##_Params_STRUCT_SIZE, __VA_ARGS__}

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

static kprof_status check_nvpw(const char *operation, NVPA_Status result)
{
    if (result == NVPA_STATUS_SUCCESS)
        return KPROF_OK;
    return kprof_fail(KPROF_INTERNAL, "%s: NVPW error %d", operation, (int)result);
}

static kprof_status add_names(kprof_strlist *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!kprof_strlist_add(out, names[i]))
            return KPROF_NO_MEMORY;
    }
    return KPROF_OK;
}

kprof_status kprof_host_chips(kprof_strlist *out)
{
    const kprof_cupti_api *api;
    kprof_status status = kprof_cupti_load(&api);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(params, GetSupportedChips, .pPriv = NULL);
    CUptiResult result = api->cuptiProfilerHostGetSupportedChips(&params);
    if (result != CUPTI_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "listing the chips that CUPTI knows: CUPTI error %d", (int)result);
    return add_names(out, params.ppChipNames, params.numChips);
}

/* The library's own errors for a wrong chip name are not told apart from others, so the list decides. */
static kprof_status check_chip(const char *chip)
{
    kprof_strlist chips = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_chips(&chips);
    if (status == KPROF_OK && !kprof_strlist_contains(&chips, chip)) {
        const char *nearest = kprof_nearest(chip, (const char *const *)chips.items, chips.count);
        status = kprof_fail(KPROF_UNKNOWN_NAME, "chip \"%s\" is not known%s%s%s; --list-chips lists those that are",
                            chip, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    }
    kprof_strlist_free(&chips);
    return status;
}

static CUptiResult object_open(const kprof_host *host, CUpti_Profiler_Host_Object **out)
{
    HOST_PARAMS(params, Initialize, .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER, .pChipName = host->chip,
                .pCounterAvailabilityImage = host->availability.image);
    CUptiResult result = host->api->cuptiProfilerHostInitialize(&params);
    *out = params.pHostObject;
    return result;
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

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    const kprof_cupti_api *api;
    *out = NULL;
    kprof_status status = kprof_cupti_load(&api);
    if (status == KPROF_OK && !availability)
        status = check_chip(chip);
    if (status != KPROF_OK)
        return status;
    kprof_host *host = calloc(1, sizeof(*host));
    if (!host)
        return KPROF_NO_MEMORY;
    *host = (kprof_host){.api = api, .chip = strdup(chip)};
    if (availability)
        host->availability = *availability;
    if (!host->chip)
        status = KPROF_NO_MEMORY;
    else if (check_host(host, "opening the metrics", object_open(host, (CUpti_Profiler_Host_Object **)&host->object)) !=
             KPROF_OK)
        status = KPROF_UNSUPPORTED;
    if (status == KPROF_OK)
        *out = host;
    else
        kprof_host_close(host);
    return status;
}

void kprof_host_close(kprof_host *host)
{
    if (!host)
        return;
    NVPW_PARAMS(evaluator, MetricsEvaluator_Destroy, .pMetricsEvaluator = host->evaluator);
    if (host->evaluator)
        (void)host->nvpw->NVPW_MetricsEvaluator_Destroy(&evaluator);
    object_close(host, host->object);
    kprof_known_names_free(host->known_names);
    free(host->scratch);
    free(host->chip);
    free(host);
}

const char *kprof_host_chip(const kprof_host *host)
{
    return host->chip;
}

kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out)
{
    HOST_PARAMS(params, GetBaseMetrics, .pHostObject = host->object, .metricType = (CUpti_MetricType)type);
    kprof_status status = check_host(host, "listing the metrics", host->api->cuptiProfilerHostGetBaseMetrics(&params));
    return status == KPROF_OK ? add_names(out, params.ppMetricNames, params.numMetrics) : status;
}

typedef CUpti_Profiler_Host_GetMetricProperties_Params properties;

static bool get_properties(const kprof_host *host, const char *name, properties *out)
{
    HOST_PARAMS(params, GetMetricProperties, .pHostObject = host->object, .pMetricName = name);
    *out = params;
    return host->api->cuptiProfilerHostGetMetricProperties(out) == CUPTI_SUCCESS;
}

bool kprof_host_has_metric(kprof_host *host, const char *name)
{
    properties unused;
    return get_properties(host, name, &unused);
}

static kprof_status unknown_metric(const kprof_host *host, const char *name)
{
    return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on chip %s", name, host->chip);
}

kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    properties of_base;
    if (!get_properties(host, base, &of_base))
        return unknown_metric(host, base);
    HOST_PARAMS(params, GetSubMetrics, .pHostObject = host->object, .metricType = of_base.metricType,
                .pMetricName = base);
    kprof_status status =
        check_host(host, "listing the suffixes of a metric", host->api->cuptiProfilerHostGetSubMetrics(&params));
    for (size_t i = 0; status == KPROF_OK && i < params.numOfSubmetrics; i++) {
        const char *suffix = params.ppSubMetrics[i];
        status = kprof_strlist_add(out, suffix + (suffix[0] == '.')) ? KPROF_OK : KPROF_NO_MEMORY;
    }
    return status;
}

kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values)
{
    for (size_t i = 0; i < names->count; i++)
        values[i] = NAN;
    if (names->count == 0)
        return KPROF_OK;
    HOST_PARAMS(params, EvaluateToGpuValues, .pHostObject = host->object, .pCounterDataImage = counters->data,
                .counterDataImageSize = counters->size, .rangeIndex = counters->range,
                .ppMetricNames = (const char **)names->items, .numMetrics = names->count, .pMetricValues = values);
    return check_host(host, "evaluating counters", host->api->cuptiProfilerHostEvaluateToGpuValues(&params));
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

static kprof_status count_passes(const kprof_host *host, kprof_config_image *image)
{
    HOST_PARAMS(params, GetNumOfPasses, .configImageSize = image->size, .pConfigImage = image->data);
    kprof_status status = check_host(host, "counting the passes", host->api->cuptiProfilerHostGetNumOfPasses(&params));
    image->pass_count = status == KPROF_OK ? params.numOfPasses : 0;
    return status;
}

static kprof_status allocate(kprof_config_image *image, size_t size)
{
    image->size = size;
    image->data = malloc(size ? size : 1);
    return image->data ? KPROF_OK : KPROF_NO_MEMORY;
}

static kprof_status take_image(const kprof_host *host, CUpti_Profiler_Host_Object *object, kprof_config_image *out)
{
    HOST_PARAMS(size, GetConfigImageSize, .pHostObject = object);
    kprof_status status =
        check_host(host, "sizing the config image", host->api->cuptiProfilerHostGetConfigImageSize(&size));
    if (status == KPROF_OK)
        status = allocate(out, size.configImageSize);
    if (status != KPROF_OK)
        return status;
    HOST_PARAMS(image, GetConfigImage, .pHostObject = object, .configImageSize = out->size, .pConfigImage = out->data);
    status = check_host(host, "making the config image", host->api->cuptiProfilerHostGetConfigImage(&image));
    return status == KPROF_OK ? count_passes(host, out) : status;
}

kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    CUpti_Profiler_Host_Object *object;
    *out = (kprof_config_image){0};
    if (names->count == 0)
        return KPROF_OK; /* nothing to collect takes no pass */
    kprof_status status = check_host(host, "opening the metrics", object_open(host, &object));
    if (status != KPROF_OK)
        return status;
    status = check_host(host, "scheduling the metrics (can all of them be collected together?)",
                        object_add(host, object, (const char **)names->items, names->count));
    if (status == KPROF_OK)
        status = take_image(host, object, out);
    object_close(host, object);
    if (status != KPROF_OK)
        kprof_config_image_free(out);
    return status;
}

/* Load and initialise NVPW, as often as somebody needs it. */
static kprof_status load_nvpw(const kprof_nvperf_api **out)
{
    kprof_status status = kprof_nvperf_load(out);
    if (status != KPROF_OK)
        return status;
    NVPW_PARAMS(init, InitializeHost, .pPriv = NULL);
    return check_nvpw("initialising NVPW", (*out)->NVPW_InitializeHost(&init));
}

/* The evaluator of a host, made on the first call. */
static kprof_status need_evaluator(kprof_host *host)
{
    if (host->evaluator)
        return KPROF_OK;
    kprof_status status = load_nvpw(&host->nvpw);
    if (status != KPROF_OK)
        return status;
    NVPW_PARAMS(size, CUDA_MetricsEvaluator_CalculateScratchBufferSize, .pChipName = host->chip);
    status = check_nvpw("sizing the metrics of a chip",
                        host->nvpw->NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size));
    if (status != KPROF_OK)
        return status;
    free(host->scratch);
    host->scratch = malloc(size.scratchBufferSize ? size.scratchBufferSize : 1);
    if (!host->scratch)
        return KPROF_NO_MEMORY;
    NVPW_PARAMS(params, CUDA_MetricsEvaluator_Initialize, .pScratchBuffer = host->scratch,
                .scratchBufferSize = size.scratchBufferSize, .pChipName = host->chip);
    status = check_nvpw("reading the metrics of a chip", host->nvpw->NVPW_CUDA_MetricsEvaluator_Initialize(&params));
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
    static const char operation[] = "reading what a metric is made of";
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
    status = check_nvpw(operation, host->nvpw->NVPW_MetricsEvaluator_GetMetricRawDependencies(&params));
    if (status != KPROF_OK)
        return status;
    params.ppRawDependencies = calloc(params.numRawDependencies + 1, sizeof(*params.ppRawDependencies));
    params.ppOptionalRawDependencies =
        calloc(params.numOptionalRawDependencies + 1, sizeof(*params.ppOptionalRawDependencies));
    status = params.ppRawDependencies && params.ppOptionalRawDependencies ? KPROF_OK : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = check_nvpw(operation, host->nvpw->NVPW_MetricsEvaluator_GetMetricRawDependencies(&params));
    if (status == KPROF_OK)
        status = add_names(required, params.ppRawDependencies, params.numRawDependencies);
    if (status == KPROF_OK && optional)
        status = add_names(optional, params.ppOptionalRawDependencies, params.numOptionalRawDependencies);
    free(params.ppRawDependencies);
    free(params.ppOptionalRawDependencies);
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
    for (size_t i = 0; i < sizeof(unit_names) / sizeof(unit_names[0]); i++) {
        if (strcmp(unit_names[i].nvpw, name) == 0)
            return unit_names[i].report;
    }
    for (size_t i = 0; last && last > name && i < sizeof(unit_endings) / sizeof(unit_endings[0]); i++) {
        if (strcmp(last + 1, unit_endings[i]) == 0)
            return unit_endings[i];
    }
    return name;
}

/* One unit of the report with its exponent: cycles of two clocks are both "cycle". */
typedef struct factor {
    const char *name;
    int exponent;
} factor;

static size_t merge_factors(const kprof_host *host, const NVPW_DimUnitFactor *dims, size_t count, factor *out)
{
    size_t merged = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = factor_name(host, dims[i].dimUnit);
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

/* Unit of a full name in base units ("byte/second"); caller frees. "" when NVPW cannot tell. */
static char *unit_of(const kprof_host *host, const char *name)
{
    NVPW_MetricEvalRequest request;
    NVPW_DimUnitFactor dims[MAX_FACTORS];
    factor factors[MAX_FACTORS] = {{"", 0}};
    NVPW_PARAMS(params, MetricsEvaluator_GetMetricDimUnits, .pMetricsEvaluator = host->evaluator,
                .pMetricEvalRequest = &request, .metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE,
                .pDimUnits = dims, .numDimUnits = MAX_FACTORS,
                .dimUnitFactorStructSize = NVPW_DimUnitFactor_STRUCT_SIZE);
    if (!to_request(host, name, &request) ||
        host->nvpw->NVPW_MetricsEvaluator_GetMetricDimUnits(&params) != NVPA_STATUS_SUCCESS)
        return strdup("");
    size_t count = merge_factors(host, dims, params.numDimUnits, factors);
    kprof_strbuf text = KPROF_STRBUF_INIT;
    put_factors(&text, factors, count, 1);
    if (text.length == 0 && count > 0)
        kprof_strbuf_puts(&text, factors[0].exponent < 0 ? "1" : "");
    put_factors(&text, factors, count, -1);
    return kprof_strbuf_take(&text);
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    /* A base name has no unit of its own; that of its plainest suffix stands for it. */
    static const char *const plainest[] = {".sum", ".ratio", ".avg.pct_of_peak_sustained_elapsed"};
    properties of_name;
    *out = (kprof_metric_info){0};
    if (!get_properties(host, name, &of_name))
        return unknown_metric(host, name);
    kprof_status status = need_evaluator(host);
    if (status != KPROF_OK)
        return status;
    const bool is_base = name[kprof_metric_base_length(name)] == '\0';
    kprof_strbuf full = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&full, "%s%s", name, is_base ? plainest[of_name.metricType] : "");
    out->type = (kprof_metric_type)of_name.metricType;
    out->name = strndup(name, kprof_metric_base_length(name));
    out->description = strdup(of_name.pDescription ? of_name.pDescription : "");
    out->hw_unit = strdup(of_name.pHwUnit ? of_name.pHwUnit : "");
    out->unit = full.failed ? NULL : unit_of(host, full.data);
    kprof_strbuf_free(&full);
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
    *info = (kprof_metric_info){0};
}

/* The parts of a throughput, with its suffix. */
typedef struct breakdown {
    const kprof_host *host;
    const char *suffix;
    kprof_strlist *out;
} breakdown;

/* Append the counters that a throughput is the greatest of, and those of its throughputs. */
static kprof_status add_members(const breakdown *b, size_t throughput, unsigned depth)
{
    const kprof_host *host = b->host;
    NVPW_PARAMS(names, MetricsEvaluator_GetMetricNames, .pMetricsEvaluator = host->evaluator,
                .metricType = NVPW_METRIC_TYPE_COUNTER);
    NVPW_PARAMS(params, MetricsEvaluator_GetThroughputMetricProperties, .pMetricsEvaluator = host->evaluator,
                .throughputMetricIndex = throughput);
    kprof_status status = check_nvpw("reading the members of a throughput",
                                     host->nvpw->NVPW_MetricsEvaluator_GetThroughputMetricProperties(&params));
    if (status == KPROF_OK)
        status = check_nvpw("listing counters", host->nvpw->NVPW_MetricsEvaluator_GetMetricNames(&names));
    for (size_t i = 0; status == KPROF_OK && i < params.numCounters; i++) {
        size_t index = params.pCounterIndices[i];
        kprof_strbuf name = KPROF_STRBUF_INIT;
        if (index >= names.numMetrics)
            continue;
        kprof_strbuf_printf(&name, "%s%s", names.pMetricNames + names.pMetricNameBeginIndices[index], b->suffix);
        if (name.failed || !kprof_strlist_add_unique(b->out, name.data))
            status = KPROF_NO_MEMORY;
        kprof_strbuf_free(&name);
    }
    for (size_t i = 0; status == KPROF_OK && depth > 0 && i < params.numSubThroughputs; i++)
        status = add_members(b, params.pSubThroughputIndices[i], depth - 1);
    return status;
}

kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    enum { MAX_DEPTH = 4 }; /* throughputs of throughputs; real ones nest once */
    kprof_status status = need_evaluator(host);
    if (status != KPROF_OK)
        return status;
    NVPW_PARAMS(params, MetricsEvaluator_GetMetricTypeAndIndex, .pMetricsEvaluator = host->evaluator,
                .pMetricName = throughput);
    NVPA_Status result = host->nvpw->NVPW_MetricsEvaluator_GetMetricTypeAndIndex(&params);
    if (result != NVPA_STATUS_SUCCESS || params.metricType != NVPW_METRIC_TYPE_THROUGHPUT)
        return kprof_fail(KPROF_UNKNOWN_NAME, "\"%s\" is not a throughput metric of chip %s", throughput, host->chip);
    const breakdown parts = {host, throughput + kprof_metric_base_length(throughput), out};
    return add_members(&parts, params.metricIndex, MAX_DEPTH);
}

struct kprof_raw_config {
    const kprof_nvperf_api *api;
    NVPW_RawCounterConfig *config;
    NVPW_RawCounterDomain domains[MAX_DOMAINS]; /* all that the chip has */
    size_t domain_count;
    bool is_open; /* a pass group */
};

kprof_status kprof_raw_config_open(const kprof_host *host, kprof_raw_config **out)
{
    const kprof_nvperf_api *api;
    *out = NULL;
    kprof_status status = load_nvpw(&api);
    if (status != KPROF_OK)
        return status;
    kprof_raw_config *self = calloc(1, sizeof(*self));
    if (!self)
        return KPROF_NO_MEMORY;
    NVPW_PARAMS(params, CUDA_RawCounterConfig_Create, .pChipName = host->chip,
                .pCounterAvailabilityImage = host->availability.image, .activityKind = NVPA_ACTIVITY_KIND_PROFILER);
    status = check_nvpw("opening the counters of a chip", api->NVPW_CUDA_RawCounterConfig_Create(&params));
    *self = (kprof_raw_config){.api = api, .config = params.pRawCounterConfig};
    NVPW_PARAMS(domains, RawCounterConfig_GetAllAvailableRawCounterDomains, .pRawCounterConfig = self->config,
                .pAvailableDomains = self->domains, .numAvailableDomains = MAX_DOMAINS);
    if (status == KPROF_OK)
        status = check_nvpw("listing where a chip has counters",
                            api->NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains(&domains));
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
    return check_nvpw("closing a group of passes", config->api->NVPW_RawCounterConfig_EndPassGroup(&params));
}

/* Caller frees; NULL when out of memory. */
static NVPW_RawCounterRequest *make_requests(const kprof_placed_counter *counters, size_t count)
{
    NVPW_RawCounterRequest *requests = calloc(count + 1, sizeof(*requests));
    for (size_t i = 0; requests && i < count; i++)
        requests[i] = (NVPW_RawCounterRequest){.pRawCounterName = counters[i].name, .domain = counters[i].domain};
    return requests;
}

static kprof_status add(kprof_raw_config *config, const kprof_placed_counter *counters, size_t count)
{
    NVPW_RawCounterRequest *requests = make_requests(counters, count);
    if (!requests)
        return KPROF_NO_MEMORY;
    NVPW_PARAMS(params, RawCounterConfig_AddRawCounters, .pRawCounterConfig = config->config,
                .rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE, .pRawCounterRequests = requests,
                .numRawCounterRequests = count);
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AddRawCounters(&params);
    free(requests);
    return check_nvpw("scheduling counters", result);
}

kprof_status kprof_raw_config_begin(kprof_raw_config *config, const kprof_placed_counter *counters, size_t count)
{
    NVPW_PARAMS(params, RawCounterConfig_BeginPassGroup, .pRawCounterConfig = config->config,
                .pDomains = config->domains, .numDomains = config->domain_count);
    kprof_status status = end_group(config);
    if (status == KPROF_OK)
        status = check_nvpw("opening a group of passes", config->api->NVPW_RawCounterConfig_BeginPassGroup(&params));
    config->is_open = status == KPROF_OK;
    return status == KPROF_OK && count > 0 ? add(config, counters, count) : status;
}

kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out)
{
    NVPW_RawCounterRequest *requests = make_requests(counters, count);
    *out = false;
    if (!requests)
        return KPROF_NO_MEMORY;
    NVPW_PARAMS(params, RawCounterConfig_AreRawCountersSchedulable, .pRawCounterConfig = config->config,
                .rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE, .pRawCounterRequests = requests,
                .numRawCounterRequests = count, .disallowAddingExtraPasses = 1);
    NVPA_Status result = config->api->NVPW_RawCounterConfig_AreRawCountersSchedulable(&params);
    free(requests);
    *out = result == NVPA_STATUS_SUCCESS && params.schedulable;
    return check_nvpw("asking whether counters fit", result);
}

kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config, kprof_config_image *out)
{
    static const char operation[] = "making a config image";
    *out = (kprof_config_image){0};
    NVPW_PARAMS(made, RawCounterConfig_GenerateConfigImage, .pRawCounterConfig = config->config);
    NVPW_PARAMS(params, RawCounterConfig_GetConfigImage, .pRawCounterConfig = config->config);
    kprof_status status = end_group(config);
    if (status == KPROF_OK)
        status = check_nvpw(operation, config->api->NVPW_RawCounterConfig_GenerateConfigImage(&made));
    if (status == KPROF_OK)
        status = check_nvpw(operation, config->api->NVPW_RawCounterConfig_GetConfigImage(&params));
    if (status == KPROF_OK)
        status = allocate(out, params.bytesCopied);
    params.bytesAllocated = out->size;
    params.pBuffer = out->data;
    if (status == KPROF_OK)
        status = check_nvpw(operation, config->api->NVPW_RawCounterConfig_GetConfigImage(&params));
    if (status == KPROF_OK)
        status = count_passes(host, out);
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
    kprof_status status =
        check_nvpw("asking where a counter is", config->api->NVPW_RawCounterConfig_GetRawCounterProperties(&params));
    out->count = 0;
    for (size_t i = 0; status == KPROF_OK && i < params.numSupportedDomains + params.numSupportedCdgDomains; i++) {
        if (out->count < KPROF_COUNTER_PLACES_MAX)
            out->items[out->count++] =
                i < params.numSupportedDomains ? (uint32_t)domains[i] : groups[i - params.numSupportedDomains];
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
    static const char operation[] = "reading a pass of a config image";
    const kprof_nvperf_api *api;
    kprof_status status = kprof_nvperf_load(&api);
    if (status != KPROF_OK)
        return status;
    NVPW_PARAMS(params, Config_GetRawCounters, .pConfig = image->data, .configSize = image->size, .passIndex = pass);
    status = check_nvpw(operation, api->NVPW_Config_GetRawCounters(&params));
    if (status != KPROF_OK)
        return status;
    const char **names = calloc(params.numRawCounters + 1, sizeof(*names));
    if (!names)
        return KPROF_NO_MEMORY;
    params.ppRawCounterNames = names;
    if (params.numRawCounters > 0)
        status = check_nvpw(operation, api->NVPW_Config_GetRawCounters(&params));
    if (status == KPROF_OK)
        status = add_names(out, names, params.numRawCounters);
    free(names);
    return status;
}
