/* Opens CUPTI's libraries at run time, by path, so that kprof starts without them and takes the copy that an
 * application brought along only where both are to use CUPTI. Each library is opened once per process and stays open.
 */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <nvperf_cuda_host.h>
#include <nvperf_host.h>

/* Declare the parameters `p` of a function of CUPTI, with some members set. */
#define KPROF_CUPTI_PARAMS(p, name, ...)                                                                               \
    CUpti_##name##_Params p = {.structSize = CUpti_##name##_Params_STRUCT_SIZE, __VA_ARGS__}

/* Every function of libcupti that kprof calls; its name makes the table's member and has it filled. */
/* clang-format off */
#define KPROF_CUPTI_FUNCTIONS(X) \
    X(cuptiGetResultString) X(cuptiGetVersion) \
    X(cuptiProfilerHostInitialize) X(cuptiProfilerHostDeinitialize) X(cuptiProfilerHostGetSupportedChips) \
    X(cuptiProfilerHostGetBaseMetrics) X(cuptiProfilerHostGetSubMetrics) X(cuptiProfilerHostGetMetricProperties) \
    X(cuptiProfilerHostConfigAddMetrics) X(cuptiProfilerHostGetConfigImageSize) X(cuptiProfilerHostGetConfigImage) \
    X(cuptiProfilerHostGetNumOfPasses) X(cuptiProfilerHostEvaluateToGpuValues) \
    X(cuptiSubscribe) X(cuptiEnableCallback) X(cuptiEnableDomain) X(cuptiGetGraphNodeId) X(cuptiGetStreamIdEx) \
    X(cuptiGetContextId) \
    X(cuptiDeviceGetChipName) X(cuptiProfilerInitialize) X(cuptiProfilerDeviceSupported) \
    X(cuptiRangeProfilerEnable) X(cuptiRangeProfilerDisable) X(cuptiRangeProfilerSetConfig) \
    X(cuptiRangeProfilerStart) X(cuptiRangeProfilerStop) X(cuptiRangeProfilerPushRange) \
    X(cuptiRangeProfilerPopRange) X(cuptiRangeProfilerDecodeData) X(cuptiRangeProfilerGetCounterDataSize) \
    X(cuptiRangeProfilerCounterDataImageInitialize) X(cuptiRangeProfilerGetCounterDataInfo) \
    X(cuptiSassMetricsGetProperties) X(cuptiSassMetricsSetConfig) X(cuptiSassMetricsUnsetConfig) \
    X(cuptiSassMetricsEnable) X(cuptiSassMetricsGetDataProperties) X(cuptiSassMetricsFlushData) \
    X(cuptiSassMetricsDisable) \
    X(cuptiPCSamplingEnable) X(cuptiPCSamplingDisable) X(cuptiPCSamplingGetNumStallReasons) \
    X(cuptiPCSamplingGetStallReasons) X(cuptiPCSamplingSetConfigurationAttribute) X(cuptiPCSamplingStart) \
    X(cuptiPCSamplingStop) X(cuptiPCSamplingGetData) \
    X(cuptiPmSamplingEnable) X(cuptiPmSamplingDisable) X(cuptiPmSamplingSetConfig) \
    X(cuptiPmSamplingGetCounterDataSize) X(cuptiPmSamplingCounterDataImageInitialize) X(cuptiPmSamplingStart) \
    X(cuptiPmSamplingStop) X(cuptiPmSamplingDecodeData) X(cuptiPmSamplingGetCounterDataInfo) \
    X(cuptiPmSamplingCounterDataGetSampleInfo) \
    X(cuptiGetCubinCrc) X(cuptiGetTimestamp) X(cuptiGetCallbackName) X(cuptiSetThreadIdType) \
    X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable) X(cuptiActivityEnableDriverApi) \
    X(cuptiActivityEnableRuntimeApi) X(cuptiActivityConfigureUnifiedMemoryCounter) X(cuptiActivityFlushAll) \
    X(cuptiActivityFlushPeriod) X(cuptiActivityGetNextRecord) X(cuptiActivityGetNumDroppedRecords)

/* The same for libnvperf_host. */
#define KPROF_NVPERF_FUNCTIONS(X) \
    X(NVPW_InitializeHost) X(NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize) \
    X(NVPW_CUDA_MetricsEvaluator_Initialize) \
    X(NVPW_MetricsEvaluator_Destroy) X(NVPW_MetricsEvaluator_GetMetricNames) \
    X(NVPW_MetricsEvaluator_GetMetricTypeAndIndex) X(NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest) \
    X(NVPW_MetricsEvaluator_GetThroughputMetricProperties) X(NVPW_MetricsEvaluator_GetMetricDimUnits) \
    X(NVPW_MetricsEvaluator_DimUnitToString) X(NVPW_MetricsEvaluator_GetMetricRawDependencies) \
    X(NVPW_Config_GetRawCounters) X(NVPW_CUDA_RawCounterConfig_Create) \
    X(NVPW_RawCounterConfig_Destroy) X(NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains) \
    X(NVPW_RawCounterConfig_BeginPassGroup) X(NVPW_RawCounterConfig_EndPassGroup) \
    X(NVPW_RawCounterConfig_GetRawCounterProperties) X(NVPW_RawCounterConfig_AreRawCountersSchedulable) \
    X(NVPW_RawCounterConfig_AddRawCounters) X(NVPW_RawCounterConfig_GenerateConfigImage) \
    X(NVPW_RawCounterConfig_GetConfigImage)
/* clang-format on */

#define KPROF_API_MEMBER(name) __typeof__(&name) name;

typedef struct kprof_cupti_api {
    KPROF_CUPTI_FUNCTIONS(KPROF_API_MEMBER)
} kprof_cupti_api;

typedef struct kprof_nvperf_api {
    KPROF_NVPERF_FUNCTIONS(KPROF_API_MEMBER)
} kprof_nvperf_api;

/* The table of a library, opened on the first call. Thread-safe. UNSUPPORTED, on this and every later call, when the
 * library is not found (the message names every place looked at) or lacks a function. The tables live as long as the
 * process. libnvperf_host is taken from beside libcupti. */
kprof_status kprof_cupti_load(const kprof_cupti_api **out) KPROF_MUST_CHECK;
kprof_status kprof_nvperf_load(const kprof_nvperf_api **out) KPROF_MUST_CHECK;
/* Use the copy of CUPTI that the application has loaded, if it is of the version that would be opened otherwise. For
 * the first of all calls. */
void kprof_cupti_share(void);
/* Open both libraries early and silently. Thread-safe. A thread that loads the second library does not wait for this
 * call: this call may wait for the loader's lock, which that thread may hold. */
void kprof_libraries_preload(void);
