/* CUPTI's PC sampling in its serialised mode, with start and stop under control. */
#include "cupti/pc_samples.h"

#include "core/log.h"
#include "cupti/profiler.h"
#include "host/load.h"

#include <stdlib.h>
#include <string.h>

/* CUPTI's default takes 512 MB of the device, and 1 MB for about 5,500 instructions. */
#define HARDWARE_BUFFER_BYTES ((size_t)64 << 20)
#define SCRATCH_BUFFER_BYTES  ((size_t)16 << 20)
/* Instructions that one call reads, and calls at most: in a bad state CUPTI might tell for ever that some are left. */
#define READ_INSTRUCTIONS 4096
#define MOST_READS        256
#define ATTRIBUTES        7

struct kprof_pc_samples {
    const kprof_cupti_api *cupti;
    CUcontext context;
    size_t buffer_bytes;
    bool enabled, runs;
    size_t reason_count;
    uint32_t *indices;   /* [reason_count]: CUPTI's numbers of the reasons */
    char **reasons;      /* [reason_count]: their names */
    char *reason_texts;  /* that these point into */
    size_t *columns;     /* [column_count]: the reason of each of CUPTI's numbers */
    size_t column_count; /* the largest of the numbers, plus 1 */
    kprof_instruction_rows rows;
    CUpti_PCSamplingPCData *records; /* [READ_INSTRUCTIONS] */
    CUpti_PCSamplingStallReason *counts;
    /* CUPTI writes here what nobody has read when samples are disabled. */
    CUpti_PCSamplingPCData *rest_records; /* [READ_INSTRUCTIONS] */
    CUpti_PCSamplingStallReason *rest_counts;
    CUpti_PCSamplingData rest;
};

/* Declare the parameters `p` of a function. */
#define PARAMS(p, name, ...)                                                                                           \
    CUpti_PCSampling##name##Params p = {.size = CUpti_PCSampling##name##ParamsSize, .ctx = s->context, __VA_ARGS__}

static kprof_status enable(kprof_pc_samples *s)
{
    PARAMS(params, Enable);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingEnable, params);
    s->enabled = status == KPROF_OK;
    return status;
}

kprof_status kprof_pc_samples_disarm(kprof_pc_samples *s)
{
    if (!s->enabled)
        return KPROF_OK;
    if (s->runs && kprof_pc_samples_stop(s) != KPROF_OK) /* the launch went on as its batch ended */
        kprof_log(KPROF_LOG_DEBUG, "samples that are taken cannot be stopped");
    PARAMS(params, Disable);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingDisable, params);
    s->enabled = status != KPROF_OK;
    return status;
}

static void set_up_records(const kprof_pc_samples *s, CUpti_PCSamplingPCData *records,
                           CUpti_PCSamplingStallReason *counts)
{
    memset(records, 0, READ_INSTRUCTIONS * sizeof *records);
    for (size_t i = 0; i < READ_INSTRUCTIONS; i++) {
        records[i].size = sizeof records[i];
        records[i].stallReason = counts + i * s->reason_count;
    }
}

static CUpti_PCSamplingData data_in(CUpti_PCSamplingPCData *records)
{
    return (CUpti_PCSamplingData){
        .size = sizeof(CUpti_PCSamplingData), .collectNumPcs = READ_INSTRUCTIONS, .pPcData = records};
}

static bool allocate(kprof_pc_samples *s)
{
    const size_t counts = READ_INSTRUCTIONS * s->reason_count;
    s->indices = calloc(s->reason_count, sizeof *s->indices);
    s->reasons = calloc(s->reason_count, sizeof *s->reasons);
    s->reason_texts = calloc(s->reason_count, CUPTI_STALL_REASON_STRING_SIZE);
    s->records = calloc(READ_INSTRUCTIONS, sizeof *s->records);
    s->rest_records = calloc(READ_INSTRUCTIONS, sizeof *s->rest_records);
    s->counts = calloc(counts, sizeof *s->counts);
    s->rest_counts = calloc(counts, sizeof *s->rest_counts);
    bool all =
        s->indices && s->reasons && s->reason_texts && s->records && s->rest_records && s->counts && s->rest_counts;
    for (size_t i = 0; all && i < s->reason_count; i++)
        s->reasons[i] = s->reason_texts + i * CUPTI_STALL_REASON_STRING_SIZE;
    return all;
}

/* Give each of CUPTI's numbers its column. */
static bool list_columns(kprof_pc_samples *s)
{
    for (size_t i = 0; i < s->reason_count; i++)
        if (s->indices[i] >= s->column_count)
            s->column_count = (size_t)s->indices[i] + 1;
    s->columns = calloc(s->column_count, sizeof *s->columns);
    for (size_t i = 0; s->columns && i < s->column_count; i++)
        s->columns[i] = SIZE_MAX;
    for (size_t i = 0; s->columns && i < s->reason_count; i++)
        s->columns[s->indices[i]] = i;
    return s->columns;
}

/* Ask which reasons there are, once samples are enabled. */
static kprof_status list_reasons(kprof_pc_samples *s)
{
    PARAMS(count, GetNumStallReasons, .numStallReasons = &s->reason_count);
    if (s->columns)
        return KPROF_OK;
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingGetNumStallReasons, count);
    if (status != KPROF_OK)
        return status;
    if (s->reason_count == 0)
        return kprof_fail(KPROF_UNSUPPORTED, "CUPTI knows no reason why a warp stalls on this device");
    if (!allocate(s))
        return kprof_fail(KPROF_NO_MEMORY, "no memory for samples");
    PARAMS(names, GetStallReasons, .numStallReasons = s->reason_count, .stallReasonIndex = s->indices,
           .stallReasons = s->reasons);
    status = KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingGetStallReasons, names);
    if (status == KPROF_OK && !list_columns(s))
        status = kprof_fail(KPROF_NO_MEMORY, "no memory for samples");
    return status;
}

static void fill_attributes(kprof_pc_samples *s, uint32_t period, CUpti_PCSamplingConfigurationInfo *out)
{
    out[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    out[0].attributeData.samplingPeriodData.samplingPeriod = period;
    out[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
    out[1].attributeData.stallReasonData.stallReasonCount = s->reason_count;
    out[1].attributeData.stallReasonData.pStallReasonIndex = s->indices;
    out[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    out[2].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
    out[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    out[3].attributeData.hardwareBufferSizeData.hardwareBufferSize = s->buffer_bytes;
    out[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
    out[4].attributeData.scratchBufferSizeData.scratchBufferSize = SCRATCH_BUFFER_BYTES;
    out[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    out[5].attributeData.samplingDataBufferData.samplingDataBuffer = &s->rest;
    out[6].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
    out[6].attributeData.enableStartStopControlData.enableStartStopControl = 1;
}

static kprof_status configure(kprof_pc_samples *s, uint32_t period)
{
    CUpti_PCSamplingConfigurationInfo attributes[ATTRIBUTES] = {0};
    set_up_records(s, s->rest_records, s->rest_counts);
    s->rest = data_in(s->rest_records);
    fill_attributes(s, period, attributes);
    PARAMS(params, ConfigurationInfo, .numAttributes = ATTRIBUTES, .pPCSamplingConfigurationInfo = attributes);
    CUptiResult result = s->cupti->cuptiPCSamplingSetConfigurationAttribute(&params);
    for (size_t i = 0; i < ATTRIBUTES && result == CUPTI_SUCCESS; i++)
        result = attributes[i].attributeStatus;
    return kprof_cupti_check(s->cupti, "cuptiPCSamplingSetConfigurationAttribute", result);
}

kprof_status kprof_pc_samples_open(void *context, size_t buffer_bytes, kprof_pc_samples **out)
{
    kprof_pc_samples *s = *out = calloc(1, sizeof *s);
    if (!s)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for samples");
    s->context = context;
    s->buffer_bytes = buffer_bytes ? buffer_bytes : HARDWARE_BUFFER_BYTES;
    kprof_status status = kprof_cupti_load(&s->cupti);
    KPROF_THEN(status, kprof_profilers_initialize(s->cupti));
    if (status != KPROF_OK) {
        kprof_pc_samples_close(s);
        *out = NULL;
    }
    return status;
}

kprof_status kprof_pc_samples_arm(kprof_pc_samples *s, uint32_t period)
{
    kprof_status status = kprof_pc_samples_disarm(s);
    KPROF_THEN(status, enable(s));
    if (status != KPROF_OK)
        return status;
    status = list_reasons(s);
    KPROF_THEN(status, configure(s, period));
    if (status != KPROF_OK && kprof_pc_samples_disarm(s) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples that could not be configured cannot be disabled either");
    return status;
}

kprof_status kprof_pc_samples_start(kprof_pc_samples *s)
{
    PARAMS(params, Start);
    kprof_status status = KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingStart, params);
    s->runs = status == KPROF_OK;
    return status;
}

kprof_status kprof_pc_samples_stop(kprof_pc_samples *s)
{
    PARAMS(params, Stop);
    s->runs = false;
    return KPROF_CUPTI_CALL(s->cupti, cuptiPCSamplingStop, params);
}

/* Names of functions are shared by all records, and CUPTI does not say until when: they are never freed. */
static void take_records(kprof_pc_samples *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const CUpti_PCSamplingPCData *record = &s->records[i];
        double *values = kprof_instruction_rows_next(&s->rows);
        for (size_t k = 0; k < record->stallReasonCount && k < s->reason_count; k++) {
            const uint32_t index = record->stallReason[k].pcSamplingStallReasonIndex;
            if (index < s->column_count && s->columns[index] != SIZE_MAX)
                values[s->columns[index]] += record->stallReason[k].samples;
        }
        kprof_instruction_rows_keep(&s->rows, record->cubinCrc, record->functionName, record->pcOffset);
    }
}

/* Sums over the calls of one reading. */
typedef struct sums {
    uint64_t total, others; /* others: of kernels that are not the user's, as CUPTI takes them */
    bool full;
} sums;

static kprof_status read_some(kprof_pc_samples *s, kprof_instruction_data *out, sums *told, bool *more)
{
    CUpti_PCSamplingData data = data_in(s->records);
    PARAMS(params, GetData, .pcSamplingData = &data);
    set_up_records(s, s->records, s->counts);
    CUptiResult result = s->cupti->cuptiPCSamplingGetData(&params);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY)
        return kprof_fail(KPROF_NOT_COLLECTED, "the launch has more samples than the GPU's buffer holds: give a larger "
                                               "--warp-sampling-buffer-size or --warp-sampling-interval");
    if (result != CUPTI_SUCCESS)
        return kprof_cupti_fail(s->cupti, "cuptiPCSamplingGetData", result);
    take_records(s, data.totalNumPcs < READ_INSTRUCTIONS ? data.totalNumPcs : READ_INSTRUCTIONS);
    out->dropped += data.droppedSamples;
    told->total += data.totalSamples;
    told->others += data.nonUsrKernelsTotalSamples;
    told->full = told->full || data.hardwareBufferFull;
    *more = data.remainingNumPcs > 0 && data.totalNumPcs > 0;
    return KPROF_OK;
}

/* Make space for another call's instructions behind those that were read. */
static bool grow(kprof_instruction_rows *rows)
{
    const size_t needed = rows->count + READ_INSTRUCTIONS;
    if (needed <= rows->capacity)
        return true;
    kprof_instruction_rows grown = {0};
    if (!kprof_instruction_rows_begin(&grown, 2 * needed, rows->names)) {
        kprof_instruction_rows_free(&grown);
        return false;
    }
    for (size_t i = 0; i < rows->count; i++) {
        const kprof_instruction *from = &rows->items[i];
        memcpy(kprof_instruction_rows_next(&grown), from->values, rows->names * sizeof *from->values);
        kprof_instruction_rows_keep(&grown, from->crc, from->function, from->offset);
    }
    kprof_instruction_rows_free(rows);
    *rows = grown;
    return true;
}

kprof_status kprof_pc_samples_read(kprof_pc_samples *s, kprof_instruction_data *out)
{
    sums told = {0};
    bool more = true;
    kprof_status status = KPROF_OK;
    *out = (kprof_instruction_data){.names = (const char *const *)s->reasons, .name_count = s->reason_count};
    if (!kprof_instruction_rows_begin(&s->rows, READ_INSTRUCTIONS, s->reason_count))
        return kprof_fail(KPROF_NO_MEMORY, "no memory for samples");
    for (int i = 0; i < MOST_READS && more && status == KPROF_OK; i++)
        status =
            grow(&s->rows) ? read_some(s, out, &told, &more) : kprof_fail(KPROF_NO_MEMORY, "no memory for samples");
    out->items = s->rows.items;
    out->count = s->rows.count;
    if (status != KPROF_OK || s->rows.count > 0)
        return status;
    if (told.others > 0)
        return kprof_fail(
            KPROF_UNSUPPORTED,
            "CUPTI has %llu samples of the launch and gives them to no instruction: its kernel was loaded "
            "while samples were not enabled, in another context than the process' first, or while another "
            "process had the counters",
            (unsigned long long)told.others);
    if (told.full || out->dropped > 0)
        return kprof_fail(KPROF_NOT_COLLECTED, "the GPU dropped all samples of the launch");
    return kprof_fail(KPROF_NOT_COLLECTED, "no sample fell into the launch, which is as short as the sampling period");
}

/* While samples are enabled CUPTI may write what is left of them. */
void kprof_pc_samples_close(kprof_pc_samples *s)
{
    if (!s || s->enabled)
        return;
    kprof_instruction_rows_free(&s->rows);
    KPROF_FREE(s->indices, s->reasons, s->reason_texts, s->columns, s->records, s->rest_records, s->counts,
               s->rest_counts, s);
}
