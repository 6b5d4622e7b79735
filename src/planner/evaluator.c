/* NVPW's metrics evaluator: what CUPTI's host API does not tell, the factors of a metric's unit and the members of a
 * throughput. Works on chip names, without a GPU. */
#include "planner/host_private.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

#define PARAMS(type, name) type name = {.structSize = type##_STRUCT_SIZE}
#define MAX_FACTORS        16

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
