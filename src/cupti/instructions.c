/* CUPTI's SASS metrics: configured once for each device of the process, enabled around the launches of one replay. */
#include "cupti/instructions.h"

#include "core/hold.h"
#include "core/log.h"
#include "cupti/profiler.h"
#include "cupti/target.h"
#include "host/load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kprof_instructions {
    const kprof_cupti_api *cupti;
    CUcontext context;
    uint32_t device;
    uint64_t *ids;      /* [count]: CUPTI's numbers of the metrics */
    const char **names; /* [count]; the strings are the configuration's */
    size_t count;
    bool enabled;
    kprof_instruction_rows rows;
    CUpti_SassMetrics_Data *records; /* [record_capacity], of the last reading */
    CUpti_SassMetrics_InstanceValue *instances;
    size_t record_capacity, instance_capacity;
};

#define MOST_DEVICES 64

/* A second configuration of a device answers OUT_OF_MEMORY, and nothing works any more. Kernels that are patched in one
 * context after another fail with illegal addresses, and CUPTI's exit handler crashes where the context has ended
 * (H200, CUPTI 13.0). So a device's primary context has it, which lives longest. */
static struct {
    pthread_mutex_t mutex;
    CUcontext contexts[MOST_DEVICES]; /* that have each device's configuration; NULL: none has */
    uint64_t ended;                   /* devices whose context has ended, as bits */
} devices = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* List the metrics that the chip has. */
static kprof_status find_metrics(kprof_instructions *s, const kprof_instructions_place *place)
{
    for (size_t i = 0; i < place->names->count; i++) {
        KPROF_CUPTI_PARAMS(params, SassMetrics_GetProperties, .pChipName = place->chip,
                           .pMetricName = place->names->items[i]);
        CUptiResult result = s->cupti->cuptiSassMetricsGetProperties(&params);
        if (result != CUPTI_SUCCESS) {
            kprof_log(KPROF_LOG_WARNING, "%s does not count %s by instruction (CUPTI error %d)", place->chip,
                      place->names->items[i], (int)result);
            continue;
        }
        s->ids[s->count] = params.metric.metricId;
        s->names[s->count++] = place->names->items[i];
    }
    return s->count > 0 ? KPROF_OK
                        : kprof_fail(KPROF_UNSUPPORTED, "%s counts none of these metrics by instruction", place->chip);
}

static kprof_status set_config(const kprof_instructions *s)
{
    KPROF_AUTO_FREE CUpti_SassMetrics_Config *configs = kprof_calloc(s->count, sizeof *configs);
    if (!configs)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for counters of instructions");
    for (size_t i = 0; i < s->count; i++)
        configs[i] = (CUpti_SassMetrics_Config){s->ids[i], CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU};
    KPROF_CUPTI_PARAMS(params, SassMetricsSetConfig, .numOfMetricConfig = s->count, .pConfigs = configs,
                       .deviceIndex = s->device);
    return KPROF_CUPTI_CALL(s->cupti, cuptiSassMetricsSetConfig, params);
}

static kprof_status configure_once(const kprof_instructions *s)
{
    if (s->device >= MOST_DEVICES)
        return kprof_fail(KPROF_UNSUPPORTED, "kprof counts the instructions of %d devices", MOST_DEVICES);
    KPROF_HOLD(devices.mutex);
    CUcontext *holder = &devices.contexts[s->device];
    if (*holder == s->context)
        return KPROF_OK;
    if (!kprof_target_is_primary(s->context, s->device))
        return kprof_fail(KPROF_UNSUPPORTED, "CUPTI counts instructions in a device's primary context only");
    if (devices.ended & UINT64_C(1) << s->device)
        return kprof_fail(KPROF_UNSUPPORTED, "CUPTI counts no instructions once the device has been reset");
    kprof_status status = set_config(s);
    if (status == KPROF_OK)
        *holder = s->context;
    return status;
}

/* Have CUPTI forget the context while it is there. */
static void unset_config(const kprof_instructions *s)
{
    KPROF_CUPTI_PARAMS(params, SassMetricsUnsetConfig, .deviceIndex = s->device);
    KPROF_HOLD(devices.mutex);
    if (devices.contexts[s->device] == s->context) {
        if (s->cupti->cuptiSassMetricsUnsetConfig(&params) != CUPTI_SUCCESS)
            kprof_log(KPROF_LOG_DEBUG, "counters of instructions are still configured as their context ends");
        devices.contexts[s->device] = NULL;
        devices.ended |= UINT64_C(1) << s->device;
    }
}

kprof_status kprof_instructions_open(const kprof_instructions_place *place, kprof_instructions **out)
{
    *out = NULL;
    kprof_instructions *s = calloc(1, sizeof *s);
    if (!s)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for counters of instructions");
    s->context = place->context;
    s->device = place->device;
    s->ids = calloc(place->names->count + 1, sizeof *s->ids);
    s->names = calloc(place->names->count + 1, sizeof *s->names);
    kprof_status status = s->ids && s->names ? kprof_cupti_load(&s->cupti)
                                             : kprof_fail(KPROF_NO_MEMORY, "no memory for counters of instructions");
    KPROF_THEN(status, kprof_profilers_initialize(s->cupti));
    KPROF_THEN(status, find_metrics(s, place));
    KPROF_THEN(status, configure_once(s));
    if (status != KPROF_OK) {
        kprof_instructions_close(s);
        return status;
    }
    *out = s;
    return KPROF_OK;
}

kprof_status kprof_instructions_enable(kprof_instructions *s)
{
    KPROF_CUPTI_PARAMS(params, SassMetricsEnable, .ctx = s->context, .enableLazyPatching = 1);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiSassMetricsEnable, params);
    s->enabled = status == KPROF_OK;
    return status;
}

/* Make space for the values that CUPTI is about to give, and tell each record where they go. */
static bool reserve(kprof_instructions *s, size_t records, size_t instances)
{
    if (records > s->record_capacity) {
        free(s->records);
        s->records = calloc(records, sizeof *s->records);
        s->record_capacity = s->records ? records : 0;
    }
    if (records * instances > s->instance_capacity) {
        free(s->instances);
        s->instances = calloc(records * instances, sizeof *s->instances);
        s->instance_capacity = s->instances ? records * instances : 0;
    }
    if (!s->records || !s->instances || !kprof_instruction_rows_begin(&s->rows, records, s->count))
        return false;
    memset(s->records, 0, records * sizeof *s->records);
    memset(s->instances, 0, records * instances * sizeof *s->instances);
    for (size_t i = 0; i < records; i++) {
        s->records[i].structSize = sizeof s->records[i]; /* the header has no macro for it */
        s->records[i].pInstanceValues = s->instances + i * instances;
    }
    return true;
}

static void add_instance(const kprof_instructions *s, const CUpti_SassMetrics_InstanceValue *instance, double *values)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->ids[i] == instance->metricId) {
            values[i] += (double)instance->value;
            return;
        }
}

static kprof_status flush(kprof_instructions *s, size_t records, size_t instances)
{
    KPROF_CUPTI_PARAMS(params, SassMetricsFlushData, .ctx = s->context, .numOfPatchedInstructionRecords = records,
                       .numOfInstances = instances,
                       .pMetricsData = s->records /* it lies behind the size that the macro tells */);
    return KPROF_CUPTI_CALL(s->cupti, cuptiSassMetricsFlushData, params);
}

kprof_status kprof_instructions_read(kprof_instructions *s, kprof_instruction_data *out)
{
    *out = (kprof_instruction_data){.names = s->names, .name_count = s->count};
    KPROF_CUPTI_PARAMS(params, SassMetricsGetDataProperties, .ctx = s->context);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiSassMetricsGetDataProperties, params);
    const size_t records = params.numOfPatchedInstructionRecords, instances = params.numOfInstances;
    if (status != KPROF_OK || records == 0 || instances == 0)
        return status;
    if (!reserve(s, records, instances))
        return kprof_fail(KPROF_NO_MEMORY, "no memory for the counters of %zu instructions", records);
    status = flush(s, records, instances);
    for (size_t i = 0; i < records && status == KPROF_OK; i++) {
        const CUpti_SassMetrics_Data *record = &s->records[i];
        double *values = kprof_instruction_rows_next(&s->rows);
        for (size_t k = 0; k < instances; k++)
            add_instance(s, &record->pInstanceValues[k], values);
        kprof_instruction_rows_keep(&s->rows, record->cubinCrc, record->functionName, record->pcOffset);
    }
    out->items = s->rows.items;
    out->count = s->rows.count;
    return status;
}

kprof_status kprof_instructions_disable(kprof_instructions *s)
{
    if (!s->enabled)
        return KPROF_OK;
    KPROF_CUPTI_PARAMS(params, SassMetricsDisable, .ctx = s->context);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiSassMetricsDisable, params);
    s->enabled = status != KPROF_OK;
    return status;
}

void kprof_instructions_close(kprof_instructions *s)
{
    if (!s)
        return;
    if (s->device < MOST_DEVICES)
        unset_config(s);
    kprof_instruction_rows_free(&s->rows);
    KPROF_FREE(s->records, s->instances, s->ids, s->names, s);
}
