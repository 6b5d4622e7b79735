/* Counters and samples of instructions over functions that stand in for CUPTI's, and behave as those did on a GPU: each
 * call must find the state that the measured order gives. */
#include "cupti/codes.h"
#include "cupti/instructions.h"
#include "cupti/pc_samples.h"
#include "cupti/profiler.h"
#include "cupti/target.h"
#include "host/load.h"
#include "log_capture.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define REASONS 3
#define MANY    5000 /* more instructions than one call gives */

static log_capture log_seen;
static char place; /* of the context */

static struct {
    unsigned set, unset; /* configurations of devices, as bits */
    unsigned initialized;
    bool counts, samples, started, runs;
    uint32_t period, mode, control;
    size_t records; /* the kernels that were patched have so many instructions */
    CUptiResult enable, flush, get_data, disable, attribute;
    size_t left; /* instructions that GetData has yet to give */
    uint64_t others, dropped;
    unsigned crcs; /* how often a checksum was taken */
    bool loads;    /* another thread loads a module while one is taken */
} cupti;

static CUptiResult get_string(CUptiResult result, const char **text)
{
    *text = result == CUPTI_SUCCESS ? "fine" : "an error";
    return CUPTI_SUCCESS;
}

static CUptiResult get_properties(CUpti_SassMetrics_GetProperties_Params *p)
{
    assert_int_equal(p->structSize, CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE);
    assert_string_equal(p->pChipName, "GH100");
    p->metric.metricId = 70 + (uint64_t)p->pMetricName[0];
    return p->pMetricName[0] == 'z' ? CUPTI_ERROR_INVALID_METRIC_NAME : CUPTI_SUCCESS;
}

/* A second configuration of a device leaves nothing that works. */
static CUptiResult set_config(CUpti_SassMetricsSetConfig_Params *p)
{
    assert_int_equal(p->structSize, CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE);
    assert_false(cupti.unset & 1u << p->deviceIndex);
    for (size_t i = 0; i < p->numOfMetricConfig; i++)
        assert_int_equal(p->pConfigs[i].outputGranularity, CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU);
    assert_false(cupti.set & 1u << p->deviceIndex);
    cupti.set |= 1u << p->deviceIndex;
    return CUPTI_SUCCESS;
}

static CUptiResult unset_config(CUpti_SassMetricsUnsetConfig_Params *p)
{
    assert_int_equal(p->structSize, CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE);
    assert_true(cupti.set & ~cupti.unset & 1u << p->deviceIndex);
    cupti.unset |= 1u << p->deviceIndex;
    return CUPTI_SUCCESS;
}

static CUptiResult enable_counters(CUpti_SassMetricsEnable_Params *p)
{
    assert_ptr_equal(p->ctx, &place);
    assert_true(p->enableLazyPatching && !cupti.counts);
    cupti.counts = cupti.enable == CUPTI_SUCCESS;
    return cupti.enable;
}

static CUptiResult get_data_properties(CUpti_SassMetricsGetDataProperties_Params *p)
{
    assert_true(cupti.counts);
    p->numOfPatchedInstructionRecords = cupti.records;
    p->numOfInstances = 2;
    return CUPTI_SUCCESS;
}

/* Of each function the second instruction has nothing. The metrics come in another order than they were asked for. */
static CUptiResult flush(CUpti_SassMetricsFlushData_Params *p)
{
    assert_int_equal(p->structSize, 40); /* the field behind it counts all the same */
    assert_int_equal(p->numOfPatchedInstructionRecords, cupti.records);
    for (size_t i = 0; i < cupti.records; i++) {
        CUpti_SassMetrics_Data *d = &p->pMetricsData[i];
        assert_int_equal(d->structSize, sizeof *d);
        d->cubinCrc = 0xfedcba98;
        d->functionName = i < 3 ? "first" : "second";
        d->pcOffset = (uint32_t)(16 * i);
        d->pInstanceValues[0] = (CUpti_SassMetrics_InstanceValue){70 + 'b', i % 3 == 1 ? 0 : 1000 + i};
        d->pInstanceValues[1] = (CUpti_SassMetrics_InstanceValue){70 + 'a', i % 3 == 1 ? 0 : UINT64_C(1) << 40};
    }
    return cupti.flush;
}

static CUptiResult disable_counters(CUpti_SassMetricsDisable_Params *p)
{
    assert_ptr_equal(p->ctx, &place);
    assert_true(cupti.counts);
    cupti.counts = cupti.disable != CUPTI_SUCCESS;
    return cupti.disable;
}

static CUptiResult enable_samples(CUpti_PCSamplingEnableParams *p)
{
    assert_int_equal(p->size, CUpti_PCSamplingEnableParamsSize);
    assert_false(cupti.samples);
    cupti.samples = cupti.enable == CUPTI_SUCCESS;
    cupti.started = false;
    cupti.period = 0;
    return cupti.enable;
}

static CUptiResult disable_samples(CUpti_PCSamplingDisableParams *p)
{
    assert_int_equal(p->size, CUpti_PCSamplingDisableParamsSize);
    assert_true(cupti.samples && !cupti.runs);
    cupti.samples = cupti.disable != CUPTI_SUCCESS;
    return cupti.disable;
}

static CUptiResult count_reasons(CUpti_PCSamplingGetNumStallReasonsParams *p)
{
    *p->numStallReasons = REASONS;
    return cupti.samples ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

static CUptiResult get_reasons(CUpti_PCSamplingGetStallReasonsParams *p)
{
    for (uint32_t i = 0; i < REASONS; i++) {
        p->stallReasonIndex[i] = 10 + 5 * i; /* they are no column's number */
        snprintf(p->stallReasons[i], CUPTI_STALL_REASON_STRING_SIZE, "reason %u", i);
    }
    return CUPTI_SUCCESS;
}

#define SAMPLE_BUFFER_BYTES 4711

static CUptiResult set_attributes(CUpti_PCSamplingConfigurationInfoParams *p)
{
    assert_true(cupti.samples && !cupti.started);
    for (size_t i = 0; i < p->numAttributes; i++) {
        const CUpti_PCSamplingConfigurationInfo *a = &p->pPCSamplingConfigurationInfo[i];
        if (a->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD)
            cupti.period = a->attributeData.samplingPeriodData.samplingPeriod;
        else if (a->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE)
            cupti.mode = a->attributeData.collectionModeData.collectionMode;
        else if (a->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL)
            cupti.control = a->attributeData.enableStartStopControlData.enableStartStopControl;
        else if (a->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
            assert_int_equal(a->attributeData.hardwareBufferSizeData.hardwareBufferSize, SAMPLE_BUFFER_BYTES);
        else if (a->attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
            assert_non_null(
                ((CUpti_PCSamplingData *)a->attributeData.samplingDataBufferData.samplingDataBuffer)->pPcData);
    }
    p->pPCSamplingConfigurationInfo[3].attributeStatus = cupti.attribute;
    return CUPTI_SUCCESS;
}

static CUptiResult start_samples(CUpti_PCSamplingStartParams *p)
{
    assert_ptr_equal(p->ctx, &place);
    assert_true(cupti.samples && !cupti.runs && cupti.period > 0);
    cupti.started = cupti.runs = true;
    return CUPTI_SUCCESS;
}

static CUptiResult stop_samples(CUpti_PCSamplingStopParams *p)
{
    assert_ptr_equal(p->ctx, &place);
    assert_true(cupti.runs);
    cupti.runs = false;
    return CUPTI_SUCCESS;
}

static CUptiResult get_data(CUpti_PCSamplingGetDataParams *p)
{
    static char name[] = "kernel";
    CUpti_PCSamplingData *data = p->pcSamplingData;
    assert_true(cupti.samples && !cupti.runs && data->size == sizeof *data);
    const size_t count = cupti.left < data->collectNumPcs ? cupti.left : data->collectNumPcs;
    for (size_t i = 0; i < count; i++) {
        CUpti_PCSamplingPCData *record = &data->pPcData[i];
        assert_true(record->size == sizeof *record && record->functionName == NULL);
        record->cubinCrc = 0xfedcba98;
        record->pcOffset = 16 * (cupti.left - i - 1);
        record->functionName = name;
        record->stallReasonCount = 2;
        record->stallReason[0] = (CUpti_PCSamplingStallReason){20, 7};
        record->stallReason[1] = (CUpti_PCSamplingStallReason){99, 5}; /* that nobody has told of */
    }
    cupti.left -= count;
    data->totalNumPcs = count;
    data->remainingNumPcs = cupti.left;
    data->droppedSamples = cupti.dropped;
    data->nonUsrKernelsTotalSamples = cupti.others;
    data->totalSamples = 7 * count + cupti.dropped + cupti.others;
    return cupti.get_data;
}

/* The last byte of a cubin. */
static void *load(void *unused)
{
    static const char code[] = {5, 6, 90};
    kprof_codes_add(code, sizeof code);
    return unused;
}

static CUptiResult get_crc(CUpti_GetCubinCrcParams *p)
{
    assert_false(cupti.counts);
    cupti.crcs++;
    if (cupti.loads) { /* a module is loaded meanwhile: CUPTI goes on when its callback has ended */
        pthread_t thread;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 600; /* for ever, on any machine */
        assert_int_equal(pthread_create(&thread, NULL, load, NULL), 0);
        assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
    }
    p->cubinCrc = ((const unsigned char *)p->cubin)[p->cubinSize - 1];
    return CUPTI_SUCCESS;
}

static const kprof_cupti_api api = {
    .cuptiGetResultString = get_string,
    .cuptiSassMetricsGetProperties = get_properties,
    .cuptiSassMetricsSetConfig = set_config,
    .cuptiSassMetricsUnsetConfig = unset_config,
    .cuptiSassMetricsEnable = enable_counters,
    .cuptiSassMetricsGetDataProperties = get_data_properties,
    .cuptiSassMetricsFlushData = flush,
    .cuptiSassMetricsDisable = disable_counters,
    .cuptiPCSamplingEnable = enable_samples,
    .cuptiPCSamplingDisable = disable_samples,
    .cuptiPCSamplingGetNumStallReasons = count_reasons,
    .cuptiPCSamplingGetStallReasons = get_reasons,
    .cuptiPCSamplingSetConfigurationAttribute = set_attributes,
    .cuptiPCSamplingStart = start_samples,
    .cuptiPCSamplingStop = stop_samples,
    .cuptiPCSamplingGetData = get_data,
    .cuptiGetCubinCrc = get_crc,
};

/* In place of load.c and profiler.c. */
kprof_status kprof_cupti_load(const kprof_cupti_api **out)
{
    *out = &api;
    return KPROF_OK;
}

kprof_status kprof_profilers_initialize(const struct kprof_cupti_api *unused)
{
    assert_ptr_equal(unused, &api);
    cupti.initialized++;
    return KPROF_OK;
}

bool kprof_target_is_primary(const void *context, uint32_t device)
{
    return context == &place;
}

kprof_status kprof_cupti_fail(const struct kprof_cupti_api *unused, const char *operation, int failure)
{
    assert_ptr_equal(unused, &api);
    return kprof_fail(failure == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? KPROF_NO_PERMISSION : KPROF_INTERNAL, "%s: %d",
                      operation, failure);
}

static kprof_instructions *open_counters(uint32_t device, char **names, size_t count)
{
    static kprof_strlist list;
    list = (kprof_strlist){names, count, count};
    kprof_instructions *opened;
    const kprof_instructions_place there = {&place, device, "GH100", &list};
    assert_int_equal(kprof_instructions_open(&there, &opened), KPROF_OK);
    return opened;
}

TEST(counters_are_given_by_instruction)
{
    char *names[] = {(char *)"a", (char *)"zero", (char *)"b"};
    kprof_instruction_data data;
    kprof_instructions *counters = open_counters(0, names, 3);
    assert_non_null(strstr(log_seen.last, "zero")); /* which the chip does not have */
    assert_int_equal(kprof_instructions_enable(counters), KPROF_OK);
    cupti.records = 0;
    assert_int_equal(kprof_instructions_read(counters, &data), KPROF_OK);
    assert_int_equal(data.count, 0);
    cupti.records = 6;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(kprof_instructions_read(counters, &data), KPROF_OK);
        assert_int_equal(data.name_count, 2);
        assert_string_equal(data.names[1], "b");
        assert_int_equal(data.count, 4); /* without those that counted nothing */
        assert_int_equal(data.items[1].offset, 32);
        assert_string_equal(data.items[1].function, "first");
        assert_string_equal(data.items[2].function, "second");
        assert_true(data.items[2].crc == 0xfedcba98);
        assert_true(data.items[1].values[0] == (double)(UINT64_C(1) << 40) && data.items[1].values[1] == 1002);
    }
    cupti.flush = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(kprof_instructions_read(counters, &data), KPROF_INTERNAL);
    assert_int_equal(kprof_instructions_disable(counters), KPROF_OK);
    assert_int_equal(kprof_instructions_disable(counters), KPROF_OK); /* nothing is on */
    assert_false(cupti.counts);
    kprof_instructions_close(counters);
}

/* A second configuration, or one for a context that has gone, would end the process or leave nothing that works. */
TEST(a_device_is_configured_once)
{
    char *names[] = {(char *)"a"};
    kprof_strlist list = {names, 1, 1};
    const kprof_instructions_place there = {&place, 3, "GH100", &list};
    kprof_instructions *first = open_counters(3, names, 1), *second, *other = open_counters(4, names, 1);
    cupti.enable = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(kprof_instructions_enable(first), KPROF_INTERNAL);
    assert_int_equal(kprof_instructions_disable(first), KPROF_OK);
    assert_int_equal(cupti.unset & 8, 0);
    kprof_instructions_close(first);
    assert_int_equal(cupti.unset & 8, 8);
    assert_int_equal(kprof_instructions_open(&there, &second), KPROF_UNSUPPORTED);
    assert_non_null(strstr(log_seen.last, "has been reset"));
    kprof_instructions_close(other);
}

TEST(other_contexts_than_the_primary_one_are_refused)
{
    char *names[] = {(char *)"a"};
    kprof_strlist list = {names, 1, 1};
    kprof_instructions *opened;
    kprof_instructions_place there = {&there, 5, "GH100", &list};
    assert_int_equal(kprof_instructions_open(&there, &opened), KPROF_UNSUPPORTED);
    assert_non_null(strstr(log_seen.last, "primary context only"));
    assert_int_equal(cupti.set & 32, 0);
    there = (kprof_instructions_place){&place, 64, "GH100", &list};
    assert_int_equal(kprof_instructions_open(&there, &opened), KPROF_UNSUPPORTED);
}

TEST(metrics_that_no_chip_has_are_refused)
{
    char *names[] = {(char *)"z"};
    kprof_strlist list = {names, 1, 1};
    kprof_instructions *opened;
    const kprof_instructions_place there = {&place, 0, "GH100", &list};
    assert_int_equal(kprof_instructions_open(&there, &opened), KPROF_UNSUPPORTED);
    assert_null(opened);
}

static kprof_pc_samples *open_samples(void)
{
    kprof_pc_samples *samples;
    assert_int_equal(kprof_pc_samples_open(&place, SAMPLE_BUFFER_BYTES, &samples), KPROF_OK);
    assert_int_equal(cupti.initialized, 1);
    assert_false(cupti.samples);
    return samples;
}

static void sample_launch(kprof_pc_samples *samples, size_t instructions)
{
    assert_int_equal(kprof_pc_samples_start(samples), KPROF_OK);
    cupti.left = instructions;
    assert_int_equal(kprof_pc_samples_stop(samples), KPROF_OK);
}

static void close_samples(kprof_pc_samples *samples)
{
    assert_int_equal(kprof_pc_samples_disarm(samples), KPROF_OK);
    assert_false(cupti.samples);
    kprof_pc_samples_close(samples);
}

TEST(samples_are_given_by_instruction)
{
    kprof_instruction_data data;
    kprof_pc_samples *samples = open_samples();
    assert_int_equal(kprof_pc_samples_arm(samples, 8), KPROF_OK);
    assert_true(cupti.period == 8 && cupti.control == 1);
    assert_int_equal(cupti.mode, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
    cupti.dropped = 3;
    for (int again = 0; again < 2; again++) {
        sample_launch(samples, MANY);
        assert_int_equal(kprof_pc_samples_read(samples, &data), KPROF_OK);
        assert_int_equal(data.count, MANY);
        assert_true(data.name_count == REASONS && data.dropped == 6);
        assert_string_equal(data.names[2], "reason 2");
        for (size_t i = 0; i < MANY; i++)
            assert_true(data.items[i].offset == 16 * (MANY - i - 1) && data.items[i].values[2] == 7 &&
                        data.items[i].values[0] == 0 && strcmp(data.items[i].function, "kernel") == 0);
    }
    close_samples(samples);
}

/* A pass of counters would end the process where they had been started, or fail where kernels were launched since. */
TEST(samples_are_enabled_anew_each_time)
{
    kprof_pc_samples *samples = open_samples();
    assert_int_equal(kprof_pc_samples_arm(samples, 9), KPROF_OK);
    cupti.enable = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(kprof_pc_samples_arm(samples, 9), KPROF_INTERNAL);
    assert_false(cupti.samples);
    cupti.enable = CUPTI_SUCCESS;
    assert_int_equal(kprof_pc_samples_arm(samples, 9), KPROF_OK);
    assert_int_equal(cupti.period, 9);
    sample_launch(samples, 1);
    assert_int_equal(kprof_pc_samples_arm(samples, 9), KPROF_OK);
    assert_true(cupti.samples && !cupti.started);
    sample_launch(samples, 1);
    cupti.disable = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(kprof_pc_samples_arm(samples, 9), KPROF_INTERNAL);
    assert_true(cupti.samples && cupti.started);
    cupti.disable = CUPTI_SUCCESS;
    close_samples(samples);
}

TEST(what_cannot_be_enabled_is_told)
{
    kprof_pc_samples *samples = open_samples();
    cupti.enable = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(kprof_pc_samples_arm(samples, 8), KPROF_NO_PERMISSION);
    cupti.enable = CUPTI_SUCCESS;
    cupti.attribute = CUPTI_ERROR_INVALID_OPERATION;
    assert_int_equal(kprof_pc_samples_arm(samples, 8), KPROF_INTERNAL);
    assert_false(cupti.samples);
    close_samples(samples);
}

TEST(launches_without_samples_tell_why)
{
    kprof_instruction_data data;
    kprof_pc_samples *samples = open_samples();
    assert_int_equal(kprof_pc_samples_arm(samples, 8), KPROF_OK);
    sample_launch(samples, 0);
    assert_int_equal(kprof_pc_samples_read(samples, &data), KPROF_NOT_COLLECTED);
    assert_non_null(strstr(log_seen.last, "as short as the sampling period"));
    cupti.others = 800;
    sample_launch(samples, 0);
    assert_int_equal(kprof_pc_samples_read(samples, &data), KPROF_UNSUPPORTED);
    assert_non_null(strstr(log_seen.last, "800 samples"));
    cupti.others = 0;
    cupti.get_data = CUPTI_ERROR_OUT_OF_MEMORY;
    sample_launch(samples, 5);
    assert_int_equal(kprof_pc_samples_read(samples, &data), KPROF_NOT_COLLECTED);
    assert_non_null(strstr(log_seen.last, "buffer"));
    cupti.get_data = CUPTI_ERROR_UNKNOWN;
    sample_launch(samples, 5);
    assert_int_equal(kprof_pc_samples_read(samples, &data), KPROF_INTERNAL);
    close_samples(samples);
}

/* CUPTI is asked for checksums when somebody looks for a cubin, and never as one is loaded. */
TEST(cubins_are_found_by_their_checksum)
{
    size_t size = 0;
    uint64_t id;
    static char large[1 << 20];
    char code[] = {1, 2, 3, 77};
    large[sizeof large - 1] = 40;
    kprof_codes_add(code, sizeof code);
    assert_null(kprof_codes_find(77, "k", &size, &id)); /* nobody has asked to keep any */
    assert_int_equal(id, 77);
    kprof_codes_keep();
    kprof_codes_add(code, sizeof code);
    kprof_codes_add(code, sizeof code);
    kprof_codes_add(code, 3);
    kprof_codes_add(large, sizeof large);
    kprof_codes_add(NULL, 0);
    assert_int_equal(cupti.crcs, 0);
    const char *found = kprof_codes_find(77, "k", &size, &id);
    assert_true(found && found != code && size == sizeof code && found[3] == 77);
    assert_int_equal(id & UINT32_MAX, 77);
    assert_non_null(kprof_codes_find(3, "k", &size, &id));
    assert_int_equal(size, 3);
    assert_int_equal(cupti.crcs, 3); /* once for each, as they do not change */
    assert_null(kprof_codes_find(78, "k", &size, &id));
    assert_non_null(kprof_codes_find(40, "k", &size, &id));
    const uint64_t before = id;
    kprof_codes_drop(id);
    assert_null(kprof_codes_find(40, "k", &size, &id));
    assert_true(id == before && id > UINT32_MAX);
    assert_int_equal(cupti.crcs, 3);
}

/* CUPTI's checksum is one of few bytes, so cubins of kernels that differ by a constant may share it. */
TEST(cubins_with_one_checksum_are_told_apart)
{
    static char large[1 << 20];
    const char add[] = "\0add\0code\0\101", sub[] = "\0sub\0code\0\101", again[] = "\0.text.add\0coda\0\101";
    memcpy(large, "\0badd\0mul", sizeof "\0badd\0mul");
    large[sizeof large - 1] = 'A';
    kprof_codes_keep();
    kprof_codes_add(add, sizeof add - 1);
    kprof_codes_add(sub, sizeof sub - 1);
    kprof_codes_add(large, sizeof large);
    size_t size;
    uint64_t ids[5];
    const char *found = kprof_codes_find('A', "add", &size, &ids[0]);
    assert_true(found && found[1] == 'a');
    kprof_codes_drop(ids[0]);
    found = kprof_codes_find('A', "sub", &size, &ids[1]);
    assert_true(found && found[1] == 's');
    assert_int_equal(ids[0] & UINT32_MAX, 'A');
    assert_int_equal(ids[1] & UINT32_MAX, 'A');
    assert_true(ids[0] != ids[1]);
    assert_non_null(kprof_codes_find('A', "mul", &size, &ids[2]));
    kprof_codes_drop(ids[2]);
    assert_null(kprof_codes_find('A', "mul", &size, &ids[3])); /* of whichever has no bytes any more */
    assert_true(ids[3] == ids[2] && ids[2] != ids[0] && ids[2] != ids[1]);
    assert_true(kprof_codes_find('A', "add", &size, &ids[4]) && ids[4] == ids[0]);
    kprof_codes_add(again, sizeof again - 1); /* the one that was loaded last */
    assert_true(kprof_codes_find('A', "add", &size, &ids[4]) && ids[4] != ids[0]);
}

/* The thread that loads one has CUPTI's locks. */
TEST(cubins_are_loaded_while_one_is_looked_for)
{
    size_t size = 0;
    uint64_t id;
    const char code[] = {1, 2, 3, 78};
    kprof_codes_keep();
    kprof_codes_add(code, sizeof code);
    cupti.loads = true;
    assert_non_null(kprof_codes_find(78, "k", &size, &id));
    cupti.loads = false;
    assert_non_null(kprof_codes_find(90, "k", &size, &id));
    assert_int_equal(size, 3);
}

static int set_up(void **state)
{
    const unsigned set = cupti.set, unset = cupti.unset; /* as long as the process lives */
    memset(&cupti, 0, sizeof cupti);
    cupti.set = set;
    cupti.unset = unset;
    log_capture_start(&log_seen);
    return 0;
}

AROUND_EACH(set_up, NULL)
